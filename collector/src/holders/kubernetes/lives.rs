//! Which pod it is that has a name: the run of its key.
//!
//! The kubelet's list has names alone. The UID comes from the API server, else from the kubelet's folder of logs; until either tells, a run
//! gets a stand-in. A run keeps its name while the pod lives, whatever is learnt of it later: a UID that comes late belongs to the run that is
//! already written down, and doesn't hold its devices a second time.

use super::kubelet_list::{PodGrant, PodName};
use super::pod::PodFacts;
use cardhour_domain::{Name, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// A pod's life, as far as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// The run of its key: `uid…`; `seen…` with the seconds of its first look where nothing told its UID then.
    pub run: Name,
    /// What is known of it.
    pub facts: PodFacts,
    first_seen: Timestamp,
    given: BTreeSet<Name>,
}

/// Lives of the names that are there.
#[derive(Clone, Debug, Default)]
pub struct Lives {
    by_name: BTreeMap<PodName, Life>,
}

/// What tells of a pod at a look.
#[derive(Debug)]
pub struct Word<'a> {
    /// Of which name.
    pub pod: &'a PodName,
    /// What the kubelet gave it; none where the API server alone tells of it.
    pub grant: Option<&'a PodGrant>,
    /// What the API server says of the name now; none where it can't be asked, or knows no such pod.
    pub facts: Option<&'a PodFacts>,
    /// What the kubelet's folder says.
    pub folder_uid: Option<&'a Name>,
}

impl Lives {
    /// The life that is told of: the one that had the name, or a new one.
    pub fn settle(&mut self, at: Timestamp, word: &Word<'_>) -> &Life {
        let given = given(word.grant);
        let facts = word
            .facts
            .cloned()
            .unwrap_or_else(|| PodFacts { uid: word.folder_uid.cloned(), ..PodFacts::named(word.pod) });
        let same = self.by_name.get(word.pod).is_some_and(|life| life.goes_on(&facts, &given, word.facts.is_some()));
        if !same {
            let run = match &facts.uid {
                Some(uid) => Name::from(format!("uid{uid}")),
                None => Name::from(format!("seen{}", at.unix_ms().div_euclid(1000))),
            };
            self.by_name.insert(word.pod.clone(), Life { run, facts, first_seen: at, given });
        } else if let Some(life) = self.by_name.get_mut(word.pod) {
            if !given.is_empty() {
                life.given = given;
            }
            // What the API server said stays while it is silent, and is better than what the folder says.
            if word.facts.is_some() {
                life.facts = facts;
            } else if life.facts.uid.is_none() {
                life.facts.uid = facts.uid;
            }
        }
        &self.by_name[word.pod]
    }

    /// The life that has a name now.
    pub fn get(&self, pod: &PodName) -> Option<&Life> {
        self.by_name.get(pod)
    }

    /// Forgets the names that are no more.
    pub fn keep(&mut self, names: &BTreeSet<PodName>) {
        self.by_name.retain(|name, _| names.contains(name));
    }
}

impl Life {
    /// Whether what is told now is of this life.
    fn goes_on(&self, now: &PodFacts, given: &BTreeSet<Name>, is_from_server: bool) -> bool {
        match (&self.facts.uid, &now.uid) {
            (Some(known), Some(told)) => {
                // A static pod has one UID with the kubelet and another with the API server.
                let is_mirrored = |a: &PodFacts, uid: &Name| a.static_uid.as_ref() == Some(uid);
                known == told || is_mirrored(&self.facts, told) || is_mirrored(now, known)
            }
            (None, Some(_)) if is_from_server => {
                // A pod that was made after the stand-in was seen came after it.
                self.had(given) && now.created_at.is_none_or(|created| created <= self.first_seen)
            }
            _ => self.had(given),
        }
    }

    /// Whether it had these devices: a pod never changes its own. Nothing given says nothing.
    fn had(&self, given: &BTreeSet<Name>) -> bool {
        given.is_empty() || self.given.is_empty() || self.given == *given
    }
}

/// What a pod was given, as names that tell one set of devices from another.
fn given(grant: Option<&PodGrant>) -> BTreeSet<Name> {
    let Some(grant) = grant else { return BTreeSet::new() };
    let plugin = grant.devices.iter().map(|device| Name::from(format!("{}={}", device.resource, device.id)));
    let claimed = grant.claimed.iter().map(|claimed| {
        let part = claimed.share_id.as_deref().unwrap_or("");
        Name::from(format!("{}={}/{}/{}/{part}", claimed.claim, claimed.driver, claimed.pool, claimed.device))
    });
    plugin.chain(claimed).collect()
}

#[cfg(test)]
mod tests;
