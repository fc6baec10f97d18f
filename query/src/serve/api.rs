//! Reports, traces and SQL for programs.

use super::Service;
use super::problem::{Problem, RequestId};
use crate::clock::now;
use crate::error::Error;
use crate::reconciled_with::{With, WithRequest};
use crate::render::{self, Format, Style};
use crate::request::{Asked, Moment, Options, ReconcileRequest, ReportName, RequestError, Span};
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection};
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cardhour_books::checkpoint::Week;
use cardhour_books::reconcile::ReconcileQuery;
use cardhour_books::reconcile::outside::billing::Weights;
use cardhour_books::report::Dimension;
use cardhour_books::table::Table;
use cardhour_domain::{Month, Timestamp, Zone};
use serde::Deserialize;

/// What the service can be asked, as OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("openapi.json");

/// Serves [`OPENAPI`].
pub async fn openapi() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI)
}

/// The options of a report in an address; the same words as on the command line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportQuery {
    month: Option<String>,
    week: Option<String>,
    from: Option<String>,
    to: Option<String>,
    by: Option<String>,
    zone: Option<String>,
    user: Option<String>,
    format: Option<String>,
}

impl ReportQuery {
    fn request(&self, report: ReportName) -> Result<Asked, Error> {
        let moment = |text: &Option<String>| text.as_deref().map(str::parse::<Moment>).transpose();
        let options = Options {
            month: self.month.as_deref().map(Month::parse).transpose().map_err(RequestError::from)?,
            week: self.week.as_deref().map(str::parse::<Week>).transpose().map_err(RequestError::from)?,
            from: moment(&self.from)?,
            to: moment(&self.to)?,
            by: self.by.as_deref().map(Dimension::parse_list).transpose().map_err(RequestError::from)?,
            zone: self.zone.as_deref().map(Zone::parse).transpose().map_err(RequestError::from)?,
            prices: None,
            user: self.user.clone(),
        };
        Ok(options.ask(report)?)
    }
}

fn span(month: &Option<String>, from: &Option<String>, to: &Option<String>) -> Result<Span, Error> {
    let moment = |text: &Option<String>| text.as_deref().map(str::parse::<Moment>).transpose();
    let month = month.as_deref().map(Month::parse).transpose().map_err(RequestError::from)?;
    Ok(Span::from_options(month, moment(from)?, moment(to)?)?)
}

fn format(asked: Option<&str>) -> Result<Format, Error> {
    let Some(name) = asked else { return Ok(Format::Json) };
    Ok(Format::from_name(name).ok_or_else(|| RequestError::Format(name.to_owned()))?)
}

/// One report. Notes for people that the format has no place for are in headers `x-cardhour-note`.
pub async fn report(
    State(service): State<Service>,
    Extension(id): Extension<RequestId>,
    Path(name): Path<String>,
    query: Result<Query<ReportQuery>, QueryRejection>,
) -> Response {
    let Query(query) = match query {
        Ok(query) => query,
        Err(rejection) => return bad_request(&rejection.body_text(), &id),
    };
    let answer = async {
        let report = ReportName::from_name(&name).ok_or(Error::NoReport(name))?;
        let format = format(query.format.as_deref())?;
        let books = &service.0.books;
        match query.request(report)? {
            Asked::Books(request) => table_of(&service, &books.report(&request).await?.table, format),
            Asked::Output(request) => table_of(&service, &books.output(&request).await?.table, format),
            Asked::Advised(request) => {
                let made = books.advised_report(&request).await?;
                Ok(body_of(&service, render::checkpoint(&made, format, Style::default())?, format))
            }
            Asked::Isolation(request) => table_of(&service, &books.isolation(&request).await?.table, format),
            Asked::Checkpoint(request) => {
                let made = books.checkpoint(&request).await?;
                Ok(body_of(&service, render::checkpoint(&made, format, Style::default())?, format))
            }
        }
    };
    answer.await.unwrap_or_else(|error| Problem::of(&error, &id).into_response())
}

/// The options of a reconciliation in an address; the same words as on the command line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReconcileAddress {
    month: Option<String>,
    from: Option<String>,
    to: Option<String>,
    by: Option<String>,
    #[serde(default)]
    attempts: bool,
    zone: Option<String>,
    format: Option<String>,
}

/// Records beside what nodes saw.
pub async fn reconcile(
    State(service): State<Service>,
    Extension(id): Extension<RequestId>,
    query: Result<Query<ReconcileAddress>, QueryRejection>,
) -> Response {
    let Query(query) = match query {
        Ok(query) => query,
        Err(rejection) => return bad_request(&rejection.body_text(), &id),
    };
    let answer = async {
        let format = format(query.format.as_deref())?;
        let by =
            query.by.as_deref().map_or_else(|| Ok(Vec::new()), Dimension::parse_list).map_err(RequestError::from)?;
        let request = ReconcileRequest {
            span: span(&query.month, &query.from, &query.to)?,
            zone: query.zone.as_deref().map(Zone::parse).transpose().map_err(RequestError::from)?,
            query: ReconcileQuery { by, by_attempt: query.attempts },
        };
        let table = service.0.books.reconcile(&request).await?.table;
        table_of(&service, &table, format)
    };
    answer.await.unwrap_or_else(|error| Problem::of(&error, &id).into_response())
}

/// The options of a comparison with another tool in an address; the same words as on the command line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithAddress {
    with: String,
    rate: Option<String>,
    month: Option<String>,
    from: Option<String>,
    to: Option<String>,
    by: Option<String>,
    #[serde(default)]
    attempts: bool,
    zone: Option<String>,
    with_zone: Option<String>,
    billing_weights: Option<String>,
    format: Option<String>,
}

impl WithAddress {
    /// As a question to the books. Errors: a word that isn't what it should be, a body that doesn't go with it.
    fn request(&self, body: Vec<u8>) -> Result<WithRequest, Error> {
        let zone = |text: &Option<String>| text.as_deref().map(Zone::parse).transpose().map_err(RequestError::from);
        let weights = self.billing_weights.as_deref().map(Weights::parse).transpose();
        Ok(WithRequest {
            with: With::sent(&self.with, self.rate.as_deref(), body)?,
            span: span(&self.month, &self.from, &self.to)?,
            zone: zone(&self.zone)?,
            their_zone: zone(&self.with_zone)?,
            weights: weights.map_err(RequestError::With)?,
            by: self.by.as_deref().map(Dimension::parse_list).transpose().map_err(RequestError::from)?,
            by_job: self.attempts,
        })
    }
}

/// Our books beside what another tool printed, which is the body, or beside one price.
pub async fn reconcile_with(
    State(service): State<Service>,
    Extension(id): Extension<RequestId>,
    query: Result<Query<WithAddress>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let Query(query) = match query {
        Ok(query) => query,
        Err(rejection) => return bad_request(&rejection.body_text(), &id),
    };
    let body = match body {
        Ok(body) => body,
        Err(rejection) => {
            let code = if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE { "too-large" } else { "bad-request" };
            return Problem::new(rejection.status(), code, rejection.body_text(), &id).into_response();
        }
    };
    let answer = async {
        let format = format(query.format.as_deref())?;
        let request = query.request(body.into())?;
        table_of(&service, &service.0.books.reconcile_with(&request).await?.table, format)
    };
    answer.await.unwrap_or_else(|error| Problem::of(&error, &id).into_response())
}

/// The options of statements in an address; the same words as on the command line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementAddress {
    month: Option<String>,
    org: Option<String>,
    #[serde(default)]
    entries: bool,
    format: Option<String>,
}

/// The statements of a month, the entries of one, or the closed months.
pub async fn statement(
    State(service): State<Service>,
    Extension(id): Extension<RequestId>,
    query: Result<Query<StatementAddress>, QueryRejection>,
) -> Response {
    let Query(query) = match query {
        Ok(query) => query,
        Err(rejection) => return bad_request(&rejection.body_text(), &id),
    };
    let answer = async {
        let format = format(query.format.as_deref())?;
        let month = query.month.as_deref().map(Month::parse).transpose().map_err(RequestError::from)?;
        let books = &service.0.books;
        let table = match month {
            Some(month) => books.statement(month, query.org.as_deref(), query.entries).await?.table,
            None => books.closed_months().await?,
        };
        table_of(&service, &table, format)
    };
    answer.await.unwrap_or_else(|error| Problem::of(&error, &id).into_response())
}

/// The options of the budgets in an address; the same words as on the command line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetsAddress {
    month: Option<String>,
    as_of: Option<String>,
    format: Option<String>,
}

impl BudgetsAddress {
    /// The moment that is asked about. Errors: both a month and a moment, or one that can't be read.
    fn asked(&self, now: Timestamp, zone: Zone) -> Result<Timestamp, RequestError> {
        match (&self.month, &self.as_of) {
            (Some(_), Some(_)) => Err(RequestError::Address("give a month or as_of, not both".to_owned())),
            (Some(month), None) => Ok(Month::parse(month)?.interval(zone).end()),
            (None, Some(moment)) => Ok(moment.parse::<Moment>()?.instant(zone)),
            (None, None) => Ok(now),
        }
    }
}

/// How the budgets stand.
pub async fn budgets(
    State(service): State<Service>,
    Extension(id): Extension<RequestId>,
    query: Result<Query<BudgetsAddress>, QueryRejection>,
) -> Response {
    let Query(query) = match query {
        Ok(query) => query,
        Err(rejection) => return bad_request(&rejection.body_text(), &id),
    };
    let answer = async {
        let format = format(query.format.as_deref())?;
        let books = &service.0.books;
        let stand = books.budgets(query.asked(now(), books.zone())?).await?;
        table_of(&service, &stand.table, format)
    };
    answer.await.unwrap_or_else(|error| Problem::of(&error, &id).into_response())
}

/// A table as an answer. Notes for people that the format has no place for are in headers.
fn table_of(service: &Service, table: &Table, format: Format) -> Result<Response, Error> {
    let mut reply = body_of(service, render::report(table, format, Style::default())?, format);
    if !format.is_for_people() {
        for note in &table.notes {
            reply.headers_mut().append(HeaderName::from_static("x-cardhour-note"), header_text(note));
        }
    }
    Ok(reply)
}

/// Where one line comes from, as json.
pub async fn trace(
    State(service): State<Service>,
    Extension(id): Extension<RequestId>,
    Path(line): Path<String>,
) -> Response {
    let answer = async { service.0.books.trace(&line, None).await?.render(Format::Json, Style::default()) };
    match answer.await {
        Ok(body) => body_of(&service, body, Format::Json),
        Err(error) => Problem::of(&error, &id).into_response(),
    }
}

/// The body of a query.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlBody {
    query: String,
}

/// The rows of one query, in the format that `Accept` names: csv, Parquet, else json.
pub async fn sql(
    State(service): State<Service>,
    Extension(id): Extension<RequestId>,
    headers: HeaderMap,
    body: Result<Json<SqlBody>, JsonRejection>,
) -> Response {
    let Json(body) = match body {
        Ok(body) => body,
        Err(rejection) => {
            return Problem::new(rejection.status(), "bad-request", rejection.body_text(), &id).into_response();
        }
    };
    let format = accepted(&headers);
    let answer = async { service.0.books.sql(&body.query).await?.render(format, Style::default()) };
    match answer.await {
        Ok(rows) => body_of(&service, rows, format),
        Err(error) => Problem::of(&error, &id).into_response(),
    }
}

fn accepted(headers: &HeaderMap) -> Format {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept
        .split(',')
        .find_map(|kind| match kind.split(';').next().map(str::trim) {
            Some("text/csv") => Some(Format::Csv),
            Some("application/json") => Some(Format::Json),
            Some("application/vnd.apache.parquet") => Some(Format::Parquet),
            _ => None,
        })
        .unwrap_or(Format::Json)
}

fn bad_request(message: &str, id: &RequestId) -> Response {
    Problem::new(StatusCode::BAD_REQUEST, "bad-request", message, id).into_response()
}

fn body_of(service: &Service, body: Vec<u8>, format: Format) -> Response {
    let mut reply = Response::new(Body::from(body));
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    if service.0.books.is_demo() {
        headers.insert(HeaderName::from_static("x-cardhour-simulated"), HeaderValue::from_static("true"));
    }
    reply
}

/// A note as a header takes it: printable ASCII, the rest replaced.
fn header_text(note: &str) -> HeaderValue {
    let text: String = note.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect();
    HeaderValue::from_str(&text).expect("printable ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{CheckpointRequest, CheckpointSpan};
    use crate::request::ReportRequest;
    use cardhour_books::report::ReportKind;

    fn query(address: &str) -> Result<ReportRequest, Error> {
        let Query(query): Query<ReportQuery> = Query::try_from_uri(&address.parse().unwrap()).expect("known names");
        match query.request(ReportName::Books(ReportKind::Bill))? {
            Asked::Books(request) => Ok(request),
            Asked::Checkpoint(_) | Asked::Output(_) | Asked::Advised(_) | Asked::Isolation(_) => {
                panic!("a bill is a table by groups")
            }
        }
    }

    #[test]
    fn a_checkpoint_is_asked_over_http_as_on_the_command_line() {
        let uri = "/api/v1/report/weekly?week=2026-W20&format=md".parse().unwrap();
        let Query(query): Query<ReportQuery> = Query::try_from_uri(&uri).unwrap();
        let week = CheckpointSpan::Week(Some("2026-W20".parse().unwrap()));
        let asked = Asked::Checkpoint(CheckpointRequest { of: week, prices: None });
        assert_eq!(query.request(ReportName::Weekly).unwrap(), asked);
        assert!(query.request(ReportName::Books(ReportKind::Bill)).is_err(), "a bill has no week");
    }

    #[test]
    fn an_address_asks_what_the_command_line_asks() {
        let asked = query("/api/v1/report/bill?month=2026-03&by=project,label.team&zone=Asia/Shanghai").unwrap();
        assert_eq!(asked.span, Span::Month(Month::parse("2026-03").unwrap()));
        assert_eq!(asked.by, Dimension::parse_list("project,label.team").unwrap());
        assert_eq!(asked.zone, Some(Zone::parse("Asia/Shanghai").unwrap()));
        assert_eq!(query("/x").unwrap(), ReportRequest::new(ReportKind::Bill));
    }

    #[test]
    fn a_wrong_word_in_an_address_is_the_callers_to_mend() {
        for address in [
            "/x?month=march",
            "/x?week=20",
            "/x?by=colour",
            "/x?zone=Mars",
            "/x?from=2&to=1",
            "/x?month=2026-03&from=2026-03-01",
        ] {
            let error = query(address).unwrap_err();
            assert_eq!(error.remedy(), crate::error::Remedy::Caller, "{address}: {error}");
        }
        let uri = "/x?colour=red".parse().unwrap();
        assert!(Query::<ReportQuery>::try_from_uri(&uri).is_err(), "a misspelt option is not passed over");
    }

    #[test]
    fn budgets_are_asked_of_a_month_or_a_moment() {
        let zone = Zone::parse("Asia/Shanghai").unwrap();
        let asked = |address: &str| {
            let Query(query): Query<BudgetsAddress> = Query::try_from_uri(&address.parse().unwrap()).unwrap();
            query.asked(Timestamp::from_unix_ms(0), zone).map(|at| at.to_string())
        };
        assert_eq!(asked("/x").unwrap(), "1970-01-01T00:00:00Z");
        assert_eq!(asked("/x?month=2026-03").unwrap(), "2026-03-31T16:00:00Z");
        assert_eq!(asked("/x?as_of=2026-03-02").unwrap(), "2026-03-01T16:00:00Z");
        assert!(asked("/x?month=2026-03&as_of=2026-03-02").is_err());
        assert!(asked("/x?month=march").is_err());
    }

    #[test]
    fn a_comparison_is_asked_over_http_as_on_the_command_line() {
        let asked = |address: &str, body: &[u8]| {
            let Query(query): Query<WithAddress> = Query::try_from_uri(&address.parse().unwrap()).unwrap();
            query.request(body.to_vec())
        };
        let request = asked(
            "/x?with=sacct&month=2026-03&by=project&attempts=true&with_zone=Asia/Shanghai&billing_weights=GRES/gpu=4.5",
            b"JobID",
        )
        .unwrap();
        assert_eq!(request.span, Span::Month(Month::parse("2026-03").unwrap()));
        assert_eq!((request.by, request.by_job), (Some(vec![Dimension::Project]), true));
        assert_eq!(request.their_zone, Some(Zone::parse("Asia/Shanghai").unwrap()));
        assert_eq!(request.weights, Some(Weights::parse("GRES/gpu=4.5").unwrap()));
        for (address, body) in
            [("/x?with=sacct", ""), ("/x?with=sacct&billing_weights=gpu", "a"), ("/x?with=rate&month=march&rate=1", "")]
        {
            let error = asked(address, body.as_bytes()).unwrap_err();
            assert_eq!(error.remedy(), crate::error::Remedy::Caller, "{address}: {error}");
        }
        assert!(Query::<WithAddress>::try_from_uri(&"/x?month=2026-03".parse().unwrap()).is_err(), "with what?");
    }

    #[test]
    fn the_format_of_rows_follows_accept() {
        let accept =
            |value: &'static str| accepted(&HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(value))]));
        assert_eq!(accept("text/csv;q=0.9, */*"), Format::Csv);
        assert_eq!(accept("application/vnd.apache.parquet"), Format::Parquet);
        assert_eq!(accept("*/*"), Format::Json);
        assert_eq!(accepted(&HeaderMap::new()), Format::Json);
    }
}
