use super::*;

/// A task of an array on two nodes, as 22.05 prints it with SLURM_TIME_FORMAT=%s; written by hand.
const ARRAY_TASK: &str = "JobId=24 ArrayJobId=22 ArrayTaskId=2 JobName=train all
   UserId=gmalice(1001) GroupId=gmalice(1001) MCS_label=N/A
   Priority=10500 Nice=0 Account=research QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=1 BatchFlag=1 Reboot=0 ExitCode=0:0
   DerivedExitCode=0:0
   RunTime=00:00:07 TimeLimit=UNLIMITED TimeMin=N/A
   SubmitTime=1700000000 EligibleTime=1700000000
   AccrueTime=1700000000
   StartTime=1700000100 EndTime=1700000700 Deadline=N/A
   Partition=gpu AllocNode:Sid=host:1
   NodeList=gpu[1-3]
   BatchHost=gpu1
   NumNodes=3 NumCPUs=3 NumTasks=3 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu=3,mem=300M,node=3,billing=3,gres/gpu=5,gres/gpu:h100=5
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   JOB_GRES=gpu:h100:5
     Nodes=gpu1 CPU_IDs=0 Mem=100 GRES=gpu:h100:1(IDX:3)
     Nodes=gpu[2-3] CPU_IDs=0 Mem=100 GRES=gpu:h100:2(IDX:0-1)
   MinCPUsNode=1 MinMemoryCPU=100M MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)
   Command=/home/gmalice/job.sh
   WorkDir=/home/gmalice
   Comment=team=nlp,project=speech
   Power=
";

#[test]
fn s12_a_task_of_an_array_keeps_both_ids_and_an_unlimited_time_is_no_fault() {
    let (jobs, doubtful) = parse(ARRAY_TASK);
    assert!(doubtful.is_empty());
    let job = &jobs[0];
    assert_eq!((job.job_id, job.shown_id.as_deref()), (24, Some("22_2")));
    assert_eq!((job.user.as_deref(), job.uid, job.account.as_deref()), (Some("gmalice"), Some(1001), Some("research")));
    assert_eq!((job.qos.as_deref(), job.partition.as_deref(), job.restarts), (Some("normal"), Some("gpu"), Some(1)));
    assert_eq!(job.started_at, Some(Timestamp::from_unix_s(1_700_000_100)));
    assert_eq!(job.comment.as_deref(), Some("team=nlp,project=speech"));
    assert!(job.is_holding);
}

#[test]
fn s12_ids_beyond_32_bits_are_read() {
    let (jobs, _) = parse(&ARRAY_TASK.replace("JobId=24 ", "JobId=4294967301 "));
    assert_eq!(jobs[0].job_id, 4_294_967_301);
}

#[test]
fn each_node_has_its_own_positions() {
    let (jobs, _) = parse(ARRAY_TASK);
    let positions = |node: &str| -> Vec<usize> {
        let gres = &jobs[0].on_node(node).unwrap().gres;
        gres.iter().flat_map(|gres| &gres.positions).map(|(position, _)| *position).collect()
    };
    assert_eq!((positions("gpu1"), positions("gpu2"), positions("gpu3")), (vec![3], vec![0, 1], vec![0, 1]));
    assert!(jobs[0].on_node("gpu4").is_none());
}

#[test]
fn a_users_words_change_nothing_about_who_pays() {
    // In the name, on its line: not read.
    let named = ARRAY_TASK.replace("JobName=train all", "JobName=x Account=rich UserId=root(0)");
    assert_eq!(parse(&named).0[0].account.as_deref(), Some("research"));
    // In a name of several lines, or after the comment: two accounts, so neither is believed.
    for forged in [
        ARRAY_TASK.replace("JobName=train all", "JobName=x\n   Account=rich"),
        ARRAY_TASK.replace("Power=", "Account=rich"),
        ARRAY_TASK.replace(
            "JobName=train all",
            "JobName=x\n   JOB_GRES=gpu:4\n     Nodes=gpu1 CPU_IDs=0 GRES=gpu:4(IDX:0-3)",
        ),
    ] {
        assert_eq!(parse(&forged), (vec![], vec![24]), "{forged}");
    }
    // A line of nodes that belongs to no list of devices isn't one.
    let (jobs, _) = parse(
        &ARRAY_TASK.replace("JobName=train all", "JobName=x\n     Nodes=gpu1 CPU_IDs=0 GRES=gpu:h100:4(IDX:0-3)"),
    );
    assert_eq!(jobs[0].on_node("gpu1").unwrap().gres[0].count, 1);
}

#[test]
fn several_jobs_a_sluid_and_a_part_of_a_heterogeneous_job_are_read() {
    let het = "JobId=20 SLUID=s5K1KKYAYG5D00 HetJobId=19 HetJobOffset=1 JobName=x\n   UserId=gmbob(1002) GroupId=x(1)\n   JobState=COMPLETING Reason=None\n   StartTime=Unknown EndTime=Unknown\n";
    let (jobs, _) = parse(&format!("{ARRAY_TASK}\n{het}\n"));
    assert_eq!(jobs.len(), 2);
    assert_eq!((jobs[1].shown_id.as_deref(), jobs[1].sluid.as_deref()), (Some("19+1"), Some("s5K1KKYAYG5D00")));
    assert_eq!((jobs[1].started_at, jobs[1].is_holding), (None, true));
    assert_eq!(parse("No jobs in the system\n"), (vec![], vec![]));
}
