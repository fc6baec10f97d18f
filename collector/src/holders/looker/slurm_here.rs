//! What tells of Slurm on this node: steps, map files, the controller.

use super::{Gathered, LookInput, Looker, SlurmSettings};
use crate::holders::DeviceProcess;
use crate::holders::aliases::Aliases;
use crate::holders::cgroup::{Place, SlurmJobRef};
use crate::holders::controller::Controller;
use crate::holders::gres::GresOrder;
use crate::holders::look::{LookEvent, LookEventKind};
use crate::holders::processes::ProcessFacts;
use crate::holders::slurm::{self, SlurmJob, SlurmNode, SlurmSources, StepSeen};
use crate::holders::slurm_map::{self, MapLine};
use cardhour_domain::{CardShare, HolderKind, HolderSource, Name, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

impl Looker {
    /// Slurm's jobs here, by id.
    pub(super) fn slurm_jobs(
        &mut self,
        input: &LookInput<'_>,
        shares: &BTreeMap<Name, CardShare>,
        gathered: &mut Gathered,
    ) -> BTreeMap<u64, SlurmJob> {
        let Some(settings) = self.settings.slurm.clone() else { return BTreeMap::new() };
        let nodes = self.slurm_nodes(&settings);
        let (mut steps, step_roots) = self.steps(input.processes);
        let mut map = read_maps(&settings, &nodes, input.aliases, gathered);
        let newest = |sign: Option<Timestamp>, kept: &mut Option<Timestamp>| *kept = (*kept).max(sign);
        let mut evidence: BTreeMap<u64, Option<Timestamp>> = BTreeMap::new();
        for step in steps.iter().filter(|step| step.proof == HolderSource::Cgroup) {
            newest(Some(step.started_at), evidence.entry(step.job_id).or_default());
        }
        for (_, line) in &map {
            newest(line.written_at, evidence.entry(line.job_id).or_default());
        }
        // A job that was seen here and isn't any more may still be ending: it is asked for until the controller lets it go.
        let has_gone = self.seen_here.iter().any(|job| !evidence.contains_key(job));
        self.seen_here.extend(evidence.keys());
        let (none, mut listed) = (BTreeMap::new(), BTreeSet::new());
        if let Some(controller) = &mut self.controller {
            controller.refresh(&settings.nodes, &evidence, has_gone, input.at);
            listed = controller.listed(input.at);
            self.seen_here.retain(|job| listed.contains(job) || evidence.contains_key(job));
            if let Some(failure) = controller.failure() {
                gathered.events.insert(LookEvent::of_node(LookEventKind::SourceFailed, failure));
            }
            for job in controller.doubtful() {
                let detail = format!("job {job}: its description says something twice, and is not believed");
                gathered.events.insert(LookEvent::of_node(LookEventKind::Disagreement, detail));
            }
            gathered.is_all_unwatched |= !controller.is_current(input.at);
        }
        if self.controller.is_none() {
            self.seen_here.clear();
        }
        self.drop_stale(&mut map, &steps, gathered);
        if let Some(controller) = self.controller.as_ref().filter(|controller| controller.is_current(input.at)) {
            // A process that outlived its job still has the job's environment.
            steps.retain(|step| step.proof == HolderSource::Cgroup || !controller.knows_gone(step.job_id, None));
        }
        let uids: BTreeSet<u32> = map.iter().filter_map(|(_, line)| line.uid).collect();
        let users = uids.into_iter().filter_map(|uid| Some((uid, self.users.name(uid)?))).collect();
        let (jobs, events) = slurm::jobs(
            &SlurmSources {
                cluster: &self.settings.cluster,
                nodes: &nodes,
                aliases: input.aliases,
                shares,
                records: self.controller.as_ref().map_or(&none, Controller::records),
                listed: &listed,
                map: &map,
                steps: &steps,
                users: &users,
            },
            &mut self.runs,
        );
        gathered.events.extend(events);
        for (id, roots) in step_roots {
            if let Some(job) = jobs.get(&id) {
                gathered.roots.entry(job.holder.key()).or_default().extend(roots);
                gathered.kinds.insert(job.holder.key(), HolderKind::SlurmJob);
            }
        }
        jobs
    }

    fn slurm_nodes(&mut self, settings: &SlurmSettings) -> Vec<SlurmNode> {
        let changed = std::fs::metadata(&settings.gres_conf).and_then(|metadata| metadata.modified()).ok();
        self.orders.resize(settings.nodes.len(), (None, None));
        for (name, (read_at, order)) in settings.nodes.iter().zip(&mut self.orders) {
            if changed.is_none() || *read_at != changed {
                let text = std::fs::read_to_string(&settings.gres_conf).unwrap_or_default();
                *order = GresOrder::parse(&text, name);
                *read_at = changed;
            }
        }
        let nodes = settings.nodes.iter().zip(&self.orders);
        nodes.map(|(name, (_, order))| SlurmNode { name: name.clone(), order: order.clone() }).collect()
    }

    /// Steps by Slurm's own daemons, which run as root and say their job in their title, and by processes on devices; and the processes that
    /// each job's others come from.
    fn steps(&mut self, on_devices: &[DeviceProcess]) -> (Vec<StepSeen>, BTreeMap<u64, BTreeSet<u32>>) {
        let daemons: Vec<u32> = self.processes.all().filter(|s| &*s.comm == "slurmstepd").map(|s| s.id.pid).collect();
        let (mut steps, mut roots) = (Vec::new(), BTreeMap::<u64, BTreeSet<u32>>::new());
        for pid in daemons {
            // Root in a container can call a program what it likes.
            let is_slurms = |facts: &Arc<ProcessFacts>| {
                let is_inside = matches!(facts.place, Some(Place::Pod { .. } | Place::Container { .. }));
                facts.uid == Some(0) && !is_inside
            };
            let Some(facts) = self.processes.facts(pid).filter(is_slurms) else { continue };
            let Some(job_id) = facts.words.first().and_then(|title| job_of_title(title)) else { continue };
            roots.entry(job_id).or_default().insert(pid);
            let own = self.processes.tree(&BTreeSet::from([pid]));
            let program =
                own.iter().filter(|s| &*s.comm != "slurmstepd" && !s.is_dead()).min_by_key(|s| s.id.start_ticks);
            let program = program.map(|stat| stat.id.pid).and_then(|pid| self.processes.facts(pid));
            steps.push(self.step(job_id, &facts, program, HolderSource::Cgroup));
        }
        let pids: BTreeSet<u32> = on_devices.iter().map(|process| process.pid).collect();
        for pid in pids {
            let Some(facts) = self.processes.facts(pid) else { continue };
            let Some((job_id, proof)) = self.job_of(pid, &facts) else { continue };
            roots.entry(job_id).or_default().insert(pid);
            if proof == HolderSource::Cgroup && steps.iter().any(|step| step.job_id == job_id && step.environ.is_some())
            {
                continue;
            }
            steps.push(self.step(job_id, &facts, Some(facts.clone()), proof));
        }
        (steps, roots)
    }

    fn step(
        &mut self,
        job_id: u64,
        daemon: &ProcessFacts,
        program: Option<Arc<ProcessFacts>>,
        proof: HolderSource,
    ) -> StepSeen {
        let place = |facts: &ProcessFacts| match &facts.place {
            Some(Place::Slurm { node, .. }) => node.clone(),
            _ => None,
        };
        let program = program.as_deref();
        let uid = program.and_then(|program| program.uid);
        StepSeen {
            job_id,
            node: place(daemon).or_else(|| program.and_then(place)),
            started_at: self.processes.time_of(daemon.id.start_ticks),
            uid,
            user: uid.map(|uid| self.user_name(uid)),
            environ: program.and_then(|program| program.environ.clone()),
            proof,
        }
    }

    /// Which job a process is of, and what proves it.
    pub(super) fn job_of(&self, pid: u32, facts: &ProcessFacts) -> Option<(u64, HolderSource)> {
        let said = facts.environ.as_ref().and_then(|environ| environ.number("SLURM_JOB_ID"));
        match &facts.place {
            Some(Place::Slurm { job: SlurmJobRef::Id(id), .. }) => return Some((*id, HolderSource::Cgroup)),
            Some(Place::Slurm { job: SlurmJobRef::Sluid(sluid), .. }) => {
                let records = self.controller.iter().flat_map(|controller| controller.records().values());
                let known = records.into_iter().find(|record| record.sluid.as_ref() == Some(sluid)).map(|r| r.job_id);
                // The group proves the run, and only the number of the job is taken from the process.
                return known.or(said).map(|id| (id, HolderSource::Cgroup));
            }
            // Variables of a job go into a pod with the rest of an environment, and mean nothing there.
            Some(Place::Pod { .. }) => return None,
            _ => {}
        }
        for stat in self.processes.lineage(pid).iter().skip(1).filter(|stat| &*stat.comm == "slurmstepd") {
            let title = self.processes.command_line(stat.id.pid);
            let is_roots = self.processes.uid(stat.id.pid) == Some(0);
            if let Some(id) = title.first().filter(|_| is_roots).and_then(|title| job_of_title(title)) {
                return Some((id, HolderSource::Cgroup));
            }
        }
        said.map(|id| (id, HolderSource::Process))
    }

    /// Leaves out lines of jobs that are no more: a node that crashed never ran their epilog.
    fn drop_stale(&self, map: &mut Vec<(usize, MapLine)>, steps: &[StepSeen], gathered: &mut Gathered) {
        let booted_at = self.processes.time_of(0);
        map.retain(|(_, line)| {
            let has_step = steps.iter().any(|step| step.job_id == line.job_id && step.proof == HolderSource::Cgroup);
            let is_stale = !has_step
                && match &self.controller {
                    Some(controller) => controller.knows_gone(line.job_id, line.written_at),
                    None => line.written_at.is_some_and(|at| at < booted_at),
                };
            if is_stale {
                let detail = format!("{} names job {}, which is no more", line.file, line.job_id);
                gathered.events.insert(LookEvent::of_node(LookEventKind::StaleMap, detail));
            }
            !is_stale
        });
    }
}

fn read_maps(
    settings: &SlurmSettings,
    nodes: &[SlurmNode],
    aliases: &Aliases,
    gathered: &mut Gathered,
) -> Vec<(usize, MapLine)> {
    let Some(folder) = &settings.map_folder else { return Vec::new() };
    let mut lines = Vec::new();
    let mut read: BTreeSet<PathBuf> = BTreeSet::new();
    for (i, node) in nodes.iter().enumerate() {
        let folder = PathBuf::from(folder.to_string_lossy().replace("%n", &node.name));
        if !read.insert(folder.clone()) {
            continue;
        }
        match slurm_map::read(&folder, settings.map_numbers, node.order.as_ref(), aliases) {
            Ok(found) => lines.extend(found.into_iter().map(|line| (i, line))),
            Err(error) => {
                let detail = format!("map files in {}: {error}", folder.display());
                gathered.events.insert(LookEvent::of_node(LookEventKind::SourceFailed, detail));
                gathered.is_all_unwatched = true;
            }
        }
    }
    lines
}

/// N of `slurmstepd: [N.batch]`.
fn job_of_title(title: &str) -> Option<u64> {
    let inside = title.strip_prefix("slurmstepd: [")?;
    inside.split(['.', ']']).next()?.parse().ok()
}
