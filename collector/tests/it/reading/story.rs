//! A node's story: the production probe and sampler over a scenario, in virtual time.

use super::stage::Stage;
use cardhour_collector::probe::nvml::{NvmlConfig, NvmlProbe};
use cardhour_collector::probe::{Clock, Control, DeviceReading, Moment, TickReadings};
use cardhour_collector::sampler::{Sampler, step};
use cardhour_domain::{EventKind, Gap, NodeEvent, Percent, Reading, Sample, Timestamp};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// 2027-01-15T08:00:00Z, a whole multiple of every step: what the wall shows at the scenario's 0.
pub const WALL_AT_ZERO_S: i64 = 1_800_000_000;

/// A clock that stands still while something is done, and jumps while nothing is.
pub struct StageClock<'a> {
    stage: &'a Stage,
    now_us: Cell<i64>,
    wall_set_by_ms: Cell<i64>,
    meanwhile: Meanwhile<'a>,
    /// Processor time of the thread for each second of the scenario.
    cpu_per_second: Duration,
}

/// What happens on the node beside the cards: called with the scenario's second before each jump of the clock.
pub type Meanwhile<'a> = &'a dyn Fn(i64, &StageClock<'_>, &Control);

impl StageClock<'_> {
    /// Sets the node's clock.
    pub fn set_wall_by_ms(&self, ms: i64) {
        self.wall_set_by_ms.set(self.wall_set_by_ms.get() + ms);
    }
}

impl Clock for StageClock<'_> {
    fn now(&self) -> Moment {
        let us = self.now_us.get();
        Moment {
            monotonic_us: us,
            wall: Timestamp::from_unix_ms(WALL_AT_ZERO_S * 1000 + us / 1000 + self.wall_set_by_ms.get()),
        }
    }

    fn wait(&self, control: &Control, length: Duration) {
        (self.meanwhile)(self.now_us.get() / 1_000_000, self, control);
        let us = self.now_us.get() + i64::try_from(length.as_micros()).unwrap().max(1);
        self.now_us.set(us);
        self.stage.set_us(us);
    }

    fn thread_cpu(&self) -> Option<Duration> {
        Some(self.cpu_per_second * u32::try_from(self.now_us.get() / 1_000_000).unwrap())
    }
}

/// What became of it.
pub struct Story {
    pub ticks: Vec<TickReadings>,
    pub rows: Vec<Sample>,
    pub events: Vec<NodeEvent>,
}

/// Plays a scenario for so many seconds, at ticks of 15 s.
pub fn play(stage: &Stage, seconds: i64) -> Story {
    play_with(stage, seconds, None, &|_, _, _| {})
}

/// The same, on a thread that takes so much processor time a second.
pub fn play_busily(stage: &Stage, seconds: i64, cpu_per_second: Duration) -> Story {
    play_all(stage, seconds, Kernel::default(), &|_, _, _| {}, cpu_per_second)
}

/// The same, with a PCI bus and things that happen meanwhile.
pub fn play_with(stage: &Stage, seconds: i64, pci_devices: Option<PathBuf>, meanwhile: Meanwhile<'_>) -> Story {
    let kernel = Kernel { pci_devices, driver_cards: None };
    play_all(stage, seconds, kernel, meanwhile, Duration::ZERO)
}

/// The same, beside a kernel that says what is on its bus, and what its module has.
pub fn play_beside(stage: &Stage, seconds: i64, kernel: Kernel) -> Story {
    play_all(stage, seconds, kernel, &|_, _, _| {}, Duration::ZERO)
}

/// What the kernel says of cards, as folders of it; nothing where there are none.
#[derive(Default)]
pub struct Kernel {
    pub pci_devices: Option<PathBuf>,
    pub driver_cards: Option<PathBuf>,
}

fn play_all(stage: &Stage, seconds: i64, kernel: Kernel, meanwhile: Meanwhile<'_>, cpu_per_second: Duration) -> Story {
    let config = NvmlConfig {
        library: Some(stage.library().to_owned()),
        pci_devices: kernel.pci_devices,
        driver_cards: kernel.driver_cards,
        ..NvmlConfig::new("n1".into(), "gpu".into())
    };
    let clock = StageClock { stage, now_us: Cell::new(0), wall_set_by_ms: Cell::new(0), meanwhile, cpu_per_second };
    stage.set_us(0);
    let mut sampler = Sampler::new("n1".into());
    let mut story = Story { ticks: Vec::new(), rows: Vec::new(), events: Vec::new() };
    NvmlProbe::new(config).run(&clock, &mut |readings| {
        let stepped = step(&mut sampler, &readings);
        story.rows.extend(stepped.samples);
        story.events.extend(readings.events.iter().cloned().chain(stepped.events));
        story.ticks.push(readings);
        if clock.now_us.get() >= seconds * 1_000_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    story
}

pub fn stage(scenario: &str) -> Stage {
    Stage::new(scenario)
}

impl Story {
    /// The rows of a device, in order.
    pub fn rows_of(&self, device: &str) -> Vec<&Sample> {
        self.rows.iter().filter(|row| row.device_uuid == device).collect()
    }

    /// The row of a device that ends at a second of the scenario.
    #[track_caller]
    pub fn row(&self, device: &str, end_s: i64) -> &Sample {
        let end = second(end_s);
        let row = self.rows.iter().find(|row| row.device_uuid == device && row.during.end() == end);
        row.unwrap_or_else(|| panic!("{device} has a row that ends at {end_s} s"))
    }

    /// What a device read at a second of the scenario.
    #[track_caller]
    pub fn reading(&self, device: &str, at_s: i64) -> &DeviceReading {
        let tick = self.tick(at_s);
        tick.devices.iter().find(|reading| reading.id.device_uuid == device).expect("each device is in each tick")
    }

    #[track_caller]
    pub fn tick(&self, at_s: i64) -> &TickReadings {
        self.ticks.iter().find(|tick| tick.tick == second(at_s)).unwrap_or_else(|| panic!("a tick at {at_s} s"))
    }

    /// Energy of a device's rows.
    pub fn energy_mj(&self, device: &str) -> i64 {
        self.rows_of(device).iter().filter_map(|row| row.energy_mj.seen()).map(|energy| energy.0).sum()
    }

    /// Busy time of a device's rows. Unit: percent × seconds.
    pub fn busy(&self, device: &str) -> f64 {
        let busy = |row: &&Sample| {
            row.sm_active_pct
                .seen()
                .map(|p| f64::from(p.thousandths()) / 1000.0 * row.during.length_ms() as f64 / 1000.0)
        };
        self.rows_of(device).iter().filter_map(busy).sum()
    }

    /// What happened of a kind: seconds of the scenario, and its number.
    pub fn told(&self, kind: EventKind) -> Vec<(i64, Option<i64>)> {
        let told = self.events.iter().filter(|event| event.kind == kind);
        told.map(|event| (event.at.unix_ms() / 1000 - WALL_AT_ZERO_S, event.number)).collect()
    }
}

/// The name of the n-th card.
pub fn card(n: usize) -> String {
    format!("GPU-00000000-0000-4000-8000-{:012}", n + 1)
}

pub fn second(s: i64) -> Timestamp {
    Timestamp::from_unix_s(WALL_AT_ZERO_S + s)
}

pub fn percent(percent: f64) -> Reading<Percent> {
    Reading::Seen(Percent::from_f64(percent).unwrap())
}

pub fn missing<T>(gap: Gap) -> Reading<T> {
    Reading::Missing(gap)
}
