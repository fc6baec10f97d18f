//! Which run of a job this is: the part of its key that tells it from an earlier one with the same id.

use cardhour_domain::{Name, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What sources say of when a job's run started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunClues {
    /// Its SLUID: given once.
    pub sluid: Option<Name>,
    /// The controller's start.
    pub scheduler_start: Option<Timestamp>,
    /// The controller's count of restarts.
    pub restarts: Option<u32>,
    /// The start that a map file says.
    pub map_start: Option<Timestamp>,
    /// The start in its processes' environment.
    pub environ_start: Option<Timestamp>,
    /// When its map file was written.
    pub written_at: Option<Timestamp>,
    /// When the first of its steps that is still there started.
    pub step_start: Option<Timestamp>,
}

impl RunClues {
    /// The best word on the start. The order is fixed, so that a collector that starts anew says the same of a run in its middle.
    pub fn start(&self) -> Option<Timestamp> {
        self.scheduler_start.or(self.map_start).or(self.environ_start).or(self.written_at).or(self.step_start)
    }

    /// Whether `now` is of another run than these: like is compared with like, since two sources are often a second apart.
    fn is_another(&self, now: &Self) -> bool {
        fn differ<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> Option<bool> {
            a.as_ref().zip(b.as_ref()).map(|(a, b)| a != b)
        }
        let sure = [
            differ(&self.sluid, &now.sluid),
            differ(&self.scheduler_start, &now.scheduler_start),
            differ(&self.restarts, &now.restarts),
            differ(&self.map_start, &now.map_start),
        ];
        if sure.iter().any(Option::is_some) {
            return sure.contains(&Some(true));
        }
        // A shared map file is written anew when another job leaves it; steps come and go: neither says it alone where both speak.
        match (differ(&self.written_at, &now.written_at), differ(&self.step_start, &now.step_start)) {
            (Some(written), Some(step)) => written && step,
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => false,
        }
    }

    /// These, and what `now` knows better.
    fn merged(self, now: Self) -> Self {
        Self {
            sluid: now.sluid.or(self.sluid),
            scheduler_start: now.scheduler_start.or(self.scheduler_start),
            restarts: now.restarts.or(self.restarts),
            map_start: now.map_start.or(self.map_start),
            environ_start: now.environ_start.or(self.environ_start),
            written_at: now.written_at.or(self.written_at),
            step_start: now.step_start.or(self.step_start),
        }
    }
}

/// A run that was given a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// `sluid…`, or `b` and the seconds of its start.
    pub name: Name,
    /// When it started.
    pub started_at: Option<Timestamp>,
}

/// Names of the runs that are there now. A name once given stays while the run lasts, whatever is learnt of it later.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    known: BTreeMap<u64, (RunClues, Run)>,
}

impl Runs {
    /// The run of a job that sources tell of; none where nothing says when it started.
    pub fn settle(&mut self, job_id: u64, now: RunClues) -> Option<Run> {
        if let Some((clues, run)) = self.known.get_mut(&job_id).filter(|(clues, _)| !clues.is_another(&now)) {
            *clues = std::mem::take(clues).merged(now);
            return Some(run.clone());
        }
        let started_at = now.start();
        let name = match (&now.sluid, started_at) {
            (Some(sluid), _) => Name::from(format!("sluid{sluid}")),
            (None, Some(at)) => Name::from(format!("b{}", at.unix_ms().div_euclid(1000))),
            (None, None) => return None,
        };
        let run = Run { name, started_at };
        self.known.insert(job_id, (now, run.clone()));
        Some(run)
    }

    /// Forgets the jobs that are no more.
    pub fn keep(&mut self, jobs: &BTreeSet<u64>) {
        self.known.retain(|job_id, _| jobs.contains(job_id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Option<Timestamp> {
        Some(Timestamp::from_unix_s(seconds))
    }

    fn name(runs: &mut Runs, clues: RunClues) -> String {
        runs.settle(7, clues).unwrap().name.to_string()
    }

    #[test]
    fn a_run_keeps_its_name_when_a_better_source_speaks_later() {
        let mut runs = Runs::default();
        assert_eq!(name(&mut runs, RunClues { written_at: at(101), ..RunClues::default() }), "b101");
        let both = RunClues { written_at: at(101), scheduler_start: at(100), ..RunClues::default() };
        assert_eq!(name(&mut runs, both.clone()), "b101");
        // A collector that starts now has both from the start.
        assert_eq!(name(&mut Runs::default(), both), "b100");
    }

    /// S09: the same id again is another run, told by whatever source still speaks.
    #[test]
    fn s09_a_requeued_job_is_another_run() {
        let mut runs = Runs::default();
        let first =
            RunClues { scheduler_start: at(100), restarts: Some(0), written_at: at(101), ..RunClues::default() };
        assert_eq!(name(&mut runs, first), "b100");
        let second =
            RunClues { scheduler_start: at(300), restarts: Some(1), written_at: at(301), ..RunClues::default() };
        assert_eq!(name(&mut runs, second), "b300");
        // The controller is away: the map file alone tells of the third.
        assert_eq!(name(&mut runs, RunClues { written_at: at(501), ..RunClues::default() }), "b501");
        assert_eq!(
            name(&mut runs, RunClues { written_at: at(501), scheduler_start: at(500), ..RunClues::default() }),
            "b501"
        );
    }

    #[test]
    fn a_map_file_that_another_job_leaves_makes_no_new_run_while_a_step_goes_on() {
        let mut runs = Runs::default();
        assert_eq!(
            name(&mut runs, RunClues { written_at: at(101), step_start: at(102), ..RunClues::default() }),
            "b101"
        );
        assert_eq!(
            name(&mut runs, RunClues { written_at: at(400), step_start: at(102), ..RunClues::default() }),
            "b101"
        );
        assert_eq!(
            name(&mut runs, RunClues { written_at: at(600), step_start: at(601), ..RunClues::default() }),
            "b600"
        );
    }

    #[test]
    fn a_sluid_names_the_run_and_nothing_names_none() {
        let sluid = RunClues { sluid: Some("s5K1KKYAYG5D00".into()), scheduler_start: at(9), ..RunClues::default() };
        let run = Runs::default().settle(7, sluid).unwrap();
        assert_eq!((&*run.name, run.started_at), ("sluids5K1KKYAYG5D00", at(9)));
        assert_eq!(Runs::default().settle(7, RunClues::default()), None);
    }
}
