//! A bill that was exported as CSV, read back so that it can be held against the books.

use cardhour_books::line::Line;
use cardhour_books::report::Dimension;
use cardhour_domain::Name;
use rust_decimal::Decimal;

/// A bill as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedBill {
    /// The file's name, for faults.
    pub name: String,
    /// What it is grouped by: its columns before `line`.
    pub(super) by: Vec<Dimension>,
    /// The names of its columns.
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<ExportedRow>,
}

/// Why a file is no exported bill.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{name} is no bill that `cardhour report bill --format csv` wrote: {reason}")]
pub struct ExportedBillError {
    /// The file.
    pub name: String,
    /// What is wrong.
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExportedRow {
    /// Line of the file, counted from 1.
    pub number: u64,
    pub line: Line,
    pub values: Vec<Option<Name>>,
    /// In the order of [`FIGURES`]; none for a column that the file lacks.
    pub figures: [Option<Figure>; FIGURES.len()],
}

/// What a cell says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    Absent,
    Number(Decimal),
    Text(String),
}

/// Columns that are proven.
pub(super) const FIGURES: [&str; 6] =
    ["card_hours", "billed_card_hours", "standard_card_hours", "list_cost", "cost", "currency"];

impl ExportedBill {
    /// Reads the CSV of `report bill`. `name`: of the file. Errors: a file that isn't one; a figure that is changed is none.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, ExportedBillError> {
        let failed = |reason: String| ExportedBillError { name: name.to_owned(), reason };
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
        let header: Vec<String> =
            reader.headers().map_err(|e| failed(e.to_string()))?.iter().map(str::to_owned).collect();
        let column = |name: &str| header.iter().position(|column| column == name);
        let at_line = column("line").ok_or_else(|| failed("it has no column line".to_owned()))?;
        column("card_hours").ok_or_else(|| failed("it has no column card_hours".to_owned()))?;
        let by = header[..at_line].iter().map(|name| Dimension::parse(name)).collect::<Result<Vec<_>, _>>();
        let by = by.map_err(|e| failed(e.to_string()))?;
        let columns = FIGURES.map(column);
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| failed(e.to_string()))?;
            let number = record.position().map_or(0, csv::Position::line);
            let cell = |i: usize| record.get(i).unwrap_or_default();
            let line = Line::parse(cell(at_line)).map_err(|e| failed(format!("line {number}: {e}")))?;
            let values = (0..at_line).map(|i| (!cell(i).is_empty()).then(|| cell(i).into())).collect();
            let figures = columns.map(|column| column.map(|i| figure(cell(i))));
            rows.push(ExportedRow { number, line, values, figures });
        }
        Ok(Self { name: name.to_owned(), by, columns: header, rows })
    }
}

fn figure(text: &str) -> Figure {
    match text.parse::<Decimal>() {
        _ if text.is_empty() => Figure::Absent,
        Ok(number) => Figure::Number(number),
        Err(_) => Figure::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_before_line_say_what_a_bill_is_grouped_by() {
        let text = "org,month,line,jobs,card_hours,cost\nacme,2026-03,\"org=acme,month=2026-03\",2,1.500000,9.00\n,2026-03,\"org=~,month=2026-03\",1,0.5,\n";
        let bill = ExportedBill::parse("march.csv", text.as_bytes()).unwrap();
        assert_eq!(bill.by, [Dimension::Org, Dimension::Month]);
        assert_eq!(bill.rows[1].number, 3);
        assert_eq!(bill.rows[1].values, [None, Some("2026-03".into())]);
        assert_eq!(bill.rows[0].figures[0], Some(Figure::Number("1.5".parse().unwrap())));
        assert_eq!(bill.rows[0].figures[1], None, "a column that isn't there");
        assert_eq!(bill.rows[1].figures[4], Some(Figure::Absent));
        for text in ["", "a,b\n1,2\n", "team,line,card_hours\n", "line,card_hours\nwhat,1\n"] {
            assert!(ExportedBill::parse("x.csv", text.as_bytes()).is_err(), "{text}");
        }
    }
}
