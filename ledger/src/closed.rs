//! Closed months as readers see them: from when to when the books are frozen, and what was frozen.

use crate::Error;
use crate::columns::Interned;
use crate::store::{FileView, Snapshot, Store};
use crate::tables::closings::{self, CLOSINGS, Closing};
use crate::tables::entries::{self, ENTRIES};
use crate::tables::frozen::{CLOSED_JOBS, CLOSED_NODES, CLOSED_RESERVATIONS, CLOSED_USAGE, framed_rows};
use crate::tables::{OF_CLOSINGS, reservations};
use cardhour_books::cluster::Frame;
use cardhour_books::prices::PriceBook;
use cardhour_books::site::{Node, Reservation};
use cardhour_books::statement::Entry;
use cardhour_domain::{Interval, Month, Name, Zone};
use std::collections::BTreeMap;

/// Every closed month of a ledger: a run of months without a hole, since each is closed after the one before it.
pub(crate) struct Closed {
    /// In order of months; at least one.
    pub(crate) closings: Vec<Closing>,
    /// From the first closed month's start to the last one's end.
    pub(crate) during: Interval,
    pub(crate) usage: Snapshot,
    pub(crate) jobs: Snapshot,
    pub(crate) entries: Snapshot,
    reservations: Snapshot,
    nodes: Snapshot,
}

impl Closed {
    /// What is closed; none where nothing ever was.
    pub(crate) async fn load(store: &Store, zone: Zone) -> Result<Option<Self>, Error> {
        let Some(snapshot) = store.open(&CLOSINGS).await? else {
            // A closing makes its table before it freezes anything.
            let frozen = OF_CLOSINGS.iter().filter(|table| table.name != CLOSINGS.name);
            let there = futures::future::try_join_all(frozen.map(|table| store.open(table))).await?;
            return match there.into_iter().flatten().next() {
                None => Ok(None),
                Some(one) => {
                    let what = format!("it is not there, and {} is: closed months would be open again", one.table.name);
                    Err(Error::damaged(CLOSINGS.name, what))
                }
            };
        };
        let mut closings = all(&snapshot).await?;
        closings.sort_by_key(|closing| closing.month);
        let (Some(first), Some(last)) = (closings.first(), closings.last()) else { return Ok(None) };
        let (start, end) = (first.month.interval(zone).start(), last.month.interval(zone).end());
        let during = Interval::new(start, end).expect("months are in order");
        if let Some(other) = closings.iter().find(|closing| closing.zone.is_some_and(|of| of != zone)) {
            let (month, of) = (other.month, other.zone.expect("it is another"));
            return Err(Error::damaged(
                CLOSINGS.name,
                format!("{month} was closed in zone {of}, the ledger's is {zone}"),
            ));
        }
        let follows = closings.windows(2).all(|pair| pair[0].month.next() == pair[1].month);
        if !follows {
            return Err(Error::damaged(CLOSINGS.name, "closed months that don't follow each other"));
        }
        let (usage, jobs, entries, reservations, nodes) = futures::future::try_join5(
            store.open_or_create(&CLOSED_USAGE),
            store.open_or_create(&CLOSED_JOBS),
            store.open_or_create(&ENTRIES),
            store.open_or_create(&CLOSED_RESERVATIONS),
            store.open_or_create(&CLOSED_NODES),
        )
        .await?;
        Ok(Some(Self { closings, during, usage, jobs, entries, reservations, nodes }))
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

    /// The entries of some closed months, each month's in the order of its statements.
    pub(crate) async fn entries<'a>(&self, of: impl Iterator<Item = &'a Closing>) -> Result<Vec<Entry>, Error> {
        let mut names = Interned::default();
        let mut out = Vec::new();
        for closing in of {
            let before = out.len();
            for (_, batches) in self.entries.read_with(Self::files(&self.entries, closing), None, &[], Ok).await? {
                for batch in &batches {
                    out.extend(entries::rows(batch, &mut names)?);
                }
            }
            closing.check_rows(ENTRIES.name, out.len() - before)?;
        }
        Ok(out)
    }

    /// That every closed month has as many entries as it was closed with. Errors: one hasn't. What is less than was signed would be charged again.
    pub(crate) async fn check_entries(&self) -> Result<(), Error> {
        for closing in &self.closings {
            let found = self.entries.rows_in(Self::files(&self.entries, closing)).await?;
            if u64::try_from(found) != Ok(closing.entries) {
                let what =
                    format!("{} was closed with {} entries, and {found} are there", closing.month, closing.entries);
                return Err(Error::damaged(ENTRIES.name, what));
            }
        }
        Ok(())
    }

    /// The reservations that a month was closed with; none where an earlier cardhour closed it, which froze none.
    pub(crate) async fn reservations(&self, closing: &Closing) -> Result<Option<Vec<Reservation>>, Error> {
        if !closing.has_frozen(CLOSED_RESERVATIONS.name) {
            return Ok(None);
        }
        let mut names = Interned::default();
        let mut out = Vec::new();
        let files = Self::files(&self.reservations, closing);
        for (_, batches) in self.reservations.read_with(files, None, &[], Ok).await? {
            for batch in &batches {
                out.extend(reservations::rows(batch, &mut names)?);
            }
        }
        closing.check_rows(CLOSED_RESERVATIONS.name, out.len())?;
        Ok(Some(out))
    }

    /// The nodes that a month was accounted by, each with how its cluster was grouped, by cluster and name; none where an earlier cardhour closed it, which
    /// froze none.
    pub(crate) async fn nodes(&self, closing: &Closing) -> Result<Option<BTreeMap<Name, (Frame, Vec<Node>)>>, Error> {
        if !closing.has_frozen(CLOSED_NODES.name) {
            return Ok(None);
        }
        let mut names = Interned::default();
        let mut out: BTreeMap<Name, (Frame, Vec<Node>)> = BTreeMap::new();
        for (_, batches) in self.nodes.read_with(Self::files(&self.nodes, closing), None, &[], Ok).await? {
            for batch in &batches {
                for (node, frame) in framed_rows(batch, &mut names)? {
                    out.entry(node.cluster.clone()).or_insert_with(|| (frame, Vec::new())).1.push(node);
                }
            }
        }
        closing.check_rows(CLOSED_NODES.name, out.values().map(|(_, nodes)| nodes.len()).sum())?;
        out.values_mut().for_each(|(_, nodes)| nodes.sort_by(|a, b| a.node.cmp(&b.node)));
        Ok(Some(out))
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
    /// Whether it froze rows of a table, be they none.
    fn has_frozen(&self, table: &str) -> bool {
        self.frozen.as_ref().is_some_and(|frozen| frozen.contains_key(table))
    }

    /// That a table has as many rows of it as it was closed with, `found` of which were read. Errors: it has more or fewer, and whatever was made of them would
    /// be another figure than was signed. Of a month that an earlier cardhour closed only the number of entries is known.
    pub(crate) fn check_rows(&self, table: &'static str, found: usize) -> Result<(), Error> {
        let said = self.frozen.as_ref().and_then(|frozen| frozen.get(table)).copied();
        let said = said.or((table == ENTRIES.name).then_some(self.entries));
        match said {
            Some(said) if said != found as u64 => {
                Err(Error::damaged(table, format!("{} was closed with {said} rows, and {found} are there", self.month)))
            }
            _ => Ok(()),
        }
    }

    /// The price book that it was closed by. Errors: its text is no price book, which no closing writes.
    pub fn price_book(&self) -> Result<PriceBook, Error> {
        let damaged = |what: String| Error::damaged(CLOSINGS.name, format!("price book of {}: {what}", self.month));
        PriceBook::parse(&self.prices)
            .map_err(|faults| damaged(faults.to_string()))?
            .ok_or_else(|| damaged("it says nothing".to_owned()))
    }
}
