//! A dataset as comma-separated values.

use super::{Dataset, Kind, Value};

impl<R> Dataset<R> {
    /// RFC 4180 with a header, lines end in LF, what is absent is empty.
    ///
    /// A text that a spreadsheet would take for a formula stands behind an apostrophe, for billing data is opened in spreadsheets: FOCUS lets a name be
    /// any text. Ids never need it, as they begin with what they are of, so files still join by them; Parquet, which no spreadsheet evaluates, has every
    /// text as the site wrote it.
    pub fn csv(&self) -> Vec<u8> {
        let mut out = ::csv::WriterBuilder::new().terminator(::csv::Terminator::Any(b'\n')).from_writer(Vec::new());
        let written = out.write_record(self.columns.iter().map(|column| column.name)).and_then(|()| {
            self.rows.iter().try_for_each(|row| {
                out.write_record(self.columns.iter().map(|column| harmless(column.kind, &(column.value)(row))))
            })
        });
        written.expect("records as long as the header, into memory");
        out.into_inner().expect("into memory")
    }
}

/// Its text, with nothing in it that a spreadsheet would run. A number below zero begins with `-` and is one.
fn harmless(kind: Kind, value: &Value) -> String {
    let text = value.written().unwrap_or_default();
    let runs = kind == Kind::Text && text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if runs { format!("'{text}") } else { text }
}
