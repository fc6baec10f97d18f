//! Who is who: names, and the key of an attempt.

use std::fmt;

/// A short text that many rows share: a project, a queue, a user. Readers intern it, so that a million rows of one project
/// hold its name once.
pub type Name = arcstr::ArcStr;

/// Who an attempt is, the same in every export that tells of it (LED-4).
///
/// `cluster/job/attempt`, each part percent-encoded where it has a `/` or `%`. What the parts are made of is said at
/// [`AttemptKey::new`]. Stability: stored in every table; pinned by the test `keys_are_written_as_before`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptKey(Name);

impl AttemptKey {
    /// From its three parts.
    ///
    /// `cluster`: as the record names it, empty where it has none. `job`: the raw job id, with `_INDEX` for a task of an array.
    /// `run`: what tells one run of that job from another: `db…` (DBIndex), `sluid…`, `uid…` (pod), or the
    /// submit time with the restart number or the start, each in seconds since the epoch: `s1700000000r2`,
    /// `s1700000000b1700000100`; `s1700000000` alone for one that hasn't started; `row…` for a row without ids.
    pub fn new(cluster: &str, job: &str, run: &str) -> Self {
        let mut key = String::with_capacity(cluster.len() + job.len() + run.len() + 2);
        for (i, part) in [cluster, job, run].into_iter().enumerate() {
            if i > 0 {
                key.push('/');
            }
            let mut rest = part;
            while let Some(at) = rest.find(['/', '%']) {
                key.push_str(&rest[..at]);
                key.push_str(if rest.as_bytes()[at] == b'/' { "%2F" } else { "%25" });
                rest = &rest[at + 1..];
            }
            key.push_str(rest);
        }
        Self(key.into())
    }

    /// A key that was written by [`Self::new`], as a table gives it back.
    pub fn from_stored(key: &str) -> Self {
        Self(key.into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `cluster/job`, without the run: what `report`'s column `jobs` counts.
    pub fn job(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(job, _)| job)
    }
}

impl fmt::Display for AttemptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_before() {
        assert_eq!(AttemptKey::new("gpu", "16_2", "db77").as_str(), "gpu/16_2/db77");
        assert_eq!(AttemptKey::new("a/b", "50%", "s1").as_str(), "a%2Fb/50%25/s1");
        assert_eq!(AttemptKey::new("a/b", "5", "s1").job(), "a%2Fb/5");
    }
}
