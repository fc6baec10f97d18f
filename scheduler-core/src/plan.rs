//! What should happen, step by step, each with its reason and its evidence.
//!
//! Start at [`Plan`]. A plan changes nothing by itself; [`Step::words`] is what the owner of a job is told.

use std::fmt;

use cardhour_domain::{CardShare, CardTime, Timestamp};

use crate::names::{HostName, JobName, Model, QueueName};
use crate::snapshot::{Level, Piece};

/// What should happen, in the order in which it was decided. Each pending job has one step that is about it alone: admitted, reserved or waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The job it is about.
    pub job: JobName,
    /// The queue whose quota the job counts on.
    pub queue: QueueName,
    /// What happens to it.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// The figures behind it.
    pub evidence: Evidence,
}

/// What happens to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It starts at once.
    Admit(Seat),
    /// Room is kept for it until `until`, and it starts when those it waits for are gone or moved.
    Reserve {
        /// Where it will be.
        seat: Seat,
        /// The jobs that have to go, shrink or move first, sorted.
        waits_for: Vec<JobName>,
        /// When the reservation lapses.
        until: Timestamp,
    },
    /// It is ended, and queues again behind the job it was ended for.
    Evict {
        /// For whom. `None`: for nobody, its gang is broken.
        for_job: Option<JobName>,
    },
    /// It gives back some of its workers and goes on.
    Shrink {
        /// How many.
        workers: u32,
        /// Where they are.
        from: Vec<Piece>,
        /// For whom.
        for_job: JobName,
    },
    /// Some of its workers go elsewhere.
    Move {
        /// Where they are.
        from: Vec<Piece>,
        /// Where they go.
        to: Vec<Piece>,
        /// For whom room is made. `None`: for itself, its host failed.
        for_job: Option<JobName>,
    },
    /// Nothing of it lives any more: it queues again.
    Requeue,
    /// It waits.
    Wait,
}

/// A place for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// How many workers.
    pub workers: u32,
    /// On which model. `None`: it asks for no card.
    pub model: Option<Model>,
    /// Where. Without hosts where hosts aren't counted.
    pub pieces: Vec<Piece>,
}

/// Why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It fits into its queue's own quota.
    WithinQuota,
    /// Its queue has no quota of its own, and it fits into that of a queue above.
    WithinQuotaAbove {
        /// The nearest one above that has a quota.
        queue: QueueName,
    },
    /// Neither its queue nor one above has a quota of what it asks for, and the room is free.
    NoQuota,
    /// It fits into what others leave idle.
    Borrows,
    /// Its room is being given back by others that are above their quota.
    ReclaimInPool,
    /// Its room is taken from lower priority elsewhere, while its own queue borrows.
    ReclaimWhileBorrowing,
    /// Its room is taken from a queue that has more than its fair share.
    FairShare,
    /// Its room is taken from lower priority in its own queue.
    InQueue,
    /// An approved critical window.
    CriticalWindow,
    /// Others move aside for it.
    Consolidation,
    /// Those whose room it gets were leaving anyway.
    AlreadyLeaving,
    /// It is promised room by an earlier plan.
    Reserved,
    /// A host failed, and there is room elsewhere.
    HostFailed,
    /// A host failed and there is no room.
    NoReplacement,
    /// It has fewer workers than it can run with.
    BrokenGang,
    /// It waits for what the variant says.
    Waits(Why),
}

/// What a job waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its queue isn't in the quota tree.
    UnknownQueue,
    /// No card of the models it runs on is in the pool.
    NoSuchModel,
    /// It asks for more than its queue could ever have.
    NeverByQuota {
        /// The most it could have, in the resource's unit.
        most: i64,
        /// What it asks for.
        wanted: i64,
    },
    /// Its queue has no room left under a quota or a cap.
    QuotaUsed {
        /// What is left.
        left: i64,
        /// What it asks for.
        wanted: i64,
    },
    /// It can't be ended, so it may use its queue's own quota only.
    NotLentToUnpreemptible,
    /// Quota would allow it, and nowhere is room.
    NoRoom {
        /// Within one domain of this level. `None`: anywhere.
        level: Option<Level>,
        /// The domain or host that comes nearest.
        best: Option<String>,
        /// Workers that fit there.
        fits: u32,
        /// Workers it asks for.
        wanted: u32,
    },
    /// The room there is will be a gang's that is before it, and it isn't sure to end before that starts.
    KeptForGang {
        /// That gang.
        head: JobName,
    },
    /// Others are leaving more than they were ended for; the rest is given out once it is empty.
    BeingLeft,
    /// Its queue's rules reach jobs that hold cards, but no more may be ended at once.
    BudgetSpent,
    /// Room could be made for it, but only by ending more jobs than may still be ended at once.
    BudgetTooSmall,
    /// It would get room at others' cost, though its queue has more than its fair share.
    OverFairShare,
    /// Room could be made, but its owner gets its quota back in steps.
    GivesBackInSteps,
    /// Its lost workers find no room; it keeps the rest and waits.
    ReplacementPending,
    /// Its queue's card-hours of the month won't last: new work starts in off-peak windows.
    OffPeakOnly,
    /// The job before it in its queue waits, and the queue keeps its order.
    BehindHead {
        /// That job.
        head: JobName,
    },
}

/// The figures behind a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Cards the step gives or takes.
    pub cards: CardShare,
    /// Work that is lost by it.
    pub lost: CardTime,
    /// Of a job that waits: whom the rules would have let it end, the first few. Ending all of them wasn't enough.
    pub considered: Vec<JobName>,
}

impl Step {
    /// What the owner of the job is told.
    pub fn words(&self) -> String {
        let cards = Cards(self.evidence.cards);
        let lost = self.evidence.lost.card_hours().round_dp(2).normalize();
        match &self.action {
            Action::Admit(seat) => {
                format!("{} starts with {cards}{}: {}", self.job, at(&seat.pieces), self.reason.of_who_gets())
            }
            Action::Reserve { seat, waits_for, until } => format!(
                "{} gets {cards}{} when {} made room: {}; kept until {}",
                self.job,
                at(&seat.pieces),
                list(waits_for),
                self.reason.of_who_gets(),
                until.to_utc().map_or_else(|| until.unix_ms().to_string(), |time| time.to_rfc3339())
            ),
            Action::Evict { for_job: Some(other) } => {
                format!(
                    "{} gives {cards} to {other} and queues again: {}; {lost} card-hours of work are lost",
                    self.job, self.reason
                )
            }
            Action::Evict { for_job: None } => {
                format!("{} is ended and queues again: {}; {lost} card-hours of work are lost", self.job, self.reason)
            }
            Action::Shrink { workers, from: _, for_job } => {
                format!("{} goes on with {workers} workers less, {cards} go to {for_job}: {}", self.job, self.reason)
            }
            Action::Move { from, to, for_job } => {
                let whom = for_job.as_ref().map_or_else(String::new, |job| format!(" for {job}"));
                format!(
                    "{} moves{}{whom} to{}: {}; {lost} card-hours of work are lost",
                    self.job,
                    at(from),
                    at(to),
                    self.reason
                )
            }
            Action::Requeue => format!("{} queues again: {}", self.job, self.reason),
            Action::Wait => format!("{} waits: {}", self.job, self.reason),
        }
    }
}

impl Reason {
    /// The reason as whoever gets the cards is told it: of whoever gives them it is the other way round.
    fn of_who_gets(&self) -> String {
        match self {
            Self::FairShare => "its queue has less than its fair share".to_owned(),
            Self::InQueue => "it has a higher priority than a job of its own queue".to_owned(),
            Self::ReclaimWhileBorrowing => "it has a higher priority, while its queue borrows".to_owned(),
            Self::WithinQuota
            | Self::WithinQuotaAbove { .. }
            | Self::NoQuota
            | Self::Borrows
            | Self::ReclaimInPool
            | Self::CriticalWindow
            | Self::Consolidation
            | Self::AlreadyLeaving
            | Self::Reserved
            | Self::HostFailed
            | Self::NoReplacement
            | Self::BrokenGang
            | Self::Waits(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WithinQuota => "it is within its queue's quota",
            Self::WithinQuotaAbove { queue } => return write!(f, "it is within the quota of {queue}, above its queue"),
            Self::NoQuota => "the cards are free, and no quota speaks of them",
            Self::Borrows => "it borrows what others leave idle",
            Self::ReclaimInPool => "quota goes back to its owner",
            Self::ReclaimWhileBorrowing => "it has a lower priority than a job of a queue that borrows",
            Self::FairShare => "its queue has more than its fair share",
            Self::InQueue => "a job of higher priority of its own queue",
            Self::CriticalWindow => "an approved critical window",
            Self::Consolidation => "the cards are there, but scattered",
            Self::AlreadyLeaving => "its room is being left already",
            Self::Reserved => "its room was kept for it",
            Self::HostFailed => "its host failed",
            Self::NoReplacement => "no replacement for failed node",
            Self::BrokenGang => "it has fewer workers than it can run with",
            Self::Waits(why) => return why.fmt(f),
        })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownQueue => f.write_str("its queue isn't in the quota tree"),
            Self::NoSuchModel => f.write_str("the pool has no card of a model it runs on"),
            Self::NeverByQuota { most, wanted } => {
                write!(f, "its queue can never have more than {} and it asks for {}", Parts(*most), Parts(*wanted))
            }
            Self::QuotaUsed { left, wanted } => {
                write!(f, "its queue has {} left under its limits and it asks for {}", Parts(*left), Parts(*wanted))
            }
            Self::NotLentToUnpreemptible => f.write_str("it can't be ended, and its queue's own quota is used up"),
            Self::NoRoom { level: Some(Level::Host), best: Some(best), fits, wanted } => {
                write!(f, "the best host, {best}, offers {fits} of {wanted} workers")
            }
            Self::NoRoom { level: Some(level), best: Some(best), fits, wanted } => {
                write!(f, "the best {level}, {best}, offers {fits} of {wanted} workers")
            }
            Self::NoRoom { best: _, fits, wanted, level: _ } => write!(f, "the pool offers {fits} of {wanted} workers"),
            Self::KeptForGang { head } => {
                write!(f, "the room there is will be {head}'s, and it isn't sure to end before that")
            }
            Self::BeingLeft => f.write_str("enough is being left by others, and is given out once it is empty"),
            Self::BudgetSpent => f.write_str("the budget allows no more jobs to be ended for others at once"),
            Self::BudgetTooSmall => {
                f.write_str("its room would take the end of more jobs than the budget still allows at once")
            }
            Self::OverFairShare => f.write_str("the pool is full, and its queue has its fair share already"),
            Self::GivesBackInSteps => f.write_str("its queue's quota is being given back step by step"),
            Self::ReplacementPending => f.write_str("no room for the workers it lost; it goes on waiting"),
            Self::OffPeakOnly => {
                f.write_str("its queue's card-hours of the month won't last, so new work starts off-peak")
            }
            Self::BehindHead { head } => write!(f, "{head} is before it in its queue"),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zone => "zone",
            Self::Block => "block",
            Self::Rack => "rack",
            Self::Island => "NVLink island",
            Self::Host => "host",
        })
    }
}

/// Cards in words.
struct Cards(CardShare);

impl fmt::Display for Cards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cards = self.0.cards().round_dp(3).normalize();
        write!(f, "{cards} card{}", if self.0 == CardShare::CARD { "" } else { "s" })
    }
}

/// Parts of a card in words; below zero, nothing.
struct Parts(i64);

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Cards(CardShare::from_parts(self.0.max(0))).fmt(f)
    }
}

fn at(pieces: &[Piece]) -> String {
    let hosts: Vec<&HostName> = pieces.iter().filter_map(|piece| piece.host.as_ref()).collect();
    match hosts.as_slice() {
        [] => String::new(),
        [one] => format!(" on {one}"),
        [first, .., last] => format!(" on {} hosts from {first} to {last}", hosts.len()),
    }
}

fn list(jobs: &[JobName]) -> String {
    match jobs {
        [] => "others have".to_owned(),
        [one] => format!("{one} has"),
        [first, second] => format!("{first} and {second} have"),
        [first, ..] => format!("{first} and {} others have", jobs.len() - 1),
    }
}
