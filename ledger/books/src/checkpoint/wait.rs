//! Queue wait: from submit to start, of the attempts that started in the span.
//!
//! Percentiles are by nearest rank: the least wait that at least so many percent of the attempts did not exceed, so that each is one that an attempt really had.
//! Those that still wait at the end of the span have no wait yet; they are counted apart, since a queue that starts nothing would else look fast.

use super::cells::{self, count, hours_of_ms, name, short, text, wait};
use super::facts::{Facts, asked};
use super::week::Days;
use super::{Chart, Section, Shape};
use crate::report::ReportAttempt;
use crate::table::{Kind, Value};
use cardhour_domain::{CardShare, Name};
use std::collections::BTreeMap;

/// One attempt's wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait<'a> {
    /// The attempt's number.
    pub number: u32,
    pub attempt: &'a ReportAttempt,
    pub wait_ms: i64,
}

/// The waits of a span.
#[derive(Clone, Debug)]
pub(crate) struct Waits<'a> {
    pub started: Vec<Wait<'a>>,
    /// Submitted before the span's end and not started by then.
    pub waiting: Vec<&'a ReportAttempt>,
    /// How many started whose wait nobody knows.
    pub unknown: usize,
}

/// Waits of one group, in order; or any other figures that are told by percentiles.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread(Vec<i64>);

impl Spread {
    pub fn of(waits: impl IntoIterator<Item = i64>) -> Self {
        let mut waits: Vec<i64> = waits.into_iter().collect();
        waits.sort_unstable();
        Self(waits)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The percentile by nearest rank; none of nothing. Unit: that of the figures, milliseconds of waits.
    pub fn percentile(&self, percent: usize) -> Option<i64> {
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0.get(rank.max(1) - 1).copied()
    }

    pub fn most(&self) -> Option<i64> {
        self.0.last().copied()
    }
}

const FIGURES: [(&str, Kind); 6] = [
    ("started", Kind::Count),
    ("median_wait_hours", Kind::Hours),
    ("p90_wait_hours", Kind::Hours),
    ("p99_wait_hours", Kind::Hours),
    ("max_wait_hours", Kind::Hours),
    ("waiting", Kind::Count),
];

fn figures(spread: &Spread, waiting: usize) -> Vec<Value> {
    let mut row = vec![count(spread.len())];
    row.extend([50, 90, 99].map(|percent| wait(spread.percentile(percent))));
    row.extend([wait(spread.most()), count(waiting)]);
    row
}

/// Columns: `queue started median_wait_hours p90_wait_hours p99_wait_hours max_wait_hours waiting`.
pub(super) fn by_queue(facts: &Facts<'_>, waits: &Waits<'_>, days: Days) -> Section {
    let group = |attempt: &ReportAttempt| attempt.queue.clone();
    section("queue_wait_by_queue", "Queue wait by queue", "queue", facts, waits, days, group, |queue: &Option<Name>| {
        name(queue.as_ref())
    })
}

/// The same by how many cards were asked for.
pub(super) fn by_cards(facts: &Facts<'_>, waits: &Waits<'_>, days: Days) -> Section {
    let group = |attempt: &ReportAttempt| band(asked(attempt));
    section("queue_wait_by_cards", "Queue wait by cards asked", "cards_asked", facts, waits, days, group, |band| {
        text(BANDS[*band].0)
    })
}

/// Cards asked for, up to and with how many.
const BANDS: [(&str, i64); 6] =
    [("under 1", 0), ("1", 1), ("over 1 to 4", 4), ("over 4 to 8", 8), ("over 8 to 32", 32), ("over 32", i64::MAX)];

fn band(cards: CardShare) -> usize {
    if cards < CardShare::CARD {
        return 0;
    }
    let fits = |most: i64| i128::from(cards.parts()) <= i128::from(most) * i128::from(CardShare::PARTS_PER_CARD);
    BANDS.iter().position(|(_, most)| fits(*most)).expect("the last has no bound")
}

#[expect(clippy::too_many_arguments, reason = "two callers in this file, and each argument is another idea")]
fn section<K: Ord>(
    name: &'static str,
    title: &str,
    column: &str,
    facts: &Facts<'_>,
    waits: &Waits<'_>,
    days: Days,
    group: impl Fn(&ReportAttempt) -> K,
    shown: impl Fn(&K) -> Value,
) -> Section {
    let mut groups: BTreeMap<K, (Vec<i64>, usize)> = BTreeMap::new();
    for wait in &waits.started {
        groups.entry(group(wait.attempt)).or_default().0.push(wait.wait_ms);
    }
    for attempt in &waits.waiting {
        groups.entry(group(attempt)).or_default().1 += 1;
    }
    let rows = groups.into_iter().map(|(key, (waits, waiting))| {
        let mut row = vec![shown(&key)];
        row.extend(figures(&Spread::of(waits), waiting));
        row
    });
    let columns: Vec<(&str, Kind)> = [(column, Kind::Text)].into_iter().chain(FIGURES).collect();
    let mut table = cells::table(title, &columns, rows.collect());
    let mut total = vec![Value::Absent];
    total.extend(figures(&Spread::of(waits.started.iter().map(|wait| wait.wait_ms)), waits.waiting.len()));
    table.total = (!table.rows.is_empty()).then_some(total);
    let end = crate::report::local(facts.zone(), days.interval(facts.zone()).end());
    table.notes.push(format!(
        "from submit to start, of attempts that started in the span; percentiles by nearest rank; waiting: submitted and not started by {end}"
    ));
    if waits.unknown > 0 {
        table.notes.push(format!("of {} that started nobody knows when they were submitted", waits.unknown));
    }
    Section { name, table, chart: Some(Chart { shape: Shape::Bars, label: 0, value: 3 }) }
}

/// What the waits come to, in a sentence.
pub(super) fn sentence(waits: &Waits<'_>) -> String {
    let spread = Spread::of(waits.started.iter().map(|wait| wait.wait_ms));
    let hours = |percent| spread.percentile(percent).map(|ms| short(hours_of_ms(ms)));
    match hours(50).zip(hours(90)) {
        Some((median, p90)) => format!(
            "{} attempts started; half of them within {median} h of their submit, nine of ten within {p90} h; {} still waited at the end.",
            spread.len(),
            waits.waiting.len()
        ),
        None => format!("Nothing started whose wait is known; {} waited at the end.", waits.waiting.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition: of ten waits 1 to 10 the median is the 5th, p90 the 9th, p99 the 10th; of one each is that one.
    #[test]
    fn percentiles_are_waits_that_somebody_had() {
        let ten = Spread::of((1..=10).rev());
        assert_eq!([50, 90, 99, 91].map(|p| ten.percentile(p)), [Some(5), Some(9), Some(10), Some(10)]);
        assert_eq!([1, 50, 99].map(|p| Spread::of([7]).percentile(p)), [Some(7); 3]);
        assert_eq!(Spread::default().percentile(50), None);
    }

    #[test]
    fn cards_fall_into_the_first_band_that_holds_them() {
        let of = |cards: &str| BANDS[band(CardShare::from_decimal(cards.parse().unwrap()).unwrap())].0;
        assert_eq!(
            ["0.5", "1", "1.5", "4", "5", "8", "9", "32", "33"].map(of),
            [
                "under 1",
                "1",
                "over 1 to 4",
                "over 1 to 4",
                "over 4 to 8",
                "over 4 to 8",
                "over 8 to 32",
                "over 8 to 32",
                "over 32"
            ]
        );
    }
}
