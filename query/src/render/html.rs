//! A page of its own: no script, no other file, prints on paper.

use super::{Cell, Grid};
use askama::Template;

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    grid: &'a Grid,
    style: &'static str,
}

/// The looks of every page, light and dark, on a screen of any width and on paper.
pub const fn styles() -> &'static str {
    include_str!("../../templates/style.css")
}

/// A grid as a page.
pub fn write(grid: &Grid) -> String {
    Page { grid, style: styles() }.render().expect("a template that compiled writes into memory")
}

/// Class of a cell: numbers stand to the right.
pub(super) fn class(grid: &Grid, i: usize) -> &'static str {
    if grid.is_number[i] { "n" } else { "" }
}

impl Page<'_> {
    /// What stands in a cell.
    fn shown(&self, cell: &Cell) -> String {
        cell.without_formula()
    }

    fn class(&self, grid: &Grid, i: &usize) -> &'static str {
        class(grid, *i)
    }
}
