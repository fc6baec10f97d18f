//! Quotas: how many cards of a model each part of a pool's users is guaranteed, may borrow and lends (`quotas.toml` in the ledger's folder).
//!
//! A quota is of an organisation, of a project of it, or of a user of that. What has no quota may use what others leave idle.
//!
//! A quota may have a bucket of card-hours a month; how much of it was used, hour by hour, [`month_uses`] tells.
//!
//! Start at [`Quotas::parse`]. Does not: decide anything, which is the scheduler core's: also not whether a bucket will last.

mod month;
mod parse;

pub use month::{MonthSpan, MonthUse, UseCurve, month_slots, month_uses};

use crate::document::Faults;
use cardhour_domain::{CardTime, Name};

/// All quotas of a ledger, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// In the order of the file.
    pub quotas: Vec<Quota>,
}

/// Whom a quota is of: an organisation alone, with a project, or with a project and a user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// The organisation.
    pub org: Name,
    /// Its project.
    pub project: Option<Name>,
    /// The project's user.
    pub user: Option<Name>,
}

/// One `[[quota]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Whom it is of.
    pub holder: Holder,
    /// The cluster whose cards it is of; none: of each.
    pub cluster: Option<Name>,
    /// Of which model, as the books write it; none where it only has a weight.
    pub cards: Option<CardQuota>,
    /// Its part of what is above all quotas, beside its siblings'. Unit: thousandths.
    pub weight_milli: Option<u64>,
}

/// Cards of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardQuota {
    /// The model.
    pub model: Name,
    /// Always theirs, if they ask. Unit: cards.
    pub guaranteed: u32,
    /// How many more they may have while others leave them idle; none: as many as there are.
    pub borrow_limit: Option<u32>,
    /// How many of theirs others may have meanwhile; none: all.
    pub lend_limit: Option<u32>,
    /// Never more than this; none: no such limit.
    pub most: Option<u32>,
    /// What of a month's card-time is theirs before their weight and what they may borrow shrink, in each cluster that the quota is of; none: no such bucket.
    pub month: Option<CardTime>,
}

impl Quotas {
    /// Those that hold in a cluster.
    pub fn in_cluster<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = &'a Quota> + Clone {
        self.quotas.iter().filter(move |quota| quota.cluster.as_ref().is_none_or(|of| of == cluster))
    }

    /// Whether any has a bucket of card-hours a month.
    pub fn have_months(&self) -> bool {
        self.quotas.iter().filter_map(|quota| quota.cards.as_ref()).any(|cards| cards.month.is_some())
    }

    /// From the text of a file; none of a text that says nothing. Errors: all faults of it, each with its line and key.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        parse::parse(text)
    }
}

#[cfg(test)]
mod tests;
