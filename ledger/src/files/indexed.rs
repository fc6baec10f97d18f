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

use arrow::array::{Array, ArrayRef, AsArray};
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
    let (runs, used) = runs(array);
    let nulls = runs.iter().filter(|(key, _)| key.is_none()).map(|(_, n)| n).sum();
    let values = match values(array) {
        Some(values) => Values::of(column, values, &used, nulls)?,
        None => Values::None,
    };

    let mut page = Vec::with_capacity(64 + runs.len() * 2);
    if column.max_def_level() > 0 {
        page.extend_from_slice(&[0; 4]);
        hybrid(runs.iter().map(|(key, n)| (u32::from(key.is_some()), *n)), 1, &mut page);
        let length = count(page.len() - 4)?;
        page[..4].copy_from_slice(&length.to_le_bytes());
    }
    let present = runs.into_iter().filter_map(|(key, n)| Some((key?, n)));
    let listed = match values {
        Values::None => None,
        Values::Booleans(values) => {
            let rows = present.flat_map(|(place, n)| std::iter::repeat_n(values.value(used[place as usize]), n));
            bits(rows.map(u32::from), 1, &mut page);
            None
        }
        Values::Listed(listed) => {
            let width = used.len().next_power_of_two().trailing_zeros();
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
        let (buf, num_values) = (Bytes::from(listed.plain), count(used.len())?);
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

/// Runs of rows, each with the place of its value among those that are used; and which those are.
fn runs(array: &dyn Array) -> (Vec<(Option<u32>, usize)>, Vec<usize>) {
    let Some(array) = array.as_run_opt::<Int32Type>() else { return (vec![(None, array.len())], Vec::new()) };
    let indexed = array.values().as_dictionary::<Int32Type>();
    let mut places = vec![None; indexed.values().len()];
    let mut used = Vec::with_capacity(places.len());
    let mut before = 0;
    let ends = array.run_ends().sliced_values().map(|end| end as usize);
    let keys = indexed.keys().iter().skip(array.get_start_physical_index());
    let runs = ends.zip(keys).map(|(end, key)| {
        let n = end - std::mem::replace(&mut before, end);
        let place = key.map(|key| {
            *places[key as usize].get_or_insert_with(|| {
                used.push(key as usize);
                used.len() as u32 - 1
            })
        });
        (place, n)
    });
    (runs.collect(), used)
}
