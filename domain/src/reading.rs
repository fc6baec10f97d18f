//! A value read off the world, or the reason there is none.

/// A value, or the reason there is none (LED-3).
///
/// A gap is never a zero: an idle card and a card nobody could read are judged and billed differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Reading<T> {
    /// What was read.
    Seen(T),
    /// Why nothing was.
    Missing(Gap),
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gap {
    /// The card has no such counter.
    NotSupported,
    /// The caller may not read it.
    NoPermission,
    /// The driver answered with an error.
    DriverError,
    /// The driver didn't answer in time.
    TimedOut,
    /// The source gives the same old value again and again: its own time stands still.
    Stale,
    /// What was read can't be: garbage, or two signals that contradict each other.
    Implausible,
    /// Another profiler has the counters.
    CountersTaken,
    /// The card has fallen off the bus.
    CardLost,
    /// The kernel has put the card to sleep, and to ask would wake it.
    Asleep,
    /// No collector was running, or it had nothing yet to compare a counter with.
    CollectorDown,
    /// The source has no such field: records of a scheduler say nothing of use.
    NotRecorded,
}

impl<T> Reading<T> {
    /// The value, where one was read.
    pub fn seen(self) -> Option<T> {
        match self {
            Self::Seen(value) => Some(value),
            Self::Missing(_) => None,
        }
    }

    /// The same with the value changed; a gap stays the gap it is.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Seen(value) => Reading::Seen(change(value)),
            Self::Missing(gap) => Reading::Missing(gap),
        }
    }
}

impl Gap {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::NotSupported,
        Self::NoPermission,
        Self::DriverError,
        Self::TimedOut,
        Self::Stale,
        Self::Implausible,
        Self::CountersTaken,
        Self::CardLost,
        Self::Asleep,
        Self::CollectorDown,
        Self::NotRecorded,
    ];

    /// The gap of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|gap| gap.name() == name)
    }

    /// Its name in tables and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotSupported => "not_supported",
            Self::NoPermission => "no_permission",
            Self::DriverError => "driver_error",
            Self::TimedOut => "timed_out",
            Self::Stale => "stale",
            Self::Implausible => "implausible",
            Self::CountersTaken => "counters_taken",
            Self::CardLost => "card_lost",
            Self::Asleep => "asleep",
            Self::CollectorDown => "collector_down",
            Self::NotRecorded => "not_recorded",
        }
    }
}
