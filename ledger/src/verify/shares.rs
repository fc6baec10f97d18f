//! Cards that records name: who has which share at each instant (LED-2).
//!
//! The other road: at each instant every claim is looked at alone. What it gets is what those before it in rank leave, which is the card
//! less the *sum* of their claims, not what a running rest says.

use super::attempts::named;
use super::findings::{Findings, at, time_text};
use super::load::{Id, Job, Stored};
use super::span::{CARD_PARTS, Span};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A record that claims a card: its number, itself, and when.
type Claim<'a> = (u32, &'a Job, Span);

/// What one attempt has of its card: its number, the card, and stretches of one share.
type Shared = (u32, Id, Vec<(Span, i64)>);

/// Claims of records on each card: cluster and card, then attempts.
fn claims(stored: &Stored) -> BTreeMap<(Id, Id), Vec<Claim<'_>>> {
    let mut by_card: BTreeMap<(Id, Id), Vec<Claim<'_>>> = BTreeMap::new();
    for (job, i) in stored.jobs.iter().zip(0u32..) {
        // Of a doubled row only the one that stands counts; that it is doubled is another check's.
        if let (Some(card), Some(span)) = (job.card, job.held)
            && stored.by_key[&job.key] == i
        {
            by_card.entry((job.cluster, card)).or_default().push((i, job, span));
        }
    }
    by_card
}

/// Which share each claim has of its card.
pub(super) fn of_cards(stored: &Stored) -> Vec<Shared> {
    let mut out = Vec::new();
    for ((_, card), claims) in claims(stored) {
        for (i, job, span) in &claims {
            let mut edges: Vec<i64> = claims
                .iter()
                .flat_map(|(_, _, other)| [other.from, other.to])
                .filter(|edge| span.from < *edge && *edge < span.to)
                .chain([span.from, span.to])
                .collect();
            edges.sort_unstable();
            edges.dedup();
            let mut stretches: Vec<(Span, i64)> = Vec::new();
            for pair in edges.windows(2) {
                let share = share_at(job, pair[0], &claims);
                match stretches.last_mut() {
                    Some((before, same)) if *same == share => before.to = pair[1],
                    _ => stretches.push((Span { from: pair[0], to: pair[1] }, share)),
                }
            }
            out.push((*i, card, stretches));
        }
    }
    out
}

/// What `job` gets of its card at an instant at which it claims it.
fn share_at(job: &Job, instant: i64, claims: &[Claim<'_>]) -> i64 {
    // Declared before undeclared, then later start, then smaller key.
    fn rank(job: &Job) -> (bool, Reverse<i64>, &str) {
        (!job.declared, Reverse(job.held.map_or(i64::MIN, |held| held.from)), &job.key)
    }
    let here =
        claims.iter().filter(|(_, _, span)| span.from <= instant && instant < span.to).map(|(_, other, _)| *other);
    let mine = rank(job);
    if job.declared {
        let before: i64 = here.filter(|other| rank(other) < mine).map(|other| other.parts).sum();
        return job.parts.min((CARD_PARTS - before).max(0));
    }
    let declared: i64 = here.clone().filter(|other| other.declared).map(|other| other.parts).sum();
    let left = (CARD_PARTS - declared).max(0);
    let sharers = here.filter(|other| !other.declared);
    let (count, before) = sharers.fold((0, 0), |(n, before), other| (n + 1, before + i64::from(rank(other) < mine)));
    // What doesn't divide goes to the first of them, a part each.
    left / count + i64::from(before < left % count)
}

/// At no instant do the holders of one card have more than the card.
pub(super) fn within_cards(stored: &Stored) -> Findings {
    let mut out = Findings::of_time();
    type Step<'a> = (i64, i64, &'a str);
    let mut steps: BTreeMap<(Id, Id), Vec<Step<'_>>> = BTreeMap::new();
    for held in &stored.holdings {
        let Some(card) = held.card else { continue };
        out.saw(i128::from(held.parts) * i128::from(held.span.ms()));
        let steps = steps.entry((held.cluster, card)).or_default();
        steps.push((held.span.from, held.parts, &held.key));
        steps.push((held.span.to, -held.parts, &held.key));
    }
    for ((cluster, card), mut steps) in steps {
        // At one instant what ends goes before what begins.
        steps.sort_unstable();
        let mut held = 0;
        let mut is_over = false;
        for (instant, step, key) in steps {
            held += step;
            if held > CARD_PARTS && !is_over {
                let names = &stored.names;
                let place = format!(
                    "cluster {}, card {}, at {}, attempt {key}",
                    named(names.get(cluster)),
                    names.get(card),
                    at(instant)
                );
                out.fault("holdings", &place, &format!("at most {CARD_PARTS} parts"), &format!("{held} parts"));
            }
            is_over = held > CARD_PARTS;
        }
    }
    out
}

/// What declared claims got less than they claimed is what `conflicts` says, attempt by attempt and day by day.
pub(super) fn cuts_are_said(stored: &Stored) -> Findings {
    let mut out = Findings::of_time();
    let mut expected: BTreeMap<(&str, &str, i32), i128> = BTreeMap::new();
    for (job, card, stretches) in of_cards(stored) {
        let job = &stored.jobs[job as usize];
        for (span, share) in stretches.into_iter().filter(|(_, share)| job.declared && *share < job.parts) {
            for day in span.days() {
                let part_ms = i128::from(job.parts - share) * i128::from(span.shared_ms(Span::day(day)));
                *expected.entry((&job.key, stored.names.get(card), day)).or_default() += part_ms;
            }
        }
    }
    // Those of attempts that only nodes saw on cards are held against holdings ([`super::attempts`]).
    let names_its_card = |key: Option<&str>| {
        key.and_then(|key| stored.by_key.get(key)).is_none_or(|job| stored.jobs[*job as usize].card.is_some())
    };
    let of_records = |c: &&super::load::Conflict| c.kind == "share_cut" && names_its_card(c.key.as_deref());
    for conflict in stored.conflicts.iter().filter(of_records) {
        out.saw(conflict.part_ms);
        let (key, card) = (conflict.key.as_deref().unwrap_or("-"), conflict.card.as_deref().unwrap_or("-"));
        let span = Span { from: conflict.from, to: conflict.to };
        let place =
            format!("cluster {}, attempt {key}, card {card}, from {}", named(&conflict.cluster), at(conflict.from));
        if conflict.part_ms != i128::from(conflict.parts) * i128::from(span.ms()) {
            out.fault("conflicts", &place, "parts × length", &time_text(conflict.part_ms));
        }
        let day = *span.days().start();
        if conflict.lies_in != Some(day) || *span.days().end() != day {
            out.fault(
                "conflicts",
                &place,
                "a stretch within the day of its partition",
                &format!("to {}", at(conflict.to)),
            );
        }
        *expected.entry((key, card, day)).or_default() -= conflict.part_ms;
    }
    for ((key, card, day), part_ms) in expected.into_iter().filter(|(_, part_ms)| *part_ms != 0) {
        let place = format!("attempt {key}, card {card}, {}", crate::store::day_text(day));
        let (expected, found) = if part_ms > 0 { (time_text(part_ms), "less") } else { (time_text(0), "more") };
        out.fault(
            "conflicts",
            &place,
            &format!("cuts of {expected}"),
            &format!("{} {found}", time_text(part_ms.abs())),
        );
    }
    out
}
