use super::*;
use crate::split::AttemptFacts;
use crate::telemetry::drawn::{MINUTE, holdings, key, minutes, telemetry};
use cardhour_domain::{AttemptKey, JobState};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Facts from `a development, b inference`.
fn facts(classes: &str) -> BTreeMap<AttemptKey, AttemptFacts> {
    let fact = |text: &str| {
        let (name, class) = text.trim().split_once(' ')?;
        Some((key(name), AttemptFacts { class: Some(class.into()), state: JobState::Running, checkpoint_at: None }))
    };
    classes.split(',').filter_map(fact).collect()
}

fn found(seen: &str, held: &str, classes: &str) -> String {
    let holdings = holdings(held);
    let idle = idle(&holdings, &facts(classes), &telemetry(seen), &IdlePolicy::default());
    let minute =
        |during: &Interval| format!("{}..{}", during.start().unix_ms() / MINUTE, during.end().unix_ms() / MINUTE);
    let mut lines: Vec<String> = Vec::new();
    for (index, stretches) in &idle.by_holding {
        let text: Vec<String> = stretches.iter().map(minute).collect();
        lines.push(format!("{index} idle {}", text.join(" ")));
    }
    for advice in &idle.advice {
        lines.push(format!("{} advice {} {:?}", advice.holding, minute(&advice.during), advice.reason));
    }
    lines.join("\n")
}

/// What is idle of one development session that holds `g0` for as long as anything is drawn, after its grace of 15 minutes.
#[track_caller]
fn check(seen: &str, expected: &str) {
    assert_eq!(found(seen, "a g0 1/1 0..600", "a development"), expected);
}

#[test]
fn a_card_is_idle_from_its_first_quiet_instant_once_a_window_is_full() {
    check("g0 50x20 0x29 50x20", "");
    check("g0 50x20 0x30 50x20", "0 idle 20..50");
    check("g0 50x20 0x300 50x20", "0 idle 20..320");
}

/// R12: the grace isn't idle, whatever happens in it: 15 minutes for development, 60 for training and for what has no class.
#[test]
fn r12_a_long_start_is_not_idle() {
    check("g0 0x44", "");
    check("g0 0x45", "0 idle 15..45");
    assert_eq!(found("g0 0x100", "a g0 1/1 0..100", "a training"), "0 idle 60..100");
    assert_eq!(found("g0 0x89", "a g0 1/1 0..89", "a training"), "");
    assert_eq!(found("g0 0x100", "a g0 1/1 0..100", ""), "0 idle 60..100");
}

#[test]
fn inference_is_never_idle_and_gets_an_advice() {
    assert_eq!(found("g0 0x100", "a g0 1/1 0..100", "a inference"), "0 advice 60..100 Inference");
}

/// R01, R05, R13: no data, no verdict.
#[test]
fn r01_without_telemetry_nothing_is_idle() {
    check("g0 ?x200 50x1", "");
    check("g0 -x200", "");
    check("g1 0x200", "");
}

/// R06: 30 minutes of which 27 were seen are enough, 26 are not. What is unseen in between isn't idle itself.
#[test]
fn r06_a_window_with_a_hole_needs_nine_tenths_seen() {
    check("g0 50x20 0x14 ?x3 0x13 50x9", "0 idle 20..34 37..50");
    check("g0 50x20 0x13 ?x4 0x13 50x9", "");
    // The maximum over what is left would be 0.
    check("g0 50x20 ?x25 0x20 50x9", "");
    // From 20 minutes after the hole the window reaches into it by 3 minutes only: by hand, 17 + 27 ends at 74.
    check("g0 50x20 0x20 ?x10 0x24", "");
    check("g0 50x20 0x20 ?x10 0x27", "0 idle 50..77");
}

/// R06 again: a hole ends a stretch that was idle, and what follows must fill its own window.
#[test]
fn a_long_hole_ends_what_was_idle() {
    check("g0 50x20 0x40 ?x10 0x20 50x9", "0 idle 20..60");
}

/// R02: one early burst doesn't protect for ever, and held memory neither protects nor accuses.
#[test]
fn r02_an_early_burst_does_not_protect_and_memory_is_its_own_signal() {
    check("g0 100x1 0,used=80000000000x60", "0 idle 15..61");
}

/// R03: memory *bandwidth* in use at low SM activity is work.
#[test]
fn r03_a_job_bound_by_memory_is_not_idle() {
    check("g0 1,mem=40x100", "");
    check("g0 1,mem=1x100", "0 idle 15..100");
}

/// R07, R08: the browser is closed; the card or the kernel works.
#[test]
fn r07_r08_a_busy_kernel_without_anybody_there_is_not_idle() {
    check("g0 40x100\n g0:a 40,alonex100", "");
    check("g0 0x100\n g0:a 0,cpu=90,alonex100", "");
    check("g0 0x100\n g0:a 0,io=5,alonex100", "");
    check("g0 0x100\n g0:a 0,cpu=1,io=0,alonex100", "0 idle 15..100");
}

/// R11: somebody types in a terminal, which ends it at once: there is no double of nobody.
#[test]
fn r11_work_in_a_terminal_is_not_idle() {
    check("g0 0x100\n g0:a 0,attendedx100", "");
    check("g0 0x100\n g0:a 0,alonex60 0,attendedx1 0,alonex39", "0 idle 15..60 61..100");
    check("g0 0x100\n g0:a 0,alonex80 0,attendedx1 0,alonex19", "0 idle 15..80");
}

/// R15: processors at rest prove nothing about a card, nor does low power.
#[test]
fn r15_processors_and_power_alone_prove_no_idleness() {
    check("g0 limit 700\n g0 -,power=70x200\n g0:a -,cpu=0,io=0,alonex200", "");
    check("g0 95x200\n g0:a 95,cpu=1,io=0,alonex200", "");
}

/// R16: a pod with a part of a card that has not touched it: seen to do nothing is idle, not seen is not.
#[test]
fn r16_an_untouched_part_of_a_busy_card_is_idle_only_if_it_was_seen() {
    let held = "a g0 1/2 0..100\n b g0 1/2 0..100";
    let busy = "g0 80,mem=30x100\n g0:b 80,cpu=99x100";
    assert_eq!(found(&format!("{busy}\n g0:a 0,cpu=0x100"), held, "a development, b development"), "0 idle 15..100");
    assert_eq!(found(busy, held, "a development, b development"), "");
    // The card as a whole did nothing: so did all its holders.
    assert_eq!(found("g0 0x100", held, "a development, b development"), "0 idle 15..100\n1 idle 15..100");
}

/// R20: of four cards three work; the fourth is an advice. When all rest, the job is idle.
#[test]
fn r20_a_job_is_idle_only_when_all_its_cards_are() {
    let held = "a g0 1/1 0..150\n a g1 1/1 0..150\n a g2 1/1 0..150\n a g3 1/1 0..150";
    let seen = "g0 90x100 0x50\n g1 90x100 0x50\n g2 90x100 0x50\n g3 0x150";
    assert_eq!(
        found(seen, held, "a training"),
        "0 idle 100..150\n1 idle 100..150\n2 idle 100..150\n3 idle 100..150\n3 advice 60..100 OtherCards"
    );
}

/// A card of the job that nobody read, or that no record names, may be the one that works.
#[test]
fn r20_a_job_with_a_card_that_nobody_sees_is_not_idle() {
    assert_eq!(found("g0 0x100", "a g0 1/1 0..100\n a g1 1/1 0..100", "a development"), "0 advice 15..100 OtherCards");
    assert_eq!(
        found("g0 0x100", "a g0 1/1 0..100\n a - 3/1 0..70", "a development"),
        "0 idle 70..100\n0 advice 15..70 OtherCards"
    );
}

/// C02, C13: a slice whose classic utilisation isn't there is unknown.
#[test]
fn c02_a_slice_without_activity_is_unknown() {
    let held = "a g0/s1 1/7 0..100";
    assert_eq!(found("g0 0x100\n g0/s1 -x100", held, "a development"), "");
    assert_eq!(found("g0 -,power=600x100\n g0 limit 700\n g0/s1 0x100", held, "a development"), "0 idle 15..100");
}

/// C04: signals that contradict each other are never idle, and break the window.
#[test]
fn c04_a_suspect_sample_is_never_idle() {
    check("g0 !x200", "");
    check("g0 50x20 0x20 !x1 0x20", "");
    check("g0 50x20 0x35 !x1 0x20", "0 idle 20..55 56..76");
}

/// C18: utilisation that jumps between 0 and 100 %: zeros never fill a window; and work that comes in bursts ends what was idle.
#[test]
fn c18_zeros_between_bursts_are_not_idle() {
    let jumps = "0x1 100x1 ".repeat(60);
    check(&format!("g0 {jumps}"), "");
    // The second loud minute of a window makes two: it ended at the first.
    check(&format!("g0 50x20 0x40 0x1 100x1 {jumps}"), "0 idle 20..61");
    check("g0 50x20 0x40 0x10 100x1 0x5 100x1 0x10", "0 idle 20..70");
}

/// C21: nothing runs and the card stays at P0 with 110 W. By hand: of 450 W, seen as low as 20 W, the floor is at 20 + 43 = 63 W.
/// Power keeps it from being idle, and makes no work of it (`split::tests::c21`).
#[test]
fn c21_power_above_its_floor_is_not_idle() {
    check("g0 limit 450\n g0 0,power=20x20 0,power=110x100", "");
    check("g0 limit 450\n g0 0,power=20x20 0,power=62x100", "0 idle 15..120");
    // A card that draws 110 W whenever nothing runs has its own idle level there.
    check("g0 limit 450\n g0 0,power=110x120", "0 idle 15..120");
}

/// Each signal on its own keeps a card from being idle at its floor, and not below.
#[test]
fn every_signal_has_its_floor() {
    for (quiet, working) in
        [("1.9", "2"), ("0,mem=1.9", "0,mem=2"), ("0,media=0", "0,media=1"), ("0,link=49", "0,link=50")]
    {
        check(&format!("g0 {quiet}x60"), "0 idle 15..60");
        check(&format!("g0 {working}x60"), "");
    }
    for (quiet, working) in [("0,cpu=4", "0,cpu=5"), ("0,io=0", "0,io=1")] {
        check(&format!("g0 0x60\n g0:a {quiet}x60"), "0 idle 15..60");
        check(&format!("g0 0x60\n g0:a {working}x60"), "");
    }
}

/// It ends above twice a floor for two minutes, with the first of them; between once and twice it goes on.
#[test]
fn it_takes_two_minutes_above_twice_a_floor_to_end() {
    check("g0 50x20 0x40 30x1 0x40", "0 idle 20..101");
    check("g0 50x20 0x40 30x2 0x20", "0 idle 20..60");
    check("g0 50x20 0x40 3.9x40 0x1", "0 idle 20..101");
    check("g0 50x20 0x40 4.1x40 0x1", "0 idle 20..60");
    // To begin, all must be under the floors themselves.
    check("g0 50x20 3x100", "");
    // A loud minute at the very end may be the first of many.
    check("g0 50x20 0x40 30x1", "0 idle 20..60");
}

/// K18 and the like: another holder's work on the same device isn't this one's.
#[test]
fn a_holder_of_part_of_a_card_is_judged_by_its_own_processes() {
    let held = "a g0 1/2 0..100\n b g0 1/2 0..50";
    // Alone from 50 on, the device's signals are a's own: half an hour of 80 % is a's.
    let seen = "g0 80x100\n g0:a 0x100\n g0:b 80x50";
    assert_eq!(found(seen, held, "a development, b development"), "0 idle 15..50");
}

fn any_minutes() -> impl Strategy<Value = Vec<(&'static str, usize)>> {
    let what = prop::sample::select(vec!["0", "0", "0", "1", "3", "50", "?", "-", "!", "0,mem=50", "0,power=300"]);
    prop::collection::vec((what, 1usize..40), 1..14)
}

fn draw(stretches: &[(&str, usize)]) -> String {
    stretches.iter().map(|(what, times)| format!("{what}x{times} ")).collect()
}

proptest! {
    /// LED-3.
    #[test]
    fn nothing_missing_or_suspect_becomes_idle(stretches in any_minutes()) {
        let seen = telemetry(&format!("g0 limit 700\n g0 {}", draw(&stretches)));
        let idle = idle(&holdings("a g0 1/1 0..700"), &facts("a development"), &seen, &IdlePolicy::default());
        let ticks = seen.device(&"g0".into(), &"g0".into());
        for stretch in idle.by_holding.values().flatten() {
            let covered: i64 = ticks
                .iter()
                .filter(|tick| tick.sm_active.is_some() && !tick.suspect)
                .filter_map(|tick| tick.during.overlap(*stretch))
                .map(Interval::length_ms)
                .sum();
            prop_assert_eq!(covered, stretch.length_ms());
        }
    }

    /// LED-7.
    #[test]
    fn where_a_holding_is_cut_changes_nothing(stretches in any_minutes(), cuts in prop::collection::btree_set(1i64..400, 0..6)) {
        let seen = telemetry(&format!("g0 {}", draw(&stretches)));
        let whole = holdings("a g0 1/1 0..400");
        let edges: Vec<i64> = [0].into_iter().chain(cuts).chain([400]).collect();
        let pieces: Vec<_> = edges
            .windows(2)
            .map(|pair| crate::holdings::Holding { during: minutes(pair[0], pair[1]), ..whole[0].clone() })
            .collect();
        let all = |holdings: &[crate::holdings::Holding]| {
            let idle = idle(holdings, &facts("a development"), &seen, &IdlePolicy::default());
            Interval::union(idle.by_holding.into_values().flatten().collect())
        };
        prop_assert_eq!(all(&pieces), all(&whole));
    }

    /// A whole window under the floors with nothing missing is always found.
    #[test]
    fn a_quiet_window_is_always_found(before in any_minutes(), after in any_minutes(), quiet in 30usize..80) {
        let start: usize = 100 + before.iter().map(|(_, times)| times).sum::<usize>();
        let seen = telemetry(&format!("g0 0x100 {} 0x{quiet} {}", draw(&before), draw(&after)));
        let idle = idle(&holdings("a g0 1/1 0..2000"), &facts("a development"), &seen, &IdlePolicy::default());
        let quiet = minutes(start as i64, (start + quiet) as i64);
        prop_assert!(idle.by_holding[&0].iter().any(|found| found.overlap(quiet) == Some(quiet)));
    }
}
