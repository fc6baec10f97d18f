//! The holders that were observed on a card, against the rule and their shares.

use super::rule::check_pair;
use super::{Breach, FaultReach, HolderEnd, Mode, Party, XidSeen, reach_of};
use cardhour_domain::{AttemptKey, CardShare, Interval, Name, Percent, Reading};
use std::collections::BTreeSet;

/// A card over a stretch, with those who held a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedCard {
    /// Its UUID.
    pub card_uuid: Name,
    /// The stretch.
    pub during: Interval,
    /// All its memory. Unit: MiB.
    pub memory_mib: Reading<u64>,
    /// Who was there.
    pub holders: Vec<ObservedHolder>,
    /// Xids of the card in the stretch.
    pub xids: Vec<XidSeen>,
    /// Holders of it that ended in the stretch or soon after.
    pub ends: Vec<HolderEnd>,
}

/// One of those who held a part of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedHolder {
    /// Who, and how it has its part.
    pub party: Party,
    /// When in the stretch.
    pub during: Interval,
    /// Its share.
    pub share: CardShare,
    /// Memory it may have, where that is said apart from its share. Unit: MiB.
    pub memory_limit_mib: Option<u64>,
    /// The most memory it had. Unit: MiB.
    pub memory_peak_mib: Reading<u64>,
    /// Its own part of the card's multiprocessors, on average.
    pub sm_active: Reading<Percent>,
}

/// From where on something is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditLimits {
    /// Memory over what is allowed, as a part of that: a context takes some that nobody asked for.
    pub memory_over: Percent,
    /// Multiprocessors over the share, in points.
    pub sm_over: Percent,
    /// From this activity on a neighbour has work of its own that it could be kept from.
    pub neighbour_works_from: Percent,
    /// How soon after an Xid a neighbour must have failed to be hit by it. Unit: milliseconds.
    pub hit_within_ms: i64,
}

impl Default for AuditLimits {
    fn default() -> Self {
        let percent = |percent: i32| Percent::from_thousandths(percent * 1000).expect("from 0 to 100");
        Self { memory_over: percent(5), sm_over: percent(5), neighbour_works_from: percent(2), hit_within_ms: 60_000 }
    }
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Within one tenant: worth a word to it.
    Advice,
    /// Between tenants, or against the rule: an alert.
    Violation,
}

/// What was found on a card, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The card.
    pub card_uuid: Name,
    /// The stretch that was looked at.
    pub during: Interval,
    /// How grave.
    pub severity: Severity,
    /// What.
    pub violation: Violation,
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// Two share who may not.
    Rule(Breach),
    /// More memory than is its own.
    MemoryOverShare {
        /// Whose.
        holder: AttemptKey,
        /// The most it had. Unit: MiB.
        peak_mib: u64,
        /// What it may have. Unit: MiB.
        allowed_mib: u64,
        /// Who was there too.
        neighbours: BTreeSet<AttemptKey>,
    },
    /// A fault of one process, and others failed with it.
    FaultHitNeighbours {
        /// The fault.
        xid: XidSeen,
        /// Who failed.
        hit: BTreeSet<AttemptKey>,
        /// How those who share by it do.
        mode: Mode,
    },
    /// One takes more of the multiprocessors than is its own while others have work.
    BusyNeighbour {
        /// Which.
        holder: AttemptKey,
        /// What it had of them.
        sm_active: Percent,
        /// Its share.
        share: CardShare,
        /// Who had work too.
        neighbours: BTreeSet<AttemptKey>,
    },
}

/// What came of looking at a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardAudit {
    /// What is wrong, gravest first.
    pub findings: Vec<Finding>,
    /// Faults of the card itself: nobody on it is to blame.
    pub card_faults: Vec<XidSeen>,
    /// Holders of which something that would have to be known wasn't seen.
    pub not_judged: BTreeSet<AttemptKey>,
}

/// Looks at one card. Holders that weren't there at the same time don't count as sharing.
pub fn audit_card(card: &ObservedCard, limits: &AuditLimits) -> CardAudit {
    let mut audit = CardAudit { findings: Vec::new(), card_faults: Vec::new(), not_judged: BTreeSet::new() };
    for (at, one) in card.holders.iter().enumerate() {
        for other in card.holders[at + 1..].iter().filter(|other| are_neighbours(one, other)) {
            if let Err(breach) = check_pair(&one.party, &other.party) {
                audit.push(card, Severity::Violation, Violation::Rule(breach));
            }
        }
        check_memory(card, one, limits, &mut audit);
        check_processors(card, one, limits, &mut audit);
    }
    for xid in &card.xids {
        check_fault(card, xid, limits, &mut audit);
    }
    audit.findings.sort_by(|a, b| (b.severity, &a.violation).cmp(&(a.severity, &b.violation)));
    audit.findings.dedup();
    audit
}

impl CardAudit {
    fn push(&mut self, card: &ObservedCard, severity: Severity, violation: Violation) {
        self.findings.push(Finding { card_uuid: card.card_uuid.clone(), during: card.during, severity, violation });
    }
}

impl Finding {
    /// What it says to the operator.
    pub fn words(&self) -> String {
        let list = |holders: &BTreeSet<AttemptKey>| holders.iter().map(AttemptKey::job).collect::<Vec<_>>().join(", ");
        let what = match &self.violation {
            Violation::Rule(breach) => breach.to_string(),
            Violation::MemoryOverShare { holder, peak_mib, allowed_mib, neighbours } => {
                format!("{} had {peak_mib} MiB and may have {allowed_mib}, beside {}", holder.job(), list(neighbours))
            }
            Violation::FaultHitNeighbours { xid, hit, mode } => {
                let whose = xid.holder.as_ref().map_or("an unknown process", |holder| holder.job());
                format!("Xid {} of {whose} at {}: {} failed with it ({})", xid.xid, xid.at, list(hit), mode.name())
            }
            Violation::BusyNeighbour { holder, sm_active, share, neighbours } => format!(
                "{} had {sm_active} % of the multiprocessors with a share of {}, while {} had work",
                holder.job(),
                share.cards().normalize(),
                list(neighbours)
            ),
        };
        format!("card {}: {what}", self.card_uuid)
    }
}

fn are_neighbours(one: &ObservedHolder, other: &ObservedHolder) -> bool {
    one.party.holder != other.party.holder && one.during.overlap(other.during).is_some()
}

fn neighbours<'a>(card: &'a ObservedCard, of: &'a ObservedHolder) -> impl Iterator<Item = &'a ObservedHolder> {
    card.holders.iter().filter(move |other| are_neighbours(of, other))
}

/// Between tenants, or within one.
fn severity<'a>(of: &Party, others: impl Iterator<Item = &'a Party>) -> Severity {
    let mut others = others;
    let is_within = others.all(|other| of.tenant.is_some() && of.tenant == other.tenant);
    if is_within { Severity::Advice } else { Severity::Violation }
}

fn names<'a>(holders: impl Iterator<Item = &'a ObservedHolder>) -> BTreeSet<AttemptKey> {
    holders.map(|holder| holder.party.holder.clone()).collect()
}

fn check_memory(card: &ObservedCard, one: &ObservedHolder, limits: &AuditLimits, audit: &mut CardAudit) {
    let beside: Vec<_> = neighbours(card, one).collect();
    if beside.is_empty() {
        return;
    }
    let of_share = |total_mib: u64| {
        let part = u128::from(total_mib) * one.share.parts().unsigned_abs() as u128;
        (part / CardShare::PARTS_PER_CARD as u128) as u64
    };
    let allowed = one.memory_limit_mib.or_else(|| card.memory_mib.seen().map(of_share));
    let (Some(allowed_mib), Some(peak_mib)) = (allowed, one.memory_peak_mib.seen()) else {
        audit.not_judged.insert(one.party.holder.clone());
        return;
    };
    let whole = Percent::WHOLE.thousandths() as u128;
    let most = u128::from(allowed_mib) * (whole + limits.memory_over.thousandths() as u128);
    if u128::from(peak_mib) * whole > most {
        let violation = Violation::MemoryOverShare {
            holder: one.party.holder.clone(),
            peak_mib,
            allowed_mib,
            neighbours: names(beside.iter().copied()),
        };
        audit.push(card, severity(&one.party, beside.iter().map(|other| &other.party)), violation);
    }
}

/// More than its share is nobody's loss while the others have no work. An instance and a vGPU can't take more than they have.
fn check_processors(card: &ObservedCard, one: &ObservedHolder, limits: &AuditLimits, audit: &mut CardAudit) {
    let shares_device = |other: &&ObservedHolder| other.party.device_uuid == one.party.device_uuid;
    let beside: Vec<_> = neighbours(card, one).filter(shares_device).collect();
    if beside.is_empty() || one.party.mode == Mode::Vgpu {
        return;
    }
    let Some(sm_active) = one.sm_active.seen() else {
        audit.not_judged.insert(one.party.holder.clone());
        return;
    };
    let own =
        i128::from(sm_active.thousandths() - limits.sm_over.thousandths()) * i128::from(CardShare::PARTS_PER_CARD);
    if own <= i128::from(one.share.parts()) * i128::from(Percent::WHOLE.thousandths()) {
        return;
    }
    let works = |other: &&&ObservedHolder| other.sm_active.seen().is_some_and(|sm| sm >= limits.neighbour_works_from);
    let working: Vec<_> = beside.iter().filter(works).copied().collect();
    if working.is_empty() {
        let unseen = beside.iter().filter(|other| other.sm_active.seen().is_none());
        audit.not_judged.extend(unseen.map(|other| other.party.holder.clone()));
        return;
    }
    let violation = Violation::BusyNeighbour {
        holder: one.party.holder.clone(),
        sm_active,
        share: one.share,
        neighbours: names(working.iter().copied()),
    };
    audit.push(card, severity(&one.party, working.iter().map(|other| &other.party)), violation);
}

fn check_fault(card: &ObservedCard, xid: &XidSeen, limits: &AuditLimits, audit: &mut CardAudit) {
    if reach_of(xid.xid) == FaultReach::Card {
        audit.card_faults.push(xid.clone());
        return;
    }
    let failed: BTreeSet<&AttemptKey> = card
        .ends
        .iter()
        .filter(|end| end.has_failed && (0..=limits.hit_within_ms).contains(&end.at.ms_since(xid.at)))
        .map(|end| &end.holder)
        .collect();
    // Those who were there: it may have taken them down a moment before their end was noted.
    let present = |holder: &&ObservedHolder| {
        holder.during.start() <= xid.at && holder.during.end().ms_since(xid.at) >= -limits.hit_within_ms
    };
    let is_culprit = |holder: &&ObservedHolder| match (&xid.holder, &xid.device_uuid) {
        (Some(culprit), _) => holder.party.holder == *culprit,
        (None, Some(device)) => holder.party.device_uuid == *device,
        (None, None) => false,
    };
    let there: Vec<_> = card.holders.iter().filter(present).collect();
    let hit: Vec<_> = there.iter().copied().filter(|h| !is_culprit(h) && failed.contains(&h.party.holder)).collect();
    // Without a culprit's name one that failed alone may be the culprit itself.
    let has_culprit = xid.holder.is_some() || xid.device_uuid.is_some();
    if hit.is_empty() || (!has_culprit && hit.len() < 2) {
        return;
    }
    let culprit = there.iter().find(|holder| is_culprit(holder)).copied();
    let from = culprit.unwrap_or(hit[0]);
    let violation =
        Violation::FaultHitNeighbours { xid: xid.clone(), hit: names(hit.iter().copied()), mode: from.party.mode };
    audit.push(card, severity(&from.party, hit.iter().map(|other| &other.party)), violation);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work_class::WorkClass;
    use cardhour_domain::{Gap, Timestamp};

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_unix_ms(minute * 60_000)
    }

    fn stretch(from: i64, to: i64) -> Interval {
        Interval::new(at(from), at(to)).unwrap()
    }

    fn percent(percent: i32) -> Percent {
        Percent::from_thousandths(percent * 1000).unwrap()
    }

    fn key(holder: &str) -> AttemptKey {
        AttemptKey::new("lab", holder, "1")
    }

    /// A quarter of an 80 GiB card, time-sliced, at work within its share.
    fn holder(name: &str, tenant: &str) -> ObservedHolder {
        ObservedHolder {
            party: Party {
                holder: key(name),
                tenant: Some(tenant.into()),
                class: Some(WorkClass::Development),
                is_critical: false,
                mode: Mode::TimeSlice,
                device_uuid: "GPU-1".into(),
            },
            during: stretch(0, 60),
            share: CardShare::from_fraction(1, 4).unwrap(),
            memory_limit_mib: None,
            memory_peak_mib: Reading::Seen(20_000),
            sm_active: Reading::Seen(percent(20)),
        }
    }

    fn card(holders: Vec<ObservedHolder>) -> ObservedCard {
        let memory_mib = Reading::Seen(81_920);
        ObservedCard {
            card_uuid: "GPU-1".into(),
            during: stretch(0, 60),
            memory_mib,
            holders,
            xids: vec![],
            ends: vec![],
        }
    }

    fn audit(card: &ObservedCard) -> Vec<(Severity, String)> {
        let findings = audit_card(card, &AuditLimits::default()).findings;
        findings.iter().map(|finding| (finding.severity, finding.words())).collect()
    }

    #[test]
    fn two_of_one_tenant_within_their_shares_are_fine() {
        assert_eq!(audit(&card(vec![holder("1", "vision"), holder("2", "vision")])), []);
    }

    #[test]
    fn strangers_that_take_turns_are_an_alert_unless_they_were_there_at_different_times() {
        let mut there = card(vec![holder("1", "vision"), holder("2", "speech")]);
        let found = audit(&there);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, Severity::Violation);
        assert!(
            found[0].1.starts_with("card GPU-1: lab/1/1 of vision and lab/2/1 of speech share a device by time_slice")
        );
        there.holders[0].during = stretch(0, 30);
        there.holders[1].during = stretch(30, 60);
        assert_eq!(audit(&there), []);
    }

    /// A quarter of 81,920 MiB is 20,480; 5 % over that are 21,504.
    #[test]
    fn memory_over_the_share_is_told_with_both_figures() {
        let mut there = card(vec![holder("1", "vision"), holder("2", "vision")]);
        there.holders[0].memory_peak_mib = Reading::Seen(21_504);
        assert_eq!(audit(&there), []);
        there.holders[0].memory_peak_mib = Reading::Seen(21_505);
        assert_eq!(
            audit(&there),
            [(Severity::Advice, "card GPU-1: lab/1 had 21505 MiB and may have 20480, beside lab/2".to_owned())]
        );
        there.holders[0].memory_limit_mib = Some(30_000);
        assert_eq!(audit(&there), []);
        there.holders.truncate(1);
        there.holders[0].memory_peak_mib = Reading::Seen(80_000);
        assert_eq!(audit(&there), []);
    }

    /// A quarter and five points are 30 %.
    #[test]
    fn more_of_the_processors_than_the_share_counts_only_while_others_have_work() {
        let mut there = card(vec![holder("1", "vision"), holder("2", "vision")]);
        there.holders[0].sm_active = Reading::Seen(percent(30));
        assert_eq!(audit(&there), []);
        there.holders[0].sm_active = Reading::Seen(percent(70));
        assert_eq!(
            audit(&there),
            [(
                Severity::Advice,
                "card GPU-1: lab/1 had 70 % of the multiprocessors with a share of 0.25, while lab/2 had work"
                    .to_owned()
            )]
        );
        there.holders[1].sm_active = Reading::Seen(percent(0));
        assert_eq!(audit(&there), []);
        there.holders[1].sm_active = Reading::Missing(Gap::NotSupported);
        let audit = audit_card(&there, &AuditLimits::default());
        assert_eq!((audit.findings.len(), audit.not_judged), (0, BTreeSet::from([key("2")])));
    }

    fn with_fault(mode: Mode, xid: u32, culprit: Option<&str>) -> ObservedCard {
        let mut there = card(vec![holder("1", "vision"), holder("2", "vision"), holder("3", "vision")]);
        for holder in &mut there.holders {
            holder.party.mode = mode;
        }
        there.xids = vec![XidSeen { at: at(10), xid, holder: culprit.map(key), device_uuid: None }];
        there.ends = ["1", "2"].map(|name| HolderEnd { at: at(11), holder: key(name), has_failed: true }).into();
        there
    }

    /// Under MPS a page fault of one client ends all of them.
    #[test]
    fn a_fault_of_one_that_takes_others_with_it_is_told() {
        let found = audit(&with_fault(Mode::Mps, 31, Some("1")));
        assert_eq!(
            found,
            [(
                Severity::Advice,
                "card GPU-1: Xid 31 of lab/1 at 1970-01-01T00:10:00Z: lab/2 failed with it (mps)".to_owned()
            )]
        );
        let mut strangers = with_fault(Mode::Vgpu, 31, Some("1"));
        strangers.holders[1].party.tenant = Some("speech".into());
        assert_eq!(audit(&strangers)[0].0, Severity::Violation);
    }

    #[test]
    fn who_fails_alone_late_or_well_is_hit_by_nobody() {
        let mut alone = with_fault(Mode::Mps, 31, Some("1"));
        alone.ends.truncate(1);
        assert_eq!(audit(&alone), []);
        let mut late = with_fault(Mode::Mps, 31, Some("1"));
        late.ends[1].at = at(12);
        assert_eq!(audit(&late), []);
        let mut well = with_fault(Mode::Mps, 31, Some("1"));
        well.ends[1].has_failed = false;
        assert_eq!(audit(&well), []);
        // Nobody is named: with two that failed one of them was hit, with one perhaps none.
        assert_eq!(audit(&with_fault(Mode::Mps, 31, None)).len(), 1);
        let mut unnamed = with_fault(Mode::Mps, 31, None);
        unnamed.ends.truncate(1);
        assert_eq!(audit(&unnamed), []);
    }

    #[test]
    fn a_card_that_falls_off_the_bus_is_nobodys_fault() {
        let audit = audit_card(&with_fault(Mode::TimeSlice, 79, None), &AuditLimits::default());
        assert_eq!((audit.findings.len(), audit.card_faults.len()), (0, 1));
    }

    /// An Xid of one instance, and a job in another fell with it: the instances didn't keep them apart.
    #[test]
    fn a_fault_that_leaves_its_mig_instance_is_told() {
        let mut there = with_fault(Mode::Mig, 13, None);
        for (n, holder) in there.holders.iter_mut().enumerate() {
            holder.party.device_uuid = format!("MIG-{n}").into();
            holder.party.tenant = Some(format!("tenant-{n}").into());
        }
        there.xids[0].device_uuid = Some("MIG-0".into());
        let found = audit(&there);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, Severity::Violation);
        assert!(found[0].1.contains("lab/2 failed with it (mig)"), "{found:?}");
    }
}
