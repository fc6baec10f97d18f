//! Budgets: how much an owner may spend in a month, a quarter or a year, and how that stands (`budgets.toml` in the ledger's folder).
//!
//! ```text
//! budgets.toml ─ Budgets ─ spans ─► which time to load ─► standings ─► Standing ─┬─► table
//!                             period: one function for bill, budget and alert    └─► alert ─► what is to be told now
//! ```
//!
//! What a budget has spent is what the bill says: the sums of a report by the budget's own selectors, of the same months cut by the same zone, rounded on the
//! same leaves (LED-6, LED-9), less the refunds of these months as their statements have them. Nothing else is counted beside it.
//!
//! Start at [`Budgets::parse`], then [`standings`]. Does not: stop anything, know the clock, send anything.

pub mod alert;
mod parse;
mod period;
mod standing;
mod table;

pub use period::{Every, Period};
pub use standing::{Evidence, Spans, Standing, standings};
pub use table::table;

use crate::document::Faults;
use crate::prices::Pattern;
use crate::report::Dimension;
use cardhour_domain::{CardTime, Currency, Money, Month, Name};
use rust_decimal::Decimal;
use std::fmt;

/// All budgets of a ledger, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// In the order of the file; no two of one name.
    pub budgets: Vec<Budget>,
    /// The month in which years begin, 1 to 12.
    pub fiscal_year_starts: u32,
    /// The pool whose price in the book is that of dedicated cards, for advice; none where the file names none.
    pub dedicated_pool: Option<Name>,
}

/// One `[[budget]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Its name, by which alerts know it.
    pub name: Name,
    /// Whose spending, and on what, counts.
    pub scope: Scope,
    /// What is counted.
    pub unit: Unit,
    /// How much of it for one period, above zero. Unit: as [`Unit`] says.
    pub amount: i128,
    /// How long a period is.
    pub every: Every,
    /// The first month it holds for, the first of a period; none: always.
    pub from: Option<Month>,
    /// The first month it doesn't hold for any more, the first of a period; none: for ever.
    pub to: Option<Month>,
    /// At which parts of the limit somebody is told, in order, each once. Unit: percent.
    pub thresholds: Vec<u32>,
    /// Whether what is left of a period is added to the next, and what was overspent taken from it; then `from` is there.
    pub carry_over: bool,
}

impl Budget {
    /// What one user holds, whatever they are granted: for advice to somebody, whom no budget need name.
    pub(crate) fn of_user(user: &str) -> Self {
        let mut scope = Scope::default();
        scope.selectors[Scope::USER] = Pattern::Literal(user.into());
        Self {
            name: user.into(),
            scope,
            unit: Unit::CardHours,
            amount: CardTime::PART_MS_PER_CARD_HOUR,
            every: Every::Month,
            from: None,
            to: None,
            thresholds: Vec::new(),
            carry_over: false,
        }
    }
}

/// What a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Cost. Amounts are millionths of the currency.
    Money(Currency),
    /// Billed card-hours. Amounts are parts × milliseconds.
    CardHours,
}

impl Unit {
    /// `CNY`, or `card-hours`.
    pub fn name(&self) -> &str {
        match self {
            Self::Money(currency) => currency.code(),
            Self::CardHours => "card-hours",
        }
    }

    /// An amount as people read it: card-hours with six decimals, money with its currency's own where it is whole, else with six.
    pub fn shown(self, amount: i128) -> Decimal {
        match self {
            Self::CardHours => CardTime::from_part_ms(amount).card_hours(),
            Self::Money(currency) => {
                let money = Money::from_micros(amount, currency);
                let digits = u32::from(currency.minor_digits());
                if money.is_minor() {
                    Decimal::from_i128_with_scale(amount / 10i128.pow(6 - digits), digits)
                } else {
                    Decimal::from_i128_with_scale(amount, 6)
                }
            }
        }
    }

    /// An amount in a sentence, without what it is of: card-hours without needless zeros, money with its currency's own decimals.
    pub fn text(self, amount: i128) -> String {
        match self {
            Self::CardHours => self.shown(amount).normalize().to_string(),
            Self::Money(_) => self.shown(amount).to_string(),
        }
    }

    /// What a cost of so much card-time is in it.
    pub fn of(self, cost: Option<Money>, billed: CardTime) -> Option<i128> {
        match self {
            Self::Money(currency) => cost.filter(|cost| cost.currency() == currency).map(Money::micros),
            Self::CardHours => Some(billed.part_ms()),
        }
    }

    /// An estimate as people read it: no finer than what was billed could be.
    pub fn estimated(self, amount: i128) -> Decimal {
        match self {
            Self::CardHours => CardTime::from_part_ms(amount).card_hours(),
            Self::Money(currency) => {
                let digits = u32::from(currency.minor_digits());
                Decimal::from_i128_with_scale(amount, 6).round_dp(digits)
            }
        }
    }
}

/// Whose card-time a budget is for, and which. What isn't given is any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    selectors: [Pattern; Scope::NAMES.len()],
}

/// What is known of some card-time or of somebody who asks; absent is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner<'a> {
    /// Who pays, at the top.
    pub org: Option<&'a str>,
    /// Who pays.
    pub project: Option<&'a str>,
    /// Whose it is.
    pub user: Option<&'a str>,
    /// Queue or partition.
    pub queue: Option<&'a str>,
    /// Class of the job.
    pub class: Option<&'a str>,
    /// Model of the card.
    pub model: Option<&'a str>,
}

impl Default for Scope {
    fn default() -> Self {
        Self { selectors: [const { Pattern::Any }; Self::NAMES.len()] }
    }
}

impl Scope {
    /// The keys of a budget that select, in the order they are shown.
    pub const NAMES: [&'static str; 6] = ["org", "project", "user", "queue", "class", "model"];

    /// The names of a report's groups for them.
    const DIMENSIONS: [Dimension; 6] =
        [Dimension::Org, Dimension::Project, Dimension::User, Dimension::Queue, Dimension::Class, Dimension::Model];

    /// The place of the user.
    const USER: usize = 2;

    /// The place of the model, whose upper and lower case are alike.
    const MODEL: usize = 5;

    /// Sets one, by its place in [`Self::NAMES`]; a glob of `*` and `?`.
    pub fn set(&mut self, place: usize, text: &str) {
        self.selectors[place] =
            if place == Self::MODEL { Pattern::new(&text.to_lowercase()) } else { Pattern::new(text) };
    }

    /// Whether a value of the selector at `place` is in the scope.
    fn admits(&self, place: usize, value: Option<&str>) -> bool {
        match value {
            Some(model) if place == Self::MODEL => self.selectors[place].matches(Some(&model.to_lowercase())),
            value => self.selectors[place].matches(value),
        }
    }

    /// Whether such card-time counts. What isn't known of it is in no scope that asks for it.
    pub fn covers(&self, owner: &Owner<'_>) -> bool {
        let Owner { org, project, user, queue, class, model } = *owner;
        [org, project, user, queue, class, model]
            .into_iter()
            .enumerate()
            .all(|(place, value)| self.admits(place, value))
    }

    /// Whether a row of a report by [`Self::dimensions`] counts.
    pub(crate) fn admits_all(&self, values: &[Option<Name>]) -> bool {
        self.given().into_iter().zip(values).all(|(place, value)| self.admits(place, value.as_deref()))
    }

    /// Whether card-time of this owner may count, whatever its queue, class and model.
    pub fn may_cover(&self, org: Option<&str>, project: Option<&str>, user: Option<&str>) -> bool {
        [org, project, user].into_iter().enumerate().all(|(place, value)| self.admits(place, value))
    }

    /// Places of the selectors that are given, in order.
    fn given(&self) -> Vec<usize> {
        (0..Self::NAMES.len()).filter(|&place| self.selectors[place] != Pattern::Any).collect()
    }

    /// The selectors that are given, by name, with their text.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.given().into_iter().map(|place| (Self::NAMES[place], self.selectors[place].as_str()))
    }

    /// What a report is grouped by to tell what is in scope: the selectors that are given. A report by the same names has the same figures.
    pub fn dimensions(&self) -> Vec<Dimension> {
        self.given().into_iter().map(|place| Self::DIMENSIONS[place].clone()).collect()
    }
}

/// `org=lab,queue=gpu*`, or `all`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = self.given();
        if given.is_empty() {
            return f.write_str("all");
        }
        for (i, place) in given.into_iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{}={}", Self::NAMES[place], self.selectors[place].as_str())?;
        }
        Ok(())
    }
}

impl Budgets {
    /// Reads `budgets.toml`. `fiscal_year_starts`: the month in which years begin where the file doesn't say, that of the billing policy. Errors:
    /// every fault at once, each with its line and key path.
    pub fn parse(text: &str, fiscal_year_starts: u32) -> Result<Self, Faults> {
        parse::parse(text, fiscal_year_starts)
    }

    /// The currencies of those that count money, in the order of the file; none where all count card-hours.
    pub fn currencies(&self) -> impl Iterator<Item = Currency> {
        self.budgets.iter().filter_map(|budget| match budget.unit {
            Unit::Money(currency) => Some(currency),
            Unit::CardHours => None,
        })
    }

    /// The period of a budget that holds `month`; none where the budget doesn't hold then.
    pub fn period(&self, budget: &Budget, month: Month) -> Option<Period> {
        let holds = budget.from.is_none_or(|from| from <= month) && budget.to.is_none_or(|to| month < to);
        holds.then(|| Period::of(budget.every, self.fiscal_year_starts, month)).flatten()
    }
}

#[cfg(test)]
mod tests;
