//! Cost and card-hours for a unit of output meet the ledger: gathers outputs and what their jobs held, and calls the pure core once.

use crate::books::{Books, Reported};
use crate::error::Error;
use crate::request::OutputRequest;
use cardhour_books::checkpoint::Sources;
use cardhour_books::output::per_unit;
use cardhour_books::report::{ReportKind, ReportQuery};
use cardhour_books::table::Table;

impl Books {
    /// What a unit of output cost. Errors: a span that can't be cut, a faulty price book, the ledger's own.
    pub async fn output(&self, request: &OutputRequest) -> Result<Reported, Error> {
        let reading = self.ledger().read().await?;
        let outputs = self.ledger().outputs().await?;
        let Some(all) = reading.extent() else {
            let mut table = Table { title: "output, empty books".to_owned(), ..Table::default() };
            self.remark(&mut table);
            return Ok(Reported { table, has_holes: false });
        };
        let range = self.range(request.span, request.zone, Some(all))?;
        let book = self.prices_in_force(request.prices.as_deref(), &reading, range)?;
        let query = ReportQuery { report: ReportKind::Usage, by: Vec::new(), range, zone: request.zone };
        let slots = query.slots(all, book.as_ref(), self.zone())?;
        let input = reading.input(&slots).await?;
        let none = outputs.is_empty();
        let making = tokio::task::spawn_blocking(move || {
            per_unit(Sources { input: &input, slots: &slots, book: book.as_ref(), all }, &outputs, range)
        });
        let (mut table, holes) = making.await.expect("a report is made or its fault is a defect of ours");
        if none {
            table.notes.push("no job's output is known: cardhour import output tells it".to_owned());
        }
        self.remark(&mut table);
        Ok(Reported { table, has_holes: !holes.is_empty() })
    }
}
