//! A bill beside one price an hour by hand: hours × rate, as a spreadsheet has it.
//!
//! Both take the same billed card-hours, so that what differs is the price: the price book has one by model, queue or window, and rounds each of its
//! charges, while the sheet has one for all and rounds once a row.

use crate::bill::Charge;
use crate::prices::PriceBook;
use crate::report::{Dimension, UNOWNED};
use crate::table::{Column, Kind, Table, Value};
use cardhour_domain::{CardTime, Money, Name, Rate};
use num_bigint::BigInt;
use num_integer::Integer;
use rust_decimal::Decimal;
use std::collections::BTreeMap;

/// What can be grouped by; the first name that can't.
pub fn refused(by: &[Dimension]) -> Option<&Dimension> {
    use Dimension::{Model, Month, Org, Price, Project, User, Window};
    by.iter().find(|by| !matches!(by, Org | Project | User | Model | Price | Window | Month))
}

/// The sums of one row. Unit of the money: millionths.
#[derive(Clone, Copy, Default)]
struct Sum {
    time: CardTime,
    charges: i128,
    ours: i128,
    price: i128,
    no_price: i128,
}

/// The table, and whether something in it is left unexplained. `charges`: those of whole months.
///
/// Shape: a row a group; for each, price + no price + rounding + unexplained is our amount less the one by hand.
pub fn table(charges: &[Charge], book: &PriceBook, rate: Decimal, by: &[Dimension], title: String) -> (Table, bool) {
    let by_hand = Rate { per_card_hour: rate, factor: Decimal::ONE };
    let mut rows: BTreeMap<Vec<Value>, Sum> = BTreeMap::new();
    let mut total = Sum::default();
    for charge in charges {
        let group: Vec<Value> = by.iter().map(|by| value(by, charge)).collect();
        let row = rows.entry(group).or_default();
        for sum in [row, &mut total] {
            sum.time += charge.billed_time;
            sum.charges += 1;
            let there = micros(by_hand, charge.billed_time);
            match (charge.cost, rate_of(charge, book)) {
                (Some(cost), Some(ours)) => {
                    sum.ours += cost.micros();
                    sum.price += micros(ours, charge.billed_time) - there;
                }
                _ => sum.no_price -= there,
            }
        }
    }
    let mut columns: Vec<Column> = by.iter().map(|by| Column { name: by.to_string(), kind: Kind::Text }).collect();
    let groups = columns.len();
    columns.push(Column { name: "billed_card_hours".to_owned(), kind: Kind::Hours });
    let money = ["our_cost", "by_hand_cost", "difference", "price", "no_price", "rounding", "unexplained"];
    columns.extend(money.map(|name| Column { name: name.to_owned(), kind: Kind::Money }));
    let mut is_unexplained = false;
    let mut figures = |sum: &Sum| {
        let hand = by_hand.charge(sum.time, book.currency()).micros();
        let rest = sum.ours - hand - sum.price - sum.no_price;
        // Half a minor unit for each of our charges and for the row by hand, and a millionth for each amount that is shown.
        let minor = 10i128.pow(6 - u32::from(book.currency().minor_digits()).min(6));
        let is_rounding = rest.abs() * 2 <= (sum.charges + 1) * minor + 4 * sum.charges;
        is_unexplained |= !is_rounding;
        let (rounding, unexplained) = if is_rounding { (rest, 0) } else { (0, rest) };
        let amount = |micros: i128| Value::Decimal(Decimal::from_i128_with_scale(micros, 6));
        let whole = |micros: i128| Value::Decimal(exactly(Money::from_micros(micros, book.currency())));
        let mut row = vec![Value::Decimal(sum.time.card_hours()), whole(sum.ours), whole(hand), whole(sum.ours - hand)];
        row.extend([sum.price, sum.no_price, rounding, unexplained].map(amount));
        row
    };
    let shown: Vec<Vec<Value>> =
        rows.into_iter().map(|(group, sum)| group.into_iter().chain(figures(&sum)).collect()).collect();
    let total =
        (!shown.is_empty()).then(|| std::iter::repeat_n(Value::Absent, groups).chain(figures(&total)).collect());
    let currency = book.currency();
    let notes = vec![
        format!("by hand: billed card-hours × {rate} {currency}, rounded once a row"),
        "price: what the price book has above or below that rate, by its models, queues, pools and windows".to_owned(),
        "no_price: hours that no price of the book is for; by hand they cost the rate".to_owned(),
        "rounding: the bill rounds each of its charges and adds them up, the sheet rounds its row".to_owned(),
    ];
    (Table { title, columns, rows: shown, total, notes }, is_unexplained)
}

/// As many decimals as the currency has.
fn exactly(money: Money) -> Decimal {
    let mut amount = Decimal::from_i128_with_scale(money.micros(), 6);
    amount.rescale(u32::from(money.currency().minor_digits()));
    amount
}

/// The price that a charge was made with.
fn rate_of(charge: &Charge, book: &PriceBook) -> Option<Rate> {
    let line = charge.price_line.as_ref()?;
    let price = book.prices().iter().position(|price| price.price_line == *line)?;
    let window = match &charge.window {
        Some(name) => Some(book.windows().iter().position(|window| window.name == *name)?),
        None => None,
    };
    Some(book.rate(price, window))
}

/// What `time` costs, to the nearest millionth.
fn micros(rate: Rate, time: CardTime) -> i128 {
    let numerator = BigInt::from(rate.per_card_hour.mantissa())
        * BigInt::from(rate.factor.mantissa())
        * BigInt::from(time.part_ms())
        * 1_000_000;
    let scale = rate.per_card_hour.scale() + rate.factor.scale();
    let denominator = BigInt::from(10).pow(scale) * CardTime::PART_MS_PER_CARD_HOUR;
    let nearest = Integer::div_floor(&(numerator * 2 + &denominator), &(denominator * 2));
    i128::try_from(nearest).expect("LED-10: money fits 128 bits")
}

fn value(by: &Dimension, charge: &Charge) -> Value {
    let named = |name: &Option<Name>| name.clone().map_or(Value::Absent, Value::Text);
    let unowned = charge.org.is_none() && charge.project.is_none() && charge.user.is_none();
    match by {
        Dimension::Org | Dimension::Project | Dimension::User if unowned => Value::Text(UNOWNED.into()),
        Dimension::Org => named(&charge.org),
        Dimension::Project => named(&charge.project),
        Dimension::User => named(&charge.user),
        Dimension::Model => named(&charge.model),
        Dimension::Price => named(&charge.price_line),
        Dimension::Window => named(&charge.window),
        Dimension::Month => Value::Text(charge.month.to_string().into()),
        // Refused before.
        _ => Value::Absent,
    }
}
