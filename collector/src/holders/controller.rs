//! Slurm's controller, asked by its own commands: rarely, one job at a time, and never waited for long.
//!
//! A node asks which jobs are on it now and then, and at once when a job comes or goes that it sees by itself; what it knows of a job it asks
//! once a run. So a controller of a thousand nodes isn't asked for all its jobs by each of them at each look.

use super::job_record::{JobRecord, is_holding};
use super::{job_json, scontrol};
use cardhour_domain::{Name, Timestamp};
use cardhour_reach::command::{self, CommandError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// Jobs that are asked for at one look, at most: the rest at the next.
const MOST_QUESTIONS: usize = 32;

/// `scontrol --json` is there from that version on.
const JSON_SINCE: (u32, u32) = (23, 2);

/// How the controller is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerSettings {
    /// The path of `scontrol`.
    pub scontrol: PathBuf,
    /// The path of `squeue`.
    pub squeue: PathBuf,
    /// `slurm.conf`, where it isn't at its usual place.
    pub slurm_conf: Option<PathBuf>,
    /// How long one command may take.
    pub timeout: Duration,
    /// How often the jobs of this node are listed while nothing comes or goes. Its word counts for twice as long.
    pub list_every: Duration,
    /// How soon they may be listed again when something does.
    pub list_again_after: Duration,
}

impl Default for ControllerSettings {
    fn default() -> Self {
        Self {
            scontrol: "scontrol".into(),
            squeue: "squeue".into(),
            slurm_conf: None,
            // Slurm's own commands give up after a message timeout of ten seconds, or keep trying for minutes.
            timeout: Duration::from_secs(5),
            list_every: Duration::from_secs(120),
            list_again_after: Duration::from_secs(5),
        }
    }
}

/// What the controller said, as far as it was asked.
#[derive(Debug)]
pub struct Controller {
    settings: ControllerSettings,
    has_json: Option<bool>,
    records: BTreeMap<u64, JobRecord>,
    asked_at: BTreeMap<u64, Timestamp>,
    listed: BTreeMap<u64, Option<Timestamp>>,
    listed_at: Option<Timestamp>,
    tried_at: Option<Timestamp>,
    failure: Option<String>,
    doubtful: BTreeSet<u64>,
}

impl Controller {
    /// That nobody has asked yet.
    pub fn new(settings: ControllerSettings) -> Self {
        Self {
            settings,
            has_json: None,
            records: BTreeMap::new(),
            asked_at: BTreeMap::new(),
            listed: BTreeMap::new(),
            listed_at: None,
            tried_at: None,
            failure: None,
            doubtful: BTreeSet::new(),
        }
    }

    /// Asks what must be asked now. `evidence`: the jobs that the node sees by itself, each with the start of the newest sign of it; `has_gone`:
    /// whether one of them was there at the last look and isn't now.
    pub fn refresh(
        &mut self,
        nodes: &[Name],
        evidence: &BTreeMap<u64, Option<Timestamp>>,
        has_gone: bool,
        now: Timestamp,
    ) {
        let since_try = self.tried_at.map(|at| now.ms_since(at));
        // A clock that was set back is as good as none.
        let after = |wait: Duration| since_try.is_none_or(|ms| ms < 0 || ms >= wait.as_millis() as i64);
        let is_news = has_gone || evidence.keys().any(|job| !self.listed.contains_key(job));
        if after(self.settings.list_every) || (is_news && after(self.settings.list_again_after)) {
            self.tried_at = Some(now);
            self.failure = self.list(nodes, now).err().map(|error| error.to_string());
        }
        if self.failure.is_none() {
            self.failure = self.ask(evidence, now).err().map(|error| error.to_string());
        }
    }

    /// What it said of each job.
    pub fn records(&self) -> &BTreeMap<u64, JobRecord> {
        &self.records
    }

    /// The jobs that it has here, while its word is fresh.
    pub fn listed(&self, now: Timestamp) -> BTreeSet<u64> {
        if self.is_current(now) { self.listed.keys().copied().collect() } else { BTreeSet::new() }
    }

    /// Whether its word is fresh.
    pub fn is_current(&self, now: Timestamp) -> bool {
        let longest_ms = 2 * self.settings.list_every.as_millis() as i64;
        self.listed_at.is_some_and(|at| (0..=longest_ms).contains(&now.ms_since(at)))
    }

    /// Whether it said, after `since`, that a job isn't here any more.
    pub fn knows_gone(&self, job_id: u64, since: Option<Timestamp>) -> bool {
        // A second of grace: file times are cut to seconds, and the list is of the moment before its answer.
        let is_later = |at: Timestamp| since.is_none_or(|since| at.ms_since(since) > 1000);
        self.listed_at.is_some_and(is_later) && !self.listed.contains_key(&job_id)
    }

    /// Why it can't be asked, where it can't.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Jobs whose description can't be believed: a user wrote into it what only the controller may say.
    pub fn doubtful(&self) -> &BTreeSet<u64> {
        &self.doubtful
    }

    fn list(&mut self, nodes: &[Name], now: Timestamp) -> Result<(), CommandError> {
        let nodes: Vec<&str> = nodes.iter().map(Name::as_str).collect();
        let answer = self.run(&self.settings.squeue, &["-h", "-w", &nodes.join(","), "-o", "%A|%T|%S"])?;
        self.listed = parse_list(&answer);
        self.listed_at = Some(now);
        Ok(())
    }

    fn ask(&mut self, evidence: &BTreeMap<u64, Option<Timestamp>>, now: Timestamp) -> Result<(), CommandError> {
        let mut wanted: BTreeSet<u64> = self.listed.keys().copied().collect();
        wanted.extend(evidence.keys());
        // Of a job that is neither here by its word nor by signs nothing is kept.
        self.records.retain(|job, _| wanted.contains(job));
        self.asked_at.retain(|job, _| wanted.contains(job));
        self.doubtful.retain(|job| wanted.contains(job));
        let is_open = |job: &u64| {
            let Some(asked_at) = self.asked_at.get(job) else { return true };
            let start = self.records.get(job).and_then(|record| record.started_at);
            let listed_start = self.listed.get(job).copied().flatten();
            let starts_anew = start.is_some() && listed_start.is_some() && start != listed_start;
            // A sign newer than the answer may be of another run: whoever is asked again within the second says the same.
            let has_newer_sign = evidence.get(job).copied().flatten().is_some_and(|sign| sign.ms_since(*asked_at) >= 0);
            starts_anew || has_newer_sign
        };
        let open: Vec<u64> = wanted.into_iter().filter(is_open).take(MOST_QUESTIONS).collect();
        for job in open {
            match self.show(job) {
                Ok(()) => {}
                // The controller answers, and knows no such job.
                Err(CommandError::Failed { message, .. })
                    if message.to_ascii_lowercase().contains("invalid job id") =>
                {
                    self.records.remove(&job);
                }
                Err(error) => return Err(error),
            }
            self.asked_at.insert(job, now);
        }
        Ok(())
    }

    fn show(&mut self, job: u64) -> Result<(), CommandError> {
        let id = job.to_string();
        if self.has_json()? {
            // Where it can't be read, the text below is asked for.
            let answer = self.run(&self.settings.scontrol, &["--json", "show", "job", &id])?;
            let own = |record: &JobRecord| record.job_id == job;
            if let Some(record) = job_json::parse(&answer).and_then(|jobs| jobs.into_iter().find(own)) {
                self.records.insert(job, record);
                return Ok(());
            }
        }
        let answer = self.run(&self.settings.scontrol, &["-d", "show", "job", &id])?;
        let (jobs, doubtful) = scontrol::parse(&answer);
        self.doubtful.remove(&job);
        self.doubtful.extend(doubtful.into_iter().filter(|doubtful| *doubtful == job));
        match jobs.into_iter().find(|record| record.job_id == job) {
            Some(record) => self.records.insert(job, record),
            None => self.records.remove(&job),
        };
        Ok(())
    }

    fn has_json(&mut self) -> Result<bool, CommandError> {
        if let Some(has_json) = self.has_json {
            return Ok(has_json);
        }
        let answer = self.run(&self.settings.scontrol, &["--version"])?;
        let has_json = version(&answer).is_some_and(|version| version >= JSON_SINCE);
        self.has_json = Some(has_json);
        Ok(has_json)
    }

    fn run(&self, program: &std::path::Path, arguments: &[&str]) -> Result<String, CommandError> {
        // Times as seconds since the epoch: in words they don't say their zone.
        let mut variables = vec![("SLURM_TIME_FORMAT", "%s"), ("LC_ALL", "C")];
        let conf = self.settings.slurm_conf.as_ref().map(|conf| conf.to_string_lossy());
        if let Some(conf) = &conf {
            variables.push(("SLURM_CONF", conf));
        }
        command::run(program, arguments, &variables, self.settings.timeout)
    }
}

/// `slurm-wlm 22.05.8` as 22 and 5.
fn version(answer: &str) -> Option<(u32, u32)> {
    let mut numbers = answer.split_ascii_whitespace().last()?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Lines of `squeue -o "%A|%T|%S"`: the jobs that have devices here now, each with its start.
fn parse_list(answer: &str) -> BTreeMap<u64, Option<Timestamp>> {
    let line = |line: &str| {
        let mut parts = line.split('|');
        let (job, state) = (parts.next()?.trim().parse().ok()?, parts.next()?.trim());
        let start = parts.next().and_then(|at| at.trim().parse().ok()).map(Timestamp::from_unix_s);
        is_holding([state]).then_some((job, start))
    };
    answer.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_jobs_that_hold_and_their_starts() {
        let list = parse_list(
            "22|RUNNING|1700000000\n23|PENDING|N/A\n24|COMPLETING|1700000100\n4294967301|CONFIGURING|N/A\nslurm_load_jobs error\n",
        );
        let at = |seconds| Some(Timestamp::from_unix_s(seconds));
        let expected = BTreeMap::from([(22, at(1_700_000_000)), (24, at(1_700_000_100)), (4_294_967_301, None)]);
        assert_eq!(list, expected);
    }

    #[test]
    fn versions_are_read_as_every_packager_writes_them() {
        assert_eq!(version("slurm-wlm 22.05.8\n"), Some((22, 5)));
        assert_eq!(version("slurm 26.05.0-0rc1"), Some((26, 5)));
        assert_eq!(version(""), None);
    }

    /// A program that says what `text` says, and notes each time that it was run.
    fn program(folder: &std::path::Path, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join(name);
        let script = format!("#!/bin/sh\necho \"$*\" >>{}/{name}.runs\n{text}\n", folder.display());
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn runs(folder: &std::path::Path, name: &str) -> usize {
        std::fs::read_to_string(folder.join(format!("{name}.runs"))).map_or(0, |text| text.lines().count())
    }

    #[test]
    fn it_is_asked_once_a_run_and_listed_again_when_a_job_comes_or_goes() {
        let folder = tempfile::tempdir().unwrap();
        let squeue = program(folder.path(), "squeue", "echo '7|RUNNING|1000'");
        let scontrol = program(
            folder.path(),
            "scontrol",
            "case \"$1\" in --version) echo slurm 22.05.8;; *) printf 'JobId=7 JobName=x\\n   Account=a QOS=q\\n   JobState=RUNNING Reason=None\\n   StartTime=1000 EndTime=2\\n';; esac",
        );
        let mut controller = Controller::new(ControllerSettings {
            squeue,
            scontrol,
            timeout: Duration::from_secs(30),
            ..ControllerSettings::default()
        });
        let nodes = [Name::from("n1")];
        let at = Timestamp::from_unix_s;
        let seven = BTreeMap::from([(7, Some(at(1001)))]);
        for second in [1010, 1020, 1030, 1040] {
            controller.refresh(&nodes, &seven, false, at(second));
        }
        assert_eq!(
            (runs(folder.path(), "squeue"), runs(folder.path(), "scontrol")),
            (1, 2),
            "one list, the version, one job"
        );
        assert_eq!(controller.records()[&7].account.as_deref(), Some("a"));
        // Another job is seen: listed anew at once, and that job asked for.
        let both = BTreeMap::from([(7, Some(at(1001))), (8, None)]);
        controller.refresh(&nodes, &both, false, at(1050));
        assert_eq!((runs(folder.path(), "squeue"), runs(folder.path(), "scontrol")), (2, 3));
        assert!(controller.knows_gone(8, Some(at(1040))) && !controller.knows_gone(7, None));
        assert!(!controller.knows_gone(8, Some(at(1050))), "written since the list");
        // A newer sign of the same job: another run of it, so it is asked for again.
        controller.refresh(&nodes, &BTreeMap::from([(7, Some(at(1060)))]), false, at(1061));
        assert_eq!(runs(folder.path(), "scontrol"), 4);
    }

    #[test]
    fn s20_its_word_ages_while_it_cannot_be_asked() {
        let folder = tempfile::tempdir().unwrap();
        let squeue = program(folder.path(), "squeue", "echo '7|RUNNING|1000'");
        let scontrol = program(
            folder.path(),
            "scontrol",
            "case \"$1\" in --version) echo slurm 22.05.8;; *) printf 'JobId=7 JobName=x\\n   JobState=RUNNING\\n';; esac",
        );
        let settings = ControllerSettings {
            squeue,
            scontrol,
            timeout: Duration::from_secs(30),
            list_every: Duration::from_secs(60),
            ..ControllerSettings::default()
        };
        let mut controller = Controller::new(settings);
        let at = Timestamp::from_unix_s;
        controller.refresh(&["n1".into()], &BTreeMap::new(), false, at(1000));
        assert!(controller.listed(at(1000)).contains(&7) && controller.failure().is_none());
        program(folder.path(), "squeue", "echo 'Unable to contact slurm controller' >&2; exit 1");
        controller.refresh(&["n1".into()], &BTreeMap::new(), false, at(1100));
        assert!(controller.failure().is_some_and(|failure| failure.contains("Unable to contact")));
        assert!(controller.listed(at(1100)).contains(&7), "its last word counts for two intervals");
        assert!(controller.listed(at(1121)).is_empty());
    }
}
