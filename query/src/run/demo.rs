//! `demo`: a simulated site through the same door as any other.

use super::{Exit, Scene, now, print, serving};
use crate::books::{Books, PRICES_FILE, SIMULATED};
use crate::cli::{DemoArgs, Global, ImportCommand, JobsArgs, Output, OutputKind, SiteArgs};
use crate::error::Error;
use crate::import::import;
use crate::render::{quoted, trace_hint};
use crate::request::{Covers, Moment, ReportRequest};
use crate::serve;
use crate::terminal::{say, tell, write_file};
use cardhour_books::demo::{DemoFile, DemoFileKind, DemoSite, demo_site};
use cardhour_books::report::{Dimension, ReportKind};
use cardhour_domain::{Month, Zone};
use std::path::{Path, PathBuf};

/// Makes the pool, imports it, prints its bill and capacity, and serves it. Errors: the ledger that was named is a site's.
pub async fn run(scene: &Scene, global: &Global, args: &DemoArgs) -> Result<Exit, Error> {
    let month = args.month.unwrap_or_else(last_whole_month);
    let place = match &global.ledger {
        Some(place) => place.clone(),
        // One ledger for each seed and month: the same demo again changes nothing, another is another.
        None => format!(
            "{}-demo/seed-{}-{month}",
            scene.surroundings.default_ledger().ok_or(Error::NoPlace)?.display(),
            args.seed
        ),
    };
    let site = demo_site(args.seed, month);
    tell(SIMULATED);
    tell(&format!("its ledger: {place}"));
    let books = Books::open_or_make(&place, Some(site.zone), true, scene.config.sql).await?;
    let folder = books.ledger().folder().filter(|_| books.is_demo()).ok_or_else(|| Error::NotDemo(place.clone()))?;
    for command in files_of(&site, &folder)? {
        import(&books, &command, now()).await?;
    }
    show(&books, &place, month).await?;
    say(b"\n")?;
    tell(&format!("ask more of it: cardhour --ledger {place} report usage --by user"));
    if args.no_serve {
        return Ok(Exit::Done);
    }
    let address = args.address.unwrap_or(scene.config.http_address);
    let listener = match serve::bind(address, false).await {
        // Another service has the usual port; a demo is content with any.
        Err(Error::Listen { .. }) if args.address.is_none() => serve::bind(([127, 0, 0, 1], 0).into(), false).await?,
        other => other?,
    };
    serving::until_stopped(books, listener, None, None).await
}

async fn show(books: &Books, place: &str, month: Month) -> Result<(), Error> {
    for request in [
        ReportRequest::new(ReportKind::Bill).of_month(month),
        ReportRequest::new(ReportKind::Capacity).grouped_by(&[Dimension::Month]),
    ] {
        say(b"\n")?;
        let mut table = books.report(&request).await?.table;
        table.notes.extend(trace_hint(&table, &format!(" --ledger {}", quoted(place))));
        print::table(&table, &Output::default())?;
    }
    Ok(())
}

/// Writes the site's files beside its ledger, the price book into it, and says how each is imported.
fn files_of(site: &DemoSite, ledger: &Path) -> Result<Vec<ImportCommand>, Error> {
    let folder = ledger.join("demo-files");
    std::fs::create_dir_all(&folder).map_err(|source| Error::File {
        doing: "make the folder",
        path: folder.clone(),
        source,
    })?;
    let mut commands = Vec::new();
    for file in &site.files {
        let path = match file.kind {
            DemoFileKind::Prices => ledger.join(PRICES_FILE),
            _ => folder.join(file.name),
        };
        write_file(&path, &file.bytes)?;
        commands.extend(command(site, file, path, &folder));
    }
    Ok(commands)
}

fn command(site: &DemoSite, file: &DemoFile, path: PathBuf, folder: &Path) -> Option<ImportCommand> {
    let map = file.map.map(|map| folder.join(map));
    let list = |path| SiteArgs { files: vec![path], map: map.clone(), cluster: None, output: OutputKind::Text };
    Some(match file.kind {
        DemoFileKind::Prices | DemoFileKind::Map => return None,
        DemoFileKind::Nodes => ImportCommand::Nodes(list(path)),
        DemoFileKind::Reservations => ImportCommand::Reservations(list(path)),
        DemoFileKind::Outages => ImportCommand::Outages(list(path)),
        DemoFileKind::Jobs => ImportCommand::Jobs(JobsArgs {
            files: vec![path],
            format: None,
            map,
            as_of: Some(Moment::Instant(site.as_of)),
            covers: Some(Covers { from: Moment::Instant(site.covers.start()), to: Moment::Instant(site.covers.end()) }),
            cluster: None,
            output: OutputKind::Text,
        }),
    })
}

/// The month before the one that is under way, in UTC.
fn last_whole_month() -> Month {
    let first = Zone::UTC.month(now()).expect("a clock of this age").first_date();
    let before = first.pred_opt().expect("there is a day before");
    Zone::UTC.month(Zone::UTC.start_of_day(before)).expect("a day of this age")
}
