//! What is charged of held time: the billed part, or for some queues and classes what cards were seen at work.

use super::BillingPolicy;
use crate::cell::billed_part;
use crate::report::bundles::{Bundle, Bundles, Class};
use cardhour_domain::CardTime;

/// By what holders are charged.
#[derive(Clone, Debug)]
pub(super) struct Basis {
    /// For each class of holders, whether it is by use.
    by_use: Vec<bool>,
}

impl Basis {
    pub fn of(bundles: &Bundles<'_>, policy: &BillingPolicy) -> Self {
        let by_use = |class: &Class<'_>| {
            let Some(attempt) = class.attempt else { return false };
            policy.used_basis.iter().any(|basis| basis.is_for(attempt.queue.as_deref(), attempt.class.as_deref()))
        };
        Self { by_use: bundles.classes.iter().map(by_use).collect() }
    }

    /// Whether a bundle's holders are charged by use.
    pub fn is_by_use(&self, bundle: &Bundle) -> bool {
        self.by_use[bundle.class as usize]
    }

    /// What of a bundle's held time is charged: never more than what is billed of it. By use, what nobody saw isn't: it is no use that is known
    /// (LED-3).
    pub fn charged_time(&self, bundle: &Bundle) -> CardTime {
        if self.is_by_use(bundle) {
            bundle.used.as_ref().map_or(CardTime::ZERO, |used| used.billed_effective)
        } else {
            bundle.billed_time
        }
    }

    /// What of a bundle's billed time isn't charged because nobody saw it: of what is by use alone.
    pub fn unseen(&self, bundle: &Bundle) -> CardTime {
        if self.is_by_use(bundle) {
            billed_part(bundle.unseen, bundle.billed_time, bundle.card_time)
        } else {
            CardTime::ZERO
        }
    }
}
