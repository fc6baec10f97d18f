//! A run of a job: warned, asked for a checkpoint, ended with grace, requeued.

use super::{Slurm, queue, refused, unseen, watched_file};
use crate::instant::after_s;
use crate::next::{AGAIN_AFTER_S, Next, Step};
use crate::past::{Answer, Past, Try};
use crate::sight::Sight;
use crate::signal::Signal;
use crate::world::Trouble;
use cardhour_domain::Timestamp;
use cardhour_reach::command::CommandError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How long a job that was ended is waited for before it is ended once more. Unit: seconds.
const ENDED_AGAIN_AFTER_S: u32 = 120;

/// By how much a start may differ from what was noted of it. Unit: milliseconds.
const START_SLACK_MS: i64 = 2000;

/// What is done to which run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobAction {
    /// Which run.
    pub job: JobTarget,
    /// What is done.
    pub deed: JobDeed,
}

/// One run of a job. Found to be another's, or another run, it is left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobTarget {
    /// Slurm's own number of it, `JobIDRaw`: each task of an array has one.
    pub id: u64,
    /// Whose it is.
    pub user: String,
    /// How often it was requeued before this run.
    pub restarts: u32,
    /// When this run started, where that is known: numbers of jobs come round again.
    #[serde(default, with = "crate::instant::optional", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}

/// What is done to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum JobDeed {
    /// A signal, and no more.
    Warn {
        /// Which.
        signal: Signal,
        /// To what of the job.
        reach: Reach,
    },
    /// A signal at which it writes a checkpoint. True once that is seen, or the job has requeued itself; given up where it ends or goes on without.
    AskCheckpoint {
        /// Which.
        signal: Signal,
        /// To what of the job.
        reach: Reach,
        /// How the checkpoint is seen.
        mark: Mark,
        /// How long it may take. Unit: seconds.
        within_s: u32,
    },
    /// Ends it: a signal and a grace first where given, then as the scheduler ends jobs (TERM, and KILL after its own `KillWait`).
    End {
        /// The signal that it ends by itself at, and to what of the job it goes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<(Signal, Reach)>,
        /// How long it has from the signal. Unit: seconds.
        grace_s: u32,
    },
    /// Puts it back into its queue; its cards are free, its work begins again.
    Requeue,
}

impl JobDeed {
    pub(crate) fn own_wait_s(&self) -> u32 {
        match self {
            Self::Warn { .. } | Self::Requeue => 0,
            Self::AskCheckpoint { within_s, .. } => *within_s,
            Self::End { first, grace_s } => first.map_or(0, |_| *grace_s),
        }
    }
}

/// To what of a job a signal goes: to all of it, its data loaders die first (R18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Its batch script alone.
    Batch,
    /// Its steps, which `srun` started, without the script.
    Steps,
    /// One step of it.
    Step(u32),
    /// The script, all that it started, and the steps.
    All,
}

/// How a checkpoint is seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A file that is written last, seen from here: it is new, or was changed.
    File(PathBuf),
    /// A word in the job's comment (`scontrol update comment=`) that wasn't there.
    Comment(String),
}

/// What a look at a job showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSight {
    /// What the controller has of it; none: it knows no such job (any more).
    pub run: Option<RunSight>,
    /// Its mark, as comparable text; none where there is none, or none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

/// What the controller has of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSight {
    /// How commands name it: `16`, or `16_2` for a task of an array, whose own number may mean the whole array.
    pub name: String,
    /// Slurm's word: `RUNNING`, `COMPLETING`, `CANCELLED` …
    pub state: String,
    /// Whose it is.
    pub user: String,
    /// How often it was requeued.
    pub restarts: u32,
    /// When it started or will.
    #[serde(default, with = "crate::instant::optional", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Whether it has a batch script.
    pub is_batch: bool,
    /// The job that leads it, where it is a part of one of several parts and doesn't lead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub led_by: Option<u64>,
}

/// What a state means here.
enum Life {
    Waits,
    Runs,
    Ends,
    Over,
}

fn life(state: &str) -> Option<Life> {
    match state {
        "PENDING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "SPECIAL_EXIT" | "RESV_DEL_HOLD" => Some(Life::Waits),
        "RUNNING" | "SUSPENDED" | "CONFIGURING" | "RESIZING" | "SIGNALING" | "STOPPED" | "STAGE_OUT" => {
            Some(Life::Runs)
        }
        "COMPLETING" => Some(Life::Ends),
        "COMPLETED" | "CANCELLED" | "FAILED" | "TIMEOUT" | "NODE_FAIL" | "PREEMPTED" | "BOOT_FAIL" | "DEADLINE"
        | "OUT_OF_MEMORY" | "REVOKED" | "LAUNCH_FAILED" => Some(Life::Over),
        _ => None,
    }
}

/// What comes next.
pub(crate) fn next(action: &JobAction, sight: &JobSight, past: &Past, now: Timestamp) -> Next {
    let JobAction { job, deed } = action;
    // A run that is over: what was wanted of it, where it was touched; else none of ours.
    let is_over = |how: String| match deed {
        _ if !past.has_touched() => Next::Refuse(how),
        JobDeed::End { .. } | JobDeed::Warn { .. } => Next::True,
        JobDeed::AskCheckpoint { .. } if is_marked(sight, past) => Next::True,
        JobDeed::AskCheckpoint { .. } => Next::GiveUp(format!("{how}; no checkpoint was seen")),
        JobDeed::Requeue => Next::GiveUp(how),
    };
    let Some(run) = &sight.run else {
        return is_over("it ended meanwhile, and the controller knows it no more".to_owned());
    };
    if run.user != job.user {
        return Next::Refuse(format!("job {} is {}'s, not {}'s", job.id, run.user, job.user));
    }
    if let Some(leader) = run.led_by {
        return Next::Refuse(format!("job {} is a part of {leader}: it goes or stays with all of it", job.id));
    }
    if run.restarts != job.restarts {
        let how = format!("it was requeued meanwhile: this is restart {}, not {}", run.restarts, job.restarts);
        // Frameworks that write a checkpoint at a signal requeue themselves after it.
        let is_requeued = matches!(deed, JobDeed::Requeue | JobDeed::AskCheckpoint { .. });
        let is_ours = is_requeued && past.has_touched() && run.restarts > job.restarts;
        return if is_ours { Next::True } else { is_over(how) };
    }
    match life(&run.state) {
        Some(Life::Runs) => {}
        Some(Life::Waits) => return is_over(format!("it isn't running: {}", run.state)),
        Some(Life::Over) => return is_over(format!("it ended meanwhile: {}", run.state)),
        Some(Life::Ends) => return Next::Wait(after_s(now, AGAIN_AFTER_S)),
        None => return Next::Refuse(format!("{} is a state that isn't known here", run.state)),
    }
    if let (Some(noted), Some(started)) = (job.started_at, run.started_at)
        && started.ms_since(noted).abs() > START_SLACK_MS
    {
        return Next::Refuse(format!("job {} started at {started}, not {noted}: it is another run", job.id));
    }
    match deed {
        JobDeed::Warn { signal, reach } => match past.tries.last() {
            None => signalled(run, *signal, *reach),
            Some(tried) => after_signal(tried, now).unwrap_or(Next::True),
        },
        JobDeed::AskCheckpoint { signal, reach, within_s, mark: _ } => {
            let Some(tried) = past.last(|step| matches!(step, Step::Signal(_))) else {
                return signalled(run, *signal, *reach);
            };
            if is_marked(sight, past) {
                return Next::True;
            }
            let until = after_s(tried.at, *within_s);
            if now < until {
                return match &tried.answer {
                    Some(Answer::Declined(reason)) => Next::Refuse(reason.clone()),
                    Some(Answer::Taken | Answer::Later { .. } | Answer::Unknown(_)) | None => Next::Wait(until),
                };
            }
            // Where it can't be told whether it was ever asked, it is asked once more.
            let may_be_lost = !matches!(tried.answer, Some(Answer::Taken));
            if may_be_lost && past.tries.len() < 2 {
                return Next::Do(Step::Signal(*signal));
            }
            Next::GiveUp(format!("no checkpoint was seen within {within_s} s"))
        }
        JobDeed::End { first, grace_s } => {
            if let Some((signal, reach)) = first {
                let Some(tried) = past.last(|step| matches!(step, Step::Signal(_))) else {
                    return signalled(run, *signal, *reach);
                };
                if let Some(Answer::Declined(reason)) = &tried.answer {
                    return Next::Refuse(reason.clone());
                }
                let until = after_s(tried.at, *grace_s);
                if now < until {
                    return Next::Wait(until);
                }
            }
            ended(past, &Step::Cancel, now)
        }
        JobDeed::Requeue if !run.is_batch => Next::Refuse("it has no batch script: it can't be requeued".to_owned()),
        JobDeed::Requeue => ended(past, &Step::Requeue, now),
    }
}

/// Whether the mark of a checkpoint is there that wasn't before it was asked for.
fn is_marked(sight: &JobSight, past: &Past) -> bool {
    let before = past.first().and_then(|tried| match &tried.before {
        Sight::Job(before) => before.mark.as_deref(),
        Sight::Process(_) | Sight::Setting(_) | Sight::Object(_) => None,
    });
    sight.mark.is_some() && sight.mark.as_deref() != before
}

fn signalled(run: &RunSight, signal: Signal, reach: Reach) -> Next {
    match reach {
        Reach::Batch if !run.is_batch => Next::Refuse("it has no batch script to signal".to_owned()),
        Reach::Batch | Reach::Steps | Reach::Step(_) | Reach::All => Next::Do(Step::Signal(signal)),
    }
}

/// What a signal without a mark has come to, where it isn't simply sent.
fn after_signal(tried: &Try, now: Timestamp) -> Option<Next> {
    match &tried.answer {
        Some(Answer::Taken) => None,
        Some(Answer::Declined(reason)) => Some(Next::Refuse(reason.clone())),
        Some(Answer::Later { after_s: wait_s, .. }) if now < after_s(tried.at, *wait_s) => {
            Some(Next::Wait(after_s(tried.at, *wait_s)))
        }
        Some(Answer::Later { .. }) => Some(Next::Do(tried.step.clone())),
        Some(Answer::Unknown(_)) | None => {
            Some(Next::GiveUp("whether the signal was sent can't be told, and it isn't sent twice".to_owned()))
        }
    }
}

/// A step that does no more when it is done twice.
fn ended(past: &Past, step: &Step, now: Timestamp) -> Next {
    let Some(tried) = past.last(|tried| tried == step) else { return Next::Do(step.clone()) };
    let again_at = match &tried.answer {
        Some(Answer::Declined(reason)) => return Next::Refuse(reason.clone()),
        Some(Answer::Taken) => after_s(tried.at, ENDED_AGAIN_AFTER_S),
        Some(Answer::Later { after_s: wait_s, .. }) => after_s(tried.at, *wait_s),
        Some(Answer::Unknown(_)) => after_s(tried.at, AGAIN_AFTER_S),
        // The program ended in between, and it still runs.
        None => tried.at,
    };
    if now < again_at { Next::Wait(again_at) } else { Next::Do(step.clone()) }
}

impl Slurm {
    /// Looks at a job.
    pub(crate) fn look_at_job(&self, action: &JobAction) -> Result<JobSight, Trouble> {
        let id = action.job.id.to_string();
        let arguments = ["-h", "-t", "all", "-j", &id, "-O", queue::FIELDS];
        let run = match self.run(&self.settings.squeue, &arguments) {
            Ok(text) => queue::find(&text, action.job.id).map_err(Trouble::Unseen)?,
            // What a controller says of a job that it has forgotten.
            Err(CommandError::Failed { message, .. }) if message.contains("Invalid job id") => None,
            Err(error) => return Err(unseen(error)),
        };
        let mark = match &action.deed {
            JobDeed::AskCheckpoint { mark: Mark::Comment(_), .. } if run.is_none() => None,
            JobDeed::AskCheckpoint { mark, .. } => self.mark(mark, &id)?,
            JobDeed::Warn { .. } | JobDeed::End { .. } | JobDeed::Requeue => None,
        };
        Ok(JobSight { run, mark })
    }

    fn mark(&self, mark: &Mark, id: &str) -> Result<Option<String>, Trouble> {
        match mark {
            Mark::File(path) => watched_file::look(path, self.settings.timeout),
            Mark::Comment(word) => {
                let arguments = ["-h", "-t", "all", "-j", id, "-o", "%k"];
                let comment = self.run(&self.settings.squeue, &arguments).map_err(unseen)?;
                Ok(comment.contains(word.as_str()).then(|| word.clone()))
            }
        }
    }

    /// Does a step on a job that was just seen. The user and the state go along, so that what has changed since isn't touched.
    pub(crate) fn act_on_job(&self, action: &JobAction, step: &Step, sight: &JobSight) -> Result<Answer, Trouble> {
        let Some(run) = &sight.run else { return Ok(Answer::Declined("it is gone".to_owned())) };
        let user = format!("--user={}", action.job.user);
        // A run that is being set up counts as running there.
        let state = if run.state == "SUSPENDED" { "--state=SUSPENDED" } else { "--state=RUNNING" };
        let reach = match &action.deed {
            JobDeed::Warn { reach, .. } | JobDeed::AskCheckpoint { reach, .. } => Some(*reach),
            JobDeed::End { first, .. } => first.map(|(_, reach)| reach),
            JobDeed::Requeue => None,
        };
        let result = match (step, reach) {
            (Step::Signal(signal), Some(reach)) => {
                let (signal, name) = (format!("--signal={}", signal.name()), target(&run.name, reach));
                let mut arguments = vec![signal.as_str(), &user, state];
                arguments.extend(match reach {
                    Reach::Batch => Some("--batch"),
                    Reach::All => Some("--full"),
                    Reach::Steps | Reach::Step(_) => None,
                });
                arguments.push(&name);
                self.run(&self.settings.scancel, &arguments)
            }
            (Step::Cancel, _) => self.run(&self.settings.scancel, &[&user, state, &run.name]),
            (Step::Requeue, _) => self.run(&self.settings.scontrol, &["requeue", &run.name]),
            (Step::Signal(_), None) | (Step::Kill | Step::Evict | Step::Stop | Step::Start | Step::Set(_), _) => {
                return Ok(Answer::Declined("no step for a job".to_owned()));
            }
        };
        match result {
            Ok(_) => Ok(Answer::Taken),
            Err(error) => refused(error),
        }
    }
}

fn target(name: &str, reach: Reach) -> String {
    match reach {
        Reach::Step(step) => format!("{name}.{step}"),
        Reach::Batch | Reach::Steps | Reach::All => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
