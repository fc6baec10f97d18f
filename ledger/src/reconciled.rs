//! Records of the books beside what nodes told: the input of [`cardhour_books::reconcile`].

use crate::columns::Interned;
use crate::facts::FreshJobs;
use crate::{Error, Reading};
use cardhour_books::reconcile::{Line, reconcile};
use cardhour_books::report::ReportAttempt;
use cardhour_domain::{AttemptKey, Interval, Name, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Records beside what nodes told.
#[derive(Debug, Default)]
pub struct Reconciled {
    /// What of each attempt is under which reason.
    pub lines: Vec<Line>,
    /// Who the attempts are.
    pub attempts: BTreeMap<AttemptKey, ReportAttempt>,
    /// Whether any node ever told anything; else there is nothing to hold records against.
    pub has_nodes: bool,
}

impl Reading {
    /// Every attempt that the books know of, from records and from nodes. In order of their keys.
    pub async fn all_attempts(&self) -> Result<Vec<ReportAttempt>, Error> {
        match self.extent() {
            None => Ok(Vec::new()),
            Some(all) => self.attempts(all, Arc::new(Mutex::new(Interned::default()))).await,
        }
    }

    /// Holds the records against what nodes told, over `range` or all time.
    pub async fn reconcile(&self, range: Option<Interval>) -> Result<Reconciled, Error> {
        let (Some(all), Some(seen)) = (self.extent(), self.facts.seen().await?) else {
            return Ok(Reconciled::default());
        };
        let covered: BTreeMap<Name, Vec<Interval>> =
            self.facts.clusters(None).await?.into_iter().map(|(name, cluster)| (name, cluster.covered)).collect();
        let (first, last) = (Timestamp::from_unix_ms(i64::MIN), Timestamp::from_unix_ms(i64::MAX));
        // All of them: which run of a job a node saw rests on the job's other runs too.
        let claims = self.facts.claims(first, last, &FreshJobs::default()).await?;
        let attempts = self.attempts(range.unwrap_or(all), Arc::new(Mutex::new(Interned::default()))).await?;
        let work = move || reconcile(&claims, &seen, &covered, range);
        let lines = tokio::task::spawn_blocking(work).await.expect("does not panic");
        let attempts = attempts.into_iter().map(|attempt| (attempt.key.clone(), attempt)).collect();
        Ok(Reconciled { lines, attempts, has_nodes: true })
    }
}
