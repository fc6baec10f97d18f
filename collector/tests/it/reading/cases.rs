//! What went wrong in the field, each under the id of its report.

use super::story::{card, missing, percent, play, play_with, stage};
use cardhour_collector::probe::nvml::{NvmlConfig, NvmlProbe};
use cardhour_collector::probe::{SystemClock, Watchdog};
use cardhour_domain::{EnergyBasis, EventKind, Gap, Reading, UseBasis};
use std::sync::mpsc;
use std::time::Duration;

const SEVEN: &str = r#"
[[card]]
preset = "h100"
[[card.layout]]
slice = [{ profile = "1g.10gb", copies = 7, curve.sm = 50, curve.graphics = 60 }]
"#;

#[test]
fn c01_what_a_cut_card_does_not_support_is_no_number() {
    let story = play(&stage(SEVEN), 60);
    let whole = story.reading(&card(0), 60);
    assert_eq!(whole.state.utilization_pct, missing(Gap::NotSupported));
    assert_eq!(story.row(&card(0), 60).sm_active_pct, missing(Gap::NotSupported));
    assert_eq!(story.busy(&card(0)), 0.0);
}

#[test]
fn c02_a_busy_instance_is_busy_where_it_can_be_measured_and_unknown_where_not() {
    let story = play(&stage(SEVEN), 60);
    let slices = story.rows.iter().filter(|row| row.device_uuid != row.card_uuid);
    assert!(slices.clone().count() >= 7 * 3);
    assert!(slices.clone().all(|row| row.sm_active_pct == percent(50.0) && row.use_basis == UseBasis::Gpm));
    // An A100 has no monitor that NVML can read.
    let story = play(&stage(&SEVEN.replace("h100", "a100").replace("1g.10gb", "1g.5gb")), 60);
    let slices: Vec<_> = story.rows.iter().filter(|row| row.device_uuid != row.card_uuid).collect();
    assert!(slices.len() >= 7 * 3 && slices.iter().all(|row| row.sm_active_pct == missing(Gap::NotSupported)));
}

#[test]
fn c03_instances_of_a_card_that_was_cut_anew_are_found_within_a_tick_and_never_read_zero() {
    let stage = stage(
        r#"
[[card]]
preset = "h100"
[[card.layout]]
slice = [{ profile = "1g.10gb", curve.sm = 50 }]
[[card.layout]]
at_s = 100
slice = [{ profile = "1g.10gb", copies = 7, curve.sm = 50 }]
"#,
    );
    let story = play(&stage, 180);
    let slices_at = |s| story.tick(s).devices.iter().filter(|device| device.id.mig.is_some()).count();
    assert_eq!([slices_at(90), slices_at(105)], [1, 7]);
    assert_eq!(story.tick(105).layout.len(), 8);
    let slices = story.rows.iter().filter(|row| row.device_uuid != row.card_uuid);
    assert!(slices.clone().all(|row| row.sm_active_pct == percent(50.0)), "never zero, never anything else");
    // From the tick after, all seven have rows, whole ticks of them.
    assert_eq!(slices.filter(|row| row.during.end() == super::story::second(120)).count(), 7);
    assert_eq!(story.told(EventKind::Layout).len(), 1);
}

/// Beside a duty cycle of a hundred as of sixty: kernels that run half of the time leave a trace in a monitor that counts.
#[test]
fn c04_a_monitor_at_nothing_beside_a_high_duty_cycle_is_suspect() {
    for util in [100, 60] {
        let scenario = format!(
            "[[card]]\npreset = \"h100\"\ncurve.util = {util}\ncurve.sm = 40\ncurve.power_w = 300\n[[process]]\npid = 7\ncard = 0\n\
             [[event]]\nat_s = 60\ncard = 0\ndata = 31\n[[fault]]\nat_s = 60\ncard = 0\nkind = \"gpm_zero\"\n"
        );
        let story = play(&stage(&scenario), 120);
        assert_eq!(story.row(&card(0), 45).sm_active_pct, percent(40.0));
        assert_eq!(story.row(&card(0), 90).sm_active_pct, missing(Gap::Implausible), "beside {util} %");
        assert_eq!(story.told(EventKind::Xid), [(60, Some(31))]);
    }
}

#[test]
fn c05_counters_that_another_profiler_has_are_unknown() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
curve.util = 100
curve.sm = 70
[[fault]]
at_s = 60
until_s = 80
call = "nvmlGpmSampleGet"
rc = 19
"#,
        ),
        120,
    );
    assert_eq!(story.row(&card(0), 60).sm_active_pct, missing(Gap::CountersTaken));
    // Counted again from the tick after: the samples on both sides of the silence are whole.
    assert_eq!(story.row(&card(0), 90).sm_active_pct, percent(70.0));
}

#[test]
fn c07_instances_without_a_monitor_have_rows_all_the_same() {
    let mut scenario = String::new();
    for slices in [7, 6, 3] {
        let slices = format!("slice = [{{ profile = \"1g.10gb\", copies = {slices}, curve.sm = 30 }}]");
        scenario += &format!("[[card]]\npreset = \"h100\"\n[[card.layout]]\n{slices}\n");
    }
    scenario += "[[fault]]\ncard = 2\ncall = \"nvmlGpmMigSampleGet\"\nrc = 3\n";
    let story = play(&stage(&scenario), 45);
    let end = super::story::second(45);
    let slices: Vec<_> =
        story.rows.iter().filter(|row| row.device_uuid != row.card_uuid && row.during.end() == end).collect();
    assert_eq!(slices.len(), 16);
    assert_eq!(slices.iter().filter(|row| row.sm_active_pct == percent(30.0)).count(), 13);
    assert_eq!(slices.iter().filter(|row| row.sm_active_pct.seen().is_none()).count(), 3);
    assert!(slices.iter().all(|row| row.mem_used_bytes.seen().is_some()));
}

#[test]
fn c09_values_whose_own_time_stands_still_are_stale() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "l40s"
curve.util = 55
curve.power_w = 200
[[fault]]
at_s = 60
until_s = 150
card = 0
kind = "ring_stale"
[[fault]]
at_s = 60
until_s = 150
card = 0
kind = "energy_frozen"
"#,
        ),
        240,
    );
    let row = story.row(&card(0), 105);
    assert_eq!(row.sm_active_pct, missing(Gap::Stale));
    assert_eq!(row.energy_mj, missing(Gap::Stale));
    // It moves again: what was used meanwhile is booked, once.
    assert_eq!(story.energy_mj(&card(0)), 225 * 200_000);
    assert_eq!(story.row(&card(0), 240).sm_active_pct, percent(55.0));
}

#[test]
fn c10_and_pitfall_08_a_call_that_hangs_is_told_with_its_name_and_card() {
    let stage = stage(
        r#"
[[card]]
preset = "h100"
[[fault]]
until_s = 1000
call = "nvmlDeviceGetPowerUsage"
hang = true
"#,
    );
    let config = NvmlConfig { library: Some(stage.library().to_owned()), ..NvmlConfig::new("n1".into(), "gpu".into()) };
    let mut probe = NvmlProbe::new(NvmlConfig { step_ms: 50, pci_devices: None, ..config });
    let (control, heartbeat) = (probe.control(), probe.heartbeat());
    let (tell, told) = mpsc::channel();
    let _dog = Watchdog::start(heartbeat, Duration::from_millis(100), move |hung| drop(tell.send(hung))).unwrap();
    let thread =
        std::thread::spawn(move || probe.run(&SystemClock::start(), &mut |_| std::ops::ControlFlow::Continue(())));
    let hung = told.recv().unwrap();
    // Nothing else frees a thread that is in the driver; here the scenario does.
    control.stop();
    stage.set_us(1_000_000_000);
    thread.join().unwrap();
    assert_eq!((hung.call, hung.card), ("nvmlDeviceGetPowerUsage", card(0)));
}

#[test]
fn c10_a_call_that_times_out_leaves_its_value_missing_for_that_tick() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
[[fault]]
at_s = 50
until_s = 70
call = "nvmlDeviceGetTemperature*"
rc = 10
"#,
        ),
        90,
    );
    let temperature = |s| story.row(&card(0), s).temperature_c;
    assert_eq!(
        [temperature(45), temperature(60), temperature(75)],
        [Reading::Seen(35), missing(Gap::TimedOut), Reading::Seen(35)]
    );
}

#[test]
fn c11_one_value_that_is_not_there_takes_no_other_with_it() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "l40s"
unsupported = ["nvmlDeviceGetTemperature*"]
curve.util = 20
"#,
        ),
        45,
    );
    let row = story.row(&card(0), 45);
    assert_eq!(row.temperature_c, missing(Gap::NotSupported));
    assert_eq!(row.sm_active_pct, percent(20.0));
    assert!(row.energy_mj.seen().is_some() && row.power_mw.seen().is_some() && row.mem_used_bytes.seen().is_some());
}

#[test]
fn c12_a_query_that_failed_once_is_asked_again_at_the_next_tick() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
[[fault]]
at_s = 60
until_s = 61
call = "nvmlDeviceGetMemoryInfo*"
rc = 999
"#,
        ),
        120,
    );
    let gaps: Vec<_> =
        story.rows.iter().filter(|row| row.mem_used_bytes.seen().is_none()).map(|row| row.during.end()).collect();
    assert_eq!(gaps, [super::story::second(60)]);
}

#[test]
fn c13_a_cut_card_says_that_its_use_is_not_available_and_its_instances_say_it() {
    let story = play(&stage(SEVEN), 45);
    assert_eq!(story.reading(&card(0), 45).state.gpm.graphics_active_pct, missing(Gap::NotSupported));
    let slices = story.tick(45).devices.iter().filter(|device| device.id.mig.is_some());
    assert!(slices.clone().all(|slice| slice.state.gpm.graphics_active_pct == percent(60.0)));
    assert_eq!(slices.count(), 7);
}

#[test]
fn c15_and_pitfall_36_a_card_that_shares_the_hosts_memory_has_that_of_its_processes_and_all_else() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "gb10"
curve.util = 40
curve.sm = 40
[[process]]
pid = 7
card = 0
memory_mib = 300
[[process]]
pid = 8
card = 0
memory_mib = 200
"#,
        ),
        45,
    );
    let row = story.row(&card(0), 45);
    assert_eq!(story.reading(&card(0), 45).state.memory_total_bytes, missing(Gap::NotSupported));
    assert_eq!(row.mem_used_bytes, Reading::Seen(500 * 1_048_576));
    assert_eq!(row.sm_active_pct, percent(40.0));
}

#[test]
fn c16_and_pitfall_32_a_card_without_a_counter_has_its_power_integrated_and_says_so() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "pascal"
curve.power_w = { points = [[0, 20], [300, 70]], interp = "linear" }
"#,
        ),
        300,
    );
    let rows = story.rows_of(&card(0));
    assert!(rows.iter().all(|row| row.energy_basis == EnergyBasis::Power && row.energy_mj.seen().is_some()));
    // From 15 s (22.5 W) to 300 s (70 W): 46.25 W on average for 285 s are 13,181.25 J (by hand). A straight line has no error but rounding to
    // the milliwatt.
    let energy_mj = story.energy_mj(&card(0));
    assert!((energy_mj - 13_181_250).abs() < 200, "{energy_mj}");
}

#[test]
fn c17_a_counter_that_falls_and_comes_back_books_what_was_used_and_not_its_life() {
    let stage = stage(
        r#"
[[card]]
preset = "h100"
energy_start_mj = 15475040000
curve.power_w = 300
[[fault]]
at_s = 100
until_s = 160
card = 0
kind = "energy_reset"
"#,
    );
    let story = play(&stage, 300);
    // The fall is at 100 s, seen at 105 s: 5 s of 300 W are counted and the 10 s before are not told. The return is seen at 165 s: all since
    // 90 s (the last value before the fall), less what was booked since, so that nothing is lost in the end.
    assert_eq!(story.energy_mj(&card(0)), (300 - 15) * 300_000);
    let most = story.rows.iter().filter_map(|row| row.energy_mj.seen()).map(|energy| energy.0).max();
    assert!(most < Some(30 * 300_000), "no row has more than the card can draw: {most:?}");
    assert_eq!(story.told(EventKind::CounterEpoch).len(), 2);
}

#[test]
fn c18_and_pitfall_30_bursts_that_look_like_all_or_nothing_have_the_mean_they_have() {
    // 100 % for half a second of each two seconds: a quarter.
    let story = play(
        &stage(
            r#"
[[card]]
preset = "l40s"
curve.util = { points = [[0, 100], [0.5, 0]], repeat_s = 2 }
"#,
        ),
        300,
    );
    let rows = story.rows_of(&card(0));
    for row in &rows {
        let thousandths = row.sm_active_pct.seen().unwrap().thousandths();
        assert!((20_000..=30_000).contains(&thousandths), "{thousandths}");
    }
    let mean = story.busy(&card(0)) / (rows.len() as f64 * 15.0);
    assert!((mean - 25.0).abs() < 0.3, "{mean}");
}

#[test]
fn c19_every_card_is_in_every_tick_with_or_without_work_lost_or_not() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "h100"
copies = 3
[[fault]]
at_s = 60
until_s = 200
card = 1
kind = "card_lost"
"#,
        ),
        400,
    );
    for tick in &story.ticks {
        let mut cards: Vec<_> = tick.devices.iter().map(|device| device.id.device_uuid.to_string()).collect();
        cards.sort();
        assert_eq!(cards, [card(0), card(1), card(2)]);
    }
    assert_eq!(story.rows_of(&card(1)).len(), story.rows_of(&card(0)).len());
    assert_eq!(story.row(&card(1), 105).sm_active_pct, missing(Gap::CardLost));
}

#[test]
fn c21_a_card_that_draws_power_and_does_nothing_is_not_busy() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "l40s"
curve.power_w = 110
"#,
        ),
        60,
    );
    assert_eq!(story.row(&card(0), 60).sm_active_pct, percent(0.0));
    assert_eq!(story.reading(&card(0), 60).processes, Reading::Seen(0));
}

#[test]
fn c22_and_pitfall_18_work_of_processes_that_cannot_be_seen_still_counts_for_the_card() {
    let story = play(
        &stage(
            r#"
[[card]]
preset = "l40s"
curve.util = 100
curve.power_w = 300
[[process]]
pid = 645400
listed = false
card = 0
sm_pct = 100
"#,
        ),
        60,
    );
    assert_eq!(story.row(&card(0), 60).sm_active_pct, percent(100.0));
    assert!(story.tick(60).processes.is_empty());
}

#[test]
fn a_clock_that_is_set_leaves_rows_that_neither_overlap_nor_run_backwards() {
    for set_by_ms in [-7_300, 90_000, -3_600_000] {
        let stage = stage("[[card]]\npreset = \"h100\"\ncurve.power_w = 100\n");
        let set = std::cell::Cell::new(false);
        let story = play_with(&stage, 600, None, &|s, clock, _| {
            if s >= 200 && !set.replace(true) {
                clock.set_wall_by_ms(set_by_ms);
            }
        });
        let rows = story.rows_of(&card(0));
        assert!(rows.windows(2).all(|pair| pair[0].during.end() <= pair[1].during.start()), "{set_by_ms}");
        let told: Vec<_> = story.told(EventKind::ClockStep).into_iter().map(|(_, by)| by).collect();
        assert_eq!(told, [Some(set_by_ms)]);
    }
}

#[test]
fn c07_an_instance_whose_size_the_driver_does_not_tell_has_that_of_its_profile() {
    let story = play(&stage(&format!("{SEVEN}[[fault]]\ncall = \"nvmlDeviceGetAttributes_v2\"\nrc = 3\n")), 60);
    let seventh = cardhour_domain::CardShare::from_fraction(1, 7).unwrap();
    let slices: Vec<_> = story.tick(15).layout.iter().filter(|device| device.mig_profile.is_some()).collect();
    assert!(slices.len() == 7 && slices.iter().all(|slice| slice.share == seventh));
    assert_eq!(story.told(EventKind::Layout), []);
}

#[test]
fn c11_a_guest_without_rings_says_that_its_use_is_not_supported() {
    let story = play(&stage("[[card]]\npreset = \"vgpu\"\ncurve.util = 50\n"), 60);
    let row = story.row(&card(0), 60);
    assert_eq!((row.sm_active_pct, row.mem_active_pct), (missing(Gap::NotSupported), missing(Gap::NotSupported)));
    assert!(row.mem_used_bytes.seen().is_some());
}
