//! From a card to a report: the real collector on a stand-in for the driver, delivering to the real service.

use crate::service::Service;
use crate::site::{Rows, Site};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// `cardhour-collector`, which a test of the whole workspace builds beside `cardhour`.
fn collector() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_cardhour")).with_file_name("cardhour-collector");
    assert!(beside.exists(), "no {}: build the whole workspace", beside.display());
    beside
}

/// The daemon on made-up cards.
pub fn started(config: &Path, scene: &Path) -> Child {
    Command::new(collector())
        .arg("--config")
        .arg(config)
        .arg("--nvml-lib")
        .arg(fake_nvml::library_path())
        .env("FAKE_NVML_SCENARIO", scene)
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A process that ends with its owner.
pub struct Ended(pub Child);

impl Drop for Ended {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

pub fn ended_well(mut child: Child) -> bool {
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(30) {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    _ = child.kill();
    false
}

/// Two cards: one is 60 % active and has a process, the other has nobody. By hand: of what the first was held and seen, three fifths are effective.
#[test]
fn what_a_card_did_and_who_held_it_is_in_the_report() {
    let site = Site::new();
    site.ok("init --zone Asia/Shanghai");
    let token = site.ok("token gpu01");
    let service = Service::start(&site);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let holder = Ended(Command::new("sleep").arg("120").spawn().unwrap());
    let scene = file(
        "scene.toml",
        &format!(
            "[[card]]\npreset = \"h100\"\n[card.curve]\nsm = 60\nutil = 80\npower_w = 500\n\
             [[card]]\npreset = \"h100\"\n[card.curve]\npower_w = 70\n\
             [[process]]\npid = {}\ncard = 0\nmemory_mib = 1000\nsm_pct = 60\n",
            holder.0.id()
        ),
    );
    let token = file("token", &token);
    let config = file(
        "collector.toml",
        &format!(
            "cluster = \"lab\"\nnode = \"gpu01\"\nspool = {:?}\nseal_after_s = 3\nstep_s = 1\n\
             [deliver]\nservice = \"http://127.0.0.1:{}\"\ntoken_file = {token:?}\n",
            folder.path().join("spool"),
            service.port(),
        ),
    );
    let child = started(&config, &scene);
    std::thread::sleep(Duration::from_secs(12));
    // What is its own, without the pages of files that it maps: 4 MiB on eight cards of seven instances, in a debug build.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let kib: u64 = anonymous.trim().trim_end_matches(" kB").parse().unwrap();
    assert!((500..10_000).contains(&kib), "{kib} KiB");
    assert!(ended_well(child), "it ends when it is told to");
    // The memory of the holder's process, at each tick that is told of: 1,000 MiB.
    let memory = site
        .sql("select min(mem_used_bytes) as least, max(mem_used_bytes) as most, count(*) > 3 as ticks from activity");
    assert_eq!((memory.only("least"), memory.only("most"), memory.only("ticks")), ("1048576000", "1048576000", "true"));

    let report = site.report("efficiency --by node,model");
    assert_eq!((report.only("node"), report.only("model")), ("gpu01", "NVIDIA H100 80GB HBM3"));
    assert_eq!((report.only("jobs"), report.only("efficiency"), report.only("use_basis")), ("1", "0.600000", "gpm"));
    let states = site.sql_text("select state, sum(card_time) > 0 as some from usage group by state order by state");
    assert!(states.contains("free,true") && states.contains("held,true"), "{states}");
    let verdict = site.ok("verify");
    assert!(verdict.contains("the books balance"), "{verdict}");

    let inventory = site.report("inventory");
    assert_eq!(
        (inventory.only("node"), inventory.only("seen_cards"), inventory.only("lost_cards")),
        ("gpu01", "2", "0")
    );
    assert_eq!(
        (inventory.only("listed_cards"), inventory.only("memory_bytes")),
        ("", "85520809984"),
        "81,559 MiB, as nvidia-smi has it"
    );
    // No export speaks for that time yet: nothing contradicts.
    let reconciled = Rows::parse(&site.ok("reconcile --by node --format csv"));
    assert_eq!((reconciled.only("reason"), reconciled.only("recorded_card_hours")), ("not_exported", "0.000000"));
    assert_eq!(service.get("/api/v1/reconcile?by=node&format=csv").body, site.ok("reconcile --by node --format csv"));
    // An export that speaks for it and has nothing of it: somebody works past the scheduler. That is an answer of no.
    let jobs = "job_id,cluster,cards,submitted_at,started_at,ended_at\n1,lab,1,2026-01-01T00:00:00Z,2026-01-01T00:00:00Z,2026-01-01T01:00:00Z\n";
    let map = "format = \"csv\"\n[columns]\njob_id = \"job_id\"\ncluster = \"cluster\"\ncards = \"cards\"\nsubmitted_at = \"submitted_at\"\n\
               started_at = \"started_at\"\nended_at = \"ended_at\"\n";
    let (jobs, map) = (site.file("jobs.csv", jobs), site.file("map.toml", map));
    site.import(&format!("jobs {jobs} --map {map} --covers 2026-01-01..2099-01-01"));
    let answer = site.run("reconcile --format csv");
    assert_eq!(answer.code, Some(1), "{}", answer.err);
    let by_reason = Rows::parse(&answer.out);
    let hours = |reason: &str, column: &str| by_reason.by("reason", column)[reason].clone();
    assert_eq!(hours("nobody_looked", "recorded_card_hours"), "1.000000");
    assert_eq!(hours("no_record", "observed_card_hours"), reconciled.only("observed_card_hours"));
}

/// Beyond this machine there is TLS: the service with a certificate, and a node that trusts its authority alone. Somebody who connects and says
/// nothing holds nobody up, and nothing is told without TLS.
#[test]
fn a_node_delivers_over_tls() {
    let site = Site::new();
    site.ok("init --zone UTC");
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../collector/src/delivery/tests/certificates");
    let certificate = |name: &str| certificates.join(name).canonicalize().unwrap();
    let config = site.file(
        "service.toml",
        format!(
            "[http]\ncertificate_file = {:?}\nkey_file = {:?}\n",
            certificate("service.pem"),
            certificate("service.key")
        ),
    );
    let token = site.file("token", site.ok("token gpu01"));
    let service = Service::start_with(&site, "https", &["--config", &config]);
    let silent = TcpStream::connect(("127.0.0.1", service.port())).unwrap();
    let mut plain = TcpStream::connect(("127.0.0.1", service.port())).unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut told = Vec::new();
    _ = plain.read_to_end(&mut told);
    assert!(!String::from_utf8_lossy(&told).contains("ok"), "{told:?}");

    let spool = site.file("spool-is-beside", "");
    let node = |ca: &str| {
        format!(
            "cluster = \"lab\"\nnode = \"gpu01\"\nspool = \"{spool}-{ca}\"\nseal_after_s = 1\nstep_s = 1\n\
             [deliver]\nservice = \"https://localhost:{}\"\ntoken_file = {token:?}\nca_file = {:?}\n",
            service.port(),
            certificate(ca),
        )
    };
    let scene = site.file("scene.toml", "[[card]]\npreset = \"h100\"\n");
    let run = |ca: &str| {
        let config = site.file("collector.toml", node(ca));
        let child = started(Path::new(&config), Path::new(&scene));
        std::thread::sleep(Duration::from_secs(5));
        assert!(ended_well(child), "it ends when it is told to");
    };
    run("stranger.pem");
    assert_eq!(site.report("inventory").0.len(), 0, "a service that another authority vouches for gets nothing");
    run("authority.pem");
    assert_eq!(site.report("inventory").only("seen_cards"), "1");
    drop(silent);
}

#[test]
fn a_service_that_cannot_use_its_certificate_says_which_file() {
    let site = Site::new();
    site.ok("init --zone UTC");
    let none = site.file("none.pem", "");
    let config = site.file("service.toml", format!("[http]\ncertificate_file = {none:?}\nkey_file = {none:?}\n"));
    let answer = site.run(&format!("serve --address 127.0.0.1:0 --config {config}"));
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    assert!(answer.err.contains("none.pem") && answer.err.contains("no certificate"), "{}", answer.err);
    let beyond = site.run("serve --address 0.0.0.0:0");
    assert!(beyond.code == Some(2) && beyond.err.contains("certificate_file"), "{}", beyond.err);
}

/// A scenario of two cards: the first half busy under a process, the second free.
pub fn half_busy(pid: u32) -> String {
    format!(
        "[[card]]\npreset = \"h100\"\ncurve.sm = 50\ncurve.power_w = 400\n[[card]]\npreset = \"h100\"\n\
         [[process]]\npid = {pid}\ncard = 0\nmemory_mib = 1000\nsm_pct = 50\n"
    )
}

/// `up` on a node `box` with made-up cards, a tick a second.
pub fn up(site: &Site, scene: &str) -> Service {
    let scene = site.file("scene.toml", scene);
    let spool = site.ledger().join("spool");
    let config = site.file(
        "collector.toml",
        format!("cluster = \"lab\"\nnode = \"box\"\nspool = {spool:?}\nseal_after_s = 2\nmetrics = \"off\"\n[deliver]\nfolder = \"/nowhere\"\n"),
    );
    let mut up = site.command();
    up.args(["up", "--address", "127.0.0.1:0", "--step-s", "1", "--collector-config", &config, "--nvml-lib"]);
    up.arg(fake_nvml::library_path()).env("FAKE_NVML_SCENARIO", &scene);
    Service::of(site, "http", &mut up)
}

/// One process on one machine: it makes its ledger, meters, serves, and leaves whole books behind. By hand: half of what was held is effective.
#[test]
fn up_meters_and_serves_in_one_process() {
    let site = Site::new();
    let holder = Ended(Command::new("sleep").arg("120").spawn().unwrap());
    let service = up(&site, &half_busy(holder.0.id()));
    std::thread::sleep(Duration::from_secs(10));
    assert_eq!(service.get("/healthz").status, 200);
    assert!(service.ended_well(), "it ends when it is told to, with what it saw on disk");
    let report = site.report("efficiency --by cluster,node");
    assert_eq!((report.only("cluster"), report.only("node")), ("lab", "box"));
    assert_eq!((report.only("jobs"), report.only("efficiency")), ("1", "0.500000"));
    assert_eq!(site.report("inventory").only("seen_cards"), "2");
    assert!(site.ok("verify").contains("the books balance"));
}

/// As of the collector by itself, SIGUSR1 lets go of the cards; it ends neither it nor the service.
#[test]
fn up_lets_go_of_the_cards_by_a_signal_and_serves_on() {
    let site = Site::new();
    let scene = site.file("scene.toml", half_busy(std::process::id()));
    let spool = site.ledger().join("spool");
    let config = site.file("collector.toml", format!("cluster = \"lab\"\nnode = \"box\"\nspool = {spool:?}\nseal_after_s = 2\nmetrics = \"off\"\n[deliver]\nfolder = \"/nowhere\"\n"));
    let mut up = site.command();
    up.args(["up", "--address", "127.0.0.1:0", "--step-s", "1", "--collector-config", &config, "--nvml-lib"]);
    up.arg(fake_nvml::library_path()).env("FAKE_NVML_SCENARIO", &scene);
    let service = Service::of(&site, "http", &mut up);
    std::thread::sleep(Duration::from_secs(4));
    service.signal("USR1");
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(service.get("/healthz").status, 200);
    assert!(service.ended_well(), "it ends when it is told to");
    // For five minutes, as the command does without `--for`.
    let told = site.sql_text("select kind, number from node_events where kind = 'released'");
    assert!(told.contains("released,300000"), "{told}");
}

#[test]
fn a_live_demo_plays_through_the_real_collector_and_says_that_it_is_one() {
    let site = Site::new();
    let mut demo = site.command();
    demo.args(["demo", "--live", "--address", "127.0.0.1:0", "--nvml-lib"]).arg(fake_nvml::library_path());
    let service = Service::of(&site, "http", &mut demo);
    std::thread::sleep(Duration::from_secs(15));
    assert!(service.ended_well(), "it ends when it is told to");
    let inventory = site.ok("report inventory");
    assert!(inventory.contains("simulated") && inventory.contains("demo-live"), "{inventory}");
    assert_eq!(site.report("inventory").only("seen_cards"), "4");
    // The training, the inference and the notebook.
    assert_eq!(site.report("efficiency --by cluster").only("attempts"), "3");
    let site_of_real_jobs = Site::new();
    site_of_real_jobs.ok("init --zone UTC");
    let mut refused = site_of_real_jobs.command();
    refused.args(["demo", "--live", "--nvml-lib"]).arg(fake_nvml::library_path());
    let answer = crate::site::answer(&mut refused);
    assert_eq!(answer.code, Some(2), "a site's ledger is no place for a demo: {}", answer.err);
    let answer = site.run("demo --live --nvml-lib /nowhere/libfake_nvml.so");
    assert!(answer.code == Some(2) && answer.err.contains("cargo build -p cardhour-fake-nvml"), "{}", answer.err);
}
