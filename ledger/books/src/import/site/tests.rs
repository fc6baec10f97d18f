use super::nodes::{NODE_FIELDS, nodes};
use super::outages::{OUTAGE_FIELDS, outages};
use super::reservations::{RESERVATION_FIELDS, reservations};
use crate::attempt::Rejected;
use crate::import::fields::Kind;
use crate::import::map::MapFile;
use crate::import::readers::shared_data::shared_data;
use crate::site::Node;
use cardhour_domain::{CardShare, Interval};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn map(text: &str, fields: &[(&str, Kind)]) -> MapFile {
    MapFile::parse(text, fields).unwrap()
}

/// A map of `deploy/maps`, which holds for everybody.
fn shipped(name: &str) -> MapFile {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/maps").join(name);
    map(&std::fs::read_to_string(path).unwrap(), NODE_FIELDS)
}

fn cards(nodes: &[Node]) -> String {
    nodes.iter().map(|node| node.cards).sum::<CardShare>().cards().normalize().to_string()
}

/// A node as text: `cluster/node model cards`, and what else is known of it.
fn node_text(node: &Node) -> String {
    let mut text = format!("{}/{} {} ", node.cluster, node.node, node.model.as_deref().unwrap_or("-"));
    text += &node.cards.cards().normalize().to_string();
    let known = [
        node.memory_bytes.map(|bytes| format!("{bytes} B")),
        node.pool.as_ref().map(|pool| format!("pool {pool}")),
        node.in_service_at.map(|at| format!("from {at}")),
        node.retired_at.map(|at| format!("to {at}")),
    ];
    for part in known.into_iter().flatten() {
        text += &format!(", {part}");
    }
    for (label, value) in &node.labels {
        text += &format!(", {label}={value}");
    }
    text
}

fn rejected_text(row: &Rejected) -> String {
    let field = if row.field.is_empty() { String::new() } else { format!("[{}] ", row.field) };
    format!("{}! {field}{}", row.line, row.reason)
}

fn during_text(during: Interval) -> String {
    format!("{}..{}", during.start(), during.end())
}

#[track_caller]
fn check_nodes(input: &str, map: &MapFile, expected: &[&str]) {
    let listed = nodes(input.as_bytes(), map).unwrap();
    let rejected = listed.rejected.iter().map(rejected_text);
    assert_eq!(listed.rows.iter().map(node_text).chain(rejected).collect::<Vec<_>>(), expected);
}

#[track_caller]
fn check_reservations(input: &str, map: &MapFile, expected: &[&str]) {
    let listed = reservations(input.as_bytes(), map).unwrap();
    let rows = listed.rows.iter().map(|row| {
        let nodes: Vec<&str> = row.nodes.iter().map(|name| &**name).collect();
        let owner = [&row.org, &row.project, &row.user].map(|name| name.as_deref().unwrap_or("-")).join("/");
        let cards = row.cards.map_or("all".to_owned(), |cards| cards.cards().normalize().to_string());
        let model = row.model.as_deref().unwrap_or("any");
        let name = format!("{}/{}", row.cluster, row.name);
        format!("{name} {} {cards} {model} of {:?} for {owner}", during_text(row.during), nodes.join(","))
    });
    assert_eq!(rows.chain(listed.rejected.iter().map(rejected_text)).collect::<Vec<_>>(), expected);
}

#[track_caller]
fn check_outages(input: &str, map: &MapFile, expected: &[&str]) {
    let listed = outages(input.as_bytes(), map).unwrap();
    let rows = listed.rows.iter().map(|row| {
        let nodes: Vec<&str> = row.nodes.iter().map(|name| &**name).collect();
        let cards = row.cards.map_or("all".to_owned(), |cards| cards.cards().normalize().to_string());
        let reason = row.reason.as_deref().unwrap_or("-");
        format!("{}: {} {cards} of {:?}: {reason}", row.cluster, during_text(row.during), nodes.join(","))
    });
    assert_eq!(rows.chain(listed.rejected.iter().map(rejected_text)).collect::<Vec<_>>(), expected);
}

#[test]
fn openb_has_6_212_cards_in_1_213_hosts() {
    let Some(input) = shared_data("openb-2023/openb_node_list_gpu_node.csv") else { return };
    let listed = nodes(&input, &shipped("openb-nodes.toml")).unwrap();
    assert_eq!((listed.rows.len(), listed.rejected.len()), (1213, 0));
    assert_eq!(cards(&listed.rows), "6212");
    let mut by_model: BTreeMap<&str, Vec<CardShare>> = BTreeMap::new();
    for node in &listed.rows {
        by_model.entry(node.model.as_deref().unwrap()).or_default().push(node.cards);
    }
    let total = |all: &[CardShare]| all.iter().copied().sum::<CardShare>().cards().normalize();
    let counts: Vec<_> = by_model.iter().map(|(model, all)| format!("{model} {}", total(all))).collect();
    // As the data's README lists them.
    assert_eq!(counts, ["A10 2", "G2 4392", "G3 312", "P100 265", "T4 842", "V100M16 195", "V100M32 204"]);
}

#[test]
fn openbs_hosts_without_cards_are_nodes_too() {
    let Some(input) = shared_data("openb-2023/openb_node_list_all_node.csv") else { return };
    let listed = nodes(&input, &shipped("openb-nodes.toml")).unwrap();
    // 1,523 nodes by the README, 310 more than the list of those with cards.
    assert_eq!((listed.rows.len(), cards(&listed.rows).as_str()), (1523, "6212"));
    assert_eq!(listed.rows.iter().filter(|node| node.cards.is_zero() && node.model.is_none()).count(), 310);
}

#[test]
fn philly_has_a_cluster_a_tenant_with_its_hosts() {
    let Some(input) = shared_data("philly/philly_vc.csv") else { return };
    let listed = nodes(&input, &shipped("philly-nodes.toml")).unwrap();
    // 64 + 32 + 16 + 64 + 64 + 16 + 32 + 16 + 8 + 8 + 32 hosts of 8 cards.
    assert_eq!((listed.rows.len(), cards(&listed.rows).as_str()), (352, "2816"));
    assert_eq!(listed.rows.iter().map(|node| &node.cluster).collect::<BTreeSet<_>>().len(), 11);
    let hosts: Vec<_> = listed.rows.iter().filter(|node| &*node.cluster == "103959").map(node_text).collect();
    assert_eq!((hosts.len(), hosts[0].as_str(), hosts[7].as_str()), (8, "103959/host-1 - 8", "103959/host-8 - 8"));
}

#[test]
fn a_list_with_our_own_names_needs_no_map() {
    check_nodes(
        "cluster,node,model,cards,memory,pool,in_service_at,retired_at,labels.rack,price\n\
         a,\"n[01-02],big\",H200,8,151397597184,main,2026-01-01T00:00:00Z,2026-06-01T00:00:00+08:00,r1,9\n\
         ,m1,,0,,,,,,\n",
        &MapFile::default(),
        &[
            "a/n01 H200 8, 151397597184 B, pool main, from 2026-01-01T00:00:00Z, to 2026-05-31T16:00:00Z, rack=r1",
            "a/n02 H200 8, 151397597184 B, pool main, from 2026-01-01T00:00:00Z, to 2026-05-31T16:00:00Z, rack=r1",
            "a/big H200 8, 151397597184 B, pool main, from 2026-01-01T00:00:00Z, to 2026-05-31T16:00:00Z, rack=r1",
            "/m1 - 0",
        ],
    );
}

#[test]
fn a_map_renames_scales_and_fills_in() {
    let map = map(
        r#"
        cluster = "c"
        time_zone = "Asia/Shanghai"
        count = "n"
        [columns]
        node = "kind"
        model = { column = "kind", map = { big = "NVIDIA H200" } }
        cards = { column = "per_half", scale = 2 }
        memory = { column = "gib", scale = "1073741824" }
        in_service_at = "since"
        "#,
        NODE_FIELDS,
    );
    check_nodes(
        "kind;n;per_half;gib;since\nbig;2;4;141;2026-03-01\nsmall;1;0.5;0.5;\n".replace(';', ",").as_str(),
        &map,
        &[
            // 141 GiB = 141 × 1,073,741,824 bytes; midnight in Shanghai is 16:00 UTC of the day before.
            "c/big-1 NVIDIA H200 8, 151397597184 B, from 2026-02-28T16:00:00Z",
            "c/big-2 NVIDIA H200 8, 151397597184 B, from 2026-02-28T16:00:00Z",
            "c/small-1 - 1, 536870912 B",
        ],
    );
}

#[test]
fn nodes_that_make_no_sense_are_rejected_one_by_one() {
    check_nodes(
        "node,cards,memory,in_service_at,retired_at\n\
         n1,8,,,\n\
         n1,8,,,\n\
         n1,4,,,\n\
         n2,8,,,2026-01-01T00:00:00Z\n\
         n2,4,,2026-01-01T00:00:00Z,\n\
         n3,,,,\n\
         ,8,,,\n\
         n4,-1,,,\n\
         n5,many,,,\n\
         n6,8,0.5,,\n\
         n7,8,,2026-01-01T00:00:00Z,2025-01-01T00:00:00Z\n\
         n[1,8,,,\n",
        &MapFile::default(),
        &[
            "/n1 - 8",
            "/n2 - 8, to 2026-01-01T00:00:00Z",
            "/n2 - 4, from 2026-01-01T00:00:00Z",
            "4! [node] n1 stands in the list twice, described differently for the same time",
            "7! [cards] is absent: write 0 for a node without cards",
            "8! [node] is absent: name the node",
            "9! [cards] -1 cards is below zero",
            "10! [cards] \"many\" is not a number",
            "11! [memory] 0.5 is not a number of bytes",
            "12! [retired_at] 2025-01-01T00:00:00Z is not after in_service_at, 2026-01-01T00:00:00Z",
            "13! [node] \"n[1\" is not a host list such as node[01-04,7],login1",
        ],
    );
}

#[test]
fn a_list_that_lacks_what_every_node_needs_is_refused() {
    let told = |input: &str, map: &MapFile| nodes(input.as_bytes(), map).unwrap_err().to_string();
    let none = MapFile::default();
    assert!(told("host,cards\na,8\n", &none).starts_with("nothing says which nodes there are: name a column node"));
    assert!(told("node,gpus\na,8\n", &none).starts_with("nothing says how many cards a node has"));
    assert!(told("", &none).starts_with("the file is empty"));
    let map = map("count = \"n\"\n[columns]\ncards = \"gpus\"\nmodel = \"m\"\n", NODE_FIELDS);
    let error = told("node,n\na,8\n", &map);
    assert!(error.contains("columns.cards: no column \"gpus\"; columns.model: no column \"m\""), "{error}");
}

#[test]
fn scontrols_nodes_have_the_cards_of_their_configuration() {
    check_nodes(
        "NodeName=gpu1 Arch=x86_64 CoresPerSocket=18\n   \
            Gres=gpu:h100:8(S:0-1)\n   OS=Linux 5.14.0 #1 SMP\n   \
            CfgTRES=cpu=36,mem=95000M,billing=36,gres/gpu=8,gres/gpu:h100=8\n   \
            Reason=Kill task failed [root@2024-08-08T05:41:46]\n\n\
         NodeName=gpu2 Arch=x86_64\n   Gres=gpu:a100:4\n   CfgTRES=cpu=36,mem=1M\n\n\
         NodeName=cpu1 Arch=x86_64\n   Gres=(null)\n   CfgTRES=cpu=36,mem=1M\n",
        &map("cluster = \"c\"", NODE_FIELDS),
        &["c/gpu1 h100 8", "c/gpu2 a100 4", "c/cpu1 - 0"],
    );
}

#[test]
fn reservations_are_written_in_toml_or_csv() {
    check_reservations(
        r#"
        [[reservation]]
        name = "summer-school"
        from = 2026-07-01T08:00:00+08:00
        to = 2026-07-05
        nodes = ["n[1-2]", "n7"]
        project = "teaching"

        [[ reservation ]]
        cluster = "b"
        name = "launch"
        started_at = "2026-07-01 00:00:00"
        ended_at = "2026-07-02 00:00:00"
        cards = 16
        model = "H200"
        org = "x"
        user = "ann"

        [[reservation]]
        name = "typo"
        start = 2026-07-01
        ends = 2026-07-05
        nodes = "n1"
        "#,
        &map("cluster = \"a\"\ntime_zone = \"Asia/Shanghai\"", RESERVATION_FIELDS),
        &[
            "a/summer-school 2026-07-01T00:00:00Z..2026-07-04T16:00:00Z all any of \"n1,n2,n7\" for -/teaching/-",
            "b/launch 2026-06-30T16:00:00Z..2026-07-01T16:00:00Z 16 H200 of \"\" for x/-/ann",
            "19! has a key \"ends\" that is not known; there are cluster, name, started_at, ended_at, nodes, cards, \
             model, org, project, user",
        ],
    );
    check_reservations(
        "name,started_at,ended_at,nodes,cards\n\
         a,2026-07-01,2026-07-02,n1,\n\
         b,2026-07-02,2026-07-01,n1,\n\
         c,2026-07-01,,n1,\n\
         d,2026-07-01,2026-07-02,,\n\
         ,2026-07-01,2026-07-02,n1,\n",
        &MapFile::default(),
        &[
            "/a 2026-07-01T00:00:00Z..2026-07-02T00:00:00Z all any of \"n1\" for -/-/-",
            "3! [ended_at] 2026-07-01T00:00:00Z is not after the start, 2026-07-02T00:00:00Z",
            "4! [ended_at] is absent: say until when, or up to when it is known to last",
            "5! [nodes] takes neither nodes nor a number of cards: name either",
            "6! [name] is absent: jobs name it as theirs",
        ],
    );
}

/// What `scontrol show reservation` prints, by Slurm's documentation of reservations.
const SCONTROL: &str = "\
ReservationName=root_3 StartTime=2026-02-06T16:00:00 EndTime=2026-02-06T18:00:00 Duration=02:00:00
   Nodes=node[01-02] NodeCnt=2 CoreCnt=64 Features=(null) PartitionName=debug Flags=MAINT,IGNORE_JOBS,SPEC_NODES
     NodeName=node01 CoreIDs=0-31
   TRES=cpu=64
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null)

ReservationName=course StartTime=2026-02-07T08:00:00 EndTime=2026-02-08T08:00:00 Duration=1-00:00:00 Nodes=gpu1 Flags=SPEC_NODES TRES=cpu=8,gres/gpu=4 Users=(null) Accounts=physics State=INACTIVE
ReservationName=shared StartTime=2026-02-07T08:00:00 EndTime=2026-02-08T08:00:00 Nodes=gpu2 Flags= TRES=cpu=8 Users=-eve Accounts=physics,chem State=INACTIVE
";

#[test]
fn scontrols_reservations_are_read_as_printed() {
    check_reservations(
        SCONTROL,
        &map("cluster = \"c\"\ntime_zone = \"Europe/Oslo\"", RESERVATION_FIELDS),
        &[
            // Oslo is an hour ahead of UTC in February.
            "c/root_3 2026-02-06T15:00:00Z..2026-02-06T17:00:00Z all any of \"node01,node02\" for -/-/root",
            "c/course 2026-02-07T07:00:00Z..2026-02-08T07:00:00Z 4 any of \"gpu1\" for -/physics/-",
            "c/shared 2026-02-07T07:00:00Z..2026-02-08T07:00:00Z all any of \"gpu2\" for -/-/-",
        ],
    );
}

#[test]
fn maintenance_in_scontrols_reservations_is_an_outage() {
    check_outages(
        SCONTROL,
        &MapFile::default(),
        &[": 2026-02-06T16:00:00Z..2026-02-06T18:00:00Z all of \"node01,node02\": root_3"],
    );
}

#[test]
fn outages_hit_nodes_some_of_their_cards_or_a_whole_cluster() {
    check_outages(
        r#"{"cluster": "a", "started_at": "2026-07-01T00:00:00Z", "ended_at": "2026-07-02T00:00:00Z", "nodes": ["n1", "n2"], "cards": 1, "reason": "fan"}
           {"cluster": "a", "started_at": 1782864000, "ended_at": 1782867600, "nodes": "ALL"}
           {"cluster": "a", "started_at": "soon", "ended_at": "2026-07-02T00:00:00Z"}"#,
        &map("", OUTAGE_FIELDS),
        &[
            "a: 2026-07-01T00:00:00Z..2026-07-02T00:00:00Z 1 of \"n1,n2\": fan",
            // 20,635 days of 86,400 s: 2026-07-01.
            "a: 2026-07-01T00:00:00Z..2026-07-01T01:00:00Z all of \"\": -",
            "3! [started_at] \"soon\" is not a time such as 2026-03-01T00:00:00Z, 2026-03-01 00:00:00 or a count of seconds",
        ],
    );
    check_outages(
        "[[outage]]\nstart = 2026-07-01T00:00:00Z\nend = 2026-07-01T01:00:00Z\nreason = \"power\"\n",
        &MapFile::default(),
        &[": 2026-07-01T00:00:00Z..2026-07-01T01:00:00Z all of \"\": power"],
    );
}

#[test]
fn a_byte_order_mark_hides_no_format() {
    for input in [
        "node,cards\na,8\n",
        "[[node]]\nnode = \"a\"\ncards = 8\n",
        "{\"node\": \"a\", \"cards\": 8}\n",
        "NodeName=a Gres=gpu:8\n",
    ] {
        check_nodes(&format!("\u{feff}{input}"), &MapFile::default(), &["/a - 8"]);
    }
}

#[test]
fn toml_that_goes_wrong_says_where() {
    let told = |input: &str| reservations(input.as_bytes(), &MapFile::default()).unwrap_err().to_string();
    assert!(told("[[reservation]]\nname = oops\n").contains("line 2"));
    assert_eq!(told("x = 1\n[[reservation]]\nname = \"a\"\n"), "the file has keys beside [[reservation]]: x");
}

proptest! {
    #[test]
    fn no_bytes_make_a_list_panic(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("[[node]]\nnode = \"n[1-3]\"\ncards = 8\n".to_owned()),
                Just("[[outage]]\nfrom = 2026-01-01\n".to_owned()),
                Just("ReservationName=a StartTime=2026-01-01T00:00:00 Nodes=n[1-".to_owned()),
                Just("NodeName=n1 Gres=gpu:8 CfgTRES=gres/gpu=99999999999\n".to_owned()),
                Just("node,cards,name,started_at,ended_at\n".to_owned()),
                Just("n1,8,x,1,99999999999999999999\n".to_owned()),
                "[\\[\\]{}=,\"\n 0-9a-zA-Z|é-]{0,20}",
            ],
            0..6,
        ),
        raw in proptest::collection::vec(any::<u8>(), 0..12),
    ) {
        let mut input = pieces.concat().into_bytes();
        input.extend(raw);
        for map in [MapFile::default(), map("count = \"cards\"\nformat = \"csv\"", NODE_FIELDS)] {
            let _ = nodes(&input, &map);
            let _ = reservations(&input, &map);
            let _ = outages(&input, &map);
        }
    }
}
