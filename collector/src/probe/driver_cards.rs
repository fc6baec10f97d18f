//! The cards that the driver's kernel module has, as it says so itself: also those that its library can't talk to.

use super::pci::as_nvml;
use cardhour_domain::Name;
use std::path::Path;

/// A card of the kernel module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverCard {
    /// Its place on the bus, as NVML writes it.
    pub place: Name,
    /// Its UUID; none where the module never got as far as to read it.
    pub uuid: Option<Name>,
    /// Its model.
    pub model: Option<Name>,
}

/// What the module has, in the order of the bus. `folder` is `/proc/driver/nvidia/gpus`; in a container it has the cards that were given to that.
///
/// None where it isn't there: then nothing follows. Source: open-gpu-kernel-modules, kernel-open/nvidia/nv-procfs.c.
pub fn look(folder: &Path) -> Option<Vec<DriverCard>> {
    let mut cards = Vec::new();
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let text = std::fs::read_to_string(entry.path().join("information")).unwrap_or_default();
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim);
        // The module was told to leave it alone.
        if value("GPU Excluded") == Some("Yes") {
            continue;
        }
        let known = |value: Option<&str>| value.filter(|text| !text.is_empty() && !text.contains('?')).map(Name::from);
        cards.push(DriverCard {
            place: as_nvml(&entry.file_name().to_string_lossy()).into(),
            uuid: known(value("GPU UUID")),
            model: known(value("Model")),
        });
    }
    cards.sort_by(|a, b| a.place.cmp(&b.place));
    Some(cards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_the_uuid_that_the_module_read_and_none_where_it_did_not() {
        let folder = tempfile::tempdir().unwrap();
        let add = |place: &str, text: &str| {
            std::fs::create_dir(folder.path().join(place)).unwrap();
            std::fs::write(folder.path().join(place).join("information"), text).unwrap();
        };
        add(
            "0000:3b:00.0",
            "Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-1\nBus Location: \t 0000:3b:00.0\nGPU Excluded:\t No\n",
        );
        add("0000:18:00.0", "Model: \t\t Unknown\nGPU UUID: \t GPU-????????-????-????-????-????????????\n");
        add("0000:5e:00.0", "Model: \t\t NVIDIA H200\nGPU Excluded:\t Yes\n");
        let card = |place: &str, uuid: Option<&str>, model: &str| DriverCard {
            place: place.into(),
            uuid: uuid.map(Name::from),
            model: Some(model.into()),
        };
        let seen = [card("00000000:18:00.0", None, "Unknown"), card("00000000:3b:00.0", Some("GPU-1"), "NVIDIA H200")];
        assert_eq!(look(folder.path()).unwrap(), seen);
        assert_eq!(look(&folder.path().join("none")), None);
    }
}
