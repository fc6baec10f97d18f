//! What the driver tells of a card by itself, and what its health and the bus tell when they are looked at.

use super::call::{Call, Line};
use super::card::Card;
use super::fault::{Fault, code};
use super::raw::{EventSet, RawEvent};
use super::roster::Roster;
use super::slices::Mode;
use crate::probe::pci::Bus;
use crate::probe::{DeviceId, Moment};
use cardhour_domain::{EventKind, Name, Reading};
use std::collections::BTreeSet;

/// An error of the card, with its number.
const XID: u64 = 0x8;
/// The card was cut anew.
const MIG_CONFIG: u64 = 0x100;
/// Newer than the wrapper: storms of errors, poison, unavailable, recovery.
const NEWER_HEALTH: u64 = 0xfe00;

/// What is asked for; each card gives those it has.
pub const WANTED: u64 = XID | MIG_CONFIG | NEWER_HEALTH;

/// A driver that tells of more than this at once is in a storm; the rest comes at the next look.
const MOST_AT_ONCE: usize = 64;

/// What was heard that asks for more to be done.
#[derive(Debug, Default)]
pub struct Heard {
    /// A card was cut anew.
    pub is_cut_anew: bool,
    /// Which.
    pub cards: BTreeSet<Name>,
}

/// Takes what has arrived, and tells of it.
pub fn hear<'nvml>(
    set: &mut EventSet<'nvml>,
    library: &mut Line,
    cards: &[Card<'nvml>],
    roster: &mut Roster,
    at: Moment,
) -> Heard {
    let mut heard = Heard::default();
    for _ in 0..MOST_AT_ONCE {
        // Only an event or none is a sign of life; a fault is neither.
        let Reading::Seen(Some(event)) = library.call(Call::EventWait, || as_none(set.next())) else { break };
        let Some(card) = cards.iter().find(|card| card.handle == event.card) else { continue };
        let id = device_of(card, event);
        if event.kind & XID != 0 {
            tracing::warn!(card = %id.card_uuid, device = %id.device_uuid, xid = event.data, "the driver told of an error");
            roster.tell(at, EventKind::Xid, Some(&id), i64::try_from(event.data).ok(), None);
            if let Some(known) = roster.card(&card.id.pci_bus_id) {
                known.last_xid = Some(event.data);
            }
        }
        if event.kind & MIG_CONFIG != 0 {
            heard.is_cut_anew = true;
            heard.cards.insert(card.id.pci_bus_id.clone());
        }
        let others = event.kind & !(XID | MIG_CONFIG);
        if others != 0 {
            roster.tell(
                at,
                EventKind::Health,
                Some(&id),
                i64::try_from(others).ok(),
                Some("event of the driver, by its bits"),
            );
        }
    }
    heard
}

/// A card that vanishes takes its place in the set with it, which is no fault of the set.
fn as_none(next: Result<Option<RawEvent<'_>>, Fault>) -> Result<Option<RawEvent<'_>>, Fault> {
    match next {
        Err(Fault::Code(code::GPU_IS_LOST)) => Ok(None),
        told => told,
    }
}

fn device_of(card: &Card<'_>, event: RawEvent<'_>) -> DeviceId {
    let is_there = |gpu: u32, compute: u32| {
        event.gpu_instance == Some(gpu) && event.compute_instance.is_none_or(|id| id == compute)
    };
    let slice = card.slices.iter().find(|slice| is_there(slice.place.gpu_instance, slice.place.compute_instance));
    slice.map_or_else(
        || card.id.clone(),
        |slice| DeviceId { device_uuid: slice.uuid.clone(), mig: Some(slice.place), ..card.id.clone() },
    )
}

/// Tells of what got worse since it was last told.
pub fn judge_health(card: &Card<'_>, roster: &mut Roster, at: Moment) {
    let health = *card.health();
    let Some(known) = roster.card(&card.id.pci_bus_id) else { return };
    let told = known.told;
    let mut now = told;
    let mut worse: Vec<(Option<i64>, &str)> = Vec::new();
    if let Reading::Seen(errors) = health.ecc.uncorrected_volatile_total {
        now.uncorrected = Some(errors);
        if errors > told.uncorrected.unwrap_or(0) {
            worse.push((i64::try_from(errors).ok(), "uncorrectable memory errors"));
        }
    }
    if let Reading::Seen(pending) = health.is_remap_pending {
        now.is_remap_pending = pending;
        if pending && !told.is_remap_pending {
            worse.push((None, "rows of memory wait to be replaced: reset the card"));
        }
    }
    if let Reading::Seen(failed) = health.is_remap_failed {
        now.is_remap_failed = failed;
        if failed && !told.is_remap_failed {
            worse.push((None, "a row of memory could not be replaced: change the card"));
        }
    }
    if let Reading::Seen(pending) = health.is_retire_pending {
        now.is_retire_pending = pending;
        if pending && !told.is_retire_pending {
            worse.push((None, "pages of memory wait to be retired: reset the card"));
        }
    }
    // Cutting a card may take its links away, and that is no fault.
    now.links_up = health.nvlinks.up.seen().or(told.links_up).filter(|_| card.mode != Mode::On);
    if let (Some(before), Some(up)) = (told.links_up, now.links_up)
        && up < before
    {
        worse.push((Some(i64::from(before - up)), "links to other cards went down"));
    }
    if let Reading::Seen(action) = health.recovery_action {
        now.recovery_action = action;
        if action != 0 && action != told.recovery_action {
            worse.push((i64::try_from(action).ok(), recovery(action)));
        }
    }
    known.told = now;
    for (number, detail) in worse {
        roster.tell(at, EventKind::Health, Some(&card.id), number, Some(detail));
    }
}

fn recovery(action: u64) -> &'static str {
    match action {
        1 => "the driver asks for a reset of the card",
        2 => "the driver asks for a reboot of the node",
        3 => "the driver asks for peers to be drained",
        4 => "the driver asks for a drain and a reset of the card",
        5 => "the driver asks for a restart of IMEX",
        _ => "the driver asks for a recovery that this version doesn't know",
    }
}

/// Cards that are no longer on the bus are lost, whatever the driver says.
pub fn judge_bus(bus: &Bus, roster: &mut Roster, at: Moment) {
    for place in roster.places() {
        if bus.passed_through.contains(place.as_str()) {
            roster.want_restart();
            continue;
        }
        let is_listed = bus.cards.contains(place.as_str());
        let Some(known) = roster.card(&place) else { continue };
        known.told.was_on_bus |= is_listed;
        let is_off = !is_listed && known.told.was_on_bus;
        if std::mem::replace(&mut known.told.is_off_bus, is_off) || !is_off {
            continue;
        }
        let id = known.devices[0].id.clone();
        roster.tell(at, EventKind::Health, Some(&id), None, Some("not on the PCI bus any more"));
        roster.want_restart();
    }
}
