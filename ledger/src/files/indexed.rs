//! Columns of a Parquet file that are indexed already: written as they are, each value once and the indexes in runs.
//!
//! Arrow's writer looks up every row's value again to index it, and has no dictionary for decimals in pages of version 1, which all readers
//! know. A row of usage has twenty columns, most of which say what they said in the row before: here a run costs what a row costs there.
//!
//! Source: Parquet's format, "Data Pages" and "Encodings": `PLAIN`, `RLE_DICTIONARY`, and RLE for which rows have a value.

mod hybrid;
#[cfg(test)]
mod tests;
mod values;

use arrow::array::{Array, ArrayRef, AsArray, RunArray};
use arrow::datatypes::{DataType, Int32Type};
use bytes::Bytes;
use hybrid::{bits, hybrid};
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use std::io::Write;
use values::Values;

/// Whether a column can be written here: it is indexed, or has no value at all.
pub(super) fn is_indexed(array: &dyn Array) -> bool {
    array.null_count() == array.len() || matches!(array.data_type(), DataType::RunEndEncoded(..))
}

/// The values that occur in an indexed column.
pub(super) fn values(array: &dyn Array) -> Option<&ArrayRef> {
    array.as_run_opt::<Int32Type>().map(|runs| runs.values().as_dictionary::<Int32Type>().values())
}

/// Writes the next column of a row group, in one page.
pub(super) fn write<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &ColumnDescPtr,
    array: &dyn Array,
) -> Result<(), ParquetError> {
    let runs = Runs::of(array);
    let used = runs.used();
    let nulls = runs.nulls();
    let values = match values(array) {
        Some(values) => Values::of(column, values, &used.keys, nulls)?,
        None => Values::None,
    };

    let mut page = Vec::with_capacity(64 + runs.iter().len() * 2);
    if column.max_def_level() > 0 {
        page.extend_from_slice(&[0; 4]);
        match nulls {
            0 => hybrid(std::iter::once((1, array.len())), 1, &mut page),
            _ => hybrid(runs.iter().map(|(key, n)| (u32::from(key.is_some()), n)), 1, &mut page),
        }
        let length = count(page.len() - 4)?;
        page[..4].copy_from_slice(&length.to_le_bytes());
    }
    let present = runs.iter().filter_map(|(key, n)| Some((used.place(key?), n)));
    let listed = match values {
        Values::None => None,
        Values::Booleans(values) => {
            let rows = present.flat_map(|(place, n)| std::iter::repeat_n(values.value(used.keys[place as usize]), n));
            bits(rows.map(u32::from), 1, &mut page);
            None
        }
        Values::Listed(listed) => {
            let width = used.keys.len().next_power_of_two().trailing_zeros();
            page.push(u8::try_from(width).expect("at most 32"));
            hybrid(present, width, &mut page);
            Some(listed)
        }
    };

    let rows = array.len();
    let encoding = if listed.is_some() { Encoding::RLE_DICTIONARY } else { Encoding::PLAIN };
    let mut chunk = Chunk::default();
    let mut metadata = ColumnChunkMetaData::builder(column.clone())
        .set_compression(Compression::UNCOMPRESSED)
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, encoding])
        .set_num_values(i64::try_from(rows).expect("fewer than 2⁶³ rows"));
    if let Some(listed) = listed {
        let (buf, num_values) = (Bytes::from(listed.plain), count(used.keys.len())?);
        let dictionary = Page::DictionaryPage { buf, num_values, encoding: Encoding::PLAIN, is_sorted: false };
        metadata = metadata.set_dictionary_page_offset(Some(chunk.put(dictionary)?));
        if let Some(statistics) = listed.statistics {
            metadata = metadata.set_statistics(statistics);
        }
    }
    let data = Page::DataPage {
        buf: Bytes::from(page),
        num_values: count(rows)?,
        encoding,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    metadata = metadata.set_data_page_offset(chunk.put(data)?);
    let metadata = metadata.set_total_compressed_size(chunk.size).set_total_uncompressed_size(chunk.size).build()?;
    let close = ColumnCloseResult {
        bytes_written: chunk.size.unsigned_abs(),
        rows_written: rows as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    group.append_column(&Bytes::from(chunk.bytes), close)
}

/// The pages of a column.
#[derive(Default)]
struct Chunk {
    bytes: Vec<u8>,
    size: i64,
}

impl Chunk {
    /// Puts a page behind the others. Gives where it begins.
    fn put(&mut self, page: Page) -> Result<i64, ParquetError> {
        let at = self.size;
        let length = page.buffer().len();
        self.bytes.reserve(length + 64);
        let mut sink = TrackedWrite::new(&mut self.bytes);
        SerializedPageWriter::new(&mut sink).write_page(CompressedPage::new(page, length))?;
        sink.flush()?;
        drop(sink);
        self.size = i64::try_from(self.bytes.len()).expect("fewer than 2⁶³ bytes");
        Ok(at)
    }
}

fn count(n: usize) -> Result<u32, ParquetError> {
    u32::try_from(n).map_err(|_| ParquetError::General(format!("{n} is too much for one page")))
}

/// The rows of a column.
enum Runs<'a> {
    /// So many, without a value.
    Nothing(usize),
    Of(&'a RunArray<Int32Type>),
}

impl<'a> Runs<'a> {
    fn of(array: &'a dyn Array) -> Self {
        array.as_run_opt().map_or(Self::Nothing(array.len()), Self::Of)
    }

    /// In runs, each with the key of its value.
    fn iter(&self) -> impl ExactSizeIterator<Item = (Option<usize>, usize)> {
        let (runs, from, to) = match self {
            Self::Nothing(_) => (None, 0, 1),
            Self::Of(array) if array.is_empty() => (None, 0, 0),
            Self::Of(array) => (Some(*array), array.get_start_physical_index(), array.get_end_physical_index() + 1),
        };
        let nothing = if let Self::Nothing(rows) = self { *rows } else { 0 };
        let mut before = 0;
        (from..to).map(move |at| {
            let Some(array) = runs else { return (None, nothing) };
            let ends = array.run_ends();
            let end = (ends.values()[at] as usize - ends.offset()).min(ends.len());
            let keys = array.values().as_dictionary::<Int32Type>().keys();
            let key = keys.is_valid(at).then(|| keys.value(at) as usize);
            (key, end - std::mem::replace(&mut before, end))
        })
    }

    /// How many rows have no value.
    fn nulls(&self) -> usize {
        match self {
            Self::Of(array) if array.values().null_count() == 0 => 0,
            _ => self.iter().filter(|(key, _)| key.is_none()).map(|(_, n)| n).sum(),
        }
    }

    /// Which keys occur.
    fn used(&self) -> Used {
        let Self::Of(array) = self else { return Used::default() };
        let known = array.values().as_dictionary::<Int32Type>().values().len();
        // A whole column was built of its values; a row group's part of it may have but a few of them.
        if array.run_ends().max_value() == array.len() {
            return Used { keys: (0..known).collect(), places: None };
        }
        let mut places = vec![None; known];
        let mut keys = Vec::new();
        for key in self.iter().filter_map(|(key, _)| key) {
            if places[key].is_none() {
                places[key] = Some(keys.len() as u32);
                keys.push(key);
            }
        }
        Used { keys, places: Some(places) }
    }
}

/// Keys that occur.
#[derive(Default)]
struct Used {
    keys: Vec<usize>,
    /// Where each stands among them; none where all occur.
    places: Option<Vec<Option<u32>>>,
}

impl Used {
    fn place(&self, key: usize) -> u32 {
        match &self.places {
            None => key as u32,
            Some(places) => places[key].expect("a key that occurs"),
        }
    }
}
