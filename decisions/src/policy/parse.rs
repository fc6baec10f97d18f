//! From the text of `policy.toml` to a checked policy.

use super::{ActPolicy, CheckpointRule, KubernetesPolicy, OptOutRule, ReclaimPolicy, SlurmPolicy};
use crate::acting::signal_of;
use crate::decision::Mode;
use cardhour_actuators::slurm::{Mark, Reach};
use cardhour_books::document::{Faults, Place, Reader, read};
use cardhour_domain::{Name, Percent, Timestamp};
use cardhour_scheduler_core::lease::{
    ClassPolicy, ExtensionLimits, Floors, LeasePolicy, OptOut, Reclaim, UnseenCheckpoint,
};
use cardhour_scheduler_core::work_class::WorkClass;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

/// The longest time that is believed. Unit: milliseconds.
const LONGEST_MS: i64 = 366 * 86_400_000;

const MODES: [(&str, Mode); 4] =
    [("off", Mode::Off), ("shadow", Mode::Shadow), ("notify", Mode::Notify), ("act", Mode::Act)];

pub(super) fn parse(text: &str) -> Result<ReclaimPolicy, Faults> {
    Ok(read(text, policy)?.unwrap_or_default())
}

fn policy(reader: &mut Reader<'_>, root: &Place<'_, '_>) -> Option<ReclaimPolicy> {
    reader.known_keys(root, &["reclaim", "opt_out", "limit", "act"]);
    let mut policy = ReclaimPolicy::default();
    let mut is_whole = true;
    if let Some(place) = reader.table(root, "reclaim") {
        is_whole &= reclaim(reader, &place, &mut policy).is_some();
        let faults = policy.lease.faults();
        if is_whole {
            for fault in &faults {
                reader.fault(place.at, &place.path, fault);
            }
            is_whole = faults.is_empty();
        }
    } else {
        is_whole &= !root.table.contains_key("reclaim");
    }
    for place in reader.tables(root, "opt_out") {
        match opt_out(reader, &place) {
            Some(rule) => policy.opt_outs.push(rule),
            None => is_whole = false,
        }
    }
    match super::limit::rules(reader, root) {
        Some(rules) => policy.limits = rules,
        None => is_whole = false,
    }
    match reader.table(root, "act") {
        Some(place) => match act(reader, &place) {
            Some(act) => policy.act = act,
            None => is_whole = false,
        },
        None => is_whole &= !root.table.contains_key("act"),
    }
    // A fault that was told and changed nothing makes no policy either: `read` sees to that.
    is_whole.then_some(policy)
}

fn reclaim(reader: &mut Reader<'_>, place: &Place<'_, '_>, policy: &mut ReclaimPolicy) -> Option<()> {
    reader.known_keys(
        place,
        &[
            "window",
            "coverage",
            "ends_after",
            "stale_after",
            "act_within",
            "retry_warning",
            "release_limit",
            "reported_limit",
            "recovered_for",
            "most_at_once",
            "blind_from",
            "loaded_from",
            "unseen_checkpoint",
            "extensions",
            "longest_extension",
            "extensions_together",
            "floors",
            "class",
            "checkpoint",
        ],
    );
    let lease = &mut policy.lease;
    let mut is_whole = true;
    let mut take = |ok: bool| is_whole &= ok;
    take(length(reader, place, "window", &mut lease.window_ms));
    take(length(reader, place, "ends_after", &mut lease.ends_after_ms));
    take(length(reader, place, "stale_after", &mut policy.stale_after_ms));
    take(length(reader, place, "act_within", &mut lease.act_within_ms));
    take(length(reader, place, "retry_warning", &mut lease.retry_warning_ms));
    take(length(reader, place, "release_limit", &mut lease.release_limit_ms));
    take(length(reader, place, "reported_limit", &mut lease.reported_limit_ms));
    take(length(reader, place, "recovered_for", &mut policy.recovered_for_ms));
    take(part(reader, place, "coverage", &mut lease.coverage));
    take(part(reader, place, "most_at_once", &mut lease.most_at_once));
    take(part(reader, place, "blind_from", &mut lease.blind_from));
    take(part(reader, place, "loaded_from", &mut lease.loaded_from));
    if let Some(word) = reader.word(
        place,
        "unseen_checkpoint",
        &[("stop", UnseenCheckpoint::StopAnyway), ("keep", UnseenCheckpoint::KeepAndAlert)],
    ) {
        lease.unseen_checkpoint = word;
    }
    let ExtensionLimits { most, longest_ms, total_ms } = &mut lease.extensions;
    take(count(reader, place, "extensions", most));
    take(length(reader, place, "longest_extension", longest_ms));
    take(length(reader, place, "extensions_together", total_ms));
    if let Some(floors_place) = reader.table(place, "floors") {
        take(floors(reader, &floors_place, &mut lease.floors));
    }
    for class_place in reader.tables(place, "class") {
        take(class(reader, &class_place, lease));
    }
    if let Some(checkpoint_place) = reader.table(place, "checkpoint") {
        match checkpoint(reader, &checkpoint_place) {
            Some(rule) => policy.checkpoint = Some(rule),
            None => take(false),
        }
    }
    is_whole.then_some(())
}

fn floors(reader: &mut Reader<'_>, place: &Place<'_, '_>, floors: &mut Floors) -> bool {
    reader.known_keys(
        place,
        &["sm_active", "memory_active", "power_above_idle", "link_bytes_per_s", "cpu_cores", "io_bytes_per_s"],
    );
    let mut cores_milli = floors.cpu_milli_cores;
    let mut link = floors.link_bytes_per_s;
    let mut io = floors.io_bytes_per_s;
    let all = [
        part(reader, place, "sm_active", &mut floors.sm_active),
        part(reader, place, "memory_active", &mut floors.memory_active),
        part(reader, place, "power_above_idle", &mut floors.power_above_idle),
        whole(reader, place, "link_bytes_per_s", &mut link),
        whole(reader, place, "io_bytes_per_s", &mut io),
        thousandths(reader, place, "cpu_cores", &mut cores_milli),
    ];
    (floors.cpu_milli_cores, floors.link_bytes_per_s, floors.io_bytes_per_s) = (cores_milli, link, io);
    all.into_iter().all(|is_right| is_right)
}

fn class(reader: &mut Reader<'_>, place: &Place<'_, '_>, lease: &mut LeasePolicy) -> bool {
    reader.known_keys(
        place,
        &["class", "startup_grace", "first_use_limit", "lease", "loaded_lease", "grace", "checkpoint_wait", "reclaim"],
    );
    if reader.required(place, "class").is_none() {
        return false;
    }
    let mut words: Vec<(&str, Option<WorkClass>)> =
        WorkClass::ALL.into_iter().map(|class| (class.name(), Some(class))).collect();
    words.push(("other", None));
    let Some(of) = reader.word(place, "class", &words) else { return false };
    let mut times = lease.of_class(of);
    let ClassPolicy {
        startup_grace_ms,
        first_use_limit_ms,
        lease_ms,
        loaded_lease_ms,
        grace_ms,
        checkpoint_wait_ms,
        reclaim,
    } = &mut times;
    let all = [
        length(reader, place, "startup_grace", startup_grace_ms),
        length(reader, place, "first_use_limit", first_use_limit_ms),
        length(reader, place, "lease", lease_ms),
        length(reader, place, "loaded_lease", loaded_lease_ms),
        length(reader, place, "grace", grace_ms),
        length(reader, place, "checkpoint_wait", checkpoint_wait_ms),
    ];
    let ways = [("after_grace", Reclaim::AfterGrace), ("advice_only", Reclaim::AdviceOnly)];
    if let Some(way) = reader.word(place, "reclaim", &ways) {
        *reclaim = way;
    }
    match of {
        None => lease.other = times,
        Some(of) => match lease.classes.iter_mut().find(|(class, _)| *class == of) {
            Some((_, own)) => *own = times,
            None => lease.classes.push((of, times)),
        },
    }
    all.into_iter().all(|is_right| is_right)
}

fn checkpoint(reader: &mut Reader<'_>, place: &Place<'_, '_>) -> Option<CheckpointRule> {
    reader.known_keys(place, &["signal", "reach", "file", "comment"]);
    let (value, key) = reader.required(place, "signal")?;
    let signal = signal_of(reader.string(value, &key)?);
    if signal.is_none() {
        reader.fault_of(value, &key, "is none of USR1, USR2, INT, HUP, TERM");
    }
    let reaches = [("batch", Reach::Batch), ("steps", Reach::Steps), ("all", Reach::All)];
    let reach = reader.word(place, "reach", &reaches).unwrap_or(Reach::Batch);
    let (file, comment) = (reader.name(place, "file"), reader.name(place, "comment"));
    if file.is_some() && comment.is_some() {
        reader.fault(place.at, &place.path, "has a file and a comment: a checkpoint is seen by one of them");
        return None;
    }
    let file = file.map(|path| Mark::File(path.as_str().into()));
    let mark = file.or_else(|| comment.map(|word| Mark::Comment(word.to_string())));
    Some(CheckpointRule { signal: signal?, reach, mark })
}

fn opt_out(reader: &mut Reader<'_>, place: &Place<'_, '_>) -> Option<OptOutRule> {
    let whom = ["job", "user", "project", "queue", "cluster"];
    reader.known_keys(place, &["owner", "reason", "until", "job", "user", "project", "queue", "cluster"]);
    let mut required = |key: &str| {
        reader.required(place, key)?;
        reader.name(place, key)
    };
    let (owner, reason) = (required("owner"), required("reason"));
    let until = reader.required(place, "until").and_then(|(value, key)| {
        let text = reader.string(value, &key)?;
        let until = Timestamp::parse_rfc3339(text).ok();
        if until.is_none() {
            reader.fault_of(value, &key, format!("{text:?} is no instant such as \"2026-12-31T18:00:00+08:00\""));
        }
        until
    });
    let named = whom.map(|key| reader.name(place, key));
    let is_faulty = whom.iter().zip(&named).any(|(key, name)| name.is_none() && place.table.contains_key(*key));
    let [job, user, project, queue, cluster] = named;
    if [&job, &user, &project, &queue, &cluster].into_iter().all(Option::is_none) {
        if !is_faulty {
            reader.fault(place.at, &place.path, "names nobody: it needs a job, user, project, queue or cluster");
        }
        return None;
    }
    let opt_out = OptOut { owner: owner?, reason: reason?, until: until? };
    (!is_faulty).then_some(OptOutRule { job, user, project, queue, cluster, opt_out })
}

fn act(reader: &mut Reader<'_>, place: &Place<'_, '_>) -> Option<ActPolicy> {
    reader.known_keys(
        place,
        &[
            "mode",
            "elsewhere",
            "clusters",
            "queues",
            "most_an_hour",
            "most_an_hour_a_project",
            "off_file",
            "deadline",
            "end_grace",
            "processes",
            "slurm",
            "kubernetes",
        ],
    );
    let mut act = ActPolicy::default();
    let mut is_whole = true;
    if let Some(mode) = reader.word(place, "mode", &MODES) {
        act.mode = mode;
    }
    if let Some(mode) = reader.word(place, "elsewhere", &MODES[..3]) {
        act.elsewhere = mode;
    }
    is_whole &= names(reader, place, "clusters", &mut act.clusters);
    is_whole &= names(reader, place, "queues", &mut act.queues);
    is_whole &= count(reader, place, "most_an_hour", &mut act.most_an_hour);
    let mut a_project = 0;
    is_whole &= count(reader, place, "most_an_hour_a_project", &mut a_project);
    act.most_an_hour_a_project = place.table.contains_key("most_an_hour_a_project").then_some(a_project);
    act.off_file = reader.name(place, "off_file").map(|path| path.as_str().into());
    is_whole &= length(reader, place, "deadline", &mut act.deadline_ms);
    let mut end_grace_ms = i64::from(act.end_grace_s) * 1000;
    is_whole &= length(reader, place, "end_grace", &mut end_grace_ms);
    act.end_grace_s = u32::try_from(end_grace_ms / 1000).unwrap_or(u32::MAX);
    act.processes = reader.flag(place, "processes").unwrap_or(false);
    if let Some(place) = reader.table(place, "slurm") {
        reader.known_keys(&place, &["clusters", "conf", "commands", "timeout"]);
        let mut slurm = SlurmPolicy { clusters: Vec::new(), conf: None, commands: None, timeout_ms: 20_000 };
        is_whole &= names(reader, &place, "clusters", &mut slurm.clusters);
        is_whole &= length(reader, &place, "timeout", &mut slurm.timeout_ms);
        slurm.conf = reader.name(&place, "conf").map(|path| path.as_str().into());
        slurm.commands = reader.name(&place, "commands").map(|path| path.as_str().into());
        act.slurm = Some(slurm);
    }
    if let Some(place) = reader.table(place, "kubernetes") {
        reader.known_keys(&place, &["clusters", "url", "ca_file", "token_file", "timeout"]);
        let url = reader.required(&place, "url").and_then(|_| reader.name(&place, "url"));
        let mut clusters = Vec::new();
        let mut timeout_ms = 10_000;
        is_whole &= names(reader, &place, "clusters", &mut clusters);
        is_whole &= length(reader, &place, "timeout", &mut timeout_ms);
        let [ca_file, token_file] =
            ["ca_file", "token_file"].map(|key| reader.name(&place, key).map(|path| path.as_str().into()));
        match url {
            Some(url) => act.kubernetes = Some(KubernetesPolicy { clusters, url, ca_file, token_file, timeout_ms }),
            None => is_whole = false,
        }
    }
    if act.mode == Mode::Act && act.clusters.is_empty() && act.queues.is_empty() && is_whole {
        let reason = "is act, and neither clusters nor queues say where: nothing would be done anywhere";
        reader.fault(place.at, &place.key("mode"), reason);
        return None;
    }
    is_whole.then_some(act)
}

/// A length of time such as `90s`, `30m`, `2h` or `1d`, where the key is there. Returns whether it is right.
fn length(reader: &mut Reader<'_>, place: &Place<'_, '_>, key: &str, into: &mut i64) -> bool {
    let Some(value) = place.table.get(key) else { return true };
    let path = place.key(key);
    let Some(text) = reader.string(value, &path) else { return false };
    match length_ms(text) {
        Some(ms) => {
            *into = ms;
            true
        }
        None => {
            reader.fault_of(
                value,
                &path,
                format!("{text:?} is no length of time such as \"90s\", \"30m\", \"2h\", \"1d\""),
            );
            false
        }
    }
}

fn length_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    let unit = text.chars().last()?;
    let number: i64 = text.strip_suffix(unit)?.trim().parse().ok()?;
    let unit_ms = match unit {
        's' => 1000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return None,
    };
    number.checked_mul(unit_ms).filter(|ms| (0..=LONGEST_MS).contains(ms))
}

/// A part of a whole, `"0.9"`.
fn part(reader: &mut Reader<'_>, place: &Place<'_, '_>, key: &str, into: &mut Percent) -> bool {
    if !place.table.contains_key(key) {
        return true;
    }
    let Some(part) = reader.part(place, key) else { return false };
    let thousandths = (part * Decimal::from(Percent::WHOLE.thousandths())).to_i32();
    match thousandths.and_then(Percent::from_thousandths) {
        Some(percent) => {
            *into = percent;
            true
        }
        None => false,
    }
}

pub(super) fn count(reader: &mut Reader<'_>, place: &Place<'_, '_>, key: &str, into: &mut u32) -> bool {
    let mut wide = u64::from(*into);
    let is_right = whole(reader, place, key, &mut wide);
    *into = u32::try_from(wide).unwrap_or(u32::MAX);
    is_right
}

/// A whole number.
fn whole(reader: &mut Reader<'_>, place: &Place<'_, '_>, key: &str, into: &mut u64) -> bool {
    let Some(value) = place.table.get(key) else { return true };
    match reader.decimal(value, &place.key(key), 0, i64::MAX) {
        Some(number) => {
            *into = number.to_u64().expect("a whole number that isn't below zero");
            true
        }
        None => false,
    }
}

/// A number of three decimals, in thousandths.
fn thousandths(reader: &mut Reader<'_>, place: &Place<'_, '_>, key: &str, into: &mut u32) -> bool {
    let Some(value) = place.table.get(key) else { return true };
    match reader.decimal(value, &place.key(key), 3, 1_000_000) {
        Some(number) => {
            *into = (number * Decimal::ONE_THOUSAND).to_u32().expect("no more than a million thousands");
            true
        }
        None => false,
    }
}

/// A list of names.
fn names(reader: &mut Reader<'_>, place: &Place<'_, '_>, key: &str, into: &mut Vec<Name>) -> bool {
    let Some(value) = place.table.get(key) else { return true };
    let path = place.key(key);
    let Some(array) = value.get_ref().as_array() else {
        reader.fault_of(value, &path, "has to be a list such as [\"a\", \"b\"]");
        return false;
    };
    let read: Vec<Option<Name>> = array.iter().map(|item| reader.string(item, &path).map(Name::from)).collect();
    let is_right = read.iter().all(Option::is_some);
    into.extend(read.into_iter().flatten());
    is_right
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_actuators::Signal;

    #[test]
    fn without_a_file_nothing_is_done_by_the_times_of_the_design() {
        let policy = ReclaimPolicy::parse("").unwrap();
        assert_eq!(policy, ReclaimPolicy::default());
        assert_eq!((policy.act.mode, policy.act.elsewhere), (Mode::Shadow, Mode::Shadow));
        assert_eq!(policy.lease.window_ms, 30 * 60_000);
        assert_eq!(policy.mode_of(Mode::Act, "gpu", Some("dev")), Mode::Shadow, "nothing is on the list");
    }

    #[test]
    fn what_a_file_says_is_in_force() {
        let policy = ReclaimPolicy::parse(
            r#"
[reclaim]
window = "20m"
coverage = "0.95"
act_within = "90s"
unseen_checkpoint = "keep"
extensions = 5

[reclaim.floors]
sm_active = "0.03"
cpu_cores = "0.125"
link_bytes_per_s = 1000

[[reclaim.class]]
class = "development"
grace = "45m"

[[reclaim.class]]
class = "other"
lease = "1h"
loaded_lease = "3h"

[reclaim.checkpoint]
signal = "USR2"
reach = "steps"
file = "/shared/ckpt/last"

[[opt_out]]
project = "vision"
owner = "ada"
reason = "demo on Friday"
until = "2026-12-04T18:00:00+08:00"

[act]
mode = "act"
elsewhere = "notify"
queues = ["gpu/dev", "batch"]
most_an_hour = 4
end_grace = "2m"

[act.slurm]
conf = "/etc/slurm/slurm.conf"

[act.kubernetes]
clusters = ["k8s"]
url = "https://10.0.0.1:443"
"#,
        )
        .unwrap();
        let lease = &policy.lease;
        assert_eq!((lease.window_ms, lease.act_within_ms, lease.extensions.most), (20 * 60_000, 90_000, 5));
        assert_eq!((lease.coverage.thousandths(), lease.floors.sm_active.thousandths()), (95_000, 3_000));
        assert_eq!((lease.floors.cpu_milli_cores, lease.floors.link_bytes_per_s), (125, 1000));
        assert_eq!(lease.unseen_checkpoint, UnseenCheckpoint::KeepAndAlert);
        assert_eq!(lease.of_class(Some(WorkClass::Development)).grace_ms, 45 * 60_000);
        assert_eq!(lease.of_class(Some(WorkClass::Development)).startup_grace_ms, 15 * 60_000, "as it was");
        assert_eq!(lease.of_class(Some(WorkClass::Training)).lease_ms, 60 * 60_000);
        let checkpoint = policy.checkpoint.clone().unwrap();
        assert_eq!((checkpoint.signal, checkpoint.reach), (Signal::Usr2, Reach::Steps));
        assert_eq!(policy.opt_outs[0].opt_out.until, Timestamp::parse_rfc3339("2026-12-04T10:00:00Z").unwrap());
        assert_eq!((policy.act.most_an_hour, policy.act.end_grace_s), (4, 120));
        assert_eq!(policy.mode_of(Mode::Act, "gpu", Some("dev")), Mode::Act);
        assert_eq!(policy.mode_of(Mode::Act, "other", Some("dev")), Mode::Notify);
        assert_eq!(policy.mode_of(Mode::Act, "other", Some("batch")), Mode::Act);
        assert_eq!(policy.mode_of(Mode::Shadow, "gpu", Some("dev")), Mode::Shadow);
        assert_eq!(policy.act.slurm.unwrap().timeout_ms, 20_000);
    }

    /// Every block of the page that people copy from.
    #[test]
    fn what_the_docs_show_is_read() {
        let page = include_str!("../../../docs/reclaim.md");
        let blocks: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert_eq!(blocks.len(), 2);
        let opt_out = ReclaimPolicy::parse(blocks[0]).unwrap();
        assert_eq!(opt_out.opt_outs.len(), 1);
        let all = ReclaimPolicy::parse(blocks[1]).unwrap();
        let defaults = ReclaimPolicy::default();
        assert_eq!((&all.lease, all.stale_after_ms), (&defaults.lease, defaults.stale_after_ms));
        assert_eq!((all.act.mode, all.act.most_an_hour), (defaults.act.mode, defaults.act.most_an_hour));
        assert_eq!((all.act.deadline_ms, all.act.end_grace_s), (defaults.act.deadline_ms, defaults.act.end_grace_s));
    }

    #[test]
    fn all_faults_come_at_once_with_their_lines() {
        let text = r#"[reclaim]
window = "half an hour"
coverage = "90"
windw = "1h"

[[opt_out]]
user = "ada"
reason = "mine"

[[opt_out]]
owner = "ada"
reason = "all"
until = "2026-12-04T18:00:00Z"

[act]
mode = "kill"
"#;
        let Err(Faults(faults)) = ReclaimPolicy::parse(text) else { panic!("it has faults") };
        let said: Vec<String> = faults.iter().map(|fault| format!("{} {}", fault.line, fault.key)).collect();
        assert_eq!(
            said,
            [
                "2 reclaim.window",
                "3 reclaim.coverage",
                "4 reclaim.windw",
                "6 opt_out[1].owner",
                "6 opt_out[1].until",
                "10 opt_out[2]",
                "16 act.mode",
            ]
        );
    }

    #[test]
    fn a_policy_by_which_work_could_be_taken_is_refused() {
        let fault = ReclaimPolicy::parse("[reclaim]\ncoverage = \"0.1\"\n").unwrap_err();
        assert_eq!(fault.to_string(), "line 1: reclaim: coverage must be 50 % or more");
        let nowhere = ReclaimPolicy::parse("[act]\nmode = \"act\"\n").unwrap_err();
        assert!(nowhere.to_string().contains("nothing would be done anywhere"), "{nowhere}");
    }
}
