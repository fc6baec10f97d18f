//! One line in the books: a signed amount of one owner in one month.

use crate::bill::leaf_line;
use crate::line::Line;
use cardhour_domain::{CardTime, Money, Month, Name};
use std::fmt;

/// What an entry is for. Stability: [`EntryKind::name`] stands in closed months; pinned by the test `kinds_are_named_as_before`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A leaf of the bill: cards held, at the price of the book, or at the rate that the month's cost comes to.
    Charge,
    /// Cards that were ready and nobody held: free ones, on a line of their own or shared, and reserved ones, of the reservation's owner.
    Idle,
    /// Given back by the policy: its charge is in `original_entry`.
    Refund,
    /// What the policy makes of efficiency: a discount below zero, a surcharge above.
    Efficiency,
    /// Something of the site's own list of costs: storage, licences, a credit note.
    CostItem,
    /// In absorb mode, what refunds and late hours leave over of the cost that was put in.
    Recovery,
    /// What a later fact changed in a closed month: the same line worked out again, less what stands.
    Correction,
}

impl EntryKind {
    /// All of them, in the order of a statement.
    pub const ALL: [Self; 7] =
        [Self::Charge, Self::Idle, Self::Refund, Self::Efficiency, Self::CostItem, Self::Recovery, Self::Correction];

    /// What tables and exports call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Charge => "charge",
            Self::Idle => "idle",
            Self::Refund => "refund",
            Self::Efficiency => "efficiency",
            Self::CostItem => "cost_item",
            Self::Recovery => "recovery",
            Self::Correction => "correction",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// An entry's id: 32 hex digits of the hash of what it says, so that making it twice is making it once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(Name);

impl EntryId {
    /// From the text that a table has.
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an entry is about, whatever it comes to: of two drafts of one month, entries with the same key are the same line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKey {
    /// The month whose hours, refunds or costs it is of.
    pub original_period: Month,
    /// What it is for, and of a correction what it corrects.
    pub kind: EntryKind,
    /// Who pays, at the top; none on the platform's own statement.
    pub org: Option<Name>,
    /// Who pays.
    pub project: Option<Name>,
    /// Whose it is.
    pub user: Option<Name>,
    /// Model of the cards.
    pub model: Option<Name>,
    /// The line of the price book.
    pub price_line: Option<Name>,
    /// The price window; none outside of all.
    pub window: Option<Name>,
    /// What tells entries of one kind and owner apart beside these: a refund's cause (`node_fail`), the state of idle cards (`free`, `reserved`), a cost
    /// item's name; none for a charge.
    pub what: Option<Name>,
}

impl EntryKey {
    /// The line of the bill that it is of, which `trace` takes; none for what isn't held time.
    pub fn line(&self) -> Option<Line> {
        let Self { original_period, kind, org, project, user, model, price_line, window, .. } = self;
        match kind {
            EntryKind::Charge | EntryKind::Refund => {
                Some(leaf_line(*original_period, [org, project, user], [model, price_line, window]))
            }
            EntryKind::Idle
            | EntryKind::Efficiency
            | EntryKind::CostItem
            | EntryKind::Recovery
            | EntryKind::Correction => None,
        }
    }
}

/// A signed amount in the books.
///
/// Shape: `amount` is whole minor units of its currency (LED-6). Card-time is that of the charge, of the idle cards, or of what is refunded (then below
/// zero, as its amount), and of efficiency what was seen, of which the effective part stands as billed; a correction's is the difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is about. A correction has the kind of what it corrects here, and says [`EntryKind::Correction`] in [`Entry::kind`].
    pub key: EntryKey,
    /// The month in whose statement it stands: its original period, but for a correction.
    pub period: Month,
    /// The entry it refunds or corrects.
    pub original_entry: Option<EntryId>,
    /// Version of the price book it was worked out by; none where no price was needed.
    pub price_version: Option<Name>,
    /// How much, of a cost item that says so, six decimals, with its unit: `12.5`, `TiB-month`.
    pub quantity: Option<(rust_decimal::Decimal, Name)>,
    /// Time held, or idle.
    pub card_time: CardTime,
    /// Of it, what is billed.
    pub billed_time: CardTime,
    /// The same at the list price, without window or policy; none where there is none.
    pub list_amount: Option<Money>,
    /// What it comes to.
    pub amount: Money,
    /// Why, in words, where the key doesn't say: of a correction what it comes from, of a cost item what the site wrote.
    pub reason: Option<Name>,
}

impl EntryKey {
    /// Of an owner (org, project, user) and nothing closer.
    pub(super) fn of(month: Month, kind: EntryKind, [org, project, user]: [Option<Name>; 3]) -> Self {
        let (model, price_line, window, what) = (None, None, None, None);
        Self { original_period: month, kind, org, project, user, model, price_line, window, what }
    }
}

impl Entry {
    /// An amount in the month that it is of, and nothing beside.
    pub(super) fn of(key: EntryKey, amount: Money) -> Self {
        Self {
            period: key.original_period,
            key,
            original_entry: None,
            price_version: None,
            quantity: None,
            card_time: CardTime::ZERO,
            billed_time: CardTime::ZERO,
            list_amount: None,
            amount,
            reason: None,
        }
    }

    /// What it is for.
    pub fn kind(&self) -> EntryKind {
        if self.period == self.key.original_period { self.key.kind } else { EntryKind::Correction }
    }

    /// Its id. Stability: stands in closed months; pinned by the test `a_month_is_written_as_before`.
    pub fn id(&self) -> EntryId {
        let mut hash = blake3::Hasher::new();
        // Each part with its length before it, so that no two lists of parts give the same bytes.
        let mut part = |text: &str| {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        let Self {
            key,
            period,
            original_entry,
            price_version,
            quantity,
            card_time,
            billed_time,
            list_amount,
            amount,
            reason,
        } = self;
        let EntryKey { original_period, kind, org, project, user, model, price_line, window, what } = key;
        for text in ["1", kind.name(), &period.to_string(), &original_period.to_string(), amount.currency().code()] {
            part(text);
        }
        let (quantity, unit) =
            quantity.as_ref().map(|(quantity, unit)| (quantity.normalize().to_string(), unit)).unzip();
        let quantity = quantity.map(Name::from);
        let original = original_entry.as_ref().map(|id| &id.0);
        let names = [org, project, user, model, price_line, window, what, price_version, reason];
        for name in names.into_iter().map(Option::as_ref).chain([quantity.as_ref(), unit, original]) {
            match name {
                Some(name) => part(name),
                // As long as no name is.
                None => part("\u{0}absent"),
            }
        }
        let amounts = [Some(amount.micros()), list_amount.map(Money::micros)];
        for number in amounts.into_iter().chain([Some(card_time.part_ms()), Some(billed_time.part_ms())]) {
            part(&number.map_or_else(String::new, |number| number.to_string()));
        }
        EntryId(hash.finalize().to_hex()[..32].into())
    }

    /// What entries of a statement are sorted by: the owner, the month they are of, what they are for, then the rest of the key and their id.
    pub fn order(&self) -> (EntryOrder, EntryId) {
        let EntryKey { original_period, kind, org, project, user, model, price_line, window, what } = self.key.clone();
        ((([org, project, user], original_period, kind), [model, price_line, window, what]), self.id())
    }
}

/// Owner, month and kind, then the rest of the key.
type EntryOrder = (([Option<Name>; 3], Month, EntryKind), [Option<Name>; 4]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_named_as_before() {
        let names = EntryKind::ALL.map(EntryKind::name);
        assert_eq!(names, ["charge", "idle", "refund", "efficiency", "cost_item", "recovery", "correction"]);
        assert!(EntryKind::ALL.into_iter().all(|kind| EntryKind::from_name(kind.name()) == Some(kind)));
    }
}
