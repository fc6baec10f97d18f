use super::*;
use cardhour_domain::{CardShare, Holder, HolderKind, Owner};

fn device(text: &str) -> DeviceId {
    // `a` is a card, `a.1` an instance of it.
    DeviceId { card_uuid: text.split('.').next().unwrap().into(), device_uuid: text.into() }
}

fn holder(id: &str) -> Holder {
    Holder {
        kind: HolderKind::SlurmJob,
        cluster: "c".into(),
        job_id: id.into(),
        shown_id: None,
        run: "b1".into(),
        started_at: None,
    }
}

fn given(id: &str, on: &str, source: HolderSource, share: Option<u32>) -> Held {
    let DeviceId { card_uuid, device_uuid } = device(on);
    let share = share.map(|of| CardShare::from_fraction(1, of).unwrap());
    Held { card_uuid, device_uuid, share, source, holder: holder(id), owner: Owner::default() }
}

fn occupant(id: &str, on: &str, weight: Option<u64>) -> Occupant {
    let DeviceId { card_uuid, device_uuid } = device(on);
    Occupant {
        process: DeviceProcess {
            card_uuid,
            device_uuid,
            pid: 1,
            memory_bytes: Reading::Seen(100),
            kind: ProcessKind::Compute,
            work_weight: weight.map_or(Reading::Missing(Gap::NotSupported), Reading::Seen),
        },
        claimant: Claimant { holder: holder(id), owner: Owner::default() },
        source: HolderSource::Process,
        is_alive: true,
    }
}

struct Case {
    given: Vec<Held>,
    occupants: Vec<Occupant>,
    known: &'static [&'static str],
    scheduling: Scheduling,
}

/// Rows as text: `device holder source share labels`; then work as `device holder processes weight memory`; then events.
fn run(case: Case) -> (Vec<String>, Vec<String>, Vec<String>) {
    let known = case.known.iter().map(|id| holder(id).key()).collect();
    let doing = BTreeMap::new();
    let unlisted = BTreeSet::new();
    let (held, worked, events) = join(Sources {
        given: case.given,
        occupants: &case.occupants,
        given_known: &known,
        doing: &doing,
        scheduling: case.scheduling,
        unlisted: &unlisted,
    });
    let held = held.iter().map(|h| {
        let share = h.share.map_or("-".to_owned(), |share| share.cards().normalize().to_string());
        let labels: String = h.owner.labels.iter().map(|(k, v)| format!(" {k}={v}")).collect();
        format!("{} {} {} {share}{labels}", h.device_uuid, h.holder.job_id, h.source.name())
    });
    let worked = worked.iter().map(|w| {
        let number = |reading: Reading<u64>| reading.seen().map_or("-".to_owned(), |n| n.to_string());
        let memory = w.mem_used_bytes.map(|bytes| bytes as u64);
        let job = w.holder.job().rsplit('/').next().unwrap().to_owned();
        format!("{} {job} {} {} {}", w.device_uuid, w.processes, number(w.work_weight), number(memory))
    });
    (
        held.collect(),
        worked.collect(),
        events.iter().map(|event| format!("{} {}", event.kind.name(), event.detail)).collect(),
    )
}

/// K14, K21: the same device in several containers, or told by several sources, is held once.
#[test]
fn k14_k21_the_best_source_counts_once_a_holder_and_device() {
    let case = Case {
        given: vec![
            given("7", "a", HolderSource::PrologMap, None),
            given("7", "a", HolderSource::Scheduler, Some(1)),
            given("7", "a", HolderSource::Cgroup, None),
            given("pod", "b", HolderSource::Kubelet, Some(4)),
            given("pod", "b", HolderSource::Kubelet, Some(4)),
        ],
        occupants: vec![],
        known: &[],
        scheduling: Scheduling::Scheduled,
    };
    assert_eq!(run(case).0, ["a 7 scheduler 1", "b pod kubelet 0.25"]);
}

/// K01: four pods with a replica each of one card are four holders.
#[test]
fn k01_holders_of_one_device_stay_apart() {
    let four = ["p1", "p2", "p3", "p4"].map(|pod| given(pod, "a", HolderSource::Kubelet, Some(4)));
    let case = Case { given: four.to_vec(), occupants: vec![], known: &[], scheduling: Scheduling::Scheduled };
    let rows = run(case).0;
    assert_eq!(rows, ["a p1 kubelet 0.25", "a p2 kubelet 0.25", "a p3 kubelet 0.25", "a p4 kubelet 0.25"]);
}

/// K07: a process on a device that nobody gave holds it, and is marked.
#[test]
fn k07_who_was_given_nothing_is_marked_where_a_scheduler_gives() {
    let case =
        |scheduling| Case { given: vec![], occupants: vec![occupant("docker", "a", None)], known: &[], scheduling };
    assert_eq!(run(case(Scheduling::Scheduled)).0, ["a docker process - allocated_by=nobody"]);
    assert_eq!(run(case(Scheduling::Open)).0, ["a docker process -"]);
}

#[test]
fn a_holder_on_a_device_that_it_was_not_given_is_foreign() {
    // On another's device it holds nothing, but its work is its own.
    let case = Case {
        given: vec![
            given("7", "a", HolderSource::Scheduler, Some(1)),
            given("8", "b", HolderSource::Scheduler, Some(1)),
        ],
        occupants: vec![occupant("8", "a", Some(5)), occupant("7", "a", Some(15))],
        known: &["7", "8"],
        scheduling: Scheduling::Scheduled,
    };
    let (held, worked, events) = run(case);
    assert_eq!(held, ["a 7 scheduler 1", "b 8 scheduler 1"]);
    assert_eq!(worked, ["a 7 1 750000 100", "a 8 1 250000 100"]);
    assert_eq!(events, ["foreign_process 8 uses it, and it was given to c/7"]);
    // On a device that nobody was given it is told, held by it, and marked.
    let case = Case {
        given: vec![given("8", "b", HolderSource::Scheduler, Some(1))],
        occupants: vec![occupant("8", "a", None)],
        known: &["8"],
        scheduling: Scheduling::Scheduled,
    };
    let (held, _, events) = run(case);
    assert_eq!(held, ["a 8 process - allocated_by=nobody", "b 8 scheduler 1"]);
    assert_eq!(events, ["foreign_process 8 uses it, and was not given it"]);
}

/// K04: an instance is a device of its own, and who was given the card has its instances.
#[test]
fn k04_an_instance_is_held_by_its_own_uuid_and_a_card_covers_its_instances() {
    let case = Case {
        given: vec![
            given("7", "a.1", HolderSource::Scheduler, Some(7)),
            given("9", "b", HolderSource::Scheduler, Some(1)),
        ],
        occupants: vec![occupant("7", "a.1", None), occupant("8", "a.2", None), occupant("9", "b.1", None)],
        known: &["7", "9"],
        scheduling: Scheduling::Scheduled,
    };
    let (held, _, events) = run(case);
    assert_eq!(held, ["a.1 7 scheduler 0.142857", "a.2 8 process - allocated_by=nobody", "b 9 scheduler 1"]);
    assert!(events.is_empty(), "{events:?}");
}

/// K17: a process that is gone proves its holder once more, and its memory isn't counted.
#[test]
fn k17_only_processes_that_live_are_counted() {
    let dead = Occupant { is_alive: false, ..occupant("7", "a", Some(9)) };
    let case = Case {
        given: vec![],
        occupants: vec![dead.clone(), occupant("7", "a", Some(1))],
        known: &[],
        scheduling: Scheduling::Open,
    };
    let (held, worked, _) = run(case);
    assert_eq!((held, worked), (vec!["a 7 process -".to_owned()], vec!["a 7 1 1000000 100".to_owned()]));
    let case = Case { given: vec![], occupants: vec![dead], known: &[], scheduling: Scheduling::Open };
    let (held, worked, _) = run(case);
    assert_eq!((held, worked), (vec!["a 7 process -".to_owned()], vec!["a 7 0 0 0".to_owned()]));
}

/// K18: whatever processes add up to, their holders did no more than the device.
#[test]
fn k18_weights_of_a_device_add_up_to_the_device() {
    let case = Case {
        given: vec![],
        occupants: vec![
            occupant("7", "a", Some(90)),
            occupant("7", "a", Some(80)),
            occupant("8", "a", Some(70)),
            occupant("9", "a", Some(0)),
        ],
        known: &[],
        scheduling: Scheduling::Open,
    };
    // 170 and 70 of 240 are 708,333.3 and 291,666.7 of a million.
    assert_eq!(run(case).1, ["a 7 2 708333 200", "a 8 1 291667 100", "a 9 1 0 100"]);
    let case = Case {
        given: vec![],
        occupants: vec![occupant("7", "a", Some(90)), occupant("8", "a", None)],
        known: &[],
        scheduling: Scheduling::Open,
    };
    assert_eq!(run(case).1, ["a 7 1 - 100", "a 8 1 - 100"], "beside one that can't be weighed nothing is known");
}

#[test]
fn a_holder_without_a_process_has_a_row_where_its_own_processes_are_known() {
    let case_given =
        vec![given("7", "a", HolderSource::Scheduler, Some(1)), given("8", "b", HolderSource::Scheduler, Some(1))];
    let effort = Effort { cpu_ms: Reading::Seen(40), io_bytes: Reading::Seen(5) };
    let doing = BTreeMap::from([(holder("7").key(), Doing { effort, is_attended: Reading::Seen(false) })]);
    let unlisted = BTreeSet::new();
    let known = BTreeSet::new();
    let rows = |unlisted: &BTreeSet<Name>| {
        let sources = Sources {
            given: case_given.clone(),
            occupants: &[],
            given_known: &known,
            doing: &doing,
            scheduling: Scheduling::Scheduled,
            unlisted,
        };
        join(sources).1
    };
    let row = &rows(&unlisted)[0];
    assert_eq!(
        (row.processes, row.cpu_ms, row.mem_used_bytes, rows(&unlisted).len()),
        (0, Reading::Seen(40), Reading::Seen(0), 1)
    );
    // Where the driver couldn't list processes, none is not known.
    assert!(rows(&BTreeSet::from([Name::from("a")])).is_empty());
}
