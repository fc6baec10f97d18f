//! The section `[owners]` of the config.

use super::section::{Fault, Section};
use cardhour_domain::Name;
use toml::Table;

/// Classes of work (design §3).
const CLASSES: [&str; 5] = ["training", "inference", "evaluation", "development", "batch"];

/// More labels a holder than that make more groups than anybody reads.
const MOST_LABELS: usize = 32;

/// Kubernetes allows values of 63 characters; a name of a run may be longer.
const LONGEST_LABEL_BYTES: usize = 253;

/// Who pays, as the site says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What pays where no rule is for an account or a namespace.
    pub unmapped: Unmapped,
    /// Grants by account of the scheduler.
    pub accounts: Vec<Grant>,
    /// Grants by namespace.
    pub namespaces: Vec<Grant>,
    /// Grants by user.
    pub users: Vec<Grant>,
    /// Classes by queue.
    pub queues: Vec<QueueRule>,
    /// Classes by quality of service.
    pub qos: Vec<QueueRule>,
    /// Labels that may choose a project, the first that a holder has counts.
    pub project_labels: Vec<Name>,
    /// Labels that are let through into the books.
    pub labels: Vec<Name>,
    /// How many labels a holder may have.
    pub most_labels: usize,
    /// How long a label's value may be; more is cut off. Unit: bytes.
    pub longest_label: usize,
}

/// What pays for an account or namespace that no rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmapped {
    /// The project of that name.
    AsIs,
    /// Nobody: it is shown as `(unowned)`.
    Unowned,
}

/// What an account, a namespace or a user is granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose; may have `*`.
    pub name: Name,
    /// Who pays, at the top.
    pub org: Option<Name>,
    /// Who pays, unless a label chooses another.
    pub project: Option<Name>,
    /// What a label may choose beside `project`.
    pub allowed: Vec<Name>,
}

/// What kind of work a queue is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueRule {
    /// Which; may have `*`.
    pub name: Name,
    /// training, inference, evaluation, development or batch.
    pub class: Name,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            // As records of the same scheduler are imported: the account or namespace is the project.
            unmapped: Unmapped::AsIs,
            accounts: Vec::new(),
            namespaces: Vec::new(),
            users: Vec::new(),
            queues: Vec::new(),
            qos: Vec::new(),
            project_labels: vec![Name::from("cardhour.io/project"), Name::from("project")],
            // Labels cost rows in every report: none by itself.
            labels: Vec::new(),
            most_labels: 8,
            longest_label: 63,
        }
    }
}

impl Rules {
    /// From the section `[owners]`. Errors: every fault in it, each with its key path.
    pub fn from_table(table: &Table) -> Result<Self, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut section = Section::new("owners".to_owned(), table);
        let mut rules = Self::default();
        match section.text("unmapped", &mut faults).as_deref() {
            None | Some("as-is") => {}
            Some("unowned") => rules.unmapped = Unmapped::Unowned,
            Some(other) => {
                section.fault("unmapped", format!("{other:?} is neither \"as-is\" nor \"unowned\""), &mut faults);
            }
        }
        rules.accounts = grants(&mut section, "account", &mut faults);
        rules.namespaces = grants(&mut section, "namespace", &mut faults);
        rules.users = grants(&mut section, "user", &mut faults);
        rules.queues = queues(&mut section, "queue", &mut faults);
        rules.qos = queues(&mut section, "qos", &mut faults);
        if let Some(labels) = section.texts("project_labels", &mut faults) {
            rules.project_labels = labels;
        }
        if let Some(labels) = section.texts("labels", &mut faults) {
            rules.labels = labels;
        }
        if let Some(count) = section.count("most_labels", MOST_LABELS, &mut faults) {
            rules.most_labels = count;
        }
        if let Some(bytes) = section.count("longest_label", LONGEST_LABEL_BYTES, &mut faults) {
            rules.longest_label = bytes;
        }
        section.finish(&mut faults);
        if faults.is_empty() { Ok(rules) } else { Err(faults) }
    }
}

fn grants(section: &mut Section<'_>, key: &'static str, faults: &mut Vec<Fault>) -> Vec<Grant> {
    let mut grants: Vec<Grant> = Vec::new();
    for mut section in section.list(key, faults) {
        let name = section.needed("name", faults);
        let org = section.text("org", faults);
        let project = section.text("project", faults);
        let allowed = section.texts("allowed", faults).unwrap_or_default();
        if let Some(name) = name {
            if grants.iter().any(|grant| grant.name == name) {
                section.fault("name", format!("{name:?} has a rule above"), faults);
            }
            grants.push(Grant { name, org, project, allowed });
        }
        section.finish(faults);
    }
    grants
}

fn queues(section: &mut Section<'_>, key: &'static str, faults: &mut Vec<Fault>) -> Vec<QueueRule> {
    let mut rules: Vec<QueueRule> = Vec::new();
    for mut section in section.list(key, faults) {
        let name = section.needed("name", faults);
        let class = section.needed("class", faults);
        if let Some(class) = class.as_ref().filter(|class| !CLASSES.contains(&class.as_str())) {
            section.fault("class", format!("{class:?} is none of {}", CLASSES.join(", ")), faults);
        }
        if let (Some(name), Some(class)) = (name, class) {
            if rules.iter().any(|rule| rule.name == name) {
                section.fault("name", format!("{name:?} has a rule above"), faults);
            }
            rules.push(QueueRule { name, class });
        }
        section.finish(faults);
    }
    rules
}
