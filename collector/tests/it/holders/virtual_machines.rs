//! Cards passed through, and parts of cards.

use crate::holders::node::{BOOTED_AT_S, Node, uuid};
use cardhour_collector::holders::{DeviceId, VgpuInstance};
use std::fs;
use std::os::unix::fs::symlink;

const NOW: i64 = BOOTED_AT_S + 10_000;

#[test]
fn a_card_passed_through_is_held_by_the_machine_that_has_its_group_open_and_else_unwatched() {
    let mut node = Node::new("ab");
    let card = node.path("sys/bus/pci/devices/0000:01:00.0");
    fs::create_dir_all(&card).unwrap();
    symlink("../../../../bus/pci/drivers/vfio-pci", card.join("driver")).unwrap();
    symlink("../../../../kernel/iommu_groups/42", card.join("iommu_group")).unwrap();
    node.process(
        300,
        "qemu-system-x86",
        1,
        107,
        "/machine.slice/x.scope",
        "",
        "qemu-system-x86_64 -name guest=vm7,debug-threads=on -uuid u",
    );
    node.process(301, "qemu-system-x86", 1, 107, "/machine.slice/y.scope", "", "qemu-system-x86_64 -name guest=vm8");
    symlink("/dev/vfio/41", node.path("proc/301/fd/9")).unwrap();
    let mut looker = node.looker();
    let nobody = node.look(&mut looker, NOW);
    assert_eq!((nobody.held, nobody.watched.as_str()), (vec![], "b"));
    symlink("/dev/vfio/42", node.path("proc/300/fd/9")).unwrap();
    let seen = node.look(&mut looker, NOW + 30);
    assert_eq!(seen.held, ["a vm7 bootb001b001-300-30000 scheduler 1 -"]);
    assert_eq!(seen.watched, "ab");
}

#[test]
fn a_vgpu_is_its_machines_part_of_the_card() {
    let mut node = Node::new("a");
    for (vm, vgpu) in [("vm1", "v1"), ("vm2", "v2")] {
        node.vgpus.push(VgpuInstance {
            device: DeviceId::card(&uuid('a')),
            vgpu_uuid: vgpu.into(),
            vm_id: vm.into(),
            vm_name: None,
            kind: Some("GRID A100-10C".into()),
            memory_bytes: Some(10 << 30),
        });
    }
    // 10 of 40 GiB each.
    assert_eq!(
        node.look(&mut node.looker(), NOW).held,
        ["a vm1 uidv1 scheduler 0.25 -", "a vm2 uidv2 scheduler 0.25 -"]
    );
}
