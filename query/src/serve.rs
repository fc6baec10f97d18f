//! The books over HTTP: reports and SQL for programs, pages for people, figures for Prometheus.
//!
//! ```text
//! request ─ envelope (id, headers) ─ guard (host, origin, token) ─┬ api      /api/v1/…
//!                                                                 ├ intake   /api/v1/intake/…
//!                                                                 ├ pages    /  /trace
//!                                                                 └ telemetry /metrics
//! ```
//!
//! Without a certificate it listens on this machine alone: beyond it there must be TLS.
//!
//! Start at [`run`].

mod access;
mod api;
mod intake;
pub mod node_tokens;
mod overview;
mod pages;
mod problem;
pub(crate) mod row;
#[cfg(test)]
mod sample;
mod stack;
mod telemetry;
mod tls;
pub mod token;

pub use problem::Problem;

use crate::books::Books;
use crate::config::TlsFiles;
use crate::deliveries::DeliveryCounts;
use crate::error::Error;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, get, post, put};
use intake::Intake;
use node_tokens::NodeTokens;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use telemetry::Telemetry;
use token::Token;

/// A query is a text of some lines; more is a mistake. Unit: bytes.
const MOST_BODY_BYTES: usize = 256 * 1024;
/// What another tool printed of a month: sacct has some 200 bytes a job, so that these are 300,000 jobs. Unit: bytes.
const MOST_OUTSIDE_BYTES: usize = 64 << 20;

/// What every handler has.
#[derive(Clone)]
pub struct Service(Arc<Parts>);

struct Parts {
    books: Books,
    telemetry: Telemetry,
    intake: Intake,
}

impl Service {
    /// Over these books; what it delivers by schedule is counted in `deliveries`. Called where tokio runs: it starts to take in what nodes deliver.
    pub fn new(books: Books, deliveries: DeliveryCounts) -> Self {
        let telemetry = Telemetry::new(books.is_demo(), deliveries);
        let intake = Intake::start(books.ledger().clone());
        Self(Arc::new(Parts { books, telemetry, intake }))
    }
}

/// A listener on `address`, which without TLS must be of this machine alone. Errors: any other address, one that is taken, a
/// certificate that can't be used.
pub async fn bind(address: SocketAddr, tls: Option<&TlsFiles>) -> Result<tokio::net::TcpListener, Error> {
    if let Some(files) = tls {
        tls::check(files)?;
    } else if !address.ip().is_loopback() {
        return Err(Error::NotLoopback(address));
    }
    tokio::net::TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })
}

/// Serves until `stopped` is done, then ends the requests under way. Errors: the listener fails, the certificate can't be used.
pub async fn run(
    service: Service,
    listener: tokio::net::TcpListener,
    tls: Option<TlsFiles>,
    token: Token,
    stopped: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let failed = |source| Error::Stream { doing: "serve", source };
    let address = listener.local_addr().map_err(failed)?;
    let nodes = service.0.books.ledger().folder().map(|folder| NodeTokens::of(&folder));
    let router = router(service, access::Access::new(token, nodes, address, tls.is_some()));
    match tls {
        None => axum::serve(listener, router).with_graceful_shutdown(stopped).await.map_err(failed),
        Some(files) => {
            let listener = tls::TlsListener::new(listener, files)?;
            axum::serve(listener, router).with_graceful_shutdown(stopped).await.map_err(failed)
        }
    }
}

/// Every route there is: method, path, what answers. The OpenAPI document is held against this list.
fn routes() -> Vec<(&'static str, &'static str, MethodRouter<Service>)> {
    vec![
        ("get", "/", get(pages::overview)),
        ("get", "/trace", get(pages::trace)),
        ("get", "/healthz", get(|| async { "ok\n" })),
        ("get", "/metrics", get(telemetry::metrics)),
        ("get", "/openapi.json", get(api::openapi)),
        ("get", "/api/v1/report/{name}", get(api::report)),
        ("get", "/api/v1/trace/{line}", get(api::trace)),
        ("get", "/api/v1/reconcile", get(api::reconcile)),
        ("post", "/api/v1/reconcile", post(api::reconcile_with).layer(DefaultBodyLimit::max(MOST_OUTSIDE_BYTES))),
        ("get", "/api/v1/statement", get(api::statement)),
        ("get", "/api/v1/budgets", get(api::budgets)),
        ("post", "/api/v1/sql", post(api::sql)),
        (
            "put",
            "/api/v1/intake/{node}/{segment}",
            put(intake::put).layer(DefaultBodyLimit::max(cardhour_ledger::MOST_SEGMENT_BYTES)),
        ),
    ]
}

fn router(service: Service, access: access::Access) -> Router {
    let mut router = Router::new();
    for (_, path, answer) in routes() {
        router = router.route(path, answer);
    }
    router
        .fallback(pages::nothing_here)
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .layer(from_fn_with_state(access, access::guard))
        .layer(from_fn_with_state(service.clone(), telemetry::count))
        .layer(from_fn(problem::envelope))
        .with_state(service)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_in_the_openapi_document_and_nothing_else_is() {
        let document: serde_json::Value = serde_json::from_str(api::OPENAPI).unwrap();
        let mut documented: Vec<(String, String)> = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                documented.push((method.clone(), path.clone()));
            }
        }
        let mut routed: Vec<(String, String)> =
            routes().into_iter().map(|(method, path, _)| (method.to_owned(), path.to_owned())).collect();
        documented.sort();
        routed.sort();
        assert_eq!(documented, routed);
    }

    #[tokio::test]
    async fn an_address_beyond_this_machine_is_refused() {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7780"] {
            assert!(matches!(bind(address.parse().unwrap(), None).await, Err(Error::NotLoopback(_))), "{address}");
        }
        assert!(bind("127.0.0.1:0".parse().unwrap(), None).await.is_ok());
    }
}
