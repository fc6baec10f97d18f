//! The list of a node's cards: which UUID an index or a place on the bus is.

use super::smi_log::bus_id;
use crate::import::names::printable;
use crate::import::readers::{Format, ReadError, ReaderOptions, read as read_rows};
use cardhour_domain::Name;
use std::collections::BTreeMap;

/// Columns that name a card by something else than its UUID.
const KEYS: [&str; 5] = ["index", "card", "pci.bus_id", "gpu_bus_id", "job_id"];
const UUIDS: [&str; 3] = ["uuid", "gpu_uuid", "card_uuid"];
const NODES: [&str; 3] = ["node", "hostname", "host"];

/// Why a list can't be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CardsError {
    /// It isn't a table.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It says no UUIDs, or not of what.
    #[error(
        "it is no list of cards: expected what `nvidia-smi -L` prints, or a table with uuid and one of index, card, pci.bus_id, job_id"
    )]
    NoList,
    /// Two cards of one name.
    #[error("line {line}: {key:?} is {first} and {second}: add the column node, or take one list a node")]
    Twice {
        /// Where the second stands.
        line: u64,
        /// The name.
        key: String,
        /// The one card.
        first: Name,
        /// The other.
        second: Name,
    },
}

/// Reads what `nvidia-smi -L` prints, or a table: its columns `uuid` and `index`, `pci.bus_id`, `card` or `job_id`, and `node` where it is of
/// several. By `KEY`, or `NODE/KEY` where a node is told.
pub fn read(input: &[u8]) -> Result<BTreeMap<String, Name>, CardsError> {
    let mut cards = BTreeMap::new();
    let text = String::from_utf8_lossy(input);
    for (line, text) in (1..).zip(text.lines()) {
        if let Some((index, uuid)) = listed(text) {
            insert(&mut cards, line, None, index, uuid)?;
        }
    }
    if !cards.is_empty() {
        return Ok(cards);
    }
    let reading = read_rows(Format::Csv, input, &ReaderOptions { delimiter: None, fields: None })?;
    let names: Vec<String> = reading.columns.0.iter().map(|name| name.trim().to_ascii_lowercase()).collect();
    let place = |wanted: &[&str]| names.iter().position(|name| wanted.contains(&name.as_str()));
    let keys: Vec<usize> = (0..names.len()).filter(|i| KEYS.contains(&names[*i].as_str())).collect();
    let (Some(uuid), false) = (place(&UUIDS), keys.is_empty()) else { return Err(CardsError::NoList) };
    let node = place(&NODES);
    for record in reading.records.flatten() {
        let Some(uuid) = record.get(uuid).map(str::trim).filter(|uuid| !uuid.is_empty()) else { continue };
        let node = node.and_then(|node| record.get(node)).map(str::trim).filter(|node| !node.is_empty());
        for key in keys.iter().filter_map(|key| record.get(*key)).map(str::trim).filter(|key| !key.is_empty()) {
            insert(&mut cards, record.line, node, key, uuid)?;
            if let Some(id) = bus_id(key).filter(|id| &**id != key) {
                insert(&mut cards, record.line, node, &id, uuid)?;
            }
        }
    }
    if cards.is_empty() { Err(CardsError::NoList) } else { Ok(cards) }
}

/// `GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-…)`. Lines of MIG devices are of no card.
fn listed(line: &str) -> Option<(&str, &str)> {
    let (index, rest) = line.strip_prefix("GPU ")?.split_once(':')?;
    let (_, uuid) = rest.rsplit_once("(UUID:")?;
    let is_index = !index.is_empty() && index.bytes().all(|digit| digit.is_ascii_digit());
    is_index.then(|| (index, uuid.trim().trim_end_matches(')')))
}

fn insert(
    cards: &mut BTreeMap<String, Name>,
    line: u64,
    node: Option<&str>,
    key: &str,
    uuid: &str,
) -> Result<(), CardsError> {
    let key = node.map_or_else(|| key.to_owned(), |node| format!("{node}/{key}"));
    let card = Name::from(&*printable(uuid));
    match cards.insert(key.clone(), card.clone()) {
        Some(first) if first != card => Err(CardsError::Twice { line, key, first, second: card }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        read(text.as_bytes()).unwrap().into_iter().map(|(key, card)| format!("{key}={card}")).collect()
    }

    /// Source: the layout of `nvidia-smi -L` in the captures of three machines.
    #[test]
    fn what_nvidia_smi_lists_names_cards_by_their_index() {
        let text = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-a)\n  MIG 1g.10gb Device 0: (UUID: MIG-x)\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-b)\n";
        assert_eq!(list(text), ["0=GPU-a", "1=GPU-b"]);
    }

    #[test]
    fn a_table_names_cards_of_several_nodes_by_index_and_place_on_the_bus() {
        let text =
            "hostname, index, pci.bus_id, uuid\nn1, 0, 00000000:3B:00.0, GPU-a\nn2, 0, 00000000:3B:00.0, GPU-b\n";
        let keys = [
            "n1/0",
            "n1/00000000:3B:00.0",
            "n1/00000000:3b:00.0",
            "n2/0",
            "n2/00000000:3B:00.0",
            "n2/00000000:3b:00.0",
        ];
        let cards = ["GPU-a", "GPU-a", "GPU-a", "GPU-b", "GPU-b", "GPU-b"];
        assert_eq!(list(text), keys.iter().zip(cards).map(|(key, card)| format!("{key}={card}")).collect::<Vec<_>>());
    }

    #[test]
    fn a_list_that_does_not_tell_cards_apart_is_refused() {
        let twice = read(b"index,uuid\n0,GPU-a\n0,GPU-b\n").unwrap_err().to_string();
        assert_eq!(twice, "line 3: \"0\" is GPU-a and GPU-b: add the column node, or take one list a node");
        assert_eq!(read(b"index,name\n0,H100\n"), Err(CardsError::NoList));
    }
}
