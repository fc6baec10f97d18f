//! What a process's environment says, and no more of it than is needed: the rest may be secrets.
//!
//! It is what the process was started with, and a process can write over it: a hint of what it belongs to, never proof of who pays.

use cardhour_domain::Name;
use std::collections::BTreeMap;

/// Variables that are read; all others are never kept.
const KNOWN: [&str; 28] = [
    "CARDHOUR_LABELS",
    "CARDHOUR_PROJECT",
    "CUDA_VISIBLE_DEVICES",
    "INVOCATION_ID",
    "JUPYTERHUB_SERVER_NAME",
    "JUPYTERHUB_USER",
    "RAY_JOB_ID",
    "SLURMD_NODENAME",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_CLUSTER_NAME",
    "SLURM_HET_GROUP_ID",
    "SLURM_HET_JOB_ID",
    "SLURM_JOB_ACCOUNT",
    "SLURM_JOB_GPUS",
    "SLURM_JOB_ID",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_QOS",
    "SLURM_JOB_SLUID",
    "SLURM_JOB_START_TIME",
    "SLURM_JOB_UID",
    "SLURM_JOB_USER",
    "SLURM_NODEID",
    "SLURM_RESTART_COUNT",
    "SLURM_SHARDS_ON_NODE",
    "SLURM_STEP_GPUS",
    "WANDB_PROJECT",
];

/// A longer value is no id.
const LONGEST_VALUE_BYTES: usize = 4096;

/// Known variables of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environ {
    values: BTreeMap<&'static str, Name>,
}

impl Environ {
    /// From the bytes of `/proc/PID/environ`. Of a variable that stands twice the first counts, as for programs.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut values = BTreeMap::new();
        for variable in bytes.split(|byte| *byte == 0) {
            let Some(at) = variable.iter().position(|byte| *byte == b'=') else { continue };
            let (name, value) = (&variable[..at], &variable[at + 1..]);
            let Some(name) = KNOWN.iter().find(|known| known.as_bytes() == name) else { continue };
            if let Some(value) =
                std::str::from_utf8(value).ok().filter(|v| !v.is_empty() && v.len() <= LONGEST_VALUE_BYTES)
            {
                values.entry(*name).or_insert_with(|| Name::from(value));
            }
        }
        Self { values }
    }

    /// The value of a variable that is known and set to something.
    pub fn get(&self, name: &str) -> Option<&Name> {
        self.values.get(name)
    }

    /// A variable that is a number.
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.get(name)?.parse().ok()
    }

    /// What the user wrote for the owner's rules: the project asked for and labels.
    pub fn labels(&self) -> BTreeMap<Name, Name> {
        let mut labels = self.get("CARDHOUR_LABELS").map(|text| pairs(text)).unwrap_or_default();
        if let Some(project) = self.get("CARDHOUR_PROJECT") {
            labels.insert("project".into(), project.clone());
        }
        labels
    }
}

/// `key=value` pairs, parted by commas: what of a text is no pair is left out.
pub(super) fn pairs(text: &str) -> BTreeMap<Name, Name> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let trimmed = pairs.map(|(key, value)| (key.trim(), value.trim()));
    trimmed.filter(|(key, value)| !key.is_empty() && !value.is_empty()).map(|(k, v)| (k.into(), v.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_variables_are_kept() {
        assert!(KNOWN.is_sorted());
        let environ = Environ::parse(b"SLURM_JOB_ID=42\0AWS_SECRET_ACCESS_KEY=x\0SLURM_JOB_GPUS=1,2\0SLURM_JOB_ID=7\0broken\0=\0SLURM_JOB_QOS=\0");
        assert_eq!(environ.number::<u64>("SLURM_JOB_ID"), Some(42));
        assert_eq!(environ.get("SLURM_JOB_GPUS").map(Name::as_str), Some("1,2"));
        assert_eq!(environ.get("SLURM_JOB_QOS"), None);
        assert!(!format!("{environ:?}").contains("AWS"));
    }

    #[test]
    fn labels_are_pairs_and_the_project_has_a_variable_of_its_own() {
        let environ = Environ::parse(b"CARDHOUR_LABELS=team=speech, run = 7 ,nonsense\0CARDHOUR_PROJECT=nlp\0");
        let labels: Vec<String> = environ.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(labels, ["project=nlp", "run=7", "team=speech"]);
    }
}
