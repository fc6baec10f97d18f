//! Pitfalls of NVML that others met, each under its number in our notes on NVML. Some are cases of a field report as well, and are beside those
//! (`cases.rs`, `metrics/trouble.rs`, `holders/odd_processes.rs`), or have files of their own (`gone.rs`, `asleep.rs`). Not staged: 3 and 10, crashes inside the driver's own code, but for the calls that lead to them;
//! 39, a figure that isn't asked for; 42, what other exporters cost.

use super::story::{StageClock, card, missing, percent, play, play_with, second, stage};
use cardhour_collector::probe::nvml::{NvmlConfig, NvmlProbe};
use cardhour_collector::probe::{Control, SystemClock, Watchdog};
use cardhour_domain::{EventKind, Gap, Reading};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::Duration;

/// Loading hangs: told with its name, as any call is.
#[test]
fn pitfall_09_loading_the_library_that_hangs_is_told() {
    let stage = stage(
        "[[card]]\npreset = \"h100\"\n[[fault]]\nat_s = 10\nuntil_s = 1000\ncall = \"nvmlInit_v2\"\nhang = true\n",
    );
    stage.set_us(20_000_000);
    let config = NvmlConfig { library: Some(stage.library().to_owned()), ..NvmlConfig::new("n1".into(), "gpu".into()) };
    let mut probe = NvmlProbe::new(NvmlConfig { step_ms: 50, pci_devices: None, ..config });
    let (control, heartbeat) = (probe.control(), probe.heartbeat());
    let (tell, told) = mpsc::channel();
    let _dog = Watchdog::start(heartbeat, Duration::from_millis(100), move |hung| drop(tell.send(hung))).unwrap();
    let thread = std::thread::spawn(move || probe.run(&SystemClock::start(), &mut |_| ControlFlow::Continue(())));
    let hung = told.recv().unwrap();
    control.stop();
    stage.set_us(1_000_000_000);
    thread.join().unwrap();
    assert_eq!((hung.call, hung.card.as_str()), ("nvmlInit", ""));
}

/// A wait for events that fails is no sign of life: the library is loaded anew, and what comes after that is heard.
#[test]
fn pitfall_11_events_that_can_no_longer_be_waited_for_are_listened_to_anew() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
curve.power_w = 100
[[fault]]
at_s = 90
until_s = 110
call = "nvmlEventSetWait_v2"
rc = 999
[[event]]
at_s = 250
card = 0
data = 43
"#,
        ),
        300,
    );
    assert_eq!(story.told(EventKind::Xid), [(250, Some(43))]);
    assert!(story.ticks.last().unwrap().generation >= 2);
    assert_eq!(story.energy_mj(&card(0)), (300 - 15) * 100_000);
    assert_eq!(story.told(EventKind::CardLost), []);
}

/// A container whose devices were taken away: every call says "unknown". Told once a card, and all is well again when that is.
#[test]
fn pitfall_16_cards_of_which_every_call_says_unknown_are_lost_and_come_back() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
copies = 2
curve.power_w = 100
[[fault]]
at_s = 100
until_s = 300
call = "nvmlDevice*"
rc = 999
"#,
        ),
        900,
    );
    assert_eq!(story.told(EventKind::CardLost).len(), 2);
    assert_eq!(story.tick(210).devices.len(), 2, "known, though nothing of them is");
    assert_eq!(story.row(&card(0), 210).power_mw.seen(), None);
    for n in 0..2 {
        // The counter went on meanwhile.
        assert_eq!(story.energy_mj(&card(n)), (900 - 15) * 100_000);
        assert!(story.row(&card(n), 900).power_mw.seen().is_some());
    }
}

#[test]
fn pitfall_12_without_a_driver_ticks_go_on_and_it_is_found_when_it_comes() {
    let stage = stage(
        r#"
[[card]]
preset = "h100"
[[fault]]
until_s = 100
call = "nvmlInit_v2"
rc = 9
"#,
    );
    let story = play(&stage, 300);
    assert_eq!(story.ticks.len(), 20);
    assert!(story.tick(90).devices.is_empty());
    // The pauses are 1, 2, 4, … 60 s: 1 + 2 + 4 + … + 32 + 60 = 123 s at the latest.
    assert!(story.rows_of(&card(0)).first().unwrap().during.end() <= second(150));
    assert!(stage.calls("nvmlInit_v2") <= 9, "{}", stage.calls("nvmlInit_v2"));
    assert_eq!(story.told(EventKind::DriverReload), []);
}

#[test]
fn pitfall_04_and_13_values_from_before_a_reload_are_never_served_again() {
    let stage = stage(
        r#"
[[card]]
preset = "h100"
curve.power_w = 100
[[fault]]
at_s = 100
until_s = 200
kind = "driver_reload"
"#,
    );
    let story = play(&stage, 405);
    assert_eq!(story.reading(&card(0), 105).state.power_mw.seen(), None);
    for s in [120, 150, 195] {
        let state = &story.reading(&card(0), s).state;
        assert_eq!(
            (state.power_mw, state.temperature_c),
            (missing(Gap::DriverError), missing(Gap::DriverError)),
            "{s}"
        );
    }
    assert_eq!(story.told(EventKind::DriverReload), [(105, Some(9))]);
    assert_eq!(story.told(EventKind::CounterEpoch).len(), 1);
    // 90 s to 200 s are not in any counter that is left: 75 s before, and since the reload.
    assert_eq!(story.energy_mj(&card(0)), (75 + 205) * 100_000);
}

#[test]
fn pitfall_15_two_versions_of_library_and_driver_are_waited_out() {
    let stage = stage(
        r#"
[[card]]
preset = "h100"
[[fault]]
at_s = 104
until_s = 106
call = "nvmlDeviceGetPowerUsage"
rc = 18
[[fault]]
at_s = 100
until_s = 200
kind = "version_mismatch"
"#,
    );
    let story = play(&stage, 405);
    assert_eq!(story.row(&card(0), 195).temperature_c, missing(Gap::DriverError));
    assert!(story.row(&card(0), 405).temperature_c.seen().is_some());
}

#[test]
fn pitfall_19_what_may_not_be_read_says_so_and_leaves_the_rest() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
curve.power_w = 100
[[card.layout]]
slice = [{ profile = "1g.10gb", copies = 2 }]
[[fault]]
card = 0
call = "*RunningProcesses_v3"
rc = 4
[[fault]]
card = 0
call = "nvmlDeviceGetMemoryInfo*"
rc = 4
"#,
        ),
        60,
    );
    let whole = story.reading(&card(0), 60);
    assert_eq!(whole.state.memory_used_bytes, missing(Gap::NoPermission));
    // Neither the card's list nor those of its instances, which are asked for again after 90 s.
    let listings = story.ticks.iter().flat_map(|tick| &tick.listings).map(|listing| listing.processes);
    assert_eq!(listings.collect::<Vec<_>>(), [missing(Gap::NoPermission)]);
    assert_eq!(story.energy_mj(&card(0)), 45 * 100_000);
}

/// Without CAP_SYS_ADMIN the lists of a card that is cut are refused, and those of its instances come by their own handles: each minute and a half.
#[test]
fn pitfall_19_instances_are_listed_one_by_one_where_their_card_may_not_be() {
    let scenario = r#"
[[card]]
preset = "h100"
[[card.layout]]
slice = [{ uuid = "MIG-a", profile = "3g.40gb" }, { uuid = "MIG-b", profile = "1g.10gb", copies = 2 }]
[[process]]
pid = 41
card = 0
slice = "MIG-a"
memory_mib = 100
[[fault]]
card = 0
kind = "parent_list_refused"
"#;
    let stage = stage(scenario);
    let story = play(&stage, 120);
    let whole = story.ticks.iter().rfind(|tick| !tick.listings.is_empty()).unwrap();
    assert_eq!(whole.listings.iter().map(|listing| listing.processes).collect::<Vec<_>>(), [Reading::Seen(1)]);
    let listed: Vec<_> = whole.processes.iter().map(|process| (process.pid, process.device_uuid.as_str())).collect();
    assert_eq!(listed, [(41, "MIG-a")]);
    // Refused once; after that three instances at once and 90 s later, and no list meanwhile.
    assert_eq!(stage.calls("nvmlDeviceGetComputeRunningProcesses_v3"), 1 + 2 * 3);
}

#[test]
fn pitfall_20_released_cards_have_no_handle_open_and_are_taken_back() {
    let stage = stage("[[card]]\npreset = \"h100\"\ncurve.power_w = 100\n");
    let (asked, calls) = (Cell::new(false), Cell::new(None));
    let story = play_with(&stage, 405, None, &|s, _: &StageClock<'_>, control: &Control| {
        if s >= 100 && !asked.replace(true) {
            control.release(Duration::from_secs(120));
        }
        if s >= 120 && calls.get().is_none() {
            assert_eq!(stage.calls("nvmlShutdown"), 1);
            calls.set(Some(stage.calls("nvmlDeviceGetPowerUsage")));
        }
        if (120..215).contains(&s) {
            assert_eq!(Some(stage.calls("nvmlDeviceGetPowerUsage")), calls.get());
        }
    });
    assert_eq!(story.told(EventKind::Released), [(105, Some(120_000))]);
    assert_eq!(story.row(&card(0), 150).power_mw, missing(Gap::CollectorDown));
    // The counter went on meanwhile, so nothing is lost.
    assert_eq!(story.energy_mj(&card(0)), (405 - 15) * 100_000);
}

#[test]
fn pitfall_23_used_memory_is_without_what_the_driver_keeps() {
    let story = play(&stage("[[card]]\npreset = \"h200\"\ncurve.memory_used_mib = 100\n"), 45);
    let state = &story.reading(&card(0), 45).state;
    assert_eq!(state.memory_used_bytes, Reading::Seen(100 * 1_048_576));
    assert_eq!(state.memory_reserved_bytes, Reading::Seen(614 * 1_048_576));
}

#[test]
fn pitfall_23_an_old_driver_gives_memory_by_the_older_call() {
    let old = "[[fault]]\ncall = \"nvmlDeviceGetMemoryInfo_v2\"\nrc = 25\n";
    let story = play(&stage(&format!("[[card]]\npreset = \"h200\"\ncurve.memory_used_mib = 100\n{old}")), 45);
    let state = &story.reading(&card(0), 45).state;
    // What is reserved is in it, and nothing tells how much that is.
    assert_eq!(state.memory_used_bytes, Reading::Seen((100 + 614) * 1_048_576));
    assert_eq!(state.memory_reserved_bytes, missing(Gap::NotSupported));
}

#[test]
fn pitfall_25_a_list_longer_than_its_room_is_whole() {
    let processes: String = (0..300).map(|n| format!("[[process]]\npid = {}\ncard = 0\n", 1000 + n)).collect();
    let story = play(&stage(&format!("[[card]]\npreset = \"h100\"\n{processes}")), 30);
    assert_eq!(story.tick(30).listings[0].processes, Reading::Seen(300));
}

#[test]
fn pitfall_26_renumbered_fields_are_read_by_their_new_numbers() {
    let health = |driver: &str| {
        let story = play(&stage(&format!("driver = \"{driver}\"\n[[card]]\npreset = \"h100\"\n")), 30);
        story.reading(&card(0), 30).state.health.thermal_violation_ns_total
    };
    assert_eq!(health("570.172.08"), health("580.82.07"));
    assert!(health("580.82.07").seen().is_some());
}

#[test]
fn pitfall_27_garbage_of_process_use_has_no_weight() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "l40s"
curve.util = 50
[[process]]
pid = 7
card = 0
sm_pct = 50
[[process]]
pid = 8
card = 0
sm_pct = 4000000
"#,
        ),
        60,
    );
    let weight = |pid| story.tick(60).processes.iter().find(|process| process.pid == pid).unwrap().work_weight;
    assert_eq!([weight(7), weight(8)], [50 * 15_000_000, 0].map(Reading::Seen));
}

#[test]
fn pitfall_28_a_duty_cycle_latched_at_a_hundred_is_not_work() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "l40s"
curve.power_w = 60
[[fault]]
at_s = 60
card = 0
kind = "utilization_latched"
"#,
        ),
        150,
    );
    assert_eq!(story.row(&card(0), 45).sm_active_pct, percent(0.0));
    assert_eq!(story.row(&card(0), 150).sm_active_pct, missing(Gap::Implausible));
}

#[test]
fn pitfall_29_a_card_that_always_says_nothing_is_not_idle_at_high_power() {
    let story = play(&stage("[[card]]\npreset = \"l40s\"\ncurve.power_w = 300\n"), 60);
    assert_eq!(story.row(&card(0), 60).sm_active_pct, missing(Gap::Implausible));
}

#[test]
fn pitfall_31_rings_on_another_clock_and_rings_that_are_empty_when_idle_tell_the_same() {
    let busy = |ring: &str| {
        let scenario = format!(
            "[[card]]\npreset = \"l40s\"\n{ring}\ncurve.power_w = 50\ncurve.util = {{ points = [[0, 0], [100, 60], [220, 0]] }}\n"
        );
        let story = play(&stage(&scenario), 400);
        assert!(story.rows_of(&card(0)).iter().all(|row| row.sm_active_pct.seen().is_some()), "{ring}");
        story.busy(&card(0))
    };
    for ring in ["", "ring_since_boot = true", "ring_empty_when_idle = true"] {
        let busy = busy(ring);
        // 60 % for 120 s; an edge is at most a period off.
        assert!((busy - 7_200.0).abs() < 60.0 * 0.28, "{ring} {busy}");
    }
}

/// Some drivers give more than the whole for an instance: that is no measure of anything.
#[test]
fn pitfall_33_activity_of_an_instance_above_the_whole_is_no_number() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
[[card.layout]]
slice = [{ profile = "1g.10gb", uuid = "MIG-a", curve.sm = 133 }, { profile = "1g.10gb", uuid = "MIG-b", curve.sm = 50 }]
"#,
        ),
        60,
    );
    let used = |device: &str| story.row(device, 60).sm_active_pct;
    assert_eq!([used("MIG-a"), used("MIG-b")], [missing(Gap::Implausible), percent(50.0)]);
}

#[test]
fn pitfall_34_a_card_cut_anew_under_load_with_the_same_numbers_mixes_nothing() {
    let stage = stage(
        r#"
[[card]]
preset = "h100"
[[card.layout]]
slice = [{ profile = "1g.10gb", gi = 7, uuid = "MIG-old", curve.sm = 90 }]
[[card.layout]]
at_s = 100
slice = [{ profile = "1g.10gb", gi = 7, uuid = "MIG-new", curve.sm = 10 }]
[[process]]
pid = 5
card = 0
slice = "MIG-new"
"#,
    );
    let story = play(&stage, 200);
    assert!(story.rows_of("MIG-old").iter().all(|row| row.sm_active_pct == percent(90.0)));
    assert!(story.rows_of("MIG-new").iter().all(|row| row.sm_active_pct == percent(10.0)));
    assert!(story.rows_of("MIG-new").len() >= 5);
    assert_eq!(story.tick(180).processes[0].device_uuid, "MIG-new");
    let layouts: Vec<_> =
        story.tick(180).devices.iter().filter_map(|device| device.id.mig).map(|place| place.layout).collect();
    assert_eq!(layouts, [2]);
}

#[test]
fn pitfall_35_an_error_on_an_instance_is_told_once_with_the_instance() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
[[card.layout]]
slice = [{ profile = "1g.10gb", gi = 7, uuid = "MIG-a" }, { profile = "1g.10gb", gi = 8, uuid = "MIG-b" }]
[[event]]
at_s = 61
card = 0
data = 43
gi = 8
ci = 0
"#,
        ),
        300,
    );
    let xids: Vec<_> = story.events.iter().filter(|event| event.kind == EventKind::Xid).collect();
    assert_eq!(xids.len(), 1);
    assert_eq!((xids[0].number, xids[0].device_uuid.as_deref()), (Some(43), Some("MIG-b")));
    assert_eq!(story.reading(&card(0), 300).state.last_xid, Reading::Seen(Some(43)));
}

/// The driver's way to say that it doesn't know is the largest number there is.
#[test]
fn pitfall_37_memory_that_the_driver_does_not_know_is_no_number() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
curve.memory_used_mib = 10
[[process]]
pid = 7
card = 0
memory_mib = 300
[[process]]
pid = 8
card = 0
memory_mib = "na"
"#,
        ),
        45,
    );
    let process = |pid| story.tick(45).processes.iter().find(|process| process.pid == pid).unwrap().memory_bytes;
    assert_eq!([process(7), process(8)], [Reading::Seen(300 * 1_048_576), missing(Gap::NotSupported)]);
    // Nor is a sum in which it is.
    assert_eq!(story.reading(&card(0), 45).process_memory_bytes, missing(Gap::NotSupported));
}

#[test]
fn pitfall_38_cards_keep_their_series_when_indexes_move() {
    let stage = stage(
        r#"
[[card]]
preset = "h100"
curve.power_w = 100
[[card]]
preset = "h100"
curve.power_w = 300
[[fault]]
at_s = 100
kind = "indexes_reversed"
[[fault]]
at_s = 110
until_s = 111
call = "nvmlDeviceGetPowerUsage"
rc = 1
"#,
    );
    // At 110 s the library says that it is not initialised, so it is loaded anew, with the indexes the other way round.
    let story = play(&stage, 300);
    assert!(stage.calls("nvmlInit_v2") >= 1);
    assert_eq!(story.energy_mj(&card(0)), (300 - 15) * 100_000);
    assert_eq!(story.energy_mj(&card(1)), (300 - 15) * 300_000);
}

#[test]
fn pitfall_43_loading_the_library_anew_many_times_leaves_nothing_behind() {
    let stage = stage(
        r#"
[[card]]
preset = "h100"
copies = 2
[[card.layout]]
slice = [{ profile = "1g.10gb", copies = 2 }]
[[fault]]
card = 1
at_s = 30
kind = "card_lost"
"#,
    );
    play(&stage, 3600);
    assert!(stage.calls("nvmlInit_v2") >= 10);
    // The stage itself has it loaded once more.
    assert_eq!(stage.calls("nvmlInit_v2"), stage.calls("nvmlShutdown") + 1);
    assert_eq!(stage.calls("nvmlGpmSampleAlloc"), stage.calls("nvmlGpmSampleFree"));
    assert_eq!(stage.calls("nvmlEventSetCreate"), stage.calls("nvmlEventSetFree"));
}

#[test]
fn a_monitor_that_may_not_be_read_leaves_the_duty_cycle() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
curve.util = 45
curve.mem_util = 15
curve.sm = 30
[[fault]]
call = "nvmlGpmSampleGet"
rc = 4
"#,
        ),
        60,
    );
    let row = story.row(&card(0), 60);
    assert_eq!((row.sm_active_pct, row.mem_active_pct), (percent(45.0), percent(15.0)));
    assert_eq!(row.use_basis, cardhour_domain::UseBasis::DutyCycle);
}

#[test]
fn virtual_gpus_are_told_with_their_machines() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "l40s"
[[vgpu]]
card = 0
uuid = "VGPU-1"
vm = "machine-1"
type = "NVIDIA L40S-24Q"
memory_mib = 24576
from_s = 20
until_s = 50
"#,
        ),
        60,
    );
    let seen = |s| {
        story.tick(s).vgpus.iter().map(|vgpu| (vgpu.uuid.to_string(), vgpu.machine.to_string())).collect::<Vec<_>>()
    };
    assert_eq!(seen(15), []);
    assert_eq!(seen(30), [("VGPU-1".to_owned(), "machine-1".to_owned())]);
    assert_eq!(story.tick(30).vgpus[0].used_bytes, Reading::Seen(24_576 * 1_048_576));
    assert_eq!(story.tick(30).vgpus[0].profile.as_deref(), Some("NVIDIA L40S-24Q"));
    assert_eq!(seen(60), []);
}

#[test]
fn a_library_loaded_anew_finds_instances_under_their_old_layout() {
    let stage = stage(
        r#"
[[card]]
preset = "h100"
copies = 2
[[card.layout]]
slice = [{ profile = "1g.10gb", copies = 2, curve.sm = 50 }]
[[fault]]
at_s = 90
until_s = 140
card = 1
kind = "card_lost"
"#,
    );
    let story = play(&stage, 600);
    assert!(stage.calls("nvmlInit_v2") >= 3);
    let layouts = |s| {
        story.tick(s).devices.iter().filter_map(|device| device.id.mig).map(|place| place.layout).collect::<Vec<_>>()
    };
    assert_eq!((layouts(60), layouts(600)), (vec![1; 4], vec![1; 4]));
    assert_eq!(story.told(EventKind::Layout), []);
    let told: usize = story.ticks.iter().map(|tick| tick.layout.len()).sum();
    assert_eq!(told, 6, "what is known already is not told again");
}

#[test]
fn health_that_got_worse_is_told_once() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
[[card.health]]
at_s = 100
uncorrected = 2
remap_pending = 1
[[card.health]]
at_s = 200
uncorrected = 2
remap_failed = 1
remap_pending = 1
recovery_action = 1
"#,
        ),
        600,
    );
    let told = story
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Health)
        .map(|event| (event.number, event.detail.as_deref()));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            (Some(2), Some("uncorrectable memory errors")),
            (None, Some("rows of memory wait to be replaced: reset the card")),
            (None, Some("a row of memory could not be replaced: change the card")),
            (Some(1), Some("the driver asks for a reset of the card")),
        ]
    );
    assert_eq!(story.reading(&card(0), 600).state.health.ecc.uncorrected_volatile_total, Reading::Seen(2));
}
