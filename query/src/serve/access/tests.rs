use super::*;
use crate::serve::problem;
use axum::Router;
use axum::body::Body;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post, put};
use tower::ServiceExt;

/// A service with one route of each kind behind the guard, at port 7780.
fn guarded() -> (Router, Token) {
    guarded_with(None)
}

fn guarded_with(nodes: Option<NodeTokens>) -> (Router, Token) {
    let token = Token::random().unwrap();
    let access = Access::new(token.clone(), nodes, "127.0.0.1:7780".parse().unwrap(), false);
    let router = Router::new()
        .route("/", get(|| async { "page" }))
        .route("/healthz", get(|| async { "ok" }))
        .route("/metrics", get(|| async { "metrics" }))
        .route("/api/v1/report/bill", get(|| async { "report" }))
        .route("/api/v1/sql", post(|| async { "sql" }))
        .route("/api/v1/intake/{node}/{segment}", put(|| async { "taken" }))
        .layer(from_fn_with_state(access, guard))
        .layer(from_fn(problem::envelope));
    (router, token)
}

async fn ask(router: &Router, method: &str, uri: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Request::builder().method(method).uri(uri);
    let names_host = headers.iter().any(|(name, _)| *name == "host");
    for (name, value) in headers.iter().copied().chain((!names_host).then_some(("host", "127.0.0.1:7780"))) {
        request = request.header(name, value);
    }
    router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn nothing_but_the_health_is_told_without_a_token() {
    let (router, _) = guarded();
    for (method, uri, expected) in [
        ("GET", "/healthz", 200),
        ("GET", "/", 401),
        ("GET", "/?token=0000", 401),
        ("GET", "/metrics", 401),
        ("GET", "/metrics?token=0000", 401),
        ("GET", "/api/v1/report/bill", 401),
        ("POST", "/api/v1/sql", 401),
        ("GET", "/nowhere", 401),
    ] {
        assert_eq!(ask(&router, method, uri, &[]).await.status(), expected, "{method} {uri}");
    }
}

#[tokio::test]
async fn a_program_with_the_token_is_let_in() {
    let (router, token) = guarded();
    let bearer = format!("Bearer {}", token.secret());
    for (method, uri) in [("GET", "/metrics"), ("GET", "/api/v1/report/bill"), ("POST", "/api/v1/sql")] {
        let reply = ask(&router, method, uri, &[("authorization", &bearer)]).await;
        assert_eq!(reply.status(), 200, "{method} {uri}");
        assert!(reply.headers().contains_key("x-request-id"));
    }
    let wrong = format!("Bearer {}", Token::random().unwrap().secret());
    for value in [wrong.as_str(), "Bearer", "Bearer ", &format!("Basic {}", token.secret()), token.secret()] {
        let reply = ask(&router, "GET", "/metrics", &[("authorization", value)]).await;
        assert_eq!(reply.status(), 401, "{value}");
        assert!(reply.headers().contains_key("www-authenticate"));
    }
}

#[tokio::test]
async fn a_browser_opens_the_page_with_the_token_once_and_then_has_a_cookie_that_only_reads() {
    let (router, token) = guarded();
    let reply = ask(&router, "GET", &format!("/?token={}", token.secret()), &[]).await;
    assert_eq!(reply.status(), 303);
    assert_eq!(reply.headers()["location"], "/");
    let cookie = reply.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(token.secret()), "the token itself stays out of the browser's store");
    let pair = cookie.split(';').next().unwrap();
    for (method, uri, expected) in
        [("GET", "/", 200), ("GET", "/api/v1/report/bill", 200), ("POST", "/api/v1/sql", 401)]
    {
        let reply = ask(&router, method, uri, &[("cookie", pair)]).await;
        assert_eq!(reply.status(), expected, "{method} {uri}");
    }
    assert_eq!(ask(&router, "GET", "/", &[("cookie", "cardhour_session=0")]).await.status(), 401);
}

#[tokio::test]
async fn a_name_that_is_not_this_machine_is_refused_even_with_the_token() {
    let (router, token) = guarded();
    let bearer = format!("Bearer {}", token.secret());
    for (host, expected) in [
        ("localhost:7780", 200),
        ("LOCALHOST:7780", 200),
        ("[::1]:7780", 200),
        ("127.0.0.1:7781", 421),
        ("127.0.0.1", 421),
        ("books.example.com:7780", 421),
        ("127.0.0.1:7780.example.com", 421),
    ] {
        let reply = ask(&router, "GET", "/metrics", &[("host", host), ("authorization", &bearer)]).await;
        assert_eq!(reply.status(), expected, "{host}");
    }
}

#[tokio::test]
async fn a_page_of_another_site_can_ask_nothing() {
    let (router, token) = guarded();
    let bearer = format!("Bearer {}", token.secret());
    for (origin, expected) in [
        ("http://127.0.0.1:7780", 200),
        ("http://localhost:7780", 403),
        ("https://127.0.0.1:7780", 403),
        ("http://evil.example", 403),
        ("null", 403),
    ] {
        let headers = [("origin", origin), ("authorization", bearer.as_str())];
        assert_eq!(ask(&router, "POST", "/api/v1/sql", &headers).await.status(), expected, "{origin}");
    }
}

#[tokio::test]
async fn a_nodes_token_delivers_its_own_segments_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = NodeTokens::of(folder.path());
    let bearer = format!("Bearer {}", tokens.make("gpu01").unwrap());
    let (router, _) = guarded_with(Some(tokens.clone()));
    let headers = [("authorization", bearer.as_str())];
    for (method, uri, expected) in [
        ("PUT", "/api/v1/intake/gpu01/x", 200),
        ("PUT", "/api/v1/intake/gpu02/x", 401),
        ("PUT", "/api/v1/intake/gpu01/../gpu02/x", 401),
        ("GET", "/api/v1/report/bill", 401),
        ("POST", "/api/v1/sql", 401),
        ("GET", "/metrics", 401),
        ("GET", "/", 401),
    ] {
        let status = ask(&router, method, uri, &headers).await.status().as_u16();
        // A path that climbs is no route at all, whoever asks.
        assert!(status == expected || uri.contains("..") && status == 404, "{method} {uri}: {status}");
    }
    tokens.revoke("gpu01").unwrap();
    assert_eq!(ask(&router, "PUT", "/api/v1/intake/gpu01/x", &headers).await.status(), 401);
}
