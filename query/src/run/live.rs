//! `demo --live`: made-up cards that are metered as one watches, by the real collector through the real wrapper.
//!
//! The stand-in for the driver reads its scenario from a variable, so `up` runs as a process of its own that is started with it. Who holds the
//! cards are real processes that sleep, so that they are found as any are.

use super::{Exit, Scene};
use crate::books::{Books, SIMULATED};
use crate::cli::{DemoArgs, Global};
use crate::error::Error;
use crate::render::quoted;
use crate::terminal::{tell, write_file};
use cardhour_domain::Zone;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Processes that hold cards: the training, inference, the notebook.
const HOLDERS: usize = 3;

/// Plays until Ctrl-C. Errors: no stand-in for the driver, the ledger that was named is a site's, `up` ends badly.
pub async fn run(scene: &Scene, global: &Global, args: &DemoArgs) -> Result<Exit, Error> {
    let failed = |doing| move |source| Error::Stream { doing, source };
    let program = std::env::current_exe().map_err(failed("find this program"))?;
    let library = args.nvml_lib.clone().unwrap_or_else(|| beside(&program));
    if !library.exists() {
        return Err(Error::NoStandIn(library));
    }
    let place = match &global.ledger {
        Some(place) => place.clone(),
        None => format!("{}-demo/live", scene.surroundings.default_ledger().ok_or(Error::NoPlace)?.display()),
    };
    let books = Books::open_or_make(&place, Some(Zone::UTC), true, scene.config.sql).await?;
    let folder = books.ledger().folder().filter(|_| books.is_demo()).ok_or_else(|| Error::NotDemo(place.clone()))?;
    let holders: Vec<Asleep> =
        (0..HOLDERS).map(|_| Asleep::start()).collect::<Result<_, _>>().map_err(failed("start sleep"))?;
    let scenario = folder.join("live.toml");
    write_file(&scenario, text(&holders.iter().map(|holder| holder.pid).collect::<Vec<_>>()).as_bytes())?;
    let config = folder.join("collector.toml");
    write_file(&config, collector(&folder).as_bytes())?;
    tell(SIMULATED);
    tell(&format!("its ledger: {place}"));
    let ask = format!("cardhour --ledger {}", quoted(&place));
    tell(&format!("a minute from now: {ask} report efficiency --by user,node, or {ask} report inventory"));
    let mut up = Command::new(&program);
    up.args(["--ledger", &place, "up", "--step-s", "1"])
        .arg("--collector-config")
        .arg(&config)
        .arg("--nvml-lib")
        .arg(&library);
    if let Some(address) = args.address {
        up.args(["--address", &address.to_string()]);
    }
    up.env("FAKE_NVML_SCENARIO", &scenario);
    // Ctrl-C reaches `up` too, which ends well and lets this one end; a SIGTERM is passed on.
    let mut child = tokio::process::Command::from(up).kill_on_drop(true).spawn().map_err(failed("start up"))?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(failed("listen for signals"))?;
    let mut interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
        .map_err(failed("listen for signals"))?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {
                if let Some(pid) = child.id() {
                    end(pid);
                }
            }
        }
    };
    match status.map_err(failed("wait for up"))?.code() {
        Some(0) => Ok(Exit::Done),
        _ => Err(Error::Stream { doing: "play live", source: io::Error::other("`up` ended badly") }),
    }
}

/// Where Cargo puts the stand-in: beside this program, or among what it was made from.
fn beside(program: &Path) -> PathBuf {
    let name = "libfake_nvml.so";
    let beside = program.with_file_name(name);
    let made_from = program.with_file_name("deps").join(name);
    if !beside.exists() && made_from.exists() { made_from } else { beside }
}

/// A process that does nothing and ends with us. It hangs on nobody, so that each is a holder of its own and not a part of ours.
struct Asleep {
    pid: u32,
}

impl Asleep {
    fn start() -> io::Result<Self> {
        let script = "setsid sleep infinity >/dev/null 2>&1 </dev/null & echo $!";
        let output = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output()?;
        let pid = String::from_utf8_lossy(&output.stdout).trim().parse();
        pid.map(|pid| Self { pid }).map_err(|_| io::Error::other("sh tells no pid"))
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        end(self.pid);
    }
}

/// Asks a process to end, by `kill`: this crate calls nothing that is unsafe.
fn end(pid: u32) {
    _ = Command::new("kill").args(["-TERM", &pid.to_string()]).status();
}

/// Four cards: a training that waits for its data half of the time, inference with a load of its own, a notebook that does nothing, and one
/// that nobody has.
fn text(pids: &[u32]) -> String {
    let [training, inference, notebook] = pids else { unreachable!("as many as there are holders") };
    format!(
        "# Made by cardhour demo --live.\nstarts_at_unix_s = 0\n\
         [[card]]\npreset = \"h100\"\n\
         curve.sm = {{ points = [[0, 92], [20, 8]], interp = \"step\", repeat_s = 40 }}\n\
         curve.util = {{ points = [[0, 99], [20, 30]], interp = \"step\", repeat_s = 40 }}\n\
         curve.power_w = {{ points = [[0, 640], [20, 180]], interp = \"step\", repeat_s = 40 }}\n\
         curve.dram = 45\ncurve.pcie_rx_mib_s = 3000\n\
         [[card]]\npreset = \"h100\"\n\
         curve.sm = {{ points = [[0, 15], [60, 60], [119, 15]], interp = \"linear\", repeat_s = 120 }}\n\
         curve.util = 70\ncurve.power_w = {{ points = [[0, 200], [60, 450], [119, 200]], interp = \"linear\", repeat_s = 120 }}\n\
         [[card]]\npreset = \"h100\"\ncurve.power_w = 70\n\
         [[card]]\npreset = \"h100\"\ncurve.power_w = 66\n\
         [[process]]\npid = {training}\ncard = 0\nmemory_mib = 71000\nsm_pct = 90\n\
         [[process]]\npid = {inference}\ncard = 1\nmemory_mib = 38000\nsm_pct = 40\n\
         [[process]]\npid = {notebook}\ncard = 2\nmemory_mib = 41000\nsm_pct = 0\n"
    )
}

/// Ten seconds behind the cards.
fn collector(ledger: &Path) -> String {
    let spool = toml::Value::String(ledger.join("spool").display().to_string());
    let folder = toml::Value::String(ledger.display().to_string());
    format!(
        "cluster = \"demo-live\"\nspool = {spool}\nseal_after_s = 10\nstep_s = 1\nmetrics = \"127.0.0.1:9401\"\ndcgm_names = true\n\
         [deliver]\nfolder = {folder}\n"
    )
}
