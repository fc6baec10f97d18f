//! Slurm's lists of hosts: `gpu[1-2,05],login`.

/// More names than that in one list are a mistake: the largest machines have some ten thousand nodes.
const MOST_NAMES: usize = 100_000;

/// The names of a list, in its order; none if it isn't one, or has more names than any machine has nodes.
///
/// A number keeps its leading zeros: `n[08-10]` is n08, n09, n10. Several brackets in a name multiply.
pub fn expand(list: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for item in split_outside_brackets(list)? {
        let mut partial = vec![String::new()];
        let mut rest = item;
        while let Some((before, after)) = rest.split_once('[') {
            let (inside, after) = after.split_once(']')?;
            let numbers = numbers(inside)?;
            if partial.len() * numbers.len() + names.len() > MOST_NAMES {
                return None;
            }
            partial = partial
                .iter()
                .flat_map(|name| numbers.iter().map(move |number| format!("{name}{before}{number}")))
                .collect();
            rest = after;
        }
        if rest.contains(']') {
            return None;
        }
        names.extend(partial.into_iter().map(|name| name + rest).filter(|name| !name.is_empty()));
    }
    Some(names)
}

/// The items between commas that stand in no bracket.
fn split_outside_brackets(list: &str) -> Option<Vec<&str>> {
    let (mut items, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b',' if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        if !(0..=1).contains(&depth) {
            return None;
        }
    }
    items.push(&list[start..]);
    (depth == 0).then_some(items)
}

/// `1-2,05` as numbers with their leading zeros; a step (`0-15:4`) as Slurm writes it.
pub(super) fn numbers(inside: &str) -> Option<Vec<String>> {
    let mut numbers = Vec::new();
    for part in inside.split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let width = from.len();
        let (from, to, step): (u64, u64, usize) =
            (from.trim().parse().ok()?, to.trim().parse().ok()?, step.parse().ok()?);
        if from > to || step == 0 || to - from >= MOST_NAMES as u64 || numbers.len() > MOST_NAMES {
            return None;
        }
        numbers.extend((from..=to).step_by(step).map(|n| format!("{n:0width$}")));
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn brackets_keep_zeros_multiply_and_end() {
        let check = |list: &str, names: &[&str]| assert_eq!(expand(list).unwrap(), names, "{list}");
        check("gpu[1-2]", &["gpu1", "gpu2"]);
        check("n[08-10,12],login", &["n08", "n09", "n10", "n12", "login"]);
        check("r[1-2]n[1-2]x", &["r1n1x", "r1n2x", "r2n1x", "r2n2x"]);
        check("/dev/nvidia[4-7]", &["/dev/nvidia4", "/dev/nvidia5", "/dev/nvidia6", "/dev/nvidia7"]);
        check("c[0-6:3]", &["c0", "c3", "c6"]);
        check("", &[]);
    }

    #[test]
    fn what_is_no_list_has_no_names() {
        for broken in ["gpu[1-2", "gpu1]", "gpu[2-1]", "gpu[a-b]", "gpu[1-[2]]", "n[0-99999999999]", "a[0-999]b[0-999]"]
        {
            assert_eq!(expand(broken), None, "{broken}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer(text in "[a-z0-9\\[\\],:-]{0,24}") {
            let _ = expand(&text);
        }
    }
}
