//! From the text of `billing.toml` to a checked policy.

use super::{
    BillingMode, BillingPolicy, CapacityPolicy, EfficiencyEffect, EfficiencyPolicy, EfficiencyTier, FreeCapacity,
    RefundCause, RefundOf, RefundPolicy, ReservedCapacity, ShareBy, UsedBasis,
};
use crate::document::{self, Faults, Place, Reader};
use crate::prices::Pattern;
use cardhour_domain::Name;
use std::collections::BTreeMap;

pub(super) fn parse(text: &str) -> Result<Option<BillingPolicy>, Faults> {
    document::read(text, |reader, root| Some(reader.policy(root)))
}

impl Reader<'_> {
    /// The policy, with defaults for what is faulty: faults are kept beside it.
    fn policy(&mut self, root: &Place<'_, '_>) -> BillingPolicy {
        let known = ["mode", "fiscal_year_starts", "statement", "capacity", "refunds", "efficiency", "used_basis"];
        self.known_keys(root, &known);
        let mut policy = BillingPolicy {
            mode: self.word(root, "mode", BillingMode::WORDS).unwrap_or_default(),
            fiscal_year_starts: self.month_of_year(root, "fiscal_year_starts").unwrap_or(1),
            ..BillingPolicy::default()
        };
        if let Some(statement) = self.table(root, "statement") {
            self.statement(&statement, &mut policy);
        }
        if let Some(capacity) = self.table(root, "capacity") {
            policy.capacity = self.capacity(&capacity);
        }
        if let Some(refunds) = self.table(root, "refunds") {
            policy.refunds = self.refunds(&refunds);
        }
        if let Some(efficiency) = self.table(root, "efficiency") {
            policy.efficiency = self.efficiency(&efficiency);
        }
        for place in self.tables(root, "used_basis") {
            policy.used_basis.extend(self.used_basis(&place));
        }
        policy
    }

    fn month_of_year(&mut self, place: &Place<'_, '_>, key: &str) -> Option<u32> {
        let (value, path) = (place.table.get(key)?, place.key(key));
        let number = self.decimal(value, &path, 0, 12)?;
        let month = u32::try_from(number).ok().filter(|month| *month > 0);
        if month.is_none() {
            self.fault_of(value, &path, "has to be a month of the year: \"01\" to \"12\"");
        }
        month
    }

    fn statement(&mut self, place: &Place<'_, '_>, policy: &mut BillingPolicy) {
        let known = [
            "issuer",
            "prefix",
            "tax_included",
            "tax_note",
            "payment_terms",
            "minimum_coverage",
            "minimum_seen",
            "accounts",
        ];
        self.known_keys(place, &known);
        policy.issuer = self.name(place, "issuer");
        if let Some(prefix) = self.name(place, "prefix") {
            let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            if prefix.chars().all(is_plain) && prefix.chars().count() <= 16 {
                policy.number_prefix = prefix;
            } else {
                let value = &place.table["prefix"];
                let reason = "numbers of statements name files too: at most 16 letters, digits, and - _ .";
                self.fault_of(value, &place.key("prefix"), reason);
            }
        }
        policy.tax_included = self.flag(place, "tax_included");
        policy.tax_note = self.name(place, "tax_note");
        policy.payment_terms = self.name(place, "payment_terms");
        if let Some(least) = self.part(place, "minimum_coverage") {
            policy.minimum_coverage = least;
        }
        if let Some(least) = self.part(place, "minimum_seen") {
            policy.minimum_seen = least;
        }
        if let Some(accounts) = self.table(place, "accounts") {
            let orgs: Vec<String> = accounts.table.keys().map(|org| org.get_ref().to_string()).collect();
            policy.accounts = orgs
                .iter()
                .filter_map(|org| Some((Name::from(org.as_str()), self.name(&accounts, org)?)))
                .collect::<BTreeMap<_, _>>();
        }
    }

    fn capacity(&mut self, place: &Place<'_, '_>) -> CapacityPolicy {
        self.known_keys(place, &["free", "share_by", "reserved"]);
        let free = self.word(place, "free", FreeCapacity::WORDS).unwrap_or_default();
        let share_by = self.word(place, "share_by", ShareBy::WORDS);
        if let (Some(value), true) = (place.table.get("share_by"), free != FreeCapacity::Shared) {
            // In the canonical text both always stand; there the default is no decision of anybody.
            if share_by != Some(ShareBy::default()) {
                self.fault_of(value, &place.key("share_by"), "says nothing unless free = \"shared\"");
            }
        }
        let reserved = self.word(place, "reserved", ReservedCapacity::WORDS).unwrap_or_default();
        CapacityPolicy { free, share_by: share_by.unwrap_or_default(), reserved }
    }

    fn refunds(&mut self, place: &Place<'_, '_>) -> RefundPolicy {
        let causes = RefundCause::ALL.map(RefundCause::name);
        let known: Vec<&str> = causes.into_iter().chain(["of"]).collect();
        self.known_keys(place, &known);
        let part = |cause| self.part(place, cause).filter(|part| !part.is_zero());
        let parts = causes.map(part);
        RefundPolicy { parts, of: self.word(place, "of", RefundOf::WORDS).unwrap_or_default() }
    }

    fn efficiency(&mut self, place: &Place<'_, '_>) -> EfficiencyPolicy {
        self.known_keys(place, &["policy", "minimum_use_coverage", "tier"]);
        let default = EfficiencyPolicy::default();
        let effect = self.word(place, "policy", EfficiencyEffect::WORDS).unwrap_or_default();
        let least = self.part(place, "minimum_use_coverage").unwrap_or(default.minimum_use_coverage);
        let places = self.tables(place, "tier");
        match (effect, places.first()) {
            (EfficiencyEffect::Explain, Some(first)) => {
                let reason = "says nothing unless policy = \"discount\" or \"surcharge\"";
                self.fault(first.at, &first.path, reason);
            }
            (EfficiencyEffect::Discount | EfficiencyEffect::Surcharge, None) => {
                let reason = format!("{} needs an [[efficiency.tier]]", effect.name());
                self.fault_of(&place.table["policy"], &place.key("policy"), reason);
            }
            (EfficiencyEffect::Explain, None) | (EfficiencyEffect::Discount | EfficiencyEffect::Surcharge, Some(_)) => {
            }
        }
        let tiers = places.iter().filter_map(|place| self.tier(place)).collect();
        EfficiencyPolicy { effect, minimum_use_coverage: least, tiers }
    }

    fn tier(&mut self, place: &Place<'_, '_>) -> Option<EfficiencyTier> {
        self.known_keys(place, &["at_least", "below", "part"]);
        let (at_least, below) = (self.part(place, "at_least"), self.part(place, "below"));
        self.required(place, "part")?;
        let part = self.part(place, "part")?;
        if let (Some(least), Some(limit)) = (at_least, below)
            && least >= limit
        {
            self.fault(place.at, &place.path, format!("no efficiency is at least {least} and below {limit}"));
        }
        if !place.table.contains_key("at_least") && !place.table.contains_key("below") {
            self.fault(place.at, &place.path, "needs at_least or below: which efficiencies it is for");
        }
        Some(EfficiencyTier { at_least, below, part })
    }

    fn used_basis(&mut self, place: &Place<'_, '_>) -> Option<UsedBasis> {
        self.known_keys(place, &["queue", "class"]);
        let pattern = |name: Option<Name>| name.map_or(Pattern::Any, |name| Pattern::new(&name));
        let (queue, class) = (self.name(place, "queue"), self.name(place, "class"));
        if place.table.is_empty() {
            self.fault(
                place.at,
                &place.path,
                "needs a queue or a class: whose use is billed instead of what they held",
            );
            return None;
        }
        Some(UsedBasis { queue: pattern(queue), class: pattern(class) })
    }
}
