//! Keeps tables quick to read: merges small files, deletes what nobody reads any more, writes checkpoints.
//!
//! No row changes by it, and no figure. Merging is a rewrite of our own, committed on exactly the version it was planned against: delta-rs
//! lets two compactions of one snapshot both commit, and doubles the rows. A rewrite leaves no note of touched days, so that the
//! derived tables only remember the new version of their facts ([`crate::derive`]).
//!
//! Start at [`Ledger::maintain`]. Does not: touch derived tables' rows (each day of theirs is one file already).

use crate::derive::{TRIES, pause};
use crate::store::{Change, FileView, NewFile, Outcome, Snapshot};
use crate::tables::{
    OF_CLOSINGS, Table, conflicts::CONFLICTS, gaps::GAPS, holdings::HOLDINGS, observed_jobs::OBSERVED_JOBS,
    usage::USAGE,
};
use crate::{Error, Ledger};
use arrow::array::UInt32Array;
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::record_batch::RecordBatch;
use deltalake::DeltaTableError;
use deltalake::operations::vacuum::VacuumMode;
use std::collections::BTreeMap;

/// Hours for which files that are no longer part of a table are kept: a reader or writer may still be at them.
pub const RETAIN_HOURS: u32 = 168;

/// Partitions that are merged in one commit, so that memory doesn't grow with the ledger.
const PARTITIONS_AT_ONCE: usize = 64;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maintain {
    /// Hours for which files that are no longer part of a table are kept.
    pub retain_hours: u32,
    /// Whether less than [`RETAIN_HOURS`] is meant: nobody reads or writes meanwhile.
    pub force: bool,
    /// Whether nothing is to be changed, only told.
    pub dry_run: bool,
}

impl Default for Maintain {
    fn default() -> Self {
        Self { retain_hours: RETAIN_HOURS, force: false, dry_run: false }
    }
}

/// What was done to one table, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintained {
    /// The table.
    pub table: &'static str,
    /// Files it was made of.
    pub files: u64,
    /// How many of them were merged.
    pub merged: u64,
    /// Into how many.
    pub into: u64,
    /// Rows in those, which lie in other files now and are the same.
    pub rows: u64,
    /// Files that were no longer part of it and are deleted.
    pub deleted: u64,
    /// Whether a checkpoint was written, so that opening it reads no older commit.
    pub checkpoint: bool,
}

impl Ledger {
    /// Merges, deletes and writes checkpoints, table by table. Errors: a retention that is too short and not forced.
    ///
    /// Safe beside imports, reports and itself: who loses a race plans again.
    pub async fn maintain(&self, what: Maintain) -> Result<Vec<Maintained>, Error> {
        if what.retain_hours < RETAIN_HOURS && !what.force {
            return Err(Error::RetentionTooShort { asked: what.retain_hours, least: RETAIN_HOURS });
        }
        self.catch_up().await?;
        let derived = [USAGE, HOLDINGS, OBSERVED_JOBS, CONFLICTS, GAPS];
        let is_derived = |table: &&Table| derived.iter().any(|derived| derived.name == table.name);
        let mut done = Vec::new();
        let mut tables = self.store.tables().await?;
        // What closed months froze is never touched (LED-5).
        tables.retain(|table| OF_CLOSINGS.iter().all(|frozen| frozen.name != table.name));
        for table in tables.iter().filter(|table| !is_derived(table)) {
            done.push(self.maintain_table(table, what, true).await?);
        }
        // Facts have new versions now. The derived tables have to know, before they are seen to themselves.
        if !what.dry_run {
            self.catch_up().await?;
        }
        for table in tables.iter().filter(is_derived) {
            done.push(self.maintain_table(table, what, false).await?);
        }
        Ok(done)
    }

    async fn maintain_table(&self, table: &Table, what: Maintain, merges: bool) -> Result<Maintained, Error> {
        let files = self.store.open_or_create(table).await?.files.len() as u64;
        let mut done =
            Maintained { table: table.name, files, merged: 0, into: 0, rows: 0, deleted: 0, checkpoint: false };
        if merges {
            self.merge(table, what.dry_run, &mut done).await?;
        }
        done.deleted = self.delete_old(table, what).await?;
        if !what.dry_run {
            done.checkpoint = self.checkpoint(table).await?;
        }
        Ok(done)
    }

    /// Merges partitions of several files until there are none.
    async fn merge(&self, table: &Table, dry_run: bool, done: &mut Maintained) -> Result<(), Error> {
        let mut lost = 0;
        while lost < TRIES {
            let snapshot = self.store.open_or_create(table).await?;
            let plan = plan(&snapshot);
            if dry_run {
                done.merged = plan.values().map(|files| files.len() as u64).sum();
                done.into = plan.len() as u64;
                return Ok(());
            }
            if plan.is_empty() {
                return Ok(());
            }
            let now: Vec<FileView> = plan.into_values().take(PARTITIONS_AT_ONCE).flatten().collect();
            let (change, rows) = merged(&snapshot, now).await?;
            let (merged, into) = (change.remove.len() as u64, change.add.len() as u64);
            match self.store.commit(&snapshot, change).await? {
                Outcome::Landed => {
                    done.merged += merged;
                    done.into += into;
                    done.rows += rows;
                    lost = 0;
                }
                Outcome::Lost => {
                    pause(lost).await;
                    lost += 1;
                }
            }
        }
        Err(Error::LostRace { table: table.name, tries: TRIES })
    }

    /// Deletes files that left the table longer ago than the retention, and what failed commits left behind.
    async fn delete_old(&self, table: &Table, what: Maintain) -> Result<u64, Error> {
        let failed = |error: DeltaTableError| Error::table("delete old files of", table.name)(error.into());
        let vacuum = |snapshot: Snapshot, dry_run: bool| async move {
            snapshot
                .delta
                .vacuum()
                .with_mode(VacuumMode::Full)
                .with_retention_period(chrono::Duration::hours(i64::from(what.retain_hours)))
                .with_enforce_retention_duration(!what.force)
                .with_dry_run(dry_run)
                .await
                .map(|(_, metrics)| metrics.files_deleted.len() as u64)
        };
        // Looked at first: a vacuum writes two commits even if there is nothing to delete.
        let count = vacuum(self.store.open_or_create(table).await?, true).await.map_err(failed)?;
        if count == 0 || what.dry_run {
            return Ok(count);
        }
        vacuum(self.store.open_or_create(table).await?, false).await.map_err(failed)
    }

    /// Writes a checkpoint of the newest version, unless it has one.
    async fn checkpoint(&self, table: &Table) -> Result<bool, Error> {
        let failed = |error: DeltaTableError| Error::table("write a checkpoint of", table.name)(error.into());
        let snapshot = self.store.open_or_create(table).await?;
        let path = deltalake::Path::from(format!("_delta_log/{:020}.checkpoint.parquet", snapshot.version()));
        let store = snapshot.delta.object_store();
        if snapshot.version() == 0 || object_store::ObjectStoreExt::head(store.as_ref(), &path).await.is_ok() {
            return Ok(false);
        }
        deltalake::checkpoints::create_checkpoint(&snapshot.delta, None).await.map_err(failed)?;
        Ok(true)
    }
}

/// Files of partitions that have more than one.
fn plan(snapshot: &Snapshot) -> BTreeMap<Option<i32>, Vec<FileView>> {
    let mut by_day: BTreeMap<Option<i32>, Vec<FileView>> = BTreeMap::new();
    for file in &snapshot.files {
        by_day.entry(file.day).or_default().push(file.clone());
    }
    by_day.retain(|_, files| files.len() > 1);
    by_day
}

/// The rows of some files, one file a partition, sorted by their columns in order: the same rows make the same file. And how many they are.
async fn merged(snapshot: &Snapshot, files: Vec<FileView>) -> Result<(Change, u64), Error> {
    let table = snapshot.table.name;
    let mut by_day: BTreeMap<Option<i32>, Vec<RecordBatch>> = BTreeMap::new();
    for (file, batches) in snapshot.read_with(files.clone(), None, &[], Ok).await? {
        by_day.entry(file.day).or_default().extend(batches);
    }
    let add = tokio::task::spawn_blocking(move || {
        let days = by_day.into_iter().filter(|(_, batches)| !batches.is_empty()).collect();
        crate::files::parallel(days, |(day, batches)| sorted(&batches).map(|batch| (day, batch)))
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
    });
    let add = add.await.expect("sorting does not panic");
    let add = add.map_err(|error| Error::table("merge files of", table)(error.into()))?;
    let rows = add.iter().map(|(_, batch)| batch.num_rows() as u64).sum();
    let add = add.into_iter().map(|(day, batch)| NewFile::of(day, batch)).collect();
    Ok((Change { add, remove: files, rewrite_only: true, ..Change::default() }, rows))
}

fn sorted(batches: &[RecordBatch]) -> Result<RecordBatch, arrow::error::ArrowError> {
    let all = concat_batches(&batches[0].schema(), batches)?;
    let columns: Vec<SortColumn> =
        all.columns().iter().map(|values| SortColumn { values: values.clone(), options: None }).collect();
    let order: UInt32Array = lexsort_to_indices(&columns, None)?;
    take_record_batch(&all, &order)
}

#[cfg(test)]
mod tests;
