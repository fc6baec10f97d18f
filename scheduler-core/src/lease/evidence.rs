//! What is to be done, and what it rests on.

use super::{ExtensionRequest, OptOut, SignalTarget};
use cardhour_domain::{AttemptKey, CardShare, CardTime, Name, Percent, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Something to be done or to be told, with what it rests on. Plain data: who acts on it is another's matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The job.
    pub job: AttemptKey,
    /// Its owner.
    pub owner: Name,
    /// The instant it is of.
    pub at: Timestamp,
    /// After this it mustn't be carried out any more: what was seen then may be different now.
    pub valid_until: Timestamp,
    /// What.
    pub action: Action,
    /// Why.
    pub evidence: Evidence,
}

/// What is to be done or to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing: the job is suspected from now on.
    Suspect,
    /// Tell the owner something that costs nobody a card.
    Advise(IdleAdvice),
    /// Warn the owner.
    Warn {
        /// The warning's number; a second try has the same.
        notice: u32,
        /// From its delivery to the next step. Unit: milliseconds.
        grace_ms: i64,
    },
    /// Nothing: the warning was delivered.
    BeginGrace {
        /// Until when nothing is done.
        until: Timestamp,
    },
    /// Ask the job to write a checkpoint.
    AskCheckpoint {
        /// Who gets the signal.
        target: SignalTarget,
        /// How long it is waited for.
        until: Timestamp,
    },
    /// Stop the job.
    Stop {
        /// Who gets the signal.
        target: SignalTarget,
        /// What became of the checkpoint.
        checkpoint: CheckpointOutcome,
    },
    /// Book what was recovered: the devices were seen free.
    Reclaimed,
    /// Tell the owner that there is more time.
    Extended {
        /// Who asked.
        request: ExtensionRequest,
        /// Until when.
        until: Timestamp,
    },
    /// Tell who asked that there isn't.
    RefuseExtension {
        /// What was asked.
        request: ExtensionRequest,
        /// Why not.
        why: ExtensionRefusal,
    },
    /// Tell the owner that nothing will be taken; call back what isn't carried out yet.
    Withdraw(Withdrawal),
    /// Nothing: the job would be suspected, and is opted out.
    Spare(OptOut),
    /// Tell the operator.
    Alert(Alert),
}

/// What an owner is told that costs nobody a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdleAdvice {
    /// Some of the job's cards are idle and the others work: ask for fewer.
    IdleCards(BTreeSet<Name>),
    /// It answers requests, and there were none.
    NoRequests,
}

/// What became of a checkpoint that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointOutcome {
    /// Its mark was seen.
    Seen {
        /// When it was written.
        at: Timestamp,
    },
    /// It wasn't.
    NotSeen {
        /// How long it was waited for. Unit: milliseconds.
        waited_ms: i64,
    },
    /// The job can't write one.
    NotAsked,
}

/// Why a lease is active again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Withdrawal {
    /// The job works.
    Work,
    /// Somebody is there.
    Attended,
    /// Nobody can see any more whether it does.
    Unseen,
    /// It is opted out.
    OptedOut,
    /// It reports that it sets up, loads or writes.
    Reported,
}

/// Why there is no more time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionRefusal {
    /// Somebody else asked.
    NotTheOwner,
    /// It was extended as often as it may be.
    TooOften {
        /// Times a job.
        most: u32,
    },
    /// Longer than one may be, or than what is left of all.
    TooLong {
        /// The most that would be granted. Unit: milliseconds.
        most_ms: i64,
    },
    /// The stop is ordered already.
    TooLate,
}

/// What the operator has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alert {
    /// The owner can't be warned, so nothing is taken.
    WarningUndeliverable,
    /// Who owns the job isn't proven, so nothing is done.
    OwnerUnproven,
    /// The list of opt-outs couldn't be read, so nothing is done.
    OptOutsUnread,
    /// A checkpoint has been in the writing for longer than it is waited for.
    CheckpointStuck,
    /// No checkpoint was seen, and the policy keeps the job.
    CheckpointNotSeen,
    /// The job was stopped, and its devices are still held.
    StillHeld,
    /// The stop was ordered, and the job works.
    WorksAfterStop,
}

/// What a step rests on. Figures of the instant it was taken at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Since when the job is idle: the first instant of it. None when it isn't.
    pub idle_since: Option<Timestamp>,
    /// Idle card-time since then that was seen.
    pub idle: CardTime,
    /// How much of the window was seen: of its worst card, or its processes.
    pub coverage: Percent,
    /// The window. Unit: milliseconds.
    pub window_ms: i64,
    /// Its cards.
    pub cards: Vec<CardEvidence>,
    /// When its last whole checkpoint was seen.
    pub checkpoint_at: Option<Timestamp>,
    /// Card-time since that checkpoint, or since the start: what would have to be done again. None where the start isn't known either.
    pub lost_if_stopped: Option<CardTime>,
    /// How often it was suspected before, and wasn't idle after all.
    pub withdrawn: u32,
}

/// What a step rests on, of one card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardEvidence {
    /// Its UUID.
    pub card_uuid: Name,
    /// How much of it the job holds.
    pub share: CardShare,
    /// Since when it is idle.
    pub idle_since: Option<Timestamp>,
    /// Memory taken when last seen; none when it wasn't.
    pub memory_used: Option<Percent>,
    /// Memory bandwidth's activity when last seen: whether what is taken is touched.
    pub memory_touched: Option<Percent>,
}

impl Step {
    /// What it says to whom it is told, in a sentence or two.
    pub fn words(&self) -> String {
        let idle = self.evidence.words();
        match &self.action {
            Action::Suspect => format!("Job {} seems to be idle. {idle}", self.job.job()),
            Action::Advise(IdleAdvice::IdleCards(cards)) => {
                let list = cards.iter().map(Name::as_str).collect::<Vec<_>>().join(", ");
                format!(
                    "{} of the {} cards of job {} do nothing: {list}. Ask for fewer next time; nothing is taken.",
                    cards.len(),
                    self.evidence.cards.len(),
                    self.job.job()
                )
            }
            Action::Advise(IdleAdvice::NoRequests) => {
                format!("Job {} answers requests and has had none. {idle} Nothing is taken.", self.job.job())
            }
            Action::Warn { grace_ms, .. } => format!(
                "Job {} is idle. {idle} Its cards are taken back {} after you get this, unless it works again or you extend it.{}",
                self.job.job(),
                duration(*grace_ms),
                self.evidence.loss_in_words()
            ),
            Action::BeginGrace { until } => format!("Nothing is taken from job {} before {until}.", self.job.job()),
            Action::AskCheckpoint { until, .. } => {
                format!(
                    "Job {} is asked for a checkpoint, and stopped once it is seen or at {until}. {idle}",
                    self.job.job()
                )
            }
            Action::Stop { checkpoint, .. } => {
                format!(
                    "Job {} is stopped. {idle} {}{}",
                    self.job.job(),
                    checkpoint.words(),
                    self.evidence.loss_in_words()
                )
            }
            Action::Reclaimed => format!("The cards of job {} are free. {idle}", self.job.job()),
            Action::Extended { until, .. } => {
                format!("Job {} keeps its cards until {until}; they are billed. {idle}", self.job.job())
            }
            Action::RefuseExtension { request, why } => format!(
                "Job {} isn't extended by {} for {}: {}.",
                self.job.job(),
                duration(request.for_ms),
                request.by,
                why.words()
            ),
            Action::Withdraw(why) => format!("Nothing is taken from job {}: {}.", self.job.job(), why.words()),
            Action::Spare(opt_out) => format!(
                "Job {} is idle and keeps its cards until {}: {} ({}). {idle}",
                self.job.job(),
                opt_out.until,
                opt_out.reason,
                opt_out.owner
            ),
            Action::Alert(alert) => format!("Job {} of {}: {}. {idle}", self.job.job(), self.owner, alert.words()),
        }
    }
}

impl Evidence {
    /// Since when, how much, and how well that was seen, in a sentence or two.
    pub fn words(&self) -> String {
        let Some(since) = self.idle_since else {
            return format!("{} % of the last {} were seen.", self.coverage, duration(self.window_ms));
        };
        let cards: CardShare = self.cards.iter().map(|card| card.share).sum();
        let memory = self.cards.iter().filter_map(|card| card.memory_used).max();
        let memory = memory
            .filter(|used| used.thousandths() > 0)
            .map(|used| format!("; up to {used} % of a card's memory is taken"))
            .unwrap_or_default();
        let cards = if cards == CardShare::CARD { "1 card has".to_owned() } else { format!("{cards} have") };
        format!(
            "Its {cards} done nothing since {since}: {} card-hours{memory}. {} % of the last {} were seen.",
            self.idle.card_hours().normalize(),
            self.coverage,
            duration(self.window_ms),
        )
    }

    fn loss_in_words(&self) -> String {
        match (self.lost_if_stopped, self.checkpoint_at) {
            (None, _) => String::new(),
            (Some(lost), Some(at)) => {
                format!(" Its last checkpoint is of {at}: {} card-hours since.", lost.card_hours().normalize())
            }
            (Some(lost), None) => {
                format!(" No checkpoint of it was seen: {} card-hours since its start.", lost.card_hours().normalize())
            }
        }
    }
}

impl CheckpointOutcome {
    fn words(self) -> String {
        match self {
            Self::Seen { at } => format!("Its checkpoint of {at} was seen."),
            Self::NotSeen { waited_ms } => format!("No checkpoint was seen in {}.", duration(waited_ms)),
            Self::NotAsked => "It writes no checkpoints.".to_owned(),
        }
    }
}

impl ExtensionRefusal {
    fn words(self) -> String {
        match self {
            Self::NotTheOwner => "only its owner can".to_owned(),
            Self::TooOften { most } => format!("it was extended {most} times already"),
            Self::TooLong { most_ms } => format!("{} are left at most", duration(most_ms)),
            Self::TooLate => "it is being stopped already".to_owned(),
        }
    }
}

impl Withdrawal {
    const fn words(self) -> &'static str {
        match self {
            Self::Work => "it works",
            Self::Attended => "somebody is at it",
            Self::Unseen => "too little of it is seen to say that it is idle",
            Self::OptedOut => "it is opted out",
            Self::Reported => "it reports that it sets up, loads data or writes a checkpoint",
        }
    }
}

impl Alert {
    /// What it says, without the job.
    pub const fn words(self) -> &'static str {
        match self {
            Self::WarningUndeliverable => "the owner can't be warned, so nothing is taken",
            Self::OwnerUnproven => "labels don't name a job that holds these cards, so nothing is done",
            Self::OptOutsUnread => "the list of opt-outs can't be read, so nothing is done",
            Self::CheckpointStuck => "a checkpoint has been in the writing for longer than is waited for one",
            Self::CheckpointNotSeen => "no checkpoint was seen, so the job is kept",
            Self::StillHeld => "it was stopped, and its devices are still held",
            Self::WorksAfterStop => "its stop was ordered, and it works: the stop is called back",
        }
    }
}

/// Hours and minutes, or minutes.
fn duration(ms: i64) -> String {
    let minutes = ms / 60_000;
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}
