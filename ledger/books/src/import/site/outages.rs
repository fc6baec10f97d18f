//! `import outages`: when cards were out of service.

use super::rules::{Rules, known_keys, refused};
use super::sheet::{Sheet, Written};
use super::{ListError, Listed};
use crate::import::fields::Kind;
use crate::import::map::MapFile;
use crate::import::record::Record;
use crate::import::when::Refusal;
use crate::site::Outage;

/// The fields of an outage.
pub const OUTAGE_FIELDS: &[(&str, Kind)] = &[
    ("cluster", Kind::Text),
    ("started_at", Kind::Time),
    ("ended_at", Kind::Time),
    ("nodes", Kind::Nodes),
    ("cards", Kind::Number),
    ("reason", Kind::Text),
];

/// Other names for them: people's, and scontrol's.
const OTHERS: &[(&str, &str)] = &[
    ("started_at", "from"),
    ("started_at", "start"),
    ("ended_at", "to"),
    ("ended_at", "end"),
    ("nodes", "node"),
    ("started_at", "StartTime"),
    ("ended_at", "EndTime"),
    ("nodes", "Nodes"),
    ("reason", "ReservationName"),
];

/// Reads a list of outages.
///
/// `map`: [`MapFile::default`] without one. Without nodes, or with `ALL`, an outage hits the whole cluster. Of
/// `scontrol show reservation` those are outages whose flags say MAINT; the others are passed over. Errors: nothing says when
/// an outage was; a map that doesn't fit.
pub fn outages(input: &[u8], map: &MapFile) -> Result<Listed<Outage>, ListError> {
    let sheet = Sheet::read(input, "outage", map)?;
    let rules = Rules::bind(&sheet, map, OUTAGE_FIELDS, OTHERS)?;
    let mut listed = Listed { rows: Vec::new(), rejected: Vec::new(), rows_read: sheet.records.len() as u64 };
    if !sheet.records.is_empty() {
        rules.require("started_at", "from when an outage was")?;
        rules.require("ended_at", "until when an outage was")?;
    }
    for record in &sheet.records {
        match record {
            Err(rejected) => listed.rejected.push(rejected.clone()),
            Ok(record) if sheet.written == Written::Scontrol && !is_maintenance(record, &rules) => {}
            Ok(record) => {
                let outcome = known_keys(&sheet, record, map, OUTAGE_FIELDS, OTHERS);
                match outcome.and_then(|()| row(record, &rules)) {
                    Ok(outage) => listed.rows.push(outage),
                    Err(refusal) => listed.rejected.push(refused(record, input, refusal)),
                }
            }
        }
    }
    Ok(listed)
}

fn row(record: &Record, rules: &Rules) -> Result<Outage, Refusal> {
    Ok(Outage {
        cluster: rules.cluster(record),
        during: rules.during(record)?,
        nodes: rules.nodes(record, "nodes")?,
        cards: rules.cards(record)?,
        reason: rules.name(record, "reason"),
    })
}

fn is_maintenance(record: &Record, rules: &Rules) -> bool {
    let flags = rules.column("Flags").and_then(|column| record.get(column));
    flags.is_some_and(|flags| flags.split(',').any(|flag| flag == "MAINT"))
}
