//! Slurm's host lists: `cpn-f13-03-[01-02],cpn-[1,3-5],rack[1-2]n[01-03]`.

use crate::import::time::is_absent;

/// The most names one list may stand for: above any cluster there is, so that a hostile list can't fill the memory.
pub const MOST_NODES: usize = 100_000;

/// What is wrong with a host list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeListError {
    /// A bracket that isn't closed, or a range that is none.
    #[error("{0:?} is not a host list such as node[01-04,7],login1")]
    Unreadable(String),
    /// Too many names.
    #[error("{0:?} stands for more than {MOST_NODES} nodes")]
    TooMany(String),
}

/// The names a list stands for, in its order; zeros at the front are kept. None of them for `None assigned`.
pub fn expand_nodes(text: &str) -> Result<Vec<String>, NodeListError> {
    if is_absent(text) {
        return Ok(Vec::new());
    }
    if !text.contains(['[', ',']) {
        return if text.contains(']') { Err(unreadable(text)) } else { Ok(vec![text.to_owned()]) };
    }
    let mut names = Vec::new();
    for term in terms(text) {
        let term = term?.trim();
        if !term.is_empty() {
            let room = MOST_NODES - names.len();
            names.extend(expand_term(term, room)?);
        }
    }
    Ok(names)
}

/// The parts between the commas that stand outside of brackets.
fn terms(text: &str) -> impl Iterator<Item = Result<&str, NodeListError>> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let from = rest?;
        let mut depth = 0i32;
        for (i, c) in from.bytes().enumerate() {
            match c {
                b'[' => depth += 1,
                b']' => depth -= 1,
                b',' if depth == 0 => {
                    rest = Some(&from[i + 1..]);
                    return Some(Ok(&from[..i]));
                }
                _ => {}
            }
            if !(0..=1).contains(&depth) {
                break;
            }
        }
        rest = None;
        Some(if depth == 0 { Ok(from) } else { Err(unreadable(from)) })
    })
}

/// A name with any number of brackets: the product of their items, the last bracket running fastest.
fn expand_term(term: &str, room: usize) -> Result<Vec<String>, NodeListError> {
    let mut names = vec![String::new()];
    let mut rest = term;
    while let Some(open) = rest.find('[') {
        let close = open + rest[open..].find(']').ok_or_else(|| unreadable(term))?;
        let items = bracket_items(&rest[open + 1..close], term, room)?;
        if names.len().saturating_mul(items.len()) > room {
            return Err(NodeListError::TooMany(shown(term)));
        }
        let prefix = &rest[..open];
        names = names.iter().flat_map(|name| items.iter().map(move |item| format!("{name}{prefix}{item}"))).collect();
        rest = &rest[close + 1..];
    }
    if names.len() > room {
        return Err(NodeListError::TooMany(shown(term)));
    }
    for name in &mut names {
        name.push_str(rest);
    }
    Ok(names)
}

/// `01-03,7` → 01 02 03 7.
fn bracket_items(text: &str, term: &str, room: usize) -> Result<Vec<String>, NodeListError> {
    let mut items = Vec::new();
    for item in text.split(',').map(str::trim) {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let number =
            |digits: &str| digits.bytes().all(|c| c.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
        let (Some(low), Some(high)) = (number(first), number(last)) else { return Err(unreadable(term)) };
        if high < low {
            return Err(unreadable(term));
        }
        if high - low >= (room.saturating_sub(items.len())) as u64 {
            return Err(NodeListError::TooMany(shown(term)));
        }
        items.extend((low..=high).map(|n| format!("{n:0width$}", width = first.len())));
    }
    Ok(items)
}

fn unreadable(text: &str) -> NodeListError {
    NodeListError::Unreadable(shown(text))
}

/// The first 80 characters: a list in a message need not be whole.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, names: &str) {
        assert_eq!(expand_nodes(text).unwrap().join(" "), names, "{text}");
    }

    #[test]
    fn a_host_list_is_expanded_in_its_order() {
        check("cpn-f11-31", "cpn-f11-31");
        check("cpn-f13-03-[01-02],cpn-[1,3-5]", "cpn-f13-03-01 cpn-f13-03-02 cpn-1 cpn-3 cpn-4 cpn-5");
        check("rack[1-2]n[09-10]", "rack1n09 rack1n10 rack2n09 rack2n10");
        check("d13n[03,05,07-08]x,login", "d13n03x d13n05x d13n07x d13n08x login");
        check("None assigned", "");
        check("n[099-101]", "n099 n100 n101");
    }

    #[test]
    fn a_list_that_is_none_or_too_long_is_an_error() {
        for text in ["a[1-2", "a1-2]", "a[2-1]", "a[x]", "a[]", "a[[1]]", "a]1[", "a[1-18446744073709551616]"] {
            assert!(matches!(expand_nodes(text), Err(NodeListError::Unreadable(_))), "{text}");
        }
        for text in ["a[1-100001]", "a[0-999]b[0-999]", "a[0-18446744073709551615]", "a[1-99999],b[1-2]"] {
            assert!(matches!(expand_nodes(text), Err(NodeListError::TooMany(_))), "{text}");
        }
        assert_eq!(expand_nodes("a[1-100000]").unwrap().len(), MOST_NODES);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_host_list_panic(text in "[a-c0-9,\\[\\]\\-é ]{0,24}") {
            let _ = expand_nodes(&text);
        }
    }
}
