//! One round of an action: look, work out, ask, write down, act, look again.

use crate::action::{Action, What};
use crate::guards::{Guards, Held};
use crate::instant::after_s;
use crate::journal::{Entry, Event, Journal, JournalError};
use crate::next::{AGAIN_AFTER_S, Next, Step, next};
use crate::past::{Answer, Past, Standing};
use crate::setting::{self, Change};
use crate::sight::Sight;
use crate::world::{Trouble, World};
use cardhour_domain::Timestamp;

/// Steps of one round, at most: each look has to show something new.
const MOST_STEPS: usize = 4;

/// How an action stands after a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Round {
    /// It is over: true, refused or given up. Nothing more is done for this decision, whenever it is asked again.
    Over(Standing),
    /// Another round is due then, or sooner.
    Due(Timestamp),
    /// A step would be done, and isn't for now.
    Held {
        /// Which.
        step: Step,
        /// Why not.
        why: Held,
    },
    /// The world can't be seen: nothing is done, and another round is due then.
    Blind {
        /// Why.
        reason: String,
        /// When.
        due: Timestamp,
    },
}

/// What belongs to a round.
pub struct Carrying<'a> {
    /// What is looked at and touched.
    pub world: &'a mut dyn World,
    /// What is kept of it.
    pub journal: &'a mut dyn Journal,
    /// What is asked before each touch.
    pub guards: &'a Guards,
    /// Asked right before the first touch, with what is seen: whether it is still wanted, or why not.
    pub is_wanted: &'a dyn Fn(&Action, &Sight) -> Result<(), String>,
    /// The clock.
    pub now: &'a dyn Fn() -> Timestamp,
}

/// Carries an action one round further. Errors: the journal can't be kept; nothing was touched that isn't in it.
pub fn round(action: &Action, with: &mut Carrying<'_>) -> Result<Round, JournalError> {
    let now = (with.now)();
    match with.journal.past(&action.decision) {
        Some(past) if past.action != *action => {
            return Err(JournalError::OutOfOrder {
                decision: action.decision.clone(),
                reason: "another action has the same decision",
            });
        }
        Some(past) if past.standing.is_over() => return Ok(Round::Over(past.standing.clone())),
        Some(_) => {}
        None => {
            record(with, action, now, Event::Planned(action.clone()))?;
            if after_s(now, action.what.own_wait_s()) > action.deadline {
                let reason = format!("its grace would end after its deadline {}", action.deadline);
                return over(with, action, now, Standing::Refused(reason), None);
            }
        }
    }
    let mut steps = 0;
    loop {
        let now = (with.now)();
        let past = with.journal.past(&action.decision).expect("planned above").clone();
        let change = match change_of(action, with.journal) {
            Ok(change) => change,
            Err(reason) => return over(with, action, now, Standing::Refused(reason), None),
        };
        let sight = match with.world.look(&action.what) {
            Ok(sight) => sight,
            // Missing information is no reason to act; but there is an end to waiting.
            Err(trouble) if now >= action.deadline => {
                let reason = format!("not seen by its deadline: {trouble}");
                return over(with, action, now, ended_badly(&past, reason), None);
            }
            Err(Trouble::NotHere(reason)) => return over(with, action, now, Standing::Refused(reason), None),
            Err(Trouble::Unseen(reason)) => {
                return Ok(Round::Blind { reason, due: after_s(now, AGAIN_AFTER_S) });
            }
        };
        let step = match next(action, &sight, &past, change.as_ref(), now) {
            Next::True => return over(with, action, now, Standing::SeenTrue, Some(sight)),
            Next::Refuse(reason) => return over(with, action, now, Standing::Refused(reason), Some(sight)),
            Next::GiveUp(reason) => return over(with, action, now, Standing::GivenUp(reason), Some(sight)),
            Next::Wait(_) | Next::Do(_) if now >= action.deadline => {
                let last = past.tries.last().and_then(|tried| match &tried.answer {
                    Some(Answer::Later { reason, .. } | Answer::Unknown(reason)) => Some(reason.as_str()),
                    Some(Answer::Taken | Answer::Declined(_)) | None => None,
                });
                let reason = last.map_or_else(
                    || "not true by its deadline".to_owned(),
                    |last| format!("not true by its deadline; last: {last}"),
                );
                return over(with, action, now, ended_badly(&past, reason), Some(sight));
            }
            Next::Wait(until) => return Ok(Round::Due(until.min(action.deadline))),
            Next::Do(step) => step,
        };
        if let Err(why) = with.guards.allow(action, with.journal, now) {
            return Ok(Round::Held { step, why });
        }
        if past.tries.is_empty()
            && let Err(reason) = (with.is_wanted)(action, &sight)
        {
            let reason = Held::NotWanted(reason).to_string();
            return over(with, action, now, Standing::Refused(reason), Some(sight));
        }
        steps += 1;
        if steps > MOST_STEPS {
            return Ok(Round::Due(after_s(now, AGAIN_AFTER_S)));
        }
        record(with, action, now, Event::Trying { step: step.clone(), before: sight.clone() })?;
        let answer = match with.world.act(&action.what, &step, &sight) {
            Ok(answer) => answer,
            Err(Trouble::NotHere(reason)) => Answer::Declined(reason),
            Err(Trouble::Unseen(reason)) => Answer::Unknown(reason),
        };
        record(with, action, (with.now)(), Event::Tried(answer))?;
    }
}

fn ended_badly(past: &Past, reason: String) -> Standing {
    if past.has_touched() { Standing::GivenUp(reason) } else { Standing::Refused(reason) }
}

fn change_of(action: &Action, journal: &dyn Journal) -> Result<Option<Change>, String> {
    match &action.what {
        What::SlurmLimit(limit) => setting::change_of(&limit.aim, journal).map(Some),
        What::Kubernetes(what) => what.aim().map(|aim| setting::change_of(aim, journal)).transpose(),
        What::SlurmJob(_) | What::Process(_) => Ok(None),
    }
}

fn record(with: &mut Carrying<'_>, action: &Action, at: Timestamp, event: Event) -> Result<(), JournalError> {
    with.journal.record(Entry { decision: action.decision.clone(), at, event })
}

fn over(
    with: &mut Carrying<'_>,
    action: &Action,
    at: Timestamp,
    standing: Standing,
    after: Option<Sight>,
) -> Result<Round, JournalError> {
    record(with, action, at, Event::Over { standing: standing.clone(), after })?;
    Ok(Round::Over(standing))
}

#[cfg(test)]
mod tests;
