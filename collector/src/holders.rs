//! Who holds the devices of this node.
//!
//! Sources are asked once a look; each says whom it knows, and the best of them counts for a holder and device. Stretches are made of looks
//! elsewhere: nothing here has a length.
//!
//! Start at [`Looker::look`]: it reads processes ([`processes`]), Slurm ([`slurm`]: map files, the controller, steps) and virtual machines,
//! takes what other sources found ([`LookInput::given`], [`Pods`]), and joins all of it ([`join`]).

pub mod aliases;
pub mod capabilities;
pub mod cgroup;
pub mod controller;
pub mod environ;
pub mod gres;
pub mod hostlist;
pub mod job_json;
pub mod job_record;
pub mod join;
pub mod look;
pub mod looker;
pub mod meter;
pub mod proc_entry;
pub mod processes;
pub mod runs;
pub mod scontrol;
pub mod session;
pub mod slurm;
pub mod slurm_map;
pub mod terminals;
pub mod users;
pub mod virtual_machine;

pub use aliases::{Aliases, CardAlias, DeviceId, InstanceAlias};
pub use controller::ControllerSettings;
pub use join::Scheduling;
pub use look::{Claimant, Look, LookEvent, LookEventKind};
pub use looker::{LookInput, LookSettings, Looker, Pods, SlurmSettings};
pub use slurm_map::MapNumbers;
pub use virtual_machine::VgpuInstance;

pub mod kubernetes;

use cardhour_domain::{AttemptKey, CardShare, Holder, HolderSource, Name, Owner, Reading};

/// A process that the driver lists on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProcess {
    /// The physical card.
    pub card_uuid: Name,
    /// The MIG instance, or the card.
    pub device_uuid: Name,
    /// Its id in the host's namespace.
    pub pid: u32,
    /// Device memory it has. Unit: bytes.
    pub memory_bytes: Reading<i64>,
    /// What it does there.
    pub kind: ProcessKind,
    /// Its part of the device's work since the last list, as a weight among the device's processes; missing where nothing tells.
    pub work_weight: Reading<u64>,
}

/// What a process does on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProcessKind {
    /// Computes.
    Compute,
    /// Draws.
    Graphics,
    /// Computes through a server that several share.
    Mps,
}

/// A holder has a device, at the moment of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The physical card.
    pub card_uuid: Name,
    /// The MIG instance, or the card.
    pub device_uuid: Name,
    /// Its declared share of the *card*; none where nothing declares one.
    pub share: Option<CardShare>,
    /// The best source that says so.
    pub source: HolderSource,
    /// Who.
    pub holder: Holder,
    /// Who pays.
    pub owner: Owner,
}

/// What a holder's processes did on a device since the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worked {
    /// The physical card.
    pub card_uuid: Name,
    /// The MIG instance, or the card.
    pub device_uuid: Name,
    /// Who.
    pub holder: AttemptKey,
    /// How many processes it has on the device.
    pub processes: i64,
    /// The weight of its work among all on the device; missing where nothing tells.
    pub work_weight: Reading<u64>,
    /// Device memory. Unit: bytes.
    pub mem_used_bytes: Reading<i64>,
    /// Processor time since the last look. Unit: milliseconds.
    pub cpu_ms: Reading<i64>,
    /// Read and written since the last look. Unit: bytes.
    pub io_bytes: Reading<i64>,
    /// Whether somebody typed at one of its terminals since the last look, or a graphics process draws.
    pub is_attended: Reading<bool>,
}
