use super::*;
use crate::import::fields::JOB_FIELDS;

fn faults(text: &str) -> Vec<String> {
    match MapFile::parse(text, JOB_FIELDS) {
        Err(MapError::Faults(faults)) => faults.iter().map(Fault::to_string).collect(),
        other => panic!("expected faults, got {other:?}"),
    }
}

/// The map of the design, §7, word for word.
#[test]
fn the_map_of_the_design_is_read() {
    let map = MapFile::parse(
        r#"
        format = "csv"
        delimiter = ","
        time_zone = "Asia/Shanghai"      # for times that carry none
        cluster = "shanghai-1"
        key = "id"                       # or "row"

        [columns]                        # ours = theirs; a table where more must be said
        job_id       = "name"
        user         = "owner"
        project      = "team"
        class        = { column = "qos", map = { LS = "inference", BE = "batch" } }
        cards        = { column = "gpu_milli", scale = "0.001", times = "num_gpu" }
        model        = { column = "gpu_spec", default = "unknown" }
        submitted_at = { column = "creation_time", unit = "s", epoch = "2023-01-01T00:00:00Z" }
        started_at   = { column = "scheduled_time", unit = "s", epoch = "2023-01-01T00:00:00Z" }
        ended_at     = { column = "deletion_time", unit = "s", epoch = "2023-01-01T00:00:00Z" }
        state        = { column = "phase", map = { Succeeded = "completed", Failed = "failed" } }
        "#,
        JOB_FIELDS,
    )
    .unwrap();
    assert_eq!(map.format, Some(Format::Csv));
    assert_eq!(map.time_zone.name(), "Asia/Shanghai");
    assert_eq!((map.cluster.as_deref(), map.key), (Some("shanghai-1"), RowKey::Id));
    let columns = map.columns.unwrap();
    assert_eq!(columns["job_id"], Rule::column("name"));
    assert_eq!(columns["cards"].scale, Some(Decimal::new(1, 3)));
    assert_eq!(columns["cards"].times.as_deref(), Some("num_gpu"));
    assert_eq!(columns["started_at"].epoch.unwrap().to_string(), "2023-01-01T00:00:00Z");
    assert_eq!(columns["state"].map.as_ref().unwrap()["Failed"], "failed");
}

#[test]
fn labels_are_named_with_or_without_quotes() {
    let map =
        MapFile::parse("[columns]\nlabels.team = \"t\"\n\"labels.cost centre\" = { column = \"cc\" }", JOB_FIELDS)
            .unwrap();
    let columns = map.columns.unwrap();
    assert_eq!(columns["labels.team"], Rule::column("t"));
    assert_eq!(columns["labels.cost centre"], Rule::column("cc"));
}

#[test]
fn every_fault_is_told_at_once_with_the_path_of_its_key() {
    let told = faults(
        r#"
        format = "xml"
        time_zone = "Asia/Atlantis"
        key = "line"
        colour = "red"
        as_of = "soon"
        [columns]
        cardz = "n"
        cards = { column = "n", scale = 0.5, epoch = "2023-01-01" }
        state = { column = "s", map = { Good = "well" } }
        user = { map = { a = "b" } }
        started_at = { column = "t", unit = "fortnight" }
        queue = 7
        "#,
    );
    let keys: Vec<&str> = told.iter().map(|fault| fault.split(": ").next().unwrap()).collect();
    assert_eq!(
        keys,
        [
            "as_of",
            "colour",
            "columns.cards.epoch",
            "columns.cards.scale",
            "columns.cardz",
            "columns.queue",
            "columns.started_at.unit",
            "columns.state.map.Good",
            "columns.user",
            "format",
            "key",
            "time_zone",
        ]
    );
    assert!(told[7].contains("\"well\" is no state; there are pending, running"), "{}", told[7]);
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    let Err(MapError::Syntax(told)) = MapFile::parse("format = csv", JOB_FIELDS) else { panic!("expected an error") };
    assert!(told.contains("line 1"), "{told}");
}
