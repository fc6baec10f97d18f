//! Brings holdings, usage and conflicts up to the facts.
//!
//! Every derived commit remembers which version of each fact table it was made from. What lags is worked out again: the days that the facts'
//! commits noted since, from all that overlaps them, replaced whole in one commit a table. `usage` is committed last, so that it says
//! whether everything is done; a kill in between leaves work that the next command does again, to the same rows.
//!
//! Start at [`catch_up`].

mod changed;
mod used;

use crate::Error;
use crate::facts::{Facts, FreshJobs};
use crate::files::{drop_aside, parallel, parallel_small};
use crate::store::{Change, NewFile, Outcome, Snapshot, Store};
use crate::tables::conflicts::{CONFLICTS, Conflict};
use crate::tables::gaps::GAPS;
use crate::tables::holdings::HOLDINGS;
use crate::tables::observed_jobs::{self, OBSERVED_JOBS};
use crate::tables::usage::USAGE;
use crate::tables::{conflicts, gaps, holdings, usage};
use crate::touched::{NOTE, Touched};
use cardhour_books::cluster::{Cluster, Frame, Grouping, Place};
use cardhour_books::gaps::{Unseen, presences, unwatched};
use cardhour_books::holdings::{Claim, Holding, ShareCut};
use cardhour_books::observed::{self, Difference, Joined, Seen};
use cardhour_books::usage::Usage;
use cardhour_domain::{Interval, Name, Stream, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
pub(crate) use used::DayUse;
use used::Told;

/// How often a lost race is run again before somebody is told.
pub(crate) const TRIES: u32 = 60;

/// Brings the derived tables up to the newest facts; does nothing when they are.
///
/// `fresh`: what of the facts need not be read.
pub(crate) async fn catch_up(store: &Store, fresh: &FreshJobs) -> Result<(), Error> {
    for attempt in 0..TRIES {
        // In this order: what usage was made from was there before it.
        let books = store.open_or_create(&USAGE).await?;
        let facts = Facts::load(store).await?;
        for (name, version) in facts.marks() {
            if let Some(seen) = books.mark(&name).await?.filter(|seen| *seen > version) {
                let what = format!(
                    "its log ends at version {version}, and usage was made from version {seen}: part of the ledger's folder is missing or \
                     was put back from an older copy; put all of it back, or make a new ledger and import again"
                );
                return Err(Error::damaged(&name, what));
            }
        }
        let mut touched = touched(&facts, &books).await?;
        if facts.told(Stream::Devices).is_some() && store.open(&GAPS).await?.is_none() {
            // An earlier landing's ledger has none yet.
            touched.get_or_insert_default().merge(Touched::everything());
        }
        let Some(touched) = touched else { return Ok(()) };
        if rebuild(store, &facts, fresh, books, touched).await? {
            return Ok(());
        }
        pause(attempt).await;
    }
    Err(Error::LostRace { table: USAGE.name, tries: TRIES })
}

/// Whether usage was made from exactly these facts.
pub(crate) async fn is_current(facts: &Facts, usage: &Snapshot) -> Result<bool, Error> {
    for (name, version) in facts.marks() {
        if usage.mark(&name).await? != Some(version) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A short, growing wait, different for each process, so that two that race don't meet again.
pub(crate) async fn pause(attempt: u32) {
    let spread = u64::from(std::process::id()) % 7 + 1;
    let ms = (5 + spread) * u64::from(attempt.min(20) + 1);
    tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
}

/// What changed since usage was made; none when nothing did.
async fn touched(facts: &Facts, books: &Snapshot) -> Result<Option<Touched>, Error> {
    let mut all = Touched::default();
    let mut behind = false;
    for snapshot in facts.all() {
        let seen = books.mark(snapshot.table.name).await?;
        let Some(seen) = seen else {
            behind = true;
            // A table of which usage has never heard: everything in it is new, nothing when it is empty.
            if !snapshot.files.is_empty() {
                all.merge(Touched::everything());
            }
            continue;
        };
        let since = snapshot.version() - seen;
        if since <= 0 {
            continue;
        }
        behind = true;
        let notes = snapshot.notes(usize::try_from(since).expect("above zero")).await?;
        if i64::try_from(notes.len()).expect("few") < since {
            all.merge(Touched::everything());
        }
        for note in notes {
            all.merge(Touched::from_note(note.get(NOTE)));
        }
    }
    Ok(behind.then_some(all))
}

/// Works out the touched days and commits them. False when others were faster: look again.
async fn rebuild(
    store: &Store,
    facts: &Facts,
    fresh: &FreshJobs,
    books: Snapshot,
    mut touched: Touched,
) -> Result<bool, Error> {
    let marks = facts.marks();
    if touched == Touched::default() {
        // Rows of facts that only lie in other files: what was made of them stands, and has to know their new version.
        let of_nodes = store.open(&OBSERVED_JOBS).await?.map(|_| &OBSERVED_JOBS);
        let gaps = store.open(&GAPS).await?.map(|_| &GAPS);
        for table in [&HOLDINGS, &CONFLICTS].into_iter().chain(of_nodes).chain(gaps).chain([&USAGE]) {
            let old = store.open_or_create(table).await?;
            let change = Change { marks: marks.clone(), ..Change::default() };
            if !commit_unless_newer(store, old, change, &marks).await? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    let everything = touched.all || books.files.is_empty();
    let seen = facts.seen().await?;
    let clusters = facts.clusters(seen.as_ref()).await?;
    let with_capacity = clusters.values().any(|cluster| !cluster.nodes.is_empty());
    // The grouping of a cluster rests on all its rows, and whom a node saw on its record; without either only what overlaps the days matters.
    let whole = everything || with_capacity || seen.is_some();
    let (from, to) =
        if whole { (Timestamp::from_unix_ms(i64::MIN), Timestamp::from_unix_ms(i64::MAX)) } else { hull(&touched) };
    let claims = facts.claims(from, to, fresh).await?;
    let (mut joined, seen) = joined(claims, seen).await;
    let claims = std::mem::take(&mut joined.claims);
    let framed = framed(clusters, &claims);
    let old_files: BTreeSet<i32> = books.files.iter().filter_map(|file| file.day).collect();
    let frames = frame_marks(&framed);
    if everything {
        touched = all_days(&framed, &claims);
        touched.usage.extend(&old_files);
    } else {
        touch_moved_frames(&books, &framed, &frames, &mut touched).await?;
    }
    if claims.iter().any(|claim| claim.card_uuid.is_some()) {
        // Holders of a named card cut each other's holdings anywhere along their time.
        touched.starts = all_days(&framed, &claims).starts;
    }
    let (held, framed) =
        tokio::task::spawn_blocking(move || (all_holdings(claims), framed)).await.expect("does not panic");
    let old_holdings = store.open_or_create(&HOLDINGS).await?;
    if seen.is_some() && !everything {
        // What nodes told may change a holding days before: a hole is bridged, a record gets its cards.
        touched.usage.extend(changed::days(&old_holdings, &held.0).await?);
    }
    let told = match &seen {
        Some(_) => Some(Told::load(facts, &touched.usage, &joined).await?),
        None => None,
    };
    let spans = spans(&touched.usage);
    let (starts, everything_held) = (touched.starts.clone(), everything);
    let days = touched.usage.clone();
    let Joined { differences, attempts: observed, .. } = joined;
    let is_seen = seen.is_some();
    let work = move || {
        let mut worked = work_out(&framed, held, &differences, &spans);
        if let Some((told, seen)) = told.zip(seen) {
            worked.look_at_use(&told, &seen, &framed, &days);
        }
        worked
    };
    let worked = tokio::task::spawn_blocking(work).await.expect("does not panic");

    let worked = Arc::new(worked);
    let mut usage_marks = marks.clone();
    usage_marks.extend(frames);
    let change = replace(&books, |day| touched.usage.contains(&day), usage_by_day(&worked), usage_marks);
    let smaller = async {
        let keep_starts = |day: i32| everything_held || starts.contains(&day);
        let change =
            replace(&old_holdings, keep_starts, holdings_by_day(&worked, &starts, everything_held), marks.clone());
        if !commit_unless_newer(store, old_holdings, change, &marks).await? {
            return Ok(false);
        }
        if is_seen {
            let old = store.open_or_create(&OBSERVED_JOBS).await?;
            let file = (!observed.is_empty()).then(|| NewFile::of(None, observed_jobs::batch(&observed)));
            let add = Vec::from_iter(file);
            let change = Change { remove: old.files.clone(), add, marks: marks.clone(), ..Change::default() };
            if !commit_unless_newer(store, old, change, &marks).await? {
                return Ok(false);
            }
        }
        if is_seen {
            let old = store.open_or_create(&GAPS).await?;
            let change = replace(&old, |day| touched.usage.contains(&day), gaps_by_day(&worked), marks.clone());
            if !commit_unless_newer(store, old, change, &marks).await? {
                return Ok(false);
            }
        }
        let old = store.open_or_create(&CONFLICTS).await?;
        let change =
            replace(&old, |day| touched.usage.contains(&day), worked.conflicts_by_day(&touched.usage), marks.clone());
        commit_unless_newer(store, old, change, &marks).await
    };
    // Usage is most of the work: its files are written while the smaller tables are committed. It lands last.
    let (usage, smaller_landed) = futures::future::try_join(store.write(&books, change), smaller).await?;
    drop_aside(worked);
    if !smaller_landed || is_newer(&books, &marks).await? {
        return Ok(false);
    }
    Ok(matches!(store.land(&books, usage).await?, Outcome::Landed))
}

/// Everything the touched days hold.
struct Worked {
    holdings: Vec<Holding>,
    places: Vec<Place>,
    conflicts: Vec<Conflict>,
    usage: Usage,
    /// By day, where nodes said something.
    used: BTreeMap<i32, DayUse>,
    /// By day, what nobody saw of it.
    gaps: BTreeMap<i32, Vec<Unseen>>,
}

/// Claims of records and what nodes saw, joined. Gives back what was seen.
async fn joined(claims: Vec<Claim>, seen: Option<Seen>) -> (Joined, Option<Seen>) {
    let Some(seen) = seen else { return (Joined { claims, ..Joined::default() }, None) };
    let join = move || (observed::join(claims, &seen), Some(seen));
    tokio::task::spawn_blocking(join).await.expect("does not panic")
}

fn work_out(
    framed: &BTreeMap<Name, (Cluster, Frame)>,
    (holdings, cuts): (Vec<Holding>, Vec<ShareCut>),
    differences: &[Difference],
    spans: &[Interval],
) -> Worked {
    let places = cardhour_books::usage::places(framed, &holdings);
    let mut usage = cardhour_books::usage::usage(framed, &holdings, spans);
    let mut conflicts: Vec<Conflict> = cuts.iter().flat_map(Conflict::share_cut).collect();
    conflicts.extend(differences.iter().flat_map(Conflict::difference));
    for day in usage.days.values_mut() {
        for (cluster, over) in day.over_capacity.drain(..) {
            conflicts.push(Conflict::over_capacity(cluster, over));
        }
    }
    Worked { holdings, places, conflicts, usage, used: BTreeMap::new(), gaps: BTreeMap::new() }
}

/// Holdings of all claims, on all cores: only those of one named card hang together.
fn all_holdings(claims: Vec<Claim>) -> (Vec<Holding>, Vec<ShareCut>) {
    if claims.iter().any(|claim| claim.card_uuid.is_some()) {
        return cardhour_books::holdings::holdings(claims);
    }
    (parallel_small(claims, Claim::whole), Vec::new())
}

impl Worked {
    fn look_at_use(
        &mut self,
        told: &Told,
        seen: &Seen,
        framed: &BTreeMap<Name, (Cluster, Frame)>,
        days: &BTreeSet<i32>,
    ) {
        let presences = presences(seen, framed);
        let of_day = |day: i32| {
            let (used, mut gaps) = told.of_day(day, &self.holdings, seen, &presences);
            gaps.extend(unwatched(&presences, seen, used::whole(day)));
            (day, used, gaps)
        };
        for (day, used, gaps) in parallel(days.iter().copied().collect(), of_day) {
            self.used.extend(used.map(|used| (day, used)));
            if !gaps.is_empty() {
                self.gaps.insert(day, gaps);
            }
        }
        for over in self.used.values().flat_map(|used| &used.split.over_share) {
            self.conflicts.push(Conflict::over_share(&self.holdings[over.holding as usize], over));
        }
    }

    fn conflicts_by_day(&self, days: &BTreeSet<i32>) -> Vec<NewFile> {
        let mut by_day: BTreeMap<i32, Vec<&Conflict>> = BTreeMap::new();
        for conflict in self.conflicts.iter().filter(|conflict| days.contains(&conflict.day())) {
            by_day.entry(conflict.day()).or_default().push(conflict);
        }
        by_day.into_iter().map(|(day, rows)| NewFile::of(Some(day), conflicts::batch(&rows))).collect()
    }
}

fn holdings_by_day(worked: &Arc<Worked>, starts: &BTreeSet<i32>, all: bool) -> Vec<NewFile> {
    let mut by_day: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
    for (index, holding) in worked.holdings.iter().enumerate() {
        let day = holding.during.start().utc_day();
        if all || starts.contains(&day) {
            by_day.entry(day).or_default().push(index);
        }
    }
    let of_day = |(day, rows): (i32, Vec<usize>)| {
        let worked = worked.clone();
        NewFile::new(Some(day), move || {
            let rows: Vec<_> = rows.iter().map(|&index| (&worked.holdings[index], &worked.places[index])).collect();
            holdings::batch(&rows)
        })
    };
    by_day.into_iter().map(of_day).collect()
}

fn gaps_by_day(worked: &Arc<Worked>) -> Vec<NewFile> {
    let of_day = |&day: &i32| {
        let worked = worked.clone();
        NewFile::new(Some(day), move || gaps::batch(&worked.gaps[&day]))
    };
    worked.gaps.keys().map(of_day).collect()
}

fn usage_by_day(worked: &Arc<Worked>) -> Vec<NewFile> {
    let days = worked.usage.days.iter().filter(|(_, day)| !day.holdings.is_empty() || !day.states.is_empty());
    let of_day = |(&day, _)| {
        let worked = worked.clone();
        NewFile::new(Some(day), move || {
            let held = worked.usage.held(day, &worked.holdings);
            let used = worked.used.get(&day);
            usage::batch(&held, &worked.usage.days[&day].states, &worked.holdings, &worked.places, used)
        })
    };
    days.map(of_day).collect()
}

/// A change that replaces whole days.
fn replace(old: &Snapshot, replaced: impl Fn(i32) -> bool, add: Vec<NewFile>, marks: BTreeMap<String, i64>) -> Change {
    Change {
        remove: old.files.iter().filter(|file| file.day.is_some_and(&replaced)).cloned().collect(),
        add,
        marks,
        ..Change::default()
    }
}

/// Commits a derived change, unless the table was already made from newer facts. False then, and when a race was lost.
async fn commit_unless_newer(
    store: &Store,
    old: Snapshot,
    change: Change,
    marks: &BTreeMap<String, i64>,
) -> Result<bool, Error> {
    if is_newer(&old, marks).await? {
        return Ok(false);
    }
    Ok(matches!(store.commit(&old, change).await?, Outcome::Landed))
}

/// Whether a derived table was made from newer facts than these.
async fn is_newer(old: &Snapshot, marks: &BTreeMap<String, i64>) -> Result<bool, Error> {
    for (name, version) in marks {
        if old.mark(name).await?.is_some_and(|theirs| theirs > *version) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn framed(clusters: BTreeMap<Name, Cluster>, claims: &[Claim]) -> BTreeMap<Name, (Cluster, Frame)> {
    let mut by_cluster: BTreeMap<&Name, Vec<&Claim>> = BTreeMap::new();
    for claim in claims {
        by_cluster.entry(&claim.cluster).or_default().push(claim);
    }
    clusters
        .into_iter()
        .map(|(name, cluster)| {
            let of_cluster = by_cluster.get(&name).map(Vec::as_slice).unwrap_or_default();
            let frame = cluster.frame(of_cluster.iter().copied());
            (name, (cluster, frame))
        })
        .collect()
}

/// A frame's three numbers, as usage remembers them: so that a later look sees what moved.
fn frame_marks(framed: &BTreeMap<Name, (Cluster, Frame)>) -> BTreeMap<String, i64> {
    let mut marks = BTreeMap::new();
    for (name, (_, frame)) in framed.iter().filter(|(_, (cluster, _))| !cluster.nodes.is_empty()) {
        let grouping = match frame.grouping {
            Grouping::Node => 1,
            Grouping::Model => 2,
            Grouping::Cluster => 3,
        };
        marks.insert(format!("frame/{name}/grouping"), grouping);
        if let Some(from) = frame.serves_from {
            marks.insert(format!("frame/{name}/serves_from"), from.unix_ms());
        }
        if let Some(horizon) = frame.horizon {
            marks.insert(format!("frame/{name}/horizon"), horizon.unix_ms());
        }
    }
    marks
}

/// Adds the days over which a cluster's grouping, start or horizon moved since usage was made.
async fn touch_moved_frames(
    books: &Snapshot,
    framed: &BTreeMap<Name, (Cluster, Frame)>,
    marks: &BTreeMap<String, i64>,
    touched: &mut Touched,
) -> Result<(), Error> {
    for name in framed.keys() {
        let before = |part: &'static str| format!("frame/{name}/{part}");
        let (grouping, from, horizon) = (before("grouping"), before("serves_from"), before("horizon"));
        if marks.contains_key(&grouping) && books.mark(&grouping).await? != marks.get(&grouping).copied() {
            let (cluster, frame) = &framed[name];
            touched.usage.extend(cluster.nodes.iter().filter_map(|n| frame.service(n)).flat_map(Interval::utc_days));
        }
        for edge in [from, horizon] {
            let Some(now) = marks.get(&edge) else { continue };
            let then = books.mark(&edge).await?.unwrap_or(*now);
            let (a, b) = (Timestamp::from_unix_ms(then.min(*now)), Timestamp::from_unix_ms(then.max(*now)));
            touched.usage.extend(Interval::new(a, b).map(Interval::utc_days).into_iter().flatten());
        }
    }
    Ok(())
}

fn all_days(framed: &BTreeMap<Name, (Cluster, Frame)>, claims: &[Claim]) -> Touched {
    let mut touched = Touched::default();
    for claim in claims {
        touched.holding(claim.during, claim.during);
    }
    if claims.iter().any(|claim| claim.card_uuid.is_some()) {
        touched.starts.extend(&touched.usage);
    }
    for (cluster, frame) in framed.values() {
        touched.usage.extend(cluster.nodes.iter().filter_map(|n| frame.service(n)).flat_map(Interval::utc_days));
    }
    touched
}

/// The stretch that holds every touched day.
fn hull(touched: &Touched) -> (Timestamp, Timestamp) {
    let days = || touched.usage.iter().chain(&touched.starts).copied();
    let (first, last) = (days().min().unwrap_or(0), days().max().unwrap_or(0));
    (Timestamp::from_utc_day(first), Timestamp::from_utc_day(last + 1))
}

/// Days as stretches that don't touch.
fn spans(days: &BTreeSet<i32>) -> Vec<Interval> {
    let day = |day: &i32| Interval::new(Timestamp::from_utc_day(*day), Timestamp::from_utc_day(*day + 1));
    Interval::union(days.iter().filter_map(day).collect())
}
