//! What a card does: utilisation, memory, power, energy, clocks, temperature, links, and the rings and fields of them.

use super::{Code, answer, device_call, put};
use crate::library::{Library, Target, call};
use crate::scenario::{Card, FaultKind};
use nvml_wrapper_sys::bindings::*;
use std::ffi::{c_int, c_uint, c_ulonglong};

const NOT_SUPPORTED: Code = Code(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED);
const INVALID: Code = Code(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT);
const MIB: u64 = 1 << 20;

/// Percent of a card over a stretch, as its driver says. Errors: the card is cut, and then it says nothing.
fn utilization(library: &Library, number: usize, name: &str, from_ms: i64, to_ms: i64) -> Result<u32, Code> {
    let card = &library.scenario.cards[number];
    if card.layout_at(to_ms).is_some() {
        return Err(NOT_SUPPORTED);
    }
    if library.has(FaultKind::UtilizationLatched, Some(number), to_ms) && name == "util" {
        return Ok(100);
    }
    if library.has(FaultKind::UtilizationZero, Some(number), to_ms) {
        return Ok(0);
    }
    Ok((card.curve(name).mean(from_ms, to_ms) / 1000.0).round() as u32)
}

/// Over the sixth of a second before.
fn utilization_now(library: &Library, device: usize, now: i64, name: &str) -> Result<u32, Code> {
    let (number, _) = library.card(device, now)?;
    utilization(library, number, name, (now - 167).max(0), now.max(1))
}

device_call! {
    nvmlDeviceGetUtilizationRates(library, now, device, rates: *mut nvmlUtilization_t) {
        let gpu = utilization_now(library, device, now, "util")?;
        let memory = utilization_now(library, device, now, "mem_util")?;
        unsafe { put(rates, nvmlUtilization_t { gpu, memory }) }
    }
}

macro_rules! engine {
    ($name:ident, $curve:literal) => {
        device_call! {
            $name(library, now, device, percent: *mut c_uint, period_us: *mut c_uint) {
                let value = utilization_now(library, device, now, $curve)?;
                unsafe { put(percent, value)?; put(period_us, 167_000) }
            }
        }
    };
}
engine!(nvmlDeviceGetEncoderUtilization, "enc");
engine!(nvmlDeviceGetDecoderUtilization, "dec");
engine!(nvmlDeviceGetJpgUtilization, "jpg");
engine!(nvmlDeviceGetOfaUtilization, "ofa");

/// Total, reserved and used bytes.
fn memory(library: &Library, device: usize, now: i64) -> Result<(u64, u64, u64), Code> {
    let used_of = |curve: crate::Curve, number: usize, slice: Option<&str>| {
        let drawn = curve.at(now) as u64 * MIB / 1000;
        let processes =
            super::processes::here(library, number, now).filter(|p| slice.is_none() || p.slice.as_deref() == slice);
        drawn + processes.filter_map(super::processes::memory_bytes).sum::<u64>()
    };
    Ok(match library.target(device, now)? {
        Target::Card(number, card) => {
            let of_slices: u64 = card.layout_at(now).map_or(0, |(_, layout)| {
                layout.slices.iter().map(|slice| slice.curve("memory_used_mib").at(now) as u64 * MIB / 1000).sum()
            });
            let used = used_of(card.curve("memory_used_mib"), number, None) + of_slices;
            (card.memory_mib * MIB, card.reserved_mib * MIB, used)
        }
        Target::Slice(number, _, slice) => {
            (slice.memory_mib * MIB, 16 * MIB, used_of(slice.curve("memory_used_mib"), number, Some(&slice.uuid)))
        }
    })
}

device_call! {
    nvmlDeviceGetMemoryInfo(library, now, device, info: *mut nvmlMemory_t) {
        let (total, reserved, used) = memory(library, device, now)?;
        // Version 1 counts what the driver keeps for itself as used.
        unsafe { put(info, nvmlMemory_t { total, free: total.saturating_sub(reserved + used), used: used + reserved }) }
    }
}

device_call! {
    nvmlDeviceGetMemoryInfo_v2(library, now, device, info: *mut nvmlMemory_v2_t) {
        if info.is_null() {
            return Err(INVALID);
        }
        let version = unsafe { (*info).version };
        if version != std::mem::size_of::<nvmlMemory_v2_t>() as u32 | 2 << 24 {
            return Err(Code(25));
        }
        let (total, reserved, used) = memory(library, device, now)?;
        unsafe { put(info, nvmlMemory_v2_t { version, total, reserved, free: total.saturating_sub(reserved + used), used }) }
    }
}

device_call! {
    nvmlDeviceGetPowerUsage(library, now, device, power_mw: *mut c_uint) {
        let (_, card) = library.card(device, now)?;
        unsafe { put(power_mw, card.curve("power_w").at(now) as u32) }
    }
}

device_call! {
    nvmlDeviceGetTotalEnergyConsumption(library, now, device, energy_mj: *mut c_ulonglong) {
        let (number, _) = library.card(device, now)?;
        unsafe { put(energy_mj, library.energy_mj(number, now) as u64) }
    }
}

macro_rules! limit {
    ($name:ident) => {
        device_call! {
            $name(library, now, device, limit_mw: *mut c_uint) {
                let (_, card) = library.card(device, now)?;
                unsafe { put(limit_mw, card.preset.power_limit_w * 1000) }
            }
        }
    };
}
limit!(nvmlDeviceGetEnforcedPowerLimit);
limit!(nvmlDeviceGetPowerManagementLimit);
limit!(nvmlDeviceGetPowerManagementDefaultLimit);

device_call! {
    nvmlDeviceGetPowerManagementLimitConstraints(library, now, device, least_mw: *mut c_uint, most_mw: *mut c_uint) {
        let (_, card) = library.card(device, now)?;
        unsafe { put(least_mw, card.preset.power_limit_w * 300)?; put(most_mw, card.preset.power_limit_w * 1000) }
    }
}

device_call! {
    nvmlDeviceGetTemperature(library, now, device, _sensor: nvmlTemperatureSensors_t, temperature_c: *mut c_uint) {
        let (_, card) = library.card(device, now)?;
        unsafe { put(temperature_c, (card.curve("temperature_c").at(now) / 1000) as u32) }
    }
}

device_call! {
    nvmlDeviceGetTemperatureV(library, now, device, temperature: *mut nvmlTemperature_t) {
        if temperature.is_null() {
            return Err(INVALID);
        }
        let (version, sensor) = unsafe { ((*temperature).version, (*temperature).sensorType) };
        if version != std::mem::size_of::<nvmlTemperature_t>() as u32 | 1 << 24 {
            return Err(Code(25));
        }
        let (_, card) = library.card(device, now)?;
        let value = (card.curve("temperature_c").at(now) / 1000) as c_int;
        unsafe { put(temperature, nvmlTemperature_t { version, sensorType: sensor, temperature: value }) }
    }
}

fn clock(card: &Card, kind: nvmlClockType_t, now: i64) -> u32 {
    let name = if kind == nvmlClockType_enum_NVML_CLOCK_MEM { "clock_memory_mhz" } else { "clock_sm_mhz" };
    (card.curve(name).at(now) / 1000) as u32
}

device_call! {
    nvmlDeviceGetClockInfo(library, now, device, kind: nvmlClockType_t, clock_mhz: *mut c_uint) {
        let (_, card) = library.card(device, now)?;
        unsafe { put(clock_mhz, clock(card, kind, now)) }
    }
}

device_call! {
    nvmlDeviceGetMaxClockInfo(library, now, device, kind: nvmlClockType_t, clock_mhz: *mut c_uint) {
        library.card(device, now)?;
        unsafe { put(clock_mhz, if kind == nvmlClockType_enum_NVML_CLOCK_MEM { 2619 } else { 1980 }) }
    }
}

device_call! {
    nvmlDeviceGetPerformanceState(library, now, device, state: *mut nvmlPstates_t) {
        library.card(device, now)?;
        unsafe { put(state, 0) }
    }
}

device_call! {
    nvmlDeviceGetPcieThroughput(library, now, device, counter: nvmlPcieUtilCounter_t, kb_per_s: *mut c_uint) {
        let (_, card) = library.card(device, now)?;
        let name = if counter == 0 { "pcie_tx_mib_s" } else { "pcie_rx_mib_s" };
        // As the real one does, which is why nobody should call it.
        std::thread::sleep(std::time::Duration::from_millis(20));
        unsafe { put(kb_per_s, (card.curve(name).at(now) * 1024 / 1000) as u32) }
    }
}

device_call! {
    nvmlDeviceGetCurrPcieLinkGeneration(library, now, device, generation: *mut c_uint) {
        library.card(device, now)?;
        unsafe { put(generation, 5) }
    }
}

device_call! {
    nvmlDeviceGetCurrPcieLinkWidth(library, now, device, width: *mut c_uint) {
        library.card(device, now)?;
        unsafe { put(width, 16) }
    }
}

device_call! {
    nvmlDeviceGetNvLinkState(library, now, device, link: c_uint, is_active: *mut nvmlEnableState_t) {
        let (_, card) = library.card(device, now)?;
        match card.preset.links {
            0 => return Err(NOT_SUPPORTED),
            links if link >= links => return Err(INVALID),
            _ => {}
        }
        unsafe { put(is_active, u32::from(!card.health_at(now).nvlinks_down.contains(&link))) }
    }
}

/// A ring has 72 samples at 7.2 Hz: number `k` is of the time that ends at `k / 7.2` seconds.
const RING: i64 = 72;

fn ring_end_ms(k: i64) -> i64 {
    k * 10_000 / 72
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetSamples(
    device: nvmlDevice_t,
    kind: nvmlSamplingType_t,
    last_seen_us: c_ulonglong,
    value_type: *mut nvmlValueType_t,
    count: *mut c_uint,
    samples: *mut nvmlSample_t,
) -> nvmlReturn_t {
    answer(|| {
        let device = device as usize;
        call("nvmlDeviceGetSamples", Some(device), |library, now| {
            let (number, card) = library.card(device, now)?;
            let name = match kind {
                nvmlSamplingType_enum_NVML_TOTAL_POWER_SAMPLES => "power_w",
                nvmlSamplingType_enum_NVML_GPU_UTILIZATION_SAMPLES => "util",
                nvmlSamplingType_enum_NVML_MEMORY_UTILIZATION_SAMPLES => "mem_util",
                nvmlSamplingType_enum_NVML_ENC_UTILIZATION_SAMPLES => "enc",
                nvmlSamplingType_enum_NVML_DEC_UTILIZATION_SAMPLES => "dec",
                nvmlSamplingType_enum_NVML_PROCESSOR_CLK_SAMPLES => "clock_sm_mhz",
                nvmlSamplingType_enum_NVML_MEMORY_CLK_SAMPLES => "clock_memory_mhz",
                _ => return Err(NOT_SUPPORTED),
            };
            let is_percent = matches!(name, "util" | "mem_util" | "enc" | "dec");
            if is_percent && card.layout_at(now).is_some() {
                return Err(NOT_SUPPORTED);
            }
            // A stale ring stands where it stood when the fault began.
            let now = library.since(FaultKind::RingStale, Some(number), now).unwrap_or(now);
            let newest = now * 72 / 10_000;
            let oldest = (newest - RING + 1).max(1).max(library.loaded_ms(now) * 72 / 10_000 + 1);
            let mut rows: Vec<nvmlSample_t> = Vec::new();
            for k in oldest..=newest {
                let stamp = library.ring_us(card, ring_end_ms(k));
                if stamp <= last_seen_us {
                    continue;
                }
                let value = if is_percent {
                    utilization(library, number, name, ring_end_ms(k - 1), ring_end_ms(k))?
                } else if name == "power_w" {
                    card.curve(name).at(ring_end_ms(k)) as u32
                } else {
                    (card.curve(name).at(ring_end_ms(k)) / 1000) as u32
                };
                rows.push(nvmlSample_t { timeStamp: stamp, sampleValue: nvmlValue_t { uiVal: value } });
            }
            let is_idle = rows.iter().all(|row| unsafe { row.sampleValue.uiVal } == 0);
            if rows.is_empty() || is_percent && card.ring_empty_when_idle && is_idle {
                return Err(Code(nvmlReturn_enum_NVML_ERROR_NOT_FOUND));
            }
            unsafe {
                put(value_type, nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT)?;
                if samples.is_null() {
                    // Asked for the count alone: the ring's, as the driver says.
                    return put(count, RING as u32);
                }
                super::put_rows(rows, count, samples)
            }
        })
    })
}

/// A field's value with its type.
enum Value {
    Uint(u32),
    Ull(u64),
    Ulong(u64),
    Signed(i32),
    Ushort(u16),
}

/// Whether fields 251 to 273 have the numbers they got with driver 580.82.
fn is_renumbered(driver: &str) -> bool {
    let mut parts = driver.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (580, 82)
}

/// All links together.
const ALL_LINKS: u32 = u32::MAX;

fn field(library: &Library, device: usize, now: i64, id: u32, scope: u32) -> Result<Value, Code> {
    let (number, card) = library.card(device, now)?;
    let health = card.health_at(now);
    let old = if is_renumbered(&library.scenario.driver) {
        // 251 to 268 were 256 to 273, and 269 to 273 were 251 to 255.
        match id {
            251..=268 => id + 5,
            269..=273 => id - 18,
            other => other,
        }
    } else {
        id
    };
    // KiB or bytes that a curve of a rate came to, since the driver was loaded.
    let moved = |name: &str, unit: i128| -> u64 {
        let doubled = card.curve(name).doubled_integral(library.loaded_ms(now), now);
        (doubled * unit / 2_000_000) as u64
    };
    let links = |name: &str| {
        let all = moved(name, 1);
        match scope {
            _ if card.preset.links == 0 => Err(NOT_SUPPORTED),
            ALL_LINKS => Ok(Value::Ull(all)),
            link if link < card.preset.links => Ok(Value::Ull(all / u64::from(card.preset.links))),
            _ => Err(INVALID),
        }
    };
    // Errors of links: in sums before Hopper, by link from then on, all of them on the first.
    let has_sums = card.preset.links > 0 && card.preset.architecture < 9;
    let of_link = |count: u64| match scope {
        link if card.preset.architecture < 9 || link >= card.preset.links => Err(NOT_SUPPORTED),
        link => Ok(Value::Ull(if link == 0 { count } else { 0 })),
    };
    // Pages are retired before Ampere, rows replaced from then on.
    let has_rows = card.preset.architecture >= 7;
    let has_pages = !has_rows && card.preset.has_ecc;
    Ok(match old {
        29 if has_pages => Value::Uint(health.retired_single_bit),
        30 if has_pages => Value::Uint(health.retired_double_bit),
        31 if has_pages => Value::Uint(health.retire_pending),
        38 if has_sums => Value::Ull(health.nvlink_crc_flit),
        45 if has_sums => Value::Ull(health.nvlink_crc_data),
        52 if has_sums => Value::Ull(health.nvlink_replay),
        59 if has_sums => Value::Ull(health.nvlink_recovery),
        160 if has_sums && has_rows => Value::Ull(health.nvlink_ecc_data),
        91 if card.preset.links > 0 => Value::Uint(card.preset.links),
        161 => of_link(health.nvlink_replay)?,
        162 => of_link(health.nvlink_recovery)?,
        163 => of_link(health.nvlink_crc_flit)?,
        number @ (74 | 76 | 251..=253) => {
            let reason = match number {
                74 => nvmlClocksEventReasonSwPowerCap,
                76 => nvmlClocksEventReasonSyncBoost,
                251 => nvmlClocksEventReasonSwThermalSlowdown,
                252 => nvmlClocksThrottleReasonHwThermalSlowdown,
                _ => nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
            };
            Value::Ull(card.throttled_ms(u64::from(reason), library.loaded_ms(now), now) as u64 * 1_000_000)
        }
        82 if card.preset.has_ecc => Value::Uint((card.curve("memory_temperature_c").at(now) / 1000) as u32),
        83 | 191 => {
            if card.preset.unsupported.contains(&"nvmlDeviceGetTotalEnergyConsumption") {
                return Err(NOT_SUPPORTED);
            }
            Value::Ull(library.energy_mj(number, now) as u64)
        }
        94 => Value::Uint(health.pcie_replays),
        138 | 140 => links("nvlink_tx_kib_s")?,
        139 | 141 => links("nvlink_rx_kib_s")?,
        142..=145 if !has_rows => return Err(NOT_SUPPORTED),
        142 => Value::Uint(health.remapped_correctable),
        143 => Value::Uint(health.remapped_uncorrectable),
        144 => Value::Uint(health.remap_pending),
        145 => Value::Uint(health.remap_failed),
        185 | 186 => match scope {
            0 => Value::Uint(card.curve("power_w").at(now) as u32),
            // The module: with the processor beside the card.
            1 => Value::Uint(card.curve("power_w").at(now) as u32 + 100_000),
            _ => return Err(INVALID),
        },
        193 => Value::Signed(87 - (card.curve("temperature_c").at(now) / 1000) as i32),
        194 => Value::Signed(-5),
        195 => Value::Ushort(0),
        197 => Value::Ulong(moved("pcie_tx_mib_s", 1 << 20)),
        198 => Value::Ulong(moved("pcie_rx_mib_s", 1 << 20)),
        230 => Value::Uint(health.recovery_action),
        _ => return Err(NOT_SUPPORTED),
    })
}

device_call! {
    nvmlDeviceGetFieldValues(library, now, device, count: c_int, values: *mut nvmlFieldValue_t) {
        if values.is_null() || count <= 0 {
            return Err(INVALID);
        }
        let (number, _) = library.card(device, now)?;
        for i in 0..count as usize {
            let row = unsafe { &mut *values.add(i) };
            row.timestamp = library.scenario.starts_at_unix_s * 1_000_000 + now * 1000;
            row.latencyUsec = 15;
            // The call succeeds, whatever became of a field.
            let faulty = library.field_fault(number, row.fieldId, now);
            match faulty.map_or_else(|| field(library, device, now, row.fieldId, row.scopeId), Err) {
                Ok(value) => {
                    row.nvmlReturn = nvmlReturn_enum_NVML_SUCCESS;
                    (row.valueType, row.value) = match value {
                        Value::Uint(uiVal) => (nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT, nvmlValue_t { uiVal }),
                        Value::Ull(ullVal) => (nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, nvmlValue_t { ullVal }),
                        Value::Ulong(ulVal) => (nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG, nvmlValue_t { ulVal }),
                        Value::Signed(siVal) => (nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT, nvmlValue_t { siVal }),
                        Value::Ushort(usVal) => (nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_SHORT, nvmlValue_t { usVal }),
                    };
                }
                Err(Code(code)) => row.nvmlReturn = code,
            }
        }
        Ok(())
    }
}
