//! What virtual machines have of this node's cards.

use super::{FIRST_PERSON_UID, Gathered, Looker};
use crate::holders::Held;
use crate::holders::aliases::DeviceId;
use crate::holders::look::Claimant;
use crate::holders::virtual_machine::{self, Passing, VgpuInstance};
use crate::owners::{Facts, owner};
use cardhour_domain::{CardShare, Holder, HolderKind, HolderSource, Name, SeenDevice, Timestamp};

impl Looker {
    /// What virtual machines have.
    pub(super) fn machines(
        &mut self,
        devices: &[SeenDevice],
        vgpus: &[VgpuInstance],
        gathered: &mut Gathered,
    ) -> Vec<Held> {
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

    pub(super) fn machine(
        &mut self,
        name: Name,
        run: String,
        started_at: Option<Timestamp>,
        uid: Option<u32>,
    ) -> Claimant {
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
}

fn given_to(claimant: Claimant, device: DeviceId, share: Option<CardShare>) -> Held {
    let Claimant { holder, owner } = claimant;
    let DeviceId { card_uuid, device_uuid } = device;
    Held { card_uuid, device_uuid, share, source: HolderSource::Scheduler, holder, owner }
}
