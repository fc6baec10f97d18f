//! The words and units that every other crate of cardhour speaks.
//!
//! What this crate does not do: no input or output, no clock, no async, no floats in anything that is
//! summed. Time comes in as an argument.
//!
//! # Glossary
//!
//! | word | meaning |
//! |---|---|
//! | *card* | a physical GPU, known by its UUID, never by its index |
//! | *share* | a part of a card, [`CardShare`] |
//! | *attempt* | one run of a job; what a card is given to |
//! | *holding* | an attempt has a share of a card over a half-open stretch of time |
//! | *held* | has a holder. Held is not used |
//! | *bucket* | a quarter hour of UTC, the grain of the `usage` table |
//! | *as of* | the last moment a source vouches for |
//!
//! # Units
//!
//! | quantity | type | unit inside | shown as |
//! |---|---|---|---|
//! | instant | [`Timestamp`] | milliseconds since 1970-01-01T00:00:00Z | RFC 3339, UTC |
//! | share | [`CardShare`] | parts, 18,018,000 to the card | a fraction |
//! | card-time | [`CardTime`] | parts × milliseconds, 128 bits | card-hours, six decimals |
//! | money | [`Money`] | millionths of the currency, 128 bits | the currency's own decimals |
//! | energy | [`Millijoules`] | millijoules | kWh |
//! | activity | [`Percent`] | thousandths of a percent | percent |
//!
//! Start reading at [`CardTime`]: every figure on a statement is one of those times a price.

mod card_time;
mod energy;
mod ids;
mod interval;
mod iso4217;
mod money;
mod period;
mod reading;
mod sample;
mod share;
mod state;
mod timestamp;

pub use card_time::CardTime;
pub use energy::{Millijoules, Milliwatts};
pub use ids::{AttemptKey, Name};
pub use interval::Interval;
pub use money::{Currency, Money, MoneyError, Rate, spread, spread_by};
pub use period::{Month, Zone, ZoneError};
pub use reading::{Gap, Reading};
pub use sample::{Percent, Sample, SampleSource, UseBasis};
pub use share::{CardShare, ShareError};
pub use state::{CardState, JobState};
pub use timestamp::{BUCKET_MS, Timestamp, TimestampError};
