use super::*;
use crate::world::{World, book};

const PRICES: &str = "[[price]]\nfrom = \"2026-01-01\"\nname = \"list\"\nper_card_hour = \"0.5\"\n";

fn traced(world: &World, line: &str) -> Result<Trace, TraceError> {
    let book = book(PRICES);
    let line = Line::parse(line).unwrap();
    let slots = line.slots(world.all(), Some(&book), Zone::UTC).unwrap();
    trace(&line, &world.input(&slots), &slots, Some(&book))
}

fn pool() -> World {
    World::jobs(
        "1 acme vision ann day   completed T4 n1 2 2026-03-01T00:00 2026-03-01T10:00
         2 acme vision ann night completed T4 n1 1 2026-03-31T22:00 2026-04-01T02:00
         3 acme speech bob night completed T4 n1 1 2026-03-05T00:00 2026-03-05T01:00",
    )
}

/// By hand: vision in March: 2 × 10 h of job 1 and 2 h of job 2, 22 card-hours × 0.5 = 11.00.
#[test]
fn a_line_is_traced_to_its_attempts_its_price_and_its_charge() {
    let trace = traced(&pool(), "month=2026-03,project=vision").unwrap();
    assert_eq!(trace.cost.unwrap().to_minor_string(), "11.00");
    assert_eq!(trace.card_time.card_hours().to_string(), "22.000000");
    let attempts: Vec<_> = trace
        .attempts
        .iter()
        .map(|attempt| (attempt.key.as_ref().unwrap().as_str(), attempt.card_time.card_hours().to_string()))
        .collect();
    assert_eq!(attempts, [("c/1/s0", "20.000000".to_owned()), ("c/2/s1", "2.000000".to_owned())]);
    assert_eq!(trace.attempts[1].held.unwrap().length_ms(), 4 * 3_600_000);
    let [charge] = &trace.charges[..] else { panic!("one leaf") };
    assert_eq!(
        charge.leaf.line.to_string(),
        "month=2026-03,org=acme,project=vision,user=ann,model=T4,price=1 list,window=~"
    );
    assert_eq!(
        charge.price.as_ref().unwrap().text,
        "price 1 list: 0.5 USD per card-hour from 2026-01-01 00:00 UTC, coefficient 1"
    );
    assert_eq!(charge.cost, charge.leaf.cost);
}

#[test]
fn the_line_of_a_charge_is_traced_as_any_other() {
    let trace =
        traced(&pool(), "month=2026-04,org=acme,project=vision,user=ann,model=T4,price=1 list,window=~").unwrap();
    assert_eq!(trace.cost.unwrap().to_minor_string(), "1.00");
    assert_eq!(trace.attempts.len(), 1);
}

/// By hand: the night queue holds 2 of the 22 card-hours of vision's leaf of 11.00, and all of speech's 0.50.
#[test]
fn a_line_that_cuts_a_leaf_says_which_part_of_it_is_its_own() {
    let trace = traced(&pool(), "queue=night,from=2026-03-01T00:00:00Z,to=2026-04-01T00:00:00Z").unwrap();
    let parts: Vec<_> = trace
        .charges
        .iter()
        .map(|charge| (charge.cost.unwrap().to_micro_string(), charge.leaf.cost.unwrap().to_minor_string()))
        .collect();
    assert_eq!(parts, [("0.500000".to_owned(), "0.50".to_owned()), ("1.000000".to_owned(), "11.00".to_owned())]);
    assert_eq!(trace.cost.unwrap().to_micro_string(), "1.500000");
}

#[test]
fn a_line_with_nothing_under_it_is_an_error_that_names_it() {
    let error = traced(&pool(), "project=chess").unwrap_err();
    assert!(error.to_string().starts_with("nothing is under line project=chess"));
}
