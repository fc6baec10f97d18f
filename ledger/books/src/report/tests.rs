use super::*;
use crate::world::{World, at, book, check, query, range};
use cardhour_domain::{CardShare, CardState, CardTime, Month, Zone};

mod laws;
mod philly;
mod seen;

const FLAT: &str = "[[price]]\nfrom = \"2016-01-01\"\nper_card_hour = \"1\"\n";

#[test]
fn a_report_has_the_columns_of_the_design_in_its_order() {
    let columns = |report: ReportKind| {
        report.measures().iter().map(|measure| measure.column().name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        columns(ReportKind::Usage),
        "jobs attempts card_hours billed_card_hours standard_card_hours effective_card_hours underused_card_hours idle_card_hours \
         lost_card_hours unseen_card_hours failed_card_hours asked_card_hours coverage use_coverage efficiency use_basis energy_kwh"
    );
    assert_eq!(
        columns(ReportKind::Bill),
        "line jobs attempts card_hours billed_card_hours standard_card_hours coverage use_coverage list_cost cost currency"
    );
    assert_eq!(
        columns(ReportKind::Efficiency),
        "jobs attempts card_hours effective_card_hours underused_card_hours idle_card_hours lost_card_hours unseen_card_hours \
         use_coverage efficiency use_basis energy_kwh"
    );
    assert_eq!(
        columns(ReportKind::Idle),
        "jobs attempts card_hours idle_card_hours unseen_card_hours use_coverage cost currency idle_cost rest_cost"
    );
    assert_eq!(
        columns(ReportKind::Waste),
        "jobs attempts card_hours underused_card_hours idle_card_hours lost_card_hours unseen_card_hours failed_card_hours \
         use_coverage underused_of_held idle_of_held lost_of_held unseen_of_held failed_of_held"
    );
    assert_eq!(
        columns(ReportKind::Capacity),
        "card_hours capacity_card_hours over_capacity_card_hours free_card_hours reserved_card_hours down_card_hours \
         unaccounted_card_hours coverage"
    );
    assert_eq!(columns(ReportKind::Coverage), "card_hours unaccounted_card_hours coverage use_coverage");
    assert_eq!(columns(ReportKind::Owners), "jobs attempts card_hours");
}

/// By hand: job 1 ran twice, on two nodes: one job, two attempts.
#[test]
fn jobs_and_attempts_are_counted_once_in_each_row_and_once_in_all() {
    let world = World::jobs(
        "1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T01:00
         1 acme vision ann q completed T4 n2 1 2026-03-01T02:00 2026-03-01T03:00
         2 acme speech bob q failed    T4 n1 2 2026-03-01T00:00 2026-03-01T01:30
         3 acme speech bob q pending   -  -  1",
    );
    let usage = |by: &str| world.report(None, &query(ReportKind::Usage, by)).table;
    check(
        &usage("project"),
        "project jobs attempts card_hours failed_card_hours",
        "speech 2 2 3.000000 3.000000\nvision 1 2 2.000000 0.000000\n--\n- 3 4 5.000000 3.000000",
    );
    check(
        &usage("node"),
        "node jobs attempts card_hours",
        "- 1 1 0.000000\nn1 2 2 4.000000\nn2 1 1 1.000000\n--\n- 3 4 5.000000",
    );
    check(&usage("state"), "state jobs", "completed 1\nfailed 1\npending 1\n--\n- 3");
    check(&usage("cluster"), "cluster jobs", "c 3\n--\n- 3");
}

/// A job that never started is counted in a range where it was submitted in it (2026-03-01 in this world).
#[test]
fn a_job_that_never_held_anything_is_counted_where_it_was_submitted() {
    let world = World::jobs("1 acme vision ann q pending - - 1");
    let of = |from, to| {
        let query = ReportQuery { range: Some(range(from, to)), ..query(ReportKind::Owners, "project") };
        world.report(None, &query).table
    };
    check(&of("2026-03-01", "2026-03-02"), "project jobs card_hours", "vision 1 0.000000\n--\n- 1 0.000000");
    assert!(of("2026-03-02", "2026-03-03").rows.is_empty());
}

#[test]
fn what_nobody_owns_is_shown_as_unowned_and_never_dropped() {
    let world = World::jobs(
        "1 -    -      -   q completed T4 n1 1 2026-03-01T00:00 2026-03-01T01:00
         2 -    vision -   q completed T4 n1 1 2026-03-01T00:00 2026-03-01T02:00
         3 acme -      ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T04:00",
    );
    let owners = |by: &str| world.report(None, &query(ReportKind::Owners, by)).table;
    check(&owners("org"), "org card_hours", "- 2.000000\n(unowned) 1.000000\nacme 4.000000\n--\n- 7.000000");
    check(
        &owners("org,project,user"),
        "org project user card_hours",
        "- vision - 2.000000
         (unowned) (unowned) (unowned) 1.000000
         acme - ann 4.000000
         --
         - - - 7.000000",
    );
}

/// By hand: asked 4 cards, got 2 for 3 h: 6 held, 12 asked; one whose asked cards nobody knows makes the sum unknown.
#[test]
fn asked_time_is_in_proportion_and_absent_when_not_known() {
    let mut world = World::jobs(
        "1 acme vision ann q completed T4 n1 2 2026-03-01T00:00 2026-03-01T03:00
         2 acme speech bob q completed T4 n1 2 2026-03-01T00:00 2026-03-01T03:00",
    );
    world.attempts[0].cards_requested = Some(CardShare::from_cards(4).unwrap());
    let usage = |world: &World| world.report(None, &query(ReportKind::Usage, "project")).table;
    check(
        &usage(&world),
        "project card_hours asked_card_hours",
        "speech 6.000000 6.000000\nvision 6.000000 12.000000\n--\n- 12.000000 18.000000",
    );
    world.attempts[1].cards_requested = None;
    check(
        &usage(&world),
        "project card_hours asked_card_hours",
        "speech 6.000000 -\nvision 6.000000 12.000000\n--\n- 12.000000 -",
    );
}

/// Records say all of who held what and nothing of use: coverage in full, use_coverage none, and what telemetry tells is absent.
#[test]
fn figures_that_records_cannot_know_are_absent_and_not_zero() {
    let world = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T01:00");
    let table = world.report(None, &query(ReportKind::Usage, "")).table;
    check(
        &table,
        "coverage use_coverage unseen_card_hours effective_card_hours idle_card_hours lost_card_hours efficiency use_basis energy_kwh",
        "1.000000 0.000000 1.000000 - - - - - -\n--\n1.000000 0.000000 1.000000 - - - - - -",
    );
}

/// By hand, a node of 8 cards for a day, 192 card-hours: 2 cards held for 12 h (24), 1 down all day (24), free the rest but for
/// 4 cards that nobody speaks for from 12:00 on (48): 192 − 24 − 24 − 48 = 96. Coverage 1 − 48/192 = 0.75.
#[test]
fn capacity_is_filled_by_the_states_of_its_cards() {
    let mut world = World::jobs("1 acme vision ann q completed T4 n1 2 2026-03-01T00:00 2026-03-01T12:00");
    world.capacity.push(World::stretch(CardState::Free, "c n1 T4 8 2026-03-01 2026-03-02"));
    world.stretches.push(World::stretch(CardState::Down, "c n1 T4 1 2026-03-01 2026-03-02"));
    world.stretches.push(World::stretch(CardState::Free, "c n1 T4 5 2026-03-01 2026-03-01T12:00"));
    world.stretches.push(World::stretch(CardState::Free, "c n1 T4 3 2026-03-01T12:00 2026-03-02"));
    let all = "card_hours capacity_card_hours over_capacity_card_hours free_card_hours reserved_card_hours down_card_hours unaccounted_card_hours coverage";
    let row = "24.000000 192.000000 0.000000 96.000000 0.000000 24.000000 48.000000 0.750000";
    let capacity = |by: &str| world.report(None, &query(ReportKind::Capacity, by)).table;
    check(&capacity("node"), &format!("node {all}"), &format!("n1 {row}\n--\n- {row}"));
    // What no row speaks for is unaccounted, whether or not a row says so.
    world.stretches.push(World::stretch(CardState::Unaccounted, "c n1 T4 4 2026-03-01T12:00 2026-03-02"));
    check(&world.report(None, &query(ReportKind::Capacity, "")).table, all, &format!("{row}\n--\n{row}"));
}

/// By hand: 4 cards of capacity, 6 held without naming a node for 1 h: 2 over, nothing free below zero, all 6 billed.
#[test]
fn what_is_held_beyond_capacity_is_held_and_billed_and_over() {
    let mut world = World::jobs("1 acme vision ann q completed - - 6 2026-03-01T00:00 2026-03-01T01:00");
    world.capacity.push(World::stretch(CardState::Free, "c n1 - 2 2026-03-01T00:00 2026-03-01T01:00"));
    world.capacity.push(World::stretch(CardState::Free, "c n2 - 2 2026-03-01T00:00 2026-03-01T01:00"));
    let table = world.report(None, &query(ReportKind::Capacity, "cluster")).table;
    check(
        &table,
        "cluster card_hours capacity_card_hours over_capacity_card_hours free_card_hours unaccounted_card_hours coverage",
        "c 6.000000 4.000000 2.000000 0.000000 0.000000 1.000000\n--\n- 6.000000 4.000000 2.000000 0.000000 0.000000 1.000000",
    );
    check(&world.bill(&book(FLAT), ""), "billed_card_hours cost", "6.000000 6.00\n--\n6.000000 6.00");
}

#[test]
fn capacity_that_is_not_known_by_node_is_said_to_be() {
    let mut world = World::jobs("1 acme vision ann q completed T4 - 2 2026-03-01T00:00 2026-03-01T12:00");
    world.capacity.push(World::stretch(CardState::Free, "c - T4 8 2026-03-01 2026-03-02"));
    let notes = |by: &str| world.report(None, &query(ReportKind::Capacity, by)).table.notes;
    let [note] = &notes("node")[..] else { panic!("{:?}", notes("node")) };
    assert!(
        note.starts_with("capacity under no node is of clusters of which a record names no node, or several"),
        "{note}"
    );
    assert!(notes("model").is_empty() && notes("").is_empty());
}

#[test]
fn a_cluster_of_unknown_capacity_is_named_and_not_guessed() {
    let world = World::jobs("1 acme vision ann q completed - - 6 2026-03-01T00:00 2026-03-01T01:00");
    let table = world.report(None, &query(ReportKind::Capacity, "cluster")).table;
    check(
        &table,
        "card_hours capacity_card_hours over_capacity_card_hours coverage",
        "6.000000 - - -\n--\n6.000000 - - -",
    );
    assert_eq!(table.notes, ["capacity is not known of clusters c: cardhour import nodes tells it"]);
}

/// By hand: 1 an hour; 10 h of March by the 11th, 5 h after: 15.00, of which a range that ends on the 11th shows 10.
#[test]
fn a_range_that_cuts_a_month_shows_parts_of_the_months_charges() {
    let world = World::jobs(
        "1 acme vision ann q completed T4 n1 1 2026-03-10T00:00 2026-03-10T10:00
         2 acme vision ann q completed T4 n1 1 2026-03-20T00:00 2026-03-20T05:00",
    );
    let query = ReportQuery { range: Some(range("2026-03-01", "2026-03-11")), ..query(ReportKind::Bill, "project") };
    let table = world.report(Some(&book(FLAT)), &query).table;
    check(
        &table,
        "line jobs card_hours cost",
        "project=vision,from=2026-03-01T00:00:00Z,to=2026-03-11T00:00:00Z 1 10.000000 10.000000\n--\n- 1 10.000000 10.000000",
    );
    assert_eq!(table.title, "bill, 2026-03-01 00:00 to 2026-03-11 00:00, UTC");
    assert!(table.notes[0].starts_with("partial: "));
}

#[test]
fn a_range_of_whole_months_is_not_partial_and_its_lines_are_those_of_the_whole() {
    let world = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-10T00:00 2026-04-10T10:00");
    let whole = world.bill(&book(FLAT), "month,project");
    let query =
        ReportQuery { range: Some(range("2026-03-01", "2026-04-01")), ..query(ReportKind::Bill, "month,project") };
    let march = world.report(Some(&book(FLAT)), &query).table;
    assert_eq!(march.rows, whole.rows[..1]);
    assert_eq!(march.title, "bill, 2026-03, UTC");
    assert_eq!(whole.title, "bill, 2026-03 to 2026-04, UTC");
}

#[test]
fn currencies_without_cents_show_none() {
    let world = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-10T00:00 2026-03-10T10:00");
    let text = "currency = \"JPY\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"150.25\"\n";
    let book = PriceBook::parse(text).unwrap().unwrap();
    // 1,502.5 yen is half of one: to the even 1,502.
    check(&world.bill(&book, ""), "cost currency", "1502 JPY\n--\n1502 JPY");
}

#[test]
fn reserved_time_is_in_the_row_of_the_reservations_owner() {
    let mut world = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T01:00");
    world.stretches.push(World::stretch(CardState::Reserved, "c n1 T4 2 2026-03-01T00:00 2026-03-01T02:00"));
    let query = query(ReportKind::Capacity, "org");
    let slots = query.slots(world.all(), None, Zone::UTC).unwrap();
    world.reservations.push(crate::site::Reservation {
        cluster: "c".into(),
        name: "week".into(),
        during: range("2026-03-01", "2026-03-02"),
        nodes: Vec::new(),
        cards: None,
        model: None,
        org: Some("globex".into()),
        project: None,
        user: None,
    });
    let table = report(&world.input(&slots), &slots, None, &query).table;
    check(
        &table,
        "org card_hours reserved_card_hours",
        // Capacity isn't told by owner, so how much of the pool stood reserved in acme's row is not known: absent.
        "acme 1.000000 -\nglobex 0.000000 4.000000\n--\n- 1.000000 4.000000",
    );
}

#[test]
fn time_that_is_estimated_lowers_the_coverage_of_its_line() {
    let world = World::jobs("1 acme vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T04:00");
    let query = query(ReportKind::Coverage, "project");
    let slots = query.slots(world.all(), None, Zone::UTC).unwrap();
    let mut input = world.input(&slots);
    // One of the four hours: four cells of a quarter hour.
    for cell in &mut input.cells[..4] {
        cell.unproven = cell.card_time;
    }
    let table = report(&input, &slots, None, &query).table;
    check(
        &table,
        "project card_hours coverage use_coverage",
        "vision 4.000000 0.750000 0.000000\n--\n- 4.000000 0.750000 0.000000",
    );
}

/// In dollars until April and in euro from then on. By hand, ann's 48 hours at 2 USD are 96 and her 24 at 3 EUR 72; bob's 24 hours are 72 EUR. What is not added up has no total, and each
/// line says the time of its own currency, so that it can be traced.
#[test]
fn another_currency_is_another_row_and_has_no_total_with_the_first() {
    let price = |currency: &str, price: &str| {
        let text = format!(
            "currency = \"{currency}\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2016-01-01\"\nper_card_hour = \"{price}\"\n"
        );
        PriceBook::parse(&text).unwrap().unwrap()
    };
    let (dollars, euro) = (price("USD", "2"), price("EUR", "3"));
    let book = PriceBook::in_turn_each(&[(Some(at("2026-04-01")), &dollars), (None, &euro)]);
    let world = World::jobs(
        "1 acme vision ann q completed T4 n1 1 2026-03-30T00:00 2026-04-02T00:00
         2 acme vision bob q completed T4 n1 1 2026-04-02T00:00 2026-04-03T00:00",
    );
    let bill = world.bill(&book, "user");
    check(
        &bill,
        "user jobs card_hours cost currency",
        "ann 1 48.000000 96.00 USD
         ann 1 24.000000 72.00 EUR
         bob 1 24.000000 72.00 EUR
         --
         - 2 96.000000 - -",
    );
    let said =
        "the prices were in more than one currency in that time: 96.00 USD and 144.00 EUR, which are not added up";
    assert!(bill.notes.iter().any(|note| note == said), "{:?}", bill.notes);
    for (row, month) in bill.rows.iter().zip(["2026-03", "2026-04", "2026-04"]) {
        let Value::Text(line) = &row[1] else { panic!("{row:?}") };
        let line = Line::parse(line).unwrap();
        assert_eq!(line.range, Some(Month::parse(month).unwrap().interval(Zone::UTC)), "{line}");
    }
    // Hours without money are one row, and of one currency alone there are no holes where the other is in force.
    let usage = world.report(Some(&book), &query(ReportKind::Usage, "user")).table;
    check(
        &usage,
        "user card_hours standard_card_hours",
        "ann 72.000000 72.000000\nbob 24.000000 24.000000\n--\n- 96.000000 96.000000",
    );
    let euro = world.bill(&book.only(book.currency()), "user");
    check(&euro, "user card_hours cost", "ann 72.000000 72.00\nbob 24.000000 72.00\n--\n- 96.000000 144.00");
    assert!(euro.notes.is_empty(), "{:?}", euro.notes);
}
