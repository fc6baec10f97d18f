//! Our own rules, and the reports from the field that they answer. Ids as `q04` are those of the list of field reports.

use cardhour_domain::{CardShare, CardTime};
use cardhour_scheduler_core::capacity::BandEffect;
use cardhour_scheduler_core::policy::{Fairness, GiveBack, MinRun, MinRunTable, ShareRules};
use cardhour_scheduler_core::snapshot::{Piece, Reservation};
use cardhour_scheduler_core::{Policy, audit, decide};

use crate::table::{bare, check, check_pool, noon, read};

const CARD: i64 = CardShare::PARTS_PER_CARD;

#[test]
fn q01_two_shares_of_more_than_half_a_card_do_not_fit_into_one() {
    check(
        "queue a: 1 max 1
         host n1: 4
         waits x in a: 0.6, since 2
         waits y in a: 0.6, since 1",
        &bare(),
        &["start x x1 on n1", "wait y OverFairShare"],
    );
}

#[test]
fn q03_a_limit_without_measure_overflows_nothing() {
    let mut pool = read(
        "queue a: 1
         queue b: 1
         queue c under a: 1
         host n1: 2
         waits x in c: 1",
    );
    for queue in &mut pool.queues {
        for quota in queue.quota.values_mut() {
            quota.nominal = i64::MAX;
            quota.max = Some(i64::MAX);
            quota.borrow_limit = Some(i64::MAX);
        }
    }
    check_pool(&pool, &bare(), &["start x x1 on n1"]);
}

/// 8 cards, 2 + 2 deserved, equal weights: 4 and 4. `b` is beyond its quota and still under its share.
#[test]
fn q04_reclaim_goes_down_to_the_fair_share_and_not_to_quota() {
    check(
        "queue a: 2
         queue b: 2
         host n1: 8
         runs r1 in a: 2 on n1, for 400 s
         runs r2 in a: 2 on n1, for 300 s
         runs r3 in a: 2 on n1, for 200 s
         runs r4 in a: 2 on n1, for 100 s
         waits x in b: 4
         waits y in b: 1, priority -1",
        &bare(),
        &["end r4 for x", "end r3 for x", "keep x x1 on n1 after r3 r4", "wait y OverFairShare"],
    );
}

#[test]
fn q06_two_equal_borrowers_end_nobody() {
    let policy =
        Policy { fairness: Fairness::BorrowShare(ShareRules { final_at_most: true, initial_less: true }), ..bare() };
    check(
        "queue pool: 4
         queue a under pool: 2
         queue b under pool: 2
         runs r1 in a: 4
         runs r2 in b: 4
         waits x in a: 1",
        &policy,
        &["wait x QuotaUsed"],
    );
}

#[test]
fn q07_a_job_that_would_pass_its_quota_is_told_so() {
    check(
        "queue a: 10
         queue b: 10
         host n1: 19
         runs r1 in a: 10 on n1
         runs r2 in b: 9 on n1
         waits x in b: 2",
        &bare(),
        &["wait x OverFairShare"],
    );
}

#[test]
fn q11_what_is_leaving_still_holds_its_cards() {
    check(
        "queue a: 4
         host n1: 4
         runs r1 in a: 4 on n1, leaving
         waits x in a: 2",
        &bare(),
        &["keep x x1 on n1 after r1"],
    );
}

#[test]
fn q13_a_gang_goes_whole() {
    check(
        "queue a: 0
         queue b: 8
         host n1: 4
         host n2: 4
         runs gang in a: 4, workers 2, on n1+n2
         waits x in b: 2",
        &bare(),
        &["end gang for x", "keep x x1 on n1 after gang"],
    );
}

#[test]
fn q14_an_owner_may_end_a_gang_larger_than_the_excess() {
    check(
        "queue a: 10
         queue b: 2
         host n1: 12
         runs gang in a: 1, workers 12, on n1
         waits x in b: 2",
        &bare(),
        &["end gang for x", "keep x x1 on n1 after gang"],
    );
}

/// 1 card over a day: 24 card-hours, of which 23 were saved an hour ago; the other has run two hours and saved nothing.
#[test]
fn the_job_that_saved_its_work_last_goes_first() {
    check(
        "queue a: 0
         queue b: 1
         host n1: 2
         runs young in a: 1 on n1, for 7200 s
         runs saved in a: 1 on n1, for 86400 s, seen 3600
         waits x in b: 1",
        &bare(),
        &["end saved for x", "keep x x1 on n1 after saved"],
    );
}

#[test]
fn a_job_that_does_not_come_back_by_itself_is_spared() {
    check(
        "queue a: 0
         queue b: 1
         host n1: 2
         runs once in a: 1 on n1, for 60 s, unrestartable
         runs again in a: 1 on n1, for 7200 s, priority 5
         waits x in b: 1",
        &bare(),
        &["end again for x", "keep x x1 on n1 after again"],
    );
}

const FULL_OF_OWNERS: &str = "queue a: 4
     queue b: 4
     host n1: 8
     runs r1 in a: 4 on n1
     runs r2 in b: 4 on n1";

#[test]
fn an_approved_critical_window_ends_others_within_their_quota() {
    check(
        &format!("{FULL_OF_OWNERS}\nwaits x in a: 2, critical"),
        &bare(),
        &["end r1 for x", "keep x x1 on n1 after r1"],
    );
}

#[test]
fn a_window_approved_by_its_asker_counts_for_nothing() {
    check(&format!("{FULL_OF_OWNERS}\nwaits x in a: 2, self-approved"), &bare(), &["wait x OverFairShare"]);
}

#[test]
fn a_window_that_nobody_approved_counts_for_nothing() {
    check(&format!("{FULL_OF_OWNERS}\nwaits x in a: 2, unapproved"), &bare(), &["wait x OverFairShare"]);
}

#[test]
fn a_window_that_is_over_counts_for_nothing() {
    check(&format!("{FULL_OF_OWNERS}\nwaits x in a: 2, expired"), &bare(), &["wait x OverFairShare"]);
}

#[test]
fn a_job_is_out_of_reach_in_its_window_and_within_it_after() {
    let pool = |mark: &str| {
        format!(
            "queue a: 0
             queue b: 2
             host n1: 2
             runs r1 in a: 2 on n1, {mark}
             waits x in b: 2"
        )
    };
    check(&pool("critical"), &bare(), &["wait x QuotaUsed"]);
    check(&pool("expired"), &bare(), &["end r1 for x", "keep x x1 on n1 after r1"]);
}

fn least_run(seconds: i64) -> Policy {
    let least = Some(seconds * 1_000);
    let default = MinRun { preempt_ms: least, reclaim_ms: least };
    Policy { min_run: MinRunTable { default, ..MinRunTable::default() }, ..bare() }
}

#[test]
fn a_job_runs_its_least_before_it_is_ended() {
    let pool = |ran: u32| {
        format!(
            "queue a: 0
             queue b: 2
             host n1: 2
             runs r1 in a: 2 on n1, for {ran} s
             waits x in b: 2"
        )
    };
    check(&pool(1_799), &least_run(1_800), &["wait x QuotaUsed"]);
    check(&pool(1_800), &least_run(1_800), &["end r1 for x", "keep x x1 on n1 after r1"]);
}

#[test]
fn each_time_a_job_was_ended_doubles_its_least_run() {
    let pool = |ran: u32| {
        format!(
            "queue a: 0
             queue b: 2
             host n1: 2
             runs r1 in a: 2 on n1, for {ran} s, ended 2
             waits x in b: 2"
        )
    };
    check(&pool(7_199), &least_run(1_800), &["wait x QuotaUsed"]);
    check(&pool(7_200), &least_run(1_800), &["end r1 for x", "keep x x1 on n1 after r1"]);
}

#[test]
fn inside_its_least_run_a_job_may_still_give_back_its_surplus() {
    check(
        "queue a: 0
         queue b: 1
         host n1: 2
         runs r1 in a: 1, workers 2, least 1, on n1, for 10 s
         waits x in b: 1",
        &least_run(1_800),
        &["shrink r1 by 1 for x", "keep x x1 on n1 after r1"],
    );
}

#[test]
fn a_job_that_was_ended_three_times_today_is_left_alone() {
    check(
        "queue a: 0
         queue b: 2
         host n1: 2
         runs r1 in a: 2 on n1, ended 3
         waits x in b: 2",
        &Policy { preemptions_a_day: Some(3), ..bare() },
        &["wait x QuotaUsed"],
    );
}

#[test]
fn a_job_that_was_ended_lately_is_left_alone_and_waits_behind_others() {
    let policy = Policy { cool_down_ms: 1_800_000, ..bare() };
    check(
        "queue a: 0
         queue b: 2
         host n1: 2
         runs r1 in a: 2 on n1, last 600
         waits x in b: 2",
        &policy,
        &["wait x QuotaUsed"],
    );
    check(
        "queue a: 1
         host n1: 1
         waits old in a: 1, priority 5, since 900, last 600
         waits new in a: 1, since 10",
        &policy,
        &["start new x1 on n1", "wait old OverFairShare"],
    );
}

/// 10 ordinary jobs, 20 %: two. The third of the owner's jobs waits for the next round.
#[test]
fn not_more_jobs_are_ended_at_once_than_the_budget_allows() {
    let mut pool = String::from("queue a: 0\nqueue b: 10\nhost n1: 10\n");
    for number in 0..10 {
        pool += &format!("runs r{number} in a: 1 on n1, for {} s\n", 1_000 + number);
        if number < 3 {
            pool += &format!("waits x{number} in b: 1, since {}\n", 100 - number);
        }
    }
    check(
        &pool,
        &Policy { disruption_per_mille: Some(200), ..bare() },
        &[
            "end r0 for x0",
            "keep x0 x1 on n1 after r0",
            "end r1 for x1",
            "keep x1 x1 on n1 after r1",
            "wait x2 BudgetSpent",
        ],
    );
}

#[test]
fn jobs_on_their_way_out_count_against_the_budget() {
    check(
        "queue a: 0
         queue b: 4
         host n1: 5
         runs r1 in a: 1 on n1, leaving, pinned
         runs r2 in a: 4 on n1
         waits x in b: 4",
        &Policy { disruption_per_mille: Some(200), ..bare() },
        &["wait x BudgetSpent"],
    );
}

/// 3 ordinary jobs, 20 %: one. The owner of 4 lacks 2: the two jobs of 1 lose least and are two, the job of 2 is enough by itself.
#[test]
fn a_guarantee_is_met_by_one_large_job_where_only_one_may_be_ended() {
    let pool = |large: &str| {
        format!(
            "queue a: 0
             queue b: 4
             host n1: 6
             runs own in b: 2 on n1, pinned
             runs small1 in a: 1 on n1, for 60 s
             runs small2 in a: 1 on n1, for 60 s
             runs large in a: 2 on n1, for 86400 s, {large}
             waits x in b: 2"
        )
    };
    let one = Policy { disruption_per_mille: Some(200), ..bare() };
    check(&pool(""), &one, &["end large for x", "keep x x1 on n1 after large"]);
    // Where the large one can't go, the two small ones would be enough, and only one of them may go: said as it is, with nobody ended for others.
    check(&pool("pinned"), &one, &["wait x BudgetTooSmall"]);
    // Where nobody of them may go at all, it isn't the budget that keeps them.
    let pinned = pool("pinned").replace("for 60 s", "pinned");
    check(&pinned, &one, &["wait x QuotaUsed"]);
}

/// By quota alone and priority, as by entitlement.
#[test]
fn a_guarantee_is_met_by_one_large_job_where_quota_alone_decides() {
    check(
        "queue pool: 0
         queue a under pool: 0
         queue b under pool: 6
         runs small1 in a: 1, for 60 s
         runs small2 in a: 1, for 60 s
         runs large in a: 2, for 86400 s
         runs own in b: 2, priority 9
         waits x in b: 2",
        &Policy { disruption_per_mille: Some(200), fairness: Fairness::None, ..bare() },
        &["end large for x", "keep x x1 after large"],
    );
}

/// Of 1,000 per mille of three jobs all may go; of 400 two, and the two largest are enough for 5 where any other two aren't.
#[test]
fn the_largest_jobs_go_where_only_a_few_may_be_ended() {
    let pool = "queue a: 0
         queue b: 9
         host n1: 9
         runs j1 in a: 1 on n1, for 10 s
         runs j2 in a: 2 on n1, for 10 s
         runs j3 in a: 2 on n1, for 10 s
         runs j4 in a: 1 on n1, for 10 s
         runs j5 in a: 3 on n1, for 10 s
         waits x in b: 5";
    check(
        pool,
        &Policy { disruption_per_mille: Some(400), ..bare() },
        &["end j5 for x", "end j2 for x", "keep x x1 on n1 after j2 j5"],
    );
}

#[test]
fn a_job_of_a_queue_without_quota_is_not_told_that_it_is_within_it() {
    let words = |text: &str| -> Vec<String> {
        let pool = read(text);
        let plan = decide(&pool, &bare());
        assert_eq!(audit(&pool, &bare(), &plan), []);
        plan.steps.iter().map(|step| step.words()).collect()
    };
    assert_eq!(
        words("queue a: weight 1\nhost n1: 4\nwaits x in a: 1"),
        ["x starts with 1 card on n1: the cards are free, and no quota speaks of them"]
    );
    assert_eq!(
        words("queue org: 2\nqueue a under org: weight 1\nhost n1: 4\nwaits x in a: 1"),
        ["x starts with 1 card on n1: it is within the quota of org, above its queue"]
    );
    assert_eq!(
        words("queue a: 1\nhost n1: 4\nwaits x in a: 1"),
        ["x starts with 1 card on n1: it is within its queue's quota"]
    );
}

/// The owner is owed 4 and gets 1 in a round; its second job waits. A critical one doesn't.
#[test]
fn quota_is_called_back_in_steps_unless_a_critical_window_says_otherwise() {
    let pool = |mark: &str| {
        format!(
            "queue a: 0
             queue b: 4
             host n1: 4
             runs r1 in a: 1 on n1, for 10 s
             runs r2 in a: 1 on n1, for 20 s
             runs r3 in a: 1 on n1, for 30 s
             runs r4 in a: 1 on n1, for 40 s
             waits x in b: 1, since 9
             waits y in b: 1, since 8{mark}"
        )
    };
    let policy = Policy { give_back: Some(GiveBack { step_parts: CARD, owed_per_mille: 250 }), ..bare() };
    check(&pool(""), &policy, &["end r1 for x", "keep x x1 on n1 after r1", "wait y GivesBackInSteps"]);
    check(&pool(", critical"), &policy, &["end r1 for y", "keep y x1 on n1 after r1", "wait x GivesBackInSteps"]);
}

/// The gang of twice 3 cards fits on n3 at once, and on n1 when r1 has ended, in 300 s. Until then n3's three cards are for what is sure to end before; the
/// fourth card of n1 is nobody's concern.
#[test]
fn a_gang_keeps_its_place_and_short_jobs_fill_the_gap() {
    check(
        "queue a: 16
         host n1: 4
         host n2: 4
         host n3: 4
         runs r1 in a: 3 on n1, priority 9, ends 300
         runs r2 in a: 2 on n2, priority 9, ends 600
         runs r3 in a: 1 on n3, priority 9, ends 9000
         waits gang in a: 3, workers 2, priority 8
         waits long in a: 3, most 3600, priority 4
         waits unknown in a: 3, priority 3
         waits small in a: 1, most 3600, priority 2
         waits short in a: 3, most 250, priority 1",
        &bare(),
        &[
            "wait gang NoRoom",
            "wait long KeptForGang",
            "wait unknown KeptForGang",
            "start small x1 on n1",
            "start short x1 on n3",
        ],
    );
}

#[test]
fn borrowing_of_one_model_costs_no_quota_of_another() {
    check(
        "queue a: 0; a100 4
         queue b: 8; a100 4
         host n1: 8
         host n2: 8 of a100
         runs r1 in a: 8 on n1
         runs r2 in b: 8 of a100 on n2
         waits x in a: 4 of a100",
        &bare(),
        &["end r2 for x", "keep x x1 on n2 after r2"],
    );
}

#[test]
fn surplus_workers_go_before_any_job_dies() {
    check(
        "queue a: 0
         queue b: 2
         host n1: 4
         runs elastic in a: 1, workers 3, least 1, on n1, priority 9
         runs cheap in a: 1 on n1, for 1 s
         waits x in b: 2",
        &bare(),
        &["shrink elastic by 2 for x", "keep x x1 on n1 after elastic"],
    );
}

/// 12 cards, a and b deserve 4 each and share the rest: 6 and 6. b has 4 and asks 2 more; a is over by one job of 8, whose end would leave it with nothing.
#[test]
fn a_mere_borrower_never_takes_a_lender_under_its_quota() {
    check(
        "queue a: 4
         queue b: 4
         host n1: 12
         runs r1 in a: 8 on n1
         runs r2 in b: 4 on n1
         waits x in b: 2",
        &bare(),
        &["wait x QuotaUsed"],
    );
}

#[test]
fn what_cannot_be_taken_back_is_not_lent() {
    check(
        "queue a: 2
         queue b: 6
         host n1: 8
         waits x in a: 3, pinned
         waits y in a: 2, pinned, since 1",
        &bare(),
        &["wait x NotLentToUnpreemptible", "start y x1 on n1"],
    );
}

#[test]
fn kept_room_is_given_to_others_only_when_its_time_is_over() {
    let mut pool = read(
        "queue a: 4
         queue b: 0
         host n1: 4
         runs r1 in b: 2 on n1, leaving
         waits x in a: 4
         waits y in b: 2",
    );
    let kept = |until_s: i64| Reservation {
        job: "x".into(),
        pieces: vec![Piece { host: Some("n1".into()), workers: 1, cards: vec![0, 1, 2, 3] }],
        workers: 1,
        model: "gpu".into(),
        until: noon().checked_add_ms(until_s * 1_000).expect("a time"),
    };
    pool.reservations = vec![kept(60)];
    check_pool(&pool, &bare(), &["keep x x1 on n1 after r1", "wait y OverFairShare"]);
    pool.reservations = vec![kept(-60)];
    pool.pending.retain(|job| job.name.as_str() == "y");
    check_pool(&pool, &bare(), &["start y x1 on n1"]);
}

#[test]
fn workers_of_a_failed_host_are_placed_again() {
    check(
        "queue a: 8
         host n1: 4 failed
         host n2: 4
         host n3: 4
         runs r1 in a: 2, workers 2, on n1+n2
         runs r2 in a: 1 on n3",
        &bare(),
        &["move r1 on n2"],
    );
}

#[test]
fn a_job_asked_to_be_spread_is_spread() {
    check(
        "queue a: 8
         host n1: 4
         host n2: 4
         waits x in a: 1, workers 2, spread
         waits y in a: 1, workers 2, since 1",
        &bare(),
        &["start x x2 on n1 n2", "start y x2 on n1"],
    );
}

/// Both hosts have a card's worth left: one a whole card, the other two halves.
#[test]
fn between_hosts_that_are_equally_full_a_share_breaks_no_whole_card() {
    let mut pool = read(
        "queue a: 4
         host n1: 2
         host n2: 2
         runs r1 in a: 1 on n1
         runs r2 in a: 0.5 on n2
         runs r3 in a: 0.5 on n2
         waits x in a: 0.5",
    );
    pool.running[1].pieces[0].cards = vec![0];
    pool.running[2].pieces[0].cards = vec![1];
    check_pool(&pool, &bare(), &["start x x1 on n2"]);
}

#[test]
fn a_job_of_an_unknown_queue_or_model_is_told_so() {
    check(
        "queue a: 8
         host n1: 4
         waits x in nowhere: 1
         waits y in a: 1 of b300",
        &bare(),
        &["wait x UnknownQueue", "wait y NeverByQuota"],
    );
}

#[test]
fn a_step_says_what_its_owner_has_to_know() {
    let pool = read(
        "queue a: 0
         queue b: 2
         host n1: 4
         runs train in a: 4 on n1, for 7200 s, seen 1800
         waits x in b: 2",
    );
    let words: Vec<String> = decide(&pool, &bare()).steps.iter().map(|step| step.words()).collect();
    // 4 cards for half an hour since the checkpoint.
    assert_eq!(
        words[0],
        "train gives 4 cards to x and queues again: its queue has more than its fair share; 2 card-hours of work are lost"
    );
    let gets = "x gets 2 cards on n1 when train has made room: its queue has less than its fair share; kept until ";
    assert!(words[1].starts_with(gets), "{}", words[1]);
}

/// 10 cards and no quota: 5 and 5. Team a used a fifth of what the week could give, b nothing, so the weights are 0.5 + 0.3 and 0.5 + 0.5: 4.4 and 5.6 of ten, 4 and 6 in whole
/// cards. So b may take a sixth card back, and not a seventh.
#[test]
fn who_used_much_lately_has_less_of_what_is_above_quota() {
    let mut text = String::from("queue a: 0\nqueue b: 0\nhost n1: 10\n");
    for number in 0..5 {
        text += &format!("runs a{number} in a: 1 on n1, for {} s\n", 500 + number);
        text += &format!("runs b{number} in b: 1 on n1, for {} s\n", 500 + number);
    }
    text += "waits x in b: 1, since 2\nwaits y in b: 1, since 1\nwaits z in a: 5";
    let mut pool = read(&text);
    check_pool(&pool, &bare(), &["wait x OverFairShare", "wait y OverFairShare", "wait z OverFairShare"]);
    let week_hours = 10 * 7 * 24;
    pool.queues[0].past_usage = CardTime::from_part_ms(i128::from(CARD) * 3_600_000 * week_hours / 5);
    check_pool(
        &pool,
        &bare(),
        &["end a0 for x", "keep x x1 on n1 after a0", "wait y OverFairShare", "wait z OverFairShare"],
    );
}

#[test]
fn a_queue_whose_month_will_not_last_borrows_less_and_starts_off_peak_and_keeps_what_runs() {
    let mut pool = read(
        "queue a: 4
         queue b: 8
         host n1: 12
         runs r1 in a: 4 on n1
         waits x in a: 3, since 2
         waits y in a: 2, since 1",
    );
    check_pool(&pool, &bare(), &["start x x1 on n1", "start y x1 on n1"]);
    // Tight: half of its quota of 4 may be borrowed, so 2 more and not 3.
    pool.queues[0].band = Some(BandEffect { weight_per_mille: 700, borrow_per_mille: 500, off_peak_only: false });
    check_pool(&pool, &bare(), &["wait x QuotaUsed", "start y x1 on n1"]);
    pool.queues[0].band = Some(BandEffect { weight_per_mille: 300, borrow_per_mille: 500, off_peak_only: true });
    check_pool(&pool, &bare(), &["wait x OffPeakOnly", "wait y OffPeakOnly"]);
    pool.off_peak = true;
    check_pool(&pool, &bare(), &["wait x QuotaUsed", "start y x1 on n1"]);
}
