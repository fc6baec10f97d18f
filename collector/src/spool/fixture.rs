//! Rows for tests.

use cardhour_domain::columns::Rows;
use cardhour_domain::{
    Activity, AttemptKey, CardShare, EnergyBasis, EventKind, Gap, Holder, HolderKind, HolderSource, Interval,
    Millijoules, Milliwatts, NodeEvent, Observation, Owner, Percent, Reading, Sample, SampleSource, SeenDevice,
    Timestamp, UseBasis, Watch,
};
use std::collections::BTreeMap;

/// The kernel's boot id of tests.
pub(crate) const BOOT: u128 = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;

pub(crate) fn at(s: i64) -> Timestamp {
    Timestamp::from_unix_s(s)
}

pub(crate) fn stretch(from_s: i64, to_s: i64) -> Interval {
    Interval::new(at(from_s), at(to_s)).unwrap()
}

/// A tick of 15 seconds.
fn tick(from_s: i64) -> Interval {
    stretch(from_s, from_s + 15)
}

pub(crate) fn sample(device: &str, from_s: i64) -> Sample {
    Sample {
        during: tick(from_s),
        card_uuid: "GPU-1".into(),
        device_uuid: device.into(),
        node: "n1".into(),
        attempt_key: Some(AttemptKey::new("lab", "7", "b1")),
        sm_active_pct: Reading::Seen(Percent::from_thousandths(12_345).unwrap()),
        use_basis: UseBasis::Gpm,
        mem_active_pct: Reading::Seen(Percent::WHOLE),
        media_active_pct: Reading::Missing(Gap::NotSupported),
        mem_used_bytes: Reading::Seen(0),
        nvlink_bytes: Reading::Missing(Gap::DriverError),
        pcie_bytes: Reading::Seen(i64::MAX),
        power_mw: Reading::Seen(Milliwatts(700_000)),
        energy_mj: Reading::Seen(Millijoules(from_s)),
        energy_basis: EnergyBasis::Counter,
        temperature_c: Reading::Seen(-3),
        source: SampleSource::Collector,
    }
}

pub(crate) fn activity(from_s: i64) -> Activity {
    Activity {
        during: tick(from_s),
        node: "n1".into(),
        card_uuid: "GPU-1".into(),
        device_uuid: "GPU-1".into(),
        holder: AttemptKey::new("lab", "7", "b1"),
        processes: 3,
        sm_active_pct: Reading::Missing(Gap::Implausible),
        mem_used_bytes: Reading::Seen(5),
        cpu_ms: Reading::Seen(14_999),
        io_bytes: Reading::Missing(Gap::NoPermission),
        is_attended: Reading::Seen(true),
    }
}

pub(crate) fn observation(job: &str, during: Interval) -> Observation {
    Observation {
        during,
        node: "n1".into(),
        card_uuid: "GPU-1".into(),
        device_uuid: "MIG-1".into(),
        mig_profile: Some("1g.10gb".into()),
        share: Some(CardShare::from_fraction(1, 7).unwrap()),
        source: HolderSource::Kubelet,
        holder: Holder {
            kind: HolderKind::Pod,
            cluster: "lab".into(),
            job_id: job.into(),
            shown_id: None,
            run: "uid77".into(),
            started_at: Some(Timestamp::from_unix_ms(1_234)),
        },
        owner: Owner {
            org: Some("o".into()),
            project: Some("p".into()),
            user: None,
            queue: Some("q".into()),
            class: None,
            labels: BTreeMap::from([("a".into(), "1\"".into()), ("b".into(), "".into())]),
            refused_project: Some("theirs".into()),
        },
    }
}

pub(crate) fn watch(during: Interval) -> Watch {
    Watch { during, node: "n1".into(), cluster: "lab".into(), card_uuid: "GPU-1".into() }
}

pub(crate) fn device(at_s: i64) -> SeenDevice {
    SeenDevice {
        at: at(at_s),
        node: "n1".into(),
        cluster: "lab".into(),
        card_uuid: "GPU-1".into(),
        device_uuid: "GPU-1".into(),
        pci_bus_id: Some("00000000:3b:00.0".into()),
        model: Some("NVIDIA H200".into()),
        memory_bytes: Some(150_754_820_096),
        driver: None,
        mig_mode: Some("disabled".into()),
        mig_profile: None,
        share: CardShare::CARD,
        power_limit_mw: None,
    }
}

pub(crate) fn event(at_s: i64) -> NodeEvent {
    NodeEvent {
        at: at(at_s),
        node: "n1".into(),
        card_uuid: Some("GPU-1".into()),
        device_uuid: None,
        kind: EventKind::Xid,
        number: Some(79),
        detail: Some("fallen off the bus".into()),
    }
}

/// A tick with a row of each stream, and two of some.
pub(crate) fn one_of_each(from_s: i64) -> Vec<Rows> {
    let bare = Sample { attempt_key: None, energy_mj: Reading::Missing(Gap::CollectorDown), ..sample("MIG-1", from_s) };
    let session =
        Observation { share: None, owner: Owner::default(), ..observation("a", stretch(from_s, from_s + 15)) };
    vec![
        Rows::Samples(vec![sample("GPU-1", from_s), bare]),
        Rows::Activity(vec![activity(from_s)]),
        Rows::Observations(vec![observation("b", stretch(from_s, from_s + 15)), session]),
        Rows::Watches(vec![watch(stretch(from_s, from_s + 15))]),
        Rows::Devices(vec![device(from_s)]),
        Rows::Events(vec![event(from_s)]),
    ]
}
