//! Segments that nodes put into a bucket: the ledger's folder `incoming`, for nodes that can't write there.
//!
//! One that waits is got, taken in, and removed when it is in the books, so a kill between the two finds it known the next time. What is refused goes to
//! `refused/` beside it, as in the folder. What isn't a segment is left alone.
//!
//! Start at [`Incoming::take`]. Commands take once, before they read; the service takes each minute, [`Incoming::keep_taking`].

use crate::clock::now;
use crate::config::IncomingConfig;
use crate::error::chain;
use cardhour_bucket::{
    Bucket, Credentials, CredentialsError, CredentialsSource, Fault, Listed, Listing, ListingError, Request,
};
use cardhour_domain::SegmentName;
use cardhour_ledger::{Ledger, MOST_SEGMENT_BYTES, Segment, Taken};
use futures::{StreamExt, stream};
use reqwest::header::{ETAG, RETRY_AFTER};
use reqwest::{Client, Method};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::{info, warn};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(60);
/// Segments that are taken in at a time, so that memory doesn't grow with what waits.
const TOGETHER: usize = 64;
/// Requests under way at a time.
const AT_ONCE: usize = 8;
/// How often a service looks.
const EVERY: Duration = Duration::from_secs(60);
/// What a bucket may ask for at most: it could be wrong.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// The most of an answer that is no segment: a page of a thousand keys of a kilobyte has half of it. Unit: bytes.
const MOST_ANSWER_BYTES: usize = 4 << 20;

/// Why some segments stay in the bucket for now.
#[derive(Debug, thiserror::Error)]
pub enum IncomingError {
    /// The certificates of `ca_file` can't be used.
    #[error("no certificate can be read from incoming.ca_file {}: {reason}", file.display())]
    Certificate {
        /// Which.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// There is nothing to say who asks.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Nobody answers.
    #[error("no answer from {bucket}: {reason}")]
    Unreachable {
        /// Which, and where.
        bucket: String,
        /// What came instead.
        reason: String,
    },
    /// It doesn't do what it is asked.
    #[error("{bucket} answers {fault} ({doing})")]
    Fault {
        /// Which, and where.
        bucket: String,
        /// What it says.
        fault: Fault,
        /// What it was asked for.
        doing: &'static str,
    },
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
            Self::Fault { fault, .. } => fault.is_passing(),
            Self::Certificate { .. }
            | Self::Credentials(_)
            | Self::Unreachable { .. }
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
    client: Client,
    bucket: Bucket,
    credentials: CredentialsSource,
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
    pub fn new(config: &IncomingConfig) -> Result<Self, IncomingError> {
        let bucket = config.bucket.clone();
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("cardhour/", env!("CARGO_PKG_VERSION")));
        if bucket.is_on_this_machine() {
            // A proxy that the environment names is for what is elsewhere.
            builder = builder.no_proxy();
        }
        if let Some(file) = &config.ca_file {
            let failed = |reason: String| IncomingError::Certificate { file: file.clone(), reason };
            let pem = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
            let all = reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| failed(error.to_string()))?;
            if all.is_empty() {
                return Err(failed("there is none in it".to_owned()));
            }
            builder = builder.tls_built_in_root_certs(false);
            for certificate in all {
                builder = builder.add_root_certificate(certificate);
            }
        }
        let unusable = |error| IncomingError::Unreachable { bucket: bucket.to_string(), reason: chain(&error) };
        let client = builder.build().map_err(unusable)?;
        let credentials = CredentialsSource { file: config.credentials_file.clone() };
        Ok(Self { client, bucket, credentials, passed_by: Mutex::default() })
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
                        info!(bucket = %self.bucket, "segments are taken from the bucket again");
                    }
                }
                Ok(Some(trouble)) => {
                    if let IncomingError::Fault { fault: Fault { retry_after: Some(after), .. }, .. } = &trouble {
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
        let credentials = self.credentials.load(|variable| std::env::var_os(variable))?;
        let mut token = None;
        loop {
            let signed = self.bucket.list(token.as_deref(), &credentials, now());
            let body = self.answer(Method::GET, &signed, None, "listing", MOST_ANSWER_BYTES).await?;
            let listing = |source| IncomingError::Listing { bucket: self.bucket.to_string(), source };
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
        let (node, name) = self.bucket.segment_of(&object.key)?;
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
                Err(IncomingError::Fault { fault, .. }) if fault.is_gone() => {}
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
                (0, Err(IncomingError::Ledger { bucket: self.bucket.to_string(), source }))
            }
        }
    }

    async fn get(&self, credentials: &Credentials, one: &Waiting) -> Result<Vec<u8>, IncomingError> {
        let signed = self.bucket.get(&one.key, credentials, now());
        self.answer(Method::GET, &signed, None, "getting a segment", MOST_SEGMENT_BYTES).await
    }

    async fn remove(&self, credentials: &Credentials, one: &Waiting) -> Result<(), IncomingError> {
        let signed = self.bucket.delete(&one.key, credentials, now());
        let removed =
            self.answer(Method::DELETE, &signed, None, "removing a segment that is in the books", MOST_ANSWER_BYTES);
        match removed.await {
            Err(IncomingError::Fault { fault, .. }) if fault.is_gone() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    async fn set_aside(&self, credentials: &Credentials, one: &Waiting, bytes: &[u8]) -> Result<(), IncomingError> {
        let aside = self.bucket.refused_key(&one.node, &one.name);
        let signed = self.bucket.put(&aside, bytes, credentials, now());
        self.answer(Method::PUT, &signed, Some(bytes), "keeping a refused segment aside", MOST_ANSWER_BYTES).await?;
        self.remove(credentials, one).await
    }

    /// The body of an answer that says that it was done.
    async fn answer(
        &self,
        method: Method,
        signed: &Request,
        body: Option<&[u8]>,
        doing: &'static str,
        most_bytes: usize,
    ) -> Result<Vec<u8>, IncomingError> {
        let unreachable = |error: reqwest::Error| self.unreachable(chain(&error.without_url()));
        let mut request = self.client.request(method.clone(), &signed.url);
        for (name, value) in &signed.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = body {
            request = request.body(body.to_vec());
        }
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        // A page that answers to everything has kept nothing.
        let is_done = match method {
            Method::PUT => status == 200 && response.headers().contains_key(ETAG),
            Method::DELETE => status == 204,
            _ => status == 200,
        };
        let mut answer = Vec::new();
        while let Some(part) = response.chunk().await.map_err(unreachable)? {
            if answer.len() + part.len() > most_bytes {
                return Err(self.unreachable(format!("more than {most_bytes} bytes ({doing})")));
            }
            answer.extend_from_slice(&part);
        }
        if is_done {
            return Ok(answer);
        }
        let fault = Fault::new(status, &answer, retry_after.as_deref());
        Err(IncomingError::Fault { bucket: self.bucket.to_string(), fault, doing })
    }

    fn unreachable(&self, reason: String) -> IncomingError {
        IncomingError::Unreachable { bucket: self.bucket.to_string(), reason }
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
