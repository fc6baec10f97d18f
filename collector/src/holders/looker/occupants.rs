//! Whose the processes on devices are.

use super::{FIRST_PERSON_UID, Gathered, Looker, Pods};
use crate::holders::DeviceProcess;
use crate::holders::aliases::DeviceId;
use crate::holders::cgroup::Place;
use crate::holders::environ::Environ;
use crate::holders::join::Occupant;
use crate::holders::look::{Claimant, LookEvent, LookEventKind};
use crate::holders::proc_entry::Stat;
use crate::holders::processes::ProcessFacts;
use crate::holders::session::{self, Link};
use crate::holders::slurm::SlurmJob;
use crate::owners::{Facts, owner};
use cardhour_domain::{Holder, HolderSource, Name};
use std::collections::BTreeMap;

/// Programs of the driver and of monitoring, which hold nothing themselves; believed of users of the system alone.
const INFRASTRUCTURE: [&str; 7] =
    ["nvidia-cuda-mps", "nvidia-persiste", "nv-hostengine", "dcgm-exporter", "Xorg", "Xwayland", "gnome-shell"];

impl Looker {
    /// Whose the processes on devices are.
    pub(super) fn occupants(
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
}

fn is_infrastructure(facts: &ProcessFacts) -> bool {
    let is_called_so = INFRASTRUCTURE.iter().any(|name| facts.comm.starts_with(name));
    is_called_so && facts.uid.is_some_and(|uid| uid < FIRST_PERSON_UID)
}
