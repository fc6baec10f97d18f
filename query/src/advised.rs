//! Reports of what the pool needs and of what was decided: which part of the books each is made of, and calls of the pure cores.
//!
//! Start at [`Books::advised_report`]. Does not: advise, which `cardhour_decisions::advised` does from what `cardhour_books::pool_past` tells.

use crate::books::{Books, SIMULATED};
use crate::error::Error;
use crate::request::Span;
use cardhour_books::checkpoint::{Checkpoint, Days, Section, Sources, model_fit, queues, quota_use};
use cardhour_books::job_use::JobUse;
use cardhour_books::pool_past::{PoolPast, pool_pasts};
use cardhour_books::report::{ReportInput, local};
use cardhour_books::slots::{Slots, ViewCut};
use cardhour_books::statement::WRONGFUL_RECLAIM;
use cardhour_decisions::advised::{advise, expansion, looks_back_from, pool_needs, team_quota};
use cardhour_decisions::fitted::{input_bound, known_jobs, sharing_mode};
use cardhour_decisions::summed::{by_outcome, marked, wrongful};
use cardhour_domain::{AttemptKey, BUCKET_MS, Interval, Name, Timestamp, Zone};
use cardhour_ledger::Reading;
use cardhour_scheduler_core::capacity::AdvicePolicy;
use std::collections::{BTreeMap, BTreeSet};

/// What jobs do with their cards is told of so many of the last days: their samples are read. Unit: milliseconds.
const USE_MS: i64 = 7 * 24 * 3_600_000;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdvisedReport {
    /// How long jobs waited, and for what.
    Queue,
    /// How quotas were used, and how large they should be.
    Quota,
    /// What was decided, and what came of it.
    Decisions,
    /// What the pool needs.
    Advice,
}

impl AdvisedReport {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Queue, Self::Quota, Self::Decisions, Self::Advice];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Quota => "quota",
            Self::Decisions => "decisions",
            Self::Advice => "advice",
        }
    }
}

/// One that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvisedRequest {
    /// Which.
    pub report: AdvisedReport,
    /// Of what time; advice is as of its end.
    pub span: Span,
    /// The zone of its days; none: the ledger's.
    pub zone: Option<Zone>,
}

/// A stretch of the books, cut by days where its days matter.
struct Loaded {
    input: ReportInput,
    slots: Slots,
    all: Interval,
}

impl Loaded {
    async fn of(reading: &Reading, stretch: Interval, books: &Books, zone: Zone, by_day: bool) -> Result<Self, Error> {
        let cut = ViewCut { zone, by_day, by_month: false };
        let slots = Slots::new(stretch, None, books.zone(), Some(cut))
            .map_err(|source| cardhour_ledger::Error::Cut { source })?;
        Ok(Self { input: reading.input(&slots).await?, slots, all: stretch })
    }

    fn sources(&self) -> Sources<'_> {
        Sources { input: &self.input, slots: &self.slots, book: None, all: self.all }
    }

    fn wrongful(&self) -> BTreeSet<AttemptKey> {
        let is_so = |labels: &BTreeMap<Name, Name>| labels.contains_key(WRONGFUL_RECLAIM);
        self.input.attempts.iter().filter(|attempt| is_so(&attempt.labels)).map(|attempt| attempt.key.clone()).collect()
    }
}

/// What was seen of jobs in the last days.
struct Seen {
    during: Interval,
    used: BTreeMap<AttemptKey, JobUse>,
    card_bytes: BTreeMap<Name, i64>,
}

impl Seen {
    async fn of(reading: &Reading, stretch: Interval) -> Result<Self, Error> {
        let from = stretch.end().checked_add_ms(-USE_MS).unwrap_or(stretch.start()).max(stretch.start());
        let during = Interval::new(from, stretch.end()).expect("a stretch is not empty");
        let used = reading.job_use(during).await?;
        let card_bytes = reading.card_bytes(during).await?;
        Ok(Self { during, used, card_bytes })
    }

    fn sections(&self, input: &ReportInput) -> [Section; 2] {
        let mut model_of: BTreeMap<AttemptKey, Name> = BTreeMap::new();
        for cell in &input.cells {
            if let (Some(attempt), Some(model)) = (cell.attempt, &cell.model) {
                model_of.insert(input.attempts[attempt as usize].key.clone(), model.clone());
            }
        }
        let jobs = known_jobs(&input.attempts, &self.used, &model_of, &self.card_bytes);
        [sharing_mode(&jobs, self.during), input_bound(&jobs, self.during)]
    }
}

impl Books {
    /// One of these reports. Errors: a span that can't be cut, faulty quotas, the ledger's own.
    pub async fn advised_report(&self, request: &AdvisedRequest) -> Result<Checkpoint, Error> {
        let reading = self.ledger().read().await?;
        let zone = request.zone.unwrap_or(self.zone());
        let asked = self.range(request.span, request.zone, reading.extent())?;
        let name = request.report.name();
        let mut made = match reading.extent().and_then(whole_buckets).and_then(|all| stretch(request, asked, all, zone))
        {
            // Decisions are there without records, too.
            None if request.report == AdvisedReport::Decisions => {
                let made = self.decided(None, asked).await?;
                Checkpoint { title: format!("{name}, {zone}"), ..made }
            }
            None => Checkpoint {
                title: format!("{name}, nothing in the books"),
                summary: Vec::new(),
                sections: Vec::new(),
                notes: vec!["of this time the books say nothing: cardhour import jobs books something".to_owned()],
                has_holes: false,
            },
            Some(stretch) => {
                let by_day = request.report != AdvisedReport::Decisions;
                let loaded = Loaded::of(&reading, stretch, self, zone, by_day).await?;
                let seen = match request.report {
                    AdvisedReport::Advice => Some(Seen::of(&reading, stretch).await?),
                    AdvisedReport::Queue | AdvisedReport::Quota | AdvisedReport::Decisions => None,
                };
                let mut made = match request.report {
                    AdvisedReport::Decisions => self.decided(Some(&loaded), asked).await?,
                    AdvisedReport::Queue | AdvisedReport::Quota | AdvisedReport::Advice => {
                        self.needed(request.report, loaded, seen, zone).await?
                    }
                };
                let time = match (request.report, asked) {
                    (AdvisedReport::Decisions, None) => "all time".to_owned(),
                    _ => format!("{} to {}", local(zone, stretch.start()), local(zone, stretch.end())),
                };
                made.title = format!("{name}, {time}, {zone}");
                made
            }
        };
        if self.is_demo() {
            made.title = format!("{} (simulated)", made.title);
            made.notes.insert(0, SIMULATED.to_owned());
        }
        Ok(made)
    }

    async fn needed(
        &self,
        report: AdvisedReport,
        loaded: Loaded,
        seen: Option<Seen>,
        zone: Zone,
    ) -> Result<Checkpoint, Error> {
        let quotas = self.quotas()?;
        let making = tokio::task::spawn_blocking(move || {
            let (sources, known) = (loaded.sources(), loaded.all);
            let pools = pool_pasts(sources, known);
            let days = days(known, zone);
            match report {
                AdvisedReport::Queue => {
                    let mut made = queues(sources, days);
                    made.sections.insert(0, expansion(&pools, zone));
                    made
                }
                AdvisedReport::Quota => {
                    let mut sections: Vec<Section> = quota_use(sources, &quotas, known).into_iter().collect();
                    sections.push(team_quota(&pools, &quotas));
                    of_sections(sections)
                }
                AdvisedReport::Decisions | AdvisedReport::Advice => {
                    let mut sections = vec![expansion(&pools, zone), pool_needs(&pools), team_quota(&pools, &quotas)];
                    sections.extend(seen.iter().flat_map(|seen| seen.sections(&loaded.input)));
                    sections.push(model_fit(sources, days));
                    Checkpoint { summary: said(&pools, zone), ..of_sections(sections) }
                }
            }
        });
        Ok(making.await.expect("advice is made or its fault is a defect of ours"))
    }

    /// Decisions of the time that was asked for, else all: also those after the last word of records.
    async fn decided(&self, loaded: Option<&Loaded>, asked: Option<Interval>) -> Result<Checkpoint, Error> {
        let decisions = self.ledger().decisions(None).await?;
        let span = || {
            let (first, last) = decisions.first().zip(decisions.last())?;
            Interval::new(first.at, last.at.checked_add_ms(1)?)
        };
        let Some(during) = asked.or_else(span) else {
            let notes = vec!["nothing was decided: cardhour reclaim looks for idle jobs".to_owned()];
            return Ok(Checkpoint { notes, ..of_sections(Vec::new()) });
        };
        let mut wrong = loaded.map(Loaded::wrongful).unwrap_or_default();
        wrong.extend(marked(&decisions));
        let mut sections = vec![by_outcome(&decisions, during, &wrong)];
        sections.extend(wrongful(&decisions, during, &wrong));
        Ok(of_sections(sections))
    }

    /// What was decided in a week, for its report; none where nothing was.
    pub(crate) async fn decisions_of(&self, during: Interval, input: &ReportInput) -> Result<Vec<Section>, Error> {
        let mut decisions = self.ledger().decisions(Some(during.start())).await?;
        decisions.retain(|decision| during.contains(decision.at));
        if decisions.is_empty() {
            return Ok(Vec::new());
        }
        let is_so = |attempt: &&cardhour_books::report::ReportAttempt| attempt.labels.contains_key(WRONGFUL_RECLAIM);
        let mut wrong: BTreeSet<AttemptKey> =
            input.attempts.iter().filter(is_so).map(|attempt| attempt.key.clone()).collect();
        wrong.extend(marked(&decisions));
        let mut sections = vec![by_outcome(&decisions, during, &wrong)];
        sections.extend(wrongful(&decisions, during, &wrong));
        Ok(sections)
    }

    /// What should be done about the pool as of the end of a span, a sentence a pool; none where there is nothing to do. Errors: as [`Self::advised_report`].
    pub async fn calls(&self, span: Span, zone: Option<Zone>) -> Result<Vec<String>, Error> {
        let request = AdvisedRequest { report: AdvisedReport::Advice, span: Span::All, zone };
        let reading = self.ledger().read().await?;
        let asked = self.range(span, zone, reading.extent())?;
        let zone = zone.unwrap_or(self.zone());
        let until = |all: Interval| match asked {
            Some(asked) => Interval::new(all.start(), all.end().min(asked.end())),
            None => Some(all),
        };
        let all = reading.extent().and_then(whole_buckets).and_then(until);
        let Some(stretch) = all.and_then(|all| stretch(&request, None, all, zone)) else { return Ok(Vec::new()) };
        let loaded = Loaded::of(&reading, stretch, self, zone, true).await?;
        let making = tokio::task::spawn_blocking(move || said(&pool_pasts(loaded.sources(), loaded.all), zone));
        Ok(making.await.expect("advice is made or its fault is a defect of ours"))
    }
}

fn of_sections(sections: Vec<Section>) -> Checkpoint {
    Checkpoint { title: String::new(), summary: Vec::new(), sections, notes: Vec::new(), has_holes: false }
}

/// The advice on the pools of which something should be done.
fn said(pools: &[PoolPast], zone: Zone) -> Vec<String> {
    let policy = AdvicePolicy::default();
    let calls = pools.iter().filter_map(|past| advise(past, zone, &policy)).filter(|advised| advised.is_call());
    let words = calls.map(|advised| {
        let model = advised.model.as_deref().unwrap_or("(none)");
        format!("{}, {model}: {}", advised.cluster, advised.words(&policy))
    });
    words.collect()
}

/// The part of the books that a report is made of: what was asked for; of advice at most so many days before its end.
fn stretch(request: &AdvisedRequest, asked: Option<Interval>, all: Interval, zone: Zone) -> Option<Interval> {
    let stretch = match asked {
        Some(asked) => asked.overlap(all)?,
        None => all,
    };
    let looks_back = match request.report {
        AdvisedReport::Queue | AdvisedReport::Decisions => None,
        AdvisedReport::Quota | AdvisedReport::Advice => looks_back_from(stretch.end(), zone),
    };
    Interval::new(stretch.start().max(looks_back.unwrap_or(stretch.start())).bucket_start(), stretch.end())
}

/// The local days that a stretch touches.
fn days(during: Interval, zone: Zone) -> Days {
    let last = Timestamp::from_unix_ms(during.end().unix_ms() - 1);
    let day = |at| zone.date(at).expect("books are of days that a calendar has");
    Days { first: day(during.start()), end: day(last) + chrono::Days::new(1) }
}

/// Up to the end of the last quarter hour.
fn whole_buckets(all: Interval) -> Option<Interval> {
    let last = Timestamp::from_unix_ms(all.end().unix_ms() - 1).bucket_start();
    Interval::new(all.start().bucket_start(), last.checked_add_ms(BUCKET_MS)?)
}
