//! A dataset of FOCUS: columns and rows.

use super::{
    BILLING_PERIOD, COST_AND_USAGE, Column, FocusMonth, INVOICE_DETAIL, InvoiceLine, Kind, Line, Period, Value, Version,
};

/// What a dataset tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DatasetKind {
    /// What was used and what it costs.
    CostAndUsage,
    /// Lines of statements, from 1.4 on.
    InvoiceDetail,
    /// The month itself, from 1.4 on.
    BillingPeriod,
}

impl DatasetKind {
    /// What FOCUS calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CostAndUsage => "CostAndUsage",
            Self::InvoiceDetail => "InvoiceDetail",
            Self::BillingPeriod => "BillingPeriod",
        }
    }

    /// In the name of a file.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::CostAndUsage => "cost-and-usage",
            Self::InvoiceDetail => "invoice-detail",
            Self::BillingPeriod => "billing-period",
        }
    }
}

/// Columns and rows.
#[derive(Clone, Debug)]
pub struct Dataset<R: 'static> {
    /// What it tells of.
    pub kind: DatasetKind,
    /// Its columns: those of its version, then ours.
    pub columns: Vec<&'static Column<R>>,
    /// Its rows; a cell is what its column says of its row.
    pub rows: Vec<R>,
}

impl FocusMonth<'_> {
    /// What was used and what it costs: a row for each charge and attempt, and one for every other entry, in the order of statements, entries and
    /// attempts. The same month gives the same rows (LED-4).
    pub fn cost_and_usage(&self, version: Version) -> Dataset<Line> {
        Dataset::new(DatasetKind::CostAndUsage, COST_AND_USAGE, version, self.lines())
    }

    /// The lines of its statements: one an entry, the `BilledCost` of whose rows adds up to its own.
    pub fn invoice_detail(&self) -> Dataset<InvoiceLine> {
        Dataset::new(DatasetKind::InvoiceDetail, INVOICE_DETAIL, Version::V1_4, self.invoice_lines())
    }

    /// The month: one row.
    pub fn billing_period(&self) -> Dataset<Period> {
        Dataset::new(DatasetKind::BillingPeriod, BILLING_PERIOD, Version::V1_4, vec![self.period()])
    }
}

impl<R> Dataset<R> {
    fn new(kind: DatasetKind, columns: &'static [Column<R>], version: Version, rows: Vec<R>) -> Self {
        let columns = columns.iter().filter(|column| column.versions.contains(&version)).collect();
        let dataset = Self { kind, columns, rows };
        dataset.assert_whole();
        dataset
    }

    /// Everything that FOCUS says is never null is there.
    fn assert_whole(&self) {
        for column in self.columns.iter().filter(|column| !column.may_be_null) {
            let holds = |row| (column.value)(row) != Value::Absent;
            assert!(self.rows.iter().all(holds), "FOCUS: {} is never null", column.name);
        }
        for column in &self.columns {
            let fits = |value: Value| match (column.kind, value) {
                (_, Value::Absent) | (Kind::Text | Kind::Json, Value::Text(_)) | (Kind::Text, Value::Word(_)) => true,
                (Kind::Decimal { scale }, Value::Decimal(decimal)) => decimal.normalize().scale() <= u32::from(scale),
                (Kind::Instant, Value::Instant(_)) => true,
                _ => false,
            };
            assert!(self.rows.iter().all(|row| fits((column.value)(row))), "FOCUS: {} is of its kind", column.name);
        }
    }
}
