//! `report output`: cost and card-hours for a unit of output, by team and model.
//!
//! The cost of a job is its part of the bill's rounded leaves, at six decimals (LED-6). A job that has several units of output stands in each one's row with all of its cost, so that rows
//! of different units don't add up. A job that held cards of several models, or for several projects, has its output spread over these by the card-time held.

use super::{Output, OutputOf};
use crate::bill::{Hole, describe_holes};
use crate::checkpoint::Sources;
use crate::checkpoint::cells::{count, hours, money, name, ratio, table};
use crate::checkpoint::facts::{Facts, Held, Sum};
use crate::report::{UNOWNED, local};
use crate::table::{Kind, Table, Value};
use cardhour_domain::{CardTime, Interval, Name, Timestamp, spread_by};
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};

/// From so much output on, figures are for a million of it. Unit: the output's.
const MANY: i128 = 1_000_000;

/// Whose, and on which model: org, project, model.
type Team<'a> = [Option<&'a Name>; 3];

/// Output of one unit by one team on one model.
#[derive(Default)]
struct Line<'a> {
    amount: i128,
    jobs: BTreeSet<&'a str>,
    /// Places of what was held for it.
    pieces: BTreeSet<usize>,
}

/// The table, and what of the held time has no price.
///
/// Columns: `org project model unit jobs amount card_hours cost currency per card_hours_per cost_per output_coverage`; `per` is for how many units the two figures after it are, 1 or a million;
/// `output_coverage` what part of the team's cost on that model fell to jobs with output of that unit.
///
/// `range`: what was asked for, none for all time. An output counts in the range that holds its `at`, one without in that in which its job ended.
pub fn per_unit(sources: Sources<'_>, outputs: &[Output], range: Option<Interval>) -> (Table, Vec<Hole>) {
    let facts = Facts::of(sources);
    let held = facts.held_in(|slot| sources.slots.slot(slot).era);
    let team = |held: &Held<'_>| -> [Option<Name>; 3] {
        let owner = held.attempt.map(|attempt| facts.attempt(attempt));
        let part = |part: Option<&Name>| match owner {
            Some(owner) if !owner.is_unowned() => part.cloned(),
            _ => Some(UNOWNED.into()),
        };
        let org = owner.and_then(|owner| owner.org.as_ref());
        let project = owner.and_then(|owner| owner.project.as_ref());
        [part(org), part(project), held.model.cloned()]
    };
    let teams: Vec<[Option<Name>; 3]> = held.iter().map(team).collect();
    let team_of = |piece: usize| -> Team<'_> { teams[piece].each_ref().map(Option::as_ref) };
    let mut all: BTreeMap<Team<'_>, Sum> = BTreeMap::new();
    let mut of_job: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (piece, held) in held.iter().enumerate() {
        all.entry(team_of(piece)).or_default().add(&held.sum);
        if let Some(attempt) = held.attempt {
            of_job.entry(facts.attempt(attempt).key.job()).or_default().push(piece);
        }
    }
    let ends = ends(&facts);
    let (mut lines, mut without, mut with_output): (BTreeMap<(Team<'_>, &Name), Line<'_>>, _, BTreeSet<usize>) =
        (BTreeMap::new(), 0usize, BTreeSet::new());
    for output in outputs {
        let job = output.of.job();
        let at = output.at.or_else(|| Some(Timestamp::from_unix_ms(ends.get(&*job)?.unix_ms() - 1)));
        if let (Some(range), Some(at)) = (range, at)
            && !range.contains(at)
        {
            continue;
        }
        let of_run = |piece: &usize| match (&output.of, held[*piece].attempt) {
            (OutputOf::Attempt(key), Some(attempt)) => facts.attempt(attempt).key == *key,
            (OutputOf::Job { .. }, _) => true,
            (OutputOf::Attempt(_), None) => false,
        };
        let Some((job, pieces)) = of_job.get_key_value(&*job) else {
            without += 1;
            continue;
        };
        let pieces: Vec<usize> = pieces.iter().copied().filter(of_run).collect();
        if pieces.is_empty() {
            without += 1;
            continue;
        }
        let weights: Vec<i128> = pieces.iter().map(|piece| held[*piece].sum.held.part_ms()).collect();
        for (&piece, part) in pieces.iter().zip(spread_by(i128::from(output.amount), &weights)) {
            let line = lines.entry((team_of(piece), &output.unit)).or_default();
            line.amount += part;
            line.jobs.insert(job);
            line.pieces.insert(piece);
            with_output.insert(piece);
        }
    }
    let rows = lines.iter().map(|((team, unit), line)| {
        let sum = Sum::of(line.pieces.iter().map(|piece| &held[*piece].sum));
        row(*team, unit, line, &sum, all[team].cost, facts.currency())
    });
    let columns = [
        ("org", Kind::Text),
        ("project", Kind::Text),
        ("model", Kind::Text),
        ("unit", Kind::Text),
        ("jobs", Kind::Count),
        ("amount", Kind::Count),
        ("card_hours", Kind::Hours),
        ("cost", Kind::Money),
        ("currency", Kind::Text),
        ("per", Kind::Count),
        ("card_hours_per", Kind::Hours),
        ("cost_per", Kind::Money),
        ("output_coverage", Kind::Ratio),
    ];
    let zone = facts.zone();
    let time = range.map_or("all time".to_owned(), |range| {
        format!("{} to {}", local(zone, range.start()), local(zone, range.end()))
    });
    let mut table = table(&format!("output, {time}, {zone}"), &columns, rows.collect());
    table.notes = notes(&facts, &held, &with_output, without, range.is_some());
    (table, facts.holes().to_vec())
}

/// When the last run of each job ended, or up to when it is known to have held its cards.
fn ends<'a>(facts: &Facts<'a>) -> BTreeMap<&'a str, Timestamp> {
    let mut ends = BTreeMap::new();
    for (_, attempt) in facts.attempts() {
        if let Some(held) = attempt.held {
            let end = ends.entry(attempt.key.job()).or_insert(held.end());
            *end = held.end().max(*end);
        }
    }
    ends
}

fn row(
    team: Team<'_>,
    unit: &Name,
    line: &Line<'_>,
    sum: &Sum,
    cost_of_all: Option<i128>,
    currency: Option<cardhour_domain::Currency>,
) -> Vec<Value> {
    let mut row: Vec<Value> = team.into_iter().map(name).collect();
    row.extend([Value::Text(unit.clone()), count(line.jobs.len()), counted(line.amount)]);
    row.push(hours(sum.held));
    row.extend(money(sum.cost, currency));
    let per = if line.amount >= MANY { MANY } else { 1 };
    row.push(Value::Count(u64::try_from(per).expect("above zero")));
    let divided = |whole: Decimal| {
        let amount = Decimal::from_i128_with_scale(line.amount, 0);
        let mut each = whole.checked_mul(Decimal::from_i128_with_scale(per, 0))?.checked_div(amount)?.round_dp(6);
        each.rescale(6);
        Some(each)
    };
    row.push(ratio(divided(sum.held.card_hours())));
    row.push(ratio(sum.cost.and_then(|cost| divided(Decimal::from_i128_with_scale(cost, 6)))));
    // Ratios of money as of time: six decimals, half to even.
    let part = sum
        .cost
        .zip(cost_of_all)
        .and_then(|(cost, all)| CardTime::from_part_ms(cost).ratio_of(CardTime::from_part_ms(all)));
    row.push(ratio(part));
    row
}

/// As a count; what is beyond 64 bits, as much as they hold.
fn counted(amount: i128) -> Value {
    Value::Count(u64::try_from(amount).unwrap_or(u64::MAX))
}

fn notes(
    facts: &Facts<'_>,
    held: &[Held<'_>],
    with_output: &BTreeSet<usize>,
    without: usize,
    has_range: bool,
) -> Vec<String> {
    let mut notes = vec![
        "a job with several units of output stands in each one's row with all of its cost: rows of different units don't add up".to_owned(),
    ];
    if has_range {
        notes.push(
            "an output counts in the time that holds its `at`, one without in that in which its job ended; cost and hours are those of the time asked for"
                .to_owned(),
        );
    }
    let all = Sum::of(held.iter().map(|held| &held.sum));
    let known = Sum::of(with_output.iter().map(|piece| &held[*piece].sum));
    if let Some(part) = known.held.ratio_of(all.held) {
        notes.push(format!(
            "{} of the held card-hours are of jobs with output",
            crate::checkpoint::cells::percent(part)
        ));
    }
    if without > 0 {
        notes.push(format!("{without} outputs are of jobs or runs that held no card in this time, and are in no row"));
    }
    if facts.currency().is_none() {
        notes.push("no price book: hours without money".to_owned());
    }
    notes.extend(describe_holes(facts.holes()));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ReportKind, ReportQuery};
    use crate::world::{World, at, book, check, query, range};
    use cardhour_domain::AttemptKey;

    const TWO: &str = "[[price]]\nfrom = \"2016-01-01\"\nper_card_hour = \"2\"\n";

    fn of(job: &str, unit: &str, amount: i64, when: Option<&str>) -> Output {
        let of = OutputOf::Job { cluster: "c".into(), job_id: job.into() };
        Output { of, unit: unit.into(), amount, at: when.map(at) }
    }

    fn made(world: &World, outputs: &[Output], range: Option<Interval>, prices: Option<&str>) -> Table {
        let book = prices.map(book);
        let query = ReportQuery { range, ..query(ReportKind::Usage, "") };
        let slots = query.slots(world.all(), book.as_ref(), world.zone).unwrap();
        let input = world.input(&slots);
        per_unit(Sources { input: &input, slots: &slots, book: book.as_ref(), all: world.all() }, outputs, range).0
    }

    /// Ann's job ran twice on H200, for 4 and 6 h, and once on T4 for 10; bob's for 5 h and brought nothing.
    fn world() -> World {
        World::jobs(
            "1 lab vision ann q failed    H200 n1 1 2026-05-11T00:00 2026-05-11T04:00
             1 lab vision ann q completed H200 n1 1 2026-05-11T06:00 2026-05-11T12:00
             2 lab vision bob q completed H200 n1 1 2026-05-11T00:00 2026-05-11T05:00
             3 lab vision ann q completed T4   n2 1 2026-05-11T00:00 2026-05-12T00:00",
        )
    }

    /// By hand at 2 USD: job 1 cost 20 for 10 card-hours and 4,000,000 tokens: 5 USD and 2.5 card-hours a million; of vision's 30 USD on H200 two thirds. Job 3 cost 48 for 3
    /// experiments, 16 each, and for 24 samples, 2 each. Of 39 card-hours 34 have output.
    #[test]
    fn a_unit_costs_what_the_jobs_with_output_cost_divided_by_it() {
        let outputs = [
            of("1", "tokens", 4_000_000, None),
            of("3", "experiments", 3, None),
            of("3", "samples", 24, None),
            of("9", "tokens", 1, None),
        ];
        let made = made(&world(), &outputs, None, Some(TWO));
        check(
            &made,
            "org project model unit jobs amount card_hours cost currency per card_hours_per cost_per output_coverage",
            "lab vision H200 tokens 1 4000000 10.000000 20.000000 USD 1000000 2.500000 5.000000 0.666667
             lab vision T4 experiments 1 3 24.000000 48.000000 USD 1 8.000000 16.000000 1.000000
             lab vision T4 samples 1 24 24.000000 48.000000 USD 1 1.000000 2.000000 1.000000",
        );
        assert!(made.notes.iter().any(|note| note.starts_with("87.2 % of the held card-hours")), "{:?}", made.notes);
        assert!(made.notes.iter().any(|note| note.starts_with("1 outputs are of jobs")), "{:?}", made.notes);
    }

    /// By hand: the run that completed has 6 of the job's 10 h, 12 USD.
    #[test]
    fn an_output_of_one_run_costs_what_that_run_did() {
        let of = OutputOf::Attempt(AttemptKey::new("c", "1", "s1"));
        let output = Output { of, unit: "samples".into(), amount: 6, at: None };
        check(
            &made(&world(), &[output], None, Some(TWO)),
            "amount card_hours cost cost_per",
            "6 6.000000 12.000000 2.000000",
        );
    }

    /// By hand: a job for 5 h on H200 and, in another run, 15 h on T4 brought 100: a quarter and three quarters by card-time. Nothing costs anything that anybody knows.
    #[test]
    fn output_of_a_job_on_two_models_is_spread_by_card_time() {
        let world = World::jobs(
            "1 lab vision ann q failed    H200 n1 1 2026-05-11T00:00 2026-05-11T05:00
             1 lab vision ann q completed T4   n2 1 2026-05-11T06:00 2026-05-11T21:00",
        );
        check(
            &made(&world, &[of("1", "samples", 100, None)], None, None),
            "model jobs amount card_hours cost cost_per card_hours_per output_coverage",
            "H200 1 25 5.000000 - - 0.200000 -
             T4 1 75 15.000000 - - 0.200000 -",
        );
    }

    /// By hand: of the 12th job 3 is the last that ended, with its first day outside; the output that was counted on the 11th isn't of that day.
    #[test]
    fn an_output_counts_in_the_time_it_was_counted_in_or_its_job_ended_in() {
        let outputs =
            [of("3", "samples", 10, None), of("1", "samples", 7, Some("2026-05-11T12:00")), of("1", "tokens", 5, None)];
        let on = |from, to| made(&world(), &outputs, Some(range(from, to)), Some(TWO));
        check(&on("2026-05-12", "2026-05-13"), "unit", "");
        check(&on("2026-05-11", "2026-05-12"), "model unit amount", "H200 samples 7\nH200 tokens 5\nT4 samples 10");
    }
}
