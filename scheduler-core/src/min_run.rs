//! How long a job runs before it may be ended for another.
//!
//! Start at `least_ms`. A queue that says nothing has its parent's value, in the end the policy's.

use crate::names::QueueName;
use crate::policy::{MinRun, MinRunFrom, Policy};
use crate::pool::tree::{QueueAt, Tree};
use crate::snapshot::Snapshot;

/// For whom the job would be ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MinRunFor {
    /// A job of its own queue.
    OwnQueue,
    /// A job of another queue.
    OtherQueue {
        /// That queue.
        asker: QueueAt,
    },
}

/// The least run of a job of `victim`, in ms.
///
/// For another queue's job it is, by policy, the value of the branch just under the ancestor the two share: nobody shields itself from cousins by a long value of its own,
/// while siblings see one another's. Source: KAI's min-runtime.
pub(crate) fn least_ms(tree: &Tree<'_>, policy: &Policy, victim: QueueAt, whom: MinRunFor) -> i64 {
    let table = &policy.min_run;
    let of = |from: QueueAt, field: fn(&MinRun) -> Option<i64>| {
        let said = || {
            let queues = tree.path(from).filter_map(|node| tree.queues.get(node));
            queues.filter_map(|queue| table.queues.get(&queue.name)).find_map(field)
        };
        let of_queue = if table.queues.is_empty() { None } else { said() };
        of_queue.or_else(|| field(&table.default)).unwrap_or(0)
    };
    match whom {
        MinRunFor::OwnQueue => of(victim, |least| least.preempt_ms),
        MinRunFor::OtherQueue { asker } => {
            let from = match policy.min_run_from {
                MinRunFrom::Queue => victim,
                MinRunFrom::Branch if table.queues.is_empty() => victim,
                MinRunFrom::Branch => tree.branches(asker, victim).map_or(victim, |(_, theirs)| theirs),
            };
            of(from, |least| least.reclaim_ms)
        }
    }
}

/// The least run of a job of `victim`, in ms, when it would be ended for a job of `asker`; `None`: for one of its own queue.
///
/// For those who want to know it of a queue, outside a round.
pub fn least_run_ms(
    snapshot: &Snapshot,
    policy: &Policy,
    victim: &QueueName,
    asker: Option<&QueueName>,
) -> Option<i64> {
    let tree = Tree::new(snapshot, &[], None);
    let whom = match asker {
        Some(asker) => MinRunFor::OtherQueue { asker: tree.find(asker)? },
        None => MinRunFor::OwnQueue,
    };
    Some(least_ms(&tree, policy, tree.find(victim)?, whom))
}

/// Whether workers of a job may be taken: surplus at any time, more only once it has run its least.
pub fn may_take(ran_ms: i64, least_ms: i64, workers: u32, min_workers: u32, taken: u32) -> bool {
    ran_ms >= least_ms || workers.saturating_sub(taken) >= min_workers.max(1)
}
