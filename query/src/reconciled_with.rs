//! Our books beside a file of another tool, or beside one price by hand: `reconcile --with`.
//!
//! Reads the file, gathers the attempts or charges of its time, calls the pure core once. Start at [`Books::reconcile_with`].

use crate::books::{Books, Reconciliation};
use crate::error::Error;
use crate::request::{RequestError, Span};
use cardhour_books::reconcile::outside::billing::Weights;
use cardhour_books::reconcile::outside::{self, Billed, Cause, Frame, Tool, opencost, rate, sacct, sreport};
use cardhour_books::report::{Dimension, ReportKind, ReportQuery, local};
use cardhour_books::slots::SlotsError;
use cardhour_domain::{Interval, Month, Zone};
use cardhour_ledger::Reading;
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What the books are held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum With {
    /// A file of a tool.
    File(Tool, PathBuf),
    /// The bytes of such a file, as they were sent.
    Sent(Tool, Vec<u8>),
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
        let unknown = || RequestError::With(format!("--with {tool:?}: take sreport, sacct, opencost or rate"));
        Ok(Self::File(tool_of(tool).ok_or_else(unknown)?, PathBuf::from(file)))
    }

    /// From an address and what was sent to it: `rate` has its price in the address and sends nothing, a tool sends its file. Errors: no such tool; a
    /// price that is none, or one beside a tool; nothing sent, or something that nobody reads.
    pub fn sent(tool: &str, rate: Option<&str>, body: Vec<u8>) -> Result<Self, RequestError> {
        let refused = |why: &str| Err(RequestError::With(why.to_owned()));
        match (tool_of(tool), rate) {
            (None, Some(rate)) if tool == "rate" => match body.is_empty() {
                true => Self::parse(tool, rate),
                false => refused("with=rate takes rate=PRICE and no body"),
            },
            (None, None) if tool == "rate" => refused("with=rate needs rate=PRICE, a price a card-hour such as 18.50"),
            (None, _) => Err(RequestError::With(format!("with={tool:?}: take sreport, sacct, opencost or rate"))),
            (Some(_), Some(_)) => refused("rate goes with with=rate alone"),
            (Some(_), None) if body.is_empty() => refused("send the tool's output as the body: it is empty"),
            (Some(tool), None) => Ok(Self::Sent(tool, body)),
        }
    }
}

fn tool_of(name: &str) -> Option<Tool> {
    [Tool::Sreport, Tool::Sacct, Tool::OpenCost].into_iter().find(|known| known.name() == name)
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
            With::File(tool, path) => {
                let failed = |source| Error::File { doing: "read", path: path.clone(), source };
                let bytes = std::fs::read(path).map_err(failed)?;
                self.reconcile_text(*tool, &bytes, &path.display().to_string(), request).await
            }
            With::Sent(tool, bytes) => self.reconcile_text(*tool, bytes, "what was sent", request).await,
            With::Rate(rate) => self.reconcile_rate(*rate, request).await,
        }
    }

    /// `name`: what a fault says that it is in.
    async fn reconcile_text(
        &self,
        tool: Tool,
        bytes: &[u8],
        name: &str,
        request: &WithRequest,
    ) -> Result<Reconciliation, Error> {
        let by = request.by.clone().unwrap_or_else(|| match tool {
            Tool::Sreport | Tool::Sacct => vec![Dimension::Cluster, Dimension::Project, Dimension::User],
            Tool::OpenCost => vec![Dimension::Cluster, Dimension::Project],
        });
        if let Some(by) = outside::refused(&by) {
            let (what, can) = ("a file of another tool", "cluster, project or user");
            return Err(RequestError::NotBy { what, by: by.clone(), can }.into());
        }
        let text = String::from_utf8_lossy(bytes).into_owned();
        let zone = request.zone.unwrap_or(self.zone());
        let their_zone = request.their_zone.unwrap_or(zone);
        let weights = request.weights.clone();
        let read = move || match tool {
            Tool::Sreport => sreport::read(&text),
            Tool::Sacct => sacct::read(&text, their_zone, weights.as_ref()),
            Tool::OpenCost => opencost::read(&text),
        };
        let theirs = tokio::task::spawn_blocking(read).await.expect("does not panic");
        let theirs = theirs.map_err(|source| Error::Outside { file: name.to_owned(), source: Box::new(source) })?;
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
        if lines.iter().any(|line| !line.parts.of(Cause::CorrectedLater).is_zero()) {
            table.notes.extend(self.corrected_where(&reading, range).await?);
        }
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
                let covers = slots.covers();
                let is_closed = |month: Month| month.interval(self.zone()).overlap(covers).is_some();
                let live = match reading.closings().iter().any(|closing| is_closed(closing.month)) {
                    true => Some(reading.live_input(&slots).await?),
                    false => None,
                };
                Ok(Some(Billed::of(&input, live.as_ref(), &slots)))
            }
            Err(SlotsError::NotAQuarterHour(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// In which months the corrections of closed months in that time stand, in a sentence for each of those months; none without prices, which corrections need.
    async fn corrected_where(&self, reading: &Reading, range: Option<Interval>) -> Result<Vec<String>, Error> {
        let months: Vec<Month> = reading.closings().iter().map(|closing| closing.month).collect();
        let mut periods: BTreeMap<Month, BTreeSet<Month>> = BTreeMap::new();
        for period in months.iter().copied().chain(reading.open_month()) {
            let billed = match self.billed(period, None).await {
                Err(Error::NoPrices) => continue,
                billed => billed?,
            };
            for entry in billed.statements.iter().flat_map(|statement| &statement.entries) {
                let original = entry.key.original_period;
                if original != entry.period && months.contains(&original) {
                    periods.entry(original).or_default().insert(entry.period);
                }
            }
        }
        periods.retain(|original, _| range.is_none_or(|range| original.interval(self.zone()).overlap(range).is_some()));
        let say = |(original, periods): (Month, BTreeSet<Month>)| {
            let of = periods.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!(
                "corrected_later: {original} is closed and keeps what it was closed with; what was told later is corrected in the statement of {of}"
            )
        };
        Ok(periods.into_iter().map(say).collect())
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

    #[test]
    fn over_http_a_tool_sends_its_output_and_a_rate_its_price() {
        let body = || b"x".to_vec();
        assert_eq!(With::sent("sacct", None, body()), Ok(With::Sent(Tool::Sacct, body())));
        assert_eq!(With::sent("rate", Some("18.50"), Vec::new()), Ok(With::Rate(Decimal::new(1850, 2))));
        for (tool, rate, body) in [
            ("sacct", None, Vec::new()),
            ("sacct", Some("18.50"), body()),
            ("rate", None, Vec::new()),
            ("rate", Some("18.50"), body()),
            ("rate", Some("many"), Vec::new()),
            ("kubecost", None, body()),
        ] {
            assert!(With::sent(tool, rate, body).is_err(), "{tool} {rate:?}");
        }
    }
}
