//! What readers make of real files and of bytes that are none of theirs. Awkward inputs of one format are in the files below.

mod delimited;
mod json_lines;
mod kv;
mod sacct_json;
mod sacct_text;

use super::shared_data::shared_data;
use super::*;
use proptest::prelude::*;

/// What a reader makes of an input, as text: the columns, then a line for each record (`line: value|value…`) or rejected row
/// (`line! [field] reason «row»`). Line ends inside are written `\n`.
fn outcome(format: Format, input: impl AsRef<[u8]>, options: &ReaderOptions) -> String {
    let input = input.as_ref();
    let reading = match read(format, input, options) {
        Ok(reading) => reading,
        Err(error) => return error.to_string(),
    };
    let mut text = reading.columns.0.join("|");
    for row in reading.records {
        text.push('\n');
        text.push_str(&match row {
            Ok(record) => {
                assert_eq!(record.values.len(), reading.columns.0.len(), "values are aligned with the columns");
                let values = record.values.iter().collect::<Vec<_>>().join("|").replace('\n', "\\n");
                format!("{}: {values}", record.line)
            }
            Err(row) => {
                let field = if row.field.is_empty() { String::new() } else { format!("[{}] ", row.field) };
                format!("{}! {field}{} «{}»", row.line, row.reason, row.row.replace('\n', "\\n"))
            }
        });
    }
    text
}

#[track_caller]
fn check(format: Format, input: impl AsRef<[u8]>, options: &ReaderOptions, expected: &str) {
    let expected = expected.trim().lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
    assert_eq!(outcome(format, input, options), expected);
}

/// Options of a map that names the fields.
fn fields(names: &[&str]) -> ReaderOptions {
    ReaderOptions { fields: Some(names.iter().map(|name| (*name).to_owned()).collect()), ..ReaderOptions::default() }
}

/// Options of a map that names the delimiter.
fn delimiter(text: &str) -> ReaderOptions {
    ReaderOptions { delimiter: Some(text.to_owned()), ..ReaderOptions::default() }
}

/// All records of an input, none of its rows rejected. Each value by its column's name, through the closure that comes back.
#[track_caller]
fn records(format: Format, input: &[u8], options: &ReaderOptions) -> (Vec<Record>, Columns, u64) {
    let reading = read(format, input, options).unwrap();
    let records = reading.records.collect::<Result<_, _>>().unwrap_or_else(|row| panic!("{row:?}"));
    (records, reading.columns, reading.steps)
}

fn value<'r>(record: &'r Record, columns: &Columns, name: &str) -> Option<&'r str> {
    record.get(columns.0.iter().position(|column| column == name).unwrap_or_else(|| panic!("no column {name}")))
}

#[test]
fn formats_have_the_names_of_the_command_line() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(format));
    }
    assert_eq!(Format::from_name("sacct-kv"), Some(Format::SacctKv));
    assert_eq!(Format::from_name("xlsx"), None);
}

#[test]
fn what_cannot_be_read_at_all_says_what_to_do() {
    let none = ReaderOptions::default();
    for format in [Format::Csv, Format::Sacct, Format::SacctJson] {
        assert!(outcome(format, "", &none).starts_with("the file is empty"), "{format:?}");
    }
    assert_eq!(outcome(Format::Csv, "", &fields(&["a", "b"])), "a|b");
    assert_eq!(outcome(Format::Sacct, "", &fields(&["jobid", "state"])), "jobid|state");
    assert_eq!(outcome(Format::Jsonl, "", &none), "");
    assert!(outcome(Format::Csv, "a,b\n", &fields(&["-", ""])).starts_with("`fields` in the map names no column"));
    assert!(outcome(Format::Csv, "a,b\n", &delimiter("||")).starts_with("delimiter \"||\" cannot be used with csv"));
    assert!(outcome(Format::Parquet, "PAR1", &none).starts_with("parquet is read by columns"));
}

#[test]
fn philly_has_its_82_247_jobs() {
    let Some(input) = shared_data("philly/philly.csv") else { return };
    let (records, columns, _) = records(Format::Csv, &input, &ReaderOptions::default());
    // Its README counts 82,247 jobs; with the line of names and one blank line the file has 82,249 lines.
    assert_eq!(records.len(), 82_247);
    assert_eq!(columns.0, ["timestamp", "duration", "num_gpus", "gpu_time", "cluster"]);
    // `head -2`.
    assert_eq!(value(&records[0], &columns, "timestamp"), Some("2017-10-09 07:01:55"));
    assert_eq!(
        (records[0].line, records[0].text.resolve(&input)),
        (2, "2017-10-09 07:01:55,66.0,1,66.0,11cb48".into())
    );
}

#[test]
fn openb_and_eagle_have_a_record_a_line() {
    for (name, count) in [
        // `wc -l` less the line of names.
        ("openb-2023/openb_pod_list_default.csv", 8152),
        ("openb-2023/openb_node_list_gpu_node.csv", 1213),
        ("openb-2023/openb_node_list_all_node.csv", 1523),
        ("slurm-eagle/sample_eagle_data.csv", 1000),
    ] {
        let Some(input) = shared_data(name) else { return };
        assert_eq!(records(Format::Csv, &input, &ReaderOptions::default()).0.len(), count, "{name}");
    }
}

/// The 26 fields of phillips.log and the shredder inputs, as their README lists them.
const PHILLIPS: [&str; 26] = [
    "jobid",
    "jobidraw",
    "cluster",
    "partition",
    "qos",
    "account",
    "group",
    "gid",
    "user",
    "uid",
    "submit",
    "eligible",
    "start",
    "end",
    "elapsed",
    "exitcode",
    "state",
    "nnodes",
    "ncpus",
    "reqcpus",
    "reqmem",
    "reqtres",
    "alloctres",
    "timelimit",
    "nodelist",
    "jobname",
];

#[test]
fn phillips_has_its_4_285_jobs() {
    let Some(input) = shared_data("slurm-xdmod/phillips.log") else { return };
    let (records, columns, _) = records(Format::Sacct, &input, &fields(&PHILLIPS));
    assert_eq!(records.len(), 4285);
    // `head -1`.
    assert_eq!(value(&records[0], &columns, "alloctres"), Some("billing=12,cpu=12,gres/gpu=2,mem=31000M,node=1"));
    assert_eq!(records.last().map(|record| record.line), Some(4285));
}

#[test]
fn a_shredder_input_with_a_multibyte_name_keeps_it() {
    let Some(input) = shared_data("slurm-xdmod/shredder_input_utf8-multibyte-chars.log") else { return };
    let (records, columns, _) = records(Format::Sacct, &input, &fields(&PHILLIPS));
    assert_eq!(records.iter().map(|record| value(record, &columns, "jobname")).collect::<Vec<_>>(), [Some("aàb")]);
}

#[test]
fn gcm_has_four_records_in_six_lines() {
    let Some(input) = shared_data("slurm-gcm/sample-sacct-one-multiline.txt") else { return };
    for options in [ReaderOptions::default(), delimiter("|#")] {
        let (records, columns, _) = records(Format::Sacct, &input, &options);
        let ids: Vec<_> =
            records.iter().map(|record| (record.line, value(record, &columns, "JobID").unwrap())).collect();
        // Counted in the file: 201844 is broken over the lines 4 and 5.
        assert_eq!(ids, [(2, "200131.0"), (3, "201729"), (4, "201844"), (6, "201729.batch")]);
        assert_eq!(value(&records[2], &columns, "ElapsedRaw"), Some("87356"));
        assert_eq!(
            value(&records[2], &columns, "SubmitLine"),
            Some("sbatch --job-name job_name ||"),
            "trimmed as every value"
        );
        // `End` is named twice: the first one counts.
        assert_eq!(columns.0.iter().filter(|name| *name == "End").count(), 1);
        assert_eq!(columns.0.iter().position(|name| name == "End"), Some(27));
    }
}

#[test]
fn uio_has_its_294_jobs_and_their_steps() {
    let Some(input) = shared_data("slurm-uio/slurm-sacct.csv") else { return };
    let (records, columns, _) = records(Format::SacctKv, &input, &ReaderOptions::default());
    // `wc -l`, and `grep -c 'JobIDRaw=[0-9]*,'`.
    assert_eq!(records.len(), 876);
    let jobs = records.iter().filter(|record| !value(record, &columns, "JobIDRaw").unwrap().contains('.'));
    assert_eq!(jobs.count(), 294);
    assert_eq!(
        value(&records[0], &columns, "AllocTRES"),
        Some("billing=19,cpu=1,gres/gpu:a100=1,gres/gpu=1,mem=32G,node=1")
    );
}

#[test]
fn fox_texts_of_both_kinds_have_the_same_jobs() {
    let Some(kv) = shared_data("slurm-fox/sacctd-output.txt") else { return };
    let Some(text) = shared_data("slurm-fox/sacct-output.txt") else { return };
    let (of_kv, kv_columns, _) = records(Format::SacctKv, &kv, &ReaderOptions::default());
    // 32 fields; JobID is the first, AllocTRES the third from the end, JobName the last.
    let mut names = vec!["-"; 32];
    (names[0], names[29], names[31]) = ("JobID", "AllocTRES", "JobName");
    let (of_text, columns, _) = records(Format::Sacct, &text, &fields(&names));
    assert_eq!((of_kv.len(), of_text.len()), (96, 96));
    for (a, b) in of_kv.iter().zip(&of_text) {
        for name in ["JobID", "AllocTRES", "JobName"] {
            assert_eq!(value(a, &kv_columns, name), value(b, &columns, name), "line {}", a.line);
        }
    }
}

/// Bytes that look enough like an export to come past the first checks.
fn export_like() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"JobID|State|JobName\n".to_vec()),
        Just(b"a,b,c\n".to_vec()),
        Just(b"1|RUNNING|x\n".to_vec()),
        Just(b"{\"jobs\": [{\"job_id\": 1, \"time\": {\"end\": 1e400}, \"state\": {\"current\": []}}".to_vec()),
        Just(b"{\"a\": {\"b\": [1, \"\\ud800\"]}}\n".to_vec()),
        Just(b"k=v,\"x=1,2\"\n".to_vec()),
        "[|,\"\\n\r={}\\[\\]:0-9a-z ]{0,12}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic_and_every_row_stands_in_the_input(input in export_like()) {
        let options = [ReaderOptions::default(), fields(&["jobid", "-", "JobName"]), delimiter("|"), fields(&["a"])];
        for (format, options) in Format::ALL.iter().flat_map(|f| options.iter().map(move |o| (*f, o))) {
            let Ok(reading) = read(format, &input, options) else { continue };
            let lines = input.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
            for row in reading.records {
                let line = match row {
                    Ok(record) => {
                        prop_assert_eq!(record.values.len(), reading.columns.0.len());
                        record.text.resolve(&input);
                        record.line
                    }
                    Err(row) => row.line,
                };
                prop_assert!(1 <= line && line <= lines, "{:?}: line {} of {}", format, line, lines);
            }
        }
        let _ = compression::expand(&input, 1000);
    }

    #[test]
    fn csv_gives_back_what_was_written(
        rows in proptest::collection::vec(proptest::collection::vec("[a\",|\n\r; é]{0,6}", 3..=3), 0..8),
        delimiter_byte in prop_oneof![Just(b','), Just(b'|'), Just(b'\t')],
    ) {
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter_byte).from_writer(Vec::new());
        writer.write_record(["x", "y", "z"]).unwrap();
        for row in &rows {
            writer.write_record(row).unwrap();
        }
        let input = writer.into_inner().unwrap();
        let options = delimiter(std::str::from_utf8(&[delimiter_byte]).unwrap());
        let reading = read(Format::Csv, &input, &options).unwrap();
        let read: Vec<Vec<String>> =
            reading.records.map(|row| row.unwrap().values.iter().map(str::to_owned).collect()).collect();
        prop_assert_eq!(read, rows);
    }
}
