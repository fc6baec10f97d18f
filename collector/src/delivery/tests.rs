use super::*;
use crate::spool::fixture::{BOOT, at, one_of_each};
use crate::spool::{Spool, SpoolConfig};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

mod bucket;
mod taker;
use taker::{Reply, TestService};

const NOW_S: i64 = 1_900_000_000;

/// A spool with a tick of each stream in `numbers` numbers: six segments each.
fn spool_of(numbers: i64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = SpoolConfig::new(folder.path(), "n1".into());
    let (mut spool, _) = Spool::open(config, BOOT, at(NOW_S)).unwrap();
    for number in 0..numbers {
        spool.append(&one_of_each(15 * number), at(NOW_S)).unwrap();
        spool.seal(at(NOW_S)).unwrap();
    }
    folder
}

fn left_in(spool: &TempDir) -> Vec<String> {
    folder::pending(spool.path()).unwrap().into_iter().map(|sealed| sealed.name.to_string()).collect()
}

fn refused_in(spool: &TempDir) -> Vec<String> {
    let Ok(entries) = fs::read_dir(spool.path().join("refused")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A delivery to a test's service. The token lies beside the segments.
fn to_service(spool: &TempDir, url: &str, ca_file: Option<PathBuf>) -> Delivery {
    let token_file = spool.path().join("token");
    fs::write(&token_file, "s3cret\n").unwrap();
    let to = Destination::Service { url: url.to_owned(), token_file, ca_file };
    Delivery::new(DeliveryConfig { spool: spool.path().into(), node: "n1".into(), to }).unwrap()
}

fn to_folder(spool: &TempDir, folder: &Path) -> Delivery {
    let to = Destination::Folder(folder.into());
    Delivery::new(DeliveryConfig { spool: spool.path().into(), node: "n1".into(), to }).unwrap()
}

#[test]
fn a_service_gets_each_segment_with_its_token_and_hash_who_held_what_first_the_oldest_first() {
    let spool = spool_of(2);
    let expected = left_in(&spool);
    let service = TestService::start(|_, _| Reply::Keep);
    let mut delivery = to_service(&spool, &service.url, None);
    let done = delivery.run_once(at(NOW_S));
    assert_eq!((done.taken, done.known, done.left), (12, 0, 0), "{done:?}");
    assert!(done.trouble.is_none() && done.next_try_at.is_none());
    assert_eq!(left_in(&spool), [""; 0]);
    let requests = service.requests();
    let names: Vec<&str> = requests.iter().map(|request| request.path.rsplit_once('/').unwrap().1).collect();
    assert_eq!(names, expected);
    assert!(names[0].ends_with("001900000000.observations.parquet"), "{names:?}");
    let is_telemetry = |name: &&str| name.contains("samples") || name.contains("activity");
    assert_eq!(names.iter().position(is_telemetry), Some(8), "{names:?}");
    for request in &requests {
        assert!(request.path.starts_with("/api/v1/intake/n1/"), "{}", request.path);
        assert_eq!(request.method, "PUT");
        assert_eq!(request.header("authorization"), Some("Bearer s3cret"));
        assert_eq!(request.header("x-cardhour-blake3"), Some(blake3::hash(&request.body).to_hex().as_str()));
        assert_eq!(request.header("content-length"), Some(request.body.len().to_string().as_str()));
        assert_eq!(&request.body[..4], b"PAR1");
    }
    let bytes = requests.iter().map(|request| request.body.len() as u64).sum();
    assert_eq!(
        *delivery.counters(),
        DeliveryCounters { taken_segments: 12, delivered_bytes: bytes, ..DeliveryCounters::default() }
    );
}

#[test]
fn an_answer_that_is_lost_sends_the_segment_again_and_the_taker_has_it_once() {
    let spool = spool_of(1);
    // Takes the first and hangs up without a word.
    let service = TestService::start(|_, number| if number == 0 { Reply::KeepAndHangUp } else { Reply::Keep });
    let mut delivery = to_service(&spool, &service.url, None);
    let done = delivery.run_once(at(NOW_S));
    assert_eq!((done.taken, done.left), (0, 6));
    assert_eq!(done.trouble.unwrap().name(), "unreachable");
    let next = done.next_try_at.unwrap();
    assert!((500..=1000).contains(&next.ms_since(at(NOW_S))), "{next}");
    let done = delivery.run_once(next);
    assert_eq!((done.taken, done.known, done.left), (5, 1, 0));
    assert_eq!(service.kept(), 6);
}

#[test]
fn a_day_without_a_service_loses_nothing_and_asks_it_a_few_hundred_times() {
    let spool = spool_of(1);
    let service = TestService::start(|_, _| Reply::Keep);
    // A port where nobody listens.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut delivery = to_service(&spool, &format!("http://{nobody}"), None);
    let mut tries = 0;
    for tick in 0..5760 {
        let now = at(NOW_S + 15 * tick);
        let done = delivery.run_once(now);
        assert_eq!(done.left, 6);
        tries += u64::from(done.trouble.is_some());
        assert!(done.next_try_at.unwrap() <= at(NOW_S + 15 * tick + 300));
    }
    // From every 300 s + a tick to every 150 s + a tick, and nine quick ones: 274 to 585.
    assert!((270..=590).contains(&tries), "{tries}");
    assert_eq!(delivery.counters().troubled_runs, tries);
    let mut delivery = to_service(&spool, &service.url, None);
    assert_eq!(delivery.run_once(at(NOW_S + 86_400)).taken, 6);
}

#[test]
fn a_segment_that_is_there_with_other_content_is_kept_aside_and_the_others_go_on() {
    let spool = spool_of(1);
    let conflict = r#"{"code": "other-content", "message": "it is there with other content"}"#;
    let service =
        TestService::start(move |_, number| if number == 1 { Reply::Say(409, "", conflict) } else { Reply::Keep });
    let watches = left_in(&spool)[1].clone();
    let mut delivery = to_service(&spool, &service.url, None);
    let done = delivery.run_once(at(NOW_S));
    assert_eq!((done.taken, done.left), (5, 0));
    assert!(done.trouble.is_none());
    let [refusal] = &done.refused[..] else { panic!("{done:?}") };
    assert_eq!(refusal.segment.to_string(), watches);
    assert_eq!(refusal.reason, "the service answers 409: it is there with other content");
    assert!(refusal.kept_at.exists());
    assert_eq!(refused_in(&spool), [watches]);
    assert_eq!(delivery.counters().refused_segments, 1);
}

#[test]
fn a_wrong_token_is_tried_again_slowly_and_a_new_one_is_used_without_a_restart() {
    let spool = spool_of(1);
    let service = TestService::start(|request, _| {
        if request.header("authorization") == Some("Bearer new") { Reply::Keep } else { Reply::Say(401, "", "{}") }
    });
    let mut delivery = to_service(&spool, &service.url, None);
    let done = delivery.run_once(at(NOW_S));
    let token_file = spool.path().join("token");
    let expected = format!(
        "the service answers 401 to the token in {}: it isn't one of node n1; `cardhour token n1` beside the service makes one",
        token_file.display()
    );
    assert_eq!(done.trouble.unwrap().to_string(), expected);
    // One request, not one for each segment.
    assert_eq!((done.left, service.requests().len()), (6, 1));
    fs::write(token_file, "new").unwrap();
    assert!(delivery.run_once(at(NOW_S + 299)).trouble.is_none());
    assert_eq!(service.requests().len(), 1);
    assert_eq!(delivery.run_once(at(NOW_S + 375)).taken, 6);
}

#[test]
fn a_token_file_that_is_not_there_or_not_a_token_names_itself() {
    let spool = spool_of(1);
    let service = TestService::start(|_, _| Reply::Keep);
    let mut delivery = to_service(&spool, &service.url, None);
    for content in ["", "two words", "a\nb"] {
        fs::write(spool.path().join("token"), content).unwrap();
        let trouble = delivery.run_once(at(NOW_S)).trouble.unwrap();
        assert!(matches!(&trouble, Trouble::Token { path, .. } if path.ends_with("token")), "{trouble}");
        delivery = to_service(&spool, &service.url, None);
    }
    fs::remove_file(spool.path().join("token")).unwrap();
    assert_eq!(delivery.run_once(at(NOW_S)).trouble.unwrap().name(), "token");
    assert_eq!(service.requests().len(), 0);
}

#[test]
fn a_busy_service_is_asked_again_when_it_says() {
    let spool = spool_of(1);
    let service =
        TestService::start(
            |_, number| {
                if number == 0 { Reply::Say(503, "Retry-After: 20\r\n", "{}") } else { Reply::Keep }
            },
        );
    let mut delivery = to_service(&spool, &service.url, None);
    let done = delivery.run_once(at(NOW_S));
    assert_eq!((done.left, service.requests().len()), (6, 1));
    // 20 s, and up to a quarter more.
    let wait_ms = done.next_try_at.unwrap().ms_since(at(NOW_S));
    assert!((20_000..=25_000).contains(&wait_ms), "{wait_ms}");
    delivery.run_once(at(NOW_S + 19));
    assert_eq!(service.requests().len(), 1);
    assert_eq!(delivery.run_once(at(NOW_S + 25)).taken, 6);
}

#[test]
fn a_segment_at_which_the_service_fails_does_not_hold_up_the_others() {
    let spool = spool_of(1);
    let service =
        TestService::start(
            |request, _| {
                if request.path.contains("observations") { Reply::Say(500, "", "{}") } else { Reply::Keep }
            },
        );
    let mut delivery = to_service(&spool, &service.url, None);
    let done = delivery.run_once(at(NOW_S));
    assert_eq!((done.taken, done.left), (5, 1));
    assert_eq!(done.trouble.unwrap().name(), "busy");
    assert_eq!(left_in(&spool).len(), 1);
}

#[test]
fn a_page_that_answers_to_everything_swallows_no_segment() {
    let spool = spool_of(1);
    let service = TestService::start(|_, _| Reply::Say(200, "Content-Type: text/html\r\n", "<html>Welcome</html>"));
    let mut delivery = to_service(&spool, &service.url, None);
    let done = delivery.run_once(at(NOW_S));
    assert_eq!((done.taken, done.known, done.left), (0, 0, 6));
    assert_eq!(done.trouble.unwrap().name(), "not_the_service");
    assert_eq!(service.requests().len(), 1);
    // Nor does one that sends elsewhere, which would get the token.
    let elsewhere = TestService::start(|_, _| Reply::Keep);
    let location = format!("Location: {}/x\r\n", elsewhere.url).leak();
    let service = TestService::start(|_, _| Reply::Say(307, location, ""));
    let done = to_service(&spool, &service.url, None).run_once(at(NOW_S));
    assert_eq!((done.left, done.trouble.unwrap().name()), (6, "not_the_service"));
    assert_eq!(elsewhere.requests().len(), 0);
}

#[test]
fn over_tls_only_a_service_that_is_vouched_for_gets_the_token() {
    let spool = spool_of(1);
    let service = TestService::start_tls(|_, _| Reply::Keep);
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/delivery/tests/certificates");
    let delivery = to_service(&spool, &service.url, Some(certificates.join("stranger.pem")));
    let why = |mut delivery: Delivery| match delivery.run_once(at(NOW_S)).trouble {
        Some(Trouble::Unreachable { source, .. }) => source.to_string(),
        other => panic!("{other:?}"),
    };
    let unknown = why(delivery);
    assert!(unknown.contains("UnknownIssuer"), "{unknown}");
    assert_eq!(service.requests().len(), 0);
    let mut delivery = to_service(&spool, &service.url, Some(certificates.join("authority.pem")));
    let done = delivery.run_once(at(NOW_S));
    assert_eq!((done.taken, done.left), (6, 0), "{:?}", done.trouble);
    assert_eq!(service.kept(), 6);
    // By its name only: the same service at its number is somebody else.
    let spool = spool_of(1);
    let by_number = service.url.replace("localhost", "127.0.0.1");
    let unnamed = why(to_service(&spool, &by_number, Some(certificates.join("authority.pem"))));
    assert!(unnamed.contains("not valid for name"), "{unnamed}");
    assert_eq!(service.kept(), 6);
}

#[test]
fn a_file_without_certificates_names_itself() {
    let spool = spool_of(0);
    let to = |ca_file| Destination::Service {
        url: "https://localhost".to_owned(),
        token_file: "token".into(),
        ca_file: Some(ca_file),
    };
    let new = |ca_file| {
        let config = DeliveryConfig { spool: spool.path().into(), node: "n1".into(), to: to(ca_file) };
        Delivery::new(config).err().unwrap().to_string()
    };
    let empty = spool.path().join("empty.pem");
    fs::write(&empty, "nothing").unwrap();
    let expected = format!("cannot read certificates from {}: there is none in it", empty.display());
    assert_eq!(new(empty), expected);
    assert!(new("/nowhere/ca.pem".into()).starts_with("cannot read certificates from /nowhere/ca.pem: "));
}

#[test]
fn a_folder_gets_whole_files_under_the_node_and_nothing_else_in_the_end() {
    let spool = spool_of(1);
    let names = left_in(&spool);
    let contents: Vec<Vec<u8>> = names.iter().map(|name| fs::read(spool.path().join(name)).unwrap()).collect();
    let ledger = tempfile::tempdir().unwrap();
    fs::create_dir(ledger.path().join("incoming")).unwrap();
    // What a kill left of an earlier try.
    let of_node = ledger.path().join("incoming/n1");
    fs::create_dir(&of_node).unwrap();
    fs::write(of_node.join(format!(".{}.tmp", names[0])), "half").unwrap();
    let done = to_folder(&spool, ledger.path()).run_once(at(NOW_S));
    assert_eq!((done.taken, done.known, done.left), (6, 0, 0), "{:?}", done.trouble);
    for (name, content) in names.iter().zip(&contents) {
        assert_eq!(&fs::read(of_node.join(name)).unwrap(), content);
    }
    assert_eq!(fs::read_dir(&of_node).unwrap().count(), 6);
    // A kill before the spool's file was removed: it is there again.
    fs::write(spool.path().join(&names[0]), &contents[0]).unwrap();
    fs::write(spool.path().join(&names[1]), "other").unwrap();
    let done = to_folder(&spool, ledger.path()).run_once(at(NOW_S));
    assert_eq!((done.taken, done.known, done.refused.len()), (0, 1, 1));
    assert_eq!(fs::read(of_node.join(&names[1])).unwrap(), contents[1], "what is there stays");
    assert_eq!(refused_in(&spool), names[1..2]);
}

#[test]
fn a_folder_that_is_not_mounted_gets_nothing() {
    let spool = spool_of(1);
    let mount_point = tempfile::tempdir().unwrap();
    let mut delivery = to_folder(&spool, mount_point.path());
    let done = delivery.run_once(at(NOW_S));
    assert_eq!((done.taken, done.left), (0, 6));
    let expected = format!("cannot find {}", mount_point.path().join("incoming").display());
    assert_eq!(done.trouble.unwrap().to_string(), expected);
    fs::create_dir(mount_point.path().join("incoming")).unwrap();
    assert_eq!(delivery.run_once(at(NOW_S + 1)).taken, 6);
}

#[test]
fn a_run_ends_after_some_segments_and_says_how_many_are_left() {
    let spool = spool_of(11);
    let ledger = tempfile::tempdir().unwrap();
    fs::create_dir(ledger.path().join("incoming")).unwrap();
    let mut delivery = to_folder(&spool, ledger.path());
    let first = delivery.run_once(at(NOW_S));
    assert_eq!((first.taken, first.left, first.next_try_at), (64, 2, None));
    let second = delivery.run_once(at(NOW_S));
    assert_eq!((second.taken, second.left), (2, 0));
}
