use super::super::smi_log::read;
use super::super::{MetricsError, Setting, Telemetry};
use super::*;
use cardhour_domain::{EnergyBasis, Millijoules, Milliwatts, SampleSource, UseBasis, Zone};

const HEAD: &str = "timestamp, uuid, utilization.gpu [%], memory.used [MiB], power.draw [W]\n";

fn log(rows: &str) -> Telemetry {
    of(read(format!("{HEAD}{rows}").as_bytes(), None, &setting()).unwrap())
}

/// Rows of a card at seconds of 2026-03-01 00:xx, busy at 50 %, 1,000 MiB, 100.25 W.
fn rows(seconds: &[i64]) -> String {
    let row = |s: &i64| format!("2026/03/01 00:{:02}:{:02}.000, GPU-1, 50 %, 1000 MiB, 100.25 W\n", s / 60, s % 60);
    seconds.iter().map(row).collect()
}

#[test]
fn a_row_tells_of_the_time_since_the_row_before() {
    let told = log(&rows(&[10, 20, 30, 40]));
    // The first counts for one step: the median distance, 10 s.
    assert_eq!(stretches(&told.samples), [(0, 10), (10, 20), (20, 30), (30, 40)]);
    let sample = &told.samples[1];
    assert_eq!(sample.sm_active_pct, pct(50));
    assert_eq!((sample.use_basis, sample.source), (UseBasis::DutyCycle, SampleSource::NvidiaSmi));
    assert_eq!(sample.mem_used_bytes, Reading::Seen(1_048_576_000));
    assert_eq!(sample.power_mw, Reading::Seen(Milliwatts(100_250)));
    // 100.25 W × 10 s = 1,002.5 J.
    assert_eq!(sample.energy_mj, Reading::Seen(Millijoules(1_002_500)));
    assert_eq!(sample.energy_basis, EnergyBasis::Power);
    assert_eq!(sample.temperature_c, missing(Gap::NotRecorded));
    assert_eq!(sample.pcie_bytes, missing(Gap::NotRecorded));
}

#[test]
fn m20_a_hole_longer_than_three_steps_is_unseen_and_a_shorter_one_is_carried() {
    // 30 s after 20 is three steps; 31 s after 50 is more.
    let told = log(&rows(&[0, 10, 20, 50, 81, 91, 101]));
    assert_eq!(stretches(&told.samples), [(86_390, 0), (0, 10), (10, 20), (20, 50), (71, 81), (81, 91), (91, 101)]);
    // Seven rows: 10 s each but the one of 30.
    assert_eq!(seconds(&told.samples), 90);
}

/// A row every five seconds, a hole of two minutes, the same again, and then, started anew, a row a minute.
#[test]
fn m20_a_log_that_was_started_anew_with_another_step_has_both() {
    let every_five: Vec<i64> = (1..=20).chain(44..=63).map(|n| n * 5).collect();
    let every_minute: Vec<i64> = (1..=50).map(|n| 63 * 5 + n * 60).collect();
    let told = log(&rows(&[every_five, every_minute].concat()));
    // Each of the forty tells of five seconds, the first after the hole as well, and each of the fifty of a minute.
    assert_eq!(seconds(&told.samples), 40 * 5 + 50 * 60);
    assert!(stretches(&told.samples).contains(&(215, 220)));
}

#[test]
fn c11_a_field_that_cannot_be_read_is_missing_and_the_others_are_kept() {
    let told = log("2026/03/01 00:00:10.000, GPU-1, [N/A], 1000 MiB, 100.25 W\n\
         2026/03/01 00:00:20.000, GPU-1, 50 %, [Unknown Error], [GPU is lost]\n");
    assert_eq!(told.rejected, []);
    let [first, second] = &told.samples[..] else { panic!("{:?}", told.samples) };
    assert_eq!(first.sm_active_pct, missing(Gap::NotSupported));
    assert_eq!(first.power_mw, Reading::Seen(Milliwatts(100_250)));
    assert_eq!(second.sm_active_pct, pct(50));
    assert_eq!(second.mem_used_bytes, missing(Gap::DriverError));
    assert_eq!(second.power_mw, missing(Gap::CardLost));
}

#[test]
fn c13_a_card_with_mig_has_no_utilization_and_it_is_said_what_to_record() {
    let text = "timestamp, uuid, utilization.gpu [%], mig.mode.current\n\
                2026/03/01 00:00:10.000, GPU-1, [N/A], Enabled\n";
    let told = of(read(text.as_bytes(), None, &setting()).unwrap());
    assert_eq!(told.samples[0].sm_active_pct, missing(Gap::NotSupported));
    assert_eq!(told.devices[0].mig_mode.as_deref(), Some("enabled"));
    assert!(told.notes.iter().any(|note| note.contains("DCGM_FI_PROF_GR_ENGINE_ACTIVE")), "{:?}", told.notes);
}

#[test]
fn c16_a_card_without_energy_counter_has_an_estimate_that_says_so_and_without_power_none() {
    let told = log(&rows(&[10, 20]));
    assert!(told.samples.iter().all(|sample| sample.energy_basis == EnergyBasis::Power));
    let text = "timestamp, uuid, utilization.gpu [%]\n2026/03/01 00:00:10.000, GPU-1, 5 %\n";
    let told = of(read(text.as_bytes(), None, &setting()).unwrap());
    assert_eq!(told.samples[0].energy_mj, missing(Gap::NotRecorded));
}

#[test]
fn a_counter_of_energy_goes_before_power() {
    let text = "timestamp, uuid, power.draw [W], total_energy_consumption [mJ]\n\
                2026/03/01 00:00:10.000, GPU-1, 100.00 W, 5000000 mJ\n\
                2026/03/01 00:00:20.000, GPU-1, 100.00 W, 5990000 mJ\n\
                2026/03/01 00:01:20.000, GPU-1, 100.00 W, 9000000 mJ\n";
    let setting = Setting { step_ms: Some(10_000), ..setting() };
    let told = Telemetry::of([read(text.as_bytes(), None, &setting).unwrap()], &setting);
    let energy: Vec<_> = told.samples.iter().map(|s| (s.energy_mj, s.energy_basis)).collect();
    // The first has nothing to compare with, the third comes after a hole: both by power, 100 W × 10 s = 1,000 J.
    assert_eq!(
        energy,
        [
            (Reading::Seen(Millijoules(1_000_000)), EnergyBasis::Power),
            (Reading::Seen(Millijoules(990_000)), EnergyBasis::Counter),
            (Reading::Seen(Millijoules(1_000_000)), EnergyBasis::Power),
        ]
    );
}

#[test]
fn a_row_of_another_number_of_fields_and_one_that_breaks_off_are_rejected_with_their_line() {
    let text = format!(
        "{}Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.\n{}",
        rows(&[10]),
        rows(&[20])
    );
    let told = log(&format!("{text}2026/03/01 00:00:30.000, GPU-1, 50 %, 10"));
    let lines: Vec<_> = told.rejected.iter().map(|row| row.line).collect();
    assert_eq!(lines, [3, 5]);
    assert!(told.rejected[1].reason.contains("cut off"), "{}", told.rejected[1].reason);
    assert_eq!(told.samples.len(), 2);
    // Cut inside of the last value, with all fields there: 100.25 W would have become 10.
    let told = log(&format!("{}2026/03/01 00:00:20.000, GPU-1, 50 %, 1000 MiB, 10", rows(&[10])));
    assert_eq!((told.samples.len(), told.rejected[0].line), (1, 3));
}

/// nvidia-smi ends each row with its line: without units nothing else tells 100.25 from its beginning.
#[test]
fn a_last_row_that_is_not_ended_is_believed_only_where_it_is_seen_to_be_whole() {
    let of = |last: &str, rest: &str| {
        let text = format!("timestamp, uuid, utilization.gpu, {last}\n2026/03/01 00:00:10.000, GPU-1, 50, {rest}");
        let told = of(read(text.as_bytes(), None, &setting()).unwrap());
        (told.samples.len(), told.rejected.len())
    };
    let second = "2026/03/01 00:00:20.000, GPU-1, 50, ";
    assert_eq!(of("power.draw", &format!("100.25\n{second}10")), (1, 1));
    assert_eq!(of("power.draw", &format!("100.25\n{second}10\n")), (2, 0));
    assert_eq!(of("power.draw", &format!("100.25\n{second}[N/A]")), (2, 0));
    assert_eq!(of("power.draw", &format!("100.25\n{second}[N/")), (1, 1));
    assert_eq!(of("power.draw [W]", &format!("100.25 W\n{second}99.5 W")), (2, 0));
    assert_eq!(of("name", &format!("NVIDIA H200\n{second}NVIDIA H2")), (1, 1));
    assert_eq!(of("name", &format!("NVIDIA H200\n{second}NVIDIA H200")), (2, 0));
}

#[test]
fn a_log_of_windows_is_read_as_any() {
    let text = format!("\u{feff}{HEAD}{}", rows(&[10, 20])).replace('\n', "\r\n");
    let told = of(read(text.as_bytes(), None, &setting()).unwrap());
    assert_eq!((told.samples, told.rejected), (log(&rows(&[10, 20])).samples, vec![]));
}

#[test]
fn logs_put_end_to_end_are_read_through_their_headers_even_of_another_order() {
    let other = "timestamp, power.draw [W], uuid, memory.used [MiB], utilization.gpu [%]\n\
                 2026/03/01 00:00:30.000, 200.00 W, GPU-1, 7 MiB, 9 %\n";
    let told = log(&format!("{}{HEAD}{}{other}", rows(&[10]), rows(&[20])));
    assert_eq!((told.samples.len(), told.rejected.len()), (3, 0));
    assert_eq!((told.samples[2].sm_active_pct, told.samples[2].power_mw), (pct(9), Reading::Seen(Milliwatts(200_000))));
}

#[test]
fn a_log_without_header_and_units_is_read_by_its_list_of_fields() {
    let fields = ["timestamp", "gpu_uuid", "utilization.gpu", "memory.used", "power.draw"].map(str::to_owned);
    let text = "2026/03/01 00:00:10.000, GPU-1, 50, 1000, 100.25\n2026/03/01 00:00:20.000, GPU-1, 50, 1000, 100.25\n";
    let told = of(read(text.as_bytes(), Some(&fields), &setting()).unwrap());
    assert_eq!(told.samples, log(&rows(&[10, 20])).samples);
}

#[test]
fn a_card_that_is_known_by_its_index_alone_needs_a_list() {
    let text =
        "timestamp, index, utilization.gpu [%]\n2026/03/01 00:00:10.000, 0, 5 %\n2026/03/01 00:00:10.000, 1, 6 %\n";
    let refused = read(text.as_bytes(), None, &setting());
    assert!(matches!(refused, Err(MetricsError::Missing { what: "which card a row is of", .. })), "{refused:?}");
    let mut known = setting();
    known.cards.insert("0".to_owned(), "GPU-a".into());
    let told = Telemetry::of([read(text.as_bytes(), None, &known).unwrap()], &known);
    assert_eq!(told.samples[0].card_uuid, "GPU-a");
    assert_eq!((told.rejected[0].line, &*told.rejected[0].field), (3, "card_uuid"));
    let by_bus = "timestamp, pci.bus_id, utilization.gpu [%]\n2026/03/01 00:00:10.000, 00000000:3B:00.0, 5 %\n";
    known.cards.insert("00000000:3b:00.0".to_owned(), "GPU-b".into());
    let told = Telemetry::of([read(by_bus.as_bytes(), None, &known).unwrap()], &known);
    assert_eq!(told.samples[0].card_uuid, "GPU-b");
}

#[test]
fn times_are_of_the_zone_that_is_given() {
    let shanghai = Setting { zone: Zone::parse("Asia/Shanghai").unwrap(), ..setting() };
    let told = Telemetry::of([read(format!("{HEAD}{}", rows(&[10])).as_bytes(), None, &shanghai).unwrap()], &shanghai);
    assert_eq!(told.samples[0].during.end(), at("2026-02-28T16:00:10Z"));
    // Alone in the world, it vouches for a second.
    assert_eq!(told.samples[0].during.length_ms(), 1_000);
}

#[test]
fn busy_without_memory_and_idle_at_full_power_are_no_readings() {
    let text = "timestamp, uuid, utilization.gpu [%], memory.used [MiB], power.draw [W], power.limit [W]\n\
                2026/03/01 00:00:10.000, GPU-1, 100 %, 0 MiB, 144.97 W, 350.00 W\n\
                2026/03/01 00:00:20.000, GPU-1, 0 %, 9000 MiB, 340.00 W, 350.00 W\n\
                2026/03/01 00:00:30.000, GPU-1, 0 %, 0 MiB, 35.00 W, 350.00 W\n";
    let told = of(read(text.as_bytes(), None, &setting()).unwrap());
    let busy: Vec<_> = told.samples.iter().map(|sample| sample.sm_active_pct).collect();
    assert_eq!(busy, [missing(Gap::Implausible), missing(Gap::Implausible), pct(0)]);
    assert!(told.notes[0].starts_with("2 samples contradict themselves"), "{:?}", told.notes);
}

#[test]
fn a_device_is_described_once_and_again_when_it_changes() {
    let text = "timestamp, uuid, name, power.limit [W]\n\
                2026/03/01 00:00:10.000, GPU-1, NVIDIA L40S, 350.00 W\n\
                2026/03/01 00:00:20.000, GPU-1, [GPU is lost], [GPU is lost]\n\
                2026/03/01 00:00:30.000, GPU-1, NVIDIA L40S, 300.00 W\n";
    let told = of(read(text.as_bytes(), None, &setting()).unwrap());
    let seen: Vec<_> = told.devices.iter().map(|device| (device.at, device.power_limit_mw)).collect();
    // A row tells of the ten seconds before it, in which the card was there.
    assert_eq!(seen, [(at("2026-03-01T00:00:00Z"), Some(350_000)), (at("2026-03-01T00:00:20Z"), Some(300_000))]);
}
