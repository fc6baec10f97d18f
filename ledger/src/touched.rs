//! Which days a change of facts touches, as the change's commit notes it.

use cardhour_domain::Interval;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The note's name in a commit.
pub(crate) const NOTE: &str = "cardhour.touched";

/// Days whose books a change of facts may alter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    /// Everything; the days don't matter then.
    pub(crate) all: bool,
    /// UTC days whose usage may change.
    pub(crate) usage: BTreeSet<i32>,
    /// UTC days on which holdings start that may change.
    pub(crate) starts: BTreeSet<i32>,
}

impl Touched {
    /// Everything.
    pub(crate) fn everything() -> Self {
        Self { all: true, ..Self::default() }
    }

    /// What was held over `held`, from its start on, changed over `changed`.
    pub(crate) fn holding(&mut self, held: Interval, changed: Interval) {
        self.starts.insert(held.start().utc_day());
        self.usage.extend(changed.utc_days());
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.all |= other.all;
        self.usage.extend(other.usage);
        self.starts.extend(other.starts);
    }

    /// As a commit notes it: runs of days, so that a month is one pair.
    pub(crate) fn to_note(&self) -> Value {
        json!({"all": self.all, "usage": runs(&self.usage), "starts": runs(&self.starts)})
    }

    /// Reads a note. A commit without a note touches nothing (compaction, vacuum); one that can't be read, everything.
    pub(crate) fn from_note(note: Option<&Value>) -> Self {
        let Some(note) = note else { return Self::default() };
        // delta-rs keeps notes as they were given, other writers may keep them as text.
        let parsed = note.as_str().and_then(|text| serde_json::from_str(text).ok());
        let note = parsed.as_ref().unwrap_or(note);
        let read = || {
            Some(Self {
                all: note.get("all")?.as_bool()?,
                usage: days(note.get("usage")?)?,
                starts: days(note.get("starts")?)?,
            })
        };
        read().unwrap_or_else(Self::everything)
    }
}

fn runs(days: &BTreeSet<i32>) -> Vec<(i32, i32)> {
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for day in days {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *day => *last = *day,
            _ => runs.push((*day, *day)),
        }
    }
    runs
}

fn days(runs: &Value) -> Option<BTreeSet<i32>> {
    let runs: Vec<(i32, i32)> = serde_json::from_value(runs.clone()).ok()?;
    Some(runs.into_iter().flat_map(|(first, last)| first..=last).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let touched = Touched { all: false, usage: [1, 2, 3, 9].into(), starts: [7].into() };
        assert_eq!(touched.to_note()["usage"], json!([[1, 3], [9, 9]]));
        assert_eq!(Touched::from_note(Some(&touched.to_note())), touched);
        assert_eq!(Touched::from_note(Some(&touched.to_note().to_string().into())), touched);
        assert!(Touched::from_note(Some(&json!("what?"))).all);
        assert_eq!(Touched::from_note(None), Touched::default());
    }
}
