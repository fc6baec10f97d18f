use super::*;
use crate::{
    AttemptKey, CardShare, EnergyBasis, EventKind, Gap, Holder, HolderKind, HolderSource, Interval, Millijoules,
    Milliwatts, Owner, Percent, Reading, SampleSource, Timestamp, UseBasis,
};
use arrow::array::{ArrayRef, Int64Array, StringArray};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

fn tick(from_s: i64) -> Interval {
    Interval::new(Timestamp::from_unix_s(from_s), Timestamp::from_unix_s(from_s + 15)).unwrap()
}

fn sample() -> Sample {
    Sample {
        during: tick(1_800_000_000),
        card_uuid: "GPU-1".into(),
        device_uuid: "MIG-1".into(),
        node: "n1".into(),
        attempt_key: Some(AttemptKey::new("lab", "7", "b1")),
        sm_active_pct: Reading::Seen(Percent::from_thousandths(12_345).unwrap()),
        use_basis: UseBasis::Gpm,
        mem_active_pct: Reading::Seen(Percent::WHOLE),
        media_active_pct: Reading::Missing(Gap::NotSupported),
        mem_used_bytes: Reading::Seen(0),
        nvlink_bytes: Reading::Missing(Gap::DriverError),
        pcie_bytes: Reading::Seen(i64::MAX),
        power_mw: Reading::Missing(Gap::NotSupported),
        energy_mj: Reading::Seen(Millijoules(-0)),
        energy_basis: EnergyBasis::Power,
        temperature_c: Reading::Seen(-3),
        source: SampleSource::Dcgm,
    }
}

fn one_of_each() -> [Rows; 6] {
    let name = |text: &str| Some(text.into());
    let bare = Sample { attempt_key: None, power_mw: Reading::Seen(Milliwatts(700_000)), ..sample() };
    let activity = Activity {
        during: tick(0),
        node: "n1".into(),
        card_uuid: "GPU-1".into(),
        device_uuid: "GPU-1".into(),
        holder: AttemptKey::new("lab", "7", "b1"),
        processes: 3,
        sm_active_pct: Reading::Missing(Gap::Implausible),
        mem_used_bytes: Reading::Seen(5),
        cpu_ms: Reading::Seen(14_999),
        io_bytes: Reading::Missing(Gap::NoPermission),
        is_attended: Reading::Seen(true),
    };
    let observation = Observation {
        during: tick(-900),
        node: "n1".into(),
        card_uuid: "GPU-1".into(),
        device_uuid: "MIG-1".into(),
        mig_profile: name("1g.10gb"),
        share: Some(CardShare::from_fraction(1, 7).unwrap()),
        source: HolderSource::Kubelet,
        holder: Holder {
            kind: HolderKind::Pod,
            cluster: "lab".into(),
            job_id: "team-a/train-0".into(),
            shown_id: None,
            run: "uid77".into(),
            started_at: Some(Timestamp::from_unix_ms(1_234)),
        },
        owner: Owner {
            org: name("o"),
            project: name("p"),
            user: None,
            queue: name("q"),
            class: None,
            labels: BTreeMap::from([("a".into(), "1\"".into()), ("b".into(), "".into())]),
            refused_project: name("theirs"),
        },
    };
    let session = Observation { share: None, owner: Owner::default(), ..observation.clone() };
    let watch = Watch { during: tick(15), node: "n1".into(), cluster: "".into(), card_uuid: "GPU-1".into() };
    let device = SeenDevice {
        at: Timestamp::from_unix_s(5),
        node: "n1".into(),
        cluster: "lab".into(),
        card_uuid: "GPU-1".into(),
        device_uuid: "GPU-1".into(),
        pci_bus_id: name("00000000:3b:00.0"),
        model: name("NVIDIA H200"),
        memory_bytes: Some(150_754_820_096),
        driver: name("580.82.07"),
        mig_mode: None,
        mig_profile: None,
        share: CardShare::CARD,
        power_limit_mw: Some(700_000),
    };
    let event = NodeEvent {
        at: Timestamp::from_unix_s(6),
        node: "n1".into(),
        card_uuid: name("GPU-1"),
        device_uuid: None,
        kind: EventKind::Xid,
        number: Some(79),
        detail: name("fallen off the bus"),
    };
    [
        Rows::Samples(vec![sample(), bare]),
        Rows::Activity(vec![activity]),
        Rows::Observations(vec![observation, session]),
        Rows::Watches(vec![watch]),
        Rows::Devices(vec![device]),
        Rows::Events(vec![event]),
    ]
}

#[test]
fn rows_come_back_as_they_went_out_with_the_reasons_of_what_is_missing() {
    for rows in one_of_each() {
        assert_eq!(Rows::read(rows.stream(), &rows.batch()).as_ref(), Ok(&rows));
    }
}

#[test]
fn columns_are_laid_out_as_before() {
    let mut layout = String::new();
    for stream in Stream::ALL {
        for field in schema(stream).fields() {
            let null = if field.is_nullable() { "?" } else { "" };
            writeln!(layout, "{}.{} {}{null}", stream.name(), field.name(), field.data_type()).unwrap();
        }
    }
    insta::assert_snapshot!(layout);
}

#[test]
fn an_older_file_without_a_column_that_may_be_empty_can_be_read() {
    let rows = Rows::Samples(vec![sample()]);
    let batch = rows.batch();
    let mut without = batch.clone();
    let dropped = without.remove_column(batch.schema().index_of("temperature_c").unwrap());
    assert_eq!(dropped.len(), 1);
    let Ok(Rows::Samples(read)) = Rows::read(Stream::Samples, &without) else { panic!("can't be read") };
    assert_eq!(read[0].temperature_c, Reading::Missing(Gap::NotRecorded));
    without.remove_column(without.schema().index_of("card_uuid").unwrap());
    let missing = ColumnError::Missing { column: "card_uuid".to_owned() };
    assert_eq!(Rows::read(Stream::Samples, &without), Err(missing));
}

#[test]
fn a_value_that_cannot_be_names_its_column_and_row() {
    let batch = Rows::Samples(vec![sample(), sample()]).batch();
    let with = |column: &str, array: ArrayRef| {
        let at = batch.schema().index_of(column).unwrap();
        let mut columns = batch.columns().to_vec();
        columns[at] = array;
        RecordBatch::try_new(batch.schema(), columns).unwrap()
    };
    let error = |batch: &RecordBatch| Rows::read(Stream::Samples, batch).unwrap_err().to_string();
    let lengths: ArrayRef = Arc::new(Int64Array::from(vec![15_000, 0]));
    assert_eq!(error(&with("interval_ms", lengths)), "row 2: interval_ms: 0 is not above zero");
    let sources: ArrayRef = Arc::new(StringArray::from(vec!["hearsay", "dcgm"]));
    assert_eq!(error(&with("source", sources)), "row 1: source: \"hearsay\" is none");
    let gaps: ArrayRef = Arc::new(StringArray::from(vec![None, Some("power_mw=tired")]));
    assert_eq!(error(&with("gaps", gaps)), "row 2: gaps: \"tired\" is no reason we know");
}
