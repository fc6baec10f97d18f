//! The small files beside the jobs: nodes, reservations, outages, prices, and the maps that say which column is what.

use super::clock::{Clock, ZONE};
use super::people::PROJECTS;
use super::pool::{Closure, NODES, RESERVATIONS, Why};
use super::{CLUSTER, REMARK};
use std::fmt::Write;

/// `nodes.csv`. A node that came late says when.
pub fn nodes(closures: &[Closure], clock: &Clock) -> String {
    let mut out = String::from("cluster,node,model,cards,memory,pool,in_service_at,retired_at\n");
    for (index, node) in NODES.iter().enumerate() {
        let late = closures.iter().find(|closure| closure.node == index && closure.why == Why::NotYetInService);
        let in_service_s = late.map_or(clock.start_s, |closure| closure.end_s);
        let (cards, memory_bytes) = (node.cards, u64::from(node.card_memory_gib) << 30);
        let _ = writeln!(
            out,
            "{CLUSTER},{},{},{cards},{memory_bytes},main,{},",
            node.name,
            node.model,
            clock.rfc3339(in_service_s)
        );
    }
    out
}

/// `reservations.csv`. No count of cards: all of its nodes.
pub fn reservations(closures: &[Closure], clock: &Clock) -> String {
    let mut out = String::from("cluster,name,started_at,ended_at,nodes,cards,model,org,project,user\n");
    for (index, reservation) in RESERVATIONS.iter().enumerate() {
        let during = closures
            .iter()
            .find(|closure| closure.why == Why::Reserved(index))
            .expect("every reservation closes its nodes to others");
        let project = &PROJECTS[reservation.project];
        let nodes: Vec<&str> = reservation.nodes.iter().map(|node| NODES[*node].name).collect();
        let _ = writeln!(
            out,
            "{CLUSTER},{},{},{},\"{}\",,{},{},{},",
            reservation.name,
            clock.rfc3339(during.start_s),
            clock.rfc3339(during.end_s),
            nodes.join(","),
            NODES[reservation.nodes[0]].model,
            project.org,
            project.name,
        );
    }
    out
}

/// `outages.csv`. A count of cards only where it isn't the whole node.
pub fn outages(closures: &[Closure], clock: &Clock) -> String {
    let mut out = String::from("cluster,started_at,ended_at,nodes,cards,reason\n");
    for closure in closures {
        let reason = match closure.why {
            Why::NotYetInService | Why::Reserved(_) => continue,
            Why::Maintenance => "firmware update",
            Why::NodeFailure => "power supply failed",
            Why::LostCard => "Xid 79: card fell off the bus",
        };
        let _ = writeln!(
            out,
            "{CLUSTER},{},{},{},{},{reason}",
            clock.rfc3339(closure.start_s),
            clock.rfc3339(closure.end_s),
            NODES[closure.node].name,
            if closure.cards == NODES[closure.node].cards { String::new() } else { closure.cards.to_string() },
        );
    }
    out
}

/// `prices.toml`: the H200 gets cheaper on the 16th of the second month.
pub fn prices(clock: &Clock) -> String {
    let first = clock.date(clock.start_s);
    let change = clock.date(clock.at(1, 15, 0, 0));
    let mut out = format!(
        "# Prices of the demo's pool ({REMARK}).\n\
         currency = \"CNY\"\n\
         zone = \"{ZONE}\"\n\
         \n\
         [[window]]\n\
         name = \"off-peak\"\n\
         days = \"mon-sun\"\n\
         from = \"22:00\"\n\
         to = \"08:00\"\n"
    );
    for (from, model, per_card_hour, coefficient) in [
        (&first, "h200*", "18.50", "2.4"),
        (&first, "a100*", "9.20", "1"),
        (&first, "l40s*", "5.60", "0.6"),
        (&change, "h200*", "16.80", "2.4"),
    ] {
        let _ = write!(
            out,
            "\n[[price]]\n\
             from = \"{from}\"\n\
             model = \"{model}\"\n\
             per_card_hour = \"{per_card_hour}\"\n\
             coefficient = \"{coefficient}\"\n\
             off-peak = \"0.6\"\n"
        );
    }
    out
}

/// `jobs.toml`: how the sacct text is read. Accounts are projects; a table says whose.
pub fn jobs_map(clock: &Clock) -> String {
    format!(
        "# How the demo's sacct export is read ({REMARK}).\n\
         format = \"sacct\"\n\
         delimiter = \"|\"\n\
         time_zone = \"{ZONE}\"\n\
         as_of = \"{as_of}\"\n\
         \n\
         [columns]\n\
         org = {{ column = \"Account\", map = {{ {orgs} }} }}\n\
         class = {{ column = \"Partition\", map = {{ train = \"training\", infer = \"inference\", dev = \"development\", batch = \"batch\" }} }}\n",
        as_of = clock.rfc3339(clock.end_s),
        orgs = orgs(),
    )
}

/// `sessions.toml`: how the notebook hub's export is read.
pub fn sessions_map(clock: &Clock) -> String {
    format!(
        "# How the demo's notebook sessions are read ({REMARK}).\n\
         format = \"csv\"\n\
         cluster = \"{CLUSTER}\"\n\
         as_of = \"{as_of}\"\n\
         \n\
         [columns]\n\
         job_id       = \"session\"\n\
         user         = \"owner\"\n\
         project      = \"team\"\n\
         org          = {{ column = \"team\", map = {{ {orgs} }} }}\n\
         class        = {{ column = \"hub\", map = {{ notebook = \"development\" }} }}\n\
         queue        = \"hub\"\n\
         nodes        = \"node\"\n\
         card_uuid    = \"card_uuid\"\n\
         model        = \"card_model\"\n\
         share        = \"share\"\n\
         submitted_at = \"start\"\n\
         started_at   = \"start\"\n\
         ended_at     = \"end\"\n\
         state        = {{ column = \"phase\", map = {{ running = \"running\", stopped = \"completed\", culled = \"reclaimed\", failed = \"failed\" }} }}\n",
        as_of = clock.rfc3339(clock.end_s),
        orgs = orgs(),
    )
}

fn orgs() -> String {
    let pairs: Vec<String> = PROJECTS.iter().map(|project| format!("{} = \"{}\"", project.name, project.org)).collect();
    pairs.join(", ")
}
