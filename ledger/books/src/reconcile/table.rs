//! Lines of a reconciliation as a table: by reason, and by whatever was asked for before it.

use super::{Line, Reason};
use crate::report::{Dimension, ReportAttempt, UNOWNED};
use crate::table::{Column, Kind, Table, Value};
use cardhour_domain::{AttemptKey, CardTime, Name};
use std::collections::{BTreeMap, BTreeSet};

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReconcileQuery {
    /// Grouped by what, before the reason.
    pub by: Vec<Dimension>,
    /// Whether each attempt has its own rows.
    pub by_attempt: bool,
}

impl ReconcileQuery {
    /// The first name that a reconciliation can't be grouped by.
    pub fn refused(&self) -> Option<&Dimension> {
        use Dimension::{Day, Model, Month, Pool, Price, Window};
        self.by.iter().find(|by| matches!(by, Day | Month | Model | Pool | Price | Window))
    }
}

#[derive(Default)]
struct Sum {
    attempts: BTreeSet<AttemptKey>,
    recorded: CardTime,
    observed: CardTime,
}

/// The table. `attempts`: who they are. Shape: a row a group and reason, those that contradict first in each group; the total is that of each side.
pub fn table(
    lines: &[Line],
    attempts: &BTreeMap<AttemptKey, ReportAttempt>,
    query: &ReconcileQuery,
    title: String,
) -> Table {
    let mut rows: BTreeMap<(Vec<Value>, bool, Reason), Sum> = BTreeMap::new();
    let mut total = Sum::default();
    for line in lines {
        let mut group: Vec<Value> = query.by.iter().map(|by| value(by, line, attempts.get(&line.key))).collect();
        if query.by_attempt {
            group.push(Value::Text(line.key.as_str().into()));
        }
        let row = rows.entry((group, !line.reason.contradicts(), line.reason)).or_default();
        for sum in [row, &mut total] {
            sum.attempts.insert(line.key.clone());
            sum.recorded += line.recorded;
            sum.observed += line.observed;
        }
    }
    let text = |name: String| Column { name, kind: Kind::Text };
    let hours = |name: &str| Column { name: name.to_owned(), kind: Kind::Hours };
    let mut columns: Vec<Column> = query.by.iter().map(|by| text(by.to_string())).collect();
    columns.extend(query.by_attempt.then(|| text("attempt_key".to_owned())));
    columns.push(text("reason".to_owned()));
    columns.push(Column { name: "attempts".to_owned(), kind: Kind::Count });
    columns.extend(["recorded_card_hours", "observed_card_hours", "difference_card_hours"].map(hours));
    let figures = |sum: &Sum| {
        let hours = |time: CardTime| Value::Decimal(time.card_hours());
        [
            Value::Count(sum.attempts.len() as u64),
            hours(sum.recorded),
            hours(sum.observed),
            hours(sum.recorded - sum.observed),
        ]
    };
    let found: BTreeSet<Reason> = lines.iter().map(|line| line.reason).collect();
    let shown = |((mut group, _, reason), sum): ((Vec<Value>, bool, Reason), Sum)| {
        group.push(Value::Text(reason.name().into()));
        group.extend(figures(&sum));
        group
    };
    let rows: Vec<Vec<Value>> = rows.into_iter().map(shown).collect();
    let groups = columns.len() - 4;
    let total = (!rows.is_empty()).then(|| std::iter::repeat_n(Value::Absent, groups).chain(figures(&total)).collect());
    let notes = found.iter().map(|reason| format!("{}: {}", reason.name(), words(*reason))).collect();
    Table { title, columns, rows, total, notes }
}

fn value(by: &Dimension, line: &Line, attempt: Option<&ReportAttempt>) -> Value {
    let name = |name: Option<&Name>| name.cloned().map_or(Value::Absent, Value::Text);
    match (by, attempt) {
        (Dimension::Cluster, _) => Value::Text(line.cluster.clone()),
        (Dimension::Node, _) => name(line.node.as_ref()),
        (_, None) => Value::Absent,
        (Dimension::Org | Dimension::Project | Dimension::User, Some(a)) if a.is_unowned() => {
            Value::Text(UNOWNED.into())
        }
        (Dimension::Org, Some(a)) => name(a.org.as_ref()),
        (Dimension::Project, Some(a)) => name(a.project.as_ref()),
        (Dimension::User, Some(a)) => name(a.user.as_ref()),
        (Dimension::Queue, Some(a)) => name(a.queue.as_ref()),
        (Dimension::Class, Some(a)) => name(a.class.as_ref()),
        (Dimension::State, Some(a)) => Value::Text(a.state.name().into()),
        (Dimension::Label(label), Some(a)) => name(a.labels.get(label)),
        // Refused before.
        (_, Some(_)) => Value::Absent,
    }
}

/// What a reason means, for people.
fn words(reason: Reason) -> &'static str {
    match reason {
        Reason::Agree => "both have it",
        Reason::Edge => "within two minutes of the record's start or end; nodes look tick by tick, and clocks differ",
        Reason::NobodyLooked => "recorded, and nobody looked there",
        Reason::NotSeen => "recorded, and seen on fewer cards than the record has",
        Reason::AfterEnd => "seen after its record's end: held as releasing, not billed",
        Reason::StillOpen => "seen after the last moment that an open record vouches for; a newer export will tell",
        Reason::NotExported => "seen at a time that no export speaks for: held as observed",
        Reason::BeforeStart => {
            "seen before its record begins: one of the two clocks is wrong, or the record is of another run"
        }
        Reason::MoreCards => {
            "seen on more cards than its record has: work outside of the allocation, or a wrong record"
        }
        Reason::NoRecord => {
            "seen where an export speaks for that time, and no record has it: work past the scheduler, or rows that are missing"
        }
    }
}
