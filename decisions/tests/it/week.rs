//! A week of the simulated site in act mode, with faults, against what its holders really did.
//!
//! What counts, all from the simulator's truth and none from what was decided:
//!
//! - A *rest* is a time in which a holder did nothing at all. Inference and suspended jobs have none, since nobody would take them.
//! - A rest counts from the start-up grace of its class on (or, before the first work, from the limit for that). Of it, the window that it takes to
//!   believe it, the grace that its owner is given and the wait for a checkpoint can't be recovered by any rule that keeps its word: the *truly idle* time
//!   is what comes after these. It is held by nobody's need, whatever the job does later.
//! - *Recovered* is the part of it after the job was ended. What a job would have rested later, had it not been ended, is judged in the same way.
//! - *Touched* is a job that was asked for a checkpoint or ended less than a whole window after it last did anything.

use crate::site::{DAYS, MINUTE, Site, Told, seen};
use cardhour_actuators::What;
use cardhour_actuators::slurm::JobDeed;
use cardhour_books::demo::{CLUSTER, Deed};
use cardhour_decisions::decision::{Decision, Mode};
use cardhour_decisions::policy::{KubernetesPolicy, SlurmPolicy};
use cardhour_decisions::round::{Matter, NoticeOutcome, RoundInput, SeenCheckpoint, reads_from};
use cardhour_decisions::{KeptLease, ReclaimPolicy, RoundOutput, round};
use cardhour_domain::{AttemptKey, CardTime, Gap, Interval, Name, Reading, Timestamp};
use cardhour_scheduler_core::lease::ClassPolicy;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A generator of its own: SplitMix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn per_mille(&mut self, chance: u64) -> bool {
        self.next() % 1000 < chance
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Which faults there are. Unit: in a thousand.
#[derive(Clone, Copy)]
struct Faults {
    /// A node's minute is lost.
    gap: u64,
    /// A node's minute comes up to eight minutes late.
    late: u64,
    /// It comes twice.
    doubled: u64,
    /// A warning can't be delivered.
    warning_fails: u64,
    /// The program is killed after its rows were kept, and before anything was sent or done.
    killed_after: u64,
    /// It is killed before its rows were kept.
    killed_before: u64,
    /// All telemetry is away for an hour.
    hour_away: bool,
}

const NONE: Faults =
    Faults { gap: 0, late: 0, doubled: 0, warning_fails: 0, killed_after: 0, killed_before: 0, hour_away: false };
const ALL: Faults =
    Faults { gap: 10, late: 20, doubled: 50, warning_fails: 200, killed_after: 50, killed_before: 50, hour_away: true };

fn policy() -> ReclaimPolicy {
    // A row that comes later than this is too late; it makes the rounds of a test shorter.
    let mut policy = ReclaimPolicy { stale_after_ms: 10 * MINUTE, ..ReclaimPolicy::default() };
    // A site that wants its cards back: a model that is loaded has no longer lease, and an answer is waited for half an hour.
    let own = |times: &mut ClassPolicy| {
        times.loaded_lease_ms = times.lease_ms;
        times.grace_ms = 30 * MINUTE;
        times.checkpoint_wait_ms = 5 * MINUTE;
    };
    own(&mut policy.lease.other);
    policy.lease.classes.iter_mut().for_each(|(_, times)| own(times));
    policy.act.mode = Mode::Act;
    policy.act.clusters = vec![CLUSTER.into()];
    policy.act.slurm = Some(SlurmPolicy { clusters: vec![], conf: None, commands: None, timeout_ms: 20_000 });
    policy.act.kubernetes = Some(KubernetesPolicy {
        clusters: vec![],
        url: "https://k8s.example".into(),
        ca_file: None,
        token_file: None,
        timeout_ms: 10_000,
    });
    policy
}

/// What came of a week.
struct Week {
    site: Site,
    rows: Vec<Decision>,
    orders: BTreeMap<Name, (AttemptKey, Timestamp)>,
    alerts: BTreeSet<Name>,
    /// All that was decided, as text.
    text: String,
}

fn live(seed: u64, faults: Faults, days: i64) -> Week {
    let policy = policy();
    let mut site = Site::new(seed);
    let mut chance = Chance(seed ^ 0xC0FF_EE00);
    let start = site.week.start();
    let end = start.checked_add_ms(days * 24 * 60 * MINUTE).unwrap();
    let mut kept: Vec<KeptLease> = Vec::new();
    let mut books = Told::default();
    let mut on_their_way: Vec<(Timestamp, Told)> = Vec::new();
    let mut notices: Vec<NoticeOutcome> = Vec::new();
    let mut checkpoints: Vec<SeenCheckpoint> = Vec::new();
    let mut ends: Vec<(AttemptKey, Timestamp)> = Vec::new();
    let mut week = Week {
        site: Site::empty_like(),
        rows: vec![],
        orders: BTreeMap::new(),
        alerts: BTreeSet::new(),
        text: String::new(),
    };
    let mut known: BTreeSet<Name> = BTreeSet::new();
    let mut records = Vec::new();
    let away = Interval::new(
        start.checked_add_ms((2 * 24 + 10) * 60 * MINUTE).unwrap(),
        start.checked_add_ms((2 * 24 + 11) * 60 * MINUTE).unwrap(),
    )
    .unwrap();
    let none = BTreeMap::new();
    let mut at = start;
    while at < end {
        // The minute before `at` comes in, or doesn't.
        let minute = at.checked_add_ms(-MINUTE).unwrap();
        for (_, told) in site.told(minute) {
            let is_away = faults.hour_away && away.contains(minute);
            if is_away || chance.per_mille(faults.gap) {
                continue;
            }
            if chance.per_mille(faults.doubled) {
                let again = at.checked_add_ms(5 * MINUTE).unwrap();
                on_their_way.push((again, told.clone()));
            }
            if chance.per_mille(faults.late) {
                let later = at.checked_add_ms((1 + chance.below(8) as i64) * MINUTE).unwrap();
                on_their_way.push((later, told));
            } else {
                books.add(told);
            }
        }
        let (come, still): (Vec<_>, Vec<_>) = on_their_way.into_iter().partition(|(due, _)| *due <= at);
        on_their_way = still;
        come.into_iter().for_each(|(_, told)| books.add(told));
        for (key, ended_at) in ends.extract_if(.., |(_, ended_at)| *ended_at <= at) {
            site.ended.insert(key, ended_at);
        }
        // Accounting is read every five minutes.
        if at.unix_ms() % (5 * MINUTE) == 0 {
            records = site.records(at);
        }
        books.since(reads_from(at, &policy, &kept));
        let output: RoundOutput = round(RoundInput {
            at,
            policy: &policy,
            mode: Mode::Act,
            source: if faults.hour_away && away.contains(minute) {
                Reading::Missing(Gap::TimedOut)
            } else {
                Reading::Seen(())
            },
            opt_outs: Reading::Seen(()),
            running: &records,
            seen: &seen(&books, &site.devices),
            samples: &books.samples,
            activity: &books.activity,
            least_power_mw: &site.least_power_mw,
            kept: &kept,
            requests: &[],
            notices: &notices,
            checkpoints: &checkpoints,
            uids: &none,
        });
        let now = at;
        at = at.checked_add_ms(MINUTE).unwrap();
        if chance.per_mille(faults.killed_before) {
            continue;
        }
        for row in output.decisions {
            if known.insert(row.id.clone()) {
                let _ = writeln!(week.text, "{row:?}");
                week.rows.push(row);
            }
        }
        kept = output.leases;
        if chance.per_mille(faults.killed_after) {
            continue;
        }
        week.alerts.extend(output.alerts.into_iter().map(|alert| alert.alert));
        for warning in output.warnings {
            if let Matter::Warning { notice } = warning.matter {
                notices.retain(|outcome| outcome.job != warning.job);
                let fails = chance.per_mille(faults.warning_fails);
                let delivered = if fails { Err("mailbox full".into()) } else { Ok(now) };
                notices.push(NoticeOutcome { job: warning.job, notice, delivered });
            }
        }
        // An actuator carries each decision out once.
        for order in output.orders {
            let id: Name = order.action.decision.as_str().into();
            if week.orders.contains_key(&id) {
                continue;
            }
            let job = order.job.expect("no limits here");
            week.orders.insert(id, (job.clone(), now));
            let seen_as = site.deed_of(&job).seen_as.clone();
            match order.action.what {
                What::SlurmJob(action) => match action.deed {
                    JobDeed::AskCheckpoint { .. } => {
                        checkpoints.push(SeenCheckpoint { job, done_at: now.checked_add_ms(2 * MINUTE).unwrap() })
                    }
                    JobDeed::End { .. } => ends.push((seen_as, now.checked_add_ms(MINUTE).unwrap())),
                    JobDeed::Warn { .. } | JobDeed::Requeue => panic!("neither is asked for here"),
                },
                What::Kubernetes(_) => ends.push((seen_as, now.checked_add_ms(MINUTE).unwrap())),
                What::SlurmLimit(_) | What::Process(_) => panic!("there is none here"),
            }
        }
    }
    week.site = site;
    week
}

/// What was truly idle, what of it was recovered, and all rest. Whole milliseconds of parts of cards.
#[derive(Debug, Default)]
struct Count {
    idle: CardTime,
    recovered: CardTime,
    rest: CardTime,
    rest_recovered: CardTime,
}

fn truth(week: &Week, policy: &ReclaimPolicy, span: Interval) -> Count {
    let mut count = Count::default();
    for deed in week.site.deeds.values().filter(|deed| deed.class != "inference") {
        let class = cardhour_scheduler_core::work_class::WorkClass::from_name(deed.class);
        let times = policy.lease.of_class(class);
        let ended = week.site.ended.get(&deed.seen_as).copied();
        let judged_from = judged_from(deed, &times);
        let waits_ms = if deed.class == "training" { times.checkpoint_wait_ms } else { 0 };
        for rest in &deed.rests {
            let is_suspended = deed.suspended.is_some_and(|suspended| suspended.overlap(*rest).is_some());
            let Some(rest) = Interval::new(rest.start().max(judged_from), rest.end()).filter(|_| !is_suspended) else {
                continue;
            };
            let add = |from: Timestamp, to_idle: &mut CardTime, to_recovered: &mut CardTime| {
                let Some(during) = Interval::new(from, rest.end()).and_then(|during| during.overlap(span)) else {
                    return;
                };
                let cards = deed.card_uuids.len() as i128;
                let time =
                    |during: Interval| CardTime::from_part_ms(CardTime::of(deed.share, during).part_ms() * cards);
                *to_idle += time(during);
                let after = ended.and_then(|ended| Interval::new(during.start().max(ended), during.end()));
                *to_recovered += after.map_or(CardTime::ZERO, time);
            };
            let believed = rest.start().max(span.start());
            let lead_ms = policy.lease.window_ms + times.grace_ms + waits_ms;
            add(believed.checked_add_ms(lead_ms).unwrap(), &mut count.idle, &mut count.recovered);
            add(believed, &mut count.rest, &mut count.rest_recovered);
        }
    }
    count
}

/// From when on a holder is judged: after its start-up grace; one that hasn't worked yet later.
fn judged_from(deed: &Deed, times: &ClassPolicy) -> Timestamp {
    let start = deed.during.start();
    let limit = start.checked_add_ms(times.first_use_limit_ms).unwrap();
    let grace = start.checked_add_ms(times.startup_grace_ms).unwrap();
    let first_work = match deed.rests.first() {
        Some(rest) if rest.start() == start => rest.end(),
        _ => start,
    };
    first_work.max(grace).min(limit)
}

/// Since when a holder had done nothing at an instant; none while it works.
fn at_rest_since(deed: &Deed, at: Timestamp) -> Option<Timestamp> {
    let rest = deed.rests.iter().find(|rest| rest.contains(at) || rest.end() == at)?;
    Some(rest.start())
}

fn nobody_at_work_was_touched(week: &Week, policy: &ReclaimPolicy) -> usize {
    let mut touched = 0;
    for (key, at) in week.orders.values() {
        let deed = week.site.deed_of(key);
        assert_ne!(deed.class, "inference", "{key}");
        let since = at_rest_since(deed, *at).unwrap_or_else(|| panic!("{key} was at work at {at}"));
        assert!(at.ms_since(since) >= policy.lease.window_ms, "{key} worked at {since} and was touched at {at}");
        assert!(!deed.suspended.is_some_and(|during| during.contains(*at)), "{key} was suspended at {at}");
        touched += 1;
    }
    touched
}

fn per_mille(part: CardTime, whole: CardTime) -> i128 {
    part.part_ms() * 1000 / whole.part_ms().max(1)
}

fn hours(time: CardTime) -> String {
    time.card_hours().round_dp(1).to_string()
}

fn judge(seed: u64, faults: Faults, days: i64) -> Week {
    let week = live(seed, faults, days);
    let policy = policy();
    let touched = nobody_at_work_was_touched(&week, &policy);
    let start = week.site.week.start();
    let span = Interval::new(start, start.checked_add_ms(days * 24 * 60 * MINUTE).unwrap()).unwrap();
    let count = truth(&week, &policy, span);
    println!(
        "seed {seed}, {days} days: {} of {} truly idle card-hours recovered ({} per mille), of all rest {} of {}; {touched} orders, {} ended, alerts {:?}",
        hours(count.recovered),
        hours(count.idle),
        per_mille(count.recovered, count.idle),
        hours(count.rest_recovered),
        hours(count.rest),
        week.site.ended.len(),
        week.alerts,
    );
    assert!(!week.site.ended.is_empty(), "seed {seed}: nothing was ended");
    assert!(per_mille(count.recovered, count.idle) >= 950, "seed {seed}: too little was recovered");
    week
}

#[test]
fn in_a_week_nearly_all_idle_time_is_recovered_and_no_work_is_touched() {
    judge(1, NONE, DAYS);
}

#[test]
fn and_so_with_gaps_late_and_doubled_rows_a_source_that_is_away_kills_and_warnings_that_fail() {
    let week = judge(2, ALL, DAYS);
    assert!(week.alerts.contains("no_telemetry"), "{:?}", week.alerts);
    assert!(week.alerts.contains("warning_undeliverable"), "{:?}", week.alerts);
    // What was killed in between was done once: an order is of one decision, and each is a row.
    let stops: BTreeSet<&Name> = week.rows.iter().filter(|row| &*row.action == "stop").map(|row| &row.id).collect();
    let ordered: BTreeSet<&Name> = week.orders.keys().collect();
    assert!(stops.is_subset(&ordered), "what was decided was done in the end");
    for (key, _) in week.site.ended.iter() {
        let times = week.orders.values().filter(|(job, _)| week.site.deed_of(job).seen_as == *key).count();
        assert!(times <= 2, "{key}: asked for a checkpoint once, ended once");
    }
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let (a, b) = (live(3, ALL, 1), live(3, ALL, 1));
    assert!(!a.text.is_empty());
    assert!(a.text == b.text, "two runs of one seed differ");
}
