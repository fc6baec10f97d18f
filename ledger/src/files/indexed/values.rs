//! The values of an indexed column, as Parquet writes them one after the other.

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use parquet::errors::ParquetError;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

/// Texts longer than this are no bounds of a column. Unit: bytes.
const LONGEST_BOUND: usize = 64;

/// What rows have an index into.
pub(super) enum Values {
    /// No row has a value.
    None,
    /// Yes and no are as short as an index.
    Booleans(BooleanArray),
    /// Each once.
    Listed(Listed),
}

pub(super) struct Listed {
    pub(super) plain: Vec<u8>,
    /// The least and the greatest. None of decimals: nobody leaves out rows by a card-time.
    pub(super) statistics: Option<Statistics>,
}

impl Values {
    /// The values at the places `used`.
    pub(super) fn of(
        column: &ColumnDescPtr,
        values: &dyn Array,
        used: &[usize],
        nulls: usize,
    ) -> Result<Self, ParquetError> {
        let nulls = Some(nulls as u64);
        let numbers = |numbers: &[i64]| {
            let used = || used.iter().map(|&i| numbers[i]);
            let plain = used().flat_map(i64::to_le_bytes).collect();
            Listed { plain, statistics: Some(Statistics::int64(used().min(), used().max(), None, nulls, false)) }
        };
        Ok(Self::Listed(match values.data_type() {
            _ if used.is_empty() => return Ok(Self::None),
            DataType::Boolean => return Ok(Self::Booleans(values.as_boolean().clone())),
            DataType::Utf8 => {
                let texts = values.as_string::<i32>();
                let used = || used.iter().map(|&i| texts.value(i));
                let mut plain = Vec::with_capacity(texts.value_data().len() + texts.len() * 4);
                for text in used() {
                    plain.extend_from_slice(&super::count(text.len())?.to_le_bytes());
                    plain.extend_from_slice(text.as_bytes());
                }
                let bounds = used().min().zip(used().max());
                let short = bounds.filter(|(least, most)| least.len().max(most.len()) <= LONGEST_BOUND);
                let (least, most) = short.map(|(least, most)| (least.into(), most.into())).unzip();
                Listed { plain, statistics: Some(Statistics::byte_array(least, most, None, nulls, false)) }
            }
            DataType::Int64 => numbers(values.as_primitive::<Int64Type>().values()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                numbers(values.as_primitive::<TimestampMicrosecondType>().values())
            }
            DataType::Decimal128(..) => {
                let width = usize::try_from(column.type_length()).expect("decimals have a width");
                let all = values.as_primitive::<Decimal128Type>().values();
                let big_endian = |&i: &usize| all[i].to_be_bytes().into_iter().skip(size_of::<i128>() - width);
                Listed { plain: used.iter().flat_map(big_endian).collect(), statistics: None }
            }
            other => return Err(ParquetError::NYI(format!("indexed {other}"))),
        }))
    }
}
