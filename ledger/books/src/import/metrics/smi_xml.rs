//! Documents of `nvidia-smi -q -x`, any number of them in one file.
//!
//! A document is one instant. Fields move between versions of the driver (`power_draw` under `power_readings`, later
//! `average_power_draw` under `gpu_power_readings`), so that they are looked for by path, in all the places where they have been.

use super::clock::{self, Clock};
use super::look::{Device, Look, Signals, Told, busiest};
use super::quantity::{self, Unit};
use super::smi_log::bus_id;
use super::stretch::without_board;
use super::{MetricsError, Readout, Setting};
use crate::attempt::Rejected;
use crate::import::names::printable;
use crate::import::time::TimeReader;
use cardhour_domain::{CardShare, Gap, Name, Reading, SampleSource, SeenDevice, Timestamp};
use memchr::memmem;
use quick_xml::events::Event;
use rust_decimal::Decimal;

const BEGIN: &[u8] = b"<nvidia_smi_log";
const END: &[u8] = b"</nvidia_smi_log>";

/// Reads the documents of one machine.
///
/// Processes are hints only: their count tells whether a busy card can be believed, nobody holds a card by them. A document that can't be
/// read, or breaks off, is rejected as a whole. Errors: no document at all, or no node.
pub fn read(input: &[u8], setting: &Setting) -> Result<Readout, MetricsError> {
    let node = setting.node.clone().ok_or(MetricsError::NoNode)?;
    let mut readout = Readout::default();
    let mut log = Log { setting, node, clock: Clock::new(TimeReader::in_zone(setting.zone)) };
    let mut at = 0;
    let mut found = false;
    while let Some(start) = memmem::find(&input[at..], BEGIN).map(|start| at + start) {
        found = true;
        let next = memmem::find(&input[start + BEGIN.len()..], BEGIN).map(|next| start + BEGIN.len() + next);
        let limit = next.unwrap_or(input.len());
        let line = memchr::memchr_iter(b'\n', &input[..start]).count() as u64 + 1;
        let outcome = match memmem::find(&input[start..limit], END) {
            None => Err("the document breaks off before </nvidia_smi_log>".to_owned()),
            Some(end) => Element::parse(&input[start..start + end + END.len()])
                .and_then(|root| log.document(&root, &mut readout)),
        };
        if let Err(reason) = outcome {
            let row = String::from_utf8_lossy(&input[start..limit.min(start + 200)]).into_owned();
            readout.rejected.push(Rejected { line, row, field: String::new(), reason });
        }
        at = limit;
    }
    if found { Ok(readout) } else { Err(MetricsError::NoDocument) }
}

struct Log<'s> {
    setting: &'s Setting,
    node: Name,
    clock: Clock,
}

impl Log<'_> {
    /// Errors: the document has no time.
    fn document(&mut self, root: &Element, readout: &mut Readout) -> Result<(), String> {
        let text = root.text("timestamp").ok_or("the document has no timestamp")?;
        // One time for all cards; the machine's clock is followed under a name that no card has.
        let machine = Device::card(self.node.clone(), Name::new());
        let at = self.clock.read(&machine, &clock::of_smi(text)).map_err(|error| format!("timestamp: {error}"))?;
        let at = at.ok_or("the document has no timestamp")?;
        if let Some(why) = self.setting.refusal(at) {
            return Err(format!("timestamp: {why}"));
        }
        for gpu in root.children("gpu") {
            match gpu.text("uuid").filter(|uuid| !matches!(*uuid, "N/A" | "[N/A]" | "Unknown Error")) {
                Some(uuid) => self.card(gpu, Name::from(&*printable(uuid)), at, root, readout),
                None => readout.notes.push(format!(
                    "{}: a card without uuid at {} was left out",
                    self.node,
                    gpu.text("pci/pci_bus_id").unwrap_or("an unknown place on the bus")
                )),
            }
        }
        Ok(())
    }

    fn card(&self, gpu: &Element, uuid: Name, at: Timestamp, root: &Element, readout: &mut Readout) {
        let device = Device::card(self.node.clone(), uuid);
        let mut push = |device: Device, signals: Signals| {
            let (source, reader, told) = (SampleSource::NvidiaSmi, Name::new(), Told::Instant);
            readout.looks.push(Look { at, device, source, reader, signals, told });
        };
        let instances: Vec<_> = gpu.children("mig_devices/mig_device").collect();
        for instance in &instances {
            let (device, signals) = of_instance(gpu, instance, &device);
            push(device, signals);
        }
        push(device.clone(), of_card(gpu));
        if !instances.is_empty() {
            readout.notes.push(format!(
                "{}: nvidia-smi tells neither use nor profile of MIG instances; their use is unseen",
                self.node
            ));
        }
        readout.devices.push(SeenDevice {
            at,
            cluster: self.setting.cluster.clone(),
            pci_bus_id: gpu.text("pci/pci_bus_id").and_then(bus_id),
            model: word(gpu.text("product_name")),
            memory_bytes: quantity::memory(number(gpu, &["fb_memory_usage/total"]), Unit::Mebibytes).seen(),
            driver: word(root.text("driver_version")),
            mig_mode: word(gpu.text("mig_mode/current_mig")).map(|mode| mode.to_ascii_lowercase().into()),
            mig_profile: None,
            share: CardShare::CARD,
            power_limit_mw: quantity::power(number(gpu, POWER_LIMIT), Unit::Watts).seen().map(|limit| limit.0),
            node: device.node,
            card_uuid: device.card_uuid,
            device_uuid: device.device_uuid,
        });
    }
}

/// Where the driver has put them, the mean over a second before the instant's.
const POWER_DRAW: &[&str] = &[
    "gpu_power_readings/average_power_draw",
    "gpu_power_readings/power_draw",
    "power_readings/power_draw",
    "gpu_power_readings/instant_power_draw",
];
const POWER_LIMIT: &[&str] = &[
    "gpu_power_readings/enforced_power_limit",
    "gpu_power_readings/current_power_limit",
    "gpu_power_readings/power_limit",
    "power_readings/enforced_power_limit",
    "power_readings/power_limit",
];

fn of_card(gpu: &Element) -> Signals {
    let percent = |path: &str| quantity::percent(number(gpu, &[path]), Unit::Percent);
    let processes = gpu.child("processes").map(|list| list.children("process_info").count());
    Signals {
        duty_cycle_pct: percent("utilization/gpu_util"),
        mem_duty_pct: percent("utilization/memory_util"),
        media_active_pct: busiest(
            &["utilization/encoder_util", "utilization/decoder_util", "utilization/jpeg_util", "utilization/ofa_util"]
                .map(percent),
        ),
        mem_used_bytes: quantity::memory(number(gpu, &["fb_memory_usage/used"]), Unit::Mebibytes),
        power_mw: quantity::power(number(gpu, POWER_DRAW), Unit::Watts),
        power_limit_mw: quantity::power(number(gpu, POWER_LIMIT), Unit::Watts),
        temperature_c: quantity::whole(number(gpu, &["temperature/gpu_temp"]), Unit::Whole),
        processes: count(processes),
        ..Signals::default()
    }
}

fn of_instance(gpu: &Element, instance: &Element, card: &Device) -> (Device, Signals) {
    let id = |path: &str| instance.text(path).unwrap_or("0");
    let (gi, ci) = (id("gpu_instance_id"), id("compute_instance_id"));
    let device = match instance.text("uuid").filter(|uuid| uuid.starts_with("MIG-")) {
        Some(uuid) => Device { device_uuid: printable(uuid).as_ref().into(), ..card.clone() },
        None => card.instance(gi, ci),
    };
    let is_of = |process: &&Element| {
        process.text("gpu_instance_id") == Some(gi) && process.text("compute_instance_id") == Some(ci)
    };
    let processes = gpu.child("processes").map(|list| list.children("process_info").filter(is_of).count());
    let signals = Signals {
        mem_used_bytes: quantity::memory(number(instance, &["fb_memory_usage/used"]), Unit::Mebibytes),
        processes: count(processes),
        ..without_board(Signals::default())
    };
    (device, signals)
}

fn count(processes: Option<usize>) -> Reading<i64> {
    processes.and_then(|n| i64::try_from(n).ok()).map_or(Reading::Missing(Gap::NotRecorded), Reading::Seen)
}

/// The first of several places that has a number; else what the first place that is there says instead.
fn number(element: &Element, paths: &[&str]) -> Reading<Decimal> {
    let mut told = Reading::Missing(Gap::NotRecorded);
    for path in paths {
        match quantity::of_smi(element.text(path)) {
            Reading::Seen(number) => return Reading::Seen(number),
            Reading::Missing(gap) if told == Reading::Missing(Gap::NotRecorded) => told = Reading::Missing(gap),
            Reading::Missing(_) => {}
        }
    }
    told
}

fn word(text: Option<&str>) -> Option<Name> {
    text.filter(|text| !matches!(*text, "N/A" | "[N/A]" | "")).map(|text| Name::from(&*printable(text)))
}

/// An element of a document: small enough to be held whole.
#[derive(Debug, Default)]
struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

impl Element {
    /// Errors: not well formed, or not UTF-8.
    fn parse(input: &[u8]) -> Result<Self, String> {
        let input = std::str::from_utf8(input).map_err(|_| "the document is not UTF-8".to_owned())?;
        let mut reader = quick_xml::Reader::from_str(input);
        let mut open: Vec<Self> = Vec::new();
        loop {
            match reader.read_event().map_err(|error| format!("the document is not XML: {error}"))? {
                Event::Start(tag) => open.push(Self::named(tag.name().as_ref())),
                Event::Empty(tag) => match open.last_mut() {
                    Some(parent) => parent.children.push(Self::named(tag.name().as_ref())),
                    None => return Ok(Self::named(tag.name().as_ref())),
                },
                Event::Text(text) => {
                    if let Some(element) = open.last_mut() {
                        element.text.push_str(text.decode().map_err(|error| error.to_string())?.trim());
                    }
                }
                Event::End(_) => {
                    let closed = open.pop().ok_or("the document closes what it never opened")?;
                    match open.last_mut() {
                        Some(parent) => parent.children.push(closed),
                        None => return Ok(closed),
                    }
                }
                Event::Eof => return Err("the document breaks off".to_owned()),
                // Comments, declarations and entities of process names tell nothing that is wanted here.
                _ => {}
            }
        }
    }

    fn named(name: &[u8]) -> Self {
        Self { name: String::from_utf8_lossy(name).into_owned(), ..Self::default() }
    }

    /// The first element at a path such as `utilization/gpu_util`.
    fn child(&self, path: &str) -> Option<&Self> {
        path.split('/').try_fold(self, |element, name| element.children.iter().find(|child| child.name == name))
    }

    /// All elements at a path.
    fn children<'e>(&'e self, path: &'e str) -> impl Iterator<Item = &'e Self> {
        let (parent, name) = match path.rsplit_once('/') {
            Some((parent, name)) => (self.child(parent), name),
            None => (Some(self), path),
        };
        parent.into_iter().flat_map(|parent| &parent.children).filter(move |child| child.name == name)
    }

    /// The text at a path; none where it is absent or empty.
    fn text(&self, path: &str) -> Option<&str> {
        self.child(path).map(|element| element.text.as_str()).filter(|text| !text.is_empty())
    }
}
