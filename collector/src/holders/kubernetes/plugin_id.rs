//! What device plugins call devices.
//!
//! A plugin chooses the ids under which the kubelet gives its devices out; nothing but custom says which device an id means. Numbers are of
//! different kinds: NVIDIA's plugin counts as the driver does, Google's by the minor of `/dev/nvidiaN`. None is taken for another.

use cardhour_domain::Name;

/// A device id of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginId {
    /// Which device.
    pub device: DeviceName,
    /// Its slot on a device that several share; none where the device is given whole. A slot's number is no fraction.
    pub replica: Option<u32>,
}

/// How a plugin names a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceName {
    /// A card's UUID, or a MIG instance's.
    Uuid(Name),
    /// A MIG instance as drivers before 470 name it: `MIG-GPU-…/gi/ci`.
    OldInstance {
        /// UUID of its card.
        card_uuid: Name,
        /// Its GPU instance.
        gpu_instance: u32,
        /// Its compute instance.
        compute_instance: u32,
    },
    /// A card by the driver's index.
    Index(u32),
    /// A MIG instance by the driver's index of its card, and its own index there: `0:1`.
    IndexPair {
        /// The card's.
        card: u32,
        /// The instance's.
        instance: u32,
    },
    /// The card of `/dev/nvidiaN`.
    Minor(u32),
    /// A GPU instance of the card of `/dev/nvidiaN`: `nvidia0/gi3`.
    MinorInstance {
        /// The card's number.
        minor: u32,
        /// Its GPU instance.
        gpu_instance: u32,
    },
}

/// A device id in no form that is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("device id {0:?} is in no known form")]
pub struct PluginIdError(pub String);

impl PluginId {
    /// Reads a device id. Errors: it is in no form that is known.
    ///
    /// Source: NVIDIA's plugin (`GPU-…`, `MIG-…`, indexes, each with `::N` for a replica), Google's (`nvidia0/gi3/vgpu1`), and plugins that
    /// write a replica as a sixth group of the UUID (`GPU-…-N`: HAMi, Aliyun, dcgm-exporter#151).
    pub fn parse(text: &str) -> Result<Self, PluginIdError> {
        Self::read(text).ok_or_else(|| PluginIdError(text.to_owned()))
    }

    fn read(text: &str) -> Option<Self> {
        if let Some((device, replica)) = text.split_once("::") {
            return Some(Self { device: device_name(device)?, replica: Some(number(replica)?) });
        }
        if let Some((device, replica)) = text.rsplit_once("/vgpu") {
            return Some(Self { device: minor_name(device)?, replica: Some(number(replica)?) });
        }
        let is_uuid = text.starts_with("GPU-") || (text.starts_with("MIG-") && !text.starts_with("MIG-GPU-"));
        if is_uuid && let Some((uuid, replica)) = sixth_group(text) {
            return Some(Self { device: device_name(uuid)?, replica: Some(replica) });
        }
        Some(Self { device: device_name(text)?, replica: None })
    }
}

fn device_name(text: &str) -> Option<DeviceName> {
    if text.starts_with("nvidia") {
        return minor_name(text);
    }
    if let Some(old) = text.strip_prefix("MIG-").filter(|rest| rest.starts_with("GPU-")) {
        let (card_uuid, instances) = old.split_once('/')?;
        let (gpu_instance, compute_instance) = instances.split_once('/')?;
        return is_uuid(card_uuid, "GPU-").then_some(DeviceName::OldInstance {
            card_uuid: card_uuid.into(),
            gpu_instance: number(gpu_instance)?,
            compute_instance: number(compute_instance)?,
        });
    }
    if is_uuid(text, "GPU-") || is_uuid(text, "MIG-") {
        return Some(DeviceName::Uuid(text.into()));
    }
    match text.split_once(':') {
        Some((card, instance)) => Some(DeviceName::IndexPair { card: number(card)?, instance: number(instance)? }),
        None => Some(DeviceName::Index(number(text)?)),
    }
}

/// `nvidia0` or `nvidia0/gi3`.
fn minor_name(text: &str) -> Option<DeviceName> {
    let text = text.strip_prefix("nvidia")?;
    match text.split_once("/gi") {
        Some((minor, instance)) => {
            Some(DeviceName::MinorInstance { minor: number(minor)?, gpu_instance: number(instance)? })
        }
        None => Some(DeviceName::Minor(number(text)?)),
    }
}

/// Whether it is a UUID behind its prefix. The driver writes hexadecimal digits, test rigs also other letters: the five groups are what tells.
fn is_uuid(text: &str, prefix: &str) -> bool {
    let Some(uuid) = text.strip_prefix(prefix) else { return false };
    uuid.split('-').count() <= 5
        && uuid.split('-').all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// The UUID and the number behind it, where there are six groups.
fn sixth_group(text: &str) -> Option<(&str, u32)> {
    let (uuid, replica) = text.rsplit_once('-')?;
    // The prefix and five groups.
    if uuid.split('-').count() != 6 { None } else { Some((uuid, number(replica)?)) }
}

/// A number without sign or space, which `parse` alone would let pass.
fn number(text: &str) -> Option<u32> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CARD: &str = "GPU-f124aa59-d406-d45b-9481-8fcd694e6c9e";
    const INSTANCE: &str = "MIG-2cc993d7-588c-5c28-b454-b3851897e3d7";

    #[track_caller]
    fn check(text: &str, device: DeviceName, replica: Option<u32>) {
        assert_eq!(PluginId::parse(text), Ok(PluginId { device, replica }), "{text}");
    }

    #[test]
    fn each_form_of_each_plugin_is_read() {
        let uuid = |text: &str| DeviceName::Uuid(text.into());
        check(CARD, uuid(CARD), None);
        check(INSTANCE, uuid(INSTANCE), None);
        check(&format!("{CARD}::0"), uuid(CARD), Some(0));
        check(&format!("{INSTANCE}::11"), uuid(INSTANCE), Some(11));
        check(&format!("{CARD}-3"), uuid(CARD), Some(3));
        check(&format!("{INSTANCE}-3"), uuid(INSTANCE), Some(3));
        let old = DeviceName::OldInstance { card_uuid: CARD.into(), gpu_instance: 7, compute_instance: 0 };
        check(&format!("MIG-{CARD}/7/0"), old.clone(), None);
        check(&format!("MIG-{CARD}/7/0::2"), old, Some(2));
        check("0", DeviceName::Index(0), None);
        check("12::3", DeviceName::Index(12), Some(3));
        check("0:1", DeviceName::IndexPair { card: 0, instance: 1 }, None);
        check("0:1::5", DeviceName::IndexPair { card: 0, instance: 1 }, Some(5));
        check("nvidia0", DeviceName::Minor(0), None);
        check("nvidia10/vgpu2", DeviceName::Minor(10), Some(2));
        check("nvidia0/gi3", DeviceName::MinorInstance { minor: 0, gpu_instance: 3 }, None);
        check("nvidia0/gi3/vgpu1", DeviceName::MinorInstance { minor: 0, gpu_instance: 3 }, Some(1));
    }

    #[test]
    fn what_is_in_no_form_is_refused_and_not_taken_for_a_device() {
        for text in [
            "",
            "GPU-",
            "MIG-",
            "gpu",
            "-1",
            "+1",
            "1:",
            "::1",
            "nvidia",
            "nvidiactl",
            "nvidia0/gi",
            "GPU-a::",
            "GPU-a::x",
            "MIG-GPU-a/1",
            "GPU-a b",
            "GPU-a-b-c-d-e-f",
            "99999999999",
        ] {
            assert_eq!(PluginId::parse(text), Err(PluginIdError(text.to_owned())), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*") {
            let _ = PluginId::parse(&text);
        }
    }
}
