//! What `maintain` did, for people and programs.

use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_ledger::Maintained;

/// One row a table.
pub fn table(done: &[Maintained], is_dry_run: bool) -> Table {
    let column = |name: &str, kind| Column { name: name.to_owned(), kind };
    let row = |done: &Maintained| {
        vec![
            Value::Text(done.table.into()),
            Value::Count(done.files),
            Value::Count(done.merged),
            Value::Count(done.into),
            Value::Count(done.deleted),
            Value::Text(if done.checkpoint { "yes" } else { "no" }.into()),
        ]
    };
    let sum = |of: fn(&Maintained) -> u64| done.iter().map(of).sum::<u64>();
    let would = if is_dry_run { "would be " } else { "" };
    Table {
        title: if is_dry_run { "maintain, nothing was changed" } else { "maintain" }.to_owned(),
        columns: vec![
            column("table", Kind::Text),
            column("files", Kind::Count),
            column("merged", Kind::Count),
            column("into", Kind::Count),
            column("deleted", Kind::Count),
            column("checkpoint", Kind::Text),
        ],
        rows: done.iter().map(row).collect(),
        total: None,
        notes: vec![format!(
            "{} files {would}merged into {}, {} {would}deleted; no row changed",
            sum(|done| done.merged),
            sum(|done| done.into),
            sum(|done| done.deleted)
        )],
    }
}
