//! LED-4: the same input once, twice, in any order and in any cut gives the same books.

use crate::site::{Site, map, shared};
use std::path::Path;

/// A public trace and how it is imported.
struct Trace {
    file: &'static str,
    map: &'static str,
    /// Whether its first line names the columns.
    header: bool,
    /// The delimiter that counts where a record of several lines ends; none where a line is a record.
    wrapped_by: Option<&'static str>,
    /// `--as-of` and `--covers`, the same for every cut.
    speaks_for: &'static str,
    /// Whether its rows have ids, so that cuts don't matter.
    ids: bool,
}

const PHILLY: Trace = Trace {
    file: "philly/philly.csv",
    map: "philly",
    header: true,
    wrapped_by: None,
    speaks_for: "--as-of 2018-03-01T00:00:00Z --covers 2017-09-01..2018-03-01",
    ids: false,
};
const OPENB: Trace = Trace {
    file: "openb-2023/openb_pod_list_default.csv",
    map: "openb-2023",
    header: true,
    wrapped_by: None,
    speaks_for: "--as-of 2023-12-01T00:00:00Z --covers 2023-01-01..2023-12-01",
    ids: true,
};
const PHILLIPS: Trace = Trace {
    file: "slurm-xdmod/phillips.log",
    map: "xdmod-sacct",
    header: false,
    wrapped_by: None,
    speaks_for: "--as-of 2017-02-01T00:00:00Z --covers 2016-12-01..2017-02-01",
    ids: true,
};
const UIO: Trace = Trace {
    file: "slurm-uio/slurm-sacct.csv",
    map: "sonar-sacct-kv",
    header: false,
    wrapped_by: None,
    speaks_for: "--as-of 2025-06-01T00:00:00Z --covers 2025-04-01..2025-06-01",
    ids: true,
};
const GCM: Trace = Trace {
    file: "slurm-gcm/sample-sacct-one-multiline.txt",
    map: "gcm-sacct",
    header: true,
    wrapped_by: Some("|#"),
    speaks_for: "--as-of 2023-03-01T00:00:00Z --covers 2023-01-01..2023-03-01",
    ids: true,
};
const EAGLE: Trace = Trace {
    file: "slurm-eagle/sample_eagle_data.csv",
    map: "eagle",
    header: true,
    wrapped_by: None,
    speaks_for: "--as-of 2019-03-01T00:00:00Z --covers 2018-12-01..2019-03-01",
    ids: false,
};

impl Trace {
    /// Header (with its line end, or nothing) and records, each with its line end.
    fn records(&self, path: &Path) -> (String, Vec<String>) {
        let text = std::fs::read_to_string(path).unwrap();
        let mut lines = text.split_inclusive('\n');
        let header = if self.header { lines.next().unwrap().to_owned() } else { String::new() };
        let whole = self.wrapped_by.map_or(0, |delimiter| header.matches(delimiter).count());
        let mut records: Vec<String> = Vec::new();
        let mut open = false;
        // Philly's file ends with an empty line, which is no record; inside a wrapped one it would be a part of it.
        for line in lines.filter(|line| self.wrapped_by.is_some() || !line.trim().is_empty()) {
            match records.last_mut() {
                Some(record) if open => record.push_str(line),
                _ => records.push(line.to_owned()),
            }
            let record = records.last_mut().unwrap();
            open = self.wrapped_by.is_some_and(|delimiter| record.matches(delimiter).count() < whole);
        }
        if let Some(last) = records.last_mut()
            && !last.ends_with('\n')
        {
            last.push('\n');
        }
        (header, records)
    }
}

/// The books as text: the report byte for byte, and every holding, attempt's usage and quarantined row in an order of its own.
fn books(site: &Site) -> String {
    let mut books = site.ok("report usage --format csv");
    books += &site.ok("report usage --by project,user,queue,month --zone UTC --format csv");
    for digest in [
        "select attempt_key, node, model, mig_profile, card_uuid, share_parts, started_at, ended_at, source, estimated from holdings \
         order by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
        "select attempt_key, state, cluster, pool, node, model, card_uuid, date_trunc('day', bucket_start) as utc_day, \
         count(*) as buckets, min(bucket_start) as first, max(bucket_start) as last, sum(card_time) as card_time, \
         sum(billed_time) as billed_time, sum(unseen) as unseen from usage \
         group by attempt_key, state, cluster, pool, node, model, card_uuid, utc_day order by 1, 2, 3, 4, 5, 6, 7, 8",
        "select \"row\", field, reason from quarantine order by 1, 2, 3",
    ] {
        books += "\n";
        books += &site.sql_text(digest);
    }
    books
}

/// A ledger into which these texts were imported one after the other.
fn ledger(trace: &Trace, texts: &[String]) -> String {
    let site = Site::new();
    for text in texts {
        // Always the same name: where a row came from is not what the books are about.
        let file = site.file("export", text);
        site.import(&format!("jobs {file} --map {} {}", map(trace.map), trace.speaks_for));
    }
    books(&site)
}

/// Fisher and Yates, with a generator of its own.
fn shuffle(records: &mut [String]) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for i in (1..records.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        records.swap(i, (state % (i as u64 + 1)) as usize);
    }
}

#[track_caller]
fn check(trace: &Trace) {
    let Some(path) = shared(trace.file) else { return };
    let (header, records) = trace.records(&path);
    let text = |records: &[String]| format!("{header}{}", records.concat());
    let whole = text(&records);
    let once = ledger(trace, std::slice::from_ref(&whole));
    assert_eq!(once.lines().nth(1).map(|row| row.is_empty()), Some(false), "the books hold something");

    assert_same("imported twice", &once, &ledger(trace, &[whole.clone(), whole]));
    let mut shuffled = records.clone();
    shuffle(&mut shuffled);
    assert_same("shuffled", &once, &ledger(trace, &[text(&shuffled)]));
    if trace.ids {
        let (first, second) = records.split_at(records.len() / 2);
        let (first, second) = (text(first), text(second));
        assert_same("first half first", &once, &ledger(trace, &[first.clone(), second.clone()]));
        assert_same("second half first", &once, &ledger(trace, &[second, first]));
    }
}

/// Says where books differ first, not all of them.
#[track_caller]
pub fn assert_same(how: &str, once: &str, other: &str) {
    if once == other {
        return;
    }
    let differs = once.lines().zip(other.lines()).enumerate().find(|(_, (a, b))| a != b);
    panic!(
        "{how}, the books differ: {} lines against {}; the first that differs: {differs:?}",
        once.lines().count(),
        other.lines().count()
    );
}

#[test]
fn philly_gives_the_same_books_twice_and_shuffled() {
    check(&PHILLY);
}

#[test]
fn openb_2023_gives_the_same_books_in_any_order_and_cut() {
    check(&OPENB);
}

#[test]
fn phillips_gives_the_same_books_in_any_order_and_cut() {
    check(&PHILLIPS);
}

#[test]
fn uio_gives_the_same_books_in_any_order_and_cut() {
    check(&UIO);
}

#[test]
fn gcm_gives_the_same_books_in_any_order_and_cut() {
    check(&GCM);
}

#[test]
fn eagle_gives_the_same_books_twice_and_shuffled() {
    check(&EAGLE);
}
