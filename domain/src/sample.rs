//! What a card said over one tick: a row of the table `samples`.

use crate::{AttemptKey, Interval, Millijoules, Milliwatts, Name, Reading};
use rust_decimal::Decimal;
use std::fmt;

/// What one card, or one MIG instance of it, said over one tick.
///
/// Shape: one row a device and tick. Rates are averages over the tick, counters what they grew by in it. A value is read or missing with its
/// reason (LED-3): nothing here has a default of zero. Source: design §5, table `samples`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sample {
    /// The time it really covers, which is the tick unless the node was late. Columns `ts` (its start) and `interval_ms`.
    pub during: Interval,
    /// The physical card's UUID, never its index.
    pub card_uuid: Name,
    /// The MIG instance's UUID; the card's own where it is not cut.
    pub device_uuid: Name,
    /// The node it was read on.
    pub node: Name,
    /// Whom the node saw holding the device, by [`crate::Holder::key`]; none when nobody did, or several. The books' own answer is in `usage`.
    pub attempt_key: Option<AttemptKey>,
    /// How busy the multiprocessors were.
    pub sm_active_pct: Reading<Percent>,
    /// What `sm_active_pct` was read from.
    pub use_basis: UseBasis,
    /// How busy the memory's bandwidth was.
    pub mem_active_pct: Reading<Percent>,
    /// The busiest of the encoder, decoder, JPEG and optical-flow engines.
    pub media_active_pct: Reading<Percent>,
    /// Memory in use at the end of the tick, without what the driver keeps for itself. Unit: bytes.
    pub mem_used_bytes: Reading<i64>,
    /// Moved over NVLink, both ways. Unit: bytes.
    pub nvlink_bytes: Reading<i64>,
    /// Moved over PCIe, both ways. Unit: bytes.
    pub pcie_bytes: Reading<i64>,
    /// Mean power of the card. A slice has no sensor of its own: there it is missing, and the card has a row beside its slices'.
    pub power_mw: Reading<Milliwatts>,
    /// Energy of the card, missing for a slice as power is: so energies of rows add up to the node's.
    pub energy_mj: Reading<Millijoules>,
    /// What `energy_mj` was read from.
    pub energy_basis: EnergyBasis,
    /// The card's temperature at the end of the tick. Unit: degrees Celsius.
    pub temperature_c: Reading<i64>,
    /// Who read it.
    pub source: SampleSource,
}

impl Sample {
    /// Whether anything in it tells how much the device was used: what `use_coverage` counts.
    pub fn tells_use(&self) -> bool {
        self.sm_active_pct.seen().is_some()
    }

    /// Whether it tells how much was drawn and nothing else, as of a time in which no collector ran.
    pub fn tells_energy_alone(&self) -> bool {
        let parts = [self.sm_active_pct, self.mem_active_pct, self.media_active_pct];
        let amounts = [self.mem_used_bytes, self.nvlink_bytes, self.pcie_bytes];
        let is_alone = parts.iter().all(|part| part.seen().is_none()) && amounts.iter().all(|one| one.seen().is_none());
        // A value that was judged to be wrong is told, too.
        let is_doubted = parts.contains(&Reading::Missing(crate::Gap::Implausible));
        self.energy_mj.seen().is_some() && is_alone && !is_doubted && self.power_mw.seen().is_none()
    }

    /// Which of two samples of one device and one stretch counts; the other is kept as shadowed (design §4.4).
    ///
    /// One that tells more than energy, then the better source, then the one that tells use, then the longer stretch.
    pub fn outranks(&self, other: &Self) -> bool {
        let rank =
            |s: &Self| (!s.tells_energy_alone(), std::cmp::Reverse(s.source), s.tells_use(), s.during.length_ms());
        rank(self) > rank(other)
    }
}

/// What busy time was read from. The two are never compared with each other without saying so (design §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UseBasis {
    /// Activity of the multiprocessors, by the GPU performance monitor of Hopper and newer.
    Gpm,
    /// Part of the time in which any kernel ran, from the driver's ring of samples.
    DutyCycle,
}

impl UseBasis {
    /// Its name in tables and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gpm => "gpm",
            Self::DutyCycle => "duty_cycle",
        }
    }

    /// The basis of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Gpm, Self::DutyCycle].into_iter().find(|basis| basis.name() == name)
    }
}

/// What energy was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EnergyBasis {
    /// The card's own counter.
    Counter,
    /// Power, integrated: an estimate, for cards without a counter.
    Power,
}

impl EnergyBasis {
    /// Its name in tables and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Power => "power",
        }
    }

    /// The basis of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Counter, Self::Power].into_iter().find(|basis| basis.name() == name)
    }
}

/// Who read a sample, the most trusted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleSource {
    /// Our own collector.
    Collector,
    /// NVIDIA's DCGM and its exporter.
    Dcgm,
    /// The output of `nvidia-smi`.
    NvidiaSmi,
}

impl SampleSource {
    /// Its name in tables and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Collector => "collector",
            Self::Dcgm => "dcgm",
            Self::NvidiaSmi => "nvidia_smi",
        }
    }

    /// The source of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Collector, Self::Dcgm, Self::NvidiaSmi].into_iter().find(|source| source.name() == name)
    }
}

/// A part of a whole, exact to a thousandth of a percent, since it is weighed and summed (LED-10). From 0 to 100 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(i32);

impl Percent {
    /// 100 %.
    pub const WHOLE: Self = Self(100_000);

    /// Beside a duty cycle of this or more, a performance monitor that says 0 has stopped counting: it does after some errors, and kernels that run half
    /// of the time leave a trace in it.
    pub const REFUTES_NO_ACTIVITY: Self = Self(50_000);

    /// From thousandths of a percent. None below 0 and above 100 %: a driver's garbage is a gap, not a reading.
    pub fn from_thousandths(thousandths: i32) -> Option<Self> {
        (0..=Self::WHOLE.0).contains(&thousandths).then_some(Self(thousandths))
    }

    /// From a driver's float, to the nearest thousandth, half to even. None for NaN and what lies outside of 0 to 100.
    pub fn from_f64(percent: f64) -> Option<Self> {
        let thousandths = (percent * 1000.0).round_ties_even();
        // In range, so that the cast keeps it; NaN is in no range.
        (0.0..=100_000.0).contains(&thousandths).then_some(Self(thousandths as i32))
    }

    /// Unit: thousandths of a percent, 0 to 100,000.
    pub const fn thousandths(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Decimal::new(i64::from(self.0), 3).normalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gap, Timestamp};
    use proptest::prelude::*;

    fn sample(source: SampleSource, sm_active_pct: Reading<Percent>, length_ms: i64) -> Sample {
        let missing = Gap::NotRecorded;
        Sample {
            during: Interval::new(Timestamp::from_unix_ms(0), Timestamp::from_unix_ms(length_ms)).unwrap(),
            card_uuid: "GPU-1".into(),
            device_uuid: "GPU-1".into(),
            node: "n1".into(),
            attempt_key: None,
            sm_active_pct,
            use_basis: UseBasis::DutyCycle,
            mem_active_pct: Reading::Missing(missing),
            media_active_pct: Reading::Missing(missing),
            mem_used_bytes: Reading::Missing(missing),
            nvlink_bytes: Reading::Missing(missing),
            pcie_bytes: Reading::Missing(missing),
            power_mw: Reading::Missing(missing),
            energy_mj: Reading::Missing(missing),
            energy_basis: EnergyBasis::Counter,
            temperature_c: Reading::Missing(missing),
            source,
        }
    }

    #[test]
    fn a_better_source_counts_even_where_it_saw_less() {
        let busy = Reading::Seen(Percent::WHOLE);
        let gap = Reading::Missing(Gap::DriverError);
        let [ours, dcgm] = [sample(SampleSource::Collector, gap, 1000), sample(SampleSource::Dcgm, busy, 5000)];
        assert!(ours.outranks(&dcgm) && !dcgm.outranks(&ours));
        let [told, untold] = [sample(SampleSource::Dcgm, busy, 10), sample(SampleSource::Dcgm, gap, 5000)];
        assert!(told.outranks(&untold) && !untold.outranks(&told));
        assert!(!told.outranks(&told));
    }

    #[test]
    fn energy_of_a_time_without_a_collector_hides_nobody_who_was_there() {
        let energy_mj = Reading::Seen(crate::Millijoules(5));
        let ours = Sample { energy_mj, ..sample(SampleSource::Collector, Reading::Missing(Gap::CollectorDown), 5000) };
        let dcgm = sample(SampleSource::Dcgm, Reading::Seen(Percent::WHOLE), 1000);
        assert!(dcgm.outranks(&ours) && !ours.outranks(&dcgm));
        let drawing = Sample { power_mw: Reading::Seen(crate::Milliwatts(1)), ..ours };
        assert!(drawing.outranks(&dcgm), "it was there and read the power");
    }

    #[test]
    fn what_no_card_can_say_is_no_reading() {
        for garbage in [f64::NAN, f64::INFINITY, -0.001, 100.001, 4_294_967_295.0] {
            assert_eq!(Percent::from_f64(garbage), None, "{garbage}");
        }
        assert_eq!(Percent::from_f64(-0.0), Percent::from_thousandths(0));
        assert_eq!(Percent::from_thousandths(100_001), None);
        // 12.3455 % lies between two thousandths of a percent and goes to the even one: 12.346 (by hand).
        assert_eq!(Percent::from_f64(12.3455).map(|p| p.to_string()).as_deref(), Some("12.346"));
        assert_eq!(Percent::WHOLE.to_string(), "100");
    }

    proptest! {
        #[test]
        fn a_percent_keeps_its_thousandths(thousandths in 0i32..=100_000) {
            let percent = Percent::from_thousandths(thousandths).unwrap();
            prop_assert_eq!(Percent::from_f64(f64::from(thousandths) / 1000.0), Some(percent));
            prop_assert_eq!(percent.to_string().parse::<Decimal>().unwrap(), Decimal::new(i64::from(thousandths), 3));
        }
    }
}
