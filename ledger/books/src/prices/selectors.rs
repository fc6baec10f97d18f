//! Which card-time a price is for, and which of two prices says it more closely.

use super::pattern::Pattern;

/// What a price can select by, in the order of design §4.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selector {
    /// Model of the card, upper and lower case alike.
    Model,
    /// MIG profile, such as `1g.10gb`.
    MigProfile,
    /// Share of a card: `1` for whole cards, else a decimal such as `0.5`.
    Share,
    /// Pool.
    Pool,
    /// Queue or partition.
    Queue,
    /// Class of the job.
    Class,
    /// Organisation.
    Org,
    /// Project.
    Project,
    /// Cluster.
    Cluster,
}

impl Selector {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Model,
        Self::MigProfile,
        Self::Share,
        Self::Pool,
        Self::Queue,
        Self::Class,
        Self::Org,
        Self::Project,
        Self::Cluster,
    ];

    /// Its key in the price book.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::MigProfile => "mig_profile",
            Self::Share => "share",
            Self::Pool => "pool",
            Self::Queue => "queue",
            Self::Class => "class",
            Self::Org => "org",
            Self::Project => "project",
            Self::Cluster => "cluster",
        }
    }
}

/// What some card-time is, for a price to match. Absent is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priced<'a> {
    /// Model of the card.
    pub model: Option<&'a str>,
    /// MIG profile.
    pub mig_profile: Option<&'a str>,
    /// Share of a card, as [`Selector::Share`] says.
    pub share: Option<&'a str>,
    /// Pool.
    pub pool: Option<&'a str>,
    /// Queue.
    pub queue: Option<&'a str>,
    /// Class.
    pub class: Option<&'a str>,
    /// Organisation.
    pub org: Option<&'a str>,
    /// Project.
    pub project: Option<&'a str>,
    /// Cluster.
    pub cluster: Option<&'a str>,
}

impl<'a> Priced<'a> {
    /// What a selector looks at.
    pub fn get(&self, selector: Selector) -> Option<&'a str> {
        match selector {
            Selector::Model => self.model,
            Selector::MigProfile => self.mig_profile,
            Selector::Share => self.share,
            Selector::Pool => self.pool,
            Selector::Queue => self.queue,
            Selector::Class => self.class,
            Selector::Org => self.org,
            Selector::Project => self.project,
            Selector::Cluster => self.cluster,
        }
    }
}

/// One pattern a selector. Equal sets select the same card-time: of those, the latest `from` replaces the others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selectors([Pattern; Selector::ALL.len()]);

impl Default for Selectors {
    fn default() -> Self {
        Self([const { Pattern::Any }; Selector::ALL.len()])
    }
}

/// How closely a price selects: more selectors given, then more literals, then longer text before the first wildcard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity {
    given: u32,
    literals: u32,
    prefix: usize,
}

impl Selectors {
    /// Sets one of them.
    pub fn set(&mut self, selector: Selector, text: &str) {
        let text = if selector == Selector::Model { text.to_lowercase() } else { text.to_owned() };
        self.0[selector as usize] = Pattern::new(&text);
    }

    /// Whether all of them match.
    pub fn match_all(&self, what: &Priced<'_>) -> bool {
        Selector::ALL.into_iter().zip(&self.0).all(|(selector, pattern)| match (selector, what.get(selector)) {
            (_, _) if *pattern == Pattern::Any => true,
            (Selector::Model, Some(model)) => pattern.matches(Some(&model.to_lowercase())),
            (_, value) => pattern.matches(value),
        })
    }

    /// How closely they select.
    pub fn specificity(&self) -> Specificity {
        self.0.iter().map(Pattern::specificity).fold(Specificity::default(), |sum, (given, literals, prefix)| {
            Specificity { given: sum.given + given, literals: sum.literals + literals, prefix: sum.prefix + prefix }
        })
    }

    /// Those that are given, with their text.
    pub fn given(&self) -> impl Iterator<Item = (Selector, &str)> {
        Selector::ALL
            .into_iter()
            .zip(&self.0)
            .filter(|(_, pattern)| **pattern != Pattern::Any)
            .map(|(selector, pattern)| (selector, pattern.as_str()))
    }
}
