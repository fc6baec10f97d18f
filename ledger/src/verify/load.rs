//! The stored tables as bare numbers.

use super::span::{Span, joined};
use crate::columns::{Interned, Rows, opt_text};
use crate::tables::conflicts::CONFLICTS;
use crate::tables::holdings::HOLDINGS;
use crate::tables::observed_jobs::OBSERVED_JOBS;
use crate::tables::{coverage, jobs, reservations};
use crate::{Error, Ledger, Reading};
use arrow::record_batch::RecordBatch;
use cardhour_books::attempt::Attempt;
use cardhour_books::site::{Node, Outage, Reservation};
use cardhour_books::versions::content_hash;
use cardhour_domain::{JobState, Name, Timestamp};
use std::collections::{BTreeMap, HashMap};

/// A text that many rows share, by number.
pub(super) type Id = u32;

/// Texts by number, and numbers by text.
#[derive(Default)]
pub(super) struct Names {
    all: Vec<Name>,
    ids: HashMap<Name, Id>,
}

impl Names {
    pub fn id(&mut self, text: &str) -> Id {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = Id::try_from(self.all.len()).expect("fewer than 2³² names");
        let name: Name = text.into();
        self.all.push(name.clone());
        self.ids.insert(name, id);
        id
    }

    pub fn opt(&mut self, text: Option<&Name>) -> Option<Id> {
        text.map(|text| self.id(text))
    }

    /// The number of a text that is known.
    pub fn known(&self, text: &str) -> Option<Id> {
        self.ids.get(text).copied()
    }

    pub fn get(&self, id: Id) -> &Name {
        &self.all[id as usize]
    }

    pub fn text(&self, id: Option<Id>) -> &str {
        id.map_or("-", |id| &self.all[id as usize])
    }
}

/// A row of `jobs`.
pub(super) struct Job {
    pub key: Name,
    pub cluster: Id,
    /// Org, project, user.
    pub owner: [Option<Id>; 3],
    pub queue: Option<Id>,
    pub class: Option<Id>,
    pub model: Option<Id>,
    pub profile: Option<Id>,
    pub card: Option<Id>,
    /// Where it is exactly one.
    pub node: Option<Id>,
    pub reservation: Option<Id>,
    pub state: JobState,
    pub labels: BTreeMap<Name, Name>,
    pub parts: i64,
    pub declared: bool,
    /// Whether no record tells of it, only nodes.
    pub is_observed: bool,
    /// Whether its end is only the last moment its source vouches for.
    pub is_open: bool,
    /// What it held, if anything.
    pub held: Option<Span>,
    /// The partition it lies in, and the one it belongs to.
    pub lies_in: Option<i32>,
    pub belongs_to: i32,
    pub right: Right,
}

/// Whether a row of `jobs` agrees with itself.
pub(super) struct Right {
    /// Its content is what its hash says; none where the stored columns can't tell.
    pub hash: Option<bool>,
    /// Its cards are those of its parts.
    pub cards: bool,
}

/// A row of `holdings`.
pub(super) struct Held {
    pub id: Name,
    pub key: Name,
    /// Its attempt in `jobs`; none when it isn't there.
    pub job: Option<u32>,
    pub cluster: Id,
    pub card: Option<Id>,
    pub node: Option<Id>,
    pub model: Option<Id>,
    pub profile: Option<Id>,
    pub parts: i64,
    pub span: Span,
    /// Whether it is only being released: held, not billed.
    pub is_releasing: bool,
    pub lies_in: Option<i32>,
}

/// Where something is held, as far as its record or a node says.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    pub node: Option<Id>,
    /// Its own, not its node's.
    pub model: Option<Id>,
}

/// A row of `conflicts`.
pub(super) struct Conflict {
    pub kind: String,
    pub cluster: Name,
    pub node: Option<Name>,
    pub model: Option<Name>,
    pub card: Option<Name>,
    pub key: Option<Name>,
    pub from: i64,
    pub to: i64,
    pub parts: i64,
    pub part_ms: i128,
    pub lies_in: Option<i32>,
}

/// What is known of one cluster besides its jobs.
#[derive(Default)]
pub(super) struct Site {
    /// By name, then start of service.
    pub nodes: Vec<Node>,
    /// By name, then time.
    pub reservations: Vec<Reservation>,
    pub outages: Vec<Outage>,
    pub covered: Vec<Span>,
    /// When somebody looked for holders of each card: its node, the card, when; as they were told, in any order.
    pub looks: Vec<(Id, Id, Span)>,
    /// When somebody last told what it has.
    pub last_told: Option<i64>,
}

/// Everything but usage.
pub(super) struct Stored {
    pub names: Names,
    pub jobs: Vec<Job>,
    pub by_key: HashMap<Name, u32>,
    pub holdings: Vec<Held>,
    /// Holdings of attempts that `jobs` doesn't have are in `holdings` all the same.
    pub conflicts: Vec<Conflict>,
    pub sites: BTreeMap<Id, Site>,
    /// When nodes saw each attempt that they alone know of on each card.
    pub proofs: BTreeMap<(Name, Id), Vec<Span>>,
}

pub(super) fn span_of(during: cardhour_domain::Interval) -> Span {
    Span { from: during.start().unix_ms(), to: during.end().unix_ms() }
}

impl Stored {
    pub async fn load(ledger: &Ledger, reading: &Reading) -> Result<Self, Error> {
        let mut names = Names::default();
        let mut jobs = Vec::new();
        let read = |batches: Vec<RecordBatch>| {
            let mut interned = Interned::default();
            let mut rows = Vec::new();
            for batch in &batches {
                let cards = Rows::new(jobs::JOBS.name, batch).decimals("cards")?;
                for ((a, version), millionths) in jobs::rows(batch, &mut interned)?.into_iter().zip(cards) {
                    let right = Right {
                        hash: hash_is_right(&a, version.content),
                        cards: millionths.is_some_and(|cards| cards_are_right(cards, a.cards.parts())),
                    };
                    rows.push((a, right));
                }
            }
            Ok(rows)
        };
        let snapshot = reading.facts.of(&jobs::JOBS);
        for (file, rows) in snapshot.read_with(snapshot.files.clone(), None, &[], read).await? {
            jobs.extend(rows.into_iter().map(|(attempt, right)| job(&mut names, &attempt, right, file.day)));
        }
        let snapshot = ledger.store.open(&OBSERVED_JOBS).await?;
        let observed = match &snapshot {
            Some(snapshot) => snapshot.read(|_| true, None, &[]).await?,
            None => Vec::new(),
        };
        for (file, batches) in observed {
            for (attempt, right) in read(batches)? {
                jobs.push(Job { is_observed: true, ..job(&mut names, &attempt, right, file.day) });
            }
        }
        let by_key = jobs.iter().zip(0u32..).map(|(job, i)| (job.key.clone(), i)).collect();
        let mut stored = Self {
            names,
            jobs,
            by_key,
            holdings: Vec::new(),
            conflicts: Vec::new(),
            sites: BTreeMap::new(),
            proofs: BTreeMap::new(),
        };
        stored.load_holdings(ledger).await?;
        stored.load_conflicts(ledger).await?;
        stored.load_sites(reading).await?;
        Ok(stored)
    }

    async fn load_holdings(&mut self, ledger: &Ledger) -> Result<(), Error> {
        for (file, batches) in ledger.store.open_or_create(&HOLDINGS).await?.read(|_| true, None, &[]).await? {
            for batch in &batches {
                let rows = Rows::new(HOLDINGS.name, batch);
                let text = |name| rows.text(name);
                let (ids, keys, clusters) = (text("holding_id")?, text("attempt_key")?, text("cluster")?);
                let (cards, nodes, models, profiles) =
                    (text("card_uuid")?, text("node")?, text("model")?, text("mig_profile")?);
                let parts = rows.long("share_parts")?;
                let (starts, ends) = (rows.instants("started_at")?, rows.instants("ended_at")?);
                let sources = rows.text("source")?;
                for row in 0..batch.num_rows() {
                    let mut opt = |array| opt_text(array, row).map(|text| self.names.id(text));
                    let (card, node, model, profile) = (opt(cards), opt(nodes), opt(models), opt(profiles));
                    let ms = |us: i64| Timestamp::from_unix_us(us).unix_ms();
                    let known = self.by_key.get_key_value(keys.value(row));
                    self.holdings.push(Held {
                        id: ids.value(row).into(),
                        key: known.map_or_else(|| keys.value(row).into(), |(key, _)| key.clone()),
                        job: known.map(|(_, job)| *job),
                        cluster: self.names.id(clusters.value(row)),
                        card,
                        node,
                        model,
                        profile,
                        parts: parts.value(row),
                        span: Span { from: ms(starts.value(row)), to: ms(ends.value(row)) },
                        is_releasing: sources.value(row) == "releasing",
                        lies_in: file.day,
                    });
                }
            }
        }
        Ok(())
    }

    async fn load_conflicts(&mut self, ledger: &Ledger) -> Result<(), Error> {
        for (file, batches) in ledger.store.open_or_create(&CONFLICTS).await?.read(|_| true, None, &[]).await? {
            for batch in &batches {
                let rows = Rows::new(CONFLICTS.name, batch);
                let text = |name| rows.text(name);
                let (kinds, clusters, keys) = (text("kind")?, text("cluster")?, text("attempt_key")?);
                let (nodes, models, cards) = (text("node")?, text("model")?, text("card_uuid")?);
                let (starts, ends) = (rows.instants("started_at")?, rows.instants("ended_at")?);
                let (parts, times) = (rows.long("share_parts")?, rows.decimals("card_time")?);
                for row in 0..batch.num_rows() {
                    let name = |array| opt_text(array, row).map(Name::from);
                    let ms = |us: i64| Timestamp::from_unix_us(us).unix_ms();
                    self.conflicts.push(Conflict {
                        kind: kinds.value(row).to_owned(),
                        cluster: clusters.value(row).into(),
                        node: name(nodes),
                        model: name(models),
                        card: name(cards),
                        key: name(keys),
                        from: ms(starts.value(row)),
                        to: ms(ends.value(row)),
                        parts: parts.value(row),
                        part_ms: times.value(row),
                        lies_in: file.day,
                    });
                }
            }
        }
        Ok(())
    }

    async fn load_sites(&mut self, reading: &Reading) -> Result<(), Error> {
        let mut names = Interned::default();
        let mut covered: BTreeMap<Id, Vec<Span>> = BTreeMap::new();
        for job in self.jobs.iter().filter(|job| job.held.is_some()) {
            self.sites.entry(job.cluster).or_default();
        }
        // What there is, was out and was looked at is read as the books read it: what is proven is what was made of it.
        let seen = reading.facts.seen().await?;
        for (name, cluster) in reading.facts.clusters(seen.as_ref()).await? {
            let id = self.names.id(&name);
            for node in &cluster.nodes {
                self.names.id(&node.node);
                self.names.opt(node.model.as_ref());
                self.names.opt(node.pool.as_ref());
            }
            if !cluster.nodes.is_empty() || !cluster.outages.is_empty() {
                let site = self.sites.entry(id).or_default();
                site.nodes = cluster.nodes;
                site.outages = cluster.outages;
            }
        }
        for device in seen.iter().flat_map(|seen| &seen.devices) {
            let site = self.sites.entry(self.names.id(&device.cluster)).or_default();
            site.last_told = site.last_told.max(Some(device.at.unix_ms()));
        }
        for watch in seen.iter().flat_map(|seen| &seen.watches) {
            let [cluster, node, card] = [&watch.cluster, &watch.node, &watch.card_uuid].map(|name| self.names.id(name));
            self.sites.entry(cluster).or_default().looks.push((node, card, span_of(watch.during)));
        }
        for row in seen.iter().flat_map(|seen| &seen.observations) {
            let card = self.names.id(&row.card_uuid);
            let key: Name = row.holder.key().as_str().into();
            self.proofs.entry((key, card)).or_default().push(span_of(row.during));
        }
        for (_, batches) in reading.facts.of(&reservations::RESERVATIONS).read(|_| true, None, &[]).await? {
            for batch in &batches {
                for row in reservations::rows(batch, &mut names)? {
                    self.names.id(&row.name);
                    self.names.opt(row.model.as_ref());
                    row.nodes.iter().for_each(|node| _ = self.names.id(node));
                    self.sites.entry(self.names.id(&row.cluster)).or_default().reservations.push(row);
                }
            }
        }
        for (_, batches) in reading.facts.of(&coverage::COVERAGE).read(|_| true, None, &[]).await? {
            for batch in &batches {
                for row in coverage::rows(batch, &mut names)? {
                    covered.entry(self.names.id(&row.cluster)).or_default().push(span_of(row.covers));
                }
            }
        }
        for (cluster, spans) in covered {
            self.sites.entry(cluster).or_default().covered = joined(spans.into_iter());
        }
        for site in self.sites.values_mut() {
            site.nodes.sort_by(|a, b| (&a.node, a.in_service_at).cmp(&(&b.node, b.in_service_at)));
            site.reservations.sort_by(|a, b| (&a.name, a.during).cmp(&(&b.name, b.during)));
        }
        Ok(())
    }

    /// Whether nodes, and not its record, say which card a holding is of.
    pub fn is_seen(&self, held: &Held) -> bool {
        held.card.is_some() && held.job.is_some_and(|job| self.jobs[job as usize].card.is_none())
    }

    /// Where a holding is: as its record says, or the node that saw it.
    pub fn seat(&self, held: &Held, job: &Job) -> Seat {
        if self.is_seen(held) {
            return Seat { node: held.node, model: job.model.or(held.model) };
        }
        Seat { node: job.node, model: job.model }
    }

    /// Clusters of which nobody said what they have.
    pub fn without_capacity(&self) -> Vec<Name> {
        let unknown = self.sites.iter().filter(|(_, site)| site.nodes.iter().all(|node| node.cards.is_zero()));
        let mut clusters: Vec<Name> = unknown.map(|(cluster, _)| self.names.get(*cluster).clone()).collect();
        clusters.sort();
        clusters
    }

    /// When what is held of a cluster on a node isn't billed: outages of the whole of that node, or of the cluster.
    pub fn unbilled(&self, cluster: Id, node: Option<Id>) -> Vec<Span> {
        let Some(site) = self.sites.get(&cluster).filter(|site| !site.outages.is_empty()) else { return Vec::new() };
        let node = node.map(|node| self.names.get(node));
        let hits = site.outages.iter().filter(|outage| {
            outage.cards.is_none() && (outage.nodes.is_empty() || node.is_some_and(|node| outage.nodes.contains(node)))
        });
        joined(hits.map(|outage| span_of(outage.during)))
    }
}

impl Job {
    /// Where its record says that it was.
    pub fn seat(&self) -> Seat {
        Seat { node: self.node, model: self.model }
    }
}

fn job(names: &mut Names, a: &Attempt, right: Right, lies_in: Option<i32>) -> Job {
    let end = if a.is_final { a.ended_at } else { a.as_of };
    let holds_something = a.cards.parts() > 0 || !a.share_declared;
    let held = a.started_at.zip(end).filter(|_| holds_something);
    let first = a.submitted_at.or(a.started_at).or(a.as_of);
    Job {
        cluster: names.id(&a.cluster),
        owner: [names.opt(a.org.as_ref()), names.opt(a.project.as_ref()), names.opt(a.user.as_ref())],
        queue: names.opt(a.queue.as_ref()),
        class: names.opt(a.class.as_ref()),
        model: names.opt(a.model.as_ref()),
        profile: names.opt(a.mig_profile.as_ref()),
        card: names.opt(a.card_uuid.as_ref()),
        node: a.nodes.first().filter(|_| a.nodes.len() == 1).map(|node| names.id(node)),
        reservation: names.opt(a.reservation.as_ref()),
        state: a.state,
        labels: a.labels.clone(),
        parts: a.cards.parts(),
        declared: a.share_declared,
        is_observed: false,
        is_open: !a.is_final,
        held: held.and_then(|(start, end)| Span::new(start.unix_ms(), end.unix_ms())),
        lies_in,
        belongs_to: first.map_or(0, |at| *Span { from: at.unix_ms(), to: at.unix_ms() + 1 }.days().start()),
        right,
        key: a.key.as_str().into(),
    }
}

/// Whether cards with six decimals are so many parts, of which a card has 18,018,000: off by half a millionth at most.
fn cards_are_right(millionths: i128, parts: i64) -> bool {
    2 * (millionths * 18_018 - i128::from(parts) * 1000).abs() <= 18_018
}

/// Whether an attempt says what it said when it was booked.
///
/// The cards asked for are stored with six decimals: where those aren't a whole number of parts, the hash can't be made again.
fn hash_is_right(a: &Attempt, stored: cardhour_books::versions::ContentHash) -> Option<bool> {
    let is_exact = a.cards_requested.is_none_or(|share| {
        let millionths = share.cards().mantissa();
        millionths * 18_018 % 1000 == 0
    });
    is_exact.then(|| content_hash(a) == stored)
}
