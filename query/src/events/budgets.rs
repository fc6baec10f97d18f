//! Thresholds of budgets as events.

use super::{Channel, Event, News, Outcome, Severity, labels_of, tell};
use crate::books::Books;
use crate::budgets::BudgetBasis;
use crate::error::Error;
use cardhour_books::budgets::Budgets;
use cardhour_books::budgets::alert::{self, Crossing, Due, Told, due};
use cardhour_domain::{Timestamp, Zone};
use cardhour_ledger::ToldAlert;
use std::collections::BTreeMap;

/// The name of the event.
pub const NAME: &str = "CardhourBudget";

/// From this part of a limit on it is a warning. Unit: percent.
const WARNING_FROM: u32 = 100;

/// Looks at the budgets, and tells every channel what it doesn't know. Errors: budgets or prices are faulty; the ledger's own.
pub async fn look(books: &Books, channels: &[Channel], now: Timestamp) -> Result<Outcome, Error> {
    let stand = books.budgets(now).await?;
    let zone = books.zone();
    tell(books, channels, |before| {
        let rows: Vec<&&ToldAlert> = before.iter().filter(|row| &*row.alert == NAME).collect();
        let told: Vec<Told> = rows.iter().filter_map(|row| told(row)).collect();
        let labels_before = |crossing: &Crossing| {
            let row = rows.iter().find(|row| told_crossing(row).as_ref() == Some(crossing));
            row.map(|row| labels_of(&row.labels))
        };
        let events = due(&stand.standings, &told);
        events.iter().map(|due| event(due, labels_before(&due.crossing), stand.budgets.as_ref(), zone, now)).collect()
    })
    .await
}

/// The same, unless nothing was written since a look that told all that was due: then usage isn't read. `looked`: what that look rested on; renewed here.
///
/// Errors: as [`look`].
pub(crate) async fn look_if_changed(
    books: &Books,
    channels: &[Channel],
    now: Timestamp,
    looked: &mut Option<BudgetBasis>,
) -> Result<Outcome, Error> {
    // Taken first: what is written while we look is looked at the next time.
    let basis = books.budget_basis(now).await?;
    if basis.is_some() && basis == *looked {
        return Ok(Outcome::default());
    }
    *looked = None;
    let outcome = look(books, channels, now).await?;
    if outcome.failed.is_empty() {
        *looked = basis;
    }
    Ok(outcome)
}

fn event(
    due: &Due,
    before: Option<BTreeMap<String, String>>,
    budgets: Option<&Budgets>,
    zone: Zone,
    now: Timestamp,
) -> Event {
    let Crossing { budget, period, limit, threshold } = &due.crossing;
    let scope = due.standing.as_ref().map(|standing| &standing.budget.scope);
    // What is over has the labels that it was told with, or nobody knows it again.
    let labels = before.unwrap_or_else(|| {
        let own = [
            ("budget", budget.to_string()),
            ("period", period.to_string()),
            ("limit", limit.to_string()),
            ("threshold", threshold.to_string()),
        ];
        let scope = scope.into_iter().flat_map(|scope| scope.named()).map(|(name, text)| (name, text.to_owned()));
        own.into_iter().chain(scope).map(|(name, value)| (name.to_owned(), value)).collect()
    });
    let user = labels.get("user").filter(|user| !user.contains(['*', '?'])).cloned();
    Event {
        name: NAME,
        labels,
        news: match due.news {
            alert::News::Reached => News::Reached,
            alert::News::Over => News::Over,
        },
        severity: if *threshold >= WARNING_FROM { Severity::Warning } else { Severity::Info },
        at: now,
        ends_at: budgets.and_then(|budgets| alert::ends_at(budgets, &due.crossing, zone)),
        summary: due.summary(),
        description: due.outlook(zone),
        user,
    }
}

fn told(row: &ToldAlert) -> Option<Told> {
    Some(Told { crossing: told_crossing(row)?, news: alert::News::from_name(&row.news)? })
}

fn told_crossing(row: &ToldAlert) -> Option<Crossing> {
    let labels = labels_of(&row.labels);
    let label = |name: &str| labels.get(name).map(|value| value.as_str().into());
    Some(Crossing {
        budget: label("budget")?,
        period: label("period")?,
        limit: label("limit")?,
        threshold: labels.get("threshold")?.parse().ok()?,
    })
}
