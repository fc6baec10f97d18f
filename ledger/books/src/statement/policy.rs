//! How a month is billed beyond its prices: what `billing.toml` in the ledger's folder says.
//!
//! Start at [`BillingPolicy::parse`]. Does not: read files, make entries (that is `draft`).

mod parse;
#[cfg(test)]
mod tests;

use super::{PLATFORM, StatementTerms};
use crate::budgets::{Every, Period};
use crate::document::Faults;
use crate::prices::Pattern;
use cardhour_domain::{Month, Name};
use chrono::Datelike;
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The share below which what wasn't seen is more than the edges of jobs and a restart of a collector come to.
const DEFAULT_MINIMUM_SEEN: Decimal = Decimal::from_parts(95, 0, 0, false, 2);

/// How a month is billed. The default is that of a ledger without `billing.toml`: cards held at the price of the book, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillingPolicy {
    /// What held cards are charged at.
    pub mode: BillingMode,
    /// The month in which a fiscal year starts: 1 to 12.
    pub fiscal_year_starts: u32,
    /// Who issues statements.
    pub issuer: Option<Name>,
    /// What statements' numbers begin with.
    pub number_prefix: Name,
    /// Whether amounts have tax in them; none where the site doesn't say.
    pub tax_included: Option<bool>,
    /// What a statement says of tax.
    pub tax_note: Option<Name>,
    /// What a statement says of when to pay.
    pub payment_terms: Option<Name>,
    pub(super) minimum_coverage: Decimal,
    pub(super) minimum_seen: Decimal,
    /// What the account of an org is called on its statement.
    pub accounts: BTreeMap<Name, Name>,
    /// Who pays for cards that nobody held.
    pub capacity: CapacityPolicy,
    /// What is given back.
    pub refunds: RefundPolicy,
    /// What efficiency comes to.
    pub efficiency: EfficiencyPolicy,
    /// Whose use is billed instead of what they held: the first that matches.
    pub used_basis: Vec<UsedBasis>,
}

/// What held cards are charged at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BillingMode {
    /// The price book's prices.
    #[default]
    Rate,
    /// What the month cost the platform, spread by billed time × coefficient.
    Absorb,
}

/// Who pays for cards that nobody held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CapacityPolicy {
    /// For free ones.
    pub free: FreeCapacity,
    /// By what free capacity is shared.
    pub share_by: ShareBy,
    /// For reserved ones.
    pub reserved: ReservedCapacity,
}

/// Who pays for free cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FreeCapacity {
    /// Nobody: there is no line for them. In absorb mode the holders do, by what they held.
    #[default]
    Unbilled,
    /// The platform, on its own statement.
    Line,
    /// The projects that held something, each a part.
    Shared,
}

/// By what free capacity is shared over projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ShareBy {
    /// By what their cards cost.
    #[default]
    Cost,
    /// By the time they are billed for.
    CardHours,
    /// All alike.
    Even,
}

/// Who pays for reserved cards that nobody held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReservedCapacity {
    /// Nobody: there is no line for them. In absorb mode the holders do, by what they held.
    #[default]
    Unbilled,
    /// The platform, on its own statement.
    Line,
    /// The owner of the reservation.
    Owner,
}

/// Why something is given back. Stability: its name stands in closed months.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefundCause {
    /// The attempt ended because its node failed.
    NodeFail,
    /// It held a card that met a fatal fault of its own.
    FatalXid,
    /// It was preempted.
    Preempted,
    /// Its cards were taken as idle, and somebody found that wrong: state `reclaimed` and a label `wrongful_reclaim`.
    Reclaimed,
}

impl RefundCause {
    /// All of them: of two that give back the same part, the one that comes first is named.
    pub const ALL: [Self; 4] = [Self::NodeFail, Self::FatalXid, Self::Preempted, Self::Reclaimed];

    /// Its key in `[refunds]`, and what `what` says of the entry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NodeFail => "node_fail",
            Self::FatalXid => "fatal_xid",
            Self::Preempted => "preempted",
            Self::Reclaimed => "reclaimed",
        }
    }
}

/// What is given back. The default is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RefundPolicy {
    parts: [Option<Decimal>; RefundCause::ALL.len()],
    /// Of which time.
    pub of: RefundOf,
}

impl RefundPolicy {
    /// Which part is given back for a cause: above 0, at most 1; none: nothing.
    pub fn part(&self, cause: RefundCause) -> Option<Decimal> {
        self.parts[cause as usize]
    }

    /// Whether anything is given back.
    pub fn gives_back(&self) -> bool {
        self.parts.iter().any(Option::is_some)
    }
}

/// Of which time a part is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RefundOf {
    /// All that the attempt is charged for in the month.
    #[default]
    Held,
    /// Of it, the time whose work is gone.
    Lost,
}

/// What efficiency comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EfficiencyPolicy {
    /// Whether money follows from it.
    pub effect: EfficiencyEffect,
    /// The least use coverage of an owner's month whose efficiency is told: 0 to 1.
    pub minimum_use_coverage: Decimal,
    /// From which efficiency, or below which, which part of the charges: at most one applies, that with the largest part.
    pub tiers: Vec<EfficiencyTier>,
}

/// Whether money follows from efficiency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EfficiencyEffect {
    /// None: it is told.
    #[default]
    Explain,
    /// Who uses cards well pays less.
    Discount,
    /// Who uses them badly pays more.
    Surcharge,
}

/// One `[[efficiency.tier]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EfficiencyTier {
    /// Efficiencies from this on.
    pub at_least: Option<Decimal>,
    /// Efficiencies below this.
    pub below: Option<Decimal>,
    /// Which part of the owner's charges, refunds taken off: 0 to 1.
    pub part: Decimal,
}

impl EfficiencyTier {
    /// Whether it is for this efficiency.
    pub fn is_for(&self, efficiency: Decimal) -> bool {
        self.at_least.is_none_or(|least| efficiency >= least) && self.below.is_none_or(|limit| efficiency < limit)
    }
}

/// One `[[used_basis]]`: a queue or class whose price is for the time in which cards were seen at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedBasis {
    /// Which queues, a glob.
    pub queue: Pattern,
    /// Which classes, a glob.
    pub class: Pattern,
}

impl UsedBasis {
    /// Whether it is for a job of this queue and class.
    pub fn is_for(&self, queue: Option<&str>, class: Option<&str>) -> bool {
        self.queue.matches(queue) && self.class.matches(class)
    }
}

impl Default for BillingPolicy {
    fn default() -> Self {
        Self {
            mode: BillingMode::default(),
            fiscal_year_starts: 1,
            issuer: None,
            number_prefix: "CH".into(),
            tax_included: None,
            tax_note: None,
            payment_terms: None,
            // A twentieth of a month is a day and a half in which nobody looked.
            minimum_coverage: Decimal::new(95, 2),
            minimum_seen: DEFAULT_MINIMUM_SEEN,
            accounts: BTreeMap::new(),
            capacity: CapacityPolicy::default(),
            refunds: RefundPolicy::default(),
            efficiency: EfficiencyPolicy::default(),
            used_basis: Vec::new(),
        }
    }
}

impl Default for EfficiencyPolicy {
    fn default() -> Self {
        // Half, as in reports: of less, what wasn't seen decides more than what was.
        Self { effect: EfficiencyEffect::default(), minimum_use_coverage: Decimal::new(5, 1), tiers: Vec::new() }
    }
}

impl BillingPolicy {
    /// Reads `billing.toml`. A text that says nothing is the default. Errors: every fault at once, each with its line and key path.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        Ok(parse::parse(text)?.unwrap_or_default())
    }

    /// How much of a month has to be proven before it is closed without a reason: 0 to 1.
    pub fn minimum_coverage(&self) -> Decimal {
        self.minimum_coverage
    }

    /// How much of what is priced by measured energy or use has to be seen before the month is closed without a reason: 0 to 1.
    pub fn minimum_seen(&self) -> Decimal {
        self.minimum_seen
    }

    /// The number of an organisation's statement.
    pub fn number(&self, period: Month, org: Option<&Name>) -> Name {
        // The platform's own has no name behind the month, so that an organisation of any name has another number.
        let prefix = &self.number_prefix;
        org.map_or_else(|| format!("{prefix}-{period}"), |org| format!("{prefix}-{period}-{org}")).into()
    }

    /// What an organisation is called on its statement: as the policy says, else by its own name.
    pub fn account(&self, org: Option<&Name>) -> Name {
        org.map_or_else(|| PLATFORM.into(), |org| self.accounts.get(org).unwrap_or(org).clone())
    }

    /// The fiscal year that a month is in: `2026`, or `2026/27` where it doesn't start in January. Its months are those of a budget of a year.
    pub fn fiscal_year(&self, month: Month) -> String {
        // Out of the calendar's range a year is the month's own.
        let year = Period::of(Every::Year, self.fiscal_year_starts, month).map_or(month, Period::first);
        let first = year.first_date().year();
        match self.fiscal_year_starts {
            1 => first.to_string(),
            _ => format!("{first}/{:02}", (first + 1).rem_euclid(100)),
        }
    }

    /// What the statements of a month say beside their amounts.
    pub fn statement_terms(&self, period: Month) -> StatementTerms {
        StatementTerms {
            fiscal_year: self.fiscal_year(period).into(),
            tax_included: self.tax_included,
            tax_note: self.tax_note.clone(),
            payment_terms: self.payment_terms.clone(),
        }
    }

    /// Twelve hex digits of the hash of what it says, whatever its comments, spacing and order of keys.
    pub fn version(&self) -> Name {
        blake3::hash(self.canonical().as_bytes()).to_hex()[..12].into()
    }

    /// What it says, in one way of writing it; [`Self::parse`] reads it back as the same policy. Stability: [`Self::version`] is its hash and stands
    /// in closed months; pinned by the test `a_policy_has_the_version_it_had_before`.
    pub fn canonical(&self) -> String {
        let Self {
            mode,
            fiscal_year_starts,
            issuer,
            number_prefix,
            tax_included,
            tax_note,
            payment_terms,
            minimum_coverage,
            minimum_seen,
            accounts,
            capacity,
            refunds,
            efficiency,
            used_basis,
        } = self;
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let mut text = format!("mode = \"{}\"\nfiscal_year_starts = \"{fiscal_year_starts:02}\"\n", mode.name());
        _ = writeln!(text, "[statement]\nprefix = {}", quoted(number_prefix));
        for (key, value) in [("issuer", issuer), ("tax_note", tax_note), ("payment_terms", payment_terms)] {
            if let Some(value) = value {
                _ = writeln!(text, "{key} = {}", quoted(value));
            }
        }
        if let Some(included) = tax_included {
            _ = writeln!(text, "tax_included = {included}");
        }
        _ = writeln!(text, "minimum_coverage = \"{}\"", minimum_coverage.normalize());
        // It came later than the others: months closed before it have a text without.
        if *minimum_seen != DEFAULT_MINIMUM_SEEN {
            _ = writeln!(text, "minimum_seen = \"{}\"", minimum_seen.normalize());
        }
        if !accounts.is_empty() {
            _ = writeln!(text, "[statement.accounts]");
            for (org, name) in accounts {
                _ = writeln!(text, "{} = {}", quoted(org), quoted(name));
            }
        }
        let CapacityPolicy { free, share_by, reserved } = capacity;
        _ = writeln!(
            text,
            "[capacity]\nfree = \"{}\"\nshare_by = \"{}\"\nreserved = \"{}\"",
            free.name(),
            share_by.name(),
            reserved.name()
        );
        _ = writeln!(text, "[refunds]\nof = \"{}\"", refunds.of.name());
        for cause in RefundCause::ALL {
            if let Some(part) = refunds.part(cause) {
                _ = writeln!(text, "{} = \"{}\"", cause.name(), part.normalize());
            }
        }
        let EfficiencyPolicy { effect, minimum_use_coverage, tiers } = efficiency;
        _ = writeln!(
            text,
            "[efficiency]\npolicy = \"{}\"\nminimum_use_coverage = \"{}\"",
            effect.name(),
            minimum_use_coverage.normalize()
        );
        for EfficiencyTier { at_least, below, part } in tiers {
            _ = writeln!(text, "[[efficiency.tier]]");
            for (key, value) in [("at_least", *at_least), ("below", *below), ("part", Some(*part))] {
                if let Some(value) = value {
                    _ = writeln!(text, "{key} = \"{}\"", value.normalize());
                }
            }
        }
        for UsedBasis { queue, class } in used_basis {
            _ = writeln!(text, "[[used_basis]]");
            for (key, pattern) in [("queue", queue), ("class", class)] {
                if *pattern != Pattern::Any {
                    _ = writeln!(text, "{key} = {}", quoted(pattern.as_str()));
                }
            }
        }
        text
    }
}

/// Words of the file, each with what it means.
macro_rules! words {
    ($($name:ident { $($word:literal = $variant:ident),* })*) => {$(
        impl $name {
            pub(super) const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),*];

            /// Its word in `billing.toml`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),*
                }
            }
        }
    )*};
}

words! {
    BillingMode { "rate" = Rate, "absorb" = Absorb }
    FreeCapacity { "none" = Unbilled, "line" = Line, "shared" = Shared }
    ShareBy { "cost" = Cost, "card_hours" = CardHours, "even" = Even }
    ReservedCapacity { "none" = Unbilled, "line" = Line, "owner" = Owner }
    RefundOf { "held" = Held, "lost" = Lost }
    EfficiencyEffect { "explain" = Explain, "discount" = Discount, "surcharge" = Surcharge }
}
