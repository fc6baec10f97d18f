//! A node with the real collector on it.

use super::page::Page;
use cardhour_test_prometheus::free_port;
use fake_nvml::Stage;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take: the machine may have other things to do.
pub const LONG: Duration = Duration::from_secs(60);

/// The collector of a node, which plays a scenario in the world's own time, at a tick a second.
pub struct Node {
    pub port: u16,
    pub stage: Stage,
    pub folder: TempDir,
    child: Child,
}

/// The collector's command with a config of its own. `more` is what stands in the config before its sections.
pub fn command(folder: &Path, more: &str, sections: &str) -> Command {
    let ledger = folder.join("ledger");
    std::fs::create_dir_all(ledger.join("incoming")).unwrap();
    let config = folder.join("collector.toml");
    let spool = folder.join("spool");
    let text = format!(
        "cluster = \"lab\"\nnode = \"n1\"\nspool = {spool:?}\nstep_s = 1\nseal_after_s = 2\n{more}\n[deliver]\nfolder = {ledger:?}\n{sections}\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cardhour-collector"));
    command.arg("--config").arg(config).stdout(Stdio::null());
    command
}

/// `cardhour-collector` with these words, for the collector whose config is in a folder.
pub fn ask(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cardhour-collector"));
    command.args(words).arg("--config").arg(folder.join("collector.toml")).output().unwrap()
}

impl Node {
    /// With a scenario, its config's keys and its sections.
    pub fn with(scenario: &str, more: &str, sections: &str) -> Self {
        Self::on(Stage::new(scenario).unwrap(), more, sections)
    }

    /// On a stage that was set already.
    pub fn on(stage: Stage, more: &str, sections: &str) -> Self {
        // Without its clock the scenario plays in the world's time, from when the collector starts.
        std::fs::remove_file(stage.folder().join("fake-nvml.clock")).unwrap();
        let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
        let more = format!("metrics = \"127.0.0.1:{port}\"\n{more}");
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child =
            command(folder.path(), &more, sections).arg("--nvml-lib").arg(stage.library()).stderr(log).spawn().unwrap();
        Self { port, stage, folder, child }
    }

    /// With a scenario alone.
    pub fn new(scenario: &str) -> Self {
        Self::with(scenario, "", "")
    }

    /// With a scenario, and DCGM's names.
    pub fn dcgm(scenario: &str) -> Self {
        Self::with(scenario, "dcgm_names = true", "")
    }

    /// What is at a path: its status, its type and its text.
    pub fn get(&self, path: &str, accept: &str) -> Option<(u16, String, String)> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(10)))
            .build()
            .into();
        let mut answer =
            agent.get(format!("http://127.0.0.1:{}{path}", self.port)).header("accept", accept).call().ok()?;
        let kind = answer.headers().get("content-type")?.to_str().unwrap().to_owned();
        Some((answer.status().as_u16(), kind, answer.body_mut().read_to_string().unwrap()))
    }

    /// The page as it is now.
    pub fn page(&self) -> Option<Page> {
        Some(Page(self.get("/metrics", "*/*")?.2))
    }

    /// The page, once it is as it should be.
    #[track_caller]
    pub fn page_when(&self, what: &str, is_so: impl Fn(&Page) -> bool) -> Page {
        let since = Instant::now();
        loop {
            if let Some(page) = self.page().filter(|page| is_so(page)) {
                return page;
            }
            let page = || self.page().map_or_else(String::new, |page| page.0);
            assert!(since.elapsed() < LONG, "never {what}\n{}\n{}", self.log(), page());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The page, once rows were made of all devices: the second tick has them.
    #[track_caller]
    pub fn read_page(&self) -> Page {
        self.page_when("read", |page| {
            page.values("cardhour_collector_ticks_total", &[]).first().is_some_and(|n| *n >= 3.0)
        })
    }

    /// What the collector said.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Asks it for something by the command of that name.
    pub fn ask(&self, words: &[&str]) -> Output {
        ask(self.folder.path(), words)
    }

    /// The collector's pid.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, once it has; it is waited for.
    #[track_caller]
    pub fn ended(&mut self) -> Option<i32> {
        let since = Instant::now();
        while self.runs() {
            assert!(since.elapsed() < LONG, "it goes on\n{}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
        self.child.wait().unwrap().code()
    }

    /// Whether the collector still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
