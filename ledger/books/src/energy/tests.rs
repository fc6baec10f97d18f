use super::*;
use crate::telemetry::Readings;
use crate::telemetry::drawn::{MINUTE, blank, holdings, minutes, telemetry};
use cardhour_domain::UseBasis;
use proptest::prelude::*;

fn lines(energy: &Energy) -> String {
    let minute = |at: Timestamp| at.unix_ms() / MINUTE;
    let held =
        energy.held.iter().map(|row| format!("{} at {}: {} mJ", row.holding, minute(row.bucket_start), row.energy.0));
    let free =
        energy.free.iter().map(|row| format!("{} at {}: {} mJ", row.card_uuid, minute(row.bucket_start), row.energy.0));
    held.chain(free).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(seen: &str, held: &str, expected: &str) {
    let energy = energy(&holdings(held), &telemetry(seen), &[minutes(0, 1440)]);
    assert_eq!(lines(&energy), expected);
}

/// By hand: 10 minutes of 600 mJ; a holds half of the card for all of it, b a quarter for the first 4.
/// a 3000, b 4 × 600 / 4 = 600, the rest nobody.
#[test]
fn energy_goes_by_share_and_time_and_the_rest_is_free() {
    check("g0 0,mj=600x10", "a g0 1/2 0..10\n b g0 1/4 0..4", "0 at 0: 3000 mJ\n1 at 0: 600 mJ\ng0 at 0: 2400 mJ");
}

/// What was drawn while a held is a's, however much the card drew for b later.
#[test]
fn energy_goes_to_who_held_when_it_was_drawn() {
    check(
        "g0 0,mj=100x5 99,mj=900x5",
        "a g0 1/1 0..5\n b g0 1/1 5..10",
        "0 at 0: 500 mJ\n1 at 0: 4500 mJ\ng0 at 0: 0 mJ",
    );
}

/// By hand: 100 mJ over three thirds of a card are 33 each and one over: equal remainders, the smallest key.
#[test]
fn what_rounding_leaves_over_goes_by_key() {
    check(
        "g0 0,mj=100x1",
        "c g0 1/3 0..1\n a g0 1/3 0..1\n b g0 1/3 0..1",
        "0 at 0: 33 mJ\n1 at 0: 34 mJ\n2 at 0: 33 mJ\ng0 at 0: 0 mJ",
    );
}

/// A tick of 61 s and 1001 mJ from 14:30 to 15:31, by hand: 30 s before the bucket's edge are 1001 × 30/61 = 492.3, down to 492; 509 after.
#[test]
fn a_tick_across_an_edge_is_cut_in_proportion() {
    let mut seen = telemetry("");
    let at = |s: i64| Timestamp::from_unix_s(s);
    let tick = DeviceTick {
        energy: Some(Millijoules(1001)),
        ..crate::telemetry::drawn::blank(Interval::new(at(14 * 60 + 30), at(15 * 60 + 31)).unwrap())
    };
    assert_eq!(tick.use_basis, UseBasis::Gpm);
    seen.devices.insert(("g0".into(), "g0".into()), vec![tick]);
    let energy = energy(&holdings("a g0 1/1 0..30"), &seen, &[minutes(0, 30)]);
    assert_eq!(lines(&energy), "0 at 0: 492 mJ\n0 at 15: 509 mJ\ng0 at 0: 0 mJ\ng0 at 15: 0 mJ");
}

/// C16: a card without a counter: its power, integrated, is an estimate; one estimated minute makes the bucket one. No reading is no row.
#[test]
fn c16_energy_from_power_is_an_estimate_and_none_is_no_zero() {
    let seen = telemetry("g0 0,mj=10x15 0,mj=10x14 0,mj=10,estimatedx1 0x15");
    let energy = energy(&holdings("a g0 1/1 0..60"), &seen, &[minutes(0, 60)]);
    let bases: Vec<EnergyBasis> = energy.held.iter().map(|row| row.basis).collect();
    assert_eq!(bases, [EnergyBasis::Counter, EnergyBasis::Power]);
    check("g0 50x30", "a g0 1/1 0..30", "");
}

/// Two quarter hours in which no collector ran, of 540 J and 270 J by the counter: a holder over the first and a third of the second has 540 + 90 J.
#[test]
fn energy_of_a_time_without_a_collector_is_its_holders() {
    let mut seen = Readings::default();
    let ticks = seen.device(&"g0".into(), &"g0".into());
    for (from, mj) in [(0, 540_000), (15, 270_000)] {
        ticks.push(DeviceTick { energy: Some(Millijoules(mj)), ..blank(minutes(from, from + 15)) });
    }
    let energy = energy(&holdings("a g0 1/1 0..20"), &seen.settle().0, &[minutes(0, 60)]);
    assert_eq!(lines(&energy), "0 at 0: 540000 mJ\n0 at 15: 90000 mJ\ng0 at 0: 0 mJ\ng0 at 15: 180000 mJ");
}

/// Slices have no sensor: their holders share the card's, and what no slice holds is free.
#[test]
fn holders_of_slices_share_the_energy_of_the_card() {
    check(
        "g0 -,mj=700x10\n g0/s1 50x10",
        "a g0/s1 1/7 0..10\n b g0/s2 2/7 0..10",
        "0 at 0: 1000 mJ\n1 at 0: 2000 mJ\ng0 at 0: 4000 mJ",
    );
}

fn any_held() -> impl Strategy<Value = String> {
    let one = (0i64..100, 1i64..100, 1u32..=5);
    prop::collection::vec(one, 0..=3).prop_map(|all| {
        let line = |(i, (from, length, of)): (usize, &(i64, i64, u32))| {
            format!("{i} g0 1/{} {from}..{}\n", of * 3, from + length)
        };
        all.iter().enumerate().map(line).collect()
    })
}

proptest! {
    /// LED-10.
    #[test]
    fn parts_add_up_to_what_the_card_drew(drawn in prop::collection::vec((0i64..100_000, 1i64..30), 1..8), held in any_held()) {
        let text: String = drawn.iter().map(|(mj, times)| format!("0,mj={mj}x{times} ")).collect();
        let energy = energy(&holdings(&held), &telemetry(&format!("g0 {text}")), &[minutes(0, 1440)]);
        let parts = energy.held.iter().map(|row| row.energy.0).chain(energy.free.iter().map(|row| row.energy.0));
        prop_assert_eq!(parts.sum::<i64>(), drawn.iter().map(|(mj, times)| mj * times).sum::<i64>());
        prop_assert!(energy.held.iter().all(|row| row.energy.0 >= 0));
    }

    /// LED-7.
    #[test]
    fn cutting_a_holding_changes_no_energy_of_its_attempt(drawn in prop::collection::vec((0i64..100_000, 1i64..30), 1..8), held in any_held(), cut in 1i64..6_000_000) {
        let text: String = drawn.iter().map(|(mj, times)| format!("0,mj={mj}x{times} ")).collect();
        let (seen, whole) = (telemetry(&format!("g0 {text}")), holdings(&held));
        let at = Timestamp::from_unix_ms(cut);
        let pieces: Vec<Holding> = whole.iter().flat_map(|holding| {
            let sides = [Interval::new(holding.during.start(), holding.during.end().min(at)), Interval::new(holding.during.start().max(at), holding.during.end())];
            sides.into_iter().flatten().map(|during| Holding { during, ..holding.clone() }).collect::<Vec<_>>()
        }).collect();
        let of_attempts = |holdings: &[Holding]| {
            let mut sums: std::collections::BTreeMap<AttemptKey, i64> = std::collections::BTreeMap::new();
            for row in energy(holdings, &seen, &[minutes(0, 1440)]).held {
                *sums.entry(holdings[row.holding as usize].claim.key.clone()).or_default() += row.energy.0;
            }
            sums
        };
        prop_assert_eq!(of_attempts(&pieces), of_attempts(&whole));
    }
}
