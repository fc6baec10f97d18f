//! A site that changed its currency in mid-year, on the real binary: budgets, `me`, `quote`, `doctor`, the bill and the checkpoints tell the two apart and never add them up.

use crate::site::{OWNED_MAP, Rows, Site};

fn prices(currency: &str, price: &str) -> String {
    format!(
        "currency = \"{currency}\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"{price}\"\n"
    )
}

/// March at 2 USD, closed; April at 3 EUR. By hand, ann's 10 card-hours of March are 20.00 USD, her 20 of April 60.00 EUR; bob's 5 of April 15.00 EUR.
fn site() -> Site {
    let site = Site::new();
    site.ok("init --zone UTC");
    std::fs::write(site.ledger().join("prices.toml"), prices("USD", "2")).unwrap();
    let map = site.file("map.toml", OWNED_MAP);
    let jobs = site.file(
        "jobs.csv",
        "id,org,team,who,cards,model,start,end\n\
         1,acme,vision,ann,1,h200,2026-03-10T00:00:00Z,2026-03-10T10:00:00Z\n\
         2,acme,vision,ann,2,h200,2026-04-10T00:00:00Z,2026-04-10T10:00:00Z\n\
         3,acme,vision,bob,1,h200,2026-04-11T00:00:00Z,2026-04-11T05:00:00Z\n",
    );
    site.import(&format!("jobs {jobs} --map {map} --as-of 2026-05-02 --covers 2026-03-01..2026-05-02"));
    site.ok("close --month 2026-03 --by fin");
    std::fs::write(site.ledger().join("prices.toml"), prices("EUR", "3")).unwrap();
    site
}

#[test]
fn another_currency_is_another_row_of_the_bill_and_each_line_can_be_traced() {
    let site = site();
    let bill = site.report("bill --by user");
    let rows: Vec<[&str; 4]> =
        bill.0.iter().map(|row| ["user", "card_hours", "cost", "currency"].map(|name| &*row[name])).collect();
    let expected = [
        ["ann", "10.000000", "20.00", "USD"],
        ["ann", "20.000000", "60.00", "EUR"],
        ["bob", "5.000000", "15.00", "EUR"],
    ];
    assert_eq!(rows, expected);
    for (row, cost) in bill.0.iter().zip(["20.00", "60.00", "15.00"]) {
        let answer = site.run(&format!("trace {}", row["line"]));
        assert_eq!(answer.code, Some(0), "{}", answer.err);
        assert!(answer.out.contains(cost), "{}", answer.out);
    }
    let shown = site.ok("report bill --by user --format table");
    assert!(shown.contains("20.00 USD and 75.00 EUR, which are not added up"), "{shown}");
}

#[test]
fn budgets_me_quote_and_doctor_answer_after_a_change_of_currency() {
    let site = site();
    let text = "currency = \"EUR\"\n\
                [[budget]]\nname = \"euro\"\norg = \"acme\"\namount = \"1000\"\nperiod = \"year\"\n\
                [[budget]]\nname = \"dollars\"\ncurrency = \"USD\"\norg = \"acme\"\namount = \"100\"\nperiod = \"year\"\n\
                [[budget]]\nname = \"hours\"\norg = \"acme\"\ncard_hours = \"100\"\nperiod = \"year\"\n";
    std::fs::write(site.ledger().join("budgets.toml"), text).unwrap();
    let budgets = Rows::parse(&site.ok("budgets --month 2026-04 --format csv"));
    let spent = budgets.by("budget", "spent");
    assert_eq!(["euro", "dollars", "hours"].map(|name| &*spent[name]), ["75.00", "20.00", "35.000000"]);
    let shown = site.ok("budgets --month 2026-04");
    assert!(shown.contains("budget euro, 2026-01..2026-12: not counted: 20.00 USD"), "{shown}");
    assert!(shown.contains("budget dollars, 2026-01..2026-12: not counted: 75.00 EUR"), "{shown}");

    let me = site.ok("me --user ann --format table");
    assert!(me.contains("USD") && me.contains("EUR") && me.contains("budget euro"), "{me}");
    let quote = Rows::parse(
        &site.ok("quote --cards 1 --hours 10 --model h200 --from 2099-03-10T12:00 --project vision --format csv"),
    );
    assert_eq!(quote.only("currency"), "EUR", "the price that is in force now");
    let doctor = site.run("doctor");
    assert!(doctor.out.contains("all that was held has a price"), "{}", doctor.out);
    let advice = site.run("budgets --advice --month 2026-04");
    assert_eq!(advice.code, Some(0), "{}", advice.err);

    // A currency in which nothing ever had a price is a slip.
    std::fs::write(site.ledger().join("budgets.toml"), text.replace("USD", "JPY")).unwrap();
    let refused = site.run("budgets --month 2026-04");
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("a budget in JPY, in which nothing has a price"), "{}", refused.err);
}

#[test]
fn checkpoints_have_each_month_in_the_currency_that_it_was_billed_in() {
    let site = site();
    let json: serde_json::Value =
        serde_json::from_str(&site.ok("report monthly --month 2026-04 --format json")).unwrap();
    let cost = |row: usize| {
        let of = &json["demand"][row];
        ["month", "cost", "currency"].map(|name| of[name].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(cost(0), ["2026-03", "20.000000", "USD"]);
    assert_eq!(cost(1), ["2026-04", "75.000000", "EUR"]);
    assert_eq!(site.run("report weekly --week 2026-W15 --format md").code, Some(0));
}

/// Week 15 is 6 to 12 April, of which the books speak up to the 11th, 05:00: 125 h. By hand: 2 cards × 10 h and 1 × 5 h are 25 card-hours, a mean of 0.2; two of the two guaranteed for 10 h, 0.08.
#[test]
fn the_weekly_report_says_how_quotas_were_used() {
    let site = site();
    let text = "[[quota]]\norg = \"acme\"\nmodel = \"h200\"\nguaranteed = 2\n";
    std::fs::write(site.ledger().join("quotas.toml"), text).unwrap();
    let json: serde_json::Value =
        serde_json::from_str(&site.ok("report weekly --week 2026-W15 --format json")).unwrap();
    let row = &json["quota_use"][0];
    let of = |name: &str| row[name].as_str().unwrap_or_else(|| panic!("{name}: {row}")).to_owned();
    assert_eq!((of("org"), of("cluster"), row["guaranteed_cards"].as_i64()), ("acme".into(), "lab".into(), Some(2)));
    assert_eq!([of("mean_cards"), of("peak_cards"), of("hit_rate")], ["0.200000", "2.000000", "0.080000"]);
    assert_eq!(of("waited_under_guarantee_hours"), "0.000000");
}

#[test]
fn a_month_without_rows_names_the_months_that_have_some() {
    let site = site();
    let folder = site.ledger().with_file_name("out");
    for what in ["focus", "csv"] {
        let answer = site.run(&format!("export {what} --month 2025-01 --output-dir {}", folder.display()));
        assert_eq!(answer.code, Some(1), "{}", answer.err);
        assert!(answer.err.contains("of 2025-01: the books have rows of 2026-03 to 2026-04"), "{}", answer.err);
        assert!(!folder.exists());
    }
}

/// By hand, ann in April at 3 EUR: no window, no telemetry, so nothing to save; her bill's words are the same. What is off-peak is said with the report that shows it.
#[test]
fn me_says_what_could_be_saved_with_the_command_that_shows_it() {
    let site = site();
    let night = "[[window]]\nname = \"night\"\nfrom = \"22:00\"\nto = \"06:00\"\n";
    let book = prices("EUR", "3").replace("[[price]]", &format!("{night}[[price]]")) + "night = \"0.5\"\n";
    std::fs::write(site.ledger().join("prices.toml"), book).unwrap();
    // Of 10 hours from midnight six are by night and four by day: 2 cards × 4 h × 3 EUR × half of it are 12.00 EUR.
    let me = site.ok("me --user ann --month 2026-04");
    let command = "cardhour report bill --month 2026-04 --by user,price,window";
    let said = "could be saved in 2026-04, off-peak: 12.00 EUR, 8 card-hours, at its own price, less at that of the cheapest window";
    assert!(me.contains(&format!("{said}: {command}")), "{me}");
    let shown = site.report(command.strip_prefix("cardhour report ").unwrap());
    let by_day = shown.0.iter().find(|row| row["user"] == "ann" && row["window"].is_empty()).unwrap();
    assert_eq!(&*by_day["billed_card_hours"], "8.000000");
}

/// By hand: March was closed with 10 card-hours of ann; then her record turned out to end two hours earlier, as Slurm has it. The two hours are a correction of April's statement.
#[test]
fn time_that_was_corrected_after_a_close_has_its_own_cause_and_the_month_of_the_correction() {
    let site = site();
    std::fs::write(site.ledger().join("prices.toml"), prices("USD", "2")).unwrap();
    let map = site.file("map.toml", OWNED_MAP);
    let late = site.file(
        "late.csv",
        "id,org,team,who,cards,model,start,end\n\
         1,acme,vision,ann,1,h200,2026-03-10T00:00:00Z,2026-03-10T08:00:00Z\n",
    );
    site.import(&format!("jobs {late} --map {map} --as-of 2026-05-03 --covers 2026-03-01..2026-05-03"));
    let sacct = site.file(
        "sacct.txt",
        "JobID|Cluster|Account|User|State|Start|End|ElapsedRaw|AllocTRES\n\
         1|lab|vision|ann|COMPLETED|2026-03-10T00:00:00|2026-03-10T08:00:00|28800|gres/gpu=1\n",
    );
    let answer = site.run(&format!("reconcile --with sacct {sacct} --month 2026-03 --format csv"));
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    let rows = Rows::parse(&answer.out);
    let of = |name: &str| rows.only(name).to_owned();
    assert_eq!([of("our_card_hours"), of("their_card_hours")], ["10.000000", "8.000000"]);
    assert_eq!([of("corrected_later_card_hours"), of("billed_otherwise_card_hours")], ["2.000000", "0.000000"]);
    assert!(answer.err.contains("corrected_later: 2026-03 is closed"), "{}", answer.err);
    assert!(answer.err.contains("in the statement of 2026-04"), "{}", answer.err);
}
