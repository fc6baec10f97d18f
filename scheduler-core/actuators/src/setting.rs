//! A limit, quota or number that is set, and set back later.

use crate::action::DecisionId;
use crate::instant::after_s;
use crate::journal::Journal;
use crate::next::{AGAIN_AFTER_S, Next, Step};
use crate::past::{Answer, Past};
use crate::sight::Sight;
use cardhour_domain::Timestamp;
use serde::{Deserialize, Serialize};

/// What a setting is to become.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aim {
    /// A value. None: no limit, however the keeper of it writes that.
    Value {
        /// Which.
        to: Option<u64>,
        /// What the decision was made on: found to be something else, it is left alone.
        #[serde(default)]
        from: From,
    },
    /// What it was before that decision was carried out.
    AsBefore(DecisionId),
}

impl Aim {
    /// The decision whose change it takes back, where it does.
    pub fn takes_back(&self) -> Option<&DecisionId> {
        match self {
            Self::Value { .. } => None,
            Self::AsBefore(decision) => Some(decision),
        }
    }
}

/// What a setting has to be for a change to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// Whatever it is.
    #[default]
    Anything,
    /// This.
    Value(Option<u64>),
}

/// A change, worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// What it is to become.
    pub to: Option<u64>,
    /// What it has to be before.
    pub from: From,
}

/// What a look at a setting showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingSight {
    /// What it is; none: no limit. Absent altogether where there is no such thing to set.
    pub value: Option<Value>,
    /// Why it may not be made smaller, where it may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_lowered: Option<String>,
    /// Why it may not be changed at all, where it may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_changed: Option<String>,
}

/// What a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// As everybody who enforces it has it.
    Known(Option<u64>),
    /// Kept so, and not yet known to who enforces it.
    OnItsWay(Option<u64>),
}

impl Value {
    /// As it is kept, whoever knows of it yet.
    pub fn kept(self) -> Option<u64> {
        match self {
            Self::Known(value) | Self::OnItsWay(value) => value,
        }
    }
}

/// The change that an aim comes to. Errors: why there is none.
pub fn change_of(aim: &Aim, journal: &dyn Journal) -> Result<Change, String> {
    let decision = match aim {
        Aim::Value { to, from } => return Ok(Change { to: *to, from: *from }),
        Aim::AsBefore(decision) => decision,
    };
    let past = journal.past(decision).ok_or_else(|| format!("nothing is known of decision {decision}"))?;
    let Some(tried) = past.first().filter(|_| past.has_touched()) else {
        return Err(format!("decision {decision} changed nothing"));
    };
    let before = match &tried.before {
        Sight::Setting(SettingSight { value: Some(value), .. }) => value.kept(),
        Sight::Setting(_) | Sight::Job(_) | Sight::Process(_) | Sight::Object(_) => {
            return Err(format!("decision {decision} changed no setting"));
        }
    };
    let Step::Set(set) = tried.step else {
        return Err(format!("decision {decision} changed no setting"));
    };
    Ok(Change { to: before, from: From::Value(set) })
}

/// What comes next.
pub(crate) fn next(change: &Change, sight: &SettingSight, past: &Past, now: Timestamp) -> Next {
    let Some(value) = sight.value else {
        return if past.has_touched() {
            Next::GiveUp("what it is set on is gone".to_owned())
        } else {
            Next::Refuse("there is nothing of that name to set it on".to_owned())
        };
    };
    let kept = value.kept();
    if value == Value::Known(change.to) {
        return Next::True;
    }
    if let Some(tried) = past.tries.last() {
        let again_at = match &tried.answer {
            Some(Answer::Declined(reason)) => return Next::Refuse(reason.clone()),
            Some(Answer::Later { after_s: wait_s, .. }) => after_s(tried.at, *wait_s),
            Some(Answer::Taken | Answer::Unknown(_)) => after_s(tried.at, AGAIN_AFTER_S),
            // The program ended in between: what is seen now counts.
            None => tried.at,
        };
        if now < again_at {
            return Next::Wait(again_at);
        }
    }
    // It is kept so, and isn't known everywhere yet: there is nothing to do but to look again.
    if kept == change.to {
        return Next::Wait(after_s(now, AGAIN_AFTER_S));
    }
    if let Some(reason) = &sight.not_changed {
        return Next::Refuse(reason.clone());
    }
    let first = past.first().and_then(|tried| match &tried.before {
        Sight::Setting(before) => before.value.map(Value::kept),
        Sight::Job(_) | Sight::Process(_) | Sight::Object(_) => None,
    });
    let expected = match (change.from, first) {
        // Between two tries it can only be what it was before the first.
        (_, Some(first)) => Some(first),
        (From::Value(from), None) => Some(from),
        (From::Anything, None) => None,
    };
    if let Some(expected) = expected.filter(|expected| *expected != kept) {
        let reason = format!("somebody else set it: it is {}, not {}", shown(kept), shown(expected));
        return if past.has_touched() { Next::GiveUp(reason) } else { Next::Refuse(reason) };
    }
    let is_lower = match (kept, change.to) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(from), Some(to)) => to < from,
    };
    match &sight.not_lowered {
        Some(reason) if is_lower => Next::Refuse(reason.clone()),
        Some(_) | None => Next::Do(Step::Set(change.to)),
    }
}

fn shown(value: Option<u64>) -> String {
    value.map_or_else(|| "no limit".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests;
