//! `reclaim`, `decisions` and `mode`: idle cards taken back, what was decided, and how far it may go.

use super::{Exit, Scene, print};
use crate::books::Books;
use crate::cli::{DecisionsArgs, DecisionsCommand, ModeArgs, ReclaimArgs};
use crate::clock::now;
use crate::error::Error;
use crate::events::Channel;
use crate::reclaimed::{Reclaimer, decisions_table, leases_table};
use crate::terminal::{say, tell};
use cardhour_decisions::decision::{Decision, Mode, id};
use cardhour_decisions::round::{Request, Wish};
use cardhour_domain::{AttemptKey, Name};

/// Looks once, shows how far it is, or plays it over the past.
pub(super) async fn reclaim(scene: &Scene, args: &ReclaimArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    if let Some(since) = args.since {
        let since = since.instant(books.zone());
        let until = args.until.map(|until| until.instant(books.zone()));
        print::table(&books.replay_reclaim(since, until).await?, &args.output)?;
        return Ok(Exit::Done);
    }
    let policy = books.reclaim_policy()?;
    let (at, mode, leases, trouble) = if args.status {
        let mode = books.reclaim_mode().await?.map_or(policy.act.mode, |decision| decision.mode);
        (now(), mode, books.ledger().leases().await?, Vec::new())
    } else {
        let look = Reclaimer::new(books.clone(), Channel::of(&scene.config)?).look(now()).await?;
        (look.at, look.mode, look.leases, look.trouble)
    };
    let decisions = books.ledger().decisions(None).await?;
    let mut table = leases_table(&books, at, mode, &leases, &decisions);
    books.remark(&mut table);
    print::table(&table, &args.output)?;
    trouble.iter().for_each(|reason| tell(reason));
    Ok(if trouble.is_empty() { Exit::Done } else { Exit::No })
}

/// Lists what was decided, or writes down what somebody asks.
pub(super) async fn decisions(scene: &Scene, args: &DecisionsArgs) -> Result<Exit, Error> {
    let books = scene.books_alone().await?;
    match &args.command {
        None => {
            let since = args.since.map(|since| since.instant(books.zone()));
            let mut decisions = books.ledger().decisions(since).await?;
            decisions.retain(|decision| args.job.as_deref().is_none_or(|job| is_of(decision, job)));
            let mut table = decisions_table(&books, &format!("decisions, {}", books.zone()), &decisions);
            books.remark(&mut table);
            print::table(&table, &args.output)?;
        }
        Some(DecisionsCommand::Extend { job, for_ms, by }) => {
            ask(&books, job, Wish::Extend { for_ms: *for_ms }, who(scene, by.as_deref())?).await?;
        }
        Some(DecisionsCommand::Wrongful { job, why, by }) => {
            let who = who(scene, by.as_deref())?;
            let decisions = books.ledger().decisions(None).await?;
            let ended = |decision: &&Decision| &*decision.action == "stop" && decision.mode == Mode::Act;
            let mut of_job = decisions.iter().filter(ended).filter(|decision| is_of(decision, job));
            let stop = of_job.next_back().ok_or_else(|| Error::NothingTaken { job: job.clone() })?;
            let mark = stop.found_wrong(now(), who, why.as_deref());
            books.ledger().add_decisions(std::slice::from_ref(&mark)).await?;
            print_line(&mark.words)?;
        }
        Some(DecisionsCommand::Cancel { job, by }) => {
            ask(&books, job, Wish::Cancel, who(scene, by.as_deref())?).await?
        }
    }
    Ok(Exit::Done)
}

/// Shows the mode, or sets it.
pub(super) async fn mode(scene: &Scene, args: &ModeArgs) -> Result<Exit, Error> {
    let books = scene.books_alone().await?;
    let policy = books.reclaim_policy()?;
    let Some(mode) = args.mode else {
        match books.reclaim_mode().await? {
            Some(set) => print_line(&format!("{}: {}", set.mode, set.words))?,
            None => print_line(&format!("{}: by the policy; nobody set another", policy.act.mode))?,
        }
        return Ok(Exit::Done);
    };
    if mode == Mode::Act && policy.act.clusters.is_empty() && policy.act.queues.is_empty() {
        tell("policy.toml lists no cluster and no queue under [act]: in mode act nothing will be done");
    }
    let set = Decision::of_mode(now(), mode, who(scene, args.by.as_deref())?);
    books.ledger().add_decisions(std::slice::from_ref(&set)).await?;
    print_line(&set.words)?;
    Ok(Exit::Done)
}

async fn ask(books: &Books, job: &str, wish: Wish, by: Name) -> Result<(), Error> {
    let leases = books.ledger().leases().await?;
    let found: Vec<&AttemptKey> =
        leases.iter().map(|lease| &lease.attempt_key).filter(|key| names(key, None, job)).collect();
    let key = match found[..] {
        [key] => key,
        [] => return Err(Error::NoLease { job: job.to_owned() }),
        _ => {
            let all: Vec<&str> = found.iter().map(|key| key.job()).collect();
            return Err(Error::ManyLeases { job: job.to_owned(), found: all.join(", ") });
        }
    };
    let at = now();
    let id = id(&["request", key.as_str(), &at.unix_ms().to_string(), &by, wish.action()]);
    let mode = books.reclaim_mode().await?.map_or(books.reclaim_policy()?.act.mode, |set| set.mode);
    let request = Request { id, at, by, job: key.clone(), wish };
    let row = Decision::of_request(&request, mode);
    books.ledger().add_decisions(std::slice::from_ref(&row)).await?;
    print_line(&format!("{} The next look answers it.", row.words))
}

fn is_of(decision: &Decision, job: &str) -> bool {
    decision.attempt_key.as_ref().is_some_and(|key| names(key, decision.job_id.as_deref(), job))
}

/// Whether `job` names an attempt: its key, `CLUSTER/JOB`, or the job's id alone.
fn names(key: &AttemptKey, job_id: Option<&str>, job: &str) -> bool {
    let alone = key.job().split_once('/').map_or(key.job(), |(_, job)| job);
    key.as_str() == job || key.job() == job || alone == job || job_id == Some(job)
}

/// Who asks: whom the option names, else who runs this. Errors: nobody knows.
fn who(scene: &Scene, by: Option<&str>) -> Result<Name, Error> {
    by.or(scene.surroundings.user.as_deref()).map(Name::from).ok_or(Error::NobodyAsks)
}

fn print_line(text: &str) -> Result<(), Error> {
    say(format!("{text}\n").as_bytes())
}
