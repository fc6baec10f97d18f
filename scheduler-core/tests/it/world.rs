//! The pool after a plan was carried out: those told to go are gone and queue again, those promised room run.

use std::collections::BTreeMap;

use cardhour_scheduler_core::names::JobName;
use cardhour_scheduler_core::plan::{Action, Seat};
use cardhour_scheduler_core::snapshot::{Missing, Pending, Piece, Running};
use cardhour_scheduler_core::{Plan, Snapshot};

/// Who has gone by then.
pub enum Gone<'a> {
    /// All who were told to, and all reserved jobs start.
    All,
    /// Only those named; the rest is still leaving, and reservations stand.
    Only(&'a [JobName]),
}

/// The snapshot `later_ms` after `plan` was carried out.
pub fn carry_out(before: &Snapshot, plan: &Plan, later_ms: i64, gone: &Gone<'_>) -> Snapshot {
    let mut after = before.clone();
    after.at = before.at.checked_add_ms(later_ms).expect("a time");
    let has_gone = |job: &JobName| match gone {
        Gone::All => true,
        Gone::Only(names) => names.contains(job),
    };
    after.running.retain(|run| !(run.leaving && has_gone(&run.name)));
    for step in &plan.steps {
        match &step.action {
            Action::Evict { for_job } => {
                let Some(at) = after.running.iter().position(|run| run.name == step.job) else { continue };
                if has_gone(&step.job) {
                    let run = after.running.remove(at);
                    let again = queue_again(&run, &after, for_job.is_some());
                    after.pending.push(again);
                } else {
                    after.running[at].leaving = true;
                }
            }
            Action::Requeue => {
                if let Some(at) = after.running.iter().position(|run| run.name == step.job) {
                    let run = after.running.remove(at);
                    let again = queue_again(&run, &after, false);
                    after.pending.push(again);
                }
            }
            Action::Shrink { from, .. } => {
                if let Some(run) = after.running.iter_mut().find(|run| run.name == step.job) {
                    take_pieces(&mut run.pieces, from);
                }
            }
            Action::Move { from, to, .. } => {
                let at = after.at;
                if let Some(run) = after.running.iter_mut().find(|run| run.name == step.job) {
                    take_pieces(&mut run.pieces, from);
                    run.pieces.extend(to.iter().cloned());
                    run.missing = None::<Missing>;
                    run.last_preempted = Some(at);
                }
            }
            Action::Admit(seat) => start(&mut after, &step.job, seat),
            Action::Reserve { seat, waits_for, until } => {
                let still = waits_for.iter().any(|job| after.running.iter().any(|run| run.name == *job && run.leaving));
                after.reservations.retain(|kept| kept.job != step.job);
                if still {
                    let model = seat.model.clone().unwrap_or_else(|| "gpu".into());
                    after.reservations.push(cardhour_scheduler_core::snapshot::Reservation {
                        job: step.job.clone(),
                        pieces: seat.pieces.clone(),
                        workers: seat.workers,
                        model,
                        until: *until,
                    });
                } else {
                    start(&mut after, &step.job, seat);
                }
            }
            Action::Wait => {}
        }
    }
    after
}

fn start(after: &mut Snapshot, job: &JobName, seat: &Seat) {
    let at = after.at;
    let Some(place) = after.pending.iter().position(|pending| pending.name == *job) else { return };
    after.reservations.retain(|kept| kept.job != *job);
    let pending = after.pending.remove(place);
    after.running.push(Running {
        name: pending.name,
        queue: pending.queue,
        priority: pending.priority,
        shape: pending.shape,
        pieces: seat.pieces.clone(),
        min_workers: pending.min_workers,
        missing: None,
        submitted: pending.submitted,
        admitted: at,
        checkpoint: None,
        ends_by: None,
        restart_ms: 0,
        preemptible: pending.preemptible,
        restartable: true,
        critical: pending.critical,
        leaving: false,
        preempted_today: 0,
        last_preempted: None,
    });
}

fn queue_again(run: &Running, after: &Snapshot, ended_for_another: bool) -> Pending {
    let workers =
        run.pieces.iter().map(|piece| piece.workers).sum::<u32>() + run.missing.map_or(0, |missing| missing.workers);
    Pending {
        name: run.name.clone(),
        queue: run.queue.clone(),
        priority: run.priority,
        shape: run.shape.clone(),
        workers,
        min_workers: run.min_workers,
        submitted: run.submitted,
        preemptible: run.preemptible,
        critical: run.critical.clone(),
        longest_ms: None,
        last_preempted: ended_for_another.then_some(after.at),
    }
}

/// Takes the workers of `from` out of `pieces`, by host and card.
fn take_pieces(pieces: &mut Vec<Piece>, from: &[Piece]) {
    let mut by_host: BTreeMap<_, u32> = BTreeMap::new();
    for piece in from {
        *by_host.entry(piece.host.clone()).or_default() += piece.workers;
    }
    for piece in pieces.iter_mut() {
        let Some(left) = by_host.get_mut(&piece.host) else { continue };
        let taken = piece.workers.min(*left);
        *left -= taken;
        let gone: Vec<u32> = from
            .iter()
            .filter(|other| other.host == piece.host)
            .flat_map(|other| other.cards.iter().copied())
            .collect();
        piece.workers -= taken;
        piece.cards.retain(|card| !gone.contains(card));
    }
    pieces.retain(|piece| piece.workers > 0);
}
