use super::*;
use crate::action::What;
use crate::journal::Event;
use crate::next::Step;
use crate::past::{Answer, Standing};
use crate::sight::Sight;
use crate::signal::Signal;
use crate::slurm::{JobAction, JobDeed, JobSight, JobTarget, Reach, RunSight};

fn at(second: i64) -> Timestamp {
    Timestamp::from_unix_s(1_796_054_400 + second)
}

fn action(decision: &str) -> Action {
    let job = JobTarget { id: 7, user: "alice".into(), restarts: 0, started_at: Some(at(-60)) };
    let deed = JobDeed::End { first: Some((Signal::Term, Reach::Batch)), grace_s: 60 };
    let what = What::SlurmJob(JobAction { job, deed });
    Action { decision: DecisionId::new(decision), tenant: Some("nlp".into()), what, deadline: at(600) }
}

fn entry(decision: &str, second: i64, event: Event) -> Entry {
    Entry { decision: DecisionId::new(decision), at: at(second), event }
}

fn trying() -> Event {
    let run = RunSight {
        name: "7".into(),
        state: "RUNNING".into(),
        user: "alice".into(),
        restarts: 0,
        started_at: Some(at(-60)),
        is_batch: true,
        led_by: None,
    };
    let before = Sight::Job(JobSight { run: Some(run), mark: None });
    Event::Trying { step: Step::Signal(Signal::Term), before }
}

#[test]
fn what_was_recorded_is_there_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("actions.jsonl");
    let mut journal = FileJournal::open(&path).unwrap();
    for event in [Event::Planned(action("d1")), trying(), Event::Tried(Answer::Taken)] {
        journal.record(entry("d1", 0, event)).unwrap();
    }
    journal.record(entry("d2", 1, Event::Planned(action("d2")))).unwrap();
    let over = Event::Over { standing: Standing::Refused("gone".into()), after: None };
    journal.record(entry("d2", 2, over)).unwrap();
    // Nobody else writes into it meanwhile.
    assert!(matches!(FileJournal::open(&path), Err(JournalError::Locked { .. })));
    let before = journal.pasts.clone();
    drop(journal);
    let journal = FileJournal::open(&path).unwrap();
    assert_eq!(journal.pasts, before);
    assert_eq!(journal.open(), [action("d1")]);
    assert_eq!(journal.past(&DecisionId::new("d2")).unwrap().standing, Standing::Refused("gone".into()));
    assert_eq!((journal.begun_since(at(0), None), journal.begun_since(at(1), None)), (1, 0));
    assert_eq!((journal.begun_since(at(0), Some("nlp")), journal.begun_since(at(0), Some("x"))), (1, 0));
}

#[test]
fn a_line_that_was_cut_off_is_taken_away_and_a_broken_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("actions.jsonl");
    let mut journal = FileJournal::open(&path).unwrap();
    journal.record(entry("d1", 0, Event::Planned(action("d1")))).unwrap();
    drop(journal);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, [&whole[..], b"{\"decision\":\"d1\",\"at\""].concat()).unwrap();
    let mut journal = FileJournal::open(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), whole);
    journal.record(entry("d1", 1, trying())).unwrap();
    drop(journal);
    assert_eq!(FileJournal::open(&path).unwrap().past(&DecisionId::new("d1")).unwrap().tries.len(), 1);
    std::fs::write(&path, [&whole[..], b"oops\n"].concat()).unwrap();
    assert!(matches!(FileJournal::open(&path), Err(JournalError::Line { line: 2, .. })));
}

#[test]
fn an_entry_that_cannot_come_there_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("actions.jsonl");
    let mut journal = FileJournal::open(&path).unwrap();
    let mut refused = |event| {
        let entry = entry("d1", 0, event);
        assert!(matches!(journal.record(entry), Err(JournalError::OutOfOrder { .. })));
    };
    refused(trying());
    refused(Event::Planned(action("d2")));
    journal.record(entry("d1", 0, Event::Planned(action("d1")))).unwrap();
    let mut refused = |event| {
        let entry = entry("d1", 0, event);
        assert!(matches!(journal.record(entry), Err(JournalError::OutOfOrder { .. })));
    };
    refused(Event::Tried(Answer::Taken));
    refused(Event::Planned(action("d1")));
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1);
}

/// Journals of earlier versions are read by later ones: this line is never changed.
#[test]
fn a_line_of_the_journal_is_read_for_ever() {
    let line = r#"{"decision":"d1","at":"2026-11-30T16:00:00Z","event":{"planned":{"decision":"d1","tenant":"nlp","what":{"slurm_job":{"job":{"id":7,"user":"alice","restarts":0,"started_at":"2026-11-30T15:59:00Z"},"deed":{"end":{"first":["TERM","batch"],"grace_s":60}}}},"deadline":"2026-11-30T16:10:00Z"}}}"#;
    let planned = entry("d1", 0, Event::Planned(action("d1")));
    assert_eq!(serde_json::from_str::<Entry>(line).unwrap(), planned);
    assert_eq!(serde_json::to_string(&planned).unwrap(), line);
    let line = r#"{"decision":"d1","at":"2026-11-30T16:00:01Z","event":{"trying":{"step":{"signal":"TERM"},"before":{"job":{"run":{"name":"7","state":"RUNNING","user":"alice","restarts":0,"started_at":"2026-11-30T15:59:00Z","is_batch":true}}}}}}"#;
    assert_eq!(serde_json::to_string(&entry("d1", 1, trying())).unwrap(), line);
    assert_eq!(serde_json::from_str::<Entry>(line).unwrap(), entry("d1", 1, trying()));
}
