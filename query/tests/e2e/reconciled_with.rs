//! Our books beside what other tools print of the same jobs: a real slurmdbd's `sreport` and `sacct`, an answer of OpenCost, a price by hand.

use crate::service::Service;
use crate::site::{MAP, Rows, Site, micros};
use cardhour_domain::Timestamp;
use cardhour_test_slurm::{Lab, can_run, wait_for};
use std::process::Command;
use std::time::{Duration, SystemTime};

const HOUR_S: i64 = 3600;

/// What the first job is moved to, before the hour in which the test runs: from 20 past an hour to 40 past the second after it, 2 h 20 min.
const FIRST: (i64, i64) = (-2 * HOUR_S - 2400, -1200);

/// Jobs of a real Slurm, whose rows in slurmdbd's tables are moved into hours that are over, since Slurm rolls usage up only then.
struct Accounted {
    lab: Lab,
    site: Site,
    /// The first second of the hour in which the test runs.
    hour: i64,
}

/// A job as sacct has it. Unit: seconds since 1970.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: i64,
    end: i64,
    elapsed: i64,
}

impl Accounted {
    fn up() -> Self {
        let lab = Lab::up();
        let conf = std::fs::read_to_string(lab.conf()).unwrap();
        let weighed = |line: &str| match line.strip_prefix("PartitionName=") {
            Some(_) => format!("{line} TRESBillingWeights=CPU=0.0,GRES/gpu=4.5\n"),
            None => format!("{line}\n"),
        };
        std::fs::write(lab.conf(), conf.lines().map(weighed).collect::<String>()).unwrap();
        lab.run("scontrol", &["reconfigure"]);
        std::thread::sleep(Duration::from_secs(1));

        let jobs = [
            lab.submit(0, &["-A", "research", "--gres=gpu:1", "-t", "10"]),
            lab.submit(0, &["-A", "research", "--gres=gpu:2", "-t", "10"]),
            lab.submit(1, &["-A", "prod", "--gres=gpu:3", "-t", "10"]),
        ]
        .map(|job| job.to_string());
        for job in &jobs {
            wait_for(job, || (lab.run("squeue", &["-h", "-j", job, "-o", "%T"]) == "RUNNING").then_some(()));
        }
        std::thread::sleep(Duration::from_secs(3));
        lab.run("scontrol", &["suspend", &jobs[1]]);
        std::thread::sleep(Duration::from_secs(4));
        lab.run("scontrol", &["resume", &jobs[1]]);
        std::thread::sleep(Duration::from_secs(3));
        lab.run("scancel", &[&*jobs[0], &*jobs[1], &*jobs[2]]);
        let hour = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64 / HOUR_S * HOUR_S;
        let accounted = Self { lab, site: Site::new(), hour };
        wait_for("sacct has the end of all", || {
            let text = accounted.sacct();
            (text.lines().count() == 4 && text.matches("CANCELLED").count() == 3).then_some(())
        });
        accounted.move_into_the_past(&jobs);
        accounted
    }

    /// The first job gets [`FIRST`]; the others keep their lengths, and an hour ends in the middle of the third. Then slurmdbd is started again, which
    /// rolls up every hour since the one that it is told was the last.
    fn move_into_the_past(&self, jobs: &[String; 3]) {
        let third = self.job(&jobs[2]);
        let back = (third.start + third.end) / 2 - (self.hour - HOUR_S);
        let (from, to) = (self.hour + FIRST.0, self.hour + FIRST.1);
        let long_ago = self.hour - 10 * HOUR_S;
        let [first, second, third] = jobs;
        self.sql(&format!(
            "update lab_job_table set time_submit={from}-100, time_eligible={from}-100, time_start={from}, time_end={to} where id_job={first};
             update lab_job_table set time_submit=time_submit-{back}, time_eligible=time_eligible-{back}, time_start=time_start-{back},
                    time_end=time_end-{back} where id_job in ({second}, {third});
             update lab_suspend_table set time_start=time_start-{back}, time_end=time_end-{back};
             update lab_event_table set time_start={long_ago} where node_name='' and time_end=0;
             delete from lab_last_ran_table;
             insert into lab_last_ran_table (hourly_rollup, daily_rollup, monthly_rollup) values ({long_ago}, {long_ago}, {long_ago})"
        ));
        let pid_file = self.lab.folder.join("run/slurmdbd.lab");
        let pid = std::fs::read_to_string(&pid_file).unwrap().trim().to_owned();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        // What is left of a process that nobody has waited for yet has no command line.
        let command = std::path::Path::new("/proc").join(&pid).join("cmdline");
        wait_for("slurmdbd is gone", || std::fs::read(&command).map_or(true, |line| line.is_empty()).then_some(()));
        // By a shell that ends, so that it isn't ours to wait for, and its pid is where the lab looks for it.
        let started = Command::new("bash")
            .args(["-c", "setsid slurmdbd -D >/dev/null 2>&1 </dev/null & echo $! >\"$0\""])
            .arg(&pid_file)
            .env("SLURM_CONF", self.lab.conf())
            .status();
        assert!(started.unwrap().success());
        wait_for("usage is rolled up", || {
            self.sreport("Seconds", "UTC", self.hour - 3 * HOUR_S, self.hour).contains("|prod|").then_some(())
        });
    }

    fn sql(&self, text: &str) {
        let socket = self.lab.folder.join("db/m.sock").display().to_string();
        let arguments = ["--no-defaults", "-S", &socket, "-u", "root", "slurm_acct_db", "-e", text];
        self.lab.run("mariadb", &arguments);
    }

    fn sacct(&self) -> String {
        let fields = "JobID,JobIDRaw,DBIndex,Cluster,Partition,Account,User,State,Submit,Start,End,ElapsedRaw,Suspended,NNodes,NodeList,AllocTRES";
        let mut sacct = Command::new("sacct");
        sacct.args(["-a", "-X", "-D", "-P", "-S", "now-6hours", "-E", "now+1hour", &format!("--format={fields}")]);
        let output = sacct.env("SLURM_CONF", self.lab.conf()).env("SLURM_TIME_FORMAT", "%s").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn job(&self, job: &str) -> Run {
        let text = self.sacct();
        let rows = text.lines().map(|line| line.split('|').collect::<Vec<_>>());
        let row = rows.into_iter().find(|row| row[0] == job).unwrap_or_else(|| panic!("no job {job} in {text}"));
        let number = |column: usize| row[column].parse().unwrap_or_else(|_| panic!("{row:?}"));
        Run { start: number(9), end: number(10), elapsed: number(11) }
    }

    /// What sreport prints, asked for these seconds on a clock of a zone.
    fn sreport(&self, unit: &str, zone: &str, from: i64, to: i64) -> String {
        let zoned = cardhour_domain::Zone::parse(zone).unwrap();
        let local = |at| zoned.local(Timestamp::from_unix_s(at)).unwrap().format("%Y-%m-%dT%H:%M:%S").to_string();
        let mut sreport = Command::new("sreport");
        sreport.args(["-P", "-T", "gres/gpu,billing", "-t", unit, "cluster", "AccountUtilizationByUser"]);
        sreport.args([format!("start={}", local(from)), format!("end={}", local(to))]);
        let output = sreport.env("SLURM_CONF", self.lab.conf()).env("TZ", zone).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Rows by account, and the exit code.
    fn reconcile(&self, words: &str) -> (Rows, Option<i32>) {
        let answer = self.site.run(&format!("reconcile {words} --format csv"));
        assert!(answer.err.is_empty() || answer.code != Some(2), "{words}: {}", answer.err);
        (Rows::parse(&answer.out), answer.code)
    }
}

/// Card-seconds as millionths of card-hours, half to even, as the columns have them.
fn hours(card_seconds: i64) -> i128 {
    let millionths = i128::from(card_seconds) * 1_000_000;
    let (whole, rest) = (millionths.div_euclid(3600), millionths.rem_euclid(3600));
    whole + i128::from(rest * 2 > 3600 || rest * 2 == 3600 && whole % 2 == 1)
}

/// Three jobs of a real Slurm with slurmdbd and MariaDB: `sreport` of other hours, in other units and zones, and `sacct` with suspended time and weights
/// that make x.5, beside the books that are made of the same `sacct`. Every difference has its cause, and a figure that is off by one second has none.
#[test]
fn t07_m21_every_difference_from_a_real_sreport_and_sacct_is_explained() {
    if !can_run("t07_m21_every_difference_from_a_real_sreport_and_sacct_is_explained") {
        return;
    }
    let real = Accounted::up();
    let (site, hour) = (&real.site, real.hour);
    let at = Timestamp::from_unix_s;
    let sacct = real.sacct();
    let jobs = site.file("sacct.txt", &sacct);
    site.ok("init --zone UTC");
    let (begin, as_of) = (at(hour - 3 * HOUR_S), at(hour - 600));
    site.import(&format!("jobs {jobs} --format sacct --as-of {as_of} --covers {begin}..{as_of}"));

    let (second, third) = (real.job("2"), real.job("3"));
    let edge = hour - HOUR_S;
    assert!(third.start < edge && edge < third.end, "an hour ends in it: {sacct}");
    let (from, to) = (hour + FIRST.0, hour + FIRST.1);
    let asked = format!("--from {} --to {}", at(from), at(to));
    let column =
        |row: &std::collections::BTreeMap<String, String>, name: &str| micros(&row[&format!("{name}_card_hours")]);

    // Asked for the 2 h 20 min of the first job, sreport takes whole hours; the one hour inside of them has 3,600 s of it.
    let inside = real.sreport("Seconds", "UTC", edge - HOUR_S, edge);
    let (rows, code) =
        real.reconcile(&format!("--with sreport {} {asked} --by project", site.file("hour.txt", &inside)));
    let research = rows.by_account("research");
    let held = 8400 + 2 * (second.end - second.start);
    let there = 3600 + 2 * (second.end.min(edge) - second.start.min(edge));
    assert_eq!(column(&research, "our"), hours(held), "{inside}\n{sacct}");
    assert_eq!(column(&research, "their"), hours(there), "{inside}\n{sacct}");
    assert_eq!(column(&research, "window"), hours(held - there));
    let prod = rows.by_account("prod");
    assert_eq!(column(&prod, "window"), hours(3 * (third.end - edge)), "{inside}\n{sacct}");
    assert_eq!((rows.sum_micros("unexplained_card_hours"), code), (0, Some(0)), "{inside}");

    // As sreport itself rounds those 2 h 20 min, in seconds, minutes and hours: what is left is at most half a unit a line.
    for (unit, most) in [("Seconds", 0), ("Minutes", 30), ("Hours", 1800)] {
        let printed = real.sreport(unit, "UTC", from, to);
        let file = site.file("rounded.txt", &printed);
        let (rows, code) = real.reconcile(&format!("--with sreport {file} {asked} --by project"));
        assert_eq!((rows.sum_micros("unexplained_card_hours"), code), (0, Some(0)), "{printed}");
        for account in ["research", "prod"] {
            let rounding = column(&rows.by_account(account), "rounding");
            assert!(rounding.abs() <= hours(most) + 1, "{account}: {rounding}\n{printed}");
        }
    }

    // The same hours on a clock of Shanghai are the same instants, once that is said.
    let shanghai = real.sreport("Seconds", "Asia/Shanghai", edge - HOUR_S, edge);
    let file = site.file("shanghai.txt", &shanghai);
    let this_hour = format!("--from {} --to {}", at(edge - HOUR_S), at(edge));
    let (rows, code) = real.reconcile(&format!("--with sreport {file} {this_hour} --with-zone Asia/Shanghai"));
    assert_eq!((rows.sum_micros("difference_card_hours"), code), (0, Some(0)), "{shanghai}");
    // And unsaid, it is of hours in which nobody held anything: that is not explained away.
    assert_eq!(real.reconcile(&format!("--with sreport {file} {this_hour}")).1, Some(1), "{shanghai}");

    // One second more than was held has no cause.
    let wrong = inside.replace(&format!("|gres/gpu|{there}"), &format!("|gres/gpu|{}", there + 1));
    assert_ne!(wrong, inside, "{inside}");
    let (rows, code) =
        real.reconcile(&format!("--with sreport {} {asked} --by project", site.file("wrong.txt", wrong)));
    assert_eq!((column(&rows.by_account("research"), "unexplained"), code), (-hours(1), Some(1)));

    // sacct: its elapsed time leaves out what was suspended; billing 4.5 and 13.5 are 4 and 13 there.
    let weights = "--billing-weights CPU=0.0,GRES/gpu=4.5";
    let (rows, code) = real.reconcile(&format!("--with sacct {jobs} --attempts {weights}"));
    let job = |id: &str| rows.0.iter().find(|row| row["job"] == id).unwrap_or_else(|| panic!("{rows:?}")).clone();
    let suspended = second.end - second.start - second.elapsed;
    assert!(suspended >= 3, "{sacct}");
    assert_eq!(column(&job("2"), "suspended"), hours(2 * suspended), "{sacct}");
    assert_eq!(column(&job("1"), "difference"), 0, "{sacct}");
    let billed = |id: &str, name: &str| micros(&job(id)[name]);
    assert_eq!(billed("1", "exact_billing_hours"), 10_500_000, "4.5 × 2 h 20 min");
    assert_eq!(billed("1", "slurm_billing_hours"), hours(4 * 8400));
    assert_eq!(billed("1", "whole_number_cut_hours"), hours(8400 / 2));
    assert_eq!(billed("2", "whole_number_cut_hours"), 0, "9 is whole");
    assert_eq!(billed("3", "slurm_billing_hours"), hours(13 * third.elapsed), "{sacct}");
    assert_eq!((rows.sum_micros("unexplained_card_hours"), rows.sum_micros("unexplained_billing_hours")), (0, 0));
    assert_eq!(code, Some(0));
    // Weights that aren't the cluster's are told.
    assert_eq!(real.reconcile(&format!("--with sacct {jobs} --billing-weights GRES/gpu=6")).1, Some(1));
}

trait ByAccount {
    fn by_account(&self, account: &str) -> std::collections::BTreeMap<String, String>;
}

impl ByAccount for Rows {
    #[track_caller]
    fn by_account(&self, account: &str) -> std::collections::BTreeMap<String, String> {
        self.0
            .iter()
            .find(|row| row["project"] == account)
            .unwrap_or_else(|| panic!("no {account} in {self:?}"))
            .clone()
    }
}

/// A site of two projects: `vision` has one H200 for 1 h in the day and 1 h at night, `speech` two A10 for 1,000 s.
fn small() -> Site {
    let site = Site::new();
    std::fs::create_dir_all(site.ledger()).unwrap();
    std::fs::write(
        site.ledger().join("prices.toml"),
        "currency = \"CNY\"\nzone = \"UTC\"\n[[window]]\nname = \"night\"\ndays = \"mon-sun\"\nfrom = \"22:00\"\nto = \"08:00\"\n\
         [[price]]\nfrom = \"2026-01-01\"\nmodel = \"h200\"\nper_card_hour = \"18.50\"\nnight = \"0.6\"\n\
         [[price]]\nfrom = \"2026-01-01\"\nmodel = \"a10\"\nper_card_hour = \"6.00\"\n",
    )
    .unwrap();
    let rows = "id,who,team,cards,model,start,end\n\
                1,ann,vision,1,h200,2026-03-02T21:00:00Z,2026-03-02T23:00:00Z\n\
                2,bob,speech,2,a10,2026-03-02T10:00:00Z,2026-03-02T10:16:40Z\n";
    let (file, map) = (site.file("jobs.csv", rows), site.file("map.toml", MAP));
    site.import(&format!("jobs {file} --map {map}"));
    site
}

/// By hand at 10.00: vision 2 h are 20.00, the bill 18.50 + 18.50 × 0.6 = 29.60. Speech 2 × 1,000 s at 6.00 are 3.333333, billed 3.33; by hand
/// 5.555556, 5.56: the price makes −2.222222 of the −2.23, the two roundings the rest.
#[test]
fn a_price_by_hand_differs_from_the_bill_by_price_and_rounding() {
    let site = small();
    let rows = Rows::parse(&site.ok("reconcile --with rate 10.00 --month 2026-03 --by project --format csv"));
    let row = |project| rows.by_account(project);
    let figures = |row: &std::collections::BTreeMap<String, String>| {
        ["our_cost", "by_hand_cost", "difference", "price", "rounding", "unexplained"].map(|name| micros(&row[name]))
    };
    assert_eq!(figures(&row("vision")), [29_600_000, 20_000_000, 9_600_000, 9_600_000, 0, 0]);
    assert_eq!(figures(&row("speech")), [3_330_000, 5_560_000, -2_230_000, -2_222_223, -7_777, 0]);
    let refused = site.run("reconcile --with rate 10.00 --from 2026-03-01 --to 2026-03-02");
    assert_eq!(refused.code, Some(2), "{}", refused.err);
}

/// OpenCost calls the namespace what the books call the project. It has vision whole, speech twice over, and a row of idle cards.
#[test]
fn m15_opencost_beside_the_books() {
    let site = small();
    let allocation = |namespace: &str, hours: &str| {
        format!(
            "{namespace:?}: {{\"name\": {namespace:?}, \"properties\": {{\"cluster\": \"one\", \"namespace\": {namespace:?}}}, \"gpuHours\": {hours}, \
             \"window\": {{\"start\": \"2026-03-02T00:00:00Z\", \"end\": \"2026-03-03T00:00:00Z\"}}}}"
        )
    };
    let json = |speech: &str| {
        let all = [allocation("vision", "2.0"), allocation("speech", speech), allocation("__idle__", "40.5")];
        site.file("allocation.json", format!("{{\"code\": 200, \"data\": [{{{}}}]}}", all.join(",")))
    };
    let rows =
        Rows::parse(&site.ok(&format!("reconcile --with opencost {} --by project --format csv", json("1.11111"))));
    assert_eq!(micros(&rows.by_account("vision")["difference_card_hours"]), 0);
    // 2,000 s are 0.555556 h.
    assert_eq!(micros(&rows.by_account("speech")["counted_twice_card_hours"]), -555_556);
    assert_eq!(micros(&rows.by_account("__idle__")["idle_card_hours"]), -40_500_000);
    let answer = site.run(&format!("reconcile --with opencost {} --by project --format csv", json("0.7")));
    assert_eq!(answer.code, Some(1), "{}", answer.out);
    let missing = site.run("reconcile --with opencost nowhere.json");
    assert_eq!(missing.code, Some(2), "{}", missing.err);
}

/// Whatever the command prints of a file, the service answers to whoever sends its bytes; nothing is compared for who doesn't say with what.
#[test]
fn the_bytes_of_a_file_over_http_give_the_rows_of_the_command() {
    let site = small();
    let json = "{\"code\": 200, \"data\": [{\"vision\": {\"name\": \"vision\", \"properties\": {\"cluster\": \"one\", \"namespace\": \"vision\"}, \
                \"gpuHours\": 2.5, \"window\": {\"start\": \"2026-03-02T00:00:00Z\", \"end\": \"2026-03-03T00:00:00Z\"}}}]}";
    let file = site.file("allocation.json", json);
    let service = Service::start(&site);
    for format in ["csv", "json"] {
        let typed = site.run(&format!("reconcile --with opencost {file} --by project --format {format}"));
        assert_eq!(typed.code, Some(1), "2.5 of 2 hours are explained by nothing: {}", typed.out);
        let sent = service.post(&format!("/api/v1/reconcile?with=opencost&by=project&format={format}"), json);
        assert_eq!((sent.status, sent.body), (200, typed.out), "{format}");
    }
    let typed = site.ok("reconcile --with rate 18.50 --month 2026-03 --by project --format csv");
    let rate = "/api/v1/reconcile?with=rate&rate=18.50&month=2026-03&by=project&format=csv";
    assert_eq!(service.post(rate, "").body, typed);
    for (path, body, status) in [
        ("/api/v1/reconcile?with=opencost", "", 400),
        ("/api/v1/reconcile?with=opencost", "{", 400),
        ("/api/v1/reconcile?with=kubecost", json, 400),
        ("/api/v1/reconcile", json, 400),
        (rate, "18.50", 400),
    ] {
        assert_eq!(service.post(path, body).status, status, "{path} {body}");
    }
}
