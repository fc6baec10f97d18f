//! Signals that contradict each other.

use cardhour_domain::{Gap, Percent, Reading};

/// What else is known when a device says how busy it was.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// How busy by the driver's ring.
    pub duty_pct: Reading<Percent>,
    /// How many processes are on it.
    pub processes: Reading<u32>,
    /// Mean power over the tick. Unit: milliwatts.
    pub power_mw: Option<i64>,
    /// The most it may draw. Unit: milliwatts.
    pub limit_mw: Option<i64>,
    /// The least it was ever seen to draw. Unit: milliwatts.
    pub lowest_mw: Option<i64>,
}

/// Duty cycle, unless what else is known contradicts it.
///
/// Latched: some drivers keep saying 100 % after a kernel was killed; with no process on the card and idle power that is no work. Dead: some
/// say 0 for ever; with high power that is no idleness. Power alone makes neither busy nor idle: a card with nothing on it can hold its clocks.
pub fn duty_cycle(duty_pct: Reading<Percent>, evidence: Evidence) -> Reading<Percent> {
    match duty_pct {
        Reading::Seen(Percent::WHOLE) if evidence.processes == Reading::Seen(0) && evidence.is_power_idle() => {
            Reading::Missing(Gap::Implausible)
        }
        Reading::Seen(duty) if duty.thousandths() == 0 && evidence.is_power_high() => {
            Reading::Missing(Gap::Implausible)
        }
        told => told,
    }
}

/// Activity by the performance monitor, unless the duty cycle contradicts it: after some errors the monitor stays at nothing while kernels run.
pub fn activity(active_pct: Reading<Percent>, evidence: Evidence) -> Reading<Percent> {
    match (active_pct, evidence.duty_pct) {
        (Reading::Seen(active), Reading::Seen(duty))
            if active.thousandths() == 0 && duty >= Percent::REFUTES_NO_ACTIVITY =>
        {
            // A latched duty cycle contradicts nothing.
            duty_cycle(evidence.duty_pct, evidence).seen().map_or(active_pct, |_| Reading::Missing(Gap::Implausible))
        }
        _ => active_pct,
    }
}

impl Evidence {
    /// In the lowest tenth of the card's own range, and below three tenths of its limit: a card that has been busy since the collector started
    /// is never at idle power.
    fn is_power_idle(self) -> bool {
        match (self.power_mw, self.limit_mw, self.lowest_mw) {
            (Some(power), Some(limit), Some(lowest)) => {
                power * 10 <= limit * 3 && (power - lowest) * 10 <= limit - lowest
            }
            _ => false,
        }
    }

    /// Above half of its limit, or three times what it draws at its least.
    fn is_power_high(self) -> bool {
        match (self.power_mw, self.limit_mw, self.lowest_mw) {
            (Some(power), Some(limit), _) => power * 2 >= limit,
            (Some(power), None, Some(lowest)) => power >= lowest * 3,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> Reading<Percent> {
        Reading::Seen(Percent::from_thousandths(0).unwrap())
    }

    const WHOLE: Reading<Percent> = Reading::Seen(Percent::WHOLE);
    const DOUBTED: Reading<Percent> = Reading::Missing(Gap::Implausible);

    fn evidence(duty_pct: Reading<Percent>, processes: u32, power_w: i64) -> Evidence {
        let [power_mw, limit_mw, lowest_mw] = [power_w, 700, 70].map(|w| Some(w * 1000));
        Evidence { duty_pct, processes: Reading::Seen(processes), power_mw, limit_mw, lowest_mw }
    }

    #[test]
    fn a_latched_duty_cycle_is_no_work() {
        let latched = |processes, power_w| duty_cycle(WHOLE, evidence(WHOLE, processes, power_w));
        assert_eq!(latched(0, 75), DOUBTED);
        assert_eq!(latched(1, 75), WHOLE);
        // 70 W + 63 W is a tenth of the range; a card whose processes are hidden from us draws more.
        assert_eq!([latched(0, 133), latched(0, 134)], [DOUBTED, WHOLE]);
        let unlisted = Evidence { processes: Reading::Missing(Gap::NoPermission), ..evidence(WHOLE, 0, 75) };
        assert_eq!(duty_cycle(WHOLE, unlisted), WHOLE);
    }

    #[test]
    fn a_card_that_always_says_nothing_is_not_idle_at_high_power() {
        assert_eq!(duty_cycle(none(), evidence(none(), 1, 350)), DOUBTED);
        // Nothing runs and the clocks are held: about 110 W, and idle all the same.
        assert_eq!(duty_cycle(none(), evidence(none(), 0, 110)), none());
    }

    #[test]
    fn a_monitor_at_nothing_is_doubted_while_kernels_run_and_believed_beside_a_latched_duty_cycle() {
        assert_eq!(activity(none(), evidence(WHOLE, 1, 400)), DOUBTED);
        let duty = |percent: i32| Reading::Seen(Percent::from_thousandths(percent * 1000).unwrap());
        assert_eq!(activity(none(), evidence(duty(60), 1, 300)), DOUBTED);
        // Short kernels with long waits between them can be below what the monitor shows.
        assert_eq!(activity(none(), evidence(duty(10), 1, 100)), none());
        assert_eq!(activity(none(), evidence(WHOLE, 0, 75)), none());
        assert_eq!(activity(none(), evidence(none(), 1, 75)), none());
    }
}
