//! Whether a pool should grow, be used better, or stay as it is.
//!
//! Use is how much of what was held was really used; the middle day of the last thirty counts, so that neither a burst nor a holiday decides. A pool
//! that is used little isn't short of cards, whatever its queue says; one that is used much and makes people wait is. Waiting because the free cards
//! lie in the wrong places asks for moving work together, not for cards: it is told apart, job by job.

use super::quantile;
use cardhour_domain::{Percent, Reading};
use std::fmt;

const DAY_MS: i64 = 86_400_000;

/// What to do with a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Advice {
    /// Use what is there better first.
    Optimise,
    /// Leave it.
    Hold,
    /// Buy, or rent.
    Expand,
}

/// The thresholds. Two for each, so that a pool at one of them doesn't change its advice from day to day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvicePolicy {
    /// Under this use: optimise.
    pub optimise_under: Percent,
    /// At or above this use: not any more.
    pub optimised_from: Percent,
    /// Over this use, and queueing: expand.
    pub expand_over: Percent,
    /// At or under this use: not any more.
    pub expanded_to: Percent,
    /// How long jobs may wait for cards, nine of ten. Unit: milliseconds.
    pub wait_goal_ms: i64,
    /// How long another advice must hold before it is given. Unit: milliseconds.
    pub dwell_ms: i64,
    /// How many days of the history must have been seen.
    pub least_days: usize,
}

/// What is wrong with a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum AdvicePolicyFault {
    /// Two thresholds of one advice lie too near.
    #[error("the thresholds at which {0} begins and ends lie less than 5 points apart")]
    TooNear(Advice),
    /// The dwell is too short.
    #[error("an advice has to hold for 7 days at least before it is given")]
    TooShort,
    /// Both could hold at once.
    #[error("optimise ends above where expand ends")]
    Overlap,
}

/// How long a job waited, and for what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobWait {
    /// How many cards it asked for.
    pub cards: u32,
    /// No cards were free. Unit: milliseconds.
    pub for_capacity_ms: i64,
    /// As many were free, and not where it could have them. Unit: milliseconds.
    pub for_placement_ms: i64,
    /// For its quota, a dependency, a start date: nothing that cards would change. Unit: milliseconds.
    pub for_other_ms: i64,
}

/// A pool's last thirty days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolHistory {
    /// How much of what was held was used, a day each, oldest first.
    pub use_by_day: Vec<Reading<Percent>>,
    /// Jobs that started in that time.
    pub waits: Vec<JobWait>,
}

/// What an advice rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFigures {
    /// The middle day's use; none when too few were seen.
    pub use_p50: Option<Percent>,
    /// Days that were seen.
    pub days_seen: usize,
    /// How long nine of ten jobs waited at most for cards; none without jobs. Unit: milliseconds.
    pub capacity_wait_p90_ms: Option<i64>,
    /// The same for cards or their places.
    pub wait_p90_ms: Option<i64>,
    /// Card-time that was waited for for want of cards, as cards that would have been busy with it throughout. Rounded up.
    pub missing_cards: u64,
}

/// What is remembered between days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdviceState {
    /// The advice in force.
    pub advice: Advice,
    /// Another that the figures speak for, and since when. Unit: days, as [`advise_pool`] counts them.
    pub candidate: Option<(Advice, i64)>,
}

/// An advice, with its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolAdvice {
    /// What to remember for the next day.
    pub state: AdviceState,
    /// Whether jobs wait for places rather than for cards: moving work together would help, and cards would not.
    pub defragment: bool,
    /// What it rests on.
    pub figures: PoolFigures,
}

impl Default for AdvicePolicy {
    fn default() -> Self {
        let percent = |percent: i32| Percent::from_thousandths(percent * 1000).expect("from 0 to 100");
        Self {
            optimise_under: percent(20),
            optimised_from: percent(25),
            expand_over: percent(60),
            expanded_to: percent(55),
            wait_goal_ms: 3_600_000,
            dwell_ms: 7 * DAY_MS,
            least_days: 21,
        }
    }
}

impl Default for AdviceState {
    fn default() -> Self {
        Self { advice: Advice::Hold, candidate: None }
    }
}

impl AdvicePolicy {
    /// All that is wrong with it.
    pub fn faults(&self) -> Vec<AdvicePolicyFault> {
        const LEAST: i32 = 5_000;
        let mut faults = Vec::new();
        if self.optimised_from.thousandths() - self.optimise_under.thousandths() < LEAST {
            faults.push(AdvicePolicyFault::TooNear(Advice::Optimise));
        }
        if self.expand_over.thousandths() - self.expanded_to.thousandths() < LEAST {
            faults.push(AdvicePolicyFault::TooNear(Advice::Expand));
        }
        if self.dwell_ms < 7 * DAY_MS {
            faults.push(AdvicePolicyFault::TooShort);
        }
        if self.optimised_from > self.expanded_to {
            faults.push(AdvicePolicyFault::Overlap);
        }
        faults
    }
}

impl Advice {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Optimise => "optimise",
            Self::Hold => "hold",
            Self::Expand => "expand",
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A pool's advice of one day.
///
/// `day` only has to rise from call to call (days since the epoch do). A history of which too little was seen changes nothing and starts every
/// dwell anew: missing days are neither quiet nor busy ones.
pub fn advise_pool(state: AdviceState, day: i64, history: &PoolHistory, policy: &AdvicePolicy) -> PoolAdvice {
    let figures = figures(history, policy);
    let waits_long = |p90: Option<i64>| p90.is_some_and(|p90| p90 > policy.wait_goal_ms);
    let defragment = waits_long(figures.wait_p90_ms) && !waits_long(figures.capacity_wait_p90_ms);
    let Some(use_p50) = figures.use_p50 else {
        return PoolAdvice { state: AdviceState { candidate: None, ..state }, defragment, figures };
    };
    let queues = waits_long(figures.capacity_wait_p90_ms);
    let spoken_for = match state.advice {
        Advice::Optimise if use_p50 < policy.optimised_from => Advice::Optimise,
        Advice::Expand if use_p50 > policy.expanded_to && queues => Advice::Expand,
        Advice::Optimise | Advice::Hold | Advice::Expand if use_p50 < policy.optimise_under => Advice::Optimise,
        Advice::Optimise | Advice::Hold | Advice::Expand if use_p50 > policy.expand_over && queues => Advice::Expand,
        Advice::Optimise | Advice::Hold | Advice::Expand => Advice::Hold,
    };
    let since = match state.candidate {
        Some((candidate, since)) if candidate == spoken_for => since,
        Some(_) | None => day,
    };
    let dwelt_ms = day.saturating_sub(since).saturating_mul(DAY_MS);
    let state = if spoken_for == state.advice {
        AdviceState { candidate: None, ..state }
    } else if dwelt_ms >= policy.dwell_ms {
        AdviceState { advice: spoken_for, candidate: None }
    } else {
        AdviceState { candidate: Some((spoken_for, since)), ..state }
    };
    PoolAdvice { state, defragment, figures }
}

impl PoolAdvice {
    /// What it says, with its figures.
    pub fn words(&self, policy: &AdvicePolicy) -> String {
        let Some(use_p50) = self.figures.use_p50 else {
            return format!(
                "{} days were seen and {} are needed: the advice stays {}.",
                self.figures.days_seen, policy.least_days, self.state.advice
            );
        };
        let minutes = |ms: Option<i64>| ms.map_or("no jobs waited".to_owned(), |ms| format!("{} min", ms / 60_000));
        let mut words = match self.state.advice {
            Advice::Optimise => format!("{use_p50} % of what is held is used: use it better before buying any."),
            Advice::Hold => format!("{use_p50} % of what is held is used: leave the pool as it is."),
            Advice::Expand => format!(
                "{use_p50} % of what is held is used, and nine of ten jobs wait up to {} for cards: about {} more would have been busy.",
                minutes(self.figures.capacity_wait_p90_ms),
                self.figures.missing_cards
            ),
        };
        if self.defragment {
            words.push_str(&format!(
                " Jobs wait up to {} though cards are free: move work together, more cards would not help.",
                minutes(self.figures.wait_p90_ms)
            ));
        }
        words
    }
}

fn figures(history: &PoolHistory, policy: &AdvicePolicy) -> PoolFigures {
    let seen: Vec<Percent> = history.use_by_day.iter().filter_map(|day| day.seen()).collect();
    let capacity: Vec<i64> = history.waits.iter().map(|wait| wait.for_capacity_ms).collect();
    let both: Vec<i64> =
        history.waits.iter().map(|wait| wait.for_capacity_ms.saturating_add(wait.for_placement_ms)).collect();
    let waited: u128 =
        history.waits.iter().map(|wait| u128::from(wait.cards) * wait.for_capacity_ms.max(0) as u128).sum();
    let length_ms = history.use_by_day.len().max(1) as u128 * DAY_MS as u128;
    PoolFigures {
        use_p50: if seen.len() >= policy.least_days { quantile(&seen, 50) } else { None },
        days_seen: seen.len(),
        capacity_wait_p90_ms: quantile(&capacity, 90),
        wait_p90_ms: quantile(&both, 90),
        missing_cards: u64::try_from(waited.div_ceil(length_ms)).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_domain::Gap;

    const HOUR: i64 = 3_600_000;

    fn history(use_percent: i32, capacity_hours: i64, placement_hours: i64) -> PoolHistory {
        let wait = JobWait {
            cards: 8,
            for_capacity_ms: capacity_hours * HOUR,
            for_placement_ms: placement_hours * HOUR,
            for_other_ms: 90 * HOUR,
        };
        let day = Reading::Seen(Percent::from_thousandths(use_percent * 1000).unwrap());
        PoolHistory { use_by_day: vec![day; 30], waits: vec![wait; 90] }
    }

    /// A day each: what the use is, and what the advice is then. The wait for cards is three hours, for a goal of one.
    fn advices(days: &[(i32, usize)]) -> Vec<Advice> {
        let mut state = AdviceState::default();
        let mut day = 0;
        let mut said = Vec::new();
        for (use_percent, count) in days {
            for _ in 0..*count {
                day += 1;
                state = advise_pool(state, day, &history(*use_percent, 3, 0), &AdvicePolicy::default()).state;
            }
            said.push(state.advice);
        }
        said
    }

    #[test]
    fn an_advice_is_given_after_seven_days_and_not_before() {
        assert_eq!(advices(&[(19, 7)]), [Advice::Hold]);
        assert_eq!(advices(&[(19, 8)]), [Advice::Optimise]);
        assert_eq!(advices(&[(61, 7), (61, 1)]), [Advice::Hold, Advice::Expand]);
        assert_eq!(advices(&[(19, 6), (40, 1), (19, 7)]), [Advice::Hold; 3]);
    }

    /// Begins under 20 and ends at 25; begins over 60 and ends at 55.
    #[test]
    fn between_two_thresholds_an_advice_stays_what_it_is() {
        assert_eq!(advices(&[(20, 30)]), [Advice::Hold]);
        assert_eq!(advices(&[(10, 8), (24, 30), (25, 8)]), [Advice::Optimise, Advice::Optimise, Advice::Hold]);
        assert_eq!(advices(&[(60, 30)]), [Advice::Hold]);
        assert_eq!(advices(&[(80, 8), (56, 30), (55, 8)]), [Advice::Expand, Advice::Expand, Advice::Hold]);
        assert_eq!(advices(&[(80, 8), (10, 8)]), [Advice::Expand, Advice::Optimise]);
    }

    #[test]
    fn a_pool_in_full_use_without_a_queue_is_left_alone_and_a_queue_for_places_is_told_apart() {
        let policy = AdvicePolicy::default();
        let run = |history: &PoolHistory| {
            let first = advise_pool(AdviceState::default(), 1, history, &policy);
            (2..=8).fold(first, |before, day| advise_pool(before.state, day, history, &policy))
        };
        let quiet = run(&history(90, 0, 0));
        assert_eq!((quiet.state.advice, quiet.defragment), (Advice::Hold, false));
        let scattered = run(&history(90, 0, 5));
        assert_eq!((scattered.state.advice, scattered.defragment), (Advice::Hold, true));
        assert_eq!(
            scattered.words(&policy),
            "90 % of what is held is used: leave the pool as it is. Jobs wait up to 300 min though cards are free: move work \
             together, more cards would not help."
        );
        // 90 jobs of 8 cards for 3 hours are 2,160 card-hours in 720 hours: 3 cards.
        let short = run(&history(90, 3, 5));
        assert_eq!((short.state.advice, short.defragment, short.figures.missing_cards), (Advice::Expand, false, 3));
        assert_eq!(
            short.words(&policy),
            "90 % of what is held is used, and nine of ten jobs wait up to 180 min for cards: about 3 more would have been busy."
        );
    }

    #[test]
    fn days_that_were_not_seen_change_nothing() {
        let policy = AdvicePolicy::default();
        let mut history = history(5, 0, 0);
        for day in history.use_by_day.iter_mut().take(10) {
            *day = Reading::Missing(Gap::CollectorDown);
        }
        let state = AdviceState { advice: Advice::Expand, candidate: Some((Advice::Hold, 1)) };
        let advice = advise_pool(state, 40, &history, &policy);
        assert_eq!(advice.state, AdviceState { advice: Advice::Expand, candidate: None });
        assert_eq!(advice.words(&policy), "20 days were seen and 21 are needed: the advice stays expand.");
    }

    #[test]
    fn thresholds_too_near_and_a_dwell_too_short_are_all_named() {
        assert_eq!(AdvicePolicy::default().faults(), []);
        let percent = |percent: i32| Percent::from_thousandths(percent * 1000).unwrap();
        let policy = AdvicePolicy {
            optimised_from: percent(24),
            expanded_to: percent(56),
            dwell_ms: 6 * DAY_MS,
            ..AdvicePolicy::default()
        };
        assert_eq!(
            policy.faults(),
            [
                AdvicePolicyFault::TooNear(Advice::Optimise),
                AdvicePolicyFault::TooNear(Advice::Expand),
                AdvicePolicyFault::TooShort
            ]
        );
    }
}
