//! What was done for a decision so far.

use crate::action::Action;
use crate::next::Step;
use crate::sight::Sight;
use cardhour_domain::Timestamp;
use serde::{Deserialize, Serialize};

/// What the world answered to a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It was taken.
    Taken,
    /// Not now: again after so many seconds.
    Later {
        /// Unit: seconds.
        after_s: u32,
        /// Why.
        reason: String,
    },
    /// Never.
    Declined(String),
    /// None that can be told: it may have been done.
    Unknown(String),
}

/// A step that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Try {
    /// Which.
    pub step: Step,
    /// When it was about to be done.
    pub at: Timestamp,
    /// What was seen just before.
    pub before: Sight,
    /// What came of it; none where the program ended before it could say.
    pub answer: Option<Answer>,
}

impl Try {
    /// Whether it certainly had no effect.
    pub fn had_no_effect(&self) -> bool {
        matches!(self.answer, Some(Answer::Later { .. } | Answer::Declined(_)))
    }
}

/// How an action stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Not over.
    Open,
    /// It is true, and was seen to be.
    SeenTrue,
    /// It was left alone.
    Refused(String),
    /// It was begun, and isn't true by its deadline or can't become so.
    GivenUp(String),
}

impl Standing {
    /// Whether nothing more is done.
    pub fn is_over(&self) -> bool {
        match self {
            Self::Open => false,
            Self::SeenTrue | Self::Refused(_) | Self::GivenUp(_) => true,
        }
    }
}

/// All that the journal has of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// What was asked for.
    pub action: Action,
    /// Steps in the order in which they were begun.
    pub tries: Vec<Try>,
    /// How it stands.
    pub standing: Standing,
    /// What was seen last, once it is over.
    pub after: Option<Sight>,
}

impl Past {
    /// Of an action that was just planned.
    pub fn planned(action: Action) -> Self {
        Self { action, tries: vec![], standing: Standing::Open, after: None }
    }

    /// The last try of a kind of step.
    pub fn last(&self, is_it: impl Fn(&Step) -> bool) -> Option<&Try> {
        self.tries.iter().rev().find(|tried| is_it(&tried.step))
    }

    /// The first try, before which nothing was touched.
    pub fn first(&self) -> Option<&Try> {
        self.tries.first()
    }

    /// Whether anything may have been touched.
    pub fn has_touched(&self) -> bool {
        self.tries.iter().any(|tried| !tried.had_no_effect())
    }
}
