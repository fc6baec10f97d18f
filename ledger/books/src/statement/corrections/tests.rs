use super::*;
use crate::statement::EntryKind;

fn month(text: &str) -> Month {
    Month::parse(text).unwrap()
}

/// A charge of project `vision`, `hours` whole cards at a price that comes to `cents`.
fn charge(user: &str, hours: i64, cents: i128) -> Entry {
    let currency = Currency::parse("CNY").unwrap();
    let card_time = CardTime::from_part_ms(i128::from(hours) * 18_018_000 * 3_600_000);
    Entry {
        key: EntryKey {
            original_period: month("2026-03"),
            kind: EntryKind::Charge,
            org: Some("lab".into()),
            project: Some("vision".into()),
            user: Some(user.into()),
            model: None,
            price_line: Some("1".into()),
            window: None,
            what: None,
        },
        period: month("2026-03"),
        original_entry: None,
        price_version: Some("v".into()),
        quantity: None,
        card_time,
        billed_time: card_time,
        list_amount: Some(Money::from_micros(cents * 10_000, currency)),
        amount: Money::from_micros(cents * 10_000, currency),
        reason: None,
    }
}

/// T14. By hand: ann's 10 hours at 18.50 became 12 hours, 222.00 for 185.00, so 37.00 more; bob's 55.50 are gone; cy's 18.50 are new; dan's stay.
#[test]
fn t14_a_late_fact_is_a_correction_in_the_open_month_with_the_original_period() {
    let standing = [charge("ann", 10, 18_500), charge("bob", 3, 5_550), charge("dan", 1, 1_850)];
    let fresh = [charge("ann", 12, 22_200), charge("cy", 1, 1_850), charge("dan", 1, 1_850)];
    let made = corrections(month("2026-04"), &standing, &fresh);
    let shown: Vec<_> = made
        .iter()
        .map(|entry| {
            let user = entry.key.user.as_deref().unwrap();
            (user, entry.amount.to_minor_string(), entry.card_time.card_hours().normalize().to_string())
        })
        .collect();
    let expected = [("ann", "37.00", "2"), ("bob", "-55.50", "-3"), ("cy", "18.50", "1")];
    assert_eq!(shown, expected.map(|(user, amount, hours)| (user, amount.to_owned(), hours.to_owned())));
    assert!(made.iter().all(|entry| entry.kind() == EntryKind::Correction && entry.period == month("2026-04")));
    assert!(made.iter().all(|entry| entry.key.original_period == month("2026-03")));
    assert_eq!(made[0].original_entry, Some(standing[0].id()));
    assert_eq!(made[2].original_entry, None);
    assert_eq!(made[0].reason.as_deref(), Some("was 185.00 CNY for 10 card-hours, is 222.00 CNY for 12 card-hours"));
}

/// M25. A node's failure is told after the close: what is given back in April points at March's charge, of which nothing else changes.
#[test]
fn m25_a_refund_that_comes_late_points_at_the_charge_that_it_gives_back() {
    let standing = [charge("ann", 10, 18_500), charge("bob", 3, 5_550)];
    let mut refund = charge("ann", -10, -18_500);
    refund.key = EntryKey { kind: EntryKind::Refund, what: Some("node_fail".into()), ..refund.key };
    refund.list_amount = None;
    let fresh = [standing[0].clone(), standing[1].clone(), refund];
    let made = corrections(month("2026-04"), &standing, &fresh);
    assert_eq!(made.len(), 1);
    assert_eq!(made[0].amount.to_minor_string(), "-185.00");
    assert_eq!(made[0].original_entry, Some(standing[0].id()));
    // Given back again in part later, it points at the same charge: its own first entry is none of March's.
    let standing = [standing[0].clone(), standing[1].clone(), made[0].clone()];
    let again = corrections(month("2026-05"), &standing, &fresh[..2]);
    assert_eq!((again.len(), again[0].amount.to_minor_string()), (1, "185.00".to_owned()));
    assert_eq!(again[0].original_entry, Some(standing[0].id()));
}

#[test]
fn a_correction_that_stands_is_not_made_again() {
    let mut standing = vec![charge("ann", 10, 18_500)];
    let fresh = [charge("ann", 12, 22_200)];
    standing.extend(corrections(month("2026-04"), &standing, &fresh));
    assert_eq!(corrections(month("2026-05"), &standing, &fresh), []);
    let back = corrections(month("2026-05"), &standing, &[charge("ann", 10, 18_500)]);
    assert_eq!(back.iter().map(|entry| entry.amount.to_minor_string()).collect::<Vec<_>>(), ["-37.00"]);
    assert_eq!(back[0].original_entry, Some(standing[0].id()), "it points at the original, not at the correction");
}

/// By hand: of ten hours two turned out to be an outage, held and not billed: 148.00 for eight.
#[test]
fn a_correction_by_an_outage_quotes_what_is_billed() {
    let mut after = charge("ann", 10, 14_800);
    after.billed_time = charge("ann", 8, 0).card_time;
    let made = corrections(month("2026-04"), &[charge("ann", 10, 18_500)], &[after]);
    let said = "was 185.00 CNY for 10 card-hours, is 148.00 CNY for 8 card-hours billed of 10 held";
    assert_eq!(made[0].reason.as_deref(), Some(said));
}
