//! How a card is shared.

/// How a holder has its part of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// All of it.
    Whole,
    /// A MIG instance: memory, processors and faults of its own.
    Mig,
    /// A vGPU: memory of its own, kept by a hypervisor.
    Vgpu,
    /// In turns with others, in one memory.
    TimeSlice,
    /// Beside others at the same time; a fatal fault of one ends all on the card.
    Mps,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Whole, Self::Mig, Self::Vgpu, Self::TimeSlice, Self::Mps];

    /// Its name in tables and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Mig => "mig",
            Self::Vgpu => "vgpu",
            Self::TimeSlice => "time_slice",
            Self::Mps => "mps",
        }
    }

    /// The mode of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Whether strangers may share by it.
    pub const fn keeps_strangers_apart(self) -> bool {
        match self {
            Self::Mig | Self::Vgpu => true,
            Self::Whole | Self::TimeSlice | Self::Mps => false,
        }
    }
}
