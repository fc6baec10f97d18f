//! Field reports of months, time zones, late and repeated data (`README.md` beside this file has the list), on the real binary.

use crate::service::Service;
use crate::site::{MAP, Rows, Site, answer, micros};
use std::process::{Command, Stdio};

const HEADER: &str = "id,who,team,cards,model,start,end\n";

fn site_in(zone: &str) -> Site {
    let site = Site::new();
    site.ok(&format!("init --zone {zone}"));
    std::fs::write(site.ledger().join("prices.toml"), book(zone, "10.00")).unwrap();
    site
}

fn book(zone: &str, per_card_hour: &str) -> String {
    format!(
        "currency = \"EUR\"\nzone = \"{zone}\"\n[[price]]\nfrom = \"2025-01-01\"\nmodel = \"*\"\nper_card_hour = \"{per_card_hour}\"\n"
    )
}

/// The words that import these rows.
fn words(site: &Site, name: &str, rows: &str) -> String {
    let (file, map) = (site.file(name, format!("{HEADER}{rows}")), site.file("map.toml", MAP));
    format!("jobs {file} --map {map}")
}

fn import(site: &Site, name: &str, rows: &str) {
    site.import(&words(site, name, rows));
}

fn months(rows: &Rows, column: &str) -> Vec<(String, i128)> {
    rows.0.iter().map(|row| (row["month"].clone(), micros(&row[column]))).collect()
}

/// April 2026 begins in Berlin at 22:00 UTC, for clocks went forward on 29 March; by the offset of winter it would begin at 23:00. A job from
/// 21:00 to 01:00 UTC is one hour of March and three of April.
#[test]
fn t03_the_edge_of_a_month_after_the_clocks_changed_is_where_the_zone_has_it() {
    let site = site_in("Europe/Berlin");
    import(&site, "a", "1,ann,vision,1,h200,2026-03-31T21:00:00Z,2026-04-01T01:00:00Z\n");
    let expected = [("2026-03".to_owned(), 1_000_000), ("2026-04".to_owned(), 3_000_000)];
    assert_eq!(months(&site.report("usage --by month"), "card_hours"), expected);
    let bill = site.report("bill --by month");
    assert_eq!(months(&bill, "cost"), expected.map(|(month, hours)| (month, hours * 10)));
    assert_eq!(site.report("usage --month 2026-04").only("card_hours"), "3.000000");
}

#[test]
fn t06_the_zone_is_kept_with_the_ledger_and_a_view_in_another_changes_no_bill() {
    let site = site_in("Europe/Berlin");
    import(&site, "a", "1,ann,vision,1,h200,2026-03-31T21:00:00Z,2026-04-01T01:00:00Z\n");
    let about = std::fs::read_to_string(site.ledger().join("ledger.json")).unwrap();
    assert!(about.contains("Europe/Berlin"), "{about}");
    let other = site.run("init --zone UTC");
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.err.contains("Europe/Berlin"), "{}", other.err);
    let prices = site.file("utc.toml", book("UTC", "10.00"));
    assert_eq!(site.run(&format!("report bill --prices {prices}")).code, Some(2));

    let own = site.sql_text("select * from charges order by 1, 2, 3");
    // In Shanghai April begins at 16:00 UTC, so all of the job is in it; what it costs is the same.
    let view = site.report("usage --by month --zone Asia/Shanghai");
    assert_eq!(months(&view, "card_hours"), [("2026-04".to_owned(), 4_000_000)]);
    assert_eq!(site.report("bill --by project --zone Asia/Shanghai").only("cost"), "40.00");
    assert_eq!(site.report("bill --by project").only("cost"), "40.00");
    assert_eq!(site.sql_text("select * from charges order by 1, 2, 3"), own, "a view changes no leaf");
    assert_eq!(std::fs::read_to_string(site.ledger().join("ledger.json")).unwrap(), about);
}

/// Kiritimati is 14 hours ahead of UTC: its March begins on 28 February at 10:00 UTC. A job from 08:00 to 13:00 UTC of that day is two hours
/// of February and three of March, on every screen.
#[test]
fn t08_bill_usage_capacity_and_the_service_have_one_period() {
    let site = site_in("Pacific/Kiritimati");
    import(&site, "a", "1,ann,vision,1,h200,2026-02-28T08:00:00Z,2026-02-28T13:00:00Z\n");
    let service = Service::start(&site);
    for (month, hours) in [("2026-02", "2.000000"), ("2026-03", "3.000000")] {
        for report in ["usage", "bill", "capacity", "coverage"] {
            let words = format!("{report} --by cluster --month {month}");
            assert_eq!(site.report(&words).only("card_hours"), hours, "{words}");
            let reply = service.get(&format!("/api/v1/report/{report}?by=cluster&month={month}&format=csv"));
            assert_eq!(reply.status, 200, "{}", reply.body);
            assert_eq!(Rows::parse(&reply.body).only("card_hours"), hours, "{report} over HTTP");
        }
        let page = service.get(&format!("/?month={month}"));
        assert_eq!(page.status, 200, "{}", page.body);
        let cost = format!("{}0.00", &hours[..1]);
        assert!(page.body.contains(&cost), "{cost} in the page of {month}:\n{}", page.body);
        let own = site.ok(&format!("me --user ann --month {month} --format csv"));
        assert_eq!(Rows::parse(&own).only("card_hours"), hours);
    }
    let march = site.sql("select sum(card_time) as t from charges where month = '2026-03'");
    assert_eq!(march.only("t"), (3 * 3_600_000 * 18_018_000i128).to_string());
}

/// The same ten hours on the third of May and of June: the same rows, and 100.00 each. May is there when June is loaded.
#[test]
fn t10_equal_jobs_in_may_and_june_are_equal_lines() {
    let site = site_in("Europe/Berlin");
    let rows = |month: &str| {
        format!(
            "{month}-1,ann,vision,1,h200,2026-{month}-03T00:00:00Z,2026-{month}-03T04:00:00Z\n\
                 {month}-2,ben,speech,2,h200,2026-{month}-03T10:00:00Z,2026-{month}-03T13:00:00Z\n"
        )
    };
    import(&site, "may", &rows("05"));
    // All of a row but its id, which names the month's own edges.
    let line = |month: &str| {
        let mut rows = site.report(&format!("bill --by project,user --month {month}"));
        rows.0.iter_mut().for_each(|row| _ = row.remove("line"));
        rows
    };
    let may = line("2026-05");
    import(&site, "june", &rows("06"));
    assert_eq!(line("2026-05"), may);
    assert_eq!(line("2026-06"), may);
    assert_eq!(
        months(&site.report("bill --by month"), "cost"),
        [("2026-05".to_owned(), 100_000_000), ("2026-06".to_owned(), 100_000_000)]
    );
}

#[test]
fn t11_a_rate_that_is_edited_and_priced_again_and_again_adds_nothing() {
    let site = site_in("UTC");
    import(&site, "a", "1,ann,vision,1,h200,2026-03-01T00:00:00Z,2026-03-01T04:00:00Z\n");
    for (rate, cost) in [("10.00", "40.00"), ("12.50", "50.00"), ("12.50", "50.00"), ("10.00", "40.00")] {
        std::fs::write(site.ledger().join("prices.toml"), book("UTC", rate)).unwrap();
        for _ in 0..2 {
            assert_eq!(site.report("bill --by project").only("cost"), cost);
            assert_eq!(site.sql("select count(*) as n from charges").only("n"), "1");
        }
    }
}

/// The disk is full after so many kilobytes of a file, from none at all up to where all fits: whatever could not be written is written when
/// the rows are sent again. 3 cards × 5 h and 2 × 7 h are 29 card-hours.
#[test]
fn t13_rows_whose_write_failed_are_not_skipped_when_they_are_sent_again() {
    let rows = "1,ann,vision,3,h200,2026-03-01T00:00:00Z,2026-03-01T05:00:00Z\n2,ben,speech,2,h200,2026-03-01T03:00:00Z,2026-03-01T10:00:00Z\n";
    let mut failed = 0;
    for kilobytes in [0, 1, 2, 3, 4, 5, 6, 8, 16] {
        let site = Site::new();
        import(&site, "before", "0,eve,vision,1,h200,2026-02-01T00:00:00Z,2026-02-01T01:00:00Z\n");
        let words = words(&site, "a", rows);
        let own = site.command();
        let mut limited = Command::new("bash");
        limited.args(["-c", "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"", "bash", &kilobytes.to_string()]);
        limited.arg(own.get_program()).arg("import").args(words.split_whitespace()).stdin(Stdio::null());
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        let full = answer(&mut limited);
        failed += u32::from(full.code != Some(0));
        site.import(&words);
        let march = site.report("usage --month 2026-03");
        assert_eq!((march.only("attempts"), march.only("card_hours")), ("2", "29.000000"), "{kilobytes} kB: {full:?}");
        assert_eq!(site.report("usage --month 2026-02").only("card_hours"), "1.000000", "{kilobytes} kB");
        site.import(&words);
        assert_eq!(site.report("usage").only("card_hours"), "30.000000", "{kilobytes} kB");
    }
    assert!(failed >= 3, "the disk was full {failed} times");
}

/// A job of March that nobody told of until April is March's, and April's bill stays as it was.
#[test]
fn t14_a_job_that_comes_late_lands_in_its_own_month() {
    let site = site_in("Europe/Berlin");
    import(&site, "march", "1,ann,vision,1,h200,2026-03-10T00:00:00Z,2026-03-10T04:00:00Z\n");
    import(&site, "april", "2,ann,vision,1,h200,2026-04-10T00:00:00Z,2026-04-10T05:00:00Z\n");
    let april = site.ok("report bill --month 2026-04 --by project,user --format csv");
    import(&site, "late", "3,ann,vision,2,h200,2026-03-20T00:00:00Z,2026-03-20T03:00:00Z\n");
    assert_eq!(
        months(&site.report("bill --by month"), "cost"),
        [("2026-03".to_owned(), 100_000_000), ("2026-04".to_owned(), 50_000_000)]
    );
    assert_eq!(site.ok("report bill --month 2026-04 --by project,user --format csv"), april);
}

/// Several writers of the same rows at one time; some of them lose the race for a commit and look again. Each row is written once.
#[test]
fn t15_writers_of_the_same_rows_at_one_time_write_them_once() {
    let site = site_in("UTC");
    let rows: String = (0..40)
        .map(|i| {
            format!("{i},ann,vision,1,h200,2026-03-{:02}T00:00:00Z,2026-03-{:02}T03:00:00Z\n", 1 + i % 20, 1 + i % 20)
        })
        .collect();
    let words = words(&site, "a", &rows);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| site.import(&words));
        }
    });
    // 40 × 3 h, whichever way it is counted.
    assert_eq!(site.report("usage").only("card_hours"), "120.000000");
    let counted = site.sql("select count(*) as n, count(distinct attempt_key) as d from jobs");
    assert_eq!((counted.only("n"), counted.only("d")), ("40", "40"));
    let counted = site.sql("select sum(card_time) as t from usage where attempt_key is not null");
    assert_eq!(counted.only("t"), (120 * 3_600_000 * 18_018_000i128).to_string());
}
