//! From a step of the lease machine to its row of `decisions`.

use crate::decision::{self, Decision, DecisionKind, Mode};
use crate::kept::Kept;
use cardhour_domain::{CardShare, Name, Timestamp};
use cardhour_scheduler_core::lease::{Action, Alert, Evidence, IdleAdvice, Phase, Step, Withdrawal};

/// What kind of row an action makes.
pub(crate) const fn word(action: &Action) -> &'static str {
    match action {
        Action::Suspect => "suspect",
        Action::Advise(_) => "advise",
        Action::Warn { .. } => "warn",
        Action::BeginGrace { .. } => "grace",
        Action::AskCheckpoint { .. } => "ask_checkpoint",
        Action::Stop { .. } => "stop",
        Action::Reclaimed => "reclaimed",
        Action::Extended { .. } => "extended",
        Action::RefuseExtension { .. } => "refuse_extension",
        Action::Withdraw(_) => "withdraw",
        Action::Spare(_) => "spare",
        Action::Alert(_) => "alert",
    }
}

/// The name of an alert of a lease.
pub(crate) const fn alert_word(alert: Alert) -> &'static str {
    match alert {
        Alert::WarningUndeliverable => "warning_undeliverable",
        Alert::OwnerUnproven => "owner_unproven",
        Alert::OptOutsUnread => "opt_outs_unread",
        Alert::CheckpointStuck => "checkpoint_stuck",
        Alert::CheckpointNotSeen => "checkpoint_not_seen",
        Alert::StillHeld => "still_held",
        Alert::WorksAfterStop => "works_after_stop",
    }
}

/// The id of a decision about a job: of its lease, its episode and what is decided, and not of when. A round that runs again gives the same.
pub(crate) fn id_of(kept: &Kept, action: &str, detail: &str) -> Name {
    let lease = &kept.lease;
    let born = lease.first_seen_at().map_or_else(String::new, |at| at.unix_ms().to_string());
    let episode = lease.episodes().to_string();
    decision::id(&["reclaim", lease.job().key.as_str(), &born, &episode, action, detail])
}

/// A row about a job, with nothing on what it rests.
pub(crate) fn row(kept: &Kept, at: Timestamp, action: &str, detail: &str, words: Name, mode: Mode) -> Decision {
    let id = id_of(kept, action, detail);
    let told = &kept.told;
    Decision {
        cluster: Some(told.cluster.clone()),
        attempt_key: Some(kept.lease.job().key.clone()),
        job_id: Some(told.job_id.clone()),
        org: told.org.clone(),
        project: told.project.clone(),
        user: told.user.clone(),
        queue: told.queue.clone(),
        class: told.class.clone(),
        phase_from: Some(kept.lease.phase().name().into()),
        phase_to: Some(kept.lease.phase().name().into()),
        ..Decision::new(id, at, DecisionKind::Reclaim, action.into(), words, mode)
    }
}

/// The row of a step. `kept`: after it; `from`: where the lease was before.
pub(crate) fn of_step(kept: &Kept, from: &Phase, step: &Step, mode: Mode) -> Decision {
    let (notice, until, actor, detail) = match &step.action {
        Action::Suspect | Action::Reclaimed | Action::Stop { .. } => (None, None, None, String::new()),
        Action::Withdraw(why) => (None, None, None, withdrawal(*why).to_owned()),
        Action::Advise(IdleAdvice::NoRequests) => (None, None, None, "requests".to_owned()),
        Action::Advise(IdleAdvice::IdleCards(cards)) => {
            let since = step.evidence.cards.iter().filter(|card| cards.contains(&card.card_uuid));
            let since: Vec<String> =
                since.map(|card| format!("{}@{}", card.card_uuid, unix_ms(card.idle_since))).collect();
            (None, None, None, since.join(","))
        }
        Action::Warn { notice, .. } => (Some(*notice), None, None, notice.to_string()),
        Action::BeginGrace { until } => (Some(kept.lease.notices()), Some(*until), None, String::new()),
        Action::AskCheckpoint { until, .. } => (None, Some(*until), None, String::new()),
        Action::Extended { request, until } => (None, Some(*until), Some(request.by.clone()), request.id.to_string()),
        Action::RefuseExtension { request, .. } => (None, None, Some(request.by.clone()), request.id.to_string()),
        Action::Spare(opt_out) => {
            let detail = format!("{}@{}", opt_out.owner, opt_out.until.unix_ms());
            (None, Some(opt_out.until), Some(opt_out.owner.clone()), detail)
        }
        Action::Alert(alert) => (None, None, None, alert_word(*alert).to_owned()),
    };
    let words = words(kept, step, mode);
    let row = row(kept, step.at, word(&step.action), &detail, words.into(), mode);
    Decision { phase_from: Some(from.name().into()), notice, until, actor, ..with_evidence(row, &step.evidence) }
}

/// A row with what it rests on.
pub(crate) fn with_evidence(row: Decision, evidence: &Evidence) -> Decision {
    let cards: CardShare = evidence.cards.iter().map(|card| card.share).sum();
    Decision {
        idle_since: evidence.idle_since,
        idle_card_ms: evidence.idle_since.map(|_| decision::card_ms(evidence.idle)),
        coverage_pct_thousandths: Some(evidence.coverage.thousandths()),
        lost_card_ms: evidence.lost_if_stopped.map(decision::card_ms),
        cards: (!evidence.cards.is_empty()).then_some(cards),
        ..row
    }
}

fn unix_ms(at: Option<Timestamp>) -> i64 {
    at.map_or(0, Timestamp::unix_ms)
}

const fn withdrawal(why: Withdrawal) -> &'static str {
    match why {
        Withdrawal::Work => "work",
        Withdrawal::Attended => "attended",
        Withdrawal::Unseen => "unseen",
        Withdrawal::OptedOut => "opted_out",
        Withdrawal::Reported => "reported",
    }
}

/// What it says: of what isn't done, that it isn't.
fn words(kept: &Kept, step: &Step, mode: Mode) -> String {
    let job = &kept.told.job_id;
    match (&step.action, mode) {
        (Action::Warn { .. }, Mode::Act) => {
            format!("{} To keep them: cardhour decisions extend {job}.", step.words())
        }
        (Action::Warn { .. }, Mode::Off | Mode::Shadow | Mode::Notify) => {
            format!(
                "Job {job} is idle. {} Nothing is taken. Please end it if you don't need it.",
                step.evidence.words()
            )
        }
        (
            Action::BeginGrace { .. } | Action::AskCheckpoint { .. } | Action::Stop { .. },
            Mode::Off | Mode::Shadow | Mode::Notify,
        ) => {
            format!("In the mode act: {}", step.words())
        }
        (Action::Alert(Alert::WorksAfterStop), Mode::Off | Mode::Shadow | Mode::Notify) => {
            format!("Job {job} works. In the mode act it would have been stopped by now, wrongly.")
        }
        (
            Action::Suspect
            | Action::Advise(_)
            | Action::BeginGrace { .. }
            | Action::AskCheckpoint { .. }
            | Action::Stop { .. }
            | Action::Reclaimed
            | Action::Extended { .. }
            | Action::RefuseExtension { .. }
            | Action::Withdraw(_)
            | Action::Spare(_)
            | Action::Alert(_),
            _,
        ) => step.words(),
    }
}
