//! Segments by way of a bucket: nodes put them there, the ledger takes them from there, once.

use crate::collector::{ended_well, started};
use crate::service::Service;
use crate::site::Site;
use cardhour_test_bucket::{NODE, PLACE, SERVICE, TestBucket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A ledger that takes what waits in the bucket, by the config it finds.
fn site_of(server: &TestBucket) -> Site {
    let site = Site::new();
    config(&site, &server.endpoint, &server.credentials_file(SERVICE));
    site.ok("init --zone UTC");
    site
}

/// Writes the site's config.
fn config(site: &Site, endpoint: &str, credentials_file: &Path) {
    let folder = site.ledger().with_file_name("config").join("cardhour");
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "ledger = {:?}\n[incoming]\nbucket = {PLACE:?}\nendpoint = {endpoint:?}\ncredentials_file = {credentials_file:?}\n",
        site.ledger()
    );
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

/// What the real collector puts into the bucket as node gpu01, of a card that is 60 % active, in some seconds.
fn collected(server: &TestBucket) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let scene = file("scene.toml", "[[card]]\npreset = \"h100\"\n[card.curve]\nsm = 60\nutil = 80\npower_w = 500\n");
    let config = file(
        "collector.toml",
        &format!(
            "cluster = \"lab\"\nnode = \"gpu01\"\nspool = {:?}\nseal_after_s = 2\nstep_s = 1\nmetrics = \"off\"\n\
             [deliver]\nbucket = {PLACE:?}\nendpoint = {:?}\ncredentials_file = {:?}\n",
            folder.path().join("spool"),
            server.endpoint,
            server.credentials_file(NODE)
        ),
    );
    let child = started(&config, &scene);
    let since = Instant::now();
    while server.keys().iter().filter(|key| key.ends_with(".samples.parquet")).count() < 3 {
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", server.keys());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(ended_well(child));
}

/// What is in the books: how many rows, and of how many segments.
fn samples(site: &Site) -> (String, String) {
    let rows = site.sql("select count(*) as n, count(distinct segment) as segments from samples");
    (rows.only("n").to_owned(), rows.only("segments").to_owned())
}

/// The segments that wait.
fn waiting(server: &TestBucket) -> Vec<String> {
    server.keys().into_iter().filter(|key| key.ends_with(".parquet") && !key.contains("/refused/")).collect()
}

#[test]
fn what_nodes_put_into_a_bucket_is_in_the_books_once_and_no_longer_in_the_bucket() {
    let Some(server) = TestBucket::start("what_nodes_put_into_a_bucket") else { return };
    collected(&server);
    let keys = server.keys();
    assert!(keys.iter().all(|key| key.starts_with("cardhour/incoming/gpu01/")), "{keys:?}");
    let contents: Vec<Vec<u8>> = keys.iter().map(|key| server.get(key).unwrap()).collect();
    let segments = keys.iter().filter(|key| key.ends_with(".samples.parquet")).count();
    // What is no segment, is none of that node, or only has a segment's name.
    let other_node = keys[0].replace("/gpu01/", "/node 1+ä&%/");
    let name = "0123456789abcdef0123456789abcdef-000000000042.samples.parquet";
    let no_parquet = format!("cardhour/incoming/gpu02/{name}");
    server.put(&other_node, &contents[0]);
    server.put(&no_parquet, b"PAR1");
    server.put("cardhour/incoming/gpu01/notes.txt", b"x");
    server.put(&format!("elsewhere/incoming/gpu01/{name}"), b"x");

    let site = site_of(&server);
    let printed = site.ok("config");
    assert!(printed.contains("[incoming]\nbucket = \"s3://pool/cardhour\""), "{printed}");
    let secret = std::fs::read_to_string(server.credentials_file(SERVICE)).unwrap();
    let secret = secret.lines().last().unwrap().split_once(" = ").unwrap().1.to_owned();
    assert!(!printed.contains(&secret));

    let (rows, taken) = samples(&site);
    assert_eq!(taken, segments.to_string());
    let kept_aside = |key: &str| {
        let (folder, name) = key.rsplit_once('/').unwrap();
        format!("{folder}/refused/{name}")
    };
    let mut left =
        vec!["cardhour/incoming/gpu01/notes.txt".to_owned(), kept_aside(&no_parquet), kept_aside(&other_node)];
    left.sort();
    assert_eq!(server.keys(), left);
    assert_eq!(server.get(&kept_aside(&no_parquet)).unwrap(), b"PAR1");
    assert_eq!(server.get(&format!("elsewhere/incoming/gpu01/{name}")).unwrap(), b"x", "what isn't ours stays");

    // A kill between the commit and the removal, or a node that puts them again: known, and removed.
    for (key, content) in keys.iter().zip(&contents) {
        server.put(key, content);
    }
    assert_eq!(samples(&site), (rows.clone(), taken.clone()));
    assert_eq!(server.keys(), left);
    // The same name with other content is kept aside.
    let samples_key = keys.iter().position(|key| key.ends_with(".samples.parquet")).unwrap();
    let other = keys.iter().rposition(|key| key.ends_with(".samples.parquet")).unwrap();
    server.put(&keys[samples_key], &contents[other]);
    assert_eq!(samples(&site), (rows, taken));
    assert!(server.keys().contains(&kept_aside(&keys[samples_key])), "{:?}", server.keys());
    assert!(site.ok("verify").contains("the books balance"));
}

#[test]
fn a_service_takes_from_the_bucket_while_it_runs() {
    let Some(server) = TestBucket::start("a_service_takes_from_the_bucket") else { return };
    let site = site_of(&server);
    collected(&server);
    let service = Service::start(&site);
    let since = Instant::now();
    while !waiting(&server).is_empty() {
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", server.keys());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(service.ended_well());
    assert_ne!(samples(&site).0, "0");
}

#[test]
fn of_two_that_take_at_once_and_are_killed_no_row_is_there_twice() {
    let Some(server) = TestBucket::start("of_two_that_take_at_once") else { return };
    collected(&server);
    let keys = server.keys();
    let segments = keys.iter().filter(|key| key.ends_with(".samples.parquet")).count();
    let contents: Vec<Vec<u8>> = keys.iter().map(|key| server.get(key).unwrap()).collect();
    // By hand: each row as often as it is in the files.
    let site = site_of(&server);
    let (expected, _) = samples(&site);
    let other = site_of(&server);
    for wait_ms in [20, 60, 120, 200, 300] {
        for (key, content) in keys.iter().zip(&contents) {
            server.put(key, content);
        }
        let start = || {
            let mut command = other.command();
            command.args(["report", "usage"]).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        };
        let mut both = [start(), start()];
        std::thread::sleep(Duration::from_millis(wait_ms));
        for child in &mut both {
            _ = child.kill();
            child.wait().unwrap();
        }
    }
    assert_eq!(samples(&other), (expected, segments.to_string()));
    assert_eq!(waiting(&server), [""; 0]);
    assert!(other.ok("verify").contains("the books balance"));
}

#[test]
fn a_bucket_with_more_than_a_page_is_taken_wholly() {
    let Some(server) = TestBucket::start("a_bucket_with_more_than_a_page") else { return };
    collected(&server);
    let segments = server.keys().iter().filter(|key| key.ends_with(".samples.parquet")).count();
    // A page has a thousand keys, and these come before those of gpu01.
    for number in 0..1_050 {
        server.put(&format!("cardhour/incoming/a/{number}"), b"");
    }
    let site = site_of(&server);
    assert_eq!(samples(&site).1, segments.to_string());
    assert_eq!(waiting(&server), [""; 0]);
    assert_eq!(server.keys().len(), 1_050);
}

#[test]
fn a_bucket_that_cannot_be_asked_is_told_of_and_what_is_in_the_folder_is_read() {
    let Some(server) = TestBucket::start("a_bucket_that_cannot_be_asked") else { return };
    collected(&server);
    let keys = server.keys();
    let site = site_of(&server);
    let folder = site.ledger().join("incoming/gpu01");
    std::fs::create_dir_all(&folder).unwrap();
    for key in &keys {
        let name = PathBuf::from(key);
        std::fs::write(folder.join(name.file_name().unwrap()), server.get(key).unwrap()).unwrap();
    }
    let wrong = server.wrong_credentials_file();
    let nowhere = "http://127.0.0.1:9";
    for (endpoint, file, says) in [
        (&*server.endpoint, &wrong, "403 SignatureDoesNotMatch"),
        (&*server.endpoint, &server.credentials_file(NODE), "403 AccessDenied"),
        (&*server.endpoint, &PathBuf::from("/nowhere"), "cannot read the bucket's credentials in /nowhere"),
        (nowhere, &wrong, "no answer from s3://pool/cardhour at http://127.0.0.1:9"),
    ] {
        config(&site, endpoint, file);
        let answer = site.run("report usage");
        assert!(answer.err.contains("without what waits in the bucket") && answer.err.contains(says), "{}", answer.err);
        assert_ne!(samples(&site).0, "0");
    }
    assert_eq!(server.keys(), keys);
    // Another ledger than the config's leaves the bucket alone, and says nothing.
    let elsewhere = tempfile::tempdir().unwrap();
    config(&site, &server.endpoint, &server.credentials_file(SERVICE));
    site.ok(&format!("--ledger {0} init --zone UTC", elsewhere.path().join("other").display()));
    let other = site.run(&format!("--ledger {} report usage", elsewhere.path().join("other").display()));
    assert!(other.code == Some(0) && !other.err.contains("bucket"), "{}", other.err);
    assert_eq!(server.keys(), keys);
}
