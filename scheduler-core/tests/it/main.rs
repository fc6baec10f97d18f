//! What holds of the whole: peers' cases, and properties over random pools.

mod cases;
mod complaints;
mod draw;
mod faults;
mod idle_complaints;
mod properties;
mod rounds;
mod rules;
mod table;
mod told;
mod world;
