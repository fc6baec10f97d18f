//! When a card may be cut at all, and who may have a piece of it.

use super::Refusal;

/// A card to be drained for a change of its MIG mode. It needs an idle card, so it is an action with a budget of its own, apart from that
/// of preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeChange {
    /// Cards that are drained for such a change when this one is among them.
    pub in_progress: u32,
}

/// Whether a card's MIG mode may be changed now. Errors: somebody holds it, or as many cards as may be are drained already.
pub fn may_change_mode(holders: usize, in_progress: u32, most_at_once: u32) -> Result<ModeChange, Refusal> {
    if holders > 0 {
        return Err(Refusal::CardHeld { holders });
    }
    if in_progress >= most_at_once {
        return Err(Refusal::DrainBudget { in_progress, most: most_at_once });
    }
    Ok(ModeChange { in_progress: in_progress + 1 })
}

/// Whether a job of so many cards may have instances instead. Errors: it asks for more than one, and instances don't reach each other.
pub fn admit_cards(cards: u32) -> Result<(), Refusal> {
    if cards > 1 { Err(Refusal::GangOnMig { cards }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule 10.
    #[test]
    fn a_held_card_keeps_its_mode_and_few_are_drained_at_once() {
        assert_eq!(may_change_mode(1, 0, 2).unwrap_err().code(), "mig_card_held");
        assert_eq!(may_change_mode(0, 2, 2).unwrap_err().code(), "mig_drain_budget");
        assert_eq!(may_change_mode(0, 1, 2).unwrap(), ModeChange { in_progress: 2 });
    }

    /// Rule 10.
    #[test]
    fn a_gang_is_never_placed_on_instances() {
        assert!(admit_cards(1).is_ok());
        assert_eq!(admit_cards(4).unwrap_err().code(), "mig_gang");
    }
}
