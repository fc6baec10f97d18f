use super::*;
use crate::bill::{Charge, charges};
use crate::statement::{Entry, EntryKey, EntryKind, Issue, SignedOff, statements};
use crate::world::{World, at, book};
use cardhour_domain::{CardTime, Money, Zone};
use proptest::prelude::*;
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};

mod laws;

const PRICES: &str = r#"
[[window]]
name = "night"
days = "mon-sun"
from = "22:00"
to = "06:00"

[[price]]
from = "2026-01-01"
name = "list"
per_card_hour = "2.50"
coefficient = "1.5"
night = "0.5"
"#;

/// A month, ready to be told.
struct Told {
    input: ReportInput,
    slots: Slots,
    book: PriceBook,
    policy: BillingPolicy,
    statements: Vec<Statement>,
}

fn march() -> Month {
    Month::parse("2026-03").unwrap()
}

impl Told {
    /// March of a world, and what `more` makes of other entries of it.
    fn march(world: &World, more: impl FnOnce(&PriceBook) -> Vec<Entry>, closed: Option<SignedOff>) -> Self {
        let book = book(PRICES);
        let slots = Slots::new(march().interval(Zone::UTC), Some(&book), Zone::UTC, None).unwrap();
        let input = world.input(&slots);
        let policy = BillingPolicy::default();
        let mut entries: Vec<Entry> = charges(&input, &slots, Some(&book)).iter().map(entry_of_charge).collect();
        entries.extend(more(&book));
        let issue = Issue {
            period: march(),
            zone: Zone::UTC,
            currency: book.currency(),
            policy: &policy,
            coverage: &BTreeMap::new(),
            lines: &BTreeMap::new(),
            closed: closed.as_ref(),
        };
        let mut statements = statements(entries, &issue);
        for statement in &mut statements {
            statement.issuer = Some("ACME Research Computing".into());
        }
        Self { input, slots, book, policy, statements }
    }

    fn month(&self) -> FocusMonth<'_> {
        let Self { input, slots, book, policy, statements } = self;
        FocusMonth { month: march(), statements, input, slots, book, policy }
    }
}

/// What a leaf of the bill is on a statement.
fn entry_of_charge(charge: &Charge) -> Entry {
    Entry {
        key: EntryKey {
            original_period: charge.month,
            kind: EntryKind::Charge,
            org: charge.org.clone(),
            project: charge.project.clone(),
            user: charge.user.clone(),
            model: charge.model.clone(),
            price_line: charge.price_line.clone(),
            window: charge.window.clone(),
            what: None,
        },
        period: charge.month,
        original_entry: None,
        price_version: charge.price_version.clone(),
        quantity: None,
        card_time: charge.card_time,
        billed_time: charge.billed_time,
        list_amount: charge.list_cost,
        amount: charge.cost.expect("the book has no holes"),
        reason: None,
    }
}

/// An entry of March that is no charge, of acme's project vision unless it says otherwise.
fn entry(kind: EntryKind, what: &str, hours: i64, amount: &str, book: &PriceBook) -> Entry {
    let micros = (amount.parse::<Decimal>().unwrap() * Decimal::from(1_000_000)).try_into().unwrap();
    let card_time = CardTime::from_part_ms(i128::from(hours) * CardTime::PART_MS_PER_CARD_HOUR);
    let is_of_cards = matches!(kind, EntryKind::Idle | EntryKind::Refund);
    Entry {
        key: EntryKey {
            original_period: march(),
            kind,
            org: Some("acme".into()),
            project: Some("vision".into()),
            user: None,
            model: is_of_cards.then(|| "T4".into()),
            price_line: is_of_cards.then(|| "1 list".into()),
            window: None,
            what: Some(what.into()),
        },
        period: march(),
        original_entry: None,
        price_version: is_of_cards.then(|| book.version().clone()),
        quantity: None,
        card_time,
        billed_time: card_time,
        list_amount: None,
        amount: Money::from_micros(micros, book.currency()),
        reason: None,
    }
}

/// One entry of each kind, and a correction of February.
fn all_kinds(book: &PriceBook) -> Vec<Entry> {
    let mut free = entry(EntryKind::Idle, "free", 100, "0.00", book);
    (free.key.org, free.key.project, free.key.price_line, free.price_version) = (None, None, None, None);
    let mut storage = entry(EntryKind::CostItem, "storage", 0, "120.50", book);
    storage.quantity = Some((Decimal::new(125, 1), "TiB-month".into()));
    let mut correction = entry(EntryKind::Charge, "", -2, "-5.00", book);
    (correction.key.original_period, correction.key.what) = (Month::parse("2026-02").unwrap(), None);
    correction.key.model = Some("T4".into());
    correction.list_amount = Some(correction.amount);
    vec![
        free,
        entry(EntryKind::Idle, "reserved", 10, "25.00", book),
        entry(EntryKind::Refund, "node_fail", -4, "-10.00", book),
        entry(EntryKind::Efficiency, "discount", 0, "-3.75", book),
        storage,
        entry(EntryKind::CostItem, "credit note", 0, "-7.00", book),
        entry(EntryKind::Recovery, "late hours", 0, "1.25", book),
        correction,
    ]
}

fn pool() -> World {
    World::jobs(
        "1 acme vision ann day   completed T4 n1 2 2026-03-01T08:00 2026-03-01T18:00
         2 acme vision ann night completed T4 n2 1 2026-03-31T21:00 2026-04-01T02:00
         3 acme speech bob night completed T4 n1 1 2026-03-05T00:00 2026-03-05T01:00
         4 acme vision ann day   completed -  n1 1 2026-02-27T00:00 2026-03-01T06:00",
    )
}

/// Some columns of a dataset, a line a row, `-` for what is absent.
fn show<R>(dataset: &Dataset<R>, columns: &str) -> Vec<String> {
    let wanted: Vec<_> = columns
        .split_whitespace()
        .map(|name| dataset.columns.iter().find(|column| column.name == name).unwrap_or_else(|| panic!("no {name}")))
        .collect();
    let line = |row: &R| {
        let cells = wanted.iter().map(|column| (column.value)(row).written().unwrap_or_else(|| "-".to_owned()));
        cells.collect::<Vec<_>>().join(" ")
    };
    dataset.rows.iter().map(line).collect()
}

/// By hand, at 2.50 by day and 1.25 by night (22:00 to 06:00): job 1 holds 2 cards for 10 h by day, 50.00; job 2 one card from 21:00 to the month's
/// end at 24:00, 1 h by day for 2.50 and 2 h by night for 2.50; job 3 one hour of night, 1.25; job 4, of no known model, the six hours of night that
/// are March's, 7.50.
#[test]
fn a_charge_is_a_row_for_each_attempt_that_held_its_time() {
    let told = Told::march(&pool(), |_| Vec::new(), None);
    let rows = told.month().cost_and_usage(Version::V1_2);
    assert_eq!(
        show(
            &rows,
            "ResourceId ResourceName SubAccountId SkuId BilledCost PricingQuantity ListUnitPrice ContractedUnitPrice"
        ),
        [
            "job:c/3/s2 3 prj:acme/speech gpu:T4 1.25 1 2.5 1.25",
            "job:c/4/s3 4 prj:acme/vision gpu 7.5 6 2.5 1.25",
            "job:c/1/s0 1 prj:acme/vision gpu:T4 50 20 2.5 2.5",
            "job:c/2/s1 2 prj:acme/vision gpu:T4 2.5 1 2.5 2.5",
            "job:c/2/s1 2 prj:acme/vision gpu:T4 2.5 2 2.5 1.25",
        ]
    );
    let times = show(&rows, "ChargePeriodStart ChargePeriodEnd BillingPeriodStart BillingPeriodEnd");
    assert_eq!(times[1], "2026-03-01T00:00:00Z 2026-03-01T06:00:00Z 2026-03-01T00:00:00Z 2026-04-01T00:00:00Z");
    // A window comes back each night: rows of one attempt in it and out of it have the attempt's time.
    assert_eq!(times[4], "2026-03-31T21:00:00Z 2026-04-01T00:00:00Z 2026-03-01T00:00:00Z 2026-04-01T00:00:00Z");
    let costs = show(&rows, "ListCost ContractedCost EffectiveCost x_CardHours x_Coefficient");
    assert_eq!(costs[4], "5 2.5 2.5 2 1.5");
    let tags = r#"{"cardhour/user":"ann","cardhour/queue":"day","cardhour/cluster":"c","cardhour/nodes":"n1"}"#;
    assert_eq!(show(&rows, "Tags")[2], tags);
    let version = told.book.version();
    assert_eq!(show(&rows, "SkuPriceId")[4], format!("gpu:T4@{version}/1 list/night"));
}

#[test]
fn every_kind_of_entry_has_its_word() {
    let told = Told::march(&World::new(), all_kinds, None);
    let rows = told.month().cost_and_usage(Version::V1_4);
    let columns = "x_EntryKind ChargeCategory ChargeClass BilledCost ListCost ContractedCost EffectiveCost PricingQuantity \
                   PricingUnit ConsumedQuantity CapacityReservationStatus BillingAccountId SubAccountName";
    assert_eq!(
        show(&rows, columns),
        [
            "correction Usage Correction -5 -5 -5 -5 -2 GPU-Hours -2 - org:acme vision",
            "idle Usage - 25 25 25 25 10 GPU-Hours 10 Unused org:acme vision",
            "refund Credit - -10 -10 -10 -10 - - - - org:acme vision",
            "efficiency Adjustment - -3.75 0 0 -3.75 - - - - org:acme vision",
            "cost_item Credit - -7 -7 -7 -7 - - - - org:acme vision",
            "cost_item Usage - 120.5 120.5 120.5 120.5 1 Units 1 - org:acme vision",
            "recovery Adjustment - 1.25 1.25 1.25 1.25 - - - - org:acme vision",
            "idle Usage - 0 0 0 0 1 Units 100 - platform -",
        ]
    );
    let reservations = show(&rows, "CapacityReservationId CapacityReservationStatus");
    let reserved: Vec<&String> = reservations.iter().filter(|shown| *shown != "- -").collect();
    assert_eq!(reserved, ["rsv:acme/vision Unused"]);
    let correction = show(&rows, "ChargePeriodStart ChargePeriodEnd BillingPeriodStart");
    assert_eq!(correction[0], "2026-02-01T00:00:00Z 2026-03-01T00:00:00Z 2026-03-01T00:00:00Z");
}

#[test]
fn an_invoice_line_is_an_entry_and_a_correction_names_the_statement_it_corrects() {
    let closed = SignedOff { at: at("2026-04-03T09:30:00.500Z"), by: "eve".into(), comment: None, sha256: "0".into() };
    let told = Told::march(&pool(), all_kinds, Some(closed));
    let lines = told.month().invoice_detail();
    let entries: Vec<&Entry> = told.statements.iter().flat_map(|statement| &statement.entries).collect();
    assert_eq!(lines.rows.len(), entries.len());
    let shown = show(&lines, "InvoiceDetailId BilledCost");
    assert!(shown.iter().zip(&entries).all(|(shown, entry)| shown.starts_with(entry.id().as_str())));
    let references = show(&lines, "InvoiceId ReferenceInvoiceId InvoiceIssueStatus InvoiceIssueDate");
    let of_february = |line: &&String| line.contains("CH-2026-02");
    assert_eq!(
        references.iter().filter(of_february).collect::<Vec<_>>(),
        ["CH-2026-03-acme CH-2026-02-acme Issued 2026-04-03T09:30:00Z"]
    );
    assert_eq!(
        show(&told.month().billing_period(), "BillingPeriodStatus BillingPeriodStart BillingPeriodLastUpdated"),
        ["Closed 2026-03-01T00:00:00Z 2026-04-03T09:30:01Z"]
    );
    // Cost and Usage tells of the same lines.
    let rows = told.month().cost_and_usage(Version::V1_4);
    let ids = |shown: Vec<String>| shown.into_iter().collect::<BTreeSet<_>>();
    assert_eq!(ids(show(&rows, "InvoiceDetailId")), ids(show(&lines, "InvoiceDetailId")));
}

/// The lists are those of the specification: 1.2's from the rule model 1.2.0.1, 1.4's from its column pages.
#[test]
fn columns_are_those_of_the_specification() {
    let ours: Vec<String> = COST_AND_USAGE
        .iter()
        .filter(|column| column.level != Level::Ours && column.versions.contains(&Version::V1_4))
        .map(|column| {
            let kind = match column.kind {
                Kind::Text => "String",
                Kind::Decimal { .. } => "Decimal",
                Kind::Instant => "Date/Time",
                Kind::Json => "JSON",
            };
            format!("{} {:?} {kind} {}", column.name, column.level, if column.may_be_null { "null" } else { "never" })
        })
        .collect();
    let theirs: Vec<&str> = include_str!("tests/columns-1.4.txt").lines().collect();
    assert_eq!(ours, theirs);
    assert_eq!(theirs.iter().filter(|line| line.contains(" Mandatory ")).count(), 21);

    let is_1_2 = |column: &&Column<Line>| column.level != Level::Ours && column.versions.contains(&Version::V1_2);
    let ours: Vec<&str> = COST_AND_USAGE.iter().filter(is_1_2).map(|column| column.name).collect();
    assert_eq!(ours, include_str!("tests/columns-1.2.txt").lines().collect::<Vec<_>>());
}

#[test]
fn our_columns_are_behind_those_of_focus_and_begin_with_x() {
    let is_ours: Vec<bool> = COST_AND_USAGE.iter().map(|column| column.level == Level::Ours).collect();
    assert!(is_ours.is_sorted(), "FOCUS's first");
    assert!(COST_AND_USAGE.iter().all(|column| (column.level == Level::Ours) == column.name.starts_with("x_")));
    assert!(COST_AND_USAGE.iter().all(|column| column.name.len() <= 50));
}

/// A site's users choose the names of jobs, queues, projects and labels.
#[test]
fn a_formula_in_a_name_is_harmless_in_csv() {
    let formula = "=HYPERLINK(\"http://evil\")";
    let mut world = pool();
    for attempt in &mut world.attempts {
        attempt.key = cardhour_domain::AttemptKey::new(formula, formula, "s1");
        for name in [&mut attempt.org, &mut attempt.project, &mut attempt.user, &mut attempt.queue, &mut attempt.class]
        {
            *name = Some(formula.into());
        }
        attempt.labels.insert("=1+1".into(), formula.into());
    }
    for stretch in &mut world.stretches {
        (stretch.cluster, stretch.model) = (formula.into(), Some("@SUM(A1)".into()));
    }
    let told = Told::march(&world, |_| Vec::new(), None);
    let (rows, lines) = (told.month().cost_and_usage(Version::V1_4), told.month().invoice_detail());
    for csv in [rows.csv(), lines.csv(), told.month().billing_period().csv()] {
        for record in ::csv::Reader::from_reader(&csv[..]).records() {
            for cell in &record.unwrap() {
                assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell}");
            }
        }
    }
    assert_eq!(show(&rows, "SubAccountName")[0], formula, "only the CSV has the apostrophe");
    assert!(String::from_utf8(rows.csv()).unwrap().contains("\"'=HYPERLINK(\"\"http://evil\"\")\""));
}

/// What was held when the month was closed and what is known now are two things: the rows of one are not made of the other.
#[test]
fn a_closed_charge_whose_usage_has_changed_since_is_one_row_without_a_job() {
    let mut told = Told::march(&pool(), |_| Vec::new(), None);
    let job_3 = told.input.cells.iter().position(|cell| cell.attempt == Some(2)).unwrap();
    told.input.cells.remove(job_3);
    let rows =
        show(&told.month().cost_and_usage(Version::V1_2), "ResourceId SubAccountName BilledCost PricingQuantity");
    assert_eq!(rows[0], "- speech 1.25 1");
    assert_eq!(rows.len(), 5);
}

#[test]
fn the_metadata_names_each_file_and_has_no_time_but_the_months() {
    let told = Told::march(&pool(), all_kinds, None);
    let month = told.month();
    let made = || {
        let rows = month.cost_and_usage(Version::V1_4);
        let csv = rows.csv();
        let file = FileOfDelivery::new(&rows, "a.csv".to_owned(), "csv", csv.len(), "ab".to_owned());
        metadata(&month, Version::V1_4, "0.1.0", &[file], Some("simulated"))
    };
    assert_eq!(made(), made());
    let object: serde_json::Value = serde_json::from_str(&made()).unwrap();
    assert_eq!(object["FocusVersion"], "1.4");
    assert_eq!((&object["x_Files"][0]["Rows"], &object["x_Note"]), (&13.into(), &"simulated".into()));
    assert_eq!(object["Schema"][0]["CreationDate"], serde_json::Value::Null);
    assert_eq!(object["Schema"][0]["ColumnDefinition"][0]["ColumnName"], "AllocatedMethodDetails");
    assert_eq!(object["Recency"][0]["DatasetInstanceComplete"], false);
    // The last that is known of March: job 2 held a card until its end.
    assert_eq!(object["Recency"][0]["RecencyLastUpdated"], "2026-04-01T00:00:00Z");
}
