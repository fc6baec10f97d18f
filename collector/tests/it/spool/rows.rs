//! Ticks with a number each, and what segments say of them.

use cardhour_collector::spool::{Spool, SpoolConfig};
use cardhour_domain::columns::Rows;
use cardhour_domain::{
    CardShare, EnergyBasis, Gap, Holder, HolderKind, HolderSource, Interval, Millijoules, Observation, Owner, Reading,
    Sample, SampleSource, SegmentName, Stream, Timestamp, UseBasis,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) const BOOT: u128 = 0xfeed_0000_0000_0000_0000_0000_0000_0001;
pub(super) const NODE: &str = "n1";
pub(super) const NOW: Timestamp = Timestamp::from_unix_s(1_900_000_000);

/// Samples in a tick.
pub(super) const DEVICES: u64 = 2;

/// Tick `number` is 15 seconds long and begins at 15 s × `number`: two samples, and a holder that had the card.
pub(super) fn tick(number: u64) -> Vec<Rows> {
    let start = Timestamp::from_unix_s(15 * i64::try_from(number).unwrap());
    let during = Interval::new(start, start.checked_add_ms(15_000).unwrap()).unwrap();
    let sample = |device: u64| Sample {
        during,
        card_uuid: "GPU-1".into(),
        device_uuid: format!("MIG-{device}").into(),
        node: NODE.into(),
        attempt_key: None,
        sm_active_pct: Reading::Missing(Gap::NotSupported),
        use_basis: UseBasis::DutyCycle,
        mem_active_pct: Reading::Missing(Gap::NotSupported),
        media_active_pct: Reading::Missing(Gap::NotSupported),
        mem_used_bytes: Reading::Seen(0),
        nvlink_bytes: Reading::Seen(0),
        pcie_bytes: Reading::Seen(0),
        power_mw: Reading::Missing(Gap::NotSupported),
        energy_mj: Reading::Seen(Millijoules(i64::try_from(number).unwrap())),
        energy_basis: EnergyBasis::Counter,
        temperature_c: Reading::Seen(40),
        source: SampleSource::Collector,
    };
    let observation = Observation {
        during,
        node: NODE.into(),
        card_uuid: "GPU-1".into(),
        device_uuid: "GPU-1".into(),
        mig_profile: None,
        share: Some(CardShare::CARD),
        source: HolderSource::Cgroup,
        holder: Holder {
            kind: HolderKind::SlurmJob,
            cluster: "lab".into(),
            job_id: "7".into(),
            shown_id: None,
            run: "b1".into(),
            started_at: None,
        },
        owner: Owner::default(),
    };
    vec![Rows::Samples((0..DEVICES).map(sample).collect()), Rows::Observations(vec![observation])]
}

pub(super) fn open(folder: &Path, seal_bytes: u64) -> Spool {
    let config = SpoolConfig { seal_bytes, ..SpoolConfig::new(folder, NODE.into()) };
    Spool::open(config, BOOT, NOW).unwrap().0
}

/// The numbers of the ticks of which a segment has rows: a number as often as it has rows of it.
pub(super) fn numbers(path: &Path, stream: Stream) -> Vec<u64> {
    let batches = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    let number = |at: Timestamp| u64::try_from(at.unix_ms() / 15_000).unwrap();
    let mut numbers = Vec::new();
    for batch in batches {
        match Rows::read(stream, &batch.unwrap()).unwrap() {
            Rows::Samples(rows) => numbers.extend(rows.iter().map(|row| number(row.during.start()))),
            // A stretch is of all ticks in it.
            Rows::Observations(rows) => {
                numbers.extend(rows.iter().flat_map(|row| number(row.during.start())..number(row.during.end())));
            }
            other => panic!("{other:?} was never appended"),
        }
    }
    numbers
}

/// Segments in a folder, by name.
pub(super) fn segments_in(folder: &Path) -> Vec<(SegmentName, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> =
        paths.filter_map(|path| Some((SegmentName::parse(path.file_name()?.to_str()?).ok()?, path))).collect();
    segments.sort();
    segments
}

/// This test binary, to run the one test `name` in a process of its own, which finds its folder in the environment.
pub(super) fn arguments_of(name: &str) -> Vec<String> {
    let binary = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    [&binary, "--exact", name, "--nocapture", "--test-threads=1"].map(ToString::to_string).to_vec()
}

pub(super) fn command(arguments: &[String], variable: &str, folder: &Path) -> Command {
    let mut command = Command::new(&arguments[0]);
    command.args(&arguments[1..]).env(variable, folder);
    command
}
