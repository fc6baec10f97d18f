//! Answers from the books: to people, to programs, to dashboards.
//!
//! ```text
//! command line ─┐                      ┌─ render  table csv json parquet html md
//!               ├─ request ─► books ─►─┤
//! HTTP ─────────┘            (ledger)  └─ serve   pages, api, metrics
//! ```
//!
//! What this crate does not do: it never writes a table; `cardhour-ledger` alone does. It works out no figure: reports come
//! as tables of `cardhour_books`, and are only written down here.
//!
//! Start reading at [`request::ReportRequest`] and [`render::report`]. Units: card-hours are shown, card-time is never seen
//! here; money comes as decimals of its currency.

pub mod advised;
pub mod answer;
pub mod billing;
pub mod books;
mod bucket_client;
pub mod budgets;
mod charges;
pub mod checkpoint;
pub mod cli;
mod clock;
pub mod config;
mod corrected;
pub mod deliveries;
pub mod doctor;
mod entry_parts;
pub mod error;
pub mod events;
pub mod export;
pub mod import;
pub mod incoming;
pub mod init;
mod isolation;
mod issued;
mod jitter;
pub mod maintained;
mod output;
pub mod people;
pub mod planned;
pub mod played;
pub mod quotas;
pub mod quote;
pub mod reclaimed;
pub mod reconciled_with;
pub mod render;
pub mod replayed;
pub mod request;
pub mod run;
pub mod serve;
mod settings_file;
mod sql;
mod statements;
pub mod terminal;
mod traced;
mod trial;
pub mod verified;

/// What this build is called: the version, and the commit it was built from where that is known: `0.1.0+3f9932408a1c`. It stands in closed months.
pub const VERSION: &str = env!("CARDHOUR_VERSION");
