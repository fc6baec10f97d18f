//! Logs of `nvidia-smi --query-gpu=… --format=csv[,noheader][,nounits] -l`.

use super::clock::{self, Clock};
use super::look::{Device, Look, Signals, Told, busiest};
use super::quantity::{self, Unit};
use super::{MetricsError, Readout, Setting};
use crate::attempt::Rejected;
use crate::import::names::Names;
use crate::import::readers::{Format, ReaderOptions, read as read_rows};
use crate::import::record::Record;
use crate::import::time::TimeReader;
use crate::import::when::Refusal;
use cardhour_domain::{CardShare, Gap, Name, Reading, SampleSource, SeenDevice, Timestamp};
use std::collections::BTreeMap;

/// Reads one log of one machine.
///
/// `fields`: those of `--query-gpu`, for a log without a line of names; a line of names that stands in it all the same, as in logs put end
/// to end, is passed over, or followed where its order is another. A value that can't be read is missing with its reason and the rest of
/// its row is kept (C11, C13); a row of another number of fields is rejected. The node is the column `hostname`, else that of `setting`.
///
/// Errors: no time, or nothing that says which card a row is of.
pub fn read(input: &[u8], fields: Option<&[String]>, setting: &Setting) -> Result<Readout, MetricsError> {
    let options = ReaderOptions { delimiter: None, fields: fields.map(<[String]>::to_vec) };
    let reading = read_rows(Format::Csv, input, &options)?;
    let mut columns = Columns::of(reading.columns.0.iter().map(String::as_str));
    columns.check(setting)?;
    let mut log = Log {
        setting,
        clock: Clock::new(TimeReader::in_zone(setting.zone)),
        names: Names::default(),
        readout: Readout::default(),
    };
    let mut first: Option<Record> = None;
    for record in reading.records {
        let record = match record {
            Ok(record) => record,
            Err(rejected) => {
                log.readout.rejected.push(rejected);
                continue;
            }
        };
        if let Some(others) = Columns::of_header(&record) {
            columns = others;
            continue;
        }
        let outcome = match cut_off(input, &record, first.as_ref()) {
            true => Err(Refusal::new("", "the input ends inside this row: its last value may be cut off")),
            false => log.row(&columns, &record),
        };
        if let Err(refusal) = outcome {
            log.readout.rejected.push(rejected(&record, input, refusal));
        }
        first.get_or_insert(record);
    }
    Ok(log.readout)
}

fn rejected(record: &Record, input: &[u8], refusal: Refusal) -> Rejected {
    crate::import::jobs::reject(input, record.line, &record.text, refusal)
}

/// Whether the log may end in the middle of this row's last value. nvidia-smi ends each row with its line, so one that has no end was copied while it was
/// written; its last value is whole only where that can be seen: by the unit that other rows have there, by a bracket that closes, by being as in the first row.
fn cut_off(input: &[u8], record: &Record, first: Option<&Record>) -> bool {
    let Some(first) = first else { return false };
    let ends_here = matches!(&record.text, crate::import::record::RecordText::Span(range) if range.end == input.len());
    let last = record.values.len().saturating_sub(1);
    let unit =
        |record: &Record| record.get(last).and_then(|value| value.split_once(' ').map(|(_, unit)| unit.to_owned()));
    let value = |record: &Record| record.get(last).unwrap_or_default().trim().to_owned();
    let is_number = |record: &Record| value(record).starts_with(|c: char| c.is_ascii_digit());
    let is_whole = match value(record) {
        told if told.ends_with(']') => true,
        _ if is_number(record) && is_number(first) => unit(record).is_some() && unit(record) == unit(first),
        // A UUID or a name, or a word for none.
        told => told.len() == value(first).len() || told == "N/A",
    };
    ends_here && !is_whole
}

/// Where the fields of a log stand.
struct Columns {
    places: BTreeMap<String, (usize, Option<Unit>)>,
    names: Vec<String>,
}

impl Columns {
    /// From names with or without their unit: `utilization.gpu [%]`.
    fn of<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let names: Vec<String> = names.map(str::to_owned).collect();
        let mut places = BTreeMap::new();
        for (i, name) in names.iter().enumerate() {
            let (base, unit) = split_unit(name);
            let base = match base {
                "gpu_uuid" => "uuid",
                "gpu_name" => "name",
                "gpu_bus_id" => "pci.bus_id",
                other => other,
            };
            places.entry(base.to_owned()).or_insert((i, unit));
        }
        Self { places, names }
    }

    /// From a row that is a line of names: one whose values are names of fields that every log has.
    fn of_header(record: &Record) -> Option<Self> {
        let is_name = |value: &str| matches!(value, "timestamp" | "uuid" | "gpu_uuid" | "pci.bus_id" | "gpu_bus_id");
        let values = || record.values.iter().map(str::trim);
        values().any(is_name).then(|| Self::of(values()))
    }

    /// Errors: no time, or nothing that says which card a row is of.
    fn check(&self, setting: &Setting) -> Result<(), MetricsError> {
        let missing = |what, wanted| MetricsError::Missing { what, wanted, has: self.names.clone() };
        if !self.places.contains_key("timestamp") {
            return Err(missing("when a row was read", "timestamp"));
        }
        let has_other = self.places.contains_key("index") || self.places.contains_key("pci.bus_id");
        if !self.places.contains_key("uuid") && (setting.cards.is_empty() || !has_other) {
            return Err(missing(
                "which card a row is of",
                "uuid, or index or pci.bus_id with --cards, what `nvidia-smi -L` prints on that node (an index alone is no identity)",
            ));
        }
        if setting.node.is_none() && !self.places.contains_key("hostname") {
            return Err(MetricsError::NoNode);
        }
        Ok(())
    }

    fn get<'r>(&self, record: &'r Record, field: &str) -> Option<&'r str> {
        record.get(self.places.get(field)?.0)
    }

    /// A value that is one: not one of nvidia-smi's words for none, which stand in brackets or are `N/A`.
    fn word<'r>(&self, record: &'r Record, field: &str) -> Option<&'r str> {
        self.get(record, field)
            .filter(|value| !value.starts_with('[') && !matches!(*value, "N/A" | "Unknown Error" | "ERR!"))
    }

    fn unit(&self, field: &str, usual: Unit) -> Unit {
        self.places.get(field).and_then(|(_, unit)| *unit).unwrap_or(usual)
    }
}

/// A name and its unit. A unit that we don't know is left in the name's meaning: the usual one.
fn split_unit(name: &str) -> (&str, Option<Unit>) {
    let Some((base, unit)) = name.trim().split_once('[') else { return (name.trim(), None) };
    let unit = match unit.trim_end().trim_end_matches(']') {
        "%" => Some(Unit::Percent),
        "MiB" => Some(Unit::Mebibytes),
        "W" => Some(Unit::Watts),
        "mW" => Some(Unit::Milliwatts),
        "J" => Some(Unit::Joules),
        "mJ" => Some(Unit::Millijoules),
        _ => None,
    };
    (base.trim(), unit)
}

struct Log<'s> {
    setting: &'s Setting,
    clock: Clock,
    names: Names,
    readout: Readout,
}

impl Log<'_> {
    fn row(&mut self, columns: &Columns, record: &Record) -> Result<(), Refusal> {
        let device = self.device(columns, record)?;
        let text = columns.get(record, "timestamp").unwrap_or_default();
        let at = self
            .clock
            .read(&device, &clock::of_smi(text))
            .map_err(|error| Refusal::new("timestamp", error.to_string()))?;
        let at = at.ok_or_else(|| Refusal::new("timestamp", "is absent"))?;
        if let Some(why) = self.setting.refusal(at) {
            return Err(Refusal::new("timestamp", why));
        }
        let seen = self.describe(columns, record, &device, at);
        self.readout.devices.push(seen);
        self.readout.looks.push(Look {
            at,
            device,
            source: SampleSource::NvidiaSmi,
            reader: Name::new(),
            signals: signals(columns, record),
            told: Told::Instant,
        });
        Ok(())
    }

    fn device(&mut self, columns: &Columns, record: &Record) -> Result<Device, Refusal> {
        let host = columns.word(record, "hostname").map(|host| self.names.intern(host));
        let node = host
            .or_else(|| self.setting.node.clone())
            .ok_or_else(|| Refusal::new("node", "is absent: name the node"))?;
        if let Some(uuid) = columns.word(record, "uuid") {
            let card = self.names.intern(uuid);
            return Ok(Device::card(node, card));
        }
        let bus_id = columns.word(record, "pci.bus_id").and_then(bus_id);
        let index = columns.word(record, "index");
        let keys = bus_id.iter().map(|id| &**id).chain(index);
        match keys.clone().find_map(|key| self.setting.card(&node, key)) {
            Some(card) => Ok(Device::card(node, card.clone())),
            None => {
                let keys: Vec<_> = keys.collect();
                Err(Refusal::new(
                    "card_uuid",
                    format!(
                        "is absent, and the list of cards has none of {:?}: an index is no identity",
                        keys.join(", ")
                    ),
                ))
            }
        }
    }

    fn describe(&mut self, columns: &Columns, record: &Record, device: &Device, at: Timestamp) -> SeenDevice {
        let mut name = |field: &str| columns.word(record, field).map(|text| self.names.intern(text));
        let read = |field: &str| quantity::of_smi(columns.get(record, field));
        let limit = ["enforced.power.limit", "power.limit"]
            .into_iter()
            .find_map(|field| quantity::power(read(field), columns.unit(field, Unit::Watts)).seen());
        SeenDevice {
            at,
            node: device.node.clone(),
            cluster: self.setting.cluster.clone(),
            card_uuid: device.card_uuid.clone(),
            device_uuid: device.device_uuid.clone(),
            pci_bus_id: columns.word(record, "pci.bus_id").and_then(bus_id),
            model: name("name"),
            memory_bytes: quantity::memory(read("memory.total"), columns.unit("memory.total", Unit::Mebibytes)).seen(),
            driver: name("driver_version"),
            mig_mode: name("mig.mode.current").map(|mode| mode.to_ascii_lowercase().into()),
            mig_profile: None,
            share: CardShare::CARD,
            power_limit_mw: limit.map(|limit| limit.0),
        }
    }
}

/// `00000000:3B:00.0`, with a domain of eight digits and in lower case; none for what is no place on the bus.
pub fn bus_id(text: &str) -> Option<Name> {
    let (domain, rest) = text.trim().split_once(':')?;
    let rest_fits = rest.len() == 7 && rest.as_bytes()[2] == b':' && rest.as_bytes()[5] == b'.';
    let is_hex = domain.bytes().all(|c| c.is_ascii_hexdigit());
    (rest_fits && is_hex && domain.len() <= 8).then(|| format!("{domain:0>8}:{rest}").to_ascii_lowercase().into())
}

fn signals(columns: &Columns, record: &Record) -> Signals {
    let read = |field: &str| quantity::of_smi(columns.get(record, field));
    let percent = |field: &str| quantity::percent(read(field), columns.unit(field, Unit::Percent));
    let power = |field: &str| quantity::power(read(field), columns.unit(field, Unit::Watts));
    let first = |fields: &[&str]| {
        let all = fields.iter().map(|field| power(field));
        let seen = all.clone().find(|reading| reading.seen().is_some());
        let told = all.clone().find(|reading| *reading != Reading::Missing(Gap::NotRecorded));
        seen.or(told).unwrap_or(Reading::Missing(Gap::NotRecorded))
    };
    let counter = "total_energy_consumption";
    Signals {
        duty_cycle_pct: percent("utilization.gpu"),
        mem_duty_pct: percent("utilization.memory"),
        media_active_pct: busiest(
            &["utilization.encoder", "utilization.decoder", "utilization.jpeg", "utilization.ofa"].map(percent),
        ),
        mem_used_bytes: quantity::memory(read("memory.used"), columns.unit("memory.used", Unit::Mebibytes)),
        power_mw: first(&["power.draw", "power.draw.average", "power.draw.instant"]),
        power_limit_mw: first(&["enforced.power.limit", "power.limit"]),
        energy_counter_mj: quantity::whole(read(counter), columns.unit(counter, Unit::Millijoules)),
        temperature_c: quantity::whole(read("temperature.gpu"), Unit::Whole),
        ..Signals::default()
    }
}
