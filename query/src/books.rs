//! The one place where the command and the service meet the ledger.
//!
//! Everything else in this crate speaks in requests and tables; what Delta Lake and DataFusion are is known here alone.

use crate::answer::{Rows, Trace};
use crate::error::Error;
use crate::request::ReportRequest;
use cardhour_books::table::Table;
use cardhour_domain::Zone;

/// The books of one ledger.
pub struct Books {
    zone: Zone,
    is_demo: bool,
}

impl Books {
    /// One report.
    pub async fn report(&self, request: &ReportRequest) -> Result<Table, Error> {
        let _ = request;
        Ok(Table::default())
    }
    /// One query.
    pub async fn sql(&self, query: &str) -> Result<Rows, Error> {
        Err(Error::NoLine(query.into()))
    }
    /// One line.
    pub async fn trace(&self, line: &str) -> Result<Trace, Error> {
        Err(Error::NoLine(line.into()))
    }
    /// Whether it is a demo's.
    pub fn is_demo(&self) -> bool {
        self.is_demo
    }
    /// Its zone.
    pub fn zone(&self) -> Zone {
        self.zone
    }
}
