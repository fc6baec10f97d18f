//! A real VictoriaMetrics, which is asked as Prometheus is.

use crate::{LONG, free_port};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A running VictoriaMetrics.
pub struct VictoriaMetrics {
    port: u16,
    folder: TempDir,
    child: Child,
}

impl VictoriaMetrics {
    /// Has these series, as OpenMetrics text with times. Scrapes nothing.
    pub fn holding(openmetrics: &str) -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new("victoria-metrics")
            .arg(format!("-storageDataPath={}", folder.path().join("data").display()))
            .arg(format!("-httpListenAddr=127.0.0.1:{port}"))
            .args(["-retentionPeriod=100y", "-search.disableCache"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let victoria = Self { port, folder, child };
        let since = Instant::now();
        while ureq::get(format!("{}/health", victoria.url())).call().is_err() {
            assert!(since.elapsed() < LONG, "never ready\n{}", victoria.log());
            std::thread::sleep(Duration::from_millis(100));
        }
        let import = ureq::post(format!("{}/api/v1/import/prometheus", victoria.url()));
        import.send(in_milliseconds(openmetrics)).unwrap_or_else(|error| panic!("{error}\n{}", victoria.log()));
        // What was taken is found from then on.
        ureq::get(format!("{}/internal/force_flush", victoria.url())).call().unwrap();
        victoria
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

impl Drop for VictoriaMetrics {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Prometheus's older text has times in milliseconds, OpenMetrics in seconds.
fn in_milliseconds(openmetrics: &str) -> String {
    let lines = openmetrics.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| format!("{line}000\n")).collect()
}
