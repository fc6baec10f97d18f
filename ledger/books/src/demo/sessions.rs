//! Notebooks that share cards: each holds a declared part of one card, and the parts of a card never add up to more than one.

use super::clock::Clock;
use super::habit::LOOK_S;
use super::people::PROJECTS;
use super::pool::{NODES, SHARED_NODE};
use super::rng::Rng;
use std::fmt::Write;

/// One notebook session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// Index into `people::PROJECTS`.
    pub project: usize,
    /// Whose it is.
    pub user: &'static str,
    /// Which of the shared cards, from 0.
    pub card: usize,
    /// Its part of that card. Unit: thousandths.
    pub share_milli: u32,
    /// From when. Unit: seconds since the epoch.
    pub start_s: i64,
    /// Until when; none for one that goes on.
    pub end_s: Option<i64>,
    /// What its hub says of it.
    pub phase: &'static str,
}

/// How many cards are shared.
pub const SHARED_CARDS: usize = (NODES[SHARED_NODE].cards - NODES[SHARED_NODE].slurm_cards) as usize;

/// Sessions in order of their start, each on the first card with room; who finds none goes away.
pub fn draw(rng: &mut Rng, clock: &Clock) -> Vec<Session> {
    let mut sessions: Vec<Session> = Vec::new();
    let mut start_s = clock.start_s + 8 * 3600;
    while start_s < clock.end_s {
        let project = rng.between(0, PROJECTS.len() as i64 - 1) as usize;
        let user = *rng.pick(PROJECTS[project].users);
        let share_milli = *rng.weighted(&[(60, 250), (20, 500), (20, 125)]);
        let length_s =
            *rng.weighted(&[(45, 2 * 3600), (40, 8 * 3600), (15, 40 * 3600)]) * rng.between(200, 1000) / 1000;
        let phase = *rng.weighted(&[(75, "stopped"), (15, "culled"), (10, "failed")]);
        if let Some(card) = (0..SHARED_CARDS).find(|card| taken_milli(&sessions, *card, start_s) + share_milli <= 1000)
        {
            // The hub starts and ends notebooks when it looks, every 15 seconds.
            let (start_s, end_s) = (start_s / LOOK_S * LOOK_S, (start_s + length_s) / LOOK_S * LOOK_S);
            let over = end_s < clock.end_s;
            sessions.push(Session {
                id: format!("nb-{:05}", 2001 + sessions.len()),
                project,
                user,
                card,
                share_milli,
                start_s,
                end_s: over.then_some(end_s),
                phase: if over { phase } else { "running" },
            });
        }
        let hour = (start_s - clock.start_s) / 3600 % 24;
        let pause_s = if (9..22).contains(&hour) { rng.between(200, 3000) } else { rng.between(3600, 6 * 3600) };
        start_s += pause_s;
    }
    sessions
}

/// What is taken of a card at an instant at which nobody starts later. Unit: thousandths.
fn taken_milli(sessions: &[Session], card: usize, at_s: i64) -> u32 {
    sessions
        .iter()
        .filter(|session| session.card == card && session.end_s.is_none_or(|end_s| at_s < end_s))
        .map(|session| session.share_milli)
        .sum()
}

/// The shared cards' UUIDs.
pub fn uuids(rng: &mut Rng) -> [String; SHARED_CARDS] {
    std::array::from_fn(|_| uuid(rng))
}

/// A card's UUID.
pub fn uuid(rng: &mut Rng) -> String {
    let (a, b) = (rng.next(), rng.next());
    format!(
        "GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xffff,
        b >> 48,
        b & 0xffff_ffff_ffff
    )
}

/// The hub's export.
pub fn csv(sessions: &[Session], uuids: &[String; SHARED_CARDS], clock: &Clock) -> String {
    let mut out = String::from("session,hub,owner,team,node,card_uuid,card_model,share,start,end,phase\n");
    for session in sessions {
        let _ = writeln!(
            out,
            "{},notebook,{},{},{},{},{},0.{:03},{},{},{}",
            session.id,
            session.user,
            PROJECTS[session.project].name,
            NODES[SHARED_NODE].name,
            uuids[session.card],
            NODES[SHARED_NODE].model,
            session.share_milli,
            clock.rfc3339(session.start_s),
            session.end_s.map_or_else(String::new, |at_s| clock.rfc3339(at_s)),
            session.phase,
        );
    }
    out
}
