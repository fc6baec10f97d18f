//! Rounds of idle reclaim over made-up books: what is read from them, and a week of the simulated site in act mode.

mod limits;
mod reading;
mod site;
mod week;
