//! What the books must say, worked out from the story and from which ticks are on disk: ranges, since of the tick in which a collector was killed
//! nobody knows whether it got there.
//!
//! Shares nothing with the collector or the books but the design: a look proves a holder from its tick to the next, a sample speaks for the time
//! between two readings of one life, a counter goes on between two lives, and who was there before and after a time in which nobody looked was there.

use super::story::{CARDS, START_UNIX_S, Story, TICK_MS, TICK_S};
use std::collections::{BTreeMap, BTreeSet};

/// How sure it is that something is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sure {
    Maybe,
    Yes,
}

/// A look at a card: at which tick of the wall clock, and which job was there.
type Looks = BTreeMap<(usize, i64, Option<usize>), Sure>;

/// Everything that was seen.
#[derive(Default)]
pub struct Witness {
    looks: Looks,
    /// Ticks of the wall clock for which each card's values are on disk.
    samples: BTreeMap<(usize, i64), Sure>,
    /// Ticks of the wall clock between two lives of which the next told what the counters grew by.
    between: BTreeSet<i64>,
    life: Life,
    /// Where the last life ended, on the wall clock and on the story's, if all that it did is surely on disk.
    ended: Option<(i64, i64)>,
    pub ticks_on_disk: u64,
    pub ticks_in_doubt: u64,
}

/// What one life of the collector has in memory.
#[derive(Default)]
struct Life {
    last_tick: Option<i64>,
    /// The end of what its samples have told: on the wall clock and on the story's.
    told: Option<(i64, i64)>,
    /// Whether its last tick is surely on disk.
    is_whole: bool,
    /// Holdings that wait for the disk.
    waiting: Vec<(usize, i64, Option<usize>)>,
}

/// What is at least and at most. Unit: milliseconds, or millijoules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    pub least: i64,
    pub most: i64,
}

impl Range {
    fn of_ticks(least: usize, most: usize) -> Self {
        Self { least: least as i64 * TICK_MS, most: most as i64 * TICK_MS }
    }

    #[track_caller]
    pub fn check(self, told: i64, what: &str) {
        assert!((self.least..=self.most).contains(&told), "{what}: {told} is not within {self:?}");
    }
}

/// What the books must say of a card, or of several.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfCard {
    pub held: Range,
    pub free: Range,
    pub unaccounted: Range,
    /// All that it drew. Unit: millijoules.
    pub energy_mj: Range,
    /// How long it was busy at most. Unit: milliseconds.
    pub busy_ms: i64,
}

impl OfCard {
    /// Of both together.
    pub fn with(self, other: &Self) -> Self {
        let sum = |a: Range, b: Range| Range { least: a.least + b.least, most: a.most + b.most };
        Self {
            held: sum(self.held, other.held),
            free: sum(self.free, other.free),
            unaccounted: sum(self.unaccounted, other.unaccounted),
            energy_mj: sum(self.energy_mj, other.energy_mj),
            busy_ms: self.busy_ms + other.busy_ms,
        }
    }
}

/// What the books must say of a job.
#[derive(Clone, Copy, Debug)]
pub struct OfJob {
    pub held: Range,
    pub unseen: Range,
    /// Whether the wall clock was set while it ran, so that parts of it can't be told from others'.
    pub is_odd: bool,
}

impl Witness {
    /// A tick is over, or was cut off: `tick` on the story's clock, `ahead` of it the wall clock. Unit: ticks.
    pub fn tick(&mut self, story: &Story, tick: i64, ahead: i64, is_disk_full: bool, is_cut: bool) {
        let wall = tick + ahead;
        let sure = if is_cut || is_disk_full { Sure::Maybe } else { Sure::Yes };
        if sure == Sure::Yes {
            self.ticks_on_disk += 1;
        } else {
            self.ticks_in_doubt += 1;
        }
        if self.life.last_tick.is_none_or(|last| wall > last) {
            for card in 0..CARDS {
                let look = (card, wall, story.holder(card, tick));
                self.look(look, sure);
                if is_disk_full && !is_cut {
                    self.life.waiting.push(look);
                }
            }
        }
        self.life.last_tick = self.life.last_tick.max(Some(wall));
        if sure == Sure::Yes {
            for look in std::mem::take(&mut self.life.waiting) {
                self.look(look, Sure::Yes);
            }
        }
        self.life.is_whole = sure == Sure::Yes;
        let Some((told_wall, told_tick)) = self.life.told else {
            self.life.told = Some((wall, tick));
            // The counter went on meanwhile, and where the clock did as well it is known for which time.
            if let Some((ended_wall, ended_tick)) = self.ended.take()
                && sure == Sure::Yes
                && wall - ended_wall == tick - ended_tick
            {
                self.between.extend(ended_wall..wall);
            }
            return;
        };
        let went_by = tick - told_tick;
        // A clock that was set forward leaves a gap; one that was set back adds nothing until it is past what was told.
        let from = if wall - told_wall == went_by { told_wall } else { told_wall.max(wall - went_by) };
        if from < wall {
            self.life.told = Some((wall, tick));
            for (card, at) in (0..CARDS).flat_map(|card| (from..wall).map(move |at| (card, at))) {
                let known = self.samples.entry((card, at)).or_insert(sure);
                *known = (*known).max(sure);
            }
        }
    }

    fn look(&mut self, look: (usize, i64, Option<usize>), sure: Sure) {
        let known = self.looks.entry(look).or_insert(sure);
        *known = (*known).max(sure);
    }

    /// The collector is dead.
    pub fn life_ends(&mut self) {
        let life = std::mem::take(&mut self.life);
        // A life that didn't come to its first tick leaves what the one before noted; one that was cut off at a tick may leave nothing.
        if life.last_tick.is_some() {
            self.ended = life.told.filter(|_| life.is_whole);
        }
    }

    fn looked(&self, card: usize) -> impl Iterator<Item = (i64, Option<usize>, Sure)> {
        let of_card = (card, i64::MIN, None)..(card + 1, i64::MIN, None);
        self.looks.range(of_card).map(|((_, wall, job), sure)| (*wall, *job, *sure))
    }

    /// Ticks at which a job is held if what is surely on disk is there, and if all that may be is.
    fn held(&self, story: &Story, job: usize) -> [BTreeSet<i64>; 2] {
        let card = story.jobs[job].card;
        let of = |least: Sure| -> BTreeSet<i64> {
            self.looked(card).filter(|(_, who, sure)| *who == Some(job) && *sure >= least).map(|(w, ..)| w).collect()
        };
        let (surely, perhaps) = (of(Sure::Yes), of(Sure::Maybe));
        let any_look: BTreeSet<i64> = self.looked(card).map(|(wall, ..)| wall).collect();
        let sure_look: BTreeSet<i64> =
            self.looked(card).filter(|(.., sure)| *sure == Sure::Yes).map(|(wall, ..)| wall).collect();
        [bridged(&surely, &any_look), bridged(&perhaps, &sure_look)]
    }

    /// What the books must say of each job, by its place in the story, and of each card; over the story's own days.
    pub fn expected(&self, story: &Story) -> (Vec<OfJob>, Vec<OfCard>) {
        let held: Vec<[BTreeSet<i64>; 2]> = (0..story.jobs.len()).map(|job| self.held(story, job)).collect();
        let mut least: Vec<BTreeMap<i64, BTreeSet<usize>>> = vec![BTreeMap::new(); CARDS];
        let mut most = least.clone();
        for (job, [surely, perhaps]) in held.iter().enumerate() {
            let card = story.jobs[job].card;
            surely.iter().for_each(|wall| _ = least[card].entry(*wall).or_default().insert(job));
            perhaps.iter().for_each(|wall| _ = most[card].entry(*wall).or_default().insert(job));
        }
        let jobs = held.iter().enumerate().map(|(job, [surely, perhaps])| {
            let card = story.jobs[job].card;
            // What another may have had at the same time of the wall clock may be that other's in the books.
            let own = surely.iter().filter(|wall| most[card][wall].len() == 1).count();
            let seen = |sure: Sure| {
                let is_seen = |wall: &&i64| self.samples.get(&(card, **wall)).is_some_and(|known| *known >= sure);
                perhaps.iter().filter(is_seen).count()
            };
            let unseen = Range::of_ticks(
                own.saturating_sub(seen(Sure::Maybe)),
                perhaps.len() - seen(Sure::Yes).min(perhaps.len()),
            );
            let is_odd = perhaps.first().zip(perhaps.last()).is_some_and(|(a, b)| story.is_odd(*a, *b + 1));
            OfJob { held: Range::of_ticks(own, perhaps.len()), unseen, is_odd }
        });
        let cards = (0..CARDS).map(|card| {
            let in_days = |wall: &i64| (0..story.ticks).contains(wall);
            let looks = |sure: Sure| -> BTreeSet<i64> {
                self.looked(card).filter(|(wall, _, known)| *known >= sure && in_days(wall)).map(|(w, ..)| w).collect()
            };
            let (surely, perhaps) = (looks(Sure::Yes), looks(Sure::Maybe));
            let is_held = |held: &[BTreeMap<i64, BTreeSet<usize>>], wall: i64| held[card].contains_key(&wall);
            let count = |what: &dyn Fn(i64) -> bool| (0..story.ticks).filter(|wall| what(*wall)).count();
            let range =
                |least: &dyn Fn(i64) -> bool, most: &dyn Fn(i64) -> bool| Range::of_ticks(count(least), count(most));
            let is_sample = |wall: &i64| self.samples.get(&(card, *wall)) == Some(&Sure::Yes);
            let metered = (0..story.ticks)
                .filter(|wall| !story.is_odd(*wall, wall + 1) && (is_sample(wall) || self.between.contains(wall)));
            OfCard {
                held: range(&|wall| is_held(&least, wall), &|wall| is_held(&most, wall)),
                free: range(&|wall| surely.contains(&wall) && !is_held(&most, wall), &|wall| {
                    perhaps.contains(&wall) && !is_held(&least, wall)
                }),
                unaccounted: range(&|wall| !perhaps.contains(&wall) && !is_held(&most, wall), &|wall| {
                    !surely.contains(&wall) && !is_held(&least, wall)
                }),
                energy_mj: Range {
                    least: metered.map(|wall| story.power_w(card, wall) * TICK_MS).sum(),
                    most: (0..story.ticks).map(|tick| story.power_w(card, tick) * TICK_MS).sum(),
                },
                busy_ms: (0..story.ticks)
                    .filter_map(|tick| story.holder(card, tick))
                    .map(|job| story.jobs[job].busy_pct * TICK_MS / 100)
                    .sum(),
            }
        });
        (jobs.collect(), cards.collect())
    }
}

/// Ticks, and those between two of them at none of which anybody looked.
fn bridged(ticks: &BTreeSet<i64>, looks: &BTreeSet<i64>) -> BTreeSet<i64> {
    let mut out = ticks.clone();
    for (a, b) in ticks.iter().zip(ticks.iter().skip(1)) {
        if looks.range(a + 1..*b).next().is_none() {
            out.extend(a + 1..*b);
        }
    }
    out
}

/// A tick of the wall clock as text.
pub fn time(wall: i64) -> String {
    chrono::DateTime::from_timestamp(START_UNIX_S + wall * TICK_S, 0).unwrap().to_rfc3339()
}
