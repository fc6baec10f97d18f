//! Rows of cells with nothing left to compute: what every writer of text takes.

use crate::error::Error;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use cardhour_books::table::{Kind, Table, Value};

/// Rows of cells under named columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// What it is; empty for none.
    pub title: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// Which columns hold numbers, and stand to the right.
    pub is_number: Vec<bool>,
    /// The rows, each as long as the header.
    pub rows: Vec<Vec<Cell>>,
    /// The sum below them.
    pub total: Option<Vec<Cell>>,
    /// Sentences below that.
    pub notes: Vec<String>,
}

/// One cell, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// None.
    Absent,
    /// Text.
    Text(String),
    /// A number that json has as a number.
    Number(String),
    /// A decimal: a string in json, so that no reader makes a float of it.
    Exact(String),
    /// Yes or no.
    Truth(bool),
}

impl Cell {
    /// Its text; empty where there is none.
    pub fn text(&self) -> &str {
        match self {
            Self::Absent => "",
            Self::Text(text) | Self::Number(text) | Self::Exact(text) => text,
            Self::Truth(true) => "true",
            Self::Truth(false) => "false",
        }
    }

    /// Its text as a spreadsheet takes it for one: behind an apostrophe where it would begin a formula. A whole number below zero, such as the card-time of a
    /// correction, begins none.
    pub fn without_formula(&self) -> String {
        let digits = self.text().strip_prefix('-').unwrap_or_default();
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match self {
            Self::Text(text) if !is_number && text.starts_with(['=', '+', '-', '@', '\t', '\r']) => format!("'{text}"),
            cell => cell.text().to_owned(),
        }
    }
}

impl Grid {
    /// All of a report, every digit.
    pub fn of_table(table: &Table) -> Self {
        Self {
            title: table.title.clone(),
            header: table.columns.iter().map(|column| column.name.clone()).collect(),
            is_number: table.columns.iter().map(|column| column.kind != Kind::Text).collect(),
            rows: table.rows.iter().map(|row| row.iter().map(cell).collect()).collect(),
            total: table.total.as_ref().map(|row| row.iter().map(cell).collect()),
            notes: table.notes.clone(),
        }
    }

    /// The same with no text that begins a formula.
    pub fn without_formulas(mut self) -> Self {
        for cell in self.rows.iter_mut().flatten().chain(self.total.iter_mut().flatten()) {
            if let Cell::Text(_) = cell {
                *cell = Cell::Text(cell.without_formula());
            }
        }
        self
    }

    /// An answer to SQL. Errors: a column type that has no text.
    pub fn of_batches(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Self, Error> {
        let mut rows = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
        let options = FormatOptions::default().with_null("");
        for batch in batches {
            let columns = batch
                .columns()
                .iter()
                .map(|column| Ok((column.as_ref(), ArrayFormatter::try_new(column.as_ref(), &options)?)))
                .collect::<Result<Vec<_>, Error>>()?;
            for i in 0..batch.num_rows() {
                rows.push(columns.iter().map(|(array, texts)| array_cell(*array, texts, i)).collect::<Result<_, _>>()?);
            }
        }
        Ok(Self {
            header: schema.fields().iter().map(|field| field.name().clone()).collect(),
            is_number: schema.fields().iter().map(|field| field.data_type().is_numeric()).collect(),
            rows,
            ..Self::default()
        })
    }
}

fn cell(value: &Value) -> Cell {
    match value {
        Value::Absent => Cell::Absent,
        Value::Text(text) => Cell::Text(text.to_string()),
        Value::Count(count) => Cell::Number(count.to_string()),
        Value::Decimal(decimal) => Cell::Exact(decimal.to_string()),
    }
}

fn array_cell(array: &dyn Array, texts: &ArrayFormatter<'_>, row: usize) -> Result<Cell, Error> {
    // An untyped null has no bits that say so.
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Ok(Cell::Absent);
    }
    let text = texts.value(row).try_to_string()?;
    Ok(match array.data_type() {
        DataType::Boolean => Cell::Truth(array.as_boolean().value(row)),
        kind if kind.is_integer() => Cell::Number(text),
        // What json has no number for stays a text: NaN, inf.
        kind if kind.is_floating() && text.parse::<f64>().is_ok_and(f64::is_finite) => Cell::Number(text),
        kind if kind.is_numeric() => Cell::Exact(text),
        _ => Cell::Text(text),
    })
}
