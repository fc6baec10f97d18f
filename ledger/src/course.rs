//! What happened to a pool over some time: whose jobs there were, which nodes served and when, what was out of service.
//!
//! Start at [`Reading::course`]. Does not: say who could have run when, which is a replay's.

use crate::columns::Interned;
use crate::tables::jobs::{self, JOBS};
use crate::{Error, Reading};
use arrow::record_batch::RecordBatch;
use cardhour_books::attempt::Attempt;
use cardhour_books::site::{Node, Outage};
use cardhour_domain::Interval;
use std::sync::Arc;

/// A pool over some time, by the records of today.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// Attempts that waited or held cards in some of it, whole, by key.
    pub attempts: Vec<Attempt>,
    /// Nodes that served in some of it, and from when to when, by cluster and name.
    pub nodes: Vec<(Node, Interval)>,
    /// Outages in some of it.
    pub outages: Vec<Outage>,
}

impl Reading {
    /// What happened in `during`.
    pub async fn course(&self, during: Interval) -> Result<Course, Error> {
        let (start, end) = (during.start(), during.end());
        let snapshot = self.facts.of(&JOBS);
        let files = snapshot.files.iter().filter(|file| {
            ["submitted_at", "started_at"].into_iter().any(|from| file.may_overlap(from, "as_of", start, end))
        });
        let read = move |batches: Vec<RecordBatch>| {
            let (mut names, mut out) = (Interned::default(), Vec::new());
            for batch in &batches {
                let rows = jobs::rows(batch, &mut names)?.into_iter();
                out.extend(rows.map(|(attempt, _)| attempt).filter(|attempt| is_in(attempt, during)));
            }
            Ok(out)
        };
        let found = snapshot.read_with(files.cloned().collect(), None, &[], read).await?;
        let mut course = Course {
            attempts: found.into_iter().flat_map(|(_, attempts)| attempts).map(Arc::unwrap_or_clone).collect(),
            ..Course::default()
        };
        course.attempts.sort_by(|a, b| a.key.cmp(&b.key));
        let mut known = self.facts.clusters(None).await?;
        for (name, (frame, nodes)) in self.live_nodes().await? {
            let served = nodes.into_iter().filter_map(|node| {
                let service = frame.service(&node).filter(|service| service.overlap(during).is_some())?;
                Some((node, service))
            });
            course.nodes.extend(served);
            let outages = known.remove(&name).into_iter().flat_map(|cluster| cluster.outages);
            course.outages.extend(outages.filter(|outage| outage.during.overlap(during).is_some()));
        }
        course.nodes.sort_by(|(a, _), (b, _)| (&a.cluster, &a.node).cmp(&(&b.cluster, &b.node)));
        Ok(course)
    }
}

/// Whether an attempt waited or held cards in some of a time.
fn is_in(attempt: &Attempt, during: Interval) -> bool {
    let begins = attempt.submitted_at.into_iter().chain(attempt.started_at).min();
    let ends = attempt.ended_at.or(attempt.as_of);
    begins.is_some_and(|begins| begins < during.end()) && ends.is_some_and(|ends| during.start() < ends)
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Pool, during};

    /// By hand, of 3 March from 05:00 to 06:30: job 2 begins at 05:00, 3 ends a second after it began, 1, 4 to 9 are over. a1 and s1 serve throughout, a2 since the day before; it is out from 06:00.
    #[tokio::test]
    async fn a_time_has_those_who_waited_or_held_cards_in_some_of_it() {
        let pool = Pool::booked().await;
        let reading = pool.ledger.read().await.unwrap();
        let course = reading.course(during("2026-03-03T05:00:00", "2026-03-03T06:30:00")).await.unwrap();
        let jobs: Vec<&str> = course.attempts.iter().map(|attempt| &*attempt.job_id).collect();
        assert_eq!(jobs, ["2", "3"]);
        let nodes: Vec<&str> = course.nodes.iter().map(|(node, _)| &*node.node).collect();
        assert_eq!(nodes, ["a1", "a2", "s1"]);
        assert_eq!(course.outages.len(), 1);
        assert!(course.nodes.iter().all(|(_, service)| service.start() < course.outages[0].during.start()));
    }
}
