//! Which sharing mode suits a job: by what it needs of compute and, apart from that, of memory.
//!
//! A job that uses a tenth of the processors and nine tenths of the memory can't share a card, and one that uses half of both can with one other. One
//! figure for both would say the same of them.

use crate::mig::{Axis, MemoryFit, Need, Offer, Shape, smallest_for};
use crate::sharing::Mode;
use crate::work_class::WorkClass;
use cardhour_domain::{Percent, Reading};
use std::collections::BTreeMap;

/// What is known of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeFigures {
    /// What kind of work.
    pub class: Option<WorkClass>,
    /// Whether it is critical.
    pub is_critical: bool,
    /// Whether all who would share with it are of its tenant.
    pub is_among_its_own: bool,
    /// How much of its time was seen.
    pub coverage: Percent,
    /// Its multiprocessors' activity on average.
    pub sm_mean: Reading<Percent>,
    /// The activity that it stays under nineteen of twenty times.
    pub sm_p95: Reading<Percent>,
    /// The most memory it had. Unit: MiB.
    pub memory_peak_mib: Reading<u64>,
    /// The card's. Unit: MiB.
    pub card_memory_mib: u64,
    /// How the card can be cut, where it can: its axis, the shapes on offer, and memory by shape as read from the driver. Unit: MiB.
    pub mig: Option<(Axis, Offer, BTreeMap<Shape, u64>)>,
}

/// Which mode suits a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeAdvice {
    /// It.
    pub mode: Mode,
    /// Which shape, for MIG.
    pub shape: Option<Shape>,
    /// How many such jobs a card would hold.
    pub jobs_per_card: u32,
    /// Why.
    pub reason: ModeReason,
}

/// Why a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModeReason {
    /// Its class, or that it is critical, wants a whole card.
    ByRule,
    /// It needs more than half of the memory: a card with as much and fewer processors would do, if it is compute that it needs little of.
    MemoryLarge,
    /// It needs more than half of the processors.
    ComputeLarge,
    /// Strangers would share with it, and the card can't be cut for it.
    NothingKeepsApart,
    /// An instance holds it.
    FitsInstance,
    /// It needs little, most of the time: it shares at the same time.
    SteadyAndSmall,
    /// It needs something now and then: it takes turns.
    NowAndThen,
}

/// Memory beyond the peak that a job is given: the next run may have a little more.
const HEADROOM_PERCENT: u64 = 10;
/// Jobs that take turns on a card at most: with more each waits too long for its turn.
const MOST_JOBS: u32 = 8;

/// Which mode suits a job; none when too little of it was seen to say.
pub fn mode_for(figures: &ModeFigures, least_coverage: Percent) -> Option<ModeAdvice> {
    let whole = |reason| Some(ModeAdvice { mode: Mode::Whole, shape: None, jobs_per_card: 1, reason });
    if figures.is_critical || figures.class == Some(WorkClass::Training) {
        return whole(ModeReason::ByRule);
    }
    let (sm_mean, sm_p95) = (figures.sm_mean.seen()?, figures.sm_p95.seen()?);
    let peak_mib = figures.memory_peak_mib.seen()?;
    if figures.coverage < least_coverage || figures.card_memory_mib == 0 {
        return None;
    }
    let needed_mib = peak_mib + (peak_mib * HEADROOM_PERCENT).div_ceil(100);
    let by_memory = figures.card_memory_mib.checked_div(needed_mib).unwrap_or(u64::from(MOST_JOBS));
    let by_compute = |sm: Percent| match sm.thousandths() {
        0 => MOST_JOBS,
        sm => u32::try_from(Percent::WHOLE.thousandths() / sm).expect("at most 100,000").min(MOST_JOBS),
    };
    let instance = fitting_instance(figures, needed_mib, sm_p95);
    if by_memory < 2 {
        return whole(ModeReason::MemoryLarge);
    }
    if by_compute(sm_p95) < 2 && !(figures.is_among_its_own && by_compute(sm_mean) >= 4) {
        return whole(ModeReason::ComputeLarge);
    }
    if !figures.is_among_its_own {
        let Some((shape, jobs_per_card)) = instance else { return whole(ModeReason::NothingKeepsApart) };
        let reason = ModeReason::FitsInstance;
        return Some(ModeAdvice { mode: Mode::Mig, shape: Some(shape), jobs_per_card, reason });
    }
    let by_memory = u32::try_from(by_memory).unwrap_or(MOST_JOBS);
    // Peaks far above the mean come one at a time; what is always a little goes side by side.
    let takes_turns = i64::from(sm_p95.thousandths()) >= 4 * i64::from(sm_mean.thousandths());
    let (mode, by_compute, reason) = if takes_turns {
        (Mode::TimeSlice, by_compute(sm_mean), ModeReason::NowAndThen)
    } else {
        (Mode::Mps, by_compute(sm_p95), ModeReason::SteadyAndSmall)
    };
    Some(ModeAdvice { mode, shape: None, jobs_per_card: by_memory.min(by_compute).min(MOST_JOBS), reason })
}

/// The smallest instance with enough of both, and how many of it a card has.
fn fitting_instance(figures: &ModeFigures, needed_mib: u64, sm_p95: Percent) -> Option<(Shape, u32)> {
    let (axis, offer, usable_mib) = figures.mig.as_ref()?;
    let slices = i64::from(axis.compute_slices()) * i64::from(sm_p95.thousandths());
    let compute = u8::try_from((slices as u64).div_ceil(Percent::WHOLE.thousandths() as u64)).ok()?.max(1);
    let need = Need { memory_mib: needed_mib, compute };
    let MemoryFit { shape, .. } = smallest_for(*axis, *offer, usable_mib, need).ok()?;
    let (of_compute, of_memory) = axis.slices(shape)?;
    let count = (axis.compute_slices() / of_compute).min(axis.memory_slices() / of_memory);
    (count >= 2).then_some((shape, u32::from(count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_domain::Gap;

    fn percent(percent: i32) -> Percent {
        Percent::from_thousandths(percent * 1000).unwrap()
    }

    /// On an H100 of 80 GB; memory by shape as read on one, in MiB.
    fn job(sm_mean: i32, sm_p95: i32, memory_peak_mib: u64) -> ModeFigures {
        let usable = [
            (Shape::OneG, 9_984),
            (Shape::OneGDouble, 20_096),
            (Shape::TwoG, 20_096),
            (Shape::ThreeG, 40_448),
            (Shape::FourG, 40_448),
            (Shape::SevenG, 81_152),
        ];
        ModeFigures {
            class: Some(WorkClass::Inference),
            is_critical: false,
            is_among_its_own: true,
            coverage: percent(99),
            sm_mean: Reading::Seen(percent(sm_mean)),
            sm_p95: Reading::Seen(percent(sm_p95)),
            memory_peak_mib: Reading::Seen(memory_peak_mib),
            card_memory_mib: 81_559,
            mig: Some((Axis::Eight, Offer::ALL, usable.into())),
        }
    }

    fn advice(figures: &ModeFigures) -> (Mode, u32, ModeReason) {
        let advice = mode_for(figures, percent(90)).unwrap();
        (advice.mode, advice.jobs_per_card, advice.reason)
    }

    #[test]
    fn memory_and_compute_are_judged_apart() {
        assert_eq!(advice(&job(5, 10, 60_000)), (Mode::Whole, 1, ModeReason::MemoryLarge));
        assert_eq!(advice(&job(60, 90, 4_000)), (Mode::Whole, 1, ModeReason::ComputeLarge));
        // A fifth of the processors and 11,000 MiB with headroom: seven by memory, five by compute.
        assert_eq!(advice(&job(15, 20, 10_000)), (Mode::Mps, 5, ModeReason::SteadyAndSmall));
        // 36,000 and a tenth are 39,600: two.
        assert_eq!(advice(&job(15, 20, 36_000)), (Mode::Mps, 2, ModeReason::SteadyAndSmall));
    }

    /// A notebook: 3 % on average, 80 % when a cell runs. 22,000 MiB with headroom go three times into 81,559.
    #[test]
    fn what_needs_much_now_and_then_takes_turns() {
        assert_eq!(advice(&job(3, 80, 20_000)), (Mode::TimeSlice, 3, ModeReason::NowAndThen));
        assert_eq!(advice(&job(3, 80, 2_000)), (Mode::TimeSlice, 8, ModeReason::NowAndThen));
    }

    /// 20 % of seven slices are two; 8,000 MiB with headroom are 8,800: a 2g, three to a card.
    #[test]
    fn among_strangers_an_instance_has_to_hold_it() {
        let mut figures = job(15, 20, 8_000);
        figures.is_among_its_own = false;
        let advice = mode_for(&figures, percent(90)).unwrap();
        assert_eq!((advice.mode, advice.shape, advice.jobs_per_card), (Mode::Mig, Some(Shape::TwoG), 3));
        // 9,500 and a tenth are 10,450, more than a 1g has: 1g2m.
        let mut figures = job(5, 10, 9_500);
        figures.is_among_its_own = false;
        let advice = mode_for(&figures, percent(90)).unwrap();
        assert_eq!((advice.shape, advice.jobs_per_card), (Some(Shape::OneGDouble), 4));
        figures.mig = None;
        assert_eq!(mode_for(&figures, percent(90)).unwrap().reason, ModeReason::NothingKeepsApart);
    }

    #[test]
    fn training_has_a_whole_card_and_what_was_not_seen_has_no_advice() {
        let mut figures = job(1, 1, 10);
        figures.class = Some(WorkClass::Training);
        assert_eq!(advice(&figures), (Mode::Whole, 1, ModeReason::ByRule));
        let mut figures = job(1, 1, 10);
        figures.coverage = percent(89);
        assert_eq!(mode_for(&figures, percent(90)), None);
        let mut figures = job(1, 1, 10);
        figures.memory_peak_mib = Reading::Missing(Gap::NotRecorded);
        assert_eq!(mode_for(&figures, percent(90)), None);
    }
}
