//! The first page as data: what a month cost and where its hours went.

use super::row::{rows, width_percent};
use super::stack::{PARTS, Stack, stacks};
use crate::books::SIMULATED;
use crate::render;
use cardhour_books::table::Table;
use rust_decimal::Decimal;

/// What the page can group the bill by, with the word for it.
pub const GROUPS: [(&str, &str); 6] = [
    ("org,project", "project"),
    ("user", "user"),
    ("queue", "queue"),
    ("class", "class"),
    ("model", "card model"),
    ("cluster", "cluster"),
];

/// The reports that the page is made of.
pub struct Reports {
    /// Bill by month, of all time.
    pub months: Table,
    /// Bill of the month that is shown, by `by`.
    pub bill: Table,
    /// Capacity by month, of all time.
    pub capacity_by_month: Table,
    /// Capacity by day, of the month that is shown.
    pub capacity_by_day: Table,
}

/// The page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// The month that is shown; none: the books are empty.
    pub month: Option<String>,
    /// The zone that cuts months.
    pub zone: String,
    /// Every month there is, latest first.
    pub months: Vec<Choice>,
    /// What the bill can be grouped by.
    pub groups: Vec<Choice>,
    /// The figures at the top.
    pub figures: Vec<Figure>,
    /// Names of the columns that the bill is grouped by.
    pub group_columns: Vec<String>,
    /// Its lines.
    pub lines: Vec<Line>,
    /// Whether there is money in them.
    pub has_cost: bool,
    /// The sums, one for each currency.
    pub totals: Vec<Total>,
    /// A bar a month, latest first.
    pub month_bars: Vec<Stack>,
    /// A bar a day of the month that is shown.
    pub day_bars: Vec<Stack>,
    /// States for the legend.
    pub legend: Vec<&'static str>,
    /// The bill as csv.
    pub csv_href: String,
    /// What the reports say beside their figures.
    pub notes: Vec<String>,
}

/// A link among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What it says.
    pub name: String,
    /// Where it leads.
    pub href: String,
    /// Whether it is what is shown now.
    pub is_current: bool,
}

/// A large figure with what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// `card-hours held`.
    pub name: &'static str,
    /// `135,584.8014`.
    pub value: String,
    /// What to know beside it; may be empty.
    pub detail: String,
}

/// One line of the bill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Who pays: one text a group column; `(none)` where nobody is named.
    pub groups: Vec<String>,
    /// Where its trace is; empty where the report has no line.
    pub href: String,
    /// Jobs in it.
    pub jobs: String,
    /// Card-hours held.
    pub hours: String,
    /// Of all card-hours of the month. Unit: percent, for CSS.
    pub share_width: String,
    /// The same for people.
    pub share: String,
    /// What it costs; empty where no price says.
    pub cost: String,
    /// In which currency.
    pub currency: String,
}

/// A sum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    /// Card-hours held.
    pub hours: String,
    /// What they cost.
    pub cost: String,
    /// In which currency.
    pub currency: String,
}

/// The months of a bill by month, in the order of time.
pub fn months(bill_by_month: &Table) -> Vec<String> {
    let mut months: Vec<String> = rows(bill_by_month).filter_map(|row| row.text("month")).map(str::to_owned).collect();
    months.sort();
    months.dedup();
    months
}

/// The page of `month`, its bill grouped by `by` as it stands in the address. Pure: the same reports give the same page.
pub fn overview(reports: &Reports, month: Option<&str>, by: &str, zone: &str) -> Overview {
    let held: Decimal = rows(&reports.bill).filter_map(|row| row.decimal("card_hours")).sum();
    let group_columns: Vec<String> = by.split(',').map(str::to_owned).collect();
    let mut lines: Vec<(Decimal, Line)> = rows(&reports.bill)
        .map(|row| {
            let hours = row.decimal("card_hours").unwrap_or_default();
            let line = Line {
                groups: group_columns.iter().map(|name| row.text(name).unwrap_or("(none)").to_owned()).collect(),
                href: row.text("line").map_or_else(String::new, |line| format!("/trace?line={}", escaped(line))),
                jobs: row.shown("jobs"),
                hours: row.shown("card_hours"),
                share_width: width_percent(hours, held),
                share: if held.is_zero() { String::new() } else { render::percent(hours / held) },
                cost: row.shown("cost"),
                currency: row.text("currency").unwrap_or_default().to_owned(),
            };
            (row.decimal("cost").unwrap_or(hours), line)
        })
        .collect();
    // The dearest first; equal ones stay in the order of the report.
    lines.sort_by(|(a, _), (b, _)| b.cmp(a));
    let totals = totals(&reports.bill);
    let month_query = month.map_or_else(String::new, |month| format!("month={month}&"));
    let mut month_bars = stacks(&reports.capacity_by_month, "month");
    month_bars.reverse();
    let day_bars = stacks(&reports.capacity_by_day, "day");
    let shown =
        |state: &str| month_bars.iter().chain(&day_bars).flat_map(|bar| &bar.parts).any(|part| part.state == state);
    let mut notes: Vec<String> = Vec::new();
    for note in reports.bill.notes.iter().chain(&reports.capacity_by_day.notes) {
        // The page says at its top that it is simulated.
        if note != SIMULATED && !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    Overview {
        months: months(&reports.months)
            .into_iter()
            .rev()
            .map(|name| Choice {
                href: format!("/?month={name}&by={}", escaped(by)),
                is_current: Some(name.as_str()) == month,
                name,
            })
            .collect(),
        groups: GROUPS
            .iter()
            .map(|(value, name)| Choice {
                name: (*name).to_owned(),
                href: format!("/?{month_query}by={}", escaped(value)),
                is_current: *value == by,
            })
            .collect(),
        figures: figures(reports, month, held, &totals),
        has_cost: lines.iter().any(|(_, line)| !line.cost.is_empty()),
        lines: lines.into_iter().map(|(_, line)| line).collect(),
        legend: PARTS.iter().map(|(state, _)| *state).filter(|state| shown(state)).collect(),
        csv_href: format!("/api/v1/report/bill?{month_query}by={}&format=csv", escaped(by)),
        month: month.map(str::to_owned),
        zone: zone.to_owned(),
        group_columns,
        totals,
        month_bars,
        day_bars,
        notes,
    }
}

/// A sum for each currency, and one for what has no price.
fn totals(bill: &Table) -> Vec<Total> {
    let mut sums: Vec<(&str, Decimal, Option<Decimal>)> = Vec::new();
    for row in rows(bill) {
        let currency = row.text("currency").unwrap_or_default();
        let i = sums.iter().position(|(known, ..)| *known == currency).unwrap_or_else(|| {
            sums.push((currency, Decimal::ZERO, None));
            sums.len() - 1
        });
        sums[i].1 += row.decimal("card_hours").unwrap_or_default();
        if let Some(cost) = row.decimal("cost") {
            sums[i].2 = Some(sums[i].2.map_or(cost, |sum| sum + cost));
        }
    }
    sums.into_iter()
        .map(|(currency, hours, cost)| Total {
            hours: render::hours(hours),
            cost: cost.map_or_else(String::new, |cost| render::grouped(&cost.to_string())),
            currency: currency.to_owned(),
        })
        .collect()
}

fn figures(reports: &Reports, month: Option<&str>, held: Decimal, totals: &[Total]) -> Vec<Figure> {
    let short = super::stack::short_hours;
    let mut figures: Vec<Figure> = totals
        .iter()
        .filter(|total| !total.cost.is_empty())
        .map(|total| Figure {
            name: "cost",
            value: format!("{} {}", total.cost, total.currency),
            detail: String::new(),
        })
        .collect();
    figures.push(Figure { name: "card-hours held", value: short(held), detail: String::new() });
    let Some(capacity) = rows(&reports.capacity_by_month).find(|row| row.text("month") == month) else {
        return figures;
    };
    if let Some(whole) = capacity.decimal("capacity_card_hours").filter(|whole| *whole > Decimal::ZERO) {
        let held = capacity.decimal("card_hours").unwrap_or_default();
        figures.push(Figure {
            name: "of the pool's capacity held",
            value: render::percent(held / whole),
            detail: format!("of {} card-hours", short(whole)),
        });
        let free = capacity.decimal("free_card_hours").unwrap_or_default();
        figures.push(Figure { name: "card-hours free", value: short(free), detail: String::new() });
    }
    let unaccounted = capacity.decimal("unaccounted_card_hours").unwrap_or_default();
    if unaccounted > Decimal::ZERO {
        figures.push(Figure {
            name: "card-hours unaccounted",
            value: short(unaccounted),
            detail: "no export speaks for them".to_owned(),
        });
    }
    figures
}

/// A text as part of an address.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b',' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::sample;

    fn page() -> Overview {
        overview(&sample::reports(), Some("2026-03"), "org,project", "Asia/Shanghai")
    }

    /// By hand from the sample: 1,110.00 + 740.00 CNY for 60 + 40 card-hours at 18.50.
    #[test]
    fn the_dearest_line_is_first_and_the_sum_is_that_of_the_lines() {
        let page = page();
        let lines: Vec<_> = page
            .lines
            .iter()
            .map(|line| (line.groups.join("/"), line.hours.as_str(), line.cost.as_str(), line.share.as_str()))
            .collect();
        assert_eq!(lines[0], ("lab/vision".to_owned(), "60.0000", "1,110.00", "60.0 %"));
        assert_eq!(lines[1], ("lab/<speech>".to_owned(), "40.0000", "740.00", "40.0 %"));
        assert_eq!(page.totals, [Total { hours: "100.0000".into(), cost: "1,850.00".into(), currency: "CNY".into() }]);
    }

    #[test]
    fn every_month_is_a_link_and_the_latest_comes_first() {
        let names: Vec<_> = page().months.iter().map(|month| (month.name.clone(), month.is_current)).collect();
        assert_eq!(names, [("2026-04".to_owned(), false), ("2026-03".to_owned(), true)]);
        assert_eq!(page().months[1].href, "/?month=2026-03&by=org,project");
        assert_eq!(page().csv_href, "/api/v1/report/bill?month=2026-03&by=org,project&format=csv");
        assert_eq!(page().lines[0].href, "/trace?line=2026-03%2Flab%2Fvision");
    }

    #[test]
    fn a_site_without_capacity_has_hours_and_no_share_of_a_pool() {
        let mut reports = sample::reports();
        reports.capacity_by_month = Table::default();
        reports.capacity_by_day = Table::default();
        let page = overview(&reports, Some("2026-03"), "org,project", "UTC");
        assert!(page.month_bars.is_empty() && page.legend.is_empty());
        assert!(page.figures.iter().all(|figure| figure.name != "of the pool's capacity held"));
    }
}
