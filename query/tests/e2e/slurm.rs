//! A real Slurm through to the books: what the collector saw of its jobs, and what `sacct` says of them, in one ledger.

use crate::collector::{ended_well, started};
use crate::site::{Rows, Site};
use cardhour_test_slurm::{Lab, can_run, wait_for};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const FIELDS: &str =
    "JobID,JobIDRaw,DBIndex,Cluster,Partition,Account,User,State,Submit,Start,End,NNodes,NodeList,AllocTRES";

/// Card-seconds of each run, by hand from what `sacct` printed: cards × (end − start).
fn by_sacct(text: &str) -> BTreeMap<String, i64> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split('|').collect();
    let mut runs = BTreeMap::new();
    for line in lines {
        let row: BTreeMap<&str, &str> = names.iter().copied().zip(line.split('|')).collect();
        let (Ok(start), Ok(end)) = (row["Start"].parse::<i64>(), row["End"].parse::<i64>()) else { continue };
        let cards = row["AllocTRES"].split(',').find_map(|tres| tres.strip_prefix("gres/gpu="));
        let cards: i64 = cards.map_or(0, |cards| cards.parse().unwrap());
        if cards * (end - start) > 0 {
            // A task of an array has its index after its raw id.
            let index = row["JobID"].split_once('_').map(|(_, index)| format!("_{index}")).unwrap_or_default();
            runs.insert(format!("lab/{}{index}/db{}", row["JobIDRaw"], row["DBIndex"]), cards * (end - start));
        }
    }
    runs
}

/// Jobs, an array, a requeue and a scancel of a real Slurm, the collector killed in the middle of all of them: held to the second that `sacct` says, on
/// the cards that the node saw, and nothing contradicts.
#[test]
fn jobs_of_a_real_slurm_are_held_to_the_second_that_sacct_says() {
    if !can_run("jobs_of_a_real_slurm_are_held_to_the_second_that_sacct_says") {
        return;
    }
    let lab = Lab::up();
    let site = Site::new();
    site.ok("init --zone UTC");
    std::fs::create_dir_all(site.ledger().join("incoming")).unwrap();
    let spool = site.file("spool-is-beside", "");
    let of_lab = |part: &str| lab.folder.join(part).display().to_string();
    let config = site.file(
        "collector.toml",
        format!(
            "cluster = \"lab\"\nnode = \"gpu1\"\nspool = \"{spool}-1\"\nseal_after_s = 2\nstep_s = 1\nmetrics = \"off\"\n\
             [deliver]\nfolder = {:?}\n[slurm]\nnodes = [\"gpu1\"]\ngres_conf = {:?}\nmap_folder = {:?}\nslurm_conf = {:?}\n",
            site.ledger(),
            of_lab("etc/gres.conf"),
            of_lab("jobmap/%n"),
            of_lab("etc/slurm.conf"),
        ),
    );
    let scene = site.file("scene.toml", "[[card]]\npreset = \"h100\"\ncopies = 4\n");
    let begin = || started(Path::new(&config), Path::new(&scene));
    let mut node = begin();

    let gpu1 = ["-w", "gpu1", "-t", "10"];
    let submit = |user: usize, options: &[&str]| lab.submit(user, &[&gpu1[..], options].concat());
    let one = submit(0, &["-A", "research", "--gres=gpu:1"]);
    let two = submit(1, &["-A", "prod", "--gres=gpu:2"]);
    let array = submit(0, &["-A", "research", "--gres=gpu:1", "--array=3-4"]);
    let state = |job: &str| lab.run("squeue", &["-h", "-j", job, "-o", "%T"]);
    let runs = |job: &str| wait_for(job, || (state(job) == "RUNNING").then_some(()));
    for job in [one.to_string(), two.to_string(), format!("{array}_3")] {
        runs(&job);
    }
    std::thread::sleep(Duration::from_secs(4));
    node.kill().unwrap();
    node.wait().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    node = begin();
    std::thread::sleep(Duration::from_secs(3));
    // Its two cards are free, and the array's second task takes one.
    lab.run("scancel", &[&two.to_string()]);
    runs(&format!("{array}_4"));
    lab.run("scontrol", &["requeue", &one.to_string()]);
    wait_for("it waits", || (state(&one.to_string()) == "PENDING").then_some(()));
    // A run that begins in the second in which the last one ended Slurm refuses to launch.
    std::thread::sleep(Duration::from_secs(3));
    lab.run("scontrol", &["update", &format!("jobid={one}"), "StartTime=now"]);
    runs(&one.to_string());
    std::thread::sleep(Duration::from_secs(4));
    lab.run("scancel", &[&one.to_string(), &array.to_string()]);
    let printed = || {
        let options = ["-a", "-X", "-D", "-P", "-S", "now-1hour", "-E", "now+1hour", &format!("--format={FIELDS}")];
        let mut sacct = std::process::Command::new("sacct");
        let output = sacct.args(options).env("SLURM_CONF", lab.conf()).env("SLURM_TIME_FORMAT", "%s").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = wait_for("sacct has the end of all", || {
        let text = printed();
        let is_over = |word| !text.contains(word);
        (text.lines().count() == 6 && ["RUNNING", "PENDING", "COMPLETING"].into_iter().all(is_over)).then_some(text)
    });
    std::thread::sleep(Duration::from_secs(4));
    assert!(ended_well(node), "it ends when it is told to");

    let export = site.file("sacct.txt", &text);
    let from = text.lines().skip(1).filter_map(|line| line.split('|').nth(8)?.parse::<i64>().ok()).min().unwrap();
    let at = |seconds| cardhour_domain::Timestamp::from_unix_s(seconds);
    let to = text.lines().skip(1).filter_map(|line| line.split('|').nth(10)?.parse::<i64>().ok()).max().unwrap();
    site.import(&format!(
        "jobs {export} --format sacct --as-of {} --covers {}..{}",
        at(to + 60),
        at(from),
        at(to + 60)
    ));

    let held = site.sql("select attempt_key, card_uuid, source, share_parts, started_at, ended_at from holdings");
    let mut books: BTreeMap<String, i64> = BTreeMap::new();
    let seconds = |text: &str| cardhour_domain::Timestamp::parse_rfc3339(text).unwrap().unix_ms() / 1000;
    for row in held.0.iter().filter(|row| row["source"] == "accounting") {
        assert!(row["card_uuid"].starts_with("GPU-"), "the node named its card: {row:?}\n{text}");
        let share: i64 = row["share_parts"].parse::<i64>().unwrap() / 18_018_000;
        *books.entry(row["attempt_key"].clone()).or_default() +=
            share * (seconds(&row["ended_at"]) - seconds(&row["started_at"]));
    }
    let expected = by_sacct(&text);
    assert_eq!(expected.len(), 5, "two runs of the first, one of the second, two tasks: {text}");
    assert_eq!(books, expected, "{text}");
    // Nobody is there whom no record has, and what the node saw longer or shorter is explained.
    let reconciled = site.run("reconcile --attempts --format csv");
    let rows = Rows::parse(&reconciled.out);
    assert_eq!(reconciled.code, Some(0), "{}\n{text}", reconciled.out);
    let explained = ["agree", "edge", "nobody_looked", "after_end"];
    assert!(rows.0.iter().all(|row| explained.contains(&&*row["reason"])), "{}", reconciled.out);
    assert!(site.ok("verify").contains("the books balance"));
}
