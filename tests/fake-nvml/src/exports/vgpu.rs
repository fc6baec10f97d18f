//! vGPU instances, as a hypervisor's host sees them.

use super::{Code, answer, device_call, put, put_rows};
use crate::library::{Library, call};
use crate::scenario::{Vgpu, ms};
use crate::text;
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_char, c_uint, c_ulonglong};

const NOT_FOUND: Code = Code(nvmlReturn_enum_NVML_ERROR_NOT_FOUND);

device_call! {
    nvmlDeviceGetActiveVgpus(library, now, device, count: *mut c_uint, instances: *mut nvmlVgpuInstance_t) {
        let (number, _) = library.card(device, now)?;
        if !library.scenario.vgpus.iter().any(|vgpu| vgpu.card == number) {
            return Err(Code(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED));
        }
        let rows = library.scenario.vgpus.iter().zip(1..).filter(|(vgpu, _)| {
            vgpu.card == number && ms(vgpu.from_s) <= now && vgpu.until_s.is_none_or(|until| now < ms(until))
        });
        unsafe { put_rows(rows.map(|(_, id)| id).collect(), count, instances) }
    }
}

fn of(library: &Library, instance: nvmlVgpuInstance_t) -> Result<&Vgpu, Code> {
    instance.checked_sub(1).and_then(|i| library.scenario.vgpus.get(i as usize)).ok_or(NOT_FOUND)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlVgpuInstanceGetVmID(
    instance: nvmlVgpuInstance_t,
    vm: *mut c_char,
    size: c_uint,
    kind: *mut nvmlVgpuVmIdType_t,
) -> nvmlReturn_t {
    answer(|| {
        call("nvmlVgpuInstanceGetVmID", None, |library, _| unsafe {
            put(kind, 1)?;
            text::write(&of(library, instance)?.vm, vm, size)
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlVgpuInstanceGetUUID(
    instance: nvmlVgpuInstance_t,
    uuid: *mut c_char,
    size: c_uint,
) -> nvmlReturn_t {
    answer(|| {
        call("nvmlVgpuInstanceGetUUID", None, |library, _| unsafe {
            text::write(&of(library, instance)?.uuid, uuid, size)
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlVgpuInstanceGetFbUsage(
    instance: nvmlVgpuInstance_t,
    bytes: *mut c_ulonglong,
) -> nvmlReturn_t {
    answer(|| {
        call("nvmlVgpuInstanceGetFbUsage", None, |library, _| unsafe {
            put(bytes, of(library, instance)?.memory_mib << 20)
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlVgpuInstanceGetType(
    instance: nvmlVgpuInstance_t,
    kind: *mut nvmlVgpuTypeId_t,
) -> nvmlReturn_t {
    answer(|| {
        call("nvmlVgpuInstanceGetType", None, |library, _| {
            of(library, instance)?;
            unsafe { put(kind, instance) }
        })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlVgpuTypeGetName(
    kind: nvmlVgpuTypeId_t,
    name: *mut c_char,
    size: *mut c_uint,
) -> nvmlReturn_t {
    answer(|| {
        call("nvmlVgpuTypeGetName", None, |library, _| {
            if size.is_null() {
                return Err(Code(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT));
            }
            let room = unsafe { *size };
            let text = &of(library, kind)?.kind;
            unsafe { size.write(text.len() as u32 + 1) };
            unsafe { text::write(text, name, room) }
        })
    })
}
