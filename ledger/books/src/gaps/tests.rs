use super::*;
use crate::cluster::Grouping;
use crate::inventory::add_seen;
use crate::telemetry::drawn::{minutes, telemetry};
use cardhour_domain::{
    EnergyBasis, Holder, HolderKind, HolderSource, Observation, Owner, SampleSource, UseBasis, Watch,
};

fn at(minute: i64) -> Timestamp {
    Timestamp::from_unix_ms(minute * 60_000)
}

/// `CARD/DEVICE` as it was told at a minute.
fn device(text: &str, minute: i64) -> SeenDevice {
    let (card, device) = text.split_once('/').unwrap_or((text, text));
    SeenDevice {
        at: at(minute),
        node: "n1".into(),
        cluster: "lab".into(),
        card_uuid: card.into(),
        device_uuid: device.into(),
        pci_bus_id: None,
        model: None,
        memory_bytes: None,
        driver: None,
        mig_mode: None,
        mig_profile: None,
        share: if card == device { CardShare::CARD } else { CardShare::from_fraction(1, 2).unwrap() },
        power_limit_mw: None,
    }
}

/// What the books know at minute `horizon` of these devices, watched over these minutes.
fn world(devices: &[(&str, i64)], looks: &[(&str, i64, i64)], horizon: i64) -> (Seen, Vec<Presence>) {
    let watch = |(card, from, to): &(&str, i64, i64)| Watch {
        during: minutes(*from, *to),
        node: "n1".into(),
        cluster: "lab".into(),
        card_uuid: (*card).into(),
    };
    let devices = devices.iter().map(|(text, minute)| device(text, *minute)).collect();
    let seen = Seen { devices, watches: looks.iter().map(watch).collect(), ..Seen::default() };
    let mut clusters = BTreeMap::new();
    add_seen(&mut clusters, &seen, &[]);
    let frame = Frame { grouping: Grouping::Node, serves_from: Some(at(0)), horizon: Some(at(horizon)) };
    let framed = clusters.into_iter().map(|(name, cluster)| (name, (cluster, frame))).collect();
    let presences = presences(&seen, &framed);
    (seen, presences)
}

fn show(unseen: &[Unseen]) -> Vec<String> {
    let minute = |at: Timestamp| at.unix_ms() / 60_000;
    let line = |u: &Unseen| {
        let (from, to) = (minute(u.during.start()), minute(u.during.end()));
        format!("{} {} {from} {to} {}", u.what.name(), u.presence.device_uuid, u.reason.name())
    };
    unseen.iter().map(line).collect()
}

fn sample(card: &str, from: i64, to: i64, gap: Gap) -> Sample {
    let none = Gap::NotRecorded;
    Sample {
        during: minutes(from, to),
        card_uuid: card.into(),
        device_uuid: card.into(),
        node: "n1".into(),
        attempt_key: None,
        sm_active_pct: Reading::Missing(gap),
        use_basis: UseBasis::Gpm,
        mem_active_pct: Reading::Missing(none),
        media_active_pct: Reading::Missing(none),
        mem_used_bytes: Reading::Missing(none),
        nvlink_bytes: Reading::Missing(none),
        pcie_bytes: Reading::Missing(none),
        power_mw: Reading::Missing(none),
        energy_mj: Reading::Missing(none),
        energy_basis: EnergyBasis::Counter,
        temperature_c: Reading::Missing(none),
        source: SampleSource::Collector,
    }
}

/// Read for 10 minutes, then the counters were another profiler's for 5, then no collector ran for 10, then read again.
#[test]
fn a_hole_has_the_reason_that_its_samples_give_else_no_collector_ran() {
    let (_, presences) = world(&[("g0", 0)], &[], 40);
    let telemetry = telemetry("g0 50x10 -x5 ?x10 50x15");
    let taken = sample("g0", 10, 15, Gap::CountersTaken);
    let unseen = unread(&presences, &telemetry, &[&taken], minutes(0, 60));
    assert_eq!(show(&unseen), ["use g0 10 15 counters_taken", "use g0 15 25 collector_down"]);
    let hour = CardTime::PART_MS_PER_CARD_HOUR;
    assert_eq!(unseen.iter().map(Unseen::card_time).sum::<CardTime>(), CardTime::from_part_ms(hour / 4));
}

/// A card is expected from its first sight to what the books know last; a day is told by itself.
#[test]
fn a_device_is_expected_while_it_serves() {
    let (_, presences) = world(&[("g0", 100)], &[], 200);
    let nothing = Telemetry::default();
    assert_eq!(show(&unread(&presences, &nothing, &[], minutes(0, 1440))), ["use g0 100 200 collector_down"]);
    assert_eq!(show(&unread(&presences, &nothing, &[], minutes(150, 160))), ["use g0 150 160 collector_down"]);
    assert!(unread(&presences, &nothing, &[], minutes(200, 1440)).is_empty());
}

/// Cut in two at 30 and whole again at 60: each is expected while it is there, the card itself isn't while it is cut.
#[test]
fn a_card_that_is_cut_is_seen_by_its_instances() {
    let layout = [("g0", 0), ("g0", 30), ("g0/a", 30), ("g0/b", 30), ("g0", 60)];
    let (_, presences) = world(&layout, &[], 90);
    let shown = |p: &Presence| {
        format!("{} {} {}", p.device_uuid, p.during.start().unix_ms() / 60_000, p.during.end().unix_ms() / 60_000)
    };
    assert_eq!(presences.iter().map(shown).collect::<Vec<_>>(), ["g0 0 30", "a 30 60", "b 30 60", "g0 60 90"]);
    let unseen = unread(&presences, &telemetry("g0 50x30 ?x30 50x30"), &[], minutes(0, 90));
    assert_eq!(show(&unseen), ["use a 30 60 collector_down", "use b 30 60 collector_down"]);
    let half_an_hour = CardTime::from_part_ms(CardTime::PART_MS_PER_CARD_HOUR / 2);
    assert_eq!(unseen.iter().map(Unseen::card_time).sum::<CardTime>(), half_an_hour, "two halves of a card");
}

#[test]
fn time_in_which_nobody_looked_for_holders_is_told_by_card() {
    let layout = [("g0", 0), ("g0/a", 0), ("g0/b", 0), ("g1", 20)];
    let (seen, presences) = world(&layout, &[("g0", 0, 30), ("g0", 45, 60), ("g1", 20, 60)], 60);
    assert_eq!(show(&unwatched(&presences, &seen, minutes(0, 60))), ["holders g0 30 45 collector_down"]);
}

/// The same told twice, and again later, is one presence.
#[test]
fn what_is_told_again_changes_nothing() {
    let (_, once) = world(&[("g0", 0)], &[], 90);
    let (_, again) = world(&[("g0", 45), ("g0", 0), ("g0", 45), ("g0", 70)], &[], 90);
    assert_eq!(once, again);
}

/// Imported telemetry tells who held a card and not when it looked: who saw a holder has looked.
#[test]
fn a_card_on_which_somebody_was_seen_was_looked_at() {
    let (mut seen, presences) = world(&[("g0", 0)], &[("g0", 0, 10)], 60);
    seen.observations.push(Observation {
        during: minutes(10, 40),
        node: "n1".into(),
        card_uuid: "g0".into(),
        device_uuid: "g0".into(),
        mig_profile: None,
        share: None,
        source: HolderSource::Kubelet,
        holder: Holder {
            kind: HolderKind::Pod,
            cluster: "lab".into(),
            job_id: "a/b".into(),
            shown_id: None,
            run: "r".into(),
            started_at: None,
        },
        owner: Owner::default(),
    });
    assert_eq!(show(&unwatched(&presences, &seen, minutes(0, 60))), ["holders g0 40 60 collector_down"]);
}
