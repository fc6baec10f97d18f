use super::*;
use std::io::Write;
use std::process::Stdio;

/// As 22.05 prints it.
fn config(enforce: &str) -> String {
    format!(
        "Configuration data as of 2026-11-30T15:57:10\nAccountingStorageEnforce = {enforce}\nBOOT_TIME               = 1796054163\n\
         ClusterName             = lab\nEnforcePartLimits       = NO\nSLURM_CONF              = /etc/slurm/slurm.conf\n"
    )
}

fn limit(holder: LimitHolder, kind: LimitKind) -> LimitAction {
    let aim = Aim::Value { to: Some(1), from: crate::setting::From::Anything };
    LimitAction { holder, kind, tres: "gres/gpu".into(), aim }
}

fn account() -> LimitHolder {
    LimitHolder::Account("research".into())
}

#[test]
fn minutes_are_lowered_only_where_limits_are_enforced_safely() {
    let of = |enforce: &str| Enforcement::parse(&config(enforce)).unwrap();
    let lowered = |enforce: &str, changed| of(enforce).not_lowered(LimitKind::AllMinutes, changed);
    let reason = lowered("associations,limits,qos", None).unwrap();
    assert_eq!(
        reason,
        "GrpTRESMins below what was used would end running jobs: AccountingStorageEnforce=associations,limits,qos has no 'safe'"
    );
    assert_eq!(lowered("associations,limits,qos,safe", Some(1_796_054_163)), None);
    assert_eq!(lowered("ALL", None), None);
    // Shown after `scontrol reconfigure`, and only in force after a restart.
    assert!(lowered("associations,limits,qos,safe", Some(1_796_054_164)).unwrap().contains("restart it"));
    assert_eq!(of("associations,limits").not_lowered(LimitKind::AllAtOnce, None), None);
}

#[test]
fn q16_a_limit_that_nobody_enforces_is_refused() {
    let of = |enforce: &str, action: &LimitAction| Enforcement::parse(&config(enforce)).unwrap().not_changed(action);
    let at_once = limit(account(), LimitKind::AllAtOnce);
    let reason = of("associations", &at_once).unwrap();
    assert_eq!(reason, "no limit is enforced here: AccountingStorageEnforce=associations");
    assert!(of("(null)", &at_once).is_some());
    assert_eq!(of("associations,limits", &at_once), None);
    let qos = limit(LimitHolder::Qos("normal".into()), LimitKind::EachUser);
    assert!(of("associations,limits", &qos).unwrap().contains("no QOS is enforced"));
    assert_eq!(of("associations,limits,qos", &qos), None);
    assert!(of("all", &limit(account(), LimitKind::EachUser)).unwrap().contains("of a QOS alone"));
    assert!(Enforcement::parse("").is_err());
}

#[test]
fn an_amount_is_that_of_its_own_resource_and_absent_is_no_limit() {
    assert_eq!(amount("cpu=100,gres/gpu=3", "gres/gpu"), Ok(Some(3)));
    assert_eq!(amount("cpu=100,gres/gpu:h100=3", "gres/gpu"), Ok(None));
    assert_eq!(amount("gres/gpu=0", "gres/gpu"), Ok(Some(0)));
    assert_eq!(amount("cpu=N(5),gres/gpu=3(5),gres/gpu:h100=N(5)", "gres/gpu"), Ok(Some(3)));
    assert_eq!(amount("cpu=N(5),gres/gpu=N(5)", "gres/gpu"), Ok(None));
    assert_eq!(amount("", "gres/gpu"), Ok(None));
    assert!(amount("gres/gpu=many", "gres/gpu").is_err());
}

/// A Slurm whose commands are scripts: what they print, and a note of how they were called.
fn scripted(folder: &std::path::Path, sacctmgr: &str, assoc_mgr: &str) -> Slurm {
    let script = |name: &str, text: String| {
        let path = folder.join(name);
        // Written by another program: while this one has it open for writing, a test beside it may start a child that holds it, and it can't be run.
        let mut writer = std::process::Command::new("sh");
        let mut writer =
            writer.args(["-c", "cat > \"$0\"; chmod 755 \"$0\""]).arg(&path).stdin(Stdio::piped()).spawn().unwrap();
        writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(writer.wait().unwrap().success());
        path
    };
    let config = config("associations,limits,qos");
    let log = folder.join("called").display().to_string();
    let scontrol =
        format!("#!/bin/sh\ncase \"$*\" in *config*) cat <<'E'\n{config}E\n;; *) cat <<'E'\n{assoc_mgr}\nE\n;; esac\n");
    let settings = super::super::SlurmSettings {
        scontrol: script("scontrol", scontrol),
        sacctmgr: script("sacctmgr", format!("#!/bin/sh\necho \"$@\" >> {log}\ncat <<'E'\n{sacctmgr}\nE\n")),
        ..super::super::SlurmSettings::default()
    };
    Slurm::new(settings)
}

#[test]
fn a_limit_is_known_once_the_controller_has_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "research|||cpu=100,gres/gpu=3\nresearch|alice||";
    let line = |amount: &str| {
        format!(
            "Association Records\nClusterName=lab Account=research UserName=alice(1002) Partition= Priority=0 GrpTRES=gres/gpu=9(1) \
             GrpTRESMins=gres/gpu=N(0)\nClusterName=lab Account=research UserName= Partition= Priority=0 GrpTRES=cpu=100(5),gres/gpu={amount}(5) \
             GrpTRESMins=cpu=N(0),gres/gpu=7(2)"
        )
    };
    let at_once = limit(account(), LimitKind::AllAtOnce);
    let slurm = scripted(folder.path(), rows, &line("3"));
    assert_eq!(slurm.look_at_limit(&at_once).unwrap().value, Some(Value::Known(Some(3))));
    let slurm = scripted(folder.path(), rows, &line("5"));
    assert_eq!(slurm.look_at_limit(&at_once).unwrap().value, Some(Value::OnItsWay(Some(3))));
    let nobody = limit(LimitHolder::Account("nobody".into()), LimitKind::AllAtOnce);
    assert_eq!(slurm.look_at_limit(&nobody).unwrap().value, None);
}

#[test]
fn no_limit_is_written_as_minus_one_in_the_cluster_of_the_controller() {
    let folder = tempfile::tempdir().unwrap();
    let slurm = scripted(folder.path(), "", "");
    let user = LimitHolder::User { account: "research".into(), user: "alice".into() };
    slurm.set_limit(&limit(account(), LimitKind::AllAtOnce), &Step::Set(Some(0))).unwrap();
    slurm.set_limit(&limit(user, LimitKind::AllMinutes), &Step::Set(None)).unwrap();
    slurm.set_limit(&limit(LimitHolder::Qos("normal".into()), LimitKind::EachUser), &Step::Set(Some(4))).unwrap();
    let called = std::fs::read_to_string(folder.path().join("called")).unwrap();
    assert_eq!(
        called,
        "-i -Q modify account where name=research cluster=lab set GrpTRES=gres/gpu=0\n\
         -i -Q modify user where name=alice account=research cluster=lab set GrpTRESMins=gres/gpu=-1\n\
         -i -Q modify qos where name=normal set MaxTRESPerUser=gres/gpu=4\n"
    );
}

#[test]
fn a_name_that_would_change_a_command_is_never_written_into_one() {
    for name in ["a,b", "a b", "a=b", "-i", "", "a;b"] {
        let action = limit(LimitHolder::Account(name.into()), LimitKind::AllAtOnce);
        let looked = Slurm::new(super::super::SlurmSettings::default()).look_at_limit(&action);
        assert!(matches!(looked, Err(Trouble::NotHere(_))), "{name:?}");
    }
    assert!(is_plain("research-2_x.y") && is_plain("gres/gpu:h100"));
}
