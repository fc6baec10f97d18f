//! The same small bill in each format, as it is read.

use super::*;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ::parquet::data_type::AsBytes;
use arrow::array::{BooleanArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::DataType;
use cardhour_books::table::{Column, Kind, Value};
use insta::assert_snapshot;
use rust_decimal::Decimal;
use std::sync::Arc;

fn bill() -> Table {
    let column = |name: &str, kind| Column { name: name.to_owned(), kind };
    let text = |text: &str| Value::Text(text.into());
    let decimal = |text: &str| Value::Decimal(text.parse::<Decimal>().unwrap());
    Table {
        title: "bill, 2026-03, Asia/Shanghai".to_owned(),
        columns: vec![
            column("project", Kind::Text),
            column("line", Kind::Text),
            column("jobs", Kind::Count),
            column("billed_card_hours", Kind::Hours),
            column("efficiency", Kind::Ratio),
            column("coverage", Kind::Ratio),
            column("cost", Kind::Money),
            column("currency", Kind::Text),
        ],
        rows: vec![
            vec![
                text("卡时"),
                text("a1b2"),
                Value::Count(12_040),
                decimal("135584.801389"),
                Value::Absent,
                decimal("0.999999"),
                decimal("2508318.83"),
                text("CNY"),
            ],
            vec![
                text("=1+1, \"x\"|<b>\u{1b}[31m"),
                text("c3d4"),
                Value::Count(1),
                decimal("0.000028"),
                Value::Absent,
                decimal("1.000000"),
                Value::Absent,
                Value::Absent,
            ],
        ],
        total: Some(vec![
            Value::Absent,
            Value::Absent,
            Value::Count(12_041),
            decimal("135584.801417"),
            Value::Absent,
            decimal("0.999999"),
            decimal("2508318.83"),
            text("CNY"),
        ]),
        notes: vec!["no price for model \"A100\" from 2026-03-01".to_owned()],
    }
}

fn text(format: Format, style: Style) -> String {
    String::from_utf8(report(&bill(), format, style).unwrap()).unwrap()
}

#[test]
fn a_table_stands_in_columns_with_its_sum_below() {
    assert_snapshot!(text(Format::Table, Style::default()), @r#"
    bill, 2026-03, Asia/Shanghai
                                 billed card
    project               jobs         hours  coverage      cost CNY
    ──────────────────  ──────  ────────────  ────────  ────────────
    卡时                12,040  135,584.8014    99.9 %  2,508,318.83
    =1+1, "x"|<b>�[31m       1      0.000028   100.0 %
    ──────────────────  ──────  ────────────  ────────  ────────────
    total               12,041  135,584.8014    99.9 %  2,508,318.83

    no price for model "A100" from 2026-03-01
    not known here, so not shown: efficiency
    where a line comes from: cardhour trace 'a1b2'
    "#);
}

#[test]
fn a_narrow_terminal_folds_texts_and_never_numbers() {
    let narrow = text(Format::Table, Style { color: false, width: Some(62) });
    assert_snapshot!(narrow, @r#"
    bill, 2026-03, Asia/Shanghai
                               billed card
    project             jobs         hours  coverage      cost CNY
    ────────────────  ──────  ────────────  ────────  ────────────
    卡时              12,040  135,584.8014    99.9 %  2,508,318.83
    =1+1,                  1      0.000028   100.0 %
    "x"|<b>�[31m
    ────────────────  ──────  ────────────  ────────  ────────────
    total             12,041  135,584.8014    99.9 %  2,508,318.83

    no price for model "A100" from 2026-03-01
    not known here, so not shown: efficiency
    where a line comes from: cardhour trace 'a1b2'
    "#);
}

#[test]
fn a_terminal_too_narrow_for_all_goes_without_the_least_and_says_so() {
    let narrow = text(Format::Table, Style { color: false, width: Some(54) });
    assert_snapshot!(narrow, @r#"
    bill, 2026-03, Asia/Shanghai
    project               jobs  coverage      cost CNY
    ──────────────────  ──────  ────────  ────────────
    卡时                12,040    99.9 %  2,508,318.83
    =1+1, "x"|<b>�[31m       1   100.0 %
    ──────────────────  ──────  ────────  ────────────
    total               12,041    99.9 %  2,508,318.83

    no price for model "A100" from 2026-03-01
    not known here, so not shown: efficiency
    where a line comes from: cardhour trace 'a1b2'
    no room here for: billed card hours
    "#);
}

#[test]
fn colours_are_on_a_terminal_alone() {
    assert!(!text(Format::Table, Style::default()).contains('\u{1b}'));
    assert!(text(Format::Table, Style { color: true, width: None }).contains("\u{1b}[1m"));
}

#[test]
fn csv_has_every_column_and_digit_and_texts_as_they_are() {
    assert_snapshot!(text(Format::Csv, Style::default()).replace('\u{1b}', "ESC"), @r#"
    project,line,jobs,billed_card_hours,efficiency,coverage,cost,currency
    卡时,a1b2,12040,135584.801389,,0.999999,2508318.83,CNY
    "=1+1, ""x""|<b>ESC[31m",c3d4,1,0.000028,,1.000000,,
    "#);
}

#[test]
fn json_has_decimals_as_strings_counts_as_numbers_and_null_for_absent() {
    let json = text(Format::Json, Style::default());
    assert_snapshot!(json, @r#"
    [
    {"project": "卡时", "line": "a1b2", "jobs": 12040, "billed_card_hours": "135584.801389", "efficiency": null, "coverage": "0.999999", "cost": "2508318.83", "currency": "CNY"},
    {"project": "=1+1, \"x\"|<b>\u001b[31m", "line": "c3d4", "jobs": 1, "billed_card_hours": "0.000028", "efficiency": null, "coverage": "1.000000", "cost": null, "currency": null}
    ]
    "#);
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read[1]["project"], "=1+1, \"x\"|<b>\u{1b}[31m");
    assert_eq!(read[1]["cost"], serde_json::Value::Null);
}

#[test]
fn no_rows_are_an_empty_array_and_a_header() {
    let none = Table { rows: Vec::new(), total: None, ..bill() };
    assert_eq!(report(&none, Format::Json, Style::default()).unwrap(), b"[]\n");
    let csv = String::from_utf8(report(&none, Format::Csv, Style::default()).unwrap()).unwrap();
    assert_eq!(csv, "project,line,jobs,billed_card_hours,efficiency,coverage,cost,currency\n");
    assert!(String::from_utf8(report(&none, Format::Table, Style::default()).unwrap()).unwrap().contains("(no rows)"));
}

#[test]
fn markdown_escapes_what_would_be_a_mark() {
    assert_snapshot!(text(Format::Md, Style::default()), @r#"
    ### bill, 2026-03, Asia/Shanghai

    | project | jobs | billed card hours | coverage | cost CNY |
    | --- | ---: | ---: | ---: | ---: |
    | 卡时 | 12,040 | 135,584.8014 | 99.9 % | 2,508,318.83 |
    | '=1+1, "x"\|&lt;b&gt; [31m | 1 | 0.000028 | 100.0 % |  |
    | **total** | **12,041** | **135,584.8014** | **99.9 %** | **2,508,318.83** |

    - no price for model "A100" from 2026-03-01
    - not known here, so not shown: efficiency
    - where a line comes from: cardhour trace 'a1b2'
    "#);
}

#[test]
fn html_is_one_page_in_which_names_are_text() {
    let page = text(Format::Html, Style::default());
    assert!(!page.contains("<b>") && !page.contains("<script") && !page.contains("src="));
    let body = &page[page.find("<main>").unwrap()..page.find("</main>").unwrap()];
    assert_snapshot!(body.replace('\u{1b}', "ESC"), @r#"
    <main>
    <h1>bill, 2026-03, Asia/Shanghai</h1>
    <div class="wide">
    <table>
    <thead><tr><th scope="col" class="">project</th><th scope="col" class="n">jobs</th><th scope="col" class="n">billed card hours</th><th scope="col" class="n">coverage</th><th scope="col" class="n">cost CNY</th></tr></thead>
    <tbody>
    <tr><td class="">卡时</td><td class="n">12,040</td><td class="n">135,584.8014</td><td class="n">99.9 %</td><td class="n">2,508,318.83</td></tr>
    <tr><td class="">&#39;=1+1, &#34;x&#34;|&#60;b&#62;ESC[31m</td><td class="n">1</td><td class="n">0.000028</td><td class="n">100.0 %</td><td class="n"></td></tr>
    </tbody>
    <tfoot><tr><td class="">total</td><td class="n">12,041</td><td class="n">135,584.8014</td><td class="n">99.9 %</td><td class="n">2,508,318.83</td></tr></tfoot>
    </table>
    </div>
    <ul class="notes">
    <li>no price for model &#34;A100&#34; from 2026-03-01</li>
    <li>not known here, so not shown: efficiency</li>
    <li>where a line comes from: cardhour trace &#39;a1b2&#39;</li>
    </ul>
    "#);
}

#[test]
fn parquet_is_read_back_as_it_was_written() {
    let bytes = report(&bill(), Format::Parquet, Style::default()).unwrap();
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(axum::body::Bytes::copy_from_slice(bytes.as_bytes())).unwrap();
    let schema = Arc::clone(reader.schema());
    let kinds: Vec<_> =
        schema.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type())).collect();
    assert_snapshot!(kinds.join("\n"), @"
    project: Utf8
    line: Utf8
    jobs: Int64
    billed_card_hours: Decimal128(38, 6)
    efficiency: Decimal128(38, 6)
    coverage: Decimal128(38, 6)
    cost: Decimal128(38, 6)
    currency: Utf8
    ");
    let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
    let read = Grid::of_batches(&schema, &batches).unwrap();
    assert_eq!(read.rows[0][3], Cell::Exact("135584.801389".into()));
    assert_eq!(read.rows[0][6], Cell::Exact("2508318.830000".into()));
    assert_eq!(read.rows[1][6], Cell::Absent);
    assert_eq!(read.rows[0][0], Cell::Text("卡时".into()));
}

#[test]
fn an_answer_to_sql_keeps_the_kinds_of_its_columns_in_json() {
    let batch = RecordBatch::try_from_iter([
        ("name", Arc::new(StringArray::from(vec![Some("a"), None])) as arrow::array::ArrayRef),
        ("count", Arc::new(Int64Array::from(vec![-1, 2]))),
        ("mean", Arc::new(Float64Array::from(vec![0.5, f64::NAN]))),
        ("open", Arc::new(BooleanArray::from(vec![true, false]))),
    ])
    .unwrap();
    assert_eq!(batch.schema().field(1).data_type(), &DataType::Int64);
    let json = answer(&batch.schema(), &[batch], Format::Json, Style::default()).unwrap();
    assert_snapshot!(String::from_utf8(json).unwrap(), @r#"
    [
    {"name": "a", "count": -1, "mean": 0.5, "open": true},
    {"name": null, "count": 2, "mean": "NaN", "open": false}
    ]
    "#);
}

#[test]
fn figures_are_read_easily() {
    for (number, expected) in [("0", "0"), ("999", "999"), ("-1000", "-1,000"), ("1234567.8901", "1,234,567.8901")] {
        assert_eq!(grouped(number), expected);
    }
    for (ratio, expected) in [("0.999999", "99.9 %"), ("1", "100.0 %"), ("0", "0.0 %"), ("0.123456", "12.3 %")] {
        assert_eq!(percent(ratio.parse().unwrap()), expected);
    }
}

/// OWASP's list of what a cell may not begin with; a whole number below zero is a number.
#[test]
fn no_text_of_a_csv_for_people_begins_a_formula() {
    let texts = ["=1+1", "+1", "-cmd", "@sum", "\tx", "-10", "plain"];
    let table = Table {
        title: String::new(),
        columns: vec![Column { name: "project".to_owned(), kind: Kind::Text }],
        rows: texts.map(|text| vec![Value::Text(text.into())]).to_vec(),
        total: None,
        notes: Vec::new(),
    };
    let csv = String::from_utf8(spreadsheet(&table)).unwrap();
    assert_eq!(csv, "project\n'=1+1\n'+1\n'-cmd\n'@sum\n'\tx\n-10\nplain\n");
    let exact = String::from_utf8(report(&table, Format::Csv, Style::default()).unwrap()).unwrap();
    assert_eq!(exact.lines().skip(1).collect::<Vec<_>>(), texts);
}
