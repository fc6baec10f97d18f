//! What a card shows during a trial: the collector's own probe, each second, on a thread of its own.

use crate::error::Error;
use cardhour_collector::probe::nvml::{NvmlConfig, NvmlProbe};
use cardhour_collector::probe::{Control, SystemClock, TickReadings};
use cardhour_collector::sampler::{Sampler, step};
use cardhour_domain::{EventKind, Name, Percent, Reading};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const MIB: i64 = 1 << 20;
/// Unit: milliseconds.
const STEP_MS: i64 = 1000;
/// How long the first look may take: a driver that wakes up its cards takes seconds.
const LONGEST_FIRST: Duration = Duration::from_secs(15);

/// A card that is looked at until this goes.
#[derive(Debug)]
pub struct CardWatch {
    device_uuid: Name,
    memory_mib: Option<u64>,
    seen: Arc<Mutex<Vec<Tick>>>,
    control: Arc<Control>,
}

/// One look at all devices.
#[derive(Clone, Debug)]
struct Tick {
    at: Instant,
    devices: Vec<Device>,
    /// Device, process group and its memory. The group is asked for at once: later the process may be gone.
    processes: Vec<(Name, u32, Option<i64>)>,
    /// Card and Xid.
    xids: Vec<(Option<Name>, u32)>,
}

#[derive(Clone, Debug)]
struct Device {
    card_uuid: Name,
    device_uuid: Name,
    memory_bytes: Option<i64>,
    used_bytes: Option<i64>,
    sm_active: Option<Percent>,
}

/// What a card showed over some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glimpse {
    /// The most memory that the aggressor had: its processes', or where none is listed what the card's use grew by. Unit: MiB.
    pub peak_mib: Option<u64>,
    /// How busy it was, on average; none where nothing told.
    pub sm_active: Option<Percent>,
    /// Xids, in order.
    pub xids: Vec<u32>,
}

impl CardWatch {
    /// Begins to look at a card or MIG instance; at the only one where none is named. None where no card is there and none was asked for. Errors: not that card, or which
    /// of several isn't said.
    pub fn start(asked: Option<&str>, library: Option<PathBuf>) -> Result<Option<Self>, Error> {
        let config = NvmlConfig { library, step_ms: STEP_MS, ..NvmlConfig::new("local".into(), "local".into()) };
        let mut probe = NvmlProbe::new(config);
        let control = probe.control();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sees = seen.clone();
        let mut sampler = Sampler::new("local".into());
        let run = move || {
            probe.run(&SystemClock::start(), &mut |readings| {
                let tick = tick(&mut sampler, &readings);
                lock(&sees).push(tick);
                ControlFlow::Continue(())
            });
        };
        let failed = |source| Error::Stream { doing: "look at the card", source };
        std::thread::Builder::new().name("probe".into()).spawn(run).map_err(failed)?;
        let mut watch = Self { device_uuid: Name::new(), memory_mib: None, seen, control };
        let since = Instant::now();
        let devices = loop {
            let devices = lock(&watch.seen).last().map(|tick| tick.devices.clone()).unwrap_or_default();
            let is_late = since.elapsed() >= if asked.is_some() { LONGEST_FIRST } else { LONGEST_FIRST / 5 };
            if !devices.is_empty() || is_late {
                break devices;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let all = || devices.iter().map(|device| device.device_uuid.to_string()).collect::<Vec<_>>().join(", ");
        let device = match (asked, &devices[..]) {
            (None, []) => return Ok(None),
            (Some(asked), []) => {
                return Err(Error::Trial(format!(
                    "no card {asked}: the driver shows none, --nvml-lib names its library"
                )));
            }
            (None, [only]) => only,
            (None, _) => return Err(Error::Trial(format!("on which card? --card UUID says it: {}", all()))),
            (Some(asked), _) => devices
                .iter()
                .find(|device| *device.device_uuid == *asked)
                .ok_or_else(|| Error::Trial(format!("no card {asked}: there are {}", all())))?,
        };
        watch.device_uuid = device.device_uuid.clone();
        watch.memory_mib = device.memory_bytes.map(mib);
        Ok(Some(watch))
    }

    /// Its UUID.
    pub fn uuid(&self) -> &str {
        &self.device_uuid
    }

    /// All its memory. Unit: MiB.
    pub const fn memory_mib(&self) -> Option<u64> {
        self.memory_mib
    }

    /// What it showed in some time, in which the processes of `group` are the aggressor's.
    pub fn between(&self, from: Instant, until: Instant, group: u32) -> Glimpse {
        let ticks = lock(&self.seen);
        // A tick tells of the time before it.
        let reach = Duration::from_millis(STEP_MS.unsigned_abs());
        let inside = || ticks.iter().filter(move |tick| from <= tick.at && tick.at <= until + reach);
        let own = |tick: &Tick| {
            let mine = tick.processes.iter().filter(|(device, of, _)| *device == self.device_uuid && *of == group);
            mine.filter_map(|(.., bytes)| *bytes).reduce(|a, b| a.saturating_add(b))
        };
        let used = |tick: &Tick| self.device(tick).and_then(|device| device.used_bytes);
        let before = ticks.iter().rfind(|tick| tick.at < from).and_then(used);
        let grown = inside().filter_map(used).max().zip(before).map(|(most, before)| (most - before).max(0));
        let card = ticks.iter().find_map(|tick| self.device(tick)).map(|device| device.card_uuid.clone());
        let xids = inside().flat_map(|tick| &tick.xids);
        let percents: Vec<i64> = inside()
            .filter_map(|tick| self.device(tick)?.sm_active)
            .map(|percent| i64::from(percent.thousandths()))
            .collect();
        let mean = i64::try_from(percents.len()).ok().and_then(|count| percents.iter().sum::<i64>().checked_div(count));
        Glimpse {
            peak_mib: inside().filter_map(own).max().or(grown).map(mib),
            sm_active: mean.and_then(|mean| Percent::from_thousandths(i32::try_from(mean).ok()?)),
            xids: xids.filter(|(of, _)| of.is_none() || *of == card).map(|(_, xid)| *xid).collect(),
        }
    }

    fn device<'a>(&self, tick: &'a Tick) -> Option<&'a Device> {
        tick.devices.iter().find(|device| device.device_uuid == self.device_uuid)
    }
}

impl Drop for CardWatch {
    fn drop(&mut self) {
        self.control.stop();
    }
}

fn tick(sampler: &mut Sampler, readings: &TickReadings) -> Tick {
    let samples = step(sampler, readings).samples;
    let device = |reading: &cardhour_collector::probe::DeviceReading| {
        let sample = samples.iter().find(|sample| sample.device_uuid == reading.id.device_uuid);
        Device {
            card_uuid: reading.id.card_uuid.clone(),
            device_uuid: reading.id.device_uuid.clone(),
            memory_bytes: reading.state.memory_total_bytes.seen(),
            used_bytes: reading.state.memory_used_bytes.seen(),
            sm_active: sample.and_then(|sample| sample.sm_active_pct.seen()),
        }
    };
    let process = |process: &cardhour_collector::holders::DeviceProcess| {
        let bytes = match process.memory_bytes {
            Reading::Seen(bytes) => Some(bytes),
            Reading::Missing(_) => None,
        };
        (process.device_uuid.clone(), group_of(process.pid).unwrap_or(process.pid), bytes)
    };
    let xid = |event: &cardhour_domain::NodeEvent| {
        let number = event.number.filter(|_| event.kind == EventKind::Xid)?;
        Some((event.card_uuid.clone(), u32::try_from(number).ok()?))
    };
    Tick {
        at: Instant::now(),
        devices: readings.devices.iter().map(device).collect(),
        processes: readings.processes.iter().map(process).collect(),
        xids: readings.events.iter().filter_map(xid).collect(),
    }
}

/// The process group of a process, as the kernel says it: the third word after its name, which ends with the last parenthesis (proc(5)).
fn group_of(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(2)?.parse().ok()
}

fn mib(bytes: i64) -> u64 {
    (bytes / MIB).max(0).unsigned_abs()
}

fn lock(seen: &Mutex<Vec<Tick>>) -> MutexGuard<'_, Vec<Tick>> {
    // A list that a panic left is a list all the same.
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
