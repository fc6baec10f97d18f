//! What isn't lent, and what isn't given at once.

use super::Round;
use crate::plan::Reason;
use crate::policy::{Fairness, Reclaim};
use crate::pool::rooms::View;
use crate::pool::tree::QueueAt;
use crate::pool::{Ask, Choice, JobAt, times};

impl Round<'_> {
    /// Quota that a queue couldn't take back by itself isn't lent while one of its own jobs waits for it.
    ///
    /// Only where quota is the measure: else the owner can always reclaim. Source: Kueue's reservation for queues that can't reclaim.
    pub(super) fn hold_unreclaimable(&mut self, ask: &Ask<'_>) {
        match self.pool.policy.fairness {
            Fairness::None | Fairness::BorrowShare(_) | Fairness::PastUsage => {}
            Fairness::DeservedShare | Fairness::DeservedCap | Fairness::Guaranteed => return,
        }
        let rules = self.pool.rules(ask.queue);
        if rules.reclaim == Reclaim::Any || rules.while_borrowing.is_some() {
            return;
        }
        let Some(choice) = ask.choices.first() else { return };
        let amounts = times(&choice.each, ask.pending.min_workers.max(1));
        if self.pool.fits_quota(ask.queue, &amounts, View::Now) {
            return;
        }
        for (r, amount) in amounts {
            let nominal = self.pool.tree.nominal(ask.queue, r).unwrap_or(0);
            if amount > nominal {
                return;
            }
            self.leftovers.lend_no_more(ask.queue, r, amount);
        }
    }

    /// Whether the month's card-hours of a queue, or of one above it, leave its new work to off-peak windows.
    pub(super) fn starts_off_peak_only(&self, queue: QueueAt) -> bool {
        let tree = &self.pool.tree;
        tree.path(queue)
            .filter_map(|node| tree.queues.get(node))
            .any(|queue| queue.band.is_some_and(|band| band.off_peak_only))
    }

    /// Whether the owner got as much back this round as its steps allow.
    pub(super) fn gave_back_enough(&self, ask: &Ask<'_>, choice: &Choice, workers: u32) -> bool {
        let Some(steps) = self.pool.policy.give_back else { return false };
        if ask.pending.critical.as_ref().is_some_and(|window| window.holds_at(self.pool.at())) {
            return false;
        }
        let r = choice.need.model;
        let asked = choice.need.parts.saturating_mul(i64::from(workers));
        let owed = (self.pool.tree.deserved(ask.queue, r).unwrap_or(0)
            - self.pool.tree.total(&self.pool.now, ask.queue, r))
        .max(0);
        let part = i64::try_from(i128::from(owed) * i128::from(steps.owed_per_mille) / 1_000).unwrap_or(i64::MAX);
        let given = self.given_back.get(&ask.queue).copied().unwrap_or(0);
        given > 0 && given.saturating_add(asked) > steps.step_parts.max(part)
    }

    pub(super) fn note_given_back(&mut self, ask: &Ask<'_>, job: JobAt, parts: i64) {
        if self.pool.jobs[job].queue != ask.queue {
            *self.given_back.entry(ask.queue).or_default() += parts;
        }
    }

    /// Whether a job may have so much: one that can't be ended stays within the quota of the first queue above it that has one.
    pub(super) fn lends(&self, ask: &Ask<'_>, choice: &Choice, workers: u32) -> bool {
        if ask.pending.preemptible || self.pool.policy.lends_to_unpreemptible {
            return true;
        }
        let tree = &self.pool.tree;
        times(&choice.each, workers).iter().all(|(r, amount)| {
            tree.path(ask.queue)
                .find_map(|node| {
                    tree.nominal(node, *r).map(|quota| tree.total(&self.pool.fixed, node, *r) + amount <= quota)
                })
                .unwrap_or(true)
        })
    }

    /// On what ground a job has room that nobody leaves for it: judged, for each thing it asks for, by the nearest queue that has a quota of it.
    pub(super) fn reason_of_free_room(&self, queue: QueueAt, choice: &Choice, workers: u32) -> Reason {
        let tree = &self.pool.tree;
        let mut nearest: Option<QueueAt> = None;
        for (r, amount) in times(&choice.each, workers) {
            let Some((node, quota)) =
                tree.path(queue).find_map(|node| tree.nominal(node, r).map(|quota| (node, quota)))
            else {
                continue;
            };
            if tree.total(&self.pool.after, node, r) + amount > quota {
                return Reason::Borrows;
            }
            nearest =
                Some(nearest.map_or(node, |known| if tree.depth[known] >= tree.depth[node] { known } else { node }));
        }
        match nearest {
            None => Reason::NoQuota,
            Some(node) if node == queue => Reason::WithinQuota,
            Some(node) => Reason::WithinQuotaAbove { queue: tree.queues[node].name.clone() },
        }
    }

    pub(super) fn fix(&mut self, ask: &Ask<'_>, choice: &Choice, workers: u32) {
        if !ask.pending.preemptible {
            for (r, amount) in times(&choice.each, workers) {
                self.pool.tree.add(&mut self.pool.fixed, ask.queue, r, amount);
            }
        }
    }

    pub(super) fn spend(&mut self, jobs: usize) {
        if let Some(tokens) = &mut self.tokens {
            *tokens = tokens.saturating_sub(jobs);
        }
    }
}
