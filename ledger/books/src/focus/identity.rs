//! Ids of a delivery: qualified, so that each is one thing's alone, and none begins like a spreadsheet's formula.

use crate::statement::EntryKey;
use cardhour_domain::{AttemptKey, Name};
use std::borrow::Cow;

/// `prj:acme/vision`: what it is, then its parts, in which `/`, `%` and `@` are percent-encoded.
pub(super) fn id<'a>(kind: &str, parts: impl IntoIterator<Item = &'a str>) -> Name {
    let mut text = format!("{kind}:");
    for (i, part) in parts.into_iter().enumerate() {
        if i > 0 {
            text.push('/');
        }
        text.push_str(&encoded(part));
    }
    text.into()
}

/// The id of an entry's project, unique among those of all organisations.
pub(super) fn project_id(key: &EntryKey) -> Option<Name> {
    let project = key.project.as_ref()?;
    Some(id("prj", key.org.iter().chain([project]).map(|name| &**name)))
}

/// A part of an id.
pub(super) fn encoded(part: &str) -> Cow<'_, str> {
    if part.contains(['/', '%', '@']) {
        Cow::Owned(part.replace('%', "%25").replace('/', "%2F").replace('@', "%40"))
    } else {
        Cow::Borrowed(part)
    }
}

/// The job's id as people know it: the middle of an attempt's key; none where a source gave none.
pub(super) fn job_id(key: &AttemptKey) -> Option<Name> {
    let job = key.as_str().split('/').nth(1)?;
    (!job.is_empty()).then(|| job.replace("%2F", "/").replace("%25", "%").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_two_things_are_never_the_same() {
        assert_eq!(id("prj", ["acme", "vision"]), "prj:acme/vision");
        assert_eq!(id("prj", ["a/b", "c"]), "prj:a%2Fb/c");
        assert_eq!(id("prj", ["a", "b/c"]), "prj:a/b%2Fc");
    }

    #[test]
    fn a_job_is_called_what_its_site_calls_it() {
        assert_eq!(job_id(&AttemptKey::new("gpu", "ns/50%2F", "s1")).unwrap(), "ns/50%2F");
        assert_eq!(job_id(&AttemptKey::new("gpu", "", "row1")), None);
    }
}
