//! Cards that are lost, dead from the start, or taken off the bus: pitfalls 1 to 7 of our notes on NVML.

use super::story::{Kernel, card, missing, percent, play, play_beside, play_with, second, stage};
use cardhour_collector::probe::DeadCard;
use cardhour_domain::{EventKind, Gap};
use std::cell::Cell;
use std::path::PathBuf;
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
        ("nvmlDeviceGetHandleBy*", 21, Some(21), Gap::DriverError),
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
