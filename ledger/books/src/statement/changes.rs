//! Where a correction comes from (LED-8): a line of a closed month as it was closed and as the facts of today have it, part by part.
//!
//! A correction is a difference of two drafts of one month. Both are sorted into leaves again here, and what differs is told by whoever holds the
//! line's time: attempts of a charge, a refund or an efficiency, cards of an idle line, the items of a cost. The figures of the parts add up to those of
//! the line, so that the differences add up to its corrections, all of them together: what one month's correction was of the next one's isn't kept.
//!
//! Start at [`Comparison::of_line`]. Does not: say in which statement a correction stands.

use super::side::{Parts, Side};
use super::{Entry, EntryKey, EntryKind, MonthOfBooks};
use crate::report::ReportAttempt;
use crate::site::Reservation;
use cardhour_domain::{AttemptKey, CardState, CardTime, Money, Name, Timestamp};
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
    pub(super) fn of(entry: &Entry) -> Self {
        Self { card_time: entry.card_time, billed_time: entry.billed_time, amount: Some(entry.amount) }
    }
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
