//! What the cards of this node say.
//!
//! [`nvml::NvmlProbe`] owns the driver's library on one thread and hands out plain data, one [`TickReadings`] a tick: values as the driver gave
//! them, each read or missing with its reason. Differences, averages and judgement are [`crate::sampler`]'s, which is pure.
//!
//! What is absent here: a second thread in the driver, an NVML index as an identity, a call that blocks for its own sake
//! (`nvmlDeviceGetPcieThroughput` sleeps 20 ms), a zero for what could not be read.

pub mod clock;
pub mod driver_cards;
pub mod governor;
pub mod heartbeat;
pub mod nvml;
pub mod pci;
pub mod readings;
pub mod schedule;
pub mod state;

pub use clock::{Clock, Control, Moment, SystemClock, Wish};
pub use heartbeat::{Calls, Heartbeat, Hung, Watchdog};
pub use readings::{
    CardListing, DeadCard, DeviceId, DeviceReading, MigPlace, RingEntry, RingRead, Rows, SeenVgpu, TickReadings,
};
pub use state::{DeviceState, EccState, GpmState, HealthState, NvLinksState};
