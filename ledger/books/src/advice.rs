//! What could be saved of what a budget paid for, with the figures behind it: only what the books prove.
//!
//! | advice | to whom | figure |
//! |---|---|---|
//! | off-peak | the budget | what the same billed time would have cost less in the cheapest window of its own price |
//! | idle | the budget | what held and idle time cost, as the report `idle` says |
//! | checkpointing | the budget | work that was gone when it failed or was taken, at the price it had |
//! | cheaper model | a user of a project | what the same hours would have cost less on a model that their memory fits, by the same price book |
//! | larger batch | a user of a project | what underused hours of training cost whose memory was half free or more |
//! | merging experiments | a user of a project | what the cards cost that jobs side by side would not have needed, had they shared cards |
//! | dedicated pool | a project | what its steady cards cost more than dedicated ones would, by the price of the pool that `budgets.toml` names |
//!
//! ```text
//! cells of usage ─ work ─► jobs of a budget ─┬─ model_fit ─► cheaper model, larger batch
//! telemetry ─ memory ─► peak of each job ────┴─ merging ───► merging experiments
//!                      timeline of their cards ┴─ dedicated ► dedicated pool
//! ```
//!
//! What nobody saw is in no advice (LED-3): a job whose use or memory was seen for less than half of its time gets none that rests on them. The figures overlap: time that
//! was idle by day is in two of them. They are not added up. Start at [`advice`]. Does not: say what can be moved to the night, or whether a program would run on another model.

mod dedicated;
mod memory;
mod merging;
mod model_fit;
mod spent;
mod table;
#[cfg(test)]
mod tests;
mod timeline;
mod work;

pub use memory::{CardMemory, HeldDevices, MemoryUse};
pub use table::table;

use crate::budgets::{Budget, Every, Evidence, Period};
use crate::line::Line;
use crate::prices::PriceBook;
use cardhour_domain::{CardTime, Interval, Money, Month, Name};
use std::cmp::Reverse;

/// So many of each kind are said for one budget, the largest first: what somebody will act on.
const MOST: usize = 5;

/// What could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdviceKind {
    /// Let work run in the cheapest window.
    OffPeak,
    /// Give back what is idle.
    Idle,
    /// Save work before it is lost.
    Checkpointing,
    /// Take a model that costs less.
    CheaperModel,
    /// Give the card more to do at a time.
    LargerBatch,
    /// Let small jobs share a card.
    Merging,
    /// Take dedicated cards for what is always held.
    DedicatedPool,
}

impl AdviceKind {
    /// What the table calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OffPeak => "off-peak",
            Self::Idle => "idle",
            Self::Checkpointing => "checkpointing",
            Self::CheaperModel => "cheaper model",
            Self::LargerBatch => "larger batch",
            Self::Merging => "merging experiments",
            Self::DedicatedPool => "dedicated pool",
        }
    }
}

/// One advice to whoever spends a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The budget's name.
    pub budget: Name,
    /// Its period.
    pub period: Period,
    /// What could be done.
    pub kind: AdviceKind,
    /// Whom it is for; all absent: whoever spends the budget.
    pub whom: Whom,
    /// How many jobs it is about; none where it is about time of any job.
    pub jobs: Option<u64>,
    /// The card-time it is about: billed outside of the cheapest window, idle, lost, on the dearer model, underused, not needed, steadily held.
    pub card_time: CardTime,
    /// What that time cost, or would have cost less; none where no price says it.
    pub saving: Option<Money>,
    /// The calculation, in words with its figures.
    pub how: String,
    /// The line of a bill that holds the time, as `trace` takes it; none where a budget's globs make it several lines.
    pub line: Option<Line>,
    /// The command that shows the figures, for a shell: `cardhour report idle --month 2026-03 --by project`.
    pub command: String,
}

/// Whom an advice is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whom {
    /// Project.
    pub project: Option<Name>,
    /// User; none for a whole project.
    pub user: Option<Name>,
    /// The model that was held; none for any.
    pub model: Option<Name>,
}

/// What advice is made of.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The books of [`Self::range`].
    pub spent: Evidence<'a>,
    /// What holds the period as far as it has come, in whole months unless the books go on.
    pub range: Interval,
    /// The time that the books speak of.
    pub known: Interval,
    /// The prices.
    pub book: &'a PriceBook,
    /// What nodes said of memory.
    pub memory: &'a CardMemory,
    /// The pool of dedicated cards, by whose prices they are compared; none where the site names none.
    pub dedicated_pool: Option<&'a Name>,
}

/// Advice for one user on all that they held in a month, whoever paid: the `most` with the largest savings, those without a figure last. Dedicated cards are for a project to take,
/// and not in it.
pub fn for_user(user: &str, month: Month, sources: &Sources<'_>, most: usize) -> Vec<Advice> {
    let Some(period) = Period::of(Every::Month, 1, month) else { return Vec::new() };
    let mut found = advice(&Budget::of_user(user), period, &Sources { dedicated_pool: None, ..*sources });
    found.sort_by_key(|one| (Reverse(one.saving.map(Money::micros)), one.kind));
    found.truncate(most);
    found
}

/// Advice on what one budget paid for in its period so far; only where something could be saved.
///
/// Shape: by kind; of each at most five, the largest saving first.
pub fn advice(budget: &Budget, period: Period, sources: &Sources<'_>) -> Vec<Advice> {
    let mut found = spent::advice(budget, period, sources);
    let all = work::works(budget, period, sources);
    found.extend(model_fit::cheaper(&all, sources));
    found.extend(model_fit::larger_batch(&all, sources));
    found.extend(merging::advice(&all, period, sources));
    found.extend(dedicated::advice(&all, period, sources));
    found.sort_by(|a, b| {
        let saving = |one: &Found| one.saving.map(Money::micros);
        a.kind.cmp(&b.kind).then_with(|| Reverse(saving(a)).cmp(&Reverse(saving(b)))).then_with(|| a.whom.cmp(&b.whom))
    });
    let mut kept: Vec<Advice> = Vec::new();
    for found in found {
        if kept.iter().filter(|kept| kept.kind == found.kind).count() < MOST {
            kept.push(found.of(budget, period));
        }
    }
    kept
}

/// An advice, before it is said of which budget.
#[derive(Clone, Debug)]
struct Found {
    kind: AdviceKind,
    whom: Whom,
    jobs: Option<u64>,
    card_time: CardTime,
    saving: Option<Money>,
    how: String,
}

impl Found {
    fn of(self, budget: &Budget, period: Period) -> Advice {
        let line = (self.whom != Whom::default()).then(|| self.whom.line(period));
        let command = self.kind.command(budget, period, line.as_ref());
        let Self { kind, whom, jobs, card_time, saving, how } = self;
        Advice { budget: budget.name.clone(), period, kind, whom, jobs, card_time, saving, how, line, command }
    }
}

impl AdviceKind {
    /// What shows the figures: the attempts under a line, else the report that the figures are of, by the names that the budget selects by. Off-peak, `bill` has the
    /// hours and what they cost by price and window, whose factors say what they would cost in another.
    fn command(self, budget: &Budget, period: Period, line: Option<&Line>) -> String {
        use crate::report::{Dimension, ReportKind};
        if let Some(line) = line {
            return format!("cardhour trace '{}'", line.to_string().replace('\'', "'\\''"));
        }
        let mut by = budget.scope.dimensions();
        let report = match self {
            Self::OffPeak => {
                by.extend([Dimension::Price, Dimension::Window]);
                ReportKind::Bill
            }
            Self::Checkpointing => ReportKind::Waste,
            Self::Idle => ReportKind::Idle,
            // Those are of somebody, and have a line.
            Self::CheaperModel | Self::LargerBatch | Self::Merging | Self::DedicatedPool => ReportKind::Usage,
        };
        let time = match period.first().next() == period.end() {
            true => format!("--month {}", period.first()),
            false => format!("--from {} --to {}", period.first().first_date(), period.end().first_date()),
        };
        let by = by.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let by = if by.is_empty() { String::new() } else { format!(" --by {by}") };
        format!("cardhour report {report} {time}{by}")
    }
}

impl Whom {
    /// The line of a bill with all its time in the last month of the period that a bill has: a line is of one month where the period is.
    fn line(&self, period: Period) -> Line {
        use crate::report::Dimension;
        let mut values = Vec::new();
        if period.first().next() == period.end() {
            values.push((Dimension::Month, Some(period.first().to_string().into())));
        }
        values.push((Dimension::Project, self.project.clone()));
        if self.user.is_some() {
            values.push((Dimension::User, self.user.clone()));
        }
        if self.model.is_some() {
            values.push((Dimension::Model, self.model.clone()));
        }
        Line { values, range: None, zone: None }
    }
}
