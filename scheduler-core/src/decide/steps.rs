//! Writing steps down.

use cardhour_domain::{CardShare, CardTime};

use super::Round;
use crate::names::JobName;
use crate::plan::{Action, Evidence, Reason, Seat, Step, Why};
use crate::pool::rooms::Spot;
use crate::pool::{Choice, JobAt};
use crate::snapshot::{Pending, Resource};

impl Round<'_> {
    pub(super) fn seat_of(&self, choice: &Choice, workers: u32, spots: &[Spot]) -> Seat {
        let model = match self.pool.resources.get(choice.need.model) {
            Some(Resource::Cards(model)) if choice.need.parts > 0 => Some(model.clone()),
            _ => None,
        };
        Seat { workers, model, pieces: self.pool.pieces(spots, workers) }
    }

    pub(super) fn cards(&self, choice: &Choice, workers: u32) -> Evidence {
        let cards = CardShare::from_parts(choice.need.parts.saturating_mul(i64::from(workers)));
        Evidence { cards, lost: CardTime::ZERO, considered: Vec::new() }
    }

    pub(super) fn wait(&mut self, pending: &Pending, why: Why, considered: Vec<JobName>) {
        let evidence = Evidence { considered, ..Evidence::default() };
        self.push(pending, Action::Wait, Reason::Waits(why), evidence);
    }

    pub(super) fn push(&mut self, pending: &Pending, action: Action, reason: Reason, evidence: Evidence) {
        self.steps.push(Step { job: pending.name.clone(), queue: pending.queue.clone(), action, reason, evidence });
    }

    pub(super) fn push_running(&mut self, at: JobAt, action: Action, reason: Reason, evidence: Evidence) {
        let run = self.pool.jobs[at].run;
        self.steps.push(Step { job: run.name.clone(), queue: run.queue.clone(), action, reason, evidence });
    }
}
