//! What was used of a month, hour by hour, by the owner of each quota: what a bucket of card-hours is held against.
//!
//! The card-time of an attempt is what every report says of it. Inside the month, and in the week before it, it is spread evenly over the time in which the attempt held its cards:
//! a job's cards don't change, so that this is where it was.

use super::{Quota, Quotas};
use crate::cell::Cell;
use crate::checkpoint::Sources;
use crate::checkpoint::facts::Facts;
use crate::checkpoint::quota_use::{Models, Use, is_own};
use crate::report::ReportInput;
use crate::slots::{Era, Slots, SlotsError, ViewCut};
use cardhour_domain::{BUCKET_MS, CardState, CardTime, Interval, Name, Timestamp, Zone};
use rust_decimal::Decimal;
use std::collections::BTreeMap;

const HOUR_MS: i64 = 3_600_000;
/// Over how much time a pace is taken, also before the month. Unit: milliseconds, seven days.
const PACE_MS: i64 = 7 * 24 * HOUR_MS;

/// The time that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonthSpan {
    /// The billing month.
    pub month: Interval,
    /// From seven days before it, or where the books begin, to [`Self::until`].
    pub read: Interval,
    /// Up to when the books speak of the month. Shape: on a quarter hour, in the month or at its end.
    pub until: Timestamp,
    /// Up to when records say who held what: who holds cards now is asked of this moment. No later than [`Self::until`].
    pub said_until: Timestamp,
}

impl MonthSpan {
    /// Of the billing month just before `asked`, of books that hold `all` and whose records end with `last_word`. None where they say nothing of it yet.
    pub fn of(asked: Timestamp, all: Interval, last_word: Option<Timestamp>, zone: Zone) -> Option<Self> {
        let before = |at: Timestamp| Timestamp::from_unix_ms(at.unix_ms() - 1);
        let month = zone.month(before(asked))?.interval(zone);
        let books_end = before(all.end()).bucket_start().checked_add_ms(BUCKET_MS)?;
        let until = asked.bucket_start().min(books_end).min(month.end());
        if until <= month.start() {
            return None;
        }
        // A whole number of hours before the month, so that the month begins on one.
        let known_ms = month.start().ms_since(all.start().bucket_start()).clamp(0, PACE_MS) / HOUR_MS * HOUR_MS;
        let read = Interval::new(Timestamp::from_unix_ms(month.start().unix_ms() - known_ms), until)?;
        let said_until = last_word.filter(|last| *last > month.start()).map_or(until, |last| last.min(until));
        Some(Self { month, read, until, said_until })
    }

    /// The part of the month of which the books speak.
    fn so_far(&self) -> Option<Interval> {
        Interval::new(self.month.start(), self.until)
    }
}

/// Used card-time, added up from the start of what was read: at each hour, and at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UseCurve {
    during: Interval,
    /// Used before the end of each hour, the last one cut by the end.
    by_hour: Vec<CardTime>,
}

impl UseCurve {
    fn new(during: Interval) -> Self {
        let hours = during.length_ms().div_euclid(HOUR_MS) + i64::from(during.length_ms() % HOUR_MS > 0);
        Self { during, by_hour: vec![CardTime::ZERO; usize::try_from(hours).expect("a month has few hours")] }
    }

    /// Spreads card-time evenly over a stretch. Nothing is lost: each hour gets what the rounded sum grows by.
    fn spread(&mut self, time: CardTime, over: Interval) {
        let length_ms = i128::from(over.length_ms());
        let by = |at: Timestamp| {
            let ms = at.ms_since(over.start()).clamp(0, over.length_ms());
            time.part_ms() * i128::from(ms) / length_ms
        };
        let first = over.start().ms_since(self.during.start()).div_euclid(HOUR_MS);
        let last = (over.end().ms_since(self.during.start()) - 1).div_euclid(HOUR_MS);
        for hour in first..=last {
            let edge = |hour: i64| Timestamp::from_unix_ms(self.during.start().unix_ms() + hour * HOUR_MS);
            let grown = by(edge(hour + 1)) - by(edge(hour));
            let place = usize::try_from(hour).expect("it is read from its start");
            self.by_hour[place] += CardTime::from_part_ms(grown);
        }
    }

    fn added_up(mut self) -> Self {
        let mut sum = CardTime::ZERO;
        for hour in &mut self.by_hour {
            sum += *hour;
            *hour = sum;
        }
        self
    }

    /// What was used up to an instant: exact on its hours and at its end, else up to the hour before.
    pub fn used_by(&self, at: Timestamp) -> CardTime {
        if at >= self.during.end() {
            return self.by_hour.last().copied().unwrap_or(CardTime::ZERO);
        }
        let hours = at.ms_since(self.during.start()).div_euclid(HOUR_MS);
        let before = usize::try_from(hours).ok().and_then(|hours| hours.checked_sub(1));
        before.and_then(|hour| self.by_hour.get(hour)).copied().unwrap_or(CardTime::ZERO)
    }

    /// From where to where it goes.
    pub fn during(&self) -> Interval {
        self.during
    }

    /// The instants at which it is exact, after `from`.
    pub fn instants(&self, from: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        let hours = (1..=self.by_hour.len()).map(|hour| {
            let hour_ms = i64::try_from(hour).expect("a month has few hours") * HOUR_MS;
            Timestamp::from_unix_ms(self.during.start().unix_ms() + hour_ms).min(self.during.end())
        });
        hours.filter(move |at| *at > from)
    }
}

/// How the owner of a quota of cards uses it in a month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonthUse {
    /// The quota: its place in the file.
    pub quota: usize,
    /// In which cluster; none where no cluster is known to have the model.
    pub cluster: Option<Name>,
    /// What it holds at the end of what is known. Unit: cards.
    pub held_cards: Decimal,
    /// Its jobs that wait at that moment.
    pub waiting: u64,
    /// The part of the month so far in which it had what it is guaranteed; none without a guarantee.
    pub hit_rate: Option<Decimal>,
    /// What it used since the month began: what every report says.
    pub used: CardTime,
    /// The same from the week before the month on.
    pub curve: UseCurve,
}

/// The slots that a month's use has to be read by. Errors: as [`Slots::new`].
pub fn month_slots(span: &MonthSpan, zone: Zone) -> Result<Slots, SlotsError> {
    Slots::new(span.read, None, zone, Some(ViewCut { zone, by_day: true, by_month: false }))
}

/// A row for each quota of cards, and of one for any cluster for each cluster that has its model: in the order of the file. `input` is read by [`month_slots`].
pub fn month_uses(quotas: &Quotas, input: &ReportInput, slots: &Slots, span: &MonthSpan) -> Vec<MonthUse> {
    let Some(said) = Interval::new(span.month.start(), span.said_until) else { return Vec::new() };
    let facts = Facts::of(Sources { input, slots, book: None, all: span.read });
    let models = Models::of(&facts);
    let mut uses = Vec::new();
    for (place, quota) in quotas.quotas.iter().enumerate() {
        let Some(cards) = &quota.cards else { continue };
        let clusters: Vec<Option<&Name>> = match &quota.cluster {
            Some(cluster) => vec![Some(cluster)],
            None => models.clusters(&cards.model),
        };
        for cluster in clusters {
            let now = Use::of(&facts, &models, quota, cards, cluster, said);
            let curve = curve(quota, &cards.model, cluster, input, slots, span);
            let used = curve.used_by(span.until) - curve.used_by(span.month.start());
            let whole = CardTime::from_part_ms(i128::from(said.length_ms()));
            let hit = CardTime::from_part_ms(i128::from(now.hit_ms));
            uses.push(MonthUse {
                quota: place,
                cluster: cluster.cloned(),
                held_cards: CardTime::from_part_ms(now.last_parts * i128::from(HOUR_MS)).card_hours(),
                waiting: now.last_waiting,
                hit_rate: (cards.guaranteed > 0).then(|| hit.ratio_of(whole)).flatten(),
                used,
                curve,
            });
        }
    }
    uses
}

/// What an owner used of a model, from the cells of its attempts.
fn curve(
    quota: &Quota,
    model: &str,
    cluster: Option<&Name>,
    input: &ReportInput,
    slots: &Slots,
    span: &MonthSpan,
) -> UseCurve {
    let before = Interval::new(span.read.start(), span.month.start());
    let is_of = |cell: &&Cell| cell.state == CardState::Held && cell.model.as_deref() == Some(model);
    // Of each attempt, what it held in the month and what before it.
    let mut sums: BTreeMap<(u32, bool), CardTime> = BTreeMap::new();
    for cell in input.cells.iter().filter(is_of) {
        let (Some(attempt), slot) = (cell.attempt, slots.slot(cell.slot)) else { continue };
        if slot.era == Era::Shown && is_own(quota, cluster, &input.attempts[attempt as usize]) {
            let is_in_month = slot.span.start() >= span.month.start();
            *sums.entry((attempt, is_in_month)).or_default() += cell.card_time;
        }
    }
    let mut curve = UseCurve::new(span.read);
    for ((attempt, is_in_month), time) in sums {
        let Some(part) = (if is_in_month { span.so_far() } else { before }) else { continue };
        let held = input.attempts[attempt as usize].held.and_then(|held| held.overlap(part));
        curve.spread(time, held.unwrap_or(part));
    }
    curve.added_up()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{World, at, range};
    use proptest::prelude::*;

    fn uses(world: &World, quotas: &str, asked: &str) -> (MonthSpan, Vec<MonthUse>) {
        let quotas = Quotas::parse(quotas).unwrap_or_else(|faults| panic!("{faults}"));
        let span = MonthSpan::of(at(asked), world.all(), None, world.zone).unwrap();
        let slots = month_slots(&span, world.zone).unwrap();
        let uses = month_uses(&quotas, &world.input(&slots), &slots, &span);
        (span, uses)
    }

    fn hours(time: CardTime) -> String {
        time.card_hours().normalize().to_string()
    }

    /// By hand. Job 1 has 4 cards from 30 April 12:00 to 1 May 06:00: 48 card-hours in April, 24 in May. Job 2 has 2 from 2 May 00:30 on, asked at 2 May 12:30: 24. So 48 in May up to
    /// then; at 1 May 03:00 12, at 2 May 00:00 24. Of 36.5 h of May vision had 4 cards for 6: 0.164384. Job 3 waits. Job 4 is of another project.
    #[test]
    fn a_month_is_used_where_cards_were_held() {
        let world = World::jobs(
            "1 lab vision ann q completed T4 n1 4 2026-04-30T12:00 2026-05-01T06:00
             2 lab vision ann q running T4 n1 2 2026-05-02T00:30 2026-05-02T12:30
             3 lab vision bob q pending - - 1
             4 lab speech cy q running T4 n1 8 2026-05-01T00:00 2026-05-02T12:30",
        );
        let text = "[[quota]]\norg = \"lab\"\nproject = \"vision\"\nmodel = \"T4\"\nguaranteed = 4\n\
                    [[quota]]\norg = \"lab\"\nmodel = \"T4\"\nmonth_card_hours = 100\n";
        let (span, uses) = uses(&world, text, "2026-05-02T12:30");
        assert_eq!(span.month, range("2026-05-01", "2026-06-01"));
        assert_eq!(span.read, range("2026-04-30T12:00", "2026-05-02T12:30"));
        let vision = &uses[0];
        assert_eq!((vision.cluster.as_deref(), hours(vision.used)), (Some("c"), "48".to_owned()));
        assert_eq!((vision.held_cards.normalize().to_string(), vision.waiting), ("2".to_owned(), 1));
        assert_eq!(vision.hit_rate.unwrap().to_string(), "0.164384");
        let by = |when: &str| hours(vision.curve.used_by(at(when)));
        assert_eq!(by("2026-05-01"), "48");
        assert_eq!(by("2026-05-01T03:00"), "60");
        assert_eq!(by("2026-05-02"), "72");
        assert_eq!(by("2026-05-02T12:30"), "96");
        // The organisation has speech's 8 × 36.5 = 292 as well.
        assert_eq!((hours(uses[1].used), uses[1].hit_rate), ("340".to_owned(), None));
    }

    #[test]
    fn of_a_month_that_has_just_begun_nothing_is_known() {
        let all = range("2026-04-01", "2026-05-01");
        assert_eq!(MonthSpan::of(at("2026-05-01T00:10"), all, None, Zone::UTC), None);
        let april = MonthSpan::of(at("2026-05-01"), all, None, Zone::UTC).unwrap();
        assert_eq!((april.month, april.until), (all, at("2026-05-01")));
    }

    proptest! {
        /// Whatever is spread, all of it is there at the end, and it never shrinks.
        #[test]
        fn nothing_is_lost_by_spreading(pieces in prop::collection::vec((0i64..2000, 1i64..2000, 0i128..10_000_000), 1..20)) {
            let during = range("2026-05-01", "2026-05-04");
            let mut curve = UseCurve::new(during);
            let minute = |minute: i64| Timestamp::from_unix_ms(during.start().unix_ms() + minute * 60_000);
            let mut sum = 0;
            for (from, long, parts) in pieces {
                curve.spread(CardTime::from_part_ms(parts), Interval::new(minute(from), minute(from + long)).unwrap());
                sum += parts;
            }
            let curve = curve.added_up();
            prop_assert_eq!(curve.used_by(during.end()).part_ms(), sum);
            let by: Vec<i128> = curve.instants(during.start()).map(|at| curve.used_by(at).part_ms()).collect();
            prop_assert!(by.is_sorted());
        }
    }
}
