//! What a statement shows to people: its entries folded by project and user, by model and window, and what stands beside the hours.
//!
//! Start at [`Summary::of`]. Each fold adds up to the statement's total, asserted when it is made. Shape: names in their order, absent first.
//! Does not: write words or percents, which every format does for itself from these figures.

use super::{Coverage, Entry, EntryKind, Statement};
use cardhour_domain::{CardTime, Currency, Money, Month, Name};
use rust_decimal::Decimal;
use std::collections::BTreeMap;

/// A statement as people read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// By project, each with its users.
    pub projects: Vec<ProjectFigures>,
    /// Cards held in this month, by model and window.
    pub models: Vec<ModelFigures>,
    /// What stands beside the hours: idle cards, refunds, efficiency, cost items, recovery.
    pub beside: Vec<BesideFigures>,
    /// What later facts changed in earlier months, one an entry.
    pub corrections: Vec<CorrectionFigures>,
    /// All of it.
    pub all: Figures,
}

/// What some entries come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// How many entries they are.
    pub entries: usize,
    /// Time held in this month. What corrections change in earlier ones is with each correction.
    pub card_time: CardTime,
    /// Of it, what is billed.
    pub billed_time: CardTime,
    /// What the charges of this month come to at the list price; none where there is no charge, or one without such a price.
    pub list_amount: Option<Money>,
    /// What each kind comes to; none of a kind that no entry is of.
    amounts: [Option<Money>; EntryKind::ALL.len()],
    /// What all of them come to.
    pub total: Money,
    /// How much of the time under the charges is known.
    pub known: Coverage,
    /// A charge has no list price.
    lacks_list: bool,
}

/// A project and its users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFigures {
    /// The project; none of entries that name none.
    pub project: Option<Name>,
    /// Of all its entries.
    pub figures: Figures,
    /// By user; none of entries that name none.
    pub users: Vec<(Option<Name>, Figures)>,
}

/// Charges of one model in one window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFigures {
    /// Model of the cards; none where no source tells it.
    pub model: Option<Name>,
    /// The price window; none outside of all.
    pub window: Option<Name>,
    /// Of these charges.
    pub figures: Figures,
}

/// What stands beside the hours, by kind, project and cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BesideFigures {
    /// What it is for: anything but a charge or a correction.
    pub kind: EntryKind,
    /// Whose it is.
    pub project: Option<Name>,
    /// The cause of a refund, the state of idle cards, the name of a cost item.
    pub what: Option<Name>,
    /// Why, in words.
    pub reason: Option<Name>,
    /// How much, in its unit, where every one of its entries says so in the same unit.
    pub quantity: Option<(Decimal, Name)>,
    /// Time idle, or refunded (then below zero).
    pub card_time: CardTime,
    /// Of it, what is billed; of efficiency, what was used.
    pub billed_time: CardTime,
    /// How many entries.
    pub entries: usize,
    /// What they come to.
    pub amount: Money,
}

/// A correction of an earlier month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrectionFigures {
    /// The month it is of.
    pub original_period: Month,
    /// What it corrects.
    pub corrects: EntryKind,
    /// Whose it is.
    pub project: Option<Name>,
    /// Whose it is.
    pub user: Option<Name>,
    /// What it was and what it is.
    pub reason: Option<Name>,
    /// The difference in time.
    pub card_time: CardTime,
    /// The difference.
    pub amount: Money,
}

/// Figures of a project's users.
type ByUser<'a> = BTreeMap<&'a Option<Name>, Figures>;

impl Summary {
    /// Of a statement.
    pub fn of(statement: &Statement) -> Self {
        let currency = statement.total.currency();
        let mut all = Figures::none(currency);
        let mut projects: BTreeMap<&Option<Name>, (Figures, ByUser<'_>)> = BTreeMap::new();
        let mut models: BTreeMap<(&Option<Name>, &Option<Name>), Figures> = BTreeMap::new();
        let mut beside: BTreeMap<_, BesideFigures> = BTreeMap::new();
        let mut corrections = Vec::new();
        let none = || Figures::none(currency);
        for entry in &statement.entries {
            let (key, known) = (&entry.key, statement.coverage_of(entry).unwrap_or_default());
            all.add(entry, known);
            let (project, users) = projects.entry(&key.project).or_insert_with(|| (none(), BTreeMap::new()));
            project.add(entry, known);
            users.entry(&key.user).or_insert_with(none).add(entry, known);
            match entry.kind() {
                EntryKind::Charge => models.entry((&key.model, &key.window)).or_insert_with(none).add(entry, known),
                EntryKind::Correction => corrections.push(CorrectionFigures::of(entry)),
                kind @ (EntryKind::Idle
                | EntryKind::Refund
                | EntryKind::Efficiency
                | EntryKind::CostItem
                | EntryKind::Recovery) => {
                    beside
                        .entry((kind, &key.project, &key.what, &entry.reason))
                        .and_modify(|figures| figures.add(entry))
                        .or_insert_with(|| BesideFigures::of(entry));
                }
            }
        }
        corrections.sort_by_key(|correction: &CorrectionFigures| correction.original_period);
        let projects = projects.into_iter().map(|(project, (figures, users))| ProjectFigures {
            project: project.clone(),
            figures,
            users: users.into_iter().map(|(user, figures)| (user.clone(), figures)).collect(),
        });
        let models = models.into_iter().map(|((model, window), figures)| ModelFigures {
            model: model.clone(),
            window: window.clone(),
            figures,
        });
        let summary = Self {
            projects: projects.collect(),
            models: models.collect(),
            beside: beside.into_values().collect(),
            corrections,
            all,
        };
        summary.assert_adds_up(statement);
        summary
    }

    /// Every way to fold the entries gives one total, that of the statement.
    fn assert_adds_up(&self, statement: &Statement) {
        let total = statement.total;
        let sum = |amounts: &mut dyn Iterator<Item = Money>| {
            amounts.fold(Money::zero(total.currency()), |sum, amount| sum + amount)
        };
        assert_eq!(self.all.total, total, "LED-6: the entries of a statement add up to its total");
        let projects = sum(&mut self.projects.iter().map(|project| project.figures.total));
        assert_eq!(projects, total, "LED-6: projects add up to the statement");
        for project in &self.projects {
            let users = sum(&mut project.users.iter().map(|(_, figures)| figures.total));
            assert_eq!(users, project.figures.total, "LED-6: users add up to their project");
        }
        let kinds = sum(&mut EntryKind::ALL.into_iter().filter_map(|kind| self.all.amount(kind)));
        assert_eq!(kinds, total, "LED-6: kinds of entries add up to the statement");
        let models = sum(&mut self.models.iter().map(|model| model.figures.total));
        let beside = sum(&mut self.beside.iter().map(|beside| beside.amount));
        let corrections = sum(&mut self.corrections.iter().map(|correction| correction.amount));
        assert_eq!(models + beside + corrections, total, "LED-6: models, what is beside and corrections add up");
        let corrected: CardTime = self
            .corrections
            .iter()
            .filter(|correction| correction.corrects == EntryKind::Charge)
            .map(|correction| correction.card_time)
            .sum();
        assert_eq!(self.all.card_time + corrected, statement.card_time, "LED-7: time held adds up to the statement's");
    }
}

impl Figures {
    fn none(currency: Currency) -> Self {
        Self {
            entries: 0,
            card_time: CardTime::ZERO,
            billed_time: CardTime::ZERO,
            list_amount: None,
            amounts: [None; EntryKind::ALL.len()],
            total: Money::zero(currency),
            known: Coverage::default(),
            lacks_list: false,
        }
    }

    /// What the entries of a kind come to; none where there are none.
    pub fn amount(&self, kind: EntryKind) -> Option<Money> {
        self.amounts[place(kind)]
    }

    /// What an hour that is billed came to, charges alone, six decimals, half to even; none where nothing is billed. For showing.
    pub fn charge_per_card_hour(&self) -> Option<Decimal> {
        let charged = self.amount(EntryKind::Charge)?;
        let hours = self.billed_time.card_hours();
        (!hours.is_zero()).then(|| (Decimal::from_i128_with_scale(charged.micros(), 6) / hours).round_dp(6))
    }

    fn add(&mut self, entry: &Entry, known: Coverage) {
        self.entries += 1;
        self.total += entry.amount;
        let amount = &mut self.amounts[place(entry.kind())];
        *amount = Some(amount.map_or(entry.amount, |before| before + entry.amount));
        if entry.kind() != EntryKind::Charge {
            return;
        }
        self.card_time += entry.card_time;
        self.billed_time += entry.billed_time;
        self.known.add(known);
        self.lacks_list |= entry.list_amount.is_none();
        let before = self.list_amount.unwrap_or(Money::zero(entry.amount.currency()));
        self.list_amount = entry.list_amount.map(|list| before + list).filter(|_| !self.lacks_list);
    }
}

fn place(kind: EntryKind) -> usize {
    EntryKind::ALL.iter().position(|known| *known == kind).expect("all kinds are listed")
}

impl BesideFigures {
    fn of(entry: &Entry) -> Self {
        Self {
            kind: entry.kind(),
            project: entry.key.project.clone(),
            what: entry.key.what.clone(),
            reason: entry.reason.clone(),
            quantity: entry.quantity.clone(),
            card_time: entry.card_time,
            billed_time: entry.billed_time,
            entries: 1,
            amount: entry.amount,
        }
    }

    fn add(&mut self, entry: &Entry) {
        self.card_time += entry.card_time;
        self.billed_time += entry.billed_time;
        let (before, of_one) = (self.quantity.take(), &entry.quantity);
        self.quantity = match (before, of_one) {
            // Of efficiency the whole is not the sum of its users', but what all of them used of what was seen of all.
            (Some((_, unit)), Some((_, of))) if unit == *of && entry.key.kind == EntryKind::Efficiency => {
                self.billed_time.ratio_of(self.card_time).map(|ratio| (ratio, unit))
            }
            (Some((sum, unit)), Some((quantity, of))) if unit == *of => Some((sum + quantity, unit)),
            (Some(_) | None, Some(_) | None) => None,
        };
        self.entries += 1;
        self.amount += entry.amount;
    }
}

impl CorrectionFigures {
    fn of(entry: &Entry) -> Self {
        Self {
            original_period: entry.key.original_period,
            corrects: entry.key.kind,
            project: entry.key.project.clone(),
            user: entry.key.user.clone(),
            reason: entry.reason.clone(),
            card_time: entry.card_time,
            amount: entry.amount,
        }
    }
}

#[cfg(test)]
mod tests;
