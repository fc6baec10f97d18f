//! Rows of everything but attempts: one an entry, and which of FOCUS's words each kind of entry gets.

use super::FocusMonth;
use super::identity::id;
use super::line::{Account, CARD_HOURS, EntryOfLine, Line, Pricing, Resource, whole_seconds};
use crate::statement::{Entry, EntryKey, EntryKind};
use cardhour_domain::{Money, Name};
use serde_json::json;
use std::sync::Arc;

/// How often a charge comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frequency {
    UsageBased,
    OneTime,
}

impl Frequency {
    pub const fn name(self) -> &'static str {
        match self {
            Self::UsageBased => "Usage-Based",
            Self::OneTime => "One-Time",
        }
    }
}

/// FOCUS's `ChargeCategory`. A correction has that of what it corrects.
///
/// Idle cards were there to be used, and what they cost is a cost of usage. So is an item of the site's list, which was used up in its month: to FOCUS a
/// purchase is paid ahead of use and has no `EffectiveCost`, so that the item would be missing from every view by it. One below zero is a credit. What
/// efficiency and recovery add or take is worked out after the usage, from it.
pub(super) fn category(entry: &Entry) -> &'static str {
    match entry.key.kind {
        EntryKind::CostItem if entry.amount.micros() < 0 => "Credit",
        EntryKind::Charge | EntryKind::Idle | EntryKind::CostItem => "Usage",
        EntryKind::Refund => "Credit",
        EntryKind::Efficiency | EntryKind::Recovery | EntryKind::Correction => "Adjustment",
    }
}

pub(super) fn frequency(entry: &Entry) -> Frequency {
    match entry.key.kind {
        EntryKind::Charge | EntryKind::Idle | EntryKind::Refund | EntryKind::Efficiency => Frequency::UsageBased,
        EntryKind::CostItem | EntryKind::Recovery | EntryKind::Correction => Frequency::OneTime,
    }
}

/// What it is, in words; begins with ours.
pub(super) fn description(entry: &Entry) -> Name {
    let EntryKey { original_period, kind, model, price_line, window, what, .. } = &entry.key;
    let mut text = match kind {
        EntryKind::Charge => "card time held".to_owned(),
        EntryKind::Idle => "card time idle".to_owned(),
        EntryKind::Refund => "refund".to_owned(),
        EntryKind::Efficiency => "efficiency".to_owned(),
        EntryKind::CostItem => "cost".to_owned(),
        EntryKind::Recovery => "recovery of cost".to_owned(),
        EntryKind::Correction => "correction".to_owned(),
    };
    let given = [("", what), ("", model), ("price ", price_line), ("window ", window)];
    for (word, name) in given.into_iter().filter_map(|(word, name)| Some((word, name.as_ref()?))) {
        text.push_str(&format!(", {word}{name}"));
    }
    if entry.kind() == EntryKind::Correction {
        text = format!("correction of {original_period}: {text}");
    }
    text.into()
}

impl FocusMonth<'_> {
    /// The one row of an entry.
    pub(super) fn whole(&self, entry: &Entry, account: &Arc<Account>, of_entry: &Arc<EntryOfLine>) -> Line {
        let during = entry.key.original_period.interval(self.slots.billing_zone());
        let (from, to) = whole_seconds(during);
        let is_of_cards = matches!(entry.key.kind, EntryKind::Charge | EntryKind::Idle) || !entry.card_time.is_zero();
        Line {
            account: Arc::clone(account),
            entry: Arc::clone(of_entry),
            from,
            to,
            billed: entry.amount.micros(),
            pricing: self.pricing(entry),
            card_hours: is_of_cards.then(|| entry.card_time.card_hours()),
            resource: idle_cards(entry),
            tags: entry.key.user.as_ref().map(|user| json!({"cardhour/user": **user}).to_string().into()),
            held: None,
        }
    }

    fn pricing(&self, entry: &Entry) -> Pricing {
        let amount = entry.amount.micros();
        match entry.kind() {
            EntryKind::Charge => match self.unit_prices(entry) {
                Some((list, contracted)) => Pricing::of_quantity(entry.billed_time.card_hours(), list, contracted),
                None => Pricing::of_one(amount),
            },
            EntryKind::Idle => match self.unit_prices(entry) {
                Some((list, contracted)) => Pricing::of_quantity(entry.card_time.card_hours(), list, contracted),
                None => Pricing::of_one(amount),
            },
            EntryKind::CostItem if amount >= 0 => Pricing::of_one(amount),
            // The list and the price stay what they are; what is billed and what it costs in the end are less, or more.
            EntryKind::Efficiency => Pricing::without_quantity(0, 0),
            EntryKind::Refund | EntryKind::CostItem | EntryKind::Recovery => Pricing::without_quantity(amount, amount),
            EntryKind::Correction => {
                let list = entry.list_amount.map_or(amount, Money::micros);
                let hours = entry.billed_time.card_hours();
                let quantity = (!entry.billed_time.is_zero()).then_some((hours, CARD_HOURS));
                Pricing { quantity, ..Pricing::without_quantity(list, amount) }
            }
        }
    }
}

/// The cards that were idle: those of a model, in a state.
fn idle_cards(entry: &Entry) -> Option<Resource> {
    let EntryKey { kind, model, what, .. } = &entry.key;
    if *kind != EntryKind::Idle {
        return None;
    }
    let parts = [what, model].into_iter().flatten();
    let words: Vec<&str> = parts.map(|part| &**part).chain(["cards"]).collect();
    Some(Resource {
        id: id("idle", [what, model].into_iter().flatten().map(|part| &**part)),
        name: Some(words.join(" ").into()),
        kind: "GPU (idle)",
    })
}
