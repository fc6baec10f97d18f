//! Who is on a card.

use super::{Code, device_call, put_rows};
use crate::library::{Library, Target};
use crate::scenario::{FaultKind, Kind, Memory, Process, ms};
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_uint, c_ulonglong};

/// NVML's word for a memory or an instance that isn't known.
const UNKNOWN_MEMORY: u64 = u64::MAX;
const NO_INSTANCE: u32 = u32::MAX;

/// Processes that are on a card now.
pub(super) fn here(library: &Library, card: usize, now: i64) -> impl Iterator<Item = &Process> {
    let is_here = move |process: &&Process| {
        process.card == card && ms(process.from_s) <= now && process.until_s.is_none_or(|until| now < ms(until))
    };
    library.scenario.processes.iter().filter(is_here)
}

/// None where the driver doesn't know.
pub(super) fn memory_bytes(process: &Process) -> Option<u64> {
    match process.memory_mib {
        Memory::Mib(mib) => Some(mib << 20),
        Memory::Unknown(_) => None,
    }
}

fn list(library: &Library, device: usize, now: i64, kind: Kind) -> Result<Vec<nvmlProcessInfo_t>, Code> {
    let target = library.target(device, now)?;
    let (number, card, slice) = match &target {
        Target::Card(number, card) => (*number, *card, None),
        Target::Slice(number, card, slice) => (*number, *card, Some(slice.uuid.as_str())),
    };
    if slice.is_none() && card.layout_at(now).is_some() && library.has(FaultKind::ParentListRefused, Some(number), now)
    {
        return Err(Code(nvmlReturn_enum_NVML_ERROR_NO_PERMISSION));
    }
    let row = |process: &Process| {
        let of_slice = process.slice.as_deref().and_then(|uuid| {
            let (_, layout) = card.layout_at(now)?;
            layout.slices.iter().find(|slice| slice.uuid == uuid)
        });
        let mut info: nvmlProcessInfo_t = unsafe { std::mem::zeroed() };
        info.pid = process.listed_pid.unwrap_or(process.pid);
        info.usedGpuMemory = memory_bytes(process).unwrap_or(UNKNOWN_MEMORY);
        info.gpuInstanceId = of_slice.map_or(NO_INSTANCE, |slice| slice.gi);
        info.computeInstanceId = of_slice.and_then(|slice| slice.ci).unwrap_or(NO_INSTANCE);
        info
    };
    let wanted = |process: &&Process| {
        process.listed && process.kind == kind && (slice.is_none() || process.slice.as_deref() == slice)
    };
    Ok(here(library, number, now).filter(wanted).map(row).collect())
}

macro_rules! processes {
    ($name:ident, $kind:expr) => {
        device_call! {
            $name(library, now, device, count: *mut c_uint, infos: *mut nvmlProcessInfo_t) {
                let mut rows = list(library, device, now, $kind)?;
                if infos.is_null() && library.has(FaultKind::CountRace, None, now) {
                    // Those who ask for the count get one that is old when they come back.
                    rows.truncate(rows.len() / 2);
                }
                unsafe { put_rows(rows, count, infos) }
            }
        }
    };
}
processes!(nvmlDeviceGetComputeRunningProcesses_v3, Kind::Compute);
processes!(nvmlDeviceGetGraphicsRunningProcesses_v3, Kind::Graphics);
processes!(nvmlDeviceGetMPSComputeRunningProcesses_v3, Kind::Mps);

device_call! {
    nvmlDeviceGetProcessUtilization(
        library, now, device, rows: *mut nvmlProcessUtilizationSample_t, count: *mut c_uint, last_seen_us: c_ulonglong
    ) {
        let (number, card) = library.card(device, now)?;
        if card.layout_at(now).is_some() {
            return Err(Code(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED));
        }
        let stamp = library.ring_us(card, now / 1000 * 1000);
        let busy: Vec<nvmlProcessUtilizationSample_t> = here(library, number, now)
            .filter(|process| process.sm_pct > 0 && stamp > last_seen_us)
            .map(|process| nvmlProcessUtilizationSample_t {
                pid: process.pid,
                timeStamp: stamp,
                smUtil: process.sm_pct,
                memUtil: process.sm_pct / 2,
                encUtil: 0,
                decUtil: 0,
            })
            .collect();
        // Nobody used the card: the driver finds nothing, and that is no fault.
        if busy.is_empty() {
            return Err(Code(nvmlReturn_enum_NVML_ERROR_NOT_FOUND));
        }
        unsafe { put_rows(busy, count, rows) }
    }
}
