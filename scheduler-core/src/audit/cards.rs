//! Cards and hosts, counted twice: this instant, and once those who leave are gone.

use std::collections::{BTreeMap, BTreeSet};

use cardhour_domain::CardShare;

use crate::names::{HostName, JobName, QueueName};
use crate::plan::{Action, Seat};
use crate::snapshot::{Host, HostState, Level, Pending, Piece, Shape, Window};

use super::{Case, Fault};

const CARD: i64 = CardShare::PARTS_PER_CARD;

/// A job, its queue, and the parts it has of a card.
type Holder = (JobName, QueueName, i64);

/// Who holds what of each host.
pub(super) struct Cards<'a> {
    /// Parts of a card, by holder.
    cards: BTreeMap<(HostName, u32), Vec<Holder>>,
    /// Parts, processor and memory of a host in all.
    hosts: BTreeMap<HostName, (i64, i64, i64)>,
    case: &'a Case<'a>,
}

impl<'a> Cards<'a> {
    pub fn check(case: &'a Case<'a>, faults: &mut Vec<Fault>) {
        if case.snapshot.hosts.is_empty() {
            return;
        }
        let start = Self::running(case, false);
        let (mut now, mut after) = (Self::running(case, false), Self::running(case, true));
        for step in &case.plan.steps {
            match &step.action {
                Action::Admit(seat) | Action::Reserve { seat, .. } => {
                    let Some(job) = case.pending.get(&step.job) else { continue };
                    seated_as_asked(case, job, seat, faults);
                    if matches!(step.action, Action::Admit(_)) {
                        now.hold(&job.name, &job.queue, &job.shape, &seat.pieces, 1);
                    }
                    after.hold(&job.name, &job.queue, &job.shape, &seat.pieces, 1);
                }
                Action::Evict { .. } => {
                    if let Some(run) = case.running.get(&step.job) {
                        after.hold(&run.name, &run.queue, &run.shape, &live(case, &run.pieces), -1);
                    }
                }
                Action::Shrink { from, .. } => {
                    if let Some(run) = case.running.get(&step.job) {
                        after.hold(&run.name, &run.queue, &run.shape, from, -1);
                    }
                }
                Action::Move { from, to, for_job } => {
                    let Some(run) = case.running.get(&step.job) else { continue };
                    for piece in to {
                        stands_right(case, &run.name, &run.shape, piece, faults);
                    }
                    if for_job.is_some() {
                        after.hold(&run.name, &run.queue, &run.shape, from, -1);
                    }
                    now.hold(&run.name, &run.queue, &run.shape, to, 1);
                    after.hold(&run.name, &run.queue, &run.shape, to, 1);
                }
                Action::Requeue | Action::Wait => {}
            }
        }
        now.overfull(&start, faults);
        after.overfull(&start, faults);
    }

    fn running(case: &'a Case<'a>, without_leaving: bool) -> Self {
        let mut all = Self { cards: BTreeMap::new(), hosts: BTreeMap::new(), case };
        for run in case.snapshot.running.iter().filter(|run| !(without_leaving && run.leaving)) {
            all.hold(&run.name, &run.queue, &run.shape, &live(case, &run.pieces), 1);
        }
        all
    }

    fn hold(&mut self, job: &JobName, queue: &QueueName, shape: &Shape, pieces: &[Piece], sign: i64) {
        for piece in pieces {
            let Some(host) = &piece.host else { continue };
            let workers = i64::from(piece.workers);
            let sum = self.hosts.entry(host.clone()).or_default();
            sum.0 += sign * workers * shape.cards.parts();
            sum.1 += sign * workers * shape.cpu_milli;
            sum.2 += sign * workers * shape.memory_bytes;
            for (card, parts) in parts_of(shape, piece) {
                let holders = self.cards.entry((host.clone(), card)).or_default();
                let one = (job.clone(), queue.clone(), parts);
                if sign > 0 {
                    holders.push(one);
                } else if let Some(at) = holders.iter().position(|held| *held == one) {
                    holders.remove(at);
                }
            }
        }
    }

    /// Whatever holds more than there is, or shares what mustn't be shared, and didn't at the start.
    fn overfull(&self, start: &Self, faults: &mut Vec<Fault>) {
        for ((host, card), holders) in &self.cards {
            let sum: i64 = holders.iter().map(|(_, _, parts)| parts).sum();
            let before = start.cards.get(&(host.clone(), *card));
            if sum > CARD && Some(holders) != before {
                faults.push(Fault::CardTwice { host: host.clone(), card: *card });
            }
            let tenants: BTreeSet<String> = holders.iter().map(|(_, queue, _)| self.case.books.tenant(queue)).collect();
            let same_before = before.is_some_and(|before| holders.iter().all(|holder| before.contains(holder)));
            if tenants.len() > 1 && !self.case.policy.tenants_share_cards && !same_before {
                faults.push(Fault::TenantsShareCard { host: host.clone(), card: *card });
            }
        }
        for (name, (parts, cpu, memory)) in &self.hosts {
            let Some(host) = self.case.snapshot.hosts.iter().find(|host| host.name == *name) else { continue };
            let before = start.hosts.get(name).copied().unwrap_or_default();
            let over =
                |used: i64, there: Option<i64>, before: i64| there.is_some_and(|there| used > there && used > before);
            if over(*parts, Some(i64::from(host.cards) * CARD), before.0)
                || over(*cpu, host.cpu_milli, before.1)
                || over(*memory, host.memory_bytes, before.2)
            {
                faults.push(Fault::HostOverfull { host: name.clone() });
            }
        }
    }
}

/// Parts of each card that a piece names.
fn parts_of(shape: &Shape, piece: &Piece) -> Vec<(u32, i64)> {
    let whole = shape.cards.parts() / CARD;
    let part = shape.cards.parts() % CARD;
    let each = usize::try_from(whole + i64::from(part > 0)).unwrap_or(0).max(1);
    piece
        .cards
        .chunks(each)
        .flat_map(|cards| {
            cards.iter().enumerate().map(move |(at, card)| (*card, if (at as i64) < whole { CARD } else { part }))
        })
        .collect()
}

fn live(case: &Case<'_>, pieces: &[Piece]) -> Vec<Piece> {
    let failed = |piece: &Piece| host(case, piece).is_some_and(|host| host.state == HostState::Failed);
    pieces.iter().filter(|piece| !failed(piece)).cloned().collect()
}

fn host<'a>(case: &Case<'a>, piece: &Piece) -> Option<&'a Host> {
    case.snapshot.hosts.iter().find(|host| Some(&host.name) == piece.host.as_ref())
}

/// As many workers as it can start with and no more than it wants, each with its cards, all in one domain where it says so.
fn seated_as_asked(case: &Case<'_>, job: &Pending, seat: &Seat, faults: &mut Vec<Fault>) {
    let workers: u32 = seat.pieces.iter().map(|piece| piece.workers).sum();
    let each =
        usize::try_from(job.shape.cards.parts().div_euclid(CARD) + i64::from(job.shape.cards.parts() % CARD > 0))
            .unwrap_or(0);
    let cards_right = seat.pieces.iter().all(|piece| {
        let whole: BTreeSet<u32> =
            parts_of(&job.shape, piece).into_iter().filter(|(_, parts)| *parts == CARD).map(|(card, _)| card).collect();
        let wholes = parts_of(&job.shape, piece).iter().filter(|(_, parts)| *parts == CARD).count();
        piece.cards.len() == each * piece.workers as usize
            && whole.len() == wholes
            && piece.cards.iter().all(|card| host(case, piece).is_some_and(|host| *card < host.cards))
    });
    let one_domain = job.shape.same.is_none_or(|level| {
        let domains: BTreeSet<_> =
            seat.pieces.iter().map(|piece| host(case, piece).map(|host| domain(host, level))).collect();
        domains.len() <= 1
    });
    let size = seat.workers >= job.min_workers && seat.workers <= job.workers;
    if workers != seat.workers || !cards_right || !one_domain || !size {
        faults.push(Fault::WrongSeat { job: job.name.clone() });
    }
    for piece in &seat.pieces {
        stands_right(case, &job.name, &job.shape, piece, faults);
        if let Some(host) = host(case, piece)
            && seat.model.as_ref().is_some_and(|model| *model != host.model)
        {
            faults.push(Fault::WrongHost { job: job.name.clone(), host: host.name.clone() });
        }
    }
}

/// The name of a host's domain with those of all wider ones.
fn domain(host: &Host, level: Level) -> Vec<String> {
    let mut path: Vec<String> =
        host.domains.iter().filter(|(of, _)| **of <= level).map(|(of, name)| format!("{of} {name}")).collect();
    let named = host.domains.contains_key(&level);
    if level == Level::Host || !named {
        path.push(host.name.to_string());
    }
    path
}

fn stands_right(case: &Case<'_>, job: &JobName, shape: &Shape, piece: &Piece, faults: &mut Vec<Fault>) {
    let Some(name) = &piece.host else {
        faults.push(Fault::WrongSeat { job: job.clone() });
        return;
    };
    let right = host(case, piece).is_some_and(|host| {
        let open = match host.window {
            None => true,
            Some(Window::Open) => shape.accepts_revocation,
            Some(Window::Closed) => false,
        };
        let model = shape.models.is_empty() || shape.cards.is_zero() || shape.models.contains(&host.model);
        host.state == HostState::Healthy && open && model
    });
    if !right {
        faults.push(Fault::WrongHost { job: job.clone(), host: name.clone() });
    }
}
