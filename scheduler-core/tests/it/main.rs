//! What holds of the whole: peers' cases, and properties over random pools.

mod cases;
mod draw;
mod faults;
mod properties;
mod rules;
mod size;
mod table;
mod told;
mod world;
