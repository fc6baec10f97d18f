//! The node's own eyes: once a look, who holds its devices.
//!
//! The rim that reads `/proc`, map files and the controller, and hands what they say to the pure parts ([`super::slurm`], [`super::session`], [`super::join`]).
//! Everything it keeps from one look to the next it could find again: a collector that starts in the middle of a job names it the same.

mod doing;
mod machines;
mod occupants;
mod slurm_here;

use super::aliases::{Aliases, DeviceId};
use super::controller::{Controller, ControllerSettings};
use super::gres::GresOrder;
use super::join::{self, Occupant, Scheduling, Sources};
use super::kubernetes::GivenAll;
use super::look::{Claimant, Look, LookEvent, LookEventKind};
use super::meter::Meter;
use super::processes::Processes;
use super::runs::Runs;
use super::slurm_map::MapNumbers;
use super::users::Users;
use super::virtual_machine::VgpuInstance;
use super::{DeviceProcess, Held};
use crate::owners::{Rules, owner};
use cardhour_domain::{AttemptKey, CardShare, HolderKind, HolderSource, Name, SeenDevice, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
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
    /// What others found odd.
    pub odd: Vec<LookEvent>,
}

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
    /// Jobs of Slurm that were seen here, until the controller says that they are no more.
    seen_here: BTreeSet<u64>,
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
            seen_here: BTreeSet::new(),
            last_occupants: HashMap::new(),
            started: HashMap::new(),
            last_events: BTreeSet::new(),
            last_look: None,
            settings,
        })
    }

    /// Looks once.
    pub fn look(&mut self, input: LookInput<'_>) -> Look {
        let mut gathered = Gathered { events: input.odd.iter().cloned().collect(), ..Gathered::default() };
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
        Look { held, given_as: GivenAll::new(), worked, events, watched }
    }

    fn user_name(&mut self, uid: u32) -> Name {
        // A number is a name too, as every command shows it where the directory knows none.
        self.users.name(uid).unwrap_or_else(|| Name::from(uid.to_string()))
    }
}
