//! `deliver`: what is owed by schedule, shown or delivered once.

use super::{Exit, Scene, print};
use crate::cli::DeliverArgs;
use crate::clock::now;
use crate::deliveries::{Deliverer, Mode, State, table};
use crate::error::Error;
use crate::terminal::tell;

/// Shows what is owed, and delivers it where that is asked for. Errors: the config has no such delivery, or is another ledger's; some of it was not
/// delivered.
pub(super) async fn run(scene: &Scene, args: &DeliverArgs) -> Result<Exit, Error> {
    if scene.config.deliveries.is_empty() {
        return Err(Error::NoDelivery("no [[delivery]] in the config says what to deliver".to_owned()));
    }
    if !scene.is_configured() {
        let configured = scene.config.ledger.clone().unwrap_or_default();
        return Err(Error::NoDelivery(format!("the deliveries of the config are of its ledger {configured}")));
    }
    let mut deliverers = Deliverer::all(&scene.config)?;
    if let Some(name) = &args.name {
        deliverers.retain(|deliverer| deliverer.name() == name);
        if deliverers.is_empty() {
            return Err(Error::NoDelivery(format!("no [[delivery]] of the config is called {name:?}")));
        }
    }
    let books = scene.books().await?;
    let mode = if args.due && !args.dry_run { Mode::Deliver } else { Mode::DryRun };
    let now = now();
    let mut looks = Vec::with_capacity(deliverers.len());
    for deliverer in &deliverers {
        looks.push((deliverer, deliverer.look(&books, now, mode).await?));
    }
    let has_failed =
        looks.iter().flat_map(|(_, standings)| standings).any(|standing| matches!(standing.state, State::Failed(..)));
    let mut table = table(&looks, now, books.zone());
    for deliverer in &deliverers {
        table.notes.extend(deliverer.unknown_orgs(&books).await?);
    }
    books.remark(&mut table);
    print::table(&table, &args.output)?;
    if has_failed {
        return Err(Error::NotDelivered);
    }
    if mode == Mode::DryRun && args.due {
        tell("dry run: nothing was delivered");
    }
    Ok(Exit::Done)
}
