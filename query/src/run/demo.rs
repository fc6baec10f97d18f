//! `demo`: a simulated site through the same doors as any other.

mod told;

use super::{Exit, Scene, now, print, serving};
use crate::books::{Books, PRICES_FILE, SIMULATED};
use crate::cli::{DemoArgs, Global, ImportCommand, JobsArgs, Output, OutputKind, SiteArgs};
use crate::error::Error;
use crate::import::import;
use crate::render::{quoted, trace_hint};
use crate::request::{Covers, Moment, ReportRequest};
use crate::serve;
use crate::terminal::{say, tell, write_file};
use cardhour_books::demo::{DemoFile, DemoFileKind, DemoSite, Tale, TaleKind, demo_site};
use cardhour_books::report::{Dimension, ReportKind};
use cardhour_domain::{Month, Timestamp, Zone};
use std::path::{Path, PathBuf};

/// Makes the pool, imports it with what its nodes told, prints its bill, capacity and efficiency and what is worth a look, and serves it. Errors: the ledger that was named is a site's.
pub async fn run(scene: &Scene, global: &Global, args: &DemoArgs) -> Result<Exit, Error> {
    let month = args.month.unwrap_or_else(last_whole_month);
    let place = match &global.ledger {
        Some(place) => place.clone(),
        // One ledger for each seed and month, and for each way of simulating: the same demo again changes nothing, another is another.
        None => format!(
            "{}-demo/2-seed-{}-{month}",
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
    let rows = told::take_in(books.ledger(), &site).await?;
    say(format!("collectors of {month}: {rows} rows that are new\n").as_bytes())?;
    show(&books, &place, month).await?;
    for tale in &site.tales {
        say(format!("\n{}\n", tale_text(tale, &site, &place)).as_bytes())?;
    }
    say(b"\n")?;
    tell(&format!("ask more of it: cardhour --ledger {place} report usage --by user"));
    if args.no_serve {
        return Ok(Exit::Done);
    }
    let address = args.address.unwrap_or(scene.config.http_address);
    let listener = match serve::bind(address, None).await {
        // Another service has the usual port; a demo is content with any.
        Err(Error::Listen { .. }) if args.address.is_none() => serve::bind(([127, 0, 0, 1], 0).into(), None).await?,
        other => other?,
    };
    serving::until_stopped(books, listener, None, None, serving::Beside::default()).await
}

async fn show(books: &Books, place: &str, month: Month) -> Result<(), Error> {
    for request in [
        ReportRequest::new(ReportKind::Bill).of_month(month),
        ReportRequest::new(ReportKind::Capacity).grouped_by(&[Dimension::Month]),
        ReportRequest::new(ReportKind::Efficiency).of_month(month),
    ] {
        say(b"\n")?;
        let mut table = books.report(&request).await?.table;
        table.notes.extend(trace_hint(&table, &format!(" --ledger {}", quoted(place))));
        print::table(&table, &Output::default())?;
    }
    Ok(())
}

/// What is worth a look, and the command that shows it.
fn tale_text(tale: &Tale, site: &DemoSite, place: &str) -> String {
    let Tale { job, project, user, node, cards, .. } = tale;
    let month = site.months[1];
    let local = |at: Timestamp| {
        let text = site.zone.local(at).map(|at| at.format("%m-%d %H:%M").to_string());
        text.expect("a month of the calendar")
    };
    let (from, to) = (local(tale.during.start()), local(tale.during.end()));
    let (what, ask) = match tale.kind {
        TaleKind::IdleNotebook => (
            format!(
                "an idle notebook: job {job} of {user} ({project}) held a card of {node} from {from} to {to} and worked for an hour"
            ),
            format!("report idle --month {month} --by user"),
        ),
        TaleKind::InputBound => (
            format!(
                "cards that wait for data: job {job} of {user} ({project}), {cards} cards of {node} from {from} to {to}"
            ),
            format!(
                "sql \"select ts, avg(sm_active_pct) as sm_pct, sum(pcie_bytes) / 1000000000 as pcie_gb from samples \
                 where attempt_key = '{}' and interval_ms > 15000 \
                 group by ts order by ts limit 12\"",
                tale.seen_as
            ),
        ),
        TaleKind::FatalXid => (
            format!(
                "a fault: a card of {node} fell off the bus on {to}, and with it went job {job} of {user} ({project}), {cards} cards since {from}"
            ),
            format!(
                "sql \"select ts, node, kind, number, detail from node_events where card_uuid = '{}' order by ts\"",
                tale.card_uuid.as_deref().unwrap_or_default()
            ),
        ),
    };
    format!("{what}\n    cardhour --ledger {} {ask}", quoted(place))
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
