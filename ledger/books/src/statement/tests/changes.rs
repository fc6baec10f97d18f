//! Corrections, down to whose doing they are: each month worked out by hand, as it was closed and as later facts have it.

use super::*;
use crate::world::at;

/// What a line's corrections come from: a part a line, then what stands beside it after a line of dashes.
#[track_caller]
fn check_changes(before: &March, after: &March, is_of: impl Fn(&Entry) -> bool, expected: &str) -> Changes {
    let ((slots, was), (_, is)) = (before.input(), after.input());
    let of = |march| {
        let (month, slots, rates) = (month(), &slots, None);
        let March { book, policy, costs, sick, wrongful, .. }: &March = march;
        move |input| MonthOfBooks { month, input, slots, book, policy, costs, sick, wrongful, rates }
    };
    let (was, is) = (of(before)(&was), of(after)(&is));
    let (standing, fresh) = (draft(&was).entries, draft(&is).entries);
    let made = corrections(month().next(), &standing, &fresh);
    let one = made.iter().filter(|entry| is_of(entry)).collect::<Vec<_>>();
    let [correction] = one[..] else { panic!("{} corrections: {:?}", one.len(), lines(&made)) };
    let changes = Comparison::new(&was, &is).of_line(&correction.key);
    let amount = |figures: Option<ChangedFigures>| figures.and_then(|of| of.amount).map_or(0, Money::micros);
    assert_eq!(amount(changes.after) - amount(changes.before), correction.amount.micros(), "the line's own figures");
    if changes.parts.iter().all(|part| part.before.or(part.after).is_some_and(|of| of.amount.is_some())) {
        let sum: i128 = changes.parts.iter().map(|part| amount(part.after) - amount(part.before)).sum();
        assert_eq!(sum, correction.amount.micros(), "LED-8: the parts add up to the correction");
    }
    let mut shown: Vec<String> = changes.parts.iter().map(part).collect();
    if !changes.beside.is_empty() {
        shown.push("--".to_owned());
        shown.extend(changes.beside.iter().map(part));
    }
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(shown, expected);
    changes
}

/// `WHAT: CARD-HOURS AMOUNT -> CARD-HOURS AMOUNT (what is said otherwise)`, `-` for what isn't there.
fn part(part: &Changed) -> String {
    let source = match &part.source {
        ChangedSource::Attempt(key) => {
            key.as_ref().map_or("no job", |key| key.job()).trim_start_matches("c/").to_owned()
        }
        ChangedSource::Cards { node, state, reservation, .. } => {
            let state = state.map_or("capacity", CardState::name);
            let of = reservation.as_ref().map_or_else(String::new, |name| format!(" by {name}"));
            format!("{} {state}{of}", node.as_deref().unwrap_or("-"))
        }
        ChangedSource::Reservation { name, .. } => format!("reservation {name}"),
        ChangedSource::Cost(name) => format!("cost {name}"),
        ChangedSource::Line(key) => format!("{} {}", key.kind.name(), key.project.as_deref().unwrap_or("-")),
    };
    let figures = |of: Option<ChangedFigures>| {
        of.map_or_else(
            || "-".to_owned(),
            |of| {
                let amount = of.amount.map_or_else(|| "?".to_owned(), |amount| amount.to_minor_string());
                format!("{} {amount}", of.card_time.card_hours().normalize())
            },
        )
    };
    let said = |told: &Option<Told>| match told {
        None => "-".to_owned(),
        Some(Told::Name(name)) => name.to_string(),
        Some(Told::At(at)) => at.to_string(),
    };
    let told: Vec<String> = part
        .told
        .iter()
        .map(|told| format!(" {} {} is {}", told.what, said(&told.before), said(&told.after)))
        .collect();
    format!("{source}: {} -> {}{}", figures(part.before), figures(part.after), told.concat())
}

const OF_VISION: &str = "1 acme vision ann q completed T4 n1 1 2026-03-10T00:00 2026-03-10T10:00
                         2 acme vision ann q completed T4 n1 1 2026-03-11T00:00 2026-03-11T05:00";

/// At 2.00: job 2 turns out to be of speech (10.00 less for vision), and job 3 comes late (4 h, 8.00 more): 30.00 is 28.00. Job 1 is as it was, and isn't named.
#[test]
fn a_correction_names_the_attempts_that_made_it_and_no_others() {
    let later = format!(
        "{}\n3 acme vision ann q completed T4 n1 1 2026-03-12T00:00 2026-03-12T04:00",
        OF_VISION.replace("2 acme vision", "2 acme speech")
    );
    let (before, after) = (march(OF_VISION, "2", ""), march(&later, "2", ""));
    let of = |project: &'static str| move |entry: &Entry| entry.key.project.as_deref() == Some(project);
    let changes = check_changes(
        &before,
        &after,
        of("vision"),
        "2: 5 10.00 -> - project vision is speech
         3: - -> 4 8.00",
    );
    assert_eq!(changes.price.as_deref(), Some("price 1: 2 USD per card-hour from 2016-01-01 00:00 UTC, coefficient 1"));
    check_changes(&before, &after, of("speech"), "2: - -> 5 10.00 project vision is speech");
}

/// At 2.00: job 2's node failed, as is booked later, and half of its 10.00 is given back; it ended two hours earlier, and of the 6.00 half is 3.00.
#[test]
fn a_refund_that_comes_later_names_the_attempt_whose_node_failed() {
    let policy = "[refunds]\nnode_fail = \"0.5\"\n";
    let later =
        OF_VISION.replace("2 acme vision ann q completed", "2 acme vision ann q node_fail").replace("T05:00", "T03:00");
    let (before, after) = (march(OF_VISION, "2", policy), march(&later, "2", policy));
    check_changes(
        &before,
        &after,
        |entry| entry.key.kind == EntryKind::Refund,
        "2: - -> -3 -3.00 state completed is node_fail end 2026-03-11T05:00:00Z is 2026-03-11T03:00:00Z",
    );
    check_changes(
        &before,
        &after,
        |entry| entry.key.kind == EntryKind::Charge,
        "2: 5 10.00 -> 3 6.00 state completed is node_fail end 2026-03-11T05:00:00Z is 2026-03-11T03:00:00Z",
    );
}

/// A card at 1.00 was free for 27 hours; a late job had it for 4 of them, and for 3 it was out of service: 27.00 is 20.00. Cards of another node are not named.
#[test]
fn a_correction_of_idle_cards_names_the_cards_and_who_had_them() {
    let policy = "[capacity]\nfree = \"line\"\n";
    let before = march(TEN_HOURS, "1", policy)
        .with(CardState::Free, "c n1 T4 1 2026-03-11T00:00 2026-03-12T03:00")
        .with(CardState::Free, "c n2 T4 1 2026-03-11T00:00 2026-03-12T00:00");
    let later = format!("{TEN_HOURS}\n2 acme speech bob q completed T4 n1 1 2026-03-11T00:00 2026-03-11T04:00");
    let after = march(&later, "1", policy)
        .with(CardState::Free, "c n1 T4 1 2026-03-11T04:00 2026-03-12T00:00")
        .with(CardState::Down, "c n1 T4 1 2026-03-12T00:00 2026-03-12T03:00")
        .with(CardState::Free, "c n2 T4 1 2026-03-11T00:00 2026-03-12T00:00");
    check_changes(
        &before,
        &after,
        |entry| entry.key.kind == EntryKind::Idle,
        "n1 free: 27 27.00 -> 20 20.00
         --
         2: - -> 4 ?
         n1 down: - -> 3 ?",
    );
}

/// Two cards at 3.00, reserved for ten hours: globex was said to have had them, and it was nova.
#[test]
fn a_correction_of_reserved_cards_names_the_reservation_that_is_said_otherwise() {
    let of = |org: &str| {
        let mut march = march(TEN_HOURS, "3", "[capacity]\nreserved = \"owner\"\n")
            .with(CardState::Reserved, "c n1 T4 2 2026-03-11T00:00 2026-03-11T10:00");
        march.reservations.push(Reservation {
            cluster: "c".into(),
            name: "week".into(),
            during: range("2026-03-11", "2026-03-12"),
            nodes: Vec::new(),
            cards: None,
            model: None,
            org: Some(org.into()),
            project: None,
            user: None,
        });
        march
    };
    check_changes(
        &of("globex"),
        &of("nova"),
        |entry| entry.key.org.as_deref() == Some("globex"),
        "n1 reserved by week: 20 60.00 -> -
         --
         reservation week: - -> - org globex is nova",
    );
}

/// Power was billed with 100.00, and the bill that came was of 130.00; in absorb mode, rates stand, and the platform bears the 30.00.
#[test]
fn a_correction_of_a_cost_names_the_item() {
    let of_rent = |amount: &str| march(TEN_HOURS, "2", "").cost("rent", amount, Some("acme"));
    let is_cost = |entry: &Entry| entry.key.kind == EntryKind::CostItem;
    check_changes(&of_rent("100"), &of_rent("130"), is_cost, "cost rent: 0 100.00 -> 0 130.00");

    let of_power = |amount: &str| march(TEN_HOURS, "2", "mode = \"absorb\"\n").cost("power", amount, None);
    let (before, after) = (of_power("100"), of_power("130"));
    let rates = before.draft().rates;
    let ((slots, was), (_, is)) = (before.input(), after.input());
    let books = |input, costs, rates| MonthOfBooks {
        month: month(),
        input,
        slots: &slots,
        book: &before.book,
        policy: &before.policy,
        costs,
        sick: &before.sick,
        wrongful: &before.wrongful,
        rates,
    };
    let (was, is) = (books(&was, &before.costs, None), books(&is, &after.costs, rates.as_ref()));
    let made = corrections(month().next(), &draft(&was).entries, &draft(&is).entries);
    let [recovery] = &made[..] else { panic!("{:?}", lines(&made)) };
    let changes = Comparison::new(&was, &is).of_line(&recovery.key);
    assert_eq!(changes.parts.iter().map(part).collect::<Vec<_>>(), ["cost power: 0 100.00 -> 0 130.00"]);
}

/// The books have an attempt of a closed month as it was and as it is: what is told is of the one that the month was closed with.
#[test]
fn what_was_told_is_of_the_attempt_as_the_month_was_closed_with_it() {
    let (before, after) = (march(TEN_HOURS, "2", ""), march(&TEN_HOURS.replace("T10:00", "T08:00"), "2", ""));
    let ((slots, mut was), (_, is)) = (before.input(), after.input());
    was.attempts.push(is.attempts[0].clone());
    let books = |input| MonthOfBooks {
        month: month(),
        input,
        slots: &slots,
        book: &before.book,
        policy: &before.policy,
        costs: &[],
        sick: &before.sick,
        wrongful: &before.wrongful,
        rates: None,
    };
    let (was, is) = (books(&was), books(&is));
    let key = draft(&is).entries[0].key.clone();
    let changes = Comparison::new(&was, &is).of_line(&key);
    let told = ToldOtherwise {
        what: "end",
        before: Some(Told::At(at("2026-03-10T10:00"))),
        after: Some(Told::At(at("2026-03-10T08:00"))),
    };
    assert_eq!(changes.parts[0].told, [told]);
}
