//! `import reservations`: cards set aside for somebody, from a date to a date.

use super::rules::{Rules, known_keys, refused};
use super::sheet::{Sheet, Written};
use super::{ListError, Listed};
use crate::import::fields::Kind;
use crate::import::map::MapFile;
use crate::import::record::Record;
use crate::import::tres::cards_in_tres;
use crate::import::when::Refusal;
use crate::site::Reservation;
use cardhour_domain::{CardShare, Name};

/// The fields of a reservation.
pub const RESERVATION_FIELDS: &[(&str, Kind)] = &[
    ("cluster", Kind::Text),
    ("name", Kind::Text),
    ("started_at", Kind::Time),
    ("ended_at", Kind::Time),
    ("nodes", Kind::Nodes),
    ("cards", Kind::Number),
    ("model", Kind::Text),
    ("org", Kind::Text),
    ("project", Kind::Text),
    ("user", Kind::Text),
];

/// Other names for them: people's, and scontrol's.
const OTHERS: &[(&str, &str)] = &[
    ("started_at", "from"),
    ("started_at", "start"),
    ("ended_at", "to"),
    ("ended_at", "end"),
    ("name", "ReservationName"),
    ("started_at", "StartTime"),
    ("ended_at", "EndTime"),
    ("nodes", "Nodes"),
    ("project", "Accounts"),
    ("user", "Users"),
];

/// Reads a list of reservations.
///
/// `map`: [`MapFile::default`] without one; its zone is that of times without an offset, which scontrol's are. Of scontrol's
/// accounts and users the owner is the only one; of several, none is: whose it is isn't told. Errors: nothing says what a
/// reservation is called or when it is; a map that doesn't fit.
pub fn reservations(input: &[u8], map: &MapFile) -> Result<Listed<Reservation>, ListError> {
    let sheet = Sheet::read(input, "reservation", map)?;
    let rules = Rules::bind(&sheet, map, RESERVATION_FIELDS, OTHERS)?;
    let mut listed = Listed { rows: Vec::new(), rejected: Vec::new(), rows_read: sheet.records.len() as u64 };
    if !sheet.records.is_empty() {
        rules.require("name", "what a reservation is called")?;
        rules.require("started_at", "from when a reservation is")?;
        rules.require("ended_at", "until when a reservation is")?;
    }
    for record in &sheet.records {
        match record {
            Err(rejected) => listed.rejected.push(rejected.clone()),
            Ok(record) => {
                let outcome = known_keys(&sheet, record, map, RESERVATION_FIELDS, OTHERS);
                match outcome.and_then(|()| row(record, &rules, sheet.written)) {
                    Ok(reservation) => listed.rows.push(reservation),
                    Err(refusal) => listed.rejected.push(refused(record, input, refusal)),
                }
            }
        }
    }
    Ok(listed)
}

fn row(record: &Record, rules: &Rules, written: Written) -> Result<Reservation, Refusal> {
    let owner = |field: &str| rules.name(record, field).filter(|owner| written != Written::Scontrol || is_one(owner));
    let reservation = Reservation {
        cluster: rules.cluster(record),
        name: rules.name(record, "name").ok_or_else(|| Refusal::new("name", "is absent: jobs name it as theirs"))?,
        during: rules.during(record)?,
        nodes: rules.nodes(record, "nodes")?,
        cards: rules.cards(record)?.map_or_else(|| slurm_cards(record, rules), |cards| Ok(Some(cards)))?,
        model: rules.name(record, "model"),
        org: rules.name(record, "org"),
        project: owner("project"),
        user: owner("user"),
    };
    if reservation.nodes.is_empty() && reservation.cards.is_none() {
        return Err(Refusal::new("nodes", "takes neither nodes nor a number of cards: name either"));
    }
    Ok(reservation)
}

/// One owner that has the reservation: no list, and none that `-` keeps out.
fn is_one(owner: &Name) -> bool {
    !owner.contains(',') && !owner.starts_with('-')
}

/// The cards that scontrol's `TRES` names; none where it names no cards: then all of the nodes' are taken.
fn slurm_cards(record: &Record, rules: &Rules) -> Result<Option<CardShare>, Refusal> {
    let Some(text) = rules.column("TRES").and_then(|column| record.get(column)) else { return Ok(None) };
    let cards = cards_in_tres(text, "gres/gpu").map_err(|error| Refusal::new("cards", error.to_string()))?;
    Ok(Some(cards.share).filter(|share| !share.is_zero()))
}
