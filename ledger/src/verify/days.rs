//! `usage` against holdings and timelines, day by day.
//!
//! Both sides of a day are written as sorted rows and walked along together: so a row that is missing, doubled, changed or foreign is
//! named as such. Days are taken a few at a time, so that memory doesn't grow with the ledger.

use super::attempts::named;
use super::findings::{Findings, at, time_text};
use super::load::{Id, Stored};
use super::span::{DAY_MS, QUARTER_MS, Span};
use super::timeline::Timelines;
use crate::columns::Rows;
use crate::files::parallel;
use crate::store::{FileView, day_text};
use crate::tables::usage::USAGE;
use crate::{Error, Reading};
use arrow::array::{Array, Decimal128Array};
use arrow::record_batch::RecordBatch;
use cardhour_domain::{CardState, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Days that are looked at together.
const DAYS_AT_ONCE: usize = 16;

/// What was found in usage.
pub(super) struct Days {
    pub held: Findings,
    pub split: Findings,
    pub attempts: Findings,
    pub balance: Findings,
    pub states: Findings,
    pub over: Findings,
}

/// Holdings that rows of usage can't tell apart: one attempt, card and share.
struct Track {
    holdings: Vec<u32>,
}

/// A held row: track, bucket, card-time, billed.
type HeldRow = (u32, i64, i128, i128);
/// A row that nobody held: group, bucket, state, reservation, card-time.
type StateRow = (u32, i64, CardState, Option<Id>, i128);

/// A file and its rows.
type ReadFile = (FileView, Vec<RecordBatch>);
/// What the rows of a run share: indexes of their texts, their parts; and the track they are of.
type RunOfRows = ([Option<i32>; 9], Option<i64>, Option<u32>);
/// For each group and bucket, what there is, and what usage says.
type Balance = HashMap<(u32, i64), (i128, i128)>;

struct Work<'a> {
    stored: &'a Stored,
    lines: &'a Timelines,
    tracks: Vec<Track>,
    by_key: HashMap<(u32, Option<Id>, i64), u32>,
    unbilled: HashMap<(Id, Option<Id>), Vec<Span>>,
}

/// One file of usage, or one day of them.
#[derive(Default)]
struct Found {
    held: Vec<HeldRow>,
    states: Vec<StateRow>,
    rows: Findings,
    split: Findings,
    foreign: Findings,
}

pub(super) async fn check(stored: &Stored, reading: &Reading, lines: &Timelines) -> Result<Days, Error> {
    let work = Work::new(stored, lines);
    let mut files: BTreeMap<i32, Vec<FileView>> = BTreeMap::new();
    for file in &reading.usage.files {
        files.entry(file.day.unwrap_or(i32::MIN)).or_default().push(file.clone());
    }
    let mut holdings: BTreeMap<i32, Vec<u32>> = BTreeMap::new();
    for (held, i) in stored.holdings.iter().zip(0u32..) {
        held.span.days().for_each(|day| holdings.entry(day).or_default().push(i));
    }
    let mut days: BTreeSet<i32> = files.keys().chain(holdings.keys()).copied().collect();
    for stretch in lines.groups.iter().flat_map(|group| &group.stretches) {
        days.extend(stretch.span.days());
    }
    let days: Vec<i32> = days.into_iter().collect();

    let mut out = Days {
        held: Findings::of_time(),
        split: Findings::of_time(),
        attempts: Findings::of_time(),
        balance: Findings::of_time(),
        states: Findings::of_time(),
        over: Findings::of_time(),
    };
    let mut sums: HashMap<u32, i128> = HashMap::new();
    for chunk in days.chunks(DAYS_AT_ONCE) {
        let wanted = chunk.iter().flat_map(|day| files.get(day).into_iter().flatten().cloned()).collect();
        let mut read: BTreeMap<i32, Vec<ReadFile>> = BTreeMap::new();
        for (file, batches) in reading.usage.read_with(wanted, None, TEXTS, Ok).await? {
            read.entry(file.day.unwrap_or(i32::MIN)).or_default().push((file, batches));
        }
        let items = chunk.iter().map(|day| (*day, read.remove(day).unwrap_or_default(), holdings.get(day))).collect();
        let done = parallel(items, |(day, batches, held): (i32, Vec<ReadFile>, Option<&Vec<u32>>)| {
            work.day(day, batches, held.map_or(&[][..], Vec::as_slice))
        });
        for day in done {
            let (day, of_attempts) = day?;
            out.held.merge(day.held);
            out.split.merge(day.split);
            out.balance.merge(day.balance);
            out.states.merge(day.states);
            out.over.merge(day.over);
            for (job, part_ms) in of_attempts {
                *sums.entry(job).or_default() += part_ms;
            }
        }
    }
    work.check_attempts(&sums, &mut out.attempts);
    work.check_conflicts(&mut out.over);
    Ok(out)
}

/// Text columns of usage, in the order in which rows are looked up.
const TEXTS: &[&str] =
    &["attempt_key", "state", "cluster", "pool", "node", "model", "card_uuid", "mig_profile", "reservation"];

impl<'a> Work<'a> {
    fn new(stored: &'a Stored, lines: &'a Timelines) -> Self {
        let mut work = Self { stored, lines, tracks: Vec::new(), by_key: HashMap::new(), unbilled: HashMap::new() };
        for (held, i) in stored.holdings.iter().zip(0u32..) {
            work.unbilled.entry((held.cluster, held.node)).or_insert_with(|| stored.unbilled(held.cluster, held.node));
            let Some(job) = held.job else { continue };
            let track = *work.by_key.entry((job, held.card, held.parts)).or_insert_with(|| {
                work.tracks.push(Track { holdings: Vec::new() });
                u32::try_from(work.tracks.len() - 1).expect("fewer tracks than holdings")
            });
            work.tracks[track as usize].holdings.push(i);
        }
        work
    }

    fn day(&self, day: i32, files: Vec<ReadFile>, holdings: &[u32]) -> Result<(Days, HashMap<u32, i128>), Error> {
        let mut found = Found {
            rows: Findings::of_time(),
            split: Findings::of_time(),
            foreign: Findings::of_time(),
            ..Found::default()
        };
        for (file, batches) in &files {
            for batch in batches {
                self.read(day, file, batch, &mut found)?;
            }
        }
        let mut out = Days {
            held: found.rows,
            split: found.split,
            attempts: Findings::default(),
            balance: Findings::of_time(),
            states: found.foreign,
            over: Findings::of_time(),
        };
        let mut of_attempts = HashMap::new();
        for (track, _, part_ms, _) in &found.held {
            let held = &self.stored.holdings[self.tracks[*track as usize].holdings[0] as usize];
            *of_attempts.entry(held.job.expect("tracks are of known attempts")).or_default() += part_ms;
        }
        let mut expected = self.held_of_day(day, holdings);
        expected.sort_unstable();
        found.held.sort_unstable();
        self.compare_held(&expected, &found.held, &mut out.held);

        let (mut expected, mut capacity) = self.states_of_day(day, &mut out.over);
        expected.sort_unstable();
        found.states.sort_unstable();
        self.compare_states(&expected, &found.states, &mut out.states);
        // The identity itself, from what usage has.
        for (group, bucket, _, _, part_ms) in &found.states {
            capacity.entry((*group, *bucket)).or_default().1 += part_ms;
        }
        for (track, bucket, part_ms, _) in &found.held {
            let holding = self.tracks[*track as usize].holdings[0];
            if let Some(group) = self.lines.of_holding[holding as usize] {
                capacity.entry((group, *bucket)).or_default().1 += part_ms;
            }
        }
        for ((group, bucket), (there_is, said)) in capacity {
            out.balance.saw(said);
            if there_is != said {
                let place = format!("{}, bucket {}", self.group_text(group), at(bucket));
                out.balance.fault("usage", &place, &format!("states of {}", time_text(there_is)), &time_text(said));
            }
        }
        Ok((out, of_attempts))
    }

    /// Reads one batch of a day: rows of known attempts and groups, and faults of the others.
    fn read(&self, day: i32, file: &FileView, batch: &RecordBatch, out: &mut Found) -> Result<(), Error> {
        let rows = Rows::new(USAGE.name, batch);
        let mut texts = Vec::with_capacity(TEXTS.len());
        for name in TEXTS {
            let (indexes, values) = rows.indexed(name)?;
            let ids: Vec<Option<Id>> = values.iter().map(|text| self.stored.names.known(text?)).collect();
            texts.push((indexes, values, ids));
        }
        let index = |column: usize, row: usize| {
            let keys = texts[column].0;
            keys.is_valid(row).then(|| keys.value(row))
        };
        // An absent text is none; one that nothing else has is a name beyond all.
        let id = |column: usize, row: usize| index(column, row).map(|i| texts[column].2[i as usize].unwrap_or(Id::MAX));
        let text = |column: usize, row: usize| index(column, row).map_or("-", |i| texts[column].1.value(i as usize));
        let jobs: Vec<Option<u32>> =
            texts[0].1.iter().map(|key| key.and_then(|key| self.stored.by_key.get(key).copied())).collect();
        let states: Vec<Option<CardState>> =
            texts[1].1.iter().map(|name| name.and_then(CardState::from_name)).collect();
        let buckets = rows.instants("bucket_start")?;
        let shares = rows.long("share_parts")?;
        let times = rows.decimals("card_time")?;
        let billed = rows.decimals("billed_time")?;
        let split = ["unseen", "lost", "idle", "effective", "underused"].map(|name| rows.decimals(name));
        let split: Vec<&Decimal128Array> = split.into_iter().collect::<Result<_, _>>()?;
        let opt = |array: &Decimal128Array, row: usize| array.is_valid(row).then(|| array.value(row));
        let whole_day = Span::day(day);
        let mut before: Option<RunOfRows> = None;
        for row in 0..batch.num_rows() {
            let bucket = Timestamp::from_unix_us(buckets.value(row)).unix_ms();
            let place = || {
                let bucket = at(bucket);
                let [cluster, key, node] = [text(2, row), text(0, row), text(4, row)];
                format!("cluster {}, attempt {key}, node {node}, bucket {bucket}", named(cluster))
            };
            let lies_in_day = file.day == Some(day) && whole_day.from <= bucket && bucket < whole_day.to;
            if !lies_in_day || bucket.rem_euclid(QUARTER_MS) != 0 || buckets.value(row) % 1000 != 0 {
                let found = file.day.map_or("no partition".to_owned(), |day| format!("partition {}", day_text(day)));
                out.rows.fault("usage", &place(), "a quarter hour of the day of its partition", &found);
            }
            let state = index(1, row).and_then(|i| states[i as usize]);
            let part_ms = times.value(row);
            match state {
                None => out.rows.fault("usage", &place(), "held, down, reserved, free or unaccounted", text(1, row)),
                Some(CardState::Held) => {
                    out.rows.saw(part_ms);
                    let share = shares.is_valid(row).then(|| shares.value(row));
                    let texts_of_row = std::array::from_fn(|column| index(column, row));
                    let track = match &before {
                        Some((same, of_share, track)) if *same == texts_of_row && *of_share == share => *track,
                        _ => {
                            let job = texts_of_row[0].and_then(|i| jobs[i as usize]);
                            let track = job
                                .zip(share)
                                .and_then(|(job, share)| self.by_key.get(&(job, id(6, row), share)))
                                .copied();
                            self.check_place(track, job, [2, 3, 4, 5, 7, 8].map(|column| id(column, row)), &place, out);
                            before = Some((texts_of_row, share, track));
                            track
                        }
                    };
                    let is_billed = opt(billed, row);
                    self.check_split(part_ms, is_billed, split.iter().map(|array| opt(array, row)), &place, out);
                    match track {
                        Some(track) => out.held.push((track, bucket, part_ms, is_billed.unwrap_or(i128::MIN))),
                        // Its attempt and share were said where the run began; each of its rows is one too many.
                        None => out.rows.fault(
                            "usage",
                            &place(),
                            "no such row",
                            &format!("a row of {}", time_text(part_ms)),
                        ),
                    }
                }
                Some(state) => {
                    out.foreign.saw(part_ms);
                    let key = (id(2, row).unwrap_or(Id::MAX), id(4, row), id(5, row), id(3, row));
                    let nobody = index(0, row).is_none() && index(6, row).is_none() && opt(billed, row).is_none();
                    match self.lines.by_place.get(&key).filter(|_| nobody) {
                        Some(group) => out.states.push((*group, bucket, state, id(8, row), part_ms)),
                        None => {
                            let found = format!("{} of {}", state.name(), time_text(part_ms));
                            out.foreign.fault("usage", &place(), "a group of cards that there is", &found);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a run of rows stands where its holding was: cluster, pool, node, model, MIG profile, reservation.
    fn check_place(
        &self,
        track: Option<u32>,
        job: Option<u32>,
        theirs: [Option<Id>; 6],
        place: &dyn Fn() -> String,
        out: &mut Found,
    ) {
        let Some(job) = job.map(|job| &self.stored.jobs[job as usize]) else {
            out.rows.fault("usage", &place(), "an attempt of jobs", "an attempt that jobs doesn't have");
            return;
        };
        let Some(track) = track else { return };
        let held = &self.stored.holdings[self.tracks[track as usize].holdings[0] as usize];
        let seat = self.stored.seat(held, job);
        let pool = self.lines.atlases.get(&job.cluster).and_then(|atlas| atlas.pool(seat));
        let right = [Some(held.cluster), pool, held.node, held.model, held.profile, job.reservation];
        let names = ["cluster", "pool", "node", "model", "mig_profile", "reservation"];
        for ((name, right), theirs) in names.into_iter().zip(right).zip(theirs) {
            if right != theirs {
                let text = |id: Option<Id>| match id {
                    Some(Id::MAX) => format!("{name} of an unknown name"),
                    id => format!("{name} {}", self.stored.names.text(id)),
                };
                out.rows.fault("usage", &place(), &text(right), &text(theirs));
            }
        }
    }

    fn check_split(
        &self,
        held: i128,
        billed: Option<i128>,
        parts: impl Iterator<Item = Option<i128>>,
        place: &dyn Fn() -> String,
        out: &mut Found,
    ) {
        out.split.saw(held);
        let parts: Vec<Option<i128>> = parts.collect();
        let sum: Option<i128> = parts.iter().copied().sum();
        if sum != Some(held) || parts.iter().flatten().any(|part| *part < 0) {
            let found = sum.map_or("an absent part".to_owned(), time_text);
            out.split.fault("usage", &place(), &format!("parts of {}", time_text(held)), &found);
        }
        if !billed.is_some_and(|billed| 0 <= billed && billed <= held) {
            let found = billed.map_or("no billed time".to_owned(), time_text);
            out.split.fault("usage", &place(), &format!("billed time from 0 to {}", time_text(held)), &found);
        }
    }

    /// The rows that a day's holdings must have.
    fn held_of_day(&self, day: i32, holdings: &[u32]) -> Vec<HeldRow> {
        let mut out = Vec::with_capacity(holdings.len() * 8);
        for i in holdings {
            let held = &self.stored.holdings[*i as usize];
            let Some(track) = held.job.and_then(|job| self.by_key.get(&(job, held.card, held.parts))) else { continue };
            let Some(inside) = held.span.cut(Span::day(day)) else { continue };
            let unbilled = &self.unbilled[&(held.cluster, held.node)];
            let first = inside.from.div_euclid(QUARTER_MS);
            let last = (inside.to - 1).div_euclid(QUARTER_MS);
            for quarter in first..=last {
                let bucket = Span { from: quarter * QUARTER_MS, to: (quarter + 1) * QUARTER_MS };
                let piece = inside.cut(bucket).expect("the bucket is one it touches");
                let out_ms: i64 = if held.is_releasing {
                    piece.ms()
                } else {
                    unbilled.iter().map(|outage| outage.shared_ms(piece)).sum()
                };
                let parts = i128::from(held.parts);
                out.push((
                    *track,
                    bucket.from,
                    parts * i128::from(piece.ms()),
                    parts * i128::from(piece.ms() - out_ms),
                ));
            }
        }
        out
    }

    fn compare_held(&self, expected: &[HeldRow], found: &[HeldRow], out: &mut Findings) {
        let (mut e, mut f) = (0, 0);
        while e < expected.len() || f < found.len() {
            let key = |row: &HeldRow| (row.0, row.1);
            let next = expected.get(e).map(key).into_iter().chain(found.get(f).map(key)).min().expect("one is left");
            let count = |rows: &[HeldRow], from: usize| rows[from..].iter().take_while(|row| key(row) == next).count();
            let (n, m) = (count(expected, e), count(found, f));
            let (right, theirs) = (&expected[e..e + n], &found[f..f + m]);
            (e, f) = (e + n, f + m);
            if right == theirs {
                continue;
            }
            let place = self.bucket_text(next.0, next.1);
            if n != m {
                let rows = |rows: &[HeldRow]| {
                    let of = rows.first().map_or(String::new(), |row| format!(" of {}", time_text(row.2)));
                    format!("{} row{}{of}", rows.len(), if rows.len() == 1 { "" } else { "s" })
                };
                out.fault("usage", &place, &rows(right), &rows(theirs));
                continue;
            }
            for (right, theirs) in right.iter().zip(theirs) {
                if right.2 != theirs.2 {
                    out.fault("usage", &place, &format!("card_time {}", time_text(right.2)), &time_text(theirs.2));
                }
                if right.3 != theirs.3 {
                    let found = if theirs.3 == i128::MIN { "none".to_owned() } else { time_text(theirs.3) };
                    out.fault("usage", &place, &format!("billed_time {}", time_text(right.3)), &found);
                }
            }
        }
    }

    /// The rows that a day's groups must have, and what there is of each group in each bucket: capacity and what is held beyond it.
    fn states_of_day(&self, day: i32, over: &mut Findings) -> (Vec<StateRow>, Balance) {
        let whole = Span::day(day);
        let mut rows = Vec::new();
        let mut capacity: Balance = HashMap::new();
        for (group, number) in self.lines.groups.iter().zip(0u32..) {
            let first = group.stretches.partition_point(|stretch| stretch.span.to <= whole.from);
            let mut sums: BTreeMap<(i64, CardState, Option<Id>), i128> = BTreeMap::new();
            for stretch in group.stretches[first..].iter().take_while(|stretch| stretch.span.from < whole.to) {
                let Some(inside) = stretch.span.cut(whole) else { continue };
                over.time(i128::from(stretch.over) * i128::from(inside.ms()));
                for quarter in inside.from.div_euclid(QUARTER_MS)..=(inside.to - 1).div_euclid(QUARTER_MS) {
                    let bucket = quarter * QUARTER_MS;
                    let ms = i128::from(inside.shared_ms(Span { from: bucket, to: bucket + QUARTER_MS }));
                    let there_is = i128::from(stretch.capacity + stretch.over) * ms;
                    capacity.entry((number, bucket)).or_default().0 += there_is;
                    let reserved =
                        stretch.reserved.iter().map(|(name, parts)| (CardState::Reserved, Some(*name), *parts));
                    for (state, reservation, parts) in [
                        (CardState::Down, None, stretch.down),
                        (CardState::Free, None, stretch.free),
                        (CardState::Unaccounted, None, stretch.unaccounted),
                    ]
                    .into_iter()
                    .chain(reserved)
                    .filter(|(_, _, parts)| *parts > 0)
                    {
                        *sums.entry((bucket, state, reservation)).or_default() += i128::from(parts) * ms;
                    }
                }
            }
            rows.extend(sums.into_iter().map(|((bucket, state, r), part_ms)| (number, bucket, state, r, part_ms)));
        }
        (rows, capacity)
    }

    fn compare_states(&self, expected: &[StateRow], found: &[StateRow], out: &mut Findings) {
        let key = |row: &StateRow| (row.0, row.1, row.2, row.3);
        let (mut e, mut f) = (0, 0);
        while e < expected.len() || f < found.len() {
            let next = expected.get(e).map(key).into_iter().chain(found.get(f).map(key)).min().expect("one is left");
            let here = |rows: &[StateRow], from: usize| rows[from..].iter().take_while(|row| key(row) == next).count();
            // Two reservations of one name may have a row each.
            let (n, m) = (here(expected, e), here(found, f));
            let sum = |rows: &[StateRow]| rows.iter().map(|row| row.4).sum::<i128>();
            let (right, theirs) = (sum(&expected[e..e + n]), sum(&found[f..f + m]));
            (e, f) = (e + n, f + m);
            if right != theirs || found[f - m..f].iter().any(|row| row.4 <= 0) {
                let (group, bucket, state, reservation) = next;
                let under = reservation.map_or(String::new(), |name| format!(" {}", self.name(name)));
                let place = format!("{}, bucket {}, {}{under}", self.group_text(group), at(bucket), state.name());
                let told = |n: usize, sum: i128| if n == 0 { "no row".to_owned() } else { time_text(sum) };
                out.fault("usage", &place, &told(n, right), &told(m, theirs));
            }
        }
    }

    /// Every attempt's usage is what its record says it held; of named cards, what its holdings say.
    fn check_attempts(&self, sums: &HashMap<u32, i128>, out: &mut Findings) {
        let mut of_holdings: HashMap<u32, i128> = HashMap::new();
        // Of what nodes saw, holdings were held against records before.
        let mut seen: HashSet<u32> = HashSet::new();
        for held in &self.stored.holdings {
            if let Some(job) = held.job {
                if self.stored.is_seen(held) {
                    seen.insert(job);
                }
                *of_holdings.entry(job).or_default() += i128::from(held.parts) * i128::from(held.span.ms());
            }
        }
        for (job, i) in self.stored.jobs.iter().zip(0u32..) {
            if self.stored.by_key[&job.key] != i {
                continue;
            }
            let of_usage = sums.get(&i).copied().unwrap_or(0);
            let of_holdings = of_holdings.get(&i).copied().unwrap_or(0);
            let of_record = job.held.map_or(0, |held| i128::from(job.parts) * i128::from(held.ms()));
            out.saw(of_usage);
            let place = || super::attempts::attempt(self.stored, job.cluster, &job.key);
            if of_usage != of_holdings {
                out.fault(
                    "usage",
                    &place(),
                    &format!("{}, as in holdings", time_text(of_holdings)),
                    &time_text(of_usage),
                );
            }
            if job.card.is_none() && !seen.contains(&i) && of_usage != of_record {
                out.fault("usage", &place(), &format!("{}, as in jobs", time_text(of_record)), &time_text(of_usage));
            }
        }
    }

    /// What each group holds beyond its capacity on each day is what `conflicts` says, and the most of it at once.
    fn check_conflicts(&self, out: &mut Findings) {
        let names = &self.stored.names;
        let mut sums: BTreeMap<(u32, i32), [(i128, i64); 2]> = BTreeMap::new();
        for (group, number) in self.lines.groups.iter().zip(0u32..) {
            for stretch in group.stretches.iter().filter(|stretch| stretch.over > 0) {
                for day in stretch.span.days() {
                    let part_ms = i128::from(stretch.over) * i128::from(stretch.span.shared_ms(Span::day(day)));
                    let [(sum, peak), _] = sums.entry((number, day)).or_default();
                    (*sum, *peak) = (*sum + part_ms, (*peak).max(stretch.over));
                }
            }
        }
        for conflict in self.stored.conflicts.iter().filter(|conflict| conflict.kind == "over_capacity") {
            out.rows += 1;
            let place = format!("cluster {}, from {}", named(&conflict.cluster), at(conflict.from));
            let id = |name: &Option<_>| {
                name.as_ref().map(|name: &cardhour_domain::Name| names.known(name).unwrap_or(Id::MAX))
            };
            let (node, model) = (id(&conflict.node), id(&conflict.model));
            let of = |group: &super::timeline::Group| {
                names.get(group.cluster) == &conflict.cluster && group.node == node && group.model == model
            };
            let day = i32::try_from(conflict.from.div_euclid(DAY_MS)).unwrap_or(i32::MAX);
            if conflict.lies_in != Some(day)
                || conflict.to > (i64::from(day) + 1) * DAY_MS
                || conflict.to <= conflict.from
            {
                out.fault(
                    "conflicts",
                    &place,
                    "a stretch within the day of its partition",
                    &format!("to {}", at(conflict.to)),
                );
            }
            match self.lines.groups.iter().position(of) {
                Some(group) => {
                    let number = u32::try_from(group).expect("few groups");
                    let [_, (sum, peak)] = sums.entry((number, day)).or_default();
                    (*sum, *peak) = (sum.saturating_add(conflict.part_ms), (*peak).max(conflict.parts));
                }
                None => out.fault("conflicts", &place, "a group of cards that there is", "another"),
            }
        }
        for ((group, day), [right, theirs]) in sums {
            if right != theirs {
                let told = |(part_ms, peak)| format!("{}, {peak} parts at most at once", time_text(part_ms));
                let place = format!("{}, {}", self.group_text(group), day_text(day));
                out.fault("conflicts", &place, &told(right), &told(theirs));
            }
        }
    }

    fn name(&self, id: Id) -> &str {
        if id == Id::MAX { "of an unknown name" } else { self.stored.names.get(id) }
    }

    fn bucket_text(&self, track: u32, bucket: i64) -> String {
        let held = &self.stored.holdings[self.tracks[track as usize].holdings[0] as usize];
        let place = super::attempts::attempt(self.stored, held.cluster, &held.key);
        let card = held.card.map_or(String::new(), |card| format!(", card {}", self.name(card)));
        format!("{place}{card}, bucket {}", at(bucket))
    }

    fn group_text(&self, group: u32) -> String {
        let group = &self.lines.groups[group as usize];
        let mut text = format!("cluster {}", named(self.stored.names.get(group.cluster)));
        for (what, id) in [("node", group.node), ("model", group.model), ("pool", group.pool)] {
            if let Some(id) = id {
                text.push_str(&format!(", {what} {}", self.name(id)));
            }
        }
        text
    }
}
