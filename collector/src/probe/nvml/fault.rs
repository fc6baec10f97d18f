//! What can go wrong with a call into the driver, and what follows from it.

use cardhour_domain::Gap;
use nvml_wrapper::error::NvmlError;
use std::fmt;

/// Why a call gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// NVML's own code; those above 22 are newer than the wrapper and arrive all the same.
    Code(u32),
    /// The library has no such function: an old driver.
    NoSymbol,
    /// The library is not there, or can't be loaded.
    NoLibrary,
    /// Answers of this driver can't be trusted to be as long as they say, so it isn't asked.
    Refused,
    /// What came back can't be read: a text that isn't one, an unknown type.
    Garbage,
}

/// What follows from a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// This device hasn't got it: not asked again in this generation.
    Benign,
    /// Asked again at the next tick.
    Retry,
    /// The device answers no more: no call reaches it until the library is loaded anew.
    Device,
    /// The library itself is of no use any more.
    Library,
}

/// NVML's codes by name. Source: `nvmlReturn_t` in nvml.h of CUDA 13.
pub mod code {
    #![allow(missing_docs, reason = "named as in nvml.h")]
    pub const UNINITIALIZED: u32 = 1;
    pub const INVALID_ARGUMENT: u32 = 2;
    pub const NOT_SUPPORTED: u32 = 3;
    pub const NO_PERMISSION: u32 = 4;
    pub const NOT_FOUND: u32 = 6;
    pub const INSUFFICIENT_SIZE: u32 = 7;
    pub const INSUFFICIENT_POWER: u32 = 8;
    pub const DRIVER_NOT_LOADED: u32 = 9;
    pub const TIMEOUT: u32 = 10;
    pub const IRQ_ISSUE: u32 = 11;
    pub const LIBRARY_NOT_FOUND: u32 = 12;
    pub const FUNCTION_NOT_FOUND: u32 = 13;
    pub const GPU_IS_LOST: u32 = 15;
    pub const RESET_REQUIRED: u32 = 16;
    pub const LIB_RM_VERSION_MISMATCH: u32 = 18;
    pub const IN_USE: u32 = 19;
    pub const NO_DATA: u32 = 21;
    pub const ARGUMENT_VERSION_MISMATCH: u32 = 25;
    pub const DEPRECATED: u32 = 26;
    pub const NOT_READY: u32 = 27;
    pub const GPU_NOT_FOUND: u32 = 28;
    pub const INVALID_STATE: u32 = 29;
    pub const UNKNOWN: u32 = 999;
}

impl Fault {
    /// What follows from it; `has_worked` says whether this call ever gave something on this device.
    pub fn class(self, has_worked: bool) -> Class {
        match self {
            Self::NoSymbol | Self::Refused => Class::Benign,
            Self::Garbage => Class::Retry,
            Self::NoLibrary => Class::Library,
            Self::Code(code) => match code {
                code::UNINITIALIZED
                | code::DRIVER_NOT_LOADED
                | code::LIB_RM_VERSION_MISMATCH
                | code::LIBRARY_NOT_FOUND => Class::Library,
                code::GPU_IS_LOST
                | code::RESET_REQUIRED
                | code::IRQ_ISSUE
                | code::INSUFFICIENT_POWER
                | code::GPU_NOT_FOUND
                | code::INVALID_STATE => Class::Device,
                // A handle that used to be good is one no more.
                code::INVALID_ARGUMENT if has_worked => Class::Device,
                code::INVALID_ARGUMENT
                | code::NOT_SUPPORTED
                | code::NO_PERMISSION
                | code::NOT_FOUND
                | code::FUNCTION_NOT_FOUND
                | code::ARGUMENT_VERSION_MISMATCH
                | code::DEPRECATED => Class::Benign,
                // It has no answer yet.
                code::NO_DATA | code::NOT_READY => Class::Retry,
                _ => Class::Retry,
            },
        }
    }

    /// How a value that it kept from being read is marked.
    pub fn gap(self) -> Gap {
        match self {
            Self::NoSymbol | Self::Refused => Gap::NotSupported,
            Self::NoLibrary | Self::Garbage => Gap::DriverError,
            Self::Code(code) => match code {
                code::NO_PERMISSION => Gap::NoPermission,
                code::TIMEOUT => Gap::TimedOut,
                code::GPU_IS_LOST
                | code::RESET_REQUIRED
                | code::IRQ_ISSUE
                | code::INSUFFICIENT_POWER
                | code::GPU_NOT_FOUND => Gap::CardLost,
                code::NOT_SUPPORTED
                | code::NOT_FOUND
                | code::FUNCTION_NOT_FOUND
                | code::INVALID_ARGUMENT
                | code::ARGUMENT_VERSION_MISMATCH
                | code::DEPRECATED => Gap::NotSupported,
                _ => Gap::DriverError,
            },
        }
    }

    /// NVML's code, where it is one.
    pub fn number(self) -> Option<i64> {
        match self {
            Self::Code(code) => Some(i64::from(code)),
            Self::NoSymbol | Self::NoLibrary | Self::Refused | Self::Garbage => None,
        }
    }

    /// Whether the library on disk and the driver in the kernel are of two versions: the process has to load the new one.
    pub fn is_version_mismatch(self) -> bool {
        self == Self::Code(code::LIB_RM_VERSION_MISMATCH)
    }
}

impl From<NvmlError> for Fault {
    fn from(error: NvmlError) -> Self {
        match error {
            NvmlError::LibloadingError(_) => Self::NoLibrary,
            NvmlError::FailedToLoadSymbol(_) => Self::NoSymbol,
            NvmlError::Utf8Error(_)
            | NvmlError::NulError(_)
            | NvmlError::StringTooLong { .. }
            | NvmlError::IncorrectBits(_)
            | NvmlError::SetReleaseFailed
            | NvmlError::GetPciInfoFailed
            | NvmlError::PciInfoToCFailed => Self::Garbage,
            // An enum's unknown value is told by the same variant; only NVML's own codes 23 to 30 are known to come this way.
            NvmlError::UnexpectedVariant(code) if !(23..=30).contains(&code) => Self::Garbage,
            told => Self::Code(told.into()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSymbol => f.write_str("the driver's library has no such function"),
            Self::NoLibrary => f.write_str("libnvidia-ml.so.1 is not there or can't be loaded"),
            Self::Refused => f.write_str("drivers of this version write past the end of process lists"),
            Self::Garbage => f.write_str("the answer can't be read"),
            Self::Code(code) => match *code {
                code::UNINITIALIZED => f.write_str("the driver's library is not initialised"),
                code::NOT_SUPPORTED => f.write_str("not supported"),
                code::NO_PERMISSION => f.write_str("no permission"),
                code::DRIVER_NOT_LOADED => f.write_str("the NVIDIA driver is not loaded"),
                code::TIMEOUT => f.write_str("the driver timed out"),
                code::IRQ_ISSUE => f.write_str("interrupts of the card don't arrive"),
                code::INSUFFICIENT_POWER => f.write_str("the card's power cables are not attached"),
                code::GPU_IS_LOST => f.write_str("the card has fallen off the bus"),
                code::RESET_REQUIRED => f.write_str("the card needs a reset"),
                code::LIB_RM_VERSION_MISMATCH => f.write_str("library and driver are of two versions"),
                other => write!(f, "NVML error {other}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_the_wrapper_does_not_know_keep_their_meaning() {
        let class = |code| Fault::from(NvmlError::from(code)).class(false);
        assert_eq!([25, 26].map(class), [Class::Benign; 2]);
        assert_eq!([28, 29].map(class), [Class::Device; 2]);
        // What isn't ready or has no data yet (27, 21) has them later.
        assert_eq!([21, 23, 24, 27, 30].map(class), [Class::Retry; 5]);
        // An architecture newer than the wrapper is no code of NVML.
        assert_eq!(Fault::from(NvmlError::UnexpectedVariant(12)), Fault::Garbage);
    }

    #[test]
    fn an_invalid_handle_is_a_lost_card_only_where_it_was_valid_once() {
        assert_eq!(Fault::Code(code::INVALID_ARGUMENT).class(true), Class::Device);
        assert_eq!(Fault::Code(code::INVALID_ARGUMENT).class(false), Class::Benign);
    }
}
