//! The fold under every report: cells to rows, rows to sums.

use super::capacity::Capacity;
use super::input::{ReportInput, is_failed};
use super::money::Pieces;
use super::query::{ReportKind, ReportQuery};
use super::rows::{Place, RowKey, Rows};
use super::sums::{Asked, Sums, in_proportion};
use crate::attempt::Name;
use crate::bill::{Leaves, NO_LEAF};
use crate::cell::Cell;
use crate::prices::PriceBook;
use crate::slots::{Era, Slots};
use cardhour_domain::{CardState, CardTime, Interval};
use rustc_hash::FxHashMap;

/// In place of a row's: the report doesn't tell of the cell.
pub(crate) const NO_ROW: u32 = u32::MAX;

/// All rows of a report with what they add up.
pub(crate) struct Fold<'a> {
    /// In order of their values; also those that a range cuts off.
    pub rows: Vec<RowKey>,
    /// Of each row.
    pub sums: Vec<Sums>,
    /// Of the rows that are shown.
    pub total: Sums,
    /// Row of each cell, [`NO_ROW`] for one the report doesn't tell of.
    pub row_of_cell: Vec<u32>,
    pub leaves: Leaves<'a>,
    pub pieces: Pieces,
    /// Clusters that hold cards of which nobody says how many there are.
    pub without_capacity: Vec<&'a Name>,
}

impl<'a> Fold<'a> {
    pub fn of(input: &'a ReportInput, slots: &'a Slots, book: Option<&'a PriceBook>, query: &ReportQuery) -> Self {
        let ReportQuery { report, ref by, range, .. } = *query;
        let leaves = Leaves::of(input, slots, book);
        let mut rows = Rows::new(by, input.attempts.len(), slots, book);
        let row_of_cell = rows_of_cells(input, &leaves, &mut rows, report);
        let never_held = if counts_jobs(report) { rows_of_never_held(input, range, &mut rows) } else { Vec::new() };
        let capacity =
            (report == ReportKind::Capacity || report == ReportKind::Coverage).then(|| Capacity::of(input, slots));
        let rows_of_capacity: Vec<u32> = capacity
            .iter()
            .flat_map(|capacity| &capacity.groups)
            .map(|group| {
                let (nobody, place) = (rows.nobody(None), rows.place(group.place));
                rows.row(nobody, place, group.slot, None)
            })
            .collect();

        let (rows, place_of) = rows.finish();
        let row_of_cell: Vec<u32> =
            row_of_cell.into_iter().map(|row| if row == NO_ROW { NO_ROW } else { place_of[row as usize] }).collect();
        let mut sums = vec![Sums::default(); rows.len()];
        for (cell, &row) in input.cells.iter().zip(&row_of_cell).filter(|(_, row)| **row != NO_ROW) {
            sums[row as usize].add_cell(cell);
        }
        for (group, row) in capacity.iter().flat_map(|capacity| &capacity.groups).zip(rows_of_capacity) {
            let sums = &mut sums[place_of[row as usize] as usize];
            *sums.capacity.get_or_insert_default() += group.capacity;
            sums.over_capacity += group.over;
            sums.unaccounted += group.unaccounted;
            sums.unaccounted_of_capacity += group.unaccounted;
        }
        if let Some(capacity) = &capacity {
            add_unaccounted_of_capacity(input, &row_of_cell, capacity, &mut sums);
        }
        let mut total = Sums::default();
        if counts_jobs(report) {
            let never_held = never_held.into_iter().map(|(row, attempt)| (place_of[row as usize], attempt));
            add_attempts(input, &row_of_cell, never_held, &rows, &mut sums, &mut total);
        }
        let pieces = Pieces::of(&leaves, &input.cells, &row_of_cell);
        if let Some(book) = book {
            for (sums, money) in sums.iter_mut().zip(pieces.by_row(&leaves, book, rows.len())) {
                sums.money = money;
            }
        }
        for (_, sums) in rows.iter().zip(&sums).filter(|(key, _)| key.era == Era::Shown) {
            total.add(sums);
        }
        let without_capacity = capacity.map_or_else(Vec::new, |capacity| capacity.unknown);
        Self { rows, sums, total, row_of_cell, leaves, pieces, without_capacity }
    }
}

/// Whether the report has the columns `jobs` and `attempts`, and what goes by attempts.
fn counts_jobs(report: ReportKind) -> bool {
    match report {
        ReportKind::Usage | ReportKind::Bill | ReportKind::Owners => true,
        ReportKind::Capacity | ReportKind::Coverage => false,
    }
}

/// Whether the report tells of time in `state`.
fn tells_of(report: ReportKind, state: CardState) -> bool {
    match report {
        ReportKind::Usage | ReportKind::Bill | ReportKind::Owners => state == CardState::Held,
        ReportKind::Coverage => state == CardState::Held || state == CardState::Unaccounted,
        ReportKind::Capacity => true,
    }
}

fn rows_of_cells<'a>(input: &'a ReportInput, leaves: &Leaves<'a>, rows: &mut Rows<'a>, report: ReportKind) -> Vec<u32> {
    let owners: FxHashMap<(&str, &str), [Option<&'a Name>; 3]> = input
        .reservations
        .iter()
        .map(|set_aside| {
            let owner = [set_aside.org.as_ref(), set_aside.project.as_ref(), set_aside.user.as_ref()];
            ((&*set_aside.cluster, &*set_aside.name), owner)
        })
        .collect();
    let mut numbers = Vec::with_capacity(input.cells.len());
    for (i, cell) in input.cells.iter().enumerate() {
        if !tells_of(report, cell.state) {
            numbers.push(NO_ROW);
            continue;
        }
        let attempt = match (cell.attempt, &cell.reservation) {
            (Some(index), _) => rows.attempt(index, &input.attempts[index as usize]),
            (None, Some(name)) => rows.nobody(owners.get(&(&*cell.cluster, &**name)).copied()),
            (None, None) => rows.nobody(None),
        };
        let place = rows.place(place(cell));
        let leaf = leaves.of_cell(i);
        let price = if leaf == NO_LEAF { None } else { leaves.all()[leaf as usize].price };
        numbers.push(rows.row(attempt, place, cell.slot, price));
    }
    numbers
}

fn place(cell: &Cell) -> Place<'_> {
    Place {
        cluster: Some(&cell.cluster),
        pool: cell.pool.as_ref(),
        node: cell.node.as_ref(),
        model: cell.model.as_ref(),
    }
}

/// Attempts that never held anything are in the row of what is known of them, with place and time absent; in a report of a
/// range, those that were submitted in it.
fn rows_of_never_held<'a>(input: &'a ReportInput, range: Option<Interval>, rows: &mut Rows<'a>) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for (index, attempt) in (0..).zip(&input.attempts).filter(|(_, attempt)| attempt.never_held()) {
        let submitted_in = |range: Interval| attempt.submitted_at.is_some_and(|at| range.contains(at));
        if range.is_none_or(submitted_in) {
            let group = rows.attempt(index, attempt);
            let place = rows.place(Place { cluster: Some(&attempt.cluster), ..Place::default() });
            found.push((rows.row_without_time(group, place), index));
        }
    }
    found
}

/// Unaccounted time of clusters whose capacity is known, for the coverage of a pool.
fn add_unaccounted_of_capacity(input: &ReportInput, row_of_cell: &[u32], capacity: &Capacity<'_>, sums: &mut [Sums]) {
    let cells = input.cells.iter().zip(row_of_cell);
    for (cell, &row) in cells.filter(|(cell, row)| cell.state == CardState::Unaccounted && **row != NO_ROW) {
        if !capacity.unknown.contains(&&cell.cluster) {
            sums[row as usize].unaccounted_of_capacity += cell.card_time;
        }
    }
}

/// What goes by attempts: how many there are and of how many jobs, what failed, what was asked for.
fn add_attempts(
    input: &ReportInput,
    row_of_cell: &[u32],
    never_held: impl Iterator<Item = (u32, u32)>,
    rows: &[RowKey],
    sums: &mut [Sums],
    total: &mut Sums,
) {
    let mut seen: Vec<(u32, u32)> = never_held.collect();
    // Attempts whose asked cards aren't those they had: summed by row first, so that cuts change nothing (LED-7).
    let mut resized: FxHashMap<(u32, u32), CardTime> = FxHashMap::default();
    for (cell, &row) in input.cells.iter().zip(row_of_cell) {
        let (CardState::Held, Some(index)) = (cell.state, cell.attempt) else {
            if cell.state == CardState::Held {
                sums[row as usize].asked = Asked::Unknown;
            }
            continue;
        };
        let attempt = &input.attempts[index as usize];
        let row_sums = &mut sums[row as usize];
        seen.push((row, index));
        if is_failed(attempt.state) {
            row_sums.failed += cell.card_time;
        }
        match attempt.cards_requested {
            None => row_sums.asked = Asked::Unknown,
            Some(asked) if asked == attempt.cards => row_sums.asked.add(&Asked::Known(cell.card_time)),
            Some(_) => *resized.entry((row, index)).or_default() += cell.card_time,
        }
    }
    for ((row, index), held) in resized {
        let attempt = &input.attempts[index as usize];
        let asked = attempt.cards_requested.expect("only those that say it");
        sums[row as usize].asked.add(&match attempt.cards.parts() {
            0 => Asked::Unknown,
            had => Asked::Known(in_proportion(held, asked.parts(), had)),
        });
    }

    seen.sort_unstable();
    seen.dedup();
    let jobs = jobs(input);
    let shown = |row: u32| rows[row as usize].era == Era::Shown;
    let (mut all_attempts, mut all_jobs) = (vec![false; input.attempts.len()], vec![false; input.attempts.len()]);
    for &(row, index) in seen.iter().filter(|(row, _)| shown(*row)) {
        sums[row as usize].attempts += 1;
        all_attempts[index as usize] = true;
        all_jobs[jobs[index as usize] as usize] = true;
    }
    let count = |marks: &[bool]| marks.iter().filter(|mark| **mark).count() as u64;
    (total.attempts, total.jobs) = (count(&all_attempts), count(&all_jobs));
    let mut of_jobs: Vec<(u32, u32)> = seen.into_iter().map(|(row, index)| (row, jobs[index as usize])).collect();
    of_jobs.sort_unstable();
    of_jobs.dedup();
    for (row, _) in of_jobs {
        sums[row as usize].jobs += 1;
    }
}

/// The number of each attempt's job.
fn jobs(input: &ReportInput) -> Vec<u32> {
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    let mut jobs = Vec::with_capacity(input.attempts.len());
    for attempt in &input.attempts {
        let next = numbers.len() as u32;
        jobs.push(*numbers.entry(attempt.key.job()).or_insert(next));
    }
    jobs
}
