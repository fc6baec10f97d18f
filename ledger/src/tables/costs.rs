//! `costs`: what a site listed as costs, a row an item of a month. Usage is not made from it.

use super::Table;
use crate::columns::{Columns, Interned, Rows};
use crate::error::Error;
use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use cardhour_books::statement::{CostAmount, CostItem};
use cardhour_domain::{Currency, Money, Month};
use rust_decimal::Decimal;

pub(crate) const COSTS: Table = Table {
    name: "costs",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: false,
    bounds: &[],
    comment: "what a site listed as costs of a month: the platform's own, and those of one owner",
};

pub(crate) fn batch(rows: &[CostItem]) -> RecordBatch {
    let months: Vec<String> = rows.iter().map(|item| item.month.to_string()).collect();
    let quantities: Vec<Option<String>> =
        rows.iter().map(|item| item.quantity.as_ref().map(|(quantity, _)| quantity.normalize().to_string())).collect();
    let currencies: Vec<Currency> = rows.iter().map(CostItem::currency).collect();
    let tariffs: Vec<Option<String>> = rows.iter().map(|item| tariff(item).map(|tariff| tariff.to_string())).collect();
    Columns::default()
        .text("month", months.iter().map(String::as_str))
        .text("name", rows.iter().map(|item| &*item.name))
        .opt_text("org", rows.iter().map(|item| item.org.as_deref()))
        .opt_text("project", rows.iter().map(|item| item.project.as_deref()))
        .opt_text("user", rows.iter().map(|item| item.user.as_deref()))
        .opt_text("cluster", rows.iter().map(|item| item.cluster.as_deref()))
        .opt_text("pool", rows.iter().map(|item| item.pool.as_deref()))
        .opt_text("model", rows.iter().map(|item| item.model.as_deref()))
        .opt_text("quantity", quantities.iter().map(Option::as_deref))
        .opt_text("unit", rows.iter().map(|item| item.quantity.as_ref().map(|(_, unit)| &**unit)))
        .opt_text("tariff_per_kwh", tariffs.iter().map(Option::as_deref))
        .money("amount", rows.iter().map(amount))
        .text("currency", currencies.iter().map(Currency::code))
        .opt_text("reason", rows.iter().map(|item| item.reason.as_deref()))
        .finish()
}

fn amount(item: &CostItem) -> Option<Money> {
    match item.amount {
        CostAmount::Fixed(amount) => Some(amount),
        CostAmount::PerKwh { .. } => None,
    }
}

fn tariff(item: &CostItem) -> Option<Decimal> {
    match item.amount {
        CostAmount::Fixed(_) => None,
        CostAmount::PerKwh { tariff, .. } => Some(tariff),
    }
}

pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<CostItem>, Error> {
    let rows = Rows::new(COSTS.name, batch);
    let damaged = |what: String| Error::damaged(COSTS.name, what);
    let text = |name| rows.text(name);
    let (months, items, owner) = (text("month")?, text("name")?, [text("org")?, text("project")?, text("user")?]);
    let (clusters, pools, models) = (text("cluster")?, text("pool")?, text("model")?);
    let (quantities, units, tariffs) = (text("quantity")?, text("unit")?, text("tariff_per_kwh")?);
    let (amounts, currencies, reasons) = (rows.decimals("amount")?, text("currency")?, text("reason")?);
    let decimal = |text: &str| text.parse::<Decimal>().map_err(|_| damaged(format!("number {text:?}")));
    (0..batch.num_rows())
        .map(|row| {
            let currency = Currency::parse(currencies.value(row)).map_err(|error| damaged(error.to_string()))?;
            let quantity = names.opt(quantities, row).zip(names.opt(units, row));
            let quantity = quantity.map(|(quantity, unit)| Ok((decimal(&quantity)?, unit))).transpose()?;
            let amount = match (amounts.is_valid(row), tariffs.is_valid(row)) {
                (true, false) => CostAmount::Fixed(Money::from_micros(amounts.value(row), currency)),
                (false, true) => CostAmount::PerKwh { tariff: decimal(tariffs.value(row))?, currency },
                _ => return Err(damaged(format!("{:?} has neither one amount nor one tariff", items.value(row)))),
            };
            let [org, project, user] = owner.map(|column| names.opt(column, row));
            Ok(CostItem {
                month: Month::parse(months.value(row)).map_err(|error| damaged(error.to_string()))?,
                name: names.get(items.value(row)),
                org,
                project,
                user,
                cluster: names.opt(clusters, row),
                pool: names.opt(pools, row),
                model: names.opt(models, row),
                quantity,
                amount,
                reason: names.opt(reasons, row),
            })
        })
        .collect()
}
