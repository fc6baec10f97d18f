//! Jobs side by side that would have fitted on fewer cards.
//!
//! At each instant the little busy one-card jobs of one user, project and model are laid onto as few cards as they fit on: the busiest first, each onto the first card with room
//! for its use and its memory. What is left over wasn't needed; of the cards that were held the cheapest are taken for it.

use super::timeline::{PricesOfWork, pieces};
use super::work::{Charges, Work};
use super::{AdviceKind, Found, Sources, Whom};
use crate::budgets::Period;
use cardhour_domain::{CardShare, CardTime, Interval, Money, Name};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A job that is busy for less of what was seen can have a neighbour. Unit: percent.
const LITTLE_BUSY_PERCENT: i128 = 30;
/// So much of a shared card may be busy, so that jobs don't wait for each other: a mean says nothing of bursts. Unit: millionths.
const FULL_BUSY: i128 = 800_000;
/// So much of a shared card's memory may be used: a tick's end may have missed a peak. Unit: percent.
const FULL_MEMORY_PERCENT: i128 = 90;

/// One job, as far as it can share.
struct Small<'w, 'a> {
    work: &'w Work<'a>,
    busy_millionths: i128,
    peak_bytes: i64,
}

pub(super) fn advice(all: &[Work<'_>], period: Period, sources: &Sources<'_>) -> Vec<Found> {
    let whole = period.interval(sources.spent.slots.billing_zone());
    let Some(within) = whole.overlap(sources.known) else { return Vec::new() };
    let mut groups: BTreeMap<(Whom, &Name), Vec<Small<'_, '_>>> = BTreeMap::new();
    for work in all.iter().filter(|work| work.had_one_card()) {
        let Some(model) = work.whole_cards_of().filter(|model| sources.memory.card_bytes.contains_key(*model)) else {
            continue;
        };
        let Some(busy) = work.busy().filter(|busy| busy.is_below(LITTLE_BUSY_PERCENT)) else { continue };
        let Some(peak_bytes) = work.memory_peak_bytes(sources) else { continue };
        let small = Small { work, busy_millionths: busy.millionths(), peak_bytes };
        groups.entry((work.whom(), model)).or_default().push(small);
    }
    let found = groups
        .into_iter()
        .filter(|(_, jobs)| jobs.len() > 1)
        .filter_map(|((whom, model), jobs)| merged(whom, &jobs, sources.memory.card_bytes[model], within, sources));
    found.collect()
}

/// None where nothing could be saved, or some of it has no price.
fn merged(
    whom: Whom,
    jobs: &[Small<'_, '_>],
    card_bytes: i64,
    within: Interval,
    sources: &Sources<'_>,
) -> Option<Found> {
    let works: Vec<&Work<'_>> = jobs.iter().map(|job| job.work).collect();
    let mut prices = PricesOfWork::new(sources);
    let mut charges = Charges::default();
    let (mut held, mut saved, mut most) = (CardTime::ZERO, CardTime::ZERO, (0, 0));
    let mut merged: BTreeSet<&str> = BTreeSet::new();
    for piece in pieces(&works, within) {
        let side_by_side: Vec<&Small<'_, '_>> = piece.active.iter().map(|i| &jobs[*i]).collect();
        let needed = cards_needed(&side_by_side, card_bytes);
        let spare = piece.active.len() - needed;
        if spare == 0 {
            continue;
        }
        most = most.max((piece.active.len(), needed));
        merged.extend(side_by_side.iter().map(|job| job.work.attempt.key.job()));
        let cards = |cards: usize| CardShare::from_cards(i64::try_from(cards).expect("as many as there are jobs")).ok();
        held += CardTime::of(cards(piece.active.len())?, piece.during);
        saved += CardTime::of(cards(spare)?, piece.during);
        for (bucket, part) in piece.during.buckets() {
            let (number, slot) = prices.slot(bucket)?;
            let mut of_all = Vec::with_capacity(piece.active.len());
            for i in &piece.active {
                of_all.push(prices.of(*i, works[*i], number)?);
            }
            of_all.sort_by_key(|price| (prices.rate(*price, slot).weight(CardTime::of(CardShare::CARD, part)), *price));
            for price in &of_all[..spare] {
                charges.add(slot.month, *price, slot.window, CardTime::of(CardShare::CARD, part));
            }
        }
    }
    let micros = charges.micros(sources.book);
    let how = format!(
        "of {} card-hours held side by side these weren't needed: up to {} jobs at a time fitted on {} by their use and memory",
        crate::checkpoint::cells::short(held.card_hours()),
        most.0,
        if most.1 == 1 { "1 card".to_owned() } else { format!("{} cards", most.1) },
    );
    (micros > 0).then(|| Found {
        kind: AdviceKind::Merging,
        whom,
        jobs: Some(merged.len() as u64),
        card_time: saved,
        saving: Some(Money::from_micros(micros, sources.book.currency())),
        how,
    })
}

/// How many cards hold these jobs: the busiest first, each onto the first card with room.
fn cards_needed(jobs: &[&Small<'_, '_>], card_bytes: i64) -> usize {
    let mut jobs: Vec<(i128, i64)> = jobs.iter().map(|job| (job.busy_millionths, job.peak_bytes)).collect();
    jobs.sort_by_key(|job| Reverse(*job));
    let mut cards: Vec<(i128, i128)> = Vec::new();
    for (busy, bytes) in jobs {
        let bytes = i128::from(bytes);
        let has_room = |card: &&mut (i128, i128)| {
            card.0 + busy <= FULL_BUSY && (card.1 + bytes) * 100 <= i128::from(card_bytes) * FULL_MEMORY_PERCENT
        };
        match cards.iter_mut().find(has_room) {
            Some(card) => *card = (card.0 + busy, card.1 + bytes),
            // One that fills a card alone has it alone.
            None => cards.push((busy, bytes)),
        }
    }
    cards.len()
}
