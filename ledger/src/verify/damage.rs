//! What can't be read, or isn't what its closing says: kept while the other proofs go on, and told as faults, each damaged file by its name.
//!
//! Start at [`Damage::past`]. Does not: take for damage what whoever asked, or another try, can mend.

use super::findings::Findings;
use crate::{Error, Ledger};
use std::error::Error as _;

/// Errors that didn't stop the proof.
#[derive(Debug, Default)]
pub(super) struct Damage {
    errors: Vec<Error>,
}

impl Damage {
    /// What was read; none where it is damaged, which is kept. Errors: any that says nothing of the tables.
    pub fn past<T>(&mut self, read: Result<T, Error>) -> Result<Option<T>, Error> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error @ (Error::Damaged { .. } | Error::File { .. } | Error::Table { .. })) => {
                self.errors.push(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// All of it: each error once, and each file of any table that can't be read from end to end. None where nothing is damaged.
    pub async fn told(self, ledger: &Ledger) -> Result<Option<Findings>, Error> {
        if self.errors.is_empty() {
            return Ok(None);
        }
        let mut findings = Findings::default();
        for table in &ledger.store.tables().await? {
            let snapshot = match ledger.store.open(table).await {
                Ok(Some(snapshot)) => snapshot,
                Ok(None) => continue,
                Err(error) => {
                    findings.fault(table.name, "the whole table", "a table that can be read", &chain(&error));
                    continue;
                }
            };
            findings.rows += snapshot.files.len() as u64;
            for (file, error) in snapshot.unreadable().await {
                findings.fault(table.name, &format!("file {file}"), "a file that can be read", &chain(&error));
            }
        }
        let mut said: Vec<(String, String)> = self.errors.iter().map(|error| (table_of(error), chain(error))).collect();
        said.sort();
        said.dedup();
        // One whose file is named above needs no second line.
        said.retain(|(_, text)| findings.faults.iter().all(|fault| fault.found != *text));
        for (table, text) in said {
            findings.fault(&table, "what a proof reads", "what the books say is there", &text);
        }
        Ok(Some(findings))
    }
}

fn table_of(error: &Error) -> String {
    match error {
        Error::Damaged { table, .. } | Error::Table { table, .. } => table.clone(),
        Error::File { path, .. } => path.display().to_string(),
        _ => String::new(),
    }
}

/// An error with its causes.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
