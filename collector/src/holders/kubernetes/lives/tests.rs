use super::*;
use crate::holders::kubernetes::kubelet_list::PluginDevice;

/// Looks at one name: what the kubelet gave it, what the API server and the folder say of its UID.
struct Looks {
    lives: Lives,
    at_s: i64,
}

impl Looks {
    fn new() -> Self {
        Self { lives: Lives::default(), at_s: 1000 }
    }

    fn look(&mut self, device: &str, server: Option<(&str, i64)>, folder: Option<&str>) -> String {
        self.at_s += 10;
        let pod = PodName::new("a", "db-0");
        let devices = vec![PluginDevice { resource: "nvidia.com/gpu".into(), id: device.into(), container: None }];
        let grant = PodGrant { pod: pod.clone(), devices, claimed: vec![] };
        let facts = server.map(|(uid, created_s)| PodFacts {
            uid: Some(uid.into()),
            created_at: Some(Timestamp::from_unix_s(created_s)),
            ..PodFacts::named(&pod)
        });
        let folder: Option<Name> = folder.map(Into::into);
        let word = Word { pod: &pod, grant: Some(&grant), facts: facts.as_ref(), folder_uid: folder.as_ref() };
        self.lives.settle(Timestamp::from_unix_s(self.at_s), &word).run.to_string()
    }
}

#[test]
fn a_uid_that_comes_late_belongs_to_the_run_that_is_written_down() {
    let mut looks = Looks::new();
    assert_eq!(looks.look("GPU-a", None, None), "seen1010");
    assert_eq!(looks.look("GPU-a", None, None), "seen1010");
    assert_eq!(looks.look("GPU-a", Some(("u-1", 900)), None), "seen1010");
    assert_eq!(looks.look("GPU-a", Some(("u-1", 900)), None), "seen1010");
    // Another pod takes the name.
    assert_eq!(looks.look("GPU-a", Some(("u-2", 1045)), None), "uidu-2");
}

#[test]
fn a_pod_made_after_the_stand_in_was_seen_is_another() {
    let mut looks = Looks::new();
    assert_eq!(looks.look("GPU-a", None, None), "seen1010");
    assert_eq!(looks.look("GPU-a", Some(("u-2", 1015)), None), "uidu-2");
}

#[test]
fn while_the_server_is_away_other_devices_are_another_pod_and_the_same_are_the_same() {
    let mut looks = Looks::new();
    assert_eq!(looks.look("GPU-a", Some(("u-1", 900)), None), "uidu-1");
    assert_eq!(looks.look("GPU-a", None, None), "uidu-1");
    assert_eq!(looks.look("GPU-b", None, None), "seen1030");
    assert_eq!(looks.look("GPU-b", Some(("u-2", 1025)), None), "seen1030");
}

#[test]
fn the_kubelets_folder_tells_pods_apart_while_the_server_is_away() {
    let mut looks = Looks::new();
    assert_eq!(looks.look("GPU-a", None, Some("u-1")), "uidu-1");
    assert_eq!(looks.look("GPU-a", Some(("u-1", 900)), Some("u-1")), "uidu-1");
    assert_eq!(looks.look("GPU-a", None, Some("u-2")), "uidu-2");
}

#[test]
fn a_static_pod_is_one_under_both_its_uids() {
    let mut lives = Lives::default();
    let pod = PodName::new("kube-system", "probe-n1");
    let hash: Name = "0123456789abcdef".into();
    let mirror = PodFacts { uid: Some("u-1".into()), static_uid: Some(hash.clone()), ..PodFacts::named(&pod) };
    let at = Timestamp::from_unix_s(1);
    let away = Word { pod: &pod, grant: None, facts: None, folder_uid: Some(&hash) };
    let there = Word { facts: Some(&mirror), ..Word { pod: &pod, grant: None, facts: None, folder_uid: Some(&hash) } };
    assert_eq!(&*lives.settle(at, &away).run, "uid0123456789abcdef");
    assert_eq!(&*lives.settle(at, &there).run, "uid0123456789abcdef");
    assert_eq!(&*lives.settle(at, &away).run, "uid0123456789abcdef");
}
