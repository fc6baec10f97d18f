//! Which row of a report each cell, attempt and capacity belongs to.
//!
//! A row is one tuple of values of the `--by` names, once for each [`Era`]: what a range cuts off is a row too, only one that
//! isn't shown, since the money of a leaf is spread over all of its pieces (LED-6).

use super::dimension::{Dimension, Source};
use super::input::ReportAttempt;
use super::names::Lists;
use crate::prices::PriceBook;
use crate::slots::{Era, Slot, Slots};
use crate::table::Value;
use cardhour_domain::{Currency, Name};
use rustc_hash::FxHashMap;

/// What an attempt without org, project and user shows in their place.
pub const UNOWNED: &str = "(unowned)";

/// A row's values, in the order of the `--by` names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    pub values: Vec<Value>,
    /// The currency of its money, where the book has several and the report tells of money; else none.
    pub currency: Option<Currency>,
    pub era: Era,
}

/// Where the card of a cell is.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place<'a> {
    pub cluster: Option<&'a Name>,
    pub pool: Option<&'a Name>,
    pub node: Option<&'a Name>,
    pub model: Option<&'a Name>,
}

/// Gives out row numbers, in order of first sight; [`Rows::finish`] says which is which in order of values.
pub(crate) struct Rows<'a> {
    by: Vec<Dimension>,
    texts: Vec<Texts<'a>>,
    /// For each source, the positions in `by` that it fills.
    positions: [Vec<usize>; 4],
    attempts: Lists,
    places: Lists,
    times: Lists,
    /// Group of each slot.
    of_slot: Vec<(u32, Part)>,
    book: Option<&'a PriceBook>,
    /// Those told apart, in the order of their rows; none where all money is of one.
    currencies: Vec<Currency>,
    numbers: FxHashMap<([u32; 4], Part), u32>,
    rows: Vec<(Vec<u32>, Part)>,
}

/// Which part of a tuple of values a row is: by the place of its currency among those told apart, and by its era.
type Part = (usize, Era);

impl<'a> Rows<'a> {
    /// `tells_money`: whether amounts of several currencies have to be kept apart.
    pub fn new(by: &[Dimension], slots: &'a Slots, book: Option<&'a PriceBook>, tells_money: bool) -> Self {
        let currencies = book.filter(|_| tells_money).map(PriceBook::currencies).filter(|all| all.len() > 1);
        let of = |source| (0..by.len()).filter(|&i| by[i].source() == source).collect::<Vec<_>>();
        let mut rows = Self {
            by: by.to_vec(),
            texts: by.iter().map(|_| Texts::new()).collect(),
            positions: [of(Source::Attempt), of(Source::Place), of(Source::Time), of(Source::Price)],
            attempts: Lists::default(),
            places: Lists::default(),
            times: Lists::default(),
            of_slot: Vec::with_capacity(slots.all().len()),
            book,
            currencies: currencies.unwrap_or_default(),
            numbers: FxHashMap::default(),
            rows: Vec::new(),
        };
        for slot in slots.all() {
            let group = rows.time(Some(slot));
            let currency = book.map(|book| book.currency_at(slot.effective_at));
            let place = rows.currencies.iter().position(|one| Some(*one) == currency).unwrap_or(0);
            rows.of_slot.push((group, (place, slot.era)));
        }
        rows
    }

    /// The group of an attempt.
    pub fn attempt(&mut self, attempt: &'a ReportAttempt) -> u32 {
        let mut list = Vec::with_capacity(self.positions[0].len());
        for &position in &self.positions[0] {
            let texts = &mut self.texts[position];
            list.push(match &self.by[position] {
                Dimension::Org | Dimension::Project | Dimension::User if attempt.is_unowned() => texts.number(UNOWNED),
                Dimension::Org => texts.name(attempt.org.as_ref()),
                Dimension::Project => texts.name(attempt.project.as_ref()),
                Dimension::User => texts.name(attempt.user.as_ref()),
                Dimension::Queue => texts.name(attempt.queue.as_ref()),
                Dimension::Class => texts.name(attempt.class.as_ref()),
                Dimension::State => texts.number(attempt.state.name()),
                Dimension::Label(label) => texts.name(attempt.labels.get(label)),
                other => unreachable!("{other} is not known from an attempt"),
            });
        }
        self.attempts.number(&list)
    }

    /// The group of time that nobody holds, or that is reserved for an owner.
    pub fn nobody(&mut self, owner: Option<[Option<&'a Name>; 3]>) -> u32 {
        let [org, project, user] = owner.unwrap_or_default();
        let mut list = Vec::with_capacity(self.positions[0].len());
        for &position in &self.positions[0] {
            let texts = &mut self.texts[position];
            list.push(match &self.by[position] {
                Dimension::Org => texts.name(org),
                Dimension::Project => texts.name(project),
                Dimension::User => texts.name(user),
                _ => ABSENT,
            });
        }
        self.attempts.number(&list)
    }

    /// The group of a place.
    pub fn place(&mut self, place: Place<'a>) -> u32 {
        let mut list = Vec::with_capacity(self.positions[1].len());
        for &position in &self.positions[1] {
            list.push(self.texts[position].name(match &self.by[position] {
                Dimension::Cluster => place.cluster,
                Dimension::Pool => place.pool,
                Dimension::Node => place.node,
                Dimension::Model => place.model,
                other => unreachable!("{other} is no place"),
            }));
        }
        self.places.number(&list)
    }

    fn time(&mut self, slot: Option<&Slot>) -> u32 {
        let mut list = Vec::with_capacity(self.positions[2].len());
        for &position in &self.positions[2] {
            let texts = &mut self.texts[position];
            list.push(match (&self.by[position], slot) {
                (_, None) => ABSENT,
                (Dimension::Day, Some(slot)) => texts.made(slot.view_day.map(|day| day.to_string())),
                (Dimension::Month, Some(slot)) => {
                    texts.made(Some(slot.view_month.unwrap_or(slot.month)).map(|month| month.to_string()))
                }
                (Dimension::Window, Some(slot)) => {
                    texts.name(slot.window.zip(self.book).map(|(window, book)| &book.windows()[window].name))
                }
                (other, Some(_)) => unreachable!("{other} is not known from time"),
            });
        }
        self.times.number(&list)
    }

    /// The row of an attempt's group, a place's, a slot and a price of the book.
    pub fn row(&mut self, attempt: u32, place: u32, slot: u32, price: Option<usize>) -> u32 {
        let (time, part) = self.of_slot[slot as usize];
        self.numbered([attempt, place, time, price.map_or(0, |price| price as u32 + 1)], part)
    }

    /// The row of an attempt that never held anything: without place, time or price.
    pub fn row_without_time(&mut self, attempt: u32, place: u32) -> u32 {
        let time = self.time(None);
        // Of several currencies that of today, the last one.
        let today = self.currencies.len().saturating_sub(1);
        self.numbered([attempt, place, time, 0], (today, Era::Shown))
    }

    fn numbered(&mut self, [attempt, place, time, price]: [u32; 4], part: Part) -> u32 {
        let price = if self.positions[3].is_empty() { 0 } else { price };
        if let Some(number) = self.numbers.get(&([attempt, place, time, price], part)) {
            return *number;
        }
        let mut values = vec![ABSENT; self.by.len()];
        for (positions, list) in
            self.positions.iter().zip([self.attempts.get(attempt), self.places.get(place), self.times.get(time)])
        {
            for (position, value) in positions.iter().zip(list) {
                values[*position] = *value;
            }
        }
        if let Some(&position) = self.positions[3].first() {
            let line =
                price.checked_sub(1).zip(self.book).map(|(price, book)| &book.prices()[price as usize].price_line);
            values[position] = self.texts[position].name(line);
        }
        let number = u32::try_from(self.rows.len()).expect("fewer rows than cells");
        self.rows.push((values, part));
        self.numbers.insert(([attempt, place, time, price], part), number);
        number
    }

    /// The rows in order of their values, and for each number given out the place of its row in that order.
    pub fn finish(self) -> (Vec<RowKey>, Vec<u32>) {
        let ranks: Vec<Vec<u32>> = self.texts.iter().map(Texts::ranks).collect();
        let rank = |row: usize| {
            let (values, part) = &self.rows[row];
            (values.iter().zip(&ranks).map(|(value, ranks)| ranks[*value as usize]).collect::<Vec<_>>(), *part)
        };
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_cached_key(|&row| rank(row));
        let mut places = vec![0; order.len()];
        let mut keys = Vec::with_capacity(order.len());
        for (place, &row) in (0..).zip(&order) {
            places[row] = place;
            let (values, (currency, era)) = &self.rows[row];
            let values = values.iter().zip(&self.texts).map(|(value, texts)| texts.value(*value)).collect();
            keys.push(RowKey { values, currency: self.currencies.get(*currency).copied(), era: *era });
        }
        (keys, places)
    }
}

/// The number of an absent value.
const ABSENT: u32 = 0;

/// Numbers for the values of one dimension.
struct Texts<'a> {
    by_address: FxHashMap<usize, u32>,
    by_text: FxHashMap<Name, u32>,
    /// From number 1 up.
    values: Vec<Name>,
    input: std::marker::PhantomData<&'a Name>,
}

impl<'a> Texts<'a> {
    fn new() -> Self {
        Self {
            by_address: FxHashMap::default(),
            by_text: FxHashMap::default(),
            values: Vec::new(),
            input: std::marker::PhantomData,
        }
    }

    /// Of a name of the input, which outlives this: its address comes to mean no other text.
    fn name(&mut self, name: Option<&'a Name>) -> u32 {
        let Some(name) = name else { return ABSENT };
        let address = name.as_ptr().addr();
        if let Some(number) = self.by_address.get(&address) {
            return *number;
        }
        let number = self.shared(name, || name.clone());
        self.by_address.insert(address, number);
        number
    }

    fn number(&mut self, text: &str) -> u32 {
        self.shared(text, || text.into())
    }

    fn made(&mut self, text: Option<String>) -> u32 {
        text.map_or(ABSENT, |text| self.number(&text))
    }

    fn shared(&mut self, text: &str, name: impl FnOnce() -> Name) -> u32 {
        if let Some(number) = self.by_text.get(text) {
            return *number;
        }
        let name = name();
        self.values.push(name.clone());
        let number = u32::try_from(self.values.len()).expect("fewer values than cells");
        self.by_text.insert(name, number);
        number
    }

    fn value(&self, number: u32) -> Value {
        number.checked_sub(1).map_or(Value::Absent, |number| Value::Text(self.values[number as usize].clone()))
    }

    /// For each number, its place in order of the values; absent is first.
    fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<usize> = (0..self.values.len()).collect();
        order.sort_by(|&a, &b| self.values[a].cmp(&self.values[b]));
        let mut ranks = vec![0; self.values.len() + 1];
        for (rank, value) in (1..).zip(order) {
            ranks[value + 1] = rank;
        }
        ranks
    }
}
