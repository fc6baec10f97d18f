//! What would have happened under other quotas: a time of the books played by the scheduler core, under today's quotas and under proposed ones, beside what really happened.
//!
//! Start at [`Books::replay_policy`]. Does not: decide or measure, which the scheduler core does; write or carry out anything.

mod compared;
mod record;

use crate::books::{Books, SIMULATED};
use crate::error::Error;
use crate::planned::pool::{Months, Owner, queues};
use crate::request::Span;
use crate::settings_file;
use cardhour_books::checkpoint::Checkpoint;
use cardhour_books::prices::{PriceBook, Priced};
use cardhour_books::quotas::Quotas;
use cardhour_books::report::local;
use cardhour_books::run_costs::{PricedRun, RunCosts, run_costs};
use cardhour_books::slots::Slots;
use cardhour_books::table::Table;
use cardhour_domain::{BUCKET_MS, CardShare, CardTime, Currency, Interval, Name, Timestamp, Zone};
use cardhour_scheduler_core::Policy;
use cardhour_scheduler_core::names::Model;
use cardhour_scheduler_core::replay::policy::measure::{Figures, Guarantee, Kept, capacity, held, kept, measure};
use cardhour_scheduler_core::replay::policy::{Course, Run, Trace};
use record::Record;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How far back past usage is looked at. Unit: milliseconds, four weeks.
const PAST_MS: i64 = 28 * 24 * 3_600_000;

/// What is asked of `replay policy`.
#[derive(Clone, Debug)]
pub struct PlayRequest {
    /// Of what time.
    pub span: Span,
    /// The proposed quotas; none: only today's are played.
    pub quotas: Option<PathBuf>,
    /// Another price book than the ledger's.
    pub prices: Option<PathBuf>,
    /// Who counts as a team; none: as deep as quotas go.
    pub teams: Option<Teams>,
}

/// Who counts as a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Teams {
    /// An organisation.
    Orgs,
    /// A project of one.
    Projects,
}

impl Teams {
    const fn depth(self) -> usize {
        match self {
            Self::Orgs => 1,
            Self::Projects => 2,
        }
    }

    /// Organisations where only those have quotas, else projects.
    fn of(all: &[&Quotas]) -> Self {
        let mut quotas = all.iter().flat_map(|quotas| &quotas.quotas).peekable();
        let some = quotas.peek().is_some();
        if some && quotas.all(|quota| quota.holder.project.is_none()) { Self::Orgs } else { Self::Projects }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Compared {
    /// For people: a table a figure, the sides beside one another, with charts.
    pub report: Checkpoint,
    /// For programs: a row for each team and side.
    pub table: Table,
    /// Whether the auditor found fault with a plan, which is a defect: nothing of it can be trusted.
    pub is_faulty: bool,
}

/// One way in which it went or would have gone.
#[derive(Debug, Default)]
struct Side {
    name: &'static str,
    figures: BTreeMap<usize, Figures>,
    kept: BTreeMap<usize, Kept>,
    costs: RunCosts,
    /// What was held on each day.
    by_day: Vec<CardTime>,
    faults: Vec<String>,
}

/// All that is compared.
struct Comparison {
    during: Interval,
    zone: Zone,
    teams: Vec<String>,
    sides: Vec<Side>,
    capacity: CardTime,
    days: Vec<(String, CardTime)>,
    currency: Option<Currency>,
    notes: Vec<String>,
}

impl Books {
    /// What would have happened in a time under today's quotas and under proposed ones.
    ///
    /// Errors: quotas or prices are faulty, or the file isn't there; the ledger's own.
    pub async fn replay_policy(&self, request: &PlayRequest) -> Result<Compared, Error> {
        let today = self.quotas()?;
        let proposed = request.quotas.as_deref().map(read_quotas).transpose()?;
        let book = self.prices(request.prices.as_deref())?;
        let zone = self.zone();
        let reading = self.ledger().read().await?;
        let (from, to) = request.span.bounds(zone)?;
        let known = reading.extent().and_then(|all| {
            let from = from.map_or(all.start(), |from| from.max(all.start()));
            whole_buckets(Interval::new(from, to.map_or(all.end(), |to| to.min(all.end())))?)
        });
        let Some(during) = known else {
            let notes = vec!["the books do not speak of this time".to_owned()];
            let title = "replay of a policy, nothing to play".to_owned();
            let report = Checkpoint { title, summary: Vec::new(), sections: Vec::new(), notes, has_holes: false };
            let table = Table { title: report.title.clone(), notes: report.notes.clone(), ..Table::default() };
            return Ok(Compared { report, table, is_faulty: false });
        };
        let course = reading.course(during).await?;
        let past = during.start().checked_add_ms(-PAST_MS).and_then(|from| Interval::new(from, during.start()));
        let before = match past {
            Some(past) => reading.held_in(past).await?,
            None => Vec::new(),
        };
        let slots =
            Slots::new(during, book.as_ref(), zone, None).map_err(|source| cardhour_ledger::Error::Cut { source })?;
        let of_all: Vec<&Quotas> = std::iter::once(&today).chain(&proposed).collect();
        let teams = request.teams.unwrap_or_else(|| Teams::of(&of_all));
        let playing = tokio::task::spawn_blocking(move || {
            let mut clusters: BTreeSet<&Name> = course.nodes.iter().map(|(node, _)| &node.cluster).collect();
            clusters.extend(course.attempts.iter().map(|attempt| &attempt.cluster));
            let mut notes = Vec::new();
            let mut records = Vec::new();
            for cluster in clusters {
                match Record::new(cluster, during, &course, &before) {
                    Some(record) => records.push(record),
                    None => notes.push(format!(
                        "{cluster:?}: no node with cards is known in that time, so nothing is played: cardhour import nodes"
                    )),
                }
            }
            let proposed = proposed.as_ref();
            let terms = Terms { during, zone, today: &today, proposed, teams, slots: &slots, book: book.as_ref() };
            compare(&records, &terms, notes)
        });
        let comparison = playing.await.expect("jobs are played or their fault is a defect of ours");
        let mut compared = comparison.told();
        if self.is_demo() {
            for (title, notes) in [
                (&mut compared.report.title, &mut compared.report.notes),
                (&mut compared.table.title, &mut compared.table.notes),
            ] {
                *title = format!("{title} (simulated)");
                notes.insert(0, SIMULATED.to_owned());
            }
        }
        Ok(compared)
    }
}

fn read_quotas(path: &Path) -> Result<Quotas, Error> {
    let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
    let text = settings_file::read(path)?.ok_or_else(|| Error::File {
        doing: "read",
        path: path.to_owned(),
        source: missing(),
    })?;
    Quotas::parse(&text).map_err(|faults| Error::Quotas { path: path.to_owned(), faults })
}

/// The quarter hours that a time touches.
fn whole_buckets(all: Interval) -> Option<Interval> {
    let last = Timestamp::from_unix_ms(all.end().unix_ms() - 1).bucket_start();
    Interval::new(all.start().bucket_start(), last.checked_add_ms(BUCKET_MS)?)
}

/// What quotas, prices and time are played and measured by.
struct Terms<'a> {
    during: Interval,
    zone: Zone,
    today: &'a Quotas,
    proposed: Option<&'a Quotas>,
    teams: Teams,
    slots: &'a Slots,
    book: Option<&'a PriceBook>,
}

fn compare(records: &[Record], terms: &Terms<'_>, notes: Vec<String>) -> Comparison {
    let team_of = |owner: &Owner| owner.at_most(terms.teams.depth());
    let all: BTreeSet<Owner> = records.iter().flat_map(|record| record.owners.iter().map(team_of)).collect();
    let number: BTreeMap<&Owner, usize> = all.iter().zip(0..).collect();
    let groups: Vec<Vec<usize>> =
        records.iter().map(|record| record.owners.iter().map(|owner| number[&team_of(owner)]).collect()).collect();
    let days = days(terms.during, terms.zone);
    let of_all = |during: Interval| -> CardTime {
        records.iter().map(|record| capacity(&record.trace.pool.hosts, &record.trace.hosts, during)).sum()
    };
    let played = [("recorded", None), ("today", Some(terms.today))].into_iter();
    let played = played.chain(terms.proposed.map(|proposed| ("proposed", Some(proposed))));
    let sides = played.map(|(name, quotas)| {
        // What really happened is held against the guarantees of today.
        let quotas_of = quotas.unwrap_or(terms.today);
        let courses: Vec<Course> = records.iter().map(|record| record.play(quotas)).collect();
        let mut side = Side { name, ..Side::default() };
        for ((record, course), group_of) in records.iter().zip(&courses).zip(&groups) {
            let group_of: Vec<Option<usize>> = group_of.iter().copied().map(Some).collect();
            for (team, figures) in measure(&record.trace, course, terms.during, &group_of) {
                side.figures.entry(team).or_default().add(figures);
            }
            for (team, guarantee) in guarantees(record, quotas_of, &number) {
                let one = kept(&record.trace, course, terms.during, &guarantee);
                let sum = side.kept.entry(team).or_default();
                sum.owed += one.owed;
                sum.granted += one.granted;
            }
            side.faults.extend(course.faults.iter().map(|(at, fault)| {
                format!("{:?}, {}: the auditor finds a fault: {fault:?}", record.cluster, local(terms.zone, *at))
            }));
        }
        let held_on = |day: &Interval| -> CardTime {
            records.iter().zip(&courses).map(|(record, course)| held(&record.trace, course, *day)).sum()
        };
        side.by_day = days.iter().map(held_on).collect();
        if let Some(book) = terms.book {
            let shares: Vec<Vec<String>> = records.iter().map(Record::shares).collect();
            let runs = records.iter().zip(&courses).zip(groups.iter().zip(&shares));
            let runs = runs.flat_map(|((record, course), (group_of, shares))| {
                course.runs.iter().filter_map(move |run| {
                    let during = Interval::new(run.from, run.to)?.overlap(terms.during)?;
                    Some(priced(record, run, during, group_of[run.job], &shares[run.job]))
                })
            });
            side.costs = run_costs(runs, terms.slots, book);
        }
        side
    });
    Comparison {
        during: terms.during,
        zone: terms.zone,
        teams: all.iter().map(|owner| owner.queue().as_str().to_owned()).collect(),
        sides: sides.collect(),
        capacity: of_all(terms.during),
        days: days.iter().map(|day| (date(*day, terms.zone), of_all(*day))).collect(),
        currency: terms.book.map(PriceBook::currency),
        notes: notes.into_iter().chain(records.iter().flat_map(|record| record.notes.iter().cloned())).collect(),
    }
}

impl Record {
    /// How it goes under quotas; without any, how it went.
    fn play(&self, quotas: Option<&Quotas>) -> Course {
        let Some(quotas) = quotas else { return self.recorded.clone() };
        let owners: BTreeSet<Owner> = self.owners.iter().cloned().collect();
        let mut trace: Trace = self.trace.clone();
        trace.pool.queues = queues(&self.cluster, owners, quotas, &BTreeMap::new(), &Months::default());
        trace.play_audited(&Policy::default())
    }

    /// Of each job the share of a card, as prices select by it.
    fn shares(&self) -> Vec<String> {
        let is_whole = |cards: CardShare| cards.parts() % CardShare::CARD.parts() == 0;
        let share =
            |cards: CardShare| if is_whole(cards) { "1".to_owned() } else { cards.cards().normalize().to_string() };
        self.attempts.iter().map(|attempt| share(attempt.cards)).collect()
    }
}

fn priced<'a>(record: &'a Record, run: &'a Run, during: Interval, group: usize, share: &'a str) -> PricedRun<'a> {
    let attempt = &record.attempts[run.job];
    let what = Priced {
        model: run.model.as_ref().map(Model::as_str),
        mig_profile: attempt.mig_profile.as_deref(),
        share: Some(share),
        pool: record.pools[run.job].as_deref(),
        queue: attempt.queue.as_deref(),
        class: attempt.class.as_deref(),
        org: attempt.org.as_deref(),
        project: attempt.project.as_deref(),
        cluster: Some(&*record.cluster),
    };
    PricedRun { what, user: attempt.user.as_deref(), group, cards: attempt.cards, during }
}

/// What teams are guaranteed of a cluster's cards by quotas of their own.
fn guarantees(record: &Record, quotas: &Quotas, number: &BTreeMap<&Owner, usize>) -> Vec<(usize, Guarantee)> {
    let of_cluster = quotas.quotas.iter().filter(|quota| quota.cluster.as_ref().is_none_or(|of| *of == record.cluster));
    of_cluster
        .filter_map(|quota| {
            let (cards, owner) = (quota.cards.as_ref()?, Owner::of_quota(quota));
            let team = *number.get(&owner)?;
            let is_theirs = |(_, of): &(usize, &Owner)| of.is_of(&owner);
            let jobs = record.owners.iter().enumerate().filter(is_theirs).map(|(place, _)| place).collect();
            let cards_of = CardShare::from_cards(i64::from(cards.guaranteed)).ok()?;
            Some((team, Guarantee { jobs, model: Model::new(&cards.model), cards: cards_of }))
        })
        .filter(|(_, guarantee)| !guarantee.cards.is_zero())
        .collect()
}

/// The days of a time, those at its edges as far as they lie in it.
fn days(during: Interval, zone: Zone) -> Vec<Interval> {
    let mut days = Vec::new();
    let mut date = zone.date(during.start());
    while let Some(day) = date.and_then(|date| zone.day(date)).and_then(|day| day.overlap(during)) {
        days.push(day);
        date = date.and_then(|date| date.succ_opt());
    }
    days
}

fn date(day: Interval, zone: Zone) -> String {
    zone.date(day.start()).map_or_else(|| day.start().to_string(), |date| date.to_string())
}
