//! Advice as a table.

use super::{Advice, AdviceKind};
use crate::checkpoint::cells::{self, hours, name, text};
use crate::table::{Kind, Table, Value};
use rust_decimal::Decimal;

/// Columns: `budget period advice project user model jobs card_hours saving currency how line command`; no `saving` where no price says it, no `line` where the figures are of
/// no single one; `command` shows them.
pub fn table(all: &[Advice], title: &str) -> Table {
    let columns = [
        ("budget", Kind::Text),
        ("period", Kind::Text),
        ("advice", Kind::Text),
        ("project", Kind::Text),
        ("user", Kind::Text),
        ("model", Kind::Text),
        ("jobs", Kind::Count),
        ("card_hours", Kind::Hours),
        ("saving", Kind::Money),
        ("currency", Kind::Text),
        ("how", Kind::Text),
        ("line", Kind::Text),
        ("command", Kind::Text),
    ];
    let row = |advice: &Advice| {
        let mut row = vec![
            Value::Text(advice.budget.clone()),
            text(advice.period.to_string()),
            text(advice.kind.name()),
            name(advice.whom.project.as_ref()),
            name(advice.whom.user.as_ref()),
            name(advice.whom.model.as_ref()),
            advice.jobs.map_or(Value::Absent, Value::Count),
            hours(advice.card_time),
        ];
        row.extend(match advice.saving {
            Some(saving) => {
                let digits = u32::from(saving.currency().minor_digits());
                let shown = Decimal::from_i128_with_scale(saving.micros(), 6).round_dp(digits);
                [Value::Decimal(shown), text(saving.currency().code())]
            }
            None => [Value::Absent, Value::Absent],
        });
        row.push(text(&advice.how));
        row.push(advice.line.as_ref().map_or(Value::Absent, |line| text(line.to_string())));
        row.push(text(&advice.command));
        row
    };
    let mut table = cells::table(title, &columns, all.iter().map(row).collect());
    let mut notes = vec!["the figures overlap and don't add up".to_owned()];
    // What has a line is traced, and whoever prints lines says how.
    for advice in all.iter().filter(|advice| advice.line.is_none()) {
        let note = format!("{}, {}: {}", advice.kind.name(), advice.budget, advice.command);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let mut kinds: Vec<AdviceKind> = all.iter().map(|advice| advice.kind).collect();
    kinds.sort();
    kinds.dedup();
    notes.extend(kinds.into_iter().filter_map(assumed).map(str::to_owned));
    table.notes = notes;
    table
}

/// What an advice of a kind is, and what is taken to be so.
fn assumed(kind: AdviceKind) -> Option<&'static str> {
    match kind {
        AdviceKind::OffPeak => {
            Some("off-peak: what was billed outside of the cheapest window of its price, taken that it could run in it")
        }
        AdviceKind::Idle => Some("idle: what was held and idle, as the report idle has it"),
        AdviceKind::Checkpointing => {
            Some("checkpointing: work that was gone when it failed or was taken; saving it takes time of its own")
        }
        AdviceKind::CheaperModel => Some(
            "cheaper model: taken that the job takes the same hours there; it was busy for less than a fifth of what was seen, but a slower card may take longer",
        ),
        AdviceKind::LargerBatch => {
            Some("larger batch: the whole price of the underused hours, so the most that can be saved")
        }
        AdviceKind::Merging => Some(
            "merging experiments: taken that mean use and most memory of each job say what it needs beside others, up to 80 % busy and 90 % of the memory of a card",
        ),
        AdviceKind::DedicatedPool => Some("dedicated pool: taken that the time to come is like the time that was"),
    }
}
