//! What `sreport` prints: usage by account and user, of whole hours.
//!
//! `sreport -P -T gres/gpu -t Seconds cluster AccountUtilizationByUser start=… end=…`, or `UserUtilizationByAccount`, with its header lines (not
//! `-n`), since only they say of what hours and in which unit it is. Both ends of what is asked are rounded to whole hours there; the header has the
//! hours that came of it, its end one second early.

use super::{Hours, OutsideError, TheirLine, Theirs, Tool, Who, card_seconds, fault};
use cardhour_domain::{CardTime, Name};
use chrono::{NaiveDateTime, TimeDelta};

/// The resource that is a card.
pub const CARD: &str = "gres/gpu";

/// Reads a report. Errors: no header, an unknown unit, a column that is missing, a figure that is none.
pub fn read(text: &str) -> Result<Theirs, OutsideError> {
    let mut hours = None;
    let mut unit_s = None;
    let mut columns: Option<Columns> = None;
    let mut rows = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_end_matches('\r');
        if line.is_empty() || line.bytes().all(|c| c == b'-') {
            continue;
        }
        if let Some(columns) = &columns {
            rows.push(columns.row(number, line)?);
        } else if let Some(words) = line.strip_prefix("Usage reported in ") {
            unit_s = Some(unit_of(words).ok_or_else(|| {
                fault(
                    number,
                    "unit",
                    format!("{words:?} is not TRES Seconds, Minutes or Hours: print it with -t Seconds"),
                )
            })?);
        } else if line.contains('|') {
            columns = Some(Columns::of(number, line)?);
        } else if let Some((from, to)) = hours_of(line) {
            hours = Some(Hours::Local(from, to));
        }
    }
    let missing = |what: &str| OutsideError::Missing(what.to_owned());
    columns.ok_or_else(|| {
        missing("no line with columns such as Cluster|Account|Login|TRES Name|Used: print it with -P")
    })?;
    let unit_s = unit_s.ok_or_else(|| {
        missing("no line `Usage reported in TRES Seconds`: print it with its header, that is, without -n")
    })?;
    let hours = hours.ok_or_else(|| {
        missing("no line with the report's hours, such as `Utilization 2026-03-01T00:00:00 - 2026-03-31T23:59:59`")
    })?;
    theirs(rows, hours, unit_s)
}

fn theirs(rows: Vec<Row>, hours: Hours, unit_s: i128) -> Result<Theirs, OutsideError> {
    let mut notes = Vec::new();
    if !rows.is_empty() && rows.iter().all(|row| row.tres != CARD) {
        return Err(OutsideError::Missing(format!("no row of {CARD}: print it with -T {CARD}")));
    }
    let is_of_user = |row: &&Row| row.user.is_some();
    let cards: Vec<&Row> = rows.iter().filter(|row| row.tres == CARD).collect();
    // Rows without a user are sums of the rows below them, and of the accounts below theirs.
    let (of_users, sums): (Vec<&Row>, Vec<&Row>) = cards.into_iter().partition(is_of_user);
    let sum_is_all = of_users.is_empty();
    if !sum_is_all && !sums.is_empty() {
        notes.push(format!(
            "{} rows of whole accounts are sums of the rows of their users, and passed over",
            sums.len()
        ));
    }
    let kept = if sum_is_all {
        sums.into_iter().filter(|row| row.project.as_deref() != Some("root")).collect()
    } else {
        of_users
    };
    // A user has a row for each partition that the account is limited to.
    let mut lines: Vec<TheirLine> = Vec::new();
    for row in kept {
        let time =
            row.used.checked_mul(unit_s).and_then(card_seconds).ok_or_else(|| fault(row.line, "Used", "too large"))?;
        let who = Who { cluster: row.cluster.clone(), project: row.project.clone(), user: row.user.clone(), job: None };
        match lines.iter_mut().find(|line| line.who == who) {
            Some(line) => {
                line.time += time;
                line.figures += 1;
            }
            None => lines.push(TheirLine::new(who, time)),
        }
    }
    let unit = card_seconds(unit_s).unwrap_or(CardTime::ZERO);
    Ok(Theirs { tool: Tool::Sreport, hours, lines, unit, notes })
}

/// Unit: seconds.
fn unit_of(words: &str) -> Option<i128> {
    let words = words.strip_prefix("TRES ").unwrap_or(words);
    match words.split('/').next()?.trim() {
        "Seconds" => Some(1),
        "Minutes" => Some(60),
        "Hours" => Some(3600),
        _ => None,
    }
}

/// `Cluster/Account/User Utilization 2026-11-30T11:00:00 - 2026-11-30T11:59:59 (3600 secs)`: its hours, the end as the first instant after.
fn hours_of(line: &str) -> Option<(NaiveDateTime, NaiveDateTime)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let dash = words.iter().position(|word| *word == "-")?;
    let read = |word: &str| NaiveDateTime::parse_from_str(word, "%Y-%m-%dT%H:%M:%S").ok();
    let (from, last) = (read(words.get(dash.checked_sub(1)?)?)?, read(words.get(dash + 1)?)?);
    Some((from, last.checked_add_signed(TimeDelta::seconds(1))?))
}

struct Row {
    line: usize,
    cluster: Option<Name>,
    project: Option<Name>,
    user: Option<Name>,
    tres: String,
    used: i128,
}

struct Columns {
    cluster: Option<usize>,
    account: usize,
    login: Option<usize>,
    tres: usize,
    used: usize,
}

impl Columns {
    fn of(number: usize, line: &str) -> Result<Self, OutsideError> {
        let names: Vec<&str> = line.split('|').map(str::trim).collect();
        let place = |name: &str| names.iter().position(|known| known.eq_ignore_ascii_case(name));
        let must = |name: &str| place(name).ok_or_else(|| fault(number, name, format!("no such column in {line:?}")));
        Ok(Self {
            cluster: place("Cluster"),
            account: must("Account")?,
            login: place("Login"),
            tres: must("TRES Name")?,
            used: must("Used")?,
        })
    }

    fn row(&self, number: usize, line: &str) -> Result<Row, OutsideError> {
        let values: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = |column: usize| values.get(column).copied().filter(|value| !value.is_empty()).map(Name::from);
        let used = values.get(self.used).ok_or_else(|| fault(number, "Used", "the row is cut off"))?;
        // `5015(1.2%)` of SecPer and the like: the figure stands first.
        let digits = used.split('(').next().unwrap_or_default();
        Ok(Row {
            line: number,
            cluster: self.cluster.and_then(name),
            project: name(self.account),
            user: self.login.and_then(name),
            tres: values.get(self.tres).copied().unwrap_or_default().to_owned(),
            used: digits.parse().map_err(|_| fault(number, "Used", format!("{used:?} is not a whole number")))?,
        })
    }
}
