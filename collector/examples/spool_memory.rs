//! How much memory does a quarter hour of a node take that is full: 8 cards of 7 slices and a row for each card, two holders a slice?
//!
//! Answers with the process's high-water mark (`VmHWM`) before anything, after 60 ticks, after sealing and with TLS, and the bytes on disk. The budget of
//! the whole collector is 20 MiB resident.

use cardhour_collector::delivery::{Delivery, DeliveryConfig, Destination};
use cardhour_collector::spool::{Spool, SpoolConfig};
use cardhour_domain::columns::Rows;
use cardhour_domain::{
    Activity, AttemptKey, CardShare, EnergyBasis, Gap, Holder, HolderKind, HolderSource, Interval, Millijoules,
    Milliwatts, Name, Observation, Owner, Percent, Reading, Sample, SampleSource, Timestamp, UseBasis, Watch,
};
use std::collections::BTreeMap;

const CARDS: u64 = 8;
const DEVICES_A_CARD: u64 = 8;
const HOLDERS_A_DEVICE: u64 = 2;
const TICKS: u64 = 60;

fn main() {
    // A quarter hour first, then as many as are asked for: memory must not grow with them.
    let rounds: u64 = std::env::args().nth(1).map_or(1, |rounds| rounds.parse().expect("a number of quarter hours"));
    let folder = std::env::temp_dir().join(format!("cardhour-spool-memory-{}", std::process::id()));
    println!("at start      {:>8} KiB", peak_kib());
    let mut noise = 1u64;
    {
        let (mut spool, _) =
            Spool::open(SpoolConfig::new(&folder, "n1".into()), 1, Timestamp::from_unix_s(0)).expect("a spool");
        for round in 0..rounds {
            for tick in 0..TICKS {
                let at = (round * TICKS + tick) * 15;
                let now = Timestamp::from_unix_s(at.try_into().expect("not so late"));
                spool.append(&rows(now, &mut noise), now).expect("it is on disk");
            }
            let journal = spool.stock(Timestamp::from_unix_s(0)).expect("the spool's size").bytes;
            let before = std::time::Instant::now();
            if round == 0 {
                println!("60 ticks      {:>8} KiB, a journal of {} KiB", peak_kib(), journal / 1024);
            }
            spool.seal(Timestamp::from_unix_s(0)).expect("it is sealed");
            println!("sealed        {:>8} KiB, in {:?}", peak_kib(), before.elapsed());
        }
        for name in spool.pending().expect("segments").iter().take(4) {
            let bytes = std::fs::metadata(folder.join(name.to_string())).expect("a segment").len();
            println!("{name} {bytes} bytes");
        }
        // A service that isn't there, by the system's certificates: what they take in memory.
        let to = Destination::Service {
            url: "https://localhost:1".to_owned(),
            token_file: "/dev/null".into(),
            ca_file: None,
        };
        let config = DeliveryConfig { spool: folder.clone(), node: "n1".into(), to };
        match Delivery::new(config) {
            Ok(mut delivery) => drop(delivery.run_once(Timestamp::from_unix_s(0))),
            Err(error) => println!("without TLS: {error}"),
        }
        println!("with TLS      {:>8} KiB", peak_kib());
    }
    std::fs::remove_dir_all(folder).expect("it was made here");
}

/// The most that was resident so far. Unit: KiB. Source: proc(5).
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux kernel");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a high-water mark");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn rows(now: Timestamp, noise: &mut u64) -> Vec<Rows> {
    let during = Interval::new(now, now.checked_add_ms(15_000).expect("not so late")).expect("15 s");
    let mut any = |below: u64| {
        *noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((*noise >> 33) % below).expect("small")
    };
    let (mut samples, mut activity, mut observations, mut watches) = (vec![], vec![], vec![], vec![]);
    for card in 0..CARDS {
        let card_uuid: Name = format!("GPU-00000000-0000-0000-0000-00000000000{card}").into();
        watches.push(Watch { during, node: "n1".into(), cluster: "lab".into(), card_uuid: card_uuid.clone() });
        for device in 0..DEVICES_A_CARD {
            let device_uuid: Name = format!("MIG-00000000-0000-0000-0000-0000000000{card}{device}").into();
            let mut percent = || {
                Reading::Seen(Percent::from_thousandths(any(100_001).try_into().expect("small")).expect("a percent"))
            };
            let (sm_active_pct, mem_active_pct) = (percent(), percent());
            samples.push(Sample {
                during,
                card_uuid: card_uuid.clone(),
                device_uuid: device_uuid.clone(),
                node: "n1".into(),
                attempt_key: None,
                sm_active_pct,
                use_basis: UseBasis::Gpm,
                mem_active_pct,
                media_active_pct: Reading::Missing(Gap::NotSupported),
                mem_used_bytes: Reading::Seen(any(1 << 30) * 64),
                nvlink_bytes: Reading::Seen(any(1 << 30) * 64),
                pcie_bytes: Reading::Seen(any(1 << 30)),
                power_mw: Reading::Seen(Milliwatts(any(700_000))),
                energy_mj: Reading::Seen(Millijoules(any(10_000_000))),
                energy_basis: EnergyBasis::Counter,
                temperature_c: Reading::Seen(any(60)),
                source: SampleSource::Collector,
            });
            for holder in 0..HOLDERS_A_DEVICE {
                let holder = Holder {
                    kind: HolderKind::Pod,
                    cluster: "lab".into(),
                    job_id: format!("team-a/train-{card}-{device}-{holder}").into(),
                    shown_id: None,
                    run: format!("uid00000000-0000-0000-0000-000000000{card}{device}{holder}").into(),
                    started_at: Some(Timestamp::from_unix_s(1)),
                };
                activity.push(Activity {
                    during,
                    node: "n1".into(),
                    card_uuid: card_uuid.clone(),
                    device_uuid: device_uuid.clone(),
                    holder: AttemptKey::new(&holder.cluster, &holder.job_id, &holder.run),
                    processes: 1 + any(3),
                    sm_active_pct: Reading::Missing(Gap::NotSupported),
                    mem_used_bytes: Reading::Seen(any(1 << 30)),
                    cpu_ms: Reading::Seen(any(60_000)),
                    io_bytes: Reading::Seen(any(1 << 30)),
                    is_attended: Reading::Seen(false),
                });
                observations.push(Observation {
                    during,
                    node: "n1".into(),
                    card_uuid: card_uuid.clone(),
                    device_uuid: device_uuid.clone(),
                    mig_profile: Some("1g.18gb".into()),
                    share: CardShare::from_fraction(1, 14).ok(),
                    source: HolderSource::Kubelet,
                    holder,
                    owner: Owner {
                        org: Some("org".into()),
                        project: Some("project".into()),
                        user: Some("user".into()),
                        labels: BTreeMap::from([("app".into(), "train".into()), ("step".into(), "7".into())]),
                        ..Owner::default()
                    },
                });
            }
        }
    }
    vec![Rows::Samples(samples), Rows::Activity(activity), Rows::Observations(observations), Rows::Watches(watches)]
}
