//! Refusals of the last round that this round would come to again.
//!
//! A full pool has tens of thousands of jobs that wait, and from one round to the next nearly all of them wait for the same reason. Finding that reason costs most of a round. So the
//! last round's is given again, without a search, where all that the search would look at is as it was:
//!
//! - The job asks for cards of one model, and nobody in the pool asks for anything but cards: then a search looks at the hosts of that model, at who runs on them, at the quota of that
//!   model, and at nothing of any other.
//! - Since then no job on that model started, ended or changed but for its checkpoint, no time has passed that changes what holds of one, and no host, no reservation and no rule of a
//!   queue is another; the fair share of every queue of that model is the same.
//! - In this round the same has happened to that model before the job's turn as in the last: the same jobs seated on the same cards, the same ones ended or moved, in the same order.
//! - When it was found, nobody was weighed against anybody: what victims lose changes with every moment, and how many may be ended with every step. Where the budget was used up it still
//!   is, and where it wasn't it isn't.
//! - No place is kept on that model for a gang until others end: what may be started before that changes with every moment.
//!
//! What isn't sure is found anew. So a round that recalls gives, to the byte, the plan that one gives which doesn't.

use crate::entitlement::Entitlement;
use crate::names::{JobName, Model};
use crate::plan::{Action, Step};
use crate::pool::tree::ResourceAt;
use crate::pool::{Ask, Pool};
use crate::snapshot::Resource;

/// What a round leaves for the next.
#[derive(Debug, Default)]
pub(crate) struct Recall {
    resources: Vec<Resource>,
    models: Vec<OfModel>,
    /// By the place of a job in the snapshot's list, which is sorted.
    refused: Vec<Option<Refusal>>,
    given_again: u64,
}

/// What a round did to one model.
#[derive(Debug, Default)]
struct OfModel {
    /// Of every queue.
    fair: Vec<i64>,
    /// Who was seated, ended or moved, in order.
    events: Vec<(JobName, Action)>,
    /// Something has changed since.
    changed: bool,
}

/// A refusal for which nobody was weighed against anybody.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    /// How many events its model had had before.
    events: usize,
    /// No job might be ended any more.
    budget_used_up: bool,
    /// The step of the plan that says it.
    step: usize,
}

impl Recall {
    /// How many refusals of the round before were given again.
    pub fn given_again(&self) -> u64 {
        self.given_again
    }

    /// A pending job was put at a place of the snapshot's list.
    pub fn put(&mut self, place: usize) {
        self.refused.insert(place.min(self.refused.len()), None);
    }

    /// The pending job at a place is another now.
    pub fn forget(&mut self, place: usize) {
        if let Some(refusal) = self.refused.get_mut(place) {
            *refusal = None;
        }
    }

    /// The pending job at a place was taken out.
    pub fn take(&mut self, place: usize) {
        if place < self.refused.len() {
            self.refused.remove(place);
        }
    }

    /// Something that runs on cards of a model has changed.
    pub fn changed(&mut self, model: &Model) {
        for (resource, of) in self.resources.iter().zip(&mut self.models) {
            of.changed |= matches!(resource, Resource::Cards(of) if of == model);
        }
    }
}

/// The last round while the next is made, and what that one leaves.
#[derive(Default)]
pub(crate) struct Recalling<'r> {
    before: Option<(&'r Recall, &'r [Step])>,
    /// By model: whether all has happened to it so far that happened in the last round, and nothing else.
    alike: Vec<bool>,
    /// By model: a place is kept on it for a gang.
    has_head: Vec<bool>,
    now: Option<Recall>,
}

impl<'r> Recalling<'r> {
    /// Neither recalls nor leaves anything.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// For a snapshot whose lists are sorted, each name once. `before`: the last round and its steps.
    pub fn new(pool: &Pool<'_>, entitlement: &Entitlement, before: Option<(&'r Recall, &'r [Step])>) -> Self {
        let policy = pool.policy;
        let only_cards = pool.resources.iter().all(|resource| matches!(resource, Resource::Cards(_)));
        let on_own_model = || {
            let mut seated = pool.jobs.iter().flat_map(|job| job.spots.iter().map(move |spot| (job, spot)));
            seated.all(|(job, spot)| pool.rooms.hosts[spot.host].model == job.need.model)
        };
        let separate = policy.fairness.counts_hosts()
            && policy.give_back.is_none()
            && only_cards
            && pool.rooms.counted()
            && on_own_model();
        if !separate {
            return Self::nothing();
        }
        let width = pool.resources.len();
        let models: Vec<OfModel> = (0..width)
            .map(|r| OfModel {
                fair: (0..pool.tree.parent.len()).map(|node| entitlement.fair(node, r)).collect(),
                events: Vec::new(),
                changed: false,
            })
            .collect();
        let before = before.filter(|(last, _)| last.resources == pool.resources);
        let alike = (0..width)
            .map(|r| before.is_some_and(|(last, _)| !last.models[r].changed && last.models[r].fair == models[r].fair))
            .collect();
        let refused = vec![None; pool.snapshot.pending.len()];
        let now = Some(Recall { resources: pool.resources.clone(), models, refused, given_again: 0 });
        Self { before, alike, has_head: vec![false; width], now }
    }

    /// What this round leaves for the next.
    pub fn left(self) -> Option<Recall> {
        self.now
    }

    /// The step by which the last round refused a job, if this round would come to the same.
    pub fn refusal(&mut self, ask: &Ask<'_>, budget_used_up: bool) -> Option<&'r Step> {
        let (last, steps) = self.before?;
        let r = model_of(ask)?;
        let refusal = last.refused.get(ask.place).copied().flatten()?;
        let now = self.now.as_mut()?;
        let same = self.alike[r]
            && !self.has_head[r]
            && refusal.events == now.models[r].events.len()
            && refusal.budget_used_up == budget_used_up;
        let step = steps.get(refusal.step).filter(|_| same)?;
        assert!(step.job == ask.pending.name, "a refusal is the job's own");
        now.given_again += 1;
        Some(step)
    }

    /// Notes that a job is refused, by the step that will be at `step` of the plan.
    pub fn refused(&mut self, ask: &Ask<'_>, budget_used_up: bool, step: usize) {
        let (Some(now), Some(r)) = (&mut self.now, model_of(ask)) else { return };
        if !self.has_head[r] {
            let events = now.models[r].events.len();
            now.refused[ask.place] = Some(Refusal { events, budget_used_up, step });
        }
    }

    /// Notes that a place is kept for a gang on a model.
    pub fn has_head(&mut self, r: ResourceAt) {
        if let Some(has_head) = self.has_head.get_mut(r) {
            *has_head = true;
        }
    }

    /// Notes what happened to a model.
    pub fn happened(&mut self, r: ResourceAt, steps: &[Step]) {
        let Some(now) = &mut self.now else { return };
        for step in steps {
            let event = (step.job.clone(), at_no_time(&step.action));
            let events = &mut now.models[r].events;
            let same = self.before.is_some_and(|(last, _)| last.models[r].events.get(events.len()) == Some(&event));
            self.alike[r] &= same;
            events.push(event);
        }
    }
}

/// An action without the instants in it, which move with the round's.
fn at_no_time(action: &Action) -> Action {
    match action {
        Action::Reserve { seat, waits_for, until: _ } => Action::Reserve {
            seat: seat.clone(),
            waits_for: waits_for.clone(),
            until: cardhour_domain::Timestamp::from_unix_s(0),
        },
        Action::Admit(_)
        | Action::Evict { .. }
        | Action::Shrink { .. }
        | Action::Move { .. }
        | Action::Requeue
        | Action::Wait => action.clone(),
    }
}

/// The one model that a job asks cards of. `None`: several, or no card.
fn model_of(ask: &Ask<'_>) -> Option<ResourceAt> {
    match ask.choices.as_slice() {
        [only] if only.need.parts > 0 => Some(only.need.model),
        _ => None,
    }
}
