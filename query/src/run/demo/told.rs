//! What the simulated nodes told, taken in as what real ones deliver.

use crate::error::Error;
use crate::render::parquet;
use cardhour_books::demo::{DemoSite, DemoSpool, NodeSpool};
use cardhour_domain::SegmentName;
use cardhour_domain::columns::Rows;
use cardhour_ledger::{Ledger, Segment, Taken};

/// Takes in the segments of all nodes, and brings the books up to them. How many rows were new. Errors: a segment is refused, which it is where an
/// older cardhour put another one of that name there; a table can't be written.
pub async fn take_in(ledger: &Ledger, site: &DemoSite) -> Result<u64, Error> {
    let spools = site.spools();
    let packed = tokio::task::spawn_blocking(move || {
        spools.into_iter().flat_map(segments).collect::<Result<Vec<Segment>, Error>>()
    });
    let segments = packed.await.expect("rows of the simulation are packed without a panic")?;
    let mut rows = 0;
    for taken in ledger.take_segments(segments).await {
        if let Taken::New(new) = taken? {
            rows += new;
        }
    }
    ledger.catch_up().await?;
    Ok(rows)
}

/// A segment for each stream that has rows.
fn segments(spool: DemoSpool) -> impl Iterator<Item = Result<Segment, Error>> {
    let DemoSpool { node, boot, sequence, rows } = spool;
    let NodeSpool { samples, activity, observations, watches, devices, events } = rows;
    let all = [
        Rows::Samples(samples),
        Rows::Activity(activity),
        Rows::Observations(observations),
        Rows::Watches(watches),
        Rows::Devices(devices),
        Rows::Events(events),
    ];
    all.into_iter().filter(|rows| !rows.is_empty()).map(move |rows| {
        let batch = rows.batch();
        let bytes = parquet::write(&batch.schema(), &[batch])?.into();
        Ok(Segment { node: node.clone(), name: SegmentName::new(boot, sequence, rows.stream()), bytes })
    })
}
