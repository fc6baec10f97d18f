//! Slurm's jobs on this node, from all that tells of them.
//!
//! The best source that names a job's devices counts for all of them: the controller, then the prolog's map files, then the environment of its
//! processes. All devices given to a job are held, also those no process uses. What a source says beside that is a disagreement, told and not
//! followed. Who pays never comes from the environment, which users write.

use super::aliases::{Aliases, DeviceId};
use super::cgroup::is_sluid;
use super::environ::{Environ, pairs};
use super::gres::GresOrder;
use super::job_record::JobRecord;
use super::look::{LookEvent, LookEventKind};
use super::runs::{RunClues, Runs};
use super::slurm_map::MapLine;
use crate::owners::Facts;
use cardhour_domain::{CardShare, Holder, HolderKind, HolderSource, Name, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// A node as Slurm knows it; a host may be several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmNode {
    /// Its `NodeName`.
    pub name: Name,
    /// Its devices in Slurm's order; none where that isn't known: then numbers name nothing.
    pub order: Option<GresOrder>,
}

/// A step of a job that runs here, or a process that says it is of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSeen {
    /// The job's raw id.
    pub job_id: u64,
    /// The node's name with Slurm, where it is known.
    pub node: Option<Name>,
    /// Since when.
    pub started_at: Timestamp,
    /// Whose processes.
    pub uid: Option<u32>,
    /// That user's name.
    pub user: Option<Name>,
    /// Of its first process.
    pub environ: Option<Environ>,
    /// [`HolderSource::Cgroup`] where the kernel or Slurm's own daemon proves it, [`HolderSource::Process`] where its environment says so.
    pub proof: HolderSource,
}

/// All that tells of Slurm's jobs at one look.
#[derive(Debug)]
pub struct SlurmSources<'a> {
    /// The cluster, as the config names it.
    pub cluster: &'a Name,
    /// The node, or several on one host.
    pub nodes: &'a [SlurmNode],
    /// Other names of devices.
    pub aliases: &'a Aliases,
    /// The share of its card that each device is, by its UUID.
    pub shares: &'a BTreeMap<Name, CardShare>,
    /// What the controller says of each job.
    pub records: &'a BTreeMap<u64, JobRecord>,
    /// Jobs that the controller has here now, as far as its word is fresh.
    pub listed: &'a BTreeSet<u64>,
    /// Lines of map files, those of jobs known to be no more left out, each with the index of its node.
    pub map: &'a [(usize, MapLine)],
    /// Steps and processes.
    pub steps: &'a [StepSeen],
    /// Names of users that map files name by number.
    pub users: &'a BTreeMap<u32, Name>,
}

/// A job that is on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmJob {
    /// Which run of it.
    pub holder: Holder,
    /// What says who pays.
    pub facts: Facts,
    /// Its devices here.
    pub devices: Vec<SlurmDevice>,
    /// Whether the controller or the prolog says what it was given: then any other device its processes use is foreign.
    pub is_given_known: bool,
}

/// A device of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmDevice {
    /// Which.
    pub device: DeviceId,
    /// Who says so.
    pub source: HolderSource,
    /// The declared share of the card.
    pub share: Option<CardShare>,
}

/// The jobs on this node by their raw ids, and what sources disagree about.
pub fn jobs(sources: &SlurmSources<'_>, runs: &mut Runs) -> (BTreeMap<u64, SlurmJob>, Vec<LookEvent>) {
    let mut ids: BTreeSet<u64> = sources.steps.iter().map(|step| step.job_id).collect();
    ids.extend(sources.map.iter().map(|(_, line)| line.job_id));
    let is_holding = |id: &&u64| sources.records.get(id).is_some_and(|record| record.is_holding);
    ids.extend(sources.listed.iter().filter(is_holding));
    runs.keep(&ids);
    let mut events = Vec::new();
    let jobs = ids.into_iter().filter_map(|id| Some((id, Evidence::of(id, sources).job(sources, runs, &mut events)?)));
    (jobs.collect(), events)
}

/// What tells of one job.
struct Evidence<'a> {
    job_id: u64,
    record: Option<&'a JobRecord>,
    map: Vec<(usize, &'a MapLine)>,
    steps: Vec<&'a StepSeen>,
}

impl<'a> Evidence<'a> {
    fn of(job_id: u64, sources: &'a SlurmSources<'_>) -> Self {
        let map =
            sources.map.iter().filter(|(_, line)| line.job_id == job_id).map(|(node, line)| (*node, line)).collect();
        let mut steps: Vec<&StepSeen> = sources.steps.iter().filter(|step| step.job_id == job_id).collect();
        steps.sort_by_key(|step| (step.proof, step.started_at));
        // What the kernel proves makes what a process says of itself superfluous.
        if steps.first().is_some_and(|step| step.proof == HolderSource::Cgroup) {
            steps.retain(|step| step.proof == HolderSource::Cgroup);
        }
        Self { job_id, record: sources.records.get(&job_id), map, steps }
    }

    fn job(&self, sources: &SlurmSources<'_>, runs: &mut Runs, events: &mut Vec<LookEvent>) -> Option<SlurmJob> {
        let run = runs.settle(self.job_id, self.clues())?;
        let holder = Holder {
            kind: HolderKind::SlurmJob,
            cluster: sources.cluster.clone(),
            job_id: Name::from(self.job_id.to_string()),
            shown_id: self.shown_id(),
            run: run.name,
            started_at: run.started_at,
        };
        let (devices, is_given_known) = self.devices(sources, events);
        Some(SlurmJob { holder, facts: self.facts(sources.users, events), devices, is_given_known })
    }

    fn environs(&self) -> impl Iterator<Item = &'a Environ> {
        let id = self.job_id;
        let of_step = self.steps.iter().filter_map(|step| step.environ.as_ref());
        of_step.filter(move |environ| environ.number::<u64>("SLURM_JOB_ID") == Some(id))
    }

    fn clues(&self) -> RunClues {
        let line = |part: fn(&MapLine) -> Option<Timestamp>| self.map.iter().filter_map(|(_, line)| part(line)).min();
        let of_environ = || self.environs().find_map(|environ| environ.get("SLURM_JOB_SLUID").cloned());
        let sluid = self.record.and_then(|record| record.sluid.clone()).or_else(of_environ);
        RunClues {
            sluid: sluid.filter(|sluid| is_sluid(sluid)),
            scheduler_start: self.record.and_then(|record| record.started_at),
            restarts: self.record.and_then(|r| r.restarts).or(self.map.iter().find_map(|(_, line)| line.restarts)),
            map_start: line(|line| line.started_at),
            environ_start: self.environs().find_map(|e| e.number("SLURM_JOB_START_TIME")).map(Timestamp::from_unix_s),
            written_at: line(|line| line.written_at),
            step_start: self.steps.iter().map(|step| step.started_at).min(),
        }
    }

    fn shown_id(&self) -> Option<Name> {
        let of_environ = |environ: &Environ| {
            let (array, task) = environ.get("SLURM_ARRAY_JOB_ID").zip(environ.get("SLURM_ARRAY_TASK_ID"))?;
            Some(Name::from(format!("{array}_{task}")))
        };
        match self.record {
            Some(record) => record.shown_id.clone(),
            None => self.environs().find_map(of_environ),
        }
    }

    fn facts(&self, users: &BTreeMap<u32, Name>, events: &mut Vec<LookEvent>) -> Facts {
        let record = self.record;
        let line = self.map.first().map(|(_, line)| *line);
        let by_kernel = self.steps.iter().find(|step| step.proof == HolderSource::Cgroup);
        let said = record.and_then(|record| record.uid).or(line.and_then(|line| line.uid));
        let both = said.zip(by_kernel.and_then(|step| step.uid));
        if let Some((said, seen)) = both.filter(|(said, seen)| said != seen) {
            let detail = format!("job {} is user {said}'s, and its processes are user {seen}'s", self.job_id);
            events.push(LookEvent::of_node(LookEventKind::Disagreement, detail));
        }
        let of_environ = |name| self.environs().find_map(|environ| environ.get(name).cloned());
        let mut labels = self.environs().next().map(Environ::labels).unwrap_or_default();
        labels.extend(
            record.and_then(|record| record.comment.as_ref()).map(|comment| pairs(comment)).unwrap_or_default(),
        );
        Facts {
            kind: HolderKind::SlurmJob,
            account: record.and_then(|r| r.account.clone()).or_else(|| line.and_then(|line| line.account.clone())),
            namespace: None,
            user: record
                .and_then(|r| r.user.clone())
                .or_else(|| self.steps.iter().find_map(|step| step.user.clone()))
                .or_else(|| said.and_then(|uid| users.get(&uid).cloned())),
            queue: record.and_then(|r| r.partition.clone()).or_else(|| of_environ("SLURM_JOB_PARTITION")),
            qos: record.and_then(|r| r.qos.clone()).or_else(|| of_environ("SLURM_JOB_QOS")),
            labels,
        }
    }

    /// Its devices by the best source that names them, and whether that source is one that gives devices.
    fn devices(&self, sources: &SlurmSources<'_>, events: &mut Vec<LookEvent>) -> (Vec<SlurmDevice>, bool) {
        let by_record = self.record.and_then(|record| self.by_record(record, sources, events));
        let by_map = self.by_map(sources, events);
        let by_environ = self.by_environ(sources, events);
        let all = [by_record, by_map, by_environ];
        let mut named = all.into_iter().flatten();
        let Some(best) = named.next() else { return (Vec::new(), false) };
        for other in named {
            self.compare(&best, &other, events);
        }
        let is_given_known = best.source <= HolderSource::PrologMap;
        let devices = best.devices.into_iter();
        let devices = devices.map(|(device, share)| SlurmDevice { device, source: best.source, share }).collect();
        (devices, is_given_known)
    }

    fn compare(&self, best: &Named, other: &Named, events: &mut Vec<LookEvent>) {
        let of_best: BTreeSet<&DeviceId> = best.devices.keys().collect();
        for device in other.devices.keys().filter(|device| !of_best.contains(device)) {
            let (best, other) = (best.source.name(), other.source.name());
            let detail = format!("job {} has it by {other}, and not by {best}", self.job_id);
            events.push(LookEvent::of_device(LookEventKind::Disagreement, device, detail));
        }
    }

    fn by_record(&self, record: &JobRecord, sources: &SlurmSources<'_>, events: &mut Vec<LookEvent>) -> Option<Named> {
        let mut devices = BTreeMap::new();
        let mut is_told = false;
        for node in sources.nodes {
            let Some(gres) = record.on_node(&node.name) else { continue };
            is_told = true;
            for gres in &gres.gres {
                let total = node.order.as_ref().and_then(|order| order.shares_per_device(&gres.name));
                for (position, part) in &gres.positions {
                    let Some(device) = node.order.as_ref().and_then(|order| order.device(*position, sources.aliases))
                    else {
                        let detail = format!(
                            "job {} has number {position} of {}, which leads to no device",
                            self.job_id, node.name
                        );
                        events.push(LookEvent::of_node(LookEventKind::UnknownDevice, detail));
                        continue;
                    };
                    let whole = sources.shares.get(&device.device_uuid).copied();
                    let counted = (gres.positions.len() == 1).then_some(gres.count).zip(total);
                    let share = match &*gres.name {
                        "gpu" => whole,
                        // A part of a device: written out, else its count among all that the device has, else not declared.
                        _ => part.or(counted).zip(whole).and_then(|((has, of), whole)| fraction(whole, has, of)),
                    };
                    devices.insert(device, share);
                }
            }
        }
        is_told.then_some(Named { source: HolderSource::Scheduler, devices })
    }

    fn by_map(&self, sources: &SlurmSources<'_>, events: &mut Vec<LookEvent>) -> Option<Named> {
        let mut devices = BTreeMap::new();
        for (_, line) in &self.map {
            let Some(device) = &line.device else {
                let detail = format!("job {} has the file {:?}, which leads to no device", self.job_id, &*line.file);
                events.push(LookEvent::of_node(LookEventKind::UnknownDevice, detail));
                continue;
            };
            let share = sources.shares.get(&device.device_uuid).copied().filter(|_| line.sharers == 1);
            devices.insert(device.clone(), share);
        }
        (!self.map.is_empty()).then_some(Named { source: HolderSource::PrologMap, devices })
    }

    fn by_environ(&self, sources: &SlurmSources<'_>, events: &mut Vec<LookEvent>) -> Option<Named> {
        let mut devices = BTreeMap::new();
        let mut source = HolderSource::Process;
        for step in &self.steps {
            let Some(environ) = &step.environ else { continue };
            let says = environ.number::<u64>("SLURM_JOB_ID");
            if says != Some(self.job_id) {
                if let Some(says) = says {
                    let detail = format!("a process of job {} says it is of job {says}", self.job_id);
                    events.push(LookEvent::of_node(LookEventKind::Disagreement, detail));
                }
                continue;
            }
            let name = step.node.as_ref().or_else(|| environ.get("SLURMD_NODENAME"));
            let node = match name {
                Some(name) => sources.nodes.iter().find(|node| node.name == *name),
                None => sources.nodes.first().filter(|_| sources.nodes.len() == 1),
            };
            let order = node.and_then(|node| node.order.as_ref());
            for word in device_words(environ) {
                let device = match word.parse::<usize>() {
                    Ok(position) => order.and_then(|order| order.device(position, sources.aliases)),
                    Err(_) => sources.aliases.by_uuid(word),
                };
                let Some(device) = device else {
                    let detail = format!("job {} says it has {word:?}, which leads to no device", self.job_id);
                    events.push(LookEvent::of_node(LookEventKind::UnknownDevice, detail));
                    continue;
                };
                let is_part = environ.get("SLURM_SHARDS_ON_NODE").is_some();
                let share = sources.shares.get(&device.device_uuid).copied().filter(|_| !is_part);
                source = source.min(step.proof);
                devices.insert(device, share);
            }
        }
        (!devices.is_empty()).then_some(Named { source, devices })
    }
}

/// Devices that one source names.
struct Named {
    source: HolderSource,
    devices: BTreeMap<DeviceId, Option<CardShare>>,
}

/// How a process's environment names the devices of its job on this node: numbers of Slurm, or UUIDs.
///
/// `SLURM_JOB_GPUS` speaks for the first node of the allocation, and `srun` hands it on to the others: there the step's own counts. In
/// `CUDA_VISIBLE_DEVICES` only UUIDs mean a device: its numbers begin at 0 again where Slurm constrains devices.
fn device_words(environ: &Environ) -> Vec<&str> {
    let is_first_node = environ.number::<u32>("SLURM_JOB_NUM_NODES").is_none_or(|nodes| nodes <= 1)
        || environ.number::<u32>("SLURM_NODEID").is_none_or(|node| node == 0);
    let of_job = environ.get("SLURM_JOB_GPUS").filter(|_| is_first_node);
    if let Some(list) = of_job.or_else(|| environ.get("SLURM_STEP_GPUS")) {
        return list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    }
    let visible = environ.get("CUDA_VISIBLE_DEVICES").map_or("", Name::as_str);
    visible.split(',').map(str::trim).filter(|word| word.starts_with("GPU-") || word.starts_with("MIG-")).collect()
}

/// `has` of `of` equal parts of a device.
fn fraction(whole: CardShare, has: u64, of: u64) -> Option<CardShare> {
    let parts = i128::from(whole.parts()).checked_mul(i128::from(has.min(of)))?.checked_div(i128::from(of))?;
    i64::try_from(parts).ok().map(CardShare::from_parts)
}

#[cfg(test)]
mod tests;
