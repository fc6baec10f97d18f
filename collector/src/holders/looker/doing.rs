//! What the processes of each holder did since the last look.

use super::{Gathered, Looker};
use crate::holders::join::Doing;
use crate::holders::meter::Counted;
use crate::holders::proc_entry::{Stat, Terminal};
use crate::holders::terminals;
use cardhour_domain::{AttemptKey, Gap, HolderKind, Reading};
use std::collections::BTreeMap;

impl Looker {
    /// What the processes of each holder did since the last look.
    pub(super) fn doing(&mut self, gathered: &Gathered) -> BTreeMap<AttemptKey, Doing> {
        let mut counted = BTreeMap::new();
        let mut attended = BTreeMap::new();
        for (key, roots) in &gathered.roots {
            let members = self.processes.tree(roots);
            let count = |stat: &&Stat| Counted {
                id: stat.id,
                parent: stat.parent,
                ticks: stat.own_ticks + stat.waited_ticks,
                io_bytes: if stat.is_dead() { Some(0) } else { self.processes.io_bytes(stat.id.pid) },
            };
            counted.insert(key.clone(), members.iter().map(count).collect());
            let terminals: BTreeMap<_, u32> =
                members.iter().filter_map(|stat| Some((stat.terminal?, stat.id.pid))).collect();
            attended.insert(key.clone(), self.is_attended(&terminals, gathered.kinds.get(key).copied()));
        }
        let efforts = self.meter.step(counted);
        efforts
            .into_iter()
            .map(|(key, effort)| {
                let is_attended = attended.remove(&key).unwrap_or(Reading::Missing(Gap::NotRecorded));
                (key, Doing { effort, is_attended })
            })
            .collect()
    }

    /// Whether somebody typed at one of these terminals since the last look. Of a session without one nothing can be said: who works in a
    /// notebook types into a browser.
    fn is_attended(&self, terminals: &BTreeMap<Terminal, u32>, kind: Option<HolderKind>) -> Reading<bool> {
        let Some(last_look) = self.last_look else { return Reading::Missing(Gap::CollectorDown) };
        if terminals.is_empty() {
            return if kind == Some(HolderKind::Session) {
                Reading::Missing(Gap::NotSupported)
            } else {
                Reading::Seen(false)
            };
        }
        let mut has_gap = false;
        for (terminal, pid) in terminals {
            // A container has terminals of its own, with the same numbers as the host's.
            let own_dev = self.processes.file_root(*pid).join("dev");
            let typed = terminals::typed_at(&own_dev, *terminal)
                .or_else(|| terminals::typed_at(&self.settings.dev_root, *terminal));
            match typed {
                Some(at) if at >= last_look => return Reading::Seen(true),
                Some(_) => {}
                None => has_gap = true,
            }
        }
        if has_gap { Reading::Missing(Gap::NoPermission) } else { Reading::Seen(false) }
    }
}
