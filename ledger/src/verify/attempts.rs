//! `jobs` against itself, and `holdings` against `jobs`.

use super::findings::{Findings, at};
use super::load::{Held, Id, Stored};
use super::place::atlases;
use super::shares;
use super::span::Span;
use crate::store::day_text;
use std::collections::BTreeMap;

/// Each attempt once, in its partition, with the content that its hash is of.
pub(super) fn each_stands_once(stored: &Stored) -> Findings {
    let mut out = Findings::default();
    for (job, i) in stored.jobs.iter().zip(0u32..) {
        out.rows += 1;
        let place = attempt(stored, job.cluster, &job.key);
        // The map from keys keeps the last row of a key.
        if stored.by_key[&job.key] != i {
            out.fault("jobs", &place, "one row", "another row of the same attempt");
        }
        if job.lies_in != Some(job.belongs_to) {
            let found = job.lies_in.map_or("no partition".to_owned(), day_text);
            out.fault(
                "jobs",
                &place,
                &format!("partition {}", day_text(job.belongs_to)),
                &format!("partition {found}"),
            );
        }
        if !job.right.cards {
            out.fault("jobs", &place, "the cards of its share_parts", "other cards");
        }
        if job.right.hash == Some(false) {
            out.fault("jobs", &place, "the content of its content_hash", "other content");
        }
    }
    out
}

pub(super) fn attempt(stored: &Stored, cluster: Id, key: &str) -> String {
    format!("cluster {}, attempt {key}", named(stored.names.get(cluster)))
}

/// A cluster's name, also of one that has none.
pub(super) fn named(cluster: &str) -> &str {
    if cluster.is_empty() { "(unnamed)" } else { cluster }
}

/// One stretch over which an attempt has one share.
type Stretch = (Span, i64);

/// What each attempt held by its record, and what `holdings` says.
pub(super) fn holdings_are_of_records(stored: &Stored) -> Findings {
    let mut out = Findings::of_time();
    let mut expected: BTreeMap<(&str, Option<Id>), Vec<Stretch>> = BTreeMap::new();
    for job in &stored.jobs {
        if let (Some(span), None) = (job.held, job.card) {
            expected.insert((&job.key, None), vec![(span, job.parts)]);
        }
    }
    for (job, card, stretches) in shares::of_cards(stored) {
        expected.insert((&stored.jobs[job as usize].key, Some(card)), stretches);
    }
    let mut found: BTreeMap<(&str, Option<Id>), Vec<Stretch>> = BTreeMap::new();
    let mut ids: BTreeMap<&str, &Held> = BTreeMap::new();
    let atlases = atlases(stored);
    for held in &stored.holdings {
        out.saw(i128::from(held.parts) * i128::from(held.span.ms()));
        let place = attempt(stored, held.cluster, &held.key);
        if ids.insert(&held.id, held).is_some() {
            out.fault("holdings", &place, "a holding_id of its own", &format!("{} again", held.id));
        }
        let day = *Span { from: held.span.from, to: held.span.from + 1 }.days().start();
        if held.lies_in != Some(day) {
            let found = held.lies_in.map_or("no partition".to_owned(), day_text);
            out.fault("holdings", &place, &format!("partition {}", day_text(day)), &format!("partition {found}"));
        }
        found.entry((&held.key, held.card)).or_default().push((held.span, held.parts));
        let Some(job) = held.job.map(|job| &stored.jobs[job as usize]) else {
            out.fault("holdings", &place, "an attempt of jobs", "an attempt that jobs doesn't have");
            continue;
        };
        let model = atlases.get(&job.cluster).map_or(job.model, |atlas| atlas.model(job));
        let right = [Some(job.cluster), job.node, model, job.profile];
        let theirs = [Some(held.cluster), held.node, held.model, held.profile];
        for ((name, right), theirs) in ["cluster", "node", "model", "mig_profile"].into_iter().zip(right).zip(theirs) {
            if right != theirs {
                let text = |id| format!("{name} {}", stored.names.text(id));
                out.fault("holdings", &place, &text(right), &text(theirs));
            }
        }
    }
    for stretches in found.values_mut() {
        stretches.sort();
    }
    for (key, stretches) in &expected {
        let theirs = found.remove(key).unwrap_or_default();
        if theirs != *stretches {
            let job = &stored.jobs[stored.by_key[key.0] as usize];
            out.fault("holdings", &of(stored, job.cluster, *key), &told(stretches), &told(&theirs));
        }
    }
    // Attempts that jobs doesn't have were said above.
    for (key, stretches) in found {
        if let Some(job) = stored.by_key.get(key.0) {
            let cluster = stored.jobs[*job as usize].cluster;
            out.fault("holdings", &of(stored, cluster, key), "none", &told(&stretches));
        }
    }
    out
}

fn of(stored: &Stored, cluster: Id, (key, card): (&str, Option<Id>)) -> String {
    let place = attempt(stored, cluster, key);
    card.map_or(place.clone(), |card| format!("{place}, card {}", stored.names.get(card)))
}

fn told(stretches: &[Stretch]) -> String {
    let one = |(span, parts): &Stretch| format!("{parts} parts from {} to {}", at(span.from), at(span.to));
    match stretches {
        [] => "none".to_owned(),
        [first, _, _, .., last] => format!("{} stretches, first {}, last {}", stretches.len(), one(first), one(last)),
        few => few.iter().map(one).collect::<Vec<_>>().join(", then "),
    }
}
