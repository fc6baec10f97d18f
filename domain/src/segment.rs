//! Names of spool segments: the contract between a node's spool and the ledger's intake.

use std::fmt;

/// What the rows of a segment are. Each has a Parquet layout of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// [`crate::Sample`].
    Samples,
    /// [`crate::Activity`].
    Activity,
    /// [`crate::Observation`].
    Observations,
    /// [`crate::Watch`].
    Watches,
    /// [`crate::SeenDevice`].
    Devices,
    /// [`crate::NodeEvent`].
    Events,
}

impl Stream {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Samples, Self::Activity, Self::Observations, Self::Watches, Self::Devices, Self::Events];

    /// Its name in a segment's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Activity => "activity",
            Self::Observations => "observations",
            Self::Watches => "watches",
            Self::Devices => "devices",
            Self::Events => "events",
        }
    }

    /// Whether a full spool may drop it. Who held what is never dropped.
    pub const fn is_telemetry(self) -> bool {
        matches!(self, Self::Samples | Self::Activity)
    }
}

/// Which segment it is: `BOOT-SEQUENCE.STREAM.parquet`, under a folder or path of its node.
///
/// `BOOT` is the kernel's boot id, 32 hexadecimal digits; `SEQUENCE` twelve digits, growing over the life of the spool. One name never has two
/// contents. Stability: pinned by the test `a_segment_is_named_as_before`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    boot: u128,
    sequence: u64,
    stream: Stream,
}

/// A name that no segment has.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is no segment's name: BOOT-SEQUENCE.STREAM.parquet, of 32 hexadecimal and 12 decimal digits")]
pub struct SegmentNameError(pub String);

impl SegmentName {
    /// The highest sequence there is.
    pub const LAST_SEQUENCE: u64 = 999_999_999_999;

    /// From its parts; `sequence` is at most [`Self::LAST_SEQUENCE`].
    pub fn new(boot: u128, sequence: u64, stream: Stream) -> Self {
        assert!(sequence <= Self::LAST_SEQUENCE, "a spool has fewer segments");
        Self { boot, sequence, stream }
    }

    /// Reads a name; nothing but the exact form passes, so that a name is never a path.
    pub fn parse(name: &str) -> Result<Self, SegmentNameError> {
        let parse = || {
            let (boot, rest) = name.split_once('-')?;
            let (sequence, rest) = rest.split_once('.')?;
            let stream = rest.strip_suffix(".parquet")?;
            let is_boot = boot.len() == 32 && boot.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            let is_sequence = sequence.len() == 12 && sequence.bytes().all(|b| b.is_ascii_digit());
            let stream = Stream::ALL.into_iter().find(|s| s.name() == stream)?;
            let boot = is_boot.then(|| u128::from_str_radix(boot, 16).ok())??;
            Some(Self { boot, sequence: is_sequence.then(|| sequence.parse().ok())??, stream })
        };
        parse().ok_or_else(|| SegmentNameError(name.to_owned()))
    }

    /// The kernel's boot id.
    pub const fn boot(&self) -> u128 {
        self.boot
    }

    /// Its number in its spool.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// What its rows are.
    pub const fn stream(&self) -> Stream {
        self.stream
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{:012}.{}.parquet", self.boot, self.sequence, self.stream.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_named_as_before() {
        let name = SegmentName::new(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef, 42, Stream::Observations);
        let text = "0123456789abcdef0123456789abcdef-000000000042.observations.parquet";
        assert_eq!(name.to_string(), text);
        assert_eq!(SegmentName::parse(text), Ok(name));
    }

    #[test]
    fn nothing_that_could_leave_its_folder_is_a_name() {
        let boot = "0123456789abcdef0123456789abcdef";
        for odd in [
            "".to_owned(),
            "../x".to_owned(),
            format!("{boot}-000000000042.samples"),
            format!("{boot}-42.samples.parquet"),
            format!("{boot}-00000000004a.samples.parquet"),
            format!("{boot}-000000000042.other.parquet"),
            format!("{boot}-000000000042.samples.parquet/.."),
            format!("{}-000000000042.samples.parquet", boot.to_uppercase()),
            format!("+{}-000000000042.samples.parquet", &boot[1..]),
        ] {
            assert_eq!(SegmentName::parse(&odd), Err(SegmentNameError(odd.clone())));
        }
    }
}
