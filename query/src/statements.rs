//! Statements: of open months as they stand, of closed ones as they were closed; and closing.
//!
//! Start at [`Books::billed`]. Does not: work out or freeze anything, which the ledger does.

use crate::answer::Trace;
use crate::billing::{BILLING_FILE, read_policy};
use crate::books::Books;
use crate::error::Error;
use arrow::record_batch::RecordBatch;
use cardhour_books::bill::describe_holes;
use cardhour_books::prices::PriceBook;
use cardhour_books::report::local;
use cardhour_books::statement::{
    BillingMode, BillingPolicy, Entry, EntryKind, SeenPart, Statement, canonical_csv, entries_table, of_org,
    statements_table,
};
use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_domain::{Month, Name, Timestamp};
pub use cardhour_ledger::Billed as BilledMonth;
use cardhour_ledger::{CloseOutcome, CloseRequest, Closing, Prepared, Terms, statement_rows};
use std::path::Path;

/// The tables of [`Books::statement_tables`].
pub(crate) const TABLES: [&str; 2] = ["statements", "entries"];

/// Hex digits of an entry's id.
const ENTRY_ID_DIGITS: usize = 32;

/// Who approves a month, and what they say.
#[derive(Clone, Debug)]
pub struct Approval {
    /// Who.
    pub by: Name,
    /// What they write.
    pub comment: Option<Name>,
    /// Why it is closed although the books ask not to.
    pub sign_off: Option<Name>,
    /// When.
    pub now: Timestamp,
}

/// The statements of a month, for people and programs.
#[derive(Clone, Debug)]
pub struct Stated {
    /// A row a statement or an entry.
    pub table: Table,
    /// Whether it is all that was asked for: who was named has a statement, and nothing of the month was left out for want of a price.
    pub is_whole: bool,
}

/// What became of closing a month, for people.
#[derive(Clone, Debug)]
pub struct CloseAnswer {
    /// Its statements, with what is to be said below them.
    pub table: Table,
    /// Whether it isn't closed, or would not be.
    pub is_refused: bool,
}

/// Whether a text is an entry's id, and not a line.
pub fn is_entry_id(text: &str) -> bool {
    text.len() == ENTRY_ID_DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Books {
    /// A month as it is billed: a closed one as it was closed, an open one by the price book of `prices` or the ledger's.
    ///
    /// Errors: no price book, for an open month; a faulty one; the ledger's own.
    pub async fn billed(&self, month: Month, prices: Option<&Path>) -> Result<BilledMonth, Error> {
        let reading = self.ledger.read().await?;
        let (book, (policy, _)) = (self.prices(prices)?, self.billing_policy()?);
        // A closed month has its own.
        let frozen = reading.closings().iter().find(|closing| closing.month == month);
        let book = match (book, frozen) {
            (Some(book), _) => book,
            (None, Some(closing)) => closing.price_book()?,
            (None, None) => return Err(Error::NoPrices),
        };
        Ok(reading.billed(month, self.zone(), Terms { book: &book, policy: &policy }).await?)
    }

    /// The billing policy of the ledger, and its text. Errors: it can't be read, or is faulty.
    pub(crate) fn billing_policy(&self) -> Result<(BillingPolicy, String), Error> {
        match self.ledger.folder() {
            Some(folder) => read_policy(&folder.join(BILLING_FILE)),
            None => Ok((BillingPolicy::default(), String::new())),
        }
    }

    /// What has to be said below a bill: that its held time is not all that is paid. None where it is, and of a faulty policy, of which statements complain.
    pub(crate) fn note_of_policy(&self) -> Option<String> {
        self.policy_said("held time at the price book's prices")
    }

    /// The same of budgets, from which refunds are taken off; but in absorb mode, where none are.
    pub(crate) fn note_of_policy_on_budgets(&self) -> Option<String> {
        let (policy, _) = self.billing_policy().ok()?;
        match policy.mode {
            BillingMode::Rate => self.policy_said("spent is held time at the price book's prices, less refunds"),
            BillingMode::Absorb => self.note_of_policy(),
        }
    }

    fn policy_said(&self, what: &str) -> Option<String> {
        let (policy, _) = self.billing_policy().ok()?;
        let rest = "what the billing policy makes of it is on the statements: cardhour statement --month MONTH";
        (policy != BillingPolicy::default()).then(|| format!("{what}; {rest}"))
    }

    /// The price book that a month is closed by, and its text: both of one look at the file.
    fn terms(&self) -> Result<(PriceBook, String), Error> {
        self.prices_with_text(None)?.ok_or(Error::NoPrices)
    }

    /// The statements of a month, or the entries of all or of one organisation's.
    pub async fn statement(&self, month: Month, org: Option<&str>, entries: bool) -> Result<Stated, Error> {
        let billed = self.billed(month, None).await?;
        let left_out = left_out(&billed);
        let mut statements = billed.statements;
        if let Some(org) = org {
            statements = of_org(statements, org);
        }
        let is_there = org.is_none() || !statements.is_empty();
        let state = match &billed.closing {
            Some(closing) => format!("closed {}", local(self.zone(), closing.at)),
            None => "open".to_owned(),
        };
        let title = format!("statements, {month}, {}, {state}", self.zone());
        let mut table = if entries || org.is_some() {
            entries_table(&statements, title)
        } else {
            statements_table(&statements, title)
        };
        if let Some(closing) = &billed.closing {
            table.notes.extend(self.notes_of(closing));
        }
        let is_whole = left_out.is_empty();
        table.notes.extend(left_out);
        // All that was seen is in it: a remark, and no reason to take the statement for a part of one.
        let seen = billed.seen.iter().filter(|part| org.is_none() || part.org.as_deref() == org);
        table.notes.extend(seen.map(SeenPart::said));
        let is_empty = org.is_none() && statements.is_empty() && billed.closing.is_none();
        if is_empty {
            table.notes.push(format!("nothing is booked in {month}"));
        }
        if let (Some(org), false) = (org, is_there) {
            table.notes.push(format!("{org:?} has no statement of {month}"));
        }
        self.remark(&mut table);
        Ok(Stated { table, is_whole: is_whole && is_there && !is_empty })
    }

    /// The text of a month whose SHA-256 is signed when it is closed.
    pub async fn canonical(&self, month: Month) -> Result<Vec<u8>, Error> {
        Ok(canonical_csv(&self.billed(month, None).await?.statements))
    }

    /// The months that are closed.
    pub async fn closed_months(&self) -> Result<Table, Error> {
        let reading = self.ledger.read().await?;
        let text = |text: &str| Value::Text(text.into());
        let of = |closing: &Closing| {
            let ratio = |ratio: Option<_>| ratio.map_or(Value::Absent, Value::Decimal);
            let name = |name: &Option<Name>| name.clone().map_or(Value::Absent, Value::Text);
            vec![
                text(&closing.month.to_string()),
                text(&closing.at.to_string()),
                text(&closing.by),
                name(&closing.comment),
                name(&closing.sign_off),
                Value::Count(closing.entries),
                ratio(closing.coverage),
                ratio(closing.use_coverage),
                Value::Decimal(closing.amount.to_minor_string().parse().expect("digits, a point and a sign")),
                text(closing.amount.currency().code()),
                text(&closing.price_version),
                text(&closing.sha256),
            ]
        };
        let columns = [
            ("month", Kind::Text),
            ("closed_at", Kind::Text),
            ("closed_by", Kind::Text),
            ("comment", Kind::Text),
            ("sign_off", Kind::Text),
            ("entries", Kind::Count),
            ("coverage", Kind::Ratio),
            ("use_coverage", Kind::Ratio),
            ("amount", Kind::Money),
            ("currency", Kind::Text),
            ("price_version", Kind::Text),
            ("sha256", Kind::Text),
        ];
        let mut table = Table {
            title: format!("closed months, {}", self.zone()),
            columns: columns.map(|(name, kind)| Column { name: name.to_owned(), kind }).to_vec(),
            rows: reading.closings().iter().map(of).collect(),
            total: None,
            notes: Vec::new(),
        };
        if table.rows.is_empty() {
            table.notes.push(
                "no month is closed: cardhour close --month MONTH --dry-run shows what would be signed".to_owned(),
            );
        }
        self.remark(&mut table);
        Ok(table)
    }

    /// What closing a month would sign, and what speaks against it.
    pub async fn would_close(&self, month: Month, approval: &Approval) -> Result<CloseAnswer, Error> {
        if let Some(closing) = self.ledger.read().await?.closings().iter().find(|closing| closing.month == month) {
            return self.closed_answer(closing, true).await;
        }
        let (book, _) = self.terms()?;
        let (policy, _) = self.billing_policy()?;
        let prepared = self.ledger.prepare_close(month, approval.now, Terms { book: &book, policy: &policy }).await?;
        let stops = prepared.stops(approval.sign_off.as_ref());
        let mut table = self.prepared_table(&prepared);
        for refusal in &prepared.refusals {
            let mends = if refusal.yields_to_sign_off() { " (--sign-off REASON closes it nevertheless)" } else { "" };
            table.notes.push(format!("{refusal}{mends}"));
        }
        table.notes.push(match stops.is_empty() {
            true => format!("dry run: it would be closed, SHA-256 {}", prepared.sha256),
            false => "dry run: it would be refused".to_owned(),
        });
        Ok(CloseAnswer { table, is_refused: !stops.is_empty() })
    }

    fn prepared_table(&self, prepared: &Prepared) -> Table {
        let title = format!("statements, {}, {}, open", prepared.billed.month, self.zone());
        let mut table = statements_table(&prepared.billed.statements, title);
        self.remark(&mut table);
        table
    }

    /// Closes a month, or says why not. One that is closed is given as it was closed.
    pub async fn close(&self, month: Month, approval: &Approval) -> Result<CloseAnswer, Error> {
        let was_closed = self.ledger.read().await?.closings().iter().any(|closing| closing.month == month);
        if was_closed {
            let reading = self.ledger.read().await?;
            let closing = reading.closings().iter().find(|closing| closing.month == month).expect("seen just now");
            return self.closed_answer(closing, true).await;
        }
        let (book, prices) = self.terms()?;
        let (policy, policy_text) = self.billing_policy()?;
        let request = CloseRequest {
            month,
            now: approval.now,
            by: approval.by.clone(),
            comment: approval.comment.clone(),
            sign_off: approval.sign_off.clone(),
            prices,
            policy: policy_text,
            code_version: crate::VERSION.into(),
        };
        let terms = Terms { book: &book, policy: &policy };
        match self.ledger.close(&request, terms).await? {
            CloseOutcome::Done(closing) => self.closed_answer(&closing, false).await,
            CloseOutcome::Refused(refusals) => {
                let prepared = self.ledger.prepare_close(month, approval.now, terms).await?;
                let mut table = self.prepared_table(&prepared);
                table.notes.extend(refusals.iter().map(|refusal| {
                    let mends =
                        if refusal.yields_to_sign_off() { " (--sign-off REASON closes it nevertheless)" } else { "" };
                    format!("not closed: {refusal}{mends}")
                }));
                Ok(CloseAnswer { table, is_refused: true })
            }
        }
    }

    async fn closed_answer(&self, closing: &Closing, was_closed: bool) -> Result<CloseAnswer, Error> {
        let mut table = self.statement(closing.month, None, false).await?.table;
        if was_closed {
            table.notes.insert(0, "it was closed before, and nothing opens it again".to_owned());
        }
        Ok(CloseAnswer { table, is_refused: false })
    }

    fn notes_of(&self, closing: &Closing) -> Vec<String> {
        let mut notes = vec![format!("closed by {}, SHA-256 {}", closing.by, closing.sha256)];
        notes.extend(closing.comment.iter().map(|comment| format!("comment: {comment}")));
        notes.extend(closing.sign_off.iter().map(|reason| format!("signed off: {reason}")));
        notes
    }

    /// Where an entry comes from: what it says, what it refunds or corrects, and what is beneath the line it is of.
    pub(crate) async fn trace_entry(&self, id: &str) -> Result<Trace, Error> {
        let (statement, entry) = self.entry(id).await?.ok_or_else(|| Error::NoEntry(id.to_owned()))?;
        let is_correction = entry.kind() == EntryKind::Correction;
        let mut trace = match entry.key.line() {
            // What stands in the closed month is of the line; whose doing the correction is says itself.
            Some(line) if is_correction => {
                let value =
                    |value: &Option<Name>| value.as_ref().map_or_else(|| "(none)".to_owned(), ToString::to_string);
                let facts = line.values.iter().map(|(name, of)| (name.to_string(), value(of))).collect();
                Trace { line: line.to_string(), facts, parts: Vec::new() }
            }
            Some(line) => self.trace_line(&line.to_string(), None).await?,
            None => Trace { line: id.to_owned(), facts: Vec::new(), parts: Vec::new() },
        };
        if is_correction {
            trace.parts = self.corrected(std::slice::from_ref(&entry)).await?;
        } else if let Some(parts) = self.parts_of(&entry).await? {
            parts.add_to(&mut trace, &entry, self.zone());
        }
        trace.facts.splice(0..0, facts(&statement, &entry, id));
        if entry.key.line().is_some() {
            trace.facts.push(("of line".to_owned(), trace.line.clone()));
        }
        trace.line = id.to_owned();
        Ok(trace)
    }

    /// An entry of a closed month, or of one that is open.
    async fn entry(&self, id: &str) -> Result<Option<(Statement, Entry)>, Error> {
        // The newest first: it is asked for most.
        for month in self.months().await?.into_iter().rev() {
            for statement in self.billed(month, None).await?.statements {
                if let Some(entry) = statement.entries.iter().find(|entry| entry.id().as_str() == id) {
                    let entry = entry.clone();
                    return Ok(Some((statement, entry)));
                }
            }
        }
        Ok(None)
    }

    /// Of which months the books have anything, in words.
    pub(crate) async fn spoken_months(&self) -> Result<String, Error> {
        let months = self.months().await?;
        Ok(match (months.first(), months.last()) {
            (Some(first), Some(last)) if first == last => format!("the books have rows of {first} alone"),
            (Some(first), Some(last)) => format!("the books have rows of {first} to {last}"),
            _ => "the books are empty".to_owned(),
        })
    }

    /// Every month that has statements: from the first to the last that the books speak of, and the first open one after closed months.
    pub(crate) async fn months(&self) -> Result<Vec<Month>, Error> {
        let reading = self.ledger.read().await?;
        let Some(extent) = reading.extent() else { return Ok(Vec::new()) };
        let zone = self.zone();
        let last = Timestamp::from_unix_ms(extent.end().unix_ms() - 1);
        let (Some(mut month), Some(last)) = (zone.month(extent.start()), zone.month(last)) else {
            return Ok(Vec::new());
        };
        let mut months = Vec::new();
        while month <= last {
            months.push(month);
            month = month.next();
        }
        months.extend(reading.open_month().filter(|open| *open > last));
        Ok(months)
    }

    /// The tables `statements` and `entries` of every month, closed and open; without rows unless they are asked for, or where nothing has a price.
    pub(crate) async fn statement_tables(&self, asks: bool) -> Result<Vec<(&'static str, RecordBatch)>, Error> {
        let mut months = Vec::new();
        if asks {
            for month in self.months().await? {
                match self.billed(month, None).await {
                    Ok(billed) => months.push(billed),
                    Err(Error::NoPrices) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let (statements, entries) = statement_rows(&months)?;
        Ok(TABLES.into_iter().zip([statements, entries]).collect())
    }
}

/// What of an open month is in no statement, in words.
pub(crate) fn left_out(billed: &BilledMonth) -> Vec<String> {
    let mut out = describe_holes(&billed.holes);
    out.extend(billed.unbooked.iter().chain(&billed.uncorrected).map(|what| format!("in no statement: {what}")));
    out
}

/// What an entry says of itself.
fn facts(statement: &Statement, entry: &Entry, id: &str) -> Vec<(String, String)> {
    let state = if statement.closed.is_some() { "closed" } else { "open" };
    let mut facts = vec![
        ("entry".to_owned(), id.to_owned()),
        ("kind".to_owned(), entry.kind().name().to_owned()),
        ("statement".to_owned(), format!("{} ({state})", statement.number)),
        ("amount".to_owned(), format!("{} {}", entry.amount.to_minor_string(), entry.amount.currency())),
    ];
    let mut add = |name: &str, value: Option<String>| facts.extend(value.map(|value| (name.to_owned(), value)));
    let is_correction = entry.kind() != entry.key.kind;
    add(
        "corrects",
        is_correction.then(|| format!("an entry of kind {} of {}", entry.key.kind.name(), entry.key.original_period)),
    );
    // What is of a line says so below, from the line itself.
    if entry.key.line().is_none() {
        let hours = |time: cardhour_domain::CardTime| (!time.is_zero()).then(|| time.card_hours().to_string());
        let name = |name: &Option<Name>| name.as_ref().map(ToString::to_string);
        add("org", name(&entry.key.org));
        add("project", name(&entry.key.project));
        add("user", name(&entry.key.user));
        add("model", name(&entry.key.model));
        add("price", name(&entry.key.price_line));
        add("price version", name(&entry.price_version));
        add("window", name(&entry.key.window));
        add("card-hours", hours(entry.card_time));
        add("quantity", entry.quantity.as_ref().map(|(quantity, unit)| format!("{quantity} {unit}")));
    }
    add("original entry", entry.original_entry.as_ref().map(ToString::to_string));
    add("what", entry.key.what.as_ref().map(ToString::to_string));
    add("reason", entry.reason.as_ref().map(ToString::to_string));
    facts
}
