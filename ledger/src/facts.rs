//! The facts that books are derived from, as the tables have them at one moment.

use crate::Error;
use crate::columns::Interned;
use crate::files::parallel_small;
use crate::store::{Snapshot, Store};
use crate::tables::{self, FACTS, coverage, jobs, nodes, outages, reservations, telemetry};
use cardhour_books::cluster::Cluster;
use cardhour_books::holdings::Claim;
use cardhour_books::inventory::add_seen;
use cardhour_books::observed::Seen;
use cardhour_books::split::AttemptFacts;
use cardhour_books::versions::Versioned;
use cardhour_domain::columns::Rows;
use cardhour_domain::{AttemptKey, Name, NodeEvent, Stream, Timestamp};
use rayon::slice::ParallelSliceMut;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Rows of `jobs` that this process has just written, by the path of their file: they need not be read back.
#[derive(Default)]
pub(crate) struct FreshJobs {
    pub(crate) by_path: HashMap<String, Arc<Vec<Versioned>>>,
}

/// One version of every fact table.
pub(crate) struct Facts {
    snapshots: Vec<Snapshot>,
}

impl Facts {
    /// The newest versions. A table that was never made is made, but those of what nodes told.
    pub(crate) async fn load(store: &Store) -> Result<Self, Error> {
        let opened = futures::future::try_join_all(FACTS.iter().map(|table| store.open_or_create(table)));
        let told = Stream::ALL.map(|stream| async move { store.open(&telemetry::of(stream)).await });
        let (mut snapshots, told) = futures::future::try_join(opened, futures::future::try_join_all(told)).await?;
        snapshots.extend(told.into_iter().flatten());
        Ok(Self { snapshots })
    }

    /// Every fact table that there is.
    pub(crate) fn all(&self) -> &[Snapshot] {
        &self.snapshots
    }

    /// What nodes told in one stream; none where no node ever did.
    pub(crate) fn told(&self, stream: Stream) -> Option<&Snapshot> {
        let name = telemetry::of(stream).name;
        self.snapshots.iter().find(|s| s.table.name == name)
    }

    /// All rows of a stream on the days that `keep` names.
    pub(crate) async fn rows(&self, stream: Stream, keep: impl Fn(i32) -> bool) -> Result<Vec<Rows>, Error> {
        let Some(snapshot) = self.told(stream) else { return Ok(Vec::new()) };
        let files = snapshot.files.iter().filter(|file| file.day.is_none_or(&keep)).cloned().collect();
        let read = move |batches: Vec<arrow::record_batch::RecordBatch>| {
            batches.iter().map(|batch| telemetry::rows(stream, batch)).collect::<Result<Vec<_>, _>>()
        };
        Ok(snapshot.read_with(files, None, &[], read).await?.into_iter().flat_map(|(_, rows)| rows).collect())
    }

    /// Everything that nodes told of who held what; none where no node ever told anything.
    pub(crate) async fn seen(&self) -> Result<Option<Seen>, Error> {
        if Stream::ALL.into_iter().all(|stream| self.told(stream).is_none()) {
            return Ok(None);
        }
        let mut seen = Seen::default();
        for stream in [Stream::Observations, Stream::Watches, Stream::Devices] {
            for rows in self.rows(stream, |_| true).await? {
                match rows {
                    Rows::Observations(rows) => seen.observations.extend(rows),
                    Rows::Watches(rows) => seen.watches.extend(rows),
                    Rows::Devices(rows) => seen.devices.extend(rows),
                    _ => unreachable!("rows are of the stream that was asked for"),
                }
            }
        }
        Ok(Some(seen))
    }

    /// Class and state of every attempt of records: what the split of its time asks of it.
    pub(crate) async fn attempts(&self) -> Result<BTreeMap<AttemptKey, AttemptFacts>, Error> {
        let jobs = self.of(&jobs::JOBS);
        let read = |batches: Vec<arrow::record_batch::RecordBatch>| {
            let mut out = Vec::new();
            for batch in &batches {
                out.extend(jobs::attempt_facts(batch)?);
            }
            Ok(out)
        };
        let parts = jobs.read_with(jobs.files.clone(), Some(jobs::FACT_COLUMNS), &[], read).await?;
        Ok(parts.into_iter().flat_map(|(_, rows)| rows).collect())
    }

    pub(crate) async fn events(&self) -> Result<Vec<NodeEvent>, Error> {
        let of = |rows| if let Rows::Events(rows) = rows { rows } else { unreachable!("rows are of one stream") };
        Ok(self.rows(Stream::Events, |_| true).await?.into_iter().flat_map(of).collect())
    }

    pub(crate) fn of(&self, table: &tables::Table) -> &Snapshot {
        self.snapshots.iter().find(|s| s.table.name == table.name).expect("every fact table is loaded")
    }

    /// What derived tables remember: the version of each fact table they were made from.
    pub(crate) fn marks(&self) -> BTreeMap<String, i64> {
        self.snapshots.iter().map(|s| (s.table.name.to_owned(), s.version())).collect()
    }

    /// All clusters that have nodes, reservations, outages or exports, with what their nodes told of themselves.
    pub(crate) async fn clusters(&self, seen: Option<&Seen>) -> Result<BTreeMap<Name, Cluster>, Error> {
        let mut names = Interned::default();
        let mut clusters: BTreeMap<Name, Cluster> = BTreeMap::new();
        for (_, batches) in self.of(&nodes::NODES).read(|_| true, None, &[]).await? {
            for batch in batches {
                for node in nodes::rows(&batch, &mut names)? {
                    clusters.entry(node.cluster.clone()).or_default().nodes.push(node);
                }
            }
        }
        for (_, batches) in self.of(&reservations::RESERVATIONS).read(|_| true, None, &[]).await? {
            for batch in batches {
                for reservation in reservations::rows(&batch, &mut names)? {
                    clusters.entry(reservation.cluster.clone()).or_default().reservations.push(reservation);
                }
            }
        }
        for (_, batches) in self.of(&outages::OUTAGES).read(|_| true, None, &[]).await? {
            for batch in batches {
                for outage in outages::rows(&batch, &mut names)? {
                    clusters.entry(outage.cluster.clone()).or_default().outages.push(outage);
                }
            }
        }
        for (_, batches) in self.of(&coverage::COVERAGE).read(|_| true, None, &[]).await? {
            for batch in batches {
                for coverage in coverage::rows(&batch, &mut names)? {
                    clusters.entry(coverage.cluster.clone()).or_default().cover(&coverage);
                }
            }
        }
        for cluster in clusters.values_mut() {
            // Files come in any order; the books must not depend on it.
            cluster.nodes.sort_by(|a, b| a.node.cmp(&b.node));
            cluster.reservations.sort_by(|a, b| (&a.name, a.during).cmp(&(&b.name, b.during)));
            cluster.outages.sort_by(|a, b| (a.during, &a.nodes).cmp(&(b.during, &b.nodes)));
        }
        if let Some(seen) = seen {
            add_seen(&mut clusters, seen, &self.events().await?);
        }
        Ok(clusters)
    }

    /// The claims of attempts that held something in [from, to), at least; by start and key.
    pub(crate) async fn claims(&self, from: Timestamp, to: Timestamp, fresh: &FreshJobs) -> Result<Vec<Claim>, Error> {
        let jobs = self.of(&jobs::JOBS);
        let files = jobs.files.iter().filter(|f| f.may_overlap("started_at", "as_of", from, to));
        let (known, stored): (Vec<_>, Vec<_>) = files.partition(|file| fresh.by_path.contains_key(&file.path));
        let known: Vec<&Versioned> = known.iter().flat_map(|file| fresh.by_path[&file.path].iter()).collect();
        let claims = parallel_small(known, |(attempt, _)| Claim::of(attempt));
        // Not `flatten`, which would copy them: this keeps them where they are.
        #[allow(clippy::filter_map_identity, reason = "a copy of all claims is a tenth of an import's memory")]
        let mut claims: Vec<Claim> = claims.into_iter().filter_map(|claim| claim).collect();
        let files = stored.into_iter().cloned().collect();
        let parts = jobs
            .read_with(files, Some(jobs::CLAIM_COLUMNS), &[], |batches| {
                let mut names = Interned::default();
                let mut claims = Vec::new();
                for batch in &batches {
                    jobs::claims(batch, &mut names, &mut claims)?;
                }
                Ok(claims)
            })
            .await?;
        claims.extend(parts.into_iter().flat_map(|(_, claims)| claims));
        claims.par_sort_unstable_by(|a, b| (a.during.start(), &a.key).cmp(&(b.during.start(), &b.key)));
        Ok(claims)
    }
}
