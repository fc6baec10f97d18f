//! Cards that several hold at once, from the driver and the kubelet to the books: instances of a cut card, and replicas of a whole one.

use crate::collector::ended_well;
use crate::driven::DrivenClock;
use crate::site::Site;
use cardhour_test_kubelet::Kubelet;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// 2026-03-02T00:00:00Z. Unit: seconds since 1970.
const START_UNIX_S: i64 = 1_772_409_600;
/// The card that is whole.
const WHOLE: &str = "GPU-00000000-0000-4000-8000-000000000002";
/// Parts of a card.
const CARD: i128 = 18_018_000;

/// The first card is cut 3g + 2g + 1g, a seventh of it is in no instance; the second is whole and advertised four times.
const SCENE: &str = r#"
[[card]]
preset = "h100"
energy_start_mj = 987654321
curve.power_w = 400
[[card.layout]]
[[card.layout.slice]]
profile = "3g.40gb"
uuid = "MIG-three"
curve.sm = 70
curve.memory_used_mib = 30000
[[card.layout.slice]]
profile = "2g.20gb"
uuid = "MIG-two"
curve.sm = 20
[[card.layout.slice]]
profile = "1g.10gb"
uuid = "MIG-one"

[[card]]
preset = "h100"
curve.power_w = { points = [[0, 250], [420, 350]] }
curve.sm = 80
curve.util = 90
"#;

/// Plays 15 minutes of the node: the pods are there from 120 s to 720 s.
fn played(site: &Site) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let kubelet = Kubelet::start(folder.path());
    kubelet.offer("nvidia.com/gpu.shared", &(0..4).map(|n| format!("{WHOLE}::{n}")).collect::<Vec<_>>());
    for (profile, uuid) in [("3g.40gb", "MIG-three"), ("2g.20gb", "MIG-two"), ("1g.10gb", "MIG-one")] {
        kubelet.offer(&format!("nvidia.com/mig-{profile}"), &[uuid.to_owned()]);
    }
    let config = file(
        "collector.toml",
        &format!(
            "cluster = \"lab\"\nnode = \"gpu01\"\nspool = {:?}\nmetrics = \"off\"\n[deliver]\nfolder = {:?}\n[kubernetes]\nsocket = {:?}\n",
            folder.path().join("spool"),
            site.ledger(),
            kubelet.socket
        ),
    );
    let scene = file("scene.toml", SCENE);
    let clock = DrivenClock::new(folder.path(), START_UNIX_S * 1000);
    let child = clock.daemon(&config, &scene).stderr(Stdio::null()).spawn().unwrap();
    let mut now_ms = 0;
    let mut is_there = false;
    let mut moved = Instant::now();
    while now_ms <= 900_000 {
        let wakes_ms = clock.wakes_ms();
        if wakes_ms <= now_ms {
            assert!(moved.elapsed() < Duration::from_secs(60), "nothing moves at {now_ms} ms");
            std::thread::sleep(Duration::from_micros(200));
            continue;
        }
        if (120_000..720_000).contains(&wakes_ms) != is_there {
            is_there = !is_there;
            let one = format!("speech/small/c nvidia.com/gpu.shared {WHOLE}::0");
            let two = format!("speech/large/c nvidia.com/gpu.shared {WHOLE}::1,{WHOLE}::3");
            let all = [
                "vision/train/c nvidia.com/mig-3g.40gb MIG-three",
                "vision/serve/c nvidia.com/mig-2g.20gb MIG-two",
                "speech/notebook/c nvidia.com/mig-1g.10gb MIG-one",
                &one,
                &two,
            ];
            kubelet.give(if is_there { &all } else { &[] });
        }
        (now_ms, moved) = (wakes_ms, Instant::now());
        clock.show(now_ms, 0);
    }
    assert!(ended_well(child), "it ends when it is told to");
}

#[test]
fn energy_and_time_of_instances_and_replicas_add_up_to_their_cards() {
    let site = Site::new();
    site.ok("init --zone UTC");
    std::fs::create_dir_all(site.ledger().join("incoming")).unwrap();
    let prices = "currency = \"USD\"\nzone = \"UTC\"\n\
        [[price]]\nname = \"list\"\nfrom = \"2026-01-01\"\nper_card_hour = \"1.40\"\n\
        [[price]]\nname = \"three\"\nfrom = \"2026-01-01\"\nmig_profile = \"3g.*\"\nper_card_hour = \"2.10\"\n";
    std::fs::write(site.ledger().join("prices.toml"), prices).unwrap();
    played(&site);

    // What each held from 120 s to 720 s, in parts of a card, and what it drew of the card's: 400 W × 600 s are 240,000 J, of which a seventh is
    // 34,285.714285…; what rounding leaves goes to the largest remainders. Of the second card 250 W × 300 s and 350 W × 300 s are 180,000 J.
    let held = site.sql(
        "select attempt_key, device_uuid, mig_profile, share_parts, card_time, effective, underused + idle as rest, unseen, energy_mj, use_basis \
         from usage where state = 'held'",
    );
    let expected = [
        ("vision%2Ftrain", "MIG-three", "3g.40gb", CARD * 3 / 7, Some(70), 102_857_143),
        ("vision%2Fserve", "MIG-two", "2g.20gb", CARD * 2 / 7, Some(20), 68_571_429),
        ("speech%2Fnotebook", "MIG-one", "1g.10gb", CARD / 7, Some(0), 34_285_714),
        // Replicas have no counters of their own, and nothing tells the work of two apart.
        ("speech%2Fsmall", WHOLE, "", CARD / 4, None, 45_000_000),
        ("speech%2Flarge", WHOLE, "", CARD / 2, None, 90_000_000),
    ];
    assert_eq!(held.0.len(), expected.len(), "{held:?}");
    for (holder, device, profile, parts, busy_pct, energy_mj) in expected {
        let row = held.0.iter().find(|row| row["attempt_key"].contains(holder)).unwrap_or_else(|| panic!("{held:?}"));
        let number = |column: &str| row[column].parse::<i128>().unwrap();
        let whole = parts * 600_000;
        let busy = busy_pct.map_or(0, |pct| whole * pct / 100);
        assert_eq!(
            (&*row["device_uuid"], &*row["mig_profile"], number("share_parts")),
            (device, profile, parts),
            "{holder}"
        );
        assert_eq!((number("card_time"), number("energy_mj")), (whole, energy_mj), "{holder}");
        let (seen, unseen) = if busy_pct.is_some() { (whole, 0) } else { (0, whole) };
        assert_eq!((number("effective"), number("rest"), number("unseen")), (busy, seen - busy, unseen), "{holder}");
        assert_eq!(row["use_basis"], if busy_pct.is_some() { "gpm" } else { "" }, "{holder}");
    }

    // All that the counters went on by, from the first tick at 15 s to the last at 900 s: 400 W × 885 s, and 250 W × 405 s with 350 W × 480 s. What
    // nobody held of it is 423,250,000 less 205,714,286 and 135,000,000 mJ; each card is there for 900 s, the first 15 of which nobody had looked.
    let of_state = site.sql(
        "select state, sum(card_time) as card_time, sum(energy_mj) as energy_mj from usage \
         where bucket_start < timestamp '2026-03-02T00:15:00' group by state",
    );
    let sum = |state: &str, column: &str| of_state.by("state", column)[state].parse::<i128>().unwrap();
    assert_eq!(sum("held", "energy_mj") + sum("free", "energy_mj"), 354_000_000 + 269_250_000);
    assert_eq!(sum("held", "energy_mj"), 205_714_286 + 135_000_000);
    let held_parts = CARD * 6 / 7 + CARD * 3 / 4;
    assert_eq!(sum("held", "card_time"), held_parts * 600_000);
    assert_eq!(sum("free", "card_time"), 2 * CARD * 885_000 - held_parts * 600_000);
    assert_eq!(sum("unaccounted", "card_time"), 2 * CARD * 15_000);
    assert!(site.ok("verify").contains("the books balance"));

    // A seventh of the first card is in no instance.
    let inventory = site.report("inventory");
    assert_eq!((inventory.only("mig_instances"), inventory.only("stranded_cards")), ("3", "0.142857"));
    // A sixth of an hour: 3/7 at 2.10 are 0.15; 2/7, 1/7 and 3/4 at 1.40 are 0.275, half to even.
    let bill = site.report("bill --by price");
    let costs = bill.by("price", "cost");
    assert_eq!((&*costs["2 three"], &*costs["1 list"]), ("0.15", "0.28"));
    // (0.7 × 3/7 + 0.2 × 2/7) of 5/7; and of all that was held, 6/7 of a card were seen at work and 3/4 weren't.
    assert_eq!(site.report("efficiency --by project").by("project", "efficiency")["vision"], "0.500000");
    assert_eq!(site.report("usage").only("use_coverage"), "0.533333");
}
