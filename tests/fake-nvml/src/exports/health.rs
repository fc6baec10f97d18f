//! How well a card is.

use super::{Code, device_call, put};
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_uint, c_ulonglong};

const NOT_SUPPORTED: Code = Code(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED);

device_call! {
    nvmlDeviceGetEccMode(library, now, device, current: *mut nvmlEnableState_t, pending: *mut nvmlEnableState_t) {
        let (_, card) = library.card(device, now)?;
        if !card.preset.has_ecc {
            return Err(NOT_SUPPORTED);
        }
        unsafe { put(current, 1)?; put(pending, 1) }
    }
}

device_call! {
    nvmlDeviceGetTotalEccErrors(
        library, now, device, kind: nvmlMemoryErrorType_t, counter: nvmlEccCounterType_t, count: *mut c_ulonglong
    ) {
        let (_, card) = library.card(device, now)?;
        let is_volatile = counter == nvmlEccCounterType_enum_NVML_VOLATILE_ECC;
        if !card.preset.has_ecc || is_volatile && card.layout_at(now).is_some() {
            return Err(NOT_SUPPORTED);
        }
        let of = |ms: i64| {
            let health = card.health_at(ms);
            if kind == nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_CORRECTED { health.corrected } else { health.uncorrected }
        };
        // Volatile ones begin at 0 when the driver is loaded.
        let loaded = library.loaded_ms(now);
        let before = if is_volatile && loaded > 0 { of(loaded) } else { 0 };
        unsafe { put(count, of(now) - before) }
    }
}

device_call! {
    nvmlDeviceGetRemappedRows(
        library, now, device, correctable: *mut c_uint, uncorrectable: *mut c_uint, pending: *mut c_uint, failed: *mut c_uint
    ) {
        let (_, card) = library.card(device, now)?;
        if card.preset.architecture < 7 || card.layout_at(now).is_some() {
            return Err(NOT_SUPPORTED);
        }
        let health = card.health_at(now);
        unsafe {
            put(correctable, health.remapped_correctable)?;
            put(uncorrectable, health.remapped_uncorrectable)?;
            put(pending, health.remap_pending)?;
            put(failed, health.remap_failed)
        }
    }
}

device_call! {
    nvmlDeviceGetPcieReplayCounter(library, now, device, count: *mut c_uint) {
        let (_, card) = library.card(device, now)?;
        unsafe { put(count, card.health_at(now).pcie_replays) }
    }
}

device_call! {
    nvmlDeviceGetCurrentClocksThrottleReasons(library, now, device, reasons: *mut c_ulonglong) {
        let (_, card) = library.card(device, now)?;
        unsafe { put(reasons, card.health_at(now).throttle_reasons) }
    }
}

device_call! {
    nvmlDeviceGetCurrentClocksEventReasons(library, now, device, reasons: *mut c_ulonglong) {
        let (_, card) = library.card(device, now)?;
        unsafe { put(reasons, card.health_at(now).throttle_reasons) }
    }
}
