//! What one entry is made of (LED-8), in the draft that it comes from: the attempts of a charge, of a refund those whose time is given back, the cards of an
//! idle line, what was seen of an efficiency, the item of a cost, what was put in and what came back of a recovery.
//!
//! Start at [`MadeOf::of`]. Does not: read closed months, or say how it is shown.

use super::absorb::SpreadAt;
use super::changes::{ChangedFigures, ChangedSource};
use super::idle::FREE;
use super::side::{Parts, Side};
use super::{
    BillingPolicy, CapacityPolicy, CostAmount, CostItem, EfficiencyEffect, Entry, EntryKey, EntryKind, FreeCapacity,
    MonthOfBooks, absorb, draft,
};
use crate::bill::NO_LEAF;
use cardhour_domain::Name;
use std::cmp::Reverse;

/// What an entry is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeOf {
    /// Its parts, most first. Where each has an amount, they add up to the entry's; but for free cards that are shared, whose parts come to `of`.
    pub parts: Vec<LinePart>,
    /// The lines that the amount is a part of: of shared free cards, these before they are shared; of a discount or surcharge, the owner's charges and refunds.
    pub of: Vec<LinePart>,
    /// By what `of` is shared: what each project is charged, beside its line.
    pub shared_by: Vec<LinePart>,
    /// The lines of the price book, each with what it says; of a cost that is energy, its tariff.
    pub prices: Vec<(Option<Name>, String)>,
    /// In absorb mode, the sums that were spread and what of each falls to the line.
    pub spread: Vec<SpreadAt>,
    /// Whether any of it is charged by use: then `billed_time` is what was seen at work.
    pub is_by_use: bool,
}

/// A part of an entry.
pub type LinePart = (ChangedSource, ChangedFigures);

impl MadeOf {
    /// What the line of a month is made of; none where the month has no such line.
    pub fn of(books: &MonthOfBooks<'_>, key: &EntryKey) -> Option<Self> {
        let side = Side::of(books);
        side.entries.get(key)?;
        let shared = side.is_shared(key).then(|| before_sharing(books));
        let shared = shared.as_ref();
        let (of, parts) = match (shared, key.kind) {
            (Some(free), _) => (free.iter().map(line_of).collect(), side.shared_cards(free)),
            (None, EntryKind::Efficiency) => {
                let of = match books.policy.efficiency.effect {
                    EfficiencyEffect::Explain => Vec::new(),
                    EfficiencyEffect::Discount | EfficiencyEffect::Surcharge => side.owners_lines(key),
                };
                (of, side.parts(key))
            }
            (None, _) => (Vec::new(), side.parts(key)),
        };
        let keys: Vec<&EntryKey> = match shared {
            Some(free) => free.iter().map(|entry| &entry.key).collect(),
            None => vec![key],
        };
        let mut prices: Vec<(Option<Name>, String)> =
            keys.iter().filter_map(|key| Some((key.price_line.clone(), side.price(key)?))).collect();
        prices.extend(side.tariff(key).map(|tariff| (None, tariff)));
        prices.sort();
        prices.dedup();
        // A refund is a part of its charge, at the charge's rate.
        let bears = |key: &&EntryKey| match key.kind {
            EntryKind::Refund => EntryKey { kind: EntryKind::Charge, what: None, ..(*key).clone() },
            _ => (*key).clone(),
        };
        let bearers: Vec<EntryKey> = keys.iter().map(bears).collect();
        let spread = side
            .rates
            .as_ref()
            .map_or_else(Vec::new, |rates| absorb::spread_at(books, &side.held, &side.unheld, rates, &bearers));
        Some(Self {
            parts: most_first(parts.into_iter().collect()),
            of: most_first(of),
            shared_by: if shared.is_some() { most_first(side.projects()) } else { Vec::new() },
            prices,
            spread,
            is_by_use: side.is_by_use(key),
        })
    }
}

/// The lines of free cards before projects share them.
fn before_sharing(books: &MonthOfBooks<'_>) -> Vec<Entry> {
    let capacity = CapacityPolicy { free: FreeCapacity::Line, ..books.policy.capacity };
    let policy = BillingPolicy { capacity, ..books.policy.clone() };
    let mut entries = draft(&MonthOfBooks { policy: &policy, ..*books }).entries;
    entries.retain(|entry| entry.key.kind == EntryKind::Idle && entry.key.what.as_deref() == Some(FREE));
    entries
}

fn line_of(entry: &Entry) -> LinePart {
    (ChangedSource::Line(Box::new(entry.key.clone())), ChangedFigures::of(entry))
}

impl Side<'_> {
    /// Charges and refunds of the owner of a line.
    fn owners_lines(&self, key: &EntryKey) -> Vec<LinePart> {
        let is_owners = |of: &EntryKey| (&of.org, &of.project, &of.user) == (&key.org, &key.project, &key.user);
        let is_due = |of: &EntryKey| matches!(of.kind, EntryKind::Charge | EntryKind::Refund) && is_owners(of);
        self.entries.iter().filter(|(key, _)| is_due(key)).map(|(_, entry)| line_of(entry)).collect()
    }

    /// The cards of lines that are shared, each with its part of their sum. Cards whose price changed in the month are of several lines.
    fn shared_cards(&self, free: &[Entry]) -> Parts {
        let mut parts = Parts::new();
        for entry in free {
            for (source, figures) in Self::spread(entry, self.unheld_cells(&entry.key)) {
                let sum = parts.entry(source).or_default();
                sum.card_time += figures.card_time;
                sum.billed_time += figures.billed_time;
                sum.amount = match (sum.amount, figures.amount) {
                    (Some(one), Some(other)) => Some(one + other),
                    (one, other) => one.or(other),
                };
            }
        }
        parts
    }

    /// What each project is charged for its cards.
    fn projects(&self) -> Vec<LinePart> {
        let mut projects = Parts::new();
        for (key, entry) in self.entries.iter().filter(|(key, _)| key.kind == EntryKind::Charge) {
            let owner = [key.org.clone(), key.project.clone(), None];
            let project = EntryKey::of(key.original_period, EntryKind::Charge, owner);
            let sum = projects.entry(ChangedSource::Line(Box::new(project))).or_default();
            sum.card_time += entry.card_time;
            sum.billed_time += entry.billed_time;
            sum.amount = Some(sum.amount.map_or(entry.amount, |amount| amount + entry.amount));
        }
        projects.into_iter().collect()
    }

    /// The tariff of a cost that is energy, in words.
    fn tariff(&self, key: &EntryKey) -> Option<String> {
        if key.kind != EntryKind::CostItem {
            return None;
        }
        let is_its = |item: &&CostItem| item.cost(&self.held.bundles).is_ok_and(|cost| cost.entry().key == *key);
        match self.books.costs.iter().find(is_its)?.amount {
            CostAmount::Fixed(_) => None,
            CostAmount::PerKwh { tariff, currency } => {
                Some(format!("{} {currency} per kWh of measured energy", tariff.normalize()))
            }
        }
    }

    /// Whether any of a charge, or of what a refund is of, is charged by use.
    fn is_by_use(&self, key: &EntryKey) -> bool {
        let is_of_line = |bundle: usize| {
            matches!(key.kind, EntryKind::Charge | EntryKind::Refund)
                && self.held.leaves.of_bundle[bundle] != NO_LEAF
                && self.is_of_leaf(&self.held.leaves, bundle, key)
        };
        let mut bundles = self.held.bundles.all.iter().enumerate();
        bundles.any(|(number, bundle)| self.held.basis.is_by_use(bundle) && is_of_line(number))
    }
}

/// The largest amount first, then the longest time.
fn most_first(mut parts: Vec<LinePart>) -> Vec<LinePart> {
    let size =
        |of: &ChangedFigures| (of.amount.map_or(0, |amount| amount.micros().abs()), of.card_time.part_ms().abs());
    parts.sort_by(|(a, of_a), (b, of_b)| Reverse(size(of_a)).cmp(&Reverse(size(of_b))).then_with(|| a.cmp(b)));
    parts
}
