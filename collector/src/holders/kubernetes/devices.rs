//! The node's devices, under the names by which plugins give them.

use super::plugin_id::DeviceName;
use cardhour_domain::{CardShare, Name, SeenDevice};

/// A card, or one MIG instance of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The physical card.
    pub card_uuid: Name,
    /// The MIG instance's UUID; the card's own for the card itself.
    pub device_uuid: Name,
    /// Its part of the card.
    pub share: CardShare,
    /// Its memory. Unit: bytes.
    pub memory_bytes: Option<i64>,
    /// The driver's index of the card, for an instance too.
    pub nvml_index: Option<u32>,
    /// The number in `/dev/nvidiaN` of the card, for an instance too.
    pub minor: Option<u32>,
    /// What is known of an instance; none for a card.
    pub instance: Option<Instance>,
}

/// Numbers of a MIG instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its index on its card.
    pub index: Option<u32>,
    /// Its GPU instance.
    pub gpu_instance: Option<u32>,
    /// Its compute instance.
    pub compute_instance: Option<u32>,
}

impl Device {
    /// A device as the collector found it. Its numbers are of the driver's, and set beside.
    pub fn seen(row: &SeenDevice) -> Self {
        let is_card = row.card_uuid == row.device_uuid;
        let instance = Instance { index: None, gpu_instance: None, compute_instance: None };
        Self {
            card_uuid: row.card_uuid.clone(),
            device_uuid: row.device_uuid.clone(),
            share: row.share,
            memory_bytes: row.memory_bytes,
            nvml_index: None,
            minor: None,
            instance: (!is_card).then_some(instance),
        }
    }

    /// A card of which no more than its UUID is known.
    pub fn card(uuid: &Name) -> Self {
        Self {
            card_uuid: uuid.clone(),
            device_uuid: uuid.clone(),
            share: CardShare::CARD,
            memory_bytes: None,
            nvml_index: None,
            minor: None,
            instance: None,
        }
    }
}

/// All devices of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices(pub Vec<Device>);

impl Devices {
    /// As the collector found them, without the driver's numbers: plugins that name devices by UUID need no others.
    pub fn seen(rows: &[SeenDevice]) -> Self {
        Self(rows.iter().map(Device::seen).collect())
    }

    /// The device of that UUID.
    ///
    /// A card that the driver doesn't list, because it fell off the bus or because there is no driver's library, is still the card it was
    /// given as. Of an instance that isn't listed nobody knows the card.
    pub fn by_uuid(&self, uuid: &Name) -> Option<Device> {
        let listed = self.0.iter().find(|device| device.device_uuid == *uuid).cloned();
        listed.or_else(|| uuid.starts_with("GPU-").then(|| Device::card(uuid)))
    }

    /// The device that a plugin means.
    pub fn named(&self, name: &DeviceName) -> Option<Device> {
        let find = |is_it: &dyn Fn(&Device) -> bool| self.0.iter().find(|device| is_it(device)).cloned();
        match name {
            DeviceName::Uuid(uuid) => self.by_uuid(uuid),
            DeviceName::OldInstance { card_uuid, gpu_instance, compute_instance } => find(&|device| {
                device.card_uuid == *card_uuid
                    && device.instance.is_some_and(|instance| {
                        instance.gpu_instance == Some(*gpu_instance)
                            && instance.compute_instance.is_none_or(|own| own == *compute_instance)
                    })
            }),
            DeviceName::Index(index) => find(&|device| device.instance.is_none() && device.nvml_index == Some(*index)),
            DeviceName::IndexPair { card, instance } => find(&|device| {
                device.nvml_index == Some(*card) && device.instance.is_some_and(|own| own.index == Some(*instance))
            }),
            DeviceName::Minor(minor) => find(&|device| device.instance.is_none() && device.minor == Some(*minor)),
            DeviceName::MinorInstance { minor, gpu_instance } => find(&|device| {
                device.minor == Some(*minor)
                    && device.instance.is_some_and(|own| own.gpu_instance == Some(*gpu_instance))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holders::kubernetes::plugin_id::PluginId;

    /// Two cards whose minors and indexes are crossed (S01), the second cut in two.
    fn devices() -> Devices {
        let card = |uuid: &str, nvml_index, minor| Device {
            nvml_index: Some(nvml_index),
            minor: Some(minor),
            ..Device::card(&uuid.into())
        };
        let instance = |uuid: &str, index, gpu_instance| Device {
            device_uuid: uuid.into(),
            share: CardShare::from_fraction(3, 7).unwrap(),
            instance: Some(Instance {
                index: Some(index),
                gpu_instance: Some(gpu_instance),
                compute_instance: Some(0),
            }),
            ..card("GPU-b", 1, 0)
        };
        Devices(vec![card("GPU-a", 0, 1), card("GPU-b", 1, 0), instance("MIG-x", 0, 1), instance("MIG-y", 1, 2)])
    }

    #[track_caller]
    fn check(id: &str, expected: Option<(&str, &str)>) {
        let found = devices().named(&PluginId::parse(id).unwrap().device);
        let found = found.map(|device| (device.card_uuid.to_string(), device.device_uuid.to_string()));
        assert_eq!(found, expected.map(|(card, device)| (card.to_owned(), device.to_owned())), "{id}");
    }

    #[test]
    fn each_kind_of_number_leads_to_its_own_device() {
        check("0", Some(("GPU-a", "GPU-a")));
        check("nvidia0", Some(("GPU-b", "GPU-b")));
        check("1:1", Some(("GPU-b", "MIG-y")));
        check("nvidia0/gi2", Some(("GPU-b", "MIG-y")));
        check("MIG-GPU-b/1/0", Some(("GPU-b", "MIG-x")));
        check("MIG-x", Some(("GPU-b", "MIG-x")));
        check("GPU-a", Some(("GPU-a", "GPU-a")));
    }

    #[test]
    fn a_card_that_the_driver_lists_no_more_is_still_the_card_it_was_given_as() {
        check("GPU-lost", Some(("GPU-lost", "GPU-lost")));
        for unknown in ["MIG-lost", "2", "0:0", "nvidia2", "nvidia1/gi1", "MIG-GPU-b/1/7"] {
            check(unknown, None);
        }
    }
}
