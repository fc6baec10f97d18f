//! Delivery into a bucket: a server that checks signatures and policies, and one that fails as a script says.

use super::*;
use cardhour_bucket::Settings;
use cardhour_test_bucket::{NODE, PLACE, TestBucket};
use std::os::unix::fs::PermissionsExt;

const ETAG: &str = "ETag: \"70ee1738b6b21e2c8a43f3a5ab0eee71\"\r\n";

/// Delivery of node `gpu01`, whose credentials are in a file.
fn to_bucket(spool: &TempDir, node: &str, endpoint: &str, credentials_file: &Path) -> Delivery {
    let settings = Settings { bucket: PLACE.into(), endpoint: Some(endpoint.to_owned()), ..Settings::default() };
    let to = Destination::Bucket {
        bucket: Bucket::new(&settings).unwrap(),
        credentials: CredentialsSource { file: Some(credentials_file.to_owned()) },
        ca_file: None,
    };
    Delivery::new(DeliveryConfig { spool: spool.path().into(), node: node.into(), to }).unwrap()
}

/// To a test's service, which stands in for a bucket that fails.
fn to_script(spool: &TempDir, service: &TestService) -> Delivery {
    let file = spool.path().join("credentials");
    fs::write(&file, "aws_access_key_id = A\naws_secret_access_key = s3cret\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    to_bucket(spool, "n1", &service.url, &file)
}

#[test]
fn a_bucket_gets_each_segment_under_its_node_from_who_may_put_it_there_alone() {
    let Some(server) = TestBucket::start("a_bucket_gets_each_segment") else { return };
    let spool = spool_of(2);
    let names = left_in(&spool);
    let contents: Vec<Vec<u8>> = names.iter().map(|name| fs::read(spool.path().join(name)).unwrap()).collect();
    // Another secret, and another node's folder: nothing gets in.
    let refused = |delivery: &mut Delivery| {
        let done = delivery.run_once(at(NOW_S));
        assert_eq!((done.taken, done.left), (0, 12));
        let wait_ms = done.next_try_at.unwrap().ms_since(at(NOW_S));
        assert!((300_000..=375_000).contains(&wait_ms), "{wait_ms}");
        done.trouble.unwrap().to_string()
    };
    let wrong = refused(&mut to_bucket(&spool, "gpu01", &server.endpoint, &server.wrong_credentials_file()));
    assert!(wrong.starts_with(&format!("{PLACE} at {} answers 403 SignatureDoesNotMatch", server.endpoint)), "{wrong}");
    assert!(wrong.ends_with("the secret is not the one of the access key"), "{wrong}");
    let other = refused(&mut to_bucket(&spool, "gpu02", &server.endpoint, &server.credentials_file(NODE)));
    assert!(other.contains("403 AccessDenied") && other.ends_with("its policy says what it may"), "{other}");
    assert_eq!(server.keys(), [""; 0]);

    let mut delivery = to_bucket(&spool, "gpu01", &server.endpoint, &server.credentials_file(NODE));
    let done = delivery.run_once(at(NOW_S));
    assert_eq!((done.taken, done.left), (12, 0), "{:?}", done.trouble);
    assert_eq!(left_in(&spool), [""; 0]);
    let mut expected: Vec<String> = names.iter().map(|name| format!("cardhour/incoming/gpu01/{name}")).collect();
    for (key, content) in expected.iter().zip(&contents) {
        assert_eq!(server.get(key).as_ref(), Some(content), "{key}");
    }
    expected.sort();
    assert_eq!(server.keys(), expected);
    // A kill between the put and the removal: it is there again, and put over itself.
    fs::write(spool.path().join(&names[0]), &contents[0]).unwrap();
    assert_eq!(delivery.run_once(at(NOW_S)).taken, 1);
    assert_eq!(server.keys(), expected);
}

#[test]
fn a_bucket_that_is_not_there_is_told_by_its_name() {
    let Some(server) = TestBucket::start("a_bucket_that_is_not_there") else { return };
    let spool = spool_of(1);
    let settings =
        Settings { bucket: "s3://elsewhere".into(), endpoint: Some(server.endpoint.clone()), ..Settings::default() };
    let to = Destination::Bucket {
        bucket: Bucket::new(&settings).unwrap(),
        credentials: CredentialsSource { file: Some(server.credentials_file("owner")) },
        ca_file: None,
    };
    let config = DeliveryConfig { spool: spool.path().into(), node: "gpu01".into(), to };
    let trouble = Delivery::new(config).unwrap().run_once(at(NOW_S)).trouble.unwrap();
    assert_eq!(trouble.name(), "bucket");
    let expected = format!("s3://elsewhere at {} answers 404 NoSuchBucket", server.endpoint);
    assert!(trouble.to_string().starts_with(&expected), "{trouble}");
}

#[test]
fn an_answer_that_is_lost_sends_a_segment_again_under_the_same_name() {
    let spool = spool_of(1);
    let names = left_in(&spool);
    let service = TestService::start(|_, number| match number {
        0 | 1 => Reply::KeepAndHangUp,
        _ => Reply::Say(200, ETAG, ""),
    });
    let mut delivery = to_script(&spool, &service);
    let done = delivery.run_once(at(NOW_S));
    assert_eq!((done.taken, done.left), (0, 6));
    assert_eq!(done.trouble.unwrap().name(), "unreachable");
    // The client may have tried a second time on a new connection.
    let done = delivery.run_once(at(NOW_S + 2));
    let done = if done.taken == 6 { done } else { delivery.run_once(at(NOW_S + 10)) };
    assert_eq!((done.taken, done.left), (6, 0), "{:?}", done.trouble);
    let requests = service.requests();
    let first: Vec<_> = requests.iter().filter(|request| request.path.ends_with(&names[0])).collect();
    assert!(first.len() >= 2, "{requests:?}");
    assert!(first.iter().all(|request| request.body == first[0].body && request.method == "PUT"));
}

#[test]
fn only_what_a_bucket_says_confirms_a_segment() {
    for (status, headers, body, name) in [
        (200, "", "<html>Welcome</html>", "bucket"),
        (204, ETAG, "", "bucket"),
        (301, "Location: http://127.0.0.1:1/\r\n", "", "bucket"),
        (403, "", "<Error><Code>RequestTimeTooSkewed</Code></Error>", "bucket"),
        (404, "", "", "bucket"),
        (503, "", "<Error><Code>SlowDown</Code></Error>", "busy"),
        (500, "", "", "busy"),
    ] {
        let spool = spool_of(1);
        let service = TestService::start(move |_, _| Reply::Say(status, headers, body));
        let done = to_script(&spool, &service).run_once(at(NOW_S));
        assert_eq!((done.taken, done.known, done.left, done.refused.len()), (0, 0, 6, 0), "{status} {body}");
        assert_eq!(done.trouble.unwrap().name(), name, "{status} {body}");
        // One request for what somebody has to mend, two where the segment itself might be at fault.
        assert_eq!(service.requests().len(), if name == "busy" { 2 } else { 1 });
        assert!(service.requests().iter().all(|request| !format!("{request:?}").contains("s3cret")));
    }
}

#[test]
fn a_busy_bucket_is_asked_again_when_it_says_and_with_new_credentials() {
    let spool = spool_of(1);
    let service = TestService::start(|_, number| {
        let slow = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate</Message></Error>";
        if number == 0 { Reply::Say(503, "Retry-After: 20\r\n", slow) } else { Reply::Say(200, ETAG, "") }
    });
    let mut delivery = to_script(&spool, &service);
    let done = delivery.run_once(at(NOW_S));
    assert_eq!(done.trouble.unwrap().to_string(), "the bucket answers 503: Please reduce your request rate");
    delivery.run_once(at(NOW_S + 19));
    assert_eq!(service.requests().len(), 1);
    let file = spool.path().join("credentials");
    fs::write(&file, "aws_access_key_id = B\naws_secret_access_key = s\naws_session_token = t\n").unwrap();
    assert_eq!(delivery.run_once(at(NOW_S + 25)).taken, 6);
    let last = service.requests().pop().unwrap();
    assert!(last.header("authorization").unwrap().starts_with("AWS4-HMAC-SHA256 Credential=B/20300317/us-east-1/s3/"));
    assert_eq!(last.header("x-amz-security-token"), Some("t"));
}

#[test]
fn without_credentials_nothing_is_sent_and_what_is_missing_is_said() {
    let spool = spool_of(1);
    let service = TestService::start(|_, _| Reply::Say(200, ETAG, ""));
    let file = spool.path().join("credentials");
    let mut delivery = to_script(&spool, &service);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let trouble = delivery.run_once(at(NOW_S)).trouble.unwrap();
    assert_eq!(trouble.name(), "credentials");
    let expected = format!("others can read the bucket's credentials in {}: chmod 600 it", file.display());
    assert_eq!(trouble.to_string(), expected);
    fs::remove_file(&file).unwrap();
    let mut delivery = to_bucket(&spool, "n1", &service.url, &file);
    let trouble = delivery.run_once(at(NOW_S)).trouble.unwrap();
    assert!(trouble.to_string().starts_with("cannot read the bucket's credentials in "), "{trouble}");
    assert_eq!(service.requests().len(), 0);
}

#[test]
fn a_node_with_an_odd_name_is_one_part_of_a_key() {
    let Some(server) = TestBucket::start("a_node_with_an_odd_name") else { return };
    let spool = spool_of(1);
    let names = left_in(&spool);
    let node = "node 1+ä&%2F=~";
    let done = to_bucket(&spool, node, &server.endpoint, &server.credentials_file("owner")).run_once(at(NOW_S));
    assert_eq!((done.taken, done.left), (6, 0), "{:?}", done.trouble);
    let mut expected: Vec<String> = names.iter().map(|name| format!("cardhour/incoming/{node}/{name}")).collect();
    expected.sort();
    assert_eq!(server.keys(), expected);
}
