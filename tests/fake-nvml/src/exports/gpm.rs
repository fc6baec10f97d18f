//! The performance monitor of Hopper and newer.

use super::{Code, answer, device_call, put};
use crate::curve::Curve;
use crate::handle::{Named, pack, unpack};
use crate::library::{GpmSample, Library, Target, call};
use crate::scenario::FaultKind;
use nvml_wrapper_sys::bindings::*;
use std::ffi::c_uint;

const NOT_SUPPORTED: Code = Code(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED);
const NOT_FOUND: Code = Code(nvmlReturn_enum_NVML_ERROR_NOT_FOUND);
const INVALID: Code = Code(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);

device_call! {
    nvmlGpmQueryDeviceSupport(library, now, device, support: *mut nvmlGpmSupport_t) {
        let card = match library.target(device, now)? {
            Target::Card(_, card) | Target::Slice(_, card, ..) => card,
        };
        if support.is_null() {
            return Err(INVALID);
        }
        if unsafe { (*support).version } != 1 {
            return Err(Code(25));
        }
        unsafe { put(support, nvmlGpmSupport_t { version: 1, isSupportedDevice: u32::from(card.preset.has_gpm) }) }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleAlloc(sample: *mut nvmlGpmSample_t) -> nvmlReturn_t {
    answer(|| {
        call("nvmlGpmSampleAlloc", None, |library, _| {
            let free = library.samples.iter().position(Option::is_none);
            let number = free.unwrap_or_else(|| {
                library.samples.push(None);
                library.samples.len() - 1
            });
            library.samples[number] = Some(GpmSample::default());
            unsafe { put(sample, pack(0, Named::Sample(number)) as nvmlGpmSample_t) }
        })
    })
}

fn number_of(sample: nvmlGpmSample_t) -> Result<usize, Code> {
    match unpack(sample as usize) {
        Some((_, Named::Sample(number))) => Ok(number),
        _ => Err(INVALID),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> nvmlReturn_t {
    answer(|| {
        call("nvmlGpmSampleFree", None, |library, _| {
            let there = library.samples.get_mut(number_of(sample)?).ok_or(INVALID)?;
            there.take().map(drop).ok_or(INVALID)
        })
    })
}

fn take(library: &mut Library, sample: nvmlGpmSample_t, of: (usize, Option<String>), now: i64) -> Result<(), Code> {
    if !library.scenario.cards[of.0].preset.has_gpm {
        return Err(NOT_SUPPORTED);
    }
    let there = library.samples.get_mut(number_of(sample)?).and_then(Option::as_mut).ok_or(INVALID)?;
    *there = GpmSample { of: Some(of), at_ms: now };
    Ok(())
}

device_call! {
    nvmlGpmSampleGet(library, now, device, sample: nvmlGpmSample_t) {
        let of = match library.target(device, now)? {
            Target::Card(number, _) => (number, None),
            Target::Slice(number, _, slice) => (number, Some(slice.uuid.clone())),
        };
        take(library, sample, of, now)
    }
}

device_call! {
    nvmlGpmMigSampleGet(library, now, device, instance: c_uint, sample: nvmlGpmSample_t) {
        let (number, card) = library.card(device, now)?;
        let (_, layout) = card.layout_at(now).ok_or(NOT_SUPPORTED)?;
        let slice = layout.slices.iter().find(|slice| slice.gi == instance).ok_or(NOT_FOUND)?;
        let uuid = slice.uuid.clone();
        take(library, sample, (number, Some(uuid)), now)
    }
}

/// What each metric is drawn from.
fn curve_of(id: u32) -> Option<&'static str> {
    Some(match id {
        1 => "graphics",
        2 => "sm",
        3 => "occupancy",
        5 => "tensor",
        10 => "dram",
        11 => "fp64",
        12 => "fp32",
        13 => "fp16",
        20 => "pcie_tx_mib_s",
        21 => "pcie_rx_mib_s",
        60 => "nvlink_rx_kib_s",
        61 => "nvlink_tx_kib_s",
        _ => return None,
    })
}

/// The value of a metric between two samples. Errors: there is no such metric, or no data for it.
fn metric(library: &Library, of: &(usize, Option<String>), id: u32, from: i64, to: i64) -> Result<f64, Code> {
    let (number, slice) = of;
    let name = curve_of(id).ok_or(NOT_SUPPORTED)?;
    let card = &library.scenario.cards[*number];
    let curve: Curve = match slice {
        None => {
            // A whole card says what its slices do, where it has no curve of its own.
            card.curves.get(name).or_else(|| (name == "graphics").then(|| card.curves.get("sm")).flatten()).cloned()
        }
        Some(uuid) => {
            let slice = card.layouts.iter().flat_map(|layout| &layout.slices).find(|slice| slice.uuid == *uuid);
            let slice = slice.ok_or(NOT_FOUND)?;
            if slice.ci.is_none() {
                return Err(Code(nvmlReturn_enum_NVML_ERROR_NO_DATA));
            }
            slice.curves.get(name).or_else(|| (name == "graphics").then(|| slice.curves.get("sm")).flatten()).cloned()
        }
    }
    .unwrap_or_else(|| Curve::constant(0));
    if library.has(FaultKind::GpmNan, Some(*number), to) {
        return Ok(f64::NAN);
    }
    if library.has(FaultKind::GpmZero, Some(*number), to) {
        return Ok(0.0);
    }
    let mean = curve.mean(from, to) / 1000.0;
    Ok(if name.ends_with("kib_s") { mean / 1024.0 } else { mean })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) -> nvmlReturn_t {
    answer(|| {
        call("nvmlGpmMetricsGet", None, |library, _| {
            if request.is_null() {
                return Err(INVALID);
            }
            let request = unsafe { &mut *request };
            if request.version != 1 {
                return Err(Code(25));
            }
            let sample =
                |handle| library.samples.get(number_of(handle)?).and_then(Option::as_ref).cloned().ok_or(INVALID);
            let (first, second) = (sample(request.sample1)?, sample(request.sample2)?);
            let of = first.of.clone().filter(|of| second.of.as_ref() == Some(of)).ok_or(INVALID)?;
            // The monitor has new numbers ten times a second.
            if second.at_ms - first.at_ms < 100 {
                return Err(Code(nvmlReturn_enum_NVML_ERROR_NO_DATA));
            }
            let count = request.numMetrics as usize;
            for row in request.metrics.iter_mut().take(count) {
                match metric(library, &of, row.metricId, first.at_ms, second.at_ms) {
                    Ok(value) => (row.nvmlReturn, row.value) = (nvmlReturn_enum_NVML_SUCCESS, value),
                    Err(Code(code)) => row.nvmlReturn = code,
                }
            }
            Ok(())
        })
    })
}
