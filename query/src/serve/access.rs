//! Who may ask: whoever has the token, from a page of this machine.
//!
//! Programs send `Authorization: Bearer TOKEN`; a node's token lets it deliver its own segments and nothing else. A browser opens `/?token=TOKEN` once, and gets a cookie in its stead
//! (HttpOnly, SameSite=Strict) with which it may read and nothing else. Without TLS `Host` must be a loopback name with our port, so that
//! no other name can be bent onto this machine (DNS rebinding); with it, browsers see to that by the certificate. A request that names an `Origin` must come from that same
//! host. `/healthz` says only that the service is there, and needs no token.

use super::node_tokens::NodeTokens;
use super::problem::{Problem, RequestId};
use super::token::{Token, same};
use crate::render;
use askama::Template;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;
use std::net::SocketAddr;
use std::sync::Arc;

const COOKIE: &str = "cardhour_session";

/// What a request is held against.
#[derive(Clone)]
pub struct Access(Arc<Rules>);

struct Rules {
    token: Token,
    nodes: Option<NodeTokens>,
    cookie: String,
    /// None where TLS has the browser look whether the name is ours.
    hosts: Option<Vec<String>>,
}

impl Access {
    /// For a service that listens on `address`.
    pub fn new(token: Token, nodes: Option<NodeTokens>, address: SocketAddr, has_tls: bool) -> Self {
        let port = address.port();
        let mut hosts = vec![format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")];
        hosts.push(address.to_string());
        if port == 80 {
            // Browsers leave the port of plain HTTP out.
            hosts.extend(["127.0.0.1".to_owned(), "localhost".to_owned(), "[::1]".to_owned()]);
        }
        let cookie = token.cookie();
        Self(Arc::new(Rules { token, nodes, cookie, hosts: (!has_tls).then_some(hosts) }))
    }

    fn host(&self, request: &Request) -> Option<String> {
        let host = request.headers().get(header::HOST)?.to_str().ok()?.to_ascii_lowercase();
        self.0.hosts.as_ref().is_none_or(|hosts| hosts.contains(&host)).then_some(host)
    }

    fn scheme(&self) -> &'static str {
        if self.0.hosts.is_none() { "https" } else { "http" }
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        bearer(headers).is_some_and(|token| same(token, self.0.token.secret()))
    }

    /// Whether a request delivers a segment of the node whose token it has: all that such a token is good for.
    fn delivers_its_own(&self, request: &Request) -> bool {
        let node = request.uri().path().strip_prefix("/api/v1/intake/").and_then(|path| path.split('/').next());
        let (Some(nodes), Some(node), Some(token)) = (&self.0.nodes, node, bearer(request.headers())) else {
            return false;
        };
        // A file that can't be read lets nobody in.
        *request.method() == Method::PUT && nodes.is_of(token, node).unwrap_or(false)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(name, value)| name == COOKIE && same(value, &self.0.cookie))
    }
}

/// The token that a request brings.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[derive(Deserialize)]
struct TokenInAddress {
    token: Option<String>,
}

/// Lets a request through, or says why not.
pub async fn guard(State(access): State<Access>, request: Request, next: Next) -> Response {
    let id = request.extensions().get::<RequestId>().cloned().unwrap_or_else(|| RequestId(String::new()));
    let Some(host) = access.host(&request) else {
        let message = "ask for this service by a loopback name and its own port, such as 127.0.0.1:7780";
        return Problem::new(StatusCode::MISDIRECTED_REQUEST, "wrong-host", message, &id).into_response();
    };
    if let Some(origin) = request.headers().get(header::ORIGIN)
        && !origin.to_str().is_ok_and(|origin| origin.eq_ignore_ascii_case(&format!("{}://{host}", access.scheme())))
    {
        let message = "a page of another site asked; only this service's own pages may";
        return Problem::new(StatusCode::FORBIDDEN, "wrong-origin", message, &id).into_response();
    }
    if request.uri().path() == "/healthz" {
        return next.run(request).await;
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_page = !is_for_programs(request.uri());
    if is_page
        && reads
        && let Ok(Query(TokenInAddress { token: Some(token) })) = Query::try_from_uri(request.uri())
    {
        return if same(&token, access.0.token.secret()) {
            let secure = if access.0.hosts.is_none() { "; Secure" } else { "" };
            let cookie = format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict{secure}", access.0.cookie);
            ([(header::SET_COOKIE, cookie)], Redirect::to(request.uri().path())).into_response()
        } else {
            locked_page()
        };
    }
    let may = access.has_token(request.headers())
        || reads && access.has_cookie(request.headers())
        || access.delivers_its_own(&request);
    if may {
        return next.run(request).await;
    }
    if is_page {
        return locked_page();
    }
    let message =
        "send the header Authorization: Bearer TOKEN; the token is in the file `token` of the ledger's folder";
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "no-token", message, &id);
    ([(header::WWW_AUTHENTICATE, "Bearer realm=\"cardhour\"")], problem).into_response()
}

fn is_for_programs(uri: &Uri) -> bool {
    uri.path().starts_with("/api/") || matches!(uri.path(), "/metrics" | "/openapi.json")
}

#[derive(Template)]
#[template(path = "locked.html")]
struct Locked {
    style: &'static str,
}

fn locked_page() -> Response {
    let page = Locked { style: render::styles() }.render().expect("a template that compiled writes into memory");
    (StatusCode::UNAUTHORIZED, Html(page)).into_response()
}

#[cfg(test)]
mod tests;
