//! What an account may have at once follows its month's card-hours or its budget: lowered as a band asks for it, put back as it was when the band or the month is over.
//!
//! What stands is not remembered here. It is read from the rows of `decisions` and from what the actuators' journal says of each: which of our limits were set, which of them were put
//! back, and which somebody else has changed since. Limits that were set one after another are put back one after another, so that the last one is what was there before all of them.
//!
//! | what the band asks for | what is set by us | what is done |
//! |---|---|---|
//! | nothing | nothing | nothing |
//! | nothing | a limit | it is put back |
//! | a limit | nothing, or a greater one | it is set; never above what is there |
//! | a limit | a smaller one | the smaller is put back first |
//!
//! A limit that somebody else changed is left to them until the period is over. Only `GrpTRES` is touched, which holds back what isn't started yet: what runs goes on.
//!
//! Start at [`limits`]. Does not: know how a month stands ([`crate::month`]), touch Slurm.

use crate::decision::{Decision, DecisionKind, Mode, id};
use crate::policy::{LimitOf, LimitRule, ReclaimPolicy};
use crate::round::{OperatorAlert, Order, Place};
use cardhour_actuators::setting::{Aim, From, SettingSight};
use cardhour_actuators::sight::Sight;
use cardhour_actuators::slurm::{LimitAction, LimitHolder, LimitKind};
use cardhour_actuators::{Action, DecisionId, Past, Standing, What};
use cardhour_books::report::local;
use cardhour_domain::{Interval, Name, Timestamp, Zone};
use cardhour_scheduler_core::capacity::Band;
use std::collections::{BTreeMap, BTreeSet};

/// The action of a row by which a limit is set.
pub const SET: &str = "limit";
/// The action of a row by which a limit is put back.
pub const PUT_BACK: &str = "put_back";

/// A limit that couldn't be set is tried again after so long. Unit: milliseconds, a day: what stands in its way is a person's doing.
const SET_AGAIN_MS: i64 = 24 * 3_600_000;
/// The same for one that couldn't be put back: an hour, since somebody may be waiting for it.
const PUT_BACK_AGAIN_MS: i64 = 3_600_000;

/// How what a limit follows stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitStanding {
    /// What.
    pub of: LimitOf,
    /// In which cluster; none: in each.
    pub cluster: Option<Name>,
    /// The band in force.
    pub band: Band,
    /// The month, or the period of the budget.
    pub period: Interval,
    /// How it stands, in a sentence without its end.
    pub words: Name,
}

/// What is known at an instant.
#[derive(Clone, Copy, Debug)]
pub struct LimitInput<'a> {
    /// Now.
    pub at: Timestamp,
    /// The zone in which people read instants.
    pub zone: Zone,
    /// The rule.
    pub policy: &'a ReclaimPolicy,
    /// The mode in force.
    pub mode: Mode,
    /// How all that limits may follow stands. What isn't here isn't known, and its limits stay as they are.
    pub standings: &'a [LimitStanding],
    /// All rows of `decisions`.
    pub known: &'a [Decision],
    /// What the journal has of those of them that are about limits.
    pub pasts: &'a BTreeMap<Name, Past>,
}

/// What is decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitOutput {
    /// Rows to append: none that are there.
    pub decisions: Vec<Decision>,
    /// What actuators have to do; given again in each round while it is wanted.
    pub orders: Vec<Order>,
    /// What the operator has to know.
    pub alerts: Vec<OperatorAlert>,
}

/// Whose limit of what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    cluster: Name,
    account: Name,
    tres: Name,
}

/// What is wanted of a target now.
struct Wanted<'a> {
    /// At most so many at once; none: what was there before.
    most: Option<u32>,
    /// The band, where it is known; none where the rule is gone.
    standing: Option<&'a LimitStanding>,
}

/// A target, the rule of it where there still is one, and the mode.
#[derive(Clone, Copy)]
struct Case<'a> {
    target: &'a Target,
    rule: Option<&'a LimitRule>,
    mode: Mode,
}

/// A limit that we set and that stands.
struct Kept<'a> {
    decision: &'a Name,
    decided_at: Timestamp,
    value: u64,
}

/// What became of the limits of one target.
struct Record<'a> {
    /// Set by us and standing, the newest last.
    stack: Vec<Kept<'a>>,
    /// The decision that is being carried out.
    open: Option<(&'a Name, &'a Past)>,
    /// When the last of our limits was decided that somebody else has changed since.
    changed_by_others: Option<Timestamp>,
}

/// One round. Shape: by target, in order; the same input gives the same answer, and what is decided again has the same id.
pub fn limits(input: &LimitInput<'_>) -> LimitOutput {
    let rows: Vec<&Decision> = input
        .known
        .iter()
        .filter(|row| row.kind == DecisionKind::Limit && row.of_decision.is_none() && row.cluster.is_some())
        .collect();
    let round = Round { input, ids: input.known.iter().map(|row| &row.id).collect(), rows };
    let of_rules = input.policy.limits.iter().map(|rule| round.target_of(rule));
    let of_rows = round.rows.iter().filter_map(|row| Some(target(row, limit_of(input.pasts.get(&row.id)?)?)));
    let targets: BTreeSet<Target> = of_rules.chain(of_rows).collect();
    let mut output = LimitOutput::default();
    for target in &targets {
        round.judge(target, &mut output);
    }
    output
}

struct Round<'a> {
    input: &'a LimitInput<'a>,
    ids: BTreeSet<&'a Name>,
    rows: Vec<&'a Decision>,
}

impl<'a> Round<'a> {
    fn target_of(&self, rule: &LimitRule) -> Target {
        Target { cluster: rule.cluster.clone(), account: rule.account.clone(), tres: rule.tres.clone() }
    }

    fn judge(&self, target: &Target, output: &mut LimitOutput) {
        let policy = self.input.policy;
        let mut mode = policy.mode_of(self.input.mode, &target.cluster, None);
        if mode == Mode::Off {
            return;
        }
        let rule = policy.limits.iter().find(|rule| self.target_of(rule) == *target);
        let wanted = match rule {
            None => Wanted { most: None, standing: None },
            Some(rule) => match self.standing(rule) {
                Some(standing) => Wanted { most: rule.most(standing.band), standing: Some(standing) },
                None => {
                    let words = format!(
                        "the limit of account {} in {} follows {}, of which nothing is known: it stays as it is",
                        target.account,
                        target.cluster,
                        named(&rule.of)
                    );
                    output.alerts.push(alert("limit_follows_nothing", target, words));
                    return;
                }
            },
        };
        let record = self.record(target);
        if let Some((_, past)) = record.open.filter(|(_, past)| past.has_touched()) {
            // Begun: it is brought to its end before anything else is thought of.
            output.orders.push(self.order(target, past.action.clone()));
            return;
        }
        if let (Mode::Act, Err(reason)) = (mode, self.reached(&target.cluster)) {
            if wanted.most.is_some() || !record.stack.is_empty() {
                let words = format!("the limit of account {} in {}: {reason}", target.account, target.cluster);
                output.alerts.push(alert("no_actuator", target, words));
            }
            mode = Mode::Notify;
        }
        let (case, top) = (Case { target, rule, mode }, record.stack.last());
        let next = match (wanted.most, top) {
            (Some(most), Some(top)) if u64::from(most) == top.value => None,
            (Some(most), Some(top)) if u64::from(most) > top.value => self.put_back(case, top, &wanted),
            (Some(most), top) => self.set(case, most, top, &wanted, &record),
            (None, Some(top)) => self.put_back(case, top, &wanted),
            (None, None) => None,
        };
        let Some((row, aim)) = next else { return };
        if mode == Mode::Act {
            let past = self.input.pasts.get(&row.id);
            let action = past.map_or_else(|| self.action(target, &row, aim), |past| past.action.clone());
            output.orders.push(self.order(target, action));
        }
        if !self.ids.contains(&row.id) {
            if mode == Mode::Act || mode == Mode::Notify {
                output.alerts.push(alert(&row.action, target, row.words.to_string()));
            }
            output.decisions.push(row);
        }
    }

    fn standing(&self, rule: &LimitRule) -> Option<&'a LimitStanding> {
        let is_it = |standing: &&LimitStanding| {
            standing.of == rule.of && standing.cluster.as_ref().is_none_or(|cluster| *cluster == rule.cluster)
        };
        self.input.standings.iter().find(is_it)
    }

    /// Errors: why no actuator reaches the cluster's limits.
    fn reached(&self, cluster: &Name) -> Result<(), String> {
        match &self.input.policy.act.slurm {
            Some(slurm) if slurm.clusters.is_empty() || slurm.clusters.contains(cluster) => Ok(()),
            Some(_) => Err(format!("[act.slurm] in policy.toml isn't of cluster {cluster}")),
            None => Err("policy.toml has no [act.slurm]".to_owned()),
        }
    }

    /// What the journal has of a target.
    fn record(&self, of: &Target) -> Record<'a> {
        let mut pasts: Vec<(&'a Decision, &'a Past, &'a LimitAction)> = Vec::new();
        for row in &self.rows {
            let Some(past) = self.input.pasts.get(&row.id) else { continue };
            let Some(limit) = limit_of(past).filter(|limit| target(row, limit) == *of) else { continue };
            pasts.push((row, past, limit));
        }
        let begun_at = |past: &Past| past.first().map(|tried| tried.at);
        pasts.sort_by_key(|(row, past, _)| (begun_at(past).unwrap_or(row.at), &row.id));
        let mut record = Record { stack: Vec::new(), open: None, changed_by_others: None };
        for (row, past, limit) in &pasts {
            if !past.standing.is_over() {
                record.open = Some((&row.id, past));
            }
            if let (Aim::Value { to: Some(value), .. }, true) = (&limit.aim, past.has_touched()) {
                record.stack.push(Kept { decision: &row.id, decided_at: row.at, value: *value });
            }
        }
        for (_, past, limit) in pasts {
            let Aim::AsBefore(decision) = &limit.aim else { continue };
            let place = record.stack.iter().position(|kept| kept.decision.as_str() == decision.as_str());
            let Some(place) = place else { continue };
            match came_of(past, record.stack[place].value) {
                Came::Back => _ = record.stack.remove(place),
                Came::Others => {
                    record.changed_by_others = Some(record.stack[place].decided_at);
                    // What it was set on is as little ours.
                    record.stack.drain(..=place);
                }
                Came::Nothing => {}
            }
        }
        record
    }

    fn set(
        &self,
        case: Case<'_>,
        most: u32,
        top: Option<&Kept<'_>>,
        wanted: &Wanted<'_>,
        record: &Record<'_>,
    ) -> Option<(Decision, Aim)> {
        let Case { target, mode, .. } = case;
        let standing = wanted.standing?;
        let since = standing.period.start();
        // Theirs, until the period is over.
        if record.changed_by_others.is_some_and(|at| at >= since) {
            return None;
        }
        let (start, most_text) = (since.unix_ms().to_string(), most.to_string());
        let of = top.map_or("", |top| top.decision.as_str());
        let key = [SET, &target.cluster, &target.account, &target.tres, &start, of, &most_text, mode.name()];
        let id = self.untried(&key, SET_AGAIN_MS, |past| past.has_touched() || past.standing != Standing::SeenTrue)?;
        let until = local(self.input.zone, standing.period.end());
        let words = format!(
            "{}. Account {} of {} may have {most} {} at once from now on, what it has already included. What runs goes on. It is put back as it was on {until}, or when the month lasts again.",
            standing.words, target.account, target.cluster, target.tres,
        );
        let from = top.map_or(From::Anything, |top| From::Value(Some(top.value)));
        let row = self.row(case, id, SET, words, standing.band);
        Some((Decision { until: Some(standing.period.end()), ..row }, Aim::Value { to: Some(u64::from(most)), from }))
    }

    fn put_back(&self, case: Case<'_>, top: &Kept<'_>, wanted: &Wanted<'_>) -> Option<(Decision, Aim)> {
        let id = self.untried(&[PUT_BACK, top.decision, case.mode.name()], PUT_BACK_AGAIN_MS, |_| true)?;
        let why = wanted
            .standing
            .map_or_else(|| "policy.toml has no such limit any more".to_owned(), |standing| standing.words.to_string());
        let words =
            format!("{why}. The limit of {} is put back as it was before it was {}.", name_of(case.target), top.value);
        let band = wanted.standing.map_or(Band::Ample, |standing| standing.band);
        let row = self.row(case, id, PUT_BACK, words, band);
        Some((row, Aim::AsBefore(DecisionId::new(top.decision.as_str()))))
    }

    /// The id of the next try of something: the last one's while it isn't over; another one's a while after it came to nothing. None where there is nothing to do now. `is_again`: whether
    /// one that is over is to be done again at all.
    fn untried(&self, key: &[&str], again_after_ms: i64, is_again: impl Fn(&Past) -> bool) -> Option<Name> {
        for number in 0u32.. {
            let text = number.to_string();
            let next = id(&key.iter().copied().chain([text.as_str()]).collect::<Vec<_>>());
            let Some(row) = self.rows.iter().find(|row| row.id == next) else { return Some(next) };
            match self.input.pasts.get(&next) {
                Some(past) if past.standing.is_over() => {
                    if !is_again(past) {
                        return None;
                    }
                    // One that was done, and is undone by now, is done again at once.
                    let is_due =
                        past.standing == Standing::SeenTrue || self.input.at.ms_since(row.at) >= again_after_ms;
                    if !is_due {
                        return None;
                    }
                }
                Some(_) | None => return Some(next),
            }
        }
        None
    }

    fn row(&self, case: Case<'_>, id: Name, action: &str, words: String, band: Band) -> Decision {
        let Case { target, rule, mode } = case;
        let words = match mode {
            Mode::Act => words,
            Mode::Off | Mode::Shadow | Mode::Notify => format!("In the mode act: {words}"),
        };
        // A quarter hour, so that two lookers at one time write one row.
        let at = self.input.at.bucket_start();
        let mut row = Decision::new(id, at, DecisionKind::Limit, action.into(), words.into(), mode);
        row.cluster = Some(target.cluster.clone());
        row.phase_to = Some(band.name().into());
        if let Some(LimitOf::Month { holder, .. }) = rule.map(|rule| &rule.of) {
            row.org = Some(holder.org.clone());
            (row.project, row.user) = (holder.project.clone(), holder.user.clone());
        }
        row
    }

    fn action(&self, target: &Target, row: &Decision, aim: Aim) -> Action {
        let limit = LimitAction {
            holder: LimitHolder::Account(target.account.to_string()),
            kind: LimitKind::AllAtOnce,
            tres: target.tres.to_string(),
            aim,
        };
        Action {
            decision: DecisionId::new(row.id.as_str()),
            tenant: Some(row.project.as_ref().unwrap_or(&target.account).to_string()),
            what: What::SlurmLimit(limit),
            deadline: self.input.at.checked_add_ms(self.input.policy.act.deadline_ms).unwrap_or(self.input.at),
        }
    }

    fn order(&self, target: &Target, action: Action) -> Order {
        Order { action, place: Place::Slurm { cluster: target.cluster.clone() }, job: None }
    }
}

/// Why a limit isn't set on what is seen of it: it would allow more than somebody allowed already. For who carries it out, to ask right before the first touch.
pub fn would_raise(action: &LimitAction, sight: &Sight) -> Option<String> {
    let Aim::Value { to: Some(to), from: From::Anything } = action.aim else { return None };
    let there = seen_value(sight)??;
    (there < to).then(|| format!("there is a limit of {there} already, and {to} would be more"))
}

/// What came of putting a limit back.
enum Came {
    /// It is back.
    Back,
    /// It isn't ours any more: somebody else has set it, or whose it was is gone.
    Others,
    /// Nothing yet.
    Nothing,
}

/// `set`: what our limit was.
fn came_of(past: &Past, set: u64) -> Came {
    match &past.standing {
        Standing::Open => Came::Nothing,
        Standing::SeenTrue => Came::Back,
        Standing::Refused(_) | Standing::GivenUp(_) => match &past.after {
            Some(Sight::Setting(SettingSight { value: None, .. })) => Came::Others,
            Some(sight) if seen_value(sight).is_some_and(|value| value != Some(set)) => Came::Others,
            Some(_) | None => Came::Nothing,
        },
    }
}

/// The value of a limit that was seen; the inner none: no limit.
fn seen_value(sight: &Sight) -> Option<Option<u64>> {
    match sight {
        Sight::Setting(SettingSight { value, .. }) => value.map(|value| value.kept()),
        Sight::Job(_) | Sight::Process(_) | Sight::Object(_) => None,
    }
}

fn limit_of(past: &Past) -> Option<&LimitAction> {
    match &past.action.what {
        What::SlurmLimit(limit) => Some(limit),
        What::SlurmJob(_) | What::Process(_) | What::Kubernetes(_) => None,
    }
}

fn target(row: &Decision, limit: &LimitAction) -> Target {
    let account = match &limit.holder {
        LimitHolder::Account(account) | LimitHolder::User { account, .. } | LimitHolder::Qos(account) => account,
    };
    Target {
        cluster: row.cluster.clone().unwrap_or_default(),
        account: account.as_str().into(),
        tres: limit.tres.as_str().into(),
    }
}

fn named(of: &LimitOf) -> String {
    match of {
        LimitOf::Budget(budget) => format!("budget {budget}"),
        LimitOf::Month { holder, model } => {
            let parts = [Some(&holder.org), holder.project.as_ref(), holder.user.as_ref()];
            let owner: Vec<&str> = parts.into_iter().flatten().map(|name| &**name).collect();
            format!("the month's card-hours of {} of {model}", owner.join("/"))
        }
    }
}

fn name_of(target: &Target) -> String {
    format!("account {} of {}", target.account, target.cluster)
}

fn alert(word: &str, target: &Target, words: String) -> OperatorAlert {
    OperatorAlert {
        alert: format!("{word}: {}", target.account).into(),
        cluster: Some(target.cluster.clone()),
        job: None,
        words: words.into(),
    }
}
