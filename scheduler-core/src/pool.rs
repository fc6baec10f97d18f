//! The snapshot by number: what [`decide`](crate::decide()) works on, changed in place and never copied.
//!
//! Queues, jobs and hosts are sorted by name and known by their place, so that a plan doesn't depend on the order of the input. What is tried is undone by its
//! reverse. Two counts run beside one another, *now* and *after*: see [`View`].

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use cardhour_domain::{CardShare, CardTime, Interval, Timestamp};

use crate::names::JobName;
use crate::policy::{Policy, QueueRules};
use crate::snapshot::{Pending, Piece, Resource, Running, Snapshot};
use crate::victims::lists::Lists;

mod by_name;
mod numbering;
pub(crate) mod rooms;
pub(crate) mod tree;

use numbering::{capacity_of, named_spots, resources_of, tenants_of};
use rooms::{Layout, Need, Rooms, Spot, View};
use tree::{Amounts, QueueAt, ResourceAt, Tree, Used};

/// A running job by number.
pub(crate) type JobAt = usize;
/// A pending job by number.
pub(crate) type AskAt = usize;

/// A running job.
pub(crate) struct Job<'a> {
    pub run: &'a Running,
    pub queue: QueueAt,
    pub need: Need,
    /// Of one worker.
    pub each: Amounts,
    /// Workers it has in the count of *after*.
    pub workers: u32,
    /// Of the workers it has in *after*, where hosts are counted.
    pub spots: Vec<Spot>,
    /// Workers on failed hosts.
    pub lost: Vec<Piece>,
    /// Workers that will be gone because of this plan, or were on their way out already, and where they sit until then.
    pub going: u32,
    pub going_spots: Vec<Spot>,
    /// All of it is going.
    pub gone: bool,
    /// It was mended, moved or shrunk this round: it is left alone for the rest of it.
    pub disturbed: bool,
}

/// A pending job.
pub(crate) struct Ask<'a> {
    pub pending: &'a Pending,
    /// Its place among the pending jobs by name, those of unknown queues counted with them.
    pub place: usize,
    pub queue: QueueAt,
    /// The models it may have, by their number, best first; one entry without a model where it asks for no card.
    pub choices: Vec<Choice>,
    pub layout: Layout,
}

/// A pending job on one model.
#[derive(Clone)]
pub(crate) struct Choice {
    pub need: Need,
    /// Of one worker.
    pub each: Amounts,
}

/// Jobs and when each ends, the first first.
pub(crate) type Ends = Rc<Vec<(Timestamp, JobAt)>>;

/// The pool by number.
pub(crate) struct Pool<'a> {
    pub snapshot: &'a Snapshot,
    pub policy: &'a Policy,
    pub resources: Vec<Resource>,
    pub tree: Tree<'a>,
    /// In use by what is there this instant, and by what starts at once.
    pub now: Used,
    /// In use once those who leave are gone and those who were promised room have it.
    pub after: Used,
    /// In use by jobs that can't be ended.
    pub fixed: Used,
    pub rooms: Rooms,
    pub jobs: Vec<Job<'a>>,
    pub asks: Rc<Vec<Ask<'a>>>,
    /// Running jobs of each queue.
    pub jobs_of: Vec<Vec<JobAt>>,
    /// Jobs that were on their way out before the round.
    pub leaving: Vec<JobAt>,
    /// Jobs of which something is going, by the hosts they sit on until then; some may be named twice.
    pub going_on: Vec<Vec<JobAt>>,
    /// What of each queue could be taken for another's job, as found before: see [`Lists`].
    pub lists: Lists,
    /// Running jobs of each model of which it is known when they end, the first to end first. Found when it is first asked for.
    ending: OnceCell<Vec<Ends>>,
    /// Whether it was compared for the job that is decided about what others would lose, which changes with time alone.
    pub losses_compared: bool,
    /// Whether it was searched for it who could move aside.
    pub moves_searched: bool,
    /// Pending jobs whose queue the snapshot doesn't have.
    pub strangers: Vec<&'a JobName>,
}

/// The amounts of `workers` workers.
pub(crate) fn times(each: &[(ResourceAt, i64)], workers: u32) -> Amounts {
    each.iter().map(|(r, amount)| (*r, amount.saturating_mul(i64::from(workers)))).collect()
}

impl<'a> Pool<'a> {
    /// Numbers a snapshot.
    pub fn new(snapshot: &'a Snapshot, policy: &'a Policy) -> Self {
        let resources = resources_of(snapshot);
        let place = |resource: &Resource| resources.binary_search(resource).unwrap_or_default();
        let capacity: Option<Vec<Option<i64>>> = policy
            .fairness
            .counts_hosts()
            .then(|| resources.iter().map(|resource| capacity_of(snapshot, resource)).collect());
        let tree = Tree::new(snapshot, &resources, capacity.as_deref());
        let rooms = Rooms::new(
            &snapshot.hosts,
            resources.len(),
            |host| place(&Resource::Cards(host.model.clone())),
            policy.tenants_share_cards,
        );
        let tenants = tenants_of(&tree);
        let used = tree.unused();
        let mut pool = Self {
            snapshot,
            policy,
            now: used.clone(),
            after: used.clone(),
            fixed: used,
            jobs: Vec::with_capacity(snapshot.running.len()),
            asks: Rc::new(Vec::new()),
            jobs_of: vec![Vec::new(); tree.queues.len()],
            leaving: Vec::new(),
            going_on: vec![Vec::new(); rooms.hosts.len()],
            lists: Lists::default(),
            losses_compared: false,
            moves_searched: false,
            ending: OnceCell::new(),
            strangers: Vec::new(),
            resources,
            tree,
            rooms,
        };
        pool.seat_running(&tenants);
        pool.number_pending(&tenants);
        pool
    }

    /// The instant of the snapshot.
    pub fn at(&self) -> Timestamp {
        self.snapshot.at
    }

    /// The running jobs of a model of which it is known when they end, the first to end first.
    pub fn ending_of_model(&self, model: ResourceAt) -> Ends {
        let all = self.ending.get_or_init(|| {
            let mut all = vec![Vec::new(); self.resources.len()];
            for (at, job) in self.jobs.iter().enumerate() {
                if let Some(ends) = job.run.ends_by {
                    all[job.need.model].push((ends, at));
                }
            }
            let sorted = |mut list: Vec<(Timestamp, JobAt)>| {
                list.sort_unstable();
                Rc::new(list)
            };
            all.into_iter().map(sorted).collect()
        });
        all.get(model).map_or_else(Rc::default, Rc::clone)
    }

    /// The rules that hold for a queue.
    pub fn rules(&self, queue: QueueAt) -> QueueRules {
        self.tree.inherited(queue, |queue| queue.rules).unwrap_or(self.policy.rules)
    }

    /// Takes `workers` of a job out of the count of *after*: its last ones. Gives back where they sat.
    pub fn take_out(&mut self, at: JobAt, workers: u32) -> Vec<Spot> {
        let job = &mut self.jobs[at];
        job.workers -= workers;
        let keep = job.spots.len().min(job.workers as usize);
        let spots = job.spots.split_off(keep);
        for spot in &spots {
            self.rooms.release(spot, &job.need, &[View::After]);
        }
        for (r, amount) in times(&job.each, workers) {
            self.tree.remove(&mut self.after, job.queue, r, amount);
        }
        spots
    }

    /// The reverse of [`Self::take_out`].
    pub fn put_back(&mut self, at: JobAt, workers: u32, spots: Vec<Spot>) {
        let job = &mut self.jobs[at];
        for spot in &spots {
            self.rooms.take(spot, &job.need, &[View::After]);
        }
        for (r, amount) in times(&job.each, workers) {
            self.tree.add(&mut self.after, job.queue, r, amount);
        }
        job.workers += workers;
        job.spots.extend(spots);
    }

    /// Takes workers out for good: they are told to go, and sit where they are until they have gone.
    pub fn send_off(&mut self, at: JobAt, workers: u32) {
        let spots = self.take_out(at, workers);
        self.note_going(at, workers, &spots);
    }

    /// Notes that workers that were taken out are told to go.
    pub fn note_going(&mut self, at: JobAt, workers: u32, spots: &[Spot]) {
        let job = &mut self.jobs[at];
        job.going += workers;
        job.going_spots.extend_from_slice(spots);
        job.gone = job.workers == 0;
        for spot in spots {
            let on_host = &mut self.going_on[spot.host];
            if on_host.last() != Some(&at) {
                on_host.push(at);
            }
        }
        self.disturb(at);
    }

    /// Leaves a job alone for the rest of the round.
    pub fn disturb(&mut self, at: JobAt) {
        let job = &mut self.jobs[at];
        job.disturbed = true;
        self.lists.forget(job.queue);
    }

    /// Whether `workers` of a choice fit by quota and place: where, if they do.
    pub fn fit(&self, ask: &Ask<'_>, choice: &Choice, workers: u32, view: View, near: &[usize]) -> Option<Vec<Spot>> {
        if !self.fits_quota(ask.queue, &times(&choice.each, workers), view) {
            return None;
        }
        if !self.rooms.counted() {
            return Some(Vec::new());
        }
        self.rooms.place(&choice.need, &ask.layout, workers, view, near)
    }

    /// Whether a queue may take `amounts` more.
    pub fn fits_quota(&self, queue: QueueAt, amounts: &[(ResourceAt, i64)], view: View) -> bool {
        amounts.iter().all(|(r, amount)| {
            let after = self.tree.available(&self.after, queue, *r) >= *amount;
            after && (view == View::After || self.tree.available(&self.now, queue, *r) >= *amount)
        })
    }

    /// Counts a job that starts at once.
    pub fn admit(&mut self, queue: QueueAt, choice: &Choice, workers: u32, spots: &[Spot]) {
        for (r, amount) in times(&choice.each, workers) {
            self.tree.add(&mut self.now, queue, r, amount);
            self.tree.add(&mut self.after, queue, r, amount);
        }
        for spot in spots {
            self.rooms.take(spot, &choice.need, &[View::Now, View::After]);
        }
    }

    /// Counts a job that is promised room.
    pub fn promise(&mut self, queue: QueueAt, choice: &Choice, workers: u32, spots: &[Spot]) {
        for (r, amount) in times(&choice.each, workers) {
            self.tree.add(&mut self.after, queue, r, amount);
        }
        for spot in spots {
            self.rooms.take(spot, &choice.need, &[View::After]);
        }
    }

    /// The reverse of [`Self::promise`].
    pub fn break_promise(&mut self, queue: QueueAt, choice: &Choice, workers: u32, spots: &[Spot]) {
        for (r, amount) in times(&choice.each, workers) {
            self.tree.remove(&mut self.after, queue, r, amount);
        }
        for spot in spots {
            self.rooms.release(spot, &choice.need, &[View::After]);
        }
    }

    /// The cards that pieces name, if each is a usable host's of the right model and free in a view.
    pub fn free_spots(&self, choice: &Choice, pieces: &[Piece], view: View) -> Option<Vec<Spot>> {
        let mut spots = Vec::new();
        for piece in pieces {
            let host = self.rooms.find(piece.host.as_ref()?)?;
            let named = named_spots(host, piece, choice.need.parts, self.rooms.cards(host));
            if named.len() != piece.workers as usize || !self.rooms.takes(host, &named, &choice.need, view) {
                return None;
            }
            spots.extend(named);
        }
        Some(spots)
    }

    /// Card-time that ending `workers` of a job now would lose: since the last checkpoint seen or the start, and what a start again costs.
    pub fn loss(&self, at: JobAt, workers: u32) -> CardTime {
        let run = self.jobs[at].run;
        let since = run.checkpoint.map_or(run.admitted, |seen| seen.max(run.admitted));
        let again_from = self.at().checked_add_ms(-run.restart_ms.max(0)).unwrap_or(since);
        let of_worker = |from: Timestamp, to: Timestamp| {
            Interval::new(from, to).map_or(0, |stretch| CardTime::of(run.shape.cards, stretch).part_ms())
        };
        let one = of_worker(since, self.at()) + of_worker(again_from, self.at());
        CardTime::from_part_ms(one * i128::from(workers))
    }

    /// The cards of so many workers of a job.
    pub fn cards_of(&self, at: JobAt, workers: u32) -> CardShare {
        CardShare::from_parts(self.jobs[at].need.parts.saturating_mul(i64::from(workers)))
    }

    /// Spots as a plan names them: by host, with the cards of each worker.
    pub fn pieces(&self, spots: &[Spot], workers: u32) -> Vec<Piece> {
        if spots.is_empty() {
            return if self.rooms.counted() || workers == 0 {
                Vec::new()
            } else {
                vec![Piece { host: None, workers, cards: Vec::new() }]
            };
        }
        let mut by_host: BTreeMap<usize, (u32, Vec<u32>)> = BTreeMap::new();
        for spot in spots {
            let (workers, cards) = by_host.entry(spot.host).or_default();
            *workers += 1;
            cards.extend(spot.cards.iter().map(|(card, _)| *card));
        }
        by_host
            .into_iter()
            .map(|(host, (workers, cards))| Piece { host: Some(self.rooms.hosts[host].name.clone()), workers, cards })
            .collect()
    }
}
