//! A pool in a few lines, for a failure that can be read.

use std::fmt::Write as _;

use cardhour_domain::CardShare;
use cardhour_scheduler_core::snapshot::{Piece, Resource};
use cardhour_scheduler_core::{Policy, Snapshot};

/// Queues, hosts and jobs, a line each.
pub fn pool_in_words(snapshot: &Snapshot, policy: &Policy) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{policy:?}");
    let cards = |parts: i64| parts as f64 / CardShare::PARTS_PER_CARD as f64;
    for queue in &snapshot.queues {
        let _ = write!(out, "queue {}", queue.name);
        if let Some(parent) = &queue.parent {
            let _ = write!(out, " under {parent}");
        }
        for (resource, quota) in &queue.quota {
            let name = match resource {
                Resource::Cards(model) => model.as_str(),
                Resource::Cpu => "cpu",
                Resource::Memory => "memory",
            };
            let _ = write!(out, "; {name} {}", cards(quota.nominal));
            for (word, limit) in [("borrows", quota.borrow_limit), ("lends", quota.lend_limit), ("max", quota.max)] {
                if let Some(limit) = limit {
                    let _ = write!(out, " {word} {}", cards(limit));
                }
            }
        }
        let _ = writeln!(out, "; weight {}", queue.weight_milli);
    }
    for host in &snapshot.hosts {
        let _ = writeln!(
            out,
            "host {}: {} {}, {:?}, {:?}",
            host.name,
            host.cards,
            host.model,
            host.state,
            host.domains.values().collect::<Vec<_>>()
        );
    }
    for run in &snapshot.running {
        let mut marks = Vec::new();
        for (mark, holds) in [
            ("leaving", run.leaving),
            ("pinned", !run.preemptible),
            ("not restartable", !run.restartable),
            ("critical", run.critical.as_ref().is_some_and(|window| window.holds_at(snapshot.at))),
        ] {
            if holds {
                marks.push(mark);
            }
        }
        let _ = writeln!(
            out,
            "runs {} in {}: priority {}, {} cards each, at least {} workers, for {} s, {}{}",
            run.name,
            run.queue,
            run.priority,
            cards(run.shape.cards.parts()),
            run.min_workers,
            snapshot.at.ms_since(run.admitted) / 1_000,
            places(&run.pieces),
            marks.iter().map(|mark| format!(", {mark}")).collect::<String>()
        );
    }
    for job in &snapshot.pending {
        let critical = job.critical.as_ref().is_some_and(|window| window.holds_at(snapshot.at));
        let _ = writeln!(
            out,
            "waits {} in {}: priority {}, {} to {} workers, {} cards each, same {:?}, models {:?}{}{}",
            job.name,
            job.queue,
            job.priority,
            job.min_workers,
            job.workers,
            cards(job.shape.cards.parts()),
            job.shape.same,
            job.shape.models.iter().map(|model| model.as_str()).collect::<Vec<_>>(),
            if job.preemptible { "" } else { ", pinned" },
            if critical { ", critical" } else { "" }
        );
    }
    for kept in &snapshot.reservations {
        let _ = writeln!(out, "kept for {}: {} workers, {}", kept.job, kept.workers, places(&kept.pieces));
    }
    out
}

fn places(pieces: &[Piece]) -> String {
    pieces
        .iter()
        .map(|piece| {
            let host = piece.host.as_ref().map_or("?", |host| host.as_str());
            format!("{} on {host} {:?}", piece.workers, piece.cards)
        })
        .collect::<Vec<_>>()
        .join(" and ")
}
