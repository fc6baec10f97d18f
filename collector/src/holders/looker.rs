//! The node's own eyes: once a look, who holds its devices.
//!
//! The rim that reads `/proc`, map files and the controller, and hands what they say to the pure parts ([`slurm`], [`session`], [`join`]).
//! Everything it keeps from one look to the next it could find again: a collector that starts in the middle of a job names it the same.

use super::aliases::{Aliases, DeviceId};
use super::cgroup::{Place, SlurmJobRef};
use super::controller::{Controller, ControllerSettings};
use super::environ::Environ;
use super::gres::GresOrder;
use super::join::{self, Doing, Occupant, Scheduling, Sources};
use super::look::{Claimant, Look, LookEvent, LookEventKind};
use super::meter::{Counted, Meter};
use super::proc_entry::{Stat, Terminal};
use super::processes::{ProcessFacts, Processes};
use super::runs::Runs;
use super::session::{self, Link};
use super::slurm::{self, SlurmJob, SlurmNode, SlurmSources, StepSeen};
use super::slurm_map::{self, MapLine, MapNumbers};
use super::users::Users;
use super::virtual_machine::{self, Passing, VgpuInstance};
use super::{DeviceProcess, Held, terminals};
use crate::owners::{Facts, Rules, owner};
use cardhour_domain::{
    AttemptKey, CardShare, Gap, Holder, HolderKind, HolderSource, Name, Reading, SeenDevice, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Where to look, and by which rules.
#[derive(Clone, Debug)]
pub struct LookSettings {
    /// The cluster, as the books name it.
    pub cluster: Name,
    /// `/proc` of the host.
    pub proc_root: PathBuf,
    /// `/sys` of the host.
    pub sys_root: PathBuf,
    /// `/dev` of the host.
    pub dev_root: PathBuf,
    /// The path of `getent`.
    pub getent: PathBuf,
    /// How long a name of a user may take.
    pub getent_timeout: Duration,
    /// The collector's own pid: it is never an owner.
    pub own_pid: u32,
    /// Whether a scheduler gives this node's devices.
    pub scheduling: Scheduling,
    /// Slurm, where it is there.
    pub slurm: Option<SlurmSettings>,
    /// Who pays.
    pub rules: Rules,
}

/// Slurm on this node.
#[derive(Clone, Debug)]
pub struct SlurmSettings {
    /// Its names there: one a `slurmd`.
    pub nodes: Vec<Name>,
    /// `gres.conf`.
    pub gres_conf: PathBuf,
    /// The folder of map files; `%n` in it is the node's name.
    pub map_folder: Option<PathBuf>,
    /// What numbers in their names count.
    pub map_numbers: MapNumbers,
    /// How the controller is asked; none where it must not be.
    pub controller: Option<ControllerSettings>,
}

/// Pods of this node, as the part that knows Kubernetes has them.
#[derive(Clone, Debug, Default)]
pub struct Pods {
    /// By UID.
    pub by_uid: BTreeMap<Name, Claimant>,
    /// By id of a container.
    pub by_container: BTreeMap<Name, Claimant>,
}

/// What others found out before this look.
#[derive(Debug)]
pub struct LookInput<'a> {
    /// Now.
    pub at: Timestamp,
    /// The node's devices, also those passed through to virtual machines, as they were last seen.
    pub devices: &'a [SeenDevice],
    /// Their other names.
    pub aliases: &'a Aliases,
    /// Processes that the driver lists.
    pub processes: &'a [DeviceProcess],
    /// Cards whose processes couldn't be listed.
    pub unlisted: &'a BTreeSet<Name>,
    /// Cards of which another source, such as the kubelet, couldn't speak.
    pub unwatched: &'a BTreeSet<Name>,
    /// Pods, for processes that live in one.
    pub pods: &'a Pods,
    /// What other sources say was given.
    pub given: Vec<Held>,
    /// Parts of cards that virtual machines have.
    pub vgpus: &'a [VgpuInstance],
}

/// Programs of the driver and of monitoring, which hold nothing themselves; believed of users of the system alone.
const INFRASTRUCTURE: [&str; 7] =
    ["nvidia-cuda-mps", "nvidia-persiste", "nv-hostengine", "dcgm-exporter", "Xorg", "Xwayland", "gnome-shell"];

/// Users below are the system's own.
const FIRST_PERSON_UID: u32 = 1000;

/// Looks for holders.
#[derive(Debug)]
pub struct Looker {
    settings: LookSettings,
    processes: Processes,
    is_host_namespace: bool,
    users: Users,
    controller: Option<Controller>,
    runs: Runs,
    meter: Meter,
    orders: Vec<(Option<SystemTime>, Option<GresOrder>)>,
    last_evidence: BTreeSet<u64>,
    last_occupants: HashMap<(u32, DeviceId), (Claimant, HolderSource)>,
    started: HashMap<AttemptKey, Option<Timestamp>>,
    last_events: BTreeSet<LookEvent>,
    last_look: Option<Timestamp>,
}

/// What one look gathers before it is joined.
#[derive(Default)]
struct Gathered {
    events: BTreeSet<LookEvent>,
    unwatched: BTreeSet<Name>,
    occupants: Vec<Occupant>,
    /// Processes that a holder's others come from.
    roots: BTreeMap<AttemptKey, BTreeSet<u32>>,
    /// What kind each of those holders is.
    kinds: BTreeMap<AttemptKey, HolderKind>,
    is_all_unwatched: bool,
}

impl Looker {
    /// Starts looking. Errors: `/proc` isn't one.
    pub fn new(settings: LookSettings) -> std::io::Result<Self> {
        let processes = Processes::new(settings.proc_root.clone())?;
        let is_host_namespace = match processes.check_namespace() {
            Ok(()) => true,
            Err(fault) => {
                tracing::warn!(%fault, "processes are not attributed");
                false
            }
        };
        let controller = settings.slurm.as_ref().and_then(|slurm| slurm.controller.clone()).map(Controller::new);
        Ok(Self {
            users: Users::new(settings.getent.clone(), settings.getent_timeout),
            processes,
            is_host_namespace,
            controller,
            runs: Runs::default(),
            meter: Meter::default(),
            orders: Vec::new(),
            last_evidence: BTreeSet::new(),
            last_occupants: HashMap::new(),
            started: HashMap::new(),
            last_events: BTreeSet::new(),
            last_look: None,
            settings,
        })
    }

    /// Looks once.
    pub fn look(&mut self, input: LookInput<'_>) -> Look {
        let mut gathered = Gathered::default();
        if let Err(error) = self.processes.scan() {
            gathered.events.insert(LookEvent::of_node(LookEventKind::SourceFailed, format!("processes: {error}")));
            gathered.is_all_unwatched = true;
        }
        let shares: BTreeMap<Name, CardShare> =
            input.devices.iter().map(|device| (device.device_uuid.clone(), device.share)).collect();
        let jobs = self.slurm_jobs(&input, &shares, &mut gathered);
        let mut given = input.given;
        let mut given_known: BTreeSet<AttemptKey> = given.iter().map(|held| held.holder.key()).collect();
        for job in jobs.values() {
            let key = job.holder.key();
            if job.is_given_known {
                given_known.insert(key);
            }
            let owner = owner(&self.settings.rules, &job.facts);
            given.extend(job.devices.iter().map(|own| Held {
                card_uuid: own.device.card_uuid.clone(),
                device_uuid: own.device.device_uuid.clone(),
                share: own.share,
                source: own.source,
                holder: job.holder.clone(),
                owner: owner.clone(),
            }));
        }
        given.extend(self.machines(input.devices, input.vgpus, &mut gathered));
        self.occupants(input.processes, input.pods, &jobs, &mut gathered);
        let doing = self.doing(&gathered);
        let (held, worked, odd) = join::join(Sources {
            given,
            occupants: &gathered.occupants,
            given_known: &given_known,
            doing: &doing,
            scheduling: self.settings.scheduling,
            unlisted: input.unlisted,
        });
        gathered.events.extend(odd);
        self.started = held.iter().map(|held| (held.holder.key(), held.holder.started_at)).collect();
        let is_watched = |card: &Name| {
            !(gathered.is_all_unwatched
                || gathered.unwatched.contains(card)
                || input.unlisted.contains(card)
                || input.unwatched.contains(card))
        };
        let watched = input.devices.iter().map(|device| device.card_uuid.clone()).filter(is_watched).collect();
        let events = gathered.events.difference(&self.last_events).cloned().collect();
        self.last_events = gathered.events;
        self.last_look = Some(input.at);
        Look { held, worked, events, watched }
    }

    /// Slurm's jobs here, by id.
    fn slurm_jobs(
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
        let has_gone = self.last_evidence.iter().any(|job| !evidence.contains_key(job));
        self.last_evidence = evidence.keys().copied().collect();
        let (none, mut listed) = (BTreeMap::new(), BTreeSet::new());
        if let Some(controller) = &mut self.controller {
            controller.refresh(&settings.nodes, &evidence, has_gone, input.at);
            listed = controller.listed(input.at);
            if let Some(failure) = controller.failure() {
                gathered.events.insert(LookEvent::of_node(LookEventKind::SourceFailed, failure));
            }
            for job in controller.doubtful() {
                let detail = format!("job {job}: its description says something twice, and is not believed");
                gathered.events.insert(LookEvent::of_node(LookEventKind::Disagreement, detail));
            }
            gathered.is_all_unwatched |= !controller.is_current(input.at);
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
            let Some(facts) = self.processes.facts(pid).filter(|facts| facts.uid == Some(0)) else { continue };
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
    fn job_of(&self, pid: u32, facts: &ProcessFacts) -> Option<(u64, HolderSource)> {
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

    fn user_name(&mut self, uid: u32) -> Name {
        // A number is a name too, as every command shows it where the directory knows none.
        self.users.name(uid).unwrap_or_else(|| Name::from(uid.to_string()))
    }

    /// What virtual machines have.
    fn machines(&mut self, devices: &[SeenDevice], vgpus: &[VgpuInstance], gathered: &mut Gathered) -> Vec<Held> {
        let mut held = Vec::new();
        for card in devices.iter().filter(|device| device.card_uuid == device.device_uuid) {
            let Some(bus_id) = &card.pci_bus_id else { continue };
            let Passing::Through { files } = virtual_machine::passing(&self.settings.sys_root, bus_id) else {
                continue;
            };
            let Some(machine) = virtual_machine::machine_with(&files, &self.processes) else {
                // Held by a machine that can't be named, or by none: unaccounted, never free.
                gathered.unwatched.insert(card.card_uuid.clone());
                continue;
            };
            let Some(facts) = self.processes.facts(machine.pid) else { continue };
            let name = machine.name.or(machine.uuid).unwrap_or_else(|| Name::from(format!("vm[{}]", machine.pid)));
            let run = format!("boot{}-{}-{}", self.processes.boot(), machine.pid, facts.id.start_ticks);
            let started_at = Some(self.processes.time_of(facts.id.start_ticks));
            let claimant = self.machine(name, run, started_at, facts.person());
            held.push(given_to(claimant, DeviceId::card(&card.card_uuid), Some(CardShare::CARD)));
        }
        for vgpu in vgpus {
            let device = devices.iter().find(|device| device.device_uuid == vgpu.device.device_uuid);
            let share = device.and_then(|device| vgpu.share(device.memory_bytes, device.share));
            let name = vgpu.vm_name.clone().unwrap_or_else(|| vgpu.vm_id.clone());
            let claimant = self.machine(name, format!("uid{}", vgpu.vgpu_uuid), None, None);
            held.push(given_to(claimant, vgpu.device.clone(), share));
        }
        held
    }

    fn machine(&mut self, name: Name, run: String, started_at: Option<Timestamp>, uid: Option<u32>) -> Claimant {
        let holder = Holder {
            kind: HolderKind::VirtualMachine,
            cluster: self.settings.cluster.clone(),
            job_id: name,
            shown_id: None,
            run: run.into(),
            started_at,
        };
        // Hypervisors run machines as users of their own: those are nobody who pays.
        let user = uid.filter(|uid| *uid >= FIRST_PERSON_UID).map(|uid| self.user_name(uid));
        let facts = Facts { user, ..Facts::of(HolderKind::VirtualMachine) };
        Claimant { owner: owner(&self.settings.rules, &facts), holder }
    }

    /// Whose the processes on devices are.
    fn occupants(
        &mut self,
        on_devices: &[DeviceProcess],
        pods: &Pods,
        jobs: &BTreeMap<u64, SlurmJob>,
        gathered: &mut Gathered,
    ) {
        let own_place = self.processes.facts(self.settings.own_pid).and_then(|facts| facts.place.clone());
        let own_place = own_place.filter(|place| matches!(place, Place::Pod { .. } | Place::Container { .. }));
        let before = std::mem::take(&mut self.last_occupants);
        for process in on_devices {
            let device = DeviceId { card_uuid: process.card_uuid.clone(), device_uuid: process.device_uuid.clone() };
            let facts = if self.is_host_namespace { self.processes.facts(process.pid) } else { None };
            let Some(facts) = facts else {
                if let Some((claimant, source)) = before.get(&(process.pid, device.clone())).cloned() {
                    // It ended between the driver's list and this look: it proves its holder this once.
                    gathered.occupants.push(Occupant { process: process.clone(), claimant, source, is_alive: false });
                } else {
                    gathered.unwatched.insert(device.card_uuid.clone());
                    let detail = if self.is_host_namespace {
                        format!("process {} is not in /proc", process.pid)
                    } else {
                        "processes are not attributed: not in the host's namespace".to_owned()
                    };
                    gathered.events.insert(LookEvent::of_device(LookEventKind::Unattributed, &device, detail));
                }
                continue;
            };
            let is_own = process.pid == self.settings.own_pid || (own_place.is_some() && facts.place == own_place);
            if is_own || is_infrastructure(&facts) {
                continue;
            }
            let Some((claimant, source, root)) = self.claim(process.pid, &facts, pods, jobs, &device, gathered) else {
                gathered.unwatched.insert(device.card_uuid.clone());
                continue;
            };
            let key = claimant.holder.key();
            gathered.kinds.insert(key.clone(), claimant.holder.kind);
            gathered.roots.entry(key).or_default().extend([root, process.pid]);
            self.last_occupants.insert((process.pid, device), (claimant.clone(), source));
            gathered.occupants.push(Occupant { process: process.clone(), claimant, source, is_alive: true });
        }
    }

    /// Whose a process is: the holder, what tells so, and the process that its others come from.
    fn claim(
        &mut self,
        pid: u32,
        facts: &ProcessFacts,
        pods: &Pods,
        jobs: &BTreeMap<u64, SlurmJob>,
        device: &DeviceId,
        gathered: &mut Gathered,
    ) -> Option<(Claimant, HolderSource, u32)> {
        if let Some(Place::SlurmUnknown { path }) = &facts.place {
            gathered.events.insert(LookEvent::of_device(LookEventKind::UnknownCgroup, device, path.clone()));
        }
        if let Some((job, proof)) = self.job_of(pid, facts).and_then(|(id, proof)| Some((jobs.get(&id)?, proof))) {
            let claimant = Claimant { holder: job.holder.clone(), owner: owner(&self.settings.rules, &job.facts) };
            return Some((claimant, proof, pid));
        }
        let lineage: Vec<Stat> = self.processes.lineage(pid).into_iter().cloned().collect();
        let lineage: Vec<Link> =
            lineage.into_iter().map(|stat| (self.processes.facts(stat.id.pid), stat)).map(|(f, s)| (s, f)).collect();
        if let Some(Place::Pod { uid, container }) = &facts.place {
            let by_container = container.as_ref().and_then(|id| pods.by_container.get(id));
            let Some(claimant) = pods.by_uid.get(uid).or(by_container) else {
                let detail = format!("a process of pod {uid}, which isn't known yet");
                gathered.events.insert(LookEvent::of_device(LookEventKind::Unattributed, device, detail));
                return None;
            };
            let of_pod = |link: &&Link| matches!(&link.1, Some(f) if matches!(&f.place, Some(Place::Pod { uid: own, .. }) if own == uid));
            let root = lineage.iter().take_while(of_pod).last().map_or(pid, |link| link.0.id.pid);
            return Some((claimant.clone(), HolderSource::Cgroup, root));
        }
        let belongs = session::belongs(&lineage)?;
        let start = self.processes.time_of(belongs.start_ticks);
        if let Some(Place::Machine { name }) = &facts.place {
            let run = format!("boot{}-{}-{}", self.processes.boot(), pid, facts.id.start_ticks);
            let claimant = self.machine(name.clone(), run, Some(self.processes.time_of(facts.id.start_ticks)), None);
            return Some((claimant, HolderSource::Cgroup, pid));
        }
        let mut holder = Holder {
            kind: belongs.kind,
            cluster: self.settings.cluster.clone(),
            job_id: belongs.job_id,
            shown_id: None,
            run: Name::from(format!("boot{}-{}", self.processes.boot(), belongs.run)),
            started_at: Some(start),
        };
        // Processes of one holder hang on different ones of its first; what was said of it at the last look stays.
        if let Some(kept) = self.started.get(&holder.key()) {
            holder.started_at = *kept;
        }
        let user = facts.person().map(|uid| self.user_name(uid));
        let labels = facts.environ.as_ref().map(Environ::labels).unwrap_or_default();
        let facts = Facts { user, labels, ..Facts::of(belongs.kind) };
        let claimant = Claimant { owner: owner(&self.settings.rules, &facts), holder };
        Some((claimant, HolderSource::Process, belongs.root))
    }

    /// What the processes of each holder did since the last look.
    fn doing(&mut self, gathered: &Gathered) -> BTreeMap<AttemptKey, Doing> {
        let mut counted = BTreeMap::new();
        let mut attended = BTreeMap::new();
        for (key, roots) in &gathered.roots {
            let members = self.processes.tree(roots);
            let count = |stat: &&Stat| Counted {
                id: stat.id,
                parent: stat.parent,
                ticks: stat.own_ticks + stat.waited_ticks,
                io_bytes: if stat.is_dead() { Some(0) } else { self.processes.io_bytes(stat.id.pid) },
            };
            counted.insert(key.clone(), members.iter().map(count).collect());
            let terminals: BTreeMap<_, u32> =
                members.iter().filter_map(|stat| Some((stat.terminal?, stat.id.pid))).collect();
            attended.insert(key.clone(), self.is_attended(&terminals, gathered.kinds.get(key).copied()));
        }
        let efforts = self.meter.step(counted);
        efforts
            .into_iter()
            .map(|(key, effort)| {
                let is_attended = attended.remove(&key).unwrap_or(Reading::Missing(Gap::NotRecorded));
                (key, Doing { effort, is_attended })
            })
            .collect()
    }

    /// Whether somebody typed at one of these terminals since the last look. Of a session without one nothing can be said: who works in a
    /// notebook types into a browser.
    fn is_attended(&self, terminals: &BTreeMap<Terminal, u32>, kind: Option<HolderKind>) -> Reading<bool> {
        let Some(last_look) = self.last_look else { return Reading::Missing(Gap::CollectorDown) };
        if terminals.is_empty() {
            return if kind == Some(HolderKind::Session) {
                Reading::Missing(Gap::NotSupported)
            } else {
                Reading::Seen(false)
            };
        }
        let mut has_gap = false;
        for (terminal, pid) in terminals {
            // A container has terminals of its own, with the same numbers as the host's.
            let own_dev = self.processes.file_root(*pid).join("dev");
            let typed = terminals::typed_at(&own_dev, *terminal)
                .or_else(|| terminals::typed_at(&self.settings.dev_root, *terminal));
            match typed {
                Some(at) if at >= last_look => return Reading::Seen(true),
                Some(_) => {}
                None => has_gap = true,
            }
        }
        if has_gap { Reading::Missing(Gap::NoPermission) } else { Reading::Seen(false) }
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

fn is_infrastructure(facts: &ProcessFacts) -> bool {
    let is_called_so = INFRASTRUCTURE.iter().any(|name| facts.comm.starts_with(name));
    is_called_so && facts.uid.is_some_and(|uid| uid < FIRST_PERSON_UID)
}

fn given_to(claimant: Claimant, device: DeviceId, share: Option<CardShare>) -> Held {
    let Claimant { holder, owner } = claimant;
    let DeviceId { card_uuid, device_uuid } = device;
    Held { card_uuid, device_uuid, share, source: HolderSource::Scheduler, holder, owner }
}
