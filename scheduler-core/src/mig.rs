//! MIG: which instances a card can be cut into, where each goes, and what a cut leaves over.
//!
//! A card that is cut has slices of memory and of compute. An instance of a [`Shape`] takes a fixed number of both, and may begin only at
//! certain slices of memory. Both limits bind: intervals of memory never overlap, and the slices of compute add up to seven (four on an A30).
//! That is all there is to know, so all layouts are worked out once ([`Atlas`]) and every question is a look-up.
//!
//! | question | where |
//! |---|---|
//! | which card is this, and what are its profiles called? | [`Model::recognise`], [`Model::profile_name`] |
//! | what still fits beside what is there? | [`State::placements_of`] |
//! | where should it go? | [`Atlas::best_start`]: what leaves most layouts open |
//! | do all of these fit on one card? | [`fit_together`] |
//! | which of several cards? | [`best_card`]: a card that is cut already before one that isn't; [`pack`] for many at once |
//! | what is lost for good? | [`Atlas::stranded`] |
//! | which shape has this much memory? | [`smallest_for`]: by what the driver says, never by the name |
//! | what has to go first? | [`freeing_order`], [`teardown`], [`cheapest_room`] |
//! | may this be cut at all? | [`may_change_mode`], [`admit_cards`] |
//!
//! # Sources
//!
//! Names, fractions and counts: NVIDIA's MIG User Guide, "Supported MIG profiles". Starts and sizes: listings of `nvidia-smi mig -lgipp` from real
//! A30, A100 and H100. For H200 and B200 no such listing was found: theirs are **inferred** from the same eight slices
//! ([`Model::is_inferred`]), so hold [`Model::check_listing`] against a card's own listing before cutting one. A card that isn't in the
//! table isn't guessed at: [`Refusal::MigTableMissing`].
//!
//! Does not: talk to a driver, know who holds an instance but by what it is told, price slices (the price book does).

mod atlas;
mod figures;
mod fit;
mod freeing;
mod memory;
mod mode_change;
mod model;
mod refusal;
mod shape;
mod state;

pub use atlas::{Atlas, Stranded};
pub use figures::{copy_engines, greater_share, processors};
pub use fit::{CardChoice, best_card, fit_together, pack};
pub use freeing::{Instance, Reconciled, Room, Teardown, cheapest_room, freeing_order, reconcile, teardown};
pub use memory::{MemoryFit, Need, smallest_for};
pub use mode_change::{ModeChange, admit_cards, may_change_mode};
pub use model::{DriverVersion, Model};
pub use refusal::Refusal;
pub use shape::{Axis, Offer, Shape};
pub use state::{Placement, State};
