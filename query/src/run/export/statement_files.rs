//! `export xlsx|csv|html|parquet`: a file for each statement.

use crate::cli::StatementFilesArgs;
use crate::error::Error;
use crate::export::file_name;
use crate::export::paper::{Paper, money};
use crate::run::{Exit, Scene};
use crate::terminal::{say, tell, write_file};
use cardhour_books::statement::of_org;

/// How a statement is written.
pub(super) struct Kind {
    pub(super) extension: &'static str,
    pub(super) write: fn(&Paper<'_>) -> Result<Vec<u8>, Error>,
}

/// Exit: the answer is no where an organisation was named that has no statement, and where some of the time has no price.
pub(super) async fn files(scene: &Scene, args: &StatementFilesArgs, kind: &Kind) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let issued = books.issued(args.month, args.prices.as_deref()).await?;
    let asked = match &args.org {
        Some(org) => of_org(issued.statements, org),
        None => issued.statements,
    };
    for note in &issued.remarks {
        tell(&format!("note: {note}"));
    }
    if asked.is_empty() {
        let of = args.org.as_ref().map_or_else(String::new, |org| format!(" for {org:?}"));
        let spoken = books.spoken_months().await?;
        tell(&format!("there is no statement of {}{of}: {spoken}", args.month));
        return Ok(Exit::No);
    }
    let folder = &args.output_dir;
    std::fs::create_dir_all(folder).map_err(|source| Error::File {
        doing: "make the folder",
        path: folder.clone(),
        source,
    })?;
    for statement in &asked {
        let path = folder.join(file_name(statement, kind.extension));
        write_file(&path, &(kind.write)(&Paper::of(statement, &issued.remarks))?)?;
        let total = format!("{} {}", money(statement.total), statement.total.currency());
        say(format!("{}: {} entries, {total}\n", path.display(), statement.entries.len()).as_bytes())?;
    }
    Ok(if issued.has_holes { Exit::No } else { Exit::Done })
}
