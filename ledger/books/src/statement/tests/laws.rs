//! LED-4, LED-6 and LED-7 of a month's entries, on months drawn at random.

use super::*;
use crate::world::Stretch;
use cardhour_domain::{CardShare, Interval, JobState, Timestamp};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Odd prices and coefficients, a window, a change in mid-month.
const ODD: &str = r#"
[[window]]
name = "night"
from = "22:00"
to = "08:00"
[[price]]
from = "2016-01-01"
per_card_hour = "0.0137"
coefficient = "2.4"
night = "0.61"
[[price]]
from = "2026-03-15T08:15"
per_card_hour = "0.0211"
night = "0.61"
[[price]]
from = "2016-01-01"
model = "b"
per_card_hour = "1.999"
coefficient = "0.333333"
"#;

const POLICIES: [&str; 7] = [
    "",
    "[capacity]\nfree = \"line\"\nreserved = \"owner\"\n[refunds]\nnode_fail = \"1\"\npreempted = \"0.333\"\n",
    "[capacity]\nfree = \"shared\"\nreserved = \"line\"\n[refunds]\nnode_fail = \"0.7\"\nfatal_xid = \"1\"\npreempted = \"0.7\"\n",
    "[capacity]\nfree = \"shared\"\nshare_by = \"card_hours\"\n[refunds]\nnode_fail = \"1\"\nfatal_xid = \"1\"\nof = \"lost\"\n",
    "[capacity]\nfree = \"shared\"\nshare_by = \"even\"\n[[used_basis]]\nqueue = \"q1\"\n[refunds]\nnode_fail = \"1\"\n",
    "[efficiency]\npolicy = \"surcharge\"\n[[efficiency.tier]]\nbelow = \"0.42\"\npart = \"0.0613\"\n[refunds]\nnode_fail = \"0.5\"\n",
    "[efficiency]\npolicy = \"discount\"\n[[efficiency.tier]]\nat_least = \"0\"\npart = \"0.037\"\n[refunds]\npreempted = \"1\"\n",
];

/// What a cost is drawn as.
#[derive(Clone, Copy, Debug)]
enum Cost {
    /// Minor units.
    Minor(i64),
    /// The energy of its cards, at a tariff.
    PerKwh(Decimal),
}

/// A month with its mode and zone.
pub(super) fn any_month() -> impl Strategy<Value = (March, Zone)> {
    let name = |names: &'static [&'static str]| prop::sample::select(names.to_vec());
    let stretch = (0i64..40 * 86_400_000, 1i64..20 * 86_400_000, 1i64..5_000, name(&["a", "b"]));
    let job = (
        (name(&["-", "acme", "globex"]), name(&["-", "p1", "p2"]), name(&["-", "ann", "bob"]), name(&["q1", "q2"])),
        (0usize..4, any::<bool>(), prop::option::of(prop::sample::select(vec![[0, 100, 0, 0], [30, 21, 41, 8]]))),
        stretch.clone(),
    );
    let nobodys = (prop::sample::select(vec![CardState::Free, CardState::Reserved, CardState::Down]), stretch);
    let power = prop_oneof![
        3 => (-500i64..5_000).prop_map(Cost::Minor),
        1 => (1i64..999).prop_map(|milli| Cost::PerKwh(Decimal::new(milli, 3))),
    ];
    let cost = (power, name(&["rent", "staff"]), name(&["-", "a", "b*"]), name(&["-", "acme"]));
    (
        prop::collection::vec(job, 0..7),
        prop::collection::vec(nobodys, 0..4),
        prop::collection::vec(cost, 0..4),
        (0..POLICIES.len(), any::<bool>()),
        // March has 743 hours in New York and Berlin; Lord Howe puts its clock back by half an hour in April.
        name(&["UTC", "Asia/Shanghai", "Asia/Kathmandu", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe"]),
        name(&["USD", "JPY", "KWD"]),
    )
        .prop_map(|(jobs, nobodys, costs, (policy, absorbs), zone, currency)| {
            let mode = if absorbs { "mode = \"absorb\"\n" } else { "" };
            let mut march = march("", "1", &format!("{mode}{}", POLICIES[policy]));
            march.book =
                PriceBook::parse(&format!("currency = \"{currency}\"\nzone = \"{zone}\"\n{ODD}")).unwrap().unwrap();
            let some = |name: &str| (name != "-").then(|| Name::from(name));
            let mut add = |attempt, state, (start, length, milli, model): (i64, i64, i64, &str), is_billed, told| {
                // From the last of February on, so that some is cut by the month's edges in every zone.
                let start = Timestamp::from_unix_ms(1_772_300_000_000 + start);
                let during = Interval::new(start, start.checked_add_ms(length).unwrap()).unwrap();
                let told = Option::<[i64; 4]>::into_iter(told).map(|percent| crate::world::Told {
                    during,
                    basis: Some(crate::cell::SeenBy::Both),
                    percent,
                    watts: Some(300),
                });
                march.world.stretches.push(Stretch {
                    attempt,
                    state,
                    cluster: "c".into(),
                    node: None,
                    model: Some(model.into()),
                    share: CardShare::from_decimal(Decimal::new(milli, 3)).unwrap(),
                    during,
                    is_billed,
                    told: told.collect(),
                });
            };
            let states = [JobState::Completed, JobState::NodeFail, JobState::Preempted, JobState::Failed];
            let mut attempts = Vec::new();
            for (((org, project, user, queue), (state, is_billed, told), stretch), number) in jobs.into_iter().zip(0..)
            {
                let share = CardShare::CARD;
                attempts.push(crate::report::ReportAttempt {
                    key: AttemptKey::new("c", &number.to_string(), "0"),
                    cluster: "c".into(),
                    org: some(org),
                    project: some(project),
                    user: some(user),
                    queue: some(queue),
                    class: None,
                    labels: BTreeMap::new(),
                    state: states[state],
                    cards_requested: None,
                    cards: share,
                    submitted_at: None,
                    held: None,
                });
                add(Some(number), CardState::Held, stretch, is_billed, told);
            }
            for (state, stretch) in nobodys {
                add(None, state, stretch, false, None);
            }
            march.sick = attempts.iter().step_by(3).map(|attempt| attempt.key.clone()).collect();
            march.world.attempts = attempts;
            let mut items: BTreeMap<_, CostItem> = BTreeMap::new();
            let currency = march.book.currency();
            for (cost, name, model, owner) in costs {
                let amount = match cost {
                    Cost::Minor(minor) => {
                        let micros = i128::from(minor) * currency.micros_per_minor();
                        CostAmount::Fixed(Money::from_micros(micros, currency))
                    }
                    Cost::PerKwh(tariff) => CostAmount::PerKwh { tariff, currency },
                };
                let item = CostItem { model: some(model), ..item(name, amount, some(owner).as_deref()) };
                items.insert((name, model, owner), item);
            }
            march.costs = items.into_values().collect();
            march.reservations.push(Reservation {
                cluster: "c".into(),
                name: "week".into(),
                during: range("2026-03-11", "2026-03-12"),
                nodes: Vec::new(),
                cards: None,
                model: None,
                org: Some("globex".into()),
                project: None,
                user: None,
            });
            (march, Zone::parse(zone).unwrap())
        })
}

pub(super) fn worked_out(march: &March, zone: Zone, rates: Option<&AbsorbedRates>, shuffle: bool) -> Draft {
    worked_out_of(month(), march, zone, rates, shuffle)
}

/// Another month of the same facts.
fn worked_out_of(month: Month, march: &March, zone: Zone, rates: Option<&AbsorbedRates>, shuffle: bool) -> Draft {
    let slots = Slots::new(month.interval(zone), Some(&march.book), zone, None).unwrap();
    let world = World { reservations: march.reservations.clone(), ..march.world.clone() };
    let mut input = world.input(&slots);
    if shuffle {
        input.cells.reverse();
    }
    let costs: Vec<CostItem> = march.costs.iter().map(|item| CostItem { month, ..item.clone() }).collect();
    draft(&MonthOfBooks {
        month,
        input: &input,
        slots: &slots,
        book: &march.book,
        policy: &march.policy,
        costs: &costs,
        sick: &march.sick,
        wrongful: &march.wrongful,
        rates,
    })
}

fn of_kind(draft: &Draft, kind: EntryKind) -> impl Iterator<Item = &Entry> {
    draft.entries.iter().filter(move |entry| entry.kind() == kind)
}

/// What the platform put in, worked out for each item by itself: of energy watts × milliseconds of its cards in whole parts; none where nothing was measured.
fn put_in(march: &March, zone: Zone) -> Vec<Option<i128>> {
    let slots = Slots::new(month().interval(zone), Some(&march.book), zone, None).unwrap();
    let cells = march.world.input(&slots).cells;
    let of_item = |item: &CostItem| {
        let tariff = match item.amount {
            CostAmount::Fixed(amount) => return Some(amount.micros()),
            CostAmount::PerKwh { tariff, .. } => tariff,
        };
        let prefix = item.model.as_deref().map_or("", |model| model.trim_end_matches('*'));
        let is_of = |cell: &&crate::cell::Cell| cell.model.as_deref().is_some_and(|model| model.starts_with(prefix));
        let energies = cells.iter().filter(is_of).filter_map(|cell| cell.used.as_ref()?.energy_mj);
        let energy_mj: i128 = energies.reduce(|sum, energy| sum + energy)?;
        let per_minor = march.book.currency().micros_per_minor();
        // A thousandth of a currency a kilowatt-hour is 1,000 millionths for 3,600,000,000 mJ.
        let (above, below) = (tariff.mantissa() * 1_000 * energy_mj, 3_600_000_000 * per_minor);
        assert_eq!(tariff.scale(), 3);
        let (minor, rest) = (above / below, above % below);
        let up = rest * 2 > below || (rest * 2 == below && minor % 2 == 1);
        Some((minor + i128::from(up)) * per_minor)
    };
    march.costs.iter().filter(|item| item.is_platforms()).map(of_item).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// LED-4 and LED-7: the order of cells is no matter; no line is there twice; every amount is whole cents.
    #[test]
    fn a_month_is_the_same_in_any_order_and_each_line_once((march, zone) in any_month()) {
        let draft = worked_out(&march, zone, None, false);
        prop_assert_eq!(&worked_out(&march, zone, None, true), &draft);
        let keys: BTreeSet<&EntryKey> = draft.entries.iter().map(|entry| &entry.key).collect();
        prop_assert_eq!(keys.len(), draft.entries.len());
        prop_assert!(draft.entries.iter().all(|entry| entry.amount.is_minor()));
        prop_assert!(draft.entries.iter().all(|entry| entry.list_amount.is_none_or(Money::is_minor)));
        prop_assert!(draft.holes.is_empty());
        // Of energy that nobody measured, and of no other cost, there is no amount.
        let is_unmeasured = |why: &String| why.ends_with("is of energy, and none was measured");
        prop_assert!(draft.unbooked.iter().all(is_unmeasured));
        let unmeasured = put_in(&march, zone).iter().filter(|amount| amount.is_none()).count();
        let per_kwh = |item: &&CostItem| matches!(item.amount, CostAmount::PerKwh { .. });
        let owners = march.costs.iter().filter(per_kwh).filter(|item| !item.is_platforms()).count();
        prop_assert!((unmeasured..=unmeasured + owners).contains(&draft.unbooked.len()));
        prop_assert!(draft.seen.iter().all(|part| part.seen >= CardTime::ZERO && part.seen < part.all));
    }

    /// Two months of the same facts: each entry is of its own, and together they charge what the bill of both has, also where clocks are put forward.
    #[test]
    fn two_months_charge_what_the_bill_of_both_comes_to((march, zone) in any_month()) {
        prop_assume!(march.policy.mode == BillingMode::Rate && march.policy.used_basis.is_empty());
        let months = [month(), month().next()];
        let all = Interval::new(months[0].interval(zone).start(), months[1].interval(zone).end()).unwrap();
        let slots = Slots::new(all, Some(&march.book), zone, None).unwrap();
        let bill = crate::bill::charges(&march.world.input(&slots), &slots, Some(&march.book));
        let mut charged = (0, CardTime::ZERO);
        for month in months {
            let draft = worked_out_of(month, &march, zone, None, false);
            prop_assert!(draft.entries.iter().all(|entry| entry.key.original_period == month && entry.period == month));
            for entry in of_kind(&draft, EntryKind::Charge) {
                charged.0 += entry.amount.micros();
                charged.1 += entry.card_time;
            }
        }
        let billed: i128 = bill.iter().filter_map(|charge| charge.cost).map(Money::micros).sum();
        let inside = march.world.stretches.iter().filter(|stretch| stretch.state == CardState::Held);
        let held = inside.filter_map(|stretch| Some(CardTime::of(stretch.share, stretch.during.overlap(all)?))).sum();
        prop_assert_eq!(charged, (billed, held));
    }

    /// LED-6: in rate mode charges add up to the bill, unless some are by use; idle lines are never below zero.
    #[test]
    fn charges_add_up_to_the_bill((march, zone) in any_month()) {
        prop_assume!(march.policy.mode == BillingMode::Rate && march.policy.used_basis.is_empty());
        let slots = Slots::new(month().interval(zone), Some(&march.book), zone, None).unwrap();
        let bill = crate::bill::charges(&march.world.input(&slots), &slots, Some(&march.book));
        let draft = worked_out(&march, zone, None, false);
        let charged: i128 = of_kind(&draft, EntryKind::Charge).map(|entry| entry.amount.micros()).sum();
        prop_assert_eq!(charged, bill.iter().filter_map(|charge| charge.cost).map(Money::micros).sum::<i128>());
        prop_assert!(of_kind(&draft, EntryKind::Idle).all(|entry| entry.amount.micros() >= 0));
    }

    /// However free capacity is paid for, it comes to the same.
    #[test]
    fn shared_capacity_is_the_line_spread((mut march, zone) in any_month()) {
        prop_assume!(march.policy.mode == BillingMode::Rate);
        let free = |march: &March| {
            let draft = worked_out(march, zone, None, false);
            let free = of_kind(&draft, EntryKind::Idle).filter(|entry| entry.key.what.as_deref() == Some(FREE));
            free.fold((0, CardTime::ZERO), |(sum, time), entry| (sum + entry.amount.micros(), time + entry.card_time))
        };
        march.policy.capacity.free = FreeCapacity::Line;
        let line = free(&march);
        march.policy.capacity.free = FreeCapacity::Shared;
        prop_assert_eq!(free(&march), line);
    }

    /// Refunds point at a charge and never come to more than it.
    #[test]
    fn refunds_of_a_charge_are_at_most_the_charge((march, zone) in any_month()) {
        let draft = worked_out(&march, zone, None, false);
        let charges: BTreeMap<EntryId, &Entry> = of_kind(&draft, EntryKind::Charge).map(|entry| (entry.id(), entry)).collect();
        let mut left: BTreeMap<&EntryId, (i128, CardTime)> =
            charges.iter().map(|(id, charge)| (id, (charge.amount.micros(), charge.billed_time))).collect();
        for refund in of_kind(&draft, EntryKind::Refund) {
            prop_assert!(refund.amount.micros() <= 0);
            let (money, time) = left.get_mut(refund.original_entry.as_ref().unwrap()).unwrap();
            *money += refund.amount.micros();
            *time += refund.billed_time;
            prop_assert!(*money >= 0 && *time >= CardTime::ZERO);
        }
    }

    /// In absorb mode all but owners' own items come to the cost put in, and the same month by its frozen rates is the same.
    #[test]
    fn absorb_spreads_exactly_the_cost_put_in((mut march, zone) in any_month()) {
        march.policy.mode = BillingMode::Absorb;
        let draft = worked_out(&march, zone, None, false);
        let put_in = |march: &March| put_in(march, zone).into_iter().flatten().sum::<i128>();
        let come_to = |draft: &Draft| {
            total(&draft.entries) - of_kind(draft, EntryKind::CostItem).map(|entry| entry.amount.micros()).sum::<i128>()
        };
        prop_assert_eq!(come_to(&draft), put_in(&march));
        let frozen = AbsorbedRates::parse(&draft.rates.as_ref().unwrap().to_text()).unwrap();
        prop_assert_eq!(&worked_out(&march, zone, Some(&frozen), true), &draft);
        // A job that turns out to have been longer leaves the sum as it is, but for the energy that it drew.
        if let Some(stretch) = march.world.stretches.first_mut() {
            let end = stretch.during.end().checked_add_ms(7_654_321).unwrap();
            stretch.during = Interval::new(stretch.during.start(), end).unwrap();
        }
        prop_assert_eq!(come_to(&worked_out(&march, zone, Some(&frozen), false)), put_in(&march));
    }
}
