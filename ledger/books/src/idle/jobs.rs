//! From what is quiet on each device to what is idle of each job.

use super::{IdlePolicy, Scene, Standing, quiet_stretches};
use crate::holdings::Holding;
use crate::split::{AttemptFacts, by_device, segments};
use crate::telemetry::Telemetry;
use cardhour_domain::{AttemptKey, Interval, Name, Timestamp};
use std::collections::{BTreeMap, HashSet};

/// What is idle of some holdings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    /// When each holding was idle, by its index: in order, disjoint, inside the holding. All of its job's cards were at that time (R20).
    pub by_holding: BTreeMap<u32, Vec<Interval>>,
    /// What did nothing and isn't idle, by holding and time.
    pub advice: Vec<Advice>,
}

/// A card did nothing, and that isn't idle: a line for its holder to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Advice {
    /// Index of the holding.
    pub holding: u32,
    /// When.
    pub during: Interval,
    /// Why it isn't idle.
    pub reason: AdviceReason,
}

/// Why a card that does nothing isn't idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdviceReason {
    /// Inference waits for requests.
    Inference,
    /// Other cards of the job work, or weren't seen.
    OtherCards,
}

/// What an attempt held on one device, and when it was quiet there. Both in order and without overlap.
struct OnDevice {
    held: Vec<Interval>,
    quiet: Vec<Interval>,
}

/// When each holding was idle. `facts`: of attempts that aren't in it, nothing is known.
///
/// `holdings`: all of the attempts that are judged, over the time that is judged. Pieces of one holding count as one: where it is cut changes
/// nothing (LED-7). A job with a card that nobody saw, or that no record names, isn't idle then.
pub fn idle(
    holdings: &[Holding],
    facts: &BTreeMap<AttemptKey, AttemptFacts>,
    telemetry: &Telemetry,
    policy: &IdlePolicy,
) -> Idle {
    let devices = by_device(holdings);
    let is_read = |(card, device): &(&Name, &Name)| !telemetry.device(card, device).is_empty();
    // Of a site with records and few collectors, most attempts were never seen.
    let read = devices.iter().filter(|(device, _)| is_read(device));
    let seen: HashSet<&AttemptKey> =
        read.flat_map(|(_, on)| on).map(|index| &holdings[*index as usize].claim.key).collect();
    let mut since: BTreeMap<&AttemptKey, Timestamp> = BTreeMap::new();
    let mut nowhere: BTreeMap<&AttemptKey, Vec<Interval>> = BTreeMap::new();
    for holding in holdings.iter().filter(|holding| seen.contains(&holding.claim.key)) {
        let start = holding.claim.during.start().min(holding.during.start());
        let first = since.entry(&holding.claim.key).or_insert(start);
        *first = start.min(*first);
        if holding.claim.card_uuid.is_none() && !holding.share.is_zero() {
            nowhere.entry(&holding.claim.key).or_default().push(holding.during);
        }
    }
    let mut attempts: BTreeMap<&AttemptKey, BTreeMap<(&Name, &Name), OnDevice>> = BTreeMap::new();
    for (&(card, device), on) in &devices {
        let shared = shared(holdings, on);
        let mut held: BTreeMap<&AttemptKey, Vec<Interval>> = BTreeMap::new();
        for index in on {
            let holding = &holdings[*index as usize];
            if seen.contains(&holding.claim.key) {
                held.entry(&holding.claim.key).or_default().push(holding.during);
            }
        }
        for (key, held) in held {
            let held = Interval::union(held);
            let (grace_ms, _) = policy.of_class(facts.get(key).and_then(|facts| facts.class.as_deref()));
            let judged_from = Timestamp::from_unix_ms(since[key].unix_ms().saturating_add(grace_ms));
            let stretch = |during: &Interval| {
                let scene = Scene {
                    during: *during,
                    judged_from,
                    device: telemetry.device(card, device),
                    holder: telemetry.holder(device, key),
                    power: telemetry.power.get(card).copied().filter(|_| card == device),
                    shared: &shared,
                };
                quiet_stretches(&scene, policy)
            };
            let quiet = held.iter().flat_map(stretch).collect();
            attempts.entry(key).or_default().insert((card, device), OnDevice { held, quiet });
        }
    }
    let mut found = Idle::default();
    let together: BTreeMap<&AttemptKey, Vec<Interval>> = attempts
        .iter()
        .map(|(key, devices)| {
            (*key, together(devices.values(), nowhere.get(key).map(Vec::as_slice).unwrap_or_default()))
        })
        .collect();
    for ((card, device), on) in &devices {
        for &index in on {
            let holding = &holdings[index as usize];
            let key = &holding.claim.key;
            let Some(own) = attempts.get(key).map(|devices| devices[&(*card, *device)].quiet.as_slice()) else {
                continue;
            };
            let own = within(own, holding.during);
            let (_, standing) = policy.of_class(facts.get(key).and_then(|facts| facts.class.as_deref()));
            let (idle, reason) = match standing {
                Standing::Counts => (within(&together[key], holding.during), AdviceReason::OtherCards),
                Standing::AdviceOnly => (Vec::new(), AdviceReason::Inference),
            };
            let rest = without(&own, &idle);
            found.advice.extend(rest.into_iter().map(|during| Advice { holding: index, during, reason }));
            if !idle.is_empty() {
                found.by_holding.insert(index, idle);
            }
        }
    }
    found.advice.sort();
    found
}

/// When several attempts held parts of a device at once.
fn shared(holdings: &[Holding], on: &[u32]) -> Vec<Interval> {
    let mut shared = Vec::new();
    segments(holdings, on, |during, active| {
        let key = |place: &usize| &holdings[on[*place] as usize].claim.key;
        if active.iter().any(|place| key(place) != key(&active[0])) {
            shared.push(during);
        }
    });
    Interval::union(shared)
}

/// When all that is held is quiet: on every device that is held at that time, and nothing is held that can't be seen.
fn together<'a>(devices: impl Iterator<Item = &'a OnDevice>, nowhere: &[Interval]) -> Vec<Interval> {
    // At each edge, how many more are held and how many more are quiet.
    let mut edges: Vec<(Timestamp, i32, i32)> = Vec::new();
    let mut add = |during: &Interval, held: i32, quiet: i32| {
        edges.push((during.start(), held, quiet));
        edges.push((during.end(), -held, -quiet));
    };
    for device in devices {
        device.held.iter().for_each(|during| add(during, 1, 0));
        device.quiet.iter().for_each(|during| add(during, 0, 1));
    }
    nowhere.iter().for_each(|during| add(during, 1, 0));
    edges.sort_unstable();
    let mut all = Vec::new();
    let (mut held, mut quiet) = (0, 0);
    let mut since: Option<Timestamp> = None;
    for (at, more_held, more_quiet) in edges {
        if held > 0 && held == quiet {
            all.extend(since.and_then(|since| Interval::new(since, at)));
        }
        held += more_held;
        quiet += more_quiet;
        since = Some(at);
    }
    Interval::union(all)
}

/// The parts of `stretches` in `during`.
fn within(stretches: &[Interval], during: Interval) -> Vec<Interval> {
    let first = stretches.partition_point(|stretch| stretch.end() <= during.start());
    stretches[first..].iter().map_while(|stretch| stretch.overlap(during)).collect()
}

/// What of `stretches` isn't in `others`. Both in order and without overlap.
fn without(stretches: &[Interval], others: &[Interval]) -> Vec<Interval> {
    let mut left = Vec::new();
    for stretch in stretches {
        let mut at = stretch.start();
        for other in within(others, *stretch) {
            left.extend(Interval::new(at, other.start()));
            at = other.end();
        }
        left.extend(Interval::new(at, stretch.end()));
    }
    left
}
