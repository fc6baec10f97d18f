//! A collector that is killed again and again, at moments drawn from a seed.

use super::rows::{BOOT, DEVICES, NODE, NOW, arguments_of, command, numbers, open, segments_in, tick};
use cardhour_collector::delivery::{Delivery, DeliveryConfig, Destination};
use cardhour_domain::{SegmentName, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, thread};

const FOLDER: &str = "CARDHOUR_TEST_KILLED_IN";
const LIFE: &str = "CARDHOUR_TEST_LIFE";

/// Ticks of one life have numbers of their own.
const TICKS_A_LIFE: u64 = 1_000_000;
const LIVES: u64 = 60;

/// A journal of a few ticks, so that most of the time goes into sealing and delivering.
const SEAL_BYTES: u64 = 1500;

fn delivery(folder: &Path) -> Delivery {
    let to = Destination::Folder(folder.join("ledger"));
    Delivery::new(DeliveryConfig { spool: folder.join("spool"), node: NODE.into(), to }).unwrap()
}

/// Not a test by itself: the process that [`no_tick_is_lost_and_none_is_there_twice_however_often_the_collector_is_killed`] kills.
#[test]
fn the_collector_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = Path::new(&folder).to_owned();
    let life: u64 = std::env::var(LIFE).unwrap().parse().unwrap();
    let mut spool = open(&folder.join("spool"), SEAL_BYTES);
    thread::spawn({
        let mut delivery = delivery(&folder);
        move || {
            loop {
                delivery.run_once(NOW);
            }
        }
    });
    for number in life * TICKS_A_LIFE.. {
        spool.append(&tick(number), NOW).unwrap();
        println!("on disk: {number}.");
        spool.seal_if_due(NOW).unwrap();
    }
}

/// Numbers as if drawn: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// Runs a life, kills it after some time, and gives the ticks that it said were on disk. Of each fourth life the time counts from its start, so that
/// some don't come to open the spool; of the others from their first tick on disk, however slow the machine is.
fn live_and_be_killed(folder: &Path, life: u64, after: Duration) -> Vec<u64> {
    let arguments = arguments_of("spool::killed::the_collector_that_is_killed");
    let mut child =
        command(&arguments, FOLDER, folder).env(LIFE, life.to_string()).stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let (begin, begun) = mpsc::channel();
    let reader = thread::spawn(move || {
        // The harness writes before the first; a kill may cut the last, which then has no full stop.
        let number = |line: String| line.split_once("on disk: ")?.1.strip_suffix('.')?.parse().ok();
        let told = out.lines().map_while(Result::ok).filter_map(number);
        // Nobody waits for it of a life whose time counts from its start.
        told.inspect(|_: &u64| _ = begin.send(())).collect::<Vec<u64>>()
    });
    if !life.is_multiple_of(4) {
        _ = begun.recv();
    }
    thread::sleep(after);
    assert_eq!(child.try_wait().unwrap(), None, "life {life} ended by itself");
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

/// The ledger's side: each name once, and a name that comes again with the same content. Some files are taken away, so that they can come again.
fn take_in(folder: &Path, taken: &mut BTreeMap<SegmentName, Vec<u8>>, random: &mut Random) {
    for (name, path) in segments_in(&folder.join("ledger/incoming").join(NODE)) {
        let content = fs::read(&path).unwrap();
        let before = taken.insert(name.clone(), content.clone());
        assert!(before.is_none_or(|before| before == content), "{name} has two contents");
        if random.below(2) == 0 {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn no_tick_is_lost_and_none_is_there_twice_however_often_the_collector_is_killed() {
    let seed = std::env::var("SIM_SEED").map_or(7, |seed| seed.parse().expect("SIM_SEED is a number"));
    let mut random = Random(seed);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("ledger/incoming")).unwrap();
    let (mut on_disk, mut taken) = (Vec::new(), BTreeMap::new());
    for life in 1..=LIVES {
        // From before it has opened the spool to some dozens of segments later.
        let after = Duration::from_micros(2_000 + random.below(120_000));
        on_disk.extend(live_and_be_killed(folder.path(), life, after));
        take_in(folder.path(), &mut taken, &mut random);
    }
    // The last life ends in peace.
    let mut spool = open(&folder.path().join("spool"), SEAL_BYTES);
    spool.seal(NOW).unwrap();
    let mut delivery = delivery(folder.path());
    while delivery.run_once(NOW).left > 0 {}
    take_in(folder.path(), &mut taken, &mut random);
    assert_eq!(spool.pending().unwrap(), []);
    assert_eq!(spool.stock(NOW).unwrap().refused, 0);

    let in_ledger = |stream: Stream| {
        let mut found = Vec::new();
        for (name, content) in taken.iter().filter(|(name, _)| name.stream() == stream) {
            assert_eq!(name.boot(), BOOT);
            let path = folder.path().join("segment");
            fs::write(&path, content).unwrap();
            found.extend(numbers(&path, stream));
        }
        found.sort_unstable();
        found
    };
    let held = in_ledger(Stream::Observations);
    let sampled = in_ledger(Stream::Samples);
    println!(
        "seed {seed}: {} ticks said to be on disk, {} in the ledger, {} segments",
        on_disk.len(),
        held.len(),
        taken.len()
    );
    let once: BTreeSet<u64> = held.iter().copied().collect();
    assert_eq!(held.len(), once.len(), "a tick is there twice, SIM_SEED={seed}");
    for number in &on_disk {
        assert!(once.contains(number), "tick {number} is lost, SIM_SEED={seed}");
    }
    // What a life wrote and had no time to say: the tick in progress, one a life.
    let said: BTreeSet<u64> = on_disk.into_iter().collect();
    let mut unsaid: Vec<u64> = once.difference(&said).map(|number| number / TICKS_A_LIFE).collect();
    let all = unsaid.len();
    unsaid.dedup();
    assert_eq!(all, unsaid.len(), "more than a tick of a life was in progress, SIM_SEED={seed}");
    let each_device: Vec<u64> = held.iter().flat_map(|number| [*number; DEVICES as usize]).collect();
    assert_eq!(sampled, each_device, "samples and holders are of the same ticks, SIM_SEED={seed}");
    assert!(said.len() > 100 && taken.len() > 40, "the lives were too short to tell: {} ticks", said.len());
}
