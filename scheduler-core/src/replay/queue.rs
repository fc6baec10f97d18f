//! How long jobs wait in their tenants' pools, with a queue that stops at the first job that doesn't fit, as the Philly trace is usually replayed.
//!
//! Each tenant is a pool of hosts of its own. At each instant jobs that are finished give their cards back, then jobs that arrive enter the queue, then the queue is
//! scanned in order until a job doesn't fit. Nobody is preempted. A job as large as a host or smaller gets cards of one host: the one with fewest
//! free cards that still has enough, the lowest index among equals. A larger one gets whole free hosts and, for what is over, cards of one more:
//! hosts by free cards, most first, lowest index among equals, and the one after its whole hosts has room for the rest or the job doesn't fit. A job larger
//! than its pool is rejected.
//!
//! Start at [`Trace`]. Instants and spans are milliseconds.

use super::rows::{self, Row, RowFaults};
use cardhour_domain::{Interval, Timestamp, Zone};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::num::NonZeroU64;

mod time;

/// Hosts of a pool at most.
const MOST_HOSTS: u64 = 1_000_000;

/// Cards of a job, or of a host, at most.
const MOST_CARDS: u64 = 10_000_000;

/// In what order a queue is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// By submission, then by row in the file.
    Fifo,
    /// Shortest job first: by duration, then as in a fifo.
    Sjf,
}

/// A job of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Whose it is.
    pub tenant: String,
    /// When it was submitted.
    pub submit: Timestamp,
    /// How long it runs once started.
    pub duration_ms: i64,
    /// How many cards it takes.
    pub cards: u64,
}

/// The jobs of a file and the pools of their tenants.
#[derive(Clone, Debug)]
pub struct Trace {
    jobs: Vec<Job>,
    /// Hosts by tenant.
    pools: BTreeMap<String, u64>,
}

/// What came of a tenant's jobs, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Jobs that ran.
    pub jobs: u64,
    /// Jobs larger than their pool.
    pub rejected: u64,
    /// Jobs that didn't start when they were submitted.
    pub queued: u64,
    /// From submission to start, all jobs together.
    pub queueing_ms: i128,
    /// From submission to end, all jobs together.
    pub completion_ms: i128,
    /// The most cards held at once.
    pub peak_cards: u64,
}

impl Waits {
    /// The mean time from submission to start, rounded half up. None where no job ran.
    pub fn mean_queueing_ms(&self) -> Option<i128> {
        mean(self.queueing_ms, self.jobs)
    }

    /// The mean time from submission to end, rounded half up. None where no job ran.
    pub fn mean_completion_ms(&self) -> Option<i128> {
        mean(self.completion_ms, self.jobs)
    }
}

fn mean(sum: i128, count: u64) -> Option<i128> {
    let count = i128::from(count);
    (count > 0).then(|| (2 * sum + count).div_euclid(2 * count))
}

/// What came of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// By tenant, every one that has a pool.
    pub tenants: BTreeMap<String, Waits>,
    /// All tenants together; its peak is of one instant.
    pub total: Waits,
    /// Jobs inside the span whose tenant has no pool.
    pub without_pool: u64,
    /// Jobs outside the span.
    pub outside: u64,
}

impl Trace {
    /// Of a file of jobs (columns timestamp, UTC; duration, seconds; num_gpus; cluster, which is the tenant) and one of pools (vc, the tenant; node num, its
    /// hosts), both csv with a header; further columns are passed over. Errors: all faults of the first file that has any.
    pub fn read(jobs: (&str, &[u8]), pools: (&str, &[u8])) -> Result<Self, RowFaults> {
        let jobs = rows::read(jobs.0, jobs.1, &["timestamp", "duration", "num_gpus", "cluster"], |row| {
            let (submit, duration, cards) = (timestamp(row, 0), duration(row, 1), row.whole(2, MOST_CARDS));
            let tenant = row.text(3)?;
            Some(Job { tenant, submit: submit?, duration_ms: duration?, cards: cards? })
        })?;
        let mut seen = BTreeSet::new();
        let pools = rows::read(pools.0, pools.1, &["vc", "node num"], |row| {
            let (tenant, hosts) = (row.text(0)?, row.whole(1, MOST_HOSTS));
            if !seen.insert(tenant.clone()) {
                row.fault(0, format!("{tenant:?} has a pool already"));
            }
            Some((tenant, hosts?))
        })?;
        Ok(Self { jobs, pools: pools.into_iter().collect() })
    }

    /// Its jobs, in the order of the file.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// The whole months (UTC) that lie between the first and the last submission: those of which the trace has every job. None where there isn't one.
    pub fn whole_months(&self) -> Option<Interval> {
        let first = self.jobs.iter().map(|job| job.submit).min()?;
        let last = self.jobs.iter().map(|job| job.submit).max()?;
        let month = Zone::UTC.month(first)?;
        let start = month.interval(Zone::UTC).start();
        let from = if start == first { start } else { month.next().interval(Zone::UTC).start() };
        Interval::new(from, Zone::UTC.month(last)?.interval(Zone::UTC).start())
    }

    /// Plays the jobs submitted in `span` (all without one) in pools of hosts of `cards_per_host` cards.
    pub fn replay(&self, order: Order, span: Option<Interval>, cards_per_host: NonZeroU64) -> Outcome {
        let mut outcome = Outcome::default();
        let mut by_tenant: BTreeMap<&str, Vec<(usize, &Job)>> = BTreeMap::new();
        for (row, job) in self.jobs.iter().enumerate() {
            if span.is_some_and(|span| !span.contains(job.submit)) {
                outcome.outside += 1;
            } else if self.pools.contains_key(&job.tenant) {
                by_tenant.entry(&job.tenant).or_default().push((row, job));
            } else {
                outcome.without_pool += 1;
            }
        }
        let mut held = Vec::new();
        for (tenant, &hosts) in &self.pools {
            let mut pool = Pool::new(hosts, cards_per_host.get());
            let jobs = by_tenant.remove(tenant.as_str()).unwrap_or_default();
            let waits = pool.play(order, jobs);
            let total = &mut outcome.total;
            total.jobs += waits.jobs;
            total.rejected += waits.rejected;
            total.queued += waits.queued;
            total.queueing_ms += waits.queueing_ms;
            total.completion_ms += waits.completion_ms;
            held.append(&mut pool.held);
            outcome.tenants.insert(tenant.clone(), waits);
        }
        outcome.total.peak_cards = peak(held);
        outcome
    }
}

/// The most that is held at once, of takings (above zero) and givings back, each with its instant. What is given back at an instant is free at it.
fn peak(mut held: Vec<(i64, i64)>) -> u64 {
    held.sort_unstable();
    let mut now = 0_i64;
    let peak = held.into_iter().map(|(_, cards)| {
        now += cards;
        now
    });
    peak.max().unwrap_or(0).unsigned_abs()
}

/// A tenant's hosts, and what runs there.
struct Pool {
    cards_per_host: u64,
    /// Free cards by host.
    free: Vec<u64>,
    /// What ends next on top.
    running: BinaryHeap<Reverse<Running>>,
    /// Takings and givings back, each with its instant.
    held: Vec<(i64, i64)>,
}

/// A job that runs; those that end first are the least.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Running {
    end_unix_ms: i64,
    row: usize,
    place: Place,
}

/// Hosts, and how many cards of each.
type Place = Vec<(usize, u64)>;

impl Pool {
    fn new(hosts: u64, cards_per_host: u64) -> Self {
        let free = vec![cards_per_host; hosts as usize];
        Self { cards_per_host, free, running: BinaryHeap::new(), held: Vec::new() }
    }

    fn play(&mut self, order: Order, mut jobs: Vec<(usize, &Job)>) -> Waits {
        let mut waits = Waits::default();
        let capacity = self.cards_per_host * self.free.len() as u64;
        let all = jobs.len();
        jobs.retain(|(_, job)| job.cards <= capacity);
        waits.rejected = (all - jobs.len()) as u64;
        jobs.sort_by_key(|&(row, job)| (job.submit, row));
        let mut coming = jobs.into_iter().peekable();
        let mut queue: BTreeMap<(i64, Timestamp, usize), &Job> = BTreeMap::new();
        loop {
            let arrives = coming.peek().map(|(_, job)| job.submit.unix_ms());
            let ends = self.running.peek().map(|Reverse(next)| next.end_unix_ms);
            let Some(now) = arrives.into_iter().chain(ends).min() else { break };
            self.release(now);
            while let Some((row, job)) = coming.next_if(|(_, job)| job.submit.unix_ms() == now) {
                let first = match order {
                    Order::Fifo => 0,
                    Order::Sjf => job.duration_ms,
                };
                queue.insert((first, job.submit, row), job);
            }
            while let Some(next) = queue.first_entry() {
                let (row, job) = (next.key().2, *next.get());
                let Some(place) = self.place(job.cards) else { break };
                next.remove();
                self.start(now, row, job, place);
                let queueing_ms = now - job.submit.unix_ms();
                waits.jobs += 1;
                waits.queued += u64::from(queueing_ms > 0);
                waits.queueing_ms += i128::from(queueing_ms);
                waits.completion_ms += i128::from(queueing_ms + job.duration_ms);
            }
        }
        assert!(queue.is_empty(), "a job that is no larger than its pool starts at last");
        waits.peak_cards = peak(self.held.clone());
        waits
    }

    fn release(&mut self, now: i64) {
        while let Some(Reverse(next)) = self.running.peek()
            && next.end_unix_ms <= now
        {
            let Reverse(ended) = self.running.pop().expect("it was looked at");
            for (host, cards) in ended.place {
                self.free[host] += cards;
                assert!(self.free[host] <= self.cards_per_host, "no card is given back twice");
            }
        }
    }

    fn start(&mut self, now: i64, row: usize, job: &Job, place: Place) {
        for &(host, cards) in &place {
            self.free[host] = self.free[host].checked_sub(cards).expect("no card is given twice");
        }
        let (end_unix_ms, cards) = (now + job.duration_ms, job.cards as i64);
        self.held.extend([(now, cards), (end_unix_ms, -cards)]);
        self.running.push(Reverse(Running { end_unix_ms, row, place }));
    }

    /// The hosts for a job and how many cards of each; none where it doesn't fit now.
    fn place(&self, cards: u64) -> Option<Place> {
        if cards == 0 {
            return Some(Vec::new());
        }
        if cards <= self.cards_per_host {
            let with_room = self.free.iter().enumerate().filter(|&(_, &free)| free >= cards);
            return with_room.min_by_key(|&(_, &free)| free).map(|(host, _)| vec![(host, cards)]);
        }
        let mut hosts: Vec<usize> = (0..self.free.len()).collect();
        hosts.sort_by_key(|&host| Reverse(self.free[host]));
        let (whole, rest) = (cards / self.cards_per_host, cards % self.cards_per_host);
        let wanted = std::iter::repeat_n(self.cards_per_host, whole as usize).chain((rest > 0).then_some(rest));
        let place: Place = hosts.into_iter().zip(wanted).collect();
        let is_whole = place.iter().map(|&(_, cards)| cards).sum::<u64>() == cards;
        (is_whole && place.iter().all(|&(host, cards)| self.free[host] >= cards)).then_some(place)
    }
}

fn timestamp(row: &mut Row<'_>, field: usize) -> Option<Timestamp> {
    let text = row.text(field)?;
    let at = time::instant(&text);
    if at.is_none() {
        row.fault(field, format!("{text:?} is no time such as 2017-10-01 06:30:00"));
    }
    at
}

fn duration(row: &mut Row<'_>, field: usize) -> Option<i64> {
    let text = row.text(field)?;
    let duration_ms = time::span_ms(&text);
    if duration_ms.is_none() {
        row.fault(field, format!("{text:?} is no number of seconds, with at most three decimals that aren't zero"));
    }
    duration_ms
}

#[cfg(test)]
mod tests;
