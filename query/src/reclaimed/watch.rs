//! The service's own look at idle jobs, each minute, where a site has a policy or a mode was set.

use super::Reclaimer;
use crate::books::Books;
use crate::clock::now;
use crate::config::Config;
use crate::error::{Error, chain};
use crate::events::Channel;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::{info, warn};

/// How often the service looks.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How long the end of the service waits for a look that is under way.
const LONGEST_STOP: Duration = Duration::from_secs(30);

/// The service's own look, until it is told to stop.
#[derive(Debug)]
pub struct Watch {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Watch {
    /// Starts. Called where tokio runs; a demo's books are not looked at, since their jobs are nobody's. Errors: a channel that can't be as the config
    /// says it.
    pub fn start(books: Books, config: &Config) -> Result<Option<Self>, Error> {
        if books.is_demo() {
            return Ok(None);
        }
        let channels = Channel::of(config)?;
        let (stop, stopped) = oneshot::channel();
        Ok(Some(Self { stop, task: tokio::spawn(watch(books, channels, stopped)) }))
    }

    /// Ends it. A look that is under way is ended first, so that what was begun is written down.
    pub async fn stop(self) {
        // It is gone already where looking came to an end by a defect of ours.
        _ = self.stop.send(());
        _ = tokio::time::timeout(LONGEST_STOP, self.task).await;
    }
}

async fn watch(books: Books, channels: Vec<Channel>, mut stopped: oneshot::Receiver<()>) {
    let mut each = tokio::time::interval(LOOK_EVERY);
    each.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut reclaimer = Reclaimer::new(books.clone(), channels);
    let mut told = Vec::new();
    loop {
        tokio::select! {
            // The other end gone is a stop, too.
            _ = &mut stopped => return,
            _ = each.tick() => {}
        }
        let trouble = match look(&books, &mut reclaimer).await {
            Ok(trouble) => trouble,
            Err(error) => vec![chain(&error)],
        };
        // What lasts is logged when it is new.
        for reason in trouble.iter().filter(|reason| !told.contains(*reason)) {
            warn!(reason, "idle reclaim");
        }
        told = trouble;
    }
}

async fn look(books: &Books, reclaimer: &mut Reclaimer) -> Result<Vec<String>, Error> {
    if !books.is_reclaiming().await? {
        return Ok(Vec::new());
    }
    let look = reclaimer.look(now()).await?;
    for decision in &look.decisions {
        let (action, mode) = (&*decision.action, decision.mode.name());
        info!(decision = &*decision.id, action, mode, words = &*decision.words, "decided");
    }
    Ok(look.trouble)
}
