//! Replays of public traces against published figures, and of small ones against a calculation by hand.

use crate::site::{Rows, Site, micros, shared};

const NODES: &str = "sn,cpu_milli,memory_mib,gpu,model\nh0,8000,64,2,T4\nh1,8000,64,2,A10\n";
const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n\
                    a,1000,1,1,1000,T4\nb,1000,1,1,1000,T4|A10\nc,1000,1,1,1000,\nd,1000,1,1,1000,A10\n";

#[test]
fn a_small_pool_is_filled_whole_by_every_policy_that_has_a_choice() {
    let site = Site::new();
    let (nodes, pods) = (site.file("nodes.csv", NODES), site.file("pods.csv", PODS));
    let answer = site.run(&format!(
        "replay placement --nodes {nodes} --pods {pods} --policy all --seeds 3 --load 25,100 --format csv"
    ));
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let mut lines = answer.out.lines();
    assert_eq!(lines.next(), Some("policy,load,allocation"));
    // Of four cards one is 25 %, and whatever comes first fits.
    let rows = Rows::parse(&answer.out).0;
    assert_eq!(rows.len(), 7 * 2);
    assert!(rows.iter().filter(|row| row["load"] == "25").all(|row| row["allocation"] == "25.0000"), "{}", answer.out);
    assert_eq!(
        site.run(&format!("replay placement --nodes {nodes} --pods {pods} --seeds 3 --load 25,100 --format csv")).out,
        answer.out
    );
    assert!(!site.ledger().exists(), "no ledger is made");
    // A load at which nothing arrives has no allocation, and that isn't zero.
    let none = site.ok(&format!("replay placement --nodes {nodes} --pods {pods} --policy fgd --load 60 --format csv"));
    assert_eq!(Rows::parse(&none).only("allocation"), "");
}

#[test]
fn a_bad_row_is_named_by_file_line_and_field() {
    let site = Site::new();
    let (nodes, pods) =
        (site.file("nodes.csv", NODES), site.file("pods.csv", PODS.replace("1000,T4|A10", "many,T4|A10")));
    let answer = site.run(&format!("replay placement --nodes {nodes} --pods {pods}"));
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    assert!(answer.err.contains("pods.csv, line 3, gpu_milli: \"many\""), "{}", answer.err);
    assert_eq!(site.run(&format!("replay placement --nodes {nodes} --pods nowhere.csv")).code, Some(2));

    let jobs = site.file(
        "jobs.csv",
        "timestamp,duration,num_gpus,cluster\n2017-10-01 00:00:00,5.0,1,a\n\n2017-13-01 00:00:00,5.0,1,a\n",
    );
    let pools = site.file("pools.csv", "vc,node num\na,1\n");
    let answer = site.run(&format!("replay queue --jobs {jobs} --pools {pools} --order fifo"));
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("jobs.csv, line 4, timestamp: \"2017-13-01 00:00:00\""), "{}", answer.err);
}

#[test]
fn a_small_queue_waits_as_by_hand() {
    let site = Site::new();
    // Eight cards. The second waits from 00:10 to 01:40; the third, which would fit, is behind it in a fifo and isn't if the shortest is first.
    let jobs = site.file(
        "jobs.csv",
        "timestamp,duration,num_gpus,cluster\n2017-10-09 07:00:00,100.0,6,a\n2017-10-09 07:00:10,50.0,4,a\n\
         2017-10-09 07:00:20,10.0,2,a\n2017-10-09 07:00:20,10.0,9,a\n2017-10-09 07:00:20,10.0,1,b\n",
    );
    let pools = site.file("pools.csv", "vc,node num\na,1\n");
    let header = "tenant,jobs,mean_queueing_s,mean_jct_s,queued,peak_cards,rejected";
    let answer = site.run(&format!("replay queue --jobs {jobs} --pools {pools} --order fifo --format csv"));
    // (0 + 90 + 80) / 3, and with 160 s of service (170 + 160) / 3.
    assert_eq!(answer.out, format!("{header}\na,3,56.667,110.000,2,6,1\ntotal,3,56.667,110.000,2,6,1\n"));
    assert!(answer.err.contains("jobs of tenants without a pool, left out: 1"), "{}", answer.err);
    let sjf = site.ok(&format!("replay queue --jobs {jobs} --pools {pools} --order sjf --format csv"));
    // (0 + 90 + 0) / 3, (90 + 160) / 3.
    assert_eq!(sjf.lines().last(), Some("total,3,30.000,83.333,1,8,1"));
    let later = site.ok(&format!("replay queue --jobs {jobs} --pools {pools} --order fifo --from 2017-10-09T07:00:10 --to 2017-10-09T07:00:20 --format csv"));
    assert_eq!(later.lines().last(), Some("total,1,0.000,50.000,0,4,0"));
}

#[test]
fn our_placement_is_better_than_fgd_on_its_own_trace() {
    let (Some(nodes), Some(pods)) =
        (shared("openb-2023/openb_node_list_gpu_node.csv"), shared("openb-2023/openb_pod_list_default.csv"))
    else {
        return;
    };
    let site = Site::new();
    let of = |policy: &str| {
        let out = site.ok(&format!(
            "replay placement --nodes {} --pods {} --policy {policy} --seeds 5 --format csv",
            nodes.display(),
            pods.display()
        ));
        let rows = Rows::parse(&out).0;
        assert!(rows.iter().all(|row| row["policy"] == policy));
        ["95", "100", "130"].map(|load| micros(&rows.iter().find(|row| row["load"] == load).unwrap()["allocation"]))
    };
    let (ours, fgd) = (of("cardhour"), of("fgd"));
    for (at, published) in [94_900_000, 95_230_000, 95_390_000].into_iter().enumerate() {
        assert!(fgd[at].abs_diff(published) <= 500_000, "FGD {fgd:?}");
        assert!(ours[at] > published && ours[at] > fgd[at], "ours {ours:?}, FGD {fgd:?}");
    }
}

#[test]
fn the_philly_queue_waits_as_published() {
    let (Some(jobs), Some(pools)) = (shared("philly/philly.csv"), shared("philly/philly_vc.csv")) else { return };
    let site = Site::new();
    let of = |order: &str| {
        Rows::parse(&site.ok(&format!(
            "replay queue --jobs {} --pools {} --order {order} --format csv",
            jobs.display(),
            pools.display()
        )))
    };
    let fifo = of("fifo");
    assert_eq!(fifo.0.last().unwrap()["tenant"], "total");
    assert_eq!(fifo.by("tenant", "jobs")["total"], "68503");
    let queueing = fifo.by("tenant", "mean_queueing_s");
    assert_eq!([&*queueing["total"], &*queueing["6214e9"], &*queueing["2869ce"]], ["104.611", "5.757", "11343.368"]);
    assert_eq!(fifo.by("tenant", "mean_jct_s")["total"], "11585.292");
    assert_eq!(fifo.by("tenant", "queued")["6214e9"], "279");
    let sjf = of("sjf");
    assert_eq!(sjf.by("tenant", "mean_queueing_s")["total"], "62.746");
    assert_eq!(sjf.by("tenant", "mean_jct_s")["total"], "11543.427");
}
