//! Why the command or the service couldn't do what it was asked.
//!
//! Two texts an error: for the caller a stable [`code`](Error::code) and a sentence; for the log the whole chain. Who can
//! mend it is said by [`remedy`](Error::remedy), from which the exit code and the HTTP status follow.

use crate::config::ConfigError;
use crate::request::RequestError;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why something wasn't done: one variant for each thing a caller could do differently.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A question that has no answer as it stands.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The config is faulty.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No ledger was named and there is no default place.
    #[error("no home folder to keep a ledger in: name one with --ledger DIR or CARDHOUR_LEDGER")]
    NoPlace,
    /// Parquet to a terminal.
    #[error("parquet is no text: name a file with --output-file, or pipe it on")]
    BinaryToTerminal,
    /// A file couldn't be read or written.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// `read`, `write`, `make`.
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Standard output or input failed.
    #[error("cannot {doing}")]
    Stream {
        /// `write to standard output`.
        doing: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// A table couldn't be written as Parquet.
    #[error("cannot write parquet")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// A table couldn't be laid out as columns.
    #[error("cannot lay the table out as columns")]
    Columns(#[from] arrow::error::ArrowError),
    /// No such report over HTTP.
    #[error("no report {0:?}: take usage, bill, coverage, capacity or owners")]
    NoReport(String),
    /// No such line or entry.
    #[error("no line {0:?} in these books: `report bill` shows the lines there are")]
    NoLine(String),
    /// The service was told to listen beyond this machine.
    #[error(
        "{0} is not a loopback address: listening beyond this machine needs TLS, which this version doesn't have; \
         take 127.0.0.1 and a proxy or an ssh tunnel in front"
    )]
    NotLoopback(SocketAddr),
    /// The address can't be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// A token file that others can read, or that isn't a token.
    #[error("token file {} {fault}", path.display())]
    Token {
        /// Which.
        path: PathBuf,
        /// What is wrong and what to do.
        fault: &'static str,
    },
    /// The system gave no random bytes.
    #[error("no random bytes from the system: {0}")]
    Random(getrandom::Error),
}

/// Who can mend an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Whoever asked, by asking otherwise.
    Caller,
    /// Whoever asked, who named something that isn't there.
    CallerNotFound,
    /// Whoever asked, by asking again.
    Retry,
    /// Whoever runs this.
    Operator,
}

impl Error {
    /// Who can mend it.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::NoReport(_) | Self::NoLine(_) => Remedy::CallerNotFound,
            Self::Request(_) | Self::Config(_) | Self::NoPlace | Self::BinaryToTerminal | Self::NotLoopback(_) => {
                Remedy::Caller
            }
            Self::File { .. }
            | Self::Stream { .. }
            | Self::Parquet(_)
            | Self::Columns(_)
            | Self::Listen { .. }
            | Self::Token { .. }
            | Self::Random(_) => Remedy::Operator,
        }
    }

    /// Its stable name for programs: in the bodies of the HTTP service.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Request(_) => "bad-request",
            Self::NoReport(_) => "no-report",
            Self::NoLine(_) => "no-line",
            Self::BinaryToTerminal => "binary-to-terminal",
            Self::Config(_) | Self::NoPlace | Self::NotLoopback(_) => "bad-config",
            Self::File { .. } | Self::Stream { .. } => "io",
            Self::Parquet(_) | Self::Columns(_) => "render",
            Self::Listen { .. } => "listen",
            Self::Token { .. } | Self::Random(_) => "token",
        }
    }
}

/// The error and its causes in one line, for the log.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
