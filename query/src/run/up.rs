//! `up`: collector, ledger and service in one process, for one machine.
//!
//! The collector runs on threads of its own and puts its segments into the ledger's folder `incoming`; the service takes them in. A driver that
//! hangs takes none of that away, as it ends the collector by itself: holders are recorded without it, its cards have no values, and they are read
//! again when the call comes back. One that never does keeps its thread until the process is started anew.
//!
//! What ends the process is a driver that was changed under it, where the library of before stays mapped: only another process maps the new one.
//! Whoever supervises starts it anew, once, and nothing that was on disk is lost.

use super::{Exit, Scene, serving};
use crate::books::Books;
use crate::cli::UpArgs;
use crate::error::Error;
use crate::events::Watch;
use crate::serve;
use crate::terminal::tell;
use cardhour_collector::config::Config as CollectorConfig;
use cardhour_collector::delivery::Destination;
use cardhour_collector::probe::{Control, SystemClock};
use cardhour_collector::run::{ReleaseSignal, RunError, WhenHung};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Where a collector's config lies on a node.
const COLLECTOR_CONFIG: &str = "/etc/cardhour/collector.toml";
/// The cluster of a machine of which nobody says which it belongs to.
pub const LOCAL: &str = "local";

/// Collects and serves until Ctrl-C or SIGTERM; SIGUSR1 lets go of the cards for five minutes. Errors: the ledger lies in no folder, the port is taken, the collector can't begin.
pub async fn run(scene: &Scene, args: &UpArgs) -> Result<Exit, Error> {
    let place = scene.place()?;
    // What can be wrong with the call is, before a ledger is made.
    let tls = scene.config.tls.clone();
    let listener = serve::bind(args.address.unwrap_or(scene.config.http_address), tls.as_ref()).await?;
    let mut config = collector_config(args)?;
    let is_new = Books::is_missing(place).await;
    let books = Books::open_or_make(place, scene.config.zone.filter(|_| is_new), false, scene.config.sql).await?;
    let books = books.asking(&scene.config);
    if is_new {
        tell(&format!("made a ledger in {place} that bills in {}, which it keeps", books.zone()));
    }
    let folder = books.ledger().folder().ok_or(Error::NoPlace)?;
    let watch = Watch::start(books.clone(), &scene.config)?;
    // Whatever else a config says: here the ledger is in the next room.
    config.deliver = Destination::Folder(folder.clone());
    if config.spool.as_os_str().is_empty() {
        config.spool = folder.join("spool");
    }
    books.ledger().make_incoming()?;
    tell(&format!("collecting node {} of cluster {}, each {} s", config.node, config.cluster, config.step_s));
    let beside = serving::Beside::of(scene, &books)?;
    let releases = ReleaseSignal::listen().map_err(|source| Error::Stream { doing: "listen for SIGUSR1", source })?;
    let (collector, ended) = Collector::start(config).await?;
    let token_file = scene.config.token_file.clone();
    let served = tokio::select! {
        served = serving::until_stopped(books, listener, tls, token_file, beside) => served,
        error = ended => Err(error.unwrap_or(RunError::Ended).into()),
        never = releases.pass_on(&collector.control) => match never {},
    };
    if let Some(watch) = watch {
        watch.stop().await;
    }
    tokio::task::spawn_blocking(move || collector.stop()).await.expect("does not panic");
    served
}

/// The config that was named, else a node's, else one that says as little as can be, without a spool. Where it delivers to is not said yet.
fn collector_config(args: &UpArgs) -> Result<CollectorConfig, Error> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let usual = Path::new(COLLECTOR_CONFIG);
    let file = args.collector_config.as_deref().or_else(|| Some(usual).filter(|path| path.exists()));
    let mut config = match file {
        Some(file) => CollectorConfig::load(file, host.trim()).map_err(Error::from)?,
        None => CollectorConfig::of_machine(LOCAL.into(), host.trim().into()),
    };
    if let Some(cluster) = &args.cluster {
        config.cluster = cluster.as_str().into();
    }
    if let Some(step_s) = args.step_s {
        config.step_s = step_s;
    }
    if let Some(metrics) = args.metrics {
        config.metrics = metrics;
    }
    config.nvml_library = args.nvml_lib.clone().or(config.nvml_library);
    Ok(config)
}

/// The collector on its thread.
struct Collector {
    control: Arc<Control>,
    thread: JoinHandle<()>,
}

impl Collector {
    /// Begins; the second tells when it ends by itself, and why. Errors: it can't begin.
    async fn start(config: CollectorConfig) -> Result<(Self, oneshot::Receiver<RunError>), Error> {
        let (begun, begins) = oneshot::channel();
        let (tell, ended) = oneshot::channel();
        let run = move || {
            // Whoever started it waits for this, or for the end.
            let begin = move |control: Arc<Control>| begun.send(control).map_err(|_| io::ErrorKind::BrokenPipe.into());
            let ended = cardhour_collector::run::run(&config, &SystemClock::start(), WhenHung::GoOn, begin);
            // Nobody listens any more where it was told to stop.
            _ = tell.send(ended.err().unwrap_or(RunError::Ended));
        };
        let failed = |source| Error::Stream { doing: "start the collector", source };
        let thread = std::thread::Builder::new().name("collector".into()).spawn(run).map_err(failed)?;
        match begins.await {
            Ok(control) => Ok((Self { control, thread }, ended)),
            Err(_) => Err(ended.await.unwrap_or(RunError::Ended).into()),
        }
    }

    /// Ends it: what it has is on disk then.
    fn stop(self) {
        self.control.stop();
        if self.thread.join().is_err() {
            tell("the collector ended badly; what it had on disk is taken in at the next start");
        }
    }
}
