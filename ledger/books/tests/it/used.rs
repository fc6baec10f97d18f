//! What became of held time, told by simulated nodes and worked out by the production code, against what the simulated world did.
//!
//! Exact where ticks can tell it: what was held and unseen, what was lost, the energy of the pool. For the rest the truth says by how much ticks may
//! be off, worked out from who came and went inside of a tick.

use crate::simulation::{cluster, deliver, import, world};
use cardhour_books::attempt::Attempt;
use cardhour_books::demo::{DemoSite, UsedTruth};
use cardhour_books::energy::energy;
use cardhour_books::holdings::{Claim, Holding, holdings};
use cardhour_books::idle::{IdlePolicy, idle};
use cardhour_books::observed::{Joined, Seen, join};
use cardhour_books::split::{AttemptFacts, Split, split};
use cardhour_books::telemetry::Readings;
use cardhour_domain::{AttemptKey, BUCKET_MS, CardTime, Interval, Month, Name, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the production code makes of what nodes told.
struct Told {
    held: Vec<Holding>,
    split: Split,
    used: BTreeMap<(Name, Month), UsedTruth>,
    energy_mj: BTreeMap<(Name, Month), i64>,
    drawn_mj: BTreeMap<Month, i64>,
}

fn told(site: &DemoSite) -> Told {
    let books: BTreeMap<AttemptKey, Arc<Attempt>> = deliver(import(site));
    let mut seen = Seen::default();
    let mut readings = Readings::default();
    let mut activity = Vec::new();
    for spool in site.spools() {
        spool.rows.samples.iter().for_each(|sample| readings.add_sample(sample));
        spool.rows.devices.iter().for_each(|device| readings.add_device(device));
        activity.extend(spool.rows.activity);
        seen.observations.extend(spool.rows.observations);
        seen.watches.extend(spool.rows.watches);
        seen.devices.extend(spool.rows.devices);
    }
    let Joined { claims, attempts, differences, known_as } =
        join(books.values().filter_map(|attempt| Claim::of(attempt)).collect(), &seen);
    assert_eq!((attempts, differences), (Vec::new(), Vec::new()), "every holder that was seen has its record");
    let joined = Joined { known_as, ..Joined::default() };
    for mut activity in activity {
        activity.holder = joined.key_of(&activity.holder, activity.during);
        readings.add_activity(&activity);
    }
    let (telemetry, shadowed) = readings.settle();
    assert_eq!(shadowed, []);
    let frame = cluster(site).frame(claims.iter());
    assert!(frame.horizon.is_some());
    let (held, cuts) = holdings(claims);
    assert!(cuts.is_empty(), "LED-2: no card was given twice");
    let facts: BTreeMap<AttemptKey, AttemptFacts> = books
        .values()
        .map(|a| (a.key.clone(), AttemptFacts { class: a.class.clone(), state: a.state, checkpoint_at: None }))
        .collect();
    let whole = Interval::new(
        site.months[0].interval(site.zone).start().bucket_start(),
        Timestamp::from_unix_ms(site.as_of.unix_ms() + BUCKET_MS).bucket_start(),
    )
    .unwrap();
    let idle = idle(&held, &facts, &telemetry, &IdlePolicy::default());
    let split = split(&held, &facts, &idle, &telemetry, &[whole]);
    let energy = energy(&held, &telemetry, &[whole]);

    let mut told = Told { held, split, used: BTreeMap::new(), energy_mj: BTreeMap::new(), drawn_mj: BTreeMap::new() };
    let of = |holding: u32, at: Timestamp, held: &[Holding]| {
        let project = books[&held[holding as usize].claim.key].project.clone().unwrap();
        (project, site.zone.month(at).unwrap())
    };
    assert!(told.split.over_share.is_empty(), "{:?}", told.split.over_share.first());
    for (index, holding) in (0..).zip(&told.held) {
        for (bucket, piece) in holding.during.buckets() {
            let row = told.split.of(index, bucket, CardTime::of(holding.share, piece));
            let used = told.used.entry(of(index, bucket, &told.held)).or_default();
            used.unseen += row.unseen;
            used.lost += row.lost;
            used.idle += row.idle;
            used.effective += row.effective;
            used.underused += row.underused;
        }
    }
    for row in &energy.held {
        *told.energy_mj.entry(of(row.holding, row.bucket_start, &told.held)).or_default() += row.energy.0;
        *told.drawn_mj.entry(site.zone.month(row.bucket_start).unwrap()).or_default() += row.energy.0;
    }
    for row in &energy.free {
        *told.drawn_mj.entry(site.zone.month(row.bucket_start).unwrap()).or_default() += row.energy.0;
    }
    told
}

#[test]
fn what_held_time_went_into_is_what_the_simulated_world_did() {
    let seeds = std::env::var("SIM_SEED").map_or_else(|_| vec![1, 7], |seed| vec![seed.parse().unwrap()]);
    for seed in seeds {
        let site = world(seed);
        let told = told(&site);
        let mut sums: BTreeMap<Month, [CardTime; 4]> = BTreeMap::new();
        let held: CardTime = site.truth.held.values().copied().sum();
        assert_eq!(told.held.iter().map(|h| CardTime::of(h.share, h.during)).sum::<CardTime>(), held);
        for ((project, month), truth) in &site.truth.used {
            let replay = format!("{project} in {month}, replay with SIM_SEED={seed}");
            let key = (Name::from(*project), *month);
            let books = told.used[&key];
            assert_eq!(books.unseen, truth.unseen, "unseen, {replay}");
            assert_eq!(books.lost, truth.lost, "lost, {replay}");
            assert_eq!(
                books.effective + books.underused + books.idle,
                truth.effective + truth.underused + truth.idle,
                "what was seen and not lost, {replay}"
            );
            let is_near = |what: &str, a: CardTime, b: CardTime, off_by: CardTime| {
                let off = CardTime::from_part_ms((a.part_ms() - b.part_ms()).abs());
                let [a, b, bound] = [a, b, off_by].map(CardTime::card_hours);
                assert!(off <= off_by, "{what}: {a} in the books is {b} in the world, at most {bound} off, {replay}");
            };
            is_near("effective", books.effective, truth.effective, truth.busy_off_by);
            is_near("idle", books.idle, truth.idle, truth.idle_off_by);
            let energy_mj = told.energy_mj.get(&key).copied().unwrap_or_default();
            let off = (i128::from(energy_mj) * 1000 - truth.energy_micro).abs();
            assert!(
                off <= i128::from(truth.energy_off_by_mj) * 1000,
                "energy, off by {off} thousandths of a mJ, {replay}"
            );
            let sum = sums.entry(*month).or_default();
            for (sum, more) in sum.iter_mut().zip([truth.effective, truth.busy_off_by, truth.idle, truth.idle_off_by]) {
                *sum += more;
            }
        }
        // A bound that allows anything would prove nothing.
        let [effective, busy_off_by, idle, idle_off_by] = sums[&site.months[1]].map(CardTime::part_ms);
        assert!(busy_off_by * 1000 < effective, "effective time is known to a thousandth, SIM_SEED={seed}");
        assert!(idle_off_by * 10 < idle, "idle time to a tenth: {idle_off_by} of {idle}, SIM_SEED={seed}");
        // Months begin and end with a tick, so that the meter of the pool is exact.
        assert_eq!(told.drawn_mj, site.truth.drawn_mj, "replay with SIM_SEED={seed}");
    }
}
