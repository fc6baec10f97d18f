//! What holds of the whole: peers' cases, and properties over random pools.

mod cases;
mod draw;
mod faults;
mod properties;
mod size;
mod told;
mod world;
