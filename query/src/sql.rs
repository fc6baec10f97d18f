//! SQL over the tables: read-only, bounded in time, memory and rows.
//!
//! Nothing but the tables can be named: no files, no other stores. Start at [`run`].

mod views;

use crate::answer::Rows;
use crate::config::{SqlLimits, duration_text};
use crate::error::Error;
use arrow::record_batch::RecordBatch;
use cardhour_ledger::DeltaTable;
use datafusion::common::config::Dialect;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures::TryStreamExt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use tokio::runtime::{Builder, Runtime};

/// Whether a query may ask for a table that is worked out on demand. A name inside a text or a comment is a needless yes.
pub fn mentions(query: &str, table: &str) -> bool {
    query.to_ascii_lowercase().contains(table)
}

/// The rows of `query`; `made` are tables that are worked out on demand, and go before those that are stored. Errors: it isn't SQL, names what isn't there, writes, takes too long, needs too much memory, or gives
/// too many rows; a cut answer is never given.
pub async fn run(
    tables: Vec<(&'static str, DeltaTable)>,
    made: Vec<(&'static str, RecordBatch)>,
    query: &str,
    limits: SqlLimits,
) -> Result<Rows, Error> {
    let query = query.to_owned();
    let answer = async move {
        let session = session(tables, made, &query, limits).await?;
        let plan = plan(session.state(), &query).await?;
        let options = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        options.verify_plan(&plan).map_err(|_| Error::SqlWrites)?;
        let frame = session.execute_logical_plan(plan).await.map_err(of_query)?;
        let mut stream = frame.execute_stream().await.map_err(of_query)?;
        let schema = stream.schema();
        let (mut batches, mut rows) = (Vec::new(), 0u64);
        while let Some(batch) = stream.try_next().await.map_err(of_query)? {
            rows += batch.num_rows() as u64;
            if rows > limits.max_rows {
                return Err(Error::SqlRows { most: limits.max_rows });
            }
            batches.push(batch);
        }
        Ok(Rows { schema, batches })
    };
    let timeout = || Error::SqlTimeout { after: duration_text(limits.timeout) };
    let working = Working(engine()?.spawn(answer));
    tokio::time::timeout(limits.timeout, working).await.map_err(|_| timeout())?
}

/// Work on the engine's threads, which ends when nobody waits for it any more.
struct Working(tokio::task::JoinHandle<Result<Rows, Error>>);

impl Future for Working {
    type Output = Result<Rows, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|done| done.expect("a query is answered or its fault is a defect of ours"))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Threads on which queries are worked out, and nothing else: a join of everything with everything doesn't yield for seconds, and reports,
/// metrics and `/healthz` must not wait for it. Errors: the system gives no threads.
fn engine() -> Result<&'static Runtime, Error> {
    static ENGINE: LazyLock<io::Result<Runtime>> =
        LazyLock::new(|| Builder::new_multi_thread().thread_name("cardhour-sql").enable_all().build());
    ENGINE.as_ref().map_err(|error| Error::Stream { doing: "start threads for SQL", source: error.kind().into() })
}

async fn session(
    tables: Vec<(&'static str, DeltaTable)>,
    made: Vec<(&'static str, RecordBatch)>,
    query: &str,
    limits: SqlLimits,
) -> Result<SessionContext, Error> {
    let memory = usize::try_from(limits.memory_mib.saturating_mul(1 << 20)).unwrap_or(usize::MAX);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
        .build_arc()
        .map_err(of_session)?;
    let mut config = SessionConfig::new().with_information_schema(true);
    // With the generic dialect, `select state, cluster` ends at the comma: it takes CLUSTER for the next clause.
    config.options_mut().sql_parser.dialect = Dialect::PostgreSQL;
    let session = SessionContext::new_with_config_rt(config, runtime);
    for name in UNBOUNDED_FUNCTIONS {
        session.deregister_udf(name);
    }
    for name in UNBOUNDED_TABLE_FUNCTIONS {
        session.deregister_udtf(name);
    }
    for (name, table) in tables.into_iter().filter(|(name, _)| made.iter().all(|(made, _)| made != name)) {
        table.update_datafusion_session(&session.state()).map_err(|error| of_session(error.into()))?;
        let provider = table.table_provider().await.map_err(of_session)?;
        session.register_table(name, provider).map_err(of_session)?;
    }
    for (name, rows) in made {
        session.register_batch(name, rows).map_err(of_session)?;
    }
    views::register(&session, query).await.map_err(of_session)?;
    Ok(session)
}

/// Functions that make much of little. Constants are folded while a query is planned, where neither the limit of time nor
/// that of memory reaches: `length(repeat('x', 2000000000))` would hold a core for 20 s.
const UNBOUNDED_FUNCTIONS: &[&str] = &[
    "repeat",
    "lpad",
    "rpad",
    "range",
    "generate_series",
    "array_repeat",
    "list_repeat",
    "array_resize",
    "list_resize",
];

/// Their twins in FROM.
const UNBOUNDED_TABLE_FUNCTIONS: &[&str] = &["range", "generate_series"];

/// Plans on a thread of its own: planning does not yield, and a slow plan must not hold up other answers.
async fn plan(state: SessionState, query: &str) -> Result<LogicalPlan, Error> {
    let query = query.to_owned();
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(state.create_logical_plan(&query)))
        .await
        .expect("planning does not panic")
        .map_err(of_query)
}

/// What went wrong with a query: by far most are its own words.
fn of_query(error: DataFusionError) -> Error {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => Error::SqlMemory { source: Box::new(error) },
        DataFusionError::IoError(_) | DataFusionError::ObjectStore(_) | DataFusionError::Internal(_) => {
            of_session(error)
        }
        _ => Error::Sql { source: Box::new(error) },
    }
}

fn of_session(error: DataFusionError) -> Error {
    Error::Engine { source: Box::new(error) }
}
