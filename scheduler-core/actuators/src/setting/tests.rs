use super::*;
use crate::action::{Action, What};
use crate::journal::{Entry, Event, Pasts};
use crate::past::Try;
use crate::slurm::{LimitAction, LimitHolder, LimitKind};

fn at(second: i64) -> Timestamp {
    Timestamp::from_unix_s(1_000_000 + second)
}

fn known(value: Option<u64>) -> SettingSight {
    SettingSight { value: Some(Value::Known(value)), not_lowered: None, not_changed: None }
}

fn action(decision: &str, aim: Aim) -> Action {
    let holder = LimitHolder::Account("research".into());
    let what = What::SlurmLimit(LimitAction { holder, kind: LimitKind::AllAtOnce, tres: "gres/gpu".into(), aim });
    Action { decision: DecisionId::new(decision), tenant: None, what, deadline: at(600) }
}

fn value(to: Option<u64>, from: From) -> Aim {
    Aim::Value { to, from }
}

fn past(tries: Vec<(i64, Option<u64>, Option<Answer>)>) -> Past {
    let tries = tries.into_iter().map(|(second, before, answer)| Try {
        step: Step::Set(Some(4)),
        at: at(second),
        before: Sight::Setting(known(before)),
        answer,
    });
    Past { tries: tries.collect(), ..Past::planned(action("d1", value(Some(4), From::Anything))) }
}

fn check(from: From, sight: &SettingSight, tries: Vec<(i64, Option<u64>, Option<Answer>)>, second: i64) -> Next {
    next(&Change { to: Some(4), from }, sight, &past(tries), at(second))
}

#[test]
fn a_setting_is_set_once_and_true_when_it_is_seen_everywhere() {
    let taken = || vec![(0, Some(8), Some(Answer::Taken))];
    assert_eq!(check(From::Anything, &known(Some(8)), vec![], 0), Next::Do(Step::Set(Some(4))));
    assert_eq!(check(From::Anything, &known(Some(4)), taken(), 1), Next::True);
    // It was so already: nothing is done.
    assert_eq!(check(From::Anything, &known(Some(4)), vec![], 0), Next::True);
    let on_its_way = SettingSight { value: Some(Value::OnItsWay(Some(4))), ..known(None) };
    assert_eq!(check(From::Anything, &on_its_way, taken(), 60), Next::Wait(at(75)));
    assert_eq!(check(From::Anything, &known(Some(8)), taken(), 1), Next::Wait(at(15)));
    assert_eq!(check(From::Anything, &known(Some(8)), taken(), 15), Next::Do(Step::Set(Some(4))));
    // Killed before the command: at once.
    assert_eq!(check(From::Anything, &known(Some(8)), vec![(0, Some(8), None)], 1), Next::Do(Step::Set(Some(4))));
}

#[test]
fn a_setting_that_somebody_else_changed_is_left_alone() {
    let refused = Next::Refuse("somebody else set it: it is 6, not 8".into());
    assert_eq!(check(From::Value(Some(8)), &known(Some(6)), vec![], 0), refused);
    let none = Next::Refuse("somebody else set it: it is no limit, not 8".into());
    assert_eq!(check(From::Value(Some(8)), &known(None), vec![], 0), none);
    let taken = vec![(0, Some(8), Some(Answer::Taken))];
    let given_up = Next::GiveUp("somebody else set it: it is 6, not 8".into());
    assert_eq!(check(From::Anything, &known(Some(6)), taken, 20), given_up);
}

#[test]
fn a_limit_that_could_end_what_runs_is_never_lowered_and_may_be_raised() {
    let unsafe_here = |value| SettingSight { not_lowered: Some("no".into()), ..known(value) };
    assert_eq!(check(From::Anything, &unsafe_here(Some(8)), vec![], 0), Next::Refuse("no".into()));
    assert_eq!(check(From::Anything, &unsafe_here(None), vec![], 0), Next::Refuse("no".into()));
    assert_eq!(check(From::Anything, &unsafe_here(Some(3)), vec![], 0), Next::Do(Step::Set(Some(4))));
    let lifted = Change { to: None, from: From::Anything };
    assert_eq!(next(&lifted, &unsafe_here(Some(3)), &past(vec![]), at(0)), Next::Do(Step::Set(None)));
    let not_here = SettingSight { not_changed: Some("none is enforced".into()), ..known(Some(3)) };
    assert_eq!(check(From::Anything, &not_here, vec![], 0), Next::Refuse("none is enforced".into()));
    let nowhere = SettingSight { value: None, ..known(None) };
    assert!(matches!(check(From::Anything, &nowhere, vec![], 0), Next::Refuse(_)));
}

#[test]
fn what_is_taken_back_is_what_the_journal_has_from_before() {
    let mut journal = Pasts::default();
    let mut note = |second, event| {
        journal.fold(Entry { decision: DecisionId::new("d1"), at: at(second), event }).unwrap();
    };
    note(0, Event::Planned(action("d1", value(Some(4), From::Anything))));
    note(0, Event::Trying { step: Step::Set(Some(4)), before: Sight::Setting(known(None)) });
    note(1, Event::Tried(Answer::Taken));
    // Tried once more: what was before the first counts.
    note(20, Event::Trying { step: Step::Set(Some(4)), before: Sight::Setting(known(Some(4))) });
    let change = change_of(&Aim::AsBefore(DecisionId::new("d1")), &journal);
    assert_eq!(change, Ok(Change { to: None, from: From::Value(Some(4)) }));
    assert!(change_of(&Aim::AsBefore(DecisionId::new("d2")), &journal).unwrap_err().contains("nothing is known"));
    let planned = Event::Planned(action("d3", value(Some(4), From::Anything)));
    journal.fold(Entry { decision: DecisionId::new("d3"), at: at(0), event: planned }).unwrap();
    assert!(change_of(&Aim::AsBefore(DecisionId::new("d3")), &journal).unwrap_err().contains("changed nothing"));
}
