//! What an entry is made of (LED-8), as tables for people and programs.
//!
//! Start at [`Books::parts_of`]. Does not: work anything out, which `cardhour_books::statement` does.

use crate::answer::{Trace, texts};
use crate::books::Books;
use crate::corrected::{column, name, source, text};
use crate::error::Error;
use crate::traced::{hours, money};
use cardhour_books::statement::{
    BillingMode, BillingPolicy, ChangedSource, Entry, EntryKind, LinePart, MadeOf, SpreadAt,
};
use cardhour_books::table::{Kind, Table, Value};
use cardhour_domain::Zone;
use cardhour_ledger::Terms;

/// Facts of a trace of the bill that are of held time at the price book's prices.
const OF_PRICES: [&str; 2] = ["list_cost", "cost"];

/// What an entry is made of, and the policy by which.
pub(crate) struct Parts {
    made: MadeOf,
    policy: BillingPolicy,
}

impl Books {
    /// What an entry that is no correction is made of; none where its month doesn't have its line any more.
    pub(crate) async fn parts_of(&self, entry: &Entry) -> Result<Option<Parts>, Error> {
        let billed = self.billed(entry.key.original_period, None).await?;
        let terms = Terms { book: &billed.book, policy: &billed.policy };
        let made = self.ledger.read().await?.made_of(&entry.key, self.zone(), terms).await?;
        Ok(made.map(|made| Parts { made, policy: billed.policy }))
    }
}

impl Parts {
    /// Adds them to a trace of the entry, and takes out what the bill says of its line and the entry doesn't.
    ///
    /// A charge at the price book's prices is as the bill has it: there is nothing to add.
    pub(crate) fn add_to(&self, trace: &mut Trace, entry: &Entry, zone: Zone) {
        let absorbs = match self.policy.mode {
            BillingMode::Rate => false,
            BillingMode::Absorb => true,
        };
        let is_as_billed = !absorbs && !self.made.is_by_use;
        let is_refund = entry.kind() == EntryKind::Refund;
        if entry.kind() == EntryKind::Charge && is_as_billed {
            return;
        }
        if self.made.is_by_use {
            let used = format!("use: {} card-hours at work", entry.billed_time.card_hours());
            trace.facts.push(("charged by".to_owned(), used));
        }
        if !is_as_billed {
            trace.facts.retain(|(name, _)| !OF_PRICES.contains(&&**name));
            trace.parts.retain(|(name, _)| name != "charges");
        }
        if is_refund {
            for (_, attempts) in trace.parts.iter_mut().filter(|(name, _)| name == "attempts") {
                self.keep_refunded(attempts);
            }
        }
        let mut made = self.tables(zone);
        // The bill's own trace has the price already.
        made.retain(|(name, table)| !table.rows.is_empty() && trace.parts.iter().all(|(known, _)| known != name));
        trace.parts.splice(0..0, made);
    }

    /// Leaves of the attempts that held the line's cards those whose time is given back.
    fn keep_refunded(&self, attempts: &mut Table) {
        let refunded = |key: &Value| {
            let is_it = |(of, _): &LinePart| match (of, key) {
                (ChangedSource::Attempt(Some(of)), Value::Text(key)) => of.as_str() == &**key,
                (ChangedSource::Attempt(None), Value::Absent) => true,
                _ => false,
            };
            self.made.parts.iter().any(is_it)
        };
        attempts.rows.retain(|row| refunded(&row[0]));
        attempts.title = "attempts: whose time is given back".to_owned();
    }

    fn tables(&self, zone: Zone) -> Vec<(String, Table)> {
        let MadeOf { parts, of, shared_by, prices, spread, .. } = &self.made;
        let tables = [
            ("parts", parts_table("parts: what it is made of, most first", parts, zone)),
            ("of", parts_table("of: the lines of which it is a part", of, zone)),
            ("shared_by", parts_table("shared by: what each project is charged for its cards", shared_by, zone)),
            ("rates", rates_table(spread)),
            ("prices", prices_table(prices)),
        ];
        tables.map(|(name, table)| (name.to_owned(), table)).into()
    }
}

fn parts_table(title: &str, parts: &[LinePart], zone: Zone) -> Table {
    let row = |(of, figures): &LinePart| {
        let (what, which) = source(of, zone);
        vec![text(what), text(which), hours(figures.card_time), hours(figures.billed_time), money(figures.amount)]
    };
    let mut columns = texts(&["source", "which"]);
    columns.extend([column("card_hours", Kind::Hours), column("billed_card_hours", Kind::Hours)]);
    columns.push(column("amount", Kind::Money));
    Table { title: title.to_owned(), columns, rows: parts.iter().map(row).collect(), ..Table::default() }
}

/// The sums that absorb mode spreads, and what of each falls to the line.
fn rates_table(spread: &[SpreadAt]) -> Table {
    let row = |of: &SpreadAt| {
        let SpreadAt { cards, put_in, weight, rate, weight_of_lines, comes_to } = of;
        vec![
            text(&**cards),
            money(Some(*put_in)),
            Value::Decimal(*weight),
            money(Some(*rate)),
            Value::Decimal(*weight_of_lines),
            money(Some(*comes_to)),
        ]
    };
    let mut columns = texts(&["cards"]);
    columns.extend([
        column("put_in", Kind::Money),
        column("standard_card_hours", Kind::Hours),
        column("rate", Kind::Money),
        column("standard_card_hours_of_line", Kind::Hours),
        column("comes_to", Kind::Money),
    ]);
    let title = "rates: the cost put in, divided by card-hours × coefficient, times those of the line".to_owned();
    Table { title, columns, rows: spread.iter().map(row).collect(), ..Table::default() }
}

fn prices_table(prices: &[(Option<cardhour_domain::Name>, String)]) -> Table {
    let rows = prices.iter().map(|(line, says)| vec![name(line), text(&**says)]).collect();
    let title = "prices: by which it was worked out".to_owned();
    Table { title, columns: texts(&["price", "says"]), rows, ..Table::default() }
}
