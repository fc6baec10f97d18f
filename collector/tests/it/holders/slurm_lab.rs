//! A real Slurm: two nodes on this host with four cards each, jobs of two users.
//!
//! Skipped unless it runs as root and Slurm's programs are installed (`tests/slurm/slurm-lab.sh install`).

use cardhour_collector::holders::{
    Aliases, CardAlias, ControllerSettings, DeviceProcess, Look, LookInput, LookSettings, Looker, MapNumbers, Pods,
    ProcessKind, Scheduling, SlurmSettings,
};
use cardhour_collector::owners::Rules;
use cardhour_domain::{CardShare, Gap, Name, Reading, SeenDevice, Timestamp};
use cardhour_test_slurm::{Lab, can_run, wait_for};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Cards by their minor: `/dev/nvidia0` is `GPU-00000000`. The driver's order is the other way round.
const CARDS: u32 = 8;

fn uuid(minor: u32) -> Name {
    Name::from(format!("GPU-{minor:08}"))
}

fn looker_of(lab: &Lab, node: &str, with: With) -> Looker {
    let controller = ControllerSettings {
        slurm_conf: Some(lab.conf()),
        list_again_after: Duration::ZERO,
        timeout: Duration::from_secs(20),
        ..ControllerSettings::default()
    };
    let settings = LookSettings {
        cluster: "lab".into(),
        proc_root: "/proc".into(),
        sys_root: "/sys".into(),
        dev_root: "/dev".into(),
        getent: "getent".into(),
        getent_timeout: Duration::from_secs(20),
        own_pid: std::process::id(),
        scheduling: Scheduling::Scheduled,
        slurm: Some(SlurmSettings {
            nodes: vec![node.into()],
            gres_conf: lab.folder.join("etc/gres.conf"),
            map_folder: (with != With::ProcAlone).then(|| lab.folder.join("jobmap/%n")),
            map_numbers: MapNumbers::Slurm,
            controller: (with == With::All).then_some(controller),
        }),
        rules: Rules::from_table(
            &"labels = ['team']\n[[account]]\nname = 'research'\nproject = 'research'\nallowed = ['nlp']"
                .parse()
                .unwrap(),
        )
        .unwrap(),
    };
    Looker::new(settings).unwrap()
}

/// Which sources are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    All,
    MapAndProc,
    ProcAlone,
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_unix_ms(since.as_millis() as i64)
}

fn look(looker: &mut Looker, on_devices: &[(u32, u32)]) -> Look {
    let card = |minor: u32| SeenDevice {
        at: now(),
        node: "n".into(),
        cluster: "lab".into(),
        card_uuid: uuid(minor),
        device_uuid: uuid(minor),
        pci_bus_id: None,
        model: None,
        memory_bytes: None,
        driver: None,
        mig_mode: None,
        mig_profile: None,
        share: CardShare::CARD,
        power_limit_mw: None,
    };
    let alias = |minor: u32| CardAlias {
        card_uuid: uuid(minor),
        minor: Some(minor),
        nvml_index: Some(CARDS - 1 - minor),
        pci_bus_id: None,
    };
    let process = |(minor, pid): &(u32, u32)| DeviceProcess {
        card_uuid: uuid(*minor),
        device_uuid: uuid(*minor),
        pid: *pid,
        memory_bytes: Reading::Seen(1),
        kind: ProcessKind::Compute,
        work_weight: Reading::Missing(Gap::NotSupported),
    };
    let none = BTreeSet::new();
    looker.look(LookInput {
        at: now(),
        devices: &(0..CARDS).map(card).collect::<Vec<_>>(),
        aliases: &Aliases { cards: (0..CARDS).map(alias).collect(), instances: vec![] },
        processes: &on_devices.iter().map(process).collect::<Vec<_>>(),
        unlisted: &none,
        unwatched: &none,
        pods: &Pods::default(),
        given: vec![],
        vgpus: &[],
        odd: vec![],
    })
}

/// `minor job shown source user project`, a line a holding.
fn rows(look: &Look) -> Vec<String> {
    let row = |h: &cardhour_collector::holders::Held| {
        let minor: u32 = h.card_uuid["GPU-".len()..].parse().unwrap();
        let of = |name: &Option<Name>| name.clone().unwrap_or("-".into());
        let (shown, user, project) = (of(&h.holder.shown_id), of(&h.owner.user), of(&h.owner.project));
        format!("{minor} {} {shown} {} {user} {project}", h.holder.job_id, h.source.name())
    };
    look.held.iter().map(row).collect()
}

fn runs(look: &Look) -> Vec<String> {
    look.held.iter().map(|h| format!("{} {}", h.device_uuid, h.holder.key())).collect()
}

#[test]
fn jobs_of_a_real_slurm_are_found_with_their_cards_ids_and_accounts() {
    if !can_run("jobs_of_a_real_slurm_are_found_with_their_cards_ids_and_accounts") {
        return;
    }
    let lab = Lab::up();
    let (alice, bob) = (lab.user(0).to_owned(), lab.user(1).to_owned());
    let one = lab.submit(
        0,
        &["-A", "research", "-w", "gpu1", "--gres=gpu:1", "-t", "10", "-J", "x Account=prod UserId=root(0)"],
    );
    let one_pid = lab.pid(one);
    let two = lab
        .submit(1, &["-A", "prod", "-w", "gpu1", "--gres=gpu:2", "-t", "10", "--comment", "project=nlp,team=speech"]);
    let two_pid = lab.pid(two);

    // Every source: the controller's word counts, and who pays is what it says.
    let on_devices = [(0, one_pid), (1, two_pid)];
    let mut looker = looker_of(&lab, "gpu1", With::All);
    let first = look(&mut looker, &on_devices);
    let expected = |source: &str, projects: [&str; 2]| {
        let row =
            |minor: u32, job: u64, user: &str, project: &str| format!("{minor} {job} - {source} {user} {project}");
        vec![row(0, one, &alice, projects[0]), row(1, two, &bob, projects[1]), row(2, two, &bob, projects[1])]
    };
    assert_eq!(rows(&first), expected("scheduler", ["research", "prod"]), "{first:#?}");
    assert!(first.events.is_empty(), "{:?}", first.events);
    assert_eq!(first.watched.len(), CARDS as usize);
    // Bob's account isn't allowed the project he asked for; his label is let through.
    let owner = &first.held[1].owner;
    assert_eq!(
        (owner.refused_project.as_deref(), owner.labels.get("team").map(Name::as_str)),
        (Some("nlp"), Some("speech"))
    );
    assert_eq!(owner.queue.as_deref(), Some("gpu"));

    // Without the controller, and with nothing but processes, the cards are the same.
    let by_map = look(&mut looker_of(&lab, "gpu1", With::MapAndProc), &on_devices);
    assert_eq!(rows(&by_map), expected("prolog_map", ["-", "-"]));
    let by_proc = look(&mut looker_of(&lab, "gpu1", With::ProcAlone), &[]);
    assert_eq!(rows(&by_proc), expected("cgroup", ["-", "-"]));

    // A collector that starts now names all the same.
    assert_eq!(runs(&look(&mut looker_of(&lab, "gpu1", With::All), &on_devices)), runs(&first));
    assert_eq!(runs(&look(&mut looker_of(&lab, "gpu1", With::MapAndProc), &on_devices)), runs(&by_map));

    // A process on a card that was given to another.
    let foreign = look(&mut looker, &[(1, one_pid), (1, two_pid)]);
    assert_eq!(runs(&foreign), runs(&first));
    let details: Vec<String> = foreign.events.iter().map(|event| event.detail.to_string()).collect();
    assert_eq!(details, [format!("{one} uses it, and it was given to lab/{two}")]);

    // An array on the other node of this host, whose numbers begin at 0 again.
    let array = lab.submit(0, &["-A", "research", "-w", "gpu2", "--gres=gpu:1", "--array=3-4", "-t", "10"]);
    let mut other = looker_of(&lab, "gpu2", With::All);
    let both = wait_for("both tasks are held", || Some(look(&mut other, &[])).filter(|look| look.held.len() == 2));
    let mut shown: Vec<String> = both.held.iter().map(|h| h.holder.shown_id.clone().unwrap().to_string()).collect();
    shown.sort();
    assert_eq!(shown, [format!("{array}_3"), format!("{array}_4")]);
    assert_eq!(both.held.iter().map(|h| h.card_uuid.clone()).collect::<Vec<_>>(), [uuid(4), uuid(5)]);
    let ids: BTreeSet<&Name> = both.held.iter().map(|h| &h.holder.job_id).collect();
    assert_eq!(ids.len(), 2, "each task has a raw id of its own");

    // Requeued, a job is another attempt with the same id.
    lab.run("scontrol", &["requeue", &one.to_string()]);
    wait_for("the first run is over", || {
        look(&mut looker, &[]).held.iter().all(|h| *h.holder.job_id != one.to_string()).then_some(())
    });
    let state = || lab.run("squeue", &["-h", "-j", &one.to_string(), "-o", "%T"]);
    wait_for("it waits", || (state() == "PENDING").then_some(()));
    // Slurm waits two minutes by itself; a run that begins in the second in which the last one ended it refuses to launch.
    std::thread::sleep(Duration::from_secs(3));
    lab.run("scontrol", &["update", &format!("jobid={one}"), "StartTime=now"]);
    let again = wait_for("it runs again", || {
        look(&mut looker, &[]).held.iter().find(|h| *h.holder.job_id == one.to_string()).cloned()
    });
    assert_ne!(again.holder.key(), first.held[0].holder.key());
    assert_eq!(again.holder.key().job(), first.held[0].holder.key().job());

    // Cancelled, it holds nothing once its epilog is through.
    lab.run("scancel", &[&two.to_string()]);
    let left = wait_for("the cancelled job is gone", || {
        let look = look(&mut looker, &[]);
        look.held.iter().all(|h| *h.holder.job_id != two.to_string()).then_some(look)
    });
    assert_eq!(left.held.len(), 1);
    assert!(left.watched.contains(&uuid(1)), "free, and seen to be");

    // A map file that a crash left behind.
    std::fs::write(lab.folder.join("jobmap/gpu1/3"), format!("{two}\n")).unwrap();
    let stale = wait_for("the file is known to be stale", || {
        let look = look(&mut looker, &[]);
        look.events.iter().any(|event| event.kind.name() == "stale_map").then_some(look)
    });
    assert_eq!(stale.held.len(), 1);
}
