//! What bills print, and what was printed, against what holdings cost.

use super::calendar::{Run, View, runs};
use super::exported::{ExportedBill, ExportedRow, FIGURES, Figure};
use super::findings::{Findings, time_text};
use super::load::Stored;
use super::money::{Bill, LeafKey, Row, Sums, bill, card_hour_micros, standard_micros};
use super::place::{Atlas, atlases};
use super::span::Span;
use super::{Law, Verdict};
use crate::{Error, Ledger, Reading};
use cardhour_books::bill::{Charge, charges};
use cardhour_books::line::Line;
use cardhour_books::prices::PriceBook;
use cardhour_books::report::{Dimension, ReportInput, ReportKind, ReportQuery, report};
use cardhour_books::slots::Slots;
use cardhour_books::table::{Table, Value};
use cardhour_domain::{Interval, Name};
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};

/// Groupings whose bills are proven row by row.
const GROUPINGS: [&str; 4] = ["org", "queue", "model,user", "project,day"];

/// Everything a bill is worked out from.
struct Desk<'a> {
    ledger: &'a Ledger,
    stored: &'a Stored,
    reading: &'a Reading,
    book: Option<&'a PriceBook>,
    atlases: BTreeMap<u32, Atlas>,
    /// From the first instant that is held to the last.
    held: Option<Span>,
}

pub(super) async fn check(
    ledger: &Ledger,
    stored: &Stored,
    reading: &Reading,
    book: Option<&PriceBook>,
    exported: Option<&ExportedBill>,
    verdict: &mut Verdict,
) -> Result<(), Error> {
    let first = stored.holdings.iter().map(|held| held.span.from).min();
    let last = stored.holdings.iter().map(|held| held.span.to).max();
    let held = first.zip(last).and_then(|(from, to)| Span::new(from, to));
    let desk = Desk { ledger, stored, reading, book, atlases: atlases(stored), held };
    let (leaves, rows) = desk.check_reports().await?;
    let leaf = match book {
        Some(_) => "each leaf of the bill costs what holdings, cut at its edges, cost",
        None => "each leaf of the bill holds what holdings, cut at its edges, hold",
    };
    verdict.add(Law::Led7, leaf, leaves);
    verdict.add(
        Law::Led6,
        "bills by org, queue, model and user, project and day: each row is right, and one total",
        rows,
    );
    if let Some(exported) = exported {
        let findings = match desk.is_of_closed_months(exported) {
            true => desk.check_frozen(exported).await?,
            false => desk.check_exported(exported),
        };
        verdict.add(Law::Led6, format!("{} says what the books say", exported.name), findings);
    }
    Ok(())
}

/// A value as csv has it.
fn text_of(value: &Value) -> String {
    match value {
        Value::Absent => String::new(),
        Value::Text(text) => text.to_string(),
        Value::Count(count) => count.to_string(),
        Value::Decimal(number) => number.to_string(),
    }
}

/// A value as an exported bill is read.
fn figure_of(value: &Value) -> Figure {
    match value {
        Value::Absent => Figure::Absent,
        Value::Text(text) => Figure::Text(text.to_string()),
        Value::Count(count) => Figure::Number(Decimal::from(*count)),
        Value::Decimal(number) => Figure::Number(*number),
    }
}

impl Desk<'_> {
    fn bill(&self, by: &[Dimension], zone: Option<cardhour_domain::Zone>, range: Option<Span>) -> Bill {
        let view = View {
            zone: zone.unwrap_or(self.ledger.zone()),
            by_day: by.contains(&Dimension::Day),
            by_month: by.contains(&Dimension::Month),
            range,
        };
        let runs: Vec<Run> =
            self.held.and_then(|held| runs(held, self.ledger.zone(), self.book, view)).unwrap_or_default();
        bill(self.stored, &self.atlases, &runs, self.book, by)
    }

    /// The leaves and some groupings as reports give them, from usage.
    async fn check_reports(&self) -> Result<(Findings, Findings), Error> {
        let (mut leaves, mut rows) = (Findings::of_time(), Findings::of_time());
        let Some(all) = self.reading.extent() else { return Ok((leaves, rows)) };
        let mut inputs: Vec<(bool, Slots, ReportInput)> = Vec::new();
        for list in GROUPINGS {
            let by = Dimension::parse_list(list).expect("names of dimensions");
            let query = ReportQuery { report: ReportKind::Bill, by, range: None, zone: None };
            let by_day = query.by.contains(&Dimension::Day);
            if !inputs.iter().any(|(known, ..)| *known == by_day) {
                let slots = query.slots(all, self.book, self.ledger.zone()).map_err(|source| Error::Cut { source })?;
                match self.reading.live_input(&slots).await {
                    Ok(input) => inputs.push((by_day, slots, input)),
                    // What usage holds can't be billed at all: that is the fault.
                    Err(Error::Damaged { table, what }) => {
                        leaves.fault(&table, "all of it", "rows that can be billed", &what);
                        return Ok((leaves, rows));
                    }
                    Err(error) => return Err(error),
                }
            }
            let (_, slots, input) = inputs.iter().find(|(known, ..)| *known == by_day).expect("just made");
            let ours = self.bill(&query.by, None, None);
            if leaves.rows == 0 {
                self.compare_leaves(&ours, &charges(input, slots, self.book), &mut leaves);
            }
            if rows.rows == 0 {
                rows.time(total_of(&ours).time);
            }
            let made = report(input, slots, self.book, &query);
            self.compare_report(list, &ours, &made.table, query.by.len(), &mut rows);
        }
        Ok((leaves, rows))
    }

    fn compare_leaves(&self, ours: &Bill, theirs: &[Charge], out: &mut Findings) {
        let names = &self.stored.names;
        let text = |id: Option<u32>| id.map(|id| names.get(id).clone());
        type Key = (String, Vec<Option<Name>>);
        let key_of = |key: &LeafKey| -> Key {
            let price = key.price.zip(self.book).map(|(price, book)| book.prices()[price].price_line.clone());
            let window = key.window.zip(self.book).map(|(window, book)| book.windows()[window].name.clone());
            let [org, project, user] = key.owner.map(text);
            (key.month.to_string(), vec![org, project, user, text(key.model), price, window])
        };
        let mut expected: BTreeMap<Key, Sums> = ours.leaves.iter().map(|(key, sums)| (key_of(key), *sums)).collect();
        let mut at_all: BTreeSet<Key> = BTreeSet::new();
        for charge in theirs {
            let Charge { org, project, user, model, price_line, window, .. } = charge;
            let values = [org, project, user, model, price_line, window].map(Clone::clone).to_vec();
            let key = (charge.month.to_string(), values);
            out.saw(charge.card_time.part_ms());
            let place = format!("line {}", charge.line);
            let right = expected.remove(&key).unwrap_or_default();
            if !at_all.insert(key) {
                out.fault("charges", &place, "one row of it", "another");
            }
            compare_time("card_time", &place, right.time, charge.card_time.part_ms(), out);
            compare_time("billed_time", &place, right.billed, charge.billed_time.part_ms(), out);
            let micros = |money: Option<cardhour_domain::Money>| money.map(cardhour_domain::Money::micros);
            compare_money("list_cost", &place, right.list_cost, micros(charge.list_cost), out);
            compare_money("cost", &place, right.cost, micros(charge.cost), out);
        }
        for ((month, values), sums) in expected.into_iter().filter(|(_, sums)| sums.time != 0) {
            let values: Vec<&str> = values.iter().map(|value| value.as_deref().unwrap_or("-")).collect();
            let place = format!("{month}, {}", values.join(", "));
            out.fault("charges", &place, &format!("a leaf of {}", time_text(sums.time)), "none");
        }
    }

    fn compare_report(&self, list: &str, ours: &Bill, table: &Table, by: usize, out: &mut Findings) {
        let shown = |values: &[Value]| -> Vec<Option<Name>> {
            values
                .iter()
                .map(|value| match value {
                    Value::Text(text) => Some(text.clone()),
                    Value::Absent | Value::Count(_) | Value::Decimal(_) => None,
                })
                .collect()
        };
        let columns = FIGURES.map(|name| table.columns.iter().position(|column| column.name == name));
        let cells = |row: &[Value]| columns.map(|column| column.map(|column| figure_of(&row[column])));
        let mut expected: BTreeMap<&[Option<Name>], &Row> = ours.rows.iter().map(|row| (&*row.values, row)).collect();
        for row in &table.rows {
            let values = shown(&row[..by]);
            let right = expected.remove(&*values).map_or_else(Sums::default, |row| row.sums);
            out.rows += 1;
            self.compare_figures("bill", &format!("by {list}: {}", told(&values)), right, &cells(row), out);
        }
        for (values, row) in expected.into_iter().filter(|(_, row)| row.sums.time != 0) {
            out.fault("bill", &format!("by {list}: {}", told(values)), &time_text(row.sums.time), "no such row");
        }
        // One total for every grouping: that of the leaves.
        if let Some(total) = &table.total {
            self.compare_figures("bill", &format!("by {list}: the total"), total_of(ours), &cells(total), out);
        }
    }

    /// Whether a bill tells of months that are closed, which are what they were then.
    fn is_of_closed_months(&self, exported: &ExportedBill) -> bool {
        let of = exported.rows.first().and_then(|row| row.line.within(self.ledger.zone())).or(self.reading.extent());
        let closed = self.reading.closed.as_ref().map(|closed| closed.during);
        closed.zip(of).is_some_and(|(closed, of)| closed.overlap(of).is_some())
    }

    /// A bill with closed months against what was frozen with them. That what was frozen is right was proven when they were closed, and that it is the same
    /// still is a check of its own.
    async fn check_frozen(&self, exported: &ExportedBill) -> Result<Findings, Error> {
        let mut out = Findings::of_time();
        let Some(first) = exported.rows.first() else { return Ok(out) };
        let zone = self.ledger.zone();
        let book = match self.reading.prices_in_force(self.book, zone, first.line.range)? {
            Ok(book) => book,
            Err(currencies) => {
                out.fault(&exported.name, "all of it", "one currency", &currencies.to_string());
                return Ok(out);
            }
        };
        let (range, view) = (first.line.range, first.line.zone);
        let query = ReportQuery { report: ReportKind::Bill, by: exported.by.clone(), range, zone: view };
        let all = self.reading.extent().or(range).expect("a closed month is in the books");
        let slots = query.slots(all, book.as_ref(), zone).map_err(|source| Error::Cut { source })?;
        let table = report(&self.reading.input(&slots).await?, &slots, book.as_ref(), &query).table;
        let by = exported.by.len();
        let figures = FIGURES.map(|name| table.columns.iter().position(|column| column.name == name));
        let mut expected: BTreeMap<Vec<String>, &Vec<Value>> =
            table.rows.iter().map(|row| (row[..by].iter().map(text_of).collect(), row)).collect();
        for row in &exported.rows {
            let place = place_of(exported, row);
            let values =
                row.values.iter().map(|value| value.as_deref().unwrap_or_default().to_owned()).collect::<Vec<_>>();
            let Some(right) = expected.remove(&values) else {
                out.fault(&exported.name, &place, "no such row, or one of it", "a row");
                continue;
            };
            out.rows += 1;
            for ((name, column), found) in FIGURES.iter().zip(figures).zip(&row.figures) {
                let Some(right) = column.map(|column| figure_of(&right[column])) else { continue };
                if *found != Some(right.clone()) {
                    out.fault(
                        &exported.name,
                        &format!("{place}, {name}"),
                        &format!("{right:?}"),
                        &format!("{found:?}"),
                    );
                }
            }
        }
        for (values, _) in expected {
            out.fault(&exported.name, &values.join(", "), "a row", "none");
        }
        Ok(out)
    }

    /// The file's rows, each against its own; and those that the file should have and hasn't.
    fn check_exported(&self, exported: &ExportedBill) -> Findings {
        let mut out = Findings::of_time();
        let columns: &[&str] = if self.book.is_some() { &FIGURES } else { &["card_hours", "billed_card_hours"] };
        for name in columns.iter().filter(|name| !exported.columns.iter().any(|column| column == *name)) {
            out.fault(&exported.name, &format!("column {name}"), "as the bill has it", "no such column");
        }
        let Some(first) = exported.rows.first() else {
            if self.bill(&[], None, None).rows.iter().any(|row| row.sums.time != 0) {
                out.fault(&exported.name, "all of it", "rows: time is held", "none");
            }
            return out;
        };
        let (range, zone) = (first.line.range, first.line.zone);
        let by = &exported.by;
        let span = |range: Interval| Span { from: range.start().unix_ms(), to: range.end().unix_ms() };
        let ours = self.bill(by, zone, range.map(span));
        let shown: Vec<&Row> = ours.rows.iter().filter(|row| row.era == 1).collect();
        let mut expected: BTreeMap<&[Option<Name>], &Row> = shown.iter().map(|row| (&*row.values, *row)).collect();
        let mut dates: BTreeSet<Vec<Option<Name>>> = BTreeSet::new();
        let date_of = |values: &[Option<Name>]| -> Vec<Option<Name>> {
            let dated = by.iter().zip(values).filter(|(by, _)| matches!(by, Dimension::Day | Dimension::Month));
            dated.map(|(_, value)| value.clone()).collect()
        };
        for row in &exported.rows {
            let place = place_of(exported, row);
            if row.line.range != range || row.line.zone != zone || row.line.by() != *by {
                let found = row.line.to_string();
                out.fault(&exported.name, &place, "a line of the same groups and time as the first", &found);
                continue;
            }
            let values: Vec<Option<Name>> = row.line.values.iter().map(|(_, value)| value.clone()).collect();
            if values != row.values {
                out.fault(&exported.name, &place, &told(&values), &told(&row.values));
            }
            dates.insert(date_of(&values));
            match expected.remove(&*values) {
                Some(right) => {
                    out.saw(right.sums.time);
                    self.compare_figures(&exported.name, &place, right.sums, &row.figures, &mut out);
                }
                None => {
                    // A row again, or one of attempts that never held anything, whose figures are nothing.
                    let again = shown.iter().any(|row| row.values == values);
                    if again {
                        out.fault(&exported.name, &place, "one row of this line", "the line again");
                    } else {
                        out.saw(0);
                        self.compare_figures(&exported.name, &place, Sums::default(), &row.figures, &mut out);
                    }
                }
            }
        }
        for (values, row) in
            expected.into_iter().filter(|(values, row)| row.sums.time != 0 && dates.contains(&date_of(values)))
        {
            let line = Line { values: by.iter().cloned().zip(values.iter().cloned()).collect(), range, zone };
            out.fault(&exported.name, &format!("line {line}"), &time_text(row.sums.time), "no such row in the file");
        }
        out
    }

    fn compare_figures(
        &self,
        table: &str,
        place: &str,
        right: Sums,
        found: &[Option<Figure>; FIGURES.len()],
        out: &mut Findings,
    ) {
        let micros = |micros: i128| Figure::Number(Decimal::from_i128_with_scale(micros, 6));
        let money = |amount: Option<i128>| amount.map_or(Figure::Absent, micros);
        let currency = self.book.filter(|_| right.cost.is_some()).map(|book| book.currency().code().to_owned());
        let expected = [
            micros(card_hour_micros(right.time)),
            micros(card_hour_micros(right.billed)),
            right.cost.map_or(Figure::Absent, |_| micros(standard_micros(right.standard))),
            money(right.list_cost),
            money(right.cost),
            currency.map_or(Figure::Absent, Figure::Text),
        ];
        for ((name, right), found) in FIGURES.iter().zip(expected).zip(found) {
            // Decimals are equal whatever zeros follow them.
            if let Some(found) = found
                && *found != right
            {
                let text = |figure: &Figure| match figure {
                    Figure::Absent => "none".to_owned(),
                    Figure::Number(number) => number.to_string(),
                    Figure::Text(text) => text.clone(),
                };
                out.fault(table, place, &format!("{name} {}", text(&right)), &text(found));
            }
        }
    }
}

fn total_of(ours: &Bill) -> Sums {
    let mut total = Sums::default();
    for leaf in ours.leaves.values() {
        total.time += leaf.time;
        total.billed += leaf.billed;
        total.standard = total.standard.saturating_add(leaf.standard);
        for (sum, part) in [(&mut total.list_cost, leaf.list_cost), (&mut total.cost, leaf.cost)] {
            if let Some(part) = part {
                *sum = Some(sum.unwrap_or(0) + part);
            }
        }
    }
    total
}

fn place_of(exported: &ExportedBill, row: &ExportedRow) -> String {
    format!("line {} of {}: {}", row.number, exported.name, row.line)
}

fn told(values: &[Option<Name>]) -> String {
    let values: Vec<&str> = values.iter().map(|value| value.as_deref().unwrap_or("-")).collect();
    if values.is_empty() { "all".to_owned() } else { values.join(", ") }
}

fn compare_time(name: &str, place: &str, right: i128, found: i128, out: &mut Findings) {
    if right != found {
        out.fault("charges", place, &format!("{name} {}", time_text(right)), &time_text(found));
    }
}

fn compare_money(name: &str, place: &str, right: Option<i128>, found: Option<i128>, out: &mut Findings) {
    if right != found {
        let text = |micros: Option<i128>| {
            micros.map_or("none".to_owned(), |micros| Decimal::from_i128_with_scale(micros, 6).normalize().to_string())
        };
        out.fault("charges", place, &format!("{name} {}", text(right)), &text(found));
    }
}
