//! What a holder makes its cards do, quarter hour by quarter hour.
//!
//! Between two whole multiples of [`TICK_S`] nothing changes of what a holder does.

use super::rng::Rng;

/// How long a holder does one thing, and the longest that a row of the simulated nodes speaks for. Unit: seconds.
pub const TICK_S: i64 = 900;
/// How often a simulated node looks, as a real one does. Unit: seconds.
///
/// Looks that found the same are told as one row: a row each would be four million, for a month that nobody watched.
pub const LOOK_S: i64 = 15;

/// What a holder is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// Computes, and now and then writes a checkpoint.
    Steady,
    /// Answers requests: people ask by day.
    Served,
    /// Somebody sits at it: work by the hour, nothing at night.
    Desk,
    /// Worked for its first ticks, and nobody came back.
    Left,
    /// Waits for data most of the time.
    Starved,
}

/// A holder and how hard it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doer {
    /// What it is like.
    pub habit: Habit,
    /// How busy its cards are while it works, each. Unit: thousandths of a card, at most its share.
    pub busy_milli: i64,
    /// Where its own chance comes from.
    pub salt: u64,
    /// From when on. Unit: seconds since the epoch.
    pub start_s: i64,
    /// It computes nothing from when to when, if it was suspended. Unit: seconds since the epoch.
    pub suspended: Option<(i64, i64)>,
}

/// What a holder does on one card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doing {
    /// How busy the card is for it. Unit: thousandths of the card.
    pub busy_milli: i64,
    /// How busy the memory's bandwidth is. Unit: thousandths.
    pub memory_milli: i64,
    /// Moved over NVLink. Unit: bytes a second.
    pub nvlink: i64,
    /// Moved between card and host. Unit: bytes a second.
    pub pcie: i64,
    /// Processor time. Unit: thousandths of a core.
    pub cpu_milli: i64,
    /// Read and written by its processes. Unit: bytes a second.
    pub io: i64,
    /// Whether somebody is there.
    pub is_attended: bool,
}

/// How many of a day's requests come in each local hour, as thousandths of its busiest.
const BY_HOUR: [i64; 24] = [
    180, 110, 70, 50, 50, 60, 110, 240, 480, 720, 880, 930, 760, 800, 950, 1000, 970, 900, 780, 740, 760, 690, 480, 300,
];
/// How long the one who left worked. Unit: seconds.
const LEFT_AFTER_S: i64 = 4 * TICK_S;
/// How busy the cards are that wait for data, in turn: a shard is read ahead, used up, and waited for.
const STARVED: [i64; 4] = [310, 210, 120, 60];

impl Doer {
    /// What it does in the tick that begins at `tick_s`; `hour` is the local one.
    pub fn doing(&self, tick_s: i64, hour: i64) -> Doing {
        if self.suspended.is_some_and(|(from_s, to_s)| from_s <= tick_s && tick_s + TICK_S <= to_s) {
            return Doing::nothing();
        }
        let mut chance = Rng::new(self.salt ^ (tick_s as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let turn = tick_s.div_euclid(TICK_S);
        let noise = chance.between(-30, 30);
        let of_busy = |per_mille: i64| (self.busy_milli * (per_mille + noise) / 1000).clamp(1, 1000);
        match self.habit {
            Habit::Steady => {
                let writes = (turn + (self.salt % 16) as i64) % 16 == 0;
                Doing::work(of_busy(if writes { 640 } else { 960 }))
            }
            Habit::Served => Doing { io: 8_000_000, ..Doing::work(of_busy(BY_HOUR[hour as usize].max(60))) },
            Habit::Desk => {
                // The same for all ticks of an hour, so that a rest is a rest.
                let mut chance = Rng::new(self.salt ^ (turn.div_euclid(4) as u64).wrapping_mul(0xD1B5_4A32_D192_ED03));
                let is_there = (9..22).contains(&hour) && chance.chance(620);
                if is_there { Doing { is_attended: true, ..Doing::work(of_busy(900)) } } else { Doing::nothing() }
            }
            Habit::Left if tick_s + TICK_S <= self.start_s + LEFT_AFTER_S => {
                Doing { is_attended: true, ..Doing::work(of_busy(900)) }
            }
            Habit::Left => Doing::nothing(),
            Habit::Starved => {
                let place = turn.rem_euclid(STARVED.len() as i64) as usize;
                let busy = STARVED[place] + noise / 3;
                // The emptier its buffer, the more it reads.
                let pcie = 2_400_000_000 + 1_500_000_000 * place as i64;
                Doing { pcie, io: pcie / 4, cpu_milli: 11_500, ..Doing::work(busy) }
            }
        }
    }
}

impl Doing {
    /// A kernel is loaded and nothing runs.
    pub const fn nothing() -> Self {
        Self { busy_milli: 0, memory_milli: 0, nvlink: 0, pcie: 0, cpu_milli: 4, io: 2_000, is_attended: false }
    }

    /// Work that keeps a card so busy.
    const fn work(busy_milli: i64) -> Self {
        Self {
            busy_milli,
            memory_milli: busy_milli * 11 / 20,
            nvlink: busy_milli * 24_000_000,
            pcie: busy_milli * 1_500_000,
            cpu_milli: 300 + 4 * busy_milli,
            io: 20_000_000,
            is_attended: false,
        }
    }

    /// Whether it does nothing at all.
    pub const fn is_rest(&self) -> bool {
        self.busy_milli == 0
    }
}
