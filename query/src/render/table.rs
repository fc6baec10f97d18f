//! Columns for a terminal.

use super::{Cell, Grid, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Between two columns.
const GAP: usize = 2;

/// No text is folded narrower than this.
const NARROWEST_TEXT: usize = 14;

/// Columns that a terminal too narrow for all of them goes without, the first first; named below, and in every other format.
const SPARED_FIRST: [&str; 9] = [
    "use coverage",
    "attempts",
    "asked card hours",
    "list cost",
    "standard card hours",
    "over capacity card hours",
    "failed card hours",
    "unseen card hours",
    "billed card hours",
];

/// Title, columns, sum and notes. Plain text; bold and dim where the style has colours.
///
/// Where it is wider than the terminal, texts are folded, then columns of [`SPARED_FIRST`] are left out; numbers are never folded.
pub fn write(grid: &Grid, style: Style) -> String {
    let mut out = String::new();
    let mut line = |text: &str, code: Option<&str>| {
        let text = text.trim_end();
        match code.filter(|_| style.color && !text.is_empty()) {
            Some(code) => out.push_str(&format!("\u{1b}[{code}m{text}\u{1b}[0m")),
            None => out.push_str(text),
        }
        out.push('\n');
    };
    if !grid.title.is_empty() {
        line(&visible(&grid.title), Some("1"));
    }
    let layout = Layout::of(grid, style.width.map(usize::from));
    let rule: Vec<String> = layout.columns.iter().map(|column| "─".repeat(column.width)).collect();
    let rule = rule.join(&" ".repeat(GAP));
    for text in layout.header(grid) {
        line(&text, Some("1"));
    }
    line(&rule, None);
    for row in &grid.rows {
        layout.row(row).iter().for_each(|text| line(text, None));
    }
    if let Some(total) = &grid.total {
        line(&rule, None);
        layout.row(total).iter().for_each(|text| line(text, Some("1")));
    }
    if grid.rows.is_empty() {
        line("(no rows)", None);
    }
    let spared: Vec<&str> = layout.spared.iter().map(|i| grid.header[*i].as_str()).collect();
    let spared = (!spared.is_empty()).then(|| format!("no room here for: {}", spared.join(", ")));
    if !grid.notes.is_empty() || spared.is_some() {
        line("", None);
    }
    for note in grid.notes.iter().chain(&spared) {
        line(&visible(note), Some("2"));
    }
    out
}

/// Which columns are shown, and how wide.
struct Layout {
    columns: Vec<Column>,
    /// Indexes of those that are left out.
    spared: Vec<usize>,
}

struct Column {
    index: usize,
    width: usize,
    is_number: bool,
}

impl Layout {
    fn of(grid: &Grid, most: Option<usize>) -> Self {
        let mut spared = Vec::new();
        for name in [None].into_iter().chain(SPARED_FIRST.iter().map(Some)) {
            if let Some(name) = name {
                match grid.header.iter().position(|header| header.starts_with(name)) {
                    Some(index) => spared.push(index),
                    None => continue,
                }
            }
            let mut columns: Vec<Column> = (0..grid.header.len())
                .filter(|index| !spared.contains(index))
                .map(|index| Column { index, width: natural_width(grid, index), is_number: grid.is_number[index] })
                .collect();
            if fold_texts(&mut columns, most) {
                return Self { columns, spared };
            }
        }
        // Nothing helps: all of it, and the terminal breaks the lines.
        let columns = (0..grid.header.len())
            .map(|index| Column { index, width: natural_width(grid, index), is_number: grid.is_number[index] })
            .collect();
        Self { columns, spared: Vec::new() }
    }

    fn header(&self, grid: &Grid) -> Vec<String> {
        let names: Vec<Vec<String>> =
            self.columns.iter().map(|column| folded(&grid.header[column.index], column.width)).collect();
        let height = names.iter().map(Vec::len).max().unwrap_or(0);
        // Names stand on the rule, however many lines they have.
        let from_below = |name: &Vec<String>, i: usize| (i + name.len()).checked_sub(height).map(|i| name[i].clone());
        (0..height).map(|i| self.line(|j| from_below(&names[j], i).unwrap_or_default())).collect()
    }

    fn row(&self, row: &[Cell]) -> Vec<String> {
        let cells: Vec<Vec<String>> = self
            .columns
            .iter()
            .map(|column| {
                let text = visible(row[column.index].text());
                if column.is_number { vec![text] } else { folded(&text, column.width) }
            })
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
        (0..height).map(|i| self.line(|j| cells[j].get(i).cloned().unwrap_or_default())).collect()
    }

    fn line(&self, text: impl Fn(usize) -> String) -> String {
        let mut out = String::new();
        for (j, column) in self.columns.iter().enumerate() {
            let text = text(j);
            let room = " ".repeat(column.width.saturating_sub(text.width()));
            if j > 0 {
                out.push_str(&" ".repeat(GAP));
            }
            if column.is_number {
                out.push_str(&room);
                out.push_str(&text);
            } else {
                out.push_str(&text);
                out.push_str(&room);
            }
        }
        out
    }
}

/// As wide as its widest value and the longest word of its name.
fn natural_width(grid: &Grid, column: usize) -> usize {
    let values = grid.rows.iter().chain(&grid.total).map(|row| visible(row[column].text()).width()).max().unwrap_or(0);
    let word = grid.header[column].split(' ').map(UnicodeWidthStr::width).max().unwrap_or(0);
    values.max(word)
}

/// Makes the widest texts narrower until all fits. Whether it does.
fn fold_texts(columns: &mut [Column], most: Option<usize>) -> bool {
    let Some(most) = most else { return true };
    let gaps = GAP * columns.len().saturating_sub(1);
    while columns.iter().map(|column| column.width).sum::<usize>() + gaps > most {
        let widest = columns.iter_mut().filter(|column| !column.is_number).max_by_key(|column| column.width);
        match widest.filter(|column| column.width > NARROWEST_TEXT) {
            Some(column) => column.width -= 1,
            None => return false,
        }
    }
    true
}

/// A text in lines no wider than `most`: broken between words, else behind a `-` or the like, else anywhere.
fn folded(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut width = 0;
    for part in text.split_inclusive([' ', '-', '_', '/', '.', ',', '=']) {
        if width > 0 && width + part.trim_end().width() > most {
            lines.push(String::new());
            width = 0;
        }
        for c in part.chars() {
            let next = c.width().unwrap_or(0);
            if width > 0 && width + next > most && c != ' ' {
                lines.push(String::new());
                width = 0;
            }
            lines.last_mut().expect("never empty").push(c);
            width += next;
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// A text without what would move a terminal's cursor or colours: names come from outside.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_broken_where_people_would() {
        assert_eq!(folded("harbor-institute", 15), ["harbor-", "institute"]);
        assert_eq!(folded("billed card hours", 11), ["billed card", "hours"]);
        assert_eq!(folded("卡时卡时", 5), ["卡时", "卡时"]);
        assert_eq!(folded("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(folded("", 3), [""]);
    }
}
