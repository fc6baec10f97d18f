//! Which of several versions of one attempt stands.
//!
//! The final beats the open, then the later as-of, then the greater content hash; a row without a start gives way to any
//! started row of that job and submit (LED-4). The winner is the greatest of a total order, so that neither the order
//! nor the cut of imports matters, and nothing counts twice.

use crate::attempt::Attempt;
use cardhour_domain::{AttemptKey, Timestamp};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// A digest of everything an attempt says but its as-of: 128 bits of BLAKE3.
///
/// Stability: stored in `jobs.content_hash`; pinned by the test `a_hash_is_as_it_was`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash([u8; 16]);

impl ContentHash {
    /// Of a canonical text or its bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut short = [0; 16];
        short.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        Self(short)
    }

    /// Its 32 hex digits.
    pub fn to_hex(self) -> String {
        let mut hex = String::with_capacity(32);
        for byte in self.0 {
            for digit in [byte >> 4, byte & 15] {
                hex.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
            }
        }
        hex
    }

    /// From 32 hex digits, as a table gives them back.
    pub fn from_hex(hex: &str) -> Option<Self> {
        let digits = hex.as_bytes();
        if digits.len() != 32 {
            return None;
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

/// What decides between two versions of one attempt: the greater stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Whether it is over.
    pub is_final: bool,
    /// The last moment its source vouches for.
    pub as_of: Option<Timestamp>,
    /// What it says.
    pub content: ContentHash,
}

impl Version {
    /// The version an attempt is.
    pub fn of(attempt: &Attempt) -> Self {
        Self { is_final: attempt.is_final, as_of: attempt.as_of, content: content_hash(attempt) }
    }
}

/// An attempt and the version it is.
pub type Versioned = (Arc<Attempt>, Version);

/// What an import changes in `jobs`.
#[derive(Debug, Default)]
pub struct Resolution {
    /// Attempts that stand from now on, with their hash; each key once.
    pub stand: Vec<Versioned>,
    /// Attempts of the import that lost against another: history.
    pub lost: Vec<Versioned>,
    /// Attempts that stood and give way to one of `stand`: history.
    pub displaced: Vec<AttemptKey>,
    /// Those of `displaced` that give way to a row that says the same and is vouched for later: no history, and nothing new.
    pub renewed: Vec<AttemptKey>,
    /// How many of the import's rows said what the books already knew.
    pub unchanged: u64,
}

/// The keys that a started attempt's job may have had before its start: without the start, where the key is made of times; and without
/// the index, since tasks of an array wait together under the id that the last of them keeps.
fn unstarted_forms(key: &str) -> impl Iterator<Item = String> {
    let (head, run) = key.rsplit_once('/').unwrap_or((key, ""));
    let waiting = run.strip_prefix('s').and_then(|times| {
        let digits = times.bytes().take_while(|b| b.is_ascii_digit() || *b == b'-').count();
        let (waiting, rest) = run.split_at(1 + digits);
        (digits > 0 && rest.starts_with(['b', 'r'])).then_some(waiting)
    });
    let of_task = head
        .rsplit_once('_')
        .filter(|(_, index)| !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()))
        .map(|(array, _)| format!("{array}/{}", waiting.unwrap_or(run)));
    let of_job = waiting.map(|waiting| format!("{head}/{waiting}"));
    of_job.into_iter().chain(of_task)
}

/// Settles the versions of an import against those that stand.
///
/// `standing` is every attempt that stands; only those that an incoming row touches are looked at. Shape: the same
/// set of rows gives the same outcome in any order and any cut.
pub fn resolve<'a>(standing: impl Iterator<Item = (&'a str, Version)>, incoming: &[Versioned]) -> Resolution {
    let mut out = Resolution::default();
    let mut standing = standing.peekable();
    // Where nobody waits and nothing stood, nobody waited before its start.
    let somebody_waited = standing.peek().is_some() || incoming.iter().any(|(attempt, _)| attempt.started_at.is_none());
    let mut best: Vec<Best> = Vec::with_capacity(incoming.len());
    let mut place: HashMap<&str, usize> = HashMap::with_capacity(incoming.len());
    let mut started: HashSet<String> = HashSet::new();
    let mut unstarted: HashSet<&str> = HashSet::new();
    for row in incoming {
        let (attempt, version) = row;
        let key = attempt.key.as_str();
        match attempt.started_at {
            Some(_) if somebody_waited => started.extend(unstarted_forms(key)),
            Some(_) => {}
            None => _ = unstarted.insert(key),
        }
        let at = *place.entry(key).or_insert(best.len());
        let this = Best { row, as_of: version.as_of };
        match best.get_mut(at) {
            None => best.push(this),
            Some(known) if known.row.1.content == version.content && known.row.1.is_final == version.is_final => {
                known.as_of = known.as_of.max(version.as_of);
                out.unchanged += 1;
            }
            Some(known) if known.version() < *version => out.lost.push(std::mem::replace(known, this).row.clone()),
            Some(_) => out.lost.push(row.clone()),
        }
    }

    // Whoever lost to a row that lost, and says what the best says, was no other version.
    let before = out.lost.len();
    out.lost.retain(|(attempt, version)| {
        let best = best[place[attempt.key.as_str()]].row.1;
        best.content != version.content || best.is_final != version.is_final
    });
    out.unchanged += (before - out.lost.len()) as u64;

    let mut known: HashMap<usize, Version> = HashMap::new();
    for (key, version) in standing {
        if started.contains(key) {
            out.displaced.push(AttemptKey::from_stored(key));
            continue;
        }
        if !unstarted.is_empty() {
            started.extend(unstarted_forms(key).filter(|form| unstarted.contains(form.as_str())));
        }
        if let Some(at) = place.get(key) {
            known.insert(*at, version);
        }
    }
    out.stand.reserve_exact(best.len() - known.len());
    for (at, best) in best.into_iter().enumerate() {
        let (attempt, version) = (&best.row.0, best.version());
        if attempt.started_at.is_none() && started.contains(attempt.key.as_str()) {
            out.lost.push(best.settled());
            continue;
        }
        match known.get(&at) {
            None => out.stand.push(best.settled()),
            Some(old) if *old == version => out.unchanged += 1,
            Some(old) if *old < version => {
                if version.is_final && old.content == version.content {
                    out.renewed.push(attempt.key.clone());
                    out.unchanged += 1;
                }
                out.displaced.push(attempt.key.clone());
                out.stand.push(best.settled());
            }
            // An older look at the same open row adds nothing, not even history.
            Some(old) if old.content == version.content => out.unchanged += 1,
            Some(_) => out.lost.push(best.settled()),
        }
    }
    out
}

/// The best of an import's rows of one attempt so far.
struct Best<'a> {
    row: &'a Versioned,
    /// A repeated open row may have been vouched for longer by its twin.
    as_of: Option<Timestamp>,
}

impl Best<'_> {
    fn version(&self) -> Version {
        Version { as_of: self.as_of, ..self.row.1 }
    }

    fn settled(&self) -> Versioned {
        let mut attempt = self.row.0.clone();
        if attempt.as_of != self.as_of {
            Arc::make_mut(&mut attempt).as_of = self.as_of;
        }
        (attempt, self.version())
    }
}

/// The digest of what an attempt says, all but its as-of.
///
/// Fields go in one after the other, each with its length, so that no two attempts share a text.
pub fn content_hash(a: &Attempt) -> ContentHash {
    let mut text = Vec::with_capacity(384);
    let mut field = |value: Option<&[u8]>| match value {
        None => text.push(0),
        Some(value) => {
            text.push(1);
            text.extend_from_slice(&(value.len() as u32).to_le_bytes());
            text.extend_from_slice(value);
        }
    };
    field(Some(a.key.as_str().as_bytes()));
    field(Some(a.job_id.as_bytes()));
    for name in [
        &a.org,
        &a.project,
        &a.user,
        &a.queue,
        &a.class,
        &a.model,
        &a.mig_profile,
        &a.card_uuid,
        &a.reservation,
        &a.image,
        &a.exit_code,
        &a.failure_reason,
        &a.artifact_uri,
    ] {
        field(name.as_deref().map(str::as_bytes));
    }
    for (name, value) in &a.labels {
        field(Some(name.as_bytes()));
        field(Some(value.as_bytes()));
    }
    field(None);
    for node in &a.nodes {
        field(Some(node.as_bytes()));
    }
    field(None);
    field(Some(a.state.name().as_bytes()));
    for number in [
        a.restart.map(i64::from),
        Some(i64::from(a.is_final)),
        a.submitted_at.map(Timestamp::unix_ms),
        a.started_at.map(Timestamp::unix_ms),
        a.ended_at.map(Timestamp::unix_ms),
        Some(a.suspended_ms),
        a.cards_requested.map(|share| share.parts()),
        Some(a.cards.parts()),
        Some(i64::from(a.share_declared)),
        a.memory_requested_mib,
        a.priority,
        a.restartable.map(i64::from),
    ] {
        field(number.map(i64::to_le_bytes).as_ref().map(|bytes| &bytes[..]));
    }
    ContentHash::of(&text)
}

#[cfg(test)]
mod tests;
