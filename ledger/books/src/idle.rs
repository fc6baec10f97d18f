//! What is idle: held, seen, and doing nothing for long enough (design §4.4).
//!
//! A holder is idle on a device when all signals that were seen stay under their floors over a whole window of which nearly all was seen,
//! after a grace at the start. Whether the multiprocessors did anything must be among them: a processor that rests (R15) or a card that draws
//! little proves nothing. A high power with nothing else is no work either (C21): such time isn't idle, and isn't effective.
//! What nobody saw is never idle (R01, R06).
//!
//! Start at [`idle`]: all holdings at once. [`quiet_stretches`] is the rule for one holder on one device. Does not: warn, reclaim, or price.

mod jobs;
mod signals;

use crate::telemetry::{DeviceTick, HolderTick, PowerRange};
use cardhour_domain::{Interval, Percent, Timestamp};
use signals::{Judged, Quietness, judge};
use std::collections::VecDeque;

pub use jobs::{Advice, AdviceReason, Idle, idle};

/// The floors and times of the rule. [`Default`] has those of design §4.4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdlePolicy {
    /// Floor of the multiprocessors' activity, or the duty cycle.
    pub sm_active: Percent,
    /// Floor of the memory bandwidth's activity.
    pub mem_active: Percent,
    /// Floor of NVLink and PCIe together. Unit: bytes a second.
    pub link_bytes_per_s: i64,
    /// Floor of power above the card's idle level, as a part of its range.
    pub power: Percent,
    /// Floor of the holder's processor time, as a part of one core.
    pub cpu: Percent,
    /// Floor of what the holder's processes read and write. Unit: bytes a second.
    pub io_bytes_per_s: i64,
    /// How long all must be under their floors. Unit: milliseconds, above zero.
    pub window_ms: i64,
    /// How much of the window must have been seen.
    pub coverage: Percent,
    /// How long of a window something must be above twice its floor to end it. Unit: milliseconds, above zero.
    pub ends_after_ms: i64,
    /// From its start, how long a development session isn't judged. Unit: milliseconds.
    pub development_grace_ms: i64,
    /// The same for training, and for what has another class or none. Unit: milliseconds.
    pub training_grace_ms: i64,
}

impl Default for IdlePolicy {
    fn default() -> Self {
        const MINUTE: i64 = 60_000;
        let percent = |percent: i32| Percent::from_thousandths(percent * 1000).expect("from 0 to 100");
        Self {
            sm_active: percent(2),
            mem_active: percent(2),
            link_bytes_per_s: 50_000_000,
            power: percent(10),
            cpu: percent(5),
            io_bytes_per_s: 1_000_000,
            window_ms: 30 * MINUTE,
            coverage: percent(90),
            ends_after_ms: 2 * MINUTE,
            development_grace_ms: 15 * MINUTE,
            training_grace_ms: 60 * MINUTE,
        }
    }
}

/// Whether what is found idle counts, by the class of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is idle.
    Counts,
    /// Inference waits for requests: that it does is worth an advice, and never idle.
    AdviceOnly,
}

impl IdlePolicy {
    /// How long a class isn't judged, in milliseconds, and what comes of it after that.
    pub fn of_class(&self, class: Option<&str>) -> (i64, Standing) {
        match class {
            Some("development") => (self.development_grace_ms, Standing::Counts),
            Some("inference") => (self.training_grace_ms, Standing::AdviceOnly),
            _ => (self.training_grace_ms, Standing::Counts),
        }
    }
}

/// One holder on one device, over a stretch that it held without a break.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The stretch to judge.
    pub during: Interval,
    /// From when on it is judged: its start and the grace of its class.
    pub judged_from: Timestamp,
    /// The device's timeline.
    pub device: &'a [DeviceTick],
    /// The holder's on it; empty where its processes weren't looked at.
    pub holder: &'a [HolderTick],
    /// The card's range of power, for a whole card.
    pub power: Option<PowerRange>,
    /// When others held a part of the device too, in order and without overlap.
    pub shared: &'a [Interval],
}

/// When the holder was idle on the device.
///
/// A stretch is idle from its first instant, once it is a window long. In it, what isn't quiet but doesn't end it is idle too; what wasn't seen,
/// or contradicts itself, never is. It ends with the first loud tick of those that make up `ends_after_ms` within one window: whether they
/// follow each other doesn't matter, since work that comes in bursts is work (C18, R07). Somebody at the terminal ends it at once, since a floor of
/// none has no double. To begin anew it takes a whole window without anything over a floor.
///
/// Shape: disjoint stretches that don't touch, in order. It can be told for an instant only from the telemetry of a window after it, and from
/// where its stretch began before it.
pub fn quiet_stretches(scene: &Scene<'_>, policy: &IdlePolicy) -> Vec<Interval> {
    let Some(during) = Interval::new(scene.during.start().max(scene.judged_from), scene.during.end()) else {
        return Vec::new();
    };
    let ticks = judge(scene, during, policy);
    let needed = i128::from(policy.window_ms) * i128::from(policy.coverage.thousandths());
    let whole = i128::from(Percent::WHOLE.thousandths());
    let mut found = Vec::new();
    // Nothing over a floor since then.
    let mut barrier = during.start();
    // The first tick of the idle stretch in progress.
    let mut began: Option<usize> = None;
    let mut tail = 0;
    let mut seen_ms = 0;
    let mut loud: VecDeque<usize> = VecDeque::new();
    let mut loud_ms = 0;
    for (i, tick) in ticks.iter().enumerate() {
        let length = |i: usize| ticks[i].during.length_ms();
        seen_ms += length(i);
        let window = Timestamp::from_unix_ms(tick.during.end().unix_ms() - policy.window_ms);
        while ticks[tail].during.end() <= window {
            seen_ms -= length(tail);
            tail += 1;
        }
        let outside = window.ms_since(ticks[tail].during.start()).max(0);
        let is_covered = i128::from(seen_ms - outside) * whole >= needed;
        if tick.quietness != Quietness::Quiet {
            barrier = tick.during.end();
        }
        let Some(first) = began else {
            // From the barrier on, all that was seen is quiet.
            if window >= barrier && is_covered {
                began = Some(tail);
                loud.clear();
                loud_ms = 0;
            }
            continue;
        };
        if tick.quietness == Quietness::Loud {
            loud.push_back(i);
            loud_ms += length(i);
        }
        while loud.front().is_some_and(|front| ticks[*front].during.end() <= window) {
            loud_ms -= loud.pop_front().map_or(0, length);
        }
        let end = match loud.front() {
            _ if tick.quietness == Quietness::Attended || !is_covered => Some(i),
            Some(front) if loud_ms >= policy.ends_after_ms => Some(*front),
            _ => None,
        };
        if let Some(end) = end {
            close(&ticks[first..end], &mut found);
            began = None;
        }
    }
    if let Some(first) = began {
        close(&ticks[first..], &mut found);
    }
    Interval::union(found)
}

/// Adds what is idle of a stretch that is over: up to its last tick that isn't loud, and without what may not be idle.
fn close(ticks: &[Judged], found: &mut Vec<Interval>) {
    let last = ticks.iter().rposition(|tick| tick.quietness != Quietness::Loud).map_or(0, |last| last + 1);
    found.extend(ticks[..last].iter().filter(|tick| tick.may_be_idle).map(|tick| tick.during));
}

#[cfg(test)]
mod tests;
