//! Cards that HAMi or Volcano give out in parts.
//!
//! Their plugins offer a card as many devices, and whichever of those the kubelet picks means nothing: the scheduler's extender chose the card
//! and wrote it on the pod. Who may write annotations on pods could write this one, so it is believed only where the site's config
//! names it, and only of pods to which the kubelet gave something.

use super::gpu_groups::memory_share;
use cardhour_domain::{CardShare, Name};

/// A part of a card, as the annotation writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VgpuPart {
    /// The card.
    pub card_uuid: Name,
    /// Its memory. Unit: MiB.
    pub memory_mib: u32,
    /// Its part of the card's cores; zero where none was asked for. Unit: percent.
    pub cores_percent: u32,
}

impl VgpuPart {
    /// Its part of the card: of the cores where those were asked for, else of the memory.
    pub fn share(&self, card_memory_bytes: Option<i64>) -> Option<CardShare> {
        match self.cores_percent {
            0 => memory_share(self.memory_mib, card_memory_bytes),
            percent => CardShare::from_fraction(percent.min(100), 100).ok(),
        }
    }
}

/// Reads `hami.io/vgpu-devices-allocated` or `volcano.sh/vgpu-ids-new`: `UUID,type,MiB,percent:` for each part, `;` after each container.
/// None where it is in another form, or names an instance inside of a card, which has no UUID there.
pub fn parse(text: &str) -> Option<Vec<VgpuPart>> {
    let parts = text.split([';', ':']).map(str::trim).filter(|part| !part.is_empty());
    parts.map(part).collect::<Option<Vec<_>>>().filter(|parts| !parts.is_empty())
}

fn part(text: &str) -> Option<VgpuPart> {
    let fields: Vec<&str> = text.split(',').collect();
    let [uuid, kind, memory_mib, cores_percent] = fields[..] else { return None };
    if !kind.starts_with("NVIDIA") || !uuid.starts_with("GPU-") || uuid.contains('[') {
        return None;
    }
    Some(VgpuPart {
        card_uuid: uuid.into(),
        memory_mib: memory_mib.parse().ok()?,
        cores_percent: cores_percent.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_all_containers_are_read() {
        let parts = parse("GPU-a,NVIDIA,4000,0:GPU-b,NVIDIA,4096,25:;GPU-a,NVIDIA-A100,1024,10:;").unwrap();
        let shown: Vec<(&str, u32, u32)> =
            parts.iter().map(|part| (&*part.card_uuid, part.memory_mib, part.cores_percent)).collect();
        assert_eq!(shown, [("GPU-a", 4000, 0), ("GPU-b", 4096, 25), ("GPU-a", 1024, 10)]);
        // 25 % of 18,018,000; 4,000 of 16,000 MiB is the same.
        assert_eq!(parts[1].share(None).map(CardShare::parts), Some(4_504_500));
        assert_eq!(parts[0].share(Some(16_000 << 20)).map(CardShare::parts), Some(4_504_500));
        assert_eq!(parts[0].share(None), None);
    }

    #[test]
    fn another_form_is_no_list_of_parts() {
        for text in [
            "",
            ";",
            "GPU-a",
            "GPU-a,NVIDIA,x,0:;",
            "MLU-a,MLU,100,10:;",
            "GPU-a[0-1],NVIDIA,100,10:;",
            "GPU-a,NVIDIA,1,1:GPU-b:;",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
