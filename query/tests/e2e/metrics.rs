//! `import metrics`: real captures of nvidia-smi and a real Prometheus, to the report.

use crate::site::{Site, shared};
use cardhour_test_prometheus::{Prometheus, VictoriaMetrics, has};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The log in one capture: its header, and the rows of the idle and the loaded machine.
fn capture(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(shared(&format!("smi-captures/{name}"))?).unwrap();
    let is_row = |line: &&str| {
        line.starts_with("timestamp, driver_version") || line.starts_with("2026/") && line.split(", ").count() > 100
    };
    Some(text.lines().filter(is_row).map(|line| format!("{line}\n")).collect())
}

const H100: &str = "linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01.txt";
const L40S: &str = "linux-x86_64__nvidia-l40s__595.80.txt";
const H100_UUID: &str = "GPU-00000000-0000-0000-0000-000000000000";

/// Its rows: 08:12:38.696 idle, 0 % and 69.85 W; 08:12:53.353 under load, 100 % and 631.95 W. They are 14.657 s apart, so that is the step.
#[test]
fn a_log_of_nvidia_smi_is_in_the_books_with_its_figures() {
    let Some(log) = capture(H100) else { return };
    let site = Site::new();
    let log = site.file("gpu01.csv", log);
    let counts = site.ok(&format!(
        "import metrics {log} --format nvidia-smi-csv --node gpu01 --cluster lab --zone UTC --output json"
    ));
    // Two samples, and the card at its first and its last.
    assert_eq!(counts, "{\"read\":2,\"steps\":0,\"booked\":4,\"unchanged\":0,\"superseded\":0,\"quarantined\":0}\n");
    let samples = site.sql_text(
        "select node, card_uuid, interval_ms, sm_active_pct, use_basis, power_mw, energy_mj, energy_basis, source from samples order by ts",
    );
    // 69.85 W × 14.657 s = 1,023.79145 J, 631.95 W × 14.657 s = 9,262.49115 J, half to even.
    let row = |busy: &str, mw: i64, mj: i64| {
        format!("gpu01,{H100_UUID},14657,{busy},duty_cycle,{mw},{mj},power,nvidia_smi\n")
    };
    let expected = row("0.000", 69_850, 1_023_791) + &row("100.000", 631_950, 9_262_491);
    assert_eq!(samples.split_once('\n').unwrap().1, expected);
}

/// Nobody is known to hold the card: 2 × 14.657 s = 29.314 s of it are unaccounted, 0.008143 card-hours, and none of it is free or an error.
#[test]
fn a_card_of_which_only_its_use_is_known_is_unaccounted_and_shown() {
    let Some(log) = capture(H100) else { return };
    let site = Site::new();
    let log = site.file("gpu01.csv", log);
    site.ok(&format!("import metrics {log} --format nvidia-smi-csv --node gpu01 --cluster lab --zone UTC"));
    let report = site.report("efficiency --by cluster,node");
    assert!(report.0.iter().all(|row| row["card_hours"] == "0.000000" && row["efficiency"].is_empty()), "{report:?}");
    let capacity = site.report("capacity --by node");
    assert_eq!((capacity.only("node"), capacity.only("capacity_card_hours")), ("gpu01", "0.008143"));
    assert_eq!((capacity.only("unaccounted_card_hours"), capacity.only("free_card_hours")), ("0.008143", "0.000000"));
    let coverage = site.report("coverage");
    // Of nothing that is held, no part is proven or not.
    assert_eq!((coverage.only("unaccounted_card_hours"), coverage.only("coverage")), ("0.008143", ""));
    let verdict = site.ok("verify");
    assert!(verdict.contains("the books balance"), "{verdict}");
}

/// A record holds the card for a minute, of which the log tells 29.314 s: half of them busy throughout, half of them not at all. By hand: 14.657 s =
/// 0.004071 h effective and as much not, 60 − 29.314 = 30.686 s = 0.008524 h unseen.
#[test]
fn a_record_and_a_log_of_its_card_are_joined() {
    let Some(log) = capture(H100) else { return };
    let site = Site::new();
    let log = site.file("gpu01.csv", log);
    let map = "format = \"csv\"\ncluster = \"lab\"\n[columns]\njob_id = \"id\"\nproject = \"team\"\ncards = \"cards\"\ncard_uuid = \"card\"\n\
               nodes = \"node\"\nsubmitted_at = \"start\"\nstarted_at = \"start\"\nended_at = \"end\"\n";
    let jobs = format!(
        "id,team,cards,card,node,start,end\n1,vision,1,{H100_UUID},gpu01,2026-07-14T08:12:00Z,2026-07-14T08:13:00Z\n"
    );
    let (map, jobs) = (site.file("map.toml", map), site.file("jobs.csv", jobs));
    let import = [
        format!("metrics {log} --format nvidia-smi-csv --node gpu01 --cluster lab --zone UTC"),
        format!("jobs {jobs} --map {map}"),
    ];
    let turned = Site::new();
    for (first, second) in [(0, 1), (1, 0)] {
        let site = if first == 0 { &site } else { &turned };
        site.import(&import[first]);
        site.import(&import[second]);
        let report = site.report("usage --by project");
        let hours = ["card_hours", "effective_card_hours", "unseen_card_hours"].map(|name| report.only(name));
        assert_eq!(hours, ["0.016667", "0.004071", "0.008524"]);
        let rest = report.sum_micros("idle_card_hours") + report.sum_micros("underused_card_hours");
        assert_eq!(rest, 4_071);
        assert!(site.ok("verify").contains("the books balance"));
    }
    assert_eq!(site.report("usage --by project"), turned.report("usage --by project"));
}

/// The idle L40S says 100 % with 0 MiB and no process: its time is unseen, never busy.
#[test]
fn a_card_that_contradicts_itself_tells_nothing_of_use() {
    let Some(log) = capture(L40S) else { return };
    let site = Site::new();
    let log = site.file("l40s.csv", log);
    let answer = site.run(&format!("import metrics {log} --format nvidia-smi-csv --node n --zone UTC"));
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    assert!(answer.err.contains("note: 1 samples contradict themselves"), "{}", answer.err);
    let rows = site.sql_text("select sm_active_pct, gaps from samples order by ts");
    assert!(rows.contains("sm_active_pct=implausible"), "{rows}");
}

const LOG: &str = "timestamp, index, uuid, utilization.gpu [%]\n";

fn rows(minutes: std::ops::RangeInclusive<u32>, util: u32) -> String {
    minutes.map(|minute| format!("2026/03/02 08:{minute:02}:00.000, 0, GPU-1, {util} %\n")).collect()
}

#[test]
fn files_again_in_any_order_and_overlapping_give_the_same_books() {
    let (early, late) = (LOG.to_owned() + &rows(1..=20, 40), LOG.to_owned() + &rows(15..=30, 40));
    let books = |order: &[&str]| {
        let site = Site::new();
        let [early, late] = [("early.csv", &early), ("late.csv", &late)].map(|(name, text)| site.file(name, text));
        for step in order {
            let files = step.replace("early", &early).replace("late", &late);
            site.ok(&format!("import metrics {files} --format nvidia-smi-csv --node n1 --cluster lab --zone UTC"));
        }
        let samples = site.sql_text("select ts, interval_ms, card_uuid, sm_active_pct, source from samples order by 1");
        // Thirty minutes, each once.
        assert_eq!(samples.lines().count(), 31, "{samples}");
        assert_eq!(site.report("capacity --by node").only("unaccounted_card_hours"), "0.500000");
        assert!(site.ok("verify").contains("the books balance"));
        samples + &site.sql_text("select * from usage order by bucket_start, state")
    };
    let together = books(&["early late"]);
    assert_eq!(books(&["late early"]), together);
    assert_eq!(books(&["early", "late"]), together);
    assert_eq!(books(&["late", "early", "early", "late early"]), together);
}

#[test]
fn a_card_that_is_only_known_by_its_index_asks_for_the_list_of_cards() {
    let site = Site::new();
    let log = site.file(
        "log.csv",
        "timestamp, index, utilization.gpu [%]\n2026/03/02 08:01:00.000, 0, 40 %\n2026/03/02 08:02:00.000, 7, 40 %\n",
    );
    let import = format!("import metrics {log} --format nvidia-smi-csv --node n1 --zone UTC");
    let answer = site.run(&import);
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    assert!(answer.err.contains("--cards, what `nvidia-smi -L` prints"), "{}", answer.err);
    let list = site.file("cards.txt", "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n");
    let answer = site.run(&format!("{import} --cards {list} --output json"));
    assert_eq!(answer.code, Some(4), "card 7 isn't in the list: {}", answer.err);
    assert!(answer.out.contains("\"quarantined\":1"), "{}", answer.out);
    let rejected = site.sql("select file, line, field, reason from quarantine");
    assert_eq!((rejected.only("file"), rejected.only("line"), rejected.only("field")), ("log.csv", "3", "card_uuid"));
    assert!(rejected.only("reason").contains("an index is no identity"), "{rejected:?}");
    assert_eq!(site.sql("select card_uuid from samples").only("card_uuid"), "GPU-1");
}

/// C11 on the whole command: one value that isn't there costs that value, and a row that isn't one goes to quarantine with its line.
#[test]
fn c11_a_value_that_is_not_there_costs_no_more_than_itself() {
    let site = Site::new();
    let log = site.file(
        "log.csv",
        "timestamp, uuid, utilization.gpu [%], power.draw [W]\n2026/03/02 08:01:00.000, GPU-1, [N/A], 100.00 W\n\
         NVRM: something else\n2026/03/02 08:02:00.000, GPU-1, 40 %, 100.00 W\n2036/03/02 08:02:00.000, GPU-1, 40 %, 100.00 W\n",
    );
    let answer = site.run(&format!("import metrics {log} --format nvidia-smi-csv --node n1 --zone UTC --output json"));
    assert_eq!(answer.code, Some(4), "{}", answer.err);
    assert!(answer.out.starts_with("{\"read\":4,") && answer.out.contains("\"quarantined\":2"), "{}", answer.out);
    let lines = site.sql_text("select line, field from quarantine order by line");
    assert_eq!(lines, "line,field\n3,\n5,timestamp\n", "the last is ten years ahead");
    let powers = site.sql_text("select power_mw, sm_active_pct from samples order by ts");
    assert_eq!(powers, "power_mw,sm_active_pct\n100000,\n100000,40.000\n");
}

/// nvidia-smi's log and a table that was made of DCGM's figures tell of one card and ten minutes: 10 % and 60 %. DCGM counts; a record holds it for a
/// quarter of an hour. By hand: 600 s × 60 % = 360 s = 0.1 h effective, 300 s = 0.083333 h unseen.
#[test]
fn of_two_sources_for_one_card_the_better_counts_and_the_other_is_kept() {
    let site = Site::new();
    let smi = site.file("smi.csv", LOG.to_owned() + &rows(1..=10, 10));
    let dcgm: String = (1..=10).map(|m| format!("2026-03-02T08:{m:02}:00Z,n1,GPU-1,0.6\n")).collect();
    let dcgm = site.file("dcgm.csv", format!("at,node,card_uuid,sm_active_ratio\n{dcgm}"));
    let map = site.file("map.toml", "format = \"csv\"\ncluster = \"lab\"\n");
    let jobs = site.file(
        "jobs.csv",
        "id,team,cards,card,node,start,end\n1,vision,1,GPU-1,n1,2026-03-02T08:00:00Z,2026-03-02T08:15:00Z\n",
    );
    let job_map = site.file(
        "jobs.toml",
        "format = \"csv\"\ncluster = \"lab\"\n[columns]\njob_id = \"id\"\nproject = \"team\"\ncards = \"cards\"\ncard_uuid = \"card\"\nnodes = \"node\"\n\
         submitted_at = \"start\"\nstarted_at = \"start\"\nended_at = \"end\"\n",
    );
    site.ok(&format!("import jobs {jobs} --map {job_map}"));
    site.ok(&format!("import metrics {smi} --format nvidia-smi-csv --node n1 --cluster lab --zone UTC"));
    site.ok(&format!("import metrics {dcgm} --map {map} --source dcgm"));
    let report = site.report("usage --by project");
    assert_eq!((report.only("effective_card_hours"), report.only("unseen_card_hours")), ("0.100000", "0.083333"));
    let kept = site.sql("select source, count(*) as n from samples group by source order by source");
    assert_eq!(
        kept.by("source", "n"),
        [("dcgm", "10"), ("nvidia_smi", "10")].map(|(a, b)| (a.to_owned(), b.to_owned())).into()
    );
    assert!(site.ok("verify").contains("the books balance"));
}

#[test]
fn what_is_missing_to_read_a_source_is_said() {
    let site = Site::new();
    let scrape = site.file("a.prom", "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-1\",Hostname=\"n1\"} 50\n");
    let log = site.file("log.csv", LOG.to_owned() + &rows(1..=2, 1));
    for (words, says) in [
        (scrape.clone(), "--at TIME says when this text was scraped"),
        (log.clone(), "nothing says how the file is written"),
        (format!("{log} --format nvidia-smi-csv"), "--node NAME says it"),
        (format!("{log} --format prometheus"), "--url"),
        ("--url http://127.0.0.1:1".to_owned(), "--from"),
        ("--url ftp://x --from 2026-03-01".to_owned(), "begins with neither http:// nor https://"),
        ("--url http://me:secret@x --from 2026-03-01".to_owned(), "take --user and --password-file"),
        (format!("--url http://prometheus.example --from 2026-03-01 --token-file {log}"), "more than one line"),
        ("--url http://127.0.0.1:1 --from 2026-03-01T00:00:01 --to 2026-03-01T00:00:59".to_owned(), "no whole step"),
    ] {
        let answer = site.run(&format!("import metrics {words}"));
        assert_eq!(answer.code, Some(2), "{words}: {}{}", answer.out, answer.err);
        assert!(answer.err.contains(says), "{words}: {}", answer.err);
    }
    let token = site.file("token", "secret\n");
    let open =
        site.run(&format!("import metrics --url http://prometheus.example --from 2026-03-01 --token-file {token}"));
    assert!(open.code == Some(2) && open.err.contains("take https"), "{}", open.err);
    site.ok(&format!("import metrics {scrape} --at 2026-03-02T08:01:00Z --step 1m --cluster lab"));
    assert_eq!(site.sql("select interval_ms, source from samples").only("interval_ms"), "60000");
}

/// A real Prometheus that holds [`two_days`]. None, said aloud, where it isn't installed.
fn prometheus(test: &str) -> Option<Prometheus> {
    let is_there = has("prometheus", test) && has("promtool", test);
    is_there.then(|| Prometheus::holding(&two_days()))
}

/// Seconds since 1970 of 2026-03-01T00:00:00Z: 20,513 days.
const MARCH: i64 = 20_513 * 86_400;
const HOUR: i64 = 60;

/// Two days of a node with two cards, scraped seven seconds after each minute, but for an hour in which Prometheus was down. Minutes since the
/// start of March.
///
/// - GPU-1: pod vision/train-0 from 2:00 to 8:00 at 80 %, over and still there until 9:00; another of that name from 34:00 to 36:00 at 50 %.
/// - GPU-2: nobody whom Kubernetes knows; from 30:00 to 33:00 somebody else uses all of it.
/// - nothing from 4:00 to 5:00. Both draw 300 W throughout.
fn two_days() -> String {
    let minutes = || (0..48 * HOUR).filter(|minute| !(4 * HOUR..5 * HOUR).contains(minute));
    let pod = |minute: i64| match minute {
        m if (2 * HOUR..8 * HOUR).contains(&m) => Some(80),
        m if (34 * HOUR..36 * HOUR).contains(&m) => Some(50),
        _ => None,
    };
    let card = |n: u8| {
        format!(
            "gpu=\"{}\",UUID=\"GPU-{n}\",modelName=\"NVIDIA H100\",Hostname=\"gpu-a\",instance=\"10.0.0.7:9400\",job=\"dcgm\"",
            n - 1
        )
    };
    let mut text = String::new();
    let mut family = |name: &str, series: &dyn Fn(i64) -> Vec<(String, String)>| {
        text.push_str(&format!("# TYPE {name} gauge\n"));
        for minute in minutes() {
            for (labels, value) in series(minute) {
                text.push_str(&format!("{name}{{{labels}}} {value} {}\n", MARCH + minute * 60 + 7));
            }
        }
    };
    let held = |minute: i64| {
        let pod = pod(minute).map_or("", |_| ",namespace=\"vision\",pod=\"train-0\",container=\"main\"");
        card(1) + pod
    };
    family("DCGM_FI_DEV_GPU_UTIL", &|minute| {
        let other = if (30 * HOUR..33 * HOUR).contains(&minute) { 100 } else { 0 };
        vec![(held(minute), pod(minute).unwrap_or(0).to_string()), (card(2), other.to_string())]
    });
    family("DCGM_FI_DEV_POWER_USAGE", &|minute| vec![(held(minute), "300".to_owned()), (card(2), "300".to_owned())]);
    // 300 W × 60 s = 18,000,000 mJ a minute.
    family("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", &|minute| {
        let counter = (1_000_000_000 + minute * 18_000_000).to_string();
        vec![(held(minute), counter.clone()), (card(2), counter)]
    });
    let train = |minute: i64| match minute {
        m if (2 * HOUR..9 * HOUR).contains(&m) => Some("u1"),
        m if (34 * HOUR..36 * HOUR).contains(&m) => Some("u2"),
        _ => None,
    };
    let of_pod = |uid: &str| format!("namespace=\"vision\",pod=\"train-0\",uid=\"{uid}\",node=\"gpu-a\"");
    let exporter = "namespace=\"ops\",pod=\"dcgm-exporter-x\",uid=\"e\",node=\"gpu-a\"".to_owned();
    family("kube_pod_info", &|minute| {
        let all = train(minute).map(of_pod).into_iter().chain([exporter.clone()]);
        all.map(|labels| (labels, "1".to_owned())).collect()
    });
    family("kube_pod_container_resource_requests", &|minute| {
        let asked =
            train(minute).map(|uid| of_pod(uid) + ",container=\"main\",resource=\"nvidia_com_gpu\",unit=\"integer\"");
        asked.map(|labels| (labels, "1".to_owned())).into_iter().collect()
    });
    family("kube_pod_status_phase", &|minute| {
        let phase = if pod(minute).is_some() { "Running" } else { "Succeeded" };
        train(minute).map(|uid| (of_pod(uid) + &format!(",phase=\"{phase}\""), "1".to_owned())).into_iter().collect()
    });
    family("kube_pod_labels", &|minute| {
        let labels = |uid| of_pod(uid) + ",label_kueue_x_k8s_io_queue_name=\"gold\",label_team=\"dog\"";
        train(minute).map(|uid| (labels(uid), "1".to_owned())).into_iter().collect()
    });
    text + "# EOF\n"
}

/// What the two days come to. By hand, in card-hours:
/// - held 6 + 2 = 8, of which the hour without Prometheus is unseen: the same pod was there before and after, and nobody looked;
/// - effective 5 × 80 % + 2 × 50 % = 5, underused 1 + 1 = 2; efficiency 5/7 = 0.714286, seen 7/8 = 0.875;
/// - of 2 × 48 = 96: the hour of GPU-2 and the three in which somebody unknown used it are unaccounted, 4; the other 84 are free; coverage of the
///   pool 1 − 4/96 = 0.958333;
/// - energy of what was held and seen: 7 h × 300 W = 2.1 kWh.
#[track_caller]
fn assert_two_days(site: &Site) {
    let usage = site.report("usage --by project,queue");
    assert_eq!((usage.only("project"), usage.only("queue"), usage.only("attempts")), ("vision", "gold", "2"));
    let figures = [
        "card_hours",
        "effective_card_hours",
        "underused_card_hours",
        "idle_card_hours",
        "unseen_card_hours",
        "use_coverage",
        "efficiency",
        "energy_kwh",
    ];
    let expected = ["8.000000", "5.000000", "2.000000", "0.000000", "1.000000", "0.875000", "0.714286", "2.100000"];
    assert_eq!(figures.map(|name| usage.only(name)), expected);
    let efficiency = site.report("efficiency --by project");
    assert_eq!((efficiency.only("efficiency"), efficiency.only("use_basis")), ("0.714286", "duty_cycle"));
    let capacity = site.report("capacity --by node");
    let figures = [
        "capacity_card_hours",
        "card_hours",
        "free_card_hours",
        "unaccounted_card_hours",
        "over_capacity_card_hours",
        "coverage",
    ];
    assert_eq!(
        figures.map(|name| capacity.only(name)),
        ["96.000000", "8.000000", "84.000000", "4.000000", "0.000000", "0.958333"]
    );
    let verdict = site.ok("verify");
    assert!(verdict.contains("the books balance"), "{verdict}");
}

/// Everything that the books say, apart from which import brought it.
fn books(site: &Site) -> [String; 3] {
    [
        "select ts, card_uuid, device_uuid, node, attempt_key, interval_ms, sm_active_pct, power_mw, energy_mj, energy_basis, gaps, source from samples order by 1, 2",
        "select * from usage order by bucket_start, state, card_uuid, attempt_key",
        "select * from holdings order by started_at, attempt_key",
    ]
    .map(|query| site.sql_text(query))
}

#[test]
fn m14_k12_k08_two_days_of_a_real_prometheus_come_to_what_a_hand_count_gives() {
    let Some(prometheus) = prometheus("m14_k12_k08_two_days") else { return };
    let url = format!("--url {}", prometheus.url());
    let import = |site: &Site, from: &str, to: &str| {
        site.ok(&format!("import metrics --format prometheus {url} --from {from} --to {to} --cluster k8s --pod-label team --output json"))
    };
    let whole = Site::new();
    let first = import(&whole, "2026-03-01", "2026-03-03");
    assert!(first.contains("\"unchanged\":0,\"superseded\":0,\"quarantined\":0"), "{first}");
    assert_two_days(&whole);
    assert_eq!(whole.sql("select distinct labels from observations where labels is not null").0.len(), 1);
    let as_it_was = books(&whole);
    // The same again, and a part of it.
    let again = import(&whole, "2026-03-01", "2026-03-03");
    assert!(again.contains("\"booked\":0,") && again.contains("\"superseded\":0,"), "{again}");
    import(&whole, "2026-03-01T03:30", "2026-03-02T12:00");
    assert_eq!(books(&whole), as_it_was);
    // In pieces that meet, in any order, cut in the hole, beside it, in the middle of a pod; and in pieces that overlap.
    for pieces in [
        vec![
            ("2026-03-02T10:30", "2026-03-03"),
            ("2026-03-01", "2026-03-01T04:30"),
            ("2026-03-01T04:30", "2026-03-02T10:30"),
        ],
        vec![("2026-03-01", "2026-03-01T05:01"), ("2026-03-01T05:01", "2026-03-03")],
        vec![("2026-03-01T02:00", "2026-03-03"), ("2026-03-01", "2026-03-02")],
    ] {
        let site = Site::new();
        for (from, to) in &pieces {
            import(&site, from, to);
        }
        assert_eq!(books(&site), as_it_was, "{pieces:?}");
        assert_two_days(&site);
    }
}

/// VictoriaMetrics leaves the metric's name on means, keeps samples in blocks of its own and has other words for errors: the books are the same.
#[test]
fn two_days_of_a_real_victoriametrics_come_to_the_same_hand_count() {
    if !has("victoria-metrics", "two_days_of_a_real_victoriametrics") {
        return;
    }
    let victoria = VictoriaMetrics::holding(&two_days());
    let import = |site: &Site, address: &str, from: &str, to: &str| {
        let what = format!("--url {address} --from {from} --to {to} --cluster k8s --pod-label team");
        site.ok(&format!("import metrics --format prometheus {what} --output json"))
    };
    let site = Site::new();
    import(&site, &victoria.url(), "2026-03-01", "2026-03-03");
    assert_two_days(&site);
    let as_it_was = books(&site);
    let again = import(&site, &victoria.url(), "2026-03-01", "2026-03-03");
    assert!(again.contains("\"booked\":0,") && again.contains("\"superseded\":0,"), "{again}");
    import(&site, &victoria.url(), "2026-03-01T03:30", "2026-03-02T12:00");
    assert_eq!(books(&site), as_it_was);
    // A site that moved from one to the other asks both.
    if let Some(prometheus) = prometheus("two_days_of_a_real_victoriametrics") {
        let moved = Site::new();
        import(&moved, &prometheus.url(), "2026-03-01", "2026-03-01T05:30");
        import(&moved, &victoria.url(), "2026-03-01T05:30", "2026-03-03");
        assert_eq!(books(&moved), as_it_was);
    }
    let bad = site
        .run(&format!("import metrics --url {} --from 2026-03-01 --to 2026-03-02 --matchers cluster=", victoria.url()));
    assert_eq!(bad.code, Some(2), "{}", bad.err);
    assert!(bad.err.contains("prometheus refused"), "{}", bad.err);
}

#[test]
fn what_prometheus_refuses_is_an_error_that_names_the_query_and_books_nothing() {
    let Some(prometheus) = prometheus("what_prometheus_refuses") else { return };
    let site = Site::new();
    let answer = site.run(&format!(
        "import metrics --url {} --from 2026-03-01 --to 2026-03-02 --matchers cluster=",
        prometheus.url()
    ));
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    assert!(
        answer.err.contains("prometheus refused")
            && answer.err.contains("avg_over_time(DCGM_FI_PROF_SM_ACTIVE{cluster=}[60s])"),
        "{}",
        answer.err
    );
    assert!(answer.err.contains("bad_data"), "{}", answer.err);
    assert!(!site.ledger().join("samples").exists());
    let nobody = site.run(&format!("import metrics --url {} --from 2025-03-01 --to 2025-03-02", prometheus.url()));
    assert!(nobody.code == Some(0) && nobody.err.contains("no metric of a card"), "{}", nobody.err);
}

/// Answers what it is told to, in turn, then always the last; keeps what it was asked.
fn answering(answers: Vec<&'static str>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut piece) {
                    Ok(read) if read > 0 => request.extend_from_slice(&piece[..read]),
                    _ => break,
                }
            }
            kept.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
            _ = stream.write_all(answers[n.min(answers.len() - 1)].as_bytes());
        }
    });
    (port, asked)
}

const NOTHING: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 63\r\n\r\n{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}";
const BUSY: &str =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const MANY: &str = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const NOT_YOU: &str = "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_server_that_is_busy_is_asked_again_and_who_asks_is_told() {
    let site = Site::new();
    let (port, asked) = answering(vec![BUSY, MANY, NOTHING]);
    let token = site.file("token", "t0ken\n");
    let import =
        format!("import metrics --url http://127.0.0.1:{port} --from 2026-03-01 --to 2026-03-02 --token-file {token}");
    let answer = site.run(&import);
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let requests = asked.lock().unwrap().clone();
    assert!(
        requests.iter().all(|request| request.to_ascii_lowercase().contains("authorization: bearer t0ken")),
        "{requests:?}"
    );
    let of = |text: &str| requests.iter().filter(|request| request.contains(text)).count();
    let first = of("DCGM_FI_PROF_SM_ACTIVE")
        + of("DCGM_FI_PROF_SM_UTIL_RATIO")
        + of("DCGM_FI_PROF_GR_ENGINE_ACTIVE")
        + of("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO");
    assert_eq!(first, 4 * 2 + 2, "four questions of two ranges, two of them asked again");

    let (port, asked) = answering(vec![NOT_YOU]);
    let password = site.file("password", "pass word\n");
    let answer = site.run(&format!("import metrics --url http://127.0.0.1:{port} --from 2026-03-01 --to 2026-03-02 --user ann --password-file {password}"));
    assert!(answer.code == Some(2) && answer.err.contains("answers 401"), "{}", answer.err);
    // base64 of "ann:pass word".
    assert!(asked.lock().unwrap()[0].contains("Basic YW5uOnBhc3Mgd29yZA=="));
}

/// R05: nobody answers. That is an error, and never a time in which nothing happened.
#[test]
fn r05_a_prometheus_that_cannot_be_reached_is_an_error_and_not_an_empty_answer() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let site = Site::new();
    let answer = site.run(&format!("import metrics --url http://127.0.0.1:{port} --from 2026-03-01 --to 2026-03-02"));
    assert_eq!(answer.code, Some(3), "{}", answer.err);
    assert!(answer.err.contains("gives no answer") && answer.err.contains("DCGM_FI_PROF_SM_ACTIVE"), "{}", answer.err);
    assert!(!site.ledger().join("samples").exists());
}

/// Killed at any moment of its booking, an import is in the books as a whole or not at all once somebody looks.
#[test]
fn an_import_that_is_killed_leaves_nothing_half() {
    let whole = Site::new();
    let text: String =
        (0..200).map(|n| format!("2026/03/02 {:02}:{:02}:00.000, 0, GPU-{}, 40 %\n", n / 60, n % 60, n % 3)).collect();
    let import = |site: &Site| {
        let log = site.file("log.csv", LOG.to_owned() + &text);
        let mut command = site.command();
        command.args([
            "import",
            "metrics",
            &log,
            "--format",
            "nvidia-smi-csv",
            "--node",
            "n1",
            "--cluster",
            "lab",
            "--zone",
            "UTC",
        ]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let count = |site: &Site| {
        let rows = |table: &str| {
            let there = site.ledger().join(table).exists();
            if there {
                site.sql(&format!("select count(*) as n from {table}")).only("n").to_owned()
            } else {
                "0".to_owned()
            }
        };
        (rows("samples"), rows("devices"))
    };
    let began = Instant::now();
    assert!(import(&whole).status().unwrap().success());
    let took = began.elapsed();
    let complete = count(&whole);
    assert_eq!(complete, ("200".to_owned(), "6".to_owned()));
    let mut was_whole = false;
    for part in 1..=8u32 {
        let site = Site::new();
        site.ok("init --zone UTC");
        let mut child = import(&site).spawn().unwrap();
        std::thread::sleep(took * part / 8);
        _ = child.kill();
        _ = child.wait();
        let found = {
            site.ok("verify");
            count(&site)
        };
        assert!(found == complete || found == ("0".to_owned(), "0".to_owned()), "killed after {part}/8: {found:?}");
        was_whole |= found == complete;
        assert!(import(&site).status().unwrap().success());
        assert_eq!(count(&site), complete);
        assert!(std::fs::read_dir(site.ledger().join("importing")).unwrap().next().is_none());
    }
    assert!(was_whole, "at least the last was done");
}

/// The examples of the documentation, as they stand there.
#[test]
fn the_table_of_the_documentation_is_imported_by_its_map() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics-import.md")).unwrap();
    let block = |kind: &str| {
        let (_, rest) = page.split_once(&format!("```{kind}\n")).unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    let site = Site::new();
    let (table, map) = (site.file("busy.csv", block("csv")), site.file("site.toml", block("toml")));
    let counts = site.ok(&format!("import metrics {table} --map {map} --output json"));
    assert!(counts.starts_with("{\"read\":2,") && counts.contains("\"quarantined\":0"), "{counts}");
    let rows = site.sql_text("select ts, sm_active_pct, power_mw, energy_mj from samples order by ts");
    // 1772323260 is 2026-03-01T00:01:00Z; 0.004 kWh = 14,400 J; the first has no counter to compare with: 250 W × 60 s.
    let rows: Vec<&str> = rows.lines().skip(1).map(|row| row.split_once(',').unwrap().1).collect();
    assert_eq!(rows, ["50.000,250000,15000000", "60.000,260000,14400000"]);
    assert_eq!(site.report("usage --by user").only("user"), "ann");
}
