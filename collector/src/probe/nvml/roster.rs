//! What is known of a node's cards from one loading of the library to the next.

use super::call::Call;
use super::fault::Fault;
use crate::probe::driver_cards::DriverCard;
use crate::probe::{DeadCard, DeviceId, DeviceReading, Moment};
use cardhour_domain::{CardShare, EventKind, Gap, Name, NodeEvent, SeenDevice};
use std::collections::{BTreeMap, BTreeSet};

/// Unit: microseconds.
const MINUTE_US: i64 = 60_000_000;
const LONGEST_RESTART_PAUSE_US: i64 = 5 * MINUTE_US;

/// The node's cards, the words about them that are still to be told, and when the library may be loaded anew for their sake.
#[derive(Debug)]
pub struct Roster {
    node: Name,
    /// By place on the bus, so that a card is found again where its UUID can't be asked.
    cards: BTreeMap<Name, KnownCard>,
    events: Vec<NodeEvent>,
    layout: Vec<SeenDevice>,
    /// Cards that haven't answered once, as the library found them when it was loaded last.
    dead: Vec<Dead>,
    restart_wanted: bool,
    restarted_us: Option<i64>,
    restart_pause_us: i64,
}

/// A card that is there and hasn't answered once since the collector started.
#[derive(Clone, Debug)]
pub struct Dead {
    /// Its place on the bus; none where only the driver's count tells of it.
    pub place: Option<Name>,
    /// Which call found it so.
    pub call: Call,
    /// How.
    pub fault: Fault,
    /// What the kernel module says it is.
    pub described: Option<DriverCard>,
}

/// A card that has been seen since the collector started.
#[derive(Clone, Debug)]
pub struct KnownCard {
    /// The card itself, then its slices.
    pub devices: Vec<KnownDevice>,
    /// Whether it answers no more.
    pub is_lost: bool,
    /// How often it was cut anew.
    pub layout: u32,
    /// The driver's version, as it was last told with the card.
    pub told_driver: Option<Name>,
    /// The last error that the driver told of.
    pub last_xid: Option<u64>,
    /// What of its health was told already.
    pub told: ToldHealth,
}

/// A device of a card, as it was last seen.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownDevice {
    /// Which.
    pub id: DeviceId,
    /// Whether it is a card that is cut.
    pub is_cut: bool,
    /// An instance's profile.
    pub mig_profile: Option<Name>,
}

/// Marks of a card's health that have been told, so that each is told once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToldHealth {
    /// Uncorrectable memory errors.
    pub uncorrected: Option<u64>,
    /// Rows wait to be replaced.
    pub is_remap_pending: bool,
    /// A row could not be replaced.
    pub is_remap_failed: bool,
    /// Pages wait to be retired.
    pub is_retire_pending: bool,
    /// Links to other cards that worked; none before they were seen, and while the card is cut.
    pub links_up: Option<u32>,
    /// What the driver wants done.
    pub recovery_action: u64,
    /// Missing on the bus.
    pub is_off_bus: bool,
    /// The kernel has listed it: where it never did (a guest, a container, WSL), that it doesn't says nothing.
    pub was_on_bus: bool,
}

impl Roster {
    /// An empty one.
    pub fn new(node: Name) -> Self {
        Self {
            node,
            cards: BTreeMap::new(),
            events: Vec::new(),
            layout: Vec::new(),
            dead: Vec::new(),
            restart_wanted: false,
            restarted_us: None,
            restart_pause_us: MINUTE_US,
        }
    }

    /// Tells of something that happened.
    pub fn tell(
        &mut self,
        at: Moment,
        kind: EventKind,
        id: Option<&DeviceId>,
        number: Option<i64>,
        detail: Option<&str>,
    ) {
        self.events.push(NodeEvent {
            at: at.wall,
            node: self.node.clone(),
            card_uuid: id.map(|id| id.card_uuid.clone()),
            device_uuid: id.map(|id| id.device_uuid.clone()),
            kind,
            number,
            detail: detail.map(Name::from),
        });
    }

    /// Takes what is to be told.
    pub fn take_events(&mut self) -> Vec<NodeEvent> {
        std::mem::take(&mut self.events)
    }

    /// Takes devices that are new or were cut anew.
    pub fn take_layout(&mut self) -> Vec<SeenDevice> {
        std::mem::take(&mut self.layout)
    }

    /// A card answers. Another card in the place of an older one takes its place.
    pub fn found(&mut self, at: Moment, id: &DeviceId) {
        let known = self.cards.get(&id.pci_bus_id).filter(|known| known.devices[0].id.card_uuid == id.card_uuid);
        let was_lost = known.map(|known| known.is_lost);
        if was_lost == Some(false) {
            return;
        }
        self.tell(at, EventKind::CardFound, Some(id), None, None);
        if let Some(known) = self.cards.get_mut(&id.pci_bus_id).filter(|_| was_lost.is_some()) {
            known.is_lost = false;
        } else {
            self.cards.insert(id.pci_bus_id.clone(), KnownCard::new(id.clone(), false));
        }
    }

    /// A card answers no more: told once, and the library is to be loaded anew, which is the only thing that can bring it back.
    pub fn lose(&mut self, at: Moment, pci_bus_id: &Name, call: Call, fault: Fault) {
        self.restart_wanted = true;
        let Some(card) = self.cards.get_mut(pci_bus_id) else { return };
        if card.is_lost {
            return;
        }
        card.is_lost = true;
        let id = card.devices[0].id.clone();
        tracing::warn!(card = %id.card_uuid, place = %pci_bus_id, call = call.name(), %fault, "card answers no more");
        self.tell(at, EventKind::CardLost, Some(&id), fault.number(), Some(&format!("{}: {fault}", call.name())));
    }

    /// Cards that were there when the library was loaded, and didn't answer then nor ever before. Each is told once.
    ///
    /// One of which the kernel module says who it is gets its rows like any other that is lost: it is one of the node's cards.
    pub fn bury(&mut self, at: Moment, cluster: &Name, driver: Option<&Name>, dead: Vec<Dead>) {
        let before = std::mem::replace(&mut self.dead, dead.clone());
        let mut unnamed = before.iter().filter(|card| card.place.is_none()).count();
        for card in dead {
            let is_told = match &card.place {
                Some(_) => before.iter().any(|told| told.place == card.place),
                None => unnamed > 0,
            };
            if is_told {
                unnamed = unnamed.saturating_sub(usize::from(card.place.is_none()));
                continue;
            }
            let (call, fault) = (card.call.name(), card.fault);
            let uuid = card.described.as_ref().and_then(|described| described.uuid.clone());
            let place = card.place.as_deref().unwrap_or("unknown");
            tracing::warn!(place, card = uuid.as_deref(), call, %fault, "a card that the driver has doesn't answer, and never did");
            let id = card.place.as_ref().zip(uuid).map(|(place, uuid)| DeviceId {
                card_uuid: uuid.clone(),
                device_uuid: uuid,
                pci_bus_id: place.clone(),
                mig: None,
            });
            let detail = format!("{call}: {fault}; place {place}");
            self.tell(at, EventKind::CardLost, id.as_ref(), fault.number(), Some(&detail));
            if let Some(id) = id {
                self.layout.push(SeenDevice {
                    at: at.wall,
                    node: self.node.clone(),
                    cluster: cluster.clone(),
                    card_uuid: id.card_uuid.clone(),
                    device_uuid: id.device_uuid.clone(),
                    pci_bus_id: Some(id.pci_bus_id.clone()),
                    model: card.described.and_then(|described| described.model),
                    memory_bytes: None,
                    driver: driver.cloned(),
                    mig_mode: None,
                    mig_profile: None,
                    share: CardShare::CARD,
                    power_limit_mw: None,
                });
                self.cards.insert(id.pci_bus_id.clone(), KnownCard::new(id, true));
            }
        }
    }

    /// Whether the card at a place hasn't answered once.
    pub fn is_dead(&self, place: &Name) -> bool {
        self.dead.iter().any(|dead| dead.place.as_ref() == Some(place))
    }

    /// Cards that haven't answered once.
    pub fn dead(&self) -> Vec<DeadCard> {
        self.dead.iter().map(|dead| DeadCard { place: dead.place.clone(), gap: dead.fault.gap() }).collect()
    }

    /// A card is no longer this node's to tell of.
    pub fn forget(&mut self, pci_bus_id: &Name) {
        self.cards.remove(pci_bus_id);
    }

    /// A card's devices as they are now.
    pub fn cut(&mut self, pci_bus_id: &Name, devices: Vec<KnownDevice>, rows: impl IntoIterator<Item = SeenDevice>) {
        if let Some(card) = self.cards.get_mut(pci_bus_id) {
            card.devices = devices;
        }
        self.layout.extend(rows);
    }

    /// What is known of a card.
    pub fn card(&mut self, pci_bus_id: &Name) -> Option<&mut KnownCard> {
        self.cards.get_mut(pci_bus_id)
    }

    /// Places of all cards that have been seen.
    pub fn places(&self) -> BTreeSet<Name> {
        self.cards.keys().cloned().collect()
    }

    /// Rows without a value for the cards that `answer` does not hold: every card is in every tick.
    pub fn silent(&self, at: Moment, answer: &BTreeSet<Name>, gap: Gap, out: &mut Vec<DeviceReading>) {
        for (place, card) in &self.cards {
            if !answer.contains(place) {
                out.extend(card.devices.iter().map(|device| device.silent(at, gap)));
            }
        }
    }

    /// Whether the library is to be loaded anew by now: at most once a minute, and ever more rarely while that doesn't help.
    pub fn is_restart_due(&self, now: Moment) -> bool {
        self.restart_wanted && self.restarted_us.is_none_or(|last| now.monotonic_us - last >= self.restart_pause_us)
    }

    /// Asks for the library to be loaded anew.
    pub fn want_restart(&mut self) {
        self.restart_wanted = true;
    }

    /// The library is loaded anew now.
    pub fn restarted(&mut self, now: Moment) {
        let is_all_well = self.dead.is_empty() && self.cards.values().all(|card| !card.is_lost);
        let pause_us = if self.restarted_us.is_none() || is_all_well { MINUTE_US } else { self.restart_pause_us * 2 };
        self.restart_pause_us = pause_us.min(LONGEST_RESTART_PAUSE_US);
        self.restarted_us = Some(now.monotonic_us);
        self.restart_wanted = false;
    }
}

impl KnownCard {
    /// One that is not cut, as far as is known.
    fn new(id: DeviceId, is_lost: bool) -> Self {
        Self {
            devices: vec![KnownDevice { id, is_cut: false, mig_profile: None }],
            is_lost,
            layout: 0,
            told_driver: None,
            last_xid: None,
            told: ToldHealth::default(),
        }
    }
}

impl KnownDevice {
    /// A reading of it without a value.
    pub fn silent(&self, at: Moment, gap: Gap) -> DeviceReading {
        DeviceReading::nothing_of(&self.id, self.is_cut, self.mig_profile.as_ref(), at, gap)
    }
}
