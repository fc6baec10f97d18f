//! The spool, killed and out of room.

mod full_disk;
mod killed;
mod rows;
