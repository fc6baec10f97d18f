//! The driver: the real wrapper, on a stand-in for the driver's library that plays a scenario in virtual time.

mod asleep;
mod budget;
mod cases;
mod figures;
mod gone;
mod health;
mod pitfalls;
mod stage;
mod story;
