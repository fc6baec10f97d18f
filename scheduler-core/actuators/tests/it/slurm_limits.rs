//! Limits of a real Slurm's accounts: set, enforced, and set back.

use crate::stage::{action, carry, journal_in, state, submit, wait_for_state, worlds};
use cardhour_actuators::action::What;
use cardhour_actuators::journal::FileJournal;
use cardhour_actuators::past::Standing;
use cardhour_actuators::setting::{Aim, From};
use cardhour_actuators::slurm::{LimitAction, LimitHolder, LimitKind};
use cardhour_actuators::{Action, DecisionId};
use cardhour_test_slurm::{Lab, can_run, wait_for};

fn limit(decision: &str, holder: &LimitHolder, kind: LimitKind, aim: Aim) -> Action {
    let tres = "gres/gpu".to_owned();
    action(decision, What::SlurmLimit(LimitAction { holder: holder.clone(), kind, tres, aim }))
}

fn to(value: Option<u64>) -> Aim {
    Aim::Value { to: value, from: From::Anything }
}

fn back(decision: &str) -> Aim {
    Aim::AsBefore(DecisionId::new(decision))
}

#[test]
fn a_limit_of_a_real_slurm_changes_holds_the_next_job_and_comes_back() {
    if !can_run("a_limit_of_a_real_slurm_changes_holds_the_next_job_and_comes_back") {
        return;
    }
    let lab = Lab::up();
    let mut world = worlds(lab.conf());
    let folder = tempfile::tempdir().unwrap();
    let mut journal = FileJournal::open(&journal_in(folder.path())).unwrap();
    let mut carried = |action: Action| carry(&mut world, &mut journal, &action);
    let of_research = |field: &str| {
        lab.run("sacctmgr", &["-n", "-P", "show", "assoc", "account=research", "user=", &format!("format={field}")])
    };
    lab.run("sacctmgr", &["-i", "-Q", "modify", "account", "research", "set", "GrpTRES=cpu=64,gres/gpu=6"]);
    let cards = ["-A", "research", "--gres=gpu:3", "-t", "10"];
    let first = submit(&lab, 0, &cards).to_string();
    wait_for_state(&lab, &first, "RUNNING");

    let research = LimitHolder::Account("research".to_owned());
    let at_once = |decision, aim| limit(decision, &research, LimitKind::AllAtOnce, aim);
    // Decided on something that isn't so: nothing is changed.
    let wrong = Aim::Value { to: Some(2), from: From::Value(None) };
    assert!(matches!(carried(at_once("wrong", wrong)), Standing::Refused(reason) if reason.contains("somebody else")));
    assert_eq!(carried(at_once("lower", to(Some(2)))), Standing::SeenTrue);
    assert_eq!(of_research("GrpTRES"), "cpu=64,gres/gpu=2");
    // What runs goes on, what comes next waits for it.
    let second = submit(&lab, 0, &cards).to_string();
    let reason = || lab.run("squeue", &["-h", "-j", &second, "-o", "%r"]);
    wait_for("the limit holds it", || (reason() == "AssocGrpGRES").then_some(()));
    assert_eq!(state(&lab, &first), "RUNNING");
    assert_eq!(carried(at_once("restore", back("lower"))), Standing::SeenTrue);
    assert_eq!(of_research("GrpTRES"), "cpu=64,gres/gpu=6");
    wait_for_state(&lab, &second, "RUNNING");

    // Minutes below what was used would end both jobs here, without `safe`.
    let minutes = |decision, aim| limit(decision, &research, LimitKind::AllMinutes, aim);
    let refused = carried(minutes("minutes", to(Some(0))));
    assert!(matches!(refused, Standing::Refused(reason) if reason.contains("has no 'safe'")));
    assert_eq!(of_research("GrpTRESMins"), "");
    // Taking such a limit away never ends anything.
    lab.run("sacctmgr", &["-i", "-Q", "modify", "account", "research", "set", "GrpTRESMins=gres/gpu=100000"]);
    assert_eq!(carried(minutes("lift", to(None))), Standing::SeenTrue);
    assert_eq!(of_research("GrpTRESMins"), "");

    // One user, and a QOS: from no limit, and back to none.
    let user = LimitHolder::User { account: "research".to_owned(), user: lab.user(0).to_owned() };
    let qos = LimitHolder::Qos("normal".to_owned());
    for (name, holder, kind) in [("user", user, LimitKind::AllAtOnce), ("qos", qos, LimitKind::EachUser)] {
        assert_eq!(carried(limit(name, &holder, kind, to(Some(4)))), Standing::SeenTrue, "{name}");
        let restored = carried(limit(&format!("{name} back"), &holder, kind, back(name)));
        assert_eq!(restored, Standing::SeenTrue, "{name}");
    }
    let of_qos = lab.run("sacctmgr", &["-n", "-P", "show", "qos", "name=normal", "format=MaxTRESPerUser"]);
    assert_eq!(of_qos, "");
    let nobody = LimitHolder::Account("nobody".to_owned());
    let missing = carried(limit("nobody", &nobody, LimitKind::AllAtOnce, to(Some(1))));
    assert!(matches!(missing, Standing::Refused(reason) if reason.contains("nothing of that name")));
}

#[test]
fn minutes_of_a_real_slurm_are_lowered_where_it_enforces_limits_safely_and_the_job_goes_on() {
    if !can_run("minutes_of_a_real_slurm_are_lowered_where_it_enforces_limits_safely_and_the_job_goes_on") {
        return;
    }
    let lab = Lab::up_enforcing("associations,limits,qos,safe");
    let mut world = worlds(lab.conf());
    let folder = tempfile::tempdir().unwrap();
    let mut journal = FileJournal::open(&journal_in(folder.path())).unwrap();
    let mut carried = |action: Action| carry(&mut world, &mut journal, &action);
    let research = LimitHolder::Account("research".to_owned());
    let minutes = |decision, aim| limit(decision, &research, LimitKind::AllMinutes, aim);
    let cards = ["-A", "research", "--gres=gpu:3", "-t", "10"];
    let first = submit(&lab, 0, &cards).to_string();
    wait_for_state(&lab, &first, "RUNNING");

    assert_eq!(carried(minutes("spent", to(Some(0)))), Standing::SeenTrue);
    let second = submit(&lab, 0, &cards).to_string();
    let reason = || lab.run("squeue", &["-h", "-j", &second, "-o", "%r"]);
    wait_for("the limit holds it", || (reason() == "AssocGrpGRESMinutes").then_some(()));
    // Without `safe` it would be ended within the minute; `CARDHOUR_DAYS=full` waits for that.
    let is_full = std::env::var_os("CARDHOUR_DAYS").is_some_and(|days| days == "full");
    std::thread::sleep(std::time::Duration::from_secs(if is_full { 90 } else { 5 }));
    assert_eq!(state(&lab, &first), "RUNNING");
    assert_eq!(carried(minutes("next month", back("spent"))), Standing::SeenTrue);
    wait_for_state(&lab, &second, "RUNNING");

    // Changed after the controller started, the file may say what isn't in force.
    let conf = std::fs::File::options().append(true).open(lab.conf()).unwrap();
    conf.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(5)).unwrap();
    let refused = carried(minutes("later", to(Some(0))));
    assert!(matches!(refused, Standing::Refused(reason) if reason.contains("restart it")));
}
