//! The field names of sacct, by which a line of names is told from a record.

/// All that `sacct --helpformat` lists in Slurm 17 to 25, in small letters, sorted.
pub const NAMES: &[&str] = &[
    "account",
    "admincomment",
    "alloccpus",
    "allocgres",
    "allocnodes",
    "alloctres",
    "associd",
    "avecpu",
    "avecpufreq",
    "avediskread",
    "avediskwrite",
    "avepages",
    "averss",
    "avevmsize",
    "blockid",
    "cluster",
    "comment",
    "constraints",
    "consumedenergy",
    "consumedenergyraw",
    "container",
    "cputime",
    "cputimeraw",
    "dbindex",
    "derivedexitcode",
    "elapsed",
    "elapsedraw",
    "eligible",
    "end",
    "exitcode",
    "expandedstderr",
    "expandedstdin",
    "expandedstdout",
    "extra",
    "failednode",
    "flags",
    "gid",
    "group",
    "jobcomment",
    "jobid",
    "jobidraw",
    "jobname",
    "layout",
    "licenses",
    "maxdiskread",
    "maxdiskreadnode",
    "maxdiskreadtask",
    "maxdiskwrite",
    "maxdiskwritenode",
    "maxdiskwritetask",
    "maxpages",
    "maxpagesnode",
    "maxpagestask",
    "maxrss",
    "maxrssnode",
    "maxrsstask",
    "maxvmsize",
    "maxvmsizenode",
    "maxvmsizetask",
    "mcslabel",
    "mincpu",
    "mincpunode",
    "mincputask",
    "ncpus",
    "nnodes",
    "nodelist",
    "ntasks",
    "partition",
    "planned",
    "plannedcpu",
    "plannedcpuraw",
    "priority",
    "qos",
    "qosraw",
    "qosreq",
    "reason",
    "reqcpufreq",
    "reqcpufreqgov",
    "reqcpufreqmax",
    "reqcpufreqmin",
    "reqcpus",
    "reqgres",
    "reqmem",
    "reqnodes",
    "reqreservation",
    "reqtres",
    "reservation",
    "reservationid",
    "reserved",
    "restarts",
    "resvcpu",
    "resvcpuraw",
    "segmentsize",
    "sluid",
    "start",
    "state",
    "stderr",
    "stdin",
    "stdout",
    "stepmgr",
    "submit",
    "submitline",
    "suspended",
    "systemcomment",
    "systemcpu",
    "timelimit",
    "timelimitraw",
    "totalcpu",
    "tresusageinave",
    "tresusageinmax",
    "tresusageinmaxnode",
    "tresusageinmaxtask",
    "tresusageinmin",
    "tresusageinminnode",
    "tresusageinmintask",
    "tresusageintot",
    "tresusageoutave",
    "tresusageoutmax",
    "tresusageoutmaxnode",
    "tresusageoutmaxtask",
    "tresusageoutmin",
    "tresusageoutminnode",
    "tresusageoutmintask",
    "tresusageouttot",
    "uid",
    "user",
    "usercpu",
    "wckey",
    "wckeyid",
    "workdir",
];

/// Whether sacct has a field of that name, in whatever case.
pub fn is_known(name: &str) -> bool {
    NAMES.binary_search(&name.to_ascii_lowercase().as_str()).is_ok()
}

/// What the values of a field look like, as far as it helps to tell a record from pieces of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Like anything.
    Any,
    /// Like anything, and people write it: line ends and delimiters may be inside.
    Free,
    /// `12`, `12_3`, `12_[1-4%2]`, `12+1`, `12.batch`.
    JobId,
    /// A time, or `Unknown`, `None`, `N/A`.
    Time,
    /// A length of time, or `UNLIMITED` and the like.
    Length,
    /// A word in capitals.
    State,
    /// `cpu=1,mem=4G`.
    Tres,
    /// A number, with a suffix at most.
    Number,
    /// Nothing: what stands behind the delimiter at the end of `sacct --parsable`.
    Nothing,
}

impl Look {
    /// Of the field of that name, in whatever case.
    pub fn of(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "jobname" | "submitline" | "workdir" | "comment" | "jobcomment" | "admincomment" | "systemcomment"
            | "extra" | "stdin" | "stdout" | "stderr" | "expandedstdin" | "expandedstdout" | "expandedstderr" => {
                Self::Free
            }
            "jobid" | "jobidraw" => Self::JobId,
            "submit" | "eligible" | "start" | "end" => Self::Time,
            "elapsed" | "suspended" | "timelimit" | "cputime" | "totalcpu" | "systemcpu" | "usercpu" => Self::Length,
            "state" => Self::State,
            "alloctres" | "reqtres" => Self::Tres,
            "elapsedraw" | "dbindex" | "uid" | "gid" | "associd" | "nnodes" | "ncpus" | "alloccpus" | "allocnodes"
            | "reqcpus" | "reqnodes" | "ntasks" | "restarts" => Self::Number,
            _ => Self::Any,
        }
    }

    /// Whether a value looks so. An absent value looks like everything but a job id.
    pub fn fits(self, value: &[u8]) -> bool {
        let value = value.trim_ascii();
        let all = |extra: &[u8]| value.iter().all(|byte| byte.is_ascii_digit() || extra.contains(byte));
        let digit_first = value.first().is_some_and(u8::is_ascii_digit);
        match self {
            Self::Any | Self::Free => true,
            Self::JobId => {
                digit_first && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.+-,[]%:".contains(byte))
            }
            Self::Nothing => value.is_empty(),
            _ if value.is_empty() => true,
            Self::Time => matches!(value, b"Unknown" | b"None" | b"N/A") || (digit_first && all(b"-:T .+Z")),
            Self::Length => all(b"-:.") || value.iter().all(|byte| byte.is_ascii_alphabetic() || b"_/".contains(byte)),
            Self::State => {
                value.iter().take_while(|&&byte| byte != b' ').all(|b| b.is_ascii_uppercase() || b"_+".contains(b))
            }
            Self::Tres => value.contains(&b'=') && !value.iter().any(u8::is_ascii_whitespace),
            Self::Number => digit_first && all(b".KMGTP"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_so_that_they_can_be_found() {
        assert!(NAMES.is_sorted());
        assert!(is_known("JobIDRaw") && is_known("TRESUsageInAve") && !is_known("job_id"));
    }

    #[test]
    fn job_ids_of_every_kind_look_like_job_ids() {
        for id in ["12", "12_3", "4103947_[9-11,13,16-20]", "16_[2-9%2]", "19+1", "12.batch", "12_3.extern"] {
            assert!(Look::JobId.fits(id.as_bytes()), "{id}");
        }
        for text in ["", "python train.py", "x12", "12 --name"] {
            assert!(!Look::JobId.fits(text.as_bytes()), "{text}");
        }
    }
}
