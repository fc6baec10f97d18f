//! `import`: files in, books out, and a word on what was done.
//!
//! Reading and mapping is `cardhour_books`' own; this file opens files, shows how far it is, and hands the outcome to the ledger.

pub mod metrics;
pub mod parquet;
pub mod prometheus;
pub mod source;

use crate::books::Books;
use crate::cli::{ImportCommand, JobsArgs, OutputKind, SiteArgs};
use crate::error::Error;
use crate::render::grouped;
use crate::request::RequestError;
use crate::terminal::{Progress, Unit, say, tell};
use cardhour_books::attempt::Rejected;
use cardhour_books::import::fields::JOB_FIELDS;
use cardhour_books::import::jobs::{Imported, Options, attempts};
use cardhour_books::import::map::MapFile;
use cardhour_books::import::mapping::Mapping;
use cardhour_books::import::readers::read;
use cardhour_books::import::record::{Record, RecordText};
use cardhour_books::import::site::costs::{COST_FIELDS, costs};
use cardhour_books::import::site::nodes::{NODE_FIELDS, nodes};
use cardhour_books::import::site::outages::{OUTAGE_FIELDS, outages};
use cardhour_books::import::site::outputs::{OUTPUT_FIELDS, outputs};
use cardhour_books::import::site::reservations::{RESERVATION_FIELDS, reservations};
use cardhour_books::import::site::{ListError, Listed};
use cardhour_books::import::when::check_past;
use cardhour_domain::Timestamp;
use cardhour_ledger::Booked;
use source::{Content, Source};
use std::path::Path;

/// What an import did, over all its files. Counts of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows of the files.
    pub read: u64,
    /// How many of them are steps of jobs, which hold nothing themselves.
    pub steps: u64,
    /// What came of them.
    pub booked: Booked,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.read += other.read;
        self.steps += other.steps;
        self.booked.booked += other.booked.booked;
        self.booked.unchanged += other.booked.unchanged;
        self.booked.superseded += other.booked.superseded;
        self.booked.quarantined += other.booked.quarantined;
    }

    fn sentence(self) -> String {
        let Booked { booked, unchanged, superseded, quarantined } = self.booked;
        let count = |count: u64| grouped(&count.to_string());
        let steps = match self.steps {
            0 => String::new(),
            1 => ", 1 of them a step".to_owned(),
            steps => format!(", {} of them steps", count(steps)),
        };
        format!(
            "{} rows read{steps}: {} booked, {} unchanged, {} superseded, {} quarantined",
            count(self.read),
            count(booked),
            count(unchanged),
            count(superseded),
            count(quarantined)
        )
    }

    fn json(self) -> String {
        let Booked { booked, unchanged, superseded, quarantined } = self.booked;
        serde_json::json!({
            "read": self.read, "steps": self.steps, "booked": booked, "unchanged": unchanged, "superseded": superseded, "quarantined": quarantined
        })
        .to_string()
    }
}

/// Books the files of a command. `now`: later times in them can't be true. Errors: a file that can't be read, a map that
/// doesn't fit it, the ledger's own; rows that can't be booked are none.
pub async fn import(books: &Books, command: &ImportCommand, now: Timestamp) -> Result<Tally, Error> {
    let (files, output) = match command {
        ImportCommand::Metrics(args) => {
            let tally = metrics::import_metrics(books, args, now).await?;
            let text = match args.output {
                OutputKind::Json => tally.json(),
                OutputKind::Text => tally.sentence(),
            };
            say(format!("{text}\n").as_bytes())?;
            return Ok(tally);
        }
        ImportCommand::Jobs(args) => (&args.files, args.output),
        ImportCommand::Nodes(args)
        | ImportCommand::Reservations(args)
        | ImportCommand::Outages(args)
        | ImportCommand::Costs(args)
        | ImportCommand::Output(args) => (&args.files, args.output),
    };
    let mut all = Tally::default();
    for file in files {
        let tally = match command {
            ImportCommand::Jobs(args) => import_jobs(books, file, args, now).await?,
            ImportCommand::Metrics(_) => unreachable!("its files are one import"),
            ImportCommand::Nodes(args) => {
                let (name, listed) = list(file, args, NODE_FIELDS, nodes)?;
                let read = listed.rows_read;
                warn_of(&name, &listed.rejected);
                Tally {
                    read,
                    steps: 0,
                    booked: books.ledger().import_nodes(&name, listed.rows, listed.rejected).await?,
                }
            }
            ImportCommand::Reservations(args) => {
                let (name, listed) = list(file, args, RESERVATION_FIELDS, reservations)?;
                let read = listed.rows_read;
                warn_of(&name, &listed.rejected);
                Tally {
                    read,
                    steps: 0,
                    booked: books.ledger().import_reservations(&name, listed.rows, listed.rejected).await?,
                }
            }
            ImportCommand::Outages(args) => {
                let (name, listed) = list(file, args, OUTAGE_FIELDS, outages)?;
                let read = listed.rows_read;
                warn_of(&name, &listed.rejected);
                Tally {
                    read,
                    steps: 0,
                    booked: books.ledger().import_outages(&name, listed.rows, listed.rejected).await?,
                }
            }
            ImportCommand::Costs(args) => {
                let (name, listed) = list(file, args, COST_FIELDS, costs)?;
                let read = listed.rows_read;
                warn_of(&name, &listed.rejected);
                Tally {
                    read,
                    steps: 0,
                    booked: books.ledger().import_costs(&name, listed.rows, listed.rejected).await?,
                }
            }
            ImportCommand::Output(args) => {
                let (name, listed) = list(file, args, OUTPUT_FIELDS, outputs)?;
                let read = listed.rows_read;
                warn_of(&name, &listed.rejected);
                Tally {
                    read,
                    steps: 0,
                    booked: books.ledger().import_outputs(&name, listed.rows, listed.rejected).await?,
                }
            }
        };
        if output == OutputKind::Text {
            say(format!("{}: {}\n", source::name(file), tally.sentence()).as_bytes())?;
        }
        all.add(tally);
    }
    match output {
        OutputKind::Json => say(format!("{}\n", all.json()).as_bytes())?,
        OutputKind::Text if files.len() > 1 => say(format!("all: {}\n", all.sentence()).as_bytes())?,
        OutputKind::Text => {}
    }
    Ok(all)
}

async fn import_jobs(books: &Books, file: &Path, args: &JobsArgs, now: Timestamp) -> Result<Tally, Error> {
    let zone = books.zone();
    let options = Options {
        as_of: args.as_of.map(|at| at.instant(zone)),
        covers: args.covers.map(|covers| covers.interval(zone)).transpose()?,
        cluster: args.cluster.as_deref().map(Into::into),
        now,
    };
    let map = args.map.as_deref().map(|path| read_map(path, JOB_FIELDS)).transpose()?;
    for said in [options.as_of, map.as_ref().and_then(|map| map.as_of)].into_iter().flatten() {
        // Open jobs would be held, and billed, up to then.
        if check_past("as_of", said, now).is_err() {
            return Err(RequestError::AsOf(said).into());
        }
    }
    let (path, format) = (file.to_owned(), args.format);
    let parsed = tokio::task::spawn_blocking(move || {
        let source = Source::read(&path)?;
        read_jobs(&source, format, map, &options, usize::MAX)
    });
    // The file is read on threads of its own.
    let (parsed, made) = tokio::join!(parsed, books.ledger().make_tables());
    let imported = parsed.expect("reading a file ends in rows or in an error")?;
    made?;
    let name = source::name(file);
    for note in &imported.notes {
        tell(&format!("note: {note}"));
    }
    warn_of(&name, &imported.rejected);
    let mut progress = Progress::new(&format!("booking {name}"), 0, Unit::Items);
    let (read, steps) = (imported.rows_read, imported.steps);
    if steps > 0 && imported.attempts.is_empty() && imported.rejected.is_empty() {
        tell("note: there are only steps in it, which hold nothing themselves: export their jobs, too");
    }
    let booking = books.ledger().import_jobs(&name, imported.attempts, imported.rejected, imported.coverage);
    let booked = progress.during(booking).await?;
    Ok(Tally { read, steps, booked })
}

/// The attempts of a source, of at most `most` records. Errors: nothing can be read from it, or the map doesn't fit.
pub fn read_jobs(
    source: &Source,
    format: Option<cardhour_books::import::readers::Format>,
    map: Option<MapFile>,
    options: &Options,
    most: usize,
) -> Result<Imported, Error> {
    let format = source.format(format, map.as_ref())?;
    let mapping = Mapping { format, map: map.unwrap_or_default() };
    let content = source.content(format)?;
    let input = content.bytes();
    let mut progress = Progress::new(&format!("reading {}", source.name), input.len() as u64, Unit::Bytes);
    let reading = read(content.format(), input, &mapping.map.reader_options())
        .map_err(|error| Error::Input { file: source.name.clone(), source: Box::new(error) })?;
    let is_parquet = matches!(content, Content::Rows(_));
    let numbered = reading.records.zip(1u64..).map(|(record, row)| match record {
        // Parquet has rows and no lines.
        Ok(record) if is_parquet => Ok(Record { line: row, ..record }),
        Err(rejected) if is_parquet => Err(Rejected { line: row, ..rejected }),
        record => record,
    });
    let mut count = 0u64;
    let records = numbered.take(most).inspect(|record| {
        count += 1;
        if count.is_multiple_of(4096)
            && let Ok(record) = record
            && let RecordText::Span(span) = &record.text
        {
            progress.at(span.end as u64);
        }
    });
    let mut imported = attempts(input, &reading.columns, records, &mapping, options)
        .map_err(|error| Error::Map { file: source.name.clone(), source: Box::new(error) })?;
    imported.steps += reading.steps;
    Ok(imported)
}

/// A map from its file. Errors: it can't be read, or is faulty.
pub fn read_map(path: &Path, fields: &[(&str, cardhour_books::import::fields::Kind)]) -> Result<MapFile, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::File {
        doing: "read the map",
        path: path.to_owned(),
        source,
    })?;
    MapFile::parse(&text, fields)
        .map_err(|error| Error::Map { file: path.display().to_string(), source: Box::new(error) })
}

fn list<T>(
    file: &Path,
    args: &SiteArgs,
    fields: &[(&str, cardhour_books::import::fields::Kind)],
    read: impl Fn(&[u8], &MapFile) -> Result<Listed<T>, ListError>,
) -> Result<(String, Listed<T>), Error> {
    let mut map = args.map.as_deref().map(|path| read_map(path, fields)).transpose()?.unwrap_or_default();
    if let Some(cluster) = &args.cluster {
        map.cluster = Some(cluster.clone());
    }
    let source = Source::read(file)?;
    let content = source.content(map.format.unwrap_or(cardhour_books::import::readers::Format::Csv))?;
    let listed = read(content.bytes(), &map)
        .map_err(|error| Error::List { file: source.name.clone(), source: Box::new(error) })?;
    Ok((source.name, listed))
}

/// Rows that are told one by one; the rest is in `quarantine`.
const MOST_TOLD: usize = 3;

fn warn_of(name: &str, rejected: &[Rejected]) {
    for row in rejected.iter().take(MOST_TOLD) {
        let field = if row.field.is_empty() { String::new() } else { format!("{}: ", row.field) };
        tell(&format!("{name}:{}: {field}{}", row.line, row.reason));
    }
    if rejected.len() > MOST_TOLD {
        tell(&format!("{name}: and {} more", rejected.len() - MOST_TOLD));
    }
    if !rejected.is_empty() {
        tell("rows that can't be booked: cardhour sql 'select file, line, field, reason from quarantine'");
    }
}
