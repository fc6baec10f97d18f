//! UIDs of pods without an API server: from the folder where the kubelet keeps their logs.

use super::kubelet_list::PodName;
use cardhour_domain::Name;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// UIDs that the kubelet's folder of logs tells, by name.
///
/// The kubelet makes a folder `NAMESPACE_NAME_UID` for each pod before it starts it and takes it away with the pod. Neither a namespace nor a
/// name can have a `_`. Two pods that followed each other under one name may both have theirs for a while: then nothing is told of the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodFolder {
    uids: BTreeMap<PodName, Option<Name>>,
}

impl PodFolder {
    /// Reads the folder, on most hosts `/var/log/pods`. Errors: it can't be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(Self::of(names.iter().map(String::as_str)))
    }

    /// From the names of its entries.
    fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut uids = BTreeMap::new();
        for name in names {
            let parts: Vec<&str> = name.split('_').collect();
            if let [namespace, name, uid] = parts[..]
                && !uid.is_empty()
            {
                let uid: Name = uid.into();
                uids.entry(PodName::new(namespace, name)).and_modify(|uid| *uid = None).or_insert(Some(uid));
            }
        }
        Self { uids }
    }

    /// The UID of the pod that has a name, where the folder tells of one alone.
    pub fn uid(&self, pod: &PodName) -> Option<&Name> {
        self.uids.get(pod)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_tells_a_uid_where_one_pod_alone_has_the_name() {
        let folder =
            PodFolder::of(["a_web-0_u-1", "b_web-0_u-2", "a_db-0_u-3", "a_db-0_u-4", "lost+found", "a_b", "a_c_"]);
        let uid = |namespace: &str, name: &str| folder.uid(&PodName::new(namespace, name)).map(|uid| uid.to_string());
        assert_eq!(uid("a", "web-0").as_deref(), Some("u-1"));
        assert_eq!(uid("b", "web-0").as_deref(), Some("u-2"));
        assert_eq!(uid("a", "db-0"), None);
        assert_eq!(uid("a", "c"), None);
    }
}
