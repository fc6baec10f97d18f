//! What was decided, carried out by actuators: with a journal beside the ledger, so that one decision is carried out once.
//!
//! Start at [`Carrier::carry`]. Does not: decide, or wait; what takes time is taken up by the next look.

use crate::books::Books;
use crate::error::Error;
use cardhour_actuators::guards::Mode as GuardMode;
use cardhour_actuators::kubernetes::{Cluster, ClusterSettings};
use cardhour_actuators::round::Carrying;
use cardhour_actuators::sight::Sight;
use cardhour_actuators::slurm::{Slurm, SlurmSettings};
use cardhour_actuators::{Action, DecisionId, FileJournal, Guards, Journal, Past, Round, Standing, What, Worlds};
use cardhour_decisions::decision::{Decision, DecisionKind, Mode};
use cardhour_decisions::limits::would_raise;
use cardhour_decisions::policy::ReclaimPolicy;
use cardhour_decisions::policy::{ActPolicy, KubernetesPolicy, SlurmPolicy};
use cardhour_decisions::round::{Order, Place};
use cardhour_domain::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the table says of a decision that is true, and was seen to be.
pub const SEEN_TRUE: &str = "done, and seen to be";

/// The journal's name in the ledger's folder.
const JOURNAL_FILE: &str = "actions.journal";

/// Rows of decisions whose carrying out is still to be told, at most so old: older journals are history. Unit: milliseconds.
const TELLS_FOR_MS: i64 = 7 * 24 * 3_600_000;

/// Carries decisions out, look by look.
#[derive(Debug, Default)]
pub struct Carrier {
    journal: Option<FileJournal>,
}

impl Carrier {
    /// What the journal has of the decisions about limits. Errors: why it can't be read.
    pub fn of_limits(&mut self, books: &Books, known: &[Decision]) -> Result<BTreeMap<Name, Past>, String> {
        let path = books.ledger().folder().map(|folder| folder.join(JOURNAL_FILE)).filter(|path| path.exists());
        let Some(path) = path else { return Ok(BTreeMap::new()) };
        if self.journal.is_none() {
            self.journal = Some(FileJournal::open(&path).map_err(|error| crate::error::chain(&error))?);
        }
        let journal = self.journal.as_ref().expect("opened above");
        let about_limits = known.iter().filter(|row| row.kind == DecisionKind::Limit && row.of_decision.is_none());
        let past = |row: &Decision| Some((row.id.clone(), journal.past(&DecisionId::new(&*row.id))?.clone()));
        Ok(about_limits.filter_map(past).collect())
    }

    /// Begins what is ordered, goes on with what was begun, and tells what is over: rows to add, and what stands in the way.
    ///
    /// Errors: none of a world that can't be reached, which is told; the journal's are told too, since then nothing is touched.
    pub async fn carry(
        &mut self,
        books: &Books,
        policy: &ReclaimPolicy,
        mode: Mode,
        known: &[Decision],
        orders: Vec<Order>,
    ) -> Result<(Vec<Decision>, Vec<String>), Error> {
        let path = books.ledger().folder().map(|folder| folder.join(JOURNAL_FILE));
        let has_journal = path.as_deref().is_some_and(Path::exists);
        if orders.is_empty() && !has_journal {
            return Ok((Vec::new(), Vec::new()));
        }
        let Some(path) = path else {
            let none = "a ledger in a bucket has no place for the journal of actions: nothing is carried out";
            return Ok((Vec::new(), vec![none.to_owned()]));
        };
        let journal = match self.journal.take() {
            Some(journal) => journal,
            None => match FileJournal::open(&path) {
                Ok(journal) => journal,
                Err(error) => return Ok((Vec::new(), vec![crate::error::chain(&error)])),
            },
        };
        let (act, known) = (policy.act.clone(), known.to_vec());
        let work = tokio::task::spawn_blocking(move || {
            let mut journal = journal;
            let (rows, trouble) = carry_on(&act, mode, &known, orders, &mut journal);
            (journal, rows, trouble)
        });
        let (journal, rows, trouble) = work.await.expect("actions are carried on or the fault is a defect of ours");
        self.journal = Some(journal);
        Ok((rows, trouble))
    }
}

fn carry_on(
    act: &ActPolicy,
    mode: Mode,
    known: &[Decision],
    orders: Vec<Order>,
    journal: &mut FileJournal,
) -> (Vec<Decision>, Vec<String>) {
    let mut trouble = Vec::new();
    let mut actions = journal.open();
    let wanted: BTreeSet<DecisionId> = orders.iter().map(|order| order.action.decision.clone()).collect();
    for order in orders {
        if let Place::Node { node } = &order.place {
            let whose = order.job.as_ref().map_or("", |job| job.as_str());
            trouble.push(format!("{whose}: ending processes on {node} isn't possible from here"));
        } else if !actions.iter().any(|open| open.decision == order.action.decision) {
            actions.push(order.action);
        }
    }
    let guards = guards(act, mode);
    // What isn't ordered any more is off, unless it was begun: half an end is worse than a whole one.
    let is_wanted = |action: &Action, sight: &Sight| match (&action.what, wanted.contains(&action.decision)) {
        (What::SlurmLimit(limit), true) => would_raise(limit, sight).map_or(Ok(()), Err),
        (What::SlurmLimit(_), false) => Err("its band or policy.toml has changed".to_owned()),
        (What::SlurmJob(_) | What::Process(_) | What::Kubernetes(_), true) => Ok(()),
        (What::SlurmJob(_) | What::Process(_) | What::Kubernetes(_), false) => {
            Err("the job works again, or it was called off".to_owned())
        }
    };
    let mut worlds = worlds(act, &mut trouble);
    for action in &actions {
        let mut with =
            Carrying { world: &mut worlds, journal, guards: &guards, is_wanted: &is_wanted, now: &crate::clock::now };
        match cardhour_actuators::round(action, &mut with) {
            Ok(Round::Over(_) | Round::Due(_)) => {}
            Ok(Round::Held { why, .. }) => trouble.push(format!("decision {}: held, {why}", action.decision)),
            Ok(Round::Blind { reason, .. }) => {
                trouble.push(format!("decision {}: can't see it: {reason}", action.decision));
            }
            Err(error) => trouble.push(crate::error::chain(&error)),
        }
    }
    (ended(known, journal), trouble)
}

/// Rows for decisions whose action is over and of which no row says so yet: also of what an earlier process carried out before it was killed.
fn ended(known: &[Decision], journal: &FileJournal) -> Vec<Decision> {
    let told: BTreeSet<&Name> = known.iter().filter_map(|decision| decision.of_decision.as_ref()).collect();
    let newest = known.iter().map(|decision| decision.at).max();
    let is_young =
        |decision: &&Decision| newest.is_none_or(|newest| newest.unix_ms() - decision.at.unix_ms() <= TELLS_FOR_MS);
    let row = |decision: &Decision| {
        let past = journal.past(&DecisionId::new(&*decision.id))?;
        let what: Name = match &past.standing {
            Standing::Open => return None,
            Standing::SeenTrue => SEEN_TRUE.into(),
            Standing::Refused(reason) => format!("left alone: {reason}").into(),
            Standing::GivenUp(reason) => format!("begun, and given up: {reason}").into(),
        };
        let before = past.first().map(|tried| seen(&tried.before));
        Some(decision.carried_out(crate::clock::now(), what, before, after(past)))
    };
    let untold = known.iter().filter(|decision| decision.of_decision.is_none() && !told.contains(&decision.id));
    untold.filter(is_young).filter_map(row).collect()
}

fn after(past: &Past) -> Option<Name> {
    past.after.as_ref().map(seen)
}

fn seen(sight: &Sight) -> Name {
    serde_json::to_string(sight).expect("a sight is plain data").into()
}

fn guards(act: &ActPolicy, mode: Mode) -> Guards {
    Guards {
        mode: match mode {
            Mode::Off | Mode::Shadow => GuardMode::Shadow,
            Mode::Notify => GuardMode::Notify,
            Mode::Act => GuardMode::Act,
        },
        is_off: mode == Mode::Off,
        off_file: act.off_file.clone(),
        most_an_hour: act.most_an_hour,
        most_an_hour_a_tenant: act.most_an_hour_a_project,
    }
}

fn worlds(act: &ActPolicy, trouble: &mut Vec<String>) -> Worlds {
    let kubernetes = act.kubernetes.as_ref().and_then(|policy| match cluster(policy) {
        Ok(cluster) => Some(cluster),
        Err(reason) => {
            trouble.push(format!("Kubernetes at {}: {reason}", policy.url));
            None
        }
    });
    Worlds { slurm: act.slurm.as_ref().map(slurm), processes: None, kubernetes }
}

fn slurm(policy: &SlurmPolicy) -> Slurm {
    let command = |name: &str| policy.commands.as_ref().map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
    Slurm::new(SlurmSettings {
        slurm_conf: policy.conf.clone(),
        squeue: command("squeue"),
        scontrol: command("scontrol"),
        scancel: command("scancel"),
        sacctmgr: command("sacctmgr"),
        timeout: duration(policy.timeout_ms),
    })
}

fn cluster(policy: &KubernetesPolicy) -> Result<Cluster, String> {
    Cluster::new(ClusterSettings {
        url: policy.url.to_string(),
        ca_file: policy.ca_file.clone(),
        token_file: policy.token_file.clone(),
        timeout: duration(policy.timeout_ms),
    })
}

fn duration(ms: i64) -> Duration {
    Duration::from_millis(ms.unsigned_abs())
}
