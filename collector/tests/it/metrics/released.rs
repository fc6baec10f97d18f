//! Letting go of the cards on request, as an operator asks for it.

use super::node::{Node, ask, command};
use super::page::Page;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Driver in use, and let go.
fn state(page: &Page) -> (f64, f64) {
    (page.value("cardhour_collector_driver_up", &[]), page.value("cardhour_collector_released", &[]))
}

/// Pitfalls 20 and 21: no handle is open when the command ends, so a reset or an unbind can begin; the collector goes on, and takes the cards back.
#[test]
fn pitfall_20_and_21_a_release_ends_when_nothing_is_open_and_take_back_ends_it() {
    let node = Node::new("[[card]]\npreset = \"h100\"\ncurve.sm = 50\n");
    assert_eq!(state(&node.read_page()), (1.0, 0.0));
    let asked = node.ask(&["release", "--for", "3600"]);
    assert!(asked.status.success(), "{asked:?}");
    // Counted by the library when it is let go of: at once, not some time later.
    assert_eq!(node.stage.calls("nvmlShutdown"), 1, "{}", node.log());
    let said = text(&asked.stdout);
    assert!(said.starts_with("released until 20") && said.ends_with("Z\n"), "{said}");
    assert_eq!(state(&node.page().unwrap()), (0.0, 1.0));
    // Ticks go on, without a figure of the card.
    let page = node.page_when("without the card", |page| page.values("cardhour_card_power_watts", &[]).is_empty());
    let ticks = |page: &Page| page.value("cardhour_collector_ticks_total", &[]);
    node.page_when("ticks", |now| ticks(now) >= ticks(&page) + 2.0);
    assert_eq!(node.get("/health", "*/*").unwrap().0, 200);
    // Asked again, it begins anew, though nothing was open.
    assert!(node.ask(&["release"]).status.success());
    assert_eq!(node.stage.calls("nvmlInit_v2"), 1);

    let back = node.ask(&["take-back"]);
    assert_eq!((back.status.code(), text(&back.stdout).as_str()), (Some(0), "taken back\n"));
    node.page_when("taken back", |page| {
        state(page) == (1.0, 0.0) && page.values("cardhour_device_sm_active_ratio", &[]) == [0.5]
    });
    assert_eq!(node.page().unwrap().values("cardhour_collector_events_total", &[("kind", "released")]), [2.0]);
    assert_eq!(node.log().matches("driver in use").count(), 2, "{}", node.log());
}

/// The socket is the collector's own, and goes with it.
#[test]
fn the_socket_is_closed_to_others_and_gone_in_the_end() {
    let mut node = Node::new("[[card]]\npreset = \"h100\"\n");
    node.read_page();
    let socket = node.folder.path().join("spool/control");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(Command::new("kill").args(["-TERM", &node.pid().to_string()]).status().unwrap().success());
    assert_eq!(node.ended(), Some(0), "{}", node.log());
    assert!(!socket.exists());
}

#[test]
fn the_signal_lets_go_as_well() {
    let node = Node::new("[[card]]\npreset = \"h100\"\n");
    node.read_page();
    assert!(Command::new("kill").args(["-USR1", &node.pid().to_string()]).status().unwrap().success());
    node.page_when("let go", |page| state(page) == (0.0, 1.0));
    assert!(node.log().contains("cards released"), "{}", node.log());
}

/// A driver that is being changed isn't tried in between.
#[test]
fn while_the_driver_is_away_a_release_keeps_the_collector_from_it() {
    let node = Node::new("[[card]]\npreset = \"h100\"\n[[fault]]\ncall = \"nvmlInit*\"\nrc = 9\nuntil_s = 8\n");
    node.read_page();
    assert!(node.ask(&["release", "--for", "3600"]).status.success());
    let ticks = |page: &Page| page.value("cardhour_collector_ticks_total", &[]);
    // Without a release it is tried after 1, 3, 7 and 15 s.
    node.page_when("the driver is there", |page| ticks(page) >= 20.0);
    assert_eq!(state(&node.page().unwrap()), (0.0, 1.0));
    assert!(node.ask(&["take-back"]).status.success());
    node.page_when("in use", |page| state(page) == (1.0, 0.0));
}

#[test]
fn what_cannot_be_asked_is_said() {
    let folder = tempfile::tempdir().unwrap();
    // Writes its config.
    drop(command(folder.path(), "", ""));
    let nobody = ask(folder.path(), &["release"]);
    assert_eq!(nobody.status.code(), Some(3));
    assert!(text(&nobody.stderr).contains("no collector listens at"), "{nobody:?}");
    for odd in ["0", "86401", "soon"] {
        let odd = ask(folder.path(), &["release", "--for", odd]);
        assert_eq!(odd.status.code(), Some(2), "{odd:?}");
    }
    std::fs::remove_file(folder.path().join("collector.toml")).unwrap();
    assert_eq!(ask(folder.path(), &["take-back"]).status.code(), Some(2), "no config says where the spool is");
}
