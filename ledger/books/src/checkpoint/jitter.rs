//! Inference jitter: how evenly a site's services answered over a week, by a latency that its own Prometheus knows.
//!
//! The site's query gives one latency a series and step: a mean, or a quantile of a histogram. Percentiles here are of those points, by nearest rank,
//! so each is a latency that the query gave. An hour's figure is the median of its points. All of it is whole microseconds; a step without a number
//! is no point (LED-3).
//!
//! Start at [`Latencies::add`], then [`Latencies::section`]. Does not: ask anybody.

use super::cells::{self, count, text};
use super::wait::Spread;
use super::week::Week;
use super::{Chart, Section, Shape};
use crate::import::metrics::MetricsError;
use crate::import::metrics::prometheus::matrix;
use crate::import::metrics::quantity::of_series;
use crate::report::local;
use crate::table::{Kind, Value};
use cardhour_domain::{Interval, Reading, Timestamp, Zone};
use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, RoundingStrategy};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// So many series are listed, those that differ most: what a meeting goes through.
const MOST: usize = 20;
/// Unit: milliseconds.
const HOUR_MS: i64 = 3_600_000;

/// What the numbers of a query are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatencyUnit {
    /// Seconds, as Prometheus advises.
    #[default]
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

impl LatencyUnit {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Seconds, Self::Milliseconds];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
        }
    }

    fn micros(self) -> Decimal {
        Decimal::from(match self {
            Self::Seconds => 1_000_000,
            Self::Milliseconds => 1_000,
        })
    }
}

/// Which labels of a series say what it is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyLabels {
    /// The label with the model; none: no label has it.
    pub model: Option<String>,
    /// The label with the service.
    pub service: Option<String>,
}

/// Latencies that were read.
#[derive(Clone, Debug)]
pub struct Latencies {
    unit: LatencyUnit,
    /// By the labels of a series: points by instant, in microseconds.
    series: BTreeMap<Vec<(String, String)>, BTreeMap<Timestamp, i64>>,
    warnings: Vec<String>,
}

/// Why there is nothing to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLatencies {
    /// No series at all.
    #[error("the query gives no series in that week")]
    Nothing,
    /// Series without a number.
    #[error("the query gives series and no number in that week")]
    NoNumber,
}

/// What the points of a series come to. Unit: microseconds.
struct Figures {
    hours: usize,
    median: i64,
    p99: i64,
    /// p99 ÷ median, six decimals; none where the median is nothing.
    spread: Option<Decimal>,
    /// The largest difference of two hours that follow each other, and when the second began.
    change: Option<(i64, Timestamp)>,
}

impl Latencies {
    /// None yet.
    pub fn new(unit: LatencyUnit) -> Self {
        Self { unit, series: BTreeMap::new(), warnings: Vec::new() }
    }

    /// Adds an answer of `query_range` to the query `expression`, in any order; the same point twice is one. What is no number, or below zero, is no
    /// point.
    ///
    /// Errors: Prometheus refused, or it is no such answer.
    pub fn add(&mut self, expression: &str, answer: &[u8]) -> Result<(), MetricsError> {
        let (all, warnings) = matrix(expression, answer)?;
        self.warnings
            .extend(warnings.into_iter().filter(|warning| !self.warnings.contains(warning)).collect::<Vec<_>>());
        for series in all {
            let labels = series.metric.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let points = self.series.entry(labels).or_default();
            points.extend(series.points().filter_map(|(at, value)| Some((at, self.unit.whole_micros(value)?))));
        }
        Ok(())
    }

    /// The section of a week, the series whose p99 is furthest from their median first.
    ///
    /// Columns: `series model service hours median_ms p99_ms p99_to_median largest_hourly_change_ms changed_at`. Errors: why there is none.
    pub fn section(&self, labels: &LatencyLabels, week: Week, zone: Zone) -> Result<Section, NoLatencies> {
        if self.series.is_empty() {
            return Err(NoLatencies::Nothing);
        }
        let during = week.days().interval(zone);
        let mut list: Vec<(&Vec<(String, String)>, Figures)> =
            self.series.iter().filter_map(|(of, points)| Some((of, Figures::of(points, during)?))).collect();
        let silent = self.series.len() - list.len();
        if list.is_empty() {
            return Err(NoLatencies::NoNumber);
        }
        list.sort_by_key(|(of, figures)| (Reverse(figures.spread), Reverse(figures.p99), *of));
        let more = list.len().saturating_sub(MOST);
        list.truncate(MOST);
        let rows = list.iter().map(|(of, figures)| row(of, figures, labels, zone)).collect();
        let columns = [
            ("series", Kind::Text),
            ("model", Kind::Text),
            ("service", Kind::Text),
            ("hours", Kind::Count),
            ("median_ms", Kind::Hours),
            ("p99_ms", Kind::Hours),
            ("p99_to_median", Kind::Hours),
            ("largest_hourly_change_ms", Kind::Hours),
            ("changed_at", Kind::Text),
        ];
        let mut table = cells::table("Inference jitter", &columns, rows);
        table.notes.push(
            "latencies of the site's own query, percentiles by nearest rank over the week; hours: those with a number; largest hourly change: between the medians of \
             two hours that follow each other"
                .to_owned(),
        );
        if more > 0 {
            table.notes.push(format!("{more} more series are steadier than these"));
        }
        if silent > 0 {
            table.notes.push(format!("{silent} series have no number in that week"));
        }
        table.notes.extend(self.warnings.iter().cloned());
        Ok(Section { name: "inference_jitter", table, chart: Some(Chart { shape: Shape::Bars, label: 0, value: 6 }) })
    }
}

impl LatencyUnit {
    /// A number as Prometheus writes it, half to even; none where it is none, or below zero.
    fn whole_micros(self, value: &str) -> Option<i64> {
        let Reading::Seen(number) = of_series(value) else { return None };
        let micros = number.checked_mul(self.micros())?;
        let micros = micros.round_dp_with_strategy(0, RoundingStrategy::MidpointNearestEven).to_i64()?;
        (micros >= 0).then_some(micros)
    }
}

impl Figures {
    /// Of the points of a week; none where there is none in it. A point tells of the step before it, so the week's last is at its end.
    fn of(points: &BTreeMap<Timestamp, i64>, during: Interval) -> Option<Self> {
        let mut by_hour: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for (at, micros) in points {
            if during.start() < *at && *at <= during.end() {
                by_hour.entry((at.ms_since(during.start()) - 1) / HOUR_MS).or_default().push(*micros);
            }
        }
        let all = Spread::of(by_hour.values().flatten().copied());
        let (median, p99) = (all.percentile(50)?, all.percentile(99)?);
        let hours: Vec<(i64, i64)> =
            by_hour.into_iter().filter_map(|(hour, points)| Some((hour, Spread::of(points).percentile(50)?))).collect();
        let mut change: Option<(i64, i64)> = None;
        for pair in hours.windows(2) {
            let ((before, from), (hour, to)) = (pair[0], pair[1]);
            let by = (to - from).abs();
            // Of two that are alike the first.
            if before + 1 == hour && change.is_none_or(|(most, _)| by > most) {
                change = Some((by, hour));
            }
        }
        let spread = (median > 0).then(|| {
            let mut spread = (Decimal::from(p99) / Decimal::from(median)).round_dp(6);
            spread.rescale(6);
            spread
        });
        let started = |hour: i64| Timestamp::from_unix_ms(during.start().unix_ms() + hour * HOUR_MS);
        let change = change.map(|(by, hour)| (by, started(hour)));
        Some(Self { hours: hours.len(), median, p99, spread, change })
    }
}

fn row(of: &[(String, String)], figures: &Figures, labels: &LatencyLabels, zone: Zone) -> Vec<Value> {
    let label = |name: &Option<String>| {
        let value = of.iter().find(|(label, _)| Some(label) == name.as_ref());
        value.map_or(Value::Absent, |(_, value)| text(value))
    };
    let all = of.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",");
    vec![
        // One series without labels is all there is.
        text(if all.is_empty() { "(all)" } else { &all }),
        label(&labels.model),
        label(&labels.service),
        count(figures.hours),
        ms(figures.median),
        ms(figures.p99),
        cells::ratio(figures.spread),
        figures.change.map_or(Value::Absent, |(by, _)| ms(by)),
        figures.change.map_or(Value::Absent, |(_, at)| text(local(zone, at))),
    ]
}

/// Microseconds as milliseconds, six decimals.
fn ms(micros: i64) -> Value {
    Value::Decimal(Decimal::from_i128_with_scale(i128::from(micros) * 1000, 6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::check;

    /// An answer: of each series its labels and its points, minutes after the start of week 20 of 2026 in Shanghai, with values as Prometheus writes
    /// them.
    fn answer(series: &[(&str, &[(i64, &str)])]) -> Vec<u8> {
        // 2026-05-11T00:00 in Shanghai, UTC+8.
        let start = Timestamp::parse_rfc3339("2026-05-10T16:00:00Z").unwrap().unix_ms() / 1000;
        let series = series.iter().map(|(labels, points)| {
            let values: Vec<String> =
                points.iter().map(|(minute, value)| format!("[{}, \"{value}\"]", start + minute * 60)).collect();
            format!("{{\"metric\": {{{labels}}}, \"values\": [{}]}}", values.join(","))
        });
        let series = series.collect::<Vec<_>>().join(",");
        format!("{{\"status\": \"success\", \"data\": {{\"resultType\": \"matrix\", \"result\": [{series}]}}}}")
            .into_bytes()
    }

    fn section(answers: &[Vec<u8>]) -> Result<Section, NoLatencies> {
        let mut latencies = Latencies::new(LatencyUnit::Seconds);
        answers.iter().for_each(|answer| latencies.add("q", answer).unwrap());
        let labels = LatencyLabels { model: Some("model".to_owned()), service: Some("service".to_owned()) };
        latencies.section(&labels, "2026-W20".parse().unwrap(), Zone::parse("Asia/Shanghai").unwrap())
    }

    const COLUMNS: &str =
        "series model service hours median_ms p99_ms p99_to_median largest_hourly_change_ms changed_at";

    /// By hand. `chat`, in seconds: hour 0 has 0.10, 0.20, 0.30, median 0.20; hour 1 has 0.50; hour 3 has 0.90, and hour 2 nothing. Of the five, by
    /// nearest rank, the median is the 3rd, 0.30, p99 the 5th, 0.90: three times it. Hours 0 and 1 follow each other and differ by 0.30; 1 and 3
    /// don't. `steady` is 0.05 twice.
    #[test]
    fn jitter_is_p99_beside_the_median_and_the_largest_change_of_hours_that_meet() {
        let chat = "\"model\": \"qwen\", \"service\": \"chat\"";
        let points: &[(i64, &str)] = &[(1, "0.1"), (30, "0.2"), (60, "3e-1"), (61, "0.5"), (200, "0.9")];
        let steady: &[(i64, &str)] = &[(10, "0.05"), (70, "0.05")];
        let made = section(&[answer(&[(chat, points), ("\"pod\": \"x\"", steady)])]).unwrap();
        check(
            &made.table,
            COLUMNS,
            "model=qwen,service=chat qwen chat 3 300.000000 900.000000 3.000000 300.000000 2026-05-11 01:00
             pod=x - - 2 50.000000 50.000000 1.000000 0.000000 2026-05-11 01:00",
        );
        // In two answers that overlap it is the same.
        let halves = [answer(&[(chat, &points[..3]), ("\"pod\": \"x\"", steady)]), answer(&[(chat, &points[2..])])];
        assert_eq!(section(&halves).unwrap(), made);
    }

    #[test]
    fn what_is_no_number_is_no_point_and_no_zero() {
        let odd: &[(i64, &str)] = &[(1, "NaN"), (2, "+Inf"), (3, "-1"), (65, "0.2"), (0, "7"), (10_081, "7")];
        let made = section(&[answer(&[("", odd), ("\"pod\": \"y\"", &[(1, "NaN")])])]).unwrap();
        // The week's points are those after its first instant up to its last, 10,080 minutes on.
        check(&made.table, COLUMNS, "(all) - - 1 200.000000 200.000000 1.000000 - -");
        assert!(made.table.notes.iter().any(|note| note == "1 series have no number in that week"));
        let last = section(&[answer(&[("", &[(10_080, "0.004")])])]).unwrap();
        check(&last.table, "hours median_ms", "1 4.000000");
        assert_eq!(section(&[answer(&[])]), Err(NoLatencies::Nothing));
        assert_eq!(section(&[answer(&[("", &[(1, "NaN")])])]), Err(NoLatencies::NoNumber));
        // A median of nothing has no multiple.
        let nothing = section(&[answer(&[("", &[(1, "0"), (2, "0")])])]).unwrap();
        check(&nothing.table, "median_ms p99_to_median", "0.000000 -");
    }

    #[test]
    fn a_refusal_of_prometheus_is_an_error() {
        let refusal = br#"{"status": "error", "errorType": "bad_data", "error": "parse error"}"#;
        let mut latencies = Latencies::new(LatencyUnit::Milliseconds);
        assert!(matches!(latencies.add("q", refusal), Err(MetricsError::Refused { .. })));
        assert_eq!(LatencyUnit::Milliseconds.whole_micros("1.5"), Some(1500));
    }
}
