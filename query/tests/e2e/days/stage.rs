//! The node and the service as processes, on a clock that goes as fast as they do: it moves on when the collector has done what it had to.

use super::line::Line;
use super::story::{CARDS, FINALE, Happening, Kill, START_UNIX_S, Story, TICK_MS, Whom, uuid};
use super::witness::Witness;
use crate::driven::DrivenClock;
use crate::site::Site;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often processes are looked at.
const LOOK_EVERY: Duration = Duration::from_micros(80);
/// A tick takes at least so long, so that delivery and the service are killed at their work too.
const TICK_TAKES: Duration = Duration::from_millis(25);
/// After that without a step nothing moves any more.
const STUCK_AFTER: Duration = Duration::from_secs(120);
/// A collector that could not start is started again after so long. Unit: milliseconds of the story.
const START_AGAIN_MS: i64 = 60_000;

/// A process, killed with whoever has it.
struct Process {
    child: Child,
    log: Arc<Mutex<VecDeque<String>>>,
}

impl Process {
    /// Starts it; `hear` gets the lines that it says.
    fn start(command: &mut Command, mut hear: impl FnMut(&str) + Send + 'static) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let of_thread = log.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                hear(&line);
                let mut log = of_thread.lock().unwrap();
                log.push_back(line);
                if log.len() > 60 {
                    log.pop_front();
                }
            }
        });
        Self { child, log }
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().iter().map(|line| format!("  {line}\n")).collect()
    }

    fn kill(&mut self) {
        _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// By SIGTERM; it must end well.
    fn end(&mut self, what: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let since = Instant::now();
        while since.elapsed() < STUCK_AFTER {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{what} ended with {status}\n{}", self.log());
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{what} doesn't end\n{}", self.log());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A process that is there or comes again.
enum Life {
    Alive(Process),
    /// Until when. Unit: milliseconds of the story.
    Dead(i64),
}

/// Everything that runs.
pub struct Stage<'a> {
    story: &'a Story,
    site: &'a Site,
    folder: PathBuf,
    disk: PathBuf,
    line: Line,
    clock: DrivenClock,
    now_ms: i64,
    ahead_ms: i64,
    coming: VecDeque<(i64, Happening)>,
    collector: Life,
    /// The collector of this life has begun to wait: it has a first tick from the next on.
    has_begun: bool,
    /// A tick that is under way.
    tick: Option<i64>,
    /// The last that the wall clock showed when the collector was awake.
    last_shown: Option<i64>,
    /// When the last one began, by the machine's clock.
    ticked: Instant,
    service: Life,
    service_port: Arc<AtomicU16>,
    is_service_away: bool,
    is_disk_full: bool,
    /// Kills whose moment is near, and when it is by the machine's clock.
    armed: Vec<(Instant, Kill)>,
    again: BTreeMap<Whom, Duration>,
    pub witness: Witness,
    pub kills: BTreeMap<Whom, u64>,
    pub failed_starts: u64,
}

impl<'a> Stage<'a> {
    /// `disk`: where the spool lies, and only it, where a file system is there that may be filled.
    pub fn set(story: &'a Story, site: &'a Site, folder: &Path, disk: &Path, seed: u64) -> Self {
        let line = Line::lay(seed);
        let token = site.ok("token gpu01");
        let map = folder.join("jobs");
        fs::create_dir(&map).unwrap();
        fs::write(folder.join("token"), token).unwrap();
        fs::write(folder.join("scene.toml"), story.scenario()).unwrap();
        let config = format!(
            "cluster = \"lab\"\nnode = \"gpu01\"\nspool = {:?}\nspool_mib = 16\nseal_after_s = 300\n\
             [deliver]\nservice = \"http://127.0.0.1:{}\"\ntoken_file = {:?}\n[slurm]\nmap_folder = {map:?}\nask_controller = false\n",
            disk.join("spool"),
            line.port,
            folder.join("token"),
        );
        fs::write(folder.join("collector.toml"), config).unwrap();
        let stage = Self {
            story,
            site,
            folder: folder.to_owned(),
            disk: disk.to_owned(),
            line,
            clock: DrivenClock::new(folder, START_UNIX_S * 1000),
            now_ms: 0,
            ahead_ms: 0,
            coming: story.happenings.iter().copied().collect(),
            collector: Life::Dead(0),
            has_begun: false,
            tick: None,
            last_shown: None,
            ticked: Instant::now(),
            service: Life::Dead(0),
            service_port: Arc::default(),
            is_service_away: false,
            is_disk_full: false,
            armed: Vec::new(),
            again: BTreeMap::new(),
            witness: Witness::default(),
            kills: BTreeMap::new(),
            failed_starts: 0,
        };
        stage.write_clock();
        stage
    }

    /// Plays the story to its end, with everything alive then.
    pub fn play(&mut self) {
        let end_ms = self.story.ticks * TICK_MS;
        let mut moved = Instant::now();
        // One tick more, so that the last one of the story is followed by another.
        while self.now_ms < end_ms + TICK_MS + 1 || !self.armed.is_empty() {
            self.carry_out_kills();
            self.start_what_is_due();
            if self.is_ready() && self.ticked.elapsed() >= TICK_TAKES {
                self.go_on(end_ms + TICK_MS + 1);
                moved = Instant::now();
            }
            assert!(moved.elapsed() < STUCK_AFTER, "nothing moves at {}:\n{}", self.now_ms, self.logs());
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Ends the collector in peace, and starts it again on a clock that stands still until all is delivered.
    pub fn come_to_rest(&mut self) {
        self.line.mend();
        for life in [&mut self.collector, &mut self.service] {
            if let Life::Dead(until) = life {
                *until = self.now_ms;
            }
        }
        self.is_service_away = false;
        let since = Instant::now();
        loop {
            self.start_what_is_due();
            while !self.is_ready() {
                assert!(since.elapsed() < STUCK_AFTER * 4, "not delivered:\n{}", self.logs());
                self.start_what_is_due();
                std::thread::sleep(LOOK_EVERY);
            }
            let Life::Alive(collector) = &mut self.collector else { continue };
            collector.end("the collector");
            self.bury_collector(0);
            let spooled = self.spooled();
            assert!(!spooled.contains(&"refused".to_owned()), "something was refused\n{}", self.logs());
            if spooled == ["counted", "lock", "sequence"] {
                break;
            }
            assert!(since.elapsed() < STUCK_AFTER * 4, "{:?} are not delivered\n{}", self.spooled(), self.logs());
        }
        if let Life::Alive(service) = &mut self.service {
            service.end("the service");
        }
    }

    /// The files in the spool.
    fn spooled(&self) -> Vec<String> {
        let files = fs::read_dir(self.disk.join("spool")).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn line(&self) -> &Line {
        &self.line
    }

    fn logs(&self) -> String {
        let log = |life: &Life| match life {
            Life::Alive(process) => process.log(),
            Life::Dead(until) => format!("  dead until {until}\n"),
        };
        format!("collector:\n{}service:\n{}", log(&self.collector), log(&self.service))
    }

    fn write_clock(&self) {
        self.clock.show(self.now_ms, self.ahead_ms);
    }

    /// The tick that the wall clock shows.
    fn shown(&self) -> i64 {
        (self.now_ms + self.ahead_ms).div_euclid(TICK_MS)
    }

    /// Whether nobody has anything to do at this instant: what starts has started, and the collector waits for a later one.
    fn is_ready(&mut self) -> bool {
        let port = self.service_port.load(Ordering::Relaxed);
        if let Life::Alive(service) = &mut self.service {
            if let Some(status) = service.child.try_wait().unwrap() {
                panic!("the service ended by itself with {status}\n{}", service.log());
            }
            if port == 0 {
                return false;
            }
            self.line.leads_to(port);
        }
        let Life::Alive(collector) = &mut self.collector else { return true };
        if let Some(status) = collector.child.try_wait().unwrap() {
            assert!(self.is_disk_full && !self.has_begun, "the collector ended with {status}\n{}", collector.log());
            self.failed_starts += 1;
            self.bury_collector(START_AGAIN_MS);
            return true;
        }
        if self.clock.wakes_ms() <= self.now_ms {
            return false;
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            self.last_shown = Some(self.shown());
        }
        if let Some(tick) = self.tick.take() {
            self.witness.tick(self.story, tick, self.ahead_ms / TICK_MS, self.is_disk_full, false);
        }
        true
    }

    /// Moves the clock to the next instant at which something happens.
    fn go_on(&mut self, end_ms: i64) {
        let mut next_ms = end_ms;
        match &self.collector {
            Life::Alive(_) => next_ms = next_ms.min(self.clock.wakes_ms()),
            Life::Dead(until) => next_ms = next_ms.min(*until),
        }
        if let (Life::Dead(until), false) = (&self.service, self.is_service_away) {
            next_ms = next_ms.min(*until);
        }
        if let Some((at, _)) = self.coming.front() {
            next_ms = next_ms.min(*at);
        }
        next_ms = next_ms.max(self.now_ms);
        // What happens at an instant has happened when the clock shows it.
        while self.coming.front().is_some_and(|(at, _)| *at <= next_ms) {
            let (_, what) = self.coming.pop_front().unwrap();
            self.let_happen(what, next_ms);
        }
        if next_ms == self.now_ms {
            return;
        }
        self.now_ms = next_ms;
        if self.has_begun && matches!(self.collector, Life::Alive(_)) && self.clock.wakes_ms() <= self.now_ms {
            // A collector that wakes up under another tick than before has one, also when the clock was set and the tick has long begun.
            let shown = self.shown();
            if self.last_shown.replace(shown) != Some(shown) {
                self.tick = Some(self.now_ms / TICK_MS);
                self.ticked = Instant::now();
            }
        }
        self.write_clock();
    }

    fn let_happen(&mut self, what: Happening, at_ms: i64) {
        match what {
            Happening::JobStarts(i) => {
                let job = &self.story.jobs[i];
                let started_s = START_UNIX_S + (at_ms + self.ahead_ms) / 1000;
                let folder = self.folder.join("jobs");
                // Whole or not at all, as a prolog writes it that minds who reads.
                let new = folder.join("new");
                fs::write(&new, format!("{} 0 {started_s}\n", job.id)).unwrap();
                fs::rename(new, folder.join(uuid(job.card))).unwrap();
            }
            Happening::JobEnds(i) => {
                fs::remove_file(self.folder.join("jobs").join(uuid(self.story.jobs[i].card))).unwrap()
            }
            Happening::SetClock(ahead_ms) => self.ahead_ms = ahead_ms,
            Happening::DiskFills => self.fill_disk(),
            Happening::DiskHasRoom => {
                _ = fs::remove_file(self.ballast());
                self.is_disk_full = false;
            }
            Happening::ServiceGoesAway => {
                self.is_service_away = true;
                self.bury_service(0);
            }
            Happening::ServiceComesBack => {
                self.is_service_away = false;
                self.service = Life::Dead(at_ms);
            }
            Happening::Finale => {
                for life in [&mut self.collector, &mut self.service] {
                    if let Life::Dead(until) = life {
                        *until = at_ms;
                    }
                }
            }
            Happening::Kill(kill) => self.armed.push((Instant::now() + kill.after, kill)),
        }
    }

    fn ballast(&self) -> PathBuf {
        self.disk.join("ballast")
    }

    /// Where the spool's disk is one of its own.
    fn fill_disk(&mut self) {
        if self.disk == self.folder {
            return;
        }
        self.is_disk_full = true;
        let mut file = File::create(self.ballast()).unwrap();
        for length in [1 << 16, 512] {
            while file.write_all(&vec![1; length]).is_ok() {}
        }
    }

    fn carry_out_kills(&mut self) {
        let now = Instant::now();
        let (due, later) = self.armed.iter().partition::<Vec<_>, _>(|(at, _)| *at <= now);
        self.armed = later;
        for (_, kill) in due {
            let is_alive = |life: &Life| matches!(life, Life::Alive(_));
            let is_there = match kill.whom {
                Whom::Collector => is_alive(&self.collector),
                Whom::Service => is_alive(&self.service),
                Whom::Both => is_alive(&self.collector) && is_alive(&self.service),
            };
            if !is_there {
                // It waits for who is to be killed.
                let later_ms = self.now_ms + 20_000;
                if later_ms >= (self.story.ticks - FINALE) * TICK_MS {
                    continue;
                }
                let at = self.coming.partition_point(|(at, _)| *at <= later_ms);
                self.coming.insert(at, (later_ms, Happening::Kill(kill)));
                continue;
            }
            *self.kills.entry(kill.whom).or_default() += 1;
            if kill.whom != Whom::Collector {
                self.bury_service(kill.pause_ms);
            }
            if kill.whom != Whom::Service {
                self.bury_collector(kill.pause_ms);
            }
            if let Some(after) = kill.again {
                self.again.insert(kill.whom, after);
            }
        }
    }

    fn bury_collector(&mut self, pause_ms: i64) {
        if let Life::Alive(collector) = &mut self.collector {
            collector.kill();
        }
        if let Some(tick) = self.tick.take() {
            self.witness.tick(self.story, tick, self.ahead_ms / TICK_MS, self.is_disk_full, true);
        }
        self.witness.life_ends();
        self.has_begun = false;
        self.collector = Life::Dead(self.now_ms + pause_ms);
    }

    fn bury_service(&mut self, pause_ms: i64) {
        if let Life::Alive(service) = &mut self.service {
            service.kill();
        }
        self.line.leads_to(0);
        self.service_port = Arc::default();
        self.service = Life::Dead(self.now_ms + pause_ms);
    }

    fn start_what_is_due(&mut self) {
        let now_ms = self.now_ms;
        let is_due = |life: &Life| matches!(life, Life::Dead(until) if *until <= now_ms);
        let mut started = Vec::new();
        if is_due(&self.service) && !self.is_service_away {
            let mut command = self.site.command();
            command.args(["serve", "--address", "127.0.0.1:0"]);
            let port = Arc::new(AtomicU16::new(0));
            self.service_port = port.clone();
            self.service = Life::Alive(Process::start(&mut command, move |line| {
                let address = line.split("http://127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next());
                if let Some(said) = address.and_then(|port| port.parse().ok()) {
                    port.store(said, Ordering::Relaxed);
                }
            }));
            started.push(Whom::Service);
        }
        if is_due(&self.collector) {
            let mut command = self.clock.daemon(&self.folder.join("collector.toml"), &self.folder.join("scene.toml"));
            self.collector = Life::Alive(Process::start(&mut command, |_| {}));
            started.push(Whom::Collector);
        }
        if started.len() == 2 {
            started.push(Whom::Both);
        }
        for whom in started {
            if let Some(after) = self.again.remove(&whom) {
                let kill = Kill { whom, after, pause_ms: 0, again: None };
                self.armed.push((Instant::now() + after, kill));
            }
        }
    }
}

/// The cards that a file of nodes says are there.
pub fn nodes(ticks: i64) -> String {
    let (from, until) = (super::witness::time(0), super::witness::time(ticks));
    format!(
        "cluster,node,model,cards,in_service_at,retired_at\nlab,gpu01,NVIDIA H100 80GB HBM3,{CARDS},{from},{until}\n"
    )
}
