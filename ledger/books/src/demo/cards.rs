//! Which cards of its nodes each run has. Records don't say; nodes see it.

use super::pool::{Closure, NODES, Why};
use super::schedule::Run;
use super::work::Request;

/// Who has which cards, and which cards fell off the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allotment {
    /// By run: node and place in it of each of its cards.
    pub of_run: Vec<Vec<(usize, usize)>>,
    /// By closure, where it is a lost card: its place in the node.
    pub lost: Vec<Option<usize>>,
}

/// What happens to cards at one instant, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End(usize),
    Found(usize),
    Lost(usize),
    Start(usize),
}

/// Gives each run the lowest cards that are free on its nodes. `end_s`: when what goes on is looked at last.
pub fn allot(requests: &[Request], runs: &[Run], closures: &[Closure], end_s: i64) -> Allotment {
    let mut events: Vec<(i64, Event)> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let until_s = run.end_s.unwrap_or(end_s);
        if let Some(start_s) = run.start_s.filter(|start_s| *start_s < until_s) {
            events.extend([(start_s, Event::Start(i)), (until_s, Event::End(i))]);
        }
    }
    for (i, closure) in closures.iter().enumerate().filter(|(_, closure)| closure.why == Why::LostCard) {
        events.extend([(closure.start_s, Event::Lost(i)), (closure.end_s, Event::Found(i))]);
    }
    events.sort_unstable();
    let mut taken: Vec<Vec<bool>> = NODES.iter().map(|node| vec![false; node.slurm_cards as usize]).collect();
    let mut allotment = Allotment { of_run: vec![Vec::new(); runs.len()], lost: vec![None; closures.len()] };
    for (_, event) in events {
        match event {
            Event::Start(run) => {
                for &node in &runs[run].nodes {
                    for _ in 0..requests[runs[run].request].cards_per_node {
                        let free = taken[node].iter().position(|taken| !taken);
                        let card = free.expect("the schedule gives no more cards than there are");
                        taken[node][card] = true;
                        allotment.of_run[run].push((node, card));
                    }
                }
            }
            Event::End(run) => allotment.of_run[run].iter().for_each(|(node, card)| taken[*node][*card] = false),
            Event::Lost(closure) => {
                let Closure { node, hit, .. } = closures[closure];
                let of_hit = hit.and_then(|run| allotment.of_run[run].iter().find(|(on, _)| *on == node));
                let free = || taken[node].iter().position(|taken| !taken);
                let card = of_hit.map(|(_, card)| *card).or_else(free).expect("a card that nobody has any more");
                taken[node][card] = true;
                allotment.lost[closure] = Some(card);
            }
            Event::Found(closure) => {
                if let Some(card) = allotment.lost[closure] {
                    taken[closures[closure].node][card] = false;
                }
            }
        }
    }
    allotment
}
