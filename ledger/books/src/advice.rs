//! What could be saved, with the figures behind it: only what the books prove.
//!
//! | advice | figure |
//! |---|---|
//! | off-peak | what the same billed time would have cost in the cheapest window of its own price |
//! | idle | what held and idle time cost, as the report `idle` says |
//! | checkpointing | work that was gone when it failed or was taken, at the price it had |
//!
//! The figures overlap: time that was idle by day is in two of them. They are not added up. Start at [`advice`]. Does not: say what can be moved to the night, or which model would do.

use crate::budgets::{Budget, Evidence, Period};
use crate::prices::PriceBook;
use crate::report::{Dimension, Fold, ReportKind, ReportQuery};
use crate::slots::Era;
use crate::table::{Column, Kind, Table, Value};
use cardhour_domain::{CardTime, Interval, Money, Month, Name};

/// What could be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdviceKind {
    /// Let work run in the cheapest window.
    OffPeak,
    /// Give back what is idle.
    Idle,
    /// Save work before it is lost.
    Checkpointing,
}

impl AdviceKind {
    /// What the table calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OffPeak => "off-peak",
            Self::Idle => "idle",
            Self::Checkpointing => "checkpointing",
        }
    }
}

/// One advice to whoever spends a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The budget's name.
    pub budget: Name,
    /// Its period.
    pub period: Period,
    /// What could be done.
    pub kind: AdviceKind,
    /// The card-time it is about: billed outside of the cheapest window, idle, lost.
    pub card_time: CardTime,
    /// What that time cost, or would have cost less.
    pub saving: Money,
}

/// Advice on what one budget paid for in its period so far; only where something could be saved.
///
/// `spent`: the books of `range`, which holds the period as far as it has come.
pub fn advice(budget: &Budget, period: Period, range: Interval, spent: Evidence<'_>, book: &PriceBook) -> Vec<Advice> {
    let by: Vec<Dimension> =
        budget.scope.dimensions().into_iter().chain([Dimension::Price, Dimension::Window, Dimension::Month]).collect();
    let selectors = by.len() - 3;
    let query = ReportQuery { report: ReportKind::Idle, by, range: Some(range), zone: None };
    let fold = Fold::of(spent.input, spent.slots, Some(book), &query);
    let mut found =
        [AdviceKind::OffPeak, AdviceKind::Idle, AdviceKind::Checkpointing].map(|kind| (kind, CardTime::ZERO, 0i128));
    for (key, sums) in fold.rows.iter().zip(&fold.sums).filter(|(key, _)| key.era == Era::Shown) {
        let values: Vec<Option<Name>> = key.values.iter().map(text).collect();
        let (owner, rest) = values.split_at(selectors);
        let [Some(price), window, Some(month)] = rest else { continue };
        let in_period = Month::parse(month).is_ok_and(|month| period.contains(month));
        let Some(money) = sums.money.filter(|_| in_period && budget.scope.admits_all(owner)) else { continue };
        let Some(price) = book.prices().iter().position(|known| known.price_line == *price) else { continue };
        let window = window.as_ref().and_then(|name| book.windows().iter().position(|known| known.name == *name));
        let charge = |window, time| book.rate(price, window).charge(time, book.currency()).micros();
        let windows = (0..book.windows().len()).map(Some).chain([None]);
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
        .map(|(kind, card_time, saving)| Advice {
            budget: budget.name.clone(),
            period,
            kind,
            card_time,
            saving: Money::from_micros(saving, book.currency()),
        })
        .collect()
}

fn add((_, time, saving): &mut (AdviceKind, CardTime, i128), more_time: CardTime, more: i128) {
    *time += more_time;
    *saving += more;
}

fn text(value: &Value) -> Option<Name> {
    match value {
        Value::Text(name) => Some(name.clone()),
        Value::Absent | Value::Count(_) | Value::Decimal(_) => None,
    }
}

/// Advice as a table: `budget period advice card_hours saving currency`.
pub fn table(all: &[Advice], title: String) -> Table {
    let columns = [
        ("budget", Kind::Text),
        ("period", Kind::Text),
        ("advice", Kind::Text),
        ("card_hours", Kind::Hours),
        ("saving", Kind::Money),
        ("currency", Kind::Text),
    ];
    let row = |advice: &Advice| {
        let digits = u32::from(advice.saving.currency().minor_digits());
        let saving = rust_decimal::Decimal::from_i128_with_scale(advice.saving.micros(), 6).round_dp(digits);
        vec![
            Value::Text(advice.budget.clone()),
            Value::Text(advice.period.to_string().into()),
            Value::Text(advice.kind.name().into()),
            Value::Decimal(advice.card_time.card_hours()),
            Value::Decimal(saving),
            Value::Text(advice.saving.currency().code().into()),
        ]
    };
    Table {
        title,
        columns: columns.into_iter().map(|(name, kind)| Column { name: name.to_owned(), kind }).collect(),
        rows: all.iter().map(row).collect(),
        total: None,
        notes: vec![
            "off-peak: what the same billed time would have cost less in the cheapest window of its price; idle: what held and idle time cost; checkpointing: what \
             lost work cost. The figures overlap and don't add up"
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budgets::Budgets;
    use crate::world::{World, check, range};

    /// By hand, 10 USD by day and 5 by night (22:00 to 06:00). Job 1: a card from noon to midnight, 10 h by day and 2 by night: 110 USD, of which the ten hours would have cost 50 less by
    /// night. A quarter of all its time was idle, a tenth lost: 3 h and 1.2 h; of 10 h by day 2.5 h idle (25.00) and 1 h lost (10.00), of 2 h by night 0.5 h (2.50) and 0.2 h (1.00).
    /// The job of another project is in none of it.
    #[test]
    fn what_could_be_saved_is_said_with_its_figures() {
        let book = crate::world::book(
            "[[window]]\nname = \"night\"\nfrom = \"22:00\"\nto = \"06:00\"\n\
             [[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"10\"\nnight = \"0.5\"\n",
        );
        let world = World::jobs(
            "1 lab vision ann q completed H200 n1 1 2026-03-10T12:00 2026-03-11T00:00
             2 lab speech bob q completed H200 n1 1 2026-03-10T12:00 2026-03-11T00:00",
        )
        .seen("1 - - gpm 10 25 65 0 -");
        let budgets =
            Budgets::parse("[[budget]]\nname = \"b\"\nproject = \"vision\"\ncard_hours = 9\nperiod = \"month\"\n", 1)
                .unwrap();
        let of = |from: &str, to: &str| {
            let range = range(from, to);
            let slots = Evidence::slots(range, Some(&book), world.zone).unwrap();
            let input = world.input(&slots);
            let month = world.zone.month(range.start()).unwrap();
            let period = budgets.period(&budgets.budgets[0], month).unwrap();
            let evidence = Evidence { input: &input, slots: &slots };
            table(&advice(&budgets.budgets[0], period, range, evidence, &book), String::new())
        };
        check(
            &of("2026-03-01", "2026-04-01"),
            "budget period advice card_hours saving currency",
            "b 2026-03 off-peak 10.000000 50.00 USD
             b 2026-03 idle 3.000000 27.50 USD
             b 2026-03 checkpointing 1.200000 11.00 USD",
        );
        check(&of("2026-04-01", "2026-05-01"), "budget", "");
    }
}
