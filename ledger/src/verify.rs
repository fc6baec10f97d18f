//! Proves the laws of the books from the stored tables, by another road than the one that made them.
//!
//! Nothing here calls what made the books: holdings are worked out again from `jobs`, usage from the stored holdings, states of the pool
//! from an instant sweep over facts, and money from holdings cut at the edges of months, prices and windows, never from usage buckets.
//! Instants and card-time are bare integers here, and money is a fraction of large integers, so that a slip in the books' own
//! arithmetic can't hide in its proof.
//!
//! ```text
//! jobs ─ shares ─► holdings ─ days ─► usage        nodes, outages, reservations, coverage ─ timeline ─► usage's states, conflicts
//!                     └─ calendar, money ─► leaves and rows ─ bills ─► what the bill prints, or printed
//! ```
//!
//! Start at [`Ledger::verify`]. Does not: repair anything, or work out again how idle a card was. Units: milliseconds since the epoch, parts of a card,
//! parts × milliseconds.

mod attempts;
mod bills;
mod calendar;
mod closed;
mod damage;
mod days;
mod exported;
mod findings;
mod load;
mod money;
mod place;
mod rows;
mod shares;
mod span;
#[cfg(test)]
mod tests;
mod timeline;
mod used;

pub use exported::{ExportedBill, ExportedBillError};

use crate::closed::Closed;
use crate::derive::{self, TRIES};
use crate::facts::Facts;
use crate::tables::conflicts::CONFLICTS;
use crate::tables::gaps::GAPS;
use crate::tables::holdings::HOLDINGS;
use crate::tables::observed_jobs::OBSERVED_JOBS;
use crate::tables::usage::USAGE;
use crate::{Error, Ledger, Reading};
use cardhour_books::prices::PriceBook;
use cardhour_domain::{CardTime, Name};
use damage::Damage;
use findings::Findings;
use load::Stored;
use std::fmt;

/// A law of the books, as the design numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Law {
    /// Each part of a card is in one state at each instant.
    Led1,
    /// Shares of one card never pass the card.
    Led2,
    /// Held time is split without a rest.
    Led3,
    /// The same input gives the same books, each attempt once.
    Led4,
    /// Books only grow; a closed month never changes.
    Led5,
    /// Money is rounded once, at the leaf; all groupings have one total.
    Led6,
    /// Cutting a holding changes no total.
    Led7,
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Led1 => "LED-1",
            Self::Led2 => "LED-2",
            Self::Led3 => "LED-3",
            Self::Led4 => "LED-4",
            Self::Led5 => "LED-5",
            Self::Led6 => "LED-6",
            Self::Led7 => "LED-7",
        })
    }
}

/// One thing that was proven, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The law it belongs to.
    pub law: Law,
    /// What it says, as a sentence that is false if it fails.
    pub what: String,
    /// Whether it holds.
    pub ok: bool,
    /// Rows that were looked at.
    pub rows: u64,
    /// Card-time in them; none for a check that isn't about time.
    pub card_time: Option<CardTime>,
    /// How many faults it found: also those beyond the ones that [`Verdict::faults`] keeps.
    pub faults: u64,
}

/// One place where the books are not what they must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The law that is broken.
    pub law: Law,
    /// The table, or the file.
    pub table: String,
    /// Where: cluster, attempt, bucket, card, line.
    pub place: String,
    /// What has to be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// What was proven of a ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Every check, in the order of the flow.
    pub checks: Vec<Check>,
    /// The first faults of each check, at most [`Verdict::MOST_FAULTS`] a check.
    pub faults: Vec<Fault>,
    /// Clusters whose capacity isn't known, so that LED-1 can't be proven of them.
    pub not_provable: Vec<Name>,
}

impl Verdict {
    /// Faults kept of one check.
    pub const MOST_FAULTS: usize = 200;

    /// Whether everything that can be proven is. Clusters that aren't provable don't count against it.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.ok)
    }

    /// How many faults there are, also those that weren't kept.
    pub fn fault_count(&self) -> u64 {
        self.checks.iter().map(|check| check.faults).sum()
    }

    fn add(&mut self, law: Law, what: impl Into<String>, findings: Findings) {
        self.checks.push(Check {
            law,
            what: what.into(),
            ok: findings.count == 0,
            rows: findings.rows,
            card_time: findings.part_ms.map(CardTime::from_part_ms),
            faults: findings.count,
        });
        self.faults.extend(findings.faults.into_iter().map(|fault| Fault { law, ..fault }));
    }
}

impl Ledger {
    /// Proves LED-1, 2, 3, 5, 6 and 7 of the newest books, and that they are of exactly the facts beside them.
    ///
    /// `book`: prices by which money is proven too; none: hours only. `bill`: an exported bill to hold against the books. What a
    /// killed import left undone is finished first, as every command does; nothing else is changed. What is wrong with the books is no error, it is in the
    /// verdict, and so is what can't be read: the proofs that need it are left out, the others go on. Errors: without the logs of the tables, or the rows of
    /// `closings`, there is nothing to prove; a price book whose edges are off the quarter hour.
    pub async fn verify(&self, book: Option<&PriceBook>, bill: Option<&ExportedBill>) -> Result<Verdict, Error> {
        let (mut verdict, mut damage) = (Verdict::default(), Damage::default());
        let reading = self.current(&mut verdict).await?;
        if let Some(stored) = damage.past(Stored::load(self, &reading).await)? {
            verdict.not_provable = stored.without_capacity();
            self.of_stored(&stored, &reading, &mut verdict, &mut damage).await?;
            let bills = bills::check(self, &stored, &reading, book, bill, &mut verdict).await;
            damage.past(bills)?;
        } else {
            self.count_rows(&mut verdict, &mut damage).await?;
        }
        if let Some(closed) = closed::check(self, &reading, &mut damage).await? {
            verdict.add(Law::Led5, "all that was frozen with each closed month is there", closed.there);
            verdict.add(Law::Led5, "the text of each closed month has the hash that was signed", closed.signed);
            verdict.add(Law::Led5, "what was frozen with each closed month comes to the same entries", closed.again);
            verdict.add(
                Law::Led5,
                "closed months that nothing touched since the last closing have nothing to correct",
                closed.passed_over,
            );
        }
        if let Some(findings) = damage.told(self).await? {
            verdict.add(Law::Led5, "what the proofs read can be read, and is all there", findings);
        }
        Ok(verdict)
    }

    async fn count_rows(&self, verdict: &mut Verdict, damage: &mut Damage) -> Result<(), Error> {
        let rows = rows::all_are_there(self, damage).await?;
        verdict.add(Law::Led4, "each table has as many rows as were put into it", rows);
        Ok(())
    }

    /// What is proven from the tables of facts, holdings and usage, but for money.
    async fn of_stored(
        &self,
        stored: &Stored,
        reading: &Reading,
        verdict: &mut Verdict,
        damage: &mut Damage,
    ) -> Result<(), Error> {
        self.count_rows(verdict, damage).await?;
        verdict.add(
            Law::Led4,
            "each attempt stands once, in its day's partition, and says what its hash says",
            attempts::each_stands_once(stored),
        );
        verdict.add(
            Law::Led7,
            "holdings are what the records say, stretch by stretch",
            attempts::holdings_are_of_records(stored),
        );
        verdict.add(
            Law::Led7,
            "what nodes saw held adds up to its record, and without one was seen",
            attempts::seen_holdings_are_proven(stored),
        );
        verdict.add(
            Law::Led2,
            "shares of one card add up to one card at most, at every instant",
            shares::within_cards(stored),
        );
        verdict.add(Law::Led2, "every claim that was cut is in conflicts", shares::cuts_are_said(stored));

        let Some(timelines) = damage.past(timeline::timelines(stored, reading).await)? else { return Ok(()) };
        verdict.add(
            Law::Led1,
            "usage remembers how each cluster is grouped and from when to when it serves",
            timelines.frames.clone(),
        );
        let Some(days) = damage.past(days::check(stored, reading, &timelines).await)? else { return Ok(()) };
        verdict.add(Law::Led7, "usage has each holding's time in each bucket, once", days.held);
        verdict.add(
            Law::Led3,
            "held = unseen + lost + idle + effective + underused, and billed is within it",
            days.split,
        );
        if let Some(used) = damage.past(used::check(stored, reading).await)?.flatten() {
            verdict.add(Law::Led3, "no more was seen, and none of it busier, than samples tell", used.seen);
            verdict.add(Law::Led3, "what failed attempts were seen doing is lost, and nothing else is", used.lost);
            verdict.add(Law::Led3, "no more energy was drawn than samples tell", used.energy);
        }
        verdict.add(Law::Led7, "usage of each attempt adds up to cards × (end − start) of its record", days.attempts);
        verdict.add(
            Law::Led1,
            "held + down + reserved + free + unaccounted = capacity + over, in each group and bucket",
            days.balance,
        );
        verdict.add(Law::Led1, "what nobody held is in the state that the site's facts give it", days.states);
        verdict.add(Law::Led1, "all that is held beyond capacity is in conflicts", days.over);
        Ok(())
    }

    /// One version of everything, of which usage, holdings and conflicts say that they were made from the same facts.
    async fn current(&self, verdict: &mut Verdict) -> Result<Reading, Error> {
        let what = "holdings, usage and conflicts were made from exactly these facts";
        let mut last = None;
        // Another writer may be in the middle of its three commits: look again, for a few tenths of a second.
        for attempt in 0..TRIES.min(12) {
            self.catch_up().await?;
            let facts = Facts::load(&self.store).await?;
            let mut findings = Findings::default();
            let gaps = self.store.open(&GAPS).await?.map(|_| &GAPS);
            for table in [&HOLDINGS, &CONFLICTS, &USAGE].into_iter().chain(gaps) {
                let snapshot = self.store.open_or_create(table).await?;
                for (name, version) in facts.marks() {
                    findings.rows += 1;
                    let mark = snapshot.mark(&name).await?;
                    if mark != Some(version) {
                        let found = mark.map_or("no version of it".to_owned(), |mark| format!("version {mark}"));
                        findings.fault(table.name, &format!("made from {name}"), &format!("version {version}"), &found);
                    }
                }
            }
            let usage = self.store.open_or_create(&USAGE).await?;
            let holds = findings.count == 0 && derive::is_current(&facts, &usage).await?;
            let observed = self.store.open(&OBSERVED_JOBS).await?;
            let closed = Closed::load(&self.store, self.zone()).await?;
            last = Some((Reading { facts, usage, observed, closed, store: self.store.clone() }, findings));
            if holds {
                break;
            }
            derive::pause(attempt).await;
        }
        let (reading, findings) = last.expect("tried at least once");
        verdict.add(Law::Led4, what, findings);
        Ok(reading)
    }
}
