//! Other names of devices, and the UUID behind each.
//!
//! A device is known by its UUID alone. The driver's index follows the bus, the number in `/dev/nvidiaN` is the minor, and a scheduler counts
//! in an order of its own: all of them may change at a boot, and none is ever taken for another.

use cardhour_domain::Name;

/// A device: a card, or one MIG instance of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId {
    /// The physical card.
    pub card_uuid: Name,
    /// The MIG instance; the card's own UUID for the card itself.
    pub device_uuid: Name,
}

impl DeviceId {
    /// The card itself.
    pub fn card(card_uuid: &Name) -> Self {
        Self { card_uuid: card_uuid.clone(), device_uuid: card_uuid.clone() }
    }

    /// Whether it is a whole card.
    pub fn is_card(&self) -> bool {
        self.card_uuid == self.device_uuid
    }

    /// Whether who has this device has `other` too: it is the same, or a part of this card.
    pub fn covers(&self, other: &Self) -> bool {
        self == other || (self.is_card() && self.card_uuid == other.card_uuid)
    }
}

/// Other names of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardAlias {
    /// The card.
    pub card_uuid: Name,
    /// The number in `/dev/nvidiaN`.
    pub minor: Option<u32>,
    /// The driver's index, in the order of the bus.
    pub nvml_index: Option<u32>,
    /// Its place on the bus.
    pub pci_bus_id: Option<Name>,
}

/// Other names of a MIG instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceAlias {
    /// The card it is of.
    pub card_uuid: Name,
    /// The instance.
    pub device_uuid: Name,
    /// Its GPU instance on that card.
    pub gpu_instance: u32,
    /// Its compute instance inside the GPU instance.
    pub compute_instance: Option<u32>,
    /// The number in `/dev/nvidia-caps/nvidia-capN` that opens its GPU instance; see [`super::capabilities`].
    pub capability_minor: Option<u32>,
}

/// Other names of the devices of a node, as the driver has them now. Made anew when the driver or the layout changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aliases {
    /// Of cards.
    pub cards: Vec<CardAlias>,
    /// Of MIG instances, in the driver's order.
    pub instances: Vec<InstanceAlias>,
}

impl Aliases {
    /// The card of `/dev/nvidiaN`.
    pub fn by_minor(&self, minor: u32) -> Option<DeviceId> {
        self.card(|card| card.minor == Some(minor))
    }

    /// The card at a place in the driver's order.
    pub fn by_nvml_index(&self, index: u32) -> Option<DeviceId> {
        self.card(|card| card.nvml_index == Some(index))
    }

    /// The card at a place on the bus, its domain of four or eight digits.
    pub fn by_pci(&self, bus_id: &str) -> Option<DeviceId> {
        let wanted = pci_key(bus_id)?;
        self.card(|card| card.pci_bus_id.as_deref().and_then(pci_key) == Some(wanted))
    }

    /// The device of a UUID, as the driver, a scheduler or a variable writes it: `GPU-…`, `MIG-…`, the start of one that is enough to know
    /// it by (CUDA takes such), or the old `MIG-GPU-…/gi/ci`.
    pub fn by_uuid(&self, text: &str) -> Option<DeviceId> {
        if let Some((card, gi, ci)) = old_mig_name(text) {
            return self
                .instances
                .iter()
                .find(|i| {
                    *i.card_uuid == *card && i.gpu_instance == gi && i.compute_instance.is_none_or(|own| own == ci)
                })
                .map(device);
        }
        if text.len() < 8 || !(text.starts_with("GPU-") || text.starts_with("MIG-")) {
            return None;
        }
        let cards = self.cards.iter().map(|card| DeviceId::card(&card.card_uuid));
        let mut alike = cards.chain(self.instances.iter().map(device)).filter(|d| d.device_uuid.starts_with(text));
        let first = alike.next()?;
        if *first.device_uuid == *text || alike.next().is_none() { Some(first) } else { None }
    }

    /// A GPU instance of the card with that minor.
    pub fn by_instance(&self, minor: u32, gpu_instance: u32) -> Option<DeviceId> {
        let card = self.by_minor(minor)?.card_uuid;
        self.instances.iter().find(|i| i.card_uuid == card && i.gpu_instance == gpu_instance).map(device)
    }

    /// The instance that `/dev/nvidia-caps/nvidia-capN` opens.
    pub fn by_capability_minor(&self, minor: u32) -> Option<DeviceId> {
        self.instances.iter().find(|i| i.capability_minor == Some(minor)).map(device)
    }

    /// Cards and instances as a scheduler that asks the driver finds them: by the driver's order, a card that is cut as its instances.
    pub fn in_driver_order(&self) -> Vec<DeviceId> {
        let mut cards: Vec<&CardAlias> = self.cards.iter().filter(|card| card.nvml_index.is_some()).collect();
        cards.sort_by_key(|card| card.nvml_index);
        let mut devices = Vec::new();
        for card in cards {
            let before = devices.len();
            devices.extend(self.instances.iter().filter(|i| i.card_uuid == card.card_uuid).map(device));
            if devices.len() == before {
                devices.push(DeviceId::card(&card.card_uuid));
            }
        }
        devices
    }

    fn card(&self, is_it: impl Fn(&CardAlias) -> bool) -> Option<DeviceId> {
        self.cards.iter().find(|card| is_it(card)).map(|card| DeviceId::card(&card.card_uuid))
    }
}

fn device(instance: &InstanceAlias) -> DeviceId {
    DeviceId { card_uuid: instance.card_uuid.clone(), device_uuid: instance.device_uuid.clone() }
}

/// `MIG-GPU-…/gi/ci`, as drivers before 470 wrote it.
fn old_mig_name(text: &str) -> Option<(&str, u32, u32)> {
    let mut parts = text.strip_prefix("MIG-").filter(|rest| rest.starts_with("GPU-"))?.split('/');
    let (card, gi, ci) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some((card, gi, ci))
}

/// Domain, bus, device and function of a place on the bus; a domain that isn't written is 0.
fn pci_key(bus_id: &str) -> Option<(u32, u32, u32, u32)> {
    let (rest, function) = bus_id.trim().rsplit_once('.').unwrap_or((bus_id.trim(), "0"));
    let parts: Vec<u32> = rest.split(':').map(|part| u32::from_str_radix(part, 16).ok()).collect::<Option<_>>()?;
    let function = u32::from_str_radix(function, 16).ok()?;
    match parts[..] {
        [domain, bus, device] => Some((domain, bus, device, function)),
        [bus, device] => Some((0, bus, device, function)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aliases() -> Aliases {
        let card = |uuid: &str, minor, index, bus: &str| CardAlias {
            card_uuid: uuid.into(),
            minor: Some(minor),
            nvml_index: Some(index),
            pci_bus_id: Some(bus.into()),
        };
        let instance = |uuid: &str, gpu_instance, capability| InstanceAlias {
            card_uuid: "GPU-bbbb0000-1".into(),
            device_uuid: uuid.into(),
            gpu_instance,
            compute_instance: Some(0),
            capability_minor: Some(capability),
        };
        Aliases {
            cards: vec![
                card("GPU-aaaa0000-1", 1, 0, "00000000:3B:00.0"),
                card("GPU-bbbb0000-1", 0, 1, "00000001:AF:00.0"),
            ],
            instances: vec![instance("MIG-1111-a", 1, 30), instance("MIG-2222-b", 2, 39)],
        }
    }

    fn uuid(device: Option<DeviceId>) -> Option<String> {
        device.map(|device| device.device_uuid.to_string())
    }

    #[test]
    fn each_name_leads_to_the_uuid_and_none_stands_for_another() {
        let aliases = aliases();
        assert_eq!(uuid(aliases.by_minor(0)).as_deref(), Some("GPU-bbbb0000-1"));
        assert_eq!(uuid(aliases.by_nvml_index(0)).as_deref(), Some("GPU-aaaa0000-1"));
        assert_eq!(uuid(aliases.by_pci("0001:af:00.0")).as_deref(), Some("GPU-bbbb0000-1"));
        assert_eq!(uuid(aliases.by_pci("0000:af:00.0")), None);
        assert_eq!(uuid(aliases.by_instance(0, 2)).as_deref(), Some("MIG-2222-b"));
        assert_eq!(uuid(aliases.by_instance(1, 2)), None);
        assert_eq!(uuid(aliases.by_capability_minor(30)).as_deref(), Some("MIG-1111-a"));
    }

    #[test]
    fn a_uuid_may_be_cut_short_where_one_device_alone_begins_so() {
        let aliases = aliases();
        assert_eq!(uuid(aliases.by_uuid("GPU-aaaa0000-1")).as_deref(), Some("GPU-aaaa0000-1"));
        assert_eq!(uuid(aliases.by_uuid("GPU-bbbb")).as_deref(), Some("GPU-bbbb0000-1"));
        assert_eq!(uuid(aliases.by_uuid("MIG-2222-b")).as_deref(), Some("MIG-2222-b"));
        assert_eq!(uuid(aliases.by_uuid("MIG-GPU-bbbb0000-1/1/0")).as_deref(), Some("MIG-1111-a"));
        for unknown in ["GPU-", "GPU-cccc0000", "0", "", "MIG-GPU-bbbb0000-1/7/0"] {
            assert_eq!(uuid(aliases.by_uuid(unknown)), None, "{unknown}");
        }
    }

    #[test]
    fn a_card_that_is_cut_counts_as_its_instances_in_the_drivers_order() {
        let order: Vec<String> =
            aliases().in_driver_order().iter().map(|device| device.device_uuid.to_string()).collect();
        assert_eq!(order, ["GPU-aaaa0000-1", "MIG-1111-a", "MIG-2222-b"]);
    }
}
