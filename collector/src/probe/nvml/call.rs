//! The calls that are made into the driver, and what is known of each on a device.

use super::fault::{Class, Fault, code};
use crate::probe::Heartbeat;
use cardhour_domain::{Gap, Reading};
use std::sync::Arc;

/// A call, as capabilities, the heartbeat and log lines name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is what its name says")]
pub enum Call {
    Init,
    DriverVersion,
    DeviceCount,
    DeviceHandle,
    Identity,
    MigMode,
    MigHandle,
    MigIdentity,
    ProfileInfo,
    FieldValues,
    Energy,
    Power,
    PowerLimit,
    Temperature,
    Clocks,
    PerformanceState,
    ThrottleReasons,
    Memory,
    UtilizationRates,
    BusyRing,
    MemoryRing,
    ProcessRing,
    Encoder,
    Decoder,
    Jpeg,
    OpticalFlow,
    GpmSupport,
    GpmAlloc,
    GpmSample,
    GpmMetrics,
    ComputeProcesses,
    GraphicsProcesses,
    MpsProcesses,
    Ecc,
    PcieLink,
    NvLinkState,
    NvLinkErrors,
    ActiveVgpus,
    Vgpu,
    EventSet,
    EventWait,
    Shutdown,
}

impl Call {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 42] = [
        Self::Init,
        Self::DriverVersion,
        Self::DeviceCount,
        Self::DeviceHandle,
        Self::Identity,
        Self::MigMode,
        Self::MigHandle,
        Self::MigIdentity,
        Self::ProfileInfo,
        Self::FieldValues,
        Self::Energy,
        Self::Power,
        Self::PowerLimit,
        Self::Temperature,
        Self::Clocks,
        Self::PerformanceState,
        Self::ThrottleReasons,
        Self::Memory,
        Self::UtilizationRates,
        Self::BusyRing,
        Self::MemoryRing,
        Self::ProcessRing,
        Self::Encoder,
        Self::Decoder,
        Self::Jpeg,
        Self::OpticalFlow,
        Self::GpmSupport,
        Self::GpmAlloc,
        Self::GpmSample,
        Self::GpmMetrics,
        Self::ComputeProcesses,
        Self::GraphicsProcesses,
        Self::MpsProcesses,
        Self::Ecc,
        Self::PcieLink,
        Self::NvLinkState,
        Self::NvLinkErrors,
        Self::ActiveVgpus,
        Self::Vgpu,
        Self::EventSet,
        Self::EventWait,
        Self::Shutdown,
    ];

    /// NVML's name of it, for people who look for it in its manual.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Init => "nvmlInit",
            Self::DriverVersion => "nvmlSystemGetDriverVersion",
            Self::DeviceCount => "nvmlDeviceGetCount",
            Self::DeviceHandle => "nvmlDeviceGetHandle",
            Self::Identity => "nvmlDeviceGetUUID",
            Self::MigMode => "nvmlDeviceGetMigMode",
            Self::MigHandle => "nvmlDeviceGetMigDeviceHandleByIndex",
            Self::MigIdentity => "nvmlDeviceGetGpuInstanceId",
            Self::ProfileInfo => "nvmlDeviceGetGpuInstanceProfileInfo",
            Self::FieldValues | Self::NvLinkErrors => "nvmlDeviceGetFieldValues",
            Self::Energy => "nvmlDeviceGetTotalEnergyConsumption",
            Self::Power => "nvmlDeviceGetPowerUsage",
            Self::PowerLimit => "nvmlDeviceGetEnforcedPowerLimit",
            Self::Temperature => "nvmlDeviceGetTemperature",
            Self::Clocks => "nvmlDeviceGetClockInfo",
            Self::PerformanceState => "nvmlDeviceGetPerformanceState",
            Self::ThrottleReasons => "nvmlDeviceGetCurrentClocksEventReasons",
            Self::Memory => "nvmlDeviceGetMemoryInfo",
            Self::UtilizationRates => "nvmlDeviceGetUtilizationRates",
            Self::BusyRing | Self::MemoryRing => "nvmlDeviceGetSamples",
            Self::ProcessRing => "nvmlDeviceGetProcessUtilization",
            Self::Encoder => "nvmlDeviceGetEncoderUtilization",
            Self::Decoder => "nvmlDeviceGetDecoderUtilization",
            Self::Jpeg => "nvmlDeviceGetJpgUtilization",
            Self::OpticalFlow => "nvmlDeviceGetOfaUtilization",
            Self::GpmSupport => "nvmlGpmQueryDeviceSupport",
            Self::GpmAlloc => "nvmlGpmSampleAlloc",
            Self::GpmSample => "nvmlGpmSampleGet",
            Self::GpmMetrics => "nvmlGpmMetricsGet",
            Self::ComputeProcesses => "nvmlDeviceGetComputeRunningProcesses",
            Self::GraphicsProcesses => "nvmlDeviceGetGraphicsRunningProcesses",
            Self::MpsProcesses => "nvmlDeviceGetMPSComputeRunningProcesses",
            Self::Ecc => "nvmlDeviceGetTotalEccErrors",
            Self::PcieLink => "nvmlDeviceGetCurrPcieLinkWidth",
            Self::NvLinkState => "nvmlDeviceGetNvLinkState",
            Self::ActiveVgpus => "nvmlDeviceGetActiveVgpus",
            Self::Vgpu => "nvmlVgpuInstanceGetVmID",
            Self::EventSet => "nvmlEventSetCreate",
            Self::EventWait => "nvmlEventSetWait",
            Self::Shutdown => "nvmlShutdown",
        }
    }
}

/// So many faults without a name in a row, and the device counts as lost.
const UNKNOWNS_IN_A_ROW: u8 = 3;

/// Makes the calls on one device, and remembers what it can't.
#[derive(Debug)]
pub struct Line {
    heartbeat: Arc<Heartbeat>,
    name: Arc<str>,
    known: [Known; Call::ALL.len()],
    unknowns: u8,
    lost: Option<(Call, Fault)>,
    library: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Works,
    Off(Gap),
}

impl Line {
    /// To a device nothing is known of yet. `name`: what the heartbeat says a hung call was on.
    pub fn new(heartbeat: Arc<Heartbeat>, name: &str) -> Self {
        Self {
            heartbeat,
            name: name.into(),
            known: [Known::Nothing; Call::ALL.len()],
            unknowns: 0,
            lost: None,
            library: None,
        }
    }

    /// Makes a call, unless the device is lost or hasn't got it.
    pub fn call<T>(&mut self, call: Call, make: impl FnOnce() -> Result<T, Fault>) -> Reading<T> {
        if let Known::Off(gap) = self.known[call as usize] {
            return Reading::Missing(gap);
        }
        self.try_call(call, make).map_or_else(Reading::Missing, Reading::Seen)
    }

    /// Makes a call of which one part may be missing while another is there: nothing is turned off, only lost devices are noticed.
    pub fn call_part<T>(&mut self, call: Call, make: impl FnOnce() -> Result<T, Fault>) -> Reading<T> {
        let before = self.known[call as usize];
        let answer = self.call(call, make);
        if !matches!(before, Known::Off(_)) && matches!(self.known[call as usize], Known::Off(_)) {
            self.known[call as usize] = before;
        }
        answer
    }

    fn try_call<T>(&mut self, call: Call, make: impl FnOnce() -> Result<T, Fault>) -> Result<T, Gap> {
        if self.lost.is_some() {
            return Err(Gap::CardLost);
        }
        if self.library.is_some() {
            return Err(Gap::DriverError);
        }
        self.heartbeat.enter(call, &self.name);
        let answer = make();
        self.heartbeat.leave();
        let known = &mut self.known[call as usize];
        let fault = match answer {
            Ok(value) => {
                self.unknowns = 0;
                *known = Known::Works;
                return Ok(value);
            }
            Err(fault) => fault,
        };
        match fault.class(*known == Known::Works) {
            Class::Benign => {
                tracing::debug!(device = %self.name, call = call.name(), %fault, "not available");
                *known = Known::Off(fault.gap());
            }
            Class::Retry => {
                tracing::debug!(device = %self.name, call = call.name(), %fault, "call failed");
                if fault == Fault::Code(code::UNKNOWN) {
                    self.unknowns += 1;
                    if self.unknowns >= UNKNOWNS_IN_A_ROW {
                        self.lost = Some((call, fault));
                    }
                }
            }
            Class::Device => self.lost = Some((call, fault)),
            Class::Library => self.library = Some(fault),
        }
        Err(fault.gap())
    }

    /// Which call found the device lost, and how.
    pub fn lost(&self) -> Option<(Call, Fault)> {
        self.lost
    }

    /// Marks the device as lost by what something else saw; no call is made on it any more.
    pub fn lose(&mut self, call: Call, fault: Fault) {
        self.lost.get_or_insert((call, fault));
    }

    /// What made the whole library useless.
    pub fn library_fault(&self) -> Option<Fault> {
        self.library
    }

    /// Whether this call has been found to be missing on this device.
    pub fn is_off(&self, call: Call) -> bool {
        self.off(call).is_some()
    }

    /// Why this call isn't made on this device any more.
    pub fn off(&self, call: Call) -> Option<Gap> {
        match self.known[call as usize] {
            Known::Off(gap) => Some(gap),
            Known::Nothing | Known::Works => None,
        }
    }

    /// Forgets what the device can't: it was cut anew, and that changes what it has.
    pub fn forget(&mut self) {
        self.known = [Known::Nothing; Call::ALL.len()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn line() -> Line {
        Line::new(Arc::default(), "GPU-1")
    }

    #[test]
    fn calls_are_numbered_in_order() {
        assert!(Call::ALL.iter().enumerate().all(|(i, call)| *call as usize == i));
    }

    #[test]
    fn what_a_device_has_not_is_asked_once() {
        let (mut line, asked) = (line(), Cell::new(0));
        let mut ask = || {
            line.call(Call::Memory, || {
                asked.set(asked.get() + 1);
                Err::<(), _>(Fault::Code(code::NOT_SUPPORTED))
            })
        };
        assert_eq!([ask(), ask(), ask()], [Reading::Missing(Gap::NotSupported); 3]);
        assert_eq!(asked.get(), 1);
        assert_eq!(line.lost(), None);
    }

    #[test]
    fn a_lost_card_is_left_alone() {
        let mut line = line();
        let lost = line.call(Call::Power, || Err::<u32, _>(Fault::Code(code::GPU_IS_LOST)));
        assert_eq!(lost, Reading::Missing(Gap::CardLost));
        assert_eq!(
            line.call(Call::Energy, || -> Result<u64, Fault> { panic!("no call reaches it") }),
            Reading::Missing(Gap::CardLost)
        );
    }

    #[test]
    fn three_nameless_faults_in_a_row_are_a_lost_card_and_two_are_not() {
        let mut line = line();
        let fail = |line: &mut Line| line.call(Call::Power, || Err::<u32, _>(Fault::Code(code::UNKNOWN)));
        fail(&mut line);
        fail(&mut line);
        line.call(Call::Clocks, || Ok(1));
        fail(&mut line);
        fail(&mut line);
        assert_eq!(line.lost(), None);
        fail(&mut line);
        assert_eq!(line.lost(), Some((Call::Power, Fault::Code(code::UNKNOWN))));
    }
}
