//! What kind of work a job is: rules differ by it.

/// What kind of work a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkClass {
    /// A model is being made.
    Training,
    /// A model answers requests.
    Inference,
    /// A model is being measured.
    Evaluation,
    /// Somebody sits at it.
    Development,
    /// Anything else that runs to its end by itself.
    Batch,
}

impl WorkClass {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Training, Self::Inference, Self::Evaluation, Self::Development, Self::Batch];

    /// Its name in tables and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Inference => "inference",
            Self::Evaluation => "evaluation",
            Self::Development => "development",
            Self::Batch => "batch",
        }
    }

    /// The class of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}
