//! What became of held time in the simulated world, and how far from it books may be that only see ticks.
//!
//! Added up from who had which card and what each did, sharing no code with the split or the rule of idleness. What of it ticks can tell exactly
//! (unseen and lost time, the energy of the pool) has no bound. The rest has one: a sample is a mean from one look to the next, and where a tenant
//! comes or goes in between, it can't be told from who was there before or after.
//!
//! It was there for L of the T seconds between two looks. What is taken for its mean is off by at most (T − L) / T, over L: L × (T − L) / T, which is
//! no more than T / 4.

use super::super::clock::Clock;
use super::super::habit::{LOOK_S, TICK_S};
use super::super::people::PROJECTS;
use super::super::pool::NODES;
use super::super::power::Model;
use super::super::tenants::{Card, House};
use super::Truth;
use cardhour_domain::{CardShare, CardTime};
use std::collections::BTreeMap;

/// Where the held time of a project and month went: held = unseen + lost + idle + effective + underused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedTruth {
    /// Nobody looked.
    pub unseen: CardTime,
    /// Seen, and what was made of it is gone.
    pub lost: CardTime,
    /// Seen at rest for half an hour or more, after the grace of its class.
    pub idle: CardTime,
    /// The busy part.
    pub effective: CardTime,
    /// The rest.
    pub underused: CardTime,
    /// What the held shares of cards drew while they were read. Unit: thousandths of a mJ.
    pub energy_micro: i128,
    /// By how much `effective`, and `idle` and `underused` together, may be off.
    pub busy_off_by: CardTime,
    /// By how much `idle` may be off besides.
    pub idle_off_by: CardTime,
    /// By how much the energy may be off. Unit: mJ.
    pub energy_off_by_mj: i64,
}

/// By how much a coming or going may be off: a quarter of the time between two looks, rounded up, and with it what rounding a mean leaves over.
/// Unit: seconds.
const EDGE_S: i64 = LOOK_S / 4 + 1;
/// How long a rest must be to be idle. Unit: seconds.
const WINDOW_S: i64 = 1800;

/// Adds up where held time went, and what cards drew.
pub fn add_used(truth: &mut Truth, house: &House, clock: &Clock) {
    let mut adding = Adding { house, clock, truth };
    for card in &house.cards {
        adding.card(card);
    }
}

struct Adding<'a> {
    house: &'a House,
    clock: &'a Clock,
    truth: &'a mut Truth,
}

/// A tenant at rest on a card: since when and until when. Unit: seconds since the epoch.
#[derive(Clone, Copy)]
struct Rest {
    from_s: i64,
    to_s: i64,
}

fn card_time(milli: i64, seconds: i64) -> CardTime {
    let parts_a_milli = i128::from(CardShare::PARTS_PER_CARD / 1000);
    CardTime::from_part_ms(parts_a_milli * i128::from(milli) * i128::from(seconds) * 1000)
}

impl Adding<'_> {
    /// Of a tenant's project, in the first or second month.
    fn of(&mut self, tenant: usize, month: usize) -> &mut UsedTruth {
        let project = PROJECTS[self.house.tenants[tenant].project].name;
        self.truth.used.entry((project, self.clock.months[month])).or_default()
    }

    fn card(&mut self, card: &Card) {
        let (house, clock) = (self.house, self.clock);
        let model = Model::of(&NODES[card.node]);
        // Before the second month nobody looked.
        let looks_s = clock.at(1, 0, 0, 0);
        for &tenant in &card.tenants {
            let of = &house.tenants[tenant];
            let before_s = (of.end_s.min(looks_s) - of.start_s).max(0);
            self.of(tenant, 0).unseen += card_time(of.share_milli, before_s);
        }
        let mut rests: BTreeMap<usize, Rest> = BTreeMap::new();
        let mut here: Vec<(usize, i64)> = Vec::new();
        house.ticks(card, clock, |tick_s, moments| {
            let is_read = card.is_read(tick_s);
            here.clear();
            for moment in moments {
                let length_s = moment.length_s();
                for tenant in &moment.tenants {
                    match here.iter_mut().find(|(known, _)| known == tenant) {
                        Some((_, held_s)) => *held_s += length_s,
                        None => here.push((*tenant, length_s)),
                    }
                }
                if is_read {
                    let doings = moment.tenants.iter().map(|tenant| house.doing(*tenant, tick_s, clock));
                    let energy_mj = length_s * model.power_mw(doings);
                    *self.truth.drawn_mj.entry(clock.months[1]).or_default() += energy_mj;
                    for tenant in &moment.tenants {
                        let share = i128::from(house.tenants[*tenant].share_milli);
                        self.of(*tenant, 1).energy_micro += i128::from(energy_mj) * share;
                    }
                }
            }
            for &(tenant, length_s) in &here {
                let of = &house.tenants[tenant];
                let held = card_time(of.share_milli, length_s);
                let doing = house.doing(tenant, tick_s, clock);
                let rest = is_read && doing.is_rest() && !of.is_lost && of.grace_s.is_some();
                if !rest && let Some(rest) = rests.remove(&tenant) {
                    self.end(tenant, rest);
                }
                let used = self.of(tenant, 1);
                if !is_read {
                    used.unseen += held;
                    continue;
                }
                let is_between = |at_s: &i64| (tick_s..tick_s + TICK_S).contains(at_s) && at_s % LOOK_S != 0;
                let edges = [of.start_s, of.end_s].iter().filter(|at_s| is_between(at_s)).count() as i64;
                used.energy_off_by_mj += edges * EDGE_S * model.range_mw() * of.share_milli / 1000;
                if !of.is_lost {
                    used.busy_off_by += card_time(of.share_milli, edges * EDGE_S);
                }
                // A quarter hour's energy is split in whole mJ, and cut in whole mJ where holdings change.
                used.energy_off_by_mj += 4;
                if of.is_lost {
                    used.lost += held;
                } else {
                    let effective = card_time(doing.busy_milli.min(of.share_milli), length_s);
                    used.effective += effective;
                    used.underused += held - effective;
                }
                if rest {
                    let judged_s = of.start_s + of.grace_s.unwrap_or_default();
                    let (from_s, to_s) = (of.start_s.max(tick_s).max(judged_s), of.end_s.min(tick_s + TICK_S));
                    if from_s < to_s {
                        rests.entry(tenant).or_insert(Rest { from_s, to_s }).to_s = to_s;
                    }
                }
            }
            // Who has gone rests no more.
            let gone: Vec<usize> =
                rests.keys().copied().filter(|tenant| house.tenants[*tenant].end_s <= tick_s + TICK_S).collect();
            for tenant in gone {
                if let Some(rest) = rests.remove(&tenant) {
                    self.end(tenant, rest);
                }
            }
        });
        for (tenant, rest) in rests {
            self.end(tenant, rest);
        }
    }

    /// A rest is over: if it was long enough, its time was idle and not underused.
    fn end(&mut self, tenant: usize, rest: Rest) {
        let share_milli = self.house.tenants[tenant].share_milli;
        let length_s = rest.to_s - rest.from_s;
        if length_s >= WINDOW_S {
            let idle = card_time(share_milli, length_s);
            let used = self.of(tenant, 1);
            used.idle += idle;
            used.underused = used.underused - idle;
        }
        // A window begins with a row. A rest that begins inside of one (where the grace ends) is told up to a row too late or, where it is hardly
        // longer than the window, not at all. One that begins with a row is told from its first instant.
        let unsure_s = match length_s {
            _ if rest.from_s % TICK_S == 0 => 2 * LOOK_S,
            _ if length_s < WINDOW_S + TICK_S => length_s,
            _ => TICK_S + 2 * LOOK_S,
        };
        self.of(tenant, 1).idle_off_by += card_time(share_milli, unsure_s);
    }
}
