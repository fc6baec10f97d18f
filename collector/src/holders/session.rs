//! Which holder a process belongs to, where no scheduler and no pod has it.
//!
//! Processes of one session are one holder: of a login, a notebook server, an editor's server, a terminal multiplexer; else those of one
//! container or one unit; else a tree of one user's processes by its uppermost.

use super::cgroup::Place;
use super::proc_entry::Stat;
use super::processes::ProcessFacts;
use cardhour_domain::{HolderKind, Name};
use std::sync::Arc;

/// A process or one of its parents.
pub type Link = (Stat, Option<Arc<ProcessFacts>>);

/// What a process belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belongs {
    /// What that is.
    pub kind: HolderKind,
    /// Its id as machines know it.
    pub job_id: Name,
    /// What tells it from another of that id, without the boot.
    pub run: Name,
    /// The process that it hangs on, and from which its others come; the process itself where nothing above is known.
    pub root: u32,
    /// When that one started. Unit: clock ticks since the boot.
    pub start_ticks: u64,
}

/// Programs that give each of their children a life of its own: a tree is looked for below them, not above.
const KEEPERS: [&str; 22] = [
    "systemd",
    "init",
    "sshd",
    "sshd-session",
    "login",
    "cron",
    "crond",
    "atd",
    "sudo",
    "su",
    "dockerd",
    "containerd",
    "containerd-shim",
    "conmon",
    "supervisord",
    "runit",
    "s6-svscan",
    "slurmstepd",
    "slurmd",
    "tini",
    "dumb-init",
    "xinetd",
];

/// What a process belongs to, by itself and its parents, the nearest first. None for an empty line.
pub fn belongs(lineage: &[Link]) -> Option<Belongs> {
    let (own, facts) = lineage.first()?;
    let by_place = facts.as_ref().and_then(|facts| by_place(facts, lineage));
    by_place.or_else(|| by_program(lineage)).or_else(|| by_terminal(lineage)).or_else(|| Some(by_tree(own, lineage)))
}

/// By what the kernel says it lives in.
fn by_place(facts: &ProcessFacts, lineage: &[Link]) -> Option<Belongs> {
    let whole = |kind, job_id: String, run: String| Some(of_place(kind, job_id, run, lineage));
    match facts.place.as_ref()? {
        Place::LoginSession { session, uid } => {
            let user = uid.or(facts.uid).map(|uid| format!("user-{uid}/")).unwrap_or_default();
            whole(HolderKind::Session, format!("{user}session-{session}"), "session".to_owned())
        }
        Place::Container { engine, id } => {
            // A notebook in a container of its own is a session all the same.
            let kind = if notebook_user(facts).is_some() { HolderKind::Session } else { HolderKind::Process };
            let short = id.get(..12).filter(|_| id.len() == 64).unwrap_or(id);
            whole(kind, format!("{engine}/{short}"), "container".to_owned())
        }
        Place::Service { unit } if !unit.ends_with(".scope") => {
            let is_notebook = unit.starts_with("jupyter-") || notebook_user(facts).is_some();
            let kind = if is_notebook { HolderKind::Session } else { HolderKind::Process };
            // systemd numbers each start of a unit.
            let invocation = facts.environ.as_ref().and_then(|environ| environ.get("INVOCATION_ID"));
            let run = invocation.and_then(|id| id.get(..12)).unwrap_or("unit");
            // Daemons of the system keep sessions of many people; those are told apart below.
            let name = unit.trim_end_matches(".service");
            if KEEPERS.contains(&name) || name.starts_with("ssh") {
                return None;
            }
            whole(kind, unit.to_string(), run.to_owned())
        }
        Place::UserUnit { unit, uid } if !unit.starts_with("user@") => {
            let user = uid.or(facts.uid).map(|uid| format!("user-{uid}/")).unwrap_or_default();
            let kind = if notebook_user(facts).is_some() { HolderKind::Session } else { HolderKind::Process };
            whole(kind, format!("{user}{unit}"), "unit".to_owned())
        }
        _ => None,
    }
}

/// All that lives in one place hangs on the uppermost process of the line that lives there too.
fn of_place(kind: HolderKind, job_id: String, run: String, lineage: &[Link]) -> Belongs {
    let place = |link: &Link| link.1.as_ref().and_then(|facts| facts.place.clone());
    let own = place(&lineage[0]);
    let root = lineage.iter().take_while(|link| place(link) == own).last().unwrap_or(&lineage[0]);
    Belongs { kind, job_id: job_id.into(), run: run.into(), root: root.0.id.pid, start_ticks: root.0.id.start_ticks }
}

fn notebook_user(facts: &ProcessFacts) -> Option<&Name> {
    facts.environ.as_ref()?.get("JUPYTERHUB_USER")
}

/// By a server above it at which somebody sits: the uppermost of the line that is one, below the user's own border.
fn by_program(lineage: &[Link]) -> Option<Belongs> {
    let found = own_user(lineage).filter_map(|link| Some((link, server(link)?))).last();
    let (root, server) = found?;
    let hub = root.1.as_ref().and_then(|facts| {
        let user = notebook_user(facts)?;
        let name = facts.environ.as_ref().and_then(|environ| environ.get("JUPYTERHUB_SERVER_NAME"));
        Some(name.map_or(format!("jupyter/{user}"), |name| format!("jupyter/{user}/{name}")))
    });
    Some(of_process(HolderKind::Session, root, hub.unwrap_or_else(|| format!("{server}[{}]", root.0.id.pid))))
}

/// Which kind of server a process is, where it is one.
fn server(link: &Link) -> Option<&'static str> {
    let (stat, facts) = link;
    if stat.comm.starts_with("tmux: server") || matches!(&*stat.comm, "SCREEN" | "screen") {
        return Some(if stat.comm.starts_with("tmux") { "tmux" } else { "screen" });
    }
    let words = facts.as_ref().map(|facts| facts.words.as_slice()).unwrap_or_default();
    let is_called = |names: &[&str]| {
        let name = |word: &Name| word.rsplit('/').next().unwrap_or_default().to_owned();
        // `python3 /opt/bin/jupyter-lab` as well as `jupyter-lab`.
        words.iter().take(3).map(name).any(|word| names.contains(&&*word))
    };
    if is_called(&[
        "jupyter-lab",
        "jupyter-labhub",
        "jupyter-notebook",
        "jupyter-server",
        "jupyterhub-singleuser",
        "jupyter",
        "batchspawner-singleuser",
    ]) {
        return Some("jupyter");
    }
    if words.iter().take(3).any(|word| word.contains("/.vscode-server/") || word.contains("/.cursor-server/")) {
        return Some("vscode");
    }
    if is_called(&["code-server", "code-tunnel"]) {
        return Some("vscode");
    }
    None
}

/// By its terminal: all of one session of the kernel, which has one.
fn by_terminal(lineage: &[Link]) -> Option<Belongs> {
    let (own, _) = &lineage[0];
    own.terminal?;
    let leader = lineage.iter().find(|(stat, _)| stat.id.pid == own.session);
    // A leader that has ended has left its number to its session.
    Some(match leader {
        Some(leader) => of_process(HolderKind::Session, leader, format!("{}[{}]", leader.0.comm, own.session)),
        None => of_process(HolderKind::Session, top(lineage), format!("session[{}]", own.session)),
    })
}

/// By the uppermost process of the same user.
fn by_tree(own: &Stat, lineage: &[Link]) -> Belongs {
    let top = top(lineage);
    // A process whose parent has ended hangs on the kernel's first: then its group tells who belongs together.
    let is_orphan = top.0.id.pid == own.id.pid && own.group != own.id.pid;
    let leader = lineage.iter().find(|(stat, _)| is_orphan && stat.id.pid == own.group);
    let root = leader.unwrap_or(top);
    of_process(HolderKind::Process, root, format!("{}[{}]", root.0.comm, root.0.id.pid))
}

fn top(lineage: &[Link]) -> &Link {
    own_user(lineage).last().unwrap_or(&lineage[0])
}

/// The part of a line that is one user's, below the first program that keeps others.
fn own_user(lineage: &[Link]) -> impl Iterator<Item = &Link> {
    let uid = |link: &Link| link.1.as_ref().and_then(|facts| facts.uid);
    let own = uid(&lineage[0]);
    let is_keeper = |link: &Link| {
        link.0.id.pid <= 1 || KEEPERS.contains(&&*link.0.comm) || link.0.comm.starts_with("containerd-shim")
    };
    let first = lineage.iter().take(1);
    first.chain(lineage.iter().skip(1).take_while(move |link| uid(link) == own && !is_keeper(link)))
}

fn of_process(kind: HolderKind, root: &Link, job_id: String) -> Belongs {
    let id = root.0.id;
    let run = format!("{}-{}", id.pid, id.start_ticks);
    Belongs { kind, job_id: job_id.into(), run: run.into(), root: id.pid, start_ticks: id.start_ticks }
}

#[cfg(test)]
mod tests;
