//! From one observation to the next.

use super::evidence::{Action, Alert, CheckpointOutcome, Evidence, ExtensionRefusal, IdleAdvice, Step, Withdrawal};
use super::signals::{judge_card, judge_processes};
use super::watch::{Ending, earlier, later};
use super::{
    Attribution, CardEvidence, Check, CheckpointActivity, CheckpointWay, ClassPolicy, ExtensionRequest, Lease,
    LeasePolicy, Observation, OptOut, Phase, Reclaim, Release, UnseenCheckpoint, Verdict,
};
use cardhour_domain::{CardShare, CardTime, Percent, Timestamp};
use std::collections::BTreeSet;

/// Whether a lease may go forward at all this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// It may.
    Free,
    /// It may be withdrawn, and not go forward.
    Held,
}

/// What a job's lease is after an observation, and what is to be done.
///
/// Shape: steps in the order they belong. Observations may come in any order and more than once; one that is no newer than another that was taken in
/// may withdraw and never goes forward. Errors: none; what isn't known keeps the job.
pub fn step(lease: Lease, seen: &Observation, policy: &LeasePolicy) -> (Lease, Vec<Step>) {
    step_at_pace(lease, seen, policy, Pace::Free)
}

/// What a job's lease is after an observation that newer ones follow: it is taken in and may withdraw, and nothing goes forward on it.
///
/// For whoever comes to several ticks at once: all but the newest are caught up with, in order, and then comes [`step`].
pub fn catch_up(lease: Lease, seen: &Observation, policy: &LeasePolicy) -> (Lease, Vec<Step>) {
    step_at_pace(lease, seen, policy, Pace::Held)
}

pub(super) fn step_at_pace(lease: Lease, seen: &Observation, policy: &LeasePolicy, pace: Pace) -> (Lease, Vec<Step>) {
    if matches!(lease.phase, Phase::Reclaimed { .. }) {
        return (lease, Vec::new());
    }
    let is_newest = lease.now.is_none_or(|now| seen.at > now);
    let now = lease.now.map_or(seen.at, |now| now.max(seen.at));
    let times = policy.of_class(lease.job.class);
    let mut turn = Turn { lease, seen, policy, times, now, is_newest, steps: Vec::new(), endings: BTreeSet::new() };
    turn.take_in();
    turn.judge();
    turn.advise();
    turn.withdraw();
    turn.answer_extensions();
    if is_newest && pace == Pace::Free && turn.is_clear() {
        turn.go_forward();
    }
    turn.escalate();
    (turn.lease, turn.steps)
}

/// One observation in the making.
struct Turn<'a> {
    lease: Lease,
    seen: &'a Observation,
    policy: &'a LeasePolicy,
    times: ClassPolicy,
    now: Timestamp,
    /// No newer one was taken in before.
    is_newest: bool,
    steps: Vec<Step>,
    /// What ended idle times this turn.
    endings: BTreeSet<Ending>,
}

impl Turn<'_> {
    /// Everything that holds whenever it is told: telemetry, checkpoints, what became of a warning.
    fn take_in(&mut self) {
        let Self { lease, seen, policy, now, .. } = self;
        lease.now = Some(*now);
        let first = lease.first_seen_at.map_or(seen.at, |first| first.min(seen.at));
        lease.first_seen_at = Some(first);
        if lease.withdrawn_at.is_some_and(|at| now.ms_since(at) >= policy.forgets_withdrawn_ms) {
            (lease.withdrawn, lease.withdrawn_at) = (0, None);
        }
        if self.is_newest {
            lease.cards = seen.cards.clone();
            lease.watches.retain(|card, _| seen.cards.contains_key(card));
        }
        for (card, card_now) in seen.cards.iter().filter(|(card, _)| lease.cards.contains_key(*card)) {
            let verdict = judge_card(&card_now.reading, card_now.is_shared, &policy.floors);
            let watch = lease.watches.entry(card.clone()).or_default();
            watch.note(seen.during, verdict, *now, policy);
            if matches!(verdict, Verdict::Between | Verdict::Loud) {
                let use_at = seen.during.start();
                lease.first_use_at = Some(lease.first_use_at.map_or(use_at, |first| first.min(use_at)));
                lease.reported_since = None;
            }
        }
        lease.processes.note(seen.during, judge_processes(&seen.processes, &policy.floors), *now, policy);
        lease.checkpoint_at = lease.checkpoint_at.max(seen.checkpoint.done_at);
        if seen.reported_phase.is_some() {
            lease.reported_at = lease.reported_at.max(Some(seen.at));
            lease.reported_since = lease.reported_since.or(Some(seen.at));
        }
        if let (Phase::Notified { notice, warned_at, delivered, .. }, Some(report)) = (&mut lease.phase, &seen.notice)
            && report.notice == *notice
            && !matches!(delivered, Some(Ok(_)))
        {
            *delivered = Some(report.delivered.clone().map(|at| at.clamp(*warned_at, *now)));
        }
    }

    fn judge(&mut self) {
        let judged_from = self.judged_from();
        let Self { lease, policy, now, endings, .. } = self;
        for watch in lease.watches.values_mut() {
            endings.extend(watch.judge(*now, judged_from, policy));
        }
        // A checkpoint that was asked for is work of the processes, and no reason to keep the cards.
        let ending = lease.processes.judge(*now, judged_from, policy);
        let asked = matches!(lease.phase, Phase::CheckpointAsked { .. } | Phase::Stopping { .. });
        endings.extend(ending.filter(|ending| !asked || *ending == Ending::Attended));
    }

    /// From when on the job is judged: its start-up grace, and longer while it hasn't used its cards (R12).
    fn judged_from(&self) -> Timestamp {
        let first_seen = self.lease.first_seen_at.unwrap_or(self.now);
        let start = self.lease.job.started_at.unwrap_or(first_seen);
        let by_its_start = match self.lease.first_use_at {
            Some(used) => used.max(later(start, self.times.startup_grace_ms)).min(later(start, self.limit_ms())),
            None => later(start, self.limit_ms()),
        };
        self.lease.judged_from.map_or(by_its_start, |from| from.max(by_its_start))
    }

    fn limit_ms(&self) -> i64 {
        self.times.first_use_limit_ms.max(self.times.startup_grace_ms)
    }

    /// Some of the cards idle and others at work: a line for the owner, once for each card and idle time.
    fn advise(&mut self) {
        let idle: BTreeSet<_> =
            self.lease.watches.iter().filter(|(_, w)| w.idle_since().is_some()).map(|(card, _)| card.clone()).collect();
        let is_part = !idle.is_empty() && idle.len() < self.lease.cards.len();
        if is_part && self.is_newest && !idle.is_subset(&self.lease.advised) {
            self.push(Action::Advise(IdleAdvice::IdleCards(idle.clone())));
        }
        if is_part || idle.is_empty() {
            self.lease.advised = idle;
        }
    }

    /// Back to active, from wherever a lease is, when the job isn't idle after all.
    fn withdraw(&mut self) {
        let why = match &self.lease.phase {
            Phase::Active | Phase::Reclaimed { .. } => return,
            Phase::Extended { until } => {
                // Asked for and billed, it holds to its end, whatever the job does meanwhile.
                if self.now >= *until && self.why_not_idle(true).is_some() {
                    self.lease.phase = Phase::Active;
                }
                return;
            }
            Phase::Stopping { .. } => {
                // Ordered, and not undone because a signal is missing: only by work that was seen.
                if self.is_at_work() {
                    self.alert(Alert::WorksAfterStop);
                    self.back_to_active(Withdrawal::Work);
                }
                return;
            }
            Phase::Suspect { .. } | Phase::Notified { .. } | Phase::Grace { .. } => self.why_not_idle(true),
            Phase::CheckpointAsked { .. } => self.why_not_idle(false),
        };
        let opted_out = self.opt_out().is_some().then_some(Withdrawal::OptedOut);
        if let Some(why) = why.or(opted_out) {
            self.back_to_active(why);
        }
    }

    /// Whether work, or somebody, was seen; not only that nothing was.
    fn is_at_work(&self) -> bool {
        self.endings.contains(&Ending::Work) || self.is_attended()
    }

    /// Whether this observation says that somebody is there, and is of the last window.
    fn is_attended(&self) -> bool {
        self.seen.during.end() > earlier(self.now, self.policy.window_ms)
            && judge_processes(&self.seen.processes, &self.policy.floors) == Verdict::Attended
    }

    /// Why the job isn't idle; none when it is. `with_processes`: whether what its processes do counts.
    fn why_not_idle(&self, with_processes: bool) -> Option<Withdrawal> {
        if self.is_attended() {
            return Some(Withdrawal::Attended);
        }
        let ended = self.endings.iter().max().map(|ending| match ending {
            Ending::Attended => Withdrawal::Attended,
            Ending::Work => Withdrawal::Work,
            Ending::Unseen => Withdrawal::Unseen,
        });
        let is_idle = !self.lease.cards.is_empty()
            && self
                .lease
                .cards
                .keys()
                .all(|card| self.lease.watches.get(card).is_some_and(|w| w.idle_since().is_some()))
            && (!with_processes || self.lease.processes.idle_since().is_some());
        if !is_idle {
            return Some(ended.unwrap_or(Withdrawal::Unseen));
        }
        // Once it was asked for a checkpoint, that it reports to write one is an answer.
        (with_processes && self.has_reported()).then_some(Withdrawal::Reported)
    }

    /// Whether the job said of late that it sets up, loads or writes, and hasn't been saying so for too long.
    fn has_reported(&self) -> bool {
        let is_recent = self.lease.reported_at.is_some_and(|at| at > earlier(self.now, self.policy.window_ms));
        let since = self.lease.reported_since;
        is_recent && since.is_some_and(|since| self.now.ms_since(since) < self.policy.reported_limit_ms)
    }

    fn back_to_active(&mut self, why: Withdrawal) {
        if why != Withdrawal::OptedOut {
            self.lease.withdrawn += 1;
            self.lease.withdrawn_at = Some(self.now);
        }
        self.lease.phase = Phase::Active;
        self.push(Action::Withdraw(why));
        self.lease.told.clear();
    }

    fn answer_extensions(&mut self) {
        for request in &self.seen.extension_requests {
            if !self.lease.answered.insert(request.id.clone()) {
                continue;
            }
            match self.grant(request) {
                Ok(until) => {
                    self.lease.extensions += 1;
                    self.lease.extended_ms += request.for_ms;
                    self.lease.phase = Phase::Extended { until };
                    self.lease.told.clear();
                    self.push(Action::Extended { request: request.clone(), until });
                }
                Err(why) => self.push(Action::RefuseExtension { request: request.clone(), why }),
            }
        }
    }

    fn grant(&self, request: &ExtensionRequest) -> Result<Timestamp, ExtensionRefusal> {
        let limits = self.policy.extensions;
        let left_ms = limits.longest_ms.min(limits.total_ms - self.lease.extended_ms);
        if request.by != self.lease.job.owner {
            return Err(ExtensionRefusal::NotTheOwner);
        }
        if self.lease.extensions >= limits.most {
            return Err(ExtensionRefusal::TooOften { most: limits.most });
        }
        if request.for_ms <= 0 || request.for_ms > left_ms {
            return Err(ExtensionRefusal::TooLong { most_ms: left_ms });
        }
        let from = match &self.lease.phase {
            Phase::Stopping { .. } | Phase::Reclaimed { .. } => return Err(ExtensionRefusal::TooLate),
            Phase::Extended { until } => self.now.max(*until),
            Phase::Active
            | Phase::Suspect { .. }
            | Phase::Notified { .. }
            | Phase::Grace { .. }
            | Phase::CheckpointAsked { .. } => self.now,
        };
        Ok(later(from, request.for_ms))
    }

    /// Whether nothing stands in the way of going forward. What stands there is told to the operator, once.
    fn is_clear(&mut self) -> bool {
        // After a stop only the devices are waited for.
        if let Phase::Stopping { .. } = self.lease.phase {
            return true;
        }
        let is_idle = self.why_not_idle(false).is_none();
        if is_idle && let Attribution::Unproven { .. } = self.seen.attribution {
            self.alert(Alert::OwnerUnproven);
            return false;
        }
        if is_idle && self.seen.opt_outs.clone().seen().is_none() {
            self.alert(Alert::OptOutsUnread);
            return false;
        }
        if let Some(opt_out) = self.opt_out() {
            if self.why_not_idle(true).is_none() && self.lease.spared.insert(opt_out.clone()) {
                self.push(Action::Spare(opt_out));
            }
            return false;
        }
        self.is_quiet_now() && self.is_checkpoint_at_rest()
    }

    /// Whether this very observation says that nothing works.
    fn is_quiet_now(&self) -> bool {
        let rests = |verdict| matches!(verdict, Verdict::Quiet | Verdict::Between);
        let floors = &self.policy.floors;
        let cards = self.seen.cards.values().all(|card| rests(judge_card(&card.reading, card.is_shared, floors)));
        let processes = judge_processes(&self.seen.processes, floors);
        let writes = matches!(self.lease.phase, Phase::CheckpointAsked { .. }) && processes == Verdict::Loud;
        cards && (rests(processes) || writes)
    }

    fn is_checkpoint_at_rest(&self) -> bool {
        match self.seen.checkpoint.activity {
            Check::NotThere | Check::Seen(CheckpointActivity::Resting) => true,
            Check::Failed(_) | Check::Seen(CheckpointActivity::Starting | CheckpointActivity::Writing) => false,
        }
    }

    fn opt_out(&self) -> Option<OptOut> {
        let all = self.seen.opt_outs.clone().seen()?;
        all.into_iter().filter(|opt_out| opt_out.is_in_force(self.now)).max_by_key(|opt_out| opt_out.until)
    }

    /// One phase further, when its time has come.
    fn go_forward(&mut self) {
        match self.lease.phase.clone() {
            Phase::Active => self.suspect(),
            Phase::Suspect { .. } => self.warn_when_due(),
            Phase::Notified { notice, warned_at, tried_at, delivered } => {
                self.wait_for_delivery(notice, warned_at, tried_at, delivered);
            }
            Phase::Grace { until, .. } if self.now >= until => self.ask_or_stop(),
            Phase::CheckpointAsked { asked_at, until } => self.wait_for_checkpoint(asked_at, until),
            Phase::Stopping { evidence, .. } if self.seen.release.seen() == Some(Release::Free) => {
                self.push_with(Action::Reclaimed, *evidence);
                self.lease.phase = Phase::Reclaimed { at: self.now };
            }
            Phase::Extended { until } if self.now >= until => {
                self.lease.phase = Phase::Active;
                self.suspect();
            }
            Phase::Grace { .. } | Phase::Stopping { .. } | Phase::Extended { .. } | Phase::Reclaimed { .. } => {}
        }
    }

    fn suspect(&mut self) {
        if self.why_not_idle(true).is_some() {
            return;
        }
        self.lease.phase = Phase::Suspect { since: self.now };
        self.lease.episodes += 1;
        match self.times.reclaim {
            Reclaim::AfterGrace => self.push(Action::Suspect),
            Reclaim::AdviceOnly => self.push(Action::Advise(IdleAdvice::NoRequests)),
        }
    }

    fn warn_when_due(&mut self) {
        let lease_ms = if self.holds_a_model() {
            self.times.loaded_lease_ms.max(self.times.lease_ms)
        } else {
            self.times.lease_ms
        };
        // What comes and goes is work of a kind, or badly seen: either way it is given longer.
        let lease_ms =
            lease_ms + self.policy.window_ms * i64::from(self.lease.withdrawn.min(self.policy.most_withdrawn));
        let is_due = self.idle_since().is_some_and(|since| self.now.ms_since(since) >= lease_ms);
        if self.times.reclaim == Reclaim::AdviceOnly || !is_due {
            return;
        }
        self.lease.notices += 1;
        let notice = self.lease.notices;
        self.lease.phase = Phase::Notified { notice, warned_at: self.now, tried_at: self.now, delivered: None };
        self.push(Action::Warn { notice, grace_ms: self.times.grace_ms });
    }

    /// Memory that is taken is a model that would have to be loaded again. What isn't known counts as taken.
    fn holds_a_model(&self) -> bool {
        let used = |card: &super::CardNow| card.reading.memory_used.seen();
        self.lease.cards.values().any(|card| used(card).is_none_or(|used| used >= self.policy.loaded_from))
    }

    fn wait_for_delivery(
        &mut self,
        notice: u32,
        warned_at: Timestamp,
        tried_at: Timestamp,
        delivered: Option<Result<Timestamp, cardhour_domain::Name>>,
    ) {
        match delivered {
            Some(Ok(at)) => {
                let until = later(at, self.times.grace_ms);
                self.lease.phase = Phase::Grace { notice, until };
                self.push(Action::BeginGrace { until });
            }
            Some(Err(_)) => {
                self.alert(Alert::WarningUndeliverable);
                if self.now.ms_since(tried_at) >= self.policy.retry_warning_ms {
                    self.lease.phase = Phase::Notified { notice, warned_at, tried_at: self.now, delivered: None };
                    self.push(Action::Warn { notice, grace_ms: self.times.grace_ms });
                }
            }
            None => {}
        }
    }

    fn ask_or_stop(&mut self) {
        match self.lease.job.checkpoint {
            CheckpointWay::OnSignal => {
                let until = later(self.now, self.times.checkpoint_wait_ms);
                self.lease.phase = Phase::CheckpointAsked { asked_at: self.now, until };
                self.push(Action::AskCheckpoint { target: self.lease.job.signal.clone(), until });
            }
            CheckpointWay::None => self.stop(CheckpointOutcome::NotAsked),
        }
    }

    fn wait_for_checkpoint(&mut self, asked_at: Timestamp, until: Timestamp) {
        match self.lease.checkpoint_at.filter(|at| *at >= asked_at) {
            Some(at) => self.stop(CheckpointOutcome::Seen { at }),
            None if self.now < until => {}
            None => match self.policy.unseen_checkpoint {
                UnseenCheckpoint::StopAnyway => {
                    self.stop(CheckpointOutcome::NotSeen { waited_ms: self.now.ms_since(asked_at) });
                }
                UnseenCheckpoint::KeepAndAlert => self.alert(Alert::CheckpointNotSeen),
            },
        }
    }

    fn stop(&mut self, checkpoint: CheckpointOutcome) {
        self.push(Action::Stop { target: self.lease.job.signal.clone(), checkpoint });
        let evidence = Box::new(self.evidence());
        self.lease.phase = Phase::Stopping { since: self.now, checkpoint, evidence };
    }

    /// What takes too long is told to the operator.
    fn escalate(&mut self) {
        match self.lease.phase {
            Phase::CheckpointAsked { until, .. } if self.now >= until && !self.is_checkpoint_at_rest() => {
                self.alert(Alert::CheckpointStuck);
            }
            Phase::Stopping { since, .. } if self.now.ms_since(since) >= self.policy.release_limit_ms => {
                self.alert(Alert::StillHeld);
            }
            Phase::Active
            | Phase::Suspect { .. }
            | Phase::Notified { .. }
            | Phase::Grace { .. }
            | Phase::CheckpointAsked { .. }
            | Phase::Stopping { .. }
            | Phase::Extended { .. }
            | Phase::Reclaimed { .. } => {}
        }
    }

    /// Tells the operator, once an episode.
    fn alert(&mut self, alert: Alert) {
        if self.lease.told.insert(alert) {
            let evidence = match &self.lease.phase {
                Phase::Stopping { evidence, .. } => (**evidence).clone(),
                Phase::Active
                | Phase::Suspect { .. }
                | Phase::Notified { .. }
                | Phase::Grace { .. }
                | Phase::CheckpointAsked { .. }
                | Phase::Extended { .. }
                | Phase::Reclaimed { .. } => self.evidence(),
            };
            self.push_with(Action::Alert(alert), evidence);
        }
    }

    fn push(&mut self, action: Action) {
        let evidence = self.evidence();
        self.push_with(action, evidence);
    }

    fn push_with(&mut self, action: Action, evidence: Evidence) {
        self.steps.push(Step {
            job: self.lease.job.key.clone(),
            owner: self.lease.job.owner.clone(),
            at: self.now,
            valid_until: later(self.now, self.policy.act_within_ms),
            action,
            evidence,
        });
    }

    /// Since when all the job's cards are idle, and its processes where they count.
    fn idle_since(&self) -> Option<Timestamp> {
        let cards = self.lease.cards.keys().map(|card| self.lease.watches.get(card)?.idle_since());
        let cards = cards.collect::<Option<Vec<_>>>()?.into_iter().max()?;
        match self.lease.phase {
            Phase::CheckpointAsked { .. } | Phase::Stopping { .. } => Some(cards),
            Phase::Active
            | Phase::Suspect { .. }
            | Phase::Notified { .. }
            | Phase::Grace { .. }
            | Phase::Extended { .. }
            | Phase::Reclaimed { .. } => Some(cards.max(self.lease.processes.idle_since()?)),
        }
    }

    fn evidence(&self) -> Evidence {
        let Self { lease, policy, now, .. } = self;
        let idle_since = self.idle_since();
        let part_ms = |share: CardShare, ms: i64| CardTime::from_part_ms(i128::from(share.parts()) * i128::from(ms));
        let idle = lease.cards.iter().filter_map(|(card, card_now)| {
            let seen_ms = lease.watches.get(card)?.idle_seen_ms(idle_since?, *now);
            Some(part_ms(card_now.share, seen_ms))
        });
        let coverage = lease.watches.values().map(|watch| watch.coverage(*now, policy)).min();
        let lost_from = lease.checkpoint_at.or(lease.job.started_at);
        let shares: CardShare = lease.cards.values().map(|card| card.share).sum();
        Evidence {
            idle_since,
            idle: idle.sum(),
            coverage: coverage.unwrap_or(Percent::from_thousandths(0).expect("0 is in range")),
            window_ms: policy.window_ms,
            cards: lease
                .cards
                .iter()
                .map(|(card, card_now)| CardEvidence {
                    card_uuid: card.clone(),
                    share: card_now.share,
                    idle_since: lease.watches.get(card).and_then(|watch| watch.idle_since()),
                    memory_used: card_now.reading.memory_used.seen(),
                    memory_touched: card_now.reading.memory_active.seen(),
                })
                .collect(),
            checkpoint_at: lease.checkpoint_at,
            lost_if_stopped: lost_from.map(|from| part_ms(shares, now.ms_since(from).max(0))),
            withdrawn: lease.withdrawn,
        }
    }
}
