//! A comparison as people and programs read it: figures of each team under each set of quotas, beside one another.

use super::{Compared, Comparison, Side};
use cardhour_books::checkpoint::{Chart, Checkpoint, Section, Shape};
use cardhour_books::report::local;
use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_domain::CardTime;
use cardhour_scheduler_core::replay::policy::measure::{Figures, Kept, evenness_ppm};
use rust_decimal::Decimal;

/// The row that has all teams together.
const TOTAL: &str = "total";

/// Figures of a team on one side, in the order of [`FIGURES`].
type Row = Vec<Option<Decimal>>;

/// A figure: its column, what people call it, whether it is shown by team, whether it is drawn.
struct Figure {
    name: &'static str,
    words: &'static str,
    kind: Kind,
    /// The name of its section where it is shown team by team.
    by_team: Option<&'static str>,
    is_drawn: bool,
}

const fn figure(name: &'static str, words: &'static str, kind: Kind) -> Figure {
    Figure { name, words, kind, by_team: None, is_drawn: false }
}

const fn of_teams(figure: Figure, section: &'static str, is_drawn: bool) -> Figure {
    Figure { by_team: Some(section), is_drawn, ..figure }
}

/// Every figure, in the order of the columns. Counts are decimals, since a difference may be below zero.
const FIGURES: [Figure; 15] = [
    of_teams(figure("jobs", "jobs that started", Kind::Money), "jobs", false),
    of_teams(figure("mean_wait_hours", "mean wait, hours", Kind::Hours), "mean_wait", true),
    of_teams(figure("median_wait_hours", "median wait, hours", Kind::Hours), "median_wait", false),
    of_teams(figure("p95_wait_hours", "p95 wait, hours", Kind::Hours), "p95_wait", true),
    figure("mean_completion_hours", "from submission to end, mean, hours", Kind::Hours),
    of_teams(figure("card_hours", "card-hours held", Kind::Hours), "card_hours", true),
    figure("utilisation", "part of the pool held", Kind::Ratio),
    figure("served", "held ÷ asked for", Kind::Ratio),
    of_teams(figure("guarantee_met", "guarantee met", Kind::Ratio), "guarantee_met", false),
    figure("evenness", "evenness between teams", Kind::Ratio),
    of_teams(figure("preemptions", "runs that gave way", Kind::Money), "preemptions", false),
    figure("moves", "runs that moved", Kind::Money),
    of_teams(figure("lost_card_hours", "card-hours lost", Kind::Hours), "lost_card_hours", true),
    figure("unstarted", "jobs that could never start", Kind::Money),
    of_teams(figure("cost", "cost", Kind::Money), "cost", true),
];

impl Comparison {
    /// As people and as programs read it.
    pub(super) fn told(&self) -> Compared {
        let title = format!(
            "replay of a policy, {} to {}, {}",
            local(self.zone, self.during.start()),
            local(self.zone, self.during.end()),
            self.zone
        );
        let teams = 0..self.teams.len();
        let of_teams: Vec<Vec<Row>> =
            teams.map(|team| self.sides.iter().map(|side| self.of_team(side, team)).collect()).collect();
        let of_all: Vec<Row> = self.sides.iter().map(|side| self.of_all(side)).collect();
        let mut notes = self.notes.clone();
        notes.extend(self.sides.iter().flat_map(|side| side.faults.iter().cloned()));
        let unpriced = self.sides.iter().any(|side| !side.costs.unpriced.is_zero());
        if self.currency.is_none() {
            notes.push("no price book: hours without money".to_owned());
        }
        if unpriced {
            notes.push("some of the card-time has no price, and its cost is left out".to_owned());
        }
        notes.push(
            "played without checkpoints and without a grace: who gives way queues again at once and runs again in full; after the end nobody new arrives".to_owned(),
        );
        notes.push("nothing was started, moved or ended by this".to_owned());
        let mut sections = vec![self.whole(&of_all)];
        sections.extend(self.by_day());
        for (i, one) in FIGURES.iter().enumerate() {
            let is_known = of_teams.iter().flatten().any(|row| row[i].is_some_and(|figure| !figure.is_zero()));
            if let (Some(name), true) = (one.by_team, is_known) {
                sections.push(self.section(i, one, name, &of_teams, &of_all));
            }
        }
        let report = Checkpoint {
            title: title.clone(),
            summary: self.summary(&of_all),
            sections,
            notes: notes.clone(),
            has_holes: unpriced,
        };
        let table = self.table(title, &of_teams, &of_all, notes);
        Compared { report, table, is_faulty: self.sides.iter().any(|side| !side.faults.is_empty()) }
    }

    fn of_team(&self, side: &Side, team: usize) -> Row {
        let figures = side.figures.get(&team).cloned().unwrap_or_default();
        let cost = side.costs.micros.get(&team).copied();
        self.row(&figures, side.kept.get(&team).copied(), None, cost)
    }

    fn of_all(&self, side: &Side) -> Row {
        let mut all = Figures::default();
        side.figures.values().for_each(|figures| all.add(figures.clone()));
        let mut kept = Kept::default();
        for one in side.kept.values() {
            kept.owed += one.owed;
            kept.granted += one.granted;
        }
        let evenness = evenness_ppm(side.figures.values()).map(|ppm| Decimal::from_i128_with_scale(ppm.into(), 6));
        let costs = &side.costs.micros;
        self.row(&all, Some(kept), evenness, (!costs.is_empty()).then(|| costs.values().sum()))
    }

    fn row(&self, figures: &Figures, kept: Option<Kept>, evenness: Option<Decimal>, cost: Option<i128>) -> Row {
        let count = |count: u64| Some(Decimal::from(count));
        let digits = self.currency.map_or(0, |currency| u32::from(currency.minor_digits()));
        vec![
            count(figures.waits_ms.len() as u64),
            figures.mean_wait_ms().map(hours),
            figures.wait_percentile_ms(50).map(hours),
            figures.wait_percentile_ms(95).map(hours),
            figures.mean_completion_ms().map(hours),
            Some(figures.held.card_hours()),
            figures.held.ratio_of(self.capacity),
            figures.held.ratio_of(figures.asked),
            kept.and_then(|kept| kept.granted.ratio_of(kept.owed)),
            evenness,
            count(figures.preemptions),
            count(figures.moves),
            Some(figures.lost.card_hours()),
            count(figures.unstarted),
            cost.map(|micros| Decimal::from_i128_with_scale(micros, 6).trunc_with_scale(digits)),
        ]
    }

    /// The names of the sides, and of what is between the last two.
    fn sides(&self) -> Vec<&'static str> {
        let names = self.sides.iter().map(|side| side.name);
        names.chain((self.sides.len() > 2).then_some("difference")).collect()
    }

    /// A figure on each side, and what is between today and the proposal.
    fn beside(&self, i: usize, rows: &[Row]) -> Vec<Value> {
        let mut all: Vec<Option<Decimal>> = rows.iter().map(|row| row[i]).collect();
        if let [_, today, proposed] = all[..] {
            all.push(proposed.zip(today).map(|(proposed, today)| proposed - today));
        }
        all.into_iter().map(|one| one.map_or(Value::Absent, Value::Decimal)).collect()
    }

    fn columns(&self, first: &str, kind: Kind) -> Vec<Column> {
        let sides = self.sides().into_iter().map(|side| (side, kind));
        let all = std::iter::once((first, Kind::Text)).chain(sides);
        all.map(|(name, kind)| Column { name: name.to_owned(), kind }).collect()
    }

    /// The pool as a whole: a row a figure.
    fn whole(&self, of_all: &[Row]) -> Section {
        let row = |(i, one): (usize, &Figure)| {
            let figures = self.beside(i, of_all).into_iter().map(|value| shown(value, one.kind));
            let words = match self.currency.filter(|_| one.name == "cost") {
                Some(currency) => format!("{}, {}", one.words, currency.code()),
                None => one.words.to_owned(),
            };
            std::iter::once(Value::Text(words.into())).chain(figures).collect::<Vec<_>>()
        };
        let is_known = |row: &Vec<Value>| row[1..].iter().any(|value| *value != Value::Absent);
        let rows = FIGURES.iter().enumerate().map(row).filter(is_known).collect();
        let table = Table {
            title: "The whole pool".to_owned(),
            columns: self.columns("figure", Kind::Money),
            rows,
            total: None,
            notes: Vec::new(),
        };
        Section { name: "pool", table, chart: None }
    }

    /// How much of the pool was held on each day.
    fn by_day(&self) -> Option<Section> {
        let row = |(number, (day, capacity)): (usize, &(String, CardTime))| {
            let mut ratios: Vec<Option<Decimal>> =
                self.sides.iter().map(|side| side.by_day[number].ratio_of(*capacity)).collect();
            if let [_, today, proposed] = ratios[..] {
                ratios.push(proposed.zip(today).map(|(proposed, today)| proposed - today));
            }
            let ratios = ratios.into_iter().map(|ratio| ratio.map_or(Value::Absent, Value::Decimal));
            std::iter::once(Value::Text(day.as_str().into())).chain(ratios).collect::<Vec<_>>()
        };
        let table = Table {
            title: "Part of the pool held, by day".to_owned(),
            columns: self.columns("day", Kind::Ratio),
            rows: self.days.iter().enumerate().map(row).collect(),
            total: None,
            notes: Vec::new(),
        };
        let chart = Chart { shape: Shape::Line, label: 0, value: self.sides.len() };
        (self.days.len() > 1).then_some(Section { name: "utilisation_by_day", table, chart: Some(chart) })
    }

    /// One figure, team by team.
    fn section(&self, i: usize, one: &Figure, name: &'static str, of_teams: &[Vec<Row>], of_all: &[Row]) -> Section {
        let row = |(team, rows): (&String, &Vec<Row>)| {
            std::iter::once(Value::Text(team.as_str().into())).chain(self.beside(i, rows)).collect::<Vec<_>>()
        };
        let total = std::iter::once(Value::Absent).chain(self.beside(i, of_all)).collect();
        let mut letters = one.words.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        let mut title = format!("{first}{}", letters.as_str());
        if let Some(currency) = self.currency.filter(|_| one.name == "cost") {
            title.push_str(&format!(", {}", currency.code()));
        }
        let table = Table {
            title,
            columns: self.columns("team", one.kind),
            rows: self.teams.iter().zip(of_teams).map(row).collect(),
            total: Some(total),
            notes: Vec::new(),
        };
        // Today's bar beside the proposed one's; without a proposal, what was recorded beside today's.
        let last = self.sides.len();
        let chart = Chart { shape: Shape::Pairs { beside: last - 1 }, label: 0, value: last };
        Section { name, table, chart: one.is_drawn.then_some(chart) }
    }

    /// A row for each team and side, then the totals'.
    fn table(&self, title: String, of_teams: &[Vec<Row>], of_all: &[Row], notes: Vec<String>) -> Table {
        let names = FIGURES.iter().map(|one| (one.name, one.kind));
        let columns = [("team", Kind::Text), ("quotas", Kind::Text)].into_iter().chain(names);
        let columns = columns.chain([("currency", Kind::Text)]);
        let teams = self.teams.iter().map(String::as_str).zip(of_teams.iter().map(Vec::as_slice));
        let rows = teams.chain([(TOTAL, of_all)]).flat_map(|(team, rows)| {
            let figures: Vec<Vec<Value>> = (0..FIGURES.len()).map(|i| self.beside(i, rows)).collect();
            self.sides().into_iter().enumerate().map(move |(side, name)| {
                let mut row = vec![Value::Text(team.into()), Value::Text(name.into())];
                row.extend(figures.iter().map(|of_sides| of_sides[side].clone()));
                row.push(self.currency.map_or(Value::Absent, |currency| Value::Text(currency.code().into())));
                row
            })
        });
        Table {
            title,
            rows: rows.collect(),
            columns: columns.map(|(name, kind)| Column { name: name.to_owned(), kind }).collect(),
            total: None,
            notes,
        }
    }

    fn summary(&self, of_all: &[Row]) -> Vec<String> {
        let of = |row: &Row, name: &str| {
            let i = FIGURES.iter().position(|one| one.name == name).expect("it is one of the figures");
            row[i].map_or_else(|| "no".to_owned(), |figure| figure.round_dp(2).normalize().to_string())
        };
        let sentence = |(side, row): (&Side, &Row)| {
            let what = match side.name {
                "recorded" => "As it went",
                "today" => "Under today's quotas",
                _ => "Under the proposed quotas",
            };
            format!(
                "{what}: {} jobs waited {} h on average, 19 of 20 no longer than {} h; {} runs gave way, {} card-hours were lost.",
                of(row, "jobs"),
                of(row, "mean_wait_hours"),
                of(row, "p95_wait_hours"),
                of(row, "preemptions"),
                of(row, "lost_card_hours")
            )
        };
        self.sides.iter().zip(of_all).map(sentence).collect()
    }
}

/// A figure in a column that has several kinds of them.
fn shown(value: Value, kind: Kind) -> Value {
    match (value, kind) {
        (Value::Decimal(figure), Kind::Hours | Kind::Ratio) => {
            let mut rounded = figure.round_dp(4);
            rounded.rescale(4);
            Value::Decimal(rounded)
        }
        (value, _) => value,
    }
}

/// Milliseconds as hours, six decimals, half to even.
fn hours(ms: i64) -> Decimal {
    let mut hours = (Decimal::from(ms) / Decimal::from(3_600_000)).round_dp(6);
    hours.rescale(6);
    hours
}
