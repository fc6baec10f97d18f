use super::*;
use crate::report::{ReportKind, ReportQuery};
use crate::world::{World, book, check, query, range};
use cardhour_domain::Zone;

fn charges_of(world: &World, book: Option<&PriceBook>) -> Vec<Charge> {
    let query = query(ReportKind::Bill, "");
    let slots = query.slots(world.all(), book, world.zone).unwrap();
    charges(&world.input(&slots), &slots, book)
}

fn cost(charge: &Charge) -> String {
    charge.cost.map_or("-".to_owned(), Money::to_minor_string)
}

const FLAT: &str = "[[price]]\nfrom = \"2016-01-01\"\nper_card_hour = \"1\"\n";

/// M04 of the field reports: a price of 1.0 an hour for the 730 hours of a month is 730; twice and three times it are 1,460 and 2,190, on
/// every kind of node.
#[test]
fn m04_a_custom_price_is_taken_as_it_is_on_every_kind_of_node() {
    for (price, expected) in [("1.0", "730.00"), ("2.0", "1460.00"), ("3.0", "2190.00")] {
        for (model, node) in [("T4", "small"), ("H200", "large"), ("-", "-")] {
            let job = format!("1 acme vision ann - completed {model} {node} 1 2026-03-01 2026-03-31T10:00");
            let book = book(&FLAT.replace("\"1\"", &format!("\"{price}\"")));
            check(
                &World::jobs(&job).bill(&book, ""),
                "card_hours list_cost cost",
                &format!("730.000000 {expected} {expected}\n--\n730.000000 {expected} {expected}"),
            );
        }
    }
}

/// M05: a price of 1 costs 1 an hour, not 0.000828; and twelve decimals of a price are all used: 0.000000000001 × 10^10
/// card-hours is 0.01.
#[test]
fn m05_the_price_given_is_the_price_used() {
    let hour = World::jobs("1 acme vision ann - completed T4 n1 1 2026-03-01T00:00 2026-03-01T01:00");
    check(&hour.bill(&book(FLAT), ""), "cost currency", "1.00 USD\n--\n1.00 USD");
    let tiny = book(&FLAT.replace("\"1\"", "\"0.000000000001\""));
    let many = World::jobs("1 acme vision ann - completed T4 n1 10000000 2026-03-01T00:00 2026-04-11T16:00");
    // 10^7 cards × (744 + 256) hours; a cent is split over two months of 0.744 and 0.256 of it, each rounded by itself.
    check(&many.bill(&tiny, "month"), "month cost", "2026-03 0.01\n2026-04 0.00\n--\n- 0.01");
}

/// M07: one card for a day is never more than its price × 24 hours, here 0.9 × 24 = 21.60.
#[test]
fn m07_a_day_of_one_card_is_bounded_by_its_price_times_24() {
    let day = World::jobs("1 acme vision ann - completed NC6 n1 1 2026-03-05 2026-03-06");
    check(&day.bill(&book(&FLAT.replace("\"1\"", "\"0.9\"")), "node"), "node cost", "n1 21.60\n--\n- 21.60");
}

/// M06: no cards, no rows.
#[test]
fn m06_a_pool_without_cards_has_no_rows() {
    let table = World::new().bill(&book(FLAT), "project");
    assert!(table.rows.is_empty());
    assert_eq!(table.total, None);
}

/// M23: three queues of one leaf, 20 minutes each at 10 an hour: 10.00 is 3.333334 + 3.333333 + 3.333333, the first in order takes
/// what is left over; rounded one by one they would be 9.99.
#[test]
fn m23_parts_of_a_rounded_amount_add_up_to_it() {
    let world = World::jobs(
        "1 acme vision ann c completed T4 n1 1 2026-03-01T00:00 2026-03-01T00:20
         2 acme vision ann b completed T4 n1 1 2026-03-01T01:00 2026-03-01T01:20
         3 acme vision ann a completed T4 n1 1 2026-03-01T02:00 2026-03-01T02:20",
    );
    let book = book(&FLAT.replace("\"1\"", "\"10\""));
    check(&world.bill(&book, "queue"), "queue cost", "a 3.333334\nb 3.333333\nc 3.333333\n--\n- 10.000000");
    check(&world.bill(&book, "project"), "project cost", "vision 10.00\n--\n- 10.00");
}

/// M24: a price that changes after 42 of the 91 days of 2024-01-01 to 2024-04-01: 42 × 24 h × 1 + 49 × 24 h × 2 = 1,008 + 2,352.
#[test]
fn m24_a_change_of_price_divides_by_the_days_of_the_real_period() {
    let world = World::jobs("1 acme vision ann - completed T4 n1 1 2024-01-01 2024-04-01");
    let book = book(&format!("{FLAT}[[price]]\nfrom = \"2024-02-12\"\nper_card_hour = \"2\"\n"));
    check(
        &world.bill(&book, "month,price"),
        "month price card_hours cost",
        "2024-01 1 744.000000 744.00
         2024-02 1 264.000000 264.00
         2024-02 2 432.000000 864.00
         2024-03 2 744.000000 1488.00
         --
         - - 2184.000000 3360.00",
    );
}

/// T10: the same input in May and in June (100 hours each) costs the same in both.
#[test]
fn t10_equal_input_in_may_and_june_gives_equal_output() {
    let world = World::jobs(
        "1 acme vision ann - completed T4 n1 1 2026-05-03T00:00 2026-05-07T04:00
         2 acme vision ann - completed T4 n1 1 2026-06-03T00:00 2026-06-07T04:00",
    );
    check(
        &world.bill(&book(FLAT), "month,project"),
        "month project jobs card_hours cost",
        "2026-05 vision 1 100.000000 100.00
         2026-06 vision 1 100.000000 100.00
         --
         - - 2 200.000000 200.00",
    );
}

/// T11: charges are made from the books alone, so that making them again changes nothing; an edited rate makes other charges in
/// place of the old ones, under the same lines.
#[test]
fn t11_making_charges_again_is_making_them_once() {
    let world = World::jobs("1 acme vision ann - completed T4 n1 1 2026-05-03T00:00 2026-05-07T04:00");
    let once = charges_of(&world, Some(&book(FLAT)));
    assert_eq!(charges_of(&world, Some(&book(FLAT))), once);
    let edited = charges_of(&world, Some(&book(&FLAT.replace("\"1\"", "\"2\""))));
    assert_eq!(edited.len(), 1);
    assert_eq!(edited[0].line, once[0].line);
    assert_ne!(edited[0].price_version, once[0].price_version);
    assert_eq!((cost(&once[0]), cost(&edited[0])), ("100.00".to_owned(), "200.00".to_owned()));
}

/// By hand, New York: the night of 2017-11-04 22:00 to 08:00 has 11 hours (02:00Z to 13:00Z). A job from 20:00 to 09:00
/// (00:00Z to 14:00Z) holds 2 + 1 hours outside and 11 inside: 3 × 2.00, and 11 × 2.00 × 0.5 = 11.00 of a list cost of 22.00.
#[test]
fn the_long_night_of_the_clock_change_is_off_peak_for_eleven_hours() {
    let zone = Zone::parse("America/New_York").unwrap();
    let book = PriceBook::parse(
        r#"
        currency = "USD"
        zone = "America/New_York"
        [[window]]
        name = "off-peak"
        days = "mon-sun"
        from = "22:00"
        to = "08:00"
        [[price]]
        from = "2017-01-01"
        per_card_hour = "2.00"
        off-peak = "0.5"
        "#,
    )
    .unwrap()
    .unwrap();
    let mut world = World::jobs("1 acme vision ann - completed P100 n1 1 2017-11-05T00:00 2017-11-05T14:00");
    world.zone = zone;
    check(
        &world.bill(&book, "window"),
        "window card_hours list_cost cost",
        "- 3.000000 6.00 6.00
         off-peak 11.000000 22.00 11.00
         --
         - 14.000000 28.00 17.00",
    );
}

/// By hand: 10 days × 24 h before the 15th and 5 after, in one job; the leaf of each price is rounded by itself: 240 × 0.0101 = 2.424
/// and 120 × 0.0202 = 2.424, 2.42 each, where the sum would round to 4.85.
#[test]
fn a_price_that_changes_in_the_middle_of_a_job_splits_its_line() {
    let world = World::jobs("1 acme vision ann - completed T4 n1 1 2026-03-05 2026-03-20");
    let book = book(
        "[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"0.0101\"\nname = \"old\"\n[[price]]\nfrom = \"2026-03-15\"\nper_card_hour = \"0.0202\"\n",
    );
    let charges = charges_of(&world, Some(&book));
    let lines: Vec<(String, String)> = charges.iter().map(|charge| (charge.line.to_string(), cost(charge))).collect();
    let line = |price: &str| format!("month=2026-03,org=acme,project=vision,user=ann,model=T4,price={price},window=~");
    assert_eq!(lines, [(line("1 old"), "2.42".to_owned()), (line("2"), "2.42".to_owned())]);
    check(&world.bill(&book, "project"), "project cost", "vision 4.84\n--\n- 4.84");
}

/// By hand: half an hour at 0.01, 0.03 and 0.05 is 0.005, 0.015 and 0.025 for three users: to the even cent 0.00, 0.02, 0.02.
#[test]
fn half_a_cent_goes_to_the_even_cent_once_a_leaf() {
    let world = World::jobs(
        "1 acme vision ann - completed A n1 1 2026-03-01T00:00 2026-03-01T00:30
         2 acme vision bob - completed B n1 1 2026-03-01T00:00 2026-03-01T00:30
         3 acme vision cy  - completed C n1 1 2026-03-01T00:00 2026-03-01T00:30",
    );
    let price = |model: &str, price: &str| {
        format!("[[price]]\nfrom = \"2026-01-01\"\nmodel = \"{model}\"\nper_card_hour = \"{price}\"\n")
    };
    let book = book(&(price("A", "0.01") + &price("B", "0.03") + &price("C", "0.05")));
    check(&world.bill(&book, "user"), "user cost", "ann 0.00\nbob 0.02\ncy 0.02\n--\n- 0.04");
}

#[test]
fn a_hole_in_the_book_has_hours_and_no_money_and_is_listed() {
    let world = World::jobs(
        "1 acme vision ann - completed H200 n1 2 2026-03-01T00:00 2026-03-01T10:00
         2 acme vision ann - completed A100 n2 1 2026-03-01T00:00 2026-03-01T10:00
         3 acme speech bob - completed A100 n2 1 2026-03-03T00:00 2026-03-03T02:00",
    );
    let book = book("[[price]]\nfrom = \"2026-01-01\"\nmodel = \"H200\"\nper_card_hour = \"3\"\n");
    let report = world.report(Some(&book), &query(ReportKind::Bill, "project"));
    check(
        &report.table,
        "project card_hours standard_card_hours list_cost cost currency",
        "speech 2.000000 - - - -
         vision 30.000000 20.000000 60.00 60.00 USD
         --
         - 32.000000 20.000000 60.00 60.00 USD",
    );
    assert_eq!(report.holes.len(), 1);
    assert_eq!(report.holes[0].billed_time.card_hours().to_string(), "12.000000");
    assert_eq!(
        report.table.notes[0],
        "hole in the price book: no price for model A100 between 2026-03-01T00:00:00Z and 2026-04-01T00:00:00Z: 12.000000 card-hours without money"
    );
    let unpriced: Vec<Charge> =
        charges_of(&world, Some(&book)).into_iter().filter(|charge| charge.price_line.is_none()).collect();
    assert_eq!(unpriced.len(), 2);
    assert!(unpriced.iter().all(|charge| charge.cost.is_none() && charge.price_version.is_some()));
}

#[test]
fn time_before_the_first_price_is_a_hole() {
    let world = World::jobs("1 acme vision ann - completed T4 n1 1 2026-03-01 2026-03-03");
    let book = book("[[price]]\nfrom = \"2026-03-02\"\nper_card_hour = \"1\"\n");
    let report = world.report(Some(&book), &query(ReportKind::Bill, ""));
    check(&report.table, "card_hours cost", "48.000000 24.00\n--\n48.000000 24.00");
    assert_eq!(report.holes[0].during, range("2026-03-01", "2026-03-02"));
}

#[test]
fn without_a_price_book_there_are_hours_and_no_money_and_no_holes() {
    let world = World::jobs("1 acme vision ann - completed T4 n1 1 2026-03-01 2026-03-03");
    let report = world.report(None, &query(ReportKind::Bill, "project"));
    check(
        &report.table,
        "project billed_card_hours standard_card_hours list_cost cost currency",
        "vision 48.000000 - - - -\n--\n- 48.000000 - - - -",
    );
    assert!(report.holes.is_empty());
    assert_eq!(report.table.notes, ["no price book: hours without money"]);
    let charges = charges_of(&world, None);
    assert_eq!((charges.len(), charges[0].cost, &charges[0].price_version), (1, None, &None));
}

/// By hand: held 2 h, billed 1 h of it at 5: 5.00; time that isn't billed needs no price.
#[test]
fn only_billed_time_costs_and_needs_a_price() {
    let mut world = World::jobs(
        "1 acme vision ann - completed T4 n1 1 2026-03-01T00:00 2026-03-01T01:00
         2 acme vision ann - completed T4 n1 1 2026-03-01T01:00 2026-03-01T02:00
         3 acme vision ann - completed K80 n1 1 2026-03-01T01:00 2026-03-01T02:00",
    );
    world.stretches[1].is_billed = false;
    world.stretches[2].is_billed = false;
    let book = book("[[price]]\nfrom = \"2026-01-01\"\nmodel = \"T4\"\nper_card_hour = \"5\"\ncoefficient = \"2.4\"\n");
    let report = world.report(Some(&book), &query(ReportKind::Bill, "model"));
    check(
        &report.table,
        "model card_hours billed_card_hours standard_card_hours cost",
        "K80 1.000000 0.000000 - -\nT4 2.000000 1.000000 2.400000 5.00\n--\n- 3.000000 1.000000 2.400000 5.00",
    );
    assert!(report.holes.is_empty());
}

/// By hand: an hour of March in Shanghai is the last of February in UTC; 2 hours of one job around that midnight.
#[test]
fn months_of_money_are_the_billing_zones_and_those_shown_are_the_views() {
    let mut world = World::jobs("1 acme vision ann - completed T4 n1 1 2026-02-28T15:00 2026-02-28T17:00");
    world.zone = Zone::parse("Asia/Shanghai").unwrap();
    let text =
        "currency = \"CNY\"\nzone = \"Asia/Shanghai\"\n[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"0.333\"\n";
    let book = PriceBook::parse(text).unwrap().unwrap();
    check(
        &world.bill(&book, "month"),
        "month cost line",
        "2026-02 0.33 month=2026-02\n2026-03 0.33 month=2026-03\n--\n- 0.66 -",
    );
    let utc = ReportQuery { zone: Some(Zone::UTC), ..query(ReportKind::Bill, "month") };
    let table = world.report(Some(&book), &utc).table;
    check(&table, "month cost line", "2026-02 0.66 month=2026-02,zone=UTC\n--\n- 0.66 -");
}

#[test]
fn a_share_of_a_card_can_have_a_price_of_its_own() {
    let world = World::jobs(
        "1 acme vision ann - completed T4 n1 0.25 2026-03-01T00:00 2026-03-01T04:00
         2 acme vision ann - completed T4 n1 1    2026-03-01T00:00 2026-03-01T04:00",
    );
    let book = book(&format!("{FLAT}[[price]]\nfrom = \"2016-01-01\"\nshare = \"0.*\"\nper_card_hour = \"1.20\"\n"));
    check(
        &world.bill(&book, "price"),
        "price card_hours cost",
        "1 4.000000 4.00\n2 1.000000 1.20\n--\n- 5.000000 5.20",
    );
}
