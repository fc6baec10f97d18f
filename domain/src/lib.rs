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
//! | *device* | what a holder can be given: a card that is not cut, or a MIG instance |
//! | *sample* | what a device said over one tick, [`Sample`] |
//! | *holder* | a run of a job, session, process or virtual machine as a node sees it, [`Holder`] |
//! | *observation* | a node saw a holder have a device, [`Observation`] |
//! | *watch* | a node looked for holders of a card and missed none, [`Watch`] |
//! | *segment* | a sealed file of a node's spool, [`SegmentName`] |
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

mod activity;
mod card_time;
#[cfg(feature = "arrow")]
pub mod columns;
mod device;
mod energy;
mod holder;
mod ids;
mod interval;
mod iso4217;
mod money;
mod period;
mod reading;
mod sample;
mod segment;
#[cfg(feature = "serde")]
mod serialized;
mod share;
mod state;
mod timestamp;

pub use activity::Activity;
pub use card_time::CardTime;
pub use device::{EventKind, NodeEvent, SeenDevice};
pub use energy::{Millijoules, Milliwatts};
pub use holder::{Holder, HolderKind, HolderSource, Observation, Owner, Watch};
pub use ids::{AttemptKey, Name};
pub use interval::Interval;
pub use money::{Currency, Money, MoneyError, Rate, spread, spread_by};
pub use period::{Month, Zone, ZoneError};
pub use reading::{Gap, Reading};
pub use sample::{EnergyBasis, Percent, Sample, SampleSource, UseBasis};
pub use segment::{SegmentName, SegmentNameError, Stream};
pub use share::{CardShare, ShareError};
pub use state::{CardState, JobState};
pub use timestamp::{BUCKET_MS, Timestamp, TimestampError};
