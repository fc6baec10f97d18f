//! Where seen time went, and the energy that cards drew.

use cardhour_domain::{CardTime, UseBasis};

/// What telemetry says of some time: the split of what was seen of it, and its energy (design §3).
///
/// `held = unseen + lost + idle + effective + underused`. Of time that nobody held there is energy alone. Every field is a sum: two add up to that of
/// both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Its attempt failed, was preempted or met a sick card, and the work since the last seen checkpoint is gone.
    pub lost: CardTime,
    /// All signals under their floors (design §4.4).
    pub idle: CardTime,
    /// The busy part, at most the share.
    pub effective: CardTime,
    /// The rest of what was seen.
    pub underused: CardTime,
    /// Of the idle time, what is billed.
    pub billed_idle: CardTime,
    /// Of the busy time, what is billed.
    pub billed_effective: CardTime,
    /// Of the lost time, what is billed.
    pub billed_lost: CardTime,
    /// Seen time whose use was read from SM activity.
    pub seen_by_gpm: CardTime,
    /// Seen time whose use was read from the duty cycle.
    pub seen_by_duty_cycle: CardTime,
    /// Seen time of which both told a part, and nobody keeps which.
    pub seen_by_both: CardTime,
    /// None where nobody measured it: never zero for that. Where a part was measured, that part's. Unit: millijoules.
    pub energy_mj: Option<i128>,
    /// The time whose energy that is, by quarter hours: all of a row that has any, whether or not its use was seen.
    pub measured: CardTime,
}

/// What told how busy some seen time was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenBy {
    /// One basis all the time.
    One(UseBasis),
    /// One for some of it, another for the rest.
    Both,
}

impl SeenBy {
    /// Its name in tables and reports: the basis's, or `mixed`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One(basis) => basis.name(),
            Self::Both => "mixed",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == Self::Both.name() { Some(Self::Both) } else { UseBasis::from_name(name).map(Self::One) }
    }
}

impl Used {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        self.idle += other.idle;
        self.effective += other.effective;
        self.underused += other.underused;
        self.billed_idle += other.billed_idle;
        self.billed_effective += other.billed_effective;
        self.billed_lost += other.billed_lost;
        self.seen_by_gpm += other.seen_by_gpm;
        self.seen_by_duty_cycle += other.seen_by_duty_cycle;
        self.seen_by_both += other.seen_by_both;
        self.measured += other.measured;
        if let Some(energy) = other.energy_mj {
            let sum = self.energy_mj.get_or_insert(0);
            *sum = sum.checked_add(energy).expect("LED-10: energy fits 128 bits");
        }
    }

    /// What was seen: all of the split.
    pub fn seen(&self) -> CardTime {
        self.lost + self.idle + self.effective + self.underused
    }

    /// The seen time that a basis told of, to add to.
    pub fn seen_by(&mut self, basis: SeenBy) -> &mut CardTime {
        match basis {
            SeenBy::One(UseBasis::Gpm) => &mut self.seen_by_gpm,
            SeenBy::One(UseBasis::DutyCycle) => &mut self.seen_by_duty_cycle,
            SeenBy::Both => &mut self.seen_by_both,
        }
    }

    /// What told how busy all of it was; none where nothing was seen.
    pub fn basis(&self) -> Option<SeenBy> {
        let has = |time: CardTime| !time.is_zero();
        match (has(self.seen_by_gpm), has(self.seen_by_duty_cycle), has(self.seen_by_both)) {
            (false, false, false) => None,
            (true, false, false) => Some(SeenBy::One(UseBasis::Gpm)),
            (false, true, false) => Some(SeenBy::One(UseBasis::DutyCycle)),
            (true, true, _) | (_, _, true) => Some(SeenBy::Both),
        }
    }
}
