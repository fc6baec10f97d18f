//! How much of a pool's cards a policy gets into use, as FGD's authors measure it (USENIX ATC 2023, figure 9a).
//!
//! All requests of a list arrive once, in an order that the seed makes; then requests are drawn from the list, each as likely as the others, until the
//! next would take what was asked for past 130 % of the pool's cards. Nobody leaves. A request that fits nowhere is dropped, and counts as arrived. At a
//! load of x %, the allocation is the mean, over the arrivals after which what arrived rounds to x % of the cards, of what is in use.
//!
//! Start at [`Trace`].

use super::rows::{self, RowFaults};
use crate::chance::{Chance, Purpose};
use crate::placement::{CARD_MILLI, Host, Models, Placer, Policy, Request, TypicalMix};
use std::collections::BTreeMap;

/// What arrives in all, as a percentage of the pool's cards.
pub const MOST_LOAD_PERCENT: u64 = 130;

/// Arrivals that a replay has at most.
const MOST_ARRIVALS: usize = 10_000_000;

/// Processor time of a host or a request at most: a million cores.
const MOST_CPU_MILLI: u64 = 1_000_000_000;

/// Memory of a host or a request at most: an exbibyte.
const MOST_MEMORY_MIB: u64 = 1 << 40;

/// Cards of a host or a request at most.
const MOST_CARDS: u64 = 1024;

/// Why nothing can be replayed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TraceError {
    /// A list with faults.
    #[error(transparent)]
    Rows(#[from] RowFaults),
    /// Hosts without cards.
    #[error("none of the hosts has a card, so there is no allocation to speak of")]
    NoCards,
    /// Requests without cards never fill a pool.
    #[error("none of the requests asks for a card")]
    NothingAsked,
    /// Requests too small for the pool.
    #[error("the requests are so small that more than {MOST_ARRIVALS} would arrive")]
    TooMany,
}

/// A pool and what is asked of it.
#[derive(Clone, Debug)]
pub struct Trace {
    hosts: Vec<Host>,
    requests: Vec<Request>,
    /// Thousandths of a card.
    capacity_milli: u64,
}

/// A file with the name by which its faults are told.
#[derive(Clone, Copy, Debug)]
pub struct Source<'s> {
    /// Its name.
    pub name: &'s str,
    /// What is in it.
    pub bytes: &'s [u8],
}

impl Trace {
    /// Of a list of hosts (columns cpu_milli, memory_mib, gpu, model) and one of requests (cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec), both csv
    /// with a header; further columns are passed over. Errors: all faults of the first list that has any; no cards; nothing asked.
    pub fn read(hosts: Source<'_>, requests: Source<'_>) -> Result<Self, TraceError> {
        let mut models = Models::default();
        Self::new(read_hosts(hosts, &mut models)?, read_requests(requests, &mut models)?)
    }

    /// Of hosts and requests. Errors: no cards; nothing asked.
    pub fn new(hosts: Vec<Host>, requests: Vec<Request>) -> Result<Self, TraceError> {
        let capacity_milli = hosts.iter().map(Host::total_card_milli_left).sum();
        let asked_milli: u64 = requests.iter().map(Request::total_card_milli).sum();
        match (capacity_milli, asked_milli) {
            (0, _) => Err(TraceError::NoCards),
            (_, 0) => Err(TraceError::NothingAsked),
            _ => Ok(Self { hosts, requests, capacity_milli }),
        }
    }

    /// How many hosts there are.
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// How many requests are on the list.
    pub fn request_count(&self) -> usize {
        self.requests.len()
    }

    /// Their cards, thousandths of one.
    pub const fn capacity_milli(&self) -> u64 {
        self.capacity_milli
    }

    /// Which requests arrive, in that order: indexes into the list. Errors: far too many.
    pub fn arrivals(&self, seed: u64) -> Result<Vec<usize>, TraceError> {
        let mut chance = Chance::new(seed, Purpose::Arrivals);
        let mut arrivals: Vec<usize> = (0..self.requests.len()).collect();
        chance.shuffle(&mut arrivals);
        let mut arrived_milli: u64 = self.requests.iter().map(Request::total_card_milli).sum();
        loop {
            let next = chance.below(self.requests.len());
            arrived_milli += self.requests[next].total_card_milli();
            if arrived_milli * 100 > self.capacity_milli * MOST_LOAD_PERCENT {
                return Ok(arrivals);
            }
            if arrivals.len() == MOST_ARRIVALS {
                return Err(TraceError::TooMany);
            }
            arrivals.push(next);
        }
    }

    /// Plays the trace. The seed decides arrivals and the order of the hosts, the same for every policy. Errors: far too many arrivals.
    pub fn replay(&self, policy: Policy, seed: u64) -> Result<Curve, TraceError> {
        let mut hosts = self.hosts.clone();
        Chance::new(seed, Purpose::Hosts).shuffle(&mut hosts);
        let mix: TypicalMix = policy.mix(&self.requests);
        let mut placer = Placer::new(policy, hosts, &mix, seed);
        let mut curve = Curve { capacity_milli: self.capacity_milli, sums: BTreeMap::new() };
        let (mut arrived_milli, mut used_milli) = (0, 0);
        for index in self.arrivals(seed)? {
            let request = &self.requests[index];
            arrived_milli += request.total_card_milli();
            if let Some(place) = placer.choose(request) {
                placer.take(request, &place);
                used_milli += request.total_card_milli();
            }
            curve.add(arrived_milli, used_milli);
        }
        // Seen from the other side: what is gone from the cards is what was counted.
        let left_milli: u64 = placer.hosts().map(Host::total_card_milli_left).sum();
        assert_eq!(used_milli + left_milli, self.capacity_milli, "no card milli is made or lost");
        Ok(curve)
    }
}

/// What was in use at each load, in one replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    capacity_milli: u64,
    /// By load in percent: the sum of what was in use (thousandths of a card), and over how many arrivals.
    sums: BTreeMap<u64, (u128, u64)>,
}

impl Curve {
    fn add(&mut self, arrived_milli: u64, used_milli: u64) {
        let load_percent = (arrived_milli * 200 + self.capacity_milli) / (2 * self.capacity_milli);
        let (sum, count) = self.sums.entry(load_percent).or_default();
        *sum += u128::from(used_milli);
        *count += 1;
    }

    /// The loads at which something arrived, rising, percent.
    pub fn loads_percent(&self) -> impl Iterator<Item = u64> {
        self.sums.keys().copied()
    }

    /// The allocation at a load, millionths of the pool's cards, rounded half up. None where nothing arrived at that load.
    pub fn allocation_ppm(&self, load_percent: u64) -> Option<u64> {
        let &(sum, count) = self.sums.get(&load_percent)?;
        let under = u128::from(count) * u128::from(self.capacity_milli);
        Some(((sum * 2_000_000 + under) / (2 * under)) as u64)
    }
}

/// The mean over several replays of the allocation at a load, millionths, rounded half up. None where some replay has none, or there is no replay.
pub fn mean_allocation_ppm(curves: &[Curve], load_percent: u64) -> Option<u64> {
    let each = curves.iter().map(|curve| curve.allocation_ppm(load_percent));
    let sum: u64 = each.sum::<Option<u64>>()?;
    let count = curves.len() as u64;
    (count > 0).then(|| (sum * 2 + count) / (2 * count))
}

fn read_hosts(source: Source<'_>, models: &mut Models) -> Result<Vec<Host>, RowFaults> {
    let fields = ["cpu_milli", "memory_mib", "gpu", "model"];
    rows::read(source.name, source.bytes, &fields, |row| {
        let (cpu, memory) = (row.whole(0, MOST_CPU_MILLI), row.whole(1, MOST_MEMORY_MIB));
        let (cards, name) = (row.whole(2, MOST_CARDS), row.text(3)?);
        let id = if name.is_empty() { None } else { models.id(&name) };
        if !name.is_empty() && id.is_none() {
            row.fault(3, "more than 65,536 models");
        }
        Some(Host {
            model: id,
            cpu_milli_left: cpu?,
            memory_mib_left: memory?,
            card_milli_left: vec![CARD_MILLI; cards? as usize],
        })
    })
}

fn read_requests(source: Source<'_>, models: &mut Models) -> Result<Vec<Request>, RowFaults> {
    let fields = ["cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"];
    rows::read(source.name, source.bytes, &fields, |row| {
        let (cpu, memory) = (row.whole(0, MOST_CPU_MILLI), row.whole(1, MOST_MEMORY_MIB));
        let (cards, milli) = (row.whole(2, MOST_CARDS), row.whole(3, u64::from(CARD_MILLI)));
        let names = row.text(4)?;
        let ids: Option<Vec<_>> =
            names.split('|').map(str::trim).filter(|name| !name.is_empty()).map(|name| models.id(name)).collect();
        if ids.is_none() {
            row.fault(4, "more than 65,536 models");
        }
        let (cards, milli, mut ids) = (cards?, milli?, ids?);
        ids.sort_unstable();
        ids.dedup();
        let card_milli = match cards {
            0 => 0,
            1 if milli == 0 => {
                row.fault(3, "of a card that is asked for, nothing is");
                return None;
            }
            1 => milli as u32,
            // More than one card is whole cards.
            _ => CARD_MILLI,
        };
        Some(Request { cpu_milli: cpu?, memory_mib: memory?, cards: cards as u32, card_milli, models: ids })
    })
}

#[cfg(test)]
mod tests;
