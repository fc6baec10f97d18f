//! What leaves and rows of a bill cost, from holdings cut at the edges of months, prices and windows (LED-6, LED-7).
//!
//! No usage is read here: a holding's time is its parts times what of it lies in each run of the calendar. Amounts are fractions of large
//! integers until the leaf, where they are rounded once.

use super::calendar::Run;
use super::load::{Held, Id, Job, Stored};
use super::place::Atlas;
use super::span::{CARD_PARTS, Span};
use cardhour_books::prices::{PriceBook, Priced};
use cardhour_books::report::{Dimension, UNOWNED};
use cardhour_domain::{CardShare, Month, Name, Timestamp};
use num_bigint::BigInt;
use rust_decimal::Decimal;
use std::collections::{BTreeMap, HashMap};

/// Parts × milliseconds of a card-hour.
const CARD_HOUR: i128 = CARD_PARTS as i128 * 3_600_000;

/// A leaf of the bill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LeafKey {
    pub month: Month,
    pub owner: [Option<Id>; 3],
    pub model: Option<Id>,
    pub price: Option<usize>,
    pub window: Option<usize>,
}

/// Its time and what it costs. Unit: parts × milliseconds, millionths of the currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub time: i128,
    pub billed: i128,
    pub list_cost: Option<i128>,
    pub cost: Option<i128>,
    /// Billed time × coefficient. Unit: millionths of parts × milliseconds.
    pub standard: i128,
}

/// A row of a bill by some dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub values: Vec<Option<Name>>,
    /// As in [`super::calendar::What::era`].
    pub era: u8,
    pub sums: Sums,
}

/// A bill, worked out from holdings.
#[derive(Debug, Default)]
pub(super) struct Bill {
    pub leaves: BTreeMap<LeafKey, Sums>,
    /// In the order of their values.
    pub rows: Vec<Row>,
}

/// Works out a bill grouped `by`.
pub(super) fn bill(
    stored: &Stored,
    atlases: &BTreeMap<Id, Atlas>,
    runs: &[Run],
    book: Option<&PriceBook>,
    by: &[Dimension],
) -> Bill {
    let mut fold = Fold { stored, atlases, book, prices: HashMap::new(), leaves: Vec::new(), leaf_of: HashMap::new() };
    let mut rows: Vec<(Vec<Option<Name>>, u8)> = Vec::new();
    let mut row_of: HashMap<(Vec<Option<Name>>, u8), usize> = HashMap::new();
    let mut pieces: HashMap<(usize, usize), (i128, i128)> = HashMap::new();
    for held in &stored.holdings {
        let Some(job) = held.job.map(|job| &stored.jobs[job as usize]) else { continue };
        let unbilled = if held.is_releasing { vec![held.span] } else { stored.unbilled(held.cluster, held.node) };
        let first = runs.partition_point(|run| run.span.to <= held.span.from);
        for run in runs[first..].iter().take_while(|run| run.span.from < held.span.to) {
            let Some(inside) = held.span.cut(run.span) else { continue };
            let leaf = fold.leaf(held, job, run);
            let values = by.iter().map(|dimension| fold.value(dimension, held, job, run, leaf)).collect();
            let key = (values, run.what.era);
            let row = match row_of.get(&key) {
                Some(row) => *row,
                None => {
                    rows.push(key.clone());
                    row_of.insert(key, rows.len() - 1);
                    rows.len() - 1
                }
            };
            let out_ms: i64 = unbilled.iter().map(|outage: &Span| outage.shared_ms(inside)).sum();
            let (time, billed) = pieces.entry((leaf, row)).or_default();
            *time += i128::from(held.parts) * i128::from(inside.ms());
            *billed += i128::from(held.parts) * i128::from(inside.ms() - out_ms);
        }
    }
    fold.finish(rows, pieces)
}

struct Fold<'a> {
    stored: &'a Stored,
    atlases: &'a BTreeMap<Id, Atlas>,
    book: Option<&'a PriceBook>,
    /// What the book says of the same time and owner and place once it was asked.
    prices: HashMap<PriceKey, Option<usize>>,
    leaves: Vec<LeafKey>,
    leaf_of: HashMap<LeafKey, usize>,
}

/// All that a price may look at: when, where, whose, which share.
type PriceKey = (Option<i64>, [Option<Id>; 7], Id, i64);

impl Fold<'_> {
    fn leaf(&mut self, held: &Held, job: &Job, run: &Run) -> usize {
        let price = self.price(held, job, run.what.edge);
        let key =
            LeafKey { month: run.what.month, owner: job.owner, model: held.model, price, window: run.what.window };
        *self.leaf_of.entry(key).or_insert_with(|| {
            self.leaves.push(key);
            self.leaves.len() - 1
        })
    }

    fn price(&mut self, held: &Held, job: &Job, edge: Option<i64>) -> Option<usize> {
        let book = self.book?;
        let [org, project, _] = job.owner;
        let pool = self.atlases.get(&held.cluster).and_then(|atlas| atlas.pool(self.stored.seat(held, job)));
        let texts = [held.model, held.profile, pool, job.queue, job.class, org, project];
        let key = (edge, texts, held.cluster, held.parts);
        if let Some(price) = self.prices.get(&key) {
            return *price;
        }
        let text = |id: Option<Id>| id.map(|id| &**self.stored.names.get(id));
        let is_part = 0 < held.parts && held.parts < CARD_PARTS;
        let share = is_part.then(|| CardShare::from_parts(held.parts).cards().normalize().to_string());
        let what = Priced {
            model: text(held.model),
            mig_profile: text(held.profile),
            share: Some(share.as_deref().unwrap_or("1")),
            pool: text(pool),
            queue: text(job.queue),
            class: text(job.class),
            org: text(org),
            project: text(project),
            cluster: Some(self.stored.names.get(held.cluster)),
        };
        let price = edge.and_then(|edge| book.find(&what, Timestamp::from_unix_ms(edge)));
        self.prices.insert(key, price);
        price
    }

    fn value(&self, dimension: &Dimension, held: &Held, job: &Job, run: &Run, leaf: usize) -> Option<Name> {
        let name = |id: Option<Id>| id.map(|id| self.stored.names.get(id).clone());
        let unowned = job.owner == [None; 3];
        let owner = |i: usize| if unowned { Some(UNOWNED.into()) } else { name(job.owner[i]) };
        match dimension {
            Dimension::Org => owner(0),
            Dimension::Project => owner(1),
            Dimension::User => owner(2),
            Dimension::Queue => name(job.queue),
            Dimension::Class => name(job.class),
            Dimension::Model => name(held.model),
            Dimension::Node => name(held.node),
            Dimension::Cluster => name(Some(held.cluster)),
            Dimension::Pool => {
                name(self.atlases.get(&held.cluster).and_then(|atlas| atlas.pool(self.stored.seat(held, job))))
            }
            Dimension::State => Some(job.state.name().into()),
            Dimension::Day => run.what.view_day.map(|day| day.to_string().into()),
            Dimension::Month => Some(run.what.view_month.unwrap_or(run.what.month).to_string().into()),
            Dimension::Price => {
                let price = self.leaves[leaf].price?;
                self.book.map(|book| book.prices()[price].price_line.clone())
            }
            Dimension::Window => {
                let window = run.what.window?;
                self.book.map(|book| book.windows()[window].name.clone())
            }
            Dimension::Label(label) => job.labels.get(label).cloned(),
        }
    }

    fn finish(self, rows: Vec<(Vec<Option<Name>>, u8)>, pieces: HashMap<(usize, usize), (i128, i128)>) -> Bill {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|a, b| rows[*a].cmp(&rows[*b]));
        let mut rank = vec![0; rows.len()];
        order.iter().enumerate().for_each(|(place, row)| rank[*row] = place);
        let mut out = Bill {
            leaves: BTreeMap::new(),
            rows: order
                .iter()
                .map(|row| Row { values: rows[*row].0.clone(), era: rows[*row].1, sums: Sums::default() })
                .collect(),
        };
        let mut by_leaf: Vec<Vec<(usize, i128, i128)>> = vec![Vec::new(); self.leaves.len()];
        for ((leaf, row), (time, billed)) in pieces {
            by_leaf[leaf].push((rank[row], time, billed));
        }
        for (key, mut pieces) in self.leaves.into_iter().zip(by_leaf) {
            pieces.sort_unstable();
            let mut leaf = Sums {
                time: pieces.iter().map(|piece| piece.1).sum(),
                billed: pieces.iter().map(|piece| piece.2).sum(),
                ..Sums::default()
            };
            let weights: Vec<(u8, i128)> = pieces.iter().map(|piece| (out.rows[piece.0].era, piece.2)).collect();
            let mut standard = 0;
            let mut spread = [vec![None; pieces.len()], vec![None; pieces.len()]];
            if let (Some(book), Some(price)) = (self.book, key.price) {
                let line = &book.prices()[price];
                let factor = key.window.and_then(|window| line.factors[window]).unwrap_or(Decimal::ONE);
                let digits = u32::from(book.currency().minor_digits());
                let list = amount_micros(line.per_card_hour, Decimal::ONE, leaf.billed, digits);
                let cost = amount_micros(line.per_card_hour, factor, leaf.billed, digits);
                (leaf.list_cost, leaf.cost) = (Some(list), Some(cost));
                spread = [shares_by_era(list, &weights), shares_by_era(cost, &weights)];
                standard = millionths(line.coefficient);
                leaf.standard = leaf.billed.saturating_mul(standard);
            }
            for (i, (row, time, billed)) in pieces.into_iter().enumerate() {
                let sums = &mut out.rows[row].sums;
                sums.time += time;
                sums.billed += billed;
                sums.standard = sums.standard.saturating_add(billed.saturating_mul(standard));
                for (sum, part) in [(&mut sums.list_cost, spread[0][i]), (&mut sums.cost, spread[1][i])] {
                    if let Some(part) = part {
                        *sum = Some(sum.unwrap_or(0) + part);
                    }
                }
            }
            out.leaves.insert(key, leaf);
        }
        out
    }
}

/// A coefficient of at most six decimals, in millionths.
fn millionths(coefficient: Decimal) -> i128 {
    let exact = coefficient * Decimal::from(1_000_000);
    exact.trunc().mantissa() / 10i128.pow(exact.trunc().scale())
}

/// What `billed` costs, rounded half to even to the minor unit, in millionths.
fn amount_micros(price: Decimal, factor: Decimal, billed: i128, minor_digits: u32) -> i128 {
    let numerator = BigInt::from(price.mantissa()) * factor.mantissa() * billed * 10i128.pow(minor_digits);
    let denominator = BigInt::from(10).pow(price.scale() + factor.scale()) * CARD_HOUR;
    round_half_even(&numerator, &denominator) * 10i128.pow(6 - minor_digits)
}

/// `numerator` ÷ `denominator` (above zero) to the nearest whole number, halves to the even one.
///
/// By doubling: the nearest is the floor of (2n + d) ÷ 2d, one less where that is exact and odd.
pub(super) fn round_half_even(numerator: &BigInt, denominator: &BigInt) -> i128 {
    let is_negative = *numerator < BigInt::ZERO;
    let size = if is_negative { -numerator } else { numerator.clone() };
    let (top, bottom): (BigInt, BigInt) = (size * 2 + denominator, denominator * 2);
    let mut nearest = &top / &bottom;
    if &nearest * &bottom == top && &nearest % 2 == BigInt::from(1) {
        nearest -= 1;
    }
    let nearest = i128::try_from(nearest).unwrap_or(i128::MAX);
    if is_negative { -nearest } else { nearest }
}

/// Card-hours in millionths, as reports show them.
pub(super) fn card_hour_micros(part_ms: i128) -> i128 {
    round_half_even(&(BigInt::from(part_ms) * 1_000_000), &BigInt::from(CARD_HOUR))
}

/// Standard card-hours in millionths, of millionths of parts × milliseconds.
pub(super) fn standard_micros(standard: i128) -> i128 {
    round_half_even(&BigInt::from(standard), &BigInt::from(CARD_HOUR))
}

/// Spreads an amount by weights: what each would have exactly, cut to a millionth, and the rest by largest remainder, the earlier first.
fn shares_of(amount: i128, weights: &[i128]) -> Vec<Option<i128>> {
    let sum: BigInt = weights.iter().copied().map(BigInt::from).sum();
    if weights.len() == 1 || sum <= BigInt::ZERO {
        let whole = |i: usize| Some(if i == 0 { amount } else { 0 });
        return (0..weights.len()).map(whole).collect();
    }
    let exact: Vec<(i128, BigInt)> = weights
        .iter()
        .map(|weight| {
            let product = BigInt::from(*weight) * amount;
            let whole = &product / &sum;
            let rest = product - &whole * &sum;
            (i128::try_from(whole).unwrap_or(i128::MAX), rest)
        })
        .collect();
    let given: i128 = exact.iter().map(|(whole, _)| whole).sum();
    let mut by_rest: Vec<usize> = (0..exact.len()).collect();
    // A stable sort: of equal rests the earlier stays before.
    by_rest.sort_by(|a, b| exact[*b].1.cmp(&exact[*a].1));
    let mut out: Vec<Option<i128>> = exact.iter().map(|(whole, _)| Some(*whole)).collect();
    for i in by_rest.into_iter().take(usize::try_from(amount - given).unwrap_or(0)) {
        out[i] = out[i].map(|whole| whole + 1);
    }
    out
}

/// As [`shares_of`], but first between what lies before a range, in it and after it (the first of each pair), then inside of each.
fn shares_by_era(amount: i128, weights: &[(u8, i128)]) -> Vec<Option<i128>> {
    let mut sums: BTreeMap<u8, i128> = BTreeMap::new();
    for (era, weight) in weights {
        *sums.entry(*era).or_default() += weight;
    }
    let parts = shares_of(amount, &sums.values().copied().collect::<Vec<_>>());
    let mut out = vec![None; weights.len()];
    for (era, part) in sums.keys().zip(parts) {
        let inside: Vec<usize> = (0..weights.len()).filter(|i| weights[*i].0 == *era).collect();
        let of_era: Vec<i128> = inside.iter().map(|i| weights[*i].1).collect();
        for (i, share) in inside.into_iter().zip(shares_of(part.unwrap_or(0), &of_era)) {
            out[i] = share;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 2.5 and 3.5 are halves, to the even 2 and 4; 7 ÷ 3 is 2.33…; −2.5 is −2.
    #[test]
    fn halves_go_to_the_even_number() {
        let round = |n: i64, d: i64| round_half_even(&n.into(), &d.into());
        assert_eq!(
            [round(5, 2), round(7, 2), round(7, 3), round(8, 3), round(-5, 2), round(0, 7)],
            [2, 4, 2, 3, -2, 0]
        );
    }

    /// By hand: 100 over 1:1:1 is 33⅓ each, one is left and goes to the first; 10 over 1:2 is 3⅓ and 6⅔, the left one to the second.
    #[test]
    fn what_is_left_goes_to_the_largest_remainder() {
        let whole = |parts: Vec<Option<i128>>| parts.into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(whole(shares_of(100, &[1, 1, 1])), [34, 33, 33]);
        assert_eq!(whole(shares_of(10, &[1, 2])), [3, 7]);
        assert_eq!(whole(shares_of(5, &[0, 0])), [5, 0]);
    }

    /// By hand: 100 over 3 before and 7 shown is 30 and 70, and 70 over 3:3:1 is 30, 30 and 10. 10 over 1 before and 2 shown is 3⅓ and 6⅔: 3
    /// and 7; and 7 over 1:1 is 4 and 3. In one step 10 over 1:1:1 would be 4, 3 and 3, which shows 6.
    #[test]
    fn a_range_cuts_an_amount_before_its_rows_do() {
        let whole = |parts: Vec<Option<i128>>| parts.into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(whole(shares_by_era(100, &[(0, 3), (1, 3), (1, 3), (1, 1)])), [30, 30, 30, 10]);
        assert_eq!(whole(shares_by_era(10, &[(0, 1), (1, 1), (1, 1)])), [3, 4, 3]);
        assert_eq!(whole(shares_by_era(10, &[(1, 1), (1, 1), (2, 1)])), [4, 3, 3]);
    }

    /// By hand: 0.01 × ½ h is half a cent, to the even 0.00; 18.50 × 1.5 h × 0.6 = 16.65.
    #[test]
    fn a_leaf_is_rounded_once_to_the_cent() {
        let price = |text: &str| text.parse::<Decimal>().unwrap();
        assert_eq!(amount_micros(price("0.01"), Decimal::ONE, CARD_HOUR / 2, 2), 0);
        assert_eq!(amount_micros(price("18.50"), price("0.6"), CARD_HOUR * 3 / 2, 2), 16_650_000);
    }
}
