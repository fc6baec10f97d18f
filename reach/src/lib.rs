//! How other programs are reached: a command run for its answer ([`command`]), and HTTP with TLS by rustls ([`https`]). Both block, and neither waits for
//! longer than it is told. What is said, and in which format, is the matter of whoever asks.

pub mod command;
pub mod https;
mod tls;
