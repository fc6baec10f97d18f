use super::*;
use crate::statement::{BillingPolicy, Entry, EntryKey, EntryKind, Issue, statements};
use cardhour_domain::{Currency, Money, Month, Zone};
use std::collections::BTreeMap;

/// By hand: 90 minutes of a card are 1.5 card-hours, 18,018,000 parts × 5,400,000 ms = 97,297,200,000,000.
#[test]
fn an_entry_is_a_row_with_its_hours_and_its_raw_card_time() {
    let (month, currency) = (Month::parse("2026-03").unwrap(), Currency::parse("CNY").unwrap());
    let entry = Entry {
        key: EntryKey {
            original_period: month,
            kind: EntryKind::Charge,
            org: Some("lab".into()),
            project: Some("=HYPERLINK(\"http://x\")".into()),
            user: None,
            model: None,
            price_line: None,
            window: None,
            what: None,
        },
        period: month,
        original_entry: None,
        price_version: None,
        quantity: None,
        card_time: CardTime::from_part_ms(97_297_200_000_000),
        billed_time: CardTime::ZERO,
        list_amount: None,
        amount: Money::from_micros(27_750_000, currency),
        reason: None,
    };
    let policy = "fiscal_year_starts = \"04\"\n[statement]\nissuer = \"GPU Platform\"\ntax_included = false\npayment_terms = \"30 days\"\n";
    let (policy, coverage) = (BillingPolicy::parse(policy).unwrap(), BTreeMap::new());
    // Of its 90 minutes, 81 are proven, and 45 were seen.
    let part = |minutes: i128| CardTime::from_part_ms(97_297_200_000_000 / 90 * minutes);
    let lines = BTreeMap::from([(entry.key.clone(), Coverage { held: part(90), unproven: part(9), unseen: part(45) })]);
    let issue = Issue {
        period: month,
        zone: Zone::UTC,
        currency,
        policy: &policy,
        coverage: &coverage,
        lines: &lines,
        closed: None,
    };
    let table = export_table(&statements(vec![entry], &issue));
    let of = |name: &str| {
        let column = table.columns.iter().position(|column| column.name == name).unwrap();
        (table.columns[column].kind, table.rows[0][column].clone())
    };
    let decimal = |text| Value::Decimal(Decimal::from_str_exact(text).unwrap());
    assert_eq!(of("card_hours"), (Kind::Hours, decimal("1.500000")));
    assert_eq!(of("billed_card_hours"), (Kind::Hours, decimal("0.000000")));
    assert_eq!(of("card_time"), (Kind::Text, Value::Text("97297200000000".into())));
    assert_eq!(of("amount"), (Kind::Money, decimal("27.75")));
    assert_eq!(of("list_amount"), (Kind::Money, Value::Absent));
    assert_eq!(of("project"), (Kind::Text, Value::Text("=HYPERLINK(\"http://x\")".into())));
    // March 2026 is the last month of the year that began in April 2025; of tax there is no note.
    for (column, said) in [
        ("account", "lab"),
        ("issuer", "GPU Platform"),
        ("fiscal_year", "2025/26"),
        ("tax_included", "false"),
        ("payment_terms", "30 days"),
    ] {
        assert_eq!(of(column), (Kind::Text, Value::Text(said.into())), "{column}");
    }
    assert_eq!(of("tax_note"), (Kind::Text, Value::Absent));
    assert_eq!(of("coverage"), (Kind::Ratio, decimal("0.900000")));
    assert_eq!(of("use_coverage"), (Kind::Ratio, decimal("0.500000")));
    assert_eq!(table.columns.len(), table.rows[0].len());
}
