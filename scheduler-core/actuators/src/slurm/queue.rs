//! What `squeue` has of a job, in columns that nobody but Slurm writes.

use super::job::RunSight;
use cardhour_domain::Timestamp;

/// The columns, each wider than its values can be. None of them holds a user's text, and none is empty.
pub(super) const FIELDS: &str = "JobID:24,ArrayJobID:24,ArrayTaskID:64,HetJobID:24,HetJobOffset:24,State:24,UserName:64,RestartCnt:16,StartTime:24,BatchFlag:12";

/// The row of a job; none where it isn't there. Errors: a row that can't be read.
pub(super) fn find(text: &str, id: u64) -> Result<Option<RunSight>, String> {
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let &[raw, array, task, leader, offset, state, user, restarts, start, batch] = fields.as_slice() else {
            return Err(format!("squeue printed {line:?}: ten columns were asked for"));
        };
        // Asked for the first number of an array, it prints all of it; tasks that wait together have a range for a number.
        if raw.parse() != Ok(id) {
            continue;
        }
        let name = match (array.parse::<u64>(), task.parse::<u32>()) {
            (Ok(array), Ok(task)) => format!("{array}_{task}"),
            (_, Err(_)) if task == "N/A" => raw.to_owned(),
            // The number is that of tasks that wait, not of a run.
            (Ok(_) | Err(_), _) => continue,
        };
        let number = |text: &str| text.parse::<u32>().map_err(|_| format!("squeue printed {text:?}: no number"));
        return Ok(Some(RunSight {
            name,
            state: state.to_owned(),
            user: user.to_owned(),
            restarts: number(restarts)?,
            started_at: start.parse().ok().filter(|seconds| *seconds > 0).map(Timestamp::from_unix_s),
            is_batch: number(batch)? == 1,
            led_by: leader.parse().ok().filter(|_| offset.parse().is_ok_and(|offset: u32| offset > 0)),
        }));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Slurm 22.05 printed it: a plain job, an array of which two tasks run and two wait, and a job of two parts.
    const PRINTED: &str = "\
2 2 2-3%2 N/A N/A PENDING alice 0 N/A 1
1 1 N/A N/A N/A RUNNING alice 0 1796054236 1
5 2 0 N/A N/A RUNNING alice 2 1796054236 1
6 2 1 N/A N/A COMPLETING alice 0 1796054236 1
3 3 N/A 3 0 RUNNING alice 0 1796054236 1
4 4 N/A 3 1 RUNNING alice 0 1796054236 0
";

    fn shown(id: u64) -> String {
        let run = find(PRINTED, id).unwrap();
        run.map_or("none".to_owned(), |run| {
            let start = run.started_at.map(|at| at.unix_ms() / 1000);
            format!("{} {} {} {start:?} {} {:?}", run.name, run.state, run.restarts, run.is_batch, run.led_by)
        })
    }

    #[test]
    fn a_task_of_an_array_is_named_so_that_the_array_is_left_alone() {
        assert_eq!(shown(1), "1 RUNNING 0 Some(1796054236) true None");
        assert_eq!(shown(5), "2_0 RUNNING 2 Some(1796054236) true None");
        assert_eq!(shown(6), "2_1 COMPLETING 0 Some(1796054236) true None");
        // Number 2 is that of two tasks that wait: no run.
        assert_eq!(shown(2), "none");
        assert_eq!(shown(9), "none");
    }

    #[test]
    fn a_part_of_a_job_of_several_parts_says_who_leads() {
        assert_eq!(shown(3), "3 RUNNING 0 Some(1796054236) true None");
        assert_eq!(shown(4), "4 RUNNING 0 Some(1796054236) false Some(3)");
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_a_job_that_is_gone() {
        assert!(find("1 1 N/A N/A N/A RUNNING alice 0 1796054236", 1).unwrap_err().contains("ten columns"));
        assert!(find("1 1 N/A N/A N/A RUNNING alice x 1796054236 1", 1).unwrap_err().contains("no number"));
        assert_eq!(find("\n", 1), Ok(None));
    }
}
