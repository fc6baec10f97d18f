//! When a run was: whether it is over, from when to when, and up to when its source speaks for it (design §4.1).

use crate::import::time::Moment;
use cardhour_domain::{JobState, Timestamp};

/// Why a row can't be booked: the field at fault and the reason, for `quarantine`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Our name of the field; empty for the row as a whole.
    pub field: &'static str,
    /// What is wrong.
    pub reason: String,
}

impl Refusal {
    /// From a field and what is wrong with it.
    pub fn new(field: &'static str, reason: impl Into<String>) -> Self {
        Self { field, reason: reason.into() }
    }
}

/// What decides whether a row's run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverBy {
    /// The state, as in sacct; where that is unknown, an end.
    State,
    /// An end, as in csv and jsonl.
    End,
    /// A length of the run, where no column says its end.
    Length,
}

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// When it was asked for.
    pub submitted: Option<Moment>,
    /// When it got its cards.
    pub started: Option<Moment>,
    /// When it gave them back, or for an open one an estimate.
    pub ended: Option<Moment>,
    /// How long it was from start to end, suspended time and all. Unit: milliseconds.
    pub length_ms: Option<i64>,
}

/// When a run was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// Whether it is over.
    pub is_final: bool,
    /// When it was asked for.
    pub submitted_at: Option<Timestamp>,
    /// When it got its cards.
    pub started_at: Option<Timestamp>,
    /// When it gave them back; none for an open one.
    pub ended_at: Option<Timestamp>,
    /// Of an open one: start and length so far, the last moment the row itself vouches for.
    pub vouched_until: Option<Timestamp>,
}

/// A clock may be wrong and a zone unknown by less than this.
const TOLERATED_FUTURE_MS: i64 = 24 * 3_600_000;

/// Nobody holds a card for ten years: such a row has a wrong year.
pub const LONGEST_HELD_MS: i64 = 3_653 * 24 * 3_600_000;

impl When {
    /// From what a row says. `now`: when the import runs.
    ///
    /// Of times that a clock showed twice those are taken that fit the length best, the earlier where several do (LED-9).
    /// Errors: an end before the start, a run that is over and has no end, a time before 1970 or after `now`, more than
    /// ten years.
    pub fn of(told: Told, state: JobState, over_by: OverBy, now: Timestamp) -> Result<Self, Refusal> {
        let is_final = match over_by {
            OverBy::State if state == JobState::Unknown => told.ended.is_some(),
            OverBy::State => !state.is_open(),
            OverBy::End => told.ended.is_some(),
            OverBy::Length => told.ended.is_some() || (told.started.is_some() && told.length_ms.is_some()),
        };
        // What Slurm gives as the start of a pending job is when it expects to start it.
        let started = told.started.filter(|_| over_by != OverBy::State || state != JobState::Pending);
        let submitted_at = told.submitted.map(Moment::earlier);
        let mut when = Self { is_final, submitted_at, started_at: None, ended_at: None, vouched_until: None };
        match (started, told.ended.filter(|_| is_final)) {
            (None, end) => {
                when.ended_at = end.map(Moment::earlier);
                // A run that took time had a start, whatever else the row leaves out.
                let length_ms = told.length_ms.filter(|ms| *ms > 0);
                when.started_at = when.ended_at.zip(length_ms).and_then(|(end, ms)| end.checked_add_ms(-ms));
            }
            (Some(start), Some(end)) => {
                let (start, end) = best_pair(start, end, told.length_ms);
                (when.started_at, when.ended_at) = (Some(start), Some(end));
            }
            (Some(start), None) => {
                let start = start.earlier();
                when.started_at = Some(start);
                let end = told.length_ms.and_then(|ms| start.checked_add_ms(ms));
                if is_final {
                    when.ended_at = end;
                    if end.is_none() {
                        let state = state.name();
                        return Err(Refusal::new("ended_at", format!("is absent, yet the job is over ({state})")));
                    }
                } else {
                    when.vouched_until = end;
                }
            }
        }
        when.check(now)?;
        Ok(when)
    }

    fn check(&self, now: Timestamp) -> Result<(), Refusal> {
        for (field, at) in [
            ("submitted_at", self.submitted_at),
            ("started_at", self.started_at),
            ("ended_at", self.ended_at),
            ("duration_s", self.vouched_until),
        ] {
            if let Some(at) = at {
                check_past(field, at, now)?;
            }
        }
        let Some(start) = self.started_at else { return Ok(()) };
        if let Some(end) = self.ended_at.filter(|end| *end < start) {
            return Err(Refusal::new("ended_at", format!("{end} is before the start, {start}")));
        }
        match self.ended_at.or(self.vouched_until) {
            Some(end) => check_length(start, end),
            None => Ok(()),
        }
    }
}

/// Errors: before 1970, or more than a day after `now`.
pub fn check_past(field: &'static str, at: Timestamp, now: Timestamp) -> Result<(), Refusal> {
    if at.unix_ms() < 0 {
        return Err(Refusal::new(field, format!("{at} is before 1970")));
    }
    if at.ms_since(now) > TOLERATED_FUTURE_MS {
        // Not against which clock: the same row is refused in the same words whenever it is imported (LED-4).
        return Err(Refusal::new(field, format!("{at} is in the future")));
    }
    Ok(())
}

/// Errors: longer than ten years from `start` to `end`.
pub fn check_length(start: Timestamp, end: Timestamp) -> Result<(), Refusal> {
    if end.ms_since(start) > LONGEST_HELD_MS {
        return Err(Refusal::new("ended_at", format!("{end} is more than ten years after the start, {start}")));
    }
    Ok(())
}

/// The start and end, of those that the clock allows, that fit the length best; without a length those that are in order.
fn best_pair(start: Moment, end: Moment, length_ms: Option<i64>) -> (Timestamp, Timestamp) {
    let pairs = [
        (start.earlier(), end.earlier()),
        (start.earlier(), end.later()),
        (start.later(), end.earlier()),
        (start.later(), end.later()),
    ];
    let misfit = |(start, end): (Timestamp, Timestamp)| {
        let length = end.ms_since(start);
        match length_ms {
            Some(told) => length.abs_diff(told),
            None => u64::from(length < 0),
        }
    };
    pairs.into_iter().min_by_key(|pair| misfit(*pair)).unwrap_or(pairs[0])
}

#[cfg(test)]
#[path = "when/tests.rs"]
mod tests;
