//! One tick as rows: what cards said and who held them, joined. Pure.
//!
//! A look proves who holds what at its instant; a row says so from there to the next tick, so that what ends in between is held at most one tick
//! too long, and a collector that was restarted leaves no overlap.

use crate::holders::{Held, Look, Worked};
use crate::probe::TickReadings;
use crate::sampler::{Stepped, WAIT_FOR_CLOCK_MS};
use cardhour_domain::columns::Rows;
use cardhour_domain::{
    Activity, AttemptKey, Gap, Interval, Name, NodeEvent, Observation, Percent, Reading, Sample, SeenDevice, Timestamp,
    Watch,
};
use std::collections::{BTreeMap, BTreeSet};

/// Makes the rows of each tick.
#[derive(Clone, Debug)]
pub struct RowMaker {
    cluster: Name,
    node: Name,
    step_ms: i64,
    /// Who was seen on which device at the tick before, and when that was.
    before: BTreeSet<(AttemptKey, Name)>,
    /// The last tick that was told, on the wall clock.
    last_tick: Option<Timestamp>,
}

impl RowMaker {
    /// For a node.
    pub fn new(cluster: Name, node: Name, step_ms: i64) -> Self {
        Self { cluster, node, step_ms, before: BTreeSet::new(), last_tick: None }
    }

    /// The rows of one tick. `devices`: what changed of the node's devices. Shape: one batch a stream, empty ones left out.
    pub fn rows(
        &mut self,
        readings: &TickReadings,
        stepped: Stepped,
        look: Look,
        devices: Vec<SeenDevice>,
    ) -> Vec<Rows> {
        let Stepped { mut samples, between, events: of_values } = stepped;
        let mut events: Vec<NodeEvent> = readings.events.clone();
        events.extend(of_values);
        events.extend(look.events.iter().map(|event| event.row(readings.at.wall, &self.node)));
        let activity = self.activity(&samples, &look.worked);
        name_holders(&mut samples, &look.held);
        // Who holds a card now says nothing of that time.
        samples.splice(0..0, between);
        let observations = self.observations(readings.tick, look.held);
        let watches = match self.from(readings.tick) {
            Some(during) => look.watched.into_iter().map(|card_uuid| self.watch(card_uuid, during)).collect(),
            None => Vec::new(),
        };
        if self.from(readings.tick).is_some() {
            self.last_tick = Some(readings.tick);
        }
        let all = [
            Rows::Observations(observations),
            Rows::Watches(watches),
            Rows::Devices(devices),
            Rows::Events(events),
            Rows::Samples(samples),
            Rows::Activity(activity),
        ];
        all.into_iter().filter(|rows| !rows.is_empty()).collect()
    }

    /// From a tick to the next. None where the clock was set back and the time was told before, as samples have it.
    fn from(&self, tick: Timestamp) -> Option<Interval> {
        if self.last_tick.is_some_and(|last| tick <= last && last.ms_since(tick) <= WAIT_FOR_CLOCK_MS) {
            return None;
        }
        Interval::new(tick, Timestamp::from_unix_ms(tick.unix_ms() + self.step_ms))
    }

    fn watch(&self, card_uuid: Name, during: Interval) -> Watch {
        Watch { during, node: self.node.clone(), cluster: self.cluster.clone(), card_uuid }
    }

    fn observations(&mut self, tick: Timestamp, held: Vec<Held>) -> Vec<Observation> {
        let Some(whole) = self.from(tick) else { return Vec::new() };
        let seen = held.iter().map(|held| (held.holder.key(), held.device_uuid.clone())).collect();
        let before = std::mem::replace(&mut self.before, seen);
        let last = self.last_tick;
        let node = self.node.clone();
        let observation = |held: Held| {
            // Of one that wasn't there at the tick before, its scheduler may say when between the two it came.
            let is_new = !before.contains(&(held.holder.key(), held.device_uuid.clone()));
            let came =
                held.holder.started_at.filter(|at| is_new && last.is_some_and(|last| last <= *at && *at <= tick));
            Observation {
                during: Interval::new(came.unwrap_or(whole.start()), whole.end())
                    .expect("it came before the tick's end"),
                node: node.clone(),
                card_uuid: held.card_uuid,
                device_uuid: held.device_uuid,
                mig_profile: None,
                share: held.share,
                source: held.source,
                holder: held.holder,
                owner: held.owner,
            }
        };
        held.into_iter().map(observation).collect()
    }

    /// What each holder did over the time that its device's sample is of.
    fn activity(&self, samples: &[Sample], worked: &[Worked]) -> Vec<Activity> {
        let by_device: BTreeMap<&Name, &Sample> = samples.iter().map(|sample| (&sample.device_uuid, sample)).collect();
        let mut on: BTreeMap<&Name, Vec<&Worked>> = BTreeMap::new();
        for work in worked {
            on.entry(&work.device_uuid).or_default().push(work);
        }
        let mut out = Vec::with_capacity(worked.len());
        for (device, all) in on {
            let Some(sample) = by_device.get(device) else { continue };
            for (work, sm_active_pct) in all.iter().zip(parts(sample.sm_active_pct, &all)) {
                out.push(Activity {
                    during: sample.during,
                    node: self.node.clone(),
                    card_uuid: work.card_uuid.clone(),
                    device_uuid: work.device_uuid.clone(),
                    holder: work.holder.clone(),
                    processes: work.processes,
                    sm_active_pct,
                    mem_used_bytes: work.mem_used_bytes,
                    cpu_ms: work.cpu_ms,
                    io_bytes: work.io_bytes,
                    is_attended: work.is_attended,
                });
            }
        }
        out
    }
}

/// Each holder's part of a device's busy time: all of it where there is one, by weight where there are several and each has one.
fn parts(busy: Reading<Percent>, on: &[&Worked]) -> Vec<Reading<Percent>> {
    let busy = match busy {
        Reading::Seen(busy) => busy,
        Reading::Missing(gap) => return vec![Reading::Missing(gap); on.len()],
    };
    if on.len() == 1 {
        return vec![Reading::Seen(busy)];
    }
    let weights: Option<Vec<u64>> = on.iter().map(|work| work.work_weight.seen()).collect();
    let total: u128 = weights.iter().flatten().map(|weight| u128::from(*weight)).sum();
    let Some(weights) = weights.filter(|_| total > 0 || busy.thousandths() == 0) else {
        return vec![Reading::Missing(Gap::NotRecorded); on.len()];
    };
    let part = |weight: u64| {
        // Cut, so that parts add up to no more than the whole.
        let thousandths = u128::from(weight) * u128::from(busy.thousandths().unsigned_abs()) / total.max(1);
        let percent = i32::try_from(thousandths).ok().and_then(Percent::from_thousandths);
        percent.map_or(Reading::Missing(Gap::Implausible), Reading::Seen)
    };
    weights.into_iter().map(part).collect()
}

/// Writes into each sample who held its device, where it is one.
fn name_holders(samples: &mut [Sample], held: &[Held]) {
    let mut holders: BTreeMap<&Name, BTreeSet<AttemptKey>> = BTreeMap::new();
    for held in held {
        holders.entry(&held.device_uuid).or_default().insert(held.holder.key());
    }
    for sample in samples {
        if let Some(keys) = holders.get(&sample.device_uuid)
            && let (1, Some(key)) = (keys.len(), keys.first())
        {
            sample.attempt_key = Some(key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worked(weight: Reading<u64>) -> Worked {
        Worked {
            card_uuid: "G1".into(),
            device_uuid: "G1".into(),
            holder: AttemptKey::new("lab", "1", "b1"),
            processes: 1,
            work_weight: weight,
            mem_used_bytes: Reading::Seen(0),
            cpu_ms: Reading::Seen(0),
            io_bytes: Reading::Seen(0),
            is_attended: Reading::Seen(false),
        }
    }

    fn pct(thousandths: i32) -> Reading<Percent> {
        Reading::Seen(Percent::from_thousandths(thousandths).unwrap())
    }

    /// By hand: 50 % among weights 1 and 2: 16.666 and 33.333, cut.
    #[test]
    fn parts_of_holders_are_no_more_than_their_device() {
        let (one, two) = (worked(Reading::Seen(1)), worked(Reading::Seen(2)));
        assert_eq!(parts(pct(50_000), &[&one, &two]), [pct(16_666), pct(33_333)]);
        assert_eq!(parts(pct(50_000), &[&one]), [pct(50_000)]);
        assert_eq!(parts(pct(0), &[&worked(Reading::Seen(0)), &worked(Reading::Seen(0))]), [pct(0), pct(0)]);
    }

    /// What is told from a tick on, each 15 s.
    fn told(ticks_s: &[i64]) -> Vec<i64> {
        let mut maker = RowMaker::new("lab".into(), "n1".into(), 15_000);
        let mut told = Vec::new();
        for tick_s in ticks_s {
            let tick = Timestamp::from_unix_s(*tick_s);
            let readings = TickReadings {
                at: crate::probe::Moment { monotonic_us: 0, wall: tick },
                tick,
                generation: 1,
                devices: Vec::new(),
                processes: Vec::new(),
                listings: Vec::new(),
                vgpus: Vec::new(),
                events: Vec::new(),
                layout: Vec::new(),
                dead: Vec::new(),
            };
            let look = Look { watched: BTreeSet::from(["G1".into()]), ..Look::default() };
            let stepped = Stepped { samples: Vec::new(), between: Vec::new(), events: Vec::new() };
            let rows = maker.rows(&readings, stepped, look, Vec::new());
            told.extend(rows.iter().flat_map(|rows| match rows {
                Rows::Watches(rows) => rows.iter().map(|row| row.during.start().unix_ms() / 1000).collect(),
                _ => Vec::new(),
            }));
        }
        told
    }

    /// By hand: at 7,200 s the clock is set back by an hour; what it shows then was told, up to and with 7,200.
    #[test]
    fn an_hour_that_the_clock_shows_twice_is_told_once() {
        assert_eq!(told(&[7_185, 7_200, 3_600, 3_615, 7_185, 7_200, 7_215]), [7_185, 7_200, 7_215]);
    }

    #[test]
    fn a_clock_that_was_wrong_by_years_silences_nobody() {
        let wrong = 3 * 365 * 86_400;
        assert_eq!(told(&[wrong, wrong + 15, 900, 915]), [wrong, wrong + 15, 900, 915]);
    }

    #[test]
    fn where_nothing_tells_holders_apart_none_has_a_part() {
        let (one, mute) = (worked(Reading::Seen(1)), worked(Reading::Missing(Gap::NotSupported)));
        let missing = Reading::Missing(Gap::NotRecorded);
        assert_eq!(parts(pct(50_000), &[&one, &mute]), [missing, missing]);
        assert_eq!(parts(pct(50_000), &[&worked(Reading::Seen(0)), &worked(Reading::Seen(0))]), [missing, missing]);
    }
}
