//! From the books to the scheduler core's snapshot: one cluster's hosts, the tree of its owners, who runs and who waits.

use cardhour_books::attempt::Attempt;
use cardhour_books::quotas::{Holder, Quotas};
use cardhour_books::site::Node;
use cardhour_decisions::month::MonthStanding;
use cardhour_domain::{CardShare, CardTime, Name, Timestamp};
use cardhour_ledger::Standing;
use cardhour_scheduler_core::Plan;
use cardhour_scheduler_core::capacity::{Band, BandEffect};
use cardhour_scheduler_core::names::{HostName, JobName, Model, QueueName};
use cardhour_scheduler_core::plan::Action;
use cardhour_scheduler_core::snapshot::{
    Host, HostState, Pending, Piece, Queue, Quota, Resource, Running, Shape, Snapshot,
};
use std::collections::{BTreeMap, BTreeSet};

/// The node above all organisations: lending between them goes through it.
const ROOT: &str = "/";
/// Who has no organisation.
const UNOWNED: &str = "(unowned)";
/// What is between the parts of an owner's name.
const SEPARATOR: &str = "/";
/// A weight that nobody changed, in thousandths.
const USUAL_WEIGHT_MILLI: u64 = 1_000;
/// Classes whose work somebody sits in front of or waits for: it isn't ended for others.
const NOT_ENDED: [&str; 2] = ["development", "inference"];

/// An owner: organisation, project, user, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner(Vec<Name>);

impl Owner {
    /// Of what a record says: no deeper than it is known without a gap.
    pub(crate) fn of(org: &Option<Name>, project: &Option<Name>, user: &Option<Name>) -> Self {
        let known: Vec<Name> = [org, project, user].into_iter().map_while(Option::clone).collect();
        if known.is_empty() { Self(vec![UNOWNED.into()]) } else { Self(known) }
    }

    /// Whose quota it is.
    pub(crate) fn of_quota(quota: &cardhour_books::quotas::Quota) -> Self {
        Self::of(&Some(quota.holder.org.clone()), &quota.holder.project, &quota.holder.user)
    }

    /// Its name among queues.
    pub(crate) fn queue(&self) -> QueueName {
        // So that no two owners have one name, and none that of the root.
        let parts: Vec<String> = self.0.iter().map(|part| part.replace(SEPARATOR, "%2F")).collect();
        QueueName::new(&parts.join(SEPARATOR))
    }

    /// Who it belongs to, no deeper than so many names.
    pub(crate) fn at_most(&self, depth: usize) -> Self {
        Self(self.0[..self.0.len().min(depth)].to_vec())
    }

    /// Whether it is another or belongs to it.
    pub(crate) fn is_of(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The node above; the root above an organisation.
    fn parent(&self) -> Option<Self> {
        (self.0.len() > 1).then(|| Self(self.0[..self.0.len() - 1].to_vec()))
    }
}

/// What the month's card-hours change for new work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Months {
    /// By cluster and owner; the cluster is none where no cluster is known to have the model. Of an owner with several buckets, by the hardest of their bands.
    bands: BTreeMap<(Option<Name>, Holder), (Band, BandEffect)>,
    /// Whether it is off-peak; none where no window says when that is.
    off_peak: Option<bool>,
    /// How those stand that change something, in words.
    words: Vec<(Option<Name>, String)>,
}

impl Months {
    /// `off_peak`: whether it is; none where the price book has no window, and then nobody is held to it.
    pub(super) fn of(standings: impl Iterator<Item = MonthStanding>, off_peak: Option<bool>) -> Self {
        let mut months = Self { off_peak, ..Self::default() };
        for of in standings {
            let (band, words) = (of.standing.band, of.words());
            let effect = BandEffect {
                off_peak_only: of.standing.effect.off_peak_only && off_peak.is_some(),
                ..of.standing.effect
            };
            if band != Band::Ample {
                months.words.push((of.cluster.clone(), words));
            }
            let known = months.bands.entry((of.cluster, of.holder)).or_insert((band, effect));
            if band > known.0 {
                *known = (band, effect);
            }
        }
        months
    }

    fn effect(&self, cluster: &Name, holder: &Holder) -> Option<BandEffect> {
        self.bands.get(&(Some(cluster.clone()), holder.clone())).map(|(_, effect)| *effect)
    }
}

/// One cluster as it stood, and what of it could not be said to the core.
pub(super) struct Pool {
    cluster: Name,
    pub(super) snapshot: Snapshot,
    /// What isn't in the snapshot, or changes it, in words.
    pub(super) left_out: Vec<String>,
}

impl Pool {
    pub(super) fn new(
        cluster: &Name,
        at: Timestamp,
        standing: &Standing,
        quotas: &Quotas,
        past: &BTreeMap<Owner, CardTime>,
        months: &Months,
    ) -> Self {
        let hosts = hosts(cluster, standing);
        let largest = hosts.iter().map(|host| host.cards).max().unwrap_or(0);
        let model_of: BTreeMap<&str, &Model> = hosts.iter().map(|host| (host.name.as_str(), &host.model)).collect();
        let of = |attempts: &'_ [Attempt]| -> Vec<Attempt> {
            attempts.iter().filter(|attempt| attempt.cluster == *cluster).cloned().collect()
        };
        let (held, waiting) = (of(&standing.running), of(&standing.waiting));
        let names = job_names(held.iter().chain(&waiting));
        let mut owners: BTreeSet<Owner> = BTreeSet::new();
        let (mut running, mut pending, mut without_share, mut without_ask) = (Vec::new(), Vec::new(), 0, 0);
        for (attempt, name) in held.iter().zip(&names) {
            let owner = Owner::of(&attempt.org, &attempt.project, &attempt.user);
            match Work::of(attempt, attempt.cards, largest, &model_of) {
                None => without_share += 1,
                Some(work) => {
                    running.push(work.running(attempt, name.clone(), owner.queue()));
                    owners.insert(owner);
                }
            }
        }
        for (attempt, name) in waiting.iter().zip(&names[held.len()..]) {
            let owner = Owner::of(&attempt.org, &attempt.project, &attempt.user);
            let cards = attempt.cards_requested.unwrap_or(attempt.cards);
            match Work::of(attempt, cards, largest, &BTreeMap::new()) {
                None => without_ask += 1,
                Some(work) => {
                    pending.push(work.pending(attempt, name.clone(), owner.queue()));
                    owners.insert(owner);
                }
            }
        }
        let mut left_out = Vec::new();
        for (count, what) in [
            (without_share, "hold a share that no record says"),
            (without_ask, "wait and don't say for how many cards"),
        ] {
            if count > 0 {
                left_out.push(format!("{cluster:?}: {count} jobs {what}: they are not in this plan"));
            }
        }
        let known: BTreeSet<&str> = hosts.iter().map(|host| host.model.as_str()).collect();
        for quota in quotas.quotas.iter().filter(|quota| quota.cluster.as_ref().is_none_or(|of| of == cluster)) {
            if let Some(cards) = quota.cards.as_ref().filter(|cards| !known.contains(&*cards.model)) {
                let (model, org) = (&cards.model, &quota.holder.org);
                left_out.push(format!("{cluster:?}: {org} has a quota of {model:?}, and no card is of that model"));
            }
        }
        let of_cluster = months.words.iter().filter(|(of, _)| of.as_ref() == Some(cluster));
        left_out.extend(
            of_cluster.map(|(_, words)| format!("{cluster:?}: {words}: new work has less weight and borrows less")),
        );
        let queues = queues(cluster, owners, quotas, past, months);
        let (capacity, reservations) = (BTreeMap::new(), Vec::new());
        let off_peak = months.off_peak.unwrap_or(false);
        let snapshot = Snapshot { at, queues, hosts, capacity, off_peak, running, pending, reservations };
        Self { cluster: cluster.clone(), snapshot, left_out }
    }

    /// How it stood, and what the plan would change, in a sentence.
    pub(super) fn summary(&self, plan: &Plan) -> String {
        let Snapshot { hosts, running, pending, .. } = &self.snapshot;
        let cards: u64 = hosts.iter().map(|host| u64::from(host.cards)).sum();
        let held: CardTime = running
            .iter()
            .map(|job| {
                let workers: i64 = job.pieces.iter().map(|piece| i64::from(piece.workers)).sum();
                CardTime::from_part_ms(i128::from(job.shape.cards.parts()) * i128::from(workers) * 3_600_000)
            })
            .sum();
        let of = |is_it: fn(&Action) -> bool| plan.steps.iter().filter(|step| is_it(&step.action)).count();
        format!(
            "{:?}: {cards} cards, {} of them held by {} jobs, {} jobs wait; {} would start, {} have room kept, {} would give way",
            self.cluster,
            held.card_hours().normalize(),
            running.len(),
            pending.len(),
            of(|action| matches!(action, Action::Admit(_))),
            of(|action| matches!(action, Action::Reserve { .. })),
            of(|action| matches!(action, Action::Evict { .. } | Action::Shrink { .. } | Action::Move { .. })),
        )
    }
}

fn hosts(cluster: &Name, standing: &Standing) -> Vec<Host> {
    let is_out = |node: &Name| {
        let of_node = |nodes: &[Name]| nodes.is_empty() || nodes.contains(node);
        standing.outages.iter().any(|outage| outage.cluster == *cluster && of_node(&outage.nodes))
    };
    let of_cluster = standing.nodes.iter().filter(|node| node.cluster == *cluster && !node.cards.is_zero());
    of_cluster.map(|node| host(node, is_out(&node.node))).collect()
}

/// A node as a host.
pub(crate) fn host(node: &Node, is_out: bool) -> Host {
    Host {
        name: HostName::new(&node.node),
        model: Model::new(node.model.as_deref().unwrap_or("unknown")),
        cards: u32::try_from(node.cards.parts() / CardShare::CARD.parts()).unwrap_or(u32::MAX),
        cpu_milli: None,
        memory_bytes: None,
        domains: BTreeMap::new(),
        // What runs through an outage goes on; nothing new is put there.
        state: if is_out { HostState::Draining } else { HostState::Healthy },
        window: None,
    }
}

/// Names of jobs as people know them; of those that several have, the whole key.
pub(crate) fn job_names<'a>(attempts: impl Iterator<Item = &'a Attempt> + Clone) -> Vec<JobName> {
    let mut known: BTreeMap<&str, u32> = BTreeMap::new();
    attempts.clone().for_each(|attempt| *known.entry(&attempt.job_id).or_default() += 1);
    let name = |attempt: &Attempt| match known[&*attempt.job_id] {
        1 => JobName::new(&attempt.job_id),
        _ => JobName::new(attempt.key.as_str()),
    };
    attempts.map(name).collect()
}

/// A job's workers.
pub(crate) struct Work {
    pub(crate) shape: Shape,
    pub(crate) pieces: Vec<Piece>,
}

impl Work {
    /// None where it has no cards that could be said.
    pub(crate) fn of(
        attempt: &Attempt,
        cards: CardShare,
        largest: u32,
        model_of: &BTreeMap<&str, &Model>,
    ) -> Option<Self> {
        if cards.is_zero() {
            return None;
        }
        let card = CardShare::CARD.parts();
        let nodes = i64::try_from(attempt.nodes.len()).ok()?;
        let is_whole = cards.parts() % card == 0;
        let whole = cards.parts() / card;
        let largest = i64::from(largest);
        let (workers, each) = match (is_whole, nodes) {
            (true, 1..) if whole % nodes == 0 => (nodes, CardShare::from_parts(cards.parts() / nodes)),
            (true, 0) if 0 < largest && largest < whole && whole % largest == 0 => {
                (whole / largest, CardShare::from_parts(largest * card))
            }
            (true, 0) if whole <= largest || largest == 0 => (1, cards),
            (true, _) => (whole, CardShare::CARD),
            (false, _) => (1, cards),
        };
        let hosts = attempt.nodes.iter().map(|node| Some(HostName::new(node)));
        let workers = u32::try_from(workers).ok()?;
        let pieces = if nodes > 0 && i64::from(workers) == nodes {
            hosts.map(|host| Piece { host, workers: 1, cards: Vec::new() }).collect()
        } else {
            vec![Piece { host: None, workers, cards: Vec::new() }]
        };
        let of_node = || attempt.nodes.iter().find_map(|node| model_of.get(&**node)).map(|model| (*model).clone());
        let model = attempt.model.as_deref().map(Model::new).or_else(of_node);
        let shape = Shape {
            models: model.into_iter().collect(),
            cards: each,
            cpu_milli: 0,
            memory_bytes: 0,
            same: None,
            prefer: None,
            spread: false,
            accepts_revocation: false,
        };
        Some(Self { shape, pieces })
    }

    /// How many workers.
    pub(crate) fn workers(&self) -> u32 {
        self.pieces.iter().map(|piece| piece.workers).sum()
    }

    fn running(self, attempt: &Attempt, name: JobName, queue: QueueName) -> Running {
        let admitted = attempt.started_at.expect("it holds cards");
        Running {
            name,
            queue,
            priority: priority(attempt),
            min_workers: self.workers(),
            shape: self.shape,
            pieces: self.pieces,
            missing: None,
            submitted: attempt.submitted_at.unwrap_or(admitted),
            admitted,
            checkpoint: None,
            ends_by: None,
            restart_ms: 0,
            preemptible: may_be_ended(attempt),
            restartable: attempt.restartable.unwrap_or(false),
            critical: None,
            leaving: false,
            preempted_today: 0,
            last_preempted: None,
        }
    }

    /// As it waits, since it was submitted.
    pub(crate) fn pending(self, attempt: &Attempt, name: JobName, queue: QueueName) -> Pending {
        let workers = self.workers();
        Pending {
            name,
            queue,
            priority: priority(attempt),
            shape: self.shape,
            workers,
            min_workers: workers,
            submitted: attempt.submitted_at.expect("it waits since it was submitted"),
            preemptible: may_be_ended(attempt),
            critical: None,
            longest_ms: None,
            last_preempted: None,
        }
    }
}

fn priority(attempt: &Attempt) -> i32 {
    let priority = attempt.priority.unwrap_or(0).clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    i32::try_from(priority).expect("clamped")
}

fn may_be_ended(attempt: &Attempt) -> bool {
    attempt.class.as_deref().is_none_or(|class| !NOT_ENDED.contains(&class))
}

/// The tree of owners: everybody who has a quota, runs or waits, and whoever is above them.
pub(crate) fn queues(
    cluster: &Name,
    mut owners: BTreeSet<Owner>,
    quotas: &Quotas,
    past: &BTreeMap<Owner, CardTime>,
    months: &Months,
) -> Vec<Queue> {
    let of_cluster = || quotas.quotas.iter().filter(|quota| quota.cluster.as_ref().is_none_or(|of| of == cluster));
    owners.extend(of_cluster().map(Owner::of_quota));
    let above: Vec<Owner> =
        owners.iter().flat_map(|owner| std::iter::successors(owner.parent(), Owner::parent)).collect();
    owners.extend(above);
    let mut queues = vec![queue(QueueName::new(ROOT), None)];
    queues.extend(owners.iter().map(|owner| {
        let mut queue = queue(owner.queue(), Some(owner.parent().map_or(QueueName::new(ROOT), |above| above.queue())));
        for quota in of_cluster().filter(|quota| Owner::of_quota(quota) == *owner) {
            queue.weight_milli = quota.weight_milli.unwrap_or(queue.weight_milli);
            queue.band = months.effect(cluster, &quota.holder);
            if let Some(cards) = &quota.cards {
                let parts = |cards: u32| i64::from(cards) * CardShare::CARD.parts();
                let quota = Quota {
                    nominal: parts(cards.guaranteed),
                    borrow_limit: cards.borrow_limit.map(parts),
                    lend_limit: cards.lend_limit.map(parts),
                    max: cards.most.map(parts),
                };
                queue.quota.insert(Resource::Cards(Model::new(&cards.model)), quota);
            }
        }
        // Where others have a quota of a model, an organisation without one has none of it by right, and gives back what it borrows.
        if owner.parent().is_none() {
            for cards in of_cluster().filter_map(|quota| quota.cards.as_ref()) {
                queue.quota.entry(Resource::Cards(Model::new(&cards.model))).or_default();
            }
        }
        // Of a node above others: what all of them used.
        let below = past.iter().filter(|(one, _)| one.0.starts_with(&owner.0));
        queue.past_usage = below.map(|(_, time)| *time).sum();
        queue
    }));
    queues
}

fn queue(name: QueueName, parent: Option<QueueName>) -> Queue {
    Queue {
        name,
        parent,
        quota: BTreeMap::new(),
        weight_milli: USUAL_WEIGHT_MILLI,
        over_quota_priority: 0,
        created: None,
        tenant: None,
        rules: None,
        past_usage: CardTime::ZERO,
        band: None,
    }
}
