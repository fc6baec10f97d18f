//! `isolation-test`: a victim and an aggressor, real commands on a real card, and what each trial saw of them.
//!
//! ```text
//! commands ─ command.rs ─ lines ─ told.rs ─► latencies, what was asked for and got ─┐
//! card ─ card.rs (the collector's probe) ──► memory, activity, Xids ────────────────┴► scheduler core: judge_memory, judge_compute, judge_crash
//! ```
//!
//! Whatever was started is ended by its own id, on every way out. Start at [`Bench::hold`]. Does not: judge, open a ledger.

mod card;
mod command;
mod told;

pub use card::{CardWatch, Glimpse};

use crate::error::Error;
use cardhour_scheduler_core::sharing::trial::{
    CrashTrial, Ending, Judged, MemoryTrial, Trial, VictimSeen, judge_compute, judge_crash, judge_memory,
};
use command::Started;
use std::time::{Duration, Instant};

/// How long a command may take until it tells its first latency.
const LONGEST_START: Duration = Duration::from_secs(120);
/// How long an aggressor at work is let be before it counts.
const SETTLES: Duration = Duration::from_secs(1);
/// How long a victim is watched after an aggressor that asked for memory: what it lost shows a moment later.
const AFTERWARDS: Duration = Duration::from_secs(2);
/// How often it is looked whether a command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is put to the test.
#[derive(Debug)]
pub struct Bench {
    /// The command that is to be left alone: tells a latency a line.
    pub victim: String,
    /// The command that disturbs.
    pub aggressor: String,
    /// How long each part of a trial takes.
    pub part: Duration,
    /// How far latencies may spread. Unit: thousandths of a percent.
    pub limit: u64,
    /// What memory is the aggressor's. Unit: MiB.
    pub allowed_mib: u64,
    /// The card; none where none is watched.
    pub card: Option<CardWatch>,
}

/// A trial, judged, with what the card showed meanwhile.
#[derive(Debug)]
pub struct Held {
    /// What came of it.
    pub judged: Judged,
    /// The card while both were there; none without one.
    pub beside: Option<Glimpse>,
}

impl Bench {
    /// One trial. Errors: a command can't be started. One that ends badly is no error but an answer.
    pub async fn hold(&self, trial: Trial) -> Result<Held, Error> {
        let mut victim = self.start(&self.victim, trial, "victim")?;
        victim.first_latency(LONGEST_START).await?;
        let held = match trial {
            Trial::Memory => self.memory(&mut victim).await,
            Trial::Compute => self.compute(&mut victim).await,
            Trial::Crash => self.crash(&mut victim).await,
        };
        victim.end().await;
        held
    }

    fn start(&self, command: &str, trial: Trial, role: &'static str) -> Result<Started, Error> {
        let mut variables = vec![
            ("CARDHOUR_TRIAL", trial.name().to_owned()),
            ("CARDHOUR_ROLE", role.to_owned()),
            ("CARDHOUR_ALLOWED_MIB", self.allowed_mib.to_string()),
            ("CARDHOUR_ASK_MIB", (self.allowed_mib + self.allowed_mib.div_ceil(2)).to_string()),
        ];
        if let Some(card) = &self.card {
            variables.push(("CARDHOUR_CARD", card.uuid().to_owned()));
            variables.push(("CUDA_VISIBLE_DEVICES", card.uuid().to_owned()));
        }
        Started::start(command, role, &variables)
    }

    async fn memory(&self, victim: &mut Started) -> Result<Held, Error> {
        let begun = Instant::now();
        let mut aggressor = self.start(&self.aggressor, Trial::Memory, "aggressor")?;
        aggressor.ended_within(self.part).await?;
        aggressor.is_runnable()?;
        let until = Instant::now();
        tokio::time::sleep(AFTERWARDS).await;
        let beside = self.card.as_ref().map(|card| card.between(begun, until, aggressor.id()));
        let ending = aggressor.ending()?;
        let told = aggressor.told();
        let is_refused = told.is_refused || matches!(ending, Ending::Failed { .. });
        let victim = victim.seen_after(begun)?;
        let judged = judge_memory(&MemoryTrial {
            allowed_mib: self.allowed_mib,
            asked_mib: told.asked_mib,
            got_mib: told.got_mib,
            seen_mib: beside.as_ref().and_then(|glimpse| glimpse.peak_mib),
            is_refused,
            victim,
        });
        aggressor.end().await;
        Ok(Held { judged, beside })
    }

    async fn compute(&self, victim: &mut Started) -> Result<Held, Error> {
        let alone_from = Instant::now();
        victim.ended_within(self.part).await?;
        let alone_until = Instant::now();
        let mut aggressor = self.start(&self.aggressor, Trial::Compute, "aggressor")?;
        tokio::time::sleep(SETTLES).await;
        let from = Instant::now();
        aggressor.ended_within(self.part).await?;
        aggressor.is_runnable()?;
        // Only while the aggressor was there: one that ends early leaves fewer latencies, or too few.
        let until = Instant::now();
        let (alone, beside_us) = (victim.latencies(alone_from, alone_until), victim.latencies(from, until));
        let beside = self.card.as_ref().map(|card| card.between(from, until, aggressor.id()));
        let judged = judge_compute(&alone, &beside_us, self.limit, &victim.seen_after(from)?);
        aggressor.end().await;
        Ok(Held { judged, beside })
    }

    async fn crash(&self, victim: &mut Started) -> Result<Held, Error> {
        let begun = Instant::now();
        let mut aggressor = self.start(&self.aggressor, Trial::Crash, "aggressor")?;
        let has_ended = aggressor.ended_within(self.part / 2).await?;
        let crash = match (has_ended, aggressor.ending()?) {
            (true, Ending::Failed { how }) => Some(format!("ended by itself, {how}")),
            (true, _) => None,
            (false, _) => {
                aggressor.kill().await;
                Some("was killed at work".to_owned())
            }
        };
        aggressor.is_runnable()?;
        let ended = Instant::now();
        victim.ended_within(self.part / 2).await?;
        let beside = self.card.as_ref().map(|card| card.between(begun, Instant::now(), aggressor.id()));
        let xids = beside.as_ref().map(|glimpse| glimpse.xids.clone()).unwrap_or_default();
        let judged = judge_crash(&CrashTrial { crash, xids, victim: victim.seen_after(ended)? });
        Ok(Held { judged, beside })
    }
}

impl Started {
    /// How it is, and how much it told since a moment.
    fn seen_after(&mut self, from: Instant) -> Result<VictimSeen, Error> {
        let ending = self.ending()?;
        Ok(VictimSeen { ending, told_after: self.latencies(from, Instant::now()).len() })
    }
}
