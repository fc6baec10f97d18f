//! A real Prometheus for tests, on loopback, with a folder of its own, ended with the test.
//!
//! [`Prometheus::scraping`] scrapes each second what a test serves, [`Prometheus::holding`] has series that are given. [`Board`] is a board of Grafana,
//! whose queries are asked of one. [`Alertmanager`] is a real one that tells a [`Receiver`], [`VictoriaMetrics`] another that is asked as Prometheus is. The
//! programs are in Debian's packages `prometheus`, `prometheus-alertmanager` and `victoria-metrics`; where one is missing a test is skipped, and says so,
//! or fails where `CARDHOUR_REQUIRE_ALL` is 1.

mod alertmanager;
mod board;
mod victoria;

pub use alertmanager::{ALERTMANAGER, Alertmanager, Receiver};
pub use board::Board;
pub use victoria::VictoriaMetrics;

use serde_json::Value;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// After that a test gives up.
const LONG: Duration = Duration::from_secs(60);

/// A running Prometheus.
pub struct Prometheus {
    port: u16,
    folder: TempDir,
    child: Child,
}

/// What is scraped under one name.
pub struct Job<'a> {
    /// The label `job`.
    pub name: &'a str,
    /// Ports of this machine.
    pub ports: &'a [u16],
    /// A bearer token, where one is asked for.
    pub token: Option<&'a str>,
}

impl Job<'_> {
    fn config(&self) -> String {
        let targets: Vec<String> = self.ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let token =
            self.token.map(|token| format!("  authorization: {{credentials: {token:?}}}\n")).unwrap_or_default();
        format!("- job_name: {}\n{token}  static_configs: [{{targets: {targets:?}}}]\n", self.name)
    }
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Whether a program is there; where it has to be, it fails the test.
pub fn has(program: &str, test: &str) -> bool {
    let is_there = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !is_there {
        assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none_or(|all| all != "1"), "{test}: no {program}");
        println!(
            "skipped: {test} needs {program}, of Debian's packages prometheus, prometheus-alertmanager and victoria-metrics"
        );
    }
    is_there
}

/// What `promtool` says, standard output and error together, and whether it is content.
pub fn promtool(arguments: &[&str], input: &str, folder: &Path) -> (bool, String) {
    let mut child = Command::new("promtool")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut into = child.stdin.take().unwrap();
    let input = input.to_owned();
    // It may speak before it has read all.
    let writing = std::thread::spawn(move || into.write_all(input.as_bytes()));
    let out = child.wait_with_output().unwrap();
    let _ = writing.join();
    let said = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
    (out.status.success(), said)
}

impl Prometheus {
    /// Scrapes these jobs each second. `rules`: files of rules.
    pub fn scraping(jobs: &[Job<'_>], rules: &[PathBuf]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scrapes: String = jobs.iter().map(Job::config).collect();
        let text = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: {rules:?}\nscrape_configs:\n{scrapes}"
        );
        Self::start(folder, &text)
    }

    /// Has these series, as OpenMetrics text with times. Scrapes nothing.
    pub fn holding(openmetrics: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("series.om"), openmetrics).unwrap();
        let made = Command::new("promtool")
            .args(["tsdb", "create-blocks-from", "openmetrics"])
            .args([file("series.om"), file("data")])
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success(), "promtool takes the series");
        Self::start(folder, "global: {scrape_interval: 1m}\n")
    }

    fn start(folder: TempDir, text: &str) -> Self {
        let port = free_port();
        let config = folder.path().join("prometheus.yml");
        std::fs::write(&config, text).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--storage.tsdb.retention.time=100y")
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let prometheus = Self { port, folder, child };
        prometheus.wait("it is ready", || prometheus.get("/-/ready", &[]).is_some().then_some(()));
        prometheus
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn get(&self, path: &str, query: &[(&str, &str)]) -> Option<String> {
        let mut request = ureq::get(format!("http://127.0.0.1:{}{path}", self.port));
        for (key, value) in query {
            request = request.query(*key, *value);
        }
        request.call().ok()?.body_mut().read_to_string().ok()
    }

    /// Waits until there is an answer.
    #[track_caller]
    pub fn wait<T>(&self, what: &str, answer: impl Fn() -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            if let Some(answer) = answer() {
                return answer;
            }
            assert!(since.elapsed() < LONG, "never: {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// What a query gives now: labels and value. Errors: Prometheus's own words.
    pub fn query(&self, expression: &str) -> Result<Vec<(Value, f64)>, String> {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let text = agent
            .get(format!("http://127.0.0.1:{}/api/v1/query", self.port))
            .query("query", expression)
            .call()
            .and_then(|mut answer| answer.body_mut().read_to_string())
            .map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        if answer["status"] != "success" {
            return Err(answer["error"].to_string());
        }
        let number = |value: &Value| value[1].as_str().unwrap().parse().unwrap();
        Ok(match &answer["data"]["result"] {
            Value::Array(rows) if answer["data"]["resultType"] == "vector" => {
                rows.iter().map(|row| (row["metric"].clone(), number(&row["value"]))).collect()
            }
            scalar => vec![(Value::Null, number(scalar))],
        })
    }

    /// The only value that a query gives, once it gives one.
    #[track_caller]
    pub fn value(&self, expression: &str) -> f64 {
        let rows = self.wait(expression, || self.query(expression).unwrap().try_into().ok());
        let [(_, value)]: [(Value, f64); 1] = rows;
        value
    }

    /// What is wrong with its targets, by its own account.
    pub fn target_errors(&self) -> Vec<String> {
        let text = self.get("/api/v1/targets", &[]).unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        let targets = answer["data"]["activeTargets"].as_array().unwrap().clone();
        assert!(!targets.is_empty());
        targets.iter().map(|t| t["lastError"].as_str().unwrap().to_owned()).filter(|e| !e.is_empty()).collect()
    }

    /// Lines of its log that warn of something.
    pub fn warnings(&self) -> Vec<String> {
        let is_warning = |line: &&str| line.contains("level=warn") || line.contains("level=error");
        self.log().lines().filter(is_warning).map(str::to_owned).collect()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
