//! What one look at a node's holders found.

use super::kubernetes::GivenAll;
use super::{Held, Worked};
use cardhour_domain::{EventKind, Holder, Name, NodeEvent, Owner, Timestamp};
use std::collections::BTreeSet;

/// What one look found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Who holds what. Shape: by device, then by rank of source, then by key; one row a holder and device.
    pub held: Vec<Held>,
    /// In which container, and as which replica of a device, pods have it: by device's UUID and pod (`namespace/name`).
    pub given_as: GivenAll,
    /// What holders' processes did since the last look. Shape: by device, then by key.
    pub worked: Vec<Worked>,
    /// What is odd, and wasn't at the last look.
    pub events: Vec<LookEvent>,
    /// Cards that were looked at without a failure of any source: what of them nobody holds is free.
    pub watched: BTreeSet<Name>,
}

/// A holder and who pays for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claimant {
    /// Who.
    pub holder: Holder,
    /// Who pays.
    pub owner: Owner,
}

/// Something odd.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LookEvent {
    /// What.
    pub kind: LookEventKind,
    /// The card, where it is of one.
    pub card_uuid: Option<Name>,
    /// The device, where it is of one.
    pub device_uuid: Option<Name>,
    /// In words, for people.
    pub detail: Name,
}

/// What can be odd. A closed list: each is a label of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LookEventKind {
    /// Two sources disagree about who holds a device.
    Disagreement,
    /// A process uses a device that its holder wasn't given.
    ForeignProcess,
    /// A process on a device of which nothing is known: it is gone already, or lives in another namespace of processes.
    Unattributed,
    /// A control group of Slurm in a form that isn't known.
    UnknownCgroup,
    /// A map file of a job that is no more.
    StaleMap,
    /// A source names a device by a number or id that leads to none.
    UnknownDevice,
    /// Nothing says how many replicas a shared device has: its holders' shares aren't declared.
    UnknownReplicas,
    /// An annotation that should say a pod's cards doesn't.
    UnreadAnnotation,
    /// A source can't be asked.
    SourceFailed,
}

impl LookEventKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Disagreement,
        Self::ForeignProcess,
        Self::Unattributed,
        Self::UnknownCgroup,
        Self::StaleMap,
        Self::UnknownDevice,
        Self::UnknownReplicas,
        Self::UnreadAnnotation,
        Self::SourceFailed,
    ];

    /// Its name in labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disagreement => "disagreement",
            Self::ForeignProcess => "foreign_process",
            Self::Unattributed => "unattributed",
            Self::UnknownCgroup => "unknown_cgroup",
            Self::StaleMap => "stale_map",
            Self::UnknownDevice => "unknown_device",
            Self::UnknownReplicas => "unknown_replicas",
            Self::UnreadAnnotation => "unread_annotation",
            Self::SourceFailed => "source_failed",
        }
    }
}

impl LookEvent {
    /// Of the node as a whole.
    pub(super) fn of_node(kind: LookEventKind, detail: impl Into<Name>) -> Self {
        Self { kind, card_uuid: None, device_uuid: None, detail: detail.into() }
    }

    /// Of a device.
    pub(super) fn of_device(kind: LookEventKind, device: &super::DeviceId, detail: impl Into<Name>) -> Self {
        let (card, device) = (device.card_uuid.clone(), device.device_uuid.clone());
        Self { kind, card_uuid: Some(card), device_uuid: Some(device), detail: detail.into() }
    }

    /// As a row of `node_events`: a process that nobody knows is foreign, all else is two sources that don't agree.
    pub fn row(&self, at: Timestamp, node: &Name) -> NodeEvent {
        let kind = match self.kind {
            LookEventKind::ForeignProcess | LookEventKind::Unattributed => EventKind::ForeignProcess,
            LookEventKind::Disagreement
            | LookEventKind::UnknownCgroup
            | LookEventKind::StaleMap
            | LookEventKind::UnknownDevice
            | LookEventKind::UnknownReplicas
            | LookEventKind::UnreadAnnotation
            | LookEventKind::SourceFailed => EventKind::Disagreement,
        };
        NodeEvent {
            at,
            node: node.clone(),
            card_uuid: self.card_uuid.clone(),
            device_uuid: self.device_uuid.clone(),
            kind,
            number: None,
            detail: Some(Name::from(format!("{}: {}", self.kind.name(), self.detail))),
        }
    }
}
