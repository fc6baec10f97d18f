//! A call into the driver that doesn't come back, through to the books.

use crate::collector::{Ended, ended_well, started, up};
use crate::service::Service;
use crate::site::Site;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Two cards: a process holds the first, which is 50 % active; nobody the second. From `hang` on a call of the first doesn't return.
fn scene(pid: u32, hang: &str) -> String {
    format!(
        "[[card]]\npreset = \"h100\"\ncurve.sm = 50\ncurve.util = 60\ncurve.power_w = 400\n[[card]]\npreset = \"h100\"\n\
         [[process]]\npid = {pid}\ncard = 0\nmemory_mib = 1000\nsm_pct = 50\n{hang}"
    )
}

/// What was held, and what of it nobody saw. Unit: milliseconds of a card.
fn held_and_unseen_ms(site: &Site) -> [i128; 2] {
    let report = site.report("usage --by cluster");
    ["card_hours", "unseen_card_hours"].map(|column| report.sum_micros(column) * 3_600 / 1_000)
}

/// The events of a hung call: how many, and which call it was.
fn hung(site: &Site) -> String {
    site.sql_text("select count(*) as n, min(detail) as call from node_events where kind = 'hung'")
}

/// The daemon ends after half a minute in the call, by a signal of its own, and is started again. By hand: of the 30 s and more that it hung, the
/// holder that was listed last is told of while that list counts, 31 s, and nothing of the card's work is seen: 25 s at the least once ticks no longer
/// waited for the call. Before and after some seconds are seen.
#[test]
fn a_hung_call_is_an_event_and_its_time_is_unseen() {
    let site = Site::new();
    site.ok("init --zone UTC");
    let token = site.file("token", site.ok("token gpu01"));
    let service = Service::start(&site);
    let holder = Ended(Command::new("sleep").arg("300").spawn().unwrap());
    let fault = "[[fault]]\ncall = \"nvmlDeviceGetPowerUsage\"\ncard = 0\nat_s = 6\nhang = true\n";
    let of_scene = site.file("scene.toml", scene(holder.0.id(), fault));
    let spool = site.file("spool-is-beside", "");
    let config = site.file(
        "collector.toml",
        format!(
            "cluster = \"lab\"\nnode = \"gpu01\"\nspool = \"{spool}-1\"\nseal_after_s = 2\nstep_s = 1\nmetrics = \"off\"\n\
             [deliver]\nservice = \"http://127.0.0.1:{}\"\ntoken_file = {token:?}\n",
            service.port()
        ),
    );
    let since = Instant::now();
    let mut first = Ended(started(Path::new(&config), Path::new(&of_scene)));
    let ended = loop {
        if let Some(status) = first.0.try_wait().unwrap() {
            break status;
        }
        assert!(since.elapsed() < Duration::from_secs(70), "it ends when a call hangs");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(ended.signal().is_some() && since.elapsed() > Duration::from_secs(34), "{ended}");

    // Whoever supervises it starts another, on a driver that is well.
    let of_scene = site.file("scene.toml", scene(holder.0.id(), ""));
    let second = started(Path::new(&config), Path::new(&of_scene));
    std::thread::sleep(Duration::from_secs(8));
    assert!(ended_well(second), "it ends when it is told to");

    assert!(hung(&site).contains("1,nvmlDeviceGetPowerUsage"), "{}", hung(&site));
    let [held_ms, unseen_ms] = held_and_unseen_ms(&site);
    assert!(unseen_ms >= 25_000 && held_ms - unseen_ms >= 5_000, "{held_ms} held, {unseen_ms} of them unseen");
    // What was seen of it was half busy, in both lives.
    let effective_ms = site.report("usage --by cluster").sum_micros("effective_card_hours") * 3_600 / 1_000;
    let seen_ms = held_ms - unseen_ms;
    assert!((2 * effective_ms - seen_ms).abs() <= 10, "{effective_ms} of {seen_ms} effective");
    assert!(site.ok("verify").contains("the books balance"));
}

/// In one process with the service, nothing of that ends: pages and the API answer all the time, and the card is read again when the call is back.
#[test]
fn up_serves_on_while_a_call_hangs() {
    let site = Site::new();
    let holder = Ended(Command::new("sleep").arg("300").spawn().unwrap());
    let fault = "[[fault]]\ncall = \"nvmlDeviceGetPowerUsage\"\ncard = 0\nat_s = 5\nuntil_s = 42\nhang = true\n";
    let service = up(&site, &scene(holder.0.id(), fault));
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(52) {
        assert_eq!(service.get("/healthz").status, 200);
        assert_eq!(service.get("/api/v1/report/inventory").status, 200);
        std::thread::sleep(Duration::from_secs(2));
    }
    assert!(service.ended_well(), "it ends when it is told to");
    assert!(hung(&site).contains("1,nvmlDeviceGetPowerUsage"), "{}", hung(&site));
    let [held_ms, unseen_ms] = held_and_unseen_ms(&site);
    assert!(unseen_ms >= 25_000 && held_ms - unseen_ms >= 7_000, "{held_ms} held, {unseen_ms} of them unseen");
    assert!(site.ok("verify").contains("the books balance"));
}

/// One that hangs for ever keeps `up` from ending no more than from serving.
#[test]
fn up_ends_when_it_is_told_to_while_a_call_hangs() {
    let site = Site::new();
    let fault = "[[fault]]\ncall = \"nvmlDeviceGetPowerUsage\"\nat_s = 2\nhang = true\n";
    let of_scene = site.file("scene.toml", scene(std::process::id(), fault));
    let mut up = site.command();
    up.args(["up", "--address", "127.0.0.1:0", "--step-s", "1", "--metrics", "off", "--nvml-lib"]);
    up.arg(fake_nvml::library_path()).env("FAKE_NVML_SCENARIO", &of_scene);
    let service = Service::of(&site, "http", &mut up);
    std::thread::sleep(Duration::from_secs(10));
    assert_eq!(service.get("/healthz").status, 200);
    assert!(service.ended_well(), "it ends when it is told to");
}
