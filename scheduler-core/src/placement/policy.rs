//! The rules by which a host is chosen.

use super::mix::TypicalMix;
use super::pool::Request;

/// A rule by which a host is chosen among those that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// Any host that fits, each as likely as the others.
    Random,
    /// The host whose room is least like the request: 1 − the dot product of what is left and what is asked.
    DotProd,
    /// Hosts that have the same sort of request already (shares, or so many whole cards), then empty ones; among equals the fullest.
    GpuClustering,
    /// Shared cards first, then free cards of used hosts, then free hosts.
    GpuPacking,
    /// The host with least left, processors and cards alike.
    BestFit,
    /// The host whose fragmentation grows least, in whole scores of 0 to 100: fragmentation gradient descent.
    Fgd,
    /// The host that stays the most useful: twice the growth of fragmentation, and the loss of room that the mix could fill, in steps of 15 milli.
    Cardhour,
}

impl Policy {
    /// Every one, in the order in which they are shown.
    pub const ALL: [Self; 7] =
        [Self::Random, Self::DotProd, Self::GpuClustering, Self::GpuPacking, Self::BestFit, Self::Fgd, Self::Cardhour];

    /// Its name on the command line and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::DotProd => "dotprod",
            Self::GpuClustering => "gpuclustering",
            Self::GpuPacking => "gpupacking",
            Self::BestFit => "bestfit",
            Self::Fgd => "fgd",
            Self::Cardhour => "cardhour",
        }
    }

    /// The policy of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// The mix that it needs, of what the pool is usually asked for. FGD leaves the rarest twentieth out, as published; with us large gangs, which are
    /// rare, count too: they are what a spoiled host turns away.
    pub fn mix(self, requests: &[Request]) -> TypicalMix {
        match self {
            Self::Fgd => TypicalMix::covering(95, requests),
            Self::Cardhour => TypicalMix::covering(100, requests),
            Self::Random | Self::DotProd | Self::GpuClustering | Self::GpuPacking | Self::BestFit => {
                TypicalMix::default()
            }
        }
    }
}
