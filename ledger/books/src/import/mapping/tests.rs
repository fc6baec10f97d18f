use super::*;

fn columns(names: &str) -> Columns {
    Columns(names.split(' ').map(str::to_owned).collect())
}

fn bind(format: Format, map: &str, names: &str) -> Result<BoundMapping, MapError> {
    Mapping { format, map: MapFile::parse(map, JOB_FIELDS).unwrap() }.bind(&columns(names))
}

#[track_caller]
fn check_refused(format: Format, map: &str, names: &str, told: &str) {
    assert_eq!(bind(format, map, names).err().map(|e| e.to_string()).unwrap_or_default(), told);
}

#[test]
fn columns_that_the_file_lacks_are_told_all_at_once_beside_those_it_has() {
    check_refused(
        Format::Csv,
        "[columns]\njob_id = \"id\"\nuser = \"owner\"\nstarted_at = \"start\"\ncards = { column = \"n\", times = \"m\" }",
        "id start n",
        "the map names columns that the file lacks: columns.cards.times: no column \"m\"; columns.user: no column \"owner\"; \
         the file has id, start, n",
    );
}

#[test]
fn a_file_that_says_no_cards_no_ids_or_no_times_is_refused_as_a_whole() {
    check_refused(
        Format::Sacct,
        "",
        "JobID Start End State",
        "nothing says how many cards a job has: export AllocTRES (AllocGRES before Slurm 20.11), or name cards in the map; \
         the file has JobID, Start, End, State",
    );
    check_refused(
        Format::Sacct,
        "cards_from = \"cpu\"",
        "JobID Start AllocGRES",
        "nothing says how many cards a job has: export AllocTRES (AllocGRES before Slurm 20.11), or name cards in the map; \
         the file has JobID, Start, AllocGRES",
    );
    check_refused(
        Format::Csv,
        "[columns]\nstarted_at = \"t\"\ncards = \"n\"",
        "t n",
        "nothing says which job a row is: name job_id in the map, or key = \"row\" for a file without ids; the file has t, n",
    );
    check_refused(
        Format::Csv,
        "[columns]\njob_id = \"t\"\ncards = \"n\"",
        "t n",
        "nothing says when a job started or was submitted: name started_at in the map; the file has t, n",
    );
}

#[test]
fn slurms_columns_are_known_in_any_case_and_the_map_overrides_them() {
    let bound =
        bind(Format::Sacct, "[columns]\nproject = \"WCKey\"", "jobid START State alloctres Account wckey").unwrap();
    let record = Record {
        line: 1,
        text: crate::import::record::RecordText::Owned(String::new()),
        values: csv::StringRecord::from(vec!["7", "2020-01-01", "FAILED", "gres/gpu=1", "physics", "phd"]),
    };
    assert_eq!(bound.project.get(&record), Some("phd"));
    assert_eq!(bound.job_id.get(&record), Some("7"));
    assert_eq!(bound.state.get(&record), (Some(JobState::Failed), None));
    assert_eq!(bound.over_by, OverBy::State);
}

#[test]
fn without_a_map_our_own_names_are_the_columns() {
    let bound = bind(Format::Csv, "", "job_id started_at ended_at cards labels.team colour").unwrap();
    assert_eq!(bound.labels.len(), 1);
    assert_eq!(bound.over_by, OverBy::End);
}
