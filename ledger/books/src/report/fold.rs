//! The fold under every report: cells to rows, rows to sums.

use super::bundles::{BundlePlace, Bundles};
use super::capacity::{Capacity, GroupCapacity};
use super::input::ReportInput;
use super::measure::Measure;
use super::money::Pieces;
use super::query::{ReportKind, ReportQuery};
use super::rows::{Place, RowKey, Rows};
use super::sums::{Asked, Sums, in_proportion};
use crate::bill::{Leaves, NO_LEAF};
use crate::prices::PriceBook;
use crate::slots::{Era, Slots};
use cardhour_domain::{CardState, CardTime, Interval, Name};
use rustc_hash::{FxBuildHasher, FxHashMap};

/// In place of a row's number: the report doesn't tell of it.
const NO_ROW: u32 = u32::MAX;

/// All rows of a report with what they add up.
pub(crate) struct Fold<'a> {
    /// In order of their values; also those that a range cuts off.
    pub rows: Vec<RowKey>,
    /// Of each row.
    pub sums: Vec<Sums>,
    /// Of the rows that are shown.
    pub total: Sums,
    /// Row and attempt of those that never held anything.
    pub never_held: Vec<(u32, u32)>,
    row_of_bundle: Vec<u32>,
    bundle_of_cell: Vec<u32>,
    pub leaves: Leaves<'a>,
    pub pieces: Pieces,
    /// Clusters that hold cards of which nobody says how many there are.
    pub without_capacity: Vec<&'a Name>,
}

impl<'a> Fold<'a> {
    pub fn of(input: &'a ReportInput, slots: &'a Slots, book: Option<&'a PriceBook>, query: &ReportQuery) -> Self {
        let ReportQuery { report, ref by, range, .. } = *query;
        let bundles = Bundles::of(input, by);
        let leaves = Leaves::of(&bundles, slots, book);
        let mut rows = Rows::new(by, slots, book, report.measures().contains(&Measure::Currency));
        let row_of = rows_of_bundles(&bundles, &leaves, &mut rows, report);
        let never_held =
            if counts_jobs(report) { rows_of_never_held(input, range, slots, &mut rows) } else { Vec::new() };
        let capacity = match report {
            ReportKind::Capacity | ReportKind::Coverage => Some(Capacity::of(input, slots)),
            ReportKind::Usage
            | ReportKind::Bill
            | ReportKind::Efficiency
            | ReportKind::Idle
            | ReportKind::Waste
            | ReportKind::Owners
            | ReportKind::Inventory => None,
        };
        let groups = capacity.as_ref().map_or(&[][..], |capacity| &capacity.groups);
        let nobody = rows.nobody(None);
        let mut row_of_group = |group: &GroupCapacity<'a>| {
            let place = rows.place(group.place);
            rows.row(nobody, place, group.slot, None)
        };
        let row_of_group: Vec<u32> = groups.iter().map(&mut row_of_group).collect();

        let (rows, place_of) = rows.finish();
        let in_order = |row: u32| if row == NO_ROW { NO_ROW } else { place_of[row as usize] };
        let never_held: Vec<(u32, u32)> =
            never_held.into_iter().map(|(row, attempt)| (in_order(row), attempt)).collect();
        let row_of: Vec<u32> = row_of.into_iter().map(in_order).collect();
        let mut sums = vec![Sums::default(); rows.len()];
        for (bundle, &row) in bundles.all.iter().zip(&row_of).filter(|(_, row)| **row != NO_ROW) {
            let sums = &mut sums[row as usize];
            sums.add_bundle(bundle, bundles.class(bundle));
            let known =
                capacity.as_ref().is_some_and(|capacity| !capacity.unknown.contains(&bundles.place(bundle).cluster));
            if known && bundle.state == CardState::Unaccounted {
                sums.unaccounted_of_capacity += bundle.card_time;
            }
        }
        for (group, row) in groups.iter().zip(row_of_group) {
            let sums = &mut sums[in_order(row) as usize];
            *sums.capacity.get_or_insert_default() += group.capacity;
            sums.over_capacity += group.over;
            sums.unaccounted += group.unaccounted;
            sums.unaccounted_of_capacity += group.unaccounted;
        }
        let mut total = Sums::default();
        if counts_jobs(report) {
            add_asked(input, &bundles, &row_of, &mut sums);
            let holders = bundles.holders.iter().map(|&(bundle, attempt)| (row_of[bundle as usize], attempt));
            count_jobs(input, never_held.iter().copied().chain(holders), &rows, &mut sums, &mut total);
        }
        let pieces = Pieces::of(&leaves, &bundles.all, &row_of, &rows);
        if let Some(book) = book {
            for (sums, money) in sums.iter_mut().zip(pieces.by_row(&leaves, book, rows.len())) {
                sums.money = money;
            }
        }
        for (_, sums) in rows.iter().zip(&sums).filter(|(key, _)| key.era == Era::Shown) {
            total.add(sums);
        }
        let without_capacity = capacity.map_or_else(Vec::new, |capacity| capacity.unknown);
        Self {
            rows,
            sums,
            total,
            never_held,
            row_of_bundle: row_of,
            bundle_of_cell: bundles.of_cell,
            leaves,
            pieces,
            without_capacity,
        }
    }

    /// Row of a cell; none for one the report doesn't tell of.
    pub fn row_of_cell(&self, cell: usize) -> Option<u32> {
        Some(self.row_of_bundle[self.bundle_of_cell[cell] as usize]).filter(|row| *row != NO_ROW)
    }
}

/// Whether the report has the columns `jobs` and `attempts`, and what goes by attempts.
fn counts_jobs(report: ReportKind) -> bool {
    match report {
        ReportKind::Usage
        | ReportKind::Bill
        | ReportKind::Efficiency
        | ReportKind::Idle
        | ReportKind::Waste
        | ReportKind::Owners => true,
        ReportKind::Capacity | ReportKind::Coverage | ReportKind::Inventory => false,
    }
}

/// Whether the report tells of time in `state`.
fn tells_of(report: ReportKind, state: CardState) -> bool {
    match report {
        ReportKind::Usage
        | ReportKind::Bill
        | ReportKind::Efficiency
        | ReportKind::Idle
        | ReportKind::Waste
        | ReportKind::Owners => state == CardState::Held,
        ReportKind::Coverage => state == CardState::Held || state == CardState::Unaccounted,
        ReportKind::Capacity => true,
        ReportKind::Inventory => false,
    }
}

fn rows_of_bundles<'a>(
    bundles: &Bundles<'a>,
    leaves: &Leaves<'a>,
    rows: &mut Rows<'a>,
    report: ReportKind,
) -> Vec<u32> {
    let of_class: Vec<Option<u32>> =
        bundles.classes.iter().map(|class| class.attempt.map(|attempt| rows.attempt(attempt))).collect();
    let of_place: Vec<u32> = bundles
        .places
        .iter()
        .map(|place| {
            let BundlePlace { cluster, pool, node, model, .. } = *place;
            rows.place(Place { cluster: Some(cluster), pool, node, model })
        })
        .collect();
    let mut numbers = Vec::with_capacity(bundles.all.len());
    for (bundle, &leaf) in bundles.all.iter().zip(&leaves.of_bundle) {
        if !tells_of(report, bundle.state) {
            numbers.push(NO_ROW);
            continue;
        }
        let place = of_place[bundle.place as usize];
        let held_by = of_class[bundle.class as usize];
        let attempt = held_by.unwrap_or_else(|| rows.nobody(bundles.set_aside_for(bundle)));
        let price = if leaf == NO_LEAF { None } else { leaves.all()[leaf as usize].price };
        numbers.push(rows.row(attempt, place, bundle.slot, price));
    }
    numbers
}

/// Attempts that never held anything are in the row of what is known of them, with the place absent, at the time they were submitted (else
/// started); in a report of a range, those of which that lies in it.
fn rows_of_never_held<'a>(
    input: &'a ReportInput,
    range: Option<Interval>,
    slots: &Slots,
    rows: &mut Rows<'a>,
) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for (index, attempt) in (0..).zip(&input.attempts).filter(|(_, attempt)| attempt.never_held()) {
        let at = attempt.submitted_at.or(attempt.held.map(Interval::start));
        if range.is_none_or(|range| at.is_some_and(|at| range.contains(at))) {
            let group = rows.attempt(attempt);
            let place = rows.place(Place { cluster: Some(&attempt.cluster), ..Place::default() });
            let row = match at.and_then(|at| slots.slot_of(at.bucket_start())) {
                Some(slot) => rows.row(group, place, slot, None),
                None => rows.row_without_time(group, place),
            };
            found.push((row, index));
        }
    }
    found
}

/// Card-time asked for by attempts that had other than they asked for: in proportion to what they held in a row, which was summed
/// first, so that cuts change nothing (LED-7).
fn add_asked(input: &ReportInput, bundles: &Bundles<'_>, row_of: &[u32], sums: &mut [Sums]) {
    let mut held: FxHashMap<(u32, u32), CardTime> = FxHashMap::default();
    for (&(bundle, attempt), time) in &bundles.resized {
        *held.entry((row_of[bundle as usize], attempt)).or_default() += *time;
    }
    for ((row, attempt), held) in held {
        let attempt = &input.attempts[attempt as usize];
        let asked = attempt.cards_requested.expect("only of those that say it");
        let asked = in_proportion(held, asked.parts(), attempt.cards.parts());
        sums[row as usize].asked.add(&Asked::Known(asked));
    }
}

/// Attempts and jobs of each row and of all that are shown, each once.
fn count_jobs(
    input: &ReportInput,
    in_rows: impl Iterator<Item = (u32, u32)>,
    rows: &[RowKey],
    sums: &mut [Sums],
    total: &mut Sums,
) {
    let pack = |row: u32, number: u32| u64::from(row) << 32 | u64::from(number);
    let unpack = |pair: u64| ((pair >> 32) as usize, pair as u32 as usize);
    let once = once(input);
    let mut seen: Vec<u64> = in_rows.map(|(row, attempt)| pack(row, once[attempt as usize])).collect();
    seen.sort_unstable();
    seen.dedup();
    let jobs = jobs(input);
    let (mut all_attempts, mut all_jobs) = (vec![false; input.attempts.len()], vec![false; input.attempts.len()]);
    for &pair in &seen {
        let (row, attempt) = unpack(pair);
        sums[row].attempts += 1;
        if rows[row].era == Era::Shown {
            all_attempts[attempt] = true;
            all_jobs[jobs[attempt] as usize] = true;
        }
    }
    let count = |marks: &[bool]| marks.iter().filter(|mark| **mark).count() as u64;
    (total.attempts, total.jobs) = (count(&all_attempts), count(&all_jobs));
    let mut of_jobs = seen;
    for pair in &mut of_jobs {
        let (row, attempt) = unpack(*pair);
        *pair = pack(row as u32, jobs[attempt]);
    }
    of_jobs.sort_unstable();
    of_jobs.dedup();
    for pair in of_jobs {
        sums[unpack(pair).0].jobs += 1;
    }
}

/// For each attempt the first of its key. An attempt is there twice where it changed after a month that it held cards in was closed: as it was then,
/// and as it is; then attempts are in order of their keys.
fn once(input: &ReportInput) -> Vec<u32> {
    let mut first = 0;
    let numbers = (0..).zip(&input.attempts).map(|(i, attempt)| {
        if i > 0 && input.attempts[first as usize].key == attempt.key {
            return first;
        }
        first = i;
        i
    });
    numbers.collect()
}

/// The number of each attempt's job. Attempts in order of their keys have the runs of a job side by side; those in any other
/// order are looked up.
fn jobs(input: &ReportInput) -> Vec<u32> {
    let attempts = &input.attempts;
    let mut next = 0;
    if attempts.is_sorted_by(|a, b| a.key <= b.key) {
        let same = |i: usize| i > 0 && attempts[i - 1].key.job() == attempts[i].key.job();
        return (0..attempts.len())
            .map(|i| {
                next += u32::from(i > 0 && !same(i));
                next
            })
            .collect();
    }
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::with_capacity_and_hasher(attempts.len(), FxBuildHasher);
    attempts
        .iter()
        .map(|attempt| {
            *numbers.entry(attempt.key.job()).or_insert_with(|| {
                next += 1;
                next - 1
            })
        })
        .collect()
}
