//! Deliveries by schedule meet the ledger: statements, FOCUS and reports into folders and buckets, each week or month once.
//!
//! ```text
//! [[delivery]] ─ owed ─ made ─► files ─ put ─► folder or bucket ─► a row of the table `deliveries`
//!    books::delivery says which terms are due         each file whole or not at all
//! ```
//!
//! What was delivered is remembered in the ledger when its files are in place, so a crash between the two delivers the same files again, under the
//! same names. What couldn't be delivered is owed still, and tried again with a later look.
//!
//! Start at [`Deliverer::look`]. Does not: decide what is due ([`cardhour_books::delivery`] does), make a figure.

mod made;
mod place;
mod watch;

pub use place::Place;
pub use watch::{DeliveryCounts, Watch};

use crate::answer::texts;
use crate::books::Books;
use crate::config::{Config, DeliveryConfig, What};
use crate::error::{Error, chain};
use crate::quote::unknown_name;
use cardhour_books::delivery::{Closing, Edition, Look, Owed, Schedule, Term, Waits};
use cardhour_books::report::local;
use cardhour_books::statement::PLATFORM;
use cardhour_books::table::{Table, Value};
use cardhour_domain::{Interval, Name, Timestamp, Zone};
use cardhour_ledger::Delivered;
use made::made;
use std::collections::BTreeSet;

/// One delivery of the config, and the way to its place.
#[derive(Debug)]
pub struct Deliverer {
    config: DeliveryConfig,
    place: Place,
}

/// How a term of a delivery stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Which term.
    pub term: Term,
    /// How it stands.
    pub state: State,
}

/// How a term stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It was delivered with this look: the names of its files, none where there was nothing to deliver.
    Delivered(Edition, Vec<String>),
    /// It would be delivered now.
    Due(Edition),
    /// It is due, and not delivered for this reason.
    Failed(Edition, String),
    /// It is due, and waits.
    Waiting(Waits),
    /// It was missed so long ago that it isn't made up.
    GivenUp,
    /// It is due at this time.
    Next(Timestamp),
}

/// Whether a look delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What is due is delivered and remembered.
    Deliver,
    /// Nothing is changed.
    DryRun,
}

impl Deliverer {
    /// All of a config. Errors: the certificates of a bucket can't be used.
    pub fn all(config: &Config) -> Result<Vec<Self>, Error> {
        let one = |config: &DeliveryConfig| Ok(Self { place: Place::of(&config.to)?, config: config.clone() });
        config.deliveries.iter().map(one).collect()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// What it delivers: `statement`.
    pub fn what(&self) -> String {
        self.config.what.name()
    }

    /// Where to.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Its schedule.
    pub fn schedule(&self) -> Schedule {
        self.config.schedule
    }

    /// A word on each organisation that it names and the books don't know, with those that it may have been meant for; nothing while the books know none.
    pub async fn unknown_orgs(&self, books: &Books) -> Result<Vec<String>, Error> {
        let What::Statement { orgs, .. } = &self.config.what else { return Ok(Vec::new()) };
        if orgs.is_empty() {
            return Ok(Vec::new());
        }
        let known = books.orgs().await?;
        Ok(unknown_orgs(self.name(), orgs, &known))
    }

    /// What is owed at `now`, of what the ledger remembers of it. Errors: the ledger's own.
    async fn owed(&self, books: &Books, rows: &[Delivered], now: Timestamp) -> Result<Owed, Error> {
        let own = || rows.iter().filter(|row| *row.delivery == *self.config.name);
        let term = |row: &Delivered| row.term.parse::<Term>().ok();
        let is_like = |term: &Term| match (self.config.schedule, term) {
            (Schedule::Weekly { .. }, Term::Week(_)) | (Schedule::Monthly { .. }, Term::Month(_)) => true,
            (Schedule::Weekly { .. }, Term::Month(_)) | (Schedule::Monthly { .. }, Term::Week(_)) => false,
        };
        let since = own().filter(|row| *row.edition == *Delivered::FROM).filter_map(term).find(is_like);
        let done: BTreeSet<(Term, Edition)> =
            own().filter_map(|row| Some((term(row)?, Edition::from_name(&row.edition)?))).collect();
        let nothing_closed = BTreeSet::new();
        let far = (Timestamp::from_unix_ms(0), Timestamp::from_unix_ms(i64::MAX));
        let look = Look {
            now,
            zone: books.zone(),
            since,
            done: &done,
            closed: &nothing_closed,
            books: Interval::new(far.0, far.1),
        };
        // The books are looked at only where something may be due.
        if since.is_some() && Owed::of(self.config.schedule, Closing::Any, &look).due.is_empty() {
            return Ok(Owed::of(self.config.schedule, self.config.closing(), &look));
        }
        let reading = books.ledger().read().await?;
        let closed = reading.closings().iter().map(|closing| closing.month).collect();
        let look = Look { closed: &closed, books: reading.extent(), ..look };
        Ok(Owed::of(self.config.schedule, self.config.closing(), &look))
    }

    /// Looks at what is owed at `now`, and delivers it where `mode` says so. Comes back with how each term stands that is owed, oldest first.
    ///
    /// Errors: the ledger's own. What can't be made or put in place is no error: it is [`State::Failed`], and owed still.
    pub async fn look(&self, books: &Books, now: Timestamp, mode: Mode) -> Result<Vec<Standing>, Error> {
        let rows = books.ledger().delivered().await?;
        let own = || rows.iter().filter(|row| *row.delivery == *self.config.name);
        if mode == Mode::Deliver
            && let Some(latest) = self.config.schedule.latest(now, books.zone())
            && !own().any(|row| *row.edition == *Delivered::FROM && row.term.contains('W') == is_week(latest))
        {
            // From here on nothing is forgotten, whenever its month is closed.
            let edition = Delivered::FROM.into();
            books.ledger().add_delivered(&self.row(latest, edition, None, now)).await?;
        }
        let owed = self.owed(books, &rows, now).await?;
        let mut standings = Vec::new();
        standings.extend(owed.given_up.into_iter().map(|term| Standing { term, state: State::GivenUp }));
        let mut is_reachable = true;
        for (term, edition) in owed.due {
            let state = match mode {
                Mode::DryRun => State::Due(edition),
                // Others would fare no better.
                Mode::Deliver if !is_reachable => State::Due(edition),
                Mode::Deliver => match made(books, &self.config.what, term, edition).await {
                    Err(error) => State::Failed(edition, chain(&error)),
                    Ok(files) => {
                        let names = files.names();
                        match self.place.put(files).await {
                            Err(error) => {
                                is_reachable = false;
                                State::Failed(edition, chain(&error))
                            }
                            Ok(()) => {
                                let row = self.row(term, edition.name().into(), Some(&names), now);
                                books.ledger().add_delivered(&row).await?;
                                State::Delivered(edition, names)
                            }
                        }
                    }
                },
            };
            standings.push(Standing { term, state });
        }
        let waiting = owed.waiting.into_iter();
        standings.extend(waiting.map(|(term, waits)| Standing { term, state: State::Waiting(waits) }));
        standings.sort_by_key(|standing| standing.term);
        Ok(standings)
    }

    fn row(&self, term: Term, edition: Name, files: Option<&[String]>, at: Timestamp) -> Delivered {
        Delivered {
            at,
            delivery: self.config.name.as_str().into(),
            term: term.to_string().into(),
            edition,
            place: files.map(|_| self.place.to_string().into()),
            files: files.map(|files| files.join("\n").into()),
        }
    }
}

fn unknown_orgs(delivery: &str, orgs: &[String], known: &BTreeSet<Name>) -> Vec<String> {
    // PLATFORM's statement has what nobody's is: there is one whatever the records say.
    let is_unknown = |org: &&String| !known.is_empty() && !known.contains(org.as_str()) && org.as_str() != PLATFORM;
    let say = |org: &String| format!("delivery {delivery:?}: {}", unknown_name("org", org, known));
    orgs.iter().filter(is_unknown).map(say).collect()
}

fn is_week(term: Term) -> bool {
    matches!(term, Term::Week(_))
}

impl State {
    /// In a word or two, for people and programs.
    pub fn words(&self) -> String {
        match self {
            Self::Delivered(_, files) if files.is_empty() => "nothing to deliver".to_owned(),
            Self::Delivered(..) => "delivered".to_owned(),
            Self::Due(_) => "due".to_owned(),
            Self::Failed(_, reason) => format!("failed: {reason}"),
            Self::Waiting(Waits::ForClosing) => "waits for the month's closing".to_owned(),
            Self::Waiting(Waits::ForBooks) => "waits for the books to speak of it".to_owned(),
            Self::GivenUp => "missed too long ago, not made up".to_owned(),
            Self::Next(_) => "next".to_owned(),
        }
    }

    fn edition(&self) -> Option<Edition> {
        match self {
            Self::Delivered(edition, _) | Self::Due(edition) | Self::Failed(edition, _) => Some(*edition),
            Self::Waiting(_) | Self::GivenUp | Self::Next(_) => None,
        }
    }

    fn files(&self) -> Option<String> {
        match self {
            Self::Delivered(_, files) => Some(files.join(" ")),
            Self::Due(_) | Self::Failed(..) | Self::Waiting(_) | Self::GivenUp | Self::Next(_) => None,
        }
    }
}

/// How deliveries stand, a row a term; with the term that comes next.
///
/// Columns: `delivery what term edition state due_at to files`.
pub fn table(looks: &[(&Deliverer, Vec<Standing>)], now: Timestamp, zone: Zone) -> Table {
    let text = |text: String| if text.is_empty() { Value::Absent } else { Value::Text(text.into()) };
    let mut rows = Vec::new();
    for (deliverer, standings) in looks {
        let next = deliverer.schedule().next(now, zone);
        let next = next.map(|(term, at)| Standing { term, state: State::Next(at) });
        for Standing { term, state } in standings.iter().chain(&next) {
            let due_at = deliverer.schedule().due_at(*term, zone);
            rows.push(vec![
                text(deliverer.name().to_owned()),
                text(deliverer.what()),
                text(term.to_string()),
                text(state.edition().map_or_else(String::new, |edition| edition.name().to_owned())),
                text(state.words()),
                text(due_at.map_or_else(String::new, |at| local(zone, at))),
                text(deliverer.place().to_string()),
                text(state.files().unwrap_or_default()),
            ]);
        }
    }
    Table {
        title: format!("deliveries, {zone}"),
        columns: texts(&["delivery", "what", "term", "edition", "state", "due_at", "to", "files"]),
        rows,
        ..Table::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_org_that_the_books_do_not_know_is_told_with_the_one_it_may_be() {
        let known: BTreeSet<Name> = ["acme", "nova"].map(Name::from).into();
        let orgs = ["acmee", "nova", "platform", "zzz"].map(str::to_owned);
        assert_eq!(
            unknown_orgs("month", &orgs, &known),
            [
                "delivery \"month\": the books have no org \"acmee\": did you mean acme?",
                "delivery \"month\": the books have no org \"zzz\"",
            ]
        );
        assert_eq!(unknown_orgs("month", &orgs, &BTreeSet::new()), [""; 0], "empty books know nobody");
    }
}
