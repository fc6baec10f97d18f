//! Columns of card-time in a Parquet file: decimals of 38 digits, 16 bytes each, plain.
//!
//! A row of usage has seven of them, of which most are the same: nothing is known of how held time was used, and all of it is billed. Arrow's
//! writer makes a counted piece of memory of every value of each; here it is made once for columns that are equal.

use arrow::array::{Array, Decimal128Array};
use bytes::Bytes;
use parquet::data_type::{ByteArray, FixedLenByteArray, FixedLenByteArrayType};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;
use std::io::Write;

/// The card-time columns of one row group that were written so far.
#[derive(Default)]
pub(super) struct CardTimes {
    written: Vec<(Decimal128Array, Vec<FixedLenByteArray>)>,
}

impl CardTimes {
    /// Writes the next column of the group.
    pub(super) fn write<W: Write + Send>(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, W>,
        column: &Decimal128Array,
    ) -> Result<(), ParquetError> {
        let same = |known: &Decimal128Array| {
            known.values().inner().ptr_eq(column.values().inner()) && known.nulls() == column.nulls() || known == column
        };
        let at = self.written.iter().position(|(known, _)| same(known)).unwrap_or_else(|| {
            self.written.push((column.clone(), values(column)));
            self.written.len() - 1
        });
        let values = &self.written[at].1;
        let mut writer = group.next_column()?.ok_or_else(|| ParquetError::General("a column too many".to_owned()))?;
        let is_nullable = writer.typed::<FixedLenByteArrayType>().get_descriptor().max_def_level() > 0;
        let levels: Option<Vec<i16>> =
            is_nullable.then(|| (0..column.len()).map(|row| i16::from(column.is_valid(row))).collect());
        writer.typed::<FixedLenByteArrayType>().write_batch(values, levels.as_deref(), None)?;
        writer.close()
    }
}

/// The values that are there, as Parquet has decimals: big-endian, two's complement.
fn values(column: &Decimal128Array) -> Vec<FixedLenByteArray> {
    const WIDTH: usize = size_of::<i128>();
    static ZERO: [u8; WIDTH] = [0; WIDTH];
    let zero = FixedLenByteArray::from(ByteArray::from(Bytes::from_static(&ZERO)));
    let present = || column.iter().flatten();
    let mut bytes = Vec::with_capacity(column.len() * WIDTH);
    for value in present().filter(|value| *value != 0) {
        bytes.extend_from_slice(&value.to_be_bytes());
    }
    let mut rest = Bytes::from(bytes);
    let of = |value| match value {
        0 => zero.clone(),
        _ => FixedLenByteArray::from(ByteArray::from(rest.split_to(WIDTH))),
    };
    present().map(of).collect()
}
