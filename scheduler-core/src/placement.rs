//! Which host and which of its cards a request should have.
//!
//! A [`Placer`] is a pool of [`Host`]s and a [`Policy`]; it is asked for a [`Place`] and told when one is taken or given back. The published rules
//! (random to fragmentation gradient descent) are here to be compared with; ours is [`Policy::Cardhour`].
//!
//! What isn't here: who may have a card at all, and gangs over several hosts. Memory decides whether a request fits and nothing else.
//!
//! Units: cards and cores in thousandths, memory in MiB. All scores are whole numbers, compared as such; where a published rule has a sigmoid, it is held
//! against a table of its edges (`sigmoid`), and where it has fractions, both sides are multiplied out. Among hosts of one score the first in the
//! given order is chosen: a fixed order packs, a fresh draw for each tie would scatter.

mod fragmentation;
mod mix;
mod placer;
mod policy;
mod pool;
mod rating;
mod sigmoid;
#[cfg(test)]
mod tests;

pub use fragmentation::Yardstick;
pub use mix::{Kind, TypicalMix};
pub use placer::{Place, Placer};
pub use policy::Policy;
pub use pool::{CARD_MILLI, Host, ModelId, Models, Request};
