//! A job, minute by minute, for tests.

use super::*;
use crate::work_class::WorkClass;
use cardhour_domain::{AttemptKey, CardShare, Gap, Interval, Name, Percent, Reading, Timestamp};
use std::collections::BTreeMap;
use std::ops::Range;

pub(super) const MINUTE: i64 = 60_000;

pub(super) fn percent(percent: i32) -> Percent {
    Percent::from_thousandths(percent * 1000).unwrap()
}

pub(super) fn at(minute: i64) -> Timestamp {
    Timestamp::from_unix_ms(minute * MINUTE)
}

/// A card that does nothing and holds nothing.
pub(super) fn quiet_card() -> CardReading {
    let zero = Reading::Seen(percent(0));
    CardReading {
        sm_active: zero,
        duty_cycle: zero,
        memory_active: zero,
        media_active: zero,
        graphics_processes: Reading::Seen(0),
        link_bytes_per_s: Reading::Seen(0),
        power_above_idle: zero,
        memory_used: zero,
        own_sm_active: Reading::Missing(Gap::NotRecorded),
    }
}

pub(super) fn busy_card() -> CardReading {
    let busy = Reading::Seen(percent(90));
    CardReading { sm_active: busy, duty_cycle: busy, memory_used: busy, ..quiet_card() }
}

pub(super) fn unseen_card(gap: Gap) -> CardReading {
    let none = Reading::Missing(gap);
    CardReading {
        sm_active: none,
        duty_cycle: none,
        memory_active: none,
        media_active: none,
        graphics_processes: Reading::Missing(gap),
        link_bytes_per_s: Reading::Missing(gap),
        power_above_idle: none,
        memory_used: none,
        own_sm_active: none,
    }
}

pub(super) fn quiet_processes() -> ProcessReading {
    ProcessReading {
        cpu_milli_cores: Check::Seen(0),
        io_bytes_per_s: Check::Seen(0),
        terminal: Check::Seen(Presence::Unattended),
        kernel: Check::NotThere,
    }
}

/// A job without work, seen over the minute before `minute`.
pub(super) fn quiet(minute: i64, cards: usize) -> Observation {
    let card = CardNow { share: CardShare::CARD, is_shared: false, reading: quiet_card() };
    Observation {
        at: at(minute),
        during: Interval::new(at(minute - 1), at(minute)).unwrap(),
        cards: (0..cards).map(|n| (Name::from(format!("GPU-{n}")), card)).collect(),
        processes: quiet_processes(),
        attribution: Attribution::Proven,
        opt_outs: Reading::Seen(Vec::new()),
        extension_requests: Vec::new(),
        notice: None,
        checkpoint: CheckpointSigns { activity: Check::Seen(CheckpointActivity::Resting), done_at: None },
        reported_phase: None,
        release: Reading::Seen(Release::Held),
    }
}

impl Observation {
    /// Every card's reading.
    pub(super) fn all_cards(&mut self, reading: CardReading) {
        for card in self.cards.values_mut() {
            card.reading = reading;
        }
    }
}

/// A job that is told of minute by minute; warnings are delivered a minute after they are given.
pub(super) struct Story {
    pub lease: Lease,
    pub policy: LeasePolicy,
    pub cards: usize,
    pub delivers: bool,
    pub steps: Vec<Step>,
    notice: Option<u32>,
}

impl Story {
    pub fn of(class: WorkClass, cards: usize) -> Self {
        let job = Job {
            key: AttemptKey::new("lab", "7", "db1"),
            owner: "ada".into(),
            class: Some(class),
            started_at: Some(at(0)),
            signal: SignalTarget::MainProcess,
            checkpoint: CheckpointWay::OnSignal,
        };
        let policy = LeasePolicy::default();
        Self { lease: Lease::new(job), policy, cards, delivers: true, steps: Vec::new(), notice: None }
    }

    /// Minutes in which nothing happens but what `change` says. Returns what came of them.
    pub fn tell(&mut self, minutes: Range<i64>, change: impl Fn(i64, &mut Observation)) -> Vec<String> {
        let mut said = Vec::new();
        for minute in minutes {
            let mut seen = quiet(minute, self.cards);
            if let Some(notice) = self.notice.take() {
                let delivered = if self.delivers { Ok(at(minute)) } else { Err("mailbox unknown".into()) };
                seen.notice = Some(NoticeReport { notice, delivered });
            }
            change(minute, &mut seen);
            said.extend(self.show(&seen).into_iter().map(|step| format!("{minute} {step}")));
        }
        said
    }

    /// One observation. Returns what came of it.
    pub fn show(&mut self, seen: &Observation) -> Vec<String> {
        let (lease, steps) = step(self.lease.clone(), seen, &self.policy);
        self.lease = lease;
        for step in &steps {
            if let Action::Warn { notice, .. } = step.action {
                self.notice = Some(notice);
            }
        }
        let said = steps.iter().map(|step| short(&step.action)).collect();
        self.steps.extend(steps);
        said
    }

    pub fn last(&self) -> &Step {
        self.steps.last().expect("a step")
    }
}

/// An action in two words.
pub(super) fn short(action: &Action) -> String {
    match action {
        Action::Suspect => "suspect".to_owned(),
        Action::Advise(IdleAdvice::IdleCards(cards)) => {
            format!("advise {}", cards.iter().map(Name::as_str).collect::<Vec<_>>().join("+"))
        }
        Action::Advise(IdleAdvice::NoRequests) => "advise requests".to_owned(),
        Action::Warn { notice, .. } => format!("warn {notice}"),
        Action::BeginGrace { until } => format!("grace {}", until.unix_ms() / MINUTE),
        Action::AskCheckpoint { until, .. } => format!("ask {}", until.unix_ms() / MINUTE),
        Action::Stop { checkpoint: CheckpointOutcome::Seen { at }, .. } => {
            format!("stop seen {}", at.unix_ms() / MINUTE)
        }
        Action::Stop { checkpoint: CheckpointOutcome::NotSeen { waited_ms }, .. } => {
            format!("stop unseen {}", waited_ms / MINUTE)
        }
        Action::Stop { checkpoint: CheckpointOutcome::NotAsked, .. } => "stop".to_owned(),
        Action::Reclaimed => "reclaimed".to_owned(),
        Action::Extended { until, .. } => format!("extended {}", until.unix_ms() / MINUTE),
        Action::RefuseExtension { why, .. } => format!("refuse {why:?}"),
        Action::Withdraw(why) => format!("withdraw {why:?}"),
        Action::Spare(_) => "spare".to_owned(),
        Action::Alert(alert) => format!("alert {alert:?}"),
    }
}

pub(super) fn leases(jobs: i64) -> BTreeMap<AttemptKey, Lease> {
    (0..jobs)
        .map(|n| {
            let mut job = Story::of(WorkClass::Training, 1).lease.job().clone();
            job.key = AttemptKey::new("lab", &n.to_string(), "db1");
            (job.key.clone(), Lease::new(job))
        })
        .collect()
}
