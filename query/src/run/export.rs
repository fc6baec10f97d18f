//! `export`: a month for other programs, as files.

mod focus;

use super::{Exit, Scene};
use crate::cli::ExportCommand;
use crate::error::Error;

pub(super) async fn run(scene: &Scene, command: &ExportCommand) -> Result<Exit, Error> {
    match command {
        ExportCommand::Focus(args) => focus::focus(scene, args).await,
    }
}
