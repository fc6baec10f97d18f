//! A value read off the world, or the reason there is none.

/// A value, or the reason there is none (LED-3).
///
/// A gap is never a zero: an idle card and a card nobody could read are judged and billed differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// The driver answered with an error.
    DriverError,
    /// The card has fallen off the bus.
    CardLost,
    /// No collector was running.
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
    /// Its name in tables and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotSupported => "not_supported",
            Self::DriverError => "driver_error",
            Self::CardLost => "card_lost",
            Self::CollectorDown => "collector_down",
            Self::NotRecorded => "not_recorded",
        }
    }
}
