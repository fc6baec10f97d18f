//! How many cards a text of Slurm's trackable resources names.
//!
//! `billing=19,cpu=1,gres/gpu:a100=1,gres/gpu=1,mem=32G,node=1` is one card: the untyped count is the total over all nodes and
//! types (S05, S06); typed counts tell the model, and are summed only where the untyped is missing. Never both.

use crate::import::mig_type::{MigType, split_mig_type};
use cardhour_domain::{CardShare, ShareError};
use rust_decimal::Decimal;

/// The cards that a text names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cards<'a> {
    /// All of them; a MIG slice counts as its part of a card.
    pub share: CardShare,
    /// The model, where all of them are of one type.
    pub model: Option<&'a str>,
    /// The MIG profile, where all of them are slices of one profile.
    pub mig_profile: Option<&'a str>,
    /// Whether any of them is named with its type.
    pub is_typed: bool,
    /// Whether the count over all types is told.
    pub is_plain: bool,
}

/// Why a text can't be read. Such a row goes to quarantine and is never booked as no cards (S26).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TresError {
    /// A part without a count.
    #[error("{part:?} in {text:?} is not a resource and its count, such as gres/gpu=2")]
    Part {
        /// The part at fault.
        part: String,
        /// The whole.
        text: String,
    },
    /// Resources named by number.
    #[error("{0:?} names resources by number, so which of them are cards can't be told: export the text form")]
    Numbered(String),
    /// A resource with two different counts.
    #[error("{0:?} counts the same cards twice, differently")]
    Twice(String),
    /// Not a number of cards.
    #[error("{text:?}: {source}")]
    Count {
        /// The whole.
        text: String,
        /// What is wrong with the count.
        source: ShareError,
    },
}

/// One part: the type, where it has one, and the count.
type Part<'a> = (Option<&'a str>, CardShare);

/// The cards in `AllocTRES` or `ReqTRES`, where `wanted` is the resource that counts as a card: `gres/gpu`, `cpu`, `node`.
///
/// Type names are free text up to the last `=` or `:` (S07). An empty text is no cards.
pub fn cards_in_tres<'a>(text: &'a str, wanted: &str) -> Result<Cards<'a>, TresError> {
    count(text, |part| {
        let (name, amount) = split_part(part).ok_or_else(|| part_error(part, text))?;
        if name.bytes().all(|c| c.is_ascii_digit()) {
            return Err(TresError::Numbered(shown(text)));
        }
        let Some(kind) = name.strip_prefix(wanted).and_then(type_of) else { return Ok(None) };
        Ok(Some((kind, share_of(amount).map_err(|source| TresError::Count { text: shown(text), source })?)))
    })
}

/// The cards in `AllocGRES` or `ReqGRES` of older Slurm: `gpu:2`, `gpu:tesla:2`, `gpu:h100:2(IDX:0-1)`, `gpu`.
///
/// `wanted` as for [`cards_in_tres`]; a resource that isn't a gres is in no such text. Errors: a count that is none.
pub fn cards_in_gres<'a>(text: &'a str, wanted: &str) -> Result<Cards<'a>, TresError> {
    let wanted = wanted.strip_prefix("gres/").unwrap_or(wanted);
    count(text, |part| {
        let part = part.split_once('(').map_or(part, |(part, _)| part);
        let part = part.strip_prefix("gres/").or(part.strip_prefix("gres:")).unwrap_or(part);
        let (name, amount) = match split_part(part) {
            Some((name, amount)) => (name, share_of(amount).map_err(|_| part_error(part, text))?),
            None => (part, CardShare::CARD),
        };
        Ok(name.strip_prefix(wanted).and_then(type_of).map(|kind| (kind, amount)))
    })
}

/// What follows the wanted name: nothing, or `:type`. None: another resource whose name begins alike.
fn type_of(rest: &str) -> Option<Option<&str>> {
    if rest.is_empty() { Some(None) } else { rest.strip_prefix(':').map(Some) }
}

/// `name=count` or `name:count`, cut at the last of either.
fn split_part(part: &str) -> Option<(&str, &str)> {
    let at = part.rfind(['=', ':'])?;
    let (name, amount) = (&part[..at], &part[at + 1..]);
    (!name.is_empty() && amount.starts_with(|c: char| c.is_ascii_digit() || c == '-')).then_some((name, amount))
}

fn count<'a>(
    text: &'a str,
    read: impl Fn(&'a str) -> Result<Option<Part<'a>>, TresError>,
) -> Result<Cards<'a>, TresError> {
    let (mut untyped, mut typed) = (None, Vec::new());
    for part in parts(text) {
        match read(part)? {
            None => {}
            Some((None, share)) if untyped.is_some_and(|before| before != share) => {
                return Err(TresError::Twice(shown(text)));
            }
            Some((None, share)) => untyped = Some(share),
            Some((Some(kind), share)) => typed.push((kind, share)),
        }
    }
    let sum: CardShare = typed.iter().map(|(_, share)| *share).sum();
    let mut cards = Cards {
        share: untyped.unwrap_or(sum),
        is_typed: !typed.is_empty(),
        is_plain: untyped.is_some(),
        ..Cards::default()
    };
    if let [(kind, _)] = typed[..]
        && sum == cards.share
    {
        (cards.model, cards.mig_profile) = match split_mig_type(kind) {
            Some(mig) => (mig.model, Some(mig.profile)),
            None => (Some(kind), None),
        };
    }
    // A slice was counted as one; it is its part of a card (design §4.2).
    for (kind, share) in typed {
        if let Some(mig) = split_mig_type(kind) {
            if share > cards.share {
                return Err(TresError::Twice(shown(text)));
            }
            cards.share = cards.share - unused_part(&mig, share);
        }
    }
    Ok(cards)
}

/// What `slices`, counted as whole cards, leave of them.
fn unused_part(mig: &MigType<'_>, slices: CardShare) -> CardShare {
    let (of_card, card) = (i64::from(mig.compute_slices), i64::from(mig.card_slices));
    CardShare::from_parts(slices.parts() / card * (card - of_card))
}

/// The parts between commas outside of parentheses and brackets: `gpu:2(IDX:0,3),shard:1`.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0i32;
    text.split(move |c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        c == ',' && depth <= 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty() && !part.eq_ignore_ascii_case("(null)") && !part.eq_ignore_ascii_case("N/A"))
}

/// A count with Slurm's suffixes: K, M, G, T by 1024.
fn share_of(amount: &str) -> Result<CardShare, ShareError> {
    let not_a_number = || ShareError::NotANumber(shown(amount));
    let (number, times) = match amount.as_bytes().last() {
        Some(b'K') => (&amount[..amount.len() - 1], 1i64 << 10),
        Some(b'M') => (&amount[..amount.len() - 1], 1 << 20),
        Some(b'G') => (&amount[..amount.len() - 1], 1 << 30),
        Some(b'T') => (&amount[..amount.len() - 1], 1 << 40),
        _ => (amount, 1),
    };
    let exact = Decimal::from_str_exact(number).map_err(|_| not_a_number())?;
    share_of_cards(exact.checked_mul(times.into()).ok_or_else(not_a_number)?)
}

/// A count of cards as a share; whole counts, which nearly all are, without the long division of fractions.
pub(crate) fn share_of_cards(cards: Decimal) -> Result<CardShare, ShareError> {
    match i64::try_from(cards) {
        Ok(whole) if cards.fract().is_zero() && (0..=CardShare::MOST_CARDS).contains(&whole) => {
            Ok(CardShare::from_parts(whole * CardShare::PARTS_PER_CARD))
        }
        _ => CardShare::from_decimal(cards),
    }
}

fn part_error(part: &str, text: &str) -> TresError {
    TresError::Part { part: shown(part), text: shown(text) }
}

/// The first 200 characters, for a message.
fn shown(text: &str) -> String {
    text.chars().take(200).collect()
}

#[cfg(test)]
#[path = "tres/tests.rs"]
mod tests;
