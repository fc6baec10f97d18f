//! Closed months as readers see them: from when to when the books are frozen, and what was frozen.

use crate::Error;
use crate::columns::Interned;
use crate::store::{FileView, Snapshot, Store};
use crate::tables::closings::{self, CLOSINGS, Closing};
use crate::tables::entries::{self, ENTRIES};
use crate::tables::frozen::{CLOSED_JOBS, CLOSED_USAGE};
use cardhour_books::prices::PriceBook;
use cardhour_books::statement::Entry;
use cardhour_domain::{Interval, Month, Zone};

/// Every closed month of a ledger: a run of months without a hole, since each is closed after the one before it.
pub(crate) struct Closed {
    /// In order of months; at least one.
    pub(crate) closings: Vec<Closing>,
    /// From the first closed month's start to the last one's end.
    pub(crate) during: Interval,
    pub(crate) usage: Snapshot,
    pub(crate) jobs: Snapshot,
    pub(crate) entries: Snapshot,
}

impl Closed {
    /// What is closed; none where nothing ever was.
    pub(crate) async fn load(store: &Store, zone: Zone) -> Result<Option<Self>, Error> {
        let Some(snapshot) = store.open(&CLOSINGS).await? else { return Ok(None) };
        let mut closings = all(&snapshot).await?;
        closings.sort_by_key(|closing| closing.month);
        let (Some(first), Some(last)) = (closings.first(), closings.last()) else { return Ok(None) };
        let (start, end) = (first.month.interval(zone).start(), last.month.interval(zone).end());
        let during = Interval::new(start, end).expect("months are in order");
        let follows = closings.windows(2).all(|pair| pair[0].month.next() == pair[1].month);
        if !follows {
            return Err(Error::damaged(CLOSINGS.name, "closed months that don't follow each other"));
        }
        let (usage, jobs, entries) = futures::future::try_join3(
            store.open_or_create(&CLOSED_USAGE),
            store.open_or_create(&CLOSED_JOBS),
            store.open_or_create(&ENTRIES),
        )
        .await?;
        Ok(Some(Self { closings, during, usage, jobs, entries }))
    }

    pub(crate) fn of(&self, month: Month) -> Option<&Closing> {
        self.closings.iter().find(|closing| closing.month == month)
    }

    /// The first month after the closed ones.
    pub(crate) fn open_month(&self) -> Month {
        self.closings[self.closings.len() - 1].month.next()
    }

    /// The files that a closing froze in one of its tables.
    pub(crate) fn files(snapshot: &Snapshot, closing: &Closing) -> Vec<FileView> {
        snapshot.files.iter().filter(|file| file.is_of(std::iter::once(closing))).cloned().collect()
    }

    /// Every entry of every closed month, each month's in the order of its statements.
    pub(crate) async fn entries(&self) -> Result<Vec<Entry>, Error> {
        let mut names = Interned::default();
        let mut out = Vec::new();
        for closing in &self.closings {
            let files = Self::files(&self.entries, closing);
            for (_, batches) in self.entries.read_with(files, None, &[], Ok).await? {
                for batch in &batches {
                    out.extend(entries::rows(batch, &mut names)?);
                }
            }
        }
        Ok(out)
    }
}

async fn all(snapshot: &Snapshot) -> Result<Vec<Closing>, Error> {
    let mut names = Interned::default();
    let mut out = Vec::new();
    for (_, batches) in snapshot.read(|_| true, None, &[]).await? {
        for batch in &batches {
            out.extend(closings::rows(batch, &mut names)?);
        }
    }
    Ok(out)
}

impl Closing {
    /// The price book that it was closed by. Errors: its text is no price book, which no closing writes.
    pub fn price_book(&self) -> Result<PriceBook, Error> {
        let damaged = |what: String| Error::damaged(CLOSINGS.name, format!("price book of {}: {what}", self.month));
        PriceBook::parse(&self.prices)
            .map_err(|faults| damaged(faults.to_string()))?
            .ok_or_else(|| damaged("it says nothing".to_owned()))
    }
}
