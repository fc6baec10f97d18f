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

/// A text in which nothing is a mark, a tag or the end of a cell. What is no mark where it stands is left as it is: an underscore inside of a word, a bracket that
/// begins no link.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before: Option<char> = None;
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let is_mark = match c {
            '\\' | '|' | '`' | '*' => true,
            '_' => !(is_letter(before) && is_letter(rest.chars().next())),
            // A link or an image says where it leads; a task's box stands at the beginning.
            '[' => before.is_none() || rest.contains("](") || rest.contains("]["),
            // A heading, or the number of a ticket.
            '#' => before.is_none() || rest.starts_with(|next: char| next.is_ascii_digit()),
            _ => false,
        };
        before = Some(c);
        if is_mark {
            out.push('\\');
            out.push(c);
            continue;
        }
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_would_be_a_mark_gets_a_backslash() {
        for plain in ["billed_card_hours of a_b", "nodes gpu-[01-04]", "C# and issue # 4", "a ]b"] {
            assert_eq!(escaped(plain), plain);
        }
        for (text, expected) in [
            ("_so_", "\\_so\\_"),
            ("[a](http://b)", "\\[a](http://b)"),
            ("[x] done", "\\[x] done"),
            ("# title", "\\# title"),
            ("see #12", "see \\#12"),
            ("a|b*c`", "a\\|b\\*c\\`"),
        ] {
            assert_eq!(escaped(text), expected);
        }
    }
}
