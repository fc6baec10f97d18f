//! A job in Slurm's or Sonar's JSON, old shape or new, with the names and the manner of sacct's text.
//!
//! Old versions write plain numbers; Slurm 23.11 and later write `{"set", "infinite", "number"}`, and states as lists of a
//! base state and flags. A number that isn't set, is infinite, or is Slurm's NO_VAL is absent; so is a time of 0.
//! Source: the data_parser and openapi plugins of Slurm 22.05 to 25.05, and `scontrol show job` beside them.

use super::raw_json::{Entry, get, list, object, text};
use cardhour_domain::Timestamp;
use serde_json::value::RawValue;
use std::borrow::Cow;

type Value<'a> = Option<Cow<'a, str>>;

/// A job's fields, as sacct would print them. Times are RFC 3339 in UTC.
#[derive(Debug, Default)]
pub struct Job<'a> {
    job_id: Value<'a>,
    job_id_raw: Value<'a>,
    db_index: Value<'a>,
    sluid: Value<'a>,
    cluster: Value<'a>,
    account: Value<'a>,
    user: Value<'a>,
    group: Value<'a>,
    partition: Value<'a>,
    qos: Value<'a>,
    job_name: Value<'a>,
    state: Value<'a>,
    reason: Value<'a>,
    submit: Value<'a>,
    eligible: Value<'a>,
    start: Value<'a>,
    end: Value<'a>,
    elapsed_raw: Value<'a>,
    suspended: Value<'a>,
    time_limit_raw: Value<'a>,
    alloc_tres: Value<'a>,
    req_tres: Value<'a>,
    req_mem: Value<'a>,
    nodes: Value<'a>,
    node_count: Value<'a>,
    exit_code: Value<'a>,
    reservation: Value<'a>,
    priority: Value<'a>,
    restarts: Value<'a>,
    wc_key: Value<'a>,
    constraints: Value<'a>,
    container: Value<'a>,
    comment: Value<'a>,
    admin_comment: Value<'a>,
    system_comment: Value<'a>,
    submit_line: Value<'a>,
    work_dir: Value<'a>,
}

impl Job<'_> {
    /// Name and value of each field, always in this order.
    pub fn columns(&self) -> [(&'static str, &Option<Cow<'_, str>>); 37] {
        [
            ("JobID", &self.job_id),
            ("JobIDRaw", &self.job_id_raw),
            ("DBIndex", &self.db_index),
            ("SLUID", &self.sluid),
            ("Cluster", &self.cluster),
            ("Account", &self.account),
            ("User", &self.user),
            ("Group", &self.group),
            ("Partition", &self.partition),
            ("QOS", &self.qos),
            ("JobName", &self.job_name),
            ("State", &self.state),
            ("Reason", &self.reason),
            ("Submit", &self.submit),
            ("Eligible", &self.eligible),
            ("Start", &self.start),
            ("End", &self.end),
            ("ElapsedRaw", &self.elapsed_raw),
            ("Suspended", &self.suspended),
            ("TimelimitRaw", &self.time_limit_raw),
            ("AllocTRES", &self.alloc_tres),
            ("ReqTRES", &self.req_tres),
            ("ReqMem", &self.req_mem),
            ("NodeList", &self.nodes),
            ("NNodes", &self.node_count),
            ("ExitCode", &self.exit_code),
            ("Reservation", &self.reservation),
            ("Priority", &self.priority),
            ("Restarts", &self.restarts),
            ("WCKey", &self.wc_key),
            ("Constraints", &self.constraints),
            ("Container", &self.container),
            ("Comment", &self.comment),
            ("AdminComment", &self.admin_comment),
            ("SystemComment", &self.system_comment),
            ("SubmitLine", &self.submit_line),
            ("WorkDir", &self.work_dir),
        ]
    }

    /// As the values of a record with these columns.
    pub fn values(&self) -> csv::StringRecord {
        self.columns().iter().map(|(_, value)| value.as_deref().unwrap_or("")).collect()
    }
}

/// A job of the accounting database: `sacct --json`, `/slurmdb/…/jobs`.
pub fn accounting_job<'a>(job: &[Entry<'a>]) -> Job<'a> {
    let inner = |name| get(job, name).and_then(object).unwrap_or_default();
    let (time, state, array, het) = (inner("time"), inner("state"), inner("array"), inner("het"));
    let (tres, required, comment, association) =
        (inner("tres"), inner("required"), inner("comment"), inner("association"));
    let raw = number_of(job, "job_id");
    let end = time_of(&time, "end");
    let states = get(&state, "current").map(words).unwrap_or_default();
    Job {
        job_id: job_id(
            raw.clone(),
            (number_of(&array, "job_id"), number_of(&array, "task_id"), text_of(&array, "task")),
            (number_of(&het, "job_id"), number_of(&het, "job_offset")),
        ),
        job_id_raw: raw,
        db_index: number_of(job, "db_index"),
        sluid: text_of(job, "sluid"),
        cluster: text_of(job, "cluster").or_else(|| text_of(&association, "cluster")),
        account: text_of(job, "account").or_else(|| text_of(&association, "account")),
        user: text_of(job, "user").or_else(|| text_of(&association, "user")),
        group: text_of(job, "group"),
        partition: text_of(job, "partition"),
        qos: text_of(job, "qos"),
        job_name: text_of(job, "name"),
        state: accounting_state(states, end.is_some()),
        reason: text_of(&state, "reason"),
        submit: time_of(&time, "submission"),
        eligible: time_of(&time, "eligible"),
        start: time_of(&time, "start"),
        end,
        elapsed_raw: number_of(&time, "elapsed"),
        suspended: length_of(&time, "suspended"),
        time_limit_raw: number_of(&time, "limit"),
        alloc_tres: get(&tres, "allocated").and_then(tres_text),
        req_tres: get(&tres, "requested").and_then(tres_text),
        req_mem: memory(&required),
        nodes: text_of(job, "nodes"),
        node_count: number_of(job, "allocation_nodes"),
        exit_code: get(job, "exit_code").and_then(exit_code),
        reservation: get(job, "reservation").and_then(|raw| named(raw, "name")),
        priority: number_of(job, "priority"),
        restarts: number_of(job, "restart_cnt"),
        wc_key: get(job, "wckey").and_then(|raw| named(raw, "wckey")),
        constraints: text_of(job, "constraints"),
        container: text_of(job, "container"),
        comment: text_of(&comment, "job"),
        admin_comment: text_of(&comment, "administrator"),
        system_comment: text_of(&comment, "system"),
        submit_line: text_of(job, "submit_line"),
        work_dir: text_of(job, "working_directory"),
    }
}

/// A job of the controller: `squeue --json`, `/slurm/…/jobs`.
///
/// The controller foretells times: the start of a job that waits, and the end of one that runs. Only what has happened is taken.
pub fn controller_job<'a>(job: &[Entry<'a>]) -> Job<'a> {
    let raw = number_of(job, "job_id");
    let state = controller_state(get(job, "job_state").map(words).unwrap_or_default());
    let waits = state.as_deref() == Some("PENDING");
    let goes_on = matches!(state.as_deref(), Some("RUNNING" | "SUSPENDED"));
    let took_place = |name| time_of(job, name).filter(|_| !waits);
    Job {
        job_id: job_id(
            raw.clone(),
            (number_of(job, "array_job_id"), number_of(job, "array_task_id"), text_of(job, "array_task_string")),
            (number_of(job, "het_job_id"), number_of(job, "het_job_offset")),
        ),
        job_id_raw: raw,
        db_index: number_of(job, "db_index"),
        sluid: text_of(job, "sluid"),
        cluster: text_of(job, "cluster"),
        account: text_of(job, "account"),
        user: text_of(job, "user_name"),
        group: text_of(job, "group_name"),
        partition: text_of(job, "partition"),
        qos: text_of(job, "qos"),
        job_name: text_of(job, "name"),
        reason: text_of(job, "state_reason"),
        submit: time_of(job, "submit_time"),
        eligible: time_of(job, "eligible_time"),
        start: took_place("start_time"),
        end: took_place("end_time").filter(|_| !goes_on),
        time_limit_raw: number_of(job, "time_limit"),
        alloc_tres: text_of(job, "tres_alloc_str"),
        req_tres: text_of(job, "tres_req_str"),
        req_mem: memory(job),
        nodes: text_of(job, "nodes"),
        node_count: number_of(job, "node_count"),
        exit_code: get(job, "exit_code").filter(|_| !waits && !goes_on).and_then(exit_code),
        reservation: text_of(job, "resv_name"),
        priority: number_of(job, "priority"),
        restarts: number_of(job, "restart_cnt"),
        wc_key: text_of(job, "wckey"),
        constraints: text_of(job, "features"),
        container: text_of(job, "container"),
        comment: text_of(job, "comment"),
        admin_comment: text_of(job, "admin_comment"),
        system_comment: text_of(job, "system_comment"),
        submit_line: text_of(job, "submit_line").or_else(|| text_of(job, "command")),
        work_dir: text_of(job, "current_working_directory"),
        state,
        ..Job::default()
    }
}

/// A job or a step as Sonar writes it; a step's id has its step, as in sacct's text. `cluster`: of the document.
pub fn sonar_job<'a>(job: &[Entry<'a>], cluster: Value<'a>) -> Job<'a> {
    let sacct = get(job, "sacct").and_then(object).unwrap_or_default();
    let raw = number_of(job, "job_id");
    let id = job_id(
        raw.clone(),
        (number_of(job, "array_job_id"), number_of(job, "array_task_id"), None),
        (number_of(job, "het_job_id"), number_of(job, "het_job_offset")),
    );
    let step = text_of(job, "job_step");
    let with_step = |id: Value<'a>| match (&id, &step) {
        (Some(id), Some(step)) => Some(Cow::Owned(format!("{id}.{step}"))),
        _ => id,
    };
    Job {
        job_id: with_step(id),
        job_id_raw: with_step(raw),
        cluster,
        account: text_of(job, "account"),
        user: text_of(job, "user_name"),
        partition: text_of(job, "partition"),
        job_name: text_of(job, "job_name"),
        state: text_of(job, "job_state"),
        reason: text_of(job, "job_reason"),
        submit: time_of(job, "submit_time"),
        start: time_of(job, "start_time"),
        end: time_of(job, "end_time"),
        elapsed_raw: number_of(&sacct, "ElapsedRaw"),
        suspended: length_of(job, "suspend_time"),
        alloc_tres: text_of(&sacct, "AllocTRES").or_else(|| text_of(job, "allocated_resources")),
        req_tres: text_of(job, "requested_resources"),
        nodes: text_of(job, "nodes"),
        exit_code: number_of(job, "exit_code").map(|code| Cow::Owned(format!("{code}:0"))),
        reservation: text_of(job, "reservation"),
        ..Job::default()
    }
}

/// `12`, `12_3` for a task of an array, `12_[1-4%2]` for its tasks that wait, `12+1` for a part of a heterogeneous job.
fn job_id<'a>(id: Value<'a>, (array, task, tasks): (Value, Value, Value), (het, offset): (Value, Value)) -> Value<'a> {
    let real = |id: Value<'_>| id.filter(|id| id != "0").map(Cow::into_owned);
    if let Some(het) = real(het) {
        return Some(Cow::Owned(format!("{het}+{}", offset.as_deref().unwrap_or("0"))));
    }
    match (real(array), task, tasks) {
        (Some(array), Some(task), _) => Some(Cow::Owned(format!("{array}_{task}"))),
        (Some(array), None, Some(tasks)) => Some(Cow::Owned(format!("{array}_[{tasks}]"))),
        _ => id,
    }
}

/// The base state; where a run that was put back or resized ended, the flag that says so, as sacct's text does.
fn accounting_state<'a>(states: Vec<Cow<'a, str>>, ended: bool) -> Value<'a> {
    let flag = states.iter().position(|state| matches!(&**state, "REQUEUED" | "RESIZING" | "REVOKED"));
    let chosen = flag.filter(|_| ended).unwrap_or(0);
    states.into_iter().nth(chosen)
}

/// The base state; where an old version shows only a flag, the base state under it.
fn controller_state<'a>(states: Vec<Cow<'a, str>>) -> Value<'a> {
    let is_base = |state: &Cow<str>| {
        matches!(
            &**state,
            "PENDING"
                | "RUNNING"
                | "SUSPENDED"
                | "COMPLETED"
                | "CANCELLED"
                | "FAILED"
                | "TIMEOUT"
                | "NODE_FAIL"
                | "PREEMPTED"
                | "BOOT_FAIL"
                | "DEADLINE"
                | "OUT_OF_MEMORY"
        )
    };
    if let Some(base) = states.iter().position(is_base) {
        return states.into_iter().nth(base);
    }
    let flag = states.into_iter().next()?;
    Some(match &*flag {
        "CONFIGURING" | "COMPLETING" | "SIGNALING" | "STAGE_OUT" | "RESIZING" => Cow::Borrowed("RUNNING"),
        "STOPPED" => Cow::Borrowed("SUSPENDED"),
        "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "SPECIAL_EXIT" | "RESV_DEL_HOLD" => Cow::Borrowed("PENDING"),
        _ => flag,
    })
}

/// `cpu=16,mem=8192M,gres/gpu:a100=4` from a list of `{"type", "name", "count"}`. Memory is counted in MiB.
fn tres_text<'a>(raw: &'a RawValue) -> Value<'a> {
    let parts: Vec<String> = list(raw)?
        .into_iter()
        .filter_map(|part| {
            let part = object(part)?;
            let kind = text_of(&part, "type")?;
            let count = number_of(&part, "count")?;
            let unit = if kind == "mem" { "M" } else { "" };
            Some(match text_of(&part, "name") {
                Some(name) => format!("{kind}/{name}={count}{unit}"),
                None => format!("{kind}={count}{unit}"),
            })
        })
        .collect();
    (!parts.is_empty()).then(|| Cow::Owned(parts.join(",")))
}

/// Memory asked for, in sacct's old manner: `8192Mn` a node, `2000Mc` a CPU. Old versions have one number with bit 63 for "a CPU".
fn memory<'a>(entries: &[Entry<'a>]) -> Value<'a> {
    const PER_CPU: u64 = 1 << 63;
    let sized = |name, suffix| number_of(entries, name).map(|mib| Cow::Owned(format!("{mib}M{suffix}")));
    let old = || {
        let mib: u64 = number_of(entries, "memory")?.parse().ok()?;
        Some(Cow::Owned(if mib & PER_CPU != 0 { format!("{}Mc", mib ^ PER_CPU) } else { format!("{mib}Mn") }))
    };
    sized("memory_per_node", "n").or_else(|| sized("memory_per_cpu", "c")).or_else(old)
}

/// `return code:signal`, from an object or from the status that wait(2) gives.
fn exit_code<'a>(raw: &'a RawValue) -> Value<'a> {
    let Some(parts) = object(raw) else {
        let status: u32 = number(raw)?.parse().ok()?;
        return Some(Cow::Owned(format!("{}:{}", (status >> 8) & 0xff, status & 0x7f)));
    };
    if let Some(status) = get(&parts, "number") {
        return number(raw).and_then(|_| exit_code(status));
    }
    let signal = get(&parts, "signal").and_then(object).unwrap_or_default();
    let signal = number_of(&signal, "id").or_else(|| number_of(&signal, "signal_id"));
    match (number_of(&parts, "return_code"), signal) {
        (None, None) => None,
        (code, signal) => {
            Some(Cow::Owned(format!("{}:{}", code.as_deref().unwrap_or("0"), signal.as_deref().unwrap_or("0"))))
        }
    }
}

/// A text, or the text of a member where an object stands instead.
fn named<'a>(raw: &'a RawValue, member: &str) -> Value<'a> {
    match object(raw) {
        Some(entries) => text_of(&entries, member),
        None => text(raw),
    }
}

fn text_of<'a>(entries: &[Entry<'a>], name: &str) -> Value<'a> {
    get(entries, name).and_then(text)
}

fn number_of<'a>(entries: &[Entry<'a>], name: &str) -> Value<'a> {
    get(entries, name).and_then(number)
}

/// A number as it is written: plain, or in an object that says whether it is set.
fn number<'a>(raw: &'a RawValue) -> Value<'a> {
    // Slurm's NO_VAL and INFINITE, in 32 and 64 bits.
    const NOTHING: [&str; 4] = ["4294967294", "4294967295", "18446744073709551614", "18446744073709551615"];
    match object(raw) {
        Some(entries) => {
            let says = |name, word| text_of(&entries, name).is_some_and(|value| value == word);
            get(&entries, "number").filter(|_| !says("set", "false") && !says("infinite", "true")).and_then(number)
        }
        None => text(raw).filter(|number| !NOTHING.contains(&&**number)),
    }
}

/// A time: seconds since the epoch to RFC 3339, 0 absent; a text as it is.
fn time_of<'a>(entries: &[Entry<'a>], name: &str) -> Value<'a> {
    let value = number_of(entries, name)?;
    match value.parse::<i64>() {
        Ok(0) => None,
        Ok(seconds) if seconds.unsigned_abs() < 1 << 40 => {
            Some(Cow::Owned(Timestamp::from_unix_s(seconds).to_string()))
        }
        _ => Some(value),
    }
}

/// A length of time: seconds to `D-HH:MM:SS`.
fn length_of<'a>(entries: &[Entry<'a>], name: &str) -> Value<'a> {
    let value = number_of(entries, name)?;
    let Ok(seconds) = value.parse::<u64>() else { return Some(value) };
    let (days, seconds) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(Cow::Owned(if days == 0 { clock } else { format!("{days}-{clock}") }))
}

/// A word, or the words of a list.
fn words<'a>(raw: &'a RawValue) -> Vec<Cow<'a, str>> {
    match list(raw) {
        Some(all) => all.into_iter().filter_map(text).collect(),
        None => text(raw).into_iter().collect(),
    }
}
