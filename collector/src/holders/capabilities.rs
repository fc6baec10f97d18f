//! Which device file opens a MIG instance.

use super::Aliases;
use std::path::Path;

/// Fills in the minors of MIG instances, from `/proc/driver/nvidia/capabilities/gpuN/mig/giM/access` below `proc_root`; N is the card's minor.
///
/// An instance whose file isn't there keeps what it had.
pub fn fill_capability_minors(aliases: &mut Aliases, proc_root: &Path) {
    for instance in &mut aliases.instances {
        let card = aliases.cards.iter().find(|card| card.card_uuid == instance.card_uuid);
        let Some(minor) = card.and_then(|card| card.minor) else { continue };
        let file = format!("driver/nvidia/capabilities/gpu{minor}/mig/gi{}/access", instance.gpu_instance);
        let read = std::fs::read_to_string(proc_root.join(file)).ok().and_then(|text| device_file_minor(&text));
        instance.capability_minor = read.or(instance.capability_minor);
    }
}

/// The value of `DeviceFileMinor: 30`.
fn device_file_minor(text: &str) -> Option<u32> {
    text.lines().find_map(|line| line.strip_prefix("DeviceFileMinor:")?.trim().parse().ok())
}
