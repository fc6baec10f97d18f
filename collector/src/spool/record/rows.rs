//! Rows as fields, and back: both sides of each row type stand together, in the same order.

use super::Malformed;
use super::wire::{Reader, Writer};
use cardhour_domain::columns::Rows;
use cardhour_domain::{
    Activity, CardShare, EnergyBasis, EventKind, Holder, HolderKind, HolderSource, Millijoules, Milliwatts, NodeEvent,
    Observation, Owner, Sample, SampleSource, SeenDevice, Stream, Timestamp, UseBasis, Watch,
};

impl Writer<'_> {
    pub(super) fn section(&mut self, rows: &Rows) {
        self.word(rows.stream().name());
        self.with_length(|out| {
            out.begin_instants();
            out.number(rows.len() as u64);
            match rows {
                Rows::Samples(rows) => rows.iter().for_each(|row| out.sample(row)),
                Rows::Activity(rows) => rows.iter().for_each(|row| out.activity(row)),
                Rows::Observations(rows) => rows.iter().for_each(|row| out.observation(row)),
                Rows::Watches(rows) => rows.iter().for_each(|row| out.watch(row)),
                Rows::Devices(rows) => rows.iter().for_each(|row| out.device(row)),
                Rows::Events(rows) => rows.iter().for_each(|row| out.event(row)),
            }
        });
    }
}

impl Reader<'_> {
    pub(super) fn section(&mut self, stream: Stream, length: u64) -> Result<Rows, Malformed> {
        let left = (self.remaining() as u64).checked_sub(length).ok_or(Malformed("a length beyond its end"))?;
        self.begin_instants();
        let count = self.number()?;
        let rows = match stream {
            Stream::Samples => Rows::Samples(self.take(count, Self::sample)?),
            Stream::Activity => Rows::Activity(self.take(count, Self::activity)?),
            Stream::Observations => Rows::Observations(self.take(count, Self::observation)?),
            Stream::Watches => Rows::Watches(self.take(count, Self::watch)?),
            Stream::Devices => Rows::Devices(self.take(count, Self::device)?),
            Stream::Events => Rows::Events(self.take(count, Self::event)?),
        };
        if self.remaining() as u64 != left {
            return Err(Malformed("rows that don't fill their section"));
        }
        Ok(rows)
    }

    fn take<T>(&mut self, count: u64, row: impl Fn(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        // No room is made ahead for a count that is only claimed.
        let mut rows = Vec::new();
        for _ in 0..count {
            rows.push(row(self)?);
        }
        Ok(rows)
    }
}

impl Writer<'_> {
    fn sample(&mut self, row: &Sample) {
        self.during(row.during);
        self.word(&row.card_uuid);
        self.word(&row.device_uuid);
        self.word(&row.node);
        self.optional_word(row.attempt_key.as_ref().map(|key| key.as_str()));
        self.percent_reading(row.sm_active_pct);
        self.word(row.use_basis.name());
        self.percent_reading(row.mem_active_pct);
        self.percent_reading(row.media_active_pct);
        self.long_reading(row.mem_used_bytes);
        self.long_reading(row.nvlink_bytes);
        self.long_reading(row.pcie_bytes);
        self.long_reading(row.power_mw.map(|power| power.0));
        self.long_reading(row.energy_mj.map(|energy| energy.0));
        self.word(row.energy_basis.name());
        self.long_reading(row.temperature_c);
        self.word(row.source.name());
    }
}

impl Reader<'_> {
    fn sample(&mut self) -> Result<Sample, Malformed> {
        Ok(Sample {
            during: self.during()?,
            card_uuid: self.word()?,
            device_uuid: self.word()?,
            node: self.word()?,
            attempt_key: self.optional_key()?,
            sm_active_pct: self.percent_reading()?,
            use_basis: self.named(UseBasis::from_name)?,
            mem_active_pct: self.percent_reading()?,
            media_active_pct: self.percent_reading()?,
            mem_used_bytes: self.long_reading()?,
            nvlink_bytes: self.long_reading()?,
            pcie_bytes: self.long_reading()?,
            power_mw: self.long_reading()?.map(Milliwatts),
            energy_mj: self.long_reading()?.map(Millijoules),
            energy_basis: self.named(EnergyBasis::from_name)?,
            temperature_c: self.long_reading()?,
            source: self.named(SampleSource::from_name)?,
        })
    }
}

impl Writer<'_> {
    fn activity(&mut self, row: &Activity) {
        self.during(row.during);
        self.word(&row.node);
        self.word(&row.card_uuid);
        self.word(&row.device_uuid);
        self.word(row.holder.as_str());
        self.long(row.processes);
        self.percent_reading(row.sm_active_pct);
        self.long_reading(row.mem_used_bytes);
        self.long_reading(row.cpu_ms);
        self.long_reading(row.io_bytes);
        self.reading(row.is_attended, |out, is_attended| out.number(is_attended.into()));
    }
}

impl Reader<'_> {
    fn activity(&mut self) -> Result<Activity, Malformed> {
        Ok(Activity {
            during: self.during()?,
            node: self.word()?,
            card_uuid: self.word()?,
            device_uuid: self.word()?,
            holder: self.key()?,
            processes: self.long()?,
            sm_active_pct: self.percent_reading()?,
            mem_used_bytes: self.long_reading()?,
            cpu_ms: self.long_reading()?,
            io_bytes: self.long_reading()?,
            is_attended: self.reading(|read| match read.number()? {
                0 => Ok(false),
                1 => Ok(true),
                _ => Err(Malformed("neither yes nor no")),
            })?,
        })
    }
}

impl Writer<'_> {
    fn observation(&mut self, row: &Observation) {
        self.during(row.during);
        self.word(&row.node);
        self.word(&row.card_uuid);
        self.word(&row.device_uuid);
        self.optional_word(row.mig_profile.as_deref());
        self.optional_long(row.share.map(CardShare::parts));
        self.word(row.source.name());
        self.word(row.holder.kind.name());
        self.word(&row.holder.cluster);
        self.word(&row.holder.job_id);
        self.optional_word(row.holder.shown_id.as_deref());
        self.word(&row.holder.run);
        self.optional_long(row.holder.started_at.map(|at| at.unix_ms()));
        let owner = &row.owner;
        for name in [&owner.org, &owner.project, &owner.user, &owner.queue, &owner.class] {
            self.optional_word(name.as_deref());
        }
        self.number(owner.labels.len() as u64);
        for (label, value) in &owner.labels {
            self.word(label);
            self.word(value);
        }
        self.optional_word(owner.refused_project.as_deref());
    }
}

impl Reader<'_> {
    fn observation(&mut self) -> Result<Observation, Malformed> {
        Ok(Observation {
            during: self.during()?,
            node: self.word()?,
            card_uuid: self.word()?,
            device_uuid: self.word()?,
            mig_profile: self.optional_word()?,
            share: self.optional_long()?.map(share).transpose()?,
            source: self.named(HolderSource::from_name)?,
            holder: Holder {
                kind: self.named(HolderKind::from_name)?,
                cluster: self.word()?,
                job_id: self.word()?,
                shown_id: self.optional_word()?,
                run: self.word()?,
                started_at: self.optional_long()?.map(Timestamp::from_unix_ms),
            },
            owner: self.owner()?,
        })
    }

    fn owner(&mut self) -> Result<Owner, Malformed> {
        let mut owner = Owner {
            org: self.optional_word()?,
            project: self.optional_word()?,
            user: self.optional_word()?,
            queue: self.optional_word()?,
            class: self.optional_word()?,
            ..Owner::default()
        };
        for _ in 0..self.number()? {
            owner.labels.insert(self.word()?, self.word()?);
        }
        owner.refused_project = self.optional_word()?;
        Ok(owner)
    }
}

fn share(parts: i64) -> Result<CardShare, Malformed> {
    (parts >= 0).then(|| CardShare::from_parts(parts)).ok_or(Malformed("a share below nothing"))
}

impl Writer<'_> {
    fn watch(&mut self, row: &Watch) {
        self.during(row.during);
        self.word(&row.node);
        self.word(&row.cluster);
        self.word(&row.card_uuid);
    }
}

impl Reader<'_> {
    fn watch(&mut self) -> Result<Watch, Malformed> {
        Ok(Watch { during: self.during()?, node: self.word()?, cluster: self.word()?, card_uuid: self.word()? })
    }
}

impl Writer<'_> {
    fn device(&mut self, row: &SeenDevice) {
        self.instant(row.at);
        self.word(&row.node);
        self.word(&row.cluster);
        self.word(&row.card_uuid);
        self.word(&row.device_uuid);
        self.optional_word(row.pci_bus_id.as_deref());
        self.optional_word(row.model.as_deref());
        self.optional_long(row.memory_bytes);
        self.optional_word(row.driver.as_deref());
        self.optional_word(row.mig_mode.as_deref());
        self.optional_word(row.mig_profile.as_deref());
        self.long(row.share.parts());
        self.optional_long(row.power_limit_mw);
    }
}

impl Reader<'_> {
    fn device(&mut self) -> Result<SeenDevice, Malformed> {
        Ok(SeenDevice {
            at: self.instant()?,
            node: self.word()?,
            cluster: self.word()?,
            card_uuid: self.word()?,
            device_uuid: self.word()?,
            pci_bus_id: self.optional_word()?,
            model: self.optional_word()?,
            memory_bytes: self.optional_long()?,
            driver: self.optional_word()?,
            mig_mode: self.optional_word()?,
            mig_profile: self.optional_word()?,
            share: self.long().and_then(share)?,
            power_limit_mw: self.optional_long()?,
        })
    }
}

impl Writer<'_> {
    fn event(&mut self, row: &NodeEvent) {
        self.instant(row.at);
        self.word(&row.node);
        self.optional_word(row.card_uuid.as_deref());
        self.optional_word(row.device_uuid.as_deref());
        self.word(row.kind.name());
        self.optional_long(row.number);
        self.optional_word(row.detail.as_deref());
    }
}

impl Reader<'_> {
    fn event(&mut self) -> Result<NodeEvent, Malformed> {
        Ok(NodeEvent {
            at: self.instant()?,
            node: self.word()?,
            card_uuid: self.optional_word()?,
            device_uuid: self.optional_word()?,
            kind: self.named(EventKind::from_name)?,
            number: self.optional_long()?,
            detail: self.optional_word()?,
        })
    }
}
