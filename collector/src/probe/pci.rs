//! NVIDIA's cards on the PCI bus, as the kernel lists them: a card can vanish without a word from the driver.

use std::collections::BTreeSet;
use std::path::Path;

const NVIDIA_VENDOR: &str = "0x10de";

/// NVIDIA's cards by their places, as NVML writes them: `00000000:3b:00.0`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bus {
    /// Those that the NVIDIA driver should know.
    pub cards: BTreeSet<String>,
    /// Those that virtual machines have (bound to `vfio-pci`): the driver must not see them.
    pub passed_through: BTreeSet<String>,
}

/// What is on the bus. `devices` is `/sys/bus/pci/devices`.
///
/// None where that can't be read: then nothing follows. Source: kernel, Documentation/PCI/sysfs-pci.rst.
pub fn look(devices: &Path) -> Option<Bus> {
    let mut bus = Bus::default();
    for entry in std::fs::read_dir(devices).ok()?.flatten() {
        let path = entry.path();
        let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap_or_default();
        // Class 0300 is a VGA controller, 0302 a 3D controller; audio and USB functions of the same card are others.
        let is_card = read("vendor").trim() == NVIDIA_VENDOR
            && matches!(read("class").trim().get(..6), Some("0x0300" | "0x0302"));
        if !is_card {
            continue;
        }
        let is_passed_through =
            std::fs::read_link(path.join("driver")).is_ok_and(|driver| driver.ends_with("vfio-pci"));
        let places = if is_passed_through { &mut bus.passed_through } else { &mut bus.cards };
        places.insert(as_nvml(&entry.file_name().to_string_lossy()));
    }
    Some(bus)
}

/// A place on the bus as NVML writes it: domain of eight digits, lower case here so that both sides compare.
pub fn as_nvml(place: &str) -> String {
    let place = place.to_ascii_lowercase();
    match place.split_once(':') {
        Some((domain, rest)) => format!("{domain:0>8}:{rest}"),
        None => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn cards_of_the_host_are_counted_and_not_those_of_virtual_machines_nor_their_sound() {
        let bus = tempfile::tempdir().unwrap();
        let add = |place: &str, vendor: &str, class: &str, driver: &str| {
            let device = bus.path().join(place);
            fs::create_dir(&device).unwrap();
            fs::write(device.join("vendor"), format!("{vendor}\n")).unwrap();
            fs::write(device.join("class"), format!("{class}\n")).unwrap();
            std::os::unix::fs::symlink(format!("../../drivers/{driver}"), device.join("driver")).unwrap();
        };
        add("0000:3B:00.0", "0x10de", "0x030200", "nvidia");
        add("0000:5e:00.0", "0x10de", "0x030200", "vfio-pci");
        add("0000:3b:00.1", "0x10de", "0x040300", "snd_hda_intel");
        add("0000:00:02.0", "0x8086", "0x030000", "i915");
        let place = |place: &str| BTreeSet::from([place.to_owned()]);
        let seen = Bus { cards: place("00000000:3b:00.0"), passed_through: place("00000000:5e:00.0") };
        assert_eq!(look(bus.path()), Some(seen));
        assert_eq!(look(&bus.path().join("none")), None);
    }
}
