//! `statement` and `close`.

use super::{Exit, Scene, print};
use crate::cli::{CloseArgs, StatementArgs};
use crate::clock::now;
use crate::error::Error;
use crate::render::Format;
use crate::statements::Approval;
use crate::terminal::{Progress, Unit, put};

/// Shows the statements of a month, the entries of one, or the closed months.
pub(super) async fn statement(scene: &Scene, args: &StatementArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    if let (true, Some(month)) = (args.canonical, args.month) {
        let text = books.canonical(month).await?;
        put(&text, Format::Csv, args.output.output_file.as_deref())?;
        return Ok(Exit::Done);
    }
    let Some(month) = args.month else {
        print::table(&books.closed_months().await?, &args.output)?;
        return Ok(Exit::Done);
    };
    let stated = books.statement(month, args.org.as_deref(), args.entries).await?;
    print::table(&stated.table, &args.output)?;
    Ok(if stated.is_whole { Exit::Done } else { Exit::No })
}

/// Closes a month, or says why not.
pub(super) async fn close(scene: &Scene, args: &CloseArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let name = |text: &Option<String>| text.as_deref().map(Into::into);
    let by = args.by.clone().or_else(|| scene.surroundings.user.clone()).filter(|name| !name.is_empty());
    let approval = Approval {
        // Who only looks signs nothing.
        by: by.or(args.dry_run.then(String::new)).ok_or(Error::NobodyApproves)?.into(),
        comment: name(&args.comment),
        sign_off: name(&args.sign_off),
        now: now(),
    };
    let mut progress = Progress::new(if args.dry_run { "drafting" } else { "closing" }, 0, Unit::Items);
    let outcome = if args.dry_run {
        progress.during(books.would_close(args.month, &approval)).await?
    } else {
        progress.during(books.close(args.month, &approval)).await?
    };
    drop(progress);
    print::table(&outcome.table, &args.output)?;
    Ok(if outcome.is_refused { Exit::No } else { Exit::Done })
}
