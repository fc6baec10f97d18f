//! What a check found, as it goes along.

use super::{Fault, Law, Verdict};
use cardhour_domain::{CardTime, Timestamp};

/// Rows, card-time and faults of one check.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub rows: u64,
    /// Unit: parts × milliseconds.
    pub part_ms: Option<i128>,
    /// The first of them.
    pub faults: Vec<Fault>,
    /// All of them.
    pub count: u64,
}

impl Findings {
    /// Of a check about time.
    pub fn of_time() -> Self {
        Self { part_ms: Some(0), ..Self::default() }
    }

    pub fn saw(&mut self, part_ms: i128) {
        self.rows += 1;
        self.time(part_ms);
    }

    /// Adds time without a row. What is too large to be true must not stop the proof.
    pub fn time(&mut self, part_ms: i128) {
        self.part_ms = Some(self.part_ms.unwrap_or(0).saturating_add(part_ms));
    }

    pub fn fault(&mut self, table: &str, place: &str, expected: &str, found: &str) {
        self.count += 1;
        if self.faults.len() < Verdict::MOST_FAULTS {
            // The law is the check's, filled in when it is added to the verdict.
            self.faults.push(Fault {
                law: Law::Led1,
                table: table.to_owned(),
                place: place.to_owned(),
                expected: expected.to_owned(),
                found: found.to_owned(),
            });
        }
    }

    pub fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        if let Some(part_ms) = other.part_ms {
            self.time(part_ms);
        }
        self.count += other.count;
        let room = Verdict::MOST_FAULTS.saturating_sub(self.faults.len());
        self.faults.extend(other.faults.into_iter().take(room));
    }
}

/// Card-time as faults name it: to people in card-hours, and exact.
pub(super) fn time_text(part_ms: i128) -> String {
    // Card-hours are worked out in 128 bits with six decimals, so what is absurdly large is left as it stands.
    if part_ms.unsigned_abs() > 1 << 100 {
        return format!("{part_ms} parts × ms");
    }
    format!("{} card-hours ({part_ms} parts × ms)", CardTime::from_part_ms(part_ms).card_hours())
}

/// An instant.
pub(super) fn at(ms: i64) -> String {
    Timestamp::from_unix_ms(ms).to_string()
}
