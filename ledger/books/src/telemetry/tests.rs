use super::drawn::{blank, device, minutes, readings};
use super::*;
use proptest::prelude::*;

fn settled(ticks: Vec<DeviceTick>) -> (Vec<DeviceTick>, Vec<Shadowed>) {
    let mut readings = Readings::default();
    readings.device(&"g0".into(), &"g0".into()).extend(ticks);
    let (mut telemetry, shadowed) = readings.settle();
    (telemetry.devices.remove(&("g0".into(), "g0".into())).unwrap_or_default(), shadowed)
}

fn ms(start: i64, end: i64) -> Interval {
    Interval::new(Timestamp::from_unix_ms(start), Timestamp::from_unix_ms(end)).unwrap()
}

fn from(source: SampleSource, ticks: Vec<DeviceTick>) -> Vec<DeviceTick> {
    ticks.into_iter().map(|tick| DeviceTick { source, ..tick }).collect()
}

/// Ticks of 15 s whose ends lie 20 ms off: a gap and an overlap under a twentieth of 15 s = 750 ms.
#[test]
fn ticks_that_all_but_meet_meet_where_the_later_begins() {
    let ticks = [ms(0, 15_000), ms(15_020, 30_000), ms(29_980, 45_000)].map(blank).to_vec();
    let (ticks, shadowed) = settled(ticks);
    assert_eq!(
        ticks.iter().map(|t| t.during).collect::<Vec<_>>(),
        [ms(0, 15_020), ms(15_020, 29_980), ms(29_980, 45_000)]
    );
    assert_eq!(shadowed, []);
}

/// A twentieth of 15 s is 750 ms: that much is a hole, one less is not.
#[test]
fn a_hole_of_a_twentieth_of_a_tick_stays_a_hole() {
    let ends = |gap: i64| settled(vec![blank(ms(0, 15_000)), blank(ms(15_000 + gap, 30_000 + gap))]).0[0].during.end();
    assert_eq!(ends(750), Timestamp::from_unix_ms(15_000));
    assert_eq!(ends(749), Timestamp::from_unix_ms(15_749));
}

/// The collector read minutes 0 to 10 and 15 to 20, DCGM all 25: DCGM counts in 10 to 15 and from 20 on.
#[test]
fn a_worse_source_counts_only_where_a_better_one_is_silent() {
    let mut all = device("50x10 ?x5 50x5");
    all.extend(from(SampleSource::Dcgm, device("40x25")));
    let (ticks, shadowed) = settled(all);
    let dcgm: Vec<Interval> = ticks.iter().filter(|t| t.source == SampleSource::Dcgm).map(|t| t.during).collect();
    assert_eq!(Interval::union(dcgm), [minutes(10, 15), minutes(20, 25)]);
    assert_eq!(ticks.len(), 25);
    let hidden =
        |during| Shadowed { card_uuid: "g0".into(), device_uuid: "g0".into(), source: SampleSource::Dcgm, during };
    assert_eq!(shadowed, [hidden(minutes(0, 10)), hidden(minutes(15, 20))]);
}

/// Of minutes 10 to 20 the collector, which didn't run, knows what the counter grew by; DCGM read 12 to 15. By hand: of 10,000 mJ seven minutes are left.
#[test]
fn energy_of_a_time_without_a_collector_fills_what_nobody_read() {
    let mut all = device("50x10 ?x10 50x5");
    all.push(DeviceTick { energy: Some(Millijoules(10_000)), ..blank(minutes(10, 20)) });
    all.extend(from(SampleSource::Dcgm, device("?x12 40x3")));
    let (ticks, _) = settled(all);
    let told = |wanted: fn(&DeviceTick) -> bool| {
        Interval::union(ticks.iter().filter(|tick| wanted(tick)).map(|tick| tick.during).collect::<Vec<_>>())
    };
    assert_eq!(told(|tick| tick.source == SampleSource::Dcgm), [minutes(12, 15)]);
    assert_eq!(told(|tick| tick.energy.is_some()), [minutes(10, 12), minutes(15, 20)]);
    assert_eq!(ticks.iter().filter_map(|tick| tick.energy).map(|e| e.0).sum::<i64>(), 7_000);
}

/// M15: two exporters that tell the same thing, and one tick that was sent a minute longer.
#[test]
fn m15_the_same_reading_from_two_places_counts_once() {
    let mut twice = device("50,mj=600x3");
    twice.extend(device("50,mj=600x3"));
    let (ticks, shadowed) = settled(twice);
    assert_eq!(ticks.iter().filter_map(|t| t.energy).map(|e| e.0).sum::<i64>(), 1800);
    assert_eq!(shadowed, []);
}

/// By hand: 1000 mJ over a minute of which the last third is taken by a better source: 1000 × 2/3 rounded down.
#[test]
fn of_a_tick_that_is_cut_the_energy_is_cut_in_proportion() {
    let long = DeviceTick { energy: Some(Millijoules(1000)), source: SampleSource::Dcgm, ..blank(ms(0, 60_000)) };
    let (ticks, _) = settled(vec![long, blank(ms(40_000, 100_000))]);
    assert_eq!(ticks[0].during, ms(0, 40_000));
    assert_eq!(ticks[0].energy, Some(Millijoules(666)));
}

/// Two readings of one source and the same time: the one that tells use, else the longer.
#[test]
fn of_one_source_what_tells_use_counts_first_then_the_longer() {
    let busy = DeviceTick { sm_active: Some(Percent::WHOLE), ..blank(ms(20_000, 40_000)) };
    let (ticks, _) = settled(vec![blank(ms(0, 60_000)), busy.clone()]);
    let told: Vec<_> = ticks.iter().map(|t| (t.during, t.sm_active.is_some())).collect();
    assert_eq!(told, [(ms(0, 20_000), false), (ms(20_000, 40_000), true), (ms(40_000, 60_000), false)]);
    let longer = DeviceTick { sm_active: Percent::from_thousandths(0), ..blank(ms(0, 60_000)) };
    let (ticks, _) = settled(vec![longer.clone(), busy]);
    assert_eq!(ticks, [longer]);
}

/// C04: after an XID one source says 0 % for ever while another says 100 %.
#[test]
fn c04_two_sources_that_contradict_each_other_make_a_tick_suspect() {
    let suspects = |ours: &str, theirs: &str| {
        let mut all = device(ours);
        all.extend(from(SampleSource::NvidiaSmi, device(theirs)));
        settled(all).0.iter().filter(|t| t.suspect).count()
    };
    assert_eq!(suspects("0x10", "100%x10"), 10);
    assert_eq!(suspects("1.9x10", "4.1%x10"), 10);
    assert_eq!(suspects("0x10", "3%x10"), 0);
    // Ours is busy, and so not idle, whatever the other says.
    assert_eq!(suspects("60x10", "0%x10"), 0);
}

/// A driver that answers 0 % for ever (rezolus#1105). By hand: idle level 60 W, limit 700 W; half of the range is at 60 + 320 = 380 W.
#[test]
fn a_zero_at_more_than_half_the_power_is_no_reading() {
    let telemetry =
        readings("g0 limit 700\n g0 0,power=60x1 0,power=380x1 0,power=381x1 0,mem=30,power=600x1").settle().0;
    let ticks = telemetry.device(&"g0".into(), &"g0".into());
    assert_eq!(ticks.iter().map(|t| t.sm_active.is_none()).collect::<Vec<_>>(), [false, false, true, false]);
    assert_eq!(ticks.iter().map(|t| t.suspect).collect::<Vec<_>>(), [false, false, true, false]);
}

/// A card that was never seen below 400 of 700 W isn't at rest there: its idle level is at most half of the limit.
#[test]
fn the_idle_level_is_no_more_than_half_the_limit() {
    let range = |drawing: &str| PowerRange::of(&device(drawing), 700_000).unwrap().idle_mw;
    assert_eq!((range("0,power=400x5"), range("0,power=90x1 0,power=400x5")), (350_000, 90_000));
    assert_eq!(PowerRange::of(&device("0x5"), 700_000), None);
    assert_eq!(PowerRange::of(&device("0,power=1x1"), 0), None);
}

/// What is read of a sample, and that an implausible use makes it suspect.
#[test]
fn a_sample_keeps_its_gaps() {
    let gap = Gap::NotSupported;
    let sample = Sample {
        during: minutes(0, 1),
        card_uuid: "g0".into(),
        device_uuid: "g0".into(),
        node: "n1".into(),
        attempt_key: None,
        sm_active_pct: Reading::Missing(Gap::Implausible),
        use_basis: UseBasis::DutyCycle,
        mem_active_pct: Reading::Missing(gap),
        media_active_pct: Reading::Missing(gap),
        mem_used_bytes: Reading::Seen(1),
        nvlink_bytes: Reading::Missing(gap),
        pcie_bytes: Reading::Seen(7),
        power_mw: Reading::Missing(gap),
        energy_mj: Reading::Missing(gap),
        energy_basis: EnergyBasis::Counter,
        temperature_c: Reading::Missing(gap),
        source: SampleSource::Collector,
    };
    let tick = DeviceTick::of(&sample);
    assert!(tick.suspect && tick.sm_active.is_none() && tick.energy.is_none());
    assert_eq!(tick.link_bytes, Some(7));
    assert!(!DeviceTick::of(&Sample { sm_active_pct: Reading::Missing(gap), ..sample }).suspect);
}

fn any_tick() -> impl Strategy<Value = DeviceTick> {
    let source = prop::sample::select(vec![SampleSource::Collector, SampleSource::Dcgm, SampleSource::NvidiaSmi]);
    (0i64..40, 1i64..8, -30i64..30, source, prop::option::of(0i32..=100_000), 0i64..1000).prop_map(
        |(start, length, off, source, sm, energy)| DeviceTick {
            source,
            sm_active: sm.and_then(Percent::from_thousandths),
            energy: Some(Millijoules(energy)),
            ..blank(ms(start * 1000 + off, (start + length) * 1000))
        },
    )
}

proptest! {
    /// LED-4.
    #[test]
    fn order_and_repeats_of_readings_do_not_matter(ticks in prop::collection::vec(any_tick(), 0..30), turn in 0usize..30, again in 0usize..30) {
        let expected = settled(ticks.clone());
        let mut shuffled = ticks.clone();
        shuffled.reverse();
        shuffled.rotate_left(turn % ticks.len().max(1));
        shuffled.extend(ticks.iter().take(again).cloned());
        prop_assert_eq!(settled(shuffled), expected);
    }

    #[test]
    fn a_timeline_is_in_order_and_says_nothing_of_what_nobody_read(ticks in prop::collection::vec(any_tick(), 0..30)) {
        let (out, _) = settled(ticks.clone());
        prop_assert!(out.windows(2).all(|pair| pair[0].during.end() <= pair[1].during.start()));
        // Half a second off the edges of what was read, where no jitter reaches, there is a tick if and only if somebody read.
        let was_read = |at: Timestamp| ticks.iter().any(|t| t.during.contains(at));
        for at in (0..60).map(|s| Timestamp::from_unix_ms(s * 1000 + 500)) {
            prop_assert_eq!(out.iter().filter(|t| t.during.contains(at)).count(), usize::from(was_read(at)));
        }
    }
}
