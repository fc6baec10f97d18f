//! Months worked out by hand. What holds for every month is in `laws`.

mod changes;
mod closed;
mod laws;
mod made_of;

use super::*;
use crate::prices::PriceBook;
use crate::report::ReportInput;
use crate::site::Reservation;
use crate::slots::Slots;
use crate::world::{World, book, range};
use cardhour_domain::{AttemptKey, CardState, CardTime, Currency, Money, Month, Name, Zone};
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};

/// A month of a pool, before anything is worked out.
#[derive(Debug)]
struct March {
    world: World,
    book: PriceBook,
    policy: BillingPolicy,
    costs: Vec<CostItem>,
    sick: BTreeSet<AttemptKey>,
    wrongful: BTreeMap<AttemptKey, Name>,
    reservations: Vec<Reservation>,
}

fn march(jobs: &str, per_card_hour: &str, policy: &str) -> March {
    March {
        world: World::jobs(jobs),
        book: book(&format!("[[price]]\nfrom = \"2016-01-01\"\nper_card_hour = \"{per_card_hour}\"\n")),
        policy: BillingPolicy::parse(policy).unwrap_or_else(|faults| panic!("{faults}")),
        costs: Vec::new(),
        sick: BTreeSet::new(),
        wrongful: BTreeMap::new(),
        reservations: Vec::new(),
    }
}

impl March {
    /// Some cards that nobody holds.
    fn with(mut self, state: CardState, stretch: &str) -> Self {
        self.world.stretches.push(World::stretch(state, stretch));
        self
    }

    fn cost(mut self, name: &str, amount: &str, owner: Option<&str>) -> Self {
        let amount = micros(amount);
        self.costs.push(item(name, CostAmount::Fixed(Money::from_micros(amount, usd())), owner));
        self
    }

    fn input(&self) -> (Slots, ReportInput) {
        let slots = Slots::new(month().interval(Zone::UTC), Some(&self.book), Zone::UTC, None).unwrap();
        let world = World { reservations: self.reservations.clone(), ..self.world.clone() };
        let input = world.input(&slots);
        (slots, input)
    }

    fn draft(&self) -> Draft {
        self.draft_at(None)
    }

    fn draft_at(&self, rates: Option<&AbsorbedRates>) -> Draft {
        let (slots, input) = self.input();
        draft(&MonthOfBooks {
            month: month(),
            input: &input,
            slots: &slots,
            book: &self.book,
            policy: &self.policy,
            costs: &self.costs,
            sick: &self.sick,
            wrongful: &self.wrongful,
            rates,
        })
    }
}

fn month() -> Month {
    Month::parse("2026-03").unwrap()
}

fn usd() -> Currency {
    Currency::parse("USD").unwrap()
}

fn micros(amount: &str) -> i128 {
    let mut amount: Decimal = amount.parse().unwrap();
    amount.rescale(6);
    amount.mantissa()
}

fn item(name: &str, amount: CostAmount, owner: Option<&str>) -> CostItem {
    CostItem {
        month: month(),
        name: name.into(),
        org: owner.map(Name::from),
        project: None,
        user: None,
        cluster: None,
        pool: None,
        model: None,
        quantity: None,
        amount,
        reason: None,
    }
}

/// An entry a line: kind, org, project, user, model, what, card-hours, billed ones, amount.
fn lines(entries: &[Entry]) -> Vec<String> {
    let text = |name: &Option<Name>| name.as_deref().unwrap_or("-").to_owned();
    let hours = |time: CardTime| time.card_hours().normalize().to_string();
    let line = |entry: &Entry| {
        let EntryKey { org, project, user, model, what, .. } = &entry.key;
        let names = [org, project, user, model, what].map(text).join(" ");
        let (held, billed) = (hours(entry.card_time), hours(entry.billed_time));
        format!("{} {names} {held} {billed} {}", entry.kind().name(), entry.amount.to_minor_string())
    };
    entries.iter().map(line).collect()
}

#[track_caller]
fn check(draft: &Draft, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines(&draft.entries), expected);
}

fn total(entries: &[Entry]) -> i128 {
    entries.iter().map(|entry| entry.amount.micros()).sum()
}

const TEN_HOURS: &str = "1 acme vision ann q completed T4 n1 1 2026-03-10T00:00 2026-03-10T10:00";

#[test]
fn without_a_policy_a_month_is_its_charges() {
    let draft = march(TEN_HOURS, "2", "").draft();
    check(&draft, "charge acme vision ann T4 - 10 10 20.00");
    assert_eq!((draft.rates, draft.holes, draft.unbooked), (None, vec![], vec![]));
}

#[test]
fn m06_no_cards_no_rows() {
    let policy = "[capacity]\nfree = \"line\"\nreserved = \"owner\"\n";
    check(&march("", "1", policy).draft(), "");
}

/// A card at 1.00 that nobody held for 27 hours, beside one job of 10: the idle line is 27.00, and shared it is still 27.00.
#[test]
fn m09_the_idle_line_is_27_and_the_total_is_kept() {
    let free = "c n1 T4 1 2026-03-11T00:00 2026-03-12T03:00";
    let month = |how: &str| march(TEN_HOURS, "1", how).with(CardState::Free, free).draft();
    check(
        &month("[capacity]\nfree = \"line\"\n"),
        "idle - - - T4 free 27 27 27.00
         charge acme vision ann T4 - 10 10 10.00",
    );
    check(
        &month("[capacity]\nfree = \"shared\"\n"),
        "idle acme vision - - free 27 27 27.00
         charge acme vision ann T4 - 10 10 10.00",
    );
    check(&month(""), "charge acme vision ann T4 - 10 10 10.00");
    // Nobody to share with: the platform's.
    let alone = march("", "1", "[capacity]\nfree = \"shared\"\n").with(CardState::Free, free).draft();
    check(&alone, "idle - - - T4 free 27 27 27.00");
}

/// 10.00 of free cards over three projects, evenly: 3.34, 3.33, 3.33; by their hours, 1, 1 and 2 of 4: 2.50, 2.50, 5.00.
#[test]
fn m23_shared_free_capacity_adds_up_to_the_cent() {
    let jobs = "1 acme a ann q completed T4 n1 1 2026-03-10T00:00 2026-03-10T01:00
                2 acme b ann q completed T4 n1 1 2026-03-10T00:00 2026-03-10T01:00
                3 zeta c ann q completed T4 n1 1 2026-03-10T00:00 2026-03-10T02:00";
    let month = |share_by: &str| {
        let policy = format!("[capacity]\nfree = \"shared\"\nshare_by = \"{share_by}\"\n");
        let free = "c n1 T4 1 2026-03-11T00:00 2026-03-11T10:00";
        let mut draft = march(jobs, "1", &policy).with(CardState::Free, free).draft();
        draft.entries.retain(|entry| entry.kind() == EntryKind::Idle);
        draft.entries.iter().map(|entry| entry.amount.to_minor_string()).collect::<Vec<_>>()
    };
    assert_eq!(month("even"), ["3.34", "3.33", "3.33"]);
    assert_eq!(month("card_hours"), ["2.50", "2.50", "5.00"]);
    assert_eq!(month("cost"), ["2.50", "2.50", "5.00"]);
}

/// Two cards reserved for globex over ten hours at 3.00: 60.00 to globex, whoever else is there; and globex's own price, 2.50, where it has one.
#[test]
fn m08_idle_of_reserved_cards_goes_to_the_owner_of_the_reservation() {
    let month = |policy: &str| {
        let mut march =
            march(TEN_HOURS, "3", policy).with(CardState::Reserved, "c n1 T4 2 2026-03-11T00:00 2026-03-11T10:00");
        march.reservations.push(Reservation {
            cluster: "c".into(),
            name: "week".into(),
            during: range("2026-03-11", "2026-03-12"),
            nodes: Vec::new(),
            cards: None,
            model: None,
            org: Some("globex".into()),
            project: Some("llm".into()),
            user: None,
        });
        march
    };
    let charge = "charge acme vision ann T4 - 10 10 30.00";
    let owner = "[capacity]\nreserved = \"owner\"\n";
    check(&month(owner).draft(), &format!("{charge}\nidle globex llm - T4 reserved 20 20 60.00"));
    let line = month("[capacity]\nreserved = \"line\"\n").draft();
    check(&line, &format!("idle - - - T4 reserved 20 20 60.00\n{charge}"));
    check(&month("").draft(), charge);
    let mut own = month(owner);
    own.book = book(
        "[[price]]\nfrom = \"2016-01-01\"\nper_card_hour = \"3\"\n[[price]]\nfrom = \"2016-01-01\"\norg = \"globex\"\nper_card_hour = \"2.5\"\n",
    );
    check(&own.draft(), &format!("{charge}\nidle globex llm - T4 reserved 20 20 50.00"));
}

/// The reservation `week` was acme's from 1 to 15 March and nova's from 15 to 31 March, and of its card at 3.00 ten hours lay idle under each, and four more
/// from 22:00 on 14 March to 02:00 on the 15th: two for each. By hand 12 × 3.00 = 36.00 for the one and 36.00 for the other.
#[test]
fn reservations_of_one_name_are_each_paid_by_their_own_owner() {
    let mut march = march(TEN_HOURS, "3", "[capacity]\nreserved = \"owner\"\n")
        .with(CardState::Reserved, "c n1 T4 1 2026-03-05T00:00 2026-03-05T10:00")
        .with(CardState::Reserved, "c n1 T4 1 2026-03-14T22:00 2026-03-15T02:00")
        .with(CardState::Reserved, "c n1 T4 1 2026-03-20T00:00 2026-03-20T10:00");
    for (org, from, to) in [("acme", "2026-03-01", "2026-03-15"), ("nova", "2026-03-15", "2026-03-31")] {
        march.reservations.push(Reservation {
            cluster: "c".into(),
            name: "week".into(),
            during: range(from, to),
            nodes: Vec::new(),
            cards: None,
            model: None,
            org: Some(org.into()),
            project: None,
            user: None,
        });
    }
    check(
        &march.draft(),
        "idle acme - - T4 reserved 12 12 36.00
         charge acme vision ann T4 - 10 10 30.00
         idle nova - - T4 reserved 12 12 36.00",
    );
}

/// Ten hours at 2.00 on a node that failed: 20.00 is given back in full, 10.00 by half, each pointing at the charge.
#[test]
fn m25_a_job_that_died_of_its_node_has_its_charge_given_back() {
    let job = TEN_HOURS.replace("completed", "node_fail");
    let draft = march(&job, "2", "[refunds]\nnode_fail = \"1\"\n").draft();
    check(
        &draft,
        "charge acme vision ann T4 - 10 10 20.00
         refund acme vision ann T4 node_fail -10 -10 -20.00",
    );
    assert_eq!(draft.entries[1].original_entry, Some(draft.entries[0].id()));
    assert_eq!(draft.entries[1].reason.as_deref(), Some("job c/1"));
    check(
        &march(&job, "2", "[refunds]\nnode_fail = \"0.5\"\n").draft(),
        "charge acme vision ann T4 - 10 10 20.00
         refund acme vision ann T4 node_fail -10 -5 -10.00",
    );
    let charge = "charge acme vision ann T4 - 10 10 20.00";
    check(&march(&job, "2", "[refunds]\npreempted = \"1\"\n").draft(), charge);
}

/// Three jobs of 20 minutes at 1.00 in one leaf of 1.00; two are given back: 0.6667, once rounded 0.67, which is 0.34 and 0.33. Each rounded by itself
/// would be 0.66, and all three 0.99.
#[test]
fn refunds_of_a_leaf_are_rounded_once_and_never_come_to_more_than_it() {
    let jobs = "1 acme vision ann q node_fail T4 n1 1 2026-03-10T00:00 2026-03-10T00:20
                2 acme vision ann q preempted T4 n1 1 2026-03-10T01:00 2026-03-10T01:20
                3 acme vision ann q completed T4 n1 1 2026-03-10T02:00 2026-03-10T02:20";
    let mut march = march(jobs, "1", "[refunds]\nnode_fail = \"1\"\npreempted = \"1\"\nfatal_xid = \"1\"\n");
    let amounts = |draft: Draft| draft.entries.iter().map(|e| e.amount.to_minor_string()).collect::<Vec<_>>();
    assert_eq!(amounts(march.draft()), ["1.00", "-0.34", "-0.33"]);
    // The third met a sick card, and the first did too: that is one cause of it, not two.
    march.sick.extend([march.world.attempts[0].key.clone(), march.world.attempts[2].key.clone()]);
    // In order of their names: fatal_xid, node_fail, preempted.
    assert_eq!(amounts(march.draft()), ["1.00", "-0.33", "-0.34", "-0.33"]);
}

#[test]
fn a_reclaim_is_given_back_only_where_somebody_found_it_wrong() {
    let mut march = march(&TEN_HOURS.replace("completed", "reclaimed"), "2", "[refunds]\nreclaimed = \"1\"\n");
    assert_eq!(march.draft().entries.len(), 1);
    march.world.attempts[0].labels.insert(WRONGFUL_RECLAIM.into(), "ticket 7".into());
    check(
        &march.draft(),
        "charge acme vision ann T4 - 10 10 20.00
         refund acme vision ann T4 reclaimed -10 -10 -20.00",
    );
}

/// A scheduler may call a job that was ended cancelled: the mark names the decision, and the refund does.
#[test]
fn a_refund_of_a_decision_that_was_wrong_points_at_it() {
    let mut march = march(&TEN_HOURS.replace("completed", "cancelled"), "2", "[refunds]\nreclaimed = \"1\"\n");
    assert_eq!(march.draft().entries.len(), 1);
    march.wrongful.insert(march.world.attempts[0].key.clone(), "0a1b".into());
    let draft = march.draft();
    check(
        &draft,
        "charge acme vision ann T4 - 10 10 20.00
         refund acme vision ann T4 reclaimed -10 -10 -20.00",
    );
    let job = march.world.attempts[0].key.job();
    assert_eq!(draft.entries[1].reason.as_deref(), Some(&*format!("job {job} (decision 0a1b)")));
}

/// Ten hours at 2.00, of which the last 30 % are lost: 6.00 of 20.00.
#[test]
fn of_lost_time_alone_the_lost_part_is_given_back() {
    let mut march = march("", "2", "[refunds]\nnode_fail = \"1\"\nof = \"lost\"\n");
    march.world = World::jobs(&TEN_HOURS.replace("completed", "node_fail")).seen("1 - - gpm 30 0 70 0 -");
    let refunds: Vec<Entry> =
        march.draft().entries.into_iter().filter(|entry| entry.kind() == EntryKind::Refund).collect();
    assert_eq!(lines(&refunds), ["refund acme vision ann T4 node_fail -3 -3 -6.00"]);
}

/// Ten hours at 2.00, 30 % of them at work: held 20.00, used 6.00, and the entry has both. Of another queue nothing changes; what nobody saw is no use.
#[test]
fn m16_a_usage_basis_weighs_by_measured_activity_and_both_are_shown() {
    let month = |policy: &str, seen: &str| {
        let mut march = march("", "2", policy);
        march.world = World::jobs(TEN_HOURS).seen(seen);
        let mut entries = march.draft().entries;
        entries.retain(|entry| entry.kind() == EntryKind::Charge);
        let lists: Vec<String> = entries.iter().map(|entry| entry.list_amount.unwrap().to_minor_string()).collect();
        (lines(&entries), lists)
    };
    let charge = |billed: &str, amount: &str| {
        (vec![format!("charge acme vision ann T4 - 10 {billed} {amount}")], vec!["20.00".to_owned()])
    };
    let seen = "1 - - gpm 0 70 30 0 -";
    assert_eq!(month("[[used_basis]]\nqueue = \"q\"\n", seen), charge("3", "6.00"));
    assert_eq!(month("[[used_basis]]\nqueue = \"other\"\n", seen), charge("10", "20.00"));
    assert_eq!(month("[[used_basis]]\nqueue = \"q\"\n", ""), charge("0", "0.00"));
    let mut unseen = march(TEN_HOURS, "2", "[[used_basis]]\nqueue = \"q\"\n");
    assert_eq!(
        said(&unseen.draft()),
        ["0 % of the card-time of org acme that is charged by use was seen; 10 card-hours of it cost nothing"]
    );
    unseen.policy.used_basis.clear();
    assert_eq!(said(&unseen.draft()), [""; 0], "what is held is paid for, seen or not");
}

fn said(draft: &Draft) -> Vec<String> {
    draft.seen.iter().map(SeenPart::said).collect()
}

/// Four of ten hours were told, at 30 % busy: 1.2 used card-hours at 2.00 are 2.40, and six card-hours nobody saw. Of a job that is told in full nothing is said.
#[test]
fn time_by_use_that_nobody_saw_is_said_on_its_line_and_of_its_organisation() {
    let jobs = "1 acme vision ann q completed T4 n1 1 2026-03-10T00:00 2026-03-10T10:00
                2 globex vision bob q completed T4 n1 1 2026-03-10T00:00 2026-03-10T10:00";
    let mut march = march("", "2", "[[used_basis]]\nqueue = \"q\"\n");
    march.world =
        World::jobs(jobs).seen("1 2026-03-10T00:00 2026-03-10T04:00 gpm 0 70 30 0 -").seen("2 - - gpm 0 70 30 0 -");
    let draft = march.draft();
    let charges: Vec<Entry> = draft.entries.iter().filter(|entry| entry.kind() == EntryKind::Charge).cloned().collect();
    assert_eq!(lines(&charges), ["charge acme vision ann T4 - 10 1.2 2.40", "charge globex vision bob T4 - 10 3 6.00"]);
    let reasons: Vec<Option<&str>> = charges.iter().map(|entry| entry.reason.as_deref()).collect();
    assert_eq!(reasons, [Some("by use; 6 card-hours that nobody saw are not charged"), None]);
    assert_eq!(
        said(&draft),
        ["40 % of the card-time of org acme that is charged by use was seen; 6 card-hours of it cost nothing"]
    );
    assert_eq!(draft.seen[0].part(), Decimal::new(4, 1));
}

/// 18 hours of a notebook at 2.765 an hour, 2 % of it at work: 0.36 hours. Its owner sees 49.77 held beside 0.36 at work, and by use pays 1.00 (0.9954).
#[test]
fn m18_a_notebook_shows_held_and_used_and_the_policy_says_what_is_paid() {
    let job = "1 lab nb ann notebooks completed T4 n1 1 2026-03-10T00:00 2026-03-10T18:00";
    let month = |policy: &str| {
        let mut march = march("", "2.765", policy);
        march.world = World::jobs(job).seen("1 - - duty_cycle 0 98 2 0 -");
        lines(&march.draft().entries)
    };
    let efficiency = "efficiency lab nb ann - - 18 0.36 0.00".to_owned();
    assert_eq!(month(""), ["charge lab nb ann T4 - 18 18 49.77".to_owned(), efficiency.clone()]);
    let used = "charge lab nb ann T4 - 18 0.36 1.00".to_owned();
    assert_eq!(month("[[used_basis]]\nqueue = \"notebooks\"\n"), [used, efficiency]);
}

/// Efficiency 0.9 of what was seen: 5 % off 20.00 is 1.00. Explained it is without money; of a month of which less than half was seen it isn't told.
#[test]
fn efficiency_explains_or_discounts_and_shows_its_figures() {
    let month = |policy: &str, seen: &str| {
        let mut march = march("", "2", policy);
        march.world = World::jobs(TEN_HOURS).seen(seen);
        march.draft().entries.into_iter().filter(|entry| entry.kind() == EntryKind::Efficiency).collect::<Vec<_>>()
    };
    let seen = "1 - - gpm 0 0 90 10 -";
    let explained = month("", seen);
    assert_eq!(lines(&explained), ["efficiency acme vision ann - - 10 9 0.00"]);
    assert_eq!(explained[0].quantity, Some((Decimal::new(900_000, 6), "efficiency".into())));
    assert_eq!(explained[0].reason.as_deref(), Some("1.000000 of held time seen, by gpm"));
    let tier = "[[efficiency.tier]]\nat_least = \"0.8\"\npart = \"0.05\"\n[[efficiency.tier]]\nat_least = \"0.5\"\npart = \"0.01\"\n";
    let discount = format!("[efficiency]\npolicy = \"discount\"\n{tier}");
    assert_eq!(lines(&month(&discount, seen)), ["efficiency acme vision ann - discount 10 9 -1.00"]);
    let surcharge = discount.replace("discount", "surcharge");
    assert_eq!(lines(&month(&surcharge, seen)), ["efficiency acme vision ann - surcharge 10 9 1.00"]);
    assert_eq!(month(&discount, "1 2026-03-10T00:00 2026-03-10T04:00 gpm 0 0 90 10 -"), []);
    assert_eq!(month(&discount, ""), []);
}

/// Three users of equal hours share 100.00: 33.34, 33.33, 33.33.
const THREE: &str = "1 acme vision ann q completed T4 n1 1 2026-03-10T00:00 2026-03-10T10:00
                     2 acme vision bob q completed T4 n1 1 2026-03-10T00:00 2026-03-10T10:00
                     3 acme vision eve q completed T4 n1 1 2026-03-10T00:00 2026-03-10T10:00";

#[test]
fn absorbed_cost_is_spread_to_the_cent() {
    let march = march(THREE, "2", "mode = \"absorb\"\n").cost("rent", "60", None).cost("staff", "40", None);
    let draft = march.draft();
    check(
        &draft,
        "charge acme vision ann T4 - 10 10 33.34
         charge acme vision bob T4 - 10 10 33.33
         charge acme vision eve T4 - 10 10 33.33",
    );
    // By its frozen rate an unchanged month is as it was, the odd cent too.
    let frozen = AbsorbedRates::parse(&draft.rates.as_ref().unwrap().to_text()).unwrap();
    assert_eq!(march.draft_at(Some(&frozen)), draft);
}

/// 100.00 over 30 hours. A late job of 3 hours costs 3 × 3.3333 = 10.00 by the frozen rate, which is 10.00 more than was to be recovered.
#[test]
fn late_hours_cost_the_frozen_rate_and_the_difference_is_over_recovery() {
    let rates = march(THREE, "2", "mode = \"absorb\"\n").cost("rent", "100", None).draft().rates;
    let late = format!("{THREE}\n4 zeta z zoe q completed T4 n1 1 2026-03-20T00:00 2026-03-20T03:00");
    let late = march(&late, "2", "mode = \"absorb\"\n").cost("rent", "100", None);
    check(
        &late.draft_at(rates.as_ref()),
        "recovery - over-under-recovery - - - 0 0 -10.00
         charge acme vision ann T4 - 10 10 33.34
         charge acme vision bob T4 - 10 10 33.33
         charge acme vision eve T4 - 10 10 33.33
         charge zeta z zoe T4 - 3 3 10.00",
    );
}

/// 90.00 over 30 hours: 30.00 each. Bob's is given back, so 30.00 of the cost is not recovered.
#[test]
fn refunds_of_absorbed_cost_are_balanced() {
    let jobs = THREE.replace("bob q completed", "bob q node_fail");
    let policy = "mode = \"absorb\"\n[refunds]\nnode_fail = \"1\"\n";
    check(
        &march(&jobs, "2", policy).cost("rent", "90", None).draft(),
        "recovery - over-under-recovery - - - 0 0 30.00
         charge acme vision ann T4 - 10 10 30.00
         charge acme vision bob T4 - 10 10 30.00
         refund acme vision bob T4 node_fail -10 -10 -30.00
         charge acme vision eve T4 - 10 10 30.00",
    );
}

/// 100.00 over 30 held and 20 free hours. With a line the free cards bear 40.00 of it; without, the holders bear all.
#[test]
fn free_cards_bear_their_part_of_the_cost_where_they_have_a_line() {
    let month = |policy: &str| {
        let free = "c n1 T4 2 2026-03-11T00:00 2026-03-11T10:00";
        march(THREE, "2", &format!("mode = \"absorb\"\n{policy}"))
            .with(CardState::Free, free)
            .cost("rent", "100", None)
            .draft()
    };
    let charges = "charge acme vision ann T4 - 10 10 20.00
                   charge acme vision bob T4 - 10 10 20.00
                   charge acme vision eve T4 - 10 10 20.00";
    check(&month("[capacity]\nfree = \"line\"\n"), &format!("idle - - - T4 free 20 20 40.00\n{charges}"));
    let shared = month("[capacity]\nfree = \"shared\"\n");
    check(&shared, &format!("idle acme vision - - free 20 20 40.00\n{charges}"));
    assert_eq!(total(&month("").entries), micros("100"));
}

/// A cost of the T4 alone is borne by its holders; the coefficient of the H200, 4, makes its 10 hours 40 of 50 beside 10 of the T4.
#[test]
fn a_cost_of_some_cards_is_borne_by_their_holders_and_hours_are_weighed_by_coefficient() {
    let jobs = "1 acme vision ann q completed T4 n1 1 2026-03-10T00:00 2026-03-10T10:00
                2 acme vision bob q completed H200 n1 1 2026-03-10T00:00 2026-03-10T10:00";
    let mut march = march(jobs, "2", "mode = \"absorb\"\n").cost("rent", "100", None).cost("repair", "7", None);
    march.costs[1].model = Some("t4".into());
    march.book = book(
        "[[price]]\nfrom = \"2016-01-01\"\nper_card_hour = \"1\"\n[[price]]\nfrom = \"2016-01-01\"\nmodel = \"H*\"\nper_card_hour = \"1\"\ncoefficient = \"4\"\n",
    );
    check(
        &march.draft(),
        "charge acme vision ann T4 - 10 10 27.00
         charge acme vision bob H200 - 10 10 80.00",
    );
}

#[test]
fn a_cost_that_nobody_bears_is_not_recovered() {
    let draft = march("", "2", "mode = \"absorb\"\n").cost("rent", "100", None).draft();
    check(&draft, "recovery - over-under-recovery - - - 0 0 100.00");
}

/// An owner's items are its own in both modes; the platform's are on its own statement in rate mode. A credit is below zero.
#[test]
fn an_owners_cost_items_are_lines_of_its_own() {
    let month = |mode: &str| {
        march(TEN_HOURS, "2", mode)
            .cost("storage", "12.50", Some("acme"))
            .cost("credit note", "-5", Some("acme"))
            .cost("rent", "30", None)
            .draft()
    };
    check(
        &month(""),
        "cost_item - - - - rent 0 0 30.00
         cost_item acme - - - credit note 0 0 -5.00
         cost_item acme - - - storage 0 0 12.50
         charge acme vision ann T4 - 10 10 20.00",
    );
    check(
        &month("mode = \"absorb\"\n"),
        "cost_item acme - - - credit note 0 0 -5.00
         cost_item acme - - - storage 0 0 12.50
         charge acme vision ann T4 - 10 10 30.00",
    );
}

/// A card at 700 W over ten hours is 7 kWh, at 0.80 each 5.60. Without a reading there is no amount, and it is said.
#[test]
fn power_is_measured_energy_times_its_tariff() {
    let mut march = march("", "2", "");
    let tariff = CostAmount::PerKwh { tariff: Decimal::new(8, 1), currency: usd() };
    march.costs.push(item("power", tariff, Some("acme")));
    march.world = World::jobs(TEN_HOURS);
    let unmeasured = march.draft();
    assert_eq!(unmeasured.unbooked, ["cost item \"power\" of 2026-03 is of energy, and none was measured"]);
    march.world = World::jobs(TEN_HOURS).seen("1 - - gpm 0 0 90 10 700");
    let draft = march.draft();
    let power = draft.entries.iter().find(|entry| entry.kind() == EntryKind::CostItem).unwrap();
    assert_eq!(power.amount.to_minor_string(), "5.60");
    assert_eq!(power.quantity, Some((Decimal::from(7), "kWh".into())));
    assert_eq!((&power.reason, said(&draft)), (&None, vec![]), "what was measured in full says nothing of it");
}

/// Ten hours at 700 W, told for the first five alone: 3.5 kWh × 0.80 are 2.80, of half of the time. The pool's other cards are not the owner's.
#[test]
fn energy_of_a_part_of_the_time_says_of_which_part() {
    let power = |owner: Option<&str>, mode: &str, stretches: &[(CardState, &str)]| {
        let mut march = march("", "2", mode);
        let tariff = CostAmount::PerKwh { tariff: Decimal::new(8, 1), currency: usd() };
        march.costs.push(CostItem { reason: Some("grid".into()), ..item("power", tariff, owner) });
        march.world = World::jobs(TEN_HOURS).seen("1 2026-03-10T00:00 2026-03-10T05:00 gpm 0 0 90 10 700");
        let march = stretches.iter().fold(march, |march, (state, stretch)| march.with(*state, stretch));
        let draft = march.draft();
        let power = draft.entries.iter().find(|entry| entry.kind() == EntryKind::CostItem);
        (power.map(|entry| (entry.amount.to_minor_string(), entry.reason.clone().unwrap())), said(&draft))
    };
    let half = |of: &str| {
        (
            Some(("2.80".to_owned(), Name::from("grid; of 50 % of card-time measured"))),
            vec![format!("50 % of the card-time of cost item \"power\"{of} was seen; 5 card-hours of it cost nothing")],
        )
    };
    assert_eq!(power(Some("acme"), "", &[]), half(", of acme"));
    let free = (CardState::Free, "c n2 T4 1 2026-03-10T00:00 2026-03-10T05:00");
    let down = (CardState::Down, "c n3 T4 1 2026-03-10T00:00 2026-03-10T05:00");
    assert_eq!(power(Some("acme"), "", &[free, down]), half(", of acme"));
    assert_eq!(power(None, "", &[down]), half(""), "a card that is down draws nothing that is missed");
    // Five of fifteen, rounded down.
    let third = "of 33.33 % of card-time measured";
    assert!(power(None, "", &[free, down]).0.unwrap().1.ends_with(third));
    // Spread over holders it has no line, and is said all the same.
    assert_eq!(power(None, "mode = \"absorb\"\n", &[]), (None, half("").1));
}

#[test]
fn a_part_that_is_not_all_is_never_shown_as_all() {
    let of = |seen, all| SeenPart::new(None, "x".into(), CardTime::from_part_ms(seen), CardTime::from_part_ms(all));
    assert_eq!(of(1_000_000_000, 1_000_000_000), None);
    let part = of(999_999_999, 1_000_000_000).unwrap();
    assert_eq!((part.part().to_string(), part.said().starts_with("99.99 % of x")), ("0.999999".to_owned(), true));
}

#[test]
fn a_cost_in_another_currency_is_said_and_not_booked() {
    let mut march = march(TEN_HOURS, "2", "");
    let amount = Money::from_micros(1_000_000, Currency::parse("EUR").unwrap());
    march.costs.push(item("rent", CostAmount::Fixed(amount), None));
    let draft = march.draft();
    assert_eq!(draft.unbooked, ["cost item \"rent\" of 2026-03 is in EUR, the price book in USD"]);
    assert_eq!(draft.entries.len(), 1);
}

#[test]
fn time_without_a_price_is_a_hole_and_no_entry() {
    let mut march = march(TEN_HOURS, "2", "[capacity]\nfree = \"line\"\n")
        .with(CardState::Free, "c n1 K80 1 2026-03-11T00:00 2026-03-11T10:00");
    march.book = book("[[price]]\nfrom = \"2016-01-01\"\nmodel = \"H200\"\nper_card_hour = \"1\"\n");
    let draft = march.draft();
    check(&draft, "");
    assert_eq!(draft.holes.len(), 2, "what was held, and what was free");
}

#[test]
fn frozen_rates_are_read_back_as_they_were() {
    let text = r#"{"rates":[{"cluster":null,"pool":"a","model":null,"amount_micros":"100000000","weight":"1945944000000000000"}],"kept":{}}"#;
    assert_eq!(AbsorbedRates::parse(text).unwrap().to_text(), text);
    assert!(AbsorbedRates::parse("{}").is_err());
}
