//! Usage folded for a report: the sums of the buckets that no question of the report tells apart.

mod used;

pub use used::{SeenBy, Used};

use cardhour_domain::{CardShare, CardState, CardTime, Name};
use num_bigint::BigInt;

/// The sum of some rows of `usage`: those of one attempt (or of none), one place and one slot of time.
///
/// A *slot* is a set of buckets with the same month, prices and price window, numbered by [`crate::slots::Slots`]. Texts that many
/// cells share are best one [`Name`]: reports know an equal text again much faster when it is the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index into the report's attempts; none for time that nobody held.
    pub attempt: Option<u32>,
    /// What the cards were.
    pub state: CardState,
    /// Cluster.
    pub cluster: Name,
    /// Pool.
    pub pool: Option<Name>,
    /// Node.
    pub node: Option<Name>,
    /// Model.
    pub model: Option<Name>,
    /// MIG profile.
    pub mig_profile: Option<Name>,
    /// The share of a card that is held, where it is less than one; none for whole cards. Prices may select by it.
    pub share: Option<CardShare>,
    /// The reservation, for reserved time.
    pub reservation: Option<Name>,
    /// The reservation itself: index into the report's, of which several can have one name ([`crate::set_aside`]). None where nobody lists it.
    pub set_aside: Option<u32>,
    /// Slot of time.
    pub slot: u32,
    /// Time held, or in the state.
    pub card_time: CardTime,
    /// Of it, what is billed.
    pub billed_time: CardTime,
    /// Of the held time, what nobody has telemetry for (LED-3).
    pub unseen: CardTime,
    /// Of the held time, what is estimated rather than proven by accounting or observation.
    pub unproven: CardTime,
    /// Where the rest of the held time went, and what energy was measured; none where nobody saw or measured anything, as in all cells
    /// of a site without telemetry, which are not to grow by it.
    pub used: Option<Box<Used>>,
}

/// The figures of one row of the table `usage`, absent ones as zero where the table has them absent for the whole site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageFigures {
    /// Time held, or in the state.
    pub card_time: CardTime,
    /// Of it, what is billed.
    pub billed_time: CardTime,
    /// Of the held time, what nobody has telemetry for.
    pub unseen: CardTime,
    /// Of the seen time, work that is gone.
    pub lost: CardTime,
    /// Of the seen time, idle.
    pub idle: CardTime,
    /// Of the seen time, busy.
    pub effective: CardTime,
    /// Of the seen time, the rest.
    pub underused: CardTime,
    /// What told how busy it was; none where nothing was seen.
    pub use_basis: Option<SeenBy>,
    /// Energy of its share of the card; none where nobody measured it. Unit: millijoules.
    pub energy_mj: Option<i64>,
}

impl Cell {
    /// Adds a row of `usage`.
    ///
    /// What of its idle, busy and lost time is billed is settled here, on the row as the books have it, where billed time is all of the time or, in an outage's
    /// first and last quarter hour, a part that is taken to be spread evenly: so no report's grouping has a say in it (LED-6).
    pub fn add(&mut self, row: &UsageFigures) {
        self.card_time += row.card_time;
        self.billed_time += row.billed_time;
        self.unseen += row.unseen;
        let UsageFigures { lost, idle, effective, underused, energy_mj, .. } = *row;
        let seen = lost + idle + effective + underused;
        if seen.is_zero() && energy_mj.is_none() {
            return;
        }
        let used = self.used.get_or_insert_default();
        let billed = |time| billed_part(time, row.billed_time, row.card_time);
        // Energy is of the card: it is known also where nobody can tell what a holder did.
        let measured = if energy_mj.is_some() { row.card_time } else { CardTime::ZERO };
        used.add(&Used {
            lost,
            idle,
            effective,
            underused,
            billed_idle: billed(idle),
            billed_effective: billed(effective),
            billed_lost: billed(lost),
            energy_mj: energy_mj.map(i128::from),
            measured,
            ..Used::default()
        });
        if let Some(basis) = row.use_basis {
            *used.seen_by(basis) += seen;
        }
    }
}

/// Of a part of a row's time what is billed: `part` × `billed` ÷ `held`, rounded down, so that it is more than neither.
///
/// None of a row whose parts are more than its whole: no such row is made, but `verify` has to read one, to name it.
pub(crate) fn billed_part(part: CardTime, billed: CardTime, held: CardTime) -> CardTime {
    let is_part = |time: CardTime| CardTime::ZERO <= time && time <= held;
    if !is_part(part) || !is_part(billed) {
        return CardTime::ZERO;
    }
    if billed == held {
        return part;
    }
    let billed = BigInt::from(part.part_ms()) * billed.part_ms() / held.part_ms();
    CardTime::from_part_ms(i128::try_from(billed).expect("no more than what it is a part of"))
}

#[cfg(test)]
mod tests;
