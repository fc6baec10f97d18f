//! A simulated site: a 64-card pool with three organisations over two months, as files that real tools would have written.
//!
//! The files go through the same import as any site's. Beside them stands the *truth*: what the simulated world held, added up from its
//! own schedule, so that a test can ask whether what is billed is what was held.
//!
//! ```text
//! people ─► work (what they ask) ─► schedule (who got cards where) ─► sacct, sessions, files
//!                                        pool (closures) ─┘  │
//!                        cards (which they were), habit (what each did) ─► tenants ─► spool (what nodes told)
//!                                                                              └────► truth
//! ```
//!
//! Everything follows from a seed and a month: no clock, no floats, no unordered maps. All of it says that it is simulated:
//! the cluster is called `demo-sim`, and each file that can carry a remark carries one.
//!
//! Start reading at [`demo_site`]. Times inside are seconds since the epoch, as in Slurm's records.

mod cards;
mod clock;
mod files;
mod habit;
mod people;
mod pool;
mod power;
mod rng;
mod sacct;
mod schedule;
mod sessions;
mod spool;
mod tale;
mod tenants;
#[cfg(test)]
mod tests;
mod truth;
mod work;

pub use spool::NodeSpool;
pub use tale::{Tale, TaleKind};
pub use truth::{Deed, PoolTruth, Truth, UsedTruth};

use cardhour_domain::{CardShare, Interval, Month, Name, Timestamp, Zone};

/// The cluster's name, which says what it is.
pub const CLUSTER: &str = "demo-sim";

/// What each file that can carry a remark says of itself.
pub const REMARK: &str = "simulated by cardhour demo";

/// What a file tells of, and so which `import` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DemoFileKind {
    /// `import jobs`.
    Jobs,
    /// `import nodes`.
    Nodes,
    /// `import reservations`.
    Reservations,
    /// `import outages`.
    Outages,
    /// The price book.
    Prices,
    /// A map, for `--map`.
    Map,
}

/// One file of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoFile {
    /// Its name.
    pub name: &'static str,
    /// What it tells of.
    pub kind: DemoFileKind,
    /// The name of the map by which it is read; none where its columns are ours.
    pub map: Option<&'static str>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A simulated site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoSite {
    /// Its files, in the order in which to import them: prices, maps, nodes, reservations, outages, jobs.
    pub files: Vec<DemoFile>,
    /// The two months.
    pub months: [Month; 2],
    /// The zone in which months are cut.
    pub zone: Zone,
    /// What time the exports speak for: the two months whole.
    pub covers: Interval,
    /// The last moment the exports vouch for: the end of the second month.
    pub as_of: Timestamp,
    /// What the simulated world held.
    pub truth: Truth,
    /// What is worth showing of the second month.
    pub tales: Vec<Tale>,
    world: World,
}

/// What nodes tell of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct World {
    requests: Vec<work::Request>,
    runs: Vec<schedule::Run>,
    sessions: Vec<sessions::Session>,
    closures: Vec<pool::Closure>,
    allotment: cards::Allotment,
    house: tenants::House,
    clock: clock::Clock,
    boots: Vec<u128>,
}

/// What one node's collector spooled in one week: the rows of a segment a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoSpool {
    /// The node.
    pub node: Name,
    /// Its kernel's boot id, which names its segments.
    pub boot: u128,
    /// The number of the segments.
    pub sequence: u64,
    /// The rows.
    pub rows: NodeSpool,
}

impl DemoSite {
    /// What the nodes' collectors told of the second month, node by node, week by week. Collectors came with that month; the one before has records alone.
    pub fn spools(&self) -> Vec<DemoSpool> {
        let World { requests, runs, sessions, closures, allotment, house, clock, boots } = &self.world;
        let scene = spool::Scene { requests, runs, sessions, closures, lost: &allotment.lost, house, clock };
        let mut sequence = 0;
        let of_week = |((node, _), rows): ((usize, i32), NodeSpool)| {
            sequence += 1;
            DemoSpool { node: pool::NODES[node].name.into(), boot: boots[node], sequence, rows }
        };
        spool::spool(&scene).into_iter().map(of_week).collect()
    }
}

impl DemoSite {
    /// What each holder really did, in the order of the house: runs, then sessions.
    pub fn deeds(&self) -> Vec<Deed> {
        let World { requests, runs, sessions, closures, allotment, house, clock, .. } = &self.world;
        let scene = spool::Scene { requests, runs, sessions, closures, lost: &allotment.lost, house, clock };
        let suspended = |tenant: &tenants::Tenant| {
            let (from_s, to_s) = tenant.doer.suspended?;
            clock::Clock::stretch(from_s, to_s)
        };
        let deed = |(index, tenant): (usize, &tenants::Tenant)| {
            let (holder, class) = spool::seen_as(&scene, tenant);
            let on = house.cards.iter().filter(|card| card.tenants.contains(&index));
            Some(Deed {
                seen_as: holder.key(),
                kind: holder.kind,
                class,
                during: clock::Clock::stretch(tenant.start_s, tenant.end_s)?,
                card_uuids: on.map(|card| card.uuid.clone()).collect(),
                share: CardShare::from_parts(CardShare::PARTS_PER_CARD / 1000 * tenant.share_milli),
                rests: truth::rests(house, index, clock),
                suspended: suspended(tenant),
            })
        };
        house.tenants.iter().enumerate().filter_map(deed).collect()
    }
}

/// Simulates the site for the two months that end with `months_end`, the last whole month.
///
/// The same seed and month give the same bytes, on any machine.
pub fn demo_site(seed: u64, months_end: Month) -> DemoSite {
    let clock = clock::Clock::until(months_end);
    let mut rng = rng::Rng::new(seed);
    let (mut work_rng, mut session_rng, mut uuid_rng) = (rng.fork(), rng.fork(), rng.fork());
    let closures = pool::closures(&clock);
    let requests = work::draw(&mut work_rng, &clock, &closures);
    let (runs, closures) = schedule::run(&requests, closures, &clock);
    let sessions = sessions::draw(&mut session_rng, &clock);
    let uuids = sessions::uuids(&mut uuid_rng);
    let mut node_rng = rng.fork();
    let boots = pool::NODES.iter().map(|_| u128::from(node_rng.next()) << 64 | u128::from(node_rng.next())).collect();
    let allotment = cards::allot(&requests, &runs, &closures, clock.end_s);
    let house = tenants::house(&mut node_rng, &requests, &runs, &sessions, (&closures, &allotment), &uuids, &clock);

    let file = |name, kind, map, text: String| DemoFile { name, kind, map, bytes: text.into_bytes() };
    let files = vec![
        file("prices.toml", DemoFileKind::Prices, None, files::prices(&clock)),
        file("jobs.toml", DemoFileKind::Map, None, files::jobs_map(&clock)),
        file("sessions.toml", DemoFileKind::Map, None, files::sessions_map(&clock)),
        file("nodes.csv", DemoFileKind::Nodes, None, files::nodes(&closures, &clock)),
        file("reservations.csv", DemoFileKind::Reservations, None, files::reservations(&closures, &clock)),
        file("outages.csv", DemoFileKind::Outages, None, files::outages(&closures, &clock)),
        file("jobs.sacct", DemoFileKind::Jobs, Some("jobs.toml"), sacct::text(&requests, &runs, &clock)),
        file("sessions.csv", DemoFileKind::Jobs, Some("sessions.toml"), sessions::csv(&sessions, &uuids, &clock)),
    ];
    DemoSite {
        files,
        months: clock.months,
        zone: clock.zone,
        covers: clock::Clock::stretch(clock.start_s, clock.end_s).expect("two months are longer than nothing"),
        as_of: Timestamp::from_unix_s(clock.end_s),
        truth: truth::truth(&requests, &runs, &sessions, &closures, &house, &clock),
        tales: tale::tales(&requests, &runs, &closures, &allotment, &house),
        world: World { requests, runs, sessions, closures, allotment, house, clock, boots },
    }
}
