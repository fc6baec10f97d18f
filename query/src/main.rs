//! The command `cardhour`.

fn main() {}
