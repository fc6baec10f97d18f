//! A simulated site whose true card-time is known, through the production code.
//!
//! The world knows who really held which card. The code under test sees only the files: twice, and in another order. What it makes of
//! them must be what was held, and what the rest of the pool was, to the last part and millisecond.

use cardhour_books::attempt::Attempt;
use cardhour_books::cluster::Cluster;
use cardhour_books::demo::{CLUSTER, DemoFileKind, DemoSite, demo_site};
use cardhour_books::holdings::{Claim, holdings};
use cardhour_books::import::fields::JOB_FIELDS;
use cardhour_books::import::jobs::{Options, attempts};
use cardhour_books::import::map::MapFile;
use cardhour_books::import::mapping::Mapping;
use cardhour_books::import::readers::read;
use cardhour_books::import::site::nodes::nodes;
use cardhour_books::import::site::outages::outages;
use cardhour_books::import::site::reservations::reservations;
use cardhour_books::import::site::{ListError, Listed};
use cardhour_books::site::Coverage;
use cardhour_books::usage::usage;
use cardhour_books::versions::{Version, Versioned, resolve};
use cardhour_domain::{AttemptKey, CardShare, CardState, CardTime, Interval, Month, Name, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

fn bytes<'a>(site: &'a DemoSite, name: &str) -> &'a [u8] {
    &site.files.iter().find(|file| file.name == name).unwrap().bytes
}

/// The attempts of each jobs file, as `import jobs` makes them.
pub fn import(site: &DemoSite) -> Vec<Vec<Arc<Attempt>>> {
    let jobs = site.files.iter().filter(|file| file.kind == DemoFileKind::Jobs);
    jobs.map(|file| {
        let map = std::str::from_utf8(bytes(site, file.map.unwrap())).unwrap();
        let map = MapFile::parse(map, JOB_FIELDS).unwrap();
        let format = map.format.unwrap();
        let reading = read(format, &file.bytes, &map.reader_options()).unwrap();
        let options = Options { as_of: None, covers: Some(site.covers), cluster: None, now: site.as_of };
        let imported =
            attempts(&file.bytes, &reading.columns, reading.records, &Mapping { format, map }, &options).unwrap();
        assert_eq!(imported.rejected, [], "{}", file.name);
        imported.attempts
    })
    .collect()
}

/// Takes deliveries in one after the other, as the ledger does.
pub fn deliver(deliveries: Vec<Vec<Arc<Attempt>>>) -> BTreeMap<AttemptKey, Arc<Attempt>> {
    let mut books: BTreeMap<AttemptKey, Versioned> = BTreeMap::new();
    for delivery in deliveries {
        let standing: Vec<(String, Version)> =
            books.iter().map(|(key, (_, version))| (key.as_str().to_owned(), *version)).collect();
        let delivery: Vec<Versioned> =
            delivery.into_iter().map(|attempt| (attempt.clone(), Version::of(&attempt))).collect();
        let resolution = resolve(standing.iter().map(|(key, version)| (key.as_str(), *version)), &delivery);
        for key in resolution.displaced {
            books.remove(&key);
        }
        for (attempt, version) in resolution.stand {
            books.insert(attempt.key.clone(), (attempt, version));
        }
    }
    books.into_iter().map(|(key, (attempt, _))| (key, attempt)).collect()
}

/// Nodes, reservations and outages, as `import` reads them without a map.
pub fn cluster(site: &DemoSite) -> Cluster {
    fn all<T: std::fmt::Debug>(listed: Result<Listed<T>, ListError>) -> Vec<T> {
        let listed = listed.unwrap();
        assert_eq!(listed.rejected, []);
        assert!(!listed.rows.is_empty());
        listed.rows
    }
    let ours = MapFile::default();
    let mut cluster = Cluster {
        told_until: None,
        nodes: all(nodes(bytes(site, "nodes.csv"), &ours)),
        reservations: all(reservations(bytes(site, "reservations.csv"), &ours)),
        outages: all(outages(bytes(site, "outages.csv"), &ours)),
        covered: Vec::new(),
        watched: Vec::new(),
    };
    assert_eq!(cluster.nodes.iter().map(|node| node.cards).sum::<CardShare>(), CardShare::from_cards(64).unwrap());
    cluster.cover(&Coverage { cluster: CLUSTER.into(), covers: site.covers });
    cluster
}

/// Seeds: the one in `SIM_SEED`, to replay a failure; else a few, always the same ones.
fn seeds() -> Vec<u64> {
    match std::env::var("SIM_SEED") {
        Ok(seed) => vec![seed.parse().expect("SIM_SEED is a number")],
        Err(_) => (0..8).collect(),
    }
}

pub fn world(seed: u64) -> DemoSite {
    demo_site(seed, Month::parse("2025-10").unwrap())
}

#[test]
fn what_is_held_and_billed_is_what_the_simulated_world_held() {
    for seed in seeds() {
        let site = world(seed);
        let books = deliver(import(&site));
        assert_eq!(books.len() as u64, site.truth.attempts, "attempts, replay with SIM_SEED={seed}");
        let claims: Vec<Claim> = books.values().filter_map(|attempt| Claim::of(attempt)).collect();
        let cluster = cluster(&site);
        let frame = cluster.frame(claims.iter());
        let (held, cuts) = holdings(claims.clone());
        assert!(cuts.is_empty(), "LED-2: nothing claims too much here, replay with SIM_SEED={seed}");
        let clusters = BTreeMap::from([(Name::from(CLUSTER), (cluster, frame))]);
        let span = Interval::new(
            Timestamp::from_utc_day(*site.covers.utc_days().start()),
            Timestamp::from_utc_day(site.covers.utc_days().end() + 1),
        )
        .unwrap();
        let usage = usage(&clusters, &held, &[span]);

        let mut told: BTreeMap<(Name, Month), CardTime> = BTreeMap::new();
        let mut pool: BTreeMap<(Month, CardState), CardTime> = BTreeMap::new();
        for (number, day) in &usage.days {
            assert!(day.over_capacity.is_empty(), "replay with SIM_SEED={seed}");
            for row in usage.held(*number, &held) {
                let project = books[&held[row.holding as usize].claim.key].project.clone().unwrap();
                let month = site.zone.month(row.bucket_start).unwrap();
                *told.entry((project, month)).or_default() += row.card_time;
                *pool.entry((month, CardState::Held)).or_default() += row.card_time;
                assert_eq!(row.card_time, row.billed_time, "nothing is held through an outage, SIM_SEED={seed}");
            }
            for (_, row) in &day.states {
                let month = site.zone.month(row.bucket_start).unwrap();
                *pool.entry((month, row.state)).or_default() += row.card_time;
            }
        }
        for ((project, month), time) in &site.truth.held {
            let told = told.get(&(Name::from(*project), *month)).copied().unwrap_or_default();
            assert_eq!(told, *time, "{project} in {month}, replay with SIM_SEED={seed}");
        }
        for (month, truth) in &site.truth.pool {
            for (state, expected) in [
                (CardState::Held, truth.held),
                (CardState::Down, truth.down),
                (CardState::Reserved, truth.reserved),
                (CardState::Free, truth.free),
                (CardState::Unaccounted, CardTime::ZERO),
            ] {
                let told = pool.get(&(*month, state)).copied().unwrap_or_default();
                assert_eq!(told, expected, "{} in {month}, replay with SIM_SEED={seed}", state.name());
            }
        }
    }
}

#[test]
fn twice_and_in_any_order_gives_the_same_attempts() {
    for seed in seeds() {
        let files = import(&world(seed));
        let once = deliver(files.clone());
        let mut backwards: Vec<Vec<Arc<Attempt>>> = files.iter().rev().cloned().collect();
        for delivery in &mut backwards {
            delivery.reverse();
        }
        let (halves, rest): (Vec<_>, Vec<_>) =
            files.iter().map(|file| (file[..file.len() / 2].to_vec(), file[file.len() / 2..].to_vec())).unzip();
        assert_eq!(deliver([files.clone(), files].concat()), once, "twice, replay with SIM_SEED={seed}");
        assert_eq!(deliver(backwards), once, "backwards, replay with SIM_SEED={seed}");
        assert_eq!(deliver([rest, halves].concat()), once, "halves, replay with SIM_SEED={seed}");
    }
}
