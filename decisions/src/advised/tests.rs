use super::*;
use cardhour_books::table::{Table, Value};

const HOUR_MS: i64 = 3_600_000;

fn hours(cards: i64, hours: i64) -> CardTime {
    CardTime::from_part_ms(i128::from(cards * hours * HOUR_MS) * i128::from(CardShare::PARTS_PER_CARD))
}

/// Thirty days of May 2026 of a pool of 16 cards that is held throughout and busy for `busy` of 16 hours of each card's day, with three jobs of eight cards a day that waited as told.
fn pool(busy: i64, capacity: i64, placement: i64, days: u64) -> PoolPast {
    let first: NaiveDate = "2026-05-01".parse().unwrap();
    let day = |n| DayPast {
        day: first + chrono::Days::new(n),
        capacity: hours(16, 24),
        held: hours(16, 24),
        seen: hours(16, 20),
        effective: hours(16, busy),
        unaccounted: CardTime::ZERO,
    };
    let wait = |n: u64| PastWait {
        started_at: Zone::UTC.start_of_day(first + chrono::Days::new(n / 3)),
        cards: CardShare::from_cards(8).unwrap(),
        for_capacity_ms: capacity * HOUR_MS,
        for_placement_ms: placement * HOUR_MS,
        for_other_ms: 0,
    };
    PoolPast {
        cluster: "c".into(),
        model: Some("T4".into()),
        cards: Some(16),
        days: (0..days).map(day).collect(),
        waits: (0..3 * days).map(wait).collect(),
        wanted: BTreeMap::new(),
    }
}

fn shown(table: &Table, columns: &str) -> Vec<String> {
    let place = |name: &str| table.columns.iter().position(|column| column.name == name).unwrap();
    let cell = |value: &Value| match value {
        Value::Absent => "-".to_owned(),
        Value::Text(text) => text.to_string(),
        Value::Count(count) => count.to_string(),
        Value::Decimal(decimal) => decimal.to_string(),
    };
    let row =
        |row: &Vec<Value>| columns.split(' ').map(|column| cell(&row[place(column)])).collect::<Vec<_>>().join(" ");
    table.rows.iter().map(row).collect()
}

const FIGURES: &str =
    "use_p50 p90_capacity_wait_hours waited_for_capacity_card_hours missing_cards advice is_scattered";

/// By hand: 14 busy of 20 seen hours are 70 %. 90 jobs of 8 cards that waited 3 h are 2,160 card-hours, in 720 hours 3 cards.
#[test]
fn a_pool_that_is_used_and_queues_for_cards_should_grow() {
    let made = expansion(&[pool(14, 3, 0, 30)], Zone::UTC);
    assert_eq!(shown(&made.table, FIGURES), ["0.700000 3.000000 2160.000000 3 expand no"]);
    let what = &shown(&made.table, "what")[0];
    assert_eq!(
        what,
        "70 % of what is held is used, and nine of ten jobs wait up to 180 min for cards: about 3 more would have been busy."
    );
}

/// By hand: 3 of 20 are 15 %, whatever the queue says; 14 of 20 with a queue for places asks for moving, not for cards.
#[test]
fn little_use_and_scattered_cards_are_told_apart_from_too_few() {
    let made = expansion(&[pool(3, 3, 0, 30), pool(14, 0, 3, 30)], Zone::UTC);
    assert_eq!(
        shown(&made.table, FIGURES),
        ["0.150000 3.000000 2160.000000 3 optimise no", "0.700000 0.000000 0.000000 0 hold yes"]
    );
}

/// 21 days have to be seen and an advice to hold for seven more: on the 27th day six have passed, on the 28th seven.
#[test]
fn an_advice_takes_four_weeks() {
    let advice = |days| shown(&expansion(&[pool(14, 3, 0, days)], Zone::UTC).table, "advice").remove(0);
    assert_eq!([20, 27, 28].map(advice), ["hold", "hold", "expand"]);
    let half_unseen = |mut past: PoolPast| {
        past.days.iter_mut().for_each(|day| day.seen = hours(16, 11));
        shown(&expansion(&[past], Zone::UTC).table, "advice use_p50").remove(0)
    };
    assert_eq!(half_unseen(pool(10, 3, 0, 30)), "hold -");
}

/// Of twenty hours two need 2 cards, nine 6, eight 10 and one 40: the middle is 6, nineteen of twenty 10, a tenth 2. 340 hours of it want 17 × (4 + 54 + 80 + 40) = 3,026. Twice that is
/// 12, more than 9 cards: 4.5 each, 5 for the first.
#[test]
fn quotas_are_sized_by_hour_and_cut_to_what_there_is() {
    let day: Vec<u32> = [vec![2; 2], vec![6; 9], vec![10; 8], vec![40]].concat();
    let wanted: Vec<Option<u32>> = day.iter().cycle().take(340).map(|cards| Some(*cards)).collect();
    let team = |project: &str| (Some(Name::from("lab")), Some(Name::from(project)));
    let mut past = PoolPast { cards: Some(100), ..pool(14, 0, 0, 1) };
    past.wanted.insert(team("vision"), wanted.clone());
    past.wanted.insert(team("short"), wanted[..335].to_vec());
    let quotas = "[[quota]]\norg = \"lab\"\nproject = \"vision\"\nmodel = \"T4\"\nguaranteed = 3\n";
    let quotas = Quotas::parse(quotas).unwrap_or_else(|faults| panic!("{faults}"));
    let columns = "project guaranteed_cards advised_guaranteed_cards advised_borrow_cards advised_lend_cards peak_cards hours_seen wanted_card_hours";
    let made = team_quota(&[past.clone()], &quotas);
    assert_eq!(shown(&made.table, columns), ["vision 3 6 4 4 40 340 3026.000000"]);
    assert!(made.table.notes[1].contains("of 1 teams"), "{:?}", made.table.notes);
    past.wanted.remove(&team("short"));
    past.wanted.insert(team("speech"), wanted);
    past.cards = Some(9);
    let made = team_quota(&[past], &quotas);
    let columns = "project advised_guaranteed_cards advised_borrow_cards advised_lend_cards";
    assert_eq!(shown(&made.table, columns), ["speech 5 5 4", "vision 4 6 4"]);
}

#[test]
fn what_a_cluster_needs_goes_by_all_its_cards() {
    let half = PoolPast { model: Some("A100".into()), cards: Some(40), ..pool(14, 0, 0, 1) };
    let made = pool_needs(&[pool(14, 0, 0, 1), half]);
    assert_eq!(shown(&made.table, "cluster cards size"), ["c 56 department"]);
    assert!(shown(&made.table, "needs")[0].ends_with("preemption, gangs"));
}
