//! What attempts did with their cards over some days: what advice on sharing and on data rests on.
//!
//! Start at [`Reading::job_use`]. Does not: judge.

use crate::{Error, Reading};
use cardhour_books::job_use::{JobUse, note};
use cardhour_domain::columns::Rows;
use cardhour_domain::{AttemptKey, Interval, Stream};
use std::collections::BTreeMap;

impl Reading {
    /// What each attempt did that held devices alone. Days are read one by one, and of each no more than a few figures an attempt are kept. Errors: a table can't be read.
    pub async fn job_use(&self, during: Interval) -> Result<BTreeMap<AttemptKey, JobUse>, Error> {
        let mut found = BTreeMap::new();
        if self.facts.told(Stream::Samples).is_none() {
            return Ok(found);
        }
        let held = self.held_devices(during).await?;
        if held.is_empty() {
            return Ok(found);
        }
        for day in during.utc_days() {
            let (mut samples, mut activity) = (Vec::new(), Vec::new());
            for stream in [Stream::Samples, Stream::Activity] {
                for rows in self.facts.rows(stream, |of| of == day).await? {
                    match rows {
                        Rows::Samples(rows) => samples.extend(rows),
                        Rows::Activity(rows) => activity.extend(rows),
                        _ => unreachable!("rows are of the stream that was asked for"),
                    }
                }
            }
            samples.retain(|sample| sample.during.overlap(during) == Some(sample.during));
            note(&held, &samples, &activity, &mut found);
        }
        Ok(found)
    }
}
