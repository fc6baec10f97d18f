//! Months as files. [`focus`] writes them for cost tools; the rest is of statements: for people a page that prints and a workbook, for programs CSV and Parquet.
//!
//! ```text
//! Statement ─┬─ Summary ─ Paper ─┬─ html   a page made to be printed
//!            │                   └─ xlsx   a sheet for people, one for machines
//!            └─ export_table ─────┬─ csv, parquet
//! ```
//!
//! The same statement gives the same bytes in every format. No text of a site begins a formula, leaves its cell or is taken for markup. Does not: work out
//! an amount, or know which month is asked for.

mod bars;
pub mod csv;
mod file_name;
pub mod focus;
pub mod html;
pub mod paper;
pub mod parquet;
pub mod xlsx;

pub use file_name::file_name;

#[cfg(test)]
pub(crate) mod tests;
