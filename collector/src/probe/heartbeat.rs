//! Whether the thread in the driver still moves.
//!
//! A call into a sick driver can hang for ever and can't be cancelled. Before each call the thread says here what it does; a second thread
//! looks, and when a call takes too long it says so to whoever can end the process.

use super::nvml::Call;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the thread in the driver does at the moment.
#[derive(Debug, Default)]
pub struct Heartbeat {
    doing: Mutex<Doing>,
}

#[derive(Debug, Default)]
struct Doing {
    call: Option<(Call, Arc<str>, Instant)>,
    calls: Calls,
}

/// What became of calls into the driver so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// How many came back.
    pub count: u64,
    /// How long they took together.
    pub busy: Duration,
    /// How many of them took longer than a second.
    pub slow: u64,
}

/// A call that takes longer than this is slow: other programs that ask the driver wait as long.
const SLOW: Duration = Duration::from_secs(1);

/// A call that doesn't come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hung {
    /// NVML's name of the call.
    pub call: &'static str,
    /// The UUID of the card or instance it was made on; empty for a call that is on none.
    pub card: String,
    /// For how long it has been.
    pub since: Duration,
}

impl Heartbeat {
    /// A call begins.
    pub fn enter(&self, call: Call, device: &Arc<str>) {
        self.lock().call = Some((call, device.clone(), Instant::now()));
    }

    /// It came back.
    pub fn leave(&self) {
        let mut doing = self.lock();
        if let Some((.., since)) = doing.call.take() {
            let took = since.elapsed();
            doing.calls.count += 1;
            doing.calls.busy += took;
            doing.calls.slow += u64::from(took > SLOW);
        }
    }

    /// What became of all calls so far.
    pub fn calls(&self) -> Calls {
        self.lock().calls
    }

    /// The call that has been going on for longer than `limit`, if there is one.
    pub fn hung(&self, limit: Duration) -> Option<Hung> {
        let doing = self.lock();
        let (call, device, began) = doing.call.as_ref()?;
        let since = began.elapsed();
        (since > limit).then(|| Hung { call: call.name(), card: device.to_string(), since })
    }

    fn lock(&self) -> MutexGuard<'_, Doing> {
        // Held for a few instructions that can't panic; never across a call.
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that looks at a heartbeat.
#[derive(Debug)]
pub struct Watchdog {
    ended: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Looks several times a `limit`; when a call has taken longer, `on_hung` is called once for it, on the watchdog's thread. It is for the
    /// caller to record the gap and to end or replace the process: nothing else frees a thread that is in the driver.
    ///
    /// Errors: the system has no thread left.
    pub fn start(
        heartbeat: Arc<Heartbeat>,
        limit: Duration,
        on_hung: impl Fn(Hung) + Send + 'static,
    ) -> std::io::Result<Self> {
        let ended = Arc::new((Mutex::new(false), Condvar::new()));
        let seen_by_thread = ended.clone();
        let told = AtomicBool::new(false);
        let watch = move || {
            let (is_ended, wake) = &*seen_by_thread;
            let mut ended = is_ended.lock().unwrap_or_else(PoisonError::into_inner);
            while !*ended {
                match heartbeat.hung(limit) {
                    Some(hung) if !told.swap(true, Ordering::Relaxed) => on_hung(hung),
                    Some(_) => {}
                    None => told.store(false, Ordering::Relaxed),
                }
                ended = wake.wait_timeout(ended, limit / 4).unwrap_or_else(PoisonError::into_inner).0;
            }
        };
        let thread = std::thread::Builder::new().name("nvml-watchdog".into()).spawn(watch)?;
        Ok(Self { ended, thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *self.ended.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ended.1.notify_all();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_call_that_does_not_come_back_is_told_once_with_its_name_and_card() {
        let heartbeat = Arc::new(Heartbeat::default());
        let (tell, told) = mpsc::channel();
        let dog = Watchdog::start(heartbeat.clone(), Duration::from_millis(20), move |hung| tell.send(hung).unwrap())
            .unwrap();
        heartbeat.enter(Call::Power, &"GPU-1".into());
        let hung = told.recv().unwrap();
        assert_eq!((hung.call, hung.card.as_str()), ("nvmlDeviceGetPowerUsage", "GPU-1"));
        assert!(hung.since > Duration::from_millis(20));
        heartbeat.leave();
        drop(dog);
        assert_eq!(told.try_iter().count(), 0);
        assert_eq!(heartbeat.hung(Duration::ZERO), None);
    }
}
