//! Who pays, by the rules of the site.
//!
//! Who pays is not the user's to write: it comes from the account or the namespace, which schedulers grant, else from the user, whom the
//! system knows. A label may only choose among the projects that those are allowed; a claim beyond is kept as
//! [`Owner::refused_project`](cardhour_domain::Owner::refused_project), and the default pays.
//!
//! Start at [`owner`]; the section `[owners]` of the config is read by [`Rules::from_table`].

mod pattern;
mod rules;
mod section;

pub use rules::{Grant, QueueRule, Rules, Unmapped};
pub use section::Fault;

use cardhour_domain::{HolderKind, Name, Owner};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a holder that says who pays for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What it is.
    pub kind: HolderKind,
    /// Its account with the scheduler, which the scheduler granted.
    pub account: Option<Name>,
    /// Its namespace, which the cluster's administrators granted.
    pub namespace: Option<Name>,
    /// Its user's name, as the system or the scheduler knows it.
    pub user: Option<Name>,
    /// Partition, queue or local queue.
    pub queue: Option<Name>,
    /// Quality of service.
    pub qos: Option<Name>,
    /// What the user wrote: labels and annotations, `key=value` of a job's comment, variables of the environment.
    pub labels: BTreeMap<Name, Name>,
}

impl Facts {
    /// Of a holder of which no more is known than what it is.
    pub fn of(kind: HolderKind) -> Self {
        Self { kind, account: None, namespace: None, user: None, queue: None, qos: None, labels: BTreeMap::new() }
    }
}

/// Who pays for a holder.
///
/// The account's grant comes first, then the namespace's, then the user's; what one leaves open the next says. Which projects a label may
/// choose is what all of those that apply allow together.
pub fn owner(rules: &Rules, facts: &Facts) -> Owner {
    let grants: Vec<&Grant> =
        [(&facts.account, &rules.accounts), (&facts.namespace, &rules.namespaces), (&facts.user, &rules.users)]
            .into_iter()
            .filter_map(|(name, grants)| {
                name.as_ref().and_then(|name| pattern::best(grants, name, |grant| &grant.name))
            })
            .collect();
    let first = |part: fn(&Grant) -> &Option<Name>| grants.iter().find_map(|grant| part(grant).clone());
    let as_is = match rules.unmapped {
        Unmapped::AsIs => facts.account.as_ref().or(facts.namespace.as_ref()).cloned(),
        Unmapped::Unowned => None,
    };
    let default = first(|grant| &grant.project).or(as_is);
    let allowed: BTreeSet<&Name> = grants.iter().flat_map(|grant| &grant.allowed).chain(&default).collect();

    let asked = rules.project_labels.iter().find_map(|label| facts.labels.get(label)).filter(|asked| !asked.is_empty());
    let refused_project = asked.filter(|asked| !allowed.contains(asked)).map(|asked| cut(asked, rules.longest_label));
    let project = asked.filter(|_| refused_project.is_none()).cloned().or(default);

    let user = facts.user.clone();
    let labels = let_through(rules, &facts.labels);
    Owner {
        org: first(|grant| &grant.org),
        project,
        user,
        queue: facts.queue.clone(),
        class: class(rules, facts),
        labels,
        refused_project,
    }
}

/// What kind of work it is: by its queue, else its quality of service; a session is development, since somebody sits at it.
fn class(rules: &Rules, facts: &Facts) -> Option<Name> {
    let of = |rules: &[QueueRule], name: &Option<Name>| {
        name.as_ref().and_then(|name| pattern::best(rules, name, |rule| &rule.name)).map(|rule| rule.class.clone())
    };
    of(&rules.queues, &facts.queue)
        .or_else(|| of(&rules.qos, &facts.qos))
        .or_else(|| (facts.kind == HolderKind::Session).then(|| Name::from("development")))
}

/// The labels that the site lets through, in the order of its list, at most as many and as long as it says.
fn let_through(rules: &Rules, labels: &BTreeMap<Name, Name>) -> BTreeMap<Name, Name> {
    rules
        .labels
        .iter()
        .filter_map(|name| labels.get_key_value(name))
        .filter(|(_, value)| !value.is_empty())
        .take(rules.most_labels)
        .map(|(name, value)| (name.clone(), cut(value, rules.longest_label)))
        .collect()
}

/// The first `longest` bytes of a text, whole characters only: a label is for grouping, not for keeping.
fn cut(text: &Name, longest: usize) -> Name {
    match text.char_indices().find(|(at, c)| at + c.len_utf8() > longest) {
        Some((at, _)) => Name::from(&text[..at]),
        None => text.clone(),
    }
}

#[cfg(test)]
mod tests;
