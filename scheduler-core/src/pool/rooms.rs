//! The cards of the pool one by one: who sits where, and where another worker would fit.
//!
//! Each card is counted twice. *Now*: what is free this instant. *After*: what is free once all that has been told to go is gone and all that was
//! promised has come. A job starts at once only where both have room; a promise needs the second alone.

use std::collections::{BTreeMap, BTreeSet};

use cardhour_domain::CardShare;

use super::by_name::ByName;
use super::tree::ResourceAt;
use crate::names::HostName;
use crate::snapshot::{Host, HostState, Level, Window};
use crate::windows::opens;

/// Parts of a whole card.
pub(crate) const CARD: i64 = CardShare::PARTS_PER_CARD;

/// A host by number.
pub(crate) type HostAt = usize;

/// Which of the two counts is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// This instant, and after: room that can be used at once.
    Now,
    /// Once those who leave are gone.
    After,
}

/// Where one worker sits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub host: HostAt,
    /// Cards by their place on the host, with the parts taken of each.
    pub cards: Vec<(u32, i64)>,
}

/// What a worker needs of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub model: ResourceAt,
    pub parts: i64,
    pub cpu_milli: i64,
    pub memory_bytes: i64,
    /// Who may share a card with whom: equal numbers may.
    pub tenant: usize,
    pub accepts_revocation: bool,
}

/// How the workers of one job lie to one another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub same: Option<Level>,
    pub prefer: Option<Level>,
    pub spread: bool,
}

#[derive(Clone, Debug)]
struct Card {
    free: [i64; 2],
    /// Who has parts of it, by view: tenant and parts.
    sharers: [Vec<(usize, i64)>; 2],
    /// Parts of what is free of it after all that are nobody's: see [`Rooms::keep`].
    kept: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct HostRoom {
    pub name: HostName,
    pub model: ResourceAt,
    pub usable: bool,
    pub failed: bool,
    pub window: Option<Window>,
    cards: Vec<Card>,
    /// Cards that are open as a whole, while what is kept is held and while it is lifted, by view.
    whole: [[u32; 2]; 2],
    /// What its cards have open, in parts, likewise.
    open: [[i64; 2]; 2],
    cpu: Option<[i64; 2]>,
    memory: Option<[i64; 2]>,
}

/// All hosts.
pub(crate) struct Rooms {
    pub hosts: Vec<HostRoom>,
    by_name: ByName,
    /// The domains of each level, each the hosts in it.
    domains: BTreeMap<Level, Vec<Vec<HostAt>>>,
    domain_of: BTreeMap<Level, Vec<Option<usize>>>,
    by_model: Vec<Vec<HostAt>>,
    /// What all hosts of a model have open, in parts, while what is kept is held and while it is lifted, by view.
    open_of_model: Vec<[[i64; 2]; 2]>,
    /// Whether what is kept counts as free.
    lifted: bool,
    /// Cards of which more is kept than is free, it may be.
    overdrawn: Vec<(HostAt, u32)>,
    /// Cards that are taken over without a tenant's consent: for replaying schedulers that share across tenants.
    pub tenants_mix: bool,
}

const LEVELS: [Level; 5] = [Level::Host, Level::Island, Level::Rack, Level::Block, Level::Zone];

impl Rooms {
    /// Of the snapshot's hosts, all free. `model_of`: the number of a host's model.
    pub fn new(hosts: &[Host], models: usize, model_of: impl Fn(&Host) -> ResourceAt, tenants_mix: bool) -> Self {
        let mut sorted: Vec<&Host> = hosts.iter().collect();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        sorted.dedup_by(|a, b| a.name == b.name);
        let rooms: Vec<HostRoom> = sorted
            .iter()
            .map(|host| HostRoom {
                name: host.name.clone(),
                model: model_of(host),
                usable: host.state == HostState::Healthy,
                failed: host.state == HostState::Failed,
                window: host.window,
                cards: vec![
                    Card { free: [CARD, CARD], sharers: [Vec::new(), Vec::new()], kept: 0 };
                    host.cards as usize
                ],
                whole: [[host.cards; 2]; 2],
                open: [[i64::from(host.cards) * CARD; 2]; 2],
                cpu: host.cpu_milli.map(|cpu| [cpu, cpu]),
                memory: host.memory_bytes.map(|bytes| [bytes, bytes]),
            })
            .collect();
        let mut by_model = vec![Vec::new(); models];
        let mut open_of_model = vec![[[0; 2]; 2]; models];
        for (at, room) in rooms.iter().enumerate() {
            by_model[room.model].push(at);
            for sum in open_of_model[room.model].iter_mut().flatten() {
                *sum += i64::try_from(room.cards.len()).unwrap_or_default() * CARD;
            }
        }
        let mut domains = BTreeMap::new();
        let mut domain_of = BTreeMap::new();
        for level in LEVELS {
            let mut groups: BTreeMap<Vec<(Level, &str)>, Vec<HostAt>> = BTreeMap::new();
            for (at, host) in sorted.iter().enumerate() {
                let mut key: Vec<(Level, &str)> = host
                    .domains
                    .iter()
                    .filter(|(of, _)| **of <= level)
                    .map(|(of, name)| (*of, name.as_str()))
                    .collect();
                match level {
                    Level::Host => key.push((Level::Host, host.name.as_str())),
                    Level::Zone | Level::Block | Level::Rack | Level::Island => {
                        if !host.domains.contains_key(&level) {
                            continue;
                        }
                    }
                }
                groups.entry(key).or_default().push(at);
            }
            let mut of = vec![None; rooms.len()];
            let groups: Vec<Vec<HostAt>> = groups.into_values().collect();
            for (number, group) in groups.iter().enumerate() {
                for host in group {
                    of[*host] = Some(number);
                }
            }
            domains.insert(level, groups);
            domain_of.insert(level, of);
        }
        let by_name = ByName::new(rooms.iter().map(|room| room.name.as_str()));
        Self {
            hosts: rooms,
            by_name,
            domains,
            domain_of,
            by_model,
            open_of_model,
            lifted: false,
            overdrawn: Vec::new(),
            tenants_mix,
        }
    }

    /// Whether hosts are known at all.
    pub fn counted(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// The number of a host.
    pub fn find(&self, name: &HostName) -> Option<HostAt> {
        self.by_name.find(name.as_str(), |at| self.hosts[at].name.as_str())
    }

    /// Hosts of a model.
    pub fn of_model(&self, model: ResourceAt) -> &[HostAt] {
        &self.by_model[model]
    }

    /// The domains of a level.
    pub fn domains(&self, level: Level) -> &[Vec<HostAt>] {
        self.domains.get(&level).map_or(&[], Vec::as_slice)
    }

    /// The domain of a host at a level.
    pub fn domain_of(&self, host: HostAt, level: Level) -> Option<usize> {
        self.domain_of.get(&level).and_then(|of| of[host])
    }

    /// Seats a worker in the views named.
    pub fn take(&mut self, spot: &Spot, need: &Need, views: &[View]) {
        self.change(spot, need, views, -1);
    }

    /// Takes it out again.
    pub fn release(&mut self, spot: &Spot, need: &Need, views: &[View]) {
        self.change(spot, need, views, 1);
    }

    fn change(&mut self, spot: &Spot, need: &Need, views: &[View], sign: i64) {
        for view in views {
            let v = *view as usize;
            for (number, parts) in &spot.cards {
                self.change_card(spot.host, *number, |card| card.free[v] += sign * parts);
                let card = &mut self.hosts[spot.host].cards[*number as usize];
                if card.kept > card.free[View::After as usize] {
                    self.overdrawn.push((spot.host, *number));
                }
                let sharers = &mut card.sharers[v];
                if sign < 0 {
                    sharers.push((need.tenant, *parts));
                } else if let Some(at) = sharers.iter().position(|sharer| *sharer == (need.tenant, *parts)) {
                    sharers.swap_remove(at);
                }
            }
            let host = &mut self.hosts[spot.host];
            if let Some(cpu) = &mut host.cpu {
                cpu[v] += sign * need.cpu_milli;
            }
            if let Some(memory) = &mut host.memory {
                memory[v] += sign * need.memory_bytes;
            }
        }
    }

    /// Changes a card, and what is counted of it with it.
    fn change_card(&mut self, host: HostAt, card: u32, change: impl FnOnce(&mut Card)) {
        let room = &mut self.hosts[host];
        let card = &mut room.cards[card as usize];
        let before = card.opens();
        change(card);
        let after = card.opens();
        let sums = &mut self.open_of_model[room.model];
        for (lifted, view) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let (before, after) = (before[lifted][view], after[lifted][view]);
            room.whole[lifted][view] += u32::from(after == CARD);
            room.whole[lifted][view] -= u32::from(before == CARD);
            room.open[lifted][view] += after - before;
            sums[lifted][view] += after - before;
        }
    }

    /// Keeps what is free of `spot` after all, beside what is kept of its cards already, for nobody. Gives back what that is, if anything.
    pub fn keep(&mut self, spot: &Spot) -> Option<Spot> {
        let mut cards = Vec::with_capacity(spot.cards.len());
        for (number, parts) in &spot.cards {
            let card = &self.hosts[spot.host].cards[*number as usize];
            let parts = (*parts).min(card.free[View::After as usize] - card.kept);
            if parts > 0 {
                self.change_card(spot.host, *number, |card| card.kept += parts);
                cards.push((*number, parts));
            }
        }
        (!cards.is_empty()).then_some(Spot { host: spot.host, cards })
    }

    /// Keeps nothing of a card any more.
    pub fn keep_nothing_of(&mut self, host: HostAt, card: u32) {
        self.change_card(host, card, |card| card.kept = 0);
    }

    /// Cards of which more is kept than is free, since others were given it; each is named once, and isn't again.
    pub fn overdrawn(&mut self) -> BTreeSet<(HostAt, u32)> {
        let all = std::mem::take(&mut self.overdrawn);
        all.into_iter()
            .filter(|(host, card)| {
                let card = &self.hosts[*host].cards[*card as usize];
                card.kept > card.free[View::After as usize]
            })
            .collect()
    }

    /// Counts what is kept as free, or as taken again.
    pub fn lift_kept(&mut self, lifted: bool) {
        self.lifted = lifted;
    }

    /// What a host has free of cards, in parts.
    pub fn free_parts(&self, host: HostAt, view: View) -> i64 {
        self.hosts[host].open[usize::from(self.lifted)][view as usize]
    }

    /// What all hosts of a model have free of cards, in parts.
    pub fn free_parts_of_model(&self, model: ResourceAt, view: View) -> i64 {
        self.open_of_model[model][usize::from(self.lifted)][view as usize]
    }

    /// How many cards a host has.
    pub fn cards(&self, host: HostAt) -> usize {
        self.hosts[host].cards.len()
    }

    /// How many such workers fit on a host, at most `wanted`.
    pub fn fits_on(&self, host: HostAt, need: &Need, view: View, wanted: u32) -> u32 {
        let room = &self.hosts[host];
        if !room.usable || room.model != need.model || !opens(room.window, need.accepts_revocation) {
            return 0;
        }
        let mut most = wanted;
        for (free, each) in [(room.cpu, need.cpu_milli), (room.memory, need.memory_bytes)] {
            if let Some(free) = free
                && each > 0
            {
                let free = match view {
                    View::Now => free[0].min(free[1]),
                    View::After => free[1],
                };
                most = most.min(u32::try_from((free / each).max(0)).unwrap_or(u32::MAX));
            }
        }
        if need.parts == 0 || most == 0 {
            return most;
        }
        let whole = need.parts / CARD;
        let part = need.parts % CARD;
        if part == 0 {
            return most.min(
                u32::try_from(i64::from(room.whole[usize::from(self.lifted)][view as usize]) / whole)
                    .unwrap_or(u32::MAX),
            );
        }
        let mut cards: Vec<i64> = room.cards.iter().map(|card| self.open_to(card, need, view)).collect();
        let mut seated = 0;
        while seated < most && seat(&mut cards, whole, part).is_some() {
            seated += 1;
        }
        seated
    }

    /// Room on a card for `need`: none where another tenant's part is on it.
    fn open_to(&self, card: &Card, need: &Need, view: View) -> i64 {
        let ours = |v: View| card.sharers[v as usize].iter().all(|(tenant, _)| *tenant == need.tenant);
        let nobodys = card.kept > 0 && !self.lifted;
        let alone = !nobodys && ours(View::After) && (view == View::After || ours(View::Now));
        if alone || self.tenants_mix { card.opens()[usize::from(self.lifted)][view as usize] } else { 0 }
    }

    /// Whether these very cards of a host are free for `need`.
    pub fn takes(&self, host: HostAt, spots: &[Spot], need: &Need, view: View) -> bool {
        let mut asked: BTreeMap<u32, i64> = BTreeMap::new();
        for (card, parts) in spots.iter().flat_map(|spot| &spot.cards) {
            *asked.entry(*card).or_default() += parts;
        }
        let room = &self.hosts[host];
        let right = room.usable && room.model == need.model && opens(room.window, need.accepts_revocation);
        right && asked.iter().all(|(card, parts)| self.open_to(&room.cards[*card as usize], need, view) >= *parts)
    }

    /// The cards for `workers` on a host. `None` where they don't fit.
    pub fn seats(&self, host: HostAt, need: &Need, view: View, workers: u32) -> Option<Vec<Spot>> {
        if self.fits_on(host, need, view, workers) < workers {
            return None;
        }
        if need.parts == 0 {
            return Some(vec![Spot { host, cards: Vec::new() }; workers as usize]);
        }
        let mut cards: Vec<i64> = self.hosts[host].cards.iter().map(|card| self.open_to(card, need, view)).collect();
        (0..workers)
            .map(|_| seat(&mut cards, need.parts / CARD, need.parts % CARD).map(|cards| Spot { host, cards }))
            .collect()
    }

    /// The cards of workers that do run on a host, whatever its state and its tenants.
    pub fn seats_in_use(&self, host: HostAt, need: &Need, workers: u32) -> Option<Vec<Spot>> {
        let mut cards: Vec<i64> = self.hosts[host].cards.iter().map(|card| card.free[0].max(0)).collect();
        (0..workers)
            .map(|_| {
                if need.parts == 0 {
                    return Some(Spot { host, cards: Vec::new() });
                }
                seat(&mut cards, need.parts / CARD, need.parts % CARD).map(|cards| Spot { host, cards })
            })
            .collect()
    }

    /// Where all `workers` fit: the smallest domain that holds them, in it the fullest hosts. `near`: hosts that go first, because room is being
    /// made there. `None`: nowhere.
    pub fn place(&self, need: &Need, layout: &Layout, workers: u32, view: View, near: &[HostAt]) -> Option<Vec<Spot>> {
        if workers == 0 {
            return Some(Vec::new());
        }
        if self.free_parts_of_model(need.model, view) < need.parts.saturating_mul(i64::from(workers)) {
            return None;
        }
        let mut fits = vec![0; self.hosts.len()];
        let mut sum = 0u64;
        for host in &self.by_model[need.model] {
            fits[*host] = self.fits_on(*host, need, view, workers);
            sum += u64::from(fits[*host]);
        }
        if sum < u64::from(workers) {
            return None;
        }
        if let Some(level) = layout.same {
            return self.in_domain(level, need, layout, workers, view, near, &fits);
        }
        if let Some(level) = layout.prefer
            && let Some(spots) = self.in_domain(level, need, layout, workers, view, near, &fits)
        {
            return Some(spots);
        }
        if !layout.spread && workers > 1 && near.is_empty() {
            for level in LEVELS {
                if let Some(spots) = self.in_domain(level, need, layout, workers, view, near, &fits) {
                    return Some(spots);
                }
            }
        }
        self.pack(&self.by_model[need.model], need, layout, workers, view, near, &fits)
    }

    /// Where all `workers` fit among `hosts`.
    pub fn place_on(
        &self,
        hosts: &[HostAt],
        need: &Need,
        layout: &Layout,
        workers: u32,
        view: View,
        near: &[HostAt],
    ) -> Option<Vec<Spot>> {
        let mut fits = vec![0; self.hosts.len()];
        for host in hosts {
            fits[*host] = self.fits_on(*host, need, view, workers);
        }
        self.pack(hosts, need, layout, workers, view, near, &fits)
    }

    /// Whether a part of a card would have to come out of a whole one: it breaks ties between hosts that are equally full, so that whole cards stay whole.
    fn breaks_a_card(&self, host: HostAt, need: &Need, view: View) -> bool {
        let part = need.parts % CARD;
        let mut open = self.hosts[host].cards.iter().map(|card| self.open_to(card, need, view));
        part > 0 && !open.any(|open| open >= part && open < CARD)
    }

    #[allow(clippy::too_many_arguments)] // one question, asked of a domain at a time
    fn in_domain(
        &self,
        level: Level,
        need: &Need,
        layout: &Layout,
        workers: u32,
        view: View,
        near: &[HostAt],
        fits: &[u32],
    ) -> Option<Vec<Spot>> {
        let room = |hosts: &Vec<HostAt>| hosts.iter().map(|host| u64::from(fits[*host])).sum::<u64>();
        let free = |hosts: &Vec<HostAt>| hosts.iter().map(|host| self.free_parts(*host, view)).sum::<i64>();
        let domain = self
            .domains(level)
            .iter()
            .filter(|hosts| room(hosts) >= u64::from(workers))
            .min_by_key(|hosts| (!hosts.iter().any(|host| near.contains(host)), free(hosts)))?;
        self.pack(domain, need, layout, workers, view, near, fits)
    }

    /// Fills `hosts` with `workers`.
    #[allow(clippy::too_many_arguments)] // one question, asked of a list of hosts at a time
    fn pack(
        &self,
        hosts: &[HostAt],
        need: &Need,
        layout: &Layout,
        workers: u32,
        view: View,
        near: &[HostAt],
        fits: &[u32],
    ) -> Option<Vec<Spot>> {
        let mut order: Vec<HostAt> = hosts.iter().copied().filter(|host| fits[*host] > 0).collect();
        let mut left = workers;
        let mut spots = Vec::with_capacity(workers as usize);
        let windowed = |host: HostAt| need.accepts_revocation && self.hosts[host].window == Some(Window::Open);
        if layout.spread {
            order.sort_by_key(|host| (!windowed(*host), std::cmp::Reverse(self.free_parts(*host, view)), *host));
            let each = left.div_ceil(u32::try_from(order.len()).unwrap_or(1).max(1)).max(1);
            let mut given: BTreeMap<HostAt, u32> = BTreeMap::new();
            let mut round = each;
            while left > 0 {
                let before = left;
                for host in &order {
                    let has = given.entry(*host).or_default();
                    let more = fits[*host].min(round).saturating_sub(*has).min(left);
                    *has += more;
                    left -= more;
                }
                if left == before && order.iter().all(|host| fits[*host] <= round) {
                    return None;
                }
                round += 1;
            }
            for (host, workers) in given {
                spots.extend(self.seats(host, need, view, workers)?);
            }
            return Some(spots);
        }
        while left > 0 {
            let best = order.iter().copied().min_by_key(|host| {
                let holds_all = fits[*host] >= left;
                let size = if holds_all { self.free_parts(*host, view) } else { -i64::from(fits[*host]) };
                (!near.contains(host), !windowed(*host), !holds_all, size, self.breaks_a_card(*host, need, view), *host)
            })?;
            let here = fits[best].min(left);
            spots.extend(self.seats(best, need, view, here)?);
            left -= here;
            order.retain(|host| *host != best);
        }
        Some(spots)
    }
}

impl Card {
    /// What is open of it, while what is kept is held and while it is lifted, by view.
    fn opens(&self) -> [[i64; 2]; 2] {
        [self.kept, 0].map(|kept| {
            let after = self.free[1] - kept;
            [self.free[0].min(after).max(0), after.max(0)]
        })
    }
}

/// Takes `whole` free cards and `part` of the fullest card that has it. `None` and nothing taken where it can't.
fn seat(cards: &mut [i64], whole: i64, part: i64) -> Option<Vec<(u32, i64)>> {
    let mut taken = Vec::new();
    for (at, free) in cards.iter().enumerate() {
        if i64::try_from(taken.len()).ok()? < whole && *free == CARD {
            taken.push((at as u32, CARD));
        }
    }
    if i64::try_from(taken.len()).ok()? < whole {
        return None;
    }
    if part > 0 {
        let at = (0..cards.len())
            .filter(|at| cards[*at] >= part && !taken.iter().any(|(card, _)| *card as usize == *at))
            .min_by_key(|at| cards[*at])?;
        taken.push((at as u32, part));
    }
    for (at, parts) in &taken {
        cards[*at as usize] -= parts;
    }
    Some(taken)
}
