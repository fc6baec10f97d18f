//! Three trials of a shared card: what a victim felt of an aggressor, and whether that is little enough.
//!
//! | trial | what the aggressor does | it passes when |
//! |---|---|---|
//! | memory | asks for more memory than its share | it doesn't get it, and the victim goes on |
//! | compute | works as hard as it can | the victim's latency spreads no more than it may, and is no slower than alone by more than that |
//! | crash | ends badly, or is killed | the victim goes on, and the card has no fault of its own |
//!
//! The spread of latencies is (p95 − p50) ÷ p50. A neighbour that slows each request alike leaves the spread as it was, so the median beside the
//! aggressor is held against the median alone as well. What wasn't seen proves nothing: such a trial is neither passed nor failed.
//!
//! Start at [`judge_memory`], [`judge_compute`] and [`judge_crash`]. Does not: start or end anything, look at a card, read what commands print.

use super::{FaultReach, reach_of};
use std::fmt;

/// Fewer latencies make no 95th percentile: below that it is the slowest one.
pub const LEAST_LATENCIES: usize = 20;

/// Memory over what is allowed that a context takes and nobody asked for. Unit: thousandths of a percent.
const MEMORY_OVER: u64 = 5_000;
const WHOLE: u64 = 100_000;

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trial {
    /// More memory than its share is asked for.
    Memory,
    /// The processors are contended for.
    Compute,
    /// The neighbour ends badly.
    Crash,
}

impl Trial {
    /// All of them, in the order in which they are run: what may take the card down comes last.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Compute, Self::Crash];

    /// Its name in options and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Compute => "compute",
            Self::Crash => "crash",
        }
    }

    /// The trial of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|trial| trial.name() == name)
    }
}

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The two were kept apart.
    Passed,
    /// They weren't.
    Failed,
    /// Nothing follows from what was seen.
    NotShown,
}

impl Verdict {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotShown => "not shown",
        }
    }
}

/// A trial with its answer and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Which.
    pub trial: Trial,
    /// What came of it.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub words: String,
    /// The victim's latencies without the aggressor; none of a trial that doesn't need them, or where there were too few.
    pub alone: Option<Latency>,
    /// The same beside it.
    pub beside: Option<Latency>,
}

/// How latencies lie. Percentiles by nearest rank: the least value that so many percent don't exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// How many.
    pub count: usize,
    /// The median. Unit: microseconds.
    pub p50_us: u64,
    /// The 95th percentile. Unit: microseconds.
    pub p95_us: u64,
}

impl Latency {
    /// Of at least [`LEAST_LATENCIES`]; none of fewer, or where the median is nothing. Unit: microseconds. Shape: any order.
    pub fn of(latencies_us: &[u64]) -> Option<Self> {
        let mut sorted = latencies_us.to_vec();
        sorted.sort_unstable();
        let at = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100) - 1];
        let is_enough = sorted.len() >= LEAST_LATENCIES;
        let latency = is_enough.then(|| Self { count: sorted.len(), p50_us: at(50), p95_us: at(95) })?;
        (latency.p50_us > 0).then_some(latency)
    }

    /// (p95 − p50) ÷ p50. Unit: thousandths of a percent, rounded down.
    pub fn spread(self) -> u64 {
        part(self.p95_us - self.p50_us, self.p50_us)
    }

    /// By how much the median is above that of `alone`; nothing where it is below. Unit: thousandths of a percent, rounded down.
    pub fn slower_than(self, alone: Self) -> u64 {
        part(self.p50_us.saturating_sub(alone.p50_us), alone.p50_us)
    }
}

fn part(of: u64, whole: u64) -> u64 {
    let part = u128::from(of) * u128::from(WHOLE) / u128::from(whole);
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// Thousandths of a percent, for people: `4.2 %`.
struct Shown(u64);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} %", self.0 / 1000, self.0 % 1000 / 100)
    }
}

/// How a command was when its time was over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At work.
    Running,
    /// It had ended by itself, and well.
    Done,
    /// It had ended badly.
    Failed {
        /// How: its exit code, or the signal that ended it.
        how: String,
    },
}

/// What was seen of the victim beside an aggressor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VictimSeen {
    /// How it was at the end.
    pub ending: Ending,
    /// Latencies that it told after the aggressor had begun, in a crash after that one's end.
    pub told_after: usize,
}

impl VictimSeen {
    /// What is wrong with it; none when it goes on.
    fn harm(&self) -> Option<String> {
        match (&self.ending, self.told_after) {
            (Ending::Failed { how }, _) => Some(format!("the victim ended with it: {how}")),
            (Ending::Running, 0) => Some("the victim answered no more".to_owned()),
            (Ending::Running | Ending::Done, _) => None,
        }
    }
}

/// What a memory trial saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryTrial {
    /// What is the aggressor's. Unit: MiB.
    pub allowed_mib: u64,
    /// What it says that it asked for. Unit: MiB.
    pub asked_mib: Option<u64>,
    /// What it says that it got. Unit: MiB.
    pub got_mib: Option<u64>,
    /// The most that the card was seen to give it. Unit: MiB.
    pub seen_mib: Option<u64>,
    /// Whether it says that it was refused, or ended badly as one that was.
    pub is_refused: bool,
    /// The victim.
    pub victim: VictimSeen,
}

/// What a crash saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashTrial {
    /// How the aggressor ended; none where it ended well, which is no crash.
    pub crash: Option<String>,
    /// Xids of the card from its beginning on.
    pub xids: Vec<u32>,
    /// The victim.
    pub victim: VictimSeen,
}

/// Whether more than a share can be had, and what that does to the victim.
pub fn judge_memory(trial: &MemoryTrial) -> Judged {
    let MemoryTrial { allowed_mib, asked_mib, got_mib, seen_mib, is_refused, victim } = trial;
    let had = [*got_mib, *seen_mib].into_iter().flatten().max();
    let is_over =
        |mib: u64| u128::from(mib) * u128::from(WHOLE) > u128::from(*allowed_mib) * u128::from(WHOLE + MEMORY_OVER);
    let by = match (got_mib, seen_mib) {
        (got, Some(seen)) if got.is_none_or(|got| got < *seen) => "as its card shows",
        _ => "by its own word",
    };
    let (verdict, words) = match (victim.harm(), had.filter(|had| is_over(*had)), asked_mib) {
        (Some(harm), ..) => (Verdict::Failed, harm),
        (None, Some(had), _) => {
            (Verdict::Failed, format!("the aggressor had {had} MiB, {by}, and {allowed_mib} MiB is its share"))
        }
        (None, None, None) => (Verdict::NotShown, "the aggressor never said what it asked for: asked_mib N".to_owned()),
        (None, None, Some(asked)) if !is_over(*asked) => (
            Verdict::NotShown,
            format!("it asked for {asked} MiB, which is no more than its share of {allowed_mib} MiB"),
        ),
        (None, None, Some(asked)) if *is_refused || had.is_some() => {
            let most = had.map(|had| format!(" and had at most {had}")).unwrap_or_default();
            (Verdict::Passed, format!("it asked for {asked} MiB of a share of {allowed_mib}{most}; the victim went on"))
        }
        (None, None, Some(asked)) => {
            (Verdict::NotShown, format!("it asked for {asked} MiB, and nothing says what it got: got_mib N or refused"))
        }
    };
    Judged { trial: Trial::Memory, verdict, words, alone: None, beside: None }
}

/// Whether a busy neighbour is felt. `limit`: how far latencies may spread, and by how much the median may rise. Unit: thousandths of a percent.
pub fn judge_compute(alone_us: &[u64], beside_us: &[u64], limit: u64, victim: &VictimSeen) -> Judged {
    let (alone, beside) = (Latency::of(alone_us), Latency::of(beside_us));
    let limits = Shown(limit);
    let (verdict, words) = match (victim.harm(), alone, beside) {
        (Some(harm), ..) => (Verdict::Failed, harm),
        (None, None, _) | (None, _, None) => (
            Verdict::NotShown,
            format!(
                "the victim told {} latencies alone and {} beside the aggressor: at least {LEAST_LATENCIES} of each are needed",
                alone_us.len(),
                beside_us.len()
            ),
        ),
        (None, Some(alone), Some(beside)) => {
            let (own, spread, slower) = (alone.spread(), beside.spread(), beside.slower_than(alone));
            let is_felt = spread > limit || slower > limit;
            let figures = format!(
                "latency spreads {} alone and {} beside the aggressor, the median is {} slower; {limits} is allowed",
                Shown(own),
                Shown(spread),
                Shown(slower)
            );
            match (own > limit, is_felt) {
                // Its own unrest would hide or feign the neighbour's.
                (true, _) if slower <= limit => {
                    (Verdict::NotShown, format!("{figures}: the victim spreads too much by itself for this to be told"))
                }
                (_, true) => (Verdict::Failed, figures),
                (_, false) => (Verdict::Passed, figures),
            }
        }
    };
    Judged { trial: Trial::Compute, verdict, words, alone, beside }
}

/// Whether a neighbour's end is felt.
pub fn judge_crash(trial: &CrashTrial) -> Judged {
    let of_card: Vec<String> =
        trial.xids.iter().filter(|xid| reach_of(**xid) == FaultReach::Card).map(u32::to_string).collect();
    let xids = match &trial.xids[..] {
        [] => String::new(),
        xids => format!(", Xid {}", xids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    };
    let (verdict, words) = match (&trial.crash, trial.victim.harm()) {
        (None, _) => (Verdict::NotShown, "the aggressor ended well by itself: nothing crashed".to_owned()),
        (Some(crash), Some(harm)) => (Verdict::Failed, format!("the aggressor {crash}{xids}: {harm}")),
        (Some(crash), None) if !of_card.is_empty() => (
            Verdict::Failed,
            format!("the aggressor {crash}: the card has a fault of its own since, Xid {}", of_card.join(", ")),
        ),
        (Some(crash), None) => (
            Verdict::Passed,
            format!("the aggressor {crash}{xids}: the victim went on, {} latencies after it", trial.victim.told_after),
        ),
    };
    Judged { trial: Trial::Crash, verdict, words, alone: None, beside: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes_on() -> VictimSeen {
        VictimSeen { ending: Ending::Running, told_after: 30 }
    }

    /// 1 to 40 ms, shuffled. By hand, nearest rank: p50 is the 20th of 40, p95 the 38th; (38 − 20) ÷ 20 = 90 %.
    #[test]
    fn percentiles_are_by_nearest_rank_and_order_does_not_matter() {
        let mut latencies: Vec<u64> = (1..=40).map(|ms| ms * 1000).collect();
        latencies.reverse();
        latencies.swap(3, 30);
        let latency = Latency::of(&latencies).unwrap();
        assert_eq!((latency.count, latency.p50_us, latency.p95_us), (40, 20_000, 38_000));
        assert_eq!(latency.spread(), 90_000);
        // 20 values: p95 is the 19th, not the slowest. 19 make none, nor do zeros.
        let mut one_slow = vec![10_000; 19];
        one_slow.push(90_000);
        assert_eq!(Latency::of(&one_slow).unwrap().spread(), 0);
        assert_eq!(Latency::of(&one_slow[1..]), None);
        assert_eq!(Latency::of(&[0; 40]), None);
    }

    /// 38 of 40 at 10 ms and two slower leave p95 (the 38th) at 10; three slower make it the slower value. By hand: 10.5 ÷ 10 is 5 % and allowed,
    /// 10.501 ÷ 10 is 5.01 % and not.
    #[test]
    fn five_percent_is_allowed_and_a_hundredth_more_is_not() {
        let with = |slow_us: u64| [vec![10_000; 37], vec![slow_us; 3]].concat();
        let alone = vec![10_000; 40];
        let judged = |slow_us| judge_compute(&alone, &with(slow_us), 5_000, &goes_on());
        assert_eq!(judged(10_500).verdict, Verdict::Passed);
        assert_eq!(judged(10_500).beside.unwrap().spread(), 5_000);
        assert_eq!(judged(10_501).verdict, Verdict::Failed);
    }

    /// Each request takes 12 ms instead of 10: it spreads by nothing and is 20 % slower.
    #[test]
    fn a_neighbour_that_slows_all_alike_is_felt_though_nothing_spreads() {
        let judged = judge_compute(&[10_000; 40], &[12_000; 40], 5_000, &goes_on());
        assert_eq!(judged.verdict, Verdict::Failed);
        assert_eq!(
            judged.words,
            "latency spreads 0.0 % alone and 0.0 % beside the aggressor, the median is 20.0 % slower; 5.0 % is allowed"
        );
    }

    /// A victim that spreads 90 % by itself tells nothing of its neighbour, unless it is slower as well.
    #[test]
    fn an_unsteady_victim_shows_nothing() {
        let unsteady: Vec<u64> = (1..=40).map(|ms| ms * 1000).collect();
        assert_eq!(judge_compute(&unsteady, &unsteady, 5_000, &goes_on()).verdict, Verdict::NotShown);
        let twice: Vec<u64> = unsteady.iter().map(|us| us * 2).collect();
        assert_eq!(judge_compute(&unsteady, &twice, 5_000, &goes_on()).verdict, Verdict::Failed);
        assert_eq!(judge_compute(&unsteady, &[], 5_000, &goes_on()).verdict, Verdict::NotShown);
    }

    fn memory() -> MemoryTrial {
        let victim = goes_on();
        MemoryTrial {
            allowed_mib: 40_000,
            asked_mib: Some(60_000),
            got_mib: None,
            seen_mib: None,
            is_refused: true,
            victim,
        }
    }

    /// By hand: 5 % over 40,000 MiB is 42,000; that is a context's, one more isn't.
    #[test]
    fn memory_over_the_share_is_refused_or_the_trial_fails() {
        assert_eq!(judge_memory(&memory()).verdict, Verdict::Passed);
        for (had, verdict) in [(42_000, Verdict::Passed), (42_001, Verdict::Failed)] {
            assert_eq!(judge_memory(&MemoryTrial { seen_mib: Some(had), ..memory() }).verdict, verdict, "{had}");
            assert_eq!(judge_memory(&MemoryTrial { got_mib: Some(had), ..memory() }).verdict, verdict, "{had}");
        }
        // What the card shows counts, whatever the aggressor says.
        let lied = judge_memory(&MemoryTrial { got_mib: Some(10), seen_mib: Some(60_000), ..memory() });
        assert_eq!(lied.words, "the aggressor had 60000 MiB, as its card shows, and 40000 MiB is its share");
    }

    #[test]
    fn what_was_not_asked_for_or_not_seen_shows_nothing() {
        for trial in [
            MemoryTrial { asked_mib: None, ..memory() },
            MemoryTrial { asked_mib: Some(40_000), ..memory() },
            MemoryTrial { is_refused: false, ..memory() },
        ] {
            assert_eq!(judge_memory(&trial).verdict, Verdict::NotShown, "{trial:?}");
        }
    }

    #[test]
    fn a_victim_that_is_gone_or_silent_fails_every_trial() {
        let gone = VictimSeen { ending: Ending::Failed { how: "exit code 1".to_owned() }, told_after: 3 };
        let silent = VictimSeen { ending: Ending::Running, told_after: 0 };
        for victim in [gone, silent] {
            assert_eq!(judge_memory(&MemoryTrial { victim: victim.clone(), ..memory() }).verdict, Verdict::Failed);
            assert_eq!(judge_compute(&[10_000; 40], &[10_000; 40], 5_000, &victim).verdict, Verdict::Failed);
            let crash = CrashTrial { crash: Some("was killed".to_owned()), xids: vec![], victim };
            assert_eq!(judge_crash(&crash).verdict, Verdict::Failed);
        }
    }

    /// Xid 43 is a process's, 79 the card's own (NVIDIA's catalogue).
    #[test]
    fn a_crash_that_leaves_the_victim_and_the_card_alone_passes() {
        let crash = |xids: &[u32]| CrashTrial {
            crash: Some("was killed".to_owned()),
            xids: xids.to_vec(),
            victim: VictimSeen { ending: Ending::Done, told_after: 0 },
        };
        assert_eq!(judge_crash(&crash(&[])).verdict, Verdict::Passed);
        assert_eq!(judge_crash(&crash(&[43])).verdict, Verdict::Passed);
        assert_eq!(judge_crash(&crash(&[43, 79])).verdict, Verdict::Failed);
        assert_eq!(judge_crash(&CrashTrial { crash: None, ..crash(&[]) }).verdict, Verdict::NotShown);
    }
}
