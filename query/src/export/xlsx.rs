//! A statement as a workbook: a sheet for people, and one for machines with every entry.
//!
//! Every text is written as a text, never as a formula, whatever it begins with. Sums are formulas over the rows above them, with their value beside, so
//! that a program that works them out again and one that doesn't show the same. The same statement gives the same bytes: the workbook's date is that of
//! the closing, else the month's end.
//!
//! A spreadsheet's numbers are floats of 15 digits: a decimal that has more is written as a text, and nothing is computed from them here.

use super::paper::{self, Paper};
use crate::error::Error;
use cardhour_books::statement::{EntryKind, Figures, export_table};
use cardhour_books::table::{Kind, Table, Value};
use cardhour_domain::{CardTime, Money, Name};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use rust_xlsxwriter::{
    Color, DocProperties, ExcelDateTime, Format, FormatAlign, FormatBorder, Formula, IgnoreError, Workbook, Worksheet,
    XlsxError,
};

/// Letters that a cell takes.
const CELL_LETTERS: usize = 32_767;
/// Letters of a number or name that a footer takes: of 255 with what else stands there.
const FOOTER_LETTERS: usize = 80;
/// A4, as workbooks count paper.
const A4: u8 = 9;
/// Digits that a spreadsheet's numbers keep.
const DIGITS: usize = 15;

/// The workbook of a statement. Errors: more entries than a sheet has rows.
pub fn write(paper: &Paper<'_>) -> Result<Vec<u8>, Error> {
    let mut workbook = Workbook::new();
    let statement = paper.statement;
    let dated =
        statement.closed.as_ref().map_or_else(|| statement.period.interval(statement.zone).end(), |closed| closed.at);
    let properties = DocProperties::new()
        .set_title(cut(&statement.number, CELL_LETTERS))
        .set_company(cut(statement.issuer.as_deref().unwrap_or_default(), CELL_LETTERS))
        .set_creation_datetime(&ExcelDateTime::from_timestamp(dated.unix_ms().div_euclid(1000))?);
    workbook.set_properties(&properties);
    let sheet = workbook.add_worksheet();
    sheet.set_name("Statement")?;
    for_people(sheet, paper)?;
    let sheet = workbook.add_worksheet();
    sheet.set_name("Entries")?;
    for_machines(sheet, &export_table(std::slice::from_ref(statement)))?;
    Ok(workbook.save_to_buffer()?)
}

/// Cells of one sheet, written from the top down.
struct Pen<'a> {
    sheet: &'a mut Worksheet,
    looks: Looks,
    row: u32,
}

struct Looks {
    title: Format,
    heading: Format,
    head: Format,
    head_number: Format,
    quiet: Format,
    wrapped: Format,
    money: Format,
    hours: Format,
    price: Format,
    sum: Format,
    sum_money: Format,
    sum_hours: Format,
    total: Format,
}

impl Looks {
    fn new(minor_digits: u8) -> Self {
        let money = match minor_digits {
            0 => "#,##0".to_owned(),
            digits => format!("#,##0.{}", "0".repeat(usize::from(digits))),
        };
        let (plain, ink) = (Format::new(), Color::RGB(0x0016_202B));
        let head = Format::new().set_bold().set_border_bottom(FormatBorder::Thin).set_text_wrap().set_font_color(ink);
        let sum = Format::new().set_bold().set_border_top(FormatBorder::Thin);
        Self {
            title: Format::new().set_bold().set_font_size(16),
            heading: Format::new().set_bold().set_font_size(12).set_font_color(Color::RGB(0x0023_508E)),
            head_number: head.clone().set_align(FormatAlign::Right),
            head,
            quiet: Format::new().set_font_color(Color::RGB(0x005D_6875)),
            wrapped: Format::new().set_text_wrap().set_align(FormatAlign::Top),
            money: plain.clone().set_num_format(&money),
            hours: plain.clone().set_num_format("#,##0.0000"),
            price: plain.set_num_format("#,##0.0000"),
            sum_money: sum.clone().set_num_format(&money),
            sum_hours: sum.clone().set_num_format("#,##0.0000"),
            total: Format::new().set_bold().set_font_size(14).set_num_format(&money).set_align(FormatAlign::Left),
            sum,
        }
    }
}

/// A column of figures: what it is called, and what a row has in it.
type FigureColumn<'a> = (String, Box<dyn Fn(&Figures) -> Option<Cell> + 'a>);

/// A figure in a cell.
#[derive(Clone, Copy)]
enum Cell {
    Hours(CardTime),
    Money(Money),
}

impl Cell {
    fn decimal(self) -> Decimal {
        match self {
            Self::Hours(time) => time.card_hours(),
            Self::Money(money) => Decimal::from_i128_with_scale(money.micros(), 6).normalize(),
        }
    }
}

impl Pen<'_> {
    fn text(&mut self, column: u16, text: &str, look: fn(&Looks) -> &Format) -> Result<(), XlsxError> {
        self.sheet.write_string_with_format(self.row, column, cut(text, CELL_LETTERS), look(&self.looks))?;
        Ok(())
    }

    fn number(&mut self, column: u16, number: Decimal, look: fn(&Looks) -> &Format) -> Result<(), XlsxError> {
        match exact(number) {
            Some(float) => self.sheet.write_number_with_format(self.row, column, float, look(&self.looks))?,
            None => self.sheet.write_string_with_format(self.row, column, number.to_string(), look(&self.looks))?,
        };
        Ok(())
    }

    fn figure(&mut self, column: u16, cell: Cell) -> Result<(), XlsxError> {
        let look: fn(&Looks) -> &Format = match cell {
            Cell::Hours(_) => |looks| &looks.hours,
            Cell::Money(_) => |looks| &looks.money,
        };
        self.number(column, cell.decimal(), look)
    }

    /// The sum of the rows from `first` down to the one above, as a formula with its value.
    fn sum(&mut self, column: u16, first: u32, cell: Cell) -> Result<(), XlsxError> {
        let look: fn(&Looks) -> &Format = match cell {
            Cell::Hours(_) => |looks| &looks.sum_hours,
            Cell::Money(_) => |looks| &looks.sum_money,
        };
        if exact(cell.decimal()).is_none() {
            return self.number(column, cell.decimal(), look);
        }
        let range = rust_xlsxwriter::utility::cell_range(first, column, self.row - 1, column);
        let formula = Formula::new(format!("=SUM({range})")).set_result(cell.decimal().to_string());
        self.sheet.write_formula_with_format(self.row, column, formula, look(&self.looks))?;
        Ok(())
    }

    fn heading(&mut self, text: &str) -> Result<(), XlsxError> {
        self.row += 1;
        self.text(0, text, |looks| &looks.heading)?;
        self.row += 1;
        Ok(())
    }

    /// Heads of a table: the first `texts` stand at the left, the others at the right.
    fn heads(&mut self, names: &[String], texts: usize) -> Result<(), XlsxError> {
        for (column, name) in (0..).zip(names) {
            if usize::from(column) < texts {
                self.text(column, name, |looks| &looks.head)?;
            } else {
                self.text(column, name, |looks| &looks.head_number)?;
            }
        }
        self.row += 1;
        Ok(())
    }

    /// A table of figures under two columns of names, with its sums.
    fn figures<'f>(
        &mut self,
        names: [&str; 2],
        rows: impl Iterator<Item = ([String; 2], &'f Figures)>,
        all: &Figures,
        columns: &[FigureColumn<'_>],
    ) -> Result<(), XlsxError> {
        let heads: Vec<String> =
            names.map(str::to_owned).into_iter().chain(columns.iter().map(|(name, _)| name.clone())).collect();
        self.heads(&heads, 2)?;
        let first = self.row;
        for (names, figures) in rows {
            for (column, name) in (0..).zip(&names) {
                self.text(column, name, |looks| &looks.wrapped)?;
            }
            for (column, (_, of)) in (2..).zip(columns) {
                if let Some(cell) = of(figures) {
                    self.figure(column, cell)?;
                }
            }
            self.row += 1;
        }
        self.text(0, "Total", |looks| &looks.sum)?;
        self.text(1, "", |looks| &looks.sum)?;
        for (column, (_, of)) in (2..).zip(columns) {
            match of(all) {
                Some(cell) => self.sum(column, first, cell)?,
                None => self.text(column, "", |looks| &looks.sum)?,
            }
        }
        self.row += 1;
        Ok(())
    }
}

/// The sheet that people read and print.
fn for_people(sheet: &mut Worksheet, paper: &Paper<'_>) -> Result<(), XlsxError> {
    let statement = paper.statement;
    let currency = statement.total.currency();
    sheet.set_paper_size(A4).set_landscape().set_print_fit_to_pages(1, 0).set_screen_gridlines(false);
    sheet.set_margins(0.6, 0.6, 0.8, 0.8, 0.3, 0.3);
    let of = |text: &str| cut(text, FOOTER_LETTERS).replace('&', "&&");
    sheet.set_footer(format!("&L{} · {}&RPage &P of &N", of(&statement.number), of(&statement.account)));
    if paper.is_draft() {
        sheet.set_header("&C&\"-,Bold\"DRAFT");
    }
    sheet.set_freeze_panes(2, 0)?;
    sheet.set_repeat_rows(0, 1)?;
    sheet.set_column_width(0, 30)?.set_column_width(1, 26)?;
    sheet.set_column_range_width(2, 11, 15)?;

    let mut pen = Pen { sheet, looks: Looks::new(currency.minor_digits()), row: 0 };
    let draft = if paper.is_draft() { "DRAFT · " } else { "" };
    pen.text(0, &format!("{draft}{}, {}", statement.account, paper.month()), |looks| &looks.title)?;
    pen.row += 1;
    let issuer = statement.issuer.as_ref().map_or_else(String::new, |issuer| format!(" of {issuer}"));
    pen.text(0, &format!("Statement {}{issuer}", statement.number), |looks| &looks.quiet)?;
    pen.row += 2;
    let facts = [
        ("Period", format!("{}, {}", paper.period(), statement.zone)),
        ("Currency", currency.to_string()),
        ("Status", paper.status()),
    ];
    for (what, fact) in facts.into_iter().chain(paper.terms()) {
        pen.text(0, what, |looks| &looks.quiet)?;
        pen.text(1, &fact, |looks| &looks.quiet)?;
        pen.row += 1;
    }
    pen.text(0, "Total", |looks| &looks.total)?;
    pen.number(1, Cell::Money(statement.total).decimal(), |looks| &looks.total)?;
    pen.row += 1;

    let columns = figure_columns(paper);
    let all = &paper.summary.all;
    pen.heading("By project")?;
    let projects = paper.summary.projects.iter().map(|project| {
        let entries = if project.figures.entries == 1 {
            "1 entry".to_owned()
        } else {
            format!("{} entries", project.figures.entries)
        };
        ([paper::name(&project.project).to_owned(), entries], &project.figures)
    });
    pen.figures(["Project", ""], projects, all, &columns)?;
    pen.heading("By user")?;
    let users = paper.summary.projects.iter().flat_map(|project| {
        let name = paper::name(&project.project);
        project.users.iter().map(move |(user, figures)| ([name.to_owned(), paper::name(user).to_owned()], figures))
    });
    pen.figures(["Project", "User"], users, all, &columns)?;
    models(&mut pen, paper)?;
    beside(&mut pen, paper)?;
    corrections(&mut pen, paper)?;

    let sentences: Vec<String> = paper.remarks.iter().cloned().chain(paper.coverage()).collect();
    let sha256 = statement.closed.as_ref().map(|closed| format!("SHA-256 of the closed month: {}", closed.sha256));
    let traced = [
        format!("{} entries, on the sheet Entries, add up to the total.", statement.entries.len()),
        format!("Down to the jobs and the prices: {}", paper.trace()),
    ];
    pen.heading("Notes")?;
    for sentence in sentences.into_iter().chain(traced).chain(sha256) {
        pen.text(0, &sentence, |looks| &looks.quiet)?;
        pen.row += 1;
    }
    Ok(())
}

/// Hours, list price, each kind of entries there is, and the total.
fn figure_columns<'a>(paper: &Paper<'_>) -> Vec<FigureColumn<'a>> {
    let held = |time: CardTime| (!time.is_zero()).then_some(Cell::Hours(time));
    let mut columns: Vec<FigureColumn<'a>> = vec![
        ("Card-hours held".to_owned(), Box::new(move |figures: &Figures| held(figures.card_time))),
        ("Card-hours billed".to_owned(), Box::new(move |figures: &Figures| held(figures.billed_time))),
    ];
    if paper.has_list() {
        columns.push(("List price".to_owned(), Box::new(|figures: &Figures| figures.list_amount.map(Cell::Money))));
    }
    for kind in paper.kinds() {
        let of = move |figures: &Figures| figures.amount(kind).map(Cell::Money);
        columns.push((paper::kind_words(kind).to_owned(), Box::new(of)));
    }
    let total = format!("Total {}", paper.statement.total.currency());
    columns.push((total, Box::new(|figures: &Figures| Some(Cell::Money(figures.total)))));
    columns
}

fn models(pen: &mut Pen<'_>, paper: &Paper<'_>) -> Result<(), XlsxError> {
    if paper.summary.models.is_empty() {
        return Ok(());
    }
    pen.heading("By model and price window")?;
    let mut heads = vec!["Model", "Price window", "Card-hours held", "Card-hours billed"];
    heads.extend(paper.has_list().then_some("List price"));
    heads.extend(["Charged", "Average per card-hour"]);
    pen.heads(&heads.iter().map(|head| (*head).to_owned()).collect::<Vec<_>>(), 2)?;
    let first = pen.row;
    let cells = |figures: &Figures| {
        let mut cells = vec![Some(Cell::Hours(figures.card_time)), Some(Cell::Hours(figures.billed_time))];
        if paper.has_list() {
            cells.push(figures.list_amount.map(Cell::Money));
        }
        cells.push(figures.amount(EntryKind::Charge).map(Cell::Money));
        cells
    };
    for model in &paper.summary.models {
        pen.text(0, paper::name(&model.model), |looks| &looks.wrapped)?;
        pen.text(1, model.window.as_deref().unwrap_or("standard"), |looks| &looks.wrapped)?;
        for (column, cell) in (2..).zip(cells(&model.figures)) {
            if let Some(cell) = cell {
                pen.figure(column, cell)?;
            }
        }
        if let Some(price) = model.figures.charge_per_card_hour() {
            let column = if paper.has_list() { 6 } else { 5 };
            pen.number(column, price, |looks| &looks.price)?;
        }
        pen.row += 1;
    }
    pen.text(0, "Total", |looks| &looks.sum)?;
    pen.text(1, "", |looks| &looks.sum)?;
    for (column, cell) in (2..).zip(cells(&paper.summary.all)) {
        if let Some(cell) = cell {
            pen.sum(column, first, cell)?;
        }
    }
    pen.row += 1;
    Ok(())
}

fn beside(pen: &mut Pen<'_>, paper: &Paper<'_>) -> Result<(), XlsxError> {
    if paper.summary.beside.is_empty() {
        return Ok(());
    }
    pen.heading("Beside the card-hours")?;
    pen.heads(&["What", "Project", "Card-hours", "Quantity", "Unit", "Amount", "Why"].map(str::to_owned), 2)?;
    let first = pen.row;
    for beside in &paper.summary.beside {
        let kind = paper::kind_words(beside.kind);
        let what = beside.what.as_ref().map(|what| format!("{kind}: {}", paper::cause_words(what)));
        pen.text(0, what.as_deref().unwrap_or(kind), |looks| &looks.wrapped)?;
        pen.text(1, paper::name(&beside.project), |looks| &looks.wrapped)?;
        if !beside.card_time.is_zero() {
            pen.figure(2, Cell::Hours(beside.card_time))?;
        }
        if let Some((quantity, unit)) = &beside.quantity {
            pen.number(3, *quantity, |looks| &looks.price)?;
            pen.text(4, unit, |looks| &looks.wrapped)?;
        }
        pen.figure(5, Cell::Money(beside.amount))?;
        why(pen, &beside.reason)?;
        pen.row += 1;
    }
    let amounts = paper.summary.beside.iter().map(|beside| beside.amount);
    sum_of_amounts(pen, first, amounts, paper)
}

fn corrections(pen: &mut Pen<'_>, paper: &Paper<'_>) -> Result<(), XlsxError> {
    if paper.summary.corrections.is_empty() {
        return Ok(());
    }
    pen.heading("Corrections of earlier months")?;
    pen.heads(&["Month and what", "Project, user", "Card-hours", "", "", "Amount", "Why"].map(str::to_owned), 2)?;
    let first = pen.row;
    for correction in &paper.summary.corrections {
        let what = format!("{}, {}", correction.original_period, paper::kind_words(correction.corrects));
        pen.text(0, &what, |looks| &looks.wrapped)?;
        let owner = format!("{}, {}", paper::name(&correction.project), paper::name(&correction.user));
        pen.text(1, &owner, |looks| &looks.wrapped)?;
        if !correction.card_time.is_zero() {
            pen.figure(2, Cell::Hours(correction.card_time))?;
        }
        pen.figure(5, Cell::Money(correction.amount))?;
        why(pen, &correction.reason)?;
        pen.row += 1;
    }
    let amounts = paper.summary.corrections.iter().map(|correction| correction.amount);
    sum_of_amounts(pen, first, amounts, paper)
}

fn why(pen: &mut Pen<'_>, reason: &Option<Name>) -> Result<(), XlsxError> {
    // Not wrapped: the sentence runs on to the right, where nothing else stands.
    reason.as_ref().map_or(Ok(()), |reason| pen.text(6, reason, |looks| &looks.quiet))
}

fn sum_of_amounts(
    pen: &mut Pen<'_>,
    first: u32,
    amounts: impl Iterator<Item = Money>,
    paper: &Paper<'_>,
) -> Result<(), XlsxError> {
    let sum = amounts.fold(Money::zero(paper.statement.total.currency()), |sum, amount| sum + amount);
    pen.text(0, "Total", |looks| &looks.sum)?;
    for column in 1..5 {
        pen.text(column, "", |looks| &looks.sum)?;
    }
    pen.sum(5, first, Cell::Money(sum))?;
    pen.row += 1;
    Ok(())
}

/// The sheet that programs read: a header, and a row for each entry.
fn for_machines(sheet: &mut Worksheet, table: &Table) -> Result<(), XlsxError> {
    let (head, hours) = (Format::new().set_bold(), Format::new().set_num_format("0.000000"));
    let last_column = u16::try_from(table.columns.len() - 1).expect("fewer columns than a sheet has");
    for (column, named) in (0..).zip(&table.columns) {
        sheet.write_string_with_format(0, column, &named.name, &head)?;
        for (row, cells) in (1..).zip(&table.rows) {
            match &cells[usize::from(column)] {
                Value::Absent => {}
                Value::Text(text) => {
                    sheet.write_string(row, column, cut(text, CELL_LETTERS))?;
                }
                Value::Count(count) => {
                    sheet.write_string(row, column, count.to_string())?;
                }
                Value::Decimal(decimal) => match (exact(*decimal), named.kind) {
                    (Some(float), Kind::Hours) => {
                        sheet.write_number_with_format(row, column, float, &hours)?;
                    }
                    (Some(float), Kind::Text | Kind::Count | Kind::Ratio | Kind::Money) => {
                        sheet.write_number(row, column, float)?;
                    }
                    (None, _) => {
                        sheet.write_string(row, column, decimal.to_string())?;
                    }
                },
            }
        }
    }
    sheet.set_column_range_width(0, last_column, 16)?;
    sheet.set_freeze_panes(1, 0)?;
    let last_row = u32::try_from(table.rows.len()).unwrap_or(u32::MAX);
    if last_row > 0 {
        sheet.autofilter(0, 0, last_row, last_column)?;
        sheet.ignore_error_range(1, 0, last_row, last_column, IgnoreError::NumberStoredAsText)?;
    }
    Ok(())
}

/// A decimal as a spreadsheet's number; none where that would lose a digit.
fn exact(decimal: Decimal) -> Option<f64> {
    let digits = decimal.normalize().mantissa().unsigned_abs().to_string().len();
    decimal.to_f64().filter(|_| digits <= DIGITS)
}

/// As many letters of a text as fit.
fn cut(text: &str, letters: usize) -> String {
    text.chars().take(letters).collect()
}
