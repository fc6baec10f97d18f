//! A bucket, asked over HTTP: one client for what is taken from it and what is put into it.
//!
//! The crate `cardhour_bucket` makes requests and reads answers; here they are sent. Start at [`BucketClient::ask`]. Does not: try again, which
//! whoever asks does with the next look.

use crate::clock::now;
use crate::config::BucketConfig;
use crate::error::chain;
use cardhour_bucket::{Bucket, Credentials, CredentialsError, CredentialsSource, Fault, Request};
use reqwest::header::{ETAG, RETRY_AFTER};
use reqwest::{Client, Method};
use std::path::PathBuf;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(60);
/// The most of an answer that is no object: a page of a thousand keys of a kilobyte has half of it. Unit: bytes.
pub const MOST_ANSWER_BYTES: usize = 4 << 20;

/// Why a bucket didn't do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The certificates of `ca_file` can't be used.
    #[error("no certificate can be read from ca_file {} of {bucket}: {reason}", file.display())]
    Certificate {
        /// Which bucket's.
        bucket: String,
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
}

/// Who asks one bucket.
#[derive(Debug)]
pub struct BucketClient {
    client: Client,
    bucket: Bucket,
    credentials: CredentialsSource,
}

impl BucketClient {
    /// Of the bucket that a config names. Errors: its certificates can't be used. Whether it can be reached is found out by asking.
    pub fn new(config: &BucketConfig) -> Result<Self, BucketError> {
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
            let failed =
                |reason: String| BucketError::Certificate { bucket: bucket.to_string(), file: file.clone(), reason };
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
        let unusable = |error| BucketError::Unreachable { bucket: bucket.to_string(), reason: chain(&error) };
        let client = builder.build().map_err(unusable)?;
        let credentials = CredentialsSource { file: config.credentials_file.clone() };
        Ok(Self { client, bucket, credentials })
    }

    /// The bucket.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Who asks, as the file or the environment says now. Errors: neither does.
    pub fn credentials(&self) -> Result<Credentials, BucketError> {
        Ok(self.credentials.load(|variable| std::env::var_os(variable))?)
    }

    /// Puts `body` under a key, over what is there, in one request: whoever reads has all of it or what was there before.
    pub async fn put(
        &self,
        key: &str,
        body: Vec<u8>,
        credentials: &Credentials,
        doing: &'static str,
    ) -> Result<(), BucketError> {
        let signed = self.bucket.put(key, &body, credentials, now());
        self.ask(Method::PUT, &signed, Some(body), doing, MOST_ANSWER_BYTES).await.map(|_| ())
    }

    /// The body of an answer that says that it was done. Errors: none came, or one that says something else.
    pub async fn ask(
        &self,
        method: Method,
        signed: &Request,
        body: Option<Vec<u8>>,
        doing: &'static str,
        most_bytes: usize,
    ) -> Result<Vec<u8>, BucketError> {
        let unreachable = |error: reqwest::Error| self.unreachable(chain(&error.without_url()));
        let mut request = self.client.request(method.clone(), &signed.url);
        for (name, value) in &signed.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = body {
            request = request.body(body);
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
        Err(BucketError::Fault { bucket: self.bucket.to_string(), fault, doing })
    }

    fn unreachable(&self, reason: String) -> BucketError {
        BucketError::Unreachable { bucket: self.bucket.to_string(), reason }
    }
}
