//! From the text of `quotas.toml` to checked quotas.

use super::{CardQuota, Holder, Quota, Quotas};
use crate::document::{Faults, Place, Reader, read};
use cardhour_domain::{CardTime, Name};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

/// The most cards that are believed of one quota.
const MOST_CARDS: i64 = 10_000_000;
/// The most card-hours that are believed of one month: those of [`MOST_CARDS`] in 31 days.
const MOST_MONTH_CARD_HOURS: i64 = MOST_CARDS * 31 * 24;
/// The greatest weight that is believed.
const GREATEST_WEIGHT: i64 = 1_000_000;

pub(super) fn parse(text: &str) -> Result<Quotas, Faults> {
    Ok(read(text, quotas)?.unwrap_or_default())
}

fn quotas(reader: &mut Reader<'_>, root: &Place<'_, '_>) -> Option<Quotas> {
    reader.known_keys(root, &["quota"]);
    let tables = reader.tables(root, "quota");
    let read: Vec<Option<Quota>> = tables.iter().map(|place| quota(reader, place)).collect();
    let mut quotas: Vec<Quota> = Vec::with_capacity(tables.len());
    for (place, quota) in tables.iter().zip(read.iter().flatten()) {
        let model = |quota: &Quota| quota.cards.as_ref().map(|cards| cards.model.clone());
        let of_same =
            || quotas.iter().filter(|other| (&other.holder, &other.cluster) == (&quota.holder, &quota.cluster));
        if of_same().any(|other| model(other) == model(quota)) {
            reader.fault(place.at, &place.path, "another quota is of the same owner and model");
        }
        if of_same().any(|other| other.weight_milli.is_some()) && quota.weight_milli.is_some() {
            reader.fault(place.at, &place.key("weight"), "another quota of the same owner says it already");
        }
        quotas.push(quota.clone());
    }
    (read.len() == quotas.len()).then_some(Quotas { quotas })
}

fn quota(reader: &mut Reader<'_>, place: &Place<'_, '_>) -> Option<Quota> {
    reader.known_keys(
        place,
        &[
            "org",
            "project",
            "user",
            "cluster",
            "model",
            "guaranteed",
            "borrow_limit",
            "lend_limit",
            "max",
            "weight",
            "month_card_hours",
        ],
    );
    let holder = holder(reader, place);
    let cluster = match place.table.contains_key("cluster") {
        true => reader.name(place, "cluster").map(Some),
        false => Some(None),
    };
    let cards = cards(reader, place);
    let weight_milli = weight(reader, place);
    Some(Quota { holder: holder?, cluster: cluster?, cards: cards?, weight_milli: weight_milli? })
}

fn holder(reader: &mut Reader<'_>, place: &Place<'_, '_>) -> Option<Holder> {
    let mut name = |key: &str| -> Option<Option<Name>> {
        let Some(value) = place.table.get(key) else { return Some(None) };
        let text = reader.string(value, &place.key(key))?.trim();
        if text.is_empty() {
            reader.fault_of(value, &place.key(key), "has to say whose it is");
            return None;
        }
        Some(Some(text.into()))
    };
    let (org, project, user) = (name("org"), name("project"), name("user"));
    let (org, project, user) = (org?, project?, user?);
    let Some(org) = org else {
        reader.fault(place.at, &place.key("org"), "is missing: every quota is of an organisation, or of a part of one");
        return None;
    };
    if user.is_some() && project.is_none() {
        reader.fault(place.at, &place.key("project"), "is missing: a user's quota is in a project");
        return None;
    }
    Some(Holder { org, project, user })
}

/// The outer none: a fault was told.
fn cards(reader: &mut Reader<'_>, place: &Place<'_, '_>) -> Option<Option<CardQuota>> {
    let figures = ["guaranteed", "borrow_limit", "lend_limit", "max"];
    let of_cards = || figures.into_iter().chain(["month_card_hours"]);
    let Some(model) = place.table.get("model") else {
        return match of_cards().find(|key| place.table.contains_key(*key)) {
            None if place.table.contains_key("weight") => Some(None),
            None => {
                reader.fault(place.at, &place.path, "says nothing: it needs a model and guaranteed, or a weight");
                None
            }
            Some(key) => {
                reader.fault(place.at, &place.key("model"), format!("is missing: {key} is of cards of a model"));
                None
            }
        };
    };
    let model = reader.string(model, &place.key("model")).map(Name::from);
    let [guaranteed, borrow_limit, lend_limit, most] = figures.map(|key| count(reader, place, key));
    let month = month(reader, place);
    let (guaranteed, lend_limit, most) = (guaranteed?.unwrap_or(0), lend_limit?, most?);
    let mut is_whole = true;
    for (key, limit, within) in [
        ("lend_limit", lend_limit, lend_limit.is_none_or(|limit| limit <= guaranteed)),
        ("max", most, most.is_none_or(|most| guaranteed <= most)),
    ] {
        if let (Some(_), false) = (limit, within) {
            let reason = match key {
                "max" => format!("is less than the {guaranteed} that are guaranteed"),
                _ => format!("is more than the {guaranteed} that are guaranteed: nobody lends what they don't have"),
            };
            let at = place.table.get(key).map_or(place.at, |value| value.span().start);
            reader.fault(at, &place.key(key), reason);
            is_whole = false;
        }
    }
    is_whole.then_some(())?;
    Some(Some(CardQuota { model: model?, guaranteed, borrow_limit: borrow_limit?, lend_limit, most, month: month? }))
}

/// A whole number of cards; the outer none: a fault was told.
fn count(reader: &mut Reader<'_>, place: &Place<'_, '_>, key: &str) -> Option<Option<u32>> {
    let Some(value) = place.table.get(key) else { return Some(None) };
    let cards = reader.decimal(value, &place.key(key), 0, MOST_CARDS)?;
    Some(Some(cards.to_u32().expect("it is no more than MOST_CARDS")))
}

/// Card-hours of a month; the outer none: a fault was told.
fn month(reader: &mut Reader<'_>, place: &Place<'_, '_>) -> Option<Option<CardTime>> {
    let Some(value) = place.table.get("month_card_hours") else { return Some(None) };
    let path = place.key("month_card_hours");
    let hours = reader.decimal(value, &path, 6, MOST_MONTH_CARD_HOURS)?;
    if hours.is_zero() {
        reader.fault_of(value, &path, "has to be above zero: max = 0 is how nothing is allowed");
        return None;
    }
    // Six decimals of an hour are whole parts × milliseconds.
    let millionths = (hours * Decimal::from(1_000_000)).to_i128().expect("no more than MOST_MONTH_CARD_HOURS");
    Some(Some(CardTime::from_part_ms(millionths * (CardTime::PART_MS_PER_CARD_HOUR / 1_000_000))))
}

/// In thousandths; the outer none: a fault was told.
fn weight(reader: &mut Reader<'_>, place: &Place<'_, '_>) -> Option<Option<u64>> {
    let Some(value) = place.table.get("weight") else { return Some(None) };
    let weight = reader.decimal(value, &place.key("weight"), 3, GREATEST_WEIGHT)?;
    Some((weight * Decimal::ONE_THOUSAND).to_u64())
}
