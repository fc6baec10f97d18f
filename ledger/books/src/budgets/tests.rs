use super::alert::{News, Told, due};
use super::*;
use crate::prices::PriceBook;
use crate::report::{ReportKind, ReportQuery};
use crate::slots::Slots;
use crate::statement::{BillingPolicy, MonthOfBooks, given_back};
use crate::world::{World, at, book, check, query};
use cardhour_domain::{Interval, Timestamp, Zone};

const TWO_DOLLARS: &str = "[[price]]\nfrom = \"2016-01-01\"\nper_card_hour = \"2\"\n";

fn budgets(text: &str) -> Budgets {
    Budgets::parse(text, 1).unwrap_or_else(|faults| panic!("{faults}"))
}

/// How budgets stand just before `asked`, of a world loaded as the shell loads it.
fn stand(world: &World, book: Option<&PriceBook>, budgets: &Budgets, asked: &str) -> (Vec<Standing>, Timestamp) {
    stand_refunded(world, book, budgets, asked, "")
}

/// The same by a billing policy, in a world of one month.
fn stand_refunded(
    world: &World,
    book: Option<&PriceBook>,
    budgets: &Budgets,
    asked: &str,
    policy: &str,
) -> (Vec<Standing>, Timestamp) {
    let Some(spans) = budgets.spans(at(asked), world.all(), world.zone) else { return (Vec::new(), at(asked)) };
    let slots = |stretch| Evidence::slots(stretch, book, world.zone).unwrap();
    let (spent, pace) = (slots(spans.spent), spans.pace.map(slots));
    let (spent_input, pace_input) = (world.input(&spent), pace.as_ref().map(|slots| world.input(slots)));
    let pace = pace_input.as_ref().zip(pace.as_ref()).map(|(input, slots)| Evidence { input, slots });
    let policy = BillingPolicy::parse(policy).unwrap_or_else(|faults| panic!("{faults}"));
    let back = book.map(|book| {
        // As the ledger does: the part of the month that counts.
        let whole = spans.month.interval(world.zone);
        let end = whole.end().min(spans.spent.end());
        let slots = Slots::new(Interval::new(whole.start(), end).unwrap(), Some(book), world.zone, None).unwrap();
        let (month, input, sick) = (spans.month, world.input(&slots), std::collections::BTreeSet::new());
        given_back(&MonthOfBooks {
            month,
            input: &input,
            slots: &slots,
            book,
            policy: &policy,
            costs: &[],
            sick: &sick,
            wrongful: &std::collections::BTreeMap::new(),
            rates: None,
        })
    });
    let spent = Evidence { input: &spent_input, slots: &spent };
    let (standings, _) = standings(budgets, &spans, spent, pace, back.as_deref().unwrap_or_default(), book);
    (standings, spans.until)
}

#[track_caller]
fn check_stand(world: &World, prices: &str, text: &str, asked: &str, columns: &str, expected: &str) {
    let book = (!prices.is_empty()).then(|| book(prices));
    let (standings, until) = stand(world, book.as_ref(), &budgets(text), asked);
    check(&table(&standings, &[], until, world.zone), columns, expected);
}

const COLUMNS: &str = "budget period limit spent left ratio crossed forecast forecast_ratio runs_out_at";

/// By hand, 2 USD a card-hour: ten days are 240 card-hours, 480 USD of 1,000. The last seven days cost 336 USD, 48 a day: 21 days more are 1,008, in all 1,488.
/// What is left, 520, lasts 10 5/6 days: from 11 March to 21 March 20:00. 200 card-hours are passed, at 120 % of them; 24 a day × 21 more are 504, in all 744.
#[test]
fn a_budget_says_what_was_spent_what_is_left_and_where_it_ends() {
    let world = World::jobs("1 lab vision ann q running T4 n1 1 2026-03-01T00:00 2026-03-11T00:00");
    let text = r#"
        currency = "USD"
        [[budget]]
        name = "lab"
        org = "lab"
        amount = "1000"
        period = "month"
        [[budget]]
        name = "hours"
        user = "a*"
        card_hours = 200
        period = "month"
    "#;
    check_stand(
        &world,
        TWO_DOLLARS,
        text,
        "2026-03-11T12:00",
        COLUMNS,
        "lab 2026-03 1000.00 480.00 520.00 0.480000 - 1488.00 1.488000 2026-03-21 20:00
         hours 2026-03 200.000000 240.000000 -40.000000 1.200000 50% 75% 90% 100% 744.000000 3.720000 -",
    );
}

/// M25. By hand, at 2 USD: job 1 held 20 card-hours, 40 USD, and its node failed; job 2 held 10, 20 USD, in queue q2. All of job 1 is given back: the lab has
/// spent 20 of 50, its hours are 10 of 25, nothing is crossed, and q's budget has nothing spent, q2's what it had. Asked at 10:00, when half of job 1 was over, 20 − 20 + 20.
#[test]
fn m25_a_refund_restores_the_budget_that_paid() {
    let world = World::jobs(
        "1 lab vision ann q node_fail T4 n1 1 2026-03-10T00:00 2026-03-10T20:00
         2 lab vision bob q2 completed T4 n1 1 2026-03-10T00:00 2026-03-10T10:00",
    );
    let budget = |name: &str, scope: &str, limit: &str| {
        format!("[[budget]]\nname = \"{name}\"\n{scope}\n{limit}\nperiod = \"month\"\n")
    };
    let text = [
        "currency = \"USD\"\n".to_owned(),
        budget("lab", "org = \"lab\"", "amount = \"50\""),
        budget("hours", "org = \"lab\"", "card_hours = \"25\""),
        budget("q", "queue = \"q\"", "amount = \"50\""),
        budget("q2", "queue = \"q2\"", "amount = \"50\""),
        budget("ann", "user = \"ann\"", "amount = \"50\""),
    ]
    .concat();
    let book = book(TWO_DOLLARS);
    let spent = |asked: &str, policy: &str| {
        let (standings, until) = stand_refunded(&world, Some(&book), &budgets(&text), asked, policy);
        let shown = |one: &Standing| {
            let unit = one.budget.unit;
            format!("{} {} {}", one.budget.name, unit.text(one.spent.unwrap()), unit.text(one.refunded))
        };
        (standings.iter().map(shown).collect::<Vec<_>>(), table(&standings, &[], until, world.zone).notes)
    };
    let policy = "[refunds]\nnode_fail = \"1\"\n";
    let (standing, notes) = spent("2026-04-01T00:00", policy);
    assert_eq!(standing, ["lab 20.00 -40.00", "hours 10 -20", "q 0.00 -40.00", "q2 20.00 0.00", "ann 0.00 -40.00"]);
    assert!(notes.iter().any(|note| note == "budget lab, 2026-03: refunds of 40.00 USD are taken off what was spent"));
    let (standing, _) = spent("2026-03-10T10:00", policy);
    assert_eq!(standing, ["lab 20.00 -20.00", "hours 10 -10", "q 0.00 -20.00", "q2 20.00 0.00", "ann 0.00 -20.00"]);
    let (standing, _) = spent("2026-04-01T00:00", "");
    assert_eq!(standing, ["lab 60.00 0.00", "hours 30 0", "q 40.00 0.00", "q2 20.00 0.00", "ann 40.00 0.00"]);
}

/// By hand: nothing was held in the first days of the week, and in its first month's last six days 4 cards were: 576 card-hours in 7 days. An hour into April that pace
/// says 4 + (30 days less an hour) × (576 − 0 … see below). The first hour alone, × 720, would say 2,880.
///
/// Books end 2026-04-01T01:00; the seven days before it begin 2026-03-25T01:00; held in them: 26 March 00:00 to 1 April 01:00 = 145 h × 4 = 580 card-hours. Rest of April:
/// 719 h. 4 + 580 × 719 ÷ 168 = 4 + 2,482.261905 = 2,486.261905.
#[test]
fn on_the_first_of_a_month_the_pace_is_that_of_the_week_before() {
    let world = World::jobs("1 lab vision ann q running T4 n1 4 2026-03-26T00:00 2026-04-01T01:00");
    let world = World {
        // The books reach further back than the pace does.
        capacity: vec![World::stretch(cardhour_domain::CardState::Free, "c n1 T4 4 2026-03-01 2026-03-02")],
        ..world
    };
    let text = "[[budget]]\nname = \"b\"\ncard_hours = \"4000\"\nperiod = \"month\"\n";
    check_stand(&world, "", text, "2026-04-01T01:00", "spent forecast", "4.000000 2486.261905");
}

/// By hand: New York's March 2026 has 743 hours, one being lost on the 8th. A card held from its first instant (05:00Z) is held 335 hours by the 15th 00:00 local (04:00Z), and
/// at the pace of one card the month ends with 743.
#[test]
fn a_month_with_a_day_of_23_hours_is_forecast_by_its_own_length() {
    let mut world = World::jobs("1 lab vision ann q running T4 n1 1 2026-03-01T05:00 2026-03-15T04:00");
    world.zone = Zone::parse("America/New_York").unwrap();
    let text = "[[budget]]\nname = \"b\"\ncard_hours = \"743\"\nperiod = \"month\"\n";
    check_stand(
        &world,
        "",
        text,
        "2026-03-15T04:00",
        "period spent forecast forecast_ratio crossed",
        "2026-03 335.000000 743.000000 1.000000 -",
    );
}

/// By hand, quarters of a year from April, 100 card-hours each, from October on: 40 spent by December leave 60; 130 of 160 by March leave 30; so from April there are 130. The
/// budget beside it carries nothing over.
#[test]
fn what_is_left_of_a_fiscal_quarter_is_added_to_the_next() {
    let world = World::jobs(
        "1 lab vision ann q completed T4 n1 1 2025-11-01T00:00 2025-11-02T16:00
         2 lab vision ann q completed T4 n1 1 2026-01-01T00:00 2026-01-06T10:00
         3 lab vision ann q completed T4 n1 1 2026-04-01T00:00 2026-04-01T20:00",
    );
    let text = r#"
        fiscal_year_starts = "04"
        [[budget]]
        name = "kept"
        card_hours = "100"
        period = "quarter"
        from = "2025-10"
        carry_over = true
        [[budget]]
        name = "lost"
        card_hours = "100"
        period = "quarter"
        [[budget]]
        name = "year"
        card_hours = "100"
        period = "year"
    "#;
    check_stand(
        &world,
        "",
        text,
        "2026-04-01T20:00",
        "budget period limit carried spent left ratio",
        "kept 2026-04..2026-06 130.000000 30.000000 20.000000 110.000000 0.153846
         lost 2026-04..2026-06 100.000000 - 20.000000 80.000000 0.200000
         year 2026-04..2027-03 100.000000 - 20.000000 80.000000 0.200000",
    );
    // As it stood at the end of March: the year from April 2025 held 40 + 130.
    check_stand(
        &world,
        "",
        text,
        "2026-04-01T00:00",
        "budget period limit spent crossed",
        "kept 2026-01..2026-03 160.000000 130.000000 50% 75%
         lost 2026-01..2026-03 100.000000 130.000000 50% 75% 90% 100%
         year 2025-04..2026-03 100.000000 170.000000 50% 75% 90% 100%",
    );
}

/// By hand: 40 card-hours overspent of 100 leave 60; nothing was spent of them. Overspent by 120, there are −20, and all of it is gone before anything is held.
#[test]
fn what_was_overspent_is_taken_from_the_next_period() {
    let of = |hours: &str| {
        let world = World::jobs(&format!("1 lab vision ann q completed T4 n1 1 2026-01-01T00:00 {hours}"));
        let text = "[[budget]]\nname = \"b\"\ncard_hours = \"100\"\nperiod = \"month\"\nfrom = \"2026-01\"\ncarry_over = true\n";
        let (standings, until) = stand(&world, None, &budgets(text), "2026-02-02");
        (table(&standings, &[], until, world.zone), standings[0].is_over())
    };
    let (table, is_over) = of("2026-01-06T20:00");
    check(&table, "limit carried spent ratio crossed", "60.000000 -40.000000 0.000000 0.000000 -");
    assert!(!is_over);
    let (table, is_over) = of("2026-01-10T04:00");
    check(&table, "limit carried spent ratio crossed", "-20.000000 -120.000000 0.000000 - 50% 75% 90% 100%");
    assert!(is_over);
}

/// T08: one function gives the period. In Shanghai April begins on 31 March 16:00Z. The job held two hours of March and three of April there: that is what the bill of each
/// month says, what the budget has spent, and what the alert names, where months of UTC would put all but nothing of it into April.
#[test]
fn t08_bill_budget_and_alert_speak_of_the_same_period() {
    let mut world = World::jobs("1 lab vision ann q completed T4 n1 1 2026-03-31T14:00 2026-03-31T19:00");
    world.zone = Zone::parse("Asia/Shanghai").unwrap();
    let prices = format!("currency = \"USD\"\nzone = \"Asia/Shanghai\"\n{TWO_DOLLARS}");
    let book = PriceBook::parse(&prices).unwrap().unwrap();
    let text = "currency = \"USD\"\n[[budget]]\nname = \"b\"\norg = \"lab\"\namount = \"6\"\nperiod = \"month\"\nthresholds = [100]\n";
    let bill = world.report(Some(&book), &query(ReportKind::Bill, "month,org")).table;
    check(&bill, "month cost", "2026-03 4.00\n2026-04 6.00\n--\n- 10.00");
    let budgets = budgets(text);
    let (standings, until) = stand(&world, Some(&book), &budgets, "2026-03-31T20:00");
    check(&table(&standings, &[], until, world.zone), "period spent", "2026-04 6.00");
    let due = due(&standings, &[]);
    assert_eq!((due.len(), &*due[0].crossing.period), (1, "2026-04"));
    let ends = super::alert::ends_at(&budgets, &due[0].crossing, world.zone).unwrap();
    assert_eq!(ends, standings[0].period.interval(world.zone).end());
    let (standings, until) = stand(&world, Some(&book), &budgets, "2026-03-31T16:00");
    check(&table(&standings, &[], until, world.zone), "period spent", "2026-03 4.00");
}

/// T18: thresholds are each budget's own, else the file's, else 50, 75, 90 and 100.
#[test]
fn t18_thresholds_are_set_for_each_budget() {
    let world = World::jobs("1 lab vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-04T08:00");
    let budget = |name: &str, more: &str| {
        format!("[[budget]]\nname = \"{name}\"\ncard_hours = \"100\"\nperiod = \"month\"\n{more}\n")
    };
    let text = [budget("early", "thresholds = [10, 80, 81]"), budget("usual", ""), budget("silent", "thresholds = []")];
    check_stand(&world, "", &text.concat(), "2026-03-05", "budget crossed", "early 10% 80%\nusual 50% 75%\nsilent -");
    let text = format!("thresholds = [70]\n{}{}", budget("file's", ""), budget("own", "thresholds = [80]"));
    check_stand(&world, "", &text, "2026-03-05", "budget crossed", "file's 70%\nown 80%");
}

/// What a report by the budget's selectors says is what the budget says, where two queues share one rounded leaf. By hand: 0.01 USD a card-hour for 1 h in each queue is a leaf of
/// 0.02; a queue's half of it is 0.01, whole cents only by luck: at 0.25 h and 0.5 h the leaf of 0.0075 is rounded to 0.01, of which a third is 0.003333.
#[test]
fn a_budget_of_a_queue_has_spent_what_the_bill_of_the_queue_says() {
    let world = World::jobs(
        "1 lab vision ann day   completed T4 n1 1 2026-03-01T00:00 2026-03-01T00:15
         2 lab vision ann night completed T4 n1 1 2026-03-01T00:00 2026-03-01T00:30",
    );
    let book = book("[[price]]\nfrom = \"2016-01-01\"\nper_card_hour = \"0.01\"\n");
    let bill = ReportQuery { range: None, ..query(ReportKind::Bill, "queue") };
    check(&world.report(Some(&book), &bill).table, "queue cost", "day 0.003333\nnight 0.006667\n--\n- 0.010000");
    let text = "currency = \"USD\"\n[[budget]]\nname = \"b\"\nqueue = \"day\"\namount = \"1\"\nperiod = \"month\"\n";
    let (standings, _) = stand(&world, Some(&book), &budgets(text), "2026-03-02");
    assert_eq!(standings[0].spent, Some(3_333));
}

#[test]
fn money_without_a_price_book_is_not_known_and_not_zero() {
    let world = World::jobs("1 lab vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T01:00");
    let text = "currency = \"USD\"\n[[budget]]\nname = \"b\"\namount = \"1\"\nperiod = \"month\"\n";
    check_stand(&world, "", text, "2026-03-02", COLUMNS, "b 2026-03 1.00 - - - - - - -");
}

#[test]
fn a_budget_counts_only_while_it_holds() {
    let world = World::jobs("1 lab vision ann q completed T4 n1 1 2026-03-01T00:00 2026-03-01T01:00");
    let text =
        "[[budget]]\nname = \"b\"\ncard_hours = \"1\"\nperiod = \"month\"\nfrom = \"2026-03\"\nto = \"2026-04\"\n";
    check_stand(&world, "", text, "2026-03-31", "budget", "b");
    check_stand(&world, "", text, "2026-04-02", "budget", "");
    check_stand(&world, "", text, "2026-03-01", "budget", "");
}

/// T16: one alert a budget, period and threshold, and none again for what was told, whatever a restart forgets; one when it is over.
#[test]
fn t16_a_crossing_is_told_once_and_once_more_when_it_is_over() {
    let text = |limit: &str| format!("[[budget]]\nname = \"b\"\ncard_hours = \"{limit}\"\nperiod = \"month\"\n");
    let of = |hours: &str, limit: &str, asked: &str| {
        let world = World::jobs(&format!("1 lab vision ann q running T4 n1 1 2026-03-01T00:00 {hours}"));
        stand(&world, None, &budgets(&text(limit)), asked).0
    };
    let mut told: Vec<Told> = Vec::new();
    let mut tell = |standings: &[Standing]| -> Vec<(u32, News)> {
        let due = due(standings, &told);
        // All that a restart keeps is what was told.
        told.extend(due.iter().map(|due| Told { crossing: due.crossing.clone(), news: due.news }));
        due.into_iter().map(|due| (due.crossing.threshold, due.news)).collect()
    };
    assert_eq!(tell(&of("2026-03-02T00:00", "100", "2026-03-02")), []);
    let at_80 = of("2026-03-04T08:00", "100", "2026-03-05");
    assert_eq!(tell(&at_80), [(50, News::Reached), (75, News::Reached)]);
    assert_eq!(tell(&at_80), []);
    // A late record takes it to 60, another back to 80: over once, and not told a second time.
    assert_eq!(tell(&of("2026-03-03T12:00", "100", "2026-03-05")), [(75, News::Over)]);
    assert_eq!(tell(&at_80), []);
    // A larger limit ends what was told of the smaller one, and is a limit to be told of in its turn.
    assert_eq!(tell(&of("2026-03-04T08:00", "1000", "2026-03-05")), [(50, News::Over)]);
    assert_eq!(tell(&of("2026-03-22T12:00", "1000", "2026-03-25")), [(50, News::Reached)]);
    // With its period it ends, and the next one begins with nothing told.
    assert_eq!(tell(&of("2026-03-22T12:00", "1000", "2026-04-02")), [(50, News::Over)]);
    assert_eq!(tell(&of("2026-04-22T00:00", "1000", "2026-04-22")), [(50, News::Reached)]);
}

#[test]
fn every_fault_is_told_at_once_with_its_line() {
    let text = r#"fiscal_year_starts = "13"
colour = "red"
[[budget]]
name = ""
amount = "5"
card_hours = "6"
period = "week"
[[budget]]
name = "a"
org = ""
amount = "-5"
period = "quarter"
from = "2026-02"
[[budget]]
name = "b"
card_hours = 1.5
period = "month"
from = "2026-03"
to = "2026-03"
thresholds = [90, 50]
[[budget]]
name = "c"
period = "year"
carry_over = true
[[budget]]
name = "d"
card_hours = "1"
period = "quarter"
from = "2026-02"
"#;
    let faults = Budgets::parse(text, 1).unwrap_err().to_string();
    let expected = [
        "line 1: fiscal_year_starts: has to be a month's number, \"01\" to \"12\"",
        "line 2: colour: unknown key; known here are currency, fiscal_year_starts, thresholds, advice, budget",
        "line 4: budget[1].name: has to say something: alerts know the budget by it",
        "line 6: budget[1].card_hours: stands beside amount: a budget counts one of them; write two budgets for both",
        "line 7: budget[1].period: \"week\" is not month, quarter or year",
        "line 10: budget[2].org: an empty text matches nothing; leave the key out for all",
        "line 11: budget[2].amount: -5 is below zero",
        "line 11: budget[2].amount: is money, and the file doesn't say of which currency: currency = \"CNY\" at its top",
        "line 19: budget[3].to: 2026-03 is not after 2026-03: it is the first month after the last",
        "line 20: budget[3].thresholds: 50 doesn't go up: each is above the one before",
        "line 21: budget[4]: says no limit: give amount, in the currency of the prices, or card_hours",
        "line 24: budget[4].carry_over: needs a from: what is carried over is counted from there on",
    ];
    assert_eq!(faults.lines().collect::<Vec<_>>(), expected);
    let text = "[[budget]]\nname = \"d\"\ncard_hours = \"1\"\nperiod = \"quarter\"\nfrom = \"2026-02\"\n";
    assert_eq!(
        Budgets::parse(&text.repeat(2), 1).unwrap_err().to_string(),
        "line 5: budget[1].from: 2026-02 is not the first month of a quarter; the quarter that holds it is 2026-01..2026-03\n\
         line 10: budget[2].from: 2026-02 is not the first month of a quarter; the quarter that holds it is 2026-01..2026-03"
    );
    let twice = "[[budget]]\nname = \"d\"\ncard_hours = \"1\"\nperiod = \"month\"\n".repeat(2);
    assert_eq!(
        Budgets::parse(&twice, 1).unwrap_err().to_string(),
        "line 6: budget[2].name: another budget is called \"d\" too"
    );
    // The policy's years hold until the file has its own.
    let of = |text: &str| Budgets::parse(text, 4).unwrap().fiscal_year_starts;
    assert_eq!((of("# nothing\n"), of("thresholds = [50]\n"), of("fiscal_year_starts = \"07\"\n")), (4, 4, 7));
    assert_eq!(Budgets::parse("# nothing yet\n", 1).unwrap().budgets, []);
}

#[test]
fn the_pool_of_dedicated_cards_is_named_for_advice() {
    let pool = |text: &str| Budgets::parse(text, 1).map(|budgets| budgets.dedicated_pool);
    assert_eq!(pool("[advice]\ndedicated_pool = \"own\"\n").unwrap().as_deref(), Some("own"));
    assert_eq!(pool("[advice]\n").unwrap(), None);
    let faults = pool("[advice]\ndedicated_pool = \"\"\ncolour = 1\n").unwrap_err().to_string();
    assert!(faults.contains("line 2: advice.dedicated_pool") && faults.contains("line 3: advice.colour"), "{faults}");
}

/// Alerts are remembered a line a label: a name of two lines would be another's each minute.
#[test]
fn a_name_of_two_lines_is_refused() {
    let faults = Budgets::parse("[[budget]]\nname = \"a\\nb\"\ncard_hours = 1\nperiod = \"month\"\n", 1).unwrap_err();
    assert_eq!(
        faults.to_string().lines().last().unwrap().trim(),
        "line 2: budget[1].name: has a line end or another control character in it"
    );
}

/// A book in dollars until April and in euro from then on, as closed months and today's book make it.
fn of_two_currencies() -> PriceBook {
    let price = |currency: &str, price: &str| {
        let text = format!(
            "currency = \"{currency}\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2016-01-01\"\nper_card_hour = \"{price}\"\n"
        );
        PriceBook::parse(&text).unwrap().unwrap()
    };
    let (dollars, euro) = (price("USD", "2"), price("EUR", "3"));
    PriceBook::in_turn_each(&[(Some(at("2026-04-01")), &dollars), (None, &euro)])
}

/// By hand, one card from 1 March to 5 April 12:00: 744 hours at 2 USD are 1,488; 108 at 3 EUR are 324. A budget of the first half counts its own and names the rest. The
/// pace of the euro is that of its own 4.5 days of the seven: 3 EUR an hour, and from 5 April 12:00 to the year's end are 270 days and 12 hours, 6,492 hours: 19,476 EUR, with
/// 324 in all 19,800. In dollars nothing more will be spent. Card-hours are 852 whatever they cost in, and 6,492 more make 7,344.
#[test]
fn a_budget_counts_its_own_currency_and_names_the_others() {
    let world = World::jobs("1 lab vision ann q running T4 n1 1 2026-03-01T00:00 2026-04-05T12:00");
    let text = r#"
        currency = "EUR"
        [[budget]]
        name = "euro"
        amount = "10000"
        period = "year"
        from = "2026-01"
        to = "2027-01"
        thresholds = [50]
        [[budget]]
        name = "dollars"
        currency = "USD"
        amount = "2000"
        period = "year"
        [[budget]]
        name = "hours"
        card_hours = "1000"
        period = "year"
    "#;
    let book = of_two_currencies();
    let (standings, until) = stand(&world, Some(&book), &budgets(text), "2026-04-05T12:00");
    let table = table(&standings, &[], until, world.zone);
    check(
        &table,
        "budget unit spent left forecast",
        "euro EUR 324.00 9676.00 19800.00
         dollars USD 1488.00 512.00 1488.00
         hours card-hours 852.000000 148.000000 7344.000000",
    );
    let notes: Vec<&String> = table.notes.iter().filter(|note| note.contains("not counted")).collect();
    let said = [
        "budget euro, 2026-01..2026-12: not counted: 1488.00 USD; a budget in EUR counts that currency alone",
        "budget dollars, 2026-01..2026-12: not counted: 324.00 EUR; a budget in USD counts that currency alone",
    ];
    assert_eq!(notes, said);
}

/// A currency beside card-hours means nothing, and one that nobody knows is told with its line.
#[test]
fn a_budget_may_have_a_currency_of_its_own() {
    let text = "[[budget]]\nname = \"a\"\ncurrency = \"XXQ\"\namount = \"1\"\nperiod = \"month\"\n\
                [[budget]]\nname = \"b\"\ncurrency = \"USD\"\ncard_hours = \"1\"\nperiod = \"month\"\n";
    let faults = Budgets::parse(text, 1).unwrap_err().to_string();
    assert!(faults.contains("line 3: budget[1].currency: \"XXQ\""), "{faults}");
    assert!(faults.contains("line 8: budget[2].currency: stands beside card_hours, which have none"), "{faults}");
}
