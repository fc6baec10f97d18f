//! Time for the probe: a clock that never goes back beside the one on the wall, and a way to be woken.

use cardhour_domain::Timestamp;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// An instant on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since an origin of its own; never goes back. Unit: microseconds.
    pub monotonic_us: i64,
    /// What the node's clock showed.
    pub wall: Timestamp,
}

impl Moment {
    /// Wall clock less monotonic clock: it changes when the wall clock is set, and only then. Unit: milliseconds.
    pub fn offset_ms(self) -> i64 {
        self.wall.unix_ms() - self.monotonic_us.div_euclid(1000)
    }
}

/// Where the daemon gets its time, and how it waits. Tests have one that jumps.
pub trait Clock {
    /// Now.
    fn now(&self) -> Moment;

    /// Waits for `length`, or until `control` wants something. Shape: several threads may wait, each with a control of its own.
    fn wait(&self, control: &Control, length: Duration);

    /// Processor time that this thread has used; none where the kernel doesn't say.
    fn thread_cpu(&self) -> Option<Duration>;
}

/// The node's own clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose monotonic side begins now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment {
            monotonic_us: i64::try_from(self.origin.elapsed().as_micros()).unwrap_or(i64::MAX),
            wall: Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
        }
    }

    fn wait(&self, control: &Control, length: Duration) {
        control.sleep(length);
    }

    fn thread_cpu(&self) -> Option<Duration> {
        // "time on cpu, time waiting, slices": the first in nanoseconds. Source: kernel, Documentation/scheduler/sched-stats.rst.
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }
}

/// What can be asked of a thread while it runs: of the probe's all of it, of delivery's to stop.
#[derive(Debug, Default)]
pub struct Control {
    asked: Mutex<Asked>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    stop: bool,
    release_for: Option<Duration>,
    take_back: bool,
}

/// What was asked since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    None,
    /// End.
    Stop,
    /// Let go of the driver for so long, so that an operator can reset a card or change the driver.
    Release(Duration),
    /// Take the cards back before the time is over.
    TakeBack,
}

impl Control {
    /// Ends the probe's thread after the call it is in.
    pub fn stop(&self) {
        self.ask(|asked| asked.stop = true);
    }

    /// Lets go of the driver for `length`: no handle stays open, so cards can be reset and the driver unloaded.
    pub fn release(&self, length: Duration) {
        self.ask(|asked| asked.release_for = Some(length));
    }

    /// Ends a release early.
    pub fn take_back(&self) {
        self.ask(|asked| asked.take_back = true);
    }

    /// What is wanted now; a wish is given once, except to stop.
    pub fn wish(&self) -> Wish {
        let mut asked = self.lock();
        if asked.stop {
            return Wish::Stop;
        }
        if let Some(length) = asked.release_for.take() {
            return Wish::Release(length);
        }
        if std::mem::take(&mut asked.take_back) { Wish::TakeBack } else { Wish::None }
    }

    /// Whether it is to end.
    pub fn is_stopped(&self) -> bool {
        self.lock().stop
    }

    fn ask(&self, change: impl FnOnce(&mut Asked)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits for so long by the machine's time, or until something is wanted; whether something is.
    pub fn sleep(&self, length: Duration) -> bool {
        let wants_nothing = |asked: &mut Asked| !asked.stop && asked.release_for.is_none() && !asked.take_back;
        let waited = self.changed.wait_timeout_while(self.lock(), length, wants_nothing);
        !waited.unwrap_or_else(std::sync::PoisonError::into_inner).1.timed_out()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Asked> {
        // Nothing that holds the lock can panic in between, so what a poisoned one guards is whole.
        self.asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_given_once_and_a_stop_for_ever() {
        let control = Control::default();
        assert_eq!(control.wish(), Wish::None);
        control.release(Duration::from_secs(60));
        assert_eq!(control.wish(), Wish::Release(Duration::from_secs(60)));
        assert_eq!(control.wish(), Wish::None);
        control.take_back();
        assert_eq!(control.wish(), Wish::TakeBack);
        control.stop();
        assert_eq!([control.wish(), control.wish()], [Wish::Stop, Wish::Stop]);
    }

    #[test]
    fn a_wish_ends_a_long_wait() {
        let control = std::sync::Arc::new(Control::default());
        let asker = std::thread::spawn({
            let control = control.clone();
            move || control.release(Duration::from_secs(1))
        });
        // Would outlast any test runner, were it not ended.
        SystemClock::start().wait(&control, Duration::from_secs(100_000));
        asker.join().unwrap();
        assert_eq!(control.wish(), Wish::Release(Duration::from_secs(1)));
    }
}
