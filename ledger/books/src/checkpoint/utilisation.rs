//! How busy held cards were: attempts by the efficiency of what was seen of them, in bands of a fifth.

use super::cells::{self, count, hours, percent, text};
use super::facts::{Held, Sum};
use super::{Chart, Section, Shape};
use crate::table::{Kind, Value};
use cardhour_domain::CardTime;
use std::collections::BTreeMap;

const BANDS: [&str; 5] = ["0 to 20 %", "20 to 40 %", "40 to 60 %", "60 to 80 %", "80 to 100 %"];

/// The band of effective ÷ seen: its lower bound is in it, its upper one in the next but for 100 %.
fn band(effective: CardTime, seen: CardTime) -> usize {
    let fifths = effective.part_ms() * 5 / seen.part_ms();
    usize::try_from(fifths).unwrap_or(0).min(BANDS.len() - 1)
}

/// Columns: `efficiency_band attempts card_hours of_held`. A band's hours are what was seen of its attempts; a last row has all that nobody saw and the
/// attempts of which nothing was seen, so that the rows add up to what was held.
pub(super) fn section(held: &[Held<'_>]) -> Section {
    let mut attempts: BTreeMap<Option<u32>, Sum> = BTreeMap::new();
    for held in held {
        attempts.entry(held.attempt).or_default().add(&held.sum);
    }
    let mut bands = [(0usize, CardTime::ZERO); 5];
    let mut unseen = (0usize, CardTime::ZERO);
    for (attempt, sum) in &attempts {
        unseen.1 += sum.unseen;
        let one = usize::from(attempt.is_some());
        if sum.seen().is_zero() {
            unseen.0 += one;
            continue;
        }
        let band = &mut bands[band(sum.used.effective, sum.seen())];
        band.0 += one;
        band.1 += sum.seen();
    }
    let all: CardTime = attempts.values().map(|sum| sum.held).sum();
    let row = |band: &str, (many, time): (usize, CardTime)| {
        vec![text(band), count(many), hours(time), cells::ratio(time.ratio_of(all))]
    };
    let mut rows: Vec<Vec<Value>> = BANDS.iter().zip(bands).map(|(band, figures)| row(band, figures)).collect();
    rows.push(row("not seen", unseen));
    let columns = [
        ("efficiency_band", Kind::Text),
        ("attempts", Kind::Count),
        ("card_hours", Kind::Hours),
        ("of_held", Kind::Ratio),
    ];
    let mut table = cells::table("Utilisation", &columns, rows);
    let many = attempts.keys().flatten().count();
    table.total = Some(vec![Value::Absent, count(many), hours(all), cells::ratio(all.ratio_of(all))]);
    table.notes.push(
        "attempts by effective ÷ seen of what they held in the span; hours are those that telemetry saw, and all that it did not see are in the last row"
            .to_owned(),
    );
    Section { name: "utilisation", table, chart: Some(Chart { shape: Shape::Bars, label: 0, value: 2 }) }
}

/// What it comes to, in a sentence.
pub(super) fn sentence(held: &[Held<'_>]) -> String {
    let sum = Sum::of(held.iter().map(|held| &held.sum));
    let seen = sum.use_coverage().unwrap_or_default();
    match sum.efficiency() {
        Some(efficiency) => format!(
            "Held cards were busy for {} of the time that telemetry saw, which was {} of it.",
            percent(efficiency),
            percent(seen)
        ),
        None => format!("How busy held cards were is not told: telemetry saw {} of their time.", percent(seen)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: of 100 seen, 20 busy is the second band's first, 19 the first's, all of it the last's.
    #[test]
    fn a_bound_is_in_the_upper_band() {
        let of = |busy| band(CardTime::from_part_ms(busy), CardTime::from_part_ms(100));
        assert_eq!([0, 19, 20, 79, 80, 100].map(of), [0, 0, 1, 3, 4, 4]);
    }
}
