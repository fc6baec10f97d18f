use super::*;

const CONFIG: &str = r#"
    labels = ["team", "run"]
    most_labels = 2
    longest_label = 8

    [[account]]
    name = "research"
    org = "science"
    project = "research"
    allowed = ["nlp", "vision"]

    [[namespace]]
    name = "ml-*"
    org = "products"
    project = "ml"

    [[user]]
    name = "alice"
    org = "guests"
    project = "alice-own"
    allowed = ["audio"]

    [[queue]]
    name = "serve*"
    class = "inference"

    [[qos]]
    name = "low"
    class = "batch"
"#;

fn rules(text: &str) -> Rules {
    Rules::from_table(&text.parse().unwrap()).unwrap()
}

fn name(text: &str) -> Option<Name> {
    Some(Name::from(text))
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<Name, Name> {
    pairs.iter().map(|(key, value)| (Name::from(*key), Name::from(*value))).collect()
}

fn slurm(account: &str, user: &str, labels_of: &[(&str, &str)]) -> Facts {
    Facts { account: name(account), user: name(user), labels: labels(labels_of), ..Facts::of(HolderKind::SlurmJob) }
}

#[test]
fn the_account_pays_unless_a_label_chooses_another_project_that_it_is_allowed() {
    let rules = rules(CONFIG);
    let default = owner(&rules, &slurm("research", "bob", &[]));
    assert_eq!((default.org, default.project, default.refused_project), (name("science"), name("research"), None));
    let chosen = owner(&rules, &slurm("research", "bob", &[("project", "nlp")]));
    assert_eq!((chosen.project, chosen.refused_project), (name("nlp"), None));
    // Alice may also choose what she herself is allowed; the account still says who pays otherwise.
    let of_user = owner(&rules, &slurm("research", "alice", &[("project", "audio")]));
    assert_eq!((of_user.org, of_user.project), (name("science"), name("audio")));
}

#[test]
fn a_project_beyond_the_rules_is_refused_and_the_default_pays() {
    let refused = owner(&rules(CONFIG), &slurm("research", "bob", &[("project", "audio")]));
    assert_eq!((refused.project, refused.refused_project), (name("research"), name("audio")));
    // Nothing is allowed to an account without a rule but its own name.
    let none = owner(&rules(CONFIG), &slurm("prod", "bob", &[("project", "nlp")]));
    assert_eq!((none.org, none.project, none.refused_project), (None, name("prod"), name("nlp")));
    let own = owner(&rules(CONFIG), &slurm("prod", "bob", &[("project", "prod")]));
    assert_eq!((own.project, own.refused_project), (name("prod"), None));
}

#[test]
fn a_namespace_is_found_by_its_pattern_and_what_has_no_rule_is_unowned_where_the_site_says_so() {
    let pod = Facts { namespace: name("ml-serving"), ..Facts::of(HolderKind::Pod) };
    assert_eq!(owner(&rules(CONFIG), &pod).project, name("ml"));
    let strict = rules("unmapped = \"unowned\"");
    assert_eq!(owner(&strict, &pod).project, None);
    assert_eq!(owner(&Rules::default(), &pod).project, name("ml-serving"));
}

#[test]
fn a_session_pays_from_its_users_grant_and_is_development() {
    let session = Facts { user: name("alice"), ..Facts::of(HolderKind::Session) };
    let owner_of = owner(&rules(CONFIG), &session);
    assert_eq!(
        (owner_of.org, owner_of.project, owner_of.class),
        (name("guests"), name("alice-own"), name("development"))
    );
    let stranger = Facts { user: name("carol"), ..Facts::of(HolderKind::Process) };
    let owner_of = owner(&rules(CONFIG), &stranger);
    assert_eq!((owner_of.project, owner_of.user, owner_of.class), (None, name("carol"), None));
}

#[test]
fn the_class_comes_from_the_queue_before_the_quality_of_service() {
    let rules = rules(CONFIG);
    let job = |queue: &str, qos: &str| Facts { queue: name(queue), qos: name(qos), ..Facts::of(HolderKind::SlurmJob) };
    assert_eq!(owner(&rules, &job("serve-eu", "low")).class, name("inference"));
    assert_eq!(owner(&rules, &job("gpu", "low")).class, name("batch"));
    assert_eq!(owner(&rules, &job("gpu", "normal")).class, None);
}

#[test]
fn labels_are_those_on_the_list_and_their_values_are_cut_at_whole_characters() {
    let given = [("team", "视觉视觉"), ("run", "7"), ("secret", "hunter2")];
    let owner = owner(&rules(CONFIG), &slurm("research", "bob", &given));
    // 视 and 觉 have three bytes each: two of them fit into eight bytes, three don't.
    assert_eq!(owner.labels, labels(&[("team", "视觉"), ("run", "7")]));
}

#[test]
fn every_fault_of_the_rules_is_told_at_once_with_its_key_path() {
    let text = r#"
        unmapped = "guess"
        labels = ["team", 3]
        most_labels = 0
        [[account]]
        project = "x"
        colour = "red"
        [[account]]
        name = ""
        [[queue]]
        name = "gpu"
        class = "play"
        [[user]]
        name = "bob"
        [[user]]
        name = "bob"
        allowed = "nlp"
        [price]
    "#;
    let faults = Rules::from_table(&text.parse().unwrap()).unwrap_err();
    let paths: Vec<&str> = faults.iter().map(|fault| fault.path.as_str()).collect();
    let expected = [
        "owners.unmapped",
        "owners.account[0].name",
        "owners.account[0].colour",
        "owners.account[1].name",
        "owners.user[1].allowed",
        "owners.user[1].name",
        "owners.queue[0].class",
        "owners.labels[1]",
        "owners.most_labels",
        "owners.price",
    ];
    assert_eq!(paths, expected, "{faults:#?}");
}

#[test]
fn the_example_of_the_documentation_is_in_order() {
    let page = include_str!("../../../docs/owners.md");
    let example = page.split("```toml").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let table: toml::Table = example.parse().unwrap();
    let rules = Rules::from_table(table["owners"].as_table().unwrap()).unwrap();
    let owner = owner(&rules, &slurm("research", "alice", &[("project", "nlp"), ("team", "speech")]));
    assert_eq!((owner.org, owner.project), (name("science"), name("nlp")));
    assert_eq!(owner.labels, labels(&[("team", "speech")]));
}
