//! Takes in what nodes spooled, segment by segment, exactly once.
//!
//! A node delivers a segment until somebody says that it is taken: it may come twice, late, in any order, to two writers at once. Which segments are
//! in the books stands in the rows themselves (`segment`), so one commit brings both, and a look at the days of a segment says whether it is
//! there. What a node may not say (rows of another node, a name that is a path, a file that unpacks to gigabytes) is refused whole, with
//! the reason: its sender keeps it aside.
//!
//! Start at [`Ledger::take_segments`]. Does not: derive anything; whoever reads next does.

mod incoming;
mod unpack;

use crate::derive::{TRIES, pause};
use crate::store::{Change, NewFile, Outcome, Snapshot, Store};
use crate::tables::telemetry::{self, SEGMENT, segment_text};
use crate::touched::{NOTE, Touched};
use crate::{Error, Ledger};
use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use cardhour_domain::columns::Rows;
use cardhour_domain::{EventKind, Interval, Name, SeenDevice, SegmentName, Stream, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
pub use unpack::MOST_BYTES as MOST_SEGMENT_BYTES;
pub(crate) use unpack::by_day;

/// A file of a node's spool.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Whose spool it is of, as the receiver knows it.
    pub node: Name,
    /// Its name.
    pub name: SegmentName,
    /// Parquet.
    pub bytes: Bytes,
}

/// What became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is in the books now; so many rows.
    New(u64),
    /// It was there before, the same.
    Known,
}

/// A segment that was looked into: its rows by UTC day.
struct Opened {
    at: usize,
    stream: Stream,
    text: String,
    days: BTreeMap<i32, Rows>,
    rows: u64,
}

impl Ledger {
    /// Takes in segments; what became of each, in their order. One commit a table, however many segments there are.
    ///
    /// Errors, for one segment: its file is no segment of that node and stream; it was taken before with other content. For all of a table:
    /// the table can't be written.
    pub async fn take_segments(&self, segments: Vec<Segment>) -> Vec<Result<Taken, Error>> {
        let mut outcomes: Vec<Option<Result<Taken, Error>>> = segments.iter().map(|_| None).collect();
        let opened = tokio::task::spawn_blocking(move || {
            let open = |(at, segment): (usize, Segment)| (at, open(at, &segment));
            crate::files::parallel(segments.into_iter().enumerate().collect(), open)
        });
        let mut by_stream: BTreeMap<Stream, Vec<Opened>> = BTreeMap::new();
        for (at, opened) in opened.await.expect("a file that can't be read is an error, not a panic") {
            match opened {
                Ok(opened) => by_stream.entry(opened.stream).or_default().push(opened),
                Err(error) => outcomes[at] = Some(Err(error)),
            }
        }
        for (stream, opened) in by_stream {
            let at: Vec<usize> = opened.iter().map(|opened| opened.at).collect();
            match take(&self.store, stream, opened).await {
                Ok(taken) => taken.into_iter().for_each(|(at, taken)| outcomes[at] = Some(taken)),
                Err(error) => {
                    let message = error.to_string();
                    outcomes[at[0]] = Some(Err(error));
                    for at in &at[1..] {
                        let other = Error::NotTaken { table: telemetry::of(stream).name, reason: message.clone() };
                        outcomes[*at] = Some(Err(other));
                    }
                }
            }
        }
        outcomes.into_iter().map(|outcome| outcome.expect("each was looked at")).collect()
    }
}

fn open(at: usize, segment: &Segment) -> Result<Opened, Error> {
    let stream = segment.name.stream();
    let refused = |reason: String| Error::BadSegment {
        segment: segment.name.to_string(),
        node: segment.node.to_string(),
        reason,
    };
    let rows = unpack::rows(stream, segment.bytes.clone()).map_err(refused)?;
    unpack::check(&rows, &segment.node).map_err(refused)?;
    let digest = blake3::hash(&segment.bytes).to_hex();
    let count = rows.len() as u64;
    let days = unpack::by_day(rows);
    let text = segment_text(&segment.node, &segment.name.to_string(), &digest);
    Ok(Opened { at, stream, text, days, rows: count })
}

/// Commits the segments of one stream that aren't there yet.
async fn take(store: &Store, stream: Stream, opened: Vec<Opened>) -> Result<Vec<(usize, Result<Taken, Error>)>, Error> {
    let table = telemetry::of(stream);
    for attempt in 0..TRIES {
        let snapshot = store.open_or_create(&table).await?;
        let days: BTreeSet<i32> = opened.iter().flat_map(|opened| opened.days.keys().copied()).collect();
        let mut known = known_segments(&snapshot, &days).await?;
        let mut outcomes = Vec::with_capacity(opened.len());
        let mut new: Vec<&Opened> = Vec::new();
        for segment in &opened {
            let (name, _) = segment.text.split_once('#').expect("written with its digest");
            let outcome = if known.contains(&segment.text) || segment.days.is_empty() {
                Ok(Taken::Known)
            } else if known.iter().any(|known| known.split_once('#').is_some_and(|(known, _)| known == name)) {
                Err(Error::SegmentDiffers { segment: name.to_owned() })
            } else {
                known.insert(segment.text.clone());
                new.push(segment);
                Ok(Taken::New(segment.rows))
            };
            outcomes.push((segment.at, outcome));
        }
        if new.is_empty() {
            return Ok(outcomes);
        }
        let touched = touched(&snapshot, stream, new.iter().flat_map(|opened| opened.days.values())).await?;
        let change = Change {
            add: files(&new),
            notes: BTreeMap::from([(NOTE.to_owned(), touched.to_note())]),
            ..Change::default()
        };
        if let Outcome::Landed = store.commit(&snapshot, change).await? {
            return Ok(outcomes);
        }
        pause(attempt).await;
    }
    Err(Error::LostRace { table: table.name, tries: TRIES })
}

/// One file a day, with the rows of all segments of that day: who reads a day opens few files, however many nodes told of it.
fn files(segments: &[&Opened]) -> Vec<NewFile> {
    let mut by_day: BTreeMap<i32, Vec<RecordBatch>> = BTreeMap::new();
    for segment in segments {
        for (day, rows) in &segment.days {
            by_day.entry(*day).or_default().push(telemetry::batch(rows, &segment.text));
        }
    }
    let of_day = |(day, batches): (i32, Vec<RecordBatch>)| {
        NewFile::new(Some(day), move || {
            concat_batches(&batches[0].schema(), &batches).expect("batches of one stream have one schema")
        })
    };
    by_day.into_iter().map(of_day).collect()
}

/// The segments that have rows on some days.
async fn known_segments(snapshot: &Snapshot, days: &BTreeSet<i32>) -> Result<HashSet<String>, Error> {
    let of_days = |day: Option<i32>| day.is_none_or(|day| days.contains(&day));
    let mut known = HashSet::new();
    for (_, batches) in snapshot.read(|file| of_days(file.day), Some(&[SEGMENT]), &[SEGMENT]).await? {
        for batch in &batches {
            telemetry::segments(snapshot.table.name, batch, &mut known)?;
        }
    }
    Ok(known)
}

/// Days whose books may change by the rows of new segments. Holdings that change by them are found when they are worked out.
pub(crate) async fn touched<'r>(
    snapshot: &Snapshot,
    stream: Stream,
    new: impl Iterator<Item = &'r Rows>,
) -> Result<Touched, Error> {
    let mut touched = Touched::default();
    let known = if stream == Stream::Devices { known_devices(snapshot).await? } else { HashMap::new() };
    for rows in new {
        match rows {
            // Whether a card was idle shows over half an hour, which may lie on two days.
            Rows::Samples(rows) => rows.iter().for_each(|row| touched.near(row.during)),
            Rows::Activity(rows) => rows.iter().for_each(|row| touched.near(row.during)),
            Rows::Observations(rows) => rows.iter().for_each(|row| touched.usage.extend(row.during.utc_days())),
            Rows::Watches(rows) => rows.iter().for_each(|row| touched.usage.extend(row.during.utc_days())),
            Rows::Devices(rows) => {
                // A new card serves from then on, to the end of the books; one that is told of again changes nothing, unless it was there earlier
                // than was known.
                let is_known =
                    |row: &SeenDevice| known.get(&DeviceFacts::of(row)).is_some_and(|first| *first <= row.at);
                touched.all |= !rows.iter().all(is_known);
            }
            Rows::Events(rows) => {
                let counts = |kind| matches!(kind, EventKind::CardLost | EventKind::CardFound);
                touched.all |= rows.iter().any(|row| counts(row.kind));
            }
        }
    }
    Ok(touched)
}

impl Touched {
    /// The days of a stretch and those beside it.
    fn near(&mut self, during: Interval) {
        let days = during.utc_days();
        self.usage.extend(days.start() - 1..=days.end() + 1);
    }
}

/// What of a device the books depend on.
#[derive(PartialEq, Eq, Hash)]
struct DeviceFacts(Name, Name, Name, Name, Option<Name>, Option<i64>, Option<Name>, i64, Option<i64>);

impl DeviceFacts {
    fn of(device: &SeenDevice) -> Self {
        Self(
            device.cluster.clone(),
            device.node.clone(),
            device.card_uuid.clone(),
            device.device_uuid.clone(),
            device.model.clone(),
            device.memory_bytes,
            device.mig_profile.clone(),
            device.share.parts(),
            device.power_limit_mw,
        )
    }
}

/// What is known of devices, and since when.
async fn known_devices(snapshot: &Snapshot) -> Result<HashMap<DeviceFacts, Timestamp>, Error> {
    let mut known = HashMap::new();
    for (_, batches) in snapshot.read(|_| true, None, &[]).await? {
        for batch in &batches {
            if let Rows::Devices(rows) = telemetry::rows(Stream::Devices, batch)? {
                for row in &rows {
                    let first = known.entry(DeviceFacts::of(row)).or_insert(row.at);
                    *first = (*first).min(row.at);
                }
            }
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests;
