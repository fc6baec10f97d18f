//! Entries as Apache Parquet, for programs.

use crate::error::Error;
use crate::render::parquet;
use cardhour_books::statement::{Statement, export_table};

/// All entries of a statement. Shape: texts Utf8, exactly as the site wrote them; amounts, quantities and hours Decimal128(38, 6). Errors: Arrow's own.
pub fn write(statement: &Statement) -> Result<Vec<u8>, Error> {
    let batch = parquet::batch(&export_table(std::slice::from_ref(statement)))?;
    parquet::write(&batch.schema(), &[batch])
}
