//! The daemon: cards, holders, spool and delivery, from start to stop.
//!
//! Its threads and what they own: this one reads cards, looks for holders and spools, tick by tick; `delivery` hands sealed segments over; the
//! watchdog looks whether a call into the driver has hung; `metrics` serves what the last tick left. Signals come in on one that only passes them on.
//!
//! What time it is, and how long to wait, all of them have from one [`Clock`]; only how long a call has hung, and how long an answer may take, is
//! time of the machine.

use crate::config::Config;
use crate::delivery::{Delivery, DeliveryConfig, DeliveryError};
use crate::eyes::Eyes;
use crate::metrics::{About, Board, Teller, server};
use crate::probe::nvml::DriverStatus;
use crate::probe::{Clock, Control, Hung, Moment, TickReadings, Watchdog, Wish, nvml};
use crate::release::{self, Desk};
use crate::rows::RowMaker;
use crate::sampler::{Sampler, step};
use crate::spool::{Spool, SpoolConfig, SpoolError};
use cardhour_domain::columns::Rows;
use cardhour_domain::{EventKind, NodeEvent, Timestamp};
use std::convert::Infallible;
use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// After that a call into the driver has hung: nothing can end it but the end of the process.
const HUNG_AFTER: Duration = Duration::from_secs(30);
/// How often delivery looks for sealed segments.
const DELIVER_EVERY: Duration = Duration::from_secs(10);
/// So many steps library and driver may be of two versions, as while a driver is being changed.
const STALE_STEPS: i64 = 8;
/// For how long cards are let go when an operator asks by signal.
const RELEASE_FOR: Duration = Duration::from_secs(release::USUAL_S as u64);

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
pub fn run(
    config: &Config,
    clock: &(impl Clock + Clone + Send + 'static),
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
    let mut eyes = Eyes::open(config).map_err(system("look at processes"))?;
    begin(probe.control()).map_err(system("listen for signals"))?;
    let (of_hung, node, of_watchdog) = (spool.clone(), config.node.clone(), clock.clone());
    let on_hung = move |hung| end_hung(&hung, &of_hung, &node, of_watchdog.now().wall);
    let _watchdog = Watchdog::start(probe.heartbeat(), HUNG_AFTER, on_hung).map_err(system("start the watchdog"))?;
    let about = About {
        node: config.node.clone(),
        cluster: config.cluster.clone(),
        step: Duration::from_secs(u64::from(config.step_s)),
        spool_bytes: config.spool_bytes,
        started_at: now(),
        dcgm: config.dcgm_names.clone(),
    };
    let board = Arc::new(Board::new(about, probe.heartbeat(), probe.status()));
    if let Some(address) = config.metrics {
        server::serve(address, board.clone()).map_err(system("start serving metrics"))?;
    }
    let desk =
        Desk { control: probe.control(), status: probe.status(), heartbeat: probe.heartbeat(), clock: clock.clone() };
    let _listening = release::listen(&config.spool, desk).inspect_err(|error| {
        tracing::warn!(%error, spool = %config.spool.display(), "no control socket: cards are let go by SIGUSR1 alone");
    });
    let of_delivery = Arc::new(Control::default());
    let delivering =
        deliver_aside(delivery, board.clone(), clock.clone(), of_delivery.clone()).map_err(system("start delivery"))?;

    tracing::info!(node = %config.node, cluster = %config.cluster, step_s = config.step_s, "collecting");
    let mut sampler = Sampler::new(config.node.clone());
    let mut maker = RowMaker::new(config.cluster.clone(), config.node.clone(), i64::from(config.step_s) * 1000);
    let mut teller = Teller::new(board);
    let mut is_first = true;
    let status = probe.status();
    let (mut stale, mut is_stale) = (StaleLibrary::new(config.step_s), false);
    let mut tick = |mut readings: TickReadings| {
        if std::mem::take(&mut is_first) {
            readings.events.push(event(now(), &config.node, EventKind::Started, None, "collector started"));
        }
        let stepped = step(&mut sampler, &readings);
        let look = eyes.look(&readings);
        for odd in &look.events {
            // Told once for each by whoever looks: a source that fails, a map that is stale, a process where it shouldn't be.
            let (kind, card) = (odd.kind.name(), odd.card_uuid.as_deref().unwrap_or("-"));
            tracing::warn!(kind, card, detail = %odd.detail, "odd about holders");
        }
        teller.see(&readings, &stepped, &look);
        let devices = std::mem::take(&mut readings.layout);
        let rows = maker.rows(&readings, stepped, look, devices);
        let mut spool = spool.lock();
        if let Err(error) = spool.append(&rows, now()) {
            tracing::warn!(error = %error, "tick not on disk; holdings wait in memory");
        }
        if let Err(error) = spool.seal_if_due(now()) {
            tracing::warn!(error = %error, "segments not sealed; tried again at the next tick");
        }
        let (counters, stock) = (spool.counters().clone(), spool.stock(now()).ok());
        drop(spool);
        let took_us = clock.now().monotonic_us - readings.at.monotonic_us;
        teller.publish(readings, counters, stock, Duration::from_micros(u64::try_from(took_us).unwrap_or(0)));
        is_stale = stale.look(&status.lock().unwrap_or_else(PoisonError::into_inner), clock.now());
        if is_stale { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    probe.run(clock, &mut tick);

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

fn event(at: Timestamp, node: &cardhour_domain::Name, kind: EventKind, number: Option<i64>, detail: &str) -> NodeEvent {
    let detail = Some(detail.into());
    NodeEvent { at, node: node.clone(), card_uuid: None, device_uuid: None, kind, number, detail }
}

/// Whether this process holds on to a library that the driver has left behind.
///
/// A library may stay mapped when it is let go of, and then loading it anew gives the old one, whatever lies on disk. A process that never had
/// the driver has nothing to hold on to, so one that is started because of this doesn't end for it again: where a driver waits for a reboot,
/// there is one new start.
#[derive(Clone, Copy, Debug)]
struct StaleLibrary {
    was_up: bool,
    lasts_us: i64,
}

impl StaleLibrary {
    fn new(step_s: u32) -> Self {
        Self { was_up: false, lasts_us: i64::from(step_s) * 1_000_000 * STALE_STEPS }
    }

    fn look(&mut self, status: &DriverStatus, now: Moment) -> bool {
        match status {
            DriverStatus::Up { .. } => self.was_up = true,
            DriverStatus::Away { fault, since } if fault.is_version_mismatch() => {
                return self.was_up && now.monotonic_us - since.monotonic_us >= self.lasts_us;
            }
            DriverStatus::Away { .. } | DriverStatus::Starting | DriverStatus::Released { .. } => {}
        }
        false
    }
}

/// Records that a call has hung and ends the process: nothing else frees its thread, and who supervises starts another.
fn end_hung(hung: &Hung, spool: &Shared, node: &cardhour_domain::Name, now: Timestamp) {
    let ms = i64::try_from(hung.since.as_millis()).unwrap_or(i64::MAX);
    tracing::error!(call = hung.call, card = %hung.card, hung_ms = ms, "a call into the driver hung: the process ends, for nothing else frees it; whoever supervises it starts another");
    let rows = [Rows::Events(vec![event(now, node, EventKind::Hung, Some(ms), hung.call)])];
    let mut spool = spool.lock();
    if let Err(error) = spool.append(&rows, now) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::nvml::Fault;

    #[test]
    fn pitfall_15_a_process_that_had_the_driver_ends_where_versions_differ_for_long_and_one_that_had_not_waits() {
        let at = |s: i64| Moment { monotonic_us: s * 1_000_000, wall: Timestamp::from_unix_s(s) };
        let away = |code, since| DriverStatus::Away { fault: Fault::Code(code), since: at(since) };
        let (mismatch, not_loaded) = (18, 9);
        let mut stale = StaleLibrary::new(15);
        assert!(!stale.look(&away(mismatch, 0), at(10_000)));
        assert!(!stale.look(&DriverStatus::Up { driver: None }, at(10_015)));
        assert!(!stale.look(&away(not_loaded, 10_020), at(20_000)), "the driver may come back as it was");
        // Eight steps of 15 s.
        assert!(!stale.look(&away(mismatch, 20_000), at(20_119)));
        assert!(stale.look(&away(mismatch, 20_000), at(20_120)));
    }
}
