//! One thing that is watched, a card or a job's processes: what it said over the last window, and since when it is idle.

use super::{LeasePolicy, Verdict};
use cardhour_domain::{Interval, Percent, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One thing that is watched.
///
/// Ticks may come in any order and more than once: two that say different things of one time both stand, and the worse decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Watch {
    /// When the ticks of the last window said what: those of one verdict that meet are one stretch, so that a lease that is kept is short.
    ticks: BTreeSet<(Interval, Verdict)>,
    /// The idle time in progress.
    idle: Option<Idle>,
    /// A window before this doesn't count: something ended then.
    not_before: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Idle {
    since: Timestamp,
    /// When anything was seen since: disjoint, in order.
    seen: Vec<Interval>,
}

/// What ended an idle time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    /// Too little was seen to say that it goes on.
    Unseen,
    /// Something works.
    Work,
    /// Somebody is there.
    Attended,
}

impl Watch {
    /// Takes a tick in, whenever it comes.
    pub fn note(&mut self, during: Interval, verdict: Verdict, now: Timestamp, policy: &LeasePolicy) {
        if verdict == Verdict::Unseen {
            return;
        }
        if during.end() > earlier(now, policy.window_ms) {
            self.insert(during, verdict);
            return;
        }
        let is_over = match verdict {
            Verdict::Loud | Verdict::Attended | Verdict::Contradicting => true,
            Verdict::Quiet | Verdict::Between | Verdict::Unseen => false,
        };
        // It speaks of idle time that was believed already: no more.
        if is_over && self.idle.as_ref().is_some_and(|idle| during.end() > idle.since) {
            self.end(now);
        }
    }

    /// Whether a tick was taken in already, or comes too late to change anything.
    pub fn knows(&self, during: Interval, verdict: Verdict, now: Timestamp, policy: &LeasePolicy) -> bool {
        if verdict == Verdict::Unseen {
            return true;
        }
        if during.end() > earlier(now, policy.window_ms) {
            let covers = |other: &Interval| other.start() <= during.start() && during.end() <= other.end();
            return self.ticks.iter().any(|(other, of)| *of == verdict && covers(other));
        }
        match verdict {
            Verdict::Quiet | Verdict::Between | Verdict::Unseen => true,
            Verdict::Loud | Verdict::Attended | Verdict::Contradicting => {
                self.idle.as_ref().is_none_or(|idle| during.end() <= idle.since)
            }
        }
    }

    /// Judges the window that ends now. What comes before `judged_from` doesn't count. Returns what ended an idle time.
    pub fn judge(&mut self, now: Timestamp, judged_from: Timestamp, policy: &LeasePolicy) -> Option<Ending> {
        let window_start = earlier(now, policy.window_ms);
        self.ticks.retain(|(during, _)| during.end() > window_start);
        let window = Interval::new(window_start, now)?;
        match &mut self.idle {
            Some(idle) => {
                let known = |verdict: Verdict| match verdict {
                    Verdict::Quiet | Verdict::Between | Verdict::Loud => true,
                    Verdict::Attended | Verdict::Contradicting | Verdict::Unseen => false,
                };
                let since = idle.since;
                let after = |during: &Interval| during.end() > since;
                let seen = union(&self.ticks, window, known);
                idle.seen = Interval::union(idle.seen.iter().copied().chain(seen.iter().copied()).collect());
                let loud = union(&self.ticks, window, |verdict| verdict == Verdict::Loud);
                let loud_ms: i64 = loud.iter().filter(|during| after(during)).map(|during| during.length_ms()).sum();
                let is_attended = self.ticks.iter().any(|(during, v)| *v == Verdict::Attended && after(during));
                let ending = if is_attended {
                    Some(Ending::Attended)
                } else if loud_ms >= policy.ends_after_ms {
                    Some(Ending::Work)
                } else if !covers(&seen, window, policy.coverage) {
                    Some(Ending::Unseen)
                } else {
                    None
                };
                if ending.is_some() {
                    self.end(now);
                }
                ending
            }
            None => {
                let from = self.not_before.map_or(judged_from, |barrier| barrier.max(judged_from));
                let quiet = union(&self.ticks, window, |verdict| verdict == Verdict::Quiet);
                let is_quiet = self.ticks.iter().all(|(_, verdict)| *verdict == Verdict::Quiet);
                if from <= window_start && is_quiet && covers(&quiet, window, policy.coverage) {
                    self.idle = Some(Idle { since: quiet[0].start(), seen: quiet });
                }
                None
            }
        }
    }

    /// Whether anything was seen of it of late.
    pub fn is_seen(&self) -> bool {
        !self.ticks.is_empty()
    }

    /// Since when it is idle.
    pub fn idle_since(&self) -> Option<Timestamp> {
        self.idle.as_ref().map(|idle| idle.since)
    }

    /// How much of the idle time since an instant was seen. Unit: milliseconds.
    pub fn idle_seen_ms(&self, since: Timestamp, now: Timestamp) -> i64 {
        let Some(whole) = Interval::new(since, now) else { return 0 };
        let seen = self.idle.as_ref().map_or(&[][..], |idle| &idle.seen);
        seen.iter().filter_map(|during| during.overlap(whole)).map(Interval::length_ms).sum()
    }

    /// How much of the window that ends now was seen and doesn't contradict itself.
    pub fn coverage(&self, now: Timestamp, policy: &LeasePolicy) -> Percent {
        let seen = Interval::new(earlier(now, policy.window_ms), now)
            .map(|window| {
                union(&self.ticks, window, |verdict| !matches!(verdict, Verdict::Contradicting | Verdict::Unseen))
            })
            .unwrap_or_default();
        let seen_ms: i64 = seen.iter().map(|during| during.length_ms()).sum();
        let thousandths = i128::from(seen_ms) * i128::from(Percent::WHOLE.thousandths()) / i128::from(policy.window_ms);
        let thousandths = i32::try_from(thousandths).expect("what was seen of a window is no longer than it");
        Percent::from_thousandths(thousandths).expect("from 0 to 100 %")
    }

    fn insert(&mut self, during: Interval, verdict: Verdict) {
        let meets = |other: &Interval| other.start() <= during.end() && during.start() <= other.end();
        let of_same: Vec<Interval> =
            self.ticks.iter().filter(|(other, of)| *of == verdict && meets(other)).map(|(other, _)| *other).collect();
        for other in &of_same {
            self.ticks.remove(&(*other, verdict));
        }
        let whole = Interval::union(of_same.into_iter().chain([during]).collect());
        self.ticks.extend(whole.into_iter().map(|whole| (whole, verdict)));
    }

    fn end(&mut self, now: Timestamp) {
        self.idle = None;
        self.not_before = Some(now);
    }
}

/// `ms` before an instant.
pub(super) fn earlier(at: Timestamp, ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(at.unix_ms().saturating_sub(ms))
}

/// `ms` after an instant.
pub(super) fn later(at: Timestamp, ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(at.unix_ms().saturating_add(ms))
}

/// When ticks of some verdicts were, inside a window.
fn union(ticks: &BTreeSet<(Interval, Verdict)>, window: Interval, which: impl Fn(Verdict) -> bool) -> Vec<Interval> {
    let inside = ticks.iter().filter(|(_, verdict)| which(*verdict)).filter_map(|(during, _)| during.overlap(window));
    Interval::union(inside.collect())
}

fn covers(seen: &[Interval], window: Interval, coverage: Percent) -> bool {
    let seen_ms: i64 = seen.iter().map(|during| during.length_ms()).sum();
    i128::from(seen_ms) * i128::from(Percent::WHOLE.thousandths())
        >= i128::from(window.length_ms()) * i128::from(coverage.thousandths())
        && seen_ms > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_unix_ms(minute * MINUTE)
    }

    /// A character a minute: `.` quiet, `-` between, `#` loud, `a` attended, `!` contradicting, ` ` unseen. Returns the minutes at which idle began
    /// and ended.
    fn watch(timeline: &str) -> Vec<(i64, Option<Ending>)> {
        let policy = LeasePolicy::default();
        let mut watch = Watch::default();
        let mut changes = Vec::new();
        for (minute, tick) in (0..).zip(timeline.chars()) {
            let verdict = match tick {
                '.' => Verdict::Quiet,
                '-' => Verdict::Between,
                '#' => Verdict::Loud,
                'a' => Verdict::Attended,
                '!' => Verdict::Contradicting,
                _ => Verdict::Unseen,
            };
            let was = watch.idle_since();
            let now = at(minute + 1);
            watch.note(Interval::new(at(minute), now).unwrap(), verdict, now, &policy);
            let ending = watch.judge(now, at(0), &policy);
            if watch.idle_since() != was {
                changes.push((minute + 1, ending));
            }
        }
        changes
    }

    #[test]
    fn idle_begins_with_a_whole_window_and_nine_tenths_of_it_seen() {
        assert_eq!(watch(&".".repeat(29)), []);
        assert_eq!(watch(&".".repeat(30)), [(30, None)]);
        assert_eq!(watch(&format!("{}   {}", ".".repeat(10), ".".repeat(17))), [(30, None)]);
        assert_eq!(watch(&format!("{}    {}", ".".repeat(10), ".".repeat(16))), []);
    }

    #[test]
    fn what_is_over_a_floor_or_contradicts_itself_begins_nothing() {
        for tick in ['-', '#', 'a', '!'] {
            assert_eq!(watch(&format!("{}{tick}{}", ".".repeat(15), ".".repeat(29))), [], "{tick}");
            assert_eq!(watch(&format!("{}{tick}{}", ".".repeat(15), ".".repeat(30))), [(46, None)], "{tick}");
        }
    }

    #[test]
    fn idle_ends_with_two_minutes_above_twice_a_floor_or_with_somebody_there() {
        let idle = ".".repeat(30);
        assert_eq!(watch(&format!("{idle}------------")), [(30, None)]);
        assert_eq!(watch(&format!("{idle}#.....")), [(30, None)]);
        assert_eq!(watch(&format!("{idle}#....#..")), [(30, None), (36, Some(Ending::Work))]);
        assert_eq!(watch(&format!("{idle}a...")), [(30, None), (31, Some(Ending::Attended))]);
    }

    /// Unseen, and suspect samples: after more than three minutes of thirty it is over.
    #[test]
    fn idle_ends_when_too_little_is_seen() {
        let idle = ".".repeat(30);
        assert_eq!(watch(&format!("{idle}   ")), [(30, None)]);
        assert_eq!(watch(&format!("{idle}    ")), [(30, None), (34, Some(Ending::Unseen))]);
        assert_eq!(watch(&format!("{idle}!!!!")), [(30, None), (34, Some(Ending::Unseen))]);
    }

    /// After each end a whole new window: with one minute in eight missing it is never long enough, and doesn't flap.
    #[test]
    fn after_an_end_it_takes_a_whole_window_to_begin_again() {
        let changes = watch(&format!("{}    {}", ".".repeat(30), ".".repeat(40)));
        assert_eq!(changes, [(30, None), (34, Some(Ending::Unseen)), (64, None)]);
    }

    /// Told in any order and twice, an hour of quarter minutes is three stretches.
    #[test]
    fn ticks_of_one_verdict_that_meet_are_one_stretch() {
        let policy = LeasePolicy { window_ms: 60 * MINUTE, ..LeasePolicy::default() };
        let mut watch = Watch::default();
        let quarter = |n: i64| {
            let from = |n: i64| Timestamp::from_unix_ms(n * MINUTE / 4);
            Interval::new(from(n), from(n + 1)).unwrap()
        };
        for n in (0..240).rev().step_by(2).chain(0..240) {
            let verdict = if (100..120).contains(&n) { Verdict::Loud } else { Verdict::Quiet };
            watch.note(quarter(n), verdict, at(60), &policy);
        }
        let minutes = |from, to| Interval::new(at(from), at(to)).unwrap();
        let expected =
            [(minutes(0, 25), Verdict::Quiet), (minutes(25, 30), Verdict::Loud), (minutes(30, 60), Verdict::Quiet)];
        assert_eq!(watch.ticks, BTreeSet::from(expected));
    }

    #[test]
    fn work_that_is_told_late_ends_idle_time_that_was_believed() {
        let policy = LeasePolicy::default();
        let mut watch = Watch::default();
        let tick = |minute| Interval::new(at(minute), at(minute + 1)).unwrap();
        for minute in (0..80).filter(|minute| *minute != 40) {
            watch.note(tick(minute), Verdict::Quiet, at(minute + 1), &policy);
            watch.judge(at(minute + 1), at(0), &policy);
        }
        assert!(watch.idle_since().is_some());
        watch.note(tick(40), Verdict::Loud, at(80), &policy);
        assert_eq!(watch.idle_since(), None);
    }
}
