//! Segments that nodes put into a bucket: the ledger's folder `incoming`, for nodes that can't write there.
//!
//! One that waits is got, taken in, and removed when it is in the books, so a kill between the two finds it known the next time. What is refused goes to
//! `refused/` beside it, as in the folder. What isn't a segment is left alone.
//!
//! Start at [`Incoming::take`]. Commands take once, before they read; the service takes each minute, [`Incoming::keep_taking`].

use crate::bucket_client::{BucketClient, BucketError, MOST_ANSWER_BYTES};
use crate::clock::now;
use crate::config::BucketConfig;
use crate::error::chain;
use cardhour_bucket::{Bucket, Credentials, Fault, Listed, Listing, ListingError};
use cardhour_domain::SegmentName;
use cardhour_ledger::{Ledger, MOST_SEGMENT_BYTES, Segment, Taken};
use futures::{StreamExt, stream};
use reqwest::Method;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::{info, warn};

/// Segments that are taken in at a time, so that memory doesn't grow with what waits.
const TOGETHER: usize = 64;
/// Requests under way at a time.
const AT_ONCE: usize = 8;
/// How often a service looks.
const EVERY: Duration = Duration::from_secs(60);
/// What a bucket may ask for at most: it could be wrong.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Why some segments stay in the bucket for now.
#[derive(Debug, thiserror::Error)]
pub enum IncomingError {
    /// It can't be asked, or doesn't do what it is asked.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// It answers with something else.
    #[error("{bucket}: {source}")]
    Listing {
        /// Which, and where.
        bucket: String,
        /// What came.
        source: ListingError,
    },
    /// The ledger can't take them in.
    #[error("segments of {bucket} can't be taken in")]
    Ledger {
        /// Which, and where.
        bucket: String,
        /// Why.
        source: Box<cardhour_ledger::Error>,
    },
}

impl IncomingError {
    /// Whether other requests would fare no better now.
    fn is_of_all(&self) -> bool {
        match self {
            Self::Bucket(BucketError::Fault { fault, .. }) => fault.is_passing(),
            Self::Bucket(
                BucketError::Certificate { .. } | BucketError::Credentials(_) | BucketError::Unreachable { .. },
            )
            | Self::Listing { .. }
            | Self::Ledger { .. } => true,
        }
    }
}

/// What came of a look.
#[derive(Debug, Default)]
pub struct TakenIn {
    /// Segments that were new.
    pub new: u64,
    /// Why others are still there, the first reason.
    pub trouble: Option<IncomingError>,
}

/// The bucket into which nodes put segments.
#[derive(Debug)]
pub struct Incoming {
    client: BucketClient,
    /// Objects that are too large for segments, told of once.
    passed_by: Mutex<HashSet<String>>,
}

/// One that waits.
struct Waiting {
    key: String,
    node: String,
    name: SegmentName,
}

impl Incoming {
    /// The one that the config names. Errors: its certificates can't be used. Whether it can be reached is found out by [`Self::take`].
    pub fn new(config: &BucketConfig) -> Result<Self, IncomingError> {
        Ok(Self { client: BucketClient::new(config)?, passed_by: Mutex::default() })
    }

    fn bucket(&self) -> &Bucket {
        self.client.bucket()
    }

    /// Takes in what waits, once through. Trouble with some leaves them there and ends it only where others would fare no better.
    pub async fn take(&self, ledger: &Ledger) -> TakenIn {
        let mut taken = TakenIn::default();
        if let Err(error) = self.take_all(ledger, &mut taken).await {
            taken.trouble.get_or_insert(error);
        }
        taken
    }

    /// Takes in what waits, each minute, for as long as it is awaited.
    pub async fn keep_taking(self: Arc<Self>, ledger: Ledger) {
        let mut logged = None;
        loop {
            // On a task of its own: a segment that brings it down must not end the service's looking.
            let (here, into) = (self.clone(), ledger.clone());
            let looked = tokio::spawn(async move {
                let taken = here.take(&into).await;
                if taken.new > 0
                    && let Err(error) = into.catch_up().await
                {
                    // Whoever reads next tries again, and is told.
                    warn!(error = %error, "books not brought up to what nodes told");
                }
                taken.trouble
            });
            let mut wait = EVERY;
            match looked.await {
                Ok(None) => {
                    if logged.take().is_some() {
                        info!(bucket = %self.bucket(), "segments are taken from the bucket again");
                    }
                }
                Ok(Some(trouble)) => {
                    if let IncomingError::Bucket(BucketError::Fault {
                        fault: Fault { retry_after: Some(after), .. },
                        ..
                    }) = &trouble
                    {
                        wait = (*after).clamp(EVERY, LONGEST_WAIT);
                    }
                    let says = chain(&trouble);
                    if logged.as_ref() != Some(&says) {
                        warn!(error = says, "segments stay in the bucket");
                        logged = Some(says);
                    }
                }
                Err(_) => warn!("segments not taken in, by a defect of ours; they stay in the bucket"),
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn take_all(&self, ledger: &Ledger, taken: &mut TakenIn) -> Result<(), IncomingError> {
        let credentials = self.client.credentials()?;
        let mut token = None;
        loop {
            let signed = self.bucket().list(token.as_deref(), &credentials, now());
            let body = self.client.ask(Method::GET, &signed, None, "listing", MOST_ANSWER_BYTES).await?;
            let listing = |source| IncomingError::Listing { bucket: self.bucket().to_string(), source };
            let page = Listing::parse(&String::from_utf8_lossy(&body)).map_err(listing)?;
            let waiting: Vec<Waiting> = page.objects.iter().filter_map(|object| self.waiting(object)).collect();
            for some in waiting.chunks(TOGETHER) {
                self.take_some(ledger, &credentials, some, taken).await?;
            }
            token = page.next;
            if token.is_none() {
                return Ok(());
            }
        }
    }

    fn waiting(&self, object: &Listed) -> Option<Waiting> {
        let (node, name) = self.bucket().segment_of(&object.key)?;
        if object.bytes > MOST_SEGMENT_BYTES as u64 {
            if self.passed_by.lock().expect("nobody panics with it").insert(object.key.clone()) {
                warn!(key = object.key, bytes = object.bytes, "too large for a segment: left in the bucket");
            }
            return None;
        }
        Some(Waiting { key: object.key.clone(), node: node.to_owned(), name })
    }

    async fn take_some(
        &self,
        ledger: &Ledger,
        credentials: &Credentials,
        waiting: &[Waiting],
        taken: &mut TakenIn,
    ) -> Result<(), IncomingError> {
        let getting: Vec<_> = waiting.iter().map(|one| self.get(credentials, one)).collect();
        let got: Vec<_> = stream::iter(getting).buffered(AT_ONCE).collect().await;
        let (mut segments, mut those) = (Vec::new(), Vec::new());
        for (one, got) in waiting.iter().zip(got) {
            match got {
                Ok(bytes) => {
                    segments.push(Segment {
                        node: one.node.as_str().into(),
                        name: one.name.clone(),
                        bytes: bytes.clone().into(),
                    });
                    those.push((one, bytes));
                }
                // Another process was faster.
                Err(IncomingError::Bucket(BucketError::Fault { fault, .. })) if fault.is_gone() => {}
                Err(error) => trouble(error, taken)?,
            }
        }
        let outcomes = ledger.take_segments(segments).await;
        let settling: Vec<_> = outcomes
            .into_iter()
            .zip(&those)
            .map(|(outcome, (one, bytes))| self.settle(credentials, outcome, one, bytes))
            .collect();
        let settled: Vec<_> = stream::iter(settling).buffered(AT_ONCE).collect().await;
        let mut over = Ok(());
        for (new, done) in settled {
            taken.new += new;
            if let Err(error) = done {
                over = over.and(trouble(error, taken));
            }
        }
        over
    }

    /// Removes a segment that is in the books, or keeps it aside; whether it was new.
    async fn settle(
        &self,
        credentials: &Credentials,
        outcome: Result<Taken, cardhour_ledger::Error>,
        one: &Waiting,
        bytes: &[u8],
    ) -> (u64, Result<(), IncomingError>) {
        match outcome {
            Ok(outcome) => {
                let new = u64::from(matches!(outcome, Taken::New(_)));
                (new, self.remove(credentials, one).await)
            }
            Err(
                error @ (cardhour_ledger::Error::BadSegment { .. } | cardhour_ledger::Error::SegmentDiffers { .. }),
            ) => {
                warn!(%error, key = one.key, "segment refused and kept aside");
                (0, self.set_aside(credentials, one, bytes).await)
            }
            Err(error) => {
                let source = Box::new(error);
                (0, Err(IncomingError::Ledger { bucket: self.bucket().to_string(), source }))
            }
        }
    }

    async fn get(&self, credentials: &Credentials, one: &Waiting) -> Result<Vec<u8>, IncomingError> {
        let signed = self.bucket().get(&one.key, credentials, now());
        Ok(self.client.ask(Method::GET, &signed, None, "getting a segment", MOST_SEGMENT_BYTES).await?)
    }

    async fn remove(&self, credentials: &Credentials, one: &Waiting) -> Result<(), IncomingError> {
        let signed = self.bucket().delete(&one.key, credentials, now());
        let doing = "removing a segment that is in the books";
        match self.client.ask(Method::DELETE, &signed, None, doing, MOST_ANSWER_BYTES).await {
            Err(BucketError::Fault { fault, .. }) if fault.is_gone() => Ok(()),
            other => Ok(other.map(|_| ())?),
        }
    }

    async fn set_aside(&self, credentials: &Credentials, one: &Waiting, bytes: &[u8]) -> Result<(), IncomingError> {
        let aside = self.bucket().refused_key(&one.node, &one.name);
        self.client.put(&aside, bytes.to_vec(), credentials, "keeping a refused segment aside").await?;
        self.remove(credentials, one).await
    }
}

/// Notes the first trouble. Errors: it, where others would fare no better.
fn trouble(error: IncomingError, taken: &mut TakenIn) -> Result<(), IncomingError> {
    if error.is_of_all() {
        return Err(error);
    }
    taken.trouble.get_or_insert(error);
    Ok(())
}
