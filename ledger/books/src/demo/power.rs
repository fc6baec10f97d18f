//! What a card draws.

use super::habit::Doing;
use super::pool::Node;

/// A model of card, as its driver tells of it.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The driver's name for it.
    pub name: &'static str,
    /// What it draws when nobody has it. Unit: milliwatts.
    pub idle_mw: i64,
    /// The most it may draw. Unit: milliwatts.
    pub limit_mw: i64,
    /// Whether it has the performance monitor that tells activity; else the driver tells only its duty cycle.
    pub has_gpm: bool,
}

impl Model {
    /// The model of a node's cards. Source: NVIDIA's data sheets for the limits; the idle levels are plausible.
    pub fn of(node: &Node) -> Self {
        match node.model {
            "h200" => Self { name: "NVIDIA H200", idle_mw: 76_000, limit_mw: 700_000, has_gpm: true },
            "a100" => Self { name: "NVIDIA A100-SXM4-80GB", idle_mw: 58_000, limit_mw: 400_000, has_gpm: false },
            _ => Self { name: "NVIDIA L40S", idle_mw: 34_000, limit_mw: 350_000, has_gpm: false },
        }
    }

    /// Between idle and limit. Unit: milliwatts.
    pub const fn range_mw(&self) -> i64 {
        self.limit_mw - self.idle_mw
    }

    /// What it draws while its tenants do this. A context that does nothing costs a little, work a fixed part and more the busier it is.
    /// Unit: milliwatts.
    pub fn power_mw(&self, doings: impl Iterator<Item = Doing>) -> i64 {
        let (mut busy_milli, mut is_held) = (0, false);
        for doing in doings {
            is_held = true;
            busy_milli += doing.busy_milli;
        }
        let height_milli = match (is_held, busy_milli) {
            (false, _) => 0,
            (true, 0) => 30,
            (true, busy_milli) => 150 + busy_milli * 4 / 5,
        };
        self.idle_mw + self.range_mw() * height_milli / 1000
    }
}
