//! An array of objects, one a line, keys in the order of the columns.

use super::{Cell, Grid};

/// All rows. Decimals are strings, counts numbers, absent is null.
pub fn write(grid: &Grid) -> String {
    let keys: Vec<String> = grid.header.iter().map(|name| quoted(name)).collect();
    let mut out = String::from("[");
    for (i, row) in grid.rows.iter().enumerate() {
        out.push_str(if i == 0 { "\n" } else { ",\n" });
        out.push_str(&object(&keys, row));
    }
    out.push_str(if grid.rows.is_empty() { "]\n" } else { "\n]\n" });
    out
}

fn object(keys: &[String], row: &[Cell]) -> String {
    let mut out = String::from("{");
    for (i, (key, cell)) in keys.iter().zip(row).enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        out.push_str(key);
        out.push_str(": ");
        match cell {
            Cell::Absent => out.push_str("null"),
            Cell::Text(text) | Cell::Exact(text) => out.push_str(&quoted(text)),
            Cell::Number(text) => out.push_str(text),
            Cell::Truth(_) => out.push_str(cell.text()),
        }
    }
    out.push('}');
    out
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
