//! What can't be read of a device, and what a missing privilege costs.

use super::snapshot::Device;
use cardhour_domain::{Gap, Reading, Sample};
use std::collections::BTreeMap;

/// What can be missing of a device, and why it is of this one.
pub(super) fn capabilities(device: &Device) -> Vec<(&'static str, Option<Gap>)> {
    let state = &device.state;
    let sample = |pick: fn(&Sample) -> Option<Gap>| device.sample.as_ref().and_then(pick);
    let mut all = vec![("processes", gap(&device.processes)), ("memory", gap(&state.memory_used_bytes))];
    if !device.is_cut {
        all.push(("activity", sample(|sample| gap(&sample.sm_active_pct))));
        all.push(("performance_monitor", gap(&state.gpm.sm_active_pct)));
    }
    if device.is_card() {
        all.extend([
            ("energy_counter", gap(&state.energy_mj_total)),
            ("power", gap(&state.power_mw)),
            ("temperature", gap(&state.temperature_c)),
            ("clocks", gap(&state.sm_clock_mhz)),
            ("nvlink", gap(&state.nvlink_tx_kib_total)),
            ("pcie", gap(&state.pcie_tx_bytes_total)),
            ("ecc", gap(&state.health.ecc.uncorrected_volatile_total)),
            ("events", gap(&state.last_xid)),
        ]);
    }
    all
}

fn gap<T>(reading: &Reading<T>) -> Option<Gap> {
    match reading {
        Reading::Seen(_) => None,
        Reading::Missing(gap) => Some(*gap),
    }
}

/// Capabilities that a missing privilege keeps from the collector, each of which is told once.
#[derive(Debug, Default)]
pub struct Refused {
    told: BTreeMap<&'static str, usize>,
}

impl Refused {
    /// Those that are refused on more devices than when they were last told of, each with the number of devices.
    pub fn news(&mut self, devices: &[Device]) -> Vec<(&'static str, usize)> {
        let mut refused: BTreeMap<&'static str, usize> = BTreeMap::new();
        for device in devices.iter().filter(|device| device.silence().is_none()) {
            for (capability, gap) in capabilities(device) {
                *refused.entry(capability).or_default() += usize::from(gap == Some(Gap::NoPermission));
            }
        }
        let is_news =
            |(capability, count): &(&'static str, usize)| *count > self.told.get(capability).copied().unwrap_or(0);
        let news: Vec<_> = refused.into_iter().filter(is_news).collect();
        self.told.extend(news.iter().copied());
        news
    }
}

/// What a capability needs, and what is missing without it.
pub fn needs(capability: &str) -> &'static str {
    match capability {
        "performance_monitor" => {
            "needs CAP_SYS_ADMIN, or NVreg_RestrictProfilingToAdminUsers=0 for the driver; without it use is read from the duty cycle, and of instances not at all"
        }
        "activity" => "no use of these devices can be read; an instance's comes from the performance monitor alone",
        "processes" => {
            "needs CAP_SYS_ADMIN where a card is cut; without it nobody can tell who is on these devices by their processes"
        }
        _ => "needs a right that the collector lacks: deploy/README.md has them",
    }
}
