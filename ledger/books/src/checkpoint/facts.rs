//! What a span's attempts held, what it cost, and how long they waited: the facts under every section.
//!
//! Money is cut as the bill of those days cuts it: a leaf's rounded cost falls to the time before the span, in it and after it by billed time, and what
//! falls into the span to the attempts that held it (LED-6). So a span's attempts cost what `report bill --from --to` says, to the millionth.

use super::week::Days;
use super::{Sources, wait};
use crate::bill::{Hole, Leaves, NO_LEAF};
use crate::cell::Used;
use crate::report::bundles::Bundles;
use crate::report::{ReportAttempt, ReportInput};
use crate::slots::Era;
use cardhour_domain::{CardShare, CardTime, Currency, Interval, JobState, Name, Zone, spread_by};
use chrono::NaiveDate;
use rust_decimal::Decimal;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// What one attempt held of one model in a span.
#[derive(Clone, Debug)]
pub(crate) struct Held<'a> {
    /// Number of the attempt; none for held time that a source gave without a job.
    pub attempt: Option<u32>,
    pub model: Option<&'a Name>,
    pub sum: Sum,
}

/// What was held, added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    pub held: CardTime,
    pub billed: CardTime,
    pub unseen: CardTime,
    pub used: Used,
    /// None where nothing of it has a price. Unit: millionths of the currency.
    pub cost: Option<i128>,
    /// Of the cost, what falls to lost time.
    pub lost_cost: i128,
}

impl Sum {
    pub fn add(&mut self, other: &Self) {
        self.held += other.held;
        self.billed += other.billed;
        self.unseen += other.unseen;
        self.used.add(&other.used);
        if let Some(cost) = other.cost {
            *self.cost.get_or_insert(0) += cost;
        }
        self.lost_cost += other.lost_cost;
    }

    /// Of what some attempts held.
    pub fn of_attempts(held: &[Held<'_>], attempts: &[u32]) -> Self {
        let among: BTreeSet<u32> = attempts.iter().copied().collect();
        Self::of(held.iter().filter(|held| held.attempt.is_some_and(|one| among.contains(&one))).map(|held| &held.sum))
    }

    pub fn of<'s>(all: impl IntoIterator<Item = &'s Self>) -> Self {
        all.into_iter().fold(Self::default(), |mut sum, next| {
            sum.add(next);
            sum
        })
    }

    pub fn seen(&self) -> CardTime {
        self.held - self.unseen
    }

    pub fn wasted(&self) -> CardTime {
        self.used.idle + self.used.underused
    }

    pub fn use_coverage(&self) -> Option<Decimal> {
        self.seen().ratio_of(self.held)
    }

    /// Effective ÷ seen; none where less than half of the held time was seen, as in every other report.
    pub fn efficiency(&self) -> Option<Decimal> {
        let enough = self.seen().part_ms() * 2 >= self.held.part_ms();
        enough.then(|| self.used.effective.ratio_of(self.seen())).flatten()
    }
}

/// Everything loaded, made ready to be asked of spans.
pub(crate) struct Facts<'a> {
    sources: Sources<'a>,
    leaves: Leaves<'a>,
    /// Leaf of each cell, [`NO_LEAF`] where nobody holds it.
    leaf_of_cell: Vec<u32>,
    /// The first attempt of each one's key. One that changed after a close is there twice.
    first: Vec<u32>,
    /// Attempts, each once, by job and then in the order of their starts.
    runs: BTreeMap<&'a str, Vec<u32>>,
}

impl<'a> Facts<'a> {
    pub fn of(sources: Sources<'a>) -> Self {
        let input: &'a ReportInput = sources.input;
        let bundles = Bundles::of(input, &[]);
        let leaves = Leaves::of(&bundles, sources.slots, sources.book);
        let leaf_of_cell = bundles.of_cell.iter().map(|bundle| leaves.of_bundle[*bundle as usize]).collect();
        let mut by_key: FxHashMap<&str, u32> = FxHashMap::default();
        let mut runs: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        let mut first = Vec::with_capacity(input.attempts.len());
        for (i, attempt) in (0..).zip(&input.attempts) {
            let same = *by_key.entry(attempt.key.as_str()).or_insert(i);
            first.push(same);
            if same == i {
                runs.entry(attempt.key.job()).or_default().push(i);
            }
        }
        for runs in runs.values_mut() {
            runs.sort_by_key(|run| {
                let attempt = &input.attempts[*run as usize];
                (attempt.held.map(Interval::start).or(attempt.submitted_at), *run)
            });
        }
        Self { sources, leaves, leaf_of_cell, first, runs }
    }

    pub fn zone(&self) -> Zone {
        self.sources.slots.view_zone()
    }

    pub fn currency(&self) -> Option<Currency> {
        self.sources.book.map(|book| book.currency())
    }

    pub fn holes(&self) -> &[Hole] {
        &self.leaves.holes
    }

    pub fn input(&self) -> &'a ReportInput {
        self.sources.input
    }

    pub fn attempt(&self, number: u32) -> &'a ReportAttempt {
        &self.sources.input.attempts[number as usize]
    }

    /// The local day of a slot.
    pub fn day(&self, slot: u32) -> NaiveDate {
        self.sources.slots.slot(slot).view_day.expect("the slots of a checkpoint tell days apart")
    }

    /// The first number of an attempt that may have several.
    pub fn first_of(&self, number: u32) -> u32 {
        self.first[number as usize]
    }

    /// Every attempt, each once, in the order of their jobs and starts.
    pub fn attempts(&self) -> impl Iterator<Item = (u32, &'a ReportAttempt)> + '_ {
        self.runs.values().flatten().map(|number| (*number, self.attempt(*number)))
    }

    /// The run of its job that came before an attempt.
    pub fn run_before(&self, number: u32) -> Option<u32> {
        let runs = &self.runs[self.attempt(number).key.job()];
        let place = runs.iter().position(|run| *run == number)?;
        place.checked_sub(1).map(|before| runs[before])
    }

    /// The run of its job that came after an attempt.
    pub fn run_after(&self, number: u32) -> Option<u32> {
        let runs = &self.runs[self.attempt(number).key.job()];
        let place = runs.iter().position(|run| *run == number)?;
        runs.get(place + 1).copied()
    }

    /// Attempts that ended inside the days in one of some states.
    pub fn ended(&self, days: Days, is_one: impl Fn(JobState) -> bool) -> Vec<u32> {
        let during = days.interval(self.zone());
        let ended = |attempt: &ReportAttempt| {
            attempt.held.is_some_and(|held| during.start() < held.end() && held.end() <= during.end())
        };
        self.attempts()
            .filter(|(_, attempt)| is_one(attempt.state) && ended(attempt))
            .map(|(number, _)| number)
            .collect()
    }

    /// What was held in the days, by attempt and model, in the order of their keys.
    pub fn held(&self, days: Days) -> Vec<Held<'a>> {
        self.held_in(|slot| {
            let day = self.day(slot);
            match (day < days.first, day < days.end) {
                (true, _) => Era::Before,
                (false, true) => Era::Shown,
                (false, false) => Era::After,
            }
        })
    }

    /// What was held in the slots that `era_of` calls shown. `era_of`: where a slot lies to a stretch of time.
    pub fn held_in(&self, era_of: impl Fn(u32) -> Era) -> Vec<Held<'a>> {
        let mut eras = vec![[0i128; 3]; self.leaves.all().len()];
        let mut pieces: FxHashMap<(u32, Option<u32>), (Sum, i128)> = FxHashMap::default();
        for (cell, &leaf) in
            self.sources.input.cells.iter().zip(&self.leaf_of_cell).filter(|(_, leaf)| **leaf != NO_LEAF)
        {
            let era = era_of(cell.slot);
            let place = match era {
                Era::Before => 0,
                Era::Shown => 1,
                Era::After => 2,
            };
            eras[leaf as usize][place] += cell.billed_time.part_ms();
            if era != Era::Shown {
                continue;
            }
            let attempt = cell.attempt.map(|attempt| self.first[attempt as usize]);
            let (sum, billed_lost) = pieces.entry((leaf, attempt)).or_default();
            sum.held += cell.card_time;
            sum.billed += cell.billed_time;
            sum.unseen += cell.unseen;
            if let Some(used) = &cell.used {
                sum.used.add(used);
                *billed_lost += used.billed_lost.part_ms();
            }
        }
        let key = |attempt: &Option<u32>| attempt.map(|attempt| &self.attempt(attempt).key);
        let mut pieces: Vec<_> = pieces.into_iter().collect();
        pieces.sort_by(|((a_leaf, a), _), ((b_leaf, b), _)| a_leaf.cmp(b_leaf).then_with(|| key(a).cmp(&key(b))));
        let mut all: BTreeMap<(Option<u32>, Option<&'a Name>), Sum> = BTreeMap::new();
        for pieces in pieces.chunk_by_mut(|((a, _), _), ((b, _), _)| a == b) {
            let number = pieces[0].0.0 as usize;
            let leaf = &self.leaves.all()[number];
            let cost = leaf.cost.map(|cost| spread_by(cost.micros(), &eras[number])[1]);
            let weights: Vec<i128> = pieces.iter().map(|(_, (sum, _))| sum.billed.part_ms()).collect();
            let costs = cost.map(|cost| spread_by(cost, &weights));
            for (i, ((_, attempt), (sum, billed_lost))) in pieces.iter_mut().enumerate() {
                if let Some(costs) = &costs {
                    sum.cost = Some(costs[i]);
                    if *billed_lost > 0 {
                        sum.lost_cost = spread_by(costs[i], &[*billed_lost, sum.billed.part_ms() - *billed_lost])[0];
                    }
                }
                all.entry((*attempt, leaf.model)).or_default().add(sum);
            }
        }
        let mut held: Vec<Held<'a>> =
            all.into_iter().map(|((attempt, model), sum)| Held { attempt, model, sum }).collect();
        held.sort_by(|a, b| key(&a.attempt).cmp(&key(&b.attempt)).then(a.model.cmp(&b.model)));
        held
    }

    /// How long each attempt that started in the days had waited; those of which nobody knows when they were submitted, and those that went on from a run that was
    /// resized, had no wait that is known.
    pub fn waits(&self, days: Days) -> wait::Waits<'a> {
        let during = days.interval(self.zone());
        let from = self.sources.slots.covers().start();
        let mut waits = wait::Waits { started: Vec::new(), waiting: Vec::new(), unknown: 0 };
        for (number, attempt) in self.attempts() {
            let start = attempt.held.map(Interval::start);
            if start.is_some_and(|start| during.contains(start)) {
                let resized = self.run_before(number).is_some_and(|run| self.attempt(run).state == JobState::Resized);
                let wait = start.zip(attempt.submitted_at).map(|(start, submitted)| start.ms_since(submitted));
                match wait.filter(|wait| *wait >= 0 && !resized) {
                    Some(wait_ms) => waits.started.push(wait::Wait { number, attempt, wait_ms }),
                    None => waits.unknown += usize::from(!resized),
                }
            }
            let submitted_before = attempt.submitted_at.is_some_and(|at| from <= at && at < during.end());
            let still = match start {
                Some(start) => start >= during.end(),
                None => attempt.state == JobState::Pending,
            };
            if submitted_before && still {
                waits.waiting.push(attempt);
            }
        }
        waits
    }

    /// What was free in the days, by model, and what there was to be held.
    pub fn free(&self, days: Days) -> BTreeMap<Option<&'a Name>, Room> {
        let mut rooms: BTreeMap<Option<&'a Name>, Room> = BTreeMap::new();
        for cell in self.sources.input.cells.iter().filter(|cell| cell.state == cardhour_domain::CardState::Free) {
            if days.contains(self.day(cell.slot)) {
                rooms.entry(cell.model.as_ref()).or_default().free += cell.card_time;
            }
        }
        for cell in &self.sources.input.capacity {
            if days.contains(self.day(cell.slot)) {
                rooms.entry(cell.model.as_ref()).or_default().capacity += cell.card_time;
            }
        }
        rooms
    }
}

/// How much there was of a model, and how much of it nobody held.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    pub free: CardTime,
    pub capacity: CardTime,
}

/// Cards that an attempt asked for, else those it had.
pub(crate) fn asked(attempt: &ReportAttempt) -> CardShare {
    attempt.cards_requested.unwrap_or(attempt.cards)
}
