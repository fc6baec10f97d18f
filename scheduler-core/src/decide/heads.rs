//! The place of the first gang of a model that no room can be made for: when and where it will fit as others end by themselves.

use cardhour_domain::Timestamp;

use super::Round;
use crate::leftovers::Head;
use crate::pool::rooms::{Spot, View};
use crate::pool::tree::{QueueAt, ResourceAt};
use crate::pool::{Ask, AskAt, JobAt, times};

impl Round<'_> {
    /// When a pending job that starts now will have ended for certain.
    pub(super) fn ends(&self, ask: AskAt) -> Option<Timestamp> {
        self.asks[ask].pending.longest_ms.and_then(|longest| self.pool.at().checked_add_ms(longest))
    }

    /// Keeps the place of a job that quota allows and the hosts don't, if it is the first of its model; also of one that quota will allow once borrowers have ended, else they
    /// would follow one another for ever. Where too little is known of when jobs end, nothing is kept.
    pub(super) fn keep_head(&mut self, ask: &Ask<'_>) {
        let Some(choice) = ask.choices.first() else { return };
        let workers = ask.pending.min_workers.max(1);
        let model = choice.need.model;
        let has_one = self.leftovers.heads.iter().any(|head| head.need.model == model);
        let amounts = times(&choice.each, workers);
        let quota =
            self.pool.fits_quota(ask.queue, &amounts, View::After) || self.is_within_own_quota(ask.queue, &amounts);
        if has_one || !self.pool.rooms.counted() || choice.need.parts == 0 || !quota {
            return;
        }
        self.leftovers.lift(&mut self.pool, &choice.each);
        if let Some((from, spots)) = self.when_others_end(ask, workers) {
            self.leftovers.heads.push(Head { job: ask.pending.name.clone(), need: choice.need, spots, from });
        }
        self.leftovers.hold(&mut self.pool, ask.queue, None);
    }

    /// Whether a job stays within the quota of the nearest queue that has one, whatever others borrow of it now.
    fn is_within_own_quota(&self, queue: QueueAt, amounts: &[(ResourceAt, i64)]) -> bool {
        let tree = &self.pool.tree;
        let within = |(r, amount): &(ResourceAt, i64)| {
            let nearest = tree.path(queue).find_map(|node| tree.nominal(node, *r).map(|quota| (node, quota)));
            nearest.is_some_and(|(node, quota)| tree.total(&self.pool.after, node, *r) + amount <= quota)
        };
        self.pool.policy.fairness.counts_hosts() && amounts.iter().all(within)
    }

    /// The earliest moment at which it fits, and where, if all ends when it must.
    fn when_others_end(&mut self, ask: &Ask<'_>, workers: u32) -> Option<(Timestamp, Vec<Spot>)> {
        let choice = ask.choices.first()?;
        let wanted = choice.need.parts.saturating_mul(i64::from(workers));
        let amounts = times(&choice.each, workers);
        let mut free = self.pool.rooms.free_parts_of_model(choice.need.model, View::After);
        let ending = self.pool.ending_of_model(choice.need.model);
        let parts = |at: JobAt| self.pool.jobs[at].need.parts.saturating_mul(i64::from(self.pool.jobs[at].workers));
        if free + ending.iter().map(|(_, at)| parts(*at)).sum::<i64>() < wanted {
            return None;
        }
        let mut gone: Vec<(JobAt, u32, Vec<Spot>)> = Vec::new();
        let mut found = None;
        for (ends, at) in ending.iter().copied() {
            let workers_there = self.pool.jobs[at].workers;
            if workers_there == 0 {
                continue;
            }
            free += self.pool.jobs[at].need.parts.saturating_mul(i64::from(workers_there));
            let spots = self.pool.take_out(at, workers_there);
            gone.push((at, workers_there, spots));
            if free >= wanted
                && self.pool.fits_quota(ask.queue, &amounts, View::After)
                && let Some(spots) = self.pool.rooms.place(&choice.need, &ask.layout, workers, View::After, &[])
            {
                found = Some((ends.max(self.pool.at()), spots));
                break;
            }
        }
        for (at, workers, spots) in gone.into_iter().rev() {
            self.pool.put_back(at, workers, spots);
        }
        found
    }
}
