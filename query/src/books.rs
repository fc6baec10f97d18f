//! The one place where reports and traces meet the ledger.
//!
//! Gathers what a question needs (the price book, the slots of its time, the folded usage), calls the pure core once, and hands
//! back tables. Start at [`Books::report`].

use crate::answer::{Rows, Trace};
use crate::config::{Config, InferenceConfig, SqlLimits};
use crate::error::Error;
use crate::request::{ReconcileRequest, ReportRequest, RequestError, Span};
use crate::{charges, corrected, settings_file, sql, statements, traced};
use cardhour_books::bill::{Charge, charges as charges_of};
use cardhour_books::inventory::list as inventory;
use cardhour_books::line::Line;
use cardhour_books::prices::PriceBook;
use cardhour_books::reconcile;
use cardhour_books::report::{Dimension, ReportInput, ReportKind, ReportQuery, local, report};
use cardhour_books::table::Table;
use cardhour_books::trace::trace;
use cardhour_domain::{BUCKET_MS, Interval, Timestamp, Zone};
use cardhour_ledger::{Ledger, Reading};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The books of one ledger. Cheap to clone; each question looks at the newest books.
#[derive(Clone, Debug)]
pub struct Books {
    pub(crate) ledger: Ledger,
    limits: SqlLimits,
    /// Who is asked how fast services answer; none: nobody.
    pub(crate) inference: Option<Arc<InferenceConfig>>,
}

/// A report, and whether it could price all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The report.
    pub table: Table,
    /// Held time in it has no price: the answer of a bill is no.
    pub has_holes: bool,
}

/// Records beside what nodes saw, and whether some of it can't both be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciliation {
    /// What each side has, by reason.
    pub table: Table,
    /// One of the two must be wrong somewhere.
    pub contradicts: bool,
}

/// The price book's name in the ledger's folder.
pub const PRICES_FILE: &str = "prices.toml";

/// What every report and page of a demo says.
pub const SIMULATED: &str = "simulated: this pool and its jobs come from a generator, not from a site";

impl Books {
    /// Of the ledger at a place. Errors: there is none, or a newer cardhour wrote it.
    pub async fn open(place: &str, limits: SqlLimits) -> Result<Self, Error> {
        Ok(Self { ledger: Ledger::open(place).await?, limits, inference: None })
    }

    /// The same, with whom the config has to be asked how fast services answer.
    #[must_use]
    pub fn asking(self, config: &Config) -> Self {
        Self { inference: config.inference.clone().map(Arc::new), ..self }
    }

    /// Whether there is no ledger at a place, a folder or its URL.
    pub async fn is_missing(place: &str) -> bool {
        matches!(Ledger::open(place).await, Err(cardhour_ledger::Error::NoLedger { .. }))
    }

    /// Of the ledger at a place, which is made where there is none: with `zone`, else the zone of a price book that lies there,
    /// else UTC. Errors: it is there with another zone than `zone`.
    pub async fn open_or_make(
        place: &str,
        zone: Option<Zone>,
        simulated: bool,
        limits: SqlLimits,
    ) -> Result<Self, Error> {
        match Ledger::open(place).await {
            Ok(ledger) => match zone {
                Some(asked) if asked != ledger.zone() => Err(cardhour_ledger::Error::ZoneFixed {
                    ledger: ledger.zone().to_string(),
                    asked: asked.to_string(),
                }
                .into()),
                _ => Ok(Self { ledger, limits, inference: None }),
            },
            Err(cardhour_ledger::Error::NoLedger { .. }) => {
                let lying_there = read_prices(&Path::new(place).join(PRICES_FILE))?;
                let zone = zone.or(lying_there.map(|book| book.zone()));
                Ok(Self { ledger: Ledger::open_or_make(place, zone, simulated).await?, limits, inference: None })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The ledger itself, for what writes to it.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The billing zone.
    pub fn zone(&self) -> Zone {
        self.ledger.zone()
    }

    /// The time that the books speak of; none of an empty ledger. Errors: the ledger's own.
    pub async fn extent(&self) -> Result<Option<Interval>, Error> {
        Ok(self.ledger.read().await?.extent())
    }

    /// Whether everything in it is simulated.
    pub fn is_demo(&self) -> bool {
        self.ledger.simulated()
    }

    /// The price book: that of `file`, else the ledger's; none where there is none, or where it says nothing. Errors: it is
    /// faulty, or its zone isn't the ledger's.
    pub fn prices(&self, file: Option<&Path>) -> Result<Option<PriceBook>, Error> {
        Ok(self.prices_with_text(file)?.map(|(book, _)| book))
    }

    /// [`Self::prices`], and the text that it was read from.
    pub(crate) fn prices_with_text(&self, file: Option<&Path>) -> Result<Option<(PriceBook, String)>, Error> {
        let path = match (file, self.ledger.folder()) {
            (Some(file), _) => {
                // A file that was asked for has to be there.
                std::fs::metadata(file).map_err(|source| Error::File {
                    doing: "read",
                    path: file.to_owned(),
                    source,
                })?;
                file.to_owned()
            }
            (None, Some(folder)) => folder.join(PRICES_FILE),
            (None, None) => return Ok(None),
        };
        let read = read_prices_with_text(&path)?;
        match &read {
            Some((book, _)) if book.zone() != self.zone() => {
                Err(Error::PriceZone { path, book: book.zone().to_string(), ledger: self.zone().to_string() })
            }
            _ => Ok(read),
        }
    }

    /// The price book in force over some time (none: all of it) and the rest of its months, which a bill rounds as a whole: `file`, where one is named; else
    /// in each closed month that by which it was closed, and the ledger's in the others. Errors: as [`Self::prices`]; books of different currencies.
    pub(crate) fn prices_in_force(
        &self,
        file: Option<&Path>,
        reading: &Reading,
        during: Option<Interval>,
    ) -> Result<Option<PriceBook>, Error> {
        let book = self.prices(file)?;
        if file.is_some() {
            return Ok(book);
        }
        Ok(reading.prices_in_force(book.as_ref(), self.zone(), during)??)
    }

    /// The same, each in its own currency, for what tells several apart. Errors: as [`Self::prices`].
    pub(crate) fn prices_in_each_currency(
        &self,
        file: Option<&Path>,
        reading: &Reading,
        during: Option<Interval>,
    ) -> Result<Option<PriceBook>, Error> {
        let of_one = match self.prices_in_force(file, reading, during) {
            Err(Error::Currencies(_)) => None,
            of_one => return of_one,
        };
        let Some(during) = during.or(reading.extent()) else { return Ok(of_one) };
        let pieces = reading.prices_by_currency(self.prices(None)?.as_ref(), self.zone(), during)?;
        // Without a price book of today nothing that is open has a price.
        let last = pieces.last().map(|(piece, _)| *piece);
        let none = pieces.iter().find_map(|(_, book)| book.as_ref()).map(PriceBook::without_prices);
        let in_turn: Vec<(Option<Timestamp>, &PriceBook)> = pieces
            .iter()
            .filter_map(|(piece, book)| {
                let until = (Some(*piece) != last).then(|| piece.end());
                Some((until, book.as_ref().or(none.as_ref())?))
            })
            .collect();
        Ok((!in_turn.is_empty()).then(|| PriceBook::in_turn_each(&in_turn)))
    }

    /// Records beside what nodes saw. Errors: a span that can't be cut, a name it can't be grouped by, the ledger's own.
    pub async fn reconcile(&self, request: &ReconcileRequest) -> Result<Reconciliation, Error> {
        if let Some(by) = request.query.refused() {
            let can = "org, project, user, queue, class, state, node, cluster or label.NAME";
            return Err(RequestError::NotBy { what: "a reconciliation", by: by.clone(), can }.into());
        }
        let reading = self.ledger.read().await?;
        let zone = request.zone.unwrap_or(self.zone());
        let range = self.range(request.span, request.zone, reading.extent())?;
        let made = reading.reconcile(range).await?;
        let time = match range {
            Some(range) => format!("{} to {}", local(zone, range.start()), local(zone, range.end())),
            None => "all time".to_owned(),
        };
        let title = format!("reconcile, records beside nodes, {time}, {zone}");
        let mut table = reconcile::table(&made.lines, &made.attempts, &request.query, title);
        if !made.has_nodes {
            table.notes.push("no node ever told anything: there is nothing to hold records against".to_owned());
        }
        self.remark(&mut table);
        Ok(Reconciliation { contradicts: made.lines.iter().any(|line| line.reason.contradicts()), table })
    }

    /// What cards there are at the end of the time that was asked for.
    async fn inventory(&self, request: &ReportRequest) -> Result<Reported, Error> {
        if let Some(by) = inventory::refused(&request.by) {
            let can = "cluster, pool, node, model or label.NAME";
            return Err(RequestError::NotBy { what: "an inventory", by: by.clone(), can }.into());
        }
        let reading = self.ledger.read().await?;
        let zone = request.zone.unwrap_or(self.zone());
        let asked = self.range(request.span, request.zone, reading.extent())?;
        // Without a time: as it was told last.
        let end = asked.map(|range| range.end());
        let at = end.map_or(i64::MAX, |end| end.unix_ms() - 1);
        let stocks = reading.inventory(Timestamp::from_unix_ms(at)).await?;
        let time = end.map_or_else(String::new, |end| format!(", as of {}", local(zone, end)));
        let title = format!("{}{time}, {zone}", request.report);
        let mut table = inventory::table(&stocks, &request.by, title, |at| local(zone, at));
        self.remark(&mut table);
        Ok(Reported { table, has_holes: false })
    }

    /// Says that a demo is one.
    pub(crate) fn remark(&self, table: &mut Table) {
        if self.is_demo() {
            table.title = format!("{} (simulated)", table.title);
            table.notes.insert(0, SIMULATED.to_owned());
        }
    }

    /// One report. Errors: a span that can't be cut, a faulty price book, the ledger's own.
    pub async fn report(&self, request: &ReportRequest) -> Result<Reported, Error> {
        if request.report == ReportKind::Inventory {
            return self.inventory(request).await;
        }
        let reading = self.ledger.read().await?;
        let all = reading.extent();
        let range = self.range(request.span, request.zone, all)?;
        let book = self.prices_in_each_currency(request.prices.as_deref(), &reading, range)?;
        let mut by = request.by.clone();
        // A line of one user's has to say so: `trace` knows nothing else of what was asked.
        if request.user.is_some() && !by.contains(&Dimension::User) {
            by.push(Dimension::User);
        }
        let query = ReportQuery { report: request.report, by, range, zone: request.zone };
        // Empty books have no time; any will do to make a report without rows.
        let slots = query.slots(all.unwrap_or_else(first_bucket), book.as_ref(), self.zone())?;
        let mut input = if all.is_some() { reading.input(&slots).await? } else { ReportInput::default() };
        if let Some(user) = &request.user {
            only_user(&mut input, user);
        }
        let made = tokio::task::spawn_blocking(move || report(&input, &slots, book.as_ref(), &query));
        let mut made = made.await.expect("a report is made or its fault is a defect of ours");
        if all.is_none() {
            made.table.title = format!("{}, empty books", request.report);
        }
        if let Some(user) = &request.user {
            made.table.title = format!("{} of {user}", made.table.title);
        }
        self.remark(&mut made.table);
        Ok(Reported { has_holes: !made.holes.is_empty(), table: made.table })
    }

    /// Where a line of the bill, or an entry of a statement, comes from. Errors: it is no line, or nothing is under it; there is no such entry.
    pub async fn trace(&self, line: &str, prices: Option<&Path>) -> Result<Trace, Error> {
        if statements::is_entry_id(line) {
            return self.trace_entry(line).await;
        }
        let traced = self.trace_line(line, prices).await;
        let corrections = match prices {
            None => self.corrections_under(&Line::parse(line)?).await?,
            // Statements know no other price book.
            Some(_) => Vec::new(),
        };
        let Some(summary) = corrected::summary(&corrections) else { return traced };
        let mut trace = match traced {
            Ok(trace) => trace,
            // A month in which nothing of it was held, and which corrects earlier ones.
            Err(Error::Trace(_) | Error::NoLine(_)) => {
                Trace { line: line.to_owned(), facts: Vec::new(), parts: Vec::new() }
            }
            Err(error) => return Err(error),
        };
        trace.facts.push(("corrections of closed months, on this month's statement".to_owned(), summary));
        trace.parts.extend(self.corrected(&corrections).await?);
        Ok(trace)
    }

    /// Where a line of the bill comes from. Errors: it is no line, or nothing is under it.
    pub(crate) async fn trace_line(&self, line: &str, prices: Option<&Path>) -> Result<Trace, Error> {
        let line = Line::parse(line)?;
        let reading = self.ledger.read().await?;
        let book = self.prices_in_force(prices, &reading, line.within(self.zone()))?;
        let Some(all) = reading.extent() else { return Err(Error::NoLine(line.to_string())) };
        let slots = line.slots(all, book.as_ref(), self.zone())?;
        let input = reading.input(&slots).await?;
        let zone = line.zone.unwrap_or(self.zone());
        let mut traced = traced::shown(&trace(&line, &input, &slots, book.as_ref())?, zone);
        if self.is_demo() {
            traced.facts.insert(0, ("note".to_owned(), SIMULATED.to_owned()));
        }
        Ok(traced)
    }

    /// The rows of one query, within the limits. Errors: it isn't one, writes, takes too long, or gives too much.
    pub async fn sql(&self, query: &str) -> Result<Rows, Error> {
        let tables = self.ledger.delta_tables().await?;
        let charges = if sql::mentions(query, charges::TABLE) { self.charges().await? } else { Vec::new() };
        let mut made = vec![(charges::TABLE, charges::batch(&charges)?)];
        // Without being asked for they would cost as much as all months' statements.
        let asks = statements::TABLES.iter().any(|table| sql::mentions(query, table));
        made.extend(self.statement_tables(asks).await?);
        sql::run(tables, made, query, self.limits).await
    }

    /// The leaves of the bill of all time.
    pub(crate) async fn charges(&self) -> Result<Vec<Charge>, Error> {
        let reading: Reading = self.ledger.read().await?;
        let Some(all) = reading.extent() else { return Ok(Vec::new()) };
        let mut charges = Vec::new();
        // Months that were closed in another currency are other rows.
        for (piece, book) in reading.prices_by_currency(self.prices(None)?.as_ref(), self.zone(), all)? {
            let slots = Line::default().slots(piece, book.as_ref(), self.zone())?;
            let input = reading.input(&slots).await?;
            charges.extend(charges_of(&input, &slots, book.as_ref()));
        }
        Ok(charges)
    }

    /// The time that was asked for; none for all there is. An open end is the end of the last month there is.
    pub(crate) fn range(
        &self,
        span: Span,
        zone: Option<Zone>,
        all: Option<Interval>,
    ) -> Result<Option<Interval>, Error> {
        let zone = zone.unwrap_or(self.zone());
        let (from, to) = span.bounds(zone)?;
        if (from, to) == (None, None) {
            return Ok(None);
        }
        let all = all.unwrap_or_else(first_bucket);
        let month = |at: Timestamp| zone.month(at).map(|month| month.interval(zone));
        let last = Timestamp::from_unix_ms(all.end().unix_ms() - 1);
        let from = from.or_else(|| Some(month(all.start())?.start())).unwrap_or(all.start());
        let to = to.or_else(|| Some(month(last)?.end())).unwrap_or(all.end());
        // From after all there is, or to before it: the stretch is still one, and empty.
        Ok(Some(Interval::new(from, to).unwrap_or_else(|| {
            let start = from.min(to).bucket_start();
            Interval::new(start, Timestamp::from_unix_ms(start.unix_ms() + BUCKET_MS)).expect("a bucket is not empty")
        })))
    }
}

fn first_bucket() -> Interval {
    Interval::new(Timestamp::from_unix_ms(0), Timestamp::from_unix_ms(BUCKET_MS)).expect("a bucket is not empty")
}

/// A price book from a file; none where there is no file, or one that says nothing. Errors: it can't be read, or is faulty.
pub fn read_prices(path: &Path) -> Result<Option<PriceBook>, Error> {
    Ok(read_prices_with_text(path)?.map(|(book, _)| book))
}

fn read_prices_with_text(path: &Path) -> Result<Option<(PriceBook, String)>, Error> {
    let Some(text) = settings_file::read(path)? else { return Ok(None) };
    let book = PriceBook::parse(&text).map_err(|faults| Error::Prices { path: PathBuf::from(path), faults })?;
    Ok(book.map(|book| (book, text)))
}

/// Leaves of an input what one user had. Charges are of one user each, so that their money is the same as in the whole.
fn only_user(input: &mut ReportInput, user: &str) {
    let mut kept = Vec::new();
    let places: Vec<Option<u32>> = input
        .attempts
        .drain(..)
        .map(|attempt| {
            (attempt.user.as_deref() == Some(user)).then(|| {
                kept.push(attempt);
                u32::try_from(kept.len() - 1).expect("attempts are numbered by 32 bits")
            })
        })
        .collect();
    input.attempts = kept;
    input.cells.retain_mut(|cell| match cell.attempt.and_then(|attempt| places[attempt as usize]) {
        Some(place) => {
            cell.attempt = Some(place);
            true
        }
        None => false,
    });
}
