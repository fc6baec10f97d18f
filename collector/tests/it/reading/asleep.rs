//! Cards that the kernel puts to sleep, and that a call would wake: pitfall 22 of our notes on NVML.

use super::story::{Story, card, missing, percent, play_with, stage};
use cardhour_domain::{EventKind, Gap, Reading, UseBasis};

/// One card that the kernel puts to sleep two minutes in, for five minutes. Any call on it meanwhile would find it lost.
const ASLEEP: &str = r#"
[[card]]
preset = "l40s"
pci = "00000000:01:00.0"
curve.power_w = 20
curve.util = { points = [[0, 50], [100, 0]], interp = "step" }
[[fault]]
at_s = 121
until_s = 421
card = 0
call = "nvmlDevice*"
rc = 15
"#;

/// Plays it on a bus whose kernel says so. `woken_s`: something else wakes it then, for a moment.
fn play_asleep(scenario: &str, woken_s: Option<i64>) -> Story {
    let bus = tempfile::tempdir().unwrap();
    let card = bus.path().join("0000:01:00.0");
    std::fs::create_dir_all(card.join("power")).unwrap();
    std::fs::write(card.join("vendor"), "0x10de\n").unwrap();
    std::fs::write(card.join("class"), "0x030200\n").unwrap();
    play_with(&stage(scenario), 600, Some(bus.path().to_owned()), &|s, _, _| {
        let is_asleep = (120..420).contains(&s);
        let awake_ms =
            if is_asleep { 120_000 + woken_s.map_or(0, |woken| i64::from(s >= woken) * 800) } else { s * 1000 };
        std::fs::write(card.join("power/runtime_status"), if is_asleep { "suspended\n" } else { "active\n" }).unwrap();
        std::fs::write(card.join("power/runtime_active_time"), format!("{awake_ms}\n")).unwrap();
    })
}

/// Any call would wake it. The kernel says that it sleeps, and nothing runs on a card that does: that is idle, and what was used is in its counter.
#[test]
fn pitfall_22_a_card_that_sleeps_is_not_woken_and_was_idle() {
    let story = play_asleep(ASLEEP, None);
    assert_eq!(story.told(EventKind::CardLost), [], "a call was made on it");
    assert_eq!(story.ticks.last().unwrap().generation, 1);
    let row = story.row(&card(0), 300);
    assert_eq!((row.sm_active_pct, row.use_basis), (percent(0.0), UseBasis::DutyCycle));
    assert_eq!(
        (row.power_mw, row.temperature_c, row.energy_mj),
        (missing(Gap::Asleep), missing(Gap::Asleep), missing(Gap::Asleep))
    );
    // It has no process, and only a call that wakes it could change that.
    assert_eq!(story.tick(300).listings.len(), 1);
    assert_eq!(story.tick(300).listings[0].processes, Reading::Seen(0));
    assert_eq!(story.energy_mj(&card(0)), (600 - 15) * 20_000);
    // 50 % until 100 s, less the tick before the first row; to half a sample of the ring.
    let busy = story.busy(&card(0));
    assert!((busy - 50.0 * 85.0).abs() < 50.0, "{busy}");
    assert!(story.row(&card(0), 600).power_mw.seen().is_some());
}

/// What it did while something else had woken it is in a ring that can't be read: that stretch isn't idle.
#[test]
fn pitfall_22_a_card_that_was_awake_between_two_looks_is_not_called_idle_then() {
    let story = play_asleep(ASLEEP, Some(300));
    let read = |s: i64| story.reading(&card(0), s).busy_ring.iter().map(|look| look.now_percent).collect::<Vec<_>>();
    assert_eq!(read(300), [Reading::Seen(0); 3]);
    assert_eq!(read(315), [missing(Gap::Asleep), Reading::Seen(0), Reading::Seen(0)]);
    // Whoever woke it may have begun to use it.
    assert_eq!((story.tick(300).listings.len(), story.tick(315).listings.len()), (1, 0));
}

/// A process that had it before it fell asleep may have it still: nobody can say, so it isn't free.
#[test]
fn pitfall_22_a_sleeping_card_with_a_process_that_lives_is_not_called_free() {
    let with = |pid: u32| format!("{ASLEEP}[[process]]\npid = {pid}\ncard = 0\nmemory_mib = 5\n");
    let listings = |pid| play_asleep(&with(pid), None).tick(300).listings.len();
    // Process 1 lives on every Linux, and no kernel counts to four billion.
    assert_eq!((listings(1), listings(4_000_000_000)), (0, 1));
}
