//! Moving jobs aside instead of ending any: the cards are there, but scattered.
//!
//! For each domain that the asker could be in, hosts are emptied one worker's room at a time, always the host that costs the fewest moved cards; what sits there goes to the fullest
//! host that takes it at once. What is moved is bounded by what is asked for. Jobs that can't be ended aren't moved, nor is the work of a queue within its share for
//! one that is above its own.

use crate::entitlement::Entitlement;
use crate::policy::Fairness;
use crate::pool::rooms::{HostAt, Layout, Spot, View};
use crate::pool::tree::QueueAt;
use crate::pool::{Ask, Choice, JobAt, Pool, times};

/// Domains that are tried for one asker.
const DOMAINS: usize = 16;

/// One job that goes elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    pub job: JobAt,
    pub from: Vec<Spot>,
    pub to: Vec<Spot>,
}

/// Moves that are enough, and where the asker then fits. The moves stay done in the pool; the asker isn't seated.
pub(crate) fn make_room<'a>(
    pool: &mut Pool<'a>,
    entitlement: &Entitlement,
    ask: &Ask<'a>,
    choice: &Choice,
    workers: u32,
    tokens: Option<usize>,
) -> Option<(Vec<Moved>, Vec<Spot>)> {
    let asked = choice.need.parts.saturating_mul(i64::from(workers));
    if !pool.rooms.counted() || asked == 0 || !pool.fits_quota(ask.queue, &times(&choice.each, workers), View::After) {
        return None;
    }
    if pool.rooms.free_parts_of_model(choice.need.model, View::Now) < asked {
        return None;
    }
    pool.moves_searched = true;
    let most_parts =
        i64::try_from(i128::from(asked) * i128::from(pool.policy.moved_per_mille) / 1_000).unwrap_or(i64::MAX);
    let most_moves = tokens.map_or(pool.policy.moves as usize, |tokens| tokens.min(pool.policy.moves as usize));
    let domains: Vec<Vec<HostAt>> = match ask.layout.same {
        Some(level) => pool.rooms.domains(level).iter().rev().take(DOMAINS).cloned().collect(),
        None => vec![pool.rooms.of_model(choice.need.model).to_vec()],
    };
    let mut best: Option<(i64, Vec<Moved>)> = None;
    for domain in domains {
        let mut attempt = Attempt {
            pool: &mut *pool,
            entitlement,
            ask,
            choice,
            workers,
            most_parts,
            most_moves,
            moved: Vec::new(),
            emptied: Vec::new(),
        };
        let done = attempt.empty(&domain);
        let moved = attempt.moved;
        let parts = parts_of(pool, &moved);
        for one in moved.iter().rev() {
            relocate(pool, one.job, &one.to, &one.from, true);
        }
        if done && !moved.is_empty() && best.as_ref().is_none_or(|(least, _)| parts < *least) {
            best = Some((parts, moved));
        }
    }
    let (_, moved) = best?;
    for one in &moved {
        relocate(pool, one.job, &one.from, &one.to, false);
    }
    let near: Vec<HostAt> = moved.iter().flat_map(|one| one.from.iter().map(|spot| spot.host)).collect();
    match pool.fit(ask, choice, workers, View::After, &near) {
        Some(spots) => Some((moved, spots)),
        None => {
            for one in moved.iter().rev() {
                relocate(pool, one.job, &one.to, &one.from, true);
            }
            None
        }
    }
}

struct Attempt<'p, 'a> {
    pool: &'p mut Pool<'a>,
    entitlement: &'p Entitlement,
    ask: &'p Ask<'a>,
    choice: &'p Choice,
    workers: u32,
    most_parts: i64,
    most_moves: usize,
    moved: Vec<Moved>,
    emptied: Vec<HostAt>,
}

impl Attempt<'_, '_> {
    /// Moves jobs out of hosts of a domain until it holds the asker.
    fn empty(&mut self, domain: &[HostAt]) -> bool {
        loop {
            let fits: u32 = domain
                .iter()
                .map(|host| self.pool.rooms.fits_on(*host, &self.choice.need, View::After, self.workers))
                .sum();
            if fits >= self.workers {
                return true;
            }
            let mut hosts: Vec<(i64, usize, std::cmp::Reverse<HostAt>, Vec<JobAt>)> = domain
                .iter()
                .filter(|host| !self.emptied.contains(host))
                .filter_map(|host| {
                    self.cheapest(*host).map(|(parts, jobs)| (parts, jobs.len(), std::cmp::Reverse(*host), jobs))
                })
                .collect();
            hosts.sort();
            if !hosts.into_iter().any(|(_, _, host, jobs)| self.try_host(host.0, &jobs)) {
                return false;
            }
        }
    }

    /// The fewest cards to move off a host so that one more worker fits there: first one job that is enough, else the smallest ones.
    fn cheapest(&self, host: HostAt) -> Option<(i64, Vec<JobAt>)> {
        let room = &self.pool.rooms;
        if !room.hosts[host].usable || room.hosts[host].model != self.choice.need.model {
            return None;
        }
        let already = room.fits_on(host, &self.choice.need, View::After, u32::MAX);
        let wanted = self.choice.need.parts.saturating_mul(i64::from(already) + 1);
        let size = i64::try_from(room.cards(host)).ok()?.saturating_mul(crate::pool::rooms::CARD);
        if wanted > size {
            return None;
        }
        let lacking = (wanted - room.free_parts(host, View::After)).max(1);
        let mut jobs: Vec<(i64, std::cmp::Reverse<JobAt>)> = (0..self.pool.jobs.len())
            .filter(|job| self.may_move(*job, host))
            .map(|job| {
                (self.pool.jobs[job].need.parts * i64::from(self.pool.jobs[job].workers), std::cmp::Reverse(job))
            })
            .collect();
        jobs.sort();
        if let Some((parts, job)) = jobs.iter().find(|(parts, _)| *parts >= lacking) {
            return Some((*parts, vec![job.0]));
        }
        let (mut sum, mut chosen) = (0, Vec::new());
        for (parts, job) in jobs.iter().rev() {
            sum += parts;
            chosen.push(job.0);
            if sum >= lacking {
                return Some((sum, chosen));
            }
        }
        None
    }

    fn try_host(&mut self, host: HostAt, jobs: &[JobAt]) -> bool {
        let before = self.moved.len();
        self.emptied.push(host);
        for job in jobs {
            let parts = parts_of(self.pool, &self.moved)
                + self.pool.jobs[*job].need.parts * i64::from(self.pool.jobs[*job].workers);
            if self.moved.len() >= self.most_moves || parts > self.most_parts || !self.move_away(*job) {
                while self.moved.len() > before {
                    if let Some(one) = self.moved.pop() {
                        relocate(self.pool, one.job, &one.to, &one.from, true);
                    }
                }
                return false;
            }
        }
        true
    }

    /// Seats a job on another host that has room at once.
    fn move_away(&mut self, job: JobAt) -> bool {
        let running = &self.pool.jobs[job];
        let layout = Layout { same: running.run.shape.same, prefer: running.run.shape.prefer, spread: false };
        let (need, workers, from) = (running.need, running.workers, running.spots.clone());
        for host in &self.emptied {
            self.pool.rooms.hosts[*host].usable = false;
        }
        let to = self.pool.rooms.place(&need, &layout, workers, View::Now, &[]);
        for host in &self.emptied {
            self.pool.rooms.hosts[*host].usable = true;
        }
        let Some(to) = to else { return false };
        relocate(self.pool, job, &from, &to, false);
        self.moved.push(Moved { job, from, to });
        true
    }

    /// Whether a job sits wholly on a host and may be moved for the asker.
    fn may_move(&self, job: JobAt, host: HostAt) -> bool {
        let running = &self.pool.jobs[job];
        let run = running.run;
        let at = self.pool.at();
        let cooling = run
            .last_preempted
            .and_then(|ended| ended.checked_add_ms(self.pool.policy.cool_down_ms))
            .is_some_and(|until| at < until);
        !running.gone
            && !running.disturbed
            && running.workers > 0
            && running.spots.len() == running.workers as usize
            && running.spots.iter().all(|spot| spot.host == host)
            && run.preemptible
            && run.restartable
            && !cooling
            && !run.critical.as_ref().is_some_and(|window| window.holds_at(at))
            && self.moved.iter().all(|moved| moved.job != job)
            && self.gives_way(running.queue)
    }

    /// A queue's work moves for its own jobs, for an asker within its quota, and where the queue has more than its share.
    fn gives_way(&self, queue: QueueAt) -> bool {
        if queue == self.ask.queue {
            return true;
        }
        let tree = &self.pool.tree;
        let amounts = times(&self.choice.each, self.workers);
        let used = |node: QueueAt, r: usize| tree.total(&self.pool.after, node, r);
        // Queues of two trees share no quota, but hosts: their whole trees are compared.
        let root = |of: QueueAt| tree.path(of).last().unwrap_or(of);
        let (mine, theirs) =
            tree.branches(self.ask.queue, queue).unwrap_or_else(|| (root(self.ask.queue), root(queue)));
        let owner = amounts
            .iter()
            .all(|(r, amount)| tree.deserved(mine, *r).is_some_and(|quota| used(mine, *r) + amount <= quota));
        let above = match self.pool.policy.fairness {
            Fairness::DeservedShare => {
                amounts.iter().any(|(r, _)| used(theirs, *r) > self.entitlement.fair(theirs, *r))
            }
            _ => amounts.iter().any(|(r, _)| tree.deserved(theirs, *r).is_some_and(|quota| used(theirs, *r) > quota)),
        };
        owner || above
    }
}

fn parts_of(pool: &Pool<'_>, moved: &[Moved]) -> i64 {
    moved.iter().map(|one| pool.jobs[one.job].need.parts * i64::from(pool.jobs[one.job].workers)).sum()
}

/// Seats a job's workers elsewhere. It holds both places until it has moved, so *now* keeps the old one; `undo` takes a move back.
fn relocate(pool: &mut Pool<'_>, job: JobAt, from: &[Spot], to: &[Spot], undo: bool) {
    let need = pool.jobs[job].need;
    let (leave, enter): (&[View], &[View]) =
        if undo { (&[View::Now, View::After], &[View::After]) } else { (&[View::After], &[View::Now, View::After]) };
    for spot in from {
        pool.rooms.release(spot, &need, leave);
    }
    for spot in to {
        pool.rooms.take(spot, &need, enter);
    }
    pool.jobs[job].spots = to.to_vec();
}
