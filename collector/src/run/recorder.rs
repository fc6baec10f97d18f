//! What becomes of a tick: rows on disk, a page on the board.
//!
//! Ticks come from the thread that reads cards. While that is in a call that doesn't come back, whoever waits for it has ticks made without the driver
//! ([`Recorder::stand_in`]): holders are looked for as ever, and the cards that were seen last are told of with their values missing.

use super::{Shared, event};
use crate::config::Config;
use crate::eyes::Eyes;
use crate::metrics::Teller;
use crate::probe::nvml::DriverStatus;
use crate::probe::{Clock, DeadCard, DeviceReading, Moment, TickReadings};
use crate::rows::RowMaker;
use crate::sampler::{Sampler, step};
use cardhour_domain::{EventKind, Gap, Name, NodeEvent, SeenDevice, Timestamp};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// So many steps library and driver may be of two versions, as while a driver is being changed.
const STALE_STEPS: i64 = 8;

/// Records ticks, one at a time.
pub(super) struct Recorder<C> {
    clock: C,
    node: Name,
    step_ms: i64,
    eyes: Eyes,
    sampler: Sampler,
    maker: RowMaker,
    teller: Teller,
    spool: Shared,
    stale: StaleLibrary,
    /// What the next tick has to tell beside its own.
    events: Vec<NodeEvent>,
    layout: Vec<SeenDevice>,
    /// The cards as the last tick had them, without values.
    devices: Vec<DeviceReading>,
    dead: Vec<DeadCard>,
    generation: u32,
    /// The whole multiple of the step of the last tick; before the first the one that it began in.
    last_tick: Timestamp,
    /// When the last tick without the driver was made. Unit: microseconds, on the monotonic clock.
    stood_in_us: Option<i64>,
    is_stale: bool,
    is_ended: bool,
}

impl<C: Clock> Recorder<C> {
    pub(super) fn new(
        config: &Config,
        clock: C,
        eyes: Eyes,
        teller: Teller,
        spool: Shared,
        stale: StaleLibrary,
    ) -> Self {
        let step_ms = i64::from(config.step_s) * 1000;
        let mut sampler = Sampler::new(config.node.clone());
        sampler.resume(spool.lock().counted());
        let mut recorder = Self {
            node: config.node.clone(),
            step_ms,
            eyes,
            sampler,
            maker: RowMaker::new(config.cluster.clone(), config.node.clone(), step_ms),
            teller,
            spool,
            stale,
            events: Vec::new(),
            layout: Vec::new(),
            devices: Vec::new(),
            dead: Vec::new(),
            generation: 0,
            last_tick: tick_of(clock.now().wall, step_ms),
            stood_in_us: None,
            is_stale: false,
            is_ended: false,
            clock,
        };
        recorder.tell(EventKind::Started, None, "collector started");
        recorder
    }

    /// Has the next tick tell of something.
    pub(super) fn tell(&mut self, kind: EventKind, number: Option<i64>, detail: &str) {
        self.events.push(event(self.clock.now().wall, &self.node, kind, number, detail));
    }

    /// A tick as the cards were read at it. What they said before a tick without them was made is too old to be told: only what happened is kept.
    pub(super) fn tick(&mut self, mut readings: TickReadings) -> ControlFlow<()> {
        if self.is_ended {
            return ControlFlow::Break(());
        }
        if self.stood_in_us.is_some_and(|stood_in_us| readings.at.monotonic_us < stood_in_us) {
            self.events.append(&mut readings.events);
            self.layout.append(&mut readings.layout);
            return ControlFlow::Continue(());
        }
        self.record(readings);
        self.is_stale = self.stale.look(self.clock.now());
        if self.is_stale { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// A tick without the driver, where one is due.
    pub(super) fn stand_in(&mut self) {
        let at = self.clock.now();
        let tick = tick_of(at.wall, self.step_ms);
        if tick == self.last_tick || self.is_ended {
            return;
        }
        self.stood_in_us = Some(at.monotonic_us);
        self.record(TickReadings {
            at,
            tick,
            generation: self.generation,
            devices: self.devices.iter().map(|device| device.silent(at, Gap::TimedOut)).collect(),
            processes: Vec::new(),
            listings: Vec::new(),
            vgpus: Vec::new(),
            events: Vec::new(),
            layout: Vec::new(),
            dead: self.dead.clone(),
        });
    }

    /// Records nothing any more. Whether it ended because the library is that of another driver.
    pub(super) fn end(&mut self) -> bool {
        self.is_ended = true;
        self.is_stale
    }

    fn record(&mut self, mut readings: TickReadings) {
        let mut first = std::mem::take(&mut self.events);
        first.append(&mut readings.events);
        readings.events = first;
        if !self.layout.is_empty() {
            // What is told of a card later is all of it.
            let is_told_anew =
                |device: &SeenDevice| readings.layout.iter().any(|new| new.card_uuid == device.card_uuid);
            let mut layout = std::mem::take(&mut self.layout);
            layout.retain(|device| !is_told_anew(device));
            layout.append(&mut readings.layout);
            readings.layout = layout;
        }
        self.last_tick = readings.tick;
        self.generation = readings.generation;
        self.devices = readings.devices.iter().map(|device| device.silent(readings.at, Gap::TimedOut)).collect();
        self.dead.clone_from(&readings.dead);
        let stepped = step(&mut self.sampler, &readings);
        let look = self.eyes.look(&readings);
        for odd in &look.events {
            // Told once for each by whoever looks: a source that fails, a map that is stale, a process where it shouldn't be.
            let (kind, card) = (odd.kind.name(), odd.card_uuid.as_deref().unwrap_or("-"));
            tracing::warn!(kind, card, detail = %odd.detail, "odd about holders");
        }
        self.teller.see(&readings, &stepped, &look);
        let devices = std::mem::take(&mut readings.layout);
        let rows = self.maker.rows(&readings, stepped, look, devices);
        let now = || self.clock.now().wall;
        let mut spool = self.spool.lock();
        match spool.append(&rows, now()) {
            Ok(()) => spool.note_counted(&self.sampler.marks(readings.at)),
            Err(error) => tracing::warn!(error = %error, "tick not on disk; holdings wait in memory"),
        }
        if let Err(error) = spool.seal_if_due(now()) {
            tracing::warn!(error = %error, "segments not sealed; tried again at the next tick");
        }
        let (counters, stock) = (spool.counters().clone(), spool.stock(now()).ok());
        drop(spool);
        let took_us = self.clock.now().monotonic_us - readings.at.monotonic_us;
        self.teller.publish(readings, counters, stock, Duration::from_micros(u64::try_from(took_us).unwrap_or(0)));
    }
}

fn tick_of(wall: Timestamp, step_ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(wall.unix_ms().div_euclid(step_ms) * step_ms)
}

/// Whether this process holds on to a library that the driver has left behind.
///
/// A library may stay mapped when it is let go of, and then loading it anew gives the old one, whatever lies on disk. A process that never had
/// the driver has nothing to hold on to, so one that is started because of this doesn't end for it again: where a driver waits for a reboot,
/// there is one new start.
#[derive(Clone, Debug)]
pub(super) struct StaleLibrary {
    status: Arc<Mutex<DriverStatus>>,
    was_up: bool,
    lasts_us: i64,
}

impl StaleLibrary {
    pub(super) fn new(status: Arc<Mutex<DriverStatus>>, step_s: u32) -> Self {
        Self { status, was_up: false, lasts_us: i64::from(step_s) * 1_000_000 * STALE_STEPS }
    }

    fn look(&mut self, now: Moment) -> bool {
        match &*self.status.lock().unwrap_or_else(PoisonError::into_inner) {
            DriverStatus::Up { .. } => self.was_up = true,
            DriverStatus::Away { fault, since } if fault.is_version_mismatch() => {
                return self.was_up && now.monotonic_us - since.monotonic_us >= self.lasts_us;
            }
            DriverStatus::Away { .. } | DriverStatus::Starting | DriverStatus::Released { .. } => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::nvml::Fault;

    #[test]
    fn pitfall_15_a_process_that_had_the_driver_ends_where_versions_differ_for_long_and_one_that_had_not_waits() {
        let at = |s: i64| Moment { monotonic_us: s * 1_000_000, wall: Timestamp::from_unix_s(s) };
        let away = |code, since| DriverStatus::Away { fault: Fault::Code(code), since: at(since) };
        let (mismatch, not_loaded) = (18, 9);
        let status = Arc::new(Mutex::new(DriverStatus::Starting));
        let mut stale = StaleLibrary::new(status.clone(), 15);
        let mut look = |now: DriverStatus, s| {
            *status.lock().unwrap() = now;
            stale.look(at(s))
        };
        assert!(!look(away(mismatch, 0), 10_000));
        assert!(!look(DriverStatus::Up { driver: None }, 10_015));
        assert!(!look(away(not_loaded, 10_020), 20_000), "the driver may come back as it was");
        // Eight steps of 15 s.
        assert!(!look(away(mismatch, 20_000), 20_119));
        assert!(look(away(mismatch, 20_000), 20_120));
    }
}
