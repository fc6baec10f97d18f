//! What happens over some days at a node: its cards' jobs, which are the truth, and what goes wrong, drawn from a seed.
//!
//! Time is in ticks of 15 s and in milliseconds since the story's start; the node's wall clock may show something else. Jobs start and end on
//! ticks, so that the truth is exact.

use super::random::Random;
use std::fmt::Write;
use std::time::Duration;

/// A tick. Unit: seconds.
pub const TICK_S: i64 = 15;
/// The same. Unit: milliseconds.
pub const TICK_MS: i64 = TICK_S * 1000;
/// Ticks of an hour.
pub const HOUR: i64 = 3600 / TICK_S;
/// The wall clock at the start, 2026-03-02T00:00:00Z. Unit: seconds since 1970.
pub const START_UNIX_S: i64 = 1_772_409_600;
/// So many ticks before the end nobody is killed any more.
pub const FINALE: i64 = 8;
/// Cards of the node.
pub const CARDS: usize = 4;
/// What a card draws that nobody has. Unit: watts.
const FREE_W: i64 = 70;
/// The clock is set by that much. Unit: milliseconds.
const STEP_MS: i64 = 3_600_000;

/// A job that has a whole card.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub id: i64,
    pub card: usize,
    /// Its first tick.
    pub from: i64,
    /// The first tick that isn't its.
    pub until: i64,
    /// How busy the card is with it. Unit: percent.
    pub busy_pct: i64,
    /// What the card draws with it. Unit: watts.
    pub power_w: i64,
}

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whom {
    Collector,
    Service,
    Both,
}

/// A kill -9, and what comes after it.
#[derive(Clone, Copy, Debug)]
pub struct Kill {
    pub whom: Whom,
    /// How long after its moment on the story's clock, by the machine's: so that it falls anywhere.
    pub after: Duration,
    /// How long until it is started again; 0 is at once. Unit: milliseconds of the story.
    pub pause_ms: i64,
    /// Killed once more so long after it was started again, by the machine's clock.
    pub again: Option<Duration>,
}

/// Something that happens at an instant.
#[derive(Clone, Copy, Debug)]
pub enum Happening {
    JobEnds(usize),
    JobStarts(usize),
    /// From now on the wall clock is so far from the story's. Unit: milliseconds.
    SetClock(i64),
    DiskFills,
    DiskHasRoom,
    ServiceGoesAway,
    ServiceComesBack,
    Kill(Kill),
    /// Who is dead is started now: the last ticks are seen.
    Finale,
}

/// What is asked of a story.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub seed: u64,
    pub hours: i64,
    pub kills: i64,
    /// From which to which per mille of the story the service is away.
    pub service_away: (i64, i64),
}

/// A story.
#[derive(Clone, Debug)]
pub struct Story {
    /// Its length. Unit: ticks.
    pub ticks: i64,
    pub jobs: Vec<Job>,
    /// In order. Unit of the instant: milliseconds.
    pub happenings: Vec<(i64, Happening)>,
    /// Stretches of the wall clock that it showed twice or never, a little wider. Unit: ticks.
    pub odd: Vec<(i64, i64)>,
}

impl Story {
    pub fn new(asked: Asked) -> Self {
        let mut random = Random(asked.seed);
        let ticks = asked.hours * HOUR;
        let jobs = jobs(&mut random, ticks);
        let mut happenings: Vec<(i64, Happening)> = Vec::new();
        for (i, job) in jobs.iter().enumerate() {
            happenings.push((job.from * TICK_MS, Happening::JobStarts(i)));
            happenings.push((job.until * TICK_MS, Happening::JobEnds(i)));
        }
        // Each hour of the clock's that is odd is some way from the next; a tick's middle, as no clock waits for a tick.
        let at = |per_mille: i64| ticks * per_mille / 1000 * TICK_MS;
        let mut odd = Vec::new();
        for (from, until, by_ms) in [(180, 300, -STEP_MS), (620, 740, STEP_MS)] {
            let (from, until) = (at(from) + 7_000, at(until) + 7_000);
            happenings.push((from, Happening::SetClock(by_ms)));
            happenings.push((until, Happening::SetClock(0)));
            for edge in [from, until] {
                let (first, last) = (edge.min(edge + by_ms), edge.max(edge + by_ms));
                odd.push((first / TICK_MS - 2, last / TICK_MS + 3));
            }
        }
        happenings.push((at(400), Happening::DiskFills));
        happenings.push((at(430), Happening::DiskHasRoom));
        happenings.push((at(asked.service_away.0), Happening::ServiceGoesAway));
        happenings.push((at(asked.service_away.1), Happening::ServiceComesBack));
        // In the middle of the full disk, so that it is met at a start too.
        let on_full = Kill { whom: Whom::Collector, after: Duration::from_millis(3), pause_ms: 0, again: None };
        happenings.push((at(415), Happening::Kill(on_full)));
        for _ in 1..asked.kills {
            happenings.push((random.within(0..(ticks - FINALE) * TICK_MS), Happening::Kill(kill(&mut random))));
        }
        happenings.push(((ticks - FINALE) * TICK_MS, Happening::Finale));
        happenings.sort_by_key(|(at, what)| (*at, !matches!(what, Happening::JobEnds(_))));
        Self { ticks, jobs, happenings, odd }
    }

    /// The scenario for the driver's stand-in.
    pub fn scenario(&self) -> String {
        let mut text = format!("starts_at_unix_s = {START_UNIX_S}\n");
        for card in 0..CARDS {
            let mut points = vec![(0, 0, FREE_W)];
            for job in self.jobs.iter().filter(|job| job.card == card) {
                points.push((job.from, job.busy_pct, job.power_w));
                points.push((job.until, 0, FREE_W));
            }
            // Of two at one tick the later counts.
            points.reverse();
            points.dedup_by_key(|(tick, ..)| *tick);
            points.reverse();
            let curve = |of: fn(&(i64, i64, i64)) -> i64| {
                let points = points.iter().map(|point| format!("[{}.0, {}.0]", point.0 * TICK_S, of(point)));
                format!("{{ points = [{}] }}", points.collect::<Vec<_>>().join(", "))
            };
            let (busy, power) = (curve(|point| point.1), curve(|point| point.2));
            writeln!(
                text,
                "[[card]]\npreset = \"h100\"\nuuid = \"{}\"\n[card.curve]\nsm = {busy}\nutil = {busy}\npower_w = {power}",
                uuid(card)
            )
            .unwrap();
        }
        text
    }

    /// Who has a card at a tick.
    pub fn holder(&self, card: usize, tick: i64) -> Option<usize> {
        self.jobs.iter().position(|job| job.card == card && (job.from..job.until).contains(&tick))
    }

    /// Whether the wall clock was odd at some of these ticks.
    pub fn is_odd(&self, from: i64, until: i64) -> bool {
        self.odd.iter().any(|(first, last)| from < *last && *first < until)
    }

    /// What a card draws at a tick. Unit: watts.
    pub fn power_w(&self, card: usize, tick: i64) -> i64 {
        self.holder(card, tick).map_or(FREE_W, |job| self.jobs[job].power_w)
    }
}

/// The UUID of a card.
pub fn uuid(card: usize) -> String {
    format!("GPU-00000000-0000-4000-8000-00000000000{card}")
}

/// Jobs of a few minutes to two hours, with and without room between them.
fn jobs(random: &mut Random, ticks: i64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for card in 0..CARDS {
        let mut tick = random.within(0..40);
        loop {
            let length = random.within(8..2 * HOUR);
            // The last ends before the story does.
            if tick + length > ticks - 4 {
                break;
            }
            let busy_pct = random.within(5..96);
            let id = 1000 + jobs.len() as i64;
            jobs.push(Job { id, card, from: tick, until: tick + length, busy_pct, power_w: 150 + 5 * busy_pct });
            tick += length + if random.per_cent(30) { 0 } else { random.within(1..HOUR / 2) };
        }
    }
    jobs
}

fn kill(random: &mut Random) -> Kill {
    let ms = |random: &mut Random, most: i64| Duration::from_micros(random.within(0..most * 1000) as u64);
    let whom = [Whom::Collector, Whom::Service, Whom::Both][random.within(0..3) as usize];
    let pause_ms = match random.within(0..100) {
        0..50 => 0,
        50..85 => random.within(15_000..120_000),
        _ => random.within(120_000..1_200_000),
    };
    Kill { whom, after: ms(random, 25), pause_ms, again: random.per_cent(20).then(|| ms(random, 150)) }
}
