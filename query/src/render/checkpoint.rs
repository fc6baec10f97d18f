//! A checkpoint report: for people its sections with their charts, for programs all of their figures.
//!
//! html draws charts as SVG, md as bars of text; csv and Parquet are one table, a row a figure; json is an object with the rows of each section.

use super::bars::{Bars, Measured, shortened};
use super::curve::Curve;
use super::{Cell, Format, Grid, Style, csv, html, json, markdown, parquet, people, table};
use crate::error::Error;
use askama::Template;
use cardhour_books::checkpoint::{Chart, Checkpoint, Section, Shape};
use cardhour_books::table::Value;
use rust_decimal::Decimal;
use unicode_width::UnicodeWidthStr;

/// Bars at most: the largest are drawn, the table has all.
const MOST_BARS: usize = 12;
/// Letters of the longest bar of text.
const TEXT_BAR: i128 = 40;

/// A checkpoint in `format`. Errors: Parquet that can't be written.
pub fn checkpoint(checkpoint: &Checkpoint, format: Format, style: Style) -> Result<Vec<u8>, Error> {
    Ok(match format {
        Format::Table => as_text(checkpoint, style).into_bytes(),
        Format::Md => as_markdown(checkpoint).into_bytes(),
        Format::Html => as_page(checkpoint).into_bytes(),
        Format::Json => as_json(checkpoint).into_bytes(),
        Format::Csv => csv::write(&Grid::of_table(&checkpoint.flat())),
        Format::Parquet => {
            let batch = parquet::batch(&checkpoint.flat())?;
            parquet::write(&batch.schema(), &[batch])?
        }
    })
}

fn as_text(checkpoint: &Checkpoint, style: Style) -> String {
    let mut out = format!("{}\n", checkpoint.title);
    for sentence in &checkpoint.summary {
        out.push_str(&format!("{sentence}\n"));
    }
    for section in &checkpoint.sections {
        out.push('\n');
        out.push_str(&table::write(&people::grid(&section.table), style));
    }
    if !checkpoint.notes.is_empty() {
        out.push('\n');
    }
    for note in &checkpoint.notes {
        out.push_str(&format!("{note}\n"));
    }
    out
}

fn as_markdown(checkpoint: &Checkpoint) -> String {
    let mut out = format!("## {}\n\n", markdown::escaped(&checkpoint.title));
    for sentence in &checkpoint.summary {
        out.push_str(&format!("{}\n\n", markdown::escaped(sentence)));
    }
    for section in &checkpoint.sections {
        out.push_str(&markdown::write(&people::grid(&section.table)));
        out.push('\n');
        if let Some(bars) = text_bars(&measured(section)) {
            out.push_str(&format!("```text\n{bars}```\n\n"));
        }
    }
    for note in &checkpoint.notes {
        out.push_str(&format!("- {}\n", markdown::escaped(note)));
    }
    out
}

fn as_json(checkpoint: &Checkpoint) -> String {
    let list = |sentences: &[String]| serde_json::Value::from(sentences.to_vec()).to_string();
    let mut out = format!("{{\n\"title\": {},\n", serde_json::Value::from(checkpoint.title.as_str()));
    out.push_str(&format!("\"summary\": {},\n", list(&checkpoint.summary)));
    for section in &checkpoint.sections {
        let rows = json::write(&Grid::of_table(&section.table));
        out.push_str(&format!("\"{}\": {},\n", section.name, rows.trim_end()));
    }
    out.push_str(&format!("\"notes\": {}\n}}\n", list(&checkpoint.notes)));
    out
}

#[derive(Template)]
#[template(path = "checkpoint.html")]
struct Page<'a> {
    title: &'a str,
    summary: &'a [String],
    parts: Vec<Part>,
    notes: &'a [String],
    style: &'static str,
}

struct Part {
    grid: Grid,
    bars: Option<Bars>,
    curve: Option<Curve>,
}

fn as_page(checkpoint: &Checkpoint) -> String {
    let part = |section: &Section| {
        let (about, measured) = (&section.table.title, measured(section));
        let (bars, curve) = match section.chart.map(|chart| chart.shape) {
            Some(Shape::Bars | Shape::Pairs { .. }) => (Bars::of(about, measured), None),
            Some(Shape::Line) => (None, Curve::of(about, measured)),
            None => (None, None),
        };
        Part { grid: people::grid(&section.table), bars, curve }
    };
    let page = Page {
        title: &checkpoint.title,
        summary: &checkpoint.summary,
        parts: checkpoint.sections.iter().map(part).collect(),
        notes: &checkpoint.notes,
        style: html::styles(),
    };
    page.render().expect("a template that compiled writes into memory")
}

impl Page<'_> {
    /// What stands in a cell.
    fn shown(&self, cell: &Cell) -> String {
        cell.without_formula()
    }

    fn class(&self, grid: &Grid, i: &usize) -> &'static str {
        html::class(grid, *i)
    }
}

/// What a section's chart is drawn of: the rows that have the figure, in their order; of too many bars the largest.
fn measured(section: &Section) -> Vec<Measured> {
    let Some(Chart { shape, label, value }) = section.chart else { return Vec::new() };
    let columns = &section.table.columns;
    let drawn = match shape {
        Shape::Pairs { beside } => vec![beside, value],
        Shape::Bars | Shape::Line => vec![value],
    };
    // Rows are drawn whole, or not at all.
    let mut all: Vec<Vec<Measured>> = section
        .table
        .rows
        .iter()
        .map(|row| {
            let name = match &row[label] {
                Value::Absent => "(none)".to_owned(),
                named => people::shown(named, columns[label].kind),
            };
            let bar = |column: usize| {
                let label = if drawn.len() > 1 { format!("{name}, {}", columns[column].name) } else { name.clone() };
                let amount = people::shown(&row[column], columns[column].kind);
                Some(Measured { label, size: size(&row[column])?, amount, share: String::new() })
            };
            drawn.iter().filter_map(|column| bar(*column)).collect()
        })
        .filter(|bars: &Vec<Measured>| !bars.is_empty())
        .collect();
    let most = MOST_BARS / drawn.len();
    if shape != Shape::Line && all.len() > most {
        let largest = |bars: &[Measured]| bars.iter().map(|one| one.size).max();
        let mut sizes: Vec<Option<i128>> = all.iter().map(|bars| largest(bars)).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let least = sizes[most - 1];
        all.retain(|bars| largest(bars) >= least);
        all.truncate(most);
    }
    all.into_iter().flatten().collect()
}

/// A figure in millionths; none where there is none.
fn size(value: &Value) -> Option<i128> {
    match value {
        Value::Absent | Value::Text(_) => None,
        Value::Count(count) => Some(i128::from(*count) * 1_000_000),
        Value::Decimal(decimal) => {
            let mut millionths: Decimal = *decimal;
            millionths.rescale(6);
            Some(millionths.mantissa())
        }
    }
}

/// Bars of text, a line each; none where there is only one, or nothing above zero.
fn text_bars(measured: &[Measured]) -> Option<String> {
    let largest = measured.iter().map(|one| one.size).max().filter(|largest| *largest > 0 && measured.len() > 1)?;
    let labels: Vec<String> = measured.iter().map(|one| shortened(&one.label.replace('`', "'"))).collect();
    let widest = labels.iter().map(|label| label.width()).max().unwrap_or(0);
    let line = |(one, label): (&Measured, &String)| {
        let room = " ".repeat(widest - label.width());
        let letters = usize::try_from(one.size.max(0) * TEXT_BAR / largest).expect("at most the longest");
        let gap = if letters == 0 { "" } else { " " };
        format!("{label}{room}  {}{gap}{}\n", "█".repeat(letters), one.amount)
    };
    Some(measured.iter().zip(&labels).map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_books::table::{Column, Kind, Table};

    fn checkpoint_of(shape: Shape) -> Checkpoint {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let row = |name: &str, hours: &str| vec![Value::Text(name.into()), Value::Decimal(hours.parse().unwrap())];
        let table = Table {
            title: "Queue wait".to_owned(),
            columns: vec![column("queue", Kind::Text), column("p90_wait_hours", Kind::Hours)],
            rows: vec![
                row("<a>", "2.000000"),
                row("long", "4.000000"),
                vec![Value::Text("none".into()), Value::Absent],
            ],
            total: None,
            notes: vec!["by nearest rank".to_owned()],
        };
        Checkpoint {
            title: "weekly checkpoint, 2026-W20, UTC".to_owned(),
            summary: vec!["Three started.".to_owned()],
            sections: vec![Section { name: "queue_wait", table, chart: Some(Chart { shape, label: 0, value: 1 }) }],
            notes: vec!["no price book".to_owned()],
            has_holes: false,
        }
    }

    fn rendered(shape: Shape, format: Format) -> String {
        String::from_utf8(checkpoint(&checkpoint_of(shape), format, Style::default()).unwrap()).unwrap()
    }

    /// By hand: the longest bar has 40 letters, half of it 20; who has no figure has no bar.
    #[test]
    fn markdown_has_each_table_and_its_bars_as_text() {
        let text = rendered(Shape::Bars, Format::Md);
        assert!(
            text.starts_with("## weekly checkpoint, 2026-W20, UTC\n\nThree started.\n\n### Queue wait\n"),
            "{text}"
        );
        let bars = format!("```text\n<a>   {} 2.0000\nlong  {} 4.0000\n```\n", "█".repeat(20), "█".repeat(40));
        assert!(text.contains(&bars), "{text}");
        assert!(text.ends_with("- no price book\n"), "{text}");
    }

    #[test]
    fn a_page_draws_bars_or_a_line_and_escapes_names() {
        let bars = rendered(Shape::Bars, Format::Html);
        assert!(bars.contains("<rect x=\"190\" y=\"25\" width=\"370\"") && !bars.contains("<polyline"), "{bars}");
        assert!(!bars.contains("<a>") && bars.contains("<h2>Queue wait</h2>"), "{bars}");
        let line = rendered(Shape::Line, Format::Html);
        assert!(line.contains("<polyline points=\"30,89 670,24\"/>") && !line.contains("<rect"), "{line}");
        assert!(!line.contains("<script"), "{line}");
    }

    /// By hand: of a largest bar of 40 letters a quarter has 10, a half 20.
    #[test]
    fn two_columns_are_drawn_side_by_side() {
        let mut checkpoint = checkpoint_of(Shape::Pairs { beside: 2 });
        let table = &mut checkpoint.sections[0].table;
        table.columns.push(Column { name: "today".to_owned(), kind: Kind::Hours });
        for (row, hours) in table.rows.iter_mut().zip(["1.000000", "2.000000", "4.000000"]) {
            row.push(Value::Decimal(hours.parse().unwrap()));
        }
        let text = as_markdown(&checkpoint);
        let bar = |letters: usize| "█".repeat(letters);
        for line in [
            format!("<a>, today            {} 1.0000", bar(10)),
            format!("<a>, p90_wait_hours   {} 2.0000", bar(20)),
            format!("none, today           {} 4.0000", bar(40)),
        ] {
            assert!(text.contains(&line), "{line}\n{text}");
        }
        assert!(!text.contains("none, p90"), "{text}");
    }

    #[test]
    fn programs_get_every_figure_with_all_digits() {
        assert_eq!(
            rendered(Shape::Bars, Format::Csv),
            "section,row,column,value\n\
             queue_wait,1,queue,<a>\nqueue_wait,1,p90_wait_hours,2.000000\n\
             queue_wait,2,queue,long\nqueue_wait,2,p90_wait_hours,4.000000\n\
             queue_wait,3,queue,none\n"
        );
        let json: serde_json::Value = serde_json::from_str(&rendered(Shape::Bars, Format::Json)).unwrap();
        assert_eq!(json["queue_wait"][1]["p90_wait_hours"], "4.000000");
        assert!(json["queue_wait"][2]["p90_wait_hours"].is_null());
        assert_eq!(json["notes"][0], "no price book");
    }
}
