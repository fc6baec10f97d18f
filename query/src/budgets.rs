//! Budgets meet the ledger: reads `budgets.toml`, gathers what the standings are made of, and calls the pure core once.
//!
//! Start at [`Books::budgets`].

use crate::books::Books;
use crate::error::Error;
use crate::settings_file;
use cardhour_books::advice::{Advice, Sources, advice, for_user, table as advice_table};
use cardhour_books::bill::Hole;
use cardhour_books::budgets::{Budgets, Evidence, Spans, Standing, Unit, standings, table};
use cardhour_books::prices::PriceBook;
use cardhour_books::report::ReportInput;
use cardhour_books::slots::Slots;
use cardhour_books::table::Table;
use cardhour_domain::{Interval, Month, Name, Timestamp};
use cardhour_ledger::{BooksVersion, Reading, Terms};

/// The budgets' name in the ledger's folder.
pub const BUDGETS_FILE: &str = "budgets.toml";

/// How the budgets stand.
#[derive(Clone, Debug)]
pub struct Budgeted {
    /// What the file says; none without one.
    pub budgets: Option<Budgets>,
    /// Of those that hold at the time that was asked, in the order of the file.
    pub standings: Vec<Standing>,
    /// Up to when the books speak.
    pub until: Timestamp,
    /// The same for people and programs.
    pub table: Table,
}

impl Budgeted {
    /// Whether of some budget more was spent than there is: the answer is no.
    pub fn is_over(&self) -> bool {
        self.standings.iter().any(Standing::is_over)
    }
}

/// What standings rest on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BudgetBasis {
    budgets: Option<Budgets>,
    prices: Option<Name>,
    /// The text of the billing policy, by which refunds are.
    policy: String,
    books: BooksVersion,
    month: Month,
}

/// A stretch of the books, loaded.
struct Loaded {
    slots: Slots,
    input: ReportInput,
}

impl Loaded {
    async fn of(reading: &Reading, stretch: Interval, book: Option<&PriceBook>, books: &Books) -> Result<Self, Error> {
        let slots = Evidence::slots(stretch, book, books.zone())?;
        let input = reading.input(&slots).await?;
        Ok(Self { slots, input })
    }

    fn evidence(&self) -> Evidence<'_> {
        Evidence { input: &self.input, slots: &self.slots }
    }
}

impl Books {
    /// What `budgets.toml` in the ledger's folder says; none where there is none. Errors: it or the billing policy can't be read, or
    /// is faulty.
    pub(crate) fn budget_file(&self) -> Result<Option<Budgets>, Error> {
        let Some(path) = self.ledger().folder().map(|folder| folder.join(BUDGETS_FILE)) else { return Ok(None) };
        let Some(text) = settings_file::read(&path)? else { return Ok(None) };
        // A year of a budget is the fiscal year that statements name, unless the file says otherwise.
        let (policy, _) = self.billing_policy()?;
        Budgets::parse(&text, policy.fiscal_year_starts).map(Some).map_err(|faults| Error::Budgets { path, faults })
    }

    /// How the budgets stand just before `asked`: in the periods that hold that moment, up to where the books then were.
    ///
    /// Errors: `budgets.toml` or the price book is faulty, or a budget is of a currency in which nothing has a price; the ledger's own.
    pub async fn budgets(&self, asked: Timestamp) -> Result<Budgeted, Error> {
        let budgets = self.budget_file()?;
        let zone = self.zone();
        let nothing = |until| (Vec::new(), Vec::new(), until);
        let (standings, holes, until): (Vec<Standing>, Vec<Hole>, Timestamp) = match &budgets {
            None => nothing(asked),
            Some(budgets) => {
                let reading = self.ledger().read().await?;
                match reading.extent().and_then(|all| budgets.spans(asked, all, zone)) {
                    Some(spans) => {
                        let book = self.prices_of(&reading, spans)?;
                        self.check_currencies(budgets, &reading)?;
                        let (made, holes) = self.standings(&reading, budgets, spans, book).await?;
                        (made, holes, spans.until)
                    }
                    None => nothing(asked),
                }
            }
        };
        let mut table = table(&standings, &holes, until, zone);
        if !standings.is_empty() {
            table.notes.extend(self.note_of_policy_on_budgets());
        }
        self.remark(&mut table);
        Ok(Budgeted { budgets, standings, until, table })
    }

    /// Budgets count in a currency in which something has a price, today or in a closed month. Errors: one does not.
    fn check_currencies(&self, budgets: &Budgets, reading: &Reading) -> Result<(), Error> {
        let Some(book) = self.prices_in_each_currency(None, reading, None)? else { return Ok(()) };
        let known = book.currencies();
        match budgets.currencies().find(|currency| !known.contains(currency)) {
            None => Ok(()),
            Some(budgets) => {
                let (budgets, prices) = (budgets.to_string(), book.currency().to_string());
                Err(Error::BudgetCurrency { budgets, prices })
            }
        }
    }

    /// The prices by which budgets count: what closed months of their periods were closed by, as it is billed.
    fn prices_of(&self, reading: &Reading, spans: Spans) -> Result<Option<PriceBook>, Error> {
        let both = spans.pace.map_or(spans.spent, |pace| {
            let (start, end) = (pace.start().min(spans.spent.start()), pace.end().max(spans.spent.end()));
            Interval::new(start, end).expect("no shorter than either")
        });
        self.prices_in_each_currency(None, reading, Some(both))
    }

    /// What the standings at a moment rest on: two that are equal have the same standings, but for how long a period has still to go. None where time alone moves them, since the books
    /// go on after that moment. Errors: as [`Self::budgets`].
    pub(crate) async fn budget_basis(&self, asked: Timestamp) -> Result<Option<BudgetBasis>, Error> {
        let (budgets, book) = (self.budget_file()?, self.prices(None)?);
        let (_, policy) = self.billing_policy()?;
        let reading = self.ledger().read().await?;
        let goes_on = reading.extent().is_some_and(|all| all.end() > asked);
        let month = self.zone().month(asked).filter(|_| !goes_on);
        let prices = book.map(|book| book.version().clone());
        Ok(month.map(|month| BudgetBasis { budgets, prices, policy, books: reading.version(), month }))
    }

    /// What could be saved of what the budgets paid for, in the periods that hold just before `asked`. Errors: no price book; as [`Self::budgets`].
    pub async fn advice(&self, asked: Timestamp) -> Result<Table, Error> {
        let found = match self.budget_file()? {
            Some(budgets) => self.advised(budgets, asked).await?,
            None => Vec::new(),
        };
        let mut table = advice_table(&found, &format!("advice, {}", self.zone()));
        self.remark(&mut table);
        Ok(table)
    }

    /// The advice with the largest savings, at most `most`, for one user on the month just before `asked`; none without prices. Errors: as [`Self::budgets`].
    pub(crate) async fn advice_for(&self, user: &str, asked: Timestamp, most: usize) -> Result<Vec<Advice>, Error> {
        let reading = self.ledger().read().await?;
        let zone = self.zone();
        let Some(extent) = reading.extent() else { return Ok(Vec::new()) };
        let last = Timestamp::from_unix_ms(asked.min(extent.end()).unix_ms() - 1);
        let Some(month) = zone.month(last) else { return Ok(Vec::new()) };
        let range = month.interval(zone);
        let known = Interval::new(extent.start().bucket_start(), last.bucket_start());
        let Some(book) = self.prices_in_each_currency(None, &reading, Some(range))? else { return Ok(Vec::new()) };
        let Some(known) = known else { return Ok(Vec::new()) };
        let spent = Loaded::of(&reading, range, Some(&book), self).await?;
        let memory = reading.card_memory(range).await?;
        let user = user.to_owned();
        let made = tokio::task::spawn_blocking(move || {
            let spent = spent.evidence();
            let sources = Sources { spent, range, known, book: &book, memory: &memory, dedicated_pool: None };
            for_user(&user, month, &sources, most)
        });
        Ok(made.await.expect("advice is made or its fault is a defect of ours"))
    }

    /// Advice on some budgets, of the books as far as they were at `asked`. Errors: as [`Self::advice`].
    pub(crate) async fn advised(&self, budgets: Budgets, asked: Timestamp) -> Result<Vec<Advice>, Error> {
        let reading = self.ledger().read().await?;
        let Some(extent) = reading.extent() else { return Ok(Vec::new()) };
        let Some(spans) = budgets.spans(asked, extent, self.zone()) else { return Ok(Vec::new()) };
        let book = self.prices_of(&reading, spans)?.ok_or(Error::NoPrices)?;
        // What the books speak of, up to what was asked: before that nothing is known of how steady anything was.
        let Some(known) = Interval::new(extent.start().bucket_start(), spans.until) else { return Ok(Vec::new()) };
        let spent = Loaded::of(&reading, spans.spent, Some(&book), self).await?;
        let memory = reading.card_memory(spans.spent).await?;
        let made = tokio::task::spawn_blocking(move || {
            let sources = Sources {
                spent: spent.evidence(),
                range: spans.spent,
                known,
                book: &book,
                memory: &memory,
                dedicated_pool: budgets.dedicated_pool.as_ref(),
            };
            let each = budgets.budgets.iter().filter_map(|budget| Some((budget, budgets.period(budget, spans.month)?)));
            each.flat_map(|(budget, period)| {
                // What could be saved is told in one currency: a budget's own, else that of today.
                let own = match budget.unit {
                    Unit::Money(own) => own,
                    Unit::CardHours => book.currency(),
                };
                advice(budget, period, &Sources { book: &book.only(own), ..sources })
            })
            .collect()
        });
        Ok(made.await.expect("advice is made or its fault is a defect of ours"))
    }

    async fn standings(
        &self,
        reading: &Reading,
        budgets: &Budgets,
        spans: Spans,
        book: Option<PriceBook>,
    ) -> Result<(Vec<Standing>, Vec<Hole>), Error> {
        let spent = Loaded::of(reading, spans.spent, book.as_ref(), self).await?;
        let pace = match spans.pace {
            Some(stretch) => Some(Loaded::of(reading, stretch, book.as_ref(), self).await?),
            None => None,
        };
        let (today, (policy, _)) = (self.prices(None)?, self.billing_policy()?);
        let terms = today.as_ref().map(|book| Terms { book, policy: &policy });
        let given_back = reading.given_back(spans.spent, self.zone(), terms).await?;
        let budgets = budgets.clone();
        let made = tokio::task::spawn_blocking(move || {
            let pace = pace.as_ref().map(Loaded::evidence);
            standings(&budgets, &spans, spent.evidence(), pace, &given_back, book.as_ref())
        });
        Ok(made.await.expect("standings are made or their fault is a defect of ours"))
    }
}
