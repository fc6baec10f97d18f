//! The explained lines as a table: a row a line, a column a cause.

use super::billing::Billing;
use super::{Cause, Explained, Parts, Tool, Who};
use crate::report::Dimension;
use crate::table::{Column, Kind, Table, Value};
use cardhour_domain::{CardTime, Name};
use rust_decimal::Decimal;
use std::collections::BTreeMap;

#[derive(Default)]
struct Sum {
    ours: CardTime,
    theirs: CardTime,
    parts: Parts,
    attempts: u64,
    billing: Option<Billing>,
}

impl Sum {
    fn add(&mut self, line: &Explained) {
        self.ours += line.ours;
        self.theirs += line.theirs;
        self.parts.add_all(&line.parts);
        self.attempts += line.attempts.len() as u64;
        match (&mut self.billing, &line.billing) {
            (Some(sum), Some(more)) => sum.add(more),
            (sum @ None, Some(more)) => *sum = Some(more.clone()),
            (_, None) => {}
        }
    }
}

/// What lines of a report can be grouped by; the first name that they can't.
pub fn refused(by: &[Dimension]) -> Option<&Dimension> {
    by.iter().find(|by| !matches!(by, Dimension::Cluster | Dimension::Project | Dimension::User))
}

/// The table. `by`: cluster, project and user, any of them; `by_job`: a row for each job too. Shape: a row a group; the total is that of all.
pub fn table(tool: Tool, lines: &[Explained], by: &[Dimension], by_job: bool, title: String) -> Table {
    let mut rows: BTreeMap<Vec<Value>, Sum> = BTreeMap::new();
    let mut total = Sum::default();
    for line in lines {
        let mut group: Vec<Value> = by.iter().map(|by| value(by, &line.who)).collect();
        group.extend(by_job.then(|| named(line.who.job.as_ref())));
        rows.entry(group).or_default().add(line);
        total.add(line);
    }
    let causes = causes_of(tool);
    let text = |name: String| Column { name, kind: Kind::Text };
    let hours = |name: &str| Column { name: format!("{name}_card_hours"), kind: Kind::Hours };
    let mut columns: Vec<Column> = by.iter().map(|by| text(by.to_string())).collect();
    columns.extend(by_job.then(|| text("job".to_owned())));
    let groups = columns.len();
    columns.push(Column { name: "attempts".to_owned(), kind: Kind::Count });
    columns
        .extend(["our", "their", "difference"].into_iter().chain(causes.iter().map(|cause| cause.name())).map(hours));
    let has_billing = lines.iter().any(|line| line.billing.is_some());
    if has_billing {
        let names =
            ["exact_billing_hours", "slurm_billing_hours", "whole_number_cut_hours", "unexplained_billing_hours"];
        columns.extend(names.map(|name| Column { name: name.to_owned(), kind: Kind::Hours }));
    }
    let figures = |sum: &Sum| {
        let hours = |time: CardTime| Value::Decimal(time.card_hours());
        let mut row =
            vec![Value::Count(sum.attempts), hours(sum.ours), hours(sum.theirs), hours(sum.ours - sum.theirs)];
        row.extend(causes.iter().map(|cause| hours(sum.parts.of(*cause))));
        if has_billing {
            row.extend(billed(sum.billing.as_ref()));
        }
        row
    };
    let found: Vec<Cause> =
        Cause::ALL.into_iter().filter(|cause| lines.iter().any(|line| !line.parts.of(*cause).is_zero())).collect();
    let mut notes: Vec<String> =
        found.iter().map(|cause| format!("{}: {}", cause.name(), words(*cause, tool))).collect();
    if has_billing {
        notes.push(
            "billing: weights times resources, times elapsed time; Slurm cuts the sum of each job to a whole number, the exact one is beside it"
                .to_owned(),
        );
    }
    let total = (!rows.is_empty()).then(|| std::iter::repeat_n(Value::Absent, groups).chain(figures(&total)).collect());
    let rows = rows.into_iter().map(|(group, sum)| group.into_iter().chain(figures(&sum)).collect()).collect();
    Table { title, columns, rows, total, notes }
}

/// Billing-hours: exact, Slurm's, cut, unexplained.
fn billed(billing: Option<&Billing>) -> [Value; 4] {
    let hours = |seconds: Decimal| {
        let mut hours = (seconds / Decimal::from(3600)).round_dp(6);
        hours.rescale(6);
        Value::Decimal(hours)
    };
    let Some(billing) = billing else { return [const { Value::Absent }; 4] };
    let explained = |figure| if billing.exact.is_some() { hours(figure) } else { Value::Absent };
    [
        billing.exact.map_or(Value::Absent, hours),
        hours(billing.slurm),
        explained(billing.cut),
        explained(billing.unexplained),
    ]
}

/// The causes that there can be beside a tool, in the order of the columns.
fn causes_of(tool: Tool) -> Vec<Cause> {
    use Cause::{CountedTwice, Idle, Lifetime, ReservedUnused, Shares, Suspended, TimeZone};
    let never: &[Cause] = match tool {
        Tool::Sreport => &[Lifetime, Suspended, Idle],
        Tool::Sacct => &[TimeZone, Lifetime, ReservedUnused, Idle],
        Tool::OpenCost => &[TimeZone, Suspended, Shares, ReservedUnused],
    };
    debug_assert!(!never.contains(&CountedTwice), "any report can have a row twice");
    Cause::ALL.into_iter().filter(|cause| !never.contains(cause)).collect()
}

fn named(name: Option<&Name>) -> Value {
    name.cloned().map_or(Value::Absent, Value::Text)
}

fn value(by: &Dimension, who: &Who) -> Value {
    match by {
        Dimension::Cluster => named(who.cluster.as_ref()),
        Dimension::Project => named(who.project.as_ref()),
        Dimension::User => named(who.user.as_ref()),
        // Refused before.
        _ => Value::Absent,
    }
}

/// What a cause means, for people.
fn words(cause: Cause, tool: Tool) -> &'static str {
    match (cause, tool) {
        (Cause::BilledOtherwise, _) => {
            "billed here less what the record claims: not billed in an outage, or cut to what was left of a card that several claim"
        }
        (Cause::CorrectedLater, _) => {
            "the month was closed: it keeps what it was closed with, here less what is known today, and the difference is a correction in a later month"
        }
        (Cause::Window, Tool::Sreport) => {
            "held in the hours asked for here less held in the hours of the report; sreport rounds both ends to whole hours, cardhour counts to the second"
        }
        (Cause::Window, Tool::Sacct) => {
            "sacct has whole jobs; here only what of them lies in the hours asked for, and also runs of a requeued job that the list cut off at its ends"
        }
        (Cause::Window, Tool::OpenCost) => "held in the hours asked for here less held in the window of the report",
        (Cause::TimeZone, _) => "the same clock time is another hour in the report's zone",
        (Cause::Lifetime, _) => {
            "held before the start or after the end that the report has for the pod; its ends are those of the samples it found"
        }
        (Cause::Suspended, _) => "suspended: its cards stay held, and sacct leaves it out of the elapsed time",
        (Cause::Shares, _) => "a part of a card is that part here; Slurm counts a whole card for it",
        (Cause::ReservedUnused, _) => {
            "set aside by a reservation and held by nobody: Slurm charges it to those that may use it, at most what the books have of it"
        }
        (Cause::CountedTwice, _) => {
            "the report has exactly twice, three or four times what was held: two sources of the same rows"
        }
        (Cause::StillOpen, _) => "still running: the two were asked at different moments",
        (Cause::NotInTheirs, _) => "in the books and not in the report",
        (Cause::NotInOurs, _) => "in the report and not in the books: an import may be missing",
        (Cause::Idle, _) => "cards that nobody held: a row of the report, free time in the books",
        (Cause::Rounding, _) => "within half a unit of the report; a smaller unit tells more",
        (Cause::Unexplained, _) => "no cause was found: somebody has to look",
    }
}
