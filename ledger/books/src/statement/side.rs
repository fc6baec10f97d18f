//! One draft of a month, and what each of its lines is made of (LED-8): the attempts of a charge, a refund or an efficiency, the cards of an idle line, the
//! items of a cost. The figures of the parts add up to those of the line.
//!
//! Start at [`Side::parts`]. Does not: compare two drafts (that is `changes`), say how a line is shown.

use super::changes::{ChangedFigures, ChangedSource};
use super::held::Held;
use super::idle::{FREE, Unheld, unheld};
use super::{AbsorbedRates, Draft, Entry, EntryKey, EntryKind, FreeCapacity, MonthOfBooks, draft, refunds};
use crate::bill::{Leaves, NO_LEAF};
use crate::cell::Cell;
use crate::report::ReportAttempt;
use cardhour_domain::{AttemptKey, CardState, CardTime, Money, Name, spread_by};
use std::collections::BTreeMap;

/// A month, sorted into lines.
pub(super) struct Side<'a> {
    pub books: &'a MonthOfBooks<'a>,
    pub held: Held<'a>,
    pub unheld: Vec<Unheld<'a>>,
    pub entries: BTreeMap<EntryKey, Entry>,
    /// In absorb mode, the rates at which its cost was spread.
    pub rates: Option<AbsorbedRates>,
}

/// What a part is in one of the two.
#[derive(Clone, Copy, Default)]
pub(super) struct Part {
    card_time: CardTime,
    /// By which the line's amount is spread.
    charged: CardTime,
}

pub(super) type Parts = BTreeMap<ChangedSource, ChangedFigures>;

impl<'a> Side<'a> {
    pub fn of(books: &'a MonthOfBooks<'a>) -> Self {
        let held = Held::of(books);
        let unheld = unheld(books, &held);
        let Draft { entries, rates, .. } = draft(books);
        let entries = entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        Self { books, held, unheld, entries, rates }
    }

    /// What a line is made of, with the part of its figures that falls to each.
    pub fn parts(&self, key: &EntryKey) -> Parts {
        match key.kind {
            EntryKind::Charge => self.spread_line(
                key,
                self.of_cells(|cell, bundle| {
                    let is_of_line = self.is_of_leaf(&self.held.leaves, bundle, key);
                    is_of_line.then(|| (holder(self, cell), self.charged(cell, bundle)))
                }),
            ),
            EntryKind::Refund => self.spread_line(
                key,
                self.of_cells(|cell, bundle| {
                    let attempt = &self.books.input.attempts[cell.attempt? as usize];
                    let cause = refunds::cause(self.books, attempt)?;
                    let is_of_line =
                        key.what.as_deref() == Some(cause.name()) && self.is_of_leaf(&self.held.leaves, bundle, key);
                    let given = refunds::given_time(self.books, &self.held, cell, bundle);
                    is_of_line.then(|| (holder(self, cell), Part { card_time: CardTime::ZERO - given, charged: given }))
                }),
            ),
            EntryKind::Efficiency => {
                let seen = self.of_cells(|cell, bundle| {
                    let is_owners =
                        self.owner(bundle) == Some([key.org.as_ref(), key.project.as_ref(), key.user.as_ref()]);
                    let effective = cell.used.as_ref().map_or(CardTime::ZERO, |used| used.effective);
                    let seen = cell.card_time - cell.unseen;
                    is_owners.then(|| (holder(self, cell), Part { card_time: seen, charged: effective }))
                });
                seen.into_iter().map(|(source, part)| (source, part.without_amount())).collect()
            }
            EntryKind::Idle if self.is_shared(key) => {
                let free = self.of_cells(|cell, _| self.nobodys(cell, CardState::Free));
                free.into_iter().map(|(source, part)| (source, part.without_amount())).collect()
            }
            EntryKind::Idle => self.spread_line(key, self.unheld_cells(key)),
            EntryKind::CostItem => {
                let item = |entry: &Entry| {
                    let name = entry.key.what.clone().unwrap_or_else(|| "".into());
                    (ChangedSource::Cost(name), ChangedFigures::of(entry))
                };
                self.entries.get(key).map(item).into_iter().collect()
            }
            EntryKind::Recovery => {
                // What was put in, less every other line.
                let mut parts: Parts = self.put_in();
                for kind in [EntryKind::Charge, EntryKind::Refund, EntryKind::Efficiency, EntryKind::Idle] {
                    parts.extend(self.lines(kind).into_iter().map(|(source, figures)| {
                        let ChangedFigures { card_time, billed_time, amount } = figures;
                        let amount = amount.map(|amount| -amount);
                        (source, ChangedFigures { card_time, billed_time, amount })
                    }));
                }
                parts
            }
            EntryKind::Correction => unreachable!("an entry's key has the kind of what it corrects"),
        }
    }

    /// Sums over cells by source.
    pub fn of_cells(
        &self,
        part: impl Fn(&Cell, usize) -> Option<(ChangedSource, Part)>,
    ) -> BTreeMap<ChangedSource, Part> {
        let mut parts: BTreeMap<ChangedSource, Part> = BTreeMap::new();
        for (cell, &bundle) in self.books.input.cells.iter().zip(&self.held.bundles.of_cell) {
            if let Some((source, part)) = part(cell, bundle as usize) {
                let sum = parts.entry(source).or_default();
                sum.card_time += part.card_time;
                sum.charged += part.charged;
            }
        }
        parts
    }

    /// The cards of a line of free or reserved ones that isn't shared.
    pub fn unheld_cells(&self, key: &EntryKey) -> BTreeMap<ChangedSource, Part> {
        self.of_cells(|cell, bundle| {
            let is_of_line = self
                .unheld
                .iter()
                .any(|unheld| key.what.as_deref() == Some(unheld.what) && self.is_of_leaf(&unheld.leaves, bundle, key));
            if is_of_line { self.nobodys(cell, cell.state) } else { None }
        })
    }

    /// The line's billed time and amount over its parts; without amounts where there is no such line.
    fn spread_line(&self, key: &EntryKey, parts: BTreeMap<ChangedSource, Part>) -> Parts {
        match self.entries.get(key) {
            Some(entry) => Self::spread(entry, parts),
            None => parts.into_iter().map(|(source, part)| (source, part.without_amount())).collect(),
        }
    }

    /// An entry's billed time and amount over its parts, by what is charged of each.
    pub fn spread(entry: &Entry, parts: BTreeMap<ChangedSource, Part>) -> Parts {
        if parts.is_empty() {
            return Parts::new();
        }
        let weights: Vec<i128> = parts.values().map(|part| part.charged.part_ms()).collect();
        let amounts = spread_by(entry.amount.micros(), &weights);
        let billed = spread_by(entry.billed_time.part_ms(), &weights);
        let held: CardTime = parts.values().map(|part| part.card_time).sum();
        assert_eq!(held, entry.card_time, "LED-8: the parts of a line hold its time");
        let figures = |((part, amount), billed): ((Part, i128), i128)| ChangedFigures {
            card_time: part.card_time,
            billed_time: CardTime::from_part_ms(billed),
            amount: Some(Money::from_micros(amount, entry.amount.currency())),
        };
        let (sources, parts): (Vec<ChangedSource>, Vec<Part>) = parts.into_iter().unzip();
        sources.into_iter().zip(parts.into_iter().zip(amounts).zip(billed).map(figures)).collect()
    }

    /// Whether a bundle is of the leaf that a line is of, or whose charge it refunds.
    pub fn is_of_leaf(&self, leaves: &Leaves<'_>, bundle: usize, key: &EntryKey) -> bool {
        let number = leaves.of_bundle[bundle];
        if number == NO_LEAF {
            return false;
        }
        let (leaf, book) = (&leaves.all()[number as usize], Some(self.books.book));
        leaf.price.is_some()
            && leaf.owner == [key.org.as_ref(), key.project.as_ref(), key.user.as_ref()]
            && leaf.model == key.model.as_ref()
            && leaf.price_line(book) == key.price_line.as_ref()
            && leaf.window_name(book) == key.window.as_ref()
    }

    fn owner(&self, bundle: usize) -> Option<[Option<&Name>; 3]> {
        let number = self.held.leaves.of_bundle[bundle];
        (number != NO_LEAF).then(|| self.held.leaves.all()[number as usize].owner)
    }

    pub fn charged(&self, cell: &Cell, bundle: usize) -> Part {
        let by_use = self.held.basis.is_by_use(&self.held.bundles.all[bundle]);
        let used = || cell.used.as_ref().map_or(CardTime::ZERO, |used| used.billed_effective);
        Part { card_time: cell.card_time, charged: if by_use { used() } else { cell.billed_time } }
    }

    /// Cards in a state that nobody holds them in.
    pub fn nobodys(&self, cell: &Cell, state: CardState) -> Option<(ChangedSource, Part)> {
        let Cell { cluster, node, model, reservation, card_time, .. } = cell;
        let source = ChangedSource::Cards {
            cluster: cluster.clone(),
            node: node.clone(),
            model: model.clone(),
            state: Some(state),
            reservation: reservation.clone(),
        };
        (cell.state == state).then_some((source, Part { card_time: *card_time, charged: *card_time }))
    }

    /// Whether a line is a project's part of the free cards.
    pub fn is_shared(&self, key: &EntryKey) -> bool {
        match self.books.policy.capacity.free {
            FreeCapacity::Shared => {
                key.kind == EntryKind::Idle && key.what.as_deref() == Some(FREE) && key.model.is_none()
            }
            FreeCapacity::Unbilled | FreeCapacity::Line => false,
        }
    }

    /// Who held the cards of some places, what else these were, and how many there are.
    pub fn around(&self, places: &[&ChangedSource]) -> Parts {
        let is_there = |cluster: &Name, node: Option<&Name>, model: Option<&Name>| {
            places.iter().any(|place| match place {
                ChangedSource::Cards { cluster: of, node: on, model: like, .. } => {
                    let may_be = |wanted: Option<&Name>, has: Option<&Name>| wanted.is_none() || wanted == has;
                    of == cluster && may_be(on.as_ref(), node) && may_be(like.as_ref(), model)
                }
                ChangedSource::Attempt(_)
                | ChangedSource::Reservation { .. }
                | ChangedSource::Cost(_)
                | ChangedSource::Line(_) => false,
            })
        };
        let cells = self.of_cells(|cell, bundle| {
            let is_there = is_there(&cell.cluster, cell.node.as_ref(), cell.model.as_ref());
            match cell.state {
                _ if !is_there => None,
                CardState::Held => Some((holder(self, cell), self.charged(cell, bundle))),
                state => self.nobodys(cell, state).filter(|(source, _)| !places.contains(&source)),
            }
        });
        let mut parts: Parts = cells.into_iter().map(|(source, part)| (source, part.without_amount())).collect();
        for cell in &self.books.input.capacity {
            if is_there(&cell.cluster, cell.node.as_ref(), cell.model.as_ref()) {
                let (cluster, node, model) = (cell.cluster.clone(), cell.node.clone(), cell.model.clone());
                let source = ChangedSource::Cards { cluster, node, model, state: None, reservation: None };
                parts.entry(source).or_default().card_time += cell.card_time;
            }
        }
        parts
    }

    /// The lines of a kind.
    pub fn lines(&self, kind: EntryKind) -> Parts {
        let lines = self.entries.iter().filter(|(key, _)| key.kind == kind);
        lines.map(|(key, entry)| (ChangedSource::Line(Box::new(key.clone())), ChangedFigures::of(entry))).collect()
    }

    /// The platform's costs that are spread.
    pub fn put_in(&self) -> Parts {
        let spread = self.books.costs.iter().filter(|item| item.is_platforms());
        let costs = spread.filter_map(|item| item.cost(&self.held.bundles).ok());
        let in_currency = costs.filter(|cost| cost.amount.currency() == self.books.book.currency());
        let entries = in_currency.map(|cost| cost.entry());
        let mut parts = Parts::new();
        for entry in entries {
            let name = entry.key.what.clone().unwrap_or_else(|| "".into());
            let sum = parts.entry(ChangedSource::Cost(name)).or_insert_with(|| ChangedFigures {
                amount: Some(Money::zero(entry.amount.currency())),
                ..ChangedFigures::default()
            });
            sum.amount = sum.amount.map(|amount| amount + entry.amount);
        }
        parts
    }

    /// What the price book says of a line.
    pub fn price(&self, key: &EntryKey) -> Option<String> {
        let sets = std::iter::once(&self.held.leaves).chain(self.unheld.iter().map(|unheld| &unheld.leaves));
        let line = key.price_line.as_ref()?;
        let mut leaves = sets.flat_map(|leaves| leaves.all());
        let leaf = leaves.find(|leaf| leaf.price_line(Some(self.books.book)) == Some(line))?;
        Some(self.books.book.price_text(leaf.price?))
    }

    /// An attempt that holds something, as this side has it. Of a closed month the input has today's beside it.
    pub fn attempt(&self, key: &AttemptKey) -> Option<&ReportAttempt> {
        let holders = self.books.input.cells.iter().filter_map(|cell| cell.attempt);
        holders.map(|index| &self.books.input.attempts[index as usize]).find(|attempt| attempt.key == *key)
    }
}

impl Part {
    fn without_amount(self) -> ChangedFigures {
        ChangedFigures { card_time: self.card_time, billed_time: self.charged, amount: None }
    }
}

fn holder(side: &Side<'_>, cell: &Cell) -> ChangedSource {
    ChangedSource::Attempt(cell.attempt.map(|index| side.books.input.attempts[index as usize].key.clone()))
}
