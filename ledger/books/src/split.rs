//! Where held time went: unseen, lost, idle, effective, underused (design §3).
//!
//! `held = unseen + lost + idle + effective + underused`, exactly, the first that matches. How busy a device was over a tick makes a share of the
//! card, rounded down to whole parts; after that all is whole parts × milliseconds, so that cutting a holding anywhere changes no sum (LED-7).
//!
//! Start at [`split`]. Does not: find what is idle (that is [`crate::idle`]), bill, or hold the rows of what nobody looked at.

mod busy;
mod segments;
mod sums;

use crate::holdings::Holding;
use crate::idle::Idle;
use crate::report::is_failed;
use crate::telemetry::Telemetry;
use busy::BusyParts;
use cardhour_domain::{AttemptKey, CardShare, CardTime, Interval, JobState, Name, Timestamp, UseBasis};
use std::collections::BTreeMap;
use sums::Sums;

pub(crate) use segments::{by_card, by_device, segments};

/// What the split asks of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptFacts {
    /// Its class: it sets the grace before anything of it is idle.
    pub class: Option<Name>,
    /// How it ended.
    pub state: JobState,
    /// The last checkpoint that was seen.
    pub checkpoint_at: Option<Timestamp>,
}

/// Where the time of one holding went in one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitRow {
    /// The bucket.
    pub bucket_start: Timestamp,
    /// Index of the holding.
    pub holding: u32,
    /// What the use was read from.
    pub basis: RowBasis,
    /// The busy part, at most the share.
    pub effective: CardTime,
    /// Seen, and not busy.
    pub underused: CardTime,
    /// Idle.
    pub idle: CardTime,
    /// Its work is gone.
    pub lost: CardTime,
    /// Nothing tells what it did.
    pub unseen: CardTime,
}

/// What the use in a row was read from.
///
/// A row is one holding and one bucket, also where the basis changes in it: two rows would need its bill and its energy cut in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowBasis {
    /// Nothing of it was seen.
    Unseen,
    /// All that was seen is of one basis.
    One(UseBasis),
    /// Of both: not to be compared with either.
    Mixed,
}

impl RowBasis {
    /// Its name in `usage.use_basis`; none where nothing was seen.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Unseen => None,
            Self::One(basis) => Some(basis.name()),
            Self::Mixed => Some("mixed"),
        }
    }

    /// With what else was seen.
    fn and(self, basis: UseBasis) -> Self {
        match self {
            Self::Unseen => Self::One(basis),
            Self::One(own) if own == basis => self,
            Self::One(_) | Self::Mixed => Self::Mixed,
        }
    }
}

impl SplitRow {
    /// A row of which nothing was seen.
    pub const fn unseen(bucket_start: Timestamp, holding: u32, held: CardTime) -> Self {
        let none = CardTime::ZERO;
        let basis = RowBasis::Unseen;
        Self { bucket_start, holding, basis, effective: none, underused: none, idle: none, lost: none, unseen: held }
    }

    /// All of it.
    pub fn held(&self) -> CardTime {
        self.effective + self.underused + self.idle + self.lost + self.unseen
    }
}

/// A holder was busier in a bucket than its share allows: a row of `conflicts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OverShare {
    /// Index of the holding.
    pub holding: u32,
    /// The bucket.
    pub bucket_start: Timestamp,
    /// By how much, tick by tick: bursts beyond the share aren't set off against rests below it.
    pub over: CardTime,
}

/// Where held time went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// By holding, then bucket. Only buckets in which something was seen: what has no row is unseen as a whole ([`Self::of`]).
    pub rows: Vec<SplitRow>,
    /// By holding, then bucket.
    pub over_share: Vec<OverShare>,
}

impl Split {
    /// The row of a holding and bucket of which `held` was held.
    pub fn of(&self, holding: u32, bucket_start: Timestamp, held: CardTime) -> SplitRow {
        match self.rows.binary_search_by_key(&(holding, bucket_start), |row| (row.holding, row.bucket_start)) {
            Ok(found) => {
                let row = self.rows[found];
                assert_eq!(row.held(), held, "where held time went adds up to what was held, holding {holding}");
                row
            }
            Err(_) => SplitRow::unseen(bucket_start, holding, held),
        }
    }
}

/// Whether the work of an attempt that ended so is gone: it failed, or gave way without choosing to.
pub fn loses_work(state: JobState) -> bool {
    is_failed(state) || matches!(state, JobState::Preempted | JobState::Requeued)
}

/// Where the time of `holdings` went, over `spans` (on quarter hours, disjoint, ascending).
///
/// `facts`: of attempts that aren't in it, nothing is known. A device with one holder is as busy as its holder. Of several, each is as busy as its
/// processes were, scaled down where they add up to more than the device was (K18); one of which nothing tells is unseen, unless the device did
/// nothing at all.
pub fn split(
    holdings: &[Holding],
    facts: &BTreeMap<AttemptKey, AttemptFacts>,
    idle: &Idle,
    telemetry: &Telemetry,
    spans: &[Interval],
) -> Split {
    let mut all: Vec<Sums<'_>> = Vec::new();
    for ((card, device), on) in by_device(holdings) {
        let ticks = telemetry.device(card, device);
        if ticks.is_empty() {
            continue;
        }
        let first_sum = all.len();
        all.extend(on.iter().map(|&index| {
            let holding = &holdings[index as usize];
            let lost_from = facts
                .get(&holding.claim.key)
                .filter(|facts| loses_work(facts.state))
                .map(|facts| facts.checkpoint_at.unwrap_or(holding.claim.during.start().min(holding.during.start())));
            let idle = idle.by_holding.get(&index).map(Vec::as_slice).unwrap_or_default();
            Sums::new(index, holding, spans, idle, lost_from)
        }));
        let sums = &mut all[first_sum..];
        let mut busy = BusyParts::new(holdings, &on, telemetry, device);
        let mut at = 0;
        segments(holdings, &on, |during, active| {
            busy.choose(active);
            // Segments ascend, so that a tick that ended before this one is of no use to the next.
            while ticks.get(at).is_some_and(|tick| tick.during.end() <= during.start()) {
                at += 1;
            }
            for tick in ticks[at..].iter().take_while(|tick| tick.during.start() < during.end()) {
                let Some(piece) = tick.during.overlap(during) else { continue };
                for &(place, part) in busy.of(tick) {
                    sums[place].add(piece, part, tick.use_basis);
                }
            }
        });
    }
    all.sort_by_key(|sums| sums.holding);
    let mut split = Split::default();
    for sums in all {
        sums.finish(&mut split);
    }
    split
}

/// `numerator` ÷ `denominator` of `whole`, rounded down to parts: sums of such parts pass no whole.
fn part_of(whole: CardShare, numerator: i64, denominator: i64) -> CardShare {
    let parts = i128::from(whole.parts()) * i128::from(numerator) / i128::from(denominator);
    CardShare::from_parts(i64::try_from(parts).expect("a part is no larger than the whole"))
}

#[cfg(test)]
mod tests;
