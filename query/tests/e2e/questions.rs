//! `docs/questions.md`: each command that is shown there is run on the month that it is about, and has to print what is shown.
//!
//! The figures are worked out by hand in the page, beside each answer.

use crate::site::{Site, answer};
use std::path::Path;
use std::process::Command;

/// A command of the page, and what it shows of its output.
struct Shown {
    line: usize,
    command: String,
    output: Vec<String>,
}

/// What stands in blocks of the console: lines that begin with `$ `, each with the lines below it.
fn shown(page: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut in_console = false;
    for (line, text) in (1..).zip(page.lines()) {
        match text {
            "```console" => in_console = true,
            "```" => in_console = false,
            _ if !in_console => {}
            _ => match text.strip_prefix("$ ") {
                Some(command) => all.push(Shown { line, command: command.to_owned(), output: Vec::new() }),
                None => all.last_mut().expect("a command before its output").output.push(text.trim_end().to_owned()),
            },
        }
    }
    all
}

/// Whether a line is as shown; `…` stands for what changes from run to run.
fn is_as_shown(line: &str, shown: &str) -> bool {
    let Some((start, end)) = shown.split_once('…') else { return line == shown };
    line.len() >= start.len() + end.len() && line.starts_with(start) && line.ends_with(end)
}

#[test]
fn every_question_of_a_controller_is_answered_by_the_command_that_the_page_shows() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs");
    let site = Site::new();
    let folder = site.ledger().parent().unwrap().join("month");
    std::fs::create_dir(&folder).unwrap();
    for file in std::fs::read_dir(docs.join("questions")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_cardhour")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let page = std::fs::read_to_string(docs.join("questions.md")).unwrap();
    let commands = shown(&page);
    assert!(page.matches("\n## ").count() >= 10, "ten questions");
    for Shown { line, command, output } in &commands {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&folder);
        for (name, value) in site.command().get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let ran = answer(shell.env("PATH", &path).env("USER", "controller"));
        let printed: Vec<&str> = ran.out.trim_end().lines().map(str::trim_end).collect();
        let is_same = printed.len() == output.len()
            && printed.iter().zip(output).all(|(printed, shown)| is_as_shown(printed, shown));
        assert!(
            is_same || output.is_empty(),
            "docs/questions.md:{line}: {command}\n{}\n{}\nis shown as\n{}",
            ran.out,
            ran.err,
            output.join("\n")
        );
        assert!(matches!(ran.code, Some(0 | 1)), "docs/questions.md:{line}: {command}\n{}", ran.err);
    }
}
