//! Attempts of the books against the lines of a report: how much each side has, and why they differ.

use super::{Cause, Explained, Hours, Parts, TheirLine, Theirs, Tool, Who, stretch};
use crate::cell::Cell;
use crate::report::{ReportAttempt, ReportInput};
use crate::site::Reservation;
use crate::slots::{Era, Slots};
use cardhour_domain::{AttemptKey, CardShare, CardState, CardTime, Interval, Name, Timestamp, Zone};
use std::collections::{BTreeMap, BTreeSet};

/// In which hours the two are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The hours that were asked for; none for those of the report.
    pub range: Option<Interval>,
    /// Our zone.
    pub zone: Zone,
    /// The zone of the report's clock; none for ours.
    pub their_zone: Option<Zone>,
}

const HOUR_MS: i64 = 3_600_000;

/// The most often that one line is taken to be counted.
const MOST_COPIES: i128 = 4;

/// What the books bill of each attempt in the hours that were asked for, where they are on quarter hours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Billed {
    /// Of each attempt: what is billed, and what would be by what is known today.
    by_key: Option<BTreeMap<AttemptKey, [CardTime; 2]>>,
    /// What nobody held under reservations, by whose those are.
    reserved: BTreeMap<Who, CardTime>,
}

/// What is billed less what records claim, by cause.
#[derive(Clone, Copy, Debug, Default)]
struct Less {
    otherwise: CardTime,
    corrected_later: CardTime,
}

impl Less {
    fn sum(self) -> CardTime {
        self.otherwise + self.corrected_later
    }

    fn add_to(self, parts: &mut Parts) {
        parts.add(Cause::BilledOtherwise, self.otherwise);
        parts.add(Cause::CorrectedLater, self.corrected_later);
    }
}

impl Billed {
    /// From usage, numbered by `slots` of those hours. `live`: the same by what is known today, where some of it is of closed months; none where none is.
    pub fn of(input: &ReportInput, live: Option<&ReportInput>, slots: &Slots) -> Self {
        let mut by_key: BTreeMap<AttemptKey, [CardTime; 2]> = BTreeMap::new();
        let is_held = |cell: &&Cell| cell.state == CardState::Held && slots.slot(cell.slot).era == Era::Shown;
        for (side, input) in [input, live.unwrap_or(input)].into_iter().enumerate() {
            for cell in input.cells.iter().filter(is_held) {
                if let Some(attempt) = cell.attempt {
                    by_key.entry(input.attempts[attempt as usize].key.clone()).or_default()[side] += cell.billed_time;
                }
            }
        }
        let mut reserved: BTreeMap<Who, CardTime> = BTreeMap::new();
        let known = live.unwrap_or(input);
        for cell in known.cells.iter().filter(|cell| slots.slot(cell.slot).era == Era::Shown) {
            let of = cell.set_aside.filter(|_| cell.state == CardState::Reserved);
            if let Some(Reservation { cluster, project: project @ Some(_), user, .. }) =
                of.map(|number| &known.reservations[number as usize])
            {
                let cluster = Some(cluster.clone());
                let who = Who { cluster, project: project.clone(), user: user.clone(), job: None };
                *reserved.entry(who).or_default() += cell.card_time;
            }
        }
        Self { by_key: Some(by_key), reserved }
    }

    /// Where usage can't be cut so: then what records claim stands for it.
    pub const fn unknown() -> Self {
        Self { by_key: None, reserved: BTreeMap::new() }
    }

    /// Billed less claimed.
    fn less(&self, key: &AttemptKey, claimed: CardTime) -> Less {
        let Some(by_key) = &self.by_key else { return Less::default() };
        let [billed, today] = by_key.get(key).copied().unwrap_or_default();
        Less { otherwise: today - claimed, corrected_later: billed - today }
    }
}

impl Frame {
    /// The hours that are asked for, as one stretch; none for whole jobs at any time. Nothing at all where they are several stretches.
    pub fn asked(&self, theirs: &Theirs) -> Option<Option<Interval>> {
        if self.range.is_some() {
            return Some(self.range);
        }
        match TheirHours::of(theirs, self).there.as_deref() {
            None => Some(None),
            Some([one]) => Some(Some(*one)),
            Some(_) => None,
        }
    }
}

/// Holds our attempts against their lines. `billed`: of the hours that are [asked for](Frame::asked).
///
/// Each attempt goes to the one line that says most about it, and one without a line makes a line of its own. Shape: their lines in their order,
/// then ours; for each, `parts.sum()` is `ours` less `theirs`.
pub fn explain(ours: &[ReportAttempt], theirs: &Theirs, frame: &Frame, billed: &Billed) -> Vec<Explained> {
    let hours = TheirHours::of(theirs, frame);
    let one_cluster = OneCluster::of(ours, theirs);
    let mut taken: Vec<Vec<&ReportAttempt>> = vec![Vec::new(); theirs.lines.len()];
    let mut alone: BTreeMap<Who, Vec<&ReportAttempt>> = BTreeMap::new();
    let book = Index::of(&theirs.lines, one_cluster.is_one);
    for attempt in ours {
        let [asked, local, there] = hours.of_attempt(attempt, frame);
        let less = billed.less(&attempt.key, asked).sum();
        if [asked, local, there, less].iter().all(|time| time.is_zero()) {
            continue;
        }
        match book.line_of(attempt, &theirs.lines) {
            Some(line) => taken[line].push(attempt),
            None if hours.of_all_alone(&[attempt], frame).iter().all(|time| time.is_zero())
                && (hours.there.is_none() || less.is_zero()) => {}
            None => alone.entry(who_of(attempt, theirs)).or_default().push(attempt),
        }
    }
    // Of one reservation no more is charged than it has, to however many.
    let mut reserved = billed.reserved.clone();
    let of_theirs = theirs.lines.iter().zip(taken).map(|(line, attempts)| {
        let side = Side {
            tool: theirs.tool,
            unit: theirs.unit,
            hours: &hours,
            frame,
            billed,
            one_cluster: one_cluster.is_one,
        };
        side.line(line, &attempts, &mut reserved)
    });
    let of_ours = alone.into_iter().map(|(who, attempts)| {
        let mut parts = Parts::default();
        let [asked, local, there] = hours.of_all_alone(&attempts, frame);
        let less = less(&attempts, &hours, frame, billed);
        less.add_to(&mut parts);
        parts.add(Cause::Window, asked - local);
        parts.add(Cause::TimeZone, local - there);
        parts.add(Cause::NotInTheirs, there);
        let attempts = attempts.iter().map(|attempt| attempt.key.clone()).collect();
        Explained { who, attempts, ours: asked + less.sum(), theirs: CardTime::ZERO, parts, billing: None }
    });
    let lines: Vec<Explained> = of_theirs.chain(of_ours).collect();
    for line in &lines {
        assert_eq!(line.parts.sum(), line.ours - line.theirs, "the causes of a line add up to its difference");
    }
    lines
}

/// Their hours, as our clock reads their wall's and as theirs does; none for whole jobs, of which only the list has a first and a last moment.
struct TheirHours {
    local: Option<Vec<Interval>>,
    there: Option<Vec<Interval>>,
    listed: Option<Interval>,
    /// From the first start to the last end that a list of whole jobs has.
    rows: Option<Interval>,
}

impl TheirHours {
    fn of(theirs: &Theirs, frame: &Frame) -> Self {
        match &theirs.hours {
            Hours::WholeJobs => {
                let first = theirs.lines.iter().filter_map(|line| line.started_at).min();
                let last = theirs.lines.iter().filter_map(|line| line.ended_at.or(line.started_at)).max();
                let rows = first.zip(last).and_then(|(first, last)| Interval::new(first, last));
                Self { local: None, there: None, listed: frame.range.or(rows), rows }
            }
            Hours::Instants(all) => {
                Self { local: Some(all.clone()), there: Some(all.clone()), listed: None, rows: None }
            }
            Hours::Local(from, to) => {
                let there = stretch(frame.their_zone.unwrap_or(frame.zone), *from, *to);
                // The same clock as was asked for, up to the hour that reports are rounded to: then the zone makes the rest of the difference.
                let local = stretch(frame.zone, *from, *to)
                    .filter(|local| frame.range.is_some_and(|range| is_about(*local, range)));
                let all = |hours: Option<Interval>| Some(hours.into_iter().collect());
                Self { local: all(local.or(there)), there: all(there), listed: None, rows: None }
            }
        }
    }

    /// Of attempts that no line is of: a list of whole jobs lacks only what lies in its time.
    fn of_all_alone(&self, attempts: &[&ReportAttempt], frame: &Frame) -> [CardTime; 3] {
        if self.there.is_some() {
            return self.of_all(attempts, frame);
        }
        let listed: Vec<Interval> = self.listed.into_iter().collect();
        [attempts.iter().map(|attempt| inside(attempt, Some(&listed))).sum(); 3]
    }

    /// Of an attempt: in the hours asked for, in theirs by our clock, in theirs.
    fn of_attempt(&self, attempt: &ReportAttempt, frame: &Frame) -> [CardTime; 3] {
        let local = inside(attempt, self.local.as_deref());
        let asked = frame.range.map_or(local, |range| inside(attempt, Some(&[range])));
        [asked, local, inside(attempt, self.there.as_deref())]
    }

    fn of_all(&self, attempts: &[&ReportAttempt], frame: &Frame) -> [CardTime; 3] {
        attempts.iter().fold([CardTime::ZERO; 3], |mut sums, attempt| {
            for (sum, time) in sums.iter_mut().zip(self.of_attempt(attempt, frame)) {
                *sum += time;
            }
            sums
        })
    }
}

/// What of the hours asked for is billed otherwise than claimed.
fn less(attempts: &[&ReportAttempt], hours: &TheirHours, frame: &Frame, billed: &Billed) -> Less {
    attempts.iter().fold(Less::default(), |sum, attempt| {
        let one = billed.less(&attempt.key, hours.of_attempt(attempt, frame)[0]);
        Less { otherwise: sum.otherwise + one.otherwise, corrected_later: sum.corrected_later + one.corrected_later }
    })
}

/// Whether an attempt is another run of its job than the one that a line is of: wholly before or after it.
fn is_another_run(attempt: &ReportAttempt, line: &TheirLine) -> bool {
    let Some(held) = attempt.held else { return false };
    line.who.job.is_some()
        && (line.started_at.is_some_and(|start| held.end() <= start)
            || line.ended_at.is_some_and(|end| end <= held.start()))
}

/// Whether two stretches begin and end within an hour of each other.
fn is_about(one: Interval, other: Interval) -> bool {
    let is_near = |a: Timestamp, b: Timestamp| a.ms_since(b).abs() <= HOUR_MS;
    is_near(one.start(), other.start()) && is_near(one.end(), other.end())
}

/// An attempt's card-time in some stretches, or all of it.
fn inside(attempt: &ReportAttempt, hours: Option<&[Interval]>) -> CardTime {
    pieces(attempt, hours).into_iter().map(|piece| CardTime::of(attempt.cards, piece)).sum()
}

fn pieces(attempt: &ReportAttempt, hours: Option<&[Interval]>) -> Vec<Interval> {
    let Some(held) = attempt.held else { return Vec::new() };
    match hours {
        None => vec![held],
        Some(hours) => hours.iter().filter_map(|hours| held.overlap(*hours)).collect(),
    }
}

/// What one line is explained with.
struct Side<'a> {
    tool: Tool,
    unit: CardTime,
    hours: &'a TheirHours,
    frame: &'a Frame,
    billed: &'a Billed,
    /// Names of clusters tell nothing.
    one_cluster: bool,
}

impl Side<'_> {
    fn line(&self, line: &TheirLine, attempts: &[&ReportAttempt], reserved: &mut BTreeMap<Who, CardTime>) -> Explained {
        let mut parts = Parts::default();
        let unit = CardTime::from_part_ms(self.unit.part_ms() * i128::from(line.figures));
        let [asked, local, there] = self.hours.of_all(attempts, self.frame);
        let less = less(attempts, self.hours, self.frame, self.billed);
        less.add_to(&mut parts);
        parts.add(Cause::Window, asked - local);
        parts.add(Cause::TimeZone, local - there);
        let mut rest = there - line.time;
        let all = attempts;
        let mut take = |rest: &mut CardTime, cause, part: CardTime| {
            parts.add(cause, part);
            *rest = *rest - part;
        };
        // A list of jobs has one line a run. The others that come to it are those that it has no line of: cut by its first or last moment, or left out between.
        let (others, attempts): (Vec<&ReportAttempt>, Vec<&ReportAttempt>) = match self.hours.there {
            None => attempts.iter().partition(|attempt| is_another_run(attempt, line)),
            Some(_) => (Vec::new(), attempts.to_vec()),
        };
        for other in others {
            let is_cut = other.held.zip(self.hours.rows).is_some_and(|(held, rows)| held.overlap(rows).is_none());
            let cause = if is_cut { Cause::Window } else { Cause::NotInTheirs };
            take(&mut rest, cause, inside(other, None));
        }
        let attempts = attempts.as_slice();
        if attempts.is_empty() {
            let unused = self.reserved(line, rest, unit, reserved);
            take(&mut rest, Cause::ReservedUnused, unused);
            let cause = if line.is_idle { Cause::Idle } else { Cause::NotInOurs };
            let all = CardTime::ZERO - line.time - unused;
            take(&mut rest, cause, all);
        } else {
            take(&mut rest, Cause::Shares, self.shares(line, attempts));
            take(&mut rest, Cause::Suspended, line.suspended);
            take(&mut rest, Cause::Lifetime, self.lifetime(line, attempts));
            // A line that is there twice is no reservation, whatever some are owed.
            if copies(line.time + rest, line.time, unit).is_none() {
                let unused = self.reserved(line, rest, unit, reserved);
                take(&mut rest, Cause::ReservedUnused, unused);
            }
            if !is_rounding(rest, unit) && self.may_be_open(line, attempts, rest, unit) {
                let all = rest;
                take(&mut rest, Cause::StillOpen, all);
            }
            if let Some(more) = copies(line.time + rest, line.time, unit).filter(|_| !rest.is_zero()) {
                take(&mut rest, Cause::CountedTwice, CardTime::ZERO - more);
            }
            let cause = if is_rounding(rest, unit) { Cause::Rounding } else { Cause::Unexplained };
            let all = rest;
            take(&mut rest, cause, all);
        }
        Explained {
            who: line.who.clone(),
            attempts: all.iter().map(|attempt| attempt.key.clone()).collect(),
            ours: asked + less.sum(),
            theirs: line.time,
            parts,
            billing: line.billing.clone(),
        }
    }

    /// What they have more, as far as unused time of reservations of the line's account is left for it; below zero. What it takes is left for no other line.
    fn reserved(
        &self,
        line: &TheirLine,
        rest: CardTime,
        unit: CardTime,
        reserved: &mut BTreeMap<Who, CardTime>,
    ) -> CardTime {
        let mut missing = CardTime::ZERO - rest;
        if self.tool != Tool::Sreport || is_rounding(rest, unit) || missing <= CardTime::ZERO {
            return CardTime::ZERO;
        }
        let mut taken = CardTime::ZERO;
        for (who, left) in reserved {
            let is_there = self.one_cluster || line.who.cluster.is_none() || line.who.cluster == who.cluster;
            // A reservation of an account is charged to its users, or to the account as a whole.
            let may_use = line.who.user.is_none() || who.user.is_none() || line.who.user == who.user;
            if is_there && line.who.project == who.project && may_use {
                let part = missing.min(*left);
                *left = *left - part;
                missing = missing - part;
                taken += part;
            }
        }
        CardTime::ZERO - taken
    }

    /// Parts of cards less the whole cards that Slurm counts for them, over their hours.
    fn shares(&self, line: &TheirLine, attempts: &[&ReportAttempt]) -> CardTime {
        let whole = |cards: CardShare| {
            let parts = cards.parts();
            let over = parts.rem_euclid(CardShare::PARTS_PER_CARD);
            if over == 0 { parts } else { parts - over + CardShare::PARTS_PER_CARD }
        };
        match self.tool {
            Tool::OpenCost => CardTime::ZERO,
            Tool::Sreport | Tool::Sacct => attempts
                .iter()
                .map(|attempt| {
                    let theirs = line.cards.map_or_else(|| whole(attempt.cards), CardShare::parts);
                    // Only a part of a card is a share: another number of whole cards is no rule of Slurm's.
                    if whole(attempt.cards) == attempt.cards.parts() {
                        return CardTime::ZERO;
                    }
                    let ms: i64 =
                        pieces(attempt, self.hours.there.as_deref()).iter().map(|piece| piece.length_ms()).sum();
                    CardTime::from_part_ms(i128::from(attempt.cards.parts() - theirs) * i128::from(ms))
                })
                .sum(),
        }
    }

    /// What of our time in their hours is outside of the time that they know the job for.
    fn lifetime(&self, line: &TheirLine, attempts: &[&ReportAttempt]) -> CardTime {
        if line.lifetime.is_empty() {
            return CardTime::ZERO;
        }
        let known = Interval::union(line.lifetime.clone());
        attempts
            .iter()
            .flat_map(|attempt| {
                pieces(attempt, self.hours.there.as_deref()).into_iter().map(move |piece| (attempt, piece))
            })
            .map(|(attempt, piece)| {
                let seen: CardTime = known
                    .iter()
                    .filter_map(|known| piece.overlap(*known))
                    .map(|part| CardTime::of(attempt.cards, part))
                    .sum();
                CardTime::of(attempt.cards, piece) - seen
            })
            .sum()
    }

    /// Whether they may have counted that much after the last moment that our open records vouch for.
    fn may_be_open(&self, line: &TheirLine, attempts: &[&ReportAttempt], rest: CardTime, unit: CardTime) -> bool {
        if rest >= CardTime::ZERO {
            // They looked before we did.
            return line.is_open;
        }
        let mut most = CardTime::ZERO;
        for attempt in attempts.iter().filter(|attempt| attempt.state.is_open()) {
            let Some(held) = attempt.held else { continue };
            let Some(hours) = &self.hours.there else { return true };
            for hours in hours {
                if let Some(after) = Interval::new(held.end().max(hours.start()), hours.end()) {
                    most += CardTime::of(attempt.cards, after);
                }
            }
        }
        !most.is_zero() && (CardTime::ZERO - rest).part_ms() * 2 <= most.part_ms() * 2 + unit.part_ms()
    }
}

fn is_rounding(rest: CardTime, unit: CardTime) -> bool {
    rest.part_ms().abs() * 2 <= unit.part_ms()
}

/// What `theirs` has too much where it is `expected` two to four times over; none where it isn't.
fn copies(expected: CardTime, theirs: CardTime, unit: CardTime) -> Option<CardTime> {
    let one = expected.part_ms();
    if one <= unit.part_ms() {
        return None;
    }
    (2..=MOST_COPIES)
        .find(|n| (theirs.part_ms() - n * one).abs() * 2 <= n * unit.part_ms())
        .map(|n| CardTime::from_part_ms((n - 1) * one))
}

/// Whether names of clusters tell anything: a report and books of one cluster each may call it otherwise.
struct OneCluster {
    is_one: bool,
}

impl OneCluster {
    fn of(ours: &[ReportAttempt], theirs: &Theirs) -> Self {
        let ours: BTreeSet<&Name> = ours.iter().map(|attempt| &attempt.cluster).collect();
        let theirs: BTreeSet<&Name> = theirs.lines.iter().filter_map(|line| line.who.cluster.as_ref()).collect();
        Self { is_one: ours.len() <= 1 && theirs.len() <= 1 }
    }
}

/// Lines of a report by what they say of whom.
struct Index {
    by_who: BTreeMap<Who, Vec<usize>>,
    levels: BTreeSet<[bool; 4]>,
    one_cluster: bool,
}

impl Index {
    fn of(lines: &[TheirLine], one_cluster: bool) -> Self {
        let mut by_who: BTreeMap<Who, Vec<usize>> = BTreeMap::new();
        let mut levels = BTreeSet::new();
        for (i, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_idle) {
            let mut who = line.who.clone();
            if one_cluster {
                who.cluster = None;
            }
            levels.insert([who.cluster.is_some(), who.project.is_some(), who.user.is_some(), who.job.is_some()]);
            by_who.entry(who).or_default().push(i);
        }
        Self { by_who, levels, one_cluster }
    }

    /// The line that says most of an attempt: of several runs of its job the one that began nearest to it.
    fn line_of(&self, attempt: &ReportAttempt, lines: &[TheirLine]) -> Option<usize> {
        let mut levels: Vec<&[bool; 4]> = self.levels.iter().collect();
        levels.sort_by_key(|level| std::cmp::Reverse(level.iter().filter(|known| **known).count()));
        let job = job_of(attempt);
        let started = attempt.held.map_or(0, |held| held.start().unix_ms());
        levels.into_iter().find_map(|level| {
            let mut who = Who { cluster: None, project: None, user: None, job: None };
            if level[0] && !self.one_cluster {
                who.cluster = Some(attempt.cluster.clone());
            }
            if level[1] {
                who.project = Some(attempt.project.clone()?);
            }
            if level[2] {
                who.user = Some(attempt.user.clone()?);
            }
            if level[3] {
                who.job = Some(job.clone());
            }
            let away = |line: &usize| lines[*line].started_at.map_or(0, |at| (at.unix_ms() - started).abs());
            self.by_who.get(&who)?.iter().copied().min_by_key(away)
        })
    }
}

/// The job of an attempt, as its key has it.
pub(super) fn job_of(attempt: &ReportAttempt) -> Name {
    let job = attempt.key.job();
    let job = job.split_once('/').map_or(job, |(_, job)| job);
    job.replace("%2F", "/").replace("%25", "%").into()
}

/// Whose an attempt is that no line is of: as fine as the report's lines are.
fn who_of(attempt: &ReportAttempt, theirs: &Theirs) -> Who {
    let tells = |of: fn(&Who) -> bool| theirs.lines.iter().any(|line| of(&line.who));
    Who {
        cluster: Some(attempt.cluster.clone()).filter(|name| !name.is_empty()),
        project: attempt.project.clone(),
        user: attempt.user.clone(),
        job: tells(|who| who.job.is_some()).then(|| job_of(attempt)),
    }
}
