//! Idle reclaim played over past telemetry: who would have been asked to give cards back, when, and whether they worked again after that. What a site looks at before
//! a policy goes live.
//!
//! Start at [`Books::replay_reclaim`]. The rounds are those of the service, a minute apart, in the mode `shadow`: every warning counts as delivered, nobody
//! asks for more time. Does not: write, tell or carry out anything.

use crate::books::Books;
use crate::error::Error;
use cardhour_books::attempt::Attempt;
use cardhour_books::observed::Seen;
use cardhour_books::report::local;
use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_decisions::decision::{Decision, Mode};
use cardhour_decisions::kept::KeptLease;
use cardhour_decisions::policy::ReclaimPolicy;
use cardhour_decisions::round::{RoundInput, reads_from, round};
use cardhour_domain::{Activity, AttemptKey, CardTime, Interval, Name, Reading, Sample, Timestamp};
use cardhour_ledger::Watched;
use std::collections::BTreeMap;

/// Between two rounds. Unit: milliseconds.
const STEP_MS: i64 = 60_000;

impl Books {
    /// What would have been taken back from `since` on, up to `until` or the last that nodes told of: a row a stop.
    ///
    /// Errors: the policy is faulty; the time is empty; the ledger's own.
    pub async fn replay_reclaim(&self, since: Timestamp, until: Option<Timestamp>) -> Result<Table, Error> {
        let policy = self.reclaim_policy()?;
        let reading = self.ledger().read().await?;
        let from = reads_from(since, &policy, &[]);
        let far = until.unwrap_or_else(|| Timestamp::from_unix_ms(i64::MAX / 2_000));
        let watched = match Interval::new(from, far) {
            Some(during) => reading.watched(during).await?.unwrap_or_default(),
            None => Watched::default(),
        };
        let told_until = watched.samples.iter().map(|sample| sample.during.end()).max();
        let until = until.into_iter().chain(told_until).min().unwrap_or(since);
        let Some(during) = Interval::new(since, until) else { return Err(Error::NothingTold { since }) };
        let attempts = reading.held_in(during).await?;
        let past = Past::of(watched, attempts);
        let playing = tokio::task::spawn_blocking(move || play(&policy, &past, during));
        let played = playing.await.expect("rounds are made or their fault is a defect of ours");
        let mut table = self.table_of(&played, during);
        self.remark(&mut table);
        Ok(table)
    }

    fn table_of(&self, stops: &[Stop], during: Interval) -> Table {
        let zone = self.zone();
        let text = |value: &Option<Name>| value.clone().map_or(Value::Absent, Value::Text);
        let instant = |at: Timestamp| Value::Text(local(zone, at).into());
        let rows = stops.iter().map(|stop| {
            vec![
                Value::Text(stop.decision.attempt_key.as_ref().map_or("", AttemptKey::job).into()),
                text(&stop.decision.user),
                text(&stop.decision.project),
                text(&stop.decision.class),
                stop.decision.idle_since.map_or(Value::Absent, instant),
                instant(stop.decision.at),
                instant(stop.held_until),
                stop.decision.cards.map_or(Value::Absent, |cards| Value::Decimal(cards.cards())),
                Value::Decimal(stop.freed().card_hours()),
                stop.worked_at.map_or(Value::Absent, instant),
            ]
        });
        let columns = [
            ("job", Kind::Text),
            ("user", Kind::Text),
            ("project", Kind::Text),
            ("class", Kind::Text),
            ("idle_since", Kind::Text),
            ("stopped_at", Kind::Text),
            ("held_until", Kind::Text),
            ("cards", Kind::Hours),
            ("freed_card_hours", Kind::Hours),
            ("worked_again_at", Kind::Text),
        ];
        let rows: Vec<Vec<Value>> = rows.collect();
        let freed: CardTime = stops.iter().map(Stop::freed).fold(CardTime::ZERO, |sum, time| sum + time);
        let again = stops.iter().filter(|stop| stop.worked_at.is_some()).count();
        let notes = vec![
            format!("{} jobs would have been stopped, {} card-hours freed", stops.len(), freed.card_hours().round_dp(2)),
            match again {
                0 => "none of them worked again later".to_owned(),
                again => format!("{again} of them worked again later, wrongly stopped: their owners would have missed the cards"),
            },
            "played as if every warning had been delivered and nobody had asked for more time; nothing was written, told or done".to_owned(),
        ];
        Table {
            title: format!(
                "idle reclaim, played from {} to {}, {zone}",
                local(zone, during.start()),
                local(zone, during.end())
            ),
            columns: columns.map(|(name, kind)| Column { name: name.to_owned(), kind }).to_vec(),
            rows,
            total: None,
            notes,
        }
    }
}

/// A job that would have been stopped.
struct Stop {
    decision: Decision,
    /// Until when it held its cards as it went.
    held_until: Timestamp,
    /// When it was first seen at work after that.
    worked_at: Option<Timestamp>,
}

impl Stop {
    /// Card-time between the stop and when the job let go by itself.
    fn freed(&self) -> CardTime {
        let time = Interval::new(self.decision.at, self.held_until).zip(self.decision.cards);
        time.map_or(CardTime::ZERO, |(time, cards)| CardTime::of(cards, time))
    }
}

/// All that is known of the time, in an order in which rounds find what is theirs.
struct Past {
    seen: Seen,
    samples: Vec<Sample>,
    activity: Vec<Activity>,
    /// How long the longest tick is. Unit: milliseconds.
    longest_ms: i64,
    attempts: Vec<Attempt>,
}

impl Past {
    fn of(watched: Watched, attempts: Vec<Attempt>) -> Self {
        let Watched { mut seen, mut samples, mut activity } = watched;
        samples.sort_by_key(|row| row.during.start());
        activity.sort_by_key(|row| row.during.start());
        seen.observations.sort_by_key(|row| row.during.start());
        seen.watches.sort_by_key(|row| row.during.start());
        let lengths = samples.iter().map(|row| row.during).chain(activity.iter().map(|row| row.during));
        let longest_ms = lengths.map(|tick| tick.end().ms_since(tick.start())).max().unwrap_or(0);
        Self { seen, samples, activity, longest_ms, attempts }
    }

    /// Who was seen from `from` on, as it was known at `at`.
    fn seen_in(&self, from: Timestamp, at: Timestamp) -> Seen {
        let cut = |during: Interval| Interval::new(during.start(), during.end().min(at)).filter(|cut| cut.end() > from);
        let observations = self.seen.observations.iter().take_while(|row| row.during.start() < at);
        let watches = self.seen.watches.iter().take_while(|row| row.during.start() < at);
        Seen {
            observations: observations
                .filter_map(|row| cut(row.during).map(|during| cardhour_domain::Observation { during, ..row.clone() }))
                .collect(),
            watches: watches
                .filter_map(|row| cut(row.during).map(|during| cardhour_domain::Watch { during, ..row.clone() }))
                .collect(),
            devices: self.seen.devices.iter().filter(|device| device.at <= at).cloned().collect(),
        }
    }

    /// Attempts that held cards at `at`, as open as they were then.
    fn running(&self, at: Timestamp) -> Vec<Attempt> {
        let held = self.attempts.iter().filter(|attempt| {
            attempt.started_at.is_some_and(|start| start <= at)
                && attempt.ended_at.or(attempt.as_of).is_some_and(|end| at < end)
        });
        held.map(|attempt| Attempt { ended_at: None, is_final: false, as_of: Some(at), ..attempt.clone() }).collect()
    }
}

/// Rows, by start, that overlap `[from, at)` and had been read by `at`.
fn between<R>(rows: &[R], during: impl Fn(&R) -> Interval, longest_ms: i64, from: Timestamp, at: Timestamp) -> &[R] {
    let first = rows.partition_point(|row| during(row).start().unix_ms() + longest_ms <= from.unix_ms());
    let last = rows.partition_point(|row| during(row).start().unix_ms() + longest_ms <= at.unix_ms());
    &rows[first.min(last)..last]
}

fn play(policy: &ReclaimPolicy, past: &Past, during: Interval) -> Vec<Stop> {
    let mut kept: Vec<KeptLease> = Vec::new();
    let mut stops: BTreeMap<AttemptKey, Stop> = BTreeMap::new();
    let mut at = during.start();
    while at <= during.end() {
        let from = reads_from(at, policy, &kept);
        let (running, seen) = (past.running(at), past.seen_in(from, at));
        let output = round(RoundInput {
            at,
            policy,
            mode: Mode::Shadow,
            source: Reading::Seen(()),
            opt_outs: Reading::Seen(()),
            running: &running,
            seen: &seen,
            samples: between(&past.samples, |row| row.during, past.longest_ms, from, at),
            activity: between(&past.activity, |row| row.during, past.longest_ms, from, at),
            least_power_mw: &BTreeMap::new(),
            kept: &kept,
            requests: &[],
            notices: &[],
            checkpoints: &[],
            uids: &BTreeMap::new(),
        });
        for decision in output.decisions {
            let Some(key) = decision.attempt_key.clone() else { continue };
            match (&*decision.action, stops.get_mut(&key)) {
                ("stop", None) => {
                    stops.insert(key, Stop { held_until: decision.at, worked_at: None, decision });
                }
                // Only work that was seen undoes a stop.
                ("withdraw", Some(stop)) if decision.phase_from.as_deref() == Some("stopping") => {
                    stop.worked_at.get_or_insert(decision.at);
                }
                _ => {}
            }
        }
        for lease in &output.leases {
            if let Some(stop) = stops.get_mut(&lease.attempt_key) {
                stop.held_until = at;
            }
        }
        kept = output.leases;
        let Some(next) = at.checked_add_ms(STEP_MS) else { break };
        at = next;
    }
    stops.into_values().collect()
}
