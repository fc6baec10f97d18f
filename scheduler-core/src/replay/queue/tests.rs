//! Queues worked by hand, and the published figures of the Philly trace.

use super::*;
use crate::shared_data::shared_data;

const HEADER: &str = "timestamp,duration,num_gpus,gpu_time,cluster\n";
const EIGHT: NonZeroU64 = NonZeroU64::new(8).unwrap();

/// Jobs as `minute second, duration s, cards`, all of tenant `a`.
fn jobs(of: &[(&str, u64, u64)]) -> String {
    let rows = of.iter().map(|(at, duration, cards)| format!("2017-10-09 07:{at},{duration}.0,{cards},0,a\n"));
    format!("{HEADER}{}", rows.collect::<String>())
}

fn trace(jobs: &str, pools: &str) -> Trace {
    Trace::read(("jobs.csv", jobs.as_bytes()), ("pools.csv", pools.as_bytes())).unwrap()
}

/// Jobs that ran, that waited, seconds waited in all, peak of cards; of one tenant with so many hosts of eight.
fn played(order: Order, hosts: u64, of: &[(&str, u64, u64)]) -> (u64, u64, i128, u64) {
    let outcome = trace(&jobs(of), &format!("vc,node num\na,{hosts}\n")).replay(order, None, EIGHT);
    let waits = &outcome.tenants["a"];
    assert_eq!(*waits, outcome.total, "one tenant is all");
    (waits.jobs, waits.queued, waits.queueing_ms / 1000, waits.peak_cards)
}

#[test]
fn the_scan_stops_at_the_first_job_that_does_not_fit() {
    // 8 cards. The first has 6 of them for 100 s. The second wants 4 and waits 90 s from 00:10; the third wants 2, which are free, but it is behind: 80 s from 00:20.
    let of = [("00:00", 100, 6), ("00:10", 50, 4), ("00:20", 10, 2)];
    assert_eq!(played(Order::Fifo, 1, &of), (3, 2, 170, 6));
    // Shortest first: at 00:20 the third (10 s) is before the second (50 s) and starts at once.
    assert_eq!(played(Order::Sjf, 1, &of), (3, 1, 90, 8));
}

#[test]
fn what_ends_at_an_instant_is_free_for_what_arrives_at_it() {
    assert_eq!(played(Order::Fifo, 1, &[("00:00", 60, 8), ("01:00", 60, 8)]), (2, 0, 0, 8));
    // Nothing is held by a job that takes no time, and who is behind it starts at the same instant.
    assert_eq!(played(Order::Fifo, 1, &[("00:00", 0, 8), ("00:00", 5, 8)]), (2, 0, 0, 8));
    assert_eq!(played(Order::Fifo, 1, &[("00:00", 5, 0)]), (1, 0, 0, 0));
}

#[test]
fn equal_submissions_go_by_row() {
    // Both take the whole host; the second row waits for the first: 10 s, not 20.
    assert_eq!(played(Order::Fifo, 1, &[("00:00", 10, 8), ("00:00", 20, 8)]), (2, 1, 10, 8));
    assert_eq!(played(Order::Sjf, 1, &[("00:00", 20, 8), ("00:00", 10, 8)]), (2, 1, 10, 8));
}

#[test]
fn a_job_goes_to_the_fullest_host_with_room_and_a_large_one_to_whole_hosts() {
    let mut pool = Pool::new(3, 8);
    pool.free = vec![8, 3, 5];
    assert_eq!(pool.place(3), Some(vec![(1, 3)]));
    assert_eq!(pool.place(4), Some(vec![(2, 4)]));
    assert_eq!(pool.place(6), Some(vec![(0, 6)]));
    // Eight of host 0, and of the next in order, host 2, its five; not six.
    assert_eq!(pool.place(13), Some(vec![(0, 8), (2, 5)]));
    assert_eq!((pool.place(14), pool.place(16)), (None, None));
    pool.free = vec![8, 8, 8];
    assert_eq!(pool.place(20), Some(vec![(0, 8), (1, 8), (2, 4)]));
    assert_eq!(pool.place(25), None);
    // The rest goes to the next in order though a fuller host would do.
    pool.free = vec![2, 8, 6];
    assert_eq!(pool.place(10), Some(vec![(1, 8), (2, 2)]));
}

#[test]
fn a_job_larger_than_its_pool_is_rejected_and_tenants_are_apart() {
    let jobs = format!(
        "{HEADER}2017-10-01 00:00:00,60.0,8,0,a\n2017-10-01 00:00:00,60.0,9,0,a\n2017-10-01 00:00:30,60.0,4,0,b\n\
         2017-10-01 00:01:00,60.0,8,0,b\n2017-10-01 00:00:00,60.0,1,0,nobody\n"
    );
    let outcome = trace(&jobs, "vc,node num\na,1\nb,1\nc,4\n").replay(Order::Fifo, None, EIGHT);
    let waits = |jobs, rejected, queued, queueing_ms, completion_ms, peak_cards| Waits {
        jobs,
        rejected,
        queued,
        queueing_ms,
        completion_ms,
        peak_cards,
    };
    assert_eq!(outcome.tenants["a"], waits(1, 1, 0, 0, 60_000, 8));
    // The second of b waits from 01:00 to 01:30.
    assert_eq!(outcome.tenants["b"], waits(2, 0, 1, 30_000, 150_000, 8));
    assert_eq!(outcome.tenants["c"], Waits::default());
    assert_eq!(outcome.tenants["c"].mean_queueing_ms(), None);
    // At 00:30 eight of a and four of b; at 01:00 a is through.
    assert_eq!(outcome.total, waits(3, 1, 1, 30_000, 210_000, 12));
    assert_eq!(outcome.total.mean_completion_ms(), Some(70_000));
    assert_eq!((outcome.without_pool, outcome.outside), (1, 0));
}

#[test]
fn whole_months_are_those_the_trace_covers() {
    let of = |first: &str, last: &str| {
        let jobs = format!("{HEADER}{first},1.0,1,0,a\n{last},1.0,1,0,a\n");
        let months = trace(&jobs, "vc,node num\na,1\n").whole_months()?;
        Some((months.start().to_string(), months.end().to_string()))
    };
    let october = |end: &str| Some(("2017-10-01T00:00:00Z".to_owned(), end.to_owned()));
    assert_eq!(of("2017-09-04 10:00:00", "2017-12-22 08:00:00"), october("2017-12-01T00:00:00Z"));
    assert_eq!(of("2017-11-01 00:00:00", "2017-10-01 00:00:00"), october("2017-11-01T00:00:00Z"));
    assert_eq!(of("2017-10-01 00:00:01", "2017-11-30 00:00:00"), None);
}

#[test]
fn faults_name_their_file_line_and_field() {
    let said = |jobs: &str, pools: &str| {
        Trace::read(("jobs.csv", jobs.as_bytes()), ("pools.csv", pools.as_bytes())).unwrap_err().to_string()
    };
    let pools = "vc,node num\na,1\n";
    assert_eq!(
        said(&format!("{HEADER}today,1.0,1,0,a\n2017-10-01 00:00:00,soon,1,0,a\n"), pools),
        "jobs.csv, line 2, timestamp: \"today\" is no time such as 2017-10-01 06:30:00\n\
         jobs.csv, line 3, duration: \"soon\" is no number of seconds, with at most three decimals that aren't zero"
    );
    assert_eq!(
        said(&format!("{HEADER}2017-10-01 00:00:00,1.0,-1,0,a\n"), pools),
        "jobs.csv, line 2, num_gpus: \"-1\" is no whole number from 0 to 10000000"
    );
    assert_eq!(said(HEADER, "vc,node num\na,1\na,2\n"), "pools.csv, line 3, vc: \"a\" has a pool already");
}

/// The whole trace; none where the data isn't there.
fn philly(order: Order) -> Option<Outcome> {
    let (jobs, pools) = (shared_data("philly/philly.csv")?, shared_data("philly/philly_vc.csv")?);
    let trace = Trace::read(("jobs", &jobs), ("pools", &pools)).unwrap();
    Some(trace.replay(order, trace.whole_months(), EIGHT))
}

#[test]
fn philly_in_order_waits_as_published() {
    let Some(outcome) = philly(Order::Fifo) else { return };
    let total = &outcome.total;
    assert_eq!(total.jobs, 68_503);
    assert_eq!((total.mean_queueing_ms(), total.mean_completion_ms()), (Some(104_611), Some(11_585_292)));
    let tenant = &outcome.tenants["6214e9"];
    assert_eq!((tenant.mean_queueing_ms(), tenant.queued), (Some(5_757), 279));
    assert_eq!(outcome.tenants["2869ce"].mean_queueing_ms(), Some(11_343_368));
}

#[test]
fn philly_shortest_first_waits_as_published() {
    let Some(outcome) = philly(Order::Sjf) else { return };
    assert_eq!(outcome.total.mean_queueing_ms(), Some(62_746));
    assert_eq!(outcome.total.mean_completion_ms(), Some(11_543_427));
}
