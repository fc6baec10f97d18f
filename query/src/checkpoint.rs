//! The checkpoint reports meet the ledger: which week or month, what has to be loaded for it, and one call of the pure core;
//! with the latencies of a week where the config says whom to ask.
//!
//! Start at [`Books::checkpoint`].

use crate::books::{Books, SIMULATED};
use crate::error::Error;
use crate::jitter::add_jitter;
use cardhour_books::checkpoint::{Checkpoint, Sources, Week, monthly, monthly_slots, weekly, weekly_slots};
use cardhour_domain::{BUCKET_MS, Interval, Month, Timestamp, Zone};
use std::path::PathBuf;

/// A checkpoint that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRequest {
    /// Of what.
    pub of: CheckpointSpan,
    /// Another price book than the ledger's.
    pub prices: Option<PathBuf>,
}

/// What a checkpoint is of; none: the last one that was over when the books end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointSpan {
    /// A week.
    Week(Option<Week>),
    /// A month.
    Month(Option<Month>),
}

impl CheckpointSpan {
    fn name(self) -> &'static str {
        match self {
            Self::Week(_) => "weekly",
            Self::Month(_) => "monthly",
        }
    }
}

/// The one that is made, its slots told by the books' time.
#[derive(Clone, Copy, Debug)]
enum Chosen {
    Week(Week),
    Month(Month),
}

impl Books {
    /// A checkpoint. Errors: a faulty price book, a time that can't be cut, the ledger's own.
    pub async fn checkpoint(&self, request: &CheckpointRequest) -> Result<Checkpoint, Error> {
        let reading = self.ledger().read().await?;
        let book = self.prices_in_each_currency(request.prices.as_deref(), &reading, None)?;
        let zone = self.zone();
        let all = reading.extent().and_then(whole_buckets);
        let chosen = all.and_then(|all| Some((all, chosen(request.of, all, zone)?)));
        let mut made = match chosen {
            None => Checkpoint {
                title: format!("{} checkpoint, empty books", request.of.name()),
                summary: Vec::new(),
                sections: Vec::new(),
                notes: vec!["there is nothing in these books: cardhour import jobs books something".to_owned()],
                has_holes: false,
            },
            Some((all, chosen)) => {
                let slots = match chosen {
                    Chosen::Week(week) => weekly_slots(week, book.as_ref(), zone)?,
                    Chosen::Month(month) => monthly_slots(month, book.as_ref(), zone)?,
                };
                let input = reading.input(&slots).await?;
                let quotas = self.quotas()?;
                let decided = match chosen {
                    Chosen::Week(week) => self.decisions_of(week.days().interval(zone), &input).await?,
                    Chosen::Month(_) => Vec::new(),
                };
                let making = tokio::task::spawn_blocking(move || {
                    let sources = Sources { input: &input, slots: &slots, book: book.as_ref(), all };
                    match chosen {
                        Chosen::Week(week) => weekly(sources, &quotas, week),
                        Chosen::Month(month) => monthly(sources, month),
                    }
                });
                let mut made = making.await.expect("a checkpoint is made or its fault is a defect of ours");
                let place = made.sections.iter().position(|section| section.name == "failures");
                let place = place.unwrap_or(made.sections.len());
                made.sections.splice(place..place, decided);
                if let (Chosen::Week(week), Some(inference)) = (chosen, &self.inference) {
                    add_jitter(&mut made, inference, week, zone).await;
                }
                made
            }
        };
        if self.is_demo() {
            made.title = format!("{} (simulated)", made.title);
            made.notes.insert(0, SIMULATED.to_owned());
        }
        Ok(made)
    }
}

/// Up to the end of the last quarter hour.
fn whole_buckets(all: Interval) -> Option<Interval> {
    let last = Timestamp::from_unix_ms(all.end().unix_ms() - 1).bucket_start();
    Interval::new(all.start().bucket_start(), last.checked_add_ms(BUCKET_MS)?)
}

/// The one asked for; else the last one that was over when the books end, or the one that they end in where they begin in that, too.
fn chosen(of: CheckpointSpan, all: Interval, zone: Zone) -> Option<Chosen> {
    let last = Timestamp::from_unix_ms(all.end().unix_ms() - 1);
    let known = |during: Interval| during.overlap(all).is_some();
    match of {
        CheckpointSpan::Week(Some(week)) => Some(Chosen::Week(week)),
        CheckpointSpan::Month(Some(month)) => Some(Chosen::Month(month)),
        CheckpointSpan::Week(None) => {
            let whole = Week::last_whole(all.end(), zone).filter(|week| known(week.days().interval(zone)));
            whole.or_else(|| Week::of(zone.date(last)?)).map(Chosen::Week)
        }
        CheckpointSpan::Month(None) => {
            let over = Timestamp::from_unix_ms(zone.month(all.end())?.interval(zone).start().unix_ms() - 1);
            let whole = zone.month(over).filter(|month| known(month.interval(zone)));
            whole.or_else(|| zone.month(last)).map(Chosen::Month)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a calendar: books of 1 May to Wednesday 20 May 2026 end in week 21; week 20 is over, April isn't in them. Books up to Monday's midnight have all of week 20.
    #[test]
    fn without_a_name_it_is_the_last_one_that_is_over() {
        let of = |span, from: &str, to: &str| {
            let at = |text: &str| Timestamp::parse_rfc3339(text).unwrap();
            match chosen(span, Interval::new(at(from), at(to)).unwrap(), Zone::UTC).unwrap() {
                Chosen::Week(week) => week.to_string(),
                Chosen::Month(month) => month.to_string(),
            }
        };
        let (may, week, month) = ("2026-05-01T00:00:00Z", CheckpointSpan::Week(None), CheckpointSpan::Month(None));
        assert_eq!(of(week, may, "2026-05-20T08:00:00Z"), "2026-W20");
        assert_eq!(of(week, may, "2026-05-18T00:00:00Z"), "2026-W20");
        assert_eq!(of(week, "2026-05-18T01:00:00Z", "2026-05-20T08:00:00Z"), "2026-W21");
        assert_eq!(of(month, may, "2026-05-20T08:00:00Z"), "2026-05");
        assert_eq!(of(month, may, "2026-06-01T00:00:00Z"), "2026-05");
        assert_eq!(of(month, "2026-04-30T00:00:00Z", "2026-05-20T08:00:00Z"), "2026-04");
    }
}
