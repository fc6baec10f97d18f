//! Signals of one device that contradict each other: such a sample tells nothing of use, and is never idle (design §4.4).

use super::look::{Signals, Told};
use cardhour_domain::{Gap, Percent, Reading, Sample, UseBasis};

/// Busy is what no longer counts as idle. Unit: thousandths of a percent. Source: design §4.4.
pub const IDLE_FLOOR: i32 = 2_000;
/// A mean that says busy nearly all of the time.
const NEARLY_ALL: i32 = 95_000;

/// How busy a device was, by the best of what was read, and what that is.
///
/// Activity goes before duty cycle. Missing as [`Gap::Implausible`] where signals contradict each other:
/// - any kernel needs memory on the card, so busy with none in use and no process on it isn't so (the duty cycle of an idle L40S stands at
///   100 % until it is asked again);
/// - an engine that stands at exactly 0 while kernels ran half of the time has stopped counting (C04);
/// - a card that does nothing doesn't draw more than half of what it may (a driver that answers 0 for ever).
pub fn use_of(signals: &Signals, told: Told) -> (Reading<Percent>, UseBasis) {
    let activity =
        [signals.sm_active_pct, signals.engine_active_pct].into_iter().find(|reading| reading.seen().is_some());
    let (reading, basis) = match (activity, signals.duty_cycle_pct) {
        (Some(activity), _) => (activity, UseBasis::Gpm),
        (None, Reading::Seen(duty)) => (Reading::Seen(duty), UseBasis::DutyCycle),
        (None, Reading::Missing(gap)) => {
            // The reason of the field that the source has.
            let gaps = [signals.sm_active_pct, signals.engine_active_pct];
            let told = gaps.into_iter().find(|reading| !matches!(reading, Reading::Missing(Gap::NotRecorded)));
            match told {
                Some(reading) => (reading, UseBasis::Gpm),
                None => (Reading::Missing(gap), UseBasis::DutyCycle),
            }
        }
    };
    match reading {
        Reading::Seen(busy) if contradicts(busy, basis, signals, told) => (Reading::Missing(Gap::Implausible), basis),
        _ => (reading, basis),
    }
}

fn contradicts(busy: Percent, basis: UseBasis, signals: &Signals, told: Told) -> bool {
    let busy = busy.thousandths();
    let floor = match told {
        Told::Instant => IDLE_FLOOR,
        // Work of a part of the time may have left the memory by its end.
        Told::Mean => NEARLY_ALL,
    };
    let no_memory = signals.mem_used_bytes == Reading::Seen(0);
    let has_processes = signals.processes.seen().is_some_and(|processes| processes > 0);
    if busy > floor && no_memory && !has_processes {
        return true;
    }
    let duty = signals.duty_cycle_pct.seen().map_or(0, Percent::thousandths);
    if busy == 0 && basis == UseBasis::Gpm && duty >= Percent::REFUTES_NO_ACTIVITY.thousandths() {
        return true;
    }
    let media = signals.media_active_pct.seen().map_or(0, Percent::thousandths);
    let draws_much = match (signals.power_mw, signals.power_limit_mw) {
        (Reading::Seen(power), Reading::Seen(limit)) => limit.0 > 0 && power.0 * 2 > limit.0,
        _ => false,
    };
    busy == 0 && media == 0 && draws_much
}

/// What people should know of samples that tell nothing of use.
pub fn notes(samples: &[Sample]) -> Vec<String> {
    let of = |gap: Gap| samples.iter().filter(|sample| sample.sm_active_pct == Reading::Missing(gap)).count();
    let mut notes = Vec::new();
    match of(Gap::Implausible) {
        0 => {}
        n => notes.push(format!(
            "{n} samples contradict themselves (busy without memory or process, or the reverse): their use is unseen"
        )),
    }
    match of(Gap::NotSupported) {
        0 => {}
        n => notes.push(format!(
            "{n} samples are of devices that don't tell their utilization, as cards with MIG: record DCGM_FI_PROF_GR_ENGINE_ACTIVE"
        )),
    }
    notes
}
