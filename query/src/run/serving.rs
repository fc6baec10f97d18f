//! `serve`: the service until it is told to stop.

use super::{Exit, Scene};
use crate::books::Books;
use crate::error::Error;
use crate::serve::token::Token;
use crate::serve::{self, Service};
use crate::terminal::tell;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::net::TcpListener;

/// Serves the scene's ledger. Errors: an address beyond this machine, a port that is taken, a token that others can read.
pub async fn run(scene: &Scene, address: Option<SocketAddr>) -> Result<Exit, Error> {
    let books = scene.books().await?;
    let listener = serve::bind(address.unwrap_or(scene.config.http_address)).await?;
    let token_file = scene.config.token_file.clone();
    until_stopped(books, listener, token_file).await
}

/// Says where to look, and serves until Ctrl-C or SIGTERM. Errors: as [`run`].
pub async fn until_stopped(books: Books, listener: TcpListener, token_file: Option<PathBuf>) -> Result<Exit, Error> {
    let token_file =
        token_file.or_else(|| books.ledger().folder().map(|folder| folder.join("token"))).ok_or(Error::NoPlace)?;
    let token = Token::load_or_make(&token_file)?;
    let address = listener.local_addr().map_err(|source| Error::Stream { doing: "tell the address", source })?;
    // The token goes to a person's screen, never into a log.
    if std::io::stderr().is_terminal() {
        tell(&format!("open http://{address}/?token={}", token.secret()));
    } else {
        tell(&format!("serving http://{address}/ with the token in {}", token_file.display()));
    }
    serve::run(Service::new(books), listener, token, stop_asked()).await?;
    Ok(Exit::Done)
}

/// Done when Ctrl-C or SIGTERM comes.
async fn stop_asked() {
    let interrupt = tokio::signal::ctrl_c();
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => {
            let _ = interrupt.await;
        }
    }
}
