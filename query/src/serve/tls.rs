//! TLS of the service: a listener whose connections are encrypted before anything is read from them.
//!
//! Handshakes run beside each other, each with its own limit of time, so that nobody who connects and stays silent holds up the others. A
//! certificate that was renewed on disk is in force for the next connection a few seconds later, without a restart.

use crate::config::TlsFiles;
use crate::error::Error;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Handshakes at once; more wait in the kernel's queue.
const MOST_HANDSHAKES: usize = 256;
/// Of them from one address; more are turned away at once, so that one machine can't lock out the others.
const MOST_OF_ONE: usize = 32;
/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Connections with TLS.
pub struct TlsListener {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl TlsListener {
    /// Over a listener, with a certificate and its key. Errors: they can't be read, or don't belong together.
    pub fn new(listener: TcpListener, files: TlsFiles) -> Result<Self, Error> {
        let address = listener.local_addr().map_err(|source| Error::Stream { doing: "tell the address", source })?;
        let renewed = Renewed::new(files)?;
        let (give, ready) = mpsc::channel(1);
        tokio::spawn(accept_all(listener, renewed, give));
        Ok(Self { ready, address })
    }
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            // The task that gives them never ends before this listener does.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// Accepts until nobody takes connections any more.
async fn accept_all(
    listener: TcpListener,
    mut renewed: Renewed,
    give: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let handshakes = Arc::new(Semaphore::new(MOST_HANDSHAKES));
    let by_peer = Peers::default();
    loop {
        let permit = handshakes.clone().acquire_owned().await.expect("never closed");
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = give.closed() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, mostly: others have to end first.
                tracing::warn!(error = %error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        let Some(turn) = by_peer.turn(peer.ip()) else { continue };
        let (acceptor, give) = (renewed.acceptor(), give.clone());
        tokio::spawn(async move {
            let _turn = turn;
            match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => {
                    drop(permit);
                    // Nobody takes it any more: the service ends.
                    _ = give.send((stream, peer)).await;
                }
                Ok(Err(error)) => tracing::debug!(%peer, error = %error, "no TLS was agreed on"),
                Err(_) => tracing::debug!(%peer, "a handshake took too long"),
            }
        });
    }
}

/// Handshakes under way, by address.
#[derive(Clone, Default)]
struct Peers(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One of them, until it is dropped.
struct Turn {
    peers: Peers,
    peer: IpAddr,
}

impl Peers {
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None where that address has enough of them.
    fn turn(&self, peer: IpAddr) -> Option<Turn> {
        let mut peers = self.lock();
        let under_way = peers.entry(peer).or_default();
        if *under_way >= MOST_OF_ONE {
            return None;
        }
        *under_way += 1;
        drop(peers);
        Some(Turn { peers: self.clone(), peer })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut peers = self.peers.lock();
        if let Some(under_way) = peers.get_mut(&self.peer) {
            *under_way -= 1;
            if *under_way == 0 {
                peers.remove(&self.peer);
            }
        }
    }
}

/// A certificate that is read again when its files change.
struct Renewed {
    files: TlsFiles,
    acceptor: TlsAcceptor,
    stamps: [Option<SystemTime>; 2],
    looked: Instant,
}

impl Renewed {
    fn new(files: TlsFiles) -> Result<Self, Error> {
        let stamps = stamps(&files);
        Ok(Self { acceptor: acceptor(&files)?, files, stamps, looked: Instant::now() })
    }

    fn acceptor(&mut self) -> TlsAcceptor {
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            let stamps = stamps(&self.files);
            if stamps != self.stamps {
                match acceptor(&self.files) {
                    Ok(acceptor) => {
                        (self.acceptor, self.stamps) = (acceptor, stamps);
                        tracing::info!("the renewed certificate is in force");
                    }
                    // Its key may come a moment after it: the old one stands, and is tried again.
                    Err(error) => tracing::warn!(error = %error, "the renewed certificate can't be used yet"),
                }
            }
        }
        self.acceptor.clone()
    }
}

fn stamps(files: &TlsFiles) -> [Option<SystemTime>; 2] {
    [&files.certificate, &files.key].map(|path| std::fs::metadata(path).and_then(|about| about.modified()).ok())
}

/// Whether a certificate and its key can be used. Errors: why not, and which file.
pub fn check(files: &TlsFiles) -> Result<(), Error> {
    acceptor(files).map(|_| ())
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, Error> {
    let faulty = |path: &Path, reason: String| Error::Certificate { path: path.to_owned(), reason };
    let read = |error: rustls::pki_types::pem::Error| faulty(&files.certificate, error.to_string());
    let certificates: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(&files.certificate).map_err(read)?.collect::<Result<_, _>>().map_err(read)?;
    if certificates.is_empty() {
        return Err(faulty(&files.certificate, "there is no certificate in it".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| faulty(&files.key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has what TLS 1.2 and 1.3 need")
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| faulty(&files.certificate, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
