//! From names to numbers, and running jobs to their cards.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::rooms::{CARD, Layout, Need, Spot, View};
use super::tree::{Amounts, ResourceAt, Tree};
use super::{Ask, Choice, Job, Pool, times};
use crate::names::{Model, Tenant};
use crate::snapshot::{HostState, Pending, Piece, Resource, Running, Shape, Snapshot};

impl Pool<'_> {
    pub(super) fn seat_running(&mut self, tenants: &[usize]) {
        let mut running: Vec<&Running> = self.snapshot.running.iter().collect();
        if !running.is_sorted_by(|a, b| a.name < b.name) {
            running.sort_by(|a, b| a.name.cmp(&b.name));
            running.dedup_by(|a, b| a.name == b.name);
        }
        let mut strangers: Vec<&Running> = Vec::new();
        for run in running {
            let Some(queue) = self.tree.find(&run.queue) else {
                strangers.push(run);
                continue;
            };
            let host = run.pieces.iter().find_map(|piece| piece.host.as_ref()).and_then(|name| self.rooms.find(name));
            let model = host.map(|host| self.rooms.hosts[host].model);
            let Choice { need, each } =
                self.choice(&run.shape, model.or_else(|| self.first_model(&run.shape)), tenants[queue]);
            let mut lost = Vec::new();
            let mut live = 0;
            for piece in &run.pieces {
                let host = piece.host.as_ref().and_then(|name| self.rooms.find(name));
                let failed = host.is_some_and(|host| self.rooms.hosts[host].failed);
                if failed {
                    lost.push(piece.clone());
                } else {
                    live += piece.workers;
                }
            }
            self.jobs_of[queue].push(self.jobs.len());
            self.jobs.push(Job {
                run,
                queue,
                need,
                each,
                workers: live,
                spots: Vec::new(),
                lost,
                going: 0,
                going_spots: Vec::new(),
                gone: run.leaving,
                disturbed: false,
            });
        }
        if self.rooms.counted() {
            self.seat_where_known();
            for run in strangers {
                self.seat_stranger(run);
            }
        }
        for at in 0..self.jobs.len() {
            let job = &self.jobs[at];
            for (r, amount) in times(&job.each, job.workers) {
                self.tree.add(&mut self.now, job.queue, r, amount);
                if !job.run.preemptible {
                    self.tree.add(&mut self.fixed, job.queue, r, amount);
                }
            }
        }
        self.after.clone_from(&self.now);
        for at in 0..self.jobs.len() {
            if self.jobs[at].gone {
                self.leaving.push(at);
                self.send_off(at, self.jobs[at].workers);
            }
        }
    }

    /// Seats a job whose queue isn't in the tree: it counts on nobody's quota, is nobody's to end, and its cards are taken for all that.
    fn seat_stranger(&mut self, run: &Running) {
        for piece in &run.pieces {
            let Some(host) = piece.host.as_ref().and_then(|name| self.rooms.find(name)) else { continue };
            let model = self.rooms.hosts[host].model;
            let Choice { need, .. } = self.choice(&run.shape, Some(model), usize::MAX);
            let spots = if piece.cards.is_empty() {
                self.crowd(host, &need, piece.workers)
            } else {
                named_spots(host, piece, need.parts, self.rooms.cards(host))
            };
            let views: &[View] = if run.leaving { &[View::Now] } else { &[View::Now, View::After] };
            for spot in &spots {
                self.rooms.take(spot, &need, views);
            }
        }
    }

    /// Seats running workers: first on the cards the snapshot names, then on the hosts it names, then anywhere.
    pub(super) fn seat_where_known(&mut self) {
        for pass in 0..3 {
            for at in 0..self.jobs.len() {
                let run = self.jobs[at].run;
                let need = self.jobs[at].need;
                let views: &[View] = &[View::Now, View::After];
                for piece in &run.pieces {
                    let host = piece.host.as_ref().and_then(|name| self.rooms.find(name));
                    let of_pass = match (host, piece.cards.is_empty()) {
                        (Some(_), false) => 0,
                        (Some(_), true) => 1,
                        (None, _) => 2,
                    };
                    if of_pass != pass || host.is_some_and(|host| self.rooms.hosts[host].failed) {
                        continue;
                    }
                    let spots = match host {
                        Some(host) if pass == 0 => named_spots(host, piece, need.parts, self.rooms.cards(host)),
                        Some(host) => self.crowd(host, &need, piece.workers),
                        None => {
                            let layout = Layout { same: None, prefer: None, spread: false };
                            self.rooms.place(&need, &layout, piece.workers, View::Now, &[]).unwrap_or_default()
                        }
                    };
                    for spot in &spots {
                        self.rooms.take(spot, &need, views);
                    }
                    self.jobs[at].spots.extend(spots);
                }
            }
        }
    }

    /// Seats for workers that do run on a host, whatever its state; cards already full are left out.
    pub(super) fn crowd(&self, host: usize, need: &Need, workers: u32) -> Vec<Spot> {
        (1..=workers).rev().find_map(|workers| self.rooms.seats_in_use(host, need, workers)).unwrap_or_default()
    }

    pub(super) fn number_pending(&mut self, tenants: &[usize]) {
        let mut pending: Vec<&Pending> = self.snapshot.pending.iter().collect();
        if !pending.is_sorted_by(|a, b| a.name < b.name) {
            pending.sort_by(|a, b| a.name.cmp(&b.name));
            pending.dedup_by(|a, b| a.name == b.name);
        }
        let mut asks = Vec::with_capacity(pending.len());
        for (place, job) in pending.into_iter().enumerate() {
            let Some(queue) = self.tree.find(&job.queue) else {
                self.strangers.push(&job.name);
                continue;
            };
            let models: Vec<Option<ResourceAt>> = if job.shape.cards.is_zero() {
                vec![self.first_model(&job.shape)]
            } else if job.shape.models.is_empty() {
                (0..self.resources.len())
                    .filter(|r| matches!(self.resources[*r], Resource::Cards(_)))
                    .map(Some)
                    .collect()
            } else {
                job.shape.models.iter().filter_map(|model| self.model(model)).map(Some).collect()
            };
            let choices = models.into_iter().map(|model| self.choice(&job.shape, model, tenants[queue])).collect();
            let layout = Layout { same: job.shape.same, prefer: job.shape.prefer, spread: job.shape.spread };
            asks.push(Ask { pending: job, place, queue, choices, layout });
        }
        self.asks = Rc::new(asks);
    }

    pub fn model(&self, model: &Model) -> Option<ResourceAt> {
        self.resources
            .binary_search_by(|resource| match resource {
                Resource::Cards(of) => of.cmp(model),
                Resource::Cpu | Resource::Memory => Ordering::Greater,
            })
            .ok()
    }

    pub(super) fn first_model(&self, shape: &Shape) -> Option<ResourceAt> {
        match shape.models.first() {
            Some(model) => self.model(model),
            None => self.resources.iter().position(|resource| matches!(resource, Resource::Cards(_))),
        }
    }

    pub(super) fn choice(&self, shape: &Shape, model: Option<ResourceAt>, tenant: usize) -> Choice {
        let mut each = Amounts::new();
        for (resource, amount) in self.resources.iter().enumerate().map(|(r, resource)| {
            let amount = match resource {
                Resource::Cards(_) if Some(r) == model => shape.cards.parts(),
                Resource::Cards(_) => 0,
                Resource::Cpu => shape.cpu_milli,
                Resource::Memory => shape.memory_bytes,
            };
            (r, amount)
        }) {
            if amount > 0 {
                each.push((resource, amount));
            }
        }
        let need = Need {
            model: model.unwrap_or_default(),
            parts: shape.cards.parts(),
            cpu_milli: shape.cpu_milli,
            memory_bytes: shape.memory_bytes,
            tenant,
            accepts_revocation: shape.accepts_revocation,
        };
        Choice { need, each }
    }
}

/// Every resource that anybody names, sorted.
pub(super) fn resources_of(snapshot: &Snapshot) -> Vec<Resource> {
    let mut models: BTreeSet<&Model> = snapshot.hosts.iter().map(|host| &host.model).collect();
    let mut all: BTreeSet<Resource> = snapshot.capacity.keys().cloned().collect();
    for resource in snapshot.queues.iter().flat_map(|queue| queue.quota.keys()) {
        match resource {
            Resource::Cards(model) if models.contains(model) => {}
            Resource::Cards(model) => _ = models.insert(model),
            Resource::Cpu | Resource::Memory => _ = all.insert(resource.clone()),
        }
    }
    let shapes = snapshot.running.iter().map(|run| &run.shape).chain(snapshot.pending.iter().map(|job| &job.shape));
    let (mut cpu, mut memory) = (false, false);
    for shape in shapes {
        cpu |= shape.cpu_milli > 0;
        memory |= shape.memory_bytes > 0;
        for model in &shape.models {
            if !models.contains(model) {
                models.insert(model);
            }
        }
    }
    all.extend(models.into_iter().cloned().map(Resource::Cards));
    all.extend(cpu.then_some(Resource::Cpu));
    all.extend(memory.then_some(Resource::Memory));
    all.into_iter().collect()
}

/// What there is of a resource on hosts that aren't failed; where there are no hosts, what the snapshot says, else nothing is known.
pub(super) fn capacity_of(snapshot: &Snapshot, resource: &Resource) -> Option<i64> {
    if snapshot.hosts.is_empty() {
        return snapshot.capacity.get(resource).copied();
    }
    let hosts = snapshot.hosts.iter().filter(|host| host.state != HostState::Failed);
    match resource {
        Resource::Cards(model) => {
            Some(hosts.filter(|host| host.model == *model).map(|host| i64::from(host.cards) * CARD).sum())
        }
        Resource::Cpu => hosts.map(|host| host.cpu_milli).sum(),
        Resource::Memory => hosts.map(|host| host.memory_bytes).sum(),
    }
}

/// The tenant of each queue: of the nearest queue that names one, else the queue itself.
pub(super) fn tenants_of(tree: &Tree<'_>) -> Vec<usize> {
    let mut named: BTreeMap<&Tenant, usize> = BTreeMap::new();
    (0..tree.queues.len())
        .map(|queue| match tree.inherited(queue, |queue| queue.tenant.as_ref()) {
            Some(tenant) => {
                let next = tree.queues.len() + named.len();
                *named.entry(tenant).or_insert(next)
            }
            None => queue,
        })
        .collect()
}

/// The spots of workers whose cards are named, worker after worker.
pub(super) fn named_spots(host: usize, piece: &Piece, parts: i64, cards: usize) -> Vec<Spot> {
    let whole = parts / CARD;
    let part = parts % CARD;
    let each = usize::try_from(whole + i64::from(part > 0)).unwrap_or_default();
    if each == 0 {
        return Vec::new();
    }
    piece
        .cards
        .chunks_exact(each)
        .take(piece.workers as usize)
        .filter(|chunk| chunk.iter().all(|card| (*card as usize) < cards))
        .map(|chunk| Spot {
            host,
            cards: chunk
                .iter()
                .enumerate()
                .map(|(i, card)| (*card, if i < usize::try_from(whole).unwrap_or_default() { CARD } else { part }))
                .collect(),
        })
        .collect()
}
