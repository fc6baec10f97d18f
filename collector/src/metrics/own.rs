//! What the collector tells of itself. These series stay while ticks don't come: they say so.

use super::capabilities::capabilities;
use super::family::{Families, Family, Label, counter, gauge};
use super::snapshot::Snapshot;
use super::{About, DeliveryTally};
use crate::delivery::Trouble;
use crate::holders::LookEventKind;
use crate::probe::nvml::DriverStatus;
use crate::probe::{Calls, DeadCard, Hung};
use crate::run::HUNG_AFTER;
use crate::spool::ByStream;
use cardhour_domain::{EventKind, Gap, Stream};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// All that is known of the collector at the time of a scrape.
pub struct Own<'a> {
    pub about: &'a About,
    pub calls: Calls,
    /// The call that goes on.
    pub call: Option<Hung>,
    pub driver: &'a DriverStatus,
    pub delivery: &'a DeliveryTally,
    pub snapshot: Option<&'a Snapshot>,
    pub is_fresh: bool,
}

const BUILD: Family = gauge("cardhour_collector_build_info", "", "Which collector this is, and where");
const DRIVER: Family = gauge("cardhour_collector_driver_info", "", "Which driver is in use; no series while none is");
const MISSING: Family = gauge(
    "cardhour_collector_capability_missing",
    "",
    "Devices of which this can't be read, by why: no_permission is a privilege that the collector lacks",
);
const DEAD: Family = gauge(
    "cardhour_collector_dead_cards",
    "",
    "Cards that are there and have not answered once since the start, by why",
);
const DEAD_PLACES: Family = gauge(
    "cardhour_collector_dead_card_info",
    "",
    "Where on the bus a card is that has not answered once since the start; no series where nobody knows",
);
const APPENDED: Family = counter("cardhour_collector_spooled_rows", "", "Rows that are on disk");
const SEALED: Family = counter("cardhour_collector_sealed_segments", "", "Segments made");
const DROPPED: Family = counter("cardhour_collector_dropped_rows", "", "Rows that nobody will get");
const DROPPED_SEGMENTS: Family = counter("cardhour_collector_dropped_segments", "", "Segments that nobody will get");
const DELIVERED: Family =
    counter("cardhour_collector_delivered_segments", "", "Segments that were taken, or were there already");
const TROUBLES: Family =
    counter("cardhour_collector_delivery_failures", "", "Runs of deliveries that ended in trouble, by which");
const EVENTS: Family = counter("cardhour_collector_events", "", "What happened to cards or the collector");
const ODDITIES: Family = counter("cardhour_collector_oddities", "", "What was odd when holders were looked for");

impl Own<'_> {
    /// Every family of the collector's own.
    pub fn write(&self, families: &mut Families<'_>) -> fmt::Result {
        let about = self.about;
        let place: [Label<'_>; 2] = [("cluster", &about.cluster), ("node", &about.node)];
        let build = [place[0], place[1], ("version", env!("CARGO_PKG_VERSION"))];
        families.write(BUILD, [(&build[..], None, 1.0)])?;
        families.one(
            gauge("cardhour_collector_start_time", "seconds", "When the collector started, since 1970"),
            about.started_at.unix_ms() as f64 / 1000.0,
        )?;
        families.one(gauge("cardhour_collector_step", "seconds", "The step of ticks"), about.step.as_secs_f64())?;
        self.driver(families)?;
        self.delivery(families)?;
        resources(families)?;
        match self.snapshot {
            Some(snapshot) => self.ticks(families, snapshot),
            None => Ok(()),
        }
    }

    fn driver(&self, families: &mut Families<'_>) -> fmt::Result {
        let is_hung = self.call.as_ref().is_some_and(|call| call.since > HUNG_AFTER);
        let is_up = matches!(self.driver, DriverStatus::Up { .. }) && !is_hung;
        families.one(
            gauge(
                "cardhour_collector_driver_up",
                "",
                "1 while the driver is in use, 0 while it is away or let go or a call into it hangs",
            ),
            f64::from(u8::from(is_up)),
        )?;
        families.one(
            gauge("cardhour_collector_released", "", "1 while the cards are let go because an operator asked for it"),
            f64::from(u8::from(matches!(self.driver, DriverStatus::Released { .. }))),
        )?;
        if let DriverStatus::Up { driver: Some(version) } = self.driver {
            families.write(DRIVER, [(&[("version", version.as_str())][..], None, 1.0)])?;
        }
        families.one(
            counter("cardhour_collector_driver_calls", "", "Calls into the driver that came back"),
            self.calls.count as f64,
        )?;
        families.one(
            counter("cardhour_collector_driver_call", "seconds", "How long they took together"),
            self.calls.busy.as_secs_f64(),
        )?;
        families.one(
            counter("cardhour_collector_slow_driver_calls", "", "Calls into the driver that took longer than a second"),
            self.calls.slow as f64,
        )?;
        families.one(
            gauge(
                "cardhour_collector_driver_call_age",
                "seconds",
                "For how long the call into the driver that goes on has been going on; 0 between calls. After 5 ticks are made without it, after 30 it hangs",
            ),
            self.call.as_ref().map_or(0.0, |call| call.since.as_secs_f64()),
        )
    }

    fn delivery(&self, families: &mut Families<'_>) -> fmt::Result {
        let counters = &self.delivery.counters;
        let outcomes = [("taken", counters.taken_segments), ("known", counters.known_segments)];
        families.write(DELIVERED, outcomes.iter().map(|(o, n)| (&[][..], Some(("outcome", *o)), *n as f64)))?;
        families.one(
            counter("cardhour_collector_delivered", "bytes", "What was delivered"),
            counters.delivered_bytes as f64,
        )?;
        families.one(
            counter(
                "cardhour_collector_refused_segments",
                "",
                "Segments that the taker did not want: they are kept aside",
            ),
            counters.refused_segments as f64,
        )?;
        let of = |name: &str| self.delivery.troubles.get(name).copied().unwrap_or(0) as f64;
        families.write(TROUBLES, Trouble::NAMES.iter().map(|name| (&[][..], Some(("reason", *name)), of(name))))?;
        families.one(
            gauge(
                "cardhour_collector_all_delivered_timestamp",
                "seconds",
                "When nothing waited to be delivered, last, since 1970",
            ),
            self.delivery.emptied_at.map(|at| at.unix_ms() as f64 / 1000.0),
        )
    }

    fn ticks(&self, families: &mut Families<'_>, snapshot: &Snapshot) -> fmt::Result {
        let tally = &snapshot.tally;
        families.one(counter("cardhour_collector_ticks", "", "Ticks that were done"), tally.ticks as f64)?;
        families.one(
            counter("cardhour_collector_late_ticks", "", "Ticks that began more than a second after their time"),
            tally.late_ticks as f64,
        )?;
        families.one(
            counter("cardhour_collector_missed_ticks", "", "Times at which there should have been a tick and was none"),
            tally.missed_ticks as f64,
        )?;
        families.one(
            gauge(
                "cardhour_collector_tick_duration",
                "seconds",
                "How long the last tick took, from its first call to rows on disk",
            ),
            snapshot.took.as_secs_f64(),
        )?;
        families.one(
            counter("cardhour_collector_ticking", "seconds", "How long all ticks took together"),
            tally.tick_time.as_secs_f64(),
        )?;
        families.one(
            gauge("cardhour_collector_last_tick_timestamp", "seconds", "When the last tick began, since 1970"),
            snapshot.at.unix_ms() as f64 / 1000.0,
        )?;
        families.one(
            gauge(
                "cardhour_collector_last_tick_age",
                "seconds",
                "How long ago the last tick was done. After three steps devices have no series",
            ),
            snapshot.hung_up_at.elapsed().as_secs_f64(),
        )?;
        families.one(
            counter("cardhour_collector_driver_loads", "", "How often the driver's library was loaded"),
            f64::from(snapshot.generation),
        )?;
        let cards = snapshot.devices.iter().filter(|device| device.is_card()).count();
        families.one(gauge("cardhour_collector_cards", "", "Cards that were seen since the start"), cards as f64)?;
        dead(families, &snapshot.dead)?;
        families.one(
            gauge(
                "cardhour_collector_watched_cards",
                "",
                "Cards at which holders were looked for without a failure of any source",
            ),
            snapshot.watched_cards as f64,
        )?;
        families.one(
            gauge(
                "cardhour_collector_unshown_holders",
                "",
                "Holders without a series of their own: more than 512, or names alike at their first 128 letters",
            ),
            snapshot.unshown_holders as f64,
        )?;
        let of_kinds = EventKind::ALL.iter().zip(&tally.events);
        families.write(EVENTS, of_kinds.map(|(kind, n)| (&[][..], Some(("kind", kind.name())), *n as f64)))?;
        let of_kinds = LookEventKind::ALL.iter().zip(&tally.oddities);
        families.write(ODDITIES, of_kinds.map(|(kind, n)| (&[][..], Some(("kind", kind.name())), *n as f64)))?;
        if self.is_fresh {
            missing(families, snapshot)?;
        }
        spool(families, snapshot, self.about)
    }
}

/// Why a card may not answer: what calls that look for it can end with.
const DEAD_FOR: [Gap; 5] = [Gap::CardLost, Gap::DriverError, Gap::NoPermission, Gap::NotSupported, Gap::TimedOut];

fn dead(families: &mut Families<'_>, cards: &[DeadCard]) -> fmt::Result {
    let count = |gap: Gap| cards.iter().filter(|card| card.gap == gap).count() as f64;
    families.write(DEAD, DEAD_FOR.map(|gap| (&[][..], Some(("reason", gap.name())), count(gap))))?;
    let places: Vec<([Label<'_>; 1], Gap)> =
        cards.iter().filter_map(|card| Some(([("pci_bus_id", card.place.as_deref()?)], card.gap))).collect();
    families.write(DEAD_PLACES, places.iter().map(|(place, gap)| (&place[..], Some(("reason", gap.name())), 1.0)))
}

fn spool(families: &mut Families<'_>, snapshot: &Snapshot, about: &About) -> fmt::Result {
    if let Some(stock) = &snapshot.stock {
        families.one(gauge("cardhour_collector_spool", "bytes", "What lies in the spool"), stock.bytes as f64)?;
        families.one(
            gauge("cardhour_collector_spool_segments", "", "Segments that wait to be delivered"),
            stock.segments as f64,
        )?;
        families.one(
            gauge("cardhour_collector_spool_refused_segments", "", "Segments that were refused and are kept aside"),
            stock.refused as f64,
        )?;
        families.one(
            gauge(
                "cardhour_collector_spool_oldest_age",
                "seconds",
                "How long the oldest segment has waited; 0 where none does",
            ),
            stock.oldest_age_ms.unwrap_or(0) as f64 / 1000.0,
        )?;
    }
    families
        .one(gauge("cardhour_collector_spool_limit", "bytes", "What may lie in the spool"), about.spool_bytes as f64)?;
    let counters = &snapshot.spool;
    let by_stream = |of: ByStream| {
        Stream::ALL.into_iter().map(move |stream| (&[][..], Some(("stream", stream.name())), of.get(stream) as f64))
    };
    families.write(APPENDED, by_stream(counters.appended_rows))?;
    families.write(SEALED, by_stream(counters.sealed_segments))?;
    families.write(DROPPED_SEGMENTS, by_stream(counters.dropped_segments))?;
    let dropped = |stream: Stream| {
        counters.dropped_rows.iter().filter(|((of, _), _)| *of == stream).map(|(_, rows)| *rows).sum::<u64>() as f64
    };
    families.write(DROPPED, Stream::ALL.into_iter().map(|s| (&[][..], Some(("stream", s.name())), dropped(s))))?;
    for (family, value) in [
        (
            counter("cardhour_collector_failed_appends", "", "Ticks that could not be written to disk"),
            counters.failed_appends,
        ),
        (
            counter("cardhour_collector_failed_syncs", "", "Times that the disk did not vouch for what was written"),
            counters.failed_syncs,
        ),
        (
            counter("cardhour_collector_failed_seals", "", "Journals that could not be sealed in time"),
            counters.failed_seals,
        ),
        (
            counter("cardhour_collector_damaged_journals", "", "Journals that were not as they had been written"),
            counters.damaged_journals,
        ),
    ] {
        families.one(family, value as f64)?;
    }
    Ok(())
}

fn missing(families: &mut Families<'_>, snapshot: &Snapshot) -> fmt::Result {
    let mut by_why: BTreeMap<(&'static str, &'static str), u64> = BTreeMap::new();
    for device in snapshot.devices.iter().filter(|device| device.silence().is_none()) {
        for (capability, gap) in capabilities(device) {
            // What the card hasn't got is no fault; what may not be read is a series from the start, so that 0 is said.
            *by_why.entry((capability, Gap::NoPermission.name())).or_default() +=
                u64::from(gap == Some(Gap::NoPermission));
            if let Some(gap) = gap.filter(|gap| *gap != Gap::NoPermission) {
                *by_why.entry((capability, gap.name())).or_default() += 1;
            }
        }
    }
    let capabilities: Vec<([Label<'_>; 1], &str, u64)> =
        by_why.into_iter().map(|((capability, why), n)| ([("capability", capability)], why, n)).collect();
    families.write(MISSING, capabilities.iter().map(|(c, why, n)| (&c[..], Some(("reason", *why)), *n as f64)))
}

/// What the collector itself takes, by the kernel's own account.
fn resources(families: &mut Families<'_>) -> fmt::Result {
    let spent = cpu_time();
    families.one(
        counter("cardhour_collector_cpu", "seconds", "Processor time that the collector has used"),
        spent.map(|spent| spent.as_secs_f64()),
    )?;
    families
        .one(gauge("cardhour_collector_resident", "bytes", "Memory that the collector has resident"), resident_bytes())
}

/// Processor time of this process, all threads together, to a hundredth of a second.
fn cpu_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name may have spaces and brackets in it; behind the last bracket the third field follows.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    // A hundred a second on every Linux that the driver runs on.
    Some(Duration::from_millis(ticks * 10))
}

fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::{DescriptorEncoder, text};
    use prometheus_client::registry::Registry;

    #[derive(Debug)]
    struct Dead(Vec<DeadCard>);

    impl Collector for Dead {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            dead(&mut Families::new(encoder), &self.0)
        }
    }

    /// Of three dead cards the bus tells where two are: all are counted, and two have their place.
    #[test]
    fn a_dead_card_has_a_series_with_its_place_where_the_bus_tells_it() {
        let card = |place: Option<&str>, gap| DeadCard { place: place.map(Into::into), gap };
        let cards = [
            card(Some("00000000:12:00.0"), Gap::CardLost),
            card(None, Gap::CardLost),
            card(Some("00000000:13:00.0"), Gap::TimedOut),
        ];
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Dead(cards.into())));
        let mut page = String::new();
        text::encode(&mut page, &registry).unwrap();
        let of = |name: &str| page.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
        assert_eq!(
            of("cardhour_collector_dead_card_info"),
            [
                "cardhour_collector_dead_card_info{pci_bus_id=\"00000000:12:00.0\",reason=\"card_lost\"} 1",
                "cardhour_collector_dead_card_info{pci_bus_id=\"00000000:13:00.0\",reason=\"timed_out\"} 1",
            ]
        );
        let counts = of("cardhour_collector_dead_cards");
        assert!(counts.contains(&"cardhour_collector_dead_cards{reason=\"card_lost\"} 2"), "{counts:?}");
        assert!(counts.contains(&"cardhour_collector_dead_cards{reason=\"no_permission\"} 0"), "{counts:?}");
    }

    #[test]
    fn the_kernel_says_what_this_process_takes() {
        assert!(cpu_time().is_some());
        assert!(resident_bytes().unwrap() > 1e6);
    }
}
