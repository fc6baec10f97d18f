//! The pods of this node, as the API server last told.

use super::kubelet_list::PodName;
use super::pod::{PodFacts, ToldPod};
use cardhour_domain::Name;
use std::collections::BTreeMap;

/// Pods bound to one node, by name.
///
/// A name has one pod at a moment; which one, its UID says. Pods of other nodes never get in, whatever the server sends.
#[derive(Clone, Debug)]
pub struct PodCache {
    node: Name,
    pods: BTreeMap<PodName, PodFacts>,
}

impl PodCache {
    /// Empty, for a node.
    pub fn new(node: Name) -> Self {
        Self { node, pods: BTreeMap::new() }
    }

    /// Takes a whole list in: what isn't in it is no more.
    pub fn replace(&mut self, pods: impl IntoIterator<Item = ToldPod>) {
        self.pods.clear();
        pods.into_iter().for_each(|pod| self.put(pod));
    }

    /// Takes in a pod that was made or has changed.
    pub fn put(&mut self, pod: ToldPod) {
        if pod.node.as_ref() == Some(&self.node) {
            self.pods.insert(pod.facts.pod(), pod.facts);
        }
    }

    /// Takes out a pod that was deleted, unless another already has its name.
    pub fn remove(&mut self, pod: ToldPod) {
        let gone = pod.facts;
        if self.pods.get(&gone.pod()).is_some_and(|pod| pod.uid == gone.uid) {
            self.pods.remove(&gone.pod());
        }
    }

    /// The pod that has a name.
    pub fn get(&self, pod: &PodName) -> Option<&PodFacts> {
        self.pods.get(pod)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &PodFacts> {
        self.pods.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(node: &str, namespace: &str, uid: &str) -> ToldPod {
        let metadata = serde_json::json!({"name": "database-0", "namespace": namespace, "uid": uid});
        serde_json::from_value(serde_json::json!({"metadata": metadata, "spec": {"nodeName": node}})).unwrap()
    }

    fn uid(cache: &PodCache, namespace: &str) -> Option<Name> {
        cache.get(&PodName::new(namespace, "database-0")).and_then(|pod| pod.uid.clone())
    }

    #[test]
    fn k10_two_pods_of_one_name_in_two_namespaces_are_two() {
        let mut cache = PodCache::new("n1".into());
        cache.replace([pod("n1", "team-a", "u-a"), pod("n1", "team-b", "u-b")]);
        assert_eq!(uid(&cache, "team-a").as_deref(), Some("u-a"));
        assert_eq!(uid(&cache, "team-b").as_deref(), Some("u-b"));
    }

    #[test]
    fn a_late_word_of_a_deletion_takes_no_later_pod_away() {
        let mut cache = PodCache::new("n1".into());
        cache.put(pod("n1", "a", "u-1"));
        cache.put(pod("n1", "a", "u-2"));
        cache.remove(pod("n1", "a", "u-1"));
        assert_eq!(uid(&cache, "a").as_deref(), Some("u-2"));
        cache.remove(pod("n1", "a", "u-2"));
        assert_eq!(uid(&cache, "a"), None);
    }

    #[test]
    fn a_pod_of_another_node_is_none_of_ours() {
        let mut cache = PodCache::new("n1".into());
        cache.replace([pod("n2", "a", "u-1")]);
        assert_eq!(cache.iter().count(), 0);
    }
}
