//! What one entry is made of: each month worked out by hand.

use super::*;

/// `WHAT: CARD-HOURS BILLED AMOUNT`, `?` for no amount of its own.
fn shown(parts: &[LinePart]) -> Vec<String> {
    let hours = |time: CardTime| time.card_hours().normalize().to_string();
    let part = |(source, of): &LinePart| {
        let source = match source {
            ChangedSource::Attempt(key) => {
                key.as_ref().map_or("no job", |key| key.job()).trim_start_matches("c/").to_owned()
            }
            ChangedSource::Cards { node, state, .. } => {
                format!("{} {}", node.as_deref().unwrap_or("-"), state.map_or("capacity", CardState::name))
            }
            ChangedSource::Reservation { name, .. } => format!("reservation {name}"),
            ChangedSource::Cost(name) => format!("cost {name}"),
            ChangedSource::Line(key) => format!("{} {}", key.kind.name(), key.project.as_deref().unwrap_or("-")),
        };
        let amount = of.amount.map_or_else(|| "?".to_owned(), |amount| amount.to_minor_string());
        format!("{source}: {} {} {amount}", hours(of.card_time), hours(of.billed_time))
    };
    parts.iter().map(part).collect()
}

/// What the one entry that is meant is made of.
#[track_caller]
fn made_of(march: &March, is_it: impl Fn(&Entry) -> bool) -> MadeOf {
    let (slots, input) = march.input();
    let March { book, policy, costs, sick, wrongful, .. } = march;
    let (input, slots) = (&input, &slots);
    let books = MonthOfBooks { month: month(), input, slots, book, policy, costs, sick, wrongful, rates: None };
    let entries = draft(&books).entries;
    let one: Vec<&Entry> = entries.iter().filter(|entry| is_it(entry)).collect();
    let [entry] = one[..] else { panic!("{} entries: {:?}", one.len(), lines(&entries)) };
    MadeOf::of(&books, &entry.key).expect("the month has the line")
}

/// A month at 2.00 of which telemetry is there.
fn seen(jobs: &str, policy: &str, seen: &str) -> March {
    March { world: World::jobs(jobs).seen(seen), ..march("", "2", policy) }
}

fn is(kind: EntryKind) -> impl Fn(&Entry) -> bool {
    move |entry| entry.key.kind == kind
}

const TWO_JOBS: &str = "1 acme vision ann q node_fail T4 n1 1 2026-03-10T00:00 2026-03-10T10:00
                        2 acme vision ann q completed T4 n1 1 2026-03-11T00:00 2026-03-11T05:00";

/// 30.00 at 2.00; the node failed under job 1, of which half is given back: 10.00. Job 2 is under the charge and not under its refund.
#[test]
fn a_refund_is_made_of_the_attempts_whose_time_is_given_back() {
    let march = march(TWO_JOBS, "2", "[refunds]\nnode_fail = \"0.5\"\n");
    assert_eq!(shown(&made_of(&march, is(EntryKind::Refund)).parts), ["1: -10 -5 -10.00"]);
    let charge = made_of(&march, is(EntryKind::Charge));
    assert_eq!(shown(&charge.parts), ["1: 10 10 20.00", "2: 5 5 10.00"]);
    assert!(charge.spread.is_empty() && !charge.is_by_use);
}

/// 100.00 over 15 hours of acme and 5 of nova: 5.00 an hour. acme's line has weight 15 of 20 and comes to 75.00: 50.00 and 25.00.
#[test]
fn a_charge_of_absorbed_cost_has_its_rate() {
    let jobs = format!("{TWO_JOBS}\n3 nova bio eve q completed T4 n1 1 2026-03-12T00:00 2026-03-12T05:00");
    let march = march(&jobs, "2", "mode = \"absorb\"\n").cost("rent", "60", None).cost("power", "40", None);
    let made = made_of(&march, |entry| entry.key.org.as_deref() == Some("acme"));
    assert_eq!(shown(&made.parts), ["1: 10 10 50.00", "2: 5 5 25.00"]);
    let [spread] = &made.spread[..] else { panic!("{:?}", made.spread) };
    let SpreadAt { cards, put_in, weight, rate, weight_of_lines, comes_to } = spread;
    assert_eq!(
        (&**cards, put_in.to_minor_string(), weight.normalize().to_string()),
        ("all cards", "100.00".into(), "20".into())
    );
    assert_eq!((rate.to_minor_string(), weight_of_lines.normalize().to_string()), ("5.00".into(), "15".into()));
    assert_eq!(comes_to.to_minor_string(), "75.00");
}

/// Ten hours at 2.00, 3 of them at work: 6.00, of 10 hours held and 3 used.
#[test]
fn a_charge_by_use_has_the_used_time_of_each_attempt() {
    let policy = "[[used_basis]]\nqueue = \"q\"\n";
    let march = seen(TEN_HOURS, policy, "1 - - gpm 0 70 30 0 -");
    let made = made_of(&march, is(EntryKind::Charge));
    assert!(made.is_by_use);
    assert_eq!(shown(&made.parts), ["1: 10 3 6.00"]);
}

/// At 2.00, a card of n1 is free for six hours and two of n2 for two: 20.00, of which vision, charged 20.00 of 30.00, bears two thirds.
#[test]
fn shared_free_cards_are_told_with_the_projects_that_share_them() {
    let jobs = format!("{TEN_HOURS}\n2 acme speech bob q completed T4 n1 1 2026-03-11T00:00 2026-03-11T05:00");
    let march = march(&jobs, "2", "[capacity]\nfree = \"shared\"\nshare_by = \"cost\"\n")
        .with(CardState::Free, "c n1 T4 1 2026-03-12T00:00 2026-03-12T06:00")
        .with(CardState::Free, "c n2 T4 2 2026-03-12T00:00 2026-03-12T02:00");
    let made =
        made_of(&march, |entry| entry.key.kind == EntryKind::Idle && entry.key.project.as_deref() == Some("vision"));
    assert_eq!(shown(&made.parts), ["n1 free: 6 6 12.00", "n2 free: 4 4 8.00"]);
    assert_eq!(shown(&made.of), ["idle -: 10 10 20.00"]);
    assert_eq!(shown(&made.shared_by), ["charge vision: 10 10 20.00", "charge speech: 5 5 10.00"]);
    assert_eq!(made.prices.len(), 1, "{:?}", made.prices);
}

/// 5 % off 20.00 of ann's; the ten hours were all seen, nine of them at work.
#[test]
fn a_discount_is_told_with_the_charges_it_is_off() {
    let policy = "[efficiency]\npolicy = \"discount\"\n[[efficiency.tier]]\nat_least = \"0.9\"\npart = \"0.05\"\n";
    let march = seen(TEN_HOURS, policy, "1 - - gpm 0 0 90 10 -");
    let made = made_of(&march, is(EntryKind::Efficiency));
    assert_eq!(shown(&made.parts), ["1: 10 9 ?"]);
    assert_eq!(shown(&made.of), ["charge vision: 10 10 20.00"]);
}

/// Of 30.00 that was put in, all was charged and all of it given back. And 700 W over ten hours is 7 kWh, at 0.80 each 5.60.
#[test]
fn costs_and_recoveries_are_told_by_their_items() {
    let march = march(TEN_HOURS, "2", "mode = \"absorb\"\n[refunds]\nnode_fail = \"1\"\n");
    let march = March { world: World::jobs(&TEN_HOURS.replace("completed", "node_fail")), ..march };
    let march = march.cost("rent", "30", None);
    let refund = made_of(&march, is(EntryKind::Refund));
    assert_eq!(refund.spread[0].comes_to.to_minor_string(), "30.00", "it is at its charge's rate");
    let made = made_of(&march, is(EntryKind::Recovery));
    assert_eq!(
        shown(&made.parts),
        ["charge vision: 10 10 -30.00", "refund vision: -10 -10 30.00", "cost rent: 0 0 30.00"]
    );

    let mut march = seen(TEN_HOURS, "", "1 - - gpm 0 0 90 10 700");
    let tariff = CostAmount::PerKwh { tariff: Decimal::new(8, 1), currency: usd() };
    march.costs.push(item("power", tariff, Some("acme")));
    let made = made_of(&march, is(EntryKind::CostItem));
    assert_eq!(shown(&made.parts), ["cost power: 0 0 5.60"]);
    assert_eq!(made.prices, [(None, "0.8 USD per kWh of measured energy".to_owned())]);
}
