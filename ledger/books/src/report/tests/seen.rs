//! What telemetry tells of held time: efficiency, idle, waste, and energy. Figures by hand, beside each test.

use super::*;
use crate::report::Fold;
use crate::world::Told;

const SPLIT: &str =
    "card_hours effective_card_hours underused_card_hours idle_card_hours lost_card_hours unseen_card_hours";

fn table(world: &World, kind: ReportKind, by: &str) -> Table {
    world.report(None, &query(kind, by)).table
}

/// Vision: 2 cards × 10 h = 20; telemetry for 8 h of it, 16: a quarter idle (4), a half busy (8), the rest (4); unseen 4; 16/20 seen; 8/16 busy;
/// 2 cards × 350 W × 8 h = 5.6 kWh. Speech: 10 h, seen and lost whole, no energy read. All: 26/30 seen, 8/26 busy.
fn pool() -> World {
    World::jobs(
        "1 acme vision ann q completed H200 n1 2 2026-03-01T00:00 2026-03-01T10:00
         2 acme speech bob q failed    T4   n2 1 2026-03-01T00:00 2026-03-01T10:00",
    )
    .seen(
        "1 2026-03-01T00:00 2026-03-01T08:00 gpm        0   25 50 25 350
         2 -                -                duty_cycle 100 0  0  0  -",
    )
}

#[test]
fn held_time_is_split_into_where_it_went() {
    check(
        &table(&pool(), ReportKind::Efficiency, "org,project"),
        &format!("project {SPLIT} use_coverage efficiency use_basis energy_kwh"),
        "speech 10.000000 0.000000 0.000000 0.000000 10.000000 0.000000 1.000000 0.000000 duty_cycle -
         vision 20.000000 8.000000 4.000000 4.000000 0.000000 4.000000 0.800000 0.500000 gpm 5.600000
         --
         - 30.000000 8.000000 4.000000 4.000000 10.000000 4.000000 0.866667 0.307692 mixed 5.600000",
    );
}

#[test]
fn usage_and_coverage_tell_what_was_seen() {
    check(
        &table(&pool(), ReportKind::Usage, ""),
        &format!("{SPLIT} coverage use_coverage efficiency use_basis energy_kwh"),
        "30.000000 8.000000 4.000000 4.000000 10.000000 4.000000 1.000000 0.866667 0.307692 mixed 5.600000
         --
         30.000000 8.000000 4.000000 4.000000 10.000000 4.000000 1.000000 0.866667 0.307692 mixed 5.600000",
    );
    check(
        &table(&pool(), ReportKind::Coverage, "project"),
        "project coverage use_coverage",
        "speech 1.000000 1.000000\nvision 1.000000 0.800000\n--\n- 1.000000 0.866667",
    );
}

/// Of held: vision 4/20 underused, 4/20 idle, 4/20 unseen; speech lost whole and failed whole; all 4/30, 4/30, 10/30, 4/30, 10/30.
#[test]
fn waste_stands_side_by_side_with_its_part_of_what_was_held() {
    let waste = table(&pool(), ReportKind::Waste, "project");
    check(
        &waste,
        "project card_hours underused_card_hours idle_card_hours lost_card_hours unseen_card_hours failed_card_hours",
        "speech 10.000000 0.000000 0.000000 10.000000 0.000000 10.000000
         vision 20.000000 4.000000 4.000000 0.000000 4.000000 0.000000
         --
         - 30.000000 4.000000 4.000000 10.000000 4.000000 10.000000",
    );
    check(
        &waste,
        "project underused_of_held idle_of_held lost_of_held unseen_of_held failed_of_held",
        "speech 0.000000 0.000000 1.000000 0.000000 1.000000
         vision 0.200000 0.200000 0.000000 0.200000 0.000000
         --
         - 0.133333 0.133333 0.333333 0.133333 0.333333",
    );
}

#[test]
fn two_bases_in_one_report_are_said_not_to_be_comparable() {
    let note = "some use was read from SM activity (gpm), some from the duty cycle";
    let notes = |world: &World, kind| table(world, kind, "project").notes;
    assert!(notes(&pool(), ReportKind::Efficiency).iter().any(|said| said.starts_with(note)));
    assert!(notes(&pool(), ReportKind::Usage).iter().any(|said| said.starts_with(note)));
    let mut one = pool();
    one.stretches[1].told.clear();
    assert!(notes(&one, ReportKind::Efficiency).is_empty());
    // A quarter hour in which the basis changed is mixed by itself.
    let changed = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T00:15")
        .seen("1 - - mixed 0 0 80 20 -");
    check(&table(&changed, ReportKind::Efficiency, ""), "efficiency use_basis", "0.800000 mixed\n--\n0.800000 mixed");
}

/// 10 h each: 5 h seen are a half, enough; 4 h 45 min are 47.5 %, too little; of the third nobody saw anything. All: 9.75/30 = 32.5 %, too little.
#[test]
fn efficiency_is_absent_where_less_than_half_was_seen() {
    let world = World::jobs(
        "1 acme a ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T10:00
         2 acme b ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T10:00
         3 acme c ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T10:00",
    )
    .seen(
        "1 2026-03-01T00:00 2026-03-01T05:00 gpm 0 0 90 10 -
         2 2026-03-01T00:00 2026-03-01T04:45 gpm 0 0 90 10 -",
    );
    let report = table(&world, ReportKind::Efficiency, "project");
    check(
        &report,
        "project effective_card_hours idle_card_hours use_coverage efficiency use_basis",
        "a 4.500000 0.000000 0.500000 0.900000 gpm
         b 4.275000 0.000000 0.475000 - gpm
         c - - 0.000000 - -
         --
         - 8.775000 0.000000 0.325000 - gpm",
    );
    assert_eq!(report.notes, ["efficiency is not told where less than half of the held time was seen"]);
}

/// M11: metrics of the node are missing for 6 of 10 h: idle is not below zero, and the difference is unseen.
#[test]
fn m11_missing_metrics_make_no_negative_idle_but_unseen_time() {
    let world = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T10:00")
        .seen("1 2026-03-01T03:00 2026-03-01T07:00 gpm 0 0 100 0 -");
    check(
        &table(&world, ReportKind::Idle, ""),
        "card_hours idle_card_hours unseen_card_hours use_coverage",
        "10.000000 0.000000 6.000000 0.400000\n--\n10.000000 0.000000 6.000000 0.400000",
    );
}

/// M13: a window of 15 minutes of a job that runs all the time is 15 minutes: 0.25, and as much of it was seen.
#[test]
fn m13_a_quarter_hour_of_a_long_job_is_a_quarter_hour() {
    let world = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-02T00:00")
        .seen("1 - - gpm 0 0 60 40 -");
    let range = Some(range("2026-03-01T10:00", "2026-03-01T10:15"));
    let query = ReportQuery { range, ..query(ReportKind::Efficiency, "") };
    let report = world.report(None, &query).table;
    check(
        &report,
        "card_hours effective_card_hours efficiency",
        "0.250000 0.150000 0.600000\n--\n0.250000 0.150000 0.600000",
    );
}

/// M14: telemetry is down for 1 of 3 h, and what was seen was busy by 80 %: 0.8 of the seen time, not 0.8 × 2/3 = 0.533, and 66.7 % seen.
#[test]
fn m14_efficiency_is_of_the_seen_time_with_how_much_was_seen() {
    let world = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T03:00").seen(
        "1 2026-03-01T00:00 2026-03-01T01:00 gpm 0 0 80 20 -
         1 2026-03-01T02:00 2026-03-01T03:00 gpm 0 0 80 20 -",
    );
    check(
        &table(&world, ReportKind::Efficiency, ""),
        "card_hours effective_card_hours use_coverage efficiency",
        "3.000000 1.600000 0.666667 0.800000\n--\n3.000000 1.600000 0.666667 0.800000",
    );
}

/// M16: two jobs hold the same, one uses nine times what the other does: what was held and what was used are both there.
#[test]
fn m16_what_was_held_and_what_was_used_are_both_shown() {
    let world = World::jobs(
        "1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T10:00
         2 acme speech bob q completed T4 n1 1 2026-03-01T00:00 2026-03-01T10:00",
    )
    .seen("1 - - gpm 0 0 90 10 -\n2 - - gpm 0 80 10 10 -");
    check(
        &table(&world, ReportKind::Usage, "project"),
        "project card_hours effective_card_hours efficiency",
        "speech 10.000000 1.000000 0.100000\nvision 10.000000 9.000000 0.900000\n--\n- 20.000000 10.000000 0.500000",
    );
}

/// M09: 27 h at 1 an hour, idle all the time: its cost is 27, all of it of idle time, and none of it vanishes.
#[test]
fn m09_a_cost_that_is_all_idle_is_kept_and_shown() {
    let world = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-02T03:00")
        .seen("1 - - gpm 0 100 0 0 -");
    check(
        &world.report(Some(&book(FLAT)), &query(ReportKind::Idle, "")).table,
        "idle_card_hours cost currency idle_cost rest_cost",
        "27.000000 27.00 USD 27.000000 0.000000\n--\n27.000000 27.00 USD 27.000000 0.000000",
    );
}

/// M18: a notebook of 18 h that costs 48.84 idle and 0.93 at work. 49.77 ÷ 18 = 2.765 an hour; 48.84 ÷ 2.765 h = 17 h 39 min 49.15 s idle.
#[test]
fn m18_a_notebooks_owner_sees_what_idle_and_what_work_cost() {
    let world = World::jobs("1 acme lab ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T18:00").seen(
        "1 2026-03-01T00:00          2026-03-01T17:39:49.150Z gpm 0 100 0  0 -
         1 2026-03-01T17:39:49.150Z 2026-03-01T18:00         gpm 0 0   90 10 -",
    );
    let book = book("[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"2.765\"\n");
    let report = world.report(Some(&book), &query(ReportKind::Idle, "org,project,user")).table;
    check(
        &report,
        "user card_hours idle_card_hours cost idle_cost rest_cost",
        "ann 18.000000 17.663653 49.77 48.840000 0.930000\n--\n- 18.000000 17.663653 49.77 48.840000 0.930000",
    );
    assert!(report.notes.is_empty());
}

/// One leaf of 15 h, 15.00, of which 5 h are idle: 5 of it, all in the queue where they were.
#[test]
fn the_idle_part_of_a_leaf_falls_to_the_rows_that_were_idle() {
    let world = World::jobs(
        "1 acme vision ann day   completed T4 n1 1 2026-03-01T00:00 2026-03-01T10:00
         2 acme vision ann night completed T4 n1 1 2026-03-01T00:00 2026-03-01T05:00",
    )
    .seen("1 2026-03-01T00:00 2026-03-01T05:00 gpm 0 100 0 0 -\n2 - - gpm 0 0 100 0 -");
    check(
        &world.report(Some(&book(FLAT)), &query(ReportKind::Idle, "queue")).table,
        "queue cost idle_cost rest_cost",
        "day 10.000000 5.000000 5.000000\nnight 5.000000 0.000000 5.000000\n--\n- 15.000000 5.000000 10.000000",
    );
}

/// A leaf of one cent in three equal pieces: 0.003334, 0.003333, 0.003333. The first is idle: of the cent 1/3 is 0.003333 and the rest 0.006667,
/// which the others share. So its idle cost is a millionth less than its cost, and all three columns add up.
#[test]
fn a_cut_leafs_idle_cost_and_rest_add_up_to_its_cost_in_all_rows_together() {
    let world = World::jobs(
        "1 acme vision ann a completed T4 n1 1 2026-03-01T00:00 2026-03-01T00:20
         2 acme vision ann b completed T4 n1 1 2026-03-01T00:00 2026-03-01T00:20
         3 acme vision ann c completed T4 n1 1 2026-03-01T00:00 2026-03-01T00:20",
    )
    .seen("1 - - gpm 0 100 0 0 -");
    let cent = book("[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"0.01\"\n");
    check(
        &world.report(Some(&cent), &query(ReportKind::Idle, "queue")).table,
        "queue cost idle_cost rest_cost",
        "a 0.003334 0.003333 0.000000
         b 0.003333 - 0.003334
         c 0.003333 - 0.003333
         --
         - 0.010000 0.003333 0.006667",
    );
}

/// 10 h of which 4 fell into an outage and aren't billed: 6.00, and the idle time in them costs nothing.
#[test]
fn idle_time_that_is_not_billed_costs_nothing() {
    let mut world = World::jobs(
        "1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T06:00
         2 acme vision ann q completed T4 n1 1 2026-03-01T06:00 2026-03-01T10:00",
    )
    .seen("1 - - gpm 0 50 50 0 -\n2 - - gpm 0 100 0 0 -");
    world.stretches[1].is_billed = false;
    check(
        &world.report(Some(&book(FLAT)), &query(ReportKind::Idle, "")).table,
        "card_hours idle_card_hours cost idle_cost rest_cost",
        "10.000000 7.000000 6.00 3.000000 3.000000\n--\n10.000000 7.000000 6.00 3.000000 3.000000",
    );
}

#[test]
fn idle_hours_are_told_without_a_price_book_and_holes_of_one_are_named() {
    let world = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T06:00")
        .seen("1 - - gpm 0 50 50 0 -");
    let without = world.report(None, &query(ReportKind::Idle, "")).table;
    check(&without, "idle_card_hours cost currency idle_cost rest_cost", "3.000000 - - - -\n--\n3.000000 - - - -");
    assert_eq!(without.notes, ["no price book: hours without money"]);
    let h200 = book("[[price]]\nfrom = \"2026-01-01\"\nmodel = \"H200\"\nper_card_hour = \"1\"\n");
    let holed = world.report(Some(&h200), &query(ReportKind::Idle, "")).table;
    check(&holed, "idle_card_hours cost idle_cost", "3.000000 - -\n--\n3.000000 - -");
    assert!(holed.notes[0].starts_with("hole in the price book: no price for model T4"), "{:?}", holed.notes);
}

/// 1 card × 200 W × 5 h held = 1 kWh; 1 card × 50 W × 4 h free = 0.2 kWh, which nobody who held anything drew.
#[test]
fn energy_of_time_that_nobody_held_is_in_the_rows_of_that_time() {
    let mut world = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T05:00")
        .seen("1 - - gpm 0 0 100 0 200");
    let mut free = World::stretch(CardState::Free, "c n1 T4 1 2026-03-01T05:00 2026-03-01T09:00");
    free.told.push(Told { during: free.during, basis: None, percent: [0; 4], watts: Some(50) });
    world.stretches.push(free);
    check(&table(&world, ReportKind::Usage, ""), "energy_kwh", "1.000000\n--\n1.000000");
    let query = query(ReportKind::Capacity, "");
    let slots = query.slots(world.all(), None, Zone::UTC).unwrap();
    let input = world.input(&slots);
    assert_eq!(Fold::of(&input, &slots, None, &query).total.energy_kwh().unwrap().to_string(), "1.200000");
}

/// A cell says by which basis its time was seen, each by itself.
#[test]
fn seen_time_is_kept_by_what_told_of_it() {
    let world = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T03:00").seen(
        "1 2026-03-01T00:00 2026-03-01T01:00 gpm        0 0 100 0 -
         1 2026-03-01T01:00 2026-03-01T03:00 duty_cycle 0 0 100 0 -",
    );
    let query = query(ReportKind::Usage, "");
    let slots = query.slots(world.all(), None, Zone::UTC).unwrap();
    let used = Fold::of(&world.input(&slots), &slots, None, &query).total.used;
    let hours = |time: CardTime| time.card_hours().to_string();
    assert_eq!(
        [used.seen_by_gpm, used.seen_by_duty_cycle, used.seen_by_both].map(hours),
        ["1.000000", "2.000000", "0.000000"]
    );
}
