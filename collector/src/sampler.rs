//! From what cards said to rows: pure, without a clock.
//!
//! [`step`] takes the readings of one tick and gives the samples of that tick. Counters become what they grew by, rings and monitors become means
//! over the tick, and signals that contradict each other become gaps.
//!
//! Invariants: a device's samples never overlap and never run backwards, whatever the node's clock does; energies of samples add up to what the
//! card's counter grew by; a value that is missing stays missing with its reason (LED-3).

mod between;
mod busy;
mod energy;
mod plausible;
mod span;
mod traffic;

use crate::probe::{DeviceReading, Moment, Rows, TickReadings};
pub use between::CounterMark;
use busy::BusyMeter;
use cardhour_domain::{
    EnergyBasis, EventKind, Gap, Millijoules, Milliwatts, Name, NodeEvent, Percent, Reading, Sample, SampleSource,
    Timestamp, UseBasis,
};
use energy::{EnergyMeter, Growth};
use plausible::Evidence;
use span::{Span, SpanMeter};
use std::collections::HashMap;
use traffic::TrafficMeter;

/// What is remembered from tick to tick.
#[derive(Clone, Debug)]
pub struct Sampler {
    node: Name,
    devices: HashMap<Name, Meters>,
    /// Where counters stood when an earlier life ended, of cards whose counter wasn't read since; and until when the first row of this life is.
    before: HashMap<Name, (CounterMark, Option<Timestamp>)>,
    last_offset_ms: Option<i64>,
}

/// The rows of one tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stepped {
    /// One a device, where it had a tick before; without their holders, which the caller knows.
    pub samples: Vec<Sample>,
    /// Of the time in which no collector ran, energy alone.
    pub between: Vec<Sample>,
    /// What the values themselves tell: counters that began again, a clock that was set.
    pub events: Vec<NodeEvent>,
}

#[derive(Clone, Debug, Default)]
struct Meters {
    span: SpanMeter,
    layout: Option<u32>,
    energy: EnergyMeter,
    busy: BusyMeter,
    memory: BusyMeter,
    nvlink: [TrafficMeter; 2],
    pcie: [TrafficMeter; 2],
    lowest_mw: Option<i64>,
    last_seen_tick: Option<Timestamp>,
}

impl Sampler {
    /// One that has seen nothing yet.
    pub fn new(node: Name) -> Self {
        Self { node, devices: HashMap::new(), before: HashMap::new(), last_offset_ms: None }
    }

    /// Goes on from where counters stood when an earlier life of the same boot ended. Before the first tick.
    pub fn resume(&mut self, marks: Vec<CounterMark>) {
        self.before = marks.into_iter().map(|mark| (mark.card_uuid.clone(), (mark, None))).collect();
    }

    /// Where counters stand after a tick that was read at `at`: for the next life. Shape: by card.
    pub fn marks(&self, at: Moment) -> Vec<CounterMark> {
        let of_meters = self.devices.iter().filter_map(|(card_uuid, meters)| {
            let (counted_us, total_mj) = meters.energy.mark()?;
            let counted_at = at.wall.checked_add_ms((counted_us - at.monotonic_us) / 1000)?;
            Some(CounterMark { card_uuid: card_uuid.clone(), until: meters.span.until()?, counted_at, total_mj })
        });
        let mut marks: Vec<CounterMark> = of_meters.chain(self.before.values().map(|(mark, _)| mark.clone())).collect();
        marks.sort_by(|a, b| a.card_uuid.cmp(&b.card_uuid));
        marks
    }
}

/// A wall clock that is this far from where it was going was set, not slewed. Unit: milliseconds.
const CLOCK_STEP_MS: i64 = 500;

/// A clock that was set back by no more than that is waited for, until it shows times that weren't told. One that was set back further was wrong
/// before, as of a node that starts with an empty battery: what it showed is left as it was told, and telling begins anew. Unit: milliseconds.
pub(crate) const WAIT_FOR_CLOCK_MS: i64 = 24 * 60 * 60 * 1000;

/// A device that nobody has told of for so long is forgotten: instances come and go for years. Unit: milliseconds.
const FORGET_AFTER_MS: i64 = 24 * 60 * 60 * 1000;

/// The rows of a tick.
///
/// Shape: in the order of the readings. A device's first reading makes no row: nothing says since when it was so. Nor does one that the governor
/// spared, nor one whose time lies before what was told already; the next row carries what they would have.
pub fn step(sampler: &mut Sampler, readings: &TickReadings) -> Stepped {
    let mut out =
        Stepped { samples: Vec::with_capacity(readings.devices.len()), between: Vec::new(), events: Vec::new() };
    let offset_ms = readings.at.offset_ms();
    if let Some(set_by_ms) = sampler.last_offset_ms.replace(offset_ms).map(|last| offset_ms - last)
        && set_by_ms.abs() >= CLOCK_STEP_MS
    {
        out.events.push(NodeEvent {
            at: readings.at.wall,
            node: sampler.node.clone(),
            card_uuid: None,
            device_uuid: None,
            kind: EventKind::ClockStep,
            number: Some(set_by_ms),
            detail: None,
        });
    }
    for reading in &readings.devices {
        let meters = sampler.devices.entry(reading.id.device_uuid.clone()).or_default();
        sample(meters, &sampler.node, readings, reading, &mut out);
        if let (Some((_, first)), Some(until)) = (sampler.before.get_mut(&reading.id.device_uuid), meters.span.until())
        {
            first.get_or_insert(until);
        }
        // Where the first tick can't read it, it is told with the first that can.
        if let Reading::Seen(total_mj) = reading.state.energy_mj_total
            && sampler.before.get(&reading.id.device_uuid).is_some_and(|(_, first)| first.is_some())
            && let Some((mark, Some(until))) = sampler.before.remove(&reading.id.device_uuid)
        {
            let limit_mw = reading.state.power_limit_mw.seen();
            out.between
                .extend(mark.rows(&sampler.node, until, reading.at.wall, total_mj, limit_mw).into_iter().flatten());
        }
    }
    if sampler.devices.len() > readings.devices.len() {
        let forgotten = |seen: Timestamp| readings.tick.ms_since(seen) > FORGET_AFTER_MS;
        sampler.devices.retain(|_, meters| !meters.last_seen_tick.is_some_and(forgotten));
    }
    out
}

fn sample(meters: &mut Meters, node: &Name, tick: &TickReadings, reading: &DeviceReading, out: &mut Stepped) {
    meters.last_seen_tick = Some(tick.tick);
    let layout = reading.id.mig.map(|place| place.layout);
    if meters.layout != layout {
        // The same name for another instance: what is remembered is of the old one, but for the time that was told.
        *meters =
            Meters { layout, span: meters.span.clone(), last_seen_tick: meters.last_seen_tick, ..Meters::default() };
    }
    for ring in &reading.busy_ring {
        meters.busy.read(tick.generation, ring);
    }
    for ring in &reading.memory_ring {
        meters.memory.read(tick.generation, ring);
    }
    meters.energy.look(reading.power_polls.iter().map(|(at, mw)| (at.monotonic_us, *mw)));
    if reading.rows == Rows::Deferred {
        return;
    }
    let Some(span) = meters.span.next(reading.at, tick.tick) else {
        start(meters, reading);
        return;
    };
    let state = &reading.state;
    let is_slice = reading.id.mig.is_some();
    let limit_mw = state.power_limit_mw.seen();
    let (growth, energy_basis) = meters.energy_of(reading, limit_mw);
    if let Some(moved) = growth.epoch {
        out.events.push(NodeEvent {
            at: reading.at.wall,
            node: node.clone(),
            card_uuid: Some(reading.id.card_uuid.clone()),
            device_uuid: None,
            kind: EventKind::CounterEpoch,
            number: Some(moved),
            detail: Some("energy counter".into()),
        });
    }
    let power_mw = mean_power(&growth, state.power_mw);
    if let Some(mw) = power_mw.seen().filter(|mw| mw.0 > 0) {
        meters.lowest_mw = Some(meters.lowest_mw.map_or(mw.0, |lowest| lowest.min(mw.0)));
    }
    let (sm_active_pct, use_basis, mem_active_pct) = meters.used(reading, span, power_mw.seen().map(|mw| mw.0));
    let slice_has_none = |is_told: bool| if is_told { None } else { Some(Gap::NotSupported) };
    let card_only = slice_has_none(!is_slice);
    let device_only = slice_has_none(!reading.is_cut);
    let nvlink_bytes = {
        let [sent, received] = grown(&mut meters.nvlink, [state.nvlink_tx_kib_total, state.nvlink_rx_kib_total]);
        let gpm = &state.gpm;
        traffic::both(sent, received, 1024)
            .or_else(|| traffic::moved(gpm.nvlink_tx_bytes_per_s, gpm.nvlink_rx_bytes_per_s, span.elapsed_us))
    };
    let pcie_bytes = {
        let [sent, received] = grown(&mut meters.pcie, [state.pcie_tx_bytes_total, state.pcie_rx_bytes_total]);
        let gpm = &state.gpm;
        traffic::both(sent, received, 1)
            .or_else(|| traffic::moved(gpm.pcie_tx_bytes_per_s, gpm.pcie_rx_bytes_per_s, span.elapsed_us))
    };
    out.samples.push(Sample {
        during: span.during,
        card_uuid: reading.id.card_uuid.clone(),
        device_uuid: reading.id.device_uuid.clone(),
        node: node.clone(),
        attempt_key: None,
        sm_active_pct: sm_active_pct.unless(device_only),
        use_basis,
        mem_active_pct: mem_active_pct.unless(device_only),
        media_active_pct: busiest_media(reading),
        mem_used_bytes: memory_used(reading).unless(device_only),
        nvlink_bytes,
        pcie_bytes,
        power_mw: power_mw.unless(card_only),
        energy_mj: growth.energy_mj.unless(card_only),
        energy_basis,
        temperature_c: state.temperature_c.unless(card_only),
        source: SampleSource::Collector,
    });
}

/// Counters begin where the first reading finds them.
fn start(meters: &mut Meters, reading: &DeviceReading) {
    if meters.span.has_started_now() {
        let _ = meters.energy_of(reading, reading.state.power_limit_mw.seen());
        let state = &reading.state;
        grown(&mut meters.nvlink, [state.nvlink_tx_kib_total, state.nvlink_rx_kib_total]);
        grown(&mut meters.pcie, [state.pcie_tx_bytes_total, state.pcie_rx_bytes_total]);
        meters.busy.take(i64::MIN / 4, reading.at.monotonic_us);
        meters.memory.take(i64::MIN / 4, reading.at.monotonic_us);
    }
}

impl Meters {
    fn energy_of(&mut self, reading: &DeviceReading, limit_mw: Option<i64>) -> (Growth, EnergyBasis) {
        match reading.state.energy_mj_total {
            Reading::Missing(Gap::NotSupported | Gap::NoPermission) if !reading.power_polls.is_empty() => {
                (self.energy.integrated(), EnergyBasis::Power)
            }
            total_mj => (self.energy.count(reading.at.monotonic_us, total_mj, limit_mw), EnergyBasis::Counter),
        }
    }

    /// How busy multiprocessors were, by what, and how busy the memory was.
    fn used(
        &mut self,
        reading: &DeviceReading,
        span: Span,
        power_mw: Option<i64>,
    ) -> (Reading<Percent>, UseBasis, Reading<Percent>) {
        let duty_pct = self.busy.take(span.start_us, span.end_us);
        let duty_memory_pct = self.memory.take(span.start_us, span.end_us);
        let evidence = Evidence {
            duty_pct,
            processes: reading.processes,
            power_mw,
            limit_mw: reading.state.power_limit_mw.seen(),
            lowest_mw: self.lowest_mw,
        };
        let gpm = &reading.state.gpm;
        match gpm.sm_active_pct {
            Reading::Missing(Gap::NotSupported | Gap::NoPermission | Gap::Asleep) if reading.id.mig.is_none() => {
                (plausible::duty_cycle(duty_pct, evidence), UseBasis::DutyCycle, duty_memory_pct)
            }
            active_pct => (plausible::activity(active_pct, evidence), UseBasis::Gpm, gpm.dram_active_pct),
        }
    }
}

fn grown(meters: &mut [TrafficMeter; 2], totals: [Reading<u64>; 2]) -> [Reading<u64>; 2] {
    [meters[0].grow(totals[0]), meters[1].grow(totals[1])]
}

/// By what energy was used over how long; else what the driver says.
fn mean_power(growth: &Growth, told_mw: Reading<i64>) -> Reading<Milliwatts> {
    match growth.energy_mj {
        Reading::Seen(Millijoules(mj)) if growth.elapsed_us > 0 => {
            let mw = i128::from(mj) * 1_000_000 / i128::from(growth.elapsed_us);
            i64::try_from(mw).map_or(Reading::Missing(Gap::Implausible), |mw| Reading::Seen(Milliwatts(mw)))
        }
        _ => told_mw.map(Milliwatts),
    }
}

/// The busiest of those that told; the gap of the encoder where none did.
fn busiest_media(reading: &DeviceReading) -> Reading<Percent> {
    let state = &reading.state;
    let engines = [state.encoder_pct, state.decoder_pct, state.jpeg_pct, state.optical_flow_pct];
    engines.into_iter().filter_map(Reading::seen).max().map_or(state.encoder_pct, Reading::Seen)
}

/// What processes have, where the card shares the host's memory and so has no figure of its own.
fn memory_used(reading: &DeviceReading) -> Reading<i64> {
    match reading.state.memory_used_bytes {
        Reading::Missing(Gap::NotSupported) => reading.process_memory_bytes.map_gap(Gap::NotSupported),
        told => told,
    }
}

/// What a reading turns into where it has no place, or another way to it.
trait Otherwise: Sized {
    fn or_else(self, other: impl FnOnce() -> Self) -> Self;
    fn unless(self, gap: Option<Gap>) -> Self;
    fn map_gap(self, gap: Gap) -> Self;
}

impl<T> Otherwise for Reading<T> {
    fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Seen(value) => Self::Seen(value),
            Self::Missing(gap) => match other() {
                Self::Seen(value) => Self::Seen(value),
                Self::Missing(_) => Self::Missing(gap),
            },
        }
    }

    fn unless(self, gap: Option<Gap>) -> Self {
        gap.map_or(self, Self::Missing)
    }

    fn map_gap(self, gap: Gap) -> Self {
        match self {
            Self::Seen(value) => Self::Seen(value),
            Self::Missing(_) => Self::Missing(gap),
        }
    }
}

#[cfg(test)]
mod tests;
