//! Takes facts in, exactly once.
//!
//! What is already known is decided on the snapshot that the commit is checked against: whoever loses a race looks again. The version rules
//! are `cardhour_books::versions`; this file finds what stands, calls them, and stores what came back.

use crate::Error;
use crate::closed::Closed;
use crate::columns::Interned;
use crate::derive::{TRIES, pause};
use crate::facts::FreshJobs;
use crate::files::parallel_small;
use crate::ledger::Booked;
use crate::store::{Change, FileView, NewFile, Outcome, Snapshot, Store};
use crate::tables::closings::Closing;
use crate::tables::frozen::CLOSED_COSTS;
use crate::tables::jobs::{HISTORY, JOBS, VERSION_COLUMNS};
use crate::tables::{self, Table, jobs};
use crate::touched::{NOTE, Touched};
use arrow::record_batch::RecordBatch;
use cardhour_books::attempt::{Attempt, Rejected};
use cardhour_books::holdings::{Claim, held_during};
use cardhour_books::output::Output;
use cardhour_books::site::{Coverage, Node, Outage, Reservation};
use cardhour_books::split::loses_work;
use cardhour_books::statement::CostItem;
use cardhour_books::versions::{ContentHash, Version, Versioned, resolve};
use cardhour_domain::{AttemptKey, Interval, Timestamp};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Puts rows that could not be booked into quarantine; those that are there stay as they are. Gives how many came.
pub(crate) async fn quarantine(store: &Store, file: &str, rejected: Vec<Rejected>) -> Result<u64, Error> {
    let table = &tables::quarantine::QUARANTINE;
    if rejected.is_empty() {
        return Ok(0);
    }
    let came = rejected.len() as u64;
    let mut hashed: Vec<(String, Rejected)> =
        rejected.into_iter().map(|row| (tables::quarantine::hash(&row), row)).collect();
    hashed.sort();
    hashed.dedup_by(|a, b| a.0 == b.0);
    for attempt in 0..TRIES {
        let snapshot = store.open_or_create(table).await?;
        let mut known = HashSet::new();
        for (_, batches) in snapshot.read(|_| true, Some(&["content_hash"]), &[]).await? {
            for batch in batches {
                tables::quarantine::hashes(&batch, &mut known)?;
            }
        }
        let new: Vec<(String, Rejected)> = hashed.iter().filter(|(hash, _)| !known.contains(hash)).cloned().collect();
        if new.is_empty() {
            return Ok(came);
        }
        let add = vec![NewFile::of(None, tables::quarantine::batch(file, &new))];
        if let Outcome::Landed = store.commit(&snapshot, Change { add, ..Change::default() }).await? {
            return Ok(came);
        }
        pause(attempt).await;
    }
    Err(Error::LostRace { table: table.name, tries: TRIES })
}

/// Books attempts: the version that stands into `jobs`, the others into `jobs_history`.
///
/// Also gives what it wrote, for whoever derives books from it next.
pub(crate) async fn jobs(store: &Store, attempts: Vec<Arc<Attempt>>) -> Result<(Booked, FreshJobs), Error> {
    let incoming = versioned(attempts).await;
    for attempt in 0..TRIES {
        let snapshot = store.open_or_create(&JOBS).await?;
        let standing = standing(&snapshot).await?;
        let flat = standing.iter().flat_map(|(_, rows)| rows.iter().map(|(key, version)| (key.as_str(), *version)));
        let resolution = resolve(flat, &incoming);
        let booked = Booked {
            booked: (resolution.stand.len() - resolution.renewed.len()) as u64,
            unchanged: resolution.unchanged,
            superseded: (resolution.lost.len() + resolution.displaced.len() - resolution.renewed.len()) as u64,
            quarantined: 0,
        };
        let displaced: HashSet<AttemptKey> = resolution.displaced.into_iter().collect();
        let hit: Vec<FileView> = standing
            .into_iter()
            .filter(|(_, rows)| rows.iter().any(|(key, _)| displaced.contains(&AttemptKey::from_stored(key))))
            .map(|(file, _)| file)
            .collect();
        let (kept, given_way) = split(&snapshot, &hit, &displaced).await?;
        let mut history = resolution.lost;
        let renewed: HashSet<AttemptKey> = resolution.renewed.into_iter().collect();
        history.extend(given_way.iter().filter(|(attempt, _)| !renewed.contains(&attempt.key)).cloned());
        add_history(store, history).await?;
        if resolution.stand.is_empty() && hit.is_empty() {
            return Ok((booked, FreshJobs::default()));
        }
        let touched = touched(&given_way, &resolution.stand);
        let (add, fresh) = by_day(kept.into_iter().chain(resolution.stand));
        let change = Change {
            add,
            remove: hit,
            notes: BTreeMap::from([(NOTE.to_owned(), touched.to_note())]),
            ..Change::default()
        };
        if let Outcome::Landed = store.commit(&snapshot, change).await? {
            return Ok((booked, fresh));
        }
        pause(attempt).await;
    }
    Err(Error::LostRace { table: JOBS.name, tries: TRIES })
}

type Standing = Vec<(FileView, Vec<(String, Version)>)>;

/// Key and version of everything that stands, by file.
async fn standing(snapshot: &Snapshot) -> Result<Standing, Error> {
    let read = |batches: Vec<RecordBatch>| {
        let mut out = Vec::new();
        for batch in &batches {
            out.extend(jobs::versions(batch)?);
        }
        Ok(out)
    };
    snapshot.read_with(snapshot.files.clone(), Some(VERSION_COLUMNS), &[], read).await
}

/// The rows of files that are hit: those that stay, and those that give way.
async fn split(
    snapshot: &Snapshot,
    hit: &[FileView],
    displaced: &HashSet<AttemptKey>,
) -> Result<(Vec<Versioned>, Vec<Versioned>), Error> {
    let paths: HashSet<&str> = hit.iter().map(|file| file.path.as_str()).collect();
    let mut names = Interned::default();
    let (mut kept, mut given_way) = (Vec::new(), Vec::new());
    for (_, batches) in snapshot.read(|file| paths.contains(file.path.as_str()), None, &[]).await? {
        for batch in batches {
            for row in jobs::rows(&batch, &mut names)? {
                if displaced.contains(&row.0.key) { given_way.push(row) } else { kept.push(row) }
            }
        }
    }
    Ok((kept, given_way))
}

/// The version that each attempt is, worked out on all cores.
async fn versioned(attempts: Vec<Arc<Attempt>>) -> Vec<Versioned> {
    let of = |attempt: Arc<Attempt>| {
        let version = Version::of(&attempt);
        (attempt, version)
    };
    tokio::task::spawn_blocking(move || parallel_small(attempts, of)).await.expect("digests don't panic")
}

/// One file a day, and what is in each.
fn by_day(rows: impl Iterator<Item = Versioned>) -> (Vec<NewFile>, FreshJobs) {
    let mut by_day: BTreeMap<i32, Vec<Versioned>> = BTreeMap::new();
    for row in rows {
        by_day.entry(jobs::day(&row.0)).or_default().push(row);
    }
    let mut fresh = FreshJobs::default();
    let files = by_day.into_iter().map(|(day, rows)| {
        let rows = Arc::new(rows);
        let file = NewFile::new(Some(day), {
            let rows = rows.clone();
            move || jobs::batch(&rows)
        });
        fresh.by_path.insert(file.path.clone(), rows);
        file
    });
    (files.collect(), fresh)
}

/// Appends versions that lost, each once.
async fn add_history(store: &Store, rows: Vec<Versioned>) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    for attempt in 0..TRIES {
        let snapshot = store.open_or_create(&HISTORY).await?;
        let known: HashSet<(String, ContentHash)> = standing(&snapshot)
            .await?
            .into_iter()
            .flat_map(|(_, rows)| rows)
            .map(|(key, version)| (key, version.content))
            .collect();
        let mut seen = HashSet::new();
        let is_new = |row: &&Versioned| {
            let id = (row.0.key.as_str().to_owned(), row.1.content);
            !known.contains(&id) && seen.insert(id)
        };
        let (add, _) = by_day(rows.iter().filter(is_new).cloned());
        if add.is_empty() {
            return Ok(());
        }
        let change = Change { add, ..Change::default() };
        if let Outcome::Landed = store.commit(&snapshot, change).await? {
            return Ok(());
        }
        pause(attempt).await;
    }
    Err(Error::LostRace { table: HISTORY.name, tries: TRIES })
}

/// Which days the change from the old rows to the new ones touches.
fn touched(old: &[Versioned], new: &[Versioned]) -> Touched {
    let mut touched = Touched::default();
    let (mut starts, mut usage) = (FxHashSet::default(), FxHashSet::default());
    let held = |row: &Versioned| held_during(&row.0).is_some();
    let mut before: HashMap<&AttemptKey, &Attempt> =
        old.iter().filter(|row| held(row)).map(|(attempt, _)| (&attempt.key, &**attempt)).collect();
    for (after, _) in new {
        let Some(during) = held_during(after) else { continue };
        let Some((old, then)) = before.remove(&after.key).and_then(|old| Some((old, Claim::of(old)?))) else {
            // The same days over and over: a tree would be asked for each of them.
            starts.insert(during.start().utc_day());
            usage.extend(during.utc_days());
            continue;
        };
        if then.during.start() != during.start() {
            touched.holding(then.during, then.during);
            touched.holding(during, during);
            continue;
        }
        // The same holding that only goes on longer, or ended earlier: the difference alone.
        let ends = (then.during.end().min(during.end()), then.during.end().max(during.end()));
        let now = Claim::of(after);
        let is_open = now.as_ref().is_some_and(|now| now.is_open);
        let same = Claim { during, is_open, ..then };
        // How it ended and its class say what its time went into, on every day of it.
        let is_same = now == Some(same) && loses_work(old.state) == loses_work(after.state) && old.class == after.class;
        let changed = Interval::new(if is_same { ends.0 } else { during.start() }, ends.1);
        if let Some(changed) = changed {
            touched.holding(during, changed);
        }
    }
    for then in before.into_values().filter_map(held_during) {
        touched.holding(then, then);
    }
    touched.starts.extend(starts);
    touched.usage.extend(usage);
    touched
}

/// Books what exports cover.
pub(crate) async fn coverage(store: &Store, coverage: Vec<Coverage>) -> Result<(), Error> {
    let table = &tables::coverage::COVERAGE;
    for attempt in 0..TRIES {
        let snapshot = store.open_or_create(table).await?;
        let known: BTreeSet<Coverage> = all(&snapshot, tables::coverage::rows).await?.into_iter().collect();
        let new: Vec<Coverage> = coverage.iter().filter(|c| !known.contains(c)).cloned().collect();
        let Some((first, rest)) = new.split_first() else { return Ok(()) };
        let mut touched = Touched::default();
        for new in std::iter::once(first).chain(rest) {
            let before = known.iter().filter(|known| known.cluster == new.cluster).map(|known| known.covers);
            touched.usage.extend(uncovered_days(new.covers, before));
        }
        let change = Change {
            add: vec![NewFile::of(None, tables::coverage::batch(&new))],
            notes: BTreeMap::from([(NOTE.to_owned(), touched.to_note())]),
            ..Change::default()
        };
        if let Outcome::Landed = store.commit(&snapshot, change).await? {
            return Ok(());
        }
        pause(attempt).await;
    }
    Err(Error::LostRace { table: table.name, tries: TRIES })
}

/// Days of `covers` that were not covered before, whole.
fn uncovered_days(covers: Interval, before: impl Iterator<Item = Interval>) -> Vec<i32> {
    let before = Interval::union(before.collect());
    let whole =
        |day: i32| Interval::new(Timestamp::from_utc_day(day), Timestamp::from_utc_day(day + 1)).expect("a day");
    covers
        .utc_days()
        .filter(|day| {
            let part = covers.overlap(whole(*day));
            part.is_some_and(|part| !before.iter().any(|known| known.overlap(part) == Some(part)))
        })
        .collect()
}

/// Books nodes.
pub(crate) async fn nodes(store: &Store, nodes: Vec<Node>) -> Result<Booked, Error> {
    let key = |n: &Node| (n.cluster.clone(), n.node.clone(), n.in_service_at);
    let touches = |_: &Node, touched: &mut Touched| touched.all = true;
    upsert(store, &tables::nodes::NODES, nodes, key, touches, tables::nodes::rows, tables::nodes::batch).await
}

/// Books reservations.
pub(crate) async fn reservations(store: &Store, reservations: Vec<Reservation>) -> Result<Booked, Error> {
    use tables::reservations::{RESERVATIONS, batch, rows};
    let key = |r: &Reservation| (r.cluster.clone(), r.name.clone(), r.during.start());
    let touches = |r: &Reservation, touched: &mut Touched| touched.usage.extend(r.during.utc_days());
    upsert(store, &RESERVATIONS, reservations, key, touches, rows, batch).await
}

/// Books outages.
pub(crate) async fn outages(store: &Store, outages: Vec<Outage>) -> Result<Booked, Error> {
    use tables::outages::{OUTAGES, batch, rows};
    let key = |o: &Outage| (o.cluster.clone(), o.during.start(), o.nodes.clone());
    let touches = |o: &Outage, touched: &mut Touched| touched.usage.extend(o.during.utc_days());
    upsert(store, &OUTAGES, outages, key, touches, rows, batch).await
}

/// Books cost items. Nothing is derived from them.
pub(crate) async fn costs(store: &Store, costs: Vec<CostItem>) -> Result<Booked, Error> {
    use tables::costs::{COSTS, batch, rows};
    let key = |item: &CostItem| {
        let CostItem { month, name, org, project, user, cluster, pool, model, .. } = item.clone();
        (month, name, [org, project, user, cluster, pool, model])
    };
    upsert(store, &COSTS, costs, key, |_, _| {}, rows, batch).await
}

/// Books what jobs brought forth. Nothing is derived from it.
pub(crate) async fn outputs(store: &Store, outputs: Vec<Output>) -> Result<Booked, Error> {
    use tables::outputs::{OUTPUTS, batch, rows};
    let key = |output: &Output| (output.of.clone(), output.unit.clone(), output.at);
    upsert(store, &OUTPUTS, outputs, key, |_, _| {}, rows, batch).await
}

/// All that jobs brought forth, in order. Empty where nobody said.
pub(crate) async fn all_outputs(store: &Store) -> Result<Vec<Output>, Error> {
    let Some(snapshot) = store.open(&tables::outputs::OUTPUTS).await? else { return Ok(Vec::new()) };
    let mut outputs = all(&snapshot, tables::outputs::rows).await?;
    outputs.sort();
    Ok(outputs)
}

/// The cost items of all months. Empty where there are none.
pub(crate) async fn all_costs(store: &Store) -> Result<Vec<CostItem>, Error> {
    let Some(snapshot) = store.open(&tables::costs::COSTS).await? else { return Ok(Vec::new()) };
    all(&snapshot, tables::costs::rows).await
}

/// The cost items that a closing froze, in order.
pub(crate) async fn frozen_costs(store: &Store, closing: &Closing) -> Result<Vec<CostItem>, Error> {
    let Some(snapshot) = store.open(&CLOSED_COSTS).await? else {
        return closing.check_rows(CLOSED_COSTS.name, 0).map(|()| Vec::new());
    };
    let files = Closed::files(&snapshot, closing);
    let (mut names, mut costs) = (Interned::default(), Vec::new());
    for (_, batches) in snapshot.read_with(files, None, &[], Ok).await? {
        for batch in &batches {
            costs.extend(tables::costs::rows(batch, &mut names)?);
        }
    }
    closing.check_rows(CLOSED_COSTS.name, costs.len())?;
    costs.sort();
    Ok(costs)
}

async fn all<T>(
    snapshot: &Snapshot,
    rows: impl Fn(&RecordBatch, &mut Interned) -> Result<Vec<T>, Error>,
) -> Result<Vec<T>, Error> {
    let mut names = Interned::default();
    let mut out = Vec::new();
    for (_, batches) in snapshot.read(|_| true, None, &[]).await? {
        for batch in &batches {
            out.extend(rows(batch, &mut names)?);
        }
    }
    Ok(out)
}

/// Replaces rows of a small table by key, all in one commit; nothing changes, nothing is committed.
async fn upsert<T: Clone + PartialEq, K: Ord>(
    store: &Store,
    table: &Table,
    incoming: Vec<T>,
    key: impl Fn(&T) -> K,
    touches: impl Fn(&T, &mut Touched),
    rows: impl Fn(&RecordBatch, &mut Interned) -> Result<Vec<T>, Error>,
    batch: impl Fn(&[T]) -> RecordBatch,
) -> Result<Booked, Error> {
    for attempt in 0..TRIES {
        let snapshot = store.open_or_create(table).await?;
        let mut standing: BTreeMap<K, T> =
            all(&snapshot, &rows).await?.into_iter().map(|row| (key(&row), row)).collect();
        let mut touched = Touched::default();
        let mut booked = Booked::default();
        for row in &incoming {
            match standing.insert(key(row), row.clone()) {
                Some(old) if old == *row => booked.unchanged += 1,
                old => {
                    touches(row, &mut touched);
                    booked.booked += 1;
                    if let Some(old) = old {
                        touches(&old, &mut touched);
                        booked.superseded += 1;
                    }
                }
            }
        }
        if booked.booked == 0 {
            return Ok(booked);
        }
        let standing: Vec<T> = standing.into_values().collect();
        let change = Change {
            add: vec![NewFile::of(None, batch(&standing))],
            remove: snapshot.files.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(from: i64, to: i64) -> Interval {
        Interval::new(Timestamp::from_unix_s(from * 3600), Timestamp::from_unix_s(to * 3600)).unwrap()
    }

    #[test]
    fn only_days_that_were_not_covered_are_touched() {
        assert_eq!(uncovered_days(hours(0, 72), [hours(0, 24), hours(30, 48)].into_iter()), [1, 2]);
        assert!(uncovered_days(hours(3, 20), [hours(0, 10), hours(10, 24)].into_iter()).is_empty());
    }
}
