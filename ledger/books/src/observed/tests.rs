use super::*;
use crate::holdings::holdings;
use cardhour_domain::HolderSource;
use proptest::prelude::*;

pub(crate) fn s(seconds: i64) -> Timestamp {
    Timestamp::from_unix_s(seconds)
}

pub(crate) fn range(from: i64, to: i64) -> Interval {
    Interval::new(s(from), s(to)).unwrap()
}

/// `JOB RUN DEVICE FROM TO`, seconds; a device `G1/S1` is slice S1 of card G1, a third of it.
pub(crate) fn seen(text: &str) -> Observation {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [job, run, device, from, to] = words[..] else { panic!("{text}") };
    let (card, slice) = device.split_once('/').unwrap_or((device, device));
    let whole = card == slice;
    Observation {
        during: range(from.parse().unwrap(), to.parse().unwrap()),
        node: "n1".into(),
        card_uuid: card.into(),
        device_uuid: slice.into(),
        mig_profile: None,
        share: Some(if whole { CardShare::CARD } else { CardShare::from_fraction(1, 3).unwrap() }),
        source: HolderSource::PrologMap,
        holder: Holder {
            kind: HolderKind::SlurmJob,
            cluster: "lab".into(),
            job_id: job.into(),
            shown_id: None,
            run: run.into(),
            started_at: None,
        },
        owner: Owner::default(),
    }
}

/// `JOB RUN CARDS FROM TO`, seconds; an open one has `+` after its end.
pub(crate) fn record(text: &str) -> Claim {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [job, run, cards, from, to] = words[..] else { panic!("{text}") };
    Claim {
        key: AttemptKey::new("lab", job, run),
        cluster: "lab".into(),
        during: range(from.parse().unwrap(), to.trim_end_matches('+').parse().unwrap()),
        share: CardShare::from_cards(cards.parse().unwrap()).unwrap(),
        declared: true,
        card_uuid: None,
        node: Some("n1".into()),
        model: None,
        mig_profile: None,
        reservation: None,
        slice: None,
        source: ClaimSource::Accounting,
        is_open: to.ends_with('+'),
    }
}

pub(crate) fn lines<T>(text: &str, of: impl Fn(&str) -> T) -> Vec<T> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(of).collect()
}

pub(crate) fn world(observations: &str, watched: &[(i64, i64)]) -> Seen {
    let watch = |&(from, to): &(i64, i64), card: &str| Watch {
        during: range(from, to),
        node: "n1".into(),
        cluster: "lab".into(),
        card_uuid: card.into(),
    };
    let watches = watched.iter().flat_map(|w| ["G1", "G2", "G3"].map(|card| watch(w, card))).collect();
    Seen { observations: lines(observations, seen), watches, devices: Vec::new() }
}

/// Claims as `KEY DEVICE SHARE FROM TO SOURCE`, in order of text.
fn show(joined: &Joined) -> String {
    let claim = |c: &Claim| {
        format!(
            "{} {} {} {} {} {}",
            c.key.as_str().strip_prefix("lab/").unwrap(),
            c.device_uuid().map_or("-", |d| d.as_str()),
            c.share.cards().normalize(),
            c.during.start().unix_ms() / 1000,
            c.during.end().unix_ms() / 1000,
            c.source.name()
        )
    };
    let mut lines: Vec<String> = joined.claims.iter().map(claim).collect();
    lines.sort();
    lines.join("\n")
}

#[track_caller]
fn check(records: &str, seen: &Seen, expected: &str) -> Joined {
    let joined = join(lines(records, record), seen);
    let expected: Vec<&str> = lines(expected, |line| line.trim().to_owned().leak() as &str);
    assert_eq!(show(&joined), expected.join("\n"));
    joined
}

#[test]
fn records_decide_the_time_and_nodes_the_cards() {
    // Allocated from 100 to 700; the node looked every 15 seconds and so saw it a little late, and short of its end.
    let seen = world("7 b100 G1 105 690\n7 b100 G3 105 690", &[(0, 1000)]);
    let joined = check("7 db1 2 100 700", &seen, "7/db1 G1 1 100 700 accounting\n7/db1 G3 1 100 700 accounting");
    assert!(joined.differences.is_empty() && joined.attempts.is_empty());
}

/// Four allocated, one has a process and a source that sees no more: three are held without a name.
#[test]
fn s16_cards_that_no_node_saw_stay_held() {
    let seen = world("7 b100 G1 105 690", &[(0, 1000)]);
    check("7 db1 4 100 700", &seen, "7/db1 - 3 100 700 accounting\n7/db1 G1 1 100 700 accounting");
}

#[test]
fn seconds_between_the_end_and_the_release_are_releasing() {
    let seen = world("7 b100 G1 105 730", &[(0, 1000)]);
    check("7 db1 1 100 700", &seen, "7/db1 G1 1 100 700 accounting\n7/db1 G1 1 700 730 releasing");
}

/// The same of a record that names its card: only what was seen on that card is being released.
#[test]
fn a_record_that_names_its_card_is_released_as_any() {
    let seen = world("7 b100 G1 105 730\n7 b100 G2 705 800", &[(0, 1000)]);
    let named = |text: &str| Claim { card_uuid: Some("G1".into()), ..record(text) };
    let joined = join(vec![named("7 db1 1 100 700")], &seen);
    assert_eq!(show(&joined), "7/db1 G1 1 100 700 accounting\n7/db1 G1 1 700 730 releasing");
}

#[test]
fn an_open_attempt_is_held_to_its_last_proof_of_life() {
    let seen = world("7 b100 G1 105 900", &[(0, 1000)]);
    check("7 db1 2 100 700+", &seen, "7/db1 - 1 100 900 accounting\n7/db1 G1 1 100 900 accounting");
}

/// A requeued job keeps its id: each run has the cards it was seen on, and the first is released no later than the second starts.
#[test]
fn runs_of_a_requeued_job_have_their_own_cards() {
    let seen = world("7 b100 G1 105 410\n7 b405 G2 405 800", &[(0, 1000)]);
    check(
        "7 db1 1 100 400\n7 db2 1 405 800",
        &seen,
        "7/db1 G1 1 100 400 accounting\n7/db1 G1 1 400 405 releasing\n7/db2 G2 1 405 800 accounting",
    );
}

/// S09, S10: ids come round again. An old record with the same number is another job.
#[test]
fn s09_an_old_job_with_the_same_id_is_another() {
    let seen = world("7 b90000 G1 90000 90100", &[(0, 100_000)]);
    check("7 db1 1 100 400", &seen, "7/b90000 G1 1 90000 90100 prolog_map\n7/db1 - 1 100 400 accounting");
}

#[test]
fn what_only_nodes_know_is_an_attempt_of_its_own() {
    let seen = world("8 b50 G1/S1 60 300\n8 b50 G1/S2 60 300", &[(0, 1000)]);
    let joined = check("", &seen, "8/b50 S1 0.333333 60 300 prolog_map\n8/b50 S2 0.333333 60 300 prolog_map");
    let [attempt] = &joined.attempts[..] else { panic!("{:?}", joined.attempts) };
    assert!(attempt.is_over && attempt.during == range(60, 300));
    assert_eq!(attempt.devices.len(), 2);
    assert_eq!(attempt.cards, CardShare::from_parts(2 * CardShare::PARTS_PER_CARD / 3));
}

/// Looks at a slice don't name its profile, its row among the devices does: without it no price of a profile would count for what nodes alone know, nor
/// for a record that they join with a slice.
#[test]
fn a_holding_of_a_slice_has_the_profile_that_its_node_told_once() {
    let mut seen = world("8 b50 G1/S1 60 300\n7 b50 G1/S2 60 300", &[(0, 1000)]);
    seen.devices = ["S1", "S2"].map(slice).to_vec();
    let joined = join(lines("7 db1 1 60 300", record), &seen);
    let of_slices: Vec<Option<&str>> =
        joined.claims.iter().filter(|c| c.slice.is_some()).map(|c| c.mig_profile.as_deref()).collect();
    assert_eq!(of_slices, [Some("2g.20gb"); 2]);
}

fn slice(uuid: &str) -> SeenDevice {
    SeenDevice {
        at: s(0),
        node: "n1".into(),
        cluster: "lab".into(),
        card_uuid: "G1".into(),
        device_uuid: uuid.into(),
        pci_bus_id: None,
        model: None,
        memory_bytes: None,
        driver: None,
        mig_mode: None,
        mig_profile: Some("2g.20gb".into()),
        share: CardShare::from_fraction(1, 3).unwrap(),
        power_limit_mw: None,
    }
}

/// S27, and a collector that was restarted in the middle of a job: while nobody looks, nothing says that it left.
#[test]
fn s27_a_hole_in_which_nobody_looked_does_not_end_a_holding() {
    let seen = world("8 b50 G1 60 300\n8 b50 G1 600 900", &[(0, 300), (600, 1000)]);
    check("", &seen, "8/b50 G1 1 60 900 prolog_map");
}

#[test]
fn a_hole_in_which_somebody_looked_ends_a_holding() {
    let seen = world("8 b50 G1 60 300\n8 b50 G1 600 900", &[(0, 1000)]);
    check("", &seen, "8/b50 G1 1 60 300 prolog_map\n8/b50 G1 1 600 900 prolog_map");
}

#[test]
fn a_job_on_more_cards_than_its_record_has_is_said() {
    let seen = world("7 b100 G1 105 690\n7 b100 G2 105 390", &[(0, 1000)]);
    let joined = check("7 db1 1 100 700", &seen, "7/db1 G1 1 100 700 accounting");
    let [difference] = &joined.differences[..] else { panic!("{:?}", joined.differences) };
    assert_eq!((difference.kind, &*difference.card_uuid), (DifferenceKind::MoreCards, "G2"));
}

/// K08: the device's old pod is listed yet, and its new one already. Whoever records speak for comes first.
#[test]
fn k08_two_holders_of_one_card_never_pass_it() {
    let seen = world("7 b100 G1 100 720\n8 b700 G1 700 900", &[(0, 1000)]);
    let joined = join(lines("7 db1 1 100 700", record), &seen);
    let (holdings, _) = holdings(joined.claims);
    let held = |at: i64| -> CardShare { holdings.iter().filter(|h| h.during.contains(s(at))).map(|h| h.share).sum() };
    assert_eq!([held(650), held(710), held(800)], [CardShare::CARD; 3]);
    // From 700 on the next holder has it, though the first is still being released.
    let of_first = holdings.iter().filter(|h| &*h.claim.key.to_string() == "lab/7/db1" && !h.share.is_zero());
    assert_eq!(of_first.map(|h| h.during.end()).max(), Some(s(700)));
}

proptest! {
    /// LED-4: rows in any order, and cut anywhere into rows that touch, are the same stretches.
    #[test]
    fn order_and_cuts_of_rows_do_not_matter(
        parts in prop::collection::vec((0i64..3, 0i64..40, 1i64..20, 1i64..3), 1..8),
        looks in prop::collection::vec((0i64..60, 1i64..30), 0..4),
        cut in 1i64..19,
        order in any::<u64>(),
    ) {
        let text = |(job, from, length, card): &(i64, i64, i64, i64)| format!("{job} b{job} G{card} {from} {}", from + length);
        let whole: Vec<Observation> = parts.iter().map(|p| seen(&text(p))).collect();
        let mut cut_up: Vec<Observation> = whole.iter().flat_map(|o| {
            let middle = Timestamp::from_unix_ms(o.during.start().unix_ms() + cut * 1000);
            let pieces = [Interval::new(o.during.start(), middle.min(o.during.end())), Interval::new(middle, o.during.end())];
            pieces.into_iter().flatten().map(|during| Observation { during, ..o.clone() }).collect::<Vec<_>>()
        }).collect();
        let n = cut_up.len();
        cut_up.rotate_left((order as usize) % n);
        if order % 2 == 0 {
            cut_up.reverse();
        }
        let watched: Vec<(i64, i64)> = looks.iter().map(|(from, length)| (*from, from + length)).collect();
        let mut world = world("", &watched);
        world.observations = whole;
        let one = join(vec![record("1 db1 2 5 30")], &world);
        world.observations = cut_up;
        prop_assert_eq!(join(vec![record("1 db1 2 5 30")], &world), one);
    }
}
