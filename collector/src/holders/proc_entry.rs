//! One process as `/proc` has it: its `stat`, `status`, `io` and command line. Text in, values out.

use cardhour_domain::Name;

/// Clock ticks to the second in `/proc`: the kernel gives programs 100 on every architecture that has these cards.
pub(super) const TICKS_PER_SECOND: u64 = 100;

/// Milliseconds to a clock tick.
pub(super) const TICK_MS: u64 = 1000 / TICKS_PER_SECOND;

/// A process of one boot: its pid alone comes round again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// Its id in the host's namespace.
    pub pid: u32,
    /// When it started. Unit: clock ticks since the boot.
    pub start_ticks: u64,
}

/// What `/proc/PID/stat` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Which process.
    pub id: ProcessId,
    /// Its program's name, cut at 15 bytes by the kernel; anything, also `)` and spaces.
    pub comm: Name,
    /// R, S, D, Z …
    pub state: char,
    /// Its parent.
    pub parent: u32,
    /// Leader of its process group.
    pub group: u32,
    /// Leader of its session.
    pub session: u32,
    /// Its controlling terminal, where it has one.
    pub terminal: Option<Terminal>,
    /// Processor time of its own. Unit: clock ticks.
    pub own_ticks: u64,
    /// Processor time of children that ended and that it waited for. Unit: clock ticks.
    pub waited_ticks: u64,
}

/// A terminal, by the numbers of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Terminal {
    /// Its kind.
    pub major: u32,
    /// Which of them.
    pub minor: u32,
}

impl Terminal {
    /// N of `/dev/pts/N`: majors 136 to 143 are theirs, 256 terminals each.
    pub fn pts(self) -> Option<u32> {
        (136..=143).contains(&self.major).then(|| (self.major - 136) * 256 + self.minor)
    }
}

impl Stat {
    /// From the text of the file; none if it isn't one.
    pub fn parse(text: &str) -> Option<Self> {
        let (pid, rest) = text.split_once(" (")?;
        // The last bracket: a program may have called itself `a) R 1`.
        let (comm, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Fields are counted from 3, the state, as proc(5) does.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let small = |field: usize| number(field).and_then(|n| u32::try_from(n).ok());
        let terminal = fields.get(7 - 3)?.parse::<i64>().ok()? as u32;
        let terminal = (terminal != 0).then_some(Terminal {
            major: (terminal >> 8) & 0xfff,
            minor: (terminal & 0xff) | ((terminal >> 12) & 0xfff00),
        });
        Some(Self {
            id: ProcessId { pid: pid.trim().parse().ok()?, start_ticks: number(22)? },
            comm: comm.into(),
            state: fields.first()?.chars().next()?,
            parent: small(4)?,
            group: small(5)?,
            session: small(6)?,
            terminal,
            own_ticks: number(14)? + number(15)?,
            waited_ticks: number(16)? + number(17)?,
        })
    }

    /// Whether it has ended and only its entry is left.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// Effective user, from `/proc/PID/status`.
pub(super) fn effective_uid(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().nth(1)?.parse().ok())
}

/// Who logged in, from `/proc/PID/loginuid`, also where `sudo` has changed the user since; none where nobody did.
pub(super) fn login_uid(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|uid| *uid != u32::MAX)
}

/// What was read and written through system calls, files and network alike, from `/proc/PID/io`. Unit: bytes.
pub(super) fn io_bytes(io: &str) -> Option<u64> {
    let value = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(value("rchar:")?.saturating_add(value("wchar:")?))
}

/// The words of `/proc/PID/cmdline`.
pub(super) fn words(cmdline: &[u8]) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
    cmdline.split(|byte| *byte == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_moves_no_field() {
        let text =
            "4242 (a) R 1 (x)) S 4000 4200 4100 34818 4242 4194304 1 2 3 4 700 50 30 5 20 0 9 0 123456 1000 2 1844";
        let stat = Stat::parse(text).unwrap();
        assert_eq!(stat.id, ProcessId { pid: 4242, start_ticks: 123_456 });
        assert_eq!(&*stat.comm, "a) R 1 (x)");
        assert_eq!((stat.parent, stat.group, stat.session), (4000, 4200, 4100));
        // utime 700 + stime 50; cutime 30 + cstime 5.
        assert_eq!((stat.own_ticks, stat.waited_ticks), (750, 35));
        // 34818 = 136 × 256 + 2.
        assert_eq!(stat.terminal.and_then(Terminal::pts), Some(2));
        assert_eq!(Stat::parse("1 (x) S 0"), None);
    }

    #[test]
    fn the_kernel_says_the_same_of_this_very_process() {
        let stat = Stat::parse(&std::fs::read_to_string("/proc/self/stat").unwrap()).unwrap();
        assert_eq!(stat.id.pid, std::process::id());
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
        assert_eq!(stat.parent, parent.trim().parse::<u32>().unwrap());
        assert!(io_bytes(&std::fs::read_to_string("/proc/self/io").unwrap()).unwrap() > 0);
    }

    #[test]
    fn nobody_logged_in_where_the_login_user_is_unset() {
        assert_eq!(login_uid("4294967295"), None);
        assert_eq!(login_uid("1001"), Some(1001));
        assert_eq!(effective_uid("Name:\tx\nUid:\t1000\t1001\t0\t0\n"), Some(1001));
    }
}
