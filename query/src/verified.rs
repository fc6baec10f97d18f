//! What `verify` proved, for people and programs.

use crate::answer::texts;
use crate::error::Error;
use crate::render::{self, Format, Style};
use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_ledger::{Check, Fault, Verdict};
use serde_json::{Value as Json, json};

/// Faults that people are shown; programs get all that are kept.
const SHOWN: usize = 20;

/// The verdict in `format`: one line a check, then its first faults; in json one object; in csv and Parquet the checks alone.
/// Errors: as [`render::report`].
pub fn render(verdict: &Verdict, format: Format, style: Style) -> Result<Vec<u8>, Error> {
    if format == Format::Json {
        return Ok(format!("{:#}\n", to_json(verdict)).into_bytes());
    }
    let mut out = render::report(&checks(verdict), format, style)?;
    if format.is_for_people() && !verdict.faults.is_empty() {
        out.push(b'\n');
        out.extend(render::report(&faults(verdict), format, style)?);
    }
    Ok(out)
}

fn checks(verdict: &Verdict) -> Table {
    let column = |name: &str, kind| Column { name: name.to_owned(), kind };
    let row = |check: &Check| {
        vec![
            text(if check.ok { "proven" } else { "broken" }),
            text(&check.law.to_string()),
            text(&check.what),
            Value::Count(check.rows),
            check.card_time.map_or(Value::Absent, |time| Value::Decimal(time.card_hours())),
            Value::Count(check.faults),
        ]
    };
    let mut notes = Vec::new();
    if !verdict.not_provable.is_empty() {
        notes.push(format!(
            "not provable: capacity is not known of {}: cardhour import nodes tells it",
            unprovable(verdict).join(", ")
        ));
    }
    notes.push(if verdict.holds() {
        "the books balance: every check is proven".to_owned()
    } else {
        format!("the books do not balance: {} faults", render::grouped(&verdict.fault_count().to_string()))
    });
    Table {
        title: "verify".to_owned(),
        columns: vec![
            column("verdict", Kind::Text),
            column("law", Kind::Text),
            column("check", Kind::Text),
            column("rows", Kind::Count),
            column("card_hours", Kind::Hours),
            column("faults", Kind::Count),
        ],
        rows: verdict.checks.iter().map(row).collect(),
        total: None,
        notes,
    }
}

fn faults(verdict: &Verdict) -> Table {
    let row = |fault: &Fault| {
        vec![
            text(&fault.law.to_string()),
            text(&fault.table),
            text(&fault.place),
            text(&fault.expected),
            text(&fault.found),
        ]
    };
    let shown = verdict.faults.len().min(SHOWN);
    let more = verdict.fault_count() - shown as u64;
    Table {
        title: "faults".to_owned(),
        columns: texts(&["law", "table", "where", "expected", "found"]),
        rows: verdict.faults[..shown].iter().map(row).collect(),
        notes: if more > 0 {
            vec![format!("and {more} more: --format json has the first of each check")]
        } else {
            vec![]
        },
        ..Table::default()
    }
}

fn unprovable(verdict: &Verdict) -> Vec<&str> {
    verdict.not_provable.iter().map(|name| if name.is_empty() { "(unnamed)" } else { name }).collect()
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn to_json(verdict: &Verdict) -> Json {
    let checks: Vec<Json> = verdict
        .checks
        .iter()
        .map(|check| {
            json!({
                "law": check.law.to_string(),
                "check": check.what,
                "proven": check.ok,
                "rows": check.rows,
                "card_hours": check.card_time.map(|time| time.card_hours().to_string()),
                "faults": check.faults,
            })
        })
        .collect();
    let faults: Vec<Json> = verdict
        .faults
        .iter()
        .map(|fault| {
            json!({
                "law": fault.law.to_string(),
                "table": fault.table,
                "where": fault.place,
                "expected": fault.expected,
                "found": fault.found,
            })
        })
        .collect();
    json!({
        "proven": verdict.holds(),
        "checks": checks,
        "not_provable": verdict.not_provable.iter().map(|name| &**name).collect::<Vec<_>>(),
        "fault_count": verdict.fault_count(),
        "faults": faults,
    })
}
