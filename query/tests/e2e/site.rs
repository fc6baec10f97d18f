//! A ledger of its own, and the binary to run on it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Jobs with their owners: id, org, team, who, cards, model, start, end.
pub const OWNED_MAP: &str = r#"
format = "csv"
cluster = "lab"
[columns]
job_id = "id"
org = "org"
project = "team"
user = "who"
cards = "cards"
model = "model"
submitted_at = "start"
started_at = "start"
ended_at = "end"
"#;

/// Jobs of a pool that is planned: those, and node, class, restartable, state, submit.
pub const POOL_MAP: &str = r#"
format = "csv"
cluster = "lab"
[columns]
job_id = "id"
org = "org"
project = "team"
user = "who"
cards = "cards"
cards_requested = "cards"
model = "model"
nodes = "node"
class = "class"
restartable = "restartable"
state = "state"
submitted_at = "submit"
started_at = "start"
ended_at = "end"
"#;

/// A map of a small table of jobs, for tests that write their rows themselves.
pub const MAP: &str = r#"
format = "csv"
cluster = "c"
[columns]
job_id = "id"
user = "who"
project = "team"
cards = "cards"
model = "model"
submitted_at = "start"
started_at = "start"
ended_at = "end"
"#;

/// A temporary ledger and a folder for the files of a test; both go away with it.
pub struct Site {
    dir: tempfile::TempDir,
}

/// What a command gave back.
#[derive(Debug)]
pub struct Answer {
    /// Exit code; none when it was killed.
    pub code: Option<i32>,
    /// What it printed.
    pub out: String,
    /// What it said beside that.
    pub err: String,
}

impl Site {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// The ledger's folder.
    pub fn ledger(&self) -> PathBuf {
        self.dir.path().join("ledger")
    }

    /// Writes a file beside the ledger. Comes back with its path, as an argument.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// The binary, with this ledger and nothing of the surroundings.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cardhour"));
        command
            .env_remove("CARDHOUR_CONFIG")
            .env("CARDHOUR_LEDGER", self.ledger())
            .env("HOME", self.dir.path())
            .env("XDG_CONFIG_HOME", self.dir.path().join("config"))
            .env("XDG_DATA_HOME", self.dir.path().join("data"))
            .env("TZ", "Pacific/Auckland") // nothing may depend on the zone of the machine
            .stdin(Stdio::null());
        command
    }

    /// Runs words cut at white space.
    pub fn run(&self, words: &str) -> Answer {
        answer(self.command().args(words.split_whitespace()))
    }

    /// The same, and it must be done: exit code 0. Comes back with what it printed.
    #[track_caller]
    pub fn ok(&self, words: &str) -> String {
        let answer = self.run(words);
        assert_eq!(answer.code, Some(0), "cardhour {words}\n{}\n{}", answer.out, answer.err);
        answer.out
    }

    /// An import, which must end with 0, or with 4 for rows in quarantine.
    #[track_caller]
    pub fn import(&self, words: &str) {
        let answer = self.run(&format!("import {words}"));
        assert!(
            matches!(answer.code, Some(0 | 4)),
            "cardhour import {words} ended with {:?}\n{}\n{}",
            answer.code,
            answer.out,
            answer.err
        );
    }

    /// A report as rows.
    #[track_caller]
    pub fn report(&self, words: &str) -> Rows {
        Rows::parse(&self.ok(&format!("report {words} --format csv")))
    }

    /// A query as rows.
    #[track_caller]
    pub fn sql(&self, query: &str) -> Rows {
        Rows::parse(&self.sql_text(query))
    }

    /// A query as csv text.
    #[track_caller]
    pub fn sql_text(&self, query: &str) -> String {
        let answer = answer(self.command().args(["sql", query, "--format", "csv"]));
        assert_eq!(answer.code, Some(0), "cardhour sql {query:?}\n{}\n{}", answer.out, answer.err);
        answer.out
    }
}

/// Runs a command to its end.
pub fn answer(command: &mut Command) -> Answer {
    let output = command.output().unwrap();
    Answer {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Rows of csv with a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows(pub Vec<BTreeMap<String, String>>);

impl Rows {
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        Self(
            reader
                .records()
                .map(|record| header.iter().cloned().zip(record.unwrap().iter().map(str::to_owned)).collect())
                .collect(),
        )
    }

    /// The only value of a column in the only row.
    #[track_caller]
    pub fn only(&self, column: &str) -> &str {
        assert_eq!(self.0.len(), 1, "one row expected: {self:?}");
        &self.0[0][column]
    }

    /// A column by another.
    #[track_caller]
    pub fn by(&self, key: &str, value: &str) -> BTreeMap<String, String> {
        self.0.iter().map(|row| (row[key].clone(), row[value].clone())).collect()
    }

    /// The sum of a column of decimals, in millionths.
    #[track_caller]
    pub fn sum_micros(&self, column: &str) -> i128 {
        self.0.iter().map(|row| micros(&row[column])).sum()
    }
}

/// A decimal of at most six places in millionths; nothing is none at all, not zero.
#[track_caller]
pub fn micros(decimal: &str) -> i128 {
    let (sign, digits) = decimal.strip_prefix('-').map_or((1, decimal), |rest| (-1, rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    assert!(!whole.is_empty() && fraction.len() <= 6, "{decimal:?} is not a decimal of at most six places");
    sign * format!("{whole}{fraction:0<6}").parse::<i128>().unwrap()
}

/// Asserts that card-hours are a published figure, to the last digit that is given.
#[track_caller]
pub fn assert_hours(card_hours: &str, published: &str) {
    let published = published.replace(',', "");
    let decimals = published.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let unit = 10i128.pow(6 - decimals as u32);
    let rounded = (micros(card_hours) + unit / 2).div_euclid(unit);
    assert_eq!(rounded, micros(&published) / unit, "{card_hours} card-hours, published are {published}");
}

/// A file of the public traces; none, said aloud, where they are not there.
pub fn shared(name: &str) -> Option<PathBuf> {
    let data = std::env::var_os("CARDHOUR_SHARED").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let path = data.join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(!require_all(), "{} is not there, and CARDHOUR_REQUIRE_ALL is set", path.display());
    // Not by println!, which is captured of a test that passes.
    let _ = writeln!(std::io::stderr(), "skipped: {name} needs the shared data folder");
    None
}

/// A map that the product ships.
pub fn map(name: &str) -> String {
    root().join("deploy/maps").join(format!("{name}.toml")).display().to_string()
}

/// Runs a Python script that gets the argument as `sys.argv[1]`. None, said aloud, where Python lacks the packages.
pub fn python(script: &str, argument: &Path) -> Option<String> {
    let python = std::env::var_os("CARDHOUR_PYTHON").unwrap_or_else(|| "python3".into());
    let works = Command::new(&python)
        .args(["-c", "import duckdb, duckdb_ext, deltalake, pyarrow"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !works {
        assert!(!require_all(), "Python lacks the packages of tests/requirements.txt, and CARDHOUR_REQUIRE_ALL is set");
        let _ = writeln!(std::io::stderr(), "skipped: needs the Python packages of tests/requirements.txt");
        return None;
    }
    let answer = answer(python_script(Path::new(&python), script).arg(argument));
    assert_eq!(answer.code, Some(0), "{}\n{}", answer.out, answer.err);
    Some(answer.out)
}

/// A Python that runs a script, whose arguments the caller adds. It leaves at the script's last line, without taking its libraries down: the engines' own
/// threads may still run then, and now and again the C++ runtime ends such a process by `terminate`, after everything was answered. A script
/// that fails raises before that line, and exits with 1.
pub fn python_script(python: &Path, script: &str) -> Command {
    let left = "import os, sys\nsys.stdout.flush()\nos._exit(0)\n";
    let mut command = Command::new(python);
    command.arg("-c").arg(format!("{script}\n{left}")).stdin(Stdio::null());
    command
}

fn require_all() -> bool {
    std::env::var_os("CARDHOUR_REQUIRE_ALL").is_some_and(|value| value == "1")
}

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
