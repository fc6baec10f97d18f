//! Where the cost went: a bar for each project, drawn as SVG without script.

use super::paper::{self, Paper};
use cardhour_domain::Money;

/// Bars at most: what is smaller becomes one.
const MOST: usize = 10;
/// Height of a bar with its gap, and where bars begin and end, in the drawing's own units.
const STEP: usize = 22;
const LEFT: i128 = 190;
const RIGHT: i128 = 560;
/// Letters of a name that fit before the bar.
const LETTERS: usize = 26;

/// The drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bars {
    /// From the largest, the sum of the smaller ones last.
    pub bars: Vec<Bar>,
    /// Height of the drawing.
    pub height: usize,
}

/// One bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Its project, cut where it is too long.
    pub label: String,
    /// Its amount.
    pub amount: String,
    /// Its part of the total, as a percent; empty where the total isn't above zero.
    pub share: String,
    /// Where its text stands.
    pub text_y: usize,
    /// Its upper edge.
    pub y: usize,
    /// Where all bars begin.
    pub x: i128,
    /// How long it is: nothing for an amount below zero.
    pub width: i128,
}

/// Bars of a statement's projects; none where there is only one, or nothing above zero.
pub fn bars(paper: &Paper<'_>) -> Option<Bars> {
    let mut projects: Vec<(String, Money)> = paper
        .summary
        .projects
        .iter()
        .map(|project| (shortened(paper::name(&project.project)), project.figures.total))
        .collect();
    // Largest first; the names' order among equals, which they are in already.
    projects.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.micros()));
    if projects.len() > MOST {
        let rest = projects.split_off(MOST - 1);
        let zero = Money::zero(paper.statement.total.currency());
        projects.push((format!("{} more", rest.len()), rest.iter().fold(zero, |sum, (_, amount)| sum + *amount)));
    }
    let largest = projects.iter().map(|(_, amount)| amount.micros()).max().filter(|largest| *largest > 0)?;
    let total = paper.statement.total.micros();
    let bars = projects.iter().enumerate().map(|(i, (label, amount))| Bar {
        label: label.clone(),
        amount: paper::money(*amount),
        share: share(amount.micros(), total),
        text_y: i * STEP + 14,
        y: i * STEP + 3,
        x: LEFT,
        width: amount.micros().max(0) * (RIGHT - LEFT) / largest,
    });
    let bars: Vec<Bar> = bars.collect();
    (bars.len() > 1).then(|| Bars { height: bars.len() * STEP, bars })
}

/// A part of the total, one decimal; to the nearer tenth, away from zero where both are as near.
fn share(part: i128, total: i128) -> String {
    if total <= 0 {
        return String::new();
    }
    let per_mille = (part.abs() * 2000 + total) / (total * 2);
    let sign = if part < 0 && per_mille > 0 { "\u{2212}" } else { "" };
    format!("{sign}{}.{} %", per_mille / 10, per_mille % 10)
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= LETTERS {
        return name.to_owned();
    }
    name.chars().take(LETTERS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 1 of 3 is 33.3 %, 2 of 3 is 66.7 %, a loss of 1 beside 3 is −33.3 %; of nothing there is no part.
    #[test]
    fn a_part_is_a_percent_of_a_total_above_zero() {
        for (part, total, expected) in
            [(1, 3, "33.3 %"), (2, 3, "66.7 %"), (-1, 3, "−33.3 %"), (0, 3, "0.0 %"), (1, 0, ""), (5, -3, "")]
        {
            assert_eq!(share(part, total), expected, "{part} of {total}");
        }
    }

    #[test]
    fn a_long_name_is_cut_between_letters() {
        assert_eq!(shortened("vision"), "vision");
        assert_eq!(shortened(&"卡".repeat(40)).chars().count(), LETTERS);
    }
}
