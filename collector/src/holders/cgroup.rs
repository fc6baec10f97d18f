//! Where a process lives, by its control groups.
//!
//! The kernel and the engines write these paths, not the user: they prove to which job, pod, container or session a process belongs.

use cardhour_domain::Name;

/// What a process lives in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A Slurm job.
    Slurm {
        /// The node's name with Slurm, where the path has it: several `slurmd` on one host.
        node: Option<Name>,
        /// Which job.
        job: SlurmJobRef,
        /// Its step: a number, `batch`, `extern`, `interactive`.
        step: Option<Name>,
    },
    /// Slurm, in a form that isn't known: to be told, never passed over.
    SlurmUnknown {
        /// The path.
        path: Name,
    },
    /// A pod.
    Pod {
        /// Its UID, with dashes as the API writes it.
        uid: Name,
        /// The container, where the path goes so deep.
        container: Option<Name>,
    },
    /// A container that no pod has.
    Container {
        /// `docker`, `podman`, `containerd` or `lxc`.
        engine: &'static str,
        /// Its id, for LXC its name.
        id: Name,
    },
    /// A login.
    LoginSession {
        /// Whose.
        uid: Option<u32>,
        /// Its number with logind: `3`, `c1`.
        session: Name,
    },
    /// A unit of a user's own manager.
    UserUnit {
        /// Whose.
        uid: Option<u32>,
        /// Which.
        unit: Name,
    },
    /// A service of the system.
    Service {
        /// Its unit, such as `jupyter-alice-singleuser.service`.
        unit: Name,
    },
    /// A virtual machine, as libvirt names its scope.
    Machine {
        /// Its name.
        name: Name,
    },
    /// None of these.
    Elsewhere,
}

/// How a path names a Slurm job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlurmJobRef {
    /// By its raw id.
    Id(u64),
    /// By its SLUID, from 26.05 on.
    Sluid(Name),
}

impl Place {
    /// From `/proc/PID/cgroup`, of version 1, 2 or both at once.
    ///
    /// Each hierarchy has a path of its own; the one that says most counts. Parts are looked for anywhere in a path: nodes may be nested in
    /// containers, and a reader in another namespace sees `/../..` before what it looks for.
    pub fn parse(text: &str) -> Self {
        let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        let mut best = Self::Elsewhere;
        let mut seen: Vec<&str> = Vec::new();
        for path in paths {
            if seen.contains(&path) {
                continue;
            }
            seen.push(path);
            let place = Self::of_path(path);
            // A step is the closer word on the same job.
            let says_more = place.rank() > best.rank()
                || matches!((&place, &best), (Self::Slurm { step: Some(_), .. }, Self::Slurm { step: None, .. }));
            if says_more {
                best = place;
            }
        }
        best
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Slurm { .. } => 8,
            Self::SlurmUnknown { .. } => 7,
            Self::Pod { .. } => 6,
            Self::Container { .. } => 5,
            Self::Machine { .. } => 4,
            Self::LoginSession { .. } => 3,
            Self::UserUnit { .. } => 2,
            Self::Service { .. } => 1,
            Self::Elsewhere => 0,
        }
    }

    fn of_path(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        slurm(&parts, path)
            .or_else(|| pod(&parts))
            .or_else(|| container(&parts))
            .or_else(|| unit(&parts))
            .unwrap_or(Self::Elsewhere)
    }
}

fn slurm(parts: &[&str], path: &str) -> Option<Place> {
    let step = |part: Option<&&str>| part.and_then(|part| part.strip_prefix("step_")).map(Name::from);
    let unknown = || Some(Place::SlurmUnknown { path: path.into() });
    for (i, part) in parts.iter().enumerate() {
        let after = &parts[i + 1..];
        // Version 1: slurm[_NODE]/uid_U/job_J/step_S.
        let v1_node = part.strip_prefix("slurm_").map(Some).or_else(|| (*part == "slurm").then_some(None));
        if let Some(node) = v1_node {
            let node = node.map(Name::from);
            return match after {
                [uid, job, rest @ ..] if uid.starts_with("uid_") => match job_number(job) {
                    Some(id) => Some(Place::Slurm { node, job: SlurmJobRef::Id(id), step: step(rest.first()) }),
                    None => unknown(),
                },
                // The daemons themselves live at the top.
                [] | ["system", ..] => None,
                [uid] if uid.starts_with("uid_") => None,
                _ => unknown(),
            };
        }
        // Version 2: [NODE_]slurmstepd.scope/(job_J | SLUID)/step_S.
        let v2_node =
            part.strip_suffix("_slurmstepd.scope").map(Some).or_else(|| (*part == "slurmstepd.scope").then_some(None));
        if let Some(node) = v2_node {
            let node = node.map(Name::from);
            let (job, rest) = match after {
                // The scope's keeper, which is of no job.
                [] | ["system", ..] => return None,
                [job, rest @ ..] => (job, rest),
            };
            let job = match (job_number(job), is_sluid(job)) {
                (Some(id), _) => SlurmJobRef::Id(id),
                (None, true) => SlurmJobRef::Sluid((*job).into()),
                (None, false) => return unknown(),
            };
            return Some(Place::Slurm { node, job, step: step(rest.first()) });
        }
    }
    None
}

fn job_number(part: &str) -> Option<u64> {
    part.strip_prefix("job_")?.parse().ok()
}

/// `s5K1KKYAYG5D00`: an s and thirteen letters or digits.
pub(super) fn is_sluid(part: &str) -> bool {
    part.len() == 14
        && part.starts_with('s')
        && part.bytes().skip(1).all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
}

fn pod(parts: &[&str]) -> Option<Place> {
    let start = parts.iter().position(|part| part.starts_with("kubepods") || *part == "kubelet-kubepods.slice")?;
    // The last that matches: a cluster in a pod of another has two.
    let (at, uid) = parts[start..].iter().enumerate().rev().find_map(|(i, part)| Some((start + i, pod_uid(part)?)))?;
    let container = parts.get(at + 1).and_then(|part| container_id(part));
    Some(Place::Pod { uid, container })
}

/// `kubepods-burstable-podUID.slice` (dashes of the UID written `_`), or `podUID`.
fn pod_uid(part: &str) -> Option<Name> {
    let uid = match part.strip_suffix(".slice") {
        Some(slice) => slice.rsplit_once("-pod").filter(|(before, _)| before.contains("kubepods"))?.1.replace('_', "-"),
        None => part.strip_prefix("pod")?.to_owned(),
    };
    // A static pod's UID may be a hash without dashes.
    let is_uid = uid.len() >= 32 && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    is_uid.then(|| uid.into())
}

/// The id in `cri-containerd-ID.scope`, `crio-ID.scope`, `docker-ID.scope`, `libpod-ID.scope`, or on its own.
fn container_id(part: &str) -> Option<Name> {
    let id = part.strip_suffix(".scope").unwrap_or(part);
    let id = id.rsplit_once('-').map_or(id, |(_, id)| id);
    (id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit()) && !part.contains("conmon")).then(|| id.into())
}

fn container(parts: &[&str]) -> Option<Place> {
    for (i, part) in parts.iter().enumerate().rev() {
        if let Some(name) = part.strip_prefix("lxc.payload.") {
            return Some(Place::Container { engine: "lxc", id: name.into() });
        }
        let Some(id) = container_id(part) else {
            if i > 0 && parts[i - 1] == "lxc" {
                return Some(Place::Container { engine: "lxc", id: (*part).into() });
            }
            continue;
        };
        let before = if i > 0 { parts[i - 1] } else { "" };
        let engine = match *part {
            p if p.starts_with("docker-") || before == "docker" => "docker",
            p if p.starts_with("libpod-") || before == "libpod_parent" => "podman",
            _ => "containerd",
        };
        return Some(Place::Container { engine, id });
    }
    None
}

fn unit(parts: &[&str]) -> Option<Place> {
    let uid = parts.iter().find_map(|part| part.strip_prefix("user-")?.strip_suffix(".slice")?.parse().ok());
    if let Some(scope) = parts.iter().find_map(|part| part.strip_prefix("session-")?.strip_suffix(".scope")) {
        return Some(Place::LoginSession { uid, session: scope.into() });
    }
    if let Some(machine) = parts.iter().find_map(|part| part.strip_prefix("machine-qemu")?.strip_suffix(".scope")) {
        // machine-qemu\x2d1\x2dNAME.scope: a number of libvirt's, then the name.
        let machine = unescape(machine);
        let name = machine.trim_start_matches('-').split_once('-').map_or(&*machine, |(_, name)| name).to_owned();
        return Some(Place::Machine { name: name.into() });
    }
    let is_unit = |part: &&&str| part.ends_with(".service") || part.ends_with(".scope");
    let unit = parts.iter().rev().find(is_unit)?;
    if unit.starts_with("user@") {
        // The user's manager itself.
        return Some(Place::UserUnit { uid, unit: (*unit).into() });
    }
    let unit = Name::from(unescape(unit));
    let is_of_user = parts.iter().any(|part| part.starts_with("user@"));
    Some(if is_of_user { Place::UserUnit { uid, unit } } else { Place::Service { unit } })
}

/// A name as systemd writes it into a path, with `\x2d` for `-` and such.
fn unescape(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("\\x") {
        out.push_str(before);
        match after.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(u8::is_ascii) {
            Some(byte) => {
                out.push(char::from(byte));
                rest = &after[2..];
            }
            None => {
                out.push_str("\\x");
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests;
