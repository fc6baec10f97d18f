//! The auditor sees what is wrong: plans that `decide` made, each spoilt in one way.

use cardhour_domain::{CardShare, CardTime};
use cardhour_scheduler_core::plan::{Action, Evidence, Plan, Reason, Seat, Step};
use cardhour_scheduler_core::policy::Fairness;
use cardhour_scheduler_core::snapshot::{HostState, Level, Piece};
use cardhour_scheduler_core::{Fault, Policy, Snapshot, audit, decide};

use crate::draw::pool;

/// Spoils the first plans of drawn pools that `spoil` can be tried on, and looks for the fault. `spoil` gives back what must be found; `None`: not on this pool.
#[track_caller]
fn caught(spoil: impl Fn(&mut Snapshot, &Policy, &mut Plan) -> Option<Fault>) {
    let mut tried = 0;
    for seed in 0..20_000 {
        let (mut snapshot, policy) = pool(seed);
        let mut plan = decide(&snapshot, &policy);
        let Some(fault) = spoil(&mut snapshot, &policy, &mut plan) else { continue };
        let found = audit(&snapshot, &policy, &plan);
        assert!(found.contains(&fault), "SIM_SEED={seed}: {fault:?} isn't among {found:?}");
        tried += 1;
        if tried == 20 {
            return;
        }
    }
    panic!("only {tried} plans could be spoilt");
}

fn evict(snapshot: &Snapshot, at: usize, asker: &Step) -> Step {
    let run = &snapshot.running[at];
    let workers: u32 = run.pieces.iter().map(|piece| piece.workers).sum();
    let worked = snapshot.at.ms_since(run.checkpoint.unwrap_or(run.admitted).max(run.admitted)) + run.restart_ms;
    let parts = run.shape.cards.parts() * i64::from(workers);
    Step {
        job: run.name.clone(),
        queue: run.queue.clone(),
        action: Action::Evict { for_job: Some(asker.job.clone()) },
        reason: Reason::ReclaimInPool,
        evidence: Evidence {
            cards: CardShare::from_parts(parts),
            lost: CardTime::from_part_ms(i128::from(parts) * i128::from(worked)),
            considered: Vec::new(),
        },
    }
}

/// Adds a victim to the plan, in the group of the first job that is promised room.
fn add_victim(snapshot: &Snapshot, plan: &mut Plan, at: usize) -> Option<Step> {
    let name = snapshot.running[at].name.clone();
    if plan.steps.iter().any(|step| step.job == name) {
        return None;
    }
    let place = plan.steps.iter().position(|step| matches!(step.action, Action::Reserve { .. }))?;
    let victim = evict(snapshot, at, &plan.steps[place]);
    if let Action::Reserve { waits_for, .. } = &mut plan.steps[place].action {
        waits_for.push(name);
    }
    let asker = plan.steps[place].clone();
    plan.steps.insert(place, victim);
    Some(asker)
}

fn seat_of(plan: &mut Plan, with: impl Fn(&Seat) -> bool) -> Option<(usize, &mut Seat)> {
    plan.steps.iter_mut().enumerate().find_map(|(at, step)| match &mut step.action {
        Action::Admit(seat) | Action::Reserve { seat, .. } if with(seat) => Some((at, seat)),
        _ => None,
    })
}

#[test]
fn a_job_that_cannot_be_ended_is_ended() {
    caught(|snapshot, _, plan| {
        let at = snapshot.running.iter().position(|run| !run.preemptible && !run.leaving)?;
        add_victim(snapshot, plan, at)?;
        Some(Fault::Protected { job: snapshot.running[at].name.clone() })
    });
}

#[test]
fn a_job_in_its_critical_window_is_ended() {
    caught(|snapshot, _, plan| {
        let holds = |run: &cardhour_scheduler_core::snapshot::Running| {
            run.critical.as_ref().is_some_and(|w| w.holds_at(snapshot.at))
        };
        let at = snapshot.running.iter().position(holds)?;
        add_victim(snapshot, plan, at)?;
        Some(Fault::Protected { job: snapshot.running[at].name.clone() })
    });
}

#[test]
fn a_job_that_has_just_started_is_ended() {
    caught(|snapshot, policy, plan| {
        if policy.min_run.default.preempt_ms.min(policy.min_run.default.reclaim_ms) < Some(1) {
            return None;
        }
        let at = snapshot.running.iter().position(|run| run.preemptible && !run.leaving)?;
        snapshot.running[at].admitted = snapshot.at;
        snapshot.running[at].checkpoint = None;
        add_victim(snapshot, plan, at)?;
        Some(Fault::Protected { job: snapshot.running[at].name.clone() })
    });
}

#[test]
fn a_queue_within_its_quota_loses_a_job_to_another() {
    caught(|snapshot, policy, plan| {
        let place = plan.steps.iter().position(|step| matches!(step.action, Action::Reserve { .. }))?;
        let asker = plan.steps[place].clone();
        let critical = snapshot.pending.iter().any(|job| job.name == asker.job && job.critical.is_some());
        let at = snapshot.running.iter().position(|run| {
            let queue = snapshot.queues.iter().find(|queue| queue.name == run.queue);
            run.queue != asker.queue
                && !critical
                && policy.fairness.counts_hosts()
                && queue.is_some_and(|queue| {
                    !queue.quota.is_empty()
                        && queue.quota.values().all(|quota| quota.nominal >= 100 * CardShare::PARTS_PER_CARD)
                })
        });
        let at = match at {
            Some(at) => at,
            None => {
                // Give a victim's queue so much quota that it is surely within it.
                let at =
                    snapshot.running.iter().position(|run| run.queue != asker.queue && !critical && !run.leaving)?;
                let name = snapshot.running[at].queue.clone();
                let queue = snapshot.queues.iter_mut().find(|queue| queue.name == name)?;
                if queue.quota.is_empty() || !policy.fairness.counts_hosts() {
                    return None;
                }
                for quota in queue.quota.values_mut() {
                    quota.nominal = 1_000 * CardShare::PARTS_PER_CARD;
                }
                at
            }
        };
        let model = snapshot.running[at].shape.models.clone();
        let asked = snapshot.pending.iter().find(|job| job.name == asker.job)?.shape.models.clone();
        let declared = snapshot.queues.iter().find(|queue| queue.name == snapshot.running[at].queue)?.quota.len();
        if model != asked || declared < 1 || snapshot.hosts.iter().any(|host| host.model != snapshot.hosts[0].model) {
            return None;
        }
        add_victim(snapshot, plan, at)?;
        Some(Fault::NotEntitled { victim: snapshot.running[at].name.clone(), asker: asker.job })
    });
}

#[test]
fn more_jobs_are_ended_than_the_budget_allows() {
    caught(|snapshot, policy, plan| {
        let per_mille = policy.disruption_per_mille? as usize;
        let now = snapshot.at;
        let ordinary: Vec<usize> = (0..snapshot.running.len())
            .filter(|at| !snapshot.running[*at].critical.as_ref().is_some_and(|window| window.holds_at(now)))
            .collect();
        let leaving = ordinary.iter().filter(|at| snapshot.running[**at].leaving).count();
        let restartable = ordinary.iter().any(|at| snapshot.running[*at].restartable);
        let part = ordinary.len() * per_mille;
        let allowed = (if restartable { part.div_ceil(1_000) } else { part / 1_000 }).saturating_sub(leaving);
        for at in ordinary {
            let _ = add_victim(snapshot, plan, at);
        }
        let disturbed = plan
            .steps
            .iter()
            .filter(|step| {
                matches!(step.action, Action::Evict { for_job: Some(_) } | Action::Move { for_job: Some(_), .. })
            })
            .count();
        (disturbed > allowed).then_some(Fault::BudgetBroken { disturbed, allowed })
    });
}

#[test]
fn a_card_is_given_twice() {
    caught(|snapshot, _, plan| {
        let (_, seat) = seat_of(plan, |seat| seat.pieces.iter().any(|piece| !piece.cards.is_empty()))?;
        let piece = seat.pieces.iter_mut().find(|piece| !piece.cards.is_empty())?;
        let run = snapshot.running.iter().find(|run| {
            !run.leaving
                && run.shape.cards >= CardShare::CARD
                && run.pieces.iter().any(|other| other.host == piece.host)
        })?;
        let taken = run.pieces.iter().find(|other| other.host == piece.host)?.cards.first().copied()?;
        let host = piece.host.clone()?;
        piece.cards[0] = taken;
        let stays = !plan.steps.iter().any(|step| step.job == run.name);
        stays.then_some(Fault::CardTwice { host, card: taken })
    });
}

#[test]
fn a_job_is_put_on_a_failed_host() {
    caught(|snapshot, _, plan| {
        let (at, seat) = seat_of(plan, |seat| !seat.pieces.is_empty())?;
        let name = seat.pieces[0].host.clone()?;
        let host = snapshot.hosts.iter_mut().find(|host| host.name == name)?;
        host.state = HostState::Failed;
        Some(Fault::WrongHost { job: plan.steps[at].job.clone(), host: name })
    });
}

#[test]
fn a_gang_is_started_with_fewer_than_it_can_run_with() {
    caught(|snapshot, _, plan| {
        let (at, _) = seat_of(plan, |seat| seat.pieces.iter().any(|piece| piece.workers == 1) && seat.workers > 1)?;
        let job = plan.steps[at].job.clone();
        let least = snapshot.pending.iter().find(|pending| pending.name == job)?.min_workers;
        match &mut plan.steps[at].action {
            Action::Admit(seat) | Action::Reserve { seat, .. } if seat.workers == least => {
                let piece = seat.pieces.iter().position(|piece| piece.workers == 1)?;
                seat.pieces.remove(piece);
                seat.workers -= 1;
                Some(Fault::WrongSeat { job })
            }
            _ => None,
        }
    });
}

#[test]
fn a_gang_bound_to_a_rack_is_scattered() {
    caught(|snapshot, _, plan| {
        let bound = |snapshot: &Snapshot, step: &Step| {
            snapshot.pending.iter().any(|job| job.name == step.job && job.shape.same == Some(Level::Rack))
        };
        let at = plan.steps.iter().position(|step| bound(snapshot, step) && matches!(step.action, Action::Admit(_)))?;
        let job = plan.steps[at].job.clone();
        let Action::Admit(seat) = &mut plan.steps[at].action else { return None };
        if seat.workers < 2 || seat.pieces[0].workers < 2 {
            return None;
        }
        let each = seat.pieces[0].cards.len() / seat.pieces[0].workers as usize;
        let rack = |name: &Piece| {
            snapshot
                .hosts
                .iter()
                .find(|host| Some(&host.name) == name.host.as_ref())
                .and_then(|host| host.domains.get(&Level::Rack))
                .cloned()
        };
        let here = rack(&seat.pieces[0]);
        let far = snapshot.hosts.iter().find(|host| host.domains.get(&Level::Rack).cloned() != here)?;
        let cards: Vec<u32> = seat.pieces[0].cards.split_off(each);
        let workers = seat.pieces[0].workers - 1;
        seat.pieces[0].workers = 1;
        seat.pieces.push(Piece { host: Some(far.name.clone()), workers, cards });
        Some(Fault::WrongSeat { job })
    });
}

#[test]
fn a_job_is_started_above_a_cap() {
    caught(|snapshot, _, plan| {
        let at = plan.steps.iter().position(|step| matches!(step.action, Action::Admit(_)))?;
        let name = plan.steps[at].queue.clone();
        let queue = snapshot.queues.iter_mut().find(|queue| queue.name == name)?;
        let Action::Admit(seat) = &plan.steps[at].action else { return None };
        let model = seat.model.clone()?;
        let quota = queue.quota.get_mut(&cardhour_scheduler_core::snapshot::Resource::Cards(model))?;
        quota.max = Some(0);
        Some(Fault::QuotaPassed { queue: name })
    });
}

#[test]
fn a_victim_is_ended_for_one_that_is_promised_nothing() {
    caught(|_, _, plan| {
        let at = plan.steps.iter().position(|step| matches!(step.action, Action::Evict { for_job: Some(_) }))?;
        let victim = plan.steps[at].job.clone();
        let Action::Evict { for_job: Some(asker) } = plan.steps[at].action.clone() else { return None };
        let reserve = plan.steps.iter_mut().find(|step| step.job == asker)?;
        reserve.action = Action::Wait;
        reserve.evidence = Evidence::default();
        Some(Fault::NotReserved { victim })
    });
}

#[test]
fn a_job_is_ended_for_nothing() {
    caught(|snapshot, policy, plan| {
        if policy.fairness != Fairness::DeservedShare {
            return None;
        }
        let asker = plan.steps.iter().find(|step| matches!(step.action, Action::Reserve { .. }))?.clone();
        let Action::Reserve { seat, .. } = &asker.action else { return None };
        // Lower priority in the asker's own queue, on hosts that it isn't given.
        let pending = snapshot.pending.iter().find(|job| job.name == asker.job)?;
        let at = snapshot.running.iter().position(|run| {
            run.queue == asker.queue
                && run.priority < pending.priority
                && run.shape.models == pending.shape.models
                && !run.leaving
                && run.pieces.iter().all(|piece| seat.pieces.iter().all(|other| other.host != piece.host))
        })?;
        let victims: Vec<Step> = plan
            .steps
            .iter()
            .filter(|step| matches!(step.action, Action::Evict { .. } | Action::Shrink { .. }))
            .cloned()
            .collect();
        let only_leaving = victims.is_empty();
        add_victim(snapshot, plan, at)?;
        only_leaving.then(|| Fault::Needless { victim: snapshot.running[at].name.clone(), asker: asker.job.clone() })
    });
}

#[test]
fn the_loss_is_told_smaller_than_it_is() {
    caught(|_, _, plan| {
        let step = plan.steps.iter_mut().find(|step| {
            matches!(step.action, Action::Evict { for_job: Some(_) }) && step.evidence.lost > CardTime::ZERO
        })?;
        step.evidence.lost = CardTime::ZERO;
        Some(Fault::WrongEvidence { job: step.job.clone() })
    });
}

#[test]
fn a_pending_job_is_forgotten() {
    caught(|snapshot, _, plan| {
        let waits = |step: &Step| {
            matches!(step.action, Action::Wait) && snapshot.pending.iter().any(|job| job.name == step.job)
        };
        let at = plan.steps.iter().position(waits)?;
        let step = plan.steps.remove(at);
        Some(Fault::StepsDisagree { job: step.job, steps: 0 })
    });
}
