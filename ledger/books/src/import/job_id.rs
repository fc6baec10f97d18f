//! Slurm's job ids: `123`, `123_4`, `123_[9-11,13,16-20%2]`, `19+1`, and steps of them such as `123_4.batch`.

/// The most tasks one row may stand for. Slurm's own limit (`MaxArraySize`) is 4,000,001; nobody starts a range in one
/// row that is nearly as long.
pub const MOST_TASKS: usize = 100_000;

/// A job id, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlurmJobId<'a> {
    /// The whole without the step: `123_4`, `19+1`.
    pub job: &'a str,
    /// The number in front: the array's or het job's own id. Ids pass 32 bits (S12), so 64.
    pub base: u64,
    /// Which task or tasks of an array.
    pub task: Task<'a>,
    /// The step; none for the job itself.
    pub step: Option<&'a str>,
}

/// Which tasks of an array an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task<'a> {
    /// It is no array.
    None,
    /// This one.
    One(u64),
    /// A set such as `9-11,13,16-20%2`.
    Set(&'a str),
}

/// What is wrong with a job id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobIdError {
    /// Not an id.
    #[error("{0:?} is not a Slurm job id such as 123, 123_4, 123_[1-3] or 19+1")]
    Unreadable(String),
    /// A set that Slurm cut off, or that is none.
    #[error("the set of tasks {0:?} is cut off or unreadable")]
    Tasks(String),
    /// Too many.
    #[error("the set of tasks {0:?} stands for more than {MOST_TASKS} tasks")]
    TooMany(String),
}

impl<'a> SlurmJobId<'a> {
    /// Takes an id apart. Errors: it isn't one. A set of tasks is looked into by [`tasks_of`] only.
    pub fn parse(text: &'a str) -> Result<Self, JobIdError> {
        let unreadable = || JobIdError::Unreadable(text.chars().take(80).collect());
        let (base, mut at) = number(text).ok_or_else(unreadable)?;
        let mut task = Task::None;
        let mut step = None;
        let mut job_end = text.len();
        while at < text.len() {
            let rest = text.get(at + 1..).ok_or_else(unreadable)?;
            match text.as_bytes()[at] {
                b'_' if task == Task::None && rest.starts_with('[') => {
                    let close = rest.find(']').ok_or_else(|| JobIdError::Tasks(text.chars().take(80).collect()))?;
                    task = Task::Set(&rest[1..close]);
                    at += close + 2;
                }
                b'_' if task == Task::None => {
                    let (index, length) = number(rest).ok_or_else(unreadable)?;
                    task = Task::One(index);
                    at += 1 + length;
                }
                b'+' => at += 1 + number(rest).ok_or_else(unreadable)?.1,
                b'.' if !rest.is_empty() => {
                    step = Some(rest);
                    job_end = at;
                    at = text.len();
                }
                _ => return Err(unreadable()),
            }
        }
        Ok(Self { job: &text[..job_end], base, task, step })
    }
}

/// The tasks that a set names, in its order: `9-11,13`, `0-10:2`; a limit of running tasks (`%2`) is left out.
pub fn tasks_of(set: &str) -> Result<Vec<u64>, JobIdError> {
    let unreadable = || JobIdError::Tasks(set.chars().take(80).collect());
    let mut tasks = Vec::new();
    for item in set.split_once('%').map_or(set, |(set, _)| set).split(',') {
        let (range, step) = match item.split_once(':') {
            Some((range, step)) => (range, all_digits(step).filter(|step| *step > 0).ok_or_else(unreadable)?),
            None => (item, 1),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (all_digits(first).ok_or_else(unreadable)?, all_digits(last).ok_or_else(unreadable)?);
        if last < first {
            return Err(unreadable());
        }
        if (last - first) / step >= (MOST_TASKS - tasks.len()) as u64 {
            return Err(JobIdError::TooMany(set.chars().take(80).collect()));
        }
        tasks.extend((first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX)));
    }
    Ok(tasks)
}

/// The number at the front and how many digits it has.
fn number(text: &str) -> Option<(u64, usize)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..length].parse().ok().map(|n| (n, length))
}

fn all_digits(text: &str) -> Option<u64> {
    number(text).filter(|(_, length)| *length == text.len()).map(|(n, _)| n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, job: &str, base: u64, task: Task<'_>, step: Option<&str>) {
        assert_eq!(SlurmJobId::parse(text).unwrap(), SlurmJobId { job, base, task, step }, "{text}");
    }

    #[test]
    fn every_form_of_a_job_id_is_taken_apart() {
        check("123", "123", 123, Task::None, None);
        check("123_4", "123_4", 123, Task::One(4), None);
        check("123_[9-11,13%2]", "123_[9-11,13%2]", 123, Task::Set("9-11,13%2"), None);
        check("19+1", "19+1", 19, Task::None, None);
        check("123.batch", "123", 123, Task::None, Some("batch"));
        check("123_4.0", "123_4", 123, Task::One(4), Some("0"));
        check("19+0.1", "19+0", 19, Task::None, Some("1"));
        check("6539191_195.extern", "6539191_195", 6_539_191, Task::One(195), Some("extern"));
    }

    #[test]
    fn s12_an_id_over_32_bits_is_kept_whole() {
        check("9999999999_4294967296", "9999999999_4294967296", 9_999_999_999, Task::One(4_294_967_296), None);
    }

    #[test]
    fn a_set_of_tasks_is_listed_in_its_order() {
        assert_eq!(tasks_of("9-11,13,16-20%2").unwrap(), [9, 10, 11, 13, 16, 17, 18, 19, 20]);
        assert_eq!(tasks_of("0-10:2").unwrap(), [0, 2, 4, 6, 8, 10]);
        assert_eq!(tasks_of("91,100-102").unwrap(), [91, 100, 101, 102]);
    }

    #[test]
    fn a_set_that_is_cut_off_or_endless_is_an_error() {
        for set in ["1,3,...", "1-", "", "3-1", "1-9:0", "a"] {
            assert!(matches!(tasks_of(set), Err(JobIdError::Tasks(_))), "{set}");
        }
        assert!(matches!(tasks_of("0-18446744073709551615"), Err(JobIdError::TooMany(_))));
        assert!(matches!(tasks_of("0-99999,1"), Err(JobIdError::TooMany(_))));
        for text in ["", "x12", "12_", "12_x", "12+", "12.", "12 3", "12_[1-3", "99999999999999999999", "12é"] {
            assert!(SlurmJobId::parse(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_job_id_panic(text in "[0-9_+.,%:\\[\\]\\-é]{0,16}") {
            if let Ok(SlurmJobId { task: Task::Set(set), .. }) = SlurmJobId::parse(&text) {
                let _ = tasks_of(set);
            }
        }
    }
}
