//! Where a correction comes from (LED-8): a line of a closed month as it was closed and as the facts of today have it, part by part.
//!
//! A correction is a difference of two drafts of one month. Both are sorted into leaves again here, and what differs is told by whoever holds the
//! line's time: attempts of a charge, a refund or an efficiency, cards of an idle line, the items of a cost. The figures of the parts add up to those of
//! the line, so that the differences add up to its corrections, all of them together: what one month's correction was of the next one's isn't kept.
//!
//! Start at [`Comparison::of_line`]. Does not: say in which statement a correction stands.

use super::held::Held;
use super::idle::{FREE, Unheld, unheld};
use super::{Draft, Entry, EntryKey, EntryKind, FreeCapacity, MonthOfBooks, draft, refunds};
use crate::bill::{Leaves, NO_LEAF};
use crate::cell::Cell;
use crate::report::ReportAttempt;
use crate::site::Reservation;
use cardhour_domain::{AttemptKey, CardState, CardTime, Money, Name, Timestamp, spread_by};
use std::collections::BTreeMap;

/// What a line of a closed month was, what it is, and whose doing that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// As it was closed; none of a line that it hadn't.
    pub before: Option<ChangedFigures>,
    /// As the facts of today have it; none of a line that it hasn't any more.
    pub after: Option<ChangedFigures>,
    /// What the price book says of it; none of what has no price.
    pub price: Option<String>,
    /// What differs of that which the line is made of, most first: the largest difference in money, then in time.
    pub parts: Vec<Changed>,
    /// What differs beside it and had a part in it: of idle cards, who held them and what else they were; of what is spread, the lines it is spread by.
    pub beside: Vec<Changed>,
}

/// A part of a line, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// What it is.
    pub source: ChangedSource,
    /// When the month was closed; none where it wasn't there.
    pub before: Option<ChangedFigures>,
    /// Today; none where it isn't there any more.
    pub after: Option<ChangedFigures>,
    /// What is said of it otherwise than when the month was closed. Empty where that is its figures alone.
    pub told: Vec<ToldOtherwise>,
}

/// What a part of a line is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangedSource {
    /// An attempt; none: time that a source gave without its job.
    Attempt(Option<AttemptKey>),
    /// Cards in a state that nobody holds them in, or all of them (none): the capacity.
    Cards {
        /// Cluster.
        cluster: Name,
        /// Node; none where its cluster is accounted by model or as a whole.
        node: Option<Name>,
        /// Model.
        model: Option<Name>,
        /// The state.
        state: Option<CardState>,
        /// The reservation, of reserved ones.
        reservation: Option<Name>,
    },
    /// A reservation. It has no figures.
    Reservation {
        /// Cluster.
        cluster: Name,
        /// Its name.
        name: Name,
        /// When it begins.
        start: Timestamp,
    },
    /// A cost item, by its name and cards.
    Cost(Name),
    /// Another line of the month.
    Line(Box<EntryKey>),
}

/// Figures of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangedFigures {
    /// Time held, idle or given back, as its entry has it.
    pub card_time: CardTime,
    /// Of it, what is billed.
    pub billed_time: CardTime,
    /// The part of the line's amount that falls to it, by the time that is charged; millionths add up. None where no amount falls to it alone.
    pub amount: Option<Money>,
}

/// Something that is said otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldOtherwise {
    /// What: `project`, `state`, `end`.
    pub what: &'static str,
    /// When the month was closed.
    pub before: Option<Told>,
    /// Today.
    pub after: Option<Told>,
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A name, or a number in words.
    Name(Name),
    /// An instant.
    At(Timestamp),
}

/// A closed month twice: by what was frozen with it, and by the facts of today.
pub struct Comparison<'a> {
    before: Side<'a>,
    after: Side<'a>,
}

/// A month, sorted into lines.
struct Side<'a> {
    books: &'a MonthOfBooks<'a>,
    held: Held<'a>,
    unheld: Vec<Unheld<'a>>,
    entries: BTreeMap<EntryKey, Entry>,
}

/// What a part is in one of the two.
#[derive(Clone, Copy, Default)]
struct Part {
    card_time: CardTime,
    /// By which the line's amount is spread.
    charged: CardTime,
}

type Parts = BTreeMap<ChangedSource, ChangedFigures>;

impl<'a> Comparison<'a> {
    /// Of two drafts of one month. `before`: as it was closed; `after`: as today's facts have it, by the same prices and policy.
    pub fn new(before: &'a MonthOfBooks<'a>, after: &'a MonthOfBooks<'a>) -> Self {
        assert_eq!(before.month, after.month, "LED-8: one month is compared with itself");
        Self { before: Side::of(before), after: Side::of(after) }
    }

    /// Where a line's corrections come from.
    pub fn of_line(&self, key: &EntryKey) -> Changes {
        let Self { before, after } = self;
        let figures = |side: &Side<'_>| side.entries.get(key).map(ChangedFigures::of);
        let mut parts = changed(before.parts(key), after.parts(key));
        for part in &mut parts {
            part.told = self.told(&part.source);
        }
        let price = after.price(key).or_else(|| before.price(key));
        Changes { before: figures(before), after: figures(after), price, beside: self.beside(key, &parts), parts }
    }

    /// What is said otherwise of an attempt or a reservation.
    fn told(&self, source: &ChangedSource) -> Vec<ToldOtherwise> {
        let ChangedSource::Attempt(Some(key)) = source else { return Vec::new() };
        match (self.before.attempt(key), self.after.attempt(key)) {
            (Some(before), Some(after)) => differences(of_attempt(before), of_attempt(after)),
            // That it isn't there is said by its figures.
            _ => Vec::new(),
        }
    }

    fn beside(&self, key: &EntryKey, parts: &[Changed]) -> Vec<Changed> {
        let Self { before, after } = self;
        match key.kind {
            EntryKind::Charge
            | EntryKind::Refund
            | EntryKind::Efficiency
            | EntryKind::CostItem
            | EntryKind::Recovery
            | EntryKind::Correction => Vec::new(),
            EntryKind::Idle => {
                let places: Vec<&ChangedSource> = parts.iter().map(|part| &part.source).collect();
                let mut beside = changed(before.around(&places), after.around(&places));
                for part in &mut beside {
                    part.told = self.told(&part.source);
                }
                beside.extend(reservations(&before.books.input.reservations, &after.books.input.reservations));
                if before.is_shared(key) {
                    beside.extend(changed(before.lines(EntryKind::Charge), after.lines(EntryKind::Charge)));
                }
                beside
            }
        }
    }
}

impl ChangedFigures {
    fn of(entry: &Entry) -> Self {
        Self { card_time: entry.card_time, billed_time: entry.billed_time, amount: Some(entry.amount) }
    }
}

impl<'a> Side<'a> {
    fn of(books: &'a MonthOfBooks<'a>) -> Self {
        let held = Held::of(books);
        let unheld = unheld(books, &held);
        let Draft { entries, .. } = draft(books);
        let entries = entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        Self { books, held, unheld, entries }
    }

    /// What a line is made of, with the part of its figures that falls to each.
    fn parts(&self, key: &EntryKey) -> Parts {
        match key.kind {
            EntryKind::Charge => self.spread(
                key,
                self.of_cells(|cell, bundle| {
                    let is_of_line = self.is_of_leaf(&self.held.leaves, bundle, key);
                    is_of_line.then(|| (holder(self, cell), self.charged(cell, bundle)))
                }),
            ),
            EntryKind::Refund => self.spread(
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
            EntryKind::Idle => self.spread(
                key,
                self.of_cells(|cell, bundle| {
                    let is_of_line = self.unheld.iter().any(|unheld| {
                        key.what.as_deref() == Some(unheld.what) && self.is_of_leaf(&unheld.leaves, bundle, key)
                    });
                    if is_of_line { self.nobodys(cell, cell.state) } else { None }
                }),
            ),
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
    fn of_cells(&self, part: impl Fn(&Cell, usize) -> Option<(ChangedSource, Part)>) -> BTreeMap<ChangedSource, Part> {
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

    /// The line's billed time and amount over its parts, by what is charged of each.
    fn spread(&self, key: &EntryKey, parts: BTreeMap<ChangedSource, Part>) -> Parts {
        let Some(entry) = self.entries.get(key).filter(|_| !parts.is_empty()) else {
            return parts.into_iter().map(|(source, part)| (source, part.without_amount())).collect();
        };
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
    fn is_of_leaf(&self, leaves: &Leaves<'_>, bundle: usize, key: &EntryKey) -> bool {
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

    fn charged(&self, cell: &Cell, bundle: usize) -> Part {
        let by_use = self.held.basis.is_by_use(&self.held.bundles.all[bundle]);
        let used = || cell.used.as_ref().map_or(CardTime::ZERO, |used| used.billed_effective);
        Part { card_time: cell.card_time, charged: if by_use { used() } else { cell.billed_time } }
    }

    /// Cards in a state that nobody holds them in.
    fn nobodys(&self, cell: &Cell, state: CardState) -> Option<(ChangedSource, Part)> {
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
    fn is_shared(&self, key: &EntryKey) -> bool {
        match self.books.policy.capacity.free {
            FreeCapacity::Shared => {
                key.kind == EntryKind::Idle && key.what.as_deref() == Some(FREE) && key.model.is_none()
            }
            FreeCapacity::Unbilled | FreeCapacity::Line => false,
        }
    }

    /// Who held the cards of some places, what else these were, and how many there are.
    fn around(&self, places: &[&ChangedSource]) -> Parts {
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
    fn lines(&self, kind: EntryKind) -> Parts {
        let lines = self.entries.iter().filter(|(key, _)| key.kind == kind);
        lines.map(|(key, entry)| (ChangedSource::Line(Box::new(key.clone())), ChangedFigures::of(entry))).collect()
    }

    /// The platform's costs that are spread.
    fn put_in(&self) -> Parts {
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
    fn price(&self, key: &EntryKey) -> Option<String> {
        let sets = std::iter::once(&self.held.leaves).chain(self.unheld.iter().map(|unheld| &unheld.leaves));
        let line = key.price_line.as_ref()?;
        let mut leaves = sets.flat_map(|leaves| leaves.all());
        let leaf = leaves.find(|leaf| leaf.price_line(Some(self.books.book)) == Some(line))?;
        Some(self.books.book.price_text(leaf.price?))
    }

    /// An attempt that holds something, as this side has it. Of a closed month the input has today's beside it.
    fn attempt(&self, key: &AttemptKey) -> Option<&ReportAttempt> {
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

/// What differs, the largest difference first.
fn changed(before: Parts, mut after: Parts) -> Vec<Changed> {
    let mut all: Vec<Changed> = before
        .into_iter()
        .map(|(source, before)| {
            let after = after.remove(&source);
            Changed { source, before: Some(before), after, told: Vec::new() }
        })
        .collect();
    all.extend(after.into_iter().map(|(source, after)| Changed {
        source,
        before: None,
        after: Some(after),
        told: Vec::new(),
    }));
    all.retain(|part| part.before.unwrap_or_default() != part.after.unwrap_or_default());
    let by = |part: &Changed| {
        let amount = |figures: Option<ChangedFigures>| {
            figures.and_then(|figures| figures.amount).map_or(0, |amount| amount.micros())
        };
        let time = |figures: Option<ChangedFigures>| figures.unwrap_or_default().card_time.part_ms();
        let (money, time) = (amount(part.after) - amount(part.before), time(part.after) - time(part.before));
        std::cmp::Reverse((money.abs(), time.abs()))
    };
    all.sort_by(|a, b| by(a).cmp(&by(b)).then_with(|| a.source.cmp(&b.source)));
    all
}

/// Reservations that are there in one of two lists alone, or are otherwise there.
fn reservations(before: &[Reservation], after: &[Reservation]) -> Vec<Changed> {
    let all = |list: &[Reservation]| -> BTreeMap<ChangedSource, Vec<(&'static str, Option<Told>)>> {
        let of = |reservation: &Reservation| {
            let Reservation { cluster, name, during, .. } = reservation;
            let (cluster, name, start) = (cluster.clone(), name.clone(), during.start());
            (ChangedSource::Reservation { cluster, name, start }, of_reservation(reservation))
        };
        list.iter().map(of).collect()
    };
    let (before, after) = (all(before), all(after));
    let sources: std::collections::BTreeSet<&ChangedSource> = before.keys().chain(after.keys()).collect();
    let none = |said: &[(&'static str, Option<Told>)]| said.iter().map(|(what, _)| (*what, None)).collect::<Vec<_>>();
    let told = |source: &&ChangedSource| match (before.get(source), after.get(source)) {
        (Some(before), Some(after)) => differences(before.clone(), after.clone()),
        (Some(before), None) => differences(before.clone(), none(before)),
        (None, Some(after)) => differences(none(after), after.clone()),
        (None, None) => unreachable!("it is from one of the two"),
    };
    let changed = sources.into_iter().map(|source| (source, told(&source))).filter(|(_, told)| !told.is_empty());
    changed.map(|(source, told)| Changed { source: source.clone(), before: None, after: None, told }).collect()
}

fn name(name: Option<&Name>) -> Option<Told> {
    name.cloned().map(Told::Name)
}

/// What is said of an attempt, in an order for people.
fn of_attempt(attempt: &ReportAttempt) -> Vec<(&'static str, Option<Told>)> {
    let ReportAttempt { org, project, user, queue, class, state, cards, held, .. } = attempt;
    vec![
        ("org", name(org.as_ref())),
        ("project", name(project.as_ref())),
        ("user", name(user.as_ref())),
        ("queue", name(queue.as_ref())),
        ("class", name(class.as_ref())),
        ("state", Some(Told::Name(state.name().into()))),
        ("cards", Some(Told::Name(cards.cards().normalize().to_string().into()))),
        ("start", held.map(|held| Told::At(held.start()))),
        ("end", held.map(|held| Told::At(held.end()))),
    ]
}

fn of_reservation(reservation: &Reservation) -> Vec<(&'static str, Option<Told>)> {
    let Reservation { during, nodes, cards, model, org, project, user, .. } = reservation;
    vec![
        ("org", name(org.as_ref())),
        ("project", name(project.as_ref())),
        ("user", name(user.as_ref())),
        ("nodes", (!nodes.is_empty()).then(|| Told::Name(nodes.join(", ").into()))),
        ("cards", cards.map(|cards| Told::Name(cards.cards().normalize().to_string().into()))),
        ("model", name(model.as_ref())),
        ("start", Some(Told::At(during.start()))),
        ("end", Some(Told::At(during.end()))),
    ]
}

fn differences(
    before: Vec<(&'static str, Option<Told>)>,
    after: Vec<(&'static str, Option<Told>)>,
) -> Vec<ToldOtherwise> {
    let both = before.into_iter().zip(after);
    let differ = both.filter(|((_, before), (_, after))| before != after);
    differ.map(|((what, before), (_, after))| ToldOtherwise { what, before, after }).collect()
}
