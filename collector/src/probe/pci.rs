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

/// A card that the kernel has put to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asleep {
    /// For how long it has been awake, all times together: while that doesn't grow, it has slept through. Unit: milliseconds.
    pub awake_ms: Option<u64>,
}

/// Whether the card at a place, as [`as_nvml`] writes it, is asleep, which its file in sysfs tells without waking it; any call into the driver would.
///
/// None where it is awake, never sleeps, or the kernel doesn't say. Source: kernel, Documentation/ABI/testing/sysfs-devices-power.
pub fn asleep(devices: &Path, place: &str) -> Option<Asleep> {
    let power = devices.join(as_sysfs(place)).join("power");
    let read = |name: &str| std::fs::read_to_string(power.join(name)).ok();
    // One that falls asleep at this moment is woken just as well.
    if !matches!(read("runtime_status")?.trim(), "suspended" | "suspending") {
        return None;
    }
    Some(Asleep { awake_ms: read("runtime_active_time").and_then(|ms| ms.trim().parse().ok()) })
}

/// A place on the bus as sysfs writes it: domain of four digits, more where it has more.
fn as_sysfs(place: &str) -> String {
    match place.split_once(':') {
        Some((domain, rest)) => format!("{:0>4}:{rest}", domain.trim_start_matches('0')),
        None => place.to_owned(),
    }
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

    #[test]
    fn a_card_is_asleep_only_where_the_kernel_says_so() {
        let bus = tempfile::tempdir().unwrap();
        let power = bus.path().join("0000:01:00.0/power");
        fs::create_dir_all(&power).unwrap();
        let says = |status: &str, awake: &str| {
            fs::write(power.join("runtime_status"), status).unwrap();
            fs::write(power.join("runtime_active_time"), awake).unwrap();
            asleep(bus.path(), "00000000:01:00.0")
        };
        assert_eq!(says("suspended\n", "4711\n"), Some(Asleep { awake_ms: Some(4711) }));
        assert_eq!(says("suspending\n", "?\n"), Some(Asleep { awake_ms: None }));
        for awake in ["active\n", "resuming\n", "unsupported\n", "error\n", ""] {
            assert_eq!(says(awake, "4711\n"), None, "{awake}");
        }
        assert_eq!(asleep(bus.path(), "00000000:02:00.0"), None);
        // A domain of its own, as virtual bridges have.
        assert_eq!([as_sysfs("00010000:e1:00.0"), as_sysfs("00000000:01:00.0")], ["10000:e1:00.0", "0000:01:00.0"]);
    }
}
