//! A month as it is billed: its entries, with the corrections of closed months where it is the first open one.
//!
//! Start at [`Reading::billed`]. Does not: decide what is owed (that is `cardhour_books::statement`), close anything.

use crate::closed::Closed;
use crate::closing::sha256_of;
use crate::intake::frozen_costs;
use crate::sources::Sources;
use crate::tables::Table;
use crate::tables::closings::{CLOSINGS, Closing};
use crate::tables::entries::{ENTRIES, batch as entries_batch};
use crate::tables::statements::{STATEMENTS, batch as statements_batch};
use crate::{Error, Reading};
use arrow::compute::concat_batches;
use arrow::record_batch::RecordBatch;
use cardhour_books::bill::{Hole, describe_holes};
use cardhour_books::prices::{OtherCurrency, PriceBook};
use cardhour_books::report::ReportInput;
use cardhour_books::slots::Slots;
use cardhour_books::statement::{
    AbsorbedRates, BillingPolicy, Changes, Comparison, CostItem, Coverage, Draft, Entry, EntryKey, EntryKind,
    GivenBack, Issue, MadeOf, MonthOfBooks, SeenPart, SignedOff, Statement, canonical_csv, corrections, draft,
    given_back, statements,
};
use cardhour_domain::{AttemptKey, Interval, Month, Name, Timestamp, Zone};
use std::collections::{BTreeMap, BTreeSet};

/// A month as it is billed.
#[derive(Clone, Debug)]
pub struct Billed {
    /// Which.
    pub month: Month,
    /// Its statements, one an organisation, the platform's own last.
    pub statements: Vec<Statement>,
    /// Its usage: of a closed month as it was closed.
    pub input: ReportInput,
    /// The slots by which `input` is numbered.
    pub slots: Slots,
    /// The price book that holds for it: of a closed month that by which it was closed.
    pub book: PriceBook,
    /// The policy that holds for it.
    pub policy: BillingPolicy,
    /// In absorb mode, the rates at which its cost was spread.
    pub rates: Option<AbsorbedRates>,
    /// Time that should be paid for and has no price.
    pub holes: Vec<Hole>,
    /// Costs that could not be booked, each in words.
    pub unbooked: Vec<String>,
    /// Where lines of it were worked out from a part of some time because no more of it was seen; empty once it is closed.
    pub seen: Vec<SeenPart>,
    /// Of closed months, what later facts owe and no open month can take, each in words: in a currency of before, or without a price in the book they keep.
    pub uncorrected: Vec<String>,
    /// Attempts that held a card when it met a fatal fault of its own.
    pub sick: BTreeSet<AttemptKey>,
    /// Of those that it knows, the attempts whose cards were wrongly taken, and the decision that took them.
    pub wrongful: BTreeMap<AttemptKey, Name>,
    /// How it was closed; none while it is open.
    pub closing: Option<Closing>,
    /// What it and the closed months are made of, a digest each; of the first open month alone.
    pub(crate) sources: BTreeMap<Month, Name>,
}

/// The tables `statements` and `entries` of some months, as those of closed months are stored; of open ones `closing_id` is absent.
pub fn statement_rows(months: &[Billed]) -> Result<(RecordBatch, RecordBatch), Error> {
    let closing = |billed: &Billed| billed.closing.as_ref().map(|closing| closing.id.clone());
    let of = |table: &Table, batch: fn(&[Statement], Option<&str>) -> RecordBatch| {
        let rows: Vec<RecordBatch> =
            months.iter().map(|billed| batch(&billed.statements, closing(billed).as_deref())).collect();
        let schema = (table.schema)();
        concat_batches(&schema, &rows).map_err(|error| Error::table("lay out", table.name)(error.into()))
    };
    Ok((of(&STATEMENTS, statements_batch)?, of(&ENTRIES, entries_batch)?))
}

/// The prices and the policy of today.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The price book.
    pub book: &'a PriceBook,
    /// The billing policy.
    pub policy: &'a BillingPolicy,
}

/// Whether a closed month is held against the hash that was signed. Only `verify` reads one without, to tell of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Checked {
    Against,
    Not,
}

impl Reading {
    /// The closed months, in order.
    pub fn closings(&self) -> &[Closing] {
        self.closed.as_ref().map_or(&[], |closed| &closed.closings)
    }

    /// The first month after the closed ones; none while nothing is closed.
    pub fn open_month(&self) -> Option<Month> {
        self.closed.as_ref().map(Closed::open_month)
    }

    /// The price book in force over some time (none: all of it): in each closed month that by which it was closed, else `open`. None without any.
    ///
    /// Errors: those of that time are of different currencies, [`Err`] inside. Outside of it nothing is said.
    pub fn prices_in_force(
        &self,
        open: Option<&PriceBook>,
        zone: Zone,
        during: Option<Interval>,
    ) -> Result<Result<Option<PriceBook>, OtherCurrency>, Error> {
        let mut from = None;
        let (mut asked, mut has_prices) = (Vec::new(), false);
        let mut books = self.books_in_turn(open, zone)?;
        if let (None, Some(closed), Some((_, book))) = (open, &self.closed, books.first()) {
            // Nothing that is open has a price.
            let none = book.without_prices();
            books.insert(0, (Some(closed.during.start()), none.clone()));
            books.push((None, none));
        }
        for (until, book) in books {
            let is_asked = |during: Interval| {
                from.is_none_or(|from| from < during.end()) && until.is_none_or(|until| during.start() < until)
            };
            if during.is_none_or(is_asked) {
                has_prices |= !book.prices().is_empty();
                asked.push((until, book));
            }
            from = until;
        }
        let asked: Vec<(Option<Timestamp>, &PriceBook)> = asked.iter().map(|(until, book)| (*until, book)).collect();
        Ok(if !has_prices { Ok(None) } else { PriceBook::in_turn(&asked).map(Some) })
    }

    /// A stretch in pieces over each of which the price books in force are of one currency, in order, each with them.
    pub fn prices_by_currency(
        &self,
        open: Option<&PriceBook>,
        zone: Zone,
        during: Interval,
    ) -> Result<Vec<(Interval, Option<PriceBook>)>, Error> {
        let books = self.books_in_turn(open, zone)?;
        let mut pieces = Vec::new();
        let mut from = during.start();
        for run in books.chunk_by(|(_, one), (_, next)| one.currency() == next.currency()) {
            let until = run[run.len() - 1].0.map_or(during.end(), |until| until.min(during.end()));
            let Some(piece) = Interval::new(from, until) else { continue };
            let of_run: Vec<(Option<Timestamp>, &PriceBook)> = run.iter().map(|(until, book)| (*until, book)).collect();
            pieces.push((piece, Some(PriceBook::in_turn(&of_run).expect("they are of one currency"))));
            from = until;
        }
        // Without a price book of today nothing after the closed months has a price, nor has anything without closed months.
        pieces.extend(Interval::new(from, during.end()).map(|rest| (rest, None)));
        Ok(pieces)
    }

    /// Every price book in force, in order, each until when.
    fn books_in_turn(
        &self,
        open: Option<&PriceBook>,
        zone: Zone,
    ) -> Result<Vec<(Option<Timestamp>, PriceBook)>, Error> {
        let today = || open.cloned();
        let Some(closed) = &self.closed else { return Ok(today().map(|open| (None, open)).into_iter().collect()) };
        let mut books: Vec<(Option<Timestamp>, PriceBook)> = Vec::new();
        books.extend(today().map(|open| (Some(closed.during.start()), open)));
        for closing in &closed.closings {
            books.push((Some(closing.month.interval(zone).end()), closing.price_book()?));
        }
        books.extend(today().map(|open| (None, open)));
        Ok(books)
    }

    /// A month as it is billed: a closed one as it was closed; an open one by `terms`, with corrections if it is the first that is open.
    ///
    /// Errors: the ledger's own; time that the price book can't cut.
    pub async fn billed(&self, month: Month, zone: Zone, terms: Terms<'_>) -> Result<Billed, Error> {
        match self.closed.as_ref().and_then(|closed| Some((closed, closed.of(month)?))) {
            Some((closed, closing)) => self.closed_month(closed, closing, zone, Checked::Against).await,
            None => self.open(month, zone, terms).await,
        }
    }

    async fn open(&self, month: Month, zone: Zone, terms: Terms<'_>) -> Result<Billed, Error> {
        let (slots, input) = self.month(month, zone, terms.book, false).await?;
        let sources = Sources::load(self, zone).await?;
        let beside = Beside::of(&sources, month).await?;
        let Draft { mut entries, rates, holes, unbooked, seen } = beside.draft(month, &input, &slots, terms, None);
        let (mut digests, mut uncorrected) = (BTreeMap::new(), Vec::new());
        if self.open_month().is_none_or(|open| open == month) {
            digests.insert(month, sources.digest(month).await?);
        }
        if self.open_month() == Some(month) {
            let corrected = self.corrections(month, zone, &sources, Unchanged::PassedOver).await?;
            digests.extend(corrected.sources);
            uncorrected.extend(corrected.unbooked);
            for entry in corrected.entries {
                if entry.amount.currency() == terms.book.currency() {
                    entries.push(entry);
                } else {
                    // Whoever closes over it is told again the next time.
                    digests.remove(&entry.key.original_period);
                    uncorrected.push(in_another_currency(&entry, terms.book));
                }
            }
        }
        let known = (Coverage::by_org(&input), Coverage::by_line(month, &input, &slots, terms.book));
        let statements = issued(month, zone, entries, terms, &known, None);
        let (book, policy, sick) = (terms.book.clone(), terms.policy.clone(), beside.sick);
        let mut wrongful = beside.wrongful;
        wrongful.retain(|key, _| input.attempts.iter().any(|attempt| attempt.key == *key));
        let sources = digests;
        Ok(Billed {
            month,
            statements,
            input,
            slots,
            book,
            policy,
            rates,
            holes,
            unbooked,
            seen,
            uncorrected,
            sick,
            wrongful,
            closing: None,
            sources,
        })
    }

    /// A closed month as it was closed, held against its hash or as it is.
    pub(crate) async fn closed_month(
        &self,
        closed: &Closed,
        closing: &Closing,
        zone: Zone,
        checked: Checked,
    ) -> Result<Billed, Error> {
        let (book, policy) = (closing.price_book()?, closing.billing_policy()?);
        let (slots, input) = self.month(closing.month, zone, &book, false).await?;
        let entries = closed.entries(std::iter::once(closing)).await?;
        let known = (Coverage::by_org(&input), Coverage::by_line(closing.month, &input, &slots, &book));
        let signed = closing.signed_off();
        let terms = Terms { book: &book, policy: &policy };
        let statements = issued(closing.month, zone, entries, terms, &known, Some(&signed));
        if let Checked::Against = checked
            && sha256_of(&canonical_csv(&statements)) != closing.sha256
        {
            let what = format!("what {} was closed with is not what its hash says: cardhour verify", closing.month);
            return Err(Error::damaged(ENTRIES.name, what));
        }
        let (rates, sick, wrongful) = (closing.absorbed_rates()?, closing.sick()?, closing.wrongful()?);
        let (holes, unbooked, seen) = (Vec::new(), Vec::new(), Vec::new());
        let (uncorrected, sources) = (Vec::new(), BTreeMap::new());
        let (month, closing) = (closing.month, Some(closing.clone()));
        Ok(Billed {
            month,
            statements,
            input,
            slots,
            book,
            policy,
            rates,
            holes,
            unbooked,
            seen,
            uncorrected,
            sick,
            wrongful,
            closing,
            sources,
        })
    }

    /// The entries that a closed month comes to by what was frozen with it: those that were booked, but for its corrections.
    pub(crate) async fn drafted_again(&self, closing: &Closing, zone: Zone) -> Result<Vec<Entry>, Error> {
        let (book, policy) = (closing.price_book()?, closing.billing_policy()?);
        let (slots, input) = self.month(closing.month, zone, &book, false).await?;
        let beside = Beside {
            costs: frozen_costs(&self.store, closing).await?,
            sick: closing.sick()?,
            wrongful: closing.wrongful()?,
        };
        let terms = Terms { book: &book, policy: &policy };
        Ok(beside.draft(closing.month, &input, &slots, terms, None).entries)
    }

    /// Where corrections of one closed month come from, for each of some lines of it: the month as it was closed beside what the facts of today make of it.
    ///
    /// None where it isn't closed. Errors: the ledger's own.
    pub async fn changes(
        &self,
        month: Month,
        zone: Zone,
        lines: &[EntryKey],
    ) -> Result<Option<Vec<ChangedLine>>, Error> {
        let Some((closed, closing)) = self.closed.as_ref().and_then(|closed| Some((closed, closed.of(month)?))) else {
            return Ok(None);
        };
        let (book, policy, rates) = (closing.price_book()?, closing.billing_policy()?, closing.absorbed_rates()?);
        let (slots, was) = self.month(month, zone, &book, false).await?;
        let (_, is) = self.month(month, zone, &book, true).await?;
        let sources = Sources::load(self, zone).await?;
        let then = Beside {
            costs: frozen_costs(&self.store, closing).await?,
            sick: closing.sick()?,
            wrongful: closing.wrongful()?,
        };
        let now = Beside::of(&sources, month).await?;
        let terms = Terms { book: &book, policy: &policy };
        let (then, now) =
            (then.month(month, &was, &slots, terms, None), now.month(month, &is, &slots, terms, rates.as_ref()));
        let comparison = Comparison::new(&then, &now);
        let standing = closed.entries(closed.closings.iter()).await?;
        let line = |key: &EntryKey| ChangedLine {
            changes: comparison.of_line(key),
            standing: standing.iter().filter(|entry| entry.key == *key).cloned().collect(),
        };
        Ok(Some(lines.iter().map(line).collect()))
    }

    /// What refunds give back in some months, for budgets: of closed ones by what was frozen with them, of open ones by `terms` (none: nothing). A month that `during`
    /// cuts is worked out of its part. What a refund that came after its month was closed corrects stands in the month of its statement.
    ///
    /// Errors: the ledger's own; time that the price book can't cut.
    pub async fn given_back(
        &self,
        during: Interval,
        zone: Zone,
        terms: Option<Terms<'_>>,
    ) -> Result<Vec<GivenBack>, Error> {
        let mut out = Vec::new();
        let mut gives_back = terms.is_some_and(|terms| terms.policy.refunds.gives_back());
        for closing in self.closings() {
            gives_back |= closing.billing_policy()?.refunds.gives_back();
        }
        let Some(mut month) = zone.month(during.start()).filter(|_| gives_back) else { return Ok(out) };
        let sources = Sources::load(self, zone).await?;
        while month.interval(zone).start() < during.end() {
            let whole = month.interval(zone);
            let part = Interval::new(whole.start().max(during.start()), whole.end().min(during.end()))
                .expect("it begins before the stretch ends");
            let closing = self.closed.as_ref().and_then(|closed| Some((closed, closed.of(month)?)));
            let late = match closing {
                Some((closed, closing)) => {
                    let (book, policy) = (closing.price_book()?, closing.billing_policy()?);
                    let (costs, sick, wrongful) = (Vec::new(), closing.sick()?, closing.wrongful()?);
                    let beside = Beside { costs, sick, wrongful };
                    let terms = Terms { book: &book, policy: &policy };
                    out.extend(self.given_back_in(month, part, zone, &beside, terms).await?);
                    if part == whole { closed.entries(std::iter::once(closing)).await? } else { Vec::new() }
                }
                None => {
                    if let Some(terms) = terms {
                        let (costs, sick) = (Vec::new(), sources.sick(month).await?);
                        let beside = Beside { costs, sick, wrongful: sources.wrongful().clone() };
                        out.extend(self.given_back_in(month, part, zone, &beside, terms).await?);
                    }
                    if self.open_month() == Some(month) {
                        self.corrections(month, zone, &sources, Unchanged::PassedOver).await?.entries
                    } else {
                        Vec::new()
                    }
                }
            };
            let late = late.iter().filter(|entry| entry.kind() == EntryKind::Correction);
            out.extend(late.filter_map(GivenBack::of_entry));
            month = month.next();
        }
        Ok(out)
    }

    async fn given_back_in(
        &self,
        month: Month,
        part: Interval,
        zone: Zone,
        beside: &Beside,
        terms: Terms<'_>,
    ) -> Result<Vec<GivenBack>, Error> {
        if !terms.policy.refunds.gives_back() {
            return Ok(Vec::new());
        }
        let slots = Slots::new(part, Some(terms.book), zone, None).map_err(|source| Error::Cut { source })?;
        let input = self.input(&slots).await?;
        Ok(given_back(&beside.month(month, &input, &slots, terms, None)))
    }

    /// What an entry that is no correction is made of, by what its month is billed with: of a closed month what was frozen, else the facts of today by `terms`.
    ///
    /// None where the month has no such line. Errors: the ledger's own; time that the price book can't cut.
    pub async fn made_of(&self, key: &EntryKey, zone: Zone, terms: Terms<'_>) -> Result<Option<MadeOf>, Error> {
        let month = key.original_period;
        match self.closed.as_ref().and_then(|closed| closed.of(month)) {
            Some(closing) => {
                let (book, policy) = (closing.price_book()?, closing.billing_policy()?);
                let (slots, input) = self.month(month, zone, &book, false).await?;
                let costs = frozen_costs(&self.store, closing).await?;
                let beside = Beside { costs, sick: closing.sick()?, wrongful: closing.wrongful()? };
                let terms = Terms { book: &book, policy: &policy };
                Ok(MadeOf::of(&beside.month(month, &input, &slots, terms, None), key))
            }
            None => {
                let (slots, input) = self.month(month, zone, terms.book, false).await?;
                let beside = Beside::of(&Sources::load(self, zone).await?, month).await?;
                Ok(MadeOf::of(&beside.month(month, &input, &slots, terms, None), key))
            }
        }
    }

    /// What the facts of today change in closed months, as entries of the open month.
    ///
    /// Months that are made of what they were made of when the last one was closed have nothing new: unless asked, they are not worked out again.
    pub(crate) async fn corrections(
        &self,
        open: Month,
        zone: Zone,
        sources: &Sources<'_>,
        unchanged: Unchanged,
    ) -> Result<Corrected, Error> {
        let mut corrected = Corrected::default();
        let Some(closed) = &self.closed else { return Ok(corrected) };
        closed.check_entries().await?;
        let known = closed.closings.last().map(|last| &last.sources);
        let mut changed = Vec::new();
        for closing in &closed.closings {
            let digest = sources.digest(closing.month).await?;
            let is_known = known.and_then(|known| known.get(&closing.month)) == Some(&digest);
            match unchanged {
                Unchanged::PassedOver if is_known => {}
                Unchanged::PassedOver | Unchanged::WorkedOut => changed.push(closing),
            }
            corrected.sources.insert(closing.month, digest);
        }
        if changed.is_empty() {
            return Ok(corrected);
        }
        let mut standing: BTreeMap<Month, Vec<Entry>> = BTreeMap::new();
        for entry in closed.entries(closed.closings.iter()).await? {
            standing.entry(entry.key.original_period).or_default().push(entry);
        }
        for closing in changed {
            let (book, policy) = (closing.price_book()?, closing.billing_policy()?);
            let (slots, input) = self.month(closing.month, zone, &book, true).await?;
            let (terms, rates) = (Terms { book: &book, policy: &policy }, closing.absorbed_rates()?);
            let beside = Beside::of(sources, closing.month).await?;
            let Draft { entries: fresh, unbooked: mut lacking, holes, .. } =
                beside.draft(closing.month, &input, &slots, terms, rates.as_ref());
            // Its price book can't change any more: what came later and has no price in it is told of, and stands in no statement.
            lacking
                .extend(describe_holes(&holes).into_iter().map(|hole| format!("of {}, closed: {hole}", closing.month)));
            if !lacking.is_empty() {
                // Whoever closes over it is told again the next time.
                corrected.sources.remove(&closing.month);
            }
            corrected.unbooked.extend(lacking);
            let stands = standing.remove(&closing.month).unwrap_or_default();
            corrected.entries.extend(corrections(open, &stands, &fresh));
        }
        Ok(corrected)
    }

    /// The usage of a month, and the slots it is numbered by.
    async fn month(
        &self,
        month: Month,
        zone: Zone,
        book: &PriceBook,
        live: bool,
    ) -> Result<(Slots, ReportInput), Error> {
        let slots = Slots::new(month.interval(zone), Some(book), zone, None).map_err(|source| Error::Cut { source })?;
        let input = if live { self.live_input(&slots).await? } else { self.input(&slots).await? };
        Ok((slots, input))
    }
}

/// What is done with closed months that are made of what they were made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unchanged {
    PassedOver,
    /// Only to prove that passing them over changes nothing.
    WorkedOut,
}

/// What the facts of today change in closed months.
#[derive(Debug, Default)]
pub(crate) struct Corrected {
    /// Corrections, in the first open month.
    pub(crate) entries: Vec<Entry>,
    /// What of their costs can't be booked, in words.
    pub(crate) unbooked: Vec<String>,
    /// What each is made of today, a digest.
    pub(crate) sources: BTreeMap<Month, Name>,
}

/// A line of a closed month, and what became of it.
#[derive(Clone, Debug)]
pub struct ChangedLine {
    /// As it was closed, as it is today, and whose doing the difference is.
    pub changes: Changes,
    /// What stands of it in closed months: the original, and corrections that were closed with later months.
    pub standing: Vec<Entry>,
}

/// What a month's entries are made of beside its usage.
struct Beside {
    costs: Vec<CostItem>,
    sick: BTreeSet<AttemptKey>,
    wrongful: BTreeMap<AttemptKey, Name>,
}

impl Beside {
    async fn of(sources: &Sources<'_>, month: Month) -> Result<Self, Error> {
        Ok(Self { costs: sources.costs(month), sick: sources.sick(month).await?, wrongful: sources.wrongful().clone() })
    }

    fn draft(
        &self,
        month: Month,
        input: &ReportInput,
        slots: &Slots,
        terms: Terms<'_>,
        rates: Option<&AbsorbedRates>,
    ) -> Draft {
        draft(&self.month(month, input, slots, terms, rates))
    }

    fn month<'a>(
        &'a self,
        month: Month,
        input: &'a ReportInput,
        slots: &'a Slots,
        terms: Terms<'a>,
        rates: Option<&'a AbsorbedRates>,
    ) -> MonthOfBooks<'a> {
        let (Terms { book, policy }, Self { costs, sick, wrongful }) = (terms, self);
        MonthOfBooks { month, input, slots, book, policy, costs, sick, wrongful, rates }
    }
}

/// A closing's list of attempts that something befell. Stability: stored, a JSON list with a text for each that met a fatal fault, and a list of key and
/// decision for each whose cards were wrongly taken.
pub(crate) fn beset_text(sick: &BTreeSet<AttemptKey>, wrongful: &BTreeMap<AttemptKey, Name>) -> String {
    let sick = sick.iter().map(|key| serde_json::Value::from(key.as_str()));
    let pair = |(key, decision): (&AttemptKey, &Name)| serde_json::Value::from(vec![key.as_str(), &**decision]);
    serde_json::Value::Array(sick.chain(wrongful.iter().map(pair)).collect()).to_string()
}

/// [`beset_text`], read back; none of another text.
fn beset(text: &str) -> Option<(BTreeSet<AttemptKey>, BTreeMap<AttemptKey, Name>)> {
    let (mut sick, mut wrongful) = (BTreeSet::new(), BTreeMap::new());
    let list: Vec<serde_json::Value> = serde_json::from_str(text).ok()?;
    for one in &list {
        match one {
            serde_json::Value::String(key) => {
                sick.insert(AttemptKey::from_stored(key));
            }
            one => {
                let [key, decision] = one.as_array()?.as_slice() else { return None };
                wrongful.insert(AttemptKey::from_stored(key.as_str()?), decision.as_str()?.into());
            }
        }
    }
    Some((sick, wrongful))
}

/// A correction that can't stand in the open month, in words.
fn in_another_currency(entry: &Entry, book: &PriceBook) -> String {
    let EntryKey { original_period, org, project, user, .. } = &entry.key;
    let owner: Vec<&str> = [org, project, user].into_iter().flatten().map(|name| &**name).collect();
    let owner = if owner.is_empty() { "nobody".to_owned() } else { owner.join(" / ") };
    let (amount, currency) = (entry.amount.to_minor_string(), entry.amount.currency());
    format!(
        "a correction of {original_period} by {amount} {currency} for {owner}: this month is in {}",
        book.currency()
    )
}

fn issued(
    period: Month,
    zone: Zone,
    entries: Vec<Entry>,
    terms: Terms<'_>,
    (coverage, lines): &(BTreeMap<Option<Name>, Coverage>, BTreeMap<EntryKey, Coverage>),
    closed: Option<&SignedOff>,
) -> Vec<Statement> {
    let currency = terms.book.currency();
    statements(entries, &Issue { period, zone, currency, policy: terms.policy, coverage, lines, closed })
}

impl Closing {
    /// The policy that it was closed by. Errors: its text is no policy, which no closing writes.
    pub fn billing_policy(&self) -> Result<BillingPolicy, Error> {
        BillingPolicy::parse(&self.policy).map_err(|faults| self.damaged("policy", &faults))
    }

    /// The rates at which its cost was spread; none but in absorb mode. Errors: its text is none, which no closing writes.
    fn absorbed_rates(&self) -> Result<Option<AbsorbedRates>, Error> {
        self.rates.as_deref().map(AbsorbedRates::parse).transpose().map_err(|error| self.damaged("rates", &error))
    }

    /// Attempts that held a card when it met a fatal fault of its own. Errors: its text is no list, which no closing writes.
    fn sick(&self) -> Result<BTreeSet<AttemptKey>, Error> {
        Ok(self.beset()?.0)
    }

    /// Attempts whose cards were wrongly taken, and the decision that took them. Errors: as [`Self::sick`].
    fn wrongful(&self) -> Result<BTreeMap<AttemptKey, Name>, Error> {
        Ok(self.beset()?.1)
    }

    fn beset(&self) -> Result<(BTreeSet<AttemptKey>, BTreeMap<AttemptKey, Name>), Error> {
        beset(&self.sick).ok_or_else(|| self.damaged("sick", &format!("{:?} is no list of attempts", self.sick)))
    }

    fn damaged(&self, what: &str, why: &dyn std::fmt::Display) -> Error {
        Error::damaged(CLOSINGS.name, format!("{what} of {}: {why}", self.month))
    }

    /// Who approved it, when, and of what.
    pub fn signed_off(&self) -> SignedOff {
        SignedOff { at: self.at, by: self.by.clone(), comment: self.comment.clone(), sha256: self.sha256.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_that_something_befell_are_read_back_and_texts_of_before_are_read() {
        let key = |job: &str| AttemptKey::new("lab", job, "1");
        let sick = BTreeSet::from([key("1"), key("2")]);
        let wrongful = BTreeMap::from([(key("3"), Name::from("0a1b"))]);
        assert_eq!(beset(&beset_text(&sick, &wrongful)), Some((sick.clone(), wrongful)));
        let keys: Vec<&str> = sick.iter().map(|key| key.as_str()).collect();
        let before = serde_json::to_string(&keys).unwrap();
        assert_eq!(beset_text(&sick, &BTreeMap::new()), before);
        assert_eq!(beset(&before), Some((sick, BTreeMap::new())));
        assert_eq!([beset("{}"), beset("[[\"a\"]]"), beset("[1]")], [None, None, None]);
    }
}
