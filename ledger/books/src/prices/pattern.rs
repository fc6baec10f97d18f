//! What a selector of a price matches: a literal, or a glob of `*` and `?`.

/// A checked pattern. `*` is any run of characters, `?` is one; anything else is itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Not given, or `*`: everything, also what is absent.
    Any,
    /// This text and no other.
    Literal(String),
    /// A glob, with the length in characters of what stands before its first wildcard.
    Glob {
        /// The text, runs of `*` made one.
        text: String,
        /// Characters before the first wildcard.
        prefix: usize,
    },
}

impl Pattern {
    /// From its text.
    pub fn new(text: &str) -> Self {
        let mut kept = String::with_capacity(text.len());
        for c in text.chars() {
            if c != '*' || !kept.ends_with('*') {
                kept.push(c);
            }
        }
        match kept.chars().position(|c| matches!(c, '*' | '?')) {
            _ if kept == "*" => Self::Any,
            None => Self::Literal(kept),
            Some(prefix) => Self::Glob { text: kept, prefix },
        }
    }

    /// Whether it matches `value`. What is absent is matched by [`Self::Any`] alone.
    pub fn matches(&self, value: Option<&str>) -> bool {
        match (self, value) {
            (Self::Any, _) => true,
            (_, None) => false,
            (Self::Literal(text), Some(value)) => text == value,
            (Self::Glob { text, .. }, Some(value)) => glob(text, value),
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Any => "*",
            Self::Literal(text) | Self::Glob { text, .. } => text,
        }
    }

    /// How much it says: given at all, a literal, characters before the first wildcard. More is more specific.
    pub fn specificity(&self) -> (u32, u32, usize) {
        match self {
            Self::Any => (0, 0, 0),
            Self::Literal(text) => (1, 1, text.chars().count()),
            Self::Glob { prefix, .. } => (1, 0, *prefix),
        }
    }
}

/// Whether `pattern` matches all of `value`. Goes back to the last `*` only, so that no pattern takes more than
/// pattern × value steps.
fn glob(pattern: &str, value: &str) -> bool {
    let (pattern, value): (Vec<char>, Vec<char>) = (pattern.chars().collect(), value.chars().collect());
    let (mut p, mut v) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while v < value.len() {
        if pattern.get(p) == Some(&'*') {
            retry = Some((p, v));
            p += 1;
        } else if pattern.get(p).is_some_and(|&c| c == '?' || c == value[v]) {
            p += 1;
            v += 1;
        } else if let Some((star, from)) = retry {
            (p, v) = (star + 1, from + 1);
            retry = Some((star, from + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_star_is_any_run_and_a_question_mark_is_one_character() {
        for (pattern, value, matched) in [
            ("NVIDIA H200*", "NVIDIA H200 NVL", true),
            ("NVIDIA H200*", "NVIDIA H200", true),
            ("NVIDIA H200*", "NVIDIA H100", false),
            ("*H?00*", "NVIDIA H100 PCIe", true),
            ("?g.10gb", "1g.10gb", true),
            ("?g.10gb", "11g.10gb", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b", false),
            ("?", "", false),
            ("卡*", "卡时", true),
            ("a.c", "abc", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(Some(value)), matched, "{pattern} on {value}");
        }
    }

    #[test]
    fn what_is_absent_is_matched_by_a_star_alone() {
        assert!(Pattern::new("*").matches(None));
        assert!(Pattern::new("**").matches(None));
        assert!(!Pattern::new("?*").matches(None));
        assert!(!Pattern::new("a*").matches(None));
    }

    proptest! {
        /// Another road to the same answer: by recursion, as a glob is defined.
        #[test]
        fn a_glob_matches_as_its_definition_says(pattern in "[ab*?]{0,8}", value in "[ab]{0,8}") {
            fn by_definition(p: &[u8], v: &[u8]) -> bool {
                match (p.split_first(), v.split_first()) {
                    (None, _) => v.is_empty(),
                    (Some((b'*', rest)), _) => (0..=v.len()).any(|i| by_definition(rest, &v[i..])),
                    (Some((b'?', rest)), Some((_, tail))) => by_definition(rest, tail),
                    (Some((c, rest)), Some((d, tail))) => c == d && by_definition(rest, tail),
                    (Some(_), None) => false,
                }
            }
            let expected = by_definition(pattern.as_bytes(), value.as_bytes());
            prop_assert_eq!(Pattern::new(&pattern).matches(Some(&value)), expected);
        }
    }
}
