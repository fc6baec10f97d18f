//! The canonical text of a month: what is hashed when it is closed, and is the same bytes for ever (LED-5).

use super::{Entry, EntryKey, Statement};
use cardhour_domain::{Money, Name};

/// Columns of [`canonical_csv`], and of the table `entries` but for the card-hours. Stability: as [`canonical_csv`].
pub const COLUMNS: [&str; 23] = [
    "statement",
    "entry_id",
    "kind",
    "period",
    "original_period",
    "original_entry",
    "corrects",
    "org",
    "project",
    "user",
    "model",
    "price_line",
    "price_version",
    "window",
    "what",
    "quantity",
    "unit",
    "card_time",
    "billed_time",
    "list_amount",
    "amount",
    "currency",
    "reason",
];

/// Every entry of some statements, one a line, in their order, as RFC 4180 with lines that end in LF.
///
/// Card-time is parts × milliseconds, amounts have their currency's decimals, what is absent is empty. `corrects` is the kind of what a correction
/// corrects. Texts stand as the site wrote them: a program that reads them back gets the same. Stability: its SHA-256 stands in closed months; pinned by
/// the test `a_month_is_written_as_before`.
pub fn canonical_csv(statements: &[Statement]) -> Vec<u8> {
    let mut out = csv::WriterBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_writer(Vec::new());
    let written = out.write_record(COLUMNS).and_then(|()| {
        statements.iter().try_for_each(|statement| {
            statement.entries.iter().try_for_each(|entry| out.write_record(record(statement, entry)))
        })
    });
    written.expect("records as long as the header, into memory");
    out.into_inner().expect("into memory")
}

/// One entry, a text for each of [`COLUMNS`].
pub(super) fn record(statement: &Statement, entry: &Entry) -> [String; COLUMNS.len()] {
    let Entry {
        key,
        period,
        original_entry,
        price_version,
        quantity,
        card_time,
        billed_time,
        list_amount,
        amount,
        reason,
    } = entry;
    let EntryKey { original_period, kind, org, project, user, model, price_line, window, what } = key;
    let name = |name: &Option<Name>| name.as_deref().unwrap_or_default().to_owned();
    let is_correction = entry.kind() != *kind;
    [
        statement.number.to_string(),
        entry.id().to_string(),
        entry.kind().name().to_owned(),
        period.to_string(),
        original_period.to_string(),
        original_entry.as_ref().map_or_else(String::new, ToString::to_string),
        if is_correction { kind.name().to_owned() } else { String::new() },
        name(org),
        name(project),
        name(user),
        name(model),
        name(price_line),
        name(price_version),
        name(window),
        name(what),
        quantity.as_ref().map_or_else(String::new, |(quantity, _)| quantity.normalize().to_string()),
        quantity.as_ref().map_or_else(String::new, |(_, unit)| unit.to_string()),
        card_time.part_ms().to_string(),
        billed_time.part_ms().to_string(),
        list_amount.map_or_else(String::new, Money::to_minor_string),
        amount.to_minor_string(),
        amount.currency().to_string(),
        name(reason),
    ]
}

#[cfg(test)]
mod tests;
