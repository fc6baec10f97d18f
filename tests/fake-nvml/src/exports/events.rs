//! What a driver tells of by itself.

use super::{Code, answer, device_call, put};
use crate::handle::{Named, pack, unpack};
use crate::library::{EventSet, call, wait_for};
use crate::scenario::ms;
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_uint, c_ulonglong};

const INVALID: Code = Code(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);

/// XIDs, new layouts, and what newer drivers tell of.
const KINDS: u64 = 0x8 | 0x100 | 0x80 | 0xfe00;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetCreate(set: *mut nvmlEventSet_t) -> nvmlReturn_t {
    answer(|| {
        call("nvmlEventSetCreate", None, |library, _| {
            library.sets.push(Some(EventSet::default()));
            unsafe { put(set, pack(0, Named::Set(library.sets.len() - 1)) as nvmlEventSet_t) }
        })
    })
}

fn number_of(set: nvmlEventSet_t) -> Result<usize, Code> {
    match unpack(set as usize) {
        Some((_, Named::Set(number))) => Ok(number),
        _ => Err(INVALID),
    }
}

device_call! {
    nvmlDeviceGetSupportedEventTypes(library, now, device, kinds: *mut c_ulonglong) {
        library.card(device, now)?;
        unsafe { put(kinds, KINDS) }
    }
}

device_call! {
    nvmlDeviceRegisterEvents(library, now, device, kinds: c_ulonglong, set: nvmlEventSet_t) {
        let (number, _) = library.card(device, now)?;
        if kinds & !KINDS != 0 {
            return Err(Code(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED));
        }
        let set = library.sets.get_mut(number_of(set)?).and_then(Option::as_mut).ok_or(INVALID)?;
        set.registered.push((number, kinds, now));
        Ok(())
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetWait_v2(
    set: nvmlEventSet_t,
    data: *mut nvmlEventData_t,
    timeout_ms: c_uint,
) -> nvmlReturn_t {
    answer(|| {
        call("nvmlEventSetWait_v2", None, |_, _| Ok(()))?;
        let number = number_of(set)?;
        let told = wait_for(timeout_ms, |library, now| {
            let Some(set) = library.sets.get(number).and_then(Option::as_ref) else { return Some(Err(INVALID)) };
            let hears = |at: i64, card: usize, kind: u64| {
                set.registered.iter().any(|(of, kinds, since)| *of == card && kinds & kind != 0 && *since <= at)
            };
            let next = library.scenario.events.iter().enumerate().find(|(i, event)| {
                let at = ms(event.at_s);
                at <= now && !set.told.contains(i) && hears(at, event.card, event.kind)
            });
            let (i, event) = next.map(|(i, event)| (i, event.clone()))?;
            let mut row: nvmlEventData_t = unsafe { std::mem::zeroed() };
            row.device = library.handle(Named::Card(event.card), now) as nvmlDevice_t;
            (row.eventType, row.eventData) = (event.kind, event.data);
            row.gpuInstanceId = event.gi.unwrap_or(u32::MAX);
            row.computeInstanceId = event.ci.unwrap_or(u32::MAX);
            library.sets[number].as_mut().expect("looked at above").told.push(i);
            Some(Ok(row))
        });
        match told {
            Some(Ok(row)) => unsafe { put(data, row) },
            Some(Err(code)) => Err(code),
            None => Err(Code(nvmlReturn_enum_NVML_ERROR_TIMEOUT)),
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetFree(set: nvmlEventSet_t) -> nvmlReturn_t {
    answer(|| {
        call("nvmlEventSetFree", None, |library, _| {
            let there = library.sets.get_mut(number_of(set)?).ok_or(INVALID)?;
            there.take().map(drop).ok_or(INVALID)
        })
    })
}
