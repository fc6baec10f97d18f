//! What a report can be grouped by.

use cardhour_domain::Name;
use std::fmt;

/// One `--by` name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// Who pays, at the top.
    Org,
    /// Who pays.
    Project,
    /// Whose it is.
    User,
    /// Queue or partition.
    Queue,
    /// Class of the job.
    Class,
    /// Model of the card.
    Model,
    /// Node.
    Node,
    /// Cluster.
    Cluster,
    /// Pool.
    Pool,
    /// State of the job.
    State,
    /// Day, in the zone of the view.
    Day,
    /// Month, in the zone of the view.
    Month,
    /// Line of the price book.
    Price,
    /// Window of the price book.
    Window,
    /// A free label.
    Label(Name),
}

/// What a dimension is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The attempt.
    Attempt,
    /// Where the card is.
    Place,
    /// The slot of time.
    Time,
    /// The price that matched.
    Price,
}

/// A `--by` that can't be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DimensionError {
    /// No such name.
    #[error(
        "{0:?} is nothing to group by: use org, project, user, queue, class, model, node, cluster, pool, state, day, month, price, window or label.NAME"
    )]
    Unknown(String),
    /// Named twice.
    #[error("{0} is named twice")]
    Twice(Dimension),
}

impl Dimension {
    /// Those of a leaf of the bill, in the order of a leaf's line (LED-6).
    pub const LEAF: [Self; 7] =
        [Self::Month, Self::Org, Self::Project, Self::User, Self::Model, Self::Price, Self::Window];

    const NAMED: [Self; 14] = [
        Self::Org,
        Self::Project,
        Self::User,
        Self::Queue,
        Self::Class,
        Self::Model,
        Self::Node,
        Self::Cluster,
        Self::Pool,
        Self::State,
        Self::Day,
        Self::Month,
        Self::Price,
        Self::Window,
    ];

    /// By its `--by` name. Errors: no such name.
    pub fn parse(name: &str) -> Result<Self, DimensionError> {
        if let Some(label) = name.strip_prefix("label.").filter(|label| !label.is_empty()) {
            return Ok(Self::Label(label.into()));
        }
        let known = Self::NAMED.into_iter().find(|known| known.to_string() == name);
        known.ok_or_else(|| DimensionError::Unknown(name.to_owned()))
    }

    /// Reads `org,project,label.team`; empty for an empty text. Errors: no such name, or one named twice.
    pub fn parse_list(list: &str) -> Result<Vec<Self>, DimensionError> {
        let mut by = Vec::new();
        for name in list.split(',').map(str::trim).filter(|_| !list.trim().is_empty()) {
            let next = Self::parse(name)?;
            if by.contains(&next) {
                return Err(DimensionError::Twice(next));
            }
            by.push(next);
        }
        Ok(by)
    }

    pub(crate) fn source(&self) -> Source {
        match self {
            Self::Org | Self::Project | Self::User | Self::Queue | Self::Class | Self::State | Self::Label(_) => {
                Source::Attempt
            }
            Self::Model | Self::Node | Self::Cluster | Self::Pool => Source::Place,
            Self::Day | Self::Month | Self::Window => Source::Time,
            Self::Price => Source::Price,
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Org => "org",
            Self::Project => "project",
            Self::User => "user",
            Self::Queue => "queue",
            Self::Class => "class",
            Self::Model => "model",
            Self::Node => "node",
            Self::Cluster => "cluster",
            Self::Pool => "pool",
            Self::State => "state",
            Self::Day => "day",
            Self::Month => "month",
            Self::Price => "price",
            Self::Window => "window",
            Self::Label(name) => return write!(f, "label.{name}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_its_order_and_a_slip_is_refused() {
        let by = Dimension::parse_list("project, label.team,day").unwrap();
        assert_eq!(by, [Dimension::Project, Dimension::Label("team".into()), Dimension::Day]);
        assert_eq!(Dimension::parse_list("").unwrap(), []);
        assert_eq!(Dimension::parse_list("org,org"), Err(DimensionError::Twice(Dimension::Org)));
        for slip in ["team", "label.", "Org", "org,,user"] {
            assert!(matches!(Dimension::parse_list(slip), Err(DimensionError::Unknown(_))), "{slip}");
        }
    }
}
