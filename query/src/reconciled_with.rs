//! Our books beside a file of another tool, or beside one price by hand: `reconcile --with`.
//!
//! Reads the file, gathers the attempts or charges of its time, calls the pure core once. Start at [`Books::reconcile_with`].

use crate::books::{Books, Reconciliation};
use crate::error::Error;
use crate::request::{RequestError, Span};
use cardhour_books::reconcile::outside::billing::Weights;
use cardhour_books::reconcile::outside::{self, Billed, Frame, Tool, opencost, rate, sacct, sreport};
use cardhour_books::report::{Dimension, ReportKind, ReportQuery, local};
use cardhour_books::slots::SlotsError;
use cardhour_domain::{Interval, Zone};
use cardhour_ledger::Reading;
use rust_decimal::Decimal;
use std::path::{Path, PathBuf};

/// What the books are held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum With {
    /// A file of a tool.
    File(Tool, PathBuf),
    /// One price a card-hour, in the price book's currency.
    Rate(Decimal),
}

impl With {
    /// From the two words behind `--with`. Errors: no such tool; a price that is none.
    pub fn parse(tool: &str, file: &str) -> Result<Self, RequestError> {
        if tool == "rate" {
            let rate: Result<Decimal, _> = file.parse();
            return match rate {
                Ok(rate) if !rate.is_sign_negative() && rate.scale() <= 9 && rate < Decimal::from(1_000_000_000) => {
                    Ok(Self::Rate(rate))
                }
                _ => Err(RequestError::With(format!("{file:?} is not a price a card-hour such as 18.50"))),
            };
        }
        let found = [Tool::Sreport, Tool::Sacct, Tool::OpenCost].into_iter().find(|known| known.name() == tool);
        let unknown = || RequestError::With(format!("--with {tool:?}: take sreport, sacct, opencost or rate"));
        Ok(Self::File(found.ok_or_else(unknown)?, PathBuf::from(file)))
    }
}

/// The books to be held against another tool's figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithRequest {
    /// Against what.
    pub with: With,
    /// Of what time; all: that of the file.
    pub span: Span,
    /// The zone that the span is said in; none: the ledger's.
    pub zone: Option<Zone>,
    /// The zone of the other tool's clock; none: that of the span.
    pub their_zone: Option<Zone>,
    /// Slurm's `TRESBillingWeights`.
    pub weights: Option<Weights>,
    /// Grouped by what; none: as the tool has it.
    pub by: Option<Vec<Dimension>>,
    /// Whether each job has its own row.
    pub by_job: bool,
}

impl Books {
    /// Our books beside another tool's figures. It contradicts where something is left unexplained.
    ///
    /// Errors: a file that can't be read or compared, a name it can't be grouped by, the ledger's own.
    pub async fn reconcile_with(&self, request: &WithRequest) -> Result<Reconciliation, Error> {
        match &request.with {
            With::File(tool, path) => self.reconcile_file(*tool, path, request).await,
            With::Rate(rate) => self.reconcile_rate(*rate, request).await,
        }
    }

    async fn reconcile_file(&self, tool: Tool, path: &Path, request: &WithRequest) -> Result<Reconciliation, Error> {
        let by = request.by.clone().unwrap_or_else(|| match tool {
            Tool::Sreport | Tool::Sacct => vec![Dimension::Cluster, Dimension::Project, Dimension::User],
            Tool::OpenCost => vec![Dimension::Cluster, Dimension::Project],
        });
        if let Some(by) = outside::refused(&by) {
            let (what, can) = ("a file of another tool", "cluster, project or user");
            return Err(RequestError::NotBy { what, by: by.clone(), can }.into());
        }
        let failed = |source| Error::File { doing: "read", path: path.to_owned(), source };
        let text = String::from_utf8_lossy(&std::fs::read(path).map_err(failed)?).into_owned();
        let zone = request.zone.unwrap_or(self.zone());
        let their_zone = request.their_zone.unwrap_or(zone);
        let theirs = match tool {
            Tool::Sreport => sreport::read(&text),
            Tool::Sacct => sacct::read(&text, their_zone, request.weights.as_ref()),
            Tool::OpenCost => opencost::read(&text),
        };
        let theirs =
            theirs.map_err(|source| Error::Outside { file: path.display().to_string(), source: Box::new(source) })?;
        let reading = self.ledger().read().await?;
        let range = self.range(request.span, request.zone, reading.extent())?;
        let ours = reading.all_attempts().await?;
        let frame = Frame { range, zone, their_zone: Some(their_zone) };
        let billed = self.billed_leaves(&reading, frame.asked(&theirs)).await?;
        let title = format!("reconcile, our books beside {}, {}, {zone}", tool.name(), time(range, zone));
        let by_job = request.by_job;
        let is_claimed = billed.is_none();
        let work = move || {
            let lines = outside::explain(&ours, &theirs, &frame, &billed.unwrap_or_else(Billed::unknown));
            let mut table = outside::table(tool, &lines, &by, by_job, title);
            table.notes.extend(theirs.notes);
            if is_claimed {
                let note = "the hours asked for are not on quarter hours, finer than which usage is not kept: outages are not left out of ours";
                table.notes.push(note.to_owned());
            }
            (lines, table)
        };
        let (lines, mut table) = tokio::task::spawn_blocking(work).await.expect("does not panic");
        self.remark(&mut table);
        Ok(Reconciliation { contradicts: lines.iter().any(outside::Explained::is_unexplained), table })
    }

    /// What is billed in those hours; none where usage can't be cut there.
    async fn billed_leaves(&self, reading: &Reading, asked: Option<Option<Interval>>) -> Result<Option<Billed>, Error> {
        let (Some(range), Some(all)) = (asked, reading.extent()) else { return Ok(None) };
        let query = ReportQuery { report: ReportKind::Usage, by: Vec::new(), range, zone: None };
        match query.slots(all, None, self.zone()) {
            Ok(slots) => {
                let input = reading.input(&slots).await?;
                Ok(Some(Billed::of(&input, &slots)))
            }
            Err(SlotsError::NotAQuarterHour(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn reconcile_rate(&self, by_hand: Decimal, request: &WithRequest) -> Result<Reconciliation, Error> {
        let by = request.by.clone().unwrap_or_else(|| vec![Dimension::Org, Dimension::Project]);
        if let Some(by) = rate::refused(&by) {
            let (what, can) = ("a price by hand", "org, project, user, model, price, window or month");
            return Err(RequestError::NotBy { what, by: by.clone(), can }.into());
        }
        let refused = |why: &str| Err(RequestError::With(why.to_owned()).into());
        let month = match request.span {
            Span::All => None,
            Span::Month(month) => Some(month),
            Span::Between { .. } => {
                return refused("--with rate takes whole months, which the bill rounds: --month YYYY-MM");
            }
        };
        if request.zone.is_some_and(|zone| zone != self.zone()) {
            return refused("--with rate takes months of the ledger's zone, by which it bills: leave --zone out");
        }
        let reading = self.ledger().read().await?;
        let during = month.map(|month| month.interval(self.zone()));
        let Some(book) = self.prices_in_force(None, &reading, during)? else {
            return refused("--with rate needs a price book: without one the bill has no money to compare");
        };
        let mut charges = self.charges().await?;
        charges.retain(|charge| month.is_none_or(|month| charge.month == month));
        let time = month.map_or_else(|| "all time".to_owned(), |month| month.to_string());
        let title =
            format!("reconcile, our bill beside {by_hand} {} a card-hour, {time}, {}", book.currency(), self.zone());
        let (mut table, contradicts) = rate::table(&charges, &book, by_hand, &by, title);
        self.remark(&mut table);
        Ok(Reconciliation { table, contradicts })
    }
}

fn time(range: Option<Interval>, zone: Zone) -> String {
    match range {
        Some(range) => format!("{} to {}", local(zone, range.start()), local(zone, range.end())),
        None => "in its hours".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compared_with_is_a_tool_and_its_file_or_a_price() {
        assert_eq!(With::parse("sacct", "jobs.txt"), Ok(With::File(Tool::Sacct, "jobs.txt".into())));
        assert_eq!(With::parse("opencost", "a.json"), Ok(With::File(Tool::OpenCost, "a.json".into())));
        assert_eq!(With::parse("rate", "18.50"), Ok(With::Rate(Decimal::new(1850, 2))));
        for (tool, file) in [("rate", "-1"), ("rate", "rates.csv"), ("kubecost", "a.json")] {
            assert!(With::parse(tool, file).is_err(), "{tool} {file}");
        }
    }
}
