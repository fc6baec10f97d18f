//! Every metric of the service: name, unit, labels and help in one list.
//!
//! Labels come from closed lists or, for a currency, from the price book; never from users' texts. Figures of the pool are
//! gauges, since a late export may lower them. They are worked out at most once a minute: books change with imports, not
//! with scrapes.

use super::Service;
use super::problem::{Problem, RequestId};
use super::row::rows;
use super::stack::PARTS;
use crate::books::Books;
use crate::error::Error;
use crate::request::ReportRequest;
use axum::extract::{Extension, MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cardhour_books::report::{Dimension, ReportKind};
use cardhour_books::table::Table;
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the figures of the pool are good for.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// What the service counts of itself, and the pool's figures of the last minute.
pub struct Telemetry {
    requests: Family<Route, Counter>,
    is_demo: bool,
    pool: Mutex<Option<(Instant, Pool)>>,
}

/// The pool's figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Card-hours of each state over all the time the books cover.
    pub card_hours: Vec<(&'static str, Decimal)>,
    /// What the last month in the books cost, by currency.
    pub last_month_cost: Vec<(String, Decimal)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InCurrency {
    currency: String,
}

type Figure<L> = Family<L, Gauge<f64, AtomicU64>>;

impl Telemetry {
    /// Nothing counted yet.
    pub fn new(is_demo: bool) -> Self {
        Self { requests: Family::default(), is_demo, pool: Mutex::new(None) }
    }

    /// All metrics as OpenMetrics text.
    fn encode(&self, pool: &Pool) -> String {
        let mut registry = Registry::default();
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("cardhour_build", "Version of the running binary", build);
        let simulated = Gauge::<i64, std::sync::atomic::AtomicI64>::default();
        simulated.set(i64::from(self.is_demo));
        registry.register("cardhour_ledger_simulated", "1 for a demo whose figures come from a generator", simulated);
        let card_seconds = Figure::<InState>::default();
        for (state, hours) in &pool.card_hours {
            // A report's hours have six decimals, which are 3.6 ms: hundredths of seconds are what they surely say.
            let seconds = (hours * Decimal::from(3600)).round_dp(2);
            card_seconds.get_or_create(&InState { state }).set(shown(seconds));
        }
        registry.register_with_unit(
            "cardhour_card",
            "Card-seconds in the books by state, over all the time they cover",
            Unit::Seconds,
            card_seconds,
        );
        let cost = Figure::<InCurrency>::default();
        for (currency, amount) in &pool.last_month_cost {
            cost.get_or_create(&InCurrency { currency: currency.clone() }).set(shown(*amount));
        }
        registry.register("cardhour_last_month_cost", "Cost of the last month in the books, in its currency", cost);
        registry.register("cardhour_http_requests", "Requests by route and status", self.requests.clone());
        let mut text = String::new();
        encode(&mut text, &registry).expect("into memory");
        text
    }

    async fn pool(&self, books: &Books) -> Result<Pool, Error> {
        let kept = self.pool.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, pool)) = kept.filter(|(at, _)| at.elapsed() < KEPT_FOR) {
            return Ok(pool);
        }
        let capacity = books.report(&ReportRequest::new(ReportKind::Capacity)).await?.table;
        let bill = books.report(&ReportRequest::new(ReportKind::Bill).grouped_by(&[Dimension::Month])).await?.table;
        let pool = pool_of(&capacity, &bill);
        *self.pool.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), pool.clone()));
        Ok(pool)
    }
}

/// From a report of capacity in one row and a bill by month.
fn pool_of(capacity: &Table, bill_by_month: &Table) -> Pool {
    let last = rows(bill_by_month).filter_map(|row| row.text("month")).max();
    Pool {
        card_hours: PARTS
            .iter()
            .filter_map(|(state, column)| {
                let hours: Vec<Decimal> = rows(capacity).filter_map(|row| row.decimal(column)).collect();
                (!hours.is_empty()).then(|| (*state, hours.into_iter().sum()))
            })
            .collect(),
        last_month_cost: rows(bill_by_month)
            .filter(|row| row.text("month") == last)
            .filter_map(|row| Some((row.text("currency")?.to_owned(), row.decimal("cost")?)))
            .collect(),
    }
}

/// For showing alone: nothing is computed from it again.
fn shown(figure: Decimal) -> f64 {
    figure.to_f64().unwrap_or(f64::NAN)
}

/// Serves all metrics.
pub async fn metrics(State(service): State<Service>, Extension(id): Extension<RequestId>) -> Response {
    match service.0.telemetry.pool(&service.0.books).await {
        Ok(pool) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], service.0.telemetry.encode(&pool)).into_response()
        }
        Err(error) => Problem::of(&error, &id).into_response(),
    }
}

/// Counts each request by its route, never by its address.
pub async fn count(State(service): State<Service>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("(none)", MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    service.0.telemetry.requests.get_or_create(&Route { route, status }).inc();
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::sample;
    use insta::assert_snapshot;

    /// By hand: 60 card-hours are 216,000 card-seconds; the last month of the sample is April with 925.00 CNY.
    #[test]
    fn the_list_of_metrics_is_as_it_was() {
        let capacity = sample::capacity("pool", &[("all", [60, 10, 20, 10, 1])]);
        let pool = pool_of(&capacity, &sample::reports().months);
        let telemetry = Telemetry::new(true);
        telemetry.requests.get_or_create(&Route { route: "/api/v1/sql".into(), status: 200 }).inc();
        let mut lines: Vec<String> = telemetry.encode(&pool).lines().map(str::to_owned).collect();
        // Families keep their samples in a hash map.
        lines.sort();
        assert_snapshot!(lines.join("\n"), @r#"
        # EOF
        # HELP cardhour_build Version of the running binary.
        # HELP cardhour_card_seconds Card-seconds in the books by state, over all the time they cover.
        # HELP cardhour_http_requests Requests by route and status.
        # HELP cardhour_last_month_cost Cost of the last month in the books, in its currency.
        # HELP cardhour_ledger_simulated 1 for a demo whose figures come from a generator.
        # TYPE cardhour_build info
        # TYPE cardhour_card_seconds gauge
        # TYPE cardhour_http_requests counter
        # TYPE cardhour_last_month_cost gauge
        # TYPE cardhour_ledger_simulated gauge
        # UNIT cardhour_card_seconds seconds
        cardhour_build_info{version="0.1.0"} 1
        cardhour_card_seconds{state="down"} 36000.0
        cardhour_card_seconds{state="free"} 72000.0
        cardhour_card_seconds{state="held"} 216000.0
        cardhour_card_seconds{state="reserved"} 36000.0
        cardhour_card_seconds{state="unaccounted"} 3600.0
        cardhour_http_requests_total{route="/api/v1/sql",status="200"} 1
        cardhour_last_month_cost{currency="CNY"} 925.0
        cardhour_ledger_simulated 1
        "#);
    }
}
