//! One row of the table `decisions`: what was decided about a job, on what evidence, and what came of it.
//!
//! The table only grows. A row never changes: what became of a decision is another row with the same job, whose [`Decision::of_decision`] names it.

use cardhour_domain::{AttemptKey, CardShare, CardTime, Name, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The action of a row that says that a decision was wrong.
pub const WRONGFUL: &str = "wrongful";

/// What a decision is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DecisionKind {
    /// Cards of an idle job are given back.
    Reclaim,
    /// The mode was set by somebody.
    Mode,
    /// A scheduler's limit changes with a month's card-hours or a budget.
    Limit,
}

/// How far decisions go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing is judged.
    Off,
    /// What would be done is written down, and nobody is told.
    #[default]
    Shadow,
    /// Owners are told that their job is idle. Nothing is taken.
    Notify,
    /// It is done.
    Act,
}

/// One row of the table `decisions`.
///
/// Shape: append-only; `id` is made from what is decided, so that a round that runs again after a kill writes the same ids, and whoever appends leaves
/// out ids that are there. A column that doesn't apply is absent. Stability: stored; columns are added, never changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Which: 32 hexadecimal digits. It is also the id under which an actuator carries it out, once.
    pub id: Name,
    /// The instant that it is of: of telemetry, for what telemetry moved, and so up to the age of the newest ticks before it was written.
    pub at: Timestamp,
    /// Whether it is about idle cards, a limit, or the mode.
    pub kind: DecisionKind,
    /// The decision that it is about, where it tells what became of one.
    pub of_decision: Option<Name>,
    /// The job's cluster.
    pub cluster: Option<Name>,
    /// The attempt.
    pub attempt_key: Option<AttemptKey>,
    /// The job's id as people know it.
    pub job_id: Option<Name>,
    /// Who pays, at the top.
    pub org: Option<Name>,
    /// Who pays.
    pub project: Option<Name>,
    /// Whose it is.
    pub user: Option<Name>,
    /// Its queue.
    pub queue: Option<Name>,
    /// Its class.
    pub class: Option<Name>,
    /// Where its lease was: [`cardhour_scheduler_core::lease::Phase::name`].
    pub phase_from: Option<Name>,
    /// Where it is.
    pub phase_to: Option<Name>,
    /// What is done or told, in a word: see [`mod@crate::round`].
    pub action: Name,
    /// The warning's number, where it is of one.
    pub notice: Option<u32>,
    /// What it says to the owner, or of a mode or an actuator to the operator, in a sentence or two.
    pub words: Name,
    /// The mode in force for the job.
    pub mode: Mode,
    /// Since when the job is idle.
    pub idle_since: Option<Timestamp>,
    /// Idle card-time since then that was seen. Unit: card-milliseconds, rounded down.
    pub idle_card_ms: Option<i64>,
    /// How much of the window was seen, of its worst card. Unit: thousandths of a percent.
    pub coverage_pct_thousandths: Option<i32>,
    /// Card-time since the last checkpoint that was seen, or the start: what would be lost. Unit: card-milliseconds, rounded down.
    pub lost_card_ms: Option<i64>,
    /// The cards it held together.
    pub cards: Option<CardShare>,
    /// Until when nothing further is done: the end of a grace, an extension, an opt-out, or of waiting for a checkpoint.
    pub until: Option<Timestamp>,
    /// Who asked, approved or set it; absent where the rule itself did.
    pub actor: Option<Name>,
    /// What was carried out, in words.
    pub carried_out: Option<Name>,
    /// What was seen just before it was.
    pub before: Option<Name>,
    /// What was seen after.
    pub after: Option<Name>,
    /// Card-time that was recovered, where cards came free because of it. Unit: card-milliseconds, rounded down.
    pub recovered_card_ms: Option<i64>,
}

impl DecisionKind {
    /// Its name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reclaim => "reclaim",
            Self::Mode => "mode",
            Self::Limit => "limit",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Reclaim, Self::Mode, Self::Limit].into_iter().find(|kind| kind.name() == name)
    }
}

impl Mode {
    /// All of them, the mildest first.
    pub const ALL: [Self; 4] = [Self::Off, Self::Shadow, Self::Notify, Self::Act];

    /// Its name in tables, configs and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Shadow => "shadow",
            Self::Notify => "notify",
            Self::Act => "act",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Decision {
    /// One of which nothing is known but what it is and says: for makers to fill.
    pub fn new(id: Name, at: Timestamp, kind: DecisionKind, action: Name, words: Name, mode: Mode) -> Self {
        Self {
            id,
            at,
            kind,
            of_decision: None,
            cluster: None,
            attempt_key: None,
            job_id: None,
            org: None,
            project: None,
            user: None,
            queue: None,
            class: None,
            phase_from: None,
            phase_to: None,
            action,
            notice: None,
            words,
            mode,
            idle_since: None,
            idle_card_ms: None,
            coverage_pct_thousandths: None,
            lost_card_ms: None,
            cards: None,
            until: None,
            actor: None,
            carried_out: None,
            before: None,
            after: None,
            recovered_card_ms: None,
        }
    }

    /// Somebody set the mode.
    pub fn of_mode(at: Timestamp, mode: Mode, actor: Name) -> Self {
        let id = id(&["mode", &at.unix_ms().to_string(), mode.name(), &actor]);
        let words = format!("{actor} set the mode to {mode}.").into();
        Self { actor: Some(actor), ..Self::new(id, at, DecisionKind::Mode, "mode".into(), words, mode) }
    }

    /// What an actuator made of this decision: a row that names it. `before` and `after` as the actuator saw them. Shape: one a decision, since an
    /// actuator ends once.
    pub fn carried_out(&self, at: Timestamp, what: Name, before: Option<Name>, after: Option<Name>) -> Self {
        let words = format!("Decision {}: {what}.", self.id).into();
        Self {
            of_decision: Some(self.id.clone()),
            carried_out: Some(what),
            before,
            after,
            until: None,
            recovered_card_ms: None,
            ..Self { id: id(&["carried_out", &self.id]), at, action: "carried_out".into(), words, ..self.clone() }
        }
    }

    /// Somebody found that this decision was wrong: a row that names it, one however often it is said. What it took is refunded where the billing policy says so.
    pub fn found_wrong(&self, at: Timestamp, by: Name, why: Option<&str>) -> Self {
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let words = format!("{by} says that decision {} was wrong{why}.", self.id).into();
        Self {
            of_decision: Some(self.id.clone()),
            actor: Some(by),
            until: None,
            carried_out: None,
            recovered_card_ms: None,
            ..Self { id: id(&[WRONGFUL, &self.id]), at, action: WRONGFUL.into(), words, ..self.clone() }
        }
    }

    /// Somebody asked for something: see [`crate::round::Request`].
    pub fn of_request(request: &crate::round::Request, mode: Mode) -> Self {
        let by = &request.by;
        let words = match &request.wish {
            crate::round::Wish::Extend { for_ms } => {
                format!("{by} asks for {} min more for job {}.", for_ms / 60_000, request.job.job())
            }
            crate::round::Wish::Cancel => format!("{by} calls off what was decided about job {}.", request.job.job()),
        };
        Self {
            attempt_key: Some(request.job.clone()),
            actor: Some(by.clone()),
            until: request.wish.for_ms().and_then(|ms| request.at.checked_add_ms(ms)),
            ..Self::new(
                request.id.clone(),
                request.at,
                DecisionKind::Reclaim,
                request.wish.action().into(),
                words.into(),
                mode,
            )
        }
    }
}

/// An id made from what it is the id of.
pub fn id(parts: &[&str]) -> Name {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    Name::from(&hasher.finalize().to_hex()[..32])
}

/// Card-time as the table has it. Unit: card-milliseconds, rounded down.
pub fn card_ms(time: CardTime) -> i64 {
    let whole = time.part_ms() / i128::from(CardShare::PARTS_PER_CARD);
    i64::try_from(whole).unwrap_or(i64::MAX)
}
