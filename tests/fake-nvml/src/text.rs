//! Text into a caller's buffer.

use crate::exports::Code;
use nvml_wrapper_sys::bindings::{
    nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE, nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT,
};
use std::ffi::{CStr, c_char, c_uint};

/// Writes a text and its end. Errors: no buffer, or one that is too small.
pub(crate) unsafe fn write(text: &str, to: *mut c_char, length: c_uint) -> Result<(), Code> {
    if to.is_null() {
        return Err(Code(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT));
    }
    if text.len() + 1 > length as usize {
        return Err(Code(nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE));
    }
    for (i, byte) in text.bytes().chain([0]).enumerate() {
        unsafe { to.add(i).write(byte as c_char) };
    }
    Ok(())
}

/// Reads a caller's text. Errors: no text, or one that isn't UTF-8.
pub(crate) unsafe fn read<'a>(from: *const c_char) -> Result<&'a str, Code> {
    let invalid = Code(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
    if from.is_null() {
        return Err(invalid);
    }
    unsafe { CStr::from_ptr(from) }.to_str().map_err(|_| invalid)
}
