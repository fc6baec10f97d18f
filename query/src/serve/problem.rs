//! What went wrong, told twice: a code and a sentence to the client, the chain to the log, one request id on both.

use crate::error::{Error, Remedy, chain};
use crate::serve::token;
use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::{error, info};

/// Names one request, in the reply's header `x-request-id` and in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub String);

/// The body of a reply that says no. Stability: its keys are a public contract.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    /// Stable, for programs: `bad-request`.
    pub code: &'static str,
    /// For people.
    pub message: String,
    /// Ask the operator about this one.
    pub request_id: String,
    #[serde(skip)]
    status: StatusCode,
}

impl Problem {
    /// A refusal that has nothing to hide.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>, id: &RequestId) -> Self {
        Self { code, message: message.into(), request_id: id.0.clone(), status }
    }

    /// From an error: the caller's own faults word for word, the operator's only as their code; the chain is logged.
    pub fn of(error: &Error, id: &RequestId) -> Self {
        let (status, message) = match error.remedy() {
            Remedy::Caller => (StatusCode::BAD_REQUEST, chain(error)),
            Remedy::CallerNotFound => (StatusCode::NOT_FOUND, chain(error)),
            Remedy::Retry => (StatusCode::SERVICE_UNAVAILABLE, "the books are busy; ask again".to_owned()),
            Remedy::Operator => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the service failed; its log has the reason under this request id".to_owned(),
            ),
        };
        if status.is_server_error() {
            error!(request_id = id.0, code = error.code(), error = chain(error), "request failed");
        } else {
            info!(request_id = id.0, code = error.code(), error = chain(error), "request refused");
        }
        Self { code: error.code(), message, request_id: id.0.clone(), status }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(self)).into_response()
    }
}

/// Gives every request its id and every reply the headers that keep a browser from guessing, framing, caching and telling.
pub async fn envelope(mut request: Request, next: Next) -> Response {
    let id = RequestId(next_id());
    request.extensions_mut().insert(id.clone());
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let constant = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
    ];
    for (name, value) in constant {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        headers.insert(HeaderName::from_static("x-request-id"), value);
    }
    response
}

/// This start's random half and a count.
fn next_id() -> String {
    static START: LazyLock<String> = LazyLock::new(|| token::random_hex::<4>().unwrap_or_else(|_| "00000000".into()));
    static COUNT: AtomicU64 = AtomicU64::new(1);
    format!("{}-{}", *START, COUNT.fetch_add(1, Ordering::Relaxed))
}
