//! A table for a wiki or a ticket (GitHub's dialect).

use super::{Cell, Grid};

/// Title, table, sum in bold, notes as a list.
pub fn write(grid: &Grid) -> String {
    let mut out = String::new();
    if !grid.title.is_empty() {
        out.push_str(&format!("### {}\n\n", escaped(&grid.title)));
    }
    let mut line = |cells: Vec<String>| out.push_str(&format!("| {} |\n", cells.join(" | ")));
    line(grid.header.iter().map(|name| escaped(name)).collect());
    line(grid.is_number.iter().map(|is_number| if *is_number { "---:" } else { "---" }.to_owned()).collect());
    for row in &grid.rows {
        line(row.iter().map(|cell| escaped(&cell.without_formula())).collect());
    }
    if let Some(total) = &grid.total {
        line(total.iter().map(bold).collect());
    }
    if !grid.notes.is_empty() {
        out.push('\n');
    }
    for note in &grid.notes {
        out.push_str(&format!("- {}\n", escaped(note)));
    }
    out
}

fn bold(cell: &Cell) -> String {
    match cell {
        Cell::Absent => String::new(),
        cell => format!("**{}**", escaped(cell.text())),
    }
}

/// A text in which nothing is a mark, a tag or the end of a cell.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '#' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
