//! What one look at a card, and at a job's processes, says.

use super::{Check, Floors};
use cardhour_domain::{Percent, Reading};
use serde::{Deserialize, Serialize};

/// What a card said over one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardReading {
    /// Multiprocessors' activity.
    pub sm_active: Reading<Percent>,
    /// The duty cycle: how much of the time anything ran.
    pub duty_cycle: Reading<Percent>,
    /// Memory bandwidth's activity: memory that is touched.
    pub memory_active: Reading<Percent>,
    /// The busiest of encoder, decoder, JPEG and optical flow.
    pub media_active: Reading<Percent>,
    /// Processes that draw.
    pub graphics_processes: Reading<u32>,
    /// NVLink and PCIe together. Unit: bytes a second.
    pub link_bytes_per_s: Reading<u64>,
    /// Power above the card's own idle level, as a part of its range.
    pub power_above_idle: Reading<Percent>,
    /// Memory that is taken, touched or not. It decides no idleness, only how long a lease is.
    pub memory_used: Reading<Percent>,
    /// The part of the multiprocessors' activity that is this job's own, for a card it shares with others.
    pub own_sm_active: Reading<Percent>,
}

/// Whether somebody is there: a terminal, an ssh session, an editor, a notebook's kernel that runs a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Somebody is.
    Attended,
    /// Nobody is.
    Unattended,
}

/// What a job's processes did over one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessReading {
    /// Processor time. Unit: thousandths of a core.
    pub cpu_milli_cores: Check<u32>,
    /// Disk and network. Unit: bytes a second.
    pub io_bytes_per_s: Check<u64>,
    /// Whether a terminal, ssh session or editor is in use.
    pub terminal: Check<Presence>,
    /// Whether a notebook's kernel runs a cell. That a browser is open says nothing, and that it is closed neither.
    pub kernel: Check<Presence>,
}

/// What a look says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All that was seen is under its floor.
    Quiet,
    /// Something isn't, and nothing is above twice its floor.
    Between,
    /// Something is above twice its floor.
    Loud,
    /// Somebody is there.
    Attended,
    /// Signals contradict each other: never idle, and no work either.
    Contradicting,
    /// What would have to be seen wasn't.
    Unseen,
}

/// What a card says. `is_shared`: others held a part of it too, so that what it does may be theirs.
///
/// Whether its processors did anything has to be known. A processors' counter at rest beside a loud duty cycle is a broken counter (C04); power
/// alone is no work (C21): such a sample contradicts itself.
pub fn judge_card(reading: &CardReading, is_shared: bool, floors: &Floors) -> Verdict {
    let percent = |value: Reading<Percent>, floor: Percent| {
        value.seen().map(|value| level(value.thousandths().into(), floor.thousandths().into()))
    };
    let sm = percent(reading.sm_active, floors.sm_active);
    let duty = percent(reading.duty_cycle, floors.sm_active);
    let some = |is_some: bool| if is_some { Verdict::Loud } else { Verdict::Quiet };
    let others = [
        percent(reading.memory_active, floors.memory_active),
        reading.media_active.seen().map(|media| some(media.thousandths() > 0)),
        reading.graphics_processes.seen().map(|processes| some(processes > 0)),
        reading.link_bytes_per_s.seen().map(|bytes| level(bytes.into(), floors.link_bytes_per_s.into())),
    ];
    let Some(in_use) = sm.max(duty) else {
        // Without its processors nothing else makes a card idle; and what moves is work.
        let loudest = others.into_iter().flatten().max();
        return if loudest == Some(Verdict::Loud) && !is_shared { Verdict::Loud } else { Verdict::Unseen };
    };
    let power = percent(reading.power_above_idle, floors.power_above_idle).unwrap_or(Verdict::Quiet);
    let moved = others.into_iter().flatten().max().unwrap_or(Verdict::Quiet);
    if is_shared && in_use.max(moved).max(power) != Verdict::Quiet {
        return percent(reading.own_sm_active, floors.sm_active).unwrap_or(Verdict::Unseen);
    }
    let disagree =
        matches!((sm, duty), (Some(Verdict::Quiet), Some(Verdict::Loud)) | (Some(Verdict::Loud), Some(Verdict::Quiet)));
    if disagree || (in_use.max(moved) == Verdict::Quiet && power != Verdict::Quiet) {
        return Verdict::Contradicting;
    }
    in_use.max(moved)
}

/// What a job's processes say. A check that isn't there for this kind of job says nothing; one that failed says that nobody knows.
pub fn judge_processes(reading: &ProcessReading, floors: &Floors) -> Verdict {
    let cpu = reading.cpu_milli_cores.map(|cores| level(cores.into(), floors.cpu_milli_cores.into()));
    let io = reading.io_bytes_per_s.map(|bytes| level(bytes.into(), floors.io_bytes_per_s.into()));
    let presence = |presence: Check<Presence>| {
        presence.map(|presence| match presence {
            Presence::Attended => Verdict::Attended,
            Presence::Unattended => Verdict::Quiet,
        })
    };
    let checks = [cpu, io, presence(reading.terminal), presence(reading.kernel)];
    let loudest = checks.iter().filter_map(|check| check.seen()).max().unwrap_or(Verdict::Quiet);
    let has_failed = checks.iter().any(|check| matches!(check, Check::Failed(_)));
    match loudest {
        Verdict::Loud | Verdict::Attended => loudest,
        Verdict::Quiet | Verdict::Between | Verdict::Contradicting | Verdict::Unseen if has_failed => Verdict::Unseen,
        Verdict::Quiet | Verdict::Between | Verdict::Contradicting | Verdict::Unseen => loudest,
    }
}

fn level(value: i128, floor: i128) -> Verdict {
    if value < floor {
        Verdict::Quiet
    } else if value <= 2 * floor {
        Verdict::Between
    } else {
        Verdict::Loud
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::fixture::{percent, quiet_card, quiet_processes};
    use cardhour_domain::Gap;

    fn judge(change: impl FnOnce(&mut CardReading)) -> Verdict {
        let mut reading = quiet_card();
        change(&mut reading);
        judge_card(&reading, false, &Floors::default())
    }

    #[test]
    fn each_signal_alone_keeps_a_card_from_being_idle() {
        assert_eq!(judge(|_| ()), Verdict::Quiet);
        assert_eq!(judge(|r| r.sm_active = Reading::Seen(percent(2))), Verdict::Between);
        assert_eq!(
            judge(|r| (r.sm_active, r.duty_cycle) = (Reading::Seen(percent(9)), Reading::Seen(percent(9)))),
            Verdict::Loud
        );
        assert_eq!(judge(|r| r.memory_active = Reading::Seen(percent(5))), Verdict::Loud);
        assert_eq!(judge(|r| r.media_active = Reading::Seen(percent(1))), Verdict::Loud);
        assert_eq!(judge(|r| r.graphics_processes = Reading::Seen(1)), Verdict::Loud);
        assert_eq!(judge(|r| r.link_bytes_per_s = Reading::Seen(60_000_000)), Verdict::Between);
        assert_eq!(judge(|r| r.link_bytes_per_s = Reading::Seen(100_000_001)), Verdict::Loud);
    }

    /// C04: after Xid 31 the engine's counter stays at 0 while the duty cycle says 100 %. C21: power without anything else.
    #[test]
    fn signals_that_contradict_each_other_are_neither_idle_nor_work() {
        assert_eq!(judge(|r| r.duty_cycle = Reading::Seen(percent(100))), Verdict::Contradicting);
        assert_eq!(judge(|r| r.power_above_idle = Reading::Seen(percent(30))), Verdict::Contradicting);
    }

    #[test]
    fn a_card_whose_processors_were_not_seen_is_not_idle() {
        let none = Reading::Missing(Gap::DriverError);
        assert_eq!(judge(|r| (r.sm_active, r.duty_cycle) = (none, none)), Verdict::Unseen);
        assert_eq!(judge(|r| r.sm_active = none), Verdict::Quiet);
        let moves = |r: &mut CardReading| {
            (r.sm_active, r.duty_cycle) = (none, none);
            r.memory_active = Reading::Seen(percent(50));
        };
        assert_eq!(judge(moves), Verdict::Loud);
    }

    #[test]
    fn on_a_shared_card_only_the_jobs_own_part_speaks_of_it() {
        let mut reading = quiet_card();
        (reading.sm_active, reading.duty_cycle) = (Reading::Seen(percent(80)), Reading::Seen(percent(90)));
        let floors = Floors::default();
        assert_eq!(judge_card(&reading, true, &floors), Verdict::Unseen);
        reading.own_sm_active = Reading::Seen(percent(0));
        assert_eq!(judge_card(&reading, true, &floors), Verdict::Quiet);
        reading.own_sm_active = Reading::Seen(percent(40));
        assert_eq!(judge_card(&reading, true, &floors), Verdict::Loud);
        assert_eq!(judge_card(&quiet_card(), true, &floors), Verdict::Quiet);
    }

    #[test]
    fn a_check_that_failed_is_not_a_quiet_one() {
        let floors = Floors::default();
        let mut reading = quiet_processes();
        assert_eq!(judge_processes(&reading, &floors), Verdict::Quiet);
        reading.kernel = Check::Failed(Gap::NoPermission);
        assert_eq!(judge_processes(&reading, &floors), Verdict::Unseen);
        reading.cpu_milli_cores = Check::Seen(900);
        assert_eq!(judge_processes(&reading, &floors), Verdict::Loud);
        reading.kernel = Check::NotThere;
        reading.cpu_milli_cores = Check::NotThere;
        assert_eq!(judge_processes(&reading, &floors), Verdict::Quiet);
    }
}
