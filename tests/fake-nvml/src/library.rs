//! The library as one process has it loaded: its handles, what it waits for, and how often it was called.

use crate::clock::Clock;
use crate::exports::Code;
use crate::handle::{Named, pack, unpack};
use crate::place;
use crate::scenario::{Card, Fault, FaultKind, Scenario, Slice, ms};
use nvml_wrapper_sys::bindings::*;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The variable that names the scenario's file.
const SCENARIO_VARIABLE: &str = "FAKE_NVML_SCENARIO";
/// The variable that names a file to which the counts of calls are written: `NAME COUNT`, a line each.
const COUNTS_VARIABLE: &str = "FAKE_NVML_COUNTS";
/// Counts are written each so many calls, and at the end.
const WRITE_EVERY: u64 = 512;

/// What is loaded, between the first `nvmlInit` and the last `nvmlShutdown`.
pub(crate) struct Library {
    pub scenario: Scenario,
    clock: Clock,
    users: u32,
    /// When the first of its users came.
    loaded_at_ms: i64,
    pub sets: Vec<Option<EventSet>>,
    pub samples: Vec<Option<GpmSample>>,
    fault_calls: Vec<u64>,
}

/// Events that somebody waits for.
#[derive(Default)]
pub(crate) struct EventSet {
    /// Card, kinds, and since when.
    pub registered: Vec<(usize, u64, i64)>,
    /// Which of the scenario's events were told.
    pub told: Vec<usize>,
}

/// A sample of the performance monitor: of what, and when.
#[derive(Clone, Default)]
pub(crate) struct GpmSample {
    pub of: Option<(usize, Option<String>)>,
    pub at_ms: i64,
}

static LIBRARY: Mutex<Option<Library>> = Mutex::new(None);
/// Counts by where a name is in memory, which is quicker to compare than a name; a name may be in two places.
type Counts = BTreeMap<usize, (&'static str, u64)>;

/// Counts of each, and how many calls in all.
static COUNTS: Mutex<(Counts, u64)> = Mutex::new((BTreeMap::new(), 0));

/// What a handle means now.
pub(crate) enum Target<'a> {
    Card(usize, &'a Card),
    Slice(usize, &'a Card, &'a Slice),
}

fn library() -> MutexGuard<'static, Option<Library>> {
    LIBRARY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count(name: &'static str) {
    let mut counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    counts.0.entry(name.as_ptr() as usize).or_insert((name, 0)).1 += 1;
    counts.1 += 1;
    if counts.1.is_multiple_of(WRITE_EVERY) {
        write_counts(&counts.0);
    }
}

fn write_counts(by_place: &Counts) {
    let Some(path) = place::file(COUNTS_VARIABLE, place::COUNTS) else { return };
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in by_place.values() {
        *counts.entry(name).or_default() += count;
    }
    let text: String = counts.iter().map(|(name, count)| format!("{name} {count}\n")).collect();
    // Whoever reads sees the old counts or the new ones.
    let new = path.with_extension("new");
    if std::fs::write(&new, text).is_ok() {
        _ = std::fs::rename(&new, &path);
    }
}

/// How often a function was called.
pub(crate) fn calls(name: &str) -> u64 {
    let counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    counts.0.values().filter(|(known, _)| *known == name).map(|(_, count)| count).sum()
}

/// How many samples and sets are still there.
pub(crate) fn leaks() -> u64 {
    let library = library();
    let count = |library: &Library| library.sets.iter().flatten().count() + library.samples.iter().flatten().count();
    library.as_ref().map_or(0, count) as u64
}

/// Loads the scenario, or counts one more user.
pub(crate) fn init(name: &'static str) -> Result<(), Code> {
    count(name);
    let mut guard = library();
    if guard.is_none() {
        let path = place::file(SCENARIO_VARIABLE, place::SCENARIO)
            .ok_or(Code(nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED))?;
        let scenario = Scenario::load(&path).map_err(|error| {
            eprintln!("fake_nvml: {error}");
            Code(nvmlReturn_enum_NVML_ERROR_UNKNOWN)
        })?;
        let clock = Clock::of_process(scenario.speed).map_err(|error| {
            eprintln!("fake_nvml: the clock: {error}");
            Code(nvmlReturn_enum_NVML_ERROR_UNKNOWN)
        })?;
        let fault_calls = vec![0; scenario.faults.len()];
        *guard = Some(Library {
            scenario,
            clock,
            users: 0,
            loaded_at_ms: 0,
            sets: Vec::new(),
            samples: Vec::new(),
            fault_calls,
        });
    }
    let library = guard.as_mut().expect("loaded above");
    let now = library.clock.now_ms();
    let refused = if library.has(FaultKind::DriverReload, None, now) {
        Some(nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED)
    } else if library.has(FaultKind::VersionMismatch, None, now) {
        Some(nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    } else {
        None
    };
    let mut refused = refused.map(Code);
    if refused.is_none()
        && let Some(hit) = library.hit(name, None, now)
    {
        // Counted already, so that nobody takes the library away while this one waits; others may call meanwhile.
        library.users += 1;
        drop(guard);
        hit.wait();
        guard = self::library();
        refused = hit.rc;
        let library = guard.as_mut().ok_or(Code(nvmlReturn_enum_NVML_ERROR_UNINITIALIZED))?;
        library.users -= 1;
    }
    let library = guard.as_mut().ok_or(Code(nvmlReturn_enum_NVML_ERROR_UNINITIALIZED))?;
    if let Some(code) = refused {
        if library.users == 0 {
            *guard = None;
        }
        return Err(code);
    }
    if library.users == 0 {
        library.loaded_at_ms = library.clock.now_ms();
    }
    library.users += 1;
    Ok(())
}

/// One user less; the last takes everything along.
pub(crate) fn shutdown() -> Result<(), Code> {
    count("nvmlShutdown");
    write_counts(&COUNTS.lock().unwrap_or_else(PoisonError::into_inner).0);
    let mut guard = library();
    let library = guard.as_mut().ok_or(Code(nvmlReturn_enum_NVML_ERROR_UNINITIALIZED))?;
    library.users -= 1;
    if library.users == 0 {
        *guard = None;
    }
    Ok(())
}

/// What a fault does to one call.
struct Hit {
    rc: Option<Code>,
    delay_ms: u64,
    /// Until when it doesn't return; `i64::MAX` for ever.
    hangs_until: Option<i64>,
}

impl Hit {
    fn wait(&self) {
        std::thread::sleep(Duration::from_millis(self.delay_ms));
        if let Some(until) = self.hangs_until {
            wait_until(until);
        }
    }
}

/// Does a call: counts it, lets faults have their way, and answers.
pub(crate) fn call(
    name: &'static str,
    device: Option<usize>,
    work: impl FnOnce(&mut Library, i64) -> Result<(), Code>,
) -> Result<(), Code> {
    count(name);
    let mut guard = library();
    let library = guard.as_mut().ok_or(Code(nvmlReturn_enum_NVML_ERROR_UNINITIALIZED))?;
    let mut now = library.clock.now_ms();
    let card = match device {
        Some(handle) => Some(library.card_of(handle, now)?),
        None => None,
    };
    if let Some(hit) = library.hit(name, card, now) {
        // Others may call meanwhile.
        drop(guard);
        hit.wait();
        if let Some(code) = hit.rc {
            return Err(code);
        }
        guard = self::library();
        let library = guard.as_ref().ok_or(Code(nvmlReturn_enum_NVML_ERROR_UNINITIALIZED))?;
        now = library.clock.now_ms();
    }
    let library = guard.as_mut().ok_or(Code(nvmlReturn_enum_NVML_ERROR_UNINITIALIZED))?;
    if library.has(FaultKind::DriverReload, None, now) {
        return Err(Code(nvmlReturn_enum_NVML_ERROR_UNKNOWN));
    }
    if let Some(card) = card {
        library.card_answers(name, card, now)?;
    }
    work(library, now)
}

fn wait_until(until: i64) {
    loop {
        let now = library().as_ref().map_or(i64::MAX, |library| library.clock.now_ms());
        if now >= until {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits in real time, a moment at a time, for `work` to have an answer.
pub(crate) fn wait_for<T>(timeout_ms: u32, mut work: impl FnMut(&mut Library, i64) -> Option<T>) -> Option<T> {
    // Short enough for a clock that somebody else moves, long enough to cost a waiting collector next to nothing.
    const LOOK_AGAIN: Duration = Duration::from_millis(10);
    let end = Instant::now() + Duration::from_millis(u64::from(timeout_ms));
    loop {
        if let Some(library) = library().as_mut() {
            let now = library.clock.now_ms();
            if let Some(answer) = work(library, now) {
                return Some(answer);
            }
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        std::thread::sleep(left.min(LOOK_AGAIN));
    }
}

fn is_on(fault: &Fault, now_ms: i64) -> bool {
    ms(fault.at_s) <= now_ms && fault.until_s.is_none_or(|until| now_ms < ms(until))
}

/// Whether a name is what a pattern with one `*` or none says.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((start, end)) => name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end),
        None => pattern == name,
    }
}

impl Library {
    /// Whether something is wrong now, with a card or at all.
    pub fn has(&self, kind: FaultKind, card: Option<usize>, now_ms: i64) -> bool {
        self.since(kind, card, now_ms).is_some()
    }

    /// Since when something is wrong.
    pub fn since(&self, kind: FaultKind, card: Option<usize>, now_ms: i64) -> Option<i64> {
        let hits = |fault: &&Fault| {
            fault.kind == Some(kind) && self.is_on(fault, now_ms) && (fault.card.is_none() || fault.card == card)
        };
        self.scenario.faults.iter().find(hits).map(|fault| ms(fault.at_s))
    }

    /// Whether a fault is there: also beyond its end, for who was loaded before that, where only loading anew mends it.
    fn is_on(&self, fault: &Fault, now_ms: i64) -> bool {
        let lasts = fault.until_reinit && fault.until_s.is_some_and(|until| self.loaded_at_ms < ms(until));
        is_on(fault, now_ms) || lasts && ms(fault.at_s) <= now_ms
    }

    /// What a fault makes of one field of a batch.
    pub fn field_fault(&self, card: usize, field: u32, now_ms: i64) -> Option<Code> {
        let hits = |fault: &&Fault| {
            fault.field == Some(field) && self.is_on(fault, now_ms) && fault.card.is_none_or(|of| of == card)
        };
        self.scenario.faults.iter().find(hits).and_then(|fault| fault.rc).map(Code)
    }

    /// What faults without a kind do to a call.
    fn hit(&mut self, name: &str, card: Option<usize>, now_ms: i64) -> Option<Hit> {
        for (i, fault) in self.scenario.faults.iter().enumerate() {
            let is_its_card = fault.card.is_none() || fault.card == card;
            let is_of_call = fault.kind.is_none() && fault.field.is_none();
            if !is_of_call || !self.is_on(fault, now_ms) || !is_its_card || !matches(&fault.call, name) {
                continue;
            }
            self.fault_calls[i] += 1;
            let after = self.fault_calls[i].saturating_sub(fault.after_calls);
            if after == 0 || !(after - 1).is_multiple_of(fault.every.max(1)) {
                continue;
            }
            let until = fault.until_s.map_or(i64::MAX, ms);
            let hangs_until = fault.hang.then_some(until);
            return Some(Hit { rc: fault.rc.map(Code), delay_ms: fault.delay_ms, hangs_until });
        }
        None
    }

    /// What a lookup of a card ends with by a fault of that card alone: which card it is of is only known when it has found it.
    pub fn lookup_refused(&self, name: &str, card: usize, now_ms: i64) -> Option<Code> {
        let is_of_lookup = |fault: &&Fault| {
            let is_of_call = fault.kind.is_none() && fault.field.is_none();
            is_of_call && fault.card == Some(card) && self.is_on(fault, now_ms) && matches(&fault.call, name)
        };
        self.scenario.faults.iter().find(is_of_lookup).and_then(|fault| fault.rc).map(Code)
    }

    /// How often the driver was loaded anew before: the generation of handles.
    fn generation(&self, now_ms: i64) -> u16 {
        let reloads = self.scenario.faults.iter().filter(|fault| fault.kind == Some(FaultKind::DriverReload));
        reloads.filter(|fault| fault.until_s.is_some_and(|until| ms(until) <= now_ms)).count() as u16
    }

    /// When the driver was loaded: 0, or the end of its last absence.
    pub fn loaded_ms(&self, now_ms: i64) -> i64 {
        let reloads = self.scenario.faults.iter().filter(|fault| fault.kind == Some(FaultKind::DriverReload));
        reloads.filter_map(|fault| fault.until_s.map(ms)).filter(|until| *until <= now_ms).max().unwrap_or(0)
    }

    pub fn handle(&self, named: Named, now_ms: i64) -> usize {
        pack(self.generation(now_ms), named)
    }

    /// The card of a handle. Errors: it is none, it is of a driver that was loaded before.
    fn card_of(&self, handle: usize, now_ms: i64) -> Result<usize, Code> {
        let invalid = Code(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
        let (generation, named) = unpack(handle).ok_or(invalid)?;
        let card = match named {
            Named::Card(card) | Named::Slice { card, .. } => card,
            Named::Set(_) | Named::Sample(_) => return Err(invalid),
        };
        if generation != self.generation(now_ms) || card >= self.scenario.cards.len() {
            return Err(invalid);
        }
        Ok(card)
    }

    /// Whether a card answers a call at all.
    fn card_answers(&self, name: &str, card: usize, now_ms: i64) -> Result<(), Code> {
        for (kind, code) in [
            (FaultKind::CardLost, nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST),
            (FaultKind::Unplugged, nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST),
            (FaultKind::ResetRequired, nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED),
        ] {
            if self.has(kind, Some(card), now_ms) {
                return Err(Code(code));
            }
        }
        let forbids = |fault: &Fault| {
            fault.kind == Some(FaultKind::NoPermission)
                && self.is_on(fault, now_ms)
                && fault.card.is_none_or(|of| of == card)
                && matches(&fault.call, name)
        };
        if self.scenario.faults.iter().any(forbids) {
            return Err(Code(nvmlReturn_enum_NVML_ERROR_NO_PERMISSION));
        }
        let described = &self.scenario.cards[card];
        let is_listed =
            described.preset.unsupported.contains(&name) || described.unsupported.iter().any(|n| matches(n, name));
        if is_listed { Err(Code(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED)) } else { Ok(()) }
    }

    /// What a handle names now. Errors: nothing, or a slice of a layout that is gone.
    pub fn target(&self, handle: usize, now_ms: i64) -> Result<Target<'_>, Code> {
        let invalid = Code(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
        let (_, named) = unpack(handle).ok_or(invalid)?;
        self.card_of(handle, now_ms)?;
        match named {
            Named::Card(number) => Ok(Target::Card(number, &self.scenario.cards[number])),
            Named::Slice { card: number, layout, slice } => {
                let card = &self.scenario.cards[number];
                let (now, of) = card.layout_at(now_ms).ok_or(invalid)?;
                if now != layout {
                    return Err(invalid);
                }
                Ok(Target::Slice(number, card, of.slices.get(slice).ok_or(invalid)?))
            }
            Named::Set(_) | Named::Sample(_) => Err(invalid),
        }
    }

    /// The card of a handle that must be one. Errors: a slice, which has no such value.
    pub fn card(&self, handle: usize, now_ms: i64) -> Result<(usize, &Card), Code> {
        match self.target(handle, now_ms)? {
            Target::Card(number, card) => Ok((number, card)),
            Target::Slice(..) => Err(Code(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED)),
        }
    }

    /// Cards that are there, in the order of their indexes.
    pub fn order(&self, now_ms: i64) -> Vec<usize> {
        let there = |card: &usize| !self.has(FaultKind::Unplugged, Some(*card), now_ms);
        let mut order: Vec<usize> = (0..self.scenario.cards.len()).filter(there).collect();
        if self.has(FaultKind::IndexesReversed, None, now_ms) {
            order.reverse();
        }
        order
    }

    /// What a card's energy counter says. Unit: mJ.
    pub fn energy_mj(&self, number: usize, now_ms: i64) -> i64 {
        let card = Some(number);
        let now_ms = self.since(FaultKind::EnergyFrozen, card, now_ms).unwrap_or(now_ms);
        if let Some(since) = self.since(FaultKind::EnergyReset, card, now_ms) {
            return self.scenario.energy_mj(number, since, now_ms);
        }
        let loaded = self.loaded_ms(now_ms);
        let before = if loaded > 0 { 0 } else { self.scenario.cards[number].energy_start_mj };
        before + self.scenario.energy_mj(number, loaded, now_ms)
    }

    /// Unit: microseconds, by the clock that a card's ring has.
    pub fn ring_us(&self, card: &Card, ms: i64) -> u64 {
        let base = if card.ring_since_boot { 3_600 } else { self.scenario.starts_at_unix_s };
        (base * 1_000_000 + ms * 1000) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_pattern_names_what_it_says() {
        assert!(matches("nvmlDeviceGet*", "nvmlDeviceGetUUID") && matches("*", "x") && matches("*_v2", "nvmlInit_v2"));
        assert!(!matches("nvmlDeviceGetUUID", "nvmlDeviceGetName") && !matches("ab*ba", "aba"));
    }
}
