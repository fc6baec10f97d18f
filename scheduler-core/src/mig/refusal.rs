//! Why something isn't done with MIG.

use super::{DriverVersion, Placement, Shape};
use cardhour_domain::Name;

/// Why something isn't done with MIG. Each has a [code](Self::code) that decisions are filed under.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The card isn't in the table. It isn't guessed at: a card of another name has other slices.
    #[error("no MIG table for {card:?} with {memory_mib} MiB: its layouts are not planned")]
    MigTableMissing {
        /// The card's name, as the driver gives it.
        card: Name,
        /// All its memory.
        memory_mib: u64,
    },
    /// The card's own listing has another placement than the table.
    #[error("the card offers {shape} at {listed:?}, the table says {expected:?}: its layouts are not planned")]
    MigTableDiffers {
        /// The shape in question.
        shape: Shape,
        /// Starts and sizes that the card lists.
        listed: Vec<(u8, u8)>,
        /// Those of the table.
        expected: Vec<(u8, u8)>,
    },
    /// The axis has no such shape, or the driver doesn't offer it.
    #[error("this card offers no {0}")]
    NoSuchShape(Shape),
    /// The card has an instance of a profile that the table hasn't.
    #[error("the table has no profile {0:?} for this card: its layouts are not planned")]
    UnknownProfile(Name),
    /// The driver is too old for the shape.
    #[error("{shape} needs driver {needs}, the node has {has}")]
    DriverTooOld {
        /// The shape asked for.
        shape: Shape,
        /// The first driver that has it.
        needs: DriverVersion,
        /// The node's.
        has: DriverVersion,
    },
    /// What is said to be on the card can't be.
    #[error("{shape} at {start} can't be on this card: {why}", shape = .placement.shape, start = .placement.start)]
    Impossible {
        /// What was said to be there.
        placement: Placement,
        /// Which rule it breaks.
        why: &'static str,
    },
    /// Nothing is left where it could go.
    #[error("no card has room for {shape}: {looked_at} looked at")]
    NoRoom {
        /// The shape asked for.
        shape: Shape,
        /// How many cards were looked at.
        looked_at: usize,
    },
    /// Usable memory was read for none of the shapes.
    #[error("the card's driver has not said how much memory its shapes have: none is chosen by name")]
    MemoryUnread,
    /// No shape has as much memory, or as much compute with it.
    #[error(
        "no shape has {needed_mib} MiB with {compute} slices of compute; the largest that was read has {largest_mib} MiB"
    )]
    TooLarge {
        /// What was asked for.
        needed_mib: u64,
        /// Slices of compute asked for with it.
        compute: u8,
        /// The most a shape has.
        largest_mib: u64,
    },
    /// A job of several cards can't have instances: they don't reach each other.
    #[error("a job of {cards} cards can't run on MIG instances: there is no NVLink or peer access between them")]
    GangOnMig {
        /// How many cards it asks for.
        cards: u32,
    },
    /// The mode is changed on an idle card only.
    #[error("the card has {holders} holders: its MIG mode is changed when it is idle")]
    CardHeld {
        /// How many it has.
        holders: usize,
    },
    /// As many cards are being drained for a change as may be at once.
    #[error("{in_progress} cards are drained for a change of MIG mode, and no more than {most} at once")]
    DrainBudget {
        /// Being drained now.
        in_progress: u32,
        /// Allowed at once.
        most: u32,
    },
}

impl Refusal {
    /// A stable code: decisions are filed and counted under it.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::MigTableMissing { .. } => "mig_table_missing",
            Self::MigTableDiffers { .. } => "mig_table_differs",
            Self::NoSuchShape(_) => "mig_no_such_shape",
            Self::UnknownProfile(_) => "mig_unknown_profile",
            Self::DriverTooOld { .. } => "mig_driver_too_old",
            Self::Impossible { .. } => "mig_impossible_layout",
            Self::NoRoom { .. } => "mig_no_room",
            Self::MemoryUnread => "mig_memory_unread",
            Self::TooLarge { .. } => "mig_too_large",
            Self::GangOnMig { .. } => "mig_gang",
            Self::CardHeld { .. } => "mig_card_held",
            Self::DrainBudget { .. } => "mig_drain_budget",
        }
    }
}
