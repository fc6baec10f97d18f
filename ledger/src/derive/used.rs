//! Where held time and energy of each day went, from what nodes said of devices and holders.
//!
//! A day is worked out from its own telemetry and that of the days beside it, never from more: so that its rows depend on the facts alone, and not
//! on which days happened to be worked out together (LED-4).

use crate::Error;
use crate::facts::Facts;
use cardhour_books::energy::energy;
use cardhour_books::gaps::{Presence, Unseen, unread};
use cardhour_books::holdings::Holding;
use cardhour_books::idle::{IdlePolicy, idle};
use cardhour_books::observed::{Joined, Seen};
use cardhour_books::split::{AttemptFacts, Split, split};
use cardhour_books::states::StateRow;
use cardhour_books::telemetry::Readings;
use cardhour_domain::columns::Rows;
use cardhour_domain::{
    Activity, AttemptKey, CardState, Interval, JobState, Millijoules, Name, Sample, Stream, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What telemetry there is for some days.
#[derive(Default)]
pub(super) struct Told {
    samples: BTreeMap<i32, Vec<Sample>>,
    activity: BTreeMap<i32, Vec<Activity>>,
    facts: BTreeMap<AttemptKey, AttemptFacts>,
}

/// Where the time of one day's holdings went, and the energy of its cards.
#[derive(Default)]
pub(crate) struct DayUse {
    pub(crate) split: Split,
    /// By holding and bucket.
    pub(crate) held_energy: HashMap<(u32, Timestamp), Millijoules>,
    /// What nobody held of the cards of a node: cluster, bucket, node. Unit: mJ.
    free_energy: BTreeMap<(Name, Timestamp, Name), i64>,
}

impl DayUse {
    /// The energy that nobody held, by the row that has it: where a group's time is in several states, the free one, else its first. What a group
    /// without any such row has is in none.
    pub(crate) fn free_by_row(&self, rows: &[(Name, StateRow)]) -> HashMap<usize, i64> {
        let mut left = self.free_energy.clone();
        let mut by_row = HashMap::new();
        for is_first_choice in [true, false] {
            for (i, (cluster, row)) in rows.iter().enumerate() {
                if is_first_choice && row.state != CardState::Free {
                    continue;
                }
                let taken = match &row.group.node {
                    Some(node) => left.remove(&(cluster.clone(), row.bucket_start, node.clone())),
                    None => {
                        let of_cluster = |(c, b, _): &(Name, Timestamp, Name)| c == cluster && *b == row.bucket_start;
                        let keys: Vec<_> = left.keys().filter(|key| of_cluster(key)).cloned().collect();
                        keys.iter().filter_map(|key| left.remove(key)).reduce(|a, b| a + b)
                    }
                };
                if let Some(energy) = taken {
                    by_row.insert(i, energy);
                }
            }
        }
        by_row
    }
}

/// A UTC day.
pub(super) fn whole(day: i32) -> Interval {
    Interval::new(Timestamp::from_utc_day(day), Timestamp::from_utc_day(day + 1)).expect("a day")
}

impl Told {
    /// Telemetry of the days in `days` and those beside them.
    pub(super) async fn load(facts: &Facts, days: &BTreeSet<i32>, joined: &Joined) -> Result<Self, Error> {
        let near: BTreeSet<i32> = days.iter().flat_map(|day| day - 1..=day + 1).collect();
        let mut told = Self::default();
        for rows in facts.rows(Stream::Samples, |day| near.contains(&day)).await? {
            let Rows::Samples(rows) = rows else { unreachable!("rows are of one stream") };
            for row in rows {
                told.samples.entry(row.during.start().utc_day()).or_default().push(row);
            }
        }
        if told.samples.is_empty() {
            return Ok(told);
        }
        for rows in facts.rows(Stream::Activity, |day| near.contains(&day)).await? {
            let Rows::Activity(rows) = rows else { unreachable!("rows are of one stream") };
            for mut row in rows {
                row.holder = joined.key_of(&row.holder, row.during);
                told.activity.entry(row.during.start().utc_day()).or_default().push(row);
            }
        }
        told.facts = facts.attempts().await?;
        told.facts.extend(joined.attempts.iter().map(|attempt| {
            // How it ended nobody said.
            let (class, state) = (attempt.class(), JobState::Unknown);
            (attempt.key.clone(), AttemptFacts { class, state, checkpoint_at: None })
        }));
        Ok(told)
    }

    /// One day's use, none where nobody said anything on it; and what nobody said of it.
    pub(super) fn of_day(
        &self,
        day: i32,
        holdings: &[Holding],
        seen: &Seen,
        presences: &[Presence],
    ) -> (Option<DayUse>, Vec<Unseen>) {
        let near = day - 1..=day + 1;
        let mut readings = Readings::default();
        for sample in near.clone().filter_map(|day| self.samples.get(&day)).flatten() {
            readings.add_sample(sample);
        }
        for activity in near.filter_map(|day| self.activity.get(&day)).flatten() {
            readings.add_activity(activity);
        }
        for device in &seen.devices {
            readings.add_device(device);
        }
        let (telemetry, _) = readings.settle();
        let whole = whole(day);
        // A tick may reach over midnight.
        let near: Vec<&Sample> = [day - 1, day].iter().filter_map(|day| self.samples.get(day)).flatten().collect();
        let gaps = unread(presences, &telemetry, &near, whole);
        if telemetry.devices.is_empty() {
            return (None, gaps);
        }
        let idle = idle(holdings, &self.facts, &telemetry, &IdlePolicy::default());
        let split = split(holdings, &self.facts, &idle, &telemetry, &[whole]);
        let energy = energy(holdings, &telemetry, &[whole]);
        let held_energy = energy.held.iter().map(|e| ((e.holding, e.bucket_start), e.energy)).collect();
        let places: HashMap<&Name, (&Name, &Name)> =
            seen.devices.iter().map(|device| (&device.card_uuid, (&device.cluster, &device.node))).collect();
        let mut free_energy: BTreeMap<(Name, Timestamp, Name), i64> = BTreeMap::new();
        for free in energy.free {
            if let Some((cluster, node)) = places.get(&free.card_uuid) {
                let place = ((*cluster).clone(), free.bucket_start, (*node).clone());
                *free_energy.entry(place).or_default() += free.energy.0;
            }
        }
        (Some(DayUse { split, held_energy, free_energy }), gaps)
    }
}
