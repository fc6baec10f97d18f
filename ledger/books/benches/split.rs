//! Question: how long does it take to say where a day of 64 cards went, at a tick every 15 s?
//!
//! `cargo bench -p cardhour-books --bench split`. Data from a seed; the least and the middle of 15 runs of each step.

use cardhour_books::energy::energy;
use cardhour_books::holdings::{Claim, ClaimSource, Holding};
use cardhour_books::idle::{IdlePolicy, idle};
use cardhour_books::split::split;
use cardhour_books::telemetry::{DeviceTick, Readings};
use cardhour_domain::{
    AttemptKey, CardShare, EnergyBasis, Interval, Millijoules, Milliwatts, Name, Percent, SampleSource, Timestamp,
    UseBasis,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const CARDS: i64 = 64;
const TICKS: i64 = 5_760;
const TICK_MS: i64 = 15_000;

fn main() {
    let readings = readings();
    let holdings: Vec<Holding> = (0..CARDS).map(holding).collect();
    let day = between(0, TICKS * TICK_MS);
    let facts = BTreeMap::new();
    let policy = IdlePolicy::default();
    let (telemetry, _) = readings.clone().settle();
    let found = idle(&holdings, &facts, &telemetry, &policy);
    println!(
        "{CARDS} cards, {TICKS} ticks each, {} idle stretches",
        found.by_holding.values().map(Vec::len).sum::<usize>()
    );
    time("settle", || readings.clone(), |readings| readings.settle().0.devices.len());
    time("idle", || (), |()| idle(&holdings, &facts, &telemetry, &policy).by_holding.len());
    time("split", || (), |()| split(&holdings, &facts, &found, &telemetry, &[day]).rows.len());
    time("energy", || (), |()| energy(&holdings, &telemetry, &[day]).held.len());
}

/// Prints how long `work` takes on what `prepare` makes.
fn time<T>(name: &str, prepare: impl Fn() -> T, work: impl Fn(T) -> usize) {
    let run = |_| {
        let input = prepare();
        let start = Instant::now();
        let rows = work(input);
        (start.elapsed(), rows)
    };
    let mut runs: Vec<(Duration, usize)> = (0..15).map(run).collect();
    runs.sort();
    println!("{name}: least {:?}, middle {:?}, {} rows", runs[0].0, runs[7].0, runs[0].1);
}

fn between(start: i64, end: i64) -> Interval {
    Interval::new(Timestamp::from_unix_ms(start), Timestamp::from_unix_ms(end)).expect("ascending")
}

/// Ticks 20 ms off their grid at most, an hour of work and an hour of rest in turn, one in 4,096 lost.
fn readings() -> Readings {
    let mut readings = Readings::default();
    let mut seed = 7u64;
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((seed >> 33) % below).expect("small")
    };
    for card in 0..CARDS {
        let name = name(card);
        let ticks = readings.device(&name, &name);
        for i in (0..TICKS).filter(|_| draw(4096) != 0).collect::<Vec<_>>() {
            let busy = if (i / 240 + card) % 2 == 0 { 60_000 + draw(40_000) } else { 0 };
            ticks.push(DeviceTick {
                during: between(i * TICK_MS + draw(20), (i + 1) * TICK_MS + draw(20)),
                source: SampleSource::Collector,
                sm_active: i32::try_from(busy).ok().and_then(Percent::from_thousandths),
                use_basis: UseBasis::Gpm,
                mem_active: Percent::from_thousandths(0),
                media_active: Percent::from_thousandths(0),
                mem_used_bytes: Some(draw(1 << 31)),
                link_bytes: Some(draw(1 << 20)),
                power: Some(Milliwatts(75_000 + 6 * busy)),
                energy: Some(Millijoules(15 * (75_000 + 6 * busy))),
                energy_basis: EnergyBasis::Counter,
                suspect: false,
            });
        }
    }
    readings
}

fn name(card: i64) -> Name {
    format!("GPU-{card:032x}").into()
}

fn holding(card: i64) -> Holding {
    let during = between(0, TICKS * TICK_MS);
    let claim = Claim {
        key: AttemptKey::new("c", &card.to_string(), "s0"),
        cluster: "c".into(),
        during,
        share: CardShare::CARD,
        declared: true,
        card_uuid: Some(name(card)),
        node: Some("n1".into()),
        model: None,
        mig_profile: None,
        reservation: None,
        slice: None,
        source: ClaimSource::Accounting,
        is_open: false,
    };
    claim.whole()
}
