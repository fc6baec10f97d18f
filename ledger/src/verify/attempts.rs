//! `jobs` against itself, and `holdings` against `jobs`.

use super::findings::{Findings, at, time_text};
use super::load::{Held, Id, Stored};
use super::place::atlases;
use super::shares;
use super::span::{Span, joined};
use crate::store::day_text;
use std::collections::{BTreeMap, BTreeSet};

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
        if job.lies_in != Some(job.belongs_to) && !job.is_observed {
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
    // Of those that nodes saw on cards, the sum over cards is looked at ([`seen_holdings_are_proven`]).
    let seen: BTreeSet<&str> = stored.holdings.iter().filter(|h| stored.is_seen(h)).map(|h| h.key.as_str()).collect();
    let mut expected: BTreeMap<(&str, Option<Id>), Vec<Stretch>> = BTreeMap::new();
    for job in stored.jobs.iter().filter(|job| !job.is_observed && !seen.contains(job.key.as_str())) {
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
        if !seen.contains(held.key.as_str()) {
            found.entry((&held.key, held.card)).or_default().push((held.span, held.parts));
        }
        let Some(job) = held.job.map(|job| &stored.jobs[job as usize]) else {
            out.fault("holdings", &place, "an attempt of jobs", "an attempt that jobs doesn't have");
            continue;
        };
        let seat = stored.seat(held, job);
        let model = atlases.get(&job.cluster).map_or(job.model, |atlas| atlas.model(seat));
        // The profile of a slice that a node saw is the node's to tell.
        let profile = if stored.is_seen(held) { job.profile.or(held.profile) } else { job.profile };
        let right = [Some(job.cluster), seat.node, model, profile];
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

/// Of attempts that nodes saw: a record's cards add up to what it says at each instant of its time, and what is held without a record was seen
/// held, or nobody looked.
pub(super) fn seen_holdings_are_proven(stored: &Stored) -> Findings {
    let mut out = Findings::of_time();
    let mut by_job: BTreeMap<u32, Vec<&Held>> = BTreeMap::new();
    for held in &stored.holdings {
        if let Some(job) = held.job {
            by_job.entry(job).or_default().push(held);
        }
    }
    let mut looks: BTreeMap<Id, Vec<Span>> = BTreeMap::new();
    for (_, card, span) in stored.sites.values().flat_map(|site| &site.looks) {
        looks.entry(*card).or_default().push(*span);
    }
    for (job, all) in by_job.into_iter().filter(|(_, all)| all.iter().any(|held| stored.is_seen(held))) {
        let job = &stored.jobs[job as usize];
        out.saw(all.iter().map(|held| i128::from(held.parts) * i128::from(held.span.ms())).sum());
        let place = attempt(stored, job.cluster, &job.key);
        if job.is_observed {
            all.iter().for_each(|held| was_seen(stored, held, &looks, &place, &mut out));
            continue;
        }
        let Some(record) = job.held else {
            out.fault("holdings", &place, "none, as in jobs", "some");
            continue;
        };
        let cuts: i128 = stored
            .conflicts
            .iter()
            .filter(|c| c.kind == "share_cut" && c.key.as_deref() == Some(job.key.as_str()))
            .map(|c| c.part_ms)
            .sum();
        let in_record: i128 = all
            .iter()
            .filter(|held| !held.is_releasing)
            .map(|held| i128::from(held.parts) * i128::from(held.span.shared_ms(record)))
            .sum();
        let said = i128::from(job.parts) * i128::from(record.ms());
        // What another claim on the card cut away is in conflicts, also what lies beyond the record.
        if in_record > said || in_record + cuts < said {
            out.fault("holdings", &place, &format!("{} in its record's time", time_text(said)), &time_text(in_record));
        }
        for held in all {
            let within = record.from <= held.span.from && (held.span.to <= record.to || job.is_open);
            let after = held.is_releasing && record.to <= held.span.from;
            if !within && !after {
                let told = format!("from {} to {}", at(held.span.from), at(held.span.to));
                out.fault("holdings", &place, "within its record, or released after it", &told);
            }
        }
    }
    out
}

/// A holding without a record: at each end a node saw it, and where none did, none looked.
fn was_seen(stored: &Stored, held: &Held, looks: &BTreeMap<Id, Vec<Span>>, place: &str, out: &mut Findings) {
    let Some(card) = held.card else {
        out.fault("holdings", place, "a card", "none");
        return;
    };
    let proofs = joined(stored.proofs.get(&(held.key.clone(), card)).into_iter().flatten().copied());
    let mut dark = vec![held.span];
    for proof in &proofs {
        dark = dark.into_iter().flat_map(|hole| hole.without(*proof)).collect();
    }
    let looked = |hole: &Span| looks.get(&card).into_iter().flatten().any(|look| look.shared_ms(*hole) > 0);
    if let Some(hole) = dark.iter().find(|hole| looked(hole)) {
        let told = format!("held from {} to {}, when it was looked for and not seen", at(hole.from), at(hole.to));
        out.fault("holdings", place, "what a node saw", &told);
    }
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
