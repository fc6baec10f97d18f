//! Jobs whose cards wait for data.
//!
//! A card that rests while its job's processes read, unpack or compute waits for them. A card that rests while they rest too is idle, which is
//! another matter. So the two are counted apart, tick by tick, and only the first is waiting for data.

use cardhour_domain::{AttemptKey, CardShare, CardTime, Percent};

/// A job's time by what its cards and its processes did. Unit of all times: milliseconds a card, summed over its cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFigures {
    /// Which.
    pub job: AttemptKey,
    /// How much of each card it has.
    pub share: CardShare,
    /// Held, seen or not.
    pub held_ms: i64,
    /// The card worked.
    pub working_ms: i64,
    /// The card rested, and the processes read or wrote beyond their floor.
    pub rested_for_io_ms: i64,
    /// The card rested, and the processes computed beyond their floor without reading or writing.
    pub rested_for_cpu_ms: i64,
}

/// What a card waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Storage or network.
    Storage,
    /// Processors that make the data ready.
    Processors,
}

/// A job whose cards wait for data, with its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataWait {
    /// Which.
    pub job: AttemptKey,
    /// Card-time that was waited.
    pub waited: CardTime,
    /// Of the time in which the job did anything.
    pub part: Percent,
    /// For what, most of it.
    pub source: Source,
}

/// From a fifth of a job's time on it is worth somebody's while.
const LEAST_PART_THOUSANDTHS: i32 = 20_000;
/// Shorter than this it is a start-up. Unit: milliseconds a card.
const LEAST_WAITED_MS: i64 = 1_800_000;
/// How much of what was held must have been seen doing something or other, thousandths of a percent.
const LEAST_SEEN_THOUSANDTHS: i64 = 50_000;

/// Whether a job's cards wait for data. None when they don't, or when too little of the job was seen to say.
pub fn waits_for_data(figures: &InputFigures) -> Option<DataWait> {
    let whole = i64::from(Percent::WHOLE.thousandths());
    let waited_ms = figures.rested_for_io_ms + figures.rested_for_cpu_ms;
    let active_ms = figures.working_ms + waited_ms;
    let is_seen =
        i128::from(active_ms) * i128::from(whole) >= i128::from(figures.held_ms) * i128::from(LEAST_SEEN_THOUSANDTHS);
    if waited_ms < LEAST_WAITED_MS || !is_seen {
        return None;
    }
    let part = i32::try_from(i128::from(waited_ms) * i128::from(whole) / i128::from(active_ms)).ok()?;
    if part < LEAST_PART_THOUSANDTHS {
        return None;
    }
    Some(DataWait {
        job: figures.job.clone(),
        waited: CardTime::from_part_ms(i128::from(figures.share.parts()) * i128::from(waited_ms)),
        part: Percent::from_thousandths(part)?,
        source: if figures.rested_for_io_ms >= figures.rested_for_cpu_ms {
            Source::Storage
        } else {
            Source::Processors
        },
    })
}

impl DataWait {
    /// What it says to the owner.
    pub fn words(&self) -> String {
        let remedy = match self.source {
            Source::Storage => "read ahead, use a faster store, or copy the data to the node first",
            Source::Processors => "ask for more processors, or make the data ready beforehand",
        };
        format!(
            "The cards of job {} waited for data {} % of the time, {} card-hours: {remedy}.",
            self.job.job(),
            self.part,
            self.waited.card_hours().normalize()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn figures(working: i64, io: i64, cpu: i64) -> InputFigures {
        InputFigures {
            job: AttemptKey::new("lab", "7", "1"),
            share: CardShare::CARD,
            held_ms: 40 * HOUR,
            working_ms: working * HOUR,
            rested_for_io_ms: io * HOUR,
            rested_for_cpu_ms: cpu * HOUR,
        }
    }

    #[test]
    fn cards_that_rest_while_their_processes_work_wait_for_data() {
        let wait = waits_for_data(&figures(30, 8, 2)).unwrap();
        assert_eq!(
            wait.words(),
            "The cards of job lab/7 waited for data 25 % of the time, 10 card-hours: read ahead, use a faster store, or copy the \
             data to the node first."
        );
        assert_eq!(waits_for_data(&figures(30, 2, 8)).unwrap().source, Source::Processors);
    }

    #[test]
    fn idle_cards_short_waits_and_jobs_badly_seen_are_another_matter() {
        assert_eq!(waits_for_data(&figures(40, 0, 0)), None);
        assert_eq!(waits_for_data(&figures(33, 7, 0)), None);
        // It did something in 12 of 40 hours: idle, or not seen.
        assert_eq!(waits_for_data(&figures(2, 10, 0)), None);
        assert_eq!(waits_for_data(&InputFigures { held_ms: HOUR / 2, ..figures(0, 0, 0) }), None);
    }
}
