//! Decisions carried out: gently, once, and looked at again until they are true.
//!
//! An [`Action`] says what is to be done, under the id of the decision that asked for it. [`round()`] brings it one round further: it looks at the world,
//! works out the next step from what it saw and what was done before ([`next`]), asks the guards, writes down that it is about to act, acts, writes
//! down what came of it and looks again. It never waits: grace and waiting for a checkpoint are instants at which another round is due. So a program that
//! is killed between any two of these steps goes on where it was: what the world shows counts, the journal only says what was tried.
//!
//! Three families of targets, each with a pure `next` and a thin rim: [`slurm`] by the site's own commands, [`process`] by handles of the kernel,
//! [`kubernetes`] by its API.
//!
//! What it does not do: decide anything, know of budgets or books, warn people (that is the one sender's), wait, run tasks of its own.
//! Only [`world`] touches anything, and only [`round()`] calls it.
//!
//! Units: `_s` seconds, `_ms` milliseconds, limits in Slurm's own units (cards, or minutes of them).

pub mod action;
pub mod guards;
pub mod instant;
pub mod journal;
pub mod kubernetes;
pub mod next;
pub mod past;
pub mod process;
pub mod round;
pub mod setting;
pub mod sight;
pub mod signal;
pub mod slurm;
pub mod world;

pub use action::{Action, DecisionId, What};
pub use guards::{Guards, Mode};
pub use journal::{FileJournal, Journal, JournalError};
pub use past::{Past, Standing};
pub use round::{Round, round};
pub use signal::Signal;
pub use world::{Trouble, World, Worlds};
