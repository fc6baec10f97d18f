//! Any table of time series, by a map that says which column is what.

use super::clock::Clock;
use super::look::{Device, Look, RUN_BY_LABEL, Sighting, Signals, Told};
use super::quantity::{self, Unit};
use super::{MetricsError, Readout, Setting};
use crate::import::fields::Kind;
use crate::import::map::{Fault, MapError, MapFile, Rule};
use crate::import::mapping::read_number;
use crate::import::names::Names;
use crate::import::readers::{Format, read as read_rows};
use crate::import::record::{Columns, Record};
use crate::import::time::{TimeReader, is_absent};
use crate::import::when::Refusal;
use cardhour_domain::{
    CardShare, Gap, Holder, HolderKind, HolderSource, Name, Owner, Reading, SampleSource, SeenDevice,
};
use rust_decimal::Decimal;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The fields of a time series. A number says its unit in its name; `scale` in the map makes it of any other.
pub const SERIES_FIELDS: &[(&str, Kind)] = &[
    ("at", Kind::Time),
    ("cluster", Kind::Text),
    ("node", Kind::Text),
    ("card_uuid", Kind::Text),
    ("card", Kind::Text),
    ("device_uuid", Kind::Text),
    ("model", Kind::Text),
    ("job_id", Kind::Text),
    ("org", Kind::Text),
    ("project", Kind::Text),
    ("user", Kind::Text),
    ("queue", Kind::Text),
    ("class", Kind::Text),
    ("share", Kind::Number),
    ("sm_active_pct", Kind::Number),
    ("sm_active_ratio", Kind::Number),
    ("duty_cycle_pct", Kind::Number),
    ("duty_cycle_ratio", Kind::Number),
    ("mem_active_pct", Kind::Number),
    ("mem_active_ratio", Kind::Number),
    ("media_active_pct", Kind::Number),
    ("media_active_ratio", Kind::Number),
    ("mem_used_bytes", Kind::Number),
    ("mem_used_mib", Kind::Number),
    ("power_w", Kind::Number),
    ("power_mw", Kind::Number),
    ("power_limit_w", Kind::Number),
    ("energy_mj", Kind::Number),
    ("energy_j", Kind::Number),
    ("energy_kwh", Kind::Number),
    ("energy_total_mj", Kind::Number),
    ("energy_total_j", Kind::Number),
    ("energy_total_kwh", Kind::Number),
    ("temperature_c", Kind::Number),
    ("processes", Kind::Number),
];

/// Reads a table of CSV or JSON lines.
///
/// `map`: parsed with [`SERIES_FIELDS`]. `source`: whose figures these are, which decides what they are worth beside others. A card is
/// named by `card_uuid`, or by `card` (an index, a place on the bus) or `job_id` through the cards of `setting`. A number that can't be
/// read is missing with its reason and the rest of its row is kept.
///
/// Errors: a map that doesn't fit; nothing that says when, on which node, of which card.
pub fn read(input: &[u8], map: &MapFile, source: SampleSource, setting: &Setting) -> Result<Readout, MetricsError> {
    let format = map.format.unwrap_or(Format::Csv);
    let reading = read_rows(format, input, &map.reader_options())?;
    let rules = Rules::bind(&reading.columns, map)?;
    let missing = |what, wanted| MetricsError::Missing { what, wanted, has: rules.has.clone() };
    let Some(at) = rules.of.get("at") else { return Err(missing("when a row was read", "at")) };
    if !["card_uuid", "card", "job_id"].iter().any(|field| rules.of.contains_key(*field)) {
        return Err(missing(
            "which card a row is of",
            "card_uuid, or card or job_id with --cards, a list of which card that is",
        ));
    }
    if !rules.of.contains_key("node") && setting.node.is_none() {
        return Err(missing("on which node a card is", "node"));
    }
    let mut times = TimeReader::in_zone(map.time_zone);
    times.unit = at.rule.unit.unwrap_or_default();
    times.epoch = at.rule.epoch.unwrap_or(times.epoch);
    let mut table = Table {
        rules: &rules,
        setting,
        source,
        cluster: map.cluster.as_deref(),
        clock: Clock::new(times),
        names: Names::default(),
        readout: Readout::default(),
    };
    for record in reading.records {
        match record {
            Err(rejected) => table.readout.rejected.push(rejected),
            Ok(record) => {
                if let Err(refusal) = table.row(&record) {
                    let rejected = crate::import::jobs::reject(input, record.line, &record.text, refusal);
                    table.readout.rejected.push(rejected);
                }
            }
        }
    }
    Ok(table.readout)
}

/// A map's rules with the places of their columns.
struct Rules {
    of: BTreeMap<String, Bound>,
    has: Vec<String>,
}

struct Bound {
    rule: Rule,
    column: Option<usize>,
    times: Option<usize>,
}

impl Rules {
    /// Errors: columns that the map names and the table lacks.
    fn bind(columns: &Columns, map: &MapFile) -> Result<Self, MapError> {
        let has: Vec<String> = columns.0.iter().filter(|name| !name.is_empty()).cloned().collect();
        let ours = || {
            let known =
                SERIES_FIELDS.iter().map(|(field, _)| *field).filter(|field| has.iter().any(|name| name == field));
            known.map(|field| (field.to_owned(), Rule::column(field))).collect()
        };
        let mut missing = Vec::new();
        let mut place = |key: String, name: &Option<String>| {
            let name = name.as_ref()?;
            let found = columns.0.iter().position(|column| column == name);
            if found.is_none() {
                missing.push(Fault { key, problem: format!("no column {name:?}") });
            }
            found
        };
        let mut of = BTreeMap::new();
        for (field, rule) in map.columns.clone().unwrap_or_else(ours) {
            let column = place(format!("columns.{field}"), &rule.column);
            let times = place(format!("columns.{field}.times"), &rule.times);
            of.insert(field, Bound { rule, column, times });
        }
        if missing.is_empty() { Ok(Self { of, has }) } else { Err(MapError::MissingColumns { missing, has }) }
    }

    /// The text of a field; none for the words that mean that there is none.
    fn text<'r>(&'r self, record: &'r Record, field: &str) -> Option<&'r str> {
        let bound = self.of.get(field)?;
        let value = bound.column.and_then(|column| record.get(column)).filter(|value| !is_absent(value));
        let value = match &bound.rule.map {
            Some(words) => value.and_then(|value| words.get(value).map(String::as_str)),
            None => value,
        };
        value.or(bound.rule.default.as_deref())
    }

    /// A number; where the table has no such field it isn't recorded, where the row has none, nobody was there to read it.
    fn number(&self, record: &Record, field: &str) -> Reading<Decimal> {
        let Some(bound) = self.of.get(field) else { return Reading::Missing(Gap::NotRecorded) };
        let raw = bound.column.and_then(|column| record.get(column));
        let told = match (&bound.rule.map, raw) {
            (Some(_), _) => self.text(record, field),
            (None, raw) => raw.or(bound.rule.default.as_deref()),
        };
        let Some(told) = told else { return Reading::Missing(Gap::CollectorDown) };
        // Words of nvidia-smi and blanks of DCGM, since tables are made of them.
        let read = match quantity::of_smi(Some(told)) {
            Reading::Seen(_) => quantity::of_series(told.split_ascii_whitespace().next().unwrap_or_default()),
            Reading::Missing(Gap::Implausible) if is_absent(told) => Reading::Missing(Gap::CollectorDown),
            Reading::Missing(gap) => Reading::Missing(gap),
        };
        let times = match bound.times.map(|column| record.get(column).map(read_number)) {
            None => Some(Decimal::ONE),
            Some(Some(Ok(number))) => Some(number),
            Some(_) => None,
        };
        let Reading::Seen(number) = read else { return read };
        let factors = [bound.rule.scale, times.map(Some).unwrap_or(None)];
        if times.is_none() {
            return Reading::Missing(Gap::CollectorDown);
        }
        let scaled = factors.into_iter().flatten().try_fold(number, |number, factor| number.checked_mul(factor));
        scaled.map_or(Reading::Missing(Gap::Implausible), Reading::Seen)
    }

    /// A quantity by whichever of its units the table has.
    fn in_units(&self, record: &Record, fields: &[(&str, Unit)]) -> (Reading<Decimal>, Unit) {
        let has = fields.iter().find(|(field, _)| self.of.contains_key(*field)).or(fields.first());
        has.map_or((Reading::Missing(Gap::NotRecorded), Unit::Whole), |(field, unit)| {
            (self.number(record, field), *unit)
        })
    }
}

struct Table<'a> {
    rules: &'a Rules,
    setting: &'a Setting,
    source: SampleSource,
    cluster: Option<&'a str>,
    clock: Clock,
    names: Names,
    readout: Readout,
}

impl Table<'_> {
    fn name(&mut self, record: &Record, field: &str) -> Option<Name> {
        self.rules.text(record, field).map(|text| self.names.intern(text))
    }

    fn row(&mut self, record: &Record) -> Result<(), Refusal> {
        let device = self.device(record)?;
        let text = self.rules.text(record, "at").ok_or_else(|| Refusal::new("at", "is absent"))?;
        let at = self.clock.read(&device, text).map_err(|error| Refusal::new("at", error.to_string()))?;
        let at = at.ok_or_else(|| Refusal::new("at", "is absent"))?;
        if let Some(why) = self.setting.refusal(at) {
            return Err(Refusal::new("at", why));
        }
        let told_share = self.rules.number(record, "share").seen();
        let share = told_share
            .map(|share| CardShare::from_decimal(share).map_err(|error| Refusal::new("share", error.to_string())));
        let share = share.transpose()?.filter(|share| *share <= CardShare::CARD);
        let cluster = self.name(record, "cluster").or_else(|| self.cluster.map(Name::from));
        let cluster = cluster.unwrap_or_else(|| self.setting.cluster.clone());
        if let Some(job_id) = self.name(record, "job_id") {
            let mut owned = |field: &str| self.name(record, field);
            let owner = Owner {
                org: owned("org"),
                project: owned("project"),
                user: owned("user"),
                queue: owned("queue"),
                class: owned("class"),
                ..Owner::default()
            };
            let kind = HolderKind::SlurmJob;
            let (shown_id, run, started_at) = (None, Name::from(RUN_BY_LABEL), None);
            let holder = Holder { kind, cluster: cluster.clone(), job_id, shown_id, run, started_at };
            let source = HolderSource::PrologMap;
            self.readout.sightings.push(Sighting {
                device: device.clone(),
                holder,
                at,
                source,
                mig_profile: None,
                share,
                owner,
            });
        }
        let signals = self.signals(record);
        if device.is_card() {
            let power_limit_mw = signals.power_limit_mw.seen().map(|limit| limit.0);
            let model = self.name(record, "model");
            self.readout.devices.push(SeenDevice {
                at,
                node: device.node.clone(),
                cluster,
                card_uuid: device.card_uuid.clone(),
                device_uuid: device.device_uuid.clone(),
                pci_bus_id: None,
                model,
                memory_bytes: None,
                driver: None,
                mig_mode: None,
                mig_profile: None,
                share: CardShare::CARD,
                power_limit_mw,
            });
        }
        let (source, reader, told) = (self.source, Name::new(), Told::Mean);
        self.readout.looks.push(Look { at, device, source, reader, signals, told });
        Ok(())
    }

    fn device(&mut self, record: &Record) -> Result<Device, Refusal> {
        let node = self.name(record, "node").or_else(|| self.setting.node.clone());
        let node = node.ok_or_else(|| Refusal::new("node", "is absent: name the node"))?;
        let card = match self.name(record, "card_uuid") {
            Some(card) => card,
            None => {
                let keys = ["card", "job_id"].map(|field| self.rules.text(record, field));
                let known = keys.into_iter().flatten().find_map(|key| self.setting.card(&node, key)).cloned();
                known.ok_or_else(|| {
                    let keys: Vec<Cow<str>> = keys.into_iter().flatten().map(Cow::from).collect();
                    let reason = format!("is absent, and the list of cards has none of {:?}", keys.join(", "));
                    Refusal::new("card_uuid", reason)
                })?
            }
        };
        let device_uuid = self.name(record, "device_uuid").unwrap_or_else(|| card.clone());
        Ok(Device { node, card_uuid: card, device_uuid })
    }

    fn signals(&self, record: &Record) -> Signals {
        let percent = |pct: &str, ratio: &str| {
            let (number, unit) = self.rules.in_units(record, &[(pct, Unit::Percent), (ratio, Unit::Ratio)]);
            quantity::percent(number, unit)
        };
        let memory = self.rules.in_units(record, &[("mem_used_bytes", Unit::Bytes), ("mem_used_mib", Unit::Mebibytes)]);
        let power = self.rules.in_units(record, &[("power_mw", Unit::Milliwatts), ("power_w", Unit::Watts)]);
        let energy = |mj: &str, j: &str, kwh: &str| {
            let (number, unit) =
                self.rules.in_units(record, &[(mj, Unit::Millijoules), (j, Unit::Joules), (kwh, Unit::KilowattHours)]);
            quantity::whole(number, unit)
        };
        let whole = |field: &str| quantity::whole(self.rules.number(record, field), Unit::Whole);
        Signals {
            sm_active_pct: percent("sm_active_pct", "sm_active_ratio"),
            duty_cycle_pct: percent("duty_cycle_pct", "duty_cycle_ratio"),
            mem_active_pct: percent("mem_active_pct", "mem_active_ratio"),
            media_active_pct: percent("media_active_pct", "media_active_ratio"),
            mem_used_bytes: quantity::memory(memory.0, memory.1),
            power_mw: quantity::power(power.0, power.1),
            power_limit_mw: quantity::power(self.rules.number(record, "power_limit_w"), Unit::Watts),
            energy_counter_mj: energy("energy_total_mj", "energy_total_j", "energy_total_kwh"),
            energy_mj: energy("energy_mj", "energy_j", "energy_kwh"),
            temperature_c: whole("temperature_c"),
            processes: whole("processes"),
            ..Signals::default()
        }
    }
}
