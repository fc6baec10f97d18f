//! Each case: a run, what was done before, and what comes next at a second of its story.

use super::*;
use crate::action::{Action, DecisionId, What};

fn at(second: i64) -> Timestamp {
    Timestamp::from_unix_s(1_000_000 + second)
}

fn job() -> JobTarget {
    JobTarget { id: 7, user: "alice".into(), restarts: 1, started_at: Some(at(-600)) }
}

fn run(state: &str) -> RunSight {
    RunSight {
        name: "7".into(),
        state: state.into(),
        user: "alice".into(),
        restarts: 1,
        started_at: Some(at(-600)),
        is_batch: true,
        led_by: None,
    }
}

fn seen(state: &str) -> JobSight {
    JobSight { run: Some(run(state)), mark: None }
}

fn marked(state: &str, mark: &str) -> JobSight {
    JobSight { mark: Some(mark.into()), ..seen(state) }
}

fn end() -> JobDeed {
    JobDeed::End { first: Some((Signal::Term, Reach::Batch)), grace_s: 60 }
}

fn ask() -> JobDeed {
    let mark = Mark::File("/scratch/done".into());
    JobDeed::AskCheckpoint { signal: Signal::Usr1, reach: Reach::Batch, mark, within_s: 300 }
}

fn past(deed: &JobDeed, tries: Vec<Try>) -> Past {
    let what = What::SlurmJob(JobAction { job: job(), deed: deed.clone() });
    let action = Action { decision: DecisionId::new("d1"), tenant: None, what, deadline: at(10_000) };
    Past { tries, ..Past::planned(action) }
}

fn tried(step: Step, second: i64, answer: Option<Answer>) -> Try {
    Try { step, at: at(second), before: Sight::Job(marked("RUNNING", "old")), answer }
}

fn check(deed: &JobDeed, sight: &JobSight, tries: Vec<Try>, second: i64) -> Next {
    next(&JobAction { job: job(), deed: deed.clone() }, sight, &past(deed, tries), at(second))
}

fn refused(deed: &JobDeed, sight: &JobSight) -> String {
    match check(deed, sight, vec![], 0) {
        Next::Refuse(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_is_signalled_then_given_its_grace_then_ended_once() {
    let term = || tried(Step::Signal(Signal::Term), 0, Some(Answer::Taken));
    assert_eq!(check(&end(), &seen("RUNNING"), vec![], 0), Next::Do(Step::Signal(Signal::Term)));
    assert_eq!(check(&end(), &seen("RUNNING"), vec![term()], 59), Next::Wait(at(60)));
    assert_eq!(check(&end(), &seen("RUNNING"), vec![term()], 60), Next::Do(Step::Cancel));
    let cancel = |answer| vec![term(), tried(Step::Cancel, 60, answer)];
    assert_eq!(check(&end(), &seen("RUNNING"), cancel(Some(Answer::Taken)), 61), Next::Wait(at(180)));
    assert_eq!(check(&end(), &seen("COMPLETING"), cancel(Some(Answer::Taken)), 61), Next::Wait(at(76)));
    assert_eq!(check(&end(), &seen("CANCELLED"), cancel(Some(Answer::Taken)), 62), Next::True);
    assert_eq!(check(&end(), &JobSight { run: None, mark: None }, cancel(Some(Answer::Taken)), 62), Next::True);
    // It ended by itself at the signal: nothing is left to cancel.
    assert_eq!(check(&end(), &seen("COMPLETED"), vec![term()], 5), Next::True);
    // Killed between the note and the command: where it still runs, it is ended now.
    assert_eq!(check(&end(), &seen("RUNNING"), cancel(None), 61), Next::Do(Step::Cancel));
    // Without a signal of its own, at once.
    assert_eq!(check(&JobDeed::End { first: None, grace_s: 0 }, &seen("RUNNING"), vec![], 0), Next::Do(Step::Cancel));
}

#[test]
fn a_run_that_is_not_the_one_that_was_decided_on_is_left_alone_with_a_reason() {
    let with = |change: &dyn Fn(&mut RunSight)| {
        let mut run = run("RUNNING");
        change(&mut run);
        refused(&end(), &JobSight { run: Some(run), mark: None })
    };
    assert_eq!(with(&|run| run.user = "bob".into()), "job 7 is bob's, not alice's");
    assert_eq!(with(&|run| run.restarts = 2), "it was requeued meanwhile: this is restart 2, not 1");
    assert!(with(&|run| run.started_at = Some(at(-500))).contains("it is another run"));
    assert_eq!(with(&|run| run.led_by = Some(6)), "job 7 is a part of 6: it goes or stays with all of it");
    assert_eq!(with(&|run| run.state = "ODD".into()), "ODD is a state that isn't known here");
    assert_eq!(refused(&end(), &seen("COMPLETED")), "it ended meanwhile: COMPLETED");
    assert_eq!(refused(&end(), &seen("PENDING")), "it isn't running: PENDING");
    assert!(refused(&end(), &JobSight { run: None, mark: None }).contains("ended meanwhile"));
    let interactive = JobSight { run: Some(RunSight { is_batch: false, ..run("RUNNING") }), mark: None };
    assert_eq!(refused(&end(), &interactive), "it has no batch script to signal");
    assert_eq!(refused(&JobDeed::Requeue, &interactive), "it has no batch script: it can't be requeued");
}

#[test]
fn r17_a_checkpoint_is_true_when_its_mark_is_seen_and_given_up_when_it_is_not() {
    let asked = |answer| vec![tried(Step::Signal(Signal::Usr1), 0, answer)];
    let taken = || asked(Some(Answer::Taken));
    assert_eq!(check(&ask(), &marked("RUNNING", "old"), vec![], 0), Next::Do(Step::Signal(Signal::Usr1)));
    // The mark of an earlier checkpoint isn't this one's.
    assert_eq!(check(&ask(), &marked("RUNNING", "old"), taken(), 10), Next::Wait(at(300)));
    assert_eq!(check(&ask(), &marked("RUNNING", "new"), taken(), 10), Next::True);
    assert_eq!(check(&ask(), &marked("COMPLETED", "new"), taken(), 10), Next::True);
    let Next::GiveUp(reason) = check(&ask(), &marked("RUNNING", "old"), taken(), 300) else { panic!() };
    assert_eq!(reason, "no checkpoint was seen within 300 s");
    // A job without a handler dies of the signal: that is told, and isn't a checkpoint.
    let Next::GiveUp(reason) = check(&ask(), &marked("FAILED", "old"), taken(), 10) else { panic!() };
    assert_eq!(reason, "it ended meanwhile: FAILED; no checkpoint was seen");
    // It wrote one and requeued itself.
    let requeued = JobSight { run: Some(RunSight { restarts: 2, ..run("PENDING") }), mark: None };
    assert_eq!(check(&ask(), &requeued, taken(), 10), Next::True);
}

#[test]
fn a_signal_of_which_nothing_is_known_is_repeated_only_where_a_mark_tells_that_it_was_lost() {
    let asked = |answer| vec![tried(Step::Signal(Signal::Usr1), 0, answer)];
    assert_eq!(check(&ask(), &marked("RUNNING", "old"), asked(None), 299), Next::Wait(at(300)));
    assert_eq!(check(&ask(), &marked("RUNNING", "new"), asked(None), 20), Next::True);
    assert_eq!(check(&ask(), &marked("RUNNING", "old"), asked(None), 300), Next::Do(Step::Signal(Signal::Usr1)));
    let twice = [asked(None), vec![tried(Step::Signal(Signal::Usr1), 300, None)]].concat();
    assert!(matches!(check(&ask(), &marked("RUNNING", "old"), twice, 600), Next::GiveUp(_)));
    let warn = JobDeed::Warn { signal: Signal::Usr1, reach: Reach::Steps };
    assert!(matches!(check(&warn, &seen("RUNNING"), asked(None), 1), Next::GiveUp(_)));
    assert_eq!(check(&warn, &seen("RUNNING"), asked(Some(Answer::Taken)), 1), Next::True);
}

#[test]
fn a_requeue_is_true_when_slurm_counts_one_more() {
    let requeued = || vec![tried(Step::Requeue, 0, Some(Answer::Taken))];
    assert_eq!(check(&JobDeed::Requeue, &seen("RUNNING"), vec![], 0), Next::Do(Step::Requeue));
    let again = JobSight { run: Some(RunSight { restarts: 2, started_at: None, ..run("PENDING") }), mark: None };
    assert_eq!(check(&JobDeed::Requeue, &again, requeued(), 5), Next::True);
    assert!(matches!(check(&JobDeed::Requeue, &seen("COMPLETED"), requeued(), 5), Next::GiveUp(_)));
    // Not by us.
    assert!(matches!(check(&JobDeed::Requeue, &again, vec![], 5), Next::Refuse(_)));
    let declined = vec![tried(Step::Requeue, 0, Some(Answer::Declined("disabled".into())))];
    assert_eq!(check(&JobDeed::Requeue, &seen("RUNNING"), declined, 5), Next::Refuse("disabled".into()));
}
