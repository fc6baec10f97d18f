//! Segments into a bucket.

use super::{Answer, DeliveryError, Trouble, client};
use cardhour_bucket::{Bucket, CredentialsSource, Fault};
use cardhour_domain::{Name, SegmentName, Timestamp};
use std::path::Path;
use ureq::Agent;

/// What is read of an answer: a code and a sentence.
const ANSWER_BYTES: u64 = 4096;

/// A bucket, and who asks it.
pub(super) struct Store {
    agent: Agent,
    bucket: Bucket,
    credentials: CredentialsSource,
    node: Name,
}

impl Store {
    pub(super) fn new(
        bucket: Bucket,
        credentials: CredentialsSource,
        node: Name,
        ca_file: Option<&Path>,
    ) -> Result<Self, DeliveryError> {
        let agent = if bucket.is_tls() {
            client::over_tls(bucket.is_on_this_machine(), ca_file)?
        } else {
            client::without_tls()
        };
        Ok(Self { agent, bucket, credentials, node })
    }

    /// Puts a segment there. What is there already under its name is the same, so it may be put again.
    pub(super) fn take(&self, name: &SegmentName, bytes: &[u8], now: Timestamp) -> Result<Answer, Trouble> {
        let credentials = self.credentials.load(|variable| std::env::var_os(variable))?;
        let signed = self.bucket.put(&self.bucket.key(&self.node, name), bytes, &credentials, now);
        let mut request = self.agent.put(&signed.url).header("Content-Type", "application/vnd.apache.parquet");
        for (header, value) in &signed.headers {
            request = request.header(*header, value);
        }
        let unreachable =
            |error: ureq::Error| Trouble::Unreachable { to: self.bucket.to_string(), source: error.into() };
        let mut response = request.send(bytes).map_err(unreachable)?;
        let (status, headers) = (response.status().as_u16(), response.headers());
        // Each bucket says what it has now; a page that answers to everything doesn't.
        if status == 200 && headers.contains_key("etag") {
            return Ok(Answer::Taken);
        }
        let retry_after = headers.get("retry-after").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = response.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec().unwrap_or_default();
        let fault = Fault::new(status, &body, retry_after.as_deref());
        Err(if fault.is_passing() {
            let reason = fault.message.clone().or(fault.code.clone());
            let reason = reason.unwrap_or_else(|| "without a reason that can be read".to_owned());
            Trouble::Busy { who: "bucket", status, reason, retry_after: fault.retry_after }
        } else {
            Trouble::Bucket { bucket: self.bucket.to_string(), fault }
        })
    }
}
