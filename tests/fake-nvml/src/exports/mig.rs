//! How a card is cut.

use super::{Code, answer, device_call, put, put_rows};
use crate::handle::Named;
use crate::library::{Library, Target, call};
use crate::scenario::{Card, Slice};
use nvml_wrapper_sys::bindings::*;
use std::ffi::c_uint;

const NOT_SUPPORTED: Code = Code(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED);
const NOT_FOUND: Code = Code(nvmlReturn_enum_NVML_ERROR_NOT_FOUND);
const INVALID: Code = Code(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);

device_call! {
    nvmlDeviceGetMigMode(library, now, device, current: *mut c_uint, pending: *mut c_uint) {
        let (_, card) = library.card(device, now)?;
        if card.preset.slices.is_none() {
            return Err(NOT_SUPPORTED);
        }
        let layout = card.layouts.iter().rfind(|layout| layout.from_ms <= now);
        let is_on = layout.is_some_and(|layout| !layout.slices.is_empty());
        let will_be = layout.and_then(|layout| layout.pending).unwrap_or(is_on);
        unsafe { put(current, u32::from(is_on))?; put(pending, u32::from(will_be)) }
    }
}

device_call! {
    nvmlDeviceGetMaxMigDeviceCount(library, now, device, count: *mut c_uint) {
        let (_, card) = library.card(device, now)?;
        let most = if card.layout_at(now).is_some() { card.preset.slices.unwrap_or(0) } else { 0 };
        unsafe { put(count, most) }
    }
}

device_call! {
    nvmlDeviceGetMigDeviceHandleByIndex(library, now, device, index: c_uint, slice: *mut nvmlDevice_t) {
        let (number, card) = library.card(device, now)?;
        let (layout, of) = card.layout_at(now).ok_or(NOT_FOUND)?;
        if index >= card.preset.slices.unwrap_or(0) {
            return Err(INVALID);
        }
        // Only slices that have a compute instance are devices; other places are empty.
        let place = of.slices.iter().position(|slice| slice.slot == index && slice.ci.is_some()).ok_or(NOT_FOUND)?;
        let handle = library.handle(Named::Slice { card: number, layout, slice: place }, now);
        unsafe { put(slice, handle as nvmlDevice_t) }
    }
}

device_call! {
    nvmlDeviceGetDeviceHandleFromMigDeviceHandle(library, now, device, parent: *mut nvmlDevice_t) {
        let Target::Slice(number, ..) = library.target(device, now)? else { return Err(INVALID) };
        unsafe { put(parent, library.handle(Named::Card(number), now) as nvmlDevice_t) }
    }
}

device_call! {
    nvmlDeviceIsMigDeviceHandle(library, now, device, is_slice: *mut c_uint) {
        unsafe { put(is_slice, u32::from(matches!(library.target(device, now)?, Target::Slice(..)))) }
    }
}

device_call! {
    nvmlDeviceGetGpuInstanceId(library, now, device, id: *mut c_uint) {
        let Target::Slice(.., slice) = library.target(device, now)? else { return Err(NOT_SUPPORTED) };
        unsafe { put(id, slice.gi) }
    }
}

device_call! {
    nvmlDeviceGetComputeInstanceId(library, now, device, id: *mut c_uint) {
        let Target::Slice(.., slice) = library.target(device, now)? else { return Err(NOT_SUPPORTED) };
        unsafe { put(id, slice.ci.ok_or(NOT_FOUND)?) }
    }
}

device_call! {
    nvmlDeviceGetAttributes_v2(library, now, device, attributes: *mut nvmlDeviceAttributes_t) {
        let Target::Slice(_, card, slice) = library.target(device, now)? else { return Err(NOT_SUPPORTED) };
        let mut of: nvmlDeviceAttributes_t = unsafe { std::mem::zeroed() };
        of.multiprocessorCount = multiprocessors(card, slice);
        of.gpuInstanceSliceCount = slice.slices;
        of.computeInstanceSliceCount = slice.slices;
        of.memorySizeMB = slice.memory_mib;
        unsafe { put(attributes, of) }
    }
}

fn multiprocessors(card: &Card, slice: &Slice) -> u32 {
    card.preset.multiprocessors / (card.preset.slices.unwrap_or(7) + 1) * slice.slices
}

/// Profiles by NVML's numbers, with how many compute slices each has: 0 is 1g, 1 is 2g, 2 is 3g, 3 is 4g, 4 is 7g.
const PROFILES: [(u32, u32); 5] = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 7)];

device_call! {
    nvmlDeviceGetGpuInstanceProfileInfo(library, now, device, profile: c_uint, info: *mut nvmlGpuInstanceProfileInfo_t) {
        let (_, card) = library.card(device, now)?;
        let all = card.preset.slices.ok_or(NOT_SUPPORTED)?;
        let (_, parts) = PROFILES.into_iter().find(|(number, parts)| *number == profile && *parts <= all).ok_or(NOT_SUPPORTED)?;
        let mut of: nvmlGpuInstanceProfileInfo_t = unsafe { std::mem::zeroed() };
        of.id = 19 - profile;
        of.sliceCount = parts;
        of.instanceCount = all / parts;
        of.multiprocessorCount = card.preset.multiprocessors / (all + 1) * parts;
        of.memorySizeMB = card.memory_mib * u64::from(parts) / u64::from(all + 1);
        unsafe { put(info, of) }
    }
}

device_call! {
    nvmlDeviceGetGpuInstances(library, now, device, profile: c_uint, instances: *mut nvmlGpuInstance_t, count: *mut c_uint) {
        let (number, card) = library.card(device, now)?;
        let (layout, of) = card.layout_at(now).ok_or(NOT_SUPPORTED)?;
        let parts = PROFILES.into_iter().find(|(p, _)| 19 - *p == profile).ok_or(INVALID)?.1;
        let rows = of.slices.iter().enumerate().filter(|(_, slice)| slice.slices == parts).map(|(slice, _)| {
            library.handle(Named::Slice { card: number, layout, slice }, now) as nvmlGpuInstance_t
        });
        // The caller doesn't say how much room there is: as much as the profile has instances.
        let rows: Vec<_> = rows.collect();
        unsafe { put(count, rows.len() as u32)?; put_rows(rows, count, instances) }
    }
}

/// The slice of a GPU instance's handle.
fn slice_of(library: &Library, instance: usize, now: i64) -> Result<(usize, &Slice), Code> {
    match library.target(instance, now)? {
        Target::Slice(number, _, slice) => Ok((number, slice)),
        Target::Card(..) => Err(INVALID),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpuInstanceGetInfo(
    instance: nvmlGpuInstance_t,
    info: *mut nvmlGpuInstanceInfo_t,
) -> nvmlReturn_t {
    answer(|| {
        let instance = instance as usize;
        call("nvmlGpuInstanceGetInfo", Some(instance), |library, now| {
            let (number, slice) = slice_of(library, instance, now)?;
            let mut of: nvmlGpuInstanceInfo_t = unsafe { std::mem::zeroed() };
            of.device = library.handle(Named::Card(number), now) as nvmlDevice_t;
            of.id = slice.gi;
            of.profileId = PROFILES.into_iter().find(|(_, parts)| *parts == slice.slices).map_or(0, |(p, _)| 19 - p);
            of.placement.start = slice.slot;
            of.placement.size = slice.slices;
            unsafe { put(info, of) }
        })
    })
}
