//! What went wrong elsewhere, by the id of its report; and the machine's own rules. Times are worked out by hand: a training job that worked in its
//! first minutes is judged from minute 60 (its grace), suspected at 90 (a window later), warned at 91, in its grace from 92 to 122 (30 min), asked at
//! 122, and waited for until 137 (15 min). One that never used its cards is judged from minute 120.

use super::fixture::*;
use super::*;
use crate::work_class::WorkClass;
use cardhour_domain::{CardTime, Gap, Reading};

const TO_GRACE: [&str; 3] = ["90 suspect", "91 warn 1", "92 grace 122"];

/// Works for its first two minutes.
fn works_first(minute: i64, seen: &mut Observation) {
    if minute <= 2 {
        seen.all_cards(busy_card());
    }
}

fn nothing(_: i64, _: &mut Observation) {}

fn training() -> Story {
    Story::of(WorkClass::Training, 1)
}

/// In its grace at minute 100, with nothing wrong.
fn in_grace() -> Story {
    let mut story = training();
    assert_eq!(story.tell(1..101, works_first), TO_GRACE);
    story
}

#[test]
fn an_idle_job_is_warned_then_asked_then_stopped_and_its_cards_are_booked_when_free() {
    let mut story = in_grace();
    assert_eq!(story.tell(101..138, nothing), ["122 ask 137", "137 stop unseen 15"]);
    assert_eq!(story.tell(138..140, nothing), [""; 0]);
    // Whatever is seen of a job that is gone, and by whose labels, doesn't matter any more.
    let freed = |_: i64, seen: &mut Observation| {
        seen.cards.clear();
        seen.attribution = Attribution::Unproven { names: "".into() };
        seen.release = Reading::Seen(Release::Free);
    };
    assert_eq!(story.tell(140..150, freed), ["140 reclaimed"]);
    assert_eq!(story.lease.phase(), &Phase::Reclaimed { at: at(140) });
    // Idle since the window that began at minute 60, until it was stopped at 137: 77 minutes of one card.
    let evidence = &story.last().evidence;
    assert_eq!(evidence.idle_since, Some(at(60)));
    assert_eq!(evidence.idle, CardTime::from_part_ms(CardTime::PART_MS_PER_CARD_HOUR * 77 / 60));
}

#[test]
fn the_owner_is_told_why_in_words_and_card_hours() {
    let mut story = training();
    story.tell(1..92, |minute, seen| {
        works_first(minute, seen);
        seen.checkpoint.done_at = Some(at(31));
    });
    assert_eq!(
        story.last().words(),
        "Job lab/7 is idle. Its 1 card has done nothing since 1970-01-01T01:00:00Z: 0.516667 card-hours. 100 % of the last 30 min were \
         seen. Its cards are taken back 30 min after you get this, unless it works again or you extend it. Its last checkpoint is of \
         1970-01-01T00:31:00Z: 1 card-hours since."
    );
}

#[test]
fn r01_without_data_nobody_is_warned_or_stopped() {
    let mut story = training();
    let broken = |_: i64, seen: &mut Observation| seen.all_cards(unseen_card(Gap::NotRecorded));
    assert_eq!(story.tell(1..600, broken), [""; 0]);
    assert_eq!(story.lease.phase(), &Phase::Active);
}

#[test]
fn r02_one_early_burst_protects_for_no_longer_than_a_window_and_memory_is_told_apart() {
    let mut story = training();
    let holds = |minute: i64, seen: &mut Observation| {
        works_first(minute, seen);
        let mut reading = quiet_card();
        reading.memory_used = Reading::Seen(percent(78));
        if minute > 2 {
            seen.all_cards(reading);
        }
    };
    // A loaded model has a lease of two hours: idle since 60, warned at 180.
    assert_eq!(story.tell(1..185, holds), ["90 suspect", "180 warn 1", "181 grace 211"]);
    assert_eq!(story.last().evidence.cards[0].memory_used, Some(percent(78)));
    assert!(story.steps[1].words().contains("up to 78 % of a card's memory is taken"), "{}", story.steps[1].words());
}

#[test]
fn memory_that_was_not_read_counts_as_a_loaded_model() {
    let unread = |minute: i64, seen: &mut Observation| {
        works_first(minute, seen);
        seen.cards.get_mut("GPU-0").unwrap().reading.memory_used = Reading::Missing(Gap::NotSupported);
    };
    assert_eq!(training().tell(1..181, unread), ["90 suspect", "180 warn 1"]);
}

/// Memory that is taken says nothing of work; memory that is touched is work.
#[test]
fn r03_memory_that_is_taken_and_memory_that_is_touched_are_two_things() {
    let mut story = training();
    let touched = |_: i64, seen: &mut Observation| {
        let mut reading = quiet_card();
        (reading.memory_used, reading.memory_active) = (Reading::Seen(percent(95)), Reading::Seen(percent(60)));
        seen.all_cards(reading);
    };
    assert_eq!(story.tell(1..600, touched), [""; 0]);
}

#[test]
fn r05_when_the_source_does_not_answer_nobody_goes_forward_and_the_operator_is_told() {
    let policy = LeasePolicy::default();
    let mut all = leases(50);
    for minute in 1..=121 {
        all = tell_round(all, minute, &policy, nothing).leases;
    }
    let mut answer = Round { source: Reading::Missing(Gap::TimedOut), observations: Default::default() };
    for (n, job) in all.keys().cloned().enumerate() {
        // The minute in which their grace ends.
        let mut seen = quiet(122, 1);
        seen.all_cards(if n % 2 == 0 { quiet_card() } else { unseen_card(Gap::TimedOut) });
        answer.observations.insert(job, seen);
    }
    let outcome = step_round(all.clone(), &answer, &policy);
    assert_eq!(outcome.alert, Some(RoundAlert::NoAnswer(Gap::TimedOut)));
    assert_eq!(outcome.steps, []);
    // It answers, and has nothing of half of the cards: the same.
    answer.source = Reading::Seen(());
    let outcome = step_round(all.clone(), &answer, &policy);
    assert_eq!(outcome.alert, Some(RoundAlert::Blind { seen: 25, watched: 50 }));
    assert_eq!(outcome.steps, []);
    // With all of it, the first of them would have been asked.
    assert_eq!(tell_round(all, 122, &policy, nothing).steps.len(), 5);
    assert_eq!(
        outcome.alert.unwrap().words(),
        "25 of 50 cards are still seen: no idle job is warned, asked or stopped until more are"
    );
}

/// Thirty of fifty cards never had telemetry: they don't keep the others from being judged.
#[test]
fn cards_that_were_never_seen_are_no_sign_of_blindness() {
    let policy = LeasePolicy::default();
    let mut all = leases(50);
    let blind: std::collections::BTreeSet<_> = all.keys().take(30).cloned().collect();
    let mut said = Vec::new();
    for minute in 1..=122 {
        let mut round = Round { source: Reading::Seen(()), observations: Default::default() };
        for (job, lease) in &all {
            let mut seen = quiet(minute, 1);
            works_first(minute, &mut seen);
            if blind.contains(job) {
                seen.all_cards(unseen_card(Gap::NotRecorded));
            }
            if let Phase::Notified { notice, .. } = lease.phase() {
                seen.notice = Some(NoticeReport { notice: *notice, delivered: Ok(at(minute)) });
            }
            round.observations.insert(job.clone(), seen);
        }
        let outcome = step_round(all, &round, &policy);
        assert_eq!(outcome.alert, None);
        all = outcome.leases;
        said = outcome.steps;
    }
    assert_eq!(said.iter().filter(|step| matches!(step.action, Action::AskCheckpoint { .. })).count(), 5);
}

fn tell_round(
    leases: std::collections::BTreeMap<cardhour_domain::AttemptKey, Lease>,
    minute: i64,
    policy: &LeasePolicy,
    change: impl Fn(i64, &mut Observation),
) -> RoundOutcome {
    let observations = leases
        .iter()
        .map(|(job, lease)| {
            let mut seen = quiet(minute, 1);
            works_first(minute, &mut seen);
            if let Phase::Notified { notice, .. } = lease.phase() {
                seen.notice = Some(NoticeReport { notice: *notice, delivered: Ok(at(minute)) });
            }
            change(minute, &mut seen);
            (job.clone(), seen)
        })
        .collect();
    step_round(leases, &Round { source: Reading::Seen(()), observations }, policy)
}

/// Fifty jobs idle at the same instant: a tenth a round, and all in the end.
#[test]
fn one_round_takes_a_part_of_the_pool_only() {
    let policy = LeasePolicy::default();
    let mut all = leases(50);
    let mut asked = Vec::new();
    for minute in 1..=131 {
        let outcome = tell_round(all, minute, &policy, nothing);
        let asks = outcome.steps.iter().filter(|step| matches!(step.action, Action::AskCheckpoint { .. })).count();
        if asks > 0 {
            asked.push((minute, asks, outcome.put_off.len()));
        }
        all = outcome.leases;
    }
    let expected: Vec<_> = (0..10).map(|round| (122 + round, 5, 45 - 5 * round as usize)).collect();
    assert_eq!(asked, expected);
}

#[test]
fn r06_a_window_with_too_many_holes_is_no_window() {
    let mut story = training();
    // One minute in seven: four or five of each thirty are missing, and three may be.
    let holes = |minute: i64, seen: &mut Observation| {
        works_first(minute, seen);
        if minute % 7 == 0 {
            seen.all_cards(unseen_card(Gap::CollectorDown));
        }
    };
    assert_eq!(story.tell(1..600, holes), [""; 0]);
}

/// One minute in nine is missing: of some windows three minutes, of others four. It is suspected again and again, and its owner warned once:
/// after each withdrawal it must be idle for a window longer to be warned.
#[test]
fn at_the_edge_of_what_is_seen_the_owner_is_not_warned_over_and_over() {
    let mut story = training();
    let holes = |minute: i64, seen: &mut Observation| {
        works_first(minute, seen);
        if minute % 9 == 0 {
            seen.all_cards(unseen_card(Gap::CollectorDown));
        }
    };
    let said = story.tell(1..600, holes);
    assert_eq!(said.iter().filter(|step| step.contains("warn")).count(), 1, "{said:?}");
}

#[test]
fn r07_a_cell_that_runs_for_five_hours_with_the_browser_closed_is_work() {
    let mut story = Story::of(WorkClass::Development, 1);
    let cell = |_: i64, seen: &mut Observation| {
        seen.processes.terminal = Check::NotThere;
        seen.processes.kernel = Check::Seen(Presence::Attended);
    };
    assert_eq!(story.tell(1..300, cell), [""; 0]);
    let mut story = Story::of(WorkClass::Development, 1);
    // Or in bursts on the card: a minute in ten.
    let bursts = |minute: i64, seen: &mut Observation| {
        if minute % 10 == 0 {
            seen.all_cards(busy_card());
        }
    };
    assert_eq!(story.tell(1..300, bursts), [""; 0]);
}

#[test]
fn r08_a_busy_kernel_without_web_traffic_is_work() {
    let mut story = Story::of(WorkClass::Development, 1);
    let busy = |_: i64, seen: &mut Observation| {
        seen.processes.cpu_milli_cores = Check::Seen(980);
        seen.processes.kernel = Check::Seen(Presence::Attended);
    };
    assert_eq!(story.tell(1..600, busy), [""; 0]);
}

#[test]
fn r09_a_check_that_is_refused_says_nothing() {
    let mut story = Story::of(WorkClass::Development, 1);
    let refused = |_: i64, seen: &mut Observation| seen.processes.kernel = Check::Failed(Gap::NoPermission);
    assert_eq!(story.tell(1..600, refused), [""; 0]);
}

#[test]
fn r11_a_terminal_ssh_or_an_editor_counts() {
    let mut story = Story::of(WorkClass::Development, 1);
    let typing = |minute: i64, seen: &mut Observation| {
        if minute % 25 == 0 {
            seen.processes.terminal = Check::Seen(Presence::Attended);
        }
    };
    assert_eq!(story.tell(1..600, typing), [""; 0]);
    // Somebody comes back in the grace.
    let mut story = in_grace();
    let back = |minute: i64, seen: &mut Observation| {
        if minute == 110 {
            seen.processes.terminal = Check::Seen(Presence::Attended);
        }
    };
    assert_eq!(story.tell(101..130, back), ["110 withdraw Attended"]);
}

/// Unused for two hours at most; used and idle, from its sixtieth minute on.
#[test]
fn r12_a_long_setup_has_grace_until_the_first_use_or_a_set_limit() {
    assert_eq!(training().tell(1..152, nothing), ["150 suspect", "151 warn 1"]);
    assert_eq!(training().tell(1..92, works_first), TO_GRACE[..2]);
    // The first use at minute 100: judged from there.
    let late = |minute: i64, seen: &mut Observation| {
        if (100..=102).contains(&minute) {
            seen.all_cards(busy_card());
        }
    };
    assert_eq!(training().tell(1..134, late), ["132 suspect", "133 warn 1"]);
    // It says that it loads data: for two hours from when it first says so.
    let reports = |minute: i64, seen: &mut Observation| {
        works_first(minute, seen);
        seen.reported_phase = (minute > 2).then_some(ReportedPhase::LoadingData);
    };
    assert_eq!(training().tell(1..124, reports), ["123 suspect"]);
}

#[test]
fn r13_what_cannot_be_checked_counts_as_active() {
    // Telemetry is lost in the grace: by the fourth minute under 90 % are seen.
    let mut story = in_grace();
    let lost = |_: i64, seen: &mut Observation| seen.all_cards(unseen_card(Gap::DriverError));
    assert_eq!(story.tell(101..400, lost), ["104 withdraw Unseen"]);
    // In the very minute in which the grace ends: not asked, though the window is covered.
    let mut story = in_grace();
    assert_eq!(story.tell(101..122, nothing), [""; 0]);
    assert_eq!(story.tell(122..124, lost), [""; 0]);
    assert_eq!(story.tell(124..125, nothing), ["124 ask 139"]);
}

/// A processor under 10 %, and nothing else seen.
#[test]
fn r15_a_resting_processor_alone_proves_nothing() {
    let mut story = training();
    let only_cpu = |_: i64, seen: &mut Observation| {
        let mut reading = quiet_card();
        (reading.sm_active, reading.duty_cycle) =
            (Reading::Missing(Gap::NotSupported), Reading::Missing(Gap::NotSupported));
        seen.all_cards(reading);
    };
    assert_eq!(story.tell(1..600, only_cpu), [""; 0]);
}

#[test]
fn r16_a_card_that_was_never_touched_is_idle_and_one_without_a_metric_is_unknown() {
    assert_eq!(training().tell(1..151, nothing), ["150 suspect"]);
    let no_metric = |_: i64, seen: &mut Observation| seen.all_cards(unseen_card(Gap::NotRecorded));
    assert_eq!(training().tell(1..151, no_metric), [""; 0]);
}

#[test]
fn r17_the_stop_waits_for_the_mark_of_a_whole_checkpoint_and_says_whether_it_was_seen() {
    let mut story = in_grace();
    // It writes from 124 to 131: its processes work, and its card doesn't.
    let writes = |minute: i64, seen: &mut Observation| {
        if (124..131).contains(&minute) {
            seen.processes.io_bytes_per_s = Check::Seen(900_000_000);
            seen.checkpoint.activity = Check::Seen(CheckpointActivity::Writing);
        }
        if minute >= 131 {
            seen.checkpoint.done_at = Some(at(130));
        }
    };
    assert_eq!(story.tell(101..133, writes), ["122 ask 137", "131 stop seen 130"]);
    // One that is still being written when its time is over isn't cut off.
    let mut story = in_grace();
    let slow = |minute: i64, seen: &mut Observation| {
        if (124..145).contains(&minute) {
            seen.checkpoint.activity = Check::Seen(CheckpointActivity::Writing);
        }
        if minute >= 145 {
            seen.checkpoint.done_at = Some(at(144));
        }
    };
    assert_eq!(story.tell(101..147, slow), ["122 ask 137", "137 alert CheckpointStuck", "145 stop seen 144"]);
    // An old one is none.
    let mut story = in_grace();
    let old = |_: i64, seen: &mut Observation| seen.checkpoint.done_at = Some(at(20));
    assert_eq!(story.tell(101..138, old), ["122 ask 137", "137 stop unseen 15"]);
    let lost = story.last().evidence.lost_if_stopped.unwrap();
    assert_eq!(lost, CardTime::from_part_ms(CardTime::PART_MS_PER_CARD_HOUR * 117 / 60));
}

#[test]
fn without_a_checkpoint_a_policy_may_keep_the_job() {
    let mut story = in_grace();
    story.policy.unseen_checkpoint = UnseenCheckpoint::KeepAndAlert;
    assert_eq!(story.tell(101..300, nothing), ["122 ask 137", "137 alert CheckpointNotSeen"]);
}

#[test]
fn r18_a_signal_goes_to_the_main_process_or_to_the_hook_that_the_job_names() {
    for target in [SignalTarget::MainProcess, SignalTarget::Hook("save.sh".into())] {
        let mut story = training();
        story.lease.job.signal = target.clone();
        story.tell(1..138, works_first);
        let targets: Vec<_> = story
            .steps
            .iter()
            .filter_map(|step| match &step.action {
                Action::AskCheckpoint { target, .. } | Action::Stop { target, .. } => Some(target.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(targets, [target.clone(), target]);
    }
}

/// Four cards, the last checkpoint at minute 31, warned at 91: four card-hours.
#[test]
fn r19_what_would_be_lost_is_shown_in_card_hours() {
    let mut story = Story::of(WorkClass::Training, 4);
    story.tell(1..92, |minute, seen| {
        works_first(minute, seen);
        seen.checkpoint.done_at = Some(at(31));
    });
    let lost = story.last().evidence.lost_if_stopped.unwrap();
    assert_eq!(lost, CardTime::from_part_ms(CardTime::PART_MS_PER_CARD_HOUR * 4));
    assert!(story.last().words().contains("4 card-hours since"));
}

#[test]
fn r20_one_idle_card_of_four_is_a_line_of_advice_and_nothing_else() {
    let mut story = Story::of(WorkClass::Training, 4);
    let three = |_: i64, seen: &mut Observation| {
        seen.all_cards(busy_card());
        seen.cards.get_mut("GPU-2").unwrap().reading = quiet_card();
        seen.processes.cpu_milli_cores = Check::Seen(12_000);
    };
    assert_eq!(story.tell(1..600, three), ["90 advise GPU-2"]);
    assert_eq!(
        story.last().words(),
        "1 of the 4 cards of job lab/7 do nothing: GPU-2. Ask for fewer next time; nothing is taken."
    );
}

#[test]
fn r22_labels_that_name_no_job_with_these_cards_move_nothing() {
    let mut story = training();
    let exporter = |minute: i64, seen: &mut Observation| {
        works_first(minute, seen);
        seen.attribution = Attribution::Unproven { names: "dcgm-exporter".into() };
    };
    assert_eq!(story.tell(1..600, exporter), ["90 alert OwnerUnproven"]);
    assert_eq!(story.lease.phase(), &Phase::Active);
}

#[test]
fn r23_space_is_free_when_the_devices_are_and_a_stuck_end_is_told_of_after_a_quarter_hour() {
    let mut story = in_grace();
    story.tell(101..138, nothing);
    let unknown = |_: i64, seen: &mut Observation| seen.release = Reading::Missing(Gap::TimedOut);
    assert_eq!(story.tell(138..145, unknown), [""; 0]);
    assert_eq!(story.tell(145..400, nothing), ["152 alert StillHeld"]);
    assert!(matches!(story.lease.phase(), Phase::Stopping { .. }));
}

#[test]
fn a_warning_that_cannot_be_delivered_ends_in_an_alert_and_never_in_a_stop() {
    let mut story = training();
    story.delivers = false;
    let said = story.tell(1..400, works_first);
    assert_eq!(said[..4], ["90 suspect", "91 warn 1", "92 alert WarningUndeliverable", "106 warn 1"]);
    assert!(said[4..].iter().all(|step| step.ends_with("warn 1")), "{said:?}");
    // Tried each quarter hour: 91 + 21 × 15 is 406. Delivered at 407: the grace begins there.
    story.delivers = true;
    assert_eq!(story.tell(400..480, nothing).iter().find(|s| s.contains("grace")).unwrap(), "407 grace 437");
}

#[test]
fn the_grace_of_a_development_session_is_its_own() {
    let mut story = Story::of(WorkClass::Development, 1);
    // Judged from 15, suspected at 45, warned at 46, an hour from 47, five minutes for a checkpoint.
    let said = story.tell(1..130, works_first);
    assert_eq!(
        said,
        ["45 suspect", "46 warn 1", "47 grace 107", "107 ask 112", "112 stop unseen 5", "127 alert StillHeld"]
    );
}

#[test]
fn what_answers_requests_is_told_of_and_kept() {
    let mut story = Story::of(WorkClass::Inference, 1);
    assert_eq!(story.tell(1..2000, works_first), ["90 advise requests"]);
}

fn asks(id: &str, by: &str, hours: i64) -> ExtensionRequest {
    ExtensionRequest { id: id.into(), by: by.into(), for_ms: hours * 60 * MINUTE }
}

#[test]
fn the_owner_extends_a_few_times_and_nobody_else_does() {
    let mut story = in_grace();
    let ask = |id: &'static str, by: &'static str, hours: i64| {
        move |_: i64, seen: &mut Observation| seen.extension_requests = vec![asks(id, by, hours)]
    };
    assert_eq!(story.tell(101..102, ask("x", "bob", 2)), ["101 refuse NotTheOwner"]);
    assert_eq!(
        story.tell(102..103, ask("y", "ada", 9)),
        [format!("102 refuse TooLong {{ most_ms: {} }}", 480 * MINUTE)]
    );
    // Told twice, granted once; 103 + 120 = 223. Then suspected, warned and graced anew.
    assert_eq!(story.tell(103..105, ask("a", "ada", 2)), ["103 extended 223"]);
    assert_eq!(story.tell(105..226, nothing), ["223 suspect", "224 warn 2", "225 grace 255"]);
    assert_eq!(story.tell(226..227, ask("b", "ada", 1)), ["226 extended 286"]);
    assert_eq!(story.tell(227..228, ask("c", "ada", 1)), ["227 extended 346"]);
    assert_eq!(story.tell(228..229, ask("d", "ada", 1)), ["228 refuse TooOften { most: 3 }"]);
    assert_eq!(story.tell(229..350, nothing), ["346 suspect", "347 warn 3", "348 grace 378"]);
}

#[test]
fn an_extension_holds_to_its_end_whatever_the_job_does_meanwhile() {
    let mut story = in_grace();
    story.tell(101..102, |_, seen| seen.extension_requests = vec![asks("a", "ada", 2)]);
    let works = |_: i64, seen: &mut Observation| seen.all_cards(busy_card());
    assert_eq!(story.tell(102..110, works), [""; 0]);
    assert_eq!(story.tell(110..222, nothing), ["221 suspect"]);
    // 101 + 120 = 221; it has been idle since 109 again.
    assert_eq!(story.lease.phase(), &Phase::Suspect { since: at(221) });
    // One that works at its end is active.
    let mut story = in_grace();
    story.tell(101..102, |_, seen| seen.extension_requests = vec![asks("a", "ada", 2)]);
    assert_eq!(story.tell(102..222, works), [""; 0]);
    assert_eq!(story.lease.phase(), &Phase::Active);
}

#[test]
fn an_opt_out_holds_until_its_end_and_an_unread_list_holds_everything() {
    let opt_out = OptOut { owner: "lead".into(), reason: "demo on Friday".into(), until: at(200) };
    let mut story = training();
    let listed = |minute: i64, seen: &mut Observation| {
        works_first(minute, seen);
        seen.opt_outs = Reading::Seen(vec![opt_out.clone()]);
    };
    assert_eq!(story.tell(1..203, listed), ["90 spare", "200 suspect", "201 warn 1", "202 grace 232"]);
    let mut story = in_grace();
    assert_eq!(story.tell(101..110, listed), ["101 withdraw OptedOut", "101 spare"]);
    let mut story = in_grace();
    let unread = |_: i64, seen: &mut Observation| seen.opt_outs = Reading::Missing(Gap::TimedOut);
    assert_eq!(story.tell(101..200, unread), ["101 alert OptOutsUnread"]);
    assert_eq!(story.tell(200..201, nothing), ["200 ask 215"]);
}

#[test]
fn nothing_is_asked_while_a_checkpoint_is_written_or_seen_starting_or_not_known() {
    for activity in [
        Check::Seen(CheckpointActivity::Starting),
        Check::Seen(CheckpointActivity::Writing),
        Check::Failed(Gap::NoPermission),
    ] {
        let mut story = in_grace();
        assert_eq!(story.tell(101..160, |_, seen| seen.checkpoint.activity = activity), [""; 0]);
        assert_eq!(story.tell(160..161, nothing), ["160 ask 175"]);
    }
}

/// C04 and C21: neither idle nor work.
#[test]
fn signals_that_contradict_each_other_never_make_a_job_idle() {
    let mut story = training();
    let broken = |_: i64, seen: &mut Observation| {
        let mut reading = quiet_card();
        reading.duty_cycle = Reading::Seen(percent(100));
        seen.all_cards(reading);
    };
    assert_eq!(story.tell(1..600, broken), [""; 0]);
}

/// One of a minute in which the job had another card.
#[test]
fn an_observation_that_comes_late_changes_nothing_about_what_the_job_holds_now() {
    let mut story = in_grace();
    let mut late = quiet(95, 0);
    late.cards.insert("GPU-9".into(), quiet(95, 1).cards["GPU-0"]);
    assert_eq!(story.show(&late), [""; 0]);
    assert_eq!(story.tell(101..123, nothing), ["122 ask 137"]);
}

#[test]
fn work_after_the_stop_calls_it_back() {
    let mut story = in_grace();
    story.tell(101..138, nothing);
    let works = |_: i64, seen: &mut Observation| seen.all_cards(busy_card());
    assert_eq!(story.tell(138..141, works), ["139 alert WorksAfterStop", "139 withdraw Work"]);
    assert_eq!(story.lease.phase(), &Phase::Active);
}

#[test]
fn work_while_a_checkpoint_is_waited_for_calls_it_back() {
    let mut story = in_grace();
    story.tell(101..125, nothing);
    let works = |_: i64, seen: &mut Observation| seen.all_cards(busy_card());
    assert_eq!(story.tell(125..128, works), ["126 withdraw Work"]);
    let mut story = in_grace();
    story.tell(101..125, nothing);
    let there = |_: i64, seen: &mut Observation| seen.processes.terminal = Check::Seen(Presence::Attended);
    assert_eq!(story.tell(125..128, there), ["125 withdraw Attended"]);
}
