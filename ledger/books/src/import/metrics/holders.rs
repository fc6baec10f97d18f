//! From sightings of holders to observations, over the stretches that samples cover.

use super::look::{Device, RUN_BY_LABEL, Sighting};
use cardhour_domain::{AttemptKey, Interval, Observation, Sample, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Makes observations of sightings, and names in each sample its only holder.
///
/// A sighting holds as long as the sample of its instant; a stretch that goes on is one observation. So an owner ends with the last instant
/// that named it (K05), and nothing is observed over a hole.
pub fn observations(samples: &mut [Sample], sightings: Vec<Sighting>) -> Vec<Observation> {
    let mut stretches: BTreeMap<(Device, Timestamp), Vec<usize>> = BTreeMap::new();
    for (i, sample) in samples.iter().enumerate() {
        let device = Device {
            node: sample.node.clone(),
            card_uuid: sample.card_uuid.clone(),
            device_uuid: sample.device_uuid.clone(),
        };
        stretches.entry((device, sample.during.end())).or_default().push(i);
    }
    let mut runs: BTreeMap<Sighting, Vec<Interval>> = BTreeMap::new();
    let mut keys: BTreeMap<usize, BTreeSet<AttemptKey>> = BTreeMap::new();
    for sighting in sightings {
        let Some(of_instant) = stretches.get(&(sighting.device.clone(), sighting.at)) else { continue };
        let key = sighting.holder.key();
        for &i in of_instant {
            keys.entry(i).or_default().insert(key.clone());
        }
        // All of a sighting but its instant is who and of what.
        let run = Sighting { at: Timestamp::from_unix_ms(0), ..sighting };
        runs.entry(run).or_default().extend(of_instant.iter().map(|&i| samples[i].during));
    }
    for (i, keys) in keys {
        let mut keys = keys.into_iter();
        samples[i].attempt_key = keys.next().filter(|_| keys.next().is_none());
    }
    let observation = |run: &Sighting, during: Interval| Observation {
        during,
        node: run.device.node.clone(),
        card_uuid: run.device.card_uuid.clone(),
        device_uuid: run.device.device_uuid.clone(),
        mig_profile: run.mig_profile.clone(),
        share: run.share,
        source: run.source,
        holder: run.holder.clone(),
        owner: run.owner.clone(),
    };
    runs.into_iter()
        .flat_map(|(run, all)| {
            Interval::union(all).into_iter().map(move |during| (run.clone(), during)).collect::<Vec<_>>()
        })
        .map(|(run, during)| observation(&run, during))
        .collect()
}

/// What people should know of holders whose runs can't be told apart.
pub fn notes(observations: &[Observation]) -> Option<String> {
    let by_label =
        observations.iter().map(|observation| &observation.holder).filter(|holder| holder.run == RUN_BY_LABEL);
    let jobs: BTreeSet<_> = by_label.map(|holder| (&holder.cluster, &holder.job_id)).collect();
    let n = jobs.len();
    (n > 0).then(|| {
        format!(
            "{n} holders are known by their names alone, without uid or start: a name that was used twice is one run"
        )
    })
}
