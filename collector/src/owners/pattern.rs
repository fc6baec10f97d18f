//! Names that rules are for: a name as it stands, or one with `*`.

/// The rule for a name: one that has it as it stands, else the pattern with the most letters beside its stars, else the later of two such.
pub(super) fn best<'r, R>(rules: &'r [R], name: &str, pattern_of: impl Fn(&R) -> &str) -> Option<&'r R> {
    rules.iter().filter(|rule| matches(pattern_of(rule), name)).max_by_key(|rule| {
        let pattern = pattern_of(rule);
        (!pattern.contains('*'), pattern.bytes().filter(|byte| *byte != b'*').count())
    })
}

/// Whether a pattern is for a name; `*` stands for any text, also for none.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(start) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let end = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
    }
    left.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_for_none() {
        for (pattern, name) in
            [("ml-*", "ml-"), ("ml-*", "ml-vision"), ("*", ""), ("*-prod", "a-prod"), ("a*b*c", "axbxbc")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("ml-*", "xml-a"), ("*-prod", "a-prod2"), ("a*b", "a"), ("ab*ba", "aba"), ("research", "research2")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn the_name_itself_beats_a_pattern_and_a_longer_pattern_a_shorter() {
        let rules = ["ml-vision", "ml-vis*", "*"];
        let best = |name| best(&rules, name, |rule| rule).copied();
        assert_eq!(best("ml-vision"), Some("ml-vision"));
        assert_eq!(best("ml-visual"), Some("ml-vis*"));
        assert_eq!(best("other"), Some("*"));
    }
}
