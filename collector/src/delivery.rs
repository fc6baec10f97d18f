//! Segments to the ledger, at least once.
//!
//! What lies in the spool as a segment is undelivered; it is removed when the taker has confirmed it, and nothing else is kept. So an answer that is
//! lost, or a kill before the removal, sends a segment again, under the same name with the same content, and the taker knows it. Who held what goes
//! before telemetry, each the oldest first.
//!
//! # To a service
//!
//! ```text
//! PUT {service}/api/v1/intake/{node}/{segment}
//! Authorization: Bearer TOKEN                     read anew from its file for each run
//! Content-Type: application/vnd.apache.parquet
//! X-Cardhour-Blake3: HEX                          BLAKE3 of the body, 64 digits
//! ```
//!
//! | answer | what happens |
//! |---|---|
//! | 201; 200 with `{"outcome": "taken"}` | confirmed |
//! | 200 with `{"outcome": "known"}` | confirmed: it was there already |
//! | 409, 413, 415, 422, other 4xx; 400 with a JSON `code` | refused: moved to `refused/` in the spool, counted, logged, returned |
//! | 401, 403 | kept, tried again every five minutes: the token is wrong, or of another node |
//! | 408, 421, 425, 429, 5xx | kept, tried again after `Retry-After` (seconds), else after 1, 2, 4 … 300 seconds with jitter |
//! | 404, 405, 407, 410, redirects, any other 200 | kept, tried again every five minutes: what answers there is not a cardhour service |
//! | none | kept, tried again after 1, 2, 4 … 300 seconds with jitter |
//!
//! A bare 200 confirms nothing: a proxy that answers for a service that is away would swallow what it can't keep.
//!
//! # To a folder
//!
//! `FOLDER/incoming/NODE/SEGMENT`, by way of a temporary name. `incoming` must be there: where a file system isn't mounted, it isn't, and nothing goes
//! under the mount point.
//!
//! # To a bucket
//!
//! `PREFIX/incoming/NODE/SEGMENT`, by S3's `PutObject`, over what is there: a name has one content. The service takes it from there. So a node needs
//! no more than to put under its own prefix, and nobody needs a way to the service.
//!
//! | answer | what happens |
//! |---|---|
//! | 200 with an `ETag` | confirmed |
//! | 408, 425, 429, 5xx; 400 `RequestTimeout` | kept, tried again after `Retry-After` (seconds), else after 1, 2, 4 … 300 seconds with jitter |
//! | any other; no credentials | kept, tried again every five minutes, with the credentials read anew |
//! | none | kept, tried again after 1, 2, 4 … 300 seconds with jitter |
//!
//! To deliver what was refused again, move it from `refused/` back into the spool.

mod bucket;
mod client;
mod directory;
mod retry;
mod service;
#[cfg(test)]
mod tests;

use crate::spool::{SpoolError, folder};
use bucket::Store;
use cardhour_bucket::{Bucket, CredentialsError, CredentialsSource, Fault};
use cardhour_domain::{Name, SegmentName, Timestamp};
use directory::Directory;
use retry::Retry;
use service::Service;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Segments that one run sends at most, so that a collector that stops doesn't wait for a backlog.
const SEGMENTS_A_RUN: usize = 64;

/// Troubles of a run after which it ends. After one it goes on: a service that fails at one segment shouldn't hold up the others.
const TROUBLES_A_RUN: u32 = 2;

/// Where segments of a node go, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryConfig {
    /// The spool's folder.
    pub spool: PathBuf,
    /// The node's name, under which they are taken.
    pub node: Name,
    /// Where to.
    pub to: Destination,
}

/// Where segments go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A cardhour service.
    Service {
        /// Its address, such as `https://cardhour.example:7780`. Plain HTTP only to this machine: a token is no secret on the way otherwise.
        url: String,
        /// The file with this node's token.
        token_file: PathBuf,
        /// Certificates (PEM) of who may vouch for the service; none: the system's.
        ca_file: Option<PathBuf>,
    },
    /// A folder that the ledger takes in.
    Folder(PathBuf),
    /// A bucket from which the service takes them.
    Bucket {
        /// Which.
        bucket: Bucket,
        /// Who asks it.
        credentials: CredentialsSource,
        /// Certificates (PEM) of who may vouch for it; none: the system's.
        ca_file: Option<PathBuf>,
    },
}

/// Why delivery can't begin: a fault of the config.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeliveryError {
    /// Not a node's name.
    #[error(transparent)]
    Node(#[from] SpoolError),
    /// Not the address of a service.
    #[error("{url:?} is no service's address: {reason}")]
    Url {
        /// What was asked for.
        url: String,
        /// Why not.
        reason: String,
    },
    /// There are no certificates to know the service by.
    #[error(transparent)]
    Certificates(#[from] cardhour_reach::https::CertificateError),
}

/// Why segments stay in the spool for now.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// Nobody answers.
    #[error("no answer from {to}")]
    Unreachable {
        /// Who was asked.
        to: String,
        /// What came instead.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The token isn't one for this node.
    #[error("the service answers {status} to the token in {}: it isn't one of node {node}; `cardhour token {node}` beside the service makes one", token_file.display())]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// Where the token is from.
        token_file: PathBuf,
        /// Which node this is.
        node: String,
    },
    /// The service or bucket can't now.
    #[error("the {who} answers {status}: {reason}")]
    Busy {
        /// `service` or `bucket`.
        who: &'static str,
        /// 429, 503 and the like.
        status: u16,
        /// What it says.
        reason: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// Something else answers.
    #[error(
        "what answers at {to} ({status}) is not a cardhour service that takes segments: check the address and proxies between"
    )]
    NotTheService {
        /// Who was asked.
        to: String,
        /// What it answered.
        status: u16,
    },
    /// The token can't be read.
    #[error("cannot read the token in {}", path.display())]
    Token {
        /// Its file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The bucket doesn't take it.
    #[error("{bucket} answers {fault}")]
    Bucket {
        /// Which, and where.
        bucket: String,
        /// What it says.
        fault: Fault,
    },
    /// There is nothing to say who asks the bucket.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The folder to deliver to isn't there, or takes nothing.
    #[error("cannot {doing} {}", path.display())]
    Folder {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The spool can't be read.
    #[error(transparent)]
    Spool(#[from] SpoolError),
}

impl Trouble {
    /// The names of all of them.
    pub const NAMES: [&str; 9] =
        ["unreachable", "unauthorized", "busy", "not_the_service", "token", "bucket", "credentials", "folder", "spool"];

    /// Its name in labels and in the log.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "unreachable",
            Self::Unauthorized { .. } => "unauthorized",
            Self::Busy { .. } => "busy",
            Self::NotTheService { .. } => "not_the_service",
            Self::Token { .. } => "token",
            Self::Bucket { .. } => "bucket",
            Self::Credentials(_) => "credentials",
            Self::Folder { .. } => "folder",
            Self::Spool(_) => "spool",
        }
    }
}

/// What the taker says of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Taken,
    Known,
    Refused(String),
}

/// A segment that the taker doesn't want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which.
    pub segment: SegmentName,
    /// What it said.
    pub reason: String,
    /// Where it lies now.
    pub kept_at: PathBuf,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Delivered {
    /// Segments that were taken.
    pub taken: u64,
    /// Segments that were there already.
    pub known: u64,
    /// What was taken or known. Unit: bytes.
    pub bytes: u64,
    /// Segments that were refused.
    pub refused: Vec<Refusal>,
    /// Why others are still there, the last reason.
    pub trouble: Option<Trouble>,
    /// When to run next: none when there is no trouble.
    pub next_try_at: Option<Timestamp>,
    /// Segments that are still there.
    pub left: u64,
}

/// What delivery has done since it began: for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryCounters {
    /// Segments that were taken.
    pub taken_segments: u64,
    /// Segments that were there already.
    pub known_segments: u64,
    /// What was taken or known. Unit: bytes.
    pub delivered_bytes: u64,
    /// Segments that were refused.
    pub refused_segments: u64,
    /// Runs that ended in trouble.
    pub troubled_runs: u64,
}

enum Taker {
    Service(Box<Service>),
    Directory(Directory),
    Store(Box<Store>),
}

/// Takes segments from a spool to the ledger. To be run from a thread of its own: it waits for answers.
pub struct Delivery {
    spool: PathBuf,
    taker: Taker,
    retry: Retry,
    /// The trouble that the log has, so that it has it once.
    logged: Option<&'static str>,
    counters: DeliveryCounters,
}

impl Delivery {
    /// Errors: faults of the config. Whether anybody is there is found out by [`Self::run_once`].
    pub fn new(config: DeliveryConfig) -> Result<Self, DeliveryError> {
        folder::check_node(&config.node)?;
        let taker = match config.to {
            Destination::Service { url, token_file, ca_file } => {
                Taker::Service(Box::new(Service::new(&url, &config.node, token_file, ca_file.as_deref())?))
            }
            Destination::Folder(folder) => Taker::Directory(Directory::new(folder, &config.node)),
            Destination::Bucket { bucket, credentials, ca_file } => {
                Taker::Store(Box::new(Store::new(bucket, credentials, config.node, ca_file.as_deref())?))
            }
        };
        Ok(Self {
            spool: config.spool,
            taker,
            retry: Retry::default(),
            logged: None,
            counters: DeliveryCounters::default(),
        })
    }

    /// Sends what waits, if it is time to: after trouble it isn't for a while. At most 64 segments: run again while some are left.
    pub fn run_once(&mut self, now: Timestamp) -> Delivered {
        let mut done = Delivered::default();
        let pending = match folder::pending(&self.spool) {
            Ok(pending) => pending,
            Err(error) => {
                self.troubled(&mut done, error.into(), now);
                self.count(&done);
                return done;
            }
        };
        done.left = pending.len() as u64;
        if !self.retry.is_due(now) {
            done.next_try_at = self.retry.next_at();
            return done;
        }
        let mut troubles = 0;
        for sealed in pending.into_iter().take(SEGMENTS_A_RUN) {
            let sent = match std::fs::read(&sealed.path) {
                Ok(bytes) => self.taker.take(&sealed.name, &bytes, now),
                // Dropped to make room.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    done.left -= 1;
                    continue;
                }
                Err(error) => Err(SpoolError::disk("read", &sealed.path)(error).into()),
            };
            let settled = sent.and_then(|answer| {
                let refusal = match &answer {
                    Answer::Taken | Answer::Known => {
                        folder::remove(&sealed.path)?;
                        None
                    }
                    Answer::Refused(reason) => {
                        let kept_at = folder::set_aside(&self.spool, &sealed.path)?;
                        Some(Refusal { segment: sealed.name.clone(), reason: reason.clone(), kept_at })
                    }
                };
                Ok((answer, refusal))
            });
            match settled {
                Ok((answer, refusal)) => {
                    done.left -= 1;
                    match answer {
                        Answer::Taken => done.taken += 1,
                        Answer::Known => done.known += 1,
                        Answer::Refused(_) => {}
                    }
                    match refusal {
                        None => done.bytes += sealed.bytes,
                        Some(refusal) => {
                            tracing::warn!(
                                segment = %refusal.segment,
                                reason = refusal.reason,
                                kept_at = %refusal.kept_at.display(),
                                "a segment is refused and kept aside"
                            );
                            done.refused.push(refusal);
                        }
                    }
                }
                Err(trouble) => {
                    troubles += 1;
                    let is_over = troubles >= TROUBLES_A_RUN || retry::is_of_all(&trouble);
                    self.troubled(&mut done, trouble, now);
                    if is_over {
                        break;
                    }
                }
            }
        }
        self.count(&done);
        if done.trouble.is_none() {
            self.retry.well();
            if let Some(trouble) = self.logged.take() {
                tracing::info!(trouble, "segments are delivered again");
            }
        }
        done
    }

    /// What it has done.
    pub const fn counters(&self) -> &DeliveryCounters {
        &self.counters
    }

    fn count(&mut self, done: &Delivered) {
        self.counters.taken_segments += done.taken;
        self.counters.known_segments += done.known;
        self.counters.delivered_bytes += done.bytes;
        self.counters.refused_segments += done.refused.len() as u64;
        self.counters.troubled_runs += u64::from(done.trouble.is_some());
    }

    fn troubled(&mut self, done: &mut Delivered, trouble: Trouble, now: Timestamp) {
        // The second trouble of a run is not a second failure.
        if done.trouble.is_none() {
            self.retry.failed(now);
        }
        self.retry.wait(&trouble, retry::random());
        done.next_try_at = self.retry.next_at();
        if self.logged != Some(trouble.name()) {
            self.logged = Some(trouble.name());
            tracing::warn!(
                error = &trouble as &dyn std::error::Error,
                next_try_at = done.next_try_at.map(tracing::field::display),
                "segments stay in the spool"
            );
        }
        done.trouble = Some(trouble);
    }
}

impl Taker {
    fn take(&mut self, name: &SegmentName, bytes: &[u8], now: Timestamp) -> Result<Answer, Trouble> {
        match self {
            Self::Store(store) => store.take(name, bytes, now),
            Self::Service(service) => service.take(name, bytes),
            Self::Directory(directory) => directory.take(name, bytes),
        }
    }
}
