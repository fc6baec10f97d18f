use super::*;
use cardhour_domain::UseBasis;

fn ms(ms: i128) -> CardTime {
    CardTime::from_part_ms(ms)
}

fn empty() -> Cell {
    Cell {
        attempt: Some(0),
        state: CardState::Held,
        cluster: "c".into(),
        pool: None,
        node: None,
        model: None,
        mig_profile: None,
        share: None,
        reservation: None,
        set_aside: None,
        slot: 0,
        card_time: CardTime::ZERO,
        billed_time: CardTime::ZERO,
        unseen: CardTime::ZERO,
        unproven: CardTime::ZERO,
        used: None,
    }
}

#[test]
fn rows_of_records_alone_leave_a_cell_without_any_use() {
    let mut cell = empty();
    cell.add(&UsageFigures { card_time: ms(9), billed_time: ms(9), unseen: ms(9), ..UsageFigures::default() });
    assert_eq!((cell.card_time, cell.unseen, cell.used), (ms(9), ms(9), None));
}

/// By hand: 900 held, 600 of them billed, 450 idle: 300 of the idle time is billed; of a row billed in full all its idle time is.
#[test]
fn the_idle_part_of_a_row_is_billed_as_the_row_is() {
    let mut cell = empty();
    let row = UsageFigures {
        card_time: ms(900),
        billed_time: ms(600),
        idle: ms(450),
        effective: ms(450),
        ..UsageFigures::default()
    };
    cell.add(&row);
    assert_eq!(cell.used.as_ref().unwrap().billed_idle, ms(300));
    cell.add(&UsageFigures { billed_time: ms(900), ..row });
    assert_eq!(cell.used.as_ref().unwrap().billed_idle, ms(750));
    cell.add(&UsageFigures { billed_time: ms(0), ..row });
    let used = cell.used.unwrap();
    assert_eq!((used.billed_idle, used.idle), (ms(750), ms(1350)));
}

/// A cluster of a million cards over a quarter hour, idle and billed but for a millisecond: the product is beyond 128 bits.
#[test]
fn the_largest_row_there_can_be_is_cut_without_overflow() {
    let held = i128::from(CardShare::PARTS_PER_CARD) * 1_000_000 * 900_000;
    assert_eq!(billed_part(ms(held), ms(held - 1), ms(held)), ms(held - 1));
}

/// What `verify` has to be able to read, so that it can name it.
#[test]
fn a_damaged_row_is_added_up_and_not_divided_by_zero() {
    for (idle, billed, held) in [(5, 0, 0), (5, 3, 0), (-1, 1, 2), (5, 1, 4), (1, 5, 4), (1, -1, 4)] {
        assert_eq!(billed_part(ms(idle), ms(billed), ms(held)), ms(0), "{idle} {billed} {held}");
    }
}

#[test]
fn energy_is_absent_until_some_is_measured_and_then_a_sum_of_what_was() {
    let mut cell = empty();
    cell.add(&UsageFigures { card_time: ms(1), effective: ms(1), ..UsageFigures::default() });
    assert_eq!(cell.used.as_ref().unwrap().energy_mj, None);
    cell.add(&UsageFigures { energy_mj: Some(0), ..UsageFigures::default() });
    assert_eq!(cell.used.as_ref().unwrap().energy_mj, Some(0), "a zero that was measured is a zero");
    cell.add(&UsageFigures { energy_mj: Some(i64::MAX), ..UsageFigures::default() });
    cell.add(&UsageFigures { energy_mj: Some(1), ..UsageFigures::default() });
    assert_eq!(cell.used.unwrap().energy_mj, Some(i128::from(i64::MAX) + 1));
}

/// The time that energy is of: all of a row that has any, also where the use of a share of the card can't be told; nothing of a row without energy.
#[test]
fn energy_is_of_the_time_that_was_measured() {
    let row = UsageFigures { card_time: ms(900), effective: ms(400), idle: ms(200), ..UsageFigures::default() };
    let measured = |state, energy_mj| {
        let mut cell = Cell { state, ..empty() };
        cell.add(&UsageFigures { energy_mj, ..row });
        cell.add(&row);
        cell.used.unwrap().measured
    };
    assert_eq!(measured(CardState::Held, Some(5)), ms(900));
    assert_eq!(measured(CardState::Held, None), ms(0));
    let mut shared = Cell { state: CardState::Held, ..empty() };
    shared.add(&UsageFigures { card_time: ms(900), unseen: ms(900), energy_mj: Some(5), ..UsageFigures::default() });
    assert_eq!(shared.used.unwrap().measured, ms(900));
    let mut free = Cell { state: CardState::Free, attempt: None, ..empty() };
    free.add(&UsageFigures { card_time: ms(900), energy_mj: Some(5), ..UsageFigures::default() });
    free.add(&UsageFigures { card_time: ms(100), ..UsageFigures::default() });
    assert_eq!(free.used.unwrap().measured, ms(900));
}

#[test]
fn what_told_of_the_use_is_named_and_two_bases_are_mixed() {
    let (gpm, duty) = (SeenBy::One(UseBasis::Gpm), SeenBy::One(UseBasis::DutyCycle));
    let basis = |of: &[SeenBy]| {
        let mut used = Used::default();
        of.iter().for_each(|basis| *used.seen_by(*basis) += ms(1));
        used.basis()
    };
    assert_eq!(basis(&[]), None);
    assert_eq!(basis(&[gpm, gpm]), Some(gpm));
    assert_eq!(basis(&[duty]), Some(duty));
    assert_eq!(basis(&[gpm, duty]), Some(SeenBy::Both));
    assert_eq!(basis(&[SeenBy::Both, gpm]), Some(SeenBy::Both));
    assert_eq!(
        ["gpm", "duty_cycle", "mixed", ""].map(SeenBy::from_name),
        [Some(gpm), Some(duty), Some(SeenBy::Both), None]
    );
}
