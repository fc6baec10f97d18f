//! What users of other schedulers complain of, each with the right behaviour: `s01` to `s28` by the list of threads in the notes on scheduling, and of the field reports those on quota
//! that `rules.rs` doesn't have. Those on idle cards are in `idle_complaints.rs`.

use std::collections::{BTreeMap, BTreeSet};

use cardhour_domain::{CardShare, CardTime};
use cardhour_scheduler_core::mig::{
    Atlas, Axis, Instance, Need, Offer, Placement, Shape, State, Teardown, fit_together, freeing_order, pack,
    reconcile, smallest_for, teardown,
};
use cardhour_scheduler_core::plan::Action;
use cardhour_scheduler_core::policy::{Fairness, GiveBack, QueueRules, Reclaim, ShareRules};
use cardhour_scheduler_core::rounds::{Change, Rounds};
use cardhour_scheduler_core::snapshot::{Piece, Reservation};
use cardhour_scheduler_core::{Policy, Snapshot, audit, decide};

use crate::table::{bare, check, check_pool, lines, noon, read};
use crate::world::{Gone, carry_out};

const CARD: i64 = CardShare::PARTS_PER_CARD;

/// The plan of a table begins each of its lines so, and passes its audit: why somebody waits is another test's matter.
#[track_caller]
fn begins(snapshot: &Snapshot, policy: &Policy, expected: &[&str]) {
    let plan = decide(snapshot, policy);
    assert_eq!(audit(snapshot, policy, &plan), []);
    let lines = lines(&plan);
    let right =
        lines.len() == expected.len() && lines.iter().zip(expected).all(|(line, start)| line.starts_with(start));
    assert!(right, "{lines:#?}\nshould begin\n{expected:#?}");
}

/// Rounds carried out one after another, ten minutes apart; everybody who is told to go has gone by the next. Who was ended, round by round.
fn ended_in(mut snapshot: Snapshot, policy: &Policy, rounds: usize) -> Vec<Vec<String>> {
    (0..rounds)
        .map(|_| {
            let plan = decide(&snapshot, policy);
            assert_eq!(audit(&snapshot, policy, &plan), []);
            snapshot = carry_out(&snapshot, &plan, 600_000, &Gone::All);
            let ended = plan.steps.iter().filter(|step| matches!(step.action, Action::Evict { .. }));
            ended.map(|step| step.job.to_string()).collect()
        })
        .collect()
}

fn kept(job: &str, host: &str, cards: &[u32]) -> Reservation {
    Reservation {
        job: job.into(),
        pieces: vec![Piece { host: Some(host.into()), workers: 1, cards: cards.to_vec() }],
        workers: 1,
        model: "gpu".into(),
        until: noon().checked_add_ms(600_000).expect("a time"),
    }
}

/// Three cards and two queues of equal claim: one has two and the other one, and there it rests, under each way of weighing queues.
#[test]
fn s01_two_queues_never_end_one_another_in_turn() {
    let shares = ShareRules { final_at_most: true, initial_less: true };
    for fairness in [Fairness::DeservedShare, Fairness::BorrowShare(shares), Fairness::None] {
        let pool = read(
            "queue pool: 3
             queue a under pool: 0
             queue b under pool: 0
             host n1: 3
             runs a1 in a: 1 on n1, for 300 s
             runs a2 in a: 1 on n1, for 200 s
             runs a3 in a: 1 on n1, for 100 s
             waits b1 in b: 1, since 50
             waits b2 in b: 1, since 40
             waits b3 in b: 1, since 30",
        );
        let ended = ended_in(pool, &Policy { fairness, ..bare() }, 30);
        let last = ended.iter().rposition(|round| !round.is_empty()).map_or(0, |at| at + 1);
        assert!(last <= 3, "{fairness:?}: {ended:?}");
    }
}

/// `b` is owed both cards. Once `r1` and `r2` have gone, queue `a` has nothing and would be first by its share; what they left is `x`'s all the same.
#[test]
fn s02_room_that_was_made_is_not_won_back_by_those_who_left_it() {
    let pool = read(
        "queue a: 0
         queue b: 2
         host n1: 2
         runs r1 in a: 1 on n1, for 60 s
         runs r2 in a: 1 on n1, for 50 s
         waits x in b: 2",
    );
    let plan = decide(&pool, &bare());
    assert_eq!(lines(&plan), ["end r2 for x", "end r1 for x", "keep x x1 on n1 after r1 r2"]);
    // Only r1 has gone: it queues again, and the free card isn't its.
    let gone = ["r1".into()];
    let next = carry_out(&pool, &plan, 10_000, &Gone::Only(&gone));
    begins(&next, &bare(), &["keep x x1 on n1 after r2", "wait r1"]);
    let gone = ["r2".into()];
    let plan = decide(&next, &bare());
    let last = carry_out(&next, &plan, 10_000, &Gone::Only(&gone));
    assert_eq!(last.running.iter().map(|run| run.name.as_str()).collect::<Vec<_>>(), ["x"]);
}

/// One of two cards is free, the other's holder is still leaving.
#[test]
fn s03_room_is_kept_from_the_first_victim_that_goes_to_the_last() {
    let mut pool = read(
        "queue a: 2
         queue b: 2
         host n1: 2
         runs r2 in a: 1 on n1, leaving
         waits x in b: 2
         waits y in a: 1, priority 9, since 900",
    );
    pool.reservations = vec![kept("x", "n1", &[0, 1])];
    begins(&pool, &bare(), &["keep x x1 on n1 after r2", "wait y"]);
}

#[test]
fn s04_two_who_ask_in_one_round_get_two_victims_and_no_third() {
    check(
        "queue a: 0
         queue b: 2
         host n1: 3
         runs r1 in a: 1 on n1, for 10 s
         runs r2 in a: 1 on n1, for 20 s
         runs r3 in a: 1 on n1, for 30 s
         waits x in b: 1, since 9
         waits y in b: 1, since 8",
        &bare(),
        &["end r1 for x", "keep x x1 on n1 after r1", "end r2 for y", "keep y x1 on n1 after r2"],
    );
}

/// However many wait and want one another's cards, a round looks at each job once: it has as many steps about waiting jobs as there are.
#[test]
fn s05_a_round_looks_at_each_job_once() {
    let mut text = String::from("queue a: 2\nqueue b: 2\nhost n1: 4\nruns r1 in a: 2 on n1\nruns r2 in b: 2 on n1\n");
    for number in 0..200 {
        text +=
            &format!("waits x{number} in {}: {}, priority {}\n", ["a", "b"][number % 2], 1 + number % 3, number % 5);
    }
    let pool = read(&text);
    let plan = decide(&pool, &bare());
    assert_eq!(audit(&pool, &bare(), &plan), []);
    let waiting: BTreeSet<&str> = pool.pending.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(plan.steps.iter().filter(|step| waiting.contains(step.job.as_str())).count(), 200);
}

/// `a` borrows eight cards of one model. Its two of the other are its all the same.
#[test]
fn s06_heavy_borrowing_of_one_model_costs_no_quota_of_another() {
    check(
        "queue a: 0; a100 2
         queue b: 8; a100 0
         host n1: 8
         host n2: 2 of a100
         runs r1 in a: 8 on n1
         runs r2 in b: 2 of a100 on n2
         waits x in a: 2 of a100",
        &bare(),
        &["end r2 for x", "keep x x1 on n2 after r2"],
    );
}

/// The large job is within its queue's quota and can't be given others' cards, so its place is kept: a sibling that borrows starts only if it ends before that.
#[test]
fn s07_a_large_job_is_not_last_for_ever_behind_siblings_that_borrow() {
    begins(
        &read(
            "queue org: weight 1
         queue a under org: 8
         queue b under org: 0
         host n1: 8
         runs r1 in b: 2 on n1, pinned, ends 300
         waits big in a: 8, since 900
         waits b1 in b: 2, most 3600, since 40
         waits b2 in b: 2, most 200, since 30",
        ),
        &bare(),
        &["wait big", "wait b1 KeptForGang", "start b2 x1 on n1"],
    );
}

#[test]
fn s08_a_job_within_its_quota_starts_before_one_that_borrows() {
    begins(
        &read(
            "queue a: 1
             queue b: 1
             host n1: 2
             runs r1 in a: 1 on n1
             waits over in a: 1, since 900
             waits owner in b: 1, since 1",
        ),
        &bare(),
        &["start owner x1 on n1", "wait over"],
    );
}

#[test]
fn s09_a_borrower_ends_nothing_that_is_within_its_quota() {
    begins(
        &read(
            "queue a: 2
             queue b: 2
             host n1: 4
             runs r1 in a: 2 on n1, for 60 s
             runs r2 in b: 2 on n1, priority 9
             waits x in b: 1, priority 9",
        ),
        &bare(),
        &["wait x"],
    );
}

/// The head of one model waits for its room, and holds up nobody of another model, nor who ends in time; but who doesn't.
#[test]
fn s10_a_gang_that_waits_keeps_its_place_and_blocks_no_other_model() {
    begins(
        &read(
            "queue a: 16; a100 4
         host n1: 4
         host n2: 4 of a100
         runs r1 in a: 2 on n1, priority 9, ends 300
         waits gang in a: 4, priority 8, since 90
         waits other in a: 4 of a100, since 80
         waits long in a: 2, most 3600, since 70
         waits short in a: 2, most 200, since 60",
        ),
        &bare(),
        &["wait gang", "start other x1 on n2", "wait long KeptForGang", "start short x1 on n1"],
    );
}

/// Quota allows eight cards on one host, and hosts have four: nobody is ended for it, and it holds up nobody.
#[test]
fn s11_what_no_host_can_hold_does_not_hold_the_pool() {
    begins(
        &read(
            "queue a: 8
         queue b: 0
         host n1: 4
         host n2: 4
         runs r1 in b: 4 on n1
         waits big in a: 8, since 900
         waits small in a: 4, since 1",
        ),
        &bare(),
        &["wait big", "start small x1 on n2"],
    );
}

/// Of two that have run for two hours on one card, the one whose checkpoint was seen half an hour ago loses half a card-hour, the other all two.
#[test]
fn s12_work_since_the_checkpoint_that_was_seen_is_what_is_lost() {
    let pool = |seen: &str| {
        read(&format!(
            "queue a: 0
             queue b: 1
             host n1: 2
             runs told in a: 1 on n1, for 7200 s
             runs seen in a: 1 on n1, for 7200 s{seen}
             waits x in b: 1"
        ))
    };
    let first = |snapshot: &Snapshot| decide(snapshot, &bare()).steps[0].clone();
    let step = first(&pool(", seen 1800"));
    assert_eq!(step.job.as_str(), "seen");
    assert_eq!(step.evidence.lost, CardTime::from_part_ms(CardTime::PART_MS_PER_CARD_HOUR / 2));
    // Where none was seen all since the start is lost: a claim alone makes nobody cheaper to end.
    let step = first(&pool(", priority 1"));
    assert_eq!(step.job.as_str(), "told");
    assert_eq!(step.evidence.lost, CardTime::from_part_ms(CardTime::PART_MS_PER_CARD_HOUR * 2));
}

/// By the default policy: half an hour, doubled with each time it was ended for others, and never a fourth time in a day.
#[test]
fn s13_a_job_is_not_ended_again_and_again_minutes_after_its_start() {
    for (ended, ran_s, goes) in
        [(0, 1_799, false), (0, 1_800, true), (1, 3_599, false), (1, 3_600, true), (3, 86_400, false)]
    {
        let pool = read(&format!(
            "queue a: 0
             queue b: 1
             host n1: 1
             runs r1 in a: 1 on n1, for {ran_s} s, ended {ended}
             waits x in b: 1"
        ));
        let expected: &[&str] = if goes { &["end r1 for x", "keep x"] } else { &["wait x"] };
        begins(&pool, &Policy::default(), expected);
    }
}

/// Four cards are asked for: four may be moved by default, and one is enough. Where policy allows less than that one, nobody moves.
#[test]
fn s14_no_more_is_moved_than_was_asked_for() {
    let pool = "queue a: 12
         host n1: 4
         host n2: 4
         host n3: 4
         runs r1 in a: 3 on n1
         runs r2 in a: 1 on n2
         runs r3 in a: 2 on n3
         waits x in a: 4";
    check(pool, &bare(), &["move r2 on n1 for x", "keep x x1 on n2 after r2"]);
    check(pool, &Policy { moved_per_mille: 200, ..bare() }, &["wait x NoRoom"]);
    check(pool, &Policy { moves: 0, ..bare() }, &["wait x NoRoom"]);
}

#[test]
fn s15_one_protected_job_does_not_end_the_search() {
    check(
        "queue a: 0
         queue b: 1
         host n1: 3
         runs r1 in a: 1 on n1, for 10 s, pinned
         runs r2 in a: 1 on n1, for 20 s, critical
         runs r3 in a: 1 on n1, for 30 s
         waits x in b: 1",
        &bare(),
        &["end r3 for x", "keep x x1 on n1 after r3"],
    );
}

/// The job without cards would lose nothing, and its end would help nobody.
#[test]
fn s16_who_holds_no_card_is_not_ended_for_cards() {
    check(
        "queue a: 0
         queue b: 1
         host n1: 1
         runs light in a: 0 on n1, for 1 s
         runs r1 in a: 1 on n1, for 86400 s
         waits x in b: 1",
        &bare(),
        &["end r1 for x", "keep x x1 on n1 after r1"],
    );
}

/// Six cards, one deserved each, so three are fair: `b` has its one and may take up to three, and no fourth.
#[test]
fn s17_what_is_above_the_fair_share_is_reclaimed_beyond_quota() {
    begins(
        &read(
            "queue a: 1
             queue b: 1
             host n1: 6
             runs a1 in a: 1 on n1, for 50 s
             runs a2 in a: 1 on n1, for 40 s
             runs a3 in a: 1 on n1, for 30 s
             runs a4 in a: 1 on n1, for 20 s
             runs a5 in a: 1 on n1, for 10 s
             runs b1 in b: 1 on n1
             waits x in b: 2, since 9
             waits y in b: 1, since 8",
        ),
        &bare(),
        &["end a5 for x", "end a4 for x", "keep x x1 on n1 after a4 a5", "wait y"],
    );
}

/// `x` lacks cards of the second model. The borrower of the first, further above its share and cheaper to end, has none of them.
#[test]
fn s19_only_who_holds_what_is_lacking_is_ended() {
    check(
        "queue a: 0; a100 0
         queue b: 1; a100 1
         host n1: 8
         host n2: 1 of a100
         runs r1 in a: 8 on n1, for 1 s
         runs r2 in a: 1 of a100 on n2, for 86400 s
         waits x in b: 1 of a100",
        &bare(),
        &["end r2 for x", "keep x x1 on n2 after r2"],
    );
}

#[test]
fn s20_nobody_is_ended_for_a_job_above_its_own_cap() {
    begins(
        &read(
            "queue a: 0
             queue b: 2 max 2
             host n1: 4
             runs r1 in a: 1 on n1
             runs r2 in a: 1 on n1
             runs r3 in b: 2 on n1, priority 9
             waits x in b: 1",
        ),
        &bare(),
        &["wait x"],
    );
}

/// Two cards could be freed on each host, and four on one are asked for.
#[test]
fn s21_nobody_is_ended_where_the_asker_would_still_have_no_place() {
    begins(
        &read(
            "queue a: 4
             queue b: 4
             host n1: 4
             host n2: 4
             runs r1 in a: 2 on n1, pinned
             runs r2 in a: 2 on n2, pinned
             runs r3 in a: 2 on n1
             runs r4 in a: 2 on n2
             waits x in b: 4",
        ),
        &bare(),
        &["wait x"],
    );
}

#[test]
fn s22_of_an_elastic_job_no_more_workers_go_than_are_needed() {
    check(
        "queue a: 0
         queue b: 2
         host n1: 6
         runs elastic in a: 1, workers 6, least 1, on n1
         waits x in b: 2",
        &bare(),
        &["shrink elastic by 2 for x", "keep x x1 on n1 after elastic"],
    );
}

#[test]
fn s23_what_is_free_counts_before_anybody_is_ended() {
    check(
        "queue a: 0
         queue b: 4
         host n1: 8
         runs r1 in a: 1 on n1, for 50 s
         runs r2 in a: 1 on n1, for 40 s
         runs r3 in a: 1 on n1, for 30 s
         runs r4 in a: 1 on n1, for 20 s
         runs r5 in a: 1 on n1, for 10 s
         waits x in b: 4",
        &bare(),
        &["end r5 for x", "keep x x1 on n1 after r5"],
    );
}

/// `c` is under its guarantee and has the youngest and cheapest job; it stays, and the guarantee of `b` is met in full.
#[test]
fn s24_a_queue_under_its_guarantee_loses_nothing_and_reaches_it() {
    check(
        "queue a: 0
         queue b: 2
         queue c: 2
         host n1: 4
         runs a1 in a: 1 on n1, for 7200 s
         runs a2 in a: 1 on n1, for 7200 s
         runs a3 in a: 1 on n1, for 9000 s
         runs c1 in c: 1 on n1, for 1 s
         waits x in b: 1, since 9
         waits y in b: 1, since 8",
        &bare(),
        &["end a1 for x", "keep x x1 on n1 after a1", "end a2 for y", "keep y x1 on n1 after a2"],
    );
}

/// Twenty small jobs hold an owner's twenty cards, and all of it is asked back at once. By the budget of 20 % four go in a round; by steps of a tenth of what is owed, two.
#[test]
fn s25_an_owner_who_comes_back_ends_no_storm_of_jobs() {
    let mut text = String::from("queue a: 0\nqueue b: 20\nhost n1: 20\n");
    for number in 0..20 {
        text += &format!("runs r{number} in a: 1 on n1\nwaits x{number} in b: 1, since {}\n", 100 - number);
    }
    let pool = read(&text);
    let ended = |policy: &Policy| ended_in(pool.clone(), policy, 1)[0].len();
    assert_eq!(ended(&bare()), 20);
    assert_eq!(ended(&Policy { disruption_per_mille: Some(200), ..bare() }), 4);
    assert_eq!(ended(&Policy { give_back: Some(GiveBack { step_parts: CARD, owed_per_mille: 100 }), ..bare() }), 2);
}

fn shapes(text: &str) -> Vec<Shape> {
    text.split_whitespace().map(|name| Shape::from_name(name).expect("a shape")).collect()
}

/// An A100 of 40 GB: 5,120 MiB are asked for and a `1g.5gb` has 4,864. It gets the next one that has enough and is told how near the first was; who asks for 4,864 gets the first.
#[test]
fn s26_memory_is_matched_with_what_the_driver_says_and_small_instances_leave_room_for_large_ones() {
    let usable: BTreeMap<Shape, u64> = [("1g", 4_864), ("2g", 9_856), ("3g", 19_968), ("7g", 40_192)]
        .map(|(name, mib)| (Shape::from_name(name).expect("a shape"), mib))
        .into();
    let fit = |memory_mib| smallest_for(Axis::Eight, Offer::plain(), &usable, Need { memory_mib, compute: 1 });
    assert_eq!(fit(4_864).expect("a shape").shape, Shape::OneG);
    let larger = fit(5_120).expect("a shape");
    assert_eq!((larger.shape, larger.just_missed), (Shape::TwoG, Some((Shape::OneG, 4_864))));
    // Cut as they come, a 1g and a 2g leave a half of the card for a 3g.
    let atlas = Atlas::new(Axis::Eight, Offer::plain());
    let state = shapes("1g 2g").into_iter().fold(State::empty(Axis::Eight), |state, shape| {
        state.with(atlas.best_start(state, shape).expect("a start")).expect("a place")
    });
    assert!(fit_together(state, &shapes("3g")).is_some());
}

#[test]
fn s27_single_slices_go_to_few_cards_so_that_whole_ones_are_left() {
    let cards = ["GPU-a", "GPU-b", "GPU-c"].map(|card| (card.into(), State::empty(Axis::Eight))).into();
    let choices = pack(Axis::Eight, Offer::plain(), &cards, &[Shape::OneG; 8]).expect("room");
    let opened: BTreeSet<_> = choices.iter().map(|choice| &choice.card_uuid).collect();
    // Seven on one, the eighth on another.
    assert_eq!(opened.len(), 2);
}

fn instance(id: &str, shape: Shape, start: u8, is_held: bool) -> Instance {
    Instance { id: id.into(), placement: Placement { shape, start }, compute_instances: [0].into(), is_held }
}

/// The 2g at 2 opens a half of the card beside what is free, the 1g at 6 doesn't: it goes first. What is in nobody's plan is freed if nobody holds it, and only told of if somebody does.
#[test]
fn s28_instances_are_freed_in_the_order_that_opens_the_card_and_stale_ones_are_found() {
    let seen = [
        instance("i1", Shape::OneG, 6, false),
        instance("i2", Shape::TwoG, 2, false),
        instance("i3", Shape::OneG, 5, true),
    ];
    let atlas = Atlas::new(Axis::Eight, Offer::plain());
    let order = freeing_order(&atlas, &seen).expect("an order");
    assert_eq!(order.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["i2", "i1"]);
    let calls = teardown(&seen[0]);
    assert_eq!(calls.last(), Some(&Teardown::Gpu { instance: "i1".into() }), "its compute instance before itself");
    let found = reconcile(&seen, &BTreeSet::from([seen[0].placement]));
    let ids = |list: &[Instance]| list.iter().map(|one| one.id.to_string()).collect::<Vec<_>>();
    assert_eq!((ids(&found.stale), ids(&found.unplanned)), (vec!["i2".to_owned()], vec!["i3".to_owned()]));
}

/// Three replicas come, go and come again, told one by one, some of it twice. What the queue uses is what lives: the plan is that of the pool written down afresh.
#[test]
fn q05_what_a_queue_uses_is_added_up_from_what_lives() {
    let pool = read(
        "queue a: 3 max 3
         host n1: 4
         runs s1 in a: 1 on n1
         runs s2 in a: 1 on n1
         runs s3 in a: 1 on n1
         waits x in a: 1",
    );
    let mut kept = Rounds::new(pool.clone(), bare());
    kept.round(noon());
    for _ in 0..10 {
        for run in &pool.running {
            kept.apply(Change::Gone(run.name.clone()));
            kept.round(noon());
            kept.apply(Change::Runs(run.clone()));
            kept.apply(Change::Runs(run.clone()));
            kept.round(noon());
        }
    }
    assert!(lines(kept.round(noon()))[0].starts_with("wait x"));
    kept.apply(Change::Gone("s2".into()));
    assert_eq!(lines(kept.round(noon())), ["start x x1 on n1"]);
}

/// Of two workers that were told to go one has gone. Its card is free at once; the other's when it is empty. A job that is named twice is one job.
#[test]
fn q09_quota_is_free_with_the_last_worker_and_a_name_counts_once() {
    let mut pool = read(
        "queue a: 2
         host n1: 2
         runs r1 in a: 1 on n1, leaving
         waits x in a: 1, since 9
         waits y in a: 1, since 8",
    );
    let expected = ["start x x1 on n1", "keep y x1 on n1 after r1"];
    check_pool(&pool, &bare(), &expected);
    for copies in 0..50 {
        pool.running.push(pool.running[0].clone());
        pool.pending.push(pool.pending[copies % 2].clone());
    }
    assert_eq!(lines(&decide(&pool, &bare())), expected);
}

/// The quota a job counts on is that of its admission; one whose queue isn't in the tree any more counts on none, and its cards aren't given away.
#[test]
fn q12_a_running_job_keeps_its_cards_and_its_queue_whatever_becomes_of_its_label() {
    begins(
        &read(
            "queue a: 2
             queue b: 2 max 2
             host n1: 4
             runs r1 in b: 2 on n1
             waits x in b: 1, since 9
             waits y in a: 2, since 8",
        ),
        &bare(),
        &["start y x1 on n1", "wait x"],
    );
    begins(
        &read(
            "queue a: 2
             host n1: 3
             runs r1 in nowhere: 2 on n1
             waits x in a: 2, since 9
             waits y in a: 1, since 8",
        ),
        &bare(),
        &["wait x", "start y x1 on n1"],
    );
}

#[test]
fn q17_an_end_that_is_told_twice_is_one_end() {
    let pool = read(
        "queue a: 2
         host n1: 2
         runs r1 in a: 1 on n1
         runs r2 in a: 1 on n1
         waits x in a: 1, since 9
         waits y in a: 1, since 8",
    );
    let mut kept = Rounds::new(pool.clone(), bare());
    kept.apply(Change::Gone("r1".into()));
    let once = kept.round(noon()).clone();
    assert_eq!(lines(&once), ["start x x1 on n1", "wait y OverFairShare"]);
    kept.apply(Change::Gone("r1".into()));
    assert_eq!(*kept.round(noon()), once);
    assert_eq!(kept.decided(), 1);
}

/// The last of these instances has no room on any card, so none of them is placed; and of a gang that doesn't fit no worker is.
#[test]
fn q18_what_cannot_be_placed_whole_takes_nothing() {
    let cards: BTreeMap<_, _> = [("GPU-a".into(), State::empty(Axis::Eight))].into();
    let before = cards.clone();
    assert!(pack(Axis::Eight, Offer::plain(), &cards, &shapes("4g 3g 1g")).is_err());
    assert_eq!(cards, before);
    assert!(fit_together(cards["GPU-a"], &shapes("4g 3g")).is_some(), "what was tried isn't left behind");
    begins(
        &read(
            "queue a: 8
         host n1: 4
         host n2: 2
         waits gang in a: 2, workers 4, since 9
         waits x in a: 2, workers 3, since 8",
        ),
        &bare(),
        &["wait gang", "start x x3 on n1 n2"],
    );
}

/// Past usage is past: who used a thousand card-hours and holds nothing has all of its quota.
#[test]
fn q20_past_usage_is_no_allocation() {
    let mut pool = read(
        "queue a: 2 max 2
         queue b: 2
         host n1: 4
         waits x in a: 2",
    );
    pool.queues[0].past_usage = CardTime::from_part_ms(CardTime::PART_MS_PER_CARD_HOUR * 1_000);
    check_pool(&pool, &bare(), &["start x x1 on n1"]);
    let no_reclaim = QueueRules { reclaim: Reclaim::Never, ..QueueRules::default() };
    let by_usage = Policy { fairness: Fairness::PastUsage, rules: no_reclaim, ..bare() };
    check_pool(&pool, &by_usage, &["start x x1 on n1"]);
}
