//! `[[delivery]]`: what is delivered by schedule, in which formats, where to and when.
//!
//! Start at [`read`]. Does not: deliver anything, know what is due.

use super::{BucketConfig, text_of, unknown};
use crate::cli::FileFormat;
use crate::render::Format;
use crate::request::ReportName;
use cardhour_books::delivery::{Closing, Schedule};
use cardhour_books::focus::Version;
use cardhour_bucket::{Bucket, Settings};
use chrono::{NaiveTime, Weekday};
use std::fmt::Write as _;
use std::path::PathBuf;
use toml::Value;

/// One `[[delivery]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryConfig {
    /// Its name, by which what was delivered is remembered; no two are the same.
    pub name: String,
    /// What is delivered, and in which formats, at least one.
    pub what: What,
    /// Where to.
    pub to: Destination,
    /// When.
    pub schedule: Schedule,
    /// Months that are open are delivered too, and again when they are closed.
    pub draft: bool,
}

/// What is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Statements of a month, a file each.
    Statement {
        /// How they are written.
        formats: Vec<StatementFormat>,
        /// Of which organisations; empty: of all, the platform's own among them.
        orgs: Vec<String>,
    },
    /// A month in FOCUS.
    Focus {
        /// Which version of it.
        version: Version,
        /// How its files are written: one way, since the metadata beside them names them.
        format: FileFormat,
    },
    /// A report of a week or month, as the command prints it.
    Report {
        /// Which.
        report: ReportName,
        /// How it is written.
        formats: Vec<Format>,
    },
}

/// How a statement is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementFormat {
    /// A workbook.
    Xlsx,
    /// Its entries for a spreadsheet.
    Csv,
    /// A page to print.
    Html,
    /// Its entries for programs.
    Parquet,
}

/// Where files are put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Into a folder, which is made where there is none.
    Folder(PathBuf),
    /// Into a bucket.
    Bucket(Box<BucketConfig>),
}

/// The keys, in the order in which they are told.
const KEYS: [&str; 15] = [
    "name",
    "what",
    "format",
    "to",
    "every",
    "day",
    "weekday",
    "time",
    "org",
    "draft",
    "endpoint",
    "region",
    "path_style",
    "credentials_file",
    "ca_file",
];

/// Before people come to work, and after the night's imports.
const USUAL_TIME: NaiveTime = NaiveTime::from_hms_opt(6, 0, 0).expect("a time of day");

impl DeliveryConfig {
    /// What its months wait for.
    pub fn closing(&self) -> Closing {
        match self.what {
            What::Report { .. } => Closing::Any,
            What::Statement { .. } | What::Focus { .. } if self.draft => Closing::DraftsToo,
            What::Statement { .. } | What::Focus { .. } => Closing::Closed,
        }
    }
}

impl StatementFormat {
    const ALL: [Self; 4] = [Self::Xlsx, Self::Csv, Self::Html, Self::Parquet];

    /// Its name, and what its files end with.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xlsx => "xlsx",
            Self::Csv => "csv",
            Self::Html => "html",
            Self::Parquet => "parquet",
        }
    }
}

impl What {
    /// What the config calls it: `statement`, `focus 1.4`, `report weekly`.
    pub fn name(&self) -> String {
        match self {
            Self::Statement { .. } => "statement".to_owned(),
            Self::Focus { version, .. } => format!("focus {version}"),
            Self::Report { report, .. } => format!("report {}", report.name()),
        }
    }

    fn formats(&self) -> Vec<&'static str> {
        match self {
            Self::Statement { formats, .. } => formats.iter().map(|format| format.name()).collect(),
            Self::Focus { format, .. } => vec![format.name()],
            Self::Report { formats, .. } => formats.iter().map(|format| report_format(*format)).collect(),
        }
    }
}

/// What the files of a report in a format end with.
pub fn report_format(format: Format) -> &'static str {
    match format {
        Format::Table => "txt",
        Format::Csv => "csv",
        Format::Json => "json",
        Format::Parquet => "parquet",
        Format::Html => "html",
        Format::Md => "md",
    }
}

/// All of them. What is wrong is added to `faults`, each with its key path. Errors: it is no list of tables.
pub(super) fn read(value: &Value, faults: &mut Vec<String>) -> Result<Vec<DeliveryConfig>, String> {
    let tables = value.as_array().ok_or("has to be written as [[delivery]]")?;
    let mut deliveries: Vec<DeliveryConfig> = Vec::with_capacity(tables.len());
    for (number, value) in (1..).zip(tables) {
        let path = format!("delivery[{number}]");
        let mut keys = Keys::default();
        match value.as_table() {
            None => faults.push(format!("{path}: has to be a table: [[delivery]]")),
            Some(table) => {
                let before = faults.len();
                for (key, value) in table {
                    if let Err(fault) = keys.read(key, value) {
                        faults.push(format!("{path}.{key}: {fault}"));
                    }
                }
                // What was said wrongly isn't missing.
                let is_sound = faults.len() == before;
                let made = keys.finish(&mut |key: &str, fault: &str| {
                    if is_sound {
                        faults.push(format!("{path}.{key}: {fault}"));
                    }
                });
                let Some(made) = made else { continue };
                if deliveries.iter().any(|other| other.name == made.name) {
                    faults.push(format!("{path}.name: another delivery is called {:?} too", made.name));
                }
                deliveries.push(made);
            }
        }
    }
    Ok(deliveries)
}

/// The keys of one as they were read, before they are held against each other.
#[derive(Default)]
struct Keys {
    name: Option<String>,
    what: Option<Kind>,
    formats: Vec<String>,
    to: Option<String>,
    every: Option<Every>,
    day: Option<u32>,
    weekday: Option<Weekday>,
    time: Option<NaiveTime>,
    orgs: Vec<String>,
    draft: Option<bool>,
    settings: Settings,
    credentials_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

#[derive(Clone, Copy)]
enum Kind {
    Statement,
    Focus(Version),
    Report(ReportName),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Every {
    Week,
    Month,
}

impl Keys {
    /// Reads one key. Errors: what is wrong with it.
    fn read(&mut self, key: &str, value: &Value) -> Result<(), String> {
        match key {
            "name" => match text_of(value)?.trim() {
                "" => return Err("says nothing: what was delivered is remembered by it".to_owned()),
                name if name.contains(char::is_control) => return Err("has a control character".to_owned()),
                name => self.name = Some(name.to_owned()),
            },
            "what" => self.what = Some(kind(text_of(value)?)?),
            "format" => self.formats = texts(value)?,
            "to" => self.to = Some(text_of(value)?.to_owned()),
            "every" => {
                self.every = Some(match text_of(value)? {
                    "week" => Every::Week,
                    "month" => Every::Month,
                    other => return Err(format!("{other:?} is not week or month")),
                });
            }
            "day" => {
                let day = value.as_integer().and_then(|day| u32::try_from(day).ok());
                let day = day.filter(|day| (1..=31).contains(day));
                self.day = Some(day.ok_or("not a day of the month: 1 to 31, in shorter months the last")?);
            }
            "weekday" => {
                let text = text_of(value)?;
                self.weekday = Some(text.parse().map_err(|_| format!("{text:?} is not a weekday such as mon"))?);
            }
            "time" => {
                let text = text_of(value)?;
                let time = NaiveTime::parse_from_str(text, "%H:%M");
                self.time = Some(time.map_err(|_| format!("{text:?} is not a local time such as 06:00"))?);
            }
            "org" => self.orgs = texts(value)?,
            "draft" => self.draft = Some(value.as_bool().ok_or("neither true nor false")?),
            "endpoint" => self.settings.endpoint = Some(text_of(value)?.to_owned()),
            "region" => self.settings.region = Some(text_of(value)?.to_owned()),
            "path_style" => self.settings.path_style = Some(value.as_bool().ok_or("neither true nor false")?),
            "credentials_file" => self.credentials_file = Some(text_of(value)?.into()),
            "ca_file" => self.ca_file = Some(text_of(value)?.into()),
            _ => return Err(unknown(&KEYS)),
        }
        Ok(())
    }

    /// What it comes to; none where something is missing or doesn't go together, which `fault` is told with its key.
    fn finish(self, fault: &mut impl FnMut(&str, &str)) -> Option<DeliveryConfig> {
        let mut sound = true;
        let mut fault = |key: &str, reason: &str| {
            sound = false;
            fault(key, reason);
        };
        if self.name.is_none() {
            fault("name", "is missing: what was delivered is remembered by it");
        }
        if self.to.is_none() {
            fault("to", "is missing: a folder, or s3://BUCKET/PREFIX");
        }
        let Some(kind) = self.what else {
            fault("what", "is missing: statement, focus 1.2, focus 1.4, or report and its name");
            return None;
        };
        let (usual, other) = match kind {
            Kind::Statement | Kind::Focus(_) | Kind::Report(ReportName::Monthly) => (Every::Month, false),
            Kind::Report(ReportName::Weekly) => (Every::Week, false),
            Kind::Report(
                ReportName::Books(_) | ReportName::Output | ReportName::Advised(_) | ReportName::Isolation,
            ) => (Every::Month, true),
        };
        let every = self.every.unwrap_or(usual);
        if every != usual && !other {
            fault("every", if usual == Every::Week { "this is of a week" } else { "this is of a month" });
        }
        let time = self.time.unwrap_or(USUAL_TIME);
        let schedule = match every {
            Every::Week => Schedule::Weekly { weekday: self.weekday.unwrap_or(Weekday::Mon), time },
            Every::Month => Schedule::Monthly { day: self.day.unwrap_or(1), time },
        };
        match every {
            Every::Week if self.day.is_some() => fault("day", "is of months: take weekday"),
            Every::Month if self.weekday.is_some() => fault("weekday", "is of weeks: take day"),
            Every::Week | Every::Month => {}
        }
        let is_statement = matches!(kind, Kind::Statement);
        if !self.orgs.is_empty() && !is_statement {
            fault("org", "is for statements: FOCUS and reports are of all organisations");
        }
        if self.draft.is_some() && matches!(kind, Kind::Report(_)) {
            fault("draft", "says nothing of a report, which waits for no closing");
        }
        let what = match kind {
            Kind::Statement => formats(&self.formats, "xlsx", |name| {
                StatementFormat::ALL.into_iter().find(|format| format.name() == name)
            })
            .map(|formats| What::Statement { formats, orgs: self.orgs.clone() })
            .map_err(|name| format!("a statement has no format {name:?}: take xlsx, csv, html, parquet")),
            Kind::Focus(version) => formats(&self.formats, "csv", |name| {
                [FileFormat::Csv, FileFormat::Parquet].into_iter().find(|format| format.name() == name)
            })
            .map_err(|name| format!("FOCUS has no format {name:?}: take csv or parquet"))
            .and_then(|formats| match formats[..] {
                [format] => Ok(What::Focus { version, format }),
                _ => Err("of FOCUS there is one a delivery: its metadata names the files".to_owned()),
            }),
            Kind::Report(report) => formats(&self.formats, "html", |name| {
                let all = [Format::Table, Format::Csv, Format::Json, Format::Parquet, Format::Html, Format::Md];
                all.into_iter().find(|format| report_format(*format) == name)
            })
            .map(|formats| What::Report { report, formats })
            .map_err(|name| format!("a report has no format {name:?}: take html, md, csv, json, parquet, txt")),
        };
        if let Err(reason) = &what {
            fault("format", reason);
        }
        let to = self.to.as_ref().and_then(|to| self.destination(to, &mut fault));
        if !sound {
            return None;
        }
        Some(DeliveryConfig { name: self.name?, what: what.ok()?, to: to?, schedule, draft: self.draft == Some(true) })
    }

    fn destination(&self, to: &str, fault: &mut impl FnMut(&str, &str)) -> Option<Destination> {
        let Self { settings, credentials_file, ca_file, .. } = self;
        if !to.contains("://") {
            let of_buckets = *settings != Settings::default() || credentials_file.is_some() || ca_file.is_some();
            if of_buckets {
                fault(
                    "endpoint, region, path_style, credentials_file, ca_file",
                    "are for a bucket, and this is a folder",
                );
            }
            // The service and a command of cron don't stand in the same folder.
            if !to.starts_with('/') {
                fault("to", "is neither the whole path of a folder, such as /srv/finance, nor s3://BUCKET/PREFIX");
            }
            return Some(Destination::Folder(to.into()));
        }
        let settings = Settings { bucket: to.to_owned(), ..settings.clone() };
        match Bucket::new(&settings) {
            Ok(bucket) => {
                let (credentials_file, ca_file) = (credentials_file.clone(), ca_file.clone());
                Some(Destination::Bucket(Box::new(BucketConfig { settings, bucket, credentials_file, ca_file })))
            }
            Err(faults) => {
                for reason in faults {
                    let (key, reason) = reason.split_once(": ").unwrap_or(("bucket", &reason));
                    fault(if key == "bucket" { "to" } else { key }, reason);
                }
                None
            }
        }
    }
}

/// The formats of these names, or the usual one. Errors: the first name that none has.
fn formats<T: PartialEq>(names: &[String], usual: &str, of: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let usual = [usual.to_owned()];
    let names = if names.is_empty() { &usual } else { names };
    let mut formats = Vec::with_capacity(names.len());
    for name in names {
        let format = of(name).ok_or_else(|| name.clone())?;
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    Ok(formats)
}

fn kind(text: &str) -> Result<Kind, String> {
    let wrong = || {
        let reports: Vec<&str> = ReportName::all().map(ReportName::name).collect();
        format!(
            "{text:?} can't be delivered: statement, focus 1.2, focus 1.4, or report and one of {}",
            reports.join(", ")
        )
    };
    match text.split_once(' ') {
        None if text == "statement" => Ok(Kind::Statement),
        Some(("focus", version)) => Version::from_name(version).map(Kind::Focus).ok_or_else(wrong),
        Some(("report", name)) => ReportName::from_name(name).map(Kind::Report).ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// A text, or a list of texts.
fn texts(value: &Value) -> Result<Vec<String>, String> {
    match value.as_array() {
        Some(list) => list.iter().map(|item| text_of(item).map(str::to_owned)).collect(),
        None => Ok(vec![text_of(value)?.to_owned()]),
    }
}

/// All of them as a config file says them.
pub(super) fn to_toml(deliveries: &[DeliveryConfig]) -> String {
    let mut out = String::new();
    let list = |texts: Vec<&str>| Value::Array(texts.into_iter().map(|text| Value::String(text.to_owned())).collect());
    for DeliveryConfig { name, what, to, schedule, draft } in deliveries {
        out.push_str("\n[[delivery]]\n");
        let mut line = |key: &str, value: Value| _ = writeln!(out, "{key} = {value}");
        line("name", Value::String(name.clone()));
        line("what", Value::String(what.name()));
        line("format", list(what.formats()));
        match to {
            Destination::Folder(folder) => line("to", Value::String(folder.display().to_string())),
            Destination::Bucket(bucket) => {
                line("to", Value::String(bucket.settings.bucket.clone()));
                let _ = write!(out, "{}", bucket.more());
            }
        }
        let mut line = |key: &str, value: Value| _ = writeln!(out, "{key} = {value}");
        let time = match schedule {
            Schedule::Weekly { weekday, time } => {
                line("every", Value::String("week".to_owned()));
                line("weekday", Value::String(weekday.to_string().to_lowercase()));
                time
            }
            Schedule::Monthly { day, time } => {
                line("every", Value::String("month".to_owned()));
                line("day", Value::Integer(i64::from(*day)));
                time
            }
        };
        line("time", Value::String(time.format("%H:%M").to_string()));
        if let What::Statement { orgs, .. } = what
            && !orgs.is_empty()
        {
            line("org", list(orgs.iter().map(String::as_str).collect()));
        }
        if *draft {
            line("draft", Value::Boolean(true));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use cardhour_books::delivery::Closing;
    use insta::assert_snapshot;
    use std::path::Path;

    #[test]
    fn what_is_delivered_is_printed_as_it_was_read() {
        let text = r#"
            ledger = "/srv/books"
            [[delivery]]
            name = "finance"
            what = "statement"
            format = ["xlsx", "html"]
            to = "/srv/finance"
            day = 3
            time = "07:30"
            org = "acme"
            draft = true
            [[delivery]]
            name = "cost tool"
            what = "focus 1.4"
            to = "s3://finance/gpu"
            endpoint = "https://minio.example"
            credentials_file = "/etc/cardhour/finance"
            [[delivery]]
            name = "monday"
            what = "report weekly"
            format = "md"
            to = "/srv/wiki"
            [[delivery]]
            name = "idle"
            what = "report idle"
            every = "week"
            weekday = "fri"
            to = "/srv/wiki"
        "#;
        let config = Config::parse(text, Path::new("config.toml")).unwrap();
        let closings: Vec<Closing> = config.deliveries.iter().map(super::DeliveryConfig::closing).collect();
        assert_eq!(closings, [Closing::DraftsToo, Closing::Closed, Closing::Any, Closing::Any]);
        let printed = config.to_toml(Some("/srv/books"));
        let (_, deliveries) = printed.split_once("\n[[delivery]]").unwrap();
        assert_snapshot!(deliveries.trim(), @r#"
        name = "finance"
        what = "statement"
        format = ["xlsx", "html"]
        to = "/srv/finance"
        every = "month"
        day = 3
        time = "07:30"
        org = ["acme"]
        draft = true

        [[delivery]]
        name = "cost tool"
        what = "focus 1.4"
        format = ["csv"]
        to = "s3://finance/gpu"
        endpoint = "https://minio.example"
        credentials_file = "/etc/cardhour/finance"
        every = "month"
        day = 1
        time = "06:00"

        [[delivery]]
        name = "monday"
        what = "report weekly"
        format = ["md"]
        to = "/srv/wiki"
        every = "week"
        weekday = "mon"
        time = "06:00"

        [[delivery]]
        name = "idle"
        what = "report idle"
        format = ["html"]
        to = "/srv/wiki"
        every = "week"
        weekday = "fri"
        time = "06:00"
        "#);
        assert_eq!(Config::parse(&printed, Path::new("config.toml")).unwrap().deliveries, config.deliveries);
    }

    #[test]
    fn every_fault_of_deliveries_is_told() {
        let text = r#"
            ledger = "/srv/books"
            [[delivery]]
            name = "a"
            what = "report money"
            time = "6"
            day = 32
            [[delivery]]
            name = "b"
            what = "statement"
            format = "md"
            every = "week"
            day = 2
            to = "/srv"
            ca_file = "/etc/ca.pem"
            [[delivery]]
            what = "report weekly"
            org = "acme"
            draft = false
            to = "s3://"
            [[delivery]]
            name = "c"
            what = "focus 1.2"
            to = "/srv"
            [[delivery]]
            name = "c"
            what = "focus 1.2"
            to = "/srv"
            [[delivery]]
            name = "d"
            what = "focus 1.2"
            format = ["csv", "parquet"]
            to = "srv"
        "#;
        let faults = Config::parse(text, Path::new("config.toml")).unwrap_err().to_string();
        assert_snapshot!(faults, @r#"
        config file config.toml has 14 fault(s):
          delivery[1].day: not a day of the month: 1 to 31, in shorter months the last
          delivery[1].time: "6" is not a local time such as 06:00
          delivery[1].what: "report money" can't be delivered: statement, focus 1.2, focus 1.4, or report and one of bill, usage, efficiency, idle, waste, capacity, coverage, owners, inventory, weekly, monthly, output, queue, quota, decisions, advice, isolation
          delivery[2].every: this is of a month
          delivery[2].day: is of months: take weekday
          delivery[2].format: a statement has no format "md": take xlsx, csv, html, parquet
          delivery[2].endpoint, region, path_style, credentials_file, ca_file: are for a bucket, and this is a folder
          delivery[3].name: is missing: what was delivered is remembered by it
          delivery[3].org: is for statements: FOCUS and reports are of all organisations
          delivery[3].draft: says nothing of a report, which waits for no closing
          delivery[3].to: "s3://" has a name that no bucket has
          delivery[5].name: another delivery is called "c" too
          delivery[6].format: of FOCUS there is one a delivery: its metadata names the files
          delivery[6].to: is neither the whole path of a folder, such as /srv/finance, nor s3://BUCKET/PREFIX
        "#);
        let alone = "[[delivery]]\nname = \"a\"\nwhat = \"statement\"\nto = \"/srv\"\n";
        let faults = Config::parse(alone, Path::new("config.toml")).unwrap_err().to_string();
        assert!(faults.contains("delivery: ledger has to say whose months are delivered"), "{faults}");
    }
}
