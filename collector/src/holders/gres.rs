//! Which device Slurm means by a number: the position in `gres.conf`.
//!
//! `SLURM_JOB_GPUS=2` and `IDX:2` name the third device of the node's lines, whatever its file is called and whatever index the driver has
//! for it.

use super::aliases::{Aliases, DeviceId};
use super::hostlist;

/// The devices of a node in Slurm's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GresOrder {
    /// By the files of `gres.conf`, in its order.
    Files {
        /// One a device.
        slots: Vec<Slot>,
        /// How many shares (`shard`, `mps`) the node has, by name; they are spread evenly over its devices.
        shares: Vec<(String, u64)>,
    },
    /// Slurm asks the driver: the driver's order.
    Driver,
}

/// One device of `gres.conf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// `/dev/nvidiaN`.
    Card {
        /// N.
        minor: u32,
    },
    /// A MIG instance, by the last of its `MultipleFiles`.
    Instance {
        /// N of `nvidia-capN`.
        capability_minor: u32,
    },
    /// A file whose name says nothing.
    Unknown,
}

impl GresOrder {
    /// The devices that `gres.conf` has for a node; none where it has none for it and doesn't let Slurm ask the driver: then a number names
    /// nothing, and nothing is guessed.
    pub fn parse(text: &str, node: &str) -> Option<Self> {
        let (mut slots, mut shares, mut asks_driver) = (Vec::new(), Vec::new(), false);
        let joined = text.replace("\\\n", " ");
        for line in joined.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let keys: Vec<(String, &str)> = line
                .split_ascii_whitespace()
                .filter_map(|pair| pair.split_once('='))
                .map(|(k, v)| (k.to_ascii_lowercase(), v))
                .collect();
            let value = |key: &str| keys.iter().find(|(known, _)| known == key).map(|(_, value)| *value);
            let is_of_node = value("nodename")
                .is_none_or(|list| hostlist::expand(list).is_some_and(|names| names.iter().any(|name| name == node)));
            if !is_of_node {
                continue;
            }
            if let Some(how) = value("autodetect") {
                asks_driver = how.eq_ignore_ascii_case("nvml") || how.eq_ignore_ascii_case("nvidia");
            }
            match value("name") {
                Some("gpu") => slots.extend(slots_of(value("file"), value("multiplefiles"))),
                Some(name @ ("shard" | "mps")) => {
                    if let Some(count) = value("count").and_then(|count| count.parse::<u64>().ok()) {
                        shares.push((name.to_owned(), count));
                    }
                }
                _ => {}
            }
        }
        match (slots.is_empty(), asks_driver) {
            (false, _) => Some(Self::Files { slots, shares }),
            (true, true) => Some(Self::Driver),
            (true, false) => None,
        }
    }

    /// The device at a position.
    pub fn device(&self, position: usize, aliases: &Aliases) -> Option<DeviceId> {
        match self {
            Self::Driver => aliases.in_driver_order().into_iter().nth(position),
            Self::Files { slots, .. } => match slots.get(position)? {
                Slot::Card { minor } => aliases.by_minor(*minor),
                Slot::Instance { capability_minor } => aliases.by_capability_minor(*capability_minor),
                Slot::Unknown => None,
            },
        }
    }

    /// How many shares of that name one device has, where they spread evenly.
    pub fn shares_per_device(&self, name: &str) -> Option<u64> {
        let Self::Files { slots, shares } = self else { return None };
        let total: u64 = shares.iter().filter(|(known, _)| known == name).map(|(_, count)| count).sum();
        let devices = slots.len() as u64;
        (total > 0 && total.is_multiple_of(devices)).then(|| total / devices)
    }
}

fn slots_of(file: Option<&str>, multiple: Option<&str>) -> Vec<Slot> {
    if let Some(files) = multiple.and_then(hostlist::expand) {
        // One device a line, of several files; the capability's file is the one that opens the instance.
        let capability = files.iter().rev().find_map(|file| number_after(file, "nvidia-cap"));
        let card = files.iter().find_map(|file| number_after(file, "nvidia"));
        let instance = capability.map(|capability_minor| Slot::Instance { capability_minor });
        return vec![instance.or(card.map(|minor| Slot::Card { minor })).unwrap_or(Slot::Unknown)];
    }
    let files = file.and_then(hostlist::expand).unwrap_or_default();
    files.iter().map(|file| number_after(file, "nvidia").map_or(Slot::Unknown, |minor| Slot::Card { minor })).collect()
}

/// N of a file called `nameN`.
fn number_after(file: &str, name: &str) -> Option<u32> {
    file.rsplit('/').next()?.strip_prefix(name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holders::aliases::{CardAlias, InstanceAlias};

    fn card(uuid: &str, minor: u32, nvml_index: u32) -> CardAlias {
        CardAlias { card_uuid: uuid.into(), minor: Some(minor), nvml_index: Some(nvml_index), pci_bus_id: None }
    }

    fn device(order: &GresOrder, aliases: &Aliases, position: usize) -> Option<String> {
        order.device(position, aliases).map(|device| device.device_uuid.to_string())
    }

    /// S01: /dev/nvidia0 is the driver's sixth card; S02: the first of a mixed node's lines is another model's.
    #[test]
    fn s01_s02_a_number_of_slurm_is_a_position_whose_file_names_the_card() {
        let aliases = Aliases {
            cards: vec![card("GPU-six", 0, 6), card("GPU-four", 4, 0), card("GPU-five", 5, 1)],
            instances: vec![],
        };
        let conf = "NodeName=mixed[1-2] Name=gpu Type=a5000 File=/dev/nvidia[4-5] # two\nNodeName=mixed1 Name=gpu Type=p100 File=/dev/nvidia0\n";
        let order = GresOrder::parse(conf, "mixed1").unwrap();
        let devices: Vec<_> = (0..4).map(|position| device(&order, &aliases, position)).collect();
        assert_eq!(
            devices,
            [Some("GPU-four".to_owned()), Some("GPU-five".to_owned()), Some("GPU-six".to_owned()), None]
        );
        assert_eq!(GresOrder::parse(conf, "elsewhere"), None);
    }

    #[test]
    fn an_instance_is_named_by_the_file_that_opens_it() {
        let instance = |uuid: &str, capability| InstanceAlias {
            card_uuid: "GPU-a".into(),
            device_uuid: uuid.into(),
            gpu_instance: capability,
            compute_instance: None,
            capability_minor: Some(capability),
        };
        let aliases =
            Aliases { cards: vec![card("GPU-a", 4, 0)], instances: vec![instance("MIG-x", 30), instance("MIG-y", 39)] };
        let conf = "Name=gpu Type=1g.10gb \\\n MultipleFiles=/dev/nvidia4,/dev/nvidia-caps/nvidia-cap39\nname=gpu type=1g.10gb multiplefiles=/dev/nvidia4,/dev/nvidia-caps/nvidia-cap30\n";
        let order = GresOrder::parse(conf, "n").unwrap();
        assert_eq!(device(&order, &aliases, 0).as_deref(), Some("MIG-y"));
        assert_eq!(device(&order, &aliases, 1).as_deref(), Some("MIG-x"));
        // Where Slurm asks the driver, a card that is cut is its instances.
        let asked = GresOrder::parse("AutoDetect=nvml\nName=gpu Type=1g.10gb\n", "n").unwrap();
        assert_eq!(device(&asked, &aliases, 0).as_deref(), Some("MIG-x"));
    }

    #[test]
    fn shares_spread_evenly_over_devices() {
        let conf = "Name=gpu File=/dev/nvidia[0-3]\nName=shard Count=8\n";
        assert_eq!(GresOrder::parse(conf, "n").unwrap().shares_per_device("shard"), Some(2));
        assert_eq!(GresOrder::parse(conf, "n").unwrap().shares_per_device("mps"), None);
        assert_eq!(GresOrder::parse("Name=gpu Count=4\nAutoDetect=off\n", "n"), None);
    }
}
