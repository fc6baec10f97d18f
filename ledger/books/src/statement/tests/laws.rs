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

const POLICIES: [&str; 6] = [
    "",
    "[capacity]\nfree = \"line\"\nreserved = \"owner\"\n[refunds]\nnode_fail = \"1\"\npreempted = \"0.333\"\n",
    "[capacity]\nfree = \"shared\"\nreserved = \"line\"\n[refunds]\nnode_fail = \"0.7\"\nfatal_xid = \"1\"\npreempted = \"0.7\"\n",
    "[capacity]\nfree = \"shared\"\nshare_by = \"card_hours\"\n[refunds]\nnode_fail = \"1\"\nfatal_xid = \"1\"\nof = \"lost\"\n",
    "[capacity]\nfree = \"shared\"\nshare_by = \"even\"\n[[used_basis]]\nqueue = \"q1\"\n[refunds]\nnode_fail = \"1\"\n",
    "[efficiency]\npolicy = \"discount\"\n[[efficiency.tier]]\nat_least = \"0\"\npart = \"0.037\"\n[refunds]\npreempted = \"1\"\n",
];

/// A month with its mode and zone.
fn any_month() -> impl Strategy<Value = (March, Zone)> {
    let name = |names: &'static [&'static str]| prop::sample::select(names.to_vec());
    let stretch = (0i64..40 * 86_400_000, 1i64..20 * 86_400_000, 1i64..5_000, name(&["a", "b"]));
    let job = (
        (name(&["-", "acme", "globex"]), name(&["-", "p1", "p2"]), name(&["-", "ann", "bob"]), name(&["q1", "q2"])),
        (0usize..4, any::<bool>(), prop::option::of(prop::sample::select(vec![[0, 100, 0, 0], [30, 21, 41, 8]]))),
        stretch.clone(),
    );
    let nobodys = (prop::sample::select(vec![CardState::Free, CardState::Reserved, CardState::Down]), stretch);
    let cost = (-500i64..5_000, name(&["rent", "staff"]), name(&["-", "a", "b*"]), name(&["-", "acme"]));
    (
        prop::collection::vec(job, 0..7),
        prop::collection::vec(nobodys, 0..4),
        prop::collection::vec(cost, 0..4),
        (0..POLICIES.len(), any::<bool>()),
        name(&["UTC", "Asia/Shanghai", "Asia/Kathmandu", "America/New_York"]),
    )
        .prop_map(|(jobs, nobodys, costs, (policy, absorbs), zone)| {
            let mode = if absorbs { "mode = \"absorb\"\n" } else { "" };
            let mut march = march("", "1", &format!("{mode}{}", POLICIES[policy]));
            march.book = PriceBook::parse(&format!("currency = \"USD\"\nzone = \"{zone}\"\n{ODD}")).unwrap().unwrap();
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
            for (cents, name, model, owner) in costs {
                let amount = CostAmount::Fixed(Money::from_micros(i128::from(cents) * 10_000, usd()));
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

fn worked_out(march: &March, zone: Zone, rates: Option<&AbsorbedRates>, shuffle: bool) -> Draft {
    let slots = Slots::new(month().interval(zone), Some(&march.book), zone, None).unwrap();
    let world = World { reservations: march.reservations.clone(), ..march.world.clone() };
    let mut input = world.input(&slots);
    if shuffle {
        input.cells.reverse();
    }
    draft(&MonthOfBooks {
        month: month(),
        input: &input,
        slots: &slots,
        book: &march.book,
        policy: &march.policy,
        costs: &march.costs,
        sick: &march.sick,
        wrongful: &march.wrongful,
        rates,
    })
}

fn of_kind(draft: &Draft, kind: EntryKind) -> impl Iterator<Item = &Entry> {
    draft.entries.iter().filter(move |entry| entry.kind() == kind)
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
        prop_assert!(draft.holes.is_empty() && draft.unbooked.is_empty());
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
        let amount = |item: &CostItem| match item.amount {
            CostAmount::Fixed(amount) => amount.micros(),
            CostAmount::PerKwh { .. } => unreachable!("none is drawn"),
        };
        let put_in: i128 = march.costs.iter().filter(|item| item.is_platforms()).map(amount).sum();
        let come_to = |draft: &Draft| {
            total(&draft.entries) - of_kind(draft, EntryKind::CostItem).map(|entry| entry.amount.micros()).sum::<i128>()
        };
        prop_assert_eq!(come_to(&draft), put_in);
        let frozen = AbsorbedRates::parse(&draft.rates.as_ref().unwrap().to_text()).unwrap();
        prop_assert_eq!(&worked_out(&march, zone, Some(&frozen), true), &draft);
        // A job that turns out to have been longer leaves the sum as it is.
        if let Some(stretch) = march.world.stretches.first_mut() {
            let end = stretch.during.end().checked_add_ms(7_654_321).unwrap();
            stretch.during = Interval::new(stretch.during.start(), end).unwrap();
        }
        prop_assert_eq!(come_to(&worked_out(&march, zone, Some(&frozen), false)), put_in);
    }
}
