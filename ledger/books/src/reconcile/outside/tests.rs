use super::billing::Weights;
use super::*;
use crate::attempt::Attempt;
use crate::bill::Charge;
use crate::cell::Cell;
use crate::line::Line;
use crate::prices::PriceBook;
use crate::report::{Dimension, ReportAttempt, ReportInput};
use crate::slots::Slots;
use crate::table::{Table, Value};
use cardhour_domain::{CardState, JobState, Money, Month};
use proptest::prelude::*;

mod reserved;

/// `KEY ACCOUNT USER CARDS START END` by line, in card-seconds of UTC; `+` behind the end of one that still runs.
fn books(text: &str) -> Vec<ReportAttempt> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(attempt).collect()
}

fn attempt(line: &str) -> ReportAttempt {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [key, project, user, cards, start, end] = words[..] else { panic!("{line}") };
    let (cluster, rest) = key.split_once('/').unwrap();
    let (job, run) = rest.rsplit_once('/').unwrap();
    let (end, open) = end.strip_suffix('+').map_or((end, false), |end| (end, true));
    let state = if open { JobState::Running } else { JobState::Completed };
    let mut attempt = Attempt::new(AttemptKey::new(cluster, job, run), cluster.into(), job.into(), state);
    let name = |name: &str| (name != "-").then(|| Name::from(name));
    (attempt.project, attempt.user) = (name(project), name(user));
    attempt.cards = match cards.split_once('/') {
        Some((n, of)) => CardShare::from_fraction(n.parse().unwrap(), of.parse().unwrap()).unwrap(),
        None => CardShare::from_cards(cards.parse().unwrap()).unwrap(),
    };
    attempt.is_final = !open;
    attempt.started_at = Some(at(start));
    attempt.ended_at = (!open).then(|| at(end));
    attempt.as_of = Some(at(end));
    ReportAttempt::from(&attempt)
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(&format!("{text}Z")).unwrap()
}

fn hours(from: &str, to: &str) -> Option<Interval> {
    Interval::new(at(from), at(to))
}

/// Where usage can't be cut: what records claim.
fn explain(ours: &[ReportAttempt], theirs: &Theirs, frame: &Frame) -> Vec<Explained> {
    super::explain(ours, theirs, frame, &Billed::unknown())
}

fn utc(range: Option<Interval>) -> Frame {
    Frame { range, zone: Zone::UTC, their_zone: None }
}

/// Lines as `WHO OURS THEIRS CAUSE=PART …`, in card-seconds.
fn told(lines: &[Explained]) -> Vec<String> {
    let seconds = |time: CardTime| {
        let second = 1000 * i128::from(CardShare::PARTS_PER_CARD);
        assert_eq!(time.part_ms() % second, 0, "whole card-seconds");
        time.part_ms() / second
    };
    lines
        .iter()
        .map(|line| {
            assert_eq!(line.parts.sum(), line.ours - line.theirs);
            let who = [&line.who.project, &line.who.user, &line.who.job];
            let who: Vec<&str> = who.into_iter().flatten().map(|name| &**name).collect();
            let mut text = format!("{} {} {}", who.join("/"), seconds(line.ours), seconds(line.theirs));
            for cause in Cause::ALL.into_iter().filter(|cause| !line.parts.of(*cause).is_zero()) {
                text.push_str(&format!(" {}={}", cause.name(), seconds(line.parts.of(cause))));
            }
            text
        })
        .collect()
}

/// What sreport of Slurm 22.05 printed of three jobs of a test cluster, asked for 11:20 to 12:40 at 12:01.
const REPORT: &str = "\
--------------------------------------------------------------------------------
Cluster/Account/User Utilization 2026-11-30T11:00:00 - 2026-11-30T11:59:59 (3600 secs)
Usage reported in TRES Seconds
--------------------------------------------------------------------------------
Cluster|Account|Login|Proper Name|TRES Name|Used
lab|root|||gres/gpu|1648
lab|root|||billing|7179
lab|prod|||gres/gpu|960
lab|prod|labcb||gres/gpu|960
lab|prod|labcb||billing|4160
lab|research|||gres/gpu|688
lab|research|labca||gres/gpu|688
lab|research|labca||billing|3019
";

/// Those jobs, as sacct has them: 1, 2 and 3 cards; the second was suspended for 28 s.
const JOBS: &str = "
    lab/1/db1 research labca 1 2026-11-30T11:54:40 2026-11-30T11:57:14
    lab/2/db2 research labca 2 2026-11-30T11:54:40 2026-11-30T11:59:07
    lab/3/db3 prod     labcb 3 2026-11-30T11:54:40 2026-11-30T12:00:50
";

const SACCT: &str = "\
JobID|JobIDRaw|DBIndex|Cluster|Partition|Account|User|State|Submit|Start|End|ElapsedRaw|Elapsed|Suspended|NNodes|NodeList|AllocTRES
1|1|1|lab|gpu|research|labca|CANCELLED by 0|2026-11-30T11:54:39|2026-11-30T11:54:40|2026-11-30T11:57:14|154|00:02:34|00:00:00|1|gpu1|billing=4,cpu=1,gres/gpu:h100=1,gres/gpu=1,mem=100M,node=1
2|2|2|lab|gpu|research|labca|CANCELLED by 0|2026-11-30T11:54:39|2026-11-30T11:54:40|2026-11-30T11:59:07|239|00:03:59|00:00:28|1|gpu1|billing=9,cpu=1,gres/gpu:h100=2,gres/gpu=2,mem=100M,node=1
3|3|3|lab|gpu|prod|labcb|CANCELLED by 0|2026-11-30T11:54:39|2026-11-30T11:54:40|2026-11-30T12:00:50|370|00:06:10|00:00:00|1|gpu2|billing=13,cpu=1,gres/gpu:h100=3,gres/gpu=3,mem=100M,node=1
";

/// 154 + 2 × 267 = 688 of research, suspended time with it; prod has 3 × 370 = 1,110, of which sreport has 3 × 320 up to 12:00.
#[test]
fn what_sreport_leaves_out_of_an_hour_that_is_not_rolled_up_is_the_window() {
    let theirs = sreport::read(REPORT).unwrap();
    let asked = utc(hours("2026-11-30T11:20:00", "2026-11-30T12:40:00"));
    let expected = ["prod/labcb 1110 960 window=150", "research/labca 688 688"];
    assert_eq!(told(&explain(&books(JOBS), &theirs, &asked)), expected);
    // In the report's own hours there is no difference at all.
    let expected = ["prod/labcb 960 960", "research/labca 688 688"];
    assert_eq!(told(&explain(&books(JOBS), &theirs, &utc(None))), expected);
}

/// One card from 10:20 to 12:40 is 2 h 20 min = 8,400 s; a report of 11:00 to 12:00 has 3,600 of them, one of 10:00 to 13:00 all.
#[test]
fn t07_hours_that_sreport_cut_are_told_to_the_second() {
    let jobs = books("lab/7/db7 a u 1 2026-03-02T10:20:00 2026-03-02T12:40:00");
    let report = |from: &str, last: &str, used: &str| {
        let text = REPORT.lines().take(5).collect::<Vec<_>>().join("\n");
        let text = text.replace("2026-11-30T11:00:00", from).replace("2026-11-30T11:59:59", last);
        sreport::read(&format!("{text}\nlab|a|u||gres/gpu|{used}\n")).unwrap()
    };
    let asked = utc(hours("2026-03-02T10:20:00", "2026-03-02T12:40:00"));
    let inner = report("2026-03-02T11:00:00", "2026-03-02T11:59:59", "3600");
    assert_eq!(told(&explain(&jobs, &inner, &asked)), ["a/u 8400 3600 window=4800"]);
    let outer = report("2026-03-02T10:00:00", "2026-03-02T12:59:59", "8400");
    assert_eq!(told(&explain(&jobs, &outer, &asked)), ["a/u 8400 8400"]);
    // One second that is missing in the report is no rounding: its unit is the second.
    let short = report("2026-03-02T11:00:00", "2026-03-02T11:59:59", "3599");
    assert_eq!(told(&explain(&jobs, &short, &asked)), ["a/u 8400 3599 window=4800 unexplained=1"]);
}

/// 688 s are 11 min 28 s and 960 s are 16 min: sreport printed 11 and 16, and in hours 0 and 0.
#[test]
fn figures_in_minutes_and_hours_are_within_half_a_unit() {
    let minutes = "lab|prod|labcb||gres/gpu|16\nlab|research|labca||gres/gpu|11\n";
    let head = REPORT.lines().take(5).collect::<Vec<_>>().join("\n");
    let theirs = sreport::read(&format!("{}\n{minutes}", head.replace("TRES Seconds", "TRES Minutes"))).unwrap();
    let lines = explain(&books(JOBS), &theirs, &utc(None));
    assert_eq!(told(&lines), ["prod/labcb 960 960", "research/labca 688 660 rounding=28"]);
    // 12 would be 720 s, 32 too many for half a minute.
    let wrong = format!("{}\n{}", head.replace("TRES Seconds", "TRES Minutes"), minutes.replace("|11", "|12"));
    let lines = explain(&books(JOBS), &sreport::read(&wrong).unwrap(), &utc(None));
    assert_eq!(told(&lines)[1], "research/labca 688 720 unexplained=-32");
    let none = minutes.replace("|16", "|0").replace("|11", "|0");
    let theirs = sreport::read(&format!("{}\n{none}", head.replace("TRES Seconds", "TRES Hours/Percentage of Total")));
    let lines = explain(&books(JOBS), &theirs.unwrap(), &utc(None));
    assert_eq!(told(&lines), ["prod/labcb 960 0 rounding=960", "research/labca 688 0 rounding=688"]);
}

/// November in Shanghai begins 8 hours earlier than in UTC. A card held from 2026-10-31T12:00Z for a day: 20 h of it are in our November, 12 in a
/// report made on a clock of UTC.
#[test]
fn a_month_of_another_zone_is_the_time_zone() {
    let jobs = books("lab/7/db7 a u 1 2026-10-31T12:00:00 2026-11-01T12:00:00");
    let head = REPORT.lines().take(5).collect::<Vec<_>>().join("\n");
    let head = head.replace("2026-11-30T11:00:00", "2026-11-01T00:00:00").replace("T11:59:59", "T23:59:59");
    let theirs = sreport::read(&format!("{head}\nlab|a|u||gres/gpu|43200\n")).unwrap();
    let zone = Zone::parse("Asia/Shanghai").unwrap();
    let month = Month::new(2026, 11).unwrap().interval(zone);
    let frame = Frame { range: Some(month), zone, their_zone: Some(Zone::UTC) };
    assert_eq!(told(&explain(&jobs, &theirs, &frame)), ["a/u 72000 43200 time_zone=28800"]);
    // Asked for the very hours of the report there is nothing to explain.
    let theirs_asked = Frame { range: hours("2026-11-01T00:00:00", "2026-12-01T00:00:00"), ..frame };
    assert_eq!(told(&explain(&jobs, &theirs, &theirs_asked)), ["a/u 43200 43200"]);
    assert_eq!(told(&explain(&jobs, &theirs, &Frame { range: None, ..frame })), ["a/u 43200 43200"]);
    // Without being told of the zone, eight hours are missing there.
    let frame = Frame { their_zone: None, ..frame };
    assert_eq!(told(&explain(&jobs, &theirs, &frame)), ["a/u 72000 43200 unexplained=28800"]);
}

#[test]
fn lines_that_one_side_lacks_are_named() {
    let jobs = books(
        "lab/8/db8 prod labcb 3 2026-11-30T11:54:40 2026-11-30T12:00:50\nlab/9/db9 new bob 1 2026-11-30T11:00:00 2026-11-30T11:10:00",
    );
    let theirs = sreport::read(REPORT).unwrap();
    let expected = ["prod/labcb 960 960", "research/labca 0 688 not_in_ours=-688", "new/bob 600 0 not_in_theirs=600"];
    assert_eq!(told(&explain(&jobs, &theirs, &utc(None))), expected);
}

/// A seventh of a card for 3,500 s is 500 card-seconds here; Slurm counts the slice as one gres/gpu, 3,500.
#[test]
fn a_slice_that_slurm_counts_as_a_card_is_a_share() {
    let jobs = books("lab/7/db7 a u 1/7 2026-11-30T11:00:00 2026-11-30T11:58:20");
    let head = REPORT.lines().take(5).collect::<Vec<_>>().join("\n");
    let theirs = sreport::read(&format!("{head}\nlab|a|u||gres/gpu|3500\n")).unwrap();
    assert_eq!(told(&explain(&jobs, &theirs, &utc(None))), ["a/u 500 3500 shares=-3000"]);
}

/// Our last export vouches for 11:30; the report counts on to 12:00, which is at most 30 min more of one card.
#[test]
fn a_job_that_runs_on_is_explained_up_to_the_end_of_the_report() {
    let jobs = books("lab/7/db7 a u 1 2026-11-30T11:00:00 2026-11-30T11:30:00+");
    let head = REPORT.lines().take(5).collect::<Vec<_>>().join("\n");
    let theirs = |used| sreport::read(&format!("{head}\nlab|a|u||gres/gpu|{used}\n")).unwrap();
    assert_eq!(told(&explain(&jobs, &theirs(3600), &utc(None))), ["a/u 1800 3600 still_open=-1800"]);
    assert_eq!(told(&explain(&jobs, &theirs(3700), &utc(None))), ["a/u 1800 3700 unexplained=-1900"]);
}

/// Usage of the first attempt.
fn held(slot: u32, card_time: CardTime, billed_time: CardTime) -> Cell {
    Cell {
        attempt: Some(0),
        state: CardState::Held,
        cluster: "lab".into(),
        pool: None,
        node: None,
        model: None,
        mig_profile: None,
        share: None,
        reservation: None,
        set_aside: None,
        slot,
        card_time,
        billed_time,
        unseen: CardTime::ZERO,
        unproven: CardTime::ZERO,
        used: None,
    }
}

/// Two cards from 10:00 to 12:00, of which the last quarter of an hour was an outage of the node: 14,400 s claimed and counted by Slurm, 12,600 billed.
#[test]
fn what_is_held_and_not_billed_is_told() {
    let jobs = books("lab/7/db7 a u 2 2026-03-02T10:00:00 2026-03-02T12:00:00");
    let head = REPORT.lines().take(5).collect::<Vec<_>>().join("\n");
    let head = head.replace("2026-11-30T11:00:00", "2026-03-02T10:00:00").replace("2026-11-30", "2026-03-02");
    let theirs = sreport::read(&format!("{head}\nlab|a|u||gres/gpu|14400\n")).unwrap();
    let frame = utc(None);
    let range = frame.asked(&theirs).flatten().unwrap();
    assert_eq!(Some(range), hours("2026-03-02T10:00:00", "2026-03-02T12:00:00"));
    let slots = Slots::new(range, None, Zone::UTC, None).unwrap();
    let cell = |start: &str, billed: bool| {
        let time = card_seconds(if billed { 12_600 } else { 1_800 }).unwrap();
        held(slots.slot_of(at(start)).unwrap(), time, if billed { time } else { CardTime::ZERO })
    };
    let cells =
        vec![cell("2026-03-02T10:00:00", true), cell("2026-03-02T11:45:00", false), cell("2026-03-02T09:00:00", true)];
    let input = ReportInput { attempts: jobs.clone(), cells, ..ReportInput::default() };
    let lines = super::explain(&jobs, &theirs, &frame, &Billed::of(&input, None, &slots));
    assert_eq!(told(&lines), ["a/u 12600 14400 billed_otherwise=-1800"]);
}

/// Two cards, booked from 10:00 to 12:00 and closed so, 14,400 s; then the record turned out to end at 11:00, as Slurm has it: 7,200 s. The other 7,200 are a correction.
#[test]
fn what_was_told_after_a_close_is_not_billed_otherwise_but_corrected_later() {
    let jobs = books("lab/7/db7 a u 2 2026-03-02T10:00:00 2026-03-02T11:00:00");
    let theirs = sacct::read(
        "JobID|Cluster|Account|User|State|Start|End|ElapsedRaw|AllocTRES\n\
         7|lab|a|u|COMPLETED|2026-03-02T10:00:00|2026-03-02T11:00:00|3600|gres/gpu=2\n",
        Zone::UTC,
        None,
    );
    let frame = utc(hours("2026-03-02T00:00:00", "2026-03-03T00:00:00"));
    let slots = Slots::new(frame.range.unwrap(), None, Zone::UTC, None).unwrap();
    let of = |seconds: i128| {
        let time = card_seconds(seconds).unwrap();
        let slot = slots.slot_of(at("2026-03-02T10:00:00")).unwrap();
        ReportInput { attempts: jobs.clone(), cells: vec![held(slot, time, time)], ..ReportInput::default() }
    };
    let billed = Billed::of(&of(14_400), Some(&of(7_200)), &slots);
    let lines = super::explain(&jobs, &theirs.unwrap(), &frame, &billed);
    assert_eq!(told(&lines), ["a/u/7 14400 7200 corrected_later=7200"]);
}

/// Requeued three times, one card: the first run ended before the list begins, the second is in its time but not in it (sacct without -D), the third is its row.
#[test]
fn runs_of_a_requeued_job_that_a_list_has_no_row_of_are_cut_or_lacking() {
    let jobs = books(
        "lab/7/db1 a u 1 2026-02-28T10:00:00 2026-02-28T11:00:00
         lab/7/db2 a u 1 2026-03-02T08:00:00 2026-03-02T08:30:00
         lab/7/db3 a u 1 2026-03-02T10:00:00 2026-03-02T10:10:00
         lab/8/db4 a u 1 2026-03-01T00:00:00 2026-03-01T00:01:00",
    );
    let text = "JobID|Cluster|Account|User|State|Start|End|ElapsedRaw|AllocTRES\n\
                8|lab|a|u|COMPLETED|2026-03-01T00:00:00|2026-03-01T00:01:00|60|gres/gpu=1\n\
                7|lab|a|u|COMPLETED|2026-03-02T10:00:00|2026-03-02T10:10:00|600|gres/gpu=1\n";
    let theirs = sacct::read(text, Zone::UTC, None).unwrap();
    let whole = told(&explain(&jobs, &theirs, &utc(None)));
    assert_eq!(whole, ["a/u/8 60 60", "a/u/7 6000 600 window=3600 not_in_theirs=1800"]);
    // Of March alone the first run is neither there nor asked for.
    let march = told(&explain(&jobs, &theirs, &utc(hours("2026-03-01T00:00:00", "2026-04-01T00:00:00"))));
    assert_eq!(march, ["a/u/8 60 60", "a/u/7 2400 600 not_in_theirs=1800"]);
    // A list that lacks the last run: its row is of the one that is nearest.
    let other =
        text.replace("2026-03-02T10:00:00|2026-03-02T10:10:00|600", "2026-03-02T08:00:00|2026-03-02T08:30:00|1800");
    let theirs = sacct::read(&other, Zone::UTC, None).unwrap();
    let whole = told(&explain(&jobs, &theirs, &utc(None)));
    assert_eq!(whole, ["a/u/8 60 60", "a/u/7 6000 1800 window=4200"]);
}

#[test]
fn a_report_that_cannot_be_compared_says_what_to_ask_for() {
    let fails = |text: &str| sreport::read(text).unwrap_err().to_string();
    let body = REPORT.lines().skip(4).collect::<Vec<_>>().join("\n");
    assert!(fails(&body).contains("without -n"), "{}", fails(&body));
    assert!(
        fails(&REPORT.replace("TRES Seconds", "Percentage of Total"))
            .starts_with("line 3, unit: \"Percentage of Total\"")
    );
    assert!(fails(&REPORT.replace("gres/gpu", "cpu")).contains("-T gres/gpu"));
    assert!(fails(&REPORT.replace("|960", "|96x")).starts_with("line 8, Used: \"96x\""));
    assert!(fails("").contains("-P"));
    assert!(fails(&REPORT.replace("Used", "Energy")).starts_with("line 5, Used"));
}

#[test]
fn both_ways_of_grouping_and_the_closing_bar_are_read_alike() {
    let by_user = "\
Cluster/User/Account Utilization 2026-11-30T11:00:00 - 2026-11-30T11:59:59 (3600 secs)
Usage reported in TRES Seconds
--------------------------------------------------------------------------------
Cluster|Login|Proper Name|Account|TRES Name|Used|
lab|labca||research|gres/gpu|688|
lab|labcb||prod|gres/gpu|960|
";
    let mut by_account = sreport::read(REPORT).unwrap();
    by_account.lines.reverse();
    assert_eq!(sreport::read(by_user).unwrap().lines, by_account.lines);
    // As a tree, names are indented.
    let tree =
        REPORT.replace("lab|prod|labcb", "lab|  prod|labcb").replace("lab|research|labca", "lab|  research|labca");
    by_account.lines.reverse();
    assert_eq!(sreport::read(&tree).unwrap().lines, by_account.lines);
}

/// 2 × 28 s suspended are held here and not in sacct's elapsed time.
#[test]
fn suspended_time_is_what_sacct_leaves_out() {
    let theirs = sacct::read(SACCT, Zone::UTC, None).unwrap();
    let expected = ["research/labca/1 154 154", "research/labca/2 534 478 suspended=56", "prod/labcb/3 1110 1110"];
    assert_eq!(told(&explain(&books(JOBS), &theirs, &utc(None))), expected);
    let asked = utc(hours("2026-11-30T11:00:00", "2026-11-30T12:00:00"));
    assert_eq!(told(&explain(&books(JOBS), &theirs, &asked))[2], "prod/labcb/3 960 1110 window=-150");
}

/// A weight of 4.5 a card: 4.5, 9 and 13.5, which Slurm has as 4, 9 and 13. Over 154, 239 and 370 s that is 693, 2,151 and 4,995 exactly, and 616,
/// 2,151 and 4,810 by Slurm.
#[test]
fn m21_what_slurm_cuts_off_its_billing_is_kept_beside_it() {
    let weights = Weights::parse("CPU=0.0,GRES/gpu=4.5").unwrap();
    let theirs = sacct::read(SACCT, Zone::UTC, Some(&weights)).unwrap();
    let lines = explain(&books(JOBS), &theirs, &utc(None));
    let told: Vec<String> = lines
        .iter()
        .map(|line| {
            let billing = line.billing.as_ref().unwrap();
            let number = |n: rust_decimal::Decimal| n.normalize().to_string();
            let all = [billing.exact.unwrap(), billing.slurm, billing.cut, billing.unexplained];
            all.map(number).join(" ")
        })
        .collect();
    assert_eq!(told, ["693 616 77 0", "2151 2151 0 0", "4995 4810 185 0"]);
    // By account, in billing-hours: 2,844 and 2,767 of research are 0.79 and 0.768611.
    let by = [Dimension::Project];
    let shown = table(Tool::Sacct, &lines, &by, false, String::new());
    assert_eq!(column(&shown, "exact_billing_hours"), ["1.387500", "0.790000", "2.177500"]);
    assert_eq!(column(&shown, "slurm_billing_hours"), ["1.336111", "0.768611", "2.104722"]);
    assert_eq!(column(&shown, "whole_number_cut_hours"), ["0.051389", "0.021389", "0.072778"]);
    assert_eq!(column(&shown, "unexplained_billing_hours"), ["0.000000", "0.000000", "0.000000"]);
    // Other weights than those of the cluster leave a rest that is no cut.
    let other = sacct::read(SACCT, Zone::UTC, Some(&Weights::parse("GRES/gpu=6").unwrap())).unwrap();
    let first = other.lines[0].billing.as_ref().unwrap();
    assert_eq!((first.cut.to_string(), first.unexplained.to_string()), ("0".into(), "308".into()));
}

/// 32 GiB at 0.25 a GiB are 8, with 4 cores at 1.0 and two cards at 16.125: 44.25, which Slurm has as 44.
#[test]
fn weights_of_memory_are_by_its_unit() {
    let weights = Weights::parse("CPU=1.0, Mem=0.25G, GRES/gpu=16.125").unwrap();
    let billing =
        billing::Billing::of("billing=44,cpu=4,gres/gpu=2,mem=32G,node=1", Some(&weights), 1000).unwrap().unwrap();
    assert_eq!(
        (billing.exact.unwrap().normalize().to_string(), billing.cut.normalize().to_string()),
        ("44.25".into(), "0.25".into())
    );
    assert!(Weights::parse("GRES/gpu").unwrap_err().contains("GRES/gpu=4.5"));
    assert!(Weights::parse(" ").is_err());
}

#[test]
fn runs_of_one_job_are_told_apart_by_their_start() {
    let jobs = books(
        "lab/7/db7 a u 1 2026-03-01T10:00:00 2026-03-01T10:10:00\nlab/7/db8 a u 1 2026-03-01T11:00:00 2026-03-01T11:20:00",
    );
    let text = "JobID|Account|User|State|Start|ElapsedRaw|AllocTRES\n\
                7|a|u|REQUEUED|2026-03-01T10:00:00|600|gres/gpu=1\n7|a|u|COMPLETED|2026-03-01T11:00:00|1100|gres/gpu=1\n\
                7.batch|||COMPLETED|2026-03-01T11:00:00|1100|gres/gpu=1\n8|a|u|COMPLETED|2026-03-01T10:00:00|5|cpu=1\n\
                9|a|u|COMPLETED|2026-03-01T11:00:00|60|gres/gpu=2\n";
    let theirs = sacct::read(text, Zone::UTC, None).unwrap();
    let expected = ["a/u/7 600 600", "a/u/7 1200 1100 unexplained=100", "a/u/9 0 120 not_in_ours=-120"];
    assert_eq!(told(&explain(&jobs, &theirs, &utc(None))), expected);
    assert_eq!(theirs.notes, ["1 steps hold nothing of their own, and are passed over"]);
    let without = text.replace("AllocTRES", "ReqTRES");
    assert_eq!(sacct::read(&without, Zone::UTC, None).unwrap_err().to_string(), "sacct was not asked for AllocTRES");
}

/// Our books have a year, the list one day of it: nothing outside of that day is missing there.
#[test]
fn a_list_of_jobs_lacks_only_what_lies_in_its_time() {
    let jobs = books(
        "lab/1/db1 a u 1 2026-01-01T00:00:00 2026-01-02T00:00:00\nlab/7/db7 a u 1 2026-03-01T10:00:00 2026-03-01T10:10:00\nlab/8/db8 a u 1 2026-03-01T10:05:00 2026-03-01T10:06:00",
    );
    let text = "JobID|Account|User|State|Start|End|ElapsedRaw|AllocTRES\n7|a|u|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:10:00|600|gres/gpu=1\n";
    let theirs = sacct::read(text, Zone::UTC, None).unwrap();
    assert_eq!(told(&explain(&jobs, &theirs, &utc(None))), ["a/u/7 600 600", "a/u/8 60 0 not_in_theirs=60"]);
}

/// An answer of `/allocation` with these allocations: name, namespace, pod, start, end, GPU-hours; the window is 10:00 to 10:15.
fn allocations(rows: &[[&str; 6]]) -> Theirs {
    let rows: Vec<String> = rows
        .iter()
        .map(|[name, namespace, pod, start, end, hours]| {
            format!(
                r#"{name:?}: {{"name": {name:?}, "properties": {{"cluster": "cluster-one", "namespace": {namespace:?}, "pod": {pod:?}}},
                "window": {{"start": "2026-03-01T10:00:00Z", "end": "2026-03-01T10:15:00Z"}}, "start": "2026-03-01T{start}Z",
                "end": "2026-03-01T{end}Z", "minutes": 15, "gpuCount": 1, "gpuHours": {hours}, "gpuCost": 0.5}}"#
            )
        })
        .collect();
    opencost::read(&format!(r#"{{"code": 200, "data": [{{{}}}]}}"#, rows.join(","))).unwrap()
}

const POD: &str = "k8s/team-a/database-0/uid1 team-a - 2 2026-03-01T09:00:00 2026-03-01T11:00:00";

/// Two cards for 15 minutes are 1,800 card-seconds; it has ten minutes of the pod, 1,200, which is 2 × 10 / 60 = 0.33333 hours: the third
/// of a hundred thousandth that is missing is rounding.
#[test]
fn m13_minutes_that_opencost_did_not_see_are_its_lifetime() {
    let theirs = allocations(&[["p", "team-a", "database-0", "10:05:00", "10:15:00", "0.33333"]]);
    let lines = explain(&books(POD), &theirs, &utc(None));
    let seconds = |cause| lines[0].parts.of(cause).part_ms() / i128::from(CardShare::PARTS_PER_CARD);
    assert_eq!(lines[0].ours.card_hours().to_string(), "0.500000");
    assert_eq!((seconds(Cause::Lifetime), seconds(Cause::Rounding), seconds(Cause::Unexplained)), (600_000, 12, 0));
}

/// Prometheus was down for a third of the window: 2 cards over 15 minutes are 0.5 hours, and it has 0.33333 with ends as if nothing was missing.
/// No rule makes a third of it, so that it is not explained away.
#[test]
fn m14_a_rate_over_a_hole_is_not_explained_away() {
    let theirs = allocations(&[["p", "team-a", "database-0", "10:00:00", "10:15:00", "0.33333"]]);
    let lines = explain(&books(POD), &theirs, &utc(None));
    assert_eq!(lines[0].parts.of(Cause::Unexplained).card_hours().to_string(), "0.166670");
}

/// Two kube-state-metrics: 1.0 hours where 0.5 were held.
#[test]
fn m15_what_opencost_doubled_is_counted_twice() {
    let theirs = allocations(&[["p", "team-a", "database-0", "10:00:00", "10:15:00", "1.0"]]);
    assert_eq!(
        told(&explain(&books(POD), &theirs, &utc(None))),
        ["team-a/team-a/database-0 1800 3600 counted_twice=-1800"]
    );
}

/// GPU-hours of OpenCost are those asked for, whether its basis is usage or allocation: they are what was held here, and not what was used.
#[test]
fn m16_gpu_hours_of_opencost_are_held_hours() {
    let theirs = allocations(&[["p", "team-a", "database-0", "10:00:00", "10:15:00", "0.5"]]);
    assert_eq!(told(&explain(&books(POD), &theirs, &utc(None))), ["team-a/team-a/database-0 1800 1800"]);
}

/// Two pods of one name in two namespaces are two lines (K10); by namespace, a line is of all its pods.
#[test]
fn pods_are_told_by_namespace_and_idle_time_is_a_row_of_its_own() {
    let jobs = books(&format!("{POD}\nk8s/team-b/database-0/uid2 team-b - 1 2026-03-01T10:00:00 2026-03-01T10:10:00"));
    let theirs = allocations(&[
        ["a", "team-a", "database-0", "10:00:00", "10:15:00", "0.5"],
        ["b", "team-b", "database-0", "10:00:00", "10:10:00", "0.166667"],
        ["cluster-one/__idle__", "", "", "10:00:00", "10:15:00", "0.25"],
        ["c", "kube-system", "dns", "10:00:00", "10:15:00", "0"],
    ]);
    assert_eq!(theirs.notes, ["1 allocations without GPU-hours are passed over"]);
    let lines = explain(&jobs, &theirs, &utc(None));
    let told: Vec<(Option<&str>, bool, String)> = lines
        .iter()
        .map(|line| {
            (
                line.who.project.as_deref(),
                line.parts.of(Cause::Unexplained).is_zero(),
                line.parts.of(Cause::Idle).card_hours().to_string(),
            )
        })
        .collect();
    let none = "0.000000".to_owned();
    let expected = [
        (Some("team-a"), true, none.clone()),
        (Some("team-b"), true, none),
        (Some("__idle__"), true, "-0.250000".to_owned()),
    ];
    assert_eq!(told, expected);
}

#[test]
fn an_answer_that_is_none_says_where() {
    let fails = |text: &str| opencost::read(text).unwrap_err().to_string();
    assert!(fails("{").starts_with("the file: "));
    assert_eq!(fails(r#"{"code": 400}"#), "data: there is no list of allocations: save the answer of /allocation");
    let one = |body: &str| fails(&format!(r#"{{"data": [null, {{"team-a": {{{body}}}}}]}}"#));
    assert_eq!(one(r#""gpuHours": 1"#), "data[1].team-a: has no start");
    let window = r#""window": {"start": "2026-03-01T00:00:00Z", "end": "2026-03-02T00:00:00Z"}"#;
    assert_eq!(one(&format!(r#"{window}, "gpuHours": "1""#)), "data[1].team-a.gpuHours: \"1\" is no number");
    assert_eq!(one(&format!(r#"{window}, "gpuHours": -1"#)), "data[1].team-a.gpuHours: -1 is below zero");
    // K15: a window that ends before it starts.
    let broken = window.replace("03-02", "02-02");
    assert!(one(&format!(r#"{broken}, "gpuHours": 1"#)).contains("not after its start"));
}

fn column(table: &Table, name: &str) -> Vec<String> {
    let place = table.columns.iter().position(|column| column.name == name).unwrap_or_else(|| panic!("no {name}"));
    let rows = table.rows.iter().chain(&table.total);
    rows.map(|row| match &row[place] {
        Value::Decimal(number) => number.to_string(),
        other => format!("{other:?}"),
    })
    .collect()
}

#[test]
fn the_table_has_a_column_for_each_cause_there_can_be() {
    let theirs = sreport::read(REPORT).unwrap();
    let asked = utc(hours("2026-11-30T11:20:00", "2026-11-30T12:40:00"));
    let lines = explain(&books(JOBS), &theirs, &asked);
    let by = [Dimension::Cluster, Dimension::Project, Dimension::User];
    let table = table(Tool::Sreport, &lines, &by, false, "t".to_owned());
    let names: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
    let causes = [
        "billed_otherwise",
        "corrected_later",
        "window",
        "time_zone",
        "shares",
        "reserved_unused",
        "counted_twice",
        "still_open",
        "not_in_theirs",
        "not_in_ours",
        "rounding",
        "unexplained",
    ];
    let causes = causes.map(|cause| format!("{cause}_card_hours"));
    let expected: Vec<&str> =
        ["cluster", "project", "user", "attempts", "our_card_hours", "their_card_hours", "difference_card_hours"]
            .into_iter()
            .chain(causes.iter().map(|name| &**name))
            .collect();
    assert_eq!(names, expected);
    // 1,110 s, 960 s and 150 s; 688 s are 0.191111 h.
    assert_eq!(column(&table, "our_card_hours"), ["0.308333", "0.191111", "0.499444"]);
    assert_eq!(column(&table, "window_card_hours"), ["0.041667", "0.000000", "0.041667"]);
    assert!(table.notes.iter().any(|note| note.starts_with("window: ")), "{:?}", table.notes);
    assert_eq!(refused(&[Dimension::Project, Dimension::Day]), Some(&Dimension::Day));
}

fn charge(project: &str, model: &str, window: Option<&str>, seconds: i128, cost: &str, book: &PriceBook) -> Charge {
    // A price is called by its place in the book.
    let price = match model {
        "H200" => Some(Name::from("1")),
        "A10" => Some(Name::from("2")),
        _ => None,
    };
    let cents: i128 = cost.replace('.', "").parse().unwrap_or_default();
    let time = CardTime::from_part_ms(seconds * 1000 * i128::from(CardShare::PARTS_PER_CARD));
    let cost = price.as_ref().map(|_| Money::from_micros(cents * 10_000, book.currency()));
    Charge {
        line: Line::default(),
        month: Month::new(2026, 3).unwrap(),
        org: None,
        project: Some(project.into()),
        user: None,
        model: Some(model.into()),
        price_line: price,
        price_version: None,
        window: window.map(Name::from),
        card_time: time,
        billed_time: time,
        list_cost: cost,
        cost,
    }
}

/// A sheet of 10.00 an hour. Project a: 1 h of H200 at 18.50, 1 h of it at night for 0.6, and 1,000 s of A10 at 6.00: 18.50 + 11.10 + 1.67 (1.6667)
/// = 31.27; by hand (8,200 s) 22.78 (22.7778). The prices differ by 8.50 + 1.10 − 1.111111 = 8.488889, and 0.001111 is rounding.
/// Project b: 1 h of a card without a price: by hand 10.00.
#[test]
fn a_rate_by_hand_differs_by_price_and_by_rounding_alone() {
    let book = PriceBook::parse(
        "currency = \"CNY\"\nzone = \"UTC\"\n[[window]]\nname = \"night\"\nfrom = \"22:00\"\nto = \"08:00\"\n\
         [[price]]\nfrom = \"2026-01-01\"\nmodel = \"H200\"\nper_card_hour = \"18.50\"\nnight = \"0.6\"\n\
         [[price]]\nfrom = \"2026-01-01\"\nmodel = \"A10\"\nper_card_hour = \"6.00\"\n",
    )
    .unwrap()
    .unwrap();
    let charges = [
        charge("a", "H200", None, 3600, "18.50", &book),
        charge("a", "H200", Some("night"), 3600, "11.10", &book),
        charge("a", "A10", None, 1000, "1.67", &book),
        charge("b", "V100", None, 3600, "", &book),
    ];
    let (table, is_unexplained) =
        rate::table(&charges, &book, rust_decimal::Decimal::from(10), &[Dimension::Project], String::new());
    assert!(!is_unexplained);
    assert_eq!(column(&table, "our_cost"), ["31.27", "0.00", "31.27"]);
    assert_eq!(column(&table, "by_hand_cost"), ["22.78", "10.00", "32.78"]);
    assert_eq!(column(&table, "difference"), ["8.49", "-10.00", "-1.51"]);
    assert_eq!(column(&table, "price"), ["8.488889", "0.000000", "8.488889"]);
    assert_eq!(column(&table, "no_price"), ["0.000000", "-10.000000", "-10.000000"]);
    assert_eq!(column(&table, "rounding"), ["0.001111", "0.000000", "0.001111"]);
    // A charge of another amount than its price makes is no rounding.
    let mut wrong = charges.to_vec();
    wrong[0].cost = Some(Money::from_micros(18_600_000, book.currency()));
    assert!(rate::table(&wrong, &book, rust_decimal::Decimal::from(10), &[Dimension::Project], String::new()).1);
}

proptest! {
    /// What attempts are in the report, and of which hours, changes no sum: over all lines our time is what was held in the hours asked for.
    #[test]
    fn all_lines_have_what_the_books_have(
        held in prop::collection::vec((0usize..4, 0usize..3, 1i64..5, 0i64..20_000, 1i64..9_000), 0..12),
        rows in prop::collection::vec((0usize..4, 0usize..3, 0i128..40_000), 0..8),
        (from, length) in (0i64..6, 1i64..6),
        asked in prop::option::of((0i64..20_000, 1i64..20_000)),
    ) {
        let base = at("2026-03-01T00:00:00");
        let moment = |seconds: i64| base.checked_add_ms(seconds * 1000).unwrap();
        let jobs: Vec<ReportAttempt> = held.iter().enumerate().map(|(i, (account, user, cards, from, length))| {
            let text = |at: Timestamp| at.to_string().trim_end_matches('Z').to_owned();
            attempt(&format!("lab/{i}/db{i} a{account} u{user} {cards} {} {}", text(moment(*from)), text(moment(from + length))))
        }).collect();
        let hour = |n: i64| base.to_utc().unwrap().naive_utc() + chrono::TimeDelta::hours(n);
        let lines = rows.iter().map(|(account, user, used)| {
            let name = |name: String| Some(Name::from(name));
            let who = Who { cluster: name("lab".into()), project: name(format!("a{account}")), user: name(format!("u{user}")), job: None };
            TheirLine::new(who, card_seconds(*used).unwrap())
        }).collect();
        let theirs = Theirs { tool: Tool::Sreport, hours: Hours::Local(hour(from), hour(from + length)), lines, unit: card_seconds(1).unwrap(), notes: Vec::new() };
        let asked = asked.and_then(|(from, length)| Interval::new(moment(from), moment(from + length)));
        let lines = explain(&jobs, &theirs, &utc(asked));
        let range = asked.unwrap_or_else(|| Interval::new(moment(from * 3600), moment((from + length) * 3600)).unwrap());
        let ours: CardTime = jobs.iter().filter_map(|job| Some(CardTime::of(job.cards, job.held?.overlap(range)?))).sum();
        prop_assert_eq!(lines.iter().map(|line| line.ours).sum::<CardTime>(), ours);
        prop_assert_eq!(lines.iter().map(|line| line.theirs).sum::<CardTime>(), theirs.lines.iter().map(|line| line.time).sum::<CardTime>());
        for line in &lines {
            prop_assert_eq!(line.parts.sum(), line.ours - line.theirs);
        }
    }
}
