use super::*;

const BOOK: &str = r#"
currency = "CNY"
zone = "Asia/Shanghai"

[[window]]
name = "off-peak"
days = "mon-sun"
from = "22:00"
to = "08:00"

[[price]]
from = "2026-01-01"
model = "NVIDIA H200*"
per_card_hour = "18.50"
coefficient = "2.4"
off-peak = "0.6"

[[price]]
from = "2026-01-01"
model = "*"
per_card_hour = "6.00"
coefficient = "1"
"#;

fn book(text: &str) -> PriceBook {
    PriceBook::parse(text).unwrap_or_else(|faults| panic!("{faults}")).unwrap()
}

/// A book of the given `[[price]]` bodies.
fn book_of(prices: &[&str]) -> PriceBook {
    let mut text = "currency = \"CNY\"\nzone = \"Asia/Shanghai\"\n".to_owned();
    for price in prices {
        text += &format!("[[price]]\n{price}\n");
    }
    book(&text)
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

/// The place of the price that wins, counted from 1.
#[track_caller]
fn check(book: &PriceBook, what: Priced<'_>, when: &str, expected: Option<usize>) {
    assert_eq!(book.find(&what, at(when)).map(|i| i + 1), expected, "{what:?} at {when}");
}

#[track_caller]
fn check_faults(text: &str, expected: &[&str]) {
    let faults = PriceBook::parse(text).expect_err("a faulty book");
    let faults: Vec<String> = faults.0.iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for (fault, expected) in faults.iter().zip(expected) {
        assert!(fault.starts_with(expected), "{fault:?} should begin with {expected:?}");
    }
}

#[test]
fn the_book_of_the_design_is_read_as_it_stands() {
    let book = book(BOOK);
    assert_eq!(book.currency().code(), "CNY");
    assert_eq!(book.zone().name(), "Asia/Shanghai");
    assert_eq!(book.windows()[0].days, [true; 7]);
    let h200 = Priced { model: Some("nvidia h200 NVL"), ..Priced::default() };
    // 2026-01-01 in Shanghai begins at 16:00 of the day before in UTC.
    check(&book, h200, "2025-12-31T15:45:00Z", None);
    check(&book, h200, "2025-12-31T16:00:00Z", Some(1));
    check(&book, Priced { model: Some("A100"), ..Priced::default() }, "2026-02-01T00:00:00Z", Some(2));
    check(&book, Priced::default(), "2026-02-01T00:00:00Z", Some(2));
    assert_eq!(book.rate(0, Some(0)).factor.to_string(), "0.6");
    assert_eq!(book.rate(1, Some(0)).factor, Decimal::ONE);
    assert_eq!(book.list_rate(0).per_card_hour.to_string(), "18.50");
    assert_eq!(
        book.price_text(0),
        "price 1: 18.50 CNY per card-hour from 2026-01-01 00:00 Asia/Shanghai, model nvidia h200*, coefficient 2.4, off-peak × 0.6"
    );
}

#[test]
fn a_later_date_replaces_the_same_selectors_and_no_others() {
    let book = book_of(&[
        "from = \"2026-03-15\"\nmodel = \"H*\"\nper_card_hour = \"20\"",
        "from = \"2026-01-01\"\nmodel = \"h*\"\nper_card_hour = \"10\"",
        "from = \"2026-06-01\"\nper_card_hour = \"1\"",
    ]);
    let h200 = Priced { model: Some("H200"), ..Priced::default() };
    check(&book, h200, "2026-03-14T15:45:00Z", Some(2));
    check(&book, h200, "2026-03-14T16:00:00Z", Some(1));
    check(&book, h200, "2026-07-01T00:00:00Z", Some(1));
    check(&book, Priced::default(), "2026-03-14T16:00:00Z", None);
}

#[test]
fn the_most_specific_price_wins_then_the_later_line() {
    let book = book_of(&[
        "from = \"2026-01-01\"\nmodel = \"H200\"\nqueue = \"night\"\nper_card_hour = \"1\"",
        "from = \"2026-01-01\"\nmodel = \"H200\"\nper_card_hour = \"2\"",
        "from = \"2026-01-01\"\nmodel = \"H2*\"\nper_card_hour = \"3\"",
        "from = \"2026-01-01\"\nmodel = \"H*\"\nper_card_hour = \"4\"",
        "from = \"2026-01-01\"\norg = \"H2*\"\nper_card_hour = \"5\"",
        "from = \"2026-01-01\"\nper_card_hour = \"6\"",
        "from = \"2026-01-01\"\nmodel = \"*\"\nqueue = \"*\"\nper_card_hour = \"7\"",
    ]);
    let when = "2026-02-01T00:00:00Z";
    let model = |model| Priced { model: Some(model), ..Priced::default() };
    check(&book, Priced { queue: Some("night"), ..model("H200") }, when, Some(1));
    check(&book, model("h200"), when, Some(2));
    check(&book, model("H200 NVL"), when, Some(3));
    check(&book, model("H100"), when, Some(4));
    // `model = "H2*"` and `org = "H2*"` say as much: the later line.
    check(&book, Priced { org: Some("H2 Energy"), ..model("H200 NVL") }, when, Some(5));
    check(&book, model("A100"), when, Some(7));
}

#[test]
fn a_slice_and_a_part_of_a_card_can_have_prices_of_their_own() {
    let book = book_of(&[
        "from = \"2026-01-01\"\nmig_profile = \"?g.*\"\nper_card_hour = \"1\"",
        "from = \"2026-01-01\"\nshare = \"0.*\"\nper_card_hour = \"2\"",
        "from = \"2026-01-01\"\nshare = \"1\"\nper_card_hour = \"3\"",
    ]);
    let when = "2026-02-01T00:00:00Z";
    check(&book, Priced { mig_profile: Some("1g.10gb"), ..Priced::default() }, when, Some(1));
    check(&book, Priced { share: Some("0.5"), ..Priced::default() }, when, Some(2));
    check(&book, Priced { share: Some("1"), ..Priced::default() }, when, Some(3));
}

#[test]
fn every_fault_is_told_at_once_with_its_line_and_key() {
    let text = r#"currency = "CYN"
zone = "Asia/Atlantis"
colour = "red"
[[window]]
name = "night"
days = "monday"
from = "22:00"
to = "26:00"
[[price]]
from = "2026-13-01"
per_card_hour = "-1"
midday = "0.5"
[[price]]
from = "2026-01-01"
model = ""
per_card_hour = "1.0000000000001"
coefficient = "abc"
[[price]]
"#;
    check_faults(
        text,
        &[
            "line 1: currency: \"CYN\" is not an ISO 4217",
            "line 2: zone: \"Asia/Atlantis\" is not an IANA",
            "line 3: colour: unknown key; known here are currency, zone, window, price",
            "line 6: window[1].days: \"monday\" is not days",
            "line 8: window[1].to: \"26:00\" is not a time",
            "line 10: price[1].from: \"2026-13-01\" is not a date",
            "line 11: price[1].per_card_hour: -1 is below zero",
            "line 12: price[1].midday: no [[window]] has this name",
            "line 15: price[2].model: an empty text",
            "line 16: price[2].per_card_hour: 1.0000000000001 has more than 12 decimals",
            "line 17: price[2].coefficient: \"abc\" is not a number",
            "line 18: price[3].from: is missing",
            "line 18: price[3].per_card_hour: is missing",
        ],
    );
}

#[test]
fn an_edge_off_the_quarter_hour_is_refused_with_the_instant_it_is() {
    let text = BOOK
        .replace("to = \"08:00\"", "to = \"08:10\"")
        .replace("from = \"2026-01-01\"\nmodel = \"*\"", "from = \"2026-01-01T00:05\"");
    check_faults(
        &text,
        &[
            "line 9: window[1].to: 2026-01-01 08:10:00 in Asia/Shanghai is 2026-01-01T00:10:00Z, which is not on a quarter hour",
            "line 19: price[2].from: 2026-01-01 00:05:00 in Asia/Shanghai is 2025-12-31T16:05:00Z, which is not on a quarter",
        ],
    );
}

/// Kathmandu is at +05:45: its midnight is 18:15Z, a quarter hour.
#[test]
fn an_offset_of_45_minutes_is_on_the_quarter_hour() {
    let book = book(&BOOK.replace("Asia/Shanghai", "Asia/Kathmandu"));
    assert_eq!(book.edges(), [at("2025-12-31T18:15:00Z")]);
}

#[test]
fn windows_that_overlap_or_share_a_name_are_refused() {
    let window = |name: &str, from: &str| {
        format!("[[window]]\nname = \"{name}\"\ndays = \"sat,sun\"\nfrom = \"{from}\"\nto = \"09:00\"\n")
    };
    check_faults(
        &(BOOK.to_owned() + &window("weekend", "07:00")),
        &["line 26: window[2].from: weekend overlaps off-peak"],
    );
    check_faults(
        &(BOOK.to_owned() + &window("off-peak", "08:00")),
        &["line 24: window[2].name: window[1] has this name too"],
    );
    check_faults(
        &(BOOK.to_owned() + &window("model", "08:00")),
        &["line 24: window[2].name: \"model\" can't be a window's name"],
    );
}

#[test]
fn a_text_that_is_no_toml_is_a_fault_with_its_line() {
    check_faults(
        "currency = \"CNY\"\nzone = Asia\n[[price]]\n",
        &["line 2: ", "line 2: zone", "line 3: price[1].from", "line 3: price"],
    );
}

#[test]
fn a_book_that_says_nothing_is_none_and_not_a_fault() {
    assert_eq!(PriceBook::parse("").unwrap(), None);
    assert_eq!(PriceBook::parse("# currency = \"CNY\"\n").unwrap(), None);
    check_faults("zone = \"UTC\"", &["line 1: currency: is missing"]);
}

#[test]
fn numbers_may_stand_without_quotes_and_are_never_floats() {
    let book = book_of(&[
        "from = 2026-01-01\nper_card_hour = 0.1\ncoefficient = 3",
        "from = 2026-01-01T08:00:00Z\nper_card_hour = 1_000",
    ]);
    assert_eq!(book.prices()[0].per_card_hour.to_string(), "0.1");
    assert_eq!(book.prices()[0].coefficient, Decimal::from(3));
    assert_eq!(book.prices()[1].per_card_hour, Decimal::from(1000));
    assert_eq!(book.prices()[1].from, at("2026-01-01T08:00:00Z"));
}

#[test]
fn the_version_is_of_what_the_book_says_and_not_of_how() {
    let same = BOOK.replace("18.50", "18.5").replace("days = \"mon-sun\"\n", "").replace("model = \"*\"", "# all")
        + "\n# end\n";
    assert_eq!(book(&same).version(), book(BOOK).version());
    for (before, after) in
        [("18.50", "18.51"), ("22:00", "22:15"), ("\"0.6\"", "\"0.7\""), ("CNY", "USD"), ("2.4", "2.5")]
    {
        assert_ne!(book(&BOOK.replace(before, after)).version(), book(BOOK).version(), "{before}");
    }
}

#[test]
fn a_book_has_the_version_it_had_before() {
    let canonical = "currency CNY\nzone Asia/Shanghai\n\
        window \"off-peak\" mon,tue,wed,thu,fri,sat,sun 22:00:00 08:00:00\n\
        price \"1\" 1767196800000 18.5 2.4 model=\"nvidia h200*\" 0*0.6\n\
        price \"2\" 1767196800000 6 1\n";
    assert_eq!(book(BOOK).canonical(), canonical);
    assert_eq!(&**book(BOOK).version(), "d09360fee038");
    assert_eq!(&*book(BOOK).prices()[1].price_line, "2");
    assert_eq!(
        &*book_of(&["from = \"2026-01-01\"\nname = \"list\"\nper_card_hour = \"1\""]).prices()[0].price_line,
        "1 list"
    );
}
