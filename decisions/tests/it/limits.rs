//! Limits of accounts that follow a month: through the real actuators' rounds, on a Slurm that is a number.

use cardhour_actuators::guards::{Guards, Mode as GuardMode};
use cardhour_actuators::journal::Pasts;
use cardhour_actuators::next::Step;
use cardhour_actuators::past::Answer;
use cardhour_actuators::round::Carrying;
use cardhour_actuators::setting::{SettingSight, Value};
use cardhour_actuators::sight::Sight;
use cardhour_actuators::{DecisionId, Past, Standing, Trouble, What, World};
use cardhour_books::quotas::Holder;
use cardhour_decisions::limits::{LimitInput, LimitOutput, LimitStanding, limits, would_raise};
use cardhour_decisions::policy::LimitOf;
use cardhour_decisions::{Decision, Mode, ReclaimPolicy};
use cardhour_domain::{Interval, Name, Timestamp, Zone};
use cardhour_scheduler_core::capacity::Band;
use std::collections::BTreeMap;

const POLICY: &str = "[[limit]]\ncluster = \"lab\"\naccount = \"research\"\norg = \"acme\"\nmodel = \"H100\"\ntight = 16\nover = 4\n\
                      [act]\nmode = \"act\"\nclusters = [\"lab\"]\nmost_an_hour = 1000\n[act.slurm]\n";

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(&format!("{text}:00Z")).unwrap()
}

fn month(from: &str, to: &str) -> Interval {
    Interval::new(at(&format!("{from}-01T00:00")), at(&format!("{to}-01T00:00"))).unwrap()
}

/// The limit of one account, and how often it was touched.
struct Number {
    limit: Option<u64>,
    touched: Vec<Option<u64>>,
}

impl World for Number {
    fn look(&mut self, _: &What) -> Result<Sight, Trouble> {
        let value = Some(Value::Known(self.limit));
        Ok(Sight::Setting(SettingSight { value, not_lowered: None, not_changed: None }))
    }

    fn act(&mut self, _: &What, step: &Step, _: &Sight) -> Result<Answer, Trouble> {
        let Step::Set(to) = step else { panic!("{step:?}") };
        self.limit = *to;
        self.touched.push(*to);
        Ok(Answer::Taken)
    }
}

/// What a look does before it is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Decided,
    Done,
}

struct Site {
    slurm: Number,
    journal: Pasts,
    rows: Vec<Decision>,
    policy: ReclaimPolicy,
    mode: Mode,
    month: Interval,
}

impl Site {
    fn new(limit: Option<u64>) -> Self {
        Self {
            slurm: Number { limit, touched: Vec::new() },
            journal: Pasts::default(),
            rows: Vec::new(),
            policy: ReclaimPolicy::parse(POLICY).unwrap(),
            mode: Mode::Act,
            month: month("2026-05", "2026-06"),
        }
    }

    fn look(&mut self, now: Timestamp, band: Option<Band>, until: Until) -> LimitOutput {
        let holder = Holder { org: "acme".into(), project: None, user: None };
        let standing = band.map(|band| LimitStanding {
            of: LimitOf::Month { holder, model: "H100".into() },
            cluster: Some("lab".into()),
            band,
            period: self.month,
            words: "acme has used 12 of its 10 card-hours".into(),
        });
        let past =
            |row: &Decision| Some((row.id.clone(), self.journal.past(&DecisionId::new(row.id.as_str()))?.clone()));
        let pasts: BTreeMap<Name, Past> = self.rows.iter().filter_map(past).collect();
        let output = limits(&LimitInput {
            at: now,
            zone: Zone::UTC,
            policy: &self.policy,
            mode: self.mode,
            standings: standing.as_slice(),
            known: &self.rows,
            pasts: &pasts,
        });
        self.rows.extend(output.decisions.iter().cloned());
        if until == Until::Decided {
            return output;
        }
        let guards = Guards { mode: GuardMode::Act, most_an_hour: 1000, ..Guards::default() };
        for order in &output.orders {
            let mut with = Carrying {
                world: &mut self.slurm,
                journal: &mut self.journal,
                guards: &guards,
                is_wanted: &|action, sight| match &action.what {
                    What::SlurmLimit(limit) => would_raise(limit, sight).map_or(Ok(()), Err),
                    _ => Ok(()),
                },
                now: &|| now,
            };
            cardhour_actuators::round(&order.action, &mut with).unwrap();
        }
        output
    }

    /// A look each minute, so many of them.
    fn looks(&mut self, from: &str, many: i64, band: Band) {
        for minute in 0..many {
            let now = Timestamp::from_unix_ms(at(from).unix_ms() + minute * 60_000);
            self.look(now, Some(band), Until::Done);
        }
    }

    fn actions(&self) -> Vec<&str> {
        self.rows.iter().map(|row| &*row.action).collect()
    }

    fn standing(&self, row: usize) -> Standing {
        self.journal.past(&DecisionId::new(self.rows[row].id.as_str())).unwrap().standing.clone()
    }
}

#[test]
fn an_account_over_its_month_gets_its_limit_once_and_the_old_one_back_with_the_next_month() {
    let mut site = Site::new(Some(32));
    site.looks("2026-05-20T10:00", 5, Band::Over);
    assert_eq!((site.slurm.limit, &site.slurm.touched[..]), (Some(4), &[Some(4)][..]));
    assert_eq!(site.actions(), ["limit"]);
    let words = &site.rows[0].words;
    assert!(words.starts_with("acme has used 12 of its 10 card-hours. Account research of lab may have 4"), "{words}");
    assert_eq!(site.rows[0].until, Some(at("2026-06-01T00:00")));
    site.month = month("2026-06", "2026-07");
    site.looks("2026-06-01T00:00", 5, Band::Ample);
    assert_eq!((site.slurm.limit, &site.slurm.touched[..]), (Some(32), &[Some(4), Some(32)][..]));
    assert_eq!(site.actions(), ["limit", "put_back"]);
    // Over in June as well: a decision of its own.
    site.looks("2026-06-20T00:00", 5, Band::Over);
    assert_eq!((site.slurm.limit, site.actions()), (Some(4), vec!["limit", "put_back", "limit"]));
}

#[test]
fn killed_between_the_decision_and_the_deed_it_is_done_once() {
    let mut site = Site::new(None);
    for minute in ["00", "01", "20"] {
        site.look(at(&format!("2026-05-20T10:{minute}")), Some(Band::Over), Until::Decided);
    }
    assert_eq!((site.actions(), site.slurm.touched.len()), (vec!["limit"], 0));
    site.looks("2026-05-20T11:00", 3, Band::Over);
    assert_eq!((site.actions(), &site.slurm.touched[..]), (vec!["limit"], &[Some(4)][..]));
    site.month = month("2026-06", "2026-07");
    site.look(at("2026-06-01T00:00"), Some(Band::Ample), Until::Decided);
    site.looks("2026-06-01T00:01", 3, Band::Ample);
    assert_eq!((site.actions(), &site.slurm.touched[..]), (vec!["limit", "put_back"], &[Some(4), None][..]));
}

/// No limit, then 16, then 4; and back over 16, which the journal has as what was there before the 4.
#[test]
fn limits_on_top_of_each_other_are_put_back_in_turn() {
    let mut site = Site::new(None);
    site.looks("2026-05-10T10:00", 2, Band::Tight);
    site.looks("2026-05-20T10:00", 2, Band::Over);
    assert_eq!(site.slurm.limit, Some(4));
    site.month = month("2026-06", "2026-07");
    site.looks("2026-06-01T00:00", 5, Band::Ample);
    assert_eq!(&site.slurm.touched[..], [Some(16), Some(4), Some(16), None]);
    // Softer within the month, from over at once: the old limit for a minute, then that of the band.
    let mut site = Site::new(None);
    site.looks("2026-05-10T10:00", 2, Band::Over);
    site.looks("2026-05-20T10:00", 3, Band::Tight);
    assert_eq!(&site.slurm.touched[..], [Some(4), None, Some(16)]);
}

#[test]
fn a_limit_that_an_operator_changed_is_left_and_said() {
    let mut site = Site::new(Some(32));
    site.looks("2026-05-20T10:00", 2, Band::Over);
    site.slurm.limit = Some(8);
    site.looks("2026-05-21T10:00", 5, Band::Over);
    assert_eq!(site.slurm.touched.len(), 1, "it isn't fought over");
    site.looks("2026-05-22T10:00", 5, Band::Ample);
    assert_eq!((site.slurm.limit, site.slurm.touched.len()), (Some(8), 1));
    assert_eq!(site.standing(1), Standing::Refused("somebody else set it: it is 8, not 4".to_owned()));
    site.looks("2026-05-25T10:00", 5, Band::Over);
    assert_eq!((site.slurm.limit, site.rows.len()), (Some(8), 2), "theirs until the month is over");
    site.month = month("2026-06", "2026-07");
    site.looks("2026-06-15T10:00", 5, Band::Over);
    assert_eq!(site.slurm.limit, Some(4));
}

#[test]
fn a_smaller_limit_is_never_raised_and_is_looked_at_again_the_next_day() {
    let mut site = Site::new(Some(2));
    site.looks("2026-05-20T10:00", 60, Band::Over);
    assert_eq!((site.slurm.limit, site.slurm.touched.len(), site.rows.len()), (Some(2), 0, 1));
    assert!(matches!(site.standing(0), Standing::Refused(reason) if reason.contains("a limit of 2 already")));
    site.slurm.limit = Some(64);
    site.looks("2026-05-21T10:00", 2, Band::Over);
    assert_eq!((site.slurm.limit, site.rows.len()), (Some(4), 2));
}

#[test]
fn in_shadow_it_is_said_once_and_nothing_is_touched() {
    let mut site = Site::new(Some(32));
    site.mode = Mode::Shadow;
    site.looks("2026-05-20T10:00", 30, Band::Over);
    assert_eq!((site.slurm.touched.len(), site.actions()), (0, vec!["limit"]));
    assert!(site.rows[0].words.starts_with("In the mode act: "));
    site.mode = Mode::Off;
    assert_eq!(site.look(at("2026-05-21T10:00"), Some(Band::Tight), Until::Done), LimitOutput::default());
}

#[test]
fn what_is_not_known_leaves_a_limit_and_a_rule_that_is_gone_puts_it_back() {
    let mut site = Site::new(Some(32));
    site.looks("2026-05-20T10:00", 2, Band::Over);
    let output = site.look(at("2026-05-20T11:00"), None, Until::Done);
    assert_eq!((site.slurm.limit, output.orders.len(), output.alerts.len()), (Some(4), 0, 1));
    site.policy.limits.clear();
    site.looks("2026-05-20T12:00", 2, Band::Over);
    assert_eq!(site.slurm.limit, Some(32));
    assert!(site.rows[1].words.contains("policy.toml has no such limit any more"));
}

/// Bands, kills and months by a small generator: no limit is ever above what was there, no row has the id of another, and in the end all is as it was.
#[test]
fn whatever_happens_it_is_as_it_was_in_the_end() {
    for seed in 0u64..300 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut draw = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let before = [None, Some(2), Some(10), Some(32)][draw(4) as usize];
        let mut site = Site::new(before);
        let mut now = at("2026-05-02T00:00");
        for _ in 0..60 {
            now = Timestamp::from_unix_ms(now.unix_ms() + 60_000 * (1 + draw(400) as i64));
            let band = [Band::Ample, Band::Tight, Band::Over][draw(3) as usize];
            let until = if draw(3) == 0 { Until::Decided } else { Until::Done };
            site.look(now, Some(band), until);
            let (is, was) = (site.slurm.limit.unwrap_or(u64::MAX), before.unwrap_or(u64::MAX));
            assert!(is <= was, "seed {seed}: {is} above {was}");
        }
        for _ in 0..8 {
            now = Timestamp::from_unix_ms(now.unix_ms() + 61 * 60_000);
            site.look(now, Some(Band::Ample), Until::Done);
        }
        assert_eq!(site.slurm.limit, before, "seed {seed}: {:?}", site.slurm.touched);
        let mut ids: Vec<&Name> = site.rows.iter().map(|row| &row.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), site.rows.len(), "seed {seed}");
    }
}

/// Every block of the page that people copy from.
#[test]
fn what_the_docs_show_is_read() {
    let page = include_str!("../../../docs/quotas.md");
    let blocks: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    assert!(cardhour_books::quotas::Quotas::parse(blocks[0]).unwrap().have_months());
    let limits = ReclaimPolicy::parse(blocks[1]).unwrap().limits;
    assert_eq!(limits.len(), 2);
    assert_eq!(
        (limits[0].most(Band::Tight), limits[0].most(Band::Ample), limits[1].most(Band::Over)),
        (Some(32), None, Some(4))
    );
    assert_eq!(limits[1].of, LimitOf::Budget("speech-2026".into()));
}

#[test]
fn faults_of_a_limit_are_told_with_their_lines() {
    let text = "[[limit]]\ncluster = \"lab\"\naccount = \"a\"\nbudget = \"b\"\ntight = 4\nover = 2\n\
                [[limit]]\ncluster = \"lab\"\naccount = \"b\"\norg = \"acme\"\nover = 2\n\
                [[limit]]\naccount = \"c\"\nbudget = \"b\"\nover = 2\n\
                [[limit]]\ncluster = \"lab\"\naccount = \"d\"\nbudget = \"b\"\n\
                [[limit]]\ncluster = \"lab\"\naccount = \"e\"\norg = \"o\"\nmodel = \"m\"\ntight = 1\nover = 2\n";
    let told = ReclaimPolicy::parse(text).unwrap_err().to_string();
    for words in [
        "line 1: limit[1].tight: is of a month's card-hours",
        "line 7: limit[2].model: is missing",
        "line 12: limit[3].cluster: is missing",
        "line 16: limit[4].over: is missing",
        "line 20: limit[5].over: is more than what tight allows",
    ] {
        assert!(told.contains(words), "{words}\n{told}");
    }
    let one = "[[limit]]\ncluster = \"lab\"\naccount = \"a\"\nbudget = \"b\"\nover = 2\n";
    let twice = ReclaimPolicy::parse(&one.repeat(2)).unwrap_err().to_string();
    assert!(twice.contains("line 6: limit[2]: another limit is of the same account"), "{twice}");
}
