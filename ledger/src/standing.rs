//! Who held cards and who waited for some at one instant: what a decision about the pool is made from.
//!
//! Start at [`Reading::standing`]. Does not: decide anything.

use crate::columns::Interned;
use crate::tables::jobs::{self, JOBS};
use crate::{Error, Reading};
use arrow::record_batch::RecordBatch;
use cardhour_books::attempt::Attempt;
use cardhour_books::site::{Node, Outage};

use cardhour_domain::{Interval, JobState, Timestamp};
use std::sync::Arc;

/// How long an open attempt counts as running after its source's last word. Unit: milliseconds.
const OPEN_FOR_MS: i64 = 24 * 3_600_000;

/// The pool at one instant, by the records of today.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Attempts that held cards, by key.
    pub running: Vec<Attempt>,
    /// Attempts that were submitted and had none yet, by key.
    pub waiting: Vec<Attempt>,
    /// Nodes in service, by cluster and name.
    pub nodes: Vec<Node>,
    /// Outages that held.
    pub outages: Vec<Outage>,
}

impl Reading {
    /// The last moment that any record speaks of: until then it is known who held cards. None of an empty ledger.
    pub fn last_word(&self) -> Option<Timestamp> {
        let said = self.facts.of(&JOBS).files.iter().filter_map(|file| file.bounds("as_of"));
        said.map(|(_, last)| last).max()
    }

    /// Attempts that hold cards at `at` by the newest records: those that ended later, and open ones whose source spoke within the day before.
    pub async fn running(&self, at: Timestamp) -> Result<Vec<Attempt>, Error> {
        let day_before = at.checked_add_ms(-OPEN_FOR_MS).unwrap_or(at);
        self.attempts_of(day_before, at, move |attempt| is_running(attempt, at, day_before)).await
    }

    /// Attempts of the files that may speak of a time, of which `keep` says yes, by key.
    async fn attempts_of(
        &self,
        start: Timestamp,
        end: Timestamp,
        keep: impl Fn(&Attempt) -> bool + Copy + Send + Sync + 'static,
    ) -> Result<Vec<Attempt>, Error> {
        let snapshot = self.facts.of(&JOBS);
        let files = snapshot.files.iter().filter(|file| file.may_overlap("started_at", "as_of", start, end));
        let read = move |batches: Vec<RecordBatch>| {
            let (mut names, mut out) = (Interned::default(), Vec::new());
            for batch in &batches {
                let rows = jobs::rows(batch, &mut names)?.into_iter();
                out.extend(rows.map(|(attempt, _)| attempt).filter(|attempt| keep(attempt)));
            }
            Ok(out)
        };
        let found = snapshot.read_with(files.cloned().collect(), None, &[], read).await?;
        let mut attempts: Vec<Attempt> =
            found.into_iter().flat_map(|(_, attempts)| attempts).map(Arc::unwrap_or_clone).collect();
        attempts.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(attempts)
    }

    /// Attempts that held cards in some of `during`, whole, by key.
    pub async fn held_in(&self, during: Interval) -> Result<Vec<Attempt>, Error> {
        let (start, end) = (during.start(), during.end());
        self.attempts_of(start, end, move |attempt| {
            let until = attempt.ended_at.or(attempt.as_of);
            attempt.started_at.is_some_and(|from| from < end) && until.is_some_and(|until| start < until)
        })
        .await
    }

    /// Who held cards and who waited at `at`. Of an open attempt that is known up to its source's last word; later it isn't among them.
    pub async fn standing(&self, at: Timestamp) -> Result<Standing, Error> {
        let just = Interval::new(at, at.checked_add_ms(1).ok_or_else(|| Error::damaged(JOBS.name, format!("{at}")))?);
        let just = just.expect("a millisecond");
        let snapshot = self.facts.of(&JOBS);
        let mut standing = Standing::default();
        let files = snapshot.files.iter().filter(|file| {
            file.may_overlap("submitted_at", "as_of", just.start(), just.end())
                || file.may_overlap("started_at", "as_of", just.start(), just.end())
        });
        let read = move |batches: Vec<RecordBatch>| {
            let (mut names, mut out) = (Interned::default(), Vec::new());
            for batch in &batches {
                out.extend(
                    jobs::rows(batch, &mut names)?
                        .into_iter()
                        .filter_map(|(attempt, _)| place(Arc::unwrap_or_clone(attempt), at)),
                );
            }
            Ok(out)
        };
        for (_, found) in snapshot.read_with(files.cloned().collect(), None, &[], read).await? {
            for (attempt, holds) in found {
                if holds { &mut standing.running } else { &mut standing.waiting }.push(attempt);
            }
        }
        standing.running.sort_by(|a, b| a.key.cmp(&b.key));
        standing.waiting.sort_by(|a, b| a.key.cmp(&b.key));
        let mut known = self.facts.clusters(None).await?;
        for (name, (frame, nodes)) in self.live_nodes().await? {
            // What is known ends with the last word; a node that wasn't retired is there at that very moment.
            let serves = |node: &Node| {
                let is_last =
                    |service: Interval| service.end() == at && node.retired_at.is_none_or(|retired| at < retired);
                frame.service(node).is_some_and(|service| service.contains(at) || is_last(service))
            };
            standing.nodes.extend(nodes.into_iter().filter(serves));
            let outages = known.remove(&name).into_iter().flat_map(|cluster| cluster.outages);
            standing.outages.extend(outages.filter(|outage| outage.during.contains(at)));
        }
        standing.nodes.sort_by(|a, b| (&a.cluster, &a.node).cmp(&(&b.cluster, &b.node)));
        Ok(standing)
    }
}

fn is_running(attempt: &Attempt, at: Timestamp, day_before: Timestamp) -> bool {
    let has_started = attempt.started_at.is_some_and(|start| start <= at);
    let goes_on = match attempt.ended_at {
        Some(end) => at < end,
        None => !attempt.is_final && attempt.as_of.is_some_and(|said| day_before <= said),
    };
    has_started && goes_on
}

/// An attempt that held cards at `at` (yes) or waited for some (no); none where it did neither.
fn place(attempt: Attempt, at: Timestamp) -> Option<(Attempt, bool)> {
    let until = attempt.ended_at.or(attempt.as_of);
    // At the very moment of the last word an open one is still there.
    let is_there = until.is_some_and(|until| at < until || (!attempt.is_final && at == until));
    match attempt.started_at {
        Some(start) if start <= at => is_there.then_some((attempt, true)),
        Some(start) => {
            attempt.submitted_at.is_some_and(|submit| submit <= at && at < start).then_some((attempt, false))
        }
        None => {
            let waits = attempt.submitted_at.is_some_and(|submit| submit <= at)
                && (is_there || attempt.state == JobState::Pending && until.is_none());
            waits.then_some((attempt, false))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Pool, at, job};

    /// By hand, at 3 March 01:30: job 1 holds two cards until 02:30, 3 holds one from 01:00; 8 on `small` ended at 01:20; 2 has yet to start.
    #[tokio::test]
    async fn who_held_cards_at_an_instant_and_who_waited() {
        let pool = Pool::booked().await;
        let mut early = job("lab 20 vision a1 1 2026-03-03T02:00:00 2026-03-03T03:00:00");
        early.submitted_at = Some(at("2026-03-03T01:00:00"));
        pool.import(vec![early]).await;
        let standing = pool.ledger.read().await.unwrap().standing(at("2026-03-03T01:30:00")).await.unwrap();
        let ids = |attempts: &[Attempt]| attempts.iter().map(|attempt| attempt.job_id.to_string()).collect::<Vec<_>>();
        assert_eq!(
            (ids(&standing.running), ids(&standing.waiting)),
            (vec!["1".into(), "3".into()], vec!["20".to_owned()])
        );
        let nodes: Vec<&str> = standing.nodes.iter().map(|node| &*node.node).collect();
        assert_eq!(nodes, ["a1", "a2", "s1"]);
        let later = pool.ledger.read().await.unwrap().standing(at("2026-03-03T07:00:00")).await.unwrap();
        assert_eq!(ids(&later.running), ["2"]);
        assert_eq!(later.outages.len(), 1, "a2 is out from 06:00");
        let last = pool.ledger.read().await.unwrap().last_word();
        assert_eq!(last, Some(at("2026-03-03T09:10:00")), "job 2 ended last");
    }
}
