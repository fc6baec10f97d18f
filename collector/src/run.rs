//! The daemon: cards, holders, spool and delivery, from start to stop.
//!
//! Its threads and what they own: `cards` reads cards, looks for holders and spools, tick by tick; this one waits for it, and makes the ticks without
//! the driver while it is in a call that doesn't come back (`recorder`); `delivery` hands sealed segments over; the watchdog ends the process
//! where a hung call is to end it; `metrics` serves what the last tick left. Signals come in on one that only passes them on.
//!
//! What time it is, and how long to wait, all of them have from one [`Clock`]; only how long a call has hung, and how long an answer may take, is
//! time of the machine.

mod recorder;

use crate::config::Config;
use crate::delivery::{Delivery, DeliveryConfig, DeliveryError};
use crate::eyes::Eyes;
use crate::metrics::{About, Board, Teller, server};
use crate::probe::{Clock, Control, Heartbeat, Hung, Watchdog, Wish, nvml};
use crate::release::{self, Desk};
use crate::spool::{Spool, SpoolConfig, SpoolError};
use cardhour_domain::columns::Rows;
use cardhour_domain::{EventKind, NodeEvent, Timestamp};
use recorder::{Recorder, StaleLibrary};
use std::convert::Infallible;
use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// After that a call into the driver has hung: nothing can end it but the end of the process.
pub const HUNG_AFTER: Duration = Duration::from_secs(30);
/// After that ticks no longer wait for a call into the driver: they are made without it.
const LATE_AFTER: Duration = Duration::from_secs(5);
/// How often it is looked whether ticks have to be made without the driver.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often delivery looks for sealed segments.
const DELIVER_EVERY: Duration = Duration::from_secs(10);
/// For how long cards are let go when an operator asks by signal.
const RELEASE_FOR: Duration = Duration::from_secs(release::USUAL_S as u64);

/// What becomes of the process when a call into the driver hangs. In either case holders are recorded until then without the driver, and the event
/// `hung` says which call it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenHung {
    /// It ends at once: nothing else frees a thread that is in the driver, and whoever supervises starts another.
    End,
    /// It goes on: others live in the process. Holders are recorded without the driver until the call comes back, and then the cards are read again.
    GoOn,
}

/// Why the daemon doesn't run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The spool can't be used.
    #[error("the spool can't be used")]
    Spool(#[from] SpoolError),
    /// There is nowhere to deliver to.
    #[error("segments can't be delivered as the config says")]
    Delivery(#[from] DeliveryError),
    /// Library and driver are of two versions, and this process can't change its library.
    #[error(
        "the driver was changed, and this process still has the library of before: it ends, so that one with the new library is started"
    )]
    StaleLibrary,
    /// It ended and didn't say why.
    #[error("the collector ended")]
    Ended,
    /// The system gives no thread, or has no `/proc`.
    #[error("cannot {doing}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// Why not.
        source: io::Error,
    },
}

/// The kernel's boot id as a number.
fn boot_id() -> io::Result<u128> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    u128::from_str_radix(&digits, 16).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no boot id"))
}

/// A spool that two threads write to.
#[derive(Clone)]
struct Shared(Arc<Mutex<Spool>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Spool> {
        // A thread that panicked left the journal whole: its frames are checked one by one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs until it is told to stop by the control that `begin` is handed before the first look. Errors: it can't begin.
///
/// A thread that is in a call that doesn't come back is left behind where it is told to stop: what was seen is on disk, and the process ends anyway.
pub fn run(
    config: &Config,
    clock: &(impl Clock + Clone + Send + 'static),
    when_hung: WhenHung,
    begin: impl FnOnce(Arc<Control>) -> io::Result<()>,
) -> Result<(), RunError> {
    let now = || clock.now().wall;
    let system = |doing| move |source| RunError::System { doing, source };
    let boot = boot_id().map_err(system("read the boot id"))?;
    let settings = SpoolConfig {
        spool_bytes: config.spool_bytes,
        seal_after_ms: i64::from(config.seal_after_s) * 1000,
        ..SpoolConfig::new(&config.spool, config.node.clone())
    };
    let (spool, recovered) = Spool::open(settings, boot, now())?;
    if recovered.journals > 0 || recovered.torn_bytes > 0 {
        tracing::info!(
            journals = recovered.journals,
            torn_bytes = recovered.torn_bytes,
            "an earlier life's rows sealed"
        );
    }
    let spool = Shared(Arc::new(Mutex::new(spool)));
    let delivery = Delivery::new(DeliveryConfig {
        spool: config.spool.clone(),
        node: config.node.clone(),
        to: config.deliver.clone(),
    })?;
    let mut probe = nvml::NvmlProbe::new(nvml::NvmlConfig {
        library: config.nvml_library.clone(),
        step_ms: i64::from(config.step_s) * 1000,
        ..nvml::NvmlConfig::new(config.node.clone(), config.cluster.clone())
    });
    let eyes = Eyes::open(config).map_err(system("look at processes"))?;
    let (control, heartbeat, status) = (probe.control(), probe.heartbeat(), probe.status());
    begin(control.clone()).map_err(system("listen for signals"))?;
    let _watchdog = match when_hung {
        WhenHung::GoOn => None,
        WhenHung::End => {
            let (of_hung, node, of_watchdog) = (spool.clone(), config.node.clone(), clock.clone());
            let on_hung = move |hung| end_hung(&hung, &of_hung, &node, of_watchdog.now().wall);
            let dog = Watchdog::start(heartbeat.clone(), HUNG_AFTER, on_hung);
            Some(dog.map_err(system("start the watchdog"))?)
        }
    };
    let about = About {
        node: config.node.clone(),
        cluster: config.cluster.clone(),
        step: Duration::from_secs(u64::from(config.step_s)),
        spool_bytes: config.spool_bytes,
        started_at: now(),
        dcgm: config.dcgm_names.clone(),
    };
    let board = Arc::new(Board::new(about, heartbeat.clone(), status.clone()));
    if let Some(address) = config.metrics {
        server::serve(address, board.clone()).map_err(system("start serving metrics"))?;
    }
    let desk =
        Desk { control: control.clone(), status: status.clone(), heartbeat: heartbeat.clone(), clock: clock.clone() };
    let _listening = release::listen(&config.spool, desk).inspect_err(|error| {
        tracing::warn!(%error, spool = %config.spool.display(), "no control socket: cards are let go by SIGUSR1 alone");
    });
    let of_delivery = Arc::new(Control::default());
    let delivering =
        deliver_aside(delivery, board.clone(), clock.clone(), of_delivery.clone()).map_err(system("start delivery"))?;

    tracing::info!(node = %config.node, cluster = %config.cluster, step_s = config.step_s, "collecting");
    let stale = StaleLibrary::new(status, config.step_s);
    let recorder = Recorder::new(config, clock.clone(), eyes, Teller::new(board), spool.clone(), stale);
    let recorder = Arc::new(Mutex::new(recorder));
    let (reading, ended) = {
        let (recorder, clock) = (recorder.clone(), clock.clone());
        let (tell, ended) = mpsc::channel::<()>();
        let read = move || {
            probe.run(&clock, &mut |readings| lock(&recorder).tick(readings));
            drop(tell);
        };
        let thread = std::thread::Builder::new().name(READER.into()).spawn(read);
        (thread.map_err(system("start the thread that reads cards"))?, ended)
    };
    if await_end(&ended, &control, &heartbeat, &recorder, when_hung).is_continue()
        && let Err(panic) = reading.join()
    {
        std::panic::resume_unwind(panic);
    }
    let is_stale = lock(&recorder).end();
    spool.lock().seal(now())?;
    of_delivery.stop();
    if delivering.join().is_err() {
        tracing::warn!("delivery ended early; what is left goes at the next start");
    }
    if is_stale {
        return Err(RunError::StaleLibrary);
    }
    tracing::info!("stopped");
    Ok(())
}

/// The name of the thread that reads cards.
pub const READER: &str = "cards";

/// Waits for the thread that reads cards, and makes ticks while it is in a call that doesn't come back. Break: it has to be left there.
fn await_end(
    ended: &Receiver<()>,
    control: &Control,
    heartbeat: &Heartbeat,
    recorder: &Mutex<Recorder<impl Clock>>,
    when_hung: WhenHung,
) -> ControlFlow<()> {
    let mut is_told = false;
    while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
        let Some(late) = heartbeat.hung(LATE_AFTER) else {
            if std::mem::take(&mut is_told) {
                tracing::warn!("the call into the driver that hung came back: cards are read again");
            }
            continue;
        };
        if control.is_stopped() {
            tracing::warn!(call = late.call, card = %late.card, "stopped in a call into the driver that doesn't come back: its thread is left there");
            return ControlFlow::Break(());
        }
        let mut recorder = lock(recorder);
        if when_hung == WhenHung::GoOn && late.since > HUNG_AFTER && !std::mem::replace(&mut is_told, true) {
            let hung_ms = ms(late.since);
            tracing::error!(call = late.call, card = %late.card, hung_ms, "a call into the driver hung: holders are recorded without it until it comes back; only the end of the process frees it");
            recorder.tell(EventKind::Hung, Some(hung_ms), late.call);
        }
        recorder.stand_in();
    }
    ControlFlow::Continue(())
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is written to disk is checked frame by frame; a tick that panicked ends the process or, in one with others, the collector.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ms(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

fn event(at: Timestamp, node: &cardhour_domain::Name, kind: EventKind, number: Option<i64>, detail: &str) -> NodeEvent {
    let detail = Some(detail.into());
    NodeEvent { at, node: node.clone(), card_uuid: None, device_uuid: None, kind, number, detail }
}

/// Records that a call has hung and ends the process: nothing else frees its thread, and who supervises starts another.
fn end_hung(hung: &Hung, spool: &Shared, node: &cardhour_domain::Name, now: Timestamp) {
    let hung_ms = ms(hung.since);
    tracing::error!(call = hung.call, card = %hung.card, hung_ms, "a call into the driver hung: the process ends, for nothing else frees it; whoever supervises it starts another");
    let rows = [Rows::Events(vec![event(now, node, EventKind::Hung, Some(hung_ms), hung.call)])];
    let mut spool = spool.lock();
    if let Err(error) = spool.append_between(&rows, now) {
        tracing::error!(error = %error, "the hung call isn't on record");
    }
    std::process::abort();
}

/// Delivers on a thread of its own, until stopped and once more then.
fn deliver_aside(
    mut delivery: Delivery,
    board: Arc<Board>,
    clock: impl Clock + Send + 'static,
    control: Arc<Control>,
) -> io::Result<std::thread::JoinHandle<()>> {
    let run = move || {
        loop {
            let is_last = control.wish() == Wish::Stop;
            let delivered = delivery.run_once(clock.now().wall);
            board.delivered(&delivered, delivery.counters(), clock.now().wall);
            if is_last {
                return;
            }
            if delivered.left == 0 || delivered.trouble.is_some() {
                clock.wait(&control, DELIVER_EVERY);
            }
        }
    };
    std::thread::Builder::new().name("delivery".into()).spawn(run)
}

/// SIGUSR1, by which an operator has the cards let go of for five minutes: from [`listen`](Self::listen) on it no longer ends the process.
#[derive(Debug)]
pub struct ReleaseSignal(tokio::signal::unix::Signal);

impl ReleaseSignal {
    /// Listens; on a runtime of tokio. Errors: the system doesn't let it.
    pub fn listen() -> io::Result<Self> {
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::user_defined1()).map(Self)
    }

    /// Passes each one on.
    pub async fn pass_on(mut self, control: &Control) -> Infallible {
        loop {
            self.0.recv().await;
            control.release(RELEASE_FOR);
        }
    }
}

/// Has SIGTERM and SIGINT stop it, and SIGUSR1 let go of the cards for five minutes, so that one can be reset.
pub fn pass_signals_on(control: Arc<Control>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let listen = {
        let _inside = runtime.enter();
        let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let release = ReleaseSignal::listen()?;
        async move {
            tokio::select! {
                _ = term.recv() => control.stop(),
                _ = int.recv() => control.stop(),
                never = release.pass_on(&control) => match never {},
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(listen))?;
    Ok(())
}
