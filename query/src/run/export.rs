//! `export`: a month as files.

mod focus;
mod statement_files;

use super::{Exit, Scene};
use crate::cli::ExportCommand;
use crate::error::Error;
use crate::export::paper::Paper;
use crate::export::{csv, html, parquet, xlsx};
use statement_files::{Kind, files};

/// Writes the files that were asked for, and says which.
pub(super) async fn run(scene: &Scene, command: &ExportCommand) -> Result<Exit, Error> {
    match command {
        ExportCommand::Focus(args) => focus::focus(scene, args).await,
        ExportCommand::Xlsx(args) => files(scene, args, &Kind { extension: "xlsx", write: xlsx::write }).await,
        ExportCommand::Csv(args) => {
            files(scene, args, &Kind { extension: "csv", write: |paper| Ok(csv::write(paper.statement)) }).await
        }
        ExportCommand::Html(args) => {
            files(scene, args, &Kind { extension: "html", write: |paper| Ok(html::write(paper)) }).await
        }
        ExportCommand::Parquet(args) => {
            let write = |paper: &Paper<'_>| parquet::write(paper.statement);
            files(scene, args, &Kind { extension: "parquet", write }).await
        }
    }
}
