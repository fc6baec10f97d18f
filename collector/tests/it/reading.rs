//! The driver: the real wrapper, on a stand-in for the driver's library that plays a scenario in virtual time.

mod budget;
mod cases;
mod figures;
mod pitfalls;
mod stage;
mod story;
