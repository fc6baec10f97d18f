//! How quiet a tick is: its signals against their floors.

use super::{IdlePolicy, Scene};
use crate::telemetry::{DeviceTick, HolderTick};
use cardhour_domain::{Interval, Percent};

/// What the signals of a tick say together: what the loudest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Quietness {
    /// All that were seen are under their floors.
    Quiet,
    /// One isn't, and none is above twice its floor.
    Between,
    /// One is above twice its floor, or they contradict each other.
    Loud,
    /// Somebody is there.
    Attended,
}

/// A tick that says something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judged {
    pub during: Interval,
    pub quietness: Quietness,
    /// The use was seen, and nothing contradicts it.
    pub may_be_idle: bool,
}

/// Judges the ticks in `during`. One whose use wasn't seen says something only when another signal is over its floor: else it is a hole.
pub(super) fn judge(scene: &Scene<'_>, during: Interval, policy: &IdlePolicy) -> Vec<Judged> {
    let first = scene.device.partition_point(|tick| tick.during.end() <= during.start());
    let last = scene.device.partition_point(|tick| tick.during.start() < during.end());
    let mut judged = Vec::with_capacity(last.saturating_sub(first));
    let mut holder = scene.holder;
    let mut shared = scene.shared;
    for tick in &scene.device[first.min(last)..last] {
        let Some(inside) = tick.during.overlap(during) else { continue };
        while holder.first().is_some_and(|h| h.during.end() <= tick.during.start()) {
            holder = &holder[1..];
        }
        while shared.first().is_some_and(|s| s.end() <= inside.start()) {
            shared = &shared[1..];
        }
        let beside = || holder.iter().take_while(|h| h.during.start() < tick.during.end());
        let is_shared = shared.first().is_some_and(|s| s.start() < inside.end());
        let mut quietness = beside().map(|h| of_processes(h, policy)).max().unwrap_or(Quietness::Quiet);
        let device = of_device(tick, scene, policy);
        let mut saw_use = tick.sm_active.is_some();
        if !is_shared || (device == Quietness::Quiet && saw_use) {
            quietness = quietness.max(device);
        } else {
            // What the device does may be another's: only the holder's own part of its busy time speaks of the holder.
            let own = beside().filter_map(|h| h.sm_active).max();
            saw_use = own.is_some();
            quietness = quietness.max(own.map_or(Quietness::Quiet, |own| of_percent(own, policy.sm_active)));
        }
        if tick.suspect {
            quietness = quietness.max(Quietness::Loud);
        }
        if saw_use || quietness != Quietness::Quiet {
            judged.push(Judged { during: inside, quietness, may_be_idle: saw_use && !tick.suspect });
        }
    }
    judged
}

/// What the device says.
fn of_device(tick: &DeviceTick, scene: &Scene<'_>, policy: &IdlePolicy) -> Quietness {
    let power = tick.power.zip(scene.power).map(|(power, range)| {
        // Height and floor are both in thousandths of a percent of the range.
        level(i128::from(range.height(power)), i128::from(policy.power.thousandths()))
    });
    let media = tick.media_active.map(|media| match media.thousandths() {
        0 => Quietness::Quiet,
        _ => Quietness::Loud,
    });
    let signals = [
        tick.sm_active.map(|sm| of_percent(sm, policy.sm_active)),
        tick.mem_active.map(|mem| of_percent(mem, policy.mem_active)),
        media,
        tick.link_bytes.map(|bytes| of_rate(bytes, tick.during, policy.link_bytes_per_s)),
        power,
    ];
    signals.into_iter().flatten().max().unwrap_or(Quietness::Quiet)
}

/// What the holder's processes say.
fn of_processes(tick: &HolderTick, policy: &IdlePolicy) -> Quietness {
    // A core gives as many milliseconds of processor time as pass.
    let cpu = tick.cpu_ms.map(|ms| {
        let core = i128::from(tick.during.length_ms()) * i128::from(policy.cpu.thousandths());
        level(i128::from(ms) * i128::from(Percent::WHOLE.thousandths()), core)
    });
    let attended = tick.is_attended.and_then(|is_attended| is_attended.then_some(Quietness::Attended));
    let io = tick.io_bytes.map(|bytes| of_rate(bytes, tick.during, policy.io_bytes_per_s));
    [cpu, io, attended].into_iter().flatten().max().unwrap_or(Quietness::Quiet)
}

fn of_percent(value: Percent, floor: Percent) -> Quietness {
    level(i128::from(value.thousandths()), i128::from(floor.thousandths()))
}

fn of_rate(bytes: i64, during: Interval, floor_per_s: i64) -> Quietness {
    level(i128::from(bytes) * 1000, i128::from(floor_per_s) * i128::from(during.length_ms()))
}

fn level(value: i128, floor: i128) -> Quietness {
    if value < floor {
        Quietness::Quiet
    } else if value <= 2 * floor {
        Quietness::Between
    } else {
        Quietness::Loud
    }
}
