//! From telemetry that a site kept to samples: `import metrics`.
//!
//! A reader takes bytes and makes a [`Readout`]: what a source said of each device at instants. [`Telemetry::of`] puts any number of
//! readouts together and makes stretches of instants: how long each holds, what a counter grew by, what contradicts itself. So a log in
//! two files, read together, gives what it would in one.
//!
//! | source | reader |
//! |---|---|
//! | `nvidia-smi --query-gpu=… --format=csv` | [`smi_log::read`] |
//! | `nvidia-smi -q -x` | [`smi_xml::read`] |
//! | text of dcgm-exporter or nvidia_gpu_exporter | [`scrape::read`] |
//! | Prometheus, VictoriaMetrics | [`prometheus::queries`], [`prometheus::Answers`] |
//! | any table of time series | [`table::read`] |
//!
//! What is absent: no files, no HTTP, no clock. A time without a zone is read in the zone of [`Setting`]; nothing is taken as zero because
//! it isn't there (LED-3).

pub mod cards;
mod clock;
mod energy;
mod exposition;
mod gathering;
mod holders;
mod labels;
pub mod look;
pub mod metric;
mod pods;
pub mod prometheus;
pub mod quantity;
pub mod scrape;
pub mod smi_log;
pub mod smi_xml;
mod stretch;
mod suspect;
pub mod table;
#[cfg(test)]
mod tests;

use crate::attempt::Rejected;
use crate::import::map::MapError;
use crate::import::readers::ReadError;
use cardhour_domain::{Interval, Name, Observation, Sample, SeenDevice, Timestamp, Watch, Zone};
use look::{Device, Look, Sighting};
use std::collections::BTreeMap;

/// 2000-01-01, in days since 1970: the books begin with the first cards there were.
const FIRST_DAY: i32 = 10_957;
/// How far clocks may lie apart. Unit: milliseconds.
const CLOCKS_APART_MS: i64 = 3_600_000;

/// What an import of telemetry gives to the books.
///
/// Shape: samples by device, source and time, at most one a device, source and instant, and those of one device and source don't overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// What devices said, for the table `samples`.
    pub samples: Vec<Sample>,
    /// The devices as they were found, for the table `devices`: a row at first sight and at each change.
    pub devices: Vec<SeenDevice>,
    /// Who held what, where the source tells, for the table `observations`.
    pub observations: Vec<Observation>,
    /// When holders of a card were looked for and none was missed, for the table `watches`.
    pub watches: Vec<Watch>,
    /// What could not be read, by readout and line.
    pub rejected: Vec<Rejected>,
    /// What people should know of this import: what was left out and why.
    pub notes: Vec<String>,
}

/// What one reader made of its input: instants, not yet stretches of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readout {
    /// What was said of devices.
    pub looks: Vec<Look>,
    /// Devices as they were described.
    pub devices: Vec<SeenDevice>,
    /// Holders that were named.
    pub sightings: Vec<Sighting>,
    /// Cards of which all holders are known at an instant: who isn't named has none of it.
    pub looked: Vec<(Device, Timestamp)>,
    /// Rows that could not be read.
    pub rejected: Vec<Rejected>,
    /// What people should know.
    pub notes: Vec<String>,
}

/// What a source doesn't say of itself and whoever imports it must.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The cluster of devices and holders.
    pub cluster: Name,
    /// The node of rows that name none.
    pub node: Option<Name>,
    /// The zone of times that carry none.
    pub zone: Zone,
    /// UUIDs of cards that the source knows only by `index`, PCI bus id or job: `0` or `gpu07/0`.
    pub cards: BTreeMap<String, Name>,
    /// From one instant to the next. None: the median distance of each device. Unit: milliseconds.
    pub step_ms: Option<i64>,
    /// Labels of pods that are kept, by their names in kube-state-metrics: `label_team`.
    pub pod_labels: Vec<String>,
    /// Instants up to this one are only there to compare the next with: no sample is made of them.
    pub after: Option<Timestamp>,
    /// The present: no source can have seen what comes after it.
    pub now: Option<Timestamp>,
}

impl Setting {
    /// For sources that name node and card themselves, with times in UTC.
    pub fn of_cluster(cluster: impl Into<Name>) -> Self {
        Self {
            cluster: cluster.into(),
            node: None,
            zone: Zone::UTC,
            cards: BTreeMap::new(),
            step_ms: None,
            pod_labels: Vec::new(),
            after: None,
            now: None,
        }
    }

    /// The card that a source knows by `key` on `node`.
    fn card(&self, node: &str, key: &str) -> Option<&Name> {
        self.cards.get(&format!("{node}/{key}")).or_else(|| self.cards.get(key))
    }

    /// Why nothing can have been seen at an instant: there were no such cards yet, or it is yet to come.
    fn refusal(&self, at: Timestamp) -> Option<String> {
        if at < Timestamp::from_utc_day(FIRST_DAY) {
            return Some(format!("{at} is before 2000"));
        }
        let latest = self.now.and_then(|now| now.checked_add_ms(CLOCKS_APART_MS));
        latest.is_some_and(|latest| at > latest).then(|| format!("{at} is in the future"))
    }
}

/// Why nothing can be read from an input.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// It isn't a table that can be read.
    #[error(transparent)]
    Read(#[from] ReadError),

    /// The map is at fault.
    #[error(transparent)]
    Map(#[from] MapError),

    /// A table doesn't say something that every row needs.
    #[error("nothing says {what}: {wanted}; there are {}", .has.join(", "))]
    Missing {
        /// What isn't said.
        what: &'static str,
        /// What would say it.
        wanted: &'static str,
        /// What the table has.
        has: Vec<String>,
    },

    /// A source that names no node, and nobody else did.
    #[error("nothing says on which node these cards are: --node NAME says it")]
    NoNode,

    /// A scrape without timestamps.
    #[error("line {line} has no timestamp: --at TIME says when this text was scraped")]
    NoTime {
        /// Which of the scrapes, from 0.
        scrape: usize,
        /// The first line without one.
        line: u64,
    },

    /// A document without cards.
    #[error("no document of nvidia-smi -q -x in this file: expected <nvidia_smi_log>")]
    NoDocument,

    /// Prometheus refused the query.
    #[error("prometheus refused {query:?}: {kind}: {message}")]
    Refused {
        /// What it was asked.
        query: String,
        /// Its kind of error.
        kind: String,
        /// What it says.
        message: String,
    },

    /// An answer that is none of `query_range`.
    #[error("the answer to {query:?} is no matrix of query_range: {problem}")]
    Answer {
        /// What was asked.
        query: String,
        /// What came instead.
        problem: String,
    },
}

impl Telemetry {
    /// Puts readouts together and makes stretches of their instants.
    ///
    /// Neither the order of readouts nor that of their rows matters, and one that comes twice counts once (LED-4), but for
    /// `rejected`, which names rows. How long an instant holds is said at the head of `metrics/stretch.rs`.
    pub fn of(readouts: impl IntoIterator<Item = Readout>, setting: &Setting) -> Self {
        let mut all = Readout::default();
        for readout in readouts {
            all.looks.extend(readout.looks);
            all.devices.extend(readout.devices);
            all.sightings.extend(readout.sightings);
            all.looked.extend(readout.looked);
            all.rejected.extend(readout.rejected);
            all.notes.extend(readout.notes);
        }
        let mut samples = stretch::samples(all.looks, setting.step_ms, setting.after);
        let devices = changes(from_first_sample(all.devices, &samples));
        let watches = watches(all.looked, &samples, &setting.cluster);
        all.notes.extend(suspect::notes(&samples));
        let observations = holders::observations(&mut samples, all.sightings);
        all.notes.extend(holders::notes(&observations));
        all.notes.sort();
        all.notes.dedup();
        Self { samples, devices, observations, watches, rejected: all.rejected, notes: all.notes }
    }

    /// Each device as it was known last, at the end of its last sample: so that the books know how far its source speaks.
    pub fn last_seen(&self) -> Vec<SeenDevice> {
        let mut ends: BTreeMap<(&Name, &Name), Timestamp> = BTreeMap::new();
        for sample in &self.samples {
            let end = ends.entry((&sample.node, &sample.device_uuid)).or_insert(sample.during.end());
            *end = (*end).max(sample.during.end());
        }
        let mut last: BTreeMap<(&Name, &Name), &SeenDevice> = BTreeMap::new();
        for device in &self.devices {
            last.insert((&device.node, &device.device_uuid), device);
        }
        let seen =
            last.into_iter().filter_map(|(of, device)| Some(SeenDevice { at: *ends.get(&of)?, ..device.clone() }));
        seen.collect()
    }
}

/// Devices as they were found, each from the start of the sample of that instant on: a reading tells of the time before it, in which the device
/// was there.
fn from_first_sample(devices: Vec<SeenDevice>, samples: &[Sample]) -> Vec<SeenDevice> {
    let mut starts: BTreeMap<(&Name, &Name, Timestamp), Timestamp> = BTreeMap::new();
    for sample in samples {
        let start =
            starts.entry((&sample.node, &sample.device_uuid, sample.during.end())).or_insert(sample.during.start());
        *start = (*start).min(sample.during.start());
    }
    let start_of = |device: &SeenDevice| {
        let from = (&device.node, &device.device_uuid, device.at);
        // What was only there to compare with comes before the first sample.
        let next = starts.range(from..).next();
        next.filter(|((node, uuid, _), _)| (*node, *uuid) == (&device.node, &device.device_uuid))
            .map(|(_, start)| *start)
    };
    let from_start = |device: SeenDevice| start_of(&device).map(|at| SeenDevice { at, ..device });
    devices.into_iter().filter_map(from_start).collect()
}

/// When holders of each card were looked for: over the samples of the instants at which all of them were known.
fn watches(looked: Vec<(Device, Timestamp)>, samples: &[Sample], cluster: &Name) -> Vec<Watch> {
    let mut of_instant: BTreeMap<(&Name, &Name, Timestamp), Vec<Interval>> = BTreeMap::new();
    for sample in samples {
        of_instant.entry((&sample.node, &sample.card_uuid, sample.during.end())).or_default().push(sample.during);
    }
    let mut by_card: BTreeMap<(Name, Name), Vec<Interval>> = BTreeMap::new();
    for (card, at) in looked {
        let during = of_instant.get(&(&card.node, &card.card_uuid, at)).cloned();
        if let Some(during) = during {
            by_card.entry((card.node, card.card_uuid)).or_default().extend(during);
        }
    }
    let watch = |(node, card_uuid): (Name, Name), during| Watch { during, node, cluster: cluster.clone(), card_uuid };
    let of_card = |(card, all): ((Name, Name), Vec<Interval>)| {
        Interval::union(all).into_iter().map(move |during| watch(card.clone(), during)).collect::<Vec<_>>()
    };
    by_card.into_iter().flat_map(of_card).collect()
}

/// The first description of each device and those that differ from the one before.
fn changes(mut devices: Vec<SeenDevice>) -> Vec<SeenDevice> {
    let order = |device: &SeenDevice| (device.node.clone(), device.device_uuid.clone(), device.at);
    // Written out only for two of one device and instant, so that their order never depends on that of the files.
    devices.sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| format!("{a:?}").cmp(&format!("{b:?}"))));
    let same = |a: &SeenDevice, b: &SeenDevice| SeenDevice { at: a.at, ..b.clone() } == *a;
    let mut kept: Vec<SeenDevice> = Vec::new();
    for mut device in devices {
        let last = kept.last().filter(|last| last.node == device.node && last.device_uuid == device.device_uuid);
        if let Some(last) = last {
            // What a row doesn't tell, as that of a card that is lost, hasn't changed by that.
            device.pci_bus_id = device.pci_bus_id.or_else(|| last.pci_bus_id.clone());
            device.model = device.model.or_else(|| last.model.clone());
            device.memory_bytes = device.memory_bytes.or(last.memory_bytes);
            device.driver = device.driver.or_else(|| last.driver.clone());
            device.mig_mode = device.mig_mode.or_else(|| last.mig_mode.clone());
            device.mig_profile = device.mig_profile.or_else(|| last.mig_profile.clone());
            device.power_limit_mw = device.power_limit_mw.or(last.power_limit_mw);
        }
        if last.is_none_or(|last| !same(last, &device)) {
            kept.push(device);
        }
    }
    kept
}
