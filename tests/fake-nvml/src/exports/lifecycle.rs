//! Loading, versions, words for errors.

use super::{Code, answer, put};
use crate::library::{call, init, shutdown};
use crate::text;
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_char, c_int, c_uint};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    answer(|| init("nvmlInit_v2"))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> nvmlReturn_t {
    answer(|| init("nvmlInitWithFlags"))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    answer(shutdown)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlErrorString(code: nvmlReturn_t) -> *const c_char {
    let text = match code {
        0 => c"The operation was successful",
        1 => c"NVML was not first initialized",
        2 => c"A supplied argument is invalid",
        3 => c"The requested operation is not available on target device",
        4 => c"The current user does not have permission for operation",
        6 => c"A query to find an object was unsuccessful",
        7 => c"An input argument is not large enough",
        9 => c"NVIDIA driver is not loaded",
        10 => c"User provided timeout passed",
        15 => c"The GPU has fallen off the bus or has otherwise become inaccessible",
        16 => c"The GPU requires a reset before it can be used again",
        18 => c"RM has detected an NVML/RM version mismatch",
        _ => c"An internal driver error occurred",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> nvmlReturn_t {
    answer(|| {
        call("nvmlSystemGetDriverVersion", None, |library, _| unsafe {
            text::write(&library.scenario.driver, version, length)
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetNVMLVersion(version: *mut c_char, length: c_uint) -> nvmlReturn_t {
    answer(|| {
        call("nvmlSystemGetNVMLVersion", None, |library, _| unsafe {
            text::write(&format!("13.{}", library.scenario.driver), version, length)
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) -> nvmlReturn_t {
    answer(|| {
        call("nvmlSystemGetCudaDriverVersion_v2", None, |library, _| unsafe { put(version, library.scenario.cuda) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> nvmlReturn_t {
    answer(|| {
        call("nvmlDeviceGetCount_v2", None, |library, now| unsafe { put(count, library.order(now).len() as u32) })
    })
}

/// A card by what `is_it` knows of it; one that is lost is found by nobody.
fn find(
    name: &'static str,
    device: *mut nvmlDevice_t,
    is_it: impl FnOnce(&crate::library::Library, i64) -> Option<crate::handle::Named>,
) -> nvmlReturn_t {
    use crate::handle::Named;
    use crate::scenario::FaultKind;
    answer(|| {
        call(name, None, |library, now| {
            let named = is_it(library, now).ok_or(Code(nvmlReturn_enum_NVML_ERROR_NOT_FOUND))?;
            let (Named::Card(card) | Named::Slice { card, .. }) = named else {
                return Err(Code(nvmlReturn_enum_NVML_ERROR_NOT_FOUND));
            };
            if let Some(code) = library.lookup_refused(name, card, now) {
                return Err(code);
            }
            for (kind, code) in [
                (FaultKind::CardLost, nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST),
                (FaultKind::ResetRequired, nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED),
            ] {
                if library.has(kind, Some(card), now) {
                    return Err(Code(code));
                }
            }
            unsafe { put(device, library.handle(named, now) as nvmlDevice_t) }
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t) -> nvmlReturn_t {
    let code = find("nvmlDeviceGetHandleByIndex_v2", device, |library, now| {
        library.order(now).get(index as usize).map(|card| crate::handle::Named::Card(*card))
    });
    // An index beyond the last is a wrong argument, not something that was looked for.
    if code == nvmlReturn_enum_NVML_ERROR_NOT_FOUND { nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT } else { code }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut nvmlDevice_t) -> nvmlReturn_t {
    use crate::handle::Named;
    let Ok(uuid) = (unsafe { text::read(uuid) }) else { return nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT };
    find("nvmlDeviceGetHandleByUUID", device, |library, now| {
        library.order(now).into_iter().find_map(|card| {
            let described = &library.scenario.cards[card];
            if described.uuid == uuid {
                return Some(Named::Card(card));
            }
            let (layout, of) = described.layout_at(now)?;
            let slice = of.slices.iter().position(|slice| slice.uuid == uuid)?;
            Some(Named::Slice { card, layout, slice })
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(
    pci: *const c_char,
    device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    let Ok(pci) = (unsafe { text::read(pci) }) else { return nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT };
    // sysfs writes four digits of the domain and small letters.
    let short = |text: &str| text.to_ascii_lowercase().trim_start_matches('0').to_owned();
    let pci = short(pci);
    find("nvmlDeviceGetHandleByPciBusId_v2", device, |library, now| {
        let is_it = |card: &usize| short(&library.scenario.cards[*card].pci) == pci;
        library.order(now).into_iter().find(is_it).map(crate::handle::Named::Card)
    })
}
