//! What the reports themselves say could be saved: off-peak, idle, checkpointing.

use super::{AdviceKind, Found, Sources, Whom};
use crate::budgets::{Budget, Period};
use crate::report::{Dimension, Fold, ReportKind, ReportQuery};
use crate::slots::Era;
use crate::table::Value;
use cardhour_domain::{CardTime, Money, Month, Name};

pub(super) fn advice(budget: &Budget, period: Period, sources: &Sources<'_>) -> Vec<Found> {
    let Sources { spent, range, book, .. } = *sources;
    let by: Vec<Dimension> =
        budget.scope.dimensions().into_iter().chain([Dimension::Price, Dimension::Window, Dimension::Month]).collect();
    let selectors = by.len() - 3;
    let query = ReportQuery { report: ReportKind::Idle, by, range: Some(range), zone: None };
    let fold = Fold::of(spent.input, spent.slots, Some(book), &query);
    let mut found = [
        (AdviceKind::OffPeak, "at its own price, less at that of the cheapest window"),
        (AdviceKind::Idle, "its part of what it cost"),
        (AdviceKind::Checkpointing, "at the price it had"),
    ]
    .map(|(kind, how)| (kind, how, CardTime::ZERO, 0i128));
    for (key, sums) in fold.rows.iter().zip(&fold.sums).filter(|(key, _)| key.era == Era::Shown) {
        let values: Vec<Option<Name>> = key.values.iter().map(text).collect();
        let (owner, rest) = values.split_at(selectors);
        let [Some(price), window, Some(month)] = rest else { continue };
        let Some(month) = Month::parse(month).ok().filter(|month| period.contains(*month)) else { continue };
        let Some(money) = sums.money.filter(|_| budget.scope.admits_all(owner)) else { continue };
        let start = month.interval(spent.slots.billing_zone()).start();
        let Some((price, window)) = book.named_at(price, window.as_deref(), start) else { continue };
        let charge = |window, time| book.rate(price, window).charge(time, book.currency()).micros();
        let windows = book.windows_of(price).map(Some).chain([None]);
        let cheapest = windows.min_by_key(|window| book.rate(price, *window).factor).flatten();
        if book.rate(price, cheapest).factor < book.rate(price, window).factor {
            add(&mut found[0], sums.billed, charge(window, sums.billed) - charge(cheapest, sums.billed));
        }
        add(&mut found[1], sums.used.idle, money.idle_cost);
        add(&mut found[2], sums.used.lost, charge(window, sums.used.lost));
    }
    found
        .into_iter()
        .filter(|(.., saving)| *saving > 0)
        .map(|(kind, how, card_time, saving)| Found {
            kind,
            whom: Whom::default(),
            jobs: None,
            card_time,
            saving: Some(Money::from_micros(saving, book.currency())),
            how: how.to_owned(),
        })
        .collect()
}

fn add((.., time, saving): &mut (AdviceKind, &str, CardTime, i128), more_time: CardTime, more: i128) {
    *time += more_time;
    *saving += more;
}

fn text(value: &Value) -> Option<Name> {
    match value {
        Value::Text(name) => Some(name.clone()),
        Value::Absent | Value::Count(_) | Value::Decimal(_) => None,
    }
}
