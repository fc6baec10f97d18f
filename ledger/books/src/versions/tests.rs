use super::*;
use cardhour_domain::{CardShare, JobState};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A job in four words: `JOB state start as_of`, times in seconds, `-` for none.
fn attempt(text: &str) -> Attempt {
    let words: Vec<&str> = text.split_whitespace().collect();
    let start = words[2].parse::<i64>().ok();
    let run = start.map_or("s100".to_owned(), |start| format!("s100b{start}"));
    let state = JobState::from_name(words[1]).unwrap();
    let mut attempt = Attempt::new(AttemptKey::new("c", words[0], &run), "c".into(), words[0].into(), state);
    attempt.started_at = start.map(Timestamp::from_unix_s);
    attempt.as_of = words[3].parse().ok().map(Timestamp::from_unix_s);
    attempt.is_final = !state.is_open();
    attempt.ended_at = if attempt.is_final { attempt.as_of } else { None };
    attempt.cards = CardShare::CARD;
    attempt
}

/// Imports each text as one import, in order; gives what stands in the end.
fn stand(imports: &[Vec<Attempt>]) -> BTreeMap<String, Version> {
    let mut books: BTreeMap<String, Version> = BTreeMap::new();
    for import in imports {
        let standing: Vec<_> = books.iter().map(|(key, version)| (key.clone(), *version)).collect();
        let import: Vec<Versioned> =
            import.iter().map(|attempt| (Arc::new(attempt.clone()), Version::of(attempt))).collect();
        let change = resolve(standing.iter().map(|(key, version)| (key.as_str(), *version)), &import);
        for key in change.displaced {
            books.remove(key.as_str()).expect("what gives way stood");
        }
        for (attempt, version) in change.stand {
            assert!(books.insert(attempt.key.as_str().to_owned(), version).is_none(), "each key stands once");
        }
    }
    books
}

#[track_caller]
fn check(rows: &str, expected: &[&str]) {
    let rows: Vec<Attempt> = rows.lines().map(attempt).collect();
    let expected: BTreeMap<_, _> = expected
        .iter()
        .map(|text| attempt(text))
        .map(|attempt| (attempt.key.as_str().to_owned(), Version::of(&attempt)))
        .collect();
    let one_by_one: Vec<_> = rows.iter().map(|row| vec![row.clone()]).collect();
    let backwards: Vec<_> = one_by_one.iter().rev().cloned().collect();
    assert_eq!(stand(std::slice::from_ref(&rows)), expected, "in one import");
    assert_eq!(stand(&one_by_one), expected, "one by one");
    assert_eq!(stand(&backwards), expected, "backwards");
    assert_eq!(stand(&[rows.clone(), rows]), expected, "twice");
}

#[test]
fn the_final_beats_the_open() {
    check("1 running 200 300\n1 completed 200 250", &["1 completed 200 250"]);
}

#[test]
fn of_two_open_rows_the_later_as_of_stands() {
    check("1 running 200 300\n1 running 200 400", &["1 running 200 400"]);
}

#[test]
fn a_row_without_a_start_gives_way_to_the_started_one() {
    check("1 pending - 150\n1 running 200 300", &["1 running 200 300"]);
    check("1 cancelled - 350\n1 running 200 300", &["1 running 200 300"]);
}

/// Tasks of an array wait under one id; the last to start keeps it. Then nobody waits any more.
#[test]
fn a_range_that_waits_gives_way_to_the_task_that_keeps_its_id() {
    check("16 pending - 150\n16_9 running 200 300", &["16_9 running 200 300"]);
    check("16 pending - 150\n17_2 running 200 300", &["16 pending - 150", "17_2 running 200 300"]);
}

/// S24: with duplicates, each run of a requeued job is an attempt of its own.
#[test]
fn s24_every_run_of_a_requeued_job_stands() {
    check(
        "1 requeued 200 300\n1 node_fail 310 400\n1 completed 410 500",
        &["1 requeued 200 300", "1 node_fail 310 400", "1 completed 410 500"],
    );
}

#[test]
fn an_older_look_at_an_open_row_changes_nothing() {
    let books = [vec![attempt("1 running 200 400")], vec![attempt("1 running 200 300")]];
    assert_eq!(stand(&books), stand(&books[..1]));
}

#[test]
fn a_hash_is_as_it_was() {
    // By the blake3 package of Python over the fields written out by hand: each a 1, its length in four bytes and itself, or a 0. If it
    // changes, old ledgers no longer know their own rows.
    let hash = content_hash(&attempt("1 completed 200 250"));
    assert_eq!(hash.to_hex(), "cbcade5a34723c8d4cb6e0d4c26b6e4c");
    assert_eq!(ContentHash::from_hex(&hash.to_hex()), Some(hash));
    assert_ne!(hash, content_hash(&attempt("1 completed 200 251")));
}

fn any_row() -> impl Strategy<Value = Attempt> {
    let state = prop::sample::select(vec!["pending", "running", "completed", "failed", "requeued"]);
    (0..3u8, state, prop::option::of(200..203i64), 300..304i64).prop_map(|(job, state, start, as_of)| {
        let start = if state == "pending" { None } else { start };
        attempt(&format!("{job} {state} {} {as_of}", start.map_or("-".into(), |s| s.to_string())))
    })
}

proptest! {
    /// LED-4: once, twice, in any order and in any cut, the same attempts stand.
    #[test]
    fn any_order_and_any_cut_give_the_same_books(
        rows in prop::collection::vec(any_row(), 1..12),
        shuffled in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let expected = stand(std::slice::from_ref(&rows));
        let mut turned = rows.clone();
        turned.rotate_left(shuffled.index(rows.len()));
        turned.reverse();
        let (left, right) = turned.split_at(cut.index(rows.len()));
        prop_assert_eq!(&stand(&[left.to_vec(), right.to_vec()]), &expected);
        prop_assert_eq!(&stand(&[right.to_vec(), left.to_vec(), rows.clone()]), &expected);
    }
}

/// A correction of a finished job stands when its export is the later one, in any order; the same row, vouched for later, only says so.
#[test]
fn of_two_final_rows_the_later_as_of_stands() {
    let said = |state: &str, as_of: i64| {
        let mut row = attempt(&format!("1 {state} 200 250"));
        row.as_of = Some(Timestamp::from_unix_s(as_of));
        row
    };
    let (wrong, right, again) = (said("completed", 300), said("node_fail", 400), said("completed", 350));
    let books = |imports: &[&Attempt]| stand(&imports.iter().map(|row| vec![(*row).clone()]).collect::<Vec<_>>());
    for imports in [[&wrong, &again, &right], [&right, &wrong, &again], [&again, &right, &wrong]] {
        assert_eq!(books(&imports), books(&[&right]));
    }
    let standing = Version::of(&wrong);
    let renewal =
        resolve([(wrong.key.as_str(), standing)].into_iter(), &[(Arc::new(again.clone()), Version::of(&again))]);
    assert_eq!((renewal.renewed.len(), renewal.unchanged, renewal.lost.len()), (1, 1, 0));
    assert_eq!(renewal.stand[0].0.as_of, again.as_of);
    // A correction says something new: what it corrects is history.
    let corrected =
        resolve([(wrong.key.as_str(), standing)].into_iter(), &[(Arc::new(right.clone()), Version::of(&right))]);
    assert_eq!((corrected.renewed.len(), corrected.unchanged), (0, 0));
    assert_eq!(corrected.displaced.first(), Some(&wrong.key));
}

/// What stands in the end is no version that lost, in whatever order an export has its rows.
#[test]
fn a_row_said_again_after_another_leaves_no_history_of_itself() {
    let said = |state: &str, as_of: i64| {
        let mut row = attempt(&format!("1 {state} 200 250"));
        row.as_of = Some(Timestamp::from_unix_s(as_of));
        let version = Version::of(&row);
        (Arc::new(row), version)
    };
    let (first, other, last) = (said("completed", 300), said("node_fail", 400), said("completed", 500));
    for [a, b, c] in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let rows = [&first, &other, &last];
        let change = resolve([].into_iter(), &[rows[a].clone(), rows[b].clone(), rows[c].clone()]);
        assert_eq!(change.stand, std::slice::from_ref(&last));
        assert_eq!((change.lost.as_slice(), change.unchanged), (std::slice::from_ref(&other), 1));
    }
}
