//! What the policy gives back, and for what.

use super::held::{Charged, Held};
use super::{BillingMode, Entry, EntryKey, EntryKind, MonthOfBooks, RefundCause, RefundOf};
use crate::bill::NO_LEAF;
use crate::cell::{Cell, Used};
use crate::report::ReportAttempt;
use crate::slots::Era;
use cardhour_domain::{CardTime, JobState, Money, Month, Name, spread, spread_by};
use num_bigint::BigInt;
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};

/// The label by which somebody says that cards were wrongly taken.
pub const WRONGFUL_RECLAIM: &str = "wrongful_reclaim";

/// Jobs that a refund's reason names, before it counts the rest.
const MOST_JOBS: usize = 5;

/// What of a leaf is given back for one cause.
#[derive(Default)]
struct Given {
    time: CardTime,
    jobs: BTreeSet<Name>,
}

/// Refunds of the month's charges, each pointing at its own.
///
/// A leaf's refunds are rounded once, as their sum, and split over the causes by largest remainder, so that they never come to more than the leaf.
pub(super) fn refunds(books: &MonthOfBooks<'_>, held: &Held<'_>, charged: &[Option<Charged>]) -> Vec<Entry> {
    let mut given: BTreeMap<u32, BTreeMap<RefundCause, Given>> = BTreeMap::new();
    let causes: Vec<Option<RefundCause>> = books.input.attempts.iter().map(|attempt| cause(books, attempt)).collect();
    for (cell, &bundle) in books.input.cells.iter().zip(&held.bundles.of_cell) {
        let leaf = held.leaves.of_bundle[bundle as usize];
        let Some(index) = cell.attempt.filter(|_| leaf != NO_LEAF) else { continue };
        let Some(cause) = causes[index as usize] else { continue };
        let time = given_time(books, held, cell, bundle as usize);
        if time > CardTime::ZERO {
            let given = given.entry(leaf).or_default().entry(cause).or_default();
            given.time += time;
            let key = &books.input.attempts[index as usize].key;
            let taken_by = books.wrongful.get(key).filter(|_| cause == RefundCause::Reclaimed);
            given.jobs.insert(match taken_by {
                Some(decision) => format!("{} (decision {decision})", key.job()).into(),
                None => key.job().into(),
            });
        }
    }
    let of_leaf = |(leaf, causes): (u32, BTreeMap<_, _>)| {
        let charged = charged[leaf as usize].as_ref();
        charged.map_or_else(Vec::new, |charged| of_leaf(books, charged, &causes))
    };
    given.into_iter().flat_map(of_leaf).collect()
}

/// What of a cell's time a refund gives back, whatever its cause.
pub(super) fn given_time(books: &MonthOfBooks<'_>, held: &Held<'_>, cell: &Cell, bundle: usize) -> CardTime {
    let by_use = held.basis.is_by_use(&held.bundles.all[bundle]);
    let of_used = |time: fn(&Used) -> CardTime| cell.used.as_deref().map_or(CardTime::ZERO, time);
    match (books.policy.refunds.of, by_use) {
        (RefundOf::Held, false) => cell.billed_time,
        (RefundOf::Held, true) => of_used(|used| used.billed_effective),
        (RefundOf::Lost, false) => of_used(|used| used.billed_lost),
        // Lost time is no use, and was never charged.
        (RefundOf::Lost, true) => CardTime::ZERO,
    }
}

fn of_leaf(books: &MonthOfBooks<'_>, charged: &Charged, causes: &BTreeMap<RefundCause, Given>) -> Vec<Entry> {
    let Charged { entry: charge, exact } = charged;
    let currency = charge.amount.currency();
    if charge.amount.micros() <= 0 {
        return Vec::new();
    }
    let part = |cause: RefundCause| micro_part(books.policy.refunds.part(cause).expect("a cause that is refunded"));
    let weights: Vec<BigInt> =
        causes.iter().map(|(cause, given)| BigInt::from(given.time.part_ms()) * part(*cause)).collect();
    let weight: BigInt = weights.iter().sum();
    let due = exact.times(weight, BigInt::from(charge.billed_time.part_ms()) * 1_000_000);
    let sum = due.round(currency).micros().min(charge.amount.micros());
    let per_minor = currency.micros_per_minor();
    let id = charge.id();
    causes
        .iter()
        .zip(spread(sum / per_minor, &weights))
        .map(|((cause, given), minor)| {
            let back = |part_ms: i128| CardTime::from_part_ms(-part_ms);
            let time = given.time.part_ms();
            Entry {
                original_entry: Some(id.clone()),
                price_version: charge.price_version.clone(),
                card_time: back(time),
                billed_time: back(time / 1_000_000 * part(*cause) + time % 1_000_000 * part(*cause) / 1_000_000),
                reason: Some(jobs_text(&given.jobs).into()),
                ..Entry::of(
                    EntryKey { kind: EntryKind::Refund, what: Some(cause.name().into()), ..charge.key.clone() },
                    Money::from_micros(-minor * per_minor, currency),
                )
            }
        })
        .collect()
}

/// What is given back of one owner's time, down to what a budget can select by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenBack {
    /// The month in whose statement it stands.
    pub period: Month,
    /// Who pays, at the top.
    pub org: Option<Name>,
    /// Who pays.
    pub project: Option<Name>,
    /// Whose it is.
    pub user: Option<Name>,
    /// Queue or partition; none of a refund that came after its month was closed, whose entry has none.
    pub queue: Option<Name>,
    /// Class of the job; none as of the queue.
    pub class: Option<Name>,
    /// Model of the cards.
    pub model: Option<Name>,
    /// Billed time, below zero.
    pub billed_time: CardTime,
    /// The amount, below zero.
    pub amount: Money,
}

impl GivenBack {
    /// Of a refund, or of a correction of one, as a whole; none of any other entry.
    pub fn of_entry(entry: &Entry) -> Option<Self> {
        let Entry { key, period, billed_time, amount, .. } = entry;
        let EntryKey { kind, org, project, user, model, .. } = key.clone();
        let (period, billed_time, amount) = (*period, *billed_time, *amount);
        let (queue, class) = (None, None);
        (kind == EntryKind::Refund).then_some(Self {
            period,
            org,
            project,
            user,
            queue,
            class,
            model,
            billed_time,
            amount,
        })
    }
}

/// Parts × milliseconds by whether they were asked for, and by queue and class.
type TimeByPart = BTreeMap<(bool, [Option<Name>; 2]), i128>;

/// A month's refunds by queue and class: its entries, each spread over these by the time that is given back, largest remainder. Of a month of which a part is
/// asked, by its slots, what is given back of that part.
///
/// None in absorb mode, where what is given back is of another figure than the bill's.
pub fn given_back(books: &MonthOfBooks<'_>) -> Vec<GivenBack> {
    match books.policy.mode {
        BillingMode::Rate => {}
        BillingMode::Absorb => return Vec::new(),
    }
    if !books.policy.refunds.gives_back() {
        return Vec::new();
    }
    let held = Held::of(books);
    let refunds = refunds(books, &held, &held.at_prices(books));
    let refunds: BTreeMap<EntryKey, Entry> = refunds.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
    let mut given: BTreeMap<(u32, RefundCause), TimeByPart> = BTreeMap::new();
    for (cell, &bundle) in books.input.cells.iter().zip(&held.bundles.of_cell) {
        let leaf = held.leaves.of_bundle[bundle as usize];
        let Some(attempt) = cell.attempt.filter(|_| leaf != NO_LEAF) else { continue };
        let attempt = &books.input.attempts[attempt as usize];
        let Some(cause) = cause(books, attempt) else { continue };
        let is_asked = books.slots.slot(cell.slot).era == Era::Shown;
        let of = (is_asked, [attempt.queue.clone(), attempt.class.clone()]);
        let time = given_time(books, &held, cell, bundle as usize);
        *given.entry((leaf, cause)).or_default().entry(of).or_default() += time.part_ms();
    }
    let mut out = Vec::new();
    for ((leaf, cause), of) in given {
        let zero = Money::zero(books.book.currency());
        let charge = held.entry(books, leaf as usize, zero).key;
        let key = EntryKey { kind: EntryKind::Refund, what: Some(cause.name().into()), ..charge };
        let Some(whole) = refunds.get(&key).and_then(GivenBack::of_entry) else { continue };
        let weights: Vec<i128> = of.values().copied().collect();
        let amounts = spread_by(whole.amount.micros(), &weights);
        let times = spread_by(whole.billed_time.part_ms(), &weights);
        let parts = of.into_keys().zip(amounts).zip(times);
        for (((_, [queue, class]), amount), time) in parts.filter(|(((is_asked, _), _), _)| *is_asked) {
            out.push(GivenBack {
                queue,
                class,
                billed_time: CardTime::from_part_ms(time),
                amount: Money::from_micros(amount, whole.amount.currency()),
                ..whole.clone()
            });
        }
    }
    out
}

/// Why an attempt's charges are given back: of several reasons the one that gives most.
pub(super) fn cause(books: &MonthOfBooks<'_>, attempt: &ReportAttempt) -> Option<RefundCause> {
    let is_so = |cause: &RefundCause| match cause {
        RefundCause::NodeFail => attempt.state == JobState::NodeFail,
        RefundCause::FatalXid => books.sick.contains(&attempt.key),
        RefundCause::Preempted => attempt.state == JobState::Preempted,
        RefundCause::Reclaimed => {
            let is_said = attempt.state == JobState::Reclaimed && attempt.labels.contains_key(WRONGFUL_RECLAIM);
            is_said || books.wrongful.contains_key(&attempt.key)
        }
    };
    let refunded = RefundCause::ALL.into_iter().filter(is_so);
    let parts = refunded.filter_map(|cause| Some((books.policy.refunds.part(cause)?, cause)));
    // `max_by` takes the last of equals; the first is wanted.
    parts.rev().max_by(|(a, _), (b, _)| a.cmp(b)).map(|(_, cause)| cause)
}

/// A part of 0 to 1 as millionths.
fn micro_part(part: Decimal) -> i128 {
    let mut part = part;
    part.rescale(6);
    part.mantissa()
}

fn jobs_text(jobs: &BTreeSet<Name>) -> String {
    let named: Vec<&str> = jobs.iter().take(MOST_JOBS).map(|job| &**job).collect();
    let more = jobs.len() - named.len();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("job {}{rest}", named.join(", "))
}
