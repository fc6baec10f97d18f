//! The two months of the simulation. It has no other clock.

use cardhour_domain::{Interval, Month, Timestamp, Zone};
use chrono::Datelike;

/// Where the pool stands: its tools write local times of this zone.
pub const ZONE: &str = "Asia/Shanghai";

/// Two whole months in [`ZONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The months, in order.
    pub months: [Month; 2],
    /// The zone.
    pub zone: Zone,
    /// The first instant. Unit: seconds since the epoch.
    pub start_s: i64,
    /// The first instant after. Unit: seconds since the epoch.
    pub end_s: i64,
}

impl Clock {
    /// The month before `last`, and `last`.
    pub fn until(last: Month) -> Self {
        let day_before = last.first_date().pred_opt().expect("there is a day before every month");
        let first = Month::new(day_before.year(), day_before.month()).expect("a date's month is one");
        let zone = Zone::parse(ZONE).expect("ZONE is an IANA zone");
        let seconds = |at: Timestamp| at.unix_ms() / 1000;
        let (start_s, end_s) = (seconds(first.interval(zone).start()), seconds(last.interval(zone).end()));
        Self { months: [first, last], zone, start_s, end_s }
    }

    /// A local time: the first or second month, days from its first, hour and minute. Unit: seconds since the epoch.
    pub fn at(&self, month: usize, day: i64, hour: i64, minute: i64) -> i64 {
        self.months[month].interval(self.zone).start().unix_ms() / 1000 + day * 86_400 + hour * 3600 + minute * 60
    }

    /// The stretch from one instant to another, each in seconds since the epoch; none where it is empty.
    pub fn stretch(start_s: i64, end_s: i64) -> Option<Interval> {
        Interval::new(Timestamp::from_unix_s(start_s), Timestamp::from_unix_s(end_s))
    }

    /// As Slurm prints an instant: local, without an offset.
    pub fn slurm(&self, at_s: i64) -> String {
        self.local(at_s).format("%Y-%m-%dT%H:%M:%S").to_string()
    }

    /// As RFC 3339 has it, with the zone's offset.
    pub fn rfc3339(&self, at_s: i64) -> String {
        let local = self.local(at_s);
        let offset_minutes = (local.and_utc().timestamp() - at_s) / 60;
        format!("{}{:+03}:{:02}", local.format("%Y-%m-%dT%H:%M:%S"), offset_minutes / 60, offset_minutes.abs() % 60)
    }

    /// The local date alone.
    pub fn date(&self, at_s: i64) -> String {
        self.local(at_s).format("%Y-%m-%d").to_string()
    }

    fn local(&self, at_s: i64) -> chrono::NaiveDateTime {
        self.zone.local(Timestamp::from_unix_s(at_s)).expect("two months near ours are inside of chrono's range")
    }
}
