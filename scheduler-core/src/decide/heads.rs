//! The place of the first gang of a model that no room can be made for: when and where it will fit as others end by themselves.

use cardhour_domain::Timestamp;

use super::Round;
use crate::leftovers::Head;
use crate::pool::rooms::{Spot, View};
use crate::pool::{Ask, AskAt, JobAt, times};

impl Round<'_> {
    /// When a pending job that starts now will have ended for certain.
    pub(super) fn ends(&self, ask: AskAt) -> Option<Timestamp> {
        self.asks[ask].pending.longest_ms.and_then(|longest| self.pool.at().checked_add_ms(longest))
    }

    /// Keeps the place of a job that quota allows and the hosts don't, if it is the first of its model. Where too little is known of when jobs end, nothing is kept.
    pub(super) fn keep_head(&mut self, ask: &Ask<'_>) {
        let Some(choice) = ask.choices.first() else { return };
        let workers = ask.pending.min_workers.max(1);
        let model = choice.need.model;
        let has_one = self.leftovers.heads.iter().any(|head| head.need.model == model);
        let quota = self.pool.fits_quota(ask.queue, &times(&choice.each, workers), View::After);
        if has_one || !self.pool.rooms.counted() || choice.need.parts == 0 || !quota {
            return;
        }
        self.leftovers.lift(&mut self.pool);
        if let Some((from, spots)) = self.when_others_end(ask, workers) {
            self.leftovers.heads.push(Head { job: ask.pending.name.clone(), need: choice.need, spots, from });
        }
        self.leftovers.hold(&mut self.pool, ask.queue, None);
    }

    /// The earliest moment at which it fits, and where, if all ends when it must.
    fn when_others_end(&mut self, ask: &Ask<'_>, workers: u32) -> Option<(Timestamp, Vec<Spot>)> {
        let choice = ask.choices.first()?;
        let wanted = choice.need.parts.saturating_mul(i64::from(workers));
        let hosts = self.pool.rooms.of_model(choice.need.model);
        let mut free: i64 = hosts.iter().map(|host| self.pool.rooms.free_parts(*host, View::After)).sum();
        let mut ending: Vec<(Timestamp, JobAt)> = (0..self.pool.jobs.len())
            .filter(|at| self.pool.jobs[*at].workers > 0 && self.pool.jobs[*at].need.model == choice.need.model)
            .filter_map(|at| self.pool.jobs[at].run.ends_by.map(|ends| (ends, at)))
            .collect();
        ending.sort_unstable();
        let mut gone: Vec<(JobAt, u32, Vec<Spot>)> = Vec::new();
        let mut found = None;
        for (ends, at) in ending {
            let workers_there = self.pool.jobs[at].workers;
            free += self.pool.jobs[at].need.parts.saturating_mul(i64::from(workers_there));
            let spots = self.pool.take_out(at, workers_there);
            gone.push((at, workers_there, spots));
            if free >= wanted
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
