//! A statement in the words that people read on it, whatever it is written to: shared by the page and the workbook.

use crate::render::{grouped, hours, percent, quoted};
use cardhour_books::line::Line;
use cardhour_books::report::{Dimension, local};
use cardhour_books::statement::{EntryKind, PLATFORM, Statement, StatementTerms, Summary};
use cardhour_domain::{CardTime, Money, Name};
use chrono::NaiveDate;
use rust_decimal::Decimal;

/// What stands where a name is absent: whoever isn't named is still somebody.
pub const NO_NAME: &str = "(none)";

/// A statement, folded, with what else has to be said of it.
#[derive(Clone, Debug)]
pub struct Paper<'a> {
    /// The statement.
    pub statement: &'a Statement,
    /// Its entries, folded for people.
    pub summary: Summary,
    /// Sentences of the ledger's own: that it is simulated.
    pub remarks: &'a [String],
}

impl<'a> Paper<'a> {
    /// Of a statement. `remarks`: sentences that stand on it.
    pub fn of(statement: &'a Statement, remarks: &'a [String]) -> Self {
        Self { statement, summary: Summary::of(statement), remarks }
    }

    /// Whether the month is open.
    pub fn is_draft(&self) -> bool {
        self.statement.closed.is_none()
    }

    /// `March 2026`.
    pub fn month(&self) -> String {
        self.statement.period.first_date().format("%B %Y").to_string()
    }

    /// Its first and its last local date: `1 March 2026 to 31 March 2026`.
    pub fn period(&self) -> String {
        let date = |date: NaiveDate| date.format("%-d %B %Y").to_string();
        let first = self.statement.period.first_date();
        let last = self.statement.period.next().first_date().pred_opt().unwrap_or(first);
        format!("{} to {}", date(first), date(last))
    }

    /// Whether it can still change, and who closed it.
    pub fn status(&self) -> String {
        let Some(closed) = &self.statement.closed else {
            return "Draft: the month is open, and figures can change".to_owned();
        };
        let comment = closed.comment.as_ref().map_or_else(String::new, |comment| format!(" ({comment})"));
        format!("Closed {} by {}{comment}", local(self.statement.zone, closed.at), closed.by)
    }

    /// What the site says beside the amounts, each with what it is called: fiscal year, tax, payment. Nothing of what it doesn't say; the calendar's
    /// year needs no saying.
    pub fn terms(&self) -> Vec<(&'static str, String)> {
        let StatementTerms { fiscal_year, tax_included, tax_note, payment_terms } = &self.statement.terms;
        let year = (fiscal_year.contains('/')).then(|| ("Fiscal year", fiscal_year.to_string()));
        let included =
            tax_included.map(|included| if included { "included in the amounts" } else { "not in the amounts" });
        let tax: Vec<&str> = included.into_iter().chain(tax_note.as_deref()).collect();
        let tax = (!tax.is_empty()).then(|| ("Tax", tax.join(". ")));
        let payment = payment_terms.as_ref().map(|terms| ("Payment", terms.to_string()));
        year.into_iter().chain(tax).chain(payment).collect()
    }

    /// How much of the held time is proven and seen, in words, where it isn't all; LED-3: nothing is said of what nobody held.
    pub fn coverage(&self) -> Vec<String> {
        let Statement { coverage, use_coverage, .. } = self.statement;
        let part = |ratio: &Option<Decimal>| ratio.filter(|ratio| *ratio < Decimal::ONE);
        let proven = part(coverage).map(|ratio| {
            format!(
                "{} of the held time is proven by the scheduler's records or by observation; for the rest no source vouches.",
                percent(ratio)
            )
        });
        let seen = part(use_coverage).map(|ratio| {
            if ratio.is_zero() {
                return "None of the held time was seen by telemetry: what it was used for is not known.".to_owned();
            }
            format!(
                "{} of the held time was seen by telemetry; what the rest was used for is not known.",
                percent(ratio)
            )
        });
        proven.into_iter().chain(seen).collect()
    }

    /// The command that shows where its hours come from.
    pub fn trace(&self) -> String {
        let month: Name = self.statement.period.to_string().into();
        let values = vec![(Dimension::Month, Some(month)), (Dimension::Org, self.statement.org.clone())];
        format!("cardhour trace {}", quoted(&Line { values, ..Line::default() }.to_string()))
    }

    /// The command that lists its entries with their ids.
    pub fn entries_command(&self) -> String {
        let period = self.statement.period;
        let org = quoted(self.statement.org.as_deref().unwrap_or(PLATFORM));
        format!("cardhour statement --month {period} --org {org}")
    }

    /// Kinds that some entry is of.
    pub fn kinds(&self) -> Vec<EntryKind> {
        EntryKind::ALL.into_iter().filter(|kind| self.summary.all.amount(*kind).is_some()).collect()
    }

    /// Whether some of the held time is not billed.
    pub fn has_unbilled(&self) -> bool {
        self.summary.all.card_time != self.summary.all.billed_time
    }

    /// Whether some of the time under the charges is proven by nobody.
    pub fn has_unproven(&self) -> bool {
        self.summary.all.known.proven().is_some_and(|ratio| ratio < Decimal::ONE)
    }

    /// Whether telemetry saw some of it, and not all.
    pub fn has_unseen(&self) -> bool {
        self.summary.all.known.seen().is_some_and(|ratio| !ratio.is_zero() && ratio < Decimal::ONE)
    }

    /// Whether there is a list price beside what is charged.
    pub fn has_list(&self) -> bool {
        self.summary.all.list_amount.is_some()
    }

    /// From the list price to the total, a step a line; the last is the total.
    pub fn steps(&self) -> Vec<(&'static str, Money)> {
        let all = &self.summary.all;
        let mut steps = Vec::new();
        if let (Some(list), Some(charged)) = (all.list_amount, all.amount(EntryKind::Charge))
            && list != charged
        {
            let difference = Money::from_micros(charged.micros() - list.micros(), charged.currency());
            // By use, or by a rate of costs, is no window.
            let has_windows = self.statement.entries.iter().any(|entry| entry.key.window.is_some());
            let why = if has_windows { "Price windows" } else { "Charged otherwise" };
            steps.extend([("Card-hours at list price", list), (why, difference)]);
        }
        steps.extend(self.kinds().into_iter().filter_map(|kind| Some((kind_words(kind), all.amount(kind)?))));
        steps.push(("Total", all.total));
        steps
    }
}

/// A kind of entries, as a column or a step is called.
pub const fn kind_words(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Charge => "Charged",
        EntryKind::Idle => "Idle cards",
        EntryKind::Refund => "Refunds",
        EntryKind::Efficiency => "Efficiency",
        EntryKind::CostItem => "Other costs",
        EntryKind::Recovery => "Over or under recovery",
        EntryKind::Correction => "Corrections",
    }
}

/// What an entry is about, as people write it: `node_fail` as `node fail`.
pub fn cause_words(cause: &str) -> String {
    cause.replace('_', " ")
}

/// A name, or [`NO_NAME`].
pub fn name(name: &Option<Name>) -> &str {
    name.as_deref().unwrap_or(NO_NAME)
}

/// An amount as people read it: thousands apart, the currency's decimals, a true minus sign.
pub fn money(amount: Money) -> String {
    grouped(&amount.to_minor_string()).replace('-', "\u{2212}")
}

/// Card-hours as people read them.
pub fn card_hours(time: CardTime) -> String {
    hours(time.card_hours()).replace('-', "\u{2212}")
}
