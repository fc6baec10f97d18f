//! What Slurm charges of a reservation that nobody used.

use super::*;

/// Slurm charges what nobody used of a reservation to those that may use it. Of account `a` two cards were set aside from 10:00 to 12:00 and one of them held
/// from 10:00 to 10:50: 14,400 s less 3,000 s are unused. Its user has 3,000 + 11,400; 12 s more are nobody's, and an account that has no reservation
/// has nothing of it. A second user of the account can't have what the first one took.
#[test]
fn unused_time_of_a_reservation_is_told_up_to_what_the_books_have_of_it() {
    let jobs = books(
        "lab/7/db7 a u 1 2026-03-02T10:00:00 2026-03-02T10:50:00
         lab/8/db8 b v 1 2026-03-02T10:00:00 2026-03-02T11:00:00",
    );
    let head = REPORT.lines().take(5).collect::<Vec<_>>().join("\n");
    let head = head.replace("2026-11-30T11:00:00", "2026-03-02T10:00:00").replace("2026-11-30", "2026-03-02");
    let frame = utc(None);
    let told_of = |rows: &str, owner: &str, user: Option<&str>| {
        let theirs = sreport::read(&format!("{head}\n{rows}")).unwrap();
        let range = frame.asked(&theirs).flatten().unwrap();
        let slots = Slots::new(range, None, Zone::UTC, None).unwrap();
        let slot = |text: &str| slots.slot_of(at(text)).unwrap();
        let time = |seconds: i128| card_seconds(seconds).unwrap();
        let unused = |text: &str, seconds: i128| Cell {
            attempt: None,
            state: CardState::Reserved,
            reservation: Some("course".into()),
            set_aside: Some(0),
            billed_time: CardTime::ZERO,
            ..held(slot(text), time(seconds), CardTime::ZERO)
        };
        let of_b = Cell { attempt: Some(1), ..held(slot("2026-03-02T10:00:00"), time(3_600), time(3_600)) };
        let cells = vec![
            held(slot("2026-03-02T10:00:00"), time(3_000), time(3_000)),
            of_b,
            unused("2026-03-02T10:00:00", 4_200),
            unused("2026-03-02T11:00:00", 7_200),
            // Before their hours.
            unused("2026-03-02T09:00:00", 7_200),
        ];
        let reservation = crate::site::Reservation {
            cluster: "lab".into(),
            name: "course".into(),
            during: hours("2026-03-02T09:00:00", "2026-03-02T12:00:00").unwrap(),
            nodes: vec!["n1".into()],
            cards: None,
            model: None,
            org: None,
            project: Some(owner.into()),
            user: user.map(Name::from),
        };
        let reservations = vec![reservation];
        let input = ReportInput { attempts: jobs.clone(), cells, reservations, ..ReportInput::default() };
        told(&super::super::explain(&jobs, &theirs, &frame, &Billed::of(&input, None, &slots)))
    };
    let rows = "lab|a|u||gres/gpu|14400\nlab|b|v||gres/gpu|3600\n";
    let whole = ["a/u 3000 14400 reserved_unused=-11400", "b/v 3600 3600"];
    assert_eq!(told_of(rows, "a", None), whole);
    assert_eq!(told_of(rows, "a", Some("u")), whole);
    let nothing = ["a/u 3000 14400 unexplained=-11400", "b/v 3600 3600"];
    assert_eq!(told_of(rows, "b", None), nothing, "the reservation is of another account");
    assert_eq!(told_of(rows, "a", Some("w")), nothing, "or of another user");
    let more = "lab|a|u||gres/gpu|14412\nlab|b|v||gres/gpu|3600\n";
    assert_eq!(told_of(more, "a", None)[0], "a/u 3000 14412 reserved_unused=-11400 unexplained=-12");
    // A user of the account that held nothing: charged for half of it, and for 100 s that nothing tells of.
    let two = "lab|a|u||gres/gpu|8800\nlab|a|w||gres/gpu|5700\nlab|b|v||gres/gpu|3600\n";
    assert_eq!(
        told_of(two, "a", None),
        ["a/u 3000 8800 reserved_unused=-5800", "a/w 0 5700 reserved_unused=-5600 not_in_ours=-100", "b/v 3600 3600"]
    );
    // What is there three times over is that, though some of it might be the account's to pay.
    let thrice = "lab|a|u||gres/gpu|9000\nlab|b|v||gres/gpu|3600\n";
    assert_eq!(told_of(thrice, "a", None)[0], "a/u 3000 9000 counted_twice=-6000");
}
