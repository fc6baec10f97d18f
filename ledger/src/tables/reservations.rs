//! `reservations`: cards set aside for an owner, with dates.

use super::{Table, jobs};
use crate::columns::{Columns, Interned, Rows, opt_long, opt_text};
use crate::error::Error;
use arrow::record_batch::RecordBatch;
use cardhour_books::site::Reservation;
use cardhour_domain::{Interval, Timestamp};

pub(crate) const RESERVATIONS: Table = Table {
    name: "reservations",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: false,
    bounds: &[],
    comment: "cards set aside for an owner, with dates",
};

pub(crate) fn batch(rows: &[Reservation]) -> RecordBatch {
    let nodes: Vec<Option<String>> = rows.iter().map(|r| (!r.nodes.is_empty()).then(|| r.nodes.join(","))).collect();
    Columns::default()
        .text("cluster", rows.iter().map(|r| &*r.cluster))
        .text("name", rows.iter().map(|r| &*r.name))
        .instant("started_at", rows.iter().map(|r| r.during.start()))
        .instant("ended_at", rows.iter().map(|r| r.during.end()))
        .opt_text("nodes", nodes.iter().map(Option::as_deref))
        .opt_long("share_parts", rows.iter().map(|r| r.cards.map(|cards| cards.parts())))
        .opt_text("model", rows.iter().map(|r| r.model.as_deref()))
        .opt_text("org", rows.iter().map(|r| r.org.as_deref()))
        .opt_text("project", rows.iter().map(|r| r.project.as_deref()))
        .opt_text("user", rows.iter().map(|r| r.user.as_deref()))
        .finish()
}

pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<Reservation>, Error> {
    let rows = Rows::new(RESERVATIONS.name, batch);
    let text = |name| rows.text(name);
    let (clusters, reservations, nodes, models) = (text("cluster")?, text("name")?, text("nodes")?, text("model")?);
    let (orgs, projects, users) = (text("org")?, text("project")?, text("user")?);
    let (starts, ends, parts) = (rows.instants("started_at")?, rows.instants("ended_at")?, rows.long("share_parts")?);
    (0..batch.num_rows())
        .map(|row| {
            Ok(Reservation {
                cluster: names.get(clusters.value(row)),
                name: names.get(reservations.value(row)),
                during: stretch(RESERVATIONS.name, starts.value(row), ends.value(row))?,
                nodes: opt_text(nodes, row).map_or(Vec::new(), |n| n.split(',').map(|n| names.get(n)).collect()),
                cards: opt_long(parts, row).map(|parts| jobs::share(RESERVATIONS.name, parts)).transpose()?,
                model: names.opt(models, row),
                org: names.opt(orgs, row),
                project: names.opt(projects, row),
                user: names.opt(users, row),
            })
        })
        .collect()
}

/// A stored stretch, from its ends in microseconds.
pub(crate) fn stretch(table: &'static str, start_us: i64, end_us: i64) -> Result<Interval, Error> {
    let (start, end) = (Timestamp::from_unix_us(start_us), Timestamp::from_unix_us(end_us));
    Interval::new(start, end).ok_or_else(|| Error::damaged(table, format!("a stretch from {start} to {end}")))
}
