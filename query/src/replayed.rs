//! What replays came to, for people and programs.

use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_domain::Interval;
use cardhour_scheduler_core::placement::Policy;
use cardhour_scheduler_core::replay::placement::{Curve, mean_allocation_ppm};
use cardhour_scheduler_core::replay::queue::{Order, Outcome, Waits};
use rust_decimal::Decimal;
use std::collections::BTreeSet;

/// The tenant of the row that has all of them together.
const TOTAL: &str = "total";

fn column(name: &str, kind: Kind) -> Column {
    Column { name: name.to_owned(), kind }
}

/// One row for each policy and load: the mean allocation of its curves, percent with four decimals. Without loads, each at which something arrived.
pub fn placement(title: String, played: &[(Policy, Vec<Curve>)], loads_percent: Option<&[u64]>) -> Table {
    let mut rows = Vec::new();
    for (policy, curves) in played {
        let arrived = || curves.iter().flat_map(Curve::loads_percent).collect::<BTreeSet<u64>>();
        let loads = loads_percent.map_or_else(|| arrived().into_iter().collect(), <[u64]>::to_vec);
        for load in loads {
            let percent = mean_allocation_ppm(curves, load).map(|ppm| Decimal::from_i128_with_scale(ppm.into(), 4));
            rows.push(vec![
                Value::Text(policy.name().into()),
                Value::Count(load),
                percent.map_or(Value::Absent, Value::Decimal),
            ]);
        }
    }
    let absent = rows.iter().any(|row| row[2] == Value::Absent);
    let note = "a load without an allocation is one at which some seed had no arrival".to_owned();
    Table {
        title,
        columns: vec![column("policy", Kind::Text), column("load", Kind::Count), column("allocation", Kind::Money)],
        rows,
        total: None,
        notes: absent.then_some(note).into_iter().collect(),
    }
}

/// One row a tenant, and last one of all together. `span` is what was chosen for want of another.
pub fn queue(outcome: &Outcome, order: Order, span: Option<Interval>) -> Table {
    let seconds =
        |ms: Option<i128>| ms.map_or(Value::Absent, |ms| Value::Decimal(Decimal::from_i128_with_scale(ms, 3)));
    let row = |(tenant, waits): (&str, &Waits)| {
        vec![
            Value::Text(tenant.into()),
            Value::Count(waits.jobs),
            seconds(waits.mean_queueing_ms()),
            seconds(waits.mean_completion_ms()),
            Value::Count(waits.queued),
            Value::Count(waits.peak_cards),
            Value::Count(waits.rejected),
        ]
    };
    let tenants = outcome.tenants.iter().map(|(tenant, waits)| (tenant.as_str(), waits));
    let mut notes = Vec::new();
    if let (Some(span), 1..) = (span, outcome.outside) {
        notes.push(format!(
            "jobs submitted in the whole months of the file, from {} to {}; {} are outside, and --from and --to choose otherwise",
            span.start(),
            span.end(),
            outcome.outside
        ));
    }
    if outcome.without_pool > 0 {
        notes.push(format!("jobs of tenants without a pool, left out: {}", outcome.without_pool));
    }
    if outcome.total.rejected > 0 {
        notes.push(format!("jobs larger than their tenant's pool, rejected: {}", outcome.total.rejected));
    }
    Table {
        title: match order {
            Order::Fifo => "queue, first come first served",
            Order::Sjf => "queue, shortest job first",
        }
        .to_owned(),
        columns: vec![
            column("tenant", Kind::Text),
            column("jobs", Kind::Count),
            column("mean_queueing_s", Kind::Money),
            column("mean_jct_s", Kind::Money),
            column("queued", Kind::Count),
            column("peak_cards", Kind::Count),
            column("rejected", Kind::Count),
        ],
        rows: tenants.chain([(TOTAL, &outcome.total)]).map(row).collect(),
        total: None,
        notes,
    }
}
