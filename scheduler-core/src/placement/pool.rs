//! Hosts with cards, what is left on them, and what asks for room.

use std::collections::BTreeMap;

/// Milli of a whole card.
pub const CARD_MILLI: u32 = 1000;

/// A card model, as an index into [`Models`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelId(u16);

/// The names of card models, each known by a small number.
#[derive(Clone, Debug, Default)]
pub struct Models {
    ids: BTreeMap<String, ModelId>,
}

impl Models {
    /// The number of a name; a new one where it has none yet. None when there are more than 65,536 names.
    pub fn id(&mut self, name: &str) -> Option<ModelId> {
        if let Some(&id) = self.ids.get(name) {
            return Some(id);
        }
        let id = ModelId(u16::try_from(self.ids.len()).ok()?);
        self.ids.insert(name.to_owned(), id);
        Some(id)
    }
}

/// What asks for room on one host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// Processor time, thousandths of a core.
    pub cpu_milli: u64,
    /// Memory, MiB.
    pub memory_mib: u64,
    /// Cards; none asks for processors and memory alone.
    pub cards: u32,
    /// Of each card, thousandths of it; [`CARD_MILLI`] when more than one card is asked for.
    pub card_milli: u32,
    /// The models that will do, sorted; empty when any will.
    pub models: Vec<ModelId>,
}

impl Request {
    /// All that it takes of cards, thousandths of a card.
    pub fn total_card_milli(&self) -> u64 {
        u64::from(self.cards) * u64::from(self.card_milli)
    }

    /// Whether cards of this model will do. A host without a model suits only who names none.
    pub fn may_use(&self, model: Option<ModelId>) -> bool {
        self.models.is_empty() || model.is_some_and(|model| self.models.contains(&model))
    }

    /// A part of one card.
    pub const fn is_share(&self) -> bool {
        self.cards == 1 && self.card_milli < CARD_MILLI
    }
}

/// What is left on one host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    /// Model of its cards; none where it has no cards or nobody said.
    pub model: Option<ModelId>,
    /// Processor time left, thousandths of a core.
    pub cpu_milli_left: u64,
    /// Memory left, MiB.
    pub memory_mib_left: u64,
    /// Left of each card, thousandths of it, by its index.
    pub card_milli_left: Vec<u32>,
}

impl Host {
    /// All that is left of its cards, thousandths of a card.
    pub fn total_card_milli_left(&self) -> u64 {
        self.card_milli_left.iter().map(|&left| u64::from(left)).sum()
    }

    /// Whether a request fits by model, processors and cards; memory apart ([`Host::has_memory_for`]).
    pub fn has_cards_for(&self, request: &Request) -> bool {
        let enough = || self.card_milli_left.iter().filter(|&&left| left >= request.card_milli).count();
        request.cpu_milli <= self.cpu_milli_left
            && request.may_use(self.model)
            && (request.cards == 0 || enough() >= request.cards as usize)
    }

    /// Whether a request fits by memory.
    pub const fn has_memory_for(&self, request: &Request) -> bool {
        request.memory_mib <= self.memory_mib_left
    }

    /// Whether a request fits.
    pub fn fits(&self, request: &Request) -> bool {
        self.has_memory_for(request) && self.has_cards_for(request)
    }

    /// The fullest cards that have room, as many as are asked for, lowest index first among equals. Shape: indexes in that order. The request has to fit.
    pub fn tightest_cards(&self, request: &Request) -> Vec<usize> {
        let mut cards: Vec<usize> =
            (0..self.card_milli_left.len()).filter(|&card| self.card_milli_left[card] >= request.card_milli).collect();
        cards.sort_by_key(|&card| self.card_milli_left[card]);
        cards.truncate(request.cards as usize);
        cards
    }

    /// Takes what is asked for off these cards. The request has to fit there.
    pub fn take(&mut self, request: &Request, cards: &[usize]) {
        assert_eq!(cards.len(), request.cards as usize, "as many cards as were asked for");
        self.cpu_milli_left =
            self.cpu_milli_left.checked_sub(request.cpu_milli).expect("processors were looked at before");
        self.memory_mib_left =
            self.memory_mib_left.checked_sub(request.memory_mib).expect("memory was looked at before");
        for &card in cards {
            let left = &mut self.card_milli_left[card];
            *left = left.checked_sub(request.card_milli).expect("no card is given twice");
        }
    }

    /// Gives back what was taken.
    pub fn give_back(&mut self, request: &Request, cards: &[usize]) {
        self.cpu_milli_left += request.cpu_milli;
        self.memory_mib_left += request.memory_mib;
        for &card in cards {
            let left = &mut self.card_milli_left[card];
            *left += request.card_milli;
            assert!(*left <= CARD_MILLI, "no card is given back twice");
        }
    }
}
