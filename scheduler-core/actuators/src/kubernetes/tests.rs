//! An API server that speaks the real paths, in this process: objects by path, what evictions answer, who changes things in between.

mod server;

use super::*;
use crate::action::{Action, What};
use crate::guards::{Guards, Mode};
use crate::journal::{Journal, Pasts};
use crate::past::Standing;
use crate::round::{Carrying, Round, round};
use crate::setting::From;
use crate::world::Worlds;
use serde_json::{Value, json};
use server::Server;
use std::cell::Cell;
use std::time::Duration;

const POD: &str = "/api/v1/namespaces/nlp/pods/train-0";
const CLUSTER_QUEUE: &str = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/research";

fn start() -> Timestamp {
    Timestamp::from_unix_s(1_000_000)
}

fn action(decision: &str, what: KubernetesAction) -> Action {
    let decision = DecisionId::new(decision);
    Action { decision, tenant: None, what: What::Kubernetes(what), deadline: after_s(start(), 600) }
}

fn cluster(server: &Server) -> Cluster {
    let settings = ClusterSettings {
        url: server.url(),
        ca_file: None,
        token_file: Some(server.token_file()),
        timeout: Duration::from_secs(10),
    };
    Cluster::new(settings).unwrap()
}

/// Carries an action to its end, on a clock that goes to each round that is due.
fn carry(server: &Server, journal: &mut Pasts, action: &Action) -> Standing {
    let mut world = Worlds { kubernetes: Some(cluster(server)), ..Worlds::default() };
    let guards = Guards { mode: Mode::Act, most_an_hour: 10, ..Guards::default() };
    let clock = Cell::new(start());
    loop {
        let now = || clock.get();
        let mut with = Carrying { world: &mut world, journal, guards: &guards, is_wanted: &|_, _| Ok(()), now: &now };
        match round(action, &mut with).unwrap() {
            Round::Over(standing) => return standing,
            Round::Due(at) | Round::Blind { due: at, .. } => clock.set(at),
            held @ Round::Held { .. } => panic!("{held:?}"),
        }
    }
}

fn carried(server: &Server, what: KubernetesAction) -> Standing {
    carry(server, &mut Pasts::default(), &action("d1", what))
}

fn pod(uid: &str) -> Value {
    json!({"metadata": {"name": "train-0", "namespace": "nlp", "uid": uid}, "status": {"phase": "Running"}})
}

fn evict() -> KubernetesAction {
    let pod = PodTarget { namespace: "nlp".into(), name: "train-0".into(), uid: "u1".into() };
    KubernetesAction::Evict { pod, grace_s: Some(120) }
}

#[test]
fn a_pod_is_evicted_by_its_uid_once() {
    let server = Server::start();
    server.put(POD, pod("u1"));
    let mut journal = Pasts::default();
    let evict = action("d1", evict());
    assert_eq!(carry(&server, &mut journal, &evict), Standing::SeenTrue);
    assert_eq!(carry(&server, &mut journal, &evict), Standing::SeenTrue);
    let evictions = server.bodies("POST", &format!("{POD}/eviction"));
    // As the API spells it: `deleteOptions`, with what tells a pod of the same name apart.
    let expected = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "train-0", "namespace": "nlp"},
        "deleteOptions": {"preconditions": {"uid": "u1"}, "gracePeriodSeconds": 120},
    });
    assert_eq!(evictions, [expected]);
}

#[test]
fn an_eviction_that_a_budget_forbids_is_asked_for_again_when_the_server_says() {
    let server = Server::start();
    server.put(POD, pod("u1"));
    server.refuse_evictions(2, 429, Some(40));
    let mut journal = Pasts::default();
    assert_eq!(carry(&server, &mut journal, &action("d1", evict())), Standing::SeenTrue);
    let past = Journal::past(&journal, &DecisionId::new("d1")).unwrap();
    let seconds: Vec<i64> = past.tries.iter().map(|tried| tried.at.ms_since(start()) / 1000).collect();
    assert_eq!(seconds, [0, 40, 80]);
}

#[test]
fn a_budget_that_never_allows_it_is_honoured_to_the_deadline_and_nothing_is_deleted() {
    let server = Server::start();
    server.put(POD, pod("u1"));
    server.refuse_evictions(1000, 429, None);
    let Standing::Refused(reason) = carried(&server, evict()) else { panic!() };
    assert!(
        reason.starts_with("not true by its deadline; last: the API server answers 429: Cannot evict pod"),
        "{reason}"
    );
    assert!(server.asked().iter().all(|(method, _)| method != "DELETE"));
    assert!(server.get(POD).is_some());
}

#[test]
fn a_pod_that_ended_meanwhile_or_has_another_uid_is_left_alone() {
    let server = Server::start();
    assert_eq!(carried(&server, evict()), Standing::Refused("it ended meanwhile".into()));
    server.put(POD, pod("u2"));
    let replaced = Standing::Refused("it ended meanwhile, and another has its name".into());
    assert_eq!(carried(&server, evict()), replaced);
    assert!(server.bodies("POST", &format!("{POD}/eviction")).is_empty());
    // Replaced between the look and the eviction: the server's 409, and the look after it.
    server.put(POD, pod("u1"));
    server.before_evictions(|server| server.put(POD, pod("u2")));
    assert_eq!(carried(&server, evict()), replaced);
    assert!(server.get(POD).is_some());
}

#[test]
fn a_pod_of_the_system_or_of_a_node_is_never_evicted() {
    let server = Server::start();
    let mut daemon = pod("u1");
    daemon["metadata"]["ownerReferences"] = json!([{"kind": "DaemonSet", "name": "dcgm", "controller": true}]);
    server.put(POD, daemon);
    assert!(matches!(carried(&server, evict()), Standing::Refused(reason) if reason.contains("DaemonSet")));
    let mut mirror = pod("u1");
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    server.put(POD, mirror);
    assert!(matches!(carried(&server, evict()), Standing::Refused(reason) if reason.contains("node's own")));
}

#[test]
fn two_budgets_over_one_pod_are_a_matter_for_people() {
    let server = Server::start();
    server.put(POD, pod("u1"));
    server.refuse_evictions(1, 500, None);
    let Standing::Refused(reason) = carried(&server, evict()) else { panic!() };
    assert!(reason.contains("more than one PodDisruptionBudget"), "{reason}");
}

#[test]
fn an_owner_is_scaled_through_a_conflict_and_back_again() {
    let server = Server::start();
    let path = "/apis/apps/v1/namespaces/nlp/deployments/serve/scale";
    let scale = json!({
        "metadata": {"name": "serve", "namespace": "nlp", "uid": "u1"},
        "spec": {"replicas": 3}, "status": {"replicas": 3},
    });
    server.put(path, scale);
    server.conflict_once();
    let owner =
        ScaleTarget { kind: Scaled::Deployment, namespace: "nlp".into(), name: "serve".into(), uid: "u1".into() };
    let to = |aim| KubernetesAction::Scale { owner: owner.clone(), aim };
    let mut journal = Pasts::default();
    let down = action("d1", to(Aim::Value { to: Some(0), from: From::Value(Some(3)) }));
    assert_eq!(carry(&server, &mut journal, &down), Standing::SeenTrue);
    assert_eq!(server.statuses("PUT", path), [409, 200]);
    assert_eq!(server.get(path).unwrap()["spec"]["replicas"], 0);
    let back = action("d2", to(Aim::AsBefore(DecisionId::new("d1"))));
    assert_eq!(carry(&server, &mut journal, &back), Standing::SeenTrue);
    assert_eq!(server.get(path).unwrap()["spec"]["replicas"], 3);
    // Somebody else has set it since: what is there stays.
    let mut changed = server.get(path).unwrap();
    changed["spec"]["replicas"] = json!(5);
    changed["status"]["replicas"] = json!(5);
    server.put(path, changed);
    let third = action("d3", to(Aim::AsBefore(DecisionId::new("d1"))));
    let refused = Standing::Refused("somebody else set it: it is 5, not 0".into());
    assert_eq!(carry(&server, &mut journal, &third), refused);
}

#[test]
fn a_notebook_is_stopped_by_its_annotation_and_started_again() {
    let server = Server::start();
    let path = "/apis/kubeflow.org/v1/namespaces/nlp/notebooks/nb";
    server.put(
        path,
        json!({"metadata": {"name": "nb", "namespace": "nlp", "uid": "u1"}, "status": {"readyReplicas": 0}}),
    );
    let kind = stopped::Stoppable::Notebook;
    let target = StoppedTarget { kind, namespace: "nlp".into(), name: "nb".into(), uid: "u1".into() };
    assert_eq!(carried(&server, KubernetesAction::Stop(target.clone())), Standing::SeenTrue);
    let annotation = server.get(path).unwrap()["metadata"]["annotations"]["kubeflow-resource-stopped"].clone();
    assert!(Timestamp::parse_rfc3339(annotation.as_str().unwrap()).is_ok());
    // It is stopped already: the first stop's time stays.
    assert_eq!(carried(&server, KubernetesAction::Stop(target.clone())), Standing::SeenTrue);
    assert_eq!(server.bodies("PATCH", path).len(), 1);
    assert_eq!(carried(&server, KubernetesAction::Start(target)), Standing::SeenTrue);
    assert!(server.get(path).unwrap()["metadata"]["annotations"].get("kubeflow-resource-stopped").is_none());
}

#[test]
fn a_job_is_suspended_and_a_workload_deactivated() {
    let server = Server::start();
    let job = "/apis/batch/v1/namespaces/nlp/jobs/train";
    server.put(job, json!({"metadata": {"uid": "u1"}, "spec": {"parallelism": 4}, "status": {"active": 0}}));
    let target =
        |kind, name: &str| StoppedTarget { kind, namespace: "nlp".into(), name: name.into(), uid: "u1".into() };
    let suspend = KubernetesAction::Stop(target(stopped::Stoppable::Job, "train"));
    assert_eq!(carried(&server, suspend.clone()), Standing::SeenTrue);
    assert_eq!(server.get(job).unwrap()["spec"], json!({"parallelism": 4, "suspend": true}));
    server.put(job, json!({"metadata": {"uid": "u1"}, "spec": {}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}));
    assert_eq!(carried(&server, suspend), Standing::Refused("it ended meanwhile".into()));
    let workload = "/apis/kueue.x-k8s.io/v1beta2/namespaces/nlp/workloads/w";
    server.put(workload, json!({"metadata": {"uid": "u1"}, "spec": {"queueName": "q"}}));
    let stop = KubernetesAction::Stop(target(stopped::Stoppable::Workload, "w"));
    assert_eq!(carried(&server, stop), Standing::SeenTrue);
    assert_eq!(server.get(workload).unwrap()["spec"]["active"], json!(false));
}

/// Two flavors in the second group; the list is atomic, so a merge patch of a part of it would lose the rest.
fn cluster_queue() -> Value {
    let cpu = json!({"coveredResources": ["cpu"], "flavors": [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": "500"}]}]});
    let of = |name: &str, quota: Value| json!({"name": name, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": quota, "borrowingLimit": "4"}]});
    let gpu =
        json!({"coveredResources": ["nvidia.com/gpu"], "flavors": [of("a100", json!(16)), of("h100", json!("8"))]});
    json!({"metadata": {"name": "research", "uid": "q1"}, "spec": {"cohortName": "all", "resourceGroups": [cpu, gpu]}})
}

fn kueue(field: KueueField, aim: Aim) -> KubernetesAction {
    let (queue, flavor, resource) = ("research".into(), "h100".into(), "nvidia.com/gpu".into());
    KubernetesAction::SetQuota { quota: Quota::Kueue { queue, flavor, resource, field }, aim }
}

fn to(value: Option<u64>) -> Aim {
    Aim::Value { to: value, from: From::Anything }
}

#[test]
fn a_quota_of_kueue_changes_one_number_of_an_atomic_list_and_comes_back() {
    let server = Server::start();
    server.put(CLUSTER_QUEUE, cluster_queue());
    let mut journal = Pasts::default();
    let lower = action("d1", kueue(KueueField::Nominal, to(Some(6))));
    assert_eq!(carry(&server, &mut journal, &lower), Standing::SeenTrue);
    let mut expected = cluster_queue();
    expected["spec"]["resourceGroups"][1]["flavors"][1]["resources"][0]["nominalQuota"] = json!("6");
    assert_eq!(server.get(CLUSTER_QUEUE).unwrap()["spec"], expected["spec"]);
    let back = action("d2", kueue(KueueField::Nominal, Aim::AsBefore(DecisionId::new("d1"))));
    assert_eq!(carry(&server, &mut journal, &back), Standing::SeenTrue);
    assert_eq!(server.get(CLUSTER_QUEUE).unwrap()["spec"], cluster_queue()["spec"]);
}

#[test]
fn a_limit_of_kueue_is_taken_away_by_taking_its_field_away_and_nothing_is_zero() {
    let server = Server::start();
    server.put(CLUSTER_QUEUE, cluster_queue());
    let mut journal = Pasts::default();
    let lift = action("d1", kueue(KueueField::Borrowing, to(None)));
    assert_eq!(carry(&server, &mut journal, &lift), Standing::SeenTrue);
    let h100 = || server.get(CLUSTER_QUEUE).unwrap()["spec"]["resourceGroups"][1]["flavors"][1]["resources"][0].clone();
    assert_eq!(h100(), json!({"name": "nvidia.com/gpu", "nominalQuota": "8"}));
    let nothing = action("d2", kueue(KueueField::Borrowing, to(Some(0))));
    assert_eq!(carry(&server, &mut journal, &nothing), Standing::SeenTrue);
    assert_eq!(h100()["borrowingLimit"], json!("0"));
    let never = action("d3", kueue(KueueField::Nominal, to(None)));
    assert!(matches!(carry(&server, &mut journal, &never), Standing::Refused(_)));
    let mut alone = cluster_queue();
    alone["spec"]["cohortName"] = json!("");
    server.put(CLUSTER_QUEUE, alone);
    let lend = action("d4", kueue(KueueField::Lending, to(Some(1))));
    assert!(matches!(carry(&server, &mut journal, &lend), Standing::Refused(reason) if reason.contains("no cohort")));
}

#[test]
fn a_queue_whose_list_was_changed_in_between_is_read_anew() {
    let server = Server::start();
    // Both flavors have the same quota: their names alone tell them apart.
    let mut queue = cluster_queue();
    queue["spec"]["resourceGroups"][1]["flavors"][0]["resources"][0]["nominalQuota"] = json!("8");
    server.put(CLUSTER_QUEUE, queue);
    // Between the read and the patch the flavors change places: the tests in the patch fail, and the next round finds it where it is now.
    server.before_patches(|server| {
        let mut turned = server.get(CLUSTER_QUEUE).unwrap();
        turned["spec"]["resourceGroups"][1]["flavors"].as_array_mut().unwrap().reverse();
        server.put(CLUSTER_QUEUE, turned);
    });
    assert_eq!(carried(&server, kueue(KueueField::Nominal, to(Some(6)))), Standing::SeenTrue);
    assert_eq!(server.statuses("PATCH", CLUSTER_QUEUE), [422, 200]);
    let flavors = server.get(CLUSTER_QUEUE).unwrap()["spec"]["resourceGroups"][1]["flavors"].clone();
    let quotas: Vec<(&Value, &Value)> =
        (0..2).map(|i| (&flavors[i]["name"], &flavors[i]["resources"][0]["nominalQuota"])).collect();
    assert_eq!(quotas, [(&json!("h100"), &json!("6")), (&json!("a100"), &json!("8"))]);
}

#[test]
fn a_quota_of_volcano_is_a_key_of_a_map_and_goes_through_a_conflict() {
    let server = Server::start();
    let path = "/apis/scheduling.volcano.sh/v1beta1/queues/research";
    server.put(
        path,
        json!({"metadata": {"uid": "q1"}, "spec": {"weight": 1, "capability": {"cpu": "100", "nvidia.com/gpu": 8}}}),
    );
    server.conflict_once();
    let set = |field, aim| {
        let quota = Quota::Volcano { queue: "research".into(), resource: "nvidia.com/gpu".into(), field };
        KubernetesAction::SetQuota { quota, aim }
    };
    let mut journal = Pasts::default();
    let lower = action("d1", set(VolcanoField::Capability, to(Some(4))));
    assert_eq!(carry(&server, &mut journal, &lower), Standing::SeenTrue);
    assert_eq!(server.statuses("PATCH", path), [409, 200]);
    assert_eq!(server.get(path).unwrap()["spec"]["capability"], json!({"cpu": "100", "nvidia.com/gpu": "4"}));
    let lift = action("d2", set(VolcanoField::Capability, to(None)));
    assert_eq!(carry(&server, &mut journal, &lift), Standing::SeenTrue);
    assert_eq!(server.get(path).unwrap()["spec"]["capability"], json!({"cpu": "100"}));
    let keep = action("d3", set(VolcanoField::Guarantee, to(Some(2))));
    assert_eq!(carry(&server, &mut journal, &keep), Standing::SeenTrue);
    assert_eq!(server.get(path).unwrap()["spec"]["guarantee"], json!({"resource": {"nvidia.com/gpu": "2"}}));
    // What is kept for a queue is 0 where it is absent, unlike what it may have at most.
    let keep_none = action("d4", set(VolcanoField::Guarantee, Aim::AsBefore(DecisionId::new("d3"))));
    assert_eq!(carry(&server, &mut journal, &keep_none), Standing::SeenTrue);
    assert_eq!(server.get(path).unwrap()["spec"]["guarantee"], json!({"resource": {}}));
    let endless = action("d5", set(VolcanoField::Deserved, to(None)));
    assert!(matches!(carry(&server, &mut journal, &endless), Standing::Refused(_)));
    let nothing = action("d6", set(VolcanoField::Capability, to(Some(0))));
    assert_eq!(carry(&server, &mut journal, &nothing), Standing::SeenTrue);
    assert_eq!(server.get(path).unwrap()["spec"]["capability"]["nvidia.com/gpu"], "0");
}

#[test]
fn no_limit_of_kai_is_minus_one_and_its_three_numbers_go_together() {
    let server = Server::start();
    let path = "/apis/scheduling.run.ai/v2/queues/research";
    let gpu = json!({"quota": 8.0, "overQuotaWeight": 1, "limit": -1});
    server.put(path, json!({"metadata": {"uid": "q1"}, "spec": {"resources": {"gpu": gpu}}}));
    let set = |field, aim| KubernetesAction::SetQuota { quota: Quota::Kai { queue: "research".into(), field }, aim };
    let mut journal = Pasts::default();
    let cap = action("d1", set(KaiField::Limit, Aim::Value { to: Some(12), from: From::Value(None) }));
    assert_eq!(carry(&server, &mut journal, &cap), Standing::SeenTrue);
    let gpu = || server.get(path).unwrap()["spec"]["resources"]["gpu"].clone();
    assert_eq!(gpu(), json!({"quota": 8.0, "overQuotaWeight": 1, "limit": 12}));
    let back = action("d2", set(KaiField::Limit, Aim::AsBefore(DecisionId::new("d1"))));
    assert_eq!(carry(&server, &mut journal, &back), Standing::SeenTrue);
    assert_eq!(gpu(), json!({"quota": 8.0, "overQuotaWeight": 1, "limit": -1}));
    server.put(path, json!({"metadata": {"uid": "q1"}, "spec": {"resources": {"gpu": {"quota": 8}}}}));
    let partial = action("d3", set(KaiField::Limit, to(Some(4))));
    assert!(
        matches!(carry(&server, &mut journal, &partial), Standing::Refused(reason) if reason.contains("what is absent there is 0"))
    );
}

#[test]
fn a_server_that_is_away_or_refuses_is_no_reason_to_act() {
    let server = Server::start();
    server.put(POD, pod("u1"));
    server.answer_everything(503);
    let Standing::Refused(reason) = carried(&server, evict()) else { panic!() };
    assert!(reason.starts_with("not seen by its deadline: the API server answers 503"), "{reason}");
    let server = Server::start();
    let none = kueue(KueueField::Nominal, to(Some(6)));
    server.forget_groups();
    assert_eq!(carried(&server, none), Standing::Refused("this cluster has no kueue.x-k8s.io".into()));
}

#[test]
fn a_token_goes_to_another_machine_over_tls_only_and_a_name_stays_a_name() {
    let of = |url: &str| {
        let settings =
            ClusterSettings { url: url.into(), ca_file: None, token_file: None, timeout: Duration::from_secs(1) };
        Cluster::new(settings).map(|_| ())
    };
    assert!(of("http://10.0.0.1:8001").unwrap_err().contains("over https only"));
    assert_eq!(of("http://127.0.0.1:8001"), Ok(()));
    assert_eq!(of("http://[::1]:8001"), Ok(()));
    assert_eq!(of("https://10.0.0.1:443"), Ok(()));
    assert!(of("10.0.0.1").is_err());
    for name in ["a/b", "..", "A", "", "a?x", "%2e"] {
        assert!(client::part(name).is_err(), "{name:?}");
    }
    assert!(client::part("train-0.x").is_ok());
}
