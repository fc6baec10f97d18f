//! Virtual machines that have a card, or a part of one.
//!
//! A card that is passed through answers to `vfio-pci`, not to the driver: it is held by the machine that has its group open, or by nobody who
//! could be named.

use super::aliases::DeviceId;
use super::processes::Processes;
use cardhour_domain::{CardShare, Name};
use std::path::{Path, PathBuf};

/// A part of a card that a virtual machine has, as the driver lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VgpuInstance {
    /// The card or MIG instance it is cut of.
    pub device: DeviceId,
    /// Its own UUID.
    pub vgpu_uuid: Name,
    /// The machine's id with the hypervisor.
    pub vm_id: Name,
    /// The machine's name, where it is known.
    pub vm_name: Option<Name>,
    /// Its type, such as `GRID A100-10C`.
    pub kind: Option<Name>,
    /// Its memory. Unit: bytes.
    pub memory_bytes: Option<i64>,
}

impl VgpuInstance {
    /// Its share of the card: one of as many as its memory goes into the card's, by the nearest whole number, since the driver keeps some of
    /// it; `whole` is the share that the device itself is. None where a size isn't known.
    pub fn share(&self, device_memory_bytes: Option<i64>, whole: CardShare) -> Option<CardShare> {
        let (part, all) = (self.memory_bytes.filter(|b| *b > 0)?, device_memory_bytes.filter(|b| *b > 0)?);
        let fits = ((all + part / 2) / part).max(1);
        Some(CardShare::from_parts(whole.parts() / fits))
    }
}

/// How a card is driven, as the bus says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passing {
    /// Not passed through.
    No,
    /// Passed through; these files open it.
    Through {
        /// `/dev/vfio/GROUP`, `/dev/vfio/devices/vfioN`.
        files: Vec<PathBuf>,
    },
}

/// How the card at a place on the bus is driven, by the `/sys` at `sys_root`.
pub fn passing(sys_root: &Path, pci_bus_id: &str) -> Passing {
    let folder = sys_root.join("bus/pci/devices").join(sysfs_name(pci_bus_id));
    let last = |link: &str| std::fs::read_link(folder.join(link)).ok().and_then(|to| Some(to.file_name()?.to_owned()));
    if last("driver").is_none_or(|driver| driver != "vfio-pci") {
        return Passing::No;
    }
    let group = last("iommu_group").map(|group| Path::new("/dev/vfio").join(group));
    let devices = std::fs::read_dir(folder.join("vfio-dev")).into_iter().flatten().flatten();
    let devices = devices.map(|entry| Path::new("/dev/vfio/devices").join(entry.file_name()));
    Passing::Through { files: group.into_iter().chain(devices).collect() }
}

/// `00000000:3B:00.0` as `/sys` writes it: `0000:3b:00.0`.
fn sysfs_name(pci_bus_id: &str) -> String {
    let name = pci_bus_id.to_ascii_lowercase();
    match name.split_once(':') {
        Some((domain, rest)) if domain.len() == 8 && domain.starts_with("0000") => format!("{}:{rest}", &domain[4..]),
        _ => name,
    }
}

/// The process of a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineProcess {
    /// Its pid.
    pub pid: u32,
    /// Its name, else its UUID; none where the command line has neither.
    pub name: Option<Name>,
    /// Its UUID.
    pub uuid: Option<Name>,
}

/// The virtual machine that has one of these files open.
pub fn machine_with(files: &[PathBuf], processes: &Processes) -> Option<MachineProcess> {
    let candidates = processes.all().filter(|stat| {
        let comm = &stat.comm;
        comm.starts_with("qemu")
            || comm.starts_with("CPU ")
            || matches!(&**comm, "kvm" | "cloud-hyperviso" | "cloud-hypervisor" | "firecracker")
    });
    let mut pids: Vec<u32> = candidates.map(|stat| stat.id.pid).collect();
    pids.sort_unstable();
    let pid = pids.into_iter().find(|pid| processes.has_open(*pid, files))?;
    let (name, uuid) = machine_name(&processes.command_line(pid));
    Some(MachineProcess { pid, name, uuid })
}

/// Name and UUID in the words of a command line: `-name guest=vm7,debug-threads=on -uuid 1b4e…`.
fn machine_name(words: &[Name]) -> (Option<Name>, Option<Name>) {
    let after = |option: &str| words.iter().position(|word| word == option).and_then(|at| words.get(at + 1));
    let parts = after("-name").map(|value| value.split(',').collect::<Vec<_>>()).unwrap_or_default();
    let guest = parts.iter().find_map(|part| part.strip_prefix("guest="));
    let name = guest.or_else(|| parts.first().copied().filter(|first| !first.contains('=')));
    (name.filter(|name| !name.is_empty()).map(Name::from), after("-uuid").cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Name> {
        line.split(' ').map(Name::from).collect()
    }

    #[test]
    fn a_machine_is_named_by_its_guest_or_its_first_word() {
        let (name, uuid) =
            machine_name(&words("/usr/bin/qemu-system-x86_64 -name guest=vm7,debug-threads=on -uuid 1b4e28ba"));
        assert_eq!((name.as_deref(), uuid.as_deref()), (Some("vm7"), Some("1b4e28ba")));
        assert_eq!(machine_name(&words("qemu-kvm -name vm8,process=x")).0.as_deref(), Some("vm8"));
        assert_eq!(machine_name(&words("qemu-kvm -name debug-threads=on")), (None, None));
        assert_eq!(machine_name(&words("qemu-kvm -name")), (None, None));
    }

    #[test]
    fn a_vgpus_share_is_one_of_as_many_as_fit() {
        let vgpu = |memory_bytes| VgpuInstance {
            device: DeviceId::card(&"GPU-a".into()),
            vgpu_uuid: "v".into(),
            vm_id: "7".into(),
            vm_name: None,
            kind: None,
            memory_bytes: Some(memory_bytes),
        };
        let gib = 1i64 << 30;
        // An A100 of 40 GiB tells 39.5 of them; four of 10 GiB fit by its data sheet.
        let all = Some(gib * 79 / 2);
        assert_eq!(vgpu(10 * gib).share(all, CardShare::CARD), Some(CardShare::from_fraction(1, 4).unwrap()));
        assert_eq!(vgpu(40 * gib).share(all, CardShare::CARD), Some(CardShare::CARD));
        assert_eq!(vgpu(10 * gib).share(None, CardShare::CARD), None);
    }

    #[test]
    fn a_place_on_the_bus_is_written_as_sysfs_has_it() {
        assert_eq!(sysfs_name("00000000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(sysfs_name("00010000:3B:00.0"), "00010000:3b:00.0");
        assert_eq!(sysfs_name("0000:3b:00.0"), "0000:3b:00.0");
    }
}
