use super::*;
use crate::holders::aliases::CardAlias;
use crate::holders::job_record::{NodeGres, parse_gres};

/// A node of four cards whose numbers in Slurm, minors and driver's order all differ: Slurm's 0, 1, 2, 3 are the cards a, b, c, d.
struct Site {
    cluster: Name,
    nodes: Vec<SlurmNode>,
    aliases: Aliases,
    shares: BTreeMap<Name, CardShare>,
    records: BTreeMap<u64, JobRecord>,
    listed: BTreeSet<u64>,
    map: Vec<(usize, MapLine)>,
    steps: Vec<StepSeen>,
    users: BTreeMap<u32, Name>,
    runs: Runs,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_s(seconds)
}

fn card(letter: char) -> DeviceId {
    DeviceId::card(&Name::from(format!("GPU-{letter}0000000")))
}

impl Site {
    fn new() -> Self {
        let cards = [('a', 4, 2), ('b', 5, 3), ('c', 0, 1), ('d', 1, 0)];
        let alias = |(letter, minor, index): (char, u32, u32)| CardAlias {
            card_uuid: card(letter).card_uuid,
            minor: Some(minor),
            nvml_index: Some(index),
            pci_bus_id: None,
        };
        let conf = "Name=gpu File=/dev/nvidia[4-5]\nName=gpu File=/dev/nvidia[0-1]\nName=shard Count=8\n";
        Self {
            cluster: "gpu".into(),
            nodes: vec![SlurmNode { name: "n1".into(), order: GresOrder::parse(conf, "n1") }],
            aliases: Aliases { cards: cards.map(alias).to_vec(), instances: vec![] },
            shares: cards.iter().map(|(letter, ..)| (card(*letter).card_uuid, CardShare::CARD)).collect(),
            records: BTreeMap::new(),
            listed: BTreeSet::new(),
            map: vec![],
            steps: vec![],
            users: BTreeMap::new(),
            runs: Runs::default(),
        }
    }

    fn record(&mut self, job_id: u64, start: i64, detail: &str) -> &mut JobRecord {
        self.listed.insert(job_id);
        let nodes = vec![NodeGres { node: "n1".into(), gres: parse_gres(detail) }];
        let record = JobRecord {
            job_id,
            started_at: Some(at(start)),
            account: Some("research".into()),
            user: Some("alice".into()),
            uid: Some(1001),
            is_holding: true,
            nodes,
            ..JobRecord::default()
        };
        self.records.entry(job_id).insert_entry(record).into_mut()
    }

    fn line(&mut self, job_id: u64, letter: char, written: i64) -> &mut MapLine {
        let line = MapLine {
            device: Some(card(letter)),
            file: "0".into(),
            job_id,
            sharers: 1,
            restarts: None,
            started_at: None,
            written_at: Some(at(written)),
            uid: None,
            account: None,
        };
        self.map.push((0, line));
        &mut self.map.last_mut().unwrap().1
    }

    fn step(&mut self, job_id: u64, start: i64, proof: HolderSource, environ: &str) {
        let environ = Environ::parse(format!("SLURM_JOB_ID={job_id} {environ}").replace(' ', "\0").as_bytes());
        let step = StepSeen {
            job_id,
            node: None,
            started_at: at(start),
            uid: Some(1001),
            user: Some("alice".into()),
            environ: Some(environ),
            proof,
        };
        self.steps.push(step);
    }

    /// Jobs as text: key, then each device with its source; and the events.
    fn jobs(&mut self) -> (Vec<String>, Vec<String>) {
        let sources = SlurmSources {
            cluster: &self.cluster,
            nodes: &self.nodes,
            aliases: &self.aliases,
            shares: &self.shares,
            records: &self.records,
            listed: &self.listed,
            map: &self.map,
            steps: &self.steps,
            users: &self.users,
        };
        let (jobs, events) = jobs(&sources, &mut self.runs);
        let shown = |job: &SlurmJob| {
            let device = |own: &SlurmDevice| format!(" {}:{}", &own.device.card_uuid[4..5], own.source.name());
            let devices: String = job.devices.iter().map(device).collect();
            format!("{}{devices}", job.holder.key())
        };
        (jobs.values().map(shown).collect(), events.iter().map(|event| event.detail.to_string()).collect())
    }
}

/// S16: four cards given, whatever is used of them.
#[test]
fn s16_all_cards_that_were_given_are_held() {
    let mut site = Site::new();
    site.record(7, 100, "gpu:h100:4(IDX:0-3)");
    assert_eq!(site.jobs().0, ["gpu/7/b100 a:scheduler b:scheduler c:scheduler d:scheduler"]);
}

/// S01: neither the driver's order nor the minor is Slurm's number.
#[test]
fn s01_numbers_of_slurm_lead_to_cards_by_their_files() {
    let mut site = Site::new();
    site.record(7, 100, "gpu:2(IDX:0,3)");
    site.step(8, 200, HolderSource::Cgroup, "SLURM_JOB_GPUS=1,2");
    let (jobs, events) = site.jobs();
    assert_eq!(jobs, ["gpu/7/b100 a:scheduler d:scheduler", "gpu/8/b200 b:cgroup c:cgroup"]);
    assert!(events.is_empty(), "{events:?}");
}

/// S02: `CUDA_VISIBLE_DEVICES=0` is a job's own first card, not the node's.
#[test]
fn s02_numbers_that_begin_anew_for_each_job_name_nothing() {
    let mut site = Site::new();
    site.step(7, 100, HolderSource::Cgroup, "CUDA_VISIBLE_DEVICES=0");
    site.step(8, 100, HolderSource::Cgroup, "CUDA_VISIBLE_DEVICES=0 SLURM_JOB_GPUS=2");
    assert_eq!(site.jobs().0, ["gpu/7/b100", "gpu/8/b100 c:cgroup"]);
}

/// S03: from 25.11 on variables hold UUIDs.
#[test]
fn s03_uuids_are_taken_beside_numbers_and_slurms_own_variable_comes_first() {
    let mut site = Site::new();
    site.step(7, 100, HolderSource::Cgroup, "CUDA_VISIBLE_DEVICES=GPU-a0000000,GPU-b0000000");
    site.step(8, 100, HolderSource::Cgroup, "SLURM_JOB_GPUS=GPU-c0000000 CUDA_VISIBLE_DEVICES=GPU-a0000000");
    site.step(9, 100, HolderSource::Cgroup, "SLURM_JOB_GPUS=GPU-zzzzzzzz");
    let (jobs, events) = site.jobs();
    assert_eq!(jobs, ["gpu/7/b100 a:cgroup b:cgroup", "gpu/8/b100 c:cgroup", "gpu/9/b100"]);
    assert_eq!(events, ["job 9 says it has \"GPU-zzzzzzzz\", which leads to no device"]);
}

/// `srun` hands the first node's `SLURM_JOB_GPUS` on to all nodes.
#[test]
fn on_another_node_than_the_first_the_steps_own_list_counts() {
    let mut site = Site::new();
    site.step(
        7,
        100,
        HolderSource::Cgroup,
        "SLURM_JOB_NUM_NODES=2 SLURM_NODEID=1 SLURM_JOB_GPUS=0,1 SLURM_STEP_GPUS=3",
    );
    assert_eq!(site.jobs().0, ["gpu/7/b100 d:cgroup"]);
}

#[test]
fn the_best_source_counts_and_what_others_say_beyond_it_is_told() {
    let mut site = Site::new();
    site.record(7, 100, "gpu:1(IDX:0)");
    site.line(7, 'a', 101);
    site.line(7, 'b', 101);
    site.step(7, 102, HolderSource::Process, "SLURM_JOB_GPUS=0,3");
    let (jobs, events) = site.jobs();
    assert_eq!(jobs, ["gpu/7/b100 a:scheduler"]);
    assert_eq!(
        events,
        ["job 7 has it by prolog_map, and not by scheduler", "job 7 has it by process, and not by scheduler"]
    );
}

/// S11, S19: what a collector that starts in the middle of a job finds is what it would have kept.
#[test]
fn s11_s19_a_new_collector_finds_the_same_key_cards_and_source() {
    let mut site = Site::new();
    site.record(7, 100, "gpu:2(IDX:0-1)");
    site.line(7, 'a', 101);
    site.line(7, 'b', 101);
    let first = site.jobs();
    let kept = site.jobs();
    site.runs = Runs::default();
    assert_eq!((&kept, &site.jobs()), (&first, &first));
    // With map files alone, too.
    site.records.clear();
    site.runs = Runs::default();
    let (jobs, _) = site.jobs();
    assert_eq!(jobs, ["gpu/7/b101 a:prolog_map b:prolog_map"]);
    site.runs = Runs::default();
    assert_eq!(site.jobs().0, jobs);
}

/// S10: the same id again is another attempt.
#[test]
fn s10_a_requeued_job_is_another_attempt_with_other_cards() {
    let mut site = Site::new();
    site.record(7, 100, "gpu:1(IDX:0)");
    assert_eq!(site.jobs().0, ["gpu/7/b100 a:scheduler"]);
    site.record(7, 300, "gpu:1(IDX:2)").restarts = Some(1);
    assert_eq!(site.jobs().0, ["gpu/7/b300 c:scheduler"]);
}

/// Seconds of KillWait and of the epilog are the attempt's own.
#[test]
fn s21_a_job_that_is_ending_still_holds_and_one_that_ended_does_not() {
    let mut site = Site::new();
    site.record(7, 100, "gpu:1(IDX:0)");
    assert_eq!(site.jobs().0.len(), 1);
    site.records.get_mut(&7).unwrap().is_holding = false;
    assert_eq!(site.jobs().0.len(), 0);
}

/// S12: both ids are kept; with 64 bits.
#[test]
fn s12_a_task_of_an_array_is_shown_as_people_know_it() {
    let mut site = Site::new();
    site.record(4_294_967_301, 100, "gpu:1(IDX:0)").shown_id = Some("22_2".into());
    site.step(8, 100, HolderSource::Cgroup, "SLURM_JOB_GPUS=1 SLURM_ARRAY_JOB_ID=5 SLURM_ARRAY_TASK_ID=3");
    let sources = site.jobs();
    assert_eq!(sources.0, ["gpu/8/b100 b:cgroup", "gpu/4294967301/b100 a:scheduler"]);
    let shown = |job: &Evidence<'_>| job.shown_id().map(|id| id.to_string());
    let sources = SlurmSources {
        cluster: &site.cluster,
        nodes: &site.nodes,
        aliases: &site.aliases,
        shares: &site.shares,
        records: &site.records,
        listed: &site.listed,
        map: &site.map,
        steps: &site.steps,
        users: &site.users,
    };
    assert_eq!(shown(&Evidence::of(4_294_967_301, &sources)).as_deref(), Some("22_2"));
    assert_eq!(shown(&Evidence::of(8, &sources)).as_deref(), Some("5_3"));
}

#[test]
fn shards_are_parts_of_their_card() {
    let mut site = Site::new();
    site.record(7, 100, "shard:1(IDX:0)");
    let (jobs, _) = {
        let sources = SlurmSources {
            cluster: &site.cluster,
            nodes: &site.nodes,
            aliases: &site.aliases,
            shares: &site.shares,
            records: &site.records,
            listed: &site.listed,
            map: &site.map,
            steps: &site.steps,
            users: &site.users,
        };
        jobs(&sources, &mut site.runs)
    };
    // Eight shards on four cards: two a card, of which the job has one.
    assert_eq!(jobs[&7].devices[0].share, Some(CardShare::from_fraction(1, 2).unwrap()));
}

/// Who pays comes from the controller or the prolog; an account in the environment is a user's word.
#[test]
fn an_account_in_the_environment_pays_nothing() {
    let mut site = Site::new();
    site.step(
        7,
        100,
        HolderSource::Cgroup,
        "SLURM_JOB_GPUS=0 SLURM_JOB_ACCOUNT=rich SLURM_JOB_USER=root SLURM_JOB_PARTITION=gpu",
    );
    let facts = |site: &Site, job| {
        let sources = SlurmSources {
            cluster: &site.cluster,
            nodes: &site.nodes,
            aliases: &site.aliases,
            shares: &site.shares,
            records: &site.records,
            listed: &site.listed,
            map: &site.map,
            steps: &site.steps,
            users: &site.users,
        };
        jobs(&sources, &mut Runs::default()).0[&job].facts.clone()
    };
    let of_environ = facts(&site, 7);
    assert_eq!(
        (of_environ.account, of_environ.user.as_deref(), of_environ.queue.as_deref()),
        (None, Some("alice"), Some("gpu"))
    );
    site.line(7, 'a', 101).account = Some("research".into());
    assert_eq!(facts(&site, 7).account.as_deref(), Some("research"));
    site.record(8, 100, "gpu:1(IDX:1)").comment = Some("team=nlp, project=speech".into());
    let labels: Vec<String> = facts(&site, 8).labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(labels, ["project=speech", "team=nlp"]);
}

/// S15: two nodes on one host, each with cards of its own.
#[test]
fn s15_each_node_of_a_host_has_its_own_numbers() {
    let mut site = Site::new();
    site.nodes = [("n1", "[4-5]"), ("n2", "[0-1]")]
        .map(|(name, files)| SlurmNode {
            name: name.into(),
            order: GresOrder::parse(&format!("Name=gpu File=/dev/nvidia{files}\n"), name),
        })
        .to_vec();
    site.step(7, 100, HolderSource::Cgroup, "SLURMD_NODENAME=n1 SLURM_JOB_GPUS=0");
    site.step(8, 100, HolderSource::Cgroup, "SLURMD_NODENAME=n2 SLURM_JOB_GPUS=0");
    site.step(9, 100, HolderSource::Cgroup, "SLURM_JOB_GPUS=0");
    site.record(10, 100, "gpu:1(IDX:1)").nodes[0].node = "n2".into();
    let (jobs, _) = site.jobs();
    assert_eq!(jobs, ["gpu/7/b100 a:cgroup", "gpu/8/b100 c:cgroup", "gpu/9/b100", "gpu/10/b100 d:scheduler"]);
}

#[test]
fn a_process_that_says_it_is_of_another_job_is_not_believed() {
    let mut site = Site::new();
    site.step(7, 100, HolderSource::Cgroup, "SLURM_JOB_GPUS=0");
    site.steps[0].environ = Some(Environ::parse(b"SLURM_JOB_ID=9\0SLURM_JOB_GPUS=0,1,2,3"));
    let (jobs, events) = site.jobs();
    assert_eq!(jobs, ["gpu/7/b100"]);
    assert_eq!(events, ["a process of job 7 says it is of job 9"]);
    site.record(8, 100, "gpu:1(IDX:0)").uid = Some(5);
    site.step(8, 101, HolderSource::Cgroup, "");
    assert!(site.jobs().1.iter().any(|event| event == "job 8 is user 5's, and its processes are user 1001's"));
}
