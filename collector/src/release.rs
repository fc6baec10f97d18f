//! Letting go of the cards on request: an operator resets one, or changes the driver, and the collector goes on.
//!
//! The daemon listens on a socket `control` in its spool's folder, which is closed to others; [`ask`] is the other end, behind
//! `cardhour-collector release`. It answers when no handle of the driver is open any more, so that a script can go on with what it wants to do
//! with the cards. One line each way:
//!
//! | request | answer |
//! |---|---|
//! | `release SECONDS` | `released UNTIL`, milliseconds since 1970, once nothing is open; asked again it begins anew |
//! | `take-back` | `taken back` |
//! | anything that can't be done | `no REASON` |
//!
//! What it does not do: end the processes that use a card, or reset it.

use crate::probe::nvml::DriverStatus;
use crate::probe::{Clock, Control, Heartbeat};
use cardhour_domain::Timestamp;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The socket's name in the spool's folder.
const SOCKET: &str = "control";
/// For how long cards are let go where nobody says. Unit: seconds.
pub const USUAL_S: u32 = 300;
/// For how long at most. Unit: seconds.
pub const LONGEST_S: u32 = 86_400;
/// How long the driver may take over the call that it is in; after half a minute a call has hung, and the daemon ends or goes on without the cards.
const LET_GO_WITHIN: Duration = Duration::from_secs(35);
/// How often it is looked whether the cards are free.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long who asks may take over its line.
const LINE_WITHIN: Duration = Duration::from_secs(5);
/// The longest line. Unit: bytes.
const LINE_BYTES: u64 = 256;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Let go of the cards for so many seconds.
    Release(u32),
    /// Take them back before that time is over.
    TakeBack,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Nothing is open, until then.
    Released(Timestamp),
    /// The cards are read again.
    TakenBack,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// No collector listens there.
    #[error("no collector listens at {path}: is it running, with this spool, and may you open that?")]
    NoCollector {
        /// The socket.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// It hung up.
    #[error("the collector doesn't answer")]
    NoAnswer(#[source] io::Error),
    /// It says why.
    #[error("the collector says no: {0}")]
    Refused(String),
}

/// What listens for requests.
pub struct Desk<C> {
    /// The probe's.
    pub control: Arc<Control>,
    /// How the driver is.
    pub status: Arc<Mutex<DriverStatus>>,
    /// Which call the driver is in.
    pub heartbeat: Arc<Heartbeat>,
    /// The daemon's time.
    pub clock: C,
}

/// While it lives there is a socket.
#[derive(Debug)]
pub struct Listening {
    socket: PathBuf,
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Where it can't be removed, the next start does it.
        drop(fs::remove_file(&self.socket));
    }
}

/// Listens in a spool's folder, on a thread of its own. Errors: there can be no socket there, such as in a folder with a very long name.
pub fn listen(spool: &Path, desk: Desk<impl Clock + Send + 'static>) -> io::Result<Listening> {
    let path = spool.join(SOCKET);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        // What an earlier life left: the spool is locked, so nobody else listens there.
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    let serve = move || {
        for stream in listener.incoming() {
            if let Err(error) = stream.and_then(|stream| desk.answer(&stream)) {
                tracing::debug!(%error, "somebody at the control socket hung up");
            }
        }
    };
    std::thread::Builder::new().name("control".into()).spawn(serve)?;
    Ok(Listening { socket: path })
}

impl<C: Clock> Desk<C> {
    fn answer(&self, mut stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(LINE_WITHIN))?;
        stream.set_write_timeout(Some(LINE_WITHIN))?;
        let mut line = String::new();
        BufReader::new(stream.take(LINE_BYTES)).read_line(&mut line)?;
        let answer = match parse(line.trim_end()) {
            Some(Request::Release(seconds)) => self.release(seconds),
            Some(Request::TakeBack) => {
                self.control.take_back();
                "taken back".to_owned()
            }
            None => format!("no such request; release takes 1 to {LONGEST_S} seconds"),
        };
        writeln!(stream, "{answer}")
    }

    /// Lets go, and waits until that is so.
    fn release(&self, seconds: u32) -> String {
        let length = Duration::from_secs(seconds.into());
        let asked = self.clock.now();
        let until_us = asked.monotonic_us + i64::from(seconds) * 1_000_000;
        self.control.release(length);
        let since = Instant::now();
        while since.elapsed() < LET_GO_WITHIN {
            let status = self.status.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let DriverStatus::Released { until_us: until } = status
                && until >= until_us
            {
                let until_ms = asked.offset_ms() + until.div_euclid(1000);
                return format!("released {until_ms}");
            }
            std::thread::sleep(LOOK_EVERY);
        }
        match self.heartbeat.hung(Duration::ZERO) {
            Some(hung) => format!("no the driver is in {} for {} s", hung.call, hung.since.as_secs()),
            None => "no the cards are not let go yet".to_owned(),
        }
    }
}

fn parse(line: &str) -> Option<Request> {
    match line.split_once(' ') {
        None if line == "take-back" => Some(Request::TakeBack),
        Some(("release", seconds)) => {
            let seconds = seconds.parse().ok().filter(|s| (1..=LONGEST_S).contains(s))?;
            Some(Request::Release(seconds))
        }
        _ => None,
    }
}

/// Asks the collector of a spool. It waits until that is done. Errors: nobody listens there, or it can't be done.
pub fn ask(spool: &Path, request: Request) -> Result<Done, ReleaseError> {
    let path = spool.join(SOCKET);
    let mut stream = UnixStream::connect(&path)
        .map_err(|source| ReleaseError::NoCollector { path: path.display().to_string(), source })?;
    let line = match request {
        Request::Release(seconds) => format!("release {seconds}\n"),
        Request::TakeBack => "take-back\n".to_owned(),
    };
    let mut answer = String::new();
    let talk = || {
        stream.set_read_timeout(Some(LET_GO_WITHIN + LINE_WITHIN))?;
        stream.write_all(line.as_bytes())?;
        stream.take(LINE_BYTES).read_to_string(&mut answer)
    };
    talk().map_err(ReleaseError::NoAnswer)?;
    let answer = answer.trim_end();
    match answer.split_once(' ') {
        Some(("released", until)) => match until.parse() {
            Ok(ms) => Ok(Done::Released(Timestamp::from_unix_ms(ms))),
            Err(_) => Err(ReleaseError::Refused(format!("{answer:?}"))),
        },
        Some(("taken", "back")) => Ok(Done::TakenBack),
        Some(("no", reason)) => Err(ReleaseError::Refused(reason.to_owned())),
        _ => Err(ReleaseError::Refused(format!("{answer:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_request_or_nothing() {
        assert_eq!(parse("release 300"), Some(Request::Release(300)));
        assert_eq!(parse("take-back"), Some(Request::TakeBack));
        for odd in ["", "release", "release 0", "release 86401", "release -1", "release 5 5", "stop", "take-back now"] {
            assert_eq!(parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn where_no_collector_listens_that_is_said_with_the_place() {
        let spool = tempfile::tempdir().unwrap();
        let said = ask(spool.path(), Request::TakeBack).unwrap_err().to_string();
        assert!(said.contains("no collector listens at") && said.contains("control"), "{said}");
    }
}
