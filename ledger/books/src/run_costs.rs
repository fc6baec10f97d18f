//! What runs of jobs would cost by a price book, whether they happened or were only played.
//!
//! Time is cut by the same slots, priced by the same book and rounded on the same leaves as the bill's (LED-6), of the time that is given alone. Start at [`run_costs`]. Does not: leave out
//! what isn't billed of held time, add refunds or idle charges.

use crate::prices::{PriceBook, Priced};
use crate::slots::Slots;
use cardhour_domain::{CardShare, CardTime, Interval, Month, Timestamp};
use std::collections::BTreeMap;

/// Cards that were held for some time.
#[derive(Clone, Copy, Debug)]
pub struct PricedRun<'a> {
    /// What they are and whose, as prices select.
    pub what: Priced<'a>,
    /// Whose they are.
    pub user: Option<&'a str>,
    /// To which sum their cost is added: the same for all of one owner.
    pub group: usize,
    /// How many.
    pub cards: CardShare,
    /// From when to when, inside of what the slots cover.
    pub during: Interval,
}

/// What runs cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCosts {
    /// By group; none of a group of which nothing has a price. Unit: millionths of the book's currency.
    pub micros: BTreeMap<usize, i128>,
    /// Card-time without a price.
    pub unpriced: CardTime,
}

/// Org, project, user, model, price, window and month, of a group.
type Leaf<'a> = (usize, [Option<&'a str>; 4], usize, Option<usize>, Month);

/// The cost of some runs. Shape: `slots` were made with `book`, and cover every run.
pub fn run_costs<'a>(runs: impl IntoIterator<Item = PricedRun<'a>>, slots: &Slots, book: &PriceBook) -> RunCosts {
    // Runs of one owner and kind are priced together, once a slot.
    let mut kinds: Vec<(PricedRun<'a>, Vec<CardTime>)> = Vec::new();
    let mut numbers: BTreeMap<(usize, [Option<&'a str>; 10]), usize> = BTreeMap::new();
    for run in runs {
        let Priced { model, mig_profile, share, pool, queue, class, org, project, cluster } = run.what;
        let key = [model, mig_profile, share, pool, queue, class, org, project, cluster, run.user];
        let number = *numbers.entry((run.group, key)).or_insert_with(|| {
            kinds.push((run, vec![CardTime::ZERO; slots.all().len()]));
            kinds.len() - 1
        });
        for (bucket, piece) in run.during.buckets() {
            let slot = slots.slot_of(bucket).expect("the slots cover the runs");
            kinds[number].1[slot as usize] += CardTime::of(run.cards, piece);
        }
    }
    let mut leaves: BTreeMap<Leaf<'a>, CardTime> = BTreeMap::new();
    let mut costs = RunCosts::default();
    for (run, times) in &kinds {
        let mut price_from: BTreeMap<Option<Timestamp>, Option<usize>> = BTreeMap::new();
        for (slot, time) in slots.all().iter().zip(times).filter(|(_, time)| !time.is_zero()) {
            let at = slot.effective_at;
            let price = *price_from.entry(at).or_insert_with(|| at.and_then(|at| book.find(&run.what, at)));
            match price {
                Some(price) => {
                    let owner = [run.what.org, run.what.project, run.user, run.what.model];
                    *leaves.entry((run.group, owner, price, slot.window, slot.month)).or_default() += *time;
                }
                None => costs.unpriced += *time,
            }
        }
    }
    for ((group, _, price, window, _), time) in leaves {
        let cost = book.rate(price, window).charge(time, book.currency());
        *costs.micros.entry(group).or_default() += cost.micros();
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_domain::Zone;

    const BOOK: &str = r#"
        currency = "USD"
        zone = "UTC"
        [[window]]
        name = "night"
        days = "mon-sun"
        from = "22:00"
        to = "06:00"
        [[price]]
        from = "2026-03-01"
        model = "H200"
        per_card_hour = "2.00"
        coefficient = "1"
        night = "0.5"
        [[price]]
        from = "2026-03-03"
        model = "H200"
        per_card_hour = "3.00"
        coefficient = "1"
    "#;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    /// By hand: four cards from 21:00 to 23:00 on the 1st are 4 h at 2.00 and 4 h at 1.00: 12.00. One card from 23:00 on the 2nd to 01:00: one hour at 1.00, and from midnight one at 3.00. Of a
    /// model without a price two hours. Twenty minutes of one card at 2.00 are 0.67, of two runs of ten the same: they are one leaf.
    #[test]
    fn runs_cost_what_a_bill_of_them_would_say() {
        let book = PriceBook::parse(BOOK).unwrap().unwrap();
        let range = Interval::new(at("2026-03-01T00:00:00Z"), at("2026-03-04T00:00:00Z")).unwrap();
        let slots = Slots::new(range, Some(&book), Zone::UTC, None).unwrap();
        let run = |group, model, user, cards, from: &str, to: &str| PricedRun {
            what: Priced { model: Some(model), share: Some("1"), cluster: Some("lab"), ..Priced::default() },
            user: Some(user),
            group,
            cards: CardShare::from_cards(cards).unwrap(),
            during: Interval::new(at(from), at(to)).unwrap(),
        };
        let costs = run_costs(
            [
                run(0, "H200", "ann", 4, "2026-03-01T21:00:00Z", "2026-03-01T23:00:00Z"),
                run(0, "H200", "bob", 1, "2026-03-02T23:00:00Z", "2026-03-03T01:00:00Z"),
                run(1, "T4", "eve", 1, "2026-03-01T10:00:00Z", "2026-03-01T12:00:00Z"),
                run(2, "H200", "joe", 1, "2026-03-01T10:00:00Z", "2026-03-01T10:10:00Z"),
                run(2, "H200", "joe", 1, "2026-03-01T11:00:00Z", "2026-03-01T11:10:00Z"),
            ],
            &slots,
            &book,
        );
        assert_eq!(costs.micros, BTreeMap::from([(0, 16_000_000), (2, 670_000)]));
        assert_eq!(costs.unpriced.card_hours().to_string(), "2.000000");
    }
}
