//! A node's eyes: everything that tells who holds its devices, asked once a tick.

use crate::config::Config;
use crate::holders::capabilities::fill_capability_minors;
use crate::holders::kubernetes::{Device, Devices, Finding, GivenAll, Instance, Kubernetes, PodFacts};
use crate::holders::{
    Aliases, CardAlias, Claimant, DeviceId, DeviceProcess, InstanceAlias, Look, LookInput, LookSettings, Looker, Pods,
    Scheduling, VgpuInstance,
};
use crate::owners::{Facts, Rules, owner};
use crate::probe::TickReadings;
use crate::probe::readings::SeenVgpu;
use cardhour_domain::{HolderKind, Name, Owner, Reading, SeenDevice};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// How long a name of a user may take: a directory that is away must not hold up a tick.
const GETENT_TIMEOUT: Duration = Duration::from_secs(2);

/// Looks at a node.
#[derive(Debug)]
pub struct Eyes {
    looker: Looker,
    kubernetes: Option<Kubernetes>,
    rules: Rules,
    /// The node's devices as they were told last, by their UUID.
    devices: BTreeMap<Name, SeenDevice>,
    aliases: Aliases,
    /// The processes of each card as they were listed last, and until when that stands. Unit: microseconds.
    listed: BTreeMap<Name, (i64, Vec<DeviceProcess>)>,
}

impl Eyes {
    /// Ready to look. Errors: there is no `/proc`, or no more file descriptors.
    pub fn open(config: &Config) -> std::io::Result<Self> {
        let is_scheduled = config.slurm.is_some() || config.kubernetes.is_some();
        let settings = LookSettings {
            cluster: config.cluster.clone(),
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            dev_root: "/dev".into(),
            getent: "getent".into(),
            getent_timeout: GETENT_TIMEOUT,
            own_pid: std::process::id(),
            scheduling: if is_scheduled { Scheduling::Scheduled } else { Scheduling::Open },
            slurm: config.slurm.clone(),
            rules: config.rules.clone(),
        };
        Ok(Self {
            looker: Looker::new(settings)?,
            kubernetes: config.kubernetes.clone().map(Kubernetes::new).transpose()?,
            rules: config.rules.clone(),
            devices: BTreeMap::new(),
            aliases: Aliases::default(),
            listed: BTreeMap::new(),
        })
    }

    /// Looks once, with what the cards of this tick said.
    pub fn look(&mut self, readings: &TickReadings) -> Look {
        if !readings.layout.is_empty() {
            self.learn(readings);
        }
        let devices: Vec<SeenDevice> = self.devices.values().cloned().collect();
        let mut pods = Pods::default();
        let (mut given, mut given_as, mut odd) = (Vec::new(), GivenAll::new(), Vec::new());
        let mut unwatched: BTreeSet<Name> = BTreeSet::new();
        if let Some(kubernetes) = &mut self.kubernetes {
            let rules = &self.rules;
            let found = kubernetes.look(readings.at.wall, &named(&devices, &self.aliases), |pod| pays(rules, pod));
            for pod in found.pods {
                let claimant = Claimant { holder: pod.holder, owner: pod.owner };
                pods.by_uid.extend(pod.uids.into_iter().map(|uid| (uid, claimant.clone())));
                pods.by_container.extend(pod.containers.into_iter().map(|id| (id, claimant.clone())));
            }
            if !found.is_watched {
                unwatched.extend(devices.iter().map(|device| device.card_uuid.clone()));
            }
            odd.extend(found.findings.iter().map(Finding::event));
            given = found.held;
            given_as = found.given_as;
        }
        self.list(readings);
        let fresh = |(until_us, _): &(i64, Vec<DeviceProcess>)| readings.at.monotonic_us <= *until_us;
        let cards = devices.iter().map(|device| &device.card_uuid);
        let unlisted = cards.filter(|card| !self.listed.get(*card).is_some_and(fresh)).cloned().collect();
        let of_fresh = self.listed.values().filter(|listed| fresh(listed)).flat_map(|(_, processes)| processes);
        let processes: Vec<DeviceProcess> = of_fresh.cloned().collect();
        let vgpus: Vec<VgpuInstance> = readings.vgpus.iter().map(instance).collect();
        let look = self.looker.look(LookInput {
            at: readings.at.wall,
            devices: &devices,
            aliases: &self.aliases,
            processes: &processes,
            unlisted: &unlisted,
            unwatched: &unwatched,
            pods: &pods,
            given,
            vgpus: &vgpus,
            odd,
        });
        Look { given_as, ..look }
    }

    /// Keeps the processes of cards that were listed: where ticks are short, lists are not asked for at each of them.
    fn list(&mut self, readings: &TickReadings) {
        for listing in &readings.listings {
            if matches!(listing.processes, Reading::Seen(_)) {
                let of_card = readings.processes.iter().filter(|process| process.card_uuid == listing.card_uuid);
                let until_us = readings.at.monotonic_us + listing.stands_us;
                self.listed.insert(listing.card_uuid.clone(), (until_us, of_card.cloned().collect()));
            } else {
                self.listed.remove(&listing.card_uuid);
            }
        }
    }

    /// Takes in devices that are new or cut anew, and gives them their other names again.
    fn learn(&mut self, readings: &TickReadings) {
        let told: BTreeSet<&Name> = readings.layout.iter().map(|device| &device.card_uuid).collect();
        // What is told of a card is all of it: slices that it no longer has are gone.
        self.devices.retain(|_, device| !told.contains(&device.card_uuid));
        for device in &readings.layout {
            self.devices.insert(device.device_uuid.clone(), device.clone());
        }
        let mut cards: Vec<&SeenDevice> = self.devices.values().filter(|d| d.device_uuid == d.card_uuid).collect();
        cards.sort_by(|a, b| a.pci_bus_id.cmp(&b.pci_bus_id));
        let alias = |(place, card): (usize, &&SeenDevice)| {
            let said = readings.devices.iter().find(|said| said.id.device_uuid == card.card_uuid);
            let before = self.aliases.cards.iter().find(|before| before.card_uuid == card.card_uuid);
            let by_kernel = || minor_of(Path::new("/proc/driver/nvidia/gpus"), card.pci_bus_id.as_deref()?);
            // A card that doesn't answer keeps its device file; its index may be another's by now.
            let minor = said.and_then(|said| said.minor).or(before.and_then(|before| before.minor)).or_else(by_kernel);
            CardAlias {
                card_uuid: card.card_uuid.clone(),
                minor,
                // The driver counts cards in the order of the bus.
                nvml_index: said.and_then(|said| said.driver_index).or_else(|| u32::try_from(place).ok()),
                pci_bus_id: card.pci_bus_id.clone(),
            }
        };
        let aliases = cards.iter().enumerate().map(alias).collect();
        self.aliases.cards = aliases;
        let slices = readings.devices.iter().filter_map(|device| {
            let place = device.id.mig?;
            Some(InstanceAlias {
                card_uuid: device.id.card_uuid.clone(),
                device_uuid: device.id.device_uuid.clone(),
                gpu_instance: place.gpu_instance,
                compute_instance: Some(place.compute_instance),
                capability_minor: None,
            })
        });
        self.aliases.instances = slices.collect();
        fill_capability_minors(&mut self.aliases, Path::new("/proc"));
    }
}

/// A vGPU instance as a holder has it.
fn instance(seen: &SeenVgpu) -> VgpuInstance {
    VgpuInstance {
        device: DeviceId::card(&seen.card_uuid),
        vgpu_uuid: seen.uuid.clone(),
        vm_id: seen.machine.clone(),
        vm_name: None,
        kind: seen.profile.clone(),
        memory_bytes: seen.memory_bytes.seen(),
    }
}

/// The N of a card's `/dev/nvidiaN`, as the kernel's module says it.
fn minor_of(folder: &Path, pci_bus_id: &str) -> Option<u32> {
    // Four digits of the domain there, small letters.
    let bus = pci_bus_id.to_ascii_lowercase();
    let short = bus.get(bus.len().checked_sub(12)?..)?;
    let text = std::fs::read_to_string(folder.join(short).join("information")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Device Minor:"))?;
    line.trim().parse().ok()
}

/// Devices with the names that the kubelet may have for them.
fn named(devices: &[SeenDevice], aliases: &Aliases) -> Devices {
    let device = |seen: &SeenDevice| {
        let mut device = Device::seen(seen);
        if let Some(card) = aliases.cards.iter().find(|card| card.card_uuid == seen.card_uuid) {
            (device.nvml_index, device.minor) = (card.nvml_index, card.minor);
        }
        if let Some(slice) = aliases.instances.iter().find(|slice| slice.device_uuid == seen.device_uuid) {
            device.instance = Some(Instance {
                index: None,
                gpu_instance: Some(slice.gpu_instance),
                compute_instance: slice.compute_instance,
            });
        }
        device
    };
    Devices(devices.iter().map(device).collect())
}

/// Who pays for a pod.
fn pays(rules: &Rules, pod: &PodFacts) -> Owner {
    let mut labels = pod.annotations.clone();
    labels.extend(pod.labels.clone());
    let facts = Facts {
        namespace: Some(pod.namespace.clone()),
        queue: pod.queue.clone(),
        labels,
        ..Facts::of(HolderKind::Pod)
    };
    owner(rules, &facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cards_minor_is_what_the_kernels_module_says() {
        let folder = tempfile::tempdir().unwrap();
        let card = folder.path().join("0000:3b:00.0");
        std::fs::create_dir(&card).unwrap();
        std::fs::write(card.join("information"), "Model: \t\t NVIDIA H200\nDevice Minor: \t 4\nGPU Excluded:\t No\n")
            .unwrap();
        assert_eq!(minor_of(folder.path(), "00000000:3B:00.0"), Some(4));
        assert_eq!(minor_of(folder.path(), "00000000:5E:00.0"), None);
    }
}
