//! Quotas, months of card-hours, and limits of a real Slurm that follow them.

use crate::site::{Rows, Site};
use cardhour_domain::{Timestamp, Zone};
use cardhour_query::books::Books;
use cardhour_query::config::Config;
use cardhour_query::reclaimed::Reclaimer;
use cardhour_test_slurm::{Lab, can_run, wait_for};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const MAP: &str = r#"
format = "csv"
cluster = "lab"
[columns]
job_id = "id"
org = "org"
project = "team"
user = "who"
cards = "cards"
cards_requested = "cards"
model = "model"
state = "state"
submitted_at = "submit"
started_at = "start"
ended_at = "end"
"#;

const HEADER: &str = "id,org,team,who,cards,model,state,submit,start,end\n";

fn imported(site: &Site, zone: &str, jobs: &str, as_of: &str) {
    site.ok(&format!("init --zone {zone}"));
    let (jobs, map) = (site.file("jobs.csv", format!("{HEADER}{jobs}")), site.file("map.toml", MAP));
    site.import(&format!("jobs {jobs} --map {map} --as-of {as_of}"));
}

/// By hand. In March vision had 4 cards for 2 h and 2 for 24 h up to 3 March: 56 card-hours; it holds 2 and one of its jobs waits. It had its guarantee of 4 for 2 of 48 h: 0.041667.
/// Its bucket of 50 is empty. Of the 744 h of March 696 are left; the pace of the 48 h that the books reach back is 56 ÷ 48, so that 56 + 56 × 696 ÷ 48 = 868 are forecast.
#[test]
fn quotas_are_shown_with_what_is_left_of_the_month() {
    let site = Site::new();
    let jobs = "1,acme,vision,ann,4,H200,completed,2026-03-01T00:00:00Z,2026-03-01T00:00:00Z,2026-03-01T02:00:00Z\n\
                2,acme,vision,bob,2,H200,running,2026-03-02T00:00:00Z,2026-03-02T00:00:00Z,\n\
                3,acme,vision,ann,1,H200,pending,2026-03-02T10:00:00Z,,\n";
    imported(&site, "UTC", jobs, "2026-03-03T00:00:00Z");
    let quotas = "[[quota]]\norg = \"acme\"\nproject = \"vision\"\nmodel = \"H200\"\nguaranteed = 4\nmax = 8\nweight = \"1.5\"\nmonth_card_hours = 50\n\
                  [[quota]]\norg = \"nova\"\nmodel = \"H200\"\nguaranteed = 2\n";
    std::fs::write(site.ledger().join("quotas.toml"), quotas).unwrap();
    let rows = Rows::parse(&site.ok("quotas --format csv"));
    let of = |rows: &Rows, column: &str, value: &str| rows.0.iter().find(|row| row[column] == value).unwrap().clone();
    let vision = of(&rows, "project", "vision");
    for (column, value) in [
        ("cluster", "lab"),
        ("guaranteed_cards", "4"),
        ("borrow_limit", ""),
        ("max_cards", "8"),
        ("weight", "1.5"),
        ("held_cards", "2.000000"),
        ("waiting_jobs", "1"),
        ("hit_rate", "0.041667"),
        ("used_card_hours", "56.000000"),
        ("month_card_hours", "50.000000"),
        ("forecast_card_hours", "868.000000"),
        ("band", "over"),
    ] {
        assert_eq!(vision[column], value, "{column}: {rows:?}");
    }
    let nova = of(&rows, "org", "nova");
    assert_eq!((&*nova["used_card_hours"], &*nova["band"], &*nova["hit_rate"]), ("0.000000", "", "0.000000"));
    let usage = Rows::parse(&site.ok("report usage --month 2026-03 --by project --format csv"));
    assert_eq!(of(&usage, "project", "vision")["card_hours"], vision["used_card_hours"]);
    std::fs::write(site.ledger().join("quotas.toml"), "[[quota]]\norg = \"acme\"\nmonth_card_hours = 0\n").unwrap();
    let answer = site.run("quotas");
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("quota[1].model: is missing"), "{}", answer.err);
}

/// A zone in which it is the same month an hour ago and in an hour.
fn quiet_zone(now: Timestamp) -> &'static str {
    let in_hours = |hours: i64| Timestamp::from_unix_s(now.unix_ms() / 1000 + hours * 3600);
    let is_quiet = |zone: &&str| {
        let zone = Zone::parse(zone).unwrap();
        zone.month(in_hours(-1)) == zone.month(in_hours(1))
    };
    ["UTC", "Asia/Shanghai"].into_iter().find(is_quiet).expect("months don't end at two places at once")
}

/// An account that has used its month gets its limit in a real Slurm, once, through looks that are killed at all moments; what runs goes on, what comes next waits; and with the next
/// month the limit is what it was.
#[test]
fn an_account_over_its_month_is_limited_in_a_real_slurm_once_and_freed_with_the_next_month() {
    if !can_run("an_account_over_its_month_is_limited_in_a_real_slurm_once_and_freed_with_the_next_month") {
        return;
    }
    let lab = Lab::up();
    lab.run("sacctmgr", &["-i", "-Q", "modify", "account", "research", "set", "GrpTRES=cpu=64,gres/gpu=6"]);
    let limit = || lab.run("sacctmgr", &["-n", "-P", "show", "assoc", "account=research", "user=", "format=GrpTRES"]);
    let changes = || {
        let wanted = ["-n", "-P", "list", "transactions", "action=Modify Associations", "format=time,action,info"];
        lab.run("sacctmgr", &wanted).lines().count()
    };
    let cards = ["-A", "research", "--gres=gpu:3", "-t", "10"];
    let state = |job: u64| lab.run("squeue", &["-h", "-j", &job.to_string(), "-o", "%T"]);
    let first = lab.submit(0, &cards);
    wait_for("it runs", || (state(first) == "RUNNING").then_some(()));

    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let now = Timestamp::from_unix_s(i64::try_from(seconds).unwrap());
    let ago = |minutes: i64| Timestamp::from_unix_s(now.unix_ms() / 1000 - minutes * 60);
    let zone = quiet_zone(now);
    let site = Site::new();
    // 4 cards for 25 min are 1.67 card-hours, of a bucket of half a card-hour.
    let job = format!("1,acme,vision,ann,4,H100,completed,{0},{0},{1}\n", ago(30), ago(5));
    imported(&site, zone, &job, &ago(5).to_string());
    let quotas = "[[quota]]\norg = \"acme\"\nmodel = \"H100\"\nmonth_card_hours = \"0.5\"\n";
    std::fs::write(site.ledger().join("quotas.toml"), quotas).unwrap();
    let policy = format!(
        "[[limit]]\ncluster = \"lab\"\naccount = \"research\"\norg = \"acme\"\nmodel = \"H100\"\nover = 2\n\
         [act]\nmode = \"act\"\nclusters = [\"lab\"]\n[act.slurm]\nconf = {:?}\n",
        lab.conf().display().to_string()
    );
    std::fs::write(site.ledger().join("policy.toml"), policy).unwrap();

    let before = changes();
    let mut pause = Duration::from_millis(20);
    while limit() != "cpu=64,gres/gpu=2" {
        let mut child = site.command().arg("reclaim").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(pause);
        _ = child.kill();
        _ = child.wait();
        pause += Duration::from_millis(35);
        let so_far = || site.ok("decisions --format csv");
        assert!(pause < Duration::from_secs(10), "no limit; {}", so_far());
    }
    for _ in 0..3 {
        site.run("reclaim");
        std::thread::sleep(Duration::from_secs(1));
    }
    assert_eq!(limit(), "cpu=64,gres/gpu=2");
    assert_eq!(changes() - before, 1, "once");
    let actions = || {
        let rows = Rows::parse(&site.ok("decisions --format csv"));
        let of_limits = rows.0.iter().filter(|row| ["limit", "put_back", "carried_out"].contains(&&*row["action"]));
        of_limits.map(|row| format!("{} {}", row["action"], row["carried_out"])).collect::<Vec<_>>()
    };
    assert_eq!(actions(), ["limit ", "carried_out done, and seen to be"]);
    assert_eq!(state(first), "RUNNING", "what runs goes on");
    let second = lab.submit(0, &cards);
    let reason = || lab.run("squeue", &["-h", "-j", &second.to_string(), "-o", "%r"]);
    wait_for("the limit holds it", || (reason() == "AssocGrpGRES").then_some(()));

    // The first minute of the next month.
    let next = Zone::parse(zone).unwrap().month(now).unwrap().next().interval(Zone::parse(zone).unwrap()).start();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let sql = Config::parse("", Path::new("config.toml")).unwrap().sql;
        let books = Books::open(site.ledger().to_str().unwrap(), sql).await.unwrap();
        let mut reclaimer = Reclaimer::new(books, Vec::new());
        for minute in 0..3 {
            let at = Timestamp::from_unix_ms(next.unix_ms() + minute * 60_000);
            reclaimer.look(at).await.unwrap();
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    assert_eq!(limit(), "cpu=64,gres/gpu=6");
    assert_eq!(changes() - before, 2, "once each");
    wait_for("the next job runs", || (state(second) == "RUNNING").then_some(()));
    lab.run("scancel", &[&first.to_string(), &second.to_string()]);
}
