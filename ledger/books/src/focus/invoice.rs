//! Rows of the datasets that 1.4 has beside Cost and Usage: lines of statements, and the month.

use super::FocusMonth;
use super::identity::project_id;
use super::line::{Account, whole_seconds};
use super::other_rows::{category, description};
use crate::statement::{Entry, EntryId, EntryKind, PLATFORM};
use cardhour_domain::{Interval, Money, Name, Timestamp};
use serde_json::{Map, Value as Json};
use std::sync::Arc;

/// A line of a statement: an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvoiceLine {
    pub(super) account: Arc<Account>,
    pub(super) id: EntryId,
    pub(super) category: &'static str,
    pub(super) description: Name,
    /// A flat JSON object: what tells the line from the others of its statement.
    pub(super) grain: Name,
    pub(super) amount: Money,
    /// The statement that it corrects, else its own.
    pub(super) reference: Name,
    pub(super) issued_at: Option<Timestamp>,
    pub(super) told_at: Timestamp,
}

/// A billing period: the month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    pub(super) issuer: Name,
    pub(super) during: Interval,
    pub(super) is_closed: bool,
    pub(super) told_at: Timestamp,
}

impl FocusMonth<'_> {
    pub(super) fn invoice_lines(&self) -> Vec<InvoiceLine> {
        let mut lines = Vec::new();
        for statement in self.statements {
            let account = Arc::new(self.account(statement));
            lines.extend(statement.entries.iter().map(|entry| InvoiceLine {
                account: Arc::clone(&account),
                id: entry.id(),
                category: category(entry),
                description: description(entry),
                grain: self.grain(entry),
                amount: entry.amount,
                reference: self.policy.number(entry.key.original_period, statement.org.as_ref()),
                issued_at: statement.closed.as_ref().map(|closed| closed.at),
                told_at: self.told_at(),
            }));
        }
        lines
    }

    pub(super) fn period(&self) -> Period {
        Period {
            issuer: self.statements.iter().find_map(|statement| statement.issuer.clone()).unwrap_or(PLATFORM.into()),
            during: self.month.interval(self.slots.billing_zone()),
            is_closed: self.closed_at().is_some(),
            told_at: self.told_at(),
        }
    }

    pub(super) fn closed_at(&self) -> Option<Timestamp> {
        self.statements.iter().find_map(|statement| statement.closed.as_ref()).map(|closed| closed.at)
    }

    /// When the month last changed: when it was closed; of an open one the last instant in it that the books know of, since an export has no clock.
    pub(super) fn told_at(&self) -> Timestamp {
        let month = self.month.interval(self.slots.billing_zone());
        let held = self.input.attempts.iter().filter_map(|attempt| attempt.held?.overlap(month)).map(Interval::end);
        let last = self.closed_at().or_else(|| held.max()).unwrap_or(month.start());
        // Whole seconds, as FOCUS has them.
        Interval::new(month.start(), last).map_or(last, |until| whole_seconds(until).1)
    }

    fn grain(&self, entry: &Entry) -> Name {
        let key = &entry.key;
        let mut grain = Map::new();
        let sku = self.sku(entry);
        let kind = Name::from(entry.kind().name());
        let corrected = (entry.kind() == EntryKind::Correction).then(|| Name::from(key.original_period.to_string()));
        let named = [
            ("SubAccountId", project_id(key)),
            ("SkuId", sku.as_ref().map(|sku| sku.id.clone())),
            ("SkuPriceId", sku.map(|sku| sku.price_id)),
            ("x_EntryKind", Some(kind)),
            ("x_User", key.user.clone()),
            ("x_What", key.what.clone()),
            ("x_CorrectedMonth", corrected),
        ];
        for (name, value) in named {
            grain.extend(value.map(|value| (name.to_owned(), Json::String(value.to_string()))));
        }
        Json::Object(grain).to_string().into()
    }
}
