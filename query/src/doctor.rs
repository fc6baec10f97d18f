//! `doctor`: whether all is well before a site relies on it.
//!
//! Each check is one line: what was looked at, how it stands, and what to do. Start at [`look`].

mod export;

use crate::answer::texts;
use crate::billing::{BILLING_FILE, read_policy};
use crate::books::{Books, PRICES_FILE};
use crate::cli::DoctorArgs;
use crate::config::Config;
use crate::deliveries::Deliverer;
use crate::error::{Error, chain};
use crate::request::ReportRequest;
use cardhour_books::report::{Dimension, ReportKind};
use cardhour_books::statement::BillingPolicy;
use cardhour_books::table::{Table, Value};
use cardhour_domain::Timestamp;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: `store`, `prices`.
    pub check: &'static str,
    /// How it stands.
    pub verdict: Verdict,
    /// In words.
    pub found: String,
    /// What to do; empty where nothing is.
    pub remedy: String,
}

/// How a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Well.
    Ok,
    /// Figures will be missing or surprising.
    Warn,
    /// It doesn't work.
    Fail,
}

impl Verdict {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Finding {
    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, found: found.into(), remedy: String::new() }
    }

    fn warn(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warn, found: found.into(), remedy: remedy.into() }
    }

    fn fail(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Fail, found: found.into(), remedy: remedy.into() }
    }
}

/// Looks at everything. Nothing is changed but a probe file in the ledger's folder, which is removed again.
pub async fn look(place: &str, config: &Config, args: &DoctorArgs, now: Timestamp) -> Vec<Finding> {
    let mut findings = vec![match &config.file {
        Some(file) => Finding::ok("config", format!("{} is in force", file.display())),
        None => Finding::ok("config", "no config file, defaults are in force"),
    }];
    findings.extend(store(Path::new(place)));
    match Books::open(place, config.sql).await {
        Ok(books) => {
            let zone = books.zone();
            findings.push(match config.zone {
                Some(other) if other != zone => Finding::warn(
                    "zone",
                    format!("the ledger bills in {zone}, the config says {other}"),
                    "the ledger's zone is fixed; correct the config",
                ),
                _ => Finding::ok("zone", format!("the ledger bills in {zone}")),
            });
            findings.extend(prices(&books, args.prices.as_deref()).await);
            findings.extend(billing(&books));
            findings.extend(budgets(&books));
            findings.extend(capacity(&books).await);
            findings.extend(deliveries(&books, config).await);
        }
        Err(error) => {
            findings.push(Finding::fail(
                "ledger",
                chain(&error),
                "cardhour init makes one, and so does the first import",
            ));
            if let Some(path) = &args.prices {
                findings.push(price_file(path));
            }
        }
    }
    if let Some(file) = &args.file {
        findings.extend(export::look(file, args, now));
    }
    findings
}

/// The findings as a table.
pub fn table(findings: &[Finding]) -> Table {
    let text = |text: &str| match text.lines().map(str::trim).collect::<Vec<_>>().join("; ") {
        none if none.is_empty() => Value::Absent,
        one_line => Value::Text(one_line.into()),
    };
    Table {
        columns: texts(&["check", "verdict", "found", "remedy"]),
        rows: findings
            .iter()
            .map(|finding| {
                vec![text(finding.check), text(finding.verdict.name()), text(&finding.found), text(&finding.remedy)]
            })
            .collect(),
        ..Table::default()
    }
}

/// Whether the folder can be written, and only its owner looks into it.
fn store(folder: &Path) -> Vec<Finding> {
    if !folder.exists() {
        return vec![Finding::warn("store", format!("{} isn't there yet", folder.display()), "cardhour init makes it")];
    }
    let probe = folder.join(format!(".doctor.{}", std::process::id()));
    let mut findings = vec![match std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe)) {
        Ok(()) => Finding::ok("store", format!("{} can be written", folder.display())),
        Err(error) => Finding::fail(
            "store",
            format!("{} can't be written: {error}", folder.display()),
            "run as its owner, or name another with --ledger",
        ),
    }];
    if let Ok(about) = std::fs::metadata(folder)
        && about.permissions().mode() & 0o077 != 0
    {
        findings.push(Finding::warn(
            "store",
            "others of this machine can look into the folder, and so see everything",
            format!("chmod 700 {}", folder.display()),
        ));
    }
    findings
}

fn price_file(path: &Path) -> Finding {
    match crate::books::read_prices(path) {
        Ok(Some(book)) => Finding::ok("prices", format!("{} prices in {}", book.prices().len(), book.currency())),
        Ok(None) => Finding::warn("prices", "the price book says nothing: hours without money", "fill it in"),
        Err(error) => Finding::fail("prices", chain(&error), "correct the lines that are named"),
    }
}

/// Whether there is a price book, and whether it prices all that was held.
async fn prices(books: &Books, file: Option<&Path>) -> Vec<Finding> {
    let book = match books.prices(file) {
        Ok(Some(book)) => book,
        Ok(None) => {
            return vec![Finding::warn(
                "prices",
                "no price book: hours without money",
                format!("fill in {PRICES_FILE} in the ledger's folder"),
            )];
        }
        Err(error) => return vec![Finding::fail("prices", chain(&error), "correct what is named")],
    };
    let about = format!("{} prices in {}, version {}", book.prices().len(), book.currency(), book.version());
    let request = ReportRequest { prices: file.map(Path::to_owned), ..ReportRequest::new(ReportKind::Bill) };
    match books.report(&request).await {
        Ok(reported) if reported.has_holes => vec![
            Finding::ok("prices", about),
            Finding::warn(
                "prices",
                format!("holes: {}", reported.table.notes.join("; ")),
                "add a price for them, model = \"*\" is for all that is left",
            ),
        ],
        Ok(_) => vec![Finding::ok("prices", format!("{about}; all that was held has a price"))],
        Err(error) => vec![Finding::ok("prices", about), failed("books", &error)],
    }
}

/// Whether the budgets can be read, and how many there are; none where there is no file.
fn budgets(books: &Books) -> Option<Finding> {
    match books.budget_file() {
        Ok(Some(budgets)) => Some(Finding::ok("budgets", format!("{} budgets", budgets.budgets.len()))),
        Ok(None) => None,
        Err(error) => Some(Finding::fail("budgets", chain(&error), "correct the lines that are named")),
    }
}

/// Whether deliveries name organisations that the books know; nothing without deliveries.
async fn deliveries(books: &Books, config: &Config) -> Vec<Finding> {
    if config.deliveries.is_empty() {
        return Vec::new();
    }
    let deliverers = match Deliverer::all(config) {
        Ok(deliverers) => deliverers,
        Err(error) => return vec![failed("deliveries", &error)],
    };
    let mut unknown = Vec::new();
    for deliverer in &deliverers {
        match deliverer.unknown_orgs(books).await {
            Ok(words) => unknown.extend(words),
            Err(error) => return vec![failed("deliveries", &error)],
        }
    }
    if unknown.is_empty() {
        return vec![Finding::ok("deliveries", format!("{} deliveries", deliverers.len()))];
    }
    let warn = |word: String| Finding::warn("deliveries", word, "correct org of that [[delivery]] in the config");
    unknown.into_iter().map(warn).collect()
}

/// Whether the billing policy can be read, and what it says.
fn billing(books: &Books) -> Option<Finding> {
    let path = books.ledger().folder()?.join(BILLING_FILE);
    Some(match read_policy(&path) {
        Ok((policy, _)) if policy == BillingPolicy::default() => {
            Finding::ok("billing", format!("no {BILLING_FILE} says otherwise: held cards at the prices of the book"))
        }
        Ok((policy, _)) => Finding::ok("billing", format!("mode {}, version {}", policy.mode.name(), policy.version())),
        Err(error) => Finding::fail("billing", chain(&error), "correct the lines that are named"),
    })
}

/// Whether it is known of each cluster how many cards it has.
async fn capacity(books: &Books) -> Vec<Finding> {
    let request = ReportRequest::new(ReportKind::Capacity).grouped_by(&[Dimension::Cluster]);
    let table = match books.report(&request).await {
        Ok(reported) => reported.table,
        Err(error) => return vec![failed("capacity", &error)],
    };
    if table.rows.is_empty() {
        return vec![Finding::warn(
            "capacity",
            "the books are empty",
            "cardhour import jobs FILE books a site's records",
        )];
    }
    let column = table.columns.iter().position(|column| column.name == "capacity_card_hours");
    let mut unknown = Vec::new();
    for row in &table.rows {
        let has_capacity = column.is_some_and(|i| matches!(&row[i], Value::Decimal(hours) if !hours.is_zero()));
        if !has_capacity {
            unknown.push(match &row[0] {
                Value::Text(name) if !name.is_empty() => name.to_string(),
                _ => "(unnamed)".to_owned(),
            });
        }
    }
    if unknown.is_empty() {
        return vec![Finding::ok("capacity", format!("known of all {} clusters", table.rows.len()))];
    }
    vec![Finding::warn(
        "capacity",
        format!("not known of {}: what nobody held there isn't counted as free", unknown.join(", ")),
        "cardhour import nodes FILE",
    )]
}

fn failed(check: &'static str, error: &Error) -> Finding {
    Finding::fail(check, chain(error), "cardhour -vv says more")
}
