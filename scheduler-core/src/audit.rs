//! What is wrong with a plan, found without knowing how it was made.
//!
//! Start at [`audit`]. It shares no code with [`decide`](crate::decide()): it adds up from the snapshot by name, keeps no running totals and searches nothing. It goes through the
//! plan step by step and asks of each what must hold of any plan, whoever made it: no card twice, no quota or cap passed, nobody ended who mustn't be, nobody ended for nothing, nobody within
//! quota losing to a borrower, no more disturbed at once than the site allows, and figures that are what the snapshot says.
//!
//! Does not: say whether another plan would have been better.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::{HostName, JobName, QueueName};
use crate::plan::{Action, Plan, Reason, Step, Why};
use crate::policy::Policy;
use crate::snapshot::{Pending, Running, Snapshot};

mod cards;
mod quota;
mod victims;

use cards::Cards;
use quota::Books;

/// Something that is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A step names a job that the snapshot doesn't have, or has in another state.
    UnknownJob {
        /// The job.
        job: JobName,
    },
    /// A pending job has no step, or a job has two that exclude one another.
    StepsDisagree {
        /// The job.
        job: JobName,
        /// How many steps are about it.
        steps: usize,
    },
    /// More of a card is given than there is.
    CardTwice {
        /// The host.
        host: HostName,
        /// The card.
        card: u32,
    },
    /// A host is given more than it has.
    HostOverfull {
        /// The host.
        host: HostName,
    },
    /// A job is put where it can't run: unknown, failed, draining or closed host, or the wrong model.
    WrongHost {
        /// The job.
        job: JobName,
        /// The host.
        host: HostName,
    },
    /// The places of a job aren't what it asks for: number of workers, cards of a worker, or one domain for all.
    WrongSeat {
        /// The job.
        job: JobName,
    },
    /// Two tenants share a card in time.
    TenantsShareCard {
        /// The host.
        host: HostName,
        /// The card.
        card: u32,
    },
    /// The plan takes a queue above a cap, a limit or what there is.
    QuotaPassed {
        /// The queue.
        queue: QueueName,
    },
    /// A job that can't be ended is lent more than its queue's own quota.
    LentForGood {
        /// The job.
        job: JobName,
    },
    /// A job is ended, shrunk or moved that mustn't be: it can't be ended, is in a critical window, is leaving already, has not run long enough, or was ended too lately or too often.
    Protected {
        /// The job.
        job: JobName,
    },
    /// A gang is left with fewer workers than it can run with.
    BrokenGang {
        /// The job.
        job: JobName,
    },
    /// A job is ended for one whose rules don't reach it: its queue is within quota, or the priority is wrong.
    NotEntitled {
        /// The job that is ended.
        victim: JobName,
        /// The job it is ended for.
        asker: JobName,
    },
    /// A borrower takes a lender under its quota.
    LenderUnderQuota {
        /// The job that is ended.
        victim: JobName,
        /// The job it is ended for.
        asker: JobName,
    },
    /// A swap that could be made back by the same rule.
    Loop {
        /// The job that is ended.
        victim: JobName,
        /// The job it is ended for.
        asker: JobName,
    },
    /// A job is ended though the asker would fit without that.
    Needless {
        /// The job that is ended.
        victim: JobName,
        /// The job it is ended for.
        asker: JobName,
    },
    /// A job is ended, shrunk or moved for one that isn't promised the room.
    NotReserved {
        /// The job that gives way.
        victim: JobName,
    },
    /// More jobs are disturbed at once than the budget allows.
    BudgetBroken {
        /// Jobs that are ended or moved.
        disturbed: usize,
        /// How many may be.
        allowed: usize,
    },
    /// More is moved for a job than its policy allows.
    TooMuchMoved {
        /// The job.
        asker: JobName,
    },
    /// A job within its queue's quota waits, while a borrower is given what it could have.
    OwnerPassedOver {
        /// The job that waits.
        owner: JobName,
        /// The borrower.
        borrower: JobName,
    },
    /// A job with a reservation waits, while another starts where its room is.
    ReservationBroken {
        /// The job with the reservation.
        job: JobName,
        /// The job that starts.
        other: JobName,
    },
    /// The figures of a step aren't what the snapshot says.
    WrongEvidence {
        /// The job.
        job: JobName,
    },
    /// The reason isn't true.
    WrongReason {
        /// The job.
        job: JobName,
    },
}

/// What is wrong with a plan, sorted. Empty when all is well.
pub fn audit(snapshot: &Snapshot, policy: &Policy, plan: &Plan) -> Vec<Fault> {
    let case = Case::new(snapshot, policy, plan);
    let mut faults = Vec::new();
    case.steps_agree(&mut faults);
    Cards::check(&case, &mut faults);
    quota::check(&case, &mut faults);
    victims::check(&case, &mut faults);
    case.budget(&mut faults);
    case.passed_over(&mut faults);
    case.grounds(&mut faults);
    faults.sort();
    faults.dedup();
    faults
}

/// Snapshot, policy and plan, with jobs by name.
struct Case<'a> {
    snapshot: &'a Snapshot,
    policy: &'a Policy,
    plan: &'a Plan,
    running: BTreeMap<&'a JobName, &'a Running>,
    pending: BTreeMap<&'a JobName, &'a Pending>,
    books: Books<'a>,
}

impl<'a> Case<'a> {
    fn new(snapshot: &'a Snapshot, policy: &'a Policy, plan: &'a Plan) -> Self {
        Self {
            snapshot,
            policy,
            plan,
            running: snapshot.running.iter().map(|run| (&run.name, run)).collect(),
            pending: snapshot.pending.iter().map(|job| (&job.name, job)).collect(),
            books: Books::of(snapshot, policy),
        }
    }

    /// Each pending job is told once what becomes of it, each running job at most once.
    fn steps_agree(&self, faults: &mut Vec<Fault>) {
        let mut of: BTreeMap<&JobName, Vec<&Step>> = BTreeMap::new();
        for step in &self.plan.steps {
            of.entry(&step.job).or_default().push(step);
            let right = match &step.action {
                Action::Admit(_) | Action::Reserve { .. } => self.pending.contains_key(&step.job),
                Action::Evict { .. } | Action::Shrink { .. } | Action::Move { .. } | Action::Requeue => {
                    self.running.contains_key(&step.job)
                }
                Action::Wait => self.pending.contains_key(&step.job) || self.running.contains_key(&step.job),
            };
            let queue = self
                .pending
                .get(&step.job)
                .map(|job| &job.queue)
                .or_else(|| self.running.get(&step.job).map(|run| &run.queue));
            if !right || queue != Some(&step.queue) {
                faults.push(Fault::UnknownJob { job: step.job.clone() });
            }
        }
        for job in self.pending.keys() {
            let steps = of.get(job).map_or(0, Vec::len);
            if steps != 1 {
                faults.push(Fault::StepsDisagree { job: (*job).clone(), steps });
            }
        }
        for job in self.running.keys() {
            // A job may be mended first and give way later; more than that is a contradiction.
            let steps = of.get(job).map_or(0, |steps| {
                steps.iter().filter(|step| !matches!(step.action, Action::Move { for_job: None, .. })).count()
            });
            if steps > 1 {
                faults.push(Fault::StepsDisagree { job: (*job).clone(), steps });
            }
        }
    }

    fn budget(&self, faults: &mut Vec<Fault>) {
        let Some(per_mille) = self.policy.disruption_per_mille else { return };
        let now = self.snapshot.at;
        let ordinary: Vec<&&Running> = self
            .running
            .values()
            .filter(|run| !run.critical.as_ref().is_some_and(|window| window.holds_at(now)))
            .collect();
        let part = ordinary.len() * per_mille as usize;
        let rounded = if ordinary.iter().any(|run| run.restartable) { part.div_ceil(1_000) } else { part / 1_000 };
        let allowed = rounded.saturating_sub(ordinary.iter().filter(|run| run.leaving).count());
        let disturbed: BTreeSet<&JobName> = self
            .plan
            .steps
            .iter()
            .filter(|step| {
                matches!(step.action, Action::Evict { for_job: Some(_) } | Action::Move { for_job: Some(_), .. })
            })
            .map(|step| &step.job)
            .collect();
        if disturbed.len() > allowed {
            faults.push(Fault::BudgetBroken { disturbed: disturbed.len(), allowed });
        }
    }

    /// Whoever is told of a quota has that quota.
    fn grounds(&self, faults: &mut Vec<Fault>) {
        for step in &self.plan.steps {
            let (Action::Admit(seat), Some(job)) = (&step.action, self.pending.get(&step.job)) else { continue };
            let spoken: BTreeSet<&QueueName> = quota::amounts(&job.shape, seat.model.as_ref(), seat.workers)
                .iter()
                .filter_map(|(resource, _)| {
                    let path = self.books.path(&job.queue);
                    path.into_iter().find(|queue| queue.quota.contains_key(resource)).map(|queue| &queue.name)
                })
                .collect();
            let true_of_it = match &step.reason {
                Reason::WithinQuota => spoken.contains(&job.queue),
                Reason::WithinQuotaAbove { queue } => spoken.contains(queue) && !spoken.contains(&job.queue),
                Reason::NoQuota => spoken.is_empty(),
                Reason::Borrows => !spoken.is_empty(),
                _ => true,
            };
            if !true_of_it {
                faults.push(Fault::WrongReason { job: job.name.clone() });
            }
        }
    }

    /// Owners before borrowers, promises before newcomers.
    fn passed_over(&self, faults: &mut Vec<Fault>) {
        let promised: BTreeSet<&JobName> = self
            .snapshot
            .reservations
            .iter()
            .filter(|kept| self.snapshot.at < kept.until)
            .map(|kept| &kept.job)
            .collect();
        let waits: Vec<(&Step, &Pending)> = self
            .plan
            .steps
            .iter()
            .filter(|step| {
                matches!(
                    &step.reason,
                    Reason::Waits(
                        Why::QuotaUsed { .. }
                            | Why::NoRoom { .. }
                            | Why::OverFairShare
                            | Why::BudgetSpent
                            | Why::BudgetTooSmall
                            | Why::GivesBackInSteps
                    )
                )
            })
            .filter_map(|step| self.pending.get(&step.job).map(|job| (step, *job)))
            .collect();
        let final_use = self.books.after_plan(self);
        for step in &self.plan.steps {
            let Action::Admit(seat) = &step.action else { continue };
            let Some(other) = self.pending.get(&step.job) else { continue };
            let borrows = self.books.above_own_quota(&final_use, other, seat);
            for (_, job) in &waits {
                if promised.contains(&job.name) && !promised.contains(&step.job) {
                    let hosts = |pieces: &[crate::snapshot::Piece]| -> BTreeSet<HostName> {
                        pieces.iter().filter_map(|piece| piece.host.clone()).collect()
                    };
                    let kept = self.snapshot.reservations.iter().find(|kept| kept.job == job.name);
                    if kept.is_some_and(|kept| !hosts(&kept.pieces).is_disjoint(&hosts(&seat.pieces))) {
                        faults.push(Fault::ReservationBroken { job: job.name.clone(), other: step.job.clone() });
                    }
                }
                // Behind another of its own queue it isn't its turn: that one may be a borrower.
                let first = || {
                    self.pending.values().all(|mate| {
                        let before = (std::cmp::Reverse(mate.priority), mate.submitted)
                            < (std::cmp::Reverse(job.priority), job.submitted);
                        mate.queue != job.queue || mate.name == job.name || !before && mate.critical.is_none()
                    })
                };
                let whole = job.shape.cards.parts() % cardhour_domain::CardShare::PARTS_PER_CARD == 0;
                // Room that is kept for a gang is given to what ends in time.
                let as_short = other.longest_ms.is_none()
                    || job.longest_ms.is_some_and(|longest| other.longest_ms.is_some_and(|short| longest <= short));
                // Of several models a job may have taken another than the one by which it stood in line.
                let one_model = job.shape.models.len() == 1 || job.shape.cards.is_zero();
                let same_shape = one_model
                    && other.critical.is_none()
                    && as_short
                    && (whole || self.books.tenant(&job.queue) == self.books.tenant(&other.queue))
                    && job.shape == other.shape
                    && job.min_workers.max(1) <= seat.workers
                    && job.preemptible
                    && other.queue != job.queue
                    && !promised.contains(&step.job);
                if same_shape && borrows && first() && self.books.owner_in_place_of(&final_use, job, other, seat) {
                    faults.push(Fault::OwnerPassedOver { owner: job.name.clone(), borrower: step.job.clone() });
                }
            }
        }
    }
}
