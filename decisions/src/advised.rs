//! What a pool needs, said from the books: more cards, fewer, moved work, other quotas. Advice, never an act.
//!
//! ```text
//! pool_past (books) ─┬─ use by day, waits by reason ─► advise_pool ─► expand, hold, optimise first; move work together
//!                    ├─ cards there are ─────────────► needs_of_size
//!                    └─ cards wanted by hour ────────► size_quota, fit_to_pool ─► each team's quota
//! ```
//!
//! An advice on a pool has to hold for a week before it is given. Nothing is remembered between two reports: each day of the history is gone through in turn, so that the same books
//! give the same advice.
//!
//! Start at [`expansion`]. Does not: read tables, know prices, change a quota.

use crate::cells::{self, count, hours, name, ratio, section, text, wait};
use cardhour_books::checkpoint::Section;
use cardhour_books::pool_past::{DayPast, PastWait, PoolPast, Team};
use cardhour_books::quotas::Quotas;
use cardhour_books::table::Kind;
use cardhour_domain::{CardShare, CardTime, Gap, Name, Percent, Reading, Timestamp, Zone};
use cardhour_scheduler_core::capacity::{
    Advice, AdvicePolicy, AdviceState, JobWait, Need, PoolAdvice, PoolHistory, PoolSize, QuotaAdvice, advise_pool,
    fit_to_pool, needs_of_size, size_quota,
};
use chrono::{Datelike, NaiveDate};
use std::collections::BTreeMap;

/// An advice looks back over so many days.
pub const WINDOW_DAYS: usize = 30;
/// So many days of the books are gone through, so that the first of them have a history and an advice its dwell.
pub const HISTORY_DAYS: usize = 60;
/// Of a day so much of what was held has to be seen for its use to be told: as for every efficiency. Unit: percent.
const LEAST_SEEN_PERCENT: i128 = 50;

/// The advice on one pool as of the last day of its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolAdvised {
    /// Cluster.
    pub cluster: Name,
    /// Model of its cards.
    pub model: Option<Name>,
    /// The advice.
    pub advice: PoolAdvice,
    /// What was waited for want of cards, in the days it looks back over: cards that were wanted × the wait.
    pub for_capacity: CardTime,
    /// The same for want of the right places.
    pub for_placement: CardTime,
    /// The same for anything else.
    pub for_other: CardTime,
}

/// The advice on a pool: each day of its past in turn, with the days before it. None of a pool without days.
pub fn advise(past: &PoolPast, zone: Zone, policy: &AdvicePolicy) -> Option<PoolAdvised> {
    let waits: Vec<(Option<NaiveDate>, &PastWait)> =
        past.waits.iter().map(|wait| (zone.date(wait.started_at), wait)).collect();
    let mut advice: Option<PoolAdvice> = None;
    for end in 1..=past.days.len() {
        let days = &past.days[end.saturating_sub(WINDOW_DAYS)..end];
        let history = history(days, &waits);
        let day = i64::from(days.last()?.day.num_days_from_ce());
        let state = advice.map_or_else(AdviceState::default, |advice| advice.state);
        advice = Some(advise_pool(state, day, &history, policy));
    }
    let window = &past.days[past.days.len().saturating_sub(WINDOW_DAYS)..];
    let sum = |of: fn(&PastWait) -> i64| {
        let time = |(_, wait): &(_, &PastWait)| {
            CardTime::from_part_ms(i128::from(wait.cards.parts()) * i128::from(of(wait).max(0)))
        };
        in_days(window, &waits).map(time).sum::<CardTime>()
    };
    Some(PoolAdvised {
        cluster: past.cluster.clone(),
        model: past.model.clone(),
        advice: advice?,
        for_capacity: sum(|wait| wait.for_capacity_ms),
        for_placement: sum(|wait| wait.for_placement_ms),
        for_other: sum(|wait| wait.for_other_ms),
    })
}

fn in_days<'a>(
    days: &[DayPast],
    waits: &'a [(Option<NaiveDate>, &'a PastWait)],
) -> impl Iterator<Item = &'a (Option<NaiveDate>, &'a PastWait)> {
    let span = days.first().zip(days.last()).map(|(first, last)| first.day..=last.day);
    waits.iter().filter(move |(day, _)| span.as_ref().zip(*day).is_some_and(|(span, day)| span.contains(&day)))
}

fn history(days: &[DayPast], waits: &[(Option<NaiveDate>, &PastWait)]) -> PoolHistory {
    let wait = |(_, wait): &(_, &PastWait)| JobWait {
        // Part of a card is a card to be found.
        cards: u32::try_from((wait.cards.parts() + CardShare::PARTS_PER_CARD - 1) / CardShare::PARTS_PER_CARD)
            .unwrap_or(u32::MAX),
        for_capacity_ms: wait.for_capacity_ms,
        for_placement_ms: wait.for_placement_ms,
        for_other_ms: wait.for_other_ms,
    };
    PoolHistory { use_by_day: days.iter().map(use_of).collect(), waits: in_days(days, waits).map(wait).collect() }
}

/// How much of what was held and seen was used; missing where too little was seen, and where nothing was held.
fn use_of(day: &DayPast) -> Reading<Percent> {
    let (held, seen) = (day.held.part_ms(), day.seen.part_ms());
    if held <= 0 || seen <= 0 || seen * 100 < held * LEAST_SEEN_PERCENT {
        return Reading::Missing(Gap::NotRecorded);
    }
    let thousandths = day.effective.part_ms() * i128::from(Percent::WHOLE.thousandths()) / seen;
    let percent = i32::try_from(thousandths).ok().and_then(Percent::from_thousandths);
    percent.map_or(Reading::Missing(Gap::Implausible), Reading::Seen)
}

impl PoolAdvised {
    /// It in a sentence or two, with its figures.
    pub fn words(&self, policy: &AdvicePolicy) -> String {
        self.advice.words(policy)
    }

    /// Whether there is something to do.
    pub fn is_call(&self) -> bool {
        self.advice.defragment || self.advice.state.advice != Advice::Hold
    }
}

/// Buy or don't: columns `cluster model cards use_p50 days_seen p90_capacity_wait_hours p90_wait_hours waited_for_capacity_card_hours
/// waited_for_placement_card_hours waited_for_other_card_hours missing_cards advice is_scattered what`, a row a pool.
pub fn expansion(pools: &[PoolPast], zone: Zone) -> Section {
    let policy = AdvicePolicy::default();
    let rows = pools.iter().filter_map(|past| {
        let advised = advise(past, zone, &policy)?;
        let figures = advised.advice.figures;
        Some(vec![
            text(&past.cluster),
            name(past.model.as_ref()),
            count(past.cards.map(u64::from)),
            ratio(figures.use_p50),
            count(Some(figures.days_seen as u64)),
            wait(figures.capacity_wait_p90_ms),
            wait(figures.wait_p90_ms),
            hours(advised.for_capacity),
            hours(advised.for_placement),
            hours(advised.for_other),
            count(Some(figures.missing_cards)),
            text(advised.advice.state.advice.name()),
            text(if advised.advice.defragment { "yes" } else { "no" }),
            text(&advised.words(&policy)),
        ])
    });
    let columns = [
        ("cluster", Kind::Text),
        ("model", Kind::Text),
        ("cards", Kind::Count),
        ("use_p50", Kind::Ratio),
        ("days_seen", Kind::Count),
        ("p90_capacity_wait_hours", Kind::Hours),
        ("p90_wait_hours", Kind::Hours),
        ("waited_for_capacity_card_hours", Kind::Hours),
        ("waited_for_placement_card_hours", Kind::Hours),
        ("waited_for_other_card_hours", Kind::Hours),
        ("missing_cards", Kind::Count),
        ("advice", Kind::Text),
        ("is_scattered", Kind::Text),
        ("what", Kind::Text),
    ];
    let notes = [
        "of the last 30 days: the middle day's use, and waits of what started; an advice has to hold for 7 days before it is given",
        "waited card-hours are the cards that jobs took × how long they waited: for capacity fewer were free; for placement as many were, and not on nodes that would have done; \
         for other they were free",
    ];
    section("expansion", "Buy or don't", &columns, rows.collect(), &notes)
}

/// What a pool of a cluster's size needs: columns `cluster cards size needs what`, a row a cluster.
pub fn pool_needs(pools: &[PoolPast]) -> Section {
    let mut cards_of: BTreeMap<&Name, Option<u64>> = BTreeMap::new();
    for past in pools {
        if let Some(cards) = past.cards {
            let sum = cards_of.entry(&past.cluster).or_default();
            *sum = Some(sum.unwrap_or(0) + u64::from(cards));
        }
    }
    let rows = cards_of.into_iter().filter_map(|(cluster, cards)| {
        let (size, needs) = needs_of_size(cards?);
        let needs: Vec<&str> = needs.iter().map(|need| need_words(*need)).collect();
        let size_name = match size {
            PoolSize::Bench => "bench",
            PoolSize::Lab => "lab",
            PoolSize::Department => "department",
            PoolSize::Centre => "centre",
        };
        Some(vec![text(cluster), count(cards), text(size_name), text(&needs.join(", ")), text(size.words())])
    });
    let columns = [
        ("cluster", Kind::Text),
        ("cards", Kind::Count),
        ("size", Kind::Text),
        ("needs", Kind::Text),
        ("what", Kind::Text),
    ];
    section("pool_needs", "What a pool of this size needs", &columns, rows.collect(), &[])
}

const fn need_words(need: Need) -> &'static str {
    match need {
        Need::Queue => "a queue",
        Need::IdleReclaim => "idle reclaim",
        Need::TeamQuota => "team quotas",
        Need::Statements => "statements",
        Need::FairShare => "fair shares",
        Need::Preemption => "preemption",
        Need::Gangs => "gangs",
        Need::Topology => "topology",
        Need::Replay => "replay of policies",
        Need::Operators => "operators",
    }
}

/// How large each team's quota should be: columns `org project cluster model guaranteed_cards advised_guaranteed_cards advised_borrow_cards advised_lend_cards peak_cards hours_seen
/// wanted_card_hours what`, a row a team and pool. `guaranteed_cards` is today's, of `quotas`.
pub fn team_quota(pools: &[PoolPast], quotas: &Quotas) -> Section {
    let mut rows = Vec::new();
    let mut too_short = 0;
    for past in pools {
        let sized: Vec<(&Team, Option<QuotaAdvice>, u64)> = past.wanted.iter().map(size).collect();
        let wanted: Vec<u32> = sized.iter().filter_map(|(_, quota, _)| quota.map(|quota| quota.guaranteed)).collect();
        let mut fitted = past.cards.map_or_else(|| wanted.clone(), |cards| fit_to_pool(&wanted, cards)).into_iter();
        for ((org, project), quota, wanted) in sized {
            let Some(quota) = quota else {
                too_short += 1;
                continue;
            };
            let guaranteed = fitted.next().expect("one for each that has a size");
            // What isn't guaranteed for want of cards may be borrowed.
            let borrow = quota.borrow_limit + (quota.guaranteed - guaranteed);
            let lend = quota.lend_limit.min(guaranteed);
            let mut what = format!(
                "Half of {} hours needed {} cards at most, nineteen of twenty {}, and no hour more than {}: guarantee {guaranteed}, let it borrow {borrow} and lend {lend}.",
                quota.hours_seen,
                quota.guaranteed,
                quota.guaranteed + quota.borrow_limit,
                quota.peak
            );
            if guaranteed < quota.guaranteed {
                what.push_str(
                    " All teams' middle hours together are more than there are cards, so each is cut in proportion.",
                );
            }
            rows.push(vec![
                name(org.as_ref()),
                name(project.as_ref()),
                text(&past.cluster),
                name(past.model.as_ref()),
                count(today(quotas, past, org.as_ref(), project.as_ref())),
                count(Some(guaranteed.into())),
                count(Some(borrow.into())),
                count(Some(lend.into())),
                count(Some(quota.peak.into())),
                count(Some(quota.hours_seen as u64)),
                cells::hours_of_card_ms(i128::from(wanted) * 3_600_000),
                text(&what),
            ]);
        }
    }
    let columns = [
        ("org", Kind::Text),
        ("project", Kind::Text),
        ("cluster", Kind::Text),
        ("model", Kind::Text),
        ("guaranteed_cards", Kind::Count),
        ("advised_guaranteed_cards", Kind::Count),
        ("advised_borrow_cards", Kind::Count),
        ("advised_lend_cards", Kind::Count),
        ("peak_cards", Kind::Count),
        ("hours_seen", Kind::Count),
        ("wanted_card_hours", Kind::Hours),
        ("what", Kind::Text),
    ];
    let mut notes = vec![
        "from what a team held and waited for, hour by hour: guaranteed is the middle hour, borrowed up to the busy hour in twenty, lent down to the slack hour in ten".to_owned(),
    ];
    if too_short > 0 {
        notes.push(format!("of {too_short} teams and pools less than two weeks are known: no size is told"));
    }
    let notes: Vec<&str> = notes.iter().map(String::as_str).collect();
    section("team_quota", "Size of each team's quota", &columns, rows, &notes)
}

fn size<'a>((team, wanted): (&'a Team, &Vec<Option<u32>>)) -> (&'a Team, Option<QuotaAdvice>, u64) {
    let hours: Vec<Reading<u32>> =
        wanted.iter().map(|hour| hour.map_or(Reading::Missing(Gap::NotRecorded), Reading::Seen)).collect();
    (team, size_quota(&hours), wanted.iter().flatten().map(|cards| u64::from(*cards)).sum())
}

/// What a team is guaranteed of a pool today; none where no quota is of just that team.
fn today(quotas: &Quotas, past: &PoolPast, org: Option<&Name>, project: Option<&Name>) -> Option<u64> {
    let is_its = |quota: &&cardhour_books::quotas::Quota| {
        Some(&quota.holder.org) == org
            && quota.holder.project.as_ref() == project
            && quota.holder.user.is_none()
            && quota.cluster.as_ref().is_none_or(|cluster| *cluster == past.cluster)
    };
    let of_model = |quota: &cardhour_books::quotas::Quota| {
        quota.cards.as_ref().filter(|cards| Some(&cards.model) == past.model.as_ref()).map(|cards| cards.guaranteed)
    };
    quotas.quotas.iter().filter(is_its).find_map(of_model).map(u64::from)
}

/// The stretch of the books that advice as of `end` is made of; its days are those of `zone`.
pub fn looks_back_from(end: Timestamp, zone: Zone) -> Option<Timestamp> {
    let last = zone.date(Timestamp::from_unix_ms(end.unix_ms() - 1))?;
    Some(zone.start_of_day(last.checked_sub_days(chrono::Days::new(HISTORY_DAYS as u64 - 1))?))
}

#[cfg(test)]
mod tests;
