//! The daemon on a clock that somebody else drives: `driven CONFIG LIBRARY CLOCK WAITING`.
//!
//! For tests that let days go by in minutes, and kill it on the way: all of [`cardhour_collector::run`], with another [`Clock`].
//!
//! `CLOCK` is 16 bytes, little-endian: nanoseconds since the start of the scenario, as `tests/fake-nvml` reads them too, and what the wall clock
//! shows more than that, in milliseconds since 1970; whoever changes that sets the node's clock. Into `WAITING` goes what the thread that reads
//! cards waits for, in nanoseconds on the same clock: until then it does nothing, so that the clock may be moved there.

use cardhour_collector::config::Config;
use cardhour_collector::probe::{Clock, Control, Moment};
use cardhour_collector::run::{READER, WhenHung, pass_signals_on, run};
use cardhour_domain::Timestamp;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How often a thread that waits looks at the clock.
const LOOK_EVERY: Duration = Duration::from_micros(100);

/// The same for all threads; the waiting of the one that reads cards is told.
#[derive(Clone)]
struct DrivenClock {
    clock: Arc<File>,
    waiting: Arc<File>,
}

impl DrivenClock {
    /// Nanoseconds since the start of the scenario, and what the wall clock shows more. Unit: milliseconds.
    fn read(&self) -> (u64, i64) {
        let mut bytes = [0; 16];
        self.clock.read_exact_at(&mut bytes, 0).expect("the clock can be read");
        let [ns, more_ms] = [0, 8].map(|at| bytes[at..at + 8].try_into().expect("eight bytes"));
        (u64::from_le_bytes(ns), i64::from_le_bytes(more_ms))
    }
}

impl Clock for DrivenClock {
    fn now(&self) -> Moment {
        let (ns, more_ms) = self.read();
        let ns = i64::try_from(ns).expect("a scenario is shorter than centuries");
        Moment { monotonic_us: ns / 1000, wall: Timestamp::from_unix_ms(ns / 1_000_000 + more_ms) }
    }

    fn wait(&self, control: &Control, length: Duration) {
        let until = self.read().0 + u64::try_from(length.as_nanos()).expect("a wait is shorter than centuries");
        if std::thread::current().name() == Some(READER) {
            self.waiting.write_all_at(&until.to_le_bytes(), 0).expect("what is waited for can be told");
        }
        while self.read().0 < until && !control.sleep(LOOK_EVERY) {}
    }

    /// Unknown: a processor's time has nothing to do with this clock.
    fn thread_cpu(&self) -> Option<Duration> {
        None
    }
}

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let arguments: Vec<String> = std::env::args().collect();
    let [_, config, library, clock, waiting] = &arguments[..] else {
        eprintln!("driven CONFIG LIBRARY CLOCK WAITING");
        return ExitCode::from(2);
    };
    let mut config = Config::load(Path::new(config), "").expect("a config");
    config.nvml_library = Some(library.into());
    let clock = DrivenClock {
        clock: File::open(clock).expect("a clock").into(),
        waiting: OpenOptions::new().write(true).open(waiting).expect("a file to tell in").into(),
    };
    match run(&config, &clock, WhenHung::End, pass_signals_on) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("driven: {error:?}");
            ExitCode::from(3)
        }
    }
}
