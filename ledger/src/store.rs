//! The only file that commits to Delta Lake.
//!
//! What it stands for: a commit either lands on exactly the version it was planned against, or not at all ([`Outcome::Lost`]): then the caller
//! loads again and plans again. delta-rs would rather merge: it lets a repeated transaction id through, and two compactions of one
//! snapshot both commit and double the rows. So no retry of its own is ever used, nor its `optimize`, and what must not
//! happen twice is decided on the snapshot that the commit is checked against.

mod table_files;

use crate::Error;
use crate::files::{self, Wanted};
use crate::tables::closings::Closing;
use crate::tables::{ALL, OF_CLOSINGS, OF_NODES, OF_SERVICE, Table, stored_type};
use arrow::record_batch::RecordBatch;
use cardhour_domain::{Month, Timestamp};
use chrono::Utc;
use deltalake::kernel::transaction::{CommitBuilder, CommitProperties, TransactionError};
use deltalake::kernel::{Action, Add, DataType, PrimitiveType, Remove, StructField, StructType, Transaction};
use deltalake::protocol::{DeltaOperation, SaveMode};
use deltalake::{DeltaTable, DeltaTableBuilder, DeltaTableError};
use futures::TryStreamExt;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use table_files::TableFiles;
use url::Url;

/// Key of the table property that holds our schema version.
const SCHEMA_PROPERTY: &str = "cardhour.schema";

/// The mark that says how many rows a table has: what every commit of ours put in, less what it took out. Other writers leave it as it is.
pub(crate) const ROWS: &str = "cardhour.rows";

/// The version of the table that [`ROWS`] is the count of.
const ROWS_AT: &str = "cardhour.rows-at";

/// Where the tables of one ledger lie.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    root: Url,
}

/// One version of one table.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) table: Table,
    pub(crate) delta: DeltaTable,
    pub(crate) files: Vec<FileView>,
}

/// A live file of a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct FileView {
    pub(crate) path: String,
    pub(crate) size: i64,
    /// The UTC day it is the partition of.
    pub(crate) day: Option<i32>,
    stats: Option<String>,
    partition: HashMap<String, Option<String>>,
}

/// A file that a commit is to add.
///
/// Its rows are made when they are about to be encoded, so that of many files no more rows are in memory than there are cores.
pub(crate) struct NewFile {
    pub(crate) path: String,
    day: Option<i32>,
    rows: Box<dyn FnOnce() -> RecordBatch + Send>,
}

/// What a commit changes.
#[derive(Default)]
pub(crate) struct Change {
    /// Files to add.
    pub(crate) add: Vec<NewFile>,
    /// Files to take out, by path.
    pub(crate) remove: Vec<FileView>,
    /// Numbers to remember in the table's state, by name.
    pub(crate) marks: BTreeMap<String, i64>,
    /// Notes for the table's history.
    pub(crate) notes: BTreeMap<String, Value>,
    /// Whether the rows stay the same and only lie in other files.
    pub(crate) rewrite_only: bool,
}

/// A change whose files are written.
pub(crate) struct Written {
    files: Vec<Add>,
    rows: i64,
    change: Change,
}

/// What became of a commit.
pub(crate) enum Outcome {
    /// It landed.
    Landed,
    /// Somebody committed since the snapshot: load and plan again.
    Lost,
}

impl NewFile {
    /// Of the rows that `rows` makes, of one day in a table by day.
    pub(crate) fn new(day: Option<i32>, rows: impl FnOnce() -> RecordBatch + Send + 'static) -> Self {
        let name = format!("part-{}.snappy.parquet", uuid::Uuid::new_v4());
        let path = day.map_or_else(|| name.clone(), |day| format!("day={}/{name}", day_text(day)));
        Self { path, day, rows: Box::new(rows) }
    }

    /// Of rows that a closing freezes: its month and id are in the file's name, so that files of one that never landed are known as such.
    pub(crate) fn of_closing(
        day: Option<i32>,
        closing: &Closing,
        rows: impl FnOnce() -> RecordBatch + Send + 'static,
    ) -> Self {
        let file = Self::new(day, rows);
        Self { path: file.path.replace("part-", &format!("{}{}-", of_month(closing.month), closing.id)), ..file }
    }

    /// Of rows that are there already.
    pub(crate) fn of(day: Option<i32>, rows: RecordBatch) -> Self {
        Self::new(day, || rows)
    }
}

impl Store {
    pub(crate) fn new(root: Url) -> Self {
        Self { root }
    }

    fn url(&self, table: &Table) -> Result<Url, Error> {
        self.root
            .join(&format!("{}/", table.name))
            .map_err(|e| Error::Place { place: self.root.to_string(), reason: e.to_string() })
    }

    /// Whether a table was made, as far as a look into a local folder can tell.
    pub(crate) fn is_there(&self, table: &Table) -> Result<bool, Error> {
        Ok(self.url(table)?.to_file_path().map_or(true, |path| path.join("_delta_log").exists()))
    }

    /// Every table that there is or must be: all of records, what nodes told once, what closed months froze, what the service itself once made.
    pub(crate) async fn tables(&self) -> Result<Vec<Table>, Error> {
        let mut tables = ALL.to_vec();
        for table in OF_NODES.iter().chain(OF_CLOSINGS).chain(OF_SERVICE) {
            if self.open(table).await?.is_some() {
                tables.push(*table);
            }
        }
        Ok(tables)
    }

    /// The table at its newest version; none when it was never made.
    pub(crate) async fn open(&self, table: &Table) -> Result<Option<Snapshot>, Error> {
        if !self.is_there(table)? {
            return Ok(None);
        }
        let url = self.url(table)?;
        let delta = match deltalake::open_table(url).await {
            Ok(delta) => delta,
            Err(DeltaTableError::NotATable(_) | DeltaTableError::InvalidTableLocation(_)) => return Ok(None),
            Err(error) => return Err(Error::table("open", table.name)(error.into())),
        };
        let snapshot = Snapshot::of(*table, delta, &self.root)?;
        if snapshot.schema_version() == table.schema_version {
            return Ok(Some(snapshot));
        }
        self.with_new_columns(snapshot).await.map(Some)
    }

    /// Brings a table of an earlier landing up to today's columns. Rows that are there have nothing in the new ones.
    async fn with_new_columns(&self, snapshot: Snapshot) -> Result<Snapshot, Error> {
        let table = snapshot.table;
        let failed = |error: DeltaTableError| Error::table("add columns to", table.name)(error.into());
        let has = |delta: &DeltaTable| -> Result<HashSet<String>, Error> {
            let state = delta.snapshot().map_err(failed)?;
            Ok(state.schema().fields().map(|field| field.name().clone()).collect())
        };
        let there = has(&snapshot.delta)?;
        let missing: Vec<StructField> =
            columns(&table)?.into_iter().filter(|field| !there.contains(field.name())).collect();
        let mut delta = snapshot.delta;
        if !missing.is_empty() {
            // Another that does the same may have been faster: what counts is that they are there.
            _ = delta.clone().add_columns().with_fields(missing).await;
            delta.update_state().await.map_err(failed)?;
        }
        let properties = HashMap::from([(SCHEMA_PROPERTY.to_owned(), table.schema_version.to_string())]);
        _ = delta.clone().set_tbl_properties().with_properties(properties).with_raise_if_not_exists(false).await;
        delta.update_state().await.map_err(failed)?;
        let snapshot = Snapshot::of(table, delta, &self.root)?;
        if snapshot.schema_version() != table.schema_version {
            return Err(Error::LostRace { table: table.name, tries: 1 });
        }
        Ok(snapshot)
    }

    /// The table at its newest version, made when it isn't there.
    pub(crate) async fn open_or_create(&self, table: &Table) -> Result<Snapshot, Error> {
        if let Some(snapshot) = self.open(table).await? {
            return Ok(snapshot);
        }
        let failed = |error: DeltaTableError| Error::table("create", table.name)(error.into());
        let url = self.url(table)?;
        if let Ok(path) = url.to_file_path() {
            std::fs::create_dir_all(&path).map_err(|source| Error::File { doing: "make the folder", path, source })?;
        }
        let delta = DeltaTableBuilder::from_url(url).and_then(DeltaTableBuilder::build).map_err(failed)?;
        let created = delta
            .create()
            .with_table_name(table.name)
            .with_comment(table.comment)
            .with_columns(columns(table)?)
            .with_partition_columns(if table.by_day { vec!["day"] } else { vec![] })
            .with_configuration([
                (SCHEMA_PROPERTY, Some(table.schema_version.to_string())),
                ("delta.checkpointInterval", Some("50".to_owned())),
                stats_property(table),
            ])
            .with_raise_if_key_not_exists(false)
            .with_save_mode(SaveMode::ErrorIfExists)
            .await;
        match created {
            Ok(delta) => Snapshot::of(*table, delta, &self.root),
            // Another writer made it between the look and the making.
            Err(error) => match self.open(table).await? {
                Some(snapshot) => Ok(snapshot),
                None => Err(failed(error)),
            },
        }
    }

    /// Commits a change on exactly the version that `snapshot` is.
    pub(crate) async fn commit(&self, snapshot: &Snapshot, change: Change) -> Result<Outcome, Error> {
        let written = self.write(snapshot, change).await?;
        self.land(snapshot, written).await
    }

    /// Writes the files of a change, which no reader sees before it has landed.
    pub(crate) async fn write(&self, snapshot: &Snapshot, mut change: Change) -> Result<Written, Error> {
        let (files, rows): (Vec<Add>, Vec<i64>) =
            self.write_files(snapshot, std::mem::take(&mut change.add)).await?.into_iter().unzip();
        Ok(Written { files, rows: rows.into_iter().sum(), change })
    }

    /// Commits a change whose files are written, on exactly the version that `snapshot` is.
    pub(crate) async fn land(&self, snapshot: &Snapshot, written: Written) -> Result<Outcome, Error> {
        let table = snapshot.table;
        let failed = |error: DeltaTableError| Error::table("commit to", table.name)(error.into());
        let Written { files, rows: added, mut change } = written;
        if !change.marks.contains_key(ROWS) {
            let before = match snapshot.rows_said().await? {
                Some(said) => said,
                None => snapshot.rows_in(snapshot.files.clone()).await?,
            };
            let removed = snapshot.rows_in(change.remove.clone()).await?;
            change.marks.insert(ROWS.to_owned(), before + added - removed);
            change.marks.insert(ROWS_AT.to_owned(), snapshot.version() + 1);
        }
        let data_change = !change.rewrite_only;
        let partition_by = table.by_day.then(|| vec!["day".to_owned()]);
        let mut actions: Vec<Action> = files.into_iter().map(|add| Action::Add(Add { data_change, ..add })).collect();
        let removes = !change.remove.is_empty();
        for file in change.remove {
            actions.push(Action::Remove(Remove {
                path: file.path,
                data_change,
                deletion_timestamp: Some(Utc::now().timestamp_millis()),
                extended_file_metadata: Some(true),
                partition_values: Some(file.partition),
                size: Some(file.size),
                ..Remove::default()
            }));
        }
        let operation = if change.rewrite_only {
            DeltaOperation::Optimize { predicate: None, target_size: 0 }
        } else {
            let mode = if removes { SaveMode::Overwrite } else { SaveMode::Append };
            DeltaOperation::Write { mode, partition_by, predicate: None }
        };
        let marks = change.marks.into_iter().map(|(name, value)| Transaction::new(name, value)).collect();
        let properties = CommitProperties::default()
            .with_max_retries(0)
            .with_metadata(change.notes)
            .with_application_transactions(marks);
        let state = snapshot.delta.snapshot().map_err(failed)?;
        let committed = CommitBuilder::from(properties)
            .with_actions(actions)
            .build(Some(state), snapshot.delta.log_store(), operation)
            .await;
        match committed {
            Ok(_) => Ok(Outcome::Landed),
            Err(DeltaTableError::Transaction {
                source:
                    TransactionError::MaxCommitAttempts(_)
                    | TransactionError::CommitConflict(_)
                    | TransactionError::VersionAlreadyExists(_),
            }) => Ok(Outcome::Lost),
            Err(error) => Err(failed(error)),
        }
    }

    /// Writes files; each with how many rows it has.
    async fn write_files(&self, snapshot: &Snapshot, files: Vec<NewFile>) -> Result<Vec<(Add, i64)>, Error> {
        let table = snapshot.table;
        let store = TableFiles::new(table.name, &snapshot.delta);
        tokio::task::spawn_blocking(move || {
            let write = |NewFile { path, day, rows }: NewFile| {
                let file = files::encode(&table, &rows())?;
                let size = file.bytes.len() as i64;
                store.put(&path, file.bytes)?;
                let add = Add {
                    path,
                    partition_values: day.map(|day| ("day".to_owned(), Some(day_text(day)))).into_iter().collect(),
                    size,
                    modification_time: Utc::now().timestamp_millis(),
                    stats: Some(file.stats),
                    ..Add::default()
                };
                Ok((add, file.rows))
            };
            files::parallel(files, write).into_iter().collect()
        })
        .await
        .expect("encoding does not panic")
    }
}

impl Snapshot {
    fn of(table: Table, delta: DeltaTable, root: &Url) -> Result<Self, Error> {
        let state = delta.snapshot().map_err(|error| Error::table("open", table.name)(error.into()))?;
        let found = schema_version(state);
        if found > table.schema_version {
            let place = root.to_string();
            return Err(Error::TooNew { place, table: table.name.to_owned(), found, known: table.schema_version });
        }
        let files = state
            .log_data()
            .iter()
            .map(|file| {
                let partition = file.partition_values_map();
                let day = partition.get("day").and_then(|day| day.as_deref()).and_then(day_of_text);
                FileView { path: file.path().into_owned(), size: file.size(), day, stats: file.stats(), partition }
            })
            .collect();
        Ok(Self { table, delta, files })
    }

    /// The version of its schema.
    fn schema_version(&self) -> u32 {
        self.delta.snapshot().map_or(0, schema_version)
    }

    /// The version number.
    pub(crate) fn version(&self) -> i64 {
        self.delta.version().map_or(-1, |version| i64::try_from(version).expect("fewer than 2⁶³ commits"))
    }

    /// How many rows the table has, by what was put in and taken out ([`ROWS`]). None where nobody counted: somebody who doesn't count, such as
    /// an earlier cardhour, wrote rows since. Who only takes rows away (DELETE, UPDATE, MERGE) since is no
    /// reason not to know how many there should be.
    pub(crate) async fn rows_said(&self) -> Result<Option<i64>, Error> {
        let (Some(rows), Some(at)) = (self.mark(ROWS).await?, self.mark(ROWS_AT).await?) else { return Ok(None) };
        let Ok(since) = usize::try_from(self.version() - at) else { return Ok(None) };
        if since > 0 {
            let operations = self.operations(since).await?;
            let wrote = |operation: &Option<String>| operation.as_deref().is_none_or(|operation| operation == "WRITE");
            if operations.len() < since || operations.iter().any(wrote) {
                return Ok(None);
            }
        }
        Ok(Some(rows))
    }

    /// How many rows files have: as the log says, else as they are.
    pub(crate) async fn rows_in(&self, files: Vec<FileView>) -> Result<i64, Error> {
        let (said, unsaid): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.rows().is_some());
        let said: i64 = said.iter().filter_map(FileView::rows).sum();
        Ok(said + self.count(unsaid).await?)
    }

    /// How many rows files have, by the files themselves.
    pub(crate) async fn count(&self, files: Vec<FileView>) -> Result<i64, Error> {
        if files.is_empty() {
            return Ok(0);
        }
        let count = |batches: Vec<RecordBatch>| Ok(batches.iter().map(RecordBatch::num_rows).sum::<usize>());
        let counted = self.read_with(files, Some(&[]), &[], count).await?;
        Ok(counted.into_iter().map(|(_, rows)| i64::try_from(rows).expect("fewer than 2⁶³ rows")).sum())
    }

    /// What the newest `n` commits were. Fewer when older ones were cleaned up.
    async fn operations(&self, n: usize) -> Result<Vec<Option<String>>, Error> {
        let failed = |error: DeltaTableError| Error::table("read the history of", self.table.name)(error.into());
        let infos: Vec<_> = self.delta.history(Some(n)).try_collect().await.map_err(failed)?;
        Ok(infos.into_iter().map(|info| info.operation).collect())
    }

    /// A number that a commit left in the table's state.
    pub(crate) async fn mark(&self, name: &str) -> Result<Option<i64>, Error> {
        let failed = |error: DeltaTableError| Error::table("read the state of", self.table.name)(error.into());
        let log = self.delta.log_store();
        self.delta.snapshot().map_err(failed)?.transaction_version(log.as_ref(), name).await.map_err(failed)
    }

    /// [`Self::mark`] by a name that was put together.
    pub(crate) async fn mark_owned(&self, name: String) -> Result<Option<i64>, Error> {
        self.mark(&name).await
    }

    /// Notes of the newest `n` commits, newest first. Fewer when older ones were cleaned up.
    pub(crate) async fn notes(&self, n: usize) -> Result<Vec<HashMap<String, Value>>, Error> {
        let failed = |error: DeltaTableError| Error::table("read the history of", self.table.name)(error.into());
        let infos: Vec<_> = self.delta.history(Some(n)).try_collect().await.map_err(failed)?;
        Ok(infos.into_iter().map(|info| info.info).collect())
    }

    /// Reads the files that `keep` names, decoded on all cores; each with its day.
    pub(crate) async fn read(
        &self,
        keep: impl Fn(&FileView) -> bool,
        columns: Option<&[&str]>,
        indexed: &[&str],
    ) -> Result<Vec<(FileView, Vec<RecordBatch>)>, Error> {
        let wanted: Vec<FileView> = self.files.iter().filter(|file| keep(file)).cloned().collect();
        self.read_with(wanted, columns, indexed, Ok).await
    }

    /// Files that can't be read from end to end, each with why; read one by one, all of their columns.
    pub(crate) async fn unreadable(&self) -> Vec<(String, Error)> {
        let mut out = Vec::new();
        for file in &self.files {
            if let Err(error) = self.read_with(vec![file.clone()], None, &[], |_| Ok(())).await {
                out.push((file.path.clone(), error));
            }
        }
        out
    }

    /// Reads files and does `fold` to each one's rows, on all cores.
    pub(crate) async fn read_with<T: Send + 'static>(
        &self,
        files: Vec<FileView>,
        columns: Option<&[&str]>,
        indexed: &[&str],
        fold: impl Fn(Vec<RecordBatch>) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<Vec<(FileView, T)>, Error> {
        let table = self.table.name;
        let store = TableFiles::new(table, &self.delta);
        let columns: Option<Vec<String>> = columns.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
        let indexed: Vec<String> = indexed.iter().map(|n| (*n).to_owned()).collect();
        tokio::task::spawn_blocking(move || {
            let columns: Option<Vec<&str>> = columns.as_ref().map(|names| names.iter().map(String::as_str).collect());
            let indexed: Vec<&str> = indexed.iter().map(String::as_str).collect();
            let wanted = Wanted { columns: columns.as_deref(), indexed: &indexed };
            let read = |file: FileView| {
                let rows = store.get(&file.path)?.decode(table, wanted)?;
                fold(rows).map(|done| (file, done))
            };
            files::parallel(files, read).into_iter().collect()
        })
        .await
        .expect("reading does not panic")
    }
}

impl FileView {
    /// How many rows it has, where the log says so.
    fn rows(&self) -> Option<i64> {
        let stats: Value = serde_json::from_str(self.stats.as_deref()?).ok()?;
        stats.get("numRecords")?.as_i64()
    }

    /// The least and the greatest of an instant's column, where the log has them.
    pub(crate) fn bounds(&self, name: &str) -> Option<(Timestamp, Timestamp)> {
        let stats: Value = serde_json::from_str(self.stats.as_deref()?).ok()?;
        let bound = |side: &str| Timestamp::parse_rfc3339(stats.get(side)?.get(name)?.as_str()?).ok();
        bound("minValues").zip(bound("maxValues"))
    }

    /// Whether it was written by one of some closings.
    pub(crate) fn is_of<'a>(&self, mut closings: impl Iterator<Item = &'a Closing>) -> bool {
        closings.any(|closing| self.path.contains(&format!("{}{}-", of_month(closing.month), closing.id)))
    }

    /// Whether it was written by a closing of that month.
    pub(crate) fn is_of_month(&self, month: Month) -> bool {
        self.path.contains(&of_month(month))
    }

    /// Whether the file may have rows whose stretch `from..to` overlaps [start, end); yes where its bounds aren't known.
    pub(crate) fn may_overlap(&self, from: &str, to: &str, start: Timestamp, end: Timestamp) -> bool {
        let starts_late = self.bounds(from).is_some_and(|(least, _)| least >= end);
        let ends_early = self.bounds(to).is_some_and(|(_, most)| most < start);
        !starts_late && !ends_early
    }
}

/// How names of files begin that a closing of a month wrote. Stability: stands in ledgers; pinned by the test `a_closing_is_known_by_its_files`.
fn of_month(month: Month) -> String {
    format!("closing-{month}-")
}

/// A day as the partition writes it.
pub(crate) fn day_text(day: i32) -> String {
    Timestamp::from_utc_day(day).to_utc().map_or_else(|| day.to_string(), |utc| utc.format("%Y-%m-%d").to_string())
}

fn day_of_text(text: &str) -> Option<i32> {
    Timestamp::parse_rfc3339(&format!("{text}T00:00:00Z")).ok().map(Timestamp::utc_day)
}

/// Tells other readers of which columns the log has bounds. Without it they take a column that has none for one without values, and
/// Python's reader leaves every file out of a filtered read.
fn stats_property(table: &Table) -> (&'static str, Option<String>) {
    match table.bounds {
        [] => ("delta.dataSkippingNumIndexedCols", Some("0".to_owned())),
        bounds => ("delta.dataSkippingStatsColumns", Some(bounds.join(","))),
    }
}

/// The columns of a table in Delta's types.
fn schema_version(state: &deltalake::table::state::DeltaTableState) -> u32 {
    state.metadata().configuration().get(SCHEMA_PROPERTY).and_then(|version| version.parse().ok()).unwrap_or(0)
}

fn columns(table: &Table) -> Result<Vec<StructField>, Error> {
    let mut fields = Vec::new();
    for field in (table.schema)().fields() {
        let stored = stored_type(field);
        let kind = match &stored {
            arrow::datatypes::DataType::Utf8 => PrimitiveType::String,
            arrow::datatypes::DataType::Int64 => PrimitiveType::Long,
            arrow::datatypes::DataType::Boolean => PrimitiveType::Boolean,
            arrow::datatypes::DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, Some(_)) => {
                PrimitiveType::Timestamp
            }
            arrow::datatypes::DataType::Decimal128(precision, scale) => {
                PrimitiveType::decimal(*precision, u8::try_from(*scale).expect("no negative scales"))
                    .map_err(|e| Error::table("create", table.name)(e.into()))?
            }
            // A closed list: what Delta has no type for, or a type that can't be read back, must not get this far.
            other => unreachable!("column {} of {} is of type {other}", field.name(), table.name),
        };
        fields.push(StructField::new(field.name(), DataType::Primitive(kind), field.is_nullable()));
    }
    if table.by_day {
        fields.push(StructField::new("day", DataType::Primitive(PrimitiveType::Date), true));
    }
    StructType::try_new(fields.clone()).map_err(|e| Error::table("create", table.name)(e.into()))?;
    Ok(fields)
}

#[cfg(test)]
mod tests;
