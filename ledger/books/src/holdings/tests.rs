use super::*;
use cardhour_domain::CardTime;
use proptest::prelude::*;
use rust_decimal::Decimal;

/// A claim in words: `KEY share start end`, share in thousandths of a card or `?` for undeclared.
fn claim(text: &str) -> Claim {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = |i: usize| Timestamp::from_unix_ms(words[i].parse().unwrap());
    let declared = words[1] != "?";
    Claim {
        key: AttemptKey::new("c", words[0], "s0"),
        cluster: "c".into(),
        during: Interval::new(at(2), at(3)).unwrap(),
        share: if declared { thousandths(words[1].parse().unwrap()) } else { CardShare::CARD },
        declared,
        card_uuid: Some("GPU-1".into()),
        node: None,
        model: None,
        mig_profile: None,
        reservation: None,
        slice: None,
        source: ClaimSource::Accounting,
        is_open: false,
    }
}

fn thousandths(n: i64) -> CardShare {
    CardShare::from_decimal(Decimal::new(n, 3)).unwrap()
}

#[track_caller]
fn check(claims: &str, expected: &str) {
    let claims: Vec<Claim> = claims.lines().map(claim).collect();
    let (holdings, _) = holdings(claims.clone());
    let mut lines: Vec<String> = holdings
        .iter()
        .map(|h| {
            let share = h.share.cards() * Decimal::from(1000);
            let job = h.claim.key.job().strip_prefix("c/").unwrap();
            format!("{job} {} {} {}", share.normalize(), h.during.start().unix_ms(), h.during.end().unix_ms())
        })
        .collect();
    lines.sort();
    assert_eq!(lines.join("\n"), expected);
}

#[test]
fn shares_that_fit_are_as_declared() {
    check("a 500 0 10\nb 500 5 15", "a 500 0 10\nb 500 5 15");
}

/// S18: the next job starts before the old one has left. The later start takes what it claims, the older the rest: nothing.
#[test]
fn s18_two_holders_of_one_card_never_pass_one() {
    check("a 1000 0 10\nb 1000 8 20", "a 0 8 10\na 1000 0 8\nb 1000 8 20");
}

#[test]
fn the_rest_goes_to_the_earlier_start() {
    check("a 700 0 10\nb 600 2 6", "a 400 2 6\na 700 0 2\na 700 6 10\nb 600 2 6");
}

/// K01: four replicas of a time-sliced card, a quarter of an hour-card each: 4 × 1 h = 1 card-hour.
#[test]
fn k01_holders_without_a_share_split_the_card_evenly() {
    check("a ? 0 8\nb ? 0 8\nc ? 0 8\nd ? 0 8", "a 250 0 8\nb 250 0 8\nc 250 0 8\nd 250 0 8");
    check("a ? 0 10\nb 500 4 10\nc ? 6 10", "a 1000 0 4\na 250 6 10\na 500 4 6\nb 500 4 10\nc 250 6 10");
}

#[test]
fn what_was_cut_is_a_conflict() {
    let claims: Vec<_> = ["a 1000 0 10", "b 1000 8 20"].map(claim).into();
    let (_, cuts) = holdings(claims.clone());
    assert_eq!(cuts.len(), 1);
    assert_eq!((cuts[0].during.start().unix_ms(), cuts[0].during.end().unix_ms()), (8, 10));
    assert_eq!((cuts[0].claimed, cuts[0].given), (CardShare::CARD, CardShare::ZERO));
}

fn any_claim() -> impl Strategy<Value = Claim> {
    (0..6u8, prop::option::of(1..1001i64), 0..40i64, 1..30i64).prop_map(|(key, share, start, length)| {
        let share = share.map_or("?".into(), |s| s.to_string());
        claim(&format!("{key}x{start} {share} {start} {}", start + length))
    })
}

proptest! {
    /// LED-2, and every claim keeps its whole time, if with a smaller share.
    #[test]
    fn shares_of_a_card_never_pass_one(claims in prop::collection::vec(any_claim(), 1..9)) {
        let mut claims = claims;
        claims.sort_by(|a, b| a.key.cmp(&b.key));
        claims.dedup_by(|a, b| a.key == b.key);
        let (holdings, cuts) = holdings(claims.clone());
        for ms in 0..70 {
            let at = Timestamp::from_unix_ms(ms);
            let sum: CardShare = holdings.iter().filter(|h| h.during.contains(at)).map(|h| h.share).sum();
            prop_assert!(sum <= CardShare::CARD);
            let claimed: CardShare = claims.iter().filter(|c| c.during.contains(at) && c.declared).map(|c| c.share).sum();
            let cut: CardShare = cuts.iter().filter(|c| c.during.contains(at)).map(|c| c.claimed - c.given).sum();
            prop_assert_eq!(claimed.saturating_sub(CardShare::CARD), cut, "what passes one is in the conflicts");
        }
        for claim in &claims {
            let length: i64 = holdings.iter().filter(|h| h.claim.key == claim.key).map(|h| h.during.length_ms()).sum();
            prop_assert_eq!(length, claim.during.length_ms());
        }
    }

    #[test]
    fn the_order_of_claims_does_not_matter(claims in prop::collection::vec(any_claim(), 1..7)) {
        let mut claims = claims;
        claims.sort_by(|a, b| a.key.cmp(&b.key));
        claims.dedup_by(|a, b| a.key == b.key);
        let time = |claims: &[Claim]| {
            let mut ids: Vec<_> = holdings(claims.to_vec()).0.into_iter().map(|h| (h.id, CardTime::of(h.share, h.during))).collect();
            ids.sort();
            ids
        };
        let forwards = time(&claims);
        claims.reverse();
        prop_assert_eq!(forwards, time(&claims));
    }
}
