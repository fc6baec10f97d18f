//! Small numbers for texts that come again and again, so that a report adds up numbers and not names.
//!
//! Names are shared (`Arc`): the same allocation is the same text, so that most look-ups compare addresses. Equal texts in
//! different allocations get the same number, only slower. All of it lives as long as the input is borrowed, in which no address can
//! come to mean another text.

use cardhour_domain::Name;
use rustc_hash::FxHashMap;

/// Numbers for tuples of names.
pub(crate) struct Tuples<'a, const N: usize> {
    /// The last one asked for: neighbours are often alike.
    last: Option<([usize; N], u32)>,
    by_address: FxHashMap<[usize; N], u32>,
    by_text: FxHashMap<[Option<&'a str>; N], u32>,
    rows: Vec<[Option<&'a Name>; N]>,
}

impl<'a, const N: usize> Tuples<'a, N> {
    pub fn new() -> Self {
        Self { last: None, by_address: FxHashMap::default(), by_text: FxHashMap::default(), rows: Vec::new() }
    }

    /// The number of a tuple, from 0 up.
    pub fn number(&mut self, names: [Option<&'a Name>; N]) -> u32 {
        let address = names.map(|name| name.map_or(0, |name| name.as_ptr().addr()));
        if let Some((_, number)) = self.last.filter(|(last, _)| *last == address) {
            return number;
        }
        let number = *self.by_address.entry(address).or_insert_with(|| {
            *self.by_text.entry(names.map(|name| name.map(|name| &**name))).or_insert_with(|| {
                self.rows.push(names);
                u32::try_from(self.rows.len() - 1).expect("fewer tuples than cells")
            })
        });
        self.last = Some((address, number));
        number
    }

    /// All tuples, by number.
    pub fn all(&self) -> &[[Option<&'a Name>; N]] {
        &self.rows
    }
}

/// Numbers for lists of numbers.
#[derive(Default)]
pub(crate) struct Lists {
    numbers: FxHashMap<Box<[u32]>, u32>,
    rows: Vec<Box<[u32]>>,
}

impl Lists {
    /// The number of a list, from 0 up.
    pub fn number(&mut self, list: &[u32]) -> u32 {
        if let Some(number) = self.numbers.get(list) {
            return *number;
        }
        let number = u32::try_from(self.rows.len()).expect("fewer lists than cells");
        self.numbers.insert(list.into(), number);
        self.rows.push(list.into());
        number
    }

    /// The list of a number.
    pub fn get(&self, number: u32) -> &[u32] {
        &self.rows[number as usize]
    }
}
