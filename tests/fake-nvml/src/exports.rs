//! The C functions, by what they are about. Every other symbol of NVML answers that it is not supported.

mod events;
mod gpm;
mod health;
mod identity;
mod lifecycle;
mod mig;
mod processes;
mod telemetry;
mod unsupported;
mod vgpu;

use nvml_wrapper_sys::bindings::{nvmlReturn_enum_NVML_ERROR_UNKNOWN, nvmlReturn_enum_NVML_SUCCESS, nvmlReturn_t};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a call returns where it doesn't succeed: NVML's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub nvmlReturn_t);

/// NVML's number of an answer; a panic of ours must not unwind into C.
pub(crate) fn answer(work: impl FnOnce() -> Result<(), Code>) -> nvmlReturn_t {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => nvmlReturn_enum_NVML_SUCCESS,
        Ok(Err(Code(code))) => code,
        Err(_) => nvmlReturn_enum_NVML_ERROR_UNKNOWN,
    }
}

/// Puts a value where the caller wants it. Errors: nowhere.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) -> Result<(), Code> {
    if to.is_null() {
        return Err(Code(nvml_wrapper_sys::bindings::nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT));
    }
    unsafe { to.write(value) };
    Ok(())
}

/// Puts rows where the caller wants them, by NVML's rules of counts. Errors: too little room; then the caller is told how much it needs.
pub(crate) unsafe fn put_rows<T>(rows: Vec<T>, count: *mut u32, to: *mut T) -> Result<(), Code> {
    use nvml_wrapper_sys::bindings::{
        nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE, nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT,
    };
    if count.is_null() {
        return Err(Code(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT));
    }
    let room = unsafe { *count } as usize;
    unsafe { count.write(rows.len() as u32) };
    if rows.is_empty() {
        return Ok(());
    }
    if to.is_null() || room < rows.len() {
        return Err(Code(nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE));
    }
    for (i, row) in rows.into_iter().enumerate() {
        unsafe { to.add(i).write(row) };
    }
    Ok(())
}

/// A C function about a device.
macro_rules! device_call {
    ($(#[$doc:meta])* $name:ident($library:ident, $now:ident, $device:ident $(, $arg:ident: $type:ty)*) $body:block) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $device: nvml_wrapper_sys::bindings::nvmlDevice_t
            $(, $arg: $type)*
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            $crate::exports::answer(|| {
                let $device = $device as usize;
                $crate::library::call(stringify!($name), Some($device), |$library, $now| $body)
            })
        }
    };
}
pub(crate) use device_call;

/// How often a function was called since the library was loaded.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fakenvml_calls(name: *const std::ffi::c_char) -> u64 {
    unsafe { crate::text::read(name) }.map_or(0, crate::library::calls)
}

/// How many event sets and samples were made and not freed.
#[unsafe(no_mangle)]
pub extern "C" fn fakenvml_leaks() -> u64 {
    crate::library::leaks()
}
