use super::super::metric::find;
use super::super::prometheus::{Answers, Asks, MOST_POINTS, Query, queries, ranges};
use super::super::{MetricsError, Setting, Telemetry};
use super::*;
use cardhour_domain::{EnergyBasis, Interval, Millijoules};
use proptest::prelude::*;

fn query(asks: Asks) -> Query {
    queries(60, "").into_iter().find(|query| query.asks == asks).unwrap()
}

fn metric(name: &str) -> Query {
    query(Asks::Metric(find(name).unwrap()))
}

/// A matrix of series, each its labels as JSON and its points as (minute, value).
fn matrix(series: &[(&str, &[(i64, &str)])]) -> String {
    let point = |(minute, value): &(i64, &str)| format!("[{},\"{value}\"]", minute * 60);
    let one = |(labels, points): &(&str, &[(i64, &str)])| {
        let points: Vec<_> = points.iter().map(point).collect();
        format!("{{\"metric\":{{{labels}}},\"values\":[{}]}}", points.join(","))
    };
    let all: Vec<_> = series.iter().map(one).collect();
    format!("{{\"status\":\"success\",\"data\":{{\"resultType\":\"matrix\",\"result\":[{}]}}}}", all.join(","))
}

fn told_with(setting: &Setting, answers: &[(Query, String)]) -> Telemetry {
    let mut gathered = Answers::new(setting);
    for (query, answer) in answers {
        gathered.add(query, answer.as_bytes()).unwrap();
    }
    Telemetry::of([gathered.readout()], setting)
}

fn told(answers: &[(Query, String)]) -> Telemetry {
    told_with(&Setting { step_ms: Some(60_000), ..setting() }, answers)
}

const CARD: &str = r#""UUID":"GPU-a","Hostname":"h1","instance":"h1:9400""#;

#[test]
fn rates_are_asked_for_as_means_and_counters_as_last_values() {
    let all = queries(60, r#"cluster="a""#);
    let has = |expression: &str| assert!(all.iter().any(|query| query.expression == expression), "{expression}");
    has(r#"avg_over_time(DCGM_FI_DEV_GPU_UTIL{cluster="a"}[60s])"#);
    has(r#"avg_over_time(DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO{cluster="a"}[60s])"#);
    has(r#"avg_over_time(nvidia_smi_utilization_gpu_ratio{cluster="a"}[60s])"#);
    has(r#"last_over_time(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{cluster="a"}[60s])"#);
    has(
        r#"max by (namespace, pod, uid, node, exported_namespace, exported_pod, exported_node) (last_over_time(kube_pod_status_phase{cluster="a",phase=~"Succeeded|Failed"}[60s])) == 1"#,
    );
    assert_eq!(metric("DCGM_FI_DEV_GPU_UTIL").expression, "avg_over_time(DCGM_FI_DEV_GPU_UTIL[60s])");
}

#[test]
fn m14_while_prometheus_was_down_nothing_is_seen_and_what_was_seen_keeps_its_rate() {
    // 2.0 of something over 30 minutes, 10 of them without Prometheus: here 80 % busy, seen for 20 of 30 minutes = 67 %.
    let points: Vec<_> = (1..=30).filter(|minute| !(11..=20).contains(minute)).map(|minute| (minute, "80")).collect();
    let told = told(&[(metric("DCGM_FI_DEV_GPU_UTIL"), matrix(&[(CARD, &points)]))]);
    assert_eq!(seconds(&told.samples), 20 * 60);
    assert!(told.samples.iter().all(|sample| sample.sm_active_pct == pct(80)));
}

#[test]
fn k23_two_replicas_that_scrape_one_card_count_once() {
    let replica = |name: &str| format!(r#"{CARD},"prometheus_replica":"{name}""#);
    let (a, b) = (replica("a"), replica("b"));
    let answer = matrix(&[(&a, &[(1, "80"), (2, "80"), (3, "80")]), (&b, &[(1, "70"), (2, "70"), (4, "70")])]);
    let power = matrix(&[(&b, &[(1, "100"), (2, "100"), (3, "100")])]);
    let told = told(&[(metric("DCGM_FI_DEV_GPU_UTIL"), answer), (metric("DCGM_FI_DEV_POWER_USAGE"), power)]);
    // Four instants of b, three of a: where b has no value, a's stands.
    let busy: Vec<_> = told.samples.iter().map(|sample| sample.sm_active_pct).collect();
    assert_eq!(busy, [pct(70), pct(70), pct(80), pct(70)]);
    assert_eq!(seconds(&told.samples), 240);
    // 100 W × 60 s once a minute, and none in the fourth.
    let energy: Vec<_> = told.samples.iter().filter_map(|sample| sample.energy_mj.seen()).collect();
    assert_eq!(energy, [Millijoules(6_000_000); 3]);
}

#[test]
fn m15_two_kube_state_metrics_tell_of_one_pod_once() {
    let held = format!(r#"{CARD},"pod":"p","namespace":"ns","container":"c""#);
    let pod = |instance: &str| format!(r#""namespace":"ns","pod":"p","uid":"u1","instance":"{instance}""#);
    let (one, two) = (pod("ksm-0:8080"), pod("ksm-1:8080"));
    let points: &[(i64, &str)] = &[(1, "1"), (2, "1")];
    let told = told(&[
        (metric("DCGM_FI_DEV_GPU_UTIL"), matrix(&[(&held, &[(1, "50"), (2, "50")])])),
        (query(Asks::PodInfo), matrix(&[(&one, points), (&two, points)])),
    ]);
    let [only] = &told.observations[..] else { panic!("{:?}", told.observations) };
    assert_eq!((&*only.holder.run, only.during.length_ms()), ("uidu1", 120_000));
}

#[test]
fn k12_a_pod_of_the_same_name_is_another_life() {
    let held = format!(r#"{CARD},"pod":"db-0","namespace":"ns","container":"c""#);
    let told = told(&[
        (metric("DCGM_FI_DEV_GPU_UTIL"), matrix(&[(&held, &[(1, "50"), (2, "50"), (3, "50"), (4, "50")])])),
        (
            query(Asks::PodInfo),
            matrix(&[
                (r#""namespace":"ns","pod":"db-0","uid":"u1""#, &[(1, "1"), (2, "1")]),
                (r#""namespace":"ns","pod":"db-0","uid":"u2""#, &[(3, "1"), (4, "1")]),
            ]),
        ),
    ]);
    let lives: Vec<_> = told.observations.iter().map(|o| (&*o.holder.run, o.during.length_ms())).collect();
    assert_eq!(lives, [("uidu1", 120_000), ("uidu2", 120_000)]);
}

#[test]
fn k08_a_pod_that_is_over_holds_nothing_though_its_label_lingers() {
    let held = format!(r#"{CARD},"pod":"p","namespace":"ns","container":"c""#);
    let told = told(&[
        (metric("DCGM_FI_DEV_GPU_UTIL"), matrix(&[(&held, &[(1, "50"), (2, "0"), (3, "0")])])),
        (query(Asks::PodOver), matrix(&[(r#""namespace":"ns","pod":"p","uid":"u1""#, &[(2, "1"), (3, "1")])])),
        (
            query(Asks::PodInfo),
            matrix(&[(r#""namespace":"ns","pod":"p","uid":"u1""#, &[(1, "1"), (2, "1"), (3, "1")])]),
        ),
    ]);
    let [only] = &told.observations[..] else { panic!("{:?}", told.observations) };
    assert_eq!(only.during.end(), Timestamp::from_unix_s(60));
}

#[test]
fn r22_a_pod_that_asked_for_no_card_is_no_owner() {
    let held = format!(r#"{CARD},"pod":"agent-1","namespace":"ops","container":"c""#);
    let told = told(&[
        (metric("DCGM_FI_DEV_GPU_UTIL"), matrix(&[(&held, &[(1, "50")])])),
        (query(Asks::PodRequests), matrix(&[(r#""namespace":"vision","pod":"train""#, &[(1, "1")])])),
    ]);
    assert_eq!(told.observations, []);
    assert!(
        told.notes.iter().any(|note| note == "ops/agent-1 is not taken as an owner: it asked for no card"),
        "{:?}",
        told.notes
    );
}

/// Whether owners are pushed aside is a setting of each scrape job; another job's exporters go on naming theirs.
#[test]
fn r22_a_job_that_pushes_owners_aside_says_nothing_of_another_jobs() {
    let pushing = r#""job":"a","UUID":"GPU-a","Hostname":"h1","pod":"metrics-x","namespace":"ops","exported_pod":"p","exported_namespace":"ns""#;
    let idle = r#""job":"a","UUID":"GPU-c","Hostname":"h1","pod":"metrics-x","namespace":"ops""#;
    let honest = r#""job":"b","UUID":"GPU-b","Hostname":"h2","pod":"q","namespace":"ns""#;
    let points: &[(i64, &str)] = &[(1, "50")];
    let told =
        told(&[(metric("DCGM_FI_DEV_GPU_UTIL"), matrix(&[(pushing, points), (idle, points), (honest, points)]))]);
    let held: Vec<_> =
        told.observations.iter().map(|held| (held.card_uuid.as_str(), held.holder.job_id.as_str())).collect();
    assert_eq!(held, [("GPU-a", "ns/p"), ("GPU-b", "ns/q")]);
}

#[test]
fn labels_of_a_pod_are_kept_where_the_site_wants_them() {
    let held = format!(r#"{CARD},"pod":"p","namespace":"ns","container":"c""#);
    let labels = r#""namespace":"ns","pod":"p","label_team":"speech","label_secret":"x","label_kueue_x_k8s_io_queue_name":"gold""#;
    let setting = Setting { pod_labels: vec!["label_team".to_owned()], ..setting() };
    let told = told_with(
        &setting,
        &[
            (metric("DCGM_FI_DEV_GPU_UTIL"), matrix(&[(&held, &[(1, "50")])])),
            (query(Asks::PodLabels), matrix(&[(labels, &[(1, "1")])])),
        ],
    );
    let owner = &told.observations[0].owner;
    assert_eq!((owner.project.as_deref(), owner.queue.as_deref()), (Some("ns"), Some("gold")));
    assert_eq!(owner.labels.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(), ["label_team=speech"]);
}

#[test]
fn a_series_that_ends_is_silent_and_a_field_that_pauses_was_not_read() {
    let told = told(&[
        (metric("DCGM_FI_DEV_POWER_USAGE"), matrix(&[(CARD, &[(1, "100"), (2, "100"), (3, "NaN")])])),
        (metric("DCGM_FI_DEV_GPU_UTIL"), matrix(&[(CARD, &[(1, "50"), (3, "50")])])),
    ]);
    assert_eq!(told.samples.last().unwrap().during.end(), Timestamp::from_unix_s(180));
    let busy: Vec<_> = told.samples.iter().map(|sample| sample.sm_active_pct).collect();
    assert_eq!(busy, [pct(50), missing(Gap::CollectorDown), pct(50)]);
    assert_eq!(told.samples[2].power_mw, missing(Gap::DriverError));
    assert_eq!(told.samples[0].pcie_bytes, missing(Gap::NotRecorded));
}

#[test]
fn a_counter_counts_by_what_it_grew_and_begins_again_after_a_reset() {
    let answer = matrix(&[(CARD, &[(1, "1000000"), (2, "7000000"), (3, "2000000"), (4, "5000000")])]);
    let told = told(&[(metric("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"), answer)]);
    let energy: Vec<_> = told.samples.iter().map(|sample| sample.energy_mj).collect();
    let grew = |mj| Reading::Seen(Millijoules(mj));
    assert_eq!(energy, [missing(Gap::CollectorDown), grew(6_000_000), grew(2_000_000), grew(3_000_000)]);
    assert!(told.samples.iter().all(|sample| sample.energy_basis == EnergyBasis::Counter));
}

#[test]
fn a_mean_without_memory_at_its_end_is_believed_unless_it_is_busy_throughout() {
    let told = told(&[
        (metric("DCGM_FI_DEV_GPU_UTIL"), matrix(&[(CARD, &[(1, "60"), (2, "100")])])),
        (metric("DCGM_FI_DEV_FB_USED"), matrix(&[(CARD, &[(1, "0"), (2, "0")])])),
    ]);
    let busy: Vec<_> = told.samples.iter().map(|sample| sample.sm_active_pct).collect();
    assert_eq!(busy, [pct(60), missing(Gap::Implausible)]);
}

#[test]
fn names_of_nvidia_gpu_exporter_are_read_in_their_units() {
    let labels = r#""uuid":"df6e7a7c-7314-46f8-abc4-b88b36dcf3aa","instance":"box:9835""#;
    let told = told(&[
        (metric("nvidia_smi_utilization_gpu_ratio"), matrix(&[(labels, &[(1, "0.37")])])),
        (metric("nvidia_smi_memory_used_bytes"), matrix(&[(labels, &[(1, "1.048576e+09")])])),
    ]);
    let sample = &told.samples[0];
    assert_eq!((sample.sm_active_pct, sample.mem_used_bytes), (pct(37), Reading::Seen(1_048_576_000)));
    assert_eq!((&*sample.node, &*sample.card_uuid), ("box", "GPU-df6e7a7c-7314-46f8-abc4-b88b36dcf3aa"));
}

/// Source: VictoriaMetrics, cluster version: `isPartial` is true where a vmstorage didn't answer.
#[test]
fn an_answer_of_a_part_of_the_stores_is_an_error() {
    let whole = matrix(&[(CARD, &[(1, "50")])]);
    let setting = setting();
    let add = |is_partial: &str| {
        let answer = whole.replacen("{", &format!("{{\"isPartial\":{is_partial},"), 1);
        Answers::new(&setting).add(&metric("DCGM_FI_DEV_GPU_UTIL"), answer.as_bytes())
    };
    assert_eq!(add("false"), Ok(()));
    assert!(matches!(add("true"), Err(MetricsError::Answer { problem, .. }) if problem.contains("partial")));
}

#[test]
fn what_prometheus_refuses_is_an_error_and_not_an_empty_answer() {
    let setting = setting();
    let mut answers = Answers::new(&setting);
    let query = metric("DCGM_FI_DEV_GPU_UTIL");
    let refused = br#"{"status":"error","errorType":"bad_data","error":"exceeded maximum resolution of 11,000 points per timeseries"}"#;
    assert!(matches!(answers.add(&query, refused), Err(MetricsError::Refused { .. })));
    let vector = br#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
    assert!(matches!(answers.add(&query, vector), Err(MetricsError::Answer { .. })));
    assert!(matches!(answers.add(&query, b"<html>502"), Err(MetricsError::Answer { .. })));
}

proptest! {
    #[test]
    fn ranges_hold_every_step_once_and_never_too_many(start in 0i64..10_000_000, length in 1i64..40_000_000, step in 1u32..400, most in 1i64..20_000) {
        let s = Timestamp::from_unix_s;
        let during = Interval::new(s(start), s(start + length)).unwrap();
        let step_s = i64::from(step);
        let mut next = None;
        let mut points = 0;
        for (first, last) in ranges(during, step, most) {
            let n = last.ms_since(first) / (step_s * 1000) + 1;
            prop_assert!(n <= most.min(MOST_POINTS) && n > 0);
            prop_assert!(first.unix_ms() % (step_s * 1000) == 0);
            prop_assert!(next.is_none_or(|next| next == first));
            next = last.checked_add_ms(step_s * 1000);
            points += n;
        }
        // Steps wholly inside: between the first grid point not before the start and the last not after the end.
        let grid = ((start + length) / step_s) - (start + step_s - 1) / step_s;
        prop_assert_eq!(points, grid.max(0));
    }
}

/// A node of two cards and one pod that asked for one, told of at three instants; in the third the exporter leaves the pod out.
#[test]
fn what_nobody_holds_is_looked_at_only_where_every_pod_that_asked_for_a_card_was_seen() {
    let other = r#""UUID":"GPU-b","Hostname":"h1.example","instance":"h1:9400""#;
    let held =
        r#""UUID":"GPU-a","Hostname":"h1.example","instance":"h1:9400","pod":"p","namespace":"ns","container":"c""#;
    let plain = r#""UUID":"GPU-a","Hostname":"h1.example","instance":"h1:9400""#;
    let slurm = r#""UUID":"GPU-s","Hostname":"s1","instance":"s1:9400""#;
    let of_pod = |rest: &str| format!(r#""namespace":"ns","pod":"p","uid":"u1","node":"h1"{rest}"#);
    let (pod, asked) = (of_pod(""), of_pod(r#","resource":"nvidia_com_gpu""#));
    let waiting = r#""namespace":"ns","pod":"waits","uid":"u2""#;
    let three: &[(i64, &str)] = &[(1, "1"), (2, "1"), (3, "1")];
    let told = told(&[
        (
            metric("DCGM_FI_DEV_GPU_UTIL"),
            matrix(&[
                (held, &[(1, "50"), (2, "50")]),
                (plain, &[(3, "50")]),
                // Somebody whom Kubernetes doesn't know uses it in the second.
                (other, &[(1, "0"), (2, "60"), (3, "0")]),
                (slurm, &[(1, "0"), (2, "0"), (3, "0")]),
            ]),
        ),
        (query(Asks::PodInfo), matrix(&[(&pod, three), (waiting, three)])),
        (query(Asks::PodRequests), matrix(&[(&asked, three), (waiting, three)])),
    ]);
    let watches: Vec<_> = told
        .watches
        .iter()
        .map(|w| (&*w.card_uuid, w.during.start().unix_ms() / 1000, w.during.end().unix_ms() / 1000))
        .collect();
    assert_eq!(watches, [("GPU-a", 0, 120), ("GPU-b", 0, 60)]);
}

#[test]
fn without_kube_state_metrics_nobody_looked() {
    let held = format!(r#"{CARD},"pod":"p","namespace":"ns","container":"c""#);
    let told = told(&[(metric("DCGM_FI_DEV_GPU_UTIL"), matrix(&[(&held, &[(1, "50"), (2, "50")])]))]);
    assert_eq!((told.observations.len(), told.watches.len()), (1, 0));
}

#[test]
fn what_is_only_compared_with_makes_no_sample_and_the_next_counter_has_grown_since() {
    let points: Vec<(i64, String)> = (1..=6).map(|minute| (minute, (minute * 6_000_000).to_string())).collect();
    let points: Vec<(i64, &str)> = points.iter().map(|(minute, value)| (*minute, value.as_str())).collect();
    let answer = [(metric("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"), matrix(&[(CARD, &points)]))];
    let setting = Setting { step_ms: Some(60_000), ..setting() };
    let whole = told_with(&setting, &answer);
    let cut = told_with(&Setting { after: Some(Timestamp::from_unix_s(180)), ..setting }, &answer);
    assert_eq!(cut.samples, whole.samples[3..]);
    // Each minute 6,000 J, the fourth too: it is known what the counter was in the third.
    assert!(cut.samples.iter().all(|sample| sample.energy_mj == Reading::Seen(Millijoules(6_000_000))));
    let [device] = &cut.devices[..] else { panic!("{:?}", cut.devices) };
    assert_eq!((device.at, cut.last_seen()[0].at), (Timestamp::from_unix_s(180), Timestamp::from_unix_s(360)));
}
