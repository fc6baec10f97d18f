//! The library from its loading to its release: the cards that answer, and what is asked of them when.

use super::call::{Call, Line};
use super::card::{Card, Layout, Tools};
use super::events;
use super::fault::{Fault, code};
use super::raw::{Buffers, EventSet, Raw};
use super::roster::{Dead, KnownDevice, Roster};
use super::slices::Mode;
use super::{NvmlConfig, Pace};
use crate::probe::{DeviceId, DeviceReading, Heartbeat, Moment, TickReadings, driver_cards, pci};
use cardhour_domain::{CardShare, EventKind, Gap, Name, Reading, SeenDevice, Timestamp};
use nvml_wrapper::Nvml;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Health is looked at this often. Unit: microseconds.
const HEALTH_EVERY_US: i64 = 60_000_000;

/// Process lists are made no more often than this. Unit: microseconds.
const LISTS_EVERY_US: i64 = 10_000_000;

/// The same, while the governor spares them. Unit: microseconds.
const SPARED_LISTS_EVERY_US: i64 = 30_000_000;

/// Where the kernel lists processes.
const PROCESSES: &str = "/proc";

/// One loading of the library.
#[derive(Debug)]
pub struct Generation<'a, 'nvml> {
    number: u32,
    config: &'a NvmlConfig,
    nvml: &'nvml Nvml,
    tools: Tools<'nvml>,
    /// Calls that are on no card.
    library: Line,
    cards: Vec<Card<'nvml>>,
    /// What the driver answered for the places it could not give a card for.
    count: u32,
    events: Option<EventSet<'nvml>>,
    driver: Option<Name>,
    ticks: u32,
    lists: u32,
    listed_us: Option<i64>,
    health_us: Option<i64>,
}

impl<'a, 'nvml> Generation<'a, 'nvml> {
    /// Finds the cards, by the driver's count and by the places where there were cards before. Errors: the library is of no use.
    pub fn begin(
        config: &'a NvmlConfig,
        nvml: &'nvml Nvml,
        heartbeat: &Arc<Heartbeat>,
        number: u32,
        roster: &mut Roster,
        at: Moment,
    ) -> Result<Self, Fault> {
        let raw = Raw::new(nvml);
        let tools = Tools {
            raw,
            heartbeat: heartbeat.clone(),
            buffers: Buffers::default(),
            fields: Vec::new(),
            listed: Vec::new(),
            uses: Vec::new(),
        };
        let mut library = Line::new(heartbeat.clone(), "");
        let driver = library.call(Call::DriverVersion, || Ok(nvml.sys_driver_version()?)).seen().map(Name::from);
        let count = match library.call(Call::DeviceCount, || Ok(nvml.device_count()?)) {
            Reading::Seen(count) => count,
            Reading::Missing(_) => return Err(fault_of(&library)),
        };
        let mut generation = Self {
            number,
            config,
            nvml,
            tools,
            library,
            cards: Vec::with_capacity(count as usize),
            count,
            events: None,
            driver,
            ticks: 0,
            lists: 0,
            listed_us: None,
            health_us: None,
        };
        generation.find_cards(roster, at)?;
        generation.listen();
        // Before the scan, so that what it tells of a card has the card's power limit in it.
        generation.look_at_health(roster, at);
        generation.scan(roster, at);
        generation.poll(roster, at);
        Ok(generation)
    }

    /// The driver's version.
    pub fn driver(&self) -> Option<&Name> {
        self.driver.as_ref()
    }

    /// The rings and events, between ticks.
    pub fn poll(&mut self, roster: &mut Roster, at: Moment) {
        self.look_who_sleeps();
        for card in &mut self.cards {
            card.poll(&mut self.tools, at);
        }
        self.hear(roster, at);
        self.lose_cards(roster, at);
    }

    /// Everything that is due at a tick. `now` gives the time at which each card is really read.
    pub fn tick(&mut self, roster: &mut Roster, tick: Timestamp, pace: Pace, now: impl Fn() -> Moment) -> TickReadings {
        let at = now();
        self.ticks += 1;
        self.look_who_sleeps();
        self.hear(roster, at);
        self.scan(roster, at);
        if self.health_us.is_none_or(|last| at.monotonic_us - last >= HEALTH_EVERY_US) {
            self.look_at_health(roster, at);
            self.count_cards(roster, at);
        }
        let lists_every_us = if pace == Pace::Full { LISTS_EVERY_US } else { SPARED_LISTS_EVERY_US };
        let lists = self.listed_us.is_none_or(|last| at.monotonic_us - last >= lists_every_us);
        if lists {
            self.listed_us = Some(at.monotonic_us);
            self.lists += 1;
        }
        let (mut devices, mut processes) = (Vec::new(), Vec::new());
        let (mut listings, mut vgpus) = (Vec::new(), Vec::new());
        for card in self.cards.iter_mut().filter(|card| card.line.lost().is_none()) {
            let at = now();
            let first = devices.len();
            card.poll(&mut self.tools, at);
            if card.is_asleep() {
                let silent = known_devices(card).iter().map(|device| device.silent(at, Gap::Asleep)).collect();
                card.read_asleep(silent, &mut devices);
                listings.extend(card.list_asleep(Path::new(PROCESSES)));
                continue;
            }
            if lists {
                listings.extend(card.list(&mut self.tools, at, self.lists - 1, &mut processes));
            }
            card.read(&mut self.tools, at, pace, self.ticks, &mut devices);
            let active_vgpus = card.list_vgpus(&mut self.tools, &mut vgpus);
            let last_xid =
                self.events.as_ref().map(|_| roster.card(&card.id.pci_bus_id).and_then(|known| known.last_xid));
            for device in devices[first..].iter_mut().filter(|device| device.id.mig.is_none()) {
                device.state.active_vgpus = active_vgpus;
                device.state.last_xid = last_xid.map_or(Reading::Missing(Gap::NotSupported), Reading::Seen);
            }
        }
        self.lose_cards(roster, at);
        let answer: BTreeSet<Name> =
            devices.iter().map(|device: &DeviceReading| device.id.pci_bus_id.clone()).collect();
        roster.silent(at, &answer, Gap::CardLost, &mut devices);
        TickReadings {
            at,
            tick,
            generation: self.number,
            devices,
            processes,
            listings,
            vgpus,
            events: roster.take_events(),
            layout: roster.take_layout(),
            dead: roster.dead(),
        }
    }

    /// What made the library useless, if anything did.
    pub fn library_fault(&self) -> Option<Fault> {
        let of_cards = self.cards.iter().find_map(|card| card.line.library_fault());
        let of_slices = || self.cards.iter().flat_map(|card| &card.slices).find_map(|slice| slice.line.library_fault());
        self.library.library_fault().or(of_cards).or_else(of_slices)
    }

    fn find_cards(&mut self, roster: &mut Roster, at: Moment) -> Result<(), Fault> {
        let nvml = self.nvml;
        // How the driver's numbers fail that lead to no card.
        let mut unanswered: Vec<(Call, Fault)> = Vec::new();
        for index in 0..self.count {
            let device = self.library.call_part(Call::DeviceHandle, || as_answer(nvml.device_by_index(index)));
            if let Some((call, fault)) = self.open(device, roster, at)? {
                tracing::debug!(index, call = call.name(), %fault, "a card that the driver counts doesn't answer");
                roster.want_restart();
                unanswered.push((call, fault));
            }
        }
        // One lost card makes looking by index fail for it, and on some drivers for all that follow.
        let of_module = self.config.driver_cards.as_deref().and_then(driver_cards::look);
        let mut places = roster.places();
        places.extend(of_module.iter().flatten().map(|card| card.place.clone()));
        places.retain(|place| !self.has(place));
        let is_bus_needed = !places.is_empty() || !unanswered.is_empty();
        let bus = self.config.pci_devices.as_deref().filter(|_| is_bus_needed).and_then(pci::look);
        if of_module.is_none() && !unanswered.is_empty() {
            // Nobody says which of them the driver has; it does, when it is asked for each.
            let listed = bus.iter().flat_map(|bus| &bus.cards).map(|place| Name::from(place.as_str()));
            places.extend(listed.filter(|place| !self.has(place)));
        }
        let mut dead = Vec::new();
        for place in places {
            if bus.as_ref().is_some_and(|bus| bus.passed_through.contains(place.as_str())) {
                // A virtual machine has it now: held by that, not lost.
                tracing::info!(%place, "card was passed through to a virtual machine");
                roster.forget(&place);
                continue;
            }
            let device =
                self.library.call_part(Call::DeviceHandle, || as_answer(nvml.device_by_pci_bus_id(place.as_str())));
            let answer = match &device {
                Reading::Seen(Err(fault)) => Some(*fault),
                _ => None,
            };
            let why = self.open(device, roster, at)?.or(answer.map(|fault| (Call::DeviceHandle, fault)));
            let is_known = roster.card(&place).is_some();
            let described = of_module.iter().flatten().find(|card| card.place == place);
            if why == Some((Call::DeviceHandle, Fault::Code(code::NOT_FOUND))) && !is_known && described.is_none() {
                // On the bus, and another driver's or another container's.
                continue;
            }
            // One of those that no number led to.
            unanswered.pop();
            match why {
                None => {}
                Some((call, fault)) if is_known && !roster.is_dead(&place) => roster.lose(at, &place, call, fault),
                Some((call, fault)) => {
                    dead.push(Dead { place: Some(place), call, fault, described: described.cloned() })
                }
            }
        }
        let unnamed = |(call, fault)| Dead { place: None, call, fault, described: None };
        dead.extend(unanswered.into_iter().map(unnamed));
        roster.bury(at, &self.config.cluster, self.driver.as_ref(), dead);
        Ok(())
    }

    fn has(&self, place: &Name) -> bool {
        self.cards.iter().any(|card| card.id.pci_bus_id == *place)
    }

    /// Adds a card that answers; what kept it from that, where it doesn't.
    fn open(
        &mut self,
        device: Reading<Result<nvml_wrapper::Device<'nvml>, Fault>>,
        roster: &mut Roster,
        at: Moment,
    ) -> Result<Option<(Call, Fault)>, Fault> {
        if let Some(fault) = self.library.library_fault() {
            return Err(fault);
        }
        let device = match device {
            Reading::Seen(Ok(device)) => device,
            Reading::Seen(Err(fault)) => return Ok(Some((Call::DeviceHandle, fault))),
            Reading::Missing(_) => return Ok(None),
        };
        match Card::open(&mut self.tools, device, at) {
            Ok(card) => {
                roster.found(at, &card.id);
                self.cards.push(card);
                Ok(None)
            }
            Err(why) => Ok(Some(why)),
        }
    }

    fn listen(&mut self) {
        let raw = self.tools.raw;
        self.events = self.library.call(Call::EventSet, || EventSet::new(raw)).seen();
        if let Some(set) = &mut self.events {
            for card in &mut self.cards {
                // A card without events leaves those of the others alone.
                card.line.call(Call::EventSet, || set.add(card.handle, events::WANTED));
            }
        }
    }

    fn hear(&mut self, roster: &mut Roster, at: Moment) {
        let Some(set) = &mut self.events else { return };
        let heard = events::hear(set, &mut self.library, &self.cards, roster, at);
        if self.library.lost().is_some() {
            // Events don't arrive any more, and nothing else would say so.
            roster.want_restart();
        }
        if heard.is_cut_anew {
            self.scan(roster, at);
            for card in self.cards.iter_mut().filter(|card| heard.cards.contains(&card.id.pci_bus_id)) {
                card.restart_slice_monitors(&mut self.tools, at);
            }
        }
    }

    /// No call may wake a card that sleeps, so this goes before all that are made.
    fn look_who_sleeps(&mut self) {
        let Some(bus) = self.config.pci_devices.as_deref() else { return };
        for card in &mut self.cards {
            let (was_asleep, asleep) = (card.is_asleep(), pci::asleep(bus, &card.id.pci_bus_id));
            if was_asleep != asleep.is_some() {
                tracing::debug!(card = %card.id.card_uuid, is_asleep = asleep.is_some(), "the kernel put the card to sleep, or woke it");
            }
            card.rest(asleep);
        }
    }

    fn scan(&mut self, roster: &mut Roster, at: Moment) {
        for card in self.cards.iter_mut().filter(|card| card.can_be_asked()) {
            let Some(known) = roster.card(&card.id.pci_bus_id) else { continue };
            let (layout, is_first) = (known.layout + 1, known.layout == 0);
            if card.scan(&mut self.tools, at, layout) == Layout::Same && !is_first {
                continue;
            }
            // A library that was loaded anew finds most cards as they were.
            let is_same = known.devices.iter().map(without_layout).eq(known_devices(card).iter().map(without_layout));
            let is_told = !is_first && is_same && known.told_driver == self.driver;
            known.told_driver.clone_from(&self.driver);
            if is_same && !is_first {
                let before = known.devices.iter().filter_map(|device| device.id.mig);
                card.slices.iter_mut().zip(before).for_each(|(slice, place)| slice.place = place);
            } else {
                known.layout = layout;
            }
            let devices = known_devices(card);
            if !is_same && !is_first {
                let detail = format!("{} instances, {} of it free of any", card.slices.len(), card.stranded());
                roster.tell(
                    at,
                    EventKind::Layout,
                    Some(&card.id),
                    i64::try_from(card.slices.len()).ok(),
                    Some(&detail),
                );
            }
            let rows = if is_told { Vec::new() } else { seen_devices(self.config, self.driver.as_ref(), card, at) };
            roster.cut(&card.id.pci_bus_id, devices, rows);
        }
    }

    fn look_at_health(&mut self, roster: &mut Roster, at: Moment) {
        self.health_us = Some(at.monotonic_us);
        for card in self.cards.iter_mut().filter(|card| card.can_be_asked()) {
            card.read_health(&mut self.tools);
            events::judge_health(card, roster, at);
        }
    }

    /// Cards that came or vanished without a word.
    fn count_cards(&mut self, roster: &mut Roster, at: Moment) {
        let nvml = self.nvml;
        if let Reading::Seen(count) = self.library.call(Call::DeviceCount, || Ok(nvml.device_count()?))
            && count != self.count
        {
            tracing::info!(before = self.count, now = count, "the driver counts other cards than before");
            roster.want_restart();
        }
        if let Some(bus) = self.config.pci_devices.as_deref().and_then(pci::look) {
            events::judge_bus(&bus, roster, at);
        }
    }

    fn lose_cards(&mut self, roster: &mut Roster, at: Moment) {
        for card in &self.cards {
            if let Some((call, fault)) = card.line.lost() {
                roster.lose(at, &card.id.pci_bus_id, call, fault);
            }
        }
    }
}

/// What looking for a card gave; only what concerns the whole library is a fault of the look.
fn as_answer<T>(answer: Result<T, nvml_wrapper::error::NvmlError>) -> Result<Result<T, Fault>, Fault> {
    match answer.map_err(Fault::from) {
        Err(fault) if fault.class(false) == super::fault::Class::Library => Err(fault),
        told => Ok(told),
    }
}

fn fault_of(library: &Line) -> Fault {
    library
        .library_fault()
        .or(library.lost().map(|(_, fault)| fault))
        .unwrap_or(Fault::Code(super::fault::code::UNKNOWN))
}

fn known_devices(card: &Card<'_>) -> Vec<KnownDevice> {
    let whole = KnownDevice { id: card.id.clone(), is_cut: card.mode == Mode::On, mig_profile: None };
    let slices = card.slices.iter().map(|slice| KnownDevice {
        id: DeviceId { device_uuid: slice.uuid.clone(), mig: Some(slice.place), ..card.id.clone() },
        is_cut: false,
        mig_profile: slice.profile.clone(),
    });
    std::iter::once(whole).chain(slices).collect()
}

/// What makes a device the same for `devices` rows, whichever loading of the library found it.
fn without_layout(device: &KnownDevice) -> (Name, bool, Option<(u32, u32)>, Option<Name>) {
    let place = device.id.mig.map(|place| (place.gpu_instance, place.compute_instance));
    (device.id.device_uuid.clone(), device.is_cut, place, device.mig_profile.clone())
}

fn seen_devices(config: &NvmlConfig, driver: Option<&Name>, card: &Card<'_>, at: Moment) -> Vec<SeenDevice> {
    let whole = SeenDevice {
        at: at.wall,
        node: config.node.clone(),
        cluster: config.cluster.clone(),
        card_uuid: card.id.card_uuid.clone(),
        device_uuid: card.id.device_uuid.clone(),
        pci_bus_id: Some(card.id.pci_bus_id.clone()),
        model: card.model.clone(),
        memory_bytes: card.memory_bytes,
        driver: driver.cloned(),
        mig_mode: match card.mode {
            Mode::Unable => None,
            Mode::Off => Some("disabled".into()),
            Mode::On => Some("enabled".into()),
        },
        mig_profile: None,
        share: CardShare::CARD,
        power_limit_mw: card.power_limit_mw(),
    };
    let slices = card.slices.iter().map(|slice| SeenDevice {
        device_uuid: slice.uuid.clone(),
        memory_bytes: slice.memory_bytes,
        mig_profile: slice.profile.clone(),
        share: slice.share,
        power_limit_mw: None,
        ..whole.clone()
    });
    std::iter::once(whole.clone()).chain(slices).collect()
}
