//! The core as a whole: from the bytes of exports to what was held.

mod simulation;
mod used;
