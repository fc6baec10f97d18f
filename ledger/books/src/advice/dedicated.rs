//! What is always held: cards that a project would have more cheaply for itself.
//!
//! The baseline of a project and model is the whole cards that it held for at least nine tenths of the time. Today's cost is that of so many of the cards it held, the cheapest
//! first; dedicated ones cost their pool's price for all of the time, held or not.

use super::timeline::{PricesOfWork, pieces, take};
use super::work::{Charges, Work};
use super::{AdviceKind, Found, Sources, Whom};
use crate::budgets::Period;
use cardhour_domain::{CardShare, CardTime, Interval, Money};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// For so much of the time the baseline is held: the tenth percentile of what is held. Unit: percent.
const STEADY_PERCENT: i128 = 90;
/// Use is flat where the baseline is so much of the mean: worth a word even where no price of dedicated cards is known. Unit: percent.
const FLAT_PERCENT: i128 = 80;
/// Less says nothing of how steady a project is. Unit: milliseconds, seven days.
const LEAST_KNOWN_MS: i64 = 7 * 24 * 3_600_000;

pub(super) fn advice(all: &[Work<'_>], period: Period, sources: &Sources<'_>) -> Vec<Found> {
    let whole = period.interval(sources.spent.slots.billing_zone());
    let within = whole.overlap(sources.known).filter(|within| within.length_ms() >= LEAST_KNOWN_MS);
    let Some(within) = within else { return Vec::new() };
    let mut groups: BTreeMap<Whom, Vec<&Work<'_>>> = BTreeMap::new();
    for work in all.iter().filter(|work| work.attempt.project.is_some() && work.whole_cards_of().is_some()) {
        groups.entry(Whom { user: None, ..work.whom() }).or_default().push(work);
    }
    groups.into_iter().filter_map(|(whom, works)| dedicated(whom, &works, within, sources)).collect()
}

fn dedicated(whom: Whom, works: &[&Work<'_>], within: Interval, sources: &Sources<'_>) -> Option<Found> {
    let pieces = pieces(works, within);
    let cards = |piece: &super::timeline::Piece| -> i128 {
        piece.active.iter().map(|i| i128::from(works[*i].attempt.cards.parts())).sum()
    };
    let mut by_cards: Vec<(i128, i64)> = pieces.iter().map(|piece| (cards(piece), piece.during.length_ms())).collect();
    by_cards.sort_by_key(|(parts, _)| Reverse(*parts));
    let all_ms = i128::from(within.length_ms());
    let mut ms = 0;
    let steady = by_cards.iter().find(|(_, piece_ms)| {
        ms += i128::from(*piece_ms);
        ms * 100 >= all_ms * STEADY_PERCENT
    });
    let per_card = i128::from(CardShare::PARTS_PER_CARD);
    let baseline = i64::try_from(steady?.0 / per_card).ok().filter(|cards| *cards > 0)?;
    let share = CardShare::from_cards(baseline).ok()?;
    let held: i128 = by_cards.iter().map(|(parts, ms)| parts * i128::from(*ms)).sum();
    let card_time = CardTime::of(share, within);
    let is_flat = card_time.part_ms() * 100 >= held * FLAT_PERCENT;
    let mean = CardShare::from_parts(i64::try_from(held / all_ms).expect("no more than the most that was held"));
    let jobs: BTreeSet<&str> = works.iter().map(|work| work.attempt.key.job()).collect();
    let steadily = format!(
        "{baseline} cards were held at least {STEADY_PERCENT} % of {} h, {} on average",
        crate::checkpoint::cells::short(
            rust_decimal::Decimal::from(within.length_ms()) / rust_decimal::Decimal::from(3_600_000)
        ),
        crate::checkpoint::cells::short(mean.cards()),
    );
    let found = |saving: Option<i128>, how: String| Found {
        kind: AdviceKind::DedicatedPool,
        whom: whom.clone(),
        jobs: Some(jobs.len() as u64),
        card_time,
        saving: saving.map(|micros| Money::from_micros(micros, sources.book.currency())),
        how,
    };
    match costs(works, &pieces, share, sources) {
        Some((now, dedicated)) if dedicated < now => {
            let shown = |micros| Money::from_micros(micros, sources.book.currency()).to_minor_string();
            let how = format!("{steadily}: {} dedicated for all of it, not {}", shown(dedicated), shown(now));
            Some(found(Some(now - dedicated), how))
        }
        Some(_) => None,
        None => is_flat.then(|| found(None, format!("{steadily}; no price of dedicated cards to compare with"))),
    }
}

/// What the baseline costs now, and dedicated; none where one of both has no price. Unit: millionths of the currency.
fn costs(
    works: &[&Work<'_>],
    pieces: &[super::timeline::Piece],
    baseline: CardShare,
    sources: &Sources<'_>,
) -> Option<(i128, i128)> {
    let pool = sources.dedicated_pool?;
    let mut prices = PricesOfWork::new(sources);
    let (mut now, mut dedicated) = (Charges::default(), Charges::default());
    for piece in pieces {
        for (bucket, part) in piece.during.buckets() {
            let (number, slot) = prices.slot(bucket)?;
            let price = prices.of_pool(works[0], pool, number)?;
            dedicated.add(slot.month, price, slot.window, CardTime::of(baseline, part));
            let mut held = Vec::with_capacity(piece.active.len());
            for i in &piece.active {
                held.push((prices.of(*i, works[*i], number)?, works[*i].attempt.cards));
            }
            held.sort_by_key(|(price, _)| {
                (prices.rate(*price, slot).weight(CardTime::of(CardShare::CARD, part)), *price)
            });
            let mut left = baseline;
            for (price, cards) in held {
                now.add(slot.month, price, slot.window, CardTime::of(take(&mut left, cards), part));
            }
        }
    }
    Some((now.micros(sources.book), dedicated.micros(sources.book)))
}
