//! Jobs of a real Slurm: asked for a checkpoint, ended after it, requeued, and left alone where they aren't the run that was meant.

use crate::stage::{carry, journal_in, mark, of_job, signals, state, submit, target, wait_for_state, worlds};
use cardhour_actuators::journal::{FileJournal, Journal};
use cardhour_actuators::past::Standing;
use cardhour_actuators::sight::Sight;
use cardhour_actuators::slurm::{JobDeed, JobTarget, Mark, Reach};
use cardhour_actuators::{DecisionId, Signal};
use cardhour_test_slurm::{Lab, can_run, wait_for};

fn refusal(standing: Standing) -> String {
    match standing {
        Standing::Refused(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_of_a_real_slurm_is_asked_for_a_checkpoint_ended_after_it_and_only_that_run() {
    if !can_run("a_job_of_a_real_slurm_is_asked_for_a_checkpoint_ended_after_it_and_only_that_run") {
        return;
    }
    let lab = Lab::up();
    let mut world = worlds(lab.conf());
    let folder = tempfile::tempdir().unwrap();
    let mut journal = FileJournal::open(&journal_in(folder.path())).unwrap();
    let mut carried = |action| carry(&mut world, &mut journal, &action);
    let card = ["-A", "research", "-w", "gpu1", "--gres=gpu:1", "-t", "10"];
    let (idle, busy) = (submit(&lab, 0, &card), submit(&lab, 0, &card));
    let (idle_run, busy_run) = (target(&lab, idle, 0), target(&lab, busy, 0));

    // R17, R18: the script alone gets the signal, and is waited for until its mark is there.
    let by = |file| JobDeed::AskCheckpoint {
        signal: Signal::Usr1,
        reach: Reach::Batch,
        mark: Mark::File(file),
        within_s: 60,
    };
    let ask = of_job("checkpoint", idle_run.clone(), by(mark(&lab, idle)));
    assert_eq!(carried(ask.clone()), Standing::SeenTrue);
    assert_eq!(signals(&lab, idle), ["checkpoint"]);
    assert_eq!(carried(ask), Standing::SeenTrue);

    let end = |grace_s| JobDeed::End { first: Some((Signal::Term, Reach::Batch)), grace_s };
    assert_eq!(carried(of_job("end", idle_run.clone(), end(3))), Standing::SeenTrue);
    wait_for_state(&lab, &idle.to_string(), "CANCELLED");
    // The signal of its own, and three seconds later that of scancel.
    assert_eq!(signals(&lab, idle), ["checkpoint", "term", "term"]);
    // By another decision, once it is gone: told, and nothing done.
    assert_eq!(refusal(carried(of_job("late", idle_run, end(0)))), "it ended meanwhile: CANCELLED");

    // Another user's, and one that nobody has.
    let of_bob = JobTarget { user: lab.user(1).to_owned(), ..busy_run.clone() };
    assert!(refusal(carried(of_job("bob", of_bob, end(0)))).contains("not"));
    let nobody = JobTarget { id: 9999, ..busy_run.clone() };
    assert!(refusal(carried(of_job("nobody", nobody, end(0)))).contains("knows it no more"));

    // A word in the comment is a mark too.
    let comment = JobDeed::AskCheckpoint {
        signal: Signal::Usr1,
        reach: Reach::Batch,
        mark: Mark::Comment("checkpointed".to_owned()),
        within_s: 3,
    };
    let Standing::GivenUp(reason) = carried(of_job("no comment", busy_run.clone(), comment.clone())) else { panic!() };
    assert_eq!(reason, "no checkpoint was seen within 3 s");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_for("the second checkpoint", || (signals(&lab, busy).len() == 2).then_some(()));
            lab.run("scontrol", &["update", &format!("jobid={busy}"), "comment=step=900 checkpointed"]);
        });
        let longer = JobDeed::AskCheckpoint {
            signal: Signal::Usr1,
            reach: Reach::Batch,
            mark: Mark::Comment("checkpointed".to_owned()),
            within_s: 60,
        };
        assert_eq!(carried(of_job("comment", busy_run.clone(), longer)), Standing::SeenTrue);
    });

    // Requeued, it is another run: what was decided on the first isn't done to the second.
    assert_eq!(carried(of_job("requeue", busy_run.clone(), JobDeed::Requeue)), Standing::SeenTrue);
    assert!(refusal(carried(of_job("old run", busy_run.clone(), end(0)))).starts_with("it was requeued meanwhile"));
    let second = JobTarget { restarts: 1, ..busy_run };
    assert_eq!(refusal(carried(of_job("waits", second, end(0)))), "it isn't running: PENDING");

    // One task of an array whose own number is that of the array: the others go on.
    let array = submit(&lab, 0, &["-A", "research", "-w", "gpu2", "--gres=gpu:1", "--array=0-1", "-t", "10"]);
    let raw = |task: &str| {
        let name = format!("{array}_{task}");
        wait_for_state(&lab, &name, "RUNNING");
        lab.run("squeue", &["-h", "-j", &name, "-o", "%A"]).parse::<u64>().unwrap()
    };
    let tasks = [("0", raw("0")), ("1", raw("1"))];
    let (task, id) = tasks.into_iter().find(|(_, id)| *id == array).expect("the last task has the array's number");
    let at_once = JobDeed::End { first: None, grace_s: 0 };
    assert_eq!(carried(of_job("task", target(&lab, id, 0), at_once)), Standing::SeenTrue);
    wait_for_state(&lab, &format!("{array}_{task}"), "CANCELLED");
    let other = if task == "0" { "1" } else { "0" };
    assert_eq!(state(&lab, &format!("{array}_{other}")), "RUNNING");

    // Before and after are kept.
    let past = journal.past(&DecisionId::new("end")).unwrap();
    let state_of = |sight: &Sight| match sight {
        Sight::Job(job) => job.run.as_ref().unwrap().state.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(state_of(&past.tries[0].before), "RUNNING");
    assert_eq!(state_of(past.after.as_ref().unwrap()), "CANCELLED");
}
