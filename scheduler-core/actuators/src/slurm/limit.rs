//! A limit of an account, a user or a QOS, by `sacctmgr`.
//!
//! Set only where it has an effect and can't end what runs. Two traps: minutes set below what was used end running jobs, unless the site enforces
//! limits `safe`ly; and what `scontrol show config` shows of that may be the file's word, not yet the controller's. Both are refused with the reason;
//! making a limit larger, or taking it away, never is.

use super::{Slurm, refused, unseen};
use crate::next::Step;
use crate::past::Answer;
use crate::setting::{Aim, SettingSight, Value};
use crate::world::Trouble;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a limit becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitAction {
    /// Of whom.
    pub holder: LimitHolder,
    /// Which limit.
    pub kind: LimitKind,
    /// Of what: `gres/gpu`, `gres/gpu:h100`, `cpu`.
    pub tres: String,
    /// What it becomes. Unit: that of the resource, or minutes of it.
    pub aim: Aim,
}

/// Whose limit it is, in the cluster whose controller is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LimitHolder {
    /// An account's, with all below it.
    Account(String),
    /// A user's in an account.
    User {
        /// Which account.
        account: String,
        /// Which user.
        user: String,
    },
    /// A QOS's: it may be of several clusters.
    Qos(String),
}

/// Which limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// `GrpTRES`: what all its jobs may have at once.
    AllAtOnce,
    /// `GrpTRESMins`: minutes that all its jobs may use. Below what was used, running jobs end where limits aren't enforced `safe`ly.
    AllMinutes,
    /// `MaxTRES`: what one job may have. Of jobs that are submitted later.
    EachJob,
    /// `MaxTRESPerUser`, of a QOS: what the jobs of one user may have at once.
    EachUser,
    /// `MaxTRESPerAccount`, of a QOS: what the jobs of one account may have at once.
    EachAccount,
}

impl LimitKind {
    /// As `sacctmgr` calls it.
    fn name(self) -> &'static str {
        match self {
            Self::AllAtOnce => "GrpTRES",
            Self::AllMinutes => "GrpTRESMins",
            Self::EachJob => "MaxTRES",
            Self::EachUser => "MaxTRESPerUser",
            Self::EachAccount => "MaxTRESPerAccount",
        }
    }

    /// As `scontrol show assoc_mgr` calls it, where it tells it in a form that is read here.
    fn name_of_controller(self) -> Option<&'static str> {
        match self {
            Self::AllAtOnce | Self::AllMinutes => Some(self.name()),
            Self::EachJob | Self::EachUser | Self::EachAccount => None,
        }
    }

    fn is_of_qos_alone(self) -> bool {
        match self {
            Self::EachUser | Self::EachAccount => true,
            Self::AllAtOnce | Self::AllMinutes | Self::EachJob => false,
        }
    }
}

/// What a controller says of how limits are enforced.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Enforcement {
    cluster: String,
    enforced: Vec<String>,
    booted_unix_s: Option<i64>,
    slurm_conf: Option<String>,
}

impl Enforcement {
    fn parse(text: &str) -> Result<Self, String> {
        let values: BTreeMap<&str, &str> = text
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.trim(), value.trim()))
            .collect();
        let of = |key: &str| values.get(key).filter(|value| !matches!(**value, "" | "(null)" | "N/A"));
        let cluster = of("ClusterName").ok_or("scontrol show config says no ClusterName")?;
        let enforced = of("AccountingStorageEnforce").map_or("none", |value| value);
        Ok(Self {
            cluster: (*cluster).to_owned(),
            enforced: enforced.split(',').map(|word| word.trim().to_ascii_lowercase()).collect(),
            booted_unix_s: of("BOOT_TIME").and_then(|value| value.parse().ok()),
            slurm_conf: of("SLURM_CONF").map(|value| (*value).to_owned()),
        })
    }

    fn has(&self, word: &str) -> bool {
        self.enforced.iter().any(|own| own == word || own == "all")
    }

    /// Why a limit would have no effect.
    fn not_changed(&self, action: &LimitAction) -> Option<String> {
        let shown = self.enforced.join(",");
        let has_limits = self.has("limits") || self.has("safe");
        match &action.holder {
            _ if !has_limits => Some(format!("no limit is enforced here: AccountingStorageEnforce={shown}")),
            LimitHolder::Qos(_) if !self.has("qos") => {
                Some(format!("no QOS is enforced here: AccountingStorageEnforce={shown}"))
            }
            LimitHolder::Account(_) | LimitHolder::User { .. } if action.kind.is_of_qos_alone() => {
                Some(format!("{} is a limit of a QOS alone", action.kind.name()))
            }
            LimitHolder::Account(_) | LimitHolder::User { .. } | LimitHolder::Qos(_) => None,
        }
    }

    /// Why a limit may not be lowered: running jobs could end. `conf_changed_unix_s`: when the file was changed last.
    fn not_lowered(&self, kind: LimitKind, conf_changed_unix_s: Option<i64>) -> Option<String> {
        match kind {
            LimitKind::AllAtOnce | LimitKind::EachJob | LimitKind::EachUser | LimitKind::EachAccount => None,
            LimitKind::AllMinutes if !self.has("safe") => Some(format!(
                "{} below what was used would end running jobs: AccountingStorageEnforce={} has no 'safe'",
                kind.name(),
                self.enforced.join(",")
            )),
            LimitKind::AllMinutes => {
                let (changed, booted) = conf_changed_unix_s.zip(self.booted_unix_s)?;
                (changed > booted).then(|| {
                    "slurm.conf was changed after slurmctld started: whether it has 'safe' yet can't be told; restart it"
                        .to_owned()
                })
            }
        }
    }
}

/// A resource's amount in a list such as `cpu=100,gres/gpu=3`, or `gres/gpu=3(5)` with what is used. None: no limit.
fn amount(list: &str, tres: &str) -> Result<Option<u64>, String> {
    let found = list.split(',').find_map(|part| part.trim().strip_prefix(tres)?.strip_prefix('='));
    let Some(text) = found else { return Ok(None) };
    let text = text.split('(').next().unwrap_or(text);
    match text {
        "N" | "-1" | "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| format!("{tres}={text}: no number")),
    }
}

/// What a name may be made of here: it becomes a part of a command, where commas and `=` mean something.
fn is_plain(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '/' | ':' | '+');
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_allowed)
}

impl LimitAction {
    fn names(&self) -> Vec<&str> {
        let mut names = vec![self.tres.as_str()];
        match &self.holder {
            LimitHolder::Account(account) => names.push(account),
            LimitHolder::User { account, user } => names.extend([account.as_str(), user]),
            LimitHolder::Qos(qos) => names.push(qos),
        }
        names
    }
}

impl Slurm {
    fn enforcement(&self) -> Result<Enforcement, Trouble> {
        let text = self.run(&self.settings.scontrol, &["show", "config"]).map_err(unseen)?;
        Enforcement::parse(&text).map_err(Trouble::Unseen)
    }

    /// Looks at a limit: what the accounting has, and whether the controller has it too.
    pub(crate) fn look_at_limit(&self, action: &LimitAction) -> Result<SettingSight, Trouble> {
        if let Some(name) = action.names().into_iter().find(|name| !is_plain(name)) {
            return Err(Trouble::NotHere(format!("{name:?} is no name that is written into a command")));
        }
        let enforcement = self.enforcement()?;
        let not_changed = enforcement.not_changed(action);
        let conf_changed = enforcement.slurm_conf.as_deref().and_then(|path| {
            let changed = std::fs::metadata(path).ok()?.modified().ok()?;
            let since = changed.duration_since(std::time::UNIX_EPOCH).ok()?;
            i64::try_from(since.as_secs()).ok()
        });
        let not_lowered = enforcement.not_lowered(action.kind, conf_changed);
        let value = if action.kind.is_of_qos_alone() && !matches!(action.holder, LimitHolder::Qos(_)) {
            Some(Value::Known(None))
        } else {
            self.value(action, &enforcement.cluster)?
        };
        Ok(SettingSight { value, not_lowered, not_changed })
    }

    fn value(&self, action: &LimitAction, cluster: &str) -> Result<Option<Value>, Trouble> {
        let of = |key: &str, value: &str| format!("{key}={value}");
        let format = match action.holder {
            LimitHolder::Qos(_) => format!("format=Name,{}", action.kind.name()),
            LimitHolder::Account(_) | LimitHolder::User { .. } => {
                format!("format=Account,User,Partition,{}", action.kind.name())
            }
        };
        let mut arguments = vec!["-n".to_owned(), "-P".to_owned(), "show".to_owned()];
        let row = match &action.holder {
            LimitHolder::Qos(qos) => {
                arguments.extend(["qos".to_owned(), "where".to_owned(), of("name", qos), format]);
                format!("{qos}|")
            }
            LimitHolder::Account(account) => {
                let wanted = [of("account", account), of("cluster", cluster), format];
                arguments.extend(["assoc".to_owned(), "where".to_owned()].into_iter().chain(wanted));
                // Its own limit, not what is above it.
                arguments.push("wopl".to_owned());
                format!("{account}|||")
            }
            LimitHolder::User { account, user } => {
                let wanted = [of("account", account), of("user", user), of("cluster", cluster), format];
                arguments.extend(["assoc".to_owned(), "where".to_owned()].into_iter().chain(wanted));
                arguments.push("wopl".to_owned());
                format!("{account}|{user}||")
            }
        };
        let borrowed: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let text = self.run(&self.settings.sacctmgr, &borrowed).map_err(unseen)?;
        let Some(list) = text.lines().find_map(|line| line.strip_prefix(&row)) else { return Ok(None) };
        let kept = amount(list, &action.tres).map_err(Trouble::Unseen)?;
        let Some(name) = action.kind.name_of_controller() else { return Ok(Some(Value::Known(kept))) };
        let known = self.of_controller(action, name)?;
        Ok(Some(if known == Some(kept) { Value::Known(kept) } else { Value::OnItsWay(kept) }))
    }

    /// What the controller has of a limit; none where it has no such holder.
    fn of_controller(&self, action: &LimitAction, name: &str) -> Result<Option<Option<u64>>, Trouble> {
        let (filter, flags, marks) = match &action.holder {
            LimitHolder::Account(account) => {
                let marks = [format!(" Account={account} UserName= "), " Partition= ".to_owned()];
                (format!("accounts={account}"), "flags=assoc", marks)
            }
            LimitHolder::User { account, user } => {
                let marks = [format!(" Account={account} UserName={user}("), ") Partition= ".to_owned()];
                (format!("accounts={account}"), "flags=assoc", marks)
            }
            LimitHolder::Qos(qos) => (format!("qos={qos}"), "flags=qos", [format!(" QOS={qos}("), String::new()]),
        };
        let arguments = ["-o", "show", "assoc_mgr", &filter, flags];
        let text = self.run(&self.settings.scontrol, &arguments).map_err(unseen)?;
        let is_row = |line: &String| marks.iter().all(|mark| line.contains(mark));
        let Some(line) = text.lines().map(|line| format!(" {line}")).find(is_row) else { return Ok(None) };
        let key = format!(" {name}=");
        let Some((_, rest)) = line.split_once(&key) else { return Ok(None) };
        let list = rest.split(' ').next().unwrap_or(rest);
        amount(list, &action.tres).map(Some).map_err(Trouble::Unseen)
    }

    /// Sets a limit.
    pub(crate) fn set_limit(&self, action: &LimitAction, step: &Step) -> Result<Answer, Trouble> {
        let Step::Set(to) = step else { return Ok(Answer::Declined("no step for a limit".to_owned())) };
        let cluster = self.enforcement()?.cluster;
        // -1 is how none is written; 0 is a limit of nothing.
        let to = to.map_or_else(|| "-1".to_owned(), |to| to.to_string());
        let set = format!("{}={}={to}", action.kind.name(), action.tres);
        let cluster = format!("cluster={cluster}");
        let owned = match &action.holder {
            LimitHolder::Account(account) => vec!["account".to_owned(), format!("name={account}"), cluster],
            LimitHolder::User { account, user } => {
                vec!["user".to_owned(), format!("name={user}"), format!("account={account}"), cluster]
            }
            LimitHolder::Qos(qos) => vec!["qos".to_owned(), format!("name={qos}")],
        };
        let mut arguments = vec!["-i", "-Q", "modify", &owned[0], "where"];
        arguments.extend(owned[1..].iter().map(String::as_str));
        arguments.extend(["set", &set]);
        match self.run(&self.settings.sacctmgr, &arguments) {
            Ok(_) => Ok(Answer::Taken),
            Err(error) => refused(error),
        }
    }
}

#[cfg(test)]
mod tests;
