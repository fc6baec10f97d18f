use super::*;
use cardhour_domain::{Holder, HolderSource, Observation, Owner, Watch};

/// Minutes of an hour that begins at 1970-01-01T10:00 UTC.
fn at(minute: i64) -> Timestamp {
    Timestamp::from_unix_ms((600 + minute) * 60_000)
}

fn stretch(from: i64, to: i64) -> Interval {
    Interval::new(at(from), at(to)).unwrap()
}

fn seen(job: &str, project: Option<&str>, during: Interval) -> Observation {
    Observation {
        during,
        node: "n1".into(),
        card_uuid: "GPU-1".into(),
        device_uuid: "GPU-1".into(),
        mig_profile: None,
        share: None,
        source: HolderSource::Process,
        holder: Holder {
            kind: HolderKind::Process,
            cluster: "lab".into(),
            job_id: job.into(),
            shown_id: None,
            run: "boot1".into(),
            started_at: None,
        },
        owner: Owner { org: Some("acme".into()), project: project.map(Name::from), ..Owner::default() },
    }
}

fn worked(job: &str, during: Interval, sm: i32, memory_mib: i64) -> Activity {
    Activity {
        during,
        node: "n1".into(),
        card_uuid: "GPU-1".into(),
        device_uuid: "GPU-1".into(),
        holder: AttemptKey::new("lab", job, "boot1"),
        processes: 1,
        sm_active_pct: Reading::Seen(Percent::from_thousandths(sm * 1000).unwrap()),
        mem_used_bytes: Reading::Seen(memory_mib * MIB),
        cpu_ms: Reading::Missing(Gap::NotRecorded),
        io_bytes: Reading::Missing(Gap::NotRecorded),
        is_attended: Reading::Missing(Gap::NotRecorded),
    }
}

/// A card of 80,000 MiB.
fn books(observations: Vec<Observation>) -> Seen {
    let device = SeenDevice {
        at: at(0),
        node: "n1".into(),
        cluster: "lab".into(),
        card_uuid: "GPU-1".into(),
        device_uuid: "GPU-1".into(),
        pci_bus_id: None,
        model: None,
        memory_bytes: Some(80_000 * MIB),
        driver: None,
        mig_mode: None,
        mig_profile: None,
        share: CardShare::CARD,
        power_limit_mw: None,
    };
    let watch = Watch { during: stretch(0, 240), node: "n1".into(), cluster: "lab".into(), card_uuid: "GPU-1".into() };
    Seen { observations, watches: vec![watch], devices: vec![device] }
}

fn found(seen: &Seen, activity: &[Activity], events: &[NodeEvent], attempts: &[Attempt]) -> Isolation {
    isolation(&IsolationInput { during: stretch(0, 240), attempts, seen, activity, events })
}

/// Together from 10:10 to 11:40: the look of a tick more than they are there is left out, so until 11:39.
#[test]
fn strangers_on_a_card_are_one_violation_over_all_their_hours() {
    let both = vec![
        seen("1", Some("vision"), stretch(0, 100)),
        seen("2", Some("speech"), stretch(10, 60)),
        seen("2", Some("speech"), stretch(60, 120)),
    ];
    let found = found(&books(both.clone()), &[], &[], &[]);
    let [incident] = &found.incidents[..] else { panic!("{:?}", found.incidents) };
    assert_eq!((incident.severity, incident.kind()), (Severity::Violation, "sharing_rule"));
    assert_eq!(incident.during, stretch(10, 99));
    assert_eq!(
        incident.words(),
        "card GPU-1: lab/1/boot1 of acme/vision and lab/2/boot1 of acme/speech share a device by time_slice: different tenants share \
         by mig or vgpu only, 1970-01-01T10:10:00Z to 1970-01-01T11:39:00Z; lab/1 is of acme/vision; lab/2 is of acme/speech"
    );
    let mut backwards = both;
    backwards.reverse();
    assert_eq!(
        super::isolation(&IsolationInput {
            during: stretch(0, 240),
            attempts: &[],
            seen: &books(backwards),
            activity: &[],
            events: &[]
        }),
        found
    );
}

#[test]
fn a_card_that_changes_hands_is_not_shared() {
    let one_after_the_other =
        vec![seen("1", Some("vision"), stretch(0, 60)), seen("2", Some("speech"), stretch(59, 120))];
    let found = found(&books(one_after_the_other), &[], &[], &[]);
    assert_eq!((found.incidents, found.shared.len()), (vec![], 0));
}

/// Two undeclared holders have half of 80,000 MiB each. By hand: 41,000 is 2.5 % over 40,000 and a context's, 50,000 in the second hour is not. Of the
/// multiprocessors 40 and 20 % are within the halves.
#[test]
fn memory_over_the_share_is_found_in_its_hour_and_within_one_tenant_is_advice() {
    let pair = |other| vec![seen("1", Some("vision"), stretch(0, 180)), seen("2", Some(other), stretch(0, 180))];
    let activity = [
        worked("1", stretch(0, 59), 40, 41_000),
        worked("1", stretch(61, 70), 40, 50_000),
        worked("2", stretch(0, 179), 20, 20_000),
    ];
    let same = found(&books(pair("vision")), &activity, &[], &[]);
    let [incident] = &same.incidents[..] else { panic!("{:?}", same.incidents) };
    assert_eq!((incident.severity, incident.kind()), (Severity::Advice, "memory_over_share"));
    assert_eq!(incident.during, stretch(60, 120));
    assert!(incident.words().starts_with("card GPU-1: lab/1 had 50000 MiB and may have 40000, beside lab/2"));
    // Nobody saw what the first did after 11:10.
    assert!(same.not_judged.contains(&AttemptKey::new("lab", "1", "boot1")));
    let strangers = found(&books(pair("speech")), &activity, &[], &[]);
    let kinds: Vec<_> = strangers.incidents.iter().map(|i| (i.severity, i.kind())).collect();
    assert_eq!(kinds, [(Severity::Violation, "sharing_rule"), (Severity::Violation, "memory_over_share")]);
}

/// 70 % is over a half by more than 5 points; the neighbour works. Idle, it loses nothing.
#[test]
fn a_busy_neighbour_is_one_only_while_others_have_work() {
    let pair = vec![seen("1", Some("vision"), stretch(0, 60)), seen("2", Some("vision"), stretch(0, 60))];
    let kinds = |other_sm| {
        let activity = [worked("1", stretch(0, 60), 70, 100), worked("2", stretch(0, 60), other_sm, 100)];
        found(&books(pair.clone()), &activity, &[], &[]).incidents.iter().map(Incident::kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(20), ["busy_neighbour"]);
    assert_eq!(kinds(1), [""; 0]);
}

/// Two jobs of half a card each by their declaration. The Xid at 10:30:20 ends both: nobody is named, and both failed.
#[test]
fn an_xid_that_takes_two_down_is_told_with_both() {
    let half = |job: &str| {
        let mut attempt = Attempt::new(AttemptKey::new("lab", job, "1"), "lab".into(), job.into(), JobState::Failed);
        attempt.project = Some("vision".into());
        (attempt.started_at, attempt.ended_at) =
            (Some(at(0)), Timestamp::from_unix_ms(at(30).unix_ms() + 25_000).into());
        (attempt.cards, attempt.share_declared) = (CardShare::from_fraction(1, 2).unwrap(), true);
        attempt.card_uuid = Some("GPU-1".into());
        attempt.is_final = true;
        attempt
    };
    let xid = |number| NodeEvent {
        at: Timestamp::from_unix_ms(at(30).unix_ms() + 20_000),
        node: "n1".into(),
        card_uuid: Some("GPU-1".into()),
        device_uuid: None,
        kind: EventKind::Xid,
        number: Some(number),
        detail: None,
    };
    let attempts = [half("1"), half("2")];
    let of = |number| found(&books(vec![]), &[], &[xid(number)], &attempts);
    let found = of(31);
    let [incident] = &found.incidents[..] else { panic!("{:?}", found.incidents) };
    assert_eq!((incident.kind(), &incident.holder, incident.others.len()), ("xid_hit_neighbours", &None, 2));
    // One that is the card's own is nobody's doing.
    assert_eq!(of(79).incidents, []);
}

/// The same two, looked at hour by hour: one incident of the same time and words.
#[test]
fn what_goes_on_over_a_cut_is_one_incident() {
    let both = [seen("1", Some("vision"), stretch(0, 100)), seen("2", Some("speech"), stretch(10, 120))];
    let seen = books(both.to_vec());
    let of = |from, to| {
        let during = stretch(from, to);
        isolation(&IsolationInput { during, attempts: &[], seen: &seen, activity: &[], events: &[] })
    };
    assert_eq!(of(0, 60).followed_by(of(60, 240)), of(0, 240));
    assert_eq!(of(0, 240).incidents[0].during, stretch(10, 99));
}
