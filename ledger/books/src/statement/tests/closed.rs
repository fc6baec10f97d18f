//! Months that are closed and corrected in each mode: by hand, and LED-5 on months drawn at random.

use super::laws::{any_month, worked_out};
use super::*;
use crate::world::Told;
use cardhour_domain::{Interval, JobState};
use proptest::prelude::*;

/// A month that was closed, and everything that stands of it since.
struct Closed {
    zone: Zone,
    /// As the closing keeps them.
    rates: Option<String>,
    standing: Vec<Entry>,
    /// The month in which the next corrections stand.
    open: Month,
}

impl Closed {
    fn of(march: &March, zone: Zone) -> Self {
        let draft = worked_out(march, zone, None, false);
        let rates = draft.rates.map(|rates| rates.to_text());
        Self { zone, rates, standing: draft.entries, open: month().next() }
    }

    fn again(&self, march: &March) -> Draft {
        let rates = self.rates.as_ref().map(|text| AbsorbedRates::parse(text).unwrap());
        worked_out(march, self.zone, rates.as_ref(), true)
    }

    /// What the facts of `march` correct in the month that is open; that is then closed with it.
    fn corrected(&mut self, march: &March) -> Vec<Entry> {
        let made = corrections(self.open, &self.standing, &self.again(march).entries);
        self.standing.extend(made.clone());
        self.open = self.open.next();
        made
    }

    /// What was signed for a month.
    fn canonical(&self, march: &March, period: Month) -> Vec<u8> {
        let (coverage, by_line) = (BTreeMap::new(), BTreeMap::new());
        let issue = Issue {
            period,
            zone: self.zone,
            currency: march.book.currency(),
            policy: &march.policy,
            coverage: &coverage,
            lines: &by_line,
            closed: None,
        };
        let of_period = self.standing.iter().filter(|entry| entry.period == period).cloned().collect();
        canonical_csv(&statements(of_period, &issue))
    }
}

#[track_caller]
fn check_lines(entries: &[Entry], expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines(entries), expected);
}

/// 90.00 over 30 hours, 3.00 an hour. Two late hours are 6.00 more than was to be recovered; then half of ann's ten turn out not to have been: 15.00 less.
#[test]
fn a_month_closed_in_absorb_mode_comes_to_the_cost_put_in_after_each_late_fact() {
    let jobs = "1 acme vision ann q completed T4 n1 1 2026-03-10T00:00 2026-03-10T10:00
                2 acme vision bob q completed T4 n1 2 2026-03-10T00:00 2026-03-10T10:00";
    let absorbed = |jobs: &str| march(jobs, "2", "mode = \"absorb\"\n").cost("rent", "90", None);
    let mut closed = Closed::of(&absorbed(jobs), Zone::UTC);
    check_lines(
        &closed.standing,
        "charge acme vision ann T4 - 10 10 30.00
         charge acme vision bob T4 - 20 20 60.00",
    );
    let late = format!("{jobs}\n3 zeta z zoe q completed T4 n1 1 2026-03-20T00:00 2026-03-20T02:00");
    let original = closed.standing[0].id();
    check_lines(
        &closed.corrected(&absorbed(&late)),
        "correction - over-under-recovery - - - 0 0 -6.00
         correction zeta z zoe T4 - 2 2 6.00",
    );
    let shorter = late.replacen("2026-03-10T10:00", "2026-03-10T05:00", 1);
    let made = closed.corrected(&absorbed(&shorter));
    check_lines(
        &made,
        "correction - over-under-recovery - - - 0 0 15.00
         correction acme vision ann T4 - -5 -5 -15.00",
    );
    assert_eq!(made[1].original_entry, Some(original));
    assert_eq!(total(&closed.standing), micros("90"));
    check_lines(&closed.corrected(&absorbed(&shorter)), "");
}

/// Four of ten hours were told at 30 % busy: 2.40. Telemetry that comes late tells of the six at 50 %: 3 card-hours more at 2.00, and of an efficiency.
#[test]
fn late_telemetry_is_paid_for_by_whoever_is_charged_by_use() {
    let by_use = |seen: &str| {
        let mut march = march("", "2", "[[used_basis]]\nqueue = \"q\"\n");
        march.world = World::jobs(TEN_HOURS).seen(seen);
        march
    };
    let early = "1 2026-03-10T00:00 2026-03-10T04:00 gpm 0 70 30 0 -";
    let mut closed = Closed::of(&by_use(early), Zone::UTC);
    check_lines(&closed.standing, "charge acme vision ann T4 - 10 1.2 2.40");
    let late = by_use(&format!("{early}\n1 2026-03-10T04:00 2026-03-10T10:00 gpm 0 50 50 0 -"));
    let made = closed.corrected(&late);
    check_lines(
        &made,
        "correction acme vision ann T4 - 0 3 6.00
         correction acme vision ann - - 10 4.2 0.00",
    );
    assert_eq!(made[0].original_entry, Some(closed.standing[0].id()));
    assert_eq!(made[1].original_entry, None, "it was told of no efficiency when the month was closed");
}

/// 5 % off 20.00 for an efficiency of 0.9 were 1.00, and 0.3 has none; 10 % on top for 0.3 are 2.00, and 0.9 has none.
#[test]
fn money_for_an_efficiency_that_was_seen_otherwise_later_is_corrected() {
    let month = |policy: &str, busy: i64| {
        let mut march = march("", "2", policy);
        march.world = World::jobs(TEN_HOURS).seen(&format!("1 - - gpm 0 {} {busy} 0 -", 100 - busy));
        march
    };
    let discount = "[efficiency]\npolicy = \"discount\"\n[[efficiency.tier]]\nat_least = \"0.8\"\npart = \"0.05\"\n";
    let surcharge = "[efficiency]\npolicy = \"surcharge\"\n[[efficiency.tier]]\nbelow = \"0.5\"\npart = \"0.1\"\n";
    for (policy, what, was, corrected) in
        [(discount, "discount", "-1.00", "1.00"), (surcharge, "surcharge", "0.00", "2.00")]
    {
        let mut closed = Closed::of(&month(policy, 90), Zone::UTC);
        check_lines(
            &closed.standing,
            &format!(
                "charge acme vision ann T4 - 10 10 20.00
                 efficiency acme vision ann - {what} 10 9 {was}"
            ),
        );
        let original = closed.standing[1].id();
        let made = closed.corrected(&month(policy, 30));
        check_lines(&made, &format!("correction acme vision ann - {what} 0 -6 {corrected}"));
        assert_eq!(made[0].original_entry, Some(original));
    }
}

/// Ten free hours at 2.00 are acme's alone, until zeta turns out to have held as much: each bears 10.00.
#[test]
fn a_late_job_bears_its_part_of_shared_idle_cards_and_the_others_bear_less() {
    let shared = |jobs: &str| {
        march(jobs, "2", "[capacity]\nfree = \"shared\"\n")
            .with(CardState::Free, "c n2 T4 1 2026-03-10T00:00 2026-03-10T10:00")
    };
    let mut closed = Closed::of(&shared(TEN_HOURS), Zone::UTC);
    check_lines(
        &closed.standing,
        "idle acme vision - - free 10 10 20.00
         charge acme vision ann T4 - 10 10 20.00",
    );
    let late = format!("{TEN_HOURS}\n2 zeta z zoe q completed T4 n1 1 2026-03-11T00:00 2026-03-11T10:00");
    check_lines(
        &closed.corrected(&shared(&late)),
        "correction acme vision - - free -5 -5 -10.00
         correction zeta z - - free 5 5 10.00
         correction zeta z zoe T4 - 10 10 20.00",
    );
}

/// What is said otherwise later.
#[derive(Clone, Copy, Debug)]
enum Late {
    /// A stretch was longer.
    Longer(i64),
    /// A job is somebody else's.
    Owner(&'static str),
    /// It ended otherwise.
    State(JobState),
    /// It met a sick card.
    Sick,
    /// It was told of.
    Seen([i64; 4]),
    /// It was another's doing, and never was.
    Gone,
    /// A cost was another.
    Cost(i64),
}

fn any_late() -> impl Strategy<Value = (usize, Late)> {
    let late = prop_oneof![
        (1i64..9_000_000).prop_map(Late::Longer),
        prop::sample::select(vec!["acme", "globex", "late"]).prop_map(Late::Owner),
        prop::sample::select(vec![JobState::Completed, JobState::NodeFail, JobState::Preempted]).prop_map(Late::State),
        Just(Late::Sick),
        prop::sample::select(vec![[0, 10, 90, 0], [12, 80, 3, 5], [0; 4]]).prop_map(Late::Seen),
        Just(Late::Gone),
        (-500i64..5_000).prop_map(Late::Cost),
    ];
    (0usize..8, late)
}

/// Whatever of a month it is about; of a month without such a thing it says nothing.
fn tell(march: &mut March, which: usize, late: Late) {
    let jobs = march.world.attempts.len();
    let job = which.checked_rem(jobs);
    let stretches = march.world.stretches.len();
    match (late, job) {
        (Late::Longer(ms), _) => {
            if let Some(which) = which.checked_rem(stretches) {
                let stretch = &mut march.world.stretches[which];
                let end = stretch.during.end().checked_add_ms(ms).unwrap();
                stretch.during = Interval::new(stretch.during.start(), end).unwrap();
            }
        }
        (Late::Cost(minor), _) => {
            if let Some(which) = which.checked_rem(march.costs.len()) {
                let currency = march.book.currency();
                let amount = i128::from(minor) * currency.micros_per_minor();
                march.costs[which].amount = CostAmount::Fixed(Money::from_micros(amount, currency));
            }
        }
        (_, None) => {}
        (Late::Owner(org), Some(job)) => march.world.attempts[job].org = Some(org.into()),
        (Late::State(state), Some(job)) => march.world.attempts[job].state = state,
        (Late::Sick, Some(job)) => _ = march.sick.insert(march.world.attempts[job].key.clone()),
        (Late::Seen(percent), Some(job)) => {
            let is_of = |stretch: &&mut crate::world::Stretch| stretch.attempt == Some(job as u32);
            for stretch in march.world.stretches.iter_mut().filter(is_of) {
                let basis = Some(crate::cell::SeenBy::Both);
                stretch.told = vec![Told { during: stretch.during, basis, percent, watts: Some(250) }];
            }
        }
        (Late::Gone, Some(job)) => march.world.stretches.retain(|stretch| stretch.attempt != Some(job as u32)),
    }
}

type Payer<'a> = [Option<&'a Name>; 3];

fn by_payer(entries: &[Entry]) -> BTreeMap<Payer<'_>, i128> {
    let mut sums = BTreeMap::new();
    for Entry { key, amount, .. } in entries {
        *sums.entry([key.org.as_ref(), key.project.as_ref(), key.user.as_ref()]).or_default() += amount.micros();
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() })]

    /// LED-5, in every mode: what was signed stays as it is; originals and the corrections of two months are, payer by payer, what a ledger that knew
    /// everything at once bills; every correction points at an entry that stands or at none; told twice is told once.
    #[test]
    fn a_closed_month_and_its_corrections_are_what_all_facts_come_to(
        (mut march, zone) in any_month(),
        late in prop::collection::vec(prop::collection::vec(any_late(), 0..5), 2),
    ) {
        let mut closed = Closed::of(&march, zone);
        let originals: BTreeSet<EntryId> = closed.standing.iter().map(Entry::id).collect();
        let mut signed = vec![(month(), closed.canonical(&march, month()))];
        for facts in late {
            facts.into_iter().for_each(|(which, late)| tell(&mut march, which, late));
            let period = closed.open;
            let made = closed.corrected(&march);
            for entry in &made {
                prop_assert_eq!((entry.kind(), entry.period), (EntryKind::Correction, period));
                prop_assert_eq!(entry.key.original_period, month());
                prop_assert!(entry.amount.is_minor() && !originals.contains(&entry.id()));
                prop_assert!(entry.original_entry.as_ref().is_none_or(|id| originals.contains(id)));
            }
            signed.push((period, closed.canonical(&march, period)));
            for (period, text) in &signed {
                prop_assert_eq!(&closed.canonical(&march, *period), text);
            }
        }
        // In absorb mode late hours cost the rates of the closed month: those are facts of the ledger, too.
        let fresh = closed.again(&march);
        prop_assert_eq!(by_payer(&closed.standing), by_payer(&fresh.entries));
        if march.policy.mode == BillingMode::Rate {
            let fresh = worked_out(&march, zone, None, false);
            prop_assert_eq!(by_payer(&closed.standing), by_payer(&fresh.entries));
        }
        prop_assert_eq!(closed.corrected(&march), vec![]);
    }
}
