//! Numbers, texts, instants and readings as bytes, and back.

use super::{Malformed, Words};
use cardhour_domain::{AttemptKey, Gap, Interval, Name, Percent, Reading, Timestamp};
use std::collections::HashMap;

pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Small numbers of either sign become small ones: 0, −1, 1, −2 are 0, 1, 2, 3.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Writes fields one after the other.
pub(super) struct Writer<'a> {
    words: &'a mut Words,
    out: Vec<u8>,
    /// The instant that was written last.
    last_ms: i64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(words: &'a mut Words) -> Self {
        Self { words, out: Vec::new(), last_ms: 0 }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// Writes what `body` does, after its length.
    pub(super) fn with_length(&mut self, body: impl FnOnce(&mut Self)) {
        let before = std::mem::take(&mut self.out);
        body(self);
        let body = std::mem::replace(&mut self.out, before);
        self.number(body.len() as u64);
        self.out.extend_from_slice(&body);
    }

    pub(super) fn number(&mut self, number: u64) {
        put_number(&mut self.out, number);
    }

    pub(super) fn long(&mut self, long: i64) {
        self.number(zigzag(long));
    }

    pub(super) fn optional_long(&mut self, long: Option<i64>) {
        self.number(u64::from(long.is_some()));
        if let Some(long) = long {
            self.long(long);
        }
    }

    /// Sections are read apart from each other: none goes on from the instants of another.
    pub(super) fn begin_instants(&mut self) {
        self.last_ms = 0;
    }

    pub(super) fn word(&mut self, word: &str) {
        let number = self.words.number(word);
        self.number(number);
    }

    pub(super) fn optional_word(&mut self, word: Option<&str>) {
        let number = word.map_or(0, |word| self.words.number(word) + 1);
        self.number(number);
    }

    pub(super) fn instant(&mut self, at: Timestamp) {
        // Wrapping, as the reader does: no two instants are too far apart.
        self.long(at.unix_ms().wrapping_sub(self.last_ms));
        self.last_ms = at.unix_ms();
    }

    pub(super) fn during(&mut self, during: Interval) {
        self.instant(during.start());
        self.long(during.length_ms());
    }

    pub(super) fn reading<T>(&mut self, reading: Reading<T>, put: impl FnOnce(&mut Self, T)) {
        match reading {
            Reading::Seen(value) => {
                self.number(0);
                put(self, value);
            }
            Reading::Missing(gap) => self.optional_word(Some(gap.name())),
        }
    }

    pub(super) fn percent_reading(&mut self, reading: Reading<Percent>) {
        self.reading(reading, |out, percent| out.long(percent.thousandths().into()));
    }

    pub(super) fn long_reading(&mut self, reading: Reading<i64>) {
        self.reading(reading, Self::long);
    }
}

/// Reads fields one after the other.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    words: &'a mut Vec<Name>,
    keys: &'a mut HashMap<u64, AttemptKey>,
    last_ms: i64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(record: &'a [u8], words: &'a mut Vec<Name>, keys: &'a mut HashMap<u64, AttemptKey>) -> Self {
        Self { rest: record, words, keys, last_ms: 0 }
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn take_words(&mut self) -> Result<(), Malformed> {
        for _ in 0..self.number()? {
            let length = self.number()?;
            let text = std::str::from_utf8(self.bytes(length)?).map_err(|_| Malformed("a text that is none"))?;
            self.words.push(text.into());
        }
        Ok(())
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).ok().filter(|length| *length <= self.rest.len());
        let (bytes, rest) = self.rest.split_at(length.ok_or(Malformed("a length beyond its end"))?);
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn pass(&mut self, length: u64) -> Result<(), Malformed> {
        self.bytes(length).map(drop)
    }

    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.bytes(1)?[0];
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                break;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed("a number of more than 64 bits"))
    }

    pub(super) fn long(&mut self) -> Result<i64, Malformed> {
        self.number().map(unzigzag)
    }

    pub(super) fn optional_long(&mut self) -> Result<Option<i64>, Malformed> {
        match self.number()? {
            0 => Ok(None),
            1 => self.long().map(Some),
            _ => Err(Malformed("neither a number nor none")),
        }
    }

    pub(super) fn begin_instants(&mut self) {
        self.last_ms = 0;
    }

    fn word_of(&self, number: u64) -> Result<&Name, Malformed> {
        let word = usize::try_from(number).ok().and_then(|number| self.words.get(number));
        word.ok_or(Malformed("a word that wasn't said before"))
    }

    pub(super) fn word(&mut self) -> Result<Name, Malformed> {
        let number = self.number()?;
        self.word_of(number).cloned()
    }

    pub(super) fn optional_word(&mut self) -> Result<Option<Name>, Malformed> {
        match self.number()? {
            0 => Ok(None),
            number => self.word_of(number - 1).cloned().map(Some),
        }
    }

    /// One of ours by its name.
    pub(super) fn named<T>(&mut self, from_name: impl FnOnce(&str) -> Option<T>) -> Result<T, Malformed> {
        from_name(&self.word()?).ok_or(Malformed("a name that we don't know"))
    }

    fn key_of(&mut self, number: u64) -> Result<AttemptKey, Malformed> {
        if let Some(key) = self.keys.get(&number) {
            return Ok(key.clone());
        }
        let key = AttemptKey::from_stored(self.word_of(number)?);
        self.keys.insert(number, key.clone());
        Ok(key)
    }

    pub(super) fn key(&mut self) -> Result<AttemptKey, Malformed> {
        let number = self.number()?;
        self.key_of(number)
    }

    pub(super) fn optional_key(&mut self) -> Result<Option<AttemptKey>, Malformed> {
        match self.number()? {
            0 => Ok(None),
            number => self.key_of(number - 1).map(Some),
        }
    }

    pub(super) fn instant(&mut self) -> Result<Timestamp, Malformed> {
        self.last_ms = self.last_ms.wrapping_add(self.long()?);
        Ok(Timestamp::from_unix_ms(self.last_ms))
    }

    pub(super) fn during(&mut self) -> Result<Interval, Malformed> {
        let start = self.instant()?;
        let end = start.checked_add_ms(self.long()?);
        end.and_then(|end| Interval::new(start, end)).ok_or(Malformed("a stretch that ends before it starts"))
    }

    pub(super) fn reading<T>(
        &mut self,
        take: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Reading<T>, Malformed> {
        match self.number()? {
            0 => take(self).map(Reading::Seen),
            number => {
                let gap = Gap::from_name(self.word_of(number - 1)?);
                gap.map(Reading::Missing).ok_or(Malformed("a gap that we don't know"))
            }
        }
    }

    pub(super) fn percent_reading(&mut self) -> Result<Reading<Percent>, Malformed> {
        self.reading(|read| {
            let percent = i32::try_from(read.long()?).ok().and_then(Percent::from_thousandths);
            percent.ok_or(Malformed("a percent that isn't from 0 to 100"))
        })
    }

    pub(super) fn long_reading(&mut self) -> Result<Reading<i64>, Malformed> {
        self.reading(Self::long)
    }
}
