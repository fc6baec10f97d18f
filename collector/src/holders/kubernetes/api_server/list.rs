//! A list of the API server's, read as it comes in.

use super::connection::{self, Reply};
use super::{ApiError, ApiSettings};
use bytes::{Buf as _, Bytes};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use std::fmt::Write as _;
use std::io::{self, BufReader, Read};
use std::time::Duration;
use tokio::runtime::Runtime;

#[derive(Deserialize)]
struct ListJson<T> {
    #[serde(default)]
    metadata: MetadataJson,
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetadataJson {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

/// All items of a list, and its version.
///
/// It may be as old as the server's own cache: then the server doesn't ask its store, where each list of one node's pods would read
/// those of all nodes. The watch that follows brings what is newer.
pub(super) fn all<T: for<'de> Deserialize<'de>>(
    runtime: &Runtime,
    settings: &ApiSettings,
    path: &str,
) -> Result<(String, Vec<T>), ApiError> {
    let mut items = Vec::new();
    let mut page = format!("{path}&resourceVersion=0");
    loop {
        let reply = runtime.block_on(connection::get(settings, &page))?;
        let body = BodyReader { runtime, reply, left: Bytes::new(), timeout: settings.timeout };
        let list: ListJson<T> = serde_json::from_reader(BufReader::new(body))
            .map_err(|source| ApiError::Unreadable { path: path.to_owned(), source })?;
        items.extend(list.items.unwrap_or_default());
        if list.metadata.next.is_empty() {
            return Ok((list.metadata.resource_version, items));
        }
        page = format!("{path}&continue={}", percent_encoded(&list.metadata.next));
    }
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte as char),
            _ => write!(encoded, "%{byte:02X}").expect("a string takes all"),
        }
    }
    encoded
}

/// A body that is still coming in, as something to read from: a pod is parsed before the next has come, so that no list lies in memory whole.
struct BodyReader<'a> {
    runtime: &'a Runtime,
    reply: Reply,
    left: Bytes,
    timeout: Duration,
}

impl Read for BodyReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while !self.left.has_remaining() {
            let body = &mut self.reply.body;
            let frame = async { tokio::time::timeout(self.timeout, body.frame()).await };
            match self.runtime.block_on(frame) {
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(None) => return Ok(0),
                Ok(Some(frame)) => self.left = frame.map_err(io::Error::other)?.into_data().unwrap_or_default(),
            }
        }
        let length = self.left.remaining().min(into.len());
        self.left.copy_to_slice(&mut into[..length]);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_the_servers_is_sent_back_as_it_was() {
        assert_eq!(percent_encoded("eyJ2Ijoi-_.~+/="), "eyJ2Ijoi-_.~%2B%2F%3D");
    }
}
