//! The floors, times and limits of the rule.

use crate::work_class::WorkClass;
use cardhour_domain::Percent;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// The floors of the signals. [`Default`] has those of design §4.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floors {
    /// Multiprocessors' activity, or the duty cycle.
    pub sm_active: Percent,
    /// Memory bandwidth's activity.
    pub memory_active: Percent,
    /// NVLink and PCIe together. Unit: bytes a second.
    pub link_bytes_per_s: u64,
    /// Power above the card's own idle level, as a part of its range.
    pub power_above_idle: Percent,
    /// Processor time. Unit: thousandths of a core.
    pub cpu_milli_cores: u32,
    /// What the processes read and write. Unit: bytes a second.
    pub io_bytes_per_s: u64,
}

/// What comes of a job that stays idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// It is warned, and its cards are taken back.
    AfterGrace,
    /// It is told of, and nothing else: what answers requests has to be there when they come.
    AdviceOnly,
}

/// What is done when the time for a checkpoint is over and none was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnseenCheckpoint {
    /// The job is stopped; that none was seen is on record.
    StopAnyway,
    /// It keeps its cards; the operator is told.
    KeepAndAlert,
}

/// The times of one class of work. Unit of all: milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassPolicy {
    /// From its start, how long a job isn't judged.
    pub startup_grace_ms: i64,
    /// The same for one that hasn't used its cards yet: it sets up, loads a model, waits for others.
    pub first_use_limit_ms: i64,
    /// How long it must have been idle to be warned; not less than the window.
    pub lease_ms: i64,
    /// The same while it holds memory: a loaded model is dear to load again. Not known counts as loaded.
    pub loaded_lease_ms: i64,
    /// From the delivered warning to the next step.
    pub grace_ms: i64,
    /// How long a checkpoint is waited for.
    pub checkpoint_wait_ms: i64,
    /// What comes of it.
    pub reclaim: Reclaim,
}

/// How often and how long an owner may extend a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionLimits {
    /// Times a job.
    pub most: u32,
    /// Each at most. Unit: milliseconds.
    pub longest_ms: i64,
    /// All of a job together. Unit: milliseconds.
    pub total_ms: i64,
}

/// The whole rule. [`Default`] has what design §4.4 and §10 say, and the longest start-up graces that the field asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasePolicy {
    /// The floors.
    pub floors: Floors,
    /// How long all must be under them. Unit: milliseconds, above zero.
    pub window_ms: i64,
    /// How much of the window must have been seen.
    pub coverage: Percent,
    /// How long of a window something must be above twice its floor to end the idle time. Unit: milliseconds, above zero.
    pub ends_after_ms: i64,
    /// After each time that a job was suspected and wasn't idle after all, its lease is a window longer, so often at most.
    pub most_withdrawn: u32,
    /// After this long without such a time they are forgotten. Unit: milliseconds.
    pub forgets_withdrawn_ms: i64,
    /// From how much of a card's memory on a model counts as loaded.
    pub loaded_from: Percent,
    /// Classes that have times of their own; what isn't here, and what has no class, has those of [`Self::other`].
    pub classes: Vec<(WorkClass, ClassPolicy)>,
    /// The times of all other work.
    pub other: ClassPolicy,
    /// Limits of extensions.
    pub extensions: ExtensionLimits,
    /// After a warning failed, when it is tried again. Unit: milliseconds.
    pub retry_warning_ms: i64,
    /// What is done without a checkpoint.
    pub unseen_checkpoint: UnseenCheckpoint,
    /// How long after its instant a step may still be carried out: what was seen then may be different later. Unit: milliseconds.
    pub act_within_ms: i64,
    /// After a stop, how long the devices may stay held before the operator is told. Unit: milliseconds.
    pub release_limit_ms: i64,
    /// How long a job's own word that it sets up, loads or writes protects it, from the first time on that no card of it was seen at work. Unit:
    /// milliseconds.
    pub reported_limit_ms: i64,
    /// From how much of the cards that were seen of late being unseen at once on nothing goes forward. A card that never had telemetry doesn't count.
    pub blind_from: Percent,
    /// How much of all watched jobs may be asked for a checkpoint or stopped in one round; one always may.
    pub most_at_once: Percent,
}

impl Default for LeasePolicy {
    fn default() -> Self {
        let training = ClassPolicy {
            startup_grace_ms: HOUR,
            // A reaper that judged sooner killed jobs that were still loading (NeMo-RL#1577 settled on two hours).
            first_use_limit_ms: 2 * HOUR,
            lease_ms: 30 * MINUTE,
            loaded_lease_ms: 2 * HOUR,
            grace_ms: 30 * MINUTE,
            // 300 s were too few: of six checkpoints none was saved (R17).
            checkpoint_wait_ms: 15 * MINUTE,
            reclaim: Reclaim::AfterGrace,
        };
        let development = ClassPolicy {
            startup_grace_ms: 15 * MINUTE,
            first_use_limit_ms: HOUR,
            // Its owner may be away from the desk for a while.
            grace_ms: HOUR,
            checkpoint_wait_ms: 5 * MINUTE,
            ..training
        };
        let inference = ClassPolicy { reclaim: Reclaim::AdviceOnly, ..training };
        Self {
            floors: Floors::default(),
            window_ms: 30 * MINUTE,
            coverage: percent(90),
            ends_after_ms: 2 * MINUTE,
            most_withdrawn: 8,
            forgets_withdrawn_ms: 24 * HOUR,
            loaded_from: percent(20),
            classes: vec![(WorkClass::Inference, inference), (WorkClass::Development, development)],
            other: training,
            extensions: ExtensionLimits { most: 3, longest_ms: 8 * HOUR, total_ms: 24 * HOUR },
            retry_warning_ms: 15 * MINUTE,
            unseen_checkpoint: UnseenCheckpoint::StopAnyway,
            act_within_ms: 2 * MINUTE,
            release_limit_ms: 15 * MINUTE,
            reported_limit_ms: 2 * HOUR,
            blind_from: percent(20),
            most_at_once: percent(10),
        }
    }
}

impl Default for Floors {
    fn default() -> Self {
        Self {
            sm_active: percent(2),
            memory_active: percent(2),
            link_bytes_per_s: 50_000_000,
            power_above_idle: percent(10),
            cpu_milli_cores: 50,
            io_bytes_per_s: 1_000_000,
        }
    }
}

impl LeasePolicy {
    /// The times of a class; of all other work where it has none.
    pub fn of_class(&self, class: Option<WorkClass>) -> ClassPolicy {
        let own = self.classes.iter().find(|(of, _)| Some(*of) == class);
        own.map_or(self.other, |(_, times)| *times)
    }
}

/// What is wrong with a policy: with any of these, work could be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum LeasePolicyFault {
    /// Nothing would be judged, or everything at once.
    #[error("window_ms must be above zero")]
    NoWindow,
    /// Less than half of a window seen says nothing of it.
    #[error("coverage must be 50 % or more")]
    CoverageTooLow,
    /// Nothing would end an idle time.
    #[error("ends_after_ms must be above zero and no longer than the window")]
    NeverEnds,
    /// A job would be warned before it was idle over a window.
    #[error("lease_ms of {0} must be no shorter than the window, and loaded_lease_ms no shorter than that")]
    LeaseTooShort(&'static str),
    /// Nobody could answer a warning.
    #[error("grace_ms of {0} must be above zero")]
    NoGrace(&'static str),
    /// A time that runs backwards.
    #[error("{0} has a time below zero")]
    BelowZero(&'static str),
    /// A blind round would go on as if it saw.
    #[error("blind_from must be above zero")]
    NeverBlind,
}

impl LeasePolicy {
    /// All that is wrong with it. [`super::step`] is safe with a policy that has none.
    pub fn faults(&self) -> Vec<LeasePolicyFault> {
        let mut faults = Vec::new();
        let mut hold = |is_right: bool, fault| {
            if !is_right {
                faults.push(fault);
            }
        };
        hold(self.window_ms > 0, LeasePolicyFault::NoWindow);
        hold(self.coverage >= percent(50), LeasePolicyFault::CoverageTooLow);
        hold((1..=self.window_ms).contains(&self.ends_after_ms), LeasePolicyFault::NeverEnds);
        hold(self.blind_from > percent(0), LeasePolicyFault::NeverBlind);
        let others = [self.act_within_ms, self.release_limit_ms, self.retry_warning_ms, self.reported_limit_ms];
        hold(
            others.into_iter().all(|ms| ms >= 0) && self.forgets_withdrawn_ms >= 0,
            LeasePolicyFault::BelowZero("the policy"),
        );
        let classes = self.classes.iter().map(|(class, times)| (class.name(), times));
        for (name, times) in classes.chain([("other work", &self.other)]) {
            let is_long = times.lease_ms >= self.window_ms && times.loaded_lease_ms >= times.lease_ms;
            hold(is_long, LeasePolicyFault::LeaseTooShort(name));
            hold(times.grace_ms > 0, LeasePolicyFault::NoGrace(name));
            let all = [times.startup_grace_ms, times.first_use_limit_ms, times.checkpoint_wait_ms];
            hold(all.into_iter().all(|ms| ms >= 0), LeasePolicyFault::BelowZero(name));
        }
        faults
    }
}

fn percent(percent: i32) -> Percent {
    Percent::from_thousandths(percent * 1000).expect("from 0 to 100")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_by_which_work_could_be_taken_is_named_with_all_its_faults() {
        assert_eq!(LeasePolicy::default().faults(), []);
        let mut policy = LeasePolicy { coverage: percent(0), ends_after_ms: 0, ..LeasePolicy::default() };
        policy.other.grace_ms = 0;
        policy.classes[1].1.lease_ms = MINUTE;
        let said: Vec<_> = policy.faults().iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "coverage must be 50 % or more",
                "ends_after_ms must be above zero and no longer than the window",
                "lease_ms of development must be no shorter than the window, and loaded_lease_ms no shorter than that",
                "grace_ms of other work must be above zero",
            ]
        );
    }

    /// Design §4.4.
    #[test]
    fn the_times_of_the_design_are_the_defaults() {
        let policy = LeasePolicy::default();
        let minutes = |class| policy.of_class(class).startup_grace_ms / MINUTE;
        assert_eq!(minutes(Some(WorkClass::Development)), 15);
        assert_eq!(minutes(Some(WorkClass::Training)), 60);
        assert_eq!(minutes(None), 60);
        assert_eq!(policy.of_class(Some(WorkClass::Inference)).reclaim, Reclaim::AdviceOnly);
        for class in WorkClass::ALL {
            let times = policy.of_class(Some(class));
            assert!(times.lease_ms >= policy.window_ms && times.first_use_limit_ms >= times.startup_grace_ms);
        }
    }
}
