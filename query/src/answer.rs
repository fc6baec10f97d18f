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
    /// For people as facts and tables one below the other, in json as one object, in csv and Parquet as one table of all of it. Errors: as [`render::report`].
    pub fn render(&self, format: Format, style: Style) -> Result<Vec<u8>, Error> {
        match format {
            Format::Json => Ok(self.to_json()?.into_bytes()),
            Format::Csv | Format::Parquet => render::report(&self.flat(), format, style),
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

    /// All of it as one table, for programs that take one.
    ///
    /// Columns: `part`, then those of all parts in their order, each name once. A row a fact (`part` is `line`, with `what` and `value`) and a row of each part; a cell that its part
    /// hasn't got is absent.
    fn flat(&self) -> Table {
        let facts = self.facts_table();
        let parts = || {
            let line = std::iter::once(("line", &facts));
            line.chain(self.parts.iter().map(|(name, part)| (&**name, part)))
        };
        let mut columns = texts(&["part"]);
        for column in parts().flat_map(|(_, part)| &part.columns) {
            if columns.iter().all(|known| known.name != column.name) {
                columns.push(column.clone());
            }
        }
        let mut rows = Vec::new();
        for (name, part) in parts() {
            let place = |column: &Column| {
                let known = columns.iter().position(|known| known.name == column.name);
                known.expect("each column of a part is one of the whole")
            };
            let places: Vec<usize> = part.columns.iter().map(place).collect();
            for values in &part.rows {
                let mut row = vec![Value::Absent; columns.len()];
                row[0] = Value::Text(name.into());
                for (place, value) in places.iter().zip(values) {
                    row[*place] = value.clone();
                }
                rows.push(row);
            }
        }
        Table { title: facts.title.clone(), columns, rows, ..Table::default() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_in_csv_has_all_its_parts() {
        let text = |text: &str| Value::Text(text.into());
        let part = |columns: &[&str], rows: &[&[&str]]| Table {
            columns: texts(columns),
            rows: rows.iter().map(|row| row.iter().map(|value| text(value)).collect()).collect(),
            ..Table::default()
        };
        let trace = Trace {
            line: "project=vision".to_owned(),
            facts: vec![("cost".to_owned(), "30.00 CNY".to_owned())],
            parts: vec![
                ("charges".to_owned(), part(&["user", "price"], &[&["ann", "1"], &["bob", "1"]])),
                ("attempts".to_owned(), part(&["attempt_key", "user"], &[&["c/1", "ann"]])),
            ],
        };
        let csv = trace.render(Format::Csv, Style::default()).unwrap();
        assert_eq!(
            String::from_utf8(csv).unwrap().replace('\r', ""),
            "part,what,value,user,price,attempt_key\n\
             line,cost,30.00 CNY,,,\n\
             charges,,,ann,1,\n\
             charges,,,bob,1,\n\
             attempts,,,ann,,c/1\n"
        );
    }
}
