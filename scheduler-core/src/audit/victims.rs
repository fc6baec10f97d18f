//! Who gives way: whether they may, whether they must, and for whom.

use std::collections::{BTreeMap, BTreeSet};

use cardhour_domain::{CardShare, CardTime};

use crate::names::{JobName, QueueName};
use crate::plan::{Action, Reason, Seat, Step};
use crate::policy::{Fairness, MinRun, MinRunFrom, Reclaim, WithinQueue};
use crate::snapshot::{Missing, Pending, Piece, Queue, Resource, Running};

use super::quota::{Use, add, amounts};
use super::{Case, Fault};

/// Those who give way for one asker.
struct Group<'a> {
    asker: &'a Pending,
    seat: Option<&'a Seat>,
    waits_for: BTreeSet<&'a JobName>,
    steps: Vec<(&'a Step, &'a Running)>,
}

pub(super) fn check(case: &Case<'_>, faults: &mut Vec<Fault>) {
    let mut standing = case.books.running(true);
    let mut order: Vec<&JobName> = Vec::new();
    let mut groups: BTreeMap<&JobName, Vec<(&Step, &Running)>> = BTreeMap::new();
    for step in &case.plan.steps {
        evidence(case, step, faults);
        match &step.action {
            Action::Evict { for_job: Some(asker) }
            | Action::Shrink { for_job: asker, .. }
            | Action::Move { for_job: Some(asker), .. } => {
                let Some(run) = case.running.get(&step.job) else { continue };
                groups.entry(asker).or_default().push((step, run));
                if !order.contains(&asker) {
                    order.push(asker);
                }
                if !case.pending.contains_key(asker) {
                    faults.push(Fault::NotReserved { victim: step.job.clone() });
                }
            }
            Action::Evict { for_job: None } | Action::Requeue => broken(case, step, faults),
            Action::Admit(_) | Action::Reserve { .. } | Action::Move { .. } | Action::Wait => {}
        }
    }
    for step in &case.plan.steps {
        if let (Action::Reserve { seat, waits_for, .. }, Some(asker)) = (&step.action, case.pending.get(&step.job)) {
            let steps = groups.remove(&step.job).unwrap_or_default();
            let group = Group { asker, seat: Some(seat), waits_for: waits_for.iter().collect(), steps };
            check_group(case, &group, &standing, faults);
            for (step, _) in &group.steps {
                case.books.apply(&mut standing, case, step, true);
            }
        }
        if !matches!(&step.action, Action::Evict { for_job: Some(_) } | Action::Shrink { .. }) {
            case.books.apply(&mut standing, case, step, true);
        }
    }
    for (asker, steps) in groups {
        if case.pending.contains_key(asker) {
            for (_, run) in &steps {
                faults.push(Fault::NotReserved { victim: run.name.clone() });
            }
        }
    }
}

fn check_group(case: &Case<'_>, group: &Group<'_>, before: &Use, faults: &mut Vec<Fault>) {
    let mut moved = 0;
    let mut moves = 0;
    for (step, run) in &group.steps {
        if !group.waits_for.contains(&run.name) {
            faults.push(Fault::NotReserved { victim: run.name.clone() });
        }
        match &step.action {
            Action::Evict { .. } => {
                protected(case, run, &group.asker.queue, true, faults);
                entitled(case, group, run, step, before, faults);
                needless(case, group, run, before, faults);
            }
            Action::Shrink { workers, from, .. } => {
                protected(case, run, &group.asker.queue, false, faults);
                entitled(case, group, run, step, before, faults);
                let named: u32 = from.iter().map(|piece| piece.workers).sum();
                if case.books.live(run).saturating_sub(*workers) < run.min_workers.max(1) || named != *workers {
                    faults.push(Fault::BrokenGang { job: run.name.clone() });
                }
            }
            Action::Move { from, to, .. } => {
                protected(case, run, &group.asker.queue, false, faults);
                if !moves_aside(case, group, run, before) {
                    faults.push(Fault::NotEntitled { victim: run.name.clone(), asker: group.asker.name.clone() });
                }
                let count = |pieces: &[Piece]| pieces.iter().map(|piece| piece.workers).sum::<u32>();
                moves += 1;
                moved += i128::from(run.shape.cards.parts()) * i128::from(count(to));
                if count(from) != count(to) || count(to) != case.books.live(run) || !run.restartable {
                    faults.push(Fault::BrokenGang { job: run.name.clone() });
                }
            }
            Action::Admit(_) | Action::Reserve { .. } | Action::Requeue | Action::Wait => {}
        }
    }
    let workers = group.seat.map_or(0, |seat| seat.workers);
    let most =
        i128::from(group.asker.shape.cards.parts()) * i128::from(workers) * i128::from(case.policy.moved_per_mille)
            / 1_000;
    if moved > most || moves > case.policy.moves {
        faults.push(Fault::TooMuchMoved { asker: group.asker.name.clone() });
    }
}

/// Whether a job may be disturbed at all. `wholly`: it is ended, so it must have run its least.
fn protected(case: &Case<'_>, run: &Running, asker: &QueueName, wholly: bool, faults: &mut Vec<Fault>) {
    let now = case.snapshot.at;
    let since_last = run.last_preempted.map(|ended| now.ms_since(ended));
    let too_young = wholly
        && now.ms_since(run.admitted) < least_run_ms(case, &run.queue, asker) * (1 << run.preempted_today.min(3));
    if !run.preemptible
        || run.leaving
        || too_young
        || run.critical.as_ref().is_some_and(|window| window.holds_at(now))
        || wholly && case.policy.preemptions_a_day.is_some_and(|most| run.preempted_today >= most)
        || since_last.is_some_and(|since| since < case.policy.cool_down_ms)
    {
        faults.push(Fault::Protected { job: run.name.clone() });
    }
}

fn least_run_ms(case: &Case<'_>, victim: &QueueName, asker: &QueueName) -> i64 {
    let table = &case.policy.min_run;
    let (from, of): (&QueueName, fn(&MinRun) -> Option<i64>) = if victim == asker {
        (victim, |least| least.preempt_ms)
    } else {
        match case.policy.min_run_from {
            MinRunFrom::Queue => (victim, |least| least.reclaim_ms),
            MinRunFrom::Branch => {
                (case.books.branches(asker, victim).map_or(victim, |(_, theirs)| &theirs.name), |least| {
                    least.reclaim_ms
                })
            }
        }
    };
    let told = case.books.path(from).into_iter().find_map(|queue| table.queues.get(&queue.name).and_then(of));
    told.or_else(|| of(&table.default)).unwrap_or(0)
}

/// Whether the asker's rules reach a victim.
fn entitled(case: &Case<'_>, group: &Group<'_>, run: &Running, step: &Step, before: &Use, faults: &mut Vec<Fault>) {
    let asker = group.asker;
    let rules = case.books.path(&asker.queue).iter().find_map(|queue| queue.rules).unwrap_or(case.policy.rules);
    let critical = asker.critical.as_ref().is_some_and(|window| window.holds_at(case.snapshot.at));
    let not_entitled = Fault::NotEntitled { victim: run.name.clone(), asker: asker.name.clone() };
    if run.queue == asker.queue {
        let allowed = match rules.within_queue {
            WithinQueue::Never => false,
            WithinQueue::LowerPriority => run.priority < asker.priority,
            WithinQueue::LowerOrNewerEqual => {
                run.priority < asker.priority || run.priority == asker.priority && asker.submitted < run.submitted
            }
        };
        if !allowed && !critical {
            faults.push(not_entitled);
        }
        if step.reason != Reason::InQueue && !critical {
            faults.push(Fault::WrongReason { job: run.name.clone() });
        }
        return;
    }
    if step.reason == Reason::InQueue || step.reason == Reason::CriticalWindow && !critical {
        faults.push(Fault::WrongReason { job: run.name.clone() });
    }
    if critical && case.policy.fairness.counts_hosts() {
        return;
    }
    let Some((mine, theirs)) = case.books.branches(&asker.queue, &run.queue) else {
        faults.push(not_entitled);
        return;
    };
    let model = group.seat.and_then(|seat| seat.model.as_ref());
    let asked = amounts(&asker.shape, model, group.seat.map_or(asker.min_workers, |seat| seat.workers));
    let mut path: Vec<&Queue> = case.books.path(&run.queue);
    path.truncate(path.iter().position(|queue| queue.name == theirs.name).map_or(path.len(), |at| at + 1));
    let over = |queue: &&Queue, resource: &Resource| over_before_last(case, group, before, queue, resource);
    // The resource for which it is taken: all queues from the victim's up to the branch are above quota in it.
    let taken_from_excess = asked.iter().any(|(resource, _)| {
        over(&theirs, resource) != Some(false) && path.iter().all(|queue| over(queue, resource) != Some(false))
    });
    if !taken_from_excess {
        faults.push(not_entitled.clone());
    }
    match case.policy.fairness {
        Fairness::DeservedShare | Fairness::DeservedCap | Fairness::Guaranteed => {
            let mut then = before.clone();
            for (step, _) in &group.steps {
                case.books.apply(&mut then, case, step, true);
            }
            let owner = asked.iter().all(|(resource, amount)| {
                case.books
                    .promised(mine, resource)
                    .is_some_and(|most| case.books.total(&then, &mine.name, resource) + amount <= most)
            });
            let borrows = case.policy.fairness == Fairness::DeservedShare;
            let under = asked.iter().any(|(resource, _)| {
                path.iter().any(|queue| {
                    case.books
                        .promised(queue, resource)
                        .is_some_and(|most| case.books.total(&then, &queue.name, resource) < most)
                })
            });
            if !owner && (!borrows || under) {
                faults.push(Fault::LenderUnderQuota { victim: run.name.clone(), asker: asker.name.clone() });
            }
        }
        Fairness::None | Fairness::BorrowShare(_) | Fairness::PastUsage => {
            let priority = match rules.reclaim {
                Reclaim::Never => false,
                Reclaim::LowerPriority => run.priority < asker.priority,
                Reclaim::Any => true,
            };
            if !priority {
                faults.push(not_entitled);
            }
            if let Fairness::BorrowShare(_) = case.policy.fairness {
                swap_back(case, group, run, before, (mine, theirs), &asked, faults);
            }
        }
    }
}

/// Whether a queue was above its quota when the last of its victims was taken, the smallest ones first. `None`: it has no quota.
fn over_before_last(
    case: &Case<'_>,
    group: &Group<'_>,
    before: &Use,
    queue: &Queue,
    resource: &Resource,
) -> Option<bool> {
    let books = &case.books;
    let most = if case.policy.fairness.counts_hosts() {
        books.promised(queue, resource)?
    } else {
        books.holds(queue, resource)
    };
    let taken: Vec<i128> = group
        .steps
        .iter()
        .filter(|(_, run)| books.path(&run.queue).iter().any(|above| above.name == queue.name))
        .map(|(step, run)| {
            let workers = match &step.action {
                Action::Shrink { workers, .. } => *workers,
                _ => books.live(run),
            };
            books.of_running(run, workers).iter().filter(|(of, _)| of == resource).map(|(_, amount)| amount).sum()
        })
        .collect();
    let largest = taken.iter().max().copied().unwrap_or(0);
    let used = if case.policy.fairness.counts_hosts() {
        books.total(before, &queue.name, resource)
    } else {
        books.counted(before, queue, resource)
    };
    Some(used - (taken.iter().sum::<i128>() - largest) > most)
}

/// By shares of what is borrowed: the victim's branch must not be able to take its room back by the same comparison.
fn swap_back(
    case: &Case<'_>,
    group: &Group<'_>,
    run: &Running,
    before: &Use,
    (mine, theirs): (&Queue, &Queue),
    asked: &[(Resource, i128)],
    faults: &mut Vec<Fault>,
) {
    let books = &case.books;
    let mut then = before.clone();
    for (step, _) in &group.steps {
        books.apply(&mut then, case, step, true);
    }
    add(&mut then, &group.asker.queue, asked, 1);
    // Both stand under one node, so what it can lend is the same for both and only what is borrowed over weight counts.
    let share = |all: &Use, queue: &Queue| -> Vec<(i128, i128)> {
        asked
            .iter()
            .map(|(resource, _)| {
                let borrowed = (books.counted(all, queue, resource) - books.holds(queue, resource)).max(0);
                let of_band = queue.band.map_or(1_000, |band| i128::from(band.weight_per_mille));
                (borrowed, i128::from(queue.weight_milli) * of_band / 1_000)
            })
            .collect()
    };
    let at_most = |a: &[(i128, i128)], b: &[(i128, i128)], strictly: bool| {
        a.iter().zip(b).all(|((above, weight), (other, theirs))| {
            let (left, right) = match (*weight, *theirs) {
                (0, 0) => (*above, *other),
                (0, _) => (i128::from(*above > 0) * i128::MAX / 4, *other),
                (_, 0) => (*above, i128::from(*other > 0) * i128::MAX / 4),
                (weight, theirs) => (above * theirs, other * weight),
            };
            if strictly { left < right } else { left <= right }
        })
    };
    if asked.len() > 1 {
        // Over several resources a share is their greatest part, which one comparison doesn't show.
        return;
    }
    let asker = share(&then, mine);
    if !at_most(&asker, &share(&then, theirs), false) && !at_most(&asker, &share(before, theirs), true) {
        faults.push(Fault::Loop { victim: run.name.clone(), asker: group.asker.name.clone() });
    }
}

/// A job moves for its own queue's jobs, for an owner, and where its branch is above quota.
fn moves_aside(case: &Case<'_>, group: &Group<'_>, run: &Running, before: &Use) -> bool {
    let books = &case.books;
    let Some((mine, theirs)) =
        books.branches(&group.asker.queue, &run.queue).filter(|_| run.queue != group.asker.queue)
    else {
        return true;
    };
    let asked = amounts(
        &group.asker.shape,
        group.seat.and_then(|seat| seat.model.as_ref()),
        group.seat.map_or(0, |seat| seat.workers),
    );
    let within = |(resource, amount): &(Resource, i128)| {
        books.promised(mine, resource).is_some_and(|most| books.total(before, &mine.name, resource) + amount <= most)
    };
    let above = |(resource, _): &(Resource, i128)| {
        books.promised(theirs, resource).is_none_or(|most| books.total(before, &theirs.name, resource) > most)
    };
    asked.iter().all(within) || asked.iter().any(above)
}

/// Whether the asker would have its seat with a victim still there.
fn needless(case: &Case<'_>, group: &Group<'_>, run: &Running, before: &Use, faults: &mut Vec<Fault>) {
    let Some(seat) = group.seat else { return };
    let books = &case.books;
    let mut then = before.clone();
    for (step, _) in group.steps.iter().filter(|(step, _)| step.job != run.name) {
        books.apply(&mut then, case, step, true);
    }
    let asked = amounts(&group.asker.shape, seat.model.as_ref(), seat.workers);
    let without = then.clone();
    add(&mut then, &group.asker.queue, &asked, 1);
    let fits_quota = asked.iter().all(|(resource, _)| books.adds_to_excess(&without, &then, resource).is_empty());
    // With the victim back, the asker's branch may be a borrower, and have no claim on the others it had ended.
    let ended =
        |step: &Step| matches!(step.action, Action::Evict { .. } | Action::Shrink { .. }) && step.job != run.name;
    let loses_claim = group.steps.iter().filter(|(step, _)| ended(step)).any(|(_, other)| {
        let Some((mine, _)) =
            books.branches(&group.asker.queue, &other.queue).filter(|_| other.queue != group.asker.queue)
        else {
            return false;
        };
        let is_mine = books.path(&run.queue).iter().any(|queue| queue.name == mine.name);
        // Where quota is the measure, the asker's own queue mustn't borrow either.
        let path = books.path(&group.asker.queue);
        let judged: Vec<&Queue> = if case.policy.fairness.counts_hosts() {
            vec![mine]
        } else {
            let upto = path.iter().position(|queue| queue.name == mine.name).map_or(path.len(), |at| at + 1);
            path.into_iter().take(upto).collect()
        };
        let over =
            |queue: &&Queue| asked.iter().any(|(resource, _)| books.uses_more_than_quota(case, &then, queue, resource));
        is_mine && judged.iter().any(over)
    });
    let takes_its_place = seat.pieces.iter().any(|piece| run.pieces.iter().any(|other| overlap(piece, other)));
    if fits_quota && !takes_its_place && !loses_claim {
        faults.push(Fault::Needless { victim: run.name.clone(), asker: group.asker.name.clone() });
    }
}

fn overlap(piece: &Piece, other: &Piece) -> bool {
    let unknown = piece.cards.is_empty() || other.cards.is_empty() || other.host.is_none();
    (piece.host == other.host || other.host.is_none())
        && (unknown || piece.cards.iter().any(|card| other.cards.contains(card)))
}

/// A job that is let go for nobody has to be one that can't go on.
fn broken(case: &Case<'_>, step: &Step, faults: &mut Vec<Fault>) {
    let Some(run) = case.running.get(&step.job) else { return };
    let live = case.books.live(run);
    let all: u32 = run.pieces.iter().map(|piece| piece.workers).sum();
    let lost = all > live || run.missing.is_some_and(|Missing { workers, .. }| workers > 0);
    if !lost || live > 0 && live >= run.min_workers {
        faults.push(Fault::WrongReason { job: run.name.clone() });
    }
}

/// Cards and lost card-time are what the snapshot says.
fn evidence(case: &Case<'_>, step: &Step, faults: &mut Vec<Fault>) {
    let (cards, lost) = match &step.action {
        Action::Admit(seat) | Action::Reserve { seat, .. } => {
            let Some(job) = case.pending.get(&step.job) else { return };
            (i128::from(job.shape.cards.parts()) * i128::from(seat.workers), 0)
        }
        Action::Evict { .. } => {
            let Some(run) = case.running.get(&step.job) else { return };
            let workers = case.books.live(run);
            (i128::from(run.shape.cards.parts()) * i128::from(workers), lost_part_ms(case, run, workers))
        }
        Action::Shrink { workers, .. } => {
            let Some(run) = case.running.get(&step.job) else { return };
            (i128::from(run.shape.cards.parts()) * i128::from(*workers), 0)
        }
        Action::Move { to, for_job, .. } => {
            let Some(run) = case.running.get(&step.job) else { return };
            let workers = to.iter().map(|piece| piece.workers).sum();
            let lost = if for_job.is_some() { lost_part_ms(case, run, workers) } else { 0 };
            (i128::from(run.shape.cards.parts()) * i128::from(workers), lost)
        }
        Action::Requeue | Action::Wait => (0, 0),
    };
    let told: CardShare = step.evidence.cards;
    if i128::from(told.parts()) != cards || step.evidence.lost != CardTime::from_part_ms(lost) {
        faults.push(Fault::WrongEvidence { job: step.job.clone() });
    }
}

/// Work since the last checkpoint seen, or the start, and the time of a start again.
fn lost_part_ms(case: &Case<'_>, run: &Running, workers: u32) -> i128 {
    let seen = run.checkpoint.filter(|seen| *seen > run.admitted).unwrap_or(run.admitted);
    let worked_ms = case.snapshot.at.ms_since(seen).max(0) + run.restart_ms.max(0);
    i128::from(run.shape.cards.parts()) * i128::from(workers) * i128::from(worked_ms)
}
