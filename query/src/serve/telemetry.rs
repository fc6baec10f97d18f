//! Every metric of the service: name, unit, labels and help in one list.
//!
//! Labels come from closed lists, the price book, the budgets, the deliveries of the config, the nodes' tokens, and for the largest projects of a
//! month from the books; never more than a bound ([`Pool`]). Figures of the pool are gauges, since a late export may lower them. They are worked out
//! at most once a minute: books change with imports, not with scrapes.

mod pool;

pub use pool::Pool;

use super::Service;
use super::problem::{Problem, RequestId};
use crate::deliveries::DeliveryCounts;
use crate::error::Error;
use axum::extract::{Extension, MatchedPath, Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cardhour_domain::Timestamp;
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the figures of the pool are good for.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// What the service counts of itself, and the pool's figures of the last minute.
pub struct Telemetry {
    requests: Family<Route, Counter>,
    intake: IntakeCounts,
    deliveries: DeliveryCounts,
    is_demo: bool,
    pool: Mutex<Option<(Instant, Pool)>>,
    working: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
    status: u16,
}

/// What became of the segments that nodes delivered.
#[derive(Clone, Default)]
pub struct IntakeCounts {
    segments: Family<Outcome, Counter>,
    rows: Counter,
    last: Figure<OfNode>,
}

impl IntakeCounts {
    /// One segment: `taken`, `known`, `refused`, or `failed` where it has to come again.
    pub fn count(&self, node: &str, outcome: &'static str, rows: u64, at: Timestamp) {
        self.segments.get_or_create(&Outcome { outcome }).inc();
        self.rows.inc_by(rows);
        if matches!(outcome, "taken" | "known") {
            self.last.get_or_create(&OfNode { node: node.to_owned() }).set(seconds_of(at));
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfNode {
    node: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InState {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Went {
    went: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfProject {
    org: String,
    project: String,
    went: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CostOfProject {
    org: String,
    project: String,
    currency: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfBudget {
    budget: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Decided {
    kind: &'static str,
    mode: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InMode {
    mode: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InCurrency {
    currency: String,
}

type Figure<L> = Family<L, Gauge<f64, AtomicU64>>;

impl Telemetry {
    /// Nothing counted yet.
    pub fn new(is_demo: bool, deliveries: DeliveryCounts) -> Self {
        Self {
            requests: Family::default(),
            intake: IntakeCounts::default(),
            deliveries,
            is_demo,
            pool: Mutex::default(),
            working: tokio::sync::Mutex::default(),
        }
    }

    /// What counts what nodes deliver.
    pub fn intake(&self) -> &IntakeCounts {
        &self.intake
    }

    /// All metrics as OpenMetrics text.
    fn encode(&self, pool: &Pool) -> String {
        let mut registry = Registry::default();
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("cardhour_build", "Version of the running binary", build);
        let simulated = Gauge::<i64, std::sync::atomic::AtomicI64>::default();
        simulated.set(i64::from(self.is_demo));
        registry.register("cardhour_ledger_simulated", "1 for a demo whose figures come from a generator", simulated);
        self.pool_figures(&mut registry, pool);
        registry.register(
            "cardhour_intake_segments",
            "Segments that nodes delivered, by what became of them",
            self.intake.segments.clone(),
        );
        registry.register("cardhour_intake_rows", "Rows that were new in them", self.intake.rows.clone());
        registry.register_with_unit(
            "cardhour_node_last_segment_timestamp",
            "When a node's segment came last, since the service started",
            Unit::Seconds,
            self.intake.last.clone(),
        );
        self.deliveries.register(&mut registry);
        registry.register("cardhour_http_requests", "Requests by route and status", self.requests.clone());
        let mut text = String::new();
        encode(&mut text, &registry).expect("into memory");
        text
    }

    fn pool_figures(&self, registry: &mut Registry, pool: &Pool) {
        let by_state = |figures: &[(&'static str, Decimal)], of: fn(Decimal) -> f64| {
            let family = Figure::<InState>::default();
            for (state, figure) in figures {
                family.get_or_create(&InState { state }).set(of(*figure));
            }
            family
        };
        let by_card_state = by_state(&pool.card_hours, card_seconds);
        let help = "Card-seconds in the books by state, over all the time they cover";
        registry.register_with_unit("cardhour_card", help, Unit::Seconds, by_card_state);
        let help = "Cards by state, mean of the last hour in the books";
        registry.register("cardhour_cards", help, by_state(&pool.cards, shown));
        let went = Figure::<Went>::default();
        for (name, hours) in &pool.went {
            went.get_or_create(&Went { went: name }).set(card_seconds(*hours));
        }
        let help = "Where held card-seconds went, over all the time the books cover";
        registry.register_with_unit("cardhour_held_card", help, Unit::Seconds, went);
        if let Some(kwh) = pool.energy_kwh {
            let energy = Gauge::<f64, AtomicU64>::default();
            energy.set(shown(kwh * Decimal::from(3_600_000)));
            let help = "Energy of held cards as far as it was measured, over all the time the books cover";
            registry.register_with_unit("cardhour_held_energy", help, Unit::Joules, energy);
        }
        let helps = ["Held time that records or observation prove", "Held time that telemetry saw"];
        let names = ["cardhour_coverage_ratio", "cardhour_use_coverage_ratio"];
        for ((name, help), ratio) in names.into_iter().zip(helps).zip(pool.coverage) {
            if let Some(ratio) = ratio {
                let figure = Gauge::<f64, AtomicU64>::default();
                figure.set(shown(ratio));
                registry.register(name, help, figure);
            }
        }
        let help = "Attempts that run, and that wait, as the last export says";
        registry.register("cardhour_attempts", help, by_state(&pool.attempts, shown));
        let times = [
            ("cardhour_books_as_of_timestamp", "Start of the last quarter hour that the books speak of", pool.as_of),
            ("cardhour_month_start_timestamp", "When the last month in the books began", pool.month_start),
        ];
        for (name, help, at) in times {
            if let Some(at) = at {
                let figure = Gauge::<f64, AtomicU64>::default();
                figure.set(seconds_of(at));
                registry.register_with_unit(name, help, Unit::Seconds, figure);
            }
        }
        let cost = Figure::<InCurrency>::default();
        for (currency, amount) in &pool.month_cost {
            cost.get_or_create(&InCurrency { currency: currency.clone() }).set(shown(*amount));
        }
        registry.register("cardhour_last_month_cost", "Cost of the last month in the books, in its currency", cost);
        let budgets = [Figure::<OfBudget>::default(), Figure::<OfBudget>::default()];
        for (budget, ratios) in &pool.budgets {
            for (figure, ratio) in budgets.iter().zip(ratios) {
                if let Some(ratio) = ratio {
                    figure.get_or_create(&OfBudget { budget: budget.clone() }).set(shown(*ratio));
                }
            }
        }
        let [spent, forecast] = budgets;
        registry.register("cardhour_budget_ratio", "What of a budget is spent in its period that holds now", spent);
        let help = "What of a budget will be spent at the end of that period, at the pace of the last seven days";
        registry.register("cardhour_budget_forecast_ratio", help, forecast);
        let decided = Figure::<Decided>::default();
        for ([kind, mode, outcome], count) in &pool.decisions {
            decided.get_or_create(&Decided { kind, mode, outcome }).set(shown(Decimal::from(*count)));
        }
        registry.register("cardhour_decisions", "Decisions in the books by kind, mode and outcome", decided);
        let recovered = Figure::<InMode>::default();
        for (mode, hours) in &pool.recovered {
            recovered.get_or_create(&InMode { mode }).set(card_seconds(*hours));
        }
        let help = "Card-seconds that idle reclaim recovered, in other modes than act would have recovered";
        registry.register_with_unit("cardhour_recovered_card", help, Unit::Seconds, recovered);
        let (went, cost) = (Figure::<OfProject>::default(), Figure::<CostOfProject>::default());
        for ((org, project), figures) in &pool.projects {
            let (org, project) = (org.clone(), project.clone());
            for (name, hours) in &figures.went {
                let labels = OfProject { org: org.clone(), project: project.clone(), went: name };
                went.get_or_create(&labels).set(card_seconds(*hours));
            }
            for (currency, amount) in &figures.cost {
                let labels = CostOfProject { org: org.clone(), project: project.clone(), currency: currency.clone() };
                cost.get_or_create(&labels).set(shown(*amount));
            }
        }
        let help = "Where a project's held card-seconds of the last month in the books went";
        registry.register_with_unit("cardhour_project_month_card", help, Unit::Seconds, went);
        let help = "Cost of a project in the last month in the books, in its currency";
        registry.register("cardhour_project_month_cost", help, cost);
    }

    fn kept(&self) -> Option<(Instant, Pool)> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The pool's figures: of the last minute; else those before, while new ones are worked out; else new ones.
///
/// The work goes on when whoever asked has hung up: a scrape waits ten seconds, large books take longer, and the next one has to find them done.
async fn pool(service: &Service) -> Result<Pool, Error> {
    let kept = service.0.telemetry.kept();
    if let Some((_, pool)) = kept.clone().filter(|(at, _)| at.elapsed() < KEPT_FOR) {
        return Ok(pool);
    }
    let work = tokio::spawn({
        let service = service.clone();
        async move {
            let telemetry = &service.0.telemetry;
            let _one_at_a_time = telemetry.working.lock().await;
            if let Some((_, pool)) = telemetry.kept().filter(|(at, _)| at.elapsed() < KEPT_FOR) {
                return Ok(pool);
            }
            let pool = Pool::of(&service.0.books).await?;
            *telemetry.pool.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), pool.clone()));
            Ok(pool)
        }
    });
    match kept {
        Some((_, pool)) => Ok(pool),
        None => work.await.expect("figures are worked out or their fault is a defect of ours"),
    }
}

/// A report's hours have six decimals, which are 3.6 ms: hundredths of seconds are what they surely say.
fn card_seconds(hours: Decimal) -> f64 {
    shown((hours * Decimal::from(3600)).round_dp(2))
}

fn seconds_of(at: Timestamp) -> f64 {
    at.unix_ms() as f64 / 1000.0
}

/// For showing alone: nothing is computed from it again.
fn shown(figure: Decimal) -> f64 {
    figure.to_f64().unwrap_or(f64::NAN)
}

/// Serves all metrics: as OpenMetrics to whom asks for it, else in Prometheus' older form.
pub async fn metrics(
    State(service): State<Service>,
    Extension(id): Extension<RequestId>,
    headers: HeaderMap,
) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match pool(&service).await {
        Ok(pool) => {
            let text = service.0.telemetry.encode(&pool);
            let (kind, text) = if accept.contains("application/openmetrics-text") {
                ("application/openmetrics-text; version=1.0.0; charset=utf-8", text)
            } else {
                ("text/plain; version=0.0.4; charset=utf-8", classic(&text))
            };
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => Problem::of(&error, &id).into_response(),
    }
}

/// The older form of an OpenMetrics text: counters and infos are called as their samples are, units aren't told, and there is no end.
fn classic(openmetrics: &str) -> String {
    let types: BTreeMap<&str, &str> =
        openmetrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let mut out = String::with_capacity(openmetrics.len());
    for line in openmetrics.lines().filter(|line| *line != "# EOF" && !line.starts_with("# UNIT ")) {
        let about =
            ["# HELP ", "# TYPE "].into_iter().find_map(|kind| Some((kind, line.strip_prefix(kind)?.split_once(' ')?)));
        match about {
            Some((kind, (name, rest))) => {
                let (end, shown) = match types.get(name) {
                    Some(&"counter") => ("_total", "counter"),
                    Some(&"info") => ("_info", "gauge"),
                    Some(other) => ("", *other),
                    None => ("", "untyped"),
                };
                let rest = if kind == "# TYPE " { shown } else { rest };
                out.extend([kind, name, end, " ", rest, "\n"]);
            }
            None => out.extend([line, "\n"]),
        }
    }
    out
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
    use cardhour_domain::Timestamp;
    use insta::assert_snapshot;
    use pool::Project;

    /// By hand: 60 card-hours are 216,000 card-seconds, and 2.5 kWh are 9,000,000 J.
    #[test]
    fn the_list_of_metrics_is_as_it_was() {
        let hours = |hours: i64| Decimal::new(hours, 0);
        let pool = Pool {
            card_hours: vec![("held", hours(60)), ("free", hours(20))],
            cards: vec![("held", hours(6))],
            went: vec![("effective", hours(30)), ("unseen", hours(30))],
            energy_kwh: Some(Decimal::new(25, 1)),
            coverage: [Some(hours(1)), Some(Decimal::new(5, 1))],
            attempts: vec![("running", hours(3)), ("pending", hours(0))],
            as_of: Some(Timestamp::from_unix_s(1_775_000_000)),
            month_start: Some(Timestamp::from_unix_s(1_772_294_400)),
            month_cost: vec![("CNY".to_owned(), hours(925))],
            budgets: vec![("lab".to_owned(), [Some(Decimal::new(75, 2)), Some(Decimal::new(9, 1))])],
            decisions: vec![(["reclaim", "act", "stop"], 2)],
            recovered: vec![("act", hours(3))],
            projects: BTreeMap::from([(
                ("lab".to_owned(), "vision".to_owned()),
                Project {
                    went: BTreeMap::from([("idle", hours(1))]),
                    cost: BTreeMap::from([("CNY".to_owned(), hours(925))]),
                },
            )]),
        };
        let at = Timestamp::from_unix_ms(1_775_000_000_500);
        let telemetry = Telemetry::new(true, DeliveryCounts::of_finance(at));
        telemetry.requests.get_or_create(&Route { route: "/api/v1/sql".into(), status: 200 }).inc();
        telemetry.intake().count("gpu01", "taken", 240, at);
        telemetry.intake().count("gpu02", "refused", 0, at);
        let mut lines: Vec<String> = telemetry.encode(&pool).lines().map(str::to_owned).collect();
        // Families keep their samples in a hash map.
        lines.sort();
        assert_snapshot!(lines.join("\n"), @r#"
        # EOF
        # HELP cardhour_attempts Attempts that run, and that wait, as the last export says.
        # HELP cardhour_books_as_of_timestamp_seconds Start of the last quarter hour that the books speak of.
        # HELP cardhour_budget_forecast_ratio What of a budget will be spent at the end of that period, at the pace of the last seven days.
        # HELP cardhour_budget_ratio What of a budget is spent in its period that holds now.
        # HELP cardhour_build Version of the running binary.
        # HELP cardhour_card_seconds Card-seconds in the books by state, over all the time they cover.
        # HELP cardhour_cards Cards by state, mean of the last hour in the books.
        # HELP cardhour_coverage_ratio Held time that records or observation prove.
        # HELP cardhour_decisions Decisions in the books by kind, mode and outcome.
        # HELP cardhour_deliveries Weeks and months that were delivered by schedule, and tries that failed.
        # HELP cardhour_deliveries_owed Weeks and months that are due by the clock and not delivered, by what keeps them.
        # HELP cardhour_delivery_last_timestamp_seconds When something was delivered last, since the service started.
        # HELP cardhour_held_card_seconds Where held card-seconds went, over all the time the books cover.
        # HELP cardhour_held_energy_joules Energy of held cards as far as it was measured, over all the time the books cover.
        # HELP cardhour_http_requests Requests by route and status.
        # HELP cardhour_intake_rows Rows that were new in them.
        # HELP cardhour_intake_segments Segments that nodes delivered, by what became of them.
        # HELP cardhour_last_month_cost Cost of the last month in the books, in its currency.
        # HELP cardhour_ledger_simulated 1 for a demo whose figures come from a generator.
        # HELP cardhour_month_start_timestamp_seconds When the last month in the books began.
        # HELP cardhour_node_last_segment_timestamp_seconds When a node's segment came last, since the service started.
        # HELP cardhour_project_month_card_seconds Where a project's held card-seconds of the last month in the books went.
        # HELP cardhour_project_month_cost Cost of a project in the last month in the books, in its currency.
        # HELP cardhour_recovered_card_seconds Card-seconds that idle reclaim recovered, in other modes than act would have recovered.
        # HELP cardhour_use_coverage_ratio Held time that telemetry saw.
        # TYPE cardhour_attempts gauge
        # TYPE cardhour_books_as_of_timestamp_seconds gauge
        # TYPE cardhour_budget_forecast_ratio gauge
        # TYPE cardhour_budget_ratio gauge
        # TYPE cardhour_build info
        # TYPE cardhour_card_seconds gauge
        # TYPE cardhour_cards gauge
        # TYPE cardhour_coverage_ratio gauge
        # TYPE cardhour_decisions gauge
        # TYPE cardhour_deliveries counter
        # TYPE cardhour_deliveries_owed gauge
        # TYPE cardhour_delivery_last_timestamp_seconds gauge
        # TYPE cardhour_held_card_seconds gauge
        # TYPE cardhour_held_energy_joules gauge
        # TYPE cardhour_http_requests counter
        # TYPE cardhour_intake_rows counter
        # TYPE cardhour_intake_segments counter
        # TYPE cardhour_last_month_cost gauge
        # TYPE cardhour_ledger_simulated gauge
        # TYPE cardhour_month_start_timestamp_seconds gauge
        # TYPE cardhour_node_last_segment_timestamp_seconds gauge
        # TYPE cardhour_project_month_card_seconds gauge
        # TYPE cardhour_project_month_cost gauge
        # TYPE cardhour_recovered_card_seconds gauge
        # TYPE cardhour_use_coverage_ratio gauge
        # UNIT cardhour_books_as_of_timestamp_seconds seconds
        # UNIT cardhour_card_seconds seconds
        # UNIT cardhour_delivery_last_timestamp_seconds seconds
        # UNIT cardhour_held_card_seconds seconds
        # UNIT cardhour_held_energy_joules joules
        # UNIT cardhour_month_start_timestamp_seconds seconds
        # UNIT cardhour_node_last_segment_timestamp_seconds seconds
        # UNIT cardhour_project_month_card_seconds seconds
        # UNIT cardhour_recovered_card_seconds seconds
        cardhour_attempts{state="pending"} 0.0
        cardhour_attempts{state="running"} 3.0
        cardhour_books_as_of_timestamp_seconds 1775000000.0
        cardhour_budget_forecast_ratio{budget="lab"} 0.9
        cardhour_budget_ratio{budget="lab"} 0.75
        cardhour_build_info{version="0.1.0"} 1
        cardhour_card_seconds{state="free"} 72000.0
        cardhour_card_seconds{state="held"} 216000.0
        cardhour_cards{state="held"} 6.0
        cardhour_coverage_ratio 1.0
        cardhour_decisions{kind="reclaim",mode="act",outcome="stop"} 2.0
        cardhour_deliveries_owed{delivery="finance",why="closing"} 1
        cardhour_deliveries_total{delivery="finance",outcome="delivered"} 2
        cardhour_delivery_last_timestamp_seconds{delivery="finance"} 1775000000.5
        cardhour_held_card_seconds{went="effective"} 108000.0
        cardhour_held_card_seconds{went="unseen"} 108000.0
        cardhour_held_energy_joules 9000000.0
        cardhour_http_requests_total{route="/api/v1/sql",status="200"} 1
        cardhour_intake_rows_total 240
        cardhour_intake_segments_total{outcome="refused"} 1
        cardhour_intake_segments_total{outcome="taken"} 1
        cardhour_last_month_cost{currency="CNY"} 925.0
        cardhour_ledger_simulated 1
        cardhour_month_start_timestamp_seconds 1772294400.0
        cardhour_node_last_segment_timestamp_seconds{node="gpu01"} 1775000000.5
        cardhour_project_month_card_seconds{org="lab",project="vision",went="idle"} 3600.0
        cardhour_project_month_cost{org="lab",project="vision",currency="CNY"} 925.0
        cardhour_recovered_card_seconds{mode="act"} 10800.0
        cardhour_use_coverage_ratio 0.5
        "#);
    }

    /// As the older form has it: the names of counters end, an info is a gauge, and nothing says `# UNIT` or `# EOF`.
    #[test]
    fn the_older_form_names_counters_as_their_samples() {
        let text = "# HELP a_seconds Time.\n# TYPE a_seconds gauge\n# UNIT a_seconds seconds\na_seconds 1.5\n# HELP b Number.\n\
                    # TYPE b counter\nb_total{x=\"# TYPE b\"} 2\n# HELP c Which.\n# TYPE c info\nc_info{v=\"1\"} 1\n# EOF\n";
        let expected = "# HELP a_seconds Time.\n# TYPE a_seconds gauge\na_seconds 1.5\n# HELP b_total Number.\n# TYPE b_total counter\n\
                        b_total{x=\"# TYPE b\"} 2\n# HELP c_info Which.\n# TYPE c_info gauge\nc_info{v=\"1\"} 1\n";
        assert_eq!(classic(text), expected);
    }
}
