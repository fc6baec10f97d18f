//! `serve`: the service until it is told to stop.

use super::{Exit, Scene};
use crate::books::Books;
use crate::config::TlsFiles;
use crate::error::Error;
use crate::serve::token::Token;
use crate::serve::{self, Service};
use crate::terminal::tell;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Serves the scene's ledger. Errors: an address beyond this machine, a port that is taken, a token that others can read.
pub async fn run(scene: &Scene, address: Option<SocketAddr>) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let tls = scene.config.tls.clone();
    let listener = serve::bind(address.unwrap_or(scene.config.http_address), tls.as_ref()).await?;
    let token_file = scene.config.token_file.clone();
    until_stopped(books, listener, tls, token_file).await
}

/// Says where to look, and serves until Ctrl-C or SIGTERM. Errors: as [`run`].
pub async fn until_stopped(
    books: Books,
    listener: TcpListener,
    tls: Option<TlsFiles>,
    token_file: Option<PathBuf>,
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
    serve::run(Service::new(books), listener, tls, token, stopped).await?;
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
