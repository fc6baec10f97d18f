//! The rule by tenant.

use super::Mode;
use crate::work_class::WorkClass;
use cardhour_domain::{AttemptKey, Name};
use std::collections::BTreeSet;

/// A holder that has, or asks for, a part of a card.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Party {
    /// Which.
    pub holder: AttemptKey,
    /// Whose; none where that isn't known, and then it is everybody's stranger.
    pub tenant: Option<Name>,
    /// What kind of work, where that is known.
    pub class: Option<WorkClass>,
    /// Whether it is critical.
    pub is_critical: bool,
    /// How it has its part.
    pub mode: Mode,
    /// The device it has: a MIG instance's UUID, or the card's.
    pub device_uuid: Name,
}

/// Why two may not share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Breach {
    /// One of them has to have a card to itself.
    #[error("{holder} is {why} and has a whole card to itself, {other} is on it too")]
    WholeCardOnly {
        /// Which.
        holder: AttemptKey,
        /// Because it is this.
        why: &'static str,
        /// Who else is there.
        other: AttemptKey,
    },
    /// Different tenants, and nothing that keeps them apart.
    #[error("{holder} of {tenant} and {other} of {other_tenant} share a device by {mode}: different tenants share by mig or vgpu only",
        tenant = name_of(.tenant), other_tenant = name_of(.other_tenant), mode = .mode.name())]
    AcrossTenants {
        /// One of them.
        holder: AttemptKey,
        /// Whose.
        tenant: Option<Name>,
        /// The other.
        other: AttemptKey,
        /// Whose.
        other_tenant: Option<Name>,
        /// The weaker of their modes.
        mode: Mode,
    },
}

fn name_of(tenant: &Option<Name>) -> &str {
    tenant.as_deref().unwrap_or("an unknown tenant")
}

impl Party {
    /// Why it has to have a card to itself; none when it hasn't.
    pub fn whole_card_because(&self) -> Option<&'static str> {
        if self.is_critical {
            Some("critical")
        } else if self.class == Some(WorkClass::Training) {
            Some("training")
        } else if self.mode == Mode::Whole {
            Some("given the whole card")
        } else {
            None
        }
    }

    fn is_of_the_same_tenant(&self, other: &Self) -> bool {
        self.tenant.is_some() && self.tenant == other.tenant
    }
}

/// Whether one more may come to a card beside those on it. Errors: the first that it may not share with.
pub fn may_join(on_card: &[Party], joining: &Party) -> Result<(), Breach> {
    on_card.iter().filter(|party| party.holder != joining.holder).try_for_each(|party| check_pair(party, joining))
}

/// Whether two on one card may be. Errors: why not.
pub(super) fn check_pair(one: &Party, other: &Party) -> Result<(), Breach> {
    for (party, beside) in [(one, other), (other, one)] {
        if let Some(why) = party.whole_card_because() {
            return Err(Breach::WholeCardOnly { holder: party.holder.clone(), why, other: beside.holder.clone() });
        }
    }
    if one.is_of_the_same_tenant(other) || one.device_uuid != other.device_uuid {
        return Ok(());
    }
    // Two in one MIG instance take turns in it: the instance keeps others out, and not them from each other.
    let of = |party: &Party| if party.mode == Mode::Mig { Mode::TimeSlice } else { party.mode };
    let mode = of(one).max(of(other));
    if mode.keeps_strangers_apart() {
        return Ok(());
    }
    Err(Breach::AcrossTenants {
        holder: one.holder.clone(),
        tenant: one.tenant.clone(),
        other: other.holder.clone(),
        other_tenant: other.tenant.clone(),
        mode,
    })
}

/// By which modes all of these could share one card, whatever they have now. One alone may have any.
pub fn modes_for(parties: &[Party]) -> BTreeSet<Mode> {
    let [first, rest @ ..] = parties else { return Mode::ALL.into() };
    let needs_whole = parties.iter().any(|party| party.is_critical || party.class == Some(WorkClass::Training));
    if needs_whole {
        return if rest.is_empty() { BTreeSet::from([Mode::Whole]) } else { BTreeSet::new() };
    }
    if rest.is_empty() {
        return Mode::ALL.into();
    }
    let one_tenant = rest.iter().all(|party| party.is_of_the_same_tenant(first));
    let fits = |mode: &Mode| match mode {
        Mode::Whole => false,
        Mode::TimeSlice | Mode::Mps => one_tenant,
        Mode::Mig | Mode::Vgpu => true,
    };
    Mode::ALL.into_iter().filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(holder: &str, tenant: Option<&str>, mode: Mode) -> Party {
        Party {
            holder: AttemptKey::new("lab", holder, "1"),
            tenant: tenant.map(Name::from),
            class: Some(WorkClass::Inference),
            is_critical: false,
            mode,
            device_uuid: "GPU-1".into(),
        }
    }

    #[test]
    fn one_tenant_shares_as_it_likes_and_strangers_by_what_keeps_them_apart() {
        for mode in [Mode::Mig, Mode::Vgpu, Mode::TimeSlice, Mode::Mps] {
            let (vision, speech) = (party("1", Some("vision"), mode), party("2", Some("speech"), mode));
            assert!(may_join(std::slice::from_ref(&vision), &party("3", Some("vision"), mode)).is_ok(), "{mode:?}");
            let mut elsewhere = speech.clone();
            elsewhere.device_uuid = "MIG-2".into();
            match mode {
                Mode::Vgpu => assert!(may_join(&[vision], &speech).is_ok()),
                // In another instance; in the same one they would take turns.
                Mode::Mig => {
                    assert!(may_join(std::slice::from_ref(&vision), &elsewhere).is_ok());
                    assert!(may_join(&[vision], &speech).is_err());
                }
                Mode::Whole | Mode::TimeSlice | Mode::Mps => assert!(may_join(&[vision], &speech).is_err(), "{mode:?}"),
            }
        }
    }

    #[test]
    fn a_tenant_that_is_not_known_is_a_stranger_also_to_another_such() {
        let unknown = party("1", None, Mode::TimeSlice);
        let breach = may_join(&[unknown], &party("2", None, Mode::TimeSlice)).unwrap_err();
        assert_eq!(
            breach.to_string(),
            "lab/1/1 of an unknown tenant and lab/2/1 of an unknown tenant share a device by time_slice: different tenants share by \
             mig or vgpu only"
        );
    }

    #[test]
    fn training_and_critical_work_has_a_card_to_itself_in_its_own_tenant_too() {
        let other = party("1", Some("vision"), Mode::Mig);
        let mut critical = party("2", Some("vision"), Mode::Mig);
        critical.device_uuid = "MIG-2".into();
        let mut training = critical.clone();
        critical.is_critical = true;
        training.class = Some(WorkClass::Training);
        for party in [critical, training] {
            assert!(matches!(may_join(std::slice::from_ref(&other), &party), Err(Breach::WholeCardOnly { .. })));
            assert!(may_join(&[], &party).is_ok());
            assert_eq!(modes_for(std::slice::from_ref(&party)), BTreeSet::from([Mode::Whole]));
            assert_eq!(modes_for(&[other.clone(), party]), BTreeSet::new());
        }
    }

    /// SC-086 merges two half-used cards: within one tenant only.
    #[test]
    fn the_modes_for_several_are_those_of_the_most_careful() {
        let vision = party("1", Some("vision"), Mode::Whole);
        let more = party("2", Some("vision"), Mode::Whole);
        let speech = party("3", Some("speech"), Mode::Whole);
        let all = BTreeSet::from([Mode::Mig, Mode::Vgpu, Mode::TimeSlice, Mode::Mps]);
        assert_eq!(modes_for(&[vision.clone(), more.clone()]), all);
        assert_eq!(modes_for(&[vision, more, speech]), BTreeSet::from([Mode::Mig, Mode::Vgpu]));
    }
}
