//! Where energy counters stood at the last tick on disk: for the next life of the collector on the same boot.
//!
//! ```text
//! counted := JOURNAL BYTES LF (CARD UNTIL_MS COUNTED_MS TOTAL_MJ LF)* "= " CHECKSUM LF     checksum: of all before it, as in the journal
//! ```
//!
//! It is written in place after each tick and never forced out: a kill leaves it to the kernel, and a power cut ends the boot, with which it loses its
//! meaning. It counts where the journal that it names ends where it says, or was sealed since and none was begun: else a tick is on disk that it doesn't know
//! of, and its energy would be booked twice.

use super::folder::{JournalName, Listing};
use super::journal::checksum;
use crate::sampler::CounterMark;
use cardhour_domain::Timestamp;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

const FILE: &str = "counted";

/// Notes marks with a tick that ends a journal at `bytes`.
pub(crate) fn note(folder: &Path, journal: JournalName, bytes: u64, marks: &[CounterMark]) -> io::Result<()> {
    let mut text = format!("{journal} {bytes}\n");
    for mark in marks {
        let (until_ms, counted_ms) = (mark.until.unix_ms(), mark.counted_at.unix_ms());
        // A String takes whatever it is given.
        let _ = writeln!(text, "{} {until_ms} {counted_ms} {}", mark.card_uuid, mark.total_mj);
    }
    let _ = writeln!(text, "= {:016x}", u64::from_le_bytes(checksum(text.as_bytes())));
    // In one write, which no kill cuts; what a longer one left after it isn't read.
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(folder.join(FILE))?;
    file.write_all_at(text.as_bytes(), 0)
}

/// Takes a note away that isn't of the last tick.
pub(crate) fn forget(folder: &Path) {
    // Where it can't be removed the next note overwrites it.
    let _ = std::fs::remove_file(folder.join(FILE));
}

/// The marks that an earlier life of this boot left, where they are of its last tick on disk; none else.
pub(crate) fn read(folder: &Path, listing: &Listing, boot: u128, next_sequence: u64) -> Vec<CounterMark> {
    let text = std::fs::read_to_string(folder.join(FILE)).unwrap_or_default();
    parse(&text)
        .filter(|(journal, ..)| journal.boot == boot)
        .filter(|(journal, bytes, _)| {
            if listing.journals.iter().any(|other| other.sequence > journal.sequence) {
                return false;
            }
            match std::fs::metadata(folder.join(journal.to_string())) {
                Ok(metadata) => metadata.len() == *bytes,
                Err(_) => next_sequence == journal.sequence + 1,
            }
        })
        .map_or_else(Vec::new, |(.., marks)| marks)
}

fn parse(text: &str) -> Option<(JournalName, u64, Vec<CounterMark>)> {
    let end = if text.starts_with("= ") { 0 } else { text.find("\n= ")? + 1 };
    let (told, rest) = text.split_at(end);
    let told_sum = u64::from_str_radix(rest.get(2..18)?, 16).ok()?;
    if told_sum != u64::from_le_bytes(checksum(told.as_bytes())) {
        return None;
    }
    let mut lines = told.lines();
    let (journal, bytes) = lines.next()?.split_once(' ')?;
    let mark = |line: &str| {
        let mut words = line.split(' ');
        let card_uuid = words.next()?.into();
        let mut at = || words.next()?.parse().ok().map(Timestamp::from_unix_ms);
        let (until, counted_at) = (at()?, at()?);
        Some(CounterMark { card_uuid, until, counted_at, total_mj: words.next()?.parse().ok()? })
    };
    Some((JournalName::parse(journal)?, bytes.parse().ok()?, lines.map(mark).collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::fixture::{BOOT, at, one_of_each};
    use crate::spool::{Spool, SpoolConfig};

    fn open(folder: &Path, boot: u128) -> Spool {
        Spool::open(SpoolConfig::new(folder, "n1".into()), boot, at(1_000)).unwrap().0
    }

    fn marks(total_mj: u64) -> Vec<CounterMark> {
        let mark = |card: &str| CounterMark { card_uuid: card.into(), until: at(15), counted_at: at(15), total_mj };
        vec![mark("GPU-1"), mark("GPU-2")]
    }

    #[test]
    fn marks_come_back_in_the_next_life_of_the_boot_and_in_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), BOOT);
        assert_eq!(spool.counted(), []);
        for (tick, total_mj) in [(0, 1_000_000_000), (15, 2)] {
            spool.append(&one_of_each(tick), at(tick)).unwrap();
            spool.note_counted(&marks(total_mj));
        }
        drop(spool);
        // The first of these seals the journal; the second finds it sealed, and nothing begun.
        for (boot, expected) in [(BOOT, marks(2)), (BOOT, marks(2)), (BOOT + 1, Vec::new())] {
            let spool = open(folder.path(), boot);
            assert_eq!(spool.counted(), expected);
        }
    }

    #[test]
    fn marks_are_of_no_use_where_a_later_tick_is_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), BOOT);
        spool.append(&one_of_each(0), at(0)).unwrap();
        spool.note_counted(&marks(1));
        // Killed between the two.
        spool.append(&one_of_each(15), at(15)).unwrap();
        drop(spool);
        assert_eq!(open(folder.path(), BOOT).counted(), []);
    }

    /// A hung call ends a life with an event; what the counters have grown by is told all the same.
    #[test]
    fn an_event_after_the_last_tick_leaves_marks_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), BOOT);
        spool.append(&one_of_each(0), at(0)).unwrap();
        spool.note_counted(&marks(1));
        spool.append_between(&one_of_each(15)[..1], at(15)).unwrap();
        drop(spool);
        assert_eq!(open(folder.path(), BOOT).counted(), marks(1));
    }

    #[test]
    fn a_note_with_a_byte_changed_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = open(folder.path(), BOOT);
        spool.append(&one_of_each(0), at(0)).unwrap();
        spool.note_counted(&marks(1));
        let path = folder.path().join(FILE);
        let bytes = std::fs::read(&path).unwrap();
        for i in 0..bytes.len() - 1 {
            let mut changed = bytes.clone();
            changed[i] ^= 1;
            assert!(String::from_utf8(changed).ok().and_then(|text| parse(&text)).is_none(), "byte {i}");
        }
    }
}
