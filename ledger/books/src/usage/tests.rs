use super::*;
use crate::cluster::Grouping;
use crate::holdings::{Claim, ClaimSource, holdings};
use crate::site::Outage;
use cardhour_domain::{AttemptKey, CardShare};
use proptest::prelude::*;

fn claim(key: &str, parts: i64, start_ms: i64, end_ms: i64) -> Claim {
    Claim {
        key: AttemptKey::new("c", key, "s0"),
        cluster: "c".into(),
        during: Interval::new(Timestamp::from_unix_ms(start_ms), Timestamp::from_unix_ms(end_ms)).unwrap(),
        share: CardShare::from_parts(parts),
        declared: true,
        card_uuid: None,
        node: Some("n1".into()),
        model: None,
        mig_profile: None,
        reservation: None,
        slice: None,
        source: ClaimSource::Accounting,
        is_open: false,
    }
}

fn days(from: i32, to: i32) -> Interval {
    Interval::new(Timestamp::from_utc_day(from), Timestamp::from_utc_day(to)).unwrap()
}

/// K24: a job of 7 s on one card is 7 card-seconds, however short.
#[test]
fn k24_a_job_shorter_than_any_sample_is_held_for_what_it_took() {
    let (held, _) = holdings(vec![claim("a", CardShare::PARTS_PER_CARD, 1_000, 8_000)]);
    let rows = usage(&BTreeMap::new(), &held, &[days(0, 1)]).held(0, &held);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].card_time.part_ms(), i128::from(CardShare::PARTS_PER_CARD) * 7_000);
}

/// T07: 10:20 to 12:40 is 2 h 20 min, not 1 h: exact, over ten buckets.
#[test]
fn t07_seconds_are_exact_and_never_rounded_to_hours() {
    let minute = 60_000;
    let (held, _) = holdings(vec![claim("a", CardShare::PARTS_PER_CARD, 620 * minute, 760 * minute)]);
    let rows = usage(&BTreeMap::new(), &held, &[days(0, 1)]).held(0, &held);
    let sum: CardTime = rows.iter().map(|row| row.card_time).sum();
    assert_eq!(sum.card_hours().to_string(), "2.333333");
    assert_eq!(rows.len(), 10);
}

#[test]
fn an_outage_is_held_and_not_billed() {
    let outage = Outage {
        cluster: "c".into(),
        during: Interval::new(Timestamp::from_unix_ms(500_000), Timestamp::from_unix_ms(1_000_000)).unwrap(),
        nodes: vec!["n1".into()],
        cards: None,
        reason: None,
    };
    let cluster = Cluster { outages: vec![outage], ..Cluster::default() };
    let frame = Frame { grouping: Grouping::Cluster, serves_from: None, horizon: None };
    let (held, _) = holdings(vec![claim("a", CardShare::PARTS_PER_CARD, 0, 1_800_000)]);
    let rows = usage(&[("c".into(), (cluster, frame))].into(), &held, &[days(0, 1)]).held(0, &held);
    let held: CardTime = rows.iter().map(|row| row.card_time).sum();
    let billed: CardTime = rows.iter().map(|row| row.billed_time).sum();
    let card = i128::from(CardShare::PARTS_PER_CARD);
    assert_eq!((held.part_ms(), billed.part_ms()), (1_800_000 * card, 1_300_000 * card));
}

proptest! {
    /// However outages overlap, each second of one is held and not billed once. Counted second by second over half an hour.
    #[test]
    fn overlapping_outages_are_their_union(
        outages in prop::collection::vec((0i64..1_800, 1i64..900, any::<bool>()), 0..6),
        (start, length) in (0i64..1_200, 1i64..600),
    ) {
        let second = |at: i64| Timestamp::from_unix_ms(at * 1_000);
        let listed = |(from, length, is_elsewhere): &(i64, i64, bool)| Outage {
            cluster: "c".into(),
            during: Interval::new(second(*from), second(from + length)).unwrap(),
            nodes: vec![if *is_elsewhere { "n2" } else { "n1" }.into()],
            cards: None,
            reason: None,
        };
        let cluster = Cluster { outages: outages.iter().map(listed).collect(), ..Cluster::default() };
        let frame = Frame { grouping: Grouping::Cluster, serves_from: None, horizon: None };
        let (held, _) = holdings(vec![claim("a", CardShare::PARTS_PER_CARD, start * 1_000, (start + length) * 1_000)]);
        let rows = usage(&[("c".into(), (cluster, frame))].into(), &held, &[days(0, 1)]).held(0, &held);
        let billed: CardTime = rows.iter().map(|row| row.billed_time).sum();
        let is_out = |at: &i64| outages.iter().any(|(from, length, elsewhere)| !elsewhere && (*from..from + length).contains(at));
        let seconds = (start..start + length).filter(|at| !is_out(at)).count();
        prop_assert_eq!(billed.part_ms(), seconds as i128 * 1_000 * i128::from(CardShare::PARTS_PER_CARD));
    }

    /// LED-7: buckets cut a holding and lose nothing; days worked out alone are the days worked out together.
    #[test]
    fn buckets_keep_every_part_and_days_stand_alone(
        jobs in prop::collection::vec((1i64..100_000_000, 0i64..200_000_000, 1i64..150_000_000), 1..8),
    ) {
        let claims: Vec<Claim> = jobs.iter().enumerate().map(|(i, (parts, start, length))| claim(&i.to_string(), *parts, *start, start + length)).collect();
        let (held, _) = holdings(claims.clone());
        let whole = usage(&BTreeMap::new(), &held, &[days(0, 5)]);
        for (i, claim) in claims.iter().enumerate() {
            let sum: CardTime = (0..5).flat_map(|day| whole.held(day, &held)).filter(|r| r.holding == i as u32).map(|r| r.card_time).sum();
            prop_assert_eq!(sum, CardTime::of(claim.share, claim.during));
        }
        for day in 0..5 {
            let alone = usage(&BTreeMap::new(), &held, &[days(day, day + 1)]);
            prop_assert_eq!(&alone.days[&day], &whole.days[&day]);
            prop_assert_eq!(alone.held(day, &held), whole.held(day, &held));
        }
    }
}
