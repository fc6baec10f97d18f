//! The books of one moment, and what reports are made of.
//!
//! Usage is folded file by file on all cores: rows of one holding lie together, so that a run of them becomes a few cells before anything is
//! looked up. Start at [`Reading::input`].

use crate::closed::Closed;
use crate::columns::{Interned, Rows, opt_instant, opt_long, opt_text};
use crate::facts::Facts;
use crate::store::{FileView, Snapshot, Store};
use crate::tables::frozen::{CLOSED_JOBS, CLOSED_USAGE};
use crate::tables::jobs::{JOBS, share};
use crate::tables::usage::USAGE;
use crate::tables::{jobs, reservations};
use crate::{Error, Ledger};
use arrow::array::{Array, Int32Array};
use arrow::record_batch::RecordBatch;
use cardhour_books::cell::{Cell, SeenBy, UsageFigures};
use cardhour_books::cluster::{Frame, Grouping, Groups};
use cardhour_books::inventory::list::{Stock, list};
use cardhour_books::report::{CapacityCell, ReportAttempt, ReportInput};
use cardhour_books::set_aside::SetAsides;
use cardhour_books::site::{Node, Reservation};
use cardhour_books::slots::Slots;
use cardhour_domain::{AttemptKey, CardShare, CardState, CardTime, Interval, JobState, Name, Timestamp};
use rust_decimal::Decimal;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// The books of one moment: usage that was made from exactly the facts beside it.
pub struct Reading {
    pub(crate) facts: Facts,
    pub(crate) usage: Snapshot,
    /// Attempts that only nodes know of; none where no node ever told anything.
    pub(crate) observed: Option<Snapshot>,
    /// Months that are closed; none where none is.
    pub(crate) closed: Option<Closed>,
    /// Where tables lie that no derived table is made from, such as costs.
    pub(crate) store: Store,
}

/// Columns of `jobs` that reports read.
const ATTEMPT_COLUMNS: &[&str] = &[
    "attempt_key",
    "cluster",
    "org",
    "project",
    "user",
    "queue",
    "class",
    "labels",
    "state",
    "submitted_at",
    "started_at",
    "ended_at",
    "as_of",
    "cards_requested",
    "share_parts",
];

/// Columns of `usage` that reports read: text that repeats.
const USAGE_TEXTS: &[&str] =
    &["attempt_key", "state", "cluster", "pool", "node", "model", "mig_profile", "reservation"];

/// Columns of `usage` that reports read: the others.
const USAGE_FIGURES: &[&str] = &[
    "bucket_start",
    "share_parts",
    "card_time",
    "billed_time",
    "effective",
    "underused",
    "idle",
    "lost",
    "unseen",
    "energy_mj",
    "use_basis",
];

impl Ledger {
    /// The newest books, after finishing what a killed import left undone.
    pub async fn read(&self) -> Result<Reading, Error> {
        self.consistent().await
    }
}

impl Reading {
    /// The time of all there is: from the first submit or bucket to the last. None of an empty ledger.
    pub fn extent(&self) -> Option<Interval> {
        let jobs = &self.facts.of(&JOBS).files;
        let edges = |name, files: &[FileView]| files.iter().filter_map(|f| f.bounds(name)).collect::<Vec<_>>();
        let mut all = edges("bucket_start", &self.usage.files);
        all.extend(edges("submitted_at", jobs));
        let start = all.iter().map(|(least, _)| *least).min()?;
        let end = all.iter().map(|(_, most)| *most).max()?;
        Interval::new(start, end.checked_add_ms(1)?)
    }

    /// What cards there are at `at`, by the lists of nodes and as collectors found them.
    pub async fn inventory(&self, at: Timestamp) -> Result<Vec<Stock>, Error> {
        let nodes: Vec<Node> =
            self.facts.clusters(None).await?.into_values().flat_map(|cluster| cluster.nodes).collect();
        let seen = self.facts.seen().await?.unwrap_or_default();
        Ok(list(&nodes, &seen, &self.facts.events().await?, at))
    }

    /// Attempts, folded usage and capacity of the time that `slots` covers: of closed months as they were closed, of others as they stand.
    pub async fn input(&self, slots: &Slots) -> Result<ReportInput, Error> {
        let covers = slots.covers();
        let closed = self.closed.as_ref().filter(|closed| closed.during.overlap(covers).is_some());
        let Some(closed) = closed else { return self.live_input(slots).await };
        let names = Arc::new(Mutex::new(Interned::default()));
        let mut attempts = Gathered::default();
        // Those that never held anything are counted where they were submitted, and there closed months have their own.
        let is_open = |attempt: &ReportAttempt| {
            !(attempt.never_held() && attempt.submitted_at.is_some_and(|at| closed.during.contains(at)))
        };
        attempts.add(None, self.attempts(covers, names.clone()).await?.into_iter().filter(is_open));
        for (i, closing) in (0..).zip(&closed.closings) {
            let during = closing.month.interval(slots.billing_zone());
            if during.overlap(covers).is_some() {
                let frozen = attempts_in(&closed.jobs, Closed::files(&closed.jobs, closing), names.clone()).await?;
                closing.check_rows(CLOSED_JOBS.name, frozen.len())?;
                attempts.add(Some(i), frozen.into_iter());
            }
        }
        let (attempts, mut indexes) = attempts.numbered();
        let live = indexes.remove(&None).unwrap_or_default();
        let (mut cells, mut capacity, mut reservations) = (Vec::new(), Vec::new(), Vec::new());
        let mut open = vec![covers];
        for (i, closing) in (0..).zip(&closed.closings) {
            let Some(during) = closing.month.interval(slots.billing_zone()).overlap(covers) else { continue };
            if let Some(clusters) = closed.nodes(closing).await? {
                for (name, (frame, nodes)) in &clusters {
                    capacity.extend(capacity_of(name, nodes, frame, slots, &[during]));
                }
                open = open.into_iter().flat_map(|piece| without(piece, during)).collect();
            }
            let known = match closed.reservations(closing).await? {
                Some(frozen) => frozen,
                // An earlier cardhour froze none.
                None => self.reservations_of(&[during]).await?,
            };
            let set_asides = numbered(&mut reservations, known);
            // A month in which nobody held anything has free cards all the same.
            let index = indexes.remove(&Some(i)).unwrap_or_default();
            let files = Closed::files(&closed.usage, closing);
            let found = Found { index, names: names.clone(), set_asides };
            let (frozen, rows) = cells_of(&closed.usage, files, slots, found, Part::All).await?;
            closing.check_rows(CLOSED_USAGE.name, rows)?;
            cells.extend(frozen);
        }
        let set_asides = numbered(&mut reservations, self.reservations_of(&open).await?);
        let found = Found { index: live, names, set_asides };
        let outside = Part::Outside(closed.during);
        cells.extend(cells_of(&self.usage, self.usage_files(covers), slots, found, outside).await?.0);
        if !open.is_empty() {
            capacity.extend(self.live_capacity(slots, &open).await?);
        }
        Ok(ReportInput { attempts, cells, capacity, reservations })
    }

    /// As [`Self::input`], but of all time as the facts of today have it, also where that isn't what a closed month was closed by.
    pub async fn live_input(&self, slots: &Slots) -> Result<ReportInput, Error> {
        let covers = slots.covers();
        let names = Arc::new(Mutex::new(Interned::default()));
        let attempts = self.attempts(covers, names.clone()).await?;
        let index: HashMap<AttemptKey, u32> =
            attempts.iter().zip(0u32..).map(|(attempt, i)| (attempt.key.clone(), i)).collect();
        let mut reservations = Vec::new();
        let set_asides = numbered(&mut reservations, self.reservations_of(&[covers]).await?);
        let found = Found { index, names, set_asides };
        let (cells, _) = cells_of(&self.usage, self.usage_files(covers), slots, found, Part::All).await?;
        let capacity = self.live_capacity(slots, &[covers]).await?;
        Ok(ReportInput { attempts, cells, capacity, reservations })
    }

    /// The reservations of today, of some pieces of time.
    async fn reservations_of(&self, pieces: &[Interval]) -> Result<Vec<Reservation>, Error> {
        let mut known = self.live_reservations().await?;
        known.retain(|known| pieces.iter().any(|piece| known.during.overlap(*piece).is_some()));
        Ok(known)
    }

    /// The reservations of today, of all time.
    pub(crate) async fn live_reservations(&self) -> Result<Vec<Reservation>, Error> {
        let (mut out, mut names) = (Vec::new(), Interned::default());
        for (_, batches) in self.facts.of(&reservations::RESERVATIONS).read(|_| true, None, &[]).await? {
            for batch in &batches {
                out.extend(reservations::rows(batch, &mut names)?);
            }
        }
        Ok(out)
    }

    /// The files of usage that may have buckets of some time.
    pub(crate) fn usage_files(&self, covers: Interval) -> Vec<FileView> {
        let days = covers.utc_days();
        self.usage.files.iter().filter(|file| file.day.is_none_or(|day| days.contains(&day))).cloned().collect()
    }

    pub(crate) async fn attempts(
        &self,
        covers: Interval,
        names: Arc<Mutex<Interned>>,
    ) -> Result<Vec<ReportAttempt>, Error> {
        let snapshot = self.facts.of(&JOBS);
        let mut attempts = attempts_in(snapshot, snapshot.files_of_attempts(covers), names.clone()).await?;
        if let Some(observed) = &self.observed {
            let in_time = |a: &ReportAttempt| a.held.is_some_and(|held| held.overlap(covers).is_some());
            attempts.extend(attempts_in(observed, observed.files.clone(), names).await?.into_iter().filter(in_time));
        }
        attempts.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(attempts)
    }

    /// Every attempt that only nodes know of, by key.
    pub(crate) async fn observed_attempts(&self) -> Result<Vec<ReportAttempt>, Error> {
        let Some(observed) = &self.observed else { return Ok(Vec::new()) };
        let mut attempts = attempts_in(observed, observed.files.clone(), Arc::default()).await?;
        attempts.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(attempts)
    }

    /// How each cluster with nodes was accounted, as usage remembers it.
    pub(crate) async fn frame(&self, cluster: &str) -> Result<Option<Frame>, Error> {
        let mark = |part: &str| self.usage.mark_owned(format!("frame/{cluster}/{part}"));
        let grouping = match mark("grouping").await? {
            Some(1) => Grouping::Node,
            Some(2) => Grouping::Model,
            Some(3) => Grouping::Cluster,
            _ => return Ok(None),
        };
        let serves_from = mark("serves_from").await?.map(Timestamp::from_unix_ms);
        let horizon = mark("horizon").await?.map(Timestamp::from_unix_ms);
        Ok(Some(Frame { grouping, serves_from, horizon }))
    }

    /// The nodes of today, and how each cluster that has some was accounted.
    pub(crate) async fn live_nodes(&self) -> Result<BTreeMap<Name, (Frame, Vec<Node>)>, Error> {
        let mut out = BTreeMap::new();
        let seen = self.facts.seen().await?;
        for (name, cluster) in self.facts.clusters(seen.as_ref()).await? {
            if let Some(frame) = self.frame(&name).await? {
                out.insert(name, (frame, cluster.nodes));
            }
        }
        Ok(out)
    }

    /// Capacity of some pieces of the time that `slots` covers, by the nodes of today.
    async fn live_capacity(&self, slots: &Slots, pieces: &[Interval]) -> Result<Vec<CapacityCell>, Error> {
        let clusters = self.live_nodes().await?;
        Ok(clusters.iter().flat_map(|(name, (frame, nodes))| capacity_of(name, nodes, frame, slots, pieces)).collect())
    }
}

impl Snapshot {
    /// The files of `jobs` that may have attempts which held something or were submitted in some time.
    pub(crate) fn files_of_attempts(&self, during: Interval) -> Vec<FileView> {
        let (start, end) = (during.start(), during.end());
        let may = |file: &&FileView| {
            file.may_overlap("started_at", "as_of", start, end)
                || file.may_overlap("submitted_at", "submitted_at", start, end)
        };
        self.files.iter().filter(may).cloned().collect()
    }
}

/// What is left of a stretch without another: none, one or two pieces.
fn without(stretch: Interval, other: Interval) -> impl Iterator<Item = Interval> {
    let before = Interval::new(stretch.start(), stretch.end().min(other.start()));
    let after = Interval::new(stretch.start().max(other.end()), stretch.end());
    [before, after].into_iter().flatten()
}

/// Capacity of one cluster by group and slot, in some pieces of time. Nodes that serve from when to when is mostly the same: its slots are counted once.
fn capacity_of(name: &Name, nodes: &[Node], frame: &Frame, slots: &Slots, pieces: &[Interval]) -> Vec<CapacityCell> {
    let groups = Groups::new(nodes, frame.grouping);
    let mut lengths: HashMap<Interval, BTreeMap<u32, i64>> = HashMap::new();
    let mut sums: BTreeMap<(usize, u32), CardTime> = BTreeMap::new();
    for node in nodes {
        let (Some(group), Some(service)) = (groups.of_node(&node.node), frame.service(node)) else { continue };
        for piece in pieces.iter().filter_map(|piece| service.overlap(*piece)) {
            let by_slot = lengths.entry(piece).or_insert_with(|| {
                let mut by_slot = BTreeMap::new();
                for (bucket, piece) in piece.buckets() {
                    if let Some(slot) = slots.slot_of(bucket) {
                        *by_slot.entry(slot).or_default() += piece.length_ms();
                    }
                }
                by_slot
            });
            for (slot, ms) in by_slot {
                let time = CardTime::from_part_ms(i128::from(node.cards.parts()) * i128::from(*ms));
                *sums.entry((group, *slot)).or_default() += time;
            }
        }
    }
    sums.into_iter()
        .map(|((group, slot), card_time)| {
            let group = &groups.all[group];
            CapacityCell {
                cluster: name.clone(),
                pool: group.pool.clone(),
                node: group.node.clone(),
                model: group.model.clone(),
                slot,
                card_time,
            }
        })
        .collect()
}

/// The attempts in some files of `jobs`, or of a table with its columns.
async fn attempts_in(
    snapshot: &Snapshot,
    files: Vec<FileView>,
    names: Arc<Mutex<Interned>>,
) -> Result<Vec<ReportAttempt>, Error> {
    let read = move |batches: Vec<RecordBatch>| attempts_of(&batches, &names);
    let parts = snapshot.read_with(files, Some(ATTEMPT_COLUMNS), &[], read).await?;
    Ok(parts.into_iter().flat_map(|(_, attempts)| attempts).collect())
}

/// Where each attempt is: of the books as they stand (none), and of closed months by their number.
type Indexes = HashMap<Option<u32>, HashMap<AttemptKey, u32>>;

/// Attempts of the books as they stand (none), and of closed months by their number.
#[derive(Default)]
struct Gathered {
    all: Vec<(ReportAttempt, Option<u32>)>,
}

impl Gathered {
    fn add(&mut self, of: Option<u32>, attempts: impl Iterator<Item = ReportAttempt>) {
        self.all.extend(attempts.map(|attempt| (attempt, of)));
    }

    /// All of them in order of their keys, those that are the same in several once; and which is which.
    fn numbered(mut self) -> (Vec<ReportAttempt>, Indexes) {
        self.all.sort_by(|(a, of_a), (b, of_b)| (&a.key, of_a).cmp(&(&b.key, of_b)));
        let mut attempts: Vec<ReportAttempt> = Vec::with_capacity(self.all.len());
        let mut indexes = Indexes::new();
        for (attempt, of) in self.all {
            let same = attempts.iter().rposition(|known| *known == attempt || known.key != attempt.key);
            let index = match same.filter(|&index| attempts[index] == attempt) {
                Some(index) => index,
                None => {
                    attempts.push(attempt.clone());
                    attempts.len() - 1
                }
            };
            let index = u32::try_from(index).expect("attempts are numbered by 32 bits");
            indexes.entry(of).or_default().insert(attempt.key, index);
        }
        (attempts, indexes)
    }
}

/// Which rows of usage are folded.
#[derive(Clone, Copy)]
enum Part {
    All,
    /// Those of buckets outside of a stretch.
    Outside(Interval),
}

/// What cells point at.
struct Found {
    index: HashMap<AttemptKey, u32>,
    names: Arc<Mutex<Interned>>,
    set_asides: SetAsides,
}

/// Adds reservations to those of a report, and says which is which.
fn numbered(all: &mut Vec<Reservation>, more: Vec<Reservation>) -> SetAsides {
    let set_asides = SetAsides::of(&more, u32::try_from(all.len()).expect("reservations are numbered by 32 bits"));
    all.extend(more);
    set_asides
}

/// The rows in some files of `usage`, or of a table with its columns, folded by the slots that they lie in; and how many rows there are in all.
async fn cells_of(
    usage: &Snapshot,
    files: Vec<FileView>,
    slots: &Slots,
    found: Found,
    part: Part,
) -> Result<(Vec<Cell>, usize), Error> {
    let mut columns = USAGE_TEXTS.to_vec();
    columns.extend(USAGE_FIGURES);
    let slots = Arc::new(slots.clone());
    let found = Arc::new(found);
    let fold = move |batches: Vec<RecordBatch>| {
        let mut fold = CellFold { slots: &slots, found: &found, part, cells: Vec::new(), run: Run::default() };
        for batch in &batches {
            fold.batch(batch)?;
        }
        fold.end_run();
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        Ok((fold.cells, rows))
    };
    let parts = usage.read_with(files, Some(&columns), USAGE_TEXTS, fold).await?;
    let rows = parts.iter().map(|(_, (_, rows))| rows).sum();
    Ok((parts.into_iter().flat_map(|(_, (cells, _))| cells).collect(), rows))
}

fn attempts_of(batches: &[RecordBatch], names: &Mutex<Interned>) -> Result<Vec<ReportAttempt>, Error> {
    let mut names = Cached { shared: names, own: HashMap::new() };
    let mut out = Vec::new();
    for batch in batches {
        let rows = Rows::new(JOBS.name, batch);
        let text = |name| rows.text(name);
        let (keys, clusters, states, labels) =
            (text("attempt_key")?, text("cluster")?, text("state")?, text("labels")?);
        let owners = [text("org")?, text("project")?, text("user")?, text("queue")?, text("class")?];
        let (submits, starts) = (rows.instants("submitted_at")?, rows.instants("started_at")?);
        let (ends, as_of) = (rows.instants("ended_at")?, rows.instants("as_of")?);
        let (requested, parts) = (rows.decimals("cards_requested")?, rows.long("share_parts")?);
        for row in 0..batch.num_rows() {
            let state = JobState::from_name(states.value(row))
                .ok_or_else(|| Error::damaged(JOBS.name, format!("state {:?}", states.value(row))))?;
            let [org, project, user, queue, class] =
                owners.map(|column| opt_text(column, row).map(|text| names.get(text)));
            let end = opt_instant(ends, row).or(opt_instant(as_of, row));
            let cards_requested = if requested.is_valid(row) {
                let cards = Decimal::from_i128_with_scale(requested.value(row), 6);
                Some(CardShare::from_decimal(cards).map_err(|e| Error::damaged(JOBS.name, e.to_string()))?)
            } else {
                None
            };
            out.push(ReportAttempt {
                key: AttemptKey::from_stored(keys.value(row)),
                cluster: names.get(clusters.value(row)),
                org,
                project,
                user,
                queue,
                class,
                labels: jobs::labels(JOBS.name, opt_text(labels, row))?,
                state,
                cards_requested,
                cards: share(JOBS.name, parts.value(row))?,
                submitted_at: opt_instant(submits, row),
                held: opt_instant(starts, row).zip(end).and_then(|(start, end)| Interval::new(start, end)),
            });
        }
    }
    Ok(out)
}

/// Names known to all threads, looked up in a map of one's own first.
struct Cached<'a> {
    shared: &'a Mutex<Interned>,
    own: HashMap<String, Name>,
}

impl Cached<'_> {
    fn get(&mut self, text: &str) -> Name {
        if let Some(name) = self.own.get(text) {
            return name.clone();
        }
        let name = self.shared.lock().expect("no one panics holding it").get(text);
        self.own.insert(text.to_owned(), name.clone());
        name
    }
}

/// What the rows of one run share: indexes into the batch's texts, and the share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    attempt: Option<i32>,
    cluster: Option<i32>,
    pool: Option<i32>,
    node: Option<i32>,
    model: Option<i32>,
    mig_profile: Option<i32>,
    share_parts: i64,
}

/// State and reservation of a row, as indexes into the batch's texts.
type What = (Option<i32>, Option<i32>);

#[derive(Default)]
struct Run {
    place: Option<Place>,
    cells: Vec<(What, Cell)>,
}

struct CellFold<'a> {
    slots: &'a Slots,
    found: &'a Found,
    part: Part,
    cells: Vec<Cell>,
    run: Run,
}

impl CellFold<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        // Indexes of one batch mean nothing in the next.
        self.end_run();
        let rows = Rows::new(USAGE.name, batch);
        let mut keys: Vec<&Int32Array> = Vec::with_capacity(USAGE_TEXTS.len());
        let mut texts: Vec<Vec<Name>> = Vec::with_capacity(USAGE_TEXTS.len());
        let mut attempts: Vec<Option<u32>> = Vec::new();
        let mut states: Vec<Option<CardState>> = Vec::new();
        for (i, name) in USAGE_TEXTS.iter().enumerate() {
            let (indexes, values) = rows.indexed(name)?;
            keys.push(indexes);
            match i {
                0 => {
                    attempts =
                        values.iter().map(|v| self.found.index.get(&AttemptKey::from_stored(v?)).copied()).collect();
                    texts.push(Vec::new());
                }
                1 => {
                    states = values.iter().map(|v| v.and_then(CardState::from_name)).collect();
                    texts.push(Vec::new());
                }
                _ => {
                    let mut names = self.found.names.lock().expect("no one panics holding it");
                    texts.push(values.iter().map(|v| names.get(v.unwrap_or_default())).collect());
                }
            }
        }
        let buckets = rows.instants("bucket_start")?;
        let shares = rows.long("share_parts")?;
        let (times, billed, unseen) =
            (rows.decimals("card_time")?, rows.decimals("billed_time")?, rows.decimals("unseen")?);
        let (effective, underused) = (rows.decimals("effective")?, rows.decimals("underused")?);
        let (idle, lost) = (rows.decimals("idle")?, rows.decimals("lost")?);
        let (energies, bases) = (rows.long("energy_mj")?, rows.text("use_basis")?);
        let key = |column: usize, row: usize| keys[column].is_valid(row).then(|| keys[column].value(row));
        let text = |column: usize, index: Option<i32>| index.map(|index| texts[column][index as usize].clone());
        let time = |column: &arrow::array::Decimal128Array, row: usize| {
            CardTime::from_part_ms(if column.is_valid(row) { column.value(row) } else { 0 })
        };
        for row in 0..batch.num_rows() {
            let bucket = Timestamp::from_unix_us(buckets.value(row));
            let Some(slot) = self.slots.slot_of(bucket) else { continue };
            match self.part {
                Part::Outside(stretch) if stretch.contains(bucket) => continue,
                Part::All | Part::Outside(_) => {}
            }
            let place = Place {
                attempt: key(0, row),
                cluster: key(2, row),
                pool: key(3, row),
                node: key(4, row),
                model: key(5, row),
                mig_profile: key(6, row),
                share_parts: if shares.is_valid(row) { shares.value(row) } else { 0 },
            };
            if self.run.place != Some(place) {
                self.end_run();
                self.run.place = Some(place);
            }
            let what = (key(1, row), key(7, row));
            let set_aside = what.1.and_then(|_| {
                let cluster = text(2, place.cluster).unwrap_or_else(|| "".into());
                self.found.set_asides.at(&cluster, &text(7, what.1)?, bucket)
            });
            let is_it = |(w, cell): &&mut (What, Cell)| (*w, cell.slot, cell.set_aside) == (what, slot, set_aside);
            let found = self.run.cells.iter_mut().find(is_it);
            let cell = match found {
                Some((_, cell)) => cell,
                None => {
                    let state = what.0.and_then(|state| states[state as usize]);
                    let state = state.ok_or_else(|| Error::damaged(USAGE.name, "a row of no state that there is"))?;
                    let attempt = match place.attempt {
                        None => None,
                        Some(index) => Some(attempts[index as usize].ok_or_else(|| {
                            let (_, keys) = rows.indexed("attempt_key").expect("read above");
                            Error::damaged(USAGE.name, format!("attempt {} is not in jobs", keys.value(index as usize)))
                        })?),
                    };
                    let part = 0 < place.share_parts && place.share_parts < CardShare::PARTS_PER_CARD;
                    let cell = Cell {
                        attempt,
                        state,
                        cluster: text(2, place.cluster).unwrap_or_else(|| "".into()),
                        pool: text(3, place.pool),
                        node: text(4, place.node),
                        model: text(5, place.model),
                        mig_profile: text(6, place.mig_profile),
                        share: part.then(|| CardShare::from_parts(place.share_parts)),
                        reservation: text(7, what.1),
                        set_aside,
                        slot,
                        card_time: CardTime::ZERO,
                        billed_time: CardTime::ZERO,
                        unseen: CardTime::ZERO,
                        unproven: CardTime::ZERO,
                        used: None,
                    };
                    self.run.cells.push((what, cell));
                    &mut self.run.cells.last_mut().expect("just pushed").1
                }
            };
            let use_basis = match opt_text(bases, row) {
                Some(name) => Some(
                    SeenBy::from_name(name).ok_or_else(|| Error::damaged(USAGE.name, format!("use_basis {name:?}")))?,
                ),
                None => None,
            };
            cell.add(&UsageFigures {
                card_time: time(times, row),
                billed_time: time(billed, row),
                unseen: time(unseen, row),
                lost: time(lost, row),
                idle: time(idle, row),
                effective: time(effective, row),
                underused: time(underused, row),
                use_basis,
                energy_mj: opt_long(energies, row),
            });
        }
        Ok(())
    }

    fn end_run(&mut self) {
        self.run.place = None;
        self.cells.extend(self.run.cells.drain(..).map(|(_, cell)| cell));
    }
}
