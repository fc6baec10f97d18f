//! Holdings in memory, while the disk takes nothing.

use super::stretches::Gathered;
use cardhour_domain::Stream;
use cardhour_domain::columns::Rows;

/// Rows of each stream that may wait: some 20 MiB. Stretches that go on are joined, so it takes as many changes of holders, not as many ticks: days of the busiest node.
const ROWS_A_STREAM: usize = 65_536;

/// So many rows of a stream are joined before more is said of them.
const JOINED_AT: usize = 4096;

/// Observations, watches, devices and events that are not on disk yet.
pub(crate) struct Waiting {
    gathered: Vec<Gathered>,
}

impl Waiting {
    pub(crate) fn new() -> Self {
        let holdings = Stream::ALL.into_iter().filter(|stream| !stream.is_telemetry());
        Self { gathered: holdings.map(Gathered::new).collect() }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Rows> {
        self.gathered.iter().map(Gathered::rows)
    }

    pub(crate) fn len(&self) -> usize {
        self.gathered.iter().map(Gathered::len).sum()
    }

    /// Adds rows of a stream that isn't telemetry.
    pub(crate) fn add(&mut self, rows: &Rows) {
        let gathered = self.gathered.iter_mut().find(|gathered| gathered.rows().stream() == rows.stream());
        gathered.expect("telemetry doesn't wait").add(rows.clone());
    }

    /// Whether half of what may wait does.
    pub(crate) fn is_filling(&mut self) -> bool {
        let is_filling = |gathered: &mut Gathered| {
            if gathered.len() > JOINED_AT {
                gathered.join();
            }
            gathered.len() > ROWS_A_STREAM / 2
        };
        self.gathered.iter_mut().any(is_filling)
    }

    /// Forgets the oldest where there are too many. Shape: how many, by stream.
    pub(crate) fn bound(&mut self) -> Vec<(Stream, u64)> {
        let forget = |gathered: &mut Gathered| {
            if gathered.len() > ROWS_A_STREAM {
                gathered.join();
            }
            (gathered.rows().stream(), gathered.keep_last(ROWS_A_STREAM) as u64)
        };
        self.gathered.iter_mut().map(forget).collect()
    }
}
