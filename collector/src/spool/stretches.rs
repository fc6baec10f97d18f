//! Rows of many ticks as a segment has them: stretches that go on are one row, telemetry is in the order in which it packs best.

use cardhour_domain::columns::Rows;
use cardhour_domain::{Activity, Interval, Observation, Sample, Stream, Timestamp, Watch};
use std::cmp::Ordering;

/// Rows that are gathered before stretches among them are joined.
const JOINED_AT_ONCE: usize = 4096;

/// Rows of one stream, gathered tick by tick.
///
/// Shape of what comes out: observations and watches by card, device and holder, then start, two that touch and tell the same joined into one;
/// samples and activity by card, device, then start, since counters of one device lie close together; devices and events as they came.
pub(crate) struct Gathered {
    rows: Rows,
    /// How many there were after the last joining.
    joined: usize,
}

impl Gathered {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { rows: Rows::none(stream), joined: 0 }
    }

    /// Adds rows; those of other streams stay out.
    pub(crate) fn add(&mut self, more: Rows) {
        append(&mut self.rows, more);
        if self.rows.len() >= self.joined * 2 + JOINED_AT_ONCE {
            self.join();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Joins what touches; telemetry stays as it is.
    pub(crate) fn join(&mut self) {
        match &mut self.rows {
            Rows::Observations(rows) => join(rows, observations, |row| row.during, |row, during| row.during = during),
            Rows::Watches(rows) => join(rows, watches, |row| row.during, |row, during| row.during = during),
            Rows::Samples(_) | Rows::Activity(_) | Rows::Devices(_) | Rows::Events(_) => {}
        }
        self.joined = self.rows.len();
    }

    /// Forgets the rows that ended or happened first, as many as it takes to have `len`. How many.
    pub(crate) fn keep_last(&mut self, len: usize) -> usize {
        let dropped = self.rows.len().saturating_sub(len);
        if dropped > 0 {
            match &mut self.rows {
                Rows::Observations(rows) => forget(rows, dropped, |row| row.during.end()),
                Rows::Watches(rows) => forget(rows, dropped, |row| row.during.end()),
                Rows::Devices(rows) => forget(rows, dropped, |row| row.at),
                Rows::Events(rows) => forget(rows, dropped, |row| row.at),
                Rows::Samples(rows) => forget(rows, dropped, |row| row.during.end()),
                Rows::Activity(rows) => forget(rows, dropped, |row| row.during.end()),
            }
        }
        dropped
    }

    pub(crate) fn into_rows(mut self) -> Rows {
        self.join();
        match &mut self.rows {
            Rows::Samples(rows) => rows.sort_unstable_by(samples),
            Rows::Activity(rows) => rows.sort_unstable_by(activity),
            Rows::Observations(_) | Rows::Watches(_) | Rows::Devices(_) | Rows::Events(_) => {}
        }
        self.rows
    }
}

fn forget<T>(rows: &mut Vec<T>, count: usize, when: fn(&T) -> Timestamp) {
    rows.sort_by_key(when);
    rows.drain(..count);
}

fn append(rows: &mut Rows, more: Rows) {
    match (rows, more) {
        (Rows::Samples(rows), Rows::Samples(mut more)) => rows.append(&mut more),
        (Rows::Activity(rows), Rows::Activity(mut more)) => rows.append(&mut more),
        (Rows::Observations(rows), Rows::Observations(mut more)) => rows.append(&mut more),
        (Rows::Watches(rows), Rows::Watches(mut more)) => rows.append(&mut more),
        (Rows::Devices(rows), Rows::Devices(mut more)) => rows.append(&mut more),
        (Rows::Events(rows), Rows::Events(mut more)) => rows.append(&mut more),
        _ => {}
    }
}

/// Rows that tell the same and touch or overlap become one, from the first start to the last end.
fn join<T>(rows: &mut Vec<T>, tell: fn(&T, &T) -> Ordering, get: fn(&T) -> Interval, set: fn(&mut T, Interval)) {
    rows.sort_by(|a, b| tell(a, b).then_with(|| get(a).cmp(&get(b))));
    rows.dedup_by(|next, row| {
        let (later, earlier) = (get(next), get(row));
        if tell(next, row).is_ne() || later.start() > earlier.end() {
            return false;
        }
        let both = Interval::new(earlier.start(), earlier.end().max(later.end()));
        set(row, both.expect("no shorter than it was"));
        true
    });
}

fn observations(a: &Observation, b: &Observation) -> Ordering {
    fn told(row: &Observation) -> impl Ord {
        let Observation { during: _, node, card_uuid, device_uuid, mig_profile, share, source, holder, owner } = row;
        (card_uuid, device_uuid, holder, source, share, owner, mig_profile, node)
    }
    told(a).cmp(&told(b))
}

fn watches(a: &Watch, b: &Watch) -> Ordering {
    let Watch { during: _, node, cluster, card_uuid } = a;
    (card_uuid, cluster, node).cmp(&(&b.card_uuid, &b.cluster, &b.node))
}

fn samples(a: &Sample, b: &Sample) -> Ordering {
    (&a.card_uuid, &a.device_uuid, a.during).cmp(&(&b.card_uuid, &b.device_uuid, b.during))
}

fn activity(a: &Activity, b: &Activity) -> Ordering {
    (&a.card_uuid, &a.device_uuid, a.during, &a.holder).cmp(&(&b.card_uuid, &b.device_uuid, b.during, &b.holder))
}
