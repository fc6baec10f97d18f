//! Amazon's signature of a request, version 4, in a header, with the hash of the body.
//!
//! Source: Amazon S3 API Reference, "Signature Calculations for the Authorization Header: Transferring Payload in a Single Chunk"; the tests hold its
//! examples. A signature in the address, which small libraries make, leaves the body unsigned and puts session tokens into the logs of proxies.

use crate::Credentials;
use cardhour_domain::Timestamp;
use ring::digest::{SHA256, digest};
use ring::hmac;
use std::fmt::Write;

/// What is signed.
pub(crate) struct Signed<'r> {
    pub(crate) method: &'r str,
    /// Encoded, as it is sent.
    pub(crate) path: &'r str,
    /// Encoded and sorted, as it is sent.
    pub(crate) query: &'r str,
    /// In small letters, sorted.
    pub(crate) headers: &'r [(&'static str, String)],
    /// SHA-256 of the body.
    pub(crate) body_sha256: &'r str,
    pub(crate) region: &'r str,
    pub(crate) at: Timestamp,
}

impl Signed<'_> {
    /// The header `Authorization`.
    pub(crate) fn authorization(&self, credentials: &Credentials) -> String {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let mut request = format!("{}\n{}\n{}\n", self.method, self.path, self.query);
        for (name, value) in self.headers {
            writeln!(request, "{name}:{}", value.trim()).expect("a text takes any text");
        }
        write!(request, "\n{names}\n{}", self.body_sha256).expect("a text takes any text");

        let (time, region) = (time(self.at), self.region);
        let day = &time[..8];
        let scope = format!("{day}/{region}/s3/aws4_request");
        let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", sha256(request.as_bytes()));
        let mut key = format!("AWS4{}", credentials.secret_access_key).into_bytes();
        for part in [day, region, "s3", "aws4_request"] {
            key = hmac_sha256(&key, part).as_ref().to_vec();
        }
        let signature = hex(hmac_sha256(&key, &to_sign).as_ref());
        let id = &credentials.access_key_id;
        format!("AWS4-HMAC-SHA256 Credential={id}/{scope},SignedHeaders={names},Signature={signature}")
    }
}

/// As `x-amz-date` has it.
pub(crate) fn time(at: Timestamp) -> String {
    let at = at.to_utc().expect("a time in a year that calendars have");
    at.format("%Y%m%dT%H%M%SZ").to_string()
}

/// In hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// A text as part of a path or query: all but what needs no encoding is encoded (RFC 3986, 2.3); slashes stay where `slash` says so.
pub(crate) fn encoded(text: &str, slash: Slash) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let stays = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || byte == b'/' && slash == Slash::Stays;
        if stays {
            out.push(byte.into());
        } else {
            write!(out, "%{byte:02X}").expect("a text takes any text");
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slash {
    Stays,
    IsEncoded,
}

fn hmac_sha256(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
        write!(out, "{byte:02x}").expect("a text takes any text");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who asks in Amazon's examples, when: 2013-05-24T00:00:00Z, 15,849 days after 1970.
    const AT: Timestamp = Timestamp::from_unix_s(15_849 * 86_400);
    const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const HOST: &str = "examplebucket.s3.amazonaws.com";

    fn signature(method: &str, path: &str, query: &str, body_sha256: &str, more: &[(&'static str, &str)]) -> String {
        let credentials =
            Credentials::new("AKIAIOSFODNN7EXAMPLE".into(), "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(), None);
        let mut headers: Vec<(&'static str, String)> = vec![
            ("host", HOST.into()),
            ("x-amz-content-sha256", body_sha256.into()),
            ("x-amz-date", "20130524T000000Z".into()),
        ];
        headers.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        headers.sort();
        let signed = Signed { method, path, query, headers: &headers, body_sha256, region: "us-east-1", at: AT };
        signed.authorization(&credentials)
    }

    #[test]
    fn the_examples_that_amazon_publishes_have_the_signatures_that_it_says() {
        assert_eq!(
            signature("GET", "/test.txt", "", NOTHING, &[("range", "bytes=0-9")]),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        let body = sha256(b"Welcome to Amazon S3.");
        assert_eq!(body, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
        let path = format!("/{}", encoded("test$file.text", Slash::Stays));
        let more = [("date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")];
        let put = signature("PUT", &path, "", &body, &more);
        assert!(put.ends_with("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"), "{put}");
        let list = signature("GET", "/", "max-keys=2&prefix=J", NOTHING, &[]);
        assert!(list.ends_with("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"), "{list}");
    }

    #[test]
    fn what_is_no_letter_digit_or_one_of_four_marks_is_encoded() {
        assert_eq!(encoded("a/b +ä%~-._", Slash::Stays), "a/b%20%2B%C3%A4%25~-._");
        assert_eq!(encoded("a/b", Slash::IsEncoded), "a%2Fb");
    }
}
