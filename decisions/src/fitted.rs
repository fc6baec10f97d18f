//! Jobs beside the cards they have: which could share one, and whose cards wait for data.
//!
//! Start at [`sharing_mode`] and [`input_bound`]. Does not: read tables, move a job.

use crate::cells::{count, hours, name, ratio, section, text};
use cardhour_books::checkpoint::Section;
use cardhour_books::job_use::JobUse;
use cardhour_books::report::ReportAttempt;
use cardhour_books::table::{Kind, Value};
use cardhour_domain::{AttemptKey, CardShare, CardTime, Gap, Interval, Name, Percent, Reading};
use cardhour_scheduler_core::capacity::{
    InputFigures, ModeAdvice, ModeFigures, ModeReason, Source, mode_for, waits_for_data,
};
use cardhour_scheduler_core::work_class::WorkClass;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// So many jobs are listed, those that hold most first.
const MOST: usize = 20;
/// Of a job so much has to be seen before a mode is advised. Unit: thousandths of a percent.
const LEAST_COVERAGE_THOUSANDTHS: i32 = 90_000;
const MIB: i64 = 1 << 20;

/// What of a job is known: its record, what its cards and processes did, and the memory of one of its cards.
#[derive(Clone, Copy, Debug)]
pub struct KnownJob<'a> {
    /// The record.
    pub attempt: &'a ReportAttempt,
    /// What was seen of it over the time that is looked at.
    pub used: &'a JobUse,
    /// Memory of one card; none where cards differ or nobody says. Unit: bytes.
    pub card_bytes: Option<i64>,
}

impl KnownJob<'_> {
    /// What of its time is looked at: on whole cards, card-milliseconds.
    fn held(&self, during: Interval) -> CardTime {
        let held = self.attempt.held.and_then(|held| held.overlap(during));
        held.map_or(CardTime::ZERO, |held| CardTime::of(self.attempt.cards, held))
    }

    fn held_ms(&self, during: Interval) -> i64 {
        let card_ms = self.held(during).part_ms() / i128::from(CardShare::PARTS_PER_CARD);
        i64::try_from(card_ms).unwrap_or(i64::MAX)
    }

    fn has_whole_cards(&self) -> bool {
        !self.attempt.cards.is_zero() && self.attempt.cards.parts() % CardShare::PARTS_PER_CARD == 0
    }

    fn coverage(&self, during: Interval) -> Option<Percent> {
        let held = i128::from(self.held_ms(during));
        if held <= 0 {
            return None;
        }
        let part = i128::from(self.used.seen_ms()) * i128::from(Percent::WHOLE.thousandths()) / held;
        i32::try_from(part.min(i128::from(Percent::WHOLE.thousandths()))).ok().and_then(Percent::from_thousandths)
    }

    fn mode(&self, during: Interval) -> Option<ModeAdvice> {
        let reading = |percent: Option<Percent>| percent.map_or(Reading::Missing(Gap::NotRecorded), Reading::Seen);
        let mib = |bytes: i64| u64::try_from((bytes.max(0) + MIB - 1) / MIB).unwrap_or(u64::MAX);
        let figures = ModeFigures {
            class: self.attempt.class.as_deref().and_then(WorkClass::from_name),
            is_critical: false,
            is_among_its_own: true,
            coverage: self.coverage(during)?,
            sm_mean: reading(self.used.mean()),
            sm_p95: reading(self.used.quantile(95)),
            memory_peak_mib: self
                .used
                .memory_peak_bytes
                .map_or(Reading::Missing(Gap::NotRecorded), |bytes| Reading::Seen(mib(bytes))),
            card_memory_mib: u64::try_from(self.card_bytes? / MIB).ok()?,
            mig: None,
        };
        mode_for(&figures, Percent::from_thousandths(LEAST_COVERAGE_THOUSANDTHS)?)
    }

    fn owner(&self) -> [Value; 4] {
        let of = |part: &Option<Name>| name(part.as_ref());
        let ReportAttempt { key, org, project, user, .. } = self.attempt;
        [text(key.job()), of(org), of(project), of(user)]
    }
}

/// Which jobs on whole cards could share one with others of their own project, and how: columns `job org project user card_hours sm_mean sm_p95 memory_peak_of_card mode jobs_per_card
/// freed_card_hours what`; those that would free most first.
pub fn sharing_mode(jobs: &[KnownJob<'_>], during: Interval) -> Section {
    let mut found: Vec<(CardTime, KnownJob<'_>, ModeAdvice)> = Vec::new();
    for job in jobs.iter().filter(|job| job.has_whole_cards()) {
        let Some(advice) = job.mode(during).filter(|advice| advice.jobs_per_card > 1) else { continue };
        let held = job.held(during).part_ms();
        let freed = held - held / i128::from(advice.jobs_per_card);
        found.push((CardTime::from_part_ms(freed), *job, advice));
    }
    found.sort_by_key(|(freed, job, _)| (Reverse(*freed), job.attempt.key.clone()));
    let rows = found.iter().take(MOST).map(|(freed, job, advice)| {
        let mut row = job.owner().to_vec();
        let memory = job.used.memory_peak_bytes.zip(job.card_bytes).and_then(|(used, all)| {
            let part = i128::from(used) * i128::from(Percent::WHOLE.thousandths()) / i128::from(all.max(1));
            i32::try_from(part).ok().and_then(Percent::from_thousandths)
        });
        let how = match advice.reason {
            ModeReason::NowAndThen => "needs much now and then",
            _ => "needs little all the time",
        };
        let what = format!(
            "It {how}: {} such jobs of one project fit a card by {}; alone it held {} card-hours, of which {} would be free for others.",
            advice.jobs_per_card,
            advice.mode.name(),
            job.held(during).card_hours().normalize(),
            freed.card_hours().normalize()
        );
        row.extend([
            hours(job.held(during)),
            ratio(job.used.mean()),
            ratio(job.used.quantile(95)),
            ratio(memory),
            text(advice.mode.name()),
            count(Some(advice.jobs_per_card.into())),
            hours(*freed),
            text(&what),
        ]);
        row
    });
    let columns = [
        ("job", Kind::Text),
        ("org", Kind::Text),
        ("project", Kind::Text),
        ("user", Kind::Text),
        ("card_hours", Kind::Hours),
        ("sm_mean", Kind::Ratio),
        ("sm_p95", Kind::Ratio),
        ("memory_peak_of_card", Kind::Ratio),
        ("mode", Kind::Text),
        ("jobs_per_card", Kind::Count),
        ("freed_card_hours", Kind::Hours),
        ("what", Kind::Text),
    ];
    let notes = [
        "of the last 7 days, jobs on whole cards of which 90 % was seen; compute and memory are judged apart, with a tenth of memory to spare; training and strangers keep whole cards",
    ];
    section("sharing_mode", "Which jobs could share a card", &columns, rows.collect(), &notes)
}

/// Jobs whose cards rest while their processes read or compute: columns `job org project user waited_card_hours waited_of_active for what`; those that waited most first.
pub fn input_bound(jobs: &[KnownJob<'_>], during: Interval) -> Section {
    let mut found = Vec::new();
    for job in jobs.iter().filter(|job| job.has_whole_cards()) {
        let figures = InputFigures {
            job: job.attempt.key.clone(),
            share: CardShare::CARD,
            held_ms: job.held_ms(during),
            working_ms: job.used.working_ms,
            rested_for_io_ms: job.used.rested_for_io_ms,
            rested_for_cpu_ms: job.used.rested_for_cpu_ms,
        };
        found.extend(waits_for_data(&figures).map(|wait| (wait, *job)));
    }
    found.sort_by_key(|(wait, job)| (Reverse(wait.waited), job.attempt.key.clone()));
    let rows = found.iter().take(MOST).map(|(wait, job)| {
        let mut row = job.owner().to_vec();
        let source = match wait.source {
            Source::Storage => "storage",
            Source::Processors => "processors",
        };
        row.extend([hours(wait.waited), ratio(Some(wait.part)), text(source), text(&wait.words())]);
        row
    });
    let columns = [
        ("job", Kind::Text),
        ("org", Kind::Text),
        ("project", Kind::Text),
        ("user", Kind::Text),
        ("waited_card_hours", Kind::Hours),
        ("waited_of_active", Kind::Ratio),
        ("waited_for", Kind::Text),
        ("what", Kind::Text),
    ];
    let notes = [
        "of the last 7 days: the card rested while the job's processes read, wrote or computed; idle time is in neither",
    ];
    section("input_bound", "Cards that wait for data", &columns, rows.collect(), &notes)
}

/// Jobs of which something was seen. `model_of`: the model of each one's cards, where it had one.
pub fn known_jobs<'a>(
    attempts: &'a [ReportAttempt],
    used: &'a BTreeMap<AttemptKey, JobUse>,
    model_of: &BTreeMap<AttemptKey, Name>,
    card_bytes: &BTreeMap<Name, i64>,
) -> Vec<KnownJob<'a>> {
    // One that changed after a close is there twice.
    let by_key: BTreeMap<&AttemptKey, &ReportAttempt> = attempts.iter().rev().map(|one| (&one.key, one)).collect();
    let job = |(key, attempt): (&'a AttemptKey, &'a ReportAttempt)| {
        let bytes = model_of.get(key).and_then(|model| card_bytes.get(model)).copied();
        Some(KnownJob { attempt, used: used.get(key)?, card_bytes: bytes })
    };
    by_key.into_iter().filter_map(job).collect()
}

#[cfg(test)]
mod tests;
