//! Who uses little of what they hold: the attempts with the most idle and underused card-hours, each with the reason.

use super::cells::{self, hours, money, name, percent, ratio, short, text};
use super::facts::{Facts, Held, Sum};
use super::{Chart, Section, Shape};
use crate::cell::SeenBy;
use crate::report::UNOWNED;
use crate::table::{Kind, Value};
use cardhour_domain::{CardTime, Name, UseBasis};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// So many are listed: what a meeting goes through.
const MOST: usize = 10;

/// Columns: `attempt org project user model card_hours wasted_card_hours efficiency cost currency reason`; wasted is idle + underused. An attempt on cards of several models is
/// listed without one.
pub(super) fn section(facts: &Facts<'_>, held: &[Held<'_>]) -> Section {
    let mut attempts: BTreeMap<u32, (Sum, Option<&Name>)> = BTreeMap::new();
    for held in held {
        let Some(attempt) = held.attempt else { continue };
        let (sum, model) = attempts.entry(attempt).or_insert_with(|| (Sum::default(), held.model));
        sum.add(&held.sum);
        *model = model.filter(|model| Some(*model) == held.model);
    }
    let mut list: Vec<(u32, Sum, Option<&Name>)> = attempts
        .into_iter()
        .filter(|(_, (sum, _))| sum.wasted() > CardTime::ZERO)
        .map(|(attempt, (sum, model))| (attempt, sum, model))
        .collect();
    list.sort_by_key(|(attempt, sum, _)| (Reverse(sum.wasted()), facts.attempt(*attempt).key.clone()));
    let more = list.len().saturating_sub(MOST);
    list.truncate(MOST);
    let rows = list.iter().map(|(attempt, sum, model)| {
        let attempt = facts.attempt(*attempt);
        let owner = |part: &Option<Name>| match (part, attempt.is_unowned()) {
            (Some(part), _) => Value::Text(part.clone()),
            (None, true) => text(UNOWNED),
            (None, false) => Value::Absent,
        };
        let mut row =
            vec![text(attempt.key.as_str()), owner(&attempt.org), owner(&attempt.project), owner(&attempt.user)];
        row.extend([name(*model), hours(sum.held), hours(sum.wasted()), ratio(sum.efficiency())]);
        row.extend(money(sum.cost, facts.currency()));
        row.push(text(reason(sum)));
        row
    });
    let columns = [
        ("attempt", Kind::Text),
        ("org", Kind::Text),
        ("project", Kind::Text),
        ("user", Kind::Text),
        ("model", Kind::Text),
        ("card_hours", Kind::Hours),
        ("wasted_card_hours", Kind::Hours),
        ("efficiency", Kind::Ratio),
        ("cost", Kind::Money),
        ("currency", Kind::Text),
        ("reason", Kind::Text),
    ];
    let mut table = cells::table("Low use", &columns, rows.collect());
    table.notes.push(
        "the most idle and underused card-hours first; idle: every signal that was seen was under its floor; underused: held and seen, neither idle, lost nor busy"
            .to_owned(),
    );
    if more > 0 {
        table.notes.push(format!("{more} more attempts had idle or underused time"));
    }
    Section { name: "low_use", table, chart: Some(Chart { shape: Shape::Bars, label: 0, value: 6 }) }
}

/// Why an attempt is listed, from what its cells know: `idle 71.0 % and underused 12.0 % of 40.0 seen card-hours; 3.0 not seen`.
fn reason(sum: &Sum) -> String {
    let part = |what: &str, time: CardTime| {
        let part = time.ratio_of(sum.seen()).filter(|part| !part.is_zero())?;
        Some(format!("{what} {}", percent(part)))
    };
    let parts = [part("idle", sum.used.idle), part("underused", sum.used.underused), part("lost", sum.used.lost)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let basis = match sum.used.basis() {
        Some(SeenBy::One(UseBasis::DutyCycle)) => ", by the duty cycle",
        Some(SeenBy::Both) => ", in part by the duty cycle",
        Some(SeenBy::One(UseBasis::Gpm)) | None => "",
    };
    let mut reason = format!("{} of {} seen card-hours{basis}", parts.join(" and "), short(sum.seen().card_hours()));
    if !sum.unseen.is_zero() {
        reason.push_str(&format!("; {} not seen", short(sum.unseen.card_hours())));
    }
    reason
}
