//! Energy of the time in which no collector ran.
//!
//! A card's counter goes on while nobody reads it. A collector notes where each counter stood ([`CounterMark`]), and the next one on the same boot takes
//! what it has grown by for the time between: energy alone, since nobody saw what the card did, or who had it.

use super::energy::most_mj;
use cardhour_domain::{
    EnergyBasis, Gap, Interval, Millijoules, Name, Reading, Sample, SampleSource, Timestamp, UseBasis,
};

/// Less than that goes by between two ticks of one life; a counter that stands still over more is stuck. Unit: milliseconds.
const STUCK_AFTER_MS: i64 = 5_000;

/// Beyond that nobody waits for the energy of a time. Unit: milliseconds.
const LONGEST_MS: i64 = 31 * 86_400_000;

/// Where a card's energy counter stood when its last row was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterMark {
    /// The card.
    pub card_uuid: Name,
    /// The end of what was told of it.
    pub until: Timestamp,
    /// When its counter was believed last.
    pub counted_at: Timestamp,
    /// What it said then. Unit: millijoules.
    pub total_mj: u64,
}

impl CounterMark {
    /// What the counter grew by until `counted_at`, for the time until `until`, a quarter hour a row at the longest. None where it can't be that counter:
    /// it fell, it stood still, it grew by more than the card can draw, or the clock was set back.
    pub(super) fn rows(
        &self,
        node: &Name,
        until: Timestamp,
        counted_at: Timestamp,
        total_mj: u64,
        limit_mw: Option<i64>,
    ) -> Option<Vec<Sample>> {
        let whole = Interval::new(self.until, until).filter(|whole| whole.length_ms() <= LONGEST_MS)?;
        let counted_ms = counted_at.ms_since(self.counted_at);
        let grew_mj = total_mj.checked_sub(self.total_mj)?;
        let is_stuck = grew_mj == 0 && counted_ms >= STUCK_AFTER_MS;
        if counted_ms <= 0 || is_stuck || grew_mj > most_mj(counted_ms.checked_mul(1000)?, limit_mw) {
            return None;
        }
        let before = |at: Timestamp| {
            let passed = i128::from(at.ms_since(whole.start()));
            i64::try_from(i128::from(grew_mj) * passed / i128::from(whole.length_ms())).ok()
        };
        whole
            .buckets()
            .map(|(_, during)| {
                Some(self.row(node, during, Millijoules(before(during.end())? - before(during.start())?)))
            })
            .collect()
    }

    fn row(&self, node: &Name, during: Interval, energy: Millijoules) -> Sample {
        let gap = Gap::CollectorDown;
        Sample {
            during,
            card_uuid: self.card_uuid.clone(),
            device_uuid: self.card_uuid.clone(),
            node: node.clone(),
            attempt_key: None,
            sm_active_pct: Reading::Missing(gap),
            use_basis: UseBasis::DutyCycle,
            mem_active_pct: Reading::Missing(gap),
            media_active_pct: Reading::Missing(gap),
            mem_used_bytes: Reading::Missing(gap),
            nvlink_bytes: Reading::Missing(gap),
            pcie_bytes: Reading::Missing(gap),
            // A mean over that long says nothing of whether the card was idle.
            power_mw: Reading::Missing(gap),
            energy_mj: Reading::Seen(energy),
            energy_basis: EnergyBasis::Counter,
            temperature_c: Reading::Missing(gap),
            source: SampleSource::Collector,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H: i64 = 3_600_000;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_unix_ms(ms)
    }

    /// Read last at 10:00:00.000, at 1,000,000 mJ.
    fn mark() -> CounterMark {
        CounterMark { card_uuid: "G1".into(), until: at(10 * H), counted_at: at(10 * H + 3), total_mj: 1_000_000 }
    }

    fn grown(until_ms: i64, total_mj: u64) -> Option<Vec<(i64, i64, i64)>> {
        let rows = mark().rows(&"n1".into(), at(until_ms), at(until_ms + 3), total_mj, Some(400_000))?;
        let told =
            |row: &Sample| (row.during.start().unix_ms(), row.during.end().unix_ms(), row.energy_mj.seen().unwrap().0);
        Some(rows.iter().map(told).collect())
    }

    /// By hand: away from 10:00 to 10:40 at 300 W: 2,400 s × 300 J/s = 720,000 J; 270,000 J in each quarter hour and 180,000 J in the ten minutes after.
    #[test]
    fn what_a_counter_grew_by_is_drawn_evenly_over_the_quarter_hours_between() {
        let minute = 60_000;
        let quarter = 15 * minute;
        let from = 10 * H;
        let expected = vec![
            (from, from + quarter, 270_000_000),
            (from + quarter, from + 2 * quarter, 270_000_000),
            (from + 2 * quarter, from + 40 * minute, 180_000_000),
        ];
        assert_eq!(grown(from + 40 * minute, 1_000_000 + 720_000_000), Some(expected));
    }

    #[test]
    fn pieces_add_up_to_what_the_counter_grew_by() {
        let rows = grown(13 * H + 7, 1_000_000 + 1_234_567).unwrap();
        assert_eq!((rows.len(), rows.iter().map(|(.., mj)| mj).sum::<i64>()), (13, 1_234_567));
    }

    /// By hand: 400 W may be 500 for a while, so that an hour has at most 3,600 s × 500 W = 1.8 MJ, and a second more of 400 J: 1,800,400 J.
    #[test]
    fn a_counter_that_is_another_one_tells_nothing() {
        assert_eq!(grown(11 * H, 999_999), None, "the driver was loaded anew");
        assert_eq!(grown(11 * H, 1_000_000), None, "it stands still");
        assert!(grown(11 * H, 1_000_000 + 1_800_400_000).is_some());
        assert_eq!(grown(11 * H, 1_000_000 + 1_800_400_001), None, "no card draws that");
        assert_eq!(grown(10 * H, 2_000_000), None, "no time went by");
        assert_eq!(grown(9 * H, 2_000_000), None, "the clock was set back");
    }
}
