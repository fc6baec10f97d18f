//! One tick as bytes: what a journal has in a frame.
//!
//! ```text
//! record  := words section*
//! words   := count (length utf-8)*            texts that no record before had; each gets the next number of its journal, from 0
//! section := stream length count row*         stream: the number of its name; length: bytes of count and rows, so that a reader can pass by
//! ```
//!
//! Numbers are LEB128, signed ones zigzag. Every text is the number of a word, also the names of streams, gaps and sources: what is stable is
//! their names, which tables have as well. An instant is its distance from the one before in its section, from 0. A row's fields come in the order of
//! [`rows`]. Stability: version 1, pinned by the tests `a_watch_is_written_as_before` and `every_row_is_written_as_before`; a change of anything
//! here is a new version of [`super::journal`].

mod rows;
#[cfg(test)]
mod tests;
mod wire;

use cardhour_domain::columns::Rows;
use cardhour_domain::{AttemptKey, Name, Stream};
use std::collections::HashMap;
use wire::{Reader, Writer};

/// Bytes that no record has.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the record has {0}")]
pub(crate) struct Malformed(&'static str);

/// The texts that a journal's records have had so far, by number: on the writer's side.
#[derive(Default)]
pub(crate) struct Words {
    numbers: HashMap<Name, u64>,
    in_order: Vec<Name>,
}

impl Words {
    /// How many there are: where to come back to when a record isn't written after all.
    pub(crate) fn len(&self) -> usize {
        self.in_order.len()
    }

    /// Forgets all after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        for word in self.in_order.drain(len..) {
            self.numbers.remove(&word);
        }
    }

    fn number(&mut self, word: &str) -> u64 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = self.in_order.len() as u64;
        let word = Name::from(word);
        self.in_order.push(word.clone());
        self.numbers.insert(word, number);
        number
    }
}

/// The bytes of a tick. New texts are added to `words`.
pub(crate) fn encode<'a>(words: &mut Words, tick: impl IntoIterator<Item = &'a Rows>) -> Vec<u8> {
    let known = words.len();
    let mut body = Writer::new(words);
    for rows in tick {
        if !rows.is_empty() {
            body.section(rows);
        }
    }
    let body = body.into_bytes();
    let new = &words.in_order[known..];
    let mut record = Vec::with_capacity(body.len() + new.iter().map(|word| word.len() + 2).sum::<usize>() + 2);
    wire::put_number(&mut record, new.len() as u64);
    for word in new {
        wire::put_number(&mut record, word.len() as u64);
        record.extend_from_slice(word.as_bytes());
    }
    record.extend_from_slice(&body);
    record
}

/// Reads a journal's records, which must come in order: each may use the texts of those before.
#[derive(Default)]
pub(crate) struct Decoder {
    words: Vec<Name>,
    /// Keys of holders, by their word: rows of one holder share it.
    keys: HashMap<u64, AttemptKey>,
}

impl Decoder {
    /// The rows of `wanted` in a record, section by section; those of other streams are passed by.
    pub(crate) fn decode(&mut self, record: &[u8], wanted: Stream) -> Result<Vec<Rows>, Malformed> {
        let mut read = Reader::new(record, &mut self.words, &mut self.keys);
        read.take_words()?;
        let mut tick = Vec::new();
        while !read.is_at_end() {
            let name = read.word()?;
            let stream = Stream::ALL.into_iter().find(|stream| stream.name() == name.as_str());
            let stream = stream.ok_or(Malformed("a stream that we don't know"))?;
            let length = read.number()?;
            if stream == wanted {
                tick.push(read.section(stream, length)?);
            } else {
                read.pass(length)?;
            }
        }
        Ok(tick)
    }
}
