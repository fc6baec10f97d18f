//! A process as `/proc/PID/stat` has it.

/// A flag of the kernel's own threads: `PF_KTHREAD`.
const OF_KERNEL: u64 = 0x0020_0000;

/// What is needed of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) pid: u32,
    pub(super) comm: String,
    pub(super) state: char,
    pub(super) parent: u32,
    pub(super) session: u32,
    flags: u64,
    /// Unit: clock ticks since the boot.
    pub(super) start_ticks: u64,
}

impl Stat {
    /// From the text of the file; none if it isn't one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (pid, rest) = text.split_once(" (")?;
        // The last bracket: a program may have called itself `a) R 1`.
        let (comm, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Fields are counted from 3, the state, as proc(5) does.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let small = |field: usize| number(field).and_then(|n| u32::try_from(n).ok());
        Some(Self {
            pid: pid.trim().parse().ok()?,
            comm: comm.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: small(4)?,
            session: small(6)?,
            flags: number(9)?,
            start_ticks: number(22)?,
        })
    }

    /// Whether it has ended and only its entry is left.
    pub(super) fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    pub(super) fn is_of_kernel(&self) -> bool {
        self.flags & OF_KERNEL != 0 || self.pid == 2 || self.parent == 2
    }
}

/// Effective user, from `/proc/PID/status`.
pub(super) fn effective_uid(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().nth(1)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_moves_no_field_and_the_kernels_are_known() {
        let text = "77 (a) R 1 (b) S 70 71 72 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.pid, &*stat.comm, stat.state, stat.parent), (77, "a) R 1 (b", 'S', 70));
        assert_eq!((stat.session, stat.start_ticks, stat.is_of_kernel()), (72, 123_456, false));
        let kernel = "9 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 30 0";
        assert!(Stat::parse(kernel).unwrap().is_of_kernel());
        assert_eq!(Stat::parse("7 (x"), None);
    }
}
