//! Where a statement's cost went: a bar for each project.

use super::paper::{self, Paper};
use crate::render::bars::{Bars, Measured};
use cardhour_domain::Money;

/// Bars at most: what is smaller becomes one.
const MOST: usize = 10;

/// Bars of a statement's projects; none where there is only one, or nothing above zero.
pub fn bars(paper: &Paper<'_>) -> Option<Bars> {
    let mut projects: Vec<(String, Money)> = paper
        .summary
        .projects
        .iter()
        .map(|project| (paper::name(&project.project).to_owned(), project.figures.total))
        .collect();
    // Largest first; the names' order among equals, which they are in already.
    projects.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.micros()));
    if projects.len() > MOST {
        let rest = projects.split_off(MOST - 1);
        let zero = Money::zero(paper.statement.total.currency());
        projects.push((format!("{} more", rest.len()), rest.iter().fold(zero, |sum, (_, amount)| sum + *amount)));
    }
    let total = paper.statement.total.micros();
    let measured = projects.into_iter().map(|(label, amount)| Measured {
        label,
        size: amount.micros(),
        amount: paper::money(amount),
        share: share(amount.micros(), total),
    });
    Bars::of("Cost by project", measured.collect())
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
}
