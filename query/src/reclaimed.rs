//! Idle reclaim, and limits that follow budgets: the one look that joins books, people and actuators.
//!
//! ```text
//! policy.toml, tables ─► round (pure) ─► decisions ─► table `decisions`
//!                                   ├──► warnings, alerts ─► the one sender ─► what was delivered: table `alerts`, read by the next look
//!                                   └──► orders ─► actuators, with their journal ─► what came of it: table `decisions`
//! ```
//!
//! In this order, so that a kill between any two is made good by the next look: decisions are written first, each under an id that is made again; then actuators write down what they
//! are about to do; leases are kept last.
//!
//! Start at [`Reclaimer::look`]. Does not: judge (`cardhour_decisions::round` does), touch a job (`cardhour_actuators` do).

mod carried;
mod limits;
mod listed;
mod replay;
mod told;
mod watch;

pub use listed::{decisions_table, leases_table};
pub use watch::Watch;

use crate::books::Books;
use crate::error::Error;
use crate::events::Channel;
use crate::settings_file;
use cardhour_decisions::decision::{Decision, DecisionKind, Mode};
use cardhour_decisions::kept::KeptLease;
use cardhour_decisions::policy::ReclaimPolicy;
use cardhour_decisions::round::{Order, Request, RoundInput, RoundOutput, SeenCheckpoint, reads_from, round};
use cardhour_domain::{Gap, Interval, Name, Reading, Timestamp};
use cardhour_ledger::Watched;
use carried::Carrier;
use std::collections::BTreeMap;
use told::Warned;

/// The name of the policy in a ledger's folder.
pub const POLICY_FILE: &str = "policy.toml";

/// What a look came to.
#[derive(Clone, Debug)]
pub struct Look {
    /// The moment that it was of.
    pub at: Timestamp,
    /// The mode in force.
    pub mode: Mode,
    /// What was decided, or came of what was.
    pub decisions: Vec<Decision>,
    /// How far it is with each job.
    pub leases: Vec<KeptLease>,
    /// What couldn't be told or carried out, each with the reason.
    pub trouble: Vec<String>,
}

/// Looks again and again, and remembers between two looks what no table has.
#[derive(Debug)]
pub struct Reclaimer {
    books: Books,
    channels: Vec<Channel>,
    warned: Warned,
    carrier: Carrier,
    stood: Option<limits::Stood>,
}

impl Books {
    /// What `policy.toml` in the ledger's folder says; the defaults where there is none. Errors: it can't be read, or is faulty.
    pub fn reclaim_policy(&self) -> Result<ReclaimPolicy, Error> {
        let Some(path) = self.ledger().folder().map(|folder| folder.join(POLICY_FILE)) else {
            return Ok(ReclaimPolicy::default());
        };
        let Some(text) = settings_file::read(&path)? else { return Ok(ReclaimPolicy::default()) };
        ReclaimPolicy::parse(&text).map_err(|faults| Error::ReclaimPolicy { path, faults })
    }

    /// Whether a site wants idle jobs to be looked for: it has a policy, or somebody set a mode.
    pub async fn is_reclaiming(&self) -> Result<bool, Error> {
        let has_policy = self.ledger().folder().is_some_and(|folder| folder.join(POLICY_FILE).exists());
        Ok(has_policy || !self.ledger().decisions(None).await?.is_empty())
    }

    /// The mode that was set last, and by which row; none where nobody set one.
    pub async fn reclaim_mode(&self) -> Result<Option<Decision>, Error> {
        let decisions = self.ledger().decisions(None).await?;
        Ok(decisions.into_iter().rfind(|decision| decision.kind == DecisionKind::Mode))
    }

    /// The attempts of the records that may hold cards now, and what nodes told of `during`. Without a node that tells anything there is no telemetry.
    async fn seen_in(
        &self,
        during: Interval,
    ) -> Result<(Vec<cardhour_books::attempt::Attempt>, Option<Watched>), Error> {
        let reading = self.ledger().read().await?;
        let running = reading.running(during.end()).await?;
        Ok((running, reading.watched(during).await?))
    }
}

impl Reclaimer {
    /// Of these books, telling by these channels.
    pub fn new(books: Books, channels: Vec<Channel>) -> Self {
        Self { books, channels, warned: Warned::default(), carrier: Carrier::default(), stood: None }
    }

    /// One look: what is decided is written, told and carried out. Errors: the policy is faulty, and then nothing goes on; the ledger's own.
    pub async fn look(&mut self, at: Timestamp) -> Result<Look, Error> {
        let policy = self.books.reclaim_policy()?;
        let known = self.books.ledger().decisions(None).await?;
        let set = known.iter().rfind(|decision| decision.kind == DecisionKind::Mode);
        let mode = set.map_or(policy.act.mode, |decision| decision.mode);
        let mut look = Look { at, mode, decisions: Vec::new(), leases: Vec::new(), trouble: Vec::new() };
        let kept = self.books.ledger().leases().await?;
        let mut output = self.round(&policy, mode, &known, &kept, at).await?;
        match self.limits(&policy, mode, &known, at).await {
            Ok(limits) => {
                output.decisions.extend(limits.decisions);
                output.orders.extend(limits.orders);
                output.alerts.extend(limits.alerts);
            }
            // Idle jobs don't wait for somebody to mend a file of quotas.
            Err(reason) => look.trouble.push(format!("limits stay as they are: {reason}")),
        }
        look.decisions.extend(self.books.ledger().add_decisions(&output.decisions).await?);
        look.trouble.extend(self.warned.tell(&self.books, &self.channels, &output, at).await?);
        let known: Vec<Decision> = known.into_iter().chain(output.decisions).collect();
        self.carry(&policy, mode, &known, output.orders, &mut look).await?;
        self.books.ledger().keep_leases(&output.leases).await?;
        look.leases = output.leases;
        Ok(look)
    }

    async fn round(
        &self,
        policy: &ReclaimPolicy,
        mode: Mode,
        known: &[Decision],
        kept: &[KeptLease],
        at: Timestamp,
    ) -> Result<RoundOutput, Error> {
        let from = reads_from(at, policy, kept);
        let Some(during) = Interval::new(from, at) else { return Ok(RoundOutput::default()) };
        let (running, watched) = self.books.seen_in(during).await?;
        let source = if watched.is_some() { Reading::Seen(()) } else { Reading::Missing(Gap::CollectorDown) };
        let watched = watched.unwrap_or_default();
        let requests: Vec<Request> = known.iter().filter_map(Request::of).collect();
        let notices = self.warned.outcomes(&self.books, &self.channels, kept).await?;
        let (policy, kept, checkpoints) = (policy.clone(), kept.to_vec(), checkpoints(known));
        let making = tokio::task::spawn_blocking(move || {
            round(RoundInput {
                at,
                policy: &policy,
                mode,
                source,
                opt_outs: Reading::Seen(()),
                running: &running,
                seen: &watched.seen,
                samples: &watched.samples,
                activity: &watched.activity,
                least_power_mw: &BTreeMap::new(),
                kept: &kept,
                requests: &requests,
                notices: &notices,
                checkpoints: &checkpoints,
                uids: &BTreeMap::new(),
            })
        });
        Ok(making.await.expect("a round is made or its fault is a defect of ours"))
    }

    async fn carry(
        &mut self,
        policy: &ReclaimPolicy,
        mode: Mode,
        known: &[Decision],
        orders: Vec<Order>,
        look: &mut Look,
    ) -> Result<(), Error> {
        let (came, trouble) = self.carrier.carry(&self.books, policy, mode, known, orders).await?;
        look.decisions.extend(self.books.ledger().add_decisions(&came).await?);
        look.trouble.extend(trouble);
        Ok(())
    }
}

/// Checkpoints that actuators saw written after they had asked for one.
fn checkpoints(known: &[Decision]) -> Vec<SeenCheckpoint> {
    let asked: BTreeMap<&Name, &Decision> = known
        .iter()
        .filter(|decision| &*decision.action == "ask_checkpoint")
        .map(|decision| (&decision.id, decision))
        .collect();
    let seen = |row: &Decision| {
        let of = asked.get(row.of_decision.as_ref()?)?;
        let job = of.attempt_key.clone()?;
        (row.carried_out.as_deref() == Some(carried::SEEN_TRUE)).then_some(SeenCheckpoint { job, done_at: row.at })
    };
    known.iter().filter_map(seen).collect()
}
