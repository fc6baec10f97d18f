use super::*;
use crate::budgets::Budgets;
use crate::world::{World, check, range};
use cardhour_domain::AttemptKey;
use std::collections::BTreeMap;

const GIB: i64 = 1 << 30;

/// H200 for 10 USD with nights (22:00 to 06:00) at half, L40S for 4.
const BOOK: &str = "[[window]]\nname = \"night\"\nfrom = \"22:00\"\nto = \"06:00\"\n\
                    [[price]]\nfrom = \"2026-01-01\"\nmodel = \"H200\"\nper_card_hour = \"10\"\nnight = \"0.5\"\n\
                    [[price]]\nfrom = \"2026-01-01\"\nmodel = \"L40S\"\nper_card_hour = \"4\"\n";

/// A pool and what is asked of it.
struct Scene {
    world: World,
    book: PriceBook,
    memory: CardMemory,
    dedicated_pool: Option<Name>,
}

impl Scene {
    fn new(book: &str, jobs: &str, seen: &str) -> Self {
        Self {
            world: World::jobs(jobs).seen(seen),
            book: crate::world::book(book),
            memory: CardMemory {
                card_bytes: BTreeMap::from([("H200".into(), 141 * GIB), ("L40S".into(), 48 * GIB)]),
                used: BTreeMap::new(),
            },
            dedicated_pool: None,
        }
    }

    /// What jobs used of memory, all their time, a line each: `JOB GIB`.
    fn memory(mut self, text: &str) -> Self {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (job, gib) = line.split_once(' ').unwrap();
            let is_of =
                |attempt: &&crate::report::ReportAttempt| attempt.key.job() == AttemptKey::new("c", job, "").job();
            let attempt = self.world.attempts.iter().find(is_of).unwrap_or_else(|| panic!("no job {job}"));
            let cards = attempt.cards.parts() / cardhour_domain::CardShare::PARTS_PER_CARD;
            let use_of_it = MemoryUse {
                peak_bytes: gib.parse::<i64>().unwrap() * GIB,
                seen_ms: attempt.held.unwrap().length_ms() * cards,
            };
            self.memory.used.insert(attempt.key.clone(), use_of_it);
        }
        self
    }

    fn class(mut self, class: &str) -> Self {
        self.world.attempts.iter_mut().for_each(|attempt| attempt.class = Some(class.into()));
        self
    }

    /// Advice on a budget of project vision for one month.
    fn table(&self, from: &str, to: &str) -> crate::table::Table {
        let range = range(from, to);
        let slots = Evidence::slots(range, Some(&self.book), self.world.zone).unwrap();
        let input = self.world.input(&slots);
        let text = "[[budget]]\nname = \"b\"\nproject = \"vision\"\ncard_hours = 9\nperiod = \"month\"\n";
        let budgets = Budgets::parse(text, 1).unwrap();
        let month = self.world.zone.month(range.start()).unwrap();
        let period = budgets.period(&budgets.budgets[0], month).unwrap();
        let sources = Sources {
            spent: Evidence { input: &input, slots: &slots },
            range,
            known: self.world.all(),
            book: &self.book,
            memory: &self.memory,
            dedicated_pool: self.dedicated_pool.as_ref(),
        };
        table(&advice(&budgets.budgets[0], period, &sources), "")
    }

    #[track_caller]
    fn check(&self, columns: &str, expected: &str) {
        check(&self.table("2026-03-01", "2026-04-01"), columns, expected);
    }

    /// The calculation of the only advice of a kind, and its line.
    #[track_caller]
    fn how(&self, kind: AdviceKind) -> (String, String) {
        let table = self.table("2026-03-01", "2026-04-01");
        let text = crate::world::show(&table, "advice how line");
        let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(kind.name())).collect();
        let [one] = found[..] else { panic!("{text}") };
        let (how, line) = one.trim().rsplit_once(' ').unwrap();
        (how.to_owned(), line.to_owned())
    }
}

/// By hand, 10 USD by day and 5 by night (22:00 to 06:00). Job 1: a card from noon to midnight, 10 h by day and 2 by night: 110 USD, of which the ten hours would have cost 50 less by
/// night. A quarter of all its time was idle, a tenth lost: 3 h and 1.2 h; of 10 h by day 2.5 h idle (25.00) and 1 h lost (10.00), of 2 h by night 0.5 h (2.50) and 0.2 h (1.00).
/// The job of another project is in none of it. Nobody saw its memory, so that of models and batches nothing is said.
#[test]
fn what_could_be_saved_is_said_with_its_figures() {
    let scene = Scene::new(
        "[[window]]\nname = \"night\"\nfrom = \"22:00\"\nto = \"06:00\"\n\
         [[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"10\"\nnight = \"0.5\"\n",
        "1 lab vision ann q completed H200 n1 1 2026-03-10T12:00 2026-03-11T00:00
         2 lab speech bob q completed H200 n1 1 2026-03-10T12:00 2026-03-11T00:00",
        "1 - - gpm 10 25 65 0 -",
    );
    scene.check(
        "budget period advice card_hours saving currency line",
        "b 2026-03 off-peak 10.000000 50.00 USD -
         b 2026-03 idle 3.000000 27.50 USD -
         b 2026-03 checkpointing 1.200000 11.00 USD -",
    );
    check(&scene.table("2026-04-01", "2026-05-01"), "budget", "");
}

/// By hand: job 1 holds 2 H200 from 18:00 to 24:00 at 10 % busy with at most 30 GiB: 2 × 4 h by day at 10 are 80.00, 2 × 2 h by night at 5 are 20.00, 100.00 in all. 12 card-hours of L40S are
/// 48.00, and 30 GiB are less than nine tenths of 48 (43.2). Saved: 52.00. Job 2 of the same user for 1 h at noon: 10.00 less 4.00. Job 3 used 44 GiB, job 4 was busy for a fifth, and of
/// job 5 nobody saw the memory. Job 6 is another user's, 1 h by night: 5.00 less 4.00.
#[test]
fn little_busy_jobs_whose_memory_fits_are_told_of_the_cheaper_model() {
    let scene = Scene::new(
        BOOK,
        "1 lab vision ann q completed H200 n1 2 2026-03-10T18:00 2026-03-11T00:00
         2 lab vision ann q completed H200 n2 1 2026-03-12T12:00 2026-03-12T13:00
         3 lab vision ann q completed H200 n2 1 2026-03-13T12:00 2026-03-13T13:00
         4 lab vision ann q completed H200 n2 1 2026-03-14T12:00 2026-03-14T13:00
         5 lab vision ann q completed H200 n2 1 2026-03-15T12:00 2026-03-15T13:00
         6 lab vision bob q completed H200 n2 1 2026-03-16T01:00 2026-03-16T02:00",
        "1 - - gpm 0 0 10 90 -
         2 - - gpm 0 0 10 90 -
         3 - - gpm 0 0 10 90 -
         4 - - gpm 0 0 20 80 -
         5 - - gpm 0 0 10 90 -
         6 - - gpm 0 0 10 90 -",
    )
    .memory("1 30\n2 20\n3 44\n4 20\n6 20");
    let text = crate::world::show(
        &scene.table("2026-03-01", "2026-04-01"),
        "advice project user model jobs card_hours saving",
    );
    let models: Vec<&str> = text.lines().filter(|line| line.starts_with("cheaper")).collect();
    assert_eq!(
        models,
        ["cheaper model vision ann H200 2 13.000000 58.00", "cheaper model vision bob H200 1 1.000000 1.00"]
    );
    let table = scene.table("2026-03-01", "2026-04-01");
    let how = crate::world::show(&table, "how line");
    assert!(
        how.contains(
            "L40S instead: 52.00 for the same hours, not 110.00; busy 10.0 % of what was seen, at most 30.0 GiB used, and L40S has 48.0 GiB \
             month=2026-03,project=vision,user=ann,model=H200"
        ),
        "{how}"
    );
}

/// By hand: 4 h of 2 cards by day, 40 % busy, half underused, a tenth idle: 8 × 0.5 = 4 underused card-hours, 40.00. With 70 of 141 GiB a batch of twice the size fits; with 71 it doesn't. The
/// second job is neither training in its use (60 % busy) nor short of memory.
#[test]
fn trainings_with_free_memory_are_told_of_a_larger_batch() {
    let jobs = "1 lab vision ann q completed H200 n1 2 2026-03-10T12:00 2026-03-10T16:00
                2 lab vision ann q completed H200 n2 1 2026-03-10T12:00 2026-03-10T16:00";
    let seen = "1 - - gpm 0 10 40 50 -\n2 - - gpm 0 0 60 40 -";
    let scene = Scene::new(BOOK, jobs, seen).memory("1 70\n2 10").class("training");
    let (how, line) = scene.how(AdviceKind::LargerBatch);
    assert_eq!(
        how,
        "what the underused hours cost; busy 40.0 % of what was seen, at most 70.0 GiB used of 141.0 GiB a card: a batch of twice the size fits"
    );
    assert_eq!(line, "month=2026-03,project=vision,user=ann,model=H200");
    let only = |scene: Scene| {
        let text = crate::world::show(&scene.table("2026-03-01", "2026-04-01"), "advice jobs card_hours saving");
        text.lines().filter(|line| line.starts_with("larger")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(only(scene), "larger batch 1 4.000000 40.00");
    assert_eq!(only(Scene::new(BOOK, jobs, seen).memory("1 71\n2 10").class("training")), "");
    assert_eq!(only(Scene::new(BOOK, jobs, seen).memory("1 70").class("inference")), "", "it waits for requests");
    assert_eq!(only(Scene::new(BOOK, jobs, seen).class("training")), "", "nobody saw its memory");
}

/// By hand: three jobs of ann, a card each, 20 % busy, 40 GiB: 12:00 to 14:00, 12:00 to 16:00, 13:00 to 15:00. On one card of 141 GiB (126.9 usable) three fit by memory (120) and by use (60 of
/// 80 %). Side by side: 12–13 two, 13–14 three, 14–15 two, 15–16 one: spare 1 + 2 + 1 = 4 card-hours of 7, 40.00 by day. With 50 GiB only two fit on a card: 1 + 1 + 1 = 3. Bob's job is
/// nobody's neighbour.
#[test]
fn small_jobs_side_by_side_are_told_how_many_cards_they_needed() {
    let jobs = "1 lab vision ann q completed H200 n1 1 2026-03-10T12:00 2026-03-10T14:00
                2 lab vision ann q completed H200 n1 1 2026-03-10T12:00 2026-03-10T16:00
                3 lab vision ann q completed H200 n1 1 2026-03-10T13:00 2026-03-10T15:00
                4 lab vision bob q completed H200 n1 1 2026-03-10T12:00 2026-03-10T16:00";
    let seen = "1 - - gpm 0 0 20 80 -\n2 - - gpm 0 0 20 80 -\n3 - - gpm 0 0 20 80 -\n4 - - gpm 0 0 20 80 -";
    let merged = |memory: &str| {
        let scene = Scene::new(BOOK, jobs, seen).memory(memory);
        let text =
            crate::world::show(&scene.table("2026-03-01", "2026-04-01"), "advice user jobs card_hours saving how");
        text.lines().filter(|line| line.starts_with("merging")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        merged("1 40\n2 40\n3 40\n4 40"),
        "merging experiments ann 3 4.000000 40.00 of 7.0 card-hours held side by side these weren't needed: up to 3 jobs at a time fitted on 1 card by their use and memory"
    );
    assert_eq!(
        merged("1 50\n2 50\n3 50\n4 50"),
        "merging experiments ann 3 3.000000 30.00 of 7.0 card-hours held side by side these weren't needed: up to 3 jobs at a time fitted on 2 cards by their use and memory"
    );
    assert_eq!(merged("1 40\n4 40"), "", "of one alone nobody knows a neighbour");
}

/// By hand, ten days at 10 USD: 8 cards all the time, and 4 more for one day. 8 are held for all of it: 8 × 240 h = 1,920 card-hours, 19,200.00; dedicated at 6: 11,520.00. The mean is
/// 8 + 4 ÷ 10 = 8.4. At 11 dedicated cards save nothing, and nothing is said. Without a pool that is named the use is flat all the same (8 of 8.4), and no figure is made up.
#[test]
fn a_project_that_always_holds_cards_is_told_of_dedicated_ones() {
    let jobs = "1 lab vision ann q completed H200 n1 8 2026-03-01T00:00 2026-03-11T00:00
                2 lab vision bob q completed H200 n2 4 2026-03-05T00:00 2026-03-06T00:00";
    let scene = |dedicated: &str, pool: Option<&str>| {
        let book = format!(
            "[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"10\"\n\
             [[price]]\nfrom = \"2026-01-01\"\npool = \"own\"\nper_card_hour = \"{dedicated}\"\n"
        );
        let mut scene = Scene::new(&book, jobs, "");
        scene.dedicated_pool = pool.map(Name::from);
        scene
    };
    let columns = "advice project user model jobs card_hours saving currency how";
    scene("6", Some("own")).check(
        columns,
        "dedicated pool vision - H200 2 1920.000000 7680.00 USD 8 cards were held at least 90 % of 240.0 h, 8.4 on average: 11520.00 dedicated for all of it, not 19200.00",
    );
    scene("11", Some("own")).check(columns, "");
    for pool in [None, Some("other")] {
        scene("6", pool).check(
            columns,
            "dedicated pool vision - H200 2 1920.000000 - - 8 cards were held at least 90 % of 240.0 h, 8.4 on average; no price of dedicated cards to compare with",
        );
    }
}

/// By hand, ten days: 8 cards for nine days and none on the last are held for nine tenths of the time: the baseline; for less than that, none is. Six days say nothing of how steady it is.
#[test]
fn a_baseline_is_what_is_held_nine_tenths_of_the_time() {
    let of = |end: &str| {
        let jobs = format!(
            "1 lab vision ann q completed H200 n1 8 2026-03-01T00:00 {end}
             2 lab speech bob q completed H200 n2 1 2026-03-01T00:00 2026-03-11T00:00"
        );
        let scene = Scene::new("[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"10\"\n", &jobs, "");
        crate::world::show(&scene.table("2026-03-01", "2026-04-01"), "advice card_hours")
    };
    assert_eq!(of("2026-03-10T00:00"), "dedicated pool 1920.000000");
    assert_eq!(of("2026-03-09T23:45"), "");
    let six_days = "1 lab vision ann q completed H200 n1 8 2026-03-01T00:00 2026-03-07T00:00";
    let scene = Scene::new("[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"10\"\n", six_days, "");
    scene.check("advice", "");
}

/// Five of a kind are said, the largest first.
#[test]
fn the_largest_savings_are_said_first_and_no_more_than_five() {
    let users = ["a", "b", "c", "d", "e", "f"];
    let lines = |line: &dyn Fn(usize, &str) -> String| -> String {
        users.iter().enumerate().map(|(i, user)| line(i, user) + "\n").collect()
    };
    let scene = Scene::new(
        BOOK,
        &lines(&|i, user| {
            format!("{i} lab vision {user} q completed H200 n{i} 1 2026-03-10T10:00 2026-03-10T{}:00", 11 + i)
        }),
        &lines(&|i, _| format!("{i} - - gpm 0 0 10 90 -")),
    )
    .memory(&lines(&|i, _| format!("{i} 20")));
    let text = crate::world::show(&scene.table("2026-03-01", "2026-04-01"), "advice user saving");
    let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("cheaper model ")).collect();
    assert_eq!(found, ["f 36.00", "e 30.00", "d 24.00", "c 18.00", "b 12.00"]);
}

/// Each row names the command that shows its figures: a trace where they are of one line, else the report that they are of, over the budget's own period and by the names it selects by.
#[test]
fn every_advice_has_a_command_that_shows_its_figures() {
    let scene = Scene::new(
        BOOK,
        "1 lab vision ann q completed H200 n1 2 2026-03-10T18:00 2026-03-11T00:00",
        "1 - - gpm 10 25 10 55 -",
    )
    .memory("1 30");
    let table = scene.table("2026-03-01", "2026-04-01");
    check(
        &table,
        "advice command",
        "off-peak cardhour report bill --month 2026-03 --by project,price,window
         idle cardhour report idle --month 2026-03 --by project
         checkpointing cardhour report waste --month 2026-03 --by project
         cheaper model cardhour trace 'month=2026-03,project=vision,user=ann,model=H200'",
    );
    assert!(
        table.notes.contains(&"idle, b: cardhour report idle --month 2026-03 --by project".to_owned()),
        "{:?}",
        table.notes
    );
    assert!(!table.notes.iter().any(|note| note.contains("trace LINE")), "{:?}", table.notes);
    let year = Budgets::parse("[[budget]]\nname = \"y\"\ncard_hours = 9\nperiod = \"year\"\n", 4).unwrap();
    let period = year.period(&year.budgets[0], Month::parse("2026-03").unwrap()).unwrap();
    assert_eq!(
        AdviceKind::Idle.command(&year.budgets[0], period, None),
        "cardhour report idle --from 2025-04-01 --to 2026-04-01"
    );
}

/// By hand, ann and bob on one project, 10 USD by day. Ann's own: 2 cards for 6 h, a quarter idle: of 80.00 by day and 20.00 by night 25.00; off-peak 40.00; the cheaper model (12 h of L40S, 48.00)
/// 52.00. The largest two are said, of nobody else's hours.
#[test]
fn a_researcher_is_told_what_they_themselves_could_save() {
    let scene = Scene::new(
        BOOK,
        "1 lab vision ann q completed H200 n1 2 2026-03-10T18:00 2026-03-11T00:00
         2 lab vision bob q completed H200 n2 1 2026-03-10T12:00 2026-03-10T13:00",
        "1 - - gpm 0 25 10 65 -\n2 - - gpm 0 100 0 0 -",
    )
    .memory("1 30");
    let range = range("2026-03-01", "2026-04-01");
    let slots = Evidence::slots(range, Some(&scene.book), scene.world.zone).unwrap();
    let input = scene.world.input(&slots);
    let sources = Sources {
        spent: Evidence { input: &input, slots: &slots },
        range,
        known: scene.world.all(),
        book: &scene.book,
        memory: &scene.memory,
        dedicated_pool: None,
    };
    let found = for_user("ann", Month::parse("2026-03").unwrap(), &sources, 2);
    check(&table(&found, ""), "advice saving", "cheaper model 52.00\noff-peak 40.00");
    assert_eq!(found[1].command, "cardhour report bill --month 2026-03 --by user,price,window");
}
