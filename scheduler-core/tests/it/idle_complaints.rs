//! What users complain of where idle cards are taken back: `s29` to `s34` by the list of threads in the notes on scheduling. A training job that worked in its first two minutes
//! is judged from minute 60 (its grace), suspected at 90 (a window later), warned at 91.

use std::collections::BTreeMap;

use cardhour_domain::{AttemptKey, CardShare, Gap, Interval, Name, Percent, Reading, Timestamp};
use cardhour_scheduler_core::lease::{
    Action, Attribution, CardNow, CardReading, Check, CheckpointActivity, CheckpointSigns, CheckpointWay, IdleAdvice,
    Job, Lease, LeasePolicy, NoticeReport, Observation, Phase, Presence, ProcessReading, Release, SignalTarget, step,
};
use cardhour_scheduler_core::work_class::WorkClass;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_unix_ms(minute * 60_000)
}

fn percent(whole: i32) -> Reading<Percent> {
    Reading::Seen(Percent::from_thousandths(whole * 1_000).expect("a percentage"))
}

fn quiet_card() -> CardReading {
    CardReading {
        sm_active: percent(0),
        duty_cycle: percent(0),
        memory_active: percent(0),
        media_active: percent(0),
        graphics_processes: Reading::Seen(0),
        link_bytes_per_s: Reading::Seen(0),
        power_above_idle: percent(0),
        memory_used: percent(0),
        own_sm_active: Reading::Missing(Gap::NotRecorded),
    }
}

fn busy_card() -> CardReading {
    CardReading { sm_active: percent(90), duty_cycle: percent(90), memory_used: percent(90), ..quiet_card() }
}

/// A job told of minute by minute from its first to `last`; `change` says what was seen other than nothing. When and what came of it: suspect, warn, stop, advise.
fn story(
    class: WorkClass,
    cards: usize,
    last: i64,
    change: impl Fn(i64, &mut Observation),
) -> (Vec<(i64, &'static str)>, Lease) {
    let policy = LeasePolicy::default();
    let mut lease = Lease::new(Job {
        key: AttemptKey::new("lab", "7", "db1"),
        owner: "ada".into(),
        class: Some(class),
        started_at: Some(at(0)),
        signal: SignalTarget::MainProcess,
        checkpoint: CheckpointWay::OnSignal,
    });
    let mut notice = None;
    let mut said = Vec::new();
    for minute in 1..=last {
        let card = CardNow { share: CardShare::CARD, is_shared: false, reading: quiet_card() };
        let mut seen = Observation {
            at: at(minute),
            during: Interval::new(at(minute - 1), at(minute)).expect("a minute"),
            cards: (0..cards).map(|n| (Name::from(format!("GPU-{n}")), card)).collect::<BTreeMap<_, _>>(),
            processes: ProcessReading {
                cpu_milli_cores: Check::Seen(0),
                io_bytes_per_s: Check::Seen(0),
                terminal: Check::Seen(Presence::Unattended),
                kernel: Check::NotThere,
            },
            attribution: Attribution::Proven,
            opt_outs: Reading::Seen(Vec::new()),
            extension_requests: Vec::new(),
            notice: Option::take(&mut notice).map(|notice| NoticeReport { notice, delivered: Ok(at(minute)) }),
            checkpoint: CheckpointSigns { activity: Check::Seen(CheckpointActivity::Resting), done_at: None },
            reported_phase: None,
            release: Reading::Seen(Release::Held),
        };
        change(minute, &mut seen);
        let (next, steps) = step(lease, &seen, &policy);
        lease = next;
        for step in steps {
            match step.action {
                Action::Suspect => said.push((minute, "suspect")),
                Action::Warn { notice: number, .. } => {
                    notice = Some(number);
                    said.push((minute, "warn"));
                }
                Action::Stop { .. } => said.push((minute, "stop")),
                Action::Advise(IdleAdvice::IdleCards(_)) => said.push((minute, "advise")),
                _ => {}
            }
        }
    }
    (said, lease)
}

fn all(seen: &mut Observation, reading: CardReading) {
    seen.cards.values_mut().for_each(|card| card.reading = reading);
}

/// Five hours with the browser closed: the kernel is busy, and the card now and then.
#[test]
fn s29_a_cell_that_runs_for_five_hours_is_not_culled() {
    let (said, lease) = story(WorkClass::Development, 1, 300, |minute, seen| {
        seen.processes.kernel = Check::Seen(Presence::Attended);
        if minute % 20 == 0 {
            all(seen, busy_card());
        }
    });
    assert_eq!((said, lease.phase()), (Vec::new(), &Phase::Active));
}

/// Nobody is connected and nothing was clicked for ten hours; the card works. What was last seen on the web is no signal at all.
#[test]
fn s30_no_connection_is_no_sign_of_idleness_where_device_or_processes_work() {
    let (said, _) = story(WorkClass::Development, 1, 600, |_, seen| all(seen, busy_card()));
    assert_eq!(said, []);
    // The card rests while the processes read and write.
    let (said, _) = story(WorkClass::Development, 1, 600, |_, seen| {
        seen.processes.io_bytes_per_s = Check::Seen(500_000_000);
        seen.processes.cpu_milli_cores = Check::Seen(4_000);
    });
    assert_eq!(said, []);
}

/// A model is loaded for an hour and three quarters before the cards are first used: within the two hours that a training job has for it. And of four cards held, three of
/// them used, the fourth is advice and no reason to stop the job.
#[test]
fn s31_a_long_start_is_not_idle_and_an_unused_card_is_advice() {
    let (said, _) = story(WorkClass::Training, 2, 300, |minute, seen| {
        if minute > 105 {
            all(seen, busy_card());
        }
    });
    assert_eq!(said, []);
    let (said, lease) = story(WorkClass::Training, 4, 300, |_, seen| {
        all(seen, busy_card());
        seen.cards.get_mut("GPU-3").expect("a card").reading = quiet_card();
    });
    assert!(said.iter().all(|(_, what)| *what == "advise") && !said.is_empty(), "{said:?}");
    assert_eq!(lease.phase(), &Phase::Active);
}

/// A mean over the job's life would be above nothing for ever after its first two minutes. A window of half an hour isn't; and memory that is held is a lease of its own.
#[test]
fn s32_one_early_burst_protects_for_no_longer_than_a_window() {
    let (said, _) = story(WorkClass::Training, 1, 91, |minute, seen| {
        if minute <= 2 {
            all(seen, busy_card());
        }
    });
    assert_eq!(said, [(90, "suspect"), (91, "warn")]);
}

/// Full memory and no use is a loaded model: suspected like any other, and warned after two hours of it rather than at once, never stopped without a warning.
#[test]
fn s33_a_loaded_model_has_a_longer_lease_and_a_warning() {
    let (said, _) = story(WorkClass::Training, 1, 185, |minute, seen| {
        all(seen, if minute <= 2 { busy_card() } else { CardReading { memory_used: percent(95), ..quiet_card() } });
    });
    assert_eq!(said, [(90, "suspect"), (180, "warn")]);
}

/// Use that comes and goes around one threshold: a job that works for one minute of every ten is never idle, as no window is quiet, and so it is never warned on and off.
#[test]
fn s34_a_job_at_the_threshold_is_not_warned_on_and_off() {
    let (said, lease) = story(WorkClass::Training, 1, 1_000, |minute, seen| {
        if minute % 10 == 0 {
            all(seen, busy_card());
        }
    });
    assert_eq!((said, lease.phase()), (Vec::new(), &Phase::Active));
}
