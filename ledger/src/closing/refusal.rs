//! What speaks against closing a month.

use super::Reading;
use crate::Error;
use crate::billed::Billed;
use crate::columns::{Interned, Rows, opt_instant};
use crate::store::Snapshot;
use crate::tables::jobs::JOBS;
use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use cardhour_books::bill::describe_holes;
use cardhour_books::statement::Coverage;
use cardhour_domain::{AttemptKey, CardState, Interval, Month, Name, Timestamp, Zone};
use rust_decimal::Decimal;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Open attempts that a refusal names; more are counted.
const MOST_NAMED: usize = 5;

/// Why a month can't be closed, or only with a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It isn't over.
    NotOver {
        /// The month.
        month: Month,
        /// When it is.
        ends: Timestamp,
    },
    /// It lies before the first month that was closed.
    BeforeTheFirst {
        /// The first month that was closed.
        first: Month,
    },
    /// Nothing is booked in it, nor before it.
    Nothing {
        /// The first month in which something is.
        first: Option<Month>,
    },
    /// Months are closed one after the other.
    NotTheNext {
        /// The month that is next.
        next: Month,
    },
    /// Months before it have usage and will never be closed, if this is the first.
    EarlierOpen {
        /// The first of them.
        first: Month,
    },
    /// Held and billed time has no price.
    Holes {
        /// What the price book lacks, in words.
        holes: Vec<String>,
    },
    /// Costs of the month can't be booked.
    Unbooked {
        /// Which, and why, in words.
        costs: Vec<String>,
    },
    /// Later facts of closed months owe what can't stand in it.
    Uncorrected {
        /// Each, in words.
        owed: Vec<String>,
    },
    /// Too little of it is proven.
    Coverage {
        /// What of it: the held time, or the pool's.
        of: &'static str,
        /// How much is.
        proven: Decimal,
        /// How much has to be.
        least: Decimal,
    },
    /// What is priced by measured energy or use was seen too little.
    Seen {
        /// What time it is, in words.
        of: String,
        /// How much of it was seen.
        seen: Decimal,
        /// How much has to be.
        least: Decimal,
    },
    /// A source doesn't speak for all of it.
    AsOf {
        /// The cluster.
        cluster: Name,
        /// Until when somebody does; none: never.
        until: Option<Timestamp>,
        /// When the month ends.
        ends: Timestamp,
        /// Attempts that were open then.
        open: Vec<AttemptKey>,
    },
}

impl Refusal {
    /// Whether a reason that is signed by name is enough to close the month nevertheless.
    pub fn yields_to_sign_off(&self) -> bool {
        match self {
            Self::EarlierOpen { .. }
            | Self::Uncorrected { .. }
            | Self::Coverage { .. }
            | Self::Seen { .. }
            | Self::AsOf { .. } => true,
            Self::NotOver { .. }
            | Self::BeforeTheFirst { .. }
            | Self::Nothing { .. }
            | Self::NotTheNext { .. }
            | Self::Holes { .. }
            | Self::Unbooked { .. } => false,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOver { month, ends } => write!(f, "{month} isn't over before {ends}"),
            Self::BeforeTheFirst { first } => {
                write!(f, "the first month that was closed is {first}, and no month before it ever will be")
            }
            Self::Nothing { first: Some(first) } => write!(f, "nothing is booked before {first}"),
            Self::Nothing { first: None } => f.write_str("nothing is booked"),
            Self::NotTheNext { next } => write!(f, "months are closed one after the other, and {next} is the next"),
            Self::EarlierOpen { first } => write!(
                f,
                "there is usage since {first}: close months from there on, or months before this one never will be"
            ),
            Self::Holes { holes } => write!(f, "the price book has holes: {}", holes.join("; ")),
            Self::Unbooked { costs } => write!(f, "costs can't be booked: {}", costs.join("; ")),
            Self::Uncorrected { owed } => {
                write!(f, "closed months owe what can't stand in this one: {}", owed.join("; "))
            }
            Self::Coverage { of, proven, least } => {
                let percent = |part: &Decimal| (part * Decimal::ONE_HUNDRED).normalize();
                write!(f, "{} % of {of} is proven, and {} % has to be", percent(proven), percent(least))
            }
            Self::Seen { of, seen, least } => {
                let percent = |part: &Decimal| (part * Decimal::ONE_HUNDRED).normalize();
                write!(f, "{} % of {of} was seen, and {} % has to be", percent(seen), percent(least))
            }
            Self::AsOf { cluster, until, ends, open } => {
                let until = until.map_or_else(|| "at no time".to_owned(), |until| format!("until {until}"));
                write!(f, "the sources of cluster {cluster:?} speak {until}, and the month ends at {ends}")?;
                let named: Vec<&str> = open.iter().take(MOST_NAMED).map(AttemptKey::as_str).collect();
                match open.len().saturating_sub(MOST_NAMED) {
                    _ if open.is_empty() => Ok(()),
                    0 => write!(f, "; open attempts: {}", named.join(", ")),
                    more => write!(f, "; open attempts: {} and {more} more", named.join(", ")),
                }
            }
        }
    }
}

/// All of them, in the order in which somebody would mend them.
pub(super) async fn refusals(
    reading: &Reading,
    zone: Zone,
    billed: &Billed,
    coverage: Coverage,
    now: Timestamp,
) -> Result<Vec<Refusal>, Error> {
    let month = billed.month;
    let during = month.interval(zone);
    let mut out = Vec::new();
    if now < during.end() {
        out.push(Refusal::NotOver { month, ends: during.end() });
    }
    match (reading.closings().first(), reading.open_month()) {
        (Some(first), _) if month < first.month => out.push(Refusal::BeforeTheFirst { first: first.month }),
        (_, Some(next)) if month != next => out.push(Refusal::NotTheNext { next }),
        (None, _) => match first_month(reading, zone) {
            Some(first) if first < month => out.push(Refusal::EarlierOpen { first }),
            Some(first) if first == month => {}
            first => out.push(Refusal::Nothing { first }),
        },
        _ => {}
    }
    if !billed.holes.is_empty() {
        out.push(Refusal::Holes { holes: describe_holes(&billed.holes) });
    }
    if !billed.unbooked.is_empty() {
        out.push(Refusal::Unbooked { costs: billed.unbooked.clone() });
    }
    if !billed.uncorrected.is_empty() {
        out.push(Refusal::Uncorrected { owed: billed.uncorrected.clone() });
    }
    let least = billed.policy.minimum_coverage();
    for (of, proven) in [("the held time", coverage.proven()), ("the pool's time", pool(billed))] {
        if let Some(proven) = proven.filter(|proven| *proven < least) {
            out.push(Refusal::Coverage { of, proven, least });
        }
    }
    let least = billed.policy.minimum_seen();
    let unseen = billed.seen.iter().filter(|part| part.part() < least);
    out.extend(unseen.map(|part| Refusal::Seen { of: part.of.clone(), seen: part.part(), least }));
    let before = reading.closings().last().map(|last| last.month.interval(zone).start());
    out.extend(as_of(reading, billed, during, before).await?);
    Ok(out)
}

/// The month of the first bucket of usage.
fn first_month(reading: &Reading, zone: Zone) -> Option<Month> {
    let least = reading.usage.files.iter().filter_map(|file| file.bounds("bucket_start")).map(|(least, _)| least).min();
    zone.month(least?)
}

/// 1 − unaccounted ÷ capacity (LED-3); none where capacity isn't known.
fn pool(billed: &Billed) -> Option<Decimal> {
    let capacity: cardhour_domain::CardTime = billed.input.capacity.iter().map(|cell| cell.card_time).sum();
    let known: BTreeSet<&Name> = billed.input.capacity.iter().map(|cell| &cell.cluster).collect();
    let unaccounted =
        |cell: &&cardhour_books::cell::Cell| cell.state == CardState::Unaccounted && known.contains(&cell.cluster);
    let unaccounted = billed.input.cells.iter().filter(unaccounted).map(|cell| cell.card_time).sum();
    (capacity - unaccounted).ratio_of(capacity)
}

/// Clusters whose sources don't speak for all of the month. One that said nothing since `before`, the start of the last closed month, was missed when that
/// was closed, and isn't asked for again unless it has usage.
async fn as_of(
    reading: &Reading,
    billed: &Billed,
    during: Interval,
    before: Option<Timestamp>,
) -> Result<Vec<Refusal>, Error> {
    let with_usage: BTreeSet<Name> = billed.input.cells.iter().map(|cell| cell.cluster.clone()).collect();
    let seen = reading.facts.seen().await?;
    let known = reading.facts.clusters(seen.as_ref()).await?;
    let mut open = open_attempts(reading.facts.of(&JOBS), during).await?;
    let mut out = Vec::new();
    let clusters: BTreeSet<Name> = with_usage.iter().chain(known.keys()).cloned().collect();
    for name in clusters {
        let until = known.get(&name).and_then(|cluster| {
            let covered = cluster.covered.iter().map(|covered| covered.end()).max();
            let watched = cluster.watched.iter().flat_map(|card| &card.during).map(|looked| looked.end()).max();
            covered.max(watched)
        });
        let open = open.remove(&name).unwrap_or_default();
        let is_gone = before.is_some_and(|before| until.is_none_or(|until| until < before));
        let is_retired = known.get(&name).is_some_and(|cluster| {
            let retired = |node: &cardhour_books::site::Node| node.retired_at.is_some_and(|at| at <= during.start());
            !cluster.nodes.is_empty() && cluster.nodes.iter().all(retired)
        });
        if !with_usage.contains(&name) && open.is_empty() && (is_gone || is_retired) {
            continue;
        }
        if until.is_none_or(|until| until < during.end()) || !open.is_empty() {
            out.push(Refusal::AsOf { cluster: name, until, ends: during.end(), open });
        }
    }
    Ok(out)
}

/// Attempts that aren't over and whose source vouches for a part of the month alone, by cluster.
async fn open_attempts(jobs: &Snapshot, during: Interval) -> Result<BTreeMap<Name, Vec<AttemptKey>>, Error> {
    let files = jobs
        .files
        .iter()
        .filter(|file| file.may_overlap("started_at", "as_of", during.start(), during.end()))
        .cloned()
        .collect();
    let read = move |batches: Vec<RecordBatch>| {
        let (mut names, mut out) = (Interned::default(), Vec::new());
        for batch in &batches {
            let rows = Rows::new(JOBS.name, batch);
            let (keys, clusters) = (rows.text("attempt_key")?, rows.text("cluster")?);
            let (starts, as_of) = (rows.instants("started_at")?, rows.instants("as_of")?);
            let finals = rows.boolean("is_final")?;
            for row in 0..batch.num_rows() {
                let (start, vouched) = (opt_instant(starts, row), opt_instant(as_of, row));
                let began = start.is_some_and(|start| start < during.end());
                let ends_inside = vouched.is_none_or(|at| during.start() <= at && at < during.end());
                if began && ends_inside && finals.is_valid(row) && !finals.value(row) {
                    out.push((names.get(clusters.value(row)), AttemptKey::from_stored(keys.value(row))));
                }
            }
        }
        Ok(out)
    };
    let columns = ["attempt_key", "cluster", "started_at", "as_of", "is_final"];
    let mut open: BTreeMap<Name, Vec<AttemptKey>> = BTreeMap::new();
    for (cluster, key) in jobs.read_with(files, Some(&columns), &[], read).await?.into_iter().flat_map(|(_, rows)| rows)
    {
        open.entry(cluster).or_default().push(key);
    }
    open.values_mut().for_each(|keys| keys.sort());
    Ok(open)
}
