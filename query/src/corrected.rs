//! Where corrections of closed months come from (LED-8), for people and programs: whose doing each is, as the month was closed and as it is.
//!
//! Start at [`Books::corrected`]. Does not: work anything out, which `cardhour_books::statement` does from what was frozen and from the facts of today.

use crate::answer::texts;
use crate::books::Books;
use crate::error::Error;
use crate::traced::{amount_text, hours, money};
use cardhour_books::line::Line;
use cardhour_books::report::{Dimension, UNOWNED, local};
use cardhour_books::statement::{Changed, ChangedFigures, ChangedSource, Entry, EntryKey, EntryKind, Told};
use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_domain::{Money, Month, Name, Zone};
use cardhour_ledger::ChangedLine;
use std::collections::BTreeMap;

impl Books {
    /// What a trace shows of corrections: the entries of their lines, whose doing they are, what else changed there, and their prices.
    ///
    /// The two figures are those of the closed month and of today: where a line was corrected more than once, they are what its corrections come to together.
    pub(crate) async fn corrected(&self, corrections: &[Entry]) -> Result<Vec<(String, Table)>, Error> {
        let (reading, zone) = (self.ledger.read().await?, self.zone());
        let mut by_month: BTreeMap<Month, Vec<&Entry>> = BTreeMap::new();
        for entry in corrections {
            by_month.entry(entry.key.original_period).or_default().push(entry);
        }
        let mut lines: Vec<(&Entry, ChangedLine)> = Vec::new();
        for (month, entries) in by_month {
            let keys: Vec<EntryKey> = entries.iter().map(|entry| entry.key.clone()).collect();
            let changed = reading.changes(month, zone, &keys).await?.unwrap_or_default();
            lines.extend(entries.into_iter().zip(changed));
        }
        let open = match reading.open_month() {
            Some(open) if lines.iter().any(|(entry, _)| entry.period != open) => self.open_entries(open).await?,
            _ => corrections.to_vec(),
        };
        let parts = [
            ("entries", entries(&lines, &open)),
            ("changed", changed(&lines, zone, CHANGED, |line| &line.changes.parts)),
            ("beside", changed(&lines, zone, BESIDE, |line| &line.changes.beside)),
            ("prices", prices(&lines)),
        ];
        let parts = parts.into_iter().filter(|(name, part)| *name == "changed" || !part.rows.is_empty());
        Ok(parts.map(|(name, part)| (name.to_owned(), part)).collect())
    }

    /// The entries of an open month; none without a price book.
    async fn open_entries(&self, month: Month) -> Result<Vec<Entry>, Error> {
        match self.billed(month, None).await {
            Ok(billed) => Ok(billed.statements.into_iter().flat_map(|statement| statement.entries).collect()),
            Err(Error::NoPrices) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The corrections that stand in the statements of a line's month and are of who and what the line names. None of a line that isn't of one month as a
    /// whole, or that says what no entry has.
    pub(crate) async fn corrections_under(&self, line: &Line) -> Result<Vec<Entry>, Error> {
        let month = line.value(&Dimension::Month).and_then(|month| Month::parse(month).ok());
        let Some(month) = month.filter(|_| line.range.is_none() && line.zone.is_none_or(|zone| zone == self.zone()))
        else {
            return Ok(Vec::new());
        };
        let reading = self.ledger.read().await?;
        let is_closed = reading.closings().iter().any(|closing| closing.month == month);
        if !is_closed && reading.open_month() != Some(month) {
            return Ok(Vec::new());
        }
        let mut entries = self.open_entries(month).await?;
        entries.retain(|entry| entry.kind() == EntryKind::Correction && is_under(&entry.key, line));
        Ok(entries)
    }
}

/// What is said of all of some corrections: how many there are, and what they come to.
pub(crate) fn summary(corrections: &[Entry]) -> Option<String> {
    let first = corrections.first()?;
    let zero = Money::zero(first.amount.currency());
    let sum = corrections.iter().fold(zero, |sum, entry| sum + entry.amount);
    let what = if corrections.len() == 1 { "entry" } else { "entries" };
    Some(format!("{} {what}, {} {}", corrections.len(), amount_text(sum), sum.currency()))
}

/// Whether an entry is of whom and what a line names, whatever its month.
fn is_under(key: &EntryKey, line: &Line) -> bool {
    let EntryKey { org, project, user, model, price_line, window, .. } = key;
    let is_unowned = org.is_none() && project.is_none() && user.is_none();
    line.values.iter().all(|(dimension, value)| {
        let is = |has: &Option<Name>| has == value;
        let owner = |has: &Option<Name>| is(has) || is_unowned && value.as_deref() == Some(UNOWNED);
        match dimension {
            Dimension::Month => true,
            Dimension::Org => owner(org),
            Dimension::Project => owner(project),
            Dimension::User => owner(user),
            Dimension::Model => is(model),
            Dimension::Price => is(price_line),
            Dimension::Window => is(window),
            _ => false,
        }
    })
}

const CHANGED: &str = "changed: whose doing it is, as the month was closed and as it is today";
const BESIDE: &str = "beside: what else changed there";

pub(crate) fn name(name: &Option<Name>) -> Value {
    name.clone().map_or(Value::Absent, Value::Text)
}

pub(crate) fn text(text: impl Into<Name>) -> Value {
    Value::Text(text.into())
}

/// Every entry of the lines that are corrected. `open`: entries of the open month.
fn entries(lines: &[(&Entry, ChangedLine)], open: &[Entry]) -> Table {
    let mut rows = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (correction, line) in lines {
        let of_open = open.iter().filter(|entry| entry.key == correction.key);
        for entry in line.standing.iter().chain(of_open).filter(|entry| seen.insert(entry.id().to_string())) {
            let EntryKey { original_period, org, project, user, model, what, .. } = &entry.key;
            let mut row = vec![text(entry.id().to_string()), text(entry.kind().name()), text(entry.period.to_string())];
            row.push(text(original_period.to_string()));
            row.extend([org, project, user, model, what].map(name));
            row.extend([hours(entry.card_time), money(Some(entry.amount))]);
            rows.push(row);
        }
    }
    let names = ["entry_id", "kind", "period", "original_period", "org", "project", "user", "model", "what"];
    let mut columns = texts(&names);
    columns.extend([column("card_hours", Kind::Hours), column("amount", Kind::Money)]);
    let title = "entries: each line as it was closed and its corrections, which add up to what it is today".to_owned();
    Table { title, columns, rows, ..Table::default() }
}

pub(crate) fn column(name: &str, kind: Kind) -> Column {
    Column { name: name.to_owned(), kind }
}

/// What differs, a row each.
fn changed(
    lines: &[(&Entry, ChangedLine)],
    zone: Zone,
    title: &str,
    of: impl Fn(&ChangedLine) -> &Vec<Changed>,
) -> Table {
    let mut rows = Vec::new();
    for (entry, line) in lines {
        for changed in of(line) {
            let (what, which) = source(&changed.source, zone);
            let time = |figures: &Option<ChangedFigures>| figures.map_or(Value::Absent, |of| hours(of.card_time));
            let amount = |figures: &Option<ChangedFigures>| money(figures.and_then(|figures| figures.amount));
            let told: Vec<String> = changed
                .told
                .iter()
                .map(|told| {
                    let said = |said: &Option<Told>| match said {
                        None => "none".to_owned(),
                        Some(Told::Name(name)) => name.to_string(),
                        Some(Told::At(at)) => local(zone, *at),
                    };
                    format!("{} was {}, is {}", told.what, said(&told.before), said(&told.after))
                })
                .collect();
            rows.push(vec![
                text(entry.id().to_string()),
                text(entry.key.original_period.to_string()),
                text(what),
                text(which),
                time(&changed.before),
                time(&changed.after),
                amount(&changed.before),
                amount(&changed.after),
                difference(changed),
                if told.is_empty() { Value::Absent } else { text(told.join("; ")) },
            ]);
        }
    }
    let mut columns = texts(&["correction", "original_period", "source", "which"]);
    columns.extend([column("closed_card_hours", Kind::Hours), column("card_hours", Kind::Hours)]);
    columns.extend(["closed_amount", "amount", "difference"].map(|name| column(name, Kind::Money)));
    columns.extend(texts(&["told"]));
    Table { title: title.to_owned(), columns, rows, ..Table::default() }
}

/// What a part is more or less by; none where neither figure is money.
fn difference(changed: &Changed) -> Value {
    let amount = |figures: Option<ChangedFigures>| figures.and_then(|figures| figures.amount);
    match (amount(changed.before), amount(changed.after)) {
        (None, None) => Value::Absent,
        (None, Some(after)) => money(Some(after)),
        (Some(before), after) => money(Some(after.unwrap_or(Money::zero(before.currency())) + -before)),
    }
}

/// What it is, and which.
pub(crate) fn source(source: &ChangedSource, zone: Zone) -> (&'static str, String) {
    let joined = |names: &[Option<&Name>]| names.iter().flatten().map(|name| &***name).collect::<Vec<_>>().join(" ");
    match source {
        ChangedSource::Attempt(key) => ("attempt", key.as_ref().map_or("(none)", |key| key.as_str()).to_owned()),
        ChangedSource::Cards { cluster, node, model, state, reservation } => {
            let state = state.map_or("capacity", |state| state.name());
            let by = reservation.as_ref().map_or_else(String::new, |name| format!(" by {name}"));
            ("cards", format!("{}: {state}{by}", joined(&[Some(cluster), node.as_ref(), model.as_ref()])))
        }
        ChangedSource::Reservation { cluster, name, start } => {
            ("reservation", format!("{} from {}", joined(&[Some(cluster), Some(name)]), local(zone, *start)))
        }
        ChangedSource::Cost(name) => ("cost", name.to_string()),
        ChangedSource::Line(key) => {
            let EntryKey { kind, org, project, user, model, price_line, window, what, .. } = &**key;
            let names = [org, project, user, model, price_line, window, what].map(Option::as_ref);
            ("line", format!("{} {}", kind.name(), joined(&names)).trim_end().to_owned())
        }
    }
}

/// The prices by which the lines were worked out, then and again.
fn prices(lines: &[(&Entry, ChangedLine)]) -> Table {
    let of = |(entry, line): &(&Entry, ChangedLine)| {
        let says = line.changes.price.clone()?;
        Some(vec![name(&entry.key.price_line), name(&entry.price_version), text(says)])
    };
    let mut rows: Vec<Vec<Value>> = lines.iter().filter_map(of).collect();
    rows.sort();
    rows.dedup();
    let title = "prices: as the price book of the closed month has them".to_owned();
    Table { title, columns: texts(&["price", "version", "says"]), rows, ..Table::default() }
}
