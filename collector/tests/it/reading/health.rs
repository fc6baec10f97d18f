//! Links to other cards, and pages of memory that were retired.

use super::story::{Story, card, play, stage};
use cardhour_collector::probe::NvLinksState;
use cardhour_domain::{EventKind, Gap, Reading};

/// What isn't there on this card.
fn none<T>() -> Reading<T> {
    Reading::Missing(Gap::NotSupported)
}

fn links(story: &Story, s: i64) -> NvLinksState {
    story.reading(&card(0), s).state.health.nvlinks
}

fn told(story: &Story) -> Vec<(Option<i64>, Option<&str>)> {
    let health = story.events.iter().filter(|event| event.kind == EventKind::Health);
    health.map(|event| (event.number, event.detail.as_deref())).collect()
}

const DOWN: &str = "
[[card.health]]
at_s = 100
nvlink_replay = 2
[[card.health]]
at_s = 200
nvlinks_down = [3, 4]
nvlink_crc_flit = 7
nvlink_crc_data = 11
nvlink_replay = 5
nvlink_recovery = 1
nvlink_ecc_data = 13
[[card.health]]
at_s = 400
nvlinks_down = [4]
nvlink_replay = 5
";

#[test]
fn a_link_that_goes_down_is_seen_within_a_minute_and_told_once() {
    let story = play(&stage(&format!("[[card]]\npreset = \"a100\"\n{DOWN}")), 600);
    // An A100 has twelve.
    let of = |s| (links(&story, s).up, links(&story, s).down);
    assert_eq!(of(195), (Reading::Seen(12), Reading::Seen(0)));
    assert_eq!(of(270), (Reading::Seen(10), Reading::Seen(2)));
    assert_eq!(of(600), (Reading::Seen(11), Reading::Seen(1)));
    assert_eq!(told(&story), [(Some(2), Some("links to other cards went down"))]);
}

#[test]
fn errors_of_links_are_sums_before_hopper_and_added_up_from_there_on() {
    let of = |preset: &str| links(&play(&stage(&format!("[[card]]\npreset = \"{preset}\"\n{DOWN}")), 300), 285);
    let ampere = NvLinksState {
        up: Reading::Seen(10),
        down: Reading::Seen(2),
        crc_flit_errors_total: Reading::Seen(7),
        crc_data_errors_total: Reading::Seen(11),
        crc_errors_total: none(),
        replays_total: Reading::Seen(5),
        recoveries_total: Reading::Seen(1),
        ecc_data_errors_total: Reading::Seen(13),
    };
    assert_eq!(of("a100"), ampere);
    let volta = NvLinksState { up: Reading::Seen(4), ecc_data_errors_total: none(), ..ampere };
    assert_eq!(of("v100"), volta);
    let hopper = NvLinksState {
        up: Reading::Seen(16),
        down: Reading::Seen(2),
        crc_flit_errors_total: none(),
        crc_data_errors_total: none(),
        crc_errors_total: Reading::Seen(7),
        ecc_data_errors_total: none(),
        ..ampere
    };
    assert_eq!(of("h100"), hopper);
}

#[test]
fn a_card_without_links_is_asked_once_and_others_once_a_minute() {
    let calls = |preset: &str| {
        let stage = stage(&format!("[[card]]\npreset = \"{preset}\"\n"));
        play(&stage, 600);
        stage.calls("nvmlDeviceGetNvLinkState")
    };
    assert_eq!(calls("l40s"), 1);
    // At the start and each minute, as many as the card has.
    for (preset, links) in [("v100", 6), ("h100", 18)] {
        assert!((9 * links..=11 * links).contains(&calls(preset)), "{preset}: {}", calls(preset));
    }
}

/// Old drivers don't count links: those that there are still answer.
#[test]
fn links_are_found_where_the_driver_does_not_count_them() {
    let story = play(&stage("[[card]]\npreset = \"v100\"\n[[fault]]\nfield = 91\nrc = 3\n"), 120);
    assert_eq!((links(&story, 105).up, links(&story, 105).down), (Reading::Seen(6), Reading::Seen(0)));
}

#[test]
fn a_link_that_cannot_be_asked_is_neither_up_nor_down() {
    let fault = "[[fault]]\nat_s = 100\nuntil_s = 220\ncall = \"nvmlDeviceGetNvLinkState\"\nrc = 999\nafter_calls = 2\nevery = 12\n";
    let story = play(&stage(&format!("[[card]]\npreset = \"a100\"\n{fault}")), 600);
    assert_eq!(
        (links(&story, 195).up, links(&story, 195).down),
        (Reading::Missing(Gap::DriverError), Reading::Missing(Gap::DriverError))
    );
    assert_eq!(links(&story, 600).up, Reading::Seen(12));
    assert_eq!(told(&story), []);
}

#[test]
fn pages_are_retired_before_ampere_where_no_rows_are_replaced() {
    let health = "[[card.health]]\nat_s = 100\nretired_single_bit = 3\nretired_double_bit = 1\n[[card.health]]\nat_s = 200\nretired_single_bit = 3\nretired_double_bit = 2\nretire_pending = 1\nremap_pending = 1\n";
    for preset in ["v100", "t4"] {
        let story = play(&stage(&format!("[[card]]\npreset = \"{preset}\"\n{health}")), 400);
        let of = |s| story.reading(&card(0), s).state.health;
        let [before, after] = [of(195), of(390)];
        assert_eq!(
            (before.retired_single_bit_pages, before.retired_double_bit_pages),
            (Reading::Seen(3), Reading::Seen(1))
        );
        assert_eq!((before.is_retire_pending, after.is_retire_pending), (Reading::Seen(false), Reading::Seen(true)));
        assert_eq!(after.retired_double_bit_pages, Reading::Seen(2));
        assert_eq!((after.remapped_correctable_rows, after.is_remap_pending), (none(), none()));
        assert_eq!(told(&story), [(None, Some("pages of memory wait to be retired: reset the card"))]);
    }
    let story = play(&stage(&format!("[[card]]\npreset = \"a100\"\n{health}")), 400);
    let after = story.reading(&card(0), 390).state.health;
    assert_eq!((after.retired_single_bit_pages, after.is_retire_pending), (none(), none()));
    assert_eq!(after.is_remap_pending, Reading::Seen(true));
}
