//! What reading costs: calls counted by the stand-in, at what others measured a call to cost on real drivers.

use super::stage::Stage;
use super::story::{card, percent, play, play_busily, stage};
use std::time::Duration;

/// Microseconds a call. Typical values of the notes on NVML: a list of processes 1 ms, a sample of the monitor or a ring 100 µs or 500 µs, any other
/// call 15 µs; the pessimistic ones are 5 ms, 300 µs, 500 µs, 100 µs.
fn cost_us(call: &str, typical: bool) -> u64 {
    match call {
        _ if call.contains("RunningProcesses") => [5_000, 1_000][usize::from(typical)],
        "nvmlGpmSampleGet" | "nvmlGpmMigSampleGet" => [300, 100][usize::from(typical)],
        "nvmlDeviceGetSamples" | "nvmlDeviceGetProcessUtilization" => 500,
        _ => [100, 15][usize::from(typical)],
    }
}

fn cores(stage: &Stage, seconds: u64, typical: bool) -> f64 {
    let us: u64 = stage.all_calls().iter().map(|(call, count)| cost_us(call, typical) * count).sum();
    us as f64 / (seconds as f64 * 1e6)
}

/// `lists`: how many lists of processes, of any kind and by any version, there may be in ten minutes. By hand: a tick each 15 s is 41 with both ends;
/// at each the compute list of a card, and the list of MPS where that has anybody; at each fourth (11), and the first after it, what is empty.
fn check(scenario: &str, lists: u64) {
    let stage = stage(scenario);
    let seconds = 600;
    play(&stage, seconds);
    let [typical, pessimistic] = [true, false].map(|typical| cores(&stage, seconds as u64, typical));
    println!("{:.3} % of a core, {:.3} % at worst", typical * 100.0, pessimistic * 100.0);
    assert!(pessimistic < 0.01, "{typical} {pessimistic} {:?}", stage.all_calls());
    assert_eq!(stage.calls("nvmlDeviceGetPcieThroughput"), 0);
    let is_list = |call: &str| call.contains("RunningProcesses");
    let listed: u64 = stage.all_calls().iter().filter(|(call, _)| is_list(call)).map(|(_, count)| count).sum();
    assert!((1..=lists).contains(&listed), "{listed} of {lists}, {:?}", stage.all_calls());
}

#[test]
fn pitfall_40_eight_cards_of_seven_instances_cost_less_than_a_hundredth_of_a_core() {
    check(
        "[[card]]\npreset = \"h100\"\ncopies = 8\n[[card.layout]]\nslice = [{ profile = \"1g.10gb\", copies = 7, curve.sm = 50 }]\n",
        8 * (41 + 2 * 12),
    );
}

/// As both shipped deployments have it, without CAP_SYS_ADMIN. By hand: three lists of each card are refused once; after that seven instances are asked each
/// 90 s of 600, 7 times, and for what is empty at the first of these and each fourth.
#[test]
fn pitfall_40_instances_asked_one_by_one_cost_less_than_a_hundredth_of_a_core() {
    check(
        "[[card]]\npreset = \"h100\"\ncopies = 8\n[[card.layout]]\nslice = [{ profile = \"1g.10gb\", copies = 7, curve.sm = 50 }]\n\
         [[fault]]\nkind = \"parent_list_refused\"\n",
        8 * (3 + 7 * (7 + 3)),
    );
}

#[test]
fn eight_whole_cards_cost_less_than_a_hundredth_of_a_core() {
    check(
        "[[card]]\npreset = \"l40s\"\ncopies = 8\ncurve.util = 50\n[[process]]\npid = 7\ncard = 0\n[[process]]\npid = 8\ncard = 1\n",
        8 * (41 + 2 * 12),
    );
}

/// So many processes on each of eight cards, of a kind.
fn processes(kind: &str, on_each: u32) -> String {
    let process = |card, i| {
        format!(
            "[[process]]\npid = {}\ncard = {card}\nkind = \"{kind}\"\nmemory_mib = 900\nsm_pct = 9\n",
            100 * (card + 1) + i
        )
    };
    (0..8u32).flat_map(|card| (0..on_each).map(move |i| process(card, i))).collect()
}

const EIGHT_H100: &str = "[[card]]\npreset = \"h100\"\ncopies = 8\ncurve.util = 80\ncurve.sm = 50\n";

#[test]
fn eight_whole_h100_at_work_cost_less_than_a_hundredth_of_a_core() {
    check(&format!("{EIGHT_H100}{}", processes("compute", 4)), 8 * (41 + 2 * 12));
}

/// A client of MPS is on a list of its own, which is asked for each time then.
#[test]
fn eight_cards_whose_processes_share_them_by_mps_cost_less_than_a_hundredth_of_a_core() {
    check(&format!("{EIGHT_H100}{}", processes("mps", 6)), 8 * (41 + 41 + 12));
}

#[test]
fn a_probe_over_its_budget_spares_the_costly_calls_and_loses_nothing() {
    let scenario = "[[card]]\npreset = \"h100\"\ncurve.power_w = 300\ncurve.util = 50\ncurve.sm = { points = [[0, 20], [15, 60]], repeat_s = 30 }\n";
    let calls = |cpu_per_second| {
        let stage = stage(scenario);
        let story = play_busily(&stage, 915, cpu_per_second);
        let told_ms: i64 = story.rows.iter().map(|row| row.during.length_ms()).sum();
        assert!(told_ms >= 885_000);
        assert_eq!(story.energy_mj(&card(0)), told_ms * 300);
        let calls = ["nvmlGpmSampleGet", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetSamples"];
        (story, calls.map(|call| stage.calls(call)))
    };
    let (_, full) = calls(Duration::from_millis(6));
    let (story, spared) = calls(Duration::from_millis(8));
    assert!(spared[0] * 10 < full[0] * 6 && spared[1] * 10 < full[1] * 6, "{spared:?} {full:?}");
    assert_eq!(spared[2], full[2], "the ring is never spared");
    // Once spared, rows are of two ticks, with the mean over both.
    let last = story.rows.last().unwrap();
    assert_eq!((last.during.length_ms(), last.sm_active_pct), (30_000, percent(40.0)));
    assert!(story.rows.windows(2).all(|pair| pair[0].during.end() == pair[1].during.start()));
}
