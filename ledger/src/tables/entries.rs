//! `entries`: the entries of closed months. Those of an open month are worked out when they are asked for.

use super::Table;
use crate::columns::{CardTimes, Columns, Indexed, Interned, Rows};
use crate::error::Error;
use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use cardhour_books::statement::{Entry, EntryId, EntryKey, EntryKind, Statement};
use cardhour_domain::{CardTime, Currency, Money, Month, Name};
use rust_decimal::Decimal;

pub(crate) const ENTRIES: Table = Table {
    name: "entries",
    schema_version: 1,
    schema: || batch(&[], None).schema(),
    by_day: false,
    bounds: &[],
    comment: "signed amounts of closed months, which add up to their statements; never changed, later facts are entries of a later month",
};

/// The entries of some statements, in their order. `closing`: what closed them; none while they are open.
pub(crate) fn batch(statements: &[Statement], closing: Option<&str>) -> RecordBatch {
    let rows: Vec<(&Name, &Entry)> = statements
        .iter()
        .flat_map(|statement| statement.entries.iter().map(move |entry| (&statement.number, entry)))
        .collect();
    let of = || rows.iter().map(|(_, entry)| *entry);
    fn owned(values: impl Iterator<Item = String>) -> Vec<String> {
        values.collect()
    }
    let ids = owned(of().map(|entry| entry.id().to_string()));
    let periods = owned(of().map(|entry| entry.period.to_string()));
    let originals = owned(of().map(|entry| entry.key.original_period.to_string()));
    let currencies = owned(of().map(|entry| entry.amount.currency().to_string()));
    let quantities: Vec<Option<String>> =
        of().map(|entry| entry.quantity.as_ref().map(|(quantity, _)| quantity.normalize().to_string())).collect();
    let kind_of = |entry: &Entry| (entry.kind() != entry.key.kind).then(|| entry.key.kind.name());
    fn name(name: &Option<Name>) -> Option<&str> {
        name.as_deref()
    }
    let times =
        |time: fn(&Entry) -> CardTime| CardTimes::new(Indexed::of(of().map(|entry| Some(time(entry).part_ms()))));
    Columns::default()
        .text("statement", rows.iter().map(|(number, _)| &***number))
        .text("entry_id", ids.iter().map(String::as_str))
        .text("kind", of().map(|entry| entry.kind().name()))
        .text("period", periods.iter().map(String::as_str))
        .text("original_period", originals.iter().map(String::as_str))
        .opt_text("original_entry", of().map(|entry| entry.original_entry.as_ref().map(EntryId::as_str)))
        .opt_text("corrects", of().map(kind_of))
        .opt_text("org", of().map(|entry| name(&entry.key.org)))
        .opt_text("project", of().map(|entry| name(&entry.key.project)))
        .opt_text("user", of().map(|entry| name(&entry.key.user)))
        .opt_text("model", of().map(|entry| name(&entry.key.model)))
        .opt_text("price_line", of().map(|entry| name(&entry.key.price_line)))
        .opt_text("price_version", of().map(|entry| name(&entry.price_version)))
        .opt_text("window", of().map(|entry| name(&entry.key.window)))
        .opt_text("what", of().map(|entry| name(&entry.key.what)))
        .opt_text("quantity", quantities.iter().map(Option::as_deref))
        .opt_text("unit", of().map(|entry| entry.quantity.as_ref().map(|(_, unit)| &**unit)))
        .card_time("card_time", &times(|entry| entry.card_time), false)
        .card_time("billed_time", &times(|entry| entry.billed_time), false)
        .money("list_amount", of().map(|entry| entry.list_amount))
        .money("amount", of().map(|entry| Some(entry.amount)))
        .text("currency", currencies.iter().map(String::as_str))
        .opt_text("reason", of().map(|entry| name(&entry.reason)))
        .opt_text("closing_id", of().map(|_| closing))
        .finish()
}

/// Entries that were frozen. Errors: one that doesn't say what its id says.
pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<Entry>, Error> {
    let rows = Rows::new(ENTRIES.name, batch);
    let damaged = |what: String| Error::damaged(ENTRIES.name, what);
    let text = |name| rows.text(name);
    let (ids, kinds, corrects) = (text("entry_id")?, text("kind")?, text("corrects")?);
    let (periods, originals, original_entries) = (text("period")?, text("original_period")?, text("original_entry")?);
    let owner = [text("org")?, text("project")?, text("user")?];
    let (models, price_lines, price_versions) = (text("model")?, text("price_line")?, text("price_version")?);
    let (windows, whats, quantities, units) = (text("window")?, text("what")?, text("quantity")?, text("unit")?);
    let (card_times, billed_times) = (rows.decimals("card_time")?, rows.decimals("billed_time")?);
    let (list_amounts, amounts, currencies) =
        (rows.decimals("list_amount")?, rows.decimals("amount")?, text("currency")?);
    let reasons = text("reason")?;
    (0..batch.num_rows())
        .map(|row| {
            let currency = Currency::parse(currencies.value(row)).map_err(|error| damaged(error.to_string()))?;
            let month = |text: &str| Month::parse(text).map_err(|error| damaged(error.to_string()));
            let kind = if corrects.is_valid(row) { corrects.value(row) } else { kinds.value(row) };
            let quantity = match (names.opt(quantities, row), names.opt(units, row)) {
                (Some(quantity), Some(unit)) => {
                    let quantity: Decimal = quantity.parse().map_err(|_| damaged(format!("quantity {quantity:?}")))?;
                    Some((quantity, unit))
                }
                _ => None,
            };
            let [org, project, user] = owner.map(|column| names.opt(column, row));
            let entry = Entry {
                key: EntryKey {
                    original_period: month(originals.value(row))?,
                    kind: EntryKind::from_name(kind).ok_or_else(|| damaged(format!("kind {kind:?}")))?,
                    org,
                    project,
                    user,
                    model: names.opt(models, row),
                    price_line: names.opt(price_lines, row),
                    window: names.opt(windows, row),
                    what: names.opt(whats, row),
                },
                period: month(periods.value(row))?,
                original_entry: names.opt(original_entries, row).map(|id| EntryId::from_stored(&id)),
                price_version: names.opt(price_versions, row),
                quantity,
                card_time: CardTime::from_part_ms(card_times.value(row)),
                billed_time: CardTime::from_part_ms(billed_times.value(row)),
                list_amount: list_amounts.is_valid(row).then(|| Money::from_micros(list_amounts.value(row), currency)),
                amount: Money::from_micros(amounts.value(row), currency),
                reason: names.opt(reasons, row),
            };
            if entry.id().as_str() != ids.value(row) {
                return Err(damaged(format!("entry {} is not what its id says", ids.value(row))));
            }
            Ok(entry)
        })
        .collect()
}
