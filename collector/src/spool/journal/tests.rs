use super::*;
use crate::spool::fixture::{BOOT, at, one_of_each, stretch, watch};
use crate::spool::folder::JournalName;
use proptest::prelude::*;

const NAME: JournalName = JournalName { boot: BOOT, sequence: 1 };

/// A journal of these ticks, and where each of its frames ends.
fn written(folder: &Path, ticks: &[Vec<Rows>]) -> (PathBuf, Vec<u64>) {
    let mut journal = Journal::create(folder, NAME, at(0)).unwrap();
    let mut ends = Vec::new();
    for tick in ticks {
        assert!(journal.append(tick).is_ok());
        ends.push(journal.bytes);
    }
    (journal.path, ends)
}

/// The ticks that a journal has, whole ticks of all streams, and how it ends.
fn recovered(path: &Path) -> (Vec<Vec<Rows>>, Tail) {
    let mut ticks: Vec<Vec<Rows>> = Vec::new();
    let mut tail = Tail::Whole;
    for stream in Stream::ALL {
        let mut number = 0;
        tail = read(path, stream, |tick| {
            if ticks.len() == number {
                ticks.push(Vec::new());
            }
            ticks[number].extend(tick);
            number += 1;
        })
        .unwrap();
    }
    (ticks, tail)
}

#[test]
fn a_journal_is_written_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = written(folder.path(), &[vec![Rows::Watches(vec![watch(stretch(0, 15))])]]);
    let bytes = std::fs::read(&path).unwrap();
    let record = &bytes[20..];
    assert_eq!(path.file_name().unwrap(), "0123456789abcdef0123456789abcdef-000000000001.journal");
    assert_eq!(&bytes[..8], b"CHSPOOL\x01");
    // The record of a watch is 32 bytes: see `a_watch_is_written_as_before`, 1 + 8 + 3 + 4 + 6 + 10.
    assert_eq!(record.len(), 32);
    assert_eq!(bytes[8..12], [32, 0, 0, 0]);
    assert_eq!(bytes[12..20], blake3::hash(record).as_bytes()[..8]);
}

#[test]
fn every_beginning_of_a_journal_gives_the_ticks_that_are_whole_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let ticks: Vec<_> = (0..3).map(|i| one_of_each(1_800_000_000 + 15 * i)).collect();
    let (path, ends) = written(folder.path(), &ticks);
    let bytes = std::fs::read(&path).unwrap();
    for length in 0..=bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let whole = ends.iter().filter(|end| **end <= length as u64).count();
        let (found, tail) = recovered(&path);
        assert_eq!(found, ticks[..whole], "{length} bytes");
        let end = if whole == 0 { 8 } else { ends[whole - 1] };
        let expected = match (length as u64).checked_sub(end) {
            None => Tail::Torn { bytes: length as u64 },
            Some(0) => Tail::Whole,
            Some(bytes) => Tail::Torn { bytes },
        };
        assert_eq!(tail, expected, "{length} bytes");
    }
}

#[test]
fn a_tail_of_zeroes_as_a_power_cut_leaves_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let ticks = [one_of_each(0), one_of_each(15)];
    let (path, ends) = written(folder.path(), &ticks);
    let mut bytes = std::fs::read(&path).unwrap();
    let lost = ends[1] - ends[0];
    bytes[ends[0] as usize..].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(recovered(&path), (ticks[..1].to_vec(), Tail::Torn { bytes: lost }));
    std::fs::write(&path, vec![0; 100]).unwrap();
    assert_eq!(recovered(&path), (vec![], Tail::Torn { bytes: 100 }));
}

#[test]
fn a_frame_that_rotted_in_the_middle_is_told_apart_from_a_torn_end() {
    let folder = tempfile::tempdir().unwrap();
    let ticks = [one_of_each(0), one_of_each(15), one_of_each(30)];
    let (path, ends) = written(folder.path(), &ticks);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[ends[1] as usize - 1] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let unread = ends[2] - ends[0];
    assert_eq!(recovered(&path), (ticks[..1].to_vec(), Tail::Damaged { bytes: unread }));
}

#[test]
fn a_later_version_is_named_and_not_guessed_at() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = written(folder.path(), &[one_of_each(0)]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[7] = 2;
    std::fs::write(&path, &bytes).unwrap();
    let error = read(&path, Stream::Samples, |_| {}).unwrap_err().to_string();
    assert!(error.ends_with("is no journal that this collector can read: it is of version 2, known is 1"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_journal_with_any_byte_changed_gives_a_beginning_of_its_ticks(at_byte in 8usize..10_000, flip in 1u8..=255) {
        let folder = tempfile::tempdir().unwrap();
        let ticks: Vec<_> = (0..4).map(|i| one_of_each(15 * i)).collect();
        let (path, _) = written(folder.path(), &ticks);
        let mut bytes = std::fs::read(&path).unwrap();
        let at_byte = 8 + (at_byte - 8) % (bytes.len() - 8);
        bytes[at_byte] ^= flip;
        std::fs::write(&path, &bytes).unwrap();
        let (found, tail) = recovered(&path);
        prop_assert!(found.len() < ticks.len());
        prop_assert_eq!(&found[..], &ticks[..found.len()]);
        prop_assert_ne!(tail, Tail::Whole);
    }
}
