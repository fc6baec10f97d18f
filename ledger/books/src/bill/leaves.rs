//! Which leaf of the bill each bundle of cells belongs to, and what each leaf costs.

use super::holes::{Hole, Holes};
use crate::prices::{PriceBook, Priced};
use crate::report::ReportAttempt;
use crate::report::bundles::{Bundle, Bundles};
use crate::report::names::Tuples;
use crate::slots::{Era, Slots};
use cardhour_domain::{CardState, CardTime, Money, Month, Name};
use rustc_hash::FxHashMap;

/// In place of a leaf's number: it isn't held, so nobody pays for it here.
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
    /// What is paid for: billed time of what is held, all of what isn't.
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

/// The leaves of some bundles of cells.
pub(crate) struct Leaves<'a> {
    leaves: Vec<Leaf<'a>>,
    /// Leaf of each bundle, [`NO_LEAF`] for one that isn't held.
    pub of_bundle: Vec<u32>,
    /// What is shown of the time that no price matches.
    pub holes: Vec<Hole>,
}

impl<'a> Leaves<'a> {
    /// Sums what is held into leaves, and prices each leaf once.
    pub fn of(bundles: &Bundles<'a>, slots: &Slots, book: Option<&PriceBook>) -> Self {
        let owned = |bundle: &Bundle| match bundle.state {
            CardState::Held => bundles.class(bundle).attempt.map(Owned::by_attempt).or(Some(Owned::default())),
            CardState::Down | CardState::Reserved | CardState::Free | CardState::Unaccounted => None,
        };
        Self::by(bundles, slots, book, owned, |bundle| bundle.billed_time)
    }

    /// Sums what nobody held, in the states and for the owners that `owned` names, and prices it as if it were billed.
    pub fn unheld(
        bundles: &Bundles<'a>,
        slots: &Slots,
        book: &PriceBook,
        owned: impl Fn(&Bundle) -> Option<Owned<'a>>,
    ) -> Self {
        Self::by(bundles, slots, Some(book), owned, |bundle| bundle.card_time)
    }

    fn by(
        bundles: &Bundles<'a>,
        slots: &Slots,
        book: Option<&PriceBook>,
        owned: impl Fn(&Bundle) -> Option<Owned<'a>>,
        billed_time: impl Fn(&Bundle) -> CardTime,
    ) -> Self {
        let mut sorter = Sorter::new(bundles, slots, book);
        let mut of_bundle = Vec::with_capacity(bundles.all.len());
        let (mut held, mut billed) = (CardTime::ZERO, CardTime::ZERO);
        for bundle in &bundles.all {
            of_bundle.push(match owned(bundle) {
                Some(owned) => {
                    held += bundle.card_time;
                    billed += billed_time(bundle);
                    sorter.add(bundle, owned, billed_time(bundle))
                }
                None => NO_LEAF,
            });
        }
        let mut leaves = sorter.leaves;
        for leaf in &mut leaves {
            if let (Some(book), Some(price)) = (book, leaf.price) {
                let currency = book.currency_of(price);
                leaf.list_cost = Some(book.list_rate(price).charge(leaf.billed_time, currency));
                leaf.cost = Some(book.rate(price, leaf.window).charge(leaf.billed_time, currency));
            }
        }
        let sum = |of: fn(&Leaf<'_>) -> CardTime| leaves.iter().map(of).sum::<CardTime>();
        assert_eq!(sum(|leaf| leaf.card_time), held, "LED-6: leaves hold what was held");
        assert_eq!(sum(|leaf| leaf.billed_time), billed, "LED-6: leaves bill what is billed");
        let holes = sorter.holes.map_or_else(Vec::new, Holes::into_list);
        Self { leaves, of_bundle, holes }
    }

    /// All of them, by number.
    pub fn all(&self) -> &[Leaf<'a>] {
        &self.leaves
    }
}

/// Who pays for a bundle, and what else of its holder prices look at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Owned<'a> {
    /// Org, project, user.
    pub owner: [Option<&'a Name>; 3],
    pub queue: Option<&'a Name>,
    pub class: Option<&'a Name>,
}

impl<'a> Owned<'a> {
    fn by_attempt(attempt: &'a ReportAttempt) -> Self {
        let ReportAttempt { org, project, user, queue, class, .. } = attempt;
        Self { owner: [org.as_ref(), project.as_ref(), user.as_ref()], queue: queue.as_ref(), class: class.as_ref() }
    }
}

/// What a price can depend on: place, owner with queue and class, share, and which prices have begun.
type PriceKey = [u32; 4];

/// Owner, model, what is paid, and month with window.
type LeafKey = [u32; 4];

/// Sorts bundles into leaves by small numbers only; texts are looked at once for each new combination.
struct Sorter<'a, 'b> {
    bundles: &'b Bundles<'a>,
    slots: &'b Slots,
    book: Option<&'b PriceBook>,
    leaves: Vec<Leaf<'a>>,
    numbers: FxHashMap<LeafKey, u32>,
    prices: FxHashMap<PriceKey, Match>,
    holes: Option<Holes>,
    /// Org, project, queue, class: what prices look at of a holder.
    owned: Tuples<'a, 4>,
    owners: Tuples<'a, 3>,
    /// For each place, the number of its model.
    models: Vec<u32>,
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
    fn new(bundles: &'b Bundles<'a>, slots: &'b Slots, book: Option<&'b PriceBook>) -> Self {
        let mut starts: FxHashMap<_, u32> = FxHashMap::default();
        let mut months: FxHashMap<_, u32> = FxHashMap::default();
        let mut times = Vec::with_capacity(slots.all().len());
        for slot in slots.all() {
            let (next_start, next_month) = (starts.len() as u32, months.len() as u32);
            let start = *starts.entry(slot.effective_at).or_insert(next_start);
            times.push([start, *months.entry((slot.month, slot.window)).or_insert(next_month)]);
        }
        let mut models: Tuples<'a, 1> = Tuples::new();
        let models = bundles.places.iter().map(|place| models.number([place.model])).collect();
        Self {
            bundles,
            slots,
            book,
            leaves: Vec::new(),
            numbers: FxHashMap::default(),
            prices: FxHashMap::default(),
            holes: book.map(Holes::new),
            owned: Tuples::new(),
            owners: Tuples::new(),
            models,
            times,
        }
    }

    /// The leaf of a bundle, to which it is added.
    fn add(&mut self, bundle: &Bundle, owned: Owned<'a>, billed_time: CardTime) -> u32 {
        let [start, month] = self.times[bundle.slot as usize];
        let [org, project, _] = owned.owner;
        let holder = self.owned.number([org, project, owned.queue, owned.class]);
        let key = [bundle.place, holder, bundle.share, start];
        let matched = match self.prices.get(&key) {
            Some(matched) => *matched,
            None => {
                let matched = self.find(bundle, owned);
                self.prices.insert(key, matched);
                matched
            }
        };
        let slot = self.slots.slot(bundle.slot);
        let price = match matched {
            Match::Price(price) => Some(price as usize),
            Match::NoBook => None,
            Match::Hole(hole) => {
                if slot.era == Era::Shown {
                    self.holes.as_mut().expect("a hole is in a book").add(hole, billed_time, slot.span);
                }
                None
            }
        };
        let paid = price.map_or(0, |price| price as u32 + 1);
        let key = [self.owners.number(owned.owner), self.models[bundle.place as usize], paid, month];
        let number = *self.numbers.entry(key).or_insert_with(|| {
            self.leaves.push(Leaf {
                owner: owned.owner,
                model: self.bundles.place(bundle).model,
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
        leaf.card_time += bundle.card_time;
        leaf.billed_time += billed_time;
        number
    }

    /// The price of a bundle, by its texts.
    fn find(&mut self, bundle: &Bundle, owned: Owned<'a>) -> Match {
        let Some(book) = self.book else { return Match::NoBook };
        let place = self.bundles.place(bundle);
        let share = self.bundles.share(bundle);
        let share = share.map_or_else(|| "1".to_owned(), |share| share.cards().normalize().to_string());
        let text = |name: Option<&'a Name>| name.map(|name| &**name);
        let what = Priced {
            model: text(place.model),
            mig_profile: text(place.mig_profile),
            share: Some(&share),
            pool: text(place.pool),
            queue: text(owned.queue),
            class: text(owned.class),
            org: text(owned.owner[0]),
            project: text(owned.owner[1]),
            cluster: Some(place.cluster),
        };
        let effective_at = self.slots.slot(bundle.slot).effective_at;
        match effective_at.and_then(|at| book.find(&what, at)) {
            Some(price) => Match::Price(u32::try_from(price).expect("a price book is a text file")),
            None if book.is_left_out(effective_at) => Match::NoBook,
            None => Match::Hole(self.holes.as_mut().expect("there is a book").number(&what, effective_at)),
        }
    }
}
