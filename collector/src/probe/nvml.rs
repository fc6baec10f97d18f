//! The NVIDIA driver's library, on one thread.
//!
//! It is loaded, used and let go in one stack frame (a *generation*), so that nothing of one loading can be used with the next; loading it anew
//! is returning from that frame. A call that fails is of one of four classes ([`Class`]): the device hasn't got it, it is worth another try, the
//! device is lost, or the whole library is. A lost device is left alone, for further calls on it crash or hang; the others go on.
//!
//! Start reading at [`NvmlProbe::run`]; then `generation.rs` for what is asked when, `card.rs` for what is asked of a card.

mod call;
mod card;
mod events;
mod fault;
mod generation;
mod gpm;
mod processes;
mod raw;
mod roster;
mod slices;

pub use call::Call;
pub use fault::{Class, Fault};

use super::clock::Wish;
use super::governor::{Governor, Pace};
use super::schedule::{Due, Schedule};
use super::{Clock, Control, Heartbeat, Moment, TickReadings};
use cardhour_domain::{EventKind, Gap, Name};
use generation::Generation;
use nvml_wrapper::Nvml;
use roster::Roster;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What the probe is told once.
#[derive(Clone, Debug)]
pub struct NvmlConfig {
    /// The library; `libnvidia-ml.so.1` by the loader's own search where there is none.
    pub library: Option<PathBuf>,
    /// This node.
    pub node: Name,
    /// Its cluster.
    pub cluster: Name,
    /// The step of ticks. Unit: milliseconds.
    pub step_ms: i64,
    /// Where the kernel lists what is on the bus; none to leave that out.
    pub pci_devices: Option<PathBuf>,
    /// Where the driver's kernel module lists the cards that it has; none to leave that out.
    pub driver_cards: Option<PathBuf>,
}

impl NvmlConfig {
    /// 15 s a tick: a bill is by the quarter hour, and idleness is judged over half an hour.
    pub const STEP_MS: i64 = 15_000;

    /// With the usual places and step.
    pub fn new(node: Name, cluster: Name) -> Self {
        Self {
            library: None,
            node,
            cluster,
            step_ms: Self::STEP_MS,
            pci_devices: Some("/sys/bus/pci/devices".into()),
            driver_cards: Some("/proc/driver/nvidia/gpus".into()),
        }
    }
}

/// How the driver is, for the metrics page and for whoever decides to start the process anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverStatus {
    /// Not tried yet.
    Starting,
    /// In use.
    Up {
        /// Its version.
        driver: Option<Name>,
    },
    /// Not there, or of no use; tried again from time to time. Where `fault` [is a version mismatch](Fault::is_version_mismatch) that lasts,
    /// only a new process maps the new library for sure.
    Away {
        /// Why.
        fault: Fault,
        /// Since when.
        since: Moment,
    },
    /// Let go for an operator.
    Released {
        /// Until when, unless it is taken back.
        until_us: i64,
    },
}

/// The probe of one node.
#[derive(Debug)]
pub struct NvmlProbe {
    config: Arc<NvmlConfig>,
    heartbeat: Arc<Heartbeat>,
    control: Arc<Control>,
    status: Arc<Mutex<DriverStatus>>,
    roster: Roster,
    governor: Governor,
    schedule: Schedule,
    generation: u32,
    absence: Option<Fault>,
    pause: Duration,
    was_up: bool,
    /// Since cards were let go it wasn't told that the driver is in use again.
    is_released: bool,
}

/// Why a generation ended.
enum End {
    Stop,
    Release(Duration),
    Library(Fault),
    /// A card was lost, or there are others than before.
    Restart,
}

const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl NvmlProbe {
    /// Not yet looking.
    pub fn new(config: NvmlConfig) -> Self {
        Self {
            roster: Roster::new(config.node.clone()),
            schedule: Schedule::new(config.step_ms),
            config: Arc::new(config),
            heartbeat: Arc::default(),
            control: Arc::default(),
            status: Arc::new(Mutex::new(DriverStatus::Starting)),
            governor: Governor::default(),
            generation: 0,
            absence: None,
            pause: SHORTEST_PAUSE,
            was_up: false,
            is_released: false,
        }
    }

    /// What its thread does at the moment, for a [`Watchdog`](super::Watchdog).
    pub fn heartbeat(&self) -> Arc<Heartbeat> {
        self.heartbeat.clone()
    }

    /// To stop it, or to make it let go of the cards.
    pub fn control(&self) -> Arc<Control> {
        self.control.clone()
    }

    /// How the driver is, at any time.
    pub fn status(&self) -> Arc<Mutex<DriverStatus>> {
        self.status.clone()
    }

    /// Looks until it is stopped, and delivers each tick; `deliver` may end it too.
    ///
    /// Each card ever seen is in each tick, with its values missing while nothing can be read. Without a driver that is said once in the log, and
    /// tried again after 1 s, 2 s, … 60 s.
    pub fn run(&mut self, clock: &impl Clock, deliver: &mut dyn FnMut(TickReadings) -> ControlFlow<()>) {
        loop {
            let end = self.generation(clock, deliver);
            let now = clock.now();
            let stopped = match end {
                End::Stop => return,
                End::Restart => false,
                End::Release(length) => {
                    let until_us = self.let_go(now, length);
                    self.sleep(clock, until_us, Gap::CollectorDown, deliver)
                }
                End::Library(fault) => {
                    self.note_absence(fault, now);
                    let until_us = now.monotonic_us + i64::try_from(self.pause.as_micros()).unwrap_or(0);
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                    self.sleep(clock, until_us, Gap::DriverError, deliver)
                }
            };
            if stopped {
                return;
            }
        }
    }

    /// One loading of the library, from here to its release at the end of this function.
    fn generation(&mut self, clock: &impl Clock, deliver: &mut dyn FnMut(TickReadings) -> ControlFlow<()>) -> End {
        let nvml = match self.load() {
            Ok(nvml) => nvml,
            Err(fault) => return End::Library(fault),
        };
        let end = self.look(&nvml, clock, deliver);
        self.heartbeat.enter(Call::Shutdown, &Arc::from(""));
        drop(nvml);
        self.heartbeat.leave();
        end
    }

    fn load(&self) -> Result<Nvml, Fault> {
        self.heartbeat.enter(Call::Init, &Arc::from(""));
        let mut builder = Nvml::builder();
        if let Some(library) = &self.config.library {
            builder.lib_path(library.as_os_str());
        }
        let loaded = builder.init();
        self.heartbeat.leave();
        let nvml = loaded.map_err(Fault::from)?;
        if !raw::can_shut_down(&nvml) {
            // The wrapper would panic when it is dropped.
            raw::keep(nvml);
            return Err(Fault::NoSymbol);
        }
        Ok(nvml)
    }

    fn look(
        &mut self,
        nvml: &Nvml,
        clock: &impl Clock,
        deliver: &mut dyn FnMut(TickReadings) -> ControlFlow<()>,
    ) -> End {
        self.generation += 1;
        let begun = clock.now();
        self.roster.restarted(begun);
        let config = self.config.clone();
        let begin = Generation::begin(&config, nvml, &self.heartbeat, self.generation, &mut self.roster, begun);
        let mut generation = match begin {
            Ok(generation) => generation,
            Err(fault) => return End::Library(fault),
        };
        self.note_presence(generation.driver().cloned());
        loop {
            let now = clock.now();
            match self.control.wish() {
                Wish::Stop => return End::Stop,
                Wish::Release(length) => return End::Release(length),
                Wish::None | Wish::TakeBack => {}
            }
            match self.schedule.due(now) {
                Due::Nothing => {}
                Due::Rings => generation.poll(&mut self.roster, now),
                Due::Tick(tick) => {
                    let pace = self.governor.look(now.monotonic_us, clock.thread_cpu());
                    let readings = generation.tick(&mut self.roster, tick, pace, || clock.now());
                    if deliver(readings).is_break() {
                        return End::Stop;
                    }
                }
            }
            if let Some(fault) = generation.library_fault() {
                return End::Library(fault);
            }
            if self.roster.is_restart_due(now) {
                return End::Restart;
            }
            clock.wait(&self.control, self.schedule.wait(clock.now()));
        }
    }

    /// Nothing of the driver is open from here on; until when. Unit: microseconds, on the monotonic clock.
    fn let_go(&mut self, now: Moment, length: Duration) -> i64 {
        let until_us = now.monotonic_us + i64::try_from(length.as_micros()).unwrap_or(i64::MAX / 2);
        let ms = i64::try_from(length.as_millis()).ok();
        tracing::info!(for_s = length.as_secs(), "cards released");
        self.roster.tell(now, EventKind::Released, None, ms, None);
        // Whether the driver is there afterwards is found out, and told, anew.
        self.absence = None;
        self.is_released = true;
        self.set_status(DriverStatus::Released { until_us });
        until_us
    }

    /// Ticks without a driver, until `until_us`. True when it was stopped.
    fn sleep(
        &mut self,
        clock: &impl Clock,
        until_us: i64,
        gap: Gap,
        deliver: &mut dyn FnMut(TickReadings) -> ControlFlow<()>,
    ) -> bool {
        let (mut until_us, mut gap) = (until_us, gap);
        loop {
            let now = clock.now();
            match self.control.wish() {
                Wish::Stop => return true,
                Wish::TakeBack => return false,
                Wish::Release(length) => (until_us, gap) = (self.let_go(now, length), Gap::CollectorDown),
                Wish::None => {}
            }
            if let Due::Tick(tick) = self.schedule.due(now) {
                let mut devices = Vec::new();
                self.roster.silent(now, &BTreeSet::new(), gap, &mut devices);
                let (events, layout) = (self.roster.take_events(), self.roster.take_layout());
                let (processes, listings, vgpus) = (Vec::new(), Vec::new(), Vec::new());
                let readings = TickReadings {
                    at: now,
                    tick,
                    generation: self.generation,
                    devices,
                    processes,
                    listings,
                    vgpus,
                    events,
                    layout,
                    dead: self.roster.dead(),
                };
                if deliver(readings).is_break() {
                    return true;
                }
            }
            if now.monotonic_us >= until_us {
                return false;
            }
            let left = Duration::from_micros(u64::try_from(until_us - clock.now().monotonic_us).unwrap_or(0));
            clock.wait(&self.control, self.schedule.wait(clock.now()).min(left));
        }
    }

    fn note_absence(&mut self, fault: Fault, now: Moment) {
        if self.absence != Some(fault) {
            self.absence = Some(fault);
            tracing::warn!(%fault, "no cards can be read; holders are still recorded, and the driver is tried again");
            self.set_status(DriverStatus::Away { fault, since: now });
            if self.was_up {
                self.roster.tell(now, EventKind::DriverReload, None, fault.number(), Some(&fault.to_string()));
            }
        }
    }

    fn note_presence(&mut self, driver: Option<Name>) {
        let was_released = std::mem::take(&mut self.is_released);
        if self.generation == 1 || self.absence.take().is_some() || was_released {
            tracing::info!(driver = driver.as_deref(), "driver in use");
        }
        self.was_up = true;
        self.pause = SHORTEST_PAUSE;
        self.set_status(DriverStatus::Up { driver });
    }

    fn set_status(&self, status: DriverStatus) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}
