//! Asks a site's own Prometheus how fast its services answered in a week.
//!
//! A report is made whether it answers or not: what it doesn't tell is left out, with the reason. Start at [`add_jitter`].

use crate::config::InferenceConfig;
use crate::error::{Error, chain};
use crate::import::prometheus::{Asked, Prometheus, PrometheusError};
use cardhour_books::checkpoint::jitter::Latencies;
use cardhour_books::checkpoint::{Checkpoint, Section, Week};
use cardhour_books::import::metrics::MetricsError;
use cardhour_books::import::metrics::prometheus::{MOST_POINTS, ranges};
use cardhour_domain::Zone;
use std::time::Duration;

/// How long a report waits for it: whoever reads the report waits too.
const LONGEST: Duration = Duration::from_secs(60);

/// Adds the section to a weekly report, or says why it isn't there.
pub async fn add_jitter(report: &mut Checkpoint, config: &InferenceConfig, week: Week, zone: Zone) {
    let made = match tokio::time::timeout(LONGEST, section(config, week, zone)).await {
        Ok(made) => made,
        Err(_) => Err(format!("{} gave no answer within {} s", config.prometheus, LONGEST.as_secs())),
    };
    match made {
        Ok(section) => report.sections.push(section),
        Err(reason) => report.notes.push(format!("inference jitter is left out: {reason}")),
    }
}

async fn section(config: &InferenceConfig, week: Week, zone: Zone) -> Result<Section, String> {
    let asked = Asked {
        url: &config.prometheus,
        token_file: config.token_file.as_deref(),
        login: config.login.as_ref().map(|(user, file)| (user.as_str(), file.as_path())),
        ca_file: config.ca_file.as_deref(),
    };
    let prometheus = Prometheus::new(&asked).map_err(|error| in_words(&error))?;
    let mut latencies = Latencies::new(config.unit);
    let step_s = u32::try_from(config.step.as_secs()).unwrap_or(u32::MAX);
    for (start, end) in ranges(week.days().interval(zone), step_s, MOST_POINTS) {
        let answer = prometheus.query_range(&config.query, start, end, step_s).await;
        let answer = answer.map_err(|error| in_words(&error))?;
        latencies.add(&config.query, &answer).map_err(|error| of_answer(&config.prometheus, &error))?;
    }
    latencies.section(&config.labels, week, zone).map_err(|reason| reason.to_string())
}

/// Why nothing came, in the words of the config and not of the command that asks the same way.
fn in_words(error: &Error) -> String {
    match error {
        Error::Prometheus(PrometheusError::Unauthorized { address, status, .. }) => {
            format!("{address} answers {status}: token_file, or user and password_file, in [inference] say who asks")
        }
        Error::Prometheus(PrometheusError::NoAnswer { address, tries, reason, .. }) => {
            format!("{address} gives no answer, asked {tries} times: {reason}")
        }
        Error::Prometheus(PrometheusError::Url { url, reason }) => format!("{url} {reason}"),
        Error::Prometheus(PrometheusError::Certificate { file, reason }) => {
            format!("no certificate can be read from ca_file {file}: {reason}")
        }
        other => chain(other),
    }
}

fn of_answer(address: &str, error: &MetricsError) -> String {
    match error {
        MetricsError::Refused { kind, message, .. } => format!("{address} refuses the query: {kind}: {message}"),
        other => chain(other),
    }
}
