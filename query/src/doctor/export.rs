//! Whether a file can be imported as it is: its first rows, read as the import will read them.

use super::Finding;
use crate::cli::DoctorArgs;
use crate::error::{Error, chain};
use crate::import::source::Source;
use crate::import::{read_jobs, read_map};
use cardhour_books::import::fields::JOB_FIELDS;
use cardhour_books::import::jobs::Options;
use cardhour_domain::Timestamp;
use std::path::Path;

/// Rows that are looked at: enough to meet every kind of row, few enough to answer at once.
const FIRST_ROWS: usize = 1000;

/// Looks at the first rows of an export. Rows that will go to quarantine are a warning, a map that doesn't fit is a failure.
pub fn look(file: &Path, args: &DoctorArgs, now: Timestamp) -> Vec<Finding> {
    let options = Options { as_of: None, covers: None, cluster: None, now };
    let looked = || -> Result<Vec<Finding>, Error> {
        let map = args.map.as_deref().map(|path| read_map(path, JOB_FIELDS)).transpose()?;
        let source = Source::read(file)?;
        let format = source.format(args.file_format, map.as_ref())?;
        let imported = read_jobs(&source, Some(format), map, &options, FIRST_ROWS)?;
        let about = format!(
            "{}: of the first {} rows {} are attempts, {} steps, {} can't be booked",
            source.name,
            imported.rows_read,
            imported.attempts.len(),
            imported.steps,
            imported.rejected.len()
        );
        let mut findings = Vec::new();
        if imported.attempts.is_empty() {
            findings.push(Finding::fail("map", about, "no attempt would be booked: look at the map's columns"));
        } else if imported.rejected.is_empty() {
            findings.push(Finding::ok("map", about));
        } else {
            findings.push(Finding::warn("map", about, "those rows would go to quarantine"));
        }
        for rejected in imported.rejected.iter().take(3) {
            let row = format!("line {}: {} {}", rejected.line, rejected.field, rejected.reason);
            findings.push(Finding::warn("map", row, "correct the export or the map"));
        }
        findings.extend(imported.notes.iter().map(|note| Finding::warn("map", note.clone(), "")));
        let cards: usize = imported.attempts.iter().filter(|attempt| !attempt.cards.is_zero()).count();
        if cards == 0 && !imported.attempts.is_empty() {
            findings.push(Finding::warn(
                "cards",
                "none of them has a card",
                "say in the map which column or resource counts as cards: cards = …, or cards_from = …",
            ));
        }
        Ok(findings)
    };
    looked().unwrap_or_else(|error| {
        vec![Finding::fail("map", chain(&error), "correct the map, or name another --file-format")]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    fn look_at(name: &str, content: &str, format: &str) -> Vec<Finding> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        let args = DoctorArgs {
            map: None,
            file: Some(file.clone()),
            file_format: cardhour_books::import::readers::Format::from_name(format),
            prices: None,
            output: crate::cli::Output::default(),
        };
        look(&file, &args, Timestamp::from_unix_s(1_800_000_000))
    }

    #[test]
    fn a_good_export_is_well_and_a_bad_row_is_named() {
        let header = "JobID|Account|User|Partition|State|Submit|Start|End|AllocTRES\n";
        let good = "1|lab|ann|gpu|COMPLETED|2026-03-01T00:00:00|2026-03-01T00:00:10|2026-03-01T01:00:00|gres/gpu=2,gres/gpu:a100=2\n";
        let found = look_at("a.sacct", &format!("{header}{good}"), "sacct");
        assert!(found.iter().all(|finding| finding.verdict == Verdict::Ok), "{found:?}");
        let bad = "2|lab|ann|gpu|COMPLETED|2026-03-01T00:00:00|2026-03-01T02:00:00|2026-03-01T01:00:00|gres/gpu=2,gres/gpu:a100=2\n";
        let found = look_at("a.sacct", &format!("{header}{good}{bad}"), "sacct");
        assert!(
            found.iter().any(|finding| finding.verdict == Verdict::Warn && finding.found.contains("line 3")),
            "{found:?}"
        );
        let found = look_at("a.csv", "who,what\nann,x\n", "csv");
        assert!(found.iter().any(|finding| finding.verdict == Verdict::Fail), "{found:?}");
    }
}
