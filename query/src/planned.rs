//! What a scheduler should do with the pool as it stood at a moment, by quotas, priorities and what the books know: worked out, audited and shown. Nothing
//! is carried out.
//!
//! Start at [`Books::plan`]. Does not: decide, which the scheduler core does from the snapshot that `planned/pool.rs` makes.

pub(crate) mod pool;

use crate::books::Books;
use crate::error::Error;
use crate::settings_file;
use cardhour_books::quotas::Quotas;
use cardhour_books::report::local;
use cardhour_books::slots::Slots;
use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_domain::{CardTime, Interval, Name, Timestamp};
use cardhour_ledger::Reading;
use cardhour_scheduler_core::plan::{Action, Step};
use cardhour_scheduler_core::{Plan, Policy, audit, decide};
use pool::{Months, Owner, Pool};
use std::collections::{BTreeMap, BTreeSet};

/// The name of the quotas in a ledger's folder.
pub const QUOTAS_FILE: &str = "quotas.toml";

/// Past usage is of so many weeks, each counting half of the one after it.
const WEEKS: u32 = 4;
const WEEK_MS: i64 = 7 * 24 * 3_600_000;

/// A plan, for people and programs.
#[derive(Clone, Debug)]
pub struct Planned {
    /// A row a step.
    pub table: Table,
    /// Whether the auditor found fault with it, which is a defect: nothing may be carried out by it.
    pub is_faulty: bool,
}

impl Books {
    /// What `quotas.toml` in the ledger's folder says; nothing where there is none. Errors: it can't be read, or is faulty.
    pub fn quotas(&self) -> Result<Quotas, Error> {
        let Some(path) = self.ledger().folder().map(|folder| folder.join(QUOTAS_FILE)) else {
            return Ok(Quotas::default());
        };
        let Some(text) = settings_file::read(&path)? else { return Ok(Quotas::default()) };
        Quotas::parse(&text).map_err(|faults| Error::Quotas { path, faults })
    }

    /// What should be done with each cluster's cards at `asked`; none: at the last moment that the books speak of, which is the latest that is taken.
    ///
    /// Errors: `quotas.toml` is faulty; the ledger's own.
    pub async fn plan(&self, asked: Option<Timestamp>) -> Result<Planned, Error> {
        let quotas = self.quotas()?;
        let reading = self.ledger().read().await?;
        let Some(last) = reading.last_word() else {
            let mut table = table("plan, empty books".to_owned(), Vec::new());
            self.remark(&mut table);
            return Ok(Planned { table, is_faulty: false });
        };
        let at = asked.map_or(last, |asked| asked.min(last));
        let standing = reading.standing(at).await?;
        let past = self.past_usage(&reading, at).await?;
        let months = self.planned_months(&reading, &quotas, at).await?;
        let mut clusters: BTreeSet<Name> = standing.nodes.iter().map(|node| node.cluster.clone()).collect();
        clusters.extend(standing.running.iter().chain(&standing.waiting).map(|attempt| attempt.cluster.clone()));
        let policy = Policy::default();
        let (mut rows, mut notes, mut is_faulty) = (Vec::new(), Vec::new(), false);
        for cluster in clusters {
            let pool = Pool::new(&cluster, at, &standing, &quotas, &past, &months);
            if pool.snapshot.hosts.is_empty() {
                notes.push(format!(
                    "{cluster:?}: no node with cards is known then, so nothing is planned: cardhour import nodes"
                ));
                continue;
            }
            let (snapshot, policy_of) = (pool.snapshot.clone(), policy.clone());
            let making = tokio::task::spawn_blocking(move || {
                let plan = decide(&snapshot, &policy_of);
                let faults = audit(&snapshot, &policy_of, &plan);
                (plan, faults)
            });
            let (plan, faults): (Plan, _) = making.await.expect("a plan is made or its fault is a defect of ours");
            is_faulty |= !faults.is_empty();
            notes.push(pool.summary(&plan));
            notes.extend(pool.left_out);
            notes.extend(faults.iter().map(|fault| format!("{cluster:?}: the auditor finds a fault: {fault:?}")));
            let numbered = (1..).zip(&plan.steps);
            rows.extend(numbered.map(|(number, step)| row(&cluster, number, step)));
        }
        let mut table = table(format!("plan, {}, {}", local(self.zone(), at), self.zone()), rows);
        if quotas.quotas.is_empty() {
            notes.push(format!("no quotas: {QUOTAS_FILE} in the ledger's folder says who is guaranteed what"));
        }
        notes.push("shadow: nothing was started, moved or ended by this".to_owned());
        table.notes = notes;
        self.remark(&mut table);
        Ok(Planned { table, is_faulty })
    }

    /// What the month's card-hours change for new work, where quotas have buckets of them.
    async fn planned_months(&self, reading: &Reading, quotas: &Quotas, at: Timestamp) -> Result<Months, Error> {
        if !quotas.have_months() {
            return Ok(Months::default());
        }
        let off_peak = self.is_off_peak(at)?;
        let Some(months) = self.quota_months(reading, quotas, at).await? else { return Ok(Months::default()) };
        Ok(Months::of(months.standings.into_iter().map(|(_, standing)| standing), off_peak))
    }

    /// Card-time of each owner in the weeks before a moment, each week counting half of the one after it.
    async fn past_usage(&self, reading: &Reading, at: Timestamp) -> Result<BTreeMap<Owner, CardTime>, Error> {
        let mut past: BTreeMap<Owner, CardTime> = BTreeMap::new();
        let end = at.bucket_start();
        for week in 0..WEEKS {
            let ends = end.unix_ms() - i64::from(week) * WEEK_MS;
            let Some(span) = Interval::new(Timestamp::from_unix_ms(ends - WEEK_MS), Timestamp::from_unix_ms(ends))
            else {
                continue;
            };
            let slots =
                Slots::new(span, None, self.zone(), None).map_err(|source| cardhour_ledger::Error::Cut { source })?;
            let input = reading.input(&slots).await?;
            for cell in &input.cells {
                let Some(attempt) = cell.attempt.map(|attempt| &input.attempts[attempt as usize]) else { continue };
                let owner = Owner::of(&attempt.org, &attempt.project, &attempt.user);
                *past.entry(owner).or_default() += CardTime::from_part_ms(cell.card_time.part_ms() >> week);
            }
        }
        Ok(past)
    }
}

fn table(title: String, rows: Vec<Vec<Value>>) -> Table {
    let columns = [
        ("cluster", Kind::Text),
        ("step", Kind::Count),
        ("action", Kind::Text),
        ("job", Kind::Text),
        ("queue", Kind::Text),
        ("cards", Kind::Hours),
        ("lost_card_hours", Kind::Hours),
        ("what", Kind::Text),
    ];
    Table {
        title,
        columns: columns.map(|(name, kind)| Column { name: name.to_owned(), kind }).to_vec(),
        rows,
        total: None,
        notes: Vec::new(),
    }
}

fn row(cluster: &Name, number: u64, step: &Step) -> Vec<Value> {
    vec![
        Value::Text(cluster.clone()),
        Value::Count(number),
        Value::Text(action_name(&step.action).into()),
        Value::Text(step.job.as_str().into()),
        Value::Text(step.queue.as_str().into()),
        Value::Decimal(step.evidence.cards.cards()),
        Value::Decimal(step.evidence.lost.card_hours()),
        Value::Text(step.words().into()),
    ]
}

/// What a step's action is called in tables.
fn action_name(action: &Action) -> &'static str {
    match action {
        Action::Admit(_) => "start",
        Action::Reserve { .. } => "reserve",
        Action::Evict { .. } => "evict",
        Action::Shrink { .. } => "shrink",
        Action::Move { .. } => "move",
        Action::Requeue => "requeue",
        Action::Wait => "wait",
    }
}
