//! What holders' processes did between two looks: processor time, and bytes read and written.

use super::proc_entry::{ProcessId, TICK_MS};
use cardhour_domain::{AttemptKey, Gap, Reading};
use std::collections::{BTreeMap, HashMap};

/// Counters of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Which.
    pub id: ProcessId,
    /// Its parent.
    pub parent: u32,
    /// Processor time of its own and of children that it waited for. Unit: clock ticks.
    pub ticks: u64,
    /// Read and written, its own and of children that it waited for; none where that can't be read. Unit: bytes.
    pub io_bytes: Option<u64>,
}

/// What a holder did since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Processor time. Unit: milliseconds.
    pub cpu_ms: Reading<i64>,
    /// Read and written. Unit: bytes.
    pub io_bytes: Reading<i64>,
}

/// Counters of the last look.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    last: HashMap<AttemptKey, Vec<Counted>>,
}

impl Meter {
    /// What each holder did since the last look. One that wasn't there then has nothing to compare with.
    pub fn step(&mut self, now: BTreeMap<AttemptKey, Vec<Counted>>) -> BTreeMap<AttemptKey, Effort> {
        let effort = |(key, now): (&AttemptKey, &Vec<Counted>)| {
            let missing =
                Effort { cpu_ms: Reading::Missing(Gap::CollectorDown), io_bytes: Reading::Missing(Gap::CollectorDown) };
            (key.clone(), self.last.get(key).map_or(missing, |last| difference(last, now)))
        };
        let efforts = now.iter().map(effort).collect();
        self.last = now.into_iter().collect();
        efforts
    }
}

fn difference(last: &[Counted], now: &[Counted]) -> Effort {
    let ticks = sum(last, now, |counted| Some(counted.ticks)).unwrap_or(0);
    let io = sum(last, now, |counted| counted.io_bytes);
    let count = |n: u64| Reading::Seen(i64::try_from(n).unwrap_or(i64::MAX));
    Effort {
        cpu_ms: count(ticks.saturating_mul(TICK_MS)),
        io_bytes: io.map_or(Reading::Missing(Gap::NoPermission), count),
    }
}

/// How much a counter grew over all processes. A parent takes over the whole counter of a child that ended, of which the part before the last
/// look was counted then; a new process is counted from its start. None where the counter of one can't be read.
fn sum(last: &[Counted], now: &[Counted], counter: impl Fn(&Counted) -> Option<u64>) -> Option<u64> {
    let before: HashMap<ProcessId, &Counted> = last.iter().map(|counted| (counted.id, counted)).collect();
    let there: std::collections::HashSet<ProcessId> = now.iter().map(|counted| counted.id).collect();
    let mut inherited: HashMap<u32, u64> = HashMap::new();
    for ended in last.iter().filter(|counted| !there.contains(&counted.id)) {
        *inherited.entry(ended.parent).or_default() += counter(ended).unwrap_or(0);
    }
    let mut total = 0u64;
    for counted in now {
        let grown =
            counter(counted)?.saturating_sub(before.get(&counted.id).and_then(|last| counter(last)).unwrap_or(0));
        total = total.saturating_add(grown.saturating_sub(inherited.remove(&counted.id.pid).unwrap_or(0)));
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(pid: u32, parent: u32, ticks: u64, io_bytes: u64) -> Counted {
        Counted { id: ProcessId { pid, start_ticks: u64::from(pid) }, parent, ticks, io_bytes: Some(io_bytes) }
    }

    fn seen(last: &[Counted], now: &[Counted]) -> (Option<i64>, Option<i64>) {
        let mut meter = Meter::default();
        let key = AttemptKey::new("c", "1", "b1");
        let first = meter.step(BTreeMap::from([(key.clone(), last.to_vec())]));
        assert_eq!(first[&key].cpu_ms, Reading::Missing(Gap::CollectorDown));
        let effort = meter.step(BTreeMap::from([(key.clone(), now.to_vec())]))[&key];
        (effort.cpu_ms.seen(), effort.io_bytes.seen())
    }

    #[test]
    fn growth_of_all_processes_is_added_and_a_new_one_counts_from_its_start() {
        // 30 ticks and 20 ticks of 10 ms each.
        assert_eq!(
            seen(&[counted(1, 0, 100, 1000)], &[counted(1, 0, 130, 1500), counted(2, 1, 20, 7)]),
            (Some(500), Some(507))
        );
        assert_eq!(seen(&[counted(1, 0, 100, 0)], &[counted(1, 0, 100, 0)]), (Some(0), Some(0)));
    }

    #[test]
    fn what_a_parent_takes_over_from_a_child_that_ended_is_not_counted_twice() {
        let before = [counted(1, 0, 10, 100), counted(2, 1, 500, 5000)];
        // The child did 20 ticks more and ended; its parent did 3 of its own: 10 + 520 + 3.
        assert_eq!(seen(&before, &[counted(1, 0, 533, 5300)]), (Some(230), Some(200)));
        // A parent that doesn't wait takes nothing over, and that is not less than nothing.
        assert_eq!(seen(&before, &[counted(1, 0, 13, 100)]), (Some(0), Some(0)));
    }

    #[test]
    fn a_pid_that_came_round_again_is_another_process() {
        let mut again = counted(1, 0, 5, 5);
        again.id.start_ticks = 99;
        assert_eq!(seen(&[counted(1, 0, 400, 400)], &[again]), (Some(50), Some(5)));
    }

    #[test]
    fn bytes_that_cannot_be_read_are_missing_and_not_nothing() {
        let hidden = Counted { io_bytes: None, ..counted(1, 0, 130, 0) };
        assert_eq!(seen(&[counted(1, 0, 100, 0)], &[hidden]), (Some(300), None));
    }
}
