//! Rows of charges: what each attempt held of a line of the bill, and what of its amount falls to that.

use super::FocusMonth;
use super::identity::{encoded, id, job_id};
use super::line::{Account, EntryOfLine, Held, Line, Pricing, Resource, Sku, whole_seconds};
use crate::bill::{AttemptPiece, charges, charges_by_attempt};
use crate::report::ReportAttempt;
use crate::statement::{Entry, EntryKey, EntryKind};
use cardhour_domain::{CardTime, Name, spread_by};
use rust_decimal::Decimal;
use serde_json::{Map, Value as Json};
use std::collections::HashMap;
use std::sync::Arc;

/// What the keys of our own tags begin with. A site's labels keep their names.
pub(super) const TAG_PREFIX: &str = "cardhour/";

/// Who held what of each charge, by the charge's key.
pub(super) type Attempts = HashMap<EntryKey, Vec<AttemptPiece>>;

impl FocusMonth<'_> {
    /// Held and billed time that no price of the book is for: no entry tells of it, and so no row.
    pub fn unpriced_time(&self) -> CardTime {
        let charges = charges(self.input, self.slots, Some(self.book));
        charges.iter().filter(|charge| charge.cost.is_none()).map(|charge| charge.billed_time).sum()
    }

    pub(super) fn attempts_of_charges(&self) -> Attempts {
        let charges = charges_by_attempt(self.input, self.slots, Some(self.book));
        let of_charge = charges.into_iter().filter(|(charge, _)| charge.cost.is_some()).map(|(charge, pieces)| {
            let key = EntryKey {
                original_period: charge.month,
                kind: EntryKind::Charge,
                org: charge.org,
                project: charge.project,
                user: charge.user,
                model: charge.model,
                price_line: charge.price_line,
                window: charge.window,
                what: None,
            };
            (key, pieces)
        });
        of_charge.collect()
    }

    /// The rows of an entry: one an attempt where the usage of today says who held its time, else one.
    ///
    /// A charge of a closed month is what it was when it was closed. Where usage has changed since, nobody knows any more how much of it was whose, and it
    /// is one row without a job.
    pub(super) fn lines_of(
        &self,
        entry: &Entry,
        account: &Arc<Account>,
        of_entry: &Arc<EntryOfLine>,
        attempts: Option<&Vec<AttemptPiece>>,
    ) -> Vec<Line> {
        let sum = |of: fn(&AttemptPiece) -> CardTime| attempts.into_iter().flatten().map(of).sum::<CardTime>();
        let is_same =
            (sum(|piece| piece.card_time), sum(|piece| piece.billed_time)) == (entry.card_time, entry.billed_time);
        match attempts {
            Some(attempts) if is_same && !attempts.is_empty() => self.by_attempt(entry, account, of_entry, attempts),
            _ => vec![self.whole(entry, account, of_entry)],
        }
    }

    fn by_attempt(
        &self,
        entry: &Entry,
        account: &Arc<Account>,
        of_entry: &Arc<EntryOfLine>,
        attempts: &[AttemptPiece],
    ) -> Vec<Line> {
        let weights =
            |of: fn(&AttemptPiece) -> CardTime| attempts.iter().map(|piece| of(piece).part_ms()).collect::<Vec<_>>();
        let (billed, held) = (weights(|piece| piece.billed_time), weights(|piece| piece.card_time));
        let amounts = spread_by(entry.amount.micros(), &billed);
        // Hours are spread as money is, so that those of a line's rows add up to the line's.
        let billed_hours = spread_by(micros(entry.billed_time.card_hours()), &billed);
        let card_hours = spread_by(micros(entry.card_time.card_hours()), &held);
        let prices = self.unit_prices(entry);
        let rows = attempts.iter().zip(amounts).zip(billed_hours).zip(card_hours);
        rows.map(|(((piece, amount), billed_hours), card_hours)| {
            let attempt = piece.attempt.map(|attempt| &self.input.attempts[attempt as usize]);
            let during = attempt.and_then(|attempt| attempt.held?.overlap(piece.during)).unwrap_or(piece.during);
            let (from, to) = whole_seconds(during.overlap(account.period).unwrap_or(account.period));
            Line {
                account: Arc::clone(account),
                entry: Arc::clone(of_entry),
                from,
                to,
                billed: amount,
                pricing: match prices {
                    Some((list, contracted)) => Pricing::of_quantity(hours(billed_hours), list, contracted),
                    None => Pricing::of_one(amount),
                },
                card_hours: Some(hours(card_hours)),
                resource: attempt.map(|attempt| Resource {
                    id: format!("job:{}", attempt.key).into(),
                    name: job_id(&attempt.key),
                    kind: "GPU job",
                }),
                tags: attempt.and_then(|attempt| tags(attempt, &piece.nodes)),
                held: Some(Held {
                    cards: attempt.map(|attempt| attempt.cards.cards()),
                    state: attempt.map(|attempt| attempt.state.name()),
                    coverage: (piece.card_time - piece.unproven).ratio_of(piece.card_time),
                    unseen_hours: piece.unseen.card_hours(),
                }),
            }
        })
        .collect()
    }

    /// List price and price of a card-hour, by the book's line and window; none where the entry wasn't worked out by this book.
    pub(super) fn unit_prices(&self, entry: &Entry) -> Option<(Decimal, Decimal)> {
        let price = self.price(entry)?;
        let window = match &entry.key.window {
            Some(name) => Some(self.book.windows().iter().position(|window| window.name == *name)?),
            None => None,
        };
        let rate = self.book.rate(price, window);
        Some((rate.per_card_hour, rate.per_card_hour * rate.factor))
    }

    fn price(&self, entry: &Entry) -> Option<usize> {
        let line = entry.key.price_line.as_ref()?;
        let is_by_this_book = entry.price_version.as_ref() == Some(self.book.version());
        self.book.prices().iter().position(|price| price.price_line == *line).filter(|_| is_by_this_book)
    }

    /// What is sold: cards of a model at a price, or a thing of the site's list of costs; none for what is neither.
    pub(super) fn sku(&self, entry: &Entry) -> Option<Sku> {
        let EntryKey { original_period, kind, model, price_line, window, what, .. } = &entry.key;
        let mut details = Map::new();
        let mut detail = |name: &str, value: Option<String>| {
            details.extend(value.map(|value| (name.to_owned(), Json::String(value))));
        };
        let (id, meter, price_id) = match kind {
            EntryKind::Charge | EntryKind::Idle | EntryKind::Refund | EntryKind::Efficiency => {
                // FOCUS wants a SKU of all usage. Where no record names a model it is a card of any.
                let id = model.as_ref().map_or_else(|| "gpu".into(), |model| id("gpu", [&**model]));
                let part = |name: &Option<Name>| name.as_deref().map_or("~".into(), |name| encoded(name).into_owned());
                let price_id = match (price_line, &entry.price_version) {
                    (Some(line), Some(version)) => {
                        format!("{id}@{version}/{}/{}", encoded(line), part(window))
                    }
                    _ => format!("{id}@{original_period}/{}", kind.name()),
                };
                detail("x_GpuModel", model.as_ref().map(ToString::to_string));
                detail("x_PriceLine", price_line.as_ref().map(ToString::to_string));
                detail("x_Window", window.as_ref().map(ToString::to_string));
                (id, "GPU time", price_id)
            }
            EntryKind::CostItem => {
                let id = id("cost", what.iter().map(|what| &**what));
                let price_id = format!("{id}@{original_period}");
                (id, "Cost", price_id)
            }
            EntryKind::Recovery | EntryKind::Correction => return None,
        };
        let coefficient = self.price(entry).map(|price| self.book.prices()[price].coefficient);
        detail("x_Coefficient", coefficient.map(|coefficient| coefficient.normalize().to_string()));
        let details = Json::Object(details).to_string().into();
        Some(Sku { id, meter, price_id: price_id.into(), details, coefficient })
    }

    /// The reservations whose idle cards an entry is of: those of its owner, and on the platform's own line all. Several have their names together.
    pub(super) fn reservation(&self, entry: &Entry) -> Option<Name> {
        let EntryKey { kind, org, project, user, what, .. } = &entry.key;
        if *kind != EntryKind::Idle || what.as_deref() != Some("reserved") {
            return None;
        }
        let owner = [org, project, user];
        let is_platforms = owner.iter().all(|name| name.is_none());
        let of_owner = self
            .input
            .reservations
            .iter()
            .filter(|set_aside| is_platforms || [&set_aside.org, &set_aside.project, &set_aside.user] == owner);
        let mut names: Vec<String> =
            of_owner.map(|set_aside| format!("{}/{}", encoded(&set_aside.cluster), encoded(&set_aside.name))).collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            // Nobody lists it any more: it is known by its owner alone.
            return Some(id("rsv", owner.into_iter().flatten().map(|name| &**name)));
        }
        Some(format!("rsv:{}", names.join(",")).into())
    }
}

/// Who ran it and where, under our prefix, and its labels as they are. A label that begins as ours do gets `label/` before it.
fn tags(attempt: &ReportAttempt, nodes: &[Name]) -> Option<Name> {
    let ReportAttempt { user, queue, class, cluster, labels, .. } = attempt;
    let cluster = (!cluster.is_empty()).then_some(cluster);
    let nodes = (!nodes.is_empty()).then(|| nodes.iter().map(|node| &**node).collect::<Vec<_>>().join(","));
    let mut tags = Map::new();
    for (name, value) in [("user", user.as_deref()), ("queue", queue.as_deref()), ("class", class.as_deref())]
        .into_iter()
        .chain([("cluster", cluster.map(|name| &**name)), ("nodes", nodes.as_deref())])
    {
        tags.extend(value.map(|value| (format!("{TAG_PREFIX}{name}"), Json::String(value.to_owned()))));
    }
    for (name, value) in labels {
        let name = if name.starts_with(TAG_PREFIX) { format!("label/{name}") } else { name.to_string() };
        tags.insert(name, Json::String(value.to_string()));
    }
    (!tags.is_empty()).then(|| Json::Object(tags).to_string().into())
}

pub(super) fn micros(hours: Decimal) -> i128 {
    let mut hours = hours;
    hours.rescale(6);
    hours.mantissa()
}

pub(super) fn hours(micros: i128) -> Decimal {
    Decimal::from_i128_with_scale(micros, 6)
}
