//! `replay`: reads files or the books, plays them, prints what came of it. Traces in files open no ledger.

use super::{Exit, Scene, print};
use crate::cli::{Global, PlacementArgs, PolicyArgs, QueueArgs, ReplayCommand};
use crate::error::Error;
use crate::replayed;
use crate::request::{Moment, RequestError};
use crate::terminal::{Progress, Unit};
use cardhour_books::table::Table;
use cardhour_domain::{Interval, Timestamp, Zone};
use cardhour_scheduler_core::replay::placement::{self, Curve, Source};
use cardhour_scheduler_core::replay::queue;
use rayon::prelude::*;
use std::path::Path;

pub(super) async fn run(global: &Global, command: &ReplayCommand) -> Result<Exit, Error> {
    match command {
        ReplayCommand::Placement(args) => print::table(&placement(args).await?, &args.output)?,
        ReplayCommand::Queue(args) => print::table(&queue(args)?, &args.output)?,
        ReplayCommand::Policy(args) => return policy(&Scene::new(global)?, args).await,
    }
    Ok(Exit::Done)
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::File { doing: "read", path: path.to_owned(), source })
}

async fn placement(args: &PlacementArgs) -> Result<Table, Error> {
    let (nodes, pods) = (read(&args.nodes)?, read(&args.pods)?);
    let (nodes_name, pods_name) = (args.nodes.display().to_string(), args.pods.display().to_string());
    let nodes = Source { name: &nodes_name, bytes: &nodes };
    let trace = placement::Trace::read(nodes, Source { name: &pods_name, bytes: &pods })?;
    let title = format!(
        "placement, {} hosts, {} cards, {} requests, seeds 1 to {}",
        trace.host_count(),
        trace.capacity_milli() / 1000,
        trace.request_count(),
        args.seeds
    );
    let policies = args.policy.0.clone();
    let seeds = u64::from(args.seeds.get());
    let playing = tokio::task::spawn_blocking(move || {
        // By policy, each with a curve a seed: the order doesn't depend on who was first.
        let play = |&policy: &_| {
            let curves = (1..=seeds).into_par_iter().map(|seed| trace.replay(policy, seed));
            Ok((policy, curves.collect::<Result<Vec<Curve>, placement::TraceError>>()?))
        };
        policies.par_iter().map(play).collect::<Result<Vec<_>, placement::TraceError>>()
    });
    let mut progress = Progress::new("replaying", 0, Unit::Items);
    let played = progress.during(playing).await.expect("a replay is made or its fault is a defect of ours")?;
    drop(progress);
    Ok(replayed::placement(title, &played, args.load.0.as_deref()))
}

async fn policy(scene: &Scene, args: &PolicyArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let request = args.request()?;
    let mut progress = Progress::new("replaying", 0, Unit::Items);
    let compared = progress.during(books.replay_policy(&request)).await?;
    drop(progress);
    if args.output.format()?.is_for_people() {
        print::checkpoint(&compared.report, &args.output)?;
    } else {
        print::table(&compared.table, &args.output)?;
    }
    let is_whole = !compared.is_faulty && !compared.report.has_holes;
    Ok(if is_whole { Exit::Done } else { Exit::No })
}

fn queue(args: &QueueArgs) -> Result<Table, Error> {
    let (jobs, pools) = (read(&args.jobs)?, read(&args.pools)?);
    let (jobs_name, pools_name) = (args.jobs.display().to_string(), args.pools.display().to_string());
    let trace = queue::Trace::read((&jobs_name, &jobs), (&pools_name, &pools)).map_err(placement::TraceError::from)?;
    let instant = |moment: Option<Moment>| moment.map(|moment| moment.instant(Zone::UTC));
    let span = match (instant(args.from), instant(args.to)) {
        (None, None) => trace.whole_months(),
        (from, to) => {
            let from = from.unwrap_or(Timestamp::from_unix_ms(i64::MIN));
            let to = to.unwrap_or(Timestamp::from_unix_ms(i64::MAX));
            Some(
                Interval::new(from, to)
                    .ok_or(RequestError::Empty { from: Moment::Instant(from), to: Moment::Instant(to) })?,
            )
        }
    };
    let outcome = trace.replay(args.order.order(), span, args.cards_per_host);
    let is_own_choice = args.from.is_none() && args.to.is_none();
    Ok(replayed::queue(&outcome, args.order.order(), span.filter(|_| is_own_choice)))
}
