//! One row of Cost and Usage, before it is cut into columns.

use super::FocusMonth;
use super::identity::{id, project_id};
use super::other_rows::{Frequency, category, frequency};
use crate::statement::{Entry, EntryId, EntryKey, EntryKind, Statement};
use cardhour_domain::{Currency, Interval, Name, Timestamp};
use rust_decimal::Decimal;
use std::sync::Arc;

/// Digits after the point of unit prices, and of what they are multiplied to.
pub(super) const PRICE_SCALE: u32 = 18;
/// The unit of card-hours in FOCUS.
pub(super) const CARD_HOURS: &str = "GPU-Hours";
/// The unit of what has a price of its own and no measure.
pub(super) const UNITS: &str = "Units";

/// A row of Cost and Usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub(super) account: Arc<Account>,
    pub(super) entry: Arc<EntryOfLine>,
    /// When it was used, whole seconds, the end exclusive.
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// Its part of the entry's amount. Unit: millionths of the currency.
    pub(super) billed: i128,
    pub(super) pricing: Pricing,
    /// Cards held, or idle; none where it is about something else.
    pub(super) card_hours: Option<Decimal>,
    pub(super) resource: Option<Resource>,
    /// A flat JSON object.
    pub(super) tags: Option<Name>,
    pub(super) held: Option<Held>,
}

/// Whose it is, and on which statement: the same for all rows of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub id: Name,
    pub name: Name,
    pub kind: &'static str,
    pub issuer: Name,
    pub payment_terms: Option<Name>,
    pub invoice: Name,
    pub currency: Currency,
    pub period: Interval,
}

/// What all rows of an entry have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryOfLine {
    pub key: EntryKey,
    pub id: EntryId,
    pub kind: EntryKind,
    pub original: Option<EntryId>,
    pub category: &'static str,
    pub frequency: Frequency,
    pub description: Name,
    pub sub_account: Option<(Name, Name)>,
    pub sku: Option<Sku>,
    pub reservation: Option<Name>,
    pub quantity: Option<(Decimal, Name)>,
    pub reason: Option<Name>,
}

/// What is sold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sku {
    pub id: Name,
    pub meter: &'static str,
    pub price_id: Name,
    /// A flat JSON object.
    pub details: Name,
    /// Standard card-hours to a card-hour; none where no price of the book is behind it.
    pub coefficient: Option<Decimal>,
}

/// How much it is and what it costs by the list and by the price that holds.
///
/// Each cost is its unit price times the quantity, to the last digit, as FOCUS asks; what is billed is rounded to the currency's minor unit once an
/// entry, and may differ from it by its part of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pricing {
    pub quantity: Option<(Decimal, &'static str)>,
    pub list_unit_price: Option<Decimal>,
    pub contracted_unit_price: Option<Decimal>,
    pub list_cost: Decimal,
    pub contracted_cost: Decimal,
    /// FOCUS's word for how the price came about.
    pub category: Option<&'static str>,
}

/// What the money was spent on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub id: Name,
    pub name: Option<Name>,
    pub kind: &'static str,
}

/// What is known of an attempt's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub cards: Option<Decimal>,
    pub state: Option<&'static str>,
    /// Time that records or observation prove ÷ time held.
    pub coverage: Option<Decimal>,
    pub unseen_hours: Decimal,
}

impl Pricing {
    /// So much at these prices.
    pub fn of_quantity(quantity: Decimal, list_unit_price: Decimal, contracted_unit_price: Decimal) -> Self {
        let [list, contracted] = [list_unit_price, contracted_unit_price].map(|price| price.round_dp(PRICE_SCALE));
        let cost = |price: Decimal| (price * quantity).round_dp(PRICE_SCALE);
        Self {
            quantity: Some((quantity, CARD_HOURS)),
            list_unit_price: Some(list),
            contracted_unit_price: Some(contracted),
            list_cost: cost(list),
            contracted_cost: cost(contracted),
            category: Some("Standard"),
        }
    }

    /// One thing that costs just this, for what has no unit price in the book. FOCUS wants unit prices not below zero, so the quantity carries the sign.
    pub fn of_one(micros: i128) -> Self {
        let amount = Decimal::from_i128_with_scale(micros, 6);
        let one = if micros < 0 { -Decimal::ONE } else { Decimal::ONE };
        Self {
            quantity: Some((one, UNITS)),
            list_unit_price: Some(amount.abs()),
            contracted_unit_price: Some(amount.abs()),
            list_cost: amount,
            contracted_cost: amount,
            category: Some("Other"),
        }
    }

    /// What has no quantity and no unit price: a credit, an adjustment, a correction.
    pub fn without_quantity(list_cost: i128, contracted_cost: i128) -> Self {
        Self {
            quantity: None,
            list_unit_price: None,
            contracted_unit_price: None,
            list_cost: Decimal::from_i128_with_scale(list_cost, 6),
            contracted_cost: Decimal::from_i128_with_scale(contracted_cost, 6),
            category: None,
        }
    }
}

impl Line {
    /// Whether it corrects a month that is closed.
    pub(super) fn is_correction(&self) -> bool {
        self.entry.kind == EntryKind::Correction
    }

    /// What was used: cards by the meter, a thing of the site's list once; of rows of usage alone.
    pub(super) fn consumed(&self) -> Option<(Decimal, &'static str)> {
        let is_usage = self.entry.category == "Usage";
        let of_cards = self.card_hours.map(|hours| (hours, CARD_HOURS));
        of_cards.or(self.pricing.quantity).filter(|_| is_usage)
    }
}

impl FocusMonth<'_> {
    /// All rows of its statements.
    pub(super) fn lines(&self) -> Vec<Line> {
        let attempts = self.attempts_of_charges();
        let mut lines = Vec::new();
        for statement in self.statements {
            let account = Arc::new(self.account(statement));
            let first = lines.len();
            for entry in &statement.entries {
                let of_entry = Arc::new(self.entry_of_line(entry));
                let attempts = attempts.get(&entry.key).filter(|_| of_entry.kind == EntryKind::Charge);
                lines.extend(self.lines_of(entry, &account, &of_entry, attempts));
            }
            let billed: i128 = lines[first..].iter().map(|line| line.billed).sum();
            assert_eq!(billed, statement.total.micros(), "LED-6: the rows of a statement add up to it");
        }
        lines
    }

    pub(super) fn account(&self, statement: &Statement) -> Account {
        let org = statement.org.as_ref();
        Account {
            id: org.map_or_else(|| crate::statement::PLATFORM.into(), |org| id("org", [&**org])),
            name: statement.account.clone(),
            kind: if org.is_some() { "Organisation" } else { "Platform" },
            issuer: statement.issuer.clone().unwrap_or_else(|| crate::statement::PLATFORM.into()),
            payment_terms: statement.terms.payment_terms.clone(),
            invoice: statement.number.clone(),
            currency: statement.total.currency(),
            period: statement.period.interval(statement.zone),
        }
    }

    fn entry_of_line(&self, entry: &Entry) -> EntryOfLine {
        let sub_account = project_id(&entry.key).zip(entry.key.project.clone());
        EntryOfLine {
            key: entry.key.clone(),
            id: entry.id(),
            kind: entry.kind(),
            original: entry.original_entry.clone(),
            category: category(entry),
            frequency: frequency(entry),
            description: super::other_rows::description(entry),
            sub_account,
            sku: self.sku(entry),
            reservation: self.reservation(entry),
            quantity: entry.quantity.clone(),
            reason: entry.reason.clone(),
        }
    }
}

/// The whole seconds that hold a stretch: FOCUS has no finer time.
pub(super) fn whole_seconds(during: Interval) -> (Timestamp, Timestamp) {
    let from = during.start().unix_ms().div_euclid(1000);
    let to = (during.end().unix_ms() + 999).div_euclid(1000);
    (Timestamp::from_unix_s(from), Timestamp::from_unix_s(to))
}

/// What kind of service a row is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub category: &'static str,
    pub subcategory: &'static str,
    pub name: &'static str,
}

impl Line {
    /// Cards are computing, whatever is run on them; what a site lists as a cost is told from it.
    pub(super) fn service(&self) -> Service {
        match self.entry.key.kind {
            EntryKind::CostItem | EntryKind::Recovery => {
                Service { category: "Other", subcategory: "Other (Other)", name: "GPU pool costs" }
            }
            EntryKind::Charge | EntryKind::Idle | EntryKind::Refund | EntryKind::Efficiency | EntryKind::Correction => {
                Service { category: "Compute", subcategory: "Other (Compute)", name: "GPU pool" }
            }
        }
    }
}
