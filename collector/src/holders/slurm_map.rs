//! Map files: what Slurm's prolog wrote about who has which device.
//!
//! A folder with a file a device, called by Slurm's number of it (`2`), by number and GPU instance (`2.7`), or by UUID; each line is a job,
//! several lines share the device. The epilog removes it. It is the convention that DCGM's exporter reads; where a line has more words they are
//! `job_id restart start_epoch uid account`.

use super::aliases::{Aliases, DeviceId};
use super::gres::GresOrder;
use cardhour_domain::{Name, Timestamp};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// A file longer than that names no jobs.
const MOST_BYTES: u64 = 64 * 1024;

/// What a number in a file's name counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapNumbers {
    /// Slurm's own, as a prolog writes them from `SLURM_JOB_GPUS`.
    #[default]
    Slurm,
    /// The driver's index.
    Driver,
    /// The N of `/dev/nvidiaN`.
    Minor,
}

/// A line of a map file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapLine {
    /// The device; none where the file's name leads to none.
    pub device: Option<DeviceId>,
    /// The file's name.
    pub file: Name,
    /// The job.
    pub job_id: u64,
    /// How many jobs the file names: more than one share the device.
    pub sharers: usize,
    /// How often the job was started anew, where the line says.
    pub restarts: Option<u32>,
    /// When its run started, where the line says.
    pub started_at: Option<Timestamp>,
    /// When the line was written: the file's time, where this is its last line.
    pub written_at: Option<Timestamp>,
    /// The job's user, where the line says.
    pub uid: Option<u32>,
    /// The job's account, where the line says.
    pub account: Option<Name>,
}

/// All lines of a folder. One that isn't there is empty: the prolog makes it with the first job. Errors: it can't be read.
pub fn read(
    folder: &Path,
    numbers: MapNumbers,
    order: Option<&GresOrder>,
    aliases: &Aliases,
) -> std::io::Result<Vec<MapLine>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut lines = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        if !is_device_name(&name) {
            continue;
        }
        // An epilog may remove it between the listing and here.
        let Ok(metadata) = entry.metadata() else { continue };
        if !metadata.is_file() || metadata.len() > MOST_BYTES {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
        let written_at = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let written_at = written_at.map(|since| Timestamp::from_unix_s(since.as_secs() as i64));
        lines.extend(parse(&name, &text, written_at, device_of(&name, numbers, order, aliases)));
    }
    lines.sort_by(|a, b| (&a.file, a.job_id).cmp(&(&b.file, b.job_id)));
    Ok(lines)
}

fn parse(file: &str, text: &str, written_at: Option<Timestamp>, device: Option<DeviceId>) -> Vec<MapLine> {
    let jobs: Vec<Vec<&str>> = text.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>()).collect();
    let jobs: Vec<(u64, Vec<&str>)> =
        jobs.into_iter().filter_map(|words| Some((words.first()?.parse().ok()?, words))).collect();
    let sharers = jobs.iter().map(|(job, _)| job).collect::<std::collections::BTreeSet<_>>().len();
    let last = jobs.len().saturating_sub(1);
    let lines = jobs.into_iter().enumerate().map(|(i, (job_id, words))| MapLine {
        device: device.clone(),
        file: file.into(),
        job_id,
        sharers,
        restarts: words.get(1).and_then(|n| n.parse().ok()),
        started_at: words.get(2).and_then(|at| at.parse().ok()).filter(|at| *at > 0).map(Timestamp::from_unix_s),
        written_at: written_at.filter(|_| i == last),
        uid: words.get(3).and_then(|uid| uid.parse().ok()),
        account: words.get(4).map(|account| Name::from(*account)),
    });
    lines.collect()
}

/// Whether a file's name is one of a device: temporary files of a prolog lie in the same folder.
fn is_device_name(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.starts_with("GPU-")
        || name.starts_with("MIG-")
        || name.split_once('.').map_or(is_number(name), |(card, gi)| is_number(card) && is_number(gi))
}

fn device_of(name: &str, numbers: MapNumbers, order: Option<&GresOrder>, aliases: &Aliases) -> Option<DeviceId> {
    if let Some(device) = aliases.by_uuid(name) {
        return Some(device);
    }
    let (number, instance) = name.split_once('.').map_or((name, None), |(card, gi)| (card, Some(gi)));
    let number: u32 = number.parse().ok()?;
    let device = match numbers {
        MapNumbers::Slurm => order?.device(number as usize, aliases),
        MapNumbers::Driver => aliases.by_nvml_index(number),
        MapNumbers::Minor => aliases.by_minor(number),
    }?;
    let Some(instance) = instance else { return Some(device) };
    let minor = aliases.cards.iter().find(|card| card.card_uuid == device.card_uuid)?.minor?;
    aliases.by_instance(minor, instance.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holders::aliases::{CardAlias, InstanceAlias};

    fn aliases() -> Aliases {
        let card = |uuid: &str, minor, nvml_index| CardAlias {
            card_uuid: uuid.into(),
            minor: Some(minor),
            nvml_index: Some(nvml_index),
            pci_bus_id: None,
        };
        let instance = InstanceAlias {
            card_uuid: "GPU-b0000000".into(),
            device_uuid: "MIG-x0000000".into(),
            gpu_instance: 7,
            compute_instance: None,
            capability_minor: None,
        };
        Aliases { cards: vec![card("GPU-a0000000", 5, 0), card("GPU-b0000000", 4, 1)], instances: vec![instance] }
    }

    fn read_all(files: &[(&str, &str)], numbers: MapNumbers) -> Vec<(String, Option<String>, u64)> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let order = GresOrder::parse("Name=gpu File=/dev/nvidia[4-5]\n", "n").unwrap();
        let lines = read(folder.path(), numbers, Some(&order), &aliases()).unwrap();
        let device = |line: &MapLine| line.device.as_ref().map(|device| device.device_uuid.to_string());
        lines.iter().map(|line| (line.file.to_string(), device(line), line.job_id)).collect()
    }

    fn line(file: &str, device: Option<&str>, job: u64) -> (String, Option<String>, u64) {
        (file.to_owned(), device.map(str::to_owned), job)
    }

    /// S01: a number is a position of gres.conf; as the driver's index or a minor it would be the other card.
    #[test]
    fn s01_files_are_called_by_slurms_number_an_instance_or_a_uuid() {
        let files = [
            ("0", "22\n"),
            ("0.7", "23\n"),
            ("GPU-a0000000", "24\n"),
            ("9", "25\n"),
            ("0.tmp", "1\n"),
            ("notes", "1\n"),
        ];
        let expected = [
            line("0", Some("GPU-b0000000"), 22),
            line("0.7", Some("MIG-x0000000"), 23),
            line("9", None, 25),
            line("GPU-a0000000", Some("GPU-a0000000"), 24),
        ];
        assert_eq!(read_all(&files, MapNumbers::Slurm), expected);
        assert_eq!(read_all(&[("0", "22\n")], MapNumbers::Driver), [line("0", Some("GPU-a0000000"), 22)]);
        assert_eq!(read_all(&[("5", "22\n")], MapNumbers::Minor), [line("5", Some("GPU-a0000000"), 22)]);
    }

    #[test]
    fn k04_an_instance_of_a_slurm_job_is_found_by_its_own_uuid() {
        assert_eq!(
            read_all(&[("MIG-x0000000", "23\n")], MapNumbers::Slurm),
            [line("MIG-x0000000", Some("MIG-x0000000"), 23)]
        );
    }

    #[test]
    fn several_lines_share_and_the_files_time_speaks_for_the_last_alone() {
        let written = Timestamp::from_unix_s(1_700_000_000);
        let lines = parse("0", "22\n\nnot a job\n23 1 1699999000 1001 research\n24\n", Some(written), None);
        let jobs: Vec<(u64, usize, Option<Timestamp>)> =
            lines.iter().map(|l| (l.job_id, l.sharers, l.written_at)).collect();
        assert_eq!(jobs, [(22, 3, None), (23, 3, None), (24, 3, Some(written))]);
        assert_eq!(lines[1].started_at, Some(Timestamp::from_unix_s(1_699_999_000)));
        assert_eq!(
            (lines[1].restarts, lines[1].uid, lines[1].account.as_deref()),
            (Some(1), Some(1001), Some("research"))
        );
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_empty() {
        assert_eq!(read(Path::new("/nonexistent/jobmap"), MapNumbers::Slurm, None, &aliases()).unwrap(), []);
    }
}
