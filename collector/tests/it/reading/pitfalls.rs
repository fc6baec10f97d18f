//! Pitfalls of NVML that others met, each under its number in our notes on NVML. Some are cases of a field report as well, and are beside those
//! (`cases.rs`, `metrics/trouble.rs`, `holders/odd_processes.rs`). Not staged: 3 and 10, crashes inside the driver's own code, but for the calls that lead to them;
//! 39, a figure that isn't asked for; 41 and 42, what other exporters cost.

use super::story::{Kernel, StageClock, card, missing, percent, play, play_beside, play_with, second, stage};
use cardhour_collector::probe::nvml::{NvmlConfig, NvmlProbe};
use cardhour_collector::probe::{Control, DeadCard, SystemClock, Watchdog};
use cardhour_domain::{EventKind, Gap, Reading, UseBasis};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

const LOST_AND_BACK: &str = r#"
[[card]]
preset = "h100"
copies = 8
curve.power_w = 100
curve.util = 50
curve.sm = 40
[[fault]]
at_s = 100
until_s = 300
card = 2
kind = "card_lost"
"#;

/// Looking by index fails for all after one was lost: they are found by where they are on the bus.
#[test]
fn pitfall_01_cards_that_no_index_leads_to_are_found_by_their_place() {
    let stage = stage(&format!(
        "{LOST_AND_BACK}[[fault]]\nat_s = 100\nuntil_s = 400\ncall = \"nvmlDeviceGetHandleByIndex_v2\"\nrc = 999\n"
    ));
    let story = play(&stage, 900);
    assert!(stage.calls("nvmlDeviceGetHandleByPciBusId_v2") > 0);
    for other in [0, 1, 3, 7] {
        assert_eq!(story.energy_mj(&card(other)), (900 - 15) * 100_000);
        assert!(story.rows_of(&card(other)).iter().all(|row| row.sm_active_pct == percent(40.0)));
    }
    assert_eq!(story.told(EventKind::CardLost), [(100, Some(15))]);
}

/// A card that is lost from the start takes no other with it, is told once though nobody knows who it is, and is found when it comes back.
#[test]
fn pitfall_05_a_card_that_no_lookup_gives_takes_no_other_with_it() {
    let story = play(&stage(&LOST_AND_BACK.replace("at_s = 100", "at_s = 0")), 900);
    assert_eq!(story.tick(15).devices.len(), 7);
    assert_eq!(story.energy_mj(&card(0)), (900 - 15) * 100_000);
    assert_eq!(story.row(&card(2), 900).sm_active_pct, percent(40.0));
    // Loaded anew every one to five minutes.
    assert!(story.rows_of(&card(2)).first().unwrap().during.end() <= second(300 + 300 + 15));
    assert_eq!(story.told(EventKind::CardLost), [(0, Some(15))]);
    assert_eq!(story.tick(15).dead, [DeadCard { place: None, gap: Gap::CardLost }]);
    assert_eq!(story.tick(900).dead, []);
}

/// Folders of a kernel with three cards on its bus, of which the last is the dead one.
fn three_on_the_bus() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let bus = folder.path().join("devices");
    for n in 0..3 {
        let place = bus.join(format!("0000:{:02x}:00.0", 0x10 + n));
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("vendor"), "0x10de\n").unwrap();
        std::fs::write(place.join("class"), "0x030200\n").unwrap();
    }
    (folder, bus)
}

fn dead(call: &str, rc: u32) -> String {
    format!(
        "[[card]]\npreset = \"h100\"\ncopies = 3\ncurve.power_w = 100\n[[fault]]\nuntil_s = 500\ncard = 2\ncall = \"{call}\"\nrc = {rc}\n"
    )
}

/// However it fails from the start on, it is counted, told once with its place on the bus, and the others are read.
#[test]
fn pitfall_07_a_card_that_never_answered_is_told_once_with_its_place() {
    // A code that nobody knows comes without its number: the wrapper takes it for a value.
    for (call, rc, number, gap) in [
        ("nvmlDeviceGetHandleBy*", 15, Some(15), Gap::CardLost),
        ("nvmlDeviceGetHandleBy*", 21, Some(21), Gap::NotSupported),
        ("nvmlDeviceGetHandleBy*", 28, Some(28), Gap::CardLost),
        ("nvmlDeviceGetHandleBy*", 777, None, Gap::DriverError),
        ("nvmlDeviceGetHandleBy*", 4, Some(4), Gap::NoPermission),
        ("nvmlDeviceGetUUID", 999, Some(999), Gap::DriverError),
    ] {
        let (_folder, bus) = three_on_the_bus();
        let kernel = Kernel { pci_devices: Some(bus), driver_cards: None };
        let story = play_beside(&stage(&dead(call, rc)), 900, kernel);
        let said: Vec<_> = story.events.iter().filter(|event| event.kind == EventKind::CardLost).collect();
        assert_eq!(said.len(), 1, "{call} {rc} {said:?}");
        assert_eq!((said[0].card_uuid.as_deref(), said[0].number), (None, number));
        assert!(said[0].detail.as_deref().unwrap().ends_with("place 00000000:12:00.0"), "{said:?}");
        assert_eq!(story.tick(60).dead, [DeadCard { place: Some("00000000:12:00.0".into()), gap }], "{call} {rc}");
        assert_eq!(story.energy_mj(&card(0)), (900 - 15) * 100_000);
        // It is found when it answers, and isn't dead any more.
        assert_eq!(story.tick(900).dead, []);
        assert!(story.row(&card(2), 900).power_mw.seen().is_some());
    }
}

/// Where the kernel module says who it is, it is one of the node's cards: in each tick, with the reason why nothing is known of it.
#[test]
fn pitfall_07_a_card_that_never_answered_and_that_the_module_names_is_in_the_books() {
    let (folder, bus) = three_on_the_bus();
    let module = folder.path().join("gpus");
    for n in 0..3 {
        let place = module.join(format!("0000:{:02x}:00.0", 0x10 + n));
        std::fs::create_dir_all(&place).unwrap();
        let text = format!("Model: \t\t NVIDIA H100\nGPU UUID: \t {}\nGPU Excluded:\t No\n", card(n));
        std::fs::write(place.join("information"), text).unwrap();
    }
    let kernel = Kernel { pci_devices: Some(bus), driver_cards: Some(module) };
    let story = play_beside(&stage(&dead("nvmlDeviceGetHandleBy*", 15)), 900, kernel);
    assert_eq!(story.told(EventKind::CardLost), [(0, Some(15))]);
    let told = story.ticks.iter().flat_map(|tick| &tick.layout).find(|device| device.card_uuid == card(2).as_str());
    assert_eq!(told.unwrap().model.as_deref(), Some("NVIDIA H100"));
    assert_eq!(told.unwrap().pci_bus_id.as_deref(), Some("00000000:12:00.0"));
    assert_eq!(story.row(&card(2), 300).sm_active_pct, missing(Gap::CardLost));
    assert_eq!(story.tick(300).dead.len(), 1);
    // Eight minutes and a bit later it answers: found, with its own figures.
    assert!(story.told(EventKind::CardFound).iter().any(|(at, _)| (500..=800).contains(at)));
    assert!(story.row(&card(2), 900).power_mw.seen().is_some());
}

/// Another driver's card on the bus is none of ours.
#[test]
fn pitfall_07_a_card_that_the_driver_has_not_got_is_not_called_dead() {
    let (_folder, bus) = three_on_the_bus();
    let scenario =
        "[[card]]\npreset = \"h100\"\ncopies = 2\n[[fault]]\ncard = 1\ncall = \"nvmlDeviceGetHandleBy*\"\nrc = 15\n";
    let story = play_beside(&stage(scenario), 120, Kernel { pci_devices: Some(bus), driver_cards: None });
    assert_eq!(story.tick(60).dead, [DeadCard { place: Some("00000000:11:00.0".into()), gap: Gap::CardLost }]);
}

/// Whichever part of the collector meets the loss first, it is the whole card's: an instance's memory here.
#[test]
fn pitfall_06_a_card_lost_to_one_call_is_lost_to_all() {
    let scenario = "[[card]]\npreset = \"h100\"\ncopies = 2\n[[card.layout]]\nslice = [{ profile = \"1g.10gb\", copies = 2, curve.sm = 50 }]\n\
                    [[fault]]\nat_s = 100\nuntil_s = 130\ncard = 1\ncall = \"nvmlDeviceGetMemoryInfo*\"\nrc = 15\n";
    let story = play(&stage(scenario), 300);
    // Loaded anew at once, and lost again to the same call.
    assert!(story.told(EventKind::CardLost).iter().all(|(at, code)| (100..=130).contains(at) && *code == Some(15)));
    let of_card = |s: i64, n: usize| {
        let tick = story.tick(s);
        let devices = tick.devices.iter().filter(move |device| device.id.card_uuid == card(n).as_str());
        devices.map(|device| device.state.gpm.sm_active_pct).collect::<Vec<_>>()
    };
    // The tick after: the card and both its instances, and nothing of the other.
    assert_eq!(of_card(120, 1), [missing(Gap::CardLost); 3]);
    assert_eq!(of_card(120, 0), [missing(Gap::NotSupported), percent(50.0), percent(50.0)]);
    assert_eq!(of_card(300, 1), [missing(Gap::NotSupported), percent(50.0), percent(50.0)]);
}

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
fn pitfall_02_one_card_that_is_lost_takes_no_other_with_it() {
    let stage = stage(LOST_AND_BACK);
    let story = play(&stage, 900);
    for other in [0, 1, 3, 7] {
        let rows = story.rows_of(&card(other));
        assert_eq!(rows.len(), 900 / 15 - 1);
        assert_eq!(story.energy_mj(&card(other)), (900 - 15) * 100_000);
        assert!(rows.iter().all(|row| row.sm_active_pct == percent(40.0)), "the monitors of the others lose nothing");
    }
}

#[test]
fn pitfall_03_a_lost_card_is_told_once_and_comes_back_by_itself() {
    let story = play(&stage(LOST_AND_BACK), 900);
    assert_eq!(story.told(EventKind::CardLost), [(100, Some(15))]);
    let found = story.told(EventKind::CardFound);
    // Eight at the start, and one when it came back: the library is loaded anew ever more rarely, but within five minutes.
    assert_eq!(found.len(), 9);
    assert!((300..=600).contains(&found[8].0), "{found:?}");
    // Its counter began anew; the first value after that counts from nothing.
    let last = story.row(&card(2), 900);
    assert_eq!((last.sm_active_pct, last.energy_mj.seen().map(|energy| energy.0)), (percent(40.0), Some(1_500_000)));
    assert_eq!(story.row(&card(2), 150).sm_active_pct, missing(Gap::CardLost));
}

#[test]
fn pitfall_03_no_call_reaches_a_lost_card() {
    let scenario = |fault: &str| format!("[[card]]\npreset = \"l40s\"\n{fault}");
    let calls = |fault: &str| {
        let stage = stage(&scenario(fault));
        play(&stage, 600);
        ["nvmlDeviceGetPowerUsage", "nvmlInit_v2"].map(|call| stage.calls(call))
    };
    // Three ticks before the loss and at most the one that finds it; forty without. The stage itself loads the library once.
    assert_eq!(calls(""), [40, 2]);
    let [power, loads] = calls("[[fault]]\nat_s = 60\ncard = 0\nkind = \"card_lost\"\n");
    assert!(power <= 4, "{power}");
    assert!(loads <= 1 + 6, "{loads}");
}

#[test]
fn pitfall_07_a_card_that_left_the_bus_without_a_word_is_told() {
    let bus = tempfile::tempdir().unwrap();
    let place = |n: usize| bus.path().join(format!("0000:{:02x}:00.0", 0x10 + n));
    for n in 0..2 {
        std::fs::create_dir(place(n)).unwrap();
        std::fs::write(place(n).join("vendor"), "0x10de\n").unwrap();
        std::fs::write(place(n).join("class"), "0x030200\n").unwrap();
    }
    let stage =
        stage("[[card]]\npreset = \"h100\"\ncopies = 2\n[[fault]]\nat_s = 100\ncard = 1\nkind = \"unplugged\"\n");
    let story = play_with(&stage, 300, Some(bus.path().to_owned()), &|s, _, _| {
        if s >= 100 {
            drop(std::fs::remove_dir_all(place(1)));
        }
    });
    let health: Vec<_> = story.events.iter().filter(|event| event.kind == EventKind::Health).collect();
    assert_eq!(health.len(), 1, "{health:?}");
    assert_eq!(health[0].card_uuid.as_deref(), Some(card(1).as_str()));
    assert_eq!(story.told(EventKind::CardLost).len(), 1);
}

#[test]
fn pitfall_07_a_card_given_to_a_virtual_machine_is_not_lost() {
    let bus = tempfile::tempdir().unwrap();
    let place = |n: usize| bus.path().join(format!("0000:{:02x}:00.0", 0x10 + n));
    for n in 0..2 {
        std::fs::create_dir(place(n)).unwrap();
        std::fs::write(place(n).join("vendor"), "0x10de\n").unwrap();
        std::fs::write(place(n).join("class"), "0x030200\n").unwrap();
    }
    let stage = stage(
        "[[card]]\npreset = \"h100\"\ncopies = 2\n[[fault]]\nat_s = 100\nuntil_s = 400\ncard = 1\nkind = \"unplugged\"\n",
    );
    let bound = Cell::new(false);
    // Let go first, as the driver wants it, then bound to the virtual machine's driver, then given back.
    let story = play_with(&stage, 900, Some(bus.path().to_owned()), &|s, _, control| {
        if s >= 90 && !bound.replace(true) {
            control.release(Duration::from_secs(30));
            std::os::unix::fs::symlink("../../../bus/pci/drivers/vfio-pci", place(1).join("driver")).unwrap();
        }
        if s >= 400 {
            drop(std::fs::remove_file(place(1).join("driver")));
        }
    });
    assert_eq!(story.told(EventKind::CardLost), []);
    assert_eq!(story.told(EventKind::Health), []);
    assert_eq!(story.tick(300).devices.len(), 1);
    assert_eq!(story.tick(600).devices.len(), 2);
}

/// One card that the kernel puts to sleep two minutes in, for five minutes. Any call on it meanwhile would find it lost.
const ASLEEP: &str = r#"
[[card]]
preset = "l40s"
pci = "00000000:01:00.0"
curve.power_w = 20
curve.util = { points = [[0, 50], [100, 0]], interp = "step" }
[[fault]]
at_s = 121
until_s = 421
card = 0
call = "nvmlDevice*"
rc = 15
"#;

/// Plays it on a bus whose kernel says so. `woken_s`: something else wakes it then, for a moment.
fn play_asleep(scenario: &str, woken_s: Option<i64>) -> super::story::Story {
    let bus = tempfile::tempdir().unwrap();
    let card = bus.path().join("0000:01:00.0");
    std::fs::create_dir_all(card.join("power")).unwrap();
    std::fs::write(card.join("vendor"), "0x10de\n").unwrap();
    std::fs::write(card.join("class"), "0x030200\n").unwrap();
    play_with(&stage(scenario), 600, Some(bus.path().to_owned()), &|s, _, _| {
        let is_asleep = (120..420).contains(&s);
        let awake_ms =
            if is_asleep { 120_000 + woken_s.map_or(0, |woken| i64::from(s >= woken) * 800) } else { s * 1000 };
        std::fs::write(card.join("power/runtime_status"), if is_asleep { "suspended\n" } else { "active\n" }).unwrap();
        std::fs::write(card.join("power/runtime_active_time"), format!("{awake_ms}\n")).unwrap();
    })
}

/// Any call would wake it. The kernel says that it sleeps, and nothing runs on a card that does: that is idle, and what was used is in its counter.
#[test]
fn pitfall_22_a_card_that_sleeps_is_not_woken_and_was_idle() {
    let story = play_asleep(ASLEEP, None);
    assert_eq!(story.told(EventKind::CardLost), [], "a call was made on it");
    assert_eq!(story.ticks.last().unwrap().generation, 1);
    let row = story.row(&card(0), 300);
    assert_eq!((row.sm_active_pct, row.use_basis), (percent(0.0), UseBasis::DutyCycle));
    assert_eq!(
        (row.power_mw, row.temperature_c, row.energy_mj),
        (missing(Gap::Asleep), missing(Gap::Asleep), missing(Gap::Asleep))
    );
    // It has no process, and only a call that wakes it could change that.
    assert_eq!(story.tick(300).listings.len(), 1);
    assert_eq!(story.tick(300).listings[0].processes, Reading::Seen(0));
    assert_eq!(story.energy_mj(&card(0)), (600 - 15) * 20_000);
    // 50 % until 100 s, less the tick before the first row; to half a sample of the ring.
    let busy = story.busy(&card(0));
    assert!((busy - 50.0 * 85.0).abs() < 50.0, "{busy}");
    assert!(story.row(&card(0), 600).power_mw.seen().is_some());
}

/// What it did while something else had woken it is in a ring that can't be read: that stretch isn't idle.
#[test]
fn pitfall_22_a_card_that_was_awake_between_two_looks_is_not_called_idle_then() {
    let story = play_asleep(ASLEEP, Some(300));
    let read = |s: i64| story.reading(&card(0), s).busy_ring.iter().map(|look| look.now_percent).collect::<Vec<_>>();
    assert_eq!(read(300), [Reading::Seen(0); 3]);
    assert_eq!(read(315), [missing(Gap::Asleep), Reading::Seen(0), Reading::Seen(0)]);
    // Whoever woke it may have begun to use it.
    assert_eq!((story.tick(300).listings.len(), story.tick(315).listings.len()), (1, 0));
}

/// A process that had it before it fell asleep may have it still: nobody can say, so it isn't free.
#[test]
fn pitfall_22_a_sleeping_card_with_a_process_that_lives_is_not_called_free() {
    let with = |pid: u32| format!("{ASLEEP}[[process]]\npid = {pid}\ncard = 0\nmemory_mib = 5\n");
    let listings = |pid| play_asleep(&with(pid), None).tick(300).listings.len();
    // Process 1 lives on every Linux, and no kernel counts to four billion.
    assert_eq!((listings(1), listings(4_000_000_000)), (0, 1));
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
    assert_eq!(story.tick(60).listings[0].processes, missing(Gap::NoPermission));
    assert_eq!(story.energy_mj(&card(0)), 45 * 100_000);
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
