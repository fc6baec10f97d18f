use super::fixture::{BOOT, activity, at, device, event, observation, one_of_each, sample, stretch, watch};
use super::*;
use arrow::datatypes::{DataType, TimeUnit};
use cardhour_domain::{Interval, Observation, Owner};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Encoding;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs;
use tempfile::TempDir;

/// An instant long after that of the fixtures' rows: the spool's own time.
const NOW_S: i64 = 1_900_000_000;

fn config(folder: &Path) -> SpoolConfig {
    SpoolConfig::new(folder, "n1".into())
}

fn open(folder: &TempDir) -> Spool {
    Spool::open(config(folder.path()), BOOT, at(NOW_S)).unwrap().0
}

/// The rows of a segment.
fn rows_of(path: &Path, stream: Stream) -> Rows {
    let file = File::open(path).unwrap();
    let mut gathered = stretches::Gathered::new(stream);
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        gathered.add(Rows::read(stream, &batch.unwrap()).unwrap());
    }
    gathered.rows().clone()
}

/// What waits for delivery, with its rows.
fn sealed(spool: &Spool) -> Vec<(SegmentName, Rows)> {
    let read = |name: SegmentName| {
        let rows = rows_of(&spool.folder().join(name.to_string()), name.stream());
        (name, rows)
    };
    spool.pending().unwrap().into_iter().map(read).collect()
}

/// The rows of a stream that wait for delivery.
fn sealed_of(spool: &Spool, stream: Stream) -> Vec<Rows> {
    sealed(spool).into_iter().filter(|(name, _)| name.stream() == stream).map(|(_, rows)| rows).collect()
}

#[test]
fn a_tick_of_each_stream_becomes_a_segment_each_with_one_number() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder);
    spool.append(&one_of_each(0), at(NOW_S)).unwrap();
    assert_eq!(spool.pending().unwrap(), []);
    spool.seal(at(NOW_S)).unwrap();
    let names: Vec<String> = sealed(&spool).into_iter().map(|(name, _)| name.to_string()).collect();
    // Holdings before telemetry. The first number is the second in which the spool was made.
    let expected = ["observations", "watches", "devices", "events", "samples", "activity"];
    let expected = expected.map(|stream| format!("0123456789abcdef0123456789abcdef-001900000000.{stream}.parquet"));
    assert_eq!(names, expected);
    let mut rows: Vec<Rows> = sealed(&spool).into_iter().map(|(_, rows)| rows).collect();
    rows.sort_by_key(Rows::stream);
    let mut expected = one_of_each(0);
    // By holder in a segment: job a before job b.
    let Rows::Observations(observations) = &mut expected[2] else { unreachable!() };
    observations.reverse();
    assert_eq!(rows, expected);
}

#[test]
fn stretches_that_touch_and_tell_the_same_are_one_row() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder);
    // Job a: 0 to 30 in two ticks, then a hole of a tick, then 45 to 60. Job b from 30 on: 30 to 60. The card watched throughout.
    let other_owner = Observation { owner: Owner::default(), ..observation("a", stretch(60, 75)) };
    let ticks = [
        (vec![observation("a", stretch(0, 15))], stretch(0, 15)),
        (vec![observation("a", stretch(15, 30))], stretch(15, 30)),
        (vec![observation("b", stretch(30, 45))], stretch(30, 45)),
        (vec![observation("b", stretch(45, 60)), observation("a", stretch(45, 60))], stretch(45, 60)),
        (vec![other_owner.clone()], stretch(60, 75)),
    ];
    for (observations, watched) in ticks {
        spool.append(&[Rows::Observations(observations), Rows::Watches(vec![watch(watched)])], at(NOW_S)).unwrap();
    }
    spool.seal(at(NOW_S)).unwrap();
    let expected = vec![
        other_owner,
        observation("a", stretch(0, 30)),
        observation("a", stretch(45, 60)),
        observation("b", stretch(30, 60)),
    ];
    let [Rows::Observations(found)] = &sealed_of(&spool, Stream::Observations)[..] else { panic!("one segment") };
    assert_eq!(found.len(), expected.len());
    for row in expected {
        assert!(found.contains(&row), "{row:?} is not in {found:?}");
    }
    assert_eq!(sealed_of(&spool, Stream::Watches), [Rows::Watches(vec![watch(stretch(0, 75))])]);
}

#[test]
fn telemetry_is_in_the_order_of_devices_then_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder);
    for from_s in [0, 15] {
        let tick = [sample("MIG-2", from_s), sample("MIG-1", from_s)];
        spool.append(&[Rows::Samples(tick.to_vec()), Rows::Activity(vec![activity(from_s)])], at(NOW_S)).unwrap();
    }
    spool.seal(at(NOW_S)).unwrap();
    let expected = vec![sample("MIG-1", 0), sample("MIG-1", 15), sample("MIG-2", 0), sample("MIG-2", 15)];
    assert_eq!(sealed_of(&spool, Stream::Samples), [Rows::Samples(expected)]);
    assert_eq!(sealed_of(&spool, Stream::Activity), [Rows::Activity(vec![activity(0), activity(15)])]);
}

#[test]
fn a_segment_has_the_layout_that_was_measured_to_be_the_smallest() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder);
    spool.append(&one_of_each(0), at(NOW_S)).unwrap();
    spool.seal(at(NOW_S)).unwrap();
    let name = spool.pending().unwrap().into_iter().find(|name| name.stream() == Stream::Samples).unwrap();
    let path = folder.path().join(name.to_string());
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let group = reader.metadata().row_group(0);
    for column in group.columns() {
        let is_delta = column.encodings().any(|encoding| encoding == Encoding::DELTA_BINARY_PACKED);
        let has_dictionary = column.dictionary_page_offset().is_some();
        let name = column.column_path().string();
        let counts = ["ts", "nvlink_bytes", "pcie_bytes", "energy_mj"].contains(&name.as_str());
        assert_eq!((is_delta, has_dictionary), (counts, !counts), "{name}");
        assert!(column.compression().to_string().starts_with("ZSTD"), "{name}");
    }
    assert_eq!(reader.metadata().file_metadata().key_value_metadata(), None, "no hint of Arrow's types");
    let schema = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap().schema().clone();
    let ts = schema.field_with_name("ts").unwrap().data_type().clone();
    assert_eq!(ts, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    assert_eq!(*schema.field_with_name("card_uuid").unwrap().data_type(), DataType::Utf8);
}

#[test]
fn a_journal_is_sealed_when_it_is_a_quarter_hour_old_and_when_it_is_large() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder);
    spool.append(&one_of_each(0), at(NOW_S)).unwrap();
    spool.seal_if_due(at(NOW_S + 899)).unwrap();
    assert_eq!(spool.pending().unwrap(), []);
    spool.seal_if_due(at(NOW_S + 900)).unwrap();
    assert_eq!(spool.pending().unwrap().len(), 6);
    drop(spool);
    let small = SpoolConfig { seal_bytes: 400, ..config(folder.path()) };
    let mut spool = Spool::open(small, BOOT, at(NOW_S)).unwrap().0;
    // A tick of each stream is larger than 400 bytes: most of it are its words.
    spool.append(&one_of_each(15), at(NOW_S)).unwrap();
    spool.seal_if_due(at(NOW_S)).unwrap();
    assert_eq!(spool.pending().unwrap().len(), 12);
}

#[test]
fn a_clock_that_steps_back_neither_repeats_a_name_nor_holds_up_a_journal_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder);
    spool.append(&one_of_each(0), at(NOW_S)).unwrap();
    spool.seal(at(NOW_S)).unwrap();
    // A year back. The journal's age counts from the first look after the step.
    let back = NOW_S - 31_536_000;
    spool.append(&one_of_each(15), at(NOW_S)).unwrap();
    spool.seal_if_due(at(back)).unwrap();
    spool.seal_if_due(at(back + 899)).unwrap();
    assert_eq!(spool.pending().unwrap().len(), 6);
    spool.seal_if_due(at(back + 900)).unwrap();
    drop(spool);
    let (mut spool, _) = Spool::open(config(folder.path()), BOOT, at(back)).unwrap();
    spool.append(&one_of_each(30), at(back)).unwrap();
    spool.seal(at(back)).unwrap();
    let numbers: std::collections::BTreeSet<u64> = spool.pending().unwrap().iter().map(SegmentName::sequence).collect();
    assert_eq!(numbers, (1_900_000_000..1_900_000_003).collect());
}

#[test]
fn numbers_go_on_where_they_were_when_all_is_delivered_and_when_the_note_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder);
    spool.append(&one_of_each(0), at(NOW_S)).unwrap();
    spool.seal(at(NOW_S)).unwrap();
    for name in spool.pending().unwrap() {
        fs::remove_file(folder.path().join(name.to_string())).unwrap();
    }
    drop(spool);
    // Nothing lies here but the note, and the clock is back at 1970.
    let mut spool = Spool::open(config(folder.path()), BOOT, at(5)).unwrap().0;
    spool.append(&one_of_each(0), at(5)).unwrap();
    spool.seal(at(5)).unwrap();
    assert_eq!(spool.pending().unwrap()[0].sequence(), 1_900_000_001);
    drop(spool);
    // The note is gone, or isn't one: above what lies here.
    for note in ["", "no number", "99999999999999999999"] {
        fs::write(folder.path().join("sequence"), note).unwrap();
        let spool = Spool::open(config(folder.path()), BOOT, at(5)).unwrap().0;
        assert_eq!(spool.next_sequence, 1_900_000_002, "{note:?}");
    }
    // A spool that was wiped begins at the second in which it is made again.
    let wiped = tempfile::tempdir().unwrap();
    let spool = Spool::open(config(wiped.path()), BOOT, at(NOW_S + 7)).unwrap().0;
    assert_eq!(spool.next_sequence, 1_900_000_007);
}

#[test]
fn two_collectors_do_not_share_a_spool() {
    let folder = tempfile::tempdir().unwrap();
    let spool = open(&folder);
    let second = Spool::open(config(folder.path()), BOOT, at(NOW_S)).map(|_| ());
    assert!(matches!(second, Err(SpoolError::Taken { path }) if path == folder.path()));
    drop(spool);
    open(&folder);
}

#[test]
fn nobody_else_can_look_into_the_spool() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("var/spool");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    Spool::open(config(&folder), BOOT, at(NOW_S)).unwrap();
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn what_an_earlier_life_left_is_sealed_at_start_without_its_torn_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder);
    spool.append(&[Rows::Watches(vec![watch(stretch(0, 15))])], at(NOW_S)).unwrap();
    spool.append(&[Rows::Watches(vec![watch(stretch(30, 45))])], at(NOW_S)).unwrap();
    drop(spool);
    let journal = folder.path().join("0123456789abcdef0123456789abcdef-001900000000.journal");
    let length = fs::metadata(&journal).unwrap().len();
    // Two bytes of the second record are lost. The first ends after the header's 8 bytes, its head of 12 and its record of 32.
    File::options().write(true).open(&journal).unwrap().set_len(length - 2).unwrap();
    fs::write(folder.path().join("0123456789abcdef0123456789abcdef-001900000000.samples.parquet.tmp"), "half").unwrap();
    let (spool, recovered) = Spool::open(config(folder.path()), BOOT + 1, at(NOW_S)).unwrap();
    let whole = 8 + 12 + 32;
    let expected =
        Recovered { journals: 1, torn_bytes: length - 2 - whole, temporary_files: 1, ..Recovered::default() };
    assert_eq!(recovered, expected);
    // Under the boot that wrote it.
    let name = SegmentName::new(BOOT, 1_900_000_000, Stream::Watches);
    assert_eq!(sealed(&spool), [(name, Rows::Watches(vec![watch(stretch(0, 15))]))]);
    assert!(!journal.exists());
}

#[test]
fn a_kill_after_any_step_of_sealing_leaves_the_same_segments_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder);
    for from_s in [0, 15] {
        spool.append(&one_of_each(from_s), at(NOW_S)).unwrap();
    }
    let journal = folder.path().join("0123456789abcdef0123456789abcdef-001900000000.journal");
    let content = fs::read(&journal).unwrap();
    spool.seal(at(NOW_S)).unwrap();
    let names = spool.pending().unwrap();
    let bytes = |name: &SegmentName| fs::read(folder.path().join(name.to_string())).unwrap();
    let expected: Vec<Vec<u8>> = names.iter().map(bytes).collect();
    drop(spool);
    // After 0, 1, … 6 of the segments had their names; the journal is removed last.
    for made in 0..=names.len() {
        for name in &names[made..] {
            fs::remove_file(folder.path().join(name.to_string())).unwrap();
        }
        fs::write(&journal, &content).unwrap();
        assert_eq!(folder::pending(folder.path()).unwrap(), [], "not before the journal is gone");
        let spool = open(&folder);
        assert_eq!(spool.pending().unwrap(), names);
        assert_eq!(names.iter().map(bytes).collect::<Vec<_>>(), expected, "{made} were made");
        assert!(!journal.exists());
    }
}

#[test]
fn a_journal_that_cannot_be_read_is_set_aside_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(&folder));
    let journal = "0123456789abcdef0123456789abcdef-000000000007.journal";
    fs::write(folder.path().join(journal), b"CHSPOOL\x09 of a later time").unwrap();
    let (mut spool, recovered) = Spool::open(config(folder.path()), BOOT, at(NOW_S)).unwrap();
    assert_eq!(recovered, Recovered { journals: 1, damaged: 1, ..Recovered::default() });
    assert!(folder.path().join("refused").join(journal).exists());
    spool.append(&one_of_each(0), at(NOW_S)).unwrap();
    spool.seal(at(NOW_S)).unwrap();
    assert_eq!(spool.pending().unwrap().len(), 6);
}

#[test]
fn a_full_spool_drops_the_oldest_telemetry_and_tells_how_much_and_keeps_who_held_what() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = open(&folder);
    for from_s in [0, 15, 30] {
        spool.append(&one_of_each(from_s), at(NOW_S)).unwrap();
        spool.seal(at(NOW_S)).unwrap();
    }
    let bytes = spool.stock(at(NOW_S)).unwrap().bytes;
    drop(spool);
    // A byte too much for the quarter that a journal and its segments keep: the samples of number …00 go, two rows, and nothing else.
    let most = (bytes - 1) * 4 / 3;
    let small = SpoolConfig { spool_bytes: most, ..config(folder.path()) };
    let (mut spool, _) = Spool::open(small, BOOT, at(NOW_S + 1)).unwrap();
    let dropped = |stream, rows| ((stream, DropReason::SpoolFull), rows);
    assert_eq!(spool.counters().dropped_rows, [dropped(Stream::Samples, 2)].into());
    assert_eq!(spool.counters().dropped_segments.total(), 1);
    assert_eq!(spool.pending().unwrap().len(), 17);
    spool.seal(at(NOW_S + 1)).unwrap();
    let told = sealed_of(&spool, Stream::Events).pop().unwrap();
    let Rows::Events(told) = told else { panic!("events") };
    assert_eq!((told[0].kind, told[0].number, told[0].at), (EventKind::Dropped, Some(2), at(NOW_S + 1)));
    let detail = "samples: the spool is full, segment 0123456789abcdef0123456789abcdef-001900000000.samples.parquet";
    assert_eq!(told[0].detail.as_deref(), Some(detail));
    // The event's own segment was too much again: so it goes on until it fits, and holdings are all there.
    for stream in [Stream::Observations, Stream::Watches, Stream::Devices] {
        assert_eq!(sealed_of(&spool, stream).len(), 3);
    }
}

#[test]
fn a_spool_full_of_holdings_takes_holdings_still_and_telemetry_again_when_they_are_delivered() {
    let folder = tempfile::tempdir().unwrap();
    // Smaller than one segment: whatever is sealed is too much.
    let small = SpoolConfig { spool_bytes: 1600, ..config(folder.path()) };
    let mut spool = Spool::open(small, BOOT, at(NOW_S)).unwrap().0;
    spool.append(&one_of_each(0), at(NOW_S)).unwrap();
    spool.seal(at(NOW_S)).unwrap();
    let telemetry = |spool: &Spool| spool.pending().unwrap().iter().filter(|name| name.stream().is_telemetry()).count();
    assert_eq!(telemetry(&spool), 0);
    spool.append(&one_of_each(15), at(NOW_S)).unwrap();
    // Dropped sealed, a tick; dropped before it was written, a tick: 2 samples and 1 row of activity each.
    let dropped = |stream, rows| ((stream, DropReason::SpoolFull), rows);
    assert_eq!(spool.counters().dropped_rows, [dropped(Stream::Samples, 4), dropped(Stream::Activity, 2)].into());
    spool.seal(at(NOW_S)).unwrap();
    assert_eq!(sealed_of(&spool, Stream::Observations).len(), 2);
    for name in spool.pending().unwrap() {
        fs::remove_file(folder.path().join(name.to_string())).unwrap();
    }
    spool.append(&[Rows::Samples(vec![sample("GPU-1", 30)])], at(NOW_S)).unwrap();
    assert_eq!(spool.counters().appended_rows.get(Stream::Samples), 3);
}

#[test]
fn holdings_wait_in_memory_while_there_is_no_disk_and_go_first_when_there_is() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("spool");
    let mut spool = Spool::open(config(&folder), BOOT, at(NOW_S)).unwrap().0;
    let away = parent.path().join("away");
    fs::rename(&folder, &away).unwrap();
    for from_s in [0, 15, 30] {
        let tick = [
            Rows::Samples(vec![sample("GPU-1", from_s)]),
            Rows::Observations(vec![observation("a", stretch(from_s, from_s + 15))]),
            Rows::Events(vec![event(from_s)]),
        ];
        let error = spool.append(&tick, at(NOW_S + from_s)).unwrap_err();
        let SpoolError::Disk { path, .. } = &error else { panic!("{error}") };
        assert!(path.starts_with(&folder), "{error}");
        assert!(spool.stock(at(NOW_S)).is_err());
    }
    fs::rename(&away, &folder).unwrap();
    assert_eq!(spool.stock(at(NOW_S)).unwrap().waiting_rows, 6);
    spool.append(&[Rows::Devices(vec![device(45)])], at(NOW_S + 45)).unwrap();
    assert_eq!(spool.stock(at(NOW_S)).unwrap().waiting_rows, 0);
    spool.seal(at(NOW_S)).unwrap();
    assert_eq!(sealed_of(&spool, Stream::Observations), [Rows::Observations(vec![observation("a", stretch(0, 45))])]);
    let [Rows::Events(events)] = &sealed_of(&spool, Stream::Events)[..] else { panic!("one segment") };
    assert_eq!(events[..3], [event(0), event(15), event(30)]);
    assert_eq!((events[3].kind, events[3].number), (EventKind::Dropped, Some(3)));
    assert_eq!(events[3].detail.as_deref(), Some("samples: the spool's disk took nothing"));
    assert_eq!(events.len(), 4);
    assert_eq!(spool.counters().failed_appends, 3);
}

#[test]
fn a_day_without_a_disk_takes_the_memory_of_the_holders_and_not_of_the_ticks() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("spool");
    let mut spool = Spool::open(config(&folder), BOOT, at(NOW_S)).unwrap().0;
    let away = parent.path().join("away");
    fs::rename(&folder, &away).unwrap();
    for tick in 0..24 * 240 {
        let during = stretch(tick * 15, tick * 15 + 15);
        let rows = [Rows::Observations(vec![observation("a", during)]), Rows::Watches(vec![watch(during)])];
        spool.append(&rows, at(NOW_S + tick * 15)).unwrap_err();
        // Joined when 4096 have come.
        assert!(spool.waiting.len() <= 2 * 4100, "{}", spool.waiting.len());
    }
    fs::rename(&away, &folder).unwrap();
    spool.append(&[], at(NOW_S)).unwrap();
    spool.seal(at(NOW_S)).unwrap();
    assert_eq!(
        sealed_of(&spool, Stream::Observations),
        [Rows::Observations(vec![observation("a", stretch(0, 86_400))])]
    );
    assert!(spool.counters().dropped_rows.is_empty());
}

#[test]
fn more_changes_of_holders_than_memory_may_hold_are_dropped_oldest_first_and_counted() {
    let mut waiting = Waiting::new();
    for job in 0..65_544i64 {
        // Each by itself: a second apart.
        let during = stretch(job * 20, job * 20 + 15);
        waiting.add(&Rows::Observations(vec![observation(&format!("job{:05}", 90_000 - job), during)]));
    }
    // 65,536 may wait.
    let dropped: Vec<_> = waiting.bound().into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(dropped, [(Stream::Observations, 8)]);
    let Some(Rows::Observations(left)) = waiting.rows().next() else { panic!("observations") };
    let first = left.iter().map(|row| row.during.start()).min();
    assert_eq!(first, Some(at(160)));
}

#[test]
fn a_node_that_could_leave_its_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for node in ["", "..", ".hidden", "a/b", "a\nb", &"n".repeat(256)] {
        let config = SpoolConfig::new(folder.path(), node.into());
        assert!(matches!(Spool::open(config, BOOT, at(0)), Err(SpoolError::Node { .. })), "{node:?}");
    }
}

#[test]
fn overlapping_stretches_after_a_clock_was_set_back_are_one() {
    let mut gathered = stretches::Gathered::new(Stream::Watches);
    let during = |from, to| Interval::new(at(from), at(to)).unwrap();
    gathered.add(Rows::Watches(vec![watch(during(0, 60)), watch(during(10, 20)), watch(during(55, 70))]));
    assert_eq!(gathered.into_rows(), Rows::Watches(vec![watch(during(0, 70))]));
}
