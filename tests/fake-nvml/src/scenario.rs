//! A scenario: what cards there are, what they do, and what goes wrong, over time.

use crate::curve::{Curve, Written};
use crate::preset::{Preset, preset};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Everything that happens, checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Version of the driver.
    pub driver: String,
    /// Version of CUDA, as the driver gives it: 13000 for 13.0.
    pub cuda: i32,
    /// What the wall clock says at its start. Unit: seconds since 1970.
    pub starts_at_unix_s: i64,
    /// How much faster than the world it runs on a running clock.
    pub speed: f64,
    /// Its cards, in the order of the driver's first index.
    pub cards: Vec<Card>,
    pub(crate) processes: Vec<Process>,
    pub(crate) events: Vec<Event>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) vgpus: Vec<Vgpu>,
}

/// A scenario that can't be played.
#[derive(Debug)]
pub struct ScenarioError {
    path: PathBuf,
    reason: String,
}

impl std::fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "scenario {}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for ScenarioError {}

/// A card.
#[derive(Clone, Debug)]
pub struct Card {
    /// Its UUID.
    pub uuid: String,
    /// Its place on the bus: `00000000:3B:00.0`.
    pub pci: String,
    /// Its model.
    pub model: String,
    /// The number of its device file.
    pub minor: u32,
    /// Its memory. Unit: MiB.
    pub memory_mib: u64,
    /// What the driver keeps of it for itself. Unit: MiB.
    pub(crate) reserved_mib: u64,
    pub(crate) serial: String,
    pub(crate) preset: Preset,
    pub(crate) curves: BTreeMap<String, Curve>,
    pub(crate) layouts: Vec<Layout>,
    pub(crate) health: Vec<Health>,
    pub(crate) unsupported: Vec<String>,
    pub(crate) energy_start_mj: i64,
    /// Stamps of its ring count from the node's boot and not from 1970.
    pub(crate) ring_since_boot: bool,
    /// A ring that has no new samples while nothing runs says that there are none.
    pub(crate) ring_empty_when_idle: bool,
}

/// How a card is cut, from a moment on.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) from_ms: i64,
    /// Its slices; none: it is whole.
    pub slices: Vec<Slice>,
    pub(crate) pending: Option<bool>,
}

/// A MIG instance.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Its UUID.
    pub uuid: String,
    /// Its GPU instance.
    pub gi: u32,
    /// Its compute instance; none: the instance has none, and no profiling data.
    pub ci: Option<u32>,
    /// Its profile: `1g.10gb`.
    pub profile: String,
    /// Compute slices it has.
    pub slices: u32,
    /// Its memory. Unit: MiB.
    pub memory_mib: u64,
    pub(crate) slot: u32,
    pub(crate) curves: BTreeMap<String, Curve>,
}

/// A process on a card or slice.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Process {
    pub pid: u32,
    pub card: usize,
    /// UUID of its slice.
    pub slice: Option<String>,
    #[serde(default)]
    pub from_s: f64,
    pub until_s: Option<f64>,
    /// `"na"`: the driver doesn't know.
    #[serde(default = "no_memory")]
    pub memory_mib: Memory,
    #[serde(default)]
    pub kind: Kind,
    /// Percent of the multiprocessors' time, as the driver's ring has it. Garbage is possible.
    #[serde(default)]
    pub sm_pct: u32,
    /// Whether the driver lists it to this caller.
    #[serde(default = "yes")]
    pub listed: bool,
    /// What the lists call it, where that isn't what the ring does: another namespace.
    pub listed_pid: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Memory {
    Mib(u64),
    #[allow(dead_code, reason = "any word means that nobody knows")]
    Unknown(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    #[default]
    Compute,
    Graphics,
    Mps,
}

/// Something the driver tells of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Event {
    pub at_s: f64,
    pub card: usize,
    /// 0x8 for an XID, 0x100 for a new layout.
    #[serde(default = "xid")]
    pub kind: u64,
    #[serde(default)]
    pub data: u64,
    pub gi: Option<u32>,
    pub ci: Option<u32>,
}

/// Counters of a card's health, from a moment on.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Health {
    pub at_s: f64,
    pub corrected: u64,
    pub uncorrected: u64,
    pub remapped_correctable: u32,
    pub remapped_uncorrectable: u32,
    pub remap_pending: u32,
    pub remap_failed: u32,
    pub recovery_action: u32,
    pub throttle_reasons: u64,
    pub pcie_replays: u32,
    pub retired_single_bit: u32,
    pub retired_double_bit: u32,
    pub retire_pending: u32,
    /// Links that are down, by number.
    pub nvlinks_down: Vec<u32>,
    pub nvlink_crc_flit: u64,
    pub nvlink_crc_data: u64,
    pub nvlink_replay: u64,
    pub nvlink_recovery: u64,
    pub nvlink_ecc_data: u64,
}

/// Something that goes wrong.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    #[serde(default)]
    pub at_s: f64,
    /// None: for ever.
    pub until_s: Option<f64>,
    /// None: every card, and calls of no card.
    pub card: Option<usize>,
    /// What happens; none: just `rc`, `delay_ms` or `hang` to the calls that `call` names.
    pub kind: Option<FaultKind>,
    /// Name of a call, with `*` for anything.
    #[serde(default = "any")]
    pub call: String,
    /// What the call returns.
    pub rc: Option<u32>,
    /// It sleeps this long first, in real time.
    #[serde(default)]
    pub delay_ms: u64,
    /// It doesn't return before `until_s`, or at all.
    #[serde(default)]
    pub hang: bool,
    /// So many calls are well first.
    #[serde(default)]
    pub after_calls: u64,
    /// Of the calls after those, each so-manieth is hit.
    #[serde(default = "one")]
    pub every: u64,
    /// Only this field of a batch returns `rc`.
    pub field: Option<u32>,
    /// Its end is seen only by who loads the library after it.
    #[serde(default)]
    pub until_reinit: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultKind {
    /// The card answers that it is lost.
    CardLost,
    /// The card answers that it must be reset.
    ResetRequired,
    /// The card isn't there: not counted, not found.
    Unplugged,
    /// The driver is gone; after that all handles are stale and all counters begin at 0.
    DriverReload,
    /// The library and the kernel's module are of two versions.
    VersionMismatch,
    /// The energy counter begins at 0, and goes on from its old value after it.
    EnergyReset,
    /// The energy counter stands still.
    EnergyFrozen,
    /// Utilisation says 100 whatever happens.
    UtilizationLatched,
    /// Utilisation says 0 whatever happens.
    UtilizationZero,
    /// The performance monitor says 0 whatever happens.
    GpmZero,
    /// The performance monitor says NaN.
    GpmNan,
    /// Cards have their indexes the other way round.
    IndexesReversed,
    /// Who asks may not.
    NoPermission,
    /// Who asks may not list the processes of a card that is cut; those of an instance they may.
    ParentListRefused,
    /// Process lists grow between the call that asks for the count and the next.
    CountRace,
    /// A ring whose stamps stand still.
    RingStale,
}

/// A vGPU instance on a card of a hypervisor's host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vgpu {
    pub card: usize,
    pub uuid: String,
    pub vm: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub memory_mib: u64,
    #[serde(default)]
    pub from_s: f64,
    pub until_s: Option<f64>,
}

fn no_memory() -> Memory {
    Memory::Mib(0)
}
fn yes() -> bool {
    true
}
fn xid() -> u64 {
    8
}
fn any() -> String {
    "*".to_owned()
}
fn one() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "driver")]
    driver: String,
    #[serde(default = "cuda")]
    cuda: i32,
    #[serde(default = "starts_at")]
    starts_at_unix_s: i64,
    #[serde(default = "speed")]
    speed: f64,
    card: Vec<CardFile>,
    #[serde(default)]
    process: Vec<Process>,
    #[serde(default)]
    event: Vec<Event>,
    #[serde(default)]
    fault: Vec<Fault>,
    #[serde(default)]
    vgpu: Vec<Vgpu>,
}

fn driver() -> String {
    "580.95.05".to_owned()
}
fn cuda() -> i32 {
    13_000
}
fn starts_at() -> i64 {
    1_800_000_000
}
fn speed() -> f64 {
    1.0
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CardFile {
    preset: String,
    #[serde(default = "one_copy")]
    copies: usize,
    uuid: Option<String>,
    pci: Option<String>,
    model: Option<String>,
    minor: Option<u32>,
    memory_mib: Option<u64>,
    reserved_mib: Option<u64>,
    serial: Option<String>,
    #[serde(default)]
    curve: BTreeMap<String, Written>,
    #[serde(default)]
    layout: Vec<LayoutFile>,
    #[serde(default)]
    health: Vec<Health>,
    #[serde(default)]
    unsupported: Vec<String>,
    #[serde(default)]
    energy_start_mj: i64,
    #[serde(default)]
    ring_since_boot: bool,
    #[serde(default)]
    ring_empty_when_idle: bool,
}

fn one_copy() -> usize {
    1
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayoutFile {
    #[serde(default)]
    at_s: f64,
    #[serde(default)]
    slice: Vec<SliceFile>,
    /// The mode that a reset will bring.
    pending: Option<bool>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct SliceFile {
    profile: String,
    #[serde(default = "one_copy")]
    copies: usize,
    uuid: Option<String>,
    gi: Option<u32>,
    #[serde(default)]
    without_compute: bool,
    slot: Option<u32>,
    slices: Option<u32>,
    memory_mib: Option<u64>,
    #[serde(default)]
    curve: BTreeMap<String, Written>,
}

/// The curves that cards and slices may have.
const CURVES: &[&str] = &[
    "util",
    "mem_util",
    "enc",
    "dec",
    "jpg",
    "ofa",
    "power_w",
    "memory_used_mib",
    "temperature_c",
    "memory_temperature_c",
    "clock_sm_mhz",
    "clock_memory_mhz",
    "graphics",
    "sm",
    "occupancy",
    "tensor",
    "dram",
    "fp64",
    "fp32",
    "fp16",
    "nvlink_tx_kib_s",
    "nvlink_rx_kib_s",
    "pcie_tx_mib_s",
    "pcie_rx_mib_s",
];

fn curves(written: &BTreeMap<String, Written>, of: &str) -> Result<BTreeMap<String, Curve>, String> {
    let curve = |(name, written): (&String, &Written)| {
        if !CURVES.contains(&name.as_str()) {
            return Err(format!("{of}: curve.{name}: no such curve; there are {}", CURVES.join(", ")));
        }
        Ok((name.clone(), Curve::of(written).map_err(|reason| format!("{of}: curve.{name}: {reason}"))?))
    };
    written.iter().map(curve).collect()
}

/// Seconds of a scenario as milliseconds.
pub(crate) fn ms(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

impl Scenario {
    /// Reads a file. Errors: it can't be read, is no TOML, or says what can't be: with the place.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let error = |reason: String| ScenarioError { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|e| error(e.to_string()))?;
        Self::parse(&text).map_err(error)
    }

    /// Reads a text. Errors: as [`Self::load`], without the file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
        let mut cards = Vec::new();
        for (i, written) in file.card.iter().enumerate() {
            for copy in 0..written.copies {
                let number = cards.len();
                cards.push(card(written, number, copy).map_err(|reason| format!("card {}: {reason}", i + 1))?);
            }
        }
        if cards.len() > 200 {
            return Err("more than 200 cards".to_owned());
        }
        let known = |card: usize| card < cards.len();
        for (what, card) in file
            .process
            .iter()
            .map(|p| ("process", p.card))
            .chain(file.event.iter().map(|e| ("event", e.card)))
            .chain(file.fault.iter().filter_map(|f| Some(("fault", f.card?))))
            .chain(file.vgpu.iter().map(|v| ("vgpu", v.card)))
        {
            if !known(card) {
                return Err(format!("{what}: card {card}: there are {} cards, from 0", cards.len()));
            }
        }
        for fault in &file.fault {
            let does = fault.kind.is_some() || fault.rc.is_some() || fault.delay_ms > 0 || fault.hang;
            if !does || fault.field.is_some() && (fault.rc.is_none() || fault.kind.is_some()) {
                return Err("fault: it has a kind, or rc, delay_ms or hang; one of a field has rc".to_owned());
            }
            if fault.until_s.is_some_and(|until| until <= fault.at_s) {
                return Err(format!("fault at {} s: it ends before it begins", fault.at_s));
            }
        }
        for (number, card) in cards.iter().enumerate() {
            if let Some(link) =
                card.health.iter().flat_map(|h| &h.nvlinks_down).find(|link| **link >= card.preset.links)
            {
                return Err(format!(
                    "card {number}: health: nvlinks_down: {link}: it has {} links, from 0",
                    card.preset.links
                ));
            }
            if !card.health.windows(2).all(|pair| pair[0].at_s < pair[1].at_s) {
                return Err(format!("card {number}: health: entries ascend in time"));
            }
        }
        let mut events = file.event;
        for (number, card) in cards.iter().enumerate() {
            // A new layout is told, as the driver does.
            events.extend(card.layouts.iter().filter(|layout| layout.from_ms > 0).map(|layout| Event {
                at_s: layout.from_ms as f64 / 1000.0,
                card: number,
                kind: 0x100,
                data: 0,
                gi: None,
                ci: None,
            }));
        }
        events.sort_by_key(|event| ms(event.at_s));
        Ok(Self {
            driver: file.driver,
            cuda: file.cuda,
            starts_at_unix_s: file.starts_at_unix_s,
            speed: file.speed,
            cards,
            processes: file.process,
            events,
            faults: file.fault,
            vgpus: file.vgpu,
        })
    }

    /// Energy that a card draws over [from, to), by its power alone. Unit: mJ, cut.
    pub fn energy_mj(&self, card: usize, from_ms: i64, to_ms: i64) -> i64 {
        // Thousandths of a watt × milliseconds are microjoules; doubled.
        let doubled_uj = self.cards[card].curve("power_w").doubled_integral(from_ms, to_ms);
        (doubled_uj / 2000) as i64
    }

    /// Time for which a card, or a slice of it, was busy by a curve of percents. Unit: milliseconds.
    pub fn busy_ms(&self, card: usize, slice: Option<&str>, curve: &str, from_ms: i64, to_ms: i64) -> f64 {
        let card = &self.cards[card];
        let of_slice = slice.and_then(|uuid| card.layouts.iter().flat_map(|l| &l.slices).find(|s| s.uuid == uuid));
        let curve = of_slice.map_or_else(|| card.curve(curve), |slice| slice.curve(curve));
        curve.doubled_integral(from_ms, to_ms) as f64 / 200_000.0
    }
}

impl Card {
    /// One of its curves; 0 where it has none of that name.
    pub fn curve(&self, name: &str) -> Curve {
        self.curves.get(name).cloned().unwrap_or_else(|| default_curve(name))
    }

    /// How it is cut at a time: number and layout. None while it is whole.
    pub(crate) fn layout_at(&self, now_ms: i64) -> Option<(usize, &Layout)> {
        let (number, layout) = self.layouts.iter().enumerate().rfind(|(_, layout)| layout.from_ms <= now_ms)?;
        (!layout.slices.is_empty()).then_some((number, layout))
    }

    /// How long a reason to throttle was there over [from, to). Unit: milliseconds.
    pub(crate) fn throttled_ms(&self, reason: u64, from_ms: i64, to_ms: i64) -> i64 {
        let until = |i: usize| self.health.get(i + 1).map_or(to_ms, |next| ms(next.at_s).min(to_ms));
        let stretches = self.health.iter().enumerate().filter(|(_, health)| health.throttle_reasons & reason != 0);
        stretches.map(|(i, health)| (until(i) - ms(health.at_s).max(from_ms)).max(0)).sum()
    }

    pub(crate) fn health_at(&self, now_ms: i64) -> Health {
        self.health.iter().rfind(|health| ms(health.at_s) <= now_ms).cloned().unwrap_or_default()
    }
}

impl Slice {
    /// One of its curves; 0 where it has none of that name.
    pub fn curve(&self, name: &str) -> Curve {
        self.curves.get(name).cloned().unwrap_or_else(|| Curve::constant(0))
    }
}

fn default_curve(name: &str) -> Curve {
    Curve::constant(match name {
        "power_w" => 60_000,
        "temperature_c" => 35_000,
        "memory_temperature_c" => 40_000,
        "clock_sm_mhz" => 1_980_000,
        "clock_memory_mhz" => 2_619_000,
        _ => 0,
    })
}

fn card(written: &CardFile, number: usize, copy: usize) -> Result<Card, String> {
    let preset = preset(&written.preset).ok_or_else(|| format!("preset: no kind {:?}", written.preset))?;
    let memory_mib = written.memory_mib.unwrap_or(preset.memory_mib);
    let mut layouts = Vec::new();
    for layout in &written.layout {
        layouts.push(cut(layout, preset, number, memory_mib)?);
    }
    if !layouts.windows(2).all(|pair| pair[0].from_ms < pair[1].from_ms) {
        return Err("layouts ascend in time".to_owned());
    }
    let suffix = |text: &String| if written.copies > 1 { format!("{text}{copy}") } else { text.clone() };
    let digits = number + 1;
    Ok(Card {
        uuid: written.uuid.as_ref().map_or_else(|| format!("GPU-00000000-0000-4000-8000-{digits:012x}"), suffix),
        pci: written.pci.clone().unwrap_or_else(|| format!("00000000:{:02X}:00.0", 0x10 + number)),
        model: written.model.clone().unwrap_or_else(|| preset.model.to_owned()),
        minor: written.minor.unwrap_or(number as u32),
        memory_mib,
        reserved_mib: written.reserved_mib.unwrap_or(preset.reserved_mib),
        serial: written.serial.clone().unwrap_or_else(|| format!("1650{digits:09}")),
        preset,
        curves: curves(&written.curve, "card")?,
        layouts,
        health: written.health.clone(),
        unsupported: written.unsupported.clone(),
        energy_start_mj: written.energy_start_mj,
        ring_since_boot: written.ring_since_boot,
        ring_empty_when_idle: written.ring_empty_when_idle,
    })
}

fn cut(written: &LayoutFile, preset: Preset, card: usize, memory_mib: u64) -> Result<Layout, String> {
    let Some(all) = preset.slices else { return Err("layout: this kind of card can't be cut".to_owned()) };
    let mut slices: Vec<Slice> = Vec::new();
    for slice in &written.slice {
        let of_name = slice.profile.split('g').next().and_then(|digits| digits.parse::<u32>().ok());
        let parts = slice.slices.or(of_name).ok_or_else(|| format!("slice {}: slices: how many?", slice.profile))?;
        for copy in 0..slice.copies {
            let number = slices.len() as u32;
            let uuid = slice.uuid.as_ref().map_or_else(
                || format!("MIG-{:08x}-0000-5000-8000-{:06x}{number:06x}", ms(written.at_s), card + 1),
                |uuid| if slice.copies > 1 { format!("{uuid}{copy}") } else { uuid.clone() },
            );
            slices.push(Slice {
                uuid,
                gi: slice.gi.map_or(7 + number, |gi| gi + copy as u32),
                ci: (!slice.without_compute).then_some(0),
                profile: slice.profile.clone(),
                slices: parts,
                memory_mib: slice.memory_mib.unwrap_or(memory_mib * u64::from(parts) / u64::from(all + 1)),
                slot: slice.slot.unwrap_or(number),
                curves: curves(&slice.curve, &slice.profile)?,
            });
        }
    }
    if slices.iter().map(|slice| slice.slices).sum::<u32>() > all {
        return Err(format!("layout at {} s: more than {all} compute slices", written.at_s));
    }
    Ok(Layout { from_ms: ms(written.at_s), slices, pending: written.pending })
}
