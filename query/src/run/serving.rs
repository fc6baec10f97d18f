//! `serve`: the service until it is told to stop.

use super::{Exit, Scene};
use crate::books::Books;
use crate::config::TlsFiles;
use crate::deliveries::{self, Deliverer, DeliveryCounts};
use crate::error::Error;
use crate::events::Watch;
use crate::incoming::Incoming;
use crate::reclaimed;
use crate::serve::token::Token;
use crate::serve::{self, Service};
use crate::terminal::tell;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Serves the scene's ledger. Errors: an address beyond this machine, a port that is taken, a token that others can read.
pub async fn run(scene: &Scene, address: Option<SocketAddr>) -> Result<Exit, Error> {
    let books = scene.books_alone().await?;
    let tls = scene.config.tls.clone();
    let listener = serve::bind(address.unwrap_or(scene.config.http_address), tls.as_ref()).await?;
    let watch = Watch::start(books.clone(), &scene.config)?;
    let token_file = scene.config.token_file.clone();
    let beside = Beside::of(scene, &books)?;
    let served = until_stopped(books, listener, tls, token_file, beside).await;
    if let Some(watch) = watch {
        watch.stop().await;
    }
    served
}

/// What goes on beside the service.
#[derive(Debug, Default)]
pub struct Beside {
    /// The bucket that this ledger takes from.
    incoming: Option<Incoming>,
    /// What is delivered by schedule.
    deliverers: Vec<Deliverer>,
    /// The look at idle jobs.
    reclaiming: Option<reclaimed::Watch>,
}

impl Beside {
    /// What the config names for this ledger. Errors: the certificates of a bucket can't be used.
    pub fn of(scene: &Scene, books: &Books) -> Result<Self, Error> {
        let reclaiming = reclaimed::Watch::start(books.clone(), &scene.config)?;
        Ok(Self { incoming: incoming(scene, books)?, deliverers: deliverers(scene)?, reclaiming })
    }
}

/// What is delivered of this ledger. Errors: the certificates of a bucket can't be used.
fn deliverers(scene: &Scene) -> Result<Vec<Deliverer>, Error> {
    let deliverers = Deliverer::all(&scene.config)?;
    if !deliverers.is_empty() && !scene.is_configured() {
        tell("the deliveries of the config are not of this ledger: nothing is delivered");
        return Ok(Vec::new());
    }
    for deliverer in &deliverers {
        tell(&format!("delivering {} to {} as {:?}", deliverer.what(), deliverer.place(), deliverer.name()));
    }
    Ok(deliverers)
}

/// The bucket that this ledger takes from. Errors: its certificates can't be used.
fn incoming(scene: &Scene, books: &Books) -> Result<Option<Incoming>, Error> {
    let Some(config) = &scene.config.incoming else { return Ok(None) };
    if scene.bucket().is_none() || books.is_demo() {
        tell(&format!("{} is not of this ledger: nothing is taken from there", config.settings.bucket));
        return Ok(None);
    }
    tell(&format!("taking in what nodes put into {}", config.settings.bucket));
    Ok(Some(Incoming::new(config)?))
}

/// Says where to look, and serves until Ctrl-C or SIGTERM. Errors: as [`run`].
pub async fn until_stopped(
    books: Books,
    listener: TcpListener,
    tls: Option<TlsFiles>,
    token_file: Option<PathBuf>,
    beside: Beside,
) -> Result<Exit, Error> {
    let token_file =
        token_file.or_else(|| books.ledger().folder().map(|folder| folder.join("token"))).ok_or(Error::NoPlace)?;
    books.ledger().make_incoming()?;
    let token = Token::load_or_make(&token_file)?;
    if let Some(folder) = books.ledger().folder()
        && std::fs::metadata(&folder).is_ok_and(|about| about.permissions().mode() & 0o077 != 0)
    {
        tell(&format!("others of this machine can read {}, and so see everything: chmod 700 it", folder.display()));
    }
    let stopped = stop_asked().map_err(|source| Error::Stream { doing: "listen for signals", source })?;
    let address = listener.local_addr().map_err(|source| Error::Stream { doing: "tell the address", source })?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    // The token goes to a person's screen, never into a log.
    if std::io::stderr().is_terminal() {
        tell(&format!("open {scheme}://{address}/?token={}", token.secret()));
    } else {
        tell(&format!("serving {scheme}://{address}/ with the token in {}", token_file.display()));
    }
    let ledger = books.ledger().clone();
    let taking = beside.incoming.map(|incoming| tokio::spawn(Arc::new(incoming).keep_taking(ledger)));
    let counts = DeliveryCounts::default();
    let delivering = deliveries::Watch::start(books.clone(), beside.deliverers, counts.clone());
    let served = serve::run(Service::new(books, counts), listener, tls, token, stopped).await;
    if let Some(delivering) = delivering {
        delivering.stop().await;
    }
    if let Some(reclaiming) = beside.reclaiming {
        reclaiming.stop().await;
    }
    if let Some(taking) = taking {
        // What it was about to remove from the bucket is known the next time.
        taking.abort();
    }
    served?;
    Ok(Exit::Done)
}

/// Done when Ctrl-C or SIGTERM comes. Listens from the call on, not from the first look at the future.
fn stop_asked() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
