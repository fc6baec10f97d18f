use super::*;
use crate::idle::{IdlePolicy, idle};
use crate::telemetry::drawn::{MINUTE, holdings, key, minutes, readings, telemetry};
use proptest::prelude::*;
use rust_decimal::Decimal;

/// Facts from `a development failed 30, b training running`: class, state and the minute of a checkpoint, `-` for what isn't known.
fn facts(text: &str) -> BTreeMap<AttemptKey, AttemptFacts> {
    let fact = |text: &str| {
        let mut words = text.split_whitespace();
        let name = words.next()?;
        let class = words.next().filter(|class| *class != "-").map(Name::from);
        let state = words
            .next()
            .map_or(JobState::Running, |name| JobState::ALL.into_iter().find(|s| s.name() == name).unwrap());
        let checkpoint_at =
            words.next().map(|minute| Timestamp::from_unix_s((minute.parse::<f64>().unwrap() * 60.0) as i64));
        Some((key(name), AttemptFacts { class, state, checkpoint_at }))
    };
    text.split(',').filter_map(fact).collect()
}

fn split_of(holdings: &[Holding], facts: &BTreeMap<AttemptKey, AttemptFacts>, seen: &Telemetry) -> Split {
    let idle = idle(holdings, facts, seen, &IdlePolicy::default());
    split(holdings, facts, &idle, seen, &[minutes(0, 1440)])
}

/// Card-minutes of each part over all rows.
type Minutes = BTreeMap<&'static str, CardTime>;

fn sums(split: &Split, holdings: &[Holding], index: u32) -> Minutes {
    let mut sums = Minutes::new();
    for (bucket_start, piece) in holdings[index as usize].during.buckets() {
        let row = split.of(index, bucket_start, CardTime::of(holdings[index as usize].share, piece));
        let parts = [
            ("effective", row.effective),
            ("underused", row.underused),
            ("idle", row.idle),
            ("lost", row.lost),
            ("unseen", row.unseen),
        ];
        for (name, time) in parts {
            *sums.entry(name).or_default() += time;
        }
    }
    sums
}

/// In card-minutes, what isn't zero, a line a holding.
#[track_caller]
fn check(seen: &str, held: &str, about: &str, expected: &str) {
    let holdings = holdings(held);
    let split = split_of(&holdings, &facts(about), &telemetry(seen));
    let line = |index: u32| {
        let sums = sums(&split, &holdings, index);
        let parts = ["effective", "underused", "idle", "lost", "unseen"].map(|name| (name, sums[name]));
        let minute = i128::from(CardShare::PARTS_PER_CARD) * i128::from(MINUTE);
        let text: Vec<String> = parts
            .iter()
            .filter(|(_, time)| !time.is_zero())
            .map(|(name, time)| {
                format!("{name} {}", (Decimal::from(time.part_ms()) / Decimal::from(minute)).round_dp(4).normalize())
            })
            .collect();
        format!("{index} {}", text.join(" "))
    };
    let text: Vec<String> = (0..holdings.len() as u32).map(line).collect();
    assert_eq!(text.join("\n"), expected);
}

/// By hand: 10 min at 50 % are 5 busy and 5 not; 40 min of nothing are idle; 5 min nobody read.
#[test]
fn every_minute_goes_to_the_first_part_that_matches() {
    check("g0 50x20 0x40 ?x5 80x10", "a g0 1/1 0..75", "a development", "0 effective 18 underused 12 idle 40 unseen 5");
}

/// M14: telemetry is down for a third of the window. The rate is per observed minute: 2/3 seen, all of it effective.
#[test]
fn m14_time_that_nobody_read_lowers_coverage_and_not_efficiency() {
    check("g0 100x10 ?x5", "a g0 1/1 0..15", "", "0 effective 10 unseen 5");
}

/// M11: processes are seen and the device isn't: no part below zero, the difference is unseen.
#[test]
fn m11_a_device_that_was_not_read_is_unseen_whatever_its_processes_say() {
    check("g0 ?x20\n g0:a 40x20", "a g0 1/1 0..20", "", "0 unseen 20");
}

/// M16: by allocation both hold half a card for an hour; by use one worked four times as much as the other.
#[test]
fn m16_use_is_weighed_by_activity_and_holding_is_not() {
    check(
        "g0 50x60\n g0:a 40x60\n g0:b 10x60",
        "a g0 1/2 0..60\n b g0 1/2 0..60",
        "",
        "0 effective 24 underused 6\n1 effective 6 underused 24",
    );
}

/// M18: a notebook of 18 h, of which 20 minutes did something: both lines are there. By hand: 1080 = 15 grace + 20 active + 1045 idle.
#[test]
fn m18_a_notebook_shows_what_was_active_and_what_was_idle() {
    check("g0 0x15 100x20 0x1045", "a g0 1/1 0..1080", "a development", "0 effective 20 underused 15 idle 1045");
}

/// C02, C07, C13: a slice without activity has no use, not a use of zero; its neighbour has.
#[test]
fn c02_a_slice_without_activity_is_unseen() {
    check(
        "g0 -x70\n g0/s1 -x70\n g0/s2 50x70",
        "a g0/s1 1/7 0..70\n b g0/s2 2/7 0..70",
        "",
        "0 unseen 10\n1 effective 10 underused 10",
    );
}

/// C04, LED-3: what contradicts itself is neither busy nor idle.
#[test]
fn c04_a_suspect_sample_without_its_use_is_unseen() {
    check("g0 !x60", "a g0 1/1 0..60", "a development", "0 unseen 60");
}

/// C21: power alone is no work. By hand: 110 W of 450 W, over the floor of 63 W: not idle, and nothing of it is effective.
#[test]
fn c21_power_alone_is_not_effective() {
    check("g0 limit 450\n g0 0,power=20x1 0,power=110x99", "a g0 1/1 0..100", "a development", "0 underused 100");
}

/// R01: no data is unseen, never idle.
#[test]
fn r01_what_nobody_saw_is_unseen() {
    check("g1 0x100", "a g0 1/1 0..100\n b - 8/1 0..100", "", "0 unseen 100\n1 unseen 800");
}

/// R20 in the split: the unused card of a working job isn't idle, it is underused.
#[test]
fn r20_the_unused_card_of_a_working_job_is_underused() {
    check(
        "g0 100x100\n g1 0x100",
        "a g0 1/1 0..100\n a g1 1/1 0..100",
        "a development",
        "0 effective 100\n1 underused 100",
    );
}

/// K19: a counter of a holder's processes stands at zero for an hour while the card is 15 % busy. Who has the card alone is as busy as the card: 9 of 60
/// minutes, and never idle.
#[test]
fn k19_a_counter_that_stands_at_zero_does_not_make_its_holder_idle() {
    check("g0 15x60\n g0:a 0x60", "a g0 1/1 0..60", "a development", "0 effective 9 underused 51");
}

/// K18: processes add up to 150 % on a card that was 90 % busy. By hand: 100 and 50 of 150 are 60 % and 30 %.
#[test]
fn k18_processes_add_up_to_no_more_than_the_device() {
    check(
        "g0 90x10\n g0:a 100x10\n g0:b 50x10",
        "a g0 1/1 0..10\n b g0 0/1 0..10",
        "",
        "0 effective 9 underused 1\n1 ",
    );
    check(
        "g0 90x100\n g0:a 100x100\n g0:b 50x100",
        "a g0 2/3 0..100\n b g0 1/3 0..100",
        "",
        "0 effective 60 underused 6.6667\n1 effective 30 underused 3.3333",
    );
}

/// Two holders and nothing that tells them apart: unseen, unless there is nothing to tell apart. When one leaves, it is all the other's.
#[test]
fn where_nothing_tells_holders_apart_it_is_unseen() {
    check(
        "g0 60x10 0x10 60x10",
        "a g0 1/2 0..20\n b g0 1/2 0..30",
        "",
        "0 underused 5 unseen 5\n1 effective 5 underused 5 unseen 5",
    );
    // One of them is told; what is left of the busy time may be a stranger's.
    check("g0 60x10\n g0:a 20x10", "a g0 1/2 0..10\n b g0 1/2 0..10", "", "0 effective 2 underused 3\n1 unseen 5");
}

/// By hand: half a card's holder kept all of it busy for 10 minutes: 5 effective, 5 over.
#[test]
fn work_beyond_the_share_is_over_share_and_not_effective() {
    let held = holdings("a g0 1/2 0..20");
    let split = split_of(&held, &facts(""), &telemetry("g0 100x10 0x10"));
    let half = CardShare::from_fraction(1, 2).unwrap();
    let over = CardTime::of(half, minutes(0, 10));
    assert_eq!(split.over_share, [OverShare { holding: 0, bucket_start: Timestamp::from_unix_ms(0), over }]);
    let sums = sums(&split, &held, 0);
    // A rest later isn't set off against it: of 10 card-minutes held, 5 effective and 5 underused.
    assert_eq!(
        (sums["effective"], sums["underused"]),
        (CardTime::of(half, minutes(0, 10)), CardTime::of(half, minutes(10, 20)))
    );
}

/// A slice of 3/7 that is 50 % busy, all in one bucket of 15 minutes.
#[test]
fn a_slice_is_busy_in_parts_of_its_own_share() {
    let held = holdings("a g0/s1 3/7 0..10");
    let split = split_of(&held, &facts(""), &telemetry("g0/s1 50x10"));
    // 18,018,000 × 3/7 = 7,722,000; half of it 3,861,000, for 600,000 ms.
    assert_eq!(split.rows[0].effective, CardTime::from_part_ms(3_861_000 * 600_000));
    assert_eq!(split.over_share, []);
}

/// R19: failed at minute 50 with a checkpoint at 30. What was unseen stays unseen; before the checkpoint all is as it was.
#[test]
fn what_was_seen_since_the_last_checkpoint_of_a_failed_attempt_is_lost() {
    let (seen, held) = ("g0 80x40 ?x5 80x5", "a g0 1/1 0..50");
    check(seen, held, "a training failed 30", "0 effective 24 underused 6 lost 15 unseen 5");
    check(seen, held, "a training failed", "0 lost 45 unseen 5");
    check(seen, held, "a training completed 30", "0 effective 36 underused 9 unseen 5");
    // Lost comes before idle: of 100 minutes of which 85 did nothing.
    check("g0 0x100", "a g0 1/1 0..100", "a development timeout", "0 lost 100");
    // A checkpoint in the middle of a tick cuts it.
    check("g0 100x2", "a g0 1/1 0..2", "a - node_fail 1.5", "0 effective 1.5 lost 0.5");
}

#[test]
fn work_is_lost_by_failing_and_by_giving_way() {
    let losing: Vec<&str> = JobState::ALL.into_iter().filter(|state| loses_work(*state)).map(JobState::name).collect();
    assert_eq!(losing, ["failed", "timeout", "out_of_memory", "node_fail", "preempted", "requeued"]);
}

/// One row a bucket, also where activity gives way to the duty cycle in it.
#[test]
fn a_bucket_of_two_bases_says_so() {
    let held = holdings("a g0 1/1 0..60");
    let split = split_of(&held, &facts(""), &telemetry("g0 50x15 50x5 50%x10 50%x15"));
    let bases: Vec<_> = split.rows.iter().map(|row| row.basis.name()).collect();
    assert_eq!(bases, [Some("gpm"), Some("mixed"), Some("duty_cycle")]);
    // The fourth bucket has no row: it is unseen as a whole.
    let fourth = Timestamp::from_unix_ms(45 * MINUTE);
    assert_eq!(split.of(0, fourth, CardTime::from_part_ms(7)), SplitRow::unseen(fourth, 0, CardTime::from_part_ms(7)));
    assert_eq!(RowBasis::Unseen.name(), None);
}

/// Only what lies in the spans has rows.
#[test]
fn time_outside_of_the_spans_has_no_rows() {
    let held = holdings("a g0 1/1 0..600");
    let seen = telemetry("g0 50x600");
    let spans = [minutes(60, 120), minutes(300, 315)];
    let split = split(&held, &BTreeMap::new(), &Idle::default(), &seen, &spans);
    let buckets: Vec<i64> = split.rows.iter().map(|row| row.bucket_start.unix_ms() / MINUTE).collect();
    assert_eq!(buckets, [60, 75, 90, 105, 300]);
    assert!(
        split
            .rows
            .iter()
            .all(|row| row.unseen.is_zero() && row.held() == CardTime::of(CardShare::CARD, minutes(0, 15)))
    );
}

fn any_drawing() -> impl Strategy<Value = String> {
    let what = prop::sample::select(vec!["0", "0", "33.333", "50%", "100", "?", "-", "!"]);
    let stretches = prop::collection::vec((what, 1usize..40), 1..10);
    stretches.prop_map(|all| all.iter().map(|(what, times)| format!("{what}x{times} ")).collect())
}

/// Up to three holders that take turns and overlap on one card, never more than it.
fn any_held() -> impl Strategy<Value = Vec<Holding>> {
    let one = (0i64..200, 1i64..200, 1u32..=3);
    prop::collection::vec(one, 1..=3).prop_map(|all| {
        let lines = all
            .iter()
            .enumerate()
            .map(|(i, (from, length, of))| format!("{i} g0 1/{} {from}..{}\n", of * 3, from + length));
        holdings(&lines.collect::<String>())
    })
}

fn total(split: &Split, holdings: &[Holding]) -> BTreeMap<AttemptKey, Vec<CardTime>> {
    let mut total: BTreeMap<AttemptKey, Vec<CardTime>> = BTreeMap::new();
    for (index, holding) in holdings.iter().enumerate() {
        let sums = sums(split, holdings, index as u32).into_values();
        let of_key = total.entry(holding.claim.key.clone()).or_insert_with(|| vec![CardTime::ZERO; 5]);
        of_key.iter_mut().zip(sums).for_each(|(all, one)| *all += one);
    }
    total
}

proptest! {
    /// The sums of each row are asserted in [`Split::of`]; here that they pass no holding, and that shared busy time passes no device.
    #[test]
    fn parts_add_up_to_what_was_held(seen in any_drawing(), own in prop::collection::vec(any_drawing(), 3), held in any_held()) {
        let mut text = format!("g0 {seen}\n");
        for (i, own) in own.iter().enumerate() {
            text += &format!("g0:{i} {}\n", own.replace('!', "-").replace('%', ""));
        }
        let telemetry = telemetry(&text);
        let split = split_of(&held, &facts("0 development, 1 training failed 50"), &telemetry);
        let mut effective = CardTime::ZERO;
        for (index, holding) in held.iter().enumerate() {
            let sums = sums(&split, &held, index as u32);
            prop_assert_eq!(sums.values().copied().sum::<CardTime>(), CardTime::of(holding.share, holding.during));
            effective += sums["effective"];
        }
        let busy: CardTime = telemetry.device(&"g0".into(), &"g0".into()).iter().map(|tick| {
            let parts = tick.sm_active.map_or(0, |sm| i64::from(sm.thousandths()) * 18_018 / 100);
            CardTime::of(CardShare::from_parts(parts), tick.during)
        }).sum();
        prop_assert!(effective <= busy, "more work than the device did");
    }

    /// LED-7.
    #[test]
    fn cutting_holdings_anywhere_changes_no_total(seen in any_drawing(), own in any_drawing(), held in any_held(), cuts in prop::collection::vec(1i64..24_000_000, 0..5)) {
        let telemetry = telemetry(&format!("g0 {seen}\n g0:0 {}", own.replace('!', "-").replace('%', "")));
        let about = facts("0 development failed 120, 1 development");
        let mut pieces: Vec<Holding> = held.clone();
        for cut in cuts {
            let at = Timestamp::from_unix_ms(cut);
            pieces = pieces.into_iter().flat_map(|piece| {
                let sides = [Interval::new(piece.during.start(), piece.during.end().min(at)), Interval::new(piece.during.start().max(at), piece.during.end())];
                sides.into_iter().flatten().map(move |during| Holding { during, ..piece.clone() }).collect::<Vec<_>>()
            }).collect();
        }
        let whole = total(&split_of(&held, &about, &telemetry), &held);
        prop_assert_eq!(total(&split_of(&pieces, &about, &telemetry), &pieces), whole);
    }

    /// LED-4: readings in another order and twice give the same split.
    #[test]
    fn order_and_repeats_of_readings_change_no_row(seen in any_drawing(), held in any_held()) {
        let forward = telemetry(&format!("g0 {seen}"));
        let mut twice = readings(&format!("g0 {seen}\n g0 {seen}"));
        twice.device(&"g0".into(), &"g0".into()).reverse();
        prop_assert_eq!(split_of(&held, &facts(""), &twice.settle().0), split_of(&held, &facts(""), &forward));
    }

    /// LED-3: taking readings away makes nothing idle or busy.
    #[test]
    fn nothing_missing_becomes_idle_or_busy(seen in any_drawing(), held in any_held(), gone in prop::collection::btree_set(0usize..200, 0..50)) {
        let full = telemetry(&format!("g0 {seen}"));
        let mut thinned = full.clone();
        let ticks = thinned.devices.get_mut(&("g0".into(), "g0".into()));
        if let Some(ticks) = ticks {
            let mut place = 0;
            ticks.retain(|_| { place += 1; !gone.contains(&(place - 1)) });
        }
        let about = facts("0 development, 1 development, 2 development");
        let (before, after) = (split_of(&held, &about, &full), split_of(&held, &about, &thinned));
        for index in 0..held.len() as u32 {
            let (before, after) = (sums(&before, &held, index), sums(&after, &held, index));
            prop_assert!(after["unseen"] >= before["unseen"]);
            // What was idle and isn't any more may become effective: minutes of a burst inside a stretch.
            prop_assert!(after["effective"] <= before["effective"] + before["idle"]);
        }
    }
}
