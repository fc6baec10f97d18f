//! `quote` and the words of `me`: a researcher's questions, answered from the bill's own prices and budgets.
//!
//! Start at [`Books::quote`].

use crate::books::Books;
use crate::error::Error;
use crate::request::{ReportRequest, RequestError, Span};
use crate::serve::row::{Row, rows};
use cardhour_books::advice::Advice;
use cardhour_books::budgets::{Owner, Standing, Unit};
use cardhour_books::nearest;
use cardhour_books::prices::Priced;
use cardhour_books::quote::{Question, Quote, budget_notes, hole_text, models_with_prices, table};
use cardhour_books::report::{Dimension, ReportKind, local};
use cardhour_books::table::Table;
use cardhour_domain::{BUCKET_MS, CardShare, Currency, Interval, Name, Timestamp};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What is asked of `quote`.
#[derive(Clone, Debug)]
pub struct QuoteRequest {
    /// How many cards, above zero.
    pub cards: CardShare,
    /// For how many hours.
    pub hours: Decimal,
    /// From when; none: now.
    pub from: Option<Timestamp>,
    /// Model of the cards.
    pub model: Option<String>,
    /// Who pays, at the top; none: as the books have the project.
    pub org: Option<String>,
    /// Who pays.
    pub project: Option<String>,
    /// Whose it is.
    pub user: Option<String>,
    /// Queue or partition.
    pub queue: Option<String>,
    /// Class of the job.
    pub class: Option<String>,
    /// Pool of the cards.
    pub pool: Option<String>,
    /// Cluster of the cards.
    pub cluster: Option<String>,
    /// Another price book than the ledger's.
    pub prices: Option<PathBuf>,
}

/// A quote, and whether there is a price for all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// The quote.
    pub table: Table,
    /// Some of it has no price: the answer is no.
    pub has_holes: bool,
}

/// The longest that is quoted: beyond a year no price is meant to hold. Unit: hours.
const LONGEST_HOURS: i64 = 8784;
const HOUR_MS: i64 = 3_600_000;
/// So many words of advice are said to a user below their bill.
const MOST_ADVICE: usize = 3;

impl Books {
    /// What some cards for some hours will cost, when they would cost less, and what that leaves of the budgets.
    ///
    /// Errors: no time at all, or too long; no price book, or a faulty one; the ledger's own.
    pub async fn quote(&self, request: &QuoteRequest, now: Timestamp) -> Result<Quoted, Error> {
        let book = self.prices(request.prices.as_deref())?.ok_or(Error::NoPrices)?;
        let start = request.from.unwrap_or(now).bucket_start();
        // A moment inside of a quarter hour begins with the next one.
        let start = if start < request.from.unwrap_or(now) { later(start, BUCKET_MS) } else { start };
        let wrong = || RequestError::Hours(request.hours);
        let ms = request.hours.checked_mul(Decimal::from(HOUR_MS)).and_then(|ms| ms.round().to_i64());
        let ms = ms.filter(|ms| *ms <= LONGEST_HOURS * HOUR_MS).ok_or_else(wrong)?;
        let during = Interval::new(start, later(start, ms)).ok_or_else(wrong)?;
        if let (None, Some(models)) = (&request.model, models_with_prices(&book, start)) {
            return Err(RequestError::WhichModel { models, currency: book.currency().code().to_owned() }.into());
        }
        let (of_books, slip) = match &request.project {
            Some(project) => self.org_of(project).await?,
            None => (None, None),
        };
        let org = request.org.clone().or(of_books);
        let what = Priced {
            model: request.model.as_deref(),
            mig_profile: None,
            share: Some("1"),
            pool: request.pool.as_deref(),
            queue: request.queue.as_deref(),
            class: request.class.as_deref(),
            org: org.as_deref(),
            project: request.project.as_deref(),
            cluster: request.cluster.as_deref(),
        };
        let question = Question { cards: request.cards, during, what };
        let quote = Quote::of(&question, &book)?;
        let zone = self.zone();
        let title = format!(
            "quote, {} cards for {} h from {}, {zone}",
            request.cards.cards().normalize(),
            request.hours.normalize(),
            local(zone, during.start())
        );
        let mut table = table(&quote, &book, title);
        if let Some(at) = quote.hole {
            table.notes.push(hole_text(&question, at, zone));
        } else if let Some((start, cost)) = Quote::cheaper(&question, &book)? {
            let now = quote.cost(&book).to_minor_string();
            let (start, cost, currency) = (local(zone, start), cost.to_minor_string(), book.currency());
            table.notes.push(format!("begun on {start} it would cost {cost} {currency} instead of {now}"));
        }
        if org.is_some() && request.org.is_none() {
            table.notes.push(format!("org {}: as the books have the project", org.as_deref().unwrap_or_default()));
        }
        table.notes.extend(slip);
        if let Some(model) = &request.model {
            table.notes.extend(self.unknown_model(model).await?);
        }
        // Those that hold when it begins.
        let stand = self.budgets(later(during.start(), 1).max(now)).await?;
        let owner = Owner {
            org: org.as_deref(),
            project: request.project.as_deref(),
            user: request.user.as_deref(),
            queue: request.queue.as_deref(),
            class: request.class.as_deref(),
            model: request.model.as_deref(),
        };
        table.notes.extend(budget_notes(&quote, &book, &stand.standings, &owner));
        table.notes.extend(self.note_of_policy());
        self.remark(&mut table);
        Ok(Quoted { table, has_holes: quote.hole.is_some() })
    }

    /// A word on a model that no node has and nobody ever held, whose price is then whatever the book says of any card; none of a known one, or where the
    /// books know no model at all.
    async fn unknown_model(&self, model: &str) -> Result<Option<String>, Error> {
        let mut known: BTreeSet<Name> = BTreeSet::new();
        for kind in [ReportKind::Owners, ReportKind::Inventory] {
            let table = self.report(&ReportRequest::new(kind).grouped_by(&[Dimension::Model])).await?.table;
            known.extend(rows(&table).filter_map(|row| row.text("model").map(Name::from)));
        }
        let is_unknown = !known.is_empty() && known.iter().all(|known| !known.eq_ignore_ascii_case(model));
        Ok(is_unknown.then(|| unknown_name("model", model, &known)))
    }

    /// The org of a project, where the books have just one; of a project that they don't have, a word on it and on those that it may have been meant for.
    async fn org_of(&self, project: &str) -> Result<(Option<String>, Option<String>), Error> {
        let request = ReportRequest::new(ReportKind::Owners).grouped_by(&[Dimension::Org, Dimension::Project]);
        let owners = self.report(&request).await?.table;
        let known: BTreeSet<Name> = rows(&owners).filter_map(|row| row.text("project").map(Name::from)).collect();
        if !known.contains(project) {
            return Ok((None, Some(unknown_name("project", project, &known))));
        }
        let of_project = rows(&owners).filter(|row| row.text("project") == Some(project));
        let orgs: BTreeSet<String> = of_project.filter_map(|row| row.text("org").map(str::to_owned)).collect();
        Ok((if orgs.len() == 1 { orgs.into_iter().next() } else { None }, None))
    }

    /// Every organisation that the books know, of jobs or of costs.
    pub(crate) async fn orgs(&self) -> Result<BTreeSet<Name>, Error> {
        let request = ReportRequest::new(ReportKind::Owners).grouped_by(&[Dimension::Org]);
        let owners = self.report(&request).await?.table;
        let mut known: BTreeSet<Name> = rows(&owners).filter_map(|row| row.text("org").map(Name::from)).collect();
        for month in self.months().await? {
            known.extend(self.ledger().costs(month).await?.into_iter().filter_map(|cost| cost.org));
        }
        Ok(known)
    }

    /// What to say to a user of whom the books have nothing.
    pub async fn unknown_user(&self, user: &str) -> Result<String, Error> {
        let request = ReportRequest::new(ReportKind::Owners).grouped_by(&[Dimension::User]);
        let owners = self.report(&request).await?.table;
        let known: BTreeSet<Name> = rows(&owners).filter_map(|row| row.text("user").map(Name::from)).collect();
        if known.contains(user) {
            return Ok(format!("nothing was held by {user:?} in that time"));
        }
        Ok(unknown_name("user", user, &known))
    }

    /// What a user could save, with the command that shows it; at the end where all of it stands.
    async fn advice_words(
        &self,
        user: &str,
        span: Span,
        now: Timestamp,
        has_budgets: bool,
    ) -> Result<Vec<String>, Error> {
        let (_, end) = span.bounds(self.zone())?;
        let found = self.advice_for(user, end.unwrap_or(now), MOST_ADVICE).await?;
        let mut words: Vec<String> = found.iter().map(advice_text).collect();
        if let (Some(first), true) = (found.first(), has_budgets) {
            words.push(format!("all advice, by budget: cardhour budgets --advice --month {}", first.period.first()));
        }
        Ok(words)
    }

    /// What a user has to know beside the bill: how well the cards were used, and what is left of the budgets that pay for them.
    pub async fn words_for(&self, user: &str, span: Span, now: Timestamp) -> Result<Vec<String>, Error> {
        let of_user = |kind, by: &[Dimension]| ReportRequest {
            span,
            user: Some(user.to_owned()),
            ..ReportRequest::new(kind).grouped_by(by)
        };
        let mut words = Vec::new();
        let idle = self.report(&of_user(ReportKind::Idle, &[Dimension::User])).await?.table;
        let used = self.report(&of_user(ReportKind::Efficiency, &[Dimension::User])).await?.table;
        if let (Some(used), Some(idle)) = (rows(&used).next(), rows(&idle).next()) {
            words.extend(use_words(&used, &idle));
        }
        let owners = self.report(&of_user(ReportKind::Owners, &[Dimension::Org, Dimension::Project])).await?.table;
        let owners: Vec<(Option<String>, Option<String>)> = rows(&owners)
            .map(|row| (row.text("org").map(str::to_owned), row.text("project").map(str::to_owned)))
            .collect();
        let stand = self.budgets(now).await?;
        let zone = self.zone();
        let pays = |standing: &&Standing| {
            let scope = &standing.budget.scope;
            owners.iter().any(|(org, project)| scope.may_cover(org.as_deref(), project.as_deref(), Some(user)))
        };
        for standing in stand.standings.iter().filter(pays) {
            let unit = &standing.budget.unit;
            let Some(left) = standing.left() else { continue };
            let end = standing
                .runs_out_at
                .map_or_else(String::new, |at| format!("; at the present pace it runs out on {}", local(zone, at)));
            words.push(format!(
                "budget {}, {}: {} of {} {} left{end}",
                standing.budget.name,
                standing.period,
                unit.text(left),
                unit.text(standing.limit),
                unit.name()
            ));
        }
        words.extend(self.advice_words(user, span, now, stand.budgets.is_some()).await?);
        Ok(words)
    }
}

fn later(at: Timestamp, ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(at.unix_ms().saturating_add(ms))
}

/// `could be saved in 2026-03, idle: 37.00 CNY, 2 card-hours, its part of what it cost: cardhour report idle …`.
fn advice_text(advice: &Advice) -> String {
    let Advice { period, kind, card_time, saving, how, command, .. } = advice;
    let saving = saving.map_or_else(String::new, |saving| {
        let currency = saving.currency();
        format!("{} {currency}, ", Unit::Money(currency).estimated(saving.micros()))
    });
    let hours = card_time.card_hours().round_dp(1).normalize();
    format!("could be saved in {period}, {}: {saving}{hours} card-hours, {how}: {command}", kind.name())
}

/// That the books don't have a name, and which ones they have that are near it.
pub(crate) fn unknown_name(what: &str, name: &str, known: &BTreeSet<Name>) -> String {
    let question = nearest::question(name, known).map_or_else(String::new, |question| format!(": {question}"));
    format!("the books have no {what} {name:?}{question}")
}

/// How the cards of a user were used, in words; nothing where nobody saw them.
fn use_words(used: &Row<'_>, idle: &Row<'_>) -> Vec<String> {
    let hours =
        |column: &str| used.decimal(column).map(|hours| hours.round_dp(1).normalize()).filter(|hours| !hours.is_zero());
    let mut words = Vec::new();
    if let Some(efficiency) = used.decimal("efficiency") {
        let percent = (efficiency * Decimal::ONE_HUNDRED).round_dp(1).normalize();
        words.push(format!("{percent} % of the card-hours that were seen did work"));
    }
    if let Some(hours) = hours("idle_card_hours") {
        let cost = idle.decimal("idle_cost").zip(idle.text("currency"));
        // A currency that can't be read is of no table of ours.
        let own = |currency: &str| Currency::parse(currency).map_or(2, |known| u32::from(known.minor_digits()));
        let cost = cost.map_or_else(String::new, |(mut cost, currency)| {
            cost = cost.round_dp(own(currency));
            cost.rescale(own(currency));
            format!(", which cost {cost} {currency}")
        });
        words.push(format!("{hours} card-hours were held and idle{cost}"));
    }
    if let Some(hours) = hours("lost_card_hours") {
        words.push(format!("{hours} card-hours of work were lost: what failed or was taken before it was saved"));
    }
    words
}
