//! What Slurm's controller says of a job.

use cardhour_domain::{Name, Timestamp};

/// A job, as the controller has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRecord {
    /// Its raw id, which every machine knows it by.
    pub job_id: u64,
    /// Its id as people know it, where that differs: `123_4` of an array, `19+1` of a heterogeneous job.
    pub shown_id: Option<Name>,
    /// Its SLUID, from 25.11 on.
    pub sluid: Option<Name>,
    /// How often it was started anew.
    pub restarts: Option<u32>,
    /// When this run started.
    pub started_at: Option<Timestamp>,
    /// Its account.
    pub account: Option<Name>,
    /// Its user's name.
    pub user: Option<Name>,
    /// Its user's number.
    pub uid: Option<u32>,
    /// Its partition.
    pub partition: Option<Name>,
    /// Its quality of service.
    pub qos: Option<Name>,
    /// What its user wrote beside it.
    pub comment: Option<Name>,
    /// Whether its devices are its own now: it runs, is suspended, is being set up, or is ending.
    pub is_holding: bool,
    /// What it has on each node.
    pub nodes: Vec<NodeGres>,
}

/// What a job has on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeGres {
    /// Which, by Slurm's name.
    pub node: Name,
    /// Its devices there.
    pub gres: Vec<Gres>,
}

/// Devices of one type on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gres {
    /// `gpu`, `shard`, `mps`.
    pub name: Name,
    /// The type, free text: `nvidia_h200_nvl_4g.71gb`.
    pub kind: Option<Name>,
    /// How many.
    pub count: u64,
    /// Which, as positions in the node's `gres.conf`, each with the part of it that the job has, where that is written (of how many).
    pub positions: Vec<(usize, Option<(u64, u64)>)>,
}

/// States in which the job's devices are its own. A job that ends is in COMPLETING until its epilog is through.
const HOLDING: [&str; 9] = [
    "RUNNING",
    "SUSPENDED",
    "COMPLETING",
    "CONFIGURING",
    "STOPPED",
    "STAGE_OUT",
    "SIGNALING",
    "RESIZING",
    "POWER_UP_NODE",
];

/// Whether a job in these states has its devices; newer versions give several at once, such as CANCELLED and COMPLETING.
pub(super) fn is_holding<'s>(states: impl IntoIterator<Item = &'s str>) -> bool {
    let words = states.into_iter().flat_map(|state| state.split(['+', ' ', ',']));
    words.into_iter().any(|word| HOLDING.contains(&word))
}

impl JobRecord {
    /// What it has on a node.
    pub fn on_node(&self, node: &str) -> Option<&NodeGres> {
        self.nodes.iter().find(|own| *own.node == *node)
    }
}

/// Reads `gpu:h100:2(IDX:1-2),shard:1(IDX:0)`. What can't be read is left out: the device is then known from elsewhere or not at all.
pub(super) fn parse_gres(detail: &str) -> Vec<Gres> {
    let mut items = Vec::new();
    let (mut depth, mut start) = (0i32, 0);
    for (at, byte) in detail.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => {
                items.push(&detail[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&detail[start..]);
    items.into_iter().filter_map(parse_one).collect()
}

fn parse_one(item: &str) -> Option<Gres> {
    let (head, inside) = item.trim().split_once('(')?;
    let inside = inside.strip_suffix(')')?;
    // The name is up to the first colon, the count after the last; a type between them is free text.
    let (name, rest) = head.split_once(':').unwrap_or((head, "1"));
    let (kind, count) = match rest.rsplit_once(':') {
        Some((kind, count)) => (Some(kind), count),
        None if rest.parse::<u64>().is_err() => (Some(rest), "1"),
        None => (None, rest),
    };
    let positions: Vec<(usize, Option<(u64, u64)>)> = match inside.strip_prefix("IDX:") {
        Some("" | "N/A" | "(null)") => Vec::new(),
        Some(list) => {
            let numbers = super::hostlist::numbers(list)?;
            numbers.iter().map(|n| Some((n.parse().ok()?, None))).collect::<Option<_>>()?
        }
        // Shares of each device in turn: `2/4,0/4`.
        None => inside
            .split(',')
            .enumerate()
            .filter_map(|(position, part)| {
                let (has, of) = part.split_once('/')?;
                let (has, of) = (has.parse().ok()?, of.parse().ok()?);
                (has > 0).then_some((position, Some((has, of))))
            })
            .collect(),
    };
    Some(Gres { name: name.into(), kind: kind.map(Name::from), count: count.parse().ok()?, positions })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(detail: &str) -> Vec<(String, Option<String>, u64, Vec<usize>)> {
        let of = |gres: Gres| {
            let kind = gres.kind.map(|kind| kind.to_string());
            (gres.name.to_string(), kind, gres.count, gres.positions.iter().map(|(position, _)| *position).collect())
        };
        parse_gres(detail).into_iter().map(of).collect()
    }

    fn gpu(kind: Option<&str>, count: u64, positions: &[usize]) -> (String, Option<String>, u64, Vec<usize>) {
        ("gpu".to_owned(), kind.map(str::to_owned), count, positions.to_vec())
    }

    #[test]
    fn positions_are_read_with_ranges_and_several_types() {
        assert_eq!(positions("gpu:h100:2(IDX:1-2)"), [gpu(Some("h100"), 2, &[1, 2])]);
        assert_eq!(positions("gpu:2(IDX:0,3)"), [gpu(None, 2, &[0, 3])]);
        assert_eq!(
            positions("gpu:a100:1(IDX:0),gpu:h100:3(IDX:2,4-5)"),
            [gpu(Some("a100"), 1, &[0]), gpu(Some("h100"), 3, &[2, 4, 5])]
        );
        assert_eq!(positions("gpu:h100:0(IDX:)"), [gpu(Some("h100"), 0, &[])]);
        assert_eq!(positions("gpu:h100:2(IDX:x)"), []);
        assert_eq!(positions(""), []);
    }

    /// S07: a type's name may have dots; it is free text up to the last colon.
    #[test]
    fn s07_a_type_with_a_dot_keeps_its_count() {
        assert_eq!(positions("gpu:nvidia_h200_nvl_4g.71gb:1(IDX:3)"), [gpu(Some("nvidia_h200_nvl_4g.71gb"), 1, &[3])]);
        assert_eq!(positions("gpu:a:b:2(IDX:0-1)"), [gpu(Some("a:b"), 2, &[0, 1])]);
    }

    #[test]
    fn shares_of_a_device_are_read_where_they_are_written() {
        assert_eq!(parse_gres("shard:h100:2(0/2,2/2)")[0].positions, [(1, Some((2, 2)))]);
        assert_eq!(parse_gres("shard:1(IDX:0)")[0].positions, [(0, None)]);
    }

    #[test]
    fn a_job_that_ends_still_has_its_devices() {
        for states in [
            vec!["RUNNING"],
            vec!["CANCELLED", "COMPLETING"],
            vec!["COMPLETING"],
            vec!["SUSPENDED"],
            vec!["CANCELLED+COMPLETING"],
        ] {
            assert!(is_holding(states.clone()), "{states:?}");
        }
        for states in [vec!["PENDING"], vec!["COMPLETED"], vec!["CANCELLED"], vec!["PREEMPTED"], vec![]] {
            assert!(!is_holding(states.clone()), "{states:?}");
        }
    }
}
