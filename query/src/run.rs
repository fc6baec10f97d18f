//! From a command line to what it does, and from what came of it to an exit code.

mod closing;
mod deliver;
mod demo;
mod export;
mod isolation_test;
mod live;
mod print;
mod reclaim;
mod replay;
mod serving;
mod up;

use crate::answer::Rows;
use crate::books::Books;
use crate::cli::{
    BudgetsArgs, Cli, Command, Global, ImportCommand, MaintainArgs, MeArgs, Output, PlanArgs, PriceCommand,
    PriceTryArgs, QuoteArgs, ReconcileArgs, ReportArgs, SqlArgs, TokenArgs, VerifyArgs,
};
use crate::clock::now;
use crate::config::{BucketConfig, Config, ConfigError, Surroundings, ledger_place};
use crate::doctor::{self, Verdict};
use crate::error::{Error, Remedy, chain};
use crate::events::{self, Channel};
use crate::import::import;
use crate::incoming::Incoming;
use crate::init::init;
use crate::maintained;
use crate::render::{self, quoted, trace_hint};
use crate::request::{Asked, ReportRequest};
use crate::serve::node_tokens::NodeTokens;
use crate::terminal::{Progress, Unit, put, say, style, tell};
use crate::verified;
use cardhour_books::report::ReportKind;
use cardhour_books::table::Table;
use cardhour_ledger::{ExportedBill, Maintain};
use clap::CommandFactory;
use std::io::Read;
use std::path::Path;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// The answer is no: holes in the price book, a check that failed.
    No,
    /// Done, but some rows went to quarantine.
    Quarantined,
}

impl Exit {
    /// Its exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Quarantined => 4,
        }
    }
}

/// The exit code of an error: 2 where the caller asked wrongly, 3 where it failed.
pub fn error_code(error: &Error) -> u8 {
    match error.remedy() {
        Remedy::Caller | Remedy::CallerNotFound => 2,
        Remedy::Retry | Remedy::Operator => 3,
    }
}

/// What every command has: the config and where the ledger is.
struct Scene {
    config: Config,
    surroundings: Surroundings,
    place: Option<String>,
}

impl Scene {
    fn new(global: &Global) -> Result<Self, Error> {
        let surroundings = Surroundings::of_process();
        let config = Config::load(global.config.as_deref(), &surroundings)?;
        let place = ledger_place(global.ledger.as_deref(), &config, &surroundings);
        Ok(Self { config, surroundings, place })
    }

    fn place(&self) -> Result<&str, Error> {
        self.place.as_deref().ok_or(Error::NoPlace)
    }

    /// With what nodes put into the ledger's bucket until now. A bucket that can't be asked is told of, and no more.
    async fn books(&self) -> Result<Books, Error> {
        let books = self.books_alone().await?;
        self.take_from_bucket(&books).await;
        Ok(books)
    }

    /// As they are.
    async fn books_alone(&self) -> Result<Books, Error> {
        Ok(Books::open(self.place()?, self.config.sql).await?.asking(&self.config))
    }

    /// The bucket of this ledger; none where it has none. That of another is no business of this one: what is taken in is removed there.
    fn bucket(&self) -> Option<&BucketConfig> {
        self.config.incoming.as_ref().filter(|_| self.is_configured())
    }

    /// Whether this is the ledger that the config names.
    fn is_configured(&self) -> bool {
        let (Some(place), Some(configured)) = (self.place.as_deref(), self.config.ledger.as_deref()) else {
            return false;
        };
        let canonical = |place: &str| std::fs::canonicalize(place).ok();
        place == configured || canonical(place).is_some_and(|at| Some(at) == canonical(configured))
    }

    async fn take_from_bucket(&self, books: &Books) {
        let Some(config) = self.bucket().filter(|_| !books.is_demo()) else { return };
        let trouble = match Incoming::new(config) {
            Ok(incoming) => incoming.take(books.ledger()).await.trouble,
            Err(error) => Some(error),
        };
        if let Some(trouble) = trouble {
            tell(&format!("without what waits in the bucket: {}", chain(&trouble)));
        }
    }
}

/// Does what was typed. Errors: why it wasn't done.
pub async fn run(cli: Cli) -> Result<Exit, Error> {
    let global = &cli.global;
    match &cli.command {
        Command::Init(args) => make(global, args.zone).await,
        Command::Demo(args) if args.live => live::run(&Scene::new(global)?, global, args).await,
        Command::Demo(args) => demo::run(&Scene::new(global)?, global, args).await,
        Command::Serve(args) => serving::run(&Scene::new(global)?, args.address).await,
        Command::Up(args) => up::run(&Scene::new(global)?, args).await,
        Command::Import(command) => book(&Scene::new(global)?, command).await,
        Command::Report(args) => report(&Scene::new(global)?, global, args).await,
        Command::Me(args) => me(&Scene::new(global)?, global, args).await,
        Command::Quote(args) => quote(&Scene::new(global)?, args).await,
        Command::Budgets(args) => budgets(&Scene::new(global)?, args).await,
        Command::Quotas(args) => quotas(&Scene::new(global)?, args).await,
        Command::Plan(args) => plan(&Scene::new(global)?, args).await,
        Command::Reclaim(args) => reclaim::reclaim(&Scene::new(global)?, args).await,
        Command::Decisions(args) => reclaim::decisions(&Scene::new(global)?, args).await,
        Command::Mode(args) => reclaim::mode(&Scene::new(global)?, args).await,
        Command::IsolationTest(args) => isolation_test::run(args).await,
        Command::Sql(args) => sql(&Scene::new(global)?, args).await,
        Command::Trace(args) => {
            let trace = Scene::new(global)?.books().await?.trace(&args.line, args.prices.as_deref()).await?;
            print::to(&args.output, |format| trace.render(format, style()))?;
            Ok(Exit::Done)
        }
        Command::Token(args) => token(&Scene::new(global)?, args).await,
        Command::Maintain(args) => maintain(&Scene::new(global)?, args).await,
        Command::Statement(args) => closing::statement(&Scene::new(global)?, args).await,
        Command::Export(command) => export::run(&Scene::new(global)?, command).await,
        Command::Deliver(args) => deliver::run(&Scene::new(global)?, args).await,
        Command::Close(args) => closing::close(&Scene::new(global)?, args).await,
        Command::Price(PriceCommand::Try(args)) => price_try(&Scene::new(global)?, args).await,
        Command::Replay(command) => replay::run(global, command).await,
        Command::Reconcile(args) => reconcile(&Scene::new(global)?, args).await,
        Command::Verify(args) => verify(&Scene::new(global)?, args).await,
        Command::Doctor(args) => {
            let scene = Scene::new(global)?;
            let findings = doctor::look(scene.place()?, &scene.config, args, now()).await;
            print::table(&doctor::table(&findings), &args.output)?;
            let is_well = findings.iter().all(|finding| finding.verdict < Verdict::Fail);
            Ok(if is_well { Exit::Done } else { Exit::No })
        }
        Command::Config => {
            let scene = Scene::new(global)?;
            say(scene.config.to_toml(scene.place.as_deref()).as_bytes())?;
            Ok(Exit::Done)
        }
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "cardhour", &mut text);
            say(&text)?;
            Ok(Exit::Done)
        }
    }
}

/// Makes a node's token, takes one back, or lists who has one.
async fn token(scene: &Scene, args: &TokenArgs) -> Result<Exit, Error> {
    let books = scene.books_alone().await?;
    let tokens = NodeTokens::of(&books.ledger().folder().ok_or(Error::NoPlace)?);
    let Some(node) = &args.node else {
        let nodes = tokens.nodes()?;
        say(nodes.iter().map(|node| format!("{node}\n")).collect::<String>().as_bytes())?;
        return Ok(Exit::Done);
    };
    if args.revoke {
        let gone = tokens.revoke(node)?;
        tell(&format!("{node}: {gone} token{} taken back", if gone == 1 { "" } else { "s" }));
        return Ok(if gone > 0 { Exit::Done } else { Exit::No });
    }
    say(format!("{}\n", tokens.make(node)?).as_bytes())?;
    Ok(Exit::Done)
}

async fn make(global: &Global, zone: Option<cardhour_domain::Zone>) -> Result<Exit, Error> {
    let surroundings = Surroundings::of_process();
    // A config file that is named and isn't there yet is where the new one goes.
    let config = match Config::load(global.config.as_deref(), &surroundings) {
        Err(ConfigError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Config::default(),
        other => other?,
    };
    let place = ledger_place(global.ledger.as_deref(), &config, &surroundings).ok_or(Error::NoPlace)?;
    let made = init(&place, zone, &config, global.config.as_deref(), &surroundings).await?;
    for (path, is_new) in made.things {
        say(format!("{} {}\n", if is_new { "made     " } else { "was there" }, path.display()).as_bytes())?;
    }
    Ok(Exit::Done)
}

async fn book(scene: &Scene, command: &ImportCommand) -> Result<Exit, Error> {
    let place = scene.place()?;
    let is_new = Books::is_missing(place).await;
    let books = Books::open_or_make(place, scene.config.zone.filter(|_| is_new), false, scene.config.sql).await?;
    if is_new {
        tell(&format!(
            "made a ledger in {place} that bills in {}, which it keeps: `cardhour init --zone ZONE` before the first import makes one of another zone",
            books.zone()
        ));
    }
    scene.take_from_bucket(&books).await;
    let tally = import(&books, command, now()).await?;
    Ok(if tally.booked.quarantined > 0 { Exit::Quarantined } else { Exit::Done })
}

async fn report(scene: &Scene, global: &Global, args: &ReportArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let request = match args.request()? {
        Asked::Books(request) => request,
        Asked::Checkpoint(request) => {
            let made = books.checkpoint(&request).await?;
            print::checkpoint(&made, &args.output)?;
            return Ok(if made.has_holes { Exit::No } else { Exit::Done });
        }
        Asked::Advised(request) => {
            print::checkpoint(&books.advised_report(&request).await?, &args.output)?;
            return Ok(Exit::Done);
        }
        Asked::Isolation(request) => {
            let audited = books.isolation(&request).await?;
            print::table(&audited.table, &args.output)?;
            return Ok(if audited.has_violations { Exit::No } else { Exit::Done });
        }
        Asked::Output(request) => {
            let made = books.output(&request).await?;
            print::table(&made.table, &args.output)?;
            return Ok(if made.has_holes { Exit::No } else { Exit::Done });
        }
    };
    let mut reported = books.report(&request).await?;
    if request.report == ReportKind::Bill {
        reported.table.notes.extend(books.note_of_policy());
    }
    if request.report == ReportKind::Capacity && args.output.format()?.is_for_people() {
        reported.table.notes.extend(books.calls(request.span, request.zone).await?);
    }
    hint(&mut reported.table, global, args.prices.as_deref(), &args.output)?;
    print::table(&reported.table, &args.output)?;
    Ok(if request.report == ReportKind::Bill && reported.has_holes { Exit::No } else { Exit::Done })
}

/// Adds how to trace a line, where that needs options that were typed here.
fn hint(table: &mut Table, global: &Global, prices: Option<&Path>, output: &Output) -> Result<(), Error> {
    let mut options = String::new();
    if let (true, Some(place)) = (global.names_ledger, &global.ledger) {
        options.push_str(&format!(" --ledger {}", quoted(place)));
    }
    if let Some(prices) = prices {
        options.push_str(&format!(" --prices {}", quoted(&prices.display().to_string())));
    }
    if !options.is_empty() && output.format()?.is_for_people() {
        table.notes.extend(trace_hint(table, &options));
    }
    Ok(())
}

async fn me(scene: &Scene, global: &Global, args: &MeArgs) -> Result<Exit, Error> {
    let request: ReportRequest = args.request(scene.surroundings.user.clone())?;
    let books = scene.books().await?;
    let mut reported = books.report(&request).await?;
    hint(&mut reported.table, global, None, &args.output)?;
    reported.table.notes.extend(books.note_of_policy());
    if let Some(user) = &request.user {
        reported.table.notes.extend(books.words_for(user, request.span, now()).await?);
    }
    if reported.table.rows.is_empty() {
        let user = request.user.as_deref().unwrap_or_default();
        tell(&format!("{}; --user takes the name as the records have it", books.unknown_user(user).await?));
    }
    print::table(&reported.table, &args.output)?;
    Ok(if reported.has_holes { Exit::No } else { Exit::Done })
}

async fn quote(scene: &Scene, args: &QuoteArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let user = scene.surroundings.user.clone();
    let quoted = match books.quote(&args.request(user, books.zone()), now()).await {
        Ok(quoted) => quoted,
        // As where the book has none for it: there is no price, and that is the answer.
        Err(error @ Error::NoPrices) => {
            tell(&error.to_string());
            return Ok(Exit::No);
        }
        Err(error) => return Err(error),
    };
    print::table(&quoted.table, &args.output)?;
    Ok(if quoted.has_holes { Exit::No } else { Exit::Done })
}

async fn budgets(scene: &Scene, args: &BudgetsArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    if args.advice {
        print::table(&books.advice(args.asked(now(), books.zone())).await?, &args.output)?;
        return Ok(Exit::Done);
    }
    if args.notify {
        let channels = Channel::of(&scene.config)?;
        if channels.is_empty() {
            return Err(Error::NoChannel);
        }
        let outcome = events::budgets::look(&books, &channels, now()).await?;
        outcome.failed.iter().for_each(|reason| tell(&format!("not delivered, {reason}")));
        tell(&format!("{} told", outcome.told));
        if !outcome.failed.is_empty() {
            return Err(Error::NotDelivered);
        }
    }
    let stand = books.budgets(args.asked(now(), books.zone())).await?;
    print::table(&stand.table, &args.output)?;
    Ok(if stand.is_over() { Exit::No } else { Exit::Done })
}

async fn quotas(scene: &Scene, args: &PlanArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let table = books.quota_table(args.at.map(|at| at.instant(books.zone()))).await?;
    print::table(&table, &args.output)?;
    Ok(Exit::Done)
}

async fn plan(scene: &Scene, args: &PlanArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let planned = books.plan(args.at.map(|at| at.instant(books.zone()))).await?;
    print::table(&planned.table, &args.output)?;
    Ok(if planned.is_faulty { Exit::No } else { Exit::Done })
}

async fn reconcile(scene: &Scene, args: &ReconcileArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let reconciled = match args.with_request()? {
        Some(request) => books.reconcile_with(&request).await?,
        None => books.reconcile(&args.request()?).await?,
    };
    print::table(&reconciled.table, &args.output)?;
    Ok(if reconciled.contradicts { Exit::No } else { Exit::Done })
}

async fn price_try(scene: &Scene, args: &PriceTryArgs) -> Result<Exit, Error> {
    let tried = scene.books().await?.price_trial(&args.request()?, &args.prices).await?;
    print::table(&tried.table, &args.output)?;
    Ok(if tried.has_holes { Exit::No } else { Exit::Done })
}

async fn maintain(scene: &Scene, args: &MaintainArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let what = Maintain { retain_hours: args.retain_hours, force: args.force_retention, dry_run: args.dry_run };
    let mut progress = Progress::new("maintaining", 0, Unit::Items);
    let done = progress.during(books.ledger().maintain(what)).await?;
    drop(progress);
    print::table(&maintained::table(&done, args.dry_run), &args.output)?;
    Ok(Exit::Done)
}

async fn verify(scene: &Scene, args: &VerifyArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let book = books.prices(args.prices.as_deref())?;
    let bill = match &args.bill {
        Some(path) => {
            let bytes =
                std::fs::read(path).map_err(|source| Error::File { doing: "read", path: path.clone(), source })?;
            Some(ExportedBill::parse(&path.display().to_string(), &bytes)?)
        }
        None => None,
    };
    let mut progress = Progress::new("proving", 0, Unit::Items);
    let verdict = progress.during(books.ledger().verify(book.as_ref(), bill.as_ref())).await?;
    drop(progress);
    print::to(&args.output, |format| {
        let style = if args.output.output_file.is_some() { render::Style::default() } else { style() };
        verified::render(&verdict, format, style)
    })?;
    Ok(if verdict.holds() { Exit::Done } else { Exit::No })
}

async fn sql(scene: &Scene, args: &SqlArgs) -> Result<Exit, Error> {
    let query =
        match (&args.query, &args.file) {
            (Some(query), _) if query != "-" => query.clone(),
            (_, Some(path)) if path != Path::new("-") => std::fs::read_to_string(path)
                .map_err(|source| Error::File { doing: "read the query", path: path.clone(), source })?,
            _ => {
                let mut text = String::new();
                let failed = |source| Error::Stream { doing: "read standard input", source };
                std::io::stdin().lock().read_to_string(&mut text).map_err(failed)?;
                text
            }
        };
    let rows: Rows = scene.books().await?.sql(&query).await?;
    print::to(&args.output, |format| rows.render(format, style()))?;
    Ok(Exit::Done)
}

/// Puts `bytes` where the options say.
fn place_output(bytes: &[u8], output: &Output) -> Result<(), Error> {
    put(bytes, output.format()?, output.output_file.as_deref())
}
