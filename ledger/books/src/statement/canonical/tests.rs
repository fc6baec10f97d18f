use super::*;
use crate::statement::{BillingPolicy, EntryKind, Issue, statements};
use cardhour_domain::{CardTime, Currency, Month, Zone};
use std::collections::BTreeMap;

/// Every column, a text that a spreadsheet would take for a formula, and one with a comma and quotes.
#[test]
fn a_month_is_written_as_before() {
    let currency = Currency::parse("CNY").unwrap();
    let march = Month::parse("2026-03").unwrap();
    let charge = Entry {
        key: EntryKey {
            original_period: march,
            kind: EntryKind::Charge,
            org: Some("lab, \"north\"".into()),
            project: Some("=1+1".into()),
            user: Some("ann".into()),
            model: Some("NVIDIA H200".into()),
            price_line: Some("1".into()),
            window: Some("off-peak".into()),
            what: None,
        },
        period: march,
        original_entry: None,
        price_version: Some("0123456789ab".into()),
        quantity: None,
        card_time: CardTime::from_part_ms(36_000),
        billed_time: CardTime::from_part_ms(35_000),
        list_amount: Some(Money::from_micros(18_500_000, currency)),
        amount: Money::from_micros(11_100_000, currency),
        reason: None,
    };
    let correction = Entry {
        key: EntryKey { original_period: Month::parse("2026-02").unwrap(), ..charge.key.clone() },
        original_entry: Some(charge.id()),
        amount: Money::from_micros(-100_000, currency),
        list_amount: None,
        reason: Some("was 0.20".into()),
        ..charge.clone()
    };
    let (policy, coverage) = (BillingPolicy::default(), BTreeMap::new());
    let issue = Issue {
        period: march,
        zone: Zone::UTC,
        currency,
        policy: &policy,
        coverage: &coverage,
        lines: &BTreeMap::new(),
        closed: None,
    };
    let written = String::from_utf8(canonical_csv(&statements(vec![charge, correction], &issue))).unwrap();
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines[0], COLUMNS.join(","));
    let owner = r#""lab, ""north""",=1+1,ann,NVIDIA H200,1,0123456789ab,off-peak,,,,36000,35000"#;
    let number = r#""CH-2026-03-lab, ""north""""#;
    let ids = ["33d7b68e9a6d4df683073e51a5c22e05", "712e8ff80a6577c95b3d176e3fc53f82"];
    assert_eq!(
        lines[1],
        format!("{number},{},correction,2026-03,2026-02,{},charge,{owner},,-0.10,CNY,was 0.20", ids[0], ids[1])
    );
    assert_eq!(lines[2], format!("{number},{},charge,2026-03,2026-03,,,{owner},18.50,11.10,CNY,", ids[1]));
}
