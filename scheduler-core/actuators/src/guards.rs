//! What is asked before each touch: the mode, the kill switch, the limit by the hour.

use crate::action::Action;
use crate::journal::Journal;
use cardhour_domain::Timestamp;
use std::path::PathBuf;

/// How long a touch counts. Unit: milliseconds.
const HOUR_MS: i64 = 3_600_000;

/// How far an action may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It is only said what would be done.
    #[default]
    Shadow,
    /// People are told of it, by who calls; nothing is touched.
    Notify,
    /// It is done.
    Act,
}

/// Why nothing is touched for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// The mode touches nothing.
    Mode(Mode),
    /// The kill switch is on.
    KillSwitch,
    /// As many actions as may be were begun within the hour.
    Hour {
        /// How many may be.
        at_most: u32,
    },
    /// As many actions as may be for one tenant were begun within the hour.
    TenantHour {
        /// How many may be.
        at_most: u32,
    },
    /// It is not wanted any more: the job is active again, the owner has extended it.
    NotWanted(String),
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mode(Mode::Shadow) => f.write_str("the mode is shadow"),
            Self::Mode(Mode::Notify) => f.write_str("the mode is notify"),
            Self::Mode(Mode::Act) => f.write_str("the mode is act"),
            Self::KillSwitch => f.write_str("the kill switch is on"),
            Self::Hour { at_most } => write!(f, "{at_most} actions were begun within the hour, and no more may be"),
            Self::TenantHour { at_most } => {
                write!(f, "{at_most} actions for this tenant were begun within the hour, and no more may be")
            }
            Self::NotWanted(reason) => write!(f, "it isn't wanted any more: {reason}"),
        }
    }
}

/// What is asked before each touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    /// How far an action may go.
    pub mode: Mode,
    /// Everything stops.
    pub is_off: bool,
    /// Everything stops while this file is there.
    pub off_file: Option<PathBuf>,
    /// Actions that are begun within an hour, at most.
    pub most_an_hour: u32,
    /// Of them for one tenant; none: as many.
    pub most_an_hour_a_tenant: Option<u32>,
}

impl Guards {
    /// Whether an action may touch the world now. One that was begun isn't counted again: half an end is worse than a whole one. Errors: why not.
    pub fn allow(&self, action: &Action, journal: &dyn Journal, now: Timestamp) -> Result<(), Held> {
        match self.mode {
            Mode::Shadow | Mode::Notify => return Err(Held::Mode(self.mode)),
            Mode::Act => {}
        }
        // A file that can't be looked for may be there.
        let is_there = |file: &PathBuf| file.try_exists().unwrap_or(true);
        if self.is_off || self.off_file.as_ref().is_some_and(is_there) {
            return Err(Held::KillSwitch);
        }
        if journal.past(&action.decision).is_some_and(|past| !past.tries.is_empty()) {
            return Ok(());
        }
        let since = now.checked_add_ms(-HOUR_MS).unwrap_or(now);
        if journal.begun_since(since, None) >= self.most_an_hour as usize {
            return Err(Held::Hour { at_most: self.most_an_hour });
        }
        if let (Some(at_most), Some(tenant)) = (self.most_an_hour_a_tenant, &action.tenant)
            && journal.begun_since(since, Some(tenant)) >= at_most as usize
        {
            return Err(Held::TenantHour { at_most });
        }
        Ok(())
    }
}
