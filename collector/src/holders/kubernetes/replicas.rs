//! Devices that a plugin gives to several at once.
//!
//! Time-slicing and MPS offer a device as R replicas. Who has k of them has k/R of the device: by custom only, since more replicas don't give
//! more of the card's work, but it is the one figure that those who ask and those who give agree on.

use super::plugin_id::{DeviceName, PluginId};
use cardhour_domain::CardShare;
use std::collections::{BTreeMap, BTreeSet};

/// Which replicas there are of each shared device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replicas {
    numbers: BTreeMap<DeviceName, BTreeSet<u32>>,
}

impl Replicas {
    /// Of the device ids that a plugin offers. Ids in no known form say nothing.
    pub fn offered<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut numbers: BTreeMap<DeviceName, BTreeSet<u32>> = BTreeMap::new();
        for id in ids.into_iter().filter_map(|id| PluginId::parse(id).ok()) {
            if let Some(replica) = id.replica {
                numbers.entry(id.device).or_default().insert(replica);
            }
        }
        Self { numbers }
    }

    /// Whether it knows a replica.
    pub fn has(&self, device: &DeviceName, replica: u32) -> bool {
        self.numbers.get(device).is_some_and(|numbers| numbers.contains(&replica))
    }

    /// What `held` replicas of a device are, of its share of the card; none where nothing says how many there are of it.
    ///
    /// Every replica has its own part, and all parts add up to the device exactly, whatever their number. `configured`: how many replicas
    /// the site's config says there are, for kubelets that can't be asked.
    pub fn share(
        &self,
        device: &DeviceName,
        held: &BTreeSet<u32>,
        whole: CardShare,
        configured: Option<u32>,
    ) -> Option<CardShare> {
        let offered = self.numbers.get(device).filter(|numbers| held.is_subset(numbers));
        let (count, places): (usize, Vec<usize>) = match (offered, configured) {
            (Some(numbers), _) => {
                (numbers.len(), numbers.iter().enumerate().filter(|(_, n)| held.contains(n)).map(|(i, _)| i).collect())
            }
            (None, Some(count)) if held.iter().all(|replica| *replica < count) => {
                (count as usize, held.iter().map(|replica| *replica as usize).collect())
            }
            _ => return None,
        };
        let parts = whole.split_evenly(count);
        Some(places.into_iter().map(|place| parts[place]).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn device() -> DeviceName {
        DeviceName::Uuid("GPU-a".into())
    }

    #[test]
    fn replicas_held_of_replicas_offered_is_the_share() {
        let replicas = Replicas::offered(["GPU-a::0", "GPU-a::1", "GPU-a::2", "GPU-a::3", "GPU-b", "nonsense"]);
        let share = |held: &[u32]| {
            replicas.share(&device(), &held.iter().copied().collect(), CardShare::CARD, None).map(CardShare::parts)
        };
        // 18,018,000 / 4.
        assert_eq!(share(&[2]), Some(4_504_500));
        assert_eq!(share(&[0, 1, 2]), Some(13_513_500));
        assert_eq!(share(&[4]), None, "a replica that isn't offered: the plugin was set anew");
    }

    #[test]
    fn without_an_offer_the_configs_count_holds_and_without_that_nothing_is_declared() {
        let share = |configured| Replicas::default().share(&device(), &[1].into(), CardShare::CARD, configured);
        assert_eq!(share(Some(10)), CardShare::from_fraction(1, 10).ok());
        assert_eq!(share(Some(1)), None, "replica 1 of one");
        assert_eq!(share(None), None);
    }

    proptest! {
        #[test]
        fn all_replicas_add_up_to_the_device(count in 1u32..60, parts in 0i64..=CardShare::PARTS_PER_CARD) {
            let ids: Vec<String> = (0..count).map(|n| format!("GPU-a::{n}")).collect();
            let replicas = Replicas::offered(ids.iter().map(String::as_str));
            let whole = CardShare::from_parts(parts);
            let of = |n: u32| replicas.share(&device(), &[n].into(), whole, None).unwrap();
            prop_assert_eq!((0..count).map(of).sum::<CardShare>(), whole);
        }
    }
}
