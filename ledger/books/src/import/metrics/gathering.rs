//! Gathers values of labelled series by device and instant: what a scrape and an answer of Prometheus have in common.

use super::labels::{Labels, Pod, share_of};
use super::look::{Device, Look, Signals, Told};
use super::metric::{Metric, Signal};
use super::pods::{Candidate, Pods};
use super::stretch::without_board;
use super::suspect::IDLE_FLOOR;
use super::{Readout, Setting};
use cardhour_domain::{CardShare, Gap, Name, Reading, SampleSource, SeenDevice, Timestamp};
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};

/// What was gathered so far.
///
/// Values may come in any order and repeat. What tells of the board (power, energy, temperature, the bus) is kept once for the card,
/// however many instances it repeats for.
pub struct Gathering<'s> {
    setting: &'s Setting,
    told: Told,
    looks: BTreeMap<(Device, SampleSource, Name, Timestamp), Signals>,
    /// Cards that had instances at an instant.
    cut: BTreeSet<(Device, Timestamp)>,
    described: BTreeMap<Device, Described>,
    candidates: BTreeMap<Candidate, BTreeSet<Timestamp>>,
    left_out: BTreeMap<&'static str, u64>,
}

struct Described {
    first: Timestamp,
    model: Option<Name>,
    driver: Option<Name>,
    pci_bus_id: Option<Name>,
    profile: Option<Name>,
    share: Option<CardShare>,
    power_limit_mw: Option<i64>,
}

/// A series, once it is known what its labels say.
pub struct Series {
    metric: &'static Metric,
    card: Device,
    /// What its values are of: the card for what tells of the board.
    of: Device,
    /// What its owner holds.
    held: Device,
    reader: Name,
    candidate: Option<Candidate>,
    described: (Option<Name>, Option<Name>, Option<Name>),
    profile: Option<Name>,
    share: Option<CardShare>,
}

impl<'s> Gathering<'s> {
    /// Nothing yet. `told`: whether rates are of instants or means.
    pub fn new(setting: &'s Setting, told: Told) -> Self {
        Self {
            setting,
            told,
            looks: BTreeMap::new(),
            cut: BTreeSet::new(),
            described: BTreeMap::new(),
            candidates: BTreeMap::new(),
            left_out: BTreeMap::new(),
        }
    }

    /// What a series is of. None where its labels name no card: it is counted and left out.
    pub fn series(&mut self, labels: &Labels, metric: &'static Metric) -> Option<Series> {
        let card = match labels.card(self.setting) {
            Ok(card) => card,
            Err(why) => {
                *self.left_out.entry(why).or_default() += 1;
                return None;
            }
        };
        let described = labels.described();
        let instance = labels.instance();
        let held = instance.as_ref().map_or_else(|| card.clone(), |instance| card.instance(&instance.id, "0"));
        let profile = instance.and_then(|instance| instance.profile);
        let share = profile.as_ref().and_then(|profile| share_of(profile, described.0.as_deref()));
        let (plain, pushed_aside): (Option<Pod>, Option<Pod>) = (labels.pod(), labels.pushed_aside());
        let job = labels.get("hpc_job").map(Name::from);
        let has_owner = plain.is_some() || pushed_aside.is_some() || job.is_some();
        let candidate = has_owner.then(|| Candidate {
            device: held.clone(),
            plain,
            pushed_aside,
            job,
            scrape_job: labels.get("job").map(Name::from),
            mig_profile: profile.clone(),
            share,
        });
        let of = if metric.signal.is_of_instance() || metric.signal.is_lost_under_mig() {
            held.clone()
        } else {
            card.clone()
        };
        Some(Series { metric, card, of, held, reader: labels.reader(), candidate, described, profile, share })
    }

    /// Adds a value of a series.
    pub fn add(&mut self, series: &Series, at: Timestamp, value: Reading<Decimal>) {
        let signals = series.metric.signals(value);
        let limit = signals.power_limit_mw.seen().map(|limit| limit.0);
        let key = (series.of.clone(), series.metric.source, series.reader.clone(), at);
        self.looks.entry(key).or_default().merge(&signals);
        if !series.held.is_card() {
            self.cut.insert((series.card.clone(), at));
            let key = (series.held.clone(), series.metric.source, series.reader.clone(), at);
            self.looks.entry(key).or_default();
        }
        if let Some(candidate) = &series.candidate {
            self.candidates.entry(candidate.clone()).or_default().insert(at);
        }
        self.describe(series, &series.held, at, None);
        if series.of.is_card() {
            self.describe(series, &series.card, at, limit.filter(|_| series.metric.signal == Signal::PowerLimit));
        }
    }

    fn describe(&mut self, series: &Series, device: &Device, at: Timestamp, power_limit_mw: Option<i64>) {
        let (model, driver, pci_bus_id) = &series.described;
        let of_instance = !device.is_card();
        let known = self.described.entry(device.clone()).or_insert_with(|| Described {
            first: at,
            model: None,
            driver: None,
            pci_bus_id: None,
            profile: None,
            share: None,
            power_limit_mw: None,
        });
        known.first = known.first.min(at);
        let keep = |mine: &mut Option<Name>, other: &Option<Name>| {
            if mine.is_none() || other.as_ref().is_some_and(|other| Some(other) < mine.as_ref()) {
                mine.clone_from(other);
            }
        };
        // Of two that differ the same one, whichever came first.
        for (mine, other) in
            [(&mut known.model, model), (&mut known.driver, driver), (&mut known.pci_bus_id, pci_bus_id)]
        {
            if other.is_some() {
                keep(mine, other);
            }
        }
        if of_instance {
            known.profile = known.profile.take().or_else(|| series.profile.clone());
            known.share = known.share.or(series.share);
        }
        known.power_limit_mw = known.power_limit_mw.max(power_limit_mw);
    }

    /// What all of it says. `pods`: what kube-state-metrics tells.
    pub fn readout(self, pods: &Pods) -> Readout {
        let mut readout = Readout::default();
        for (why, n) in &self.left_out {
            readout.notes.push(format!("{n} series were left out: {why}"));
        }
        let cut_cards: BTreeSet<&Device> = self.cut.iter().map(|(card, _)| card).collect();
        if !cut_cards.is_empty() {
            readout.notes.push(format!(
                "{} cards are cut by MIG: instances are named by card and GPU instance, since these series don't hold their UUIDs; \
                 utilization is only taken from the performance monitor",
                cut_cards.len()
            ));
        }
        let mut cards: BTreeSet<(Device, Timestamp)> =
            self.looks.keys().map(|(device, _, _, at)| (device.of_card(), *at)).collect();
        for ((device, source, reader, at), signals) in self.looks {
            let signals = if !device.is_card() {
                without_board(signals)
            } else if self.cut.contains(&(device.clone(), at)) {
                // The driver has no duty cycle of a card that is cut: what stands there is of no device (C02).
                let gone = Reading::Missing(Gap::NotSupported);
                Signals { duty_cycle_pct: gone, mem_duty_pct: gone, media_active_pct: gone, ..signals }
            } else {
                signals
            };
            readout.looks.push(Look { at, device, source, reader, signals, told: self.told });
        }
        for (device, known) in self.described {
            let share = if device.is_card() { Some(CardShare::CARD) } else { known.share };
            let Some(share) = share else {
                readout.notes.push(format!("{} of {}: no profile tells its share", device.device_uuid, device.node));
                continue;
            };
            let is_cut = cut_cards.contains(&device);
            readout.devices.push(SeenDevice {
                at: known.first,
                cluster: self.setting.cluster.clone(),
                pci_bus_id: known.pci_bus_id,
                model: known.model,
                memory_bytes: None,
                driver: known.driver,
                mig_mode: is_cut.then(|| "enabled".into()),
                mig_profile: known.profile,
                share,
                power_limit_mw: known.power_limit_mw,
                node: device.node,
                card_uuid: device.card_uuid,
                device_uuid: device.device_uuid,
            });
        }
        let (sightings, notes) = pods.sightings(self.candidates, self.setting);
        // Who uses a card that nobody asked for isn't known by this.
        let sighted: BTreeSet<(Device, Timestamp)> =
            sightings.iter().map(|sighting| (sighting.device.of_card(), sighting.at)).collect();
        let unknown: BTreeSet<(Device, Timestamp)> = readout
            .looks
            .iter()
            .filter(|look| is_used(&look.signals))
            .map(|look| (look.device.of_card(), look.at))
            .collect();
        cards.retain(|look| sighted.contains(look) || !unknown.contains(look));
        readout.looked = pods.looked(cards, &sightings);
        readout.sightings = sightings;
        readout.notes.extend(notes);
        readout
    }
}

/// Whether somebody uses a device.
fn is_used(signals: &Signals) -> bool {
    let rates = [signals.sm_active_pct, signals.engine_active_pct, signals.duty_cycle_pct, signals.media_active_pct];
    rates.into_iter().filter_map(Reading::seen).any(|rate| rate.thousandths() >= IDLE_FLOOR)
}
