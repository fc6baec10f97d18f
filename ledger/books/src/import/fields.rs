//! Our fields: what a map may name on the left of `ours = theirs`, and what can be said of each.

/// What the values of a field are, which decides what a map may say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text: `map`, `default`.
    Text,
    /// A job's state: `map`, `default`.
    State,
    /// An instant: `unit`, `epoch`, `default`.
    Time,
    /// A length of time: `unit`, `default`.
    Length,
    /// A decimal number: `scale`, `times`, `map`, `default`.
    Number,
    /// A host list, or names with commas between them: `default`.
    Nodes,
}

impl Kind {
    /// The keys that a rule for such a field may have beside `column`.
    pub const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Text | Self::State => &["map", "default"],
            Self::Time => &["unit", "epoch", "default"],
            Self::Length => &["unit", "default"],
            Self::Number => &["scale", "times", "map", "default"],
            Self::Nodes => &["default"],
        }
    }
}

/// The fields of `import jobs`: the columns of the table `jobs`, what a job's cards are, and the ids of a run.
///
/// Labels come beside them, as `labels.NAME`, text each.
pub const JOB_FIELDS: &[(&str, Kind)] = &[
    ("cluster", Kind::Text),
    ("job_id", Kind::Text),
    ("job_id_raw", Kind::Text),
    ("attempt", Kind::Number),
    ("db_index", Kind::Text),
    ("sluid", Kind::Text),
    ("pod_uid", Kind::Text),
    ("org", Kind::Text),
    ("project", Kind::Text),
    ("user", Kind::Text),
    ("queue", Kind::Text),
    ("class", Kind::Text),
    ("model", Kind::Text),
    ("mig_profile", Kind::Text),
    ("state", Kind::State),
    ("submitted_at", Kind::Time),
    ("started_at", Kind::Time),
    ("ended_at", Kind::Time),
    ("as_of", Kind::Time),
    ("duration_s", Kind::Length),
    ("suspended_s", Kind::Length),
    ("cards", Kind::Number),
    ("cards_requested", Kind::Number),
    ("share", Kind::Number),
    ("card_uuid", Kind::Text),
    ("nodes", Kind::Nodes),
    ("memory_requested_mib", Kind::Number),
    ("reservation", Kind::Text),
    ("image", Kind::Text),
    ("exit_code", Kind::Text),
    ("failure_reason", Kind::Text),
    ("artifact_uri", Kind::Text),
    ("priority", Kind::Number),
    ("restartable", Kind::Text),
];

/// The kind of a field in a list such as [`JOB_FIELDS`]; none where the list has no such field.
pub fn kind_of(fields: &[(&str, Kind)], name: &str) -> Option<Kind> {
    match name.strip_prefix("labels.") {
        Some(label) if !label.is_empty() => Some(Kind::Text),
        _ => fields.iter().find(|(field, _)| *field == name).map(|(_, kind)| *kind),
    }
}
