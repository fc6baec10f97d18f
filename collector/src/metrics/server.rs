//! The door to the page: `GET /metrics`, and `GET /health` for who looks after the process.
//!
//! One thread of its own, few connections, and nothing that a client does can hold up a tick. Where the address is taken or not there yet, that is
//! said once and tried again: meters matter more than their page.

use super::Board;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at a time: a few Prometheus servers and a person.
const CONNECTIONS: usize = 16;
/// How long a client may take to send the head of a request; a connection that is kept open and silent ends after it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(180);
/// How long a whole connection may last, whatever its client does: Prometheus makes another.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(3600);
/// How soon an address that could not be had is tried again.
const BIND_AGAIN: Duration = Duration::from_secs(30);

/// Serves the board on a thread of its own until the process ends. Errors: the system gives no thread.
pub fn serve(address: SocketAddr, board: Arc<Board>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("metrics".into()).spawn(move || runtime.block_on(listen(address, board)))?;
    Ok(())
}

async fn listen(address: SocketAddr, board: Arc<Board>) {
    let listener = bind(address).await;
    tracing::info!(at = %listener.local_addr().unwrap_or(address), "metrics served");
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // No file descriptor left, or a client that was gone again: neither is mended by asking at once.
                tracing::debug!(%error, "connection not taken");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let board = board.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let answer = answer(&board, &request);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(16 << 10)
                .serve_connection(TokioIo::new(stream), answer);
            // A client that goes away in the middle is its own affair.
            drop(tokio::time::timeout(CONNECTION_TIMEOUT, connection).await);
            drop(place);
        });
    }
}

async fn bind(address: SocketAddr) -> TcpListener {
    let mut is_said = false;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => {
                if !std::mem::replace(&mut is_said, true) {
                    tracing::warn!(%address, %error, "no metrics: the address can't be had; tried again every 30 s, and all else goes on");
                }
                tokio::time::sleep(BIND_AGAIN).await;
            }
        }
    }
}

fn answer(board: &Arc<Board>, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    match request.uri().path() {
        "/metrics" => {
            let accepted = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
            let form = board.form(accepted);
            with_type(StatusCode::OK, form.content_type(), board.page(form))
        }
        "/health" if board.is_alive() => plain(StatusCode::OK, "ticks come\n"),
        "/health" => plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "no tick for three steps, or a call into the driver doesn't come back\n",
        ),
        "/" => plain(StatusCode::OK, "cardhour-collector: /metrics, /health\n"),
        _ => plain(StatusCode::NOT_FOUND, "not here: /metrics, /health\n"),
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    with_type(status, "text/plain; charset=utf-8", text.to_owned())
}

fn with_type(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
