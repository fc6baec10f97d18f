//! Readings of one device, in any order and from several sources, to one timeline.

use super::{DeviceTick, HolderTick, before};
use cardhour_domain::{EnergyBasis, Interval, Millijoules, Percent, SampleSource, Timestamp};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Where a version of an instant stands among others, the one that counts first.
pub(super) fn order(tick: &DeviceTick) -> impl Ord {
    (
        tick.tells_energy_alone(),
        tick.source,
        Reverse((tick.tells_use(), tick.during.length_ms(), tick.known())),
        tick.clone(),
    )
}

/// What ticks of devices and of holders have in common.
pub(super) trait Tick: Clone + Ord {
    fn during(&self) -> Interval;
    fn source(&self) -> SampleSource;
    /// Whether it tells how much the device was used.
    fn tells_use(&self) -> bool;
    /// Whether it tells how much was drawn and nothing else.
    fn tells_energy_alone(&self) -> bool;
    /// The same reading, speaking for a stretch a little longer or shorter.
    fn set_during(&mut self, during: Interval);
    /// The part of it that falls into `during`: rates stay, amounts are cut in proportion.
    fn piece(&self, during: Interval) -> Self;
    /// How many values it has: of two that tell of the same time the one that knows more counts.
    fn known(&self) -> usize;
    /// Another source says something else of the same time.
    fn contradicted_by(&mut self, other: &Self);
}

/// Neighbours whose ends lie apart by less than this part of a tick meet: timers are that uneven, and a hole is more than that.
const JITTER: i64 = 20;

/// One timeline, and what it doesn't count with whose it was.
pub(super) fn settle<T: Tick>(mut ticks: Vec<T>) -> (Vec<T>, Vec<(SampleSource, Interval)>) {
    if !ticks.is_sorted() {
        ticks.sort();
    }
    ticks.dedup();
    meet_within_a_source(&mut ticks);
    let mut shadowed: BTreeMap<SampleSource, Vec<Interval>> = BTreeMap::new();
    if !are_disjoint(&ticks) {
        // The best first: by source, then what tells use. What tells energy alone, of a time in which the collector was down, hides nobody who was there.
        let mut layers: BTreeMap<(bool, SampleSource, Reverse<bool>), Vec<T>> = BTreeMap::new();
        for tick in ticks {
            let rank = (tick.tells_energy_alone(), tick.source(), Reverse(tick.tells_use()));
            layers.entry(rank).or_default().push(tick);
        }
        ticks = Vec::new();
        for ((_, source, _), layer) in layers {
            let hidden = shadowed.entry(source).or_default();
            let layer = longest_first(layer, hidden);
            lay_under(&mut ticks, layer, hidden);
        }
    }
    for i in 1..ticks.len() {
        meet(&mut ticks, i - 1, i);
    }
    let union = |(source, all)| Interval::union(all).into_iter().map(move |during| (source, during));
    (ticks, shadowed.into_iter().flat_map(union).collect())
}

/// Lets each tick meet the next of its source.
fn meet_within_a_source<T: Tick>(ticks: &mut [T]) {
    let mut last: [Option<usize>; 3] = [None; 3];
    for i in 0..ticks.len() {
        let before = last[ticks[i].source() as usize].replace(i);
        if let Some(before) = before {
            meet(ticks, before, i);
        }
    }
}

/// Moves the end of the earlier tick to the start of the later one, where they all but meet. Starts never move, so that each end depends on
/// its neighbour alone.
fn meet<T: Tick>(ticks: &mut [T], earlier: usize, later: usize) {
    let (first, next) = (ticks[earlier].during(), ticks[later].during());
    let apart = next.start().ms_since(first.end()).abs();
    let near = apart * JITTER < first.length_ms().min(next.length_ms());
    if apart != 0
        && near
        && let Some(during) = Interval::new(first.start(), next.start())
    {
        ticks[earlier].set_during(during);
    }
}

fn are_disjoint<T: Tick>(ticks: &[T]) -> bool {
    ticks.windows(2).all(|pair| pair[0].during().end() <= pair[1].during().start())
}

/// Of ticks of one rank that overlap, the longest counts, then the one that knows more, then the smallest; of the others what is left.
fn longest_first<T: Tick>(mut ticks: Vec<T>, hidden: &mut Vec<Interval>) -> Vec<T> {
    if are_disjoint(&ticks) {
        return ticks;
    }
    ticks.sort_by(|a, b| {
        let order = |tick: &T| Reverse((tick.during().length_ms(), tick.known()));
        order(a).cmp(&order(b)).then_with(|| a.cmp(b))
    });
    let mut taken: BTreeMap<Timestamp, Timestamp> = BTreeMap::new();
    let mut kept = Vec::with_capacity(ticks.len());
    for tick in ticks {
        let whole = tick.during();
        let mut at = whole.start();
        // What is taken doesn't overlap, so that only the last one before its start can reach into it.
        let first = taken.range(..=at).next_back().map_or(at, |(start, _)| *start);
        let across: Vec<(Timestamp, Timestamp)> =
            taken.range(first..whole.end()).map(|(start, end)| (*start, *end)).collect();
        for (start, end) in across.into_iter().chain([(whole.end(), whole.end())]) {
            if let Some(free) = Interval::new(at, start) {
                kept.push(tick.piece(free));
                taken.insert(free.start(), free.end());
            }
            hidden.extend(Interval::new(at.max(start), end.min(whole.end())));
            at = at.max(end);
        }
    }
    kept.sort();
    kept
}

/// Fills the holes of `better` with what `worse` has there.
fn lay_under<T: Tick>(better: &mut Vec<T>, worse: Vec<T>, hidden: &mut Vec<Interval>) {
    let mut filled = Vec::new();
    let mut first = 0;
    for tick in worse {
        let whole = tick.during();
        while better.get(first).is_some_and(|b| b.during().end() <= whole.start()) {
            first += 1;
        }
        let mut at = whole.start();
        for above in better[first..].iter_mut().take_while(|b| b.during().start() < whole.end()) {
            let over = above.during();
            if let Some(free) = Interval::new(at, over.start()) {
                filled.push(tick.piece(free));
            }
            let both = over.overlap(whole).expect("it begins before the other ends");
            if both.length_ms() * 2 >= over.length_ms().min(whole.length_ms()) {
                above.contradicted_by(&tick);
            }
            hidden.push(both);
            at = over.end();
        }
        if let Some(free) = Interval::new(at, whole.end()) {
            filled.push(if free == whole { tick } else { tick.piece(free) });
        }
    }
    better.append(&mut filled);
    better.sort();
}

/// The part of an amount over `whole` that falls into `piece`.
fn part(amount: Option<i64>, whole: Interval, piece: Interval) -> Option<i64> {
    amount.map(|amount| before(amount, whole, piece.end()) - before(amount, whole, piece.start()))
}

impl Tick for DeviceTick {
    fn during(&self) -> Interval {
        self.during
    }

    fn source(&self) -> SampleSource {
        self.source
    }

    fn tells_use(&self) -> bool {
        self.sm_active.is_some()
    }

    fn tells_energy_alone(&self) -> bool {
        let values = [self.sm_active, self.mem_active, self.media_active].iter().flatten().count();
        let amounts = [self.mem_used_bytes, self.link_bytes, self.power.map(|p| p.0)].iter().flatten().count();
        self.energy.is_some() && !self.suspect && values + amounts == 0
    }

    fn set_during(&mut self, during: Interval) {
        self.during = during;
    }

    fn piece(&self, during: Interval) -> Self {
        Self {
            during,
            link_bytes: part(self.link_bytes, self.during, during),
            energy: part(self.energy.map(|e| e.0), self.during, during).map(Millijoules),
            ..self.clone()
        }
    }

    fn known(&self) -> usize {
        let whole = [self.sm_active, self.mem_active, self.media_active].iter().flatten().count();
        let amounts = [self.mem_used_bytes, self.link_bytes, self.power.map(|p| p.0), self.energy.map(|e| e.0)];
        // A counter knows energy, power estimates it.
        let is_counted = self.energy.is_some() && self.energy_basis == EnergyBasis::Counter;
        whole + amounts.iter().flatten().count() + usize::from(is_counted)
    }

    fn contradicted_by(&mut self, other: &Self) {
        // C04: one says that nothing runs, the other that something does. One that is busy isn't idle, whatever the other says.
        let floor = Percent::WHOLE.thousandths() / 50;
        let nothing = self.sm_active.is_some_and(|percent| percent.thousandths() < floor);
        let something = other.sm_active.is_some_and(|percent| percent.thousandths() > 2 * floor);
        self.suspect |= nothing && (something || other.suspect);
    }
}

impl Tick for HolderTick {
    fn during(&self) -> Interval {
        self.during
    }

    fn source(&self) -> SampleSource {
        // Only our own collector looks at processes.
        SampleSource::Collector
    }

    fn tells_use(&self) -> bool {
        self.sm_active.is_some()
    }

    fn tells_energy_alone(&self) -> bool {
        false
    }

    fn set_during(&mut self, during: Interval) {
        self.during = during;
    }

    fn piece(&self, during: Interval) -> Self {
        Self {
            during,
            cpu_ms: part(self.cpu_ms, self.during, during),
            io_bytes: part(self.io_bytes, self.during, during),
            ..self.clone()
        }
    }

    fn known(&self) -> usize {
        let amounts = [self.mem_used_bytes, self.cpu_ms, self.io_bytes];
        amounts.iter().flatten().count()
            + usize::from(self.sm_active.is_some())
            + usize::from(self.is_attended.is_some())
    }

    fn contradicted_by(&mut self, _: &Self) {}
}
