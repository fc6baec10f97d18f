//! What is read from the books, by the id of the report that it went wrong in elsewhere; and what comes of a round. Times by hand: a development job that
//! works in its first two minutes is judged from minute 15 (its grace), suspected at 45 (a window later), warned at 46, in its grace from 47, ended at 106
//! (an hour after the warning came). One observation is a minute.

use cardhour_actuators::What;
use cardhour_actuators::slurm::JobDeed;
use cardhour_books::attempt::Attempt;
use cardhour_books::observed::Seen;
use cardhour_decisions::decision::{Decision, Mode};
use cardhour_decisions::policy::SlurmPolicy;
use cardhour_decisions::round::{Matter, NoticeOutcome, Order, Place, Request, RoundInput, Warning, Wish, reads_from};
use cardhour_decisions::{KeptLease, ReclaimPolicy, RoundOutput, round};
use cardhour_domain::{
    Activity, AttemptKey, CardShare, EnergyBasis, Gap, Holder, HolderKind, HolderSource, Interval, JobState,
    Millijoules, Milliwatts, Name, Observation, Owner, Percent, Reading, Sample, SampleSource, SeenDevice, Timestamp,
    UseBasis, Watch,
};
use std::collections::BTreeMap;
use std::ops::Range;

const MINUTE: i64 = 60_000;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_unix_ms(minute * MINUTE)
}

fn percent(percent: i32) -> Reading<Percent> {
    Reading::Seen(Percent::from_thousandths(percent * 1000).unwrap())
}

/// What a node tells of one minute.
#[derive(Clone, Default)]
struct Minute {
    samples: Vec<Sample>,
    activity: Vec<Activity>,
    observations: Vec<Observation>,
    watches: Vec<Watch>,
}

/// A node with a job on it, told of minute by minute.
struct Lab {
    cards: usize,
    policy: ReclaimPolicy,
    mode: Mode,
    delivers: bool,
    books: Minute,
    records: Vec<Attempt>,
    kept: Vec<KeptLease>,
    notices: Vec<NoticeOutcome>,
    requests: Vec<Request>,
    rows: Vec<Decision>,
    warnings: Vec<Warning>,
    orders: Vec<Order>,
    alerts: Vec<Name>,
}

fn key() -> AttemptKey {
    AttemptKey::new("lab", "7", "db1")
}

fn holder() -> Holder {
    Holder {
        kind: HolderKind::SlurmJob,
        cluster: "lab".into(),
        job_id: "7".into(),
        shown_id: None,
        run: "b0".into(),
        started_at: Some(at(0)),
    }
}

impl Lab {
    fn new(cards: usize) -> Self {
        let mut policy = ReclaimPolicy::default();
        policy.act.clusters = vec!["lab".into()];
        policy.act.slurm = Some(SlurmPolicy { clusters: vec![], conf: None, commands: None, timeout_ms: 1000 });
        let mut record = Attempt::new(key(), "lab".into(), "7".into(), JobState::Running);
        record.started_at = Some(at(0));
        record.as_of = Some(at(1));
        record.cards = CardShare::from_cards(cards as i64).unwrap();
        record.user = Some("ada".into());
        record.project = Some("vision".into());
        record.queue = Some("dev".into());
        record.class = Some("development".into());
        record.restart = Some(0);
        Self {
            cards,
            policy,
            mode: Mode::Act,
            delivers: true,
            books: Minute::default(),
            records: vec![record],
            kept: vec![],
            notices: vec![],
            requests: vec![],
            rows: vec![],
            warnings: vec![],
            orders: vec![],
            alerts: vec![],
        }
    }

    /// Minutes in which its cards and processes rest, but for its first two and what `change` says. Returns the rows that come of them.
    fn tell(&mut self, minutes: Range<i64>, change: impl Fn(i64, &mut Minute)) -> Vec<String> {
        let mut said = Vec::new();
        for minute in minutes {
            let mut told = self.resting(minute);
            if minute <= 2 {
                told.samples.iter_mut().for_each(|sample| sample.sm_active_pct = percent(80));
            }
            change(minute, &mut told);
            self.books.samples.extend(told.samples);
            self.books.activity.extend(told.activity);
            self.books.observations.extend(told.observations);
            self.books.watches.extend(told.watches);
            said.extend(self.round(minute).into_iter().map(|word| format!("{minute} {word}")));
        }
        said
    }

    fn resting(&self, minute: i64) -> Minute {
        let during = Interval::new(at(minute - 1), at(minute)).unwrap();
        let mut told = Minute::default();
        for card in 0..self.cards {
            let card_uuid: Name = format!("GPU-{card}").into();
            told.samples.push(Sample {
                during,
                card_uuid: card_uuid.clone(),
                device_uuid: card_uuid.clone(),
                node: "n1".into(),
                attempt_key: Some(holder().key()),
                sm_active_pct: percent(0),
                use_basis: UseBasis::Gpm,
                mem_active_pct: percent(0),
                media_active_pct: percent(0),
                mem_used_bytes: Reading::Seen(0),
                nvlink_bytes: Reading::Seen(0),
                pcie_bytes: Reading::Seen(0),
                power_mw: Reading::Seen(Milliwatts(70_000)),
                energy_mj: Reading::Seen(Millijoules(70_000 * 60)),
                energy_basis: EnergyBasis::Counter,
                temperature_c: Reading::Seen(30),
                source: SampleSource::Collector,
            });
            told.activity.push(Activity {
                during,
                node: "n1".into(),
                card_uuid: card_uuid.clone(),
                device_uuid: card_uuid.clone(),
                holder: holder().key(),
                processes: 1,
                sm_active_pct: percent(0),
                mem_used_bytes: Reading::Seen(0),
                cpu_ms: Reading::Seen(0),
                io_bytes: Reading::Seen(0),
                is_attended: Reading::Seen(false),
            });
            told.observations.push(Observation {
                during,
                node: "n1".into(),
                card_uuid: card_uuid.clone(),
                device_uuid: card_uuid.clone(),
                mig_profile: None,
                share: Some(CardShare::CARD),
                source: HolderSource::Cgroup,
                holder: holder(),
                owner: Owner { user: Some("ada".into()), ..Owner::default() },
            });
            told.watches.push(Watch { during, node: "n1".into(), cluster: "lab".into(), card_uuid });
        }
        told
    }

    fn devices(&self) -> Vec<SeenDevice> {
        let device = |card: usize| {
            let uuid: Name = format!("GPU-{card}").into();
            SeenDevice {
                at: at(0),
                node: "n1".into(),
                cluster: "lab".into(),
                card_uuid: uuid.clone(),
                device_uuid: uuid,
                pci_bus_id: None,
                model: Some("NVIDIA H200".into()),
                memory_bytes: Some(141 << 30),
                driver: None,
                mig_mode: None,
                mig_profile: None,
                share: CardShare::CARD,
                power_limit_mw: Some(700_000),
            }
        };
        (0..self.cards).map(device).collect()
    }

    /// A round at a minute. Returns the actions of its new rows.
    fn round(&mut self, minute: i64) -> Vec<String> {
        let from = reads_from(at(minute), &self.policy, &self.kept);
        let books = &mut self.books;
        books.samples.retain(|row| row.during.end() > from);
        books.activity.retain(|row| row.during.end() > from);
        books.observations.retain(|row| row.during.end() > from);
        books.watches.retain(|row| row.during.end() > from);
        let (none, no_uids) = (BTreeMap::new(), BTreeMap::new());
        let seen = Seen {
            observations: self.books.observations.clone(),
            watches: self.books.watches.clone(),
            devices: self.devices(),
        };
        let output: RoundOutput = round(RoundInput {
            at: at(minute),
            policy: &self.policy,
            mode: self.mode,
            source: Reading::Seen(()),
            opt_outs: Reading::Seen(()),
            running: &self.records,
            seen: &seen,
            samples: &self.books.samples,
            activity: &self.books.activity,
            least_power_mw: &none,
            kept: &self.kept,
            requests: &self.requests,
            notices: &self.notices,
            checkpoints: &[],
            uids: &no_uids,
        });
        self.kept = output.leases;
        for warning in &output.warnings {
            if let Matter::Warning { notice } = warning.matter {
                let delivered = if self.delivers { Ok(at(minute)) } else { Err("mailbox unknown".into()) };
                self.notices.retain(|outcome| outcome.job != warning.job);
                self.notices.push(NoticeOutcome { job: warning.job.clone(), notice, delivered });
            }
        }
        self.warnings.extend(output.warnings);
        self.orders.extend(output.orders);
        self.alerts.extend(output.alerts.into_iter().map(|alert| alert.alert));
        let mut said = Vec::new();
        for row in output.decisions {
            if self.rows.iter().all(|known| known.id != row.id) {
                said.push(row.action.to_string());
                self.rows.push(row);
            }
        }
        said
    }

    fn row(&self, action: &str) -> &Decision {
        self.rows.iter().find(|row| &*row.action == action).unwrap_or_else(|| panic!("no row {action}"))
    }
}

fn nothing(_: i64, _: &mut Minute) {}

const TO_GRACE: [&str; 3] = ["45 suspect", "46 warn", "47 grace"];

#[test]
fn an_idle_job_of_the_books_is_warned_and_ended_once_and_its_cards_are_counted_when_free() {
    let mut lab = Lab::new(2);
    assert_eq!(lab.tell(1..60, nothing), TO_GRACE);
    let warned = lab.row("warn").clone();
    assert_eq!(
        (warned.user.as_deref(), warned.project.as_deref(), warned.notice),
        (Some("ada"), Some("vision"), Some(1))
    );
    assert!(warned.words.contains("To keep them: cardhour decisions extend 7."), "{}", warned.words);
    // Idle since minute 15; two cards for 31 minutes.
    assert_eq!((warned.idle_since, warned.idle_card_ms), (Some(at(15)), Some(2 * 31 * MINUTE)));
    assert_eq!((warned.cards, warned.coverage_pct_thousandths), (CardShare::from_cards(2).ok(), Some(100_000)));
    assert_eq!(lab.tell(60..108, nothing), ["106 stop"]);
    assert_eq!(
        (lab.row("stop").phase_from.as_deref(), lab.row("stop").phase_to.as_deref()),
        (Some("grace"), Some("stopping"))
    );
    let order = lab.orders.last().unwrap();
    assert_eq!(order.action.decision.as_str(), lab.row("stop").id.as_str());
    assert_eq!(order.place, Place::Slurm { cluster: "lab".into() });
    let What::SlurmJob(action) = &order.action.what else { panic!("{order:?}") };
    assert_eq!((action.job.id, action.job.user.as_str(), action.job.started_at), (7, "ada", Some(at(0))));
    assert!(matches!(action.deed, JobDeed::End { .. }), "{action:?}");
    // It is given again until it is true, as the same order; and then the node looks and sees nobody.
    lab.tell(108..110, nothing);
    assert!(lab.orders.iter().all(|order| order.action == lab.orders[0].action));
    lab.records.clear();
    let orders = lab.orders.len();
    let gone = |_: i64, told: &mut Minute| {
        told.observations.clear();
        told.activity.clear();
    };
    assert_eq!(lab.tell(110..120, gone), ["110 reclaimed"]);
    assert_eq!(lab.orders.len(), orders, "nothing is left to do");
    // A day later: two cards for 24 hours.
    assert_eq!(lab.tell(1550..1551, gone), ["1550 recovered"]);
    assert_eq!(lab.row("recovered").recovered_card_ms, Some(2 * 24 * 60 * MINUTE));
    assert_eq!(lab.kept, []);
}

#[test]
fn r01_a_card_without_rows_is_unknown_and_nobody_is_warned() {
    let mut lab = Lab::new(1);
    assert_eq!(lab.tell(1..200, |_, told| told.samples.clear()), [""; 0]);
    let broken = |_: i64, told: &mut Minute| {
        told.samples.iter_mut().for_each(|sample| sample.sm_active_pct = Reading::Missing(Gap::DriverError));
    };
    assert_eq!(Lab::new(1).tell(1..200, broken), [""; 0]);
}

/// A card that a record has and no node saw: the job has two, and one was seen.
#[test]
fn r01_a_card_that_no_node_saw_is_never_idle() {
    let mut lab = Lab::new(1);
    lab.records[0].cards = CardShare::from_cards(2).unwrap();
    assert_eq!(lab.tell(1..200, nothing), ["45 advise"]);
}

#[test]
fn r06_a_window_of_which_rows_are_missing_is_no_window() {
    let mut lab = Lab::new(1);
    // One minute in seven: four or five of each thirty, and three may be.
    let holes = |minute: i64, told: &mut Minute| {
        if minute % 7 == 0 {
            told.samples.clear();
        }
    };
    assert_eq!(lab.tell(1..300, holes), [""; 0]);
}

#[test]
fn r09_processes_that_could_not_be_read_are_not_at_rest() {
    let refused = |_: i64, told: &mut Minute| {
        told.activity.iter_mut().for_each(|row| row.is_attended = Reading::Missing(Gap::NoPermission));
    };
    assert_eq!(Lab::new(1).tell(1..200, refused), [""; 0]);
    // Without a row of them, and without a look for holders: nobody knows.
    let blind = |_: i64, told: &mut Minute| {
        told.activity.clear();
        told.watches.clear();
    };
    assert_eq!(Lab::new(1).tell(1..200, blind), ["45 alert"]);
    // A signal that the source doesn't have says nothing.
    let absent = |_: i64, told: &mut Minute| {
        told.activity.iter_mut().for_each(|row| row.io_bytes = Reading::Missing(Gap::NotSupported));
    };
    assert_eq!(Lab::new(1).tell(1..60, absent), TO_GRACE);
}

#[test]
fn r13_what_cannot_be_checked_any_more_ends_what_was_begun() {
    let mut lab = Lab::new(1);
    lab.tell(1..60, nothing);
    let lost = |_: i64, told: &mut Minute| *told = Minute::default();
    // Telemetry may be twenty minutes old; then more than a tenth of the window is missing, which is three minutes.
    assert_eq!(lab.tell(60..200, lost), ["83 withdraw"]);
    assert_eq!(
        lab.row("withdraw").words.as_str(),
        "Nothing is taken from job lab/7: too little of it is seen to say that it is idle."
    );
    assert_eq!(lab.orders, []);
}

#[test]
fn r16_a_card_that_was_never_touched_is_idle_where_its_node_looked_for_holders() {
    let mut lab = Lab::new(1);
    // No process of it was ever on the card, so that there is no row of any; never used, it is judged from minute 60.
    let untouched = |_: i64, told: &mut Minute| {
        told.activity.clear();
        told.samples.iter_mut().for_each(|sample| sample.sm_active_pct = percent(0));
    };
    assert_eq!(lab.tell(1..93, untouched), ["90 suspect", "91 warn", "92 grace"]);
}

#[test]
fn r20_one_idle_card_of_four_is_advice_and_nothing_else() {
    let mut lab = Lab::new(4);
    let three = |_: i64, told: &mut Minute| {
        told.samples.iter_mut().filter(|s| &*s.card_uuid != "GPU-2").for_each(|s| s.sm_active_pct = percent(90));
    };
    assert_eq!(lab.tell(1..300, three), ["45 advise"]);
    assert!(lab.row("advise").words.contains("1 of the 4 cards of job lab/7 do nothing: GPU-2"));
    assert_eq!((lab.warnings.len(), lab.warnings[0].matter), (1, Matter::Notice));
}

#[test]
fn r22_labels_that_name_another_than_who_was_seen_on_the_card_move_nothing() {
    let mut lab = Lab::new(1);
    let exporter = |_: i64, told: &mut Minute| {
        let named = AttemptKey::new("lab", "monitoring/dcgm-exporter", "uid1");
        told.samples.iter_mut().for_each(|sample| sample.attempt_key = Some(named.clone()));
    };
    assert_eq!(lab.tell(1..200, exporter), ["45 alert"]);
    assert_eq!(lab.alerts, ["owner_unproven"]);
    // A source of labels that looks for no holders itself proves nothing.
    let mut lab = Lab::new(1);
    let imported = |_: i64, told: &mut Minute| told.watches.clear();
    let said = lab.tell(1..200, imported);
    assert!(said.iter().all(|word| word.ends_with("alert")), "{said:?}");
    assert_eq!((lab.warnings.len(), lab.orders.len()), (0, 0));
}

#[test]
fn r23_what_is_still_held_after_its_end_is_not_free_and_the_operator_is_told() {
    let mut lab = Lab::new(1);
    lab.tell(1..108, nothing);
    // Its record says that it ended; its node still sees it on the card.
    lab.records[0].is_final = true;
    lab.records[0].ended_at = Some(at(108));
    lab.records.clear();
    let said = lab.tell(108..130, nothing);
    assert!(!said.iter().any(|word| word.ends_with("reclaimed")), "{said:?}");
}

#[test]
fn in_shadow_all_is_written_down_and_nobody_is_told_or_touched() {
    let mut lab = Lab::new(1);
    lab.mode = Mode::Shadow;
    assert_eq!(lab.tell(1..200, nothing), ["45 suspect", "46 warn", "47 grace", "106 stop"]);
    assert_eq!((lab.warnings.len(), lab.orders.len(), lab.alerts.len()), (0, 0, 0));
    assert!(lab.row("stop").words.starts_with("In the mode act: Job lab/7 is stopped."), "{}", lab.row("stop").words);
    // It ends by itself at 200: from 106 on its card would have been free.
    lab.records.clear();
    let gone = |_: i64, told: &mut Minute| {
        told.observations.clear();
        told.activity.clear();
    };
    let said = lab.tell(200..203, gone);
    assert_eq!(said, ["200 ended"]);
    assert_eq!(lab.row("ended").recovered_card_ms, Some(94 * MINUTE));
}

#[test]
fn off_the_list_owners_are_told_and_nothing_is_taken() {
    let mut lab = Lab::new(1);
    lab.policy.act.clusters = vec!["other".into()];
    lab.policy.act.elsewhere = Mode::Notify;
    lab.tell(1..200, nothing);
    assert!(lab.row("warn").words.contains("Nothing is taken."), "{}", lab.row("warn").words);
    assert_eq!((lab.warnings.len(), lab.orders.len()), (1, 0));
}

#[test]
fn what_no_actuator_reaches_is_said_and_never_dropped() {
    let mut lab = Lab::new(1);
    lab.policy.act.slurm = None;
    let said = lab.tell(1..60, nothing);
    assert!(said.contains(&"46 no_actuator".to_owned()), "{said:?}");
    let words = &lab.row("no_actuator").words;
    assert!(words.contains("it is a Slurm job, and policy.toml has no [act.slurm]"), "{words}");
    assert_eq!(lab.alerts, ["no_actuator"]);
    lab.tell(60..200, nothing);
    assert_eq!(lab.orders, []);
}

#[test]
fn the_owner_extends_and_an_operator_cancels() {
    let mut lab = Lab::new(1);
    lab.tell(1..60, nothing);
    let wish = Wish::Extend { for_ms: 60 * MINUTE };
    let ask = |id: &str, minute: i64, by: &str, wish| Request {
        id: id.into(),
        at: at(minute),
        by: by.into(),
        job: key(),
        wish,
    };
    lab.requests.push(ask("a", 60, "ada", wish));
    lab.requests.push(ask("b", 60, "bob", wish));
    assert_eq!(lab.tell(60..61, nothing), ["60 extended", "60 refuse_extension"]);
    assert_eq!(lab.row("extended").until, Some(at(120)));
    assert_eq!(lab.tell(61..124, nothing), ["120 suspect", "121 warn", "122 grace"]);
    // Called off at 124: it has to be idle over a whole window again.
    lab.requests.push(ask("c", 124, "root", Wish::Cancel));
    assert_eq!(lab.tell(124..157, nothing), ["124 withdraw", "154 suspect", "155 warn", "156 grace"]);
    assert!(lab.row("withdraw").words.contains("root called it off"), "{}", lab.row("withdraw").words);
}

#[test]
fn another_mode_calls_off_what_was_begun_and_the_owner_is_warned_anew() {
    let mut lab = Lab::new(1);
    lab.mode = Mode::Shadow;
    lab.tell(1..100, nothing);
    lab.mode = Mode::Act;
    // A warning that nobody got counts for nothing.
    assert_eq!(lab.tell(100..105, nothing), ["100 withdraw", "100 suspect", "101 warn", "102 grace"]);
    assert_eq!(
        lab.row("withdraw").words.as_str(),
        "Nothing is taken from job 7: the mode for it was shadow and is act now."
    );
    lab.mode = Mode::Off;
    assert_eq!(lab.tell(105..107, nothing), ["105 withdraw"]);
    assert_eq!(lab.kept, []);
}

#[test]
fn a_warning_is_given_again_until_it_is_known_what_became_of_it_and_one_that_fails_stops_nobody() {
    let mut lab = Lab::new(1);
    lab.tell(1..47, nothing);
    lab.notices.clear();
    lab.tell(47..48, nothing);
    assert_eq!((lab.warnings.len(), &lab.warnings[0].decision), (2, &lab.warnings[1].decision));
    assert_eq!(lab.warnings[0].words, lab.warnings[1].words);
    let mut lab = Lab::new(1);
    lab.delivers = false;
    let said = lab.tell(1..300, nothing);
    assert_eq!(said, ["45 suspect", "46 warn", "47 alert"]);
    assert_eq!(lab.alerts, ["warning_undeliverable"]);
    assert_eq!(lab.orders, []);
    // Tried at 46 and each quarter hour.
    assert_eq!(lab.warnings.len(), 1 + (299 - 46) / 15);
}

#[test]
fn a_lease_that_cannot_be_read_begins_anew_and_is_told() {
    let mut lab = Lab::new(1);
    lab.tell(1..60, nothing);
    lab.kept[0].state = lab.kept[0].state.replace("\"version\":1", "\"version\":0").into();
    // That it worked isn't known any more either: judged from minute 60.
    assert_eq!(lab.tell(60..93, nothing), ["90 suspect", "91 warn", "92 grace"]);
    assert_eq!(lab.alerts, ["lease_unreadable"]);
    let ids: std::collections::BTreeSet<&Name> = lab.rows.iter().map(|row| &row.id).collect();
    assert_eq!(ids.len(), 6, "what is decided anew has ids of its own");
}

#[test]
fn telemetry_that_is_too_old_to_act_on_stops_nobody() {
    let mut lab = Lab::new(1);
    lab.tell(1..60, nothing);
    // From then on the node tells ten minutes late.
    let mut late: BTreeMap<i64, Minute> = BTreeMap::new();
    for minute in 60..140 {
        late.insert(minute + 10, lab.resting(minute));
        let told = late.remove(&minute);
        lab.tell(minute..minute + 1, |_, of_minute| *of_minute = told.clone().unwrap_or_default());
    }
    assert_eq!(lab.orders, []);
    assert!(lab.alerts.contains(&"telemetry_too_old".into()), "{:?}", lab.alerts);
}

#[test]
fn a_suspended_job_is_not_judged() {
    let mut lab = Lab::new(1);
    lab.tell(1..60, nothing);
    lab.records[0].state = JobState::Suspended;
    assert_eq!(lab.tell(60..200, nothing), ["60 withdraw"]);
}
