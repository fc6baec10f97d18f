//! Whether jobs have the card that they need: a cheaper model that would do, or a batch that would fill the one they have.

use super::work::{Busy, Charges, Work};
use super::{AdviceKind, Found, Sources, Whom};
use crate::cell::billed_part;
use cardhour_domain::{CardTime, Money, Name};
use std::collections::{BTreeMap, BTreeSet};

/// A job that is busy for less of what was seen would do with a smaller model: the same line as the checkpoint report draws. Unit: percent.
const LITTLE_BUSY_PERCENT: i128 = 20;
/// A training that is busy for less of what was seen could be given more at a time. Unit: percent.
const HALF_BUSY_PERCENT: i128 = 50;
/// What a job used may fill so much of a smaller card: a tick's end may have missed its peak. Unit: percent.
const FULL_PERCENT: i128 = 90;
/// With so much of the memory in use a batch of twice the size still fits. Unit: percent.
const HALF_MEMORY_PERCENT: i128 = 50;

/// Jobs with whole cards that were little busy, and whose memory fits a model that costs less: the cheapest of those.
pub(super) fn cheaper(all: &[Work<'_>], sources: &Sources<'_>) -> Vec<Found> {
    let mut groups: BTreeMap<(Whom, &Name), Group<'_>> = BTreeMap::new();
    for work in all {
        let Some(own) = work.whole_cards_of() else { continue };
        let Some(busy) = work.busy().filter(|busy| busy.is_below(LITTLE_BUSY_PERCENT)) else { continue };
        let Some(peak_bytes) = work.memory_peak_bytes(sources) else { continue };
        let Some(now) = work.charges(sources, None) else { continue };
        let fitting = sources.memory.card_bytes.iter().filter(|(model, bytes)| {
            *model != own && i128::from(peak_bytes) * 100 <= i128::from(**bytes) * FULL_PERCENT
        });
        let priced = fitting.filter_map(|(model, _)| Some((work.charges(sources, Some(model))?, model)));
        let cheapest = priced
            .map(|(charges, model)| (charges.micros(sources.book), model, charges))
            .min_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)))
            .filter(|(micros, ..)| *micros < now.micros(sources.book));
        if let Some((_, model, other)) = cheapest {
            let group = groups.entry((work.whom(), model)).or_default();
            group.add(work, busy, peak_bytes, work.billed());
            group.now.extend(&now);
            group.other.extend(&other);
        }
    }
    let found = groups.into_iter().map(|((whom, model), group)| {
        let (now, other) = (group.now.micros(sources.book), group.other.micros(sources.book));
        let bytes = sources.memory.card_bytes[model];
        let how = format!(
            "{model} instead: {} for the same hours, not {}; {}, and {model} has {}",
            shown(other, sources),
            shown(now, sources),
            group.use_text(),
            gib(bytes)
        );
        group.found(AdviceKind::CheaperModel, whom, now - other, how, sources)
    });
    found.filter(|found| found.saving.is_some_and(|saving| saving.micros() > 0)).collect()
}

/// Trainings with whole cards that were busy for less than half of what was seen, and used no more than half of their cards' memory.
pub(super) fn larger_batch(all: &[Work<'_>], sources: &Sources<'_>) -> Vec<Found> {
    let mut groups: BTreeMap<Whom, Group<'_>> = BTreeMap::new();
    for work in all.iter().filter(|work| work.attempt.class.as_deref() == Some("training")) {
        let Some(model) = work.whole_cards_of() else { continue };
        let Some(busy) = work.busy().filter(|busy| busy.is_below(HALF_BUSY_PERCENT)) else { continue };
        let Some(peak_bytes) = work.memory_peak_bytes(sources) else { continue };
        let Some(bytes) = sources.memory.card_bytes.get(model) else { continue };
        if i128::from(peak_bytes) * 100 > i128::from(*bytes) * HALF_MEMORY_PERCENT {
            continue;
        }
        let Some(underused) = underused(work, sources) else { continue };
        let group = groups.entry(work.whom()).or_default();
        group.add(work, busy, peak_bytes, work.used().underused);
        group.now.extend(&underused);
        group.card_bytes = *bytes;
    }
    let found = groups.into_iter().map(|(whom, group)| {
        let how = format!(
            "what the underused hours cost; {} of {} a card: a batch of twice the size fits",
            group.use_text(),
            gib(group.card_bytes)
        );
        let saving = group.now.micros(sources.book);
        group.found(AdviceKind::LargerBatch, whom, saving, how, sources)
    });
    found.filter(|found| found.saving.is_some_and(|saving| saving.micros() > 0)).collect()
}

/// What the underused part of its billed time costs; none where some of it has no price.
fn underused(work: &Work<'_>, sources: &Sources<'_>) -> Option<Charges> {
    let mut charges = Charges::default();
    for cell in &work.cells {
        let Some(used) = cell.used.as_deref().filter(|used| !used.underused.is_zero()) else { continue };
        let slot = sources.spent.slots.slot(cell.slot);
        let price = sources.book.find(&work.priced(cell), slot.effective_at?)?;
        charges.add(slot.month, price, slot.window, billed_part(used.underused, cell.billed_time, cell.card_time));
    }
    Some(charges)
}

/// Jobs of one owner that get one advice.
struct Group<'a> {
    jobs: BTreeSet<&'a str>,
    busy: Busy,
    peak_bytes: i64,
    card_time: CardTime,
    card_bytes: i64,
    now: Charges,
    other: Charges,
}

impl Default for Group<'_> {
    fn default() -> Self {
        let (now, other) = (Charges::default(), Charges::default());
        Self {
            jobs: BTreeSet::new(),
            busy: Busy::NONE,
            peak_bytes: 0,
            card_time: CardTime::ZERO,
            card_bytes: 0,
            now,
            other,
        }
    }
}

impl<'a> Group<'a> {
    fn add(&mut self, work: &Work<'a>, busy: Busy, peak_bytes: i64, card_time: CardTime) {
        self.jobs.insert(work.attempt.key.job());
        self.busy.add(busy);
        self.peak_bytes = self.peak_bytes.max(peak_bytes);
        self.card_time += card_time;
    }

    fn use_text(&self) -> String {
        format!("busy {} of what was seen, at most {} used", self.busy.shown(), gib(self.peak_bytes))
    }

    fn found(self, kind: AdviceKind, whom: Whom, saving: i128, how: String, sources: &Sources<'_>) -> Found {
        Found {
            kind,
            whom,
            jobs: Some(self.jobs.len() as u64),
            card_time: self.card_time,
            saving: Some(Money::from_micros(saving, sources.book.currency())),
            how,
        }
    }
}

fn shown(micros: i128, sources: &Sources<'_>) -> String {
    Money::from_micros(micros, sources.book.currency()).to_minor_string()
}

/// Bytes as people read memory: `141.0 GiB`, to the nearest tenth.
fn gib(bytes: i64) -> String {
    let tenths = (i128::from(bytes) * 10 + (1 << 29)) >> 30;
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}
