//! A small pool in a ledger of its own, and ways to damage it: for the tests of this crate.

use crate::files::encode;
use crate::store::{Change, FileView, Outcome};
use crate::tables::Table;
use crate::{Booked, Ledger};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, StringArray};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::{Decimal128Type, Int64Type, TimestampMicrosecondType};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use cardhour_books::attempt::Attempt;
use cardhour_books::prices::PriceBook;
use cardhour_books::site::{Coverage, Node, Outage, Reservation};
use cardhour_domain::{AttemptKey, CardShare, Interval, JobState, Timestamp, Zone};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A ledger in a folder that goes away with it.
pub(crate) struct Pool {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) ledger: Ledger,
}

pub(crate) fn at(text: &str) -> Timestamp {
    let text = if text.len() == 10 { format!("{text}T00:00:00Z") } else { format!("{text}Z") };
    Timestamp::parse_rfc3339(&text).unwrap()
}

pub(crate) fn during(from: &str, to: &str) -> Interval {
    Interval::new(at(from), at(to)).unwrap()
}

/// A job: `CLUSTER ID OWNER NODE CARDS FROM TO`, `-` for no node, `CARDS@CARD` for a share of one card and `?@CARD` for one that is not declared.
pub(crate) fn job(line: &str) -> Attempt {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [cluster, id, owner, node, cards, from, to] = fields[..] else { panic!("{line}") };
    let [start, end] = [at(from), at(to)];
    let key = AttemptKey::new(cluster, id, &format!("s{}", start.unix_ms() / 1000));
    let mut job = Attempt::new(key, cluster.into(), id.into(), JobState::Completed);
    let (share, card) = cards.split_once('@').map_or((cards, None), |(share, card)| (share, Some(card)));
    job.share_declared = share != "?";
    job.cards = share.parse().map_or(CardShare::ZERO, |cards| CardShare::from_decimal(cards).unwrap());
    job.card_uuid = card.map(Into::into);
    job.nodes = if node == "-" { vec![] } else { vec![node.into()] };
    job.org = Some("acme".into());
    job.project = Some(owner.into());
    job.user = Some(format!("{owner}-{}", id.len()).as_str().into());
    job.queue = Some("main".into());
    job.model = card.is_none().then(|| "A100".into()).filter(|_| cluster == "cloud");
    (job.submitted_at, job.started_at, job.ended_at, job.as_of) = (Some(start), Some(start), Some(end), Some(end));
    job.is_final = true;
    job
}

/// Jobs on three clusters: `lab` with two nodes, shared cards, an outage and a reservation; `small`, which holds more than it has;
/// `cloud`, of which nobody knows what it has.
pub(crate) fn jobs() -> Vec<Attempt> {
    let mut jobs: Vec<Attempt> = [
        "lab 1 vision a1 2 2026-03-02T10:07:13 2026-03-03T02:30:00",
        "lab 2 speech a2 2 2026-03-03T05:00:00 2026-03-03T09:10:00",
        "lab 3 paper a1 1 2026-03-03T01:00:00 2026-03-03T05:00:01",
        "lab 4 vision a2 0.5@GPU-x 2026-03-02T08:00:00 2026-03-02T12:00:00",
        "lab 5 speech a2 0.75@GPU-x 2026-03-02T09:05:00 2026-03-02T11:00:00",
        "lab 6 vision a2 ?@GPU-y 2026-03-02T08:00:00 2026-03-02T10:00:00",
        "lab 7 speech a2 ?@GPU-y 2026-03-02T09:00:00 2026-03-02T10:30:00",
        "small 8 speech s1 3 2026-03-02T22:00:00 2026-03-03T01:20:00",
        "cloud 9 vision - 8 2026-03-02T15:50:00 2026-03-02T16:40:00",
    ]
    .map(job)
    .into();
    jobs[2].reservation = Some("course".into());
    jobs
}

pub(crate) fn coverage() -> Vec<Coverage> {
    let covers =
        |cluster: &str| Coverage { cluster: cluster.into(), covers: during("2026-03-02", "2026-03-04T12:00:00") };
    vec![covers("lab"), covers("small")]
}

pub(crate) fn node(cluster: &str, name: &str, model: &str, cards: i64) -> Node {
    Node {
        cluster: cluster.into(),
        node: name.into(),
        model: Some(model.into()),
        cards: CardShare::from_cards(cards).unwrap(),
        memory_bytes: None,
        pool: Some("main".into()),
        in_service_at: None,
        retired_at: None,
        labels: BTreeMap::new(),
    }
}

fn nodes() -> Vec<Node> {
    let mut late = node("lab", "a2", "A100", 4);
    late.in_service_at = Some(at("2026-03-02T07:20:00"));
    late.retired_at = Some(at("2026-03-04T09:00:00"));
    vec![node("lab", "a1", "A100", 4), late, node("small", "s1", "T4", 2)]
}

/// The text of [`book`].
pub(crate) const PRICES: &str = r#"
        currency = "CNY"
        zone = "Asia/Shanghai"
        [[window]]
        name = "night"
        days = "mon-sun"
        from = "22:00"
        to = "08:00"
        [[price]]
        from = "2026-01-01"
        per_card_hour = "18.37"
        coefficient = "2.4"
        night = "0.6"
        [[price]]
        from = "2026-03-03"
        model = "A100"
        per_card_hour = "16.11"
        night = "0.5"
    "#;

pub(crate) fn book() -> PriceBook {
    PriceBook::parse(PRICES).unwrap().unwrap()
}

impl Pool {
    /// An empty ledger that bills in Shanghai.
    pub(crate) async fn empty() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("ledger");
        let zone = Zone::parse("Asia/Shanghai").unwrap();
        let ledger = Ledger::open_or_make(place.to_str().unwrap(), Some(zone), false).await.unwrap();
        Self { dir, ledger }
    }

    /// With everything of the pool booked.
    pub(crate) async fn booked() -> Self {
        let pool = Self::empty().await;
        let ledger = &pool.ledger;
        ledger.import_nodes("nodes", nodes(), vec![]).await.unwrap();
        let outage = Outage {
            cluster: "lab".into(),
            during: during("2026-03-03T06:00:00", "2026-03-03T08:05:00"),
            nodes: vec!["a2".into()],
            cards: None,
            reason: None,
        };
        ledger.import_outages("outages", vec![outage], vec![]).await.unwrap();
        let reservation = Reservation {
            cluster: "lab".into(),
            name: "course".into(),
            during: during("2026-03-03", "2026-03-03T12:00:00"),
            nodes: vec!["a1".into()],
            cards: Some(CardShare::from_cards(2).unwrap()),
            model: None,
            org: Some("acme".into()),
            project: Some("paper".into()),
            user: None,
        };
        ledger.import_reservations("reservations", vec![reservation], vec![]).await.unwrap();
        pool.import(jobs()).await;
        pool
    }

    pub(crate) async fn import(&self, jobs: Vec<Attempt>) -> Booked {
        self.ledger.import_jobs("jobs", jobs, vec![], coverage()).await.unwrap()
    }

    /// Every row of a table, file by file.
    pub(crate) async fn rows(&self, table: &Table) -> Vec<(FileView, RecordBatch)> {
        let snapshot = self.ledger.store.open_or_create(table).await.unwrap();
        let files = snapshot.read(|_| true, None, &[]).await.unwrap();
        files
            .into_iter()
            .inspect(|(file, batches)| assert!(!batches.is_empty(), "{} of {} is empty", file.path, table.name))
            .map(|(file, batches)| (file, concat_batches(&batches[0].schema(), &batches).unwrap()))
            .collect()
    }

    /// Every row of the derived tables as text, in order: what two ledgers of the same facts share.
    pub(crate) async fn derived(&self) -> Vec<String> {
        use crate::tables::{
            conflicts::CONFLICTS, gaps::GAPS, holdings::HOLDINGS, observed_jobs::OBSERVED_JOBS, usage::USAGE,
        };
        let mut lines = Vec::new();
        for table in [HOLDINGS, USAGE, CONFLICTS, OBSERVED_JOBS, GAPS] {
            for (file, batch) in self.rows(&table).await {
                let options = FormatOptions::default().with_null("-");
                let columns: Vec<ArrayFormatter<'_>> =
                    batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
                for row in 0..batch.num_rows() {
                    let values: Vec<String> = columns.iter().map(|c| c.value(row).to_string()).collect();
                    lines.push(format!("{} {:?} {}", table.name, file.day, values.join("|")));
                }
            }
        }
        lines.sort();
        lines
    }

    /// How many rows a table has.
    pub(crate) async fn count(&self, table: &Table) -> usize {
        self.rows(table).await.iter().map(|(_, batch)| batch.num_rows()).sum()
    }

    /// Rewrites the first file in which `change` finds something to change, under its own name: as a bad disk or a hand would.
    pub(crate) async fn damage(&self, table: &Table, change: impl Fn(&RecordBatch) -> Option<RecordBatch>) {
        for (file, batch) in self.rows(table).await {
            if let Some(changed) = change(&batch) {
                let path = self.dir.path().join("ledger").join(table.name).join(file.path.replace("%3A", ":"));
                assert!(path.exists(), "{}", path.display());
                std::fs::write(path, encode(table, &changed).unwrap().bytes).unwrap();
                return;
            }
        }
        panic!("nothing to change in {}", table.name);
    }

    /// Commits rows beside what is there, as a writer that looks at nothing would.
    pub(crate) async fn add(&self, table: &Table, day: Option<i32>, batch: RecordBatch) {
        let snapshot = self.ledger.store.open_or_create(table).await.unwrap();
        let change = Change { add: vec![crate::store::NewFile::of(day, batch)], ..Change::default() };
        assert!(matches!(self.ledger.store.commit(&snapshot, change).await.unwrap(), Outcome::Landed));
    }
}

/// The first row of a batch of which this is so.
pub(crate) fn row_where(batch: &RecordBatch, is_it: impl Fn(&Cells<'_>, usize) -> bool) -> Option<usize> {
    (0..batch.num_rows()).find(|row| is_it(&Cells(batch), *row))
}

/// Cells of a batch by name.
pub(crate) struct Cells<'a>(pub(crate) &'a RecordBatch);

impl Cells<'_> {
    fn column(&self, name: &str) -> &ArrayRef {
        self.0.column_by_name(name).unwrap()
    }

    pub(crate) fn text(&self, name: &str, row: usize) -> &str {
        let column = self.column(name).as_string::<i32>();
        if column.is_valid(row) { column.value(row) } else { "" }
    }

    pub(crate) fn at(&self, name: &str, row: usize) -> Timestamp {
        Timestamp::from_unix_us(self.column(name).as_primitive::<TimestampMicrosecondType>().value(row))
    }
}

pub(crate) fn without(batch: &RecordBatch, row: usize) -> RecordBatch {
    let keep: BooleanArray = (0..batch.num_rows()).map(|i| Some(i != row)).collect();
    filter_record_batch(batch, &keep).unwrap()
}

/// The batch with one column of one row changed.
pub(crate) fn changed(batch: &RecordBatch, row: usize, column: &str, change: To<'_>) -> RecordBatch {
    let i = batch.schema().index_of(column).unwrap();
    let old = batch.column(i);
    let new: ArrayRef = match change {
        To::Text(text) => {
            let old = old.as_string::<i32>();
            Arc::new(
                (0..old.len())
                    .map(|r| if r == row { Some(text) } else { old.is_valid(r).then(|| old.value(r)) })
                    .collect::<StringArray>(),
            )
        }
        To::More(more) => match old.data_type() {
            arrow::datatypes::DataType::Int64 => {
                let old = old.as_primitive::<Int64Type>();
                Arc::new(
                    (0..old.len())
                        .map(|r| Some(old.value(r) + if r == row { more } else { 0 }))
                        .collect::<Int64Array>(),
                )
            }
            arrow::datatypes::DataType::Decimal128(..) => {
                let old = old.as_primitive::<Decimal128Type>();
                let more = i128::from(more);
                let new =
                    (0..old.len()).map(|r| old.is_valid(r).then(|| old.value(r) + if r == row { more } else { 0 }));
                Arc::new(new.collect::<Decimal128Array>().with_data_type(old.data_type().clone()))
            }
            _ => {
                let old = old.as_primitive::<TimestampMicrosecondType>();
                let new =
                    (0..old.len()).map(|r| old.is_valid(r).then(|| old.value(r) + if r == row { more } else { 0 }));
                Arc::new(new.collect::<arrow::array::TimestampMicrosecondArray>().with_timezone("UTC"))
            }
        },
    };
    let mut columns = batch.columns().to_vec();
    columns[i] = new;
    RecordBatch::try_new(batch.schema(), columns).unwrap()
}

/// What a cell becomes.
#[derive(Clone, Copy)]
pub(crate) enum To<'a> {
    Text(&'a str),
    /// A number, a decimal's last digit or a microsecond, so many more.
    More(i64),
}
