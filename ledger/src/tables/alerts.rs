//! `alerts`: what whom was told of, and when. Only rows are added: so nothing is told twice, over restarts too.

use super::Table;
use crate::columns::{Columns, Interned, Rows, opt_instant};
use crate::error::Error;
use arrow::record_batch::RecordBatch;
use cardhour_domain::{Name, Timestamp};

/// One message that was delivered.
///
/// Stability: a row is read by every later cardhour, to tell nothing twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldAlert {
    /// When it was delivered.
    pub told_at: Timestamp,
    /// By which way: `alertmanager`, `webhook`, `mail`.
    pub channel: Name,
    /// Which alert: `CardhourBudget`.
    pub alert: Name,
    /// What it is of, as sorted `NAME=VALUE` lines: two messages of one alert with the same labels are of the same thing.
    pub labels: Name,
    /// What of it: `reached`, `over`.
    pub news: Name,
    /// What was said, in a sentence.
    pub summary: Name,
}

pub(crate) const ALERTS: Table = Table {
    name: "alerts",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: false,
    bounds: &[],
    comment: "alerts that were delivered, each to one channel; none is told twice",
};

pub(crate) fn batch(rows: &[ToldAlert]) -> RecordBatch {
    Columns::default()
        .instant("told_at", rows.iter().map(|row| row.told_at))
        .text("channel", rows.iter().map(|row| &*row.channel))
        .text("alert", rows.iter().map(|row| &*row.alert))
        .text("labels", rows.iter().map(|row| &*row.labels))
        .text("news", rows.iter().map(|row| &*row.news))
        .text("summary", rows.iter().map(|row| &*row.summary))
        .finish()
}

pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<ToldAlert>, Error> {
    let rows = Rows::new(ALERTS.name, batch);
    let told_at = rows.instants("told_at")?;
    let (channels, alerts, labels) = (rows.text("channel")?, rows.text("alert")?, rows.text("labels")?);
    let (news, summaries) = (rows.text("news")?, rows.text("summary")?);
    Ok((0..batch.num_rows())
        .filter_map(|row| {
            Some(ToldAlert {
                told_at: opt_instant(told_at, row)?,
                channel: names.get(channels.value(row)),
                alert: names.get(alerts.value(row)),
                labels: names.get(labels.value(row)),
                news: names.get(news.value(row)),
                summary: names.get(summaries.value(row)),
            })
        })
        .collect())
}
