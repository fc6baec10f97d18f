use super::*;
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

fn range(start: &str, end: &str) -> Interval {
    Interval::new(at(start), at(end)).unwrap()
}

fn zone(name: &str) -> Zone {
    Zone::parse(name).unwrap()
}

fn book(zone: &str) -> PriceBook {
    let text = format!(
        r#"
        currency = "USD"
        zone = "{zone}"
        window = [
            {{ name = "off-peak", days = "mon-sun", from = "22:00", to = "08:00" }},
            {{ name = "noon", days = "sat,sun", from = "12:00", to = "13:30" }},
        ]
        price = [
            {{ from = "2017-01-01", per_card_hour = "1", off-peak = "0.5" }},
            {{ from = "2017-11-15T08:00", per_card_hour = "2", off-peak = "0.5" }},
        ]
        "#
    );
    PriceBook::parse(&text).unwrap().unwrap()
}

fn buckets_of(slots: &Slots, matches: impl Fn(&Slot) -> bool) -> usize {
    slots.table.iter().filter(|slot| matches(slots.slot(**slot))).count()
}

#[test]
fn a_plain_month_without_prices_is_one_slot() {
    let slots = Slots::new(range("2017-11-01T00:00:00Z", "2017-12-01T00:00:00Z"), None, Zone::UTC, None).unwrap();
    assert_eq!(slots.all().len(), 1);
    assert_eq!(slots.table.len(), 30 * 96);
    assert!(!slots.is_partial());
    assert_eq!(slots.slot_of(at("2017-11-30T23:45:00Z")), Some(0));
    assert_eq!(slots.slot_of(at("2017-12-01T00:00:00Z")), None);
    assert_eq!(slots.slot_of(at("2017-10-31T23:45:00Z")), None);
}

/// By hand, New York, 2017-11: 30 days and an hour (721 h). Off-peak: from midnight of the 1st to 08:00 (8 h), 28 nights
/// of 10 h and that of the 4th of 11 h, and 2 h of the 30th: 301 h. Noon: the 4th, 5th, 11th, 12th, 18th, 19th, 25th and
/// 26th are Saturdays and Sundays, 8 × 1.5 h = 12 h.
#[test]
fn a_night_of_eleven_hours_is_off_peak_for_eleven_hours() {
    let zone = zone("America/New_York");
    let book = book("America/New_York");
    let month = Month::parse("2017-11").unwrap().interval(zone);
    let slots = Slots::new(month, Some(&book), zone, None).unwrap();
    assert_eq!(slots.table.len(), 721 * 4);
    assert_eq!(buckets_of(&slots, |slot| slot.window == Some(0)), 301 * 4);
    assert_eq!(buckets_of(&slots, |slot| slot.window == Some(1)), 12 * 4);
    // Two prices × (no window, off-peak, noon).
    assert_eq!(slots.all().len(), 6);
    // 2017-11-15 08:00 at -05:00 is 13:00Z; the night window ends with the old price.
    let before = slots.slot(slots.slot_of(at("2017-11-15T12:45:00Z")).unwrap());
    let after = slots.slot(slots.slot_of(at("2017-11-15T13:00:00Z")).unwrap());
    assert_eq!((before.window, before.effective_at), (Some(0), Some(at("2017-01-01T05:00:00Z"))));
    assert_eq!((after.window, after.effective_at), (None, Some(at("2017-11-15T13:00:00Z"))));
}

#[test]
fn a_range_inside_a_month_covers_the_month_and_tells_what_to_show() {
    let slots = Slots::new(range("2017-11-05T00:00:00Z", "2017-12-03T12:00:00Z"), None, Zone::UTC, None).unwrap();
    assert_eq!(slots.covers(), range("2017-11-01T00:00:00Z", "2018-01-01T00:00:00Z"));
    assert!(slots.is_partial());
    assert_eq!(buckets_of(&slots, |slot| slot.era == Era::Before), 4 * 96);
    assert_eq!(buckets_of(&slots, |slot| slot.era == Era::Shown), 28 * 96 + 48);
    assert_eq!(buckets_of(&slots, |slot| slot.era == Era::After), 28 * 96 + 48);
}

#[test]
fn months_of_a_view_in_another_zone_cut_the_billing_month() {
    let view = ViewCut { zone: zone("Asia/Shanghai"), by_day: true, by_month: true };
    let slots = Slots::new(range("2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"), None, Zone::UTC, Some(view)).unwrap();
    // The last 8 hours of March in UTC are 1 April in Shanghai.
    assert_eq!(buckets_of(&slots, |slot| slot.view_month == Month::new(2026, 4)), 32);
    assert_eq!(buckets_of(&slots, |slot| slot.view_day == NaiveDate::from_ymd_opt(2026, 3, 1)), 16 * 4);
    assert_eq!(slots.all().len(), 32);
}

#[test]
fn a_range_off_the_quarter_hour_or_of_a_thousand_years_is_refused() {
    let new = |range| Slots::new(range, None, Zone::UTC, None).err();
    assert_eq!(
        new(range("2026-03-01T00:07:00Z", "2026-04-01T00:00:00Z")),
        Some(SlotsError::NotAQuarterHour(at("2026-03-01T00:07:00Z")))
    );
    assert!(matches!(new(range("1026-03-01T00:00:00Z", "2026-04-01T00:00:00Z")), Some(SlotsError::TooLong(_))));
    // Source: IANA tz, africa: Monrovia kept -0:44:30 until 1972.
    let monrovia =
        Slots::new(range("1970-01-01T00:00:00Z", "1970-02-01T00:00:00Z"), None, zone("Africa/Monrovia"), None);
    assert!(matches!(monrovia.err(), Some(SlotsError::Zone(_))));
}

/// Source: IANA tz, australasia: Samoa left out 2011-12-30 when it went from -10:00 to +14:00; the last 14 hours of that
/// December in UTC are 1 January there.
#[test]
fn a_day_that_was_left_out_has_no_slot() {
    let view = ViewCut { zone: zone("Pacific/Apia"), by_day: true, by_month: false };
    let slots = Slots::new(range("2011-12-01T00:00:00Z", "2012-01-01T00:00:00Z"), None, Zone::UTC, Some(view)).unwrap();
    let day = |day| NaiveDate::from_ymd_opt(2011, 12, day);
    let new_year = NaiveDate::from_ymd_opt(2012, 1, 1);
    assert_eq!(buckets_of(&slots, |slot| slot.view_day == day(30)), 0);
    assert_eq!(buckets_of(&slots, |slot| slot.view_day == day(31)), 96);
    assert_eq!(buckets_of(&slots, |slot| slot.view_day == new_year), 14 * 4);
    assert_eq!(buckets_of(&slots, |slot| slot.view_day == day(29)), 96);
}

proptest! {
    /// Another road: each bucket asked by itself, by its local time, what it is.
    #[test]
    fn every_bucket_is_in_the_slot_that_its_local_time_says(
        name in prop::sample::select(vec!["UTC", "America/New_York", "Asia/Kathmandu", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Shanghai"]),
        view in prop::sample::select(vec!["UTC", "Europe/Berlin", "Pacific/Apia", "Asia/Kathmandu"]),
        first in 0i64..300, days in 1i64..60,
    ) {
        let (billing, view) = (zone(name), zone(view));
        let book = book(name);
        let start = at("2017-08-01T00:00:00Z").unix_ms() + first * 86_400_000;
        let range = Interval::new(Timestamp::from_unix_ms(start), Timestamp::from_unix_ms(start + days * 86_400_000)).unwrap();
        let slots = Slots::new(range, Some(&book), billing, Some(ViewCut { zone: view, by_day: true, by_month: true })).unwrap();
        for (i, slot) in slots.table.iter().enumerate() {
            let bucket = Timestamp::from_unix_ms(slots.covers().start().unix_ms() + i as i64 * BUCKET_MS);
            let slot = slots.slot(*slot);
            prop_assert_eq!(slots.slot_of(bucket).map(|i| slots.slot(i)), Some(slot));
            prop_assert_eq!(Some(slot.month), billing.month(bucket));
            prop_assert_eq!(slot.view_month, view.month(bucket));
            prop_assert_eq!(slot.view_day, view.date(bucket));
            prop_assert_eq!(slot.effective_at, book.edges().iter().copied().rfind(|edge| *edge <= bucket));
            prop_assert_eq!(slot.era == Era::Shown, range.contains(bucket));
            prop_assert!(slot.span.contains(bucket));
            let inside = book.windows().iter().position(|window| {
                let date = billing.date(bucket).unwrap();
                [date.pred_opt().unwrap(), date].iter().any(|date| window.on(*date, billing).unwrap().is_some_and(|on| on.contains(bucket)))
            });
            prop_assert_eq!(slot.window, inside);
        }
    }
}
