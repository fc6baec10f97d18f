//! `closings`: the months that were closed, and by what they were worked out. A month is closed once its row is here, and not before (LED-5).

use super::Table;
use crate::columns::{Columns, Interned, Rows, opt_text};
use crate::error::Error;
use arrow::array::{Array, StringArray};
use arrow::record_batch::RecordBatch;
use cardhour_domain::{Currency, Money, Month, Name, Timestamp, Zone};
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use std::fmt::Display;

pub(crate) const CLOSINGS: Table = Table {
    name: "closings",
    schema_version: 3,
    schema: || batch(&[]).schema(),
    by_day: false,
    bounds: &[],
    comment: "closed months: who approved each, by which prices, policy and versions of the tables, and the hash of its canonical text",
};

/// A month that was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// Which.
    pub month: Month,
    /// Names the rows that were frozen with it: 16 hex digits.
    pub id: Name,
    /// When it was closed.
    pub at: Timestamp,
    /// Who approved it.
    pub by: Name,
    /// What they wrote.
    pub comment: Option<Name>,
    /// Why it was closed although the books asked not to; none where they didn't.
    pub sign_off: Option<Name>,
    /// SHA-256 of the canonical text of its statements, 64 hex digits.
    pub sha256: Name,
    /// How many entries it has.
    pub entries: u64,
    /// What they come to.
    pub amount: Money,
    /// Held time that is proven ÷ held time, six decimals; none where nothing was held.
    pub coverage: Option<Decimal>,
    /// Held time that was seen ÷ held time, six decimals; none where nothing was held.
    pub use_coverage: Option<Decimal>,
    /// Version of the price book.
    pub price_version: Name,
    /// The text of the price book.
    pub prices: Name,
    /// The text of the billing policy, empty where there was none.
    pub policy: Name,
    /// What the month's costs came to by the hour, in absorb mode; none in any other.
    pub rates: Option<Name>,
    /// Attempts that held a card when it met a fatal fault of its own, a JSON list of their keys; among them a list of key and decision for each whose cards were wrongly taken.
    pub sick: Name,
    /// The version of every table that it was worked out from, a JSON object.
    pub versions: Name,
    /// The version of cardhour.
    pub code_version: Name,
    /// How many rows were frozen with it in each table; none where an earlier cardhour closed it.
    pub frozen: Option<BTreeMap<Name, u64>>,
    /// What each closed month was made of when this one was closed, itself among them: a digest of its sources. A month that isn't here is looked at again.
    pub sources: BTreeMap<Month, Name>,
    /// The billing zone by which it was cut; none where an earlier cardhour closed it: then it is that of its price book.
    pub zone: Option<Zone>,
}

pub(crate) fn batch(rows: &[Closing]) -> RecordBatch {
    let months: Vec<String> = rows.iter().map(|row| row.month.to_string()).collect();
    let micros = |ratio: Option<Decimal>| ratio.map(|ratio| (ratio * Decimal::from(1_000_000)).trunc().mantissa());
    Columns::default()
        .text("month", months.iter().map(String::as_str))
        .text("closing_id", rows.iter().map(|row| &*row.id))
        .instant("closed_at", rows.iter().map(|row| row.at))
        .text("closed_by", rows.iter().map(|row| &*row.by))
        .opt_text("comment", rows.iter().map(|row| row.comment.as_deref()))
        .opt_text("sign_off", rows.iter().map(|row| row.sign_off.as_deref()))
        .text("sha256", rows.iter().map(|row| &*row.sha256))
        .long("entries", rows.iter().map(|row| i64::try_from(row.entries).expect("fewer than 2⁶³")))
        .money("amount", rows.iter().map(|row| Some(row.amount)))
        .text(
            "currency",
            rows.iter()
                .map(|row| row.amount.currency().code().to_owned())
                .collect::<Vec<_>>()
                .iter()
                .map(String::as_str),
        )
        .opt_micros("coverage", rows.iter().map(|row| micros(row.coverage)))
        .opt_micros("use_coverage", rows.iter().map(|row| micros(row.use_coverage)))
        .text("price_version", rows.iter().map(|row| &*row.price_version))
        .text("prices", rows.iter().map(|row| &*row.prices))
        .text("policy", rows.iter().map(|row| &*row.policy))
        .opt_text("rates", rows.iter().map(|row| row.rates.as_deref()))
        .text("sick", rows.iter().map(|row| &*row.sick))
        .text("versions", rows.iter().map(|row| &*row.versions))
        .text("code_version", rows.iter().map(|row| &*row.code_version))
        .opt_text("frozen", texts(rows, |row| row.frozen.as_ref().map(of_names)).iter().map(Option::as_deref))
        .opt_text("sources", texts(rows, |row| Some(of_names(&row.sources))).iter().map(Option::as_deref))
        .opt_text("zone", texts(rows, |row| row.zone.map(|zone| zone.to_string())).iter().map(Option::as_deref))
        .finish()
}

fn texts(rows: &[Closing], of: impl Fn(&Closing) -> Option<String>) -> Vec<Option<String>> {
    rows.iter().map(of).collect()
}

/// Of a column that rows of an earlier landing lack.
fn later(column: Option<&StringArray>, row: usize) -> Option<&str> {
    column.and_then(|column| opt_text(column, row))
}

/// A JSON object.
fn of_names<K: Display, V: Display>(of: &BTreeMap<K, V>) -> String {
    let of: BTreeMap<String, String> = of.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    serde_json::to_string(&of).expect("texts")
}

/// [`of_names`], read back.
fn to_names<K: Ord, V>(
    text: &str,
    key: impl Fn(&str) -> Option<K>,
    value: impl Fn(&str) -> Option<V>,
) -> Option<BTreeMap<K, V>> {
    let of: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
    of.iter().map(|(name, of)| Some((key(name)?, value(of)?))).collect()
}

pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<Closing>, Error> {
    let rows = Rows::new(CLOSINGS.name, batch);
    let damaged = |what: String| Error::damaged(CLOSINGS.name, what);
    let text = |name| rows.text(name);
    let (months, ids, by) = (text("month")?, text("closing_id")?, text("closed_by")?);
    let (comments, sign_offs, hashes) = (text("comment")?, text("sign_off")?, text("sha256")?);
    let (currencies, amounts) = (text("currency")?, rows.decimals("amount")?);
    let (coverage, use_coverage) = (rows.decimals("coverage")?, rows.decimals("use_coverage")?);
    let (price_versions, prices, policies) = (text("price_version")?, text("prices")?, text("policy")?);
    let (rates, versions, code, sick) = (text("rates")?, text("versions")?, text("code_version")?, text("sick")?);
    let (at, entries) = (rows.instants("closed_at")?, rows.long("entries")?);
    let (frozen, sources) = (rows.later_text("frozen")?, rows.later_text("sources")?);
    let zones = rows.later_text("zone")?;
    let counts = |text: &str| {
        let read = to_names(text, |table| Some(table.into()), |rows| rows.parse().ok());
        read.ok_or_else(|| damaged(format!("frozen {text:?}")))
    };
    let digests = |text: &str| {
        let read = to_names(text, |month| Month::parse(month).ok(), |digest| Some(digest.into()));
        read.ok_or_else(|| damaged(format!("sources {text:?}")))
    };
    let zone = |text: &str| Zone::parse(text).map_err(|error| damaged(error.to_string()));
    let ratio = |column: &arrow::array::Decimal128Array, row: usize| {
        column.is_valid(row).then(|| Decimal::from_i128_with_scale(column.value(row), 6))
    };
    (0..batch.num_rows())
        .map(|row| {
            let currency = Currency::parse(currencies.value(row)).map_err(|error| damaged(error.to_string()))?;
            Ok(Closing {
                month: Month::parse(months.value(row)).map_err(|error| damaged(error.to_string()))?,
                id: names.get(ids.value(row)),
                at: Timestamp::from_unix_us(at.value(row)),
                by: names.get(by.value(row)),
                comment: names.opt(comments, row),
                sign_off: names.opt(sign_offs, row),
                sha256: names.get(hashes.value(row)),
                entries: u64::try_from(entries.value(row)).map_err(|error| damaged(error.to_string()))?,
                amount: Money::from_micros(amounts.value(row), currency),
                coverage: ratio(coverage, row),
                use_coverage: ratio(use_coverage, row),
                price_version: names.get(price_versions.value(row)),
                prices: names.get(prices.value(row)),
                policy: names.get(policies.value(row)),
                rates: names.opt(rates, row),
                sick: names.get(sick.value(row)),
                versions: names.get(versions.value(row)),
                code_version: names.get(code.value(row)),
                frozen: later(frozen, row).map(counts).transpose()?,
                sources: later(sources, row).map(digests).transpose()?.unwrap_or_default(),
                zone: later(zones, row).map(zone).transpose()?,
            })
        })
        .collect()
}
