//! Timelines drawn in text, and holdings on them, for tests.
//!
//! A timeline is stretches of ticks of one minute each: `0x30 50x10 ?x5` is half an hour at 0 %, ten minutes at 50 %, five minutes that nobody
//! read. `-` is a tick without its use, `!` one whose signals contradict each other, `%` after a value a duty cycle instead of activity. Other
//! signals follow, comma by comma: `0,mem=5,power=400x10`, powers in watts, links and IO in MB/s, CPU in percent of a core.

use super::{DeviceTick, HolderTick, Readings, Telemetry};
use crate::holdings::{Claim, ClaimSource, Holding, Slice};
use cardhour_domain::{
    AttemptKey, CardShare, EnergyBasis, Interval, Millijoules, Milliwatts, Percent, SampleSource, SeenDevice,
    Timestamp, UseBasis,
};

pub const MINUTE: i64 = 60_000;

/// From one minute to another.
pub fn minutes(from: i64, to: i64) -> Interval {
    let at = |minute: i64| Timestamp::from_unix_ms(minute * MINUTE);
    Interval::new(at(from), at(to)).unwrap()
}

pub fn percent(text: &str) -> Percent {
    Percent::from_f64(text.parse().unwrap()).unwrap()
}

/// A minute that nobody read anything of.
pub fn blank(during: Interval) -> DeviceTick {
    DeviceTick {
        during,
        source: SampleSource::Collector,
        sm_active: None,
        use_basis: UseBasis::Gpm,
        mem_active: None,
        media_active: None,
        mem_used_bytes: None,
        link_bytes: None,
        power: None,
        energy: None,
        energy_basis: EnergyBasis::Counter,
        suspect: false,
    }
}

/// A minute, its value and its other signals.
type Drawn<'a> = (Interval, &'a str, Vec<(&'a str, &'a str)>);

/// Each minute of a drawing that was read.
fn drawn(drawing: &str) -> Vec<Drawn<'_>> {
    let mut out = Vec::new();
    let mut minute = 0;
    for stretch in drawing.split_whitespace() {
        let (what, times) = stretch.rsplit_once('x').expect("VALUExTIMES");
        let mut fields = what.split(',');
        let value = fields.next().unwrap();
        let signals: Vec<_> = fields.map(|field| field.split_once('=').unwrap_or((field, ""))).collect();
        for _ in 0..times.parse::<i64>().unwrap() {
            if value != "?" {
                out.push((minutes(minute, minute + 1), value, signals.clone()));
            }
            minute += 1;
        }
    }
    out
}

pub fn device(drawing: &str) -> Vec<DeviceTick> {
    let tick = |(during, value, signals): Drawn<'_>| {
        let mut tick = blank(during);
        tick.suspect = value == "!";
        if value.ends_with('%') {
            tick.use_basis = UseBasis::DutyCycle;
        }
        tick.sm_active = (!["-", "!"].contains(&value)).then(|| percent(value.trim_end_matches('%')));
        for (signal, value) in signals {
            let number = || value.parse::<i64>().unwrap();
            match signal {
                "mem" => tick.mem_active = Some(percent(value)),
                "media" => tick.media_active = Some(percent(value)),
                "used" => tick.mem_used_bytes = Some(number()),
                "link" => tick.link_bytes = Some(number() * 60_000_000),
                "power" => tick.power = Some(Milliwatts(number() * 1000)),
                "mj" => tick.energy = Some(Millijoules(number())),
                "estimated" => tick.energy_basis = EnergyBasis::Power,
                other => panic!("no signal {other}"),
            }
        }
        tick
    };
    drawn(drawing).into_iter().map(tick).collect()
}

pub fn holder(drawing: &str) -> Vec<HolderTick> {
    let tick = |(during, value, signals): Drawn<'_>| {
        let mut tick = HolderTick {
            during,
            sm_active: (value != "-").then(|| percent(value)),
            processes: 1,
            mem_used_bytes: None,
            cpu_ms: None,
            io_bytes: None,
            is_attended: None,
        };
        for (signal, value) in signals {
            match signal {
                "cpu" => tick.cpu_ms = Some(value.parse::<i64>().unwrap() * MINUTE / 100),
                "io" => tick.io_bytes = Some(value.parse::<i64>().unwrap() * 60_000_000),
                "attended" => tick.is_attended = Some(true),
                "alone" => tick.is_attended = Some(false),
                other => panic!("no signal {other}"),
            }
        }
        tick
    };
    drawn(drawing).into_iter().map(tick).collect()
}

pub fn key(name: &str) -> AttemptKey {
    AttemptKey::new("c", name, "s0")
}

/// Readings from lines of a card or `card/slice` or `card:holder` and its drawing; a line `card limit WATTS` says what it may draw.
pub fn readings(text: &str) -> Readings {
    let mut readings = Readings::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (who, drawing) = line.split_once(' ').unwrap();
        if let Some(watts) = drawing.trim().strip_prefix("limit ") {
            readings.add_device(&SeenDevice {
                at: Timestamp::from_unix_ms(0),
                node: "n1".into(),
                cluster: "c".into(),
                card_uuid: who.into(),
                device_uuid: who.into(),
                pci_bus_id: None,
                model: None,
                memory_bytes: None,
                driver: None,
                mig_mode: None,
                mig_profile: None,
                share: CardShare::CARD,
                power_limit_mw: Some(watts.parse::<i64>().unwrap() * 1000),
            });
        } else if let Some((device, name)) = who.split_once(':') {
            readings.holder(&device.into(), &key(name)).extend(holder(drawing));
        } else {
            let card = who.split_once('/').map_or(who, |(card, _)| card);
            readings.device(&card.into(), &who.into()).extend(device(drawing));
        }
    }
    readings
}

pub fn telemetry(text: &str) -> Telemetry {
    readings(text).settle().0
}

/// Holdings from lines such as `a g0 1/1 0..60`, or `a g0/s1 1/7 0..60` for a slice of that size, or `a - 2/1 0..60` for cards without a name.
pub fn holdings(text: &str) -> Vec<Holding> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, device) = (words.next().unwrap(), words.next().unwrap());
        let (n, of) = words.next().unwrap().split_once('/').unwrap();
        let share = CardShare::from_fraction(n.parse().unwrap(), of.parse().unwrap()).unwrap();
        let (from, to) = words.next().unwrap().split_once("..").unwrap();
        let during = minutes(from.parse().unwrap(), to.parse().unwrap());
        let card = device.split_once('/').map_or(device, |(card, _)| card);
        let claim = Claim {
            key: key(name),
            cluster: "c".into(),
            during,
            share,
            declared: true,
            card_uuid: (device != "-").then(|| card.into()),
            node: Some("n1".into()),
            model: None,
            mig_profile: None,
            reservation: None,
            slice: (device != card).then(|| Slice { device_uuid: device.into(), share }),
            source: ClaimSource::Accounting,
            is_open: false,
        };
        claim.whole()
    };
    text.lines().map(str::trim).filter(|text| !text.is_empty()).map(line).collect()
}
