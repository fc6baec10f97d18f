//! Jobs as `scontrol show job -d` prints them.
//!
//! Users write parts of that text: a job's name, its comment, paths. A name such as `x Account=rich` must not change who pays, so what follows
//! a user's words on a line isn't read, and of a key that stands twice neither is believed.

use super::cgroup::is_sluid;
use super::hostlist;
use super::job_record::{JobRecord, NodeGres, is_holding, parse_gres};
use cardhour_domain::{Name, Timestamp};
use std::collections::HashMap;

/// Keys whose value is the user's own text, to the end of the line.
const USER_TEXT: [&str; 14] = [
    "JobName",
    "Comment",
    "Command",
    "WorkDir",
    "StdErr",
    "StdIn",
    "StdOut",
    "Extra",
    "WCKey",
    "MailUser",
    "SubmitLine",
    "Container",
    "Features",
    "Licenses",
];

/// The jobs in an answer, and the ids of those whose text can't be believed.
///
/// Times are read as seconds since the epoch (`SLURM_TIME_FORMAT=%s`); others are left out, since they don't say their zone.
pub fn parse(text: &str) -> (Vec<JobRecord>, Vec<u64>) {
    let (mut jobs, mut doubtful) = (Vec::new(), Vec::new());
    for record in text.split("\n\n").filter(|record| record.trim_start().starts_with("JobId=")) {
        match parse_one(record.trim_start()) {
            Ok(job) => jobs.push(job),
            Err(Some(job_id)) => doubtful.push(job_id),
            Err(None) => {}
        }
    }
    (jobs, doubtful)
}

fn parse_one(record: &str) -> Result<JobRecord, Option<u64>> {
    let mut fields = Fields::default();
    let (mut nodes, mut in_nodes) = (Vec::new(), false);
    let mut comment = None;
    for line in record.lines() {
        if line.trim_start().starts_with("Nodes=") && in_nodes {
            nodes.extend(node_line(line));
            continue;
        }
        in_nodes = line.trim_start().starts_with("JOB_GRES=");
        for word in line.split_ascii_whitespace() {
            let Some((key, value)) = word.split_once('=') else { continue };
            if key == "Comment" {
                comment = line.split_once("Comment=").map(|(_, text)| Name::from(text.trim()));
            }
            if USER_TEXT.contains(&key) {
                break;
            }
            fields.add(key, value);
        }
    }
    let job_id = record.strip_prefix("JobId=").and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok());
    let job_id: u64 = job_id.ok_or(None)?;
    if fields.stands_twice() {
        return Err(Some(job_id));
    }
    let text = |key: &str| {
        fields.get(key).filter(|value| !matches!(*value, "(null)" | "N/A" | "None" | "Unknown")).map(Name::from)
    };
    let user = fields.get("UserId").and_then(|user| user.strip_suffix(')')?.rsplit_once('('));
    let shown_id =
        match (fields.get("ArrayJobId"), fields.get("ArrayTaskId"), fields.get("HetJobId"), fields.get("HetJobOffset"))
        {
            (Some(array), Some(task), ..) if task.parse::<u64>().is_ok() => Some(Name::from(format!("{array}_{task}"))),
            (_, _, Some(leader), Some(offset)) => Some(Name::from(format!("{leader}+{offset}"))),
            _ => None,
        };
    let sluid = fields.get("SLUID").or_else(|| fields.get("Sluid")).filter(|sluid| is_sluid(sluid)).map(Name::from);
    Ok(JobRecord {
        job_id,
        shown_id,
        sluid,
        restarts: fields.get("Restarts").and_then(|n| n.parse().ok()),
        started_at: fields
            .get("StartTime")
            .and_then(|at| at.parse().ok())
            .filter(|at| *at > 0)
            .map(Timestamp::from_unix_s),
        account: text("Account"),
        user: user.map(|(name, _)| Name::from(name)).filter(|name| !name.is_empty()),
        uid: user.and_then(|(_, uid)| uid.parse().ok()),
        partition: text("Partition"),
        qos: text("QOS"),
        comment: comment.filter(|comment| !comment.is_empty()),
        is_holding: is_holding(fields.get("JobState")),
        nodes,
    })
}

/// `Nodes=gpu[1-2] CPU_IDs=0 Mem=100 GRES=gpu:h100:2(IDX:1-2)`: the same on each node of the list.
fn node_line(line: &str) -> Vec<NodeGres> {
    let value = |key: &str| line.split_ascii_whitespace().find_map(|word| word.strip_prefix(key));
    let gres = value("GRES=").map(parse_gres).unwrap_or_default();
    let names = value("Nodes=").and_then(hostlist::expand).unwrap_or_default();
    names.into_iter().map(|node| NodeGres { node: node.into(), gres: gres.clone() }).collect()
}

/// Values by key, and whether one that matters stood twice.
#[derive(Default)]
struct Fields<'r> {
    values: HashMap<&'r str, &'r str>,
    twice: bool,
}

impl<'r> Fields<'r> {
    fn add(&mut self, key: &'r str, value: &'r str) {
        const MATTER: [&str; 8] =
            ["JobId", "UserId", "Account", "QOS", "JobState", "StartTime", "Partition", "JOB_GRES"];
        if self.values.insert(key, value).is_some() && MATTER.contains(&key) {
            self.twice = true;
        }
    }

    fn get(&self, key: &str) -> Option<&'r str> {
        self.values.get(key).copied()
    }

    fn stands_twice(&self) -> bool {
        self.twice
    }
}

#[cfg(test)]
mod tests;
