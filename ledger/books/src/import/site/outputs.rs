//! `import output`: what jobs brought forth.

use super::rules::{Rules, known_keys, refused};
use super::sheet::Sheet;
use super::{ListError, Listed};
use crate::import::fields::Kind;
use crate::import::map::MapFile;
use crate::import::record::Record;
use crate::import::when::Refusal;
use crate::output::{Output, OutputOf};
use cardhour_domain::AttemptKey;
use rust_decimal::Decimal;

/// The fields of an output.
pub const OUTPUT_FIELDS: &[(&str, Kind)] = &[
    ("cluster", Kind::Text),
    ("job_id", Kind::Text),
    ("attempt_key", Kind::Text),
    ("unit", Kind::Text),
    ("amount", Kind::Number),
    ("at", Kind::Time),
];

const OTHERS: &[(&str, &str)] = &[];

/// Beyond what anybody counts, so that sums of amounts fit 64 bits.
const LARGEST: i64 = 1_000_000_000_000_000;

/// Reads a list of outputs.
///
/// `map`: [`MapFile::default`] without one. A row is of a job (`job_id`, and `cluster` where records name one) or of one of its runs (`attempt_key`), never of both.
/// Errors: nothing says whose an output is, in which unit, or how much; a map that doesn't fit.
pub fn outputs(input: &[u8], map: &MapFile) -> Result<Listed<Output>, ListError> {
    let sheet = Sheet::read(input, "output", map)?;
    let rules = Rules::bind(&sheet, map, OUTPUT_FIELDS, OTHERS)?;
    let mut listed = Listed { rows: Vec::new(), rejected: Vec::new(), rows_read: sheet.records.len() as u64 };
    if !sheet.records.is_empty() {
        if !rules.knows("attempt_key") {
            rules.require("job_id", "of which job an output is")?;
        }
        rules.require("unit", "what is counted")?;
        rules.require("amount", "how much there is of it")?;
    }
    for record in &sheet.records {
        match record {
            Err(rejected) => listed.rejected.push(rejected.clone()),
            Ok(record) => {
                let outcome = known_keys(&sheet, record, map, OUTPUT_FIELDS, OTHERS);
                match outcome.and_then(|()| row(record, &rules)) {
                    Ok(output) => listed.rows.push(output),
                    Err(refusal) => listed.rejected.push(refused(record, input, refusal)),
                }
            }
        }
    }
    Ok(listed)
}

fn row(record: &Record, rules: &Rules) -> Result<Output, Refusal> {
    let of = match (rules.name(record, "job_id"), rules.text(record, "attempt_key")) {
        (Some(job_id), None) => OutputOf::Job { cluster: rules.cluster(record), job_id },
        (None, Some(key)) if key.split('/').count() == 3 => OutputOf::Attempt(AttemptKey::from_stored(key)),
        (None, Some(key)) => {
            let reason = format!("{key:?} is no key of an attempt, which has three parts: cluster/job/run");
            return Err(Refusal::new("attempt_key", reason));
        }
        (Some(_), Some(_)) => {
            return Err(Refusal::new(
                "attempt_key",
                "stands beside a job_id: say the job or one of its runs".to_owned(),
            ));
        }
        (None, None) => return Err(Refusal::new("job_id", "is absent: say whose output it is".to_owned())),
    };
    let unit =
        rules.name(record, "unit").ok_or_else(|| Refusal::new("unit", "is absent: say what is counted".to_owned()))?;
    let amount = rules.number(record, "amount")?;
    let amount = amount.ok_or_else(|| Refusal::new("amount", "is absent".to_owned()))?;
    let refuse = |why: &str| Refusal::new("amount", format!("{amount} {why}"));
    if amount.is_sign_negative() && !amount.is_zero() {
        return Err(refuse("is below zero"));
    }
    if !amount.fract().is_zero() {
        return Err(refuse("is no whole number: count in a smaller unit"));
    }
    if amount > Decimal::from(LARGEST) {
        return Err(refuse(&format!("is beyond {LARGEST}")));
    }
    let amount = i64::try_from(amount.trunc().normalize().mantissa()).expect("a whole number below the largest");
    Ok(Output { of, unit, amount, at: rules.time(record, "at")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Listed<Output> {
        outputs(text.as_bytes(), &MapFile::default()).unwrap()
    }

    #[test]
    fn an_output_is_of_a_job_or_of_one_of_its_runs() {
        let listed = read(
            "cluster,job_id,attempt_key,unit,amount,at\n\
             gpu,12,,tokens,1500000000,2026-05-12T08:00:00Z\n\
             ,12_4,,samples,7.0,\n\
             ,,gpu/12/s1700000000,experiments,1e3,\n",
        );
        assert_eq!(listed.rejected, []);
        let jobs: Vec<_> = listed.rows.iter().map(|row| row.of.job().to_string()).collect();
        assert_eq!(jobs, ["gpu/12", "/12_4", "gpu/12"]);
        let amounts: Vec<_> = listed.rows.iter().map(|row| (&*row.unit, row.amount)).collect();
        assert_eq!(amounts, [("tokens", 1_500_000_000), ("samples", 7), ("experiments", 1000)]);
        assert_eq!(listed.rows[0].at.map(|at| at.to_string()).as_deref(), Some("2026-05-12T08:00:00Z"));
        assert!(matches!(&listed.rows[2].of, OutputOf::Attempt(key) if key.as_str() == "gpu/12/s1700000000"));
    }

    #[test]
    fn rows_that_cannot_be_booked_say_field_and_reason() {
        let listed = read(
            "job_id,attempt_key,unit,amount,at\n\
             ,,tokens,1,\n\
             1,gpu/1/s1,tokens,1,\n\
             ,gpu/1,tokens,1,\n\
             1,,,1,\n\
             1,,tokens,,\n\
             1,,tokens,-1,\n\
             1,,tokens,0.5,\n\
             1,,tokens,1000000000000001,\n\
             1,,tokens,many,\n\
             1,,tokens,1,soon\n\
             1,,tokens,0,\n",
        );
        let fields: Vec<(u64, &str)> = listed.rejected.iter().map(|row| (row.line, &*row.field)).collect();
        let expected =
            ["job_id", "attempt_key", "attempt_key", "unit", "amount", "amount", "amount", "amount", "amount", "at"];
        assert_eq!(fields, (2u64..).zip(expected).collect::<Vec<_>>());
        assert_eq!((listed.rows.len(), listed.rows_read), (1, 11));
    }

    #[test]
    fn a_list_that_says_no_job_is_refused_as_a_whole() {
        let error = outputs(b"unit,amount\ntokens,1\n", &MapFile::default()).unwrap_err();
        assert!(error.to_string().contains("of which job"), "{error}");
    }
}
