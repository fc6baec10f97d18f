//! Statements: the entries of one organisation and one month.

use super::{BillingPolicy, Entry, EntryKey, EntryKind};
use crate::bill::{Leaves, NO_LEAF};
use crate::prices::PriceBook;
use crate::report::ReportInput;
use crate::report::bundles::Bundles;
use crate::slots::Slots;
use cardhour_domain::{CardState, CardTime, Currency, Money, Month, Name, Timestamp, Zone};
use rust_decimal::Decimal;
use std::collections::BTreeMap;

/// What the platform's own statement is called: that of entries of no organisation.
pub const PLATFORM: &str = "platform";

/// The entries of one organisation in one month, which add up to its total.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its number, such as `CH-2026-03-acme`: one for each organisation and month.
    pub number: Name,
    /// The month.
    pub period: Month,
    /// The organisation; none: the platform's own, with what nobody is billed for.
    pub org: Option<Name>,
    /// What the organisation is called on its statement.
    pub account: Name,
    /// Who issues it.
    pub issuer: Option<Name>,
    /// What it says beside its amounts.
    pub terms: StatementTerms,
    /// The zone by which the month was cut.
    pub zone: Zone,
    /// In the order of [`Entry::order`].
    pub entries: Vec<Entry>,
    /// Time held, corrections included.
    pub card_time: CardTime,
    /// Of it, what is billed.
    pub billed_time: CardTime,
    /// What it comes to: the sum of the entries.
    pub total: Money,
    /// How much of the held time records or observation prove; none where nothing was held (LED-3).
    pub coverage: Option<Decimal>,
    /// How much of the held time telemetry saw; none where nothing was held.
    pub use_coverage: Option<Decimal>,
    /// How much of the time under its charges is known, by their keys. It is not in the canonical text.
    pub lines: BTreeMap<EntryKey, Coverage>,
    /// Who closed the month, and when; none while it is open.
    pub closed: Option<SignedOff>,
}

impl Statement {
    /// How much of the time under an entry is known: of a charge, and of what a refund gives back of one. None of any other, and where nobody knows.
    pub fn coverage_of(&self, entry: &Entry) -> Option<Coverage> {
        match entry.kind() {
            EntryKind::Charge => self.lines.get(&entry.key).copied(),
            EntryKind::Refund => {
                self.lines.get(&EntryKey { kind: EntryKind::Charge, what: None, ..entry.key.clone() }).copied()
            }
            EntryKind::Idle
            | EntryKind::Efficiency
            | EntryKind::CostItem
            | EntryKind::Recovery
            | EntryKind::Correction => None,
        }
    }
}

/// What a statement says beside its amounts, as the policy of its month has it. What the site doesn't say is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementTerms {
    /// The fiscal year that the month is in: `2026`, or `2026/27` where years don't start in January.
    pub fiscal_year: Name,
    /// Whether the amounts have tax in them.
    pub tax_included: Option<bool>,
    /// What is said of tax.
    pub tax_note: Option<Name>,
    /// When to pay.
    pub payment_terms: Option<Name>,
}

/// That a month was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedOff {
    /// When.
    pub at: Timestamp,
    /// Who approved it.
    pub by: Name,
    /// What whoever approved it wrote.
    pub comment: Option<Name>,
    /// SHA-256 of the month's canonical text, 64 hex digits.
    pub sha256: Name,
}

/// Those of an organisation; [`PLATFORM`] is the platform's own, unless an organisation is called so.
pub fn of_org(mut statements: Vec<Statement>, org: &str) -> Vec<Statement> {
    let is_there = statements.iter().any(|statement| statement.org.as_deref() == Some(org));
    statements.retain(|statement| match &statement.org {
        Some(own) => &**own == org,
        None => !is_there && org == PLATFORM,
    });
    statements
}

/// How much of an organisation's held time is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Time held.
    pub held: CardTime,
    /// Of it, what neither a record nor an observation proves.
    pub unproven: CardTime,
    /// Of it, what telemetry didn't see.
    pub unseen: CardTime,
}

impl Coverage {
    /// Of each organisation, by what `input` has in a month.
    pub fn by_org(input: &ReportInput) -> BTreeMap<Option<Name>, Self> {
        let mut by_org: BTreeMap<Option<Name>, Self> = BTreeMap::new();
        for cell in input.cells.iter().filter(|cell| cell.state == CardState::Held) {
            let org = cell.attempt.and_then(|attempt| input.attempts[attempt as usize].org.clone());
            let of = by_org.entry(org).or_default();
            of.held += cell.card_time;
            of.unproven += cell.unproven;
            of.unseen += cell.unseen;
        }
        by_org
    }

    /// Of each line of the bill, by the key of its charge: what `input` has of `month`, numbered by `slots`, at the prices of `book`.
    pub fn by_line(month: Month, input: &ReportInput, slots: &Slots, book: &PriceBook) -> BTreeMap<EntryKey, Self> {
        let bundles = Bundles::of(input, &[]);
        let leaves = Leaves::of(&bundles, slots, Some(book));
        let mut by_line: BTreeMap<EntryKey, Self> = BTreeMap::new();
        let mut of_leaf = vec![Self::default(); leaves.all().len()];
        for (bundle, &leaf) in bundles.all.iter().zip(&leaves.of_bundle).filter(|(_, leaf)| **leaf != NO_LEAF) {
            let of = &mut of_leaf[leaf as usize];
            of.held += bundle.card_time;
            of.unproven += bundle.unproven;
            of.unseen += bundle.unseen;
        }
        for (leaf, of) in leaves.all().iter().zip(of_leaf) {
            let key = EntryKey {
                model: leaf.model.cloned(),
                price_line: leaf.price_line(Some(book)).cloned(),
                window: leaf.window_name(Some(book)).cloned(),
                ..EntryKey::of(month, EntryKind::Charge, leaf.owner.map(|name| name.cloned()))
            };
            by_line.entry(key).or_default().add(of);
        }
        by_line
    }

    /// Adds another's time.
    pub fn add(&mut self, other: Self) {
        self.held += other.held;
        self.unproven += other.unproven;
        self.unseen += other.unseen;
    }

    /// Of all of them together.
    pub fn of_all(input: &ReportInput) -> Self {
        let mut all = Self::default();
        Self::by_org(input).into_values().for_each(|of| all.add(of));
        all
    }

    /// Held time that is proven ÷ held time.
    pub fn proven(self) -> Option<Decimal> {
        (self.held - self.unproven).ratio_of(self.held)
    }

    /// Held time that was seen ÷ held time.
    pub fn seen(self) -> Option<Decimal> {
        (self.held - self.unseen).ratio_of(self.held)
    }
}

/// What [`statements`] needs beside the entries.
#[derive(Clone, Copy, Debug)]
pub struct Issue<'a> {
    /// The month.
    pub period: Month,
    /// The zone by which it was cut.
    pub zone: Zone,
    /// Its currency.
    pub currency: Currency,
    /// Who issues, and what accounts are called.
    pub policy: &'a BillingPolicy,
    /// How much is known, by organisation.
    pub coverage: &'a BTreeMap<Option<Name>, Coverage>,
    /// The same by line of the bill, as [`Coverage::by_line`] has it.
    pub lines: &'a BTreeMap<EntryKey, Coverage>,
    /// Who closed it; none while it is open.
    pub closed: Option<&'a SignedOff>,
}

/// The statements of a month, one an organisation in order of their names, the platform's own last.
pub fn statements(entries: Vec<Entry>, issue: &Issue<'_>) -> Vec<Statement> {
    let mut by_org: BTreeMap<(bool, Option<Name>), Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        assert_eq!(entry.period, issue.period, "an entry stands in the statement of its period");
        by_org.entry((entry.key.org.is_none(), entry.key.org.clone())).or_default().push(entry);
    }
    by_org.into_iter().map(|((_, org), entries)| statement(org, entries, issue)).collect()
}

fn statement(org: Option<Name>, mut entries: Vec<Entry>, issue: &Issue<'_>) -> Statement {
    entries.sort_by_cached_key(Entry::order);
    let zero = Money::zero(issue.currency);
    let total = entries.iter().fold(zero, |total, entry| total + entry.amount);
    let held = |entry: &&Entry| entry.key.kind == EntryKind::Charge;
    let lines = issue.lines.iter().filter(|(key, _)| key.org == org);
    let coverage = issue.coverage.get(&org).copied().unwrap_or_default();
    Statement {
        number: issue.policy.number(issue.period, org.as_ref()),
        period: issue.period,
        account: issue.policy.account(org.as_ref()),
        issuer: issue.policy.issuer.clone(),
        terms: issue.policy.statement_terms(issue.period),
        zone: issue.zone,
        card_time: entries.iter().filter(held).map(|entry| entry.card_time).sum(),
        billed_time: entries.iter().filter(held).map(|entry| entry.billed_time).sum(),
        total,
        coverage: coverage.proven(),
        use_coverage: coverage.seen(),
        lines: lines.map(|(key, coverage)| (key.clone(), *coverage)).collect(),
        closed: issue.closed.cloned(),
        entries,
        org,
    }
}
