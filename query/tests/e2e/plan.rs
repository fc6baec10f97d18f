//! What the scheduler core would do with a pool that the books know: from records and quotas to a plan that nobody carries out.

use crate::site::{POOL_MAP, Rows, Site};

/// One host of eight cards, full since 09:50: acme's job 1 from 08:00 and job 2 from 09:50. Since 10:00 nova's job 3 and acme's 4 and 5 wait.
const JOBS: &str = "id,org,team,who,cards,model,node,class,restartable,state,submit,start,end\n\
    1,acme,vision,ann,4,H200,n1,training,true,running,2026-03-02T08:00:00Z,2026-03-02T08:00:00Z,\n\
    2,acme,vision,bob,4,H200,n1,training,true,running,2026-03-02T09:50:00Z,2026-03-02T09:50:00Z,\n\
    3,nova,speech,eve,4,H200,,training,true,pending,2026-03-02T10:00:00Z,,\n\
    4,acme,vision,ann,1,H200,,training,true,pending,2026-03-02T10:01:00Z,,\n\
    5,acme,vision,ann,16,H200,,training,true,pending,2026-03-02T10:02:00Z,,\n";

const QUOTAS: &str = "[[quota]]\norg = \"acme\"\nmodel = \"H200\"\nguaranteed = 4\nmax = 8\n\
                      [[quota]]\norg = \"nova\"\nmodel = \"H200\"\nguaranteed = 4\n";

fn site() -> Site {
    let site = Site::new();
    site.ok("init --zone UTC");
    let nodes = site.file("nodes.csv", "cluster,node,model,cards,in_service_at\nlab,n1,H200,8,2026-03-01T00:00:00Z\n");
    site.import(&format!("nodes {nodes}"));
    let (jobs, map) = (site.file("jobs.csv", JOBS), site.file("map.toml", POOL_MAP));
    site.import(&format!("jobs {jobs} --map {map} --as-of 2026-03-02T10:30:00Z"));
    site
}

fn of<'a>(rows: &'a Rows, job: &str) -> Vec<(&'a str, &'a str, &'a str)> {
    let of_job = rows.0.iter().filter(|row| row["job"] == job);
    of_job.map(|row| (&*row["action"], &*row["cards"], &*row["lost_card_hours"])).collect()
}

/// By hand. nova has none of its four guaranteed cards, acme four above its own. Of acme's jobs the one that loses less goes: job 1 would lose 4 × 2 h 30 min
/// = 10 card-hours, job 2 4 × 40 min = 2.666667. Job 4 would take acme above its share in a full pool; job 5 asks for more than acme may ever have.
#[test]
fn an_owner_gets_its_guarantee_back_from_the_borrower_that_loses_least() {
    let site = site();
    std::fs::write(site.ledger().join("quotas.toml"), QUOTAS).unwrap();
    let rows = Rows::parse(&site.ok("plan --at 2026-03-02T10:30:00Z --format csv"));
    assert_eq!(of(&rows, "2"), [("evict", "4.000000", "2.666667")], "{rows:?}");
    assert_eq!(of(&rows, "1"), [], "{rows:?}");
    assert_eq!(of(&rows, "3").iter().map(|(action, ..)| *action).collect::<Vec<_>>(), ["reserve"], "{rows:?}");
    for job in ["4", "5"] {
        assert_eq!(of(&rows, job).iter().map(|(action, ..)| *action).collect::<Vec<_>>(), ["wait"], "{rows:?}");
    }
    let words = rows.0.iter().find(|row| row["job"] == "5").unwrap()["what"].clone();
    assert!(words.contains("can never have more than 8 cards and it asks for 16 cards"), "{words}");
    let told = site.ok("plan --at 2026-03-02T10:30:00Z");
    assert!(told.contains("shadow: nothing was started, moved or ended by this"), "{told}");
    assert!(told.contains("8 cards, 8 of them held by 2 jobs, 3 jobs wait"), "{told}");
    // At 09:00 job 1 had the host with four cards to spare, and nobody waited.
    assert_eq!(Rows::parse(&site.ok("plan --at 2026-03-02T09:00:00Z --format csv")).0.len(), 0);
}

/// Without quotas nobody is owed anything: nobody gives way, and those who wait go on waiting.
#[test]
fn without_quotas_nobody_gives_way() {
    let site = site();
    let rows = Rows::parse(&site.ok("plan --at 2026-03-02T10:30:00Z --format csv"));
    let actions: Vec<&str> = rows.0.iter().map(|row| &*row["action"]).collect();
    assert_eq!(actions, ["wait", "wait", "wait"], "{rows:?}");
    assert!(site.ok("plan").contains("no quotas: quotas.toml in the ledger's folder"));
}

#[test]
fn faulty_quotas_are_told_with_their_lines() {
    let site = site();
    std::fs::write(site.ledger().join("quotas.toml"), "[[quota]]\nproject = \"vision\"\nweight = 1\n").unwrap();
    let answer = site.run("plan");
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("line 1: quota[1].org: is missing"), "{}", answer.err);
}
