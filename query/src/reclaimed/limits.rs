//! Limits of accounts that follow a month's card-hours or a budget: how those stand, gathered for the pure round.
//!
//! Start at [`Reclaimer::limits`]. Does not: decide (`cardhour_decisions::limits` does), set a limit.

use super::Reclaimer;
use crate::books::Books;
use crate::error::{Error, chain};
use cardhour_books::budgets;
use cardhour_books::quotas::Quotas;
use cardhour_decisions::decision::{Decision, Mode};
use cardhour_decisions::limits::{LimitInput, LimitOutput, LimitStanding, limits};
use cardhour_decisions::month::{MonthStanding, fresh};
use cardhour_decisions::policy::{LimitOf, LimitRule, ReclaimPolicy};
use cardhour_domain::{Interval, Name, Timestamp};
use cardhour_ledger::BooksVersion;
use cardhour_scheduler_core::capacity::{Band, BucketPolicy};
use std::collections::BTreeSet;

/// How all that limits follow stood at the last look, and what that rests on: a look each minute doesn't read a month each time.
#[derive(Debug)]
pub(super) struct Stood {
    rules: Vec<LimitRule>,
    quotas: Quotas,
    books: BooksVersion,
    quarter_hour: Timestamp,
    standings: Vec<LimitStanding>,
}

impl Reclaimer {
    /// What is decided of limits at `at`. Errors, in words: what they follow or what was done about them can't be read.
    pub(super) async fn limits(
        &mut self,
        policy: &ReclaimPolicy,
        mode: Mode,
        known: &[Decision],
        at: Timestamp,
    ) -> Result<LimitOutput, String> {
        let pasts = self.carrier.of_limits(&self.books, known)?;
        if policy.limits.is_empty() && pasts.is_empty() {
            return Ok(LimitOutput::default());
        }
        let zone = self.books.zone();
        let standings = self.standings(&policy.limits, at).await.map_err(|error| chain(&error))?;
        Ok(limits(&LimitInput { at, zone, policy, mode, standings, known, pasts: &pasts }))
    }

    async fn standings(&mut self, rules: &[LimitRule], at: Timestamp) -> Result<&[LimitStanding], Error> {
        let quotas = self.books.quotas()?;
        let books = self.books.ledger().read().await?.version();
        let quarter_hour = at.bucket_start();
        let is_as_it_was = self.stood.as_ref().is_some_and(|stood| {
            stood.rules == rules && stood.quotas == quotas && stood.books == books && stood.quarter_hour == quarter_hour
        });
        if !is_as_it_was {
            let standings = self.books.limit_standings(rules, &quotas, at).await?;
            self.stood = Some(Stood { rules: rules.to_vec(), quotas, books, quarter_hour, standings });
        }
        Ok(self.stood.as_ref().map_or(&[], |stood| &stood.standings))
    }
}

impl Books {
    /// How all that these rules follow stands at `at`. A month of which the books say nothing yet has used nothing.
    async fn limit_standings(
        &self,
        rules: &[LimitRule],
        quotas: &Quotas,
        at: Timestamp,
    ) -> Result<Vec<LimitStanding>, Error> {
        let mut standings = Vec::new();
        if rules.iter().any(|rule| matches!(rule.of, LimitOf::Month { .. })) {
            let reading = self.ledger().read().await?;
            // Just after the instant: on the first of a month it is the new one that counts.
            let after = at.checked_add_ms(1).unwrap_or(at);
            let months = self.quota_months(&reading, quotas, after).await?;
            standings.extend(months.into_iter().flat_map(|months| months.standings).map(|(_, month)| of_month(month)));
            let clusters: BTreeSet<Name> = rules.iter().map(|rule| rule.cluster.clone()).collect();
            let clusters: Vec<Name> = clusters.into_iter().collect();
            if let Some(month) = self.zone().month(at) {
                let silent = fresh(quotas, &clusters, month.interval(self.zone()), &BucketPolicy::default());
                for standing in silent.into_iter().map(of_month) {
                    let is_known = standings.iter().any(|known: &LimitStanding| {
                        known.of == standing.of && (known.cluster.is_none() || known.cluster == standing.cluster)
                    });
                    if !is_known {
                        standings.push(standing);
                    }
                }
            }
        }
        if rules.iter().any(|rule| matches!(rule.of, LimitOf::Budget(_))) {
            let budgeted = self.budgets(at.checked_add_ms(1).unwrap_or(at)).await?;
            standings.extend(budgeted.standings.iter().filter_map(|standing| self.of_budget(standing)));
        }
        Ok(standings)
    }

    fn of_budget(&self, standing: &budgets::Standing) -> Option<LimitStanding> {
        let budgets::Standing { budget, period, limit, spent, .. } = standing;
        // Of money without prices nobody knows what was spent.
        let spent = (*spent)?;
        let over = standing.is_over();
        let words = format!(
            "Budget {}: {} of {} {} were spent in {period}, and it is {}",
            budget.name,
            budget.unit.text(spent),
            budget.unit.text(*limit),
            budget.unit.name(),
            if over { "over" } else { "not over" },
        );
        let zone = self.zone();
        Some(LimitStanding {
            of: LimitOf::Budget(budget.name.clone()),
            cluster: None,
            band: if over { Band::Over } else { Band::Ample },
            period: Interval::new(period.first().interval(zone).start(), period.end().interval(zone).start())?,
            words: words.into(),
        })
    }
}

fn of_month(month: MonthStanding) -> LimitStanding {
    LimitStanding {
        words: month.words().into(),
        of: LimitOf::Month { holder: month.holder, model: month.model },
        cluster: month.cluster,
        band: month.standing.band,
        period: month.month,
    }
}
