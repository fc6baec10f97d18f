//! A call into the driver that doesn't come back: who held a card is on record all the same.

use crate::metrics::names::CARD;
use crate::metrics::node::{LONG, Node, command};
use cardhour_collector::config::Config;
use cardhour_collector::probe::SystemClock;
use cardhour_collector::run::{WhenHung, run};
use cardhour_collector::spool::{Spool, SpoolConfig};
use cardhour_domain::columns::Rows;
use cardhour_domain::{EventKind, Gap, Millijoules, NodeEvent, Observation, Reading, Sample, SegmentName, Timestamp};
use cardhour_test_kubelet::Kubelet;
use cardhour_test_prometheus::free_port;
use fake_nvml::Stage;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs::File;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// What segments in a folder say.
#[derive(Default)]
pub struct Told {
    pub samples: Vec<Sample>,
    held: Vec<Observation>,
    events: Vec<NodeEvent>,
}

impl Told {
    pub fn in_folder(folder: &Path) -> Self {
        let mut told = Self::default();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let Ok(name) = SegmentName::parse(path.file_name().unwrap().to_str().unwrap()) else { continue };
            let batches =
                ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap().build().unwrap();
            for batch in batches {
                match Rows::read(name.stream(), &batch.unwrap()).unwrap() {
                    Rows::Samples(rows) => told.samples.extend(rows),
                    Rows::Observations(rows) => told.held.extend(rows),
                    Rows::Events(rows) => told.events.extend(rows),
                    _ => {}
                }
            }
        }
        told.samples.sort_by_key(|row| row.during.start());
        told.held.sort_by_key(|row| row.during.start());
        told
    }

    /// How long nobody is told to have held a card, between the first and the last who is. Unit: milliseconds.
    fn unheld_ms(&self) -> i64 {
        self.held.windows(2).map(|pair| pair[1].during.start().ms_since(pair[0].during.end()).max(0)).sum()
    }

    fn of_kind(&self, kind: EventKind) -> Vec<&NodeEvent> {
        self.events.iter().filter(|event| event.kind == kind).collect()
    }
}

/// A process with others in it goes on: while the call hangs ticks come without the cards, and afterwards the cards are read again. By hand: a card of 60 W uses
/// 60 mJ a millisecond, so that all that was used while it hung is in the first row after it.
#[test]
fn a_hung_call_takes_no_holder_away_and_the_cards_are_read_again_when_it_is_back() {
    let stage = Stage::new(
        "[[card]]\npreset = \"h100\"\n[[fault]]\ncall = \"nvmlDeviceGetPowerUsage\"\nat_s = 4\nuntil_s = 44\nhang = true\n",
    )
    .unwrap();
    std::fs::remove_file(stage.folder().join("fake-nvml.clock")).unwrap();
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let kubelet = Kubelet::start(folder.path());
    kubelet.give(&[&format!("team/p/c nvidia.com/gpu {}", CARD[0])]);
    let sections = format!("[kubernetes]\nsocket = {:?}\n", kubelet.socket);
    drop(command(folder.path(), &format!("metrics = \"127.0.0.1:{port}\""), &sections));
    let mut config = Config::load(&folder.path().join("collector.toml"), "").unwrap();
    config.nvml_library = Some(stage.library());
    let (begun, begins) = mpsc::channel();
    let collecting = std::thread::spawn(move || {
        run(&config, &SystemClock::start(), WhenHung::GoOn, |control| {
            begun.send(control).unwrap();
            Ok(())
        })
    });
    let control = begins.recv().unwrap();
    let health = |after_s| {
        std::thread::sleep(Duration::from_secs(after_s));
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        agent.get(format!("http://127.0.0.1:{port}/health")).call().unwrap().status().as_u16()
    };
    // Before; in the call; after it, which hung until 44 s.
    assert_eq!([health(3), health(22), health(24)], [200, 503, 200]);
    control.stop();
    collecting.join().unwrap().unwrap();

    let told = Told::in_folder(&folder.path().join("ledger/incoming/n1"));
    // A call may take five seconds before ticks no longer wait for it, and one more is the step.
    assert!(told.unheld_ms() <= 6_000, "{}", told.unheld_ms());
    let held_ms = told.held.last().unwrap().during.end().ms_since(told.held[0].during.start());
    assert!(held_ms >= 45_000, "{held_ms}");
    let hung = told.of_kind(EventKind::Hung);
    assert!(hung.len() == 1 && hung[0].detail.as_deref() == Some("nvmlDeviceGetPowerUsage"), "{hung:?}");
    let is_late = |row: &&Sample| row.energy_mj == Reading::Missing(Gap::TimedOut);
    let unread_ms: i64 = told.samples.iter().filter(is_late).map(|row| row.during.length_ms()).sum();
    // Some 40 s, of which the first five waited.
    assert!((33_000..45_000).contains(&unread_ms), "{unread_ms}");
    assert!(told.samples.windows(2).all(|pair| pair[0].during.end() <= pair[1].during.start()));
    let energy_mj: i64 = told.samples.iter().filter_map(|row| row.energy_mj.seen()).map(|Millijoules(mj)| mj).sum();
    let all_ms = told.samples.last().unwrap().during.end().ms_since(told.samples[0].during.start());
    // Counters are read up to some milliseconds beside their tick.
    assert!((energy_mj - 60 * all_ms).abs() <= 60 * 500, "{energy_mj} mJ in {all_ms} ms");
}

/// A driver that hangs at the first call of each life: who holds the cards is known from the first tick on, and what ended it is on record.
#[test]
fn a_life_whose_first_call_hangs_records_holders_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let kubelet = Kubelet::start(folder.path());
    kubelet.give(&[&format!("team/p/c nvidia.com/gpu {}", CARD[0])]);
    let sections = format!("[kubernetes]\nsocket = {:?}\n", kubelet.socket);
    let scenario = "[[card]]\npreset = \"h100\"\n[[fault]]\ncall = \"nvmlInit*\"\nhang = true\n";
    let mut node = Node::with(scenario, "", &sections);
    let page = node.page_when("recorded", |page| page.labels("cardhour_holder_info", "work") == ["team/p"]);
    assert_eq!(page.value("cardhour_collector_driver_up", &[]), 0.0);
    assert_eq!(node.ended(), None, "a signal of its own ends it: {}", node.log());
    // What a next life does with what this one left.
    let spool = node.folder.path().join("spool");
    let opened = Spool::open(SpoolConfig::new(&spool, "n1".into()), 1, Timestamp::from_unix_s(1_900_000_000));
    drop(opened.unwrap());
    let (mut told, delivered) = (Told::in_folder(&spool), node.folder.path().join("ledger/incoming/n1"));
    if delivered.exists() {
        let before = Told::in_folder(&delivered);
        told.held.extend(before.held);
        told.events.extend(before.events);
        told.held.sort_by_key(|row| row.during.start());
    }
    let held_ms = told.held.last().unwrap().during.end().ms_since(told.held[0].during.start());
    assert!(told.unheld_ms() == 0 && held_ms >= 24_000, "{held_ms}");
    assert!(told.samples.is_empty(), "{:?}", told.samples);
    let hung = told.of_kind(EventKind::Hung);
    assert!(hung.len() == 1 && hung[0].detail.as_deref() == Some("nvmlInit"), "{hung:?}");
}

/// Told to stop in such a call it doesn't wait for it: what was seen is on disk.
#[test]
fn a_daemon_in_a_hung_call_ends_when_it_is_told_to() {
    let mut node = Node::new(
        "[[card]]\npreset = \"h100\"\n[[fault]]\ncall = \"nvmlDeviceGetPowerUsage\"\nat_s = 3\nhang = true\n",
    );
    node.page_when("hung", |page| {
        page.values("cardhour_collector_driver_call_age_seconds", &[]).first().is_some_and(|age| *age > 6.0)
    });
    let term = std::process::Command::new("kill").args(["-TERM", &node.pid().to_string()]).status().unwrap();
    assert!(term.success() && LONG > Duration::from_secs(30));
    assert_eq!(node.ended(), Some(0), "{}", node.log());
}
