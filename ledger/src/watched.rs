//! What nodes told of some time: who was seen on which card, and what cards and holders did. What idle reclaim judges by.
//!
//! Start at [`Reading::watched`]. Does not: join it with records, or settle it to one timeline.

use crate::store::FileView;
use crate::tables::telemetry;
use crate::{Error, Reading};
use cardhour_books::observed::Seen;
use cardhour_domain::columns::Rows;
use cardhour_domain::{Activity, Interval, NodeEvent, Sample, Stream};

/// What nodes told of some time, as rows came: in any order, maybe more than once.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Who was seen on what, and when it was looked for, in that time; and every device as it was seen last or in that time.
    pub seen: Seen,
    /// What cards said.
    pub samples: Vec<Sample>,
    /// What holders' processes did.
    pub activity: Vec<Activity>,
}

impl Reading {
    /// What nodes told of `during`; none where no node ever told anything. Files of other times aren't opened. Errors: the ledger's own.
    pub async fn watched(&self, during: Interval) -> Result<Option<Watched>, Error> {
        if Stream::ALL.into_iter().all(|stream| self.facts.told(stream).is_none()) {
            return Ok(None);
        }
        let mut watched = Watched::default();
        for stream in [Stream::Devices, Stream::Observations, Stream::Watches, Stream::Samples, Stream::Activity] {
            for rows in self.told_in(stream, during).await? {
                match rows {
                    Rows::Devices(rows) => watched.seen.devices.extend(rows),
                    Rows::Observations(rows) => {
                        watched
                            .seen
                            .observations
                            .extend(rows.into_iter().filter(|row| row.during.overlap(during).is_some()));
                    }
                    Rows::Watches(rows) => {
                        watched
                            .seen
                            .watches
                            .extend(rows.into_iter().filter(|row| row.during.overlap(during).is_some()));
                    }
                    Rows::Samples(rows) => {
                        watched.samples.extend(rows.into_iter().filter(|row| row.during.overlap(during).is_some()));
                    }
                    Rows::Activity(rows) => {
                        watched.activity.extend(rows.into_iter().filter(|row| row.during.overlap(during).is_some()));
                    }
                    Rows::Events(_) => unreachable!("events aren't asked for"),
                }
            }
        }
        Ok(Some(watched))
    }

    /// What happened to cards and nodes in `during`, by time. Errors: the ledger's own.
    pub async fn happened(&self, during: Interval) -> Result<Vec<NodeEvent>, Error> {
        let mut events: Vec<NodeEvent> = Vec::new();
        for rows in self.told_in(Stream::Events, during).await? {
            let Rows::Events(rows) = rows else { unreachable!("only events are asked for") };
            events.extend(rows.into_iter().filter(|event| during.contains(event.at)));
        }
        let order =
            |event: &NodeEvent| (event.at, event.node.clone(), event.card_uuid.clone(), event.kind, event.number);
        events.sort_by_key(order);
        // A segment is delivered at least once.
        events.dedup();
        Ok(events)
    }

    /// Rows of the files that may have some of `during`; of devices all, since one that never changed was told of once.
    async fn told_in(&self, stream: Stream, during: Interval) -> Result<Vec<Rows>, Error> {
        let Some(snapshot) = self.facts.told(stream) else { return Ok(Vec::new()) };
        // A row begins on its day, and a stretch or tick may reach over midnight.
        let days = during.utc_days();
        let (first, last) = (*days.start() - 1, *days.end());
        let is_near = |file: &&FileView| {
            stream == Stream::Devices
                || file.day.is_none_or(|day| (first..=last).contains(&day))
                    && file.bounds("ts").is_none_or(|(least, _)| least < during.end())
        };
        let files = snapshot.files.iter().filter(is_near).cloned().collect();
        let read = move |batches: Vec<arrow::record_batch::RecordBatch>| {
            batches.iter().map(|batch| telemetry::rows(stream, batch)).collect::<Result<Vec<_>, _>>()
        };
        Ok(snapshot.read_with(files, None, &[], read).await?.into_iter().flat_map(|(_, rows)| rows).collect())
    }
}
