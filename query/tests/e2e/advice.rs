//! What a pool needs and what was decided: the reports queue, quota, advice and decisions, on the real binary.

use crate::service::Service;
use crate::site::{Rows, Site};

const MAP: &str = r#"
format = "csv"
cluster = "lab"
[columns]
job_id = "id"
org = "org"
project = "team"
user = "who"
cards = "cards"
model = "model"
nodes = "node"
state = "state"
submitted_at = "submit"
started_at = "start"
ended_at = "end"
"#;

const HEADER: &str = "id,org,team,who,cards,model,node,state,submit,start,end\n";

fn site(jobs: &str) -> Site {
    let site = Site::new();
    site.ok("init --zone UTC");
    let list = "cluster,node,model,cards,in_service_at\nlab,n1,H200,8,2026-03-02T00:00:00Z\nlab,n2,H200,8,2026-03-02T00:00:00Z\n";
    let nodes = site.file("nodes.csv", list);
    site.import(&format!("nodes {nodes}"));
    let (jobs, map) = (site.file("jobs.csv", format!("{HEADER}{jobs}")), site.file("map.toml", MAP));
    site.import(&format!("jobs {jobs} --map {map}"));
    site
}

/// Job 3 takes eight cards of n1 at noon and was submitted at six. To eight all sixteen cards are held; to ten four of each node are free; then n1 is.
const DAY: &str = "1,acme,vision,ann,4,H200,n1,completed,2026-03-02T00:00:00Z,2026-03-02T00:00:00Z,2026-03-02T08:00:00Z\n\
    2,acme,vision,ann,4,H200,n1,completed,2026-03-02T00:00:00Z,2026-03-02T00:00:00Z,2026-03-02T10:00:00Z\n\
    3,acme,speech,bob,8,H200,n1,completed,2026-03-02T06:00:00Z,2026-03-02T12:00:00Z,2026-03-03T00:00:00Z\n\
    4,acme,vision,ann,4,H200,n2,completed,2026-03-02T00:00:00Z,2026-03-02T00:00:00Z,2026-03-02T08:00:00Z\n\
    5,acme,vision,ann,4,H200,n2,completed,2026-03-02T00:00:00Z,2026-03-02T00:00:00Z,2026-03-03T00:00:00Z\n";

/// For fifteen days, 360 hours, vision holds 6 cards; speech 2 for the first ten, 240 hours.
const WEEKS: &str = "1,acme,vision,ann,6,H200,n1,completed,2026-03-02T00:00:00Z,2026-03-02T00:00:00Z,2026-03-17T00:00:00Z\n\
    2,acme,speech,bob,2,H200,n2,completed,2026-03-02T00:00:00Z,2026-03-02T00:00:00Z,2026-03-12T00:00:00Z\n";

/// The figures of one row of a section, in the order of the names.
#[track_caller]
fn figures<'r>(rows: &'r Rows, section: &str, row: &str, columns: &str) -> Vec<&'r str> {
    let of = |column: &str| {
        let found = rows.0.iter().find(|of| of["section"] == section && of["row"] == row && of["column"] == column);
        &*found.unwrap_or_else(|| panic!("no {column} in row {row} of {section}: {rows:?}"))["value"]
    };
    columns.split(' ').map(of).collect()
}

/// By hand: 8 cards × 2 h are 16 card-hours of each. Nobody saw what the cards did, so that nothing is advised.
#[test]
fn waits_for_cards_for_places_and_for_neither_are_told_apart() {
    let site = site(DAY);
    let columns = "cards waited_for_capacity_card_hours waited_for_placement_card_hours waited_for_other_card_hours days_seen advice is_scattered";
    for report in ["queue", "advice"] {
        let rows = site.report(report);
        let expected = ["16", "16.000000", "16.000000", "16.000000", "0", "hold", "no"];
        assert_eq!(figures(&rows, "expansion", "1", columns), expected, "{report}");
    }
    let rows = site.report("queue");
    assert_eq!(figures(&rows, "queue_wait_by_cards", "2", "cards_asked max_wait_hours"), ["over 4 to 8", "6.000000"]);
    let rows = site.report("advice");
    assert_eq!(figures(&rows, "pool_needs", "1", "cluster cards size"), ["lab", "16", "lab"]);
    let told = site.ok("report advice");
    assert!(told.contains("0 days were seen and 21 are needed: the advice stays hold."), "{told}");
}

/// By hand: vision's every hour needs 6; of speech's 360 hours 240 need 2 and 120 none, so the middle and the busy one are 2, and the slack one in ten is none.
#[test]
fn a_quota_is_sized_by_the_hours_of_a_team() {
    let site = site(WEEKS);
    let quotas = "[[quota]]\norg = \"acme\"\nproject = \"vision\"\nmodel = \"H200\"\nguaranteed = 4\n";
    std::fs::write(site.ledger().join("quotas.toml"), quotas).unwrap();
    let rows = site.report("quota");
    let columns = "project advised_guaranteed_cards advised_borrow_cards advised_lend_cards peak_cards hours_seen wanted_card_hours";
    assert_eq!(figures(&rows, "team_quota", "1", columns), ["speech", "2", "0", "2", "2", "360", "480.000000"]);
    assert_eq!(figures(&rows, "team_quota", "2", columns), ["vision", "6", "0", "0", "6", "360", "2160.000000"]);
    assert_eq!(figures(&rows, "team_quota", "2", "guaranteed_cards"), ["4"]);
    assert_eq!(figures(&rows, "quota_use", "1", "project hit_rate"), ["vision", "1.000000"]);
}

#[test]
fn decisions_are_counted_by_kind_mode_and_outcome() {
    let site = site(DAY);
    site.ok("mode notify --by ann");
    let rows = site.report("decisions");
    assert_eq!(
        figures(&rows, "decisions", "1", "kind mode outcome decisions jobs"),
        ["mode", "notify", "mode", "1", "0"]
    );
    let service = Service::start(&site);
    let metrics = service.get("/metrics").body;
    assert!(metrics.contains("cardhour_decisions{kind=\"mode\",mode=\"notify\",outcome=\"mode\"} 1"), "{metrics}");
    let json: serde_json::Value = serde_json::from_str(&site.ok("report decisions --format json")).unwrap();
    assert_eq!(json["decisions"][0]["decisions"], 1);
}

#[test]
fn these_reports_take_a_time_and_nothing_else() {
    let site = site(DAY);
    for words in ["report queue --by org", "report advice --week 2026-W10", "report quota --prices none.toml"] {
        assert_eq!(site.run(words).code, Some(2), "{words}");
    }
    let rows = site.report("queue --from 2026-03-02 --to 2026-03-03");
    assert_eq!(figures(&rows, "expansion", "1", "waited_for_capacity_card_hours"), ["16.000000"]);
}
