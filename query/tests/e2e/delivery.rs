//! What is delivered by schedule, on the real binary: each week and month once, whoever delivers it.

use crate::service::Service;
use crate::site::{OWNED_MAP, Rows, Site};
use cardhour_domain::{Month, Timestamp, Zone};
use cardhour_test_bucket::{PLACE, TestBucket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const BOOK: &str = "currency = \"CNY\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2020-01-01\"\nper_card_hour = \"10.00\"\n";

/// The month that is under way.
fn this_month() -> Month {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    Zone::UTC.month(Timestamp::from_unix_s(i64::try_from(now).unwrap())).unwrap()
}

/// The one before, which is over whenever this runs.
fn last_month() -> Month {
    let before = this_month().first_date().pred_opt().unwrap();
    Zone::UTC.month(Zone::UTC.start_of_day(before)).unwrap()
}

/// A site whose books speak of all of last month. By hand: acme 2 cards × 3 h × 10.00 = 60.00, nova 1 × 1 h = 10.00.
fn site() -> Site {
    let site = Site::new();
    site.ok("init --zone UTC");
    std::fs::write(site.ledger().join("prices.toml"), BOOK).unwrap();
    let (month, now) = (last_month(), this_month().first_date());
    let jobs = site.file(
        "jobs.csv",
        format!(
            "id,org,team,who,cards,model,start,end\n\
             1,acme,vision,ann,2,h200,{month}-02T00:00:00Z,{month}-02T03:00:00Z\n\
             2,nova,chat,eve,1,h200,{month}-03T00:00:00Z,{month}-03T01:00:00Z\n"
        ),
    );
    let map = site.file("map.toml", OWNED_MAP);
    let covers = format!("{}..{now}", month.first_date());
    site.import(&format!("jobs {jobs} --map {map} --as-of {now} --covers {covers}"));
    site
}

/// Writes the config that the site's commands find.
fn deliveries(site: &Site, text: &str) {
    let folder = site.ledger().with_file_name("config").join("cardhour");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), format!("ledger = {:?}\n{text}", site.ledger())).unwrap();
}

fn out(site: &Site) -> PathBuf {
    site.ledger().with_file_name("out")
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Term and state of each row that isn't of what comes next.
fn owed(csv: &str) -> Vec<(String, String)> {
    let rows = Rows::parse(csv).0;
    let rows = rows.into_iter().filter(|row| row["state"] != "next");
    rows.map(|row| (row["term"].clone(), row["state"].clone())).collect()
}

fn close(site: &Site, month: Month) {
    site.ok(&format!("close --month {month} --by Ann --sign-off tested"));
}

#[test]
fn a_statement_is_delivered_when_its_month_is_closed_once_and_as_it_is_exported() {
    let (site, month) = (site(), last_month());
    let folder = out(&site);
    deliveries(
        &site,
        &format!(
            "[[delivery]]\nname = \"finance\"\nwhat = \"statement\"\nformat = [\"xlsx\", \"html\"]\norg = \"acme\"\nto = {folder:?}\ntime = \"00:00\"\n"
        ),
    );
    let term = month.to_string();
    let waits = vec![(term.clone(), "waits for the month's closing".to_owned())];
    assert_eq!(owed(&site.ok("deliver --format csv")), waits);
    assert_eq!(owed(&site.ok("deliver --due --format csv")), waits);
    assert!(!folder.exists());
    close(&site, month);
    assert_eq!(owed(&site.ok("deliver --due --dry-run --format csv")), [(term.clone(), "due".to_owned())]);
    assert!(!folder.exists(), "a dry run changes nothing");
    assert_eq!(owed(&site.ok("deliver --due --format csv")), [(term.clone(), "delivered".to_owned())]);
    let expected = ["html", "xlsx"].map(|end| format!("statement-{month}-acme.{end}"));
    assert_eq!(names(&folder), expected);
    let exported = site.ledger().with_file_name("exported");
    site.ok(&format!("export xlsx --month {month} --org acme --output-dir {}", exported.display()));
    let read = |folder: &Path| std::fs::read(folder.join(&expected[1])).unwrap();
    assert_eq!(read(&folder), read(&exported), "the bytes of an export");

    // Whoever took the files away has them: nothing brings them again, neither the command nor a service that starts.
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(owed(&site.ok("deliver --due --format csv")), []);
    let service = Service::start(&site);
    std::thread::sleep(Duration::from_secs(3));
    assert!(service.ended_well());
    assert!(!folder.exists());
    let rows = site.sql("select edition, term, files from deliveries order by edition");
    let rows: Vec<_> =
        rows.0.iter().map(|row| (&*row["edition"], &*row["term"], row["files"].replace('\n', " "))).collect();
    let files = format!("{1} {0}", expected[0], expected[1]);
    assert_eq!(rows, [("final", &*term, files), ("from", &*term, String::new())]);
}

#[test]
fn an_org_that_the_books_do_not_know_is_told_by_deliver_and_doctor() {
    let site = site();
    let folder = out(&site);
    deliveries(
        &site,
        &format!(
            "[[delivery]]\nname = \"finance\"\nwhat = \"statement\"\nformat = \"csv\"\norg = [\"acme\", \"acmee\"]\nto = {folder:?}\n"
        ),
    );
    let said = "delivery \"finance\": the books have no org \"acmee\": did you mean acme?";
    let answer = site.run("deliver");
    assert_eq!(answer.code, Some(0), "{}", answer.err);
    assert!(answer.out.contains(said), "{}", answer.out);
    let doctor = site.run("doctor");
    assert!(doctor.out.contains(said), "{}", doctor.out);
}

/// A service delivers by itself; a place that can't be written is told of and tried again, and keeps no other delivery from its place.
#[test]
fn a_service_delivers_reports_and_drafts_and_tells_of_what_it_cannot_deliver() {
    let (site, month) = (site(), last_month());
    let folder = out(&site);
    let no_folder = site.file("no-folder", "a file");
    deliveries(
        &site,
        &format!(
            "[[delivery]]\nname = \"broken\"\nwhat = \"report monthly\"\nto = {no_folder:?}\ntime = \"00:00\"\n\
             [[delivery]]\nname = \"bill\"\nwhat = \"report bill\"\nformat = [\"csv\", \"md\"]\nto = {folder:?}\ntime = \"00:00\"\n\
             [[delivery]]\nname = \"monthly\"\nwhat = \"report monthly\"\nto = {folder:?}\ntime = \"00:00\"\n\
             [[delivery]]\nname = \"drafts\"\nwhat = \"statement\"\nformat = \"csv\"\ndraft = true\nto = {folder:?}\ntime = \"00:00\"\n\
             [[delivery]]\nname = \"focus\"\nwhat = \"focus 1.4\"\ndraft = true\nto = {folder:?}\ntime = \"00:00\"\n"
        ),
    );
    let service = Service::start(&site);
    let drafts = [
        format!("draft-statement-{month}-acme.csv"),
        format!("draft-statement-{month}-nova.csv"),
        format!("report-bill-{month}.csv"),
        format!("report-bill-{month}.md"),
        format!("report-monthly-{month}.html"),
    ];
    let focus = format!("focus-1.4-{month}-metadata.json");
    let since = Instant::now();
    // FOCUS is the last, and its metadata the last of it.
    while !names(&folder).contains(&focus) {
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", names(&folder));
        std::thread::sleep(Duration::from_millis(200));
    }
    let there = names(&folder);
    assert!(drafts.iter().all(|draft| there.contains(draft)), "{there:?}");
    assert!(!there.iter().any(|name| name.starts_with('.')), "nothing is left beside them: {there:?}");
    let bill = std::fs::read_to_string(folder.join(format!("report-bill-{month}.csv"))).unwrap();
    assert_eq!(bill, site.ok(&format!("report bill --month {month} --format csv")));
    let since = Instant::now();
    let metrics = loop {
        let metrics = service.get("/metrics").body;
        if metrics.contains("cardhour_deliveries_total{delivery=\"focus\",outcome=\"delivered\"} 1") {
            break metrics;
        }
        assert!(since.elapsed() < Duration::from_secs(30), "{metrics}");
        std::thread::sleep(Duration::from_millis(200));
    };
    for line in [
        "cardhour_deliveries_total{delivery=\"broken\",outcome=\"failed\"} 1",
        "cardhour_deliveries_owed{delivery=\"broken\",why=\"failed\"} 1",
        "cardhour_deliveries_owed{delivery=\"drafts\",why=\"closing\"} 0",
    ] {
        assert!(metrics.contains(line), "{line} in\n{metrics}");
    }
    assert!(service.ended_well());

    // The command has the same reason, and the exit code of what failed.
    let answer = site.run("deliver --due --format csv");
    assert_eq!(answer.code, Some(3), "{}", answer.err);
    let rows = owed(&answer.out);
    assert!(rows.iter().any(|(_, state)| state.starts_with("failed: ")), "{rows:?}");
    // Closed, the month is delivered as it stays, beside its draft.
    close(&site, month);
    let answer = site.run("deliver drafts --due --format csv");
    assert_eq!((answer.code, owed(&answer.out)), (Some(0), vec![(month.to_string(), "delivered".to_owned())]));
    assert!(names(&folder).contains(&format!("statement-{month}-acme.csv")));
    assert_eq!(owed(&site.ok("deliver drafts --due --format csv")), []);
}

#[test]
fn a_month_in_focus_is_put_into_a_bucket() {
    let Some(server) = TestBucket::start("a_month_in_focus_is_put_into_a_bucket") else { return };
    let (site, month) = (site(), last_month());
    let delivery = |credentials: &Path| {
        deliveries(
            &site,
            &format!(
                "[[delivery]]\nname = \"cost tool\"\nwhat = \"focus 1.2\"\nto = \"{PLACE}/finance\"\nendpoint = {:?}\n\
                 credentials_file = {credentials:?}\ntime = \"00:00\"\n",
                server.endpoint
            ),
        );
    };
    close(&site, month);
    // Who may only put segments puts nothing else: it is told, and owed still.
    delivery(&server.credentials_file(cardhour_test_bucket::NODE));
    let refused = site.run("deliver --due --format csv");
    assert_eq!(refused.code, Some(3), "{}", refused.out);
    assert!(owed(&refused.out)[0].1.starts_with("failed: "), "{}", refused.out);
    delivery(&server.credentials_file("owner"));
    assert_eq!(owed(&site.ok("deliver --due --format csv")), [(month.to_string(), "delivered".to_owned())]);
    let metadata = server.get(&format!("cardhour/finance/focus-1.2-{month}-metadata.json")).unwrap();
    assert!(!metadata.is_empty());
}

#[test]
fn deliveries_are_of_the_ledger_that_the_config_names() {
    let site = site();
    deliveries(&site, "[[delivery]]\nname = \"finance\"\nwhat = \"statement\"\nto = \"/nowhere/cardhour\"\n");
    let other = site.ledger().with_file_name("other");
    site.ok(&format!("--ledger {} init --zone UTC", other.display()));
    let answer = site.run(&format!("--ledger {} deliver --due", other.display()));
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    assert!(answer.err.contains("are of its ledger"), "{}", answer.err);
    assert_eq!(site.run("deliver somebody").code, Some(2));
    deliveries(&site, "");
    assert_eq!(site.run("deliver").code, Some(2));
}
