//! Which leaf of the bill each cell belongs to, and what each leaf costs.

use super::holes::{Hole, Holes};
use crate::attempt::Name;
use crate::prices::{PriceBook, Priced};
use crate::report::ReportInput;
use crate::report::names::Tuples;
use crate::slots::{Era, Slots};
use cardhour_domain::{CardShare, CardState, CardTime, Money, Month};
use rustc_hash::FxHashMap;

/// In place of a leaf's number: the cell isn't held, so nobody pays for it here.
pub(crate) const NO_LEAF: u32 = u32::MAX;

/// One leaf.
#[derive(Clone, Debug)]
pub(crate) struct Leaf<'a> {
    /// Org, project, user.
    pub owner: [Option<&'a Name>; 3],
    pub model: Option<&'a Name>,
    /// Index into the book's prices; none in a hole, or without a book.
    pub price: Option<usize>,
    /// Index into the book's windows.
    pub window: Option<usize>,
    pub month: Month,
    pub card_time: CardTime,
    pub billed_time: CardTime,
    /// Rounded here and nowhere else (LED-6); none without a price.
    pub list_cost: Option<Money>,
    pub cost: Option<Money>,
}

impl<'a> Leaf<'a> {
    /// What the price book calls its price.
    pub fn price_line<'b>(&self, book: Option<&'b PriceBook>) -> Option<&'b Name> {
        Some(&book?.prices()[self.price?].price_line)
    }

    /// What the price book calls its window.
    pub fn window_name<'b>(&self, book: Option<&'b PriceBook>) -> Option<&'b Name> {
        Some(&book?.windows()[self.window?].name)
    }
}

/// The leaves of some cells.
pub(crate) struct Leaves<'a> {
    leaves: Vec<Leaf<'a>>,
    /// Leaf of each cell, [`NO_LEAF`] for one that isn't held.
    of_cell: Vec<u32>,
    /// What is shown of the time that no price matches.
    pub holes: Vec<Hole>,
}

impl<'a> Leaves<'a> {
    /// Sums the held cells into leaves, and prices each leaf once.
    pub fn of(input: &'a ReportInput, slots: &Slots, book: Option<&PriceBook>) -> Self {
        let mut sorter = Sorter::new(input, slots, book);
        let mut of_cell = Vec::with_capacity(input.cells.len());
        let (mut held, mut billed) = (CardTime::ZERO, CardTime::ZERO);
        for index in 0..input.cells.len() {
            let cell = &input.cells[index];
            of_cell.push(match cell.state {
                CardState::Held => {
                    held += cell.card_time;
                    billed += cell.billed_time;
                    sorter.add(index)
                }
                CardState::Down | CardState::Reserved | CardState::Free | CardState::Unaccounted => NO_LEAF,
            });
        }
        let mut leaves = sorter.leaves;
        for leaf in &mut leaves {
            if let (Some(book), Some(price)) = (book, leaf.price) {
                leaf.list_cost = Some(book.list_rate(price).charge(leaf.billed_time, book.currency()));
                leaf.cost = Some(book.rate(price, leaf.window).charge(leaf.billed_time, book.currency()));
            }
        }
        assert_eq!(
            leaves.iter().map(|leaf| leaf.card_time).sum::<CardTime>(),
            held,
            "LED-6: leaves hold what was held"
        );
        assert_eq!(
            leaves.iter().map(|leaf| leaf.billed_time).sum::<CardTime>(),
            billed,
            "LED-6: leaves bill what is billed"
        );
        let holes = sorter.holes.map_or_else(Vec::new, Holes::into_list);
        Self { leaves, of_cell, holes }
    }

    /// All of them, by number.
    pub fn all(&self) -> &[Leaf<'a>] {
        &self.leaves
    }

    /// The leaf's number of a cell, [`NO_LEAF`] for one that isn't held.
    pub fn of_cell(&self, cell: usize) -> u32 {
        self.of_cell[cell]
    }
}

/// What a price can depend on, as small numbers: place, the attempt's part, share, and which prices have begun.
type PriceKey = [u32; 4];

/// Owner, model, what is paid, and month with window.
type LeafKey = [u32; 4];

const UNKNOWN: u32 = u32::MAX;

/// Sorts cells into leaves by small numbers only; texts are looked at once for each new combination.
struct Sorter<'a, 'b> {
    input: &'a ReportInput,
    slots: &'b Slots,
    book: Option<&'b PriceBook>,
    leaves: Vec<Leaf<'a>>,
    numbers: FxHashMap<LeafKey, u32>,
    prices: FxHashMap<PriceKey, Match>,
    holes: Option<Holes>,
    /// Cluster, pool, model, MIG profile.
    places: Tuples<'a, 4>,
    models: Tuples<'a, 1>,
    owners: Tuples<'a, 3>,
    /// Queue, class, org, project.
    selected: Tuples<'a, 4>,
    shares: FxHashMap<CardShare, u32>,
    /// Owner and selected of each attempt, [`UNKNOWN`] until a cell points at it.
    attempts: Vec<[u32; 2]>,
    /// For each slot: which prices have begun, and its month with its window.
    times: Vec<[u32; 2]>,
}

#[derive(Clone, Copy)]
enum Match {
    Price(u32),
    Hole(u32),
    NoBook,
}

impl<'a, 'b> Sorter<'a, 'b> {
    fn new(input: &'a ReportInput, slots: &'b Slots, book: Option<&'b PriceBook>) -> Self {
        let mut starts: FxHashMap<_, u32> = FxHashMap::default();
        let mut months: FxHashMap<_, u32> = FxHashMap::default();
        let mut times = Vec::with_capacity(slots.all().len());
        for slot in slots.all() {
            let (next_start, next_month) = (starts.len() as u32, months.len() as u32);
            let start = *starts.entry(slot.effective_at).or_insert(next_start);
            times.push([start, *months.entry((slot.month, slot.window)).or_insert(next_month)]);
        }
        Self {
            input,
            slots,
            book,
            leaves: Vec::new(),
            numbers: FxHashMap::default(),
            prices: FxHashMap::default(),
            holes: book.map(Holes::new),
            places: Tuples::new(),
            models: Tuples::new(),
            owners: Tuples::new(),
            selected: Tuples::new(),
            shares: FxHashMap::default(),
            attempts: vec![[UNKNOWN; 2]; input.attempts.len()],
            times,
        }
    }

    /// The leaf of a held cell, which it is added to.
    fn add(&mut self, index: usize) -> u32 {
        let cell = &self.input.cells[index];
        let [owner, selected] = self.attempt(cell.attempt);
        let [start, month] = self.times[cell.slot as usize];
        let matched = match self.book {
            None => Match::NoBook,
            Some(book) => {
                let place = self.places.number([
                    Some(&cell.cluster),
                    cell.pool.as_ref(),
                    cell.model.as_ref(),
                    cell.mig_profile.as_ref(),
                ]);
                let share = self.share(cell.share);
                match self.prices.get(&[place, selected, share, start]) {
                    Some(matched) => *matched,
                    None => {
                        let matched = self.find(book, index, selected);
                        self.prices.insert([place, selected, share, start], matched);
                        matched
                    }
                }
            }
        };
        let slot = self.slots.slot(cell.slot);
        let price = match matched {
            Match::Price(price) => Some(price as usize),
            Match::NoBook => None,
            Match::Hole(hole) => {
                if slot.era == Era::Shown {
                    self.holes.as_mut().expect("a hole is in a book").add(hole, cell, slot.span);
                }
                None
            }
        };
        let model = self.models.number([cell.model.as_ref()]);
        let paid = price.map_or(0, |price| price as u32 + 1);
        let number = *self.numbers.entry([owner, model, paid, month]).or_insert_with(|| {
            self.leaves.push(Leaf {
                owner: self.owners.get(owner),
                model: cell.model.as_ref(),
                price,
                window: slot.window,
                month: slot.month,
                card_time: CardTime::ZERO,
                billed_time: CardTime::ZERO,
                list_cost: None,
                cost: None,
            });
            u32::try_from(self.leaves.len() - 1).expect("fewer leaves than cells")
        });
        let leaf = &mut self.leaves[number as usize];
        leaf.card_time += cell.card_time;
        leaf.billed_time += cell.billed_time;
        number
    }

    /// The price of a cell, by its texts.
    fn find(&mut self, book: &PriceBook, index: usize, selected: u32) -> Match {
        let cell = &self.input.cells[index];
        let [queue, class, org, project] = self.selected.get(selected).map(|name| name.map(|name| &**name));
        let share = cell.share.map_or_else(|| "1".to_owned(), |share| share.cards().normalize().to_string());
        let what = Priced {
            model: cell.model.as_deref(),
            mig_profile: cell.mig_profile.as_deref(),
            share: Some(&share),
            pool: cell.pool.as_deref(),
            queue,
            class,
            org,
            project,
            cluster: Some(&*cell.cluster),
        };
        let effective_at = self.slots.slot(cell.slot).effective_at;
        match effective_at.and_then(|at| book.find(&what, at)) {
            Some(price) => Match::Price(u32::try_from(price).expect("a price book is a text file")),
            None => Match::Hole(self.holes.as_mut().expect("there is a book").number(&what, effective_at)),
        }
    }

    /// Owner and selected part of an attempt. Held time always has one; none stands for time that a source gave without its job.
    fn attempt(&mut self, attempt: Option<u32>) -> [u32; 2] {
        let Some(index) = attempt.map(|attempt| attempt as usize) else {
            return [self.owners.number([None; 3]), self.selected.number([None; 4])];
        };
        if self.attempts[index][0] == UNKNOWN {
            let attempt = &self.input.attempts[index];
            let (org, project) = (attempt.org.as_ref(), attempt.project.as_ref());
            let owner = self.owners.number([org, project, attempt.user.as_ref()]);
            let selected = self.selected.number([attempt.queue.as_ref(), attempt.class.as_ref(), org, project]);
            self.attempts[index] = [owner, selected];
        }
        self.attempts[index]
    }

    fn share(&mut self, share: Option<CardShare>) -> u32 {
        let Some(share) = share else { return 0 };
        let next = u32::try_from(self.shares.len() + 1).expect("fewer shares than cells");
        *self.shares.entry(share).or_insert(next)
    }
}
