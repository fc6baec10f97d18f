use super::*;
use crate::probe::{DeviceId, DeviceState, GpmState, MigPlace, Moment, RingEntry, RingRead};
use cardhour_domain::Interval;
use proptest::prelude::*;

const STEP_MS: i64 = 15_000;

/// A node whose clocks both begin at nothing, but for what `wall_ms` adds.
fn at(tick: i64, wall_ms: i64) -> Moment {
    Moment { monotonic_us: tick * STEP_MS * 1000, wall: Timestamp::from_unix_ms(tick * STEP_MS + wall_ms) }
}

fn device(name: &str, mig: Option<MigPlace>, at: Moment) -> DeviceReading {
    DeviceReading {
        driver_index: None,
        minor: None,
        id: DeviceId {
            card_uuid: "GPU-1".into(),
            device_uuid: name.into(),
            pci_bus_id: "00000000:3b:00.0".into(),
            mig,
        },
        at,
        is_cut: false,
        rows: Rows::Made,
        mig_profile: None,
        busy_ring: Vec::new(),
        memory_ring: Vec::new(),
        power_polls: Vec::new(),
        processes: Reading::Missing(Gap::CollectorDown),
        process_memory_bytes: Reading::Missing(Gap::CollectorDown),
        state: DeviceState::missing(Gap::NotSupported),
    }
}

fn readings(at: Moment, devices: Vec<DeviceReading>) -> TickReadings {
    let tick = Timestamp::from_unix_ms(at.wall.unix_ms().div_euclid(STEP_MS) * STEP_MS);
    TickReadings {
        at,
        tick,
        generation: 1,
        devices,
        processes: Vec::new(),
        listings: Vec::new(),
        vgpus: Vec::new(),
        events: Vec::new(),
        layout: Vec::new(),
        dead: Vec::new(),
    }
}

/// A card with a counter at `total_mj`, of at most 400 W.
fn card(at: Moment, total_mj: u64) -> DeviceReading {
    let mut card = device("GPU-1", None, at);
    card.state.energy_mj_total = Reading::Seen(total_mj);
    card.state.power_limit_mw = Reading::Seen(400_000);
    card
}

fn percent(whole: i32) -> Reading<Percent> {
    Reading::Seen(Percent::from_thousandths(whole * 1000).unwrap())
}

fn ring(at: Moment, from_us: i64, value: u32) -> RingRead {
    let stamps = (from_us / 200_000..=at.monotonic_us / 200_000).map(|i| (i * 200_000) as u64);
    let entries = stamps.map(|stamp_us| RingEntry { stamp_us, percent: value }).collect();
    RingRead { at, entries: Reading::Seen(entries), now_percent: Reading::Seen(value) }
}

/// Noted at 15 s with 1 MJ; the next life begins at 600 s, and its first tick can't read the counter. By hand: at 615 s it is 7 MJ, so 6 MJ were drawn since, less
/// than 400 W × 600 s = 240 MJ; they are told for the time before that life, once.
#[test]
fn energy_between_two_lives_is_told_with_the_first_tick_that_can_read_the_counter() {
    let mut sampler = Sampler::new("n1".into());
    let until = at(1, 0).wall;
    sampler.resume(vec![CounterMark { card_uuid: "GPU-1".into(), until, counted_at: until, total_mj: 1_000_000 }]);
    let mut silent = card(at(40, 0), 0);
    silent.state.energy_mj_total = Reading::Missing(Gap::DriverError);
    let mut between = |tick: i64, card: DeviceReading| step(&mut sampler, &readings(at(tick, 0), vec![card])).between;
    assert_eq!(between(40, silent), []);
    let told = between(41, card(at(41, 0), 7_000_000));
    let sum: i64 = told.iter().map(|row| row.energy_mj.seen().unwrap().0).sum();
    assert_eq!((sum, told[0].during.start(), told.last().unwrap().during.end()), (6_000_000, until, at(40, 0).wall));
    assert_eq!(between(42, card(at(42, 0), 8_000_000)), []);
}

#[test]
fn a_device_has_rows_from_its_second_tick_on_and_they_carry_what_its_counters_grew_by() {
    let mut sampler = Sampler::new("n1".into());
    assert_eq!(step(&mut sampler, &readings(at(1, 0), vec![card(at(1, 0), 1_000_000)])).samples, []);
    let rows = step(&mut sampler, &readings(at(2, 0), vec![card(at(2, 0), 4_000_000)])).samples;
    let [row] = &rows[..] else { panic!("one card, one row") };
    assert_eq!(row.during.length_ms(), STEP_MS);
    assert_eq!(row.energy_mj, Reading::Seen(Millijoules(3_000_000)));
    // 3 kJ over 15 s.
    assert_eq!(row.power_mw, Reading::Seen(Milliwatts(200_000)));
    assert_eq!(row.sm_active_pct, Reading::Missing(Gap::CollectorDown));
    assert_eq!(row.mem_used_bytes, Reading::Missing(Gap::NotSupported));
}

#[test]
fn a_card_that_is_cut_has_the_energy_and_its_slices_have_the_work() {
    let mut sampler = Sampler::new("n1".into());
    let place = MigPlace { gpu_instance: 7, compute_instance: 0, layout: 1 };
    let tick = |n: i64| {
        let mut whole = card(at(n, 0), n as u64 * 1_000_000);
        whole.is_cut = true;
        whole.state.temperature_c = Reading::Seen(40);
        whole.state.memory_used_bytes = Reading::Seen(9);
        let mut slice = device("MIG-1", Some(place), at(n, 0));
        slice.state.gpm = GpmState { sm_active_pct: percent(60), ..GpmState::missing(Gap::NotSupported) };
        slice.state.memory_used_bytes = Reading::Seen(5);
        readings(at(n, 0), vec![whole, slice])
    };
    step(&mut sampler, &tick(1));
    let rows = step(&mut sampler, &tick(2)).samples;
    let none = Reading::Missing(Gap::NotSupported);
    assert_eq!((rows[0].energy_mj, rows[0].temperature_c), (Reading::Seen(Millijoules(1_000_000)), Reading::Seen(40)));
    assert_eq!((rows[0].sm_active_pct, rows[0].mem_used_bytes), (Reading::Missing(Gap::NotSupported), none));
    assert_eq!((rows[1].sm_active_pct, rows[1].use_basis), (percent(60), UseBasis::Gpm));
    assert_eq!((rows[1].energy_mj, rows[1].mem_used_bytes), (Reading::Missing(Gap::NotSupported), Reading::Seen(5)));
}

#[test]
fn a_slice_under_an_old_name_starts_anew_when_the_card_was_cut_anew() {
    let mut sampler = Sampler::new("n1".into());
    let slice = |n: i64, layout, sent| {
        let place = MigPlace { gpu_instance: 7, compute_instance: 0, layout };
        let mut slice = device("MIG-1", Some(place), at(n, 0));
        slice.state.pcie_tx_bytes_total = Reading::Seen(sent);
        slice.state.pcie_rx_bytes_total = Reading::Seen(0);
        readings(at(n, 0), vec![slice])
    };
    step(&mut sampler, &slice(1, 1, 1_000));
    assert_eq!(step(&mut sampler, &slice(2, 1, 1_100)).samples[0].pcie_bytes, Reading::Seen(100));
    assert_eq!(step(&mut sampler, &slice(3, 2, 9_999)).samples[0].pcie_bytes, Reading::Missing(Gap::CollectorDown));
}

#[test]
fn a_row_that_was_spared_is_in_the_next_one() {
    let mut sampler = Sampler::new("n1".into());
    let with_ring = |n: i64, rows, value| {
        let mut card = card(at(n, 0), n as u64 * 1_500_000);
        card.rows = rows;
        card.busy_ring = vec![ring(at(n, 0), (n - 1) * STEP_MS * 1000, value)];
        readings(at(n, 0), vec![card])
    };
    step(&mut sampler, &with_ring(1, Rows::Made, 10));
    assert_eq!(step(&mut sampler, &with_ring(2, Rows::Deferred, 20)).samples, []);
    let rows = step(&mut sampler, &with_ring(3, Rows::Made, 40)).samples;
    assert_eq!(rows[0].during.length_ms(), 2 * STEP_MS);
    assert_eq!(
        (rows[0].energy_mj, rows[0].power_mw),
        (Reading::Seen(Millijoules(3_000_000)), Reading::Seen(Milliwatts(100_000)))
    );
    // Half of the time 20 %, half 40 %.
    assert_eq!((rows[0].sm_active_pct, rows[0].use_basis), (percent(30), UseBasis::DutyCycle));
}

#[test]
fn a_clock_that_is_set_is_told_and_one_that_is_slewed_is_not() {
    let mut sampler = Sampler::new("n1".into());
    let mut events = |n, wall_ms| {
        let told = step(&mut sampler, &readings(at(n, wall_ms), vec![])).events;
        told.iter().map(|event| (event.kind, event.number)).collect::<Vec<_>>()
    };
    assert_eq!(events(1, 0), []);
    assert_eq!(events(2, 7), []);
    assert_eq!(events(3, -3_600_000), [(EventKind::ClockStep, Some(-3_600_007))]);
    assert_eq!(events(4, -3_600_000), []);
}

#[test]
fn a_counter_that_begins_again_is_told() {
    let mut sampler = Sampler::new("n1".into());
    step(&mut sampler, &readings(at(1, 0), vec![card(at(1, 0), 50_000_000)]));
    let told = step(&mut sampler, &readings(at(2, 0), vec![card(at(2, 0), 1_000_000)]));
    assert_eq!(told.samples[0].energy_mj, Reading::Seen(Millijoules(1_000_000)));
    let event = &told.events[0];
    assert_eq!(
        (event.kind, event.number, event.card_uuid.as_deref()),
        (EventKind::CounterEpoch, Some(-49_000_000), Some("GPU-1"))
    );
}

proptest! {
    /// Whatever is done to the node's clock, and whichever ticks are late.
    #[test]
    fn rows_of_a_device_never_overlap_and_their_energies_are_the_counters(
        ticks in prop::collection::vec((prop_oneof![9 => Just(0i64), 1 => -100_000i64..100_000], 0i64..3_000, 0u64..6_000_000), 2..60)
    ) {
        let mut sampler = Sampler::new("n1".into());
        let (mut wall_ms, mut total, mut rows) = (1_000_000_000, 0u64, Vec::<(Interval, i64)>::new());
        let mut last_us = 0;
        for (i, (set_by_ms, late_ms, grew)) in ticks.iter().enumerate() {
            wall_ms += set_by_ms;
            total += grew;
            last_us = (i as i64 * STEP_MS + late_ms) * 1000;
            let at = Moment { monotonic_us: last_us, wall: Timestamp::from_unix_ms(wall_ms + last_us / 1000) };
            let told = step(&mut sampler, &readings(at, vec![card(at, 1_000_000 + total)]));
            rows.extend(told.samples.iter().map(|row| (row.during, row.energy_mj.seen().map_or(0, |mj| mj.0))));
        }
        prop_assert!(rows.windows(2).all(|pair| pair[0].0.end() <= pair[1].0.start()));
        // One more reading, when the clock is surely past all that was told, books what is left.
        let far = Moment { monotonic_us: last_us + 100_000_000_000, wall: Timestamp::from_unix_ms(wall_ms + 100_000_000_000) };
        let told = step(&mut sampler, &readings(far, vec![card(far, 1_000_000 + total + 1)]));
        let booked = rows.iter().map(|(_, mj)| mj).sum::<i64>() + told.samples[0].energy_mj.seen().unwrap().0;
        prop_assert_eq!(booked as u64, total + 1 - ticks[0].2);
    }
}
