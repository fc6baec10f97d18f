//! Figures against what the scenario says they are.

use super::story::{card, missing, percent, play, second, stage};
use cardhour_domain::{CardShare, EnergyBasis, Gap, Reading, UseBasis};

const VARIED: &str = r#"
[[card]]
preset = "l40s"
curve.power_w = { points = [[0, 60], [100, 333.5], [260, 90]], interp = "linear" }
curve.util = { points = [[0, 0], [47, 80], [203, 35], [331, 0]] }
curve.mem_util = { points = [[0, 0], [60, 40]] }
"#;

#[test]
fn energy_is_the_counters_to_the_millijoule() {
    let stage = stage(VARIED);
    let story = play(&stage, 600);
    // Rows begin with the first tick, at 15 s.
    let at = |s: i64| stage.scenario().energy_mj(0, 0, s * 1000);
    assert_eq!(story.energy_mj(&card(0)), at(600) - at(15));
    for row in story.rows_of(&card(0)) {
        assert_eq!(row.energy_basis, EnergyBasis::Counter);
        let mj = row.energy_mj.seen().unwrap().0;
        assert_eq!(row.power_mw.seen().unwrap().0, mj * 1000 / row.during.length_ms());
    }
}

#[test]
fn busy_time_is_that_of_the_curve_but_for_a_period_of_the_ring() {
    let story = play(&stage(VARIED), 600);
    // By hand: 80 % from 47 s to 203 s, 35 % from 203 s to 331 s.
    let truth = 80.0 * 156.0 + 35.0 * 128.0;
    let busy = story.busy(&card(0));
    assert!((busy - truth).abs() < 100.0 * 0.28, "{busy} is not {truth}");
    // A tick inside the plateau has no edge in it.
    assert_eq!(story.row(&card(0), 120).sm_active_pct, percent(80.0));
    assert_eq!(story.row(&card(0), 120).mem_active_pct, percent(40.0));
    assert_eq!(story.row(&card(0), 600).sm_active_pct, percent(0.0));
    assert_eq!(story.row(&card(0), 120).use_basis, UseBasis::DutyCycle);
}

#[test]
fn ticks_are_whole_multiples_and_rows_meet() {
    let story = play(&stage(VARIED), 300);
    let ends: Vec<_> = story.rows_of(&card(0)).iter().map(|row| row.during.end()).collect();
    assert_eq!(ends, (2..=20).map(|n| second(n * 15)).collect::<Vec<_>>());
    assert!(story.rows.windows(2).all(|pair| pair[0].during.end() == pair[1].during.start()));
}

#[test]
fn activity_of_a_hopper_card_is_the_monitors_average_over_the_tick() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
curve.util = 100
curve.sm = { points = [[0, 10], [65, 70]] }
curve.dram = 25
curve.nvlink_tx_kib_s = 10240
curve.nvlink_rx_kib_s = 30720
curve.pcie_tx_mib_s = 1
curve.pcie_rx_mib_s = 2
"#,
        ),
        120,
    );
    // 10 % for 5 s and 70 % for 10 s are 50 % (by hand).
    let row = story.row(&card(0), 75);
    assert_eq!((row.sm_active_pct, row.use_basis), (percent(50.0), UseBasis::Gpm));
    assert_eq!(row.mem_active_pct, percent(25.0));
    // 40 MiB/s and 3 MiB/s for 15 s.
    assert_eq!(row.nvlink_bytes, Reading::Seen(15 * 40 * 1_048_576));
    assert_eq!(row.pcie_bytes, Reading::Seen(15 * 3 * 1_048_576));
}

#[test]
fn slices_have_their_own_activity_and_shares_and_the_card_its_energy() {
    let scenario = stage(
        r#"
[[card]]
preset = "h100"
curve.power_w = 400
[[card.layout]]
slice = [
  { profile = "3g.40gb", gi = 1, uuid = "MIG-a", curve.sm = 80, curve.memory_used_mib = 1000 },
  { profile = "2g.20gb", gi = 3, uuid = "MIG-b", curve.sm = 20 },
  { profile = "1g.10gb", gi = 9, uuid = "MIG-c", curve.sm = 0 },
]
"#,
    );
    let story = play(&scenario, 60);
    let used = |device: &str| story.row(device, 45).sm_active_pct;
    assert_eq!([used("MIG-a"), used("MIG-b"), used("MIG-c")], [percent(80.0), percent(20.0), percent(0.0)]);
    assert_eq!(used(&card(0)), missing(Gap::NotSupported));
    assert_eq!(story.row("MIG-a", 45).mem_used_bytes, Reading::Seen(1000 * 1_048_576));
    assert_eq!(story.row("MIG-a", 45).energy_mj, missing(Gap::NotSupported));
    // 400 W for 15 s.
    assert_eq!(story.row(&card(0), 45).energy_mj.seen().unwrap().0, 6_000_000);
    let found = &story.tick(15).layout;
    let shares: Vec<_> = found.iter().map(|device| (device.mig_profile.as_deref(), device.share)).collect();
    let of_seven = |n| CardShare::from_fraction(n, 7).unwrap();
    assert_eq!(
        shares,
        [
            (None, CardShare::CARD),
            (Some("3g.40gb"), of_seven(3)),
            (Some("2g.20gb"), of_seven(2)),
            (Some("1g.10gb"), of_seven(1))
        ]
    );
    assert_eq!(found[0].mig_mode.as_deref(), Some("enabled"));
    assert_eq!((found[0].power_limit_mw, found[1].power_limit_mw), (Some(700_000), None));
    assert_eq!(found[0].pci_bus_id.as_deref(), Some("00000000:10:00.0"));
    assert!(found.iter().all(|device| device.card_uuid == card(0).as_str()));
}

#[test]
fn an_a30_is_cut_into_four_and_a_compute_instance_is_its_part() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "a30"
[[card.layout]]
slice = [{ profile = "2g.12gb", gi = 1, uuid = "MIG-a" }]
[[card]]
preset = "a100"
[[card.layout]]
slice = [{ profile = "1c.3g.20gb", slices = 1, gi = 1, uuid = "MIG-b" }, { profile = "2c.3g.20gb", slices = 2, gi = 2, uuid = "MIG-c" }]
"#,
        ),
        15,
    );
    let share = |name: &str| {
        let found = story.tick(15).layout.iter().find(|device| device.device_uuid == name).unwrap();
        found.share
    };
    assert_eq!(share("MIG-a"), CardShare::from_fraction(1, 2).unwrap());
    assert_eq!([share("MIG-b"), share("MIG-c")], [1, 2].map(|n| CardShare::from_fraction(n, 7).unwrap()));
}

#[test]
fn processes_are_listed_with_their_instance_and_their_part_of_the_work() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "l40s"
curve.util = 90
[[card]]
preset = "h100"
[[card.layout]]
slice = [{ profile = "1g.10gb", gi = 7, uuid = "MIG-a" }, { profile = "1g.10gb", gi = 8, uuid = "MIG-b" }]
[[process]]
pid = 100
card = 0
sm_pct = 60
memory_mib = 500
[[process]]
pid = 101
card = 0
sm_pct = 30
memory_mib = "na"
[[process]]
pid = 200
card = 1
slice = "MIG-b"
"#,
        ),
        60,
    );
    let tick = story.tick(60);
    let process = |pid: u32| tick.processes.iter().find(|process| process.pid == pid).unwrap();
    let weight = |pid| process(pid).work_weight.seen().unwrap() as f64;
    assert!((weight(100) / weight(101) - 2.0).abs() < 0.05, "{} {}", weight(100), weight(101));
    assert_eq!(process(100).memory_bytes, Reading::Seen(500 * 1_048_576));
    assert_eq!(process(101).memory_bytes, missing(Gap::NotSupported));
    assert_eq!((process(200).device_uuid.as_str(), process(200).card_uuid.as_str()), ("MIG-b", card(1).as_str()));
    assert_eq!(process(200).work_weight, missing(Gap::NotSupported));
    let listed: Vec<_> = tick.listings.iter().map(|listing| listing.processes).collect();
    assert_eq!(listed, [Reading::Seen(2), Reading::Seen(1)]);
    assert_eq!(story.reading("MIG-a", 60).processes, Reading::Seen(0));
}

/// By hand: 500 MiB from 100 s to 400 s and 300 MiB from 205 s to 505 s. A list is made each tick, so an end of each may be a tick off.
#[test]
fn memory_time_of_each_process_is_the_scenarios_within_a_tick() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
[[process]]
pid = 100
card = 0
from_s = 100
until_s = 400
memory_mib = 500
[[process]]
pid = 101
card = 0
from_s = 205
until_s = 505
memory_mib = 300
"#,
        ),
        600,
    );
    for (pid, mib) in [(100, 500), (101, 300)] {
        let of_pid = story.ticks.iter().flat_map(|tick| &tick.processes).filter(|process| process.pid == pid);
        let mib_s: i64 = of_pid.map(|process| process.memory_bytes.seen().unwrap() / 1_048_576 * 15).sum();
        assert!((mib_s - mib * 300).abs() <= mib * 15, "{pid}: {mib_s} MiB s, truly {}", mib * 300);
    }
    // The device's own figure is the sum of those that are there.
    let used = |s| story.reading(&card(0), s).process_memory_bytes;
    assert_eq!([used(90), used(300), used(450), used(600)], [0, 800, 300, 0].map(|mib| Reading::Seen(mib * 1_048_576)));
}
