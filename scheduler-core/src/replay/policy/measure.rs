//! What a course came to: waits, card-hours, what was lost, and whether those who are guaranteed cards had them.
//!
//! Of a time, cut out of a course that may go on after it. A wait is from submission to the first start, of jobs that were submitted before the time's end and hadn't started before its beginning,
//! however late they start. Card-time is that inside of the time. *Asked* card-time is what was held and what was waited for: each job's cards from its submission to its end. *Owed* card-time
//! is, of a guarantee of `g` cards and at each instant, the lesser of `g` and what its owner asks for; *granted* the lesser of `g` and what it holds. So granted ÷ owed is the part of a guarantee
//! that was there when it was wanted.
//!
//! Start at [`measure`].

use super::{Course, Ending, HostChange, Trace};
use crate::names::Model;
use crate::snapshot::{Host, HostState};
use cardhour_domain::{CardShare, CardTime, Interval, Timestamp};
use std::collections::BTreeMap;

/// What a group of jobs came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// From submission to first start, in order of length. Unit: milliseconds.
    pub waits_ms: Vec<i64>,
    /// From submission to end, of the same jobs. Unit: milliseconds.
    pub completions_ms: Vec<i64>,
    /// Jobs that could never start.
    pub unstarted: u64,
    /// What was held.
    pub held: CardTime,
    /// What was held and what was waited for.
    pub asked: CardTime,
    /// Runs that gave way to others.
    pub preemptions: u64,
    /// Runs that went elsewhere to make room.
    pub moves: u64,
    /// What runs had held that gave way or moved, from their start on.
    pub lost: CardTime,
}

/// Cards of a model that somebody is guaranteed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// Jobs that count on it, by their place.
    pub jobs: Vec<usize>,
    /// Of which model.
    pub model: Model,
    /// How many.
    pub cards: CardShare,
}

/// What became of a guarantee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// What of it was asked for.
    pub owed: CardTime,
    /// What of it was held.
    pub granted: CardTime,
}

impl Figures {
    /// The mean wait, rounded half up. `None`: nobody started.
    pub fn mean_wait_ms(&self) -> Option<i64> {
        mean(&self.waits_ms)
    }

    /// The least wait that so many percent didn't exceed: by nearest rank. `None`: nobody started.
    pub fn wait_percentile_ms(&self, percent: usize) -> Option<i64> {
        let rank = (self.waits_ms.len() * percent).div_ceil(100);
        self.waits_ms.get(rank.max(1) - 1).copied()
    }

    /// Adds what other jobs came to.
    pub fn add(&mut self, other: Self) {
        self.waits_ms.extend(other.waits_ms);
        self.completions_ms.extend(other.completions_ms);
        self.waits_ms.sort_unstable();
        self.completions_ms.sort_unstable();
        self.unstarted += other.unstarted;
        self.held += other.held;
        self.asked += other.asked;
        self.preemptions += other.preemptions;
        self.moves += other.moves;
        self.lost += other.lost;
    }

    /// The mean time from submission to end, rounded half up. `None`: nobody started.
    pub fn mean_completion_ms(&self) -> Option<i64> {
        mean(&self.completions_ms)
    }
}

fn mean(all: &[i64]) -> Option<i64> {
    let (sum, count) = (all.iter().map(|one| i128::from(*one)).sum::<i128>(), all.len() as i128);
    let mean = (count > 0).then(|| (2 * sum + count).div_euclid(2 * count))?;
    i64::try_from(mean).ok()
}

/// How evenly groups were served, in millionths: Jain's index `(Σx)² ÷ (n × Σx²)` of each one's held ÷ asked. A million: all alike; a million ÷ n: one has everything. `None`: nobody asked.
pub fn evenness_ppm<'f>(groups: impl Iterator<Item = &'f Figures>) -> Option<u64> {
    let served: Vec<i128> = groups
        .filter(|group| !group.asked.is_zero())
        .map(|group| scaled(group.held.part_ms(), group.asked.part_ms()))
        .collect();
    let (sum, squares) = (served.iter().sum::<i128>(), served.iter().map(|one| one * one).sum::<i128>());
    (squares > 0).then(|| scaled(sum * sum, served.len() as i128 * squares) as u64)
}

/// A part of a whole in millionths, rounded down.
fn scaled(part: i128, whole: i128) -> i128 {
    // Card-time of a large pool over years, times a million, is still far within 128 bits.
    part * 1_000_000 / whole
}

/// What each group of jobs came to in `during`. `group_of`: the group of each job, by its place; a job without one is left out.
pub fn measure(
    trace: &Trace,
    course: &Course,
    during: Interval,
    group_of: &[Option<usize>],
) -> BTreeMap<usize, Figures> {
    let mut groups: BTreeMap<usize, Figures> = BTreeMap::new();
    let of_group = |place: usize| group_of.get(place).copied().flatten();
    for stretch in stretches(trace, course) {
        let Some(group) = of_group(stretch.job) else { continue };
        let Some(within) = stretch.during.overlap(during) else { continue };
        let figures = groups.entry(group).or_default();
        let time = CardTime::of(trace.jobs[stretch.job].cards(), within);
        figures.asked += time;
        if stretch.holds {
            figures.held += time;
        }
    }
    for run in &course.runs {
        let Some(group) = of_group(run.job).filter(|_| during.contains(run.to)) else { continue };
        let figures = groups.entry(group).or_default();
        match run.ending {
            Ending::Done => continue,
            Ending::GaveWay => figures.preemptions += 1,
            Ending::Moved => figures.moves += 1,
        }
        if let Some(whole) = Interval::new(run.from, run.to) {
            figures.lost += CardTime::of(trace.jobs[run.job].cards(), whole);
        }
    }
    for (place, (first, last)) in first_and_last(course) {
        let Some(group) = of_group(place) else { continue };
        let submitted = trace.jobs[place].ask.submitted;
        if submitted < during.end() && during.start() <= first {
            let figures = groups.entry(group).or_default();
            figures.waits_ms.push(first.ms_since(submitted).max(0));
            figures.completions_ms.push(last.ms_since(submitted).max(0));
        }
    }
    for place in &course.unstarted {
        if let Some(group) = of_group(*place) {
            groups.entry(group).or_default().unstarted += 1;
        }
    }
    for figures in groups.values_mut() {
        figures.waits_ms.sort_unstable();
        figures.completions_ms.sort_unstable();
    }
    groups
}

/// What became of a guarantee in `during`.
pub fn kept(trace: &Trace, course: &Course, during: Interval, guarantee: &Guarantee) -> Kept {
    let mut is_theirs = vec![false; trace.jobs.len()];
    guarantee.jobs.iter().for_each(|place| is_theirs[*place] = true);
    let (mut held, mut asked) = (Vec::new(), Vec::new());
    for stretch in stretches(trace, course) {
        let job = &trace.jobs[stretch.job];
        let model = stretch.model.or(job.ask.shape.models.first());
        let (true, true) = (is_theirs[stretch.job], model.is_none_or(|model| *model == guarantee.model)) else {
            continue;
        };
        let Some(within) = stretch.during.overlap(during) else { continue };
        let parts = job.cards().parts();
        let edges = [(within.start(), parts), (within.end(), -parts)];
        asked.extend(edges);
        if stretch.holds {
            held.extend(edges);
        }
    }
    Kept { owed: capped(asked, guarantee.cards), granted: capped(held, guarantee.cards) }
}

/// What all jobs held in `during`.
pub fn held(trace: &Trace, course: &Course, during: Interval) -> CardTime {
    let of_run = |run: &super::Run| {
        let within = Interval::new(run.from, run.to).and_then(|whole| whole.overlap(during));
        within.map(|within| CardTime::of(trace.jobs[run.job].cards(), within))
    };
    course.runs.iter().filter_map(of_run).sum()
}

/// The card-time of the hosts that could be used in `during`: those that are neither out nor taken out.
pub fn capacity(hosts: &[Host], changes: &[HostChange], during: Interval) -> CardTime {
    let mut of_host: BTreeMap<&str, Vec<(Timestamp, u32)>> = BTreeMap::new();
    let usable = |host: &Host| if host.state == HostState::Healthy { host.cards } else { 0 };
    for host in hosts {
        of_host.entry(host.name.as_str()).or_default().push((during.start(), usable(host)));
    }
    let mut sorted: Vec<&HostChange> = changes.iter().collect();
    sorted.sort_by_key(|change| change.at);
    for change in sorted {
        let cards = change.becomes.as_ref().map_or(0, usable);
        of_host.entry(change.name.as_str()).or_default().push((change.at.max(during.start()), cards));
    }
    let mut sum = CardTime::ZERO;
    for states in of_host.values() {
        let ends = states.iter().skip(1).map(|(at, _)| *at).chain([during.end()]);
        for ((from, cards), to) in states.iter().zip(ends) {
            if let Some(stretch) = Interval::new(*from, to.min(during.end())) {
                let share = CardShare::from_parts(i64::from(*cards) * CardShare::CARD.parts());
                sum += CardTime::of(share, stretch);
            }
        }
    }
    sum
}

/// A time in which a job held its cards, or waited for them.
struct Stretch<'a> {
    job: usize,
    during: Interval,
    holds: bool,
    model: Option<&'a Model>,
}

fn stretches<'a>(trace: &'a Trace, course: &'a Course) -> Vec<Stretch<'a>> {
    let mut of_job: BTreeMap<usize, Vec<&super::Run>> = BTreeMap::new();
    for run in &course.runs {
        of_job.entry(run.job).or_default().push(run);
    }
    let mut all = Vec::new();
    for (job, runs) in of_job {
        let mut since = trace.jobs[job].ask.submitted;
        for run in runs {
            let model = run.model.as_ref();
            all.extend(Interval::new(since, run.from).map(|during| Stretch { job, during, holds: false, model }));
            all.extend(Interval::new(run.from, run.to).map(|during| Stretch { job, during, holds: true, model }));
            since = run.to;
        }
    }
    all
}

fn first_and_last(course: &Course) -> BTreeMap<usize, (Timestamp, Timestamp)> {
    let mut of_job: BTreeMap<usize, (Timestamp, Timestamp)> = BTreeMap::new();
    for run in &course.runs {
        let (first, last) = of_job.entry(run.job).or_insert((run.from, run.to));
        *first = (*first).min(run.from);
        *last = (*last).max(run.to);
    }
    of_job
}

/// The card-time under a line that goes up and down at `edges`, of no more than `most` at once.
fn capped(mut edges: Vec<(Timestamp, i64)>, most: CardShare) -> CardTime {
    edges.sort_unstable();
    let (mut level, mut since, mut sum) = (0_i64, None::<Timestamp>, CardTime::ZERO);
    for (at, parts) in edges {
        if let Some(stretch) = since.and_then(|since| Interval::new(since, at)) {
            sum += CardTime::of(CardShare::from_parts(level.min(most.parts())), stretch);
        }
        level += parts;
        since = Some(at);
    }
    assert_eq!(level, 0, "what begins ends");
    sum
}
