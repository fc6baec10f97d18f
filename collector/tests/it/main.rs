//! The collector against stand-ins for what is on a node.

mod reading;
