//! Slurm's own words: job states and memory.

use cardhour_domain::JobState;

/// The words of `sacct`, longest meaning first, with the short codes of `squeue`.
const STATES: [(&str, &str, JobState); 14] = [
    ("PENDING", "PD", JobState::Pending),
    ("RUNNING", "R", JobState::Running),
    ("SUSPENDED", "S", JobState::Suspended),
    ("COMPLETED", "CD", JobState::Completed),
    ("FAILED", "F", JobState::Failed),
    ("CANCELLED", "CA", JobState::Cancelled),
    ("TIMEOUT", "TO", JobState::Timeout),
    ("DEADLINE", "DL", JobState::Timeout),
    ("OUT_OF_MEMORY", "OOM", JobState::OutOfMemory),
    ("NODE_FAIL", "NF", JobState::NodeFail),
    ("BOOT_FAIL", "BF", JobState::NodeFail),
    ("PREEMPTED", "PR", JobState::Preempted),
    ("REQUEUED", "RQ", JobState::Requeued),
    ("RESIZING", "RS", JobState::Resized),
];

/// The state that a text of Slurm names: its first word, so `CANCELLED by 1002` and `RUNNING,COMPLETING` are read.
///
/// A word that `sacct` cut at its column's width (`OUT_OF_ME+`, `CANCELLED+`) is read as well. A sibling revoked by its
/// federation is cancelled. Any other word is [`JobState::Unknown`] (design §7).
pub fn state_of(text: &str) -> JobState {
    let end = text.find([' ', ',', '+', '|']).unwrap_or(text.len());
    let word = &text[..end];
    let is_cut = text[end..].starts_with('+');
    if word.eq_ignore_ascii_case("REVOKED") || word == "RV" {
        return JobState::Cancelled;
    }
    for (name, code, state) in STATES {
        if name.eq_ignore_ascii_case(word) || code == word || (is_cut && word.len() >= 4 && name.starts_with(word)) {
            return state;
        }
    }
    JobState::Unknown
}

/// Main memory that `ReqMem` asks for over the whole job. Unit: MiB.
///
/// `31000Mn` is by node and `3000Mc` by CPU (Slurm before 21.08), `62.50G` the whole. Without a count of nodes or CPUs one is
/// taken. None: no memory was asked for (`0n`: all the node has), or the text is none; a job is never lost over it.
pub fn requested_memory_mib(text: &str, nodes: Option<i64>, cpus: Option<i64>) -> Option<i64> {
    let (amount, times) = match text.as_bytes().last()? {
        b'n' => (&text[..text.len() - 1], nodes.unwrap_or(1)),
        b'c' => (&text[..text.len() - 1], cpus.unwrap_or(1)),
        _ => (text, 1),
    };
    let (number, kib) = match amount.as_bytes().last()? {
        b'K' => (&amount[..amount.len() - 1], 1),
        b'M' => (&amount[..amount.len() - 1], 1 << 10),
        b'G' => (&amount[..amount.len() - 1], 1 << 20),
        b'T' => (&amount[..amount.len() - 1], 1 << 30),
        b'P' => (&amount[..amount.len() - 1], 1i64 << 40),
        _ => (amount, 1 << 10),
    };
    let exact = rust_decimal::Decimal::from_str_exact(number).ok()?;
    let mib = exact.checked_mul(kib.into())?.checked_div(1024.into())?.checked_mul(times.into())?;
    i64::try_from(mib.round()).ok().filter(|mib| *mib > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_its_first_word_and_any_other_word_is_unknown() {
        for (text, state) in [
            ("CANCELLED by 1002", JobState::Cancelled),
            ("CANCELLED+", JobState::Cancelled),
            ("OUT_OF_ME+", JobState::OutOfMemory),
            ("BOOT_FAIL", JobState::NodeFail),
            ("DEADLINE", JobState::Timeout),
            ("REVOKED", JobState::Cancelled),
            ("RESIZING", JobState::Resized),
            ("RUNNING,COMPLETING", JobState::Running),
            ("completed", JobState::Completed),
            ("CD", JobState::Completed),
            ("FOO", JobState::Unknown),
            ("BAR", JobState::Unknown),
            ("CANCELLEDX", JobState::Unknown),
            ("", JobState::Unknown),
        ] {
            assert_eq!(state_of(text), state, "{text}");
        }
    }

    #[test]
    fn memory_by_node_and_by_cpu_is_told_for_the_whole_job() {
        assert_eq!(requested_memory_mib("31000Mn", Some(2), None), Some(62_000));
        assert_eq!(requested_memory_mib("3000Mc", Some(32), Some(256)), Some(768_000));
        assert_eq!(requested_memory_mib("62.50G", Some(8), None), Some(64_000));
        assert_eq!(requested_memory_mib("0n", Some(1), None), None);
        assert_eq!(requested_memory_mib("2147486648Mn", Some(1), None), Some(2_147_486_648));
        assert_eq!(requested_memory_mib("9999999999999999999999999Tn", Some(900), None), None);
        assert_eq!(requested_memory_mib("?", None, None), None);
        assert_eq!(requested_memory_mib("", None, None), None);
        assert_eq!(requested_memory_mib("é", None, None), None);
    }
}
