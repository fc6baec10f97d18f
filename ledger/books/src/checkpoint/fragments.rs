//! Idle fragments: free cards on nodes that somebody else's job held in part, by how many there were to a node.
//!
//! By days: a node is partly held on a day on which some of its card-time was held and some was free. How many cards were free is the day's mean, free card-hours
//! ÷ the hours of the day. A finer time would need every instant of every node; what keeps large jobs waiting is seen by days, too.

use super::cells::{self, count, hours, text};
use super::facts::Facts;
use super::week::Days;
use super::{Chart, Section, Shape};
use crate::table::{Kind, Value};
use cardhour_domain::{CardShare, CardState, CardTime, Interval, JobState, Name};
use chrono::NaiveDate;
use std::collections::{BTreeMap, BTreeSet};

/// Mean free cards of a node on a day, below how many.
const BANDS: [(&str, i64); 5] = [("under 1", 1), ("1 to 2", 2), ("2 to 4", 4), ("4 to 8", 8), ("8 and more", i64::MAX)];

/// Columns: `free_cards nodes node_days free_card_hours free_while_waiting_card_hours`; the last counts the days on which a job of that cluster waited.
/// Errors: why the books can't tell, in words.
pub(super) fn section(facts: &Facts<'_>, days: Days) -> Result<Section, String> {
    let mut nodes: BTreeMap<(NaiveDate, &Name, &Name), (CardTime, CardTime)> = BTreeMap::new();
    let mut without_node = false;
    for cell in &facts.input().cells {
        let day = facts.day(cell.slot);
        if !days.contains(day) || !matches!(cell.state, CardState::Free | CardState::Held) {
            continue;
        }
        let Some(node) = &cell.node else {
            without_node |= cell.state == CardState::Free;
            continue;
        };
        let (free, held) = nodes.entry((day, &cell.cluster, node)).or_default();
        *if cell.state == CardState::Free { free } else { held } += cell.card_time;
    }
    let partly = nodes.iter().filter(|(_, (free, held))| !free.is_zero() && !held.is_zero());
    let partly: Vec<_> = partly.map(|(place, (free, _))| (*place, *free)).collect();
    if without_node && partly.is_empty() {
        return Err("free time is not known by node here".to_owned());
    }
    let waited = waited(facts, days);
    let mut bands = [const { (BTreeSet::new(), 0usize, CardTime::ZERO, CardTime::ZERO) }; BANDS.len()];
    for ((day, cluster, node), free) in partly {
        let hours_of_day = facts.zone().day(day).expect("a day that time is known of");
        let below = |most: i64| {
            let most = i128::from(most) * i128::from(CardShare::PARTS_PER_CARD);
            free.part_ms() < most * i128::from(hours_of_day.length_ms())
        };
        let band = BANDS.iter().position(|(_, most)| below(*most)).expect("the last has no bound");
        let (nodes, node_days, all, waiting) = &mut bands[band];
        nodes.insert((cluster, node));
        *node_days += 1;
        *all += free;
        if waited.contains(&(day, cluster)) {
            *waiting += free;
        }
    }
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for ((band, _), (nodes, node_days, free, waiting)) in
        BANDS.iter().zip(&bands).filter(|(_, (.., free, _))| !free.is_zero())
    {
        rows.push(vec![text(band), count(nodes.len()), count(*node_days), hours(*free), hours(*waiting)]);
    }
    let columns = [
        ("free_cards", Kind::Text),
        ("nodes", Kind::Count),
        ("node_days", Kind::Count),
        ("free_card_hours", Kind::Hours),
        ("free_while_waiting_card_hours", Kind::Hours),
    ];
    let mut table = cells::table("Idle fragments", &columns, rows);
    table.notes.push(
        "days of nodes of which a part was held and a part was free, by the day's mean of free cards; while waiting: on days on which a job of that cluster waited"
            .to_owned(),
    );
    if without_node {
        table.notes.push("some free time is not known by node, and is not in it".to_owned());
    }
    Ok(Section { name: "idle_fragments", table, chart: Some(Chart { shape: Shape::Bars, label: 0, value: 3 }) })
}

/// The days on which a job of a cluster waited.
fn waited<'a>(facts: &Facts<'a>, days: Days) -> BTreeSet<(NaiveDate, &'a Name)> {
    let zone = facts.zone();
    let during = days.interval(zone);
    let mut waited = BTreeSet::new();
    for (_, attempt) in facts.attempts() {
        let end = match attempt.held {
            Some(held) => held.start(),
            None if attempt.state == JobState::Pending => during.end(),
            // It ended without a start, and nobody knows when.
            None => continue,
        };
        let wait = attempt.submitted_at.and_then(|submitted| Interval::new(submitted, end)?.overlap(during));
        let Some(wait) = wait else { continue };
        let mut day = zone.date(wait.start()).expect("inside the days");
        while days.contains(day) && zone.start_of_day(day) < wait.end() {
            waited.insert((day, &attempt.cluster));
            day = day + chrono::Days::new(1);
        }
    }
    waited
}
