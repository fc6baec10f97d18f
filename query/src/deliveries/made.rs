//! From a term to its files: what a delivery puts in place.
//!
//! A name says period and organisation, so that the same delivery again has the same names. Does not: put a file anywhere.

use crate::advised::AdvisedRequest;
use crate::books::{Books, SIMULATED};
use crate::checkpoint::{CheckpointRequest, CheckpointSpan};
use crate::config::{StatementFormat, What, report_format};
use crate::error::Error;
use crate::export::paper::Paper;
use crate::export::{csv, file_name, focus, html, parquet, xlsx};
use crate::render::{self, Format, Style};
use crate::request::{IsolationRequest, Moment, OutputRequest, ReportName, ReportRequest, Span};
use cardhour_books::delivery::{Edition, Term};
use cardhour_books::report::ReportKind;
use cardhour_books::statement::{Statement, of_org};
use cardhour_domain::Month;
use chrono::NaiveTime;
use tracing::warn;

/// Files that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Names and bytes, in the order in which they are put in place.
    pub files: Vec<(String, Vec<u8>)>,
    /// Whether the last says what the others are: while they are put in place it mustn't be there.
    pub has_seal: bool,
}

impl Files {
    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.files.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// The files of a term. Errors: no price book, faulty ones, the ledger's own.
pub async fn made(books: &Books, what: &What, term: Term, edition: Edition) -> Result<Files, Error> {
    match (what, term) {
        (What::Statement { formats, orgs }, Term::Month(month)) => {
            statements(books, month, edition, formats, orgs).await
        }
        (What::Focus { version, format }, Term::Month(month)) => {
            let note = books.is_demo().then_some(SIMULATED);
            let billed = books.billed(month, None).await?;
            let delivery = focus::delivery(&billed, *version, *format, note)?;
            if !delivery.unpriced.is_zero() {
                // Of a draft alone: a month with holes in its price book isn't closed.
                let card_hours = delivery.unpriced.card_hours().normalize();
                warn!(%month, %card_hours, "delivered without time that has no price");
            }
            Ok(Files { files: delivery.into_files(), has_seal: true })
        }
        (What::Report { report, formats }, term) => reports(books, *report, term, formats).await,
        (What::Statement { .. } | What::Focus { .. }, Term::Week(_)) => {
            unreachable!("the config gives months alone to statements and FOCUS")
        }
    }
}

async fn statements(
    books: &Books,
    month: Month,
    edition: Edition,
    formats: &[StatementFormat],
    orgs: &[String],
) -> Result<Files, Error> {
    let issued = books.issued(month, None).await?;
    let statements: Vec<Statement> = match orgs {
        [] => issued.statements,
        orgs => orgs.iter().flat_map(|org| of_org(issued.statements.clone(), org)).collect(),
    };
    let mut files = Vec::with_capacity(statements.len() * formats.len());
    for statement in &statements {
        let paper = Paper::of(statement, &issued.remarks);
        for format in formats {
            let bytes = match format {
                StatementFormat::Xlsx => xlsx::write(&paper)?,
                StatementFormat::Csv => csv::write(statement),
                StatementFormat::Html => html::write(&paper),
                StatementFormat::Parquet => parquet::write(statement)?,
            };
            let name = file_name(statement, format.name());
            // No statement's own name begins so: a draft never takes the place of what was signed.
            let name = match edition {
                Edition::Draft => format!("draft-{name}"),
                Edition::Final => name,
            };
            files.push((name, bytes));
        }
    }
    Ok(Files { files, has_seal: false })
}

async fn reports(books: &Books, report: ReportName, term: Term, formats: &[Format]) -> Result<Files, Error> {
    let span = span(term);
    let written: Vec<Vec<u8>> = match report {
        ReportName::Weekly | ReportName::Monthly | ReportName::Advised(_) => {
            let of = match term {
                Term::Week(week) => CheckpointSpan::Week(Some(week)),
                Term::Month(month) => CheckpointSpan::Month(Some(month)),
            };
            let made = match report {
                ReportName::Advised(report) => {
                    books.advised_report(&AdvisedRequest { report, span, zone: None }).await?
                }
                _ => books.checkpoint(&CheckpointRequest { of, prices: None }).await?,
            };
            // What is delivered lies in people's folders, and they open it in a spreadsheet.
            let write = |format: &Format| match format {
                Format::Csv => Ok(render::spreadsheet(&made.flat())),
                format => render::checkpoint(&made, *format, Style::default()),
            };
            formats.iter().map(write).collect::<Result<_, _>>()?
        }
        ReportName::Books(_) | ReportName::Output | ReportName::Isolation => {
            let table = match report {
                ReportName::Books(kind) => {
                    let mut table = books.report(&ReportRequest { span, ..ReportRequest::new(kind) }).await?.table;
                    if kind == ReportKind::Bill {
                        table.notes.extend(books.note_of_policy());
                    }
                    table
                }
                ReportName::Isolation => books.isolation(&IsolationRequest { span, zone: None }).await?.table,
                _ => books.output(&OutputRequest { span, zone: None, prices: None }).await?.table,
            };
            let write = |format: &Format| match format {
                Format::Csv => Ok(render::spreadsheet(&table)),
                format => render::report(&table, *format, Style::default()),
            };
            formats.iter().map(write).collect::<Result<_, _>>()?
        }
    };
    let name = |format: &Format| format!("report-{}-{term}.{}", report.name(), report_format(*format));
    Ok(Files { files: formats.iter().map(name).zip(written).collect(), has_seal: false })
}

fn span(term: Term) -> Span {
    match term {
        Term::Month(month) => Span::Month(month),
        Term::Week(week) => {
            let days = week.days();
            let moment = |date: chrono::NaiveDate| Some(Moment::Local(date.and_time(NaiveTime::MIN)));
            Span::Between { from: moment(days.first), to: moment(days.end) }
        }
    }
}
