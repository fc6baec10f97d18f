//! Where the pool's hours went, as bars: held, reserved, free, down, unaccounted.

use super::row::{Row, rows, width_percent};
use crate::render;
use cardhour_books::table::Table;
use rust_decimal::Decimal;

/// The states in the order of a bar: what was given out, what could be, what couldn't, what nobody knows. The name of the
/// state is its class in the style sheet; the column is where a report of capacity has its hours.
pub const PARTS: [(&str, &str); 5] = [
    ("held", "card_hours"),
    ("reserved", "reserved_card_hours"),
    ("free", "free_card_hours"),
    ("down", "down_card_hours"),
    ("unaccounted", "unaccounted_card_hours"),
];

/// One bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// What it is of: a month, a day.
    pub label: String,
    /// Its parts that aren't nothing.
    pub parts: Vec<Part>,
    /// How long the whole bar is beside the longest one. Unit: percent, for CSS.
    pub length_percent: String,
    /// Held of the capacity, for people; empty where the capacity isn't known.
    pub held_percent: String,
    /// All of it in a sentence, for whoever can't see the bar or points at it.
    pub sentence: String,
}

/// One part of a bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// `held`, `reserved`, …
    pub state: &'static str,
    /// Its length in the bar. Unit: percent, for CSS.
    pub percent: String,
    /// Card-hours, for people.
    pub hours: String,
}

/// A bar for each row of a report of capacity that is grouped by `label`.
pub fn stacks(capacity: &Table, label: &str) -> Vec<Stack> {
    let longest = rows(capacity).map(|row| whole(&row)).max().unwrap_or_default();
    rows(capacity).map(|row| stack(&row, label, longest)).collect()
}

fn whole(row: &Row<'_>) -> Decimal {
    PARTS.iter().filter_map(|(_, column)| row.decimal(column)).sum()
}

fn stack(row: &Row<'_>, label: &str, longest: Decimal) -> Stack {
    let whole = whole(row);
    let parts: Vec<Part> = PARTS
        .iter()
        .filter_map(|(state, column)| {
            let hours = row.decimal(column).filter(|hours| !hours.is_zero())?;
            Some(Part { state, percent: width_percent(hours, whole), hours: short_hours(hours) })
        })
        .collect();
    let held_percent = row
        .decimal("capacity_card_hours")
        .filter(|capacity| *capacity > Decimal::ZERO)
        .map_or_else(String::new, |capacity| render::percent(row.decimal("card_hours").unwrap_or_default() / capacity));
    let label = row.text(label).unwrap_or("all").to_owned();
    let told: Vec<String> = parts.iter().map(|part| format!("{} {}", part.state, part.hours)).collect();
    Stack {
        sentence: format!("{label}: {} card-hours", told.join(", ")),
        label,
        parts,
        length_percent: width_percent(whole, longest),
        held_percent,
    }
}

/// Card-hours with one decimal: for a bar, where the exact figure stands in the table beneath.
pub fn short_hours(hours: Decimal) -> String {
    let mut hours = hours.round_dp(1);
    hours.rescale(1);
    render::grouped(&hours.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::sample;

    /// By hand: 60 + 20 + 10 + 10 of 100 card-hours; the second month has half of that.
    #[test]
    fn the_parts_of_a_bar_make_its_whole_and_bars_compare() {
        let bars = stacks(
            &sample::capacity("month", &[("2026-03", [60, 10, 20, 10, 0]), ("2026-04", [50, 0, 0, 0, 0])]),
            "month",
        );
        let widths: Vec<_> = bars[0].parts.iter().map(|part| (part.state, part.percent.as_str())).collect();
        assert_eq!(widths, [("held", "60"), ("reserved", "10"), ("free", "20"), ("down", "10")]);
        assert_eq!((bars[0].length_percent.as_str(), bars[1].length_percent.as_str()), ("100", "50"));
        assert_eq!(bars[0].held_percent, "60.0 %");
        assert_eq!(bars[1].sentence, "2026-04: held 50.0 card-hours");
    }
}
