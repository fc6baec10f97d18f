//! History of a running Prometheus or VictoriaMetrics: what to ask, in which ranges, and what the answers say.
//!
//! Rates are asked for as means over a step, `avg_over_time(…[60s])`, levels and counters as the last value in it. Both look at nothing
//! but the step, so that a series that ended is silent, where a plain query would repeat its last value for five minutes.
//!
//! Does not: speak HTTP. Whoever does asks each of [`queries`] over each of [`ranges`] with `query_range` and hands the bytes to
//! [`Answers::add`].

use super::gathering::Gathering;
use super::labels::Labels;
use super::look::Told;
use super::metric::{METRICS, Metric};
use super::pods::Pods;
use super::quantity;
use super::{MetricsError, Readout, Setting};
use cardhour_domain::{Interval, Timestamp};
use std::borrow::Cow;

/// The most points a series that Prometheus gives in one answer.
pub const MOST_POINTS: i64 = 11_000;

/// One thing to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// What the answer tells.
    pub asks: Asks,
    /// In PromQL.
    pub expression: String,
}

/// What a query asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// What cards say.
    Metric(&'static Metric),
    /// Which pods there are, with their uids.
    PodInfo,
    /// Which pods are over.
    PodOver,
    /// Which pods asked for cards.
    PodRequests,
    /// The labels of pods.
    PodLabels,
}

/// All that is to be asked: every name of every metric, and kube-state-metrics for owners. What a site hasn't, it answers with nothing.
///
/// `step_s`: the grid, best no shorter than the scrape interval, since a step without a scrape is one that nobody saw. `matchers`: of a
/// Prometheus with several clusters, such as `cluster="a"`; empty for none.
pub fn queries(step_s: u32, matchers: &str) -> Vec<Query> {
    let all = |with: &str| match (matchers, with) {
        ("", "") => String::new(),
        (a, "") | ("", a) => format!("{{{a}}}"),
        (a, b) => format!("{{{a},{b}}}"),
    };
    let of_metric = |metric: &'static Metric| {
        let function = if metric.signal.is_rate() { "avg_over_time" } else { "last_over_time" };
        let expression = format!("{function}({}{}[{step_s}s])", metric.name, all(""));
        Query { asks: Asks::Metric(metric), expression }
    };
    let over = r#"phase=~"Succeeded|Failed""#;
    let cards = r#"resource=~"nvidia_com_.+""#;
    // `max by` makes one of several kube-state-metrics (M15). Where a scrape pushes its labels aside, theirs are kept, too.
    let by = "namespace, pod, uid, node, exported_namespace, exported_pod, exported_node";
    let of_pods = [
        (Asks::PodInfo, format!("max by ({by}) (last_over_time(kube_pod_info{}[{step_s}s]))", all(""))),
        (Asks::PodOver, format!("max by ({by}) (last_over_time(kube_pod_status_phase{}[{step_s}s])) == 1", all(over))),
        (
            Asks::PodRequests,
            format!(
                "max by ({by}) (last_over_time(kube_pod_container_resource_requests{}[{step_s}s])) > 0",
                all(cards)
            ),
        ),
        (Asks::PodLabels, format!("last_over_time(kube_pod_labels{}[{step_s}s])", all(""))),
    ];
    let of_pods = of_pods.into_iter().map(|(asks, expression)| Query { asks, expression });
    METRICS.iter().map(of_metric).chain(of_pods).collect()
}

/// The first and last instant of each `query_range` that `during` needs, in order.
///
/// Instants stand on a grid of whole steps since 1970 and tell of the step before them: so two imports of neighbouring times have the same
/// instants as one of both, and none twice. `most_points`: of a series in one answer; [`MOST_POINTS`] is Prometheus's own limit, less makes
/// smaller answers. Empty where no whole step lies inside.
pub fn ranges(during: Interval, step_s: u32, most_points: i64) -> Vec<(Timestamp, Timestamp)> {
    let step_ms = i64::from(step_s.max(1)) * 1000;
    let most_points = most_points.clamp(1, MOST_POINTS);
    let first =
        during.start().unix_ms().div_euclid(step_ms) + i64::from(during.start().unix_ms().rem_euclid(step_ms) != 0) + 1;
    let last = during.end().unix_ms().div_euclid(step_ms);
    let mut ranges = Vec::new();
    let mut at = first;
    while at <= last {
        let end = last.min(at + most_points - 1);
        let instant = |n: i64| Timestamp::from_unix_ms(n * step_ms);
        ranges.push((instant(at), instant(end)));
        at = end + 1;
    }
    ranges
}

/// The answers so far.
pub struct Answers<'s> {
    gathering: Gathering<'s>,
    pods: Pods,
    warnings: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    status: Cow<'a, str>,
    data: Option<Data<'a>>,
    #[serde(rename = "errorType", default)]
    error_type: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Vec<String>,
    /// Of a VictoriaMetrics of several stores: one of them didn't answer.
    #[serde(rename = "isPartial", default)]
    is_partial: bool,
}

#[derive(serde::Deserialize)]
struct Data<'a> {
    #[serde(rename = "resultType", borrow)]
    result_type: Cow<'a, str>,
    #[serde(borrow)]
    result: Option<&'a serde_json::value::RawValue>,
}

/// One series of an answer to `query_range`.
#[derive(serde::Deserialize)]
pub(crate) struct MatrixSeries<'a> {
    pub metric: Labels,
    #[serde(borrow, default)]
    values: Vec<(f64, Cow<'a, str>)>,
}

impl MatrixSeries<'_> {
    /// Its points, as Prometheus writes their values. What is at no instant that is meant is left out.
    pub fn points(&self) -> impl Iterator<Item = (Timestamp, &str)> {
        self.values.iter().filter_map(|(at, value)| Some((instant(*at)?, &**value)))
    }
}

/// The series of an answer to `query_range`, and what Prometheus warns of. Errors: it refused, or it is no such answer.
pub(crate) fn matrix<'a>(
    expression: &str,
    answer: &'a [u8],
) -> Result<(Vec<MatrixSeries<'a>>, Vec<String>), MetricsError> {
    let wrong = |problem: String| MetricsError::Answer { query: expression.to_owned(), problem };
    let answer: Answer<'a> = serde_json::from_slice(answer).map_err(|error| wrong(error.to_string()))?;
    if &*answer.status != "success" {
        let (query, kind, message) = (expression.to_owned(), answer.error_type, answer.error);
        return Err(MetricsError::Refused { query, kind, message });
    }
    if answer.is_partial {
        // What is missing can't be told from what never was: a card whose pod is missing would be free.
        return Err(wrong("it is partial, since a store of the cluster did not answer: ask again".to_owned()));
    }
    let data = answer.data.ok_or_else(|| wrong("it has no data".to_owned()))?;
    if &*data.result_type != "matrix" {
        return Err(wrong(format!("it is a {}", data.result_type)));
    }
    let result = data.result.ok_or_else(|| wrong("it has no result".to_owned()))?;
    let all = serde_json::from_str(result.get()).map_err(|error| wrong(error.to_string()))?;
    let warnings = answer.warnings.into_iter().map(|warning| format!("prometheus warns: {warning}"));
    Ok((all, warnings.collect()))
}

impl<'s> Answers<'s> {
    /// None yet.
    pub fn new(setting: &'s Setting) -> Self {
        Self { gathering: Gathering::new(setting, Told::Mean), pods: Pods::default(), warnings: Vec::new() }
    }

    /// Adds an answer, in any order.
    ///
    /// Errors: Prometheus refused, or it is no answer of `query_range`. Then nothing of it is taken: what wasn't answered is unseen.
    pub fn add(&mut self, query: &Query, answer: &[u8]) -> Result<(), MetricsError> {
        let (all, warnings) = matrix(&query.expression, answer)?;
        self.warnings.extend(warnings);
        for series in all {
            self.series(query.asks, &series);
        }
        Ok(())
    }

    fn series(&mut self, asks: Asks, series: &MatrixSeries) {
        let instants = || series.points().map(|(at, _)| at);
        match asks {
            Asks::PodInfo => self.pods.was_there(&series.metric, instants()),
            Asks::PodOver => self.pods.was_over(&series.metric, instants()),
            Asks::PodRequests => self.pods.asked_for_cards(&series.metric, instants()),
            Asks::PodLabels => self.pods.has_labels(&series.metric),
            Asks::Metric(metric) => {
                let Some(of) = self.gathering.series(&series.metric, metric) else { return };
                for (at, value) in series.points() {
                    self.gathering.add(&of, at, quantity::of_series(value));
                }
            }
        }
    }

    /// What they say together.
    pub fn readout(self) -> Readout {
        let mut readout = self.gathering.readout(&self.pods);
        readout.notes.extend(self.warnings);
        readout
    }
}

/// Seconds with a fraction, as JSON has them. Unit of the result: milliseconds, which a double holds for any date that is meant.
fn instant(seconds: f64) -> Option<Timestamp> {
    let ms = (seconds * 1000.0).round();
    (0.0..=4_102_444_800_000.0).contains(&ms).then(|| Timestamp::from_unix_ms(ms as i64))
}
