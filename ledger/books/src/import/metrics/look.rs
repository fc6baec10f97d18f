//! What a source said of one device at one instant, before it is known for how long that holds.

use cardhour_domain::{
    CardShare, Gap, Holder, HolderSource, Milliwatts, Name, Owner, Percent, Reading, SampleSource, Timestamp,
};

/// A card, or an instance of one, on its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    /// The node.
    pub node: Name,
    /// The physical card's UUID.
    pub card_uuid: Name,
    /// The instance's id; the card's own for the card itself.
    pub device_uuid: Name,
}

impl Device {
    /// A card that is not cut, or the card itself beside its instances.
    pub fn card(node: Name, card_uuid: Name) -> Self {
        Self { node, device_uuid: card_uuid.clone(), card_uuid }
    }

    /// A GPU instance whose own UUID the source doesn't give: `MIG-GPU-…/gi/ci`, as drivers before R470 wrote it.
    pub fn instance(&self, gpu_instance: &str, compute_instance: &str) -> Self {
        let device_uuid = format!("MIG-{}/{gpu_instance}/{compute_instance}", self.card_uuid).into();
        Self { device_uuid, ..self.clone() }
    }

    /// The card that it is, or is an instance of.
    pub fn of_card(&self) -> Self {
        Self::card(self.node.clone(), self.card_uuid.clone())
    }

    /// Whether it is the card itself.
    pub fn is_card(&self) -> bool {
        self.card_uuid == self.device_uuid
    }
}

/// What a source said of one device at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// When.
    pub at: Timestamp,
    /// Of what.
    pub device: Device,
    /// What kind of source.
    pub source: SampleSource,
    /// Which reader, where several tell of one device: replicas of a Prometheus (K23). Empty where there is only one.
    pub reader: Name,
    /// What it said.
    pub signals: Signals,
    /// Whether rates are of the instant or means over the time before it.
    pub told: Told,
}

/// What a rate was taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Told {
    /// The driver's last sampling period, at most a second.
    Instant,
    /// All of the time since the instant before.
    Mean,
}

/// The values, each read or missing with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signals {
    /// Activity of the multiprocessors.
    pub sm_active_pct: Reading<Percent>,
    /// Activity of the graphics and compute engine.
    pub engine_active_pct: Reading<Percent>,
    /// Part of the time in which any kernel ran.
    pub duty_cycle_pct: Reading<Percent>,
    /// Activity of the memory's bandwidth.
    pub mem_active_pct: Reading<Percent>,
    /// Part of the time in which memory was read or written, beside its activity.
    pub mem_duty_pct: Reading<Percent>,
    /// The busiest of encoder, decoder, JPEG and optical flow.
    pub media_active_pct: Reading<Percent>,
    /// Memory in use. Unit: bytes.
    pub mem_used_bytes: Reading<i64>,
    /// Unit: bytes a second.
    pub pcie_sent: Reading<i64>,
    /// Unit: bytes a second.
    pub pcie_received: Reading<i64>,
    /// Unit: bytes a second.
    pub nvlink_sent: Reading<i64>,
    /// Unit: bytes a second.
    pub nvlink_received: Reading<i64>,
    /// Power of the card.
    pub power_mw: Reading<Milliwatts>,
    /// The most it may draw.
    pub power_limit_mw: Reading<Milliwatts>,
    /// The card's counter of energy. Unit: millijoules since some moment.
    pub energy_counter_mj: Reading<i64>,
    /// Energy since the instant before, of sources that have no counter but its differences. Unit: millijoules.
    pub energy_mj: Reading<i64>,
    /// Unit: degrees Celsius.
    pub temperature_c: Reading<i64>,
    /// Processes on the device.
    pub processes: Reading<i64>,
}

impl Default for Signals {
    /// Nothing was recorded.
    fn default() -> Self {
        const NONE: Gap = Gap::NotRecorded;
        Self {
            sm_active_pct: Reading::Missing(NONE),
            engine_active_pct: Reading::Missing(NONE),
            duty_cycle_pct: Reading::Missing(NONE),
            mem_active_pct: Reading::Missing(NONE),
            mem_duty_pct: Reading::Missing(NONE),
            media_active_pct: Reading::Missing(NONE),
            mem_used_bytes: Reading::Missing(NONE),
            pcie_sent: Reading::Missing(NONE),
            pcie_received: Reading::Missing(NONE),
            nvlink_sent: Reading::Missing(NONE),
            nvlink_received: Reading::Missing(NONE),
            power_mw: Reading::Missing(NONE),
            power_limit_mw: Reading::Missing(NONE),
            energy_counter_mj: Reading::Missing(NONE),
            energy_mj: Reading::Missing(NONE),
            temperature_c: Reading::Missing(NONE),
            processes: Reading::Missing(NONE),
        }
    }
}

impl Signals {
    /// The same fields, all of them missing: what a source that has them lacks where it was silent.
    pub fn lacking(&self) -> Self {
        fn lacking<T>(reading: Reading<T>) -> Reading<T> {
            Reading::Missing(match reading {
                Reading::Missing(Gap::NotRecorded) => Gap::NotRecorded,
                _ => Gap::CollectorDown,
            })
        }
        Self {
            sm_active_pct: lacking(self.sm_active_pct),
            engine_active_pct: lacking(self.engine_active_pct),
            duty_cycle_pct: lacking(self.duty_cycle_pct),
            mem_active_pct: lacking(self.mem_active_pct),
            mem_duty_pct: lacking(self.mem_duty_pct),
            media_active_pct: lacking(self.media_active_pct),
            mem_used_bytes: lacking(self.mem_used_bytes),
            pcie_sent: lacking(self.pcie_sent),
            pcie_received: lacking(self.pcie_received),
            nvlink_sent: lacking(self.nvlink_sent),
            nvlink_received: lacking(self.nvlink_received),
            power_mw: lacking(self.power_mw),
            power_limit_mw: lacking(self.power_limit_mw),
            energy_counter_mj: lacking(self.energy_counter_mj),
            energy_mj: lacking(self.energy_mj),
            temperature_c: lacking(self.temperature_c),
            processes: lacking(self.processes),
        }
    }

    /// Takes from `other` what is missing here.
    ///
    /// Of two reasons that of a source that has the field stands.
    pub fn fill(&mut self, other: &Self) {
        self.join(other, |mine, _| *mine);
    }

    /// The same as of two rows of one reader for one instant: of two values the greater, whichever row came first.
    pub fn merge(&mut self, other: &Self) {
        self.join(other, |mine, other| *mine.max(other));
    }

    fn join(&mut self, other: &Self, both: impl Fn(&i64, &i64) -> i64) {
        let percent = |mine: &mut Reading<Percent>, other: &Reading<Percent>| {
            let number = |reading: &Reading<Percent>| reading.map(|percent| i64::from(percent.thousandths()));
            *mine = match (number(mine), number(other)) {
                (Reading::Seen(a), Reading::Seen(b)) if both(&a, &b) == a => *mine,
                (Reading::Seen(_), Reading::Missing(_)) => *mine,
                (Reading::Missing(a), Reading::Missing(b)) => Reading::Missing(stronger(a, b)),
                _ => *other,
            };
        };
        percent(&mut self.sm_active_pct, &other.sm_active_pct);
        percent(&mut self.engine_active_pct, &other.engine_active_pct);
        percent(&mut self.duty_cycle_pct, &other.duty_cycle_pct);
        percent(&mut self.mem_active_pct, &other.mem_active_pct);
        percent(&mut self.mem_duty_pct, &other.mem_duty_pct);
        percent(&mut self.media_active_pct, &other.media_active_pct);
        let number = |mine: &mut Reading<i64>, other: &Reading<i64>| {
            *mine = match (*mine, *other) {
                (Reading::Seen(a), Reading::Seen(b)) => Reading::Seen(both(&a, &b)),
                (Reading::Seen(a), Reading::Missing(_)) | (Reading::Missing(_), Reading::Seen(a)) => Reading::Seen(a),
                (Reading::Missing(a), Reading::Missing(b)) => Reading::Missing(stronger(a, b)),
            };
        };
        number(&mut self.mem_used_bytes, &other.mem_used_bytes);
        number(&mut self.pcie_sent, &other.pcie_sent);
        number(&mut self.pcie_received, &other.pcie_received);
        number(&mut self.nvlink_sent, &other.nvlink_sent);
        number(&mut self.nvlink_received, &other.nvlink_received);
        number(&mut self.energy_counter_mj, &other.energy_counter_mj);
        number(&mut self.energy_mj, &other.energy_mj);
        number(&mut self.temperature_c, &other.temperature_c);
        number(&mut self.processes, &other.processes);
        let power = |mine: &mut Reading<Milliwatts>, other: &Reading<Milliwatts>| {
            let mut joined = mine.map(|mw| mw.0);
            number(&mut joined, &other.map(|mw| mw.0));
            *mine = joined.map(Milliwatts);
        };
        power(&mut self.power_mw, &other.power_mw);
        power(&mut self.power_limit_mw, &other.power_limit_mw);
    }
}

/// Of two reasons the one that says most: first those of the driver, then that nobody read it, then that there is no such field. Of two of
/// the driver's the one later in the list of gaps, so that order doesn't matter.
fn stronger(a: Gap, b: Gap) -> Gap {
    match (a, b) {
        (Gap::NotRecorded, other) | (other, Gap::NotRecorded) => other,
        (Gap::CollectorDown, other) | (other, Gap::CollectorDown) => other,
        _ => a.max(b),
    }
}

/// The busiest of several engines: what is seen of them; missing only where all are.
pub fn busiest(engines: &[Reading<Percent>]) -> Reading<Percent> {
    let seen = engines.iter().filter_map(|engine| engine.seen()).max();
    let gaps = engines.iter().filter_map(|engine| match engine {
        Reading::Missing(gap) => Some(*gap),
        Reading::Seen(_) => None,
    });
    seen.map_or_else(|| Reading::Missing(gaps.fold(Gap::NotRecorded, stronger)), Reading::Seen)
}

/// The run of a holder of whom a label is all that is known: a name that was used twice is one run.
pub const RUN_BY_LABEL: &str = "label";

/// A source named a holder of a device at an instant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sighting {
    /// Of what.
    pub device: Device,
    /// Whom.
    pub holder: Holder,
    /// When.
    pub at: Timestamp,
    /// What told of it.
    pub source: HolderSource,
    /// The instance's profile.
    pub mig_profile: Option<Name>,
    /// Its declared share of the card.
    pub share: Option<CardShare>,
    /// Who pays.
    pub owner: Owner,
}
