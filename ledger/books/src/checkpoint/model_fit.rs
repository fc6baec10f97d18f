//! Whether jobs have cards that fit them: how much of each model's held time its jobs were busy.

use super::cells::{self, count, hours, money, name, ratio};
use super::facts::{Facts, Held, Sum};
use super::{Chart, Section, Shape};
use crate::table::{Kind, Value};
use cardhour_domain::Name;
use std::collections::{BTreeMap, BTreeSet};

/// A job below this would do with a smaller card, or a part of one. Unit: percent of what was seen.
const LOW_PERCENT: i128 = 20;

/// Columns: `model jobs card_hours use_coverage efficiency low_jobs low_card_hours low_cost currency`; low are jobs that were busy for less than a fifth of
/// what was seen of them.
pub(super) fn section(facts: &Facts<'_>, held: &[Held<'_>]) -> Section {
    let mut models: BTreeMap<Option<&Name>, BTreeMap<Option<&str>, Sum>> = BTreeMap::new();
    for held in held {
        let job = held.attempt.map(|attempt| facts.attempt(attempt).key.job());
        models.entry(held.model).or_default().entry(job).or_default().add(&held.sum);
    }
    let is_low =
        |sum: &&Sum| !sum.seen().is_zero() && sum.used.effective.part_ms() * 100 < sum.seen().part_ms() * LOW_PERCENT;
    let rows = models.iter().map(|(model, jobs)| {
        let all = Sum::of(jobs.values());
        let named: BTreeSet<&str> = jobs.keys().flatten().copied().collect();
        let low: Vec<&Sum> = jobs.iter().filter(|(job, _)| job.is_some()).map(|(_, sum)| sum).filter(is_low).collect();
        let of_low = Sum::of(low.iter().copied());
        let mut row = vec![name(*model), count(named.len()), hours(all.held), ratio(all.use_coverage())];
        row.push(ratio(all.efficiency()));
        // Of what nobody saw, nobody knows which jobs use little.
        let seen = !all.seen().is_zero();
        row.extend([
            if seen { count(low.len()) } else { Value::Absent },
            if seen { hours(of_low.held) } else { Value::Absent },
        ]);
        let priced = all.cost.filter(|_| seen).map(|_| of_low.cost.unwrap_or(0));
        row.extend(money(priced, facts.currency()));
        row
    });
    let columns = [
        ("model", Kind::Text),
        ("jobs", Kind::Count),
        ("card_hours", Kind::Hours),
        ("use_coverage", Kind::Ratio),
        ("efficiency", Kind::Ratio),
        ("low_jobs", Kind::Count),
        ("low_card_hours", Kind::Hours),
        ("low_cost", Kind::Money),
        ("currency", Kind::Text),
    ];
    let mut table = cells::table("Model fit", &columns, rows.collect());
    table.notes.push(format!(
        "low: jobs that were busy for less than {LOW_PERCENT} % of what was seen of them, and might do with a smaller card or a part of one; of memory the books know nothing"
    ));
    Section { name: "model_fit", table, chart: Some(Chart { shape: Shape::Bars, label: 0, value: 4 }) }
}
