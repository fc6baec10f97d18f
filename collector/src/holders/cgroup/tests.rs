use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Each place as a short text: the cases are read as a table.
fn shown(text: &str) -> String {
    let place = Place::parse(&text.replace("ID64", ID));
    let text = match place {
        Place::Slurm { node, job, step } => {
            let job = match job {
                SlurmJobRef::Id(id) => id.to_string(),
                SlurmJobRef::Sluid(sluid) => sluid.to_string(),
            };
            format!("slurm {} {job} {}", node.as_deref().unwrap_or("-"), step.as_deref().unwrap_or("-"))
        }
        Place::SlurmUnknown { path } => format!("slurm? {path}"),
        Place::Pod { uid, container } => format!("pod {uid} {}", container.as_deref().unwrap_or("-")),
        Place::Container { engine, id } => format!("container {engine} {id}"),
        Place::LoginSession { uid, session } => format!("login {uid:?} {session}"),
        Place::UserUnit { uid, unit } => format!("user unit {uid:?} {unit}"),
        Place::Service { unit } => format!("service {unit}"),
        Place::Machine { name } => format!("machine {name}"),
        Place::Elsewhere => "elsewhere".to_owned(),
    };
    text.replace(ID, "ID64")
}

#[track_caller]
fn check(text: &str, place: &str) {
    assert_eq!(shown(text), place, "{text}");
}

#[test]
fn slurm_of_both_versions_is_found_with_its_step() {
    check(
        "9:freezer:/slurm_gpu1/uid_1001/job_22/step_batch\n1:name=systemd:/system.slice/slurmd.service\n",
        "slurm gpu1 22 batch",
    );
    check("4:devices:/slurm/uid_0/job_7/step_0/task_3\n", "slurm - 7 0");
    check("5:memory:/slurm/uid_0/job_7\n4:devices:/slurm/uid_0/job_7/step_extern/task_0\n", "slurm - 7 extern");
    check(
        "0::/system.slice/slurmstepd.scope/job_4294967301/step_interactive/user/task_0\n",
        "slurm - 4294967301 interactive",
    );
    check("0::/system.slice/gpu2_slurmstepd.scope/job_9/step_batch/slurm\n", "slurm gpu2 9 batch");
    check("0::/../../system.slice/slurmstepd.scope/job_9/step_1\n", "slurm - 9 1");
    check("0::/system.slice/slurmstepd.scope/system\n", "service slurmstepd.scope");
    check("0::/system.slice/slurmd.service\n", "service slurmd.service");
}

/// S14: Slurm 26.05 writes the SLUID where the job's number was, and what comes after that isn't passed over in silence.
#[test]
fn s14_a_path_by_sluid_is_known_and_an_unknown_form_is_told() {
    check("0::/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0\n", "slurm - s5K1KKYAYG5D00 0");
    check("0::/system.slice/n1_slurmstepd.scope/s5K1KKYAYG5D00/step_batch\n", "slurm n1 s5K1KKYAYG5D00 batch");
    check(
        "0::/system.slice/slurmstepd.scope/alloc-77/step_0\n",
        "slurm? /system.slice/slurmstepd.scope/alloc-77/step_0",
    );
    check("4:devices:/slurm/uid_5/alloc_7/step_0\n", "slurm? /slurm/uid_5/alloc_7/step_0");
}

/// S15: several slurmd on one host are told apart by the node's name in the path.
#[test]
fn s15_each_slurmd_of_a_host_has_a_root_of_its_own() {
    check("3:freezer:/slurm_gpu1/uid_1001/job_22/step_0\n", "slurm gpu1 22 0");
    check("3:freezer:/slurm_gpu2/uid_1001/job_23/step_0\n", "slurm gpu2 23 0");
    check("0::/system.slice/gpu-b-1_slurmstepd.scope/job_23/step_0\n", "slurm gpu-b-1 23 0");
}

#[test]
fn pods_of_both_drivers_are_found_also_in_nested_nodes() {
    let uid = "0a1b2c3d-0000-4000-8000-00000000000f";
    let escaped = uid.replace('-', "_");
    let of = |path: String| format!("0::{path}\n");
    check(
        &of(format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{escaped}.slice/cri-containerd-ID64.scope"
        )),
        &format!("pod {uid} ID64"),
    );
    check(&of(format!("/kubepods.slice/kubepods-pod{escaped}.slice/crio-ID64.scope")), &format!("pod {uid} ID64"));
    check(&of(format!("/kubepods.slice/kubepods-pod{escaped}.slice/crio-conmon-ID64.scope")), &format!("pod {uid} -"));
    check(&of(format!("/kubepods/besteffort/pod{uid}/ID64")), &format!("pod {uid} ID64"));
    check(
        &format!("11:pids:/kubepods/pod{uid}/ID64\n1:name=systemd:/kubepods/pod{uid}/ID64\n0::/\n"),
        &format!("pod {uid} ID64"),
    );
    check(&of(format!("/docker/ID64/kubelet/kubepods/pod{uid}/ID64")), &format!("pod {uid} ID64"));
    check(&of(format!("/../../kubepods-pod{escaped}.slice/docker-ID64.scope")), &format!("pod {uid} ID64"));
    // A static pod's UID is a hash.
    check(
        &of("/kubepods/burstable/pod00112233445566778899aabbccddeeff/ID64".to_owned()),
        "pod 00112233445566778899aabbccddeeff ID64",
    );
}

#[test]
fn containers_without_a_pod_are_found_by_their_engine() {
    check("0::/system.slice/docker-ID64.scope\n", "container docker ID64");
    check("3:cpu:/docker/ID64\n", "container docker ID64");
    check("0::/machine.slice/libpod-ID64.scope\n", "container podman ID64");
    check(
        "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID64.scope/container\n",
        "container podman ID64",
    );
    check("0::/default/ID64\n", "container containerd ID64");
    check("0::/lxc.payload.web/system.slice/nginx.service\n", "container lxc web");
    check("5:cpu:/lxc/web\n", "container lxc web");
}

#[test]
fn logins_services_and_machines_are_found() {
    check("0::/user.slice/user-1000.slice/session-3.scope\n", "login Some(1000) 3");
    check("1:name=systemd:/user.slice/user-0.slice/session-c12.scope\n0::/user.slice\n", "login Some(0) c12");
    check("0::/system.slice/jupyter-alice-singleuser.service\n", "service jupyter-alice-singleuser.service");
    check("0::/system.slice/my\\x2djob.service\n", "service my-job.service");
    check(
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-7.scope\n",
        "user unit Some(1000) run-7.scope",
    );
    check("0::/machine.slice/machine-qemu\\x2d1\\x2dvm\\x2d7.scope/libvirt/emulator\n", "machine vm-7");
    check("0::/\n", "elsewhere");
    check("", "elsewhere");
}
