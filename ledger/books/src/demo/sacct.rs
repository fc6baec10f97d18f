//! The runs as `sacct -P -D` prints them: one line a run, then its steps.

use super::clock::Clock;
use super::people::{PROJECTS, uid};
use super::pool::{NODES, RESERVATIONS};
use super::schedule::Run;
use super::work::{Queue, Request};
use super::{CLUSTER, REMARK};
use cardhour_domain::JobState;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The header: the fields that the demo's `sacct --format` names.
pub const HEADER: &str = "JobID|JobIDRaw|Cluster|Partition|QOS|Account|User|Submit|Start|End|ElapsedRaw|Suspended|State|NNodes|\
NodeList|AllocTRES|ReqTRES|ExitCode|Reservation|JobName|Comment|DBIndex";

/// The whole text. Runs come by job and then by record; the tasks of an array that still wait are one line, as Slurm keeps them.
pub fn text(requests: &[Request], runs: &[Run], clock: &Clock) -> String {
    let mut out = String::from(HEADER);
    out.push('\n');
    let mut in_order: Vec<&Run> = runs.iter().collect();
    in_order.sort_by_key(|run| (run.job, run.db_index));
    let mut waiting_tasks: BTreeMap<u64, Vec<&Run>> = BTreeMap::new();
    for run in in_order {
        let request = &requests[run.request];
        if run.waits_in_array(request) {
            waiting_tasks.entry(run.array_job).or_default().push(run);
            continue;
        }
        let id = match request.task {
            Some((task, _)) => format!("{}_{task}", run.array_job),
            None => run.job.to_string(),
        };
        line(&mut out, &id, run, request, clock);
        steps(&mut out, &id, run, request, clock);
    }
    for (array_job, runs) in waiting_tasks {
        let tasks: Vec<u32> = runs.iter().filter_map(|run| requests[run.request].task).map(|(task, _)| task).collect();
        let id = format!("{array_job}_[{}]", ranges(&tasks));
        line(&mut out, &id, runs[0], &requests[runs[0].request], clock);
    }
    out
}

fn line(out: &mut String, id: &str, run: &Run, request: &Request, clock: &Clock) {
    let project = &PROJECTS[request.project];
    let start = match (run.start_s, run.state) {
        (Some(at_s), _) => clock.slurm(at_s),
        (None, JobState::Pending) => "Unknown".to_owned(),
        (None, _) => "None".to_owned(),
    };
    let nodes = match run.start_s {
        Some(_) => node_list(&run.nodes),
        None => "None assigned".to_owned(),
    };
    let asked = tres(request, None);
    let has = run.nodes.first().map_or_else(String::new, |node| tres(request, Some(NODES[*node].model)));
    let comment = if request.reservation.is_some() { REMARK } else { "" };
    let _ = writeln!(
        out,
        "{id}|{job}|{CLUSTER}|{queue}|{qos}|{account}|{user}|{submit}|{start}|{end}|{elapsed}|{suspended}|{state}|{nnodes}|{nodes}|{has}|{asked}|{exit}|{reservation}|{name}|{comment}|{db_index}",
        job = run.job,
        queue = request.queue.name(),
        qos = qos(request),
        account = project.name,
        user = request.user,
        submit = clock.slurm(run.submit_s),
        end = run.end_s.map_or_else(|| "Unknown".to_owned(), |at_s| clock.slurm(at_s)),
        elapsed = elapsed_s(run, clock),
        suspended = duration(run.suspended_s),
        state = state(run, request),
        nnodes = request.nodes,
        exit = exit_code(run.state),
        reservation = request.reservation.map_or("", |index| RESERVATIONS[index].name),
        name = request.name,
        db_index = run.db_index,
    );
}

/// The batch and extern steps that every started job has, and a step of `srun` for one over several nodes. They repeat the job's
/// allocation and hold nothing themselves.
fn steps(out: &mut String, id: &str, run: &Run, request: &Request, clock: &Clock) {
    let (Some(start_s), Some(first)) = (run.start_s, run.nodes.first()) else { return };
    let mut names: Vec<(&str, &str)> = Vec::new();
    if request.queue != Queue::Dev {
        names.push(("batch", "batch"));
    }
    names.push(("extern", "extern"));
    if request.nodes > 1 || request.queue == Queue::Dev {
        names.push(("0", "python"));
    }
    for (step, name) in names {
        let nodes: &[usize] = if step == "batch" { &run.nodes[..1] } else { &run.nodes };
        let (state, exit) = match (run.state, step) {
            (JobState::Running, _) => ("RUNNING", "0:0"),
            (_, "extern") | (JobState::Completed, _) => ("COMPLETED", "0:0"),
            (JobState::Failed, _) => ("FAILED", "1:0"),
            (JobState::OutOfMemory, _) => ("OUT_OF_MEMORY", "0:125"),
            _ => ("CANCELLED", "0:15"),
        };
        let mut part = request.clone();
        part.nodes = nodes.len() as u32;
        let held =
            tres(&part, Some(NODES[*first].model)).split_once(',').map_or(String::new(), |(_, rest)| rest.to_owned());
        let _ = writeln!(
            out,
            "{id}.{step}|{job}.{step}|{CLUSTER}|||{account}||{start}|{start}|{end}|{elapsed}|{suspended}|{state}|{nnodes}|{list}|{held}||{exit}||{name}||{db_index}",
            job = run.job,
            account = PROJECTS[request.project].name,
            start = clock.slurm(start_s),
            end = run.end_s.map_or_else(|| "Unknown".to_owned(), |at_s| clock.slurm(at_s)),
            elapsed = elapsed_s(run, clock),
            suspended = duration(run.suspended_s),
            nnodes = nodes.len(),
            list = node_list(nodes),
            db_index = run.db_index,
        );
    }
}

/// Slurm leaves suspended time out of elapsed. Source: slurmdbd, `as_mysql_job.c`.
fn elapsed_s(run: &Run, clock: &Clock) -> i64 {
    run.start_s.map_or(0, |start_s| run.end_s.unwrap_or(clock.end_s) - start_s - run.suspended_s)
}

/// Resources, as AllocTRES has them with the type of the card and as ReqTRES has them where the job left the type open.
fn tres(request: &Request, model: Option<&str>) -> String {
    let (nodes, cards) = (request.nodes, request.cards());
    let cpus = request.cpus_per_node * nodes;
    let memory_gib = 8 * cpus;
    let gres = match model {
        _ if cards == 0 => String::new(),
        Some(model) => format!("gres/gpu:{model}={cards},gres/gpu={cards},"),
        None => format!("gres/gpu={cards},"),
    };
    format!("billing={cpus},cpu={cpus},{gres}mem={memory_gib}G,node={nodes}")
}

fn state(run: &Run, request: &Request) -> String {
    match run.state {
        JobState::Cancelled => format!("CANCELLED by {}", uid(request.user)),
        state => state.name().to_uppercase(),
    }
}

const fn exit_code(state: JobState) -> &'static str {
    match state {
        JobState::Failed => "1:0",
        JobState::OutOfMemory => "0:125",
        JobState::Cancelled | JobState::Preempted => "0:15",
        JobState::NodeFail => "0:1",
        _ => "0:0",
    }
}

const fn qos(request: &Request) -> &'static str {
    match request.queue {
        Queue::Infer => "serving",
        Queue::Batch => "scavenger",
        Queue::Dev | Queue::Train => "normal",
    }
}

/// `gpu-01`, or `gpu-[01-02,04]`.
fn node_list(nodes: &[usize]) -> String {
    if let [node] = nodes {
        return NODES[*node].name.to_owned();
    }
    let numbers: Vec<u32> = nodes.iter().map(|node| *node as u32 + 1).collect();
    let padded: Vec<String> = spans(&numbers)
        .into_iter()
        .map(|(from, to)| if from == to { format!("{from:02}") } else { format!("{from:02}-{to:02}") })
        .collect();
    format!("gpu-[{}]", padded.join(","))
}

fn ranges(numbers: &[u32]) -> String {
    let texts: Vec<String> = spans(numbers)
        .into_iter()
        .map(|(from, to)| if from == to { from.to_string() } else { format!("{from}-{to}") })
        .collect();
    texts.join(",")
}

/// Sorted numbers as spans of neighbours.
fn spans(numbers: &[u32]) -> Vec<(u32, u32)> {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match spans.last_mut() {
            Some((_, to)) if *to + 1 == number => *to = number,
            _ => spans.push((number, number)),
        }
    }
    spans
}

/// `00:12:30`, as Slurm prints times below a day.
fn duration(seconds: i64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
