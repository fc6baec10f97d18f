//! `[[limit]]` of `policy.toml`: what an account may have at once while its month's card-hours or its budget are spent.

use super::parse::count;
use cardhour_books::document::{Place, Reader};
use cardhour_books::quotas::Holder;
use cardhour_domain::Name;
use cardhour_scheduler_core::capacity::Band;

/// One `[[limit]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRule {
    /// Whose Slurm keeps it.
    pub cluster: Name,
    /// The account in that Slurm whose limit it is.
    pub account: Name,
    /// Of what: `gres/gpu`, `gres/gpu:h100`.
    pub tres: Name,
    /// What it follows.
    pub of: LimitOf,
    /// At most so many at once in the band `tight`; none: as it was.
    pub tight: Option<u32>,
    /// The same in the band `over`.
    pub over: Option<u32>,
}

/// What a limit follows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitOf {
    /// The month's card-hours of a quota.
    Month {
        /// Whose.
        holder: Holder,
        /// Of which model.
        model: Name,
    },
    /// A budget of `budgets.toml`, by its name. It is over once more was spent than there is.
    Budget(Name),
}

impl LimitRule {
    /// What it allows in a band; none: what was there before.
    pub fn most(&self, band: Band) -> Option<u32> {
        match band {
            Band::Ample => None,
            Band::Tight => self.tight,
            Band::Over => self.over,
        }
    }
}

/// All of a file. None: a fault was told.
pub(super) fn rules(reader: &mut Reader<'_>, root: &Place<'_, '_>) -> Option<Vec<LimitRule>> {
    let places = reader.tables(root, "limit");
    let read: Vec<Option<LimitRule>> = places.iter().map(|place| rule(reader, place)).collect();
    let mut rules: Vec<LimitRule> = Vec::with_capacity(read.len());
    let mut is_whole = read.iter().all(Option::is_some);
    for (place, rule) in places.iter().zip(&read) {
        let Some(rule) = rule else { continue };
        let target = |rule: &LimitRule| (rule.cluster.clone(), rule.account.clone(), rule.tres.clone());
        if rules.iter().any(|other| target(other) == target(rule)) {
            reader.fault(place.at, &place.path, "another limit is of the same account and resource");
            is_whole = false;
        }
        rules.push(rule.clone());
    }
    is_whole.then_some(rules)
}

fn rule(reader: &mut Reader<'_>, place: &Place<'_, '_>) -> Option<LimitRule> {
    reader.known_keys(
        place,
        &["cluster", "account", "tres", "org", "project", "user", "model", "budget", "tight", "over"],
    );
    let [cluster, account] = ["cluster", "account"].map(|key| {
        reader.required(place, key)?;
        reader.name(place, key)
    });
    let tres = match place.table.contains_key("tres") {
        true => reader.name(place, "tres"),
        false => Some("gres/gpu".into()),
    };
    let of = of(reader, place);
    let [tight, over] = ["tight", "over"].map(|key| {
        let mut most = 0;
        let is_there = place.table.contains_key(key);
        count(reader, place, key, &mut most).then_some(is_there.then_some(most))
    });
    let (tight, over) = (tight?, over?);
    let mut is_whole = true;
    let mut fault = |key: &str, reason: &str| {
        reader.fault(place.at, &place.key(key), reason);
        is_whole = false;
    };
    match (&of, tight, over) {
        (_, None, None) => fault("over", "is missing: it says how many at once are allowed"),
        (Some(LimitOf::Budget(_)), Some(_), _) => fault("tight", "is of a month's card-hours: a budget is over or not"),
        (_, Some(tight), Some(over)) if over > tight => fault("over", "is more than what tight allows"),
        (_, Some(_), None) => fault("over", "is missing: over would allow more than tight"),
        _ => {}
    }
    is_whole.then_some(())?;
    Some(LimitRule { cluster: cluster?, account: account?, tres: tres?, of: of?, tight, over })
}

fn of(reader: &mut Reader<'_>, place: &Place<'_, '_>) -> Option<LimitOf> {
    let keys = ["org", "project", "user", "model"];
    if place.table.contains_key("budget") {
        if let Some(key) = keys.into_iter().find(|key| place.table.contains_key(*key)) {
            reader.fault(place.at, &place.key(key), "stands beside budget: a limit follows one of them");
            return None;
        }
        return reader.name(place, "budget").map(LimitOf::Budget);
    }
    for key in ["org", "model"] {
        if !place.table.contains_key(key) {
            let reason = "is missing: a limit follows a budget, or the month's card-hours of an owner and a model";
            reader.fault(place.at, &place.key(key), reason);
            return None;
        }
    }
    let named = keys.map(|key| reader.name(place, key));
    let is_faulty = keys.iter().zip(&named).any(|(key, name)| name.is_none() && place.table.contains_key(*key));
    let [org, project, user, model] = named;
    if user.is_some() && project.is_none() {
        reader.fault(place.at, &place.key("project"), "is missing: a user's quota is in a project");
        return None;
    }
    (!is_faulty).then_some(())?;
    Some(LimitOf::Month { holder: Holder { org: org?, project, user }, model: model? })
}
