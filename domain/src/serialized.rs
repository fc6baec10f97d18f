//! Words and units as serde writes them, for state that a program keeps for itself between two runs.
//!
//! Numbers are what the types hold inside (milliseconds, parts, thousandths), so that what was written is read as the same value. What can't be is
//! refused when it is read: an empty interval, 101 %. Not for tables or answers: those have their own columns and texts.

use crate::{AttemptKey, CardShare, CardTime, Gap, Interval, Percent, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A type as another that serde knows: how it is written, and how it is read again where that can be.
macro_rules! written_as {
    ($type:ty, $as:ty, $write:expr, $read:expr, $expected:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let write: fn(&Self) -> $as = $write;
                write(self).serialize(to)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let read: fn($as) -> Option<Self> = $read;
                read(<$as>::deserialize(from)?).ok_or_else(|| D::Error::custom(concat!("not ", $expected)))
            }
        }
    };
}

written_as!(Timestamp, i64, |at| at.unix_ms(), |ms| Some(Self::from_unix_ms(ms)), "an instant");
written_as!(
    Interval,
    (Timestamp, Timestamp),
    |during| (during.start(), during.end()),
    |(start, end)| Self::new(start, end),
    "a stretch of time"
);
written_as!(CardShare, i64, |share| share.parts(), |parts| Some(Self::from_parts(parts)), "parts of a card");
// 128 bits are more than numbers of JSON hold.
written_as!(
    CardTime,
    String,
    |time| time.part_ms().to_string(),
    |text| text.parse().ok().map(Self::from_part_ms),
    "card-time"
);
written_as!(Percent, i32, |percent| percent.thousandths(), Self::from_thousandths, "from 0 to 100 %");
written_as!(Gap, String, |gap| gap.name().to_owned(), |name| Self::from_name(&name), "the name of a gap");
written_as!(
    AttemptKey,
    String,
    |key| key.as_str().to_owned(),
    |key| Some(Self::from_stored(&key)),
    "the key of an attempt"
);
