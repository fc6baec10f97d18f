//! What nodes deliver: segments of their spools, one a request.
//!
//! A node's token lets it put segments under its own name. Those that come at about the same time are taken in together, one commit a table,
//! and each is answered when it is in the books' facts: then the node deletes it. The books themselves are brought up to them by
//! whoever reads next, and every minute.

use super::Service;
use super::problem::{Problem, RequestId};
use crate::clock::now;
use crate::error::{Error, chain};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use cardhour_domain::SegmentName;
use cardhour_ledger::{Error as LedgerError, Ledger, Segment, Taken};
use serde_json::json;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

/// Segments that wait to be taken in; a node that finds no room is told to come again.
const MOST_WAITING: usize = 256;
/// Segments that are taken in together.
const TOGETHER: usize = 64;
/// The header with the BLAKE3 digest of the body, in hexadecimal.
const DIGEST: &str = "x-cardhour-blake3";
/// How often the books are brought up to what was taken in.
const DERIVE_EVERY: Duration = Duration::from_secs(60);

/// Hands segments to the one task that takes them in.
#[derive(Clone)]
pub struct Intake(mpsc::Sender<Waiting>);

struct Waiting {
    segment: Segment,
    answer: oneshot::Sender<Result<Taken, LedgerError>>,
}

impl Intake {
    /// Starts taking in for a ledger, until the last handle is gone.
    pub fn start(ledger: Ledger) -> Self {
        let (send, receive) = mpsc::channel(MOST_WAITING);
        tokio::spawn(take_in(ledger, receive));
        Self(send)
    }
}

async fn take_in(ledger: Ledger, mut waiting: mpsc::Receiver<Waiting>) {
    let mut is_behind = false;
    let mut derive = tokio::time::interval(DERIVE_EVERY);
    derive.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let mut together = Vec::with_capacity(TOGETHER);
        tokio::select! {
            came = waiting.recv_many(&mut together, TOGETHER) => {
                if came == 0 {
                    return;
                }
            }
            _ = derive.tick() => {
                // Also what lies in the ledger's folder `incoming` is taken in then.
                if !std::mem::take(&mut is_behind) && !ledger.has_incoming() {
                    continue;
                }
                if let Err(error) = ledger.catch_up().await {
                    // Whoever reads next tries again, and is told.
                    warn!(error = %error, "books not brought up to what nodes told");
                }
                continue;
            }
        }
        let (segments, answers): (Vec<_>, Vec<_>) = together.into_iter().map(|w| (w.segment, w.answer)).unzip();
        // On a task of its own: a segment that brings it down must not take those after it along.
        let taking = ledger.clone();
        let Ok(outcomes) = tokio::spawn(async move { taking.take_segments(segments).await }).await else {
            warn!("segments not taken in, by a defect of ours; their nodes bring them again");
            continue;
        };
        for (taken, answer) in outcomes.into_iter().zip(answers) {
            is_behind |= matches!(taken, Ok(Taken::New(_)));
            // Who asked may be gone: it comes again, and is told that it is known.
            _ = answer.send(taken);
        }
    }
}

/// Takes in one segment: 201 when it is new, 200 when it was there, the same.
pub async fn put(
    State(service): State<Service>,
    Extension(id): Extension<RequestId>,
    Path((node, segment)): Path<(String, String)>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Response {
    let name = match SegmentName::parse(&segment) {
        Ok(name) => name,
        Err(error) => {
            return Problem::new(StatusCode::BAD_REQUEST, "bad-segment-name", error.to_string(), &id).into_response();
        }
    };
    // A body that was cut or changed on the way is none of the node's doing: it comes again.
    if let Some(digest) = headers.get(DIGEST)
        && digest.as_bytes() != blake3::hash(&bytes).to_hex().as_bytes()
    {
        let problem =
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "damaged", "the body isn't what its digest says", &id);
        return problem.into_response();
    }
    let (answer, taken) = oneshot::channel();
    let waiting = Waiting { segment: Segment { node: node.as_str().into(), name, bytes }, answer };
    if service.0.intake.0.try_send(waiting).is_err() {
        service.0.telemetry.intake().count(&node, "failed", 0, now());
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "too many segments wait; come again", &id);
        return ([("retry-after", "5")], problem).into_response();
    }
    let taken = taken.await;
    let (outcome, rows) = match &taken {
        Ok(Ok(Taken::New(rows))) => ("taken", *rows),
        Ok(Ok(Taken::Known)) => ("known", 0),
        Ok(Err(LedgerError::BadSegment { .. } | LedgerError::SegmentDiffers { .. })) => ("refused", 0),
        Ok(Err(_)) | Err(_) => ("failed", 0),
    };
    service.0.telemetry.intake().count(&node, outcome, rows, now());
    match taken {
        Ok(Ok(Taken::New(rows))) => {
            (StatusCode::CREATED, Json(json!({"outcome": "taken", "rows": rows}))).into_response()
        }
        Ok(Ok(Taken::Known)) => Json(json!({"outcome": "known"})).into_response(),
        Ok(Err(error)) => {
            let status = match &error {
                LedgerError::BadSegment { .. } => StatusCode::UNPROCESSABLE_ENTITY,
                LedgerError::SegmentDiffers { .. } => StatusCode::CONFLICT,
                _ => return Problem::of(&Error::from(error), &id).into_response(),
            };
            let code = if status == StatusCode::CONFLICT { "segment-differs" } else { "bad-segment" };
            info!(request_id = id.0, node, error = chain(&error), "segment refused");
            Problem::new(status, code, error.to_string(), &id).into_response()
        }
        Err(_) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "it was not taken in; come again", &id)
            .into_response(),
    }
}
