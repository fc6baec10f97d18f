//! Cards that KAI gives out in fractions.
//!
//! KAI holds such a card by a reservation pod of its own; the pods that share it have no device with the kubelet. Both carry the group's name as a
//! label, and the pods say their part in an annotation. Only a pod in KAI's own namespace makes a group of a card: what users write on
//! their pods can add them to one who pays for it, and take nothing from a card that isn't shared.

use super::pod::PodFacts;
use cardhour_domain::{CardShare, Name};
use rust_decimal::Decimal;

/// Namespaces where KAI, and Run:ai from which it came, keep their reservation pods.
pub const RESERVATION_NAMESPACES: [&str; 2] = ["kai-resource-reservation", "runai-reservation"];

const GROUP: &str = "runai-gpu-group";
const GROUP_PREFIX: &str = "runai-gpu-group/";
/// The UUID of the reserved card, whatever the name says.
const RESERVED_UUID: &str = "run.ai/reserve_for_gpu_index";

/// The group that a reservation pod holds its card for.
pub fn reserved_group(reservation: &PodFacts) -> Option<&Name> {
    reservation.labels.get(GROUP)
}

/// The card that a reservation pod found it was given.
pub fn reserved_uuid(reservation: &PodFacts) -> Option<&Name> {
    reservation.annotations.get(RESERVED_UUID).filter(|uuid| uuid.starts_with("GPU-"))
}

/// Whether a pod is of a group. One on several cards has a label for each.
pub fn is_in(pod: &PodFacts, group: &str) -> bool {
    let named = pod.labels.get(GROUP).is_some_and(|own| *own == *group);
    named || pod.labels.keys().filter_map(|label| label.strip_prefix(GROUP_PREFIX)).any(|own| own == group)
}

/// A pod's declared part of each of its cards: its fraction, else its memory of the card's; none where it declares nothing that can be.
pub fn declared(pod: &PodFacts, card_memory_bytes: Option<i64>) -> Option<CardShare> {
    if let Some(fraction) = pod.annotations.get("gpu-fraction") {
        let fraction: Decimal = fraction.trim().parse().ok()?;
        return CardShare::from_decimal(fraction).ok().filter(|share| !share.is_zero() && *share <= CardShare::CARD);
    }
    let memory_mib: u32 = pod.annotations.get("gpu-memory")?.trim().parse().ok()?;
    memory_share(memory_mib, card_memory_bytes)
}

/// So much of a card's memory, as a part of the card.
pub(super) fn memory_share(memory_mib: u32, card_memory_bytes: Option<i64>) -> Option<CardShare> {
    let card_mib = u32::try_from(card_memory_bytes? / (1 << 20)).ok()?;
    CardShare::from_fraction(memory_mib, card_mib).ok().filter(|share| !share.is_zero() && *share <= CardShare::CARD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holders::kubernetes::kubelet_list::PodName;

    fn pod(labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> PodFacts {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (Name::from(*k), Name::from(*v))).collect();
        let named = PodFacts::named(&PodName::new("a", "b"));
        PodFacts { labels: map(labels), annotations: map(annotations), ..named }
    }

    #[test]
    fn a_fraction_or_memory_is_declared_and_what_cannot_be_is_not() {
        // A card of 80 GiB: 81,920 MiB.
        let share = |key: &str, value: &str| declared(&pod(&[], &[(key, value)]), Some(80 << 30)).map(CardShare::parts);
        assert_eq!(share("gpu-fraction", "0.5"), Some(9_009_000));
        assert_eq!(share("gpu-memory", "20480"), Some(4_504_500));
        for bad in ["0", "-0.5", "1.5", "half", ""] {
            assert_eq!(share("gpu-fraction", bad), None, "{bad}");
        }
        assert_eq!(share("gpu-memory", "90000"), None);
        assert_eq!(declared(&pod(&[], &[("gpu-memory", "20480")]), None), None);
    }

    #[test]
    fn a_pod_on_several_cards_is_in_the_group_of_each() {
        let several = pod(&[("runai-gpu-group/g1", "g1"), ("runai-gpu-group/g2", "g2")], &[]);
        assert!(is_in(&several, "g1") && is_in(&several, "g2") && !is_in(&several, "g3"));
        assert!(is_in(&pod(&[("runai-gpu-group", "g3")], &[]), "g3"));
    }
}
