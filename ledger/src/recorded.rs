//! Takes in telemetry that was recorded before, by content: `import metrics`.
//!
//! What was read of a device at an instant is one row, whichever import brings it: a row that is there is not written again, and another version of
//! it is kept beside it. Which of the two counts is decided where rows are read (`cardhour_books::telemetry`): the one that tells use, then the
//! longer stretch, then the one that knows more, then the smaller. So imports may overlap and come in any order (LED-4).
//!
//! An import lands in several tables. Before the first it is put aside as a whole ([`pending`]), and whoever reads next finishes what a kill
//! left undone.
//!
//! Start at [`Ledger::import_telemetry`]. Does not: say who held what, or derive anything but by `derive`.

mod pending;
#[cfg(test)]
mod tests;

use crate::derive::{TRIES, pause};
use crate::facts::FreshJobs;
use crate::ledger::Booked;
use crate::segments::{by_day, touched};
use crate::store::{Change, NewFile, Outcome, Snapshot, Store};
use crate::tables::telemetry;
use crate::touched::NOTE;
use crate::{Error, Ledger, derive, intake};
use cardhour_books::attempt::Rejected;
use cardhour_books::import::metrics::Telemetry;
use cardhour_books::telemetry::DeviceTick;
use cardhour_domain::columns::Rows;
use cardhour_domain::{Name, Sample, SampleSource, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{Hash, Hasher};

/// What a row says, all of it.
type Digest = [u8; 32];

/// What was read, of which device, by which kind of source, at which instant.
type Instant = (Name, Name, SampleSource, Timestamp);

/// How a segment is called in which an import came: no node has this name and a slash after it.
const IMPORT: &str = "import";

impl Ledger {
    /// Takes in what an import read, and the rows it could not read of each file; then brings the books up to them.
    ///
    /// Counts are of rows of the books: what devices said, the devices, who held them, when it was looked. Exactly once: the same again changes
    /// nothing, and imports that overlap come to the same in any order (LED-4).
    pub async fn import_telemetry(
        &self,
        told: Telemetry,
        rejected: Vec<(String, Vec<Rejected>)>,
    ) -> Result<Booked, Error> {
        let mut booked = Booked::default();
        for (file, rows) in rejected {
            booked.quarantined += intake::quarantine(&self.store, &file, rows).await?;
        }
        let last_seen = told.last_seen();
        let devices = told.devices.into_iter().chain(last_seen).collect();
        // The devices first, so that what was held is never more than there was; the looks last, so that nothing is free before its holders are
        // known.
        let all = vec![
            Rows::Devices(devices),
            Rows::Samples(told.samples),
            Rows::Observations(told.observations),
            Rows::Watches(told.watches),
        ];
        let pending = self.put_aside(&all)?;
        for rows in all {
            let of_stream = add(&self.store, rows).await?;
            booked.booked += of_stream.booked;
            booked.unchanged += of_stream.unchanged;
            booked.superseded += of_stream.superseded;
        }
        pending.map_or(Ok(()), pending::Pending::done)?;
        derive::catch_up(&self.store, &FreshJobs::default()).await?;
        Ok(booked)
    }

    /// Finishes imports that were killed.
    pub(crate) async fn finish_imports(&self) -> Result<(), Error> {
        for (pending, all) in self.left_aside()? {
            for rows in all {
                add(&self.store, rows).await?;
            }
            pending.done()?;
        }
        Ok(())
    }
}

/// Adds the rows that aren't there yet, in one commit.
async fn add(store: &Store, rows: Rows) -> Result<Booked, Error> {
    let stream = rows.stream();
    let table = telemetry::of(stream);
    if rows.is_empty() {
        return Ok(Booked::default());
    }
    let days = by_day(rows);
    for attempt in 0..TRIES {
        let snapshot = store.open_or_create(&table).await?;
        let mut booked = Booked::default();
        let mut new: BTreeMap<i32, Rows> = BTreeMap::new();
        let mut digests = BTreeSet::new();
        for (day, rows) in &days {
            let fresh = fresh(&snapshot, *day, rows, &mut booked).await?;
            if !fresh.is_empty() {
                digests.extend(self::digests(&fresh));
                new.insert(*day, fresh);
            }
        }
        if new.is_empty() {
            return Ok(booked);
        }
        let mut all = blake3::Hasher::new();
        digests.iter().for_each(|digest| _ = all.update(digest));
        let segment = format!("{IMPORT}#{}", &all.finalize().to_hex()[..16]);
        let touched = touched(&snapshot, stream, new.values()).await?;
        let files = new.iter().map(|(day, rows)| NewFile::of(Some(*day), telemetry::batch(rows, &segment)));
        let change = Change {
            add: files.collect(),
            notes: BTreeMap::from([(NOTE.to_owned(), touched.to_note())]),
            ..Change::default()
        };
        if let Outcome::Landed = store.commit(&snapshot, change).await? {
            return Ok(booked);
        }
        pause(attempt).await;
    }
    Err(Error::LostRace { table: table.name, tries: TRIES })
}

/// The rows of one day that the table doesn't have, each once; counts what becomes of all of them.
async fn fresh(snapshot: &Snapshot, day: i32, rows: &Rows, booked: &mut Booked) -> Result<Rows, Error> {
    let stream = rows.stream();
    let digests = digests(rows);
    let mut missing: HashSet<&Digest> = digests.iter().collect();
    let given = missing.len();
    let instants: HashSet<Instant> = samples(rows).iter().map(instant).collect();
    // Of instants that come again, what stands there.
    let mut standing: HashMap<Instant, DeviceTick> = HashMap::new();
    for (_, batches) in snapshot.read(|file| file.day == Some(day), None, &[]).await? {
        for batch in &batches {
            let known = telemetry::rows(stream, batch)?;
            self::digests(&known).iter().for_each(|digest| _ = missing.remove(digest));
            for sample in samples(&known).iter().filter(|sample| instants.contains(&instant(sample))) {
                keep_better(&mut standing, sample);
            }
        }
    }
    booked.unchanged += (given - missing.len()) as u64;
    let mut take = Vec::with_capacity(digests.len());
    for digest in &digests {
        take.push(missing.remove(digest));
    }
    let fresh = kept(rows, &take);
    match &fresh {
        Rows::Samples(samples) => {
            for sample in samples {
                // One of two versions of an instant gives way, the one that is there or the one that comes.
                let is_second = standing.contains_key(&instant(sample));
                let stands = keep_better(&mut standing, sample);
                booked.superseded += u64::from(is_second);
                booked.booked += u64::from(stands);
            }
        }
        other => booked.booked += other.len() as u64,
    }
    Ok(fresh)
}

fn samples(rows: &Rows) -> &[Sample] {
    if let Rows::Samples(samples) = rows { samples } else { &[] }
}

fn instant(sample: &Sample) -> Instant {
    (sample.card_uuid.clone(), sample.device_uuid.clone(), sample.source, sample.during.end())
}

/// Keeps the better of two versions of an instant; whether it is this one.
fn keep_better(standing: &mut HashMap<Instant, DeviceTick>, sample: &Sample) -> bool {
    let tick = DeviceTick::of(sample);
    match standing.entry(instant(sample)) {
        std::collections::hash_map::Entry::Occupied(mut there) => {
            let is_better = tick.counts_before(there.get());
            if is_better {
                there.insert(tick);
            }
            is_better
        }
        std::collections::hash_map::Entry::Vacant(free) => {
            free.insert(tick);
            true
        }
    }
}

/// The rows at the places that are taken.
fn kept(rows: &Rows, take: &[bool]) -> Rows {
    fn of<T: Clone>(rows: &[T], take: &[bool]) -> Vec<T> {
        rows.iter().zip(take).filter(|(_, take)| **take).map(|(row, _)| row.clone()).collect()
    }
    match rows {
        Rows::Samples(rows) => Rows::Samples(of(rows, take)),
        Rows::Observations(rows) => Rows::Observations(of(rows, take)),
        Rows::Watches(rows) => Rows::Watches(of(rows, take)),
        Rows::Devices(rows) => Rows::Devices(of(rows, take)),
        Rows::Activity(_) | Rows::Events(_) => unreachable!("no import has them"),
    }
}

fn digests(rows: &Rows) -> Vec<Digest> {
    match rows {
        Rows::Samples(rows) => rows.iter().map(digest).collect(),
        Rows::Observations(rows) => rows.iter().map(digest).collect(),
        Rows::Watches(rows) => rows.iter().map(digest).collect(),
        Rows::Devices(rows) => rows.iter().map(digest).collect(),
        Rows::Activity(_) | Rows::Events(_) => unreachable!("no import has them"),
    }
}

/// Of everything a row says. It is compared inside one command; of what is stored it only makes the name of a segment.
fn digest(row: &impl Hash) -> Digest {
    struct Into(blake3::Hasher);
    impl Hasher for Into {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            unreachable!("the digest is taken whole")
        }
    }
    let mut hasher = Into(blake3::Hasher::new());
    row.hash(&mut hasher);
    *hasher.0.finalize().as_bytes()
}
