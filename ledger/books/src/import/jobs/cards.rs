//! How many cards a row holds, and of what kind.

use crate::import::mapping::{BoundMapping, NumberColumn, SlurmResources};
use crate::import::record::Record;
use crate::import::tres::{Cards, cards_in_gres, cards_in_tres, share_of_cards};
use crate::import::when::Refusal;
use cardhour_domain::CardShare;
use rust_decimal::Decimal;

/// The cards of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowCards<'r> {
    /// How many, their models and profiles as far as Slurm's text says them.
    pub cards: Cards<'r>,
    /// Whether the share was declared.
    pub declared: bool,
}

/// The cards that a row holds. Errors: none are told of a row that started, or what is told can't be.
pub(super) fn held<'r>(bound: &BoundMapping, record: &'r Record, has_started: bool) -> Result<RowCards<'r>, Refusal> {
    if bound.cards.is_none() && bound.share.is_none() {
        return match &bound.slurm {
            Some(slurm) if bound.card_uuid.get(record).is_none() => allocated(slurm, record),
            _ => named_card(bound, record, has_started),
        };
    }
    let number = |field, column: &Option<NumberColumn>| match column {
        None => Ok(Some(Decimal::ONE)),
        Some(column) => column.get(record).map_err(|reason| Refusal::new(field, reason)),
    };
    let (cards, share) = (number("cards", &bound.cards)?, number("share", &bound.share)?);
    let field = if bound.cards.is_none() || (cards.is_some() && share.is_none()) { "share" } else { "cards" };
    let (Some(cards), Some(share)) = (cards, share) else {
        return if has_started {
            Err(Refusal::new(field, "is absent, and no cards can't be told from unknown ones"))
        } else {
            Ok(RowCards { cards: Cards::default(), declared: true })
        };
    };
    let product = cards.checked_mul(share).ok_or_else(|| Refusal::new(field, "is beyond 28 digits"))?;
    let share = share_of_cards(product).map_err(|error| Refusal::new(field, error.to_string()))?;
    Ok(RowCards { cards: Cards { share, ..Cards::default() }, declared: true })
}

/// A row that names its card and no share of it: what the others on that card leave.
fn named_card<'r>(bound: &BoundMapping, record: &'r Record, has_started: bool) -> Result<RowCards<'r>, Refusal> {
    let share = match bound.card_uuid.get(record) {
        Some(_) => CardShare::CARD,
        None if has_started => return Err(Refusal::new("card_uuid", "is absent, and nothing else says the cards")),
        None => CardShare::ZERO,
    };
    Ok(RowCards { cards: Cards { share, ..Cards::default() }, declared: false })
}

fn allocated<'r>(slurm: &SlurmResources, record: &'r Record) -> Result<RowCards<'r>, Refusal> {
    let refused = |error: crate::import::tres::TresError| Refusal::new("cards", error.to_string());
    let get = |column: Option<usize>| column.and_then(|column| record.get(column));
    let mut cards = match get(slurm.alloc_tres) {
        Some(text) => cards_in_tres(text, &slurm.cards_from).map_err(refused)?,
        None => Cards::default(),
    };
    // Before Slurm 20.11 the count of GPUs may be in AllocGRES alone, over all nodes.
    if cards.share.is_zero() && slurm.cards_from.starts_with("gres/") {
        if let Some(text) = get(slurm.alloc_gres) {
            cards = cards_in_gres(text, &slurm.cards_from).map_err(refused)?;
        } else if slurm.alloc_tres.is_none() && slurm.alloc_gres.is_none() {
            cards = asked_by_node(slurm, record)?.unwrap_or_default();
        }
    }
    Ok(RowCards { cards, declared: true })
}

/// `ReqGRES`, which counts by node.
fn asked_by_node<'r>(slurm: &SlurmResources, record: &'r Record) -> Result<Option<Cards<'r>>, Refusal> {
    let Some(text) = slurm.req_gres.and_then(|column| record.get(column)) else { return Ok(None) };
    let mut cards = cards_in_gres(text, &slurm.cards_from).map_err(|error| Refusal::new("cards", error.to_string()))?;
    let nodes = node_count(slurm, record).unwrap_or(1).max(1);
    let parts = cards.share.parts().checked_mul(nodes).filter(|parts| *parts <= MOST_PARTS);
    let parts = parts.ok_or_else(|| Refusal::new("cards", format!("{text:?} on {nodes} nodes are too many")))?;
    cards.share = CardShare::from_parts(parts);
    Ok(Some(cards))
}

const MOST_PARTS: i64 = CardShare::MOST_CARDS * CardShare::PARTS_PER_CARD;

/// How many nodes Slurm says.
pub(super) fn node_count(slurm: &SlurmResources, record: &Record) -> Option<i64> {
    slurm.node_count.and_then(|column| record.get(column)).and_then(|text| text.parse().ok())
}

/// The cards that a row asked for; what can't be read is absent, for nothing is booked by it.
pub(super) fn requested(bound: &BoundMapping, record: &Record) -> Option<CardShare> {
    if let Some(column) = &bound.cards_requested {
        return column.get(record).ok().flatten().and_then(|cards| share_of_cards(cards).ok());
    }
    let slurm = bound.slurm.as_ref()?;
    if let Some(text) = slurm.req_tres.and_then(|column| record.get(column)) {
        return cards_in_tres(text, &slurm.cards_from).ok().map(|cards| cards.share);
    }
    asked_by_node(slurm, record).ok().flatten().map(|cards| cards.share)
}
