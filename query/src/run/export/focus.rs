//! `export focus`.

use crate::books::SIMULATED;
use crate::cli::FocusArgs;
use crate::error::Error;
use crate::export::focus::delivery;
use crate::run::{Exit, Scene};
use crate::terminal::{say, tell};

/// A month in FOCUS.
pub(super) async fn focus(scene: &Scene, args: &FocusArgs) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let note = books.is_demo().then_some(SIMULATED);
    let billed = books.billed(args.month, args.prices.as_deref()).await?;
    if billed.statements.is_empty() {
        // As the other exports of a month that has nothing: no files, and the answer is no.
        let spoken = books.spoken_months().await?;
        tell(&format!("there is no row of {}: {spoken}", args.month));
        return Ok(Exit::No);
    }
    let delivery = delivery(&billed, args.focus_version, args.format, note)?;
    for path in delivery.put(&args.output_dir)? {
        say(format!("{}\n", path.display()).as_bytes())?;
    }
    if let Some(note) = note {
        tell(&format!("note: {note}"));
    }
    if delivery.unpriced.is_zero() {
        return Ok(Exit::Done);
    }
    tell(&format!(
        "note: {} card-hours have no price, and no row: `cardhour report bill --month {}` lists the holes in the price book",
        delivery.unpriced.card_hours().normalize(),
        args.month
    ));
    Ok(Exit::No)
}
