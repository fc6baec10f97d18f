//! A bucket for tests, on loopback: moto's server, which checks signatures by Amazon's own signer and lets each asker do what its policy says.
//!
//! The policies of [`NODE`] and [`SERVICE`] are those that `deploy/bucket` has for real buckets. moto is a Python package of
//! `tests/requirements.txt`; where `CARDHOUR_PYTHON` hasn't got it a test is skipped, and says so, or fails where `CARDHOUR_REQUIRE_ALL` is 1.

use cardhour_bucket::{Bucket, Credentials, CredentialsSource, Listing, Request, Settings};
use cardhour_domain::Timestamp;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// Where segments go in it.
pub const PLACE: &str = "s3://pool/cardhour";
/// Who may put under `incoming/gpu01/`.
pub const NODE: &str = "node";
/// Who may take what waits.
pub const SERVICE: &str = "service";
const OWNER: &str = "owner";

/// A running server with a bucket.
pub struct TestBucket {
    child: Child,
    folder: TempDir,
    /// Where it is.
    pub endpoint: String,
    bucket: Bucket,
}

impl TestBucket {
    /// Starts one, which is empty. None, said aloud, where moto isn't there.
    pub fn start(test: &str) -> Option<Self> {
        let python = std::env::var("CARDHOUR_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let silent = |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let has_moto = silent(Command::new(&python).args(["-c", "import moto.server, boto3"]));
        if !has_moto.is_ok_and(|status| status.success()) {
            assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none_or(|all| all != "1"), "{test}: no moto");
            println!("skipped: {test} needs the Python of CARDHOUR_PYTHON with moto, of tests/requirements.txt");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let everything = folder.path().join("everything.json");
        let allowed =
            r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}"#;
        std::fs::write(&everything, allowed).unwrap();
        let policies = here.join("../../deploy/bucket");
        let mut child = Command::new(&python)
            .arg(here.join("server.py"))
            .arg("pool")
            .arg(format!("{OWNER}={}", everything.display()))
            .arg(format!("{NODE}={}", policies.join("node-policy.json").display()))
            .arg(format!("{SERVICE}={}", policies.join("service-policy.json").display()))
            // It ends when this is closed, so also when the test is killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).expect("the server says where it is");
        for who in [OWNER, NODE, SERVICE] {
            let [id, secret] = [0, 1].map(|at| said["keys"][who][at].as_str().unwrap());
            write_credentials(&folder.path().join(who), id, secret);
        }
        let endpoint = format!("http://127.0.0.1:{}", said["port"]);
        let settings = Settings { bucket: PLACE.into(), endpoint: Some(endpoint.clone()), ..Settings::default() };
        let bucket = Bucket::new(&settings).unwrap();
        Some(Self { child, folder, endpoint, bucket })
    }

    /// The bucket, as somebody asks it.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// The credentials of [`NODE`] or [`SERVICE`], in a file as they have to be.
    pub fn credentials_file(&self, who: &str) -> PathBuf {
        self.folder.path().join(who)
    }

    /// The access key of [`NODE`] with another secret.
    pub fn wrong_credentials_file(&self) -> PathBuf {
        let path = self.folder.path().join("wrong");
        let id = self.credentials(NODE).access_key_id;
        write_credentials(&path, &id, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        path
    }

    /// The keys of all that is in it, however many pages.
    pub fn keys(&self) -> Vec<String> {
        let (mut keys, mut token) = (Vec::new(), None);
        loop {
            let request = self.bucket.list(token.as_deref(), &self.credentials(OWNER), now());
            let body = get(&request).expect("it lists");
            let page = Listing::parse(&String::from_utf8(body).unwrap()).unwrap();
            keys.extend(page.objects.into_iter().map(|object| object.key));
            token = page.next;
            if token.is_none() {
                return keys;
            }
        }
    }

    /// What is under a key; none: nothing.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        get(&self.bucket.get(key, &self.credentials(OWNER), now()))
    }

    /// Puts something under a key.
    pub fn put(&self, key: &str, body: &[u8]) {
        let signed = self.bucket.put(key, body, &self.credentials(OWNER), now());
        let request = signed.headers.iter().fold(ureq::put(&signed.url), |r, (name, value)| r.header(*name, value));
        request.send(body).unwrap();
    }

    fn credentials(&self, who: &str) -> Credentials {
        CredentialsSource { file: Some(self.credentials_file(who)) }.load(|_| None).unwrap()
    }
}

impl Drop for TestBucket {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn write_credentials(path: &Path, id: &str, secret: &str) {
    use std::io::Write;
    let mut file = std::fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path).unwrap();
    writeln!(file, "[default]\naws_access_key_id = {id}\naws_secret_access_key = {secret}").unwrap();
}

fn get(signed: &Request) -> Option<Vec<u8>> {
    let request = signed.headers.iter().fold(ureq::get(&signed.url), |r, (name, value)| r.header(*name, value));
    match request.call() {
        Ok(mut response) => Some(response.body_mut().read_to_vec().unwrap()),
        Err(ureq::Error::StatusCode(404)) => None,
        Err(error) => panic!("{error}"),
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_of_more_than_a_page_is_whole_and_odd_keys_are_as_they_were_put() {
        let Some(server) = TestBucket::start("a_listing_of_more_than_a_page") else { return };
        let mut expected: Vec<String> = (0..1_001).map(|number| format!("cardhour/incoming/a/{number}")).collect();
        for odd in ["node 1+ä", "%2F&=?#", "<x>&amp;\"'", "a//b", "~(!*)"] {
            expected.push(format!("cardhour/incoming/{odd}/x"));
        }
        for key in &expected {
            server.put(key, key.as_bytes());
        }
        expected.sort();
        assert_eq!(server.keys(), expected);
        for key in expected.iter().rev().take(5).chain(&expected[..5]) {
            assert_eq!(server.get(key).as_deref(), Some(key.as_bytes()), "{key}");
        }
        assert_eq!(server.get("cardhour/incoming/none"), None);
    }
}
