//! Calls that the wrapper lacks or gets wrong, made on the driver's library directly.
//!
//! The only file with `unsafe`. Every pointer handed to the library is to a value or buffer that outlives the call, and every count beside a
//! buffer is its length. Handles borrow the [`Nvml`] they came from: dropping that unmaps the library, so none outlives it. Sizes of structures
//! are asserted at compile time against those of the driver's header.

#![allow(unsafe_code, reason = "the driver's library is C; this is the one place that calls it without the wrapper")]

use super::fault::{Fault, code};
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlEventData_t, nvmlEventSet_t, nvmlFieldValue_t, nvmlGpmMetricsGet_t, nvmlGpmSample_t,
    nvmlMemory_t, nvmlMemory_v2_t, nvmlProcessInfo_t, nvmlProcessUtilizationSample_t, nvmlReturn_t, nvmlSample_t,
    nvmlTemperature_t, nvmlValue_t, nvmlVgpuInstance_t,
};
use std::marker::PhantomData;
use std::mem::{size_of, zeroed};
use std::ptr::null_mut;

const _: () = assert!(
    size_of::<nvmlFieldValue_t>() == 40 && size_of::<nvmlProcessInfo_t>() == 24 && size_of::<nvmlMemory_v2_t>() == 40
);
const _: () = assert!(size_of::<nvmlSample_t>() == 16 && size_of::<nvmlProcessUtilizationSample_t>() == 32);
const _: () = assert!(size_of::<nvmlEventData_t>() == 32 && size_of::<nvmlGpmMetricsGet_t>() == 8424);

/// The id of an instance that isn't one.
const NO_INSTANCE: u32 = u32::MAX;

/// A device as the library names it, while that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle<'nvml> {
    device: nvmlDevice_t,
    library: PhantomData<&'nvml Nvml>,
}

impl<'nvml> Handle<'nvml> {
    /// That of a card or MIG device.
    pub fn of(device: &Device<'nvml>) -> Self {
        // SAFETY: the pointer is only ever given back to the library it came from, which the lifetime keeps loaded.
        Self { device: unsafe { device.handle() }, library: PhantomData }
    }
}

/// The library, for calls past the wrapper.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'nvml> {
    nvml: &'nvml Nvml,
}

/// A field to ask for, by its id before driver 580.82, and what part of the device it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Source: `NVML_FI_*` in nvml.h of CUDA 12.
    pub id: u32,
    /// 0, or a link's number, or [`Field::ALL_LINKS`].
    pub scope: u32,
}

impl Field {
    /// The sum over all NVLinks.
    pub const ALL_LINKS: u32 = u32::MAX;

    /// Of the whole device.
    pub const fn of_device(id: u32) -> Self {
        Self { id, scope: 0 }
    }

    /// Its id as the running driver numbers it: 251 to 273 were renumbered in 580.82.
    fn id_for(self, is_renumbered: bool) -> u32 {
        match self.id {
            251..=255 if is_renumbered => self.id + 18,
            256..=273 if is_renumbered => self.id - 5,
            id => id,
        }
    }
}

/// Temperature of the memory. Early drivers of the 545 line call this integer a float.
pub const MEMORY_TEMPERATURE: u32 = 82;

/// A field's value: some are below zero, none needs a fraction.
pub type FieldValue = Result<i128, Fault>;

/// One process of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedProcess {
    /// As the driver translates it.
    pub pid: u32,
    /// None where the driver can't tell.
    pub memory_bytes: Option<u64>,
    /// None on a card that isn't cut.
    pub gpu_instance: Option<u32>,
    /// None on a card that isn't cut.
    pub compute_instance: Option<u32>,
}

/// Which list of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessList {
    /// With a compute context.
    Compute,
    /// With a graphics context.
    Graphics,
    /// Clients of an MPS server.
    Mps,
}

/// Which ring of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// Time in which a kernel ran.
    Busy = 1,
    /// Time in which memory was read or written.
    Memory = 2,
}

/// What a process did by the driver's ring, since the driver's own stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUse {
    /// In the host's namespace.
    pub pid: u32,
    /// The driver's own clock. Unit: microseconds.
    pub stamp_us: u64,
    /// Unit: percent; garbage above 100 has been seen.
    pub sm_percent: u32,
}

/// Memory of a device. Unit: bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All.
    pub total: u64,
    /// Of nobody.
    pub free: u64,
    /// Of processes; by the older call also what is reserved.
    pub used: u64,
    /// Of the driver; none by the older call.
    pub reserved: Option<u64>,
}

/// Something the driver told of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEvent<'nvml> {
    /// The card.
    pub card: Handle<'nvml>,
    /// What, as bits; the wrapper would lose those it doesn't know.
    pub kind: u64,
    /// The XID, where it is one.
    pub data: u64,
    /// On which GPU instance, where it is on one.
    pub gpu_instance: Option<u32>,
    /// On which compute instance, where it is on one.
    pub compute_instance: Option<u32>,
}

/// A virtual GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawVgpu {
    /// Its own.
    pub uuid: String,
    /// The virtual machine's id, as the hypervisor gives it.
    pub machine: String,
    /// The name of its type.
    pub profile: Option<String>,
    /// The memory it was given.
    pub size_bytes: Result<u64, Fault>,
    /// The memory it uses.
    pub used_bytes: Result<u64, Fault>,
}

/// Buffers that calls fill, kept from tick to tick.
pub struct Buffers {
    processes: Vec<nvmlProcessInfo_t>,
    samples: Vec<nvmlSample_t>,
    uses: Vec<nvmlProcessUtilizationSample_t>,
    metrics: Box<nvmlGpmMetricsGet_t>,
}

impl std::fmt::Debug for Buffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffers").field("processes", &self.processes.len()).finish_non_exhaustive()
    }
}

impl Default for Buffers {
    fn default() -> Self {
        // SAFETY: these are C structures of integers, floats and pointers, for which all bits zero is a value.
        unsafe {
            Self {
                processes: vec![zeroed(); 256],
                samples: vec![zeroed(); 128],
                uses: vec![zeroed(); 128],
                metrics: Box::new(zeroed()),
            }
        }
    }
}

impl<'nvml> Raw<'nvml> {
    /// Of a library that is loaded and initialised.
    pub fn new(nvml: &'nvml Nvml) -> Self {
        Self { nvml }
    }

    /// Fields of a device in one call; each has an answer of its own, in the order asked. Shape: at most 32 fields.
    pub fn field_values(
        &self,
        device: Handle<'nvml>,
        fields: &[Field],
        out: &mut Vec<FieldValue>,
    ) -> Result<(), Fault> {
        let call = symbol(&self.nvml.lib().nvmlDeviceGetFieldValues)?;
        let is_renumbered = self.nvml.field_id_scheme() == nvml_wrapper::FieldIdScheme::V13Update1;
        // SAFETY: all bits zero is a value of this C structure.
        let mut values: [nvmlFieldValue_t; 32] = unsafe { zeroed() };
        let values = &mut values[..fields.len()];
        for (value, field) in values.iter_mut().zip(fields) {
            (value.fieldId, value.scopeId) = (field.id_for(is_renumbered), field.scope);
        }
        // SAFETY: the count is that of `values`, which lives across the call.
        check(unsafe { call(device.device, values.len() as i32, values.as_mut_ptr()) })?;
        out.clear();
        // Matched by place: the id that comes back may be the renumbered one.
        out.extend(values.iter().zip(fields).map(|(value, field)| {
            check(value.nvmlReturn)?;
            let value_type = if field.id == MEMORY_TEMPERATURE { 1 } else { value.valueType };
            integer(value_type, value.value)
        }));
        Ok(())
    }

    /// A list of processes of a whole card, instances and all, in one call; `out` is filled anew.
    pub fn processes(
        &self,
        card: Handle<'nvml>,
        list: ProcessList,
        buffers: &mut Buffers,
        out: &mut Vec<ListedProcess>,
    ) -> Result<(), Fault> {
        let lib = self.nvml.lib();
        // Early drivers of the 535 line wrote entries of 32 bytes through this symbol: past the end of what they were given. They have the
        // first of these functions and lack the second. Source: nvml-wrapper#48, and nvitop's way to tell.
        if lib.nvmlDeviceGetConfComputeMemSizeInfo.is_ok() && lib.nvmlDeviceGetRunningProcessDetailList.is_err() {
            return Err(Fault::Refused);
        }
        let call = match list {
            ProcessList::Compute => symbol(&lib.nvmlDeviceGetComputeRunningProcesses_v3)?,
            ProcessList::Graphics => symbol(&lib.nvmlDeviceGetGraphicsRunningProcesses_v3)?,
            ProcessList::Mps => symbol(&lib.nvmlDeviceGetMPSComputeRunningProcesses_v3)?,
        };
        let count = fill(&mut buffers.processes, |room, count| {
            // SAFETY: `count` holds the length of `room`, and both live across the call.
            unsafe { call(card.device, count, room.as_mut_ptr()) }
        })?;
        out.clear();
        out.extend(buffers.processes[..count].iter().map(|process| ListedProcess {
            pid: process.pid,
            memory_bytes: (process.usedGpuMemory != u64::MAX).then_some(process.usedGpuMemory),
            gpu_instance: instance(process.gpuInstanceId),
            compute_instance: instance(process.computeInstanceId),
        }));
        Ok(())
    }

    /// Entries of a ring newer than `last_stamp_us`, as (stamp, percent) in the driver's order; an empty ring is no fault.
    pub fn ring(
        &self,
        card: Handle<'nvml>,
        ring: Ring,
        last_stamp_us: u64,
        buffers: &mut Buffers,
    ) -> Result<impl Iterator<Item = (u64, u32)>, Fault> {
        let call = symbol(&self.nvml.lib().nvmlDeviceGetSamples)?;
        let mut value_type = 0;
        let filled = fill(&mut buffers.samples, |room, count| {
            // SAFETY: `count` holds the length of `room`; all four live across the call.
            unsafe { call(card.device, ring as u32, last_stamp_us, &raw mut value_type, count, room.as_mut_ptr()) }
        });
        let count = if filled == Err(Fault::Code(code::NOT_FOUND)) { 0 } else { filled? };
        Ok(buffers.samples[..count].iter().map(move |sample| {
            let percent = integer(value_type, sample.sampleValue).ok().and_then(|percent| u32::try_from(percent).ok());
            // What can't be a percentage stays one that can't be.
            (sample.timeStamp, percent.unwrap_or(u32::MAX))
        }))
    }

    /// What processes did since `last_stamp_us`, one entry each; nobody used the card: none.
    pub fn process_use(
        &self,
        card: Handle<'nvml>,
        last_stamp_us: u64,
        buffers: &mut Buffers,
        out: &mut Vec<ProcessUse>,
    ) -> Result<(), Fault> {
        let call = symbol(&self.nvml.lib().nvmlDeviceGetProcessUtilization)?;
        let filled = fill(&mut buffers.uses, |room, count| {
            // SAFETY: `count` holds the length of `room`, and both live across the call.
            unsafe { call(card.device, room.as_mut_ptr(), count, last_stamp_us) }
        });
        let count = if filled == Err(Fault::Code(code::NOT_FOUND)) { 0 } else { filled? };
        out.clear();
        out.extend(buffers.uses[..count].iter().map(|u| ProcessUse {
            pid: u.pid,
            stamp_us: u.timeStamp,
            sm_percent: u.smUtil,
        }));
        Ok(())
    }

    /// Memory, by the newer call or the one before driver 510.
    pub fn memory(&self, device: Handle<'nvml>) -> Result<Memory, Fault> {
        let lib = self.nvml.lib();
        let newer = symbol(&lib.nvmlDeviceGetMemoryInfo_v2).and_then(|call| {
            // SAFETY: all bits zero is a value of this C structure, and it lives across the call.
            let mut memory: nvmlMemory_v2_t = unsafe { zeroed() };
            memory.version = version::<nvmlMemory_v2_t>(2);
            check(unsafe { call(device.device, &raw mut memory) })?;
            Ok(Memory { total: memory.total, free: memory.free, used: memory.used, reserved: Some(memory.reserved) })
        });
        if !matches!(
            newer,
            Err(Fault::NoSymbol | Fault::Code(code::ARGUMENT_VERSION_MISMATCH | code::FUNCTION_NOT_FOUND))
        ) {
            return newer;
        }
        let call = symbol(&lib.nvmlDeviceGetMemoryInfo)?;
        // SAFETY: as above.
        let mut memory: nvmlMemory_t = unsafe { zeroed() };
        check(unsafe { call(device.device, &raw mut memory) })?;
        Ok(Memory { total: memory.total, free: memory.free, used: memory.used, reserved: None })
    }

    /// Temperature of the chip, by the newer call or the one that goes with CUDA 14. Unit: degrees Celsius.
    pub fn temperature_c(&self, card: Handle<'nvml>) -> Result<i64, Fault> {
        let lib = self.nvml.lib();
        let chip = 0;
        let newer = symbol(&lib.nvmlDeviceGetTemperatureV).and_then(|call| {
            let mut asked =
                nvmlTemperature_t { version: version::<nvmlTemperature_t>(1), sensorType: chip, temperature: 0 };
            // SAFETY: `asked` lives across the call and says by its version how long it is.
            check(unsafe { call(card.device, &raw mut asked) })?;
            Ok(i64::from(asked.temperature))
        });
        match newer {
            Err(
                Fault::NoSymbol
                | Fault::Code(code::NOT_SUPPORTED | code::ARGUMENT_VERSION_MISMATCH | code::FUNCTION_NOT_FOUND),
            ) => {
                let call = symbol(&lib.nvmlDeviceGetTemperature)?;
                let mut temperature = 0;
                // SAFETY: `temperature` lives across the call.
                check(unsafe { call(card.device, chip, &raw mut temperature) })?;
                Ok(i64::from(temperature))
            }
            told => told,
        }
    }

    /// Why clocks are held down, all bits, by the newer call or the one that goes with CUDA 14.
    pub fn throttle_reasons(&self, card: Handle<'nvml>) -> Result<u64, Fault> {
        let lib = self.nvml.lib();
        let call = symbol(&lib.nvmlDeviceGetCurrentClocksEventReasons)
            .or_else(|_| symbol(&lib.nvmlDeviceGetCurrentClocksThrottleReasons))?;
        let mut reasons = 0;
        // SAFETY: `reasons` lives across the call.
        check(unsafe { call(card.device, &raw mut reasons) })?;
        Ok(reasons)
    }

    /// How busy the JPEG engine was in the driver's last period. Unit: percent.
    pub fn jpeg_percent(&self, card: Handle<'nvml>) -> Result<u32, Fault> {
        engine(symbol(&self.nvml.lib().nvmlDeviceGetJpgUtilization)?, card)
    }

    /// How busy the optical-flow engine was in the driver's last period. Unit: percent.
    pub fn optical_flow_percent(&self, card: Handle<'nvml>) -> Result<u32, Fault> {
        engine(symbol(&self.nvml.lib().nvmlDeviceGetOfaUtilization)?, card)
    }

    /// The GPU instance and compute instance of a MIG device.
    pub fn instance_ids(&self, device: Handle<'nvml>) -> Result<(u32, u32), Fault> {
        let lib = self.nvml.lib();
        let [gpu, compute] = [symbol(&lib.nvmlDeviceGetGpuInstanceId)?, symbol(&lib.nvmlDeviceGetComputeInstanceId)?];
        let (mut gpu_instance, mut compute_instance) = (0, 0);
        // SAFETY: both numbers live across the calls.
        check(unsafe { gpu(device.device, &raw mut gpu_instance) })?;
        check(unsafe { compute(device.device, &raw mut compute_instance) })?;
        Ok((gpu_instance, compute_instance))
    }

    /// Virtual GPUs that are active on a card: instance numbers of the driver's.
    pub fn active_vgpus(&self, card: Handle<'nvml>) -> Result<Vec<u32>, Fault> {
        let call = symbol(&self.nvml.lib().nvmlDeviceGetActiveVgpus)?;
        let mut instances: Vec<nvmlVgpuInstance_t> = vec![0; 64];
        let count = fill(&mut instances, |room, count| {
            // SAFETY: `count` holds the length of `room`, and both live across the call.
            unsafe { call(card.device, count, room.as_mut_ptr()) }
        })?;
        instances.truncate(count);
        Ok(instances)
    }

    /// Who a virtual GPU is, and what it is and uses, as far as the driver tells.
    pub fn vgpu(&self, instance: u32) -> Result<RawVgpu, Fault> {
        let lib = self.nvml.lib();
        let mut text = [0; 96];
        let room = text.len() as u32;
        // SAFETY: `room` is the length of `text`, which lives across the call, as in the next.
        check(unsafe { symbol(&lib.nvmlVgpuInstanceGetUUID)?(instance, text.as_mut_ptr(), room) })?;
        let uuid = read_text(&text)?;
        let mut id_type = 0;
        // SAFETY: as above; `id_type` lives across the call too.
        check(unsafe { symbol(&lib.nvmlVgpuInstanceGetVmID)?(instance, text.as_mut_ptr(), room, &raw mut id_type) })?;
        let machine = read_text(&text)?;
        let number = |call: Result<unsafe extern "C" fn(u32, *mut u64) -> nvmlReturn_t, Fault>, of: u32| {
            let mut bytes = 0;
            // SAFETY: `bytes` lives across the call.
            check(unsafe { call?(of, &raw mut bytes) })?;
            Ok(bytes)
        };
        let used_bytes = number(symbol(&lib.nvmlVgpuInstanceGetFbUsage), instance);
        let profile = symbol(&lib.nvmlVgpuInstanceGetType).and_then(|call| {
            let mut profile = 0;
            // SAFETY: `profile` lives across the call.
            check(unsafe { call(instance, &raw mut profile) })?;
            Ok(profile)
        });
        let size_bytes = profile.and_then(|profile| number(symbol(&lib.nvmlVgpuTypeGetFramebufferSize), profile));
        let profile = profile.and_then(|profile| {
            let mut room = room;
            // SAFETY: `room` is the length of `text`; both live across the call.
            check(unsafe { symbol(&lib.nvmlVgpuTypeGetName)?(profile, text.as_mut_ptr(), &raw mut room) })?;
            read_text(&text)
        });
        Ok(RawVgpu { uuid, machine, profile: profile.ok(), size_bytes, used_bytes })
    }
}

/// A sample of the performance monitor, filled again and again.
#[derive(Debug)]
pub struct GpmSample<'nvml> {
    raw: Raw<'nvml>,
    sample: nvmlGpmSample_t,
}

impl<'nvml> GpmSample<'nvml> {
    /// An empty one.
    pub fn new(raw: Raw<'nvml>) -> Result<Self, Fault> {
        let lib = raw.nvml.lib();
        let call = symbol(&lib.nvmlGpmSampleAlloc)?;
        // One that could not be freed is not made.
        symbol(&lib.nvmlGpmSampleFree)?;
        let mut sample = null_mut();
        // SAFETY: `sample` lives across the call.
        check(unsafe { call(&raw mut sample) })?;
        Ok(Self { raw, sample })
    }

    /// Fills it with the counters of a card, or of one GPU instance of it.
    pub fn fill(&mut self, card: Handle<'nvml>, gpu_instance: Option<u32>) -> Result<(), Fault> {
        let lib = self.raw.nvml.lib();
        // SAFETY: the sample was made by this library and is not freed while `self` lives.
        check(match gpu_instance {
            None => unsafe { symbol(&lib.nvmlGpmSampleGet)?(card.device, self.sample) },
            Some(id) => unsafe { symbol(&lib.nvmlGpmMigSampleGet)?(card.device, id, self.sample) },
        })
    }

    /// Averages of `ids` since `earlier`; each has an answer of its own, in the order asked. Shape: at most 210 ids.
    pub fn averages_since(
        &self,
        earlier: &Self,
        ids: &[u32],
        buffers: &mut Buffers,
        out: &mut Vec<Result<f64, Fault>>,
    ) -> Result<(), Fault> {
        let call = symbol(&self.raw.nvml.lib().nvmlGpmMetricsGet)?;
        let asked = &mut *buffers.metrics;
        (asked.version, asked.numMetrics) = (1, ids.len() as u32);
        (asked.sample1, asked.sample2) = (earlier.sample, self.sample);
        for (metric, id) in asked.metrics.iter_mut().zip(ids) {
            (metric.metricId, metric.nvmlReturn, metric.value) = (*id, code::UNKNOWN, f64::NAN);
        }
        // SAFETY: both samples are alive, and `asked` lives across the call.
        check(unsafe { call(asked) })?;
        out.clear();
        out.extend(asked.metrics[..ids.len()].iter().map(|metric| check(metric.nvmlReturn).map(|()| metric.value)));
        Ok(())
    }
}

impl Drop for GpmSample<'_> {
    fn drop(&mut self) {
        if let Ok(free) = symbol(&self.raw.nvml.lib().nvmlGpmSampleFree) {
            // SAFETY: made by this library, and freed once.
            unsafe { free(self.sample) };
        }
    }
}

/// Where events of cards arrive.
#[derive(Debug)]
pub struct EventSet<'nvml> {
    raw: Raw<'nvml>,
    set: nvmlEventSet_t,
}

impl<'nvml> EventSet<'nvml> {
    /// One without cards.
    pub fn new(raw: Raw<'nvml>) -> Result<Self, Fault> {
        let lib = raw.nvml.lib();
        let call = symbol(&lib.nvmlEventSetCreate)?;
        symbol(&lib.nvmlEventSetFree)?;
        // SAFETY: all bits zero is a value of this C handle, which lives across the call.
        let mut set: nvmlEventSet_t = unsafe { zeroed() };
        check(unsafe { call(&raw mut set) })?;
        Ok(Self { raw, set })
    }

    /// Asks for those of the events in `wanted` that the card has. A card that has none leaves the set as it was.
    pub fn add(&mut self, card: Handle<'nvml>, wanted: u64) -> Result<(), Fault> {
        let lib = self.raw.nvml.lib();
        let mut supported = 0;
        // SAFETY: `supported` lives across the call.
        check(unsafe { symbol(&lib.nvmlDeviceGetSupportedEventTypes)?(card.device, &raw mut supported) })?;
        if supported & wanted == 0 {
            return Err(Fault::Code(code::NOT_SUPPORTED));
        }
        // SAFETY: the set is alive.
        check(unsafe { symbol(&lib.nvmlDeviceRegisterEvents)?(card.device, supported & wanted, self.set) })
    }

    /// The next event that has arrived, without waiting; none where there is none.
    pub fn next(&mut self) -> Result<Option<RawEvent<'nvml>>, Fault> {
        let call = symbol(&self.raw.nvml.lib().nvmlEventSetWait_v2)?;
        // SAFETY: all bits zero is a value of this C structure; it and the set live across the call.
        let mut data: nvmlEventData_t = unsafe { zeroed() };
        (data.gpuInstanceId, data.computeInstanceId) = (NO_INSTANCE, NO_INSTANCE);
        match check(unsafe { call(self.set, &raw mut data, 0) }) {
            Err(Fault::Code(code::TIMEOUT)) => Ok(None),
            Err(fault) => Err(fault),
            Ok(()) => Ok(Some(RawEvent {
                card: Handle { device: data.device, library: PhantomData },
                kind: data.eventType,
                data: data.eventData,
                gpu_instance: instance(data.gpuInstanceId),
                compute_instance: instance(data.computeInstanceId),
            })),
        }
    }
}

impl Drop for EventSet<'_> {
    fn drop(&mut self) {
        if let Ok(free) = symbol(&self.raw.nvml.lib().nvmlEventSetFree) {
            // SAFETY: made by this library, and freed once.
            unsafe { free(self.set) };
        }
    }
}

/// Whether the library can be let go again: dropping one without this function would end the process.
pub fn can_shut_down(nvml: &Nvml) -> bool {
    nvml.lib().nvmlShutdown.is_ok()
}

/// Keeps one mapped for ever, since it can't be let go.
pub fn keep(nvml: Nvml) {
    std::mem::forget(nvml);
}

fn symbol<F: Copy, E>(loaded: &Result<F, E>) -> Result<F, Fault> {
    loaded.as_ref().copied().map_err(|_| Fault::NoSymbol)
}

fn check(code: nvmlReturn_t) -> Result<(), Fault> {
    if code == 0 { Ok(()) } else { Err(Fault::Code(code)) }
}

/// A text that ends with its first null byte.
fn read_text(text: &[std::ffi::c_char]) -> Result<String, Fault> {
    let bytes: Vec<u8> = text.iter().take_while(|byte| **byte != 0).map(|byte| byte.cast_unsigned()).collect();
    String::from_utf8(bytes).map_err(|_| Fault::Garbage)
}

/// What versioned structures begin with.
fn version<T>(number: u32) -> u32 {
    size_of::<T>() as u32 | number << 24
}

fn instance(id: u32) -> Option<u32> {
    (id != NO_INSTANCE).then_some(id)
}

/// Fills a kept buffer in one call, and grows it where that was too short: the set can grow between two calls.
fn fill<T: Copy>(
    buffer: &mut Vec<T>,
    mut call: impl FnMut(&mut [T], *mut u32) -> nvmlReturn_t,
) -> Result<usize, Fault> {
    let slack = 32;
    let mut tries = 3;
    loop {
        let mut count = buffer.len() as u32;
        tries -= 1;
        match check(call(buffer, &raw mut count)) {
            Ok(()) => return Ok((count as usize).min(buffer.len())),
            Err(Fault::Code(code::INSUFFICIENT_SIZE)) if tries > 0 => {
                let room = (count as usize).max(buffer.len()) + slack;
                // SAFETY: these are C structures, for which all bits zero is a value.
                buffer.resize(room, unsafe { zeroed() });
            }
            Err(fault) => return Err(fault),
        }
    }
}

type EngineCall = unsafe extern "C" fn(nvmlDevice_t, *mut u32, *mut u32) -> nvmlReturn_t;

fn engine(call: EngineCall, card: Handle<'_>) -> Result<u32, Fault> {
    let (mut percent, mut period_us) = (0, 0);
    // SAFETY: both numbers live across the call.
    check(unsafe { call(card.device, &raw mut percent, &raw mut period_us) })?;
    Ok(percent)
}

/// A value by the type that the driver says it has, all of its bits. Source: `nvmlValueType_t` in nvml.h.
fn integer(value_type: u32, value: nvmlValue_t) -> Result<i128, Fault> {
    // SAFETY: every member of the union is a number, and the whole of it is set: it was zeroed before the driver wrote to it.
    unsafe {
        match value_type {
            0 if value.dVal.is_finite() => Ok(value.dVal as i128),
            1 => Ok(value.uiVal.into()),
            2 => Ok(value.ulVal.into()),
            3 => Ok(value.ullVal.into()),
            4 => Ok(value.sllVal.into()),
            5 => Ok(value.siVal.into()),
            6 => Ok(value.usVal.into()),
            _ => Err(Fault::Garbage),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_value_keeps_all_of_its_bits() {
        let wide = nvmlValue_t { ullVal: 0x1_0000_0007 };
        assert_eq!([2, 3].map(|value_type| integer(value_type, wide)), [Ok(0x1_0000_0007); 2]);
        assert_eq!(integer(5, nvmlValue_t { siVal: -5 }), Ok(-5));
        assert_eq!(integer(4, nvmlValue_t { sllVal: -5 }), Ok(-5));
        assert_eq!(integer(6, nvmlValue_t { usVal: 7 }), Ok(7));
        assert_eq!(integer(0, nvmlValue_t { dVal: f64::NAN }), Err(Fault::Garbage));
        assert_eq!(integer(7, wide), Err(Fault::Garbage));
    }

    #[test]
    fn fields_are_renumbered_from_driver_580_82_on() {
        let ids = |renumbered| [250, 251, 255, 256, 273, 274].map(|id| Field::of_device(id).id_for(renumbered));
        assert_eq!(ids(false), [250, 251, 255, 256, 273, 274]);
        assert_eq!(ids(true), [250, 269, 273, 251, 268, 274]);
    }

    #[test]
    fn a_version_word_is_size_and_number() {
        // 33554472 by a C program against the header.
        assert_eq!(version::<nvmlMemory_v2_t>(2), 33_554_472);
    }

    #[test]
    fn a_list_that_grows_between_calls_is_asked_for_again_with_room() {
        let mut buffer = vec![0u8; 2];
        let mut sizes = Vec::new();
        let count = fill(&mut buffer, |room, count| {
            sizes.push(room.len());
            // SAFETY: `fill` hands out a pointer to a number of its own.
            unsafe { *count = 40 };
            if room.len() < 40 { code::INSUFFICIENT_SIZE } else { 0 }
        });
        assert_eq!((count, sizes), (Ok(40), vec![2, 72]));
    }
}
