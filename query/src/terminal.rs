//! Standard output and error: colours and bars on a terminal, plain when piped, and no fuss when the reader has gone.

use crate::error::Error;
use crate::render::{Format, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// After this a bar appears: what is faster needs none.
const BAR_AFTER: Duration = Duration::from_secs(1);

/// What a table on standard output may use.
pub fn style() -> Style {
    let out = io::stdout();
    if !out.is_terminal() {
        return Style::default();
    }
    Style { color: colors_wanted(), width: terminal_width() }
}

/// `NO_COLOR` set to anything means none (no-color.org), and so does a terminal that knows none.
fn colors_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn terminal_width() -> Option<u16> {
    terminal_size::terminal_size_of(io::stdout()).map(|(terminal_size::Width(columns), _)| columns)
}

/// Writes bytes to a file, whole or not at all, or to standard output. Errors: Parquet to a terminal; the file can't be
/// written. That the reader of standard output has gone is none.
pub fn put(bytes: &[u8], format: Format, file: Option<&Path>) -> Result<(), Error> {
    match file {
        Some(path) if path != Path::new("-") => write_file(path, bytes),
        _ => {
            if format == Format::Parquet && io::stdout().is_terminal() {
                return Err(Error::BinaryToTerminal);
            }
            say(bytes)
        }
    }
}

/// Writes to standard output. Errors: as [`put`].
pub fn say(bytes: &[u8]) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(source) => Err(Error::Stream { doing: "write to standard output", source }),
        Ok(()) => Ok(()),
    }
}

/// Writes a line to standard error; that nobody reads it is none of our faults.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Puts a file in place whole: written beside it, then renamed. What a link points to is the file; a device or a pipe is written to as it
/// is. Errors: it can't be.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed = |source| Error::File { doing: "write", path: path.to_owned(), source };
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return std::fs::write(path, bytes).map_err(failed);
    }
    let target = std::fs::canonicalize(path);
    let path = target.as_deref().unwrap_or(path);
    let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
    let beside = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let written = std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written.map_err(failed)
}

/// Sends what is logged to standard error: warnings, with `-v` what is done, with `-vv` all. `RUST_LOG` goes before.
pub fn log_to_stderr(verbose: u8, usual: &str) {
    use tracing_subscriber::EnvFilter;
    // The kernel under Delta logs an error for each table that isn't there yet; what matters comes back as an error.
    let level = match verbose {
        // Of a race that was lost the transaction logs an error; it is run again here.
        0 => format!("{usual},buoyant_kernel=off,deltalake_core::kernel::transaction=off"),
        1 => "warn,cardhour=info,cardhour_query=info,cardhour_ledger=info".to_owned(),
        _ => "info,cardhour=debug,cardhour_query=debug,cardhour_ledger=debug".to_owned(),
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let ansi = io::stderr().is_terminal() && colors_wanted();
    // A second call, as in tests, changes nothing.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(ansi).with_writer(io::stderr).try_init();
}

/// A bar on standard error that appears after a second, on a terminal only.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    is_shown: bool,
    may_show: bool,
}

impl Progress {
    /// Of `what`, which is `total` long; 0 where that isn't known. `unit`: how lengths are shown.
    pub fn new(what: &str, total: u64, unit: Unit) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let template = match (total, unit) {
            (0, _) => "{msg} {spinner} {elapsed}",
            (_, Unit::Bytes) => "{msg} {wide_bar} {bytes}/{total_bytes} {eta}",
            (_, Unit::Items) => "{msg} {wide_bar} {pos}/{len} {eta}",
        };
        bar.set_style(ProgressStyle::with_template(template).expect("a template of ours"));
        bar.set_message(what.to_owned());
        Self { bar, began: Instant::now(), is_shown: false, may_show: io::stderr().is_terminal() }
    }

    /// It has come this far.
    pub fn at(&mut self, done: u64) {
        self.bar.set_position(done);
        if self.may_show && !self.is_shown && self.began.elapsed() >= BAR_AFTER {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(Duration::from_millis(200));
            self.is_shown = true;
        }
    }

    /// Waits for work that can't say how far it is; shown as a spinner once that takes a second.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            match tokio::time::timeout(BAR_AFTER, &mut work).await {
                Ok(done) => return done,
                Err(_) => self.at(0),
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// What a bar counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of input.
    Bytes,
    /// Things.
    Items,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bill.csv");
        write_file(&path, b"a").unwrap();
        write_file(&path, b"bc").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"bc");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        assert!(write_file(&folder.path().join("no/such/folder.csv"), b"a").is_err());
    }

    #[test]
    fn a_link_leads_to_its_file_and_a_pipe_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link, pipe) = (folder.path().join("file"), folder.path().join("link"), folder.path().join("pipe"));
        std::fs::write(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_file(&link, b"new").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());

        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        write_file(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(!std::fs::metadata(&pipe).unwrap().is_file());
    }
}
