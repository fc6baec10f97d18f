//! Requests to a bucket, signed and ready to be sent.

use crate::signature::{Signed, Slash, encoded, sha256, time};
use crate::{Bucket, Credentials};
use cardhour_domain::Timestamp;

/// What to send. Good for a quarter of an hour after its time.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The address, with its query.
    pub url: String,
    /// Names in small letters. `host` isn't among them: it is what the address says.
    pub headers: Vec<(&'static str, String)>,
}

impl Bucket {
    /// Puts `body` under a key, over what is there: `PUT`.
    pub fn put(&self, key: &str, body: &[u8], credentials: &Credentials, at: Timestamp) -> Request {
        self.signed("PUT", key, &[], body, credentials, at)
    }

    /// Gets what is under a key: `GET`.
    pub fn get(&self, key: &str, credentials: &Credentials, at: Timestamp) -> Request {
        self.signed("GET", key, &[], &[], credentials, at)
    }

    /// Removes what is under a key: `DELETE`.
    pub fn delete(&self, key: &str, credentials: &Credentials, at: Timestamp) -> Request {
        self.signed("DELETE", key, &[], &[], credentials, at)
    }

    /// Lists what waits, a page of at most a thousand, after the page that gave `token`: `GET`.
    pub fn list(&self, token: Option<&str>, credentials: &Credentials, at: Timestamp) -> Request {
        let waiting = self.waiting();
        // Sorted, as the signature wants them.
        let mut query = vec![("encoding-type", "url"), ("list-type", "2"), ("prefix", &waiting)];
        if let Some(token) = token {
            query.insert(0, ("continuation-token", token));
        }
        self.signed("GET", "", &query, &[], credentials, at)
    }

    fn signed(
        &self,
        method: &'static str,
        key: &str,
        query: &[(&str, &str)],
        body: &[u8],
        credentials: &Credentials,
        at: Timestamp,
    ) -> Request {
        let mut path = format!("{}{}", self.path, encoded(key, Slash::Stays));
        if key.is_empty() && path.len() > 1 {
            // The bucket itself: some servers take it only without the slash.
            path.pop();
        }
        let words = query.iter().map(|(name, value)| format!("{name}={}", encoded(value, Slash::IsEncoded)));
        let query = words.collect::<Vec<_>>().join("&");
        let body_sha256 = sha256(body);
        let mut headers =
            vec![("host", self.host.clone()), ("x-amz-content-sha256", body_sha256.clone()), ("x-amz-date", time(at))];
        headers.extend(credentials.session_token.clone().map(|token| ("x-amz-security-token", token)));
        let signed = Signed {
            method,
            path: &path,
            query: &query,
            headers: &headers,
            body_sha256: &body_sha256,
            region: &self.region,
            at,
        };
        let authorization = signed.authorization(credentials);
        headers.remove(0);
        headers.push(("authorization", authorization));
        let scheme = if self.is_tls { "https" } else { "http" };
        let mark = if query.is_empty() { "" } else { "?" };
        Request { url: format!("{scheme}://{}{path}{mark}{query}", self.host), headers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    const AT: Timestamp = Timestamp::from_unix_s(1_900_000_000);

    fn bucket() -> Bucket {
        let settings = Settings {
            bucket: "s3://pool/a b".into(),
            endpoint: Some("https://minio.example:9000".into()),
            ..Settings::default()
        };
        Bucket::new(&settings).unwrap()
    }

    #[test]
    fn an_address_has_each_odd_character_encoded_once() {
        let credentials = Credentials::new("A".into(), "s3cret".into(), Some("token".into()));
        let request = bucket().put("a b/incoming/n%1+ä/x", b"body", &credentials, AT);
        assert_eq!(request.url, "https://minio.example:9000/pool/a%20b/incoming/n%251%2B%C3%A4/x");
        let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["x-amz-content-sha256", "x-amz-date", "x-amz-security-token", "authorization"]);
        // 1,900,000,000 s are 2030-03-17T17:46:40Z, by `date -u -d @1900000000`.
        assert_eq!(request.headers[1].1, "20300317T174640Z");
        assert!(!format!("{:?}", request.headers).contains("s3cret"));
        let list = bucket().list(Some("a/b="), &credentials, AT);
        assert_eq!(
            list.url,
            "https://minio.example:9000/pool?continuation-token=a%2Fb%3D&encoding-type=url&list-type=2&prefix=a%20b%2Fincoming%2F"
        );
    }
}
