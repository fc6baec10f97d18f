//! A world of one job, a clock that stands still until it is moved, and a journal whose program can be killed at each write.

use super::*;
use crate::action::DecisionId;
use crate::guards::Mode;
use crate::journal::Pasts;
use crate::signal::Signal;
use crate::slurm::{JobAction, JobDeed, JobSight, JobTarget, Reach, RunSight};

fn at(second: i64) -> Timestamp {
    Timestamp::from_unix_s(1_000_000 + second)
}

/// One job, which ends a second after it is cancelled.
#[derive(Clone)]
struct OneJob {
    state: &'static str,
    done: Vec<Step>,
    is_blind: bool,
    answers: Vec<Result<Answer, Trouble>>,
}

impl OneJob {
    fn running() -> Self {
        Self { state: "RUNNING", done: vec![], is_blind: false, answers: vec![] }
    }
}

impl World for OneJob {
    fn look(&mut self, _: &What) -> Result<Sight, Trouble> {
        if self.is_blind {
            return Err(Trouble::Unseen("no answer".into()));
        }
        let run = RunSight {
            name: "7".into(),
            state: self.state.into(),
            user: "alice".into(),
            restarts: 0,
            started_at: None,
            is_batch: true,
            led_by: None,
        };
        Ok(Sight::Job(JobSight { run: Some(run), mark: None }))
    }

    fn act(&mut self, _: &What, step: &Step, _: &Sight) -> Result<Answer, Trouble> {
        if let Some(answer) = self.answers.pop() {
            return answer;
        }
        self.done.push(step.clone());
        if *step == Step::Cancel {
            self.state = "CANCELLED";
        }
        Ok(Answer::Taken)
    }
}

/// Ends the program when so many more entries are there, or would have been.
struct Dying {
    pasts: Pasts,
    left: usize,
    is_lost: bool,
}

impl Journal for Dying {
    fn record(&mut self, entry: Entry) -> Result<(), JournalError> {
        if self.left == 0 {
            if !self.is_lost {
                self.pasts.fold(entry)?;
            }
            return Err(JournalError::Other("killed".into()));
        }
        self.left -= 1;
        self.pasts.fold(entry)
    }

    fn past(&self, decision: &DecisionId) -> Option<&Past> {
        self.pasts.past(decision)
    }

    fn begun_since(&self, since: Timestamp, tenant: Option<&str>) -> usize {
        self.pasts.begun_since(since, tenant)
    }

    fn open(&self) -> Vec<Action> {
        self.pasts.open()
    }
}

fn end(decision: &str, tenant: &str) -> Action {
    let job = JobTarget { id: 7, user: "alice".into(), restarts: 0, started_at: None };
    let deed = JobDeed::End { first: Some((Signal::Term, Reach::Batch)), grace_s: 60 };
    let what = What::SlurmJob(JobAction { job, deed });
    Action { decision: DecisionId::new(decision), tenant: Some(tenant.into()), what, deadline: at(600) }
}

fn act() -> Guards {
    Guards { mode: Mode::Act, most_an_hour: 10, ..Guards::default() }
}

fn play(action: &Action, world: &mut OneJob, journal: &mut dyn Journal, guards: &Guards, second: i64) -> Round {
    try_play(action, world, journal, guards, second).unwrap()
}

fn try_play(
    action: &Action,
    world: &mut OneJob,
    journal: &mut dyn Journal,
    guards: &Guards,
    second: i64,
) -> Result<Round, JournalError> {
    let now = || at(second);
    let mut with = Carrying { world, journal, guards, is_wanted: &|_, _| Ok(()), now: &now };
    round(action, &mut with)
}

const TRUE: Round = Round::Over(Standing::SeenTrue);

#[test]
fn an_action_is_carried_through_its_grace_and_asked_again_it_does_nothing() {
    let (action, mut world, mut journal) = (end("d1", "nlp"), OneJob::running(), Pasts::default());
    assert_eq!(play(&action, &mut world, &mut journal, &act(), 0), Round::Due(at(60)));
    assert_eq!(play(&action, &mut world, &mut journal, &act(), 30), Round::Due(at(60)));
    assert_eq!(play(&action, &mut world, &mut journal, &act(), 60), TRUE);
    assert_eq!(world.done, [Step::Signal(Signal::Term), Step::Cancel]);
    // Another job has its number by now: the decision is over all the same.
    world.state = "RUNNING";
    assert_eq!(play(&action, &mut world, &mut journal, &act(), 61), TRUE);
    assert_eq!(world.done.len(), 2);
    let past = journal.past(&action.decision).unwrap();
    let states: Vec<Option<String>> =
        past.tries.iter().map(|tried| &tried.before).chain(&past.after).map(state).collect();
    assert_eq!(states, ["RUNNING", "RUNNING", "CANCELLED"].map(|state| Some(state.to_owned())));
}

fn state(sight: &Sight) -> Option<String> {
    match sight {
        Sight::Job(job) => job.run.as_ref().map(|run| run.state.clone()),
        Sight::Process(_) | Sight::Setting(_) | Sight::Object(_) => None,
    }
}

#[test]
fn killed_before_or_after_any_entry_it_goes_on_and_acts_once() {
    let action = end("d1", "nlp");
    // Entries: planned, trying, tried, trying, tried, over.
    for entries in 0..6 {
        for is_lost in [false, true] {
            let (mut world, mut journal) =
                (OneJob::running(), Dying { pasts: Pasts::default(), left: entries, is_lost });
            let mut killed_at = None;
            for second in (0..=60).step_by(60) {
                if killed_at.is_none() && try_play(&action, &mut world, &mut journal, &act(), second).is_err() {
                    killed_at = Some(second);
                }
            }
            let killed_at = killed_at.expect("killed once");
            // The program starts again a second later, with what it had on disk.
            let mut journal = journal.pasts;
            for second in killed_at + 1..=130 {
                play(&action, &mut world, &mut journal, &act(), second);
            }
            let count = |step: &Step| world.done.iter().filter(|done| *done == step).count();
            assert_eq!(
                (world.state, count(&Step::Cancel)),
                ("CANCELLED", 1),
                "killed at entry {entries}, lost {is_lost}"
            );
            assert!(count(&Step::Signal(Signal::Term)) <= 1, "killed at entry {entries}, lost {is_lost}");
            assert!(journal.past(&action.decision).unwrap().standing.is_over());
        }
    }
}

#[test]
fn shadow_and_notify_touch_nothing_and_say_what_would_be_done() {
    for mode in [Mode::Shadow, Mode::Notify] {
        let (mut world, mut journal) = (OneJob::running(), Pasts::default());
        let guards = Guards { mode, ..act() };
        let held = play(&end("d1", "nlp"), &mut world, &mut journal, &guards, 0);
        assert_eq!(held, Round::Held { step: Step::Signal(Signal::Term), why: Held::Mode(mode) });
        assert!(world.done.is_empty());
    }
    assert_eq!(Guards::default().mode, Mode::Shadow);
}

#[test]
fn the_kill_switch_stops_all_also_what_was_begun() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stop");
    let guards = Guards { off_file: Some(file.clone()), ..act() };
    let (action, mut world, mut journal) = (end("d1", "nlp"), OneJob::running(), Pasts::default());
    assert_eq!(play(&action, &mut world, &mut journal, &guards, 0), Round::Due(at(60)));
    std::fs::write(&file, "").unwrap();
    let held = |step| Round::Held { step, why: Held::KillSwitch };
    assert_eq!(play(&action, &mut world, &mut journal, &guards, 60), held(Step::Cancel));
    let off = Guards { is_off: true, ..act() };
    assert_eq!(play(&action, &mut world, &mut journal, &off, 60), held(Step::Cancel));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(play(&action, &mut world, &mut journal, &guards, 61), TRUE);
    let held_at_once = play(&end("d2", "nlp"), &mut OneJob::running(), &mut journal, &off, 0);
    assert_eq!(held_at_once, held(Step::Signal(Signal::Term)));
}

#[test]
fn no_more_actions_are_begun_within_an_hour_than_may_be() {
    let mut journal = Pasts::default();
    let guards = Guards { most_an_hour: 3, most_an_hour_a_tenant: Some(2), ..act() };
    let mut begin = |decision: &str, tenant: &str, second: i64| {
        let action = Action { deadline: at(second + 600), ..end(decision, tenant) };
        match play(&action, &mut OneJob::running(), &mut journal, &guards, second) {
            Round::Held { why, .. } => why.to_string(),
            Round::Due(_) => "begun".into(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(begin("d1", "nlp", 0), "begun");
    assert_eq!(begin("d2", "nlp", 10), "begun");
    // What was begun goes on.
    assert_eq!(begin("d2", "nlp", 10), "begun");
    assert_eq!(begin("d3", "nlp", 20), "2 actions for this tenant were begun within the hour, and no more may be");
    assert_eq!(begin("d4", "speech", 20), "begun");
    assert_eq!(begin("d5", "vision", 30), "3 actions were begun within the hour, and no more may be");
    assert_eq!(begin("d6", "vision", 3601), "begun");
}

#[test]
fn what_cannot_be_seen_is_not_touched_and_given_up_at_the_deadline() {
    let (action, mut world, mut journal) = (end("d1", "nlp"), OneJob::running(), Pasts::default());
    world.is_blind = true;
    let blind = Round::Blind { reason: "no answer".into(), due: at(15) };
    assert_eq!(play(&action, &mut world, &mut journal, &act(), 0), blind);
    let refused = Round::Over(Standing::Refused("not seen by its deadline: no answer".into()));
    assert_eq!(play(&action, &mut world, &mut journal, &act(), 600), refused);
    assert!(world.done.is_empty());
}

#[test]
fn after_its_deadline_nothing_is_begun() {
    let (action, mut world, mut journal) = (end("d1", "nlp"), OneJob::running(), Pasts::default());
    assert_eq!(play(&action, &mut world, &mut journal, &act(), 0), Round::Due(at(60)));
    let given_up = Round::Over(Standing::GivenUp("not true by its deadline".into()));
    assert_eq!(play(&action, &mut world, &mut journal, &act(), 600), given_up);
    assert_eq!(world.done, [Step::Signal(Signal::Term)]);
    let late = play(&end("d2", "nlp"), &mut world, &mut journal, &act(), 560);
    assert!(matches!(late, Round::Over(Standing::Refused(reason)) if reason.contains("grace would end after")));
}

#[test]
fn an_action_that_is_not_wanted_any_more_is_dropped_before_it_touches_anything() {
    let (action, mut world, mut journal) = (end("d1", "nlp"), OneJob::running(), Pasts::default());
    let (now, guards) = (|| at(0), act());
    let is_wanted: &dyn Fn(&Action, &Sight) -> Result<(), String> = &|_, _| Err("it works again".into());
    let mut with = Carrying { world: &mut world, journal: &mut journal, guards: &guards, is_wanted, now: &now };
    let dropped = round(&action, &mut with).unwrap();
    assert_eq!(dropped, Round::Over(Standing::Refused("it isn't wanted any more: it works again".into())));
    assert!(world.done.is_empty());
}

#[test]
fn two_actions_of_one_decision_are_an_error() {
    let (mut world, mut journal) = (OneJob::running(), Pasts::default());
    play(&end("d1", "nlp"), &mut world, &mut journal, &act(), 0);
    let other = try_play(&end("d1", "speech"), &mut world, &mut journal, &act(), 0);
    assert!(matches!(other, Err(JournalError::OutOfOrder { .. })));
}

#[test]
fn a_step_that_was_declined_is_not_tried_again() {
    let (action, mut world, mut journal) = (end("d1", "nlp"), OneJob::running(), Pasts::default());
    world.answers = vec![Ok(Answer::Declined("denied".into()))];
    let refused = Round::Over(Standing::Refused("denied".into()));
    assert_eq!(play(&action, &mut world, &mut journal, &act(), 0), refused);
}
