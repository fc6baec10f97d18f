//! What a kubelet's list says, apart from how it is sent.

use cardhour_domain::Name;
use std::fmt;

/// A pod's name: unique in a cluster at a moment, and given again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodName {
    /// Its namespace.
    pub namespace: Name,
    /// Its name there.
    pub name: Name,
}

impl PodName {
    /// From its two parts.
    pub fn new(namespace: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What one pod was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodGrant {
    /// Which pod. The kubelet doesn't say which of those that had the name.
    pub pod: PodName,
    /// Devices of plugins, of all containers; the same id may stand here several times.
    pub devices: Vec<PluginDevice>,
    /// Devices of dynamic resource allocation.
    pub claimed: Vec<ClaimedDevice>,
}

/// A device that a plugin gave.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PluginDevice {
    /// The resource it was asked as.
    pub resource: Name,
    /// The plugin's id of it.
    pub id: Name,
    /// The container that it was given to; none of what is only offered.
    pub container: Option<Name>,
}

/// A device of a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimedDevice {
    /// The claim's name, in its pod's namespace or another.
    pub claim: PodName,
    /// Who drives it, such as `gpu.nvidia.com`.
    pub driver: Name,
    /// Its pool; for devices of a node, the node's name.
    pub pool: Name,
    /// Its name in the pool.
    pub device: Name,
    /// Which part of a device that may be claimed several times.
    pub share_id: Option<Name>,
    /// The container that it was given to.
    pub container: Name,
}
