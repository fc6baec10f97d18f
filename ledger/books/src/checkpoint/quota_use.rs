//! How quotas were used: how many cards their owners had beside what they are guaranteed, and whether they waited for those.
//!
//! From one start or end of an attempt to the next nothing changes of what an owner holds, so that time is cut there, to the millisecond. A job holds what it was given from its start to its
//! end; one that waits is counted from its submission to its start, or to the end of the span. Which model somebody waits for is known of what ran later; of others it counts for each of
//! their owner's quotas.

use super::Section;
use super::cells::{self, count, name, ratio, text};
use super::facts::Facts;
use crate::quotas::{CardQuota, Holder, Quota, Quotas};
use crate::report::ReportAttempt;
use crate::table::{Kind, Value};
use cardhour_domain::{CardShare, CardState, CardTime, Interval, JobState, Name, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Columns: `org project user cluster model guaranteed_cards mean_cards peak_cards hit_rate waited_under_guarantee_hours`; a row for each quota of cards, and of one for any cluster for each
/// cluster that has its model. `known`: the part of the span of which the books speak.
pub(super) fn section(facts: &Facts<'_>, quotas: &Quotas, known: Interval) -> Option<Section> {
    let models = Models::of(facts);
    let mut rows = Vec::new();
    for quota in &quotas.quotas {
        let Some(cards) = &quota.cards else { continue };
        let clusters: Vec<Option<&Name>> = match &quota.cluster {
            Some(cluster) => vec![Some(cluster)],
            None => models.clusters(&cards.model),
        };
        for cluster in clusters {
            rows.push(row(quota, cards, cluster, &Use::of(facts, &models, quota, cards, cluster, known), known));
        }
    }
    if rows.is_empty() {
        return None;
    }
    let columns = [
        ("org", Kind::Text),
        ("project", Kind::Text),
        ("user", Kind::Text),
        ("cluster", Kind::Text),
        ("model", Kind::Text),
        ("guaranteed_cards", Kind::Count),
        ("mean_cards", Kind::Hours),
        ("peak_cards", Kind::Hours),
        ("hit_rate", Kind::Ratio),
        ("waited_under_guarantee_hours", Kind::Hours),
    ];
    let mut table = cells::table("Quota use", &columns, rows);
    table.notes.push(
        "hit rate: the part of the time in which the owner had at least what it is guaranteed; waited under guarantee: the time in which a job of its waited while it had less"
            .to_owned(),
    );
    Some(Section { name: "quota_use", table, chart: None })
}

fn row(quota: &Quota, cards: &CardQuota, cluster: Option<&Name>, used: &Use, known: Interval) -> Vec<Value> {
    let Holder { org, project, user } = &quota.holder;
    let one_card = |ms: i64| CardTime::from_part_ms(i128::from(CardShare::PARTS_PER_CARD) * i128::from(ms));
    let whole = one_card(known.length_ms());
    // A guarantee of nothing is always met, which says nothing.
    let has_guarantee = cards.guaranteed > 0;
    let hit_rate = has_guarantee.then(|| one_card(used.hit_ms).ratio_of(whole)).flatten();
    vec![
        text(org),
        name(project.as_ref()),
        name(user.as_ref()),
        name(cluster),
        text(&cards.model),
        count(cards.guaranteed as usize),
        ratio(used.held.ratio_of(whole)),
        ratio(
            CardTime::from_part_ms(used.peak_parts).ratio_of(CardTime::from_part_ms(CardShare::PARTS_PER_CARD.into())),
        ),
        ratio(hit_rate),
        if has_guarantee { Value::Decimal(cells::hours_of_ms(used.waited_ms)) } else { Value::Absent },
    ]
}

/// Whether an attempt counts on a quota, in a cluster or in any.
pub(crate) fn is_own(quota: &Quota, cluster: Option<&Name>, attempt: &ReportAttempt) -> bool {
    let Holder { org, project, user } = &quota.holder;
    let is = |own: &Option<Name>, of: &Option<Name>| own.is_none() || own == of;
    attempt.org.as_ref() == Some(org)
        && is(project, &attempt.project)
        && is(user, &attempt.user)
        && cluster.is_none_or(|cluster| attempt.cluster == *cluster)
}

/// Of which models each attempt had cards, and where there are which.
pub(crate) struct Models<'a> {
    of_attempt: BTreeMap<u32, BTreeMap<&'a Name, i128>>,
    at: BTreeSet<(&'a Name, &'a Name)>,
}

impl<'a> Models<'a> {
    pub fn of(facts: &Facts<'a>) -> Self {
        let mut models = Self { of_attempt: BTreeMap::new(), at: BTreeSet::new() };
        for cell in &facts.input().cells {
            let Some(model) = &cell.model else { continue };
            models.at.insert((model, &cell.cluster));
            if let (Some(attempt), CardState::Held) = (cell.attempt, cell.state) {
                let of_attempt = models.of_attempt.entry(facts.first_of(attempt)).or_default();
                *of_attempt.entry(model).or_default() += cell.card_time.part_ms();
            }
        }
        models.at.extend(facts.input().capacity.iter().filter_map(|cell| Some((cell.model.as_ref()?, &cell.cluster))));
        models
    }

    /// The clusters that have a model; none known is one that nobody names.
    pub fn clusters(&self, model: &str) -> Vec<Option<&'a Name>> {
        let clusters: Vec<_> = self.at.iter().filter(|(one, _)| ***one == *model).map(|(_, at)| Some(*at)).collect();
        if clusters.is_empty() { vec![None] } else { clusters }
    }

    /// Of an attempt's cards, those of a model: all, but where it had several, by how long it had each. Unit: parts. None where nobody knows its model.
    fn parts(&self, number: u32, attempt: &ReportAttempt, model: &str) -> Option<i128> {
        let had = self.of_attempt.get(&number)?;
        let all: i128 = had.values().sum();
        let of_it: i128 = had.iter().filter(|(one, _)| ***one == *model).map(|(_, time)| *time).sum();
        (all > 0).then(|| i128::from(attempt.cards.parts()) * of_it / all)
    }
}

/// What an owner had of a model in a span.
#[derive(Default)]
pub(crate) struct Use {
    held: CardTime,
    /// The most at a time. Unit: parts of a card.
    peak_parts: i128,
    /// How long it was at least the guarantee. Unit: milliseconds.
    pub hit_ms: i64,
    /// How long it was less, and somebody waited. Unit: milliseconds.
    waited_ms: i64,
    /// What it held at the end of the span. Unit: parts of a card.
    pub last_parts: i128,
    /// Its jobs that waited at the end of the span.
    pub last_waiting: u64,
}

impl Use {
    pub fn of(
        facts: &Facts<'_>,
        models: &Models<'_>,
        quota: &Quota,
        cards: &CardQuota,
        cluster: Option<&Name>,
        known: Interval,
    ) -> Self {
        // At each instant: by how many parts what is held changes, and by how many jobs that wait.
        let mut changes: BTreeMap<Timestamp, (i128, i64)> = BTreeMap::new();
        let mut change = |during: Interval, parts: i128, waiting: i64| {
            let Some(during) = during.overlap(known) else { return };
            for (at, sign) in [(during.start(), 1), (during.end(), -1)] {
                let (held, waits) = changes.entry(at).or_default();
                (*held, *waits) = (*held + parts * i128::from(sign), *waits + waiting * sign);
            }
        };
        let is_own = |attempt: &ReportAttempt| is_own(quota, cluster, attempt);
        for (number, attempt) in facts.attempts().filter(|(_, attempt)| is_own(attempt)) {
            let parts = models.parts(number, attempt, &cards.model);
            if let (Some(held), Some(parts)) = (attempt.held, parts) {
                change(held, parts, 0);
            }
            let started = attempt.held.map(Interval::start);
            // What was cancelled before it started waited until nobody knows when.
            let until = started.or((attempt.state == JobState::Pending).then_some(known.end()));
            let waits = attempt.submitted_at.zip(until).and_then(|(from, until)| Interval::new(from, until));
            if let Some(waits) = waits.filter(|_| parts.is_none_or(|parts| parts > 0)) {
                change(waits, 0, 1);
            }
        }
        let guaranteed = i128::from(cards.guaranteed) * i128::from(CardShare::PARTS_PER_CARD);
        let mut used = Self::default();
        let (mut held, mut waiting) = (0, 0);
        let mut from = known.start();
        let end = (known.end(), (0, 0));
        for (at, (parts, waits)) in changes.into_iter().chain([end]) {
            let ms = at.ms_since(from);
            if ms > 0 {
                used.held += CardTime::from_part_ms(held * i128::from(ms));
                used.peak_parts = used.peak_parts.max(held);
                (used.last_parts, used.last_waiting) = (held, u64::try_from(waiting).unwrap_or(0));
                if held >= guaranteed {
                    used.hit_ms += ms;
                } else if waiting > 0 {
                    used.waited_ms += ms;
                }
            }
            (held, waiting, from) = (held + parts, waiting + waits, at);
        }
        used
    }
}
