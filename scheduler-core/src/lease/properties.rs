//! What holds whatever is observed, in whatever order.

use super::fixture::*;
use super::*;
use crate::work_class::WorkClass;
use cardhour_domain::{Gap, Reading};
use proptest::prelude::*;

/// What a minute of a job was like: index into the kinds that [`observe`] knows.
fn any_minutes(kinds: std::ops::Range<u8>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(kinds, 300)
}

fn observe(minute: i64, kind: u8, notice: Option<u32>) -> Observation {
    let mut seen = quiet(minute, 2);
    match kind {
        1 => seen.all_cards(busy_card()),
        2 => seen.all_cards(unseen_card(Gap::TimedOut)),
        3 => seen.processes.terminal = Check::Seen(Presence::Attended),
        4 => seen.processes.kernel = Check::Failed(Gap::NoPermission),
        5 => seen.opt_outs = Reading::Missing(Gap::TimedOut),
        6 => seen.checkpoint.activity = Check::Seen(CheckpointActivity::Writing),
        7 => seen.checkpoint.done_at = Some(at(minute)),
        8 => seen.cards.get_mut("GPU-1").unwrap().reading = busy_card(),
        _ => {}
    }
    seen.notice = notice.map(|notice| NoticeReport { notice, delivered: Ok(at(minute)) });
    seen
}

/// The number of the last warning that was given.
fn last_notice(story: &Story) -> Option<u32> {
    story.steps.iter().rev().find_map(|step| match step.action {
        Action::Warn { notice, .. } => Some(notice),
        _ => None,
    })
}

fn is_taking(step: &Step) -> bool {
    matches!(step.action, Action::AskCheckpoint { .. } | Action::Stop { .. } | Action::Reclaimed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A job that works in one minute of six works more of each window than may be missing of it. Whatever is lost (one in thirty, and
    /// stretches), told twice or told late, it keeps its cards.
    #[test]
    fn a_job_that_works_is_never_taken(
        lost in prop::collection::btree_set(0i64..420, 0..14),
        twice in prop::collection::btree_set(0usize..420, 0..40),
        moves in prop::collection::vec((0usize..420, 0usize..420), 0..60),
    ) {
        let mut minutes: Vec<i64> = (1..420).filter(|minute| !lost.contains(minute)).collect();
        let again: Vec<i64> = twice.iter().filter_map(|n| minutes.get(*n).copied()).collect();
        minutes.extend(again);
        for (a, b) in moves {
            let (a, b) = (a % minutes.len(), b % minutes.len());
            minutes.swap(a, b);
        }
        let mut story = Story::of(WorkClass::Development, 2);
        for minute in minutes {
            let kind = u8::from(minute % 6 == 0);
            let seen = observe(minute, kind, last_notice(&story));
            story.show(&seen);
        }
        prop_assert!(!story.steps.iter().any(is_taking), "{:?}", story.steps);
    }

    /// Every stop had a warning that was delivered, a whole grace since then, and a window that was seen and quiet when it was asked and when it was
    /// stopped; and nothing was taken in a minute that wasn't quiet.
    #[test]
    fn nothing_is_taken_without_a_warning_a_grace_and_a_window_that_was_seen(
        kinds in any_minutes(0..9),
        calm in 0i64..300,
    ) {
        let mut story = Story::of(WorkClass::Development, 2);
        let mut minute = 0;
        for kind in kinds.into_iter().chain(std::iter::repeat_n(0, 300)) {
            minute += 1;
            // A long calm somewhere, so that some of them get so far.
            let kind = if (calm..calm + 150).contains(&minute) { 0 } else { kind };
            let before = story.steps.len();
            let seen = observe(minute, kind, last_notice(&story));
            story.show(&seen);
            for step in story.steps[before..].iter().filter(|step| matches!(step.action, Action::AskCheckpoint { .. } | Action::Stop { .. })) {
                prop_assert!(matches!(kind, 0 | 7), "taken in a minute of kind {}", kind);
                prop_assert!(step.evidence.coverage >= story.policy.coverage);
                prop_assert!(step.evidence.idle_since.is_some_and(|since| step.at.ms_since(since) >= story.policy.window_ms));
            }
        }
        let mut graced_until = None;
        let mut is_warned = false;
        let mut is_asked = false;
        for step in &story.steps {
            match &step.action {
                Action::Warn { .. } => is_warned = true,
                Action::BeginGrace { until } => {
                    prop_assert!(is_warned);
                    prop_assert!(until.ms_since(step.at) >= 59 * MINUTE);
                    graced_until = Some(*until);
                }
                Action::Withdraw(_) => (is_warned, is_asked, graced_until) = (false, false, None),
                Action::AskCheckpoint { .. } => {
                    prop_assert!(graced_until.is_some_and(|until| step.at >= until));
                    is_asked = true;
                }
                Action::Stop { .. } => prop_assert!(is_asked),
                Action::Reclaimed => prop_assert!(false, "nothing was seen free"),
                _ => {}
            }
        }
    }

    /// Between two suspicions lies a whole window at least, and a warning is never repeated within one.
    #[test]
    fn a_lease_does_not_flap(kinds in any_minutes(0..9)) {
        let mut story = Story::of(WorkClass::Development, 2);
        for (minute, kind) in (1..).zip(kinds) {
            // Mostly calm: flapping needs something to flap to.
            let seen = observe(minute, if minute % 7 < 5 { 0 } else { kind }, None);
            story.show(&seen);
        }
        let suspected: Vec<_> = story.steps.iter().filter(|s| matches!(s.action, Action::Suspect)).map(|s| s.at).collect();
        for pair in suspected.windows(2) {
            prop_assert!(pair[1].ms_since(pair[0]) > story.policy.window_ms, "{:?}", suspected);
        }
    }

    /// The same observations once and twice give the same lease and the same steps.
    #[test]
    fn told_twice_is_told_once(kinds in any_minutes(0..9)) {
        let (mut once, mut twice) = (Story::of(WorkClass::Training, 2), Story::of(WorkClass::Training, 2));
        for (minute, kind) in (1..).zip(kinds) {
            let seen = observe(minute, if minute > 60 && minute < 250 { 0 } else { kind }, last_notice(&once));
            once.show(&seen);
            twice.show(&seen);
            twice.show(&seen);
        }
        prop_assert_eq!(&once.steps, &twice.steps);
        prop_assert_eq!(once.lease, twice.lease);
    }
}

proptest! {
    // Each case is thirty thousand observations.
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// A pool over a day, with the truth known: twenty jobs that work and rest in turns, and rest for good from minute 840 on. One reading in a
    /// hundred is lost, and all of them for forty minutes. Whoever is stopped had really rested for a window and a grace; while the telemetry is
    /// away nobody is touched; and who rests for good is stopped.
    #[test]
    fn a_pool_with_faults_loses_no_work_and_gets_its_idle_cards_back(
        turns in prop::collection::vec(prop::collection::vec(5i64..160, 16), 20),
        seed in any::<u64>(),
        away_from in 100i64..700,
    ) {
        let policy = LeasePolicy::default();
        let mut all = leases(20);
        let names: Vec<_> = all.keys().cloned().collect();
        let works = |job: usize, minute: i64| {
            let mut left = minute;
            let turn = turns[job].iter().position(|length| { left -= length; left < 0 });
            minute < 840 && turn.is_some_and(|turn| turn % 2 == 0)
        };
        let away = away_from..away_from + 40;
        for minute in 1..1440 {
            let mut round = Round { source: Reading::Seen(()), observations: Default::default() };
            for (n, job) in names.iter().enumerate() {
                let mut seen = quiet(minute, 1);
                if works(n, minute) {
                    seen.all_cards(busy_card());
                }
                if away.contains(&minute) || scramble(seed ^ (n as u64) << 32 ^ minute as u64).is_multiple_of(100) {
                    seen.all_cards(unseen_card(Gap::TimedOut));
                }
                if let Phase::Notified { notice, .. } = all[job].phase() {
                    seen.notice = Some(NoticeReport { notice: *notice, delivered: Ok(at(minute)) });
                }
                round.observations.insert(job.clone(), seen);
            }
            let outcome = step_round(all, &round, &policy);
            all = outcome.leases;
            let taken: Vec<_> = outcome.steps.iter().filter(|step| is_taking(step)).collect();
            prop_assert!(taken.is_empty() || !away.contains(&minute));
            prop_assert!(taken.len() <= 2, "a tenth of twenty, at minute {}", minute);
            for step in taken {
                let n = names.iter().position(|job| *job == step.job).unwrap();
                // One reading in a hundred may have been the one of a minute of work.
                let worked = (minute - 60..=minute).filter(|minute| works(n, *minute)).count();
                prop_assert!(worked <= 1, "job {} worked {} minutes before {}", n, worked, minute);
            }
        }
        for (job, lease) in &all {
            prop_assert!(matches!(lease.phase(), Phase::Stopping { .. }), "{}: {:?}", job, lease.phase());
        }
    }
}

/// A number made of another, evenly spread (SplitMix64).
fn scramble(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
