//! Pages for people: the bill with the pool's capacity, and where a line comes from.

use super::Service;
use super::overview::{GROUPS, Overview, Reports, months, overview as overview_of};
use super::problem::RequestId;
use crate::answer::Trace;
use crate::books::SIMULATED;
use crate::error::{Error, Remedy, chain};
use crate::render::{self, Grid};
use crate::request::{ReportRequest, RequestError};
use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use cardhour_books::report::{Dimension, ReportKind};
use cardhour_domain::Month;
use serde::Deserialize;
use tracing::error;

/// What the first page is asked for.
#[derive(Debug, Deserialize)]
pub struct OverviewQuery {
    month: Option<String>,
    by: Option<String>,
}

/// The first page: the bill of a month and the pool's capacity.
pub async fn overview(
    State(service): State<Service>,
    Extension(id): Extension<RequestId>,
    query: Result<Query<OverviewQuery>, QueryRejection>,
) -> Response {
    let answer = async {
        let Query(query) = query.map_err(|rejection| RequestError::Address(rejection.body_text()))?;
        let by = query.by.unwrap_or_else(|| GROUPS[0].0.to_owned());
        let page = gather(&service, query.month.as_deref(), &by).await?;
        Ok(html(&OverviewPage { page, is_demo: service.0.books.is_demo(), style: render::styles() }))
    };
    answer.await.unwrap_or_else(|error| refused(&error, &id))
}

async fn gather(service: &Service, month: Option<&str>, by: &str) -> Result<Overview, Error> {
    let books = &service.0.books;
    let by_names = Dimension::parse_list(by).map_err(RequestError::from)?;
    let bill = ReportRequest::new(ReportKind::Bill);
    let capacity = ReportRequest::new(ReportKind::Capacity);
    let all = books.report(&bill.clone().grouped_by(&[Dimension::Month])).await?.table;
    let month = match month {
        Some(month) => Some(Month::parse(month).map_err(RequestError::from)?),
        None => months(&all).last().and_then(|month| Month::parse(month).ok()),
    };
    let of_month = |request: ReportRequest| match month {
        Some(month) => request.of_month(month),
        None => request,
    };
    let reports = Reports {
        bill: books.report(&of_month(bill).grouped_by(&by_names)).await?.table,
        capacity_by_month: books.report(&capacity.clone().grouped_by(&[Dimension::Month])).await?.table,
        capacity_by_day: books.report(&of_month(capacity).grouped_by(&[Dimension::Day])).await?.table,
        months: all,
    };
    let month = month.map(|month| month.to_string());
    Ok(overview_of(&reports, month.as_deref(), by, books.zone().name()))
}

/// What the trace page is asked for.
#[derive(Debug, Deserialize)]
pub struct TraceQuery {
    line: String,
}

/// Where a line comes from.
pub async fn trace(
    State(service): State<Service>,
    Extension(id): Extension<RequestId>,
    query: Result<Query<TraceQuery>, QueryRejection>,
) -> Response {
    let answer = async {
        let Query(query) = query.map_err(|rejection| RequestError::Address(rejection.body_text()))?;
        let trace = service.0.books.trace(&query.line, None).await?;
        let parts = trace.parts.iter().map(|(_, table)| render::for_people(table)).collect();
        Ok(html(&TracePage { trace, parts, is_demo: service.0.books.is_demo(), style: render::styles() }))
    };
    answer.await.unwrap_or_else(|error| refused(&error, &id))
}

/// An address that leads nowhere.
pub async fn nothing_here(uri: Uri, Extension(id): Extension<RequestId>) -> Response {
    let page = ProblemPage {
        title: "There is nothing here",
        message: format!("{} is not an address of this service.", uri.path()),
        request_id: &id.0,
        style: render::styles(),
    };
    (StatusCode::NOT_FOUND, html(&page)).into_response()
}

fn refused(error: &Error, id: &RequestId) -> Response {
    let (status, title, message) = match error.remedy() {
        Remedy::Caller => (StatusCode::BAD_REQUEST, "This address asks for something that can't be", chain(error)),
        Remedy::CallerNotFound => (StatusCode::NOT_FOUND, "There is nothing here", chain(error)),
        Remedy::Retry => (StatusCode::SERVICE_UNAVAILABLE, "The books are busy", "Load the page again.".to_owned()),
        Remedy::Operator => {
            error!(request_id = id.0, code = error.code(), error = chain(error), "page failed");
            let message = "The service's log has the reason under the number below.".to_owned();
            (StatusCode::INTERNAL_SERVER_ERROR, "The service failed", message)
        }
    };
    (status, html(&ProblemPage { title, message, request_id: &id.0, style: render::styles() })).into_response()
}

fn html(page: &impl Template) -> Response {
    Html(page.render().expect("a template that compiled writes into memory")).into_response()
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    page: Overview,
    is_demo: bool,
    style: &'static str,
}

impl OverviewPage {
    /// Of a date its day: what fits beneath a narrow bar.
    fn day<'a>(&self, date: &'a str) -> &'a str {
        date.rsplit('-').next().unwrap_or(date)
    }
}

#[derive(Template)]
#[template(path = "trace.html")]
struct TracePage {
    trace: Trace,
    parts: Vec<Grid>,
    is_demo: bool,
    style: &'static str,
}

impl TracePage {
    /// What is known of the line, as people read it; that it is simulated stands at the top of the page.
    fn facts(&self) -> impl Iterator<Item = (String, &str)> {
        let facts = self.trace.facts.iter().filter(|(_, value)| value != SIMULATED);
        facts.map(|(name, value)| (name.replace('_', " "), value.as_str()))
    }
}

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage<'a> {
    title: &'static str,
    message: String,
    request_id: &'a str,
    style: &'static str,
}

#[cfg(test)]
mod tests;
