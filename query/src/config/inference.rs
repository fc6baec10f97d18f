//! `[inference]`: the Prometheus and the query that tell how fast a site's services answer.

use super::{parse_duration, text_of, unknown};
use axum::http::Uri;
use cardhour_books::checkpoint::jitter::{LatencyLabels, LatencyUnit};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use toml::Value;

/// Who is asked for latencies, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferenceConfig {
    /// The address of Prometheus or VictoriaMetrics.
    pub prometheus: String,
    /// In PromQL: one latency a series.
    pub query: String,
    /// What its numbers are.
    pub unit: LatencyUnit,
    /// Which labels say what a series is of.
    pub labels: LatencyLabels,
    /// How far apart its points are: whole seconds.
    pub step: Duration,
    /// A file with a bearer token.
    pub token_file: Option<PathBuf>,
    /// A user, and the file with the password.
    pub login: Option<(String, PathBuf)>,
    /// Certificates (PEM) of who may vouch for it; none: the system's.
    pub ca_file: Option<PathBuf>,
}

/// Two thousand points a week: fine enough for hours, and far from what Prometheus refuses.
const STEP: Duration = Duration::from_secs(300);
/// Unit: seconds.
const LONGEST_STEP_S: u64 = 3600;

const KEYS: [&str; 10] = [
    "prometheus",
    "query",
    "unit",
    "model_label",
    "service_label",
    "step",
    "token_file",
    "user",
    "password_file",
    "ca_file",
];

/// The keys as they were read, before they are held against each other.
#[derive(Default)]
pub(super) struct Keys {
    /// Every key that was there, right or wrong.
    said: Vec<String>,
    prometheus: Option<(String, bool)>,
    query: Option<String>,
    unit: LatencyUnit,
    labels: LatencyLabels,
    step: Option<Duration>,
    token_file: Option<PathBuf>,
    user: Option<String>,
    password_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

impl Keys {
    /// Reads one key. Errors: what is wrong with it.
    pub fn read(&mut self, key: &str, value: &Value) -> Result<(), String> {
        self.said.push(key.to_owned());
        match key {
            "prometheus" => self.prometheus = Some(address(text_of(value)?)?),
            "query" => self.query = Some(text_of(value)?.to_owned()),
            "unit" => {
                let text = text_of(value)?;
                let unit = LatencyUnit::ALL.into_iter().find(|unit| unit.name() == text);
                self.unit = unit.ok_or_else(|| format!("{text:?} is not s or ms"))?;
            }
            "model_label" => self.labels.model = Some(text_of(value)?.to_owned()),
            "service_label" => self.labels.service = Some(text_of(value)?.to_owned()),
            "step" => {
                let step = parse_duration(text_of(value)?)?;
                if step.subsec_nanos() != 0 || step.as_secs() > LONGEST_STEP_S {
                    return Err("is neither whole seconds nor up to an hour: 5m, 30s".to_owned());
                }
                self.step = Some(step);
            }
            "token_file" => self.token_file = Some(text_of(value)?.into()),
            "user" => self.user = Some(text_of(value)?.to_owned()),
            "password_file" => self.password_file = Some(text_of(value)?.into()),
            "ca_file" => self.ca_file = Some(text_of(value)?.into()),
            _ => return Err(unknown(&KEYS)),
        }
        Ok(())
    }

    /// What is in force; none without the section. Faults that one key alone doesn't have are added.
    pub fn finish(self, faults: &mut Vec<String>) -> Option<InferenceConfig> {
        if self.said.is_empty() {
            return None;
        }
        for (key, what) in [("prometheus", "whom to ask"), ("query", "what to ask")] {
            if !self.said.iter().any(|said| said == key) {
                faults.push(format!("inference.{key}: is missing: {what}"));
            }
        }
        let login = match (self.user, self.password_file) {
            (Some(user), Some(file)) => Some((user, file)),
            (None, None) => None,
            _ => {
                faults.push("inference.user, inference.password_file: one is there without the other".to_owned());
                None
            }
        };
        if login.is_some() && self.token_file.is_some() {
            faults.push("inference.token_file, inference.user: one of them says who asks".to_owned());
        }
        if let (Some((_, true)), true) = (&self.prometheus, login.is_some() || self.token_file.is_some()) {
            faults.push(
                "inference.prometheus: anybody on the way could read the token or password: take https".to_owned(),
            );
        }
        let (prometheus, _) = self.prometheus?;
        Some(InferenceConfig {
            prometheus,
            query: self.query?,
            unit: self.unit,
            labels: self.labels,
            step: self.step.unwrap_or(STEP),
            token_file: self.token_file,
            login,
            ca_file: self.ca_file,
        })
    }
}

/// The address, and whether others on the way can read what goes there. Errors: it is none.
fn address(text: &str) -> Result<(String, bool), String> {
    let wrong = || format!("{text:?} is no address such as http://prometheus:9090");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let host = uri.host().filter(|_| matches!(uri.scheme_str(), Some("http" | "https"))).ok_or_else(wrong)?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("a name or password doesn't belong into it: take user and password_file".to_owned());
    }
    if uri.query().is_some() {
        return Err("has a query: that is a key of its own".to_owned());
    }
    let is_open = uri.scheme_str() == Some("http") && !crate::import::prometheus::is_this_machine(host);
    Ok((text.to_owned(), is_open))
}

/// The section as a config file says it.
pub(super) fn to_toml(config: &InferenceConfig) -> String {
    let mut out = "\n[inference]\n".to_owned();
    let InferenceConfig { prometheus, query, unit, labels, step, token_file, login, ca_file } = config;
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let (user, password_file) = login.clone().unzip();
    for (key, value) in [
        ("prometheus", Some(prometheus.clone())),
        ("query", Some(query.clone())),
        ("unit", Some(unit.name().to_owned())),
        ("model_label", labels.model.clone()),
        ("service_label", labels.service.clone()),
        ("step", Some(super::duration_text(*step))),
        ("token_file", path(token_file)),
        ("user", user),
        ("password_file", path(&password_file)),
        ("ca_file", path(ca_file)),
    ] {
        if let Some(value) = value {
            _ = writeln!(out, "{key} = {}", Value::String(value));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use insta::assert_snapshot;
    use std::path::Path;

    #[test]
    fn who_is_asked_for_latencies_is_printed_as_it_was_read() {
        let text = r#"
            [inference]
            prometheus = "https://prometheus.example"
            query = 'histogram_quantile(0.95, sum by (le, model) (rate(latency_seconds_bucket[5m])))'
            model_label = "model"
            token_file = "/etc/cardhour/prometheus"
        "#;
        let config = Config::parse(text, Path::new("config.toml")).unwrap();
        let printed = config.to_toml(None);
        assert_snapshot!(printed.split_once("\n[inference]").unwrap().1.trim(), @r#"
        prometheus = "https://prometheus.example"
        query = "histogram_quantile(0.95, sum by (le, model) (rate(latency_seconds_bucket[5m])))"
        unit = "s"
        model_label = "model"
        step = "5m"
        token_file = "/etc/cardhour/prometheus"
        "#);
        assert_eq!(Config::parse(&printed, Path::new("config.toml")).unwrap().inference, config.inference);
    }

    #[test]
    fn every_fault_of_who_is_asked_is_told() {
        let faults = |text: &str| Config::parse(text, Path::new("config.toml")).unwrap_err().to_string();
        let text = r#"
            [inference]
            prometheus = "http://prometheus.example"
            unit = "us"
            step = "1500ms"
            user = "books"
            token_file = "t"
            colour = "red"
        "#;
        assert_snapshot!(faults(text), @r#"
        config file config.toml has 6 fault(s):
          inference.colour: no such key; known here: prometheus, query, unit, model_label, service_label, step, token_file, user, password_file, ca_file
          inference.step: is neither whole seconds nor up to an hour: 5m, 30s
          inference.unit: "us" is not s or ms
          inference.query: is missing: what to ask
          inference.user, inference.password_file: one is there without the other
          inference.prometheus: anybody on the way could read the token or password: take https
        "#);
        let alone = faults("[inference]\nquery = \"up\"\n");
        assert!(alone.contains("inference.prometheus: is missing: whom to ask"), "{alone}");
    }
}
