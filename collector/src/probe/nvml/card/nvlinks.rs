//! The links of a card to other cards: how many work, and what went wrong on them.

use super::health::as_gone;
use super::values::count;
use super::{Card, Tools};
use crate::probe::NvLinksState;
use crate::probe::nvml::call::Call;
use crate::probe::nvml::raw::Field;
use cardhour_domain::{Gap, Reading};

/// The most that a card has, for drivers that don't count them. Source: `NVML_NVLINK_MAX_LINKS`.
const MOST_LINKS: u32 = 18;

/// Sums over all links: checksums of flow control and of data, replays, recoveries, data that was wrong. Source: `NVML_FI_DEV_NVLINK_*_TOTAL`.
const SUMS: [Field; 5] =
    [Field::of_device(38), Field::of_device(45), Field::of_device(52), Field::of_device(59), Field::of_device(160)];

/// What each link counts from Hopper on: replays, recoveries, checksums. Source: `NVML_FI_DEV_NVLINK_ERROR_DL_*`.
const OF_LINK: [u32; 3] = [161, 162, 163];

/// So many links in one call: it takes 32 fields.
const LINKS_A_CALL: u32 = 9;

impl<'nvml> Card<'nvml> {
    /// Which of its links work: a call for each, and none more on a card without any. `counted`: how many the driver says that there are.
    pub(super) fn read_link_states(&mut self, counted: Reading<u64>, state: &mut NvLinksState) {
        let links = counted.seen().and_then(|links| u32::try_from(links).ok()).unwrap_or(MOST_LINKS).min(MOST_LINKS);
        let (mut up, mut down) = (0, 0);
        for link in 0..links {
            let device = &self.device;
            let ask = || as_gone(device.link_wrapper_for(link).is_active().map_err(Into::into));
            // A card without the first has none at all; of the others one may be missing.
            let answer = match link {
                0 => self.line.call(Call::NvLinkState, ask),
                _ => self.line.call_part(Call::NvLinkState, ask),
            };
            match answer {
                Reading::Seen(true) => up += 1,
                Reading::Seen(false) => down += 1,
                Reading::Missing(Gap::NotSupported) if link > 0 => {}
                Reading::Missing(gap) => {
                    (state.up, state.down) = (Reading::Missing(gap), Reading::Missing(gap));
                    return;
                }
            }
        }
        if links > 0 {
            (state.up, state.down) = (Reading::Seen(up), Reading::Seen(down));
        }
    }

    /// What went wrong on its links, of all together; nothing is asked where there are none.
    pub(super) fn read_link_errors(&mut self, tools: &mut Tools<'nvml>, state: &mut NvLinksState) {
        let (Reading::Seen(up), Reading::Seen(down)) = (state.up, state.down) else { return };
        if !self.line.is_off(Call::NvLinkErrors) {
            let (handle, raw, fields) = (self.handle, tools.raw, &mut tools.fields);
            let got = self.line.call_part(Call::NvLinkErrors, || raw.field_values(handle, &SUMS, fields));
            let sum = |i: usize| count(got, fields, i);
            state.crc_flit_errors_total = sum(0);
            state.crc_data_errors_total = sum(1);
            (state.replays_total, state.recoveries_total) = (sum(2), sum(3));
            state.ecc_data_errors_total = sum(4);
        }
        if state.replays_total == Reading::Missing(Gap::NotSupported) {
            self.sum_link_errors(tools, up + down, state);
        }
    }

    fn sum_link_errors(&mut self, tools: &mut Tools<'nvml>, links: u32, state: &mut NvLinksState) {
        let mut sums = [Reading::Seen(0_u64); OF_LINK.len()];
        for first in (0..links).step_by(LINKS_A_CALL as usize) {
            let fields: Vec<Field> = (first..links.min(first + LINKS_A_CALL))
                .flat_map(|link| OF_LINK.map(|id| Field { id, scope: link }))
                .collect();
            let (handle, raw) = (self.handle, tools.raw);
            let got = self.line.call_part(Call::NvLinkErrors, || raw.field_values(handle, &fields, &mut tools.fields));
            for i in 0..fields.len() {
                let sum = &mut sums[i % OF_LINK.len()];
                *sum = match (*sum, count(got, &tools.fields, i)) {
                    (Reading::Seen(sum), Reading::Seen(errors)) => Reading::Seen(sum.saturating_add(errors)),
                    (Reading::Missing(gap), _) | (_, Reading::Missing(gap)) => Reading::Missing(gap),
                };
            }
        }
        [state.replays_total, state.recoveries_total, state.crc_errors_total] = sums;
    }
}
