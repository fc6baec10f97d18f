//! The rules that are shipped, by Prometheus's own checks.

use cardhour_test_prometheus::{has, promtool};
use std::path::{Path, PathBuf};

/// The folder of rules.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboards/rules")
}

/// Files there that end so.
pub fn files(suffix: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = all.filter(|path| path.to_string_lossy().ends_with(suffix)).collect();
    files.sort();
    files
}

fn named(files: &[PathBuf]) -> Vec<&str> {
    files.iter().map(|path| path.to_str().unwrap()).collect()
}

#[test]
fn promtool_accepts_the_rules() {
    if !has("promtool", "promtool_accepts_the_rules") {
        return;
    }
    let mut files = files(".yml");
    files.retain(|path| !path.to_string_lossy().ends_with(".test.yml"));
    assert!(!files.is_empty());
    let (is_well, said) = promtool(&[&["check", "rules"][..], &named(&files)].concat(), "", &folder());
    assert!(is_well && !said.contains("FAILED"), "{said}");
}

#[test]
fn the_rules_fire_when_they_should_and_not_before() {
    if !has("promtool", "the_rules_fire_when_they_should_and_not_before") {
        return;
    }
    let files = files(".test.yml");
    assert!(!files.is_empty());
    let (is_well, said) = promtool(&[&["test", "rules"][..], &named(&files)].concat(), "", &folder());
    assert!(is_well && said.matches("SUCCESS").count() == files.len(), "{said}");
}
