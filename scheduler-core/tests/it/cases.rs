//! Peers' cases: what the tests of Kueue, KAI, Volcano, YuniKorn and HAMi say their schedulers decide, as data.
//!
//! The file is `../shared/cases/sched-cases.json` beside the workspace, or any of that schema that `SCHED_CASES` names. A case is read into a snapshot and a policy by
//! what it says, never by its number; all that it expects is compared, and a key nobody compares is a failure too.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

mod compare;
mod formula;
mod setup;
mod text;

/// What came of a case.
pub enum Outcome {
    /// As expected.
    Held,
    /// What differed.
    Differed(Vec<String>),
}

#[test]
fn peers_cases_are_decided_as_their_tests_say() {
    let Some(cases) = cases() else { return };
    let mut held = 0;
    let mut failures = Vec::new();
    for case in &cases {
        match run(case) {
            Outcome::Held => held += 1,
            Outcome::Differed(what) => failures.push(text::failure(case, &what)),
        }
    }
    let _ = writeln!(std::io::stderr(), "{held} of {} cases held", cases.len());
    assert!(failures.is_empty(), "{} of {} cases differ:\n\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// The cases of the file; none, said aloud, where it isn't there.
fn cases() -> Option<Vec<Value>> {
    let path = std::env::var_os("SCHED_CASES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases/sched-cases.json"),
        PathBuf::from,
    );
    let Ok(text) = std::fs::read_to_string(&path) else {
        assert!(std::env::var_os("SCHED_CASES").is_none(), "no {}", path.display());
        assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none_or(|all| all != "1"), "no {}", path.display());
        let _ = writeln!(std::io::stderr(), "skipped: peers' cases need {}", path.display());
        return None;
    };
    let file: Value = serde_json::from_str(&text).expect("the cases are JSON");
    assert_eq!(file["schema"], "sched-cases/1", "{}", path.display());
    Some(file["cases"].as_array().expect("a list of cases").clone())
}

/// Runs a case by what it asks: a formula, or a round of decisions.
fn run(case: &Value) -> Outcome {
    let told = match formula::answer(case) {
        Some(told) => told,
        None => match setup::read(case) {
            Ok(read) => compare::compare(case, &read),
            Err(fault) => vec![fault],
        },
    };
    if told.is_empty() { Outcome::Held } else { Outcome::Differed(told) }
}
