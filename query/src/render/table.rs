//! Columns for a terminal.

use super::{Cell, Grid, Style};
use comfy_table::{Attribute, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

/// Title, columns, sum and notes. Plain text; bold and dim where the style has colours.
///
/// Where it is wider than the terminal, texts are folded; numbers never are.
pub fn write(grid: &Grid, style: Style) -> String {
    let mut out = String::new();
    if !grid.title.is_empty() {
        out.push_str(&paint(&grid.title, "1", style));
        out.push('\n');
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    match style.width {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    if style.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    let widths = widths(grid);
    table.set_header(grid.header.iter().zip(&grid.is_number).zip(&widths).map(|((name, is_number), width)| {
        comfy_table::Cell::new(folded(name, *width)).add_attribute(Attribute::Bold).set_alignment(side(*is_number))
    }));
    table.add_row(rule(&widths));
    for row in &grid.rows {
        table.add_row(row.iter().zip(&grid.is_number).map(|(cell, is_number)| shown(cell, *is_number)));
    }
    if let Some(total) = &grid.total {
        table.add_row(rule(&widths));
        table.add_row(
            total
                .iter()
                .zip(&grid.is_number)
                .map(|(cell, is_number)| shown(cell, *is_number).add_attribute(Attribute::Bold)),
        );
    }
    for (column, is_number) in table.column_iter_mut().zip(&grid.is_number) {
        column.set_padding((0, 2));
        if *is_number {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    for line in table.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if grid.rows.is_empty() {
        out.push_str("(no rows)\n");
    }
    if !grid.notes.is_empty() {
        out.push('\n');
    }
    for note in &grid.notes {
        out.push_str(&paint(note, "2", style));
        out.push('\n');
    }
    out
}

fn shown(cell: &Cell, is_number: bool) -> comfy_table::Cell {
    comfy_table::Cell::new(visible(cell.text())).set_alignment(side(is_number))
}

const fn side(is_number: bool) -> CellAlignment {
    if is_number { CellAlignment::Right } else { CellAlignment::Left }
}

/// A text without what would move a terminal's cursor or colours: names come from outside.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// How wide each column is: its widest value, and the longest word of its name.
fn widths(grid: &Grid) -> Vec<usize> {
    let rows = || grid.rows.iter().chain(&grid.total);
    (0..grid.header.len())
        .map(|i| {
            let value = rows().map(|row| width(&visible(row[i].text()))).max().unwrap_or(0);
            let word = grid.header[i].split(' ').map(width).max().unwrap_or(0);
            value.max(word)
        })
        .collect()
}

fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// A name broken between words into lines no longer than `most`.
fn folded(name: &str, most: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

fn rule(widths: &[usize]) -> Vec<comfy_table::Cell> {
    widths.iter().map(|width| comfy_table::Cell::new("─".repeat(*width))).collect()
}

fn paint(text: &str, code: &str, style: Style) -> String {
    let text = visible(text);
    if style.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text }
}
