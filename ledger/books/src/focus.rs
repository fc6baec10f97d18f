//! FOCUS: a month's statements as the FinOps world's billing data, one row an attempt and line of the bill.
//!
//! ```text
//! statements ─ entries ─┬─ charges × who held them (bill) ─┐
//!                       └─ all others, one row each ───────┼─► Line ─ columns ─► Cost and Usage    (1.2, 1.4)
//!                                                          ├─► InvoiceLine ────► Invoice Detail    (1.4)
//!                                                          └─► Period ─────────► Billing Period    (1.4)
//! ```
//!
//! The `BilledCost` of all rows of a statement adds up to its total, exactly (LED-6). Start at [`FocusMonth::cost_and_usage`]; what each of our
//! words becomes stands in `docs/focus.md`. Source: the FOCUS specification 1.2 and 1.4 (focus.finops.org), whose columns stand in
//! [`COST_AND_USAGE`], [`INVOICE_DETAIL`] and [`BILLING_PERIOD`].
//!
//! Does not: write files or Parquet, hash, know the clock; work out any figure of a statement again.

mod card_rows;
mod columns;
mod csv;
mod dataset;
mod identity;
mod invoice;
mod line;
mod metadata;
mod other_rows;
mod value;

pub use columns::{BILLING_PERIOD, COST_AND_USAGE, Column, INVOICE_DETAIL, Level};
pub use dataset::{Dataset, DatasetKind};
pub use invoice::{InvoiceLine, Period};
pub use line::Line;
pub use metadata::{FileOfDelivery, metadata};
pub use value::{DECIMAL_DIGITS, Kind, Value};

use crate::prices::PriceBook;
use crate::report::ReportInput;
use crate::slots::Slots;
use crate::statement::{BillingPolicy, Statement};
use cardhour_domain::Month;
use std::fmt;

/// A version of FOCUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 1.2, of May 2025.
    V1_2,
    /// 1.4, of June 2026.
    V1_4,
}

impl Version {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::V1_2, Self::V1_4];

    /// `1.2`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_4 => "1.4",
        }
    }

    /// The version of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A month as it is billed, to be told in FOCUS.
#[derive(Clone, Copy, Debug)]
pub struct FocusMonth<'a> {
    /// Which.
    pub month: Month,
    /// Its statements.
    pub statements: &'a [Statement],
    /// Its usage, by which charges are cut by attempt.
    pub input: &'a ReportInput,
    /// The slots by which `input` was numbered, of this month alone.
    pub slots: &'a Slots,
    /// The price book that the month is billed by.
    pub book: &'a PriceBook,
    /// The policy that the month is billed by.
    pub policy: &'a BillingPolicy,
}

#[cfg(test)]
mod tests;
