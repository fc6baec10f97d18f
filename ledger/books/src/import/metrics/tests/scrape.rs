use super::super::scrape::{Scrape, read};
use super::super::{MetricsError, Telemetry};
use super::*;
use cardhour_domain::{CardShare, HolderSource, Milliwatts, UseBasis};

fn told(scrapes: &[(i64, &str)]) -> Telemetry {
    let scrapes: Vec<_> = scrapes
        .iter()
        .map(|(s, text)| Scrape { text: text.as_bytes(), at: Some(Timestamp::from_unix_s(*s)) })
        .collect();
    of(read(&scrapes, &setting()).unwrap())
}

fn of_device<'t>(told: &'t Telemetry, id: &str) -> &'t Sample {
    told.samples.iter().find(|sample| sample.device_uuid == id).unwrap_or_else(|| panic!("{id}: {:?}", told.samples))
}

const CUT: &str = r#"
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",Hostname="h1",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb",modelName="NVIDIA A100"} 0
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-a",Hostname="h1",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb",modelName="NVIDIA A100",pod="train-0",namespace="vision",container="main"} 0.875
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-a",Hostname="h1",GPU_I_ID="2",GPU_I_PROFILE="4g.40gb",modelName="NVIDIA A100"} 0.250000
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",Hostname="h1",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb",modelName="NVIDIA A100"} 212.345000
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",Hostname="h1",GPU_I_ID="2",GPU_I_PROFILE="4g.40gb",modelName="NVIDIA A100"} 212.345000
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",Hostname="h1",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb",modelName="NVIDIA A100"} 1000
"#;

#[test]
fn c02_an_instance_is_as_busy_as_its_engine_and_the_boards_power_counts_once() {
    let told = told(&[(1_000, CUT), (1_030, CUT)]);
    let slice = of_device(&told, "MIG-GPU-a/1/0");
    assert_eq!(slice.sm_active_pct, Reading::Seen(Percent::from_thousandths(87_500).unwrap()));
    assert_eq!((slice.use_basis, &*slice.node), (UseBasis::Gpm, "h1"));
    assert_eq!(slice.power_mw, missing(Gap::NotSupported));
    assert_eq!(of_device(&told, "MIG-GPU-a/2/0").sm_active_pct, pct(25));
    let powers: Vec<_> = told.samples.iter().filter_map(|sample| sample.power_mw.seen()).collect();
    assert_eq!(powers, [Milliwatts(212_345); 2], "once for each of two scrapes");
    let seventh = |n| CardShare::from_fraction(n, 7).unwrap();
    let shares: Vec<_> = told.devices.iter().map(|device| (&*device.device_uuid, device.share)).collect();
    assert_eq!(shares, [("GPU-a", CardShare::CARD), ("MIG-GPU-a/1/0", seventh(3)), ("MIG-GPU-a/2/0", seventh(4))]);
    // K04: the owner is of the instance.
    let [pod] = &told.observations[..] else { panic!("{:?}", told.observations) };
    assert_eq!(
        (&*pod.device_uuid, &*pod.holder.job_id, pod.source),
        ("MIG-GPU-a/1/0", "vision/train-0", HolderSource::Kubelet)
    );
    assert_eq!((pod.share, pod.owner.project.as_deref()), (Some(seventh(3)), Some("vision")));
    assert_eq!(slice.attempt_key, Some(pod.holder.key()));
}

#[test]
fn c02_an_instance_of_which_only_the_classic_utilization_is_told_is_unseen() {
    let told = told(&[(1_000, r#"DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a",GPU_I_ID="1",GPU_I_PROFILE="1g.10gb"} 0"#)]);
    assert_eq!(of_device(&told, "MIG-GPU-a/1/0").sm_active_pct, missing(Gap::NotSupported));
}

#[test]
fn c01_a_blank_is_no_number_and_does_not_hide_what_else_was_read() {
    let text =
        "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\"} 9223372036854775794\nDCGM_FI_DEV_POWER_USAGE{UUID=\"GPU-a\"} 71.5\n";
    let told = told(&[(1_000, text)]);
    let sample = of_device(&told, "GPU-a");
    assert_eq!(
        (sample.sm_active_pct, sample.power_mw),
        (missing(Gap::NotSupported), Reading::Seen(Milliwatts(71_500)))
    );
}

#[test]
fn c04_an_engine_that_stands_still_while_kernels_run_is_suspect() {
    let text = "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\"} 100\nDCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID=\"GPU-a\"} 0.000000\n";
    assert_eq!(told(&[(1_000, text)]).samples[0].sm_active_pct, missing(Gap::Implausible));
}

#[test]
fn r22_pod_is_the_exporter_where_the_scrape_pushed_the_owner_aside() {
    let text = r#"
DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a",pod="metrics-x7",namespace="ops",container="c",exported_pod="train-0",exported_namespace="vision"} 50
DCGM_FI_DEV_GPU_UTIL{UUID="GPU-b",pod="metrics-x7",namespace="ops",container="c"} 0
"#;
    let told = told(&[(1_000, text)]);
    let owners: Vec<_> = told.observations.iter().map(|o| (&*o.card_uuid, &*o.holder.job_id)).collect();
    assert_eq!(owners, [("GPU-a", "vision/train-0")]);
    assert!(told.notes.iter().any(|note| note.contains("honor_labels")), "{:?}", told.notes);
}

#[test]
fn k06_the_exporters_own_pod_is_no_owner() {
    let text = r#"DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a",pod="nvidia-dcgm-exporter-abcde",namespace="gpu-operator",container="nvidia-dcgm-exporter"} 0"#;
    let told = told(&[(1_000, text)]);
    assert_eq!(told.observations, []);
    assert!(told.notes.iter().any(|note| note.contains("the exporter itself")), "{:?}", told.notes);
}

#[test]
fn k05_an_owner_ends_with_the_last_scrape_that_names_it() {
    let held = r#"DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a",pod="p",namespace="ns",container="c"} 50"#;
    let free = r#"DCGM_FI_DEV_GPU_UTIL{UUID="GPU-a",pod="",namespace="",container=""} 0"#;
    let told = told(&[(1_000, held), (1_030, held), (1_060, free), (1_090, free)]);
    let [pod] = &told.observations[..] else { panic!("{:?}", told.observations) };
    assert_eq!((pod.during.start(), pod.during.end()), (Timestamp::from_unix_s(970), Timestamp::from_unix_s(1_030)));
    assert_eq!(seconds(&told.samples), 120);
}

#[test]
fn two_jobs_of_a_prolog_map_both_hold_the_card_and_its_values_count_once() {
    let text = "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\",hpc_job=\"41\"} 50\nDCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\",hpc_job=\"42\"} 50\n";
    let told = told(&[(1_000, text)]);
    assert_eq!((told.samples.len(), told.samples[0].attempt_key.clone()), (1, None));
    let jobs: Vec<_> = told.observations.iter().map(|o| (&*o.holder.job_id, o.source, o.share)).collect();
    assert_eq!(jobs, [("41", HolderSource::PrologMap, None), ("42", HolderSource::PrologMap, None)]);
}

#[test]
fn a_timestamp_in_the_text_goes_before_the_scrapes_and_a_text_without_either_is_refused() {
    let text = "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\"} 50 1772323200000\nbroken{ 1\nDCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\"} 51 -5\n";
    let read_at = |text: &str| read(&[Scrape { text: text.as_bytes(), at: None }], &setting());
    let told = of(read_at(text).unwrap());
    assert_eq!(told.samples[0].during.end(), at("2026-03-01T00:00:00Z"));
    assert_eq!(told.rejected.iter().map(|row| row.line).collect::<Vec<_>>(), [2, 3]);
    let open_metrics = "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\"} 50 1772323200.0\n# EOF\n";
    assert_eq!(of(read_at(open_metrics).unwrap()).samples[0].during.end(), at("2026-03-01T00:00:00Z"));
    let refused = read_at("\nDCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\"} 50\n");
    assert_eq!(refused.unwrap_err(), MetricsError::NoTime { scrape: 0, line: 2 });
}

/// The report's node has 16 instances, 13 with a monitor; here three, one without.
#[test]
fn c07_an_instance_without_a_monitor_is_there_and_unseen() {
    let of = |metric: &str, id: u8, value: &str| {
        format!(
            "{metric}{{UUID=\"GPU-a\",Hostname=\"h1\",GPU_I_ID=\"{id}\",GPU_I_PROFILE=\"1g.10gb\",modelName=\"NVIDIA A100\"}} {value}\n"
        )
    };
    let used: String = (1..=3).map(|id| of("DCGM_FI_DEV_FB_USED", id, "1000")).collect();
    let active: String = (1..=2).map(|id| of("DCGM_FI_PROF_GR_ENGINE_ACTIVE", id, "0.5")).collect();
    let text = used + &active;
    let told = told(&[(1_000, &text)]);
    let busy = |id: u8| of_device(&told, &format!("MIG-GPU-a/{id}/0")).sm_active_pct;
    assert_eq!([busy(1), busy(2)], [pct(50); 2]);
    assert!(busy(3).seen().is_none(), "its coverage is 0, and its use isn't 0 %");
    let shares: Vec<_> = told.devices.iter().filter(|d| d.device_uuid != d.card_uuid).map(|d| d.share).collect();
    assert_eq!(shares, [CardShare::from_fraction(1, 7).unwrap(); 3]);
}
