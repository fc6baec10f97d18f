//! What is odd about what was given.

use super::kubelet_list::PodName;
use crate::holders::{LookEvent, LookEventKind};
use cardhour_domain::Name;
use std::fmt;

/// Something that a site should look into. What it is of isn't held by anybody, or by less than was given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Finding {
    /// A pod was given a device that leads to none of the node's.
    UnknownDevice {
        /// Who has it.
        pod: PodName,
        /// The id it was given under.
        id: Name,
    },
    /// Nothing says how many replicas a shared device has: its holders' shares aren't declared.
    UnknownReplicas {
        /// Which device.
        device_uuid: Name,
    },
    /// An annotation that should say a pod's cards doesn't.
    UnreadAnnotation {
        /// Whose.
        pod: PodName,
        /// Which.
        annotation: Name,
    },
    /// The kubelet's list can't be had. The first text says why.
    KubeletFailed(Name),
    /// The API server can't be asked about pods: labels stay as they were, and new pods have none.
    PodsFailed(Name),
    /// The API server can't be asked about devices of claims.
    SlicesFailed(Name),
}

impl Finding {
    /// As everything that is odd about holders is told: in the log, in `node_events` and counted.
    pub fn event(&self) -> LookEvent {
        let kind = match self {
            Self::UnknownDevice { .. } => LookEventKind::UnknownDevice,
            Self::UnknownReplicas { .. } => LookEventKind::UnknownReplicas,
            Self::UnreadAnnotation { .. } => LookEventKind::UnreadAnnotation,
            Self::KubeletFailed(_) | Self::PodsFailed(_) | Self::SlicesFailed(_) => LookEventKind::SourceFailed,
        };
        LookEvent::of_node(kind, self.to_string())
    }

    /// Its name, for tests and logs: a closed list.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::UnknownDevice { .. } => "unknown_device",
            Self::UnknownReplicas { .. } => "unknown_replicas",
            Self::UnreadAnnotation { .. } => "unread_annotation",
            Self::KubeletFailed(_) => "kubelet_failed",
            Self::PodsFailed(_) => "pods_failed",
            Self::SlicesFailed(_) => "slices_failed",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownDevice { pod, id } => {
                write!(f, "pod {pod} was given {id}, which leads to no device of this node")
            }
            Self::UnknownReplicas { device_uuid } => write!(f, "nothing says how many replicas {device_uuid} has"),
            Self::UnreadAnnotation { pod, annotation } => {
                write!(f, "annotation {annotation} of pod {pod} can't be read")
            }
            Self::KubeletFailed(why) => write!(f, "the kubelet's list can't be had: {why}"),
            Self::PodsFailed(why) => write!(f, "the API server can't be asked about pods: {why}"),
            Self::SlicesFailed(why) => write!(f, "the API server can't be asked about resource slices: {why}"),
        }
    }
}
