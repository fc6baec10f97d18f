//! Which crossings of thresholds are to be told, and which are over.
//!
//! A crossing is told once: for each budget, period, limit and threshold, over restarts, since what was told is in the ledger's table `alerts` and comes in here
//! as [`Told`]. It is over when what was spent is below the threshold again (a larger limit, a late refund) or when its period has ended. The limit belongs to it:
//! whoever raises a budget wants to hear when the new one is reached; what a late record moves to and fro over one threshold is told once.
//!
//! Start at [`due`]. Does not: send, store, know who listens or when it is.

use super::{Budget, Budgets, Standing};
use cardhour_domain::{Month, Name, Timestamp, Zone};
use std::collections::BTreeSet;

/// What a crossing is: two with the same key are the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Crossing {
    /// The budget's name.
    pub budget: Name,
    /// Its period, such as `2026-03`.
    pub period: Name,
    /// The limit as the file says it, without what is carried over: `50000 CNY`.
    pub limit: Name,
    /// The threshold. Unit: percent.
    pub threshold: u32,
}

/// What is said of a crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum News {
    /// The threshold is reached.
    Reached,
    /// It isn't any more, or its period is over.
    Over,
}

impl News {
    /// What the table `alerts` calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::Over => "over",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Reached, Self::Over].into_iter().find(|news| news.name() == name)
    }
}

/// One message that a listener got.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Told {
    /// Of what.
    pub crossing: Crossing,
    /// What of it.
    pub news: News,
}

/// One message that a listener has to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Of what.
    pub crossing: Crossing,
    /// What of it.
    pub news: News,
    /// How the budget stands; none of one that is gone, or whose period is over.
    pub standing: Option<Standing>,
}

impl Crossing {
    fn of(budget: &Budget, period: Name, threshold: u32) -> Self {
        let limit = format!("{} {}", budget.unit.shown(budget.amount).normalize(), budget.unit.name());
        Self { budget: budget.name.clone(), period, limit: limit.into(), threshold }
    }
}

impl Due {
    /// What is said of it, in a sentence.
    pub fn summary(&self) -> String {
        let Crossing { budget, period, limit, threshold } = &self.crossing;
        let spent = self.standing.as_ref().and_then(|standing| {
            let unit = &standing.budget.unit;
            Some((unit.shown(standing.spent?).normalize(), unit.shown(standing.limit).normalize(), unit.name()))
        });
        match (self.news, spent) {
            (News::Reached, Some((spent, limit, unit))) => {
                format!("budget {budget}, {period}: {threshold} % reached, {spent} of {limit} {unit} spent")
            }
            (News::Reached, None) => format!("budget {budget}, {period}: {threshold} % of {limit} reached"),
            (News::Over, Some((spent, limit, unit))) => {
                format!("budget {budget}, {period}: no longer {threshold} %, {spent} of {limit} {unit} spent")
            }
            (News::Over, None) => format!("budget {budget}: {period} is over, or the budget is"),
        }
    }

    /// What is likely to come of it, in a sentence; none where nobody can say.
    pub fn outlook(&self, zone: Zone) -> Option<String> {
        let standing = self.standing.as_ref()?;
        let unit = standing.budget.unit;
        let forecast = unit.estimated(standing.forecast?).normalize();
        let end = standing
            .runs_out_at
            .map_or_else(String::new, |at| format!("; it runs out on {} {zone}", crate::report::local(zone, at)));
        Some(format!("at the pace of the last seven days {forecast} {} by the end of the period{end}", unit.name()))
    }
}

/// What one listener is to be told, of the standings of now and what it was told before: what is reached first, by budget in their order and threshold.
///
/// `told` in any order. After it has been told, nothing of the same is due (T16).
pub fn due(standings: &[Standing], told: &[Told]) -> Vec<Due> {
    let of =
        |news| told.iter().filter(move |told| told.news == news).map(|told| &told.crossing).collect::<BTreeSet<_>>();
    let (reached, over) = (of(News::Reached), of(News::Over));
    let mut now = BTreeSet::new();
    let mut out = Vec::new();
    for standing in standings {
        for &threshold in &standing.crossed {
            let crossing = Crossing::of(&standing.budget, standing.period.to_string().into(), threshold);
            if !reached.contains(&crossing) {
                out.push(Due { crossing: crossing.clone(), news: News::Reached, standing: Some(standing.clone()) });
            }
            now.insert(crossing);
        }
    }
    for crossing in reached.into_iter().filter(|crossing| !now.contains(*crossing) && !over.contains(*crossing)) {
        let standing = standings.iter().find(|standing| {
            standing.budget.name == crossing.budget && *standing.period.to_string() == *crossing.period
        });
        // Nobody can say what was spent, which is not that nothing was (LED-3).
        if standing.is_some_and(|standing| standing.spent.is_none()) {
            continue;
        }
        out.push(Due { crossing: crossing.clone(), news: News::Over, standing: standing.cloned() });
    }
    out
}

/// When a crossing is over by itself: at the end of its period.
pub fn ends_at(budgets: &Budgets, crossing: &Crossing, zone: Zone) -> Option<Timestamp> {
    let first = Month::parse(crossing.period.split("..").next()?).ok()?;
    let budget = budgets.budgets.iter().find(|budget| budget.name == crossing.budget)?;
    Some(super::Period::of(budget.every, budgets.fiscal_year_starts, first)?.interval(zone).end())
}
