//! What the books answer, before anybody writes it down in a format.

use crate::error::Error;
use crate::render::{self, Format, Style};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use cardhour_books::table::{Column, Kind, Table, Value};

/// The answer to one query.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: Vec<RecordBatch>,
}

impl Rows {
    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// In `format`. Errors: as [`render::answer`].
    pub fn render(&self, format: Format, style: Style) -> Result<Vec<u8>, Error> {
        render::answer(&self.schema, &self.batches, format, style)
    }
}

/// Where a figure comes from (LED-8): what it is, and the rows beneath it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The line or entry that was asked for.
    pub line: String,
    /// What is known of it, in order: month, owner, model, price, cost.
    pub facts: Vec<(String, String)>,
    /// What it was made of, outermost first, each with its name: `charges`, `prices`, `attempts`.
    pub parts: Vec<(String, Table)>,
}

impl Trace {
    /// For people as facts and tables one below the other, in json as one object, in csv and Parquet the
    /// attempts alone. Errors: as [`render::report`].
    pub fn render(&self, format: Format, style: Style) -> Result<Vec<u8>, Error> {
        match format {
            Format::Json => Ok(self.to_json()?.into_bytes()),
            Format::Csv | Format::Parquet => match self.parts.iter().find(|(name, _)| name == "attempts") {
                Some((_, attempts)) => render::report(attempts, format, style),
                None => Ok(Vec::new()),
            },
            Format::Table | Format::Md | Format::Html => {
                let mut out = render::report(&self.facts_table(), format, style)?;
                for (_, part) in &self.parts {
                    out.push(b'\n');
                    out.extend(render::report(part, format, style)?);
                }
                Ok(out)
            }
        }
    }

    fn facts_table(&self) -> Table {
        let text = |text: &str| Value::Text(text.into());
        Table {
            title: format!("line {}", self.line),
            columns: texts(&["what", "value"]),
            rows: self.facts.iter().map(|(name, value)| vec![text(name), text(value)]).collect(),
            ..Table::default()
        }
    }

    fn to_json(&self) -> Result<String, Error> {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut out = format!("{{\"line\": {}", quoted(&self.line));
        for (name, value) in &self.facts {
            out.push_str(&format!(",\n{}: {}", quoted(name), quoted(value)));
        }
        for (name, part) in &self.parts {
            let rows = render::report(part, Format::Json, Style::default())?;
            out.push_str(&format!(",\n{}: {}", quoted(name), String::from_utf8_lossy(&rows).trim_end()));
        }
        out.push_str("}\n");
        Ok(out)
    }
}

/// Columns of text.
pub fn texts(names: &[&str]) -> Vec<Column> {
    names.iter().map(|name| Column { name: (*name).to_owned(), kind: Kind::Text }).collect()
}
