//! Whether more was wanted than there is, or only in one place.
//!
//! Rules, in this order, for the report's month:
//!
//! | rule | verdict |
//! |---|---|
//! | nine of ten attempts started within 1 h of their submit, and no more than one in ten of those submitted still waited at the end | no queue |
//! | else, and nobody says how many cards there are | not known |
//! | else, and under 10 % of the capacity was free | real demand |
//! | else | local jam: of the queue with the longest p90 wait and the model with the longest; the free cards are of the model with the most free card-hours |
//!
//! The month's growth is told beside it: asked card-hours against the month before, as growth from +10 % on and as decline from −10 % on. An hour is what people
//! take for a queue that moves; a tenth is what placement of whole jobs leaves over in a pool that is full. Constants until two sites want others.

use super::cells::{hours_of_ms, percent, short};
use super::demand::Demand;
use cardhour_domain::{CardTime, Name};
use rust_decimal::Decimal;
use std::fmt;

/// A wait beyond which there is a queue. Unit: milliseconds.
const LONG_WAIT_MS: i64 = 3_600_000;
/// A pool of which less than this is free is full. Unit: percent of its capacity.
const FULL_BELOW_FREE_PERCENT: i128 = 10;
/// More or less by this part is growth or decline. Unit: percent of the month before.
const GROWTH_PERCENT: i128 = 10;

/// What a month was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Which of the four.
    pub cause: Cause,
    /// Asked card-hours of the month and of the month before.
    pub asked: (CardTime, CardTime),
    /// What nine of ten attempts waited at most; none where nothing started. Unit: milliseconds.
    pub p90_wait_ms: Option<i64>,
    /// Not started by the month's end.
    pub waiting: usize,
    /// Free ÷ capacity; none where capacity isn't known.
    pub free: Option<Decimal>,
}

/// Why jobs waited, or that they didn't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// They didn't.
    NoQueue,
    /// They did, and nobody says how many cards there are.
    NotKnown,
    /// They did, and the pool was full.
    RealDemand,
    /// They did, and cards were free elsewhere.
    LocalJam {
        /// The queue with the longest p90 wait, and that wait. Unit: milliseconds.
        queue: Option<(Option<Name>, i64)>,
        /// The model with the longest p90 wait, and that wait. Unit: milliseconds.
        model: Option<(Option<Name>, i64)>,
        /// The model with the most free card-hours, and these.
        free: Option<(Option<Name>, CardTime)>,
    },
}

impl Verdict {
    /// On the last of some months in a row.
    pub(super) fn of(demands: &[Demand<'_>]) -> Self {
        let [.., before, month] = demands else { unreachable!("a month and the one before, at least") };
        let p90_wait_ms = month.waits.percentile(90);
        let moves = p90_wait_ms.is_none_or(|wait| wait <= LONG_WAIT_MS) && month.waiting * 10 <= month.submitted;
        let capacity = month.room.capacity;
        let is_full = month.room.free.part_ms() * 100 < capacity.part_ms() * FULL_BELOW_FREE_PERCENT;
        let cause = if moves {
            Cause::NoQueue
        } else if capacity.is_zero() {
            Cause::NotKnown
        } else if is_full {
            Cause::RealDemand
        } else {
            let owned = |name: &Option<&Name>| name.cloned();
            // Of equal ones the first by name.
            let queues = month.queues.iter().filter_map(|(queue, of)| Some((owned(queue), of.waits.percentile(90)?)));
            let models = month.models.iter().filter_map(|(model, of)| Some((owned(model), of.waits.percentile(90)?)));
            let free = month.models.iter().map(|(model, of)| (owned(model), of.room.free));
            Cause::LocalJam {
                queue: queues.rev().max_by_key(|(_, wait)| *wait),
                model: models.rev().max_by_key(|(_, wait)| *wait),
                free: free.rev().max_by_key(|(_, free)| *free),
            }
        };
        Self {
            cause,
            asked: (month.asked, before.asked),
            p90_wait_ms,
            waiting: month.waiting,
            free: month.room.free.ratio_of(capacity),
        }
    }

    fn growth(&self) -> String {
        let (this, before) = self.asked;
        let Some(change) = (this - before).ratio_of(before) else {
            return "the month before asked for nothing to compare it with".to_owned();
        };
        let percents = Decimal::from(GROWTH_PERCENT as i64) / Decimal::ONE_HUNDRED;
        let word = if change >= percents {
            "more was asked for than in the month before"
        } else if change <= -percents {
            "less was asked for than in the month before"
        } else {
            "about as much was asked for as in the month before"
        };
        let sign = if change.is_sign_negative() { "\u{2212}" } else { "+" };
        format!("{word}: {} card-hours, {sign}{}", short(this.card_hours()), percent(change.abs()))
    }

    fn waited(&self) -> String {
        let wait = match self.p90_wait_ms {
            Some(wait) => format!("nine of ten attempts started within {} h", short(hours_of_ms(wait))),
            None => "nothing started whose wait is known".to_owned(),
        };
        format!("{wait}, {} still waited at the end", self.waiting)
    }
}

/// One sentence or two, with the figures they rest on.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (growth, waited) = (self.growth(), self.waited());
        let free = self.free.map_or_else(String::new, |free| format!("{} of the capacity was free", percent(free)));
        let named = |name: &Option<Name>| name.as_deref().unwrap_or("(none)").to_owned();
        match &self.cause {
            Cause::NoQueue => write!(f, "No queue: {waited}. {}.", sentence(&growth)),
            Cause::NotKnown => write!(
                f,
                "Jobs waited, and whether for lack of cards is not known, since nobody says how many there are (cardhour import nodes): {waited}. {}.",
                sentence(&growth)
            ),
            Cause::RealDemand => write!(f, "Real demand: {waited}, and only {free}. {}.", sentence(&growth)),
            Cause::LocalJam { queue, model, free: most } => {
                write!(f, "A local jam: {waited}, while {free}")?;
                if let Some((model, time)) = most {
                    write!(f, ", most of it {} ({} card-hours)", named(model), short(time.card_hours()))?;
                }
                write!(f, ". Longest waited ")?;
                let mut places = Vec::new();
                if let Some((queue, wait)) = queue {
                    places.push(format!("queue {} (p90 {} h)", named(queue), short(hours_of_ms(*wait))));
                }
                if let Some((model, wait)) = model {
                    places.push(format!("model {} (p90 {} h)", named(model), short(hours_of_ms(*wait))));
                }
                let places = if places.is_empty() { "what has not started".to_owned() } else { places.join(", ") };
                write!(f, "{places}. {}.", sentence(&growth))
            }
        }
    }
}

/// With a capital.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
