//! Jobs as `squeue --json` and `scontrol show job --json` print them, in every shape from 22.05 on.
//!
//! Numbers are plain up to 23.02 and `{"set", "infinite", "number"}` since; states are a word or a list; texts may be null.

use super::cgroup::is_sluid;
use super::hostlist;
use super::job_record::{JobRecord, NodeGres, is_holding, parse_gres};
use cardhour_domain::{Name, Timestamp};
use serde_json::Value;

/// The jobs in an answer; none if it isn't one. A job without an id is left out.
///
/// All jobs of the cluster may be in it, whatever was asked for: older versions pass filters over.
pub fn parse(text: &str) -> Option<Vec<JobRecord>> {
    let answer: Value = serde_json::from_str(text).ok()?;
    Some(answer.get("jobs")?.as_array()?.iter().filter_map(job).collect())
}

fn job(value: &Value) -> Option<JobRecord> {
    let text = |key: &str| value.get(key).and_then(text_of);
    let count = |key: &str| value.get(key).and_then(number);
    let states: Vec<&str> = match value.get("job_state") {
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(word)) => vec![word],
        _ => Vec::new(),
    };
    // 0 is how Slurm writes that there is no array or no group.
    let array = count("array_job_id").filter(|id| *id > 0).zip(count("array_task_id"));
    let group = count("het_job_id").filter(|id| *id > 0).zip(count("het_job_offset"));
    let shown_id =
        array.map(|(id, task)| format!("{id}_{task}")).or(group.map(|(id, offset)| format!("{id}+{offset}")));
    let names = text("nodes").and_then(|list| hostlist::expand(&list)).unwrap_or_default();
    let details = value.get("gres_detail").and_then(Value::as_array);
    let details = details.into_iter().flatten().map(|detail| detail.as_str().map(parse_gres).unwrap_or_default());
    // One text a node, in the order of the list.
    let nodes = names.into_iter().zip(details).map(|(node, gres)| NodeGres { node: node.into(), gres }).collect();
    Some(JobRecord {
        job_id: count("job_id")?,
        shown_id: shown_id.map(Name::from),
        sluid: text("sluid").filter(|sluid| is_sluid(sluid)),
        restarts: count("restart_cnt").and_then(|n| u32::try_from(n).ok()),
        started_at: count("start_time")
            .and_then(|at| i64::try_from(at).ok())
            .filter(|at| *at > 0)
            .map(Timestamp::from_unix_s),
        account: text("account"),
        user: text("user_name"),
        uid: count("user_id").and_then(|uid| u32::try_from(uid).ok()),
        partition: text("partition"),
        qos: text("qos"),
        comment: text("comment")
            .or_else(|| value.get("comment").and_then(|comment| comment.get("job")).and_then(text_of)),
        is_holding: is_holding(states),
        nodes,
    })
}

fn text_of(value: &Value) -> Option<Name> {
    value.as_str().filter(|text| !text.is_empty()).map(Name::from)
}

/// A number, plain or in its newer shape; none where it isn't set, or is without end.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Object(parts) => {
            let is = |key: &str| parts.get(key).and_then(Value::as_bool);
            (is("set") != Some(false) && is("infinite") != Some(true)).then(|| parts.get("number")?.as_u64())?
        }
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same job as 22.05 and as 24.11 write it; by hand.
    const OLD: &str = r#"{"jobs": [{"job_id": 24, "array_job_id": 22, "array_task_id": 2, "het_job_id": 0, "het_job_offset": 0,
        "account": "research", "user_name": "gmalice", "user_id": 1001, "partition": "gpu", "qos": "normal", "comment": null,
        "job_state": "RUNNING", "start_time": 1700000100, "restart_cnt": 1, "nodes": "gpu[1-2]", "time_limit": 4294967295,
        "gres_detail": ["gpu:h100:1(IDX:3)", "gpu:h100:2(IDX:0-1)"]}]}"#;
    const NEW: &str = r#"{"jobs": [{"job_id": 24, "array_job_id": {"set": true, "infinite": false, "number": 22},
        "array_task_id": {"set": true, "infinite": false, "number": 2}, "het_job_id": {"set": true, "infinite": false, "number": 0},
        "het_job_offset": {"set": true, "infinite": false, "number": 0}, "account": "research", "user_name": "gmalice", "user_id": 1001,
        "partition": "gpu", "qos": "normal", "comment": {"administrator": "", "job": "", "system": ""}, "job_state": ["RUNNING"],
        "start_time": {"set": true, "infinite": false, "number": 1700000100}, "restart_cnt": 1, "nodes": "gpu[1-2]",
        "time_limit": {"set": false, "infinite": true, "number": 0},
        "gres_detail": ["gpu:h100:1(IDX:3)", "gpu:h100:2(IDX:0-1)"]}]}"#;

    #[test]
    fn both_shapes_say_the_same() {
        let (old, new) = (parse(OLD).unwrap(), parse(NEW).unwrap());
        assert_eq!(old, new);
        assert_eq!((old[0].job_id, old[0].shown_id.as_deref(), old[0].is_holding), (24, Some("22_2"), true));
        assert_eq!(old[0].on_node("gpu2").unwrap().gres[0].positions, [(0, None), (1, None)]);
        assert_eq!(old[0].comment, None);
    }

    #[test]
    fn what_is_not_set_is_absent_and_an_ending_job_holds() {
        let text = r#"{"jobs": [{"job_id": {"set": true, "number": 4294967301}, "array_job_id": {"set": true, "number": 0},
            "array_task_id": {"set": false, "number": 0}, "start_time": {"set": false, "number": 0}, "sluid": "s5K1KKYAYG5D00",
            "job_state": ["CANCELLED", "COMPLETING"], "comment": {"job": "team=nlp"}, "nodes": ""}, {"account": "no id"}]}"#;
        let jobs = parse(text).unwrap();
        assert_eq!(jobs.len(), 1);
        let job = &jobs[0];
        assert_eq!((job.job_id, &job.shown_id, job.started_at), (4_294_967_301, &None, None));
        assert_eq!(
            (job.sluid.as_deref(), job.comment.as_deref(), job.is_holding),
            (Some("s5K1KKYAYG5D00"), Some("team=nlp"), true)
        );
        assert!(job.nodes.is_empty());
        assert_eq!(parse("slurm_load_jobs error"), None);
    }
}
