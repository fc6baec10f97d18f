//! The rows of a csv file with a header: columns by name, and every fault with its file, line and field.

use std::fmt;

/// How many faults are shown; a file of another kind has one in each row.
const SHOWN: usize = 20;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFault {
    /// The file, as it was named.
    pub file: String,
    /// Its line, counted from 1; the header's is 1.
    pub line: u64,
    /// The column, by the name in the header.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

/// All faults of a file, by line; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RowFaults(pub Vec<RowFault>);

impl fmt::Display for RowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}, {}: {}", self.file, self.line, self.field, self.reason)
    }
}

impl fmt::Display for RowFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}{fault}", if index > 0 { "\n" } else { "" })?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

/// One row, by the fields that were asked for.
pub(super) struct Row<'r> {
    file: &'r str,
    line: u64,
    fields: &'r [&'static str],
    columns: &'r [usize],
    record: &'r csv::ByteRecord,
    faults: &'r mut Vec<RowFault>,
}

impl Row<'_> {
    /// Says that a field is at fault.
    pub(super) fn fault(&mut self, field: usize, reason: impl Into<String>) {
        let (file, field) = (self.file.to_owned(), self.fields[field].to_owned());
        self.faults.push(RowFault { file, line: self.line, field, reason: reason.into() });
    }

    /// A text without the blanks around it, empty where the row has none. None, and a fault, where the row is too short or isn't UTF-8.
    pub(super) fn text(&mut self, field: usize) -> Option<String> {
        let Some(bytes) = self.record.get(self.columns[field]) else {
            self.fault(field, "the row ends before it");
            return None;
        };
        let text = std::str::from_utf8(bytes).map(|text| text.trim().to_owned());
        text.map_err(|_| self.fault(field, "not UTF-8")).ok()
    }

    /// A whole number from 0 to `most`. None, and a fault, where it isn't one.
    pub(super) fn whole(&mut self, field: usize, most: u64) -> Option<u64> {
        let text = self.text(field)?;
        let number = text.parse().ok().filter(|&number| number <= most);
        if number.is_none() {
            self.fault(field, format!("{text:?} is no whole number from 0 to {most}"));
        }
        number
    }
}

/// Gives each row to `each`; what it gives back is kept. Errors: a column that is missing, a file that is no csv, and whatever `each` finds at fault.
pub(super) fn read<T>(
    file: &str,
    bytes: &[u8],
    fields: &[&'static str],
    mut each: impl FnMut(&mut Row<'_>) -> Option<T>,
) -> Result<Vec<T>, RowFaults> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    let fault =
        |line, field: &str, reason: String| RowFault { file: file.to_owned(), line, field: field.to_owned(), reason };
    let header = reader.byte_headers().map_err(|error| RowFaults(vec![fault(1, "header", error.to_string())]))?;
    let column = |name: &str| header.iter().position(|found| found.trim_ascii() == name.as_bytes());
    let columns: Vec<Option<usize>> = fields.iter().map(|name| column(name)).collect();
    let mut faults: Vec<RowFault> = Vec::new();
    for (name, column) in fields.iter().zip(&columns) {
        if column.is_none() {
            let found: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
            faults.push(fault(1, name, format!("no such column; there are {:?}", found.join(","))));
        }
    }
    let Some(columns) = columns.into_iter().collect::<Option<Vec<usize>>>() else { return Err(RowFaults(faults)) };
    let mut kept = Vec::new();
    let mut record = csv::ByteRecord::new();
    loop {
        match reader.read_byte_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {
                let line = record.position().map_or(0, |position| line_of(bytes, position));
                kept.extend(each(&mut Row {
                    file,
                    line,
                    fields,
                    columns: &columns,
                    record: &record,
                    faults: &mut faults,
                }));
            }
            Err(error) => {
                faults.push(fault(error.position().map_or(0, csv::Position::line), "row", error.to_string()));
                break;
            }
        }
    }
    if faults.is_empty() { Ok(kept) } else { Err(RowFaults(faults)) }
}

/// The line of a record. The reader's position is before the blank lines that it passed over.
fn line_of(bytes: &[u8], position: &csv::Position) -> u64 {
    let rest = bytes.get(position.byte() as usize..).unwrap_or_default();
    let blank = rest.iter().take_while(|&&byte| matches!(byte, b'\r' | b'\n'));
    position.line() + blank.filter(|&&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(text: &str) -> Result<Vec<u64>, String> {
        read("a.csv", text.as_bytes(), &["x", "y"], |row| {
            let (x, y) = (row.whole(0, 9), row.whole(1, 9));
            Some(x? + y?)
        })
        .map_err(|faults| faults.to_string())
    }

    #[test]
    fn columns_go_by_name_and_others_are_passed_over() {
        assert_eq!(sums("\u{feff}y,z, x\n1,no,2\n\n3,, 4\n"), Ok(vec![3, 7]));
        assert_eq!(sums("x,y\n"), Ok(Vec::new()));
    }

    #[test]
    fn every_fault_names_its_file_line_and_field() {
        let faults = "a.csv, line 2, x: \"ten\" is no whole number from 0 to 9\n\
                      a.csv, line 2, y: \"10\" is no whole number from 0 to 9\n\
                      a.csv, line 5, y: the row ends before it";
        assert_eq!(sums("x,y\nten,10\n1,2\n\n3\n"), Err(faults.to_owned()));
        assert_eq!(sums("x,why\n1,2\n"), Err("a.csv, line 1, y: no such column; there are \"x,why\"".to_owned()));
        assert_eq!(sums(&format!("x,y\n{}", "a,1\n".repeat(22))).unwrap_err().lines().last(), Some("and 2 more"));
    }
}
