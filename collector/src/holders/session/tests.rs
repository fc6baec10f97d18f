use super::*;
use crate::holders::environ::Environ;
use crate::holders::proc_entry::{ProcessId, Terminal};

/// A process of a line, as `pid comm uid [tty] [words…]`; a place and variables may follow after `@` and `$`.
fn link(text: &str) -> Link {
    let (text, environ) = text.split_once(" $").unwrap_or((text, ""));
    let (text, place) = text.split_once(" @").unwrap_or((text, "/"));
    let mut words = text.split(' ');
    let pid: u32 = words.next().unwrap().parse().unwrap();
    let comm = Name::from(words.next().unwrap().replace('_', " "));
    let uid: u32 = words.next().unwrap().parse().unwrap();
    let words: Vec<&str> = words.collect();
    let (terminal, words) = match words.first() {
        Some(&"tty") => (Some(Terminal { major: 136, minor: 3 }), &words[1..]),
        _ => (None, &words[..]),
    };
    let id = ProcessId { pid, start_ticks: u64::from(pid) * 10 };
    let stat = Stat {
        id,
        comm: comm.clone(),
        state: 'S',
        parent: 0,
        group: pid,
        session: if terminal.is_some() { 200 } else { pid },
        terminal,
        own_ticks: 0,
        waited_ticks: 0,
    };
    let facts = ProcessFacts {
        id,
        comm,
        uid: Some(uid),
        login_uid: None,
        place: Some(Place::parse(&format!("0::{place}"))),
        words: words.iter().map(|word| Name::from(*word)).collect(),
        environ: Some(Environ::parse(environ.replace(' ', "\0").as_bytes())),
    };
    (stat, Some(Arc::new(facts)))
}

#[track_caller]
fn check(lineage: &[&str], expected: &str) {
    let lineage: Vec<Link> = lineage.iter().map(|text| link(text)).collect();
    let found = belongs(&lineage).unwrap();
    let kind = found.kind.name();
    assert_eq!(format!("{kind} {} {} by {}", found.job_id, found.run, found.root), expected);
}

#[test]
fn kernels_of_one_notebook_server_are_one_session() {
    let server = "100 jupyter-lab 1000 /usr/bin/python3 /opt/bin/jupyter-lab --no-browser";
    check(
        &["300 python 1000 python -m ipykernel", server, "90 bash 1000", "1 systemd 0"],
        "session jupyter[100] 100-1000 by 100",
    );
    check(
        &["301 python 1000 python -m ipykernel", server, "90 bash 1000", "1 systemd 0"],
        "session jupyter[100] 100-1000 by 100",
    );
    let hub = "100 jupyterhub-sing 1000 python3 /opt/bin/jupyterhub-singleuser $JUPYTERHUB_USER=alice JUPYTERHUB_SERVER_NAME=big";
    check(&["300 python 1000 python", hub, "1 systemd 0"], "session jupyter/alice/big 100-1000 by 100");
}

#[test]
fn a_unit_of_the_hubs_spawner_is_a_session_and_any_other_is_not() {
    let at = "@/system.slice/jupyter-alice-singleuser.service $INVOCATION_ID=0123456789abcdef";
    let (kernel, server) = (format!("300 python 1000 {at}"), format!("100 jupyterhub-sing 1000 {at}"));
    check(&[&kernel, &server, "1 systemd 0"], "session jupyter-alice-singleuser.service 0123456789ab by 100");
    let service = "300 tritonserver 990 @/system.slice/triton.service";
    check(&[service, "1 systemd 0"], "process triton.service unit by 300");
}

#[test]
fn all_of_a_login_is_one_session() {
    let at = "@/user.slice/user-1000.slice/session-3.scope";
    let (python, shell, sshd) =
        (format!("300 python 1000 tty {at}"), format!("200 bash 1000 tty {at}"), format!("150 sshd 0 {at}"));
    check(&[&python, &shell, &sshd, "1 systemd 0"], "session user-1000/session-3 session by 150");
    // Its multiplexer and its editor belong to it too.
    let tmux = format!("400 tmux:_server 1000 {at}");
    check(&[&python, &tmux, "1 systemd 0"], "session user-1000/session-3 session by 400");
}

#[test]
fn without_logind_a_terminal_a_multiplexer_or_an_editor_make_a_session() {
    check(&["300 python 1000 tty", "200 bash 1000 tty", "150 sshd 0", "1 init 0"], "session bash[200] 200-2000 by 200");
    check(
        &["300 python 1000 tty", "200 bash 1000 tty", "180 tmux:_server 1000", "1 init 0"],
        "session tmux[180] 180-1800 by 180",
    );
    let node = "180 node 1000 /home/a/.vscode-server/bin/x/node /home/a/.vscode-server/bin/x/out/server-main.js";
    check(&["300 python 1000", node, "170 sh 1000", "1 init 0"], "session vscode[180] 180-1800 by 180");
}

#[test]
fn workers_of_one_program_are_one_holder_and_two_programs_of_one_user_are_two() {
    check(&["301 python 1000", "300 torchrun 1000", "1 init 0"], "process torchrun[300] 300-3000 by 300");
    check(&["302 python 1000", "300 torchrun 1000", "1 init 0"], "process torchrun[300] 300-3000 by 300");
    check(&["400 python 1000", "1 init 0"], "process python[400] 400-4000 by 400");
    // Root's own programs hang on daemons of root; they are not one.
    check(&["500 python 0", "450 cron 0", "1 init 0"], "process python[500] 500-5000 by 500");
}

#[test]
fn a_container_is_one_holder_whatever_hangs_on_what() {
    let id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let python = format!("300 python 0 @/system.slice/docker-{id}.scope");
    check(&[&python, "200 containerd-shim 0", "1 systemd 0"], "process docker/0123456789ab container by 300");
    let notebook = format!("300 python 1000 @/system.slice/docker-{id}.scope $JUPYTERHUB_USER=alice");
    check(&[&notebook, "200 containerd-shim 0"], "session docker/0123456789ab container by 300");
}
