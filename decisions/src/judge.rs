//! The round itself: each job's lease is brought up to what is known, and what comes of it is written down.

use crate::acting::{Deed, Reached};
use crate::decision::{Decision, Mode, card_ms};
use crate::kept::{Freed, Kept, KeptLease};
use crate::looks::Looks;
use crate::round::{Matter, OperatorAlert, RoundInput, RoundOutput, SeenCheckpoint, Warning, Wish};
use crate::rows;
use crate::who::{self, RunningJob};
use cardhour_domain::{AttemptKey, CardShare, CardTime, Name, Reading, Timestamp};
use cardhour_scheduler_core::lease::{
    Action, Alert, Attribution, Check, CheckpointSigns, CheckpointWay, ExtensionRequest, Job, Lease, NoticeReport,
    Observation, OptOut, Phase, ProcessReading, Release, Round, RoundAlert, SignalTarget, Step, catch_up, step_round,
};
use cardhour_scheduler_core::work_class::WorkClass;
use std::collections::BTreeMap;

/// A lease of a job of which neither records nor nodes know anything is kept for this long. Unit: milliseconds.
const FORGOTTEN_AFTER_MS: i64 = 24 * 3_600_000;

/// Leases and what is seen of them, by cluster.
type Rounds = BTreeMap<Name, (BTreeMap<AttemptKey, Lease>, BTreeMap<AttemptKey, Observation>)>;

/// A round in the making.
pub(crate) struct Judging<'a> {
    input: RoundInput<'a>,
    jobs: BTreeMap<AttemptKey, RunningJob>,
    kept: BTreeMap<AttemptKey, Kept>,
    looks: Looks<'a>,
    output: RoundOutput,
    /// Jobs whose telemetry is too old to act on, by cluster.
    too_old: BTreeMap<Name, u32>,
}

impl<'a> Judging<'a> {
    pub fn of(input: RoundInput<'a>) -> Self {
        let mut output = RoundOutput::default();
        let mut kept = BTreeMap::new();
        for lease in input.kept {
            match lease.read() {
                Ok(read) => {
                    kept.insert(lease.attempt_key.clone(), read);
                }
                Err(reason) => output.alerts.push(OperatorAlert {
                    alert: "lease_unreadable".into(),
                    cluster: None,
                    job: Some(lease.attempt_key.clone()),
                    words: format!("the lease of {} can't be read and begins anew: {reason}", lease.attempt_key).into(),
                }),
            }
        }
        let mut jobs = who::running(&input, &kept);
        if input.mode == Mode::Off {
            jobs.clear();
        }
        let looks = Looks::of(&input, &jobs);
        Self { input, jobs, kept, looks, output, too_old: BTreeMap::new() }
    }

    pub fn finish(mut self) -> RoundOutput {
        if self.input.mode == Mode::Off {
            self.call_all_off();
            return self.output;
        }
        self.let_go_of_what_is_gone();
        // By cluster: where one's telemetry is away, the others go on.
        let mut rounds = Rounds::new();
        let keys: Vec<AttemptKey> = self.jobs.keys().cloned().collect();
        for key in keys {
            if let Some(seen) = self.bring_up(&key) {
                let (leases, observations) = rounds.entry(self.kept[&key].told.cluster.clone()).or_default();
                leases.insert(key.clone(), self.kept[&key].lease.clone());
                observations.insert(key, seen);
            }
        }
        self.wait_for_freed_cards(&mut rounds);
        for (cluster, (leases, observations)) in rounds {
            let outcome =
                step_round(leases, &Round { source: self.input.source, observations }, &self.input.policy.lease);
            self.blind(&cluster, outcome.alert);
            let mut steps: BTreeMap<AttemptKey, Vec<Step>> = BTreeMap::new();
            for step in outcome.steps {
                steps.entry(step.job.clone()).or_default().push(step);
            }
            for (key, lease) in outcome.leases {
                self.take_over(&key, lease, steps.remove(&key).unwrap_or_default());
            }
        }
        for (cluster, jobs) in std::mem::take(&mut self.too_old) {
            let minutes = self.input.policy.lease.act_within_ms / 60_000;
            let words = format!(
                "of {jobs} idle jobs of {cluster} nothing newer than {minutes} min is known, so they aren't stopped: let the \
                 collectors seal what they see every minute (seal_after_s = 60)"
            );
            self.output.alerts.push(OperatorAlert {
                alert: "telemetry_too_old".into(),
                cluster: Some(cluster),
                job: None,
                words: words.into(),
            });
        }
        self.remind();
        self.output.decisions.sort_by(|a, b| a.attempt_key.cmp(&b.attempt_key));
        self.output.leases = self.kept.values().map(|kept| KeptLease::of(kept, self.input.at)).collect();
        self.output
    }

    /// The mode for a job: only what can be carried out is.
    fn mode_of(&self, job: &RunningJob) -> (Mode, Option<String>) {
        let told = &job.told;
        let mode = self.input.policy.mode_of(self.input.mode, &told.cluster, told.queue.as_deref());
        // Who isn't seen any more is what it was: its lease ends by that, not by another mode.
        let was_act = || self.kept.get(&job.key).is_some_and(|kept| kept.mode == Mode::Act);
        match (mode, self.reached(job).order(&Name::new(), Deed::End, self.input.at)) {
            (Mode::Act, Err(_)) if job.holder.is_none() && was_act() => (mode, None),
            (Mode::Act, Err(reason)) => (Mode::Notify, Some(reason)),
            (Mode::Off | Mode::Shadow | Mode::Notify, _) | (Mode::Act, Ok(_)) => (mode, None),
        }
    }

    fn reached<'j>(&'j self, job: &'j RunningJob) -> Reached<'j> {
        Reached { job, policy: self.input.policy, uids: self.input.uids }
    }

    /// Brings a job's lease up to its horizon. Returns what is seen there; none where it isn't judged this time.
    fn bring_up(&mut self, key: &AttemptKey) -> Option<Observation> {
        let job = self.jobs[key].clone();
        if job.is_suspended {
            self.call_off(key, "its scheduler has it suspended");
            self.kept.remove(key);
            return None;
        }
        let (mode, _) = self.mode_of(&job);
        self.begin(&job, mode);
        self.heed_cancels(key);
        let opt_outs = self.opt_outs(&job);
        let horizon = self.looks.horizon(&job, &self.input);
        let policy = &self.input.policy.lease;
        for glimpse in self.looks.glimpses(&job, horizon, &opt_outs) {
            let lease = &self.kept[key].lease;
            if lease.has_taken_in(&glimpse.observation, &glimpse.device, policy) {
                continue;
            }
            debug_assert!(glimpse.during.end() < horizon, "nothing of after the horizon is told");
            let (lease, steps) = catch_up(lease.clone(), &glimpse.observation, policy);
            self.take_over(key, lease, steps);
        }
        let mut seen = self.looks.at_horizon(&job, horizon, &opt_outs);
        self.add_what_people_said(key, &mut seen);
        let is_old = self.input.at.ms_since(horizon) > policy.act_within_ms;
        match self.kept[key].lease.phase() {
            Phase::Grace { until, .. } | Phase::CheckpointAsked { until, .. } if is_old => {
                if *until <= horizon && mode == Mode::Act {
                    *self.too_old.entry(job.told.cluster.clone()).or_default() += 1;
                }
                let (lease, steps) = catch_up(self.kept[key].lease.clone(), &seen, policy);
                self.take_over(key, lease, steps);
                None
            }
            Phase::Active
            | Phase::Suspect { .. }
            | Phase::Notified { .. }
            | Phase::Grace { .. }
            | Phase::CheckpointAsked { .. }
            | Phase::Stopping { .. }
            | Phase::Extended { .. }
            | Phase::Reclaimed { .. } => Some(seen),
        }
    }

    /// A new lease, or the kept one with what is known of its job now.
    fn begin(&mut self, job: &RunningJob, mode: Mode) {
        let reached = self.reached(job);
        let of_lease = Job {
            key: job.key.clone(),
            owner: job.told.user.clone().unwrap_or_default(),
            class: job.told.class.as_deref().and_then(WorkClass::from_name),
            started_at: job.started_at,
            signal: SignalTarget::MainProcess,
            checkpoint: if reached.checkpoint().is_some() { CheckpointWay::OnSignal } else { CheckpointWay::None },
        };
        let Some(kept) = self.kept.get_mut(&job.key) else {
            let kept = Kept {
                mode,
                lease: Lease::new(of_lease),
                ordered_at: None,
                warned: None,
                freed: None,
                cancelled: Default::default(),
                told: job.told.clone(),
            };
            self.kept.insert(job.key.clone(), kept);
            return;
        };
        kept.lease.set_job(of_lease);
        kept.told = job.told.clone();
        let was = kept.mode;
        if was == mode {
            return;
        }
        // What is ordered is ordered: its devices are waited for.
        let is_ordered = was == Mode::Act && matches!(kept.lease.phase(), Phase::Stopping { .. });
        if !is_ordered {
            self.call_off(&job.key, &format!("the mode for it was {was} and is {mode} now"));
            let kept = self.kept.get_mut(&job.key).expect("it is there");
            kept.mode = mode;
            kept.ordered_at = None;
        }
    }

    /// Whatever was begun with a job ends, without it being at work.
    fn call_off(&mut self, key: &AttemptKey, why: &str) {
        let Some(kept) = self.kept.get_mut(key) else { return };
        let phase = kept.lease.phase().clone();
        let (is_begun, is_told) = match phase {
            Phase::Active | Phase::Extended { .. } | Phase::Reclaimed { .. } => (false, false),
            Phase::Suspect { .. } => (true, false),
            Phase::Notified { .. } | Phase::Grace { .. } | Phase::CheckpointAsked { .. } | Phase::Stopping { .. } => {
                (true, kept.mode >= Mode::Notify)
            }
        };
        if !is_begun {
            return;
        }
        kept.lease.call_off();
        let words = format!("Nothing is taken from job {}: {why}.", kept.told.job_id);
        let row = rows::row(kept, self.input.at, "withdraw", why, words.into(), kept.mode);
        let row = Decision { phase_from: Some(phase.name().into()), ..row };
        if is_told {
            self.output.warnings.push(message(kept, &row, Matter::Notice));
        }
        self.output.decisions.push(row);
    }

    fn call_all_off(&mut self) {
        let keys: Vec<AttemptKey> = self.kept.keys().cloned().collect();
        for key in keys {
            self.call_off(&key, "the mode is off");
        }
        self.kept.clear();
    }

    /// A cancel ends what was begun, and the job is judged anew: it has to be idle over a whole window again.
    fn heed_cancels(&mut self, key: &AttemptKey) {
        let wanted = self.input.requests.iter().filter(|request| request.job == *key && request.wish == Wish::Cancel);
        for request in wanted {
            let kept = self.kept.get_mut(key).expect("a lease is begun first");
            if !kept.cancelled.insert(request.id.clone()) {
                continue;
            }
            self.call_off(key, &format!("{} called it off", request.by));
            let kept = self.kept.get_mut(key).expect("it is there");
            let mut lease = Lease::new(kept.lease.job().clone());
            lease.judge_from(self.input.at);
            kept.lease = lease;
            kept.ordered_at = None;
        }
    }

    fn opt_outs(&self, job: &RunningJob) -> Reading<Vec<OptOut>> {
        let told = &job.told;
        let of = [Some(&told.cluster), told.queue.as_ref(), told.project.as_ref(), told.user.as_ref()];
        let rules = self.input.policy.opt_outs.iter().filter(|rule| rule.names(&job.key, &told.job_id, of));
        self.input.opt_outs.map(|()| rules.map(|rule| rule.opt_out.clone()).collect())
    }

    /// Extensions, what became of a warning, checkpoints.
    fn add_what_people_said(&self, key: &AttemptKey, seen: &mut Observation) {
        let Kept { lease, mode, .. } = &self.kept[key];
        // What was asked before it was called off was of what was called off.
        let of_job = || self.input.requests.iter().filter(|request| request.job == *key);
        let called_off = of_job().filter(|request| request.wish == Wish::Cancel).map(|request| request.at).max();
        for request in of_job().filter(|request| called_off.is_none_or(|off| request.at > off)) {
            if let Wish::Extend { for_ms } = request.wish {
                let (id, by) = (request.id.clone(), request.by.clone());
                seen.extension_requests.push(ExtensionRequest { id, by, for_ms });
            }
        }
        if let Phase::Notified { notice, warned_at, .. } = lease.phase() {
            let of_notice = |outcome: &&crate::round::NoticeOutcome| outcome.job == *key && outcome.notice == *notice;
            let told = self.input.notices.iter().rev().find(of_notice).map(|outcome| outcome.delivered.clone());
            let delivered = match mode {
                // Nobody is told, so that there is nothing to wait for.
                Mode::Off | Mode::Shadow => Some(Ok(*warned_at)),
                // Another warning of that number, of a lease that was lost; or telemetry hasn't come that far.
                Mode::Notify | Mode::Act => told.filter(|delivered| {
                    delivered.as_ref().is_ok_and(|at| warned_at <= at && *at <= seen.at) || delivered.is_err()
                }),
            };
            seen.notice = delivered.map(|delivered| NoticeReport { notice: *notice, delivered });
        }
        let of_job = |checkpoint: &&SeenCheckpoint| checkpoint.job == *key && checkpoint.done_at <= self.input.at;
        seen.checkpoint.done_at = self.input.checkpoints.iter().filter(of_job).map(|seen| seen.done_at).max();
    }

    /// A lease after some steps, and the rows, messages and alerts that they make.
    fn take_over(&mut self, key: &AttemptKey, lease: Lease, steps: Vec<Step>) {
        let kept = self.kept.get_mut(key).expect("a lease that was judged is kept");
        let from = std::mem::replace(&mut kept.lease, lease).phase().clone();
        for step in steps {
            let kept = self.kept.get_mut(key).expect("it is there");
            let mode = kept.mode;
            if mode != Mode::Act && matches!(step.action, Action::Alert(Alert::StillHeld | Alert::CheckpointStuck)) {
                // It was never stopped.
                continue;
            }
            let mut row = rows::of_step(kept, &from, &step, mode);
            match &step.action {
                Action::AskCheckpoint { .. } | Action::Stop { .. } => kept.ordered_at = Some(self.input.at),
                Action::Reclaimed => {
                    let cards = row.cards.unwrap_or(CardShare::ZERO);
                    kept.freed = Some(Freed { at: step.at, cards });
                }
                Action::Suspect
                | Action::Advise(_)
                | Action::Warn { .. }
                | Action::BeginGrace { .. }
                | Action::Extended { .. }
                | Action::RefuseExtension { .. }
                | Action::Withdraw(_)
                | Action::Spare(_)
                | Action::Alert(_) => {}
            }
            let kept = &self.kept[key];
            let told_owner = mode >= Mode::Notify
                && match &step.action {
                    Action::Advise(_)
                    | Action::Extended { .. }
                    | Action::RefuseExtension { .. }
                    | Action::Reclaimed => true,
                    Action::Withdraw(_) => !matches!(from, Phase::Suspect { .. }),
                    Action::AskCheckpoint { .. } | Action::Stop { .. } => mode == Mode::Act,
                    Action::Suspect
                    | Action::Warn { .. }
                    | Action::BeginGrace { .. }
                    | Action::Spare(_)
                    | Action::Alert(_) => false,
                };
            if told_owner {
                self.output.warnings.push(message(kept, &row, Matter::Notice));
            }
            if let Action::Warn { notice, .. } = step.action {
                self.say_why_nothing_can_be_done(key, &mut row);
                self.kept.get_mut(key).expect("it is there").warned = Some(row.words.clone());
                if mode >= Mode::Notify {
                    self.output.warnings.push(message(&self.kept[key], &row, Matter::Warning { notice }));
                }
            }
            if let (Action::Alert(alert), true) = (&step.action, mode == Mode::Act) {
                self.output.alerts.push(OperatorAlert {
                    alert: rows::alert_word(*alert).into(),
                    cluster: row.cluster.clone(),
                    job: Some(key.clone()),
                    words: row.words.clone(),
                });
            }
            self.output.decisions.push(row);
        }
    }

    /// A job on the list that no actuator reaches is told of as in `notify`, and the operator why.
    fn say_why_nothing_can_be_done(&mut self, key: &AttemptKey, row: &mut Decision) {
        let Some(reason) = self.jobs.get(key).and_then(|job| self.mode_of(job).1) else { return };
        let kept = &self.kept[key];
        let words: Name = format!("There is no actuator for job {}: {reason}.", kept.told.job_id).into();
        row.words = format!("{} {words}", row.words).into();
        self.output.decisions.push(rows::row(kept, row.at, "no_actuator", "", words.clone(), kept.mode));
        self.output.alerts.push(OperatorAlert {
            alert: "no_actuator".into(),
            cluster: row.cluster.clone(),
            job: Some(key.clone()),
            words,
        });
    }

    /// Leases whose jobs have ended: what came of them, and what was recovered.
    fn let_go_of_what_is_gone(&mut self) {
        let keys: Vec<AttemptKey> = self.kept.keys().filter(|key| !self.jobs.contains_key(*key)).cloned().collect();
        for key in keys {
            let kept = &self.kept[&key];
            if let Some(freed) = &kept.freed {
                let passed_ms = self.input.at.ms_since(freed.at);
                if passed_ms >= self.input.policy.recovered_for_ms {
                    let (at, cards) = (freed.at, freed.cards);
                    self.recovered(&key, cards, at, self.input.policy.recovered_for_ms, "recovered");
                    self.kept.remove(&key);
                }
                continue;
            }
            let is_free = self.looks.release(&kept.told.devices, &kept.told.seen_as) == Reading::Seen(Release::Free);
            let last = kept.lease.now().unwrap_or(self.input.at);
            let ended_at = self.looks.last_look(&kept.told.devices).unwrap_or(self.input.at);
            match kept.lease.phase() {
                Phase::Stopping { .. } if kept.mode == Mode::Act => {
                    // Its devices are waited for, in the round; nothing is known of them for a day: they are given up.
                    if self.input.at.ms_since(last) >= FORGOTTEN_AFTER_MS {
                        self.kept.remove(&key);
                    }
                }
                Phase::Stopping { since, .. } | Phase::CheckpointAsked { asked_at: since, .. } if is_free => {
                    // It was asked and ended by itself; or in another mode it would have been stopped at that time.
                    let (since, cards) = (*since, kept.lease.cards().map(|(_, card)| card.share).sum());
                    if kept.mode == Mode::Act {
                        self.ended(&key, ended_at);
                        self.kept.get_mut(&key).expect("it is there").freed = Some(Freed { at: ended_at, cards });
                    } else {
                        self.recovered(&key, cards, since, ended_at.ms_since(since).max(0), "ended");
                        self.kept.remove(&key);
                    }
                }
                Phase::Notified { .. } | Phase::Grace { .. } if is_free => {
                    self.ended(&key, ended_at);
                    self.kept.remove(&key);
                }
                Phase::Active
                | Phase::Suspect { .. }
                | Phase::Notified { .. }
                | Phase::Grace { .. }
                | Phase::CheckpointAsked { .. }
                | Phase::Stopping { .. }
                | Phase::Extended { .. }
                | Phase::Reclaimed { .. } => {
                    if is_free || self.input.at.ms_since(last) >= FORGOTTEN_AFTER_MS {
                        self.kept.remove(&key);
                    }
                }
            }
        }
    }

    fn ended(&mut self, key: &AttemptKey, at: Timestamp) {
        let kept = &self.kept[key];
        let words = format!("Job {} ended by itself after it was told that it is idle.", kept.told.job_id);
        self.output.decisions.push(rows::row(kept, at, "ended", "", words.into(), kept.mode));
    }

    fn recovered(&mut self, key: &AttemptKey, cards: CardShare, since: Timestamp, for_ms: i64, action: &str) {
        let kept = &self.kept[key];
        let time = CardTime::from_part_ms(i128::from(cards.parts()) * i128::from(for_ms));
        let hours = time.card_hours().normalize();
        let words = match kept.mode {
            Mode::Act => format!("Of job {}, {hours} card-hours were recovered since {since}.", kept.told.job_id),
            Mode::Off | Mode::Shadow | Mode::Notify => {
                format!(
                    "Job {} ended. In the mode act, {hours} card-hours would have been recovered.",
                    kept.told.job_id
                )
            }
        };
        let at = since.checked_add_ms(for_ms).unwrap_or(since);
        let row = rows::row(kept, at, action, "", words.into(), kept.mode);
        self.output.decisions.push(Decision { cards: Some(cards), recovered_card_ms: Some(card_ms(time)), ..row });
    }

    /// Jobs that were stopped and are gone from the records: their devices are waited for.
    fn wait_for_freed_cards(&mut self, rounds: &mut Rounds) {
        for (key, kept) in self.kept.iter().filter(|(key, kept)| !self.jobs.contains_key(*key) && kept.freed.is_none())
        {
            let Phase::Stopping { .. } = kept.lease.phase() else { continue };
            let devices = &kept.told.devices;
            let Some(at) = self.looks.last_look(devices).map(|look| look.min(self.input.at)) else { continue };
            let Some(during) = cardhour_domain::Interval::new(Timestamp::from_unix_ms(at.unix_ms() - 1), at) else {
                continue;
            };
            let nothing = ProcessReading {
                cpu_milli_cores: Check::NotThere,
                io_bytes_per_s: Check::NotThere,
                terminal: Check::NotThere,
                kernel: Check::Failed(cardhour_domain::Gap::NotRecorded),
            };
            let seen = Observation {
                at,
                during,
                cards: BTreeMap::new(),
                processes: nothing,
                attribution: Attribution::Proven,
                opt_outs: Reading::Seen(Vec::new()),
                extension_requests: Vec::new(),
                notice: None,
                checkpoint: CheckpointSigns { activity: Check::NotThere, done_at: None },
                reported_phase: None,
                release: self.looks.release(devices, &kept.told.seen_as),
            };
            let (leases, observations) = rounds.entry(kept.told.cluster.clone()).or_default();
            leases.insert(key.clone(), kept.lease.clone());
            observations.insert(key.clone(), seen);
        }
    }

    /// What has to be done until it is known to be: warnings of which nobody knows what became, and orders.
    fn remind(&mut self) {
        let mut orders = Vec::new();
        let mut warnings = Vec::new();
        for (key, kept) in &self.kept {
            match kept.lease.phase() {
                Phase::Notified { notice, delivered: None, .. } if kept.mode >= Mode::Notify => {
                    let id = rows::id_of(kept, "warn", &notice.to_string());
                    let is_known = self.output.warnings.iter().any(|warning| warning.decision == id)
                        || self.input.notices.iter().any(|outcome| outcome.job == *key && outcome.notice == *notice);
                    if !is_known {
                        warnings.push((key.clone(), id, *notice));
                    }
                }
                Phase::CheckpointAsked { asked_at, until } if kept.mode == Mode::Act => {
                    let within_s = u32::try_from(until.ms_since(*asked_at) / 1000).unwrap_or(0);
                    orders.push((key, kept, "ask_checkpoint", Deed::AskCheckpoint { within_s }));
                }
                Phase::Stopping { .. } if kept.mode == Mode::Act => orders.push((key, kept, "stop", Deed::End)),
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
        for (key, kept, action, deed) in orders {
            // Of a job that is gone there is nothing left to do.
            let Some(job) = self.jobs.get(key) else { continue };
            let at = kept.ordered_at.unwrap_or(self.input.at);
            match self.reached(job).order(&rows::id_of(kept, action, ""), deed, at) {
                Ok(order) => self.output.orders.push(order),
                Err(reason) => self.output.alerts.push(OperatorAlert {
                    alert: "no_actuator".into(),
                    cluster: Some(kept.told.cluster.clone()),
                    job: Some(key.clone()),
                    words: format!("there is no actuator for job {}: {reason}", kept.told.job_id).into(),
                }),
            }
        }
        for (key, id, notice) in warnings {
            let kept = &self.kept[&key];
            let words = kept.warned.clone().unwrap_or_default();
            self.output.warnings.push(Warning {
                decision: id,
                job: key,
                matter: Matter::Warning { notice },
                user: kept.told.user.clone(),
                project: kept.told.project.clone(),
                org: kept.told.org.clone(),
                words,
            });
        }
    }

    fn blind(&mut self, cluster: &Name, alert: Option<RoundAlert>) {
        let Some(alert) = alert else { return };
        let name = match alert {
            RoundAlert::NoAnswer(_) => "no_telemetry",
            RoundAlert::Blind { .. } => "blind",
        };
        self.output.alerts.push(OperatorAlert {
            alert: name.into(),
            cluster: Some(cluster.clone()),
            job: None,
            words: alert.words().into(),
        });
    }
}

fn message(kept: &Kept, row: &Decision, matter: Matter) -> Warning {
    Warning {
        decision: row.id.clone(),
        job: kept.lease.job().key.clone(),
        matter,
        user: kept.told.user.clone(),
        project: kept.told.project.clone(),
        org: kept.told.org.clone(),
        words: row.words.clone(),
    }
}
