//! What reading costs: calls counted by the stand-in, at what others measured a call to cost on real drivers.

use super::stage::Stage;
use super::story::{play, stage};

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

fn check(scenario: &str) {
    let stage = stage(scenario);
    let seconds = 600;
    play(&stage, seconds);
    let [typical, pessimistic] = [true, false].map(|typical| cores(&stage, seconds as u64, typical));
    println!("{:.3} % of a core, {:.3} % at worst", typical * 100.0, pessimistic * 100.0);
    assert!(pessimistic < 0.01, "{typical} {pessimistic} {:?}", stage.all_calls());
    assert_eq!(stage.calls("nvmlDeviceGetPcieThroughput"), 0);
    // One list of compute processes a card in ten seconds at most, and none on instances.
    assert!(stage.calls("nvmlDeviceGetComputeRunningProcesses_v3") <= 8 * 60);
}

#[test]
fn eight_cards_of_seven_instances_cost_less_than_a_hundredth_of_a_core() {
    check(
        "[[card]]\npreset = \"h100\"\ncopies = 8\n[[card.layout]]\nslice = [{ profile = \"1g.10gb\", copies = 7, curve.sm = 50 }]\n",
    );
}

#[test]
fn eight_whole_cards_cost_less_than_a_hundredth_of_a_core() {
    check(
        "[[card]]\npreset = \"l40s\"\ncopies = 8\ncurve.util = 50\n[[process]]\npid = 7\ncard = 0\n[[process]]\npid = 8\ncard = 1\n",
    );
}
