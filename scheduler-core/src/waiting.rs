//! What a job that isn't started is told.

use crate::entitlement::Entitlement;
use crate::plan::Why;
use crate::policy::Fairness;
use crate::pool::rooms::{HostAt, View};
use crate::pool::{Ask, Pool, times};
use crate::snapshot::Level;
use crate::victims::{Budget, NotFound};

/// Why a job waits that neither fits nor may have room made for it.
pub(crate) fn why(pool: &Pool<'_>, entitlement: &Entitlement, ask: &Ask<'_>, missed: &NotFound) -> Why {
    let Some(choice) = ask.choices.first() else { return Why::NoSuchModel };
    let workers = ask.pending.min_workers.max(1);
    let tree = &pool.tree;
    let amounts = times(&choice.each, workers);
    for (r, wanted) in &amounts {
        let most = tree.potential(ask.queue, *r);
        if most < *wanted {
            return Why::NeverByQuota { most, wanted: *wanted };
        }
    }
    if let Some(head) = &missed.kept_for {
        return Why::KeptForGang { head: head.clone() };
    }
    if missed.being_left {
        return Why::BeingLeft;
    }
    if missed.in_steps {
        return Why::GivesBackInSteps;
    }
    match missed.budget {
        Budget::Enough => {}
        Budget::TooSmall => return Why::BudgetTooSmall,
        Budget::Spent => return Why::BudgetSpent,
    }
    for (r, wanted) in &amounts {
        let left = tree.available(&pool.after, ask.queue, *r).min(tree.available(&pool.now, ask.queue, *r));
        if left < *wanted {
            let over = pool.policy.fairness == Fairness::DeservedShare
                && tree.total(&pool.after, ask.queue, *r) + wanted > entitlement.fair(ask.queue, *r);
            return if over { Why::OverFairShare } else { Why::QuotaUsed { left, wanted: *wanted } };
        }
    }
    no_room(pool, ask, choice, workers)
}

fn no_room(pool: &Pool<'_>, ask: &Ask<'_>, choice: &crate::pool::Choice, workers: u32) -> Why {
    let full = choice.need.parts > 0 && pool.rooms.free_parts_of_model(choice.need.model, View::Now) == 0;
    let fits = |hosts: &[HostAt]| -> u32 {
        if full {
            return 0;
        }
        hosts
            .iter()
            .map(|host| pool.rooms.fits_on(*host, &choice.need, View::Now, workers))
            .fold(0, u32::saturating_add)
            .min(workers)
    };
    let Some(level) = ask.layout.same else {
        return Why::NoRoom {
            level: None,
            best: None,
            fits: fits(pool.rooms.of_model(choice.need.model)),
            wanted: workers,
        };
    };
    let best =
        pool.rooms.domains(level).iter().enumerate().max_by_key(|(at, hosts)| (fits(hosts), std::cmp::Reverse(*at)));
    let (name, fits) = match best {
        Some((_, hosts)) => (hosts.first().map(|host| name(pool, *host, level)), fits(hosts)),
        None => (None, 0),
    };
    Why::NoRoom { level: Some(level), best: name, fits, wanted: workers }
}

fn name(pool: &Pool<'_>, host: HostAt, level: Level) -> String {
    let host = &pool.rooms.hosts[host].name;
    let of = pool.snapshot.hosts.iter().find(|one| one.name == *host).and_then(|one| one.domains.get(&level));
    of.cloned().unwrap_or_else(|| host.to_string())
}
