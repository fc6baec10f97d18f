//! Who a card is.

use super::{Code, device_call, put};
use crate::library::Target;
use crate::text;
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_char, c_int, c_uint};

device_call! {
    nvmlDeviceGetUUID(library, now, device, uuid: *mut c_char, length: c_uint) {
        let text = match library.target(device, now)? {
            Target::Card(_, card) => &card.uuid,
            Target::Slice(.., slice) => &slice.uuid,
        };
        unsafe { text::write(text, uuid, length) }
    }
}

device_call! {
    nvmlDeviceGetName(library, now, device, name: *mut c_char, length: c_uint) {
        let text = match library.target(device, now)? {
            Target::Card(_, card) => card.model.clone(),
            Target::Slice(_, card, slice) => format!("{} MIG {}", card.model, slice.profile),
        };
        unsafe { text::write(&text, name, length) }
    }
}

device_call! {
    nvmlDeviceGetIndex(library, now, device, index: *mut c_uint) {
        let (number, _) = library.card(device, now)?;
        let place = library.order(now).iter().position(|card| *card == number);
        unsafe { put(index, place.ok_or(Code(nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST))? as u32) }
    }
}

device_call! {
    nvmlDeviceGetMinorNumber(library, now, device, minor: *mut c_uint) {
        let (_, card) = library.card(device, now)?;
        unsafe { put(minor, card.minor) }
    }
}

device_call! {
    nvmlDeviceGetPciInfo_v3(library, now, device, pci: *mut nvmlPciInfo_t) {
        let (_, card) = library.card(device, now)?;
        let mut info: nvmlPciInfo_t = unsafe { std::mem::zeroed() };
        for (to, byte) in info.busId.iter_mut().zip(card.pci.bytes()) {
            *to = byte as c_char;
        }
        for (to, byte) in info.busIdLegacy.iter_mut().zip(card.pci[4..].bytes()) {
            *to = byte as c_char;
        }
        let mut fields = card.pci.split([':', '.']).map(|field| u32::from_str_radix(field, 16).unwrap_or(0));
        let mut next = || fields.next().unwrap_or(0);
        (info.domain, info.bus, info.device) = (next(), next(), next());
        info.pciDeviceId = 0x2330_10DE;
        unsafe { put(pci, info) }
    }
}

device_call! {
    nvmlDeviceGetSerial(library, now, device, serial: *mut c_char, length: c_uint) {
        let (_, card) = library.card(device, now)?;
        unsafe { text::write(&card.serial, serial, length) }
    }
}

device_call! {
    nvmlDeviceGetBoardPartNumber(library, now, device, part: *mut c_char, length: c_uint) {
        library.card(device, now)?;
        unsafe { text::write("692-2G520-0200-000", part, length) }
    }
}

device_call! {
    nvmlDeviceGetVbiosVersion(library, now, device, version: *mut c_char, length: c_uint) {
        library.card(device, now)?;
        unsafe { text::write("96.00.74.00.01", version, length) }
    }
}

device_call! {
    nvmlDeviceGetBrand(library, now, device, brand: *mut nvmlBrandType_t) {
        library.card(device, now)?;
        unsafe { put(brand, nvmlBrandType_enum_NVML_BRAND_NVIDIA) }
    }
}

device_call! {
    nvmlDeviceGetArchitecture(library, now, device, architecture: *mut nvmlDeviceArchitecture_t) {
        let (_, card) = library.card(device, now)?;
        unsafe { put(architecture, card.preset.architecture) }
    }
}

device_call! {
    nvmlDeviceGetCudaComputeCapability(library, now, device, major: *mut c_int, minor: *mut c_int) {
        let (_, card) = library.card(device, now)?;
        unsafe { put(major, card.preset.compute.0)?; put(minor, card.preset.compute.1) }
    }
}

device_call! {
    nvmlDeviceGetPersistenceMode(library, now, device, mode: *mut nvmlEnableState_t) {
        library.card(device, now)?;
        unsafe { put(mode, nvmlEnableState_enum_NVML_FEATURE_ENABLED) }
    }
}

device_call! {
    nvmlDeviceGetVirtualizationMode(library, now, device, mode: *mut nvmlGpuVirtualizationMode_t) {
        let (number, card) = library.card(device, now)?;
        let hosts = library.scenario.vgpus.iter().any(|vgpu| vgpu.card == number);
        let guest = card.model.starts_with("GRID");
        unsafe {
            put(mode, if hosts {
                nvmlGpuVirtualizationMode_NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU
            } else if guest {
                nvmlGpuVirtualizationMode_NVML_GPU_VIRTUALIZATION_MODE_VGPU
            } else {
                nvmlGpuVirtualizationMode_NVML_GPU_VIRTUALIZATION_MODE_NONE
            })
        }
    }
}
