//! The library through the real wrapper: what the collector sees.

use fake_nvml::{NOT_IN_470, NOT_IN_510, Scenario, Stage, scenario_path};
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{PcieUtilCounter, Sampling};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::gpm_metrics_get;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::sys_exports::field_id;
use nvml_wrapper_sys::bindings::*;
use std::path::Path;

fn open(stage: &Stage) -> Nvml {
    Nvml::builder().lib_path(stage.library().as_os_str()).init().expect("the stand-in loads")
}

fn staged(text: &str) -> Stage {
    Stage::new(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn busy(samples: &[nvml_wrapper::struct_wrappers::device::Sample]) -> Vec<u32> {
    samples.iter().map(|s| if let SampleValue::U32(value) = s.value { value } else { panic!("{s:?}") }).collect()
}

/// A field with a scope: what the wrapper doesn't offer.
fn field(nvml: &Nvml, card: u32, id: u32, scope: u32) -> nvmlFieldValue_t {
    let device = nvml.device_by_index(card).unwrap();
    // SAFETY: all zeros is a value of a plain struct, and the call writes to this one alone.
    unsafe {
        let mut value: nvmlFieldValue_t = std::mem::zeroed();
        (value.fieldId, value.scopeId) = (id, scope);
        let get = nvml.lib().nvmlDeviceGetFieldValues.as_ref().unwrap();
        assert_eq!(get(device.handle(), 1, &raw mut value), 0);
        value
    }
}

fn number(value: &nvmlFieldValue_t) -> u64 {
    assert_eq!(value.nvmlReturn, 0, "field {}", value.fieldId);
    // SAFETY: the member that the type names.
    unsafe {
        match value.valueType {
            1 => u64::from(value.value.uiVal),
            2 => value.value.ulVal,
            3 => value.value.ullVal,
            other => panic!("type {other}"),
        }
    }
}

#[test]
fn every_scenario_beside_the_crate_loads_and_counts_its_cards() {
    let folder = scenario_path("gb10").parent().unwrap().to_owned();
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() > 20);
    for path in names {
        let scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{} says what it stages", path.display());
        let stage = staged(&text);
        assert_eq!(open(&stage).device_count().unwrap() as usize, scenario.cards.len(), "{}", path.display());
    }
}

#[test]
fn every_function_that_the_wrapper_binds_is_exported() {
    let stage = Stage::ready("gb10").unwrap();
    let nvml = open(&stage);
    let mut missing = Vec::new();
    for name in include_str!("symbols.txt").lines() {
        // SAFETY: only looked for, not called.
        let found = unsafe { nvml.lib().__library.get::<unsafe extern "C" fn()>(name.as_bytes()) };
        if found.is_err() {
            missing.push(name);
        }
    }
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn a_card_is_found_by_index_uuid_and_address() {
    let stage = Stage::ready("two-a100-plain").unwrap();
    let nvml = open(&stage);
    let card = nvml.device_by_index(1).unwrap();
    let uuid = card.uuid().unwrap();
    assert_eq!(uuid, stage.scenario().cards[1].uuid);
    assert_eq!(nvml.device_by_uuid(uuid.as_str()).unwrap().index().unwrap(), 1);
    // As sysfs has it: four digits, small letters.
    assert_eq!(nvml.device_by_pci_bus_id("0000:11:00.0").unwrap().uuid().unwrap(), uuid);
    assert_eq!(card.name().unwrap(), "NVIDIA A100-SXM4-80GB");
    assert!(matches!(nvml.device_by_index(2), Err(NvmlError::InvalidArg)));
    assert!(matches!(nvml.device_by_uuid("GPU-none"), Err(NvmlError::NotFound)));
}

/// By hand: from 100 W to 300 W in 10 s is (100 + 300) / 2 × 10 = 2000 J; then 300 W.
#[test]
fn energy_is_the_area_under_the_power_curve_to_the_millijoule() {
    let mut stage = staged(
        "[[card]]\npreset = 'h100'\nenergy_start_mj = 7\ncurve.power_w = { points = [[0, 100], [10, 300]], interp = 'linear' }",
    );
    let nvml = open(&stage);
    let card = nvml.device_by_index(0).unwrap();
    assert_eq!(card.total_energy_consumption().unwrap(), 7);
    stage.clock().set_ms(10_000);
    assert_eq!(card.total_energy_consumption().unwrap(), 2_000_007);
    stage.clock().set_ms(3_600_000);
    assert_eq!(card.total_energy_consumption().unwrap(), 2_000_007 + 3590 * 300_000);
    assert_eq!(stage.scenario().energy_mj(0, 0, 3_600_000), 2_000_000 + 3590 * 300_000);
    assert_eq!(number(&field(&nvml, 0, 83, 0)), 2_000_007 + 3590 * 300_000);
}

/// 15,508,510 J before and 300 W: at 100 s 30,000 J more, and 0; at 110 s 33,000 J more.
#[test]
fn a_counter_falls_to_nothing_and_comes_back_at_its_lifetime_value() {
    let mut stage = Stage::ready("energy-falls-and-returns").unwrap();
    let nvml = open(&stage);
    let card = nvml.device_by_index(0).unwrap();
    let mut at = |second: u64| {
        stage.clock().set_ms(second * 1000);
        card.total_energy_consumption().unwrap()
    };
    assert_eq!([at(99), at(100), at(109), at(110)], [15_538_210_000, 0, 2_700_000, 15_541_510_000]);
}

#[test]
fn the_ring_wraps_after_seventy_two_samples_and_bursts_are_in_it() {
    // Thirty milliseconds of each second: 3 % of the time.
    let mut stage = staged("[[card]]\npreset = 'a100'\ncurve.util = { points = [[0, 100], [0.03, 0]], repeat_s = 1 }");
    let nvml = open(&stage);
    let card = nvml.device_by_index(0).unwrap();
    stage.clock().set_ms(600_000);
    let ring = card.samples(Sampling::GpuUtilization, 0).unwrap();
    assert_eq!(ring.len(), 72);
    assert!(ring.windows(2).all(|pair| pair[0].timestamp < pair[1].timestamp));
    assert_eq!(ring[71].timestamp, 1_800_000_600 * 1_000_000);
    // Ten bursts of 30 ms in samples of 138.9 ms: 21.6 % each, 216 together; a burst on an edge is in two, and each sample is rounded.
    let seen = busy(&ring);
    assert!((210..=222).contains(&seen.iter().sum::<u32>()), "{seen:?}");
    stage.clock().set_ms(605_000);
    assert_eq!(card.samples(Sampling::GpuUtilization, ring[71].timestamp).unwrap().len(), 36);
    assert!(matches!(card.samples(Sampling::GpuUtilization, u64::MAX), Err(NvmlError::NotFound)));
}

#[test]
fn an_idle_ring_finds_nothing_if_the_driver_is_like_that() {
    let mut stage = Stage::ready("h200-idle-notebook").unwrap();
    let nvml = open(&stage);
    stage.clock().set_ms(60_000);
    let card = nvml.device_by_index(0).unwrap();
    assert!(matches!(card.samples(Sampling::GpuUtilization, 0), Err(NvmlError::NotFound)));
    assert!(matches!(card.process_utilization_stats(0), Err(NvmlError::NotFound)));
    assert_eq!(card.memory_info().unwrap().used, 41_000 << 20);
    assert_eq!(card.memory_info().unwrap().reserved, 614 << 20);
}

#[test]
fn utilisation_stays_at_a_hundred_when_it_is_latched() {
    let mut stage = Stage::ready("l40s-latched").unwrap();
    let nvml = open(&stage);
    let card = nvml.device_by_index(0).unwrap();
    stage.clock().set_ms(30_000);
    assert_eq!(card.utilization_rates().unwrap().gpu, 95);
    stage.clock().set_ms(90_000);
    assert_eq!(card.utilization_rates().unwrap().gpu, 100);
    assert_eq!((card.power_usage().unwrap(), card.running_compute_processes().unwrap().len()), (38_000, 0));
}

#[test]
fn a_stale_ring_stands_where_it_stood() {
    let mut stage = Stage::ready("stale-ring").unwrap();
    let nvml = open(&stage);
    let card = nvml.device_by_index(0).unwrap();
    stage.clock().set_ms(60_000);
    let before = card.samples(Sampling::GpuUtilization, 0).unwrap();
    let energy = card.total_energy_consumption().unwrap();
    stage.clock().set_ms(300_000);
    assert_eq!(card.samples(Sampling::GpuUtilization, 0).unwrap(), before);
    assert_eq!(card.total_energy_consumption().unwrap(), energy);
}

#[test]
fn a_card_cut_anew_has_other_slices_with_the_numbers_of_the_old() {
    let mut stage = Stage::ready("mig-relayout").unwrap();
    let nvml = open(&stage);
    let card = nvml.device_by_index(0).unwrap();
    let devices = || -> Vec<String> {
        let all = (0..card.mig_device_count().unwrap()).filter_map(|i| card.mig_device_by_index(i).ok());
        all.map(|slice| slice.uuid().unwrap()).collect()
    };
    let gi = |slice: &nvml_wrapper::Device<'_>| {
        let mut id = 0;
        // SAFETY: a handle of this library, and a place for the answer.
        unsafe { (nvml.lib().nvmlDeviceGetGpuInstanceId.as_ref().unwrap())(slice.handle(), &raw mut id) };
        id
    };
    let before = devices();
    let old = card.mig_device_by_index(0).unwrap();
    assert_eq!((before.len(), gi(&old)), (2, 1));
    assert!(matches!(card.utilization_rates(), Err(NvmlError::NotSupported)));
    assert!(matches!(card.samples(Sampling::GpuUtilization, 0), Err(NvmlError::NotSupported)));
    assert!(card.total_energy_consumption().is_ok());
    assert!(matches!(old.power_usage(), Err(NvmlError::NotSupported)));
    stage.clock().set_ms(120_000);
    assert!(matches!(old.uuid(), Err(NvmlError::InvalidArg)), "a handle of before is stale");
    let after = devices();
    assert_eq!(after.len(), 7);
    assert!(before.iter().all(|uuid| !after.contains(uuid)));
    assert_eq!(gi(&card.mig_device_by_index(0).unwrap()), 1);
    stage.clock().set_ms(130_000);
    let running = card.running_compute_processes().unwrap();
    assert_eq!((running.len(), running[0].pid, running[0].gpu_instance_id), (1, 5402, Some(1)));
    stage.clock().set_ms(240_000);
    assert_eq!((card.mig_device_count().unwrap(), card.mig_mode().unwrap().current), (0, 0));
    assert!(card.utilization_rates().is_ok());
}

/// By hand: sm at 80 for 40 s of 60 and at 10 for the rest: from 30 s to 50 s half of each, 45.
#[test]
fn the_performance_monitor_gives_the_mean_between_two_samples() {
    use nvml_wrapper::enums::gpm::GpmMetricId;
    let mut stage = Stage::ready("eight-h100-mig7").unwrap();
    let nvml = open(&stage);
    let card = nvml.device_by_index(5).unwrap();
    assert!(card.gpm_support().unwrap());
    stage.clock().set_ms(30_000);
    let first = card.gpm_mig_sample(9).unwrap();
    stage.clock().set_ms(50_000);
    let second = card.gpm_mig_sample(9).unwrap();
    let ids = [GpmMetricId::SmUtil, GpmMetricId::DramBwUtil, GpmMetricId::GraphicsUtil];
    let means = gpm_metrics_get(&nvml, &first, &second, &ids).unwrap();
    let values: Vec<f64> = means.into_iter().map(|mean| mean.unwrap().value).collect();
    assert_eq!(values, [45.0, 30.0, 45.0]);
    assert!(matches!(card.gpm_mig_sample(99), Err(NvmlError::NotFound)));
}

#[test]
fn nothing_and_nan_come_from_a_performance_monitor_that_fails() {
    use nvml_wrapper::enums::gpm::GpmMetricId;
    let mut stage =
        staged("[[card]]\npreset = 'h100'\ncurve.sm = 50\n[[fault]]\nkind = 'gpm_nan'\nat_s = 100\nuntil_s = 200");
    let nvml = open(&stage);
    let card = nvml.device_by_index(0).unwrap();
    let mut between = |from: u64, to: u64| {
        stage.clock().set_ms(from);
        let first = card.gpm_sample().unwrap();
        stage.clock().set_ms(to);
        let second = card.gpm_sample().unwrap();
        gpm_metrics_get(&nvml, &first, &second, &[GpmMetricId::SmUtil])
            .map(|mut means| means.remove(0).map(|mean| mean.value))
    };
    assert_eq!(between(1_000, 2_000).unwrap().unwrap(), 50.0);
    assert!(between(100_000, 101_000).unwrap().unwrap().is_nan());
    // Closer than the monitor has new numbers.
    assert!(between(300_000, 300_050).is_err());
}

#[test]
fn a_slice_without_compute_instance_has_no_profiling_and_is_no_device() {
    use nvml_wrapper::enums::gpm::GpmMetricId;
    let mut stage = Stage::ready("gi-without-profiling").unwrap();
    let nvml = open(&stage);
    let card = nvml.device_by_index(0).unwrap();
    assert_eq!((0..7).filter(|&i| card.mig_device_by_index(i).is_ok()).count(), 4);
    let first = card.gpm_mig_sample(12).unwrap();
    stage.clock().set_ms(1_000);
    let second = card.gpm_mig_sample(12).unwrap();
    let mut means = gpm_metrics_get(&nvml, &first, &second, &[GpmMetricId::SmUtil]).unwrap();
    assert!(matches!(means.remove(0), Err(NvmlError::NoData)));
}

/// By hand: 4 GiB/s for 10 s are 40 GiB, which is more than 32 bits hold; over 18 links a part each.
#[test]
fn fields_have_scopes_and_types_of_their_own() {
    let mut stage = staged(
        "[[card]]\npreset = 'h100'\ncurve.power_w = 300\ncurve.pcie_tx_mib_s = 4096\ncurve.nvlink_tx_kib_s = 1800\ncurve.temperature_c = 95",
    );
    let nvml = open(&stage);
    stage.clock().set_ms(10_000);
    let sent = field(&nvml, 0, 197, 0);
    assert_eq!((sent.valueType, number(&sent)), (2, 40 << 30));
    assert_eq!(number(&field(&nvml, 0, 138, u32::MAX)), 18_000);
    assert_eq!(number(&field(&nvml, 0, 138, 4)), 1_000);
    assert_eq!(field(&nvml, 0, 138, 18).nvmlReturn, 2);
    assert_eq!((number(&field(&nvml, 0, 186, 0)), number(&field(&nvml, 0, 186, 1))), (300_000, 400_000));
    let margin = field(&nvml, 0, 193, 0);
    // SAFETY: type 5 is a signed integer.
    assert_eq!((margin.valueType, unsafe { margin.value.siVal }), (5, -8));
    assert_eq!(field(&nvml, 0, 9_999, 0).nvmlReturn, 3);
    // What the real wrapper makes of the signed one: it doesn't know the type.
    let card = nvml.device_by_index(0).unwrap();
    let wrapped = card.field_values_for(&[FieldId(field_id::NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT)]).unwrap();
    assert!(matches!(wrapped[0], Err(NvmlError::UnexpectedVariant(5))));
}

/// 20 s of throttling are 20 × 10⁹ ns; before 580.82 that is field 251.
#[test]
fn fields_are_numbered_anew_from_580_82_on() {
    let text = std::fs::read_to_string(scenario_path("renumbered-fields")).unwrap();
    for (driver, id) in [("580.82.07", 269), ("580.65.06", 251)] {
        let mut stage = staged(&text.replace("580.82.07", driver));
        let nvml = open(&stage);
        stage.clock().set_ms(60_000);
        assert_eq!(number(&field(&nvml, 0, id, 0)), 20_000_000_000, "{driver}");
        assert_eq!(number(&field(&nvml, 0, id + 1, 0)), 0, "{driver}");
    }
}

#[test]
fn one_field_fails_and_the_rest_of_the_batch_is_there() {
    let stage = Stage::ready("one-call-unsupported").unwrap();
    let nvml = open(&stage);
    assert_eq!(field(&nvml, 0, 82, 0).nvmlReturn, 999);
    assert_eq!(number(&field(&nvml, 0, 186, 0)), 60_000);
    let card = nvml.device_by_index(0).unwrap();
    let sensor = nvml_wrapper::enum_wrappers::device::TemperatureSensor::Gpu;
    assert!(matches!(card.temperature(sensor), Err(NvmlError::NotSupported)));
}

#[test]
fn an_xid_says_in_which_instance_and_what_came_before_is_lost() {
    let mut stage = Stage::ready("xid-on-instance").unwrap();
    let nvml = open(&stage);
    let lib = nvml.lib();
    let card = nvml.device_by_index(0).unwrap();
    stage.clock().set_ms(40_000);
    // SAFETY: calls as the header has them, with places that live through them.
    unsafe {
        let mut set = std::ptr::null_mut();
        assert_eq!(lib.nvmlEventSetCreate(&raw mut set), 0);
        assert_eq!(lib.nvmlDeviceRegisterEvents(card.handle(), 0x1008, set), 0);
        let wait = || {
            let mut data: nvmlEventData_t = std::mem::zeroed();
            let code = lib.nvmlEventSetWait_v2(set, &raw mut data, 0);
            (code, data.eventType, data.eventData, data.gpuInstanceId)
        };
        assert_eq!(wait().0, 10, "nothing yet");
        stage.clock().set_ms(90_000);
        assert_eq!(wait(), (0, 0x8, 31, 9));
        assert_eq!(wait(), (0, 0x8, 94, u32::MAX));
        assert_eq!(wait(), (0, 0x1000, 0, u32::MAX));
        assert_eq!(wait().0, 10);
        assert_eq!(leaks(&stage), 1);
        assert_eq!(lib.nvmlEventSetFree(set), 0);
        assert_eq!(leaks(&stage), 0);
    }
}

/// By the library's own count; it is loaded, so that this finds the one that is there.
fn leaks(stage: &Stage) -> u64 {
    // SAFETY: the same file is the same library, and the function has this signature.
    unsafe {
        let library = libloading::Library::new(stage.library()).unwrap();
        let count: libloading::Symbol<'_, unsafe extern "C" fn() -> u64> = library.get(b"fakenvml_leaks\0").unwrap();
        count()
    }
}

#[test]
fn a_new_layout_is_an_event() {
    let mut stage = Stage::ready("mig-relayout").unwrap();
    let nvml = open(&stage);
    let lib = nvml.lib();
    // SAFETY: as above.
    unsafe {
        let mut set = std::ptr::null_mut();
        lib.nvmlEventSetCreate(&raw mut set);
        lib.nvmlDeviceRegisterEvents(nvml.device_by_index(0).unwrap().handle(), 0x100, set);
        stage.clock().set_ms(125_000);
        let mut data: nvmlEventData_t = std::mem::zeroed();
        assert_eq!((lib.nvmlEventSetWait_v2(set, &raw mut data, 0), data.eventType), (0, 0x100));
        lib.nvmlEventSetFree(set);
    }
}

#[test]
fn a_lost_card_is_lost_until_the_library_is_loaded_anew_and_others_go_on() {
    let mut stage = Stage::ready("card-lost-heals").unwrap();
    let nvml = open(&stage);
    let (lost, other) = (nvml.device_by_index(3).unwrap(), nvml.device_by_index(4).unwrap());
    stage.clock().set_ms(100_000);
    assert!(matches!(lost.power_usage(), Err(NvmlError::GpuLost)));
    assert!(matches!(nvml.device_by_index(3), Err(NvmlError::GpuLost)));
    assert_eq!(other.power_usage().unwrap(), 400_000);
    stage.clock().set_ms(250_000);
    assert!(matches!(lost.power_usage(), Err(NvmlError::GpuLost)), "time alone doesn't mend it");
    drop(nvml);
    let nvml = open(&stage);
    let (back, other) = (nvml.device_by_index(3).unwrap(), nvml.device_by_index(4).unwrap());
    // 50 s at 400 W since it is back; 250 s for a card that was never away.
    assert_eq!(back.total_energy_consumption().unwrap(), 20_000_000);
    assert_eq!(other.total_energy_consumption().unwrap(), 100_000_000);
}

#[test]
fn a_driver_that_was_away_has_new_handles_and_counters_at_nothing() {
    use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError};
    let mut stage = Stage::ready("driver-reload").unwrap();
    let nvml = open(&stage);
    stage.clock().set_ms(50_000);
    let old = nvml.device_by_index(0).unwrap();
    let volatile =
        |card: &nvml_wrapper::Device<'_>| card.total_ecc_errors(MemoryError::Corrected, EccCounter::Volatile);
    assert_eq!(volatile(&old).unwrap(), 4);
    assert_eq!(old.total_energy_consumption().unwrap(), 5_000_000_000 + 12_500_000);
    stage.clock().set_ms(110_000);
    assert!(old.power_usage().is_err());
    let refused = Nvml::builder().lib_path(stage.library().as_os_str()).init();
    assert!(matches!(refused, Err(NvmlError::DriverNotLoaded)));
    stage.clock().set_ms(140_000);
    assert!(matches!(old.uuid(), Err(NvmlError::InvalidArg)));
    let new = nvml.device_by_index(0).unwrap();
    assert_eq!(new.total_energy_consumption().unwrap(), 2_500_000);
    assert_eq!(volatile(&new).unwrap(), 0);
    assert_eq!(new.total_ecc_errors(MemoryError::Corrected, EccCounter::Aggregate).unwrap(), 4);
}

#[test]
fn who_is_loaded_goes_on_while_versions_differ() {
    let mut stage = Stage::ready("version-mismatch").unwrap();
    let nvml = open(&stage);
    stage.clock().set_ms(150_000);
    let refused = Nvml::builder().lib_path(stage.library().as_os_str()).init();
    assert!(matches!(refused, Err(NvmlError::LibRmVersionMismatch)));
    assert_eq!(nvml.device_count().unwrap(), 1);
}

#[test]
fn a_call_that_hangs_comes_back_when_the_fault_is_over_and_others_pass_meanwhile() {
    let mut stage = Stage::ready("hang").unwrap();
    let nvml = open(&stage);
    stage.clock().set_ms(60_000);
    std::thread::scope(|scope| {
        let hung = scope.spawn(|| nvml.device_by_index(0).unwrap().power_usage());
        // Calls of another thread aren't held up.
        assert_eq!(nvml.device_by_index(0).unwrap().uuid().unwrap(), stage.scenario().cards[0].uuid);
        assert!(!hung.is_finished());
        stage.clock().set_ms(120_000);
        assert_eq!(hung.join().unwrap().unwrap(), 100_000);
    });
}

#[test]
fn loading_hangs_until_the_fault_is_over() {
    let mut stage = Stage::ready("init-hangs").unwrap();
    stage.clock().set_ms(60_000);
    let library = stage.library();
    std::thread::scope(|scope| {
        let hung = scope.spawn(|| Nvml::builder().lib_path(library.as_os_str()).init().map(|nvml| nvml.device_count()));
        stage.clock().set_ms(90_000);
        assert!(!hung.is_finished());
        stage.clock().set_ms(120_000);
        assert_eq!(hung.join().unwrap().unwrap().unwrap(), 1);
    });
}

#[test]
fn processes_are_listed_as_their_namespace_has_them() {
    let mut stage = Stage::ready("pid-namespaces").unwrap();
    let nvml = open(&stage);
    let card = nvml.device_by_index(0).unwrap();
    stage.clock().set_ms(5_000);
    use nvml_wrapper::enums::device::UsedGpuMemory;
    let listed: Vec<_> =
        card.running_compute_processes().unwrap().into_iter().map(|p| (p.pid, p.used_gpu_memory)).collect();
    assert_eq!(listed, [(324, UsedGpuMemory::Used(8_000 << 20)), (645_600, UsedGpuMemory::Unavailable)]);
    let ring = card.process_utilization_stats(0).unwrap();
    assert_eq!(ring.iter().map(|p| (p.pid, p.sm_util)).collect::<Vec<_>>(), [(645_400, 50), (645_500, 30)]);
}

#[test]
fn a_list_that_grows_between_two_calls_is_too_long_for_its_buffer() {
    let mut stage =
        staged(&(0..40).fold("[[card]]\npreset = 'a100'\n[[fault]]\nkind = 'count_race'\n".to_owned(), |text, pid| {
            text + &format!("[[process]]\npid = {}\ncard = 0\n", pid + 1)
        }));
    let nvml = open(&stage);
    stage.clock().set_ms(1_000);
    let card = nvml.device_by_index(0).unwrap();
    assert!(matches!(card.running_compute_processes(), Err(NvmlError::InsufficientSize(_))));
}

#[test]
fn what_unified_memory_does_not_say_is_not_supported() {
    let stage = Stage::ready("gb10").unwrap();
    let nvml = open(&stage);
    let card = nvml.device_by_index(0).unwrap();
    assert!(matches!(card.memory_info(), Err(NvmlError::NotSupported)));
    assert_eq!(card.running_compute_processes().unwrap().len(), 1);
    let old = Stage::ready("no-energy-counter").unwrap();
    let nvml = open(&old);
    assert!(matches!(nvml.device_by_index(0).unwrap().total_energy_consumption(), Err(NvmlError::NotSupported)));
}

#[test]
fn a_host_lists_the_machines_on_its_cards() {
    let mut stage = Stage::ready("vgpu-host").unwrap();
    let nvml = open(&stage);
    let card = nvml.device_by_index(0).unwrap();
    let machines = card.active_vgpus().unwrap();
    assert_eq!(machines.len(), 2);
    assert_eq!(machines[1].uuid().unwrap(), "5e2f0000-0000-4000-8000-000000000002");
    assert_eq!(machines[1].fb_usage().unwrap(), 20_480 << 20);
    stage.clock().set_ms(300_000);
    assert_eq!(card.active_vgpus().unwrap().len(), 1);
}

#[test]
fn a_driver_of_before_lacks_what_came_later() {
    let mut names = NOT_IN_510.to_vec();
    names.extend(NOT_IN_470);
    let stage = staged("[[card]]\npreset = 'a100'").without(&names).unwrap();
    let nvml = open(&stage);
    let card = nvml.device_by_index(0).unwrap();
    assert!(matches!(card.memory_info(), Err(NvmlError::FailedToLoadSymbol(_))));
    assert!(matches!(card.running_compute_processes(), Err(NvmlError::FailedToLoadSymbol(_))));
    assert!(card.power_usage().is_ok());
    assert!(nvml.lib().nvmlDeviceGetMemoryInfo.is_ok());
}

#[test]
fn a_wrong_version_a_null_and_no_room_have_codes_of_their_own() {
    let stage = Stage::ready("two-a100-plain").unwrap();
    let nvml = open(&stage);
    let device = nvml.device_by_index(0).unwrap();
    let lib = nvml.lib();
    // SAFETY: null and wrong versions are what is tried; places live through the calls.
    unsafe {
        let mut memory: nvmlMemory_v2_t = std::mem::zeroed();
        assert_eq!(lib.nvmlDeviceGetMemoryInfo_v2(device.handle(), &raw mut memory), 25);
        assert_eq!(lib.nvmlDeviceGetPowerUsage(device.handle(), std::ptr::null_mut()), 2);
        assert_eq!(lib.nvmlDeviceGetPowerUsage(std::ptr::null_mut(), std::ptr::null_mut()), 2);
        let mut name = [0; 4];
        assert_eq!(lib.nvmlDeviceGetName(device.handle(), name.as_mut_ptr(), 4), 7);
        let mut count = 0;
        let code = lib.nvmlDeviceGetComputeRunningProcesses_v3(device.handle(), &raw mut count, std::ptr::null_mut());
        assert_eq!((code, count), (7, 1));
        let library = libloading::Library::new(stage.library()).unwrap();
        drop(nvml);
        let uuid: libloading::Symbol<'_, unsafe extern "C" fn(usize, *mut i8, u32) -> u32> =
            library.get(b"nvmlDeviceGetUUID\0").unwrap();
        assert_eq!(uuid(0, std::ptr::null_mut(), 0), 1, "not initialised");
    }
}

#[test]
fn throughput_of_the_bus_takes_the_caller_twenty_milliseconds() {
    let stage = staged("[[card]]\npreset = 'a100'\ncurve.pcie_tx_mib_s = 10");
    let nvml = open(&stage);
    let before = std::time::Instant::now();
    let sent = nvml.device_by_index(0).unwrap().pcie_throughput(PcieUtilCounter::Send).unwrap();
    // At least, which no busy machine can make false.
    assert!(before.elapsed() >= std::time::Duration::from_millis(20));
    assert_eq!(sent, 10 * 1024);
}

#[test]
fn calls_are_counted_over_loads_and_nothing_stays_mapped() {
    let stage = Stage::ready("two-a100-plain").unwrap();
    let is_mapped = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.contains(stage.folder().to_str().unwrap())
    };
    let nvml = open(&stage);
    assert!(is_mapped());
    for _ in 0..3 {
        nvml.device_by_index(0).unwrap().power_usage().unwrap();
    }
    drop(nvml);
    assert!(!is_mapped(), "unloaded, down to the last page");
    assert_eq!(stage.calls("nvmlDeviceGetPowerUsage"), 3);
    assert_eq!(stage.calls("nvmlShutdown"), 1);
}

#[test]
fn a_scenario_that_cannot_be_says_where() {
    for (text, part) in [
        ("[[card]]\npreset = 'z9'", "z9"),
        ("[[card]]\npreset = 'h100'\ncurve.powr_w = 1", "powr_w"),
        ("[[card]]\npreset = 'h100'\n[[fault]]\nat_s = 1", "fault"),
        ("[[card]]\npreset = 'h100'\n[[process]]\npid = 1\ncard = 1", "card 1"),
        ("[[card]]\npreset = 'l40s'\n[[card.layout]]\nslice = [{ profile = '1g.5gb' }]", "can't be cut"),
    ] {
        let error = Scenario::parse(text).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    assert!(Scenario::load(Path::new("/none")).is_err());
}
