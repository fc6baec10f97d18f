//! Three things that every demo has to show, and that only what nodes told makes visible.

use super::CLUSTER;
use super::cards::Allotment;
use super::people::PROJECTS;
use super::pool::{Closure, NODES, Why};
use super::schedule::Run;
use super::tenants::{House, Whose};
use super::work::Request;
use cardhour_domain::{AttemptKey, Interval, Timestamp};

/// What a tale is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaleKind {
    /// A notebook that somebody left open: it works for an hour, and then it holds its card for days.
    IdleNotebook,
    /// Training whose cards wait for their data.
    InputBound,
    /// A card fell off the bus, and with it the run that it was of.
    FatalXid,
}

/// A run that is worth a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tale {
    /// What it is of.
    pub kind: TaleKind,
    /// The job's id, as people know it.
    pub job: String,
    /// Its key as its node names it: `samples.attempt_key`.
    pub seen_as: AttemptKey,
    /// Its project.
    pub project: &'static str,
    /// Its user.
    pub user: &'static str,
    /// Its node; of the fault, that of the card.
    pub node: &'static str,
    /// Cards it had.
    pub cards: u32,
    /// From when to when.
    pub during: Interval,
    /// The card that was lost.
    pub card_uuid: Option<String>,
}

/// The tales, in the order of their kinds; one that didn't come to pass is left out.
pub fn tales(
    requests: &[Request],
    runs: &[Run],
    closures: &[Closure],
    allotment: &Allotment,
    house: &House,
) -> Vec<Tale> {
    let tale = |kind, run: usize, node: usize, card_uuid: Option<String>| {
        let tenant = house.tenants.iter().find(|tenant| tenant.whose == Whose::Run(run))?;
        let request = &requests[runs[run].request];
        let shown = |(task, _)| format!("{}_{task}", runs[run].array_job);
        let seconds = Timestamp::from_unix_s;
        Some(Tale {
            kind,
            job: request.task.map_or_else(|| runs[run].job.to_string(), shown),
            seen_as: AttemptKey::new(CLUSTER, &runs[run].job.to_string(), &format!("b{}", tenant.start_s)),
            project: PROJECTS[request.project].name,
            user: request.user,
            node: NODES[node].name,
            cards: request.cards(),
            during: Interval::new(seconds(tenant.start_s), seconds(tenant.end_s))?,
            card_uuid,
        })
    };
    let asked = |kind| {
        let run = runs.iter().position(|run| requests[run.request].tale == Some(kind) && !run.nodes.is_empty())?;
        tale(kind, run, runs[run].nodes[0], None)
    };
    let fault = closures.iter().zip(&allotment.lost).find(|(closure, _)| closure.why == Why::LostCard);
    let fault = fault.and_then(|(closure, place)| {
        let card = house.cards.iter().find(|card| card.node == closure.node && Some(card.place) == *place)?;
        tale(TaleKind::FatalXid, closure.hit?, closure.node, Some(card.uuid.clone()))
    });
    [asked(TaleKind::IdleNotebook), asked(TaleKind::InputBound), fault].into_iter().flatten().collect()
}
