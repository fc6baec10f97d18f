//! How much may be disturbed at once.
//!
//! Percentages round up, so that a small pool isn't frozen; where nothing can be restarted they round down, so that it is left alone.

/// How many more jobs of a pool may be ended or moved: a part of its ordinary jobs, less those on their way out.
pub fn jobs_to_spare(per_mille: u32, ordinary: usize, any_restartable: bool, leaving: usize) -> usize {
    let part = ordinary.saturating_mul(per_mille as usize);
    let most = if any_restartable { part.div_ceil(1_000) } else { part / 1_000 };
    most.saturating_sub(leaving)
}

/// The budget of one job with many tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskBudget {
    /// At most so many tasks out at once.
    MaxUnavailable(Amount),
    /// At least so many tasks left.
    MinAvailable(Amount),
}

/// A number of tasks, or a part of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many.
    Tasks(u32),
    /// So many thousandths of all, rounded up.
    PerMille(u32),
}

impl Amount {
    fn of(self, tasks: u32) -> u32 {
        match self {
            Self::Tasks(number) => number,
            Self::PerMille(part) => {
                u32::try_from((u64::from(tasks) * u64::from(part)).div_ceil(1_000)).unwrap_or(u32::MAX)
            }
        }
    }
}

/// How many tasks of a job are withdrawn when its window closes: within the budget, and never more than can be ended. None while the window is open.
pub fn tasks_to_withdraw(budget: TaskBudget, tasks: u32, preemptible: u32, window_open: bool) -> u32 {
    if window_open {
        return 0;
    }
    let within = match budget {
        TaskBudget::MaxUnavailable(most) => most.of(tasks),
        TaskBudget::MinAvailable(least) => tasks.saturating_sub(least.of(tasks)),
    };
    within.min(preemptible)
}
